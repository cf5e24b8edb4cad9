//! Halfback: a paced start, and the end of the flow sent twice before anybody knows of a loss.
//!
//! Reference: Li, Dong, Godfrey, "Halfback: Running Short Flows Quickly and Safely", `CoNEXT` 2015. A short flow is paced
//! over its first RTT as in Jump-Start. Once all its data has left, each acknowledgement sends one segment again, from the
//! end of the flow towards the front ("reverse-ordered proactive retransmission"), until the walk meets the
//! acknowledgements. About half of a loss-free flow is sent twice, and a tail that was lost is repaired without a timeout.
//!
//! Differences from the reference: what is launched is limited to `threshold`; the rest of a longer flow follows in slow
//! start, and a flow that fits the initial window is not launched at all. The answer to losses is Jump-Start's; the reference leaves it to TCP. Without pacing the window is a burst.
//!
//! Status: worked examples, and the transports' tests of the order in which packets leave; no published numbers are
//! reproduced yet.

use serde::{Deserialize, Serialize};

use super::launched_window::LaunchedWindow;
use super::{Launch, Startup, StartupContext, Step};
use crate::avoidance::Window;
use crate::event::{Ack, DecisionLog, Loss, Sent};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "paced start, then one proactive retransmission per ACK from the end of the flow";
/// The document that defines it.
pub const REFERENCE: &str = "Li, Dong, Godfrey, Halfback, CoNEXT 2015";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "queued data up to a threshold; all of it over the first RTT; a second copy from the end of the flow; \
    slow start, or cwnd (D - R) / 2";

/// Parameters of Halfback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
#[derive(Clone, Debug)]
pub struct Halfback {
    config: Config,
    context: StartupContext,
    launched: LaunchedWindow,
    /// Bytes of the flow that have not left yet; `None`: nobody knows how many there are.
    waiting: Option<Bytes>,
}

impl Halfback {
    /// Halfback that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self { config, context, launched: LaunchedWindow::new(context), waiting: None }
    }
}

impl Startup for Halfback {
    // Sensing: D = min(queued data, receive window, threshold). Probing: over the RTT of the handshake.
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        self.waiting = path.bytes_waiting;
        let limits = [path.bytes_waiting, path.receive_window, Some(self.config.threshold)];
        match (limits.into_iter().flatten().min(), path.handshake_rtt.or(path.min_rtt())) {
            (Some(window), Some(rtt)) if window > self.context.initial_window => {
                self.launched.launch(window, rtt, self.config.pacing)
            }
            _ => Launch::window(self.context.initial_window),
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.launched.on_sent(sent);
        self.waiting = self.waiting.map(|waiting| waiting.saturating_sub(sent.bytes));
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.launched.pacing_rate()
    }

    // Validation: a second copy of what may be lost, without waiting for the evidence.
    fn proactive_retransmit(&mut self, _ack: &Ack) -> Bytes {
        if self.waiting == Some(Bytes::ZERO) { self.context.segment } else { Bytes::ZERO }
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        self.launched.on_ack(ack, window, in_use)
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.launched.on_lost(loss);
    }

    // Continuation: slow start, or half of what arrived.
    fn on_congestion(&mut self, _loss: &Loss, _window: Window, reduced: Bytes) -> Step {
        self.launched.on_congestion(reduced)
    }

    fn on_recovered(&mut self, _now: Timestamp, _window: Window) -> Step {
        self.launched.on_recovered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::cubic::tests::acked;
    use crate::startup::Increase;
    use crate::startup::jump_start::tests::send;
    use crate::startup::slow_start::tests::context;
    use crate::time::Duration;

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
