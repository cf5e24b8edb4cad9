//! `flowstart run`, and what `compare` shares with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use flowstart_lab::experiment;
use flowstart_lab::report::{self, Texts};
use flowstart_lab::results::files;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::folder::{self, FILES, Occupied};
use flowstart_lab::results::identity::Identity;
use flowstart_lab::results::journal::{self, Journal};
use flowstart_lab::results::manifest::Manifest;
use flowstart_lab::results::summary::{Summary, summarize};
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::{Scenario, ScenarioError};
use flowstart_lab::study::shipped::SHIPPED;
use flowstart_lab::trace::observe::Wanted;
use flowstart_report::{DataFile, Method};
use flowstart_validate::table1;

use crate::failure::{FAILED, Failure};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart run scenarios/blitzstart-table1.toml --out results/table1
  flowstart run blitzstart-table1 --reps 5 --jobs 2")]
pub(crate) struct Arguments {
    /// Scenario file (TOML), or the name of one that comes with the program (`flowstart list scenarios`).
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    results: Results,
    /// Go on with an interrupted run in the same folder.
    #[arg(long, requires = "out")]
    resume: bool,
}

/// How often, and with which random numbers; shared with `compare` and `trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sampling {
    /// Repetitions of each cell (default: 30, or what the scenario says).
    #[arg(long, value_name = "N")]
    pub(crate) reps: Option<u32>,
    /// Master seed (default: 1, or what the scenario says).
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Where results go; shared with `compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Results {
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Folder for flows.csv, flows.parquet, summary.json, manifest.json and report.html; must be new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json instead of a table.
    #[arg(long)]
    json: bool,
}

/// An experiment to perform.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) scenario: Scenario,
    /// What files in the scenario are relative to.
    pub(crate) directory: PathBuf,
    /// What the report shall say besides.
    pub(crate) notes: Vec<String>,
    pub(crate) results: Results,
    pub(crate) resume: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let file = &arguments.scenario;
    let (mut scenario, text) = read(file)?;
    if let Some(reps) = arguments.sampling.reps {
        scenario.reps = reps;
    }
    if let Some(seed) = arguments.sampling.seed {
        scenario.seed = seed;
    }
    let directory = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let plan = scenario.plan(&directory).map_err(|error| {
        let given = match error.field.as_str() {
            "reps" => arguments.sampling.reps.is_some(),
            "seed" => arguments.sampling.seed.is_some(),
            _ => false,
        };
        if given {
            return Failure::from(error);
        }
        Failure::field(file, text, &error)
    })?;
    if let Some(folder) = &arguments.results.out
        && !arguments.resume
        && journal::is_interrupted(folder, &plan)
    {
        let out = folder.display();
        let problem = "holds an interrupted run of this experiment; --resume goes on with it";
        return Err(Failure::Input(format!("--out `{out}`: {problem}")));
    }
    let notes = mixed(&scenario, &plan, "set avoidance in the scenario to choose");
    perform(&Job { plan, scenario, directory, notes, results: arguments.results.clone(), resume: arguments.resume })
}

/// Reads a scenario file, or a shipped scenario when there is no such file.
fn read(file: &Path) -> Result<(Scenario, String), Failure> {
    match Scenario::read_with_text(file) {
        Err(ScenarioError::Unreadable(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            let Some((_, text)) = SHIPPED.iter().find(|(name, _)| Path::new(name) == file) else {
                let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                return Err(Failure::Input(format!(
                    "{}: no such file, and none of the scenarios that come with the program: {}",
                    file.display(),
                    names.join(", ")
                )));
            };
            let scenario = Scenario::from_text(text).map_err(|error| Failure::scenario(file, error))?;
            Ok((scenario, (*text).to_owned()))
        }
        result => result.map_err(|error| Failure::scenario(file, error)),
    }
}

/// Tells users, and what it returns the report, that two congestion avoidances meet that nobody chose.
pub(crate) fn mixed(scenario: &Scenario, plan: &Plan, advice: &str) -> Vec<String> {
    let Some(statement) = scenario.unchosen_avoidance(plan) else { return Vec::new() };
    let note = format!("{statement}: {advice}");
    tell!("note: {note}");
    vec![note]
}

/// Runs an experiment, writes its folder and shows the result.
pub(crate) fn perform(job: &Job) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    // Before the work: results that no run could be replayed from would be half lost.
    let scenario = toml::to_string(&job.scenario).map_err(|error| Failure::Other(format!("scenario: {error}")))?;
    let mut known = Vec::new();
    let prepare = |folder: &PathBuf| folder::prepare_folder(folder, job.resume);
    // To the end nobody else writes there.
    let occupied = job.results.out.as_ref().map(prepare).transpose()?;
    if let Some(folder) = &job.results.out
        && job.resume
    {
        let earlier = journal::earlier(folder, &job.plan)?;
        if let Some(file) = &earlier.set_aside {
            let why = "the rows of an interrupted run do not say of which experiment they are, and are run again";
            tell!("note: {why}; they are kept in {}", file.display());
        }
        known = earlier.rows;
        let done: BTreeSet<(&str, u64)> = known.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
        let all = experiment::run_count(&job.plan);
        tell!("note: {} of {all} runs are taken over from {}", done.len(), folder.display());
    }
    let out = job.results.out.as_ref();
    let journal = Mutex::new(out.map(|folder| Journal::open(folder, &job.plan, &known)).transpose()?);
    let bar = output::progress(experiment::run_count(&job.plan));
    // A run is watched while it goes on where there will be a report.
    let wanted = job.results.out.as_ref().map_or_else(Wanted::default, |_| report::wanted(&job.plan));
    let (rows, kept) = experiment::execute_watched(&job.plan, job.results.jobs, &known, &wanted, |rows| {
        bar.inc(rows.iter().filter(|row| row.flow == 0).count() as u64);
        if let Ok(mut journal) = journal.lock()
            && let Some(Err(error)) = journal.as_mut().map(|journal| journal.add(rows))
        {
            // That does not stop the experiment; the results are written at its end.
            tell!("note: the run cannot be resumed from here on, its journal cannot be written: {error}");
            *journal = None;
        }
    })?;
    bar.finish_and_clear();
    let summary = summarize(&job.plan, &rows);
    let manifest = manifest(job, scenario, started);
    let answer = report::answer(&job.plan, &summary);
    let published = (job.scenario.published.as_deref() == Some("blitzstart-table1"))
        .then(|| table1::published_table(&job.plan, &rows));
    if let Some(folder) = &job.results.out {
        occupied.as_ref().map_or(Ok(()), Occupied::check)?;
        files::write_results(folder, &rows, &summary, &manifest)?;
        // Only now: the results are safe whatever becomes of the page.
        let method = method(job, &manifest);
        let bar = output::report_progress();
        let texts = texts(&job.scenario);
        let jobs = job.results.jobs;
        let mut page = report::build(&job.plan, &rows, &summary, &texts, jobs, method, kept, &|again| {
            bar.set_length(again.of as u64);
            bar.set_position(again.done as u64);
        })?;
        bar.finish_and_clear();
        page.published = published.clone();
        let html = flowstart_report::render(&page).map_err(|error| Failure::Other(format!("report: {error}")))?;
        folder::write_file(&folder.join("report.html"), |out| out.write_all(html.as_bytes()))?;
        Journal::remove(folder);
    }
    show(job, &answer, &summary, published.as_ref())?;
    report_failures(&rows);
    let failed = rows.iter().any(Row::failed);
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn show(
    job: &Job,
    answer: &[String],
    summary: &Summary,
    published: Option<&flowstart_report::PublishedTable>,
) -> Result<(), Failure> {
    if job.results.json {
        let text = serde_json::to_string_pretty(summary).map_err(|error| Failure::Other(error.to_string()))?;
        return output::print(&format!("{text}\n"));
    }
    let mut text = answer.join("\n") + "\n\n";
    match published {
        Some(table) => {
            text += &format!("{}\n\n", output::published(&table.cells));
            text += "In each cell: our speed-up (the paper's), below it our extra losses (the paper's). ";
            text += "▲ faster, ▼ slower, △▽ within one RTT, ● not significant.\n\n";
            text += &format!("{}\n", output::checks(&table.checks));
        }
        None => text += &format!("{}\n", output::cells(&job.plan, summary)),
    }
    if let Some(folder) = &job.results.out {
        text += &format!("\nReport: {}\n", folder.join("report.html").display());
    }
    output::print(&text)
}

fn report_failures(rows: &[Row]) {
    for row in rows.iter().filter(|row| row.failed()) {
        tell!("failed: {} --rep {} (seed {}): {}", row.cell, row.rep, row.seed, row.status);
    }
}

fn texts(scenario: &Scenario) -> Texts {
    Texts { title: scenario.title.clone(), question: scenario.question.clone(), analysis: scenario.analysis.clone() }
}

/// The command as it was given.
pub(crate) fn command_line() -> Vec<String> {
    std::iter::once("flowstart".to_owned()).chain(std::env::args().skip(1)).collect()
}

/// What machine this is.
pub(crate) fn host() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH)
}

fn manifest(job: &Job, scenario: String, started: Instant) -> Manifest {
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line(),
        scenario,
        // As the user gave it: results are passed on, and where a machine keeps its files is nobody else's business.
        directory: job.directory.clone(),
        seed: job.plan.seed,
        host: host(),
        wall_time_s: started.elapsed().as_secs_f64(),
        unix_time_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        files: FILES.iter().map(|file| (*file).to_owned()).collect(),
        experiment: Some(Identity::of(&job.plan)),
        rows: None,
    }
}

fn method(job: &Job, manifest: &Manifest) -> Method {
    Method {
        command: manifest.command.join(" "),
        directory: job.results.out.as_ref().map_or(String::new(), |folder| folder.display().to_string()),
        version: manifest.version.clone(),
        seed: Some(job.plan.seed),
        repetitions: Some(job.plan.reps),
        host: manifest.host.clone(),
        date: String::new(),
        wall_time_s: Some(manifest.wall_time_s),
        files: [
            ("flows.csv", "a row per measured flow and repetition"),
            ("flows.parquet", "the same rows for analysis tools"),
            ("summary.json", "metrics, intervals and comparisons of every cell"),
            ("manifest.json", "version, command, seed, host and wall time"),
        ]
        .map(|(name, what)| DataFile { name: name.into(), what: what.into() })
        .to_vec(),
        notes: job.notes.clone(),
    }
}
