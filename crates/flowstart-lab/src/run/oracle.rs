//! A queue discipline with perfect knowledge: it signals when the flows in slow start have just filled the link.
//!
//! The oracle knows every flow's round-trip time, initial window and growth, and the rate that the background leaves.
//! It counts the departures of a flow, which determine the window at the arrival of a signal on the next packet. In
//! slow start each departing packet is acknowledged, and each acknowledgement adds a segment. After `D` departures the
//! window will therefore be `IW + (g - 1) D`, with `g` 2, or 1.5 with delayed acknowledgements. As soon as the sum of
//! these windows over their round-trip times reaches the available rate, the oracle signals each flow with the flow's
//! next departing packet: it marks the packet, or drops it if it is not ECN-capable. Each flow gets one signal in a
//! transient. Otherwise the queue has no limit and no law. After the transient the oracle can continue as `CoDel` with
//! the longest RTT as its interval ([`Oracle::then_codel`]). Much longer transfers need this, because congestion
//! avoidance would fill the queue again; cells of short transfers do without.
//!
//! So slow start ends with the windows at C x RTT, one RTT after the signal and not too late. This is no lower bound of
//! the queue's delay: bursts of an unpaced window wait, and after a signal half a window earlier fewer of them would
//! wait.
//!
//! Limits: the oracle is exact if slow start uses its window fully, no acknowledgements are lost, the flows start
//! together with one packet size, and the background has a constant rate. A flow that begins after the link is full is
//! signalled with its first packet. Round-trip times are propagation delays. They omit serialization, which is 5 % at a
//! bandwidth-delay product of 20 packets.

use flowstart_core::aqm::codel;
use flowstart_core::aqm::fifo::Fifo;
use flowstart_core::aqm::{QueueContext, QueueDiscipline, QueueLimit, QueueState, QueueStats, QueuedPacket};
use flowstart_core::startup::{Increase, StartupConfig};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use crate::study::plan::{Cell, Plan};

/// The oracle's knowledge.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Flows with lower numbers are background.
    pub first_flow: u32,
    /// Round-trip propagation delay of each flow of a transient. Flow `first_flow + i` is number `i % rtts.len()` of
    /// transient `i / rtts.len()`.
    pub rtts: Vec<Duration>,
    /// Whether the time from a flow's handshake to its first data replaces its RTT, for paths on which acknowledgements
    /// wait.
    pub measured: bool,
    /// Initial window in packets.
    pub initial_window: u64,
    /// Growth factor of windows in an RTT.
    pub growth: f64,
    /// Rate on the wire that the background leaves.
    pub available: Rate,
    /// Smaller packets belong to handshakes, not to a window.
    pub full_packet: Bytes,
}

/// Its knowledge of a flow of the present transient.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    departed: u64,
    signalled: bool,
    /// The time when its handshake left, and its RTT if measured.
    handshake: Option<Timestamp>,
    rtt: Option<Duration>,
}

/// The oracle.
#[derive(Clone, Debug)]
pub struct Oracle {
    truth: Truth,
    queue: Fifo,
    senders: Vec<Sender>,
    /// Number of the present transient.
    transient: u32,
    /// Sum over the flows that have begun of window over RTT, in packets per second.
    load: f64,
    full: bool,
    /// The law that follows when every flow has been signalled.
    codel: Option<(codel::Config, codel::Vars)>,
    stats: QueueStats,
}

impl Oracle {
    /// An oracle that knows `truth`.
    pub fn new(truth: Truth) -> Self {
        let senders = vec![Sender::default(); truth.rtts.len()];
        let queue = Fifo::new(QueueLimit::default());
        Self { truth, queue, senders, transient: 0, load: 0.0, full: false, codel: None, stats: QueueStats::default() }
    }

    /// The same, followed by `CoDel` when all flows of a transient have been signalled.
    pub fn then_codel(mut self) -> Self {
        let interval = self.truth.rtts.iter().copied().max().unwrap_or(Duration::ZERO);
        let config = codel::Config { interval: interval.max(Duration::from_micros(1)), ..codel::Config::default() };
        self.codel = Some((config, codel::Vars::default()));
        self
    }

    /// The next packet, before anything is signalled.
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let Self { queue, codel, senders, stats, .. } = self;
        match codel {
            Some((config, vars)) if senders.iter().all(|sender| sender.signalled) => {
                let take = || queue.pop().map(|packet| (packet, queue.bytes()));
                vars.dequeue(config, context.now, stats, context.dropped, take)
            }
            _ => queue.pop(),
        }
    }

    /// A packet leaves. Returns whether it is to carry the signal of its flow.
    fn signals(&mut self, now: Timestamp, packet: &QueuedPacket) -> bool {
        let count = self.senders.len() as u32;
        let handshake = u64::from(packet.size) < self.truth.full_packet.get();
        if packet.flow < self.truth.first_flow || count == 0 || (handshake && !self.truth.measured) {
            return false;
        }
        let number = packet.flow - self.truth.first_flow;
        let (transient, place) = (number / count, (number % count) as usize);
        // Late packets of an earlier transient belong to no window.
        if transient < self.transient {
            return false;
        }
        if transient > self.transient {
            self.transient = transient;
            self.senders.fill(Sender::default());
            self.load = 0.0;
            self.full = false;
        }
        let sender = &mut self.senders[place];
        if handshake {
            sender.handshake = Some(now);
            return false;
        }
        if let Some(left) = sender.handshake.take() {
            sender.rtt = Some(now.since(left));
        }
        let rtt = sender.rtt.unwrap_or(self.truth.rtts[place]).as_secs();
        if sender.departed == 0 {
            self.load += self.truth.initial_window as f64 / rtt;
        }
        sender.departed += 1;
        self.load += (self.truth.growth - 1.0) / rtt;
        let packet_bits = 8.0 * f64::from(packet.size);
        self.full |= self.load * packet_bits >= self.truth.available.bits_per_sec() as f64;
        let signals = self.full && !sender.signalled;
        sender.signalled |= signals;
        signals
    }
}

impl QueueDiscipline for Oracle {
    fn enqueue(&mut self, packet: QueuedPacket, _context: &mut QueueContext<'_>) {
        self.queue.push(packet);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        loop {
            let mut packet = self.pop(context)?;
            if !self.signals(context.now, &packet) {
                return Some(packet);
            }
            if packet.mark() {
                self.stats.marked += 1;
                return Some(packet);
            }
            self.stats.dropped_early += 1;
            context.dropped.push(packet);
        }
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        false
    }
}

/// Lets the oracle manage the bottleneck's queue, which is empty because there is no other traffic.
pub(super) fn tell(plan: &Plan, cell: &Cell, world: &mut World, profile: &Profile, rtts: Vec<Duration>) {
    let (Some(monitor), StartupConfig::SlowStart(scheme)) =
        (&world.network.monitor, plan.schemes[cell.scheme].on(cell.transport))
    else {
        return;
    };
    let every = profile.ack.every.max(1);
    let truth = Truth {
        first_flow: world.flow_count() as u32,
        rtts,
        measured: false,
        initial_window: scheme.iw.map_or(profile.initial_window, u64::from),
        growth: if profile.increase == Increase::Acknowledgements { 1.0 + 1.0 / f64::from(every) } else { 2.0 },
        available: plan.links[cell.link].rate,
        full_packet: Bytes::new(u64::from(profile.data_wire_size(profile.payload))),
    };
    let link = monitor.link;
    world.network.set_queue(link, QueueState::Custom(Box::new(Oracle::new(truth).then_codel())));
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::EcnCodepoint;
    use flowstart_core::rng::Substream;

    use super::*;

    /// The places in the order of departure at which flows are signalled: each entry of `flows` is a packet.
    fn signals(truth: Truth, flows: &[u32], ecn: EcnCodepoint) -> Vec<usize> {
        let mut oracle = Oracle::new(truth);
        let mut rng = Substream::new(0, "queue", 0);
        let mut dropped = Vec::new();
        let mut signals = Vec::new();
        for (place, &flow) in flows.iter().enumerate() {
            let now = Timestamp::ZERO;
            let mut context = QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped };
            oracle.enqueue(QueuedPacket { handle: 0, size: 1500, flow, ecn, enqueued_at: now }, &mut context);
            let marked = oracle.dequeue(&mut context).is_some_and(|packet| packet.ecn == EcnCodepoint::Ce);
            if marked || !std::mem::take(&mut dropped).is_empty() {
                signals.push(place);
            }
        }
        signals
    }

    /// 12 Mbit/s are 1000 packets of 1500 bytes in a second.
    fn truth(rtts: &[u64], growth: f64) -> Truth {
        Truth {
            first_flow: 1,
            rtts: rtts.iter().map(|rtt| Duration::from_millis(*rtt)).collect(),
            measured: false,
            initial_window: 10,
            growth,
            available: Rate::from_mbit(12),
            full_packet: Bytes::new(1500),
        }
    }

    #[test]
    fn the_signal_leaves_with_the_packet_that_lets_the_window_fill_the_link() {
        // 12 Mbit/s x 100 ms = 100 packets = 10 + 90 departures; the 90th has place 89. At growth 1.5: 180 departures.
        for ecn in [EcnCodepoint::Ect0, EcnCodepoint::NotEct] {
            assert_eq!(signals(truth(&[100], 2.0), &[1; 300], ecn), [89]);
        }
        assert_eq!(signals(truth(&[100], 1.5), &[1; 300], EcnCodepoint::Ect0), [179]);
    }

    #[test]
    fn codel_follows_when_all_flows_have_been_signalled() {
        let mut oracle = Oracle::new(truth(&[100], 2.0)).then_codel();
        let mut rng = Substream::new(0, "queue", 0);
        let mut dropped = Vec::new();
        let mut marks = Vec::new();
        for place in 0..400 {
            // Every packet has waited for 20 ms, four times the target; one leaves in a millisecond.
            let now = Timestamp::ZERO + Duration::from_millis(20 + place);
            let mut context = QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped };
            let enqueued_at = Timestamp::ZERO + Duration::from_millis(place);
            let packet = QueuedPacket { handle: 0, size: 1500, flow: 1, ecn: EcnCodepoint::Ect0, enqueued_at };
            [packet; 2].into_iter().for_each(|packet| oracle.enqueue(packet, &mut context));
            if oracle.dequeue(&mut context).is_some_and(|packet| packet.ecn == EcnCodepoint::Ce) {
                marks.push(place);
            }
        }
        // The oracle's signal is the 90th departure. CoDel observes from the next one on, and marks after an interval
        // of 100 ms.
        assert_eq!(&marks[..2], &[89, 190]);
    }

    #[test]
    fn every_flow_is_signalled_once_in_a_transient_and_the_background_never() {
        // RTTs of 100 and 50 ms in turn: k departures of each make (10 + k) / 0.1 + (10 + k) / 0.05 packets per second,
        // 1000 of them with k = 23.3. After 24 of flow 1 and 23 of flow 2: 340 + 660 = 1000. So flow 1 is signalled
        // with place 46 and flow 2 with the next packet. Flows 3 and 4 are the next transient.
        let one: Vec<u32> = (0..100).map(|place| 1 + place % 2).collect();
        assert_eq!(signals(truth(&[100, 50], 2.0), &one, EcnCodepoint::Ect0), [46, 47]);
        let next: Vec<u32> = one.iter().map(|flow| flow + 2).collect();
        let both = [one, vec![0; 500], next].concat();
        assert_eq!(signals(truth(&[100, 50], 2.0), &both, EcnCodepoint::Ect0), [46, 47, 646, 647]);
    }
}
