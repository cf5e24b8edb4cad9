//! A comparison ends in a verdict, which sentences, tables and charts share.

use serde::{Deserialize, Serialize};

/// What a comparison of a cell with its baseline shows. Everything that a reader sees follows from it: the sentence,
/// the mark in the table and the mark in the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Finishes sooner: the simultaneous interval of the speed-up lies above 1, and the effect exceeds 1 %.
    Faster,
    /// Finishes sooner, but sends so many bytes twice that it is not offered as an answer.
    FasterByWaste,
    /// Finishes later: the interval lies below 1, and the effect exceeds 1 %.
    Slower,
    /// Cannot be told apart: the interval contains 1, or the effect is at most 1 %.
    Unclear,
    /// Every repetition is the same as the baseline's: the scheme never acted.
    Same,
    /// All repetitions are one run, so nothing is known of other runs: there is no interval.
    Deterministic,
}
