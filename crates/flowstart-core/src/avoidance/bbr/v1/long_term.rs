//! Long-term bandwidth: the rate of a token-bucket policer, if the path seems to have one.
//!
//! A policer passes everything until its tokens are used up, and then drops what exceeds its rate. Two intervals in a
//! row with many losses and the same delivery rate indicate a policer. Intervals begin and end with a loss, when there
//! are no tokens.

use super::{Mode, Model};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// `bbr_lt_intvl_min_rtts`: rounds of an interval.
const INTERVAL_ROUNDS: u32 = 4;
/// `bbr_lt_loss_thresh` in 256ths: lost over delivered from which on an interval is lossy; 50 / 256 = 19.5 %.
const LOSS_THRESH: u64 = 50;
/// `bbr_lt_bw_ratio`: bandwidths that differ by at most this part are the same.
const BW_RATIO: f64 = 1.0 / 8.0;
/// `bbr_lt_bw_diff`: bandwidths that differ by at most this are the same.
const BW_DIFF: Rate = Rate::from_bits_per_sec(4_000);
/// `bbr_lt_bw_max_rtts`: rounds for which the long-term bandwidth is used.
const USE_ROUNDS: u32 = 48;

/// The estimator. Names as in Linux, without their `lt_`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    is_sampling: bool,
    /// Rounds of this interval, or for which the bandwidth is used.
    rtt_cnt: u32,
    use_bw: bool,
    /// Of the last interval, or of the last two when it is used; zero: none.
    bw: Rate,
    last_delivered: Bytes,
    last_stamp: Timestamp,
    last_lost: Bytes,
}

impl LongTerm {
    /// The long-term bandwidth while it is used.
    pub(super) fn bw_in_use(&self) -> Option<Rate> {
        self.use_bw.then_some(self.bw)
    }
}

impl Model {
    /// `bbr_reset_lt_bw_sampling_interval`.
    fn reset_long_term_interval(&mut self, now: Timestamp) {
        self.long_term = LongTerm {
            rtt_cnt: 0,
            last_delivered: self.delivered,
            last_stamp: now,
            last_lost: self.lost,
            ..self.long_term
        };
    }

    /// `bbr_reset_lt_bw_sampling`.
    fn reset_long_term(&mut self, now: Timestamp) {
        self.long_term = LongTerm::default();
        self.reset_long_term_interval(now);
    }

    /// `bbr_lt_bw_sampling`.
    pub(super) fn sample_long_term_bw(&mut self, now: Timestamp, losses: bool, app_limited: bool) {
        let round = u32::from(self.rounds.start);
        if self.long_term.use_bw {
            if self.mode == Mode::ProbeBw {
                self.long_term.rtt_cnt += round;
                if round > 0 && self.long_term.rtt_cnt >= USE_ROUNDS {
                    self.reset_long_term(now);
                    self.reset_probe_bw_mode(now, "long_term_bw_over");
                }
            }
            return;
        }
        if !self.long_term.is_sampling {
            if !losses {
                return;
            }
            self.reset_long_term_interval(now);
            self.long_term.is_sampling = true;
        }
        if app_limited {
            return self.reset_long_term(now);
        }
        self.long_term.rtt_cnt += round;
        if self.long_term.rtt_cnt < INTERVAL_ROUNDS {
            return;
        }
        if self.long_term.rtt_cnt > 4 * INTERVAL_ROUNDS {
            return self.reset_long_term(now);
        }
        if losses {
            self.end_long_term_interval(now);
        }
    }

    /// The second half of `bbr_lt_bw_sampling`, and `bbr_lt_bw_interval_done`.
    fn end_long_term_interval(&mut self, now: Timestamp) {
        let lost = self.lost.saturating_sub(self.long_term.last_lost);
        let delivered = self.delivered.saturating_sub(self.long_term.last_delivered);
        let elapsed = now.since(self.long_term.last_stamp);
        let is_lossy = delivered > Bytes::ZERO && lost * 256 >= delivered * LOSS_THRESH;
        if !is_lossy || elapsed < Duration::from_millis(1) {
            return;
        }
        let Some(bw) = Rate::from_transfer(delivered, elapsed) else { return };
        let before = self.long_term.bw;
        if before > Rate::ZERO && self.is_same_bandwidth(bw, before) {
            self.long_term.bw = Rate::from_bits_per_sec(bw.bits_per_sec().midpoint(before.bits_per_sec()));
            self.long_term.use_bw = true;
            self.long_term.rtt_cnt = 0;
            // To avoid drops.
            self.pacing_gain = 1.0;
            self.transitions.note(self.mode.name(), "policed");
            return;
        }
        self.long_term.bw = bw;
        self.reset_long_term_interval(now);
    }

    fn is_same_bandwidth(&self, bw: Rate, before: Rate) -> bool {
        let difference = Rate::from_bits_per_sec(bw.bits_per_sec().abs_diff(before.bits_per_sec()));
        difference <= before.scale(BW_RATIO) || difference.scale(1.0 - self.config.pacing_margin) <= BW_DIFF
    }
}
