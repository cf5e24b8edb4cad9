//! `flowstart analyze`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use flowstart_lab::analyze::log::{Connection, LogError, read};
use flowstart_lab::analyze::{Analysis, Group, analyze};
use serde_json::json;

use crate::failure::{FAILED, Failure};
use crate::output::{number, print, progress};

/// What a file is called that is read of a folder.
const EXTENSION: &str = "sqlog";
/// Files of which it is said why they could not be used.
const TOLD: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart serve --self-signed --startup slow-start --ab 0.5=blitzstart --qlog logs
  flowstart analyze logs
  flowstart analyze logs/*.sqlog --baseline slow-start --json

Reads the qlog files of `flowstart serve --qlog`, of folders all that end in .sqlog, and compares the schemes that \
connections had: time from a request until its answer was acknowledged, share of the packets that were lost. A connection \
counts once for each size of answer. Exit code: 0 done, 1 a file could not be used, 2 bad input.")]
pub(crate) struct Arguments {
    /// qlog files, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The scheme that others are compared with; without it the one that most connections had.
    #[arg(long, value_name = "SCHEME")]
    baseline: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = files(&arguments.files)?;
    let bar = progress(files.len() as u64);
    let mut connections: Vec<Connection> = Vec::new();
    let mut unusable: Vec<LogError> = Vec::new();
    for file in &files {
        match read(file) {
            Ok(connection) => connections.push(connection),
            Err(error) => unusable.push(error),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    for error in unusable.iter().take(TOLD) {
        tell!("warning: {error}");
    }
    if unusable.len() > TOLD {
        tell!("warning: and {} more files that could not be used", unusable.len() - TOLD);
    }
    let analysis =
        analyze(&connections, arguments.baseline.as_deref()).map_err(|error| Failure::Input(error.to_string()))?;
    if arguments.json {
        let mut value = json!(analysis);
        value["unusable_files"] = json!(unusable.len());
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        let Analysis { connections, without_answer, .. } = &analysis;
        print(&format!("{connections} connections, {without_answer} more without an answer\n{}\n", table(&analysis)))?;
    }
    Ok(if unusable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// The files that are meant, in the order in which they were named, those of a folder by name.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        match std::fs::read_dir(path) {
            Ok(entries) => {
                let mut found = Vec::new();
                for entry in entries {
                    let entry = entry.map_err(|error| unreadable(path, &error))?.path();
                    if entry.extension().is_some_and(|extension| extension == EXTENSION) {
                        found.push(entry);
                    }
                }
                if found.is_empty() {
                    return Err(Failure::Input(format!("{}: holds no .{EXTENSION} file", path.display())));
                }
                found.sort();
                files.append(&mut found);
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => files.push(path.clone()),
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input(format!("{}: cannot be read: {error}", path.display()))
}

fn table(analysis: &Analysis) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "size",
        "scheme",
        "connections",
        "answers",
        "ms (mean)",
        "95 %",
        "median",
        "p95",
        "lost %",
        "speed-up",
        "95 %",
        "",
        "why startup ended",
    ]);
    for group in &analysis.groups {
        table.add_row(row(group));
    }
    for column in [2, 3, 4, 6, 7, 8, 9] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(group: &Group) -> Vec<String> {
    let fct = group.metrics.get("fct_request_ms");
    let lost = group.metrics.get("lost_share").and_then(|metric| metric.mean);
    let interval = |ci: Option<[f64; 2]>, digits: usize| {
        ci.map_or("–".into(), |[low, high]| format!("{low:.digits$}–{high:.digits$}"))
    };
    let versus = group.vs_baseline.as_ref();
    let mark = match versus {
        None => "baseline",
        Some(v) if !v.significant => "● not significant",
        Some(v) if v.speedup.unwrap_or(1.0) > 1.0 => "▲ faster",
        Some(_) => "▼ slower",
    };
    let reasons: Vec<String> = group.exit_reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    vec![
        group.size.clone(),
        group.scheme.clone(),
        group.n.to_string(),
        group.answers.to_string(),
        number(fct.and_then(|metric| metric.mean), 1),
        interval(fct.and_then(|metric| metric.ci95), 1),
        number(fct.and_then(|metric| metric.median), 1),
        number(fct.and_then(|metric| metric.p95), 1),
        number(lost.map(|share| share * 100.0), 2),
        number(versus.and_then(|v| v.speedup), 2),
        interval(versus.and_then(|v| v.speedup_ci95), 2),
        mark.into(),
        reasons.join(", "),
    ]
}
