//! Lines show the mean FCT against the load that the measured flows offer.

use super::document::{Chart, Panel, Row, grid_document};
use super::key::Key;
use super::legend::item;
use super::lines::{COLUMNS, layers, panel_title, push};
use super::style::NEUTRAL;
use super::table::Table;
use crate::Cell;
use crate::group::{Axis, Names, distinct};
use crate::number::finite;
use crate::time::time_words;
use serde_json::json;

/// In what cells of one panel are alike.
const PLACE: [Axis; 4] = [Axis::Link, Axis::Competitor, Axis::Transport, Axis::Size];

/// A panel for each link, competitor, transport and size, a line for each AQM and scheme. Nothing with fewer than two
/// loads.
pub(crate) fn loads(cells: &[Cell], names: &Names, key: &Key) -> Option<Chart> {
    let known: Vec<(&Cell, f64)> =
        cells.iter().filter_map(|cell| Some((cell, finite(cell.load).filter(|load| *load > 0.0)?))).collect();
    let first = known.first()?.1;
    if known.iter().all(|(_, load)| *load == first) {
        return None;
    }
    let time = time_words(known.iter().map(|(cell, _)| *cell)).name;
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for place in distinct(known.iter().map(|(cell, _)| names.label(cell, &PLACE))) {
        let here: Vec<&Cell> =
            known.iter().map(|(cell, _)| *cell).filter(|cell| names.label(cell, &PLACE) == place).collect();
        for (scheme, here) in key.panels(&here) {
            let mut table = Table::new(&COLUMNS);
            let mut highest = 0.0_f64;
            for cell in &here {
                let (Some(line), Some(load)) = (key.place(cell), finite(cell.load)) else { continue };
                highest = push(&mut table, line, load * 100.0, cell.fct_ms).map_or(highest, |top| highest.max(top));
            }
            let title = panel_title(names, &here, &place, &scheme);
            let aria = format!("{title}: mean {time} against the offered load, one line per {}", key.title());
            let x = json!({"field": "x", "type": "quantitative", "title": "offered load (% of the link's rate)",
                "scale": {"zero": true, "nice": false, "padding": 8}});
            let y = json!({"field": "y", "type": "quantitative", "title": format!("mean {time} (ms)"),
                "scale": {"domain": [0, (highest * 1.05).max(0.001)], "nice": false},
                "axis": {"tickCount": 6, "minExtent": 40}});
            panels.push(json!({
                "title": {"text": title, "fontSize": 11, "limit": 560}, "description": aria, "width": 560,
                "height": 340, "data": table.data(), "transform": [key.named()],
                "layer": layers(key, &x, &y, [("load (%)", ".3~g"), (&*format!("mean {time} (ms)"), ",.4~g")])
            }));
            row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
        }
    }
    let mut legend = key.legend(true, |_| true);
    legend.push(item("vertical bar: 95 % interval of the mean over repetitions", NEUTRAL, &[1, 0], 1.0));
    let columns = if panels.len() > 1 { 2 } else { 1 };
    Some(Chart {
        id: "loads".to_owned(),
        title: format!("Mean {time} against offered load"),
        sentence:
            "Lower is sooner. Every transfer of a run uses the line's scheme, and to the right they meet each other \
            more often: a line that rises faster than the baseline's loses its advantage as the load grows."
                .to_owned(),
        aria: format!("Line charts of the mean {time} against the offered load"),
        columns,
        legend,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document(&format!("Mean {time} against the offered load"), columns, &panels),
        ..Chart::default()
    })
}
