//! Predict in front of a link, and packets that nobody answers.

use flowstart_core::aqm::predict::{self, Predict};
use flowstart_core::aqm::{EcnCodepoint, OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueuedPacket};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

pub(super) const RATE: Rate = Rate::from_mbit(10);
pub(super) const PACKET: u32 = 1500;

/// The queue and the link.
pub(super) struct Unanswered {
    queue: Predict,
    rng: Substream,
    dropped: Vec<QueuedPacket>,
    /// When the link is free again.
    free: Timestamp,
}

impl Unanswered {
    pub(super) fn new(seed: u64) -> Self {
        let outgoing = OutgoingLink { limit: QueueLimit::default(), rate: Some(RATE) };
        let queue = Predict::new(predict::Config::default(), outgoing);
        Self { queue, rng: Substream::new(seed, "load", 0), dropped: Vec::new(), free: Timestamp::ZERO }
    }

    /// Time that a packet takes on the link.
    pub(super) fn service() -> Duration {
        RATE.time_for(Bytes::new(u64::from(PACKET)))
    }

    /// The link sends what it can before a packet of this flow arrives, and the packet if it is free then.
    pub(super) fn arrive(&mut self, flow: u32, arrival: Timestamp) {
        let Self { queue, rng, dropped, free } = self;
        dropped.clear();
        while !queue.is_empty() && *free <= arrival {
            let mut context = QueueContext { now: *free, in_service: None, rng, dropped };
            if queue.dequeue(&mut context).is_some() {
                *free += Self::service();
            }
        }
        let packet = QueuedPacket { handle: 0, size: PACKET, flow, ecn: EcnCodepoint::NotEct, enqueued_at: arrival };
        let mut context = QueueContext { now: arrival, in_service: None, rng, dropped };
        queue.enqueue(packet, &mut context);
        if *free <= arrival && queue.dequeue(&mut context).is_some() {
            *free = arrival + Self::service();
        }
    }

    /// Transients that Predict has seen.
    pub(super) fn triggers(&self) -> u64 {
        self.queue.triggers()
    }
}
