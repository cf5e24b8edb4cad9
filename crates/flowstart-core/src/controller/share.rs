//! The controller's side of a window that connections to the same peer share ([`Ensemble`](crate::ensemble::Ensemble)).

use super::{Controller, Phase};
use crate::event::Decision;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::Bytes;
use crate::window::Window;

impl Controller {
    /// The window to report to the ensemble; `None` while others may not change it: in recovery, whose end sets it, and
    /// beside an integrated algorithm.
    pub fn shared_window(&self) -> Option<Window> {
        (self.recovery.is_none() && !self.is_integrated()).then_some(self.window)
    }

    /// Others gave window or took it: that is no congestion, and the algorithm goes on from `cwnd`. After startup
    /// ssthresh follows, so the flow neither repeats slow start nor falls back to a window that is another's now.
    pub fn take_share(&mut self, now: Timestamp, cwnd: Bytes, rtt: &RttEstimator) {
        if self.shared_window().is_none() {
            return;
        }
        let before = self.window.cwnd;
        self.set_cwnd(cwnd.max(self.config.segment * self.config.min_window));
        if self.phase == Phase::Avoidance {
            self.window.ssthresh = self.window.cwnd;
            if let Some(avoidance) = self.avoidance.conventional() {
                avoidance.on_share(now, before, self.window);
            }
        } else if let Phase::Restart { .. } = self.phase
            && self.window.cwnd >= self.window.ssthresh
        {
            // Slow start after a timeout has reached its end.
            self.window.ssthresh = self.window.cwnd;
            self.enter_avoidance(now);
        }
        self.undo.clear();
        self.log.note(now, Decision::WindowShared { before, after: self.window.cwnd });
        self.update_pacing(rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::{AvoidanceConfig, cubic};
    use crate::controller::ControllerConfig;
    use crate::path::{Concurrent, PathKnowledge};
    use crate::startup::{StartupConfig, ensemble_sharing};
    use crate::time::Duration;

    fn launched(concurrent: Option<Window>) -> (Controller, RttEstimator) {
        let startup = StartupConfig::EnsembleSharing(ensemble_sharing::Config::default());
        let config = ControllerConfig::new(startup, AvoidanceConfig::Cubic(cubic::Config::default()));
        let mut controller = Controller::new(config).unwrap();
        let mut rtt = RttEstimator::new(Duration::from_millis(1000));
        rtt.update(Timestamp::ZERO, Duration::from_millis(60), Duration::ZERO);
        let concurrent = concurrent.map(|window| Concurrent { rtt: Duration::from_millis(60), window });
        let path = PathKnowledge { concurrent, ..PathKnowledge::default() };
        controller.launch(Timestamp::ZERO, &path, &rtt);
        (controller, rtt)
    }

    #[test]
    fn in_slow_start_only_the_window_moves() {
        let (mut controller, rtt) = launched(None);
        assert_eq!(controller.shared_window().unwrap().cwnd, Bytes::new(12_000));
        controller.take_share(Timestamp::ZERO, Bytes::new(6_000), &rtt);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(6_000), Bytes::MAX));
        assert!(controller.in_startup());
        // Never below the smallest window, two segments of 1200 bytes.
        controller.take_share(Timestamp::ZERO, Bytes::ZERO, &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(2_400));
    }

    #[test]
    fn in_congestion_avoidance_ssthresh_follows() {
        let known = Window { cwnd: Bytes::new(60_000), ssthresh: Bytes::new(60_000) };
        let (mut controller, rtt) = launched(Some(known));
        assert!(!controller.in_startup());
        for share in [30_000, 90_000].map(Bytes::new) {
            controller.take_share(Timestamp::ZERO, share, &rtt);
            assert_eq!((controller.cwnd(), controller.ssthresh()), (share, share));
            assert!(!controller.in_startup());
        }
    }
}
