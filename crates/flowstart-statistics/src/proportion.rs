//! How well a share is known.

use statrs::distribution::{Beta, ContinuousCDF};

use super::{Interval, count, is_confidence_level};

/// The interval of Clopper and Pearson for the probability of something that was seen `seen` times in `tries`
/// independent tries ("The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial", 1934). It
/// contains the probability at least as often as `level` says, whatever that is.
///
/// `None` without a try, if more was seen than tried, or if `level` is not strictly between 0 and 1.
#[must_use]
pub fn clopper_pearson(seen: usize, tries: usize, level: f64) -> Option<Interval> {
    let missed = tries.checked_sub(seen)?;
    if tries == 0 || !is_confidence_level(level) {
        return None;
    }
    let tail = (1.0 - level) / 2.0;
    let quantile = |a: usize, b: usize, p: f64| Some(Beta::new(count(a), count(b)).ok()?.inverse_cdf(p));
    let low = if seen == 0 { 0.0 } else { quantile(seen, missed + 1, tail)? };
    let high = if missed == 0 { 1.0 } else { quantile(seen + 1, missed, 1.0 - tail)? };
    let is_sound = (0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high) && low <= high;
    is_sound.then_some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(interval: Interval, low: f64, high: f64) {
        assert!((interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn known_intervals() {
        // scipy.stats.binomtest(5, 100).proportion_ci(0.95, "exact"), and the same of 1 in 10.
        close(clopper_pearson(5, 100, 0.95).unwrap(), 0.016_431_88, 0.112_834_91);
        close(clopper_pearson(1, 10, 0.95).unwrap(), 0.002_528_58, 0.445_016_12);
        // Nothing in 20: (1 - p)^20 = 0.025.
        close(clopper_pearson(0, 20, 0.95).unwrap(), 0.0, 1.0 - 0.025_f64.powf(0.05));
        close(clopper_pearson(20, 20, 0.95).unwrap(), 0.025_f64.powf(0.05), 1.0);
    }

    #[test]
    fn what_has_no_interval() {
        assert_eq!(clopper_pearson(0, 0, 0.95), None);
        assert_eq!(clopper_pearson(3, 2, 0.95), None);
        for level in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(clopper_pearson(1, 2, level), None);
        }
    }

    #[test]
    fn more_that_is_seen_is_more_likely() {
        let of = |seen| clopper_pearson(seen, 800, 0.95).unwrap();
        for seen in 0..800 {
            let (less, more) = (of(seen), of(seen + 1));
            assert!(less.low <= more.low && less.high <= more.high, "{seen}: {less:?} {more:?}");
            assert!(less.contains(seen as f64 / 800.0));
        }
    }
}
