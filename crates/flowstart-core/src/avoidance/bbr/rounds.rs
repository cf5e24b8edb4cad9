//! Round trips counted by packets: a round ends with the acknowledgement of a packet that was sent after the round
//! began.

use crate::event::RateSample;
use crate::units::Bytes;

/// Round trips counted by packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// `round_count`; `rtt_cnt` in Linux.
    pub(super) count: u64,
    /// `round_start`: the current acknowledgement begins a round.
    pub(super) start: bool,
    /// `next_round_delivered`; `next_rtt_delivered` in Linux.
    next_round_delivered: Bytes,
}

impl Rounds {
    /// `UpdateRound`; returns whether a round begins.
    pub(super) fn update(&mut self, rs: &RateSample) -> bool {
        self.start = rs.prior_delivered >= self.next_round_delivered;
        if self.start {
            self.restart(rs.total_delivered);
            self.count += 1;
        }
        self.start
    }

    /// `StartRound`: the next round begins with a packet sent from now on.
    pub(super) fn restart(&mut self, delivered: Bytes) {
        self.next_round_delivered = delivered;
    }
}
