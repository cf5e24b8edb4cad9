//! Slow start: from an initial window, doubling every round trip until the first sign of congestion.
//!
//! Reference: RFC 5681, section 3.1; RFC 6928 (initial window); RFC 3465 (appropriate byte counting); RFC 9002, section
//! 7.3.1. The flow launches with the initial window. Each acknowledgement adds what it acknowledges, so the window
//! doubles every round trip. Loss, a CE mark or reaching ssthresh ends it.
//!
//! Differences from the references: each counts an acknowledgement in its own way. RFC 5681 allows at most one segment
//! for each (`abc_limit=1`), RFC 3465 two (`abc_limit=2`); by default all that is acknowledged counts, without limit,
//! as in RFC 9002 and Linux. The limit holds for the initial slow start; in those after a timeout or an idle time all
//! that is acknowledged counts, where both RFCs allow one segment. The window does not grow while the sender leaves it
//! unused, by the host's rule. Whether bytes, packets or acknowledgements count and when the receiver acknowledges
//! belong to the host. With `spread` the initial window is paced over the handshake's RTT ("initial spreading"); the
//! references let it leave at once or leave the question open.
//!
//! Status: validated by `ns2-single-flow` and `ns3-startup`.

use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason};
use crate::launch::{Continuation, Launch};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str = "initial window, then doubling every RTT until loss, a CE mark or ssthresh";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 5681, section 3.1; RFC 6928; RFC 9002, section 7.3.1";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str =
    "nothing; doubles every RTT; until loss, a CE mark or ssthresh; congestion avoidance from there";

/// Parameters of slow start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's (RFC 6928: 10).
    pub iw: Option<u32>,
    /// L: an acknowledgement adds at most this many segments. RFC 3465, section 2.2: 1 or 2; RFC 9002 has no limit.
    /// Default: no limit.
    pub abc_limit: Option<u32>,
    /// Whether the initial window is spread over the handshake's RTT. Default: no; the host's rule.
    pub spread: bool,
}

impl Config {
    /// Whether each round doubles the window, and the host decides how a window is sent: what closed forms count.
    pub fn is_classic(&self) -> bool {
        self.abc_limit.is_none() && !self.spread
    }

    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        self.abc_limit.map_or(Ok(()), |limit| ConfigError::unless_in("abc_limit", limit, 1..=1000))
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

    /// cwnd += min(N, L * SMSS) (RFC 3465, equation 1).
    fn grown(&self, cwnd: Bytes, ack: &Ack) -> Bytes {
        let grown = self.context.slow_start_growth(cwnd, ack);
        let limit = self.config.abc_limit.map_or(Bytes::MAX, |limit| self.context.segment * u64::from(limit));
        grown.min(cwnd + limit)
    }
}

impl Startup for SlowStart {
    // Sensing: nothing is known, so the initial window is a constant.
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let cwnd = self.context.with_initial_window(self.config.iw).initial_window;
        let spread_over = path.handshake_rtt.filter(|_| self.config.spread);
        Launch { pacing_rate: spread_over.and_then(|rtt| Rate::from_transfer(cwnd, rtt)), ..Launch::window(cwnd) }
    }

    // Probing: clocked by acknowledgements. Validation: the window is confirmed by being acknowledged without loss.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        let cwnd = if in_use { self.grown(window.cwnd, ack) } else { window.cwnd };
        // Continuation: exactly at ssthresh.
        up_to_ssthresh(cwnd, window)
    }
}

/// Slow start goes on with a window that has grown to `cwnd`, and ends at ssthresh.
pub(super) fn up_to_ssthresh(cwnd: Bytes, window: Window) -> Step {
    if cwnd < window.ssthresh {
        return Step::Continue { cwnd };
    }
    let exit = window.ssthresh.max(window.cwnd);
    Step::Exit(Continuation { cwnd: exit, ssthresh: window.ssthresh, reason: ExitReason::Ssthresh })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::startup::Increase;
    use crate::test_support::acked;
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
        let with = |iw| Config { iw: Some(iw), ..Config::default() };
        assert!(with(0).validate().is_err());
        assert!(with(100_001).validate().is_err());
        assert_eq!(with(1).validate(), Ok(()));
        assert!(Config { abc_limit: Some(0), ..Config::default() }.validate().is_err());
    }

    #[test]
    fn byte_counting_has_a_limit() {
        // RFC 3465: an acknowledgement of 5 segments adds 2 with L = 2, and 1 with L = 1.
        let grown = |limit| {
            let config = Config { abc_limit: limit, ..Config::default() };
            SlowStart::new(config, context(Increase::Bytes)).grown(Bytes::new(10_000), &acked(Timestamp::ZERO, 5000))
        };
        assert_eq!(grown(Some(2)), Bytes::new(12_000));
        assert_eq!(grown(Some(1)), Bytes::new(11_000));
        assert_eq!(grown(None), Bytes::new(15_000));
    }

    #[test]
    fn the_initial_window_can_be_spread_over_the_handshake_rtt() {
        let mut scheme = SlowStart::new(Config { spread: true, ..Config::default() }, context(Increase::Bytes));
        let path = PathKnowledge { handshake_rtt: Some(Duration::from_millis(100)), ..PathKnowledge::default() };
        let launch = scheme.launch(Timestamp::ZERO, &path, &mut DecisionLog::default());
        // 10,000 bytes in 100 ms.
        assert_eq!(launch.pacing_rate, Some(Rate::from_bits_per_sec(800_000)));
        let launch = scheme.launch(Timestamp::ZERO, &PathKnowledge::default(), &mut DecisionLog::default());
        assert_eq!(launch.pacing_rate, None, "without an RTT there is nothing to spread over");
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
