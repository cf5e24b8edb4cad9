//! Hints on a coarse logarithmic grid, so a hint reveals little about its sender.
//!
//! Reference: draft-ietf-scone-protocol, section on rate signals: 100 kbit/s x 10^(n/20); Client Hints (`Downlink`)
//! rounds for the same reason. A rate becomes the largest step of the grid that does not exceed it. With few steps per
//! decade many clients share each value. The hint stays below the truth, which costs little: a scheme launches a little
//! slower.
//!
//! Differences from the references: the number of steps is a parameter; SCONE's is 20. Client Hints round to the
//! nearest multiple of a constant and add noise, which hides little of a high rate and much of a low one.
//!
//! Status: worked examples; the grid's properties for random rates.

use alloc::format;

use crate::registry::ConfigError;
use crate::units::Rate;

/// How coarse a hint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Grid {
    /// Steps per factor of ten, 1 to 100. Default 20, as in SCONE: a factor of 1.12 from step to step. With 5, which is
    /// 1.58, the rates of all subscribers of a product, such as 45 to 50 Mbit/s, become one value.
    pub steps_per_decade: u8,
    /// The lowest step. Slower links send no hint. Default 100 kbit/s, as in SCONE.
    pub lowest: Rate,
    /// No step above this rate is used. Default 10 Gbit/s: chosen, because a higher step would identify the few clients
    /// that have more.
    pub highest: Rate,
}

impl Default for Grid {
    fn default() -> Self {
        Self { steps_per_decade: 20, lowest: Rate::from_bits_per_sec(100_000), highest: Rate::from_mbit(10_000) }
    }
}

impl Grid {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("steps_per_decade", self.steps_per_decade, 1..=100)?;
        if self.lowest == Rate::ZERO || self.lowest > self.highest {
            let allowed = format!("a rate above zero, up to highest, {}", self.highest);
            return Err(ConfigError::new("lowest", self.lowest, allowed));
        }
        Ok(())
    }

    /// The rate of step `n`: lowest x 10^(n / steps), rounded to the bit per second.
    pub fn step(&self, n: u32) -> Rate {
        let exponent = f64::from(n) / f64::from(self.steps_per_decade.max(1));
        Rate::from_bits_per_sec(libm::round(self.lowest.bits_per_sec() as f64 * libm::pow(10.0, exponent)) as u64)
    }

    /// The largest step that exceeds neither `rate` nor the highest rate; `None` below the lowest.
    pub fn quantize(&self, rate: Rate) -> Option<Rate> {
        let rate = rate.min(self.highest);
        if self.lowest == Rate::ZERO || rate < self.lowest {
            return None;
        }
        let decades = libm::log10(rate.bits_per_sec() as f64 / self.lowest.bits_per_sec() as f64);
        let near = libm::floor(decades * f64::from(self.steps_per_decade.max(1))) as u32;
        // Rounding may put a rate on the grid on either side of its step.
        [near + 1, near, near.saturating_sub(1)].into_iter().map(|n| self.step(n)).find(|step| *step <= rate)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIVE: Grid =
        Grid { steps_per_decade: 5, lowest: Rate::from_bits_per_sec(100_000), highest: Rate::from_mbit(10_000) };

    fn quantized(text: &str) -> u64 {
        FIVE.quantize(text.parse().unwrap()).unwrap().bits_per_sec()
    }

    #[test]
    fn a_hint_is_the_next_lower_step() {
        // Steps are 10^(1/5) = 1.5849 apart: 10, 15.849, 25.119, 39.811, 63.096, 100 Mbit/s.
        assert_eq!(quantized("25mbit"), 15_848_932);
        assert_eq!(quantized("50mbit"), 39_810_717);
        assert_eq!(quantized("45mbit"), 39_810_717);
        assert_eq!(quantized("8mbit"), 6_309_573);
        assert_eq!(quantized("32mbit"), 25_118_864);
    }

    #[test]
    fn a_rate_on_the_grid_stays() {
        assert_eq!(quantized("100kbit"), 100_000);
        assert_eq!(quantized("10mbit"), 10_000_000);
        assert_eq!(quantized("1gbit"), 1_000_000_000);
    }

    #[test]
    fn extreme_rates_are_hidden() {
        assert_eq!(Grid::default().quantize(Rate::from_bits_per_sec(99_999)), None);
        assert_eq!(quantized("400gbit"), 10_000_000_000);
        assert!(Grid { steps_per_decade: 0, ..Grid::default() }.validate().is_err());
        assert!(Grid { highest: Rate::from_bits_per_sec(1), ..Grid::default() }.validate().is_err());
    }

    #[test]
    fn scones_grid_is_one_of_them() {
        // n = 126 is 10^5 x 10^6.3 = 199.5 Gbit/s.
        let scone = Grid { highest: Rate::from_mbit(1_000_000), ..Grid::default() };
        assert_eq!(scone.step(126).bits_per_sec(), 199_526_231_497);
        assert_eq!(scone.quantize(Rate::from_mbit(200_000)), Some(scone.step(126)));
    }

    proptest! {
        #[test]
        fn a_hint_never_exceeds_the_truth_and_is_at_most_a_step_below(
            bits in 100_000u64..=10_000_000_000, steps in 1u8..=100,
        ) {
            let grid = Grid { steps_per_decade: steps, ..Grid::default() };
            let rate = Rate::from_bits_per_sec(bits);
            let hint = grid.quantize(rate).unwrap();
            prop_assert!(hint <= rate);
            prop_assert!(hint.bits_per_sec() as f64 * libm::pow(10.0, 1.0 / f64::from(steps)) + 2.0 >= bits as f64);
            prop_assert_eq!(grid.quantize(hint), Some(hint), "a second time changes nothing");
        }
    }
}
