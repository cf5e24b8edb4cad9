//! Initial-Start: only a larger initial window.
//!
//! Reference: Scharf, "Quick-Start, Jump-Start, and Other Fast Startup Approaches", 2008. The initial window is larger
//! than in the standards. It is a constant, or follows from knowledge about the path, as in Riptide (Flores et al.,
//! ICDCS 2016), which sets it per destination. The window leaves at once. Nothing else changes: the response to losses
//! is slow start's.
//!
//! Differences from the reference: with `pacing = true` the window is paced over the RTT, to measure the value of
//! pacing. `factor` makes wrong windows for experiments.
//!
//! Status: worked examples; no published numbers are reproduced.

use super::slow_start::{self, SlowStart};
use super::{Startup, StartupContext, Step};
use crate::event::{Ack, DecisionLog};
use crate::launch::Launch;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str = "slow start from a larger initial window, a constant or the path's own";
/// The document that defines it.
pub const REFERENCE: &str = "Scharf, Quick-Start, Jump-Start, and Other Fast Startup Approaches (2008)";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "a constant, the path store, a hint or an oracle; all at once; as slow start; as slow start";

/// Where the window comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum WindowSource {
    /// `iw`.
    #[default]
    Static,
    /// What an earlier connection delivered in a round trip; `iw` if nothing was saved.
    Saved,
    /// The client's hint times the RTT; `iw` without a hint.
    Hint,
    /// The oracle's answer times the RTT; `iw` without an answer.
    Oracle,
}

/// Parameters of Initial-Start.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Scharf (2008) leaves it open; default: 100, between the 10 of RFC 6928
    /// and the BDP of 10 Mbit/s and 200 ms, 167.
    pub iw: u32,
    /// Where the window comes from. Default: `iw`.
    pub window: WindowSource,
    /// Factor on the path's own window, for experiments with wrong windows. Default 1.
    pub factor: f64,
    /// Largest window from the path's knowledge in segments, 1 to 1000000. Default: 100000.
    pub max_window: u32,
    /// Whether the window is paced over the RTT. Reference: no.
    pub pacing: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { iw: 100, window: WindowSource::Static, factor: 1.0, max_window: 100_000, pacing: false }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("iw", self.iw, 1..=100_000)?;
        ConfigError::unless_in("max_window", self.max_window, 1..=1_000_000)?;
        ConfigError::unless_in("factor", self.factor, 0.001..=1000.0)
    }
}

/// State of Initial-Start.
#[derive(Clone, Debug)]
pub struct InitialStart {
    config: Config,
    context: StartupContext,
    slow_start: SlowStart,
}

impl InitialStart {
    /// Initial-Start that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self { config, context, slow_start: SlowStart::new(slow_start::Config::default(), context) }
    }

    fn window(&self, path: &PathKnowledge) -> Bytes {
        let in_rtt = |rate: Rate| path.min_rtt().map(|rtt| rate.amount_in(rtt));
        let own = match self.config.window {
            WindowSource::Static => None,
            WindowSource::Saved => path.saved.map(|saved| saved.cwnd),
            WindowSource::Hint => path.hint.and_then(|hint| in_rtt(hint.bandwidth)),
            WindowSource::Oracle => path.oracle_rate.and_then(in_rtt),
        };
        let segments = |count: u32| self.context.segment * u64::from(count);
        own.map_or(segments(self.config.iw), |own| own.scale(self.config.factor).min(segments(self.config.max_window)))
    }
}

impl Startup for InitialStart {
    // Sensing: a constant, or the known capacity of the path. Probing: at once.
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let cwnd = self.window(path).max(self.context.segment);
        let rtt = path.handshake_rtt.or(path.min_rtt()).filter(|_| self.config.pacing);
        let pacing_rate = rtt.and_then(|rtt| Rate::from_transfer(cwnd, rtt));
        let burst = (!self.config.pacing).then_some(cwnd);
        Launch { pacing_rate, burst, ..Launch::window(cwnd) }
    }

    // Validation and Continuation: slow start's.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.slow_start.on_ack(ack, window, in_use, rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::SavedPath;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::time::Duration;

    fn launch(config: Config) -> Launch {
        let path = PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(200)),
            saved: Some(SavedPath {
                rtt: Duration::from_millis(200),
                cwnd: Bytes::new(250_000),
                age: Duration::from_millis(1),
            }),
            ..PathKnowledge::default()
        };
        InitialStart::new(config, context(Increase::Bytes)).launch(Timestamp::ZERO, &path, &mut DecisionLog::default())
    }

    #[test]
    fn the_static_window_leaves_at_once() {
        let launch = launch(Config::default());
        assert_eq!((launch.cwnd, launch.burst), (Bytes::new(100_000), Some(Bytes::new(100_000))));
    }

    #[test]
    fn the_saved_window_is_scaled_and_capped() {
        let saved = Config { window: WindowSource::Saved, ..Config::default() };
        assert_eq!(launch(saved.clone()).cwnd, Bytes::new(250_000));
        assert_eq!(launch(Config { factor: 2.0, ..saved.clone() }).cwnd, Bytes::new(500_000));
        assert_eq!(launch(Config { max_window: 20, ..saved }).cwnd, Bytes::new(20_000));
    }

    #[test]
    fn what_nobody_knows_is_the_constant() {
        assert_eq!(launch(Config { window: WindowSource::Hint, ..Config::default() }).cwnd, Bytes::new(100_000));
    }

    #[test]
    fn with_pacing_it_takes_an_rtt() {
        // 100,000 bytes in 200 ms: 4 Mbit/s.
        let launch = launch(Config { pacing: true, ..Config::default() });
        assert_eq!((launch.pacing_rate, launch.burst), (Some(Rate::from_mbit(4)), None));
    }
}
