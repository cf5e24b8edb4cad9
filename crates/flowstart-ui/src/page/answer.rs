//! The answer to a question: the sentence, and a table of cells with intervals.

use flowstart_lab::results::cell_summary::CellSummary;
use flowstart_lab::results::felt::felt;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_report::{Estimate, Format, Kind, Verdict};
use minijinja::context;
use serde::Serialize;
use serde_json::{Value, json};

use super::Site;
use crate::ask::{Answered, label};
use crate::question::Question;

/// A cell in the table.
#[derive(Serialize)]
struct Row {
    /// Its place, and that of its colour.
    place: usize,
    label: String,
    is_baseline: bool,
    /// Mean completion time and its interval.
    time: (String, String),
    /// Speed-up and its interval.
    speedup: (String, String),
    mark: String,
    class: &'static str,
    inflation: String,
    dropped: String,
    /// What others deliver less.
    harm: String,
    failed: usize,
}

/// How a verdict is coloured.
fn class(verdict: Verdict) -> &'static str {
    match verdict.kind {
        _ if verdict.is_deterministic() => "plain",
        Kind::Faster => "better",
        Kind::FasterByWaste => "waste",
        Kind::Slower => "worse",
        Kind::Negligible | Kind::Unclear | Kind::Same => "unclear",
    }
}

fn row(plan: &Plan, cell: &Cell, summary: &CellSummary) -> Row {
    let mean = |name: &str| summary.metrics.get(name).and_then(|metric| metric.mean);
    let time = summary.metrics.get(felt(plan, cell).0);
    let time = Estimate { mean: time.and_then(|time| time.mean), ci95: time.and_then(|time| time.ci95) };
    let versus = summary.vs_baseline.as_ref();
    let speedup =
        Estimate { mean: versus.and_then(|versus| versus.speedup), ci95: versus.and_then(|versus| versus.speedup_ci) };
    let verdict = versus.and_then(|versus| versus.verdict);
    let harm = summary.others.as_ref().map(|others| others.goodput_lost_mbit.mean);
    Row {
        place: cell.index,
        label: label(plan, cell),
        is_baseline: versus.is_none(),
        time: Format::Plain.estimate(time),
        speedup: Format::Factor.estimate(speedup),
        mark: verdict.map_or_else(String::new, Verdict::mark),
        class: verdict.map_or("plain", class),
        inflation: Format::Percent.show(mean("inflation")),
        dropped: Format::Plain.show(mean("dropped_packets")),
        harm: harm.map_or_else(String::new, |mean| Format::Plain.show(mean)),
        failed: summary.failed,
    }
}

/// The answer as a part of a page.
pub(super) fn fragment(answered: &Answered, site: &Site) -> String {
    let plan = &answered.question.study.plan;
    let summary = &answered.performed.summary;
    let rows: Vec<Row> = plan.cells().iter().zip(&summary.cells).map(|(cell, of)| row(plan, cell, of)).collect();
    let has_others = rows.iter().any(|row| !row.harm.is_empty());
    let has_baseline = rows.iter().any(|row| !row.is_baseline);
    site.fill(
        "answer.html",
        context! {
            answer => summary.answer,
            notes => summary.answer_notes,
            rows, has_others, has_baseline,
            query => answered.question.query,
            reps => plan.reps,
            took_ms => answered.took.as_millis() as u64,
            study_notes => answered.question.study.notes,
        },
    )
}

/// The answer as an event.
pub fn event(answered: &Answered, site: &Site) -> Value {
    json!({
        "query": answered.question.query,
        "html": fragment(answered, site),
        "took_ms": answered.took.as_secs_f64() * 1000.0,
        "report": report_address(&answered.question, site),
        "command": answered.question.command().join(" "),
    })
}

/// Where the report of the answer to a question is, if it has an address.
pub(super) fn report_address(question: &Question, site: &Site) -> Option<String> {
    let part: String = form_urlencoded::byte_serialize(question.query.as_bytes()).collect();
    site.answers.map(|answers| format!("{answers}{part}/report.html"))
}
