//! The packets of one run, each from its sender to where it ends: what an animation of a start shows.

use std::collections::{BTreeMap, VecDeque};

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::observe::trace::{Entry, Event, HostPacket, Observer, Trace};
use flowstart_sim::packet::{Body, Direction};
use serde::Serialize;

use crate::run::newcomers::outcomes;
use crate::run::repetition::told;
use crate::study::plan::{Cell, Plan};

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carries {
    /// A part of the handshake.
    Handshake,
    /// Payload.
    Data,
    /// Payload that was sent before.
    Again,
    /// An acknowledgement.
    Ack,
}

/// A packet of the measured flow. Times are milliseconds from the flow's start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packet {
    /// What it carries.
    pub carries: Carries,
    /// Whether it goes from the data receiver to the data sender.
    pub returns: bool,
    /// First byte of the stream, of payload; of an acknowledgement the position that it tells.
    pub position: u64,
    /// When it left its host.
    pub left: f64,
    /// When it had left the bottleneck, if it went through it.
    pub departed: Option<f64>,
    /// When it reached the other host; absent if it was lost, or was under way at the end.
    pub reached: Option<f64>,
    /// When a queue, a policer or a wire lost it.
    pub dropped: Option<f64>,
}

/// What changed at the sender or at the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// Milliseconds from the flow's start.
    pub time: f64,
    /// Packets waiting at the bottleneck, of all flows.
    pub queue: u32,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Bytes in flight.
    pub in_flight: u64,
}

/// The packets of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Packets {
    /// The packets, in the order in which they left.
    pub packets: Vec<Packet>,
    /// The queue and the window at each change.
    pub steps: Vec<Step>,
    /// Whether there were more than were asked for.
    pub goes_on: bool,
    /// When the flow was complete, in milliseconds from its start; absent if it did not get there.
    pub completed: Option<f64>,
}

/// Runs one repetition of a cell and keeps its first `most` packets; the run ends with them.
pub fn packets(plan: &Plan, cell: &Cell, rep: u32, most: usize) -> Packets {
    let mut finished = told(plan, cell, rep, None, &|world, start| {
        let bottleneck = world.network.monitor.as_ref().map_or(u32::MAX, |monitor| monitor.link);
        Trace::told_to(Collector::new(start, bottleneck, most))
    });
    let outcomes = outcomes(plan, cell, &mut finished);
    let collector = finished.world.network.trace.take().and_then(|trace| trace.into_observer::<Collector>());
    let Some(Collector { mut seen, .. }) = collector else { return Packets::default() };
    let record = outcomes.first().map(|outcome| &outcome.record);
    let fct = record.and_then(|record| Some(record.completed?.since(record.started?).as_millis_f64()));
    seen.completed = fct.filter(|_| !seen.goes_on);
    seen
}

/// Packets that are alike, and under way: direction, kind and position.
type Alike = (bool, u8, u64);

/// Collects packets during the run.
#[derive(Debug)]
struct Collector {
    start: Timestamp,
    /// The bottleneck's number.
    bottleneck: u32,
    most: usize,
    /// Number of the measured flow.
    flow: u32,
    /// Places of packets that are under way, the earliest first.
    under_way: BTreeMap<Alike, VecDeque<usize>>,
    /// Places of packets that have not left the bottleneck, the earliest first, by the position of their payload.
    waiting: BTreeMap<Option<u64>, VecDeque<usize>>,
    /// The next payload is sent again.
    is_again: bool,
    latest: Step,
    seen: Packets,
}

impl Collector {
    fn new(start: Timestamp, bottleneck: u32, most: usize) -> Self {
        Self {
            start,
            bottleneck,
            most,
            flow: u32::MAX,
            under_way: BTreeMap::new(),
            waiting: BTreeMap::new(),
            is_again: false,
            latest: Step::default(),
            seen: Packets::default(),
        }
    }

    fn ms(&self, time: Timestamp) -> f64 {
        (time.as_secs() - self.start.as_secs()) * 1000.0
    }

    fn step(&mut self, time: Timestamp, change: impl FnOnce(&mut Step)) {
        let mut step = Step { time: self.ms(time), ..self.latest };
        change(&mut step);
        let is_news =
            (step.queue, step.cwnd, step.in_flight) != (self.latest.queue, self.latest.cwnd, self.latest.in_flight);
        if is_news {
            // Before the flow's start the queue is only what it finds.
            if step.time >= 0.0 {
                self.seen.steps.push(step);
            }
            self.latest = step;
        }
    }

    /// What a packet is like, and what it carries.
    fn like(&self, packet: &HostPacket) -> (Alike, Carries) {
        let returns = packet.direction == Direction::Return;
        match packet.body {
            Body::Handshake { flight, part, .. } => {
                ((returns, 0, u64::from(flight) << 8 | u64::from(part)), Carries::Handshake)
            }
            Body::Data { offset, .. } => {
                ((returns, 1, offset), if self.is_again { Carries::Again } else { Carries::Data })
            }
            Body::Acknowledgement(acknowledgement) => ((returns, 2, acknowledgement.position), Carries::Ack),
        }
    }
}

impl Observer for Collector {
    fn on_measured(&mut self, flows: &[(u32, Duration)]) {
        self.flow = flows.first().map_or(u32::MAX, |(flow, _)| *flow);
    }

    fn on_packet(&mut self, packet: &HostPacket, _: &[(u64, u64)]) {
        if packet.flow != self.flow || self.seen.goes_on {
            return;
        }
        let time = self.ms(packet.time);
        let (alike, carries) = self.like(packet);
        if packet.reached {
            if let Some(place) = self.under_way.get_mut(&alike).and_then(VecDeque::pop_front) {
                self.seen.packets[place].reached = Some(time);
            }
            return;
        }
        if self.seen.packets.len() == self.most {
            self.seen.goes_on = true;
            return;
        }
        let (returns, _, position) = alike;
        let place = self.seen.packets.len();
        self.under_way.entry(alike).or_default().push_back(place);
        if !returns {
            self.waiting.entry(packet.body.offset()).or_default().push_back(place);
        }
        self.seen.packets.push(Packet {
            carries,
            returns,
            position,
            left: time,
            departed: None,
            reached: None,
            dropped: None,
        });
        self.is_again &= carries != Carries::Again;
    }

    fn on_event(&mut self, entry: &Entry) {
        let is_own = entry.flow == self.flow;
        match entry.event {
            Event::Queue { link, packets, .. } if link == self.bottleneck => {
                self.step(entry.time, |step| step.queue = packets);
            }
            Event::Window { cwnd, in_flight, .. } if is_own => {
                self.step(entry.time, |step| (step.cwnd, step.in_flight) = (cwnd.get(), in_flight.get()));
            }
            Event::Sent { retransmission, .. } if is_own => self.is_again = retransmission,
            Event::Departed { link, offset, .. } if is_own && link == self.bottleneck => {
                if let Some(place) = self.waiting.get_mut(&offset).and_then(VecDeque::pop_front) {
                    self.seen.packets[place].departed = Some(self.ms(entry.time));
                }
            }
            Event::Dropped { offset, .. } if is_own => {
                // What was lost behind the bottleneck has left it.
                let at_queue = self.waiting.get_mut(&offset).and_then(VecDeque::pop_front);
                let alike = offset.map(|offset| (false, 1, offset));
                let under_way = alike.and_then(|alike| self.under_way.get_mut(&alike));
                let place = match (at_queue, under_way) {
                    (Some(place), Some(under_way)) => {
                        under_way.retain(|other| *other != place);
                        Some(place)
                    }
                    (Some(place), None) => Some(place),
                    (None, Some(under_way)) => under_way.pop_front(),
                    (None, None) => None,
                };
                if let Some(place) = place {
                    self.seen.packets[place].dropped = Some(self.ms(entry.time));
                }
            }
            _ => {}
        }
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.seen.goes_on
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    fn of(more: &str, most: usize) -> Packets {
        let text = format!("link = [\"dsl-fast\"]\nscheme = [\"slow-start\"]\n{more}");
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        packets(&plan, &plan.cells()[0], 0, most)
    }

    #[test]
    fn every_packet_of_a_short_transfer_is_followed_from_host_to_host() {
        let seen = of("size = [\"70KB\"]", 10_000);
        let of_kind = |kind| seen.packets.iter().filter(move |packet| packet.carries == kind);
        // 70 KB are 53 packets of a QUIC payload and more, and nothing is lost.
        assert!(of_kind(Carries::Data).count() >= 50, "{}", seen.packets.len());
        assert_eq!(of_kind(Carries::Again).count(), 0);
        let last = seen.completed.unwrap();
        for packet in seen.packets.iter().filter(|packet| packet.left < last - 100.0) {
            let reached = packet.reached.unwrap();
            // 25 ms one way, and the queue.
            assert!((reached - packet.left) >= 25.0 && packet.dropped.is_none(), "{packet:?}");
            match (packet.returns, packet.departed) {
                (false, Some(departed)) => assert!(packet.left <= departed && departed <= reached, "{packet:?}"),
                (returns, departed) => assert!(returns && departed.is_none(), "{packet:?}"),
            }
        }
        assert!(seen.packets.is_sorted_by(|one, next| one.left <= next.left));
        let most = |of: fn(&Step) -> u64| seen.steps.iter().map(of).max().unwrap_or(0);
        let (queue, in_flight) = (most(|step| step.queue.into()), most(|step| step.in_flight));
        assert!(queue > 5 && in_flight > 12_000, "{queue} {in_flight}");
    }

    #[test]
    fn what_the_queue_drops_is_sent_again() {
        let seen = of("size = [\"2MB\"]", 20_000);
        let dropped = seen.packets.iter().filter(|packet| packet.dropped.is_some()).count();
        let again = seen.packets.iter().filter(|packet| packet.carries == Carries::Again).count();
        assert!(dropped > 10 && again >= dropped, "{dropped} {again}");
        assert!(seen.packets.iter().all(|packet| packet.dropped.is_none() || packet.reached.is_none()));
    }

    #[test]
    fn a_run_ends_with_the_packets_that_were_asked_for() {
        let seen = of("size = [\"1GB\"]", 500);
        assert_eq!((seen.packets.len(), seen.goes_on, seen.completed), (500, true, None));
    }
}
