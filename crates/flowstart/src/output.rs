//! Terminal output: progress on stderr, tables on stdout.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comfy_table::{Table, presets};
use flowstart_lab::perform::{Again, Progress};
use flowstart_report::{Check, PublishedCell};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

mod cells;

pub(crate) use cells::cells;

/// Writes a line to stderr, like `eprintln!`. A line that cannot be written is lost without further effect.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stderr(), $($text)*));
    }};
}

/// Progress bars on a terminal, silence elsewhere; notes always.
#[derive(Debug, Default)]
pub(crate) struct Bars(Mutex<Option<ProgressBar>>);

/// The text of the bar for an experiment's runs.
const RUNS: &str = "{elapsed_precise} [{wide_bar}] {pos}/{len} runs, {eta} left";
/// The same for runs that are simulated again for the report; the bar appears when the first of them is done.
const AGAIN: &str = "{elapsed_precise} [{wide_bar}] {pos}/{len} runs again for the report, {eta} left";

impl Bars {
    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bar that shows how many runs are done.
pub(crate) fn progress(runs: u64) -> ProgressBar {
    bar(runs, RUNS)
}

fn bar(length: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl Progress for Bars {
    fn note(&self, text: &str) {
        tell!("note: {text}");
    }

    fn begins(&self, runs: u64) {
        *self.bar() = Some(bar(runs, RUNS));
    }

    fn done(&self, runs: u64) {
        if let Some(bar) = &*self.bar() {
            bar.inc(runs);
        }
    }

    fn ended(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn again(&self, again: Again) {
        self.bar().get_or_insert_with(|| bar(again.of as u64, AGAIN)).set_position(again.done as u64);
        if again.done == again.of {
            self.ended();
        }
    }
}

/// Writes to stdout. A reader that has seen enough and closed the pipe is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Other(format!("stdout: {error}"))),
        _ => Ok(()),
    }
}

/// A number with this many digits after the point; a dash if there is none.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.digits$}"))
}

/// The published table beside ours: a row per estimate, a column per link and size.
pub(crate) fn published(cells: &[PublishedCell]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let mut columns: Vec<(String, String)> = Vec::new();
    let mut estimates: Vec<f64> = Vec::new();
    for cell in cells {
        let column = (cell.link.clone(), cell.size.clone());
        if !columns.contains(&column) {
            columns.push(column);
        }
        if !estimates.contains(&cell.estimate) {
            estimates.push(cell.estimate);
        }
    }
    let header = columns.iter().map(|(link, size)| format!("{link}\n{size}"));
    table.set_header(std::iter::once("estimate".to_owned()).chain(header));
    for estimate in estimates {
        let entries = columns.iter().map(|(link, size)| {
            let found = cells.iter().find(|cell| cell.estimate == estimate && &cell.link == link && &cell.size == size);
            found.map_or(String::new(), |cell| {
                let mark = if cell.significant != Some(true) {
                    "●"
                } else if cell.within_one_rtt == Some(true) {
                    if cell.ours_speedup.mean.unwrap_or(1.0) > 1.0 { "△" } else { "▽" }
                } else if cell.ours_speedup.mean.unwrap_or(1.0) > 1.0 {
                    "▲"
                } else {
                    "▼"
                };
                format!(
                    "{mark}x{} ({})\n{:+.0} ({:+.0})",
                    number(cell.ours_speedup.mean, 2),
                    number(cell.published_speedup, 2),
                    cell.ours_loss_delta.mean.unwrap_or(f64::NAN),
                    cell.published_loss_delta.unwrap_or(f64::NAN)
                )
            })
        });
        table.add_row(std::iter::once(format!("x{estimate}")).chain(entries));
    }
    table
}

/// Checks of a publication's statements.
pub(crate) fn checks(checks: &[Check]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "statement", "expected", "measured"]);
    for check in checks {
        let mark = match check.pass {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "–",
        };
        table.add_row([mark, &check.statement, &check.expected, &check.measured]);
    }
    table
}
