//! What each scheme does to each kind of transfer of a fleet.

use std::path::Path;

use flowstart_core::needs::Needs;
use flowstart_core::startup::StartupConfig;

use super::population::{Kind, Population, PopulationError};
use crate::perform::{Again, Progress, perform};
use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::spec::InputError;
use crate::spec::algorithm::scheme;
use crate::study::Study;
use crate::study::plan::Plan;
use crate::study::scenario::Scenario;

/// The question about a fleet.
#[derive(Clone, Debug)]
pub struct Question {
    /// The schemes, as `--scheme` takes them. The first is the baseline.
    pub schemes: Vec<String>,
    /// The transport, as `--transport` takes it.
    pub transport: String,
    /// The congestion avoidance, as `--avoidance` takes it; `None`: the schemes' own.
    pub avoidance: Option<String>,
    /// Repetitions of each transfer.
    pub reps: u32,
    /// The seed.
    pub seed: u64,
}

impl Question {
    /// The shipped schemes that depend on nobody else: neither on routers nor on other connections.
    pub fn every_scheme() -> Vec<String> {
        let others = [Needs::APPROVAL, Needs::CONGESTION_HEADER, Needs::SHARED_WINDOW];
        let is_alone = |name: &&&str| {
            let read = scheme("scheme", name, &StartupConfig::SlowStart(Default::default()));
            read.is_ok_and(|read| others.iter().all(|other| !read.value.needs().contains(*other)))
        };
        StartupConfig::NAMES.iter().filter(is_alone).map(|name| (*name).to_owned()).collect()
    }
}

/// Transfers of one kind over paths that are known, or over ones that are not.
#[derive(Clone, Debug)]
pub struct Part {
    /// The kind's place in the population.
    pub kind: usize,
    /// Whether their paths are known.
    pub is_known: bool,
    /// Their share of all transfers.
    pub share: f64,
    /// What each scheme does, in the order of the question.
    pub schemes: Vec<Measured>,
}

/// What one scheme does to transfers.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Completion times by repetition in milliseconds; `None`: it did not complete.
    pub fct_ms: Vec<Option<f64>>,
    /// What was sent twice by repetition, over the payload.
    pub inflation: Vec<f64>,
    /// What others delivered less by repetition, in Mbit; none without others.
    pub harm_mbit: Vec<f64>,
}

/// A fleet that was measured.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The transfers.
    pub population: Population,
    /// The schemes; the first is the baseline.
    pub schemes: Vec<String>,
    /// Repetitions of each transfer.
    pub reps: u32,
    /// The seed.
    pub seed: u64,
    /// Each part of the population that has transfers.
    pub parts: Vec<Part>,
}

/// Why a fleet cannot be measured.
#[derive(Debug)]
pub enum FleetError {
    /// A line of the table.
    Population(PopulationError),
    /// A part of the question.
    Question(InputError),
    /// The runs.
    Runs(ExperimentError),
}

impl std::fmt::Display for FleetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Population(error) => error.fmt(f),
            Self::Question(error) => error.fmt(f),
            Self::Runs(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FleetError {}

/// The progress of several studies as that of one.
struct OfAll<'a>(&'a dyn Progress);

impl Progress for OfAll<'_> {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn warn(&self, text: &str) {
        self.0.warn(text);
    }

    fn begins(&self, _: u64) {}

    fn done(&self, runs: u64) {
        self.0.done(runs);
    }

    fn ended(&self) {}

    fn again(&self, again: Again) {
        self.0.again(again);
    }
}

impl Question {
    /// The study of one kind of transfer; recordings are relative to `directory`.
    fn study(&self, kind: &Kind, is_known: bool, directory: &Path) -> Result<Study, FleetError> {
        let scenario = Scenario {
            link: vec![kind.link.clone()],
            aqm: vec![kind.aqm.clone()],
            size: vec![kind.size.clone()],
            scheme: self.schemes.clone(),
            competitor: vec![kind.competitor.clone()],
            transport: vec![self.transport.clone()],
            avoidance: self.avoidance.iter().cloned().collect(),
            flows: 1,
            reps: self.reps,
            seed: self.seed,
            hint: true,
            unknown: !is_known,
            noise: true,
            ..Scenario::default()
        };
        Study::new(scenario, directory).map_err(|error| match &*error.field {
            "link" | "aqm" | "size" | "competitor" => FleetError::Population(PopulationError::of(kind, &error)),
            _ => FleetError::Question(error),
        })
    }
}

/// Runs every scheme with every kind of transfer on `jobs` threads (0: one per core). Recordings of the population are
/// relative to `directory`.
///
/// # Errors
///
/// The first line or part of the question that cannot be used, before anything runs.
pub fn measure(
    population: Population,
    question: &Question,
    directory: &Path,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Fleet, FleetError> {
    let mut studies = Vec::new();
    for (place, kind) in population.kinds.iter().enumerate() {
        for (is_known, share) in [(true, kind.share * kind.known), (false, kind.share * (1.0 - kind.known))] {
            if share > 0.0 {
                studies.push((place, is_known, share, question.study(kind, is_known, directory)?));
            }
        }
    }
    let runs = studies.iter().map(|(.., study)| crate::experiment::run_count(&study.plan)).sum();
    progress.begins(runs);
    let mut parts = Vec::new();
    for (kind, is_known, share, study) in studies {
        let performed = perform(&study, &mut (), None, jobs, &OfAll(progress)).map_err(FleetError::Runs)?;
        let schemes = Measured::of_each_cell(&study.plan, &performed.rows);
        parts.push(Part { kind, is_known, share, schemes });
    }
    progress.ended();
    let Question { schemes, reps, seed, .. } = question.clone();
    Ok(Fleet { population, schemes, reps, seed, parts })
}

impl Measured {
    /// What each cell of a plan did, whose cells have one flow: their rows are their repetitions.
    pub fn of_each_cell(plan: &Plan, rows: &[Row]) -> Vec<Self> {
        let of_cell = |rows: &[Row]| {
            let mut measured = Self::default();
            rows.iter().for_each(|row| measured.add(row));
            measured
        };
        rows.chunks(plan.reps as usize).map(of_cell).collect()
    }

    fn add(&mut self, row: &Row) {
        self.fct_ms.push(row.fct_ms.filter(|_| !row.failed()));
        self.inflation.push(row.inflation);
        self.harm_mbit.extend(row.others_goodput_lost_mbit);
    }

    /// The mean completion time; `None` if not all completed.
    pub fn mean_fct_ms(&self) -> Option<f64> {
        flowstart_statistics::mean(&self.fct_ms.iter().copied().collect::<Option<Vec<f64>>>()?)
    }

    /// The part of the repetitions that did not complete.
    pub fn failed(&self) -> f64 {
        self.fct_ms.iter().filter(|fct| fct.is_none()).count() as f64 / self.fct_ms.len().max(1) as f64
    }
}
