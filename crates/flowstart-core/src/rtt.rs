//! RTT estimation: RFC 6298 section 2 and RFC 9002 section 5, which use the same filters.

use crate::time::{Duration, Timestamp};

/// RTT before the first sample (RFC 9002, section 6.2.2: `kInitialRtt`).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// The precision of a host's timer (RFC 9002, section 6.1.2: `kGranularity`).
pub const GRANULARITY: Duration = Duration::from_millis(1);
/// The longest that a receiver delays its acknowledgements, unless it says so (RFC 9000, section 18.2:
/// `max_ack_delay`).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Smoothed RTT, its variation and its minimum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RttEstimator {
    latest: Duration,
    min: Duration,
    smoothed: Duration,
    variation: Duration,
    sampled: bool,
    first_sample_at: Option<Timestamp>,
}

impl RttEstimator {
    /// An estimator that assumes `initial` until the first sample (RFC 9002, section 6.2.2: 333 ms).
    pub fn new(initial: Duration) -> Self {
        Self {
            latest: Duration::ZERO,
            min: Duration::MAX,
            smoothed: initial,
            variation: initial / 2,
            sampled: false,
            first_sample_at: None,
        }
    }

    /// Takes a sample; `ack_delay` is the receiver's statement of how long it held the acknowledgement back, zero
    /// without one.
    ///
    /// min RTT ignores `ack_delay` (RFC 9002, section 5.2); the filters subtract it unless that would go below min RTT.
    pub fn update(&mut self, now: Timestamp, sample: Duration, ack_delay: Duration) {
        self.latest = sample;
        self.min = self.min.min(sample);
        if !self.sampled {
            self.sampled = true;
            self.first_sample_at = Some(now);
            self.smoothed = sample;
            self.variation = sample / 2;
            return;
        }
        let adjusted = if sample >= self.min + ack_delay { sample.saturating_sub(ack_delay) } else { sample };
        let deviation = self.smoothed.saturating_sub(adjusted) + adjusted.saturating_sub(self.smoothed);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// The latest sample, `None` before the first.
    pub fn latest(&self) -> Option<Duration> {
        self.sampled.then_some(self.latest)
    }

    /// The smallest sample, `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        self.sampled.then_some(self.min)
    }

    /// The smoothed RTT; the assumed RTT before the first sample.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation (rttvar).
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The probe timeout of QUIC for a timer of this granularity and a peer with this `max_ack_delay` (RFC 9002,
    /// section 6.2.1).
    pub fn probe_timeout(&self, granularity: Duration, max_ack_delay: Duration) -> Duration {
        self.smoothed + (self.variation * 4).max(granularity) + max_ack_delay
    }

    /// Whether there was a sample.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// When the first sample was taken.
    pub fn first_sample_at(&self) -> Option<Timestamp> {
        self.first_sample_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_filters_follow_rfc_6298() {
        let mut rtt = RttEstimator::new(MS(333));
        rtt.update(Timestamp::ZERO, MS(100), Duration::ZERO);
        // First sample: SRTT = R, RTTVAR = R/2.
        assert_eq!((rtt.smoothed(), rtt.variation()), (MS(100), MS(50)));
        rtt.update(Timestamp::ZERO, MS(140), Duration::ZERO);
        // RTTVAR = 3/4 * 50 + 1/4 * |100 - 140| = 47.5; SRTT = 7/8 * 100 + 1/8 * 140 = 105.
        assert_eq!((rtt.smoothed(), rtt.variation()), (MS(105), Duration::from_micros(47_500)));
    }

    #[test]
    fn the_receivers_delay_is_removed_but_never_below_the_minimum() {
        let mut rtt = RttEstimator::new(MS(333));
        rtt.update(Timestamp::ZERO, MS(100), MS(25));
        assert_eq!(rtt.smoothed(), MS(100));
        // 116 - 8 = 108 >= min 100: SRTT = 7/8 * 100 + 1/8 * 108 = 101.
        rtt.update(Timestamp::ZERO, MS(116), MS(8));
        assert_eq!(rtt.smoothed(), MS(101));
        // 101 - 25 < 100: the sample counts as it is.
        rtt.update(Timestamp::ZERO, MS(101), MS(25));
        assert_eq!(rtt.smoothed(), MS(101));
        assert_eq!(rtt.min(), Some(MS(100)));
    }
}
