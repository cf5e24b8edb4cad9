//! The path store: measurements of earlier connections on the paths to clients.
//!
//! The server warns once of a store that is missing or broken. Connections go on without it. One thread saves what
//! connections measured; what a slow store cannot take is dropped.

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowstart_core::path::SavedPath;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::Status;
use flowstart_sensing::path_store::embedded::EmbeddedStore;
use flowstart_sensing::path_store::redis::{self, RedisStore};
use flowstart_sensing::path_store::{Merge, Observation, PathStore, Prefixes, Retention, StoreError, UnixTime};

use crate::metrics::{Metrics, OfStore};
use crate::printable::printable;
use crate::warnings::Warnings;

/// Bytes that a connection has to deliver before the store saves its path: several initial windows.
const WORTHWHILE: Bytes = Bytes::new(100_000);
/// What names of stores on a Redis server begin with.
const REDIS: &str = "redis://";
/// Longest reason of a failure that is told, in characters.
const LONGEST_REASON: usize = 300;

/// What is known of the path to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Known {
    /// For the startup scheme.
    pub(crate) saved: Option<SavedPath>,
    /// Highest rate that was delivered to its prefix.
    pub(crate) delivered: Option<Rate>,
}

/// A path store.
pub(crate) struct Paths {
    store: Box<dyn PathStore>,
    name: String,
    prefixes: Prefixes,
    warnings: Warnings,
    told: AtomicBool,
    metrics: Arc<Metrics>,
}

impl Paths {
    /// The store in a file, or on a Redis server (`redis://HOST`). A missing file is made. Warns of one that was
    /// damaged and has been repaired.
    ///
    /// # Errors
    ///
    /// Why the store cannot be used, with its name.
    pub(crate) fn open(name: &str, warnings: &Warnings, metrics: &Arc<Metrics>) -> Result<Self, String> {
        if let Some((other, _)) = name.split_once("://").filter(|_| !name.starts_with(REDIS)) {
            return Err(format!("path store: {other}:// is not known; allowed is a file, or {REDIS}HOST"));
        }
        let retention = Retention::default();
        let store: Result<Box<dyn PathStore>, String> = if name.starts_with(REDIS) {
            let config = redis::Config { server: name.to_owned(), ..redis::Config::default() };
            RedisStore::new(config, retention).map(|store| Box::new(store) as _).map_err(|error| error.to_string())
        } else {
            EmbeddedStore::open_shared(Path::new(name), retention)
                .map(|(store, repaired)| {
                    if let Some(repaired) = repaired {
                        warnings.tell(repaired);
                    }
                    Box::new(store) as _
                })
                .map_err(|problem| problem.to_string())
        };
        let store = store.inspect_err(|_| count(metrics, "open", 1))?;
        let (name, warnings, metrics) = (name.to_owned(), warnings.clone(), metrics.clone());
        Ok(Self { store, name, prefixes: Prefixes::default(), warnings, told: AtomicBool::new(false), metrics })
    }

    /// The knowledge about the path to `client`. Blocks.
    ///
    /// # Errors
    ///
    /// Why the store does not say.
    pub(crate) fn look_up(&self, client: IpAddr) -> Result<Option<Known>, StoreError> {
        let record = self.told("look-up", self.store.get(self.prefixes.prefix_of(client), UnixTime::now()))?;
        Ok(record.map(|record| {
            let delivered = record.observations().iter().map(|seen| seen.rate).max();
            Known { saved: record.saved_path(Merge::default(), UnixTime::now()), delivered }
        }))
    }

    /// Forgets what is too old, and what is damaged. Blocks.
    fn expire(&self) {
        if let Ok(forgotten) = self.told("expire", self.store.expire(UnixTime::now())) {
            count(&self.metrics, "record", forgotten.unreadable);
        }
    }

    /// Saves the measurements of a connection to `client`. Blocks.
    fn save(&self, client: IpAddr, status: &Status) {
        if let Some(observation) = observation(status, UnixTime::now()) {
            drop(self.told("save", self.store.put(self.prefixes.prefix_of(client), observation)));
        }
    }

    /// Counts failures, and warns of the first.
    fn told<T>(&self, failure: &'static str, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        answer.inspect_err(|error| {
            count(&self.metrics, failure, 1);
            if !self.told.swap(true, Ordering::Relaxed) {
                // A store on the network is somebody else's, and so are its words.
                let (name, error) = (printable(without_secret(&self.name)), printable(&error.to_string()));
                let error: String = error.chars().take(LONGEST_REASON).collect();
                self.warnings.tell(format_args!("{name}: {error}; further failures are not told"));
            }
        })
    }
}

/// The store's name without its user and password.
fn without_secret(name: &str) -> &str {
    match name.rsplit_once('@') {
        Some((_, host)) if name.starts_with(REDIS) => host,
        _ => name,
    }
}

/// Counts failures, from the first on.
fn count(metrics: &Metrics, failure: &'static str, number: u64) {
    if number > 0 {
        metrics.path_store_failures.get_or_create(&OfStore { failure }).inc_by(number);
    }
}

/// Measurements that wait for the store; further ones are dropped.
const WAITING: usize = 1024;
/// How often the store forgets what is too old.
const EXPIRY: Duration = Duration::from_secs(300);
/// How long the end of the server waits for the store.
const PATIENCE: Duration = Duration::from_secs(5);

/// Saves measurements in a thread of its own, which ends with it.
pub(super) struct Saver {
    queue: Option<SyncSender<(IpAddr, Status)>>,
    ended: Mutex<Receiver<()>>,
}

impl Saver {
    /// `None` if the system gives no thread.
    pub(super) fn new(paths: Arc<Paths>) -> Option<Self> {
        let (queue, measured) = sync_channel(WAITING);
        let (end, ended) = sync_channel(1);
        let work = move || {
            work(&paths, &measured);
            let _ = end.send(());
        };
        std::thread::Builder::new().name("path-store".to_owned()).spawn(work).ok()?;
        Some(Self { queue: Some(queue), ended: Mutex::new(ended) })
    }

    /// Saves the measurements of a connection to `client` soon, unless too many wait.
    pub(super) fn save(&self, client: IpAddr, status: Status) {
        if let Some(queue) = &self.queue {
            let _ = queue.try_send((client, status));
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.queue = None;
        // What waits is saved, unless the store is held by another program.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(PATIENCE);
    }
}

/// Saves what is measured, and lets the store forget what is too old.
fn work(paths: &Paths, measured: &Receiver<(IpAddr, Status)>) {
    paths.expire();
    let mut expired = Instant::now();
    loop {
        match measured.recv_timeout(EXPIRY) {
            Ok((client, status)) => paths.save(client, &status),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if expired.elapsed() >= EXPIRY {
            paths.expire();
            expired = Instant::now();
        }
    }
}

/// The measurements worth saving. The amount delivered in one RTT is at most the window, or half of it during slow
/// start, and at most what the rate carries in the smallest RTT: a queue is no part of the path.
fn observation(status: &Status, at: UnixTime) -> Option<Observation> {
    let (min_rtt, rate) = (status.min_rtt?, status.highest_rate?);
    if status.delivered < WORTHWHILE || status.moves > 0 || rate == Rate::from_bits_per_sec(0) {
        return None;
    }
    let window = if status.in_startup || status.ssthresh.is_none() { status.cwnd.scale(0.5) } else { status.cwnd };
    let cwnd = window.min(rate.amount_in(min_rtt));
    Some(Observation { at, min_rtt, cwnd, rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_remembered_by_what_it_delivered() {
        let millis = flowstart_core::time::Duration::from_millis;
        let status = Status {
            cwnd: Bytes::new(400_000),
            min_rtt: Some(millis(40)),
            smoothed_rtt: Some(millis(50)),
            highest_rate: Some(Rate::from_mbit(24)),
            delivered: Bytes::new(1_000_000),
            in_startup: true,
            ..Status::default()
        };
        let at = UnixTime::from_secs(7);
        // Half of the window is 200 KB; 24 Mbit/s for 40 ms carry 120 KB.
        let seen = observation(&status, at).unwrap();
        assert_eq!((seen.cwnd, seen.min_rtt), (Bytes::new(120_000), millis(40)));
        let small = Status { cwnd: Bytes::new(200_000), ..status };
        assert_eq!(observation(&small, at).unwrap().cwnd, Bytes::new(100_000));
        assert_eq!(observation(&Status { delivered: Bytes::new(99_999), ..status }, at), None);
        assert_eq!(observation(&Status { moves: 1, ..status }, at), None);
    }

    #[test]
    fn a_password_is_not_told_and_other_servers_are_no_files() {
        assert_eq!(without_secret("redis://:secret@host:1/"), "host:1/");
        assert_eq!(without_secret("redis://host:1/"), "redis://host:1/");
        assert_eq!(without_secret("a@b.redb"), "a@b.redb");
        for name in ["rediss://host/", "REDIS://host/", "valkey://host/"] {
            let problem = Paths::open(name, &Warnings::default(), &Arc::new(Metrics::new())).err().unwrap();
            assert!(problem.contains("allowed is a file, or redis://HOST"), "{problem}");
        }
    }

    #[test]
    fn a_store_that_cannot_be_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let broken = folder.path().join("broken.redb");
        std::fs::write(&broken, "no database, and long enough to be looked at as one").unwrap();
        let open = |file: &Path| Paths::open(file.to_str().unwrap(), &Warnings::default(), &Arc::new(Metrics::new()));
        let problem = open(&broken).err().unwrap();
        assert!(problem.contains("broken.redb") && problem.contains("damaged"), "{problem}");
        let file = folder.path().join("paths.redb");
        let store = open(&file).ok().unwrap();
        assert!(matches!(store.look_up("192.0.2.1".parse().unwrap()), Ok(None)));
    }
}
