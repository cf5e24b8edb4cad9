//! Vega-Lite specifications of every chart, and the legends beside them.
//!
//! A chart is one complete specification, the one that «chart specification» downloads. On the page a `Grid` chart is
//! taken apart into its panels, so that they flow into as many columns as the screen has room for; a `Stack` keeps its
//! panels together because they share a zoomable time axis.
//!
//! | File | Charts |
//! |---|---|
//! | `distribution.rs` | CDFs of a group of cells |
//! | `load.rs` | mean FCT against the offered load |
//! | `curves.rs` | metrics against what the experiment varies |
//! | `scatter.rs` | each connection's FCT against its size |
//! | `cost.rs` | FCT over the limit against inflation and harm |
//! | `media.rs` | one-way delay of interactive media |
//! | `pairs.rs` | AQM and scheme together: FCT against the peak of the queue |
//! | `waterfall.rs` | where the time went |
//! | `published.rs` | our speed-up against the published one |
//! | `series.rs` | a run as time series |
//! | `startups.rs` | what each scheme sends, in one picture |
//! | `sequence.rs` | a traced run, segment by segment |
//!
//! `panel.rs` has the panels over time that the last two share, `table.rs` writes the data of all of them.

mod cost;
mod curves;
mod distribution;
mod load;
mod media;
mod pairs;
mod panel;
mod published;
mod scatter;
mod sequence;
mod series;
mod sizes;
mod startups;
mod table;
mod waterfall;

pub(super) use cost::pareto;
pub(super) use curves::curves;
pub(super) use distribution::distributions;
pub(super) use load::loads;
pub(super) use media::media;
pub(super) use pairs::pairs;
pub(super) use published::published;
pub(super) use scatter::scatter;
pub(super) use sequence::{numbered_events, trace};
pub(super) use series::{Extent, run, run_legend};
pub(super) use sizes::sizes;
pub(super) use startups::startups;
pub(super) use waterfall::waterfall;

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Okabe and Ito's colours, distinguishable with every kind of colour vision; yellow is left out (too pale on white).
const COLOURS: [&str; 7] = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const DASHES: [&[u32]; 6] = [&[1, 0], &[7, 3], &[2, 2], &[9, 3, 2, 3], &[4, 2], &[12, 3, 2, 3, 2, 3]];
const SHAPES: [&str; 8] =
    ["circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"];

/// The measured flow, other flows, and things that are neither.
const MEASURED: &str = COLOURS[1];
const OTHER: &str = COLOURS[2];
const NEUTRAL: &str = "#555555";

/// A chart as the template shows it.
#[derive(Serialize)]
pub(super) struct Chart {
    pub(super) id: String,
    pub(super) title: String,
    /// One sentence saying what to see.
    pub(super) sentence: String,
    /// Read aloud instead of the picture.
    pub(super) aria: String,
    /// `grid` or `stack`, see the module's description.
    pub(super) mode: &'static str,
    /// Columns on a wide screen.
    pub(super) columns: usize,
    /// `svg`, or `canvas` for very many points.
    pub(super) renderer: &'static str,
    pub(super) legend: Vec<LegendItem>,
    pub(super) rows: Vec<Row>,
    /// How to zoom, replay command and other remarks below the chart.
    pub(super) replay: Option<String>,
    pub(super) zoomable: bool,
    /// The specification as JSON.
    #[serde(skip)]
    pub(super) spec: Value,
    /// The same, safe inside a script element; filled in when the page is written.
    pub(super) json: String,
}

/// A grid of small vector pictures without anything below it, which most charts are.
impl Default for Chart {
    fn default() -> Self {
        Self {
            id: String::new(),
            title: String::new(),
            sentence: String::new(),
            aria: String::new(),
            mode: "grid",
            columns: 1,
            renderer: "svg",
            legend: Vec::new(),
            rows: Vec::new(),
            replay: None,
            zoomable: false,
            spec: Value::Null,
            json: String::new(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) panels: Vec<Panel>,
}

/// A panel of a grid: its index in the specification, or the reason why there is none.
#[derive(Serialize)]
pub(super) struct Panel {
    pub(super) index: Option<usize>,
    pub(super) aria: String,
    pub(super) missing: String,
}

/// A legend entry. Its swatch is drawn by the template.
#[derive(Serialize, Clone)]
pub(super) struct LegendItem {
    pub(super) label: String,
    pub(super) colour: &'static str,
    pub(super) dash: String,
    pub(super) width: f64,
    /// Whether a line is shown, and which shape on it.
    pub(super) line: bool,
    pub(super) shape: &'static str,
}

/// Colour, dash and shape of the series with this index. 7 x 6 x 8 differ from each other longer than anyone can read.
fn style(index: usize) -> (&'static str, &'static [u32], &'static str) {
    (COLOURS[index % COLOURS.len()], DASHES[index % DASHES.len()], SHAPES[index % SHAPES.len()])
}

fn item(label: &str, colour: &'static str, dash: &[u32], width: f64) -> LegendItem {
    let dash = dash.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    LegendItem { label: label.to_owned(), colour, dash, width, line: true, shape: "" }
}

fn mark_item(label: &str, colour: &'static str, shape: &'static str) -> LegendItem {
    LegendItem { line: false, shape, ..item(label, colour, &[], 1.5) }
}

/// Legend of the schemes, with their lines or only their shapes.
fn scheme_legend(schemes: &[String], line: bool) -> Vec<LegendItem> {
    let entry = |(i, scheme): (usize, &String)| {
        let (colour, dash, shape) = style(i);
        LegendItem { line, shape, ..item(scheme, colour, dash, 2.0) }
    };
    schemes.iter().enumerate().map(entry).collect()
}

/// Colour scale over series names, shared by every encoding of the same series.
fn colours(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).0).collect::<Vec<_>>()})
}

fn dashes(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).1).collect::<Vec<_>>()})
}

fn shapes(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).2).collect::<Vec<_>>()})
}

/// A transform that turns the index in `field` into the name it stands for.
fn named(names: &[String], field: &str, into: &str) -> Value {
    json!({"calculate": format!("{}[datum.{field}]", json!(names)), "as": into})
}

/// Look of every chart.
pub(super) fn config() -> Value {
    json!({
        "background": "#ffffff",
        "locale": {"number": {"decimal": ".", "thousands": "\u{202f}", "grouping": [3], "currency": ["", ""]}},
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "view": {"stroke": "#c9c9c9"},
        "axis": {
            "labelFontSize": 11, "titleFontSize": 11.5, "titleFontWeight": "normal", "titleColor": "#222", "labelColor": "#222",
            "gridColor": "#ececec", "domainColor": "#777", "tickColor": "#777", "titlePadding": 6, "labelOverlap": true
        },
        "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "symbolStrokeWidth": 2, "labelLimit": 260},
        "title": {"fontSize": 12, "fontWeight": 600, "anchor": "start", "color": "#222", "offset": 6},
        "line": {"strokeWidth": 1.8, "strokeCap": "butt"}
    })
}

fn document(description: &str, mut body: Value) -> Value {
    body["$schema"] = json!("https://vega.github.io/schema/vega-lite/v6.json");
    body["description"] = json!(description);
    body["config"] = config();
    body
}

fn grid_document(description: &str, columns: usize, panels: &[Value]) -> Value {
    document(description, json!({"columns": columns, "spacing": 24, "concat": panels}))
}

/// The specification as text that may stand inside a script element.
pub(super) fn embed(spec: &Value) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for c in serde_json::to_string(spec)?.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Infallible: writing to a String.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}
