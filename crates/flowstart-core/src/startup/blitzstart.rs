//! Blitzstart: the client's bandwidth estimate replaces slow start.
//!
//! Reference: Rüth, Wolsing, Serror, Wehrle, Hohlfeld, "Blitz-starting QUIC Connections", technical report, RWTH Aachen
//! (2019), section 3. The client hints its bandwidth and access technology with the handshake. The server sets cwnd to
//! bandwidth x RTT x a factor for the technology's buffer and starts in congestion avoidance. The window is paced over
//! three quarters of the RTT.
//!
//! Differences from the reference: the hint is capped to configured bounds; the RTT may be the handshake's or a cached
//! one (`rtt`), with the delay of an acknowledgement in it (`ack_delay`); the headers can be subtracted from the hint
//! (`header_correction`). The paper does not define ssthresh at the launch; here ssthresh = cwnd. CUBIC has no `W_max`
//! yet, so its first epoch is convex from the launch window. The paper argues for a larger buffer factor with deep
//! buffers and evaluates with 1; here the factor is 2 where the hint says 3G or LTE, because it is faster on recorded
//! links of these (`docs/findings/buffer-factors.md`). What leaves at once on a link layer that gathers packets
//! (`gathered_burst`) has numbers of its standards, since the paper has none.
//!
//! Status: validated by `blitzstart-table1`.

use alloc::format;

use super::{Startup, StartupContext, Step};
use crate::event::{Ack, Decision, DecisionLog, ExitReason};
use crate::launch::{Continuation, Launch};
use crate::needs::Needs;
use crate::path::{AccessTechnology, Hint, PathKnowledge};
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Rate;
use crate::variable::Variables;
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str = "cwnd from the client's bandwidth hint, paced, straight into congestion avoidance";
/// The document that defines it.
pub const REFERENCE: &str = "Rüth et al., Blitz-starting QUIC Connections (2019), section 3";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str =
    "the client's bandwidth hint and the RTT; none; none; congestion avoidance from the first packet";

/// Buffer factor of mobile links by default. Their rate varies, and a link that is faster than the hint for a while is
/// idle with one bandwidth-delay product (`docs/findings/buffer-factors.md`).
const MOBILE_FACTOR: f64 = 2.0;

/// Which RTT multiplies the hinted bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RttSource {
    /// The smallest RTT known, from this handshake or an earlier connection (the paper's choice).
    #[default]
    Min,
    /// This connection's handshake, including any queue.
    Handshake,
    /// The value that an earlier connection saved; the handshake's RTT if nothing was saved.
    Cached,
}

/// Over which RTT the launch window is paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum PacingRtt {
    /// The host's own pacing rule in congestion avoidance, which uses the smoothed RTT: "just as the regular Google
    /// QUIC implementation" (paper, section 4). Before the first sample the launch RTT is used.
    #[default]
    Smoothed,
    /// The RTT that gave the window.
    Launch,
}

/// Parameters of Blitzstart.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Factor on the hint, for experiments with wrong estimates (the paper's 0.5 to 4.0), 0.001 to 1000.
    /// Default 1.
    pub estimate: f64,
    /// Factor for the buffer of every access technology without a factor of its own below; all factors 0.01 to 100.
    /// Default: 2 for third-generation cellular and LTE, which recordings show to be faster, and 1 for others. Paper's
    /// evaluation: 1 for all.
    pub buffer_factor: Option<f64>,
    /// Buffer factor of DSL. Default: `buffer_factor`.
    pub dsl_factor: Option<f64>,
    /// Buffer factor of DOCSIS cable. Default: `buffer_factor`.
    pub docsis_factor: Option<f64>,
    /// Buffer factor of Wi-Fi. Default: `buffer_factor`.
    pub wifi_factor: Option<f64>,
    /// Buffer factor of third-generation cellular. Default: `buffer_factor`.
    #[cfg_attr(feature = "serde", serde(rename = "3g_factor"))]
    pub third_generation_factor: Option<f64>,
    /// Buffer factor of LTE. Default: `buffer_factor`.
    pub lte_factor: Option<f64>,
    /// Buffer factor of fibre to the home. Default: `buffer_factor`.
    pub fibre_factor: Option<f64>,
    /// Which RTT multiplies the bandwidth. Default: the smallest known.
    pub rtt: RttSource,
    /// Delay of the acknowledgement in the RTT sample, which is added to the RTT for the window, 0 to 1 s. The smallest
    /// RTT is not adjusted for it (RFC 9002, section 5.2; Google's QUIC does the same, with delays of up to 25 ms).
    /// Default 0.
    pub ack_delay: Duration,
    /// Whether the launch window is paced; otherwise it leaves at once. Paper: yes.
    pub pacing: bool,
    /// Over which RTT the launch window is paced. Default: the smoothed RTT, by the host's rule.
    pub pacing_rtt: PacingRtt,
    /// Fraction of the launch RTT over which the window is paced when the launch sets the rate, 0.001 to 100. Paper,
    /// section 4: 0.75.
    pub pacing_fraction: f64,
    /// Whether as much leaves at once, before pacing begins, as the hinted access link gathers in an interval
    /// ([`AccessTechnology::gathering_interval`]), at most the window. Paper, section 3: the bursts of DOCSIS "can help
    /// to configure packet pacing", without numbers. Default: no, one segment.
    pub gathered_burst: bool,
    /// Whether the hint counts the packet headers: cwnd is then scaled by `payload_fraction`. Default: no.
    pub header_correction: bool,
    /// Payload over wire size, 0.01 to 1, used by `header_correction`. Default: 1350 of 1392 bytes (QUIC over IPv4 and
    /// Ethernet).
    pub payload_fraction: f64,
    /// Smallest hint that is believed, at most `max_hint`. Default 100 kbit/s.
    pub min_hint: Rate,
    /// Largest hint that is believed, 1 kbit/s to 10000 Gbit/s. Default 10 Gbit/s.
    pub max_hint: Rate,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            estimate: 1.0,
            buffer_factor: None,
            dsl_factor: None,
            docsis_factor: None,
            wifi_factor: None,
            third_generation_factor: None,
            lte_factor: None,
            fibre_factor: None,
            rtt: RttSource::Min,
            ack_delay: Duration::ZERO,
            pacing: true,
            pacing_rtt: PacingRtt::Smoothed,
            pacing_fraction: 0.75,
            gathered_burst: false,
            header_correction: false,
            payload_fraction: 1350.0 / 1392.0,
            min_hint: Rate::from_bits_per_sec(100_000),
            max_hint: Rate::from_mbit(10_000),
        }
    }
}

impl Config {
    /// Factor for the buffering of a technology.
    pub fn factor(&self, technology: AccessTechnology) -> f64 {
        let (own, default) = match technology {
            AccessTechnology::Unknown | AccessTechnology::Ethernet => (None, 1.0),
            AccessTechnology::Dsl => (self.dsl_factor, 1.0),
            AccessTechnology::Docsis => (self.docsis_factor, 1.0),
            AccessTechnology::Wifi => (self.wifi_factor, 1.0),
            AccessTechnology::ThirdGeneration => (self.third_generation_factor, MOBILE_FACTOR),
            AccessTechnology::Lte => (self.lte_factor, MOBILE_FACTOR),
            AccessTechnology::Fibre => (self.fibre_factor, 1.0),
        };
        own.or(self.buffer_factor).unwrap_or(default)
    }

    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("estimate", self.estimate, 0.001..=1000.0)?;
        for (field, factor) in [
            ("buffer_factor", self.buffer_factor),
            ("dsl_factor", self.dsl_factor),
            ("docsis_factor", self.docsis_factor),
            ("wifi_factor", self.wifi_factor),
            ("3g_factor", self.third_generation_factor),
            ("lte_factor", self.lte_factor),
            ("fibre_factor", self.fibre_factor),
        ] {
            factor.map_or(Ok(()), |factor| ConfigError::unless_in(field, factor, 0.01..=100.0))?;
        }
        ConfigError::unless_in("ack_delay", self.ack_delay, Duration::ZERO..=Duration::from_millis(1000))?;
        ConfigError::unless_in("pacing_fraction", self.pacing_fraction, 0.001..=100.0)?;
        ConfigError::unless_in("payload_fraction", self.payload_fraction, 0.01..=1.0)?;
        let largest = Rate::from_bits_per_sec(1000)..=Rate::from_mbit(10_000_000);
        ConfigError::unless_in("max_hint", self.max_hint, largest)?;
        if self.min_hint > self.max_hint {
            return Err(ConfigError::new("min_hint", self.min_hint, format!("up to max_hint, {}", self.max_hint)));
        }
        Ok(())
    }
}

/// State of Blitzstart.
#[derive(Clone, Debug)]
pub struct Blitzstart {
    config: Config,
    context: StartupContext,
    /// Without a hint the flow starts like the baseline.
    fallback: super::slow_start::SlowStart,
    /// The bandwidth and the RTT of the launch.
    estimate: Option<(Rate, Duration)>,
}

impl Blitzstart {
    /// Blitzstart that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let fallback = super::slow_start::SlowStart::new(super::slow_start::Config::default(), context);
        Self { config, context, fallback, estimate: None }
    }

    /// The bandwidth to use: the hint times the experiment's factor, within the bounds.
    fn believed(&self, now: Timestamp, hint: Hint, log: &mut DecisionLog) -> Rate {
        let hinted = hint.bandwidth.scale(self.config.estimate);
        let used = hinted.max(self.config.min_hint).min(self.config.max_hint);
        if used != hinted {
            log.note(now, Decision::HintCapped { hinted, used });
        }
        used
    }

    fn rtt(&self, path: &PathKnowledge) -> Option<Duration> {
        let rtt = match self.config.rtt {
            RttSource::Min => path.min_rtt(),
            RttSource::Handshake => path.handshake_rtt,
            RttSource::Cached => path.saved.map(|saved| saved.rtt).or(path.handshake_rtt),
        };
        rtt.map(|rtt| rtt + self.config.ack_delay)
    }
}

impl Startup for Blitzstart {
    fn needs(&self) -> Needs {
        if self.config.pacing && !self.config.gathered_burst { Needs::NONE } else { Needs::BURST }
    }

    // Sensing: the hint and an RTT give cwnd = bandwidth x RTT x buffer factor. There is no Probing.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch {
        let (Some(hint), Some(rtt)) = (path.hint, self.rtt(path)) else {
            return self.fallback.launch(now, path, log);
        };
        let bandwidth = self.believed(now, hint, log);
        self.estimate = Some((bandwidth, rtt));
        let mut window = bandwidth.amount_in(rtt).scale(self.config.factor(hint.technology));
        if self.config.header_correction {
            window = window.scale(self.config.payload_fraction);
        }
        let cwnd = window.max(self.context.segment * 2);
        let by_host = self.config.pacing_rtt == PacingRtt::Smoothed && path.handshake_rtt.is_some();
        let pacing_rate = Rate::from_transfer(cwnd, rtt.scale(self.config.pacing_fraction));
        // Continuation: congestion avoidance from the first packet; ssthresh = cwnd so that slow start never runs.
        let continuation = Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Launch };
        let gathered = || {
            let gathered = Hint { bandwidth, ..hint }.burst_allowance().min(cwnd);
            (self.config.gathered_burst && gathered > self.context.segment).then_some(gathered)
        };
        let (pacing_rate, burst) = match self.config.pacing {
            true => (pacing_rate.filter(|_| !by_host), gathered()),
            false => (None, Some(cwnd)),
        };
        Launch { cwnd, pacing_rate, burst, continuation: Some(continuation) }
    }

    // Only without a hint: the baseline start.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.fallback.on_ack(ack, window, in_use, rtt)
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        if let Some((bandwidth, rtt)) = self.estimate {
            seen.rate("bandwidth", bandwidth);
            seen.time("RTT", rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::SavedPath;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::units::Bytes;

    fn path(bandwidth: Rate) -> PathKnowledge {
        PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(100)),
            saved: Some(SavedPath {
                rtt: Duration::from_millis(50),
                cwnd: Bytes::new(100_000),
                age: Duration::from_millis(60_000),
            }),
            hint: Some(Hint { bandwidth, technology: AccessTechnology::Dsl }),
            ..PathKnowledge::default()
        }
    }

    fn launch(config: Config, path: &PathKnowledge) -> (Launch, DecisionLog) {
        let mut log = DecisionLog::default();
        let launch = Blitzstart::new(config, context(Increase::Bytes)).launch(Timestamp::ZERO, path, &mut log);
        (launch, log)
    }

    #[test]
    fn the_window_is_bandwidth_times_min_rtt_paced_over_three_quarters_of_it() {
        // 50 Mbit/s x 50 ms = 312,500 bytes; over 37.5 ms that is 66.667 Mbit/s.
        let config = Config { pacing_rtt: PacingRtt::Launch, ..Config::default() };
        let (launch, _) = launch(config, &path(Rate::from_mbit(50)));
        assert_eq!(launch.cwnd, Bytes::new(312_500));
        assert_eq!(launch.pacing_rate, Some(Rate::from_bits_per_sec(66_666_666)));
        assert_eq!(launch.continuation.map(|c| c.ssthresh), Some(Bytes::new(312_500)));
    }

    #[test]
    fn by_default_the_host_paces_unless_it_has_no_sample() {
        let mut path = path(Rate::from_mbit(50));
        assert_eq!(launch(Config::default(), &path).0.pacing_rate, None);
        path.handshake_rtt = None;
        assert_eq!(launch(Config::default(), &path).0.pacing_rate, Some(Rate::from_bits_per_sec(66_666_666)));
    }

    #[test]
    fn the_rtt_may_come_from_the_handshake() {
        let config = Config { rtt: RttSource::Handshake, ..Config::default() };
        assert_eq!(launch(config, &path(Rate::from_mbit(50))).0.cwnd, Bytes::new(625_000));
    }

    #[test]
    fn a_delayed_acknowledgement_stretches_the_rtt() {
        // 50 Mbit/s x (50 + 25) ms.
        let config = Config { ack_delay: Duration::from_millis(25), ..Config::default() };
        assert_eq!(launch(config, &path(Rate::from_mbit(50))).0.cwnd, Bytes::new(468_750));
        let config = Config { ack_delay: Duration::from_millis(1001), ..Config::default() };
        assert_eq!(config.validate().map_err(|error| error.field), Err("ack_delay"));
    }

    #[test]
    fn factors_and_header_correction_multiply() {
        let config = Config { estimate: 1.5, dsl_factor: Some(2.0), lte_factor: Some(9.0), ..Config::default() };
        assert_eq!(launch(config, &path(Rate::from_mbit(50))).0.cwnd, Bytes::new(937_500));
        let config = Config { header_correction: true, payload_fraction: 0.96, ..Config::default() };
        assert_eq!(launch(config, &path(Rate::from_mbit(50))).0.cwnd, Bytes::new(300_000));
    }

    #[test]
    fn a_mobile_link_has_twice_the_window_unless_told_otherwise() {
        let window = |technology, config| {
            let hint = Some(Hint { bandwidth: Rate::from_mbit(50), technology });
            launch(config, &PathKnowledge { hint, ..path(Rate::ZERO) }).0.cwnd
        };
        // 50 Mbit/s x 50 ms = 312,500 bytes.
        for (technology, doubled) in [
            (AccessTechnology::Unknown, false),
            (AccessTechnology::Ethernet, false),
            (AccessTechnology::Dsl, false),
            (AccessTechnology::Docsis, false),
            (AccessTechnology::Wifi, false),
            (AccessTechnology::ThirdGeneration, true),
            (AccessTechnology::Lte, true),
            (AccessTechnology::Fibre, false),
        ] {
            let expected = Bytes::new(if doubled { 625_000 } else { 312_500 });
            assert_eq!(window(technology, Config::default()), expected, "{technology}");
        }
        let for_all = Config { buffer_factor: Some(1.5), ..Config::default() };
        assert_eq!(window(AccessTechnology::Lte, for_all.clone()), Bytes::new(468_750));
        assert_eq!(window(AccessTechnology::Lte, Config { lte_factor: Some(1.0), ..for_all }), Bytes::new(312_500));
    }

    #[test]
    fn a_hint_outside_the_bounds_is_capped_and_the_cap_is_visible() {
        let config = Config { max_hint: Rate::from_mbit(100), ..Config::default() };
        let (launch, mut log) = launch(config, &path(Rate::from_mbit(100_000)));
        assert_eq!(launch.cwnd, Bytes::new(625_000));
        let expected = Decision::HintCapped { hinted: Rate::from_mbit(100_000), used: Rate::from_mbit(100) };
        assert_eq!(log.take(), Some((Timestamp::ZERO, expected)));
    }

    #[test]
    fn without_pacing_the_whole_window_is_a_burst() {
        let config = Config { pacing: false, ..Config::default() };
        assert_eq!(launch(config, &path(Rate::from_mbit(50))).0.burst, Some(Bytes::new(312_500)));
    }

    #[test]
    fn as_much_leaves_at_once_as_the_access_link_gathers() {
        let burst = |technology, mbit, rtt_ms| {
            let config = Config { gathered_burst: true, ..Config::default() };
            let hint = Some(Hint { bandwidth: Rate::from_mbit(mbit), technology });
            let handshake_rtt = Some(Duration::from_millis(rtt_ms));
            launch(config, &PathKnowledge { hint, handshake_rtt, ..PathKnowledge::default() }).0.burst
        };
        // 100 Mbit/s for 2 ms are 25,000 bytes; 32 Mbit/s for 1 ms are 4000.
        assert_eq!(burst(AccessTechnology::Docsis, 100, 50), Some(Bytes::new(25_000)));
        assert_eq!(burst(AccessTechnology::Lte, 32, 50), Some(Bytes::new(4000)));
        // Wi-Fi gathers 64 packets. Never more than the window, 100 Mbit/s for 2 ms; never less than a segment, which
        // is what pacing does anyway.
        assert_eq!(burst(AccessTechnology::Wifi, 866, 50), Some(Bytes::new(96_000)));
        assert_eq!(burst(AccessTechnology::Wifi, 100, 2), Some(Bytes::new(25_000)));
        assert_eq!(burst(AccessTechnology::Lte, 8, 50), None);
        assert_eq!(burst(AccessTechnology::Dsl, 100, 50), None);
    }

    #[test]
    fn absurd_factors_and_crossed_bounds_are_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        assert_eq!(refused(Config { estimate: f64::INFINITY, ..Config::default() }), Err("estimate"));
        assert_eq!(refused(Config { third_generation_factor: Some(0.0), ..Config::default() }), Err("3g_factor"));
        assert_eq!(refused(Config { payload_fraction: 1.1, ..Config::default() }), Err("payload_fraction"));
        assert_eq!(refused(Config { max_hint: Rate::from_mbit(0), ..Config::default() }), Err("max_hint"));
        assert_eq!(refused(Config { max_hint: Rate::from_bits_per_sec(1000), ..Config::default() }), Err("min_hint"));
    }

    #[test]
    fn without_a_hint_it_is_the_baseline_start() {
        let path = PathKnowledge { hint: None, ..path(Rate::ZERO) };
        let (launch, _) = launch(Config::default(), &path);
        assert_eq!((launch.cwnd, launch.continuation), (Bytes::new(10_000), None));
    }
}
