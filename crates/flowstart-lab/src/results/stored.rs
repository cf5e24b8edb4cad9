//! Results that were written earlier.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::flows::{self, Row};
use super::folder::{JOURNAL, MANIFEST, read_file};
use super::journal::{RESULTS, checksum};
use super::manifest::Manifest;
use super::summary::SCHEMA;
use crate::study::Study;
use crate::study::own::Own;
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
        Self::read_with(folder, &Own::default())
    }

    /// As [`Stored::read`], for results of a study with these algorithms from outside this program.
    ///
    /// # Errors
    ///
    /// Why it is not a folder of complete results that this program understands.
    pub fn read_with(folder: &Path, own: &Own) -> Result<Self, String> {
        let journal = folder.join(JOURNAL);
        let stored = Self::complete(folder, own);
        if journal.symlink_metadata().is_err() {
            return stored;
        }
        // The manifest is written last, and names the rows. With it the journal has nothing new, unless the run went on
        // with more repetitions.
        let known = stored.as_ref().map_or(0, |stored| stored.rows.len());
        match (journal_rows(&journal), stored) {
            (Some(rows), Ok(stored)) if rows <= known => Ok(stored),
            _ => Err(format!("{}: holds an interrupted run ({JOURNAL}); finish it with --resume", folder.display())),
        }
    }

    /// Reads a folder as if nobody had been at work in it.
    fn complete(folder: &Path, own: &Own) -> Result<Self, String> {
        let named = |problem: String| format!("{}: {problem}", folder.display());
        if !folder.is_dir() {
            return Err(named("is not a folder of results: there is no such folder".into()));
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
        // Without the checksum nobody would see changed rows. Who writes the identity writes it, too.
        if manifest.rows.is_none() && manifest.experiment.is_some() {
            return Err(named(format!("{MANIFEST}: rows is missing; allowed is the checksum of flows.csv")));
        }
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
        if let Some(name) = manifest.own.iter().find(|name| !own.has(name)) {
            let who = manifest.command.first().map_or(String::new(), |program| format!(", `{program}`"));
            let problem = format!("{name} is of the program that wrote it{who}; only that one can read it");
            return Err(named(problem));
        }
        let study = Study::with_own(scenario, &manifest.directory, own).map_err(|error| {
            let hint = if error.field == "link" { "; paths are relative to the folder of its command" } else { "" };
            named(format!("{MANIFEST}: scenario: {error}{hint}"))
        })?;
        // A larger number would be shown as that of the repetitions that were measured.
        let (reps, found) = (study.plan.reps, rows.iter().map(|row| row.rep + 1).max().unwrap_or(0));
        if found != u64::from(reps) {
            return Err(named(format!("{MANIFEST}: scenario: reps is {reps}; flows.csv has {found} repetitions")));
        }
        Ok(Self { folder: folder.to_owned(), manifest, study, rows })
    }
}

/// How many rows a journal has, below its comment and its header.
fn journal_rows(journal: &Path) -> Option<usize> {
    let bytes = read_file(journal, LARGEST).ok()??;
    // Half a line at the end is no row.
    Some(bytes.iter().filter(|byte| **byte == b'\n').count().saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perform::{Folder, Provenance, perform};

    #[test]
    fn repetitions_and_rows_are_those_of_the_manifest() {
        let text = "link = [\"lte\"]\nsize = [\"5KB\"]\nscheme = [\"slow-start\"]\nreps = 3";
        let study = Study::new(Scenario::from_text(text).unwrap(), Path::new(".")).unwrap();
        let folder = std::env::temp_dir().join(format!("flowstart-stored-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let mut sink = Folder::new(folder.clone(), false, Provenance::default(), &|_, _, _| None);
        perform(&study, &mut sink, None, 1, &()).unwrap();
        drop(sink);
        let manifest = Stored::read(&folder).unwrap().manifest;
        let refused = |manifest: &Manifest| {
            std::fs::write(folder.join(MANIFEST), serde_json::to_string(manifest).unwrap()).unwrap();
            Stored::read(&folder).unwrap_err()
        };
        for reps in ["2", "100000"] {
            let scenario = manifest.scenario.replace("reps = 3", &format!("reps = {reps}"));
            let told = refused(&Manifest { scenario, ..manifest.clone() });
            assert!(told.contains(&format!("reps is {reps}; flows.csv has 3 repetitions")), "{told}");
        }
        let told = refused(&Manifest { rows: None, ..manifest.clone() });
        assert!(told.contains("rows is missing; allowed is the checksum of flows.csv"), "{told}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
