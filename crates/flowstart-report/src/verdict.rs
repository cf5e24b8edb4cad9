//! What a comparison shows. Where the caller has not judged it, the interval decides.

use crate::number::{finite, interval};
use crate::{Cell, Verdict};

/// Inflation beyond which a gain is one by waste, unless the baseline sends as much twice.
const MODEST_INFLATION: f64 = 0.15;

/// The verdict on a cell. `None` without a comparison.
pub(crate) fn verdict(cell: &Cell) -> Option<Verdict> {
    let speedup = finite(cell.speedup.mean)?;
    if cell.verdict.is_some() {
        return cell.verdict;
    }
    let by_interval = || interval(cell.speedup).map(|[low, high]| low > 1.0 || high < 1.0);
    let wastes = finite(cell.inflation.mean).is_some_and(|share| share > MODEST_INFLATION);
    Some(match cell.significant.or_else(by_interval) {
        None if cell.n > 1 => Verdict::Deterministic,
        None | Some(false) => Verdict::Unclear,
        Some(true) if speedup < 1.0 => Verdict::Slower,
        Some(true) if wastes => Verdict::FasterByWaste,
        Some(true) => Verdict::Faster,
    })
}

/// How a verdict is drawn and said.
pub(crate) struct Look {
    /// Its place among all of them.
    pub(crate) place: usize,
    /// In texts.
    pub(crate) glyph: &'static str,
    /// In charts: a shape of Vega, or a path.
    pub(crate) shape: &'static str,
    /// Colour of the mark in charts.
    pub(crate) colour: &'static str,
    /// Style of the mark in texts.
    pub(crate) class: &'static str,
    /// In words.
    pub(crate) words: &'static str,
}

/// A triangle of which one half is empty.
pub(crate) const HALF: &str = "M0,-1L-1,0.87L1,0.87ZM0.12,-0.42L0.74,0.69L0.12,0.69Z";
/// Two bars, as in an equation.
pub(crate) const EQUAL: &str = "M-1,-0.7L1,-0.7L1,-0.2L-1,-0.2ZM-1,0.2L1,0.2L1,0.7L-1,0.7Z";

/// The looks, in the order of legends.
pub(crate) const LOOKS: [Look; 6] = [
    look(0, "▲", "triangle-up", "#0072B2", "better", "faster than the baseline"),
    look(1, "◭", HALF, "#B35900", "waste", "faster, but by sending much twice"),
    look(2, "▼", "triangle-down", "#D55E00", "worse", "slower than the baseline"),
    look(3, "●", "circle", "#777777", "unclear", "cannot be told apart from the baseline"),
    look(4, "=", EQUAL, "#777777", "unclear", "the same as the baseline in every run"),
    look(5, "◆", "diamond", "#000000", "plain", "one distinct run: no interval"),
];

const fn look(
    place: usize,
    glyph: &'static str,
    shape: &'static str,
    colour: &'static str,
    class: &'static str,
    words: &'static str,
) -> Look {
    Look { place, glyph, shape, colour, class, words }
}

/// The look of a verdict.
pub(crate) fn look_of(verdict: Verdict) -> &'static Look {
    &LOOKS[match verdict {
        Verdict::Faster => 0,
        Verdict::FasterByWaste => 1,
        Verdict::Slower => 2,
        Verdict::Unclear => 3,
        Verdict::Same => 4,
        Verdict::Deterministic => 5,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    #[test]
    fn without_a_verdict_the_interval_decides() {
        let cell = |mean: f64, ci95, inflation: f64, n| Cell {
            speedup: Estimate { mean: Some(mean), ci95 },
            inflation: Estimate { mean: Some(inflation), ci95: None },
            n,
            ..Cell::default()
        };
        let of = |mean, ci95, inflation| verdict(&cell(mean, ci95, inflation, 5));
        assert_eq!(of(1.5, Some([1.2, 1.8]), 0.0), Some(Verdict::Faster));
        assert_eq!(of(1.5, Some([1.2, 1.8]), 0.5), Some(Verdict::FasterByWaste));
        assert_eq!(of(0.8, Some([0.7, 0.9]), 0.5), Some(Verdict::Slower));
        assert_eq!(of(1.5, Some([0.9, 1.8]), 0.0), Some(Verdict::Unclear));
        assert_eq!(of(1.5, None, 0.0), Some(Verdict::Deterministic));
        // A judgement stands.
        let judged = Cell { verdict: Some(Verdict::Same), ..cell(1.0, Some([1.0, 1.0]), 0.0, 5) };
        assert_eq!(verdict(&judged), Some(Verdict::Same));
        let first = Cell { significant: Some(false), ..cell(1.5, Some([1.2, 1.8]), 0.0, 5) };
        assert_eq!((verdict(&first), verdict(&Cell::default())), (Some(Verdict::Unclear), None));
    }
}
