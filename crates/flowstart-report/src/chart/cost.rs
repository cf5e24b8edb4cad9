//! The Pareto picture shows what the speed costs.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{mark_item, scheme_legend};
use super::style::{NEUTRAL, colours, shapes};
use super::table::{Table, named};
use crate::Cell;
use crate::group::Group;
use crate::number::finite;
use crate::pareto::harm;
use crate::reduce::median;
use serde_json::json;

/// FCT over the limit against inflation and against harm to others, a row of two panels per group.
pub(crate) fn pareto(groups: &[Group<'_>], schemes: &[String]) -> Option<Chart> {
    let factor = |cell: &Cell| {
        let limit = finite(cell.ideal_fct_ms).filter(|v| *v > 0.0)?;
        Some(finite(cell.fct_ms.mean)? / limit).filter(|v| *v > 0.0)
    };
    let slowest = groups.iter().flat_map(|g| &g.cells).filter_map(|c| factor(c)).reduce(f64::max)?;
    // The same sizes keep the same mark size everywhere.
    let mut sizes: Vec<(u64, String)> =
        groups.iter().flat_map(|g| &g.cells).map(|c| (c.size_bytes, c.size.clone())).collect();
    sizes.sort();
    sizes.dedup();
    let sizes: Vec<String> = sizes.into_iter().map(|(_, name)| name).collect();
    let area = |i: usize| match sizes.len() {
        1 => 110.0,
        several => 55.0 + 130.0 * i as f64 / (several - 1) as f64,
    };
    let areas: Vec<f64> = (0..sizes.len()).map(area).collect();
    // A column in which no group has anything to show is left out.
    let harmed = groups.iter().flat_map(|g| &g.cells).any(|c| harm(c).is_some());
    let columns = if harmed { 2 } else { 1 };
    let mut panels = Vec::new();
    let mut rows = Vec::new();
    for group in groups {
        let mut row = Vec::new();
        let late = group.cells.iter().find_map(|c| harm(c)).is_some_and(|(_, unit)| unit == "ms");
        let harm_axis = if late { "harm to others (ms later)" } else { "harm to others (Mbit of goodput lost)" };
        for (is_harm, axis, missing) in [
            (false, "inflation (% of the payload sent again)", "Inflation was not recorded."),
            (true, harm_axis, "No other flow, so nobody can be harmed."),
        ] {
            if is_harm && !harmed {
                continue;
            }
            let mut table = Table::new(&["i", "s", "area", "x", "y", "fct"]);
            let mut ends = [0.0_f64, 0.0_f64];
            let mut heights = Vec::new();
            for cell in &group.cells {
                let y = if is_harm {
                    harm(cell).and_then(|(harm, _)| harm.mean)
                } else {
                    cell.inflation.mean.map(|v| v * 100.0)
                };
                let (Some(i), Some(s), Some(x), Some(y), Some(fct)) = (
                    schemes.iter().position(|n| *n == cell.scheme),
                    sizes.iter().position(|n| *n == cell.size),
                    factor(cell),
                    finite(y),
                    finite(cell.fct_ms.mean),
                ) else {
                    continue;
                };
                ends = [ends[0].min(y), ends[1].max(y)];
                heights.push(y);
                table.push(&[i as f64, s as f64, areas[s], x, y, fct]);
            }
            let aria = format!("{}: FCT over the physical limit against {axis}, one point per cell", group.label);
            let mut index = None;
            if table.text.contains('\n') {
                // Whole marks at the edges, and an axis even when everything is 0.
                let pad = ((ends[1] - ends[0]) * 0.08).max(0.01);
                let domain = [if ends[0] < 0.0 { ends[0] - pad } else { 0.0 }, ends[1] + pad];
                // One scheme that sends everything twice must not press the others onto the axis.
                let squeezed = ends[0] >= 0.0 && median(&heights).is_some_and(|middle| middle < ends[1] / 10.0);
                let scale = if squeezed { "sqrt" } else { "linear" };
                let axis = match (squeezed, is_harm) {
                    (false, _) => axis,
                    (true, false) => "inflation (%, square-root scale)",
                    (true, true) if late => "harm (ms later, square-root scale)",
                    (true, true) => "harm (Mbit, square-root scale)",
                };
                let name = |field: &str| json!({"field": field, "title": field});
                panels.push(json!({
                    "title": group.label, "description": aria, "width": 460, "height": 250,
                    "data": table.data(),
                    "transform": [named(schemes, "i", "scheme"), named(&sizes, "s", "size")],
                    "mark": {"type": "point", "filled": true, "opacity": 0.85, "stroke": "white", "strokeWidth": 0.6},
                    "encoding": {
                        "x": {"field": "x", "type": "quantitative",
                            "title": "FCT / physical limit (1 = the limit, log scale)",
                            "scale": {"type": "log", "domain": [1, (slowest * 1.1).max(2.0)], "nice": false},
                            "axis": {"values": [1, 1.5, 2, 3, 4, 6, 10, 20, 50, 100, 1000], "format": "~r"}},
                        "y": {"field": "y", "type": "quantitative", "title": axis,
                            "scale": {"type": scale, "domain": domain, "nice": false},
                            "axis": {"tickCount": 5, "minExtent": 30}},
                        "color": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)},
                        "shape": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": shapes(schemes)},
                        "size": {"field": "area", "type": "quantitative", "scale": null, "legend": null},
                        "tooltip": [name("scheme"), name("size"),
                            {"field": "fct", "title": "mean FCT (ms)", "format": ",.4~g"},
                            {"field": "x", "title": "FCT / limit", "format": ".3~g"},
                            {"field": "y", "title": axis, "format": ".3~g"}]
                    }
                }));
                index = Some(panels.len() - 1);
            }
            row.push(Panel { index, aria, missing: missing.to_owned() });
        }
        rows.push(Row { label: group.label.clone(), panels: row });
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend = scheme_legend(schemes, false);
    if sizes.len() > 1 {
        legend.push(mark_item(&format!("larger mark = larger transfer ({})", sizes.join(", ")), NEUTRAL, "sizes"));
    }
    Some(Chart {
        id: "pareto".to_owned(),
        title: "What the speed costs".to_owned(),
        sentence: format!(
            "The best place is the lower left corner: fast, without sending bytes twice{}; \
            a mark that has another one of its size both to its left and below it is beaten in both respects.{}",
            if harmed { " and without taking goodput from others" } else { "" },
            if harmed { "" } else { " No other flow uses the link, so nobody is harmed." }
        ),
        aria: "Scatter charts of FCT over the physical limit against inflation and against harm to others".to_owned(),
        columns,
        legend,
        rows,
        spec: grid_document("FCT over the physical limit against inflation and harm to others", columns, &panels),
        ..Chart::default()
    })
}
