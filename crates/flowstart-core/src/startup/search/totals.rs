//! Firefox and the authors' code 4.0: bins that keep totals of what was sent and acknowledged, and the authors' window
//! that follows the draining queue.

use alloc::vec;
use alloc::vec::Vec;

use super::Count;
use crate::event::{Ack, ExitReason};
use crate::launch::Continuation;
use crate::startup::Step;
use crate::units::Bytes;

/// Segments that are acknowledged for each that may be sent while the queue drains: `SEARCH_DRAIN_ACKEDSEG_THRESH` of
/// FreeBSD 12e48363 and Linux 087a48d6. Linux 211febb, an earlier state of 4.0, has 16.
const DRAIN_ACKED: u64 = 3;

/// Totals when each bin began.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    pub(super) sent: Vec<u64>,
    pub(super) acked: Vec<u64>,
    /// The totals now.
    pub(super) sent_bytes: u64,
    pub(super) acked_bytes: u64,
}

impl Bins {
    /// Empty ones.
    pub(super) fn new(places: usize) -> Self {
        Self { sent: vec![0; places], acked: vec![0; places], sent_bytes: 0, acked_bytes: 0 }
    }

    fn place(&self, bin: u64) -> usize {
        (bin % self.sent.len() as u64) as usize
    }

    /// The totals begin anew.
    pub(super) fn forget(&mut self) {
        (self.sent_bytes, self.acked_bytes) = (0, 0);
    }

    /// Bin 0 begins.
    pub(super) fn begin(&mut self) {
        (self.sent[0], self.acked[0]) = (self.sent_bytes, self.acked_bytes);
    }

    /// Bin `next` begins after bin `curr`; the totals did not change in the bins between.
    pub(super) fn advance(&mut self, curr: u64, next: u64) {
        let before = self.place(curr);
        let (sent, acked) = (self.sent[before], self.acked[before]);
        for bin in next.saturating_sub(self.sent.len() as u64).max(curr) + 1..next {
            let place = self.place(bin);
            (self.sent[place], self.acked[place]) = (sent, acked);
        }
        let place = self.place(next);
        (self.sent[place], self.acked[place]) = (self.sent_bytes, self.acked_bytes);
    }

    /// Bytes of the `number` bins before bin `end`, seen in bin `curr`; `None` when some of them are not kept. The bin
    /// before bin 0 holds everything earlier; 4.0 interpolates with a total of 0 there.
    pub(super) fn bytes(&self, count: Count, curr: u64, end: u64, number: u64) -> Option<u64> {
        let totals = match count {
            Count::Delivered => &self.acked,
            Count::Sent => &self.sent,
        };
        let total = |bin| totals[self.place(bin)];
        match end.checked_sub(number) {
            None => (end + 1 == number).then(|| total(end)),
            Some(first) => (curr - first < totals.len() as u64).then(|| total(end).saturating_sub(total(first))),
        }
    }
}

/// SEARCH waits until few enough bytes are in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// Window at which it is over.
    target: Bytes,
    /// Acknowledged segments that have not allowed a new segment yet.
    acked: u64,
}

impl Drain {
    /// It ends with a window of `target`.
    pub(super) fn to(target: Bytes) -> Self {
        Self { target, acked: 0 }
    }

    /// The window while the queue drains: the bytes in flight, plus a segment for every third acknowledged segment.
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: Bytes, segment: Bytes) -> Step {
        self.acked += ack.packets;
        let allowed = segment * (self.acked / DRAIN_ACKED);
        self.acked %= DRAIN_ACKED;
        let cwnd = (ack.in_flight + allowed).max(self.target).min(cwnd);
        if cwnd > self.target {
            return Step::Continue { cwnd };
        }
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Chokepoint })
    }
}
