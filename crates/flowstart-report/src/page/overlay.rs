//! Runs of several schemes become one page.

use super::template::fill;
use super::text::{or_untitled, sentences};
use super::trace::{self, EventRow};
use super::{causes, method, setup};
use crate::chart::{self, Chart};
use crate::number::{Format, UNDEFINED, finite};
use crate::{Cause, DataFile, OverlayReport, RenderError, TraceReport};
use minijinja::context;
use serde::Serialize;

/// The numbers of a scheme's run.
#[derive(Serialize)]
struct Row {
    scheme: String,
    avoidance: String,
    /// FCT, FCT over the physical limit, dropped packets, inflation, longest queueing delay.
    values: Vec<String>,
    /// When and why startup ended.
    startup: String,
}

/// What a scheme's run shows below the numbers.
#[derive(Serialize)]
struct Part {
    scheme: String,
    chart: Option<Chart>,
    events: Vec<EventRow>,
}

/// A cause with the milliseconds of each scheme.
#[derive(Serialize)]
struct CauseRow {
    name: &'static str,
    meaning: &'static str,
    values: Vec<String>,
}

/// Writes the page of several schemes' runs of the same setting and repetition.
///
/// # Errors
///
/// The renderer itself has a fault. No data is refused.
pub fn render_overlay(report: &OverlayReport) -> Result<String, RenderError> {
    let schemes: Vec<String> = report.runs.iter().map(|run| run.scheme.clone()).collect();
    let nothing = TraceReport::default();
    let first = report.runs.first().unwrap_or(&nothing);
    let title = match report.title.is_empty() && !schemes.is_empty() {
        true => format!("{}: {} on {}", schemes.join(", "), first.size, first.link.name),
        false => or_untitled(&report.title).to_owned(),
    };
    let links: Vec<_> = Some(first.link.clone()).filter(|link| !link.name.is_empty()).into_iter().collect();
    let mut method = report.method.clone();
    if method.files.is_empty() {
        let what = "every event of every run, a row each";
        method.files = vec![DataFile { name: "trace.csv".to_owned(), what: what.to_owned() }];
    }
    let domain = chart::domain(&report.runs);
    let mut parts = Vec::new();
    for (number, run) in report.runs.iter().enumerate() {
        let chart = domain.and_then(|domain| chart::variables(run, domain, number));
        parts.push(Part {
            scheme: run.scheme.clone(),
            chart: chart.map(Chart::embedded).transpose()?,
            events: trace::events(run),
        });
    }
    fill(
        "overlay.html",
        context! {
            title => title,
            answer => sentences(&report.answer),
            facts => trace::facts(first, false),
            rows => report.runs.iter().map(row).collect::<Vec<_>>(),
            schemes => schemes,
            causes => cause_rows(report),
            parts => parts,
            setup => setup::setup(&links, &schemes),
            chart => chart::overlay(report).map(Chart::embedded).transpose()?,
            method => method::method(&method),
        },
    )
}

fn row(run: &TraceReport) -> Row {
    let limit = finite(run.fct_ms).zip(finite(run.ideal_fct_ms).filter(|v| *v > 0.0)).map(|(fct, ideal)| fct / ideal);
    let count = |value: Option<u64>| value.map(|v| v as f64);
    let (time, why) = trace::startup_end(run);
    Row {
        scheme: run.scheme.clone(),
        avoidance: run.avoidance.clone(),
        values: vec![
            Format::Plain.show(finite(run.fct_ms)),
            Format::Factor.show(limit),
            Format::Plain.show(count(run.dropped_packets)),
            Format::Percent.show(run.inflation),
            Format::Plain.show(finite(run.max_queue_delay_ms)),
        ],
        startup: if finite(run.exit_ms).is_some() { format!("{time}, {why}") } else { why },
    }
}

/// The causes of each scheme's delay, and their sum. Nothing if no run has any.
fn cause_rows(report: &OverlayReport) -> Vec<CauseRow> {
    if report.runs.iter().all(|run| run.causes.is_none()) {
        return Vec::new();
    }
    let each = |of: &dyn Fn(&crate::Causes) -> f64| {
        let value =
            |run: &TraceReport| run.causes.as_ref().map_or(UNDEFINED.to_owned(), |c| causes::milliseconds(of(c)));
        report.runs.iter().map(value).collect::<Vec<_>>()
    };
    let mut rows: Vec<CauseRow> = Cause::ALL
        .into_iter()
        .enumerate()
        .map(|(place, cause)| CauseRow {
            name: cause.name(),
            meaning: cause.meaning(),
            values: each(&|causes| causes.causes_ms[place]),
        })
        .collect();
    let values = each(&|causes| causes.causes_ms.iter().sum());
    rows.push(CauseRow { name: "together", meaning: "FCT minus the physical limit", values });
    rows
}
