//! Repetitions until the answer is precise.

use crate::results::cell_summary::CellSummary;
use crate::results::felt::felt;
use crate::results::summary::Summary;
use crate::study::plan::Plan;
use flowstart_report::Verdict;

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
    /// The number of repetitions to begin with, where the study has `reps`.
    pub(super) fn first(self, reps: u32) -> u32 {
        reps.max(LEAST_REPS).min(self.most)
    }

    /// The cells that are not precise yet, with their half widths. Where all repetitions are one run, more of them say
    /// nothing new.
    fn imprecise<'a>(self, plan: &Plan, summary: &'a Summary) -> Vec<(&'a CellSummary, f64)> {
        let has_comparisons = summary.cells.iter().any(|cell| cell.vs_baseline.is_some());
        let half = |[low, high]: [f64; 2], middle: f64| (high - low) / 2.0 / middle;
        let width = |place: usize, cell: &CellSummary| match &cell.vs_baseline {
            Some(versus) if matches!(versus.verdict, Some(Verdict::Same | Verdict::Deterministic)) => None,
            Some(versus) => Some(half(versus.speedup_ci?, versus.speedup?)),
            None if has_comparisons => None,
            None => {
                let metric = cell.metrics.get(felt(plan, plan.cells().get(place)?).0)?;
                Some(half(metric.ci95?, metric.mean?))
            }
        };
        let all = summary.cells.iter().enumerate();
        all.filter_map(|(place, cell)| Some((cell, width(place, cell)?))).filter(|one| one.1 > self.relative).collect()
    }

    /// The number of repetitions of the next step; `None` if all cells are precise or there are no more repetitions.
    /// Widths shrink with the root of the number.
    pub(super) fn next(self, plan: &Plan, summary: &Summary) -> Option<u32> {
        let widest = self.imprecise(plan, summary).into_iter().map(|(_, width)| width).reduce(f64::max)?;
        let growth = (1.1 * (widest / self.relative).powi(2)).clamp(GROWTH.0, GROWTH.1);
        let next = (f64::from(plan.reps) * growth).ceil().min(f64::from(self.most)) as u32;
        (next > plan.reps).then_some(next)
    }

    /// What is said of cells that are not precise at the end.
    pub(super) fn note(self, plan: &Plan, summary: &Summary) -> Option<String> {
        /// Most cells that are named.
        const NAMED: usize = 3;
        let cells = self.imprecise(plan, summary);
        if cells.is_empty() {
            return None;
        }
        let (wanted, reps) = (self.relative * 100.0, plan.reps);
        let named = cells.iter().take(NAMED).map(|(cell, width)| format!("{} ({:.1} %)", cell.id, width * 100.0));
        let mut named: Vec<String> = named.collect();
        if cells.len() > NAMED {
            named.push(format!("and {} more", cells.len() - NAMED));
        }
        Some(format!("After {reps} repetitions, the limit, these are not known to {wanted} %: {}.", named.join(", ")))
    }
}
