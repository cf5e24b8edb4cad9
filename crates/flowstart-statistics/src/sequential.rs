//! Intervals that hold at every look, and how many values a trial needs.
//!
//! Who looks at a growing sample again and again, and stops when an interval excludes zero, errs more often than the
//! interval's level says. The intervals here hold at all looks at once: Waudby-Smith, Arbour, Sinha, Kennedy and
//! Ramdas, "Time-uniform Central Limit Theory and Asymptotic Confidence Sequences" (2024), section 2, with the boundary
//! of Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm" (1970). They are asymptotic, like
//! those of the central limit theorem: the first looks should have some hundred values.
//!
//! Their width relative to the standard error depends on the number of values and is least near a number that is
//! planned.

use statrs::distribution::{ContinuousCDF, Normal};

use super::summary::{mean, quantile, sample_standard_deviation};
use super::{Interval, count, finite, is_confidence_level};

/// Probability that a quantile's density is estimated from, on both sides of it.
const NEAR: f64 = 0.05;

/// The boundary's parameter, times the planned number of values: nearly the one with which it is tightest there, by the
/// first terms of the Lambert function of the exact one.
fn tuning(level: f64) -> f64 {
    let alpha = 1.0 - level;
    let twice = -2.0 * alpha.ln();
    twice + (twice + 1.0).ln()
}

/// How many standard errors an interval of this level reaches to each side, so that it holds at every look, if the
/// sample has this part of the planned number of values.
///
/// `None` if `level` is not strictly between 0 and 1, or `part` is not positive.
#[must_use]
pub fn errors_at_every_look(part: f64, level: f64) -> Option<f64> {
    if !is_confidence_level(level) || part.is_nan() || part <= 0.0 {
        return None;
    }
    // t rho^2 in the paper's terms.
    let time = part * tuning(level);
    let squared = 2.0 * (time + 1.0) / time * ((time + 1.0).sqrt() / (1.0 - level)).ln();
    finite(squared.sqrt())
}

/// How many standard errors an interval of this level reaches to each side if it is looked at once.
///
/// `None` if `level` is not strictly between 0 and 1.
#[must_use]
pub fn errors_at_one_look(level: f64) -> Option<f64> {
    is_confidence_level(level).then(|| Normal::standard().inverse_cdf(f64::midpoint(level, 1.0))).and_then(finite)
}

/// The interval of an estimate that holds at every look, and the p-value of its being zero that does: at most the share
/// `p` of trials ever has a smaller one than p, if it is zero. `values` is the number of values of the sample,
/// `planned` the number at which the interval is tightest.
///
/// `None` if a number is not finite, the standard error is negative, or there are no values.
#[must_use]
pub fn at_every_look(
    estimate: f64,
    standard_error: f64,
    values: f64,
    planned: f64,
    level: f64,
) -> Option<(Interval, f64)> {
    if !(finite(estimate)?.is_finite() && finite(standard_error)? >= 0.0) {
        return None;
    }
    if standard_error == 0.0 {
        return Some((Interval::point(estimate), f64::from(u8::from(estimate == 0.0))));
    }
    let part = values / planned;
    let margin = errors_at_every_look(part, level)? * standard_error;
    let time = part * tuning(level);
    let squared = (estimate / standard_error).powi(2);
    let p_value = (time + 1.0).sqrt() * (-squared * time / (2.0 * (time + 1.0))).exp();
    let interval = Interval { low: finite(estimate - margin)?, high: finite(estimate + margin)? };
    Some((interval, finite(p_value)?.min(1.0)))
}

/// The variance of the logarithm of a sample's mean, times the number of values.
///
/// `None` as for [`sample_standard_deviation`], and where the mean is not positive.
#[must_use]
pub fn log_variance_of_mean(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    finite((sample_standard_deviation(values)? / mean).powi(2))
}

/// The variance of the logarithm of a sample's quantile, times the number of values. The density at the quantile comes
/// from the quantiles around it (Siddiqui, "Distribution of Quantiles in Samples from a Bivariate Population", 1960).
///
/// `None` as for [`quantile`], where values are not positive, and where there are too few or all near the quantile are
/// the same.
#[must_use]
pub fn log_variance_of_quantile(values: &[f64], probability: f64) -> Option<f64> {
    let near = NEAR.min(probability / 4.0).min((1.0 - probability) / 4.0);
    // Fewer values would not tell the quantiles apart.
    if near.is_nan() || count(values.len()) * near < 1.0 {
        return None;
    }
    let at = |probability| quantile(values, probability).filter(|value| *value > 0.0).map(f64::ln);
    let slope = (at(probability + near)? - at(probability - near)?) / (2.0 * near);
    finite(probability * (1.0 - probability) * slope * slope).filter(|variance| *variance > 0.0)
}

/// How many values a trial needs to find that one of two groups differs by the factor `effect`. The logarithm of what
/// is compared has `variance` over the number of values in each group, `share` of the values are in the second group,
/// an interval reaches `errors` standard errors to each side, and the difference is found with the probability `power`.
///
/// `None` if there is no effect, or a number is out of its range.
#[must_use]
pub fn values_needed(variance: f64, effect: f64, share: f64, errors: f64, power: f64) -> Option<f64> {
    if !(share > 0.0 && share < 1.0 && effect > 0.0 && is_confidence_level(power)) {
        return None;
    }
    let reach = errors + Normal::standard().inverse_cdf(power);
    let needed = (reach / effect.ln()).powi(2) * variance * (1.0 / share + 1.0 / (1.0 - share));
    finite(needed).filter(|needed| *needed > 0.0).map(f64::ceil)
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::LEVEL;

    /// A value of the normal distribution.
    fn normal(random: &mut Pcg64) -> f64 {
        let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        Normal::standard().inverse_cdf(uniform.clamp(1e-12, 1.0 - 1e-12))
    }

    #[test]
    fn the_boundary_by_hand() {
        // alpha = 0.05: -2 ln alpha = 5.991, tuned to 5.991 + ln 6.991 = 7.936. There 2 * 8.936 / 7.936 *
        // ln(sqrt(8.936) / 0.05) = 2.252 * 4.0908 = 9.2127, whose root is 3.0352.
        assert!((errors_at_every_look(1.0, 0.95).unwrap() - 3.0352).abs() < 1e-3);
        assert!((errors_at_one_look(0.95).unwrap() - 1.959_964).abs() < 1e-6);
        // It is least at the planned number of values, as far as a tenth.
        let at = |part| errors_at_every_look(part, 0.95).unwrap();
        assert!(at(1.0) < at(0.2) && at(1.0) < at(10.0), "{} {} {}", at(0.2), at(1.0), at(10.0));
        // An estimate as far from zero as the interval reaches has the p-value of its level.
        let (interval, p) = at_every_look(at(0.5), 1.0, 500.0, 1000.0, 0.95).unwrap();
        assert!(interval.low.abs() < 1e-12 && (p - 0.05).abs() < 1e-12, "{interval:?} {p}");
    }

    /// Of 400 trials without a difference, whose values are as skewed as completion times, and which are looked at
    /// after each 20 values from 200 to 4000, few ever have an interval without zero. With the intervals for one look a
    /// third has.
    #[test]
    fn looking_often_does_no_harm() {
        let mut random = Pcg64::seed_from_u64(7);
        let (mut wrong, mut wrong_at_one_look) = (0, 0);
        for _ in 0..400 {
            let (mut sums, mut squares, mut counts) = ([0.0; 2], [0.0; 2], [0.0; 2]);
            let (mut is_wrong, mut is_wrong_at_one_look) = (false, false);
            for place in 1..=4000 {
                let group = usize::from(random.next_u64() & 1 == 1);
                let value = (0.8 * normal(&mut random)).exp();
                sums[group] += value;
                squares[group] += value * value;
                counts[group] += 1.0;
                if place < 200 || place % 20 > 0 {
                    continue;
                }
                let means = [0, 1].map(|group: usize| sums[group] / counts[group]);
                let variances = [0, 1].map(|group: usize| {
                    (squares[group] / counts[group] - means[group] * means[group]) / means[group].powi(2)
                });
                let error = (variances[0] / counts[0] + variances[1] / counts[1]).sqrt();
                let estimate = means[1].ln() - means[0].ln();
                let (interval, _) = at_every_look(estimate, error, f64::from(place), 2000.0, LEVEL).unwrap();
                is_wrong |= !interval.contains(0.0);
                is_wrong_at_one_look |= estimate.abs() > errors_at_one_look(LEVEL).unwrap() * error;
            }
            wrong += u32::from(is_wrong);
            wrong_at_one_look += u32::from(is_wrong_at_one_look);
        }
        // 5 % of 400 are 20.
        assert!(wrong <= 20, "{wrong}");
        assert!(wrong_at_one_look >= 100, "{wrong_at_one_look}");
    }

    #[test]
    fn variances_of_normal_logarithms() {
        let mut random = Pcg64::seed_from_u64(3);
        let values: Vec<f64> = (0..20_000).map(|_| (0.5 * normal(&mut random)).exp()).collect();
        // exp(0.25) - 1 = 0.284; p (1 - p) / density^2 * 0.25: pi / 8 = 0.3927 at the median, 1.116 at 0.95.
        for (variance, expected, near) in [
            (log_variance_of_mean(&values), 0.284, 0.02),
            (log_variance_of_quantile(&values, 0.5), std::f64::consts::FRAC_PI_8, 0.03),
            (log_variance_of_quantile(&values, 0.95), 1.116, 0.12),
        ] {
            let variance = variance.unwrap();
            assert!((variance - expected).abs() < near, "{variance}, {expected}");
        }
        assert_eq!(log_variance_of_quantile(&[1.0; 100], 0.5), None);
        assert_eq!(log_variance_of_quantile(&[1.0, 2.0], 0.5), None);
        assert_eq!(log_variance_of_mean(&[0.0, 0.0]), None);
    }

    #[test]
    fn values_needed_by_hand() {
        // (1.96 + 0.8416)^2 / ln(1.1)^2 * 0.25 * 4 = 7.849 / 0.009084 = 864.
        assert_eq!(values_needed(0.25, 1.1, 0.5, 1.959_964, 0.8), Some(865.0));
        // A tenth in the second group: 1 / 0.1 + 1 / 0.9 = 11.11 in place of 4.
        assert_eq!(values_needed(0.25, 1.1, 0.1, 1.959_964, 0.8), Some(2401.0));
        for (effect, share) in [(1.0, 0.5), (-1.0, 0.5), (f64::NAN, 0.5), (1.1, 0.0), (1.1, 1.0)] {
            assert_eq!(values_needed(0.25, effect, share, 2.0, 0.8), None, "{effect} {share}");
        }
    }
}
