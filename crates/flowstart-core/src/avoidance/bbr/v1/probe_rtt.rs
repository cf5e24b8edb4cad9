//! The smallest RTT, and `ProbeRTT`: little is in flight for a moment, to measure the RTT without a queue.

use super::super::limited_span::LimitedSpan;
use super::{Mode, Model, Sample};
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// `min_rtt_us` and the time of its measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    rtt: Option<Duration>,
    stamp: Timestamp,
}

impl MinRtt {
    pub(super) fn new(now: Timestamp, known: Option<Duration>) -> Self {
        Self { rtt: known, stamp: now }
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.rtt
    }
}

/// How far a `ProbeRTT` has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `probe_rtt_done_stamp`: set when in flight is low enough.
    done_stamp: Option<Timestamp>,
    /// `probe_rtt_round_done`.
    round_done: bool,
    /// Whose samples it keeps low.
    limited: LimitedSpan,
    /// The window that sending after idle time has restored, until the controller has taken it.
    restored: Bytes,
}

impl ProbeRtt {
    /// Whether a packet that was sent when `prior_delivered` was delivered is limited by `ProbeRTT`.
    pub(super) fn limits(&self, prior_delivered: Bytes) -> bool {
        self.limited.limits(prior_delivered)
    }

    /// The window that was restored since the last acknowledgement.
    pub(super) fn take_restored(&mut self) -> Bytes {
        core::mem::take(&mut self.restored)
    }
}

impl Model {
    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        let now = sample.now;
        let filter_expired = now > self.min_rtt.stamp + self.config.min_rtt_filter;
        if let Some(rtt) = sample.rtt
            && (filter_expired || self.min_rtt.rtt.is_none_or(|min_rtt| rtt <= min_rtt))
        {
            self.min_rtt = MinRtt { rtt: Some(rtt), stamp: now };
        }
        if filter_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            // In this order a larger window that was saved before stays, as in Linux.
            self.enter(Mode::ProbeRtt, "min_rtt_expired");
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            self.stay_in_probe_rtt(now);
        }
        if sample.rate.is_some_and(|rs| rs.delivered > Bytes::ZERO) {
            self.idle_restart = false;
        }
    }

    /// At least [`probe_rtt_duration`](super::Config::probe_rtt_duration) and a round with the smallest window.
    fn stay_in_probe_rtt(&mut self, now: Timestamp) {
        self.probe_rtt.limited.extend(self.delivered, self.in_flight);
        if self.probe_rtt.done_stamp.is_none() {
            if self.in_flight <= self.cwnd_min_target() {
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

    /// `bbr_check_probe_rtt_done`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Timestamp) {
        if self.probe_rtt.done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        // The next one is a filter's length away.
        self.min_rtt.stamp = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.probe_rtt.restored = self.cwnd;
        self.reset_mode(now, "probe_rtt_done");
    }
}
