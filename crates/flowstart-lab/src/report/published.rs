//! Results beside a published table.

use flowstart_core::startup::StartupConfig;

use crate::results::flows::Row;
use crate::results::summary::{Summary, rows_by_cell, values};
use crate::study::plan::{Cell, Plan};
use flowstart_report as report;
use flowstart_statistics::{LEVEL, RESAMPLES, bca_mean_difference_paired, bca_mean_ratio_paired, mean};

/// A published table beside ours, in the report's form, with the verdicts of the summary. For a link, a size and an
/// estimate, `published` returns the published speed-up, the difference of FCT in milliseconds and the extra losses.
pub fn published_table(
    plan: &Plan,
    rows: &[Row],
    summary: &Summary,
    published: impl Fn(&str, &str, f64) -> Option<(f64, f64, f64)>,
) -> Vec<report::PublishedCell> {
    let by_cell = rows_by_cell(plan, rows);
    let mut cells = Vec::new();
    for cell in plan.cells().iter().filter(|cell| cell.scheme > 0) {
        let Some((estimate, baseline)) = estimate_of(plan, cell).zip(plan.baseline_of(cell)) else { continue };
        let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size]);
        let (own, base) = (&by_cell[cell.index], &by_cell[baseline.index]);
        let (fct, base_fct) = (values(own, |row| row.fct_request_ms), values(base, |row| row.fct_request_ms));
        let lost = |rows: &[&Row]| values(rows, |row| Some(row.declared_lost_packets as f64));
        let (losses, base_losses) = (lost(own), lost(base));
        let theirs = published(&link.text, &size.text, estimate);
        let delta = mean(&fct).zip(mean(&base_fct)).map(|(own, base)| own - base);
        let seed = plan.seed ^ cell.index as u64;
        let speedup = bca_mean_ratio_paired(&base_fct, &fct, LEVEL, RESAMPLES, seed);
        let loss = bca_mean_difference_paired(&base_losses, &losses, LEVEL, RESAMPLES, seed);
        cells.push(report::PublishedCell {
            estimate,
            link: link.text.clone(),
            size: size.text.clone(),
            ours_speedup: report::Estimate {
                mean: mean(&base_fct).zip(mean(&fct)).map(|(base, own)| base / own),
                ci95: speedup.map(|e| [e.interval.low, e.interval.high]),
            },
            ours_fct_delta_ms: delta,
            published_speedup: theirs.map(|t| t.0),
            published_fct_delta_ms: theirs.map(|t| t.1),
            ours_loss_delta: report::Estimate {
                mean: mean(&losses).zip(mean(&base_losses)).map(|(own, base)| own - base),
                ci95: loss.map(|e| [e.interval.low, e.interval.high]),
            },
            published_loss_delta: theirs.map(|t| t.2),
            verdict: summary.cells.get(cell.index).and_then(|own| own.vs_baseline.as_ref()?.verdict),
        });
    }
    cells
}

/// The factor on the hint of a cell's scheme.
pub fn estimate_of(plan: &Plan, cell: &Cell) -> Option<f64> {
    match plan.schemes[cell.scheme].on(cell.transport) {
        StartupConfig::Blitzstart(config) => Some(config.estimate),
        _ => None,
    }
}
