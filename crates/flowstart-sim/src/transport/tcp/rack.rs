//! Loss detection by time: RACK (RFC 8985, section 6).
//!
//! A segment is lost if a later segment was delivered, and an RTT and the reordering window have passed since the
//! segment was sent. The RTT is that of the delivery. The reordering window is a quarter of the smallest RTT. It is
//! zero in recovery, and once as many segments are `SACKed` as the profile's packet threshold (`DupThresh`; section
//! 6.2, step 4). Lost retransmissions and lost tails are found as well.
//!
//! Differences:
//! - Reordering is not detected, neither by late originals nor by D-SACKs. So the window does not adapt to it (section
//!   6.2, step 3).
//! - A timeout declares everything in flight lost. Linux spares segments that left less than an RTT ago.

use flowstart_core::time::{Duration, Timestamp};

use super::segment::Segment;

/// The delivered segment that was sent last. Names as in the reference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Its send time (`RACK.xmit_ts`) and its end (`RACK.end_seq`).
    sent_last: (Timestamp, u64),
    /// The RTT of the latest delivery.
    rtt: Duration,
    /// Whether something was delivered since the last check for losses.
    advanced: bool,
}

impl Rack {
    /// A segment was delivered. A retransmission that is acknowledged faster than the path allows is a late first
    /// transmission (step 2).
    pub(super) fn deliver(&mut self, now: Timestamp, segment: &Segment, min_rtt: Option<Duration>) {
        let rtt = now.since(segment.sent_at);
        if segment.retransmitted && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.sent_last = self.sent_last.max((segment.sent_at, segment.end()));
    }

    /// The reordering window is over: the next check runs although nothing was delivered.
    pub(super) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Begins a check for losses with this reordering window (step 5); `None` if nothing was delivered since the last
    /// check.
    pub(super) fn search(&mut self, now: Timestamp, reordering: Duration) -> Option<Search> {
        let Self { sent_last, rtt, .. } = *self;
        std::mem::take(&mut self.advanced).then_some(Search { sent_last, patience: rtt + reordering, now })
    }
}

/// A check for losses among all segments, in the order of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    sent_last: (Timestamp, u64),
    /// The age at which a segment is late.
    patience: Duration,
    now: Timestamp,
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It arrived, is already lost, or was sent after all delivered segments.
    NotLost,
    /// It may have been reordered, and becomes late at this time. The last such time counts, as in Linux.
    Early(Timestamp),
    /// It is lost.
    Lost,
    /// Neither it nor anything above it is lost.
    End,
}

impl Search {
    /// The state of `segment`.
    pub(super) fn judge(&self, segment: &Segment) -> Verdict {
        if segment.sacked || (segment.lost && !segment.retransmitted) {
            return Verdict::NotLost;
        }
        if (segment.sent_at, segment.end()) >= self.sent_last {
            // First transmissions leave in order.
            return if segment.retransmitted { Verdict::NotLost } else { Verdict::End };
        }
        let late = segment.sent_at + self.patience;
        if late > self.now { Verdict::Early(late) } else { Verdict::Lost }
    }
}
