//! Points show the completion time of each connection against its size.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::scheme_legend;
use super::style::{colours, shapes};
use super::table::{Table, named};
use crate::Cell;
use crate::group::distinct;
use crate::names::shortened;
use serde_json::json;

/// Points from which on vector pictures are slow.
const MANY: usize = 2000;

/// A panel for each link and size, a point for each connection, a shape for each scheme.
pub(crate) fn scatter(cells: &[Cell], schemes: &[String]) -> Option<Chart> {
    let with: Vec<&Cell> = cells.iter().filter(|cell| !cell.samples.size_fct.is_empty()).collect();
    let places = distinct(with.iter().map(|cell| &cell.link));
    let sizes = distinct(with.iter().map(|cell| &cell.size));
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for (link, size) in places.iter().flat_map(|link| sizes.iter().map(move |size| (link, size))) {
        let mut table = Table::new(&["i", "x", "y"]);
        for cell in with.iter().filter(|cell| cell.link == *link && cell.size == *size) {
            let Some(i) = schemes.iter().position(|name| *name == cell.scheme) else { continue };
            for [bytes, fct] in cell.samples.size_fct.iter().filter(|[bytes, fct]| *bytes > 0.0 && *fct > 0.0) {
                table.push(&[i as f64, bytes / 1e3, fct / 1e3]);
            }
        }
        if table.is_empty() {
            continue;
        }
        let title = if sizes.len() > 1 { format!("{}, {size}", shortened(link, 40)) } else { shortened(link, 60) };
        let aria = format!("{title}: completion time of each connection against its size");
        let by = |scale| json!({"field": "scheme", "type": "nominal", "title": "scheme", "scale": scale});
        panels.push(json!({
            "title": title, "description": aria, "width": 480, "height": 360,
            "data": table.data(),
            "transform": [named(schemes, "i", "scheme")],
            "mark": {"type": "point", "filled": false, "size": 26, "strokeWidth": 1.1, "opacity": 0.75},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": "size (KB)", "scale": {"type": "log"},
                    "axis": {"format": "~s"}},
                "y": {"field": "y", "type": "quantitative", "title": "FCT (s)", "scale": {"type": "log"},
                    "axis": {"format": "~g"}},
                "color": by(colours(schemes)), "shape": by(shapes(schemes))}
        }));
        row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
    }
    if panels.is_empty() {
        return None;
    }
    let points: usize = with.iter().map(|cell| cell.samples.size_fct.len()).sum();
    Some(Chart {
        id: "connections".to_owned(),
        title: "Each connection".to_owned(),
        sentence: "One point is one connection of the first repetition, from the first packet of its handshake to its \
            last byte. The \
            same objects are fetched with every scheme."
            .to_owned(),
        aria: "Scatter plots of the completion time against the size of each connection".to_owned(),
        columns: if panels.len() > 1 { 2 } else { 1 },
        renderer: if points > MANY { "canvas" } else { "svg" },
        legend: scheme_legend(schemes, false),
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("Completion time of each connection against its size", 2, &panels),
        ..Chart::default()
    })
}
