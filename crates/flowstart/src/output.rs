//! Terminal output: progress on stderr, tables on stdout.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comfy_table::{ContentArrangement, Table, presets};
use flowstart_lab::perform::{Again, Progress};
use flowstart_report::{Check, PublishedCell, Verdict, digits_apart};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::attention::{Waiting, shows_progress};
use crate::failure::Failure;

mod cells;

pub(crate) use cells::cells;

/// Progress bars on a terminal, silence elsewhere; notes always.
#[derive(Debug, Default)]
pub(crate) struct Bars(Mutex<Shown>);

/// What is under way: a bar, or a step without a number of parts.
#[derive(Debug, Default)]
struct Shown {
    bar: Option<ProgressBar>,
    waiting: Option<Waiting>,
    began: Option<Instant>,
}

/// The text of the bar for an experiment's runs.
const RUNS: &str = "{elapsed_precise} [{wide_bar}] {pos}/{len} runs{left}";
/// The same for runs that are simulated again for the report; the bar appears when the first of them is done.
const AGAIN: &str = "{elapsed_precise} [{wide_bar}] {pos}/{len} runs again for the report{left}";

/// How often a bar shows the time that has passed.
const TICK: Duration = Duration::from_secs(1);

impl Bars {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What follows the runs, and the runs that the report repeats.
const AFTER_RUNS: &str = "evaluating and writing results";

/// A bar that shows how many runs are done.
pub(crate) fn progress(runs: u64) -> ProgressBar {
    bar(runs, RUNS)
}

fn bar(length: u64, template: &str) -> ProgressBar {
    if !shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    // Nothing is known of the time that is left until the first run is done.
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| {
        if state.pos() > 0 {
            let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
        }
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("left", left));
    }
    // One run may take minutes.
    bar.enable_steady_tick(TICK);
    bar
}

impl Progress for Bars {
    fn note(&self, text: &str) {
        note!("{text}");
    }

    fn warn(&self, text: &str) {
        tell!("warning: {text}");
    }

    fn begins(&self, runs: u64) {
        *self.shown() = Shown { bar: Some(bar(runs, RUNS)), waiting: None, began: Some(Instant::now()) };
    }

    fn done(&self, runs: u64) {
        if let Some(bar) = &self.shown().bar {
            bar.inc(runs);
        }
    }

    fn ended(&self) {
        let mut shown = self.shown();
        if let Some(bar) = shown.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(began) = shown.began.take() {
            detail!("runs: {:.1} s", began.elapsed().as_secs_f64());
        }
        shown.waiting = Some(Waiting::begin(AFTER_RUNS));
    }

    fn again(&self, again: Again) {
        let mut shown = self.shown();
        shown.waiting = None;
        shown.began.get_or_insert_with(Instant::now);
        shown.bar.get_or_insert_with(|| bar(again.of as u64, AGAIN)).set_position(again.done as u64);
        drop(shown);
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

/// The narrowest table and text.
const NARROWEST: usize = 40;
/// The width of texts that go to no terminal.
const WIDTH: usize = 80;

/// Columns and lines of the terminal that stdout is.
fn terminal() -> Option<(usize, usize)> {
    let size = std::io::stdout().is_terminal().then(|| terminal_size::terminal_size_of(std::io::stdout()));
    size.flatten().map(|(width, height)| (width.0.into(), height.0.into()))
}

/// Columns of the terminal that stdout is, or 80.
pub(crate) fn width() -> usize {
    terminal().map_or(WIDTH, |(width, _)| width.max(NARROWEST))
}

/// Whether the begin of this text has left the terminal when its end and the next prompt stand there.
pub(crate) fn is_taller_than_the_terminal(text: &str) -> bool {
    terminal().is_some_and(|(_, height)| text.lines().count() >= height)
}

/// Lets a table fit the terminal. Elsewhere it is as wide as it needs.
pub(crate) fn fitted(mut table: Table) -> Table {
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width().try_into().unwrap_or(u16::MAX));
    }
    table
}

/// A sentence and the end of its line, broken where the terminal ends. Elsewhere it is one line.
pub(crate) fn wrapped(sentence: &str) -> String {
    filled(sentence, line_width(), "") + "\n"
}

/// A sentence as an item of a list, and the end of its line.
pub(crate) fn item(sentence: &str) -> String {
    filled(sentence, line_width(), "- ") + "\n"
}

/// The longest line of a text on stdout.
fn line_width() -> usize {
    if std::io::stdout().is_terminal() { width() } else { usize::MAX }
}

/// Lines of at most this width behind a mark. Names such as `model-quic` are not broken at their hyphens.
fn filled(text: &str, width: usize, mark: &str) -> String {
    let options = textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options.initial_indent(mark).subsequent_indent(&" ".repeat(mark.len())))
}

/// A number with this many digits after the point; a dash if there is none.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.digits$}"))
}

/// A ratio and its interval, with as many digits as tell them from 1 and the ends from each other.
pub(crate) fn ratio(mean: Option<f64>, interval: Option<[f64; 2]>) -> String {
    let all: Vec<f64> = mean.into_iter().chain(interval.into_iter().flatten()).collect();
    let digits = digits_apart(&all, 2);
    let ends = |[low, high]: [f64; 2]| format!(" ({low:.digits$}–{high:.digits$})");
    format!("{}{}", number(mean, digits), interval.map_or(String::new(), ends))
}

/// Columns of the terminal that a column of the published table takes, and the one with the estimates.
const PUBLISHED_COLUMNS: [usize; 2] = [18, 12];

/// The published table beside ours: a row per estimate, a column per link and size. As many links stand beside each
/// other as fit.
pub(crate) fn published(cells: &[PublishedCell]) -> String {
    let mut links: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut estimates: Vec<f64> = Vec::new();
    for cell in cells {
        let place = links.iter().position(|(link, _)| *link == cell.link);
        let place = place.unwrap_or_else(|| {
            links.push((&cell.link, Vec::new()));
            links.len() - 1
        });
        if !links[place].1.contains(&&*cell.size) {
            links[place].1.push(&cell.size);
        }
        if !estimates.contains(&cell.estimate) {
            estimates.push(cell.estimate);
        }
    }
    let [column, first] = PUBLISHED_COLUMNS;
    let most = width().saturating_sub(first) / column;
    let mut tables: Vec<Vec<(&str, &str)>> = Vec::new();
    for (link, sizes) in links {
        let columns = sizes.into_iter().map(|size| (link, size));
        match tables.last_mut() {
            Some(table) if table.len() + columns.len() <= most => table.extend(columns),
            _ => tables.push(columns.collect()),
        }
    }
    let shown = |columns: &Vec<(&str, &str)>| published_columns(cells, &estimates, columns).to_string();
    tables.iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// These columns of the published table, links and sizes.
fn published_columns(cells: &[PublishedCell], estimates: &[f64], columns: &[(&str, &str)]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let header = columns.iter().map(|(link, size)| format!("{link}\n{size}"));
    table.set_header(std::iter::once("estimate".to_owned()).chain(header));
    for estimate in estimates {
        let entries = columns.iter().map(|(link, size)| {
            let found = |cell: &&PublishedCell| cell.estimate == *estimate && cell.link == *link && cell.size == *size;
            cells.iter().find(found).map_or(String::new(), |cell| {
                let signed = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:+.0}"));
                let verdict = cell.verdict.filter(|_| cell.ours_speedup.mean.is_some());
                format!(
                    "{}x{} ({})\n{} ({})",
                    verdict.map_or("", Verdict::glyph),
                    number(cell.ours_speedup.mean, 2),
                    number(cell.published_speedup, 2),
                    signed(cell.ours_loss_delta.mean),
                    signed(cell.published_loss_delta)
                )
            })
        });
        table.add_row(std::iter::once(format!("x{estimate}")).chain(entries));
    }
    table
}

/// Checks of a publication's statements: how many hold, and those that do not.
pub(crate) fn checks(checks: &[Check]) -> String {
    let held = checks.iter().filter(|check| check.pass == Some(true)).count();
    let missed: Vec<&Check> = checks.iter().filter(|check| check.pass == Some(false)).collect();
    let all = held + missed.len();
    if missed.is_empty() {
        return wrapped(&format!("All {all} checks of the paper's statements pass."));
    }
    let summary = format!(
        "{held} of {all} checks of the paper's statements pass. These miss; docs/findings/validation.md says why, as far \
         as it is known:"
    );
    format!("{}\n{}", wrapped(&summary), missing(&missed))
}

/// The checks that do not hold.
fn missing(checks: &[&Check]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "statement", "expected", "measured"]);
    for check in checks {
        table.add_row(["MISS", &check.statement, &check.expected, &check.measured]);
    }
    fitted(table)
}
