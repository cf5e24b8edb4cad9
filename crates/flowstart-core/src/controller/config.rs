//! What defines a controller: its scheme and congestion avoidance, and the policies in which stacks differ.

use alloc::format;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::recovery::Reduction;
use super::window_validation::WindowValidation;
use crate::avoidance::{AvoidanceConfig, AvoidanceState, Kind};
use crate::needs::Needs;
use crate::registry::ConfigError;
use crate::startup::{Increase, StartupConfig, StartupContext, StartupState};
use crate::time::Duration;
use crate::units::Bytes;

/// What a reduction starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ReductionBase {
    /// The congestion window (RFC 9002; Linux; ns-2).
    #[default]
    Cwnd,
    /// The bytes in flight when the loss was found (RFC 5681, equation 4).
    FlightSize,
}

/// When a window counts as used, so that it may grow (RFC 9002, section 7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GrowthRule {
    /// Always, as in ns-2.
    Always,
    /// Unless the sender had nothing to send when the acknowledged packet left.
    #[default]
    NotAppLimited,
    /// In slow start when more than half of the window was in flight, otherwise when the window was full (Linux).
    HalfWindow,
    /// Like `half-window`, but a window with at most three segments of room counts as full (Google's QUIC).
    ThreeSegmentsFree,
}

/// What a timeout does to ssthresh. It is never below two segments (RFC 5681, equation 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TimeoutReduction {
    /// Each timeout reduces it, but not when the same data has timed out before (RFC 5681, section 3.1; ns-3).
    /// Persistent congestion keeps the value that the loss has set (RFC 9002, section 7.6.2).
    #[default]
    EachTimeout,
    /// Like `each-timeout`, but not during the recovery from an earlier reduction (Linux).
    OncePerWindow,
    /// Half of the window, whatever the congestion avoidance, with each timeout and with persistent congestion
    /// (Google's QUIC).
    HalfWindow,
}

/// How slow start runs after a timeout or persistent congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SlowStartAfterTimeout {
    /// Classic slow start, up to ssthresh (RFC 5681).
    #[default]
    Classic,
    /// With the startup scheme's rule for leaving it, if the scheme has one and its reference applies it again
    /// ([`Startup::on_restart`](crate::startup::Startup::on_restart)): HyStart in Linux, ns-3 and Google's QUIC.
    Scheme,
}

/// How packets are spread in time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Pacing {
    /// Pacing rate over cwnd / SRTT while cwnd is below ssthresh, 0.01 to 100. Google's QUIC and Linux: 2.
    pub startup_gain: f64,
    /// Pacing rate over cwnd / SRTT otherwise, 0.01 to 100. Google's QUIC: 1.25; Linux 1.2; RFC 9002, section 7.7
    /// suggests 1.25.
    pub avoidance_gain: f64,
    /// Segments that leave at once when sending starts or resumes, 1 to 1000000. RFC 9002, section 7.7: the initial
    /// window, 10.
    pub burst: u64,
    /// How much before its time a packet may leave, 0 to 1 s. Google's QUIC: 1 ms.
    pub quantum: Duration,
}

impl Default for Pacing {
    fn default() -> Self {
        Self { startup_gain: 2.0, avoidance_gain: 1.25, burst: 10, quantum: Duration::ZERO }
    }
}

impl Pacing {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("pacing.startup_gain", self.startup_gain, 0.01..=100.0)?;
        ConfigError::unless_in("pacing.avoidance_gain", self.avoidance_gain, 0.01..=100.0)?;
        ConfigError::unless_in("pacing.burst", self.burst, SEGMENTS)?;
        ConfigError::unless_in("pacing.quantum", self.quantum, Duration::ZERO..=Duration::from_millis(1000))
    }
}

/// Windows and bursts in segments.
const SEGMENTS: RangeInclusive<u64> = 1..=1_000_000;

/// Everything that defines a controller: its scheme and congestion avoidance, and the policies in which stacks differ.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct ControllerConfig {
    /// Startup scheme.
    pub startup: StartupConfig,
    /// Congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// Segment size in which windows are counted, 1 to 65535 bytes.
    pub segment: Bytes,
    /// Initial window in segments when the scheme does not set one, 1 to 1000000.
    pub initial_window: u64,
    /// Smallest window in segments, 1 to 1000000. RFC 9002, section 7.2: 2.
    pub min_window: u64,
    /// Largest window in segments, 1 to 1000000; `None`: no limit.
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
    /// Window in segments after a retransmission timeout, 1 to 1000000. RFC 5681: 1; RFC 9002: its minimum, 2.
    pub timeout_window: u64,
    /// What a timeout does to ssthresh.
    pub timeout_reduction: TimeoutReduction,
    /// How slow start runs after a timeout.
    pub slow_start_after_timeout: SlowStartAfterTimeout,
    /// What happens to a window that the application does not use.
    pub window_validation: WindowValidation,
    /// Whether a reduction can be undone ([`Controller::on_spurious_loss`](super::Controller::on_spurious_loss),
    /// [`Controller::on_spurious_timeout`](super::Controller::on_spurious_timeout)). RFC 9438, section 4.9: allowed
    /// where the transport detects spurious losses. Costs an allocation per reduction.
    pub undo: bool,
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
            timeout_reduction: TimeoutReduction::EachTimeout,
            slow_start_after_timeout: SlowStartAfterTimeout::Classic,
            window_validation: WindowValidation::Keep,
            undo: false,
        }
    }

    /// Refuses policies and parameters out of range, and a meaningless pair. A controller is only built from an
    /// accepted configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_parts()?;
        Self::validate_pair(&self.startup, &self.avoidance)
    }

    /// As [`ControllerConfig::validate`] without the pair, which a caller's own algorithms may replace.
    pub(super) fn validate_parts(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("segment", self.segment, Bytes::new(1)..=Bytes::new(65_535))?;
        ConfigError::unless_in("initial_window", self.initial_window, SEGMENTS)?;
        ConfigError::unless_in("min_window", self.min_window, SEGMENTS)?;
        ConfigError::unless_in("max_window", self.max_window.unwrap_or(1), SEGMENTS)?;
        ConfigError::unless_in("timeout_window", self.timeout_window, SEGMENTS)?;
        self.pacing.as_ref().map_or(Ok(()), Pacing::validate)?;
        self.startup.validate()?;
        self.avoidance.validate()
    }

    /// Refuses a scheme that would have no effect because the congestion avoidance starts by itself.
    pub fn validate_pair(startup: &StartupConfig, avoidance: &AvoidanceConfig) -> Result<(), ConfigError> {
        if avoidance.kind() != Kind::Integrated {
            return Ok(());
        }
        if startup.needs().contains(Needs::APPROVAL_IN_CONNECTION) {
            let allowed = format!("one request, at the start: {} has its own rules after idle time", avoidance.name());
            return Err(ConfigError::new("scheme", format!("{} in mid-connection", startup.name()), allowed));
        }
        if startup.needs().contains(Needs::SHARED_WINDOW) {
            let allowed =
                format!("a scheme that shares no window: {} has no window that others may take", avoidance.name());
            return Err(ConfigError::new("scheme", startup.name(), allowed));
        }
        if startup.has_launch() {
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

    /// [`ControllerConfig::validate_pair`] for algorithms without known names.
    pub(super) fn validate_algorithms(startup: &StartupState, avoidance: &AvoidanceState) -> Result<(), ConfigError> {
        let has_launch = startup.has_launch() && !startup.needs().contains(Needs::APPROVAL_IN_CONNECTION);
        if avoidance.kind() != Kind::Integrated || has_launch {
            return Ok(());
        }
        let allowed = "one with a launch and no more: the congestion avoidance probes by itself";
        Err(ConfigError::new("scheme", "the caller's", allowed))
    }

    /// What every scheme learns at its construction.
    pub(super) fn startup_context(&self) -> StartupContext {
        StartupContext {
            segment: self.segment,
            initial_window: self.segment * self.initial_window,
            increase: self.increase,
            paced: self.pacing.is_some(),
        }
    }
}
