//! Bars show where the time went.

use super::document::{Chart, Panel, Row, grid_document};
use super::key::Key;
use super::legend::{LegendItem, mark_item};
use super::style::{NEUTRAL, on_both};
use super::table::{Table, named};
use crate::group::{Group, distinct};
use crate::{Cause, Causes, Cell};
use serde_json::{Value, json};

/// The parts of a bar, from left to right: the physical limit, then every cause. No two have the same lightness, and
/// neighbours differ most, so that a printer without colours keeps them apart.
const COLOURS: [&str; 1 + Cause::ALL.len()] =
    ["#363636", "#CC7FA8", "#A9DBF7", "#5B2A86", "#C0603F", "#E8AC2E", "#005180", "#2B8C6F", "#9FB56F", "#F1F1F1"];

/// The colours of the physical limit and of every cause, in this order, each on a light and on a dark page.
pub fn cause_colours() -> Vec<[String; 2]> {
    on_both(&COLOURS)
}

fn names() -> Vec<String> {
    std::iter::once("physical limit").chain(Cause::ALL.map(Cause::name)).map(str::to_owned).collect()
}

/// Bars of the FCT of one run, a bar per scheme or AQM: a row of panels per size, a panel per group. Of one group a
/// panel per size. Panels of a row share their axis.
pub(crate) fn waterfall(groups: &[Group<'_>], key: &Key) -> Option<Chart> {
    let sizes = distinct(groups.iter().flat_map(|group| &group.cells).map(|cell| &cell.size));
    let (mut panels, mut rows, mut widest) = (Vec::new(), Vec::new(), 1);
    for size in &sizes {
        let mut row = Vec::new();
        let here = || groups.iter().flat_map(|group| &group.cells).filter(|cell| cell.size == *size);
        let ends = here().filter_map(|cell| cell.causes.as_ref().and_then(parts_of)).map(|parts| parts.iter().sum());
        let longest = ends.fold(0.0_f64, f64::max);
        for group in groups {
            let cells: Vec<&Cell> = group.cells.iter().copied().filter(|cell| cell.size == *size).collect();
            for (scheme, cells) in key.panels(&cells) {
                let place = if groups.len() > 1 { group.label.as_str() } else { "" };
                let size = if sizes.len() > 1 || groups.len() == 1 { size } else { "" };
                let title: Vec<&str> = [place, size, &scheme].into_iter().filter(|part| !part.is_empty()).collect();
                let title = title.join(", ");
                let aria = format!("Where the time of a {size} transfer on {} went, one bar each", group.label);
                let Some(panel) = bars(&cells, key, longest, &title, &aria) else { continue };
                panels.push(panel);
                row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
            }
        }
        widest = widest.max(row.len());
        rows.append(&mut row);
    }
    if panels.is_empty() {
        return None;
    }
    // A row of panels per size, unless that is one panel.
    let columns = if widest > 1 { widest } else { rows.len() }.min(4);
    let all = groups.iter().flat_map(|group| &group.cells);
    let drawn: Vec<_> = all.filter_map(|cell| cell.causes.as_ref().and_then(parts_of)).collect();
    // Of parts too short to be seen the legend says nothing.
    let longest = drawn.iter().map(|parts| parts.iter().sum()).fold(0.0_f64, f64::max);
    let used = (0..COLOURS.len()).map(|part| drawn.iter().any(|parts| parts[part] > longest / 500.0));
    let legend: Vec<LegendItem> = names()
        .iter()
        .zip(COLOURS)
        .zip(used)
        .filter(|(_, used)| *used)
        .map(|((n, c), _)| mark_item(n, c, "bar"))
        .collect();
    Some(Chart {
        id: "waterfall".to_owned(),
        title: "Where the time went".to_owned(),
        sentence: format!(
            "{} The first part of a bar is the physical limit, the time of a sender that knows the path and has it for \
            itself; what came on top of it stands in the order of the legend.{}",
            which(groups),
            held_back(groups, key)
        ),
        aria: "Bars of one run's FCT, divided into the physical limit and the causes of the rest; the numbers \
            are in the table below"
            .to_owned(),
        columns,
        legend,
        rows: vec![Row { label: String::new(), panels: rows }],
        spec: grid_document("Where the time went: the physical limit and the causes of the rest", columns, &panels),
        ..Chart::default()
    })
}

/// Which run a bar shows.
fn which(groups: &[Group<'_>]) -> &'static str {
    let is_compared = |cell: &&Cell| cell.causes.is_some() && cell.speedup.mean.is_some();
    if groups.iter().flat_map(|group| &group.cells).any(is_compared) {
        "A bar is one run, and bars of one setting are of the same repetition: the one in which the speed-ups over the \
        baseline are nearest to the median speed-ups."
    } else {
        "A bar is the run of the median."
    }
}

/// Part of a transfer's time from which on it is said that flow control took it.
const NOTABLE: f64 = 0.02;
/// Most bars that are named.
const MOST_NAMED: usize = 3;

/// A sentence about transfers that the receiver's window held back for long.
fn held_back(groups: &[Group<'_>], key: &Key) -> String {
    let mut held = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        let Some(causes) = &cell.causes else { continue };
        let ms = causes.causes_ms[Cause::FlowControl as usize];
        if let Some(name) = key.place(cell).map(|place| key.name(place)).filter(|_| ms > causes.fct_ms * NOTABLE) {
            held.push((name, ms));
        }
    }
    let most = held.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    let names = distinct(held.iter().map(|(name, _)| name));
    let who = match &names[..] {
        [] => return String::new(),
        few if few.len() <= MOST_NAMED => few.join(", "),
        many => format!("{} bars", many.len()),
    };
    format!(
        " The receiver's window (flow control), not the sender, held back {who}, for {} ms at most: there the bar says \
        little about the scheme.",
        crate::number::Format::Plain.show(Some(most))
    )
}

/// Longest name that stands beside its bar. Longer ones stand above it, in as many lines as they need.
const BESIDE: usize = 20;
/// Letters of a line above a bar.
const LINE: usize = 44;

/// Names for the axis: of several variants of a scheme what follows its name, if that tells them apart.
fn beside(names: &[&str]) -> Vec<String> {
    let kind = |name: &str| name.split_once(':').map(|(kind, _)| kind.to_owned());
    let short = names.iter().map(|name| match name.split_once(':') {
        Some((own, rest)) if names.iter().filter(|other| kind(other).as_deref() == Some(own)).count() > 1 => {
            format!("…{rest}")
        }
        _ => (*name).to_owned(),
    });
    let short: Vec<String> = short.collect();
    let is_needed = names.iter().any(|name| name.chars().count() > BESIDE);
    if is_needed && distinct(short.iter()).len() == names.len() {
        short
    } else {
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// A name in lines, broken behind the signs between its parts.
fn wrapped(name: &str) -> String {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive([' ', ',', ':']) {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + part.chars().count() > LINE {
            lines.push(part.to_owned());
        } else {
            lines[last].push_str(part);
        }
    }
    lines.join("\n")
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

fn bars(cells: &[&Cell], key: &Key, longest: f64, title: &str, aria: &str) -> Option<Value> {
    let mut parts = Table::new(&["i", "part", "from", "to"]);
    let mut ends = Table::new(&["i", "fct"]);
    let mut shown: Vec<&str> = Vec::new();
    for cell in cells {
        let lengths = cell.causes.as_ref().and_then(parts_of);
        let (Some(lengths), Some(i)) = (lengths, key.place(cell)) else { continue };
        let mut from = 0.0;
        for (part, length) in lengths.into_iter().enumerate().filter(|(_, length)| *length > 0.0) {
            parts.push(&[i as f64, part as f64, from, from + length]);
            from += length;
        }
        ends.push(&[i as f64, from]);
        shown.push(key.name(i));
    }
    if shown.is_empty() {
        return None;
    }
    // Room for the number at the end of a bar.
    let x = json!({"type": "quantitative", "title": "time (ms)",
        "scale": {"domain": [0, (longest * 1.32).max(1.0)], "nice": false}, "axis": {"tickCount": 3}});
    let along = |field: &str| {
        let mut x = x.clone();
        x["field"] = json!(field);
        x
    };
    let lines: Vec<String> = shown.iter().map(|name| wrapped(name)).collect();
    let short = beside(&shown);
    let is_beside = short.iter().all(|name| name.chars().count() <= BESIDE);
    let most_lines = lines.iter().map(|name| name.lines().count()).max().unwrap_or(1);
    // Letters above bars are as high as those of an axis.
    let above = if is_beside { 0 } else { 12 * most_lines + 2 };
    let bar = if is_beside && shown.len() > 4 { 9 } else { 16 };
    let step = above + bar + 4;
    let mut y = json!({"field": "line", "type": "nominal", "title": null, "sort": null, "scale": {"domain": shown},
        "axis": {"labelLimit": 130, "labelOverlap": false, "ticks": false, "domain": false}});
    if is_beside {
        let names: serde_json::Map<String, Value> =
            shown.iter().zip(&short).map(|(name, short)| ((*name).to_owned(), json!(short))).collect();
        y["axis"]["labelExpr"] = json!(format!("({})[datum.label]", json!(names)));
    } else {
        y["axis"] = Value::Null;
    }
    let lower = above / 2;
    let domain: Vec<usize> = (0..COLOURS.len()).collect();
    let mut layers = vec![
        json!({"data": parts.data(), "transform": [key.named(), named(&names(), "part", "cause"),
            {"calculate": "datum.to - datum.from", "as": "length"}],
         "mark": {"type": "bar", "height": bar, "yOffset": lower, "y2Offset": lower, "stroke": NEUTRAL,
            "strokeWidth": 0.7},
         "encoding": {"x": along("from"), "x2": {"field": "to"}, "y": y,
            "color": {"field": "part", "type": "nominal", "legend": null,
                "scale": {"domain": domain, "range": COLOURS}},
            "tooltip": [{"field": "line", "title": key.title()}, {"field": "cause", "title": "part"},
                {"field": "length", "title": "ms", "format": ",.4~g"}]}}),
        json!({"data": ends.data(), "transform": [key.named()],
            "mark": {"type": "text", "align": "left", "dx": 4, "dy": lower, "fontSize": 11, "color": "#222"},
         "encoding": {"x": along("fct"), "y": y, "text": {"field": "fct", "type": "quantitative",
             "format": ",.0f"}}}),
    ];
    if !is_beside {
        let values: Vec<Value> =
            shown.iter().zip(&lines).map(|(name, text)| json!({"line": name, "text": text})).collect();
        let mut top = y.clone();
        top["bandPosition"] = json!(0);
        layers.push(json!({"data": {"values": values},
            "mark": {"type": "text", "align": "left", "baseline": "top", "dx": 2, "dy": 3, "fontSize": 10.5,
                "lineBreak": "\n", "lineHeight": 12, "limit": {"expr": "width"}, "color": "#222"},
            "encoding": {"x": {"value": 0}, "y": top, "text": {"field": "text"}}}));
    }
    let height = step * shown.len();
    Some(json!({"title": title, "description": aria, "width": 300, "height": height, "layer": layers}))
}
