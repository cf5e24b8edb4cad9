//! The section on a publication has its numbers beside ours.

use super::mark::{Mark, Number, verdict_mark, verdict_marks};
use super::text::paragraphs;
use crate::chart::{self, Chart};
use crate::group::distinct;
use crate::number::{Format, UNDEFINED, finite};
use crate::{Check, PublishedCell, PublishedTable, RenderError};
use serde::Serialize;

/// The publication's table with ours in it.
#[derive(Serialize)]
pub(super) struct Published {
    source: String,
    note: Vec<String>,
    columns: Vec<PublishedLink>,
    /// Links and sizes, one for each column.
    labels: Vec<String>,
    /// Sizes of a link, at most: how many columns belong together.
    together: usize,
    rows: Vec<PublishedRow>,
    marks: Vec<Mark>,
    chart: Option<Chart>,
    checks: Vec<CheckRow>,
    /// "17 of 20", or empty.
    passed: String,
    /// Cells in which both agree on faster or slower, as words. Empty when nothing can be compared.
    agreement: String,
}

#[derive(Serialize)]
struct PublishedLink {
    name: String,
    sizes: Vec<String>,
}

#[derive(Serialize)]
struct PublishedRow {
    estimate: String,
    cells: Vec<Option<PublishedEntry>>,
}

#[derive(Serialize)]
struct PublishedEntry {
    speedup: Number,
    fct_delta: String,
    published_speedup: String,
    published_fct_delta: String,
    speedup_off: String,
    loss: Number,
    published_loss: String,
    loss_off: String,
}

#[derive(Serialize)]
struct CheckRow {
    statement: String,
    expected: String,
    measured: String,
    verdict: &'static str,
    glyph: &'static str,
    class: &'static str,
}

/// The section: a row for each estimate, a column for each link and size.
pub(super) fn published(table: &PublishedTable) -> Result<Published, RenderError> {
    let links = distinct(table.cells.iter().map(|c| &c.link));
    let columns: Vec<PublishedLink> = links
        .iter()
        .map(|link| PublishedLink {
            name: link.clone(),
            sizes: distinct(table.cells.iter().filter(|c| c.link == *link).map(|c| &c.size)),
        })
        .collect();
    let mut estimates: Vec<f64> = table.cells.iter().map(|c| c.estimate).filter(|e| e.is_finite()).collect();
    estimates.sort_by(f64::total_cmp);
    estimates.dedup();
    let row = |&estimate: &f64| PublishedRow {
        // At least one decimal, as 1.0 is how estimates are usually written.
        estimate: if estimate.fract() == 0.0 { format!("{estimate:.1}") } else { estimate.to_string() },
        cells: columns
            .iter()
            .flat_map(|c| c.sizes.iter().map(|size| (&c.name, size)))
            .map(|(link, size)| {
                let cell = table.cells.iter().find(|c| c.estimate == estimate && c.link == *link && c.size == *size);
                cell.map(published_entry)
            })
            .collect(),
    };
    let judged: Vec<bool> = table.checks.iter().filter_map(|c| c.pass).collect();
    Ok(Published {
        source: table.source.clone(),
        note: paragraphs(table.note.as_deref()),
        labels: columns.iter().flat_map(|c| c.sizes.iter().map(|size| format!("{}, {size}", c.name))).collect(),
        together: columns.iter().map(|c| c.sizes.len()).max().unwrap_or(1),
        rows: estimates.iter().map(row).collect(),
        marks: verdict_marks(),
        chart: chart::published(&table.cells, &links).map(Chart::embedded).transpose()?,
        checks: table.checks.iter().map(check_row).collect(),
        passed: if judged.is_empty() {
            String::new()
        } else {
            format!("{} of {}", judged.iter().filter(|p| **p).count(), judged.len())
        },
        agreement: agreement(&table.cells),
        columns,
    })
}

fn published_entry(cell: &PublishedCell) -> PublishedEntry {
    let ours = finite(cell.ours_speedup.mean);
    let theirs = finite(cell.published_speedup).filter(|v| *v > 0.0);
    let off = ours.zip(theirs).map(|(ours, theirs)| (ours / theirs - 1.0) * 100.0);
    let loss_off =
        finite(cell.ours_loss_delta.mean).zip(finite(cell.published_loss_delta)).map(|(a, b)| (a - b).round());
    PublishedEntry {
        speedup: Number::new(Format::Factor, cell.ours_speedup).marked(verdict_mark(cell.ours_speedup, cell.verdict)),
        fct_delta: milliseconds(cell.ours_fct_delta_ms),
        // As published, without decimals that were not.
        published_speedup: theirs.map_or_else(|| UNDEFINED.to_owned(), |v| format!("×{}", (v * 100.0).round() / 100.0)),
        published_fct_delta: milliseconds(cell.published_fct_delta_ms),
        speedup_off: off.map_or_else(String::new, |v| format!("{}\u{202f}%", Format::Signed.show(Some(v.round())))),
        loss: Number::new(Format::Signed, cell.ours_loss_delta),
        published_loss: Format::Signed.show(cell.published_loss_delta),
        loss_off: loss_off.map_or_else(String::new, |v| Format::Signed.show(Some(v))),
    }
}

/// A difference of FCTs: whole milliseconds, seconds from one second on.
fn milliseconds(value: Option<f64>) -> String {
    match finite(value) {
        Some(v) if v.abs() >= 999.5 => format!("{}\u{a0}s", Format::Signed.show(Some(v / 1000.0))),
        Some(v) => format!("{}\u{a0}ms", Format::Signed.show(Some(v.round()))),
        None => UNDEFINED.to_owned(),
    }
}

fn agreement(cells: &[PublishedCell]) -> String {
    let pairs: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|c| {
            Some((finite(c.ours_speedup.mean).filter(|v| *v > 0.0)?, finite(c.published_speedup).filter(|v| *v > 0.0)?))
        })
        .collect();
    if pairs.is_empty() {
        return String::new();
    }
    let close = pairs.iter().filter(|(ours, theirs)| (ours / theirs).max(theirs / ours) <= 1.25).count();
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| (ours / theirs).max(theirs / ours)).collect();
    ratios.sort_by(f64::total_cmp);
    format!(
        "Of {} comparable cells, {close} have a speed-up within a factor of 1.25 of the published one; in the median \
        cell the two differ by a factor of {:.2}.",
        pairs.len(),
        ratios[ratios.len() / 2]
    )
}

fn check_row(check: &Check) -> CheckRow {
    let (verdict, glyph, class) = match check.pass {
        Some(true) => ("pass", "✓", "better"),
        Some(false) => ("miss", "✗", "worse"),
        None => ("not checked", UNDEFINED, "unclear"),
    };
    CheckRow {
        statement: check.statement.clone(),
        expected: check.expected.clone(),
        measured: check.measured.clone(),
        verdict,
        glyph,
        class,
    }
}
