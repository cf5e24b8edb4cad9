//! A chart carries its data as a table that is small enough to embed.

use serde_json::{Value, json};

/// A table as Vega-Lite reads it, but a third the size of JSON objects. All columns are numbers.
#[derive(Clone)]
pub(super) struct Table {
    columns: &'static [&'static str],
    pub(super) text: String,
}

impl Table {
    pub(super) fn new(columns: &'static [&'static str]) -> Self {
        Self { columns, text: columns.join("\t") }
    }

    /// Adds a row unless one of its values is undefined.
    pub(super) fn push(&mut self, row: &[f64]) {
        if row.iter().any(|v| !v.is_finite()) {
            return;
        }
        for (i, value) in row.iter().enumerate() {
            self.text.push(if i == 0 { '\n' } else { '\t' });
            self.text.push_str(&rounded(*value));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.text.contains('\n')
    }

    pub(super) fn data(self) -> Value {
        let parse: serde_json::Map<String, Value> =
            self.columns.iter().map(|c| ((*c).to_owned(), json!("number"))).collect();
        json!({"values": self.text, "format": {"type": "tsv", "parse": parse}})
    }
}

/// Five significant digits: far beyond what a chart can show.
fn rounded(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (4 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A transform that turns the index in `field` into the name it stands for.
pub(super) fn named(names: &[String], field: &str, into: &str) -> Value {
    json!({"calculate": format!("{}[datum.{field}]", json!(names)), "as": into})
}
