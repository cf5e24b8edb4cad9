//! A path store in a file of this host, which survives the process.
//!
//! Reference: RFC 9040, section 6; the database is redb. One table maps prefixes to records and another says which
//! version of this layout the file has. Opening checks the whole file. If it is truncated, overwritten, locked by
//! another process or from a later version, the result is a [`Problem`], and the caller goes on without it. Each put is
//! on disk when it returns, so callers put from a thread that may wait. A host that fills the file and an oracle that
//! answers from it can share it ([`EmbeddedStore::open_shared`]).
//!
//! Differences from the reference: those of [`path_store`](super).
//!
//! redb asserts some properties of its file, for instance the state of its allocator in builds with debug assertions.
//! This module catches such a panic and returns [`Problem::Damaged`] or [`StoreError::Damaged`] with what it said; the
//! panic hook of the process does not see it. The store then refuses to work. Under `panic = "abort"` it would end the
//! process.
//!
//! Status: the contract of all stores; files cut off and overwritten at random; stores and processes that share a file.

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstart_files::{begin_beside, put_where_none_is};
use ipnet::IpNet;
use redb::{
    ConcurrencyMode, Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    TableError, TableHandle,
};

use super::record::{self, DecodeError};
use super::{Forgotten, Observation, PathRecord, PathStore, Prefix, Retention, StoreError, UnixTime};

/// Records by prefix.
const RECORDS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("flowstart-paths");
/// Facts about the file.
const FACTS: TableDefinition<'static, &str, u64> = TableDefinition::new("flowstart-facts");
/// The key of the layout's version.
const LAYOUT: &str = "layout";
/// The current layout. A change that earlier programs cannot read increases it.
const LAYOUT_VERSION: u64 = 1;
/// The part of the prefixes that a full store forgets at a time, because finding the oldest means reading all of them.
const FORGOTTEN_PART: u64 = 16;
/// Memory for pages. Records are small and few are hot; redb's default is 1 GiB.
const CACHE_BYTES: usize = 8 << 20;

/// Why a file cannot be used, or its condition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Another process, or another store of this one, has it open.
    #[error("{path}: the path store is in use by another process")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged, or no path store.
    #[error("{path}: the path store is damaged, or the file is none: {cause}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the database said.
        cause: String,
    },
    /// It was damaged, and its readable part was kept. The store works.
    #[error("{path}: the path store was damaged and has been repaired; some records may be missing")]
    Repaired {
        /// The file.
        path: PathBuf,
    },
    /// It is a database of something else.
    #[error("{path}: the file is a database, but no path store")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of this program wrote it.
    #[error("{path}: the path store has layout {found}, and this program knows layouts up to {LAYOUT_VERSION}")]
    Future {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: u64,
    },
    /// Another version of the database wrote it.
    #[error("{path}: the path store has the database's file format {format}, which this program cannot read")]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u8,
    },
    /// The operating system refused.
    #[error("{path}: the path store cannot be opened: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The database refused for another reason.
    #[error("{path}: the path store cannot be opened: {cause}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: Box<redb::Error>,
    },
}

/// A store in a file.
#[derive(Debug)]
pub struct EmbeddedStore {
    /// `None` only while the store is dropped.
    database: Option<Database>,
    retention: Retention,
    damaged: AtomicBool,
}

/// An entry of a listing: a prefix and its record.
pub type Listed = Result<(Prefix, PathRecord), StoreError>;

impl EmbeddedStore {
    /// Opens the file for this store alone, or creates it, and checks all of it. The problem beside the store is
    /// [`Problem::Repaired`].
    pub fn open(path: &Path, retention: Retention) -> Result<(Self, Option<Problem>), Problem> {
        Self::open_in(path, retention, ConcurrencyMode::ExclusiveWriter)
    }

    /// As [`Self::open`], for a file that other stores, in this process or another, open in this way at the same time.
    /// A call waits while another of them puts. A file that is open for one store alone is [`Problem::Locked`].
    pub fn open_shared(path: &Path, retention: Retention) -> Result<(Self, Option<Problem>), Problem> {
        Self::open_in(path, retention, ConcurrencyMode::MultiWriter)
    }

    fn open_in(path: &Path, retention: Retention, mode: ConcurrencyMode) -> Result<(Self, Option<Problem>), Problem> {
        let owned = || path.to_path_buf();
        let opened = guarded(|| {
            appear_whole(path)?;
            let mut database =
                Database::builder().set_cache_size(CACHE_BYTES).set_concurrency_mode(mode).create(path)?;
            let whole = database.check_integrity()?;
            let layout = layout(&database)?;
            Ok((database, whole, layout))
        });
        let (database, whole, layout) = match opened {
            Err(cause) => return Err(Problem::Damaged { path: owned(), cause }),
            Ok(Err(error)) => return Err(problem(owned(), error)),
            Ok(Ok(opened)) => opened,
        };
        let store = Self { database: Some(database), retention, damaged: AtomicBool::new(false) };
        match layout {
            Layout::Known => {}
            Layout::Later(found) => return Err(Problem::Future { path: owned(), found }),
            Layout::Foreign => return Err(Problem::Foreign { path: owned() }),
        }
        Ok((store, (!whole).then(|| Problem::Repaired { path: owned() })))
    }

    /// Every prefix that has something left at `now`, in the order of their texts. A record that cannot be read is an
    /// error in its place.
    pub fn records(&self, now: UnixTime) -> Result<Vec<Listed>, StoreError> {
        self.with(|database| {
            let reading = database.begin_read().map_err(refused)?;
            let records = reading.open_table(RECORDS).map_err(refused)?;
            let mut found = Vec::new();
            for entry in records.iter().map_err(refused)? {
                let (key, bytes) = entry.map_err(refused)?;
                let Ok(network) = key.value().parse::<IpNet>() else {
                    found.push(Err(StoreError::Damaged(format!("`{}` is no prefix", key.value()))));
                    continue;
                };
                match record::decode(bytes.value()) {
                    Ok(record) => {
                        found.extend(record.at(now, &self.retention).map(|record| Ok((network.into(), record))));
                    }
                    Err(cause) => found.push(Err(unreadable(key.value(), cause))),
                }
            }
            Ok(found)
        })
    }

    /// Runs `work` on the database. A panic of the database becomes an error, for this call and all later ones.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let Some(database) = self.database.as_ref().filter(|_| !self.damaged.load(Ordering::Acquire)) else {
            return Err(StoreError::Damaged("it failed before and is no longer used".into()));
        };
        guarded(|| work(database)).unwrap_or_else(|cause| {
            self.damaged.store(true, Ordering::Release);
            Err(StoreError::Damaged(cause))
        })
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // Closing writes to the file, and may find it damaged.
        let database = self.database.take();
        let _ = guarded(|| drop(database));
    }
}

/// What the file says of itself.
enum Layout {
    Known,
    Later(u64),
    Foreign,
}

/// Writes an empty store where no file is. It appears whole: what was begun on a full disk would be no store, and could
/// not be told from a damaged one later.
fn appear_whole(path: &Path) -> Result<(), redb::Error> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let (begun, _) = begin_beside(path)?;
    let written = Database::create(&begun).map_err(redb::Error::from).and_then(|database| layout(&database));
    // Another process may have been sooner. Where a file cannot be put in place, the caller begins it there.
    let is_placed = written.is_ok() && put_where_none_is(&begun, path).is_ok_and(|is_placed| is_placed);
    if !is_placed {
        let _ = fs::remove_file(&begun);
    }
    written.map(|_| ())
}

/// Reads the layout, and writes it into an empty file.
fn layout(database: &Database) -> Result<Layout, redb::Error> {
    let reading = database.begin_read()?;
    let found = match reading.open_table(FACTS) {
        Ok(facts) => facts.get(LAYOUT)?.map(|version| version.value()),
        Err(TableError::TableDoesNotExist(_)) => {
            if reading.list_tables()?.any(|table| table.name() != RECORDS.name()) {
                return Ok(Layout::Foreign);
            }
            None
        }
        Err(TableError::TableTypeMismatch { .. } | TableError::TypeDefinitionChanged { .. }) => {
            return Ok(Layout::Foreign);
        }
        Err(error) => return Err(error.into()),
    };
    drop(reading);
    match found {
        Some(version) if version > LAYOUT_VERSION => Ok(Layout::Later(version)),
        Some(_) => Ok(Layout::Known),
        None => {
            let writing = database.begin_write()?;
            writing.open_table(FACTS)?.insert(LAYOUT, LAYOUT_VERSION)?;
            writing.open_table(RECORDS)?;
            writing.commit()?;
            Ok(Layout::Known)
        }
    }
}

thread_local! {
    /// A panic of this thread is caught and told as an error, so nothing else has to show it.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, and says what the panic said if it panics.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                usual(panic);
            }
        }));
    });
    let before = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    done.map_err(|payload| {
        payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "the database gave no reason".into())
    })
}

/// The problem behind an error of the database.
fn problem(path: PathBuf, error: redb::Error) -> Problem {
    match error {
        redb::Error::DatabaseAlreadyOpen => Problem::Locked { path },
        redb::Error::Corrupted(cause) => Problem::Damaged { path, cause },
        redb::Error::UpgradeRequired(format) => Problem::Format { path, format },
        // These two are how the database calls a file that is too short or begins with something else.
        redb::Error::Io(cause)
            if matches!(cause.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof) =>
        {
            Problem::Damaged { path, cause: cause.to_string() }
        }
        redb::Error::Io(cause) => Problem::Io { path, cause },
        other => Problem::Database { path, cause: Box::new(other) },
    }
}

/// An error of the database as one of a store.
fn refused<E: Into<redb::Error>>(error: E) -> StoreError {
    StoreError::Database(Box::new(error.into()))
}

/// Forgets the prefixes that were silent longest if there are too many, and says how many those were. Records that only
/// another version can read stay.
fn make_room(records: &mut Table<'_, &str, &[u8]>, retention: &Retention) -> Result<u64, StoreError> {
    let excess = retention.excess(records.len().map_err(refused)?);
    if excess == 0 {
        return Ok(0);
    }
    let mut known = Vec::new();
    for entry in records.iter().map_err(refused)? {
        let (key, bytes) = entry.map_err(refused)?;
        match record::decode(bytes.value()) {
            Ok(record) => known.push((record.latest(), key.value().to_owned())),
            Err(DecodeError::Version(_)) => {}
            Err(_) => known.push((None, key.value().to_owned())),
        }
    }
    known.sort_unstable();
    let forgotten = (excess + u64::from(retention.prefixes) / FORGOTTEN_PART).min(known.len() as u64);
    for (_, key) in known.iter().take(forgotten as usize) {
        records.remove(key.as_str()).map_err(refused)?;
    }
    Ok(forgotten)
}

fn unreadable(prefix: &str, cause: DecodeError) -> StoreError {
    StoreError::Record { prefix: prefix.into(), cause }
}

impl PathStore for EmbeddedStore {
    fn get(&self, prefix: Prefix, now: UnixTime) -> Result<Option<PathRecord>, StoreError> {
        let key = prefix.to_string();
        self.with(|database| {
            let reading = database.begin_read().map_err(refused)?;
            let records = reading.open_table(RECORDS).map_err(refused)?;
            let Some(bytes) = records.get(key.as_str()).map_err(refused)? else { return Ok(None) };
            let record = record::decode(bytes.value()).map_err(|cause| unreadable(&key, cause))?;
            Ok(record.at(now, &self.retention))
        })
    }

    fn put(&self, prefix: Prefix, observation: Observation) -> Result<(), StoreError> {
        let key = prefix.to_string();
        self.with(|database| {
            let writing = database.begin_write().map_err(refused)?;
            {
                let mut records = writing.open_table(RECORDS).map_err(refused)?;
                let mut record =
                    match records.get(key.as_str()).map_err(refused)?.map(|old| record::decode(old.value())) {
                        // Another version can read this record, so it is not overwritten.
                        Some(Err(cause @ DecodeError::Version(_))) => return Err(unreadable(&key, cause)),
                        Some(Ok(record)) => record,
                        Some(Err(_)) | None => PathRecord::default(),
                    };
                record.add(observation, &self.retention);
                records.insert(key.as_str(), record::encode(&record).as_slice()).map_err(refused)?;
                make_room(&mut records, &self.retention)?;
            }
            writing.commit().map_err(refused)
        })
    }

    fn expire(&self, now: UnixTime) -> Result<Forgotten, StoreError> {
        self.with(|database| {
            let writing = database.begin_write().map_err(refused)?;
            let mut forgotten = Forgotten::default();
            {
                let mut records = writing.open_table(RECORDS).map_err(refused)?;
                let mut shrunk = Vec::new();
                let keep = |key: &str, bytes: &[u8]| match record::decode(bytes) {
                    Ok(mut record) => {
                        let fewer = record.forget(now, &self.retention) > 0;
                        let kept = !record.observations().is_empty();
                        if fewer && kept {
                            shrunk.push((key.to_owned(), record::encode(&record)));
                        }
                        forgotten.expired += u64::from(!kept);
                        kept
                    }
                    Err(DecodeError::Version(_)) => true,
                    Err(_) => {
                        forgotten.unreadable += 1;
                        false
                    }
                };
                records.retain(keep).map_err(refused)?;
                for (key, bytes) in shrunk {
                    records.insert(key.as_str(), bytes.as_slice()).map_err(refused)?;
                }
                forgotten.expired += make_room(&mut records, &self.retention)?;
            }
            writing.commit().map_err(refused)?;
            Ok(forgotten)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{forgets_the_prefix_that_was_silent_longest, keeps_the_contract, prefix, seen};
    use super::*;

    /// The store if there is one, and the problem.
    fn open_or_none(path: &Path, retention: Retention) -> (Option<EmbeddedStore>, Option<Problem>) {
        match EmbeddedStore::open(path, retention) {
            Ok((store, problem)) => (Some(store), problem),
            Err(problem) => (None, Some(problem)),
        }
    }

    fn open(path: &Path) -> EmbeddedStore {
        let (store, problem) = open_or_none(path, Retention::default());
        assert!(problem.is_none(), "{problem:?}");
        store.unwrap()
    }

    fn refusal(path: &Path) -> Problem {
        let (store, problem) = open_or_none(path, Retention::default());
        assert!(store.is_none());
        problem.unwrap()
    }

    /// A file with ten prefixes.
    fn written(path: &Path) -> Vec<u8> {
        let store = open(path);
        for third in 0..10 {
            store.put(prefix(&format!("192.0.{third}.0/24")), seen(1000, 50, 70_000, 25)).unwrap();
        }
        drop(store);
        fs::read(path).unwrap()
    }

    #[test]
    fn a_file_keeps_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        keeps_the_contract(&open(&folder.path().join("paths")));
    }

    #[test]
    fn a_full_file_forgets_the_prefixes_that_were_silent_longest() {
        let folder = tempfile::tempdir().unwrap();
        let few = |prefixes| Retention { prefixes, ..Retention::default() };
        let (store, _) = open_or_none(&folder.path().join("two"), few(2));
        forgets_the_prefix_that_was_silent_longest(&store.unwrap());

        // A full store of 64 forgets a sixteenth more than it has to.
        let (store, _) = open_or_none(&folder.path().join("more"), few(64));
        let store = store.unwrap();
        let put = |third: u64| store.put(prefix(&format!("192.0.{third}.0/24")), seen(third, 50, 70_000, 25)).unwrap();
        let kept = || store.records(UnixTime::from_secs(100)).unwrap().len();
        (0..64).for_each(put);
        assert_eq!(kept(), 64);
        put(64);
        assert_eq!(kept(), 60);
        let known = |third| store.get(prefix(&format!("192.0.{third}.0/24")), UnixTime::from_secs(100)).unwrap();
        assert!((0..5).all(|third| known(third).is_none()) && (5..65).all(|third| known(third).is_some()));
    }

    #[test]
    fn a_file_with_more_prefixes_than_are_kept_loses_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths");
        let store = open(&path);
        for third in 0..10 {
            store.put(prefix(&format!("192.0.{third}.0/24")), seen(1000 + third, 50, 70_000, 25)).unwrap();
        }
        store
            .with(|database| {
                let writing = database.begin_write().unwrap();
                writing.open_table(RECORDS).unwrap().insert("192.0.99.0/24", [9u8].as_slice()).unwrap();
                writing.open_table(RECORDS).unwrap().insert("192.0.98.0/24", [1u8, 1].as_slice()).unwrap();
                writing.commit().map_err(refused)
            })
            .unwrap();
        drop(store);
        let now = UnixTime::from_secs(1010);
        let (store, _) = open_or_none(&path, Retention { prefixes: 4, ..Retention::default() });
        let store = store.unwrap();
        // The damaged one goes, and seven as too many; the one of a later version is not touched, and counts.
        assert_eq!(store.expire(now).unwrap(), Forgotten { expired: 7, unreadable: 1 });
        let known = |third| store.get(prefix(&format!("192.0.{third}.0/24")), now).is_ok_and(|known| known.is_some());
        assert_eq!((0..10).filter(|third| known(*third)).collect::<Vec<_>>(), [7, 8, 9]);
        assert!(matches!(store.get(prefix("192.0.99.0/24"), now), Err(StoreError::Record { .. })));
    }

    #[test]
    fn what_was_put_is_there_after_the_file_was_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths");
        written(&path);
        let record = open(&path).get(prefix("192.0.3.0/24"), UnixTime::from_secs(1001)).unwrap().unwrap();
        assert_eq!(record.observations(), [seen(1000, 50, 70_000, 25)]);
    }

    #[test]
    fn a_locked_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths");
        let _first = open(&path);
        assert!(matches!(refusal(&path), Problem::Locked { .. }));
    }

    #[test]
    fn two_that_begin_a_store_at_once_share_it_and_leave_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths.redb");
        std::thread::scope(|threads| {
            let open = || EmbeddedStore::open_shared(&path, Retention::default()).unwrap();
            let both = [threads.spawn(open), threads.spawn(open)];
            let [(first, none), (second, nothing)] = both.map(|one| one.join().unwrap());
            assert!(none.is_none() && nothing.is_none());
            first.put(prefix("192.0.2.0/24"), seen(1000, 50, 70_000, 25)).unwrap();
            assert!(second.get(prefix("192.0.2.0/24"), UnixTime::from_secs(1000)).unwrap().is_some());
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // Where it cannot be written, nothing is left.
        let nowhere = folder.path().join("no-such-folder/paths.redb");
        assert!(matches!(refusal(&nowhere), Problem::Io { .. }));
    }

    #[test]
    fn stores_that_share_a_file_see_what_the_others_put() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths");
        let shared = || EmbeddedStore::open_shared(&path, Retention::default()).map(|(store, _)| store);
        let (one, other) = (shared().unwrap(), shared().unwrap());
        let (here, now) = (prefix("192.0.2.0/24"), UnixTime::from_secs(1001));
        one.put(here, seen(1000, 50, 70_000, 25)).unwrap();
        other.put(here, seen(1001, 40, 80_000, 30)).unwrap();
        assert_eq!(one.get(here, now).unwrap().unwrap().samples(), 2);
        // Meanwhile no store can have the file alone, and a store that has it alone does not share it.
        assert!(matches!(refusal(&path), Problem::Locked { .. }));
        drop((one, other));
        let _alone = open(&path);
        assert!(matches!(shared(), Err(Problem::Locked { .. })));
    }

    #[test]
    fn all_records_are_listed_and_those_that_cannot_be_read_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("paths"));
        store.put(prefix("192.0.2.0/24"), seen(1000, 50, 70_000, 25)).unwrap();
        store.put(prefix("2001:db8::/48"), seen(3000, 10, 20_000, 5)).unwrap();
        store
            .with(|database| {
                let writing = database.begin_write().unwrap();
                writing.open_table(RECORDS).unwrap().insert("192.0.3.0/24", [9u8].as_slice()).unwrap();
                writing.open_table(RECORDS).unwrap().insert("what", [9u8].as_slice()).unwrap();
                writing.commit().map_err(refused)
            })
            .unwrap();
        let listed = |now| store.records(UnixTime::from_secs(now)).unwrap();
        let all = listed(3000);
        assert!(matches!(&all[0], Ok((network, _)) if *network == prefix("192.0.2.0/24")));
        assert!(matches!(&all[1], Err(StoreError::Record { cause: DecodeError::Version(9), .. })));
        assert!(matches!(&all[2], Ok((network, _)) if *network == prefix("2001:db8::/48")));
        assert!(matches!(&all[3], Err(StoreError::Damaged(_))));
        assert_eq!(listed(4600).len(), 3, "the first is 3600 s old");
    }

    #[test]
    fn a_file_of_a_later_layout_is_told_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths");
        written(&path);
        {
            let database = Database::open(&path).unwrap();
            let writing = database.begin_write().unwrap();
            writing.open_table(FACTS).unwrap().insert(LAYOUT, 7).unwrap();
            writing.commit().unwrap();
        }
        assert!(matches!(refusal(&path), Problem::Future { found: 7, .. }));
        assert!(refusal(&path).to_string().ends_with("has layout 7, and this program knows layouts up to 1"));
    }

    #[test]
    fn a_record_of_a_later_version_is_told_and_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("paths"));
        let here = prefix("192.0.2.0/24");
        store
            .with(|database| {
                let writing = database.begin_write().unwrap();
                writing.open_table(RECORDS).unwrap().insert("192.0.2.0/24", [9u8, 1, 2].as_slice()).unwrap();
                writing.open_table(RECORDS).unwrap().insert("192.0.3.0/24", [1u8, 1, 2].as_slice()).unwrap();
                writing.commit().map_err(refused)
            })
            .unwrap();
        let version = |error| matches!(error, StoreError::Record { cause: DecodeError::Version(9), .. });
        assert!(version(store.get(here, UnixTime::from_secs(0)).unwrap_err()));
        assert!(version(store.put(here, seen(0, 50, 70_000, 25)).unwrap_err()));
        // A damaged record of this version is reported once and replaced by the next observation.
        let there = prefix("192.0.3.0/24");
        assert!(matches!(store.get(there, UnixTime::from_secs(0)), Err(StoreError::Record { .. })));
        store.put(there, seen(0, 50, 70_000, 25)).unwrap();
        assert!(store.get(there, UnixTime::from_secs(0)).unwrap().is_some());
    }

    #[test]
    fn other_files_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "not a database, but long enough to be looked at. ".repeat(100)).unwrap();
        assert!(matches!(refusal(&text), Problem::Damaged { .. }), "{:?}", refusal(&text));

        let foreign = folder.path().join("foreign");
        {
            let database = Database::create(&foreign).unwrap();
            let writing = database.begin_write().unwrap();
            writing.open_table(TableDefinition::<u64, u64>::new("something")).unwrap();
            writing.commit().unwrap();
        }
        assert!(matches!(refusal(&foreign), Problem::Foreign { .. }));
        assert!(matches!(refusal(&folder.path().join("no/such/folder")), Problem::Io { .. }));
        assert!(matches!(refusal(folder.path()), Problem::Io { .. }), "a folder");
    }

    /// Opens whatever is there and uses it; all that matters is that nothing panics.
    fn survive(path: &Path) {
        let (store, problem) = open_or_none(path, Retention::default());
        assert!(store.is_some() || problem.is_some());
        if let Some(store) = store {
            for third in 0..10 {
                let _ = store.get(prefix(&format!("192.0.{third}.0/24")), UnixTime::from_secs(1001));
            }
            let _ = store.put(prefix("192.0.2.0/24"), seen(1001, 50, 70_000, 25));
            let _ = store.expire(UnixTime::from_secs(1_000_000));
        }
    }

    #[test]
    fn a_file_that_was_cut_off_anywhere_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths");
        let whole = written(&path);
        for length in (0..whole.len()).step_by(whole.len() / 40).chain([1, 9, 63, 64, 511, 512, 4095, 4096]) {
            fs::write(&path, &whole[..length]).unwrap();
            survive(&path);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn a_file_that_was_overwritten_anywhere_does_no_harm(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            in_the_head in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("paths");
            let mut bytes = written(&path);
            let range = if in_the_head { 512 } else { bytes.len() };
            for (place, value) in damage {
                bytes[place.index(range)] = value;
            }
            fs::write(&path, bytes).unwrap();
            survive(&path);
        }

        #[test]
        fn a_file_of_arbitrary_bytes_does_no_harm(
            bytes in prop::collection::vec(any::<u8>(), 0..5000), like_a_database in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("paths");
            let mut whole = if like_a_database { written(&path)[..9].to_vec() } else { Vec::new() };
            whole.extend(bytes);
            fs::write(&path, whole).unwrap();
            survive(&path);
        }
    }
}
