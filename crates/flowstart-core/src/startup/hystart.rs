//! HyStart by delay: slow start that ends when the RTT of a round has grown, before the queue overflows.
//!
//! Reference: Ha, Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55 (2011), section 4.2 (delay
//! increase), with the constants of Linux and Google's QUIC ("hybrid slow start"). The smallest of the first RTT samples
//! of a round is compared with the connection's smallest RTT. When it is larger by an eighth of that RTT, bounded to
//! 4..16 ms, slow start ends with the window it has. Loss ends it as in plain slow start.
//!
//! Differences from the reference: only the delay test, no ACK train; as in Google's QUIC.
//!
//! Status: part of `blitzstart-table1`.

use alloc::format;

use serde::{Deserialize, Serialize};

use super::slow_start;
use super::{Continuation, Launch, Startup, StartupContext, Step};
use crate::avoidance::Window;
use crate::event::{Ack, DecisionLog, ExitReason, Position, Sent};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};

/// One line for listings.
pub const SUMMARY: &str = "slow start that ends when the RTT of a round has grown by an eighth";
/// The document that defines it.
pub const REFERENCE: &str = "Ha, Rhee, Computer Networks 55 (2011), section 4.2; constants of Google's QUIC";

/// Parameters of HyStart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// RTT samples at the start of a round that are looked at, 1 to 1000. Linux and Google's QUIC: 8.
    pub samples: u32,
    /// Smallest growth of the RTT that counts, at most `max_threshold`. Linux and Google's QUIC: 4 ms.
    pub min_threshold: Duration,
    /// Growth of the RTT that always counts, up to 100 s. Linux and Google's QUIC: 16 ms.
    pub max_threshold: Duration,
    /// Smallest window in segments that may be an exit. Linux and Google's QUIC: 16.
    pub low_window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            samples: 8,
            min_threshold: Duration::from_millis(4),
            max_threshold: Duration::from_millis(16),
            low_window: 16,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        slow_start::Config { iw: self.iw, ..slow_start::Config::default() }.validate()?;
        ConfigError::unless_in("samples", self.samples, 1..=1000)?;
        ConfigError::unless_in("max_threshold", self.max_threshold, Duration::ZERO..=Duration::from_millis(100_000))?;
        if self.min_threshold > self.max_threshold {
            let allowed = format!("up to max_threshold, {}", self.max_threshold);
            return Err(ConfigError::new("min_threshold", self.min_threshold, allowed));
        }
        Ok(())
    }
}

/// State of HyStart.
#[derive(Clone, Debug)]
pub struct Hystart {
    config: Config,
    context: StartupContext,
    highest_sent: Position,
    /// The round ends when this position is acknowledged; `None` between rounds.
    round_end: Option<Position>,
    /// Samples taken in this round.
    sample_count: u32,
    /// Smallest RTT of this round's first samples (currRTT).
    round_min: Duration,
    /// The RTT has grown.
    found: bool,
}

impl Hystart {
    /// HyStart that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self {
            config,
            context,
            highest_sent: 0,
            round_end: None,
            sample_count: 0,
            round_min: Duration::MAX,
            found: false,
        }
    }

    /// Takes a round's sample; afterwards `found` says whether the RTT has grown.
    fn sample(&mut self, ack: &Ack, sample: Duration, min_rtt: Duration) {
        if self.round_end.is_none() {
            self.round_end = Some(self.highest_sent);
            self.sample_count = 0;
            self.round_min = Duration::MAX;
        }
        self.sample_count += 1;
        if self.sample_count <= self.config.samples {
            self.round_min = self.round_min.min(sample);
        }
        if self.sample_count == self.config.samples {
            let threshold = (min_rtt / 8).max(self.config.min_threshold).min(self.config.max_threshold);
            self.found |= self.round_min > min_rtt + threshold;
        }
        if self.round_end.is_some_and(|end| ack.position >= end) {
            self.round_end = None;
        }
    }
}

impl Startup for Hystart {
    // Sensing: nothing is known.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let cwnd =
            slow_start::Config { iw: self.config.iw, ..slow_start::Config::default() }.initial_window(&self.context);
        Launch::window(cwnd)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.highest_sent = self.highest_sent.max(sent.position);
    }

    // Probing as slow start; Validation by the RTT of each round.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        if let (Some(sample), Some(min_rtt)) = (ack.rtt, rtt.min()) {
            self.sample(ack, sample, min_rtt);
        }
        // Continuation: the window as it is.
        if self.found && window.cwnd >= self.context.segment * u64::from(self.config.low_window) {
            return Step::Exit(Continuation { cwnd: window.cwnd, ssthresh: window.cwnd, reason: ExitReason::Delay });
        }
        let cwnd = if in_use { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd };
        if cwnd >= window.ssthresh {
            let exit = window.ssthresh.max(window.cwnd);
            return Step::Exit(Continuation { cwnd: exit, ssthresh: window.ssthresh, reason: ExitReason::Ssthresh });
        }
        Step::Continue { cwnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::cubic::tests::acked;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::units::Bytes;

    /// Feeds one round of `samples` (ms) on a path with a smallest RTT of 40 ms; returns the exit, if any.
    fn round(samples: &[u64]) -> Option<ExitReason> {
        let mut scheme = Hystart::new(Config::default(), context(Increase::Bytes));
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(40), Duration::ZERO);
        scheme.on_sent(&Sent { now: Timestamp::ZERO, bytes: Bytes::new(1), in_flight: Bytes::new(1), position: 100 });
        let mut window = Window { cwnd: Bytes::new(20_000), ssthresh: Bytes::MAX };
        for (index, &sample) in samples.iter().enumerate() {
            let mut ack = acked(Timestamp::ZERO, 1000);
            ack.position = index as u64;
            ack.rtt = Some(Duration::from_millis(sample));
            match scheme.on_ack(&ack, window, true, &rtt) {
                Step::Continue { cwnd } => window.cwnd = cwnd,
                Step::Exit(exit) => return Some(exit.reason),
            }
        }
        None
    }

    #[test]
    fn a_round_that_is_slower_by_an_eighth_ends_slow_start() {
        // 40 ms / 8 = 5 ms, inside 4..16 ms: the eight samples must all exceed 45 ms.
        assert_eq!(round(&[46; 8]), Some(ExitReason::Delay));
        assert_eq!(round(&[45; 8]), None);
    }

    #[test]
    fn one_fast_sample_or_too_few_samples_keep_it_going() {
        assert_eq!(round(&[60, 60, 60, 41, 60, 60, 60, 60]), None);
        assert_eq!(round(&[60; 7]), None);
    }

    #[test]
    fn rounds_without_samples_and_crossed_thresholds_are_refused() {
        assert!(Config { samples: 0, ..Config::default() }.validate().is_err());
        assert!(Config { iw: Some(0), ..Config::default() }.validate().is_err());
        let crossed = Config { min_threshold: Duration::from_millis(17), ..Config::default() };
        assert_eq!(crossed.validate().map_err(|error| error.field), Err("min_threshold"));
    }

    #[test]
    fn samples_after_the_eighth_do_not_count() {
        assert_eq!(round(&[41, 41, 41, 41, 41, 41, 41, 41, 90, 90, 90]), None);
    }
}
