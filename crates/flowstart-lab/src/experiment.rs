//! An experiment: all its repetitions, on all cores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::run::repetition::CellRun;
use crate::spec::web::Rows;
use crate::study::plan::{Plan, Setting};
use crate::trace::observe::{self, Kept, Wanted};

/// Runs every cell and repetition that is not among the `known` rows, on `jobs` threads (0: one per core). `done` is
/// called with the rows of each repetition of a setting as it ends. The result does not depend on the number of
/// threads.
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
    let work: Vec<Piece> = pieces(plan).into_iter().filter(|piece| !is_known(&piece.setting, piece.rep)).collect();
    let kept = Mutex::new(Kept::default());
    let fresh: Vec<Vec<Row>> = pool.install(|| {
        work.par_iter()
            .map(|piece| {
                let rows = rows_of(plan, *piece, wanted, &kept);
                done(&rows);
                rows
            })
            .collect()
    });
    let fresh: Vec<Row> = fresh.into_iter().flatten().collect();
    let redone: BTreeSet<(&str, u64)> = fresh.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
    let known = known.iter().filter(|row| !redone.contains(&(row.cell.as_str(), row.rep))).cloned();
    let known: Vec<Row> = known.collect();
    let rows = in_order(plan, fresh.into_iter().chain(known));
    Ok((rows, kept.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// A part of an experiment that can be run by itself: every cell of a setting for one repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The setting.
    pub setting: Setting,
    /// The repetition, from 0.
    pub rep: u32,
}

/// All pieces of an experiment.
pub fn pieces(plan: &Plan) -> Vec<Piece> {
    let of_setting = |setting| (0..plan.reps).map(move |rep| Piece { setting, rep });
    plan.settings().into_iter().flat_map(of_setting).collect()
}

/// Runs one piece.
pub fn piece(plan: &Plan, piece: Piece) -> Vec<Row> {
    rows_of(plan, piece, &Wanted::default(), &Mutex::new(Kept::default()))
}

/// The rows of all pieces in the order of results. Rows of cells that are not the plan's are left out.
pub fn in_order(plan: &Plan, rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let places: BTreeMap<String, usize> = plan.cells().iter().map(|cell| (plan.id(cell), cell.index)).collect();
    let mut rows: Vec<(usize, Row)> = rows.into_iter().filter_map(|row| Some((*places.get(&row.cell)?, row))).collect();
    rows.sort_by_key(|(place, row)| (*place, row.rep, row.flow));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// A pool of `jobs` threads (0: one per core).
pub fn threads(jobs: usize) -> Result<rayon::ThreadPool, ExperimentError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.map_err(|error| ExperimentError::Threads(error.to_string()))
}

fn rows_of(plan: &Plan, Piece { setting, rep }: Piece, wanted: &Wanted, kept: &Mutex<Kept>) -> Vec<Row> {
    observe::repetition(plan, setting, rep, wanted)
        .into_iter()
        .flat_map(|CellRun { cell, outcomes, seen }| {
            if wanted.of(&cell, rep).is_anything() {
                kept.lock().unwrap_or_else(PoisonError::into_inner).add(cell.index, rep, seen);
            }
            let rows: Vec<Row> = outcomes.iter().map(|outcome| Row::new(plan, &cell, rep, outcome)).collect();
            let together = plan.sizes[cell.size].value.sessions().is_some_and(|web| web.rows == Rows::Repetition);
            if together { Row::of_repetition(&rows).into_iter().collect() } else { rows }
        })
        .collect()
}

/// Number of runs: cells times repetitions.
pub fn run_count(plan: &Plan) -> u64 {
    plan.cells().len() as u64 * u64::from(plan.reps)
}
