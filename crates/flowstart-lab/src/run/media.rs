//! The effect of newcomers on interactive media flows that share their link.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::traffic::media::{Fate, Media, PacketTimes};
use flowstart_sim::world::World;

use crate::run::quality::{LOOK_AHEAD, mos, rating};
use flowstart_statistics::{median, quantile};

/// The reference delay of the harm is measured from this long before the newcomers.
const BEFORE: Duration = Duration::from_millis(1000);
/// A packet is harmed if it does not arrive, or if its delay exceeds the median delay before the newcomers by this
/// much.
const HARMED: Duration = Duration::from_millis(10);

/// The quality of media packets from the newcomers' start until 5 s after their end. The packets of all media flows
/// count together, but harm and windows are those of the worst flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MediaOutcome {
    /// One-way delay of the packets that arrived, in milliseconds: the median, ...
    pub delay_p50_ms: Option<f64>,
    /// ... the delay that 95 % do not exceed, ...
    pub delay_p95_ms: Option<f64>,
    /// ... that 99 % do not exceed, ...
    pub delay_p99_ms: Option<f64>,
    /// ... and the longest.
    pub delay_max_ms: Option<f64>,
    /// Part of the packets that did not arrive.
    pub loss: Option<f64>,
    /// Part of the packets that arrived after their playout time.
    pub late: Option<f64>,
    /// Rating R over the run.
    pub rating: Option<f64>,
    /// MOS over the run.
    pub mos: Option<f64>,
    /// From the newcomers' start until the first harmed packet was sent; absent without harm.
    pub harm_onset_ms: Option<f64>,
    /// From the newcomers' start until the end of the harm; 0 without harm.
    pub harm_ms: Option<f64>,
    /// MOS from the first harmed packet to the last; absent without harm.
    pub harm_mos: Option<f64>,
    /// MOS of the worst second.
    pub worst_1s_mos: Option<f64>,
    /// MOS of the worst 5 s.
    pub worst_5s_mos: Option<f64>,
}

/// A media flow's packets from the newcomers' start on, with the fate of each.
struct Stream {
    packets: Vec<PacketTimes>,
    fates: Vec<Fate>,
    /// Median delay before the newcomers.
    before: Option<Duration>,
}

impl Stream {
    /// The packets of a flow that were sent from `start` until `end`, without packets that could still arrive.
    fn read(media: &Media, packets: &[PacketTimes], start: Timestamp, end: Timestamp) -> Self {
        let fates = media.playout.fates(packets);
        let first = packets.partition_point(|packet| packet.sent < start);
        let earlier = packets[..first].iter().filter(|packet| packet.sent + BEFORE >= start);
        let delays: Vec<f64> = earlier.filter_map(|packet| Some(packet.delay()?.as_secs())).collect();
        let last = packets.partition_point(|packet| packet.sent < end).max(first);
        Self {
            packets: packets[first..last].to_vec(),
            fates: fates[first..last].to_vec(),
            before: median(&delays).map(Duration::from_secs),
        }
    }

    fn is_harmed(&self, place: usize) -> bool {
        match (self.packets[place].delay(), self.before) {
            (Some(delay), Some(before)) => delay > before + HARMED,
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    /// Rating of the packets in this range.
    fn rating(&self, media: &Media, range: std::ops::Range<usize>) -> Option<f64> {
        rating_of(media, &self.fates[range])
    }

    /// MOS of the worst window of this length; of all packets if there are fewer.
    fn worst(&self, media: &Media, window: Duration) -> Option<f64> {
        let count = (window.as_secs() / media.interval.as_secs()).round().max(1.0) as usize;
        let windows = self.fates.windows(count.min(self.fates.len()).max(1));
        windows.filter_map(|fates| rating_of(media, fates)).map(mos).reduce(f64::min)
    }
}

/// Rating of packets with these fates, from their mean mouth-to-ear delay. All packets that were not played count as
/// lost. `None` without packets.
fn rating_of(media: &Media, fates: &[Fate]) -> Option<f64> {
    let played = fates.iter().filter_map(|fate| match fate {
        Fate::Played(wait) => Some(*wait),
        Fate::Late | Fate::Lost => None,
    });
    let (count, sum) = played.fold((0_u64, Duration::ZERO), |(count, sum), wait| (count + 1, sum + wait));
    let missing = 1.0 - count as f64 / fates.len() as f64;
    // Of an interval in which nothing is played only the loss is known.
    let waited = if count > 0 { sum / count } else { Duration::ZERO };
    (!fates.is_empty()).then(|| rating(media.interval + LOOK_AHEAD + waited, missing))
}

/// The one-way delays, in milliseconds, of the packets of `flows` that were sent from `start` until `end` and arrived.
pub fn delays(world: &World, flows: u32, start: Timestamp, end: Timestamp) -> Vec<f64> {
    let packets = (0..flows).flat_map(|flow| &world.record(flow).media);
    let sent = packets.filter(|packet| packet.sent >= start && packet.sent < end);
    sent.filter_map(|packet| Some(packet.delay()?.as_millis_f64())).collect()
}

/// The quality of the media flows, the first `flows` of the world, between `start` and `end`.
pub fn outcome(world: &World, media: &Media, flows: u32, start: Timestamp, end: Timestamp) -> MediaOutcome {
    // Packets of the last second may still be in flight.
    let sent_until = (end - BEFORE).max(start);
    let read = |flow| Stream::read(media, &world.record(flow).media, start, sent_until);
    let streams: Vec<Stream> = (0..flows).map(read).collect();
    let delays = delays(world, flows, start, sent_until);
    let fates: Vec<Fate> = streams.iter().flat_map(|stream| stream.fates.iter().copied()).collect();
    let part = |wanted: Fate| {
        let count = fates.iter().filter(|fate| **fate == wanted).count();
        (!fates.is_empty()).then(|| count as f64 / fates.len() as f64)
    };
    let worst = |values: Vec<Option<f64>>| values.into_iter().flatten().reduce(f64::min);
    let rating = rating_of(media, &fates);
    let (mut onset, mut harm, mut harm_mos) = (None, None, None);
    for stream in streams.iter().filter(|stream| !stream.packets.is_empty()) {
        let harmed: Vec<usize> = (0..stream.packets.len()).filter(|place| stream.is_harmed(*place)).collect();
        let (Some(&first), Some(&last)) = (harmed.first(), harmed.last()) else {
            harm = harm.max(Some(Duration::ZERO));
            continue;
        };
        let until = stream.packets[last].sent + media.interval;
        if harm.is_none_or(|harm| until.since(start) > harm) {
            harm = Some(until.since(start));
            onset = Some(stream.packets[first].sent.since(start).as_millis_f64());
            harm_mos = stream.rating(media, first..last + 1).map(mos);
        }
    }
    MediaOutcome {
        delay_p50_ms: quantile(&delays, 0.5),
        delay_p95_ms: quantile(&delays, 0.95),
        delay_p99_ms: quantile(&delays, 0.99),
        delay_max_ms: quantile(&delays, 1.0),
        loss: part(Fate::Lost),
        late: part(Fate::Late),
        rating,
        mos: rating.map(mos),
        harm_onset_ms: onset,
        harm_ms: harm.map(Duration::as_millis_f64),
        harm_mos,
        worst_1s_mos: worst(streams.iter().map(|stream| stream.worst(media, Duration::from_millis(1000))).collect()),
        worst_5s_mos: worst(streams.iter().map(|stream| stream.worst(media, Duration::from_millis(5000))).collect()),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::units::Rate;
    use flowstart_sim::traffic::media::Playout;

    use super::*;

    const MEDIA: Media = Media {
        rate: Rate::from_bits_per_sec(32_000),
        interval: Duration::from_millis(20),
        playout: Playout::Fixed(Duration::from_millis(60)),
    };

    /// A packet every 20 ms from 0 on, with these delays; 0 is a loss.
    fn stream(delays: impl Iterator<Item = u64>, start: u64) -> Stream {
        let at = |ms: u64| Timestamp::ZERO + Duration::from_millis(ms);
        let packets: Vec<PacketTimes> = delays
            .zip(0..)
            .map(|(delay, place)| PacketTimes {
                sent: at(place * 20),
                arrived: (delay > 0).then(|| at(place * 20 + delay)),
            })
            .collect();
        Stream::read(&MEDIA, &packets, at(start), at(1_000_000))
    }

    #[test]
    fn harm_is_against_the_median_delay_just_before() {
        // 100 packets of 50 ms, then a newcomer at 2 s: 58 ms is within 10 ms of before, 61 ms is not, a loss never is.
        let stream = stream([vec![50; 100], vec![58, 61, 0, 50]].concat().into_iter(), 2000);
        assert_eq!(stream.before, Some(Duration::from_millis(50)));
        assert_eq!([0, 1, 2, 3].map(|place| stream.is_harmed(place)), [false, true, true, false]);
    }

    #[test]
    fn the_worst_second_is_the_one_with_the_most_packets_missing() {
        // Of 200 packets 10 in a row arrive after 50 + 60 = 110 ms: 20 % of the worst 50. The mouth-to-ear delay is 110
        // + 26.5 ms, so R = 93.2 - 0.024 * 136.5 - 95 * 20 / 45.1 = 47.80.
        let delays = (0..200).map(|place| if (100..110).contains(&place) { 150 } else { 50 });
        let stream = stream(delays, 0);
        let worst = stream.worst(&MEDIA, Duration::from_millis(1000)).unwrap();
        assert!((worst - mos(47.796)).abs() < 1e-3, "{worst} {}", mos(47.796));
        // In total 5 % are missing: 93.2 - 3.276 - 95 * 5 / 30.1 = 74.14.
        let all = stream.rating(&MEDIA, 0..200).unwrap();
        assert!((all - 74.143).abs() < 1e-2, "{all}");
        assert!(stream.worst(&MEDIA, Duration::from_millis(5000)) > Some(worst));
    }

    #[test]
    fn a_stretch_without_any_packet_has_no_rating() {
        assert_eq!(rating_of(&MEDIA, &[]), None);
        assert!(rating_of(&MEDIA, &[Fate::Lost]).is_some());
    }

    /// Rows of one repetition with one flow of 90 KB by each of these schemes, on an HSPA-like link.
    fn rows(schemes: &str, competitor: &str) -> Vec<crate::results::flows::Row> {
        let text = format!(
            "link = [\"hspa\"]\nsize = [\"90KB\"]\nscheme = [{schemes}]\ncompetitor = [\"{competitor}\"]\nreps = 1\n\
             transport = \"model-tcp:profile=tcp-linux\"\navoidance = \"cubic\""
        );
        let plan = crate::study::scenario::Scenario::from_text(&text).unwrap().plan(std::path::Path::new(".")).unwrap();
        crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap()
    }

    #[test]
    fn a_larger_initial_window_delays_a_conversation_longer_and_both_let_it_recover() {
        let rows = rows("\"slow-start:iw=3\", \"slow-start:iw=10\"", "media");
        let of = |row: &crate::results::flows::Row| {
            (row.media_delay_p50_ms.unwrap(), row.media_delay_max_ms.unwrap(), row.media_harm_ms.unwrap())
        };
        let ((p50, three, _), (_, ten, harm)) = (of(&rows[0]), of(&rows[1]));
        // 50 ms of propagation and 120 B at 3.6 Mbit/s, 0.27 ms.
        assert!((p50 - 50.3).abs() < 0.1, "{p50}");
        // Nine packets of 1514 B at 3.6 Mbit/s before one at least: 30 ms.
        assert!(three < ten && ten > 80.0, "{three} {ten}");
        assert!(harm > 100.0 && harm < rows[1].fct_ms.unwrap() + 100.0, "{harm}");
        assert_eq!((rows[0].media_loss, rows[0].media_late), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn columns_of_media_exist_only_beside_media() {
        let header = |competitor: &str| {
            let mut out = Vec::new();
            crate::results::flows::write_csv(&rows("\"slow-start\"", competitor), &mut out).unwrap();
            String::from_utf8(out).unwrap().lines().next().unwrap().to_owned()
        };
        assert!(header("media:playout=adaptive").contains(",media_delay_p50_ms,"));
        assert!(!header("cbr:rate=1mbit").contains("media_"));
    }
}
