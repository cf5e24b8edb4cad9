//! Composes a startup scheme with congestion avoidance: the only type a transport talks to.
//!
//! The transport reports what was sent, acknowledged, lost and marked; the controller answers with a window, a pacing
//! rate and a burst. It owns every reduction of the window. A congestion event is counted once per window: losses and
//! marks at or below the position that was highest when the window was last reduced do not reduce it again
//! (RFC 6582, RFC 6675 and RFC 9002 section 7.3.2 agree on this rule and differ only in what a position is).
//!
//! Order of calls for one acknowledgement: [`Controller::on_loss`] first, then [`Controller::on_ack`], as in RFC 9002,
//! appendix A.7. After a retransmission timeout or persistent congestion the flow restarts with classic slow start.
//!
//! An integrated congestion avoidance (BBR) is in charge from the first packet: of the startup scheme only the launch
//! counts, the window follows the algorithm alone, and no reduction or recovery of the controller interferes.

use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::avoidance::{AvoidanceConfig, AvoidanceState, SegmentSize, Window};
use crate::event::{Ack, Decision, DecisionLog, Ecn, ExitReason, Loss, LostPacket, Position, Sent, Timeout};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::startup::{Continuation, Increase, Launch, StartupConfig, StartupContext, StartupState, Step};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// How the window moves during recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// cwnd is ssthresh at once (RFC 6675; RFC 9002, section 7.3.2).
    #[default]
    Immediate,
    /// Proportional rate reduction (RFC 6937) with the slow-start reduction bound, which rebuilds the window when losses
    /// took it below ssthresh.
    Prr,
    /// Proportional rate reduction (RFC 6937) whose slow-start reduction bound gives a segment for every packet that is
    /// acknowledged instead of every acknowledgement (Google's QUIC).
    PrrPerPacket,
    /// Proportional rate reduction of RFC 9937, which rebuilds the window only by what is delivered unless an
    /// acknowledgement makes progress without further loss.
    PrrSafe,
}

/// What a reduction starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReductionBase {
    /// The congestion window (RFC 9002; Linux; ns-2).
    #[default]
    Cwnd,
    /// The bytes in flight when the loss was found (RFC 5681, equation 4).
    FlightSize,
}

/// When a window counts as used, so that it may grow (RFC 9002, section 7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthRule {
    /// Always: ns-2 does not look.
    Always,
    /// Unless the sender had nothing to send when the acknowledged packet left.
    #[default]
    NotAppLimited,
    /// In slow start when more than half of the window was in flight, otherwise when the window was full (Linux).
    HalfWindow,
    /// As `half-window`, and a window with at most three segments of room counts as full (Google's QUIC).
    ThreeSegmentsFree,
}

/// How packets are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pacing {
    /// Pacing rate over cwnd / SRTT while cwnd is below ssthresh. Google's QUIC and Linux: 2.
    pub startup_gain: f64,
    /// Pacing rate over cwnd / SRTT otherwise. Google's QUIC: 1.25; Linux 1.2; RFC 9002, section 7.7 suggests 1.25.
    pub avoidance_gain: f64,
    /// Segments that leave at once when sending starts or resumes. RFC 9002, section 7.7: the initial window, 10.
    pub burst: u64,
    /// How much before its time a packet may leave. Google's QUIC: 1 ms.
    pub quantum: Duration,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { startup_gain: 2.0, avoidance_gain: 1.25, burst: 10, quantum: Duration::ZERO }
    }
}

/// Everything that defines a controller besides the scheme and the congestion avoidance.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerConfig {
    /// Startup scheme.
    pub startup: StartupConfig,
    /// Congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// Segment size in which windows are counted.
    pub segment: Bytes,
    /// Initial window in segments when the scheme does not set one.
    pub initial_window: u64,
    /// Smallest window in segments. RFC 9002, section 7.2: 2.
    pub min_window: u64,
    /// Largest window in segments; `None`: no limit.
    pub max_window: Option<u64>,
    /// How slow start counts acknowledgements.
    pub increase: Increase,
    /// How the window moves during recovery.
    pub reduction: Reduction,
    /// What a reduction starts from.
    pub reduction_base: ReductionBase,
    /// When the window may grow.
    pub growth: GrowthRule,
    /// Whether the acknowledgement that ends slow start or recovery also counts for congestion avoidance, as in Linux.
    pub transition_growth: bool,
    /// Pacing, `None`: bursts as acknowledgements release them.
    pub pacing: Option<Pacing>,
    /// Window in segments after a retransmission timeout. RFC 5681: 1; RFC 9002: its minimum, 2.
    pub timeout_window: u64,
}

impl ControllerConfig {
    /// A configuration with the defaults of RFC 9002 and segments of 1200 bytes.
    pub fn new(startup: StartupConfig, avoidance: AvoidanceConfig) -> Self {
        Self {
            startup,
            avoidance,
            segment: Bytes::new(1200),
            initial_window: 10,
            min_window: 2,
            max_window: None,
            increase: Increase::Bytes,
            reduction: Reduction::Immediate,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::NotAppLimited,
            transition_growth: false,
            pacing: Some(Pacing::default()),
            timeout_window: 2,
        }
    }

    /// Refuses a scheme of which nothing would be left because the congestion avoidance starts by itself.
    pub fn validate_pair(startup: &StartupConfig, avoidance: &AvoidanceConfig) -> Result<(), ConfigError> {
        if !avoidance.integrated() || startup.has_launch() {
            return Ok(());
        }
        let launching: Vec<_> =
            StartupConfig::defaults().iter().filter(|scheme| scheme.has_launch()).map(StartupConfig::name).collect();
        let allowed = format!(
            "{}: {} probes by itself and takes only a scheme's launch, and {} is only a rule for leaving slow start",
            launching.join(", "),
            avoidance.name(),
            startup.name(),
        );
        Err(ConfigError::new("scheme", startup.name(), allowed))
    }

    /// What every scheme is told.
    fn startup_context(&self) -> StartupContext {
        StartupContext {
            segment: self.segment,
            initial_window: self.segment * self.initial_window,
            increase: self.increase,
            paced: self.pacing.is_some(),
        }
    }
}

/// What a transport may do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output {
    /// Bytes that may be in flight.
    pub cwnd: Bytes,
    /// Rate at which packets may leave; `None`: as the window allows.
    pub pacing_rate: Option<Rate>,
    /// Bytes that may leave at once when sending starts or resumes with nothing in flight.
    pub burst: Bytes,
    /// How much before its time a packet may leave, so that packets are sent in groups.
    pub send_quantum: Duration,
    /// Bytes that may be sent again without any sign of loss: data that was sent and is not acknowledged, in the bytes by
    /// which packets count as in flight ([`Sent::bytes`]). It is what remains of the
    /// grants of [`Startup::proactive_retransmit`](crate::startup::Startup::proactive_retransmit), and zero after startup.
    ///
    /// The transport uses it only when neither new nor lost data waits, inside the window and paced like other packets. It
    /// walks from the highest unacknowledged packet towards the front, passes over what is acknowledged or was sent again
    /// for whatever reason, sends each packet proactively at most once, and stops where the walk meets the
    /// acknowledgements. A packet is sent when the whole of it is granted, and reported by [`Controller::on_sent`] and
    /// [`Controller::on_proactive_retransmission`]. This is Halfback's reverse-ordered proactive retransmission (Li, Dong,
    /// Godfrey, `CoNEXT` 2015) when a scheme grants a segment with each acknowledgement after the last new data.
    pub proactive_retransmit: Bytes,
    /// When [`Controller::on_timer`] wants to be called.
    pub next_wakeup: Timestamp,
}

/// Which algorithm moves the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    /// Classic slow start after a timeout, or after a startup that ended below ssthresh.
    Restart,
    Avoidance,
    /// An integrated congestion avoidance, which is or is not in its own startup.
    Integrated {
        starting: bool,
    },
}

/// Recovery from a congestion event. Names as in RFC 6937.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Recovery ends when a position beyond it is acknowledged.
    point: Position,
    /// `RecoverFS`: bytes in flight when it began.
    recover_fs: Bytes,
    /// `prr_delivered`: bytes delivered since.
    prr_delivered: Bytes,
    /// `prr_out`: bytes sent since.
    prr_out: Bytes,
}

/// Congestion control of one path.
#[derive(Clone, Debug)]
pub struct Controller {
    config: ControllerConfig,
    startup: StartupState,
    avoidance: AvoidanceState,
    phase: Phase,
    window: Window,
    recovery: Option<Recovery>,
    /// Events at or below this position belong to the last reduction.
    last_reduction: Option<Position>,
    highest_sent: Position,
    /// Highest position that an acknowledgement reported.
    acknowledged: Option<Position>,
    /// What was acknowledged at the last timeout, if there was one: the next timeout finds the same data missing when
    /// nothing more is.
    timed_out_at: Option<Option<Position>>,
    /// Set by a launch, until the first acknowledgement.
    launch_rate: Option<Rate>,
    /// Set by a launch, until the first acknowledgement.
    launch_burst: Option<Bytes>,
    /// What the startup scheme asks for.
    scheme_rate: Option<Rate>,
    /// What the host's own rule gives.
    host_rate: Option<Rate>,
    /// What was granted and not yet used.
    proactive: Bytes,
    /// The congestion avoidance is integrated.
    integrated: bool,
    /// Beside an integrated algorithm: the window of a scheme that has not sensed its launch yet.
    sensing: Option<Window>,
    log: DecisionLog,
}

impl Controller {
    /// A controller that has not launched yet.
    pub fn new(config: ControllerConfig) -> Self {
        let startup = config.startup.build(config.startup_context());
        let avoidance = config.avoidance.build(SegmentSize(config.segment));
        Self::with_algorithms(config, startup, avoidance)
    }

    /// A controller with algorithms of the caller, for schemes outside this crate.
    pub fn with_algorithms(config: ControllerConfig, startup: StartupState, mut avoidance: AvoidanceState) -> Self {
        let integrated = avoidance.as_dyn().integrated();
        let window = Window { cwnd: config.segment * config.initial_window, ssthresh: Bytes::MAX };
        Self {
            config,
            startup,
            avoidance,
            phase: Phase::Startup,
            window,
            recovery: None,
            last_reduction: None,
            highest_sent: 0,
            acknowledged: None,
            timed_out_at: None,
            launch_rate: None,
            launch_burst: None,
            scheme_rate: None,
            host_rate: None,
            proactive: Bytes::ZERO,
            integrated,
            sensing: None,
            log: DecisionLog::default(),
        }
    }

    /// The handshake is over and data may leave: Sensing turns what is known about the path into the launch.
    pub fn launch(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) {
        let launch = self.startup.as_dyn().launch(now, path, &mut self.log);
        self.set_cwnd(launch.cwnd);
        self.launch_rate = launch.pacing_rate;
        // A scheme that paces by itself starts with one segment unless it says more.
        self.launch_burst = launch.burst.or(launch.pacing_rate.map(|_| self.config.segment));
        self.log.note(now, Decision::Launched { cwnd: self.window.cwnd, pacing_rate: self.launch_rate });
        if self.integrated {
            self.hand_over(now, &launch, rtt);
            return;
        }
        self.note_phase(now);
        if let Some(continuation) = launch.continuation {
            self.exit_startup(now, continuation);
        }
        self.update_pacing(rtt);
    }

    /// A packet that counts as in flight was sent.
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        self.highest_sent = self.highest_sent.max(sent.position);
        if let Some(recovery) = &mut self.recovery {
            recovery.prr_out += sent.bytes;
        }
        if self.phase == Phase::Startup {
            let startup = self.startup.as_dyn();
            startup.on_sent(sent);
            self.scheme_rate = startup.pacing_rate();
            self.note_phase(sent.now);
        } else if let Phase::Integrated { .. } = self.phase {
            if self.sensing.is_some() {
                self.startup.as_dyn().on_sent(sent);
            }
            self.avoidance.as_dyn().on_sent(sent);
            self.follow_integrated(sent.now);
        }
    }

    /// Whether the host has to sample the delivery rate ([`Ack::sample`]) and to tell of each lost packet
    /// ([`Controller::on_packet_lost`]).
    pub fn wants_rate_samples(&self) -> bool {
        self.integrated
    }

    /// A packet was declared lost. Only where rate samples are wanted, before the [`Controller::on_loss`] that sums up.
    pub fn on_packet_lost(&mut self, lost: &LostPacket) {
        if let Phase::Integrated { .. } = self.phase {
            self.avoidance.as_dyn().on_packet_lost(lost);
        }
    }

    /// Data was sent again because of [`Output::proactive_retransmit`], and `bytes` of the grant are used.
    pub fn on_proactive_retransmission(&mut self, bytes: Bytes) {
        self.proactive = self.proactive.saturating_sub(bytes);
    }

    /// Data was delivered.
    pub fn on_ack(&mut self, ack: &Ack, rtt: &RttEstimator) {
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
        if let Some(mut recovery) = self.recovery {
            if ack.position > recovery.point {
                self.recovery = None;
                if self.config.reduction != Reduction::Immediate {
                    self.set_cwnd(self.window.ssthresh);
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
                Phase::Restart | Phase::Avoidance | Phase::Integrated { .. } => None,
            };
            if let Some(step) = step {
                self.take_step(ack.now, step);
                if self.phase != Phase::Startup {
                    self.recovery = None;
                }
                self.update_pacing(rtt);
                return;
            }
            if self.config.reduction != Reduction::Immediate {
                let margin = match self.config.reduction {
                    Reduction::PrrSafe if !ack.safe => Bytes::ZERO,
                    Reduction::PrrPerPacket => self.config.segment * ack.packets,
                    _ => self.config.segment,
                };
                let cwnd = recovery.proportional_window(ack, self.window.ssthresh, self.config.segment, margin);
                self.window.cwnd = cwnd.max(self.config.segment);
            }
            self.recovery = Some(recovery);
            self.update_pacing(rtt);
            return;
        }
        self.grow(ack, rtt);
        self.update_pacing(rtt);
    }

    /// Packets were declared lost.
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

    /// The receiver echoed new CE marks. The reaction is that to a loss (RFC 3168; RFC 9002, section 7.1).
    pub fn on_ecn(&mut self, ecn: &Ecn, rtt: &RttEstimator) {
        if self.last_reduction.is_some_and(|point| ecn.position <= point) {
            return;
        }
        if let Phase::Integrated { .. } = self.phase {
            self.last_reduction = Some(self.highest_sent);
            self.sensing = None;
            self.avoidance.as_dyn().on_mark(ecn);
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

    /// A retransmission timeout or persistent congestion: classic slow start from the smallest window. When the timer fires
    /// again before any position is acknowledged, the same segment was lost again and ssthresh is held (RFC 5681,
    /// section 3.1).
    pub fn on_timeout(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        let before = self.window.cwnd;
        if let Phase::Integrated { .. } = self.phase {
            return self.time_out_integrated(timeout);
        }
        if self.timed_out_at != Some(self.acknowledged) {
            let base = self.base(timeout.in_flight_before);
            let reduced = self.avoidance.as_dyn().on_congestion(timeout.now, base, self.window);
            self.window.ssthresh = reduced.max(self.config.segment * 2);
        }
        self.timed_out_at = Some(self.acknowledged);
        self.window.cwnd = self.config.segment * self.config.timeout_window;
        self.recovery = None;
        self.last_reduction = Some(self.highest_sent);
        if self.phase == Phase::Startup {
            let (cwnd, ssthresh) = (self.window.cwnd, self.window.ssthresh);
            self.log.note(timeout.now, Decision::StartupExited { reason: ExitReason::Timeout, cwnd, ssthresh });
        }
        self.phase = Phase::Restart;
        self.log.note(timeout.now, Decision::Collapsed { before, ssthresh: self.window.ssthresh });
        self.update_pacing(rtt);
    }

    /// The time of [`Output::next_wakeup`] has come.
    pub fn on_timer(&mut self, now: Timestamp, rtt: &RttEstimator) {
        if self.phase == Phase::Startup {
            let step = self.startup.as_dyn().on_timer(now, self.window);
            self.take_step(now, step);
            self.update_pacing(rtt);
        }
    }

    /// What the transport may do now.
    #[inline]
    pub fn output(&mut self) -> Output {
        let next_wakeup = match self.phase {
            Phase::Startup => self.startup.as_dyn().next_wakeup(),
            Phase::Restart | Phase::Avoidance | Phase::Integrated { .. } => Timestamp::NEVER,
        };
        let pacing = self.config.pacing;
        let own_burst = match self.phase {
            Phase::Integrated { .. } => self.launch_burst.or(self.avoidance.as_dyn().burst()),
            Phase::Startup | Phase::Restart | Phase::Avoidance => self.launch_burst,
        };
        Output {
            cwnd: self.window.cwnd,
            pacing_rate: self.pacing_rate(),
            burst: own_burst
                .unwrap_or_else(|| pacing.map_or(Bytes::ZERO, |pacing| self.config.segment * pacing.burst))
                .min(self.window.cwnd),
            send_quantum: pacing.map_or(Duration::ZERO, |pacing| pacing.quantum),
            proactive_retransmit: self.proactive_retransmit(),
            next_wakeup,
        }
    }

    /// Congestion window.
    #[inline]
    pub fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    /// Rate at which packets may leave.
    #[inline]
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.launch_rate.or(self.scheme_rate).or(self.host_rate)
    }

    /// Bytes that may be sent again without any sign of loss ([`Output::proactive_retransmit`]).
    #[inline]
    pub fn proactive_retransmit(&self) -> Bytes {
        match self.phase {
            Phase::Startup => self.proactive,
            Phase::Restart | Phase::Avoidance | Phase::Integrated { .. } => Bytes::ZERO,
        }
    }

    /// Slow-start threshold; [`Bytes::MAX`] before the first reduction.
    pub fn ssthresh(&self) -> Bytes {
        self.window.ssthresh
    }

    /// Whether the startup scheme still moves the window, or an integrated congestion avoidance is in its own startup.
    pub fn in_startup(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Integrated { starting: true })
    }

    /// Whether the window was reduced and the reduction is not yet confirmed by acknowledgements.
    pub fn in_recovery(&self) -> bool {
        self.recovery.is_some()
    }

    /// Takes the oldest decision not yet taken, for traces.
    #[inline]
    pub fn take_decision(&mut self) -> Option<(Timestamp, Decision)> {
        self.log.take()
    }

    /// Growth for what `ack` delivered, outside recovery.
    fn grow(&mut self, ack: &Ack, rtt: &RttEstimator) {
        let in_use = self.in_use(ack);
        match self.phase {
            Phase::Startup => {
                let step = self.startup.as_dyn().on_ack(ack, self.window, in_use, rtt);
                self.take_step(ack.now, step);
                if self.config.transition_growth && in_use && self.phase == Phase::Avoidance {
                    let grown = self.avoidance.as_dyn().on_ack(ack, self.window, rtt);
                    self.set_cwnd(grown);
                }
            }
            Phase::Restart if in_use => {
                let grown = self.config.startup_context().slow_start_growth(self.window.cwnd, ack);
                if grown >= self.window.ssthresh {
                    self.set_cwnd(self.window.ssthresh.max(self.window.cwnd));
                    self.enter_avoidance(ack.now);
                } else {
                    self.set_cwnd(grown);
                }
            }
            Phase::Avoidance if in_use => {
                let grown = self.avoidance.as_dyn().on_ack(ack, self.window, rtt);
                self.set_cwnd(grown);
            }
            Phase::Restart | Phase::Integrated { .. } => {}
            Phase::Avoidance => self.avoidance.as_dyn().on_underused(ack.now),
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

    fn base(&self, in_flight: Bytes) -> Bytes {
        match self.config.reduction_base {
            ReductionBase::Cwnd => self.window.cwnd,
            ReductionBase::FlightSize => in_flight,
        }
    }

    fn reduce(&mut self, event: &Loss, reason: ExitReason) {
        let before = self.window.cwnd;
        let base = self.base(event.in_flight_before);
        let reduced = self.avoidance.as_dyn().on_congestion(event.now, base, self.window);
        let reduced = reduced.max(self.config.segment * self.config.min_window);
        self.recovery = Some(Recovery {
            point: self.highest_sent,
            recover_fs: event.in_flight_before.max(self.config.segment),
            prr_delivered: Bytes::ZERO,
            prr_out: Bytes::ZERO,
        });
        self.last_reduction = Some(self.highest_sent);
        if self.phase == Phase::Startup {
            let step = match self.startup.as_dyn().on_congestion(event, self.window, reduced) {
                Step::Exit(continuation) if reason != ExitReason::Loss => {
                    Step::Exit(Continuation { reason, ..continuation })
                }
                step => step,
            };
            if let Step::Continue { cwnd } = step {
                // Recovery needs a target while the scheme stays in charge.
                self.window.ssthresh = cwnd;
            }
            self.take_step(event.now, step);
        } else {
            self.window.ssthresh = reduced;
            self.set_cwnd(reduced);
            self.phase = Phase::Avoidance;
        }
        self.log.note(event.now, Decision::WindowReduced { before, after: self.window.cwnd });
    }

    /// The integrated algorithm takes over with the scheme's launch.
    fn hand_over(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        // The algorithm knows the launch's rate and goes on from it.
        self.launch_rate = None;
        if !launch.knows_the_path() {
            // The host's burst of an initial window; after the first acknowledgement it is the algorithm's.
            self.launch_burst = launch.burst.or(self.config.pacing.map(|pacing| self.config.segment * pacing.burst));
            self.sensing = Some(self.window);
        }
        self.avoidance.as_dyn().on_launch(now, launch, rtt);
        self.follow_integrated(now);
    }

    /// What the integrated algorithm did with the last event.
    fn follow_integrated(&mut self, now: Timestamp) {
        let avoidance = self.avoidance.as_dyn();
        while let Some((phase, trigger)) = avoidance.take_phase() {
            self.log.note(now, Decision::PhaseEntered { phase, trigger });
        }
        if let Some(reason) = avoidance.take_exit() {
            let Window { cwnd, ssthresh } = self.window;
            self.log.note(now, Decision::StartupExited { reason, cwnd, ssthresh });
        }
        self.scheme_rate = avoidance.pacing_rate();
        let starting = avoidance.is_starting();
        self.phase = Phase::Integrated { starting };
        self.sensing = self.sensing.filter(|_| starting);
    }

    fn take_integrated_ack(&mut self, ack: &Ack, rtt: &RttEstimator) {
        let recovered = self.recovery.is_some_and(|recovery| ack.position > recovery.point);
        if recovered {
            self.recovery = None;
            self.avoidance.as_dyn().on_recovered();
        }
        let cwnd = self.avoidance.as_dyn().on_ack(ack, self.window, rtt);
        self.set_cwnd(cwnd);
        self.sense_late_launch(ack, rtt);
        if recovered {
            self.log.note(ack.now, Decision::Recovered { cwnd: self.window.cwnd });
        }
        self.follow_integrated(ack.now);
    }

    /// A scheme whose launch comes with the first acknowledgements is asked until it sets a rate, ends, or loses.
    fn sense_late_launch(&mut self, ack: &Ack, rtt: &RttEstimator) {
        let Some(window) = self.sensing else { return };
        let startup = self.startup.as_dyn();
        match startup.on_ack(ack, window, true, rtt) {
            Step::Exit(_) => self.sensing = None,
            Step::Continue { cwnd } => {
                self.sensing = Some(Window { cwnd, ..window });
                if let Some(rate) = startup.pacing_rate() {
                    self.sensing = None;
                    let cwnd = self.avoidance.as_dyn().on_late_launch(self.window, cwnd, rate);
                    self.set_cwnd(cwnd);
                }
                self.note_phase(ack.now);
            }
        }
    }

    fn start_integrated_recovery(&mut self, loss: &Loss) {
        self.sensing = None;
        self.last_reduction = Some(self.highest_sent);
        self.recovery = Some(Recovery {
            point: self.highest_sent,
            recover_fs: loss.in_flight_before,
            prr_delivered: Bytes::ZERO,
            prr_out: Bytes::ZERO,
        });
        let cwnd = self.avoidance.as_dyn().on_congestion(loss.now, loss.in_flight_before, self.window);
        self.set_cwnd(cwnd);
        self.follow_integrated(loss.now);
    }

    fn time_out_integrated(&mut self, timeout: &Timeout) {
        let before = self.window.cwnd;
        let loss = Loss {
            now: timeout.now,
            bytes: timeout.in_flight_before,
            position: self.highest_sent,
            in_flight_before: timeout.in_flight_before,
            in_flight: Bytes::ZERO,
        };
        self.start_integrated_recovery(&loss);
        let least = self.config.segment * self.config.timeout_window;
        let cwnd = self.avoidance.as_dyn().on_timeout(timeout.now, self.window, least);
        self.set_cwnd(cwnd);
        self.log.note(timeout.now, Decision::Collapsed { before, ssthresh: self.window.ssthresh });
        self.follow_integrated(timeout.now);
    }

    fn note_phase(&mut self, now: Timestamp) {
        if let Some((phase, trigger)) = self.startup.as_dyn().take_phase() {
            self.log.note(now, Decision::PhaseEntered { phase, trigger });
        }
    }

    fn take_step(&mut self, now: Timestamp, step: Step) {
        self.note_phase(now);
        match step {
            Step::Continue { cwnd } => self.set_cwnd(cwnd),
            Step::Exit(continuation) => {
                self.set_cwnd(continuation.cwnd);
                self.exit_startup(now, continuation);
            }
        }
    }

    fn exit_startup(&mut self, now: Timestamp, Continuation { cwnd, ssthresh, reason }: Continuation) {
        self.window.ssthresh = ssthresh;
        self.log.note(now, Decision::StartupExited { reason, cwnd, ssthresh });
        if cwnd < ssthresh {
            self.phase = Phase::Restart;
        } else {
            self.enter_avoidance(now);
        }
    }

    fn enter_avoidance(&mut self, now: Timestamp) {
        self.phase = Phase::Avoidance;
        self.avoidance.as_dyn().on_enter(now, self.window);
    }

    fn set_cwnd(&mut self, cwnd: Bytes) {
        let max = self.config.max_window.map_or(Bytes::MAX, |segments| self.config.segment * segments);
        // A launch or a scheme may ask for one segment (IW 1); the minimum binds reductions, which apply it themselves.
        self.window.cwnd = cwnd.min(max).max(self.config.segment);
    }

    fn update_pacing(&mut self, rtt: &RttEstimator) {
        self.scheme_rate = match self.phase {
            Phase::Startup => self.startup.as_dyn().pacing_rate(),
            Phase::Restart | Phase::Avoidance | Phase::Integrated { .. } => None,
        };
        let Some(pacing) = self.config.pacing else {
            return;
        };
        let gain = if self.window.cwnd < self.window.ssthresh { pacing.startup_gain } else { pacing.avoidance_gain };
        self.host_rate = Some(Rate::from_transfer(self.window.cwnd.scale(gain), rtt.smoothed()));
    }
}

impl Recovery {
    /// The window that RFC 6937, section 3.1 allows after `ack`: pipe + sndcnt. `margin` is what may be sent beyond what
    /// was delivered while the window is rebuilt.
    fn proportional_window(&mut self, ack: &Ack, ssthresh: Bytes, segment: Bytes, margin: Bytes) -> Bytes {
        self.prr_delivered += ack.bytes;
        let pipe = ack.in_flight;
        let send = if pipe > ssthresh {
            // CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            let due = (u128::from(self.prr_delivered.get()) * u128::from(ssthresh.get()))
                .div_ceil(u128::from(self.recover_fs.get()));
            Bytes::new(due as u64).saturating_sub(self.prr_out)
        } else {
            // limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS (slow-start reduction bound)
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(ack.bytes) + margin;
            (ssthresh.saturating_sub(pipe)).min(limit)
        };
        // The first acknowledgement of recovery releases the fast retransmission.
        let send = if self.prr_out == Bytes::ZERO { send.max(segment) } else { send };
        pipe + send
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::cubic::tests::acked;
    use crate::avoidance::{bbr, cubic, reno};
    use crate::startup::{Launch, Startup, blitzstart, hystart, slow_start};

    const SEGMENT: u64 = 1000;

    fn controller(reduction: Reduction) -> (Controller, RttEstimator) {
        let startup = StartupConfig::SlowStart(slow_start::Config::default());
        let mut config = ControllerConfig::new(startup, AvoidanceConfig::Reno(reno::Config::default()));
        config.segment = Bytes::new(SEGMENT);
        config.reduction = reduction;
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
        let mut controller = Controller::new(config);
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        (controller, rtt)
    }

    fn send(controller: &mut Controller, position: Position, in_flight: u64) {
        controller.on_sent(&Sent {
            now: Timestamp::ZERO,
            bytes: Bytes::new(SEGMENT),
            in_flight: Bytes::new(in_flight),
            position,
            app_limited: false,
        });
    }

    fn loss(position: Position, in_flight_before: u64) -> Loss {
        Loss {
            now: Timestamp::ZERO,
            bytes: Bytes::new(SEGMENT),
            position,
            in_flight_before: Bytes::new(in_flight_before),
            in_flight: Bytes::new(in_flight_before - SEGMENT),
        }
    }

    #[test]
    fn one_window_is_reduced_once() {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        for position in 1..=10 {
            send(&mut controller, position, position * SEGMENT);
        }
        controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
        controller.on_loss(&loss(10, 9 * SEGMENT), &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT), "position 10 was sent before the reduction");
        send(&mut controller, 11, 5 * SEGMENT);
        controller.on_loss(&loss(11, 5 * SEGMENT), &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT / 2));
    }

    #[test]
    fn the_window_does_not_grow_during_recovery() {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        send(&mut controller, 10, 10 * SEGMENT);
        controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
        let mut ack = acked(Timestamp::ZERO, SEGMENT);
        ack.position = 10;
        controller.on_ack(&ack, &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
        assert!(controller.in_recovery());
        ack.position = 11;
        controller.on_ack(&ack, &rtt);
        assert!(!controller.in_recovery());
        assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
        controller.on_ack(&ack, &rtt);
        assert!(controller.cwnd() > Bytes::new(5 * SEGMENT));
    }

    #[test]
    fn prr_sends_in_proportion_to_what_is_delivered() {
        // RFC 6937: 20 segments in flight, one lost, ssthresh 10: every second acknowledgement releases a segment.
        let (mut controller, rtt) = controller(Reduction::Prr);
        controller.window.cwnd = Bytes::new(20 * SEGMENT);
        send(&mut controller, 20, 20 * SEGMENT);
        controller.on_loss(&loss(1, 20 * SEGMENT), &rtt);
        assert_eq!(controller.ssthresh(), Bytes::new(10 * SEGMENT));
        let mut pipe = 19;
        let mut sent = 0;
        for _ in 0..18 {
            pipe -= 1;
            let mut ack = acked(Timestamp::ZERO, SEGMENT);
            ack.in_flight = Bytes::new(pipe * SEGMENT);
            ack.position = 1;
            controller.on_ack(&ack, &rtt);
            while controller.cwnd() >= Bytes::new((pipe + 1) * SEGMENT) {
                pipe += 1;
                sent += 1;
                send(&mut controller, 20 + sent, pipe * SEGMENT);
            }
        }
        // 18 delivered * 10 / 20 = 9 sent, and 19 - 18 + 9 = 10 in flight: ssthresh.
        assert_eq!((sent, pipe), (9, 10));
    }

    #[test]
    fn a_timeout_restarts_with_slow_start() {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        send(&mut controller, 10, 10 * SEGMENT);
        let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(10 * SEGMENT) };
        controller.on_timeout(&timeout, &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(2 * SEGMENT));
        assert_eq!(controller.ssthresh(), Bytes::new(5 * SEGMENT));
        for position in 11..=14 {
            let mut ack = acked(Timestamp::ZERO, SEGMENT);
            ack.position = position;
            controller.on_ack(&ack, &rtt);
        }
        // Slow start to ssthresh = 5, then congestion avoidance: 2, 3, 4, 5, 5 + 1/5.
        assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT + SEGMENT / 5));
    }

    #[test]
    fn a_repeated_timeout_of_the_same_data_holds_ssthresh() {
        // RFC 5681, section 3.1: "when a TCP sender detects segment loss using the retransmission timer and the given
        // segment has already been retransmitted by way of the retransmission timer at least once, the value of ssthresh
        // is held constant."
        let (mut controller, rtt) = controller(Reduction::Immediate);
        controller.config.reduction_base = ReductionBase::FlightSize;
        let acknowledge = |controller: &mut Controller, position| {
            let mut ack = acked(Timestamp::ZERO, SEGMENT);
            ack.position = position;
            controller.on_ack(&ack, &rtt);
        };
        let time_out = |controller: &mut Controller, in_flight| {
            let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(in_flight * SEGMENT) };
            controller.on_timeout(&timeout, &rtt);
            (controller.ssthresh().get() / SEGMENT, controller.cwnd().get() / SEGMENT)
        };
        acknowledge(&mut controller, 7);
        send(&mut controller, 27, 20 * SEGMENT);
        // Equation 4: ssthresh = max(FlightSize / 2, 2 * SMSS) = max(20 / 2, 2) = 10.
        assert_eq!(time_out(&mut controller, 20), (10, 2));
        // The retransmission is lost as well, and again: one segment in flight, but ssthresh stays at 10 instead of 2.
        assert_eq!(time_out(&mut controller, 1), (10, 2));
        assert_eq!(time_out(&mut controller, 1), (10, 2));
        // What only arrives above the gap is no progress.
        acknowledge(&mut controller, 7);
        assert_eq!(time_out(&mut controller, 1), (10, 2));
        // It arrives; the timeout of another segment is a new one: max(6 / 2, 2) = 3.
        acknowledge(&mut controller, 9);
        assert_eq!(time_out(&mut controller, 6), (3, 2));
    }

    #[test]
    fn the_first_timeout_reduces_ssthresh_even_if_nothing_was_ever_acknowledged() {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        send(&mut controller, 10, 10 * SEGMENT);
        let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(10 * SEGMENT) };
        for _ in 0..2 {
            controller.on_timeout(&timeout, &rtt);
            // Half of the window of 10, once: the second time it would be half of 2.
            assert_eq!(controller.ssthresh(), Bytes::new(5 * SEGMENT));
        }
    }

    /// cwnd after the acknowledgement that ends recovery from 10 to 5 segments, in bytes.
    fn recovered(transition_growth: bool) -> u64 {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        controller.config.transition_growth = transition_growth;
        send(&mut controller, 10, 10 * SEGMENT);
        controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
        let mut ack = acked(Timestamp::ZERO, SEGMENT);
        ack.position = 11;
        controller.on_ack(&ack, &rtt);
        assert!(!controller.in_recovery());
        controller.cwnd().get()
    }

    #[test]
    fn the_acknowledgement_that_ends_recovery_counts_only_when_asked_to() {
        // Reno: 1000 * 1000 / 5000 = 200 bytes.
        assert_eq!((recovered(false), recovered(true)), (5 * SEGMENT, 5 * SEGMENT + 200));
    }

    /// Slow start that grants a segment with every acknowledgement.
    #[derive(Clone, Debug)]
    struct Generous(slow_start::SlowStart);

    impl Startup for Generous {
        fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch {
            self.0.launch(now, path, log)
        }

        fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
            self.0.on_ack(ack, window, in_use, rtt)
        }

        fn proactive_retransmit(&mut self, _ack: &Ack) -> Bytes {
            Bytes::new(SEGMENT)
        }
    }

    #[test]
    fn grants_add_up_are_used_and_end_with_startup() {
        let (plain, rtt) = controller(Reduction::Immediate);
        let context = plain.config.startup_context();
        let scheme = Generous(slow_start::SlowStart::new(slow_start::Config::default(), context));
        let avoidance = AvoidanceConfig::Reno(reno::Config::default()).build(SegmentSize(Bytes::new(SEGMENT)));
        let mut controller = Controller::with_algorithms(
            plain.config.clone(),
            StartupState::Custom(alloc::boxed::Box::new(scheme)),
            avoidance,
        );
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        send(&mut controller, 10, 10 * SEGMENT);
        assert_eq!(controller.output().proactive_retransmit, Bytes::ZERO);
        for _ in 0..3 {
            controller.on_ack(&acked(Timestamp::ZERO, SEGMENT), &rtt);
        }
        // 3 granted - 1 used = 2.
        controller.on_proactive_retransmission(Bytes::new(SEGMENT));
        assert_eq!(controller.output().proactive_retransmit, Bytes::new(2 * SEGMENT));
        assert_eq!(controller.clone().proactive_retransmit(), Bytes::new(2 * SEGMENT));
        controller.on_loss(&loss(10, 10 * SEGMENT), &rtt);
        assert!(!controller.in_startup());
        controller.on_ack(&acked(Timestamp::ZERO, SEGMENT), &rtt);
        assert_eq!(controller.output().proactive_retransmit, Bytes::ZERO);
    }

    #[test]
    fn pacing_follows_the_window() {
        let (controller, _) = controller(Reduction::Immediate);
        // 10 segments * 2 / 100 ms = 20,000 bytes / 0.1 s = 1.6 Mbit/s.
        assert_eq!(controller.pacing_rate(), Some(Rate::from_bits_per_sec(1_600_000)));
    }

    #[test]
    fn decisions_tell_the_story_of_startup() {
        let startup = StartupConfig::Hystart(hystart::Config::default());
        let config = ControllerConfig::new(startup, AvoidanceConfig::Cubic(cubic::Config::default()));
        let rtt = RttEstimator::new(Duration::from_millis(100));
        let mut controller = Controller::new(config);
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        controller.on_loss(&loss(1, 12_000), &rtt);
        let decisions: Vec<_> = core::iter::from_fn(|| controller.take_decision()).map(|d| d.1).collect();
        assert!(matches!(decisions[0], Decision::Launched { .. }));
        assert!(matches!(decisions[1], Decision::StartupExited { reason: ExitReason::Loss, .. }));
        assert!(matches!(decisions[2], Decision::WindowReduced { .. }));
    }

    /// A scheme that ends with its launch, below ssthresh.
    #[derive(Clone, Debug)]
    struct EndsEarly {
        told: bool,
    }

    impl Startup for EndsEarly {
        fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
            let (cwnd, ssthresh) = (Bytes::new(2 * SEGMENT), Bytes::new(4 * SEGMENT));
            let continuation = Continuation { cwnd, ssthresh, reason: ExitReason::Launch };
            Launch { continuation: Some(continuation), ..Launch::window(cwnd) }
        }

        fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
            Step::Continue { cwnd: window.cwnd }
        }

        fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
            (!core::mem::replace(&mut self.told, true)).then_some(("end", "launch"))
        }
    }

    #[test]
    fn a_startup_that_ends_below_ssthresh_continues_with_slow_start_and_phases_are_told_once() {
        let (template, rtt) = controller(Reduction::Immediate);
        let startup = StartupState::Custom(alloc::boxed::Box::new(EndsEarly { told: false }));
        let mut controller = Controller::with_algorithms(template.config, startup, template.avoidance);
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        for _ in 0..3 {
            controller.on_ack(&acked(Timestamp::ZERO, SEGMENT), &rtt);
        }
        // Slow start 2, 3, 4 = ssthresh, then congestion avoidance: 4 + 1/4.
        assert_eq!(controller.cwnd(), Bytes::new(4 * SEGMENT + SEGMENT / 4));
        let decisions: Vec<_> = core::iter::from_fn(|| controller.take_decision()).map(|d| d.1).collect();
        assert!(matches!(decisions[1], Decision::PhaseEntered { phase: "end", trigger: "launch" }), "{decisions:?}");
        assert!(matches!(decisions[2], Decision::StartupExited { reason: ExitReason::Launch, .. }), "{decisions:?}");
        assert_eq!(decisions.len(), 3);
    }

    #[test]
    fn an_integrated_algorithm_takes_the_launch_and_nothing_reduces_its_window() {
        let startup = StartupConfig::SlowStart(slow_start::Config::default());
        let config = ControllerConfig::new(startup, AvoidanceConfig::Bbr(bbr::Config::default()));
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
        let mut controller = Controller::new(config);
        assert!(controller.wants_rate_samples());
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        // Ten segments of 1200 bytes in 100 ms, times 2.77.
        assert_eq!(controller.pacing_rate(), Some(Rate::from_bits_per_sec(2_659_200)));
        assert_eq!(controller.output().burst, Bytes::new(12_000));
        send(&mut controller, 10, 12_000);
        controller.on_loss(&loss(1, 12_000), &rtt);
        assert!(controller.in_recovery() && controller.in_startup());
        assert_eq!(controller.cwnd(), Bytes::new(12_000));
        let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(12_000) };
        controller.on_timeout(&timeout, &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(2400));
        let mut ack = acked(Timestamp::ZERO, 1200);
        ack.position = 11;
        controller.on_ack(&ack, &rtt);
        // Recovery is over: the window as it was, and what was acknowledged.
        assert_eq!(controller.cwnd(), Bytes::new(13_200));
        let decisions: Vec<_> = core::iter::from_fn(|| controller.take_decision()).map(|d| d.1).collect();
        assert!(matches!(decisions[0], Decision::Launched { .. }), "{decisions:?}");
        assert!(matches!(decisions[1], Decision::PhaseEntered { phase: "Startup", trigger: "launch" }));
        assert!(decisions.iter().all(|decision| !matches!(decision, Decision::WindowReduced { .. })));
    }

    #[test]
    fn only_schemes_with_a_launch_go_with_an_integrated_algorithm() {
        let bbr = AvoidanceConfig::Bbr(bbr::Config::default());
        let blitzstart = StartupConfig::Blitzstart(blitzstart::Config::default());
        let hystart = StartupConfig::Hystart(hystart::Config::default());
        assert_eq!(ControllerConfig::validate_pair(&blitzstart, &bbr), Ok(()));
        let error = ControllerConfig::validate_pair(&hystart, &bbr).unwrap_err();
        assert_eq!((error.field, error.value.as_str()), ("scheme", "hystart"));
        assert!(error.allowed.starts_with("slow-start, initial-start, "), "{error}");
        let cubic = AvoidanceConfig::Cubic(cubic::Config::default());
        assert_eq!(ControllerConfig::validate_pair(&hystart, &cubic), Ok(()));
    }
}
