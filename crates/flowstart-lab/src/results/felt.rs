//! The time that users feel, which comparisons are about, and the seeds of their resamples.

use flowstart_core::rng::{mix, name_hash};

use super::row::Row;
use crate::study::plan::{Cell, Plan};

/// The value of a metric.
pub type Field = fn(&Row) -> Option<f64>;

/// The name of the time that a user of a cell's flows notices: for a video the mean time of its chunks. Comparisons
/// with the baseline use it.
pub fn felt(plan: &Plan, cell: &Cell) -> (&'static str, Field) {
    match plan.sizes[cell.size].value.objects() {
        Some(application) if application.feels_objects() => ("mean_object_fct_ms", |row| row.mean_object_fct_ms),
        _ => ("fct_ms", |row| row.fct_ms),
    }
}

/// Seed of the bootstrap of a cell: reproducible, and independent of the runs.
pub(super) fn cell_seed(plan: &Plan, cell: &Cell) -> u64 {
    mix(plan.seed ^ name_hash("bootstrap") ^ cell.index as u64)
}
