//! Halfback: a paced start, and a second transmission of the flow's end before any loss is known.
//!
//! Reference: Li, Dong, Godfrey, "Halfback: Running Short Flows Quickly and Safely", `CoNEXT` 2015. A short flow is
//! paced over its first RTT as in Jump-Start. Once all its data has left, each acknowledgement sends one segment again,
//! from the end of the flow towards the front ("reverse-ordered proactive retransmission"), until the walk meets the
//! acknowledgements. So about half of a loss-free flow is sent twice, and a lost tail is repaired without a timeout.
//!
//! Differences from the reference: `threshold` limits the launch. The rest of a longer flow follows in slow start, and
//! a flow that fits the initial window has no launch. The response to losses is Jump-Start's; the reference leaves it
//! to TCP. Without pacing the window is a burst.
//!
//! Status: worked examples, and the transports' tests of the order in which packets leave; no published numbers are
//! reproduced.

use super::launched_window::{Flight, Launched, LaunchesWindow, all_that_waits};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "paced start, then one proactive retransmission per ACK from the end of the flow";
/// The document that defines it.
pub const REFERENCE: &str = "Li, Dong, Godfrey, Halfback, CoNEXT 2015";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "queued data up to a threshold; all of it over the first RTT; a second copy from the end of the flow; \
    slow start, or cwnd (D - R) / 2";

/// Parameters of Halfback.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Most bytes that are launched. Li et al. (2015) call flows up to 141 KB short: default 141 KB.
    pub threshold: Bytes,
    /// Whether the window is paced over the RTT. Reference: yes.
    pub pacing: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { threshold: Bytes::new(141_000), pacing: true }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("threshold", self.threshold, Bytes::new(1000)..=Bytes::new(1_000_000_000_000))
    }
}

/// State of Halfback.
pub type Halfback = Launched<Config>;

// Continuation is that of every launched window: Jump-Start's.
impl LaunchesWindow for Config {
    fn needs(&self) -> Needs {
        Needs::PROACTIVE_RETRANSMISSION
    }

    // Sensing: D = min(queued data, receive window, threshold). Probing: over the RTT of the handshake.
    fn flight(&self, path: &PathKnowledge, initial_window: Bytes) -> Option<Flight> {
        all_that_waits(path, initial_window, Some(self.threshold), self.pacing)
    }

    // Validation: once all data has left, a second copy of possibly lost data, without waiting for evidence.
    fn sends_again(&self, waiting: Option<Bytes>) -> bool {
        waiting == Some(Bytes::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::DecisionLog;
    use crate::launch::Launch;
    use crate::startup::jump_start::tests::send;
    use crate::startup::slow_start::tests::context;
    use crate::startup::{Increase, Startup};
    use crate::test_support::acked;
    use crate::time::{Duration, Timestamp};
    use crate::units::Rate;

    fn launched(waiting: u64) -> (Halfback, Launch) {
        let mut scheme = Halfback::new(Config::default(), context(Increase::Bytes));
        let path = PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(100)),
            bytes_waiting: Some(Bytes::new(waiting)),
            ..PathKnowledge::default()
        };
        let launch = scheme.launch(Timestamp::ZERO, &path, &mut DecisionLog::default());
        (scheme, launch)
    }

    #[test]
    fn a_short_flow_leaves_in_one_rtt_and_a_long_one_as_far_as_the_threshold() {
        // 50,000 bytes in 100 ms: 4 Mbit/s.
        let (_, launch) = launched(50_000);
        assert_eq!((launch.cwnd, launch.pacing_rate), (Bytes::new(50_000), Some(Rate::from_mbit(4))));
        assert_eq!(launched(2_000_000).1.cwnd, Bytes::new(141_000));
    }

    #[test]
    fn a_segment_per_acknowledgement_once_all_data_has_left() {
        let (mut scheme, _) = launched(50_000);
        let ack = acked(Timestamp::ZERO, 1000);
        send(&mut scheme, 49);
        assert_eq!(scheme.proactive_retransmit(&ack), Bytes::ZERO, "one segment has not left");
        send(&mut scheme, 1);
        assert_eq!(scheme.proactive_retransmit(&ack), Bytes::new(1000));
    }
}
