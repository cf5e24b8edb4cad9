//! The same question was answered twice: before and after something changed.

use super::{Cell, Estimate, Kind, Verdict};
use crate::digits::digits_apart;
use serde::{Deserialize, Serialize};

/// Everything the page of a change shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChangeReport {
    /// Heading of the page and name of the browser tab.
    pub title: String,
    /// The answer in sentences: the first is shown large, the others below it.
    pub answer: Vec<String>,
    /// Where the first results are from.
    pub before: Side,
    /// Where the second results are from.
    pub after: Side,
    /// Each cell of the question.
    pub cells: Vec<Change>,
    /// What the reader must know besides, a sentence each.
    pub notes: Vec<String>,
}

/// One of the two folders of results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Side {
    /// The folder.
    pub folder: String,
    /// Version of flowstart.
    pub version: String,
    /// Hash of the program. Empty if unknown.
    pub build: String,
    /// The command.
    pub command: String,
    /// Repetitions of each cell.
    pub repetitions: u32,
    /// The machine.
    pub host: String,
}

/// The change of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// The cell before.
    pub before: Cell,
    /// The same cell after.
    pub after: Cell,
    /// Repetitions that both have, which are compared in pairs.
    pub pairs: u32,
    /// Mean FCT before / mean FCT after: over 1 is faster. The interval holds for all cells at once.
    pub fct_ratio: Estimate,
    /// What the FCT shows. `None` if nothing can be compared.
    pub verdict: Option<Verdict>,
    /// Inflation after minus inflation before.
    pub inflation_delta: Estimate,
    /// Dropped packets after minus before, per flow.
    pub dropped_delta: Estimate,
}

impl Change {
    /// Whether the FCT changed, as its verdict says.
    pub fn has_changed(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict.is_gain() || verdict.kind == Kind::Slower)
    }

    /// How far the FCT is from what it was, whatever the direction: the logarithm of the ratio.
    pub fn effect(&self) -> f64 {
        self.fct_ratio.mean.map_or(0.0, |ratio| ratio.ln().abs())
    }

    /// The change in words, behind the cell's name: `finishes 1.20 times as fast (1.10 to 1.30)`.
    pub fn in_words(&self) -> String {
        let Some(ratio) = self.fct_ratio.mean.filter(|ratio| *ratio > 0.0) else {
            return "is not comparable".to_owned();
        };
        let ends = self.fct_ratio.ci95;
        if ratio >= 1.0 {
            let all: Vec<f64> = std::iter::once(ratio).chain(ends.into_iter().flatten()).collect();
            let digits = digits_apart(&all, 2);
            let interval = ends.map_or(String::new(), |[low, high]| format!(" ({low:.digits$} to {high:.digits$})"));
            let is_waste = self.verdict.is_some_and(|verdict| verdict.kind == Kind::FasterByWaste);
            let waste = if is_waste { ", but by waste" } else { "" };
            return format!("finishes {ratio:.digits$} times as fast{interval}{waste}");
        }
        let percent = |ratio: f64| (1.0 / ratio - 1.0) * 100.0;
        let interval =
            ends.map_or(String::new(), |[low, high]| format!(" ({:.1} to {:.1})", percent(high), percent(low)));
        format!("takes {:.1} % longer{interval}", percent(ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sooner_is_a_factor_and_later_a_percentage() {
        let change = |mean: f64, low, high, kind| Change {
            fct_ratio: Estimate { mean: Some(mean), ci95: Some([low, high]) },
            verdict: Some(Verdict::of_interval(kind)),
            ..Change::default()
        };
        assert_eq!(change(1.2, 1.1, 1.3, Kind::Faster).in_words(), "finishes 1.20 times as fast (1.10 to 1.30)");
        // 1 / 0.8 is 25 % more, 1 / 0.9 is 11.1 % and 1 / 0.75 is 33.3 %.
        assert_eq!(change(0.8, 0.75, 0.9, Kind::Slower).in_words(), "takes 25.0 % longer (11.1 to 33.3)");
        assert!(change(1.02, 1.01, 1.03, Kind::Faster).has_changed());
        assert!(!change(1.005, 1.004, 1.006, Kind::Negligible).has_changed());
        // A build that is faster because it sends twice has changed, and says how.
        let wasteful = change(1.5, 1.4, 1.6, Kind::FasterByWaste);
        assert!(wasteful.has_changed());
        assert_eq!(wasteful.in_words(), "finishes 1.50 times as fast (1.40 to 1.60), but by waste");
    }
}
