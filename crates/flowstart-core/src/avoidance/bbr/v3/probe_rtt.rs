//! `ProbeRTT`: little is in flight for a moment, to measure the RTT without a queue.

use super::super::limited_span::LimitedSpan;
use super::{Model, State};
use crate::time::Timestamp;
use crate::units::Bytes;

/// How far a `ProbeRTT` has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `probe_rtt_done_stamp`: set when in flight is low enough.
    done_stamp: Option<Timestamp>,
    /// `probe_rtt_round_done`.
    round_done: bool,
    /// Whose samples it keeps low.
    limited: LimitedSpan,
}

impl ProbeRtt {
    /// Whether a packet that was sent when `prior_delivered` was delivered is limited by `ProbeRTT`.
    pub(super) fn limits(&self, prior_delivered: Bytes) -> bool {
        self.limited.limits(prior_delivered)
    }
}

impl Model {
    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, now: Timestamp, probe_rtt_expired: bool) {
        if self.state != State::ProbeRtt && probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
            self.probing.stop();
            self.rounds.restart(self.delivered);
            self.enter(State::ProbeRtt, "min_rtt_expired");
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> Bytes {
        self.bdp_multiple(self.bw, self.config.probe_rtt_cwnd_gain).max(self.min_pipe_cwnd())
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, now: Timestamp) {
        self.probe_rtt.limited.extend(self.delivered, self.in_flight);
        if self.probe_rtt.done_stamp.is_none() {
            if self.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt.done_stamp = Some(now + self.config.probe_rtt_duration);
                self.probe_rtt.round_done = false;
                self.rounds.restart(self.delivered);
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Timestamp) {
        if self.probe_rtt.done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.schedule(now);
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full_pipe.reached {
            self.start_probe_bw_down(now, "probe_rtt_done");
            self.start_probe_bw_cruise("probe_rtt_done");
        } else {
            self.enter(State::Startup, "probe_rtt_done");
        }
    }
}
