//! CDFs show how the runs of a cell scatter.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::scheme_legend;
use super::style::{colours, dashes, shapes};
use super::table::{Table, named};
use crate::Cell;
use crate::group::Group;
use crate::number::finite;
use crate::reduce::{CDF_POINTS, cdf};
use serde_json::{Value, json};

/// CDFs of one group of cells (same link, AQM, competitor): a row per size, columns FCT, share, dropped packets.
pub(crate) fn distributions(id: String, group: &Group<'_>, schemes: &[String]) -> Option<Chart> {
    let mut panels = Vec::new();
    let mut rows = Vec::new();
    let shared = group.cells.iter().any(|cell| cell.samples.share.iter().any(|v| v.is_finite()));
    let alone = if shared { "" } else { " No other flow uses this link, so there is nothing to share." };
    for (size, cells) in group.sizes() {
        let mut row = Vec::new();
        for (metric, axis, missing) in [
            (Metric::Fct, "FCT (ms)", "No run completed."),
            (Metric::Share, "share (0 to 1)", "Nobody shared the link."),
            (Metric::Dropped, "dropped packets per run", "Drops were not recorded."),
        ] {
            if metric == Metric::Share && !shared {
                continue;
            }
            let aria = format!("Cumulative distribution of {axis} for {size} on {}, one line per scheme", group.label);
            let index = cdf_panel(&cells, metric, axis, &size, schemes, &aria).map(|panel| {
                panels.push(panel);
                panels.len() - 1
            });
            row.push(Panel { index, aria, missing: missing.to_owned() });
        }
        rows.push(Row { label: size, panels: row });
    }
    if panels.is_empty() {
        return None;
    }
    let columns = if shared { 3 } else { 2 };
    Some(Chart {
        id,
        title: format!("Distributions on {}", group.label),
        sentence: format!(
            "The height of a line is the portion of runs at or below the value under it: for FCT and drops a line \
            further to the left is better, \
            and a steep line means that the scheme behaves the same in every run.{alone}"
        ),
        aria: format!(
            "Grid of cumulative distributions on {}: rows are sizes, columns are FCT, share and dropped packets",
            group.label
        ),
        columns,
        legend: scheme_legend(schemes, true),
        rows,
        spec: grid_document(&format!("Distributions on {}", group.label), columns, &panels),
        ..Chart::default()
    })
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Metric {
    Fct,
    Share,
    Dropped,
    MediaDelay,
}

/// Few ticks, and round ones where the scale is logarithmic.
fn axis_ticks(scale: &str) -> Value {
    let decades = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    let values: Vec<u32> = match scale {
        "linear" => return json!({"tickCount": 5}),
        "log" => decades.iter().flat_map(|decade| [1, 2, 5].map(|step| step * decade)).collect(),
        _ => std::iter::once(0).chain(decades).collect(),
    };
    json!({"values": values, "format": ",d"})
}

pub(super) fn cdf_panel(
    cells: &[&Cell],
    metric: Metric,
    axis: &str,
    size: &str,
    schemes: &[String],
    aria: &str,
) -> Option<Value> {
    let samples = |cell: &Cell| match metric {
        Metric::Fct => cdf(&cell.samples.fct_ms, CDF_POINTS),
        Metric::Share => cdf(&cell.samples.share, CDF_POINTS),
        Metric::Dropped => cdf(&cell.samples.dropped_packets, CDF_POINTS),
        Metric::MediaDelay => cdf(&cell.samples.media_delay_ms, CDF_POINTS),
    };
    let lines: Vec<(usize, Vec<[f64; 2]>)> = cells
        .iter()
        .filter_map(|cell| Some((schemes.iter().position(|s| *s == cell.scheme)?, samples(cell))))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let low = lines.iter().map(|(_, l)| l[0][0]).reduce(f64::min)?;
    let high = lines.iter().map(|(_, l)| l[l.len() - 1][0]).reduce(f64::max)?;
    // With sizes from a heavy-tailed distribution a few runs would take the whole axis.
    let squeezed = lines.iter().flat_map(|(_, line)| line.iter().filter(|point| point[1] <= 0.9)).all(|point| {
        let [value, _] = *point;
        value - low < (high - low) / 4.0
    });
    let (scale, note) = match metric {
        Metric::Fct if squeezed && low > 0.0 => ("log", ", log scale"),
        Metric::Dropped if squeezed && high > 10.0 => ("symlog", ", log scale from 1"),
        _ => ("linear", ""),
    };
    let axis = format!("{axis}{note}");
    let domain = match metric {
        Metric::Share => [0.0, 1.0],
        Metric::Dropped => [0.0, if high > 0.0 { high * 1.04 } else { 1.0 }],
        Metric::Fct if scale == "log" => [low / 1.1, high * 1.1],
        Metric::Fct | Metric::MediaDelay => {
            // A difference of a few per mille must not look like one that matters.
            let pad = ((high - low) * 0.04).max((high * 0.1 - (high - low)) / 2.0).max(1.0);
            [(low - pad).max(0.0), high + pad]
        }
    };
    let mut table = Table::new(&["i", "x", "y", "m"]);
    for (i, line) in &lines {
        // Shapes sit at different heights per scheme, so that lines on top of each other stay distinguishable.
        let marks = [0.2, 0.5, 0.8].map(|at| {
            let at = at + 0.03 * ((i % 6) as f64 - 2.5);
            line.iter().position(|p| p[1] >= at).unwrap_or(0)
        });
        for (k, point) in line.iter().enumerate() {
            table.push(&[*i as f64, point[0], point[1], f64::from(u8::from(k > 0 && marks.contains(&k)))]);
        }
        // The line goes on to the edge of the panel: no run had more.
        table.push(&[*i as f64, domain[1], 1.0, 0.0]);
    }
    let x = json!({"field": "x", "type": "quantitative", "title": axis,
        "scale": {"type": scale, "domain": domain, "nice": false, "zero": false}, "axis": axis_ticks(scale)});
    let of = if metric == Metric::MediaDelay { "portion of packets" } else { "portion of runs" };
    let y = json!({"field": "y", "type": "quantitative", "title": of, "scale": {"domain": [0, 1]},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f", "minExtent": 30}});
    let colour = json!({"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)});
    let mut layers = Vec::new();
    let equal = cells.iter().find_map(|c| finite(c.equal_share));
    if let (Metric::Share, Some(equal)) = (metric, equal) {
        layers.push(
            json!({"data": {"values": [{"x": equal}]}, "mark": {"type": "rule", "color": "#999", "strokeWidth": 1},
            "encoding": {"x": {"field": "x", "type": "quantitative"}}}),
        );
    }
    layers.push(json!({"mark": {"type": "line", "interpolate": "step-after", "clip": true}, "encoding": {
        "x": x, "y": y, "color": colour,
        "strokeDash": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": dashes(schemes)},
        "order": {"field": "y", "type": "quantitative"}}}));
    layers.push(json!({"transform": [{"filter": "datum.m == 1"}],
        "mark": {"type": "point", "filled": true, "size": 34, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": colour,
            "shape": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": shapes(schemes)},
            "tooltip": [{"field": "scheme", "title": "scheme"}, {"field": "x", "title": axis, "format": ",.4~g"},
                {"field": "y", "title": of, "format": ".2f"}]}}));
    Some(json!({"title": size, "description": aria, "width": 300, "height": 170,
        "data": table.data(), "transform": [named(schemes, "i", "scheme")], "layer": layers}))
}
