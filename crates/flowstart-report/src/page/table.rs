//! The table of cells has a row for each cell, and a column for what cells differ in.

use super::mark::{Number, loss_mark, speedup_mark};
use crate::command::replay;
use crate::group::{arrival, distinct};
use crate::number::{Format, UNDEFINED, finite};
use crate::{Cell, Report};
use serde::Serialize;

/// The table, and which of its columns are shown.
#[derive(Serialize)]
pub(super) struct Table {
    rows: Vec<TableRow>,
    /// Columns that are shown only when the cells differ in them.
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
    has_late: bool,
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
    dropped: Number,
    inflation: Number,
    share: Number,
    harm: Number,
    late: Number,
    replay: String,
}

/// The table of all cells, in the order of the report.
pub(super) fn table(report: &Report) -> Table {
    let cells = &report.cells;
    let has_late = cells.iter().any(|c| finite(c.extra_fct_ms.mean).is_some());
    let varies = |field: fn(&Cell) -> &String| distinct(cells.iter().map(field)).len() > 1;
    Table {
        rows: cells.iter().map(|cell| table_row(cell, &report.method.directory)).collect(),
        has_aqm: varies(|c| &c.aqm),
        has_competitor: varies(|c| &c.competitor),
        has_avoidance: varies(|c| &c.avoidance),
        has_transport: varies(|c| &c.transport),
        has_arrival: varies(|c| &c.arrival),
        has_failed: cells.iter().any(|c| c.failed > 0),
        has_others: cells.iter().any(|c| finite(c.share.mean).or(finite(c.goodput_lost_mbit.mean)).is_some()),
        has_comparison: cells.iter().any(|c| !c.is_baseline),
        has_harm: cells.iter().any(|c| finite(c.goodput_lost_mbit.mean).is_some()) || !has_late,
        has_late,
        baseline: cells.iter().find(|c| c.is_baseline).map(|c| c.scheme.clone()),
        failed: cells.iter().map(|c| c.failed).sum(),
    }
}

fn table_row(cell: &Cell, directory: &str) -> TableRow {
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
        speedup: Number::new(Format::Factor, cell.speedup).marked(speedup_mark(
            cell.speedup,
            cell.significant,
            cell.within_one_rtt,
        )),
        dropped: Number::new(Format::Signed, cell.dropped_delta).marked(loss_mark(cell.dropped_delta, None)),
        inflation: Number::new(Format::Percent, cell.inflation),
        share: Number::new(Format::Fraction, cell.share),
        harm: Number::new(Format::Plain, cell.goodput_lost_mbit),
        late: Number::new(Format::Plain, cell.extra_fct_ms),
        replay: cell.replay_rep.map_or_else(String::new, |rep| replay(&cell.id, rep, directory)),
    }
}
