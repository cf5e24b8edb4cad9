//! The contents of the page of one run.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::variable::Owner;
use flowstart_report as report;
use flowstart_sim::observe::trace::Event;

use super::link_input;
use crate::run::outcome::FlowOutcome;
use crate::study::plan::{Cell, Plan};
use crate::trace::decisions::{describe, describe_hint};
use crate::trace::explain::Explanation;
use crate::trace::export::Exported;
use crate::trace::observe::{FlowSeries, Line, Marks, Seen, SeenSeries, VariableSeries};

/// The page of a run with these observations.
pub fn trace(
    plan: &Plan,
    cell: &Cell,
    rep: u32,
    outcomes: &[FlowOutcome],
    seen: &Seen,
    method: report::Method,
) -> report::TraceReport {
    let outcome = outcomes.first();
    let record = outcome.map(|outcome| &outcome.record);
    let flow = seen.series.as_ref().and_then(|series| Some((series, series.series.flows.first()?)));
    let ms = |time| flow.map_or(f64::NAN, |(series, _)| series.ms(time));
    let line = |of: fn(&FlowSeries) -> &Line| flow.map_or(Vec::new(), |(seen, flow)| seen.points(of(flow).points()));
    let marks = |of: fn(&FlowSeries) -> &Marks| flow.map_or(Vec::new(), |(seen, flow)| seen.points(of(flow).points()));
    let mut events: Vec<report::TraceEvent> = flow.map_or(Vec::new(), |(_, flow)| {
        let told = flow.notable.chunk_by(|(_, a), (_, b)| is_of_flow_control(a) && is_of_flow_control(b));
        told.flat_map(|events| told_together(events, ms)).collect()
    });
    if let Some((_, flow)) = flow
        && let Some(more) = flow.notable_count.checked_sub(flow.notable.len() as u64).filter(|more| *more > 0)
    {
        let time_ms = events.last().map_or(0.0, |last| last.time_ms);
        let detail = format!("{more} more events follow; trace.csv has all of them");
        events.push(report::TraceEvent { time_ms, kind: report::TraceEventKind::Other, detail });
    }
    let size = outcome.map_or(f64::NAN, |outcome| outcome.size.get() as f64);
    let fct = record.and_then(|r| Some(r.completed?.since(r.started?).as_millis_f64()));
    let ideal = outcome.map(|outcome| outcome.ideal_fct.as_millis_f64());
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
    let held = flow.and_then(|(series, flow)| held_back(&flow.notable, |time| series.ms(time), fct?));
    report::TraceReport {
        title: String::new(),
        answer: std::iter::once(sentence).chain(held).collect(),
        link: link_input(plan, &plan.links[cell.link]),
        size: plan.carried(cell),
        scheme: plan.schemes[cell.scheme].text.clone(),
        avoidance: plan.avoidance_of(cell).text.clone(),
        transport: plan.transport_of(cell).text.clone(),
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
        max_queue_delay_ms: outcome.and_then(|outcome| outcome.max_queue_delay).map(Duration::as_millis_f64),
        causes: seen.explanations.first().and_then(|first| first.as_ref()).map(Explanation::causes),
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
        variables: flow.map_or(Vec::new(), |(series, flow)| {
            let exit = record.and_then(|r| r.exit).map(|exit| ms(exit.time));
            flow.variables.iter().map(|variable| in_the_report(plan, cell, variable, series, exit)).collect()
        }),
        other_drops: seen.series.as_ref().map_or(Vec::new(), |seen| seen.other_drops(0)),
        method,
    }
}

/// Part of the completion time from which on it is said that flow control stopped the sender.
const NOTABLE: f64 = 0.05;

/// A sentence about a sender that the receiver's window stopped for long, whether or not the link ran out of packets:
/// such a run says little about the scheme.
fn held_back(events: &[(Timestamp, Event)], ms: impl Fn(Timestamp) -> f64, fct: f64) -> Option<String> {
    let (mut since, mut held) = (None, 0.0);
    for (time, event) in events {
        if let Event::FlowControl { blocked, .. } = event {
            held += since.take().map_or(0.0, |since| ms(*time) - since);
            since = blocked.then(|| ms(*time));
        }
    }
    held += since.map_or(0.0, |since| (fct - since).max(0.0));
    (held > fct * NOTABLE).then(|| {
        format!("The receiver's window (flow control), not the congestion window, stopped the sender for {held:.0} ms.")
    })
}

/// An inner variable with the name of its algorithm, which is in charge until startup ends if it is the scheme.
fn in_the_report(
    plan: &Plan,
    cell: &Cell,
    variable: &VariableSeries,
    seen: &SeenSeries,
    exit: Option<f64>,
) -> report::TraceVariable {
    let VariableSeries { owner, name, unit, line } = variable;
    let (algorithm, until_ms) = match owner {
        Owner::Startup => (plan.schemes[cell.scheme].on(cell.transport).name(), exit),
        Owner::Avoidance => (plan.avoidance_of(cell).value.name(), None),
    };
    report::TraceVariable {
        algorithm: algorithm.to_owned(),
        name: (*name).to_owned(),
        unit: unit.name().to_owned(),
        points: seen.points(line.points()),
        until_ms,
    }
}

/// The page of runs of the same setting and repetition, a scheme each.
pub fn overlay(
    plan: &Plan,
    cells: &[Cell],
    rep: u32,
    runs: &[Exported],
    method: report::Method,
) -> report::OverlayReport {
    let pages = cells
        .iter()
        .zip(runs)
        .map(|(cell, run)| trace(plan, cell, rep, &run.outcomes, &run.seen, report::Method::default()));
    let runs: Vec<report::TraceReport> = pages.collect();
    let mut finished: Vec<(&str, f64)> =
        runs.iter().filter_map(|run| Some((run.scheme.as_str(), run.fct_ms?))).collect();
    finished.sort_by(|a, b| a.1.total_cmp(&b.1));
    let each = |(scheme, fct): &(&str, f64)| format!("{scheme} took {fct:.1} ms");
    let mut answer = Vec::new();
    if let Some(((first, fct), rest)) = finished.split_first() {
        let carried = cells
            .first()
            .map_or(String::new(), |cell| format!("{} over {}", plan.carried(cell), plan.links[cell.link].text));
        let rest: Vec<String> = rest.iter().map(each).collect();
        let others = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
        answer.push(format!("{first} moved {carried} in {fct:.1} ms{others}."));
    }
    for run in runs.iter().filter(|run| run.fct_ms.is_none()) {
        answer.push(format!("The transfer with {} did not finish.", run.scheme));
    }
    for run in runs.iter().filter(|run| run.fct_ms.is_some()) {
        answer.extend(run.answer.iter().skip(1).map(|sentence| format!("{}: {sentence}", run.scheme)));
    }
    for run in runs.iter().filter(|run| run.fct_ms.is_some() && run.exit_reason.is_none()) {
        answer.push(format!("{} never left startup.", run.scheme));
    }
    for (place, run) in runs.iter().enumerate() {
        let same = |other: &&report::TraceReport| (&other.sent, &other.cwnd) == (&run.sent, &run.cwnd);
        if let Some(first) = runs[..place].iter().find(same) {
            answer.push(format!("{} sent exactly what {} sent.", run.scheme, first.scheme));
        }
    }
    answer.push("This is one repetition; flowstart compare says how sure a difference is.".to_owned());
    report::OverlayReport { title: String::new(), answer, runs, method }
}

/// Changes of flow control in a row that are told one by one: two stops.
const FEW: usize = 4;

fn is_of_flow_control(event: &Event) -> bool {
    matches!(event, Event::FlowControl { .. })
}

/// Events in words, which are one event, or some of flow control in a row. Many stops are told as one.
fn told_together(events: &[(Timestamp, Event)], ms: impl Fn(Timestamp) -> f64) -> Vec<report::TraceEvent> {
    if let [(first, _), .., (_, Event::FlowControl { limit, .. })] = events
        && events.len() > FEW
    {
        let is_stop = |event: &Event| matches!(event, Event::FlowControl { blocked: true, .. });
        let count = events.iter().filter(|(_, event)| is_stop(event)).count();
        let stopped = events.windows(2).filter(|pair| is_stop(&pair[0].1)).map(|pair| pair[1].0.since(pair[0].0));
        let stopped = stopped.fold(Duration::ZERO, |sum, one| sum + one).as_millis_f64();
        let detail =
            format!("flow control stops the sender {count} times up to byte {limit}, for {stopped:.1} ms in all");
        return vec![report::TraceEvent { time_ms: ms(*first), kind: report::TraceEventKind::Other, detail }];
    }
    let told = events.iter().filter_map(|(time, event)| {
        let (kind, detail) = in_words(event)?;
        Some(report::TraceEvent { time_ms: ms(*time), kind, detail })
    });
    told.collect()
}

/// A sender's behaviour, in words.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_stops_by_flow_control_are_told_as_one() {
        let at = |millis| Timestamp::ZERO + Duration::from_millis(millis);
        let told = |stops: u64| {
            let changes = (0..stops).flat_map(|place| {
                let change =
                    |offset, blocked| (at(10 * place + offset), Event::FlowControl { blocked, limit: 1000 + place });
                [change(0, true), change(4, false)]
            });
            let events: Vec<(Timestamp, Event)> = changes.collect();
            let told = told_together(&events, |time| time.since(Timestamp::ZERO).as_millis_f64());
            told.into_iter().map(|event| (event.time_ms, event.detail)).collect::<Vec<_>>()
        };
        assert_eq!(told(2).len(), 4);
        assert_eq!(told(2)[1], (4.0, "flow control lets it go on at byte 1000".to_owned()));
        let all = "flow control stops the sender 1000 times up to byte 1999, for 4000.0 ms in all";
        assert_eq!(told(1000), [(0.0, all.to_owned())]);
    }
}
