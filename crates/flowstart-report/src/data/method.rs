//! A report came about in this way.

use serde::{Deserialize, Serialize};

/// How the numbers of a report were obtained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Method {
    /// The exact command.
    pub command: String,
    /// Directory of the results as it has to be written after `--from`.
    pub directory: String,
    /// Version of flowstart.
    pub version: String,
    /// Master seed.
    pub seed: Option<u64>,
    /// Repetitions asked for per cell.
    pub repetitions: Option<u32>,
    /// The machine, in words.
    pub host: String,
    /// When it ran, as text.
    pub date: String,
    /// How long it took.
    pub wall_time_s: Option<f64>,
    /// Data files beside the report. Empty means the usual four: `flows.csv`, `flows.parquet`, `summary.json`,
    /// `manifest.json`.
    pub files: Vec<DataFile>,
    /// Anything else the reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// A data file beside the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataFile {
    /// Its name, relative to the report.
    pub name: String,
    /// What it holds.
    pub what: String,
}
