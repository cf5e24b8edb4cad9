//! Detection of spurious retransmissions, whose segments were only late.
//!
//! With timestamps an acknowledgement identifies its transmission. The original has arrived if the echoed time is
//! before the first retransmission of a recovery (Eifel detection, RFC 3522; `tcp_packet_delayed` of Linux). After a
//! timeout the delivery of a segment that was never sent again shows the same (F-RTO, RFC 5682, section 3.1, step 3.b).
//! All segments that were declared lost then count as in flight again, and the controller undoes its reduction.
//!
//! Differences from the references:
//! - Timestamps are exact, not in ticks.
//! - After a timeout lost data is sent again immediately. F-RTO tries new data first (step 2.b).
//! - F-RTO serves for the whole recovery. In Linux it ends with an acknowledgement that does not disprove the timeout.
//! - A fast recovery continues with losses and repairs while retransmissions are in flight. Linux sends only new data.
//! - A loss probe counts as sent again.
//! - Reported duplicates (D-SACK, RFC 2883) do not undo a recovery.
//! - The controller restores congestion avoidance as well (RFC 9438, section 4.9). Linux's CUBIC keeps the state after
//!   the reduction.
//! - An integrated algorithm (BBR) gets nothing back.

use flowstart_core::time::Timestamp;

/// The state of a recovery, empty if the profile does not detect spurious retransmissions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spurious {
    /// The time of its first retransmission (`retrans_stamp` of Linux).
    first: Option<Timestamp>,
    /// Whether it began with a timeout, so that F-RTO applies.
    timeout: bool,
}

impl Spurious {
    /// A recovery begins, with a timeout or without. Losses that are detected during it belong to it.
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

    /// Whether an advancing acknowledgement with this echo shows that an original had arrived.
    pub(super) fn is_late(&self, echo: Timestamp) -> bool {
        self.first.is_some_and(|first| echo < first)
    }

    /// Whether the arrival of a segment that was never sent again and ends at `end` shows it, in a recovery from a
    /// timeout until `point`.
    pub(super) fn disproves_timeout(&self, end: Option<u64>, point: u64) -> bool {
        self.timeout && end.is_some_and(|end| end <= point)
    }
}
