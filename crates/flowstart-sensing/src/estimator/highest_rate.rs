//! The highest rate seen through an access network: its capacity without other traffic.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.1: a client "can leverage past maximum
//! bandwidth observations". Each transfer reports its delivery rate; the estimate is the highest that has not expired.
//! With a half-life, older rates count less, so the estimate follows an access line that became slower before they
//! expire.
//!
//! Differences from the reference: the paper says neither how long a maximum holds nor that it fades. One
//! [`HighestRate`] is for one access network; the caller keeps one for each, by SSID or by the gateway's address.
//!
//! Status: worked examples, and the estimate equals that of a list of everything.

use std::collections::VecDeque;

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use serde::{Deserialize, Serialize};

use crate::path_store::UnixTime;

/// How long a maximum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A rate of this age is forgotten, in whole seconds. Default 7 days: chosen, because a week contains quiet hours
    /// in which an access line shows its capacity.
    pub lifetime: Duration,
    /// The age at which a rate counts half. Without it, a rate counts fully until it expires. Default: absent, as in
    /// the paper.
    pub half_life: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self { lifetime: Duration::from_millis(7 * 24 * 3_600_000), half_life: None }
    }
}

/// Rates seen through one access network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HighestRate {
    config: Config,
    /// In order of time. Each counts less than those before it, because lower earlier rates could never become the
    /// highest.
    rates: VecDeque<(UnixTime, Rate)>,
}

/// Rates kept; beyond it the least is left out.
const RATES_MAX: usize = 256;

impl HighestRate {
    /// Nothing seen yet.
    pub const fn new(config: Config) -> Self {
        Self { config, rates: VecDeque::new() }
    }

    /// A transfer reached `rate`. One whose rate was limited by the application says less; it may be reported, too.
    pub fn observe(&mut self, rate: Rate, now: UnixTime) {
        // After a clock was set back, times go on from the latest.
        let now = self.rates.back().map_or(now, |(latest, _)| now.max(*latest));
        while self.rates.back().is_some_and(|(at, older)| self.faded(*older, *at, now) <= rate) {
            self.rates.pop_back();
        }
        while self.rates.front().is_some_and(|(at, _)| now.since(*at) >= self.config.lifetime) {
            self.rates.pop_front();
        }
        if self.rates.len() < RATES_MAX {
            self.rates.push_back((now, rate));
        }
    }

    /// The highest rate that has not expired, faded by its age, and this age; `None` if there is none.
    pub fn estimate(&self, now: UnixTime) -> Option<(Rate, Duration)> {
        let (at, rate) = self.rates.iter().find(|(at, _)| now.since(*at) < self.config.lifetime)?;
        let faded = self.faded(*rate, *at, now);
        (faded > Rate::ZERO).then(|| (faded, now.since(*at)))
    }

    /// When the last transfer that counts was.
    pub fn latest(&self) -> Option<UnixTime> {
        self.rates.back().map(|(at, _)| *at)
    }

    /// rate x 2^(-age / half-life).
    fn faded(&self, rate: Rate, at: UnixTime, now: UnixTime) -> Rate {
        match self.config.half_life {
            Some(half) if half > Duration::ZERO => rate.scale(libm::exp2(-now.since(at).as_secs() / half.as_secs())),
            _ => rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn estimate(seen: &HighestRate, seconds: u64) -> Option<Rate> {
        seen.estimate(at(seconds)).map(|(rate, _)| rate)
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_secs(seconds)
    }

    #[test]
    fn the_highest_rate_holds_until_it_expires() {
        let config = Config { lifetime: Duration::from_secs(100.0), half_life: None };
        let mut seen = HighestRate::new(config);
        assert_eq!(estimate(&seen, 0), None);
        seen.observe(Rate::from_mbit(40), at(0));
        seen.observe(Rate::from_mbit(10), at(10));
        seen.observe(Rate::from_mbit(25), at(20));
        assert_eq!(estimate(&seen, 99), Some(Rate::from_mbit(40)));
        assert_eq!(estimate(&seen, 100), Some(Rate::from_mbit(25)));
        assert_eq!(estimate(&seen, 120), None);
        // The age is that of the rate, not of the last transfer.
        assert_eq!(seen.estimate(at(30)), Some((Rate::from_mbit(40), Duration::from_secs(30.0))));
    }

    #[test]
    fn a_rate_fades_by_half_in_its_half_life() {
        let config = Config { lifetime: Duration::from_secs(1000.0), half_life: Some(Duration::from_secs(50.0)) };
        let mut seen = HighestRate::new(config);
        seen.observe(Rate::from_mbit(40), at(0));
        assert_eq!(estimate(&seen, 50), Some(Rate::from_mbit(20)));
        // At 100 the first counts 10 Mbit/s, less than the current rate.
        seen.observe(Rate::from_mbit(12), at(100));
        assert_eq!(estimate(&seen, 100), Some(Rate::from_mbit(12)));
        assert_eq!(estimate(&seen, 150), Some(Rate::from_mbit(6)));
    }

    proptest! {
        #[test]
        fn the_estimate_is_that_of_a_list_of_everything(
            rates in prop::collection::vec((0u64..50, 1u64..1000), 1..60), later in 0u64..200,
        ) {
            let mut seen = HighestRate::new(Config { lifetime: Duration::from_secs(100.0), half_life: None });
            let mut all = Vec::new();
            let mut now = 0;
            for (step, mbit) in rates {
                now += step;
                seen.observe(Rate::from_mbit(mbit), at(now));
                all.push((now, mbit));
            }
            now += later;
            let highest = all.iter().filter(|(time, _)| now - time < 100).map(|(_, mbit)| *mbit).max();
            prop_assert_eq!(estimate(&seen, now), highest.map(Rate::from_mbit));
        }
    }
}
