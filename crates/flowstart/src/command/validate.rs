//! `flowstart validate`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use flowstart_validate::{ENTRIES, Miss, Status, Verdict};

use crate::attention::{Waiting, wants_notes};
use crate::command::run::jobs;
use crate::failure::{FAILED, Failure};
use crate::output::{print, width};

#[derive(Debug, Args)]
#[command(after_long_help = after_help())]
pub(crate) struct Arguments {
    /// One entry instead of all.
    name: Option<String>,
    /// Another file with the same columns: other cells of the same experiment.
    #[arg(long, value_name = "FILE", requires = "name")]
    reference: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
}

fn after_help() -> String {
    let entries: String = ENTRIES.iter().map(|entry| format!("  {:33}{}\n", entry.name, entry.source)).collect();
    format!(
        "\
Entries, and what they are compared with:
{entries}
Examples:
  flowstart validate
  flowstart validate ns2-chain
  flowstart validate ns2-single-flow --reference other-cells.csv --json

A line is printed as each entry ends. With --json these lines go to stderr. Exit code 1 when an entry misses its \
band."
    )
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let names: Vec<&str> = match &arguments.name {
        Some(name) => vec![name.as_str()],
        None => ENTRIES.iter().map(|entry| entry.name).collect(),
    };
    let mut results = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let began = Instant::now();
        let waiting = Waiting::begin(format!("validating {name}, {} of {}", place + 1, names.len()));
        let result = flowstart_validate::validate(name, arguments.reference.as_deref(), arguments.jobs);
        drop(waiting);
        let result = result.map_err(Failure::Input)?;
        let line = line(&result, began.elapsed());
        if !arguments.json {
            print(&format!("{line}\n{}", details(&result)))?;
        } else if wants_notes() {
            tell!("{line}");
        }
        results.push(result);
    }
    let missed = results.iter().any(|result| result.status == Status::Miss);
    if arguments.json {
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        print(&total(&results))?;
    }
    Ok(if missed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// What became of an entry, in a line.
fn line(result: &Verdict, time: Duration) -> String {
    let verdict = if result.status == Status::Pass { "pass" } else { "MISS" };
    let (numbers, misses) = (result.cells, result.misses.len());
    let name = &result.name;
    format!("{verdict}  {name:32}  {numbers:4} numbers  {misses:3} missed  {:6.1} s", time.as_secs_f64())
}

/// What an entry says besides, and its misses.
fn details(result: &Verdict) -> String {
    let options = || textwrap::Options::new(width()).initial_indent("      ").subsequent_indent("      ");
    let mut text = String::new();
    if !result.note.is_empty() {
        text += &format!("{}\n", textwrap::fill(&result.note, options()));
    }
    for miss in &result.misses {
        let Miss { cell, metric, ours, reference, band } = miss;
        text += &format!("      {cell} {metric}: ours {ours}, reference {reference}, allowed {band}\n");
    }
    text
}

/// The sum of all entries.
fn total(results: &[Verdict]) -> String {
    let passed = results.iter().filter(|result| result.status == Status::Pass).count();
    let numbers: usize = results.iter().map(|result| result.cells).sum();
    let misses: usize = results.iter().map(|result| result.misses.len()).sum();
    format!("\n{passed} of {} entries pass; {misses} of {numbers} numbers missed\n", results.len())
}
