//! How verdicts look. The caller judges comparisons, since the law needs more than a page shows.

use crate::number::finite;
use crate::{Cell, Estimate, Kind, Verdict};

/// The verdict on a cell. `None` without a comparison.
pub(crate) fn verdict(cell: &Cell) -> Option<Verdict> {
    shown(cell.speedup, cell.verdict)
}

/// The verdict on a speed-up; none where no speed-up is known.
pub(crate) fn shown(speedup: Estimate, verdict: Option<Verdict>) -> Option<Verdict> {
    verdict.filter(|_| finite(speedup.mean).is_some())
}

/// How a verdict is drawn and said.
pub(crate) struct Look {
    /// Its place among all of them.
    pub(crate) place: usize,
    /// In texts.
    pub(crate) glyph: &'static str,
    /// Beside the glyph, where there is room for a word.
    word: &'static str,
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

/// Two bars that do not lie straight.
pub(crate) const ALMOST: &str = "M-1,-0.4L0.9,-0.9L1,-0.4L-0.9,0.1ZM-1,0.6L0.9,0.1L1,0.6L-0.9,1.1Z";

/// The looks, in the order of legends.
pub(crate) const LOOKS: [Look; 7] = [
    look(0, "▲", "faster", "triangle-up", "#0072B2", "better", "faster than the baseline"),
    look(1, "◭", "waste", HALF, "#B35900", "waste", "faster, but by sending much twice"),
    look(2, "▼", "slower", "triangle-down", "#D55E00", "worse", "slower than the baseline"),
    look(3, "●", "unclear", "circle", "#777777", "unclear", "cannot be told apart from the baseline"),
    look(4, "=", "same", EQUAL, "#777777", "unclear", "the same as the baseline in every run"),
    look(5, "◆", "one run", "diamond", "#000000", "plain", "one distinct run: no interval"),
    look(6, "≈", "1 % at most", ALMOST, "#777777", "unclear", "differs from the baseline by 1 % at most"),
];

const fn look(
    place: usize,
    glyph: &'static str,
    word: &'static str,
    shape: &'static str,
    colour: &'static str,
    class: &'static str,
    words: &'static str,
) -> Look {
    Look { place, glyph, word, shape, colour, class, words }
}

/// The look of a verdict. A gain by waste is one of one run, too.
pub(crate) fn look_of(verdict: Verdict) -> &'static Look {
    &LOOKS[match verdict.kind {
        Kind::FasterByWaste => 1,
        _ if verdict.is_deterministic() => 5,
        Kind::Faster => 0,
        Kind::Slower => 2,
        Kind::Negligible => 6,
        Kind::Unclear => 3,
        Kind::Same => 4,
    }]
}

/// All marks with their words, for a legend of text.
#[must_use]
pub fn legend() -> String {
    LOOKS.iter().map(|look| format!("{} {}", look.glyph, look.word)).collect::<Vec<_>>().join(", ")
}

impl Verdict {
    /// Its mark.
    #[must_use]
    pub fn glyph(self) -> &'static str {
        look_of(self).glyph
    }

    /// Its mark and a word, as tables of text have it: `▲ faster`.
    #[must_use]
    pub fn mark(self) -> String {
        let Look { glyph, word, .. } = look_of(self);
        let one_run = if self.is_deterministic() && self.kind == Kind::FasterByWaste { ", one run" } else { "" };
        format!("{glyph} {word}{one_run}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_comparison_has_a_verdict_and_nobody_guesses_it() {
        let speedup = Estimate { mean: Some(1.5), ci95: Some([1.2, 1.8]) };
        let judged = Cell { speedup, verdict: Some(Verdict::of_interval(Kind::Slower)), ..Cell::default() };
        assert_eq!(verdict(&judged), judged.verdict);
        assert_eq!(verdict(&Cell { verdict: None, ..judged.clone() }), None);
        assert_eq!(verdict(&Cell { speedup: Estimate::default(), ..judged }), None);
    }

    #[test]
    fn waste_looks_like_waste_in_one_run_too() {
        let of_one_run = [Kind::Faster, Kind::FasterByWaste, Kind::Slower, Kind::Negligible, Kind::Same];
        let glyphs = of_one_run.map(|kind| look_of(Verdict::of_one_run(kind)).glyph);
        assert_eq!(glyphs, ["◆", "◭", "◆", "◆", "="]);
        assert_eq!(Verdict::of_interval(Kind::Negligible).mark(), "≈ 1 % at most");
    }
}
