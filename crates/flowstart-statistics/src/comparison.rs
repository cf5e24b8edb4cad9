//! Comparisons of unpaired samples, and the correction for making many comparisons.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::summary::{mean, sample_standard_deviation};
use super::{Interval, count, finite, is_confidence_level};

/// The confidence interval of mean(b) - mean(a) for two unpaired samples whose variances may differ: Student's t with
/// the degrees of freedom of Welch, "The Generalization of Student's Problem when Several Different Population
/// Variances are Involved" (1947).
///
/// If neither sample varies, the interval is the single point mean(b) - mean(a).
///
/// `None` if a sample has fewer than two values or a non-finite one, `level` is not strictly between 0 and 1, or a sum
/// overflows.
#[must_use]
pub fn difference_interval(a: &[f64], b: &[f64], level: f64) -> Option<Interval> {
    if !is_confidence_level(level) {
        return None;
    }
    let difference = finite(mean(b)? - mean(a)?)?;
    let variance_of_mean = |values: &[f64]| {
        let deviation = sample_standard_deviation(values)?;
        Some(deviation * deviation / count(values.len()))
    };
    let (variance_a, variance_b) = (variance_of_mean(a)?, variance_of_mean(b)?);
    welch(difference, [(variance_a, count(a.len())), (variance_b, count(b.len()))], level).map(|(interval, _)| interval)
}

/// The interval of a difference of two independent estimates, and the p-value of there being none. Each has its
/// variance and the number of values that it was estimated from, two or more.
///
/// `None` if the variances are not finite or leave no degree of freedom.
#[must_use]
pub fn welch(difference: f64, [a, b]: [(f64, f64); 2], level: f64) -> Option<(Interval, f64)> {
    let variance = finite(a.0 + b.0)?;
    if variance == 0.0 {
        return Some((Interval::point(difference), f64::from(u8::from(difference == 0.0))));
    }
    // Welch's equation divided through by the squared variance, which could overflow.
    let part = |(own, values): (f64, f64)| (own / variance) * (own / variance) / (values - 1.0);
    let degrees_of_freedom = 1.0 / (part(a) + part(b));
    let margin = upper_t_quantile(degrees_of_freedom, (1.0 - level) / 2.0)? * variance.sqrt();
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    let p_value = 2.0 * distribution.sf(difference.abs() / variance.sqrt());
    Some((Interval { low: finite(difference - margin)?, high: finite(difference + margin)? }, p_value))
}

/// The value that Student's t exceeds with probability `tail`, which lies strictly between 0 and 1/2.
///
/// Found by bisection, because the inverse in statrs iterates without a bound and panics where an iterate is NaN.
///
/// `None` if there are no degrees of freedom.
#[must_use]
pub fn upper_t_quantile(degrees_of_freedom: f64, tail: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    let mut low = 0.0;
    let mut high = 1.0;
    while distribution.sf(high) > tail {
        low = high;
        high *= 2.0;
        finite(high)?;
    }
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return Some(high);
        }
        if distribution.sf(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Which hypotheses to reject so that the probability of any false rejection in the whole family is at most `alpha`:
/// Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979).
///
/// Of m p-values in ascending order, the first is compared with alpha / m, the second with alpha / (m - 1), and so on
/// until one is larger than its bound; those before it are rejected. The answer is in the order of `p_values`.
///
/// A test that could not be made (`None`, or a number that is not in [0, 1]) is not rejected and does not count in m.
/// Nothing is rejected if `alpha` is not strictly between 0 and 1.
#[must_use]
pub fn holm(p_values: &[Option<f64>], alpha: f64) -> Vec<bool> {
    let mut rejected = vec![false; p_values.len()];
    if !(alpha > 0.0 && alpha < 1.0) {
        return rejected;
    }
    let mut tests: Vec<(f64, usize)> = p_values
        .iter()
        .enumerate()
        .filter_map(|(index, p)| Some((p.filter(|p| (0.0..=1.0).contains(p))?, index)))
        .collect();
    tests.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    for (rank, &(p, index)) in tests.iter().enumerate() {
        if p > alpha / count(tests.len() - rank) {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() <= tolerance, "{actual} is not within {tolerance} of {expected}");
    }

    /// The tables of Student's t that every textbook prints.
    #[test]
    fn t_quantiles_match_the_printed_table() {
        for (degrees_of_freedom, tail, expected) in [
            (1.0, 0.025, 12.706),
            (4.0, 0.025, 2.776),
            (10.0, 0.05, 1.812),
            (30.0, 0.005, 2.750),
            (120.0, 0.025, 1.980),
            (1e7, 0.025, 1.960),
        ] {
            let quantile = upper_t_quantile(degrees_of_freedom, tail).unwrap();
            assert_close(quantile, expected, 0.0005);
        }
        // With one degree of freedom the distribution is Cauchy's: tan(pi / 4) = 1 is exceeded with probability 1/4.
        assert_close(upper_t_quantile(1.0, 0.25).unwrap(), 1.0, 1e-14);
    }

    #[test]
    fn equal_variances_give_the_ordinary_t_interval() {
        // Means 2 and 6, variances 1 and 1: standard error sqrt(1/3 + 1/3), 4 degrees of freedom, t = 2.7764451.
        let interval = difference_interval(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0], 0.95).unwrap();
        let margin = 2.776_445_105_197_793_4 * (2.0_f64 / 3.0).sqrt();
        assert_close(interval.low, 4.0 - margin, 1e-12);
        assert_close(interval.high, 4.0 + margin, 1e-12);
        assert!(!interval.contains(0.0));
    }

    #[test]
    fn unequal_variances_lower_the_degrees_of_freedom() {
        // Means 2 and 6, variances 1 and 4: squared error 1/3 + 4/3 = 5/3,
        // degrees of freedom (25/9) / ((1/9) / 2 + (16/9) / 2) = 50/17.
        // scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95):
        let interval = difference_interval(&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0], 0.95).unwrap();
        assert_close(interval.low, -0.155_399_503_182_505_5, 1e-12);
        assert_close(interval.high, 8.155_399_503_182_505, 1e-12);
        assert!(interval.contains(0.0));
    }

    #[test]
    fn exchanging_the_samples_mirrors_the_interval() {
        let (a, b) = ([1.0, 4.0, 2.5, 8.0], [3.0, 3.5, 9.0]);
        let forward = difference_interval(&a, &b, 0.9).unwrap();
        let backward = difference_interval(&b, &a, 0.9).unwrap();
        assert_close(backward.low, -forward.high, 1e-12);
        assert_close(backward.high, -forward.low, 1e-12);
    }

    #[test]
    fn samples_without_spread_give_a_point() {
        assert_eq!(difference_interval(&[1.0; 3], &[3.0; 4], 0.95), Some(Interval::point(2.0)));
        assert_eq!(difference_interval(&[1.0], &[3.0, 4.0], 0.95), None);
        assert_eq!(difference_interval(&[1.0, 2.0], &[3.0, 4.0], 1.0), None);
    }

    /// The example of the Wikipedia article "Holm-Bonferroni method".
    #[test]
    fn published_holm_example() {
        // 0.005 <= 0.05/4 and 0.01 <= 0.05/3 are rejected; 0.03 > 0.05/2 is not, which also saves 0.04 <= 0.05/1.
        assert_eq!(holm(&[Some(0.01), Some(0.04), Some(0.03), Some(0.005)], 0.05), [true, false, false, true]);
    }

    #[test]
    fn a_test_not_made_is_not_rejected_and_costs_nothing() {
        // Of two tests, 0.02 <= 0.05/2; of four it would exceed 0.05/4.
        assert_eq!(holm(&[None, Some(0.02), Some(f64::NAN), Some(0.04)], 0.05), [false, true, false, true]);
        assert_eq!(holm(&[], 0.05), Vec::<bool>::new());
        for alpha in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(holm(&[Some(0.0)], alpha), [false]);
        }
    }

    #[test]
    fn holm_rejects_what_bonferroni_rejects_and_nothing_over_alpha() {
        // Multiples of 0.37 modulo 1, cubed to reach small values.
        for size in 1..40 {
            let p_values: Vec<f64> =
                (1..=size).map(|index| (f64::from(index) * 0.37).fract()).map(|share| share * share * share).collect();
            let tests: Vec<Option<f64>> = p_values.iter().copied().map(Some).collect();
            for (p, rejected) in p_values.iter().zip(holm(&tests, 0.05)) {
                assert!(rejected || *p > 0.05 / f64::from(size));
                assert!(!rejected || *p <= 0.05);
            }
        }
    }
}
