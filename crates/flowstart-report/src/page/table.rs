//! The table of cells has a row for each cell, and a column for what cells differ in.

use super::mark::{Mark, Number, verdict_mark, verdict_marks};
use crate::baseline::{Baselines, compared};
use crate::command::replay;
use crate::group::{Axis, Names, arrival, distinct};
use crate::number::{Format, UNDEFINED, finite};
use crate::{Cell, Report, Time, WASTE};
use serde::Serialize;

/// The table, and which of its columns are shown.
#[derive(Serialize)]
pub(super) struct Table {
    rows: Vec<TableRow>,
    /// What all cells have in common, as names and values.
    everywhere: Vec<(&'static str, String)>,
    /// What the marks mean.
    marks: Vec<Mark>,
    /// Columns that are shown only when the cells differ in them.
    has_link: bool,
    has_size: bool,
    has_scheme: bool,
    has_n: bool,
    has_aqm: bool,
    has_competitor: bool,
    has_avoidance: bool,
    has_transport: bool,
    has_failed: bool,
    has_arrival: bool,
    /// Whether any cell shared its link.
    has_others: bool,
    /// Whether there is another scheme than the baseline.
    has_comparison: bool,
    has_harm: bool,
    has_others_dropped: bool,
    has_late: bool,
    /// Whether anything was lost, or dropped more than by the baseline.
    has_lost: bool,
    has_dropped: bool,
    /// Whether a time of any cell is known.
    has_runs: bool,
    /// Times that are no completion times: names and meanings.
    times: Vec<(&'static str, &'static str)>,
    /// Payload sent twice beyond the baseline's, from which on a gain is waste.
    waste_percent: f64,
    baseline: Option<String>,
    failed: u32,
}

#[derive(Serialize)]
struct TableRow {
    link: String,
    aqm: String,
    size: String,
    size_bytes: u64,
    scheme: String,
    avoidance: String,
    transport: String,
    competitor: String,
    arrival: String,
    baseline: bool,
    n: u32,
    failed: u32,
    fct: Number,
    queue: Number,
    speedup: Number,
    /// What the speed-up is over, where that differs from row to row.
    over: Option<String>,
    lost: Number,
    dropped: Number,
    inflation: Number,
    share: Number,
    harm: Number,
    others_dropped: Number,
    late: Number,
    replay: String,
}

/// Axes that the text above the table names where all cells are alike.
const COMMON: [Axis; 7] =
    [Axis::Link, Axis::Aqm, Axis::Size, Axis::Scheme, Axis::Avoidance, Axis::Transport, Axis::Competitor];

/// The table of all cells, in the order of the report.
pub(super) fn table(report: &Report, names: &Names) -> Table {
    let cells = &report.cells;
    let has_late = cells.iter().any(|c| finite(c.extra_fct_ms.mean).is_some());
    let varied = names.varied();
    let varies = |axis: Axis| varied.contains(&axis);
    // A scheme's own congestion avoidance is in its name.
    let is_own = |axis: &Axis| *axis == Axis::Avoidance && cells.iter().any(Cell::names_its_avoidance);
    let is_common =
        |axis: &Axis| !varies(*axis) && !is_own(axis) && cells.iter().any(|cell| !axis.value(cell).is_empty());
    let common = COMMON.into_iter().filter(is_common);
    let counts = distinct(cells.iter().map(|cell| cell.n.to_string()));
    let mut everywhere: Vec<_> = common.map(|axis| (axis.title(), axis.value(&cells[0]).to_owned())).collect();
    if let [n] = &counts[..] {
        everywhere.push(("n", n.clone()));
    }
    let compared = compared(cells);
    let baselines = Baselines::of(&compared);
    let over = |cell: &Cell| {
        let comparison = compared.iter().find(|(one, _)| std::ptr::eq(*one, cell) && baselines.are_several())?;
        baselines.name(*comparison)
    };
    let some = |of: fn(&Cell) -> Option<f64>| cells.iter().filter_map(of).any(|value| value != 0.0);
    Table {
        rows: cells.iter().map(|cell| table_row(cell, over(cell), &report.method.directory)).collect(),
        everywhere,
        marks: verdict_marks(),
        has_link: varies(Axis::Link),
        has_size: varies(Axis::Size),
        has_scheme: varies(Axis::Scheme) || varied.is_empty(),
        has_n: counts.len() > 1,
        has_aqm: varies(Axis::Aqm),
        has_competitor: varies(Axis::Competitor),
        has_avoidance: varies(Axis::Avoidance)
            || is_own(&Axis::Avoidance) && !cells.iter().all(Cell::names_its_avoidance),
        has_transport: varies(Axis::Transport),
        has_arrival: varies(Axis::Arrival),
        has_lost: some(|cell| finite(cell.lost.mean)),
        has_dropped: some(|cell| finite(cell.dropped_delta.mean)),
        has_failed: cells.iter().any(|c| c.failed > 0),
        has_others: cells.iter().any(|c| finite(c.share.mean).or(finite(c.goodput_lost_mbit.mean)).is_some()),
        has_comparison: cells.iter().any(|c| finite(c.speedup.mean).is_some()),
        has_harm: cells.iter().any(|c| finite(c.goodput_lost_mbit.mean).is_some()) || !has_late,
        has_others_dropped: some(|cell| finite(cell.others_dropped.mean)),
        has_late,
        has_runs: some(|cell| finite(cell.fct_ms.mean)),
        times: times(cells),
        waste_percent: WASTE * 100.0,
        baseline: cells.iter().find(|c| c.is_baseline).map(|c| c.scheme.clone()),
        failed: cells.iter().map(|c| c.failed).sum(),
    }
}

/// What times other than completion times mean.
fn times(cells: &[Cell]) -> Vec<(&'static str, &'static str)> {
    let known = |time: Time| cells.iter().any(|cell| cell.time == time);
    let all = [
        (
            Time::Chunk,
            ("time of a chunk", "The mean time from when a chunk is written until its last byte has arrived."),
        ),
        (
            Time::FirstPicture,
            (
                "time to the first picture",
                "From the first handshake packet until an adaptive video shows its first picture. It stands in place of \
                the FCT, because the end of a video depends on its playing time.",
            ),
        ),
    ];
    all.into_iter().filter(|(time, _)| known(*time)).map(|(_, words)| words).collect()
}

fn table_row(cell: &Cell, over: Option<String>, directory: &str) -> TableRow {
    let mut fct = Number::new(Format::Plain, cell.fct_ms);
    if fct.text != UNDEFINED {
        fct.text.push_str("\u{a0}ms");
    }
    TableRow {
        link: cell.link.clone(),
        aqm: cell.aqm.clone(),
        size: cell.size.clone(),
        size_bytes: cell.size_bytes,
        scheme: cell.scheme.clone(),
        avoidance: cell.avoidance.clone(),
        transport: cell.transport.clone(),
        competitor: cell.competitor.clone(),
        arrival: arrival(cell).to_owned(),
        baseline: cell.is_baseline,
        n: cell.n,
        failed: cell.failed,
        fct,
        queue: Number::new(Format::Plain, cell.max_queue_delay_ms),
        speedup: Number::new(Format::Factor, cell.speedup).marked(verdict_mark(cell.speedup, cell.verdict)),
        over,
        lost: Number::new(Format::Percent, cell.lost),
        dropped: Number::new(Format::Signed, cell.dropped_delta),
        inflation: Number::new(Format::Percent, cell.inflation),
        share: Number::new(Format::Fraction, cell.share),
        harm: Number::new(Format::Plain, cell.goodput_lost_mbit),
        others_dropped: Number::new(Format::Plain, cell.others_dropped),
        late: Number::new(Format::Plain, cell.extra_fct_ms),
        replay: cell.replay_rep.map_or_else(String::new, |rep| replay(&cell.id, rep, directory)),
    }
}
