//! draft-chung-ccwg-search-09: bins that keep totals of what was sent and acknowledged, and a window that follows the
//! draining queue.

use core::ops::Range;

use alloc::vec;
use alloc::vec::Vec;

use super::{Config, Count, Exit, LookBack, Sum, Wrap};
use crate::event::{Ack, ExitReason};
use crate::registry::ConfigError;
use crate::startup::{Continuation, Step};
use crate::units::Bytes;

/// THRESH of the draft.
pub(super) const THRESH: f64 = 0.26;
/// The draft's section 3.2.
pub(super) const EXIT: Exit = Exit::Drain;
/// The draft's text has the newer bin, which Firefox's stack calls an erratum.
pub(super) const LOOK_BACK: LookBack = LookBack::InterpolateOlder;
/// Segments that are acknowledged for each that may be sent while the queue drains (the authors' Linux code, 4.0).
const DRAIN_ACKED: u64 = 3;

/// Refuses the readings of Algorithm 1 that the draft does not have.
pub(super) fn validate(config: &Config) -> Result<(), ConfigError> {
    if config.sum != Sum::W {
        return Err(ConfigError::new("sum", "W+1", "W with variant=draft"));
    }
    if config.count_current {
        return Err(ConfigError::new("count_current", "true", "false with variant=draft"));
    }
    if config.wrap != Wrap::Extend {
        let written = if config.wrap == Wrap::Literal { "literal" } else { "refuse" };
        return Err(ConfigError::new("wrap", written, "extend with variant=draft"));
    }
    Ok(())
}

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

    /// Bin 0 begins.
    pub(super) fn begin(&mut self) {
        (self.sent[0], self.acked[0]) = (self.sent_bytes, self.acked_bytes);
    }

    /// Bin `next` begins after bin `curr`; in those between the totals stayed what they were.
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

    /// Bytes of these bins, seen in bin `curr`; `None` when some of them are not kept.
    pub(super) fn bytes(&self, count: Count, curr: u64, bins: Range<u64>) -> Option<u64> {
        let totals = match count {
            Count::Delivered => &self.acked,
            Count::Sent => &self.sent,
        };
        let total = |bin| totals[self.place(bin)];
        (curr - bins.start < totals.len() as u64).then(|| total(bins.end).saturating_sub(total(bins.start)))
    }
}

/// SEARCH waits for the bytes in flight to become few enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// Window at which it is over.
    target: Bytes,
    /// Acknowledged segments that did not allow one to be sent yet.
    acked: u64,
}

impl Drain {
    /// It ends with a window of `target`.
    pub(super) fn to(target: Bytes) -> Self {
        Self { target, acked: 0 }
    }

    /// The window while the queue drains: in flight and a segment for every third that is acknowledged.
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
