//! A segment of TCP, and the segments that an acknowledgement delivers.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::transport::sender::SenderBase;

/// A segment that was sent and is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) seq: u64,
    pub(super) len: u32,
    /// The time when it was sent last.
    pub(super) sent_at: Timestamp,
    pub(super) sacked: bool,
    pub(super) lost: bool,
    /// Sent again since it was last declared lost.
    pub(super) retransmitted: bool,
    /// Sent more than once.
    pub(super) sent_again: bool,
    pub(super) app_limited: bool,
}

impl Segment {
    pub(super) fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Its contribution to pipe (RFC 6675, section 4).
    pub(super) fn pipe(&self) -> u64 {
        let copies = if self.sacked { 0 } else { u64::from(!self.lost) + u64::from(self.retransmitted) };
        copies * u64::from(self.len)
    }

    /// It is the segment at `index` and was just declared lost.
    pub(super) fn declare_lost(&self, base: &mut SenderBase, index: usize, now: Timestamp) {
        base.declare_lost(index, now, (self.seq, self.end()), Bytes::new(u64::from(self.len)));
    }

    /// It has to be sent again.
    pub(super) fn tell_retransmission(&self, base: &mut SenderBase) {
        base.controller.on_retransmission(self.end() - 1, Bytes::new(u64::from(self.len)));
    }

    /// Takes it out of the bytes in flight.
    pub(super) fn leave_flight(&self, base: &mut SenderBase) {
        base.in_flight = base.in_flight.saturating_sub(Bytes::new(self.pipe()));
    }
}

/// The newly delivered data of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) bytes: Bytes,
    pub(super) packets: u64,
    pub(super) app_limited: bool,
    pub(super) sample: Option<Duration>,
    /// The smallest end of the segments that were sent only once.
    pub(super) original: Option<u64>,
    /// Packets that had been declared lost.
    pub(super) declared_lost: u64,
}

impl Outcome {
    pub(super) fn deliver(&mut self, segment: &Segment) {
        self.bytes += Bytes::new(u64::from(segment.len));
        self.packets += 1;
        self.declared_lost += u64::from(segment.lost);
        if !segment.sent_again && self.original.is_none_or(|end| segment.end() < end) {
            self.original = Some(segment.end());
        }
    }
}
