//! What each choice does to each kind of transfer of a fleet.

use std::path::Path;

use flowstart_core::spec::names;

use super::choices::{Cells, Choices, Subject};
use super::population::{Kind, Population, PopulationError};
use crate::perform::{Again, Progress, perform};
use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::spec::InputError;
use crate::spec::transport::BOTH;
use crate::study::Study;
use crate::study::plan::Plan;
use crate::study::scenario::Scenario;

/// The question about a fleet.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is to be chosen.
    pub choices: Choices,
    /// The transport, as `--transport` takes it.
    pub transport: String,
    /// The congestion avoidance, as `--avoidance` takes it; `None`: the schemes' own.
    pub avoidance: Option<String>,
    /// Repetitions of each transfer.
    pub reps: u32,
    /// The seed.
    pub seed: u64,
}

/// Transfers of one kind over paths that are known, or over ones that are not, with one start.
#[derive(Clone, Debug)]
pub struct Part {
    /// The kind's place in the population.
    pub kind: usize,
    /// Whether their paths are known.
    pub is_known: bool,
    /// The start with which they arrive; `None`: it is the choice.
    pub start: Option<String>,
    /// Their share of all transfers.
    pub share: f64,
    /// What each choice does, in the order of the question.
    pub choices: Vec<Measured>,
}

/// What one choice does to transfers.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Completion times by repetition in milliseconds; `None`: it did not complete.
    pub fct_ms: Vec<Option<f64>>,
    /// What was sent twice by repetition, over the payload.
    pub inflation: Vec<f64>,
    /// What others delivered less by repetition, in Mbit; none without others.
    pub harm_mbit: Vec<f64>,
    /// 99th percentile of the time in the bottleneck's queue by repetition, in milliseconds.
    pub queue_delay_ms: Vec<f64>,
    /// Packets of the transfer that were dropped, by repetition.
    pub dropped_packets: Vec<f64>,
}

/// A fleet that was measured.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The transfers.
    pub population: Population,
    /// What the choices are.
    pub subject: Subject,
    /// The choices; the first is the baseline.
    pub choices: Vec<String>,
    /// The transport of all transfers.
    pub transport: String,
    /// Their congestion avoidance, where a scheme does not name its own.
    pub avoidance: String,
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
    /// The study of some choices for one kind of transfer; recordings are relative to `directory`.
    fn study(&self, kind: &Kind, is_known: bool, cells: Cells, directory: &Path) -> Result<Study, FleetError> {
        let Cells { link, buffer, aqms, schemes } = cells;
        // Before a scheme is refused by one of the two.
        let several = || {
            let problem = "is more than one; allowed is one of them";
            FleetError::Question(InputError::new("transport", &self.transport, problem))
        };
        if names::is_same(self.transport.trim(), BOTH) {
            return Err(several());
        }
        let count = aqms.len() * schemes.len();
        let scenario = Scenario {
            link: vec![link],
            aqm: aqms,
            size: vec![kind.size.clone()],
            scheme: schemes,
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
        let study = Study::new(scenario, directory).map_err(|error| match (&*error.field, buffer) {
            ("link", Some(buffer)) if error.problem.starts_with("buffer: ") => {
                let problem = error.problem.trim_start_matches("buffer: ");
                FleetError::Question(InputError::new("buffer", &buffer, problem))
            }
            ("aqm", _) if self.choices.subject() == Subject::Queue => FleetError::Question(error),
            ("link" | "aqm" | "size" | "competitor", _) => FleetError::Population(PopulationError::of(kind, &error)),
            _ => FleetError::Question(error),
        })?;
        if study.plan.cells().len() != count {
            return Err(several());
        }
        Ok(study)
    }
}

/// Runs every choice with every kind of transfer on `jobs` threads (0: one per core). Recordings of the population are
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
    let mut parts = Vec::new();
    for (place, kind) in population.kinds.iter().enumerate() {
        for (is_known, of_kind) in [(true, kind.share * kind.known), (false, kind.share * (1.0 - kind.known))] {
            for (start, of_start) in question.choices.starts() {
                let share = of_kind * of_start;
                if share > 0.0 {
                    let cells = question.choices.cells(kind, start.as_deref()).into_iter();
                    let studies = cells.map(|cells| question.study(kind, is_known, cells, directory));
                    let studies = studies.collect::<Result<Vec<_>, _>>()?;
                    parts.push((Part { kind: place, is_known, start, share, choices: Vec::new() }, studies));
                }
            }
        }
    }
    let plan = parts.iter().flat_map(|(_, studies)| studies).map(|study| &study.plan).next();
    let transport = plan.and_then(|plan| plan.transports.first());
    let own = || transport.map_or(String::new(), |transport| transport.profile.avoidance.name().to_owned());
    let avoidance = question.avoidance.clone().unwrap_or_else(own);
    let transport = transport.map_or(String::new(), |transport| transport.text.clone());
    let studies = parts.iter().flat_map(|(_, studies)| studies);
    progress.begins(studies.map(|study| crate::experiment::run_count(&study.plan)).sum());
    let mut measured = Vec::new();
    for (mut part, studies) in parts {
        for study in studies {
            let performed = perform(&study, &mut (), None, jobs, &OfAll(progress)).map_err(FleetError::Runs)?;
            part.choices.extend(Measured::of_each_cell(&study.plan, &performed.rows));
        }
        measured.push(part);
    }
    progress.ended();
    let (subject, choices) = (question.choices.subject(), question.choices.names());
    Ok(Fleet {
        population,
        subject,
        choices,
        transport,
        avoidance,
        reps: question.reps,
        seed: question.seed,
        parts: measured,
    })
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
        self.queue_delay_ms.extend(row.p99_queue_delay_ms);
        self.dropped_packets.push(row.dropped_packets as f64);
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
