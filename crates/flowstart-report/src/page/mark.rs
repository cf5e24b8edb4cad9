//! Numbers of tables have an interval, and speed-ups a mark that says what their comparison shows.

use crate::number::{Format, finite};
use crate::verdict::{LOOKS, Look, look_of, shown};
use crate::{Estimate, Verdict};
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

/// The marks of verdicts, for legends.
pub(super) fn verdict_marks() -> Vec<Mark> {
    LOOKS.iter().map(mark_of).collect()
}

fn mark_of(look: &Look) -> Mark {
    Mark { glyph: look.glyph, class: look.class, words: look.words }
}

/// Mark of a verdict on a speed-up.
pub(super) fn verdict_mark(speedup: Estimate, verdict: Option<Verdict>) -> Option<Mark> {
    shown(speedup, verdict).map(|verdict| mark_of(look_of(verdict)))
}
