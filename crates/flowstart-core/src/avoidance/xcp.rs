//! XCP: the window follows the feedback of the path's routers.
//!
//! Reference: Katabi, Handley, Rohrs, SIGCOMM 2002, section 3.3; draft-falk-xcp-spec-03, the sender's rule. With each
//! acknowledgement `cwnd = max(cwnd + feedback * RTT, one segment)`. The response to a loss is Reno's, because the
//! bottleneck may give no feedback. The header and the routers are in [`crate::xcp`].
//!
//! XCP is integrated and has no startup of its own. It continues from a scheme's launch, which leaves at its rate if it
//! has one; with slow start this is the initial window. Afterwards acknowledgements clock the packets, as in ns-2, and
//! a pacing host uses its own rule. Startup counts as over when the first feedback arrives.
//!
//! Differences: a fraction of a byte of feedback is lost with each acknowledgement. The window does not grow without
//! feedback: on a path without XCP routers it stays or shrinks.
//!
//! Status: worked examples; `flowstart validate xcp-fairness`.

use super::Integrated;
use crate::event::{Ack, ExitReason};
use crate::launch::Launch;
use crate::needs::Needs;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};
use crate::window::{SegmentSize, Window};

/// One line for listings.
pub const SUMMARY: &str = "the window follows the feedback of XCP routers (links with xcp=on)";
/// The document that defines it.
pub const REFERENCE: &str = "Katabi, Handley, Rohrs, SIGCOMM 2002; draft-falk-xcp-spec-03";

/// Parameters of XCP.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// What remains of the window after a loss, 0.1 to 0.99. The paper: as TCP, 0.5.
    pub beta: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { beta: 0.5 }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("beta", self.beta, 0.1..=0.99)
    }
}

/// State of XCP.
#[derive(Clone, Debug)]
pub struct Xcp {
    config: Config,
    segment: Bytes,
    starting: bool,
    /// The launch's rate, until the first acknowledgement.
    launch_rate: Option<Rate>,
    exit: Option<ExitReason>,
}

impl Xcp {
    /// XCP with segments of this size.
    pub fn new(config: Config, SegmentSize(segment): SegmentSize) -> Self {
        Self { config, segment, starting: true, launch_rate: None, exit: None }
    }
}

impl Integrated for Xcp {
    fn needs(&self) -> Needs {
        Needs::CONGESTION_HEADER
    }

    fn on_segment_size(&mut self, SegmentSize(segment): SegmentSize) {
        self.segment = segment;
    }

    fn on_launch(&mut self, _now: Timestamp, launch: &Launch, _rtt: &RttEstimator) {
        self.launch_rate = launch.pacing_rate;
    }

    fn on_ack(&mut self, _ack: &Ack, window: Window, _rtt: &RttEstimator) -> Bytes {
        self.launch_rate = None;
        window.cwnd
    }

    fn on_feedback(&mut self, feedback: i32, window: Window, rtt: &RttEstimator) -> Bytes {
        if self.starting {
            self.starting = false;
            self.exit = Some(ExitReason::Other("feedback"));
        }
        let change = f64::from(feedback) * rtt.smoothed().as_secs();
        let amount = Bytes::new(libm::fabs(change) as u64);
        let cwnd = if change < 0.0 { window.cwnd.saturating_sub(amount) } else { window.cwnd + amount };
        cwnd.max(self.segment)
    }

    fn on_congestion(&mut self, window: Window) -> Bytes {
        if self.starting {
            self.starting = false;
            self.exit = Some(ExitReason::Loss);
        }
        window.cwnd.scale(self.config.beta).max(self.segment)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.launch_rate
    }

    fn is_starting(&self) -> bool {
        self.starting
    }

    fn take_exit(&mut self) -> Option<ExitReason> {
        self.exit.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn the_window_follows_the_feedback_and_keeps_a_segment() {
        let mut rtt = RttEstimator::new(Duration::from_millis(333));
        rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
        let mut xcp = Xcp::new(Config::default(), SegmentSize(Bytes::new(1000)));
        let window = |cwnd| Window { cwnd: Bytes::new(cwnd), ssthresh: Bytes::MAX };
        // 50 kB/s * 100 ms = 5 kB.
        assert_eq!(xcp.on_feedback(50_000, window(10_000), &rtt), Bytes::new(15_000));
        assert_eq!(xcp.take_exit(), Some(ExitReason::Other("feedback")));
        assert_eq!(xcp.on_feedback(-20_000, window(15_000), &rtt), Bytes::new(13_000));
        assert_eq!(xcp.on_feedback(i32::MIN, window(13_000), &rtt), Bytes::new(1000));
        assert_eq!(xcp.on_congestion(window(9000)), Bytes::new(4500));
    }
}
