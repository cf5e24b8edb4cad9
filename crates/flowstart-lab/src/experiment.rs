//! An experiment: all its repetitions, on all cores.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::run::repetition::CellRun;
use crate::spec::web::Rows;
use crate::study::plan::{Plan, Setting};
use crate::trace::observe::{self, Kept, Wanted};

/// Runs every cell and repetition that is not among the `known` rows, on `jobs` threads (0: one per core). `done` is
/// called with the rows of each repetition of a setting as it ends. The result does not depend on the number of threads.
pub fn execute(
    plan: &Plan,
    jobs: usize,
    known: &[Row],
    done: impl Fn(&[Row]) + Sync,
) -> Result<Vec<Row>, ExperimentError> {
    Ok(execute_watched(plan, jobs, known, &Wanted::default(), done)?.0)
}

/// As [`execute`], and watches the runs: what is wanted of those that are not known already is kept.
pub fn execute_watched(
    plan: &Plan,
    jobs: usize,
    known: &[Row],
    wanted: &Wanted,
    done: impl Fn(&[Row]) + Sync,
) -> Result<(Vec<Row>, Kept), ExperimentError> {
    let pool = threads(jobs)?;
    // A repetition of a setting is complete when all its cells are known.
    let complete: BTreeSet<(&str, u64)> = known.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
    let is_known = |setting: &Setting, rep: u32| {
        !complete.is_empty()
            && plan.cells_of(*setting).iter().all(|cell| complete.contains(&(plan.id(cell).as_str(), u64::from(rep))))
    };
    let work: Vec<(Setting, u32)> = plan
        .settings()
        .into_iter()
        .flat_map(|setting| (0..plan.reps).map(move |rep| (setting, rep)))
        .filter(|(setting, rep)| !is_known(setting, *rep))
        .collect();
    let kept = Mutex::new(Kept::default());
    let fresh: Vec<Vec<(usize, Row)>> = pool.install(|| {
        work.par_iter()
            .map(|(setting, rep)| {
                let rows = rows_of(plan, *setting, *rep, wanted, &kept);
                done(&rows.iter().map(|(_, row)| row.clone()).collect::<Vec<_>>());
                rows
            })
            .collect()
    });
    let places: std::collections::BTreeMap<String, usize> =
        plan.cells().iter().map(|cell| (plan.id(cell), cell.index)).collect();
    let mut rows: Vec<(usize, Row)> = fresh.into_iter().flatten().collect();
    let redone: BTreeSet<(usize, u64)> = rows.iter().map(|(place, row)| (*place, row.rep)).collect();
    rows.extend(known.iter().filter_map(|row| {
        let place = *places.get(&row.cell)?;
        (!redone.contains(&(place, row.rep))).then(|| (place, row.clone()))
    }));
    rows.sort_by_key(|(place, row)| (*place, row.rep, row.flow));
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((rows.into_iter().map(|(_, row)| row).collect(), kept))
}

/// A pool of `jobs` threads (0: one per core).
pub fn threads(jobs: usize) -> Result<rayon::ThreadPool, ExperimentError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.map_err(|error| ExperimentError::Threads(error.to_string()))
}

fn rows_of(plan: &Plan, setting: Setting, rep: u32, wanted: &Wanted, kept: &Mutex<Kept>) -> Vec<(usize, Row)> {
    observe::repetition(plan, setting, rep, wanted)
        .into_iter()
        .flat_map(|CellRun { cell, outcomes, seen }| {
            if wanted.of(&cell, rep).is_anything() {
                kept.lock().unwrap_or_else(PoisonError::into_inner).add(cell.index, rep, seen);
            }
            let rows: Vec<Row> = outcomes.iter().map(|outcome| Row::new(plan, &cell, rep, outcome)).collect();
            let together = plan.sizes[cell.size].value.web().is_some_and(|web| web.rows == Rows::Repetition);
            let rows = if together { Row::of_repetition(&rows).into_iter().collect() } else { rows };
            rows.into_iter().map(move |row| (cell.index, row))
        })
        .collect()
}

/// Number of runs: cells times repetitions.
pub fn run_count(plan: &Plan) -> u64 {
    plan.cells().len() as u64 * u64::from(plan.reps)
}
