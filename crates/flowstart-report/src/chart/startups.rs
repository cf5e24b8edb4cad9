//! Lines show what each scheme sends from the first packet on, in one picture.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{LegendItem, scheme_legend};
use super::panel::{TIME, time_axis};
use super::style::{colours, dashes};
use super::table::{Table, named};
use crate::ExampleRun;
use crate::reduce::thin_points;
use serde_json::json;

/// Points of a line: segments, thinned.
const POINTS: usize = 1500;

/// Time-sequence lines of several runs of one link and size, the first run of each scheme. Nothing with fewer than two.
pub(crate) fn startups(id: String, runs: &[&ExampleRun], schemes: &[String]) -> Option<Chart> {
    let mut table = Table::new(&["i", "t", "v"]);
    let mut shown: Vec<String> = Vec::new();
    for run in runs.iter().filter(|run| !run.sent.is_empty()) {
        let Some(i) = schemes.iter().position(|scheme| *scheme == run.scheme) else { continue };
        if shown.contains(&run.scheme) {
            continue;
        }
        shown.push(run.scheme.clone());
        for [t, v] in thin_points(&run.sent, POINTS) {
            table.push(&[i as f64, t / 1000.0, v / 1000.0]);
        }
    }
    if shown.len() < 2 {
        return None;
    }
    let title = "What each startup sends";
    let colour = json!({"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)});
    let panel = json!({
        "description": title, "width": 620, "height": 200,
        "data": table.data(),
        "transform": [named(schemes, "i", "scheme")],
        "mark": {"type": "line", "interpolate": "step-after", "clip": true},
        "encoding": {
            "x": time_axis(Some(TIME), None),
            "y": {"field": "v", "type": "quantitative", "title": "offset in the payload (KB)",
                "axis": {"tickCount": 6}},
            "color": colour,
            "strokeDash": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": dashes(schemes)}
        }
    });
    let is_one = runs.iter().all(|run| run.rep == runs[0].rep || run.label != runs[0].label);
    let same = if is_one { " All lines are of the same repetition." } else { "" };
    let legend = scheme_legend(schemes, true)
        .into_iter()
        .filter(|entry| shown.contains(&entry.label))
        .map(|entry| LegendItem { shape: "", ..entry })
        .collect();
    Some(Chart {
        id,
        title: title.to_owned(),
        sentence: format!("Steps are bursts that wait for acknowledgements, a slope is pacing.{same}"),
        aria: "Line chart of the data sent against time, one line per scheme".to_owned(),
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
