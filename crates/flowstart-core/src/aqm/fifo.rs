//! Packets that wait in the order of their arrival, with a limit: the basis of most disciplines.

use alloc::collections::VecDeque;

use super::{QueueLimit, QueuedPacket};
use crate::units::Bytes;

/// A queue without a law.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    limit: QueueLimit,
    waiting: VecDeque<QueuedPacket>,
    bytes: Bytes,
}

impl Fifo {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }

    /// Whether a packet of `size` fits; `in_service` is the packet that the link is sending.
    #[inline]
    pub fn admits(&self, size: u32, in_service: Option<Bytes>) -> bool {
        self.limit.admits(size, self.waiting.len() as u64, self.bytes, in_service)
    }

    /// Appends a packet without a check of the limit; see [`Fifo::admits`].
    #[inline]
    pub fn push(&mut self, packet: QueuedPacket) {
        self.bytes += Bytes::new(u64::from(packet.size));
        self.waiting.push_back(packet);
    }

    /// Takes the packet that has waited longest.
    #[inline]
    pub fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= Bytes::new(u64::from(packet.size));
        Some(packet)
    }

    /// The packet that has waited longest.
    pub fn first(&self) -> Option<&QueuedPacket> {
        self.waiting.front()
    }

    /// Packets waiting.
    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}
