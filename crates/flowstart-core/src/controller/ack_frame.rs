//! The content of one acknowledgement, and the order of its processing.
//!
//! Reference: RFC 9002, appendix A.7, `OnAckReceived`: marks and losses are congestion events before acknowledged data
//! let the window grow, so the reduction starts from the window at the time when the packets left. The transport has
//! updated the RTT by then, as in A.7.
//!
//! Difference: A.7 processes marks before losses, which makes no difference there, because both reduce alike and only
//! the first of them counts. Here losses come first: congestion avoidance may respond to marks more gently (RFC 8511),
//! but a frame with both needs the response to a loss. Its marks still count, because they prevent an undo of the
//! reduction.

use super::Controller;
use crate::event::{Ack, Ecn, Loss, Timeout};
use crate::needs::Needs;
use crate::rtt::RttEstimator;
use crate::units::Bytes;

/// The content of one acknowledgement: an ACK frame of QUIC, or an acknowledgement of TCP with its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckFrame {
    /// The sum of what it reveals as lost. Lost packets and retransmissions are reported one by one before
    /// ([`Controller::on_packet_lost`], [`Controller::on_retransmission`]).
    pub lost: Option<Loss>,
    /// The losses establish persistent congestion (RFC 9002, section 7.6).
    pub persistent_congestion: bool,
    /// The newly echoed CE marks.
    pub marked: Option<Ecn>,
    /// The newly acknowledged data.
    pub delivered: Option<Ack>,
    /// It is a duplicate acknowledgement, which lets no window grow (RFC 5681, section 3.1). Its delivered data count
    /// only in recovery and for rate samples. QUIC has no duplicates.
    pub duplicate: bool,
}

impl Controller {
    /// An acknowledgement arrived, and `rtt` includes its sample.
    pub fn on_ack_frame(&mut self, frame: &AckFrame, rtt: &RttEstimator) {
        if let Some(lost) = &frame.lost {
            self.on_loss(lost, rtt);
            if frame.persistent_congestion {
                let timeout = Timeout { now: lost.now, in_flight_before: lost.in_flight_before };
                self.on_persistent_congestion(&timeout, rtt);
            }
        }
        if let Some(marked) = &frame.marked {
            self.on_ecn(marked, rtt);
        }
        let Some(mut ack) = frame.delivered else { return };
        if frame.duplicate && !self.in_recovery() && !self.needs.contains(Needs::RATE_SAMPLES) {
            return;
        }
        if let (Some(_), Some(recovery)) = (frame.marked, self.recovery)
            && recovery.prr_out == Bytes::ZERO
        {
            // Nothing has left since recovery began, so this acknowledgement cannot end it. A cumulative one may lie
            // beyond the last byte that was sent.
            ack.position = ack.position.min(recovery.point);
        }
        self.on_ack(&ack, rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::{AvoidanceConfig, cubic, reno};
    use crate::controller::{ControllerConfig, Reduction};
    use crate::event::{Decision, ExitReason, Position, Sent};
    use crate::path::PathKnowledge;
    use crate::startup::StartupConfig;
    use crate::test_support::acked;
    use crate::time::{Duration, Timestamp};

    const SEGMENT: u64 = 1000;

    fn rtt() -> RttEstimator {
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
        rtt
    }

    /// Slow start that has sent its initial window, 10 segments.
    fn full(change: impl FnOnce(&mut ControllerConfig)) -> Controller {
        let startup = StartupConfig::SlowStart(Default::default());
        let mut config = ControllerConfig {
            segment: Bytes::new(SEGMENT),
            ..ControllerConfig::new(startup, AvoidanceConfig::Cubic(cubic::Config::default()))
        };
        change(&mut config);
        let mut controller = Controller::new(config).unwrap();
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt());
        (1..=10).for_each(|position| send(&mut controller, position, position));
        controller
    }

    fn send(controller: &mut Controller, position: Position, in_flight: u64) {
        let (bytes, in_flight) = (Bytes::new(SEGMENT), Bytes::new(in_flight * SEGMENT));
        controller.on_sent(&Sent { now: Timestamp::ZERO, bytes, in_flight, position, app_limited: false });
    }

    /// What acknowledges this many segments of ten, and `position`.
    fn delivered(packets: u64, position: Position) -> Option<Ack> {
        let bytes = Bytes::new(packets * SEGMENT);
        let (in_flight_before, in_flight) = (Bytes::new(10 * SEGMENT), Bytes::new((10 - packets) * SEGMENT));
        let ack = acked(Timestamp::ZERO, packets * SEGMENT);
        Some(Ack { bytes, packets, position, in_flight_before, in_flight, ..ack })
    }

    fn marked(position: Position) -> Option<Ecn> {
        Some(Ecn { now: Timestamp::ZERO, position, in_flight: Bytes::new(10 * SEGMENT), packets: 1 })
    }

    fn lost(position: Position, in_flight: u64) -> Option<Loss> {
        let (bytes, in_flight_before) = (Bytes::new(SEGMENT), Bytes::new(10 * SEGMENT));
        let in_flight = Bytes::new(in_flight * SEGMENT);
        Some(Loss { now: Timestamp::ZERO, bytes, position, in_flight_before, in_flight })
    }

    fn segments(controller: &Controller) -> f64 {
        controller.cwnd().get() as f64 / SEGMENT as f64
    }

    fn exit(controller: &mut Controller) -> Option<ExitReason> {
        core::iter::from_fn(|| controller.take_decision()).find_map(|(_, decision)| match decision {
            Decision::StartupExited { reason, .. } => Some(reason),
            _ => None,
        })
    }

    #[test]
    fn marks_reduce_the_window_before_their_acknowledgement_lets_it_grow() {
        let mut controller = full(|_| {});
        controller.on_ack_frame(
            &AckFrame { marked: marked(10), delivered: delivered(10, 10), ..AckFrame::default() },
            &rtt(),
        );
        // CUBIC leaves 0.7 of 10, not of the 20 that slow start makes of it; what left before does not grow it again.
        assert_eq!(segments(&controller), 7.0);
        assert_eq!(exit(&mut controller), Some(ExitReason::Ecn));
        assert!(controller.in_recovery());
    }

    #[test]
    fn losses_reduce_the_window_before_their_acknowledgement_lets_it_grow() {
        let mut controller = full(|_| {});
        controller
            .on_ack_frame(&AckFrame { lost: lost(1, 0), delivered: delivered(9, 10), ..AckFrame::default() }, &rtt());
        assert_eq!((segments(&controller), exit(&mut controller)), (7.0, Some(ExitReason::Loss)));
    }

    #[test]
    fn without_congestion_an_acknowledgement_lets_the_window_grow() {
        let mut controller = full(|_| {});
        controller.on_ack_frame(&AckFrame { delivered: delivered(10, 10), ..AckFrame::default() }, &rtt());
        assert_eq!(segments(&controller), 20.0);
    }

    #[test]
    fn a_loss_and_a_mark_in_one_frame_are_one_event_and_a_loss() {
        let gentle = reno::Config { beta_ecn: Some(0.8), ..reno::Config::default() };
        let mut controller = full(|config| (config.avoidance, config.undo) = (AvoidanceConfig::Reno(gentle), true));
        let frame =
            AckFrame { lost: lost(1, 0), marked: marked(10), delivered: delivered(9, 10), ..AckFrame::default() };
        controller.on_ack_frame(&frame, &rtt());
        // Reno halves 10 for a loss; for marks alone 8 would be left.
        assert_eq!((segments(&controller), exit(&mut controller)), (5.0, Some(ExitReason::Loss)));
        // The loss was spurious, but the mark also requires a reduction.
        controller.on_spurious_loss(Timestamp::ZERO, &rtt());
        assert_eq!(segments(&controller), 5.0);
    }

    #[test]
    fn persistent_congestion_collapses_the_window_once() {
        let mut controller = full(|_| {});
        let frame = AckFrame {
            lost: lost(9, 0),
            persistent_congestion: true,
            marked: marked(10),
            delivered: delivered(1, 10),
            ..AckFrame::default()
        };
        controller.on_ack_frame(&frame, &rtt());
        // ssthresh is 0.7 of 10; slow start begins with 2, and what was acknowledged adds 1. The mark changes nothing.
        assert_eq!((segments(&controller), controller.ssthresh()), (3.0, Bytes::new(7 * SEGMENT)));
    }

    #[test]
    fn a_duplicate_counts_in_recovery_only() {
        let mut controller = full(|config| config.reduction = Reduction::Prr);
        let duplicate = AckFrame { delivered: delivered(1, 0), duplicate: true, ..AckFrame::default() };
        controller.on_ack_frame(&duplicate, &rtt());
        assert_eq!(segments(&controller), 10.0);
        // Recovery from 10 to 7 segments begins with the loss that the next one reveals. PRR: ceil(1 * 7 / 10) = 1
        // segment may leave beside the 8 in flight, with 1 delivered.
        let ack = delivered(1, 0).map(|ack| Ack { in_flight: Bytes::new(8 * SEGMENT), ..ack });
        controller.on_ack_frame(&AckFrame { lost: lost(1, 8), delivered: ack, ..duplicate }, &rtt());
        assert_eq!(segments(&controller), 9.0);
    }

    #[test]
    fn an_acknowledgement_of_everything_does_not_end_the_recovery_that_its_mark_begins() {
        let mut controller = full(|config| config.transition_growth = true);
        // TCP: 11 is expected next.
        let frame = AckFrame { marked: marked(11), delivered: delivered(10, 11), ..AckFrame::default() };
        controller.on_ack_frame(&frame, &rtt());
        assert!(controller.in_recovery());
        assert_eq!(segments(&controller), 7.0);
        // Packets that leave from now on do.
        send(&mut controller, 11, 1);
        controller.on_ack_frame(&AckFrame { delivered: delivered(1, 12), ..AckFrame::default() }, &rtt());
        assert!(!controller.in_recovery());
    }
}
