//! BBR version 3: loss bounds the model of the path.
//!
//! Reference: draft-ietf-ccwg-bbr, the working group's text of 3 August 2026, sections "Detailed Algorithm" and
//! "Updating Control Parameters". BBR paces at a multiple of the largest recent delivery rate and keeps a multiple of
//! the bandwidth-delay product in flight. STARTUP doubles both each round until the delivery rate stops growing or more
//! than 2 % is lost. DRAIN empties the queue. Then `ProbeBW` cycles through DOWN, CRUISE, REFILL and UP, and `ProbeRTT`
//! looks for a lower RTT. Loss beyond 2 % during a probe bounds the window in the long term (`inflight_longterm`), any
//! other loss for the rest of the cycle.
//!
//! Differences from the reference:
//! - If a launch sets a rate, or says that it knows the path, its rate (or cwnd / RTT) is the first bandwidth. It is
//!   paced at this rate, not at 2.77 times the rate.
//! - Spurious recoveries are not undone: hosts do not tell of them.
//! - The draft treats CE marks as congestion but leaves open how. Here a mark ends STARTUP, ends UP like too much loss,
//!   and otherwise counts as a loss of the round.
//! - The send quantum bounds bursts when sending resumes, and is the offload budget; how the host groups its packets is
//!   the host's own policy.
//! - After a timeout the window is the host's window for timeouts (the draft: one segment beyond what is in flight).
//! - A sample whose interval is not reliable changes nothing but the window (as in Linux): it belongs to a packet that
//!   TCP sent twice, and would begin false rounds.
//! - A round of `ProbeBW` without any sample keeps the last maximum (as in Linux), so the bandwidth never becomes
//!   unknown.
//! - The random part of the time between two probes is a hash of `seed`, the delivered amount and the time.
//!
//! Status: experimental; worked examples and `crates/flowstart-sim/tests/bbr.rs`, no published numbers are reproduced.

mod model;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

use self::model::{Aggregation, LatestSignals, MaxBandwidth, MinRtt, WindowUse};
use self::probe_bw::Probing;
use self::probe_rtt::ProbeRtt;
use self::startup::FullPipe;
use super::rounds::Rounds;
use super::transitions::Transitions;
use super::{Config, NOMINAL_RTT, rate_of};
use crate::avoidance::Integrated;
use crate::event::RateSample;
use crate::event::{Ack, Ecn, ExitReason, LostPacket, Sent};
use crate::launch::Launch;
use crate::pacer;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// A rate that bounds nothing.
const UNBOUNDED: Rate = Rate::from_bits_per_sec(u64::MAX);

/// The state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    /// The name in traces.
    fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Drain => "Drain",
            Self::ProbeBwDown => "ProbeBW_DOWN",
            Self::ProbeBwCruise => "ProbeBW_CRUISE",
            Self::ProbeBwRefill => "ProbeBW_REFILL",
            Self::ProbeBwUp => "ProbeBW_UP",
            Self::ProbeRtt => "ProbeRTT",
        }
    }

    /// `IsInAProbeBWState`.
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    /// `IsProbingBW`.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
}

/// The model of the path and the state machine. Names as in the draft.
#[derive(Clone, Debug)]
pub(super) struct Model {
    config: Config,
    segment: Bytes,
    state: State,
    /// What the last event led to and why, until a trace takes it.
    transitions: Transitions,
    /// STARTUP ended for this reason, until the controller takes it.
    exit: Option<ExitReason>,
    /// `C.InitialCwnd`: the launch window.
    initial_cwnd: Bytes,
    /// `C.cwnd` as the controller knows it.
    cwnd: Bytes,
    pacing_rate: Rate,
    /// `C.delivered`.
    delivered: Bytes,
    /// `C.inflight`.
    in_flight: Bytes,
    rounds: Rounds,
    window_use: WindowUse,
    max_bw: MaxBandwidth,
    /// min(`max_bw`, `bw_shortterm`), and the launch's rate before the first sample.
    bw: Rate,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    latest: LatestSignals,
    bw_shortterm: Rate,
    inflight_shortterm: Bytes,
    inflight_longterm: Bytes,
    full_pipe: FullPipe,
    probing: Probing,
    probe_rtt: ProbeRtt,
    /// Recovery began in this round.
    recovery: Option<u64>,
    /// Recovery ends with the current acknowledgement.
    recovered: bool,
    prior_cwnd: Bytes,
    idle_restart: bool,
}

impl Model {
    pub(super) fn new(config: Config, SegmentSize(segment): SegmentSize) -> Self {
        Self {
            config,
            segment,
            state: State::Startup,
            transitions: Transitions::default(),
            exit: None,
            initial_cwnd: segment,
            cwnd: segment,
            pacing_rate: rate_of(segment, NOMINAL_RTT),
            delivered: Bytes::ZERO,
            in_flight: Bytes::ZERO,
            rounds: Rounds::default(),
            window_use: WindowUse::default(),
            max_bw: MaxBandwidth::default(),
            bw: Rate::ZERO,
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            latest: LatestSignals::default(),
            bw_shortterm: UNBOUNDED,
            inflight_shortterm: Bytes::MAX,
            inflight_longterm: Bytes::MAX,
            full_pipe: FullPipe::default(),
            probing: Probing::default(),
            probe_rtt: ProbeRtt::default(),
            recovery: None,
            recovered: false,
            prior_cwnd: Bytes::ZERO,
            idle_restart: false,
        }
    }

    fn enter(&mut self, state: State, trigger: &'static str) {
        self.state = state;
        self.transitions.note(state.name(), trigger);
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_pacing_gain,
            State::Drain => self.config.drain_pacing_gain,
            State::ProbeBwDown => self.config.down_pacing_gain,
            State::ProbeBwUp => self.config.up_pacing_gain,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => self.config.up_cwnd_gain,
            State::ProbeRtt => self.config.probe_rtt_cwnd_gain,
            _ => self.config.cwnd_gain,
        }
    }

    fn min_pipe_cwnd(&self) -> Bytes {
        self.segment * u64::from(self.config.min_pipe_cwnd)
    }

    /// `UpdateModelAndState`.
    fn update_model_and_state(&mut self, ack: &Ack, rs: &RateSample) {
        self.latest.begin(rs);
        self.update_congestion_signals(rs);
        self.aggregation.update(ack.now, rs.newly_acked, self.bw, self.cwnd, &self.rounds, self.full_pipe.reached);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(ack.now);
        self.update_probe_bw_cycle_phase(ack.now, rs);
        let probe_rtt_due = self.min_rtt.update(ack.now, ack.rtt, &self.config);
        self.check_probe_rtt(ack.now, probe_rtt_due);
        if rs.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
        self.latest.advance(rs);
        // BoundBWForModel; the launch's bandwidth holds until there is a sample.
        if self.max_bw.get() > Rate::ZERO {
            self.bw = self.max_bw.get().min(self.bw_shortterm);
        }
    }

    /// `BDPMultiple(bw, gain)`.
    fn bdp_multiple(&self, bw: Rate, gain: f64) -> Bytes {
        match self.min_rtt.get() {
            Some(min_rtt) => bw.amount_in(min_rtt).scale(gain),
            None => self.initial_cwnd,
        }
    }

    /// `QuantizationBudget`.
    fn quantization_budget(&self, inflight_cap: Bytes) -> Bytes {
        let cap = inflight_cap.max(self.send_quantum()).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap + self.segment * 2 } else { cap }
    }

    /// `Inflight(bw, gain)`.
    fn inflight(&self, bw: Rate, gain: f64) -> Bytes {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// `TargetInflight`.
    fn target_inflight(&self) -> Bytes {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    /// `SetSendQuantum`.
    fn send_quantum(&self) -> Bytes {
        pacer::send_quantum(Some(self.pacing_rate), self.segment)
    }

    /// `SetPacingRateWithGain`.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.bw.scale(gain * (1.0 - self.config.pacing_margin));
        if rate > Rate::ZERO && (self.full_pipe.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `SetCwnd`.
    fn set_cwnd(&mut self, newly_acked: Bytes) {
        // UpdateMaxInflight
        let max_inflight =
            self.quantization_budget(self.bdp_multiple(self.bw, self.cwnd_gain()) + self.aggregation.extra_acked());
        if self.full_pipe.reached {
            self.cwnd = (self.cwnd + newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < self.initial_cwnd {
            self.cwnd += newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            // BoundCwndForProbeRTT
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => Bytes::MAX,
        };
        self.cwnd = self.cwnd.min(cap.min(self.inflight_shortterm).max(self.min_pipe_cwnd()));
    }

    /// `SaveCwnd`.
    fn save_cwnd(&mut self) {
        let undisturbed = self.recovery.is_none() && self.state != State::ProbeRtt;
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// `RestoreCwnd`.
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl Integrated for Model {
    fn on_segment_size(&mut self, SegmentSize(segment): SegmentSize) {
        self.segment = segment;
    }

    /// `OnInit`.
    fn on_launch(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        self.initial_cwnd = launch.cwnd;
        self.cwnd = launch.cwnd;
        let srtt = if rtt.is_sampled() { rtt.smoothed() } else { NOMINAL_RTT };
        let nominal_bandwidth = rate_of(launch.cwnd, srtt);
        if launch.knows_the_path() {
            self.bw = launch.pacing_rate.unwrap_or(nominal_bandwidth);
            self.pacing_rate = self.bw;
        } else {
            self.bw = nominal_bandwidth;
            self.pacing_rate = nominal_bandwidth.scale(self.config.startup_pacing_gain);
        }
        self.min_rtt = MinRtt::new(now, rtt.min());
        self.aggregation.restart(now);
        self.enter(State::Startup, "launch");
    }

    fn on_late_launch(&mut self, window: Window, cwnd: Bytes, rate: Rate) -> Bytes {
        if self.state != State::Startup || self.recovery.is_some() {
            return window.cwnd;
        }
        self.cwnd = window.cwnd.max(cwnd);
        self.pacing_rate = self.pacing_rate.max(rate);
        self.full_pipe.reset(Rate::ZERO);
        self.cwnd
    }

    /// `HandleRestartFromIdle`.
    fn on_sent(&mut self, sent: &Sent) {
        if sent.in_flight <= sent.bytes && sent.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(sent.now);
            if self.state.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.state == State::ProbeRtt {
                self.check_probe_rtt_done(sent.now);
            }
        }
        self.in_flight = sent.in_flight;
        if sent.in_flight + self.segment > self.cwnd {
            self.window_use.note_cwnd_limited();
        }
    }

    /// `UpdateOnACK`.
    fn on_ack(&mut self, ack: &Ack, window: Window, _rtt: &RttEstimator) -> Bytes {
        self.cwnd = window.cwnd;
        self.in_flight = ack.in_flight;
        if let Some(mut rs) = ack.sample {
            self.delivered = rs.total_delivered;
            if rs.rate.is_some() {
                rs.app_limited |= self.probe_rtt.limits(rs.prior_delivered);
                self.update_model_and_state(ack, &rs);
            }
        }
        if core::mem::take(&mut self.recovered) {
            self.recovery = None;
            self.restore_cwnd();
        }
        let gain = self.pacing_gain();
        self.set_pacing_rate(gain);
        self.set_cwnd(ack.sample.map_or(ack.bytes, |rs| rs.newly_acked));
        self.cwnd
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.delivered = lost.delivered;
        self.handle_lost_packet(lost);
    }

    /// `OnEnterFastRecovery`. The window stays; the model bounds it with the next acknowledgement.
    fn on_congestion(&mut self, window: Window) -> Bytes {
        self.cwnd = window.cwnd;
        self.save_cwnd();
        self.recovery = Some(self.rounds.count);
        self.recovered = false;
        window.cwnd
    }

    fn on_recovered(&mut self) {
        self.recovered = true;
    }

    fn on_mark(&mut self, ecn: &Ecn) {
        self.in_flight = ecn.in_flight;
        self.handle_mark(ecn.now);
    }

    /// `OnEnterRTO`.
    fn on_timeout(&mut self, _now: Timestamp, window: Window, least: Bytes) -> Bytes {
        self.cwnd = window.cwnd;
        self.save_cwnd();
        self.note_loss();
        self.recovery = Some(self.rounds.count);
        self.recovered = false;
        self.cwnd = least;
        least
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn burst(&self) -> Option<Bytes> {
        Some(self.send_quantum())
    }

    fn is_starting(&self) -> bool {
        !self.full_pipe.reached
    }

    fn take_exit(&mut self) -> Option<ExitReason> {
        self.exit.take()
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.transitions.take()
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        seen.rate("max_bw", self.max_bw.get());
        seen.rate("bw", self.bw);
        seen.rate("bw_shortterm", self.bw_shortterm);
        if let Some(min_rtt) = self.min_rtt.get() {
            seen.time("min_rtt", min_rtt);
        }
        seen.bytes("inflight_longterm", self.inflight_longterm);
        seen.bytes("inflight_shortterm", self.inflight_shortterm);
        seen.number("pacing_gain", self.pacing_gain());
        seen.number("cwnd_gain", self.cwnd_gain());
    }
}
