//! The controller's side of congestion window validation: the effect of idle time and lack of data on the window.

use super::{Controller, Phase, Resume, WindowValidation};
use crate::event::Decision;
use crate::path::PathKnowledge;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::window::Window;

impl Controller {
    /// Data waits again after idle time, and nothing is in flight: the window is validated
    /// ([`ControllerConfig::window_validation`](super::ControllerConfig::window_validation)). Call it before the first
    /// packet leaves. `path` is what Sensing may use if the startup scheme runs again; this function adds the RTT and
    /// what this connection has delivered. An integrated algorithm has rules of its own.
    pub fn on_resume(&mut self, resume: &Resume, path: &PathKnowledge, rtt: &RttEstimator) {
        let Some(avoidance) = self.avoidance.conventional() else { return };
        avoidance.on_resume(resume.now, resume.idle);
        let segments = (self.config.segment, self.initial_window());
        let Some(validation) = &mut self.validation else { return };
        let win = path.receive_window.unwrap_or(Bytes::MAX);
        let window = validation.on_resume(resume, self.window, win, segments);
        if validation.policy() == WindowValidation::Startup && resume.idle > resume.timeout {
            let saved = validation.delivered(resume.idle, rtt);
            let path = PathKnowledge { handshake_rtt: Some(rtt.smoothed()), saved, ..path.clone() };
            self.start_again();
            self.launch(resume.now, &path, rtt);
            return;
        }
        // The end of recovery sets the window.
        if self.recovery.is_none() {
            self.take_validated(resume.now, window, rtt);
        }
    }

    /// Nothing waits to be sent and the window has room: the application limits the sender. `timeout` is that of
    /// [`Resume`], `receive_window` the window that the receiver has declared.
    pub fn on_limited(
        &mut self,
        now: Timestamp,
        in_flight: Bytes,
        timeout: Duration,
        receive_window: Bytes,
        rtt: &RttEstimator,
    ) {
        if self.is_integrated() || self.recovery.is_some() {
            return;
        }
        let initial = self.initial_window();
        if let Some(validation) = &mut self.validation {
            let window = validation.on_limited(now, in_flight, timeout, self.window, (receive_window, initial));
            self.take_validated(now, window, rtt);
        }
    }

    /// The window after validation. If it is smaller, slow start leads back to ssthresh.
    fn take_validated(&mut self, now: Timestamp, window: Window, rtt: &RttEstimator) {
        if window == self.window {
            return;
        }
        let before = self.window.cwnd;
        self.window.ssthresh = window.ssthresh;
        self.set_cwnd(window.cwnd);
        if self.phase == Phase::Avoidance && self.window.cwnd < self.window.ssthresh {
            self.phase = Phase::Restart { by_scheme: false };
        }
        let Window { cwnd: after, ssthresh } = self.window;
        self.log.note(now, Decision::WindowValidated { before, after, ssthresh });
        self.update_pacing(rtt);
    }
}
