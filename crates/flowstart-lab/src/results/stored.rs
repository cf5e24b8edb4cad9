//! Results that were written earlier.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::flows::{self, Row};
use super::folder::{JOURNAL, MANIFEST, read_file};
use super::journal::{RESULTS, checksum};
use super::manifest::Manifest;
use super::summary::SCHEMA;
use crate::study::Study;
use crate::study::scenario::Scenario;

/// Most bytes of a file that are read: millions of rows.
const LARGEST: u64 = 1 << 30;

/// A folder of results, read and checked.
#[derive(Debug)]
pub struct Stored {
    /// The folder.
    pub folder: PathBuf,
    /// Its origin.
    pub manifest: Manifest,
    /// The question, from the manifest.
    pub study: Study,
    /// A row per measured flow and repetition.
    pub rows: Vec<Row>,
}

/// The version of a summary's format.
#[derive(Deserialize)]
struct Format {
    schema: u32,
}

impl Stored {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// Why it is not a folder of complete results that this program understands.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let named = |problem: String| format!("{}: {problem}", folder.display());
        if !folder.is_dir() {
            return Err(named("is not a folder of results: there is no such folder".into()));
        }
        if folder.join(JOURNAL).exists() {
            return Err(named(format!("holds an interrupted run ({JOURNAL}); finish it with --resume")));
        }
        let manifest = Manifest::read(folder).map_err(|problem| named(format!("{MANIFEST}: {problem}")))?;
        let manifest = manifest.ok_or_else(|| named(format!("is not a folder of results: it has no {MANIFEST}")))?;
        let bytes = |name: &str| {
            let bytes =
                read_file(&folder.join(name), LARGEST).map_err(|problem| named(format!("{name}: {problem}")))?;
            bytes.ok_or_else(|| named(format!("has no {name}")))
        };
        let format: Format =
            serde_json::from_slice(&bytes("summary.json")?).map_err(|error| named(format!("summary.json: {error}")))?;
        if format.schema != SCHEMA {
            return Err(named(format!("its format is version {}; this program reads version {SCHEMA}", format.schema)));
        }
        let csv = bytes("flows.csv")?;
        let text = String::from_utf8_lossy(&csv);
        if manifest.rows.as_ref().is_some_and(|sealed| *sealed != checksum(RESULTS, [&*text])) {
            return Err(named(format!("flows.csv is not the file that {MANIFEST} was written for")));
        }
        let rows = flows::read_csv(text.as_bytes()).map_err(|problem| named(format!("flows.csv, {problem}")))?;
        // Every repetition has a row, and what follows reserves memory for each repetition.
        if let Some(row) = rows.iter().find(|row| row.rep >= rows.len() as u64) {
            let most = rows.len() - 1;
            return Err(named(format!("flows.csv: rep is {}; with this many rows it is at most {most}", row.rep)));
        }
        let scenario: Scenario = toml::from_str(&manifest.scenario)
            .map_err(|error| named(format!("{MANIFEST}: scenario: {}", error.message())))?;
        let study = Study::new(scenario, &manifest.directory).map_err(|error| {
            let hint = if error.field == "link" { "; paths are relative to the folder of its command" } else { "" };
            named(format!("{MANIFEST}: scenario: {error}{hint}"))
        })?;
        Ok(Self { folder: folder.to_owned(), manifest, study, rows })
    }
}
