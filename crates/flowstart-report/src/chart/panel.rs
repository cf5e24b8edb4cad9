//! Panels over time stand below each other.

use super::document::document;
use super::legend::{LegendItem, item, mark_item};
use super::style::{COLOURS, MEASURED, NEUTRAL, OTHER};
use super::table::Table;
use crate::TraceReport;
use crate::number::finite;
use crate::reduce::{thin_line, thin_points};
use serde_json::{Value, json};

/// Drop marks per panel of a time series.
const DROP_MARKS: usize = 400;

pub(super) const TIME: &str = "time since the measured flow opened (s)";

pub(super) fn window_legend(ssthresh: bool) -> Vec<LegendItem> {
    let mut legend = vec![item("cwnd", COLOURS[0], &[1, 0], 1.8), item("bytes in flight", MEASURED, &[3, 2], 1.4)];
    if ssthresh {
        legend.push(item("ssthresh", OTHER, &[8, 3, 2, 3], 1.6));
    }
    legend
}

pub(super) fn queue_legend(others: bool) -> Vec<LegendItem> {
    let mut legend =
        vec![item("queue", NEUTRAL, &[1, 0], 1.4), mark_item("drop of the measured flow", MEASURED, "tick-low")];
    if others {
        legend.push(mark_item("drop of another flow", OTHER, "tick-high"));
    }
    legend
}

pub(super) fn time_axis(title: Option<&str>, domain: Option<[f64; 2]>) -> Value {
    let mut axis = json!({"field": "t", "type": "quantitative", "title": title, "axis": {"tickCount": 6},
        "scale": {"nice": false, "zero": false}});
    if title.is_none() {
        axis["axis"]["labels"] = json!(false);
    }
    if let Some(domain) = domain {
        axis["scale"]["domain"] = json!(domain);
    }
    axis
}

/// The points up to the end of the run: what does not change any more stays as it is.
pub(super) fn held(points: &[[f64; 2]], end: f64) -> Vec<[f64; 2]> {
    let mut points = points.to_vec();
    points.extend(points.last().filter(|last| last[0] < end).map(|last| [end, last[1]]));
    points
}

/// The end of a run's own series, in milliseconds.
pub(super) fn run_end(report: &TraceReport) -> f64 {
    [&report.acked, &report.cwnd]
        .into_iter()
        .filter_map(|series| series.last())
        .map(|point| point[0])
        .fold(0.0, f64::max)
}

pub(super) fn rule_at(y: f64) -> Value {
    json!({"data": {"values": [{"v": y}]}, "mark": {"type": "rule", "color": NEUTRAL, "strokeWidth": 1,
        "strokeDash": [2, 3]},
        "encoding": {"y": {"field": "v", "type": "quantitative"}}})
}

/// An upright line where startup ended, with the reason beside it, `down` pixels below the panel's upper edge. `signal`
/// hides both.
pub(super) fn exit_rule(
    report: &TraceReport,
    domain: [f64; 2],
    colour: &str,
    down: Option<f64>,
    signal: Option<&str>,
) -> Vec<Value> {
    let Some(end) = finite(report.exit_ms).map(|ms| ms / 1000.0) else { return Vec::new() };
    let opacity = signal.map_or(json!(1), |signal| json!({"expr": format!("{signal} ? 1 : 0")}));
    let who = if signal.is_some() { format!("{}: ", report.scheme) } else { String::new() };
    // The reason first: what does not fit is cut at the end.
    let why =
        report.exit_reason.as_ref().map_or_else(|| "startup ended".to_owned(), |one| format!("{one} ended startup"));
    let data = json!({"values": [{"t": end, "why": format!("{who}{why}")}]});
    let time = time_axis(None, Some(domain));
    let mut layers = vec![json!({"data": data, "mark": {"type": "rule", "color": colour, "strokeWidth": 1.6,
        "clip": true, "opacity": opacity}, "encoding": {"x": {"field": "t", "type": "quantitative"}}})];
    if let Some(down) = down {
        // On the side that has more room.
        let before = (end - domain[0]) / (domain[1] - domain[0]);
        let is_late = before > 0.5;
        let room = before.max(1.0 - before);
        let (align, dx) = if is_late { ("right", -5) } else { ("left", 5) };
        layers.push(json!({"data": data, "mark": {"type": "text", "align": align, "baseline": "top", "dx": dx,
            "dy": down, "fontSize": 11, "color": colour, "limit": {"expr": format!("max(20, width * {room} - 8)")}, "opacity": opacity},
            "encoding": {"x": time, "y": {"value": 0}, "text": {"field": "why", "type": "nominal"}}}));
    }
    layers
}

/// cwnd, bytes in flight and, when there is any, ssthresh.
pub(super) fn window_panel(
    cwnd: &[[f64; 2]],
    in_flight: &[[f64; 2]],
    ssthresh: &[[f64; 2]],
    highest: f64,
    points: usize,
    height: u32,
    time: &Value,
) -> Value {
    let mut table = Table::new(&["t", "v", "s"]);
    for (s, series) in [cwnd, in_flight, ssthresh].into_iter().enumerate() {
        for [t, v] in thin_line(series, points) {
            table.push(&[t / 1000.0, v / 1000.0, s as f64]);
        }
    }
    let domain = json!([0, 1, 2]);
    json!({"height": height, "data": table.data(), "layer": [{
        "mark": {"type": "line", "interpolate": "step-after", "clip": true},
        "encoding": {"x": time,
            "y": {"field": "v", "type": "quantitative", "title": "cwnd, in flight (KB)",
                "scale": {"domain": [0, (highest / 1000.0 * 1.05).max(0.001)], "nice": false},
                "axis": {"tickCount": 4, "minExtent": 44, "maxExtent": 44}},
            "color": {"field": "s", "type": "nominal", "legend": null,
                "scale": {"domain": domain, "range": [COLOURS[0], MEASURED, OTHER]}},
            "strokeDash": {"field": "s", "type": "nominal", "legend": null,
                "scale": {"domain": domain, "range": [[1, 0], [3, 2], [8, 3, 2, 3]]}},
            "strokeWidth": {"field": "s", "type": "ordinal", "legend": null,
                "scale": {"domain": domain, "range": [1.8, 1.2, 1.5]}}}}]})
}

/// Queue length with a short tick for each drop: at the bottom for the measured flow, at the top for others.
pub(super) fn queue_panel(
    queue: &[[f64; 2]],
    drops: &[f64],
    others: &[f64],
    highest: f64,
    points: usize,
    time: &Value,
) -> Value {
    let top = (highest * 1.2).max(1.0);
    let mut table = Table::new(&["t", "v"]);
    for [t, v] in thin_line(queue, points) {
        table.push(&[t / 1000.0, v]);
    }
    let ticks = |times: &[f64], low: f64, high: f64, colour: &str| {
        let mut table = Table::new(&["t", "v", "w"]);
        for t in thin_points(times, DROP_MARKS) {
            table.push(&[t / 1000.0, low * top, high * top]);
        }
        json!({"data": table.data(), "mark": {"type": "rule", "color": colour, "strokeWidth": 1, "clip": true,
            "opacity": 0.8},
            "encoding": {"x": time, "y": {"field": "v", "type": "quantitative"}, "y2": {"field": "w"}}})
    };
    json!({"height": 100, "layer": [
        {"data": table.data(), "mark": {"type": "area", "interpolate": "step-after", "color": "#dddddd",
            "line": {"color": NEUTRAL, "strokeWidth": 1.2}, "clip": true},
         "encoding": {"x": time, "y": {"field": "v", "type": "quantitative", "title": "queue (packets)", "stack": null,
             "scale": {"domain": [0, top], "nice": false},
             "axis": {"tickCount": 4, "minExtent": 44, "maxExtent": 44}}}},
        ticks(drops, 0.0, 0.16, MEASURED),
        ticks(others, 0.86, 1.0, OTHER)]})
}

/// Panels below each other whose time axes zoom together.
pub(super) fn stack_document(description: &str, mut panels: Vec<Value>) -> Value {
    for panel in &mut panels {
        panel["width"] = json!(620);
        // One layer of each panel carries the zoom; the same name makes it the same zoom.
        panel["layer"][0]["params"] = json!([{"name": "zoom", "bind": "scales", "select": {
            "type": "interval", "encodings": ["x"],
            // Plain scrolling stays with the page.
            "zoom": "wheel![event.ctrlKey || event.altKey || event.metaKey]"}}]);
    }
    // Each panel has its own series, so its own scales; the time axes are tied together by the zoom.
    let own = json!({"scale": {"color": "independent", "strokeDash": "independent", "strokeWidth": "independent"}});
    document(description, json!({"spacing": 6, "resolve": own, "vconcat": panels}))
}
