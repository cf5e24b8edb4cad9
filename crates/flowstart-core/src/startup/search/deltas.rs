//! Algorithm 1: bins count delivered bytes, compared with twice the bytes delivered an RTT earlier.

use core::ops::Range;

use alloc::vec;
use alloc::vec::Vec;

use super::Wrap;
use crate::units::Bytes;

/// How much more slow start delivers in each RTT.
pub(super) const GROWTH: f64 = 2.0;

/// bin: the bytes delivered while each lasted.
#[derive(Clone, Debug)]
pub(super) struct Bins(pub(super) Vec<u64>);

impl Bins {
    /// Empty ones.
    pub(super) fn new(places: usize) -> Self {
        Self(vec![0; places])
    }

    fn place(&self, bin: u64) -> usize {
        (bin % self.0.len() as u64) as usize
    }

    /// Bin 0 begins.
    pub(super) fn begin(&mut self) {
        self.0.fill(0);
    }

    /// Bin `next` begins after bin `curr`; the bins between had nothing.
    pub(super) fn advance(&mut self, curr: u64, next: u64) {
        for bin in next.saturating_sub(self.0.len() as u64).max(curr) + 1..=next {
            let place = self.place(bin);
            self.0[place] = 0;
        }
    }

    /// Bytes were delivered in bin `curr`.
    pub(super) fn count(&mut self, curr: u64, bytes: Bytes) {
        let place = self.place(curr);
        self.0[place] += bytes.get();
    }

    /// Bytes delivered in these bins, seen in bin `curr`; `None` when some of them are not kept.
    pub(super) fn bytes(&self, curr: u64, bins: Range<u64>, wrap: Wrap) -> Option<u64> {
        if wrap != Wrap::Literal && curr - bins.start >= self.0.len() as u64 {
            return None;
        }
        Some(bins.map(|bin| self.0[self.place(bin)]).sum())
    }
}
