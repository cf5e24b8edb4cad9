//! First in, first out; a packet that does not fit is dropped.
//!
//! Reference: RFC 7567, section 1 (drop-tail). Packets leave in the order of arrival. An arriving packet is dropped
//! when it would exceed the limit in packets or bytes. Nothing else is dropped and nothing is marked.
//!
//! Differences from the reference: none; Linux's `sch_fifo` and ns-3's `fifo-queue-disc.cc` do the same.
//!
//! Status: the counting of the limit is validated by `ns2-chain` (packets, in-service packet counted) and `ns3-startup`
//! (bytes, in-service packet not counted).

use super::fifo::Fifo;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "first in, first out; a packet that does not fit is dropped";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 7567, section 1";

/// No parameters: the limit belongs to the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Config {}

impl Config {
    /// Refuses nothing.
    pub fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

/// The queue.
#[derive(Clone, Debug)]
pub struct TailDrop {
    queue: Fifo,
    stats: QueueStats,
}

impl TailDrop {
    /// An empty queue.
    pub fn new(_config: Config, link: OutgoingLink) -> Self {
        Self { queue: Fifo::new(link.limit), stats: QueueStats::default() }
    }
}

impl QueueDiscipline for TailDrop {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.queue.admits(packet.size, context.in_service) {
            self.queue.push(packet);
        } else {
            self.stats.dropped_full += 1;
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, _context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.queue.pop()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::{EcnCodepoint, QueueLimit};
    use crate::rng::Substream;
    use crate::time::Timestamp;

    /// Offers `sizes` to a queue with this limit while the link sends a packet of 1500 bytes; returns who was dropped.
    fn dropped(limit: QueueLimit, sizes: &[u32]) -> Vec<u32> {
        let mut queue = TailDrop::new(Config::default(), limit.into());
        let mut rng = Substream::new(0, "queue", 0);
        let mut dropped = Vec::new();
        for (handle, &size) in sizes.iter().enumerate() {
            let packet = QueuedPacket {
                handle: handle as u32,
                size,
                flow: 0,
                ecn: EcnCodepoint::NotEct,
                enqueued_at: Timestamp::ZERO,
            };
            let mut context = QueueContext {
                now: Timestamp::ZERO,
                in_service: Some(Bytes::new(1500)),
                rng: &mut rng,
                dropped: &mut dropped,
            };
            queue.enqueue(packet, &mut context);
        }
        dropped.iter().map(|packet| packet.handle).collect()
    }

    #[test]
    fn a_packet_limit_counts_the_packet_in_service_only_when_told_to() {
        let waiting = QueueLimit { packets: Some(3), ..QueueLimit::default() };
        assert_eq!(dropped(waiting, &[1500; 5]), [3, 4]);
        let system = QueueLimit { counts_in_service: true, ..waiting };
        assert_eq!(dropped(system, &[1500; 5]), [2, 3, 4]);
    }

    #[test]
    fn a_byte_limit_still_admits_a_smaller_packet() {
        // 1500 + 1500 fit in 3100 bytes, a third 1500 does not, 100 does, and then nothing more.
        let limit = QueueLimit { bytes: Some(Bytes::new(3100)), ..QueueLimit::default() };
        assert_eq!(dropped(limit, &[1500, 1500, 1500, 100, 1]), [2, 4]);
    }

    #[test]
    fn without_a_limit_nothing_is_dropped() {
        assert!(dropped(QueueLimit::default(), &[1500; 1000]).is_empty());
    }
}
