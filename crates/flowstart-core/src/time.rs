//! Points in time and spans of time, in whole nanoseconds.
//!
//! Core never reads a clock: every function that needs the time takes a [`Timestamp`]. A host maps its own clock onto
//! timestamps by an offset of its choice; only differences matter.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use alloc::string::{String, ToString};

use crate::quantity::{self, Unit, UnitError};

/// A point in time: nanoseconds since an origin that the host chose (the start of the run in the simulator).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than every event: a timer at this time never fires.
    pub const NEVER: Self = Self(u64::MAX);

    /// The timestamp `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`, zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// A span of time in nanoseconds, never negative. Written `50ms`, `1.5s`, `200us`, `10ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub struct Duration(u64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than every run.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `secs` seconds, rounded to the nanosecond; negative or undefined values give zero.
    pub fn from_secs(secs: f64) -> Self {
        Self(libm::round(secs * 1e9) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span scaled by `factor`, rounded to the nanosecond; negative factors give zero.
    pub fn scale(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as u64)
    }

    /// `self - other`, zero when `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// The units of durations and their nanoseconds, the largest first.
const DURATION_UNITS: &[Unit] =
    &[Unit::new("s", 1e9), Unit::new("ms", 1e6), Unit::new("us", 1e3), Unit::new("ns", 1.0)];

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        quantity::parse(text, "a duration such as 50ms or 1.5s", DURATION_UNITS, |_, _| None).map(Self)
    }
}

impl TryFrom<String> for Duration {
    type Error = UnitError;
    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Duration> for String {
    fn from(span: Duration) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(f, self.0, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write_the_way_people_do() {
        for (text, nanos) in [("50ms", 50_000_000), ("1.5s", 1_500_000_000), ("0.96s", 960_000_000), ("7us", 7_000)] {
            assert_eq!(text.parse::<Duration>().unwrap().as_nanos(), nanos);
        }
        assert_eq!("1500ms".parse::<Duration>().unwrap().to_string(), "1.5s");
        assert_eq!(Duration::from_nanos(1_234_567).to_string(), "1.234567ms");
        assert_eq!(Duration::ZERO.to_string(), "0s");
    }

    #[test]
    fn a_duration_needs_a_unit_and_a_finite_non_negative_number() {
        for text in ["50", "-1ms", "NaNms", "infs", "ms", "1h", "1e30s", ""] {
            assert!(text.parse::<Duration>().is_err(), "{text} must be refused");
        }
    }

    #[test]
    fn a_timestamp_never_goes_below_the_origin() {
        assert_eq!(Timestamp::ZERO - Duration::from_millis(1), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO.since(Timestamp::from_nanos(5)), Duration::ZERO);
    }
}
