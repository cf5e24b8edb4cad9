//! Intervals of several comparisons that hold all at once: the max-t bootstrap.
//!
//! Romano and Wolf, "Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing" (2005), section 4, and
//! Westfall and Young, "Resampling-Based Multiple Testing" (1993): all comparisons are resampled together, and the
//! largest error of any of them, in its own standard errors, gives one critical value for all. Comparisons with the
//! same baseline and the same seeds go up and down together, so the value is smaller than Bonferroni's and Holm's. It
//! is the single step of these procedures: the further ones reject more, but give no intervals.
//!
//! - The statistic is the logarithm of the ratio of means. Its error is nearer to symmetric than that of the ratio, and
//!   its interval stays positive.
//! - The standard error is that of the linearized statistic. It does not vary between resamples: where most pairs are
//!   equal, many resamples have no scatter at all, and a division by theirs would widen the intervals of every other
//!   comparison without bound.
//! - From few pairs the resamples scatter too little. The standard error has the divisor n - 1, and the critical value
//!   is the quantile of t with n - 1 degrees of freedom at the same probability instead of the normal one.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::bootstrap::{draw_index, resamples_suffice};
use super::comparison::upper_t_quantile;
use super::summary::mean_of;
use super::{Interval, count};

/// Standard errors of a logarithm up to this are rounding.
const ROUNDING: f64 = 1e-12;
/// Half the width of an interval of a logarithm from which on it says nothing: a factor of a thousand to both sides, as
/// two repetitions may give.
const WIDEST: f64 = 6.907_755_278_982_137;

/// The intervals of the ratios mean(before) / mean(after) of a family of comparisons: at `level`, all of them contain
/// their true ratio at once. A comparison has a pair (before, after) for each repetition, `None` where it is missing;
/// repetitions are independent of each other and are the same ones for all comparisons. The answer is in the order of
/// `family`, which does not affect it.
///
/// In 4000 simulated families each (of 500 comparisons: 1000), of log-normal pairs (standard deviation 0.3, correlation
/// 0.5 within a pair) whose comparisons share their baseline, all 95 % intervals that there are contained their ratios
/// this often:
///
/// | Repetitions | 2 | 3 | 5 | 10 | 20 | 30 | 100 |
/// |---|---|---|---|---|---|---|---|
/// | 1 comparison | 95 % | 96 % | 95 % | 95 % | 95 % | 95 % | 95 % |
/// | 5 comparisons | 80 % | 91 % | 92 % | 93 % | 94 % | 94 % | 94 % |
/// | 50 comparisons | 26 % | 81 % | 85 % | 91 % | 93 % | 93 % | 94 % |
/// | 500 comparisons | – | 55 % | 70 % | 84 % | 91 % | 92 % | – |
/// | 5 comparisons of exponential values | – | – | – | 95 % | 94 % | 93 % | 95 % |
///
/// The answer for a comparison is a point if its pairs do not scatter. Such a comparison does not affect the others.
/// It is `None` if the comparison has fewer than two pairs, a number that is not positive or not finite, or scatters so
/// much that its interval would reach a factor of a thousand to both sides. It is `None` for all if
/// `level` is not strictly between 0 and 1 or `resamples` is less than 2 / (1 - level).
#[must_use]
pub fn simultaneous_ratios(
    family: &[Vec<Option<(f64, f64)>>],
    level: f64,
    resamples: u32,
    seed: u64,
) -> Vec<Option<Interval>> {
    let comparisons: Vec<Option<Comparison>> = family.iter().map(|pairs| Comparison::of(pairs)).collect();
    let Some(critical) = critical_value(&comparisons, level, resamples, seed) else { return vec![None; family.len()] };
    comparisons.iter().map(|comparison| comparison.as_ref()?.interval(critical)).collect()
}

/// Repetitions from which on a row holds, and the percentage of families of up to [`FAMILIES`] comparisons in which all
/// intervals contain their ratios: the log-normal rows of the table of [`simultaneous_ratios`]. 0: it was not measured,
/// and is smaller than in the smaller families.
const COVERAGE: [(usize, [u32; 4]); 7] = [
    (2, [95, 80, 26, 0]),
    (3, [96, 91, 81, 55]),
    (5, [95, 92, 85, 70]),
    (10, [95, 93, 91, 84]),
    (20, [95, 94, 93, 91]),
    (30, [95, 94, 93, 92]),
    (100, [95, 94, 94, 92]),
];
const FAMILIES: [usize; 4] = [1, 5, 50, 500];

/// How often all 95 % intervals of [`simultaneous_ratios`] contain their ratios, in percent, as was measured for the
/// next larger family and the next smaller number of repetitions. Of more than 500 comparisons it is that of 500, which
/// is too much. 0: next to never.
#[must_use]
pub fn simultaneous_coverage(comparisons: usize, repetitions: usize) -> u32 {
    let family = FAMILIES.iter().position(|most| comparisons <= *most).unwrap_or(FAMILIES.len() - 1);
    COVERAGE.iter().rev().find(|(least, _)| repetitions >= *least).map_or(0, |(_, measured)| measured[family])
}

/// A comparison that can be made.
struct Comparison {
    /// The repetition, before and after, relative to the means.
    pairs: Vec<(usize, f64, f64)>,
    /// The logarithm of the ratio.
    logarithm: f64,
    /// The standard deviation of the linearized statistic over the square root of the number of pairs.
    error: f64,
}

impl Comparison {
    fn of(pairs: &[Option<(f64, f64)>]) -> Option<Self> {
        let pairs: Vec<(usize, f64, f64)> = pairs
            .iter()
            .enumerate()
            .filter_map(|(rep, pair)| pair.map(|(before, after)| (rep, before, after)))
            .collect();
        let is_usable = |value: f64| value > 0.0 && value.is_finite();
        if pairs.len() < 2 || !pairs.iter().all(|&(_, before, after)| is_usable(before) && is_usable(after)) {
            return None;
        }
        let before = mean_of(pairs.iter().map(|pair| pair.1))?;
        let after = mean_of(pairs.iter().map(|pair| pair.2))?;
        let pairs: Vec<_> = pairs.into_iter().map(|(rep, b, a)| (rep, b / before, a / after)).collect();
        let squares: f64 = pairs.iter().map(|&(_, b, a)| (b - a) * (b - a)).sum();
        let error = squares.sqrt() / count(pairs.len());
        let logarithm = before.ln() - after.ln();
        (error.is_finite() && logarithm.is_finite()).then_some(Self { pairs, logarithm, error })
    }

    fn scatters(&self) -> bool {
        self.error > ROUNDING
    }

    /// The error of the statistic in a resample, in standard errors. `times` says how often each repetition was drawn.
    /// `None` if no pair was.
    fn deviation(&self, times: &[u32]) -> Option<f64> {
        let (mut before, mut after) = (0.0, 0.0);
        for &(rep, b, a) in &self.pairs {
            let times = f64::from(times[rep]);
            before += times * b;
            after += times * a;
        }
        // The pairs are relative to their means, so the statistic of all of them is 0.
        (after > 0.0).then(|| (before / after).ln().abs() / self.error)
    }

    /// The interval for a critical value of the normal distribution.
    fn interval(&self, critical: f64) -> Option<Interval> {
        if !self.scatters() {
            let ratio = self.logarithm.exp();
            return ratio.is_finite().then(|| Interval::point(ratio));
        }
        let pairs = count(self.pairs.len());
        let tail = Normal::standard().sf(critical);
        let width = upper_t_quantile(pairs - 1.0, tail)? * self.error * (pairs / (pairs - 1.0)).sqrt();
        let (low, high) = ((self.logarithm - width).exp(), (self.logarithm + width).exp());
        (width < WIDEST && low > 0.0 && high.is_finite()).then_some(Interval { low, high })
    }
}

/// The quantile at `level` of the largest deviation of any comparison.
fn critical_value(comparisons: &[Option<Comparison>], level: f64, resamples: u32, seed: u64) -> Option<f64> {
    let resamples = usize::try_from(resamples).ok()?;
    if !resamples_suffice(resamples, level) {
        return None;
    }
    let scattering: Vec<&Comparison> = comparisons.iter().flatten().filter(|one| one.scatters()).collect();
    let repetitions = scattering.iter().filter_map(|one| Some(one.pairs.last()?.0 + 1)).max().unwrap_or(0);
    let mut generator = Pcg64::seed_from_u64(seed);
    let mut times = vec![0_u32; repetitions];
    let mut largest = Vec::new();
    largest.try_reserve_exact(resamples).ok()?;
    for _ in 0..resamples {
        times.fill(0);
        for _ in 0..repetitions {
            times[draw_index(&mut generator, repetitions)] += 1;
        }
        largest.push(scattering.iter().filter_map(|one| one.deviation(&times)).fold(0.0, f64::max));
    }
    largest.sort_unstable_by(f64::total_cmp);
    // Few pairs have few resamples, none of them far away: one comparison alone has at least the normal quantile.
    let alone = Normal::standard().inverse_cdf(f64::midpoint(level, 1.0));
    super::summary::quantile_of_sorted(&largest, level).map(|quantile| quantile.max(alone))
}

#[cfg(test)]
mod tests {
    use statrs::distribution::Exp;

    use super::*;
    use crate::bca_mean_ratio_paired;
    use rand_pcg::rand_core::Rng;

    type Pairs = Vec<Option<(f64, f64)>>;
    type Draw = fn(&mut Pcg64, usize, usize) -> Vec<Pairs>;

    fn uniform(generator: &mut Pcg64) -> f64 {
        (f64::from(generator.next_u32()) + 0.5) / 2.0_f64.powi(32)
    }

    /// Log-normal pairs of `others` comparisons with one baseline; the true ratios are 1.
    fn log_normal(generator: &mut Pcg64, others: usize, repetitions: usize) -> Vec<Pairs> {
        let normal = Normal::standard();
        let mut draw = || 0.3 * 0.5_f64.sqrt() * normal.inverse_cdf(uniform(generator));
        let rows: Vec<Vec<f64>> = (0..repetitions)
            .map(|_| {
                let shared = draw();
                (0..=others).map(|_| (shared + draw()).exp()).collect()
            })
            .collect();
        (1..=others).map(|other| rows.iter().map(|row| Some((row[0], row[other]))).collect()).collect()
    }

    fn exponential(generator: &mut Pcg64, others: usize, repetitions: usize) -> Vec<Pairs> {
        let law = Exp::new(1.0).unwrap();
        let rows: Vec<Vec<f64>> =
            (0..repetitions).map(|_| (0..=others).map(|_| law.inverse_cdf(uniform(generator))).collect()).collect();
        (1..=others).map(|other| rows.iter().map(|row| Some((row[0], row[other]))).collect()).collect()
    }

    /// The share of families whose intervals all contain the true ratios.
    fn coverage(draw: Draw, others: usize, repetitions: usize, trials: u64) -> f64 {
        let mut generator = Pcg64::seed_from_u64(others as u64 * 1000 + repetitions as u64);
        let covered = (0..trials).filter(|&trial| {
            let family = draw(&mut generator, others, repetitions);
            simultaneous_ratios(&family, 0.95, 1000, trial).iter().all(|one| one.is_none_or(|one| one.contains(1.0)))
        });
        covered.count() as f64 / trials as f64
    }

    /// The largest error decides, whichever comparison has it. The bounds are three standard errors of 400 families
    /// around the shares of the documentation's table.
    #[test]
    fn all_intervals_cover_their_ratios_at_once() {
        let of_five = coverage(log_normal, 5, 30, 400);
        assert!((0.905..=0.976).contains(&of_five), "{of_five}");
        let of_fifty = coverage(log_normal, 50, 20, 400);
        assert!((0.89..=0.967).contains(&of_fifty), "{of_fifty}");
    }

    #[test]
    fn one_comparison_has_about_the_interval_that_it_has_alone() {
        let mut generator = Pcg64::seed_from_u64(3);
        let family = log_normal(&mut generator, 1, 200);
        let (before, after): (Vec<f64>, Vec<f64>) = family[0].iter().flatten().copied().unzip();
        let alone = bca_mean_ratio_paired(&before, &after, 0.95, 10_000, 1).unwrap().interval;
        let together = simultaneous_ratios(&family, 0.95, 10_000, 1)[0].unwrap();
        let width = alone.high - alone.low;
        assert!((alone.low - together.low).abs() < 0.07 * width, "{alone:?} {together:?}");
        assert!((alone.high - together.high).abs() < 0.07 * width, "{alone:?} {together:?}");
    }

    #[test]
    fn two_pairs_by_hand() {
        // Means 10 and 5, so the pairs are (1.1, 1) and (0.9, 1) of them: d = 0.1 and -0.1. The standard error is
        // sqrt(0.02) / 2 = 0.0707107, times sqrt(2 / 1) 0.1. No resample is further than ln(0.9) / 0.0707 = 1.49
        // standard errors away, so the critical value is 1.95996, and t with one degree of freedom has 12.7062 at its
        // tail.
        let pairs = vec![Some((11.0, 5.0)), Some((9.0, 5.0))];
        let interval = simultaneous_ratios(&[pairs], 0.95, 1000, 1)[0].unwrap();
        assert!((interval.low - 2.0 * (-1.270_62_f64).exp()).abs() < 1e-5, "{interval:?}");
        assert!((interval.high - 2.0 * 1.270_62_f64.exp()).abs() < 1e-4, "{interval:?}");
    }

    #[test]
    fn an_interval_that_says_nothing_is_none() {
        let pairs = |a: f64, b: f64| vec![Some((a, 1.0)), Some((b, 1.0))];
        let mut family = vec![pairs(1.0, 1.1)];
        assert!(simultaneous_ratios(&family, 0.95, 1000, 1)[0].is_some());
        family.push(pairs(1.0, 9.0));
        assert_eq!(simultaneous_ratios(&family, 0.95, 1000, 1)[1], None);
    }

    #[test]
    fn more_comparisons_widen_every_interval() {
        let mut generator = Pcg64::seed_from_u64(5);
        let family = log_normal(&mut generator, 20, 30);
        let width = |interval: Interval| (interval.high / interval.low).ln();
        let few = width(simultaneous_ratios(&family[..2], 0.95, 2000, 1)[0].unwrap());
        let many = width(simultaneous_ratios(&family, 0.95, 2000, 1)[0].unwrap());
        assert!(many > 1.15 * few, "{few} {many}");
        // Twenty copies of one comparison are one.
        let copies = vec![family[0].clone(); 20];
        let copied = simultaneous_ratios(&copies, 0.95, 2000, 1)[0];
        assert_eq!(copied, simultaneous_ratios(&family[..1], 0.95, 2000, 1)[0]);
    }

    #[test]
    fn the_order_of_comparisons_does_not_matter() {
        let mut generator = Pcg64::seed_from_u64(6);
        for (others, repetitions) in [(2, 3), (7, 12), (13, 30)] {
            let mut family = log_normal(&mut generator, others, repetitions);
            family[1][2] = None;
            let intervals = simultaneous_ratios(&family, 0.95, 500, 1);
            family.reverse();
            let mut reversed = simultaneous_ratios(&family, 0.95, 500, 1);
            reversed.reverse();
            assert_eq!(intervals, reversed);
        }
    }

    #[test]
    fn what_does_not_scatter_is_a_point_and_leaves_the_others_alone() {
        let mut generator = Pcg64::seed_from_u64(8);
        let family = log_normal(&mut generator, 3, 10);
        let constant: Pairs = (1..=10).map(|rep| Some((f64::from(rep) * 0.3, f64::from(rep) * 0.1))).collect();
        let intervals = simultaneous_ratios(&family, 0.95, 1000, 1);
        let with = simultaneous_ratios(&[&family[..], &[constant]].concat(), 0.95, 1000, 1);
        assert_eq!(with[..3], intervals);
        let point = with[3].unwrap();
        assert!(point.low == point.high && (point.low - 3.0).abs() < 1e-12, "{point:?}");
    }

    #[test]
    fn missing_pairs_are_left_out_and_undefined_comparisons_have_no_interval() {
        let mut generator = Pcg64::seed_from_u64(9);
        let mut family = log_normal(&mut generator, 6, 8);
        family[1][0] = None;
        family[2] = vec![None; 8];
        family[3] = [vec![None; 7], vec![Some((1.0, 1.0))]].concat();
        family[4][3] = Some((1.0, 0.0));
        family[5][3] = Some((f64::INFINITY, 1.0));
        let intervals = simultaneous_ratios(&family, 0.95, 1000, 1);
        let defined: Vec<bool> = intervals.iter().map(Option::is_some).collect();
        assert_eq!(defined, [true, true, false, false, false, false]);
        // The missing pair is that of the first repetition, not of the last.
        let known: Vec<(f64, f64)> = family[1].iter().flatten().copied().collect();
        assert_eq!((known.len(), family[1][0]), (7, None));
        for level in [0.0, 1.0, f64::NAN] {
            assert_eq!(simultaneous_ratios(&family[..1], level, 1000, 1), [None]);
        }
        // 2 / (1 - 0.95) = 40
        assert_eq!(simultaneous_ratios(&family[..1], 0.95, 39, 1), [None]);
        assert_eq!(simultaneous_ratios(&[], 0.95, 1000, 1), []);
    }

    #[test]
    #[ignore = "prints the table of the documentation, which takes minutes"]
    fn print_coverage() {
        let rows: [(Draw, usize, &[usize]); 5] = [
            (log_normal, 1, &[2, 3, 5, 10, 20, 30, 100]),
            (log_normal, 5, &[2, 3, 5, 10, 20, 30, 100]),
            (log_normal, 50, &[2, 3, 5, 10, 20, 30, 100]),
            (log_normal, 500, &[3, 5, 10, 20, 30]),
            (exponential, 5, &[10, 20, 30, 100]),
        ];
        for (draw, others, repetitions) in rows {
            let families = if others > 50 { 1000 } else { 4000 };
            let row = repetitions.iter().map(|&n| format!("{:.0} %", 100.0 * coverage(draw, others, n, families)));
            println!("| {others} | {} |", row.collect::<Vec<_>>().join(" | "));
        }
    }
}
