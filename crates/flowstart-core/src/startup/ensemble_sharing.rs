//! Ensemble sharing: a connection starts with a share of what the host's other connections to the same peer have.
//!
//! Reference: RFC 9040, section 7 (ensemble sharing); L. Eggert, J. Heidemann, J. Touch, "Effects of ensemble-TCP" (ACM
//! CCR 30(1), 2000). The share, which the others give up ([`Ensemble`](crate::ensemble::Ensemble)), leaves paced over
//! their RTT. If one of them has left slow start, congestion avoidance begins at once, because the window of the path
//! is known. Otherwise, and without other connections, slow start goes on.
//!
//! Differences from the references: they let the share leave at once, or leave the question open. Here it is paced,
//! since nothing clocks it. They take the average of ssthresh; here it is the share.
//!
//! Status: worked examples, and `scenarios/sharing.toml`; not validated against published numbers.

use super::slow_start::{self, SlowStart};
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason};
use crate::launch::{Continuation, Launch};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "starts with a share of the window of the host's other connections to the peer, who give it up";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 9040, section 7; Eggert, Heidemann, Touch (ACM CCR 2000)";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "the window and the RTT of concurrent connections; their share over an RTT; none beyond that of the \
    others; congestion avoidance, or slow start as long as none of them has left it";

/// Parameters of ensemble sharing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments of a connection that has no company, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// Smallest window in segments with which a newcomer starts, 1 to 100000. What exceeds its share is not taken from
    /// the others. Default: its share; with 10 it never starts slower than without company (RFC 6928).
    pub least: Option<u32>,
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        self.least.map_or(Ok(()), |least| ConfigError::unless_in("least", least, 1..=100_000))
    }
}

/// State of ensemble sharing.
#[derive(Clone, Debug)]
pub struct EnsembleSharing {
    least: Bytes,
    slow_start: SlowStart,
}

impl EnsembleSharing {
    /// Ensemble sharing that has not launched yet.
    pub fn new(Config { iw, least }: Config, context: StartupContext) -> Self {
        let slow_start = slow_start::Config { iw, ..slow_start::Config::default() };
        let least = context.segment * least.map_or(1, u64::from);
        Self { least, slow_start: SlowStart::new(slow_start, context) }
    }
}

impl Startup for EnsembleSharing {
    fn needs(&self) -> Needs {
        Needs::SHARED_WINDOW
    }

    // Sensing: what concurrent connections have.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch {
        let Some(concurrent) = path.concurrent else { return self.slow_start.launch(now, path, log) };
        let Window { cwnd, ssthresh } = concurrent.window;
        let cwnd = cwnd.max(self.least);
        let rtt = path.handshake_rtt.map_or(concurrent.rtt, |handshake| handshake.min(concurrent.rtt));
        let continuation =
            (ssthresh < Bytes::MAX).then_some(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Launch });
        Launch { pacing_rate: Rate::from_transfer(cwnd, rtt), continuation, ..Launch::window(cwnd) }
    }

    // Probing, as long as none of the others has left slow start.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.slow_start.on_ack(ack, window, in_use, rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Concurrent;
    use crate::startup::Increase;
    use crate::time::Duration;

    fn launch(concurrent: Option<Concurrent>, handshake_ms: u64) -> Launch {
        launch_with(Config::default(), concurrent, handshake_ms)
    }

    fn launch_with(config: Config, concurrent: Option<Concurrent>, handshake_ms: u64) -> Launch {
        let context = slow_start::tests::context(Increase::Bytes);
        let mut scheme = EnsembleSharing::new(config, context);
        let handshake_rtt = Some(Duration::from_millis(handshake_ms));
        let path = PathKnowledge { handshake_rtt, concurrent, ..PathKnowledge::default() };
        scheme.launch(Timestamp::ZERO, &path, &mut DecisionLog::default())
    }

    fn others(ssthresh: Bytes) -> Option<Concurrent> {
        let window = Window { cwnd: Bytes::new(75_000), ssthresh };
        Some(Concurrent { rtt: Duration::from_millis(60), window })
    }

    #[test]
    fn a_share_leaves_over_the_rtt_of_the_others() {
        // 75,000 bytes in 60 ms are 10 Mbit/s. The handshake met a queue: its 80 ms are not the path's RTT.
        let launched = launch(others(Bytes::MAX), 80);
        assert_eq!((launched.cwnd, launched.pacing_rate), (Bytes::new(75_000), Some(Rate::from_mbit(10))));
        assert_eq!(launched.continuation, None);
    }

    #[test]
    fn beside_one_that_has_left_slow_start_congestion_avoidance_begins_at_once() {
        let cwnd = Bytes::new(75_000);
        let expected = Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Launch };
        assert_eq!(launch(others(Bytes::new(90_000)), 60).continuation, Some(expected));
    }

    #[test]
    fn a_newcomer_may_start_with_more_than_its_share() {
        let segment = slow_start::tests::context(Increase::Bytes).segment;
        let with = |least| launch_with(Config { least: Some(least), iw: None }, others(Bytes::MAX), 60).cwnd;
        assert_eq!((with(10), with(1000)), (Bytes::new(75_000), segment * 1000));
        assert!(Config { least: Some(0), iw: None }.validate().is_err());
    }

    #[test]
    fn without_company_it_is_slow_start() {
        let context = slow_start::tests::context(Increase::Bytes);
        let mut alone = SlowStart::new(slow_start::Config::default(), context);
        let path = PathKnowledge::default();
        let expected = alone.launch(Timestamp::ZERO, &path, &mut DecisionLog::default());
        assert_eq!(launch(None, 60), expected);
    }
}
