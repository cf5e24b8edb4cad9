//! Repetitions until the answer is precise.

use crate::results::cell_summary::CellSummary;
use crate::results::felt::felt;
use crate::results::summary::Summary;
use crate::spec::InputError;
use crate::study::Study;
use crate::study::plan::Plan;
use crate::study::scenario::{MAX_REPS, Scenario};
use flowstart_report::{Certainty, Kind, Verdict};

/// Fewest repetitions that say something of the scatter.
pub const LEAST_REPS: u32 = 5;
/// Most repetitions when none are given.
pub const MOST_REPS: u32 = 1000;
/// The smallest and the largest growth of the number of repetitions in a step.
const GROWTH: (f64, f64) = (1.5, 4.0);

/// How precise the answer has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Half the width of the simultaneous interval of each comparison, relative to its speed-up; without comparisons
    /// that of each mean completion time. Between 0 and 1.
    pub relative: f64,
    /// Most repetitions.
    pub most: u32,
}

impl Precision {
    /// The same, if a study may have so many repetitions.
    ///
    /// # Errors
    ///
    /// The field, and what is allowed.
    pub fn checked(self, study: &Study) -> Result<Self, InputError> {
        let least = study.plan.reps.max(LEAST_REPS);
        if !(self.relative > 0.0 && self.relative < 1.0) {
            let allowed = "allowed is more than 0 and less than 1";
            return Err(InputError::new("precision", self.relative.to_string(), allowed));
        }
        if !(least..=MAX_REPS).contains(&self.most) {
            return Err(InputError::new(
                "max-reps",
                self.most.to_string(),
                format!("allowed is {least} to {MAX_REPS}"),
            ));
        }
        // The same limits hold as for the repetitions of the study.
        let all = Scenario { reps: self.most, ..study.scenario.clone() };
        all.plan(&study.directory).map_err(|error| InputError { field: format!("max-{}", error.field), ..error })?;
        Ok(self)
    }

    /// The number of repetitions to begin with, where the study has `reps`.
    pub fn first(self, reps: u32) -> u32 {
        reps.max(LEAST_REPS).min(self.most)
    }

    /// The cells that are not precise yet, with their half widths, and those of which no repetition can tell a width
    /// because none completed. What has no interval scatters too much for one: it is infinitely wide. Where all
    /// repetitions are one run, more of them say nothing new.
    fn imprecise<'a>(self, plan: &Plan, summary: &'a Summary) -> (Vec<(&'a CellSummary, f64)>, Vec<&'a CellSummary>) {
        let has_comparisons = summary.cells.iter().any(|cell| cell.vs_baseline.is_some());
        let half = |interval: Option<[f64; 2]>, middle: f64| {
            interval.map_or(f64::INFINITY, |[low, high]| (high - low) / 2.0 / middle)
        };
        let (mut wide, mut never) = (Vec::new(), Vec::new());
        for (cell, of_plan) in summary.cells.iter().zip(plan.cells()) {
            let width = match &cell.vs_baseline {
                Some(versus) if versus.verdict.is_some_and(is_known) => continue,
                Some(versus) => versus.speedup.map(|speedup| half(versus.speedup_ci, speedup)),
                None if has_comparisons => continue,
                None => {
                    let metric = cell.metrics.get(felt(plan, &of_plan).0);
                    let mean = metric.and_then(|metric| Some((metric.ci95, metric.mean?)));
                    mean.map(|(interval, mean)| if cell.distinct == 1 { 0.0 } else { half(interval, mean) })
                }
            };
            match width {
                Some(width) if width > self.relative => wide.push((cell, width)),
                Some(_) => {}
                None => never.push(cell),
            }
        }
        (wide, never)
    }

    /// The number of repetitions of the next step; `None` if all cells are precise or there are no more repetitions.
    /// Widths shrink with the root of the number.
    pub fn next(self, plan: &Plan, summary: &Summary) -> Option<u32> {
        let widest = self.imprecise(plan, summary).0.into_iter().map(|(_, width)| width).reduce(f64::max)?;
        let growth = (1.1 * (widest / self.relative).powi(2)).clamp(GROWTH.0, GROWTH.1);
        let next = (f64::from(plan.reps) * growth).ceil().min(f64::from(self.most)) as u32;
        (next > plan.reps).then_some(next)
    }

    /// What is said of cells that are not precise at the end.
    pub fn note(self, plan: &Plan, summary: &Summary) -> Option<String> {
        let (wide, never) = self.imprecise(plan, summary);
        let (wanted, reps) = (self.relative * 100.0, plan.reps);
        let mut sentences = Vec::new();
        if !wide.is_empty() {
            let named = |(cell, width): &(&CellSummary, f64)| match width.is_finite() {
                true => format!("{} ({:.1} %)", cell.id, width * 100.0),
                false => format!("{} (too much scatter for an interval)", cell.id),
            };
            let cells = listed(wide.iter().map(named));
            sentences.push(format!("After {reps} repetitions, the limit, these are not known to {wanted} %: {cells}."));
        }
        if !never.is_empty() {
            let cells = listed(never.iter().map(|cell| cell.id.clone()));
            let what = if never.iter().any(|cell| cell.vs_baseline.is_some()) { " beside their baseline" } else { "" };
            sentences.push(format!("No repetition of these completed{what}, so nothing is known of them: {cells}."));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// Whether more repetitions say nothing new.
fn is_known(verdict: Verdict) -> bool {
    verdict.kind == Kind::Same || verdict.certainty == Certainty::OneRun
}

/// The first few cells, and the number of others.
fn listed(cells: impl ExactSizeIterator<Item = String>) -> String {
    /// Most cells that are named.
    const NAMED: usize = 3;
    let more = cells.len().saturating_sub(NAMED);
    let mut named: Vec<String> = cells.take(NAMED).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}
