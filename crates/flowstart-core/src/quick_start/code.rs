//! A rate as four bits.
//!
//! Reference: RFC 4782, section 3.1. N = 0 asks for nothing, and otherwise N means 40 kbit/s * 2^N, from 80 kbit/s to
//! 1.31 Gbit/s.

use core::fmt;

use crate::units::Rate;

/// Rate of N = 0, had it been a rate: every step doubles it.
const BASE: Rate = Rate::from_bits_per_sec(40_000);

/// A requested or approved rate as its four bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateCode(u8);

impl RateCode {
    /// Nothing is asked for, or nothing was approved.
    pub const ZERO: Self = Self(0);
    /// 1.31072 Gbit/s, the highest.
    pub const MAX: Self = Self(15);

    /// The low four bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x0f)
    }

    /// N.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// 40 kbit/s * 2^N; nothing for N = 0.
    pub const fn rate(self) -> Rate {
        match self.0 {
            0 => Rate::from_bits_per_sec(0),
            n => Rate::from_bits_per_sec(BASE.bits_per_sec() << n),
        }
    }

    /// The highest code whose rate is at most `rate`: a router's rounding.
    pub fn at_most(rate: Rate) -> Self {
        Self((rate.bits_per_sec() / BASE.bits_per_sec()).max(1).ilog2().min(15) as u8)
    }

    /// The lowest code whose rate is at least `rate`, [`RateCode::MAX`] where there is none: the rounding of a host
    /// that asks for enough.
    pub fn at_least(rate: Rate) -> Self {
        let below = Self::at_most(rate);
        if below.rate() < rate && below < Self::MAX { Self(below.0 + 1) } else { below }
    }
}

impl fmt::Display for RateCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rate())
    }
}
