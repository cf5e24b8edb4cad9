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

/// The mean harm to others in a unit, where that is what others have.
pub(crate) fn harm_in(unit: &'static str, cell: &Cell) -> Option<f64> {
    Cost::Harm(unit).of(cell).mean
}

/// The units that harm has in cells, of which only others with transfers have the time.
pub(crate) fn units_of_harm(cells: &[&Cell]) -> Vec<&'static str> {
    ["ms", "Mbit"].into_iter().filter(|unit| cells.iter().any(|cell| harm_in(unit, cell).is_some())).collect()
}

/// A cost that schemes are judged by besides their completion time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cost {
    Inflation,
    /// Harm to others, in a unit.
    Harm(&'static str),
    /// Frames of the call that were not shown.
    Frames,
    /// The score of the conversation's worst second, of which more is better.
    Score,
}

impl Cost {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inflation => "inflation",
            Self::Harm(_) => "harm",
            Self::Frames => "frames of the call not shown",
            Self::Score => "MOS of the conversation's worst second",
        }
    }

    /// Its mean and interval in a cell.
    pub(crate) fn of(self, cell: &Cell) -> Estimate {
        match self {
            Self::Inflation => cell.inflation,
            Self::Harm(unit) => {
                harm(cell).filter(|(_, of_cell)| *of_cell == unit).map_or_else(Estimate::default, |(harm, _)| harm)
            }
            Self::Frames => cell.call.map_or_else(Estimate::default, |call| call.not_shown),
            Self::Score => cell.media.map_or_else(Estimate::default, |media| media.worst_1s_mos),
        }
    }

    /// The same, less being better.
    fn to_minimize(self, cell: &Cell) -> Estimate {
        let Estimate { mean, ci95 } = self.of(cell);
        match self {
            Self::Score => Estimate { mean: mean.map(|score| -score), ci95: ci95.map(|[low, high]| [-high, -low]) },
            _ => Estimate { mean, ci95 },
        }
    }
}

/// Harm is the same with all cells if it differs by less than this part.
const ALIKE: f64 = 0.01;

/// What cells of one link and size are judged by: the bytes that they send twice, and what they do to others, as people
/// notice it where there are people. What all do alike says nothing of any of them.
pub(crate) fn costs(cells: &[&Cell]) -> Vec<Cost> {
    let known = |cost: Cost| cells.iter().all(|cell| finite(cost.of(cell).mean).is_some());
    let unit = cells.iter().find_map(|cell| harm(cell)).map(|(_, unit)| Cost::Harm(unit));
    let to_others = [Cost::Frames, Cost::Score].into_iter().chain(unit).find(|cost| known(*cost));
    let differs = |cost: &Cost| {
        let all = || cells.iter().filter_map(|cell| finite(cost.of(cell).mean));
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let ends: Vec<[f64; 2]> = cells.iter().filter_map(|cell| interval(cost.of(cell))).collect();
        // Where one value lies in all intervals, nothing tells the cells apart.
        let lowest_end = ends.iter().map(|[_, high]| *high).fold(f64::INFINITY, f64::min);
        let has_common = ends.len() == cells.len() && ends.iter().all(|[low, _]| *low <= lowest_end);
        high - low > ALIKE * low.abs().max(high.abs()) && !has_common
    };
    let mut costs = Vec::new();
    costs.extend(Some(Cost::Inflation).filter(|cost| known(*cost)));
    costs.extend(to_others.filter(differs));
    costs
}

/// The completion time and these costs of a cell, less being better in each; `None` where one is unknown.
pub(crate) fn criteria(cell: &Cell, costs: &[Cost]) -> Option<Vec<Estimate>> {
    let all: Vec<Estimate> =
        std::iter::once(cell.fct_ms).chain(costs.iter().map(|cost| cost.to_minimize(cell))).collect();
    all.iter().all(|one| finite(one.mean).is_some()).then_some(all)
}

/// Whether `a` is no worse than `b` in all means and better in one.
pub(crate) fn beats(a: &[Estimate], b: &[Estimate]) -> bool {
    let means = || a.iter().zip(b).map(|(a, b)| (a.mean, b.mean));
    means().all(|(a, b)| a <= b) && means().any(|(a, b)| a < b)
}

/// Whether it does so beyond the intervals.
pub(crate) fn beats_surely(a: &[Estimate], b: &[Estimate]) -> bool {
    let apart = |(a, b): (&Estimate, &Estimate)| {
        a.mean == b.mean || interval(*a).zip(interval(*b)).is_some_and(|([_, high], [low, _])| high < low)
    };
    beats(a, b) && a.iter().zip(b).all(apart)
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
        assert!(beats(&[fast, cost], &[slow, cost]));
        assert!(!beats(&[slow, cost], &[fast, cost]) && !beats(&[fast, cost], &[fast, cost]));
        // Faster and dearer: neither beats the other.
        let dear = estimate(9.0, 8.0, 10.0);
        assert!(!beats(&[fast, dear], &[slow, cost]) && !beats(&[slow, cost], &[fast, dear]));
        // 105 is above 102: the intervals leave it open.
        assert!(!beats_surely(&[fast, cost], &[slow, cost]));
        assert!(beats_surely(&[fast, cost], &[estimate(120.0, 106.0, 130.0), cost]));
    }

    #[test]
    fn inflation_counts_and_harm_that_all_share_does_not() {
        let cell = |inflation: f64, harm: f64| Cell {
            fct_ms: estimate(100.0, 95.0, 105.0),
            inflation: Estimate { mean: Some(inflation), ci95: None },
            goodput_lost_mbit: Estimate { mean: Some(harm), ci95: None },
            ..Cell::default()
        };
        // A transfer takes its own size from others, whatever its scheme does.
        let (wasteful, thrifty) = (cell(0.54, 16.0), cell(0.01, 16.01));
        let shared = costs(&[&wasteful, &thrifty]);
        assert_eq!(shared, [Cost::Inflation]);
        let of = |cell: &Cell, costs: &[Cost]| criteria(cell, costs).unwrap_or_default();
        assert!(beats(&of(&thrifty, &shared), &of(&wasteful, &shared)));
        let harmful = cell(0.01, 20.0);
        assert_eq!(costs(&[&thrifty, &harmful]), [Cost::Inflation, Cost::Harm("Mbit")]);
    }

    #[test]
    fn beside_people_harm_is_what_they_meet() {
        let cell = |not_shown: f64, score: f64| Cell {
            fct_ms: estimate(100.0, 95.0, 105.0),
            inflation: Estimate { mean: Some(0.0), ci95: None },
            goodput_lost_mbit: Estimate { mean: Some(0.1), ci95: None },
            call: (not_shown >= 0.0)
                .then(|| crate::Call { not_shown: estimate(not_shown, 0.0, 1.0), ..crate::Call::default() }),
            media: (score > 0.0)
                .then(|| crate::Media { worst_1s_mos: estimate(score, score, score), ..crate::Media::default() }),
            ..Cell::default()
        };
        // The intervals of the frames have values in common, so they tell nothing.
        assert_eq!(costs(&[&cell(0.2, 0.0), &cell(0.1, 0.0)]), [Cost::Inflation]);
        let (good, bad) = (cell(-1.0, 4.2), cell(-1.0, 2.0));
        let both = costs(&[&good, &bad]);
        assert_eq!(both, [Cost::Inflation, Cost::Score]);
        let of = |cell: &Cell| criteria(cell, &both).unwrap_or_default();
        assert!(beats(&of(&good), &of(&bad)) && !beats(&of(&bad), &of(&good)));
    }
}
