//! A cell in the report's form.

use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_report as report;

use super::web;
use crate::results::cell_summary::CellSummary;
use crate::results::felt::felt;
use crate::results::flows::Row;
use crate::results::summary::values;
use crate::spec::application::Felt;
use crate::spec::competitor::Competitor;
use crate::study::ideal::{ideal_fct, quick_start_rounds, slow_start_fct};
use crate::study::plan::{Cell, Plan};

/// Whether measured flows belong to web sessions.
pub(super) fn has_web(plan: &Plan) -> bool {
    plan.sizes.iter().any(|size| size.value.sessions().is_some())
}

/// Number of measured flows of a cell; for web sessions the number of sessions, each with one connection or more at a
/// time.
pub(super) fn measured_flows(plan: &Plan, cell: &Cell) -> u32 {
    plan.sizes[cell.size].value.sessions().map_or(plan.flow_count(cell), |web| web.sessions)
}

/// The number of other flows in an equal split.
fn other_flows(competitor: &Competitor) -> Option<u32> {
    match competitor {
        Competitor::Bulk { count, .. } => Some(*count),
        Competitor::None
        | Competitor::Pattern { .. }
        | Competitor::Short { .. }
        | Competitor::Web { .. }
        | Competitor::Requests(_) => None,
    }
}

pub(super) fn estimate(metric: &flowstart_statistics::Metric) -> report::Estimate {
    report::Estimate { mean: metric.mean, ci95: metric.ci95 }
}

/// What the time of a cell is that users notice.
fn time(plan: &Plan, cell: &Cell) -> report::Time {
    match plan.sizes[cell.size].value.objects().map(|application| application.felt()) {
        None | Some(Felt::Completion) => report::Time::Completion,
        Some(Felt::Objects) => report::Time::Chunk,
        Some(Felt::Start) => report::Time::FirstPicture,
    }
}

pub(super) fn cell_input(plan: &Plan, cell: &Cell, summary: &CellSummary, rows: &[&Row]) -> report::Cell {
    let metric = |name: &str| summary.metrics.get(name).map(estimate).unwrap_or_default();
    let (name, felt) = felt(plan, cell);
    let versus = summary.vs_baseline.as_ref();
    let link = &plan.links[cell.link];
    report::Cell {
        id: summary.id.clone(),
        link: summary.link.clone(),
        aqm: summary.aqm.clone(),
        size: plan.carried(cell),
        size_bytes: summary.size_bytes,
        scheme: summary.scheme.clone(),
        avoidance: summary.avoidance.clone(),
        competitor: summary.competitor.clone(),
        transport: match (plan.worlds.len() > 1 || !plan.is_simulated(cell), plan.worlds[cell.world].name()) {
            (true, world) => format!("{}, {world}", summary.transport),
            (false, _) => summary.transport.clone(),
        },
        arrival: summary.otherwise.get("arrival").cloned().unwrap_or_default(),
        load: plan.arrivals[cell.arrival].value.load().map(|load| load.as_mbit() / link.rate.as_mbit()),
        model_speedup: model_speedup(plan, cell),
        rounds_speedup: rounds_speedup(plan, cell),
        baseline: versus.map_or_else(String::new, |versus| versus.baseline.clone()),
        is_baseline: versus.is_none(),
        n: summary.n as u32,
        failed: summary.failed as u32,
        // The limit is that of the flow.
        ideal_fct_ms: Some(summary.ideal_fct_ms).filter(|_| name == "fct_ms"),
        time: time(plan, cell),
        fct_ms: metric(name),
        speedup: versus.map_or_else(Default::default, |v| report::Estimate { mean: v.speedup, ci95: v.speedup_ci }),
        verdict: versus.and_then(|v| v.verdict),
        dropped_delta: versus
            .map_or_else(Default::default, |v| report::Estimate { mean: v.dropped_delta, ci95: v.dropped_delta_ci95 }),
        max_queue_delay_ms: metric("max_queue_delay_ms"),
        dropped_packets: metric("dropped_packets"),
        lost: estimate(&summary.lost_share),
        inflation: metric("inflation"),
        share: if summary.others.is_some() { metric("share") } else { report::Estimate::default() },
        // Several measured flows share with each other, too.
        equal_share: other_flows(plan.competitors[cell.competitor].on(cell.transport))
            .filter(|_| plan.flow_count(cell) * plan.connections_of(cell) == 1)
            .map(|others| 1.0 / f64::from(others + 1)),
        goodput_lost_mbit: summary
            .others
            .as_ref()
            .filter(|others| others.extra_fct_ms.is_none())
            .map_or_else(Default::default, |others| estimate(&others.goodput_lost_mbit)),
        others_dropped: summary
            .others
            .as_ref()
            .map_or_else(Default::default, |others| estimate(&others.dropped_packets)),
        extra_fct_ms: summary
            .others
            .as_ref()
            .and_then(|others| others.extra_fct_ms.as_ref())
            .map_or_else(Default::default, estimate),
        media: plan.competitors[cell.competitor].on(cell.transport).media().map(|_| report::Media {
            delay_p50_ms: metric("media_delay_p50_ms"),
            delay_p95_ms: metric("media_delay_p95_ms"),
            delay_p99_ms: metric("media_delay_p99_ms"),
            delay_max_ms: metric("media_delay_max_ms"),
            loss: metric("media_loss"),
            late: metric("media_late"),
            mos: metric("media_mos"),
            harm_mos: metric("media_harm_mos"),
            worst_1s_mos: metric("media_worst_1s_mos"),
            worst_5s_mos: metric("media_worst_5s_mos"),
            harm_ms: metric("media_harm_ms"),
        }),
        call: plan.competitors[cell.competitor].on(cell.transport).call().map(|_| report::Call {
            delay_p50_ms: metric("call_delay_p50_ms"),
            delay_p95_ms: metric("call_delay_p95_ms"),
            delay_p99_ms: metric("call_delay_p99_ms"),
            delay_max_ms: metric("call_delay_max_ms"),
            lost: metric("call_lost"),
            late: metric("call_late"),
            not_shown: metric("call_not_shown"),
            frozen: metric("call_frozen"),
            longest_freeze_ms: metric("call_longest_freeze_ms"),
            harm_ms: metric("call_harm_ms"),
        }),
        causes: None,
        replay_rep: None,
        samples: report::Samples {
            fct_ms: values(rows, felt),
            share: if summary.others.is_some() { values(rows, |row| row.share) } else { Vec::new() },
            dropped_packets: values(rows, |row| Some(row.dropped_packets as f64)),
            max_queue_delay_ms: values(rows, |row| row.max_queue_delay_ms),
            media_delay_ms: Vec::new(),
            size_fct: web::connections(plan, cell, rows),
        },
        curves: Vec::new(),
    }
}

/// The size of a transfer that closed forms cover: one flow alone with one request over one connection, as the
/// baseline's, on a steady link.
fn alone(plan: &Plan, cell: &Cell) -> Option<Bytes> {
    let size = &plan.sizes[cell.size].value;
    let alone = *plan.competitors[cell.competitor].on(cell.transport) == Competitor::None && plan.flow_count(cell) == 1;
    let steady = plan.links[cell.link].is_steady() && plan.mobility(cell).is_none();
    let plain = [*cell, Cell { scheme: 0, ..*cell }].iter().all(|cell| plan.is_one_connection(cell));
    let once = size.objects().is_none() && size.sessions().is_none() && plain;
    (alone && steady && once).then(|| size.mean_bytes())
}

/// Initial window of the baseline in packets, if it is slow start that doubles the window in each round.
fn baseline_window(plan: &Plan, cell: &Cell) -> Option<u64> {
    let StartupConfig::SlowStart(config) = plan.schemes[0].on(cell.transport) else { return None };
    config.is_classic().then(|| config.iw.map_or(plan.transport_of(cell).profile.initial_window, u64::from))
}

/// Slow start's closed form over the physical limit.
fn model_speedup(plan: &Plan, cell: &Cell) -> Option<f64> {
    let (size, window) = (alone(plan, cell)?, baseline_window(plan, cell)?);
    let (link, profile) = (&plan.links[cell.link], &plan.transport_of(cell).profile);
    let limit = ideal_fct(link, profile, size, Timestamp::ZERO);
    link.is_plain().then(|| slow_start_fct(link, profile, size, window).as_secs() / limit.as_secs())
}

/// Quick-Start's speed-up over slow start by round trips.
fn rounds_speedup(plan: &Plan, cell: &Cell) -> Option<f64> {
    let config = plan.schemes[cell.scheme].on(cell.transport).request()?;
    let (size, window) = (alone(plan, cell)?, baseline_window(plan, cell)?);
    let [without, with] =
        quick_start_rounds(&plan.links[cell.link], &plan.transport_of(cell).profile, size, window, config)?;
    Some(without / with)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    #[test]
    fn closed_forms_are_of_one_plain_connection() {
        let covered = |link: &str, schemes: &str| {
            let text = format!(
                "link = [\"{link}\"]\nsize = [\"70KB\"]\nscheme = [{schemes}]\ntransport = \"model-tcp:profile=tcp-linux\""
            );
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            plan.cells().iter().map(|cell| model_speedup(&plan, cell).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(covered("geo", "\"slow-start\", \"suss\""), [true, true]);
        assert_eq!(covered("geo,pep=integrated", "\"slow-start\", \"suss\""), [false, false]);
        assert_eq!(covered("geo", "\"slow-start:connections=6\", \"suss\""), [false, false]);
        assert_eq!(covered("geo", "\"slow-start\", \"slow-start:connections=6\""), [true, false]);
        for link in ["geo,rtt_steps=20ms/15s", "geo,hops=2", "geo,xcp=on", "geo,policer=100KB", "geo,burst=100KB"] {
            assert_eq!(covered(link, "\"slow-start\", \"suss\""), [false, false], "{link}");
        }
        for scheme in ["slow-start:abc_limit=1", "slow-start:spread=true"] {
            assert_eq!(covered("geo", &format!("\"{scheme}\", \"suss\"")), [false, false], "{scheme}");
        }
    }

    #[test]
    fn the_time_of_a_video_is_that_of_its_first_picture() {
        let of = |application: &str| {
            let text = format!("link = [\"lte\"]\n{application}\nscheme = [\"slow-start\"]");
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            time(&plan, &plan.cells()[0])
        };
        assert_eq!(of("application = [\"video:count=15\"]"), report::Time::FirstPicture);
        assert_eq!(of("size = [\"70KB\"]"), report::Time::Completion);
    }
}
