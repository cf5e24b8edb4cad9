//! Descriptions of one sample.

use super::{count, finite, same};

/// The arithmetic mean.
///
/// The sample is summed relative to its first value, so that the mean of equal values is that value, without rounding.
///
/// `None` if `values` is empty, holds a non-finite value, or overflows.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    mean_of(values.iter().copied())
}

/// [`mean`] of values that are not stored side by side.
pub(super) fn mean_of(mut values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let length = count(values.len());
    let first = values.next()?;
    let excess: f64 = values.map(|value| value - first).sum();
    finite(first + excess / length)
}

/// The median: the middle value, or the mean of the two middle values.
///
/// `None` if `values` is empty, holds a non-finite value, or overflows.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which the share `probability` of the sample lies, linearly interpolated between order statistics.
///
/// This is type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), the default of R and `NumPy`:
/// of n sorted values, counted from 0, it takes the one at position (n - 1) * probability.
///
/// `None` if `values` is empty, holds a non-finite value, or overflows, or if `probability` is not in [0, 1].
#[must_use]
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values)?, probability)
}

/// [`quantile`] of values already in ascending order.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the position is rounded down and lies between 0 and the last index"
)]
pub(super) fn quantile_of_sorted(sorted: &[f64], probability: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&probability) {
        return None;
    }
    let last = sorted.len().checked_sub(1)?;
    let position = count(last) * probability;
    let below = (position as usize).min(last);
    let low = sorted[below];
    let high = sorted[(below + 1).min(last)];
    let interpolated = low + (position - count(below)) * (high - low);
    // Rounding must not lift the result over the order statistic above it.
    finite(interpolated.min(high))
}

/// The smallest value that, with all smaller ones, has the part `probability` of the weight. `values` have their
/// weights beside them.
///
/// `None` if there is no weight, if a value is not finite, if a weight is negative or not finite, or if `probability`
/// is not in [0, 1].
#[must_use]
pub fn weighted_quantile(values: &[(f64, f64)], probability: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    weighted_quantile_of_sorted(sorted.into_iter(), probability)
}

/// [`weighted_quantile`] of values already in ascending order. The iterator runs twice.
#[must_use]
pub fn weighted_quantile_of_sorted(values: impl Iterator<Item = (f64, f64)> + Clone, probability: f64) -> Option<f64> {
    let is_sound = |(value, weight): (f64, f64)| value.is_finite() && weight.is_finite() && weight >= 0.0;
    if !(0.0..=1.0).contains(&probability) || !values.clone().all(is_sound) {
        return None;
    }
    let all: f64 = values.clone().map(|(_, weight)| weight).sum();
    if !(all.is_finite() && all > 0.0) {
        return None;
    }
    // The sum of weights is as exact as its rounding.
    let wanted = probability * all * (1.0 - 1e-12);
    let mut sum = 0.0;
    let mut last = None;
    for (value, weight) in values.filter(|(_, weight)| *weight > 0.0) {
        sum += weight;
        last = Some(value);
        if sum >= wanted {
            break;
        }
    }
    last
}

/// The standard deviation of the population, estimated from a sample: the root of the sum of squared deviations over
/// n - 1.
///
/// `None` if there are fewer than two values, one is not finite, or the sum overflows.
#[must_use]
pub fn sample_standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    finite((squares / count(values.len() - 1)).sqrt())
}

/// The steps of the empirical distribution function: each distinct value, ascending, with the share of the sample that
/// is at most that value. The last share is 1.
///
/// Empty if `values` is empty or holds a non-finite value.
#[must_use]
pub fn empirical_cdf(values: &[f64]) -> Vec<(f64, f64)> {
    let sorted = sorted(values).unwrap_or_default();
    let mut steps = Vec::new();
    let mut at_most = 0;
    for equal in sorted.chunk_by(|&left, &right| same(left, right)) {
        at_most += equal.len();
        steps.push((equal[0], count(at_most) / count(sorted.len())));
    }
    steps
}

/// The values in ascending order; `None` if there are none or one is not finite.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighted_quantile_is_a_value_that_reaches_its_part_of_the_weight() {
        // Weights 1, 3 and 6 of 10 in ascending order of values: they end at 0.1, 0.4 and 1.
        let values = [(3.0, 6.0), (1.0, 1.0), (2.0, 3.0)];
        for (probability, expected) in [(0.0, 1.0), (0.1, 1.0), (0.11, 2.0), (0.4, 2.0), (0.5, 3.0), (1.0, 3.0)] {
            assert_eq!(weighted_quantile(&values, probability), Some(expected), "{probability}");
        }
        // What has no weight is no value, and ten tenths are one.
        let tenths: Vec<(f64, f64)> = (0..10).map(|place| (f64::from(place), 0.1)).collect();
        assert_eq!(weighted_quantile(&tenths, 1.0), Some(9.0));
        assert_eq!(weighted_quantile(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)], 0.0), Some(2.0));
        assert_eq!(weighted_quantile(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)], 1.0), Some(2.0));
        for (values, probability) in [
            (&[][..], 0.5),
            (&[(1.0, 0.0)], 0.5),
            (&[(f64::NAN, 1.0)], 0.5),
            (&[(1.0, -1.0), (2.0, 3.0)], 0.5),
            (&[(1.0, f64::INFINITY)], 0.5),
            (&[(1.0, 1.0)], 1.5),
            (&[(1.0, 1.0)], f64::NAN),
        ] {
            assert_eq!(weighted_quantile(values, probability), None, "{values:?} {probability}");
        }
    }

    #[test]
    fn mean_of_a_few_values() {
        // (1 + 2 + 6) / 3 = 3
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, f64::NAN]), None);
        assert_eq!(mean(&[f64::INFINITY]), None);
    }

    #[test]
    fn mean_of_equal_values_is_exact() {
        // Thirty times 0.1 summed from zero and divided by 30 is not 0.1 in binary.
        assert_eq!(mean(&[0.1; 30]), Some(0.1));
    }

    #[test]
    fn median_of_odd_and_even_samples() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        // (2 + 5) / 2 = 3.5
        assert_eq!(median(&[9.0, 1.0, 5.0, 2.0]), Some(3.5));
        assert_eq!(median(&[4.0]), Some(4.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn quantile_interpolates_between_order_statistics() {
        let values = [40.0, 10.0, 30.0, 20.0];
        // Position (4 - 1) * 0.25 = 0.75: 10 + 0.75 * (20 - 10) = 17.5
        assert_eq!(quantile(&values, 0.25), Some(17.5));
        // Position 3 * 0.9 = 2.7: 30 + 0.7 * (40 - 30) = 37
        assert!((quantile(&values, 0.9).unwrap() - 37.0).abs() < 1e-12);
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 1.0), Some(40.0));
        assert_eq!(quantile(&values, 1.1), None);
        assert_eq!(quantile(&values, -0.1), None);
        assert_eq!(quantile(&values, f64::NAN), None);
    }

    #[test]
    fn quantile_never_falls_as_probability_rises() {
        let values = [0.1, 0.3, 0.3, 0.7, 1.9, 1e9];
        let quantiles: Vec<f64> = (0..=1000).map(|step| quantile(&values, f64::from(step) / 1000.0).unwrap()).collect();
        assert!(quantiles.is_sorted());
    }

    #[test]
    fn standard_deviation_divides_by_one_less_than_the_size() {
        // Mean 5; squares 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32; sqrt(32 / 7)
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(sample_standard_deviation(&values), Some((32.0_f64 / 7.0).sqrt()));
        assert_eq!(sample_standard_deviation(&[0.1; 30]), Some(0.0));
        assert_eq!(sample_standard_deviation(&[1.0]), None);
        assert_eq!(sample_standard_deviation(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn empirical_cdf_has_one_step_per_distinct_value() {
        // One of four values is at most 1, three are at most 2, all are at most 5.
        assert_eq!(empirical_cdf(&[2.0, 5.0, 1.0, 2.0]), vec![(1.0, 0.25), (2.0, 0.75), (5.0, 1.0)]);
        assert_eq!(empirical_cdf(&[]), vec![]);
        assert_eq!(empirical_cdf(&[1.0, f64::NAN]), vec![]);
    }
}
