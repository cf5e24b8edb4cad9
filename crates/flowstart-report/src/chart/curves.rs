//! Curves show metrics against a quantity that the experiment varies: a panel for each metric, a line for each variant.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{item, scheme_legend};
use super::style::{NEUTRAL, colours, dashes, shapes};
use super::table::{Table, named};
use crate::group::distinct;
use crate::number::{finite, interval};
use crate::{Cell, CurvePoint};
use serde_json::json;

/// The curves that the points of all cells make up. A panel where everything is zero is left out.
pub(crate) fn curves(cells: &[Cell]) -> Option<Chart> {
    let points: Vec<&CurvePoint> = cells.iter().flat_map(|cell| &cell.curves).collect();
    let axis = points.first()?.x_title.clone();
    let variants = distinct(points.iter().map(|point| &point.variant));
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for metric in distinct(points.iter().map(|point| &point.metric)) {
        let mut table = Table::new(&["i", "x", "y", "low", "high"]);
        let (mut lowest, mut highest) = (0.0_f64, 0.0_f64);
        for point in points.iter().filter(|point| point.metric == metric) {
            let (Some(i), Some(y)) = (variants.iter().position(|n| *n == point.variant), finite(point.y.mean)) else {
                continue;
            };
            let [low, high] = interval(point.y).unwrap_or([y, y]);
            highest = highest.max(high).max(y);
            lowest = lowest.min(low).min(y);
            table.push(&[i as f64, point.x, y, low, high]);
        }
        if table.is_empty() || highest <= 0.0 {
            continue;
        }
        let aria = format!("{metric} against {axis}, one line per variant");
        let x = json!({"field": "x", "type": "quantitative", "title": axis,
            "scale": {"zero": true, "nice": false, "padding": 8}});
        let bottom = if lowest < 0.0 { json!(lowest * 1.05) } else { json!(0) };
        let y = json!({"field": "y", "type": "quantitative", "title": metric,
            "scale": {"domain": [bottom, highest * 1.05], "nice": false}, "axis": {"tickCount": 6, "minExtent": 40}});
        let by = |scale| json!({"field": "variant", "type": "nominal", "title": "variant", "scale": scale});
        let colour = by(colours(&variants));
        panels.push(json!({
            "title": metric, "description": aria, "width": 480, "height": 260,
            "data": table.data(),
            "transform": [named(&variants, "i", "variant")],
            "layer": [
                {"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6, "clip": true},
                 "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"},
                     "color": colour}},
                {"mark": {"type": "line"},
                 "encoding": {"x": x, "y": y, "color": colour, "strokeDash": by(dashes(&variants))}},
                {"mark": {"type": "point", "filled": true, "size": 45, "opacity": 1},
                 "encoding": {"x": x, "y": y, "color": colour, "shape": by(shapes(&variants)),
                    "tooltip": [{"field": "variant", "title": "variant"}, {"field": "x", "title": axis},
                        {"field": "y", "title": metric, "format": ",.4~g"},
                        {"field": "low", "title": "95 % from", "format": ",.4~g"},
                        {"field": "high", "title": "to", "format": ",.4~g"}]}}
            ]
        }));
        row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend = scheme_legend(&variants, true);
    legend.push(item("vertical bar: 95 % interval of the mean over repetitions", NEUTRAL, &[1, 0], 1.0));
    let title = format!("Metrics against {axis}");
    Some(Chart {
        id: "curves".to_owned(),
        sentence: "Lines of one shape are one variant in every panel. Points are means over the repetitions; where \
            bars of two lines \
            overlap widely, the runs do not tell them apart."
            .to_owned(),
        aria: format!("Line charts against {axis}"),
        columns: 2,
        legend,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document(&title, 2, &panels),
        title,
        ..Chart::default()
    })
}
