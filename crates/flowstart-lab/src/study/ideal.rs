//! The physical limit of a transfer: its completion time if nobody had to learn anything.

use std::sync::Arc;

use flowstart_core::quick_start::host::{Known, PacketSizes, Request, respond};
use flowstart_core::quick_start::router::{Router, Verdict};
use flowstart_core::rng::Substream;
use flowstart_core::startup::quick_start;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::traffic::video::Video;
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;

use crate::spec::application::Objects;
use crate::spec::link::{Distribution, Link};
use crate::spec::mobility::Move;
use crate::study::plan::{Cell, Plan};

/// The shortest possible time from the first packet of the handshake to the last payload byte at the receiver.
///
/// The handshake and the propagation of the data take 1.5 RTT if the data sender opens, 2 RTT with a request and 1 RTT
/// with 0-RTT. Then the wire bytes take their time at the link's rate, and each further hop adds one packet's time. On
/// a recorded trace the bytes take the opportunities after `start`, the start of the transfer; a rate that varies is
/// that of the link's run ([`Link::in_run`]).
pub fn ideal_fct(link: &Link, profile: &Profile, size: Bytes, start: Timestamp) -> Duration {
    let way = Way::new(link, profile, start);
    way.fct(way.finish(way.begin, Bytes::ZERO, size), size)
}

/// Completion time of slow start with this initial window in packets, alone on a link of fixed rate with enough buffer.
/// The function counts rounds: each takes one RTT and doubles the window, until the window keeps the link busy for an
/// RTT.
pub fn slow_start_fct(link: &Link, profile: &Profile, size: Bytes, initial_window: u64) -> Duration {
    let packet = Bytes::new(u64::from(profile.data_wire_size(profile.payload)));
    let packet_time = link.rate.time_for(packet);
    let mut left = size.get().div_ceil(u64::from(profile.payload));
    let mut window = initial_window;
    // The handshake and the propagation of the request and of the first packet.
    let mut time = Way::new(link, profile, Timestamp::ZERO).handshake;
    while left > window && packet_time * window < link.rtt {
        left -= window;
        window *= 2;
        time += link.rtt;
    }
    time + packet_time * left
}

/// Round trips, including the handshake, of a transfer of `packets` with a first window of `window` on a path that
/// holds `path` packets: equation (2) of Sarolahti, Allman and Floyd, "Determining an Appropriate Sending Rate Over an
/// Underutilized Network Path", 2007. R = log2(max(min(N, M) / W + 1, 2)) + ceil(N / M).
pub fn rounds(packets: f64, window: f64, path: f64) -> f64 {
    libm::log2((packets.min(path) / window + 1.0).max(2.0)) + (packets / path).ceil()
}

/// Round trips by equation (2) of slow start with this initial window, and of Quick-Start if the routers of the idle
/// link approve as much as they can. `None` without routers, or if they approve nothing.
pub fn quick_start_rounds(
    link: &Link,
    profile: &Profile,
    size: Bytes,
    initial_window: u64,
    config: &quick_start::Config,
) -> Option<[f64; 2]> {
    let payload = Bytes::new(u64::from(profile.payload));
    let sizes = PacketSizes { mss: payload, header: config.header };
    let known = Known { rtt: Some(config.rtt), object: Some(size), ..Known::default() };
    let asked = config.request_size().rate(&known, sizes, payload * initial_window)?.min(config.rate);
    // The random part of a request does not affect the approval.
    let mut rng = Substream::new(0, "idle path", 0);
    let request = Request::new(asked, config.rounding, config.encoding, u8::MAX, &mut rng)?;
    let mut option = request.option();
    for place in 0..link.hops {
        let mut router = Router::new(link.routers.as_ref()?.at(place), link.rate);
        let Verdict::Forward(left) = router.on_option(Timestamp::ZERO, 0, option, &mut rng) else { return None };
        option = left;
    }
    let approved = request.verify(&respond(option, u8::MAX - link.hops as u8)?).ok()?;
    let packet = Bytes::new(u64::from(profile.data_wire_size(profile.payload)));
    let in_packets = |rate: Rate| rate.amount_in(link.rtt).get() as f64 / packet.get() as f64;
    let (packets, path) = (size.get().div_ceil(payload.get()) as f64, in_packets(link.rate));
    let windows = [initial_window as f64, in_packets(approved).max(initial_window as f64)];
    Some(windows.map(|window| rounds(packets, window, path)))
}

/// [`ideal_fct`] of a flow that moves to the path `after` at `at`: the second link carries everything that the first
/// link has not carried by then.
pub fn ideal_moved_fct(link: &Link, profile: &Profile, size: Bytes, start: Timestamp, after: &Move) -> Duration {
    let way = Way::new(link, profile, start);
    let moved = (start + after.at).max(way.begin);
    if way.finish(way.begin, Bytes::ZERO, size) <= moved {
        return ideal_fct(link, profile, size, start);
    }
    // The most bytes that can have left by then.
    let (mut carried, mut more) = (0, way.wire(size));
    while more - carried > 1 {
        let middle = carried + (more - carried) / 2;
        match link.carry(way.begin, Bytes::new(middle)) <= moved {
            true => carried = middle,
            false => more = middle,
        }
    }
    let next = link.varies.seed.map_or_else(|| after.link.clone(), |seed| after.link.in_run(seed));
    let end = next.carry(moved, Bytes::new(way.wire(size) - carried));
    let way = Way::new(&after.link, profile, start);
    end.since(start) + way.rtt / 2 + way.further_hops(size)
}

/// [`ideal_fct`] for an application. Chunks are not sent before their time, and those of an adaptive video have the
/// lowest rate. The client requests each wave of a page
/// when the first object of the wave before has arrived.
pub fn ideal_application_fct(link: &Link, profile: &Profile, application: Objects, start: Timestamp) -> Duration {
    let way = Way::new(link, profile, start);
    let last = application.video().map_or(application.total(), |video| video.chunk_size(video.ladder.rates()[0]));
    way.fct(way.carry(application).0, last)
}

/// The part of [`ideal_fct`] in which the application has nothing to send.
pub fn ideal_idle_time(link: &Link, profile: &Profile, application: Objects, start: Timestamp) -> Duration {
    Way::new(link, profile, start).carry(application).1
}

/// One-way propagation from the sender to the receiver.
struct Way<'a> {
    link: &'a Link,
    profile: &'a Profile,
    rtt: Duration,
    /// The time until the first byte may leave, plus the propagation of the last one.
    handshake: Duration,
    /// The time when the first byte leaves.
    begin: Timestamp,
}

impl<'a> Way<'a> {
    fn new(link: &'a Link, profile: &'a Profile, start: Timestamp) -> Self {
        let rtt = link.host_rtt();
        let handshake = match profile.opening {
            Opening::Sender => rtt + rtt / 2,
            Opening::Request => rtt * 2,
            Opening::ZeroRtt => rtt,
        };
        Self { link, profile, rtt, handshake, begin: start + handshake.saturating_sub(rtt / 2) }
    }

    /// Wire bytes of this payload.
    fn wire(&self, size: Bytes) -> u64 {
        size.get() + size.get().div_ceil(u64::from(self.profile.payload)) * u64::from(self.profile.overhead)
    }

    /// The time when `size` bytes that are sent from `begin` on have left. They follow `sent` bytes, whose last packet
    /// they may fill up.
    fn finish(&self, begin: Timestamp, sent: Bytes, size: Bytes) -> Timestamp {
        self.link.carry(begin, Bytes::new(self.wire(sent + size) - self.wire(sent)))
    }

    /// The time when the last byte of an application leaves, and how long the link is idle before it for want of data.
    fn carry(&self, application: Objects) -> (Timestamp, Duration) {
        let (mut end, mut sent, mut idle) = (self.begin, Bytes::ZERO, Duration::ZERO);
        match application {
            Objects::Video(video) => return self.carry_video(&video),
            Objects::Chunks { size, interval, count } => {
                for chunk in 0..u64::from(count) {
                    let begin = end.max(self.begin + interval * chunk);
                    idle += begin.since(end);
                    end = self.finish(begin, sent, size);
                    sent += size;
                }
            }
            Objects::Page { objects, size, waves } | Objects::HttpPage { objects, size, waves, .. } => {
                let mut requested = self.begin;
                for _ in 0..waves {
                    let begin = end.max(requested);
                    idle += begin.since(end);
                    requested = self.finish(begin, sent, size) + self.further_hops(size) + self.rtt;
                    end = self.finish(begin, sent, size * u64::from(objects));
                    sent += size * u64::from(objects);
                }
            }
        }
        (end, idle)
    }

    /// The same for a video at its lowest rate. Each chunk is requested when the one before has arrived, but not before
    /// it has room in the buffer.
    fn carry_video(&self, video: &Video) -> (Timestamp, Duration) {
        let size = video.chunk_size(video.ladder.rates()[0]);
        let (mut end, mut idle) = (self.begin, Duration::ZERO);
        let (mut requested, mut plays) = (self.begin, None);
        for chunk in 0..u64::from(video.count) {
            let begin = end.max(requested);
            idle += begin.since(end);
            end = self.finish(begin, size * chunk, size);
            let there = video.chunk * (chunk + 1);
            requested = end + self.further_hops(size) + self.rtt;
            if plays.is_none() && there >= video.start {
                plays = Some(requested);
            }
            // With the next chunk the buffer has this much if nothing is played.
            let played = (there + video.chunk).saturating_sub(video.buffer);
            requested = requested.max(plays.map_or(requested, |plays| plays + played));
        }
        (end, idle)
    }

    /// The time that each further hop adds: that of the last packet of this payload.
    fn further_hops(&self, size: Bytes) -> Duration {
        let payload = u64::from(self.profile.payload);
        let last = size.get() - (size.get().div_ceil(payload) - 1) * payload;
        let wire = Bytes::new(last + u64::from(self.profile.overhead));
        self.link.rate.time_for(wire) * u64::from(self.link.hops - 1) + self.link.access_rate.time_for(wire)
    }

    /// The completion time of a flow of `size` bytes whose last byte left at `end`.
    fn fct(&self, end: Timestamp, size: Bytes) -> Duration {
        self.handshake + end.since(self.begin) + self.further_hops(size)
    }
}

/// The physical limit of a cell's flow of `size` bytes over `link`.
pub fn limit_of(plan: &Plan, cell: &Cell, link: &Link, size: Bytes, start: Timestamp) -> Duration {
    let mut profile = plan.profile(cell);
    if link.proxy.is_some_and(|proxy| proxy.distribution == Distribution::Distributed) {
        // The client's request crosses the link at once.
        Arc::make_mut(&mut profile).opening = Opening::ZeroRtt;
    }
    let profile = &*profile;
    match (plan.sizes[cell.size].value.objects(), plan.mobility(cell)) {
        (None, None) => ideal_fct(link, profile, size, start),
        (None, Some(mobility)) => ideal_moved_fct(link, profile, size, start, mobility),
        (Some(application), _) => ideal_application_fct(link, profile, application, start),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn link(text: &str) -> Link {
        Link::parse("--link", text, Path::new(".")).unwrap()
    }

    #[test]
    fn it_is_handshake_plus_serialization() {
        let profile = Profile::named("ns2-sack1").unwrap();
        // 100 packets of 1500 bytes at 10 Mbit/s: 120 ms; 1.5 * 80 ms; one more packet time (1.2 ms) for the second hop
        // and 1.2 us for the receiver's access link at 10 Gbit/s.
        let ideal = ideal_fct(&link("rate=10mbit,rtt=80ms,hops=2"), &profile, Bytes::new(146_000), Timestamp::ZERO);
        assert_eq!(ideal, Duration::from_nanos(120_000_000 + 120_000_000 + 1_200_000 + 1_200));
    }

    #[test]
    fn a_rate_that_varies_is_integrated_in_the_run_where_it_is_known() {
        let profile = Profile::named("ns2-sack1").unwrap();
        let (size, start) = (Bytes::new(14_600_000), Timestamp::ZERO + Duration::from_millis(3_000));
        let varying = link("rate=10mbit,rtt=80ms,rate_steps=90%/1s");
        let plain = link("rate=10mbit,rtt=80ms");
        let limit = |link: &Link| ideal_fct(link, &profile, size, start);
        // Without a run it is the mean rate.
        assert_eq!(limit(&varying), limit(&plain));
        // 10,000 packets of 1500 bytes at 10 Mbit/s take 12 s. Twelve steps of 1 s around the mean differ from it by
        // 0.9 / sqrt(3 * 12) = 15 % in the mean square.
        let over: Vec<f64> =
            (0..40).map(|seed| limit(&varying.in_run(seed)).as_secs() / limit(&plain).as_secs() - 1.0).collect();
        let square = (over.iter().map(|over| over * over).sum::<f64>() / 40.0).sqrt();
        assert!((0.1..0.22).contains(&square), "{square}");
    }

    #[test]
    fn equation_2_counts_round_trips() {
        // 10,000 packets of 1500 bytes on 10 Gbit/s and 160 ms, a path that holds 133,333 packets. Slow start from
        // three segments takes log2(10,000 / 3 + 1) + 1 = 12.7 round trips. A window for all packets takes two, the
        // handshake's and the data's.
        let path = 10e9 * 0.16 / 12_000.0;
        assert!((rounds(10_000.0, 3.0, path) - 12.703).abs() < 1e-3, "{}", rounds(10_000.0, 3.0, path));
        assert_eq!(rounds(10_000.0, 17_476.0, path), 2.0);
        // A transfer of three path capacities: slow start until the path is full, and three times its packets.
        assert_eq!(rounds(300.0, 100.0 / 7.0, 100.0), 6.0);
    }

    #[test]
    fn quick_start_gains_what_the_routers_approve() {
        let profile = Profile::named("ns2-sack1").unwrap();
        let config = quick_start::Config {
            request: quick_start::RequestKind::Fixed,
            rate: Rate::from_mbit(1000),
            ..quick_start::Config::default()
        };
        let gain = |text: &str, packets: u64| {
            quick_start_rounds(&link(text), &profile, Bytes::new(packets * 1460), 3, &config)
        };
        // 1 Gbit/s is rounded up to 1.31: 17,476 packets in 160 ms, more than the transfer has.
        let [slow_start, quick_start] = gain("10g,quick_start=target", 10_000).unwrap();
        assert!((slow_start - 12.703).abs() < 1e-3 && quick_start == 2.0, "{slow_start} {quick_start}");
        assert_eq!(gain("10g,quick_start=target", 3), None, "what fits the initial window asks for nothing");
        assert_eq!(gain("10g,quick_start=target,qs_routers=0", 10_000), None);
        assert_eq!(gain("10g", 10_000), None);
    }

    #[test]
    fn the_opening_decides_the_round_trips() {
        let base = Profile::named("rfc9002").unwrap();
        let zero = Profile { opening: Opening::ZeroRtt, ..base.clone() };
        let ideal = |profile| ideal_fct(&link("rate=10mbit,rtt=80ms"), profile, Bytes::new(1165), Timestamp::ZERO);
        assert_eq!(ideal(&base).saturating_sub(ideal(&zero)), Duration::from_millis(80));
    }

    #[test]
    fn what_the_first_path_has_not_carried_the_second_carries() {
        let profile = Profile { payload: 1000, overhead: 0, ..Profile::named("ns2-sack1").unwrap() };
        let (first, second) = (link("rate=8mbit,rtt=80ms"), link("rate=4mbit,rtt=40ms"));
        let ideal = |at| {
            let moved = Move { at: Duration::from_millis(at), link: second.clone() };
            ideal_moved_fct(&first, &profile, Bytes::new(100_000), Timestamp::ZERO, &moved).as_millis_f64()
        };
        // The first byte leaves after 80 ms. 50 kB leave until 130 ms. The others take 100 ms at half the rate and 20
        // ms more to arrive; the receiver's own link adds 0.0008 ms.
        assert!((ideal(130) - 250.0008).abs() < 1e-3, "{}", ideal(130));
        // All have left after 180 ms, and arrive 40 ms later.
        assert!((ideal(500) - 220.0008).abs() < 1e-3, "{}", ideal(500));
    }

    #[test]
    fn chunks_wait_for_their_time_and_waves_for_their_request() {
        let profile = Profile { payload: 1000, overhead: 0, ..Profile::named("rfc9002").unwrap() };
        let link = link("rate=8mbit,rtt=80ms");
        let ideal = |application| ideal_application_fct(&link, &profile, application, Timestamp::ZERO).as_millis_f64();
        let transfer = |size| ideal_fct(&link, &profile, Bytes::new(size), Timestamp::ZERO).as_millis_f64();
        let size = Bytes::new(100_000);
        // A chunk takes 100 ms: the third begins at 400 ms, or at 200 ms without gaps.
        let chunks = |ms| ideal(Objects::Chunks { size, interval: Duration::from_millis(ms), count: 3 });
        assert!((chunks(200) - transfer(100_000) - 400.0).abs() < 1e-3);
        assert!((chunks(50) - transfer(300_000)).abs() < 1e-3);
        // Between chunks of 100 ms the link is idle for 100 ms each, or not at all.
        let idle = |ms| {
            let chunks = Objects::Chunks { size, interval: Duration::from_millis(ms), count: 3 };
            ideal_idle_time(&link, &profile, chunks, Timestamp::ZERO)
        };
        assert_eq!((idle(200), idle(50)), (Duration::from_millis(200), Duration::ZERO));
        // The first object of a wave arrives after 100 ms, and the request for the next wave reaches the sender 80 ms
        // later: two objects need longer than that, one does not.
        let page = |objects| ideal(Objects::Page { objects, size, waves: 3 });
        assert!((page(2) - transfer(600_000)).abs() < 1e-3);
        // The packet also crosses the receiver's link before the request leaves: 1 kB at 10 Gbit/s, 0.0008 ms each
        // time.
        assert!((page(1) - transfer(300_000) - 2.0 * 80.0).abs() < 0.003, "{}", page(1));
    }
}
