//! A single run becomes a page.

use super::template::fill;
use super::text::{or_untitled, sentences};
use super::{causes, method, setup};
use crate::chart::{self, Chart};
use crate::number::{Format, UNDEFINED, finite};
use crate::{Cause, DataFile, RenderError, TraceEvent, TraceEventKind, TraceReport};
use minijinja::context;
use serde::Serialize;

/// What lies beside the page unless the caller says otherwise.
const FILES: [(&str, &str); 3] = [
    ("trace.csv", "every event, a row each"),
    ("trace.sqlog", "the same for QUIC tools (qlog)"),
    ("trace.pcapng", "the packets at both hosts, for Wireshark: an interface for each"),
];

/// A number of the header, with the explanation below it.
#[derive(Serialize)]
struct KeyNumber {
    label: &'static str,
    value: String,
    meaning: String,
}

#[derive(Serialize)]
pub(super) struct EventRow {
    number: usize,
    time: String,
    kind: &'static str,
    detail: String,
}

/// Writes the page of a single run.
///
/// # Errors
///
/// The renderer itself has a fault. No data is refused.
pub fn render_trace(report: &TraceReport) -> Result<String, RenderError> {
    let title = if report.title.is_empty() && !report.scheme.is_empty() {
        format!("{}: {} on {}", report.scheme, report.size, report.link.name)
    } else {
        or_untitled(&report.title).to_owned()
    };
    let mut links = Vec::new();
    if !report.link.name.is_empty() {
        links.push(report.link.clone());
    }
    let mut method = report.method.clone();
    if method.files.is_empty() {
        method.files = FILES.map(|(name, what)| DataFile { name: name.to_owned(), what: what.to_owned() }).to_vec();
    }
    let variables = chart::time_domain(report).and_then(|domain| chart::variables(report, domain, 0));
    fill(
        "trace.html",
        context! {
            title => title,
            answer => sentences(&report.answer),
            facts => facts(report, true),
            numbers => numbers(report),
            causes => cause_rows(report),
            events => events(report),
            variables => variables.map(Chart::embedded).transpose()?,
            setup => setup::setup(&links, std::slice::from_ref(&report.scheme)),
            chart => chart::trace(report).map(Chart::embedded).transpose()?,
            method => method::method(&method),
        },
    )
}

/// The events of a run, in words.
pub(super) fn events(report: &TraceReport) -> Vec<EventRow> {
    let row = |(number, event): (usize, &TraceEvent)| EventRow {
        number,
        time: Format::Plain.show(Some(event.time_ms)),
        kind: match event.kind {
            TraceEventKind::Launch => "startup launched",
            TraceEventKind::Capped => "launch capped",
            TraceEventKind::Exit => "startup ended",
            TraceEventKind::Loss => "loss",
            TraceEventKind::Rto => "retransmission timeout",
            TraceEventKind::Other => "event",
        },
        detail: event.detail.clone(),
    };
    chart::numbered_events(report).map(row).collect()
}

/// When startup ended, and why or why not.
pub(super) fn startup_end(report: &TraceReport) -> (String, String) {
    let why = match (&report.exit_reason, finite(report.fct_ms)) {
        (Some(reason), _) => format!("because: {reason}"),
        (None, Some(_)) => "the transfer ended in startup".to_owned(),
        (None, None) => "the run ended in startup".to_owned(),
    };
    (with_unit(report.exit_ms, Format::Plain, "\u{a0}ms"), why)
}

/// A number and its unit.
fn with_unit(value: Option<f64>, format: Format, unit: &str) -> String {
    finite(value).map_or(UNDEFINED.to_owned(), |value| format!("{}{unit}", format.show(Some(value))))
}

/// A cause with its milliseconds, its percent of the delay, and what it means.
#[derive(Serialize)]
struct CauseRow {
    name: &'static str,
    meaning: &'static str,
    ms: String,
    percent: String,
}

/// The causes and their sum. Nothing when the transfer did not finish.
fn cause_rows(report: &TraceReport) -> Vec<CauseRow> {
    let Some(causes) = &report.causes else { return Vec::new() };
    let excess: f64 = causes.causes_ms.iter().sum();
    let percent = |part: Option<f64>| part.map_or(UNDEFINED.to_owned(), |part| causes::percent(part / 100.0));
    let row =
        |name, meaning, ms, part| CauseRow { name, meaning, ms: causes::milliseconds(ms), percent: percent(part) };
    let mut rows: Vec<CauseRow> = Cause::ALL
        .into_iter()
        .zip(causes.causes_ms)
        .map(|(cause, ms)| row(cause.name(), cause.meaning(), ms, causes.percent(cause)))
        .collect();
    let delay = causes.delay_ms();
    let part = (delay >= 0.05).then(|| excess / delay * 100.0);
    rows.push(row("together", "FCT minus the physical limit", excess, part));
    rows
}

/// What identifies the run; without its scheme, what it shares with runs of other schemes.
pub(super) fn facts(report: &TraceReport, with_scheme: bool) -> Vec<(&'static str, String)> {
    let rep = report.rep.map(|r| r.to_string()).unwrap_or_default();
    let fields = [
        ("scheme", &report.scheme),
        ("congestion avoidance", &report.avoidance),
        ("transport", &report.transport),
        ("size", &report.size),
        ("link", &report.link.name),
        ("competitor", &report.competitor),
        ("repetition", &rep),
    ];
    let skipped = if with_scheme { 0 } else { 2 };
    fields
        .into_iter()
        .skip(skipped)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, value.clone()))
        .collect()
}

fn numbers(report: &TraceReport) -> Vec<KeyNumber> {
    let with = with_unit;
    let (exit, why) = startup_end(report);
    let count = |value: Option<u64>| value.map(|v| v as f64);
    let limit =
        finite(report.fct_ms).zip(finite(report.ideal_fct_ms).filter(|v| *v > 0.0)).map(|(fct, ideal)| fct / ideal);
    let mut numbers = vec![
        KeyNumber {
            label: "FCT",
            value: with(report.fct_ms, Format::Plain, "\u{a0}ms"),
            meaning: "flow completion time: first handshake packet to last payload byte".to_owned(),
        },
        KeyNumber {
            label: "FCT / physical limit",
            value: Format::Factor.show(limit),
            meaning: format!(
                "nothing could finish sooner than {}",
                with(report.ideal_fct_ms, Format::Plain, "\u{a0}ms")
            ),
        },
        KeyNumber {
            label: "dropped packets",
            value: Format::Plain.show(count(report.dropped_packets)),
            meaning: "dropped by queues and by loss on the link".to_owned(),
        },
        KeyNumber {
            label: "inflation",
            value: Format::Percent.show(report.inflation),
            meaning: format!(
                "retransmitted bytes / payload bytes ({})",
                with(count(report.retransmitted_bytes).map(|b| b / 1000.0), Format::Plain, "\u{a0}KB sent again")
            ),
        },
        KeyNumber {
            label: "longest queueing delay",
            value: with(report.max_queue_delay_ms, Format::Plain, "\u{a0}ms"),
            meaning: "that a packet of this flow waited at the bottleneck".to_owned(),
        },
        KeyNumber { label: "startup ended", value: exit, meaning: why },
    ];
    // Alone, a flow has the whole link, and that says nothing.
    let others = !report.competitor.is_empty() && report.competitor != "none";
    if others && finite(report.share).is_some() {
        numbers.push(KeyNumber {
            label: "share",
            value: Format::Fraction.show(report.share),
            meaning: "of the bytes leaving the bottleneck while this flow was active".to_owned(),
        });
    }
    numbers
}
