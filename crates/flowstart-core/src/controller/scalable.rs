//! The controller's side of a scalable congestion avoidance (Prague): marks are counted one by one, and answered once per
//! round trip without recovery.

use super::{Controller, Phase};
use crate::event::{Decision, Ecn};
use crate::rtt::RttEstimator;

impl Controller {
    /// Whether data carries ECT(1), and each echo of marks has to be told with their number (RFC 9331, section 4).
    #[inline]
    pub fn scalable(&self) -> bool {
        self.scalable
    }

    /// New marks: whether the window has been reduced for them. Otherwise the marks that end startup are left, which count
    /// like a loss.
    pub(super) fn take_marks(&mut self, ecn: &Ecn, rtt: &RttEstimator) -> bool {
        let avoidance = self.avoidance.as_dyn();
        avoidance.on_mark(ecn);
        if self.phase == Phase::Startup {
            return false;
        }
        // A loss has taken more already.
        let lost = self.last_reduction.is_some_and(|point| ecn.position <= point);
        if !lost && avoidance.response_due(ecn.now) {
            let before = self.window.cwnd;
            let base = self.base(ecn.in_flight);
            let reduced = self.avoidance.as_dyn().on_ecn(ecn.now, base, self.window);
            let reduced = reduced.max(self.config.segment * self.config.min_window).min(before);
            self.window.ssthresh = reduced;
            self.set_cwnd(reduced);
            self.phase = Phase::Avoidance;
            self.log.note(ecn.now, Decision::WindowReduced { before, after: self.window.cwnd });
            self.update_pacing(rtt);
        }
        true
    }
}
