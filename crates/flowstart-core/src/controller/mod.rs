//! Composes a startup scheme with congestion avoidance: the only type a transport talks to.
//!
//! The transport reports what was sent, acknowledged, lost and marked; the controller answers with a window, a pacing
//! rate and a burst. It owns every reduction of the window. A congestion event counts once per window. At a reduction
//! the controller notes the highest position; losses and marks at or below it do not reduce the window again. (RFC
//! 6582, RFC 6675 and RFC 9002 section 7.3.2 agree on this rule and differ only in the meaning of a position.)
//!
//! [`Controller::on_ack_frame`] takes an acknowledgement as a whole and decides the order of its losses, marks and
//! delivered data. After a retransmission timeout or persistent congestion the flow restarts with slow start.
//!
//! An integrated congestion avoidance (BBR) is in charge from the first packet. It takes only the launch from the
//! startup scheme, the window follows the algorithm alone, and no reduction or recovery of the controller interferes.
//!
//! | Looking for | Where |
//! |---|---|
//! | policies in which stacks differ, and which pairs make sense | `config.rs` |
//! | the launch, also with a late approval and on another path | `launch.rs` |
//! | the order in which an acknowledgement is processed | `ack_frame.rs` |
//! | growth, and the transition from startup to congestion avoidance | `delivery.rs` |
//! | reductions after losses and marks | `congestion.rs` |
//! | timeouts and persistent congestion | `timeout.rs` |
//! | undone reductions | `undo.rs` |
//! | throughput advice | `advice.rs` |
//! | proportional rate reduction | `recovery.rs` |
//! | integrated congestion avoidance | `integrated.rs` |
//! | scalable congestion avoidance | `scalable.rs` |
//! | a window shared with other connections | `share.rs` |
//! | the window after idle time | `idle.rs`, `window_validation.rs` |

pub use ack_frame::AckFrame;
pub use config::{ControllerConfig, GrowthRule, Pacing, ReductionBase, SlowStartAfterTimeout, TimeoutReduction};
pub use recovery::Reduction;
pub use window_validation::{NONVALIDATED_PERIOD, Resume, WindowValidation};

use self::advice::Advice;
use self::launch::{LARGEST_WINDOW, NEXT_WAKEUP};
use self::recovery::Recovery;
use self::undo::UndoSlot;
use self::window_validation::Validation;
use alloc::boxed::Box;

use crate::avoidance::{Algorithm, AvoidanceState, Kind};
use crate::event::{Decision, DecisionLog, Position};
use crate::needs::Needs;
use crate::pacer;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::startup::StartupState;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::{Owner, Variable, Variables};
use crate::window::{SegmentSize, Window};

mod ack_frame;
mod advice;
mod config;
mod congestion;
mod delivery;
mod idle;
mod integrated;
mod launch;
mod recovery;
mod scalable;
mod share;
mod timeout;
mod undo;
mod window_validation;

/// What a transport may do now.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Bytes that may be in flight.
    pub cwnd: Bytes,
    /// Rate at which packets may leave; `None`: as the window allows.
    pub pacing_rate: Option<Rate>,
    /// Bytes that may leave at once when sending starts or resumes with nothing in flight.
    pub burst: Bytes,
    /// How much before its time a packet may leave, so packets are sent in groups.
    pub pacing_lead: Duration,
    /// Bytes that may go down at once, as one batch of segmentation offload ([`pacer::send_quantum`]).
    pub send_quantum: Bytes,
    /// Bytes that may be sent again without any sign of loss. They are sent, unacknowledged data, counted like bytes in
    /// flight ([`Sent::bytes`](crate::event::Sent::bytes)). The value is the remainder of the grants of
    /// [`Startup::proactive_retransmit`](crate::startup::Startup::proactive_retransmit), and zero after startup.
    ///
    /// The transport uses it only when neither new nor lost data waits, inside the window and paced like other packets.
    /// It walks from the highest unacknowledged packet towards the front. It skips packets that are acknowledged or
    /// were sent again for any reason, sends each packet proactively at most once, and stops where the walk meets the
    /// acknowledgements. It sends a packet when all of its bytes are granted, and reports it by [`Controller::on_sent`]
    /// and [`Controller::on_proactive_retransmission`]. This is Halfback's reverse-ordered proactive retransmission
    /// (Li, Dong, Godfrey, `CoNEXT` 2015) when a scheme grants a segment with each acknowledgement after the last new
    /// data.
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
    /// An integrated congestion avoidance; the flag says whether it is in its own startup.
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
    /// What was acknowledged at the last timeout, if there was one. If nothing more is acknowledged at the next
    /// timeout, the same data is missing.
    timed_out_at: Option<Option<Position>>,
    /// Set by a launch, until the first acknowledgement.
    launch_rate: Option<Rate>,
    /// Set by a launch, until the first acknowledgement.
    launch_burst: Option<Bytes>,
    /// What the startup scheme asks for.
    scheme_rate: Option<Rate>,
    /// When the startup scheme's timer was called last.
    woken_at: Option<Timestamp>,
    /// What the host's own rule gives.
    host_rate: Option<Rate>,
    /// Bytes that an integrated algorithm lets leave together.
    send_group: Bytes,
    /// The unused part of the grants.
    proactive: Bytes,
    /// What the algorithms need of the host.
    needs: Needs,
    /// Beside an integrated algorithm: the window of a scheme that has not sensed its launch yet.
    sensing: Option<Window>,
    /// Congestion window validation, if there is any.
    validation: Option<Box<Validation>>,
    /// The caller's algorithms before their launch, so they can start again.
    unused: Option<Box<(StartupState, AvoidanceState)>>,
    /// Positions up to here were sent over an earlier path.
    earlier_path: Option<Position>,
    /// The advice of the path's elements, if there is any.
    advice: Option<Advice>,
    /// The last reduction, if it can be undone.
    undo: UndoSlot,
    log: DecisionLog,
}

impl Controller {
    /// A controller that has not launched yet.
    ///
    /// # Errors
    ///
    /// What [`ControllerConfig::validate`] refuses. Nothing fails later.
    pub fn new(config: ControllerConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let startup = config.startup.build(config.startup_context());
        let avoidance = config.avoidance.build(SegmentSize(config.segment));
        Ok(Self::assemble(config, startup, avoidance))
    }

    /// A controller with algorithms of the caller, for schemes outside this crate. Whatever they return, the sender
    /// goes on: a window is at least a segment and at most 1 TiB, a pacing rate at least 1 kbit/s, and a timer that
    /// does not move on fires a millisecond later.
    ///
    /// # Errors
    ///
    /// As [`Controller::new`], for the caller's pair instead of the configuration's.
    pub fn with_algorithms(
        config: ControllerConfig,
        mut startup: StartupState,
        avoidance: AvoidanceState,
    ) -> Result<Self, ConfigError> {
        config.validate_parts()?;
        startup.as_dyn().set_context(config.startup_context());
        ControllerConfig::validate_algorithms(&startup, &avoidance)?;
        let unused = Some(Box::new((startup.clone(), avoidance.clone())));
        Ok(Self { unused, ..Self::assemble(config, startup, avoidance) })
    }

    fn assemble(mut config: ControllerConfig, startup: StartupState, avoidance: AvoidanceState) -> Self {
        if avoidance.kind() == Kind::Scalable {
            // Marks begin at a queue of a millisecond, which bursts would fill (RFC 9331, section 4.3), the initial
            // window's as well: its own marks would end startup with the first round trip.
            config.pacing.get_or_insert_with(Pacing::default).burst = 1;
        }
        let window = Window { cwnd: config.segment * config.initial_window, ssthresh: Bytes::MAX };
        let validation = config.window_validation;
        Self {
            validation: (validation != WindowValidation::Keep).then(|| Box::new(Validation::new(validation))),
            needs: startup.needs().and(avoidance.needs()),
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
            woken_at: None,
            host_rate: None,
            send_group: Bytes::ZERO,
            proactive: Bytes::ZERO,
            sensing: None,
            log: DecisionLog::default(),
        }
    }

    /// Whether the congestion avoidance probes and continues by itself.
    fn is_integrated(&self) -> bool {
        self.avoidance.kind() == Kind::Integrated
    }

    /// What the algorithms need of the host. A host that cannot give this has to refuse them.
    #[inline]
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Shows the inner variables of the algorithms at time `now`, for traces: the startup scheme's, and after startup
    /// also those of the congestion avoidance. What the scheme knew when it ended stays visible.
    pub fn observe(&mut self, now: Timestamp, see: &mut dyn FnMut(Owner, Variable)) {
        let mut of_startup = |variable| see(Owner::Startup, variable);
        self.startup.as_dyn().observe(&mut Variables::new(now, &mut of_startup));
        if self.phase == Phase::Startup {
            return;
        }
        let mut of_avoidance = |variable| see(Owner::Avoidance, variable);
        let seen = &mut Variables::new(now, &mut of_avoidance);
        match self.avoidance.algorithm() {
            Algorithm::LossBased(algorithm) => algorithm.observe(seen),
            Algorithm::Scalable(algorithm) => algorithm.observe(seen),
            Algorithm::Integrated(algorithm) => algorithm.observe(seen),
        }
    }

    /// Segments have another size from now on (path MTU discovery). Windows in bytes stay unchanged; growth and minima
    /// count in the new size. A startup scheme keeps its original size.
    pub fn set_segment(&mut self, segment: Bytes) {
        let segment = segment.max(Bytes::new(1));
        self.config.segment = segment;
        // A window below one segment would stop the sender.
        self.set_cwnd(self.window.cwnd);
        self.avoidance.on_segment_size(SegmentSize(segment));
    }

    /// The time of [`Output::next_wakeup`] has come.
    pub fn on_timer(&mut self, now: Timestamp, rtt: &RttEstimator) {
        if self.phase == Phase::Startup {
            self.woken_at = Some(now);
            let step = self.startup.as_dyn().on_timer(now, self.window);
            self.take_step(now, step);
            self.update_pacing(rtt);
        }
    }

    /// When [`Controller::on_timer`] wants to be called ([`Output::next_wakeup`]).
    #[inline]
    pub fn next_wakeup(&mut self) -> Timestamp {
        match self.phase {
            Phase::Startup => {
                let wakeup = self.startup.as_dyn().next_wakeup();
                self.woken_at.filter(|woken_at| wakeup <= *woken_at).map_or(wakeup, |woken_at| woken_at + NEXT_WAKEUP)
            }
            Phase::Restart { .. } | Phase::Avoidance | Phase::Integrated { .. } => Timestamp::NEVER,
        }
    }

    /// What the transport may do now.
    #[inline]
    pub fn output(&mut self) -> Output {
        let next_wakeup = self.next_wakeup();
        Output {
            cwnd: self.window.cwnd,
            pacing_rate: self.pacing_rate(),
            burst: self.burst(),
            pacing_lead: self.config.pacing.map_or(Duration::ZERO, |pacing| pacing.quantum),
            send_quantum: pacer::send_quantum(self.pacing_rate(), self.config.segment),
            proactive_retransmit: self.proactive_retransmit(),
            next_wakeup,
        }
    }

    /// Bytes that may leave at once when sending starts or resumes with nothing in flight ([`Output::burst`]).
    pub fn burst(&mut self) -> Bytes {
        let own_burst = match self.phase {
            Phase::Integrated { .. } => self.launch_burst.or_else(|| self.avoidance.integrated()?.burst()),
            Phase::Startup | Phase::Restart { .. } | Phase::Avoidance => self.launch_burst,
        };
        own_burst
            .unwrap_or_else(|| self.config.pacing.map_or(Bytes::ZERO, |pacing| self.config.segment * pacing.burst))
            .min(self.window.cwnd)
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

    /// Bytes of the packets that leave together, as if the interface of a host without its own pacing segmented them;
    /// zero: they leave one by one.
    #[inline]
    pub fn send_group(&self) -> Bytes {
        self.send_group
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

    /// Whether startup lasts: the startup scheme still moves the window, or an integrated congestion avoidance is in
    /// its own startup.
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

    fn set_cwnd(&mut self, cwnd: Bytes) {
        let max = self.config.max_window.map_or(LARGEST_WINDOW, |segments| self.config.segment * segments);
        // A launch or a scheme may ask for one segment (IW 1); the minimum binds reductions, which apply it themselves.
        self.window.cwnd = cwnd.min(max).min(LARGEST_WINDOW).max(self.config.segment);
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
