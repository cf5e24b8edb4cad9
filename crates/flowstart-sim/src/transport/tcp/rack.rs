//! Loss detection by time: RACK (RFC 8985, section 6).
//!
//! A segment is lost when one that was sent after it was delivered, and an RTT and the reordering window have passed
//! since it was sent. The RTT is that of the delivery. The reordering window is a quarter of the smallest RTT. It is
//! zero in recovery, and once as many segments are `SACKed` as the profile's packet threshold (`DupThresh`; section
//! 6.2, step 4). Lost retransmissions and lost tails are found as well.
//!
//! Differences:
//! - Nobody looks for reordering, neither by late originals nor by D-SACKs. So the window does not adapt to it (section
//!   6.2, step 3).
//! - A timeout takes everything in flight for lost. Linux spares what left less than an RTT ago.

use flowstart_core::time::{Duration, Timestamp};

use super::segment::Segment;

/// What was sent last of everything that was delivered. Names as in the reference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// When it was sent (`RACK.xmit_ts`) and its end (`RACK.end_seq`).
    sent_last: (Timestamp, u64),
    /// The RTT of the latest delivery.
    rtt: Duration,
    /// Something was delivered since losses were looked for.
    advanced: bool,
}

impl Rack {
    /// A segment was delivered. A retransmission that is faster than the path is the first transmission, late (step 2).
    pub(super) fn deliver(&mut self, now: Timestamp, segment: &Segment, min_rtt: Option<Duration>) {
        let rtt = now.since(segment.sent_at);
        if segment.retransmitted && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.sent_last = self.sent_last.max((segment.sent_at, segment.end()));
    }

    /// The reordering window is over: losses are looked for although nothing was delivered.
    pub(super) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Begins to look for losses with this reordering window (step 5); `None`: nothing was delivered since the last
    /// time.
    pub(super) fn search(&mut self, now: Timestamp, reordering: Duration) -> Option<Search> {
        let Self { sent_last, rtt, .. } = *self;
        std::mem::take(&mut self.advanced).then_some(Search { sent_last, patience: rtt + reordering, now })
    }
}

/// A look for losses among all segments, in the order of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    sent_last: (Timestamp, u64),
    /// How long after it was sent a segment is late.
    patience: Duration,
    now: Timestamp,
}

/// What is known of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It arrived, is lost already, or was sent after everything that was delivered.
    NotLost,
    /// It may have been reordered, and is late at this time. The last such time counts, as in Linux.
    Early(Timestamp),
    /// It is lost.
    Lost,
    /// Neither it nor anything above it is lost.
    End,
}

impl Search {
    /// What is known of `segment`.
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
