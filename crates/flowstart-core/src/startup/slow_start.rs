//! Slow start: from an initial window, doubling every round trip until the first sign of congestion.
//!
//! Reference: RFC 5681, section 3.1; RFC 6928 (initial window); RFC 9002, section 7.3.1.
//! The flow launches with the initial window. Each acknowledgement adds what it acknowledges, so the window doubles every
//! round trip. Loss, a CE mark or reaching ssthresh ends it.
//!
//! Differences from the reference: the window does not grow while the sender leaves it unused, by the host's rule.
//!
//! Status: validated by `ns2-single-flow` and `ns3-startup`.

use serde::{Deserialize, Serialize};

use super::{Continuation, Launch, Startup, StartupContext, Step};
use crate::avoidance::Window;
use crate::event::{Ack, DecisionLog, ExitReason};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "initial window, then doubling every RTT until loss, a CE mark or ssthresh";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 5681, section 3.1; RFC 6928; RFC 9002, section 7.3.1";

/// Parameters of slow start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's (RFC 6928: 10).
    pub iw: Option<u32>,
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.iw.map_or(Ok(()), |iw| ConfigError::unless_in("iw", iw, 1..=100_000))
    }

    /// The initial window in bytes.
    pub(crate) fn initial_window(&self, context: &StartupContext) -> Bytes {
        self.iw.map_or(context.initial_window, |segments| context.segment * u64::from(segments))
    }
}

/// State of slow start.
#[derive(Clone, Debug)]
pub struct SlowStart {
    config: Config,
    context: StartupContext,
}

impl SlowStart {
    /// Slow start that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self { config, context }
    }
}

impl Startup for SlowStart {
    // Sensing: nothing is known, so the initial window is a constant.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(self.config.initial_window(&self.context))
    }

    // Probing: clocked by acknowledgements. Validation: the window is confirmed by being acknowledged without loss.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        let cwnd = if in_use { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd };
        if cwnd >= window.ssthresh {
            // Continuation: exactly at ssthresh.
            let exit = window.ssthresh.max(window.cwnd);
            return Step::Exit(Continuation { cwnd: exit, ssthresh: window.ssthresh, reason: ExitReason::Ssthresh });
        }
        Step::Continue { cwnd }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::avoidance::cubic::tests::acked;
    use crate::startup::Increase;
    use crate::time::Duration;

    pub(crate) fn context(increase: Increase) -> StartupContext {
        StartupContext { segment: Bytes::new(1000), initial_window: Bytes::new(10_000), increase, paced: false }
    }

    fn grow(increase: Increase, in_use: bool) -> Bytes {
        let mut scheme = SlowStart::new(Config::default(), context(increase));
        let launch = scheme.launch(Timestamp::ZERO, &PathKnowledge::default(), &mut DecisionLog::default());
        assert_eq!(launch.cwnd, Bytes::new(10_000));
        let window = Window { cwnd: launch.cwnd, ssthresh: Bytes::MAX };
        let mut ack = acked(Timestamp::ZERO, 1600);
        ack.packets = 2;
        let rtt = RttEstimator::new(Duration::from_millis(100));
        match scheme.on_ack(&ack, window, in_use, &rtt) {
            Step::Continue { cwnd } => cwnd,
            Step::Exit(_) => panic!("no reason to leave slow start"),
        }
    }

    #[test]
    fn an_acknowledgement_of_two_packets_counts_as_the_increase_says() {
        assert_eq!(grow(Increase::Bytes, true), Bytes::new(11_600));
        assert_eq!(grow(Increase::Packets, true), Bytes::new(12_000));
        assert_eq!(grow(Increase::Acknowledgements, true), Bytes::new(11_000));
    }

    #[test]
    fn a_window_without_a_segment_is_refused() {
        assert!(Config { iw: Some(0) }.validate().is_err());
        assert!(Config { iw: Some(100_001) }.validate().is_err());
        assert_eq!(Config { iw: Some(1) }.validate(), Ok(()));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        assert_eq!(grow(Increase::Bytes, false), Bytes::new(10_000));
    }

    #[test]
    fn it_ends_exactly_at_ssthresh() {
        let mut scheme = SlowStart::new(Config::default(), context(Increase::Bytes));
        let window = Window { cwnd: Bytes::new(19_500), ssthresh: Bytes::new(20_000) };
        let rtt = RttEstimator::new(Duration::from_millis(100));
        let Step::Exit(exit) = scheme.on_ack(&acked(Timestamp::ZERO, 1000), window, true, &rtt) else {
            panic!("19.5 + 1 segments exceed the threshold of 20");
        };
        assert_eq!((exit.cwnd, exit.reason), (Bytes::new(20_000), ExitReason::Ssthresh));
    }
}
