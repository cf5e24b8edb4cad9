//! One traced run as a page and as files for other tools.
//!
//! [`export`] writes files while the run goes on, in memory that does not depend on the transfer. A [`TracedRun`] has
//! the events of a small run in memory, to be looked at and written afterwards.
//!
//! | Looking for | Where |
//! |---|---|
//! | files that are written while a run goes on | [`export`] |
//! | the page | [`page`] |
//! | a table of events | [`TracedRun::write_csv`] |
//! | a log for QUIC tools | [`TracedRun::write_qlog`] |
//! | a capture for packet tools | [`TracedRun::write_pcapng`] |

use flowstart_core::event::Decision;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_sim::observe::trace::Event;
use flowstart_sim::transport::policy::Protocol;
use flowstart_sim::transport::profile::Profile;

use crate::observe::{FlowSeries, Line, Marks, Resolution, Seen, Watched};
use crate::plan::{Cell, Plan};
use crate::report;
use crate::report_input::link_input;
use crate::run::{self, Finished};

mod csv;
mod export;
mod pcapng;
mod qlog;
#[cfg(all(test, feature = "quic"))]
mod quic_tests;
#[cfg(test)]
mod quick_start_tests;
#[cfg(test)]
mod tests;

pub(crate) use export::Exporter;
pub use export::{ExportError, Exported, Format, Outputs, Sink, export};

/// A run with everything that happened in it.
#[derive(Debug)]
pub struct TracedRun {
    /// The world after it.
    pub finished: Finished,
    /// Its measured flows.
    pub outcomes: Vec<run::FlowOutcome>,
}

/// Runs one repetition of a cell with a trace.
pub fn trace(plan: &Plan, cell: &Cell, rep: u32) -> TracedRun {
    let mut finished = run::replay(plan, cell, rep);
    let outcomes = run::outcomes(plan, cell, &mut finished);
    TracedRun { finished, outcomes }
}

/// As [`trace`], and keeps the datagrams that senders of real QUIC flows see, for [`TracedRun::write_pcapng`].
pub fn capture(plan: &Plan, cell: &Cell, rep: u32) -> TracedRun {
    let mut finished = run::capture(plan, cell, rep);
    let outcomes = run::outcomes(plan, cell, &mut finished);
    TracedRun { finished, outcomes }
}

/// What was run, in a sentence.
fn title(plan: &Plan, cell: &Cell) -> String {
    let transport = &plan.transport.text;
    let (scheme, size) = (&plan.schemes[cell.scheme].text, plan.carried(cell));
    let (link, aqm) = (&plan.links[cell.link].text, &plan.aqms[cell.aqm].text);
    let competitor = &plan.competitors[cell.competitor].text;
    let avoidance = &plan.avoidance_of(cell).text;
    format!("{scheme} with {avoidance} on {transport}: {size} over {link}, queue {aqm}, competitor {competitor}")
}

/// What a page shows.
pub const PAGE: Watched = Watched {
    causes: true,
    series: Some(Resolution { bins: 8192, marks: 40_000, volume: 2, longest: Duration::MAX, whole: true }),
};

/// The page of a run of which this was seen.
pub fn page(
    plan: &Plan,
    cell: &Cell,
    rep: u32,
    outcomes: &[run::FlowOutcome],
    seen: &Seen,
    method: report::Method,
) -> report::TraceReport {
    let outcome = outcomes.first();
    let record = outcome.map(|outcome| &outcome.record);
    let flow = seen.series.as_ref().and_then(|series| Some((series, series.series.flows.first()?)));
    let ms = |time| flow.map_or(f64::NAN, |(series, _)| series.ms(time));
    let line = |of: fn(&FlowSeries) -> &Line| flow.map_or(Vec::new(), |(seen, flow)| seen.points(of(flow).points()));
    let marks = |of: fn(&FlowSeries) -> &Marks| flow.map_or(Vec::new(), |(seen, flow)| seen.points(of(flow).points()));
    let mut events = flow.map_or(Vec::new(), |(_, flow)| {
        let told = flow.notable.iter();
        told.filter_map(|(time, event)| {
            let (kind, detail) = in_words(event)?;
            Some(report::TraceEvent { time_ms: ms(*time), kind, detail })
        })
        .collect::<Vec<_>>()
    });
    if let Some((_, flow)) = flow
        && let Some(more) = flow.notable_count.checked_sub(flow.notable.len() as u64).filter(|more| *more > 0)
    {
        let time_ms = events.last().map_or(0.0, |last| last.time_ms);
        let detail = format!("{more} more events follow; trace.csv has all of them");
        events.push(report::TraceEvent { time_ms, kind: report::TraceEventKind::Other, detail });
    }
    let size = outcome.map_or(f64::NAN, |outcome| outcome.size.get() as f64);
    let fct = record.and_then(|r| Some(r.completed?.since(r.started?).as_millis()));
    let ideal = outcome.map(|outcome| outcome.ideal_fct.as_millis());
    let sentence = match (fct, ideal) {
        (Some(fct), Some(ideal)) => format!(
            "{} moved {} over {} in {fct:.1} ms, {:.2} times the physical limit of {ideal:.1} ms.",
            plan.schemes[cell.scheme].text,
            plan.carried(cell),
            plan.links[cell.link].text,
            fct / ideal
        ),
        _ => "The transfer did not finish.".to_owned(),
    };
    report::TraceReport {
        title: String::new(),
        answer: vec![sentence],
        link: link_input(plan, &plan.links[cell.link]),
        size: plan.carried(cell),
        scheme: plan.schemes[cell.scheme].text.clone(),
        avoidance: plan.avoidance_of(cell).text.clone(),
        transport: plan.transport.text.clone(),
        competitor: plan.competitors[cell.competitor].text.clone(),
        rep: Some(rep),
        fct_ms: fct,
        ideal_fct_ms: ideal,
        dropped_packets: record.map(|r| r.dropped),
        retransmitted_bytes: record.map(|r| r.retransmitted),
        inflation: record.map(|r| r.retransmitted as f64 / size),
        share: outcome.and_then(|outcome| outcome.share),
        exit_ms: record.and_then(|r| r.exit).map(|exit| ms(exit.time)),
        exit_reason: record.and_then(|r| r.exit).map(|exit| exit.reason.to_string()),
        max_queue_delay_ms: outcome.and_then(|outcome| outcome.max_queue_delay).map(Duration::as_millis),
        causes: seen.explanations.first().and_then(|first| first.as_ref()).map(report::Causes::from),
        events,
        sent: marks(|flow| &flow.sent),
        retransmitted: marks(|flow| &flow.retransmitted),
        dropped: marks(|flow| &flow.dropped),
        acked: line(|flow| &flow.acked),
        cwnd: line(|flow| &flow.cwnd),
        in_flight: line(|flow| &flow.in_flight),
        ssthresh: line(|flow| &flow.ssthresh),
        pacing_rate_mbit: line(|flow| &flow.pacing_rate_mbit),
        queue_packets: seen.series.as_ref().map_or(Vec::new(), |seen| seen.points(seen.series.queue.points())),
        other_drops: seen.series.as_ref().map_or(Vec::new(), |seen| seen.other_drops(0)),
        method,
    }
}

/// What a sender does, in words.
fn in_words(event: &Event) -> Option<(report::TraceEventKind, String)> {
    use report::TraceEventKind as Kind;
    Some(match *event {
        Event::Decided(decision) => describe(&decision),
        Event::Hint { told, used } => (Kind::Other, describe_hint(told, used)),
        Event::Advised { rate } => (Kind::Other, format!("the path advises {rate}")),
        Event::FlowControl { blocked, limit } => {
            let text = if blocked { "stops the sender" } else { "lets it go on" };
            (Kind::Other, format!("flow control {text} at byte {limit}"))
        }
        Event::TimerFired => (Kind::Rto, "a retransmission or probe timer fired".to_owned()),
        _ => return None,
    })
}

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of an IPv4 header without options.
const IPV4: u32 = 20;
/// Bytes of a UDP header.
const UDP: u32 = 8;
/// Bytes of a TCP header without options.
const TCP: u32 = 20;

/// Bytes below TCP or QUIC in a profile's wire sizes: IPv4, for QUIC UDP as well, and Ethernet if the profile counts it.
fn lower_headers(profile: &Profile) -> u32 {
    let (least, below) = match profile.protocol {
        Protocol::Tcp => (IPV4, profile.overhead.saturating_sub(TCP)),
        Protocol::Quic => (IPV4 + UDP, profile.overhead.saturating_sub(profile.overhead_in_flight)),
    };
    if below >= least + ETHERNET { least + ETHERNET } else { least }
}

/// A client's hint in words.
fn describe_hint(told: Option<Rate>, used: Option<Rate>) -> String {
    match (told, used) {
        (None, _) => "the client sends a hint that cannot be read".into(),
        (Some(told), None) => format!("the client hints {told}; the policy uses none of it"),
        (Some(told), Some(used)) if told == used => format!("the client hints {told}"),
        (Some(told), Some(used)) => format!("the client hints {told}; the policy lets {used} be used"),
    }
}

/// A decision in words.
fn describe(decision: &Decision) -> (report::TraceEventKind, String) {
    use report::TraceEventKind as Kind;
    match decision {
        Decision::Launched { cwnd, pacing_rate } => {
            let pacing = pacing_rate.map_or(String::new(), |rate| format!("; paced at {:.1} Mbit/s", rate.as_mbit()));
            (Kind::Launch, format!("cwnd {} bytes{pacing}", cwnd.get()))
        }
        Decision::HintCapped { hinted, used } => {
            (Kind::Capped, format!("the hint of {hinted} is outside the bounds; {used} is used"))
        }
        Decision::AdviceCapped { advised, before, after } => {
            let windows = format!("from {} to {} bytes", before.get(), after.get());
            (Kind::Capped, format!("{advised} is advised: the window of the launch is capped {windows}"))
        }
        Decision::PhaseEntered { phase, trigger } => (Kind::Other, format!("{phase} ({trigger})")),
        Decision::StartupExited { reason, cwnd, ssthresh } => {
            (Kind::Exit, format!("startup ends ({reason}): cwnd {} and ssthresh {} bytes", cwnd.get(), ssthresh.get()))
        }
        Decision::WindowReduced { before, after } => {
            (Kind::Loss, format!("cwnd from {} to {} bytes", before.get(), after.get()))
        }
        Decision::ReductionUndone { before, after } => {
            (Kind::Other, format!("losses were spurious: cwnd {} to {} bytes", before.get(), after.get()))
        }
        Decision::WindowValidated { before, after, .. } => {
            (Kind::Other, format!("window validation: cwnd {} to {} bytes", before.get(), after.get()))
        }
        Decision::Recovered { cwnd } => (Kind::Other, format!("recovery ends: cwnd {} bytes", cwnd.get())),
        Decision::Collapsed { before, ssthresh } => {
            (Kind::Rto, format!("cwnd of {} bytes collapses; ssthresh {} bytes", before.get(), ssthresh.get()))
        }
    }
}
