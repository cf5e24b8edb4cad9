//! An experiment from plan to files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::flows::{self, Row};
use crate::journal::{self, Identity, JOURNAL};
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
    /// Checksum of `flows.csv`; absent in folders of programs that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
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

/// A regular file of at most `most` bytes, if there is one: a pipe or a device could hold up the program or fill its
/// memory.
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
pub const FILES: [&str; 5] = ["flows.parquet", "flows.csv", "summary.json", MANIFEST, "report.html"];

/// Begin of the names of files that are there only while a program works in a folder.
const SCRATCH: &str = ".flowstart.";
/// The file that a program has locked that works in a folder.
const LOCK: &str = ".flowstart.lock";

/// What who comes second is told.
const AT_WORK: &str = "another flowstart is at work in it; wait for its end or choose a new folder";

/// A folder that no other program writes to as long as this lives.
#[derive(Debug)]
pub struct Occupied {
    path: PathBuf,
    /// Absent where the file system has no locks.
    lock: Option<File>,
}

impl Occupied {
    /// Whether the folder is still the one that was made ready.
    ///
    /// # Errors
    ///
    /// When somebody has removed or replaced it meanwhile.
    pub fn check(&self) -> Result<(), ExperimentError> {
        if self.lock.as_ref().is_none_or(|lock| is_still(lock, &self.path)) {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(&self.path).to_owned();
        let problem = "was removed or replaced while the program ran; nothing was written".to_owned();
        Err(ExperimentError::Folder { folder, problem })
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if self.lock.as_ref().is_some_and(|lock| is_still(lock, &self.path)) {
            // What is left of it does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes a folder ready for results, before any run: it must not exist, be empty, or (with `resume`) hold results.
/// Nobody else can do so until what is returned is dropped.
pub fn prepare_folder(folder: &Path, resume: bool) -> Result<Occupied, ExperimentError> {
    let refused = |problem: String| ExperimentError::Folder { folder: folder.to_owned(), problem };
    let check = || match fs::read_dir(folder) {
        Ok(entries) => check_content(entries, resume),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("cannot be read: {error}")),
    };
    if is_occupied(folder) {
        return Err(refused(AT_WORK.into()));
    }
    // A folder that is somebody else's is left alone. Who comes second may find more once the first has ended.
    check().map_err(refused)?;
    fs::create_dir_all(folder).map_err(|error| refused(format!("cannot be created: {error}")))?;
    let occupied = occupy(folder).map_err(refused)?;
    check().map_err(refused)?;
    remove_scratch(folder);
    Ok(occupied)
}

/// Removes what programs that were killed have left half-written. Nobody else works in the folder.
fn remove_scratch(folder: &Path) {
    let is_scratch = |name: &OsString| {
        let number = name.to_str().and_then(|name| name.strip_prefix(SCRATCH));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_scratch(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // What is left of it does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether results may be written beside these files.
fn check_content(entries: fs::ReadDir, resume: bool) -> Result<(), String> {
    let names: io::Result<Vec<OsString>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let mut names = names.map_err(|error| format!("cannot be read: {error}"))?;
    names.retain(|name| !name.to_string_lossy().starts_with(SCRATCH));
    if names.is_empty() {
        Ok(())
    } else if !resume {
        Err("holds other files; nothing was overwritten: choose a new folder".into())
    } else if names.iter().any(|name| name == JOURNAL || name == MANIFEST) {
        Ok(())
    } else {
        Err(format!(
            "holds other files, and neither {JOURNAL} nor {MANIFEST} of a run that could go on; nothing was overwritten: \
             choose a new folder"
        ))
    }
}

/// Whether another program works in a folder.
pub(crate) fn is_occupied(folder: &Path) -> bool {
    let lock = folder.join(LOCK);
    lock.is_file() && File::open(lock).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Locks a folder.
fn occupy(folder: &Path) -> Result<Occupied, String> {
    let path = folder.join(LOCK);
    let unwritable = |error: io::Error| format!("cannot be written: {error}");
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(unwritable)?;
        match file.try_lock() {
            // Who had it before may have removed it meanwhile.
            Ok(()) if is_still(&file, &path) => return Ok(Occupied { path, lock: Some(file) }),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(AT_WORK.into()),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                fs::remove_file(&path).map_err(unwritable)?;
                return Ok(Occupied { path, lock: None });
            }
            Err(TryLockError::Error(error)) => return Err(format!("cannot be locked: {error}")),
        }
    }
}

/// Whether a path still leads to the file that was opened there.
#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let place = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(opened), Ok(named)) if place(&opened) == place(&named))
}

/// Whether a path still leads to a file: elsewhere none is removed that is open.
#[cfg(not(unix))]
fn is_still(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Writes a file completely or not at all.
pub fn write_file(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), ExperimentError> {
    let (growing, out) = GrowingFile::create(file)?;
    let mut writer = BufWriter::new(out);
    content(&mut writer).and_then(|()| writer.flush()).map_err(|error| growing.refused(&error))?;
    growing.complete()
}

/// A file that has its name when it is complete. Until then it is beside it under a name that nothing else had, and it
/// is removed if it is given up.
#[derive(Debug)]
pub struct GrowingFile {
    file: PathBuf,
    scratch: PathBuf,
    is_complete: bool,
}

impl GrowingFile {
    /// Begins a file; what is written to it goes to the second value.
    pub fn create(file: &Path) -> Result<(Self, File), ExperimentError> {
        let mut number = 0_u64;
        loop {
            let scratch = file.with_file_name(format!("{SCRATCH}{number}"));
            match OpenOptions::new().write(true).create_new(true).open(&scratch) {
                Ok(out) => return Ok((Self { file: file.to_owned(), scratch, is_complete: false }, out)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    return Err(ExperimentError::Write { file: file.to_owned(), problem: error.to_string() });
                }
            }
        }
    }

    /// Everything is written.
    pub fn complete(mut self) -> Result<(), ExperimentError> {
        fs::rename(&self.scratch, &self.file).map_err(|error| self.refused(&error))?;
        self.is_complete = true;
        Ok(())
    }

    /// It could not be written.
    pub fn refused(&self, error: &io::Error) -> ExperimentError {
        ExperimentError::Write { file: self.file.clone(), problem: error.to_string() }
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = fs::remove_file(&self.scratch);
        }
    }
}

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

#[cfg(test)]
mod tests;
