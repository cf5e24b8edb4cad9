//! Reno: one segment per round trip, half the window on congestion.
//!
//! Reference: RFC 5681, section 3.1, and RFC 9002, section 7.3, which agree. The window grows by one segment for every
//! window of data that is acknowledged. A congestion event multiplies it by beta. If CE marks reported the event,
//! `beta_ecn` can replace beta (ABE, RFC 8511).
//!
//! Differences from the reference: the increase counts in bytes without rounding. With `whole_segments` the window
//! grows by a whole segment when a whole window has been acknowledged, and with `whole_cuts` a reduction leaves whole
//! segments, both as in Linux. `beta_ecn` also applies to the mark that ends slow start; RFC 8511 speaks of congestion
//! avoidance.
//!
//! Status: validated by `ns2-chain`, `ns3-startup` and `linux-startup`; `beta_ecn` by worked examples.

use super::LossBased;
use crate::event::Ack;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::Bytes;
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// One line for listings.
pub const SUMMARY: &str = "one segment per RTT, half on congestion";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 5681, section 3.1; RFC 9002, section 7.3";

/// Parameters of Reno.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// What remains of the window after congestion, 0.1 to 0.99. RFC 5681: 0.5.
    pub beta: f64,
    /// What remains of it after CE marks, 0.1 to 0.99. Default: as after loss. RFC 8511, section 3.1: 0.8.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub beta_ecn: Option<f64>,
    /// Whether the window grows only in whole segments. Default: no, RFC 5681 equation (3).
    pub whole_segments: bool,
    /// Whether a reduction leaves whole segments. Default: no, RFC 5681; Linux does, ns-3 does not.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "core::ops::Not::not"))]
    pub whole_cuts: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { beta: 0.5, beta_ecn: None, whole_segments: false, whole_cuts: false }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("beta", self.beta, 0.1..=0.99)?;
        ConfigError::unless_in("beta_ecn", self.beta_ecn.unwrap_or(self.beta), 0.1..=0.99)
    }
}

/// State of Reno.
#[derive(Clone, Debug)]
pub struct Reno {
    config: Config,
    segment: u64,
    /// Acknowledged bytes times the segment size, not yet turned into window.
    credit: u64,
}

impl Reno {
    /// Reno that grows by segments of this size.
    pub fn new(config: Config, SegmentSize(segment): SegmentSize) -> Self {
        Self { config, segment: segment.get(), credit: 0 }
    }

    /// What remains of a window; whole segments if the configuration asks for them.
    fn reduce(&mut self, beta: f64, base: Bytes) -> Bytes {
        self.credit = 0;
        let reduced = base.scale(beta);
        match self.config.whole_cuts {
            true => Bytes::new(reduced.get() / self.segment * self.segment),
            false => reduced,
        }
    }
}

impl LossBased for Reno {
    fn on_segment_size(&mut self, SegmentSize(segment): SegmentSize) {
        self.segment = segment.get();
    }

    fn on_enter(&mut self, _now: Timestamp, _window: Window) {
        self.credit = 0;
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, _rtt: &RttEstimator) -> Bytes {
        // cwnd += SMSS * acknowledged / cwnd (RFC 5681, equation 3, in bytes), the remainder kept.
        let cwnd = window.cwnd.get().max(1);
        let (step, growth) = if self.config.whole_segments {
            (self.segment * self.segment * (cwnd / self.segment).max(1), self.segment)
        } else {
            (cwnd, 1)
        };
        self.credit += ack.bytes.get() * self.segment;
        let steps = self.credit / step;
        self.credit %= step;
        window.cwnd + Bytes::new(steps * growth)
    }

    fn on_congestion(&mut self, _now: Timestamp, base: Bytes, _window: Window) -> Bytes {
        self.reduce(self.config.beta, base)
    }

    fn on_ecn(&mut self, _now: Timestamp, base: Bytes, _window: Window) -> Bytes {
        self.reduce(self.config.beta_ecn.unwrap_or(self.config.beta), base)
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        seen.bytes("bytes_acked", Bytes::new(self.credit / self.segment.max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::acked;
    use crate::time::Duration;

    const SEGMENT: u64 = 1000;

    #[test]
    fn where_windows_are_whole_segments_so_is_what_remains() {
        let cut = |whole_cuts| {
            let mut reno = Reno::new(Config { whole_cuts, ..Config::default() }, SegmentSize(Bytes::new(SEGMENT)));
            let window = Window { cwnd: Bytes::new(401 * SEGMENT), ssthresh: Bytes::MAX };
            reno.on_congestion(Timestamp::ZERO, window.cwnd, window).get()
        };
        // Half of 401 segments are 200.5.
        assert_eq!((cut(true), cut(false)), (200 * SEGMENT, 200 * SEGMENT + SEGMENT / 2));
    }

    fn grow(config: Config, acks: usize) -> u64 {
        let mut reno = Reno::new(config, SegmentSize(Bytes::new(SEGMENT)));
        let mut window = Window { cwnd: Bytes::new(10 * SEGMENT), ssthresh: Bytes::new(10 * SEGMENT) };
        let rtt = RttEstimator::new(Duration::from_millis(100));
        for _ in 0..acks {
            window.cwnd = reno.on_ack(&acked(Timestamp::ZERO, SEGMENT), window, &rtt);
        }
        window.cwnd.get()
    }

    #[test]
    fn a_window_of_acknowledgements_adds_about_a_segment() {
        // Ten times 1000 * 1000 / cwnd with cwnd growing from 10000 to 10956.
        let grown = grow(Config::default(), 10) - 10 * SEGMENT;
        assert!((950..=1000).contains(&grown), "{grown}");
    }

    #[test]
    fn whole_segments_arrive_with_the_last_acknowledgement_of_the_window() {
        let config = Config { whole_segments: true, ..Config::default() };
        assert_eq!(grow(config.clone(), 9), 10 * SEGMENT);
        assert_eq!(grow(config, 10), 11 * SEGMENT);
    }

    #[test]
    fn whole_segments_need_only_the_whole_segments_of_the_window() {
        let config = Config { whole_segments: true, ..Config::default() };
        let mut reno = Reno::new(config, SegmentSize(Bytes::new(SEGMENT)));
        let window = Window { cwnd: Bytes::new(3 * SEGMENT + 900), ssthresh: Bytes::new(SEGMENT) };
        let rtt = RttEstimator::new(Duration::from_millis(100));
        assert_eq!(reno.on_ack(&acked(Timestamp::ZERO, 3 * SEGMENT), window, &rtt), Bytes::new(4 * SEGMENT + 900));
    }

    #[test]
    fn congestion_halves() {
        let mut reno = Reno::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        let window = Window { cwnd: Bytes::new(30_000), ssthresh: Bytes::MAX };
        assert_eq!(reno.on_congestion(Timestamp::ZERO, Bytes::new(30_000), window), Bytes::new(15_000));
        assert_eq!(reno.on_ecn(Timestamp::ZERO, Bytes::new(30_000), window), Bytes::new(15_000));
    }

    #[test]
    fn marks_can_take_less_than_loss() {
        let config = Config { beta_ecn: Some(0.8), ..Config::default() };
        let mut reno = Reno::new(config, SegmentSize(Bytes::new(SEGMENT)));
        let window = Window { cwnd: Bytes::new(30_000), ssthresh: Bytes::MAX };
        assert_eq!(reno.on_ecn(Timestamp::ZERO, Bytes::new(30_000), window), Bytes::new(24_000));
        assert_eq!(reno.on_congestion(Timestamp::ZERO, Bytes::new(30_000), window), Bytes::new(15_000));
        assert_eq!(Config { beta_ecn: Some(1.0), ..Config::default() }.validate().unwrap_err().field, "beta_ecn");
    }
}
