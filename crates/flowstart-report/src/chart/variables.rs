//! The inner variables of one run's algorithms, a panel for each algorithm and unit.

use super::document::Chart;
use super::legend::{LegendItem, item};
use super::panel::{TIME, exit_rule, held, run_end, stack_document, time_axis};
use super::style::{NEUTRAL, style};
use super::table::Table;
use crate::number::finite;
use crate::reduce::thin_line;
use crate::{TraceReport, TraceVariable};
use serde_json::{Value, json};

/// Points per line.
const POINTS: usize = 6000;
/// The order of units.
const UNITS: [&str; 4] = ["bytes", "Mbit/s", "ms", ""];

/// The inner variables of a run, if it has any. `domain` are the seconds that the time axis shows, `number` tells the
/// charts of a page apart.
pub(crate) fn variables(report: &TraceReport, domain: [f64; 2], number: usize) -> Option<Chart> {
    let mut groups: Vec<(&str, &str, Vec<&TraceVariable>)> = Vec::new();
    for variable in report.variables.iter().filter(|variable| !variable.points.is_empty()) {
        let (algorithm, unit) = (variable.algorithm.as_str(), variable.unit.as_str());
        match groups.iter_mut().find(|group| (group.0, group.1) == (algorithm, unit)) {
            Some(group) => group.2.push(variable),
            None => groups.push((algorithm, unit, vec![variable])),
        }
    }
    // The panels of an algorithm stand together, amounts of data first.
    let order: Vec<&str> = groups.iter().map(|group| group.0).collect();
    let of_unit = |unit: &str| UNITS.iter().position(|known| *known == unit);
    groups.sort_by_key(|group| (order.iter().position(|name| *name == group.0), of_unit(group.1)));
    let last = run_end(report);
    let mut names: Vec<&str> = groups.iter().map(|group| group.0).collect();
    names.dedup();
    let names = names.join(" and ");
    let count = groups.len();
    let (mut panels, mut legend, mut signals) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (algorithm, unit, members)) in groups.into_iter().enumerate() {
        let time = time_axis((place + 1 == count).then_some(TIME), Some(domain));
        let (scale, unit) = if unit == "bytes" { (1e-3, "KB") } else { (1.0, unit) };
        let title = if unit.is_empty() { algorithm.to_owned() } else { format!("{algorithm} ({unit})") };
        let values = || members.iter().flat_map(|v| &v.points).filter_map(|p| finite(Some(p[1] * scale)));
        let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        let span = if high > low { high - low } else { 1.0 };
        let y = json!({"field": "v", "type": "quantitative", "title": title,
            "scale": {"domain": [if low < 0.0 { low - span * 0.05 } else { 0.0 }, high + span * 0.08], "nice": false},
            "axis": {"tickCount": 4, "minExtent": 50, "maxExtent": 50}});
        let mut layers = Vec::new();
        for variable in members {
            // No two names of a legend look alike.
            let (colour, dash, _) = style(signals.len());
            let signal = format!("show_{number}_{}", signals.len());
            let end = variable.until_ms.filter(|until| until.is_finite()).unwrap_or(last);
            let mut table = Table::new(&["t", "v"]);
            // A value holds as long as the algorithm is in charge.
            for [t, v] in thin_line(&held(&variable.points, end), POINTS) {
                table.push(&[t / 1000.0, v * scale]);
            }
            layers.push(line(table, colour, dash, &signal, &time, &y));
            let of = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
            let label = format!("{algorithm}: {}{of}", variable.name);
            legend.push(LegendItem { signal: signal.clone(), ..item(&label, colour, dash, 1.8) });
            signals.push(signal);
        }
        layers.extend(exit_rule(report, domain, NEUTRAL, (place == 0).then_some(2.0), None));
        panels.push(json!({"height": 120, "layer": layers}));
    }
    if panels.is_empty() {
        return None;
    }
    let mut spec = stack_document("Inner variables of one run's algorithms", panels);
    spec["params"] = shown(&signals);
    Some(Chart {
        id: format!("variables-{number}"),
        title: format!("Inner variables of {names}"),
        sentence:
            "What an algorithm knows and compares, under the names of its reference. Press a name to hide or show \
            its line."
                .to_owned(),
        aria: format!("Inner variables of {names} over time"),
        mode: "stack",
        legend,
        spec,
        ..Chart::default()
    })
}

/// A line that a switch of the legend hides.
pub(super) fn line(table: Table, colour: &str, dash: &[u32], signal: &str, time: &Value, y: &Value) -> Value {
    json!({"data": table.data(), "mark": {"type": "line", "interpolate": "step-after", "color": colour,
        "strokeDash": dash, "strokeWidth": 1.6, "clip": true, "opacity": {"expr": format!("{signal} ? 1 : 0")}},
        "encoding": {"x": time, "y": y}})
}

/// The switches of a legend, all on.
pub(super) fn shown(signals: &[String]) -> Value {
    signals.iter().map(|signal| json!({"name": signal, "value": true})).collect()
}
