//! Lines of means with their intervals over a quantity that the experiment varies: one for each line of the key.

use super::key::Key;
use super::table::Table;
use crate::group::{Axis, Names};
use crate::number::{finite, interval};
use crate::{Cell, Estimate};
use serde_json::{Value, json};

/// The columns of the data: the place in the key, the quantity, the mean and its interval.
pub(super) const COLUMNS: [&str; 5] = ["i", "x", "y", "low", "high"];

/// Adds a point, and says how high it reaches. Nothing without a mean.
pub(super) fn push(table: &mut Table, place: usize, x: f64, y: Estimate) -> Option<f64> {
    let mean = finite(y.mean)?;
    let [low, high] = interval(y).unwrap_or([mean, mean]);
    table.push(&[place as f64, x, mean, low, high]);
    Some(high.max(mean))
}

/// Intervals, lines and marks. `named` is what tooltips call the quantity and the mean, each with its format.
pub(super) fn layers(key: &Key, x: &Value, y: &Value, named: [(&str, &str); 2]) -> [Value; 3] {
    let [(of_x, format_x), (of_y, format_y)] = named;
    let colour = key.colour();
    [
        json!({"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
            "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"},
                "color": colour}}),
        json!({"mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour, "strokeDash": key.dash()}}),
        json!({"mark": {"type": "point", "filled": true, "size": 55, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "shape": key.shape(),
                "tooltip": [{"field": "line", "title": key.title()},
                    {"field": "x", "title": of_x, "format": format_x},
                    {"field": "y", "title": of_y, "format": format_y},
                    {"field": "low", "title": "95 % from", "format": format_y},
                    {"field": "high", "title": "to", "format": format_y}]}}),
    ]
}

/// What a panel shows: its place, the link where there is one place, and its scheme if it has one of its own.
pub(super) fn panel_title(names: &Names, cells: &[&Cell], place: &str, scheme: &str) -> String {
    let link = cells.first().map_or("", |cell| names.short(Axis::Link, cell));
    let place = if place.is_empty() { link } else { place };
    if scheme.is_empty() { place.to_owned() } else { format!("{place}, {scheme}") }
}
