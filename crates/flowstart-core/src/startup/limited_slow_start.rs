//! Limited Slow-Start: slow start that adds a bounded number of segments per round trip once the window is large.
//!
//! Reference: RFC 3742, section 2. Up to `max_ssthresh` the window grows as in slow start. Beyond it an acknowledgement
//! adds only a K-th of a segment. K is the number of times that half of `max_ssthresh` fits into the window. So a round
//! trip adds about `max_ssthresh` / 2 instead of doubling a window of thousands of segments. Loss, a CE mark or
//! ssthresh end it as in slow start.
//!
//! Differences from the reference: the reference adds a segment, or a K-th of one, for each acknowledgement. Here a
//! K-th applies to what the host's slow start adds; this is the same if the host counts acknowledgements. Linux up to
//! 4.0 has it as a sysctl, off by default, and adds `max_ssthresh` / 2 a window without rounding K.
//!
//! Status: worked examples; no published numbers are reproduced.

use super::slow_start::up_to_ssthresh;
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog};
use crate::launch::Launch;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::Bytes;
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str = "slow start that adds at most max_ssthresh / 2 per RTT once the window exceeds max_ssthresh";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 3742";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "nothing; doubles up to max_ssthresh, then adds half of it every RTT; until loss, \
    a CE mark or ssthresh; congestion avoidance from there";

/// Parameters of Limited Slow-Start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// `max_ssthresh` in segments, 2 to 1000000. RFC 3742, section 2: 100.
    pub max_ssthresh: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { iw: None, max_ssthresh: 100 }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("max_ssthresh", self.max_ssthresh, 2..=1_000_000)
    }
}

/// State of Limited Slow-Start.
#[derive(Clone, Debug)]
pub struct LimitedSlowStart {
    config: Config,
    context: StartupContext,
}

impl LimitedSlowStart {
    /// Limited Slow-Start that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self { config, context }
    }

    fn grown(&self, cwnd: Bytes, ack: &Ack) -> Bytes {
        let added = self.context.slow_start_growth(cwnd, ack).saturating_sub(cwnd);
        let max_ssthresh = self.context.segment * u64::from(self.config.max_ssthresh);
        if cwnd <= max_ssthresh {
            return cwnd + added;
        }
        // K = int(cwnd / (0.5 max_ssthresh)); cwnd += int(MSS / K). K is 2 or more here.
        let k = cwnd.get() * 2 / max_ssthresh.get();
        cwnd + added / k
    }
}

impl Startup for LimitedSlowStart {
    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: nothing is known.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(self.context.with_initial_window(self.config.iw).initial_window)
    }

    // Probing: clocked by acknowledgements. Validation and Continuation as in slow start.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        let cwnd = if in_use { self.grown(window.cwnd, ack) } else { window.cwnd };
        up_to_ssthresh(cwnd, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ExitReason;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;
    use crate::time::Duration;

    fn after(increase: Increase, cwnd: u64, acked_bytes: u64) -> u64 {
        let scheme = LimitedSlowStart::new(Config::default(), context(increase));
        scheme.grown(Bytes::new(cwnd), &acked(Timestamp::ZERO, acked_bytes)).get()
    }

    #[test]
    fn an_acknowledgement_adds_a_segment_up_to_max_ssthresh_and_then_a_kth_of_one() {
        // Segments of 1000 bytes, max_ssthresh = 100,000 bytes.
        let after = |cwnd| after(Increase::Acknowledgements, cwnd, 1000);
        assert_eq!(after(99_000), 100_000);
        assert_eq!(after(100_000), 101_000, "up to max_ssthresh, inclusive");
        // K = int(100,001 / 50,000) = 2: 1000 / 2 = 500.
        assert_eq!(after(100_001), 100_501);
        // K = int(149,999 / 50,000) = 2, int(150,000 / 50,000) = 3: int(1000 / 3) = 333.
        assert_eq!((after(149_999), after(150_000)), (150_499, 150_333));
        // K = int(1,000,000 / 50,000) = 20: 50 bytes.
        assert_eq!(after(1_000_000), 1_000_050);
    }

    #[test]
    fn what_the_host_counts_is_divided() {
        // Two segments in one acknowledgement: 2000 / 4 at 200,000 bytes.
        assert_eq!(after(Increase::Bytes, 200_000, 2000), 200_500);
        assert_eq!(after(Increase::Bytes, 50_000, 2000), 52_000);
    }

    #[test]
    fn a_round_trip_adds_half_of_max_ssthresh() {
        let mut scheme = LimitedSlowStart::new(Config::default(), context(Increase::Acknowledgements));
        let rtt = RttEstimator::new(Duration::from_millis(100));
        let mut window = Window { cwnd: Bytes::new(1_000_000), ssthresh: Bytes::MAX };
        // 1000 acknowledgements of a segment: K = 20 and 50 bytes each.
        for _ in 0..1000 {
            let Step::Continue { cwnd } = scheme.on_ack(&acked(Timestamp::ZERO, 1000), window, true, &rtt) else {
                panic!("no reason to leave startup");
            };
            window.cwnd = cwnd;
        }
        assert_eq!(window.cwnd, Bytes::new(1_050_000));
    }

    #[test]
    fn it_ends_at_ssthresh_and_an_unused_window_does_not_grow() {
        let mut scheme = LimitedSlowStart::new(Config::default(), context(Increase::Bytes));
        let rtt = RttEstimator::new(Duration::from_millis(100));
        let ack = acked(Timestamp::ZERO, 1000);
        let window = Window { cwnd: Bytes::new(199_900), ssthresh: Bytes::new(200_000) };
        assert_eq!(scheme.on_ack(&ack, window, false, &rtt), Step::Continue { cwnd: window.cwnd });
        let Step::Exit(exit) = scheme.on_ack(&ack, window, true, &rtt) else {
            panic!("199,900 + 1000 / 3 exceed 200,000");
        };
        assert_eq!((exit.cwnd, exit.reason), (Bytes::new(200_000), ExitReason::Ssthresh));
    }

    #[test]
    fn a_threshold_of_less_than_two_segments_is_refused() {
        let error = Config { max_ssthresh: 1, ..Config::default() }.validate().unwrap_err();
        assert_eq!((error.field, error.allowed.as_str()), ("max_ssthresh", "2 to 1000000"));
    }
}
