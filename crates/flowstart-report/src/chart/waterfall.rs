//! Bars show where the time went.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{LegendItem, mark_item};
use super::style::NEUTRAL;
use super::table::{Table, named};
use crate::group::Group;
use crate::{Cause, Causes, Cell};
use serde_json::{Value, json};

/// The parts of a bar, from left to right: the physical limit, then every cause. No two have the same lightness, and
/// neighbours differ most, so that a printer without colours keeps them apart.
const COLOURS: [&str; 1 + Cause::ALL.len()] =
    ["#363636", "#CC7FA8", "#A9DBF7", "#5B2A86", "#C0603F", "#E8AC2E", "#005180", "#2B8C6F", "#9FB56F", "#F1F1F1"];

fn names() -> Vec<String> {
    std::iter::once("physical limit").chain(Cause::ALL.map(Cause::name)).map(str::to_owned).collect()
}

/// Bars of the FCT of one run: a row of panels per group, a panel per size, a bar per scheme.
pub(crate) fn waterfall(groups: &[Group<'_>], schemes: &[String]) -> Option<Chart> {
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
    let legend: Vec<LegendItem> =
        names().iter().zip(COLOURS).map(|(name, colour)| mark_item(name, colour, "bar")).collect();
    Some(Chart {
        id: "waterfall".to_owned(),
        title: "The physical limit, and what came on top of it".to_owned(),
        sentence: "A bar is the median run of a scheme: the dark part is the physical limit, the same for all \
            schemes, and the \
            widest part after it is what cost the scheme most; parts stand in the order of the legend."
            .to_owned(),
        aria: "Bars of the median run's FCT by scheme, divided into the physical limit and the causes of the rest; \
            the numbers are in the table below"
            .to_owned(),
        columns,
        legend,
        rows,
        spec: grid_document("Where the time went: the physical limit and the causes of the rest", columns, &panels),
        ..Chart::default()
    })
}

/// The lengths of a bar's parts, which end at the FCT. What came sooner than the limit says, as it may on a recorded
/// trace, shortens the limit's part: there is no bar of negative length.
fn parts_of(causes: &Causes) -> Option<[f64; COLOURS.len()]> {
    let mut lengths = [0.0; COLOURS.len()];
    lengths[0] = causes.ideal_fct_ms;
    for (length, cause) in lengths[1..].iter_mut().zip(causes.causes_ms) {
        *length = cause.max(0.0);
    }
    lengths[0] = (lengths[0] + causes.causes_ms.iter().map(|cause| cause.min(0.0)).sum::<f64>()).max(0.0);
    lengths.iter().all(|length| length.is_finite()).then_some(lengths)
}

fn bars(cells: &[&Cell], schemes: &[String], size: &str, aria: &str) -> Option<Value> {
    let mut parts = Table::new(&["i", "part", "from", "to"]);
    let mut ends = Table::new(&["i", "fct"]);
    let mut longest = 0.0_f64;
    let mut shown: Vec<&String> = Vec::new();
    for cell in cells {
        let lengths = cell.causes.as_ref().and_then(parts_of);
        let (Some(lengths), Some(i)) = (lengths, schemes.iter().position(|scheme| *scheme == cell.scheme)) else {
            continue;
        };
        let mut from = 0.0;
        for (part, length) in lengths.into_iter().enumerate().filter(|(_, length)| *length > 0.0) {
            parts.push(&[i as f64, part as f64, from, from + length]);
            from += length;
        }
        ends.push(&[i as f64, from]);
        longest = longest.max(from);
        shown.push(&schemes[i]);
    }
    if shown.is_empty() {
        return None;
    }
    // Room for the number at the end of a bar.
    let x = json!({"type": "quantitative", "title": format!("time (ms), {size}"),
        "scale": {"domain": [0, (longest * 1.32).max(1.0)], "nice": false}, "axis": {"tickCount": 3}});
    let along = |field: &str| {
        let mut x = x.clone();
        x["field"] = json!(field);
        x
    };
    let y = json!({"field": "scheme", "type": "nominal", "title": null, "sort": null, "scale": {"domain": shown},
        "axis": {"labelLimit": 150, "ticks": false, "domain": false}});
    let scheme = named(schemes, "i", "scheme");
    let domain: Vec<usize> = (0..COLOURS.len()).collect();
    Some(json!({"title": size, "description": aria, "width": 300, "height": {"step": 24}, "layer": [
        {"data": parts.data(), "transform": [scheme, named(&names(), "part", "cause"),
            {"calculate": "datum.to - datum.from", "as": "length"}],
         "mark": {"type": "bar", "height": 15, "stroke": NEUTRAL, "strokeWidth": 0.7},
         "encoding": {"x": along("from"), "x2": {"field": "to"}, "y": y,
            "color": {"field": "part", "type": "nominal", "legend": null,
                "scale": {"domain": domain, "range": COLOURS}},
            "tooltip": [{"field": "scheme", "title": "scheme"}, {"field": "cause", "title": "part"},
                {"field": "length", "title": "ms", "format": ",.4~g"}]}},
        {"data": ends.data(), "transform": [scheme],
            "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "color": "#222"},
         "encoding": {"x": along("fct"), "y": y, "text": {"field": "fct", "type": "quantitative",
             "format": ",.0f"}}}]}))
}
