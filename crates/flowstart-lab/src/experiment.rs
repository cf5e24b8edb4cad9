//! An experiment: all its repetitions, on all cores.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::run::repetition::CellRun;
use crate::run::testbed::{self, Testbed};
use crate::spec::web::Rows;
use crate::study::plan::{Plan, Setting};
use crate::study::world::World;
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
    Ok(execute_watched(plan, None, jobs, known, &Wanted::default(), || true, done)?.0)
}

/// Like [`execute`], but runs transfers between sockets in the `testbed`, and also watches the simulated runs: keeps
/// the wanted observations of runs whose rows are not known yet. No piece begins once `goes_on` says no; then the
/// experiment has no results.
///
/// # Errors
///
/// No thread could be started, the testbed's error, or [`ExperimentError::Stopped`].
pub fn execute_watched(
    plan: &Plan,
    testbed: Option<&dyn Testbed>,
    jobs: usize,
    known: &[Row],
    wanted: &Wanted,
    goes_on: impl Fn() -> bool + Sync,
    done: impl Fn(&[Row]) + Sync,
) -> Result<(Vec<Row>, Kept), ExperimentError> {
    // A repetition of a setting is complete when all its cells are known.
    let complete: BTreeSet<(&str, u64)> = known.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
    let is_known = |setting: &Setting, rep: u32| {
        !complete.is_empty()
            && plan.cells_of(*setting).iter().all(|cell| complete.contains(&(plan.id(cell).as_str(), u64::from(rep))))
    };
    let work = pieces(plan).into_iter().filter(|piece| !is_known(&piece.setting, piece.rep));
    let (work, between_sockets): (Vec<Piece>, Vec<Piece>) =
        work.partition(|piece| plan.worlds[piece.setting.world] == World::Simulator);
    let kept = Mutex::new(Kept::default());
    // More threads than runs would have nothing to do.
    let fresh: Option<Vec<Vec<Row>>> = on_threads(jobs.min(work.len().max(1)), || {
        // Settings differ much in cost: no thread keeps several while another one is idle.
        work.par_iter()
            .with_max_len(1)
            .map(|piece| {
                let rows = goes_on().then(|| rows_of(plan, *piece, wanted, &kept))?;
                done(&rows);
                Some(rows)
            })
            .collect()
    })?;
    let mut fresh: Vec<Row> = fresh.ok_or(ExperimentError::Stopped)?.into_iter().flatten().collect();
    // One after the other: they take the time that they take, and none may disturb another one.
    for piece in between_sockets {
        if !goes_on() {
            return Err(ExperimentError::Stopped);
        }
        let rows = rows_of_sockets(plan, testbed, piece)?;
        done(&rows);
        fresh.extend(rows);
    }
    let redone: BTreeSet<(&str, u64)> = fresh.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
    let known = known.iter().filter(|row| !redone.contains(&(row.cell.as_str(), row.rep))).cloned();
    let known: Vec<Row> = known.collect();
    let rows = in_order(plan, fresh.into_iter().chain(known));
    Ok((rows, kept.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// A part of an experiment that can run by itself: every cell of a setting for one repetition.
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

/// The rows of all pieces in the order of results, wherever the pieces were run.
///
/// # Errors
///
/// When a piece is missing or came twice, or a row is of no piece, of another seed, or behind one that is missing.
pub fn join(plan: &Plan, rows: impl IntoIterator<Item = Row>) -> Result<Vec<Row>, ExperimentError> {
    let mut places = BTreeSet::new();
    let given: Vec<Row> = rows.into_iter().collect();
    if let Some(twice) = given.iter().find(|row| !places.insert((row.cell.as_str(), row.rep, row.flow))) {
        let Row { cell, rep, flow, .. } = twice;
        return Err(ExperimentError::Pieces(format!("flow {flow} of repetition {rep} of {cell} is there twice")));
    }
    // A repetition's seed is in its rows; the flows of a repetition are numbered from 0 without a gap.
    let of_seed = |row: &&Row| u32::try_from(row.rep).is_ok_and(|rep| plan.run_seed(rep) == row.seed);
    if let Some(Row { cell, rep, .. }) = given.iter().find(|row| !of_seed(row)) {
        return Err(ExperimentError::Pieces(format!("repetition {rep} of {cell} is of another seed")));
    }
    let is_behind_a_gap = |row: &&Row| row.flow > 0 && !places.contains(&(&*row.cell, row.rep, row.flow - 1));
    if let Some(Row { cell, rep, flow, .. }) = given.iter().find(is_behind_a_gap) {
        return Err(ExperimentError::Pieces(format!("flow {} of repetition {rep} of {cell} is missing", flow - 1)));
    }
    let (found, expected) = (given.len(), plan.cells());
    let has = |cell: &str, rep: u32| {
        places
            .range((cell, u64::from(rep), 0)..)
            .next()
            .is_some_and(|first| (first.0, first.1) == (cell, u64::from(rep)))
    };
    for cell in &expected {
        let id = plan.id(cell);
        if let Some(rep) = (0..plan.reps).find(|rep| !has(&id, *rep)) {
            return Err(ExperimentError::Pieces(format!("repetition {rep} of {id} is missing")));
        }
    }
    let rows = in_order(plan, given.clone().into_iter().filter(|row| row.rep < u64::from(plan.reps)));
    if rows.len() < found {
        return Err(ExperimentError::Pieces(format!("{} rows are of another experiment", found - rows.len())));
    }
    Ok(rows)
}

/// The rows in the order of results. Omits rows of cells that are not in the plan.
fn in_order(plan: &Plan, rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let places: BTreeMap<String, usize> = plan.cells().iter().map(|cell| (plan.id(cell), cell.index)).collect();
    let mut rows: Vec<(usize, Row)> = rows.into_iter().filter_map(|row| Some((*places.get(&row.cell)?, row))).collect();
    rows.sort_by_key(|(place, row)| (*place, row.rep, row.flow));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Most threads that can be asked for.
pub const MOST_JOBS: usize = 1024;

/// A pool of `jobs` threads (0: one per core).
pub fn threads(jobs: usize) -> Result<ThreadPool, ExperimentError> {
    pool(jobs).map_err(|error| ExperimentError::Threads(error.to_string()))
}

/// Does work whose parts run on `jobs` threads (0: one per core); where there are no threads, as in a browser, all of
/// it on this one.
///
/// # Errors
///
/// No thread could be started.
pub(crate) fn on_threads<T: Send>(jobs: usize, work: impl FnOnce() -> T + Send) -> Result<T, ExperimentError> {
    match pool(jobs) {
        Ok(pool) => Ok(pool.install(work)),
        Err(error) if is_without_threads(&error) => Ok(work()),
        Err(error) => Err(ExperimentError::Threads(error.to_string())),
    }
}

fn pool(jobs: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new().num_threads(jobs).build()
}

/// Whether this machine has no threads at all.
fn is_without_threads(error: &ThreadPoolBuildError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::Unsupported)
}

fn rows_of(plan: &Plan, Piece { setting, rep }: Piece, wanted: &Wanted, kept: &Mutex<Kept>) -> Vec<Row> {
    observe::repetition(plan, setting, rep, wanted)
        .into_iter()
        .flat_map(|CellRun { cell, outcomes, seen, .. }| {
            if wanted.of(&cell, rep).is_anything() {
                kept.lock().unwrap_or_else(PoisonError::into_inner).add(cell.index, rep, seen);
            }
            let rows: Vec<Row> = outcomes.iter().map(|outcome| Row::new(plan, &cell, rep, outcome)).collect();
            let together = plan.sizes[cell.size].value.sessions().is_some_and(|web| web.rows == Rows::Repetition);
            if together { Row::of_repetition(&rows).into_iter().collect() } else { rows }
        })
        .collect()
}

/// The rows of a piece between sockets.
fn rows_of_sockets(
    plan: &Plan,
    testbed: Option<&dyn Testbed>,
    Piece { setting, rep }: Piece,
) -> Result<Vec<Row>, ExperimentError> {
    let testbed = testbed.ok_or_else(|| ExperimentError::Sockets("this program has no testbed".into()))?;
    let outcomes = testbed::repetition(plan, testbed, setting, rep).map_err(ExperimentError::Sockets)?;
    Ok(outcomes.iter().map(|(cell, outcome)| Row::new(plan, cell, rep, outcome)).collect())
}

/// Number of runs: cells times repetitions.
pub fn run_count(plan: &Plan) -> u64 {
    plan.cells().len() as u64 * u64::from(plan.reps)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::results::flows::{read_csv, write_csv};
    use crate::study::scenario::Scenario;

    #[test]
    fn pieces_that_were_run_apart_are_the_experiment() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\", \"5KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\n\
                    competitor = [\"none\", \"cbr:rate=5mbit\"]\nflows = 2\nreps = 2";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let elsewhere = |one: Piece| {
            let mut file = Vec::new();
            write_csv(&piece(&plan, one), &mut file).unwrap();
            read_csv(&*file).unwrap()
        };
        let rows: Vec<Row> = pieces(&plan).into_iter().rev().flat_map(elsewhere).collect();
        assert_eq!(join(&plan, rows.clone()).unwrap(), execute(&plan, 1, &[], |_| {}).unwrap());
        let error = |rows: Vec<Row>| join(&plan, rows).unwrap_err().to_string();
        assert!(error(rows[4..].to_vec()).ends_with("is missing"), "{}", error(rows[4..].to_vec()));
        assert!(error([&rows[..], &rows[..1]].concat()).ends_with("is there twice"));
        let other = Row { rep: 2, seed: plan.run_seed(2), ..rows[0].clone() };
        assert!(error([&rows[..], &[other]].concat()).ends_with("1 rows are of another experiment"));
        let seeds: Vec<Row> = rows.iter().map(|row| Row { seed: row.seed + 1, ..row.clone() }).collect();
        assert!(error(seeds).ends_with("is of another seed"));
        let first = rows.iter().position(|row| row.flow == 0).unwrap();
        let gap: Vec<Row> =
            rows.iter().enumerate().filter(|(at, _)| *at != first).map(|(_, row)| row.clone()).collect();
        assert!(error(gap.clone()).contains("flow 0 of repetition"), "{}", error(gap));
    }
}
