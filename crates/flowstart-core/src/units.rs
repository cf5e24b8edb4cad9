//! Amounts of data and rates as types, so that bits, bytes and packets cannot be confused.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use alloc::format;
use alloc::string::{String, ToString};

pub use crate::quantity::UnitError;

use crate::quantity::{self, Unit};
use crate::time::Duration;

/// An amount of data in bytes. Written `70KB`, `2MB`, `1500B`; KB is 1000 bytes. Case does not count, except that `Mb`
/// and `M` are refused, because they may mean bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// No limit.
    pub const MAX: Self = Self(u64::MAX);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, zero when `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The amount scaled by `factor`, rounded to the byte; negative factors give zero.
    pub fn scale(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as u64)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self.0 >= other.0, "{} - {} bytes", self.0, other.0);
        // A mistake of the caller's, which must not become a window without end.
        self.saturating_sub(other)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Bytes {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const UNITS: &[Unit] = &[
            Unit::new("B", 1.0),
            Unit::new("KB", 1e3),
            Unit::new("MB", 1e6),
            Unit::new("GB", 1e9),
            Unit::new("KiB", 1024.0),
            Unit::new("MiB", 1_048_576.0),
            Unit::new("GiB", 1_073_741_824.0),
        ];
        let doubt = |_, unit: &str| match unit {
            "Kb" | "Mb" | "Gb" => Some(format!("{unit} may mean bits; write {}B for bytes", &unit[..1])),
            "k" | "K" | "M" | "G" => Some(format!("{unit} alone may mean bits; write {unit}B for bytes")),
            _ => None,
        };
        quantity::parse(text, "an amount of data such as 70KB or 2MB", UNITS, doubt).map(Self)
    }
}

impl TryFrom<String> for Bytes {
    type Error = UnitError;
    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Bytes> for String {
    fn from(amount: Bytes) -> Self {
        amount.to_string()
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(f, self.0, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1)])
    }
}

/// A rate in bits per second. Written `25mbit`, `10gbit`, `384kbit`, `9600bit`, also `25Mbit/s`, `25Mbps`, `25Mb/s` or
/// `25M`. Case does not count, with two exceptions. A capital `B` is refused, because it means bytes. `m` alone is
/// refused, because it means a thousandth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);

    /// `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// `megabits` Mbit/s (10^6 bits per second).
    pub const fn from_mbit(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// The rate that moves `amount` in `span`, rounded down but at least 1 bit/s, because at rate zero nothing would
    /// ever move. `None` when `amount` or `span` is zero, because there is no such rate.
    pub fn from_transfer(amount: Bytes, span: Duration) -> Option<Self> {
        if amount == Bytes::ZERO || span == Duration::ZERO {
            return None;
        }
        Some(Self(((amount.0 as f64 * 8e9 / span.as_nanos() as f64) as u64).max(1)))
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Mbit/s.
    pub fn as_mbit(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `amount` takes at this rate, rounded up to the nanosecond; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, amount: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        match amount.0.checked_mul(8_000_000_000) {
            Some(bits) => Duration::from_nanos(bits.div_ceil(self.0)),
            None => Duration::from_nanos((amount.0 as f64 * 8e9 / self.0 as f64) as u64),
        }
    }

    /// How much this rate moves in `span`, rounded down.
    pub fn amount_in(self, span: Duration) -> Bytes {
        Bytes((self.0 as f64 * span.as_nanos() as f64 / 8e9) as u64)
    }

    /// The rate scaled by `factor`, rounded down; negative factors give zero.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const UNITS: &[Unit] = &[
            Unit { name: "bit", also: &["bit/s", "bps"], exactly: &["b/s"], size: 1.0 },
            Unit { name: "kbit", also: &["kbit/s", "kbps"], exactly: &["kb/s", "Kb/s", "k", "K"], size: 1e3 },
            Unit { name: "mbit", also: &["mbit/s", "mbps"], exactly: &["Mb/s", "M"], size: 1e6 },
            Unit { name: "gbit", also: &["gbit/s", "gbps"], exactly: &["Gb/s", "G"], size: 1e9 },
        ];
        let doubt = |number: f64, unit: &str| {
            let bits = unit.to_ascii_lowercase();
            if unit.contains('B') && !bits.contains("bit") {
                // Whoever writes MB/s gets the same rate in bits.
                let prefix = |unit: &Unit| unit.name.trim_end_matches("bit");
                let is_bytes = |unit: &&Unit| bits.strip_prefix(prefix(unit)).is_some_and(|rest| rest.starts_with('b'));
                let size = UNITS.iter().find(is_bytes)?.size;
                let rate = Self((number * size * 8.0) as u64);
                let same = if number > 0.0 { format!("; {number}{unit} would be {rate}") } else { String::new() };
                return Some(format!("B means bytes, and rates are in bits per second{same}"));
            }
            let alone = matches!(unit, "m" | "g").then(|| unit.to_ascii_uppercase());
            alone.map(|capital| format!("{unit} alone is not a unit; write {capital}, or {unit}bit"))
        };
        quantity::parse(text, "a rate such as 25mbit or 10gbit", UNITS, doubt).map(Self)
    }
}

impl TryFrom<String> for Rate {
    type Error = UnitError;
    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(f, self.0, &[("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_are_a_thousand_bytes() {
        assert_eq!("70KB".parse::<Bytes>().unwrap(), Bytes::new(70_000));
        assert_eq!("2mb".parse::<Bytes>().unwrap(), Bytes::new(2_000_000));
        assert_eq!("1.5KiB".parse::<Bytes>().unwrap(), Bytes::new(1_536));
        assert_eq!("1e3B".parse::<Bytes>().unwrap(), Bytes::new(1_000));
    }

    #[test]
    fn rates_may_be_written_as_elsewhere() {
        for text in
            ["20mbit", "20Mbit", "20Mbit/s", "20 Mbit/s", "20MBIT", "20Mbps", "20mbps", "20Mb/s", "20M", "0.02G"]
        {
            assert_eq!(text.parse::<Rate>(), Ok(Rate::from_mbit(20)), "{text}");
        }
        assert_eq!("384k".parse::<Rate>(), Ok(Rate::from_bits_per_sec(384_000)));
        assert_eq!("9600bps".parse::<Rate>(), Ok(Rate::from_bits_per_sec(9_600)));
    }

    #[test]
    fn units_with_more_than_one_meaning_are_refused_with_what_to_write() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        for text in ["20MB/s", "20MBps", "20MBPS", "20MB"] {
            assert!(rate(text).ends_with("would be 160mbit"), "{}", rate(text));
        }
        assert!(rate("20B/s").ends_with("would be 160bit"), "{}", rate("20B/s"));
        assert!(rate("20m").ends_with("write M, or mbit"), "{}", rate("20m"));
        assert!(rate("20mb/s").contains("one of bit, kbit, mbit, gbit"), "{}", rate("20mb/s"));
        assert!(rate("B/s").ends_with("B means bytes, and rates are in bits per second"), "{}", rate("B/s"));
        let amount = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        assert!(amount("2Mb").ends_with("may mean bits; write MB for bytes"), "{}", amount("2Mb"));
        assert!(amount("2M").ends_with("write MB for bytes"), "{}", amount("2M"));
        assert!(amount("2mbit").contains("one of B, KB"), "{}", amount("2mbit"));
    }

    #[test]
    fn rates_convert_without_a_factor_of_eight() {
        // 1500 bytes = 12,000 bits; at 10 Mbit/s they take 1.2 ms.
        let rate: Rate = "10mbit".parse().unwrap();
        assert_eq!(rate.time_for(Bytes::new(1500)), Duration::from_micros(1200));
        assert_eq!(rate.amount_in(Duration::from_millis(100)), Bytes::new(125_000));
        assert_eq!(Rate::from_transfer(Bytes::new(125_000), Duration::from_millis(100)), Some(rate));
    }

    #[test]
    fn no_transfer_has_a_rate_of_zero() {
        assert_eq!(Rate::from_transfer(Bytes::new(1500), Duration::ZERO), None);
        assert_eq!(Rate::from_transfer(Bytes::ZERO, Duration::from_millis(100)), None);
        // A byte in 100 s: 8 / 100 bits per second are rounded up to 1.
        let slow = Rate::from_transfer(Bytes::new(1), Duration::from_secs(100.0));
        assert_eq!(slow, Some(Rate::from_bits_per_sec(1)));
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "1 - 2 bytes"))]
    fn a_difference_below_zero_is_a_mistake_that_costs_a_release_nothing_but_the_difference() {
        assert_eq!(Bytes::new(1) - Bytes::new(2), Bytes::ZERO);
        let mut left = Bytes::new(1);
        left -= Bytes::new(2);
        assert_eq!(left, Bytes::ZERO);
    }

    #[test]
    fn quantities_survive_a_round_trip() {
        for text in ["70KB", "2MB", "1.5GB", "1B", "0GB"] {
            let amount: Bytes = text.parse().unwrap();
            assert_eq!(amount.to_string().parse::<Bytes>().unwrap(), amount);
        }
        for text in ["25mbit", "384kbit", "10gbit", "1bit"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn absurd_quantities_are_refused_with_the_reason() {
        let error = "12 parsec".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("B, KB, MB"), "{error}");
        for text in ["-1MB", "nanMB", "1e300GB", "MB", "", "1.2.3KB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text} must be refused");
        }
    }
}
