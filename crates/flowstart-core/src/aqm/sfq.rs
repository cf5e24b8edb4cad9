//! SFQ: flows are hashed to queues that send in turn, and a full buffer takes packets from the longest queue.
//!
//! Reference: `McKenney`, "Stochastic Fairness Queueing", INFOCOM 1990, and Linux (`sch_sfq`), which follows it. Flows
//! are hashed to a fixed number of queues, each of which sends a packet in its turn. If there is no room, an arriving
//! packet takes the place of the last packet in the longest queue. The hash changes from time to time, so flows do not
//! collide for ever.
//!
//! Checked line by line against Linux's `sch_sfq.c`. ns-2.35's `queue/sfq.cc` is another algorithm: it drops arriving
//! packets by fixed shares.
//!
//! Differences from the reference: a change of the hash moves the waiting packets, queue by queue, so those of a flow
//! stay in order, as in Linux; in the paper they do not move. `quantum` shares by bytes instead of packets, which Linux
//! always does, with a full packet. The link's own buffer is the limit (Linux: 127 packets of 128 flows). If all queues
//! have one packet, the queue that got its packet last loses it; in Linux it is the next to send. Linux's RED for each
//! queue and its drops from the head are left out.
//!
//! Status: worked examples; not compared with the paper's text; properties of the queues.

use alloc::vec::Vec;

use super::flow_queueing::{FlowHash, Lengths, PacketQueues, RoundRobin};
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "flows hashed to queues that send in turn; the longest queue pays for the room";
/// The document that defines it.
pub const REFERENCE: &str = "McKenney, INFOCOM 1990";

/// Parameters of SFQ.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Queues, 1 to 65536. Linux: 1024 values of its hash.
    pub flows: u32,
    /// Bytes that a queue may send in its turn, 0B or 256B to 1MB. Default 0: a packet, as the paper.
    pub quantum: Bytes,
    /// Time after which the hash changes, 0s or 1ms to 1000s. Default 0: never, as Linux; the paper leaves it open.
    pub perturb: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { flows: 1024, quantum: Bytes::ZERO, perturb: Duration::ZERO }
    }
}

/// Refuses a quantum that is neither a packet (0) nor in range.
pub(super) fn validate_quantum(quantum: Bytes) -> Result<(), ConfigError> {
    let range = Bytes::new(256)..=Bytes::new(1_000_000);
    if quantum == Bytes::ZERO || range.contains(&quantum) {
        return Ok(());
    }
    Err(ConfigError::new("quantum", quantum, "0B, which is a packet, or 256B to 1MB"))
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("flows", self.flows, 1..=65_536)?;
        validate_quantum(self.quantum)?;
        let range = Duration::from_millis(1)..=Duration::from_millis(1_000_000);
        if self.perturb == Duration::ZERO || range.contains(&self.perturb) {
            return Ok(());
        }
        Err(ConfigError::new("perturb", self.perturb, "0s, which is never, or 1ms to 1000s"))
    }
}

/// The queues.
#[derive(Clone, Debug)]
pub struct Sfq {
    config: Config,
    limit: QueueLimit,
    hash: FlowHash,
    queues: PacketQueues,
    turns: RoundRobin,
    lengths: Lengths,
    /// Packets on their way between queues, none between two calls. It has room for all before they move.
    moving: Vec<QueuedPacket>,
    /// When the hash changes; `None` before the first packet.
    perturb_at: Option<Timestamp>,
    stats: QueueStats,
}

impl Sfq {
    /// Empty queues.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            limit: link.limit,
            hash: FlowHash::default(),
            queues: PacketQueues::new(config.flows),
            turns: RoundRobin::new(config.flows, config.quantum),
            lengths: Lengths::new(config.flows),
            moving: Vec::new(),
            perturb_at: None,
            stats: QueueStats::default(),
            config,
        }
    }

    fn push(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let queue = self.hash.queue_of(packet.flow, self.config.flows, context);
        self.queues.push(queue, packet);
        self.lengths.change(queue, &self.queues);
        self.turns.activate(queue, false);
    }

    /// Another hash, and every packet where it belongs now. Those of a flow were in one queue and stay in order.
    fn perturb(&mut self, context: &mut QueueContext<'_>) {
        self.hash.perturb(context.rng);
        self.turns.clear();
        self.lengths.clear();
        let mut moving = core::mem::take(&mut self.moving);
        for queue in 0..self.queues.queues() {
            moving.extend(core::iter::from_fn(|| self.queues.pop(queue)));
        }
        moving.drain(..).for_each(|packet| self.push(packet, context));
        self.moving = moving;
    }
}

impl QueueDiscipline for Sfq {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.config.perturb > Duration::ZERO {
            let due = self.perturb_at.is_some_and(|time| context.now >= time);
            if due {
                self.perturb(context);
            }
            if due || self.perturb_at.is_none() {
                self.perturb_at = Some(context.now + self.config.perturb);
            }
        }
        self.push(packet, context);
        if self.config.perturb > Duration::ZERO && self.moving.capacity() < self.queues.capacity() {
            self.moving.reserve(self.queues.capacity());
        }
        // The arriving packet may be the one that goes, and is counted already.
        while let Some(longest) = self.lengths.longest()
            && !self.limit.admits(0, self.queues.len() as u64 - 1, self.queues.bytes(), context.in_service)
        {
            context.dropped.extend(self.queues.pop_last(longest));
            self.lengths.change(longest, &self.queues);
            self.stats.dropped_full += 1;
        }
    }

    fn dequeue(&mut self, _context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        while let Some(queue) = self.turns.whose() {
            let Some(packet) = self.queues.pop(queue) else {
                self.turns.emptied(queue, false);
                continue;
            };
            self.lengths.change(queue, &self.queues);
            // An empty queue loses its turn, and begins behind all others.
            match self.queues.len_of(queue) {
                0 => self.turns.emptied(queue, false),
                _ => self.turns.sent(queue, packet.size),
            }
            return Some(packet);
        }
        None
    }

    fn len(&self) -> usize {
        self.queues.len()
    }

    fn bytes(&self) -> Bytes {
        self.queues.bytes()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::EcnCodepoint;
    use crate::rng::Substream;

    /// Enqueues packets of 1000 bytes of these flows, numbered, at these times in ms, and then sends all that wait.
    fn run(config: Config, packets: Option<u64>, arrivals: &[(u32, u64)]) -> (Vec<u32>, Vec<u32>) {
        let mut queue = Sfq::new(config, QueueLimit { packets, ..QueueLimit::default() }.into());
        let (mut rng, mut dropped) = (Substream::new(3, "queue", 0), Vec::new());
        let mut end = Timestamp::ZERO;
        for (handle, &(flow, ms)) in arrivals.iter().enumerate() {
            end = Timestamp::ZERO + Duration::from_millis(ms);
            let packet =
                QueuedPacket { handle: handle as u32, size: 1000, flow, ecn: EcnCodepoint::NotEct, enqueued_at: end };
            let mut context = QueueContext { now: end, in_service: None, rng: &mut rng, dropped: &mut dropped };
            queue.enqueue(packet, &mut context);
        }
        let mut sent = Vec::new();
        let mut lost = Vec::new();
        let mut context = QueueContext { now: end, in_service: None, rng: &mut rng, dropped: &mut lost };
        while let Some(packet) = queue.dequeue(&mut context) {
            sent.push(packet.handle);
        }
        (sent, dropped.iter().map(|packet| packet.handle).collect())
    }

    #[test]
    fn flows_send_in_turn_and_the_longest_queue_pays_from_its_end() {
        // Six packets fit. Flow 1 has five when the second of flow 2 and that of flow 3 come: it gives the last ones
        // away.
        let arrivals = [1, 1, 1, 1, 1, 2, 2, 3].map(|flow| (flow, 0));
        let (sent, dropped) = run(Config::default(), Some(6), &arrivals);
        assert_eq!((sent, dropped), (alloc::vec![0, 5, 7, 1, 6, 2], alloc::vec![4, 3]));
    }

    #[test]
    fn a_packet_of_the_longest_queue_is_dropped_itself() {
        let (sent, dropped) = run(Config::default(), Some(2), &[(1, 0), (1, 0), (1, 0)]);
        assert_eq!((sent, dropped), (alloc::vec![0, 1], alloc::vec![2]));
    }

    #[test]
    fn a_queue_that_became_empty_begins_behind_the_others() {
        let mut queue = Sfq::new(Config::default(), QueueLimit::default().into());
        let (mut rng, mut dropped) = (Substream::new(3, "queue", 0), Vec::new());
        let mut context = QueueContext { now: Timestamp::ZERO, in_service: None, rng: &mut rng, dropped: &mut dropped };
        let mut handles = [(1, 10), (2, 20), (2, 21), (2, 22)].to_vec();
        let mut sent = Vec::new();
        for _ in 0..3 {
            for (flow, handle) in handles.drain(..) {
                let (ecn, enqueued_at) = (EcnCodepoint::NotEct, Timestamp::ZERO);
                queue.enqueue(QueuedPacket { handle, size: 1000, flow, ecn, enqueued_at }, &mut context);
            }
            sent.extend(queue.dequeue(&mut context).map(|packet| packet.handle));
            // Flow 1 has sent its only packet; its next one comes while flow 3 waits already.
            handles = if sent == [10] { [(3, 30), (1, 11)].to_vec() } else { Vec::new() };
        }
        sent.extend(core::iter::from_fn(|| queue.dequeue(&mut context)).map(|packet| packet.handle));
        assert_eq!(sent, [10, 20, 30, 11, 21, 22]);
    }

    #[test]
    fn another_hash_keeps_the_order_of_a_flow() {
        let config = Config { flows: 4, perturb: Duration::from_millis(10), ..Config::default() };
        let arrivals: Vec<(u32, u64)> = (0..40).map(|index| (index % 4, u64::from(index) * 3)).collect();
        let (sent, dropped) = run(config, None, &arrivals);
        assert_eq!((sent.len(), dropped.len()), (40, 0));
        for flow in 0..4 {
            let of_flow: Vec<u32> = sent.iter().copied().filter(|handle| handle % 4 == flow).collect();
            assert!(of_flow.is_sorted(), "{of_flow:?}");
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { flows: 65_537, ..Config::default() }, "flows"),
            (Config { quantum: Bytes::new(1), ..Config::default() }, "quantum"),
            (Config { perturb: Duration::from_nanos(1), ..Config::default() }, "perturb"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
