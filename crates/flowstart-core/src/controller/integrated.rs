//! The controller's side of an integrated congestion avoidance (BBR): it follows the algorithm and interferes with
//! nothing.

use super::launch::sendable;
use super::recovery::Recovery;
use super::{Controller, Phase};
use crate::event::{Ack, Decision, Loss, Timeout};
use crate::launch::Launch;
use crate::rtt::RttEstimator;
use crate::startup::Step;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::window::Window;

impl Controller {
    /// The integrated algorithm takes over with the scheme's launch.
    pub(super) fn hand_over(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        // The algorithm knows the launch's rate and goes on from it.
        self.launch_rate = None;
        if !launch.knows_the_path() {
            // The host's burst of an initial window; after the first acknowledgement it is the algorithm's.
            self.launch_burst = launch.burst.or(self.config.pacing.map(|pacing| self.config.segment * pacing.burst));
            self.sensing = Some(self.window);
        }
        if let Some(avoidance) = self.avoidance.integrated() {
            avoidance.on_launch(now, launch, rtt);
        }
        self.follow_integrated(now);
        self.pace_by_host(rtt);
    }

    /// Applies the integrated algorithm's response to the last event.
    pub(super) fn follow_integrated(&mut self, now: Timestamp) {
        let Some(avoidance) = self.avoidance.integrated() else { return };
        while let Some((phase, trigger)) = avoidance.take_phase() {
            self.log.note(now, Decision::PhaseEntered { phase, trigger });
        }
        if let Some(reason) = avoidance.take_exit() {
            let Window { cwnd, ssthresh } = self.window;
            self.log.note(now, Decision::StartupExited { reason, cwnd, ssthresh });
        }
        self.scheme_rate = sendable(avoidance.pacing_rate());
        self.send_group = avoidance.send_group().filter(|_| self.config.pacing.is_none()).unwrap_or(Bytes::ZERO);
        let starting = avoidance.is_starting();
        self.phase = Phase::Integrated { starting };
        self.sensing = self.sensing.filter(|_| starting);
    }

    pub(super) fn take_integrated_ack(&mut self, ack: &Ack, rtt: &RttEstimator) {
        let recovered = self.recovery.is_some_and(|recovery| ack.position > recovery.point);
        if recovered {
            self.recovery = None;
        }
        let Some(avoidance) = self.avoidance.integrated() else { return };
        if recovered {
            avoidance.on_recovered();
        }
        let cwnd = avoidance.on_ack(ack, self.window, rtt);
        self.set_cwnd(cwnd);
        self.sense_late_launch(ack, rtt);
        if recovered {
            self.log.note(ack.now, Decision::Recovered { cwnd: self.window.cwnd });
        }
        self.follow_integrated(ack.now);
        self.pace_by_host(rtt);
    }

    /// An acknowledgement brought the feedback of the path's routers: the change of throughput in bytes per second.
    /// Comes with the [`Controller::on_ack_frame`] of the same acknowledgement, before or after it.
    pub fn on_feedback(&mut self, now: Timestamp, feedback: i32, rtt: &RttEstimator) {
        if let (Phase::Integrated { .. }, Some(avoidance)) = (self.phase, self.avoidance.integrated()) {
            let cwnd = avoidance.on_feedback(feedback, self.window, rtt);
            self.set_cwnd(cwnd);
            self.follow_integrated(now);
            self.pace_by_host(rtt);
        }
    }

    /// If the algorithm has no rate, a pacing host uses its own rule.
    fn pace_by_host(&mut self, rtt: &RttEstimator) {
        if let (None, Some(pacing)) = (self.scheme_rate, self.config.pacing) {
            let window = self.window.cwnd.scale(pacing.avoidance_gain).max(Bytes::new(1));
            self.host_rate = Rate::from_transfer(window, rtt.smoothed());
        }
    }

    /// A scheme that launches with the first acknowledgements is asked until it sets a rate, ends, or has a loss.
    fn sense_late_launch(&mut self, ack: &Ack, rtt: &RttEstimator) {
        let Some(window) = self.sensing else { return };
        let startup = self.startup.as_dyn();
        match startup.on_ack(ack, window, true, rtt) {
            Step::Exit(_) => self.sensing = None,
            Step::Continue { cwnd } => {
                self.sensing = Some(Window { cwnd, ..window });
                if let Some(rate) = sendable(startup.pacing_rate()) {
                    self.sensing = None;
                    let cwnd = self.advised_window(ack.now, cwnd);
                    let rate = self.advice.map_or(rate, |advice| advice.cap_rate(rate));
                    if let Some(avoidance) = self.avoidance.integrated() {
                        let cwnd = avoidance.on_late_launch(self.window, cwnd, rate);
                        self.set_cwnd(cwnd);
                    }
                }
                self.note_phase(ack.now);
            }
        }
    }

    pub(super) fn start_integrated_recovery(&mut self, loss: &Loss) {
        self.sensing = None;
        self.last_reduction = Some(self.highest_sent);
        let Some(avoidance) = self.avoidance.integrated() else { return };
        let cwnd = avoidance.on_congestion(self.window);
        self.set_cwnd(cwnd);
        self.recovery = Some(Recovery::new(self.highest_sent, self.window.cwnd, loss.in_flight_before));
        self.follow_integrated(loss.now);
    }

    pub(super) fn time_out_integrated(&mut self, timeout: &Timeout) {
        let before = self.window.cwnd;
        let loss = Loss {
            now: timeout.now,
            bytes: timeout.in_flight_before,
            position: self.highest_sent,
            in_flight_before: timeout.in_flight_before,
            in_flight: Bytes::ZERO,
        };
        self.start_integrated_recovery(&loss);
        self.launch_burst = None;
        let least = self.config.segment * self.config.timeout_window;
        if let Some(avoidance) = self.avoidance.integrated() {
            let cwnd = avoidance.on_timeout(timeout.now, self.window, least);
            self.set_cwnd(cwnd);
        }
        self.log.note(timeout.now, Decision::Collapsed { before, ssthresh: self.window.ssthresh });
        self.follow_integrated(timeout.now);
    }
}
