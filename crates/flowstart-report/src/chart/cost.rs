//! The Pareto picture shows what the speed costs.

use super::document::{Chart, Panel, Row, grid_document};
use super::key::Key;
use super::legend::mark_item;
use super::style::NEUTRAL;
use super::table::{Table, named};
use crate::Cell;
use crate::group::Group;
use crate::number::finite;
use crate::pareto::{harm_in, units_of_harm};
use crate::reduce::median;
use serde_json::{Value, json};

/// A cost, which is one of two.
#[derive(Clone, Copy, PartialEq)]
enum Cost {
    Inflation,
    /// Harm to others, in a unit.
    Harm(&'static str),
}

impl Cost {
    fn of(self, cell: &Cell) -> Option<f64> {
        match self {
            Self::Inflation => finite(cell.inflation.mean).map(|share| share * 100.0),
            Self::Harm(unit) => harm_in(unit, cell),
        }
    }
}

/// FCT over the limit.
fn factor(cell: &Cell) -> Option<f64> {
    let limit = finite(cell.ideal_fct_ms).filter(|limit| *limit > 0.0)?;
    finite(cell.fct_ms.mean).map(|fct| fct / limit).filter(|factor| *factor > 0.0)
}

/// FCT over the limit against inflation and against harm to others: panels that share their axes, one for each group
/// and cost.
pub(crate) fn pareto(groups: &[Group<'_>], key: &Key) -> Option<Chart> {
    let all: Vec<&Cell> = groups.iter().flat_map(|group| group.cells.clone()).collect();
    let slowest = all.iter().filter_map(|cell| factor(cell)).reduce(f64::max)?;
    // The same sizes keep the same mark size everywhere.
    let mut sizes: Vec<(u64, String)> = all.iter().map(|cell| (cell.size_bytes, cell.size.clone())).collect();
    sizes.sort();
    sizes.dedup();
    let sizes: Vec<String> = sizes.into_iter().map(|(_, name)| name).collect();
    let units = units_of_harm(&all);
    let mut panels = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for cost in std::iter::once(Cost::Inflation).chain(units.iter().map(|unit| Cost::Harm(unit))) {
        let mut row = Vec::new();
        let heights: Vec<f64> = all.iter().filter_map(|cell| cost.of(cell)).collect();
        let height = if groups.len() > 2 { 90 } else { 170 };
        let Some(axes) = Axes::of(cost, slowest, &heights) else { continue };
        for group in groups {
            for (scheme, cells) in key.panels(&group.cells) {
                let parts = [if groups.len() > 1 { group.label.as_str() } else { "" }, scheme.as_str()];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let title = if parts.is_empty() { axes.name.to_owned() } else { parts.join(", ") };
                let aria = format!("{title}: FCT over the physical limit against {}, a mark per cell", axes.title);
                let Some(panel) = axes.panel(&cells, &title, &sizes, key, &aria) else { continue };
                let mut panel = panel;
                panel["height"] = json!(height);
                panels.push(panel);
                row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
            }
        }
        match rows.first_mut().filter(|_| groups.len() == 1 && !key.is_split) {
            Some(first) => first.panels.extend(row),
            None => rows.push(Row { label: String::new(), panels: row }),
        }
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend = key.legend(false, |_| true);
    if sizes.len() > 1 {
        legend.push(mark_item(&format!("larger mark = larger transfer ({})", sizes.join(", ")), NEUTRAL, "sizes"));
    }
    let columns = rows.iter().map(|row| row.panels.len()).max().unwrap_or(1).clamp(1, 4);
    Some(Chart {
        id: "pareto".to_owned(),
        title: "What the speed costs".to_owned(),
        sentence: format!(
            "The physical limit is the time of a sender that knows the path and has it for itself. The best place is the lower left corner: fast, without sending bytes twice{}; a mark that has another one \
            of its size both to its left and below it is beaten in both respects.{}",
            if units.is_empty() { "" } else { " and without taking goodput or time from others" },
            if units.is_empty() { " No other flow uses the link, so nobody is harmed." } else { "" }
        ),
        aria: "Scatter charts of FCT over the physical limit against inflation and against harm to others".to_owned(),
        columns,
        legend,
        rows,
        spec: grid_document("FCT over the physical limit against inflation and harm to others", columns, &panels),
        ..Chart::default()
    })
}

/// The axes that all panels of a cost share.
struct Axes {
    cost: Cost,
    name: &'static str,
    title: String,
    scale: &'static str,
    domain: [f64; 2],
    slowest: f64,
}

impl Axes {
    fn of(cost: Cost, slowest: f64, heights: &[f64]) -> Option<Self> {
        let high = heights.iter().copied().reduce(f64::max)?.max(0.0);
        let low = heights.iter().copied().reduce(f64::min)?.min(0.0);
        // Whole marks at the edges, and an axis even when everything is 0.
        let pad = ((high - low) * 0.08).max(0.01);
        // One scheme that sends everything twice must not press the others onto the axis.
        let squeezed = low >= 0.0 && median(heights).is_some_and(|middle| middle < high / 10.0);
        let (name, unit) = match cost {
            Cost::Inflation => ("sent twice", "%"),
            Cost::Harm("ms") => ("harm to others", "ms later"),
            Cost::Harm(unit) => ("harm to others", unit),
        };
        Some(Self {
            cost,
            name,
            title: format!("{} ({unit}{})", name.replace(" to others", ""), if squeezed { ", sqrt" } else { "" }),
            scale: if squeezed { "sqrt" } else { "linear" },
            domain: [if low < 0.0 { low - pad } else { 0.0 }, high + pad],
            slowest,
        })
    }

    fn panel(&self, cells: &[&Cell], title: &str, sizes: &[String], key: &Key, aria: &str) -> Option<Value> {
        let area = |i: usize| match sizes.len() {
            1 => 80.0,
            several => 40.0 + 100.0 * i as f64 / (several - 1) as f64,
        };
        let mut table = Table::new(&["i", "s", "area", "x", "y", "fct"]);
        for cell in cells {
            let place = (key.place(cell), sizes.iter().position(|size| *size == cell.size));
            let values = (factor(cell), self.cost.of(cell), finite(cell.fct_ms.mean));
            let ((Some(i), Some(s)), (Some(x), Some(y), Some(fct))) = (place, values) else { continue };
            table.push(&[i as f64, s as f64, area(s), x, y, fct]);
        }
        if table.is_empty() {
            return None;
        }
        Some(json!({
            "title": title, "description": aria, "width": 460,
            "data": table.data(),
            "transform": [key.named(), named(sizes, "s", "size")],
            "mark": {"type": "point", "filled": true, "opacity": 0.85, "stroke": "#ffffff", "strokeWidth": 0.6},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": "FCT / physical limit (log scale)",
                    "scale": {"type": "log", "domain": [1, (self.slowest * 1.1).max(2.0)], "nice": false},
                    "axis": {"values": [1, 1.5, 2, 3, 4, 6, 10, 20, 50, 100, 1000], "format": "~r"}},
                "y": {"field": "y", "type": "quantitative", "title": self.title,
                    "scale": {"type": self.scale, "domain": self.domain, "nice": false},
                    "axis": {"tickCount": 4, "minExtent": 28}},
                "color": key.colour(),
                "shape": key.shape(),
                "size": {"field": "area", "type": "quantitative", "scale": null, "legend": null},
                "tooltip": [{"field": "line", "title": key.title()}, {"field": "size", "title": "size"},
                    {"field": "fct", "title": "mean FCT (ms)", "format": ",.4~g"},
                    {"field": "x", "title": "FCT / limit", "format": ".3~g"},
                    {"field": "y", "title": self.title, "format": ".3~g"}]
            }
        }))
    }
}
