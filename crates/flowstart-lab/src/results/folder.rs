//! A folder of results: exclusive writing, and files that are written completely or not at all.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flowstart_files::{create_folders, is_still, put_in_place, sync_content};

/// The file of a [`Manifest`](super::manifest::Manifest).
pub const MANIFEST: &str = "manifest.json";
/// The file of an incomplete run's rows.
pub const JOURNAL: &str = "flows.partial.csv";

/// An experiment that could not be run or written.
#[derive(Debug)]
pub enum ExperimentError {
    /// Threads could not be started.
    Threads(String),
    /// Nobody wants the results any more.
    Stopped,
    /// Transfers cannot run between sockets.
    Sockets(String),
    /// Pieces that ran apart are not exactly those of the experiment.
    Pieces(String),
    /// The study cannot be written.
    Study(String),
    /// The report could not be made.
    Report(String),
    /// The folder cannot be used.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        problem: String,
    },
    /// The manifest of results asks another question than the rows answer.
    Question {
        /// The folder.
        folder: PathBuf,
        /// What differs.
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
            Self::Stopped => f.write_str("the experiment was stopped before its end"),
            Self::Sockets(problem) => write!(f, "--world sockets: {problem}"),
            Self::Pieces(problem) => write!(f, "the pieces of the experiment: {problem}"),
            Self::Study(problem) => write!(f, "scenario: {problem}"),
            Self::Report(problem) => write!(f, "report: {problem}"),
            Self::Folder { folder, problem } => write!(f, "--out `{}`: {problem}", folder.display()),
            Self::Question { folder, problem } => write!(f, "{}: {problem}", folder.display()),
            Self::Write { file, problem } => write!(f, "cannot write {}: {problem}", file.display()),
        }
    }
}

impl std::error::Error for ExperimentError {}

/// The files of an experiment's folder.
pub const FILES: [&str; 5] = ["flows.parquet", "flows.csv", "summary.json", MANIFEST, "report.html"];

/// Prefix of the names of files that exist only while a program works in a folder.
pub const SCRATCH: &str = ".flowstart.";
/// The file that a program locks while it works in a folder.
const LOCK: &str = ".flowstart.lock";

/// The message for a second program.
const AT_WORK: &str = "another flowstart is at work in it; wait for its end or choose a new folder";

/// A folder to which no other program writes during the lifetime of this value.
#[derive(Debug)]
pub struct Occupied {
    path: PathBuf,
    /// Absent if the file system has no locks.
    lock: Option<File>,
}

impl Occupied {
    /// Checks that the folder is still the prepared one.
    ///
    /// # Errors
    ///
    /// If somebody has removed or replaced it meanwhile.
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
            // A leftover file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Prepares a folder for results, before any run. The folder must not exist, or must be empty, or with `resume` may
/// hold results. Nobody else can prepare it until the returned value is dropped.
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
    // A folder that another program uses stays as it is. A second program may find more files once the first has ended.
    check().map_err(refused)?;
    create_folders(folder).map_err(|error| refused(format!("cannot be created: {error}")))?;
    let occupied = occupy(folder).map_err(refused)?;
    check().map_err(refused)?;
    remove_scratch(folder);
    Ok(occupied)
}

/// Removes half-written files of killed programs. Nobody else works in the folder.
fn remove_scratch(folder: &Path) {
    let is_scratch = |name: &OsString| {
        let number = name.to_str().and_then(|name| name.strip_prefix(SCRATCH));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_scratch(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // A leftover file does no harm.
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
            // The previous owner may have removed it meanwhile.
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

/// Writes a file completely or not at all.
pub fn write_file(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), ExperimentError> {
    let (growing, out) = GrowingFile::create(file)?;
    let mut writer = BufWriter::new(out);
    content(&mut writer).and_then(|()| writer.flush()).map_err(|error| growing.refused(&error))?;
    growing.complete()
}

/// The files that this process has begun, under their temporary names.
static GROWING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn growing() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    GROWING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this lives, no file can be begun or completed.
#[must_use]
#[derive(Debug)]
pub struct NoFiles {
    _growing: MutexGuard<'static, BTreeSet<PathBuf>>,
}

/// Removes the files that were begun, for a program that is about to end.
pub fn remove_growing() -> NoFiles {
    let growing = growing();
    for scratch in &*growing {
        let _ = fs::remove_file(scratch);
    }
    NoFiles { _growing: growing }
}

/// A file that gets its name when it is complete. Until then it has a unique temporary name in the same folder. It is
/// removed if it is abandoned.
#[derive(Debug)]
pub struct GrowingFile {
    file: PathBuf,
    scratch: PathBuf,
    is_complete: bool,
}

impl GrowingFile {
    /// Begins a file. The second value takes its contents.
    pub fn create(file: &Path) -> Result<(Self, File), ExperimentError> {
        let mut number = 0_u64;
        let mut growing = growing();
        loop {
            let scratch = file.with_file_name(format!("{SCRATCH}{number}"));
            match OpenOptions::new().write(true).create_new(true).open(&scratch) {
                Ok(out) => {
                    growing.insert(scratch.clone());
                    return Ok((Self { file: file.to_owned(), scratch, is_complete: false }, out));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    return Err(ExperimentError::Write { file: file.to_owned(), problem: error.to_string() });
                }
            }
        }
    }

    /// Completes the file. It and its name are on the disk then, so that a loss of power leaves no empty one.
    pub fn complete(mut self) -> Result<(), ExperimentError> {
        // Without the lock, because it may take its time: what follows finds nothing left to write.
        sync_content(&self.scratch).map_err(|error| self.refused(&error))?;
        let mut growing = growing();
        let renamed = put_in_place(&self.scratch, &self.file).map_err(|error| self.refused(&error));
        if renamed.is_ok() {
            growing.remove(&self.scratch);
            self.is_complete = true;
        }
        // What is not complete ends with this value, which asks for them itself.
        drop(growing);
        renamed
    }

    /// Makes the error of a file that could not be written.
    pub fn refused(&self, error: &io::Error) -> ExperimentError {
        ExperimentError::Write { file: self.file.clone(), problem: error.to_string() }
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let mut growing = growing();
            let _ = fs::remove_file(&self.scratch);
            growing.remove(&self.scratch);
        }
    }
}

/// A regular file of at most `most` bytes, if there is one.
pub(crate) fn read_file(file: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    flowstart_files::read_if_any(file, most).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
