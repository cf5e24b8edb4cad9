//! `flowstart judge`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use flowstart_core::spec::names;
use flowstart_lab::spec::InputError;
use flowstart_lab::study::scenario::default_seed;
use flowstart_validate::tournament::cells::{self, Question};
use flowstart_validate::tournament::journal::collect;
use flowstart_validate::tournament::page::{Judgement, judge};
use flowstart_validate::tournament::perform::{Part, Work, perform};
use flowstart_validate::tournament::sets::{Set, check_recordings};

use crate::command::run::jobs;
use crate::failure::{FAILED, Failure, shown};
use crate::output::{self, Bars};

/// Repetitions of each cell.
const REPS: u32 = 5;
/// Most of them.
const MOST_REPS: i64 = 1000;
/// The word for no rivals.
const NONE: &str = "none";

#[derive(Debug, Args)]
#[command(after_long_help = LONG_HELP)]
pub(crate) struct Arguments {
    /// The startup scheme in question.
    scheme: String,
    /// The cells.
    ///
    /// design is for tuning a scheme, held-out for the judgement, once for each version that is called finished.
    #[arg(long, value_name = "SET", default_value = "design")]
    set: Chosen,
    /// Schemes beside which it is judged, or none. Default: all others.
    #[arg(long, num_args = 1.., value_name = "SCHEME")]
    rivals: Vec<String>,
    /// Only this part of the set, as 2/8.
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    part: Part,
    /// Only the first N cells of it.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    only: Option<u32>,
    /// Folder of the recordings; without it their cells are left out.
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// Repetitions of each cell.
    #[arg(long, value_name = "N", default_value_t = REPS)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=MOST_REPS))]
    reps: u32,
    /// Master seed.
    #[arg(long, value_name = "N", default_value_t = default_seed())]
    #[arg(value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
    /// Folder for the results.
    ///
    /// It gets a file for each part, with a line for each cell.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["from", "cell", "list"])]
    out: Option<PathBuf>,
    /// Go on with a part that was stopped.
    #[arg(long, requires = "out", conflicts_with_all = ["from", "cell", "list"])]
    resume: bool,
    /// Run nothing; judge by the results in these files.
    ///
    /// Of a scheme that two files have in a cell the later file counts.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["out", "cell", "list"])]
    from: Vec<PathBuf>,
    /// Run nothing; print this cell as a scenario.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "list"])]
    cell: Option<String>,
    /// Run nothing; print the cells, a line each.
    #[arg(long, conflicts_with = "out")]
    list: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

const LONG_HELP: &str = "\
Examples:
  flowstart judge more-start --rivals slow-start --only 5 --out judged
  flowstart judge more-start --set held-out --part 1/8 --out judged --resume
  flowstart judge more-start --from judged/held-out-*.jsonl
  flowstart judge more-start --cell held-out-017 > cell.toml
  flowstart judge more-start --set held-out --list | sha256sum

The cells of both sets are fixed: links, traffic and knowledge are drawn from \
a seed, and the checksum of the list is part of the program. A part that is \
stopped loses the cells in progress. When only the scheme in question has \
changed, --rivals none runs it alone, and --from takes the rivals' results \
from an earlier file.

With --from the exit code is 1 when a bar is missed.";

/// A set of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chosen(Set);

impl ValueEnum for Chosen {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Chosen; 2] = [Chosen(Set::Design), Chosen(Set::HeldOut)];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// The schemes and repetitions that are asked for.
fn question(arguments: &Arguments) -> Result<Question, Failure> {
    let Arguments { scheme, rivals, reps, seed, .. } = arguments;
    let name = scheme.split(':').next().unwrap_or(scheme).trim();
    let rivals: Vec<String> = match &rivals[..] {
        [] => cells::all_schemes().into_iter().filter(|rival| !names::is_same(rival, name)).collect(),
        [none] if names::is_same(none.trim(), NONE) => Vec::new(),
        named => named.to_vec(),
    };
    if let Some(place) = (1..rivals.len()).find(|place| rivals[..*place].contains(&rivals[*place])) {
        return Err(Failure::Input(format!("--rivals: {} is there twice", rivals[place])));
    }
    if rivals.iter().any(|rival| names::is_same(rival.trim(), scheme.trim())) {
        return Err(Failure::Input(format!("--rivals: {scheme} is the scheme in question; name others")));
    }
    let question = Question { scheme: scheme.trim().to_owned(), rivals, reps: *reps, seed: *seed };
    cells::check(&question).map_err(|error: InputError| Failure::from(error))?;
    Ok(question)
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { set: Chosen(set), .. } = arguments;
    if arguments.list {
        let lines: String = set.cells().iter().map(|cell| cell.line() + "\n").collect();
        output::print(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.from.is_empty() {
        let collected = collect(&arguments.from).map_err(Failure::Input)?;
        let judgement = judge(&collected, arguments.scheme.trim()).map_err(Failure::Input)?;
        tell(&judgement, arguments.json)?;
        return Ok(if judgement.reaches_all() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
    }
    let question = question(arguments)?;
    if let Some(folder) = &arguments.recordings {
        check_recordings(folder).map_err(Failure::Input)?;
    }
    if let Some(name) = &arguments.cell {
        let cells = Set::ALL.into_iter().flat_map(Set::cells).find(|cell| names::is_same(&cell.name, name.trim()));
        let cell = cells.ok_or_else(|| Failure::Input(format!("--cell: no cell is named {name}; --list shows all")))?;
        let folder = arguments.recordings.clone().unwrap_or_else(|| PathBuf::from("."));
        output::print(&cells::scenario(&cell, &question, &folder).map_err(Failure::Input)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(out) = &arguments.out else { return Err(Failure::Input("--out: a folder is needed".into())) };
    std::fs::create_dir_all(out).map_err(|error| Failure::Input(format!("{}: {error}", shown(out))))?;
    let Part { number, of } = arguments.part;
    let work = Work {
        set: *set,
        part: arguments.part,
        only: arguments.only.map(|only| only as usize),
        recordings: arguments.recordings.clone(),
        file: out.join(format!("{}-{number}-of-{of}.jsonl", set.name())),
        resume: arguments.resume,
        jobs: arguments.jobs,
    };
    let bars = Bars::default();
    let ran = perform(&work, &question, &bars).map_err(Failure::Input)?;
    drop(bars);
    if ran.without_recording > 0 {
        note!("{} cells lack their recordings, whose folder --recordings names", ran.without_recording);
    }
    note!("{} cells run and {} known, in {}", ran.cells, ran.known, shown(&work.file));
    let collected = collect(&[work.file]).map_err(Failure::Other)?;
    if !collected.cells.is_empty() {
        tell(&judge(&collected, &question.scheme).map_err(Failure::Other)?, arguments.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a judgement.
fn tell(judgement: &Judgement, json: bool) -> Result<(), Failure> {
    if !json {
        return output::print(&judgement.text());
    }
    let text = serde_json::to_string_pretty(judgement).map_err(|error| Failure::Other(error.to_string()))?;
    output::print(&format!("{text}\n"))
}
