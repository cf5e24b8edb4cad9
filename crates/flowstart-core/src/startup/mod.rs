//! Startup schemes: how a flow sends until it has learned its path.
//!
//! Every scheme makes four decisions. **Sensing**: what it knows before the first data packet, and the [`Launch`] that
//! follows from it. **Probing**: how it sends until it has learned the path. **Validation**: which evidence confirms
//! the launch, and how it retreats. **Continuation**: what it hands to congestion avoidance, and why it ended.
//!
//! | Name | File |
//! |---|---|
//! | `slow-start` | [`slow_start`] |
//! | `limited-slow-start` | [`limited_slow_start`] |
//! | `hystart` | [`hystart`] |
//! | `initial-start` | [`initial_start`] |
//! | `jump-start` | [`jump_start`] |
//! | `more-start` | [`more_start`] |
//! | `halfback` | [`halfback`] |
//! | `hystart-plus-plus` | [`hystart_plus_plus`] |
//! | `search` | [`search`] |
//! | `hybla` | [`hybla`] |
//! | `blitzstart` | [`blitzstart`] |
//! | `careful-resume` | [`careful_resume`] |
//! | `rapid-start` | [`rapid_start`] |
//! | `suss` | [`suss`] |
//! | `swift-start` | [`swift_start`] |
//! | `quick-start` | [`quick_start`] |
//! | `ensemble-sharing` | [`ensemble_sharing`] |
//! | `plumb` | [`plumb`] |
//! | one from outside this crate | [`CustomStartup`] |

use core::fmt;

pub use self::custom::CustomStartup;

use crate::event::{Ack, DecisionLog, ExitReason, Loss, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::Window;

pub mod blitzstart;
pub mod careful_resume;
mod custom;
pub mod ensemble_sharing;
pub mod halfback;
pub mod hybla;
pub mod hystart;
pub mod hystart_plus_plus;
pub mod initial_start;
pub mod jump_start;
mod launched_window;
pub mod limited_slow_start;
pub mod more_start;
pub mod plumb;
pub mod quick_start;
pub mod rapid_start;
pub mod search;
pub mod slow_start;
pub mod suss;
pub mod swift_start;

/// What one acknowledgement adds to the window during slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Increase {
    /// The bytes it acknowledges (RFC 9002, section 7.3.1; RFC 3465 without a limit).
    #[default]
    Bytes,
    /// A segment for every packet it acknowledges (Google's QUIC).
    Packets,
    /// A segment, whatever it acknowledges (RFC 5681; ns-2).
    Acknowledgements,
}

/// What every scheme learns from the host at its construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartupContext {
    /// Segment size in which windows are counted.
    pub segment: Bytes,
    /// Initial window of the host when the scheme does not set one.
    pub initial_window: Bytes,
    /// How slow start counts.
    pub increase: Increase,
    /// Whether the host paces by itself.
    pub paced: bool,
}

impl StartupContext {
    /// A typical host, to ask a scheme for properties that do not depend on the host.
    pub(crate) const USUAL: Self =
        Self { segment: Bytes::new(1200), initial_window: Bytes::new(12_000), increase: Increase::Bytes, paced: true };

    /// The same host with an initial window of `segments`, if a scheme sets one.
    pub fn with_initial_window(self, segments: Option<u32>) -> Self {
        let initial_window = segments.map_or(self.initial_window, |segments| self.segment * u64::from(segments));
        Self { initial_window, ..self }
    }

    /// The window after slow start saw `ack`.
    pub fn slow_start_growth(&self, cwnd: Bytes, ack: &Ack) -> Bytes {
        cwnd + match self.increase {
            Increase::Bytes => ack.bytes,
            Increase::Packets => self.segment * ack.packets,
            Increase::Acknowledgements => self.segment,
        }
    }
}

/// Refuses an initial window in segments that is out of range.
pub(crate) fn validate_initial_window(iw: Option<u32>) -> Result<(), ConfigError> {
    iw.map_or(Ok(()), |iw| ConfigError::unless_in("iw", iw, 1..=100_000))
}

/// What a scheme decided on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Startup goes on with this window.
    Continue {
        /// Congestion window.
        cwnd: Bytes,
    },
    /// Startup ends.
    Exit(Continuation),
}

/// A startup scheme. To run again, after idle time or on another path, a scheme is built anew. So it launches only
/// once, but positions need not begin at zero.
///
/// `Debug` shows all of its state. Hosts compare what it shows to find out on which sources a launch depends
/// ([`StartupState::depends_on`]), and doubt the handshake of launches that depend on any.
pub trait Startup: fmt::Debug + Send + Sync + CloneStartup {
    /// A scheme from outside the registry learns its host, before anything else. Those of the registry know it from
    /// their construction.
    fn set_context(&mut self, _context: StartupContext) {}

    /// What the scheme needs of its host.
    fn needs(&self) -> Needs {
        Needs::NONE
    }

    /// Whether the scheme has a launch of its own, or at least the plain initial window, for a congestion avoidance
    /// that probes by itself. Otherwise it is only a rule for leaving slow start.
    fn has_launch(&self) -> bool {
        true
    }

    /// Sensing: derives the launch from what is known about the path.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch;

    /// A packet was sent.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// Probing and Validation: data was delivered. `in_use` says whether the sender was using its window.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step;

    /// Validation: packets were declared lost, in a new congestion event or an earlier one. Comes before
    /// [`Startup::on_congestion`].
    fn on_lost(&mut self, _loss: &Loss) {}

    /// Validation: data has to be sent again, because it was declared lost or because the transport sends it again
    /// without better evidence. `position` is that of its first transmission. Called once for every retransmission,
    /// including lost ones, and before [`Startup::on_congestion`]. Probes and proactive retransmissions do not count.
    fn on_retransmission(&mut self, _position: Position, _bytes: Bytes) {}

    /// Validation: a congestion event. `reduced` is what congestion avoidance would make of the window. A scheme that
    /// returns [`Step::Continue`] stays in charge: recovery leads to that window, ssthresh stays unchanged, and
    /// [`Startup::on_recovered`] says how the scheme continues.
    fn on_congestion(&mut self, loss: &Loss, window: Window, reduced: Bytes) -> Step {
        let _ = (loss, window);
        Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss })
    }

    /// Data was delivered during recovery from a congestion event after which the scheme stayed in charge. `None`: the
    /// host's rule of recovery moves the window.
    fn on_ack_in_recovery(&mut self, _ack: &Ack, _window: Window, _rtt: &RttEstimator) -> Option<Step> {
        None
    }

    /// Recovery is over and the scheme stayed in charge. `window` is the result of recovery.
    fn on_recovered(&mut self, _now: Timestamp, window: Window) -> Step {
        Step::Exit(Continuation { cwnd: window.cwnd, ssthresh: window.cwnd, reason: ExitReason::Loss })
    }

    /// Slow start begins again after a timeout, long after this scheme may have ended; `highest_sent` is the highest
    /// position sent so far. Returns whether the scheme decides when to leave slow start, as in the initial one. If so,
    /// it forgets its findings and gets [`Startup::on_sent`] and [`Startup::on_ack`] as before, until it returns
    /// [`Step::Exit`] or congestion ends slow start. Called if the host's policy wants it
    /// ([`SlowStartAfterTimeout::Scheme`](crate::controller::SlowStartAfterTimeout::Scheme)). Only schemes that are a
    /// rule for leaving slow start, and whose reference applies this rule again, return true.
    fn on_restart(&mut self, _now: Timestamp, _highest_sent: Position) -> bool {
        false
    }

    /// Whether the scheme decides again when to leave slow start after a spurious loss that seemed to end it, as in its
    /// reference. It then forgets nothing, and gets events as before. Called only if [`Startup::on_restart`] may be
    /// called.
    fn goes_on_after_undo(&self) -> bool {
        false
    }

    /// The window without an approval of which nothing has left yet; `None`: there is no such approval. Congestion
    /// reduces this window.
    fn without_approval(&self) -> Option<Window> {
        None
    }

    /// Sensing in mid-connection: routers have approved a rate, and `window` is the flow's window without it. A scheme
    /// that uses approvals begins anew, and its [`Startup::launch`] with that rate follows. Returns whether it does.
    /// Called for a copy of the scheme, which is dropped if the launch gains nothing.
    fn on_approval(&mut self, _context: StartupContext, _window: Window) -> bool {
        false
    }

    /// Probing: rate at which packets may leave from now on, also on a host that does not pace by itself; `None`: the
    /// launch's until the first acknowledgement, then the host's own rule. Read after every event.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Bytes that `ack` allows to be sent again without any sign of loss
    /// ([`Output::proactive_retransmit`](crate::controller::Output::proactive_retransmit)). Called with every
    /// acknowledgement, also in recovery, after [`Startup::on_ack`].
    fn proactive_retransmit(&mut self, _ack: &Ack) -> Bytes {
        Bytes::ZERO
    }

    /// When the scheme wants [`Startup::on_timer`] called, [`Timestamp::NEVER`] if it does not.
    fn next_wakeup(&self) -> Timestamp {
        Timestamp::NEVER
    }

    /// The time of [`Startup::next_wakeup`] has come.
    fn on_timer(&mut self, _now: Timestamp, window: Window) -> Step {
        Step::Continue { cwnd: window.cwnd }
    }

    /// The phase to which the last event led, named as in the scheme's reference, and its cause. Each is returned once.
    /// Read after every event, for traces.
    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Shows the scheme's inner variables, under the names of its reference. Read after every event of a traced run.
    fn observe(&self, _seen: &mut Variables<'_>) {}
}

cloned_in_boxes! {
    /// Lets a boxed scheme be cloned; implemented for every scheme that is `Clone`.
    CloneStartup: Startup;
}

algorithms! {
    /// Which startup scheme, and its parameters.
    config StartupConfig;
    /// A startup scheme and its state.
    state StartupState: Startup;
    context StartupContext;
    with phases and CustomStartup;
    SlowStart = "slow-start" in slow_start,
    LimitedSlowStart = "limited-slow-start" in limited_slow_start,
    Hystart = "hystart" in hystart,
    InitialStart = "initial-start" in initial_start,
    JumpStart = "jump-start" in jump_start,
    MoreStart = "more-start" in more_start,
    Halfback = "halfback" in halfback,
    HystartPlusPlus = "hystart-plus-plus" in hystart_plus_plus,
    Search = "search" in search,
    Hybla = "hybla" in hybla,
    Blitzstart = "blitzstart" in blitzstart,
    CarefulResume = "careful-resume" in careful_resume,
    RapidStart = "rapid-start" in rapid_start,
    Suss = "suss" in suss,
    SwiftStart = "swift-start" in swift_start,
    QuickStart = "quick-start" in quick_start,
    EnsembleSharing = "ensemble-sharing" in ensemble_sharing,
    Plumb = "plumb" in plumb,
}

impl StartupConfig {
    /// The scheme as a usual host builds it, to ask for properties that do not depend on the host.
    pub(crate) fn for_usual_host(&self) -> StartupState {
        self.build(StartupContext::USUAL)
    }

    /// What the scheme needs of its host.
    pub fn needs(&self) -> Needs {
        self.for_usual_host().needs()
    }

    /// Whether the scheme has a launch of its own ([`Startup::has_launch`]).
    pub fn has_launch(&self) -> bool {
        self.for_usual_host().has_launch()
    }
}
