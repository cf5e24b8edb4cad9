//! Points show our speed-up against the published one.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{LegendItem, item, scheme_legend};
use super::style::{NEUTRAL, colours, shapes};
use super::table::{Table, named};
use crate::PublishedCell;
use crate::number::{finite, interval};
use serde_json::json;

/// Our speed-up against the published one.
pub(crate) fn published(cells: &[PublishedCell], links: &[String]) -> Option<Chart> {
    let mut table = Table::new(&["i", "x", "y", "low", "high", "estimate", "cell"]);
    let mut ends: Vec<f64> = Vec::new();
    for (k, cell) in cells.iter().enumerate() {
        let positive = |v: Option<f64>| finite(v).filter(|v| *v > 0.0);
        let (Some(x), Some(y)) = (positive(cell.published_speedup), positive(cell.ours_speedup.mean)) else {
            continue;
        };
        let [low, high] = interval(cell.ours_speedup).filter(|[low, _]| *low > 0.0).unwrap_or([y, y]);
        let Some(i) = links.iter().position(|l| *l == cell.link) else {
            continue;
        };
        ends.extend([x, y, low, high]);
        table.push(&[i as f64, x, y, low, high, cell.estimate, k as f64]);
    }
    let low = ends.iter().copied().reduce(f64::min)? / 1.06;
    let high = ends.iter().copied().reduce(f64::max)? * 1.06;
    let names: Vec<String> = cells.iter().map(|c| c.size.clone()).collect();
    let scale = json!({"type": "log", "domain": [low, high], "nice": false});
    let ticks: Vec<f64> = [0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0]
        .into_iter()
        .filter(|t| (low..=high).contains(t))
        .collect();
    let axis = json!({"values": ticks, "format": "~g"});
    let colour = json!({"field": "link", "type": "nominal", "title": "link", "scale": colours(links)});
    let x = json!({"field": "x", "type": "quantitative", "title": "published speed-up (log scale)", "scale": scale,
        "axis": axis});
    let y = json!({"field": "y", "type": "quantitative", "title": "our speed-up (log scale)", "scale": scale,
        "axis": axis});
    let title = "Our speed-up against the published one";
    let panel = json!({
        "description": title, "width": 440, "height": 180,
        "data": table.data(),
        "transform": [named(links, "i", "link"), named(&names, "cell", "size")],
        "layer": [
            {"data": {"values": [{"a": low, "b": low}, {"a": high, "b": high}]},
             "mark": {"type": "line", "color": "#888", "strokeWidth": 1, "strokeDash": [4, 3]},
             "encoding": {"x": {"field": "a", "type": "quantitative"}, "y": {"field": "b", "type": "quantitative"}}},
            {"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
             "encoding": {"x": x, "y": {"field": "low", "type": "quantitative", "scale": scale},
                 "y2": {"field": "high"}, "color": colour}},
            {"mark": {"type": "point", "filled": true, "size": 70, "opacity": 0.9, "stroke": "white",
                "strokeWidth": 0.6},
             "encoding": {"x": x, "y": y, "color": colour,
                "shape": {"field": "link", "type": "nominal", "title": "link", "scale": shapes(links)},
                "tooltip": [{"field": "link", "title": "link"}, {"field": "size", "title": "size"},
                    {"field": "estimate", "title": "estimate"},
                    {"field": "y", "title": "ours", "format": ".3~g"},
                    {"field": "x", "title": "published", "format": ".3~g"}]}}
        ]
    });
    let mut legend: Vec<LegendItem> =
        scheme_legend(links, false).into_iter().map(|entry| LegendItem { line: false, ..entry }).collect();
    legend.push(item("dashed diagonal: equal", "#888888", &[4, 3], 1.0));
    legend.push(item("vertical bar: our 95 % interval", NEUTRAL, &[1, 0], 1.0));
    Some(Chart {
        id: "published-scatter".to_owned(),
        title: title.to_owned(),
        sentence:
            "On the diagonal both agree; above it our speed-up is larger than the published one, below it is smaller."
                .to_owned(),
        aria: "Scatter chart of our speed-up against the published one, one point per cell".to_owned(),
        columns: 1,
        legend,
        rows: vec![Row {
            label: String::new(),
            panels: vec![Panel { index: Some(0), aria: title.to_owned(), missing: String::new() }],
        }],
        spec: grid_document(title, 1, &[panel]),
        ..Chart::default()
    })
}
