//! Loss detection by time: RACK (RFC 8985, section 6).
//!
//! A segment is lost when one that was sent after it was delivered, and an RTT and the reordering window have passed since it
//! was sent. The RTT is that of the delivery. The reordering window is a quarter of the smallest RTT, and nothing in
//! recovery or once as many segments are `SACKed` as the profile's packet threshold, `DupThresh`, says (section 6.2,
//! step 4). It finds lost retransmissions and tails as well.
//!
//! Differences: reordering is not looked for, neither by late originals nor by D-SACKs, and so the window does not
//! adapt to it (section 6.2, step 3). A timeout takes everything in flight for lost, where Linux spares what left less
//! than an RTT ago.

use flowstart_core::time::{Duration, Timestamp};

use super::scoreboard::{Scoreboard, Segment};
use super::sender::SenderBase;
use crate::network::Network;

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
}

impl Scoreboard {
    /// Declares losses (step 5). Returns when to look again, if that is not known already: when segments that may have been
    /// reordered are late.
    pub(super) fn detect_by_time(
        &mut self,
        base: &mut SenderBase,
        network: &mut Network,
        in_recovery: bool,
    ) -> Option<Timestamp> {
        if !std::mem::take(&mut self.rack.advanced) {
            return None;
        }
        let now = network.now();
        let at_once = in_recovery || self.sacked_count >= u64::from(base.profile.packet_threshold);
        let reordering = if at_once { Duration::ZERO } else { base.rtt.min().unwrap_or_default() / 4 };
        let patience = self.rack.rtt + reordering;
        let mut again = Timestamp::NEVER;
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            if segment.sacked || (segment.lost && !segment.retransmitted) {
                continue;
            }
            if (segment.sent_at, segment.end()) >= self.rack.sent_last {
                // First transmissions leave in order.
                if segment.retransmitted {
                    continue;
                }
                break;
            }
            let late = segment.sent_at + patience;
            if late > now {
                // The last of them, as in Linux.
                again = if again == Timestamp::NEVER { late } else { again.max(late) };
                continue;
            }
            self.declare(index, base, network);
        }
        Some(again)
    }
}
