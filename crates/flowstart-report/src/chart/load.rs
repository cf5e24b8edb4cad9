//! Lines show the mean FCT against the load that the measured flows offer.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{item, scheme_legend};
use super::style::{NEUTRAL, colours, dashes, shapes};
use super::table::{Table, named};
use crate::Cell;
use crate::group::{Axis, Names};
use crate::number::{finite, interval};
use serde_json::json;

/// A panel for each link, AQM, competitor and size, a line for each scheme. Nothing with fewer than two loads.
pub(crate) fn loads(cells: &[Cell], schemes: &[String], names: &Names) -> Option<Chart> {
    let known: Vec<(&Cell, f64)> =
        cells.iter().filter_map(|cell| Some((cell, finite(cell.load).filter(|load| *load > 0.0)?))).collect();
    let first = known.first()?.1;
    if known.iter().all(|(_, load)| *load == first) {
        return None;
    }
    let place = |cell: &Cell| [&cell.link, &cell.aqm, &cell.competitor, &cell.size].map(String::clone);
    let mut places: Vec<[String; 4]> = Vec::new();
    for (cell, _) in &known {
        if !places.contains(&place(cell)) {
            places.push(place(cell));
        }
    }
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for shown in &places {
        let mut table = Table::new(&["i", "x", "y", "low", "high"]);
        let mut highest = 0.0_f64;
        for (cell, load) in known.iter().filter(|(cell, _)| place(cell) == *shown) {
            let (Some(i), Some(y)) = (schemes.iter().position(|n| *n == cell.scheme), finite(cell.fct_ms.mean)) else {
                continue;
            };
            let [low, high] = interval(cell.fct_ms).unwrap_or([y, y]);
            highest = highest.max(high).max(y);
            table.push(&[i as f64, load * 100.0, y, low, high]);
        }
        let [link, aqm, competitor, size] = shown;
        // What all panels share is said in the table.
        let several = |k: usize| places.iter().any(|other| other[k] != shown[k]);
        let mut title = format!("{}, {size}", names.short_of(Axis::Link, link));
        for (k, name) in [(1, aqm), (2, competitor)] {
            if several(k) {
                title.push_str(&format!(", {name}"));
            }
        }
        let aria = format!("{title}: mean FCT against the offered load, one line per scheme");
        let x = json!({"field": "x", "type": "quantitative", "title": "offered load (% of the link's rate)",
            "scale": {"zero": true, "nice": false, "padding": 8}});
        let y = json!({"field": "y", "type": "quantitative", "title": "mean FCT (ms)",
            "scale": {"domain": [0, (highest * 1.05).max(0.001)], "nice": false},
            "axis": {"tickCount": 6, "minExtent": 40}});
        let colour = json!({"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)});
        panels.push(json!({
            "title": {"text": title, "fontSize": 11, "limit": 560}, "description": aria, "width": 560, "height": 340,
            "data": table.data(),
            "transform": [named(schemes, "i", "scheme")],
            "layer": [
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
                        {"field": "x", "title": "load (%)", "format": ".3~g"},
                        {"field": "y", "title": "mean FCT (ms)", "format": ",.4~g"},
                        {"field": "low", "title": "95 % from", "format": ",.4~g"},
                        {"field": "high", "title": "to", "format": ",.4~g"}]}}
            ]
        }));
        row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
    }
    let mut legend = scheme_legend(schemes, true);
    legend.push(item("vertical bar: 95 % interval of the mean over repetitions", NEUTRAL, &[1, 0], 1.0));
    let columns = if panels.len() > 1 { 2 } else { 1 };
    Some(Chart {
        id: "loads".to_owned(),
        title: "Mean FCT against offered load".to_owned(),
        sentence:
            "Lower is sooner. Every transfer of a run uses the line's scheme, and to the right they meet each other \
            more often: \
            a line that rises faster than the baseline's loses its advantage as the load grows."
                .to_owned(),
        aria: "Line charts of the mean FCT against the offered load".to_owned(),
        columns,
        legend,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("Mean FCT against the offered load", columns, &panels),
        ..Chart::default()
    })
}
