//! How sure the numbers of an answer are.

use flowstart_report::{Kind, Verdict};

use super::words::{MOST_NAMED, percent};
use crate::results::cell_summary::{CellSummary, Comparison};
use crate::results::coverage::coverage;
use crate::results::felt::felt;
use crate::results::summary::Summary;
use crate::study::plan::{Axis, Cell, Plan};

/// Repetitions below which the interval of one comparison is not trusted: of times that have two values, those of 2 and
/// 3 repetitions missed the ratio of 300 in a third and a fifth of 60 trials, those of 5 in one of 20.
const FEW: usize = 5;

/// A mean is typical if at least this part of the runs is near it.
const TYPICAL: f64 = 0.25;

/// What holds for the intervals of all comparisons.
pub(super) fn intervals(summary: &Summary) -> Option<String> {
    let compared: Vec<&Comparison> = summary.cells.iter().filter_map(|cell| cell.vs_baseline.as_ref()).collect();
    let with = compared.iter().filter(|versus| has_interval(versus)).count();
    let level = percent(compared.first()?.level);
    let nominally = if few_repetitions(summary).is_some() { " nominally" } else { "" };
    let sentence = match with {
        0 => return None,
        1 => format!("Intervals are{nominally} {level}."),
        some if some < compared.len() => {
            format!("Intervals are{nominally} {level} and hold at once for the {some} comparisons that have one.")
        }
        2 => format!("Intervals are{nominally} {level} and hold for both comparisons at once."),
        several => format!("Intervals are{nominally} {level} and hold for all {several} comparisons at once."),
    };
    let is_scattered = |versus: &&&Comparison| {
        versus.verdict == Some(Verdict::of_interval(Kind::Unclear)) && versus.speedup_ci.is_none()
    };
    Some(match compared.iter().filter(is_scattered).count() {
        0 => sentence,
        1 => format!("{sentence} 1 more varies too much for one."),
        more => format!("{sentence} {more} more vary too much for one."),
    })
}

/// Whether a comparison has an interval that says something: where all repetitions are the same, there is none to tell.
fn has_interval(versus: &Comparison) -> bool {
    versus.speedup_ci.is_some() && versus.verdict.is_none_or(|verdict| verdict.kind != Kind::Same)
}

/// What intervals are worth that stand on few repetitions, by the fewest that any of them has.
pub(super) fn few_repetitions(summary: &Summary) -> Option<String> {
    let with = summary.cells.iter().filter(|cell| cell.vs_baseline.as_ref().is_some_and(has_interval));
    let completed = |cell: &CellSummary| cell.vs_baseline.as_ref().map_or(0, |versus| versus.repetitions);
    let repetitions: Vec<usize> =
        with.map(|cell| cell.distinct.min(completed(cell))).filter(|distinct| *distinct > 1).collect();
    let fewest = repetitions.iter().copied().min()?;
    if repetitions.len() == 1 {
        let narrow =
            || format!("An interval of {fewest} repetitions is too narrow where times jump, as losses make them.");
        return (fewest < FEW).then(narrow);
    }
    coverage(repetitions.len(), fewest)
}

/// Where the mean is the time of few runs, because times are of two kinds or vary much.
pub(super) fn untypical_means(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<String> {
    let cells = plan.cells();
    let is_untypical = |cell: &&Cell| {
        let cell = &summary.cells[cell.index];
        cell.distinct >= FEW && cell.near_mean.is_some_and(|part| part < TYPICAL)
    };
    let untypical: Vec<&Cell> = cells.iter().filter(is_untypical).collect();
    let of = |cell: &&Cell| {
        let time = summary.cells[cell.index].metrics.get(felt(plan, cell).0)?;
        let (mean, median, p95) = (time.mean?, time.median?, time.p95?);
        let name = axis.texts(plan)[axis.place(**cell)];
        Some(format!("{name} {mean:.0} ms, {median:.0} ms in the median, 95 % within {p95:.0} ms"))
    };
    if untypical.is_empty() {
        None
    } else if cells.len() == axis.length(plan) && untypical.len() <= MOST_NAMED {
        let parts = untypical.iter().map(of).collect::<Option<Vec<String>>>()?;
        Some(format!("Means that few runs are near: {}.", parts.join("; ")))
    } else {
        Some(format!(
            "In {} of {} cells times vary so much that few runs are near their mean.",
            untypical.len(),
            cells.len()
        ))
    }
}
