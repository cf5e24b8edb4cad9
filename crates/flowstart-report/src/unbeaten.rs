//! The schemes that no other one beats, in completion time and in what they cost.

use super::number::{Format, UNDEFINED, finite, interval};
use super::page::Group;
use super::{Cell, Estimate};
use serde::Serialize;

/// The schemes of one link and size that nobody beats.
#[derive(Serialize)]
pub(super) struct Unbeaten {
    /// Link and size.
    place: String,
    /// What the second axis is.
    cost: &'static str,
    /// Schemes that no other one beats, with FCT over the limit and cost.
    schemes: Vec<String>,
    /// Schemes that are beaten, but by nobody beyond the intervals.
    within_noise: Vec<String>,
}

/// Harm to others and its unit, where there are others.
pub(super) fn harm(cell: &Cell) -> Option<(Estimate, &'static str)> {
    let known = |estimate: Estimate| finite(estimate.mean).is_some();
    if known(cell.extra_fct_ms) {
        Some((cell.extra_fct_ms, "ms"))
    } else {
        known(cell.goodput_lost_mbit).then_some((cell.goodput_lost_mbit, "Mbit"))
    }
}

/// FCT and cost of a cell: harm to others where there are any, inflation otherwise.
fn axes(cell: &Cell) -> Option<[Estimate; 2]> {
    let cost = harm(cell).map_or(cell.inflation, |(harm, _)| harm);
    finite(cell.fct_ms.mean).zip(finite(cost.mean)).map(|_| [cell.fct_ms, cost])
}

/// Whether `a` is no worse than `b` in both means and better in one.
fn beats(a: [Estimate; 2], b: [Estimate; 2]) -> bool {
    let means = [(a[0].mean, b[0].mean), (a[1].mean, b[1].mean)];
    means.iter().all(|(a, b)| a <= b) && means.iter().any(|(a, b)| a < b)
}

/// Whether it does so beyond the intervals.
fn beats_surely(a: [Estimate; 2], b: [Estimate; 2]) -> bool {
    let apart = |a: Estimate, b: Estimate| {
        a.mean == b.mean || interval(a).zip(interval(b)).is_some_and(|([_, high], [low, _])| high < low)
    };
    beats(a, b) && apart(a[0], b[0]) && apart(a[1], b[1])
}

/// The rows of the table. With fewer than three schemes there is nothing to say.
pub(super) fn unbeaten(groups: &[Group<'_>]) -> Vec<Unbeaten> {
    let mut rows = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            let known: Vec<(&Cell, [Estimate; 2])> =
                cells.into_iter().filter_map(|cell| Some((cell, axes(cell)?))).collect();
            if known.len() < 3 {
                continue;
            }
            let unit = known.iter().find_map(|(cell, _)| harm(cell)).map(|(_, unit)| unit);
            let (mut schemes, mut within_noise) = (Vec::new(), Vec::new());
            for (cell, own) in &known {
                let times = finite(cell.ideal_fct_ms).filter(|limit| *limit > 0.0).zip(own[0].mean);
                let factor = times.map_or(UNDEFINED.to_owned(), |(limit, fct)| format!("{:.2}", fct / limit));
                let cost = match unit {
                    Some(unit) => format!("{}\u{a0}{unit}", Format::Plain.show(own[1].mean)),
                    None => Format::Percent.show(own[1].mean),
                };
                let entry = format!("{} ({factor}; {cost})", cell.scheme);
                if !known.iter().any(|(_, other)| beats(*other, *own)) {
                    schemes.push(entry);
                } else if !known.iter().any(|(_, other)| beats_surely(*other, *own)) {
                    within_noise.push(entry);
                }
            }
            let place = format!("{}, {size}", group.label);
            rows.push(Unbeaten {
                place,
                cost: if unit.is_some() { "harm" } else { "inflation" },
                schemes,
                within_noise,
            });
        }
    }
    rows
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
