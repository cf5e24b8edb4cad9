//! The rates that a Rate Request can name.
//!
//! Reference: RFC 4782, section 3.1. It rounds nowhere explicitly. Here a host that asks for enough rounds up, and a
//! router that grants what is left rounds down; both are arguments. [`RateEncoding::Linear`] is the other encoding of
//! ns-2 (`qs_rate_function 1`); it does not fit the packet format and serves only for comparisons.

pub use crate::quick_start::code::RateCode;

use crate::quick_start::nonce::Nonce;
use crate::units::Rate;

/// A step of ns-2's linear encoding: 10,240 bytes/s.
const LINEAR_STEP: Rate = Rate::from_bits_per_sec(81_920);

/// Steps that fit where the nonce would be.
const MOST_STEPS: u64 = (1 << 30) - 1;

/// How rates are named in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RateEncoding {
    /// RFC 4782: steps of a factor of two.
    #[default]
    Exponential,
    /// ns-2's `qs_rate_function 1`: multiples of 10,240 bytes/s. Four bits are too few for it: the option carries the
    /// number of steps in place of the nonce, and there is none. For comparisons in simulations.
    Linear,
}

/// The rounding of a rate that the encoding does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Rounding {
    /// To the next lower rate.
    #[default]
    Down,
    /// To the next higher one; a host asks for enough.
    Up,
}

impl RateEncoding {
    /// The rate that a request names by its `rate` and `nonce`.
    pub fn requested(self, rate: RateCode, nonce: Nonce) -> Rate {
        match self {
            Self::Exponential => rate.rate(),
            Self::Linear => Rate::from_bits_per_sec(u64::from(nonce.bits()) * LINEAR_STEP.bits_per_sec()),
        }
    }

    /// `rate` and `nonce` of a request for `rate`, which is rounded already; no step of the nonce is filled.
    pub fn written(self, rate: Rate) -> (RateCode, Nonce) {
        match self {
            Self::Exponential => (RateCode::at_most(rate), Nonce::default()),
            Self::Linear => {
                let steps = rate.bits_per_sec() / LINEAR_STEP.bits_per_sec();
                (RateCode::ZERO, Nonce::from_bits(steps.min(MOST_STEPS) as u32))
            }
        }
    }

    /// The rate that a packet carries instead of `rate`.
    pub fn round(self, rate: Rate, rounding: Rounding) -> Rate {
        match (self, rounding) {
            (Self::Exponential, Rounding::Down) => RateCode::at_most(rate).rate(),
            (Self::Exponential, Rounding::Up) => RateCode::at_least(rate).rate(),
            (Self::Linear, rounding) => {
                let (rate, step) = (rate.bits_per_sec(), LINEAR_STEP.bits_per_sec());
                let steps = if rounding == Rounding::Up { rate.div_ceil(step) } else { rate / step };
                Rate::from_bits_per_sec(steps.saturating_mul(step))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbit(kbit: u64) -> Rate {
        Rate::from_bits_per_sec(kbit * 1000)
    }

    #[test]
    fn codes_double_from_80_kbit_to_1_31_gbit() {
        // 40 kbit/s * 2^1 and 40 kbit/s * 2^15 = 1,310,720 kbit/s.
        assert_eq!(RateCode::from_bits(1).rate(), kbit(80));
        assert_eq!(RateCode::MAX.rate(), kbit(1_310_720));
        assert_eq!(RateCode::ZERO.rate(), kbit(0));
        assert_eq!(RateCode::from_bits(0xf3).bits(), 3);
    }

    #[test]
    fn hosts_round_up_and_routers_down() {
        // 90 % of 100 Mbit/s: 40 kbit/s * 2^11 = 81.92 Mbit/s below, 2^12 = 163.84 Mbit/s above.
        assert_eq!(RateCode::at_most(kbit(90_000)).rate(), kbit(81_920));
        assert_eq!(RateCode::at_least(kbit(90_000)).rate(), kbit(163_840));
        assert_eq!(RateCode::at_least(kbit(163_840)).rate(), kbit(163_840));
        assert_eq!((RateCode::at_most(kbit(79)), RateCode::at_least(kbit(79)).rate()), (RateCode::ZERO, kbit(80)));
        assert_eq!(RateCode::at_least(Rate::from_mbit(10_000)), RateCode::MAX);
        assert_eq!(RateCode::at_most(Rate::from_bits_per_sec(u64::MAX)), RateCode::MAX);
    }

    #[test]
    fn both_encodings_of_ns_2_grant_what_it_grants() {
        // ns-2, 90 % of 100 Mbit/s = 11.25 MB/s: 10.24 MB/s in powers of two, 11.24352 MB/s in steps of 10,240 bytes/s.
        let share = Rate::from_bits_per_sec(90_000_000);
        let granted = |encoding: RateEncoding| encoding.round(share, Rounding::Down).bits_per_sec() / 8;
        assert_eq!((granted(RateEncoding::Exponential), granted(RateEncoding::Linear)), (10_240_000, 11_243_520));
        assert_eq!(RateEncoding::Linear.round(share, Rounding::Up).bits_per_sec() / 8, 11_253_760);
        let most = RateEncoding::Linear.round(Rate::from_bits_per_sec(u64::MAX), Rounding::Up);
        assert_eq!(most, Rate::from_bits_per_sec(u64::MAX));
    }

    #[test]
    fn every_code_is_its_own_rounding() {
        for bits in 0..16 {
            let code = RateCode::from_bits(bits);
            assert_eq!((RateCode::at_most(code.rate()), RateCode::at_least(code.rate())), (code, code));
        }
    }
}
