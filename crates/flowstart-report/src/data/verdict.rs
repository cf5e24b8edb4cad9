//! A comparison ends in a verdict, which sentences, tables and charts share.

use serde::{Deserialize, Serialize};

/// Payload sent again beyond the baseline's, over the payload, from which on a gain is [waste](Kind::FasterByWaste).
pub const WASTE: f64 = 0.15;

/// What a comparison of a cell with its baseline shows, and how sure that is. Everything that a reader sees follows
/// from it: the sentence, the mark in the table and the mark in the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// What it shows.
    pub kind: Kind,
    /// What that rests on.
    pub certainty: Certainty,
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Finishes sooner, by more than 1 %.
    Faster,
    /// Finishes sooner, but sends so many bytes twice that it is not offered as an answer.
    FasterByWaste,
    /// Finishes later, by more than 1 %.
    Slower,
    /// Differs for certain, by 1 % at most.
    Negligible,
    /// Cannot be told apart: the interval contains 1, or there is none.
    Unclear,
    /// Every repetition is the same as the baseline's: the scheme never acted.
    Same,
}

/// What is known of other runs than those that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Repetitions differ: the simultaneous interval of the speed-up decides.
    Interval,
    /// All repetitions are one run, so nothing is known of other runs: there is no interval.
    OneRun,
}

impl Verdict {
    /// A verdict on repetitions that differ.
    pub fn of_interval(kind: Kind) -> Self {
        Self { kind, certainty: Certainty::Interval }
    }

    /// A verdict on one distinct run.
    pub fn of_one_run(kind: Kind) -> Self {
        Self { kind, certainty: Certainty::OneRun }
    }

    /// Whether it rests on one distinct run. Of runs that are the baseline's, nothing more would be known.
    pub fn is_deterministic(self) -> bool {
        self.certainty == Certainty::OneRun && self.kind != Kind::Same
    }

    /// Whether it is faster, by waste or not.
    pub fn is_gain(self) -> bool {
        matches!(self.kind, Kind::Faster | Kind::FasterByWaste)
    }

    /// Whether an interval shows an effect of more than 1 %.
    pub fn is_significant(self) -> bool {
        self.certainty == Certainty::Interval && (self.is_gain() || self.kind == Kind::Slower)
    }

    /// Its name in `summary.json`.
    pub fn word(self) -> &'static str {
        match self.kind {
            _ if self.is_deterministic() => "deterministic",
            Kind::Faster => "faster",
            Kind::FasterByWaste => "faster-by-waste",
            Kind::Slower => "slower",
            Kind::Negligible | Kind::Unclear => "unclear",
            Kind::Same => "same",
        }
    }
}

impl From<Kind> for Verdict {
    /// On repetitions that differ.
    fn from(kind: Kind) -> Self {
        Self::of_interval(kind)
    }
}
