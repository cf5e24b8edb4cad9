//! A scheme beats another one where it is no worse in time and cost, and better in one of them.

use crate::number::{finite, interval};
use crate::{Cell, Estimate};

/// Harm to others and its unit, where there are others.
pub(crate) fn harm(cell: &Cell) -> Option<(Estimate, &'static str)> {
    let known = |estimate: Estimate| finite(estimate.mean).is_some();
    if known(cell.extra_fct_ms) {
        Some((cell.extra_fct_ms, "ms"))
    } else {
        known(cell.goodput_lost_mbit).then_some((cell.goodput_lost_mbit, "Mbit"))
    }
}

/// FCT and cost of a cell: harm to others where there are any, inflation otherwise.
pub(crate) fn axes(cell: &Cell) -> Option<[Estimate; 2]> {
    let cost = harm(cell).map_or(cell.inflation, |(harm, _)| harm);
    finite(cell.fct_ms.mean).zip(finite(cost.mean)).map(|_| [cell.fct_ms, cost])
}

/// Whether `a` is no worse than `b` in both means and better in one.
pub(crate) fn beats(a: [Estimate; 2], b: [Estimate; 2]) -> bool {
    let means = [(a[0].mean, b[0].mean), (a[1].mean, b[1].mean)];
    means.iter().all(|(a, b)| a <= b) && means.iter().any(|(a, b)| a < b)
}

/// Whether it does so beyond the intervals.
pub(crate) fn beats_surely(a: [Estimate; 2], b: [Estimate; 2]) -> bool {
    let apart = |a: Estimate, b: Estimate| {
        a.mean == b.mean || interval(a).zip(interval(b)).is_some_and(|([_, high], [low, _])| high < low)
    };
    beats(a, b) && apart(a[0], b[0]) && apart(a[1], b[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, low: f64, high: f64) -> Estimate {
        Estimate { mean: Some(mean), ci95: Some([low, high]) }
    }

    #[test]
    fn a_scheme_is_beaten_by_one_that_is_better_in_one_mean_and_worse_in_none() {
        let cost = estimate(5.0, 4.0, 6.0);
        let (fast, slow) = (estimate(100.0, 95.0, 105.0), estimate(110.0, 102.0, 118.0));
        assert!(beats([fast, cost], [slow, cost]));
        assert!(!beats([slow, cost], [fast, cost]) && !beats([fast, cost], [fast, cost]));
        // Faster and dearer: neither beats the other.
        let dear = estimate(9.0, 8.0, 10.0);
        assert!(!beats([fast, dear], [slow, cost]) && !beats([slow, cost], [fast, dear]));
        // 105 is above 102: the intervals leave it open.
        assert!(!beats_surely([fast, cost], [slow, cost]));
        assert!(beats_surely([fast, cost], [estimate(120.0, 106.0, 130.0), cost]));
    }
}
