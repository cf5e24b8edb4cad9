//! More-Start: launches at a given rate, without the routers' consent.
//!
//! Reference: Scharf, "Quick-Start, Jump-Start, and Other Fast Startup Approaches", 2008. The initial rate comes from
//! the application, the local interface, the path's past or a capacity oracle. The window of one RTT at this rate is
//! paced. Validation and continuation are those of Jump-Start.
//!
//! Differences from the reference: the reference leaves open what a missing rate means; here the flow then uses slow
//! start. `factor` makes wrong rates for experiments, and `pacing = false` lets the window leave as a burst.
//!
//! Status: worked examples; no published numbers are reproduced.

use super::launched_window::{Flight, Launched, LaunchesWindow};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "a rate asked from application, interface, past or oracle, paced for one RTT";
/// The document that defines it.
pub const REFERENCE: &str = "Scharf, Quick-Start, Jump-Start, and Other Fast Startup Approaches (2008)";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "a rate from application, client, oracle, path store or interface; one RTT at this rate; \
    retransmissions R of D; slow start, or cwnd (D - R) / 2";

/// Where the rate comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RateSource {
    /// The first that is known: application, client's hint, oracle, earlier connection. The interface is left out: its
    /// rate is always known and rarely that of the bottleneck.
    #[default]
    Any,
    /// The application.
    Application,
    /// The client.
    Hint,
    /// A capacity oracle.
    Oracle,
    /// An earlier connection.
    Saved,
    /// The sender's own interface.
    Interface,
}

/// Parameters of More-Start.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// The application's request, if the application itself makes none. Default: none.
    pub rate: Option<Rate>,
    /// Where the rate comes from. Default: the first that is known.
    pub source: RateSource,
    /// Factor on the rate, for experiments with wrong rates. Default 1.
    pub factor: f64,
    /// Whether the window is paced over the RTT. Reference: yes.
    pub pacing: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { rate: None, source: RateSource::Any, factor: 1.0, pacing: true }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("factor", self.factor, 0.001..=1000.0)?;
        let range = Rate::from_bits_per_sec(1000)..=Rate::from_mbit(10_000_000);
        self.rate.map_or(Ok(()), |rate| ConfigError::unless_in("rate", rate, range))
    }

    /// The rate, if it is known.
    fn answer(&self, path: &PathKnowledge) -> Option<Rate> {
        let application = self.rate.or(path.requested_rate);
        let hint = path.hint.map(|hint| hint.bandwidth);
        let saved = path.saved.and_then(|saved| saved.rate());
        let answer = match self.source {
            RateSource::Any => application.or(hint).or(path.oracle_rate).or(saved),
            RateSource::Application => application,
            RateSource::Hint => hint,
            RateSource::Oracle => path.oracle_rate,
            RateSource::Saved => saved,
            RateSource::Interface => path.interface_rate,
        };
        answer.map(|rate| rate.scale(self.factor))
    }
}

/// State of More-Start.
pub type MoreStart = Launched<Config>;

// Validation and Continuation are those of every launched window: Jump-Start's.
impl LaunchesWindow for Config {
    fn needs(&self) -> Needs {
        if self.pacing { Needs::OWN_RATE } else { Needs::BURST }
    }

    // Sensing: a rate from one of the sources; cwnd = rate x RTT. Probing: at this rate.
    fn flight(&self, path: &PathKnowledge, _initial_window: Bytes) -> Option<Flight> {
        let (rate, span) = (self.answer(path)?, path.handshake_rtt.or(path.min_rtt())?);
        Some(Flight { window: rate.amount_in(span), span, pacing: self.pacing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::DecisionLog;
    use crate::launch::Launch;
    use crate::path::{AccessTechnology, Hint, SavedPath};
    use crate::startup::slow_start::tests::context;
    use crate::startup::{Increase, Startup};
    use crate::time::{Duration, Timestamp};

    fn path() -> PathKnowledge {
        PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(200)),
            saved: Some(SavedPath {
                rtt: Duration::from_millis(100),
                cwnd: Bytes::new(100_000),
                age: Duration::from_millis(1),
            }),
            hint: Some(Hint { bandwidth: Rate::from_mbit(20), technology: AccessTechnology::Lte }),
            requested_rate: None,
            interface_rate: Some(Rate::from_mbit(1000)),
            oracle_rate: Some(Rate::from_mbit(10)),
            ..PathKnowledge::default()
        }
    }

    fn launch(config: Config, path: &PathKnowledge) -> Launch {
        MoreStart::new(config, context(Increase::Bytes)).launch(Timestamp::ZERO, path, &mut DecisionLog::default())
    }

    #[test]
    fn the_window_is_an_rtt_at_the_rate_that_the_source_names() {
        let asked = |source| launch(Config { source, ..Config::default() }, &path()).pacing_rate;
        assert_eq!(asked(RateSource::Oracle), Some(Rate::from_mbit(10)));
        assert_eq!(asked(RateSource::Interface), Some(Rate::from_mbit(1000)));
        // 100,000 bytes in 100 ms.
        assert_eq!(asked(RateSource::Saved), Some(Rate::from_mbit(8)));
        assert_eq!(asked(RateSource::Any), Some(Rate::from_mbit(20)));
        assert_eq!(asked(RateSource::Application), None, "the application says nothing: slow start");
        // 10 Mbit/s x 200 ms = 250,000 bytes.
        let oracle = Config { source: RateSource::Oracle, ..Config::default() };
        assert_eq!(launch(oracle, &path()).cwnd, Bytes::new(250_000));
    }

    #[test]
    fn the_request_wins_and_the_factor_scales_it() {
        let config = Config { rate: Some(Rate::from_mbit(4)), factor: 1.5, ..Config::default() };
        // 6 Mbit/s x 200 ms = 150,000 bytes.
        assert_eq!(launch(config, &path()).cwnd, Bytes::new(150_000));
    }

    #[test]
    fn absurd_requests_are_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        assert_eq!(refused(Config { factor: f64::NAN, ..Config::default() }), Err("factor"));
        assert_eq!(refused(Config { rate: Some(Rate::ZERO), ..Config::default() }), Err("rate"));
    }
}
