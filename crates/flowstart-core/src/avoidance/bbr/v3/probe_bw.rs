//! `ProbeBW`: DOWN, CRUISE, REFILL and UP, and the long-term effect of loss on the bytes in flight.

use super::{Model, State};
use crate::event::RateSample;
use crate::event::{ExitReason, LostPacket};
use crate::rng::{mix, name_hash, noise};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// `bw_probe_up_rounds` grows no further: the slope doubles with each.
const MOST_UP_ROUNDS: u32 = 30;

/// `ack_phase`: which part of the last probe acknowledgements report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State of the bandwidth probes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    ack_phase: AckPhase,
    /// `is_bw_probe_sample`.
    is_sample: bool,
    /// `bw_probe_up_acked`.
    up_acked: Bytes,
    /// `probe_up_acked_per_inc`; `None`: `inflight_longterm` does not grow.
    acked_per_inc: Option<Bytes>,
    /// `bw_probe_up_rounds`.
    up_rounds: u32,
    /// `rounds_since_probe_up`.
    rounds_since_up: u64,
    /// `bw_probe_wait`.
    wait: Duration,
    /// `cycle_stamp`.
    cycle_stamp: Timestamp,
    /// `prev_probe_too_high`.
    too_high: bool,
    /// `prev_probe_precautionary`.
    precautionary: bool,
}

impl Probing {
    pub(super) fn count_round(&mut self) {
        self.rounds_since_up += 1;
    }

    /// Feedback of a probe that is still to come belongs to no probe.
    pub(super) fn stop(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }
}

#[cfg(test)]
impl Model {
    pub(super) fn probing_is_due(&mut self) {
        self.probing.wait = Duration::ZERO;
    }

    pub(super) fn probe_wait(&self) -> Duration {
        self.probing.wait
    }
}

impl Model {
    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, now: Timestamp, rs: &RateSample) {
        if !self.full_pipe.reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.state {
            State::ProbeBwDown => {
                if !self.check_time_to_probe_bw(now) && self.is_time_to_cruise() {
                    self.start_probe_bw_cruise("drained");
                }
            }
            State::ProbeBwCruise => {
                self.check_time_to_probe_bw(now);
            }
            State::ProbeBwRefill => {
                // After one round of REFILL, start UP.
                if self.rounds.start {
                    self.probing.is_sample = true;
                    self.start_probe_bw_up(rs);
                }
            }
            State::ProbeBwUp => {
                if let Some(trigger) = self.is_time_to_go_down(rs) {
                    self.probing.too_high = false;
                    self.start_probe_bw_down(now, trigger);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// `StartProbeBW_DOWN`.
    pub(super) fn start_probe_bw_down(&mut self, now: Timestamp, trigger: &'static str) {
        self.latest.reset();
        self.probing.acked_per_inc = None;
        self.pick_probe_wait(now);
        self.probing.cycle_stamp = now;
        self.probing.ack_phase = AckPhase::ProbeStopping;
        self.rounds.restart(self.delivered);
        self.enter(State::ProbeBwDown, trigger);
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_probe_bw_cruise(&mut self, trigger: &'static str) {
        self.enter(State::ProbeBwCruise, trigger);
    }

    /// `StartProbeBW_REFILL`.
    fn start_probe_bw_refill(&mut self, trigger: &'static str) {
        self.reset_short_term_model();
        self.probing.up_rounds = 0;
        self.probing.up_acked = Bytes::ZERO;
        self.probing.precautionary = false;
        self.probing.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.enter(State::ProbeBwRefill, trigger);
    }

    /// `StartProbeBW_UP`.
    fn start_probe_bw_up(&mut self, rs: &RateSample) {
        self.probing.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(self.delivered);
        self.full_pipe.reset(rs.rate.unwrap_or(Rate::ZERO));
        self.enter(State::ProbeBwUp, "refilled");
        self.raise_inflight_longterm_slope();
    }

    /// `PickProbeWait`, with a hash of counters for the dice.
    fn pick_probe_wait(&mut self, now: Timestamp) {
        const ROLE: u64 = name_hash("bbr probe wait");
        let position = mix(now.as_nanos()) ^ self.delivered.get();
        let seed = u64::from(self.config.seed);
        self.probing.rounds_since_up = u64::from(noise(seed, ROLE, position) < 0.5);
        let spread = noise(seed, ROLE, position.wrapping_add(1));
        self.probing.wait = self.config.probe_wait + self.config.probe_wait_spread.scale(spread);
    }

    /// `IsTimeToProbeBW`, which also starts the probe.
    fn check_time_to_probe_bw(&mut self, now: Timestamp) -> bool {
        let elapsed = now > self.probing.cycle_stamp + self.probing.wait;
        // IsRenoCoexistenceProbeTime
        let reno_rounds = self.target_inflight().get() / self.segment.get().max(1);
        let as_reno = self.probing.rounds_since_up >= reno_rounds.min(u64::from(self.config.reno_rounds));
        if elapsed || as_reno {
            self.start_probe_bw_refill(if elapsed { "time" } else { "reno_rounds" });
        }
        elapsed || as_reno
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom() && self.in_flight <= self.inflight(self.max_bw.get(), 1.0)
    }

    /// `IsTimeToGoDown`; the reason if it is.
    fn is_time_to_go_down(&mut self, rs: &RateSample) -> Option<&'static str> {
        if self.probing.too_high && self.in_flight >= self.inflight_longterm {
            self.probing.precautionary = true;
            return Some("precaution");
        }
        if self.window_use.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
            // The window, not the path, limits the rate.
            self.full_pipe.reset(rs.rate.unwrap_or(Rate::ZERO));
            return None;
        }
        self.full_pipe.now.then_some("full_bw_now")
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self) -> Bytes {
        if self.inflight_longterm == Bytes::MAX {
            return Bytes::MAX;
        }
        let headroom = self.inflight_longterm.scale(self.config.headroom).max(self.segment);
        self.inflight_longterm.saturating_sub(headroom).max(self.min_pipe_cwnd())
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = 1u64 << self.probing.up_rounds;
        self.probing.up_rounds = (self.probing.up_rounds + 1).min(MOST_UP_ROUNDS);
        self.probing.acked_per_inc = Some((self.cwnd / growth_this_round).max(self.segment));
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_inflight_longterm_upward(&mut self, rs: &RateSample) {
        if !self.window_use.is_cwnd_limited() || self.cwnd < self.inflight_longterm {
            return;
        }
        self.probing.up_acked += rs.newly_acked;
        if let Some(per_inc) = self.probing.acked_per_inc {
            let delta = self.probing.up_acked.get() / per_inc.get().max(1);
            self.probing.up_acked = self.probing.up_acked.saturating_sub(per_inc * delta);
            self.inflight_longterm += self.segment * delta;
        }
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `AdaptLongTermModel`; returns whether it decided a transition.
    fn adapt_long_term_model(&mut self, rs: &RateSample) -> bool {
        if self.probing.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.probing.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probing.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.probing.is_sample = false;
            self.probing.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !rs.app_limited {
                    self.max_bw.advance();
                }
                if self.probing.precautionary && !self.probing.too_high {
                    self.start_probe_bw_refill("precaution_passed");
                    return true;
                }
            }
        }
        if !self.is_inflight_too_high(rs.lost, rs.tx_in_flight) && self.inflight_longterm != Bytes::MAX {
            self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    /// `IsInflightTooHigh`.
    pub(super) fn is_inflight_too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        lost > tx_in_flight.scale(self.config.loss_thresh)
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostPacket) {
        self.note_loss();
        self.count_lost_range(lost);
        if self.probing.is_sample && self.is_inflight_too_high(lost.lost, lost.tx_in_flight) {
            let inflight = (!lost.app_limited).then(|| self.inflight_at_loss(lost));
            self.handle_inflight_too_high(lost.now, inflight, "loss");
        }
    }

    /// A CE mark was echoed.
    pub(super) fn handle_mark(&mut self, now: Timestamp) {
        self.note_loss();
        if self.state == State::Startup && self.max_bw.get() > Rate::ZERO {
            self.reach_full_pipe(ExitReason::Ecn);
            self.enter_drain("mark");
        } else if self.probing.is_sample {
            self.handle_inflight_too_high(now, Some(self.in_flight), "mark");
        }
    }

    /// `HandleInflightTooHigh`; `inflight` is unknown when the application limited it.
    fn handle_inflight_too_high(&mut self, now: Timestamp, inflight: Option<Bytes>, trigger: &'static str) {
        self.probing.too_high = true;
        self.probing.is_sample = false;
        if let Some(inflight) = inflight {
            self.inflight_longterm = inflight.max(self.target_inflight().scale(self.config.beta));
        }
        if self.state == State::ProbeBwUp {
            self.start_probe_bw_down(now, trigger);
        }
    }

    /// `InflightAtLoss`: how much was in flight when the losses crossed the threshold.
    pub(super) fn inflight_at_loss(&self, lost: &LostPacket) -> Bytes {
        let inflight_prev = lost.tx_in_flight.saturating_sub(lost.bytes);
        let lost_prev = lost.lost.saturating_sub(lost.bytes);
        let thresh = self.config.loss_thresh;
        let lost_prefix = (inflight_prev.scale(thresh).get() as f64 - lost_prev.get() as f64) / (1.0 - thresh);
        Bytes::new(libm::fmax(inflight_prev.get() as f64 + lost_prefix, 0.0) as u64)
    }
}
