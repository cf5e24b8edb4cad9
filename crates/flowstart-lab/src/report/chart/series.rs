//! One run as time series: throughput, window, queue.

use super::panel::{TIME, queue_legend, queue_panel, rule_at, stack_document, time_axis, window_legend, window_panel};
use super::table::Table;
use super::{Chart, LegendItem, MEASURED, NEUTRAL, OTHER, item};
use crate::report::ExampleRun;
use crate::report::number::finite;
use crate::report::reduce::rolling_mean;
use serde_json::json;

/// Points per line of a time series.
const LINE_POINTS: usize = 1200;

/// Highest values over the runs that share axes.
#[derive(Clone, Copy, Default)]
pub(in crate::report) struct Extent {
    from: f64,
    to: f64,
    rate: f64,
    window: f64,
    queue: f64,
}

impl Extent {
    /// The extent of these runs together.
    pub(in crate::report) fn of<'a>(runs: impl Iterator<Item = &'a ExampleRun>) -> Self {
        let top = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).filter(|v| v.is_finite()).fold(0.0, f64::max);
        runs.fold(Self::default(), |all, run| {
            let throughput = run.flows.iter().flat_map(|f| short_mean(run, f)).map(|p| p[1]).fold(0.0, f64::max);
            Self {
                from: all.from.min(finite(Some(run.from_ms)).unwrap_or(0.0)),
                to: all.to.max(finite(Some(run.to_ms)).unwrap_or(0.0)),
                rate: all.rate.max(finite(run.rate_mbit).unwrap_or(0.0)).max(throughput),
                window: all.window.max(top(&run.cwnd)).max(top(&run.in_flight)),
                queue: all.queue.max(top(&run.queue_packets)),
            }
        })
    }
}

fn short_mean(run: &ExampleRun, flow: &crate::report::RunFlow) -> Vec<[f64; 2]> {
    mean_of(run, flow, run.rtt_ms, 500)
}

/// Rolling mean of a flow. Nothing is known of other flows before the record begins, so their line starts one window later.
fn mean_of(run: &ExampleRun, flow: &crate::report::RunFlow, window: f64, samples: usize) -> Vec<[f64; 2]> {
    let from = if flow.measured { run.from_ms.max(0.0) } else { run.from_ms + window };
    rolling_mean(&flow.departures, window, from, run.to_ms, samples)
}

/// Throughput, then cwnd and bytes in flight, then the queue, over a common time axis.
pub(in crate::report) fn run(id: String, run: &ExampleRun, extent: Extent, replay: Option<String>) -> Chart {
    let time = |title: Option<&str>| time_axis(title, Some([extent.from / 1000.0, extent.to / 1000.0]));
    let mut throughput = Table::new(&["t", "v", "other", "flow", "wide"]);
    for (k, flow) in run.flows.iter().enumerate() {
        let other = f64::from(u8::from(!flow.measured));
        for (wide, window, samples) in [(0.0, run.rtt_ms, 500), (1.0, 1000.0, 300)] {
            for [t, v] in mean_of(run, flow, window, samples) {
                throughput.push(&[t / 1000.0, v, other, k as f64, wide]);
            }
        }
    }
    let line = |wide: u8, width: f64, opacity: f64| {
        json!({"transform": [{"filter": format!("datum.wide == {wide}")}],
            "mark": {"type": "line", "strokeWidth": width, "opacity": opacity, "clip": true},
            "encoding": {"x": time(None),
                "y": {"field": "v", "type": "quantitative", "title": "throughput (Mbit/s)",
                    "scale": {"domain": [0, (extent.rate * 1.08).max(0.001)], "nice": false}, "axis": {"tickCount": 5, "minExtent": 44, "maxExtent": 44}},
                "color": {"field": "other", "type": "nominal", "legend": null, "scale": {"domain": [0, 1], "range": [MEASURED, OTHER]}},
                "strokeDash": {"field": "other", "type": "nominal", "legend": null, "scale": {"domain": [0, 1], "range": [[1, 0], [6, 3]]}},
                "detail": {"field": "flow"}}})
    };
    let mut layers = vec![line(0, 1.0, 0.75), line(1, 2.8, 1.0)];
    if let Some(rate) = finite(run.rate_mbit) {
        layers.push(rule_at(rate));
    }
    let mut panels = vec![json!({"height": 170, "data": throughput.data(), "layer": layers})];
    panels.push(window_panel(&run.cwnd, &run.in_flight, &[], extent.window, LINE_POINTS, 110, &time(None)));
    panels.push(queue_panel(
        &run.queue_packets,
        &run.drops,
        &run.other_drops,
        extent.queue,
        LINE_POINTS,
        &time(Some(TIME)),
    ));
    let title = match finite(run.fct_ms) {
        Some(fct) => {
            format!("{}: {} (FCT {} ms)", run.scheme, run.label, crate::report::number::Format::Plain.show(Some(fct)))
        }
        None => format!("{}: {}", run.scheme, run.label),
    };
    let aria = format!(
        "Time series of {} on {} with {}: throughput of the flows, cwnd and bytes in flight, queue and drops",
        run.size, run.link, run.scheme
    );
    Chart {
        id,
        title: title.clone(),
        sentence: String::new(),
        aria,
        mode: "stack",
        columns: 1,
        renderer: "svg",
        legend: Vec::new(),
        rows: Vec::new(),
        replay,
        zoomable: true,
        spec: stack_document(&title, panels),
        json: String::new(),
    }
}

/// Legend shared by all time series.
pub(in crate::report) fn run_legend(others: bool) -> Vec<LegendItem> {
    let mut legend = vec![item("measured flow", MEASURED, &[1, 0], 2.8)];
    if others {
        legend.push(item("other flow", OTHER, &[6, 3], 2.8));
    }
    legend.extend([
        item("thick: mean of the last 1 s, thin: of the last RTT", NEUTRAL, &[1, 0], 1.0),
        item("rate of the link", NEUTRAL, &[2, 3], 1.0),
    ]);
    legend.extend(window_legend(false));
    legend.extend(queue_legend(others));
    legend
}
