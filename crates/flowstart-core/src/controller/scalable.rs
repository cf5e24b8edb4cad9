//! The controller's side of a scalable congestion avoidance (Prague). It counts marks one by one and responds once per
//! round trip, without recovery.

use super::{Controller, Phase};
use crate::event::{Decision, Ecn};
use crate::rtt::RttEstimator;

impl Controller {
    /// New marks. Returns whether a scalable algorithm has responded. The marks of other algorithms, and those that end
    /// startup, count like a loss.
    pub(super) fn take_marks(&mut self, ecn: &Ecn, rtt: &RttEstimator) -> bool {
        let base = self.base(ecn.in_flight);
        let Some(avoidance) = self.avoidance.scalable() else { return false };
        avoidance.on_mark(ecn);
        if self.phase == Phase::Startup {
            return false;
        }
        // A loss has already reduced the window more.
        let lost = self.last_reduction.is_some_and(|point| ecn.position <= point);
        if !lost && avoidance.response_due(ecn.now) {
            let before = self.window.cwnd;
            let reduced = avoidance.on_ecn(ecn.now, base, self.window);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::AvoidanceConfig;
    use crate::controller::ControllerConfig;
    use crate::event::{Ack, ExitReason, Loss, Position, Sent};
    use crate::needs::Needs;
    use crate::path::PathKnowledge;
    use crate::startup::StartupConfig;
    use crate::test_support::acked;
    use crate::time::{Duration, Timestamp};
    use crate::units::Bytes;

    const SEGMENT: u64 = 1000;

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn rtt() -> RttEstimator {
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
        rtt
    }

    /// Prague after slow start from 100 segments ended with a mark: 50 segments, alpha 1, and everything up to position
    /// 1000 was sent before.
    fn after_startup() -> Controller {
        let startup = StartupConfig::SlowStart(Default::default());
        let mut controller = Controller::new(ControllerConfig {
            segment: Bytes::new(SEGMENT),
            initial_window: 100,
            pacing: None,
            ..ControllerConfig::new(startup, AvoidanceConfig::Prague(Default::default()))
        })
        .unwrap();
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt());
        assert!(
            controller.needs().contains(Needs::SCALABLE_MARKS) && controller.pacing_rate().is_some(),
            "it paces on a host that does not"
        );
        send(&mut controller, 1000);
        mark(&mut controller, 100, 1);
        assert!(!controller.in_startup());
        let exit = core::iter::from_fn(|| controller.take_decision())
            .any(|(_, decision)| matches!(decision, Decision::StartupExited { reason: ExitReason::Ecn, .. }));
        assert!(exit);
        controller.on_ack(&Ack { position: 1001, ..acked(at(200), SEGMENT) }, &rtt());
        controller
    }

    fn send(controller: &mut Controller, position: Position) {
        let (bytes, in_flight) = (Bytes::new(SEGMENT), Bytes::new(50 * SEGMENT));
        controller.on_sent(&Sent { now: at(100), bytes, in_flight, position, app_limited: false });
    }

    fn mark(controller: &mut Controller, ms: u64, position: Position) {
        let in_flight = Bytes::new(50 * SEGMENT);
        controller.on_ecn(&Ecn { now: at(ms), position, in_flight, packets: 1 }, &rtt());
    }

    fn lose(controller: &mut Controller, ms: u64, position: Position) {
        let in_flight = Bytes::new(50 * SEGMENT);
        let loss = Loss { now: at(ms), bytes: Bytes::new(SEGMENT), position, in_flight_before: in_flight, in_flight };
        controller.on_loss(&loss, &rtt());
    }

    #[test]
    fn marks_reduce_once_per_round_trip_and_need_no_recovery() {
        let mut controller = after_startup();
        assert_eq!(controller.cwnd(), Bytes::new(50 * SEGMENT));
        // Alpha is 1 still: half, and again a round trip later.
        mark(&mut controller, 210, 1002);
        assert_eq!(controller.cwnd(), Bytes::new(25 * SEGMENT));
        assert!(!controller.in_recovery());
        mark(&mut controller, 309, 1003);
        assert_eq!(controller.cwnd(), Bytes::new(25 * SEGMENT));
        mark(&mut controller, 310, 1004);
        assert_eq!(controller.cwnd(), Bytes::new(12_500));
    }

    #[test]
    fn a_loss_in_the_round_trip_of_a_mark_still_counts_and_marks_of_its_window_do_not() {
        let mut controller = after_startup();
        mark(&mut controller, 210, 1002);
        send(&mut controller, 2000);
        lose(&mut controller, 220, 1003);
        assert_eq!(controller.cwnd(), Bytes::new(12_500));
        // Sent before the loss was known.
        mark(&mut controller, 400, 2000);
        assert_eq!(controller.cwnd(), Bytes::new(12_500));
        mark(&mut controller, 410, 2001);
        assert_eq!(controller.cwnd(), Bytes::new(6250));
    }
}
