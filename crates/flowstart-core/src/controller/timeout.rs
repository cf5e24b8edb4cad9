//! Retransmission timeouts and persistent congestion: slow start from the smallest window.

use super::recovery::Recovery;
use super::{Controller, Phase, SlowStartAfterTimeout, TimeoutReduction};
use crate::event::{Decision, ExitReason, Timeout};
use crate::rtt::RttEstimator;

impl Controller {
    /// A retransmission timeout: slow start from the smallest window. If the timer fires again before any position is
    /// acknowledged, the same segment was lost again, and ssthresh stays (RFC 5681, section 3.1). Otherwise it is
    /// reduced as [`ControllerConfig::timeout_reduction`](super::ControllerConfig::timeout_reduction) says.
    pub fn on_timeout(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        if let Phase::Integrated { .. } = self.phase {
            return self.time_out_integrated(timeout);
        }
        self.give_up_approval();
        let repeated = self.timed_out_at == Some(self.acknowledged);
        self.timed_out_at = Some(self.acknowledged);
        let undo = self.undo_of_timeout(repeated);
        match (self.config.timeout_reduction, self.recovery) {
            (TimeoutReduction::HalfWindow, _) => self.halve_ssthresh(),
            (TimeoutReduction::OncePerWindow, Some(recovery)) => self.keep_reduced(recovery),
            _ if repeated => {}
            _ => {
                let base = self.base(timeout.in_flight_before);
                if let Some(avoidance) = self.avoidance.conventional() {
                    let reduced = avoidance.on_congestion(timeout.now, base, self.window);
                    self.window.ssthresh = reduced.max(self.config.segment * 2);
                }
            }
        }
        self.collapse(timeout, rtt);
        self.undo.set(undo);
    }

    /// Persistent congestion: slow start from the smallest window, up to the ssthresh that the loss has set (RFC 9002,
    /// section 7.6.2) unless [`ControllerConfig::timeout_reduction`](super::ControllerConfig::timeout_reduction) says
    /// otherwise. Comes after the [`Controller::on_loss`] of the packets that establish it.
    pub fn on_persistent_congestion(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        if let Phase::Integrated { .. } = self.phase {
            return self.time_out_integrated(timeout);
        }
        match (self.config.timeout_reduction, self.recovery) {
            (TimeoutReduction::HalfWindow, _) => self.halve_ssthresh(),
            (_, Some(recovery)) => self.keep_reduced(recovery),
            _ => {}
        }
        self.collapse(timeout, rtt);
    }

    fn halve_ssthresh(&mut self) {
        self.window.ssthresh = (self.window.cwnd / 2).max(self.config.segment * 2);
    }

    /// The target of recovery becomes ssthresh, even if the scheme has another one.
    fn keep_reduced(&mut self, recovery: Recovery) {
        self.window.ssthresh = self.window.ssthresh.min(recovery.target);
    }

    fn collapse(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        let before = self.window.cwnd;
        if let Some(validation) = &mut self.validation {
            validation.on_timeout(timeout.now);
        }
        if let Some(avoidance) = self.avoidance.conventional() {
            avoidance.on_timeout();
        }
        self.set_cwnd(self.config.segment * self.config.timeout_window);
        self.recovery = None;
        self.undo.clear();
        self.last_reduction = Some(self.highest_sent);
        self.launch_rate = None;
        self.launch_burst = None;
        if self.phase == Phase::Startup {
            let (cwnd, ssthresh) = (self.window.cwnd, self.window.ssthresh);
            self.log.note(timeout.now, Decision::StartupExited { reason: ExitReason::Timeout, cwnd, ssthresh });
        }
        let by_scheme = self.config.slow_start_after_timeout == SlowStartAfterTimeout::Scheme
            && self.startup.as_dyn().on_restart(timeout.now, self.highest_sent);
        self.phase = Phase::Restart { by_scheme };
        self.log.note(timeout.now, Decision::Collapsed { before, ssthresh: self.window.ssthresh });
        self.update_pacing(rtt);
    }
}
