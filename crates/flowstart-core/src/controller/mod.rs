//! Composes a startup scheme with congestion avoidance: the only type a transport talks to.
//!
//! The transport reports what was sent, acknowledged, lost and marked; the controller answers with a window, a pacing
//! rate and a burst. It owns every reduction of the window. A congestion event is counted once per window: losses and
//! marks at or below the position that was highest when the window was last reduced do not reduce it again
//! (RFC 6582, RFC 6675 and RFC 9002 section 7.3.2 agree on this rule and differ only in what a position is).
//!
//! An acknowledgement is told as a whole, by [`Controller::on_ack_frame`], which owns the order of its losses, its marks and
//! what it delivers. After a retransmission timeout or persistent congestion the flow restarts with slow start.
//!
//! An integrated congestion avoidance (BBR) is in charge from the first packet: of the startup scheme only the launch
//! counts, the window follows the algorithm alone, and no reduction or recovery of the controller interferes.
//!
//! | Looking for | Where |
//! |---|---|
//! | the order in which an acknowledgement is processed | `ack_frame.rs` |
//! | policies in which stacks differ, and which pairs make sense | `config.rs` |
//! | what throughput advice caps | `advice.rs` |
//! | proportional rate reduction | `recovery.rs` |
//! | what changes beside an integrated algorithm | `integrated.rs` |
//! | what changes beside a scalable one | `scalable.rs` |
//! | what idle time does to the window | `window_validation.rs` |

pub use ack_frame::AckFrame;
pub use config::{ControllerConfig, GrowthRule, Pacing, ReductionBase, SlowStartAfterTimeout, TimeoutReduction};
pub use recovery::Reduction;
pub use window_validation::{Resume, WindowValidation};

use self::advice::Advice;
use self::recovery::Recovery;
use self::undo::UndoSlot;
use self::window_validation::Validation;
use alloc::boxed::Box;

use crate::avoidance::{AvoidanceState, SegmentSize, Window};
use crate::event::{Ack, Decision, DecisionLog, Ecn, ExitReason, Loss, LostPacket, Position, Sent, Timeout};
use crate::pacer;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::startup::quick_start::QuickStart;
use crate::startup::{Continuation, Launch, Startup, StartupConfig, StartupState, Step};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

mod ack_frame;
mod advice;
mod config;
mod integrated;
mod recovery;
mod scalable;
mod undo;
mod window_validation;

/// The largest window of a launch: 1 TiB, what 100 Gbit/s carry in 88 s. A rate and an RTT that come from a peer or a file may
/// have any product, and growth must stay far from the end of the number range.
const LARGEST_LAUNCH: Bytes = Bytes::new(1 << 40);

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
    pub pacing_lead: Duration,
    /// Bytes that may be handed down at once, as one batch of segmentation offload ([`pacer::send_quantum`]).
    pub send_quantum: Bytes,
    /// Bytes that may be sent again without any sign of loss: data that was sent and is not acknowledged, in the bytes by
    /// which packets count as in flight ([`Sent::bytes`]). It is what remains of the
    /// grants of [`Startup::proactive_retransmit`], and zero after startup.
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
    /// Slow start after a timeout, or after a startup that ended below ssthresh: classic, or with the scheme's rule for
    /// leaving it.
    Restart {
        by_scheme: bool,
    },
    Avoidance,
    /// An integrated congestion avoidance, which is or is not in its own startup.
    Integrated {
        starting: bool,
    },
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
    /// What an integrated algorithm lets leave together.
    send_group: Bytes,
    /// What was granted and not yet used.
    proactive: Bytes,
    /// The congestion avoidance is integrated.
    integrated: bool,
    /// The congestion avoidance is told by routers.
    feedback: bool,
    /// The congestion avoidance answers to the share of marks.
    scalable: bool,
    /// Beside an integrated algorithm: the window of a scheme that has not sensed its launch yet.
    sensing: Option<Window>,
    /// Congestion window validation, where there is any.
    validation: Option<Box<Validation>>,
    /// The caller's algorithms before they launched, so that they can start again.
    unused: Option<Box<(StartupState, AvoidanceState)>>,
    /// Positions up to here were sent over an earlier path.
    earlier_path: Option<Position>,
    /// What elements of the path advise, where anybody does.
    advice: Option<Advice>,
    /// The last reduction, where it can be taken back.
    undo: UndoSlot,
    log: DecisionLog,
}

impl Controller {
    /// A controller that has not launched yet.
    ///
    /// # Errors
    ///
    /// What [`ControllerConfig::validate`] refuses. From here on nothing fails.
    pub fn new(config: ControllerConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let startup = config.startup.build(config.startup_context());
        let avoidance = config.avoidance.build(SegmentSize(config.segment));
        Ok(Self::assemble(config, startup, avoidance))
    }

    /// A controller with algorithms of the caller, for schemes outside this crate.
    ///
    /// # Errors
    ///
    /// As [`Controller::new`], but nothing is known of whether the pair makes sense.
    pub fn with_algorithms(
        config: ControllerConfig,
        startup: StartupState,
        avoidance: AvoidanceState,
    ) -> Result<Self, ConfigError> {
        config.validate_parts()?;
        let unused = Some(Box::new((startup.clone(), avoidance.clone())));
        Ok(Self { unused, ..Self::assemble(config, startup, avoidance) })
    }

    fn assemble(mut config: ControllerConfig, startup: StartupState, mut avoidance: AvoidanceState) -> Self {
        let (integrated, feedback) = (avoidance.as_dyn().integrated(), avoidance.as_dyn().wants_feedback());
        let scalable = avoidance.as_dyn().scalable();
        if scalable {
            // Marks begin at a queue of a millisecond, which bursts would fill (RFC 9331, section 4.3), the initial window's
            // as well: its own marks would end startup with the first round trip.
            config.pacing.get_or_insert_with(Pacing::default).burst = 1;
        }
        let window = Window { cwnd: config.segment * config.initial_window, ssthresh: Bytes::MAX };
        let validation = config.window_validation;
        Self {
            validation: (validation != WindowValidation::Keep).then(|| Box::new(Validation::new(validation))),
            unused: None,
            earlier_path: None,
            advice: None,
            undo: UndoSlot::default(),
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
            send_group: Bytes::ZERO,
            proactive: Bytes::ZERO,
            integrated,
            feedback,
            scalable,
            sensing: None,
            log: DecisionLog::default(),
        }
    }

    /// The handshake is over and data may leave: Sensing turns what is known about the path into the launch.
    pub fn launch(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) {
        let launch = self.startup.as_dyn().launch(now, path, &mut self.log);
        let launch = self.advised_launch(now, path, launch);
        self.take_launch(now, &launch, rtt);
    }

    /// All routers of the path have approved a rate that was asked for in mid-connection (RFC 4782, section 4.8): `path` holds
    /// it and the RTT of now. It is used if its window is larger than the one that the connection would have a round trip later
    /// anyway: the present one, or what slow start makes of it. Returns whether it is used. Nothing happens in recovery, beside an integrated algorithm, and where the scheme is not `quick-start`.
    pub fn on_approval(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) -> bool {
        let StartupConfig::QuickStart(config) = &self.config.startup else { return false };
        if self.integrated || self.recovery.is_some() {
            return false;
        }
        let mut scheme = QuickStart::in_connection(*config, self.config.startup_context(), self.window);
        let launch = scheme.launch(now, path, &mut self.log);
        let launch = self.advised_launch(now, path, launch);
        let Window { cwnd, ssthresh } = self.window;
        if launch.cwnd <= cwnd.max(ssthresh.min(cwnd * 2)) {
            return false;
        }
        self.startup = StartupState::QuickStart(scheme);
        self.phase = Phase::Startup;
        self.undo.clear();
        self.take_launch(now, &launch, rtt);
        true
    }

    fn take_launch(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        self.set_cwnd(launch.cwnd.min(LARGEST_LAUNCH));
        self.launch_rate = launch.pacing_rate;
        // A scheme that paces by itself starts with one segment unless it says more.
        self.launch_burst = launch.burst.or(launch.pacing_rate.map(|_| self.config.segment));
        self.log.note(now, Decision::Launched { cwnd: self.window.cwnd, pacing_rate: self.launch_rate });
        if self.integrated {
            self.hand_over(now, launch, rtt);
            return;
        }
        self.note_phase(now);
        if let Some(continuation) = launch.continuation {
            self.exit_startup(now, continuation);
        }
        self.update_pacing(rtt);
    }

    /// Data waits again after idle time, and nothing is in flight: the window is validated
    /// ([`ControllerConfig::window_validation`]). Call it before the first packet leaves. `path` is what Sensing may use if
    /// the startup scheme runs again; the RTT and what this connection has delivered are added here. An integrated algorithm
    /// follows rules of its own.
    pub fn on_resume(&mut self, resume: &Resume, path: &PathKnowledge, rtt: &RttEstimator) {
        if self.integrated {
            return;
        }
        self.avoidance.as_dyn().on_resume(resume.now, resume.idle);
        let Some(validation) = &mut self.validation else { return };
        let win = path.receive_window.unwrap_or(Bytes::MAX);
        let segments = (self.config.segment, self.config.segment * self.config.initial_window);
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
        if self.integrated || self.recovery.is_some() {
            return;
        }
        if let Some(validation) = &mut self.validation {
            let initial = self.config.segment * self.config.initial_window;
            let window = validation.on_limited(now, in_flight, timeout, self.window, (receive_window, initial));
            self.take_validated(now, window, rtt);
        }
    }

    /// Packets take another path from now on (a mobility event; RFC 9000, section 9.4). Everything that was learned is
    /// forgotten, and the scheme and the congestion avoidance start again with `path`, which must hold only what is known of
    /// the new path ([`PathKnowledge::for_new_path`]); `rtt` must have been reset. What was sent before counts no more.
    pub fn on_path_change(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) {
        self.avoidance = match &self.unused {
            Some(unused) => unused.1.clone(),
            None => self.config.avoidance.build(SegmentSize(self.config.segment)),
        };
        self.start_again();
        self.sensing = None;
        self.timed_out_at = None;
        self.host_rate = None;
        self.scheme_rate = None;
        self.earlier_path = Some(self.highest_sent);
        if let Some(validation) = &mut self.validation {
            **validation = Validation::new(validation.policy());
        }
        self.launch(now, path, rtt);
    }

    /// The scheme as it was before its first launch. What was sent before is no evidence of congestion any more.
    fn start_again(&mut self) {
        self.startup = match &self.unused {
            Some(unused) => unused.0.clone(),
            None => self.config.startup.build(self.config.startup_context()),
        };
        self.phase = Phase::Startup;
        self.window.ssthresh = Bytes::MAX;
        self.recovery = None;
        self.undo.clear();
        self.last_reduction = Some(self.highest_sent);
        self.proactive = Bytes::ZERO;
    }

    /// Segments have another size from now on (path MTU discovery). Windows that are held in bytes stay as they are; growth
    /// and minima count in the new size. A startup scheme keeps the size that it was built with.
    pub fn set_segment(&mut self, segment: Bytes) {
        let segment = segment.max(Bytes::new(1));
        self.config.segment = segment;
        // A window below one segment would stop the sender.
        self.set_cwnd(self.window.cwnd);
        self.avoidance.as_dyn().on_segment_size(SegmentSize(segment));
    }

    /// The window that validation has left. Slow start leads from a smaller one to ssthresh.
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

    /// Packets up to `position` left before the launch: losses and marks among them are one congestion event.
    pub fn on_sent_before_launch(&mut self, position: Position) {
        self.highest_sent = self.highest_sent.max(position);
    }

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
            self.avoidance.as_dyn().on_sent(sent);
            self.follow_integrated(sent.now);
        } else if let Phase::Restart { by_scheme: true } = self.phase {
            self.startup.as_dyn().on_sent(sent);
        }
    }

    /// Whether the host has to sample the delivery rate ([`Ack::sample`]) and to tell of each lost packet
    /// ([`Controller::on_packet_lost`]).
    pub fn wants_rate_samples(&self) -> bool {
        self.integrated && !self.feedback
    }

    /// Whether packets have to carry a congestion header, whose feedback is told by [`Controller::on_feedback`].
    pub fn wants_feedback(&self) -> bool {
        self.feedback
    }

    /// A packet was declared lost. Only where rate samples are wanted, before the [`Controller::on_loss`] that sums up.
    pub fn on_packet_lost(&mut self, lost: &LostPacket) {
        if let Phase::Integrated { .. } = self.phase {
            self.avoidance.as_dyn().on_packet_lost(lost);
        }
    }

    /// Data has to be sent again, not counting probes and proactive retransmissions: told once for every retransmission,
    /// before the [`Controller::on_loss`] that sums up. `position` is that of the data's first transmission. A host that
    /// knows sums only tells them with the highest position.
    pub fn on_retransmission(&mut self, position: Position, bytes: Bytes) {
        if self.phase == Phase::Startup && self.earlier_path.is_none_or(|end| position > end) {
            self.startup.as_dyn().on_retransmission(position, bytes);
        }
    }

    /// Data was sent again because of [`Output::proactive_retransmit`], and `bytes` of the grant are used.
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
        if self.scalable {
            self.avoidance.as_dyn().on_delivered(ack, rtt);
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

    /// Packets were declared lost, by a timer. Those that an acknowledgement reveals are part of its [`AckFrame`].
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

    /// The receiver echoed new CE marks. They are a congestion event like a loss (RFC 3168; RFC 9002, section 7.1), and what
    /// remains of the window says [`Avoidance::on_ecn`](crate::avoidance::Avoidance::on_ecn), also where they end startup.
    pub(crate) fn on_ecn(&mut self, ecn: &Ecn, rtt: &RttEstimator) {
        if self.scalable && self.take_marks(ecn, rtt) {
            return;
        }
        if self.last_reduction.is_some_and(|point| ecn.position <= point) {
            // The marks would have reduced the window as well, so a loss that turns out to be none does not give it back.
            self.undo.clear();
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

    /// A retransmission timeout: slow start from the smallest window. When the timer fires again before any position is
    /// acknowledged, the same segment was lost again and ssthresh is held (RFC 5681, section 3.1). Otherwise it is reduced as
    /// [`ControllerConfig::timeout_reduction`] says.
    pub fn on_timeout(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        if let Phase::Integrated { .. } = self.phase {
            return self.time_out_integrated(timeout);
        }
        self.give_up_approval();
        let repeated = self.timed_out_at == Some(self.acknowledged);
        self.timed_out_at = Some(self.acknowledged);
        let undo = self.undo_of_timeout(repeated);
        match (self.config.timeout_reduction, self.recovery) {
            (TimeoutReduction::HalfWindow, _) => self.halve_ssthresh(),
            (TimeoutReduction::OncePerWindow, Some(recovery)) => self.keep_reduced(recovery),
            _ if repeated => {}
            _ => {
                let base = self.base(timeout.in_flight_before);
                let reduced = self.avoidance.as_dyn().on_congestion(timeout.now, base, self.window);
                self.window.ssthresh = reduced.max(self.config.segment * 2);
            }
        }
        self.collapse(timeout, rtt);
        self.undo.set(undo);
    }

    /// Persistent congestion: slow start from the smallest window, up to the ssthresh that the loss has left (RFC 9002,
    /// section 7.6.2) unless [`ControllerConfig::timeout_reduction`] says otherwise. Comes after the [`Controller::on_loss`]
    /// of the packets that establish it.
    pub fn on_persistent_congestion(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        if let Phase::Integrated { .. } = self.phase {
            return self.time_out_integrated(timeout);
        }
        match (self.config.timeout_reduction, self.recovery) {
            (TimeoutReduction::HalfWindow, _) => self.halve_ssthresh(),
            (_, Some(recovery)) => self.keep_reduced(recovery),
            _ => {}
        }
        self.collapse(timeout, rtt);
    }

    fn halve_ssthresh(&mut self) {
        self.window.ssthresh = (self.window.cwnd / 2).max(self.config.segment * 2);
    }

    /// What recovery would have led to is left as ssthresh, also where the scheme has another one.
    fn keep_reduced(&mut self, recovery: Recovery) {
        self.window.ssthresh = self.window.ssthresh.min(recovery.target);
    }

    fn collapse(&mut self, timeout: &Timeout, rtt: &RttEstimator) {
        let before = self.window.cwnd;
        if let Some(validation) = &mut self.validation {
            validation.on_timeout(timeout.now);
        }
        let least = self.config.segment * self.config.timeout_window;
        let cwnd = self.avoidance.as_dyn().on_timeout(timeout.now, self.window, least);
        self.set_cwnd(cwnd);
        self.recovery = None;
        self.undo.clear();
        self.last_reduction = Some(self.highest_sent);
        self.launch_rate = None;
        self.launch_burst = None;
        if self.phase == Phase::Startup {
            let (cwnd, ssthresh) = (self.window.cwnd, self.window.ssthresh);
            self.log.note(timeout.now, Decision::StartupExited { reason: ExitReason::Timeout, cwnd, ssthresh });
        }
        let by_scheme = self.config.slow_start_after_timeout == SlowStartAfterTimeout::Scheme
            && self.startup.as_dyn().on_restart(timeout.now, self.highest_sent);
        self.phase = Phase::Restart { by_scheme };
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

    /// When [`Controller::on_timer`] wants to be called ([`Output::next_wakeup`]).
    #[inline]
    pub fn next_wakeup(&mut self) -> Timestamp {
        match self.phase {
            Phase::Startup => self.startup.as_dyn().next_wakeup(),
            Phase::Restart { .. } | Phase::Avoidance | Phase::Integrated { .. } => Timestamp::NEVER,
        }
    }

    /// What the transport may do now.
    #[inline]
    pub fn output(&mut self) -> Output {
        let next_wakeup = self.next_wakeup();
        let pacing = self.config.pacing;
        let own_burst = match self.phase {
            Phase::Integrated { .. } => self.launch_burst.or(self.avoidance.as_dyn().burst()),
            Phase::Startup | Phase::Restart { .. } | Phase::Avoidance => self.launch_burst,
        };
        Output {
            cwnd: self.window.cwnd,
            pacing_rate: self.pacing_rate(),
            burst: own_burst
                .unwrap_or_else(|| pacing.map_or(Bytes::ZERO, |pacing| self.config.segment * pacing.burst))
                .min(self.window.cwnd),
            pacing_lead: pacing.map_or(Duration::ZERO, |pacing| pacing.quantum),
            send_quantum: self.send_quantum(),
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

    /// Bytes of the packets that leave together, as the interface of a host without pacing of its own segments them; zero: they
    /// leave one by one.
    #[inline]
    pub fn send_group(&self) -> Bytes {
        self.send_group
    }

    /// Bytes that may be handed down at once ([`Output::send_quantum`]).
    #[inline]
    pub fn send_quantum(&self) -> Bytes {
        pacer::send_quantum(self.pacing_rate(), self.config.segment)
    }

    /// Bytes that may be sent again without any sign of loss ([`Output::proactive_retransmit`]).
    #[inline]
    pub fn proactive_retransmit(&self) -> Bytes {
        match self.phase {
            Phase::Startup => self.proactive,
            Phase::Restart { .. } | Phase::Avoidance | Phase::Integrated { .. } => Bytes::ZERO,
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
                    let grown = self.avoidance.as_dyn().on_ack(ack, self.window, rtt);
                    self.set_cwnd(grown);
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
            Phase::Avoidance if in_use => {
                let grown = self.avoidance.as_dyn().on_ack(ack, self.window, rtt);
                self.set_cwnd(grown);
            }
            Phase::Restart { .. } | Phase::Integrated { .. } => {}
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

    /// An approval of which nothing has left is void: neither a reduction nor what takes it back goes by it.
    fn give_up_approval(&mut self) {
        if self.phase == Phase::Startup
            && let Some(window) = self.startup.as_dyn().without_approval()
        {
            self.window = window;
        }
    }

    fn reduce(&mut self, event: &Loss, reason: ExitReason) {
        let before = self.window.cwnd;
        self.give_up_approval();
        if self.config.undo {
            // A mark is no error of the transport's.
            let undo = (reason == ExitReason::Loss).then(|| self.state_to_restore(false));
            self.undo.set(undo);
        }
        let validated =
            self.validation.as_mut().and_then(|validation| validation.on_congestion(event.now, event.in_flight_before));
        let base = validated.map_or_else(|| self.base(event.in_flight_before), |half| half * 2);
        let avoidance = self.avoidance.as_dyn();
        let reduced = match reason {
            ExitReason::Ecn => avoidance.on_ecn(event.now, base, self.window),
            _ => avoidance.on_congestion(event.now, base, self.window),
        };
        let reduced = validated.unwrap_or(reduced).max(self.config.segment * self.config.min_window);
        self.last_reduction = Some(self.highest_sent);
        if self.phase == Phase::Startup {
            let step = match self.startup.as_dyn().on_congestion(event, self.window, reduced) {
                Step::Exit(continuation) if reason != ExitReason::Loss => {
                    Step::Exit(Continuation { reason, ..continuation })
                }
                step => step,
            };
            self.take_step(event.now, step);
        } else {
            self.window.ssthresh = reduced;
            self.set_cwnd(reduced);
            self.phase = Phase::Avoidance;
        }
        let recover_fs = event.in_flight_before.max(self.config.segment);
        self.recovery = Some(Recovery::new(self.highest_sent, self.window.cwnd, recover_fs));
        self.log.note(event.now, Decision::WindowReduced { before, after: self.window.cwnd });
    }

    fn note_phase(&mut self, now: Timestamp) {
        if let Some((phase, trigger)) = self.startup.as_dyn().take_phase() {
            self.log.note(now, Decision::PhaseEntered { phase, trigger });
        }
    }

    fn take_step(&mut self, now: Timestamp, step: Step) {
        self.note_phase(now);
        match step {
            Step::Continue { cwnd } => {
                let cwnd = self.advised_window(now, cwnd);
                self.set_cwnd(cwnd);
            }
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

    fn exit_startup(&mut self, now: Timestamp, Continuation { cwnd, ssthresh, reason }: Continuation) {
        self.window.ssthresh = ssthresh;
        self.log.note(now, Decision::StartupExited { reason, cwnd, ssthresh });
        if cwnd < ssthresh {
            self.phase = Phase::Restart { by_scheme: false };
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
            Phase::Startup => self.advised_scheme_rate(),
            Phase::Restart { .. } | Phase::Avoidance | Phase::Integrated { .. } => None,
        };
        let Some(pacing) = self.config.pacing else {
            return;
        };
        let ssthresh = self.recovery.map_or(self.window.ssthresh, |recovery| recovery.target.min(self.window.ssthresh));
        let gain = if self.window.cwnd < ssthresh { pacing.startup_gain } else { pacing.avoidance_gain };
        // A gain below 1 leaves something of the smallest window.
        let paced = self.window.cwnd.scale(gain).max(Bytes::new(1));
        self.host_rate = Rate::from_transfer(paced, rtt.smoothed());
    }
}

#[cfg(test)]
mod tests;
