//! Time series show one run: throughput, window, queue.

use super::document::Chart;
use super::legend::{LegendItem, item, mark_item};
use super::panel::{
    TIME, held, queue_legend, queue_panel, rule_at, stack_document, time_axis, window_legend, window_panel,
};
use super::style::{MEASURED, NEUTRAL, OTHER};
use super::table::Table;
use crate::ExampleRun;
use crate::number::finite;
use crate::reduce::rolling_mean;
use serde_json::json;

/// Points per line of a time series.
const LINE_POINTS: usize = 1200;

/// A run shorter than this, in milliseconds, has no mean over a second that could be told from its short mean.
const LONG: f64 = 4000.0;

/// Common times and highest values of the runs that share axes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extent {
    from: f64,
    to: f64,
    rate: f64,
    window: f64,
    /// The highest window of the run whose windows are the smallest.
    smallest: f64,
    queue: f64,
}

/// The largest window over the smallest from which on small windows would lie on the axis of a common scale.
const APART: f64 = 4.0;

impl Extent {
    /// The extent of these runs together.
    pub(crate) fn of<'a>(runs: impl Iterator<Item = &'a ExampleRun>) -> Self {
        let top = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let start = Self { from: f64::NEG_INFINITY, smallest: f64::INFINITY, ..Self::default() };
        let all = runs.fold(start, |all, run| {
            let throughput = run.flows.iter().flat_map(|f| short_mean(run, f)).map(|p| p[1]).fold(0.0, f64::max);
            Self {
                // The time that all runs have recorded, so that their panels begin together.
                from: all.from.max(finite(Some(run.from_ms)).unwrap_or(0.0).min(0.0)),
                to: all.to.max(finite(Some(run.to_ms)).unwrap_or(0.0)),
                rate: all.rate.max(finite(run.rate_mbit).unwrap_or(0.0)).max(throughput),
                window: all.window.max(highest_window(run)),
                smallest: all.smallest.min(highest_window(run)),
                queue: all.queue.max(top(&run.queue_packets)),
            }
        });
        // What was before the start is there to compare with; most of the room belongs to the run.
        let from = if all.from.is_finite() { all.from.max(-0.3 * all.to) } else { 0.0 };
        Self { from, ..all }
    }

    /// Whether each run has its own scale of windows.
    fn apart(&self) -> bool {
        self.window > self.smallest * APART
    }

    /// Whether the runs are long enough for two lines per flow.
    fn long(&self) -> bool {
        self.to >= LONG
    }
}

fn highest_window(run: &ExampleRun) -> f64 {
    let values = [&run.cwnd, &run.in_flight].into_iter().flatten().map(|point| point[1]);
    values.filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn short_mean(run: &ExampleRun, flow: &crate::RunFlow) -> Vec<[f64; 2]> {
    mean_of(run, flow, run.rtt_ms, 500)
}

/// Rolling mean of a flow. Nothing is known of other flows before the record begins. A mean over less than an RTT would
/// only show single packets, so their line starts one RTT later.
fn mean_of(run: &ExampleRun, flow: &crate::RunFlow, window: f64, samples: usize) -> Vec<[f64; 2]> {
    let (known, from) =
        if flow.measured { (f64::NEG_INFINITY, run.from_ms.max(0.0)) } else { (run.from_ms, run.from_ms + run.rtt_ms) };
    rolling_mean(&flow.departures, flow.bin_ms, window, known, from, run.to_ms, samples)
}

/// Throughput, then cwnd and bytes in flight, then the queue, over a common time axis.
pub(crate) fn run(id: String, run: &ExampleRun, extent: Extent, replay: Option<String>) -> Chart {
    let time = |title: Option<&str>| time_axis(title, Some([extent.from / 1000.0, extent.to / 1000.0]));
    let mut throughput = Table::new(&["t", "v", "other", "flow", "wide"]);
    for (k, flow) in run.flows.iter().enumerate() {
        let other = f64::from(u8::from(!flow.measured));
        for (wide, window, samples) in [(0.0, run.rtt_ms, 500), (1.0, 1000.0, 300)] {
            if wide > 0.0 && !extent.long() {
                continue;
            }
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
                    "scale": {"domain": [0, (extent.rate * 1.08).max(0.001)], "nice": false},
                    "axis": {"tickCount": 5, "minExtent": 44, "maxExtent": 44}},
                "color": {"field": "other", "type": "nominal", "legend": null,
                    "scale": {"domain": [0, 1], "range": [MEASURED, OTHER]}},
                "strokeDash": {"field": "other", "type": "nominal", "legend": null,
                    "scale": {"domain": [0, 1], "range": [[1, 0], [6, 3]]}},
                "detail": {"field": "flow"}}})
    };
    let mut layers = if extent.long() { vec![line(0, 1.0, 0.75), line(1, 2.8, 1.0)] } else { vec![line(0, 1.8, 1.0)] };
    if let Some(rate) = finite(run.rate_mbit) {
        layers.push(rule_at(rate));
    }
    let mut panels = vec![json!({"height": 88, "data": throughput.data(), "layer": layers})];
    let whole = |points: &[[f64; 2]]| held(points, run.to_ms);
    let (cwnd, in_flight) = (whole(&run.cwnd), whole(&run.in_flight));
    let highest = if extent.apart() { highest_window(run) } else { extent.window };
    panels.push(window_panel(&cwnd, &in_flight, &[], highest, LINE_POINTS, 60, &time(None)));
    // A queue that was recorded later than the panel begins was what it is at its first change, or empty.
    let mut queue = whole(&run.queue_packets);
    if let Some(&[first, packets]) = queue.first().filter(|point| point[0] > extent.from) {
        queue.insert(0, [extent.from.min(first), if packets > 1.0 { packets } else { 0.0 }]);
    }
    let mut queue = queue_panel(&queue, &run.drops, &run.other_drops, extent.queue, LINE_POINTS, &time(Some(TIME)));
    queue["height"] = json!(60);
    panels.push(queue);
    if extent.from < 0.0 {
        let start = json!({"data": {"values": [{"t": 0}]},
            "mark": {"type": "rule", "color": NEUTRAL, "strokeWidth": 1, "clip": true},
            "encoding": {"x": {"field": "t", "type": "quantitative"}}});
        for panel in &mut panels {
            if let Some(layers) = panel["layer"].as_array_mut() {
                layers.push(start.clone());
            }
        }
    }
    let title = match finite(run.fct_ms) {
        Some(fct) => {
            format!("{}: {} (FCT {} ms)", run.scheme, run.label, crate::number::Format::Plain.show(Some(fct)))
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
        aria,
        mode: "stack",
        replay,
        spec: stack_document(&title, panels),
        ..Chart::default()
    }
}

/// Legend shared by all time series.
pub(crate) fn run_legend(others: bool, extent: Extent) -> Vec<LegendItem> {
    let width = if extent.long() { 2.8 } else { 1.8 };
    let mut legend = vec![item("throughput of the measured flow", MEASURED, &[1, 0], width)];
    if others {
        legend.push(item("of another flow", OTHER, &[6, 3], width));
    }
    if extent.long() {
        legend.push(item("thick: mean of the last second, thin: of the last RTT", NEUTRAL, &[1, 0], 1.0));
    }
    legend.push(item("rate of the link, or its mean", NEUTRAL, &[2, 3], 1.0));
    if extent.from < 0.0 {
        legend.push(mark_item("start of the measured flow", NEUTRAL, "upright"));
    }
    let mut windows = window_legend(false);
    if extent.apart() {
        windows.iter_mut().for_each(|entry| entry.label.push_str(" (each chart has its own scale)"));
    }
    legend.extend(windows);
    legend.extend(queue_legend(others));
    legend
}
