//! `target`: requests are approved up to a share of the link, without state per flow.
//!
//! Reference: Sarolahti, Allman and Floyd, section 6.1, figure 7. What is in use is the utilization and what was approved in
//! the latest intervals, which may still be on its way. While that is below `qs_thresh` of the bandwidth, a request gets what
//! is left below it, at most what it asks for. Otherwise nothing.
//!
//! Differences: a request beyond `requests_per_second` is not looked at (section 8 asks for such a limit; off by default).
//! Like ns-2, the approved rate is remembered as it was before rounding.
//!
//! Status: `flowstart validate ns2-router-checks` compares with ns-2's grants.

use serde::{Deserialize, Serialize};

use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Rate;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `qs_thresh`: share of the bandwidth that may be in use, 0 to 1; 0.9 (section 6.1).
    pub qs_thresh: f64,
    /// Length of an interval over which approvals are summed; 150 ms (section 6.1). Two count, the running one included.
    pub interval: Duration,
    /// Requests that are looked at in each second, `None` for all of them (section 8); all of them.
    pub requests_per_second: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self { qs_thresh: 0.9, interval: Duration::from_millis(150), requests_per_second: None }
    }
}

impl Config {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("qs_thresh", self.qs_thresh, 0.0..=1.0)?;
        ConfigError::unless_in("interval", self.interval, Duration::from_millis(1)..=Duration::from_millis(60_000))
    }
}

/// What was approved in the running interval and the one before: `recent_qs_approvals`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentApprovals {
    length: Duration,
    /// Number of the running interval.
    running: u64,
    /// Bits per second approved in the interval before and the running one.
    approved: [u64; 2],
}

impl RecentApprovals {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, running: 0, approved: [0; 2] }
    }

    /// Their sum at `now`.
    pub(super) fn sum(&mut self, now: Timestamp) -> f64 {
        let running = now.since(Timestamp::ZERO).as_nanos() / self.length.as_nanos().max(1);
        self.approved = match running - self.running {
            0 => self.approved,
            1 => [self.approved[1], 0],
            _ => [0; 2],
        };
        self.running = running;
        self.approved[0] as f64 + self.approved[1] as f64
    }

    pub(super) fn add(&mut self, approved: Rate) {
        self.approved[1] = self.approved[1].saturating_add(approved.bits_per_sec());
    }
}

/// State: O(1), whatever asks.
#[derive(Clone, Debug)]
pub struct Target {
    config: Config,
    recent_qs_approvals: RecentApprovals,
    /// The running second and the requests that were looked at in it.
    looked_at: (u64, u32),
}

impl Target {
    /// Nothing was approved yet.
    pub fn new(config: Config) -> Self {
        Self { config, recent_qs_approvals: RecentApprovals::new(config.interval), looked_at: (0, 0) }
    }

    /// How much of `requested` is approved, before it is rounded. `used` is the share of the bandwidth in use.
    pub fn approve(&mut self, now: Timestamp, bandwidth: Rate, used: f64, requested: Rate) -> Rate {
        let nothing = Rate::from_bits_per_sec(0);
        if !self.looks_at(now) {
            return nothing;
        }
        // Figure 7, in bits per second.
        let bandwidth = bandwidth.bits_per_sec() as f64;
        let util_bw = bandwidth * used + self.recent_qs_approvals.sum(now);
        let left = self.config.qs_thresh * bandwidth - util_bw;
        if left <= 0.0 {
            return nothing;
        }
        let approved = requested.min(Rate::from_bits_per_sec(left as u64));
        self.recent_qs_approvals.add(approved);
        approved
    }

    fn looks_at(&mut self, now: Timestamp) -> bool {
        let Some(limit) = self.config.requests_per_second else { return true };
        let second = now.since(Timestamp::ZERO).as_nanos() / 1_000_000_000;
        if self.looked_at.0 != second {
            self.looked_at = (second, 0);
        }
        self.looked_at.1 = self.looked_at.1.saturating_add(1);
        self.looked_at.1 <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    fn kbit(kbit: u64) -> Rate {
        Rate::from_bits_per_sec(kbit * 1000)
    }

    const LINK: Rate = Rate::from_mbit(10);

    #[test]
    fn what_is_left_below_the_threshold_is_shared_out_until_it_is_gone() {
        let mut target = Target::new(Config::default());
        // 0.9 * 10 Mbit/s less 2.5 Mbit/s in use: 6.5 Mbit/s are left for 4, then 2.5 of 4, then nothing.
        assert_eq!(target.approve(at(0), LINK, 0.25, kbit(4000)), kbit(4000));
        assert_eq!(target.approve(at(1), LINK, 0.25, kbit(4000)), kbit(2500));
        assert_eq!(target.approve(at(2), LINK, 0.25, kbit(4000)), kbit(0));
    }

    #[test]
    fn approvals_count_in_their_interval_and_the_next() {
        let mut target = Target::new(Config::default());
        assert_eq!(target.approve(at(100), LINK, 0.0, kbit(9000)), kbit(9000));
        assert_eq!(target.approve(at(299), LINK, 0.0, kbit(9000)), kbit(0), "intervals end at 150 and 300 ms");
        assert_eq!(target.approve(at(300), LINK, 0.0, kbit(9000)), kbit(9000));
        assert_eq!(target.approve(at(10_000), LINK, 0.0, kbit(9000)), kbit(9000));
    }

    #[test]
    fn a_flood_beyond_the_limit_takes_nothing_from_those_looked_at() {
        let config = Config { requests_per_second: Some(2), ..Config::default() };
        let mut target = Target::new(config);
        assert_eq!(target.approve(at(1), LINK, 0.0, kbit(1000)), kbit(1000));
        assert_eq!(target.approve(at(2), LINK, 0.0, kbit(1000)), kbit(1000));
        assert_eq!(target.approve(at(3), LINK, 0.0, kbit(1000)), kbit(0));
        assert_eq!(target.approve(at(1001), LINK, 0.0, kbit(1000)), kbit(1000));
    }
}
