//! Numbers of tables have an interval, and a mark that says whether they are better than the baseline's.

use crate::number::{Format, finite, interval};
use crate::verdict::{LOOKS, Look, look_of, verdict};
use crate::{Cell, Estimate};
use serde::Serialize;

/// A number as shown, with its interval, what it is sorted by, and its mark.
#[derive(Serialize)]
pub(super) struct Number {
    pub(super) text: String,
    interval: String,
    /// Empty when undefined, which sorts last.
    sort: String,
    mark: Option<Mark>,
}

impl Number {
    /// A number without a mark.
    pub(super) fn new(format: Format, estimate: Estimate) -> Self {
        let (text, interval) = format.estimate(estimate);
        Self { text, interval, sort: finite(estimate.mean).map_or_else(String::new, |v| v.to_string()), mark: None }
    }

    /// The same number with a mark.
    pub(super) fn marked(self, mark: Option<Mark>) -> Self {
        Self { mark, ..self }
    }
}

/// Verdict on a difference from the baseline, told by shape, colour and words.
#[derive(Serialize, Clone, Copy)]
pub(super) struct Mark {
    glyph: &'static str,
    class: &'static str,
    words: &'static str,
}

const BETTER: Mark = Mark { glyph: "▲", class: "better", words: "better than the baseline" };
const WORSE: Mark = Mark { glyph: "▼", class: "worse", words: "worse than the baseline" };
const BETTER_WITHIN: Mark = Mark { glyph: "△", class: "better", words: "better, but within the same RTT" };
const WORSE_WITHIN: Mark = Mark { glyph: "▽", class: "worse", words: "worse, but within the same RTT" };
const UNCLEAR: Mark = Mark { glyph: "●", class: "unclear", words: "no significant difference" };

/// The marks of verdicts, for legends.
pub(super) fn verdict_marks() -> Vec<Mark> {
    LOOKS.iter().map(mark_of).collect()
}

fn mark_of(look: &Look) -> Mark {
    Mark { glyph: look.glyph, class: look.class, words: look.words }
}

/// Mark of a cell's verdict.
pub(super) fn verdict_mark(cell: &Cell) -> Option<Mark> {
    verdict(cell).map(|verdict| mark_of(look_of(verdict)))
}

/// Mark of a speed-up beside a published one. Without a verdict on significance the interval decides.
pub(super) fn speedup_mark(speedup: Estimate, significant: Option<bool>, within_one_rtt: Option<bool>) -> Option<Mark> {
    let mean = finite(speedup.mean)?;
    let significant = significant.or_else(|| interval(speedup).map(|[low, high]| low > 1.0 || high < 1.0))?;
    Some(match (significant, mean >= 1.0, within_one_rtt == Some(true)) {
        (false, _, _) => UNCLEAR,
        (true, true, false) => BETTER,
        (true, true, true) => BETTER_WITHIN,
        (true, false, false) => WORSE,
        (true, false, true) => WORSE_WITHIN,
    })
}

/// Mark of extra losses: fewer is better.
pub(super) fn loss_mark(delta: Estimate, significant: Option<bool>) -> Option<Mark> {
    let mean = finite(delta.mean)?;
    let significant = significant.or_else(|| interval(delta).map(|[low, high]| low > 0.0 || high < 0.0))?;
    Some(match (significant, mean < 0.0) {
        (false, _) => UNCLEAR,
        (true, true) => BETTER,
        (true, false) => WORSE,
    })
}
