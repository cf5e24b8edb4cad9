//! Two runs of one question become a page: before and after.

use super::mark::{Mark, Number, verdict_mark, verdict_marks};
use super::template::fill;
use super::text::{or_untitled, sentences};
use crate::chart::{self, Chart};
use crate::command::Invocation;
use crate::group::{Axis, Names};
use crate::number::{Format, UNDEFINED};
use crate::time::time_words;
use crate::{Cell, Change, ChangeReport, Estimate, RenderError, Side};
use minijinja::context;
use serde::Serialize;

/// A row of the table.
#[derive(Serialize)]
struct Row {
    cell: String,
    id: String,
    pairs: u32,
    before: Number,
    after: Number,
    ratio: Number,
    speedup: [String; 2],
    inflation: [String; 2],
    inflation_delta: Number,
    lost: [String; 2],
    dropped_delta: Number,
    has_changed: bool,
}

/// Where one of the two is from.
#[derive(Serialize)]
struct Origin {
    name: &'static str,
    facts: Vec<(&'static str, String)>,
    command: String,
}

/// Writes the page of two runs of one question.
///
/// # Errors
///
/// The renderer itself has a fault. No data is refused.
pub fn render_changes(report: &ChangeReport) -> Result<String, RenderError> {
    let compared: Vec<Cell> = report.cells.iter().flat_map(pair).collect();
    let after: Vec<&Cell> = report.cells.iter().map(|change| &change.after).collect();
    let names = Names::of(&after);
    let common: Vec<(&str, String)> = Axis::ALL
        .into_iter()
        .filter(|axis| !names.varied().contains(axis))
        .filter_map(|axis| Some((axis.title(), axis.value(after.first()?).to_owned())))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let has_speedups = report.cells.iter().any(|change| change.after.speedup.mean.is_some());
    let marks: Vec<Mark> = verdict_marks();
    let mut rows: Vec<Row> = report.cells.iter().map(|change| row(change, &names)).collect();
    rows.sort_by_key(|row| !row.has_changed);
    fill(
        "changes.html",
        context! {
            time => time_words(after.iter().copied()),
            title => or_untitled(&report.title),
            answer => sentences(&report.answer),
            forest => chart::changes(&compared).map(Chart::embedded).transpose()?,
            rows => rows,
            everywhere => common,
            has_speedups => has_speedups,
            marks => marks,
            origins => [origin("before", &report.before), origin("after", &report.after)],
            notes => report.notes,
        },
    )
}

/// The cell after the change, compared with the one before it.
fn pair(change: &Change) -> [Cell; 2] {
    let name = format!("before {}", change.after.id);
    let before = Cell { id: name.clone(), speedup: Estimate::default(), is_baseline: true, ..change.before.clone() };
    let after = Cell {
        speedup: change.fct_ratio,
        verdict: change.verdict,
        baseline: name,
        is_baseline: false,
        ..change.after.clone()
    };
    [before, after]
}

fn row(change: &Change, names: &Names) -> Row {
    let [_, compared] = pair(change);
    let label = names.label(&change.after, &Axis::ALL);
    let both = |format: Format, of: fn(&Cell) -> Estimate| {
        [&change.before, &change.after].map(|cell| format.show(of(cell).mean))
    };
    Row {
        cell: if label.is_empty() { change.after.scheme.clone() } else { label },
        id: change.after.id.clone(),
        pairs: change.pairs,
        before: Number::new(Format::Plain, change.before.fct_ms),
        after: Number::new(Format::Plain, change.after.fct_ms),
        ratio: Number::new(Format::Factor, change.fct_ratio).marked(verdict_mark(compared.speedup, compared.verdict)),
        speedup: both(Format::Factor, |cell| cell.speedup),
        inflation: both(Format::Percent, |cell| cell.inflation),
        inflation_delta: Number::new(Format::Percent, change.inflation_delta),
        lost: both(Format::Percent, |cell| cell.lost),
        dropped_delta: Number::new(Format::Signed, change.dropped_delta),
        has_changed: change.has_changed(),
    }
}

fn origin(name: &'static str, side: &Side) -> Origin {
    let known = |text: &str| if text.is_empty() { UNDEFINED.to_owned() } else { text.to_owned() };
    Origin {
        name,
        facts: vec![
            ("folder", known(&side.folder)),
            ("version", known(&side.version)),
            ("build", known(&side.build)),
            ("repetitions", side.repetitions.to_string()),
            ("host", known(&side.host)),
        ],
        command: Invocation::current().command(&side.command),
    }
}
