//! BBR version 1, as in Linux: its model consists of bandwidth and RTT, and loss hardly counts.
//!
//! Reference: Linux, `net/ipv4/tcp_bbr.c` (named at each function), and draft-cardwell-iccrg-bbr-congestion-control-00,
//! which describes it without the later additions: recovery by packet conservation, long-term bandwidth,
//! acknowledgements in bunches. The bandwidth is the largest delivery rate of 10 rounds, the RTT the smallest of 10 s.
//! STARTUP paces at 2/ln 2 times the bandwidth until three rounds have not grown it by a quarter. DRAIN paces at the
//! inverse until no queue is left. Then `ProbeBW` cycles through gains of 1.25, 0.75 and six times 1. `ProbeRTT` keeps
//! 4 packets in flight for 200 ms if no smaller RTT was seen for 10 s. The window is a multiple of the bandwidth-delay
//! product, plus what hosts and bunches of acknowledgements hold.
//!
//! Loss ends no state. In the first round of recovery as much leaves as is delivered. Then the window grows by what is
//! delivered. After recovery it returns to its earlier value. When two intervals of at least four rounds lose a fifth
//! of their packets at the same rate, a policer limits the path, and the rate of these intervals is used for 48 rounds.
//!
//! Differences from the reference:
//! - A launch that sets a rate, or says that it knows the path, is paced at this rate, not at 2.89 times the rate. -
//!   Spurious recoveries are not undone: hosts do not tell of them.
//! - The bandwidth is the exact maximum of the rounds (Linux keeps three candidates), and times are exact, not in
//!   ticks.
//! - The departure of the next packet follows from the pacing rate, since the host does not report it; Linux shortens
//!   the gap after a packet that left late.
//! - After the filter has expired, an RTT sample counts even if the acknowledgement may have been delayed.
//! - The first phase of the gain cycle is not random but a hash of `seed`, the delivered amount and the time.
//! - Recovery goes on while every round loses something, as in Linux, which enters it again with the acknowledgement
//!   that ends it. A host whose recovery ends before the losses of its round are known (QUIC) would conserve packets
//!   for ever.
//! - CE marks are ignored (as in Linux).
//!
//! Status: worked examples; compared with Linux 6.18 over a dumbbell (completion time, retransmissions, windows).

mod aggregation;
mod long_term;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use self::aggregation::Aggregation;
use self::long_term::LongTerm;
use self::probe_bw::GainCycle;
use self::probe_rtt::{MinRtt, ProbeRtt};
use self::startup::FullPipe;
use self::window::{INIT_CWND, Recovery};
use super::rounds::Rounds;
use super::transitions::Transitions;
use super::windowed_max::WindowedMax;
use super::{Config, NOMINAL_RTT, rate_of};
use crate::avoidance::Integrated;
use crate::event::RateSample;
use crate::event::{Ack, ExitReason, LostPacket, Sent};
use crate::launch::Launch;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// `bbr_high_gain`, 2/ln 2 rounded up in 256ths: 739 / 256 = 2.8867.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// `bbr_drain_gain`, its inverse rounded down in 256ths: 88 / 256 = 0.34375.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// `bbr_bw_rtts`: rounds over which the bandwidth is the largest delivery rate.
const BW_ROUNDS: u64 = 10;

/// `bbr_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

impl Mode {
    /// The name in traces.
    fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Drain => "Drain",
            Self::ProbeBw => "ProbeBW",
            Self::ProbeRtt => "ProbeRTT",
        }
    }
}

/// The content of an acknowledgement, from the rate sample if there is one.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Timestamp,
    rtt: Option<Duration>,
    /// `rs->prior_in_flight`.
    prior_in_flight: Bytes,
    /// `rs->acked_sacked`.
    newly_acked: Bytes,
    /// `rs->losses`.
    newly_lost: Bytes,
    /// `rs->is_app_limited`.
    app_limited: bool,
    /// The sample; `None` when it is no valid observation.
    rate: Option<RateSample>,
}

/// The model of the path and the state machine. Names as in Linux's `struct bbr`.
#[derive(Clone, Debug)]
pub(super) struct Model {
    config: Config,
    segment: Bytes,
    mode: Mode,
    /// What the last event led to and why, until a trace takes it.
    transitions: Transitions,
    /// STARTUP ended for this reason, until the controller takes it.
    exit: Option<ExitReason>,
    /// `tp->snd_cwnd` as the controller knows it.
    cwnd: Bytes,
    pacing_rate: Rate,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// The first RTT sample was used for the pacing rate, or the launch set it.
    has_seen_rtt: bool,
    /// `tp->delivered`.
    delivered: Bytes,
    /// `tp->lost`.
    lost: Bytes,
    /// `tcp_packets_in_flight`.
    in_flight: Bytes,
    /// When the pacer lets the next packet leave (`tp->tcp_wstamp_ns`).
    departure: Timestamp,
    rounds: Rounds,
    bandwidths: WindowedMax<Rate, { BW_ROUNDS as usize + 1 }>,
    /// `bbr_max_bw`.
    max_bw: Rate,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    full_pipe: FullPipe,
    cycle: GainCycle,
    long_term: LongTerm,
    aggregation: Aggregation,
    recovery: Recovery,
    prior_cwnd: Bytes,
    idle_restart: bool,
}

impl Model {
    pub(super) fn new(config: Config, SegmentSize(segment): SegmentSize) -> Self {
        Self {
            config,
            segment,
            mode: Mode::Startup,
            transitions: Transitions::default(),
            exit: None,
            cwnd: segment,
            pacing_rate: rate_of(segment, NOMINAL_RTT),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            has_seen_rtt: false,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            in_flight: Bytes::ZERO,
            departure: Timestamp::ZERO,
            rounds: Rounds::default(),
            bandwidths: WindowedMax::default(),
            max_bw: Rate::ZERO,
            min_rtt: MinRtt::default(),
            probe_rtt: ProbeRtt::default(),
            full_pipe: FullPipe::default(),
            cycle: GainCycle::default(),
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            recovery: Recovery::default(),
            prior_cwnd: Bytes::ZERO,
            idle_restart: false,
        }
    }

    fn enter(&mut self, mode: Mode, trigger: &'static str) {
        self.mode = mode;
        self.transitions.note(mode.name(), trigger);
    }

    /// `bbr_bw`: the bandwidth in use, which a policer may set.
    fn bw(&self) -> Rate {
        self.long_term.bw_in_use().unwrap_or(self.max_bw)
    }

    /// `bbr_update_model`.
    fn update_model(&mut self, sample: &Sample) {
        self.update_bw(sample);
        self.update_ack_aggregation(sample);
        self.update_cycle_phase(sample);
        self.check_full_bw_reached(sample);
        self.check_drain(sample.now);
        self.update_min_rtt(sample);
        self.update_gains();
    }

    /// `bbr_update_bw`.
    fn update_bw(&mut self, sample: &Sample) {
        self.rounds.start = false;
        let Some(rs) = &sample.rate else { return };
        if self.rounds.update(rs) {
            self.recovery.conserve = false;
        }
        self.sample_long_term_bw(sample.now, sample.newly_lost > Bytes::ZERO, sample.app_limited);
        let rate = rs.rate.unwrap_or(Rate::ZERO);
        if !sample.app_limited || rate >= self.max_bw {
            self.max_bw = self.bandwidths.update(rate, self.rounds.count, BW_ROUNDS);
        }
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            // Slow, to drain; the window stays.
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.bw_in_use().is_some() => (1.0, self.config.cwnd_gain),
            Mode::ProbeBw => (self.cycle.gain(), self.config.cwnd_gain),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    /// `bbr_set_pacing_rate`.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.bw().scale(gain).scale(1.0 - self.config.pacing_margin);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(self.slowest());
        }
    }

    /// `bbr_init_pacing_rate_from_rtt`.
    fn init_pacing_rate(&mut self, rtt: &RttEstimator) {
        let srtt = if rtt.is_sampled() { rtt.smoothed().max(Duration::from_micros(1)) } else { NOMINAL_RTT };
        self.has_seen_rtt = rtt.is_sampled();
        self.pacing_rate = rate_of(self.cwnd, srtt).scale(HIGH_GAIN).scale(1.0 - self.config.pacing_margin);
    }

    /// A segment in the longest time for which an RTT stays valid, so the pacer never waits for ever.
    fn slowest(&self) -> Rate {
        rate_of(self.segment, self.config.min_rtt_filter)
    }

    /// `bbr_packets_in_net_at_edt`, in bytes: how much will be in the network when the next packet departs.
    fn in_network_at_departure(&self, now: Timestamp, in_flight: Bytes) -> Bytes {
        let with_the_next =
            if self.pacing_gain > 1.0 { in_flight + self.segment * self.tso_segs_goal() } else { in_flight };
        with_the_next.saturating_sub(self.bw().amount_in(self.departure.since(now)))
    }
}

impl Integrated for Model {
    fn on_segment_size(&mut self, SegmentSize(segment): SegmentSize) {
        self.segment = segment;
    }

    /// `bbr_init`.
    fn on_launch(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        self.cwnd = launch.cwnd;
        if launch.knows_the_path() {
            let srtt = if rtt.is_sampled() { rtt.smoothed() } else { NOMINAL_RTT };
            self.pacing_rate = launch.pacing_rate.unwrap_or_else(|| rate_of(launch.cwnd, srtt)).max(self.slowest());
            self.has_seen_rtt = true;
        } else {
            self.init_pacing_rate(rtt);
        }
        self.min_rtt = MinRtt::new(now, rtt.min());
        self.aggregation.restart(now);
        self.enter(Mode::Startup, "launch");
    }

    fn on_late_launch(&mut self, window: Window, cwnd: Bytes, rate: Rate) -> Bytes {
        if self.mode != Mode::Startup || self.recovery.is_active() {
            return window.cwnd;
        }
        self.cwnd = window.cwnd.max(cwnd);
        self.pacing_rate = self.pacing_rate.max(rate);
        self.has_seen_rtt = true;
        self.full_pipe.restart();
        self.cwnd
    }

    /// `bbr_cwnd_event`: sending begins again after idle time.
    fn on_sent(&mut self, sent: &Sent) {
        if sent.in_flight <= sent.bytes && sent.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(sent.now);
            if self.mode == Mode::ProbeBw {
                self.set_pacing_rate(1.0);
            } else if self.mode == Mode::ProbeRtt {
                self.check_probe_rtt_done(sent.now);
            }
        }
        self.in_flight = sent.in_flight;
        self.departure = self.departure.max(sent.now) + self.pacing_rate.time_for(sent.bytes);
    }

    /// `bbr_main`.
    fn on_ack(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Bytes {
        self.cwnd = window.cwnd.max(self.probe_rtt.take_restored());
        self.in_flight = ack.in_flight;
        let rs = ack.sample;
        self.delivered = rs.map_or(self.delivered, |rs| rs.total_delivered);
        let sample = Sample {
            now: ack.now,
            rtt: ack.rtt,
            prior_in_flight: ack.in_flight_before,
            newly_acked: rs.map_or(ack.bytes, |rs| rs.newly_acked),
            newly_lost: rs.map_or(Bytes::ZERO, |rs| rs.newly_lost),
            app_limited: rs.is_some_and(|rs| rs.app_limited || self.probe_rtt.limits(rs.prior_delivered)),
            rate: rs.filter(|rs| rs.rate.is_some()),
        };
        self.recovery.update(rs.map(|rs| rs.prior_delivered));
        self.update_model(&sample);
        if !self.has_seen_rtt && rtt.is_sampled() {
            self.init_pacing_rate(rtt);
        }
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(&sample);
        self.cwnd
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.lost += lost.bytes;
        self.delivered = lost.delivered;
        self.recovery.note_loss(lost.delivered);
    }

    /// `bbr_ssthresh`: recovery begins. The window stays until the next acknowledgement.
    fn on_congestion(&mut self, window: Window) -> Bytes {
        self.cwnd = window.cwnd;
        self.save_cwnd();
        self.recovery.begin();
        window.cwnd
    }

    fn on_recovered(&mut self) {
        self.recovery.finish();
    }

    /// `bbr_set_state` with `TCP_CA_Loss`.
    fn on_timeout(&mut self, now: Timestamp, _window: Window, least: Bytes) -> Bytes {
        self.recovery.time_out();
        self.full_pipe.forget_bandwidth();
        // Like the end of a round.
        self.rounds.start = true;
        self.sample_long_term_bw(now, true, false);
        self.cwnd = least;
        least
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    /// The bytes that leave together; the first 10 segments of a connection are not paced
    /// (`tcp_update_skb_after_send`).
    fn burst(&self) -> Option<Bytes> {
        let begins = self.delivered == Bytes::ZERO && self.in_flight == Bytes::ZERO;
        Some(self.segment * if begins { INIT_CWND } else { self.tso_segs_goal() })
    }

    /// `tcp_tso_autosize` with `bbr_min_tso_segs`.
    fn send_group(&self) -> Option<Bytes> {
        Some(self.segment * self.tso_segs_goal())
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
        seen.rate("max_bw", self.max_bw);
        seen.rate("bw", self.bw());
        if let Some(min_rtt) = self.min_rtt.get() {
            seen.time("min_rtt", min_rtt);
        }
        seen.number("pacing_gain", self.pacing_gain);
        seen.number("cwnd_gain", self.cwnd_gain);
    }
}
