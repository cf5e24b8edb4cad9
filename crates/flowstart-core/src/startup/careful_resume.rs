//! Careful Resume: jumps to half of the window that an earlier connection reached, and retreats if the path does not
//! confirm it.
//!
//! Reference: draft-ietf-tsvwg-careful-resume-24 (2 October 2025), which has become RFC 9959, section 3, with the table
//! and the examples of its appendix. When the initial window is acknowledged without congestion and the RTT fits the
//! saved one, the window jumps to `min(max_jump, saved_cwnd / 2)`, paced over the current RTT. Only its acknowledged
//! part counts as capacity (`PipeSize`). As soon as the path has had time to answer, the window is cut to the bytes
//! really in flight. Loss or a CE mark before the last unvalidated packet is acknowledged leads to Safe Retreat: half
//! of `PipeSize`, no growth, and then slow start towards `PipeSize * Beta`.
//!
//! Differences from the reference:
//! - `PipeSize` counts unvalidated packets only. The rule says "newly acknowledged". But in both examples the packets
//!   in flight at the jump are in `PipeSize` from the start, and their acknowledgements do not add them again.
//! - The final `PipeSize` of the example with loss is 120 in its text (121 unvalidated packets, one lost). By the rule
//!   it is never reset and keeps the 29 packets of the jump: 29 + 120 = 149. This file follows the rule.
//! - Over TCP an acknowledgement also covers what was repaired. So `PipeSize` after a loss is more than the path
//!   carried by what was lost, and ssthresh with it.
//! - Safe Retreat starts from `PipeSize / 2` with at least two segments, as the rule says; the table and the example
//!   use the initial window as the minimum.
//! - The extra packet that may leave at once in Safe Retreat is not sent.
//! - The jump waits until the window is in use, which the draft allows. It is skipped if slow start has already reached
//!   the jump's window.
//! - The scheme cannot delete saved parameters. The owner of the store deletes them when it sees the phase
//!   `safe-retreat`, and gives each set to one connection only. The scheme does not learn of a changed address, only of
//!   a changed RTT.
//!
//! After validation the scheme goes on as slow start. CUBIC takes the window before a retreat for its `W_max`.
//!
//! Status: the examples of the draft are tests; not validated against published numbers.

use alloc::format;

use super::slow_start::{self, SlowStart};
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Loss, Position, Sent};
use crate::launch::{Continuation, Launch, UNPACED};
use crate::path::{PathKnowledge, SavedPath};
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "after the first RTT, jumps to half of an earlier connection's window, paced; retreats unless it is confirmed";
/// The document that defines it.
pub const REFERENCE: &str = "draft-ietf-tsvwg-careful-resume-24 (now RFC 9959), section 3";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "an earlier connection's window; one RTT of normal start, then half of that window over an RTT; until \
    it is acknowledged, or Safe Retreat; slow start";

/// A smallest RTT of at most the saved one over this is a path change (section 3.2).
const RTT_SHRINKS: u64 = 2;
/// A smallest RTT of more than this many times the saved one is a path change (section 4.2.1).
const RTT_GROWS: u64 = 10;
/// Smallest window in segments under congestion (RFC 9002, section 7.2).
const MIN_WINDOW: u64 = 2;

/// Parameters of Careful Resume.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// Factor on the saved window, for experiments with wrong values, 0.001 to 1000. Default 1.
    pub factor: f64,
    /// Share of the saved window that is jumped to, 0.01 to 1. Draft: at most 0.5, the default; quicly and picoquic
    /// take all of it.
    pub jump: f64,
    /// Largest window jumped to (`max_jump`), at least 1 byte. Default: no limit; the draft leaves it to the host.
    pub max_jump: Option<Bytes>,
    /// Age from which saved parameters are not used, up to 10^9 s. The draft suggests minutes to hours; default 1 h.
    pub lifetime: Duration,
    /// Smallest saved window that is used, in initial windows, 0 to 1000. Draft, section 3.1: 4.
    pub min_saved: f64,
    /// Whether unvalidated packets are paced over the current RTT; otherwise they leave at once. Draft: they must be.
    pub pacing: bool,
    /// `Beta`: ssthresh over `PipeSize` after Safe Retreat, 0.5 to 1. Draft: 0.5; CUBIC's own factor is 0.7.
    pub beta: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            factor: 1.0,
            jump: 0.5,
            max_jump: None,
            lifetime: Duration::from_millis(3_600_000),
            min_saved: 4.0,
            pacing: true,
            beta: 0.5,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("factor", self.factor, 0.001..=1000.0)?;
        ConfigError::unless_in("jump", self.jump, 0.01..=1.0)?;
        if self.max_jump == Some(Bytes::ZERO) {
            return Err(ConfigError::new("max_jump", Bytes::ZERO, format!("from {}", Bytes::new(1))));
        }
        ConfigError::unless_in("lifetime", self.lifetime, Duration::ZERO..=Duration::from_secs(1e9))?;
        ConfigError::unless_in("min_saved", self.min_saved, 0.0..=1000.0)?;
        ConfigError::unless_in("beta", self.beta, 0.5..=1.0)
    }
}

/// The phases of the draft (its figure 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reconnaissance,
    Unvalidated,
    Validating,
    SafeRetreat,
    Normal,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Reconnaissance => "reconnaissance",
            Self::Unvalidated => "unvalidated",
            Self::Validating => "validating",
            Self::SafeRetreat => "safe-retreat",
            Self::Normal => "normal",
        }
    }
}

/// State of Careful Resume.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    config: Config,
    context: StartupContext,
    /// Moves the window whenever Careful Resume does not.
    slow_start: SlowStart,
    phase: Phase,
    /// A phase that was not read yet, and its trigger, with the draft's name if it has one.
    entered: Option<(Phase, &'static str)>,
    saved_rtt: Duration,
    saved_cwnd: Bytes,
    jump_cwnd: Bytes,
    /// Initial data that has not left yet.
    initial_left: Bytes,
    /// The last packet of the initial data that has left.
    initial_end: Position,
    /// Bytes in flight (`flight_size`).
    flight_size: Bytes,
    /// The bytes that were in flight at the jump and are not acknowledged or lost yet.
    before_jump: Bytes,
    highest_sent: Position,
    highest_at_jump: Position,
    /// `PipeSize`.
    pipe_size: Bytes,
    /// When the Unvalidated phase ends at the latest.
    unvalidated_until: Timestamp,
    first_unvalidated: Option<Position>,
    last_unvalidated: Position,
    /// The window after the Unvalidated phase, until the controller has taken it.
    reset_cwnd: Option<Bytes>,
    /// Set while unvalidated packets are sent.
    rate: Option<Rate>,
    /// Why Safe Retreat began.
    congestion: ExitReason,
}

impl CarefulResume {
    /// Careful Resume that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let context = context.with_initial_window(config.iw);
        Self {
            config,
            context,
            slow_start: SlowStart::new(slow_start::Config::default(), context),
            phase: Phase::Normal,
            entered: None,
            saved_rtt: Duration::ZERO,
            saved_cwnd: Bytes::ZERO,
            jump_cwnd: Bytes::ZERO,
            initial_left: context.initial_window,
            initial_end: 0,
            flight_size: Bytes::ZERO,
            before_jump: Bytes::ZERO,
            highest_sent: 0,
            highest_at_jump: 0,
            pipe_size: Bytes::ZERO,
            unvalidated_until: Timestamp::NEVER,
            first_unvalidated: None,
            last_unvalidated: 0,
            reset_cwnd: None,
            rate: None,
            congestion: ExitReason::Loss,
        }
    }

    fn enter(&mut self, phase: Phase, trigger: &'static str) {
        self.phase = phase;
        self.entered = Some((phase, trigger));
    }

    /// The jump that `saved` allows, if it is young and large enough.
    fn jump_from(&self, saved: SavedPath) -> Option<Bytes> {
        let saved_cwnd = saved.cwnd.scale(self.config.factor);
        let usable =
            saved.age < self.config.lifetime && saved_cwnd >= self.context.initial_window.scale(self.config.min_saved);
        // jump_cwnd = Min(max_jump, saved_cwnd / 2)
        usable.then(|| saved_cwnd.scale(self.config.jump).min(self.config.max_jump.unwrap_or(Bytes::MAX)))
    }

    /// Whether the smallest RTT so far can be that of the saved path.
    fn rtt_fits(&self, rtt: &RttEstimator) -> bool {
        rtt.min().is_some_and(|min| min * RTT_SHRINKS > self.saved_rtt && min <= self.saved_rtt * RTT_GROWS)
    }

    /// Reconnaissance: leaves the phase when the initial data is acknowledged. Returns the jump.
    fn confirm_path(&mut self, ack: &Ack, cwnd: Bytes, in_use: bool, rtt: &RttEstimator) -> Option<Bytes> {
        if ack.position < self.initial_end || !in_use {
            return None;
        }
        if !self.rtt_fits(rtt) {
            self.enter(Phase::Normal, "rtt_not_validated");
            return None;
        }
        if self.jump_cwnd <= cwnd {
            self.enter(Phase::Normal, "no_gain");
            return None;
        }
        self.enter(Phase::Unvalidated, "congestion_window_limited");
        self.pipe_size = ack.in_flight;
        self.before_jump = ack.in_flight;
        self.highest_at_jump = self.highest_sent;
        self.last_unvalidated = self.highest_sent;
        let current_rtt = ack.rtt.or(rtt.latest()).unwrap_or(rtt.smoothed());
        self.unvalidated_until = ack.now + current_rtt;
        // ITT = current RTT * MPS / jump_cwnd
        let paced = if self.config.pacing { Rate::from_transfer(self.jump_cwnd, current_rtt) } else { None };
        self.rate = paced.or(Some(UNPACED));
        Some(self.jump_cwnd)
    }

    /// Unvalidated: the path has had time to answer, or the window is full. The window becomes what is in flight.
    fn end_unvalidated(&mut self, trigger: &'static str) {
        self.rate = None;
        self.unvalidated_until = Timestamp::NEVER;
        if self.flight_size < self.context.initial_window || self.flight_size <= self.pipe_size {
            self.reset_cwnd = Some(self.pipe_size.max(self.context.initial_window));
            self.enter(Phase::Normal, "rate_limited");
        } else {
            self.reset_cwnd = Some(self.flight_size);
            self.enter(Phase::Validating, trigger);
        }
    }

    /// `PipeSize` grows by what was acknowledged of the packets sent since the jump.
    fn count(&mut self, ack: &Ack) {
        let before_jump = ack.bytes.min(self.before_jump);
        self.before_jump -= before_jump;
        self.pipe_size += ack.bytes - before_jump;
    }

    /// Starts Safe Retreat; returns its window.
    fn retreat(&mut self, trigger: &'static str, congestion: ExitReason) -> Bytes {
        self.enter(Phase::SafeRetreat, trigger);
        self.rate = None;
        self.unvalidated_until = Timestamp::NEVER;
        self.reset_cwnd = None;
        self.congestion = congestion;
        (self.pipe_size / 2).max(self.context.segment * MIN_WINDOW)
    }

    /// Safe Retreat: keeps the window until the last unvalidated packet is acknowledged.
    fn drain(&mut self, ack: &Ack, cwnd: Bytes) -> Step {
        self.count(ack);
        if ack.position < self.last_unvalidated { Step::Continue { cwnd } } else { self.end_retreat(cwnd) }
    }

    // Continuation: ssthresh = PipeSize * Beta; slow start leads there, then congestion avoidance.
    fn end_retreat(&mut self, cwnd: Bytes) -> Step {
        self.enter(Phase::Normal, "exit_recovery");
        let ssthresh = self.pipe_size.scale(self.config.beta).max(self.context.segment * MIN_WINDOW);
        Step::Exit(Continuation { cwnd: cwnd.min(ssthresh), ssthresh, reason: self.congestion })
    }
}

impl Startup for CarefulResume {
    // Sensing: the initial window, and the state of an earlier connection.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch {
        if let Some((saved, jump_cwnd)) = path.saved.and_then(|saved| Some((saved, self.jump_from(saved)?))) {
            self.saved_rtt = saved.rtt;
            self.saved_cwnd = saved.cwnd;
            self.jump_cwnd = jump_cwnd;
            self.enter(Phase::Reconnaissance, "connect");
        }
        self.slow_start.launch(now, path, log)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.flight_size = sent.in_flight;
        self.highest_sent = sent.position;
        match self.phase {
            Phase::Reconnaissance if self.initial_left > Bytes::ZERO => {
                self.initial_left = self.initial_left.saturating_sub(sent.bytes);
                self.initial_end = sent.position;
            }
            Phase::Unvalidated => {
                self.first_unvalidated.get_or_insert(sent.position);
                self.last_unvalidated = sent.position;
                if sent.in_flight + self.context.segment > self.jump_cwnd {
                    self.end_unvalidated("last_unvalidated_packet_sent");
                }
            }
            Phase::Reconnaissance | Phase::Validating | Phase::SafeRetreat | Phase::Normal => {}
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.flight_size = ack.in_flight;
        let cwnd = self.reset_cwnd.take().unwrap_or(window.cwnd);
        match self.phase {
            // Probing: the jump.
            Phase::Reconnaissance => {
                if let Some(jump) = self.confirm_path(ack, cwnd, in_use, rtt) {
                    return Step::Continue { cwnd: jump };
                }
            }
            Phase::Unvalidated => {
                self.count(ack);
                if !self.rtt_fits(rtt) {
                    return Step::Continue { cwnd: self.retreat("path_changed", ExitReason::Other("path-changed")) };
                }
                if self.first_unvalidated.is_some_and(|first| ack.position >= first) {
                    self.end_unvalidated("first_unvalidated_packet_acknowledged");
                }
                return Step::Continue { cwnd: self.reset_cwnd.take().unwrap_or(cwnd) };
            }
            // Validation: slow start meanwhile.
            Phase::Validating => {
                self.count(ack);
                if ack.position >= self.last_unvalidated {
                    self.enter(Phase::Normal, "last_unvalidated_packet_acknowledged");
                }
            }
            Phase::SafeRetreat => return self.drain(ack, cwnd),
            Phase::Normal => {}
        }
        // Continuation: as slow start.
        self.slow_start.on_ack(ack, Window { cwnd, ..window }, in_use, rtt)
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.flight_size = loss.in_flight;
        if loss.position <= self.highest_at_jump {
            self.before_jump = self.before_jump.saturating_sub(loss.bytes);
        }
    }

    // Validation failed, unless nothing is unvalidated. A mark loses no bytes.
    fn on_congestion(&mut self, loss: &Loss, _window: Window, reduced: Bytes) -> Step {
        let (trigger, reason) =
            if loss.bytes == Bytes::ZERO { ("ECN_CE", ExitReason::Ecn) } else { ("packet_loss", ExitReason::Loss) };
        if let Phase::Unvalidated | Phase::Validating = self.phase {
            return Step::Continue { cwnd: self.retreat(trigger, reason) };
        }
        if self.phase != Phase::Normal {
            self.enter(Phase::Normal, trigger);
        }
        Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason })
    }

    // Proportional rate reduction does not fit a jump (section 4.5): the window stays as it is.
    fn on_ack_in_recovery(&mut self, ack: &Ack, window: Window, _rtt: &RttEstimator) -> Option<Step> {
        (self.phase == Phase::SafeRetreat).then(|| self.drain(ack, window.cwnd))
    }

    fn on_recovered(&mut self, _now: Timestamp, window: Window) -> Step {
        // Everything that was in flight at the loss is acknowledged, the last unvalidated packet with it.
        self.end_retreat(window.cwnd)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn next_wakeup(&self) -> Timestamp {
        self.unvalidated_until
    }

    fn on_timer(&mut self, now: Timestamp, window: Window) -> Step {
        if self.phase == Phase::Unvalidated && now >= self.unvalidated_until {
            self.end_unvalidated("rtt_exceeded");
        }
        Step::Continue { cwnd: self.reset_cwnd.take().unwrap_or(window.cwnd) }
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take().map(|(phase, trigger)| (phase.name(), trigger))
    }

    // The phases are decisions.
    fn observe(&self, seen: &mut Variables<'_>) {
        if self.jump_cwnd > Bytes::ZERO {
            seen.bytes("saved_cwnd", self.saved_cwnd);
            seen.time("saved_rtt", self.saved_rtt);
            seen.bytes("jump_cwnd", self.jump_cwnd);
            seen.bytes("PipeSize", self.pipe_size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;

    const SEGMENT: u64 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    /// A flow that obeys the scheme, in whole packets of 1000 bytes numbered from 1 as in the draft's examples.
    struct Flow {
        scheme: CarefulResume,
        window: Window,
        rtt: RttEstimator,
        now: Timestamp,
        sent: u64,
        in_flight: u64,
    }

    /// A path on which an earlier connection measured 300 packets in 100 ms.
    fn saved() -> SavedPath {
        SavedPath { rtt: RTT, cwnd: Bytes::new(300 * SEGMENT), age: Duration::from_millis(60_000) }
    }

    impl Flow {
        fn new(config: Config, saved: SavedPath, rtt: Duration) -> Self {
            let mut scheme = CarefulResume::new(config, context(Increase::Bytes));
            let path = PathKnowledge { saved: Some(saved), ..PathKnowledge::default() };
            let launch = scheme.launch(Timestamp::ZERO, &path, &mut DecisionLog::default());
            let window = Window { cwnd: launch.cwnd, ssthresh: Bytes::MAX };
            let mut estimator = RttEstimator::new(rtt);
            estimator.update(Timestamp::ZERO, rtt, Duration::ZERO);
            Self { scheme, window, rtt: estimator, now: Timestamp::ZERO, sent: 0, in_flight: 0 }
        }

        fn send(&mut self, packets: u64) {
            for _ in 0..packets {
                self.sent += 1;
                self.in_flight += 1;
                let in_flight = Bytes::new(self.in_flight * SEGMENT);
                let sent = Sent {
                    now: self.now,
                    bytes: Bytes::new(SEGMENT),
                    in_flight,
                    position: self.sent,
                    app_limited: false,
                };
                self.scheme.on_sent(&sent);
            }
        }

        fn ack(&self, packet: u64) -> Ack {
            let mut ack = acked(self.now, SEGMENT);
            ack.position = packet;
            ack.in_flight_before = Bytes::new(self.in_flight * SEGMENT);
            ack.in_flight = Bytes::new((self.in_flight - 1) * SEGMENT);
            ack.rtt = self.rtt.latest();
            ack
        }

        fn take(&mut self, step: Step) -> Option<Continuation> {
            match step {
                Step::Continue { cwnd } => self.window.cwnd = cwnd,
                Step::Exit(continuation) => return Some(continuation),
            }
            None
        }

        fn acknowledge(&mut self, packets: impl Iterator<Item = u64>) {
            for packet in packets {
                let ack = self.ack(packet);
                self.in_flight -= 1;
                let step = self.scheme.on_ack(&ack, self.window, true, &self.rtt);
                assert_eq!(self.take(step), None);
            }
        }

        fn lose(&mut self, packet: u64, reduced: u64) -> Option<Continuation> {
            let in_flight_before = Bytes::new(self.in_flight * SEGMENT);
            self.in_flight -= 1;
            let in_flight = Bytes::new(self.in_flight * SEGMENT);
            let bytes = Bytes::new(SEGMENT);
            let loss = Loss { now: self.now, bytes, position: packet, in_flight_before, in_flight };
            self.scheme.on_lost(&loss);
            let step = self.scheme.on_congestion(&loss, self.window, Bytes::new(reduced * SEGMENT));
            self.take(step)
        }

        fn segments(&self) -> u64 {
            self.window.cwnd.get() / SEGMENT
        }

        /// The examples of the draft: at the jump, 29 packets are in flight.
        fn at_the_jump(config: Config) -> Self {
            let mut flow = Self::new(config, saved(), RTT);
            flow.send(10);
            flow.acknowledge(1..=9);
            // The tenth packet of the initial window is acknowledged when packets 11 to 39 are in flight.
            flow.send(29);
            flow.acknowledge(10..=10);
            assert_eq!(flow.in_flight, 29);
            flow
        }
    }

    #[test]
    fn the_window_jumps_to_half_of_the_saved_one_over_the_current_rtt() {
        let flow = Flow::at_the_jump(Config::default());
        // Min(no limit, 300 / 2) = 150 packets; PipeSize = 29.
        assert_eq!((flow.scheme.phase, flow.segments()), (Phase::Unvalidated, 150));
        assert_eq!(flow.scheme.pipe_size, Bytes::new(29 * SEGMENT));
        // ITT = 100 ms * 1000 bytes / 150,000 bytes = 0.667 ms: 150,000 bytes / 100 ms = 12 Mbit/s.
        assert_eq!(flow.scheme.pacing_rate(), Some(Rate::from_mbit(12)));
    }

    #[test]
    fn without_loss_the_packets_of_the_jump_become_the_window() {
        let mut flow = Flow::at_the_jump(Config::default());
        // 150 - 29 = 121 unvalidated packets fill the window: it is fully used, and the phase ends.
        flow.send(120);
        assert_eq!(flow.scheme.phase, Phase::Unvalidated);
        flow.send(1);
        assert_eq!(flow.scheme.take_phase(), Some(("validating", "last_unvalidated_packet_sent")));
        assert_eq!(flow.scheme.pacing_rate(), None);
        // Slow start from 150: each of the packets 11 to 160 adds one; the last unvalidated one is 39 + 121 = 160.
        flow.acknowledge(11..=159);
        assert_eq!((flow.scheme.phase, flow.segments()), (Phase::Validating, 299));
        flow.acknowledge(160..=160);
        assert_eq!(flow.scheme.take_phase(), Some(("normal", "last_unvalidated_packet_acknowledged")));
        // 29 at the jump + 121.
        assert_eq!((flow.segments(), flow.scheme.pipe_size), (300, Bytes::new(150 * SEGMENT)));
    }

    #[test]
    fn a_rate_limited_sender_keeps_what_it_used() {
        let mut flow = Flow::at_the_jump(Config::default());
        // Only 50 unvalidated packets; with the last packet from before the jump acknowledged, 50 are in flight.
        flow.send(50);
        flow.acknowledge(11..=39);
        assert_eq!((flow.scheme.phase, flow.in_flight), (Phase::Unvalidated, 50));
        // PipeSize = 29 and flight_size = 50 > 29, one RTT after the jump: the window is 50.
        let now = flow.now + RTT;
        assert_eq!(flow.scheme.next_wakeup(), now);
        let step = flow.scheme.on_timer(now, flow.window);
        assert_eq!(step, Step::Continue { cwnd: Bytes::new(50 * SEGMENT) });
        assert_eq!(flow.scheme.take_phase(), Some(("validating", "rtt_exceeded")));
    }

    #[test]
    fn an_acknowledged_unvalidated_packet_ends_the_jump() {
        let mut flow = Flow::at_the_jump(Config::default());
        flow.send(50);
        flow.acknowledge(11..=40);
        // Packet 40 is the first unvalidated one: PipeSize = 29 + 1 = 30 and flight_size = 49.
        assert_eq!(flow.scheme.take_phase(), Some(("validating", "first_unvalidated_packet_acknowledged")));
        assert_eq!((flow.segments(), flow.scheme.pipe_size), (49, Bytes::new(30 * SEGMENT)));
    }

    #[test]
    fn a_sender_that_sent_nothing_more_returns_to_the_pipe() {
        let mut flow = Flow::at_the_jump(Config::default());
        flow.send(2);
        flow.acknowledge(11..=20);
        // flight_size = 31 - 10 = 21 <= PipeSize = 29.
        let step = flow.scheme.on_timer(flow.now + RTT, flow.window);
        assert_eq!(step, Step::Continue { cwnd: Bytes::new(29 * SEGMENT) });
        assert_eq!(flow.scheme.take_phase(), Some(("normal", "rate_limited")));
    }

    #[test]
    fn the_loss_of_the_35th_unvalidated_packet_leads_to_31() {
        let mut flow = Flow::at_the_jump(Config::default());
        flow.send(121);
        // The 29 packets from before the jump, then 34 unvalidated ones: 40 to 73. The 35th is lost.
        flow.acknowledge(11..=73);
        assert_eq!(flow.scheme.pipe_size, Bytes::new(63 * SEGMENT));
        assert_eq!(flow.lose(74, 106), None);
        assert_eq!(flow.scheme.take_phase(), Some(("safe-retreat", "packet_loss")));
        // 63 / 2 = 31.5 packets.
        assert_eq!(flow.window.cwnd, Bytes::new(31_500));
        // 121 - 35 = 86 further unvalidated packets: 75 to 160. The window does not grow.
        for packet in 75..=160 {
            let ack = flow.ack(packet);
            flow.in_flight -= 1;
            let step = flow.scheme.on_ack_in_recovery(&ack, flow.window, &flow.rtt).expect("the scheme is in charge");
            if packet < 160 {
                assert_eq!(step, Step::Continue { cwnd: Bytes::new(31_500) });
                continue;
            }
            // PipeSize = 63 + 86 = 149 by the rule; 149 * 0.5 = 74.5. (The draft's text has 121 - 1 = 120, so 60.)
            let ssthresh = Bytes::new(74_500);
            let expected = Continuation { cwnd: Bytes::new(31_500), ssthresh, reason: ExitReason::Loss };
            assert_eq!(step, Step::Exit(expected));
            assert_eq!(flow.scheme.take_phase(), Some(("normal", "exit_recovery")));
        }
    }

    #[test]
    fn a_loss_before_the_jump_ends_it() {
        let mut flow = Flow::new(Config::default(), saved(), RTT);
        flow.send(10);
        let reduced = Bytes::new(5 * SEGMENT);
        assert_eq!(flow.lose(1, 5), Some(Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss }));
    }

    #[test]
    fn the_rtt_must_be_more_than_half_and_at_most_ten_times_the_saved_one() {
        let phase = |rtt_ms| {
            let mut flow = Flow::new(Config::default(), saved(), Duration::from_millis(rtt_ms));
            flow.send(10);
            flow.acknowledge(1..=10);
            flow.scheme.phase
        };
        assert_eq!([phase(50), phase(51)], [Phase::Normal, Phase::Unvalidated]);
        assert_eq!([phase(1000), phase(1001)], [Phase::Unvalidated, Phase::Normal]);
    }

    #[test]
    fn an_rtt_that_shrinks_after_the_jump_is_another_path() {
        let mut flow = Flow::at_the_jump(Config::default());
        flow.send(10);
        flow.rtt.update(flow.now, Duration::from_millis(40), Duration::ZERO);
        flow.acknowledge(11..=11);
        // PipeSize = 29, 29 / 2 = 14.5.
        assert_eq!((flow.scheme.phase, flow.window.cwnd), (Phase::SafeRetreat, Bytes::new(14_500)));
    }

    #[test]
    fn old_or_small_memories_are_not_used_and_large_ones_are_limited() {
        let jump =
            |config: Config, saved: SavedPath| CarefulResume::new(config, context(Increase::Bytes)).jump_from(saved);
        let segments = |count: u64| Some(Bytes::new(count * SEGMENT));
        assert_eq!(jump(Config::default(), saved()), segments(150));
        let old = SavedPath { age: Duration::from_millis(3_600_000), ..saved() };
        assert_eq!(jump(Config::default(), old), None);
        // 4 * IW = 40 packets.
        assert_eq!(jump(Config::default(), SavedPath { cwnd: Bytes::new(39_999), ..saved() }), None);
        assert_eq!(jump(Config::default(), SavedPath { cwnd: Bytes::new(40_000), ..saved() }), segments(20));
        let limited = Config { max_jump: segments(100), ..Config::default() };
        assert_eq!(jump(limited, saved()), segments(100));
        assert_eq!(jump(Config { factor: 2.0, ..Config::default() }, saved()), segments(300));
    }

    #[test]
    fn without_pacing_the_jump_leaves_at_once() {
        let flow = Flow::at_the_jump(Config { pacing: false, ..Config::default() });
        assert_eq!(flow.scheme.pacing_rate(), Some(UNPACED));
    }

    #[test]
    fn betas_below_a_half_and_empty_jumps_are_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        assert_eq!(refused(Config { beta: 0.4, ..Config::default() }), Err("beta"));
        assert_eq!(refused(Config { max_jump: Some(Bytes::ZERO), ..Config::default() }), Err("max_jump"));
        assert_eq!(refused(Config { factor: f64::NAN, ..Config::default() }), Err("factor"));
    }
}
