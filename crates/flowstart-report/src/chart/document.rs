//! A chart is a specification, and the words around it.

use super::legend::LegendItem;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A chart as the template shows it.
#[derive(Serialize)]
pub(crate) struct Chart {
    pub(crate) id: String,
    pub(crate) title: String,
    /// One sentence saying what to see.
    pub(crate) sentence: String,
    /// Read aloud instead of the picture.
    pub(crate) aria: String,
    /// `grid` or `stack`, see the module's description.
    pub(crate) mode: &'static str,
    /// Columns on a wide screen.
    pub(crate) columns: usize,
    /// `svg`, or `canvas` for very many points.
    pub(crate) renderer: &'static str,
    pub(crate) legend: Vec<LegendItem>,
    pub(crate) rows: Vec<Row>,
    /// The command that shows all packets of the run.
    pub(crate) replay: Option<String>,
    /// The specification.
    #[serde(skip)]
    pub(crate) spec: Value,
    /// The same as text that is safe inside a script element, from [`Chart::embedded`].
    pub(crate) json: String,
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
            spec: Value::Null,
            json: String::new(),
        }
    }
}

impl Chart {
    /// Writes the specification as text that may stand inside a script element.
    pub(crate) fn embedded(mut self) -> Result<Self, serde_json::Error> {
        for c in serde_json::to_string(&self.spec)?.chars() {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    // Infallible: writing to a String.
                    let _ = write!(self.json, "\\u{:04x}", u32::from(c));
                }
                _ => self.json.push(c),
            }
        }
        Ok(self)
    }
}

/// A row of panels.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) panels: Vec<Panel>,
}

/// A panel of a grid: its index in the specification, or the reason why there is none.
#[derive(Serialize)]
pub(crate) struct Panel {
    pub(crate) index: Option<usize>,
    pub(crate) aria: String,
    pub(crate) missing: String,
}

/// Look of every chart.
fn config() -> Value {
    json!({
        "background": "#ffffff",
        "locale": {"number": {"decimal": ".", "thousands": "\u{202f}", "grouping": [3], "currency": ["", ""]}},
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "view": {"stroke": "#c9c9c9"},
        "axis": {
            "labelFontSize": 11, "titleFontSize": 11.5, "titleFontWeight": "normal", "titleColor": "#222",
            "labelColor": "#222",
            "gridColor": "#ececec", "domainColor": "#777", "tickColor": "#777", "titlePadding": 6, "labelOverlap": true,
            "labelSeparation": 4
        },
        "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "symbolStrokeWidth": 2,
            "labelLimit": 260},
        "title": {"fontSize": 12, "fontWeight": 600, "anchor": "start", "color": "#222", "offset": 6},
        "line": {"strokeWidth": 1.8, "strokeCap": "butt"}
    })
}

/// A whole specification: what every chart has, and its own body.
pub(super) fn document(description: &str, mut body: Value) -> Value {
    body["$schema"] = json!("https://vega.github.io/schema/vega-lite/v6.json");
    body["description"] = json!(description);
    body["config"] = config();
    body
}

/// Panels beside and below each other.
pub(super) fn grid_document(description: &str, columns: usize, panels: &[Value]) -> Value {
    document(description, json!({"columns": columns, "spacing": 24, "concat": panels}))
}
