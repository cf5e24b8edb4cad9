//! The time that users feel, which comparisons are about, and the seeds of their resamples.

use flowstart_core::rng::{mix, name_hash};

use super::row::Row;
use crate::spec::application::Felt;
use crate::study::plan::{Cell, Plan};

/// The value of a metric.
pub type Field = fn(&Row) -> Option<f64>;

/// The name of the time that a user of a cell's flows notices: for chunks their mean time, for an adaptive video
/// the time until its first picture. Comparisons with the baseline use it.
pub fn felt(plan: &Plan, cell: &Cell) -> (&'static str, Field) {
    match plan.sizes[cell.size].value.objects().map(|application| application.felt()) {
        None | Some(Felt::Completion) => ("fct_ms", |row| row.fct_ms),
        Some(Felt::Objects) => ("mean_object_fct_ms", |row| row.mean_object_fct_ms),
        Some(Felt::Start) => ("startup_delay_ms", |row| row.startup_delay_ms),
    }
}

/// Seed of the bootstrap of a cell: reproducible, and independent of the runs.
pub(super) fn cell_seed(plan: &Plan, cell: &Cell) -> u64 {
    mix(plan.seed ^ name_hash("bootstrap") ^ cell.index as u64)
}
