//! What the events of a qlog file show of the connection's path.
//!
//! Events are the standard ones of QUIC, so files of other servers will do: packets sent with their lengths, packets
//! received with the ranges that they acknowledge, and the RTTs of the recovery metrics.

use std::collections::BTreeMap;

use flowstart_core::delivery_rate::{DeliveryRate, Snapshot};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::path_shown::{PathShown, knows_path};
use crate::recording::Timed;
use crate::recording::event::{Metrics, Sent, Space, What};

/// Most packets that wait for their acknowledgement; beyond it the oldest ones are forgotten.
const MOST_WAITING: usize = 1 << 20;

/// A packet that waits for its acknowledgement.
struct Waiting {
    snapshot: Snapshot,
    bytes: Bytes,
}

/// What is known so far. Only packets with data of the application count.
#[derive(Default)]
pub(super) struct Tracker {
    rate: DeliveryRate,
    waiting: BTreeMap<u64, Waiting>,
    in_flight: Bytes,
    delivered: Bytes,
    highest_rate: Option<Rate>,
    /// As the file has it.
    min_rtt: Option<Duration>,
    /// As it is between packets and their acknowledgements, for files without one.
    sampled_rtt: Option<Duration>,
    longest_rtt: Option<Duration>,
    has_lost: bool,
    is_known: bool,
}

impl Tracker {
    /// An event of the file.
    pub(super) fn take(&mut self, event: &Timed) {
        let at = event.time;
        match &event.what {
            What::Sent(packet) => self.sent(at, packet),
            What::Received { space: Some(Space::Application), frames } => {
                for frame in frames {
                    let largest = frame.ranges.iter().map(|(_, last)| *last).max();
                    let sent = largest.and_then(|largest| self.waiting.get(&largest));
                    let rtt = sent.map(|sent| at.since(sent.snapshot.send_time)).filter(|rtt| *rtt > Duration::ZERO);
                    self.sampled_rtt = self.sampled_rtt.into_iter().chain(rtt).min();
                    frame.ranges.iter().for_each(|range| self.acknowledged(at, *range));
                }
                let sample = self.rate.take_sample(self.min_rtt());
                self.highest_rate = self.highest_rate.max(sample.and_then(|sample| sample.rate));
            }
            What::Lost { space: Some(Space::Application), number, probes_size } => self.lost(*number, *probes_size),
            What::Metrics(metrics) => self.measured(metrics),
            What::Launched(launched) => {
                self.is_known |= launched.sources.iter().any(|source| knows_path(&source.name, &source.verdict));
            }
            _ => {}
        }
    }

    fn sent(&mut self, at: Timestamp, packet: &Sent) {
        let is_followed = packet.space == Some(Space::Application) && packet.frames.count;
        let Some(number) = packet.number.filter(|_| is_followed) else { return };
        let bytes = Bytes::new(packet.bytes.unwrap_or(0));
        self.in_flight += bytes;
        let snapshot = self.rate.on_sent(at, bytes, self.in_flight);
        if let Some(again) = self.waiting.insert(number, Waiting { snapshot, bytes }) {
            self.in_flight = self.in_flight.saturating_sub(again.bytes);
        }
        if self.waiting.len() > MOST_WAITING
            && let Some((_, oldest)) = self.waiting.pop_first()
        {
            self.in_flight = self.in_flight.saturating_sub(oldest.bytes);
        }
    }

    fn acknowledged(&mut self, at: Timestamp, (first, last): (u64, u64)) {
        while let Some((&number, _)) = self.waiting.range(first..=last).next() {
            let Some(sent) = self.waiting.remove(&number) else { return };
            self.in_flight = self.in_flight.saturating_sub(sent.bytes);
            self.delivered += sent.bytes;
            self.rate.on_delivered(at, &sent.snapshot, number, sent.bytes);
        }
    }

    fn lost(&mut self, number: Option<u64>, probes_size: bool) {
        // The loss of a probe for the size of packets says nothing of the path's rate.
        self.has_lost |= !probes_size;
        if let Some(sent) = number.and_then(|number| self.waiting.remove(&number)) {
            self.in_flight = self.in_flight.saturating_sub(sent.bytes);
        }
    }

    fn measured(&mut self, metrics: &Metrics) {
        self.min_rtt = metrics.min_rtt.or(self.min_rtt);
        // Before the first sample stacks tell the RTT that they assume.
        if self.delivered > Bytes::ZERO {
            self.longest_rtt = self.longest_rtt.max(metrics.smoothed_rtt);
        }
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.or(self.sampled_rtt)
    }

    /// Bytes acknowledged so far.
    pub(super) fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// Whether a source knew the path.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// What all of it shows; `None` if no RTT was measured.
    pub(super) fn shown(&self) -> Option<PathShown> {
        // An RTT that nothing was acknowledged in is assumed.
        let min_rtt = self.min_rtt().filter(|_| self.delivered > Bytes::ZERO)?;
        Some(PathShown {
            min_rtt,
            highest_rate: self.highest_rate.filter(|rate| rate.bits_per_sec() > 0),
            queue: self.longest_rtt.unwrap_or(min_rtt).saturating_sub(min_rtt),
            delivered: self.delivered,
            has_lost: self.has_lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use super::super::log::{LogError, OfPath, parse_path};
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Result<OfPath, LogError> {
        parse_path(Cursor::new(text), Path::new("c.sqlog"))
    }

    fn event(time: f64, name: &str, data: &str) -> String {
        format!("\u{1e}{{\"time\":{time},\"name\":\"{name}\",\"data\":{data}}}\n")
    }

    /// A sender that keeps 100 packets of 1000 bytes in flight on a link of 1000 bytes per millisecond and 50 ms:
    /// 100 ms until an acknowledgement, half of it in the queue.
    fn filled(category: &str, prefix: &str) -> String {
        let mut text = String::from(prefix);
        let sent = |number: u64, time: u64| {
            let data = format!(
                "{{\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number},\"length\":1000}},\
                 \"frames\":[{{\"frame_type\":\"stream\"}}]}}"
            );
            event(time as f64, &format!("{category}:packet_sent"), &data)
        };
        (0..100).for_each(|number| text += &sent(number, 0));
        for number in 0..500 {
            let time = 51 + number;
            let data = format!(
                "{{\"header\":{{\"packet_type\":\"1RTT\"}},\"frames\":[{{\"frame_type\":\"ack\",\
                 \"acked_ranges\":[[0,{number}]]}}]}}"
            );
            text += &event(time as f64, &format!("{category}:packet_received"), &data);
            text += &sent(number + 100, time);
        }
        text
    }

    /// What a stack assumes.
    const ASSUMED: &str = "{\"min_rtt\":333.0,\"smoothed_rtt\":333.0}";
    const RTTS: &str = "{\"min_rtt\":51.0,\"smoothed_rtt\":51.0}";
    const LATER: &str = "{\"smoothed_rtt\":100.0}";

    fn with_rtts(log: &str, name: &str) -> String {
        let rtts = [event(0.0, name, ASSUMED), event(0.0, name, RTTS)].concat();
        format!("{rtts}{log}{}", event(600.0, name, LATER))
    }

    #[test]
    fn a_filled_link_shows_its_rate_and_its_queue() {
        let log = with_rtts(&filled("quic", ""), "quic:recovery_metrics_updated");
        let read_one = read(&log).unwrap();
        let shown = read_one.shown.unwrap();
        // 1000 bytes each millisecond.
        assert!((shown.highest_rate.unwrap().as_mbit() - 8.0).abs() < 0.1, "{shown:?}");
        assert_eq!((shown.min_rtt, shown.queue), (Duration::from_millis(51), Duration::from_millis(49)));
        assert_eq!((shown.delivered, read_one.size), (Bytes::new(500_000), Bytes::new(500_000)));
        assert!(shown.is_rate_of_link() && !read_one.is_known);
        // A file without the smallest RTT has packets and their acknowledgements.
        let without = read(&(filled("quic", "") + &event(600.0, "quic:recovery_metrics_updated", LATER))).unwrap();
        assert_eq!(without.shown.unwrap(), shown);
        // The names of earlier drafts.
        let earlier = with_rtts(&filled("transport", ""), "recovery:metrics_updated");
        assert_eq!(read(&earlier).unwrap(), read_one);
    }

    #[test]
    fn sources_of_the_path_make_it_known_and_answers_are_the_size() {
        let launch = |name: &str, verdict: &str| {
            let data = format!("{{\"cwnd_bytes\":1,\"sources\":[{{\"name\":\"{name}\",\"verdict\":\"{verdict}\"}}]}}");
            let mut text = event(0.0, "flowstart:connection", "{\"scheme\":\"x\"}");
            text += &event(0.0, "flowstart:launch", &data);
            text + &event(9.0, "flowstart:answered", "{\"payload\":70000,\"fct_ms\":9}")
        };
        let known = |name: &str, verdict: &str| {
            let one = read(&launch(name, verdict)).unwrap();
            assert_eq!((one.size, one.shown), (Bytes::new(70_000), None));
            one.is_known
        };
        assert!(known("hint", "used") && known("path-store", "unused") && !known("hint", "refused"));
        assert!(!known("interface", "used") && !known("application", "used") && !known("oracle", "missing"));
    }

    #[test]
    fn losses_are_seen_and_lost_packets_wait_no_longer() {
        let lost = "{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":599},\"trigger\":\"time_threshold\"}";
        let mut log = with_rtts(&filled("quic", ""), "quic:recovery_metrics_updated");
        log += &event(700.0, "quic:packet_lost", lost);
        let late = "{\"header\":{\"packet_type\":\"1RTT\"},\
                    \"frames\":[{\"frame_type\":\"ack\",\"acked_ranges\":[[599]]}]}";
        log += &event(701.0, "quic:packet_received", late);
        let shown = read(&log).unwrap().shown.unwrap();
        assert!(shown.has_lost && shown.delivered == Bytes::new(500_000), "{shown:?}");
    }

    #[test]
    fn a_connection_shows_the_same_path_in_every_spelling() {
        // Handshakes are older than data, so times of deliveries do not begin at 0.
        let log = with_rtts(&filled("quic", ""), "quic:recovery_metrics_updated");
        let expected = read(&log).unwrap();
        assert!(expected.shown.unwrap().is_rate_of_link());
        let events: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line.trim_start_matches('\u{1e}')).unwrap()).collect();
        let sequence = |header: &Value, events: &[Value]| {
            [header].into_iter().chain(events).map(|one| format!("\u{1e}{one}\n")).collect::<String>()
        };
        let timed = |of: &dyn Fn(usize, f64) -> f64| -> Vec<Value> {
            let at = |(place, event): (usize, &Value)| {
                let mut event = event.clone();
                event["time"] = of(place, event["time"].as_f64().unwrap()).into();
                event
            };
            events.iter().enumerate().map(at).collect()
        };
        let fields = |common: Value| json!({ "trace": { "common_fields": common } });
        let before =
            |place: usize| place.checked_sub(1).map_or(-1500.0, |place| events[place]["time"].as_f64().unwrap());
        let mut micros = timed(&|_, time| time * 1e3);
        for event in &mut micros {
            for field in ["min_rtt", "smoothed_rtt"] {
                if let Some(rtt) = event["data"].get(field).and_then(Value::as_f64) {
                    event["data"][field] = (rtt * 1e3).into();
                }
            }
        }
        let mut texts = events.clone();
        for event in &mut texts {
            if let Some(number) = event["data"]["header"].get("packet_number").cloned() {
                event["data"]["header"]["packet_number"] = number.to_string().into();
            }
        }
        let contained = json!({ "qlog_version": "0.3", "traces": [{ "events": events }] });
        for (spelling, text) in [
            ("microseconds", sequence(&fields(json!({ "time_units": "us" })), &micros)),
            // The first time is absolute.
            (
                "differences",
                sequence(&fields(json!({ "time_format": "delta" })), &timed(&|place, time| time - before(place))),
            ),
            ("wall clock", sequence(&fields(json!({})), &timed(&|_, time| 1.7e12 + time))),
            ("traces", contained.to_string()),
            ("texts", sequence(&fields(json!({})), &texts)),
        ] {
            assert_eq!(read(&text).unwrap(), expected, "{spelling}");
        }
    }

    #[test]
    fn hostile_files_are_refused_or_do_no_harm() {
        let header = "\"header\":{\"packet_type\":\"1RTT\"}";
        let received = |ranges: &str| {
            let data = format!("{{{header},\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":{ranges}}}]}}");
            read(&event(1.0, "quic:packet_received", &data))
        };
        // All numbers at once, and none.
        for ranges in [format!("[[0,{}]]", (1_u64 << 62) - 1), "[]".into()] {
            assert_eq!(received(&ranges).unwrap().shown, None);
        }
        for ranges in [format!("[[0,{}]]", u64::MAX), "[[9,0]]".into(), "[[]]".into()] {
            let told = received(&ranges).unwrap_err().to_string();
            assert!(told.contains("c.sqlog:1:2: data.frames.acked_ranges has ["), "{told}");
        }
        let back = event(5000.0, "quic:packet_sent", "{}") + &event(-1.0, "quic:packet_sent", "{}");
        let told = read(&back).unwrap_err().to_string();
        assert!(told.starts_with("c.sqlog:2:2: time is -1, which is -5001.000 ms after"), "{told}");
        let client = "{\"trace\":{\"vantage_point\":{\"type\":\"client\"},\"common_fields\":{\"group_id\":\"a\"}}}\n";
        assert!(read(client).unwrap_err().to_string().contains("the file of a client"));
        let long = format!("{{\"a\":\"{}", "x".repeat((1 << 20) + 10));
        assert!(read(&long).unwrap_err().to_string().contains("longer than 1048576"));
        // Neither with a line's end nor without one.
        for text in ["bad", "bad\n"] {
            assert!(read(text).unwrap_err().to_string().contains("c.sqlog:1:1: found `b`; allowed is `{`"));
        }
        for text in ["", "{}\n", "{\"trace\":{}}\n{\"time\":1,"] {
            assert!(read(text).unwrap_err().to_string().contains("no event; "), "{text}");
        }
        let several =
            "{\"traces\":[{\"events\":[{\"time\":1,\"name\":\"a:b\"}]},{\"events\":[{\"time\":1,\"name\":\"a:b\"}]}]}";
        assert!(read(several).unwrap_err().to_string().contains("several traces have events"));
    }
}
