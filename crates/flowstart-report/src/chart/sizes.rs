//! Lines show the speed-up over the baseline against the transfer size.

use super::document::{Chart, Panel, Row, grid_document};
use super::key::Key;
use super::legend::item;
use super::lines::{COLUMNS, layers, panel_title, push};
use super::style::NEUTRAL;
use super::table::Table;
use crate::Cell;
use crate::baseline::{alike, compared};
use crate::group::{Axis, Names, distinct};
use crate::number::finite;
use crate::time::time_words;
use serde_json::json;

/// Sizes from which on a line says more than the table.
const FEWEST: usize = 4;
/// Dashes of the line that counts round trips.
const ROUNDS: [u32; 2] = [1, 4];

/// In what cells of one panel are alike.
const PLACE: [Axis; 3] = [Axis::Link, Axis::Competitor, Axis::Transport];

/// A panel for each link, competitor and transport, a line for each AQM and scheme, and beside them what the closed
/// form of slow start leaves to gain. Nothing with few sizes.
pub(crate) fn sizes(cells: &[Cell], names: &Names, key: &Key) -> Option<Chart> {
    let comparisons = alike(compared(cells));
    let is_shown = |cell: &Cell| comparisons.iter().any(|(one, _)| std::ptr::eq(*one, cell));
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.load.is_none()).collect();
    let time = time_words(cells.iter().copied()).name;
    let mut panels = Vec::new();
    let mut row = Vec::new();
    let (mut modelled, mut counted) = (false, false);
    for place in distinct(cells.iter().map(|cell| names.label(cell, &PLACE))) {
        let here: Vec<&Cell> = cells.iter().copied().filter(|cell| names.label(cell, &PLACE) == place).collect();
        let mut bytes: Vec<u64> = here.iter().map(|cell| cell.size_bytes).collect();
        bytes.sort_unstable();
        bytes.dedup();
        if bytes.len() < FEWEST {
            continue;
        }
        let mut model = Table::new(&["x", "y"]);
        for cell in here.iter().filter(|cell| cell.is_baseline) {
            if let Some(y) = finite(cell.model_speedup) {
                model.push(&[kilobytes(cell), y]);
            }
        }
        modelled |= !model.is_empty();
        for (scheme, here) in key.panels(&here) {
            let mut table = Table::new(&COLUMNS);
            let mut rounds = Table::new(&["i", "x", "y"]);
            for cell in here.iter().filter(|cell| is_shown(cell)) {
                let Some(line) = key.place(cell) else { continue };
                push(&mut table, line, kilobytes(cell), cell.speedup);
                if let Some(y) = finite(cell.rounds_speedup) {
                    rounds.push(&[line as f64, kilobytes(cell), y]);
                }
            }
            if table.is_empty() {
                continue;
            }
            let title = panel_title(names, &here, &place, &scheme);
            let aria = format!("{title}: speed-up against the transfer size, one line per {}", key.title());
            let x = json!({"field": "x", "type": "quantitative", "title": "transfer size (KB)",
                "scale": {"type": "log"}, "axis": {"format": "~s"}});
            let y = json!({"field": "y", "type": "quantitative", "title": format!("speed-up (baseline's mean {time} / mean {time})"),
                "scale": {"zero": false}});
            let mut all = vec![json!({"data": {"values": [{"y": 1}]}, "transform": [],
                "mark": {"type": "rule", "color": NEUTRAL, "strokeDash": [2, 2]}, "encoding": {"y": y}})];
            // Vega warns of a scale without data.
            if !model.is_empty() {
                all.push(json!({"data": model.clone().data(), "transform": [],
                    "mark": {"type": "line", "color": NEUTRAL, "strokeWidth": 4, "opacity": 0.45},
                    "encoding": {"x": x, "y": y}}));
            }
            if !rounds.is_empty() {
                counted = true;
                all.push(json!({"data": rounds.data(), "transform": [],
                    "mark": {"type": "line", "color": NEUTRAL, "strokeDash": ROUNDS},
                    "encoding": {"x": x, "y": y, "detail": {"field": "i", "type": "nominal"}}}));
            }
            all.extend(layers(key, &x, &y, [("size (KB)", ",.4~g"), ("speed-up", ".3~g")]));
            panels.push(json!({
                "title": {"text": title, "fontSize": 11, "limit": 560}, "description": aria, "width": 560,
                "height": 340, "data": table.data(), "transform": [key.named()], "layer": all
            }));
            row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
        }
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend = key.legend(true, |_| true);
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
            gain: slow start's rounds over the physical limit. A scheme below it leaves time unused. One above it \
            beats a slow start that takes longer than counted, because acknowledgements are delayed or packets are \
            lost."
            .to_owned(),
        aria: "Line charts of the speed-up against the transfer size".to_owned(),
        columns,
        legend,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("Speed-up against the transfer size", columns, &panels),
        ..Chart::default()
    })
}

fn kilobytes(cell: &Cell) -> f64 {
    cell.size_bytes as f64 / 1e3
}
