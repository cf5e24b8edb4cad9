//! Temporary folders, each of which lives as long as a transfer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// Those that there are.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of them.
#[derive(Debug)]
pub(super) struct Scratch(TempDir);

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let mut folders = folders();
        let made = tempfile::Builder::new().prefix("flowstart-").tempdir()?;
        folders.push(made.path().to_owned());
        Ok(Self(made))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut folders = folders();
        // What is left of it does no harm.
        drop(fs::remove_dir_all(self.path()));
        folders.retain(|folder| folder != self.path());
    }
}

/// While this lives, no folder can be made.
#[must_use]
pub(crate) struct NoScratch {
    _folders: MutexGuard<'static, Vec<PathBuf>>,
}

/// Removes all of them, for a program that is about to end.
pub(crate) fn remove_all() -> NoScratch {
    let folders = folders();
    for folder in &*folders {
        drop(fs::remove_dir_all(folder));
    }
    NoScratch { _folders: folders }
}
