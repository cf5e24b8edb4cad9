//! STARTUP and DRAIN, and the test for a full pipe.

use super::{Mode, Model, Sample};
use crate::event::ExitReason;
use crate::time::Timestamp;
use crate::units::Rate;

/// The full-pipe estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// `full_bw_reached`.
    pub(super) reached: bool,
    /// `full_bw`: the baseline of the growth.
    bw: Rate,
    /// `full_bw_cnt`: rounds without enough growth.
    count: u32,
}

impl FullPipe {
    /// The next round is the first that counts.
    pub(super) fn restart(&mut self) {
        self.bw = Rate::ZERO;
        self.count = 0;
    }

    /// The next round's bandwidth is the baseline of the growth.
    pub(super) fn forget_bandwidth(&mut self) {
        self.bw = Rate::ZERO;
    }
}

impl Model {
    /// `bbr_check_full_bw_reached`.
    pub(super) fn check_full_bw_reached(&mut self, sample: &Sample) {
        if self.full_pipe.reached || !self.rounds.start || sample.app_limited {
            return;
        }
        if self.max_bw >= self.full_pipe.bw.scale(self.config.full_bw_growth) {
            self.full_pipe.bw = self.max_bw;
            self.full_pipe.count = 0;
            return;
        }
        self.full_pipe.count += 1;
        if self.full_pipe.count >= self.config.full_bw_rounds {
            self.full_pipe.reached = true;
            self.exit = Some(ExitReason::Chokepoint);
        }
    }

    /// `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, now: Timestamp) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.enter(Mode::Drain, "full_bw_reached");
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(now, self.in_flight) <= self.inflight(self.max_bw, 1.0)
        {
            self.reset_probe_bw_mode(now, "drained");
        }
    }

    /// `bbr_reset_mode`.
    pub(super) fn reset_mode(&mut self, now: Timestamp, trigger: &'static str) {
        if self.full_pipe.reached {
            self.reset_probe_bw_mode(now, trigger);
        } else {
            self.enter(Mode::Startup, trigger);
        }
    }
}
