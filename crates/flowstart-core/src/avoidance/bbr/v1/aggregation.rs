//! Data acknowledged beyond the expected amount, because acknowledgements come in bunches.

use super::{Model, Sample};
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// `bbr_extra_acked_win_rtts`: rounds of each of the two windows over which the excess is the maximum.
const WINDOW_ROUNDS: u32 = 5;
/// `bbr_ack_epoch_acked_reset_thresh`: packets of an epoch after which it ends.
const EPOCH_PACKETS: u64 = 1 << 20;
/// `bbr_extra_acked_max_us`: at most what the bandwidth delivers in this time is added to the window.
const LONGEST_BUNCH: Duration = Duration::from_millis(100);

/// The estimator. Names as in Linux.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// `ack_epoch_mstamp`.
    epoch_start: Timestamp,
    /// `ack_epoch_acked`.
    epoch_acked: Bytes,
    /// `extra_acked`: the largest excess of the current window and of the one before.
    extra_acked: [Bytes; 2],
    /// `extra_acked_win_rtts`.
    window_rounds: u32,
    /// `extra_acked_win_idx`.
    window_index: usize,
}

impl Aggregation {
    /// An epoch begins.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.epoch_start = now;
        self.epoch_acked = Bytes::ZERO;
    }
}

impl Model {
    /// `bbr_update_ack_aggregation`.
    pub(super) fn update_ack_aggregation(&mut self, sample: &Sample) {
        if sample.newly_acked == Bytes::ZERO || sample.rate.is_none() {
            return;
        }
        let (bw, epoch_limit) = (self.bw(), self.segment * EPOCH_PACKETS);
        let aggregation = &mut self.aggregation;
        if self.rounds.start {
            aggregation.window_rounds += 1;
            if aggregation.window_rounds >= WINDOW_ROUNDS {
                aggregation.window_rounds = 0;
                aggregation.window_index = 1 - aggregation.window_index;
                aggregation.extra_acked[aggregation.window_index] = Bytes::ZERO;
            }
        }
        let mut expected = bw.amount_in(sample.now.since(aggregation.epoch_start));
        if aggregation.epoch_acked <= expected || aggregation.epoch_acked + sample.newly_acked >= epoch_limit {
            aggregation.restart(sample.now);
            expected = Bytes::ZERO;
        }
        aggregation.epoch_acked += sample.newly_acked;
        let extra = aggregation.epoch_acked.saturating_sub(expected).min(self.cwnd);
        let largest = &mut aggregation.extra_acked[aggregation.window_index];
        *largest = extra.max(*largest);
    }

    /// `bbr_ack_aggregation_cwnd`: what is added to the window for it.
    pub(super) fn ack_aggregation_cwnd(&self) -> Bytes {
        if !self.full_pipe.reached {
            return Bytes::ZERO;
        }
        let [one, other] = self.aggregation.extra_acked;
        one.max(other).min(self.bw().amount_in(LONGEST_BUNCH))
    }
}
