//! Runs of several schemes over the same time axes.

use super::document::Chart;
use super::legend::{LegendItem, item, mark_item};
use super::panel::{TIME, exit_rule, held, rule_at, run_end, stack_document, time_axis};
use super::style::{NEUTRAL, style};
use super::table::Table;
use super::variables::{line, shown};
use crate::number::finite;
use crate::reduce::{thin_line, thin_points};
use crate::{OverlayReport, TraceReport};
use serde_json::{Value, json};

/// Points per line.
const POINTS: usize = 6000;
/// Marks of dropped segments of each scheme.
const DROPS: usize = 150;

/// The series of a panel: `[time, value]`.
type Series = fn(&TraceReport) -> &Vec<[f64; 2]>;

/// A panel: its title, its height, its series, and the scale from their unit to the title's.
struct Shown {
    title: &'static str,
    height: u32,
    series: Series,
    scale: f64,
}

const PANELS: [Shown; 5] = [
    Shown { title: "acknowledged without a gap (KB)", height: 230, series: |run| &run.acked, scale: 1e-3 },
    Shown { title: "in flight (KB)", height: 130, series: |run| &run.in_flight, scale: 1e-3 },
    Shown { title: "cwnd (KB)", height: 130, series: |run| &run.cwnd, scale: 1e-3 },
    Shown { title: "pacing (Mbit/s)", height: 100, series: |run| &run.pacing_rate_mbit, scale: 1.0 },
    Shown { title: "queue (packets)", height: 110, series: |run| &run.queue_packets, scale: 1.0 },
];

/// The seconds that the time axes of these runs show; `None` if nothing was recorded.
pub(crate) fn domain(runs: &[TraceReport]) -> Option<[f64; 2]> {
    let times = || {
        let series = runs.iter().flat_map(|run| PANELS.iter().map(move |panel| (panel.series)(run)));
        series.flatten().map(|p| p[0]).filter(|t| t.is_finite())
    };
    let (first, last) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    Some([first.min(0.0).max(-0.05 * last) / 1000.0, (last + (last - first) * 0.02 + 1.0) / 1000.0])
}

/// The runs of a page, a line each in every panel.
pub(crate) fn overlay(report: &OverlayReport) -> Option<Chart> {
    let domain = domain(&report.runs)?;
    let signals: Vec<String> = (0..report.runs.len()).map(|place| format!("show_{place}")).collect();
    let used: Vec<&Shown> =
        PANELS.iter().filter(|panel| report.runs.iter().any(|run| !(panel.series)(run).is_empty())).collect();
    let mut panels = Vec::new();
    for (place, panel) in used.iter().enumerate() {
        let time = time_axis((place + 1 == used.len()).then_some(TIME), Some(domain));
        let rate = report.runs.first().and_then(|run| finite(run.link.rate_mbit)).filter(|_| place_of_rate(panel));
        let values = report.runs.iter().flat_map(|run| (panel.series)(run)).map(|p| p[1] * panel.scale);
        // Crosses stand in the first panel, ahead of what is acknowledged.
        let dropped = report.runs.iter().filter(|_| place == 0).flat_map(|run| &run.dropped).map(|p| p[1] / 1000.0);
        let highest = values.chain(rate).chain(dropped).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let y = json!({"field": "v", "type": "quantitative", "title": panel.title,
            "scale": {"domain": [0, (highest * 1.08).max(0.001)], "nice": false},
            "axis": {"tickCount": 5, "minExtent": 50, "maxExtent": 50}});
        let mut layers = Vec::new();
        for (run, (index, signal)) in report.runs.iter().zip(signals.iter().enumerate()) {
            let (colour, dash, _) = style(index);
            let points = (panel.series)(run);
            let mut table = Table::new(&["t", "v"]);
            for [t, v] in thin_line(&held(points, run_end(run)), POINTS) {
                table.push(&[t / 1000.0, v * panel.scale]);
            }
            layers.push(line(table, colour, dash, signal, &time, &y));
            if place == 0 {
                layers.extend(drops(run, colour, signal, &time, &y));
            }
            let down = (place == 0).then_some(2.0 + 14.0 * index as f64);
            layers.extend(exit_rule(run, domain, colour, down, Some(signal)));
        }
        layers.extend(rate.map(rule_at));
        panels.push(json!({"height": panel.height, "layer": layers}));
    }
    let mut spec = stack_document("Runs of several schemes over time", panels);
    spec["params"] = shown(&signals);
    let mut legend: Vec<LegendItem> = report
        .runs
        .iter()
        .zip(signals.iter().enumerate())
        .map(|(run, (index, signal))| {
            let (colour, dash, _) = style(index);
            LegendItem { signal: signal.clone(), ..item(&run.scheme, colour, dash, 2.0) }
        })
        .collect();
    if report.runs.iter().any(|run| !run.dropped.is_empty()) {
        legend.push(mark_item("segment dropped on the way, in its scheme's colour", NEUTRAL, "x"));
    }
    if used.iter().any(|panel| place_of_rate(panel)) {
        legend.push(item("rate of the link, or its mean", NEUTRAL, &[2, 3], 1.0));
    }
    Some(Chart {
        id: "overlay".to_owned(),
        title: "The schemes over the same time".to_owned(),
        sentence:
            "A scheme's lines end when the receiver has everything; what the sender knows of that is half a round trip \
            old, so its last acknowledgements are still missing. An upright line is the end of its startup. The panels \
            below show what it sends for that: how much is in flight, and how long the queue gets. Press a scheme to \
            hide or show its lines."
                .to_owned(),
        aria: "Acknowledged bytes, bytes in flight, cwnd, pacing rate and queue of each scheme over time".to_owned(),
        mode: "stack",
        renderer: if report.runs.len() > 4 { "canvas" } else { "svg" },
        legend,
        spec,
        ..Chart::default()
    })
}

/// Whether a panel shows rates, beside which the link's rate stands.
fn place_of_rate(panel: &Shown) -> bool {
    panel.title.ends_with("(Mbit/s)")
}

/// Crosses at the segments of a run that were dropped.
fn drops(run: &TraceReport, colour: &str, signal: &str, time: &Value, y: &Value) -> Option<Value> {
    let mut table = Table::new(&["t", "v"]);
    for [t, v] in thin_points(&run.dropped, DROPS) {
        table.push(&[t / 1000.0, v / 1000.0]);
    }
    (!table.is_empty()).then(|| {
        json!({"data": table.data(), "mark": {"type": "point", "shape": "M-0.8,-0.8L0.8,0.8M-0.8,0.8L0.8,-0.8",
            "size": 45, "color": colour, "strokeWidth": 1.4, "clip": true,
            "opacity": {"expr": format!("{signal} ? 0.9 : 0")}},
            "encoding": {"x": time, "y": y}})
    })
}
