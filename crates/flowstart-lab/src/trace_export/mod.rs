//! One traced run as a page and as files for other tools.
//!
//! | Looking for | Where |
//! |---|---|
//! | the page | [`TracedRun::page`] |
//! | a table of events | [`TracedRun::write_csv`] |
//! | a log for QUIC tools | [`TracedRun::write_qlog`] |
//! | a capture for packet tools | [`TracedRun::write_pcapng`] |

use flowstart_core::event::Decision;
use flowstart_core::units::Rate;
use flowstart_sim::trace::Event;
use flowstart_sim::transport::profile::{Profile, Protocol};

use crate::explain::explain;
use crate::plan::{Cell, Plan};
use crate::report;
use crate::report_input::{Series, link_input};
use crate::run::{self, Finished};

mod csv;
mod decisions;
mod pcapng;
mod qlog;
#[cfg(all(test, feature = "quic"))]
mod quic_tests;
#[cfg(test)]
mod quick_start_tests;
#[cfg(test)]
mod tests;

pub use decisions::decision_events;

/// A traced run.
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

impl TracedRun {
    /// Milliseconds from the newcomers' start.
    fn ms(&self, time: flowstart_core::time::Timestamp) -> f64 {
        (time.as_secs() - self.finished.start.as_secs()) * 1000.0
    }

    /// Place of a flow among the measured ones.
    fn place(&self, flow: u32) -> Option<usize> {
        self.finished.flows.iter().position(|measured| *measured == flow)
    }

    /// What was run, in a sentence.
    fn title(&self, plan: &Plan, cell: &Cell) -> String {
        let transport = &plan.transport.text;
        let (scheme, size) = (&plan.schemes[cell.scheme].text, plan.carried(cell));
        let (link, aqm) = (&plan.links[cell.link].text, &plan.aqms[cell.aqm].text);
        let competitor = &plan.competitors[cell.competitor].text;
        let avoidance = &plan.avoidance_of(cell).text;
        format!("{scheme} with {avoidance} on {transport}: {size} over {link}, queue {aqm}, competitor {competitor}")
    }

    /// The page of the run.
    pub fn page(&self, plan: &Plan, cell: &Cell, rep: u32, method: report::Method) -> report::TraceReport {
        let series = Series::read(&self.finished);
        let measured = self.finished.flows.first().copied();
        let outcome = self.outcomes.first();
        let record = outcome.map(|outcome| &outcome.record);
        let mut events = Vec::new();
        if let Some(trace) = &self.finished.world.network.trace {
            for entry in trace.entries.iter().filter(|entry| Some(entry.flow) == measured) {
                let (kind, detail) = match entry.event {
                    Event::Decided(decision) => describe(&decision),
                    Event::Hint { told, used } => (report::TraceEventKind::Other, describe_hint(told, used)),
                    Event::Advised { rate } => (report::TraceEventKind::Other, format!("the path advises {rate}")),
                    Event::FlowControl { blocked, limit } => {
                        let text = if blocked { "stops the sender" } else { "lets it go on" };
                        (report::TraceEventKind::Other, format!("flow control {text} at byte {limit}"))
                    }
                    Event::TimerFired => {
                        (report::TraceEventKind::Rto, "a retransmission or probe timer fired".to_owned())
                    }
                    _ => continue,
                };
                events.push(report::TraceEvent { time_ms: self.ms(entry.time), kind, detail });
            }
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
            exit_ms: record.and_then(|r| r.exit).map(|exit| self.ms(exit.time)),
            exit_reason: record.and_then(|r| r.exit).map(|exit| exit.reason.to_string()),
            max_queue_delay_ms: outcome
                .and_then(|outcome| outcome.max_queue_delay)
                .map(flowstart_core::time::Duration::as_millis),
            causes: explain(plan, cell, self).as_ref().map(report::Causes::from),
            events,
            sent: series.sent,
            retransmitted: series.retransmitted,
            dropped: series.dropped,
            acked: series.acked,
            cwnd: series.cwnd,
            in_flight: series.in_flight,
            ssthresh: series.ssthresh,
            pacing_rate_mbit: series.pacing_rate_mbit,
            queue_packets: series.queue,
            other_drops: series.other_drops,
            method,
        }
    }
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
