//! Evaluation of repeated runs: summaries, intervals and tests.
//!
//! | Question | Function |
//! |---|---|
//! | What is typical? | [`mean`], [`median`] |
//! | What is typical where values count differently? | [`weighted_quantile`] |
//! | How far do runs scatter? | [`quantile`], [`sample_standard_deviation`], [`empirical_cdf`] |
//! | How well is a mean known? | [`bca_mean`] |
//! | Does one scheme beat another on the same seeds? | [`bca_mean_difference_paired`], [`bca_mean_ratio_paired`] |
//! | Which of several schemes beat one on the same seeds, all at once? | [`simultaneous_ratios`] |
//! | How well is any other statistic known? | [`bca`] |
//! | Do two unpaired samples differ? | [`difference_interval`] |
//! | Do they differ, at whatever look at a growing sample? | [`at_every_look`] |
//! | How many values does a trial need? | [`values_needed`] |
//! | Which of many results survive being many? | [`holm`] |
//! | How well is a share known? | [`clopper_pearson`] |
//! | Do two quantities rise together? | [`spearman`] |
//! | How do results show a quantity? | [`Metric`] |
//!
//! Three rules hold for every function:
//! - An undefined answer is `None` (or, where a list is returned, an empty list or `false`), never NaN and never a
//!   panic. Each function says when that happens; overflow of an intermediate sum counts as undefined.
//! - A value that is NaN or infinite makes the answer undefined. It is not skipped: the caller knows that a run failed,
//!   and has to remove and count it.
//! - Equal arguments give equal answers. Randomness comes only from the `seed` argument.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod association;
mod bootstrap;
mod comparison;
mod metric;
mod proportion;
mod sequential;
mod simultaneous;
mod summary;

pub use association::spearman;
pub use bootstrap::{BootstrapEstimate, bca, bca_mean, bca_mean_difference_paired, bca_mean_ratio_paired};
pub use comparison::{difference_interval, holm, upper_t_quantile, welch};
pub use metric::{LEAST_EFFECT, LEVEL, Metric, RESAMPLES, RUNS_FOR_P99};
pub use proportion::clopper_pearson;
pub use sequential::{
    at_every_look, errors_at_every_look, errors_at_one_look, log_variance_of_mean, log_variance_of_quantile,
    values_needed,
};
pub use simultaneous::{simultaneous_coverage, simultaneous_ratios};
pub use summary::{
    empirical_cdf, mean, median, quantile, sample_standard_deviation, weighted_quantile, weighted_quantile_of_sorted,
};

/// A closed interval of the real line; the functions of this crate return it with `low <= high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower endpoint.
    pub low: f64,
    /// The upper endpoint.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies inside or on an endpoint.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    fn point(value: f64) -> Self {
        Self { low: value, high: value }
    }
}

/// A number of items as a divisor.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 items, more than fit in memory")]
fn count(items: usize) -> f64 {
    items as f64
}

/// The gate through which every computed number leaves the crate.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Whether two values tie. Zeros tie whatever their sign.
#[expect(clippy::float_cmp, reason = "a tie is equality: values that differ by rounding have an order")]
fn same(left: f64, right: f64) -> bool {
    left == right
}

/// Whether `level` is usable as a confidence level, a probability strictly between 0 and 1.
fn is_confidence_level(level: f64) -> bool {
    level > 0.0 && level < 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_contains_its_endpoints() {
        let interval = Interval { low: -1.0, high: 2.0 };
        assert!(interval.contains(-1.0) && interval.contains(0.0) && interval.contains(2.0));
        assert!(!interval.contains(-1.1) && !interval.contains(2.1) && !interval.contains(f64::NAN));
    }

    /// Nothing panics or leaks a NaN, whatever comes in.
    #[test]
    fn hostile_samples_give_a_number_or_nothing() {
        let samples: [&[f64]; 14] = [
            &[],
            &[1.0],
            &[0.0, 0.0],
            &[-0.0, 0.0, -0.0],
            &[7.0; 5],
            &[0.1; 30],
            &[f64::NAN, 1.0, 2.0],
            &[1.0, f64::INFINITY, 2.0],
            &[f64::NEG_INFINITY; 3],
            &[f64::MAX, f64::MIN, 1.0],
            &[f64::MAX, f64::MAX, 1.0],
            &[f64::MIN_POSITIVE, 5e-324, 1e-310],
            &[1e200, -1e200, 3.0, 1e-200],
            &[1.0, 2.0, 4.0],
        ];
        let probabilities = [
            f64::NAN,
            f64::NEG_INFINITY,
            -1.0,
            0.0,
            f64::MIN_POSITIVE,
            0.5,
            0.95,
            1.0 - f64::EPSILON,
            1.0,
            f64::INFINITY,
        ];
        let check = |value: Option<f64>| assert!(value.is_none_or(f64::is_finite));
        let check_interval = |interval: Option<Interval>| {
            if let Some(Interval { low, high }) = interval {
                assert!(low.is_finite() && high.is_finite() && low <= high);
            }
        };
        let check_bootstrap = |result: Option<BootstrapEstimate>| {
            if let Some(result) = result {
                check(Some(result.estimate));
                check_interval(Some(result.interval));
                for &value in &probabilities {
                    let p = result.p_value(value);
                    assert!(p.is_none_or(|p| (0.0..=1.0).contains(&p)));
                    assert_eq!(p.is_none(), value.is_nan());
                    check_interval(result.interval_at(value));
                }
            }
        };
        for first in samples {
            check(mean(first));
            check(median(first));
            check(sample_standard_deviation(first));
            for (value, share) in empirical_cdf(first) {
                assert!(value.is_finite() && share > 0.0 && share <= 1.0);
            }
            for probability in probabilities {
                check(quantile(first, probability));
                for resamples in [0, 1, 2, 50] {
                    check_bootstrap(bca_mean(first, probability, resamples, 1));
                    check_bootstrap(bca(first, median, probability, resamples, 1));
                }
            }
            for second in samples {
                check(spearman(first, second));
                for level in probabilities {
                    check_interval(difference_interval(first, second, level));
                    check_bootstrap(bca_mean_difference_paired(first, second, level, 50, 1));
                    check_bootstrap(bca_mean_ratio_paired(first, second, level, 50, 1));
                }
            }
        }
    }
}
