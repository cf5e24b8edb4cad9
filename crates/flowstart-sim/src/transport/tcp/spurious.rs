//! Whether what TCP sent again had only been late.
//!
//! With timestamps an acknowledgement tells which transmission it is for. The original had arrived when the echoed time
//! is before the first retransmission of a recovery (Eifel detection, RFC 3522; `tcp_packet_delayed` of Linux). After a
//! timeout the delivery of something that was never sent again tells the same (F-RTO, RFC 5682, section 3.1, step 3.b).
//! Everything that was declared lost then counts as in flight again, and the controller takes its reduction back.
//!
//! Differences from the references:
//! - Timestamps are exact, not in ticks.
//! - After a timeout what was lost is sent again at once. F-RTO tries new data first (step 2.b).
//! - F-RTO serves for the whole recovery. In Linux it ends with an acknowledgement that does not disprove the timeout.
//! - A fast recovery goes on with losses and repairs while something that was sent again is out. Linux sends new data
//!   only.
//! - A loss probe counts as sent again.
//! - Duplicates that the receiver reports (D-SACK, RFC 2883) take no recovery back.
//! - The controller restores congestion avoidance as well (RFC 9438, section 4.9). Linux's CUBIC keeps what the
//!   reduction made of it.
//! - An integrated algorithm (BBR) gets nothing back.

use flowstart_core::time::Timestamp;

/// What is remembered of a recovery. Nothing, where this is not looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spurious {
    /// When it first sent something again (`retrans_stamp` of Linux).
    first: Option<Timestamp>,
    /// It began with a timeout, so that F-RTO is of use.
    timeout: bool,
}

impl Spurious {
    /// A recovery begins, with a timeout or without. Losses that are found in it are part of it.
    pub(super) fn begin(&mut self, timeout: bool) {
        self.timeout = timeout;
    }

    /// Something is sent again.
    pub(super) fn note_retransmission(&mut self, now: Timestamp) {
        self.first.get_or_insert(now);
    }

    /// Everything that was sent again is acknowledged.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// An acknowledgement with this echo advances: an original had arrived.
    pub(super) fn is_late(&self, echo: Timestamp) -> bool {
        self.first.is_some_and(|first| echo < first)
    }

    /// Something arrived that was never sent again and ends at `end`, in a recovery from a timeout until `point`.
    pub(super) fn disproves_timeout(&self, end: Option<u64>, point: u64) -> bool {
        self.timeout && end.is_some_and(|end| end <= point)
    }
}
