//! The model of the path: rounds, largest bandwidth, smallest RTT, aggregation, and the short-term effect of loss.

use super::super::rounds::Rounds;
use super::super::windowed_max::WindowedMax;
use super::{Config, Model, UNBOUNDED};
use crate::event::RateSample;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Whether the window was full (`C.is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    limited_now: bool,
    limited_before: bool,
}

impl WindowUse {
    pub(super) fn note_cwnd_limited(&mut self) {
        self.limited_now = true;
    }

    /// A round begins.
    fn begin_round(&mut self) {
        self.limited_before = core::mem::take(&mut self.limited_now);
    }

    /// The window was full within the last round.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.limited_now || self.limited_before
    }
}

/// `max_bw_filter`: the largest delivery rate of this cycle and of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    current: Rate,
    previous: Rate,
}

impl MaxBandwidth {
    /// `max_bw`.
    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    fn update(&mut self, rs: &RateSample) {
        let rate = rs.rate.unwrap_or(Rate::ZERO);
        if rate >= self.get() || !rs.app_limited {
            self.current = self.current.max(rate);
        }
    }

    /// `AdvanceMaxBwFilter`.
    pub(super) fn advance(&mut self) {
        if self.current > Rate::ZERO {
            self.previous = core::mem::take(&mut self.current);
        }
    }
}

/// `min_rtt` and when to look for a smaller one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    min_rtt: Option<Duration>,
    min_rtt_stamp: Timestamp,
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_stamp: Timestamp,
}

impl MinRtt {
    pub(super) fn new(now: Timestamp, known: Option<Duration>) -> Self {
        Self { min_rtt: known, min_rtt_stamp: now, probe_rtt_min_delay: known, probe_rtt_min_stamp: now }
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// `UpdateMinRTT`; returns `probe_rtt_expired`.
    pub(super) fn update(&mut self, now: Timestamp, rtt: Option<Duration>, config: &Config) -> bool {
        let probe_rtt_expired = now > self.probe_rtt_min_stamp + config.probe_rtt_interval;
        if let Some(rtt) = rtt
            && (probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|delay| rtt < delay))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let min_rtt_expired = now > self.min_rtt_stamp + config.min_rtt_filter;
        if let Some(delay) = self.probe_rtt_min_delay
            && (min_rtt_expired || self.min_rtt.is_none_or(|min_rtt| delay < min_rtt))
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        probe_rtt_expired
    }

    /// `ProbeRTT` is over: the next one is an interval away.
    pub(super) fn schedule(&mut self, now: Timestamp) {
        self.probe_rtt_min_stamp = now;
    }
}

/// Rounds over which `extra_acked` is the maximum once the pipe was full (`ExtraAckedFilterLen`).
const EXTRA_ACKED_ROUNDS: u64 = 10;

/// `extra_acked`: data acknowledged beyond the expected amount, because acknowledgements come in bunches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    interval_start: Timestamp,
    delivered: Bytes,
    extra_acked: Bytes,
    largest: WindowedMax<Bytes, { EXTRA_ACKED_ROUNDS as usize + 1 }>,
}

impl Aggregation {
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.interval_start = now;
    }

    pub(super) fn extra_acked(&self) -> Bytes {
        self.extra_acked
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update(
        &mut self,
        now: Timestamp,
        newly_acked: Bytes,
        bw: Rate,
        cwnd: Bytes,
        rounds: &Rounds,
        full_bw_reached: bool,
    ) {
        let mut expected = bw.amount_in(now.since(self.interval_start));
        if self.delivered <= expected {
            self.delivered = Bytes::ZERO;
            self.interval_start = now;
            expected = Bytes::ZERO;
        }
        self.delivered += newly_acked;
        let extra = self.delivered.saturating_sub(expected).min(cwnd);
        let window = if full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.extra_acked = self.largest.update(extra, rounds.count, window);
    }
}

/// What the last round delivered, and whether it lost anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestSignals {
    /// `bw_latest`.
    pub(super) bw: Rate,
    /// `inflight_latest`.
    pub(super) inflight: Bytes,
    /// `is_loss_in_round`.
    pub(super) is_loss_in_round: bool,
    /// `loss_round_start`: the current acknowledgement ends a round of these signals.
    pub(super) round_start: bool,
    loss_round_delivered: Bytes,
}

impl LatestSignals {
    /// `UpdateLatestDeliverySignals`.
    pub(super) fn begin(&mut self, rs: &RateSample) {
        self.bw = self.bw.max(rs.rate.unwrap_or(Rate::ZERO));
        self.inflight = self.inflight.max(rs.delivered);
        self.round_start = rs.prior_delivered >= self.loss_round_delivered;
        if self.round_start {
            self.loss_round_delivered = rs.total_delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance(&mut self, rs: &RateSample) {
        if self.round_start {
            self.bw = rs.rate.unwrap_or(Rate::ZERO);
            self.inflight = rs.delivered;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        self.is_loss_in_round = false;
        self.bw = Rate::ZERO;
        self.inflight = Bytes::ZERO;
    }
}

impl Model {
    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, rs: &RateSample) {
        if self.rounds.update(rs) {
            self.window_use.begin_round();
            self.probing.count_round();
        }
        self.max_bw.update(rs);
        if self.latest.round_start {
            self.adapt_lower_bounds();
            self.latest.is_loss_in_round = false;
        }
    }

    /// `NoteLoss`.
    pub(super) fn note_loss(&mut self) {
        if !self.latest.is_loss_in_round {
            self.latest.loss_round_delivered = self.delivered;
            self.save_cwnd();
        }
        self.latest.is_loss_in_round = true;
    }

    /// `AdaptLowerBoundsFromCongestion`, `InitLowerBounds` and `LossLowerBounds`.
    fn adapt_lower_bounds(&mut self) {
        if self.state.is_probing() || !self.latest.is_loss_in_round {
            return;
        }
        if self.bw_shortterm == UNBOUNDED {
            self.bw_shortterm = self.max_bw.get();
        }
        if self.inflight_shortterm == Bytes::MAX {
            self.inflight_shortterm = self.cwnd;
        }
        self.bw_shortterm = self.latest.bw.max(self.bw_shortterm.scale(self.config.beta));
        self.inflight_shortterm = self.latest.inflight.max(self.inflight_shortterm.scale(self.config.beta));
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = UNBOUNDED;
        self.inflight_shortterm = Bytes::MAX;
    }
}
