//! The time-sequence diagram shows one traced run, segment by segment.

use super::document::Chart;
use super::legend::{item, mark_item};
use super::panel::{
    TIME, exit_rule, held, queue_legend, queue_panel, rule_at, stack_document, time_axis, window_legend, window_panel,
};
use super::style::{COLOURS, MEASURED, NEUTRAL, OTHER};
use super::table::Table;
use crate::TraceReport;
use crate::number::finite;
use crate::reduce::{thin_line, thin_points};
use serde_json::{Value, json};

/// Marks of a series that are drawn with its shape.
const LARGE_MARKS: usize = 24;
/// Points per series of a trace.
const TRACE_POINTS: usize = 20_000;

/// The series that may have very many points.
fn all_series(report: &TraceReport) -> [&[[f64; 2]]; 8] {
    [
        &report.sent,
        &report.retransmitted,
        &report.dropped,
        &report.acked,
        &report.cwnd,
        &report.in_flight,
        &report.pacing_rate_mbit,
        &report.queue_packets,
    ]
}

/// The times of the first and the last point of a traced run, in milliseconds.
fn extent(report: &TraceReport) -> Option<[f64; 2]> {
    let series = all_series(report);
    let times = || series.iter().flat_map(|s| s.iter()).map(|p| p[0]).filter(|t| t.is_finite());
    let (first, last) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    Some([first, last])
}

/// The seconds that the time axes of a traced run show; `None` if nothing was recorded.
pub(crate) fn time_domain(report: &TraceReport) -> Option<[f64; 2]> {
    let [first, last] = extent(report)?;
    Some([first.min(0.0).max(-0.2 * last) / 1000.0, (last + (last - first) * 0.02 + 1.0) / 1000.0])
}

/// All panels of a traced run. Times are shown in milliseconds when the run is short.
pub(crate) fn trace(report: &TraceReport) -> Option<Chart> {
    let series = all_series(report);
    let ([first, last], domain) = (extent(report)?, time_domain(report)?);
    let time = |title: Option<&str>| time_axis(title, Some(domain));
    let top = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).filter(|v| v.is_finite()).fold(0.0, f64::max);

    // Marks that touch each other become a bar without a shape, so only some are large; every segment is a dot.
    let mut points = Table::new(&["t", "v", "s", "large"]);
    for (s, set) in [&report.sent, &report.retransmitted, &report.dropped].into_iter().enumerate() {
        let set = thin_points(set, TRACE_POINTS);
        let gap = set.len().div_ceil(LARGE_MARKS).max(1);
        for (k, [t, v]) in set.into_iter().enumerate() {
            points.push(&[t / 1000.0, v / 1000.0, s as f64, f64::from(u8::from(k % gap == 0))]);
        }
    }
    let highest = [&report.sent, &report.retransmitted, &report.dropped, &report.acked].map(|set| top(set));
    let highest = highest.into_iter().fold(0.0, f64::max) / 1000.0;
    let mut acked = Table::new(&["t", "v"]);
    for [t, v] in thin_line(&report.acked, TRACE_POINTS) {
        acked.push(&[t / 1000.0, v / 1000.0]);
    }
    let offset = json!({"field": "v", "type": "quantitative", "title": "offset in the payload (KB)",
        "scale": {"domain": [0, (highest * 1.1).max(0.001)], "nice": false},
        "axis": {"tickCount": 6, "minExtent": 50, "maxExtent": 50}});
    let dots = |s: u8, colour: &str| {
        json!({"transform": [{"filter": format!("datum.s == {s}")}],
            "mark": {"type": "point", "shape": "circle", "filled": true, "size": 9, "color": colour, "opacity": 0.75,
                "clip": true},
            "encoding": {"x": time(None), "y": offset}})
    };
    let point = |s: u8, mark: Value| {
        json!({"transform": [{"filter": format!("datum.s == {s} && datum.large == 1")}], "mark": mark,
            "encoding": {"x": time(None), "y": offset}})
    };
    let sequence = json!({"height": 320, "data": points.data(), "layer": [
        {"data": acked.data(), "mark": {"type": "line", "interpolate": "step-after", "color": COLOURS[3],
            "strokeWidth": 1.6, "clip": true},
         "encoding": {"x": time(None), "y": offset}},
        dots(0, COLOURS[0]),
        dots(1, MEASURED),
        dots(2, OTHER),
        point(1, json!({"type": "point", "shape": "square", "filled": false, "size": 60, "color": MEASURED,
            "strokeWidth": 1.5, "clip": true})),
        point(2, json!({"type": "point", "shape": CROSS, "filled": false, "size": 70, "color": OTHER,
            "strokeWidth": 1.6, "clip": true})),
    ]});
    let mut panels = vec![sequence];
    let window = top(&report.cwnd).max(top(&report.in_flight)).max(top(&report.ssthresh));
    let held = |points: &[[f64; 2]]| held(points, last);
    let (cwnd, in_flight, ssthresh) = (held(&report.cwnd), held(&report.in_flight), held(&report.ssthresh));
    panels.push(window_panel(&cwnd, &in_flight, &ssthresh, window, TRACE_POINTS, 150, &time(None)));
    if !report.pacing_rate_mbit.is_empty() {
        let mut pacing = Table::new(&["t", "v"]);
        for [t, v] in thin_line(&held(&report.pacing_rate_mbit), TRACE_POINTS) {
            pacing.push(&[t / 1000.0, v]);
        }
        let highest = top(&report.pacing_rate_mbit).max(finite(report.link.rate_mbit).unwrap_or(0.0));
        let mut layers = vec![
            json!({"data": pacing.data(), "mark": {"type": "line", "interpolate": "step-after", "color": COLOURS[3],
                "clip": true},
            "encoding": {"x": time(None), "y": {"field": "v", "type": "quantitative", "title": "pacing (Mbit/s)",
                "scale": {"domain": [0, (highest * 1.08).max(0.001)], "nice": false},
                "axis": {"tickCount": 4, "minExtent": 50, "maxExtent": 50}}}}),
        ];
        if let Some(rate) = finite(report.link.rate_mbit) {
            layers.push(rule_at(rate));
        }
        panels.push(json!({"height": 100, "layer": layers}));
    }
    let own: Vec<f64> = report.dropped.iter().map(|p| p[0]).collect();
    panels.push(queue_panel(
        &report.queue_packets,
        &own,
        &report.other_drops,
        top(&report.queue_packets),
        TRACE_POINTS,
        &time(Some(TIME)),
    ));
    // Numbered events, as in the list. Those too close to tell apart share a label.
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (number, event) in numbered_events(report) {
        match labels.last_mut() {
            Some((t, label)) if (event.time_ms - *t).abs() < (last - first) * 0.015 => {
                label.push_str(&format!(", {number}"));
            }
            _ => labels.push((event.time_ms, number.to_string())),
        }
    }
    let events = json!({"values": labels.iter().map(|(t, n)| json!({"t": t / 1000.0, "n": n})).collect::<Vec<_>>()});
    let last_panel = panels.len() - 1;
    for (k, panel) in panels.iter_mut().enumerate() {
        let Some(layers) = panel["layer"].as_array_mut() else {
            continue;
        };
        layers.push(json!({"data": events, "mark": {"type": "rule", "color": "#999", "strokeWidth": 1,
            "strokeDash": [3, 3], "clip": true},
            "encoding": {"x": time((k == last_panel).then_some(TIME))}}));
        // Below the numbers of the events.
        layers.extend(exit_rule(report, domain, NEUTRAL, (k == 0).then_some(17.0), None));
    }
    if let Some(layers) = panels[0]["layer"].as_array_mut() {
        layers.push(json!({"data": events,
            "mark": {"type": "text", "align": "left", "baseline": "top", "dx": 3, "dy": 2, "fontSize": 11,
                "fontWeight": 600, "color": "#333", "clip": true},
            "encoding": {"x": time(None), "y": {"value": 0}, "text": {"field": "n", "type": "nominal"}}}));
    }
    let spec = stack_document("Time-sequence diagram of one run", panels);
    let others = !report.other_drops.is_empty();
    let mut legend = vec![
        mark_item("segment sent", COLOURS[0], "dot"),
        mark_item("sent again", MEASURED, "open-square"),
        mark_item("dropped on the way", OTHER, "x"),
        item("acknowledged up to here", COLOURS[3], &[1, 0], 1.6),
    ];
    legend.extend(window_legend(!report.ssthresh.is_empty()));
    if !report.pacing_rate_mbit.is_empty() {
        legend.push(item("pacing rate", COLOURS[3], &[1, 0], 1.8));
        legend.push(item("rate of the link, or its mean", NEUTRAL, &[2, 3], 1.0));
    }
    legend.extend(queue_legend(others));
    if report.events.iter().any(|e| e.time_ms.is_finite()) {
        legend.push(item("numbered event of the list", "#999999", &[3, 3], 1.0));
    }
    let largest = series.iter().map(|s| s.len()).max().unwrap_or(0);
    let thinned = if largest > TRACE_POINTS {
        format!(" Series of more than {TRACE_POINTS} points are shown thinned.")
    } else {
        String::new()
    };
    Some(Chart {
        id: "trace".to_owned(),
        title: "Time-sequence diagram".to_owned(),
        sentence: format!(
            "A dot is a segment leaving the sender and the line below is what has been acknowledged: the horizontal \
            distance between the two is the RTT, \
            the vertical distance is the data in flight, and the steeper the dots, the faster the sender.{thinned}"
        ),
        aria: "Time-sequence diagram of one run, with cwnd, bytes in flight, pacing rate and queue below it".to_owned(),
        mode: "stack",
        renderer: if report.sent.len() > 3000 { "canvas" } else { "svg" },
        legend,
        spec,
        ..Chart::default()
    })
}

/// A diagonal cross, as an SVG path in the unit square around the origin.
const CROSS: &str = "M-0.8,-0.8L0.8,0.8M-0.8,0.8L0.8,-0.8";

/// Events with the numbers that the chart and the list share.
pub(crate) fn numbered_events(report: &TraceReport) -> impl Iterator<Item = (usize, &crate::TraceEvent)> {
    report.events.iter().filter(|e| e.time_ms.is_finite()).enumerate().map(|(i, e)| (i + 1, e))
}
