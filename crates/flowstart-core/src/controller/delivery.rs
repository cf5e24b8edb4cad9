//! Sent and delivered data: growth of the window, and the transition from startup to congestion avoidance.

use super::{Controller, GrowthRule, Phase, Reduction};
use crate::event::{Ack, Decision, Sent};
use crate::launch::Continuation;
use crate::rtt::RttEstimator;
use crate::startup::Step;
use crate::time::Timestamp;
use crate::units::Bytes;

impl Controller {
    /// A packet that counts as in flight was sent.
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        self.highest_sent = self.highest_sent.max(sent.position);
        if let Some(recovery) = &mut self.recovery {
            recovery.prr_out += sent.bytes;
        }
        if let Some(validation) = &mut self.validation {
            validation.on_sent(sent, self.window);
        }
        if self.phase == Phase::Startup {
            let startup = self.startup.as_dyn();
            startup.on_sent(sent);
            self.scheme_rate = self.advised_scheme_rate();
            self.note_phase(sent.now);
        } else if let Phase::Integrated { .. } = self.phase {
            if self.sensing.is_some() {
                self.startup.as_dyn().on_sent(sent);
            }
            if let Some(avoidance) = self.avoidance.integrated() {
                avoidance.on_sent(sent);
            }
            self.follow_integrated(sent.now);
        } else if let Phase::Restart { by_scheme: true } = self.phase {
            self.startup.as_dyn().on_sent(sent);
        }
    }

    /// Data was sent again because of [`Output::proactive_retransmit`](super::Output::proactive_retransmit); this used
    /// `bytes` of the grant.
    pub fn on_proactive_retransmission(&mut self, bytes: Bytes) {
        self.proactive = self.proactive.saturating_sub(bytes);
    }

    /// Data was delivered.
    pub(crate) fn on_ack(&mut self, ack: &Ack, rtt: &RttEstimator) {
        if self.earlier_path.is_some_and(|end| ack.position <= end) {
            return;
        }
        self.take_ack(ack, rtt);
        if self.phase == Phase::Startup {
            self.proactive += self.startup.as_dyn().proactive_retransmit(ack);
        }
    }

    #[inline]
    fn take_ack(&mut self, ack: &Ack, rtt: &RttEstimator) {
        self.launch_rate = None;
        self.launch_burst = None;
        self.acknowledged = self.acknowledged.max(Some(ack.position));
        if let Phase::Integrated { .. } = self.phase {
            return self.take_integrated_ack(ack, rtt);
        }
        if let Some(avoidance) = self.avoidance.scalable() {
            avoidance.on_delivered(ack, rtt);
        }
        if let Some(validation) = &mut self.validation {
            validation.on_ack(ack, self.window.cwnd, self.recovery.is_some(), rtt);
            if let Some(recovery) = &mut self.recovery {
                recovery.delivered += ack.bytes;
            }
        }
        if let Some(mut recovery) = self.recovery {
            if ack.position > recovery.point {
                self.recovery = None;
                if self.config.reduction != Reduction::Immediate {
                    self.set_cwnd(recovery.target);
                }
                if let Some(validation) = &mut self.validation
                    && let Some(cwnd) = validation.on_recovered(recovery.lost(ack.in_flight))
                    && self.phase == Phase::Avoidance
                {
                    self.set_cwnd(cwnd.max(self.config.segment * self.config.min_window));
                    self.window.ssthresh = self.window.cwnd;
                }
                if self.phase == Phase::Startup {
                    let step = self.startup.as_dyn().on_recovered(ack.now, self.window);
                    self.take_step(ack.now, step);
                }
                self.log.note(ack.now, Decision::Recovered { cwnd: self.window.cwnd });
                self.update_pacing(rtt);
                if !self.config.transition_growth {
                    return;
                }
                self.grow(ack, rtt);
                self.update_pacing(rtt);
                return;
            }
            let step = match self.phase {
                Phase::Startup => self.startup.as_dyn().on_ack_in_recovery(ack, self.window, rtt),
                Phase::Restart { .. } | Phase::Avoidance | Phase::Integrated { .. } => None,
            };
            if let Some(step) = step {
                self.take_step(ack.now, step);
                if self.phase != Phase::Startup {
                    self.recovery = None;
                }
                self.update_pacing(rtt);
                return;
            }
            if let Some(cwnd) = recovery.on_ack(ack, self.config.reduction, self.config.segment) {
                self.window.cwnd = cwnd;
            }
            self.recovery = Some(recovery);
            self.update_pacing(rtt);
            return;
        }
        self.grow(ack, rtt);
        self.update_pacing(rtt);
    }

    /// Growth for what `ack` delivered, outside recovery.
    fn grow(&mut self, ack: &Ack, rtt: &RttEstimator) {
        let (cwnd, segment) = (self.window.cwnd, self.config.segment);
        let may_grow = self.validation.as_ref().is_none_or(|validation| validation.may_grow(ack, cwnd, segment));
        let in_use = may_grow && self.in_use(ack);
        match self.phase {
            Phase::Startup | Phase::Restart { by_scheme: true } => {
                let step = self.startup.as_dyn().on_ack(ack, self.window, in_use, rtt);
                if self.phase == Phase::Startup {
                    self.take_step(ack.now, step);
                } else {
                    self.take_step_again(ack.now, step);
                }
                if self.config.transition_growth && in_use && self.phase == Phase::Avoidance {
                    self.grow_by_avoidance(ack, rtt);
                }
            }
            Phase::Restart { by_scheme: false } if in_use => {
                let grown = self.config.startup_context().slow_start_growth(self.window.cwnd, ack);
                if grown >= self.window.ssthresh {
                    self.set_cwnd(self.window.ssthresh.max(self.window.cwnd));
                    self.enter_avoidance(ack.now);
                } else {
                    self.set_cwnd(grown);
                }
            }
            Phase::Avoidance if in_use => self.grow_by_avoidance(ack, rtt),
            Phase::Restart { .. } | Phase::Integrated { .. } => {}
            Phase::Avoidance => {
                if let Some(avoidance) = self.avoidance.conventional() {
                    avoidance.on_underused(ack.now);
                }
            }
        }
    }

    #[inline]
    fn grow_by_avoidance(&mut self, ack: &Ack, rtt: &RttEstimator) {
        if let Some(avoidance) = self.avoidance.conventional() {
            let grown = avoidance.on_ack(ack, self.window, rtt);
            self.set_cwnd(grown);
        }
    }

    /// Whether the sender used its window, so that it may grow.
    fn in_use(&self, ack: &Ack) -> bool {
        let (cwnd, in_flight, segment) = (self.window.cwnd, ack.in_flight_before, self.config.segment);
        let slow_start = cwnd < self.window.ssthresh;
        match self.config.growth {
            GrowthRule::Always => true,
            GrowthRule::NotAppLimited => !ack.app_limited,
            GrowthRule::HalfWindow if slow_start => in_flight * 2 > cwnd,
            GrowthRule::HalfWindow => in_flight + segment > cwnd,
            GrowthRule::ThreeSegmentsFree => in_flight + segment * 3 >= cwnd || (slow_start && in_flight * 2 > cwnd),
        }
    }

    pub(super) fn note_phase(&mut self, now: Timestamp) {
        if let Some((phase, trigger)) = self.startup.as_dyn().take_phase() {
            self.log.note(now, Decision::PhaseEntered { phase, trigger });
        }
    }

    pub(super) fn take_step(&mut self, now: Timestamp, step: Step) {
        self.note_phase(now);
        match step {
            Step::Continue { cwnd } => match self.forbidding(cwnd) {
                Some(advice) => self.cap_growth(now, advice, cwnd),
                None => self.set_cwnd(cwnd),
            },
            Step::Exit(continuation) => {
                self.set_cwnd(continuation.cwnd);
                self.exit_startup(now, continuation);
            }
        }
    }

    /// The scheme's rule in a slow start after a timeout. Startup is over already.
    fn take_step_again(&mut self, now: Timestamp, step: Step) {
        match step {
            Step::Continue { cwnd } => self.set_cwnd(cwnd),
            Step::Exit(Continuation { cwnd, ssthresh, .. }) => {
                self.window.ssthresh = ssthresh;
                self.set_cwnd(cwnd);
                self.phase = Phase::Restart { by_scheme: false };
                if self.window.cwnd >= ssthresh {
                    self.enter_avoidance(now);
                }
            }
        }
    }

    pub(super) fn exit_startup(&mut self, now: Timestamp, Continuation { cwnd, ssthresh, reason }: Continuation) {
        self.window.ssthresh = ssthresh;
        self.log.note(now, Decision::StartupExited { reason, cwnd, ssthresh });
        if cwnd < ssthresh {
            self.phase = Phase::Restart { by_scheme: false };
        } else {
            self.enter_avoidance(now);
        }
    }

    pub(super) fn enter_avoidance(&mut self, now: Timestamp) {
        self.phase = Phase::Avoidance;
        if let Some(avoidance) = self.avoidance.conventional() {
            avoidance.on_enter(now, self.window);
        }
    }
}
