//! STARTUP and DRAIN, and the test for a full pipe.

use super::{Model, State};
use crate::event::RateSample;
use crate::event::{ExitReason, LostPacket, Position};
use crate::time::Timestamp;
use crate::units::Rate;

/// Rounds after which DRAIN always ends.
const DRAIN_ROUNDS: u64 = 3;

/// The full-pipe estimator, and the losses of a round in STARTUP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// `full_bw_reached`: the pipe was full at least once.
    pub(super) reached: bool,
    /// `full_bw_now`.
    pub(super) now: bool,
    /// `full_bw`.
    bw: Rate,
    /// `full_bw_count`.
    count: u32,
    /// Separate ranges lost in this round.
    lost_ranges: u32,
    /// Where the last lost range ends.
    lost_end: Option<Position>,
    /// `drain_start_round`.
    drain_start_round: u64,
}

impl FullPipe {
    /// `ResetFullBW`, with `bw` as the new baseline.
    pub(super) fn reset(&mut self, bw: Rate) {
        self.now = false;
        self.bw = bw;
        self.count = 0;
    }
}

impl Model {
    /// `CheckFullBWReached`.
    pub(super) fn check_full_bw_reached(&mut self, rs: &RateSample) {
        if self.full_pipe.now || !self.rounds.start || rs.app_limited {
            return;
        }
        let rate = rs.rate.unwrap_or(Rate::ZERO);
        if rate >= self.full_pipe.bw.scale(self.config.full_bw_growth) {
            self.full_pipe.reset(rate);
            return;
        }
        self.full_pipe.count += 1;
        if self.full_pipe.count >= self.config.full_bw_rounds {
            self.reach_full_pipe(ExitReason::Chokepoint);
        }
    }

    /// The pipe is full. The first time ends startup, either in STARTUP or in a `ProbeRTT` between.
    pub(super) fn reach_full_pipe(&mut self, reason: ExitReason) {
        self.full_pipe.now = true;
        if !self.full_pipe.reached {
            self.full_pipe.reached = true;
            self.exit = Some(reason);
        }
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, rs: &RateSample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain("full_bw_reached");
        }
    }

    /// `CheckStartupHighLoss`.
    fn check_startup_high_loss(&mut self, rs: &RateSample) {
        if !self.latest.round_start {
            return;
        }
        let ranges = core::mem::take(&mut self.full_pipe.lost_ranges);
        let a_round_in_recovery = self.recovery.is_some_and(|began| self.rounds.count > began);
        if self.state == State::Startup
            && a_round_in_recovery
            && ranges >= self.config.startup_loss_ranges
            && self.is_inflight_too_high(rs.lost, rs.tx_in_flight)
        {
            self.reach_full_pipe(ExitReason::Loss);
            self.inflight_longterm = self.bdp_multiple(self.max_bw.get(), 1.0).max(self.latest.inflight);
            self.enter_drain("high_loss");
        }
    }

    /// A packet was lost: counts the ranges of the round.
    pub(super) fn count_lost_range(&mut self, lost: &LostPacket) {
        if self.full_pipe.lost_end != Some(lost.start) {
            self.full_pipe.lost_ranges += 1;
        }
        self.full_pipe.lost_end = Some(lost.end);
    }

    /// `EnterDrain`.
    pub(super) fn enter_drain(&mut self, trigger: &'static str) {
        self.full_pipe.drain_start_round = self.rounds.count;
        self.enter(State::Drain, trigger);
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, now: Timestamp) {
        if self.state != State::Drain {
            return;
        }
        if self.in_flight <= self.inflight(self.bw, 1.0) {
            self.start_probe_bw_down(now, "drained");
        } else if self.rounds.count > self.full_pipe.drain_start_round + DRAIN_ROUNDS {
            self.start_probe_bw_down(now, "rounds");
        }
    }
}
