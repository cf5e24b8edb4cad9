//! `FQ-PIE`: a queue for each flow, served in turn, and PIE in each of them.
//!
//! Reference: Linux (`sch_fq_pie`), after Ramakrishnan et al., "FQ-PIE Queue Discipline in the Linux Kernel", LCN 2019;
//! the law is that of RFC 8033. Flows are hashed to queues that send as in `fq-codel`. Each queue has a probability of
//! its own, which is corrected every `t_update` and applies to packets that arrive in this queue. When there is no room
//! the arriving packet is dropped.
//!
//! Checked line by line against Linux's `sch_fq_pie.c`. ns-3's `fq-pie-queue-disc.cc` differs: without room it takes
//! packets from the fattest queue.
//!
//! Differences from the reference: the law is the RFC's, not Linux's (`pie.rs` lists the differences), and it marks, as
//! in ns-3; Linux marks only on request. The smallest of the link's own buffer, `limit` and `memory` is the limit;
//! Linux counts packets beyond its memory and admits them. Laws at rest are not updated, which makes no difference to
//! packets. The delay comes from timestamps.
//!
//! Status: worked examples; properties of the queues.

use alloc::vec;
use alloc::vec::Vec;

use super::flow_queueing::{FlowHash, PacketQueues, RoundRobin};
use super::grid::next_on_grid;
use super::pie;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "a queue for each flow, served in turn, and PIE in each";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 8033; Linux sch_fq_pie";

/// Parameters of `FQ-PIE`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Queues, 1 to 65536. Linux: 1024.
    pub flows: u32,
    /// Bytes that a queue may send in its turn, 256B to 1MB. Linux: 1514, a full packet of Ethernet.
    pub quantum: Bytes,
    /// Packets in all queues, 1 to 1000000, besides the link's buffer. Linux: 10240.
    pub limit: u64,
    /// Bytes in all queues, 1KB to 1GB, besides the link's buffer. Linux: 32 MiB.
    pub memory: Bytes,
    /// As `pie`: 15 ms.
    pub qdelay_ref: Duration,
    /// As `pie`: 15 ms.
    pub t_update: Duration,
    /// As `pie`: 0.125 Hz.
    pub alpha: f64,
    /// As `pie`: 1.25 Hz.
    pub beta: f64,
    /// As `pie`: 150 ms.
    pub max_burst: Duration,
    /// As `pie`: 0.1.
    pub mark_ecnth: f64,
    /// As `pie`: off.
    pub derandomization: bool,
    /// As `pie`: off.
    pub cap_drop_adjustment: bool,
}

impl Default for Config {
    fn default() -> Self {
        let law = pie::Config::default();
        Self {
            flows: 1024,
            quantum: Bytes::new(1514),
            limit: 10_240,
            memory: Bytes::new(32 << 20),
            qdelay_ref: law.qdelay_ref,
            t_update: law.t_update,
            alpha: law.alpha,
            beta: law.beta,
            max_burst: law.max_burst,
            mark_ecnth: law.mark_ecnth,
            derandomization: law.derandomization,
            cap_drop_adjustment: law.cap_drop_adjustment,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("flows", self.flows, 1..=65_536)?;
        ConfigError::unless_in("quantum", self.quantum, Bytes::new(256)..=Bytes::new(1_000_000))?;
        ConfigError::unless_in("limit", self.limit, 1..=1_000_000)?;
        ConfigError::unless_in("memory", self.memory, Bytes::new(1000)..=Bytes::new(1_000_000_000))?;
        self.pie().validate()
    }

    fn pie(&self) -> pie::Config {
        pie::Config {
            qdelay_ref: self.qdelay_ref,
            t_update: self.t_update,
            alpha: self.alpha,
            beta: self.beta,
            max_burst: self.max_burst,
            mark_ecnth: self.mark_ecnth,
            derandomization: self.derandomization,
            cap_drop_adjustment: self.cap_drop_adjustment,
            ..pie::Config::default()
        }
    }
}

/// The law of a queue and its skipped updates, side by side, because a packet touches both.
#[derive(Clone, Debug, Default)]
struct FlowLaw {
    vars: pie::Vars,
    /// Whether it is among those that are updated.
    is_awake: bool,
    /// The number of updates when a packet last met the law at rest. At rest, updates change only the burst allowance,
    /// so the law catches up when it wakes.
    met_at_rest: u64,
}

/// The queues.
#[derive(Clone, Debug)]
pub struct FqPie {
    law: pie::Config,
    limit: QueueLimit,
    hash: FlowHash,
    queues: PacketQueues,
    turns: RoundRobin,
    laws: Vec<FlowLaw>,
    /// Queues whose laws need updates.
    awake: Vec<u32>,
    /// Updates so far.
    updates: u64,
    next_update: Timestamp,
    stats: QueueStats,
}

impl FqPie {
    /// Empty queues.
    #[expect(clippy::needless_pass_by_value, reason = "the registry builds every algorithm with its configuration")]
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        let limit = QueueLimit {
            packets: Some(link.limit.packets.map_or(config.limit, |packets| packets.min(config.limit))),
            bytes: Some(link.limit.bytes.map_or(config.memory, |bytes| bytes.min(config.memory))),
            ..link.limit
        };
        Self {
            law: config.pie(),
            limit,
            hash: FlowHash::default(),
            queues: PacketQueues::new(config.flows),
            turns: RoundRobin::new(config.flows, config.quantum),
            laws: vec![FlowLaw::default(); config.flows as usize],
            awake: Vec::new(),
            updates: 0,
            next_update: Timestamp::NEVER,
            stats: QueueStats::default(),
        }
    }
}

impl QueueDiscipline for FqPie {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let queue = self.hash.queue_of(packet.flow, self.queues.queues(), context);
        if self.next_update == Timestamp::NEVER {
            self.next_update = next_on_grid(context.now, self.law.t_update);
        }
        let FlowLaw { vars, is_awake, met_at_rest } = &mut self.laws[queue as usize];
        if !self.limit.admits(packet.size, self.queues.len() as u64, self.queues.bytes(), context.in_service) {
            self.stats.dropped_full += 1;
            vars.on_full();
            context.dropped.push(packet);
            return;
        }
        if !*is_awake {
            *met_at_rest = self.updates;
        }
        let decision = vars.on_arrival(&self.law, self.queues.bytes_of(queue), packet.size, context.rng);
        if decision.keeps(&mut packet, &mut self.stats) {
            self.queues.push(queue, packet);
            self.turns.activate(queue, true);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        while let Some(queue) = self.turns.whose() {
            let Some(packet) = self.queues.pop(queue) else {
                self.turns.emptied(queue, true);
                continue;
            };
            let FlowLaw { vars, is_awake, met_at_rest } = &mut self.laws[queue as usize];
            vars.on_departure(packet.sojourn(context.now), self.queues.bytes_of(queue));
            if !*is_awake && !vars.rests() {
                vars.skipped_at_rest(&self.law, self.updates - *met_at_rest);
                *is_awake = true;
                self.awake.push(queue);
            }
            self.turns.sent(queue, packet.size);
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

    fn next_timer(&self) -> Timestamp {
        self.next_update
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        self.updates += 1;
        let Self { law, awake, laws, updates, .. } = self;
        awake.retain(|&queue| {
            let FlowLaw { vars, is_awake, met_at_rest } = &mut laws[queue as usize];
            vars.update(law);
            *is_awake = !vars.rests();
            *met_at_rest = *updates;
            *is_awake
        });
        let pauses = self.awake.is_empty() && self.queues.is_empty();
        self.next_update = if pauses { Timestamp::NEVER } else { next_on_grid(context.now, self.law.t_update) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::EcnCodepoint;
    use crate::rng::Substream;

    /// One flow that sends two packets for each that leaves, and one that sends one in ten, for three seconds: who was
    /// dropped, and the queues.
    fn loaded() -> (Vec<u32>, FqPie) {
        let mut queue = FqPie::new(Config::default(), QueueLimit::default().into());
        let (mut rng, mut dropped) = (Substream::new(3, "queue", 0), Vec::new());
        for step in 0..3000u64 {
            let now = Timestamp::from_nanos(step * 1_000_000);
            let mut context = QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped };
            while queue.next_timer() <= now {
                queue.on_timer(&mut context);
            }
            let sent: &[u32] = if step % 10 == 0 { &[1, 1, 2] } else { &[1, 1] };
            for &flow in sent {
                let packet = QueuedPacket { handle: 0, size: 1000, flow, ecn: EcnCodepoint::NotEct, enqueued_at: now };
                queue.enqueue(packet, &mut context);
            }
            queue.dequeue(&mut context);
        }
        (dropped.iter().map(|packet| packet.flow).collect(), queue)
    }

    #[test]
    fn only_the_flow_with_a_queue_meets_a_probability() {
        let (dropped, queue) = loaded();
        assert!(!dropped.is_empty() && dropped.iter().all(|flow| *flow == 1));
        assert_eq!((queue.stats().dropped_early as usize, queue.stats().dropped_full), (dropped.len(), 0));
    }

    #[test]
    fn a_law_that_wakes_makes_up_for_updates_that_were_left_out() {
        let mut queue = FqPie::new(Config::default(), QueueLimit::default().into());
        let (mut rng, mut dropped) = (Substream::new(3, "queue", 0), Vec::new());
        let at = |ms| Timestamp::ZERO + Duration::from_millis(ms);
        let mut context = QueueContext { now: at(1), in_service: None, rng: &mut rng, dropped: &mut dropped };
        for _ in 0..2 {
            let packet =
                QueuedPacket { handle: 0, size: 1000, flow: 1, ecn: EcnCodepoint::NotEct, enqueued_at: context.now };
            queue.enqueue(packet, &mut context);
        }
        // Updates at 15, 30, 45 and 60 ms: the law is at rest until a packet says at 61 ms that it has waited.
        for ms in [15, 30, 45, 60] {
            assert_eq!(queue.next_timer(), at(ms));
            context.now = at(ms);
            queue.on_timer(&mut context);
            assert!(queue.awake.is_empty());
        }
        context.now = at(61);
        queue.dequeue(&mut context);
        // 150 - 4 * 15 ms.
        let law = &queue.laws[queue.awake[0] as usize];
        assert_eq!(law.vars.burst_allowance, Duration::from_millis(90));
    }

    #[test]
    fn updates_end_when_all_queues_are_at_rest() {
        let (_, mut queue) = loaded();
        let (mut rng, mut dropped) = (Substream::new(3, "queue", 0), Vec::new());
        let mut now = Timestamp::from_nanos(3_000_000_000);
        while queue.dequeue(&mut QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped }).is_some()
        {
        }
        let mut updates = 0;
        while queue.next_timer() != Timestamp::NEVER {
            now = queue.next_timer();
            queue.on_timer(&mut QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped });
            updates += 1;
        }
        assert!(updates > 1 && queue.awake.is_empty());
    }

    #[test]
    fn an_arriving_packet_without_room_is_dropped() {
        let config = Config { limit: 2, ..Config::default() };
        let mut queue = FqPie::new(config, QueueLimit::default().into());
        let (mut rng, mut dropped) = (Substream::new(3, "queue", 0), Vec::new());
        for handle in 0..3 {
            let now = Timestamp::ZERO;
            let packet = QueuedPacket { handle, size: 1000, flow: 1, ecn: EcnCodepoint::NotEct, enqueued_at: now };
            queue.enqueue(packet, &mut QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped });
        }
        assert_eq!(dropped.iter().map(|packet| packet.handle).collect::<Vec<_>>(), [2]);
        assert_eq!((queue.len(), queue.stats().dropped_full), (2, 1));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { flows: 0, ..Config::default() }, "flows"),
            (Config { quantum: Bytes::ZERO, ..Config::default() }, "quantum"),
            (Config { t_update: Duration::ZERO, ..Config::default() }, "t_update"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
