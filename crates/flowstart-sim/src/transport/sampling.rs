//! Delivery rate samples for controllers that need them, with a snapshot for each outstanding packet. The snapshots are
//! separate from the sender's own list of packets, so they cost senders without samples nothing.

use std::collections::VecDeque;

use flowstart_core::delivery_rate::{DeliveryRate, Snapshot};
use flowstart_core::event::{LostPacket, Position, RateSample};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

/// The estimator of a sender and the snapshots of its packets, in the order and with the indices of the sender's list.
#[derive(Clone, Debug, Default)]
pub struct Sampling {
    estimator: DeliveryRate,
    snapshots: VecDeque<Snapshot>,
}

impl Sampling {
    /// A packet was added to the list.
    #[inline(never)]
    pub fn push(&mut self, now: Timestamp, size: Bytes, in_flight: Bytes) {
        self.snapshots.push_back(self.estimator.on_sent(now, size, in_flight));
    }

    /// The packet at `index` was sent again and keeps its place.
    #[inline(never)]
    pub fn replace(&mut self, index: usize, now: Timestamp, size: Bytes, in_flight: Bytes) {
        if let Some(place) = self.snapshots.get_mut(index) {
            *place = self.estimator.on_sent(now, size, in_flight);
        }
    }

    /// The first `count` packets were removed from the list.
    pub fn pop(&mut self, count: usize) {
        self.snapshots.drain(..count.min(self.snapshots.len()));
    }

    /// The packet at `index` was delivered.
    #[inline(never)]
    pub fn deliver(&mut self, index: usize, now: Timestamp, position: Position, size: Bytes) {
        if let Some(snapshot) = self.snapshots.get(index) {
            self.estimator.on_delivered(now, snapshot, position, size);
        }
    }

    /// The packet at `index` was declared lost.
    #[inline(never)]
    pub fn lose(
        &mut self,
        index: usize,
        now: Timestamp,
        places: (Position, Position),
        size: Bytes,
    ) -> Option<LostPacket> {
        let snapshot = self.snapshots.get(index)?;
        Some(self.estimator.on_lost(now, snapshot, places, size))
    }

    /// The sender ran out of data.
    pub fn mark_app_limited(&mut self, in_flight: Bytes) {
        self.estimator.mark_app_limited(in_flight);
    }

    /// The sample of the acknowledgement that was just processed.
    #[inline(never)]
    pub fn take_sample(&mut self, min_rtt: Option<Duration>) -> Option<RateSample> {
        self.estimator.take_sample(min_rtt)
    }
}
