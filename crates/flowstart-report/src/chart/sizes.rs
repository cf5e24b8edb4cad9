//! Lines show the speed-up over the baseline against the transfer size.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{item, scheme_legend};
use super::style::{NEUTRAL, colours, dashes, shapes};
use super::table::{Table, named};
use crate::Cell;
use crate::group::{Axis, Names};
use crate::number::{finite, interval};
use serde_json::json;

/// Sizes from which on a line says more than the table.
const FEWEST: usize = 4;
/// Dashes of the line that counts round trips.
const ROUNDS: [u32; 2] = [1, 4];

/// A panel for each link, AQM and competitor, a line for each scheme, and beside them what the closed form of slow
/// start leaves to gain. Nothing with few sizes.
pub(crate) fn sizes(cells: &[Cell], schemes: &[String], names: &Names) -> Option<Chart> {
    let place = |cell: &Cell| [&cell.link, &cell.aqm, &cell.competitor].map(String::clone);
    let mut places: Vec<[String; 3]> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.load.is_none()) {
        if !places.contains(&place(cell)) {
            places.push(place(cell));
        }
    }
    let mut panels = Vec::new();
    let mut row = Vec::new();
    let (mut modelled, mut counted) = (false, false);
    for shown in &places {
        let here: Vec<&Cell> = cells.iter().filter(|cell| cell.load.is_none() && place(cell) == *shown).collect();
        let mut bytes: Vec<u64> = here.iter().map(|cell| cell.size_bytes).collect();
        bytes.sort_unstable();
        bytes.dedup();
        let mut table = Table::new(&["i", "x", "y", "low", "high"]);
        for cell in &here {
            let (Some(i), Some(y)) = (schemes.iter().position(|n| *n == cell.scheme), finite(cell.speedup.mean)) else {
                continue;
            };
            let [low, high] = interval(cell.speedup).unwrap_or([y, y]);
            table.push(&[i as f64, cell.size_bytes as f64 / 1e3, y, low, high]);
        }
        if bytes.len() < FEWEST || table.is_empty() {
            continue;
        }
        let mut model = Table::new(&["x", "y"]);
        for cell in here.iter().filter(|cell| cell.is_baseline) {
            if let Some(y) = finite(cell.model_speedup) {
                model.push(&[cell.size_bytes as f64 / 1e3, y]);
            }
        }
        modelled |= !model.is_empty();
        let mut rounds = Table::new(&["i", "x", "y"]);
        for cell in &here {
            let i = schemes.iter().position(|name| *name == cell.scheme);
            if let (Some(i), Some(y)) = (i, finite(cell.rounds_speedup)) {
                rounds.push(&[i as f64, cell.size_bytes as f64 / 1e3, y]);
            }
        }
        counted |= !rounds.is_empty();
        let [link, aqm, competitor] = shown;
        let several = |k: usize| places.iter().any(|other| other[k] != shown[k]);
        let mut title = names.short_of(Axis::Link, link).to_owned();
        for (k, name) in [(1, aqm), (2, competitor)] {
            if several(k) {
                title.push_str(&format!(", {name}"));
            }
        }
        let aria = format!("{title}: speed-up against the transfer size, one line per scheme");
        let x = json!({"field": "x", "type": "quantitative", "title": "transfer size (KB)", "scale": {"type": "log"},
            "axis": {"format": "~s"}});
        let y = json!({"field": "y", "type": "quantitative", "title": "speed-up (baseline's mean FCT / mean FCT)",
            "scale": {"zero": false}});
        let colour = json!({"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)});
        panels.push(json!({
            "title": {"text": title, "fontSize": 11, "limit": 560}, "description": aria, "width": 560, "height": 340,
            "data": table.data(),
            "transform": [named(schemes, "i", "scheme")],
            "layer": [
                {"data": {"values": [{"y": 1}]}, "transform": [],
                 "mark": {"type": "rule", "color": NEUTRAL, "strokeDash": [2, 2]}, "encoding": {"y": y}},
                {"data": model.data(), "transform": [],
                 "mark": {"type": "line", "color": NEUTRAL, "strokeWidth": 4, "opacity": 0.45},
                 "encoding": {"x": x, "y": y}},
                {"data": rounds.data(), "transform": [],
                    "mark": {"type": "line", "color": NEUTRAL, "strokeDash": ROUNDS},
                 "encoding": {"x": x, "y": y, "detail": {"field": "i", "type": "nominal"}}},
                {"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
                 "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"},
                     "color": colour}},
                {"mark": {"type": "line"},
                 "encoding": {"x": x, "y": y, "color": colour,
                    "strokeDash": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": dashes(schemes)}}},
                {"mark": {"type": "point", "filled": true, "size": 55, "opacity": 1},
                 "encoding": {"x": x, "y": y, "color": colour,
                    "shape": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": shapes(schemes)},
                    "tooltip": [{"field": "scheme", "title": "scheme"},
                        {"field": "x", "title": "size (KB)", "format": ",.4~g"},
                        {"field": "y", "title": "speed-up", "format": ".3~g"},
                        {"field": "low", "title": "95 % from", "format": ".3~g"},
                        {"field": "high", "title": "to", "format": ".3~g"}]}}
            ]
        }));
        row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend = scheme_legend(schemes, true);
    if modelled {
        legend.push(item("wide line: slow start's closed form over the physical limit", NEUTRAL, &[1, 0], 4.0));
    }
    if counted {
        legend.push(item("dotted: Quick-Start by round trips, equation (2)", NEUTRAL, &ROUNDS, 2.0));
    }
    legend.push(item("vertical bar: 95 % interval", NEUTRAL, &[1, 0], 1.0));
    let columns = if panels.len() > 1 { 2 } else { 1 };
    Some(Chart {
        id: "sizes".to_owned(),
        title: "Speed-up against transfer size".to_owned(),
        sentence: "Higher is sooner, and 1 is the baseline. The wide line is what counting says that there is to \
            gain: slow start's \
            rounds over the physical limit. A scheme below it leaves time unused. One above it beats a slow start \
            that takes longer \
            than counted, because acknowledgements are delayed or packets are lost."
            .to_owned(),
        aria: "Line charts of the speed-up against the transfer size".to_owned(),
        columns,
        legend,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("Speed-up against the transfer size", columns, &panels),
        ..Chart::default()
    })
}
