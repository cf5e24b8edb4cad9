//! How many requests a router looks at in a second.
//!
//! Reference: Sarolahti, Allman and Floyd, section 8.1: a router ignores requests in excess of a rate, so a flood costs
//! it no more than that. The limit protects the router, not honest senders: their requests are ignored with the flood.

use crate::time::Timestamp;

/// A limit and what was looked at in the running second: O(1), whoever asks.
#[derive(Clone, Debug)]
pub(super) struct RequestLimit {
    /// Requests in each second; `None`: all.
    per_second: Option<u32>,
    second: u64,
    looked_at: u32,
}

impl RequestLimit {
    pub(super) fn new(per_second: Option<u32>) -> Self {
        Self { per_second, second: 0, looked_at: 0 }
    }

    /// Whether a request that comes now is looked at.
    pub(super) fn looks_at(&mut self, now: Timestamp) -> bool {
        let Some(limit) = self.per_second else { return true };
        let second = now.since(Timestamp::ZERO).as_nanos() / 1_000_000_000;
        if self.second != second {
            (self.second, self.looked_at) = (second, 0);
        }
        self.looked_at = self.looked_at.saturating_add(1);
        self.looked_at <= limit
    }
}
