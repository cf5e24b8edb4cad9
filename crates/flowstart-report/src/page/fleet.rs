//! A question about a fleet becomes a page: its choices, and for whom the recommended one is worse.

use super::mark::{Mark, Number, verdict_mark, verdict_marks};
use super::method;
use super::template::fill;
use super::text::{or_untitled, sentences};
use crate::chart::{self, Chart};
use crate::number::Format;
use crate::{Cell, Estimate, FleetChoice, FleetKind, FleetReport, RenderError};
use minijinja::context;
use serde::Serialize;

/// A row of the table of choices.
#[derive(Serialize)]
struct ChoiceRow {
    name: String,
    gain: Number,
    numbers: Vec<(&'static str, Number)>,
    note: String,
    is_baseline: bool,
}

/// A row of the table of kinds.
#[derive(Serialize)]
struct KindRow {
    name: String,
    path: &'static str,
    share: Number,
    gain: Number,
}

/// Writes the page of a fleet.
///
/// # Errors
///
/// The renderer itself has a fault. No data is refused.
pub fn render_fleet(report: &FleetReport) -> Result<String, RenderError> {
    let marks: Vec<Mark> = verdict_marks();
    let baseline = report.choices.first().map_or("", |first| &first.name);
    let embedded = |cells: &[Cell]| chart::forest(cells).map(Chart::embedded).transpose();
    fill(
        "fleet.html",
        context! {
            title => or_untitled(&report.title),
            answer => sentences(&report.answer),
            word => report.word,
            baseline => baseline,
            recommended => report.recommended,
            forest => embedded(&of_choices(report))?,
            rows => report.choices.iter().enumerate().map(|(place, one)| row(one, place, report)).collect::<Vec<_>>(),
            kind_forest => embedded(&of_kinds(report, baseline))?,
            kinds => report.kinds.iter().map(kind).collect::<Vec<_>>(),
            marks => marks,
            method => method::method(&report.method),
        },
    )
}

fn known(value: Option<f64>) -> Estimate {
    Estimate { mean: value, ci95: None }
}

fn plain(format: Format, value: Option<f64>) -> Number {
    Number::new(format, known(value))
}

fn row(one: &FleetChoice, place: usize, report: &FleetReport) -> ChoiceRow {
    let note = match (&*one.refused, place) {
        _ if one.name == report.recommended => "recommended".to_owned(),
        ("", 0) => "baseline".to_owned(),
        ("", _) => String::new(),
        (why, _) => format!("not offered: {why}"),
    };
    ChoiceRow {
        name: one.name.clone(),
        gain: Number::new(Format::Factor, one.gain).marked(verdict_mark(one.gain, one.verdict)),
        numbers: vec![
            ("median (ms)", Number::new(Format::Plain, one.p50_ms)),
            ("95th percentile (ms)", Number::new(Format::Plain, one.p95_ms)),
            ("regret", plain(Format::Percent, one.regret)),
            ("sent twice", plain(Format::Percent, one.inflation)),
            ("queue, 99th percentile (ms)", plain(Format::Plain, one.queue_delay_ms)),
            ("dropped (packets)", plain(Format::Plain, one.dropped_packets)),
            ("others lose, times", plain(Format::Fraction, one.harm_ratio)),
        ],
        note,
        is_baseline: place == 0,
    }
}

fn kind(one: &FleetKind) -> KindRow {
    KindRow {
        name: one.name.clone(),
        path: if one.known { "known" } else { "unknown" },
        share: plain(Format::Percent, Some(one.share)),
        gain: Number::new(Format::Factor, one.gain).marked(verdict_mark(one.gain, one.verdict)),
    }
}

/// Each choice beside the baseline, for the plot.
fn of_choices(report: &FleetReport) -> Vec<Cell> {
    let cell = |(place, one): (usize, &FleetChoice)| Cell {
        id: one.name.clone(),
        scheme: one.name.clone(),
        is_baseline: place == 0,
        speedup: one.gain,
        verdict: one.verdict,
        inflation: known(one.inflation),
        goodput_lost_mbit: known(one.harm_mbit),
        ..Cell::default()
    };
    report.choices.iter().enumerate().map(cell).collect()
}

/// The recommended choice beside the baseline in each kind, for the plot.
fn of_kinds(report: &FleetReport, baseline: &str) -> Vec<Cell> {
    let pair = |(place, one): (usize, &FleetKind)| {
        let link = if one.known { one.name.clone() } else { format!("unknown: {}", one.name) };
        let id = format!("{place} {baseline}");
        let before = Cell {
            id: id.clone(),
            link: link.clone(),
            scheme: baseline.to_owned(),
            is_baseline: true,
            ..Cell::default()
        };
        let after = Cell {
            id: place.to_string(),
            link,
            scheme: report.recommended.clone(),
            baseline: id,
            speedup: one.gain,
            verdict: one.verdict,
            ..Cell::default()
        };
        [before, after]
    };
    // A choice beside itself says nothing.
    let kinds = report.kinds.iter().enumerate().filter(|_| report.recommended != baseline);
    kinds.flat_map(pair).collect()
}
