//! Losses and marks: a reduction of the window for each congestion event.

use super::recovery::Recovery;
use super::{Controller, Phase, ReductionBase};
use crate::event::{Decision, Ecn, ExitReason, Loss, LostPacket, Position};
use crate::launch::Continuation;
use crate::rtt::RttEstimator;
use crate::startup::Step;
use crate::units::Bytes;

impl Controller {
    /// A packet was declared lost. Needed only for rate samples; comes before the [`Controller::on_loss`] that sums up.
    pub fn on_packet_lost(&mut self, lost: &LostPacket) {
        if let (Phase::Integrated { .. }, Some(avoidance)) = (self.phase, self.avoidance.integrated()) {
            avoidance.on_packet_lost(lost);
        }
    }

    /// Data has to be sent again, not counting probes and proactive retransmissions. Call it once for every
    /// retransmission, before the [`Controller::on_loss`] that sums up. `position` is that of the data's first
    /// transmission. A host that knows only sums reports them with the highest position.
    pub fn on_retransmission(&mut self, position: Position, bytes: Bytes) {
        if self.phase == Phase::Startup && self.earlier_path.is_none_or(|end| position > end) {
            self.startup.as_dyn().on_retransmission(position, bytes);
        }
    }

    /// Packets were declared lost, by a timer. Those that an acknowledgement reveals are part of its
    /// [`AckFrame`](super::AckFrame).
    pub fn on_loss(&mut self, loss: &Loss, rtt: &RttEstimator) {
        if self.phase == Phase::Startup {
            self.startup.as_dyn().on_lost(loss);
        }
        if self.last_reduction.is_some_and(|point| loss.position <= point) {
            return;
        }
        if let Phase::Integrated { .. } = self.phase {
            self.start_integrated_recovery(loss);
            return;
        }
        self.reduce(loss, ExitReason::Loss);
        self.update_pacing(rtt);
    }

    /// The receiver echoed new CE marks. They are a congestion event like a loss (RFC 3168; RFC 9002, section 7.1).
    /// [`LossBased::on_ecn`](crate::avoidance::LossBased::on_ecn) says what remains of the window, also when the marks
    /// end startup.
    pub(crate) fn on_ecn(&mut self, ecn: &Ecn, rtt: &RttEstimator) {
        if self.take_marks(ecn, rtt) {
            return;
        }
        if self.last_reduction.is_some_and(|point| ecn.position <= point) {
            // The marks would also have reduced the window, so a spurious loss does not restore it.
            self.undo.clear();
            return;
        }
        if let Phase::Integrated { .. } = self.phase {
            self.last_reduction = Some(self.highest_sent);
            self.sensing = None;
            if let Some(avoidance) = self.avoidance.integrated() {
                avoidance.on_mark(ecn);
            }
            self.follow_integrated(ecn.now);
            return;
        }
        let event = Loss {
            now: ecn.now,
            bytes: Bytes::ZERO,
            position: ecn.position,
            in_flight_before: ecn.in_flight,
            in_flight: ecn.in_flight,
        };
        self.reduce(&event, ExitReason::Ecn);
        self.update_pacing(rtt);
    }

    pub(super) fn base(&self, in_flight: Bytes) -> Bytes {
        match self.config.reduction_base {
            ReductionBase::Cwnd => self.window.cwnd,
            ReductionBase::FlightSize => in_flight,
        }
    }

    /// An approval of which nothing has left is void: neither a reduction nor its undo uses it.
    pub(super) fn give_up_approval(&mut self) {
        if self.phase == Phase::Startup
            && let Some(window) = self.startup.as_dyn().without_approval()
        {
            self.window = window;
        }
    }

    fn reduce(&mut self, event: &Loss, reason: ExitReason) {
        let before = self.window.cwnd;
        self.give_up_approval();
        if self.config.undo {
            // A mark is not an error of the transport.
            let undo = (reason == ExitReason::Loss).then(|| self.state_to_restore(false));
            self.undo.set(undo);
        }
        let validated =
            self.validation.as_mut().and_then(|validation| validation.on_congestion(event.now, event.in_flight_before));
        let base = validated.map_or_else(|| self.base(event.in_flight_before), |half| half * 2);
        let Some(avoidance) = self.avoidance.conventional() else { return };
        let reduced = match reason {
            ExitReason::Ecn => avoidance.on_ecn(event.now, base, self.window),
            _ => avoidance.on_congestion(event.now, base, self.window),
        };
        let reduced = validated.unwrap_or(reduced).max(self.config.segment * self.config.min_window);
        self.last_reduction = Some(self.highest_sent);
        if self.phase == Phase::Startup {
            let step = match self.startup.as_dyn().on_congestion(event, self.window, reduced) {
                Step::Exit(continuation) if reason != ExitReason::Loss => {
                    Step::Exit(Continuation { reason, ..continuation })
                }
                step => step,
            };
            self.take_step(event.now, step);
        } else {
            self.window.ssthresh = reduced;
            self.set_cwnd(reduced);
            self.phase = Phase::Avoidance;
        }
        let recover_fs = event.in_flight_before.max(self.config.segment);
        self.recovery = Some(Recovery::new(self.highest_sent, self.window.cwnd, recover_fs));
        self.log.note(event.now, Decision::WindowReduced { before, after: self.window.cwnd });
    }
}
