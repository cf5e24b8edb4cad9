//! BBR: rate and window follow a model of the path, made of its bandwidth and its RTT.
//!
//! References: version 3 is draft-ietf-ccwg-bbr, the working group's text of 3 August 2026; version 1 is
//! draft-cardwell-iccrg-bbr-congestion-control-00 (July 2017) as in Linux (`net/ipv4/tcp_bbr.c`, 2018 to 2026). Both
//! pace at a multiple of the largest recent delivery rate, keep a multiple of the bandwidth-delay product in flight,
//! and probe from time to time for more bandwidth and a lower RTT. They differ in their response to loss: version 3
//! bounds window and rate by it; version 1 uses it only to conserve packets in recovery and to detect policers.
//!
//! BBR is integrated: it is in charge from the first packet, and takes only the launch from the startup scheme. If a
//! launch sets a rate, or says that it knows the path, BBR paces at this rate (or at cwnd / RTT), not at a multiple of
//! it. STARTUP then goes on as usual: the first samples replace the launch's rate, window and rate grow if the path has
//! more, and the usual tests end it. A launch that comes with the first acknowledgements (Careful Resume, Swift Start)
//! raises window and rate at that time, unless something was lost or STARTUP is over.
//!
//! | Looking for | Where |
//! |---|---|
//! | version 1 | `v1/` |
//! | version 3 | `v3/` |
//! | round trips that packets count | `rounds.rs` |
//! | the largest value of the last rounds | `windowed_max.rs` |
//! | samples that `ProbeRTT` keeps low | `limited_span.rs` |
//! | entered states, for traces | `transitions.rs` |
//!
//! Status: see the versions.

mod limited_span;
mod rounds;
mod transitions;
mod v1;
mod v3;
mod windowed_max;

use alloc::boxed::Box;
use alloc::format;

use super::Integrated;
use crate::event::{Ack, Ecn, ExitReason, LostPacket, Sent};
use crate::launch::Launch;
use crate::needs::Needs;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// One line for listings.
pub const SUMMARY: &str = "BBRv3, or BBRv1 of Linux: rate and window from a model of bandwidth, RTT and loss; probes by itself from the launch";
/// The document that defines it.
pub const REFERENCE: &str =
    "draft-ietf-ccwg-bbr (August 2026); version=1: draft-cardwell-iccrg-bbr-congestion-control-00, Linux tcp_bbr.c";

/// The assumed RTT before the first sample (`InitPacingRate`; `bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The rate of a window over a span, never zero: a span counts as at least a nanosecond.
fn rate_of(window: Bytes, span: Duration) -> Rate {
    Rate::from_transfer(window, span.max(Duration::from_nanos(1))).unwrap_or(Rate::from_bits_per_sec(1))
}

/// Which BBR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "u32", into = "u32"))]
pub enum Version {
    /// Version 1, the one in Linux.
    One,
    /// Version 3, the one of the draft.
    #[default]
    Three,
}

impl TryFrom<u32> for Version {
    type Error = ConfigError;

    fn try_from(number: u32) -> Result<Self, ConfigError> {
        match number {
            1 => Ok(Self::One),
            3 => Ok(Self::Three),
            _ => Err(ConfigError::new("version", number, "1 or 3")),
        }
    }
}

impl From<Version> for u32 {
    fn from(version: Version) -> Self {
        match version {
            Version::One => 1,
            Version::Three => 3,
        }
    }
}

/// Parameters of BBR. Every default is the draft's of version 3.
///
/// Version 1 has only the parameters with the same meaning in both versions, with the same defaults. Its other values
/// are the constants of Linux, and the other parameters must keep their defaults.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Which BBR, 1 or 3. Default: 3.
    pub version: Version,
    /// `StartupPacingGain`: pacing rate over bandwidth in STARTUP, 1 to 10. Draft: 2.77 (4 ln 2). Version 3 only.
    pub startup_pacing_gain: f64,
    /// `DrainPacingGain`: the same in DRAIN, 0.01 to 1. Draft: 0.5. Version 3 only.
    pub drain_pacing_gain: f64,
    /// Pacing gain of `ProbeBW_UP`, 1 to 10. Draft: 1.25. Version 3 only.
    pub up_pacing_gain: f64,
    /// Pacing gain of `ProbeBW_DOWN`, 0.01 to 1. Draft: 0.9. Version 3 only.
    pub down_pacing_gain: f64,
    /// `DefaultCwndGain`: cwnd over the bandwidth-delay product, 1 to 10. Draft: 2. In version 1 that of `ProbeBW`
    /// (`bbr_cwnd_gain`).
    pub cwnd_gain: f64,
    /// The same in `ProbeBW_UP`, 1 to 10. Draft: 2.25. Version 3 only.
    pub up_cwnd_gain: f64,
    /// `ProbeRTTCwndGain`: the same in `ProbeRTT`, 0.01 to 1. Draft: 0.5. Version 3 only.
    pub probe_rtt_cwnd_gain: f64,
    /// `PacingMarginPercent` as a fraction: pacing stays below the bandwidth by this fraction, 0 to 0.5. Draft, Linux:
    /// 0.01.
    pub pacing_margin: f64,
    /// `LossThresh`: tolerated loss per round trip as a fraction, 0.0001 to 0.5. Draft: 0.02. Version 3 only.
    pub loss_thresh: f64,
    /// Beta: the least share of the short-term bounds that a round with loss leaves, 0.1 to 0.99. Draft: 0.7. Version 3
    /// only.
    pub beta: f64,
    /// Headroom: part of `inflight_longterm` that CRUISE leaves free, 0 to 0.9. Draft: 0.15. Version 3 only.
    pub headroom: f64,
    /// Growth of the delivery rate per round below which the pipe may be full, 1 to 4. Draft, Linux: 1.25.
    pub full_bw_growth: f64,
    /// Rounds below that growth after which the pipe is full, 1 to 100. Draft, Linux: 3.
    pub full_bw_rounds: u32,
    /// `StartupFullLossCnt`: separate ranges that must be lost in a round before loss ends STARTUP, 1 to 1000. Draft:
    /// 6. Version 3 only.
    pub startup_loss_ranges: u32,
    /// `MinPipeCwnd` in segments, 1 to 100. Draft, Linux: 4.
    pub min_pipe_cwnd: u32,
    /// `MinRTTFilterLen`: how long the smallest RTT stays valid, 100 ms to 1 h. Draft, Linux: 10 s. Version 1 then
    /// looks for a new one in `ProbeRTT`.
    pub min_rtt_filter: Duration,
    /// `ProbeRTTInterval`: time without a new smallest RTT after which `ProbeRTT` looks for one, 100 ms to 1 h. Draft:
    /// 5 s. Version 3 only.
    pub probe_rtt_interval: Duration,
    /// `ProbeRTTDuration`: how long it stays there at least, 1 ms to 10 s. Draft, Linux: 200 ms.
    pub probe_rtt_duration: Duration,
    /// Shortest wait between two bandwidth probes, 10 ms to 1 h. Draft: 2 s. Version 3 only.
    pub probe_wait: Duration,
    /// Random part that is added to it, 0 to 1 h. Draft: 1 s. Version 3 only.
    pub probe_wait_spread: Duration,
    /// Round trips after which a bandwidth probe is always due, so Reno flows get their share, 1 to 10000. Draft: 63.
    /// Version 3 only.
    pub reno_rounds: u32,
    /// Seed of the random waits, and of the phase in which the gain cycle of version 1 begins. Default: 0.
    pub seed: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            version: Version::Three,
            startup_pacing_gain: 2.77,
            drain_pacing_gain: 0.5,
            up_pacing_gain: 1.25,
            down_pacing_gain: 0.9,
            cwnd_gain: 2.0,
            up_cwnd_gain: 2.25,
            probe_rtt_cwnd_gain: 0.5,
            pacing_margin: 0.01,
            loss_thresh: 0.02,
            beta: 0.7,
            headroom: 0.15,
            full_bw_growth: 1.25,
            full_bw_rounds: 3,
            startup_loss_ranges: 6,
            min_pipe_cwnd: 4,
            min_rtt_filter: Duration::from_millis(10_000),
            probe_rtt_interval: Duration::from_millis(5_000),
            probe_rtt_duration: Duration::from_millis(200),
            probe_wait: Duration::from_millis(2_000),
            probe_wait_spread: Duration::from_millis(1_000),
            reno_rounds: 63,
            seed: 0,
        }
    }
}

impl Config {
    /// Refuses parameters out of range, and those that the version does not have.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let hour = Duration::from_millis(3_600_000);
        for (field, value, range) in [
            ("startup_pacing_gain", self.startup_pacing_gain, 1.0..=10.0),
            ("drain_pacing_gain", self.drain_pacing_gain, 0.01..=1.0),
            ("up_pacing_gain", self.up_pacing_gain, 1.0..=10.0),
            ("down_pacing_gain", self.down_pacing_gain, 0.01..=1.0),
            ("cwnd_gain", self.cwnd_gain, 1.0..=10.0),
            ("up_cwnd_gain", self.up_cwnd_gain, 1.0..=10.0),
            ("probe_rtt_cwnd_gain", self.probe_rtt_cwnd_gain, 0.01..=1.0),
            ("pacing_margin", self.pacing_margin, 0.0..=0.5),
            ("loss_thresh", self.loss_thresh, 0.0001..=0.5),
            ("beta", self.beta, 0.1..=0.99),
            ("headroom", self.headroom, 0.0..=0.9),
            ("full_bw_growth", self.full_bw_growth, 1.0..=4.0),
        ] {
            ConfigError::unless_in(field, value, range)?;
        }
        for (field, value, range) in [
            ("full_bw_rounds", self.full_bw_rounds, 1..=100),
            ("startup_loss_ranges", self.startup_loss_ranges, 1..=1000),
            ("min_pipe_cwnd", self.min_pipe_cwnd, 1..=100),
            ("reno_rounds", self.reno_rounds, 1..=10_000),
        ] {
            ConfigError::unless_in(field, value, range)?;
        }
        for (field, value, range) in [
            ("min_rtt_filter", self.min_rtt_filter, Duration::from_millis(100)..=hour),
            ("probe_rtt_interval", self.probe_rtt_interval, Duration::from_millis(100)..=hour),
            ("probe_rtt_duration", self.probe_rtt_duration, Duration::from_millis(1)..=Duration::from_millis(10_000)),
            ("probe_wait", self.probe_wait, Duration::from_millis(10)..=hour),
            ("probe_wait_spread", self.probe_wait_spread, Duration::ZERO..=hour),
        ] {
            ConfigError::unless_in(field, value, range)?;
        }
        self.refuse_what_version_1_lacks()
    }

    /// With version 1, parameters that it does not have must keep their defaults.
    fn refuse_what_version_1_lacks(&self) -> Result<(), ConfigError> {
        if self.version != Version::One {
            return Ok(());
        }
        let has = Self::default();
        let refused = |field, value: &dyn core::fmt::Display, default: &dyn core::fmt::Display| {
            let allowed = format!("{default} with version=1, which has no such parameter");
            Err(ConfigError::new(field, value, allowed))
        };
        for (field, value, default) in [
            ("startup_pacing_gain", self.startup_pacing_gain, has.startup_pacing_gain),
            ("drain_pacing_gain", self.drain_pacing_gain, has.drain_pacing_gain),
            ("up_pacing_gain", self.up_pacing_gain, has.up_pacing_gain),
            ("down_pacing_gain", self.down_pacing_gain, has.down_pacing_gain),
            ("up_cwnd_gain", self.up_cwnd_gain, has.up_cwnd_gain),
            ("probe_rtt_cwnd_gain", self.probe_rtt_cwnd_gain, has.probe_rtt_cwnd_gain),
            ("loss_thresh", self.loss_thresh, has.loss_thresh),
            ("beta", self.beta, has.beta),
            ("headroom", self.headroom, has.headroom),
        ] {
            if value.to_bits() != default.to_bits() {
                return refused(field, &value, &default);
            }
        }
        for (field, value, default) in [
            ("startup_loss_ranges", self.startup_loss_ranges, has.startup_loss_ranges),
            ("reno_rounds", self.reno_rounds, has.reno_rounds),
        ] {
            if value != default {
                return refused(field, &value, &default);
            }
        }
        for (field, value, default) in [
            ("probe_rtt_interval", self.probe_rtt_interval, has.probe_rtt_interval),
            ("probe_wait", self.probe_wait, has.probe_wait),
            ("probe_wait_spread", self.probe_wait_spread, has.probe_wait_spread),
        ] {
            if value != default {
                return refused(field, &value, &default);
            }
        }
        Ok(())
    }
}

/// State of BBR, in a box: it is several times as large as that of other algorithms, and their flows should not carry
/// its size.
#[derive(Clone, Debug)]
pub struct Bbr(Box<dyn Integrated>);

impl Bbr {
    /// BBR before its launch.
    pub fn new(config: Config, segment: SegmentSize) -> Self {
        match config.version {
            Version::One => Self(Box::new(v1::Model::new(config, segment))),
            Version::Three => Self(Box::new(v3::Model::new(config, segment))),
        }
    }
}

/// The version does everything else.
impl Integrated for Bbr {
    fn needs(&self) -> Needs {
        Needs::OWN_RATE.and(Needs::RATE_SAMPLES)
    }

    fn on_segment_size(&mut self, segment: SegmentSize) {
        self.0.on_segment_size(segment);
    }

    fn on_launch(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        self.0.on_launch(now, launch, rtt);
    }

    fn on_late_launch(&mut self, window: Window, cwnd: Bytes, rate: Rate) -> Bytes {
        self.0.on_late_launch(window, cwnd, rate)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.0.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Bytes {
        self.0.on_ack(ack, window, rtt)
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.0.on_packet_lost(lost);
    }

    fn on_congestion(&mut self, window: Window) -> Bytes {
        self.0.on_congestion(window)
    }

    fn on_recovered(&mut self) {
        self.0.on_recovered();
    }

    fn on_mark(&mut self, ecn: &Ecn) {
        self.0.on_mark(ecn);
    }

    fn on_timeout(&mut self, now: Timestamp, window: Window, least: Bytes) -> Bytes {
        self.0.on_timeout(now, window, least)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.0.pacing_rate()
    }

    fn burst(&self) -> Option<Bytes> {
        self.0.burst()
    }

    fn send_group(&self) -> Option<Bytes> {
        self.0.send_group()
    }

    fn is_starting(&self) -> bool {
        self.0.is_starting()
    }

    fn take_exit(&mut self) -> Option<ExitReason> {
        self.0.take_exit()
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.0.take_phase()
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        self.0.observe(seen);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_version_that_does_not_exist_is_refused_with_those_that_do() {
        assert_eq!(Version::try_from(2).unwrap_err().to_string(), "version is 2; allowed is 1 or 3");
        assert_eq!((Version::try_from(1), Version::try_from(3)), (Ok(Version::One), Ok(Version::Three)));
        assert_eq!((u32::from(Version::One), Config::default().version), (1, Version::Three));
    }

    #[test]
    fn parameters_out_of_range_are_refused_by_name() {
        let refused = |config: Config| config.validate().unwrap_err().field;
        assert_eq!(refused(Config { beta: 1.5, ..Config::default() }), "beta");
        assert_eq!(refused(Config { full_bw_rounds: 0, ..Config::default() }), "full_bw_rounds");
        assert_eq!(refused(Config { probe_wait: Duration::ZERO, ..Config::default() }), "probe_wait");
    }

    #[test]
    fn version_1_refuses_parameters_that_it_does_not_have() {
        let one = Config { version: Version::One, ..Config::default() };
        assert_eq!(one.validate(), Ok(()));
        let error = Config { beta: 0.5, ..one.clone() }.validate().unwrap_err().to_string();
        assert_eq!(error, "beta is 0.5; allowed is 0.7 with version=1, which has no such parameter");
        for config in [
            Config { reno_rounds: 62, ..one.clone() },
            Config { probe_wait: Duration::from_millis(1_000), ..one.clone() },
            Config { startup_pacing_gain: 2.0, ..one.clone() },
        ] {
            assert!(config.validate().is_err(), "{config:?}");
        }
        // Parameters of both versions are free.
        assert_eq!(Config { full_bw_rounds: 2, seed: 7, cwnd_gain: 2.5, ..one }.validate(), Ok(()));
    }
}
