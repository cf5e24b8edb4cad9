//! `sfqCoDel`: flows hashed to bins that send in turn, and `CoDel` in each of them.
//!
//! Reference: the module `sfqCoDel` of ns-2 (Nichols, 2012 to 2013, in the revision that `CableLabs` used). Flows are
//! hashed to bins, each of which sends a packet in its turn, or a quantum of bytes; a bin that had nothing goes before
//! the others. The law is `CoDel` by the backlog of all bins, and a bin's last packet is never dropped. When there is
//! no room the longest bin loses its last packet.
//!
//! Differences from the reference: a bin that becomes busy while a single old bin is busy goes before it; the module
//! puts it behind. Of several longest bins the one that became longest last loses a packet; the module chooses by
//! number. The largest packet is that of the bin. `ecn` and `interval` per bin as in `codel`; the module does not mark.
//! The link's own buffer is the limit.
//!
//! Status: worked examples; properties of the queues.

use alloc::vec;
use alloc::vec::Vec;

use super::codel::{self, Reentry};
use super::flow_queueing::{FlowHash, Lengths, PacketQueues, RoundRobin};
use super::sfq::validate_quantum;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::Duration;
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "flows hashed to bins that send packet by packet, and CoDel in each";
/// The document that defines it.
pub const REFERENCE: &str = "ns-2's sfqCoDel (Nichols, 2013)";

/// Parameters of `sfqCoDel`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Bins, 1 to 65536 (`maxbins_`). ns-2: 1024.
    pub bins: u32,
    /// Bytes that a bin may send in its turn, 0B or 256B to 1MB. ns-2: 0, which is a packet.
    pub quantum: Bytes,
    /// As `codel`: 5 ms.
    pub target: Duration,
    /// As `codel`: 100 ms.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead. Default: yes.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        let codel::Config { target, interval, ecn, .. } = codel::Config::default();
        Self { bins: 1024, quantum: Bytes::ZERO, target, interval, ecn }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("bins", self.bins, 1..=65_536)?;
        validate_quantum(self.quantum)?;
        self.codel().validate()
    }

    fn codel(&self) -> codel::Config {
        let Self { target, interval, ecn, .. } = *self;
        codel::Config { target, interval, ecn, reentry: Reentry::Ns2Sfq }
    }
}

/// The bins.
#[derive(Clone, Debug)]
pub struct SfqCoDel {
    codel: codel::Config,
    limit: QueueLimit,
    hash: FlowHash,
    bins: PacketQueues,
    turns: RoundRobin,
    lengths: Lengths,
    vars: Vec<codel::Vars>,
    stats: QueueStats,
}

impl SfqCoDel {
    /// Empty bins.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            codel: config.codel(),
            limit: link.limit,
            hash: FlowHash::default(),
            bins: PacketQueues::new(config.bins),
            turns: RoundRobin::new(config.bins, config.quantum),
            lengths: Lengths::new(config.bins),
            vars: vec![codel::Vars::default(); config.bins as usize],
            stats: QueueStats::default(),
        }
    }
}

impl QueueDiscipline for SfqCoDel {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        // The module makes room before it chooses the packet's bin.
        while !self.limit.admits(packet.size, self.bins.len() as u64, self.bins.bytes(), context.in_service) {
            let Some(longest) = self.lengths.longest() else {
                self.stats.dropped_full += 1;
                context.dropped.push(packet);
                return;
            };
            context.dropped.extend(self.bins.pop_last(longest));
            self.lengths.change(longest, &self.bins);
            self.stats.dropped_full += 1;
        }
        let bin = self.hash.queue_of(packet.flow, self.bins.queues(), context);
        self.bins.push(bin, packet);
        self.lengths.change(bin, &self.bins);
        self.turns.activate(bin, true);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let Self { codel, bins, turns, lengths, vars, stats, .. } = self;
        while let Some(bin) = turns.whose() {
            let next = || {
                let packet = bins.pop(bin)?;
                lengths.change(bin, bins);
                let backlog = if bins.len_of(bin) == 0 { Bytes::ZERO } else { bins.bytes() };
                Some((packet, backlog))
            };
            match vars[bin as usize].dequeue(codel, context.now, stats, context.dropped, next) {
                Some(packet) => {
                    turns.sent(bin, packet.size);
                    return Some(packet);
                }
                None => turns.emptied(bin, false),
            }
        }
        None
    }

    fn len(&self) -> usize {
        self.bins.len()
    }

    fn bytes(&self) -> Bytes {
        self.bins.bytes()
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
    use super::*;
    use crate::aqm::EcnCodepoint;
    use crate::rng::Substream;
    use crate::time::Timestamp;

    struct Link {
        queue: SfqCoDel,
        rng: Substream,
        dropped: Vec<QueuedPacket>,
    }

    impl Link {
        fn new(packets: Option<u64>) -> Self {
            let limit = QueueLimit { packets, ..QueueLimit::default() };
            let queue = SfqCoDel::new(Config::default(), limit.into());
            Self { queue, rng: Substream::new(3, "queue", 0), dropped: Vec::new() }
        }

        fn enqueue(&mut self, flow: u32, handle: u32) {
            let Self { queue, rng, dropped } = self;
            let (ecn, enqueued_at) = (EcnCodepoint::NotEct, Timestamp::ZERO);
            let packet = QueuedPacket { handle, size: 1000, flow, ecn, enqueued_at };
            queue.enqueue(packet, &mut QueueContext { now: Timestamp::ZERO, in_service: None, rng, dropped });
        }

        fn dequeue(&mut self, ms: u64) -> Option<u32> {
            let Self { queue, rng, dropped } = self;
            let now = Timestamp::ZERO + Duration::from_millis(ms);
            queue.dequeue(&mut QueueContext { now, in_service: None, rng, dropped }).map(|packet| packet.handle)
        }
    }

    #[test]
    fn bins_send_packet_by_packet_and_a_new_one_goes_first() {
        let mut link = Link::new(None);
        for (flow, handle) in [(1, 10), (1, 11), (1, 12), (2, 20), (2, 21), (2, 22)] {
            link.enqueue(flow, handle);
        }
        let mut handles = [0; 3].map(|_| link.dequeue(1).unwrap()).to_vec();
        link.enqueue(3, 30);
        handles.extend(core::iter::from_fn(|| link.dequeue(1)));
        assert_eq!(handles, [10, 20, 11, 30, 21, 12, 22]);
    }

    #[test]
    fn room_is_made_in_the_longest_bin_before_a_packet_is_taken_in() {
        let mut link = Link::new(Some(4));
        for (flow, handle) in [(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (1, 13)] {
            link.enqueue(flow, handle);
        }
        // Flow 1 has 3 of 4 when that of flow 3 comes, and 2 of 4 when it asks for more itself.
        assert_eq!(link.dropped.iter().map(|packet| packet.handle).collect::<Vec<_>>(), [12, 11]);
        assert_eq!((link.queue.len(), link.queue.stats().dropped_full), (4, 2));
    }

    #[test]
    fn the_last_packet_of_a_bin_is_not_dropped_however_long_it_has_waited() {
        let mut link = Link::new(None);
        for handle in 0..4 {
            link.enqueue(1, handle);
        }
        link.enqueue(2, 100);
        // Above the target since 1000 ms: bin 1 drops after 100 ms, with 2000 bytes left. Bin 2 has one packet only,
        // and at last bin 1, too.
        let sent = [1000, 1000, 1100, 2000].map(|ms| link.dequeue(ms));
        assert_eq!(sent, [Some(0), Some(100), Some(2), Some(3)]);
        assert_eq!(link.dropped.iter().map(|packet| packet.handle).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { bins: 0, ..Config::default() }, "bins"),
            (Config { quantum: Bytes::new(255), ..Config::default() }, "quantum"),
            (Config { target: Duration::ZERO, ..Config::default() }, "target"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
