//! An experiment from plan to files.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::flows::{self, Row};
use crate::journal::Identity;
use crate::observe::{Kept, Wanted};
use crate::plan::{Plan, Setting};
use crate::run;
use crate::spec::web::Rows;
use crate::summary::Summary;

/// Runs every cell and repetition that is not among the `known` rows, on `jobs` threads (0: one per core). `done` is
/// called with the rows of each repetition of a setting as it ends. The result does not depend on the number of threads.
pub fn execute(
    plan: &Plan,
    jobs: usize,
    known: &[Row],
    done: impl Fn(&[Row]) + Sync,
) -> Result<Vec<Row>, ExperimentError> {
    Ok(execute_watched(plan, jobs, known, &Wanted::default(), done)?.0)
}

/// As [`execute`], and watches the runs: what is wanted of those that are not known already is kept.
pub fn execute_watched(
    plan: &Plan,
    jobs: usize,
    known: &[Row],
    wanted: &Wanted,
    done: impl Fn(&[Row]) + Sync,
) -> Result<(Vec<Row>, Kept), ExperimentError> {
    let pool = threads(jobs)?;
    // A repetition of a setting is complete when all its cells are known.
    let complete: BTreeSet<(&str, u64)> = known.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
    let is_known = |setting: &Setting, rep: u32| {
        !complete.is_empty()
            && plan.cells_of(*setting).iter().all(|cell| complete.contains(&(plan.id(cell).as_str(), u64::from(rep))))
    };
    let work: Vec<(Setting, u32)> = plan
        .settings()
        .into_iter()
        .flat_map(|setting| (0..plan.reps).map(move |rep| (setting, rep)))
        .filter(|(setting, rep)| !is_known(setting, *rep))
        .collect();
    let kept = Mutex::new(Kept::default());
    let fresh: Vec<Vec<(usize, Row)>> = pool.install(|| {
        work.par_iter()
            .map(|(setting, rep)| {
                let rows = rows_of(plan, *setting, *rep, wanted, &kept);
                done(&rows.iter().map(|(_, row)| row.clone()).collect::<Vec<_>>());
                rows
            })
            .collect()
    });
    let places: std::collections::BTreeMap<String, usize> =
        plan.cells().iter().map(|cell| (plan.id(cell), cell.index)).collect();
    let mut rows: Vec<(usize, Row)> = fresh.into_iter().flatten().collect();
    let redone: BTreeSet<(usize, u64)> = rows.iter().map(|(place, row)| (*place, row.rep)).collect();
    rows.extend(known.iter().filter_map(|row| {
        let place = *places.get(&row.cell)?;
        (!redone.contains(&(place, row.rep))).then(|| (place, row.clone()))
    }));
    rows.sort_by_key(|(place, row)| (*place, row.rep, row.flow));
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((rows.into_iter().map(|(_, row)| row).collect(), kept))
}

/// A pool of `jobs` threads (0: one per core).
pub(crate) fn threads(jobs: usize) -> Result<rayon::ThreadPool, ExperimentError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.map_err(|error| ExperimentError::Threads(error.to_string()))
}

fn rows_of(plan: &Plan, setting: Setting, rep: u32, wanted: &Wanted, kept: &Mutex<Kept>) -> Vec<(usize, Row)> {
    run::watched_repetition(plan, setting, rep, wanted)
        .into_iter()
        .flat_map(|(cell, outcomes, seen)| {
            if wanted.of(&cell, rep).is_anything() {
                kept.lock().unwrap_or_else(PoisonError::into_inner).add(cell.index, rep, seen);
            }
            let rows: Vec<Row> = outcomes.iter().map(|outcome| Row::new(plan, &cell, rep, outcome)).collect();
            let together = plan.sizes[cell.size].value.web().is_some_and(|web| web.rows == Rows::Repetition);
            let rows = if together { Row::of_repetition(&rows).into_iter().collect() } else { rows };
            rows.into_iter().map(move |row| (cell.index, row))
        })
        .collect()
}

/// Number of runs: cells times repetitions.
pub fn run_count(plan: &Plan) -> u64 {
    plan.cells().len() as u64 * u64::from(plan.reps)
}

/// What produced a folder of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub version: String,
    /// The command.
    pub command: Vec<String>,
    /// The scenario that the command amounts to, as TOML, enough to run it again or to replay one run.
    pub scenario: String,
    /// Folder that the scenario's files are relative to.
    pub directory: PathBuf,
    /// Master seed.
    pub seed: u64,
    /// Where it ran.
    pub host: String,
    /// Seconds of wall time.
    pub wall_time_s: f64,
    /// When, in seconds since 1970.
    pub unix_time_s: u64,
    /// Files written.
    pub files: Vec<String>,
    /// Which experiment the rows belong to; absent in folders of programs that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Identity>,
}

/// The file of a [`Manifest`].
pub const MANIFEST: &str = "manifest.json";
/// Most bytes of one that is read.
const LARGEST_MANIFEST: u64 = 64 << 20;

impl Manifest {
    /// That of a folder, if it has one.
    ///
    /// # Errors
    ///
    /// Why the file is none of this program.
    pub fn read(folder: &Path) -> Result<Option<Self>, String> {
        let Some(bytes) = read_file(&folder.join(MANIFEST), LARGEST_MANIFEST)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string())
    }
}

/// A regular file of at most `most` bytes, if there is one: a pipe or a device could hold up the program or fill its memory.
pub(crate) fn read_file(file: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let check = |metadata: &fs::Metadata| match metadata.len() {
        _ if !metadata.is_file() => Err("is not a regular file".to_owned()),
        length if length > most => Err(format!("has {length} bytes; allowed is {most} at most")),
        _ => Ok(()),
    };
    match fs::metadata(file) {
        // Before it is opened, which waits at a pipe.
        Ok(metadata) => check(&metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let opened = File::open(file).map_err(unreadable)?;
    check(&opened.metadata().map_err(unreadable)?)?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    opened.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some(bytes))
}

/// An experiment that could not be run or written.
#[derive(Debug)]
pub enum ExperimentError {
    /// Threads could not be started.
    Threads(String),
    /// The folder cannot be used.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        problem: String,
    },
    /// A file could not be written.
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: String,
    },
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(problem) => write!(f, "cannot start threads: {problem}"),
            Self::Folder { folder, problem } => write!(f, "--out `{}`: {problem}", folder.display()),
            Self::Write { file, problem } => write!(f, "cannot write {}: {problem}", file.display()),
        }
    }
}

impl std::error::Error for ExperimentError {}

/// The files of an experiment's folder.
pub const FILES: [&str; 5] = ["flows.parquet", "flows.csv", "summary.json", "manifest.json", "report.html"];

/// Makes a folder ready for results, before any run: it must not exist, be empty, or (with `resume`) hold results.
pub fn prepare_folder(folder: &Path, resume: bool) -> Result<(), ExperimentError> {
    let refused = |problem: String| ExperimentError::Folder { folder: folder.to_owned(), problem };
    if folder.exists() {
        let mut entries = fs::read_dir(folder).map_err(|error| refused(format!("cannot be read: {error}")))?;
        let occupied = entries.next().is_some();
        if occupied && !resume {
            return Err(refused("holds other files; nothing was overwritten: choose a new folder".into()));
        }
    }
    fs::create_dir_all(folder).map_err(|error| refused(format!("cannot be created: {error}")))?;
    let probe = folder.join(".writable");
    File::create(&probe).map_err(|error| refused(format!("cannot be written: {error}")))?;
    fs::remove_file(&probe).map_err(|error| refused(format!("cannot be written: {error}")))
}

/// Writes a file completely or not at all.
pub fn write_file(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), ExperimentError> {
    let (growing, out) = GrowingFile::create(file)?;
    let mut writer = BufWriter::new(out);
    content(&mut writer).and_then(|()| writer.flush()).map_err(|error| growing.refused(&error))?;
    growing.complete()
}

/// A file that has its name when it is complete. Until then `.partial` follows.
#[derive(Debug)]
pub struct GrowingFile {
    file: PathBuf,
    partial: PathBuf,
}

impl GrowingFile {
    /// Begins a file; what is written to it goes to the second value.
    pub fn create(file: &Path) -> Result<(Self, File), ExperimentError> {
        let mut partial = file.to_owned().into_os_string();
        partial.push(".partial");
        let growing = Self { file: file.to_owned(), partial: partial.into() };
        let out = File::create(&growing.partial).map_err(|error| growing.refused(&error))?;
        Ok((growing, out))
    }

    /// Everything is written.
    pub fn complete(self) -> Result<(), ExperimentError> {
        fs::rename(&self.partial, &self.file).map_err(|error| self.refused(&error))
    }

    /// It could not be written.
    pub fn refused(&self, error: &io::Error) -> ExperimentError {
        ExperimentError::Write { file: self.file.clone(), problem: error.to_string() }
    }
}

/// Writes `flows.csv`, `flows.parquet`, `summary.json` and `manifest.json`.
pub fn write_results(
    folder: &Path,
    rows: &[Row],
    summary: &Summary,
    manifest: &Manifest,
) -> Result<(), ExperimentError> {
    write_rows(folder, rows)?;
    let parquet = folder.join("flows.parquet");
    let partial = folder.join("flows.parquet.partial");
    flows::write_parquet(rows, &partial)
        .map_err(|error| ExperimentError::Write { file: parquet.clone(), problem: error.to_string() })?;
    fs::rename(&partial, &parquet)
        .map_err(|error| ExperimentError::Write { file: parquet, problem: error.to_string() })?;
    write_json(&folder.join("summary.json"), summary)?;
    write_json(&folder.join("manifest.json"), manifest)
}

/// Writes `flows.csv`.
pub fn write_rows(folder: &Path, rows: &[Row]) -> Result<(), ExperimentError> {
    write_file(&folder.join("flows.csv"), |out| flows::write_csv(rows, out).map_err(io::Error::other))
}

fn write_json(file: &Path, value: &impl Serialize) -> Result<(), ExperimentError> {
    write_file(file, |out| {
        serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::other)?;
        out.write_all(b"\n")
    })
}
