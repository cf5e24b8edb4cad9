//! The QS Nonce, which prevents a receiver from claiming a higher rate than arrived.
//!
//! Reference: RFC 4782, section 3.4. The sender fills 30 bits at random: two for every step of the rate, from "15 to
//! 14" in the first two bits to "1 to 0" in the last two. A router that reduces the rate by some steps draws those
//! steps' bits anew. The receiver echoes what arrived with the rate; the sender compares the bits of all steps below
//! the echoed rate, and a receiver that claims S steps more than arrived has to guess 2 S bits.
//!
//! Sarolahti, Allman and Floyd, section 8, analyse a nonce of X bits per step and print a probability of success that
//! grows with the number of steps S. Guessing X S independent bits succeeds with 2^(-X S); the tests below measure it.

use crate::quick_start::code::RateCode;
use crate::rng::Substream;

/// Bits of a nonce.
const BITS: u32 = 30;
const MASK: u32 = (1 << BITS) - 1;
/// One bit of each of the 15 steps.
const FIRST_BIT_OF_EACH_STEP: u32 = 0x2aaa_aaaa;
/// Bits of each step.
pub const BITS_PER_STEP: u32 = 2;

/// A QS Nonce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nonce(u32);

impl Nonce {
    /// The low 30 bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & MASK)
    }

    /// Its 30 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// A sender's nonce.
    pub fn random(rng: &mut Substream) -> Self {
        Self::from_bits(rng.next_u64() as u32)
    }

    /// The bits of the steps from `code` down to 0: the last 2 N bits.
    const fn steps_below(code: RateCode) -> u32 {
        (1 << (BITS_PER_STEP * code.bits() as u32)) - 1
    }

    /// The nonce after a router reduces the rate from `from` to `to`: the bits of the steps between are drawn anew.
    #[must_use]
    pub fn reduced(self, from: RateCode, to: RateCode, rng: &mut Substream) -> Self {
        let steps = Self::steps_below(from) & !Self::steps_below(to);
        Self((self.0 & !steps) | (rng.next_u64() as u32 & steps))
    }

    /// Whether an echo of `echoed` with the rate `code` may be true: all steps below that rate are untouched.
    pub fn confirms(self, echoed: Self, code: RateCode) -> bool {
        self.confirms_by(BITS_PER_STEP, echoed, code)
    }

    /// As [`Nonce::confirms`], by only this many bits of each step, 0 to 2: the X of section 8.
    pub fn confirms_by(self, bits_per_step: u32, echoed: Self, code: RateCode) -> bool {
        let compared = match bits_per_step {
            0 => 0,
            1 => FIRST_BIT_OF_EACH_STEP,
            _ => MASK,
        };
        (self.0 ^ echoed.0) & Self::steps_below(code) & compared == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Substream {
        Substream::new(7, "nonce", 0)
    }

    fn code(bits: u8) -> RateCode {
        RateCode::from_bits(bits)
    }

    #[test]
    fn the_steps_lie_where_the_table_puts_them() {
        // Bits 0-1 are "15 to 14", bits 28-29 are "1 to 0"; bit 0 is the most significant.
        assert_eq!(Nonce::steps_below(RateCode::MAX) & !Nonce::steps_below(code(14)), 0b11 << 28);
        assert_eq!(Nonce::steps_below(code(1)), 0b11);
        assert_eq!(Nonce::steps_below(RateCode::ZERO), 0);
    }

    #[test]
    fn a_reduction_changes_its_own_steps_only() {
        let mut rng = rng();
        let mut changed = 0;
        for _ in 0..1000 {
            let sent = Nonce::random(&mut rng);
            let arrived = sent.reduced(code(12), code(9), &mut rng);
            assert!(sent.confirms(arrived, code(9)));
            changed |= sent.bits() ^ arrived.bits();
        }
        // Steps 12 to 11, 11 to 10 and 10 to 9: six bits above the lowest 18.
        assert_eq!(changed, 0b11_1111 << 18);
    }

    #[test]
    fn a_receiver_that_claims_more_guesses_two_bits_a_step() {
        let mut rng = rng();
        for steps in 1..=4u8 {
            let tries = 1 << 16;
            let mut believed = [0u32; 3];
            for _ in 0..tries {
                let sent = Nonce::random(&mut rng);
                let arrived = sent.reduced(code(12), code(12 - steps), &mut rng);
                // It claims that nothing was reduced.
                assert_eq!(sent.confirms(arrived, code(12)), sent.confirms_by(2, arrived, code(12)));
                for (bits, believed) in (0..).zip(&mut believed) {
                    *believed += u32::from(sent.confirms_by(bits, arrived, code(12)));
                }
            }
            for (bits, believed) in (0u32..).zip(believed) {
                // 2^(-X S) of 65,536, within five standard deviations.
                let expected = f64::from(tries) / f64::from(1u32 << (bits * u32::from(steps)));
                assert!((f64::from(believed) - expected).abs() <= 5.0 * libm::sqrt(expected), "{steps}: {believed}");
            }
        }
    }
}
