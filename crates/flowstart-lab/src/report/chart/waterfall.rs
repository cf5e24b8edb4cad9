//! Where the time went.

use super::table::Table;
use super::{Chart, LegendItem, NEUTRAL, Panel, Row, grid_document, mark_item, named};
use crate::report::Cell;
use crate::report::number::finite;
use crate::report::page::Group;
use serde_json::{Value, json};

/// The parts of a bar, from left to right, in three lightnesses that differ in grey, too.
const PARTS: [(&str, &str); 3] =
    [("handshake", "#333333"), ("startup", "#56B4E9"), ("after startup, in congestion avoidance", "#E4E4E4")];
const LIMIT: &str = "#D55E00";

/// Bars of the mean FCT: a row of panels per group, a panel per size, a bar per scheme.
pub(in crate::report) fn waterfall(groups: &[Group<'_>], schemes: &[String]) -> Option<Chart> {
    let mut panels = Vec::new();
    let mut rows = Vec::new();
    let mut columns = 1;
    for group in groups {
        let mut row = Vec::new();
        for (size, cells) in group.sizes() {
            let aria = format!("Where the time of a {size} transfer on {} went, one bar per scheme", group.label);
            let index = bars(&cells, schemes, &size, &aria).map(|panel| {
                panels.push(panel);
                panels.len() - 1
            });
            row.push(Panel { index, aria, missing: format!("No run with {size} completed.") });
        }
        columns = columns.max(row.len().min(3));
        rows.push(Row { label: group.label.clone(), panels: row });
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend: Vec<LegendItem> = PARTS.iter().map(|(name, colour)| mark_item(name, colour, "bar")).collect();
    legend.push(mark_item("physical limit", LIMIT, "upright"));
    Some(Chart {
        id: "waterfall".to_owned(),
        title: "Handshake, startup, and the rest".to_owned(),
        sentence: "A bar is the mean FCT of a scheme, in the order in which the time passed; what lies to the right of the upright line, \
            the physical limit, was lost to not knowing the path, to repeating, and to sharing it."
            .to_owned(),
        aria: "Bars of the mean FCT by scheme, divided into handshake, startup and the time after startup".to_owned(),
        mode: "grid",
        columns,
        renderer: "svg",
        legend,
        rows,
        replay: None,
        zoomable: false,
        spec: grid_document("Where the time went: handshake, startup, and after startup", columns, &panels),
        json: String::new(),
    })
}

fn bars(cells: &[&Cell], schemes: &[String], size: &str, aria: &str) -> Option<Value> {
    let mut parts = Table::new(&["i", "part", "from", "to"]);
    let mut ends = Table::new(&["i", "fct"]);
    let mut limits = Table::new(&["i", "limit"]);
    let mut longest = 0.0_f64;
    let mut shown: Vec<&String> = Vec::new();
    for cell in cells {
        let (Some(phases), Some(i)) = (cell.phases, schemes.iter().position(|scheme| *scheme == cell.scheme)) else {
            continue;
        };
        let lengths = [phases.handshake_ms, phases.startup_ms, phases.after_ms];
        if lengths.iter().any(|length| !length.is_finite()) {
            continue;
        }
        let mut from = 0.0;
        for (part, length) in lengths.into_iter().enumerate() {
            parts.push(&[i as f64, part as f64, from, from + length]);
            from += length;
        }
        ends.push(&[i as f64, from]);
        longest = longest.max(from);
        if let Some(limit) = finite(cell.ideal_fct_ms) {
            limits.push(&[i as f64, limit]);
            longest = longest.max(limit);
        }
        shown.push(&schemes[i]);
    }
    if shown.is_empty() {
        return None;
    }
    // Room for the number at the end of a bar.
    let x = json!({"type": "quantitative", "title": format!("time (ms), {size}"),
        "scale": {"domain": [0, (longest * 1.2).max(1.0)], "nice": false}, "axis": {"tickCount": 4}});
    let along = |field: &str| {
        let mut x = x.clone();
        x["field"] = json!(field);
        x
    };
    let y = json!({"field": "scheme", "type": "nominal", "title": null, "sort": null, "scale": {"domain": shown},
        "axis": {"labelLimit": 150, "ticks": false, "domain": false}});
    let scheme = named(schemes, "i", "scheme");
    let domain: Vec<usize> = (0..PARTS.len()).collect();
    let range: Vec<&str> = PARTS.iter().map(|(_, colour)| *colour).collect();
    let names: Vec<String> = PARTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    Some(json!({"title": size, "description": aria, "width": 300, "height": {"step": 24}, "layer": [
        {"data": parts.data(), "transform": [scheme, named(&names, "part", "phase"), {"calculate": "datum.to - datum.from", "as": "length"}],
         "mark": {"type": "bar", "height": 15, "stroke": NEUTRAL, "strokeWidth": 0.7},
         "encoding": {"x": along("from"), "x2": {"field": "to"}, "y": y,
            "color": {"field": "part", "type": "nominal", "legend": null, "scale": {"domain": domain, "range": range}},
            "tooltip": [{"field": "scheme", "title": "scheme"}, {"field": "phase", "title": "phase"}, {"field": "length", "title": "ms", "format": ",.4~g"}]}},
        {"data": limits.data(), "transform": [scheme], "mark": {"type": "tick", "color": LIMIT, "thickness": 2.4, "size": 21},
         "encoding": {"x": along("limit"), "y": y}},
        {"data": ends.data(), "transform": [scheme], "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "color": "#222"},
         "encoding": {"x": along("fct"), "y": y, "text": {"field": "fct", "type": "quantitative", "format": ",.0f"}}}]}))
}
