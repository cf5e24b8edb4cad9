//! The section on the method says how the numbers were obtained.

use crate::command::Invocation;
use crate::number::{Format, UNDEFINED, finite};
use crate::{DataFile, Method};
use serde::Serialize;

/// What the section shows.
#[derive(Serialize)]
pub(super) struct MethodView {
    command: String,
    /// Name and value of what is known about the making of the page.
    facts: Vec<(&'static str, String)>,
    files: Vec<DataFile>,
    notes: Vec<String>,
}

/// The section. What is unknown is left out.
pub(super) fn method(method: &Method) -> MethodView {
    let or_undefined = |text: &str| {
        if text.is_empty() { UNDEFINED.to_owned() } else { text.to_owned() }
    };
    let usual = [
        ("flows.csv", "one row per measured flow and repetition"),
        ("flows.parquet", "the same, for data frames"),
        ("summary.json", "one entry per cell: every metric with mean, median, percentiles and interval"),
        ("manifest.json", "version, command, seed, host and wall time"),
    ];
    let files = if method.files.is_empty() {
        usual.map(|(name, what)| DataFile { name: name.to_owned(), what: what.to_owned() }).to_vec()
    } else {
        method.files.clone()
    };
    let wall = finite(method.wall_time_s)
        .map_or_else(|| UNDEFINED.to_owned(), |s| format!("{} s", Format::Plain.show(Some(s))));
    MethodView {
        command: Invocation::current().command(&method.command),
        facts: [
            ("version", or_undefined(&method.version)),
            ("master seed", method.seed.map_or_else(|| UNDEFINED.to_owned(), |s| s.to_string())),
            ("repetitions per cell", method.repetitions.map_or_else(|| UNDEFINED.to_owned(), |n| n.to_string())),
            ("host", or_undefined(&method.host)),
            ("date", or_undefined(&method.date)),
            ("wall time", wall),
        ]
        .into_iter()
        .filter(|(_, value)| value != UNDEFINED)
        .collect(),
        files,
        notes: method.notes.clone(),
    }
}
