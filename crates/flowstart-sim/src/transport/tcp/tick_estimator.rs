//! The RTT estimator in integers.
//!
//! Reference: V. Jacobson, "Congestion Avoidance and Control", 1988, appendix A, as in BSD and ns-2. The equations are
//! those of RFC 6298 with weights of 1/8 and 1/4. The smoothed RTT is kept in eighths of a tick of the clock, the
//! deviation in quarters. Decreases are rounded down, so a deviation below a tick stays constant: up to three quarters
//! of a tick, four times of which count in the timeout.

/// Estimates in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TickEstimator {
    /// Smoothed RTT in eighths of a tick.
    smoothed: i64,
    /// Mean deviation in quarters of a tick.
    deviation: i64,
}

impl TickEstimator {
    /// After a first sample.
    pub(super) fn new(ticks: u64) -> Self {
        let ticks = ticks.clamp(1, 1 << 40) as i64;
        Self { smoothed: ticks * 8, deviation: ticks * 2 }
    }

    /// Takes another sample.
    pub(super) fn update(&mut self, ticks: u64) {
        let error = ticks.clamp(1, 1 << 40) as i64 - self.smoothed / 8;
        self.smoothed = (self.smoothed + error).max(1);
        self.deviation = (self.deviation + error.abs() - self.deviation / 4).max(1);
    }

    /// Smoothed RTT and four deviations, in ticks.
    pub(super) fn timeout(&self) -> u64 {
        (self.smoothed / 8 + self.deviation).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_leave_a_deviation_of_three_quarters_of_a_tick() {
        let mut estimator = TickEstimator::new(10);
        // 10 + 4 x 5.
        assert_eq!(estimator.timeout(), 30);
        // The deviation in quarters, 20, loses a fourth, rounded down: 15, 12, 9, 7, 6, 5, 4, 3, and 3 from then on.
        let timeouts = [25, 22, 19, 17, 16, 15, 14, 13, 13, 13].map(|expected| {
            estimator.update(10);
            (estimator.timeout(), expected)
        });
        assert!(timeouts.iter().all(|(timeout, expected)| timeout == expected), "{timeouts:?}");
    }

    #[test]
    fn a_longer_sample_counts_by_an_eighth_and_its_deviation_by_a_fourth() {
        let mut estimator = TickEstimator::new(8);
        // Error 24 - 8 = 16: smoothed 8 + 16 / 8 = 10; deviation in quarters 16 + 16 - 4 = 28.
        estimator.update(24);
        assert_eq!(estimator.timeout(), 10 + 28);
    }
}
