//! A study from its first run to its results.
//!
//! Commands, tests and other front ends call [`perform`]. It runs every piece of the study on all cores, gives the rows
//! to a [`Sink`] as they arrive, and reports its progress to a [`Progress`]. To spread a study over machines, run
//! [`experiment::piece`] for each of [`experiment::pieces`] and join the rows with [`experiment::join`]. All programs
//! must be of one build. `Folder::open` and `Folder::close` make a folder of joined rows.

use crate::experiment;
use crate::report;
use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::results::summary::{Summary, summarize};
use crate::run::testbed::Testbed;
use crate::study::Study;
use crate::study::plan::Plan;
use crate::trace::observe::{Kept, Wanted};

mod folder;
mod page;
mod precision;

pub use folder::{Folder, Provenance, Published};
pub use page::page;
pub use precision::{LEAST_REPS, MOST_REPS, Precision};
pub use report::Again;

/// The destination of results.
pub trait Sink: Sync {
    /// Called before the first run. Returns the known rows, which are not run again. Their repetitions may be those of
    /// the study and, where repetitions are added, further ones up to a number of `most`.
    ///
    /// # Errors
    ///
    /// The reason why it cannot take results.
    fn open(&mut self, study: &Study, most: u32, progress: &dyn Progress) -> Result<Vec<Row>, ExperimentError>;

    /// The observations that it wants of runs.
    fn wanted(&self, study: &Study) -> Wanted;

    /// Called with the rows of a piece when the piece ends. Pieces end in any order.
    fn add(&self, rows: &[Row], progress: &dyn Progress);

    /// Called after the last run.
    ///
    /// # Errors
    ///
    /// The file that could not be written.
    fn close(
        &mut self,
        study: &Study,
        performed: &Performed,
        kept: Kept,
        jobs: usize,
        progress: &dyn Progress,
    ) -> Result<(), ExperimentError>;
}

/// A receiver of progress reports.
pub trait Progress: Sync {
    /// A note for the user.
    fn note(&self, text: &str);

    /// A warning, also for a user who wants no notes.
    fn warn(&self, text: &str) {
        self.note(text);
    }

    /// This many runs begin.
    fn begins(&self, runs: u64);

    /// This many more of them are done.
    fn done(&self, runs: u64);

    /// All of them are done.
    fn ended(&self);

    /// A run was simulated again, for the report.
    fn again(&self, again: Again);

    /// Whether anybody still wants the results. Once nobody does no run begins, and the study ends with
    /// [`ExperimentError::Stopped`].
    fn goes_on(&self) -> bool {
        true
    }
}

/// Results of a study.
#[derive(Debug)]
pub struct Performed {
    /// A row per measured flow and repetition, in the order of cells, repetitions and flows.
    pub rows: Vec<Row>,
    /// Metrics, intervals and comparisons of every cell, and the answer.
    pub summary: Summary,
}

/// The summary of an experiment, with the answer.
pub fn concluded(plan: &Plan, rows: &[Row]) -> Summary {
    let mut summary = summarize(plan, rows);
    let mut sentences = report::answer(plan, &summary).into_iter();
    summary.answer = sentences.next().unwrap_or_default();
    summary.answer_notes = sentences.collect();
    summary
}

/// Performs a study on `jobs` threads (0: one per core). Their number does not affect the results. With a `precision`,
/// repetitions follow those of the study until it is reached; the sink then gets the study with all of them.
///
/// # Errors
///
/// The reason why no thread could be started, or the sink's error.
pub fn perform(
    study: &Study,
    sink: &mut dyn Sink,
    precision: Option<Precision>,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Performed, ExperimentError> {
    perform_on(study, None, sink, precision, jobs, progress)
}

/// As [`perform`], with a testbed for transfers between sockets, one at a time whatever `jobs` says.
///
/// # Errors
///
/// Also those of the testbed.
pub fn perform_on(
    study: &Study,
    testbed: Option<&dyn Testbed>,
    sink: &mut dyn Sink,
    precision: Option<Precision>,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Performed, ExperimentError> {
    let begun = precision.map_or_else(|| study.clone(), |precision| study.with_reps(precision.first(study.plan.reps)));
    let most = precision.map_or(begun.plan.reps, |precision| precision.most);
    let earlier = sink.open(&begun, most, progress)?;
    let (mut study, mut kept, mut before) = (begun, Kept::default(), 0);
    let (mut known, mut done) = (Vec::new(), 0);
    let (rows, summary) = loop {
        // An interrupted run may have got further than this step.
        let step = u64::from(done)..u64::from(study.plan.reps);
        known.extend(earlier.iter().filter(|row| step.contains(&row.rep)).cloned());
        let runs = experiment::run_count(&study.plan);
        progress.begins(runs - before);
        let wanted = sink.wanted(&study);
        let sink_of_rows: &dyn Sink = sink;
        let goes_on = || progress.goes_on();
        let (rows, seen) = experiment::execute_watched(&study.plan, testbed, jobs, &known, &wanted, goes_on, |rows| {
            progress.done(rows.iter().filter(|row| row.flow == 0).count() as u64);
            sink_of_rows.add(rows, progress);
        })?;
        progress.ended();
        kept.join(seen);
        let summary = concluded(&study.plan, &rows);
        match precision.and_then(|precision| precision.next(&study.plan, &summary)) {
            Some(reps) => {
                (known, before, done) = (rows, runs, study.plan.reps);
                study = study.with_reps(reps);
            }
            None => break (rows, summary),
        }
    };
    let mut performed = Performed { rows, summary };
    if let Some(note) = precision.and_then(|precision| precision.note(&study.plan, &performed.summary)) {
        performed.summary.answer_notes.push(note.clone());
        study.notes.push(note);
    }
    sink.close(&study, &performed, kept, jobs, progress)?;
    Ok(performed)
}

/// Keeps nothing: only [`perform`] returns the results.
impl Sink for () {
    fn open(&mut self, _: &Study, _: u32, _: &dyn Progress) -> Result<Vec<Row>, ExperimentError> {
        Ok(Vec::new())
    }

    fn wanted(&self, _: &Study) -> Wanted {
        Wanted::default()
    }

    fn add(&self, _: &[Row], _: &dyn Progress) {}

    fn close(&mut self, _: &Study, _: &Performed, _: Kept, _: usize, _: &dyn Progress) -> Result<(), ExperimentError> {
        Ok(())
    }
}

/// Ignores all reports.
impl Progress for () {
    fn note(&self, _: &str) {}

    fn begins(&self, _: u64) {}

    fn done(&self, _: u64) {}

    fn ended(&self) {}

    fn again(&self, _: Again) {}
}

#[cfg(test)]
mod tests;
