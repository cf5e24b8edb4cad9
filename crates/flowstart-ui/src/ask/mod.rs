//! A question is performed, and what happens is told as events.
//!
//! | Looking for | Where |
//! |---|---|
//! | the order of the work | [`perform`] |
//! | events as a browser gets them | `event.rs` |
//! | one run of each cell, with its time series | `traced.rs` |

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use flowstart_lab::perform::{self, Again, Performed, Progress, Sink};
use flowstart_lab::report::{self, Texts};
use flowstart_lab::results::felt::felt;
use flowstart_lab::results::flows::{Row, write_csv};
use flowstart_lab::results::folder::ExperimentError;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::Study;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::observe::{Kept, Wanted};
use flowstart_report::{DataFile, Method, PublishedTable};
use serde_json::{Value, json};

use crate::question::{FILE, Question};

mod event;
mod traced;

pub use event::Event;
pub(crate) use traced::label;

/// What is beside a report.
const FILES: [(&str, &str); 3] = [
    (ROWS, "a row per measured flow and repetition"),
    (SUMMARY, "metrics, intervals and comparisons of every cell"),
    (FILE, "the question, which flowstart run takes"),
];
/// The names of these files, and of the report.
const ROWS: &str = "flows.csv";
const SUMMARY: &str = "summary.json";
const REPORT: &str = "report.html";
/// Longest time for the runs of a question. A run that has begun goes on to its end: what it may cost is limited.
const LONGEST: Duration = Duration::from_secs(120);
/// How often progress is told.
const OFTEN: Duration = Duration::from_millis(50);
/// Most completion times that are told, of all cells.
const MOST_TIMES: u64 = 6000;

/// Shows results beside published numbers, if there are any.
pub type Published = fn(&Scenario, &Plan, &[Row], &Summary) -> Option<PublishedTable>;

/// The program that performs questions, as its reports say.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The machine.
    pub host: String,
    /// Threads for the runs of a question (0: one per core).
    pub jobs: usize,
    /// Published numbers.
    pub published: Published,
    /// Whether what belongs to an answer stands beside its report, under the names of [`Answered::PARTS`].
    pub has_files: bool,
    /// The time since whenever. With a clock that stands still progress is told at the end, and no question takes too
    /// long.
    pub clock: fn() -> Duration,
}

/// A question with its answer.
#[derive(Debug)]
pub struct Answered {
    /// The question.
    pub question: Question,
    /// Its results.
    pub(crate) performed: Performed,
    /// One run of each cell, as [`Event::Run`] tells it.
    pub(crate) runs: Vec<Value>,
    /// Completion times, as [`Event::Times`] tells them.
    pub(crate) times: Vec<Value>,
    /// How long it took.
    pub(crate) took: Duration,
    /// The report, once somebody has asked for it.
    report: OnceLock<Result<Arc<str>, String>>,
}

/// Performs a question. `tell` gets what happens, and says whether anybody still listens. Blocks.
///
/// # Errors
///
/// Why there is no answer.
pub fn perform(
    question: Question,
    program: &Program,
    tell: &(dyn Fn(&Event) -> bool + Sync),
) -> Result<Answered, String> {
    let began = (program.clock)();
    let took = || (program.clock)().saturating_sub(began);
    let told = Told::new(&question.study, tell, &took);
    let runs: Vec<Value> = traced::runs(&question.study.plan, |run| told.goes_on() && tell(&Event::Run(run.clone())));
    let performed = perform::perform(&question.study, &mut Telling(&told), None, program.jobs, &told).map_err(
        |error| match error {
            ExperimentError::Stopped if took() >= LONGEST => {
                format!("the runs took longer than {} s; ask for fewer repetitions, cells or bytes", LONGEST.as_secs())
            }
            other => other.to_string(),
        },
    )?;
    let times = told.all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let took = took();
    Ok(Answered { question, performed, runs, times, took, report: OnceLock::new() })
}

impl Answered {
    /// The names of what belongs to an answer: the report, and the files that it names.
    pub const PARTS: [&str; 4] = [REPORT, ROWS, SUMMARY, FILE];

    /// What belongs to the answer, by one of the names in [`Self::PARTS`]; none for another name. Blocks: runs that the
    /// report shows in detail are simulated again.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub fn part(&self, name: &str, program: &Program) -> Option<Result<Vec<u8>, String>> {
        let Performed { rows, summary } = &self.performed;
        Some(match name {
            REPORT => self.report(program).map(|html| html.as_bytes().to_vec()),
            ROWS => {
                let mut csv = Vec::new();
                write_csv(rows, &mut csv).map(|()| csv).map_err(|error| error.to_string())
            }
            SUMMARY => serde_json::to_vec_pretty(summary).map_err(|error| error.to_string()),
            FILE => self.question.file().map(String::into_bytes),
            _ => return None,
        })
    }

    /// The report, as `flowstart compare --out` writes it.
    fn report(&self, program: &Program) -> Result<Arc<str>, String> {
        self.report.get_or_init(|| self.rendered(program)).clone()
    }

    fn rendered(&self, program: &Program) -> Result<Arc<str>, String> {
        let Study { scenario, plan, notes, .. } = &self.question.study;
        let Performed { rows, summary } = &self.performed;
        let files = FILES.iter().filter(|_| program.has_files);
        let method = Method {
            command: self.question.command().join(" "),
            version: program.version.clone(),
            seed: Some(plan.seed),
            repetitions: Some(plan.reps),
            host: program.host.clone(),
            wall_time_s: Some(self.took.as_secs_f64()),
            files: files.map(|(name, what)| DataFile { name: (*name).to_owned(), what: (*what).to_owned() }).collect(),
            notes: notes.clone(),
            ..Method::default()
        };
        let texts = Texts::of(scenario);
        let page = report::build(plan, rows, summary, &texts, program.jobs, method, Kept::default(), &|_: Again| {});
        let mut page = page.map_err(|error| error.to_string())?;
        // There is no folder from which a command could replay a run; the page around it has their packets.
        page.runs.iter_mut().for_each(|run| run.cell.clear());
        page.cells.iter_mut().for_each(|cell| cell.replay_rep = None);
        page.published = (program.published)(scenario, plan, rows, summary);
        flowstart_report::render(&page).map(Arc::from).map_err(|error| error.to_string())
    }
}

/// Tells rows and progress to a listener.
struct Told<'a> {
    study: &'a Study,
    tell: &'a (dyn Fn(&Event) -> bool + Sync),
    /// The time since the question began.
    took: &'a (dyn Fn() -> Duration + Sync),
    runs: AtomicU64,
    done: AtomicU64,
    /// When progress was told the last time, and times that were not told yet.
    latest: Mutex<(Option<Duration>, Vec<Value>)>,
    /// All times that were told.
    all: Mutex<Vec<Value>>,
}

impl<'a> Told<'a> {
    fn new(
        study: &'a Study,
        tell: &'a (dyn Fn(&Event) -> bool + Sync),
        took: &'a (dyn Fn() -> Duration + Sync),
    ) -> Self {
        let (runs, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { study, tell, took, runs, done, latest: Mutex::default(), all: Mutex::default() }
    }

    /// Tells how far the runs are, if that was not told just now.
    fn tell(&self, times: Vec<Value>, is_last: bool) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.1.extend(times);
        let now = (self.took)();
        let is_due = latest.0.is_none_or(|time| now.saturating_sub(time) >= OFTEN);
        if !is_due && !is_last {
            return;
        }
        latest.0 = Some(now);
        let times = std::mem::take(&mut latest.1);
        let (done, runs) = (self.done.load(Ordering::Relaxed), self.runs.load(Ordering::Relaxed));
        (self.tell)(&Event::Times { done, runs, times: times.clone() });
        self.all.lock().unwrap_or_else(PoisonError::into_inner).extend(times);
    }
}

impl Progress for Told<'_> {
    fn note(&self, _: &str) {}

    fn begins(&self, runs: u64) {
        self.runs.store(runs, Ordering::Relaxed);
        self.tell(Vec::new(), true);
    }

    fn done(&self, runs: u64) {
        self.done.fetch_add(runs, Ordering::Relaxed);
    }

    fn ended(&self) {
        self.tell(Vec::new(), true);
    }

    fn again(&self, _: Again) {}

    fn goes_on(&self) -> bool {
        (self.took)() < LONGEST && (self.tell)(&Event::Nothing)
    }
}

/// A sink of rows that are told, and kept by nobody else.
struct Telling<'a>(&'a Told<'a>);

impl Sink for Telling<'_> {
    fn open(&mut self, _: &Study, _: u32, _: &dyn Progress) -> Result<Vec<Row>, ExperimentError> {
        Ok(Vec::new())
    }

    fn wanted(&self, _: &Study) -> Wanted {
        // The report simulates again what it shows, and not before somebody asks for it.
        Wanted::default()
    }

    fn add(&self, rows: &[Row], _: &dyn Progress) {
        let plan = &self.0.study.plan;
        let cells = plan.cells();
        // Of many, some stand for all.
        let every = (u64::from(plan.reps) * cells.len() as u64).div_ceil(MOST_TIMES).max(1);
        let shown = rows.iter().filter(|row| row.rep % every == 0 && row.flow == 0);
        let time = |row: &Row| {
            let cell = cells.iter().find(|cell| plan.id(cell) == row.cell)?;
            Some(json!([cell.index, row.rep, felt(plan, cell).1(row)]))
        };
        self.0.tell(shown.filter_map(time).collect(), false);
    }

    fn close(&mut self, _: &Study, _: &Performed, _: Kept, _: usize, _: &dyn Progress) -> Result<(), ExperimentError> {
        Ok(())
    }
}
