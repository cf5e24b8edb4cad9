//! The folder of qlog files, and how much they may take of the disk.
//!
//! What is in the folder counts from the start, so a server that is started again does not begin anew. What goes away
//! from a full folder counts no longer after [`RECOUNT`] at most.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowstart_core::units::Bytes;

use crate::metrics::{Metrics, QlogEnd};
use crate::warnings::Warnings;

/// What files count at least, and in steps of which they grow: what file systems give to a file. So the number of files
/// is bounded as well.
const BLOCK: u64 = 4096;
/// The part of all that one file may take: no connection fills the folder alone.
const PART: u64 = 10;
/// How often a full folder is counted anew, because an operator may have moved files away.
const RECOUNT: Duration = Duration::from_secs(60);

/// A folder of qlog files.
#[derive(Clone)]
pub(crate) struct Folder(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// What all files together may take.
    most: u64,
    used: AtomicU64,
    counted: Mutex<Instant>,
    warnings: Warnings,
    metrics: Arc<Metrics>,
    /// Whether a failure to write was reported.
    told: AtomicBool,
    /// Whether it was reported that the folder is full.
    told_full: AtomicBool,
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Folder {
    /// The folder, which is made where there is none, for files of this size together.
    ///
    /// # Errors
    ///
    /// Why it cannot be made or read.
    pub(crate) fn new(path: &Path, most: Bytes, warnings: Warnings, metrics: Arc<Metrics>) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            most: most.get(),
            used: AtomicU64::new(used(path)?),
            counted: Mutex::new(Instant::now()),
            warnings,
            metrics,
            told: AtomicBool::new(false),
            told_full: AtomicBool::new(false),
        })))
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    /// What one file may take.
    pub(super) fn most_of_file(&self) -> u64 {
        self.0.most / PART
    }

    /// Gives a file room for `size` bytes, of which it has `charged` already; what it then has. `None` if the folder is
    /// full.
    pub(super) fn charge(&self, charged: u64, size: u64) -> Option<u64> {
        let wanted = size.max(1).next_multiple_of(BLOCK).max(charged);
        let enlarged = |used: u64| used.checked_add(wanted - charged).filter(|sum| *sum <= self.0.most);
        if self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enlarged).is_ok() {
            return Some(wanted);
        }
        if !self.0.told_full.swap(true, Ordering::Relaxed) {
            let (path, most) = (self.0.path.display(), Bytes::new(self.0.most));
            self.0.warnings.tell(format_args!(
                "{path}: the qlog files take {most}, which is the limit; as long as they do, there are no further ones"
            ));
        }
        let mut counted = self.0.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.elapsed() >= RECOUNT {
            *counted = Instant::now();
            let folder = self.clone();
            // A folder of many files takes longer than a connection can wait.
            drop(std::thread::Builder::new().name("qlog-folder".to_owned()).spawn(move || folder.recount()));
        }
        None
    }

    fn recount(&self) {
        if let Ok(used) = used(&self.0.path) {
            self.0.used.store(used, Ordering::Relaxed);
            if used < self.0.most {
                self.0.told_full.store(false, Ordering::Relaxed);
            }
        }
    }

    /// A file that has `charged` is gone.
    pub(super) fn give_back(&self, charged: u64) {
        let less = |used: u64| Some(used.saturating_sub(charged));
        let _ = self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// A file is left out or ends early.
    pub(super) fn count(&self, result: &'static str) {
        self.0.metrics.qlog_ends.get_or_create(&QlogEnd { result }).inc();
    }

    /// Reports only the first failure, because with a full disk every connection would report one.
    pub(super) fn failed(&self, file: &Path, error: &io::Error) {
        self.count("failed");
        if !self.0.told.swap(true, Ordering::Relaxed) {
            let path = file.display();
            let rest = "further failures are not told";
            self.0.warnings.tell(format_args!("{path}: qlog cannot be written: {error}; {rest}"));
        }
    }
}

/// What the files in a folder take.
fn used(path: &Path) -> io::Result<u64> {
    let mut sum = 0_u64;
    for entry in std::fs::read_dir(path)? {
        // What has gone away meanwhile takes nothing.
        if let Some(found) = entry?.metadata().ok().filter(std::fs::Metadata::is_file) {
            sum = sum.saturating_add(found.len().max(1).next_multiple_of(BLOCK));
        }
    }
    Ok(sum)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A folder for files of this size together; its warnings go to the list.
    pub(in crate::server::qlog) fn folder(path: &Path, most: u64) -> (Folder, Arc<Mutex<Vec<String>>>) {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let list = told.clone();
        let warnings = Warnings::new(move |warning| list.lock().unwrap().push(warning.to_owned()));
        (Folder::new(path, Bytes::new(most), warnings, Arc::new(Metrics::new())).unwrap(), told)
    }

    #[test]
    fn a_file_counts_by_blocks_and_a_full_folder_is_told_of_once() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("earlier"), [0; 5000]).unwrap();
        std::fs::create_dir(place.path().join("folder")).unwrap();
        // Five blocks, of which the earlier file has two.
        let (folder, told) = folder(place.path(), 5 * BLOCK + 100);
        let first = folder.charge(0, 0).unwrap();
        assert_eq!((first, folder.charge(first, 4096)), (BLOCK, Some(BLOCK)));
        assert_eq!(folder.charge(first, 4097), Some(2 * BLOCK));
        assert_eq!((folder.charge(2 * BLOCK, 8193), folder.charge(0, 4097)), (Some(3 * BLOCK), None));
        assert_eq!(folder.charge(0, 1), None);
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("which is the limit"), "{told:?}");
    }

    #[test]
    fn what_is_moved_away_makes_room() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("earlier");
        std::fs::write(&file, [0; 5000]).unwrap();
        let (folder, told) = folder(place.path(), 2 * BLOCK);
        assert_eq!(folder.charge(0, 1), None);
        std::fs::remove_file(&file).unwrap();
        folder.recount();
        assert_eq!((folder.charge(0, 1), folder.charge(0, 1)), (Some(BLOCK), Some(BLOCK)));
        // It is told of each time that the folder becomes full.
        assert_eq!((folder.charge(0, 1), told.lock().unwrap().len()), (None, 2));
        folder.give_back(BLOCK);
        assert_eq!(folder.charge(0, 1), Some(BLOCK));
    }
}
