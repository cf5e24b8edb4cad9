//! `flowstart report`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use flowstart_lab::perform;
use flowstart_lab::report::changes;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::folder::write_file;
use flowstart_lab::results::stored::Stored;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::Plan;
use flowstart_report::{Cell, Change, ChangeReport, Verdict};
use flowstart_validate::published_table;

use crate::command::run::jobs;
use crate::failure::Failure;
use crate::interruption::leaves_nothing_half_written;
use crate::output::{Bars, number, print, ratio};

/// Rows up to which the table has all cells; of more it has those that changed.
const FEW: usize = 40;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart report results/table1
  flowstart report results/before results/after --out change.html

With one folder the page is written again; the few runs that it shows in detail are simulated again. With two folders \
the second is compared with the first, cell by cell: both must answer the same question with the same seed, and be of \
one version of flowstart unless --across-versions is given. Builds of one version are compared freely.")]
pub(crate) struct Arguments {
    /// Folder of results; with AFTER the results before the change.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Folder of the results after the change.
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,
    /// File for the page; must not exist (default: DIR/report.html, or no page with two folders).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare results of different versions of flowstart.
    #[arg(long, requires = "after")]
    across_versions: bool,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(file) = arguments.out.as_ref().filter(|file| file.symlink_metadata().is_ok()) {
        return Err(Failure::Input(format!("--out `{}`: exists; nothing was overwritten", file.display())));
    }
    if let Some(file) = &arguments.out {
        Failure::without_folder("--out", file)?;
    }
    leaves_nothing_half_written();
    let folder = Stored::read(&arguments.folder).map_err(Failure::Input)?;
    match &arguments.after {
        None => again(&folder, arguments),
        Some(after) => compare(&folder, &Stored::read(after).map_err(Failure::Input)?, arguments),
    }
}

/// Writes the page of a folder again.
fn again(stored: &Stored, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let published =
        |plan: &Plan, rows: &[Row], summary: &Summary| published_table(&stored.study.scenario, plan, rows, summary);
    let html = perform::page(stored, &published, arguments.jobs, &Bars::default())?;
    let file = arguments.out.clone().unwrap_or_else(|| arguments.folder.join("report.html"));
    write(&file, &html)?;
    print(&format!("Report: {}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Compares two folders.
fn compare(before: &Stored, after: &Stored, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let report = changes(before, after, arguments.across_versions).map_err(Failure::Input)?;
    let page = |file: &PathBuf| {
        let html = flowstart_report::render_changes(&report).map_err(|error| Failure::Other(error.to_string()))?;
        write(file, &html)
    };
    // The answer is worth as much if the page cannot be written.
    let written = arguments.out.as_ref().map(page).transpose();
    for note in &report.notes {
        tell!("note: {note}");
    }
    let mut text = format!("{}\n\n{}\n", report.answer.join("\n"), table(&report));
    if let Some(file) = arguments.out.as_ref().filter(|_| written.is_ok()) {
        text += &format!("\nReport: {}\n", file.display());
    }
    print(&text)?;
    written.map(|_| ExitCode::SUCCESS)
}

fn write(file: &Path, html: &str) -> Result<(), Failure> {
    Ok(write_file(file, |out| out.write_all(html.as_bytes()))?)
}

/// A row per cell; of many cells only those that changed.
fn table(report: &ChangeReport) -> String {
    let is_short = report.cells.len() > FEW;
    let left_out = report.cells.iter().filter(|cell| is_short && !cell.has_changed()).count();
    let is_empty = left_out == report.cells.len();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["cell", "mean\nFCT ms", "before / after", "", "sent twice %"]);
    let labels = labels(&report.cells);
    for (change, label) in report.cells.iter().zip(labels).filter(|(cell, _)| !is_short || cell.has_changed()) {
        let both = |digits: usize, of: fn(&Cell) -> Option<f64>| {
            let [old, new] = [&change.before, &change.after].map(|cell| number(of(cell), digits));
            if old == new { new } else { format!("{old} → {new}") }
        };
        table.add_row([
            label,
            both(0, |cell| cell.fct_ms.mean),
            ratio(change.fct_ratio.mean, change.fct_ratio.ci95),
            change.verdict.map_or_else(|| "–".to_owned(), Verdict::mark),
            both(1, |cell| cell.inflation.mean.map(|share| share * 100.0)),
        ]);
    }
    for column in [1, 2, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = if is_empty { String::new() } else { table.to_string() };
    if left_out > 0 {
        let line = if is_empty { "" } else { "\n" };
        text += &format!("{line}{left_out} cells that did not change are left out; --out FILE has all.");
    }
    text
}

/// What each cell is, on what the cells differ in.
fn labels(cells: &[Change]) -> Vec<String> {
    let axes: [fn(&Cell) -> &str; 8] = [
        |cell| &cell.link,
        |cell| &cell.aqm,
        |cell| &cell.size,
        |cell| &cell.scheme,
        |cell| &cell.avoidance,
        |cell| &cell.competitor,
        |cell| &cell.transport,
        |cell| &cell.arrival,
    ];
    let varies = |axis: &&fn(&Cell) -> &str| cells.iter().any(|cell| axis(&cell.after) != axis(&cells[0].after));
    let varied: Vec<_> = axes.iter().filter(varies).collect();
    let label = |cell: &Change| match varied[..] {
        [] => cell.after.id.clone(),
        _ => varied.iter().map(|axis| axis(&cell.after)).collect::<Vec<_>>().join(" "),
    };
    cells.iter().map(label).collect()
}
