//! The files of results.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::flows::{self, Row};
use super::folder::{ExperimentError, MANIFEST, write_file};
use super::journal;
use super::manifest::Manifest;
use super::summary::Summary;

/// Writes `flows.csv`, `flows.parquet`, `summary.json` and `manifest.json`.
pub fn write_results(
    folder: &Path,
    rows: &[Row],
    summary: &Summary,
    manifest: &Manifest,
) -> Result<(), ExperimentError> {
    let sealed = write_rows(folder, rows)?;
    write_file(&folder.join("flows.parquet"), |out| {
        let mut bytes = Vec::new();
        flows::write_parquet(rows, &mut bytes).map_err(io::Error::other)?;
        out.write_all(&bytes)
    })?;
    write_json(&folder.join("summary.json"), summary)?;
    write_json(&folder.join(MANIFEST), &Manifest { rows: Some(sealed), ..manifest.clone() })
}

/// Writes `flows.csv`. Returns its checksum.
pub fn write_rows(folder: &Path, rows: &[Row]) -> Result<String, ExperimentError> {
    let mut sealed = String::new();
    write_file(&folder.join("flows.csv"), |out| {
        let mut bytes = Vec::new();
        flows::write_csv(rows, &mut bytes).map_err(io::Error::other)?;
        sealed = journal::checksum(journal::RESULTS, [&*String::from_utf8_lossy(&bytes)]);
        out.write_all(&bytes)
    })?;
    Ok(sealed)
}

fn write_json(file: &Path, value: &impl Serialize) -> Result<(), ExperimentError> {
    write_file(file, |out| {
        serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::other)?;
        out.write_all(b"\n")
    })
}
