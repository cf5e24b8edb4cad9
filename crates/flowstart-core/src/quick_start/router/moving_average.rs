//! `moving-average`: the utilization of the link as an exponentially weighted average.
//!
//! Reference: Sarolahti, Allman and Floyd, section 6.1, equation (3): U(t + d) = w M(t + d) + (1 - w) U(t). M is the
//! share of the time since the last measurement in which the link was sending, and a measurement is taken with every
//! departure, so the average reaches back over -1 / ln(1 - w) departures. It hides the variation of the load, so the
//! paper prefers the peak.
//!
//! Differences: none known. Between departures the estimate does not move, so a link that has fallen idle still looks
//! as busy as it was.
//!
//! Status: worked examples below; figure 9 is not compared yet.

use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Config {
    /// w: weight of a measurement, above 0 and at most 1; 0.01, about a hundred departures (assumed: the paper sweeps
    /// it).
    pub weight: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { weight: 0.01 }
    }
}

impl Config {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("weight", self.weight, 1e-6..=1.0)
    }

    /// Departures over which it averages: -1 / ln(1 - w) (section 6.1).
    pub fn departures(&self) -> f64 {
        -1.0 / libm::log(1.0 - self.weight)
    }
}

/// The average of a link.
#[derive(Clone, Debug)]
pub struct MovingAverage {
    config: Config,
    bandwidth: Rate,
    /// U.
    utilization: f64,
    /// When the last measurement was taken.
    measured: Timestamp,
    /// When the link will have sent what it was given.
    busy_until: Timestamp,
}

impl MovingAverage {
    /// A link of this bandwidth that has never been used.
    pub fn new(config: Config, bandwidth: Rate) -> Self {
        Self { config, bandwidth, utilization: 0.0, measured: Timestamp::ZERO, busy_until: Timestamp::ZERO }
    }

    /// A packet of `size` begins to leave at `now`.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: Bytes) {
        let since = now.since(self.measured);
        if since > Duration::ZERO {
            let sending = self.busy_until.min(now).since(self.measured);
            // Equation (3).
            let weight = self.config.weight;
            self.utilization += weight * (sending.as_secs() / since.as_secs() - self.utilization);
            self.measured = now;
        }
        self.busy_until = self.busy_until.max(now) + self.bandwidth.time_for(size);
    }

    /// U, 0 to 1.
    pub fn share(&self) -> f64 {
        self.utilization
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    fn average(weight: f64) -> MovingAverage {
        MovingAverage::new(Config { weight }, Rate::from_mbit(10))
    }

    #[test]
    fn each_departure_measures_the_time_since_the_one_before() {
        let mut average = average(0.5);
        // 1 ms of sending every 4 ms: M is 0 for the first, whose past is idle, then 1/4.
        average.on_departure(at(4), Bytes::new(1250));
        average.on_departure(at(8), Bytes::new(1250));
        assert!((average.share() - 0.125).abs() < 1e-12);
        average.on_departure(at(12), Bytes::new(1250));
        // 0.5 * 0.25 + 0.5 * 0.125.
        assert!((average.share() - 0.1875).abs() < 1e-12);
    }

    #[test]
    fn a_step_is_followed_with_the_time_constant() {
        let mut average = average(0.01);
        // -1 / ln(0.99) = 99.5 departures; after them 1 - 1/e of a step from 0 to 1.
        assert!((average.config.departures() - 99.5).abs() < 0.01);
        for packet in 0..=100 {
            average.on_departure(at(packet), Bytes::new(1250));
        }
        // 1 - 0.99^100.
        assert!((average.share() - 0.633_967_658_7).abs() < 1e-9);
    }
}
