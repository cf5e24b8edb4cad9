//! `flowstart run`, and what `compare` shares with it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Args;
#[cfg(target_os = "linux")]
use flowstart_emu::lateness::TOO_LATE;
use flowstart_lab::experiment::{MOST_JOBS, run_count};
use flowstart_lab::perform::{self, Folder, Performed, Precision, Progress, Provenance, Sink};
use flowstart_lab::report::agreements;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::folder::ExperimentError;
use flowstart_lab::results::journal;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::run::testbed::Testbed;
use flowstart_lab::study::Study;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::{Scenario, ScenarioError};
use flowstart_lab::study::shipped;
use flowstart_lab::trace::observe::{Kept, Wanted};
use flowstart_report::PublishedTable;
use flowstart_validate::published_table;

use crate::failure::{FAILED, Failure};
use crate::interruption::leaves_nothing_half_written;
use crate::output;
#[cfg(target_os = "linux")]
use crate::testbed::Sockets;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart run blitzstart-table1 --reps 5 --jobs 2
  flowstart run scenarios/blitzstart-table1.toml --out results/table1
  flowstart run scenarios/blitzstart-table1.toml --out results/table1 --resume
  flowstart run my-links.toml --world simulator sockets --reps 3
  sed 's/2MB/5MB/' scenario.toml | flowstart run -

`flowstart list scenarios` shows the scenarios that come with the program. Files that a scenario names are relative \
to it; those of a scenario from stdin or of the program are relative to the current folder.")]
pub(crate) struct Arguments {
    /// Scenario: a TOML file, a name from `flowstart list scenarios`, or - for stdin.
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Where runs happen, in place of what the scenario says: simulator, sockets (Linux, root), or both.
    #[arg(long, num_args = 1.., value_name = "WORLD")]
    world: Vec<String>,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    results: Results,
}

/// Number of repetitions and the seed; shared with `compare` and `trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sampling {
    /// Repetitions of each cell. Default: the scenario's, or 30.
    #[arg(long, value_name = "N")]
    pub(crate) reps: Option<u32>,
    /// Master seed. Default: the scenario's, or 1.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Where results go; shared with `compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Results {
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
    /// Folder for results and the report. It must be new or empty, and gets flows.csv, flows.parquet, summary.json,
    /// manifest.json and report.html.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with an interrupted run in the same folder, with --precision too.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Print summary.json instead of a table.
    #[arg(long)]
    json: bool,
    /// Add repetitions until this precise, such as 1%.
    ///
    /// Repetitions are added to those of --reps until half the interval of every comparison is at most this part of its
    /// speed-up. Without a comparison the mean completion times have to be as precise.
    #[arg(long, value_name = "P", value_parser = precision, allow_hyphen_values = true)]
    precision: Option<f64>,
    /// Most repetitions of --precision.
    #[arg(long, value_name = "N", requires = "precision", default_value_t = perform::MOST_REPS)]
    max_reps: u32,
}

impl Results {
    /// Refuses a folder with an interrupted run of this experiment, which nobody asked to go on with.
    pub(crate) fn check_folder(&self, plan: &Plan) -> Result<(), Failure> {
        let Some(folder) = self.out.as_ref().filter(|folder| !self.resume && journal::is_interrupted(folder, plan))
        else {
            return Ok(());
        };
        let problem = "holds an interrupted run of this experiment; --resume goes on with it";
        Err(Failure::Input(format!("--out `{}`: {problem}", folder.display())))
    }

    /// The precision that is asked for.
    fn precision(&self, study: &Study) -> Result<Option<Precision>, Failure> {
        let asked = self.precision.map(|relative| Precision { relative, most: self.max_reps }.checked(study));
        Ok(asked.transpose()?)
    }
}

/// Reads a number of threads.
pub(crate) fn jobs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|jobs| *jobs <= MOST_JOBS);
    number.ok_or_else(|| format!("allowed is 0 to {MOST_JOBS}"))
}

/// Reads a part of something, as 2% or 0.02.
pub(super) fn part(text: &str) -> Option<f64> {
    let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    percent.map(|percent| percent / 100.0).or_else(|| text.parse().ok())
}

/// Reads a precision.
fn precision(text: &str) -> Result<f64, String> {
    let in_range = part(text).filter(|part| *part > 0.0 && *part < 1.0);
    in_range.ok_or_else(|| "allowed is more than 0 and less than 100%, such as 1%".to_owned())
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Read { file, mut scenario, text } = read(&arguments.scenario)?;
    if let Some(reps) = arguments.sampling.reps {
        scenario.reps = reps;
    }
    if let Some(seed) = arguments.sampling.seed {
        scenario.seed = seed;
    }
    if !arguments.world.is_empty() {
        scenario.world.clone_from(&arguments.world);
    }
    let directory = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut study = Study::new(scenario, &directory).map_err(|error| {
        let given = match error.field.as_str() {
            "reps" => arguments.sampling.reps.is_some(),
            "seed" => arguments.sampling.seed.is_some(),
            "world" => !arguments.world.is_empty(),
            _ => false,
        };
        if given {
            return Failure::from(error);
        }
        Failure::field(&file, text, &error)
    })?;
    note_machine(&mut study)?;
    arguments.results.check_folder(&study.plan)?;
    study.notes = mixed(&study.scenario, &study.plan, "set avoidance in the scenario to choose");
    perform(&study, &arguments.results)
}

/// A scenario that was read.
struct Read {
    /// Its file, or what stands for it in messages.
    file: PathBuf,
    scenario: Scenario,
    text: String,
}

/// Reads a scenario from stdin, a file, or a shipped scenario when there is no such file.
fn read(named: &Path) -> Result<Read, Failure> {
    let (file, result) = if named == Path::new("-") {
        (Path::new("<stdin>"), Scenario::read_from(std::io::stdin().lock()))
    } else {
        (named, Scenario::read_with_text(named))
    };
    match result {
        Ok((scenario, text)) => Ok(Read { file: file.to_owned(), scenario, text }),
        Err(ScenarioError::Unreadable(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            let shipped = shipped::read(&named.to_string_lossy(), Path::new(".")).map_err(Failure::Input)?;
            Ok(Read { file: PathBuf::from(shipped.name), scenario: shipped.scenario, text: shipped.text.to_owned() })
        }
        Err(error) => Err(Failure::scenario(file, error)),
    }
}

/// Tells users that two congestion avoidances meet by default; the returned text tells the report's readers.
pub(crate) fn mixed(scenario: &Scenario, plan: &Plan, advice: &str) -> Vec<String> {
    let Some(statement) = scenario.unchosen_avoidance(plan) else { return Vec::new() };
    let note = format!("{statement}: {advice}");
    note!("{note}");
    vec![note]
}

/// A folder of results whose failure at the end is kept for later: the rows are there, and their answer is worth as
/// much if a file cannot be written.
struct Written<'a> {
    folder: Folder<'a>,
    problem: Option<ExperimentError>,
}

impl Sink for Written<'_> {
    fn open(&mut self, study: &Study, most: u32, progress: &dyn Progress) -> Result<Vec<Row>, ExperimentError> {
        self.folder.open(study, most, progress)
    }

    fn wanted(&self, study: &Study) -> Wanted {
        self.folder.wanted(study)
    }

    fn add(&self, rows: &[Row], progress: &dyn Progress) {
        self.folder.add(rows, progress);
    }

    fn close(
        &mut self,
        study: &Study,
        performed: &Performed,
        kept: Kept,
        jobs: usize,
        progress: &dyn Progress,
    ) -> Result<(), ExperimentError> {
        self.problem = self.folder.close(study, performed, kept, jobs, progress).err();
        Ok(())
    }
}

/// Refuses what this machine cannot run between sockets, before anything runs, and notes what of it determines rows.
#[cfg(target_os = "linux")]
pub(crate) fn note_machine(study: &mut Study) -> Result<(), Failure> {
    Sockets::check(&study.plan).map_err(Failure::Input)?;
    study.plan.conditions = Sockets::conditions(&study.plan).map_err(Failure::Input)?;
    Ok(())
}

/// There are no runs between sockets.
#[cfg(not(target_os = "linux"))]
pub(crate) fn note_machine(_: &mut Study) -> Result<(), Failure> {
    Ok(())
}

/// Performs a study, writes its folder and shows the result.
pub(crate) fn perform(study: &Study, results: &Results) -> Result<ExitCode, Failure> {
    let table = OnceLock::new();
    let published = |plan: &Plan, rows: &[Row], summary: &Summary| {
        table.get_or_init(|| published_table(&study.scenario, plan, rows, summary)).clone()
    };
    let cells = study.plan.cells().len();
    detail!(
        "cells: {cells}, repetitions: {}, runs: {}, seed: {}, threads: {}",
        study.plan.reps,
        run_count(&study.plan),
        study.plan.seed,
        threads(results.jobs)
    );
    let provenance = Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION"));
    leaves_nothing_half_written();
    let mut nowhere = ();
    let mut folder = results
        .out
        .clone()
        .map(|path| Written { folder: Folder::new(path, results.resume, provenance, &published), problem: None });
    let sink: &mut dyn Sink = folder.as_mut().map_or(&mut nowhere as &mut dyn Sink, |folder| folder);
    let precision = results.precision(study)?;
    let bars = output::Bars::default();
    #[cfg(target_os = "linux")]
    let sockets = Sockets::default();
    #[cfg(target_os = "linux")]
    let testbed: Option<&dyn Testbed> = Some(&sockets);
    // Network namespaces are Linux's.
    #[cfg(not(target_os = "linux"))]
    let testbed: Option<&dyn Testbed> = None;
    let performed = perform::perform_on(study, testbed, sink, precision, results.jobs, &bars)?;
    // A message that still waits would stand in the answer.
    drop(bars);
    #[cfg(target_os = "linux")]
    if let Some(latest) = sockets.latest() {
        let latest = latest.as_millis_f64();
        note!("this machine sent each packet at most {latest:.1} ms after its time; a busy one is later");
    }
    #[cfg(target_os = "linux")]
    if let (links, shown @ 1..) = sockets.shown() {
        tell!(
            "warning: in {shown} of {links} runs more than one of 100 packets left more than {:.1} ms after their \
             time, so this machine may show in place of the link (p99_late_ms); `chrt --fifo 10` before the command \
             or a lower rate may help",
            TOO_LATE.as_millis_f64()
        );
    }
    #[cfg(target_os = "linux")]
    if sockets.lost() > 0 {
        tell!("warning: this machine was too slow and lost {} packets that no link dropped", sockets.lost());
    }
    #[cfg(target_os = "linux")]
    if sockets.fell_back() > 0 {
        tell!(
            "warning: in {} transfers between sockets the loaded scheme left the start to the kernel's CUBIC; \
             `flowstart tcp status` says what it needs",
            sockets.fell_back()
        );
    }
    let problem = folder.and_then(|folder| folder.problem);
    let report = results.out.as_ref().filter(|_| problem.is_none()).map(|folder| folder.join("report.html"));
    let shown = show(
        study,
        results,
        &performed,
        published(&study.plan, &performed.rows, &performed.summary).as_ref(),
        report.as_deref(),
    );
    report_failures(&performed.rows);
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    shown?;
    let failed = performed.rows.iter().any(Row::failed);
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn show(
    study: &Study,
    results: &Results,
    performed: &Performed,
    published: Option<&PublishedTable>,
    report: Option<&Path>,
) -> Result<(), Failure> {
    let Performed { summary, .. } = performed;
    if results.json {
        let text = serde_json::to_string_pretty(summary).map_err(|error| Failure::Other(error.to_string()))?;
        return output::print(&format!("{text}\n"));
    }
    // Whether the answer depends on how it was measured belongs to it; the rest is for who reads on.
    let agreements = agreements(&study.plan, summary);
    let (first, notes): (Vec<&String>, Vec<&String>) =
        summary.answer_notes.iter().partition(|note| agreements.contains(note));
    let answer = std::iter::once(&summary.answer).chain(first);
    let mut text: String = answer.map(|line| output::wrapped(line)).collect();
    text += "\n";
    match published {
        Some(table) => {
            text += &format!("{}\n\n", output::published(&table.cells));
            text += &output::wrapped(&format!(
                "In each cell: our speed-up (the paper's), below it our extra losses (the paper's), both from the \
                 request on. The marks are the answer's, whose times count from the handshake on: {}.",
                flowstart_report::legend()
            ));
            text += &format!("\n{}\n", output::checks(&table.checks));
        }
        None => text += &output::cells(&study.plan, summary),
    }
    if !notes.is_empty() {
        text += "\n";
        text.extend(notes.into_iter().map(|note| output::item(note)));
    }
    if let Some(report) = report {
        text += &format!("\nReport: {}\n", report.display());
    }
    // Nobody has to scroll up for the answer.
    if output::is_taller_than_the_terminal(&text) {
        text += &format!("\n{}", output::wrapped(&summary.answer));
    }
    output::print(&text)
}

fn report_failures(rows: &[Row]) {
    for row in rows.iter().filter(|row| row.failed()) {
        tell!("failed: {} --rep {} (seed {}): {}", row.cell, row.rep, row.seed, row.status);
    }
}

/// Threads that work, if the user asks for so many.
fn threads(jobs: usize) -> usize {
    if jobs > 0 { jobs } else { std::thread::available_parallelism().map_or(1, std::num::NonZero::get) }
}
