//! `peak-utilization`: the link is as busy as in the busiest of the latest intervals.
//!
//! Reference: Sarolahti, Allman and Floyd, section 6.1. Time is cut into intervals; the share of each in which the link
//! was sending is its measurement, and the highest of the latest N is the estimate. It follows a rising load at once
//! and remembers a busy time for N intervals.
//!
//! Differences: the paper does not say whether the running interval counts. Here it does not: a short time since its
//! beginning would make one packet look like a full link. [`Intervals::BetweenChanges`] is what ns-2 does: an interval
//! ends with the first change of the link between sending and idle after its length has passed, so a busy time is not
//! cut, and is averaged with the idle time around it.
//!
//! Status: the grants of ns-2 that depend on it are compared in `flowstart validate ns2-router-checks`.

use alloc::vec::Vec;

use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Most intervals that are remembered.
pub const MOST_INTERVALS: usize = 64;

/// Where intervals end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Intervals {
    /// At multiples of their length.
    #[default]
    Fixed,
    /// With the first change between sending and idle after their length has passed (ns-2).
    BetweenChanges,
}

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Config {
    /// s: length of an interval; 150 ms (section 6.1).
    pub interval: Duration,
    /// N: how many are remembered, 1 to 64; 5 (section 6.1).
    pub intervals: usize,
    /// Where intervals end; at multiples of s.
    pub ends: Intervals,
}

impl Default for Config {
    fn default() -> Self {
        Self { interval: Duration::from_millis(150), intervals: 5, ends: Intervals::Fixed }
    }
}

impl Config {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("intervals", self.intervals, 1..=MOST_INTERVALS)?;
        ConfigError::unless_in("interval", self.interval, Duration::from_millis(1)..=Duration::from_millis(60_000))
    }
}

/// The latest intervals of a link.
#[derive(Clone, Debug)]
pub struct PeakUtilization {
    config: Config,
    bandwidth: Rate,
    /// When the running interval began.
    began: Timestamp,
    /// How long the link was sending in it.
    sending: Duration,
    /// Up to when `sending` is counted.
    counted: Timestamp,
    /// When the link will have sent what it was given.
    busy_until: Timestamp,
    latest: Vec<f64>,
    next: usize,
}

impl PeakUtilization {
    /// A link of this bandwidth that has never been used.
    pub fn new(config: Config, bandwidth: Rate) -> Self {
        let zero = Timestamp::ZERO;
        Self {
            config,
            bandwidth,
            began: zero,
            sending: Duration::ZERO,
            counted: zero,
            busy_until: zero,
            latest: alloc::vec![0.0; config.intervals.max(1)],
            next: 0,
        }
    }

    /// A packet of `size` begins to leave at `now`.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: Bytes) {
        if now > self.busy_until {
            self.count(self.busy_until, true);
            self.count(now, false);
            self.busy_until = now;
        }
        // A link that carries more than its stated bandwidth is busy, and not for longer than intervals are remembered.
        let most = now + self.config.interval * self.config.intervals as u64;
        self.busy_until = (self.busy_until + self.bandwidth.time_for(size)).min(most);
    }

    /// The highest share of the latest intervals, 0 to 1.
    pub fn share(&mut self, now: Timestamp) -> f64 {
        self.count(now.min(self.busy_until), true);
        self.count(now, false);
        self.latest.iter().copied().fold(0.0, f64::max)
    }

    /// The link was sending or idle until `until`.
    fn count(&mut self, until: Timestamp, sending: bool) {
        if until <= self.counted {
            return;
        }
        match self.config.ends {
            Intervals::Fixed => self.count_fixed(until, sending),
            Intervals::BetweenChanges => self.count_change(until, sending),
        }
        self.counted = until;
    }

    fn count_fixed(&mut self, until: Timestamp, sending: bool) {
        let length = self.config.interval;
        // After a long time only the remembered intervals count.
        let mut remembered = 0;
        while until.since(self.began) >= length {
            if remembered > self.config.intervals {
                let whole = until.since(self.began).as_nanos() / length.as_nanos();
                self.began += Duration::from_nanos(whole * length.as_nanos());
                self.counted = self.began;
                break;
            }
            let end = self.began + length;
            if sending {
                self.sending += end.since(self.counted.max(self.began));
            }
            self.end(self.sending.as_secs() / length.as_secs(), end);
            self.counted = end;
            remembered += 1;
        }
        if sending {
            self.sending += until.since(self.counted.max(self.began));
        }
    }

    fn count_change(&mut self, until: Timestamp, sending: bool) {
        if sending {
            self.sending += until.since(self.counted);
        }
        let length = self.config.interval;
        let mut passed = until.since(self.began);
        let mut share = self.sending.as_secs() / passed.as_secs();
        // A time longer than an interval counts as several intervals; those after the first have the link's last state.
        for _ in 0..self.config.intervals {
            if passed <= length {
                break;
            }
            self.end(share, until);
            share = if sending { 1.0 } else { 0.0 };
            passed = passed.saturating_sub(length);
        }
    }

    fn end(&mut self, share: f64, at: Timestamp) {
        self.latest[self.next] = share;
        self.next = (self.next + 1) % self.latest.len();
        self.began = at;
        self.sending = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    /// 10 Mbit/s: a packet of 1250 bytes takes 1 ms.
    fn peak(ends: Intervals) -> PeakUtilization {
        PeakUtilization::new(Config { ends, ..Config::default() }, Rate::from_mbit(10))
    }

    fn send(peak: &mut PeakUtilization, from: u64, packets: u64, every: u64) {
        for packet in 0..packets {
            peak.on_departure(at(from + packet * every), Bytes::new(1250));
        }
    }

    #[test]
    fn the_busiest_of_five_intervals_counts_for_five_intervals() {
        let mut peak = peak(Intervals::Fixed);
        // 75 ms of sending in the interval from 150 to 300 ms: one half. 15 ms in the next: a tenth.
        send(&mut peak, 150, 75, 2);
        assert_eq!(peak.share(at(299)), 0.0, "the running interval does not count");
        send(&mut peak, 300, 15, 10);
        assert!((peak.share(at(450)) - 0.5).abs() < 1e-9);
        // Five intervals end at 300, 450, 600, 750 and 900 ms; with the sixth at 1050 ms the first is forgotten.
        assert!((peak.share(at(1049)) - 0.5).abs() < 1e-9);
        assert!((peak.share(at(1050)) - 0.1).abs() < 1e-9);
        assert_eq!(peak.share(at(100_000)), 0.0);
    }

    #[test]
    fn a_packet_may_lie_in_two_intervals() {
        let mut peak = peak(Intervals::Fixed);
        // Ten packets that wait for one another from 145 ms on: 5 ms before 150 ms, 5 ms after it.
        for _ in 0..10 {
            peak.on_departure(at(145), Bytes::new(1250));
        }
        assert!((peak.share(at(151)) - 5.0 / 150.0).abs() < 1e-9);
        assert!((peak.share(at(300)) - 5.0 / 150.0).abs() < 1e-9);
    }

    #[test]
    fn a_link_that_is_never_idle_is_full() {
        let mut peak = peak(Intervals::Fixed);
        send(&mut peak, 0, 1000, 1);
        assert!((peak.share(at(1000)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_more_than_the_stated_bandwidth_is_forgotten() {
        let mut peak = peak(Intervals::Fixed);
        // Ten times the bandwidth for 10 s: 100 s of sending.
        for packet in 0..100_000 {
            peak.on_departure(Timestamp::ZERO + Duration::from_micros(packet * 100), Bytes::new(1250));
        }
        assert!((peak.share(at(10_000)) - 1.0).abs() < 1e-9);
        // Busy for 0.75 s more, and remembered for as long.
        assert!(peak.share(at(11_300)) > 0.9);
        assert_eq!(peak.share(at(11_700)), 0.0);
    }

    #[test]
    fn ns_2_ends_an_interval_when_the_link_changes() {
        let mut peak = peak(Intervals::BetweenChanges);
        // Idle for 1 s, then 20 ms of sending from 1000 ms on. At 1000 ms the idle second ends as intervals of share 0.
        // At 1020 ms only 20 ms have passed: no interval ends. At 2000 ms, after 980 ms of idle time, the share is
        // 20/1000.
        send(&mut peak, 1000, 20, 1);
        send(&mut peak, 2000, 1, 1);
        assert!((peak.share(at(2000)) - 0.02).abs() < 1e-9);
    }
}
