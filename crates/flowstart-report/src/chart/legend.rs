//! A legend stands beside a chart and names its lines and marks.

use super::style::style;
use serde::Serialize;

/// A legend entry. Its swatch is drawn by the template.
#[derive(Serialize, Clone)]
pub(crate) struct LegendItem {
    pub(crate) label: String,
    pub(crate) colour: &'static str,
    pub(crate) dash: String,
    pub(crate) width: f64,
    /// Whether a line is shown, and which shape on it.
    pub(crate) line: bool,
    pub(crate) shape: &'static str,
    /// The parameter of the specification that hides what it names; empty: nothing does.
    pub(crate) signal: String,
}

/// A line.
pub(super) fn item(label: &str, colour: &'static str, dash: &[u32], width: f64) -> LegendItem {
    let dash = dash.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    LegendItem { label: label.to_owned(), colour, dash, width, line: true, shape: "", signal: String::new() }
}

/// A shape without a line.
pub(super) fn mark_item(label: &str, colour: &'static str, shape: &'static str) -> LegendItem {
    LegendItem { line: false, shape, ..item(label, colour, &[], 1.5) }
}

/// Legend of the schemes, with their lines or only their shapes.
pub(super) fn scheme_legend(schemes: &[String], line: bool) -> Vec<LegendItem> {
    let entry = |(i, scheme): (usize, &String)| {
        let (colour, dash, shape) = style(i);
        LegendItem { line, shape, ..item(scheme, colour, dash, 2.0) }
    };
    schemes.iter().enumerate().map(entry).collect()
}
