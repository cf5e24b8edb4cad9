//! A path store in this process: the cache of RFC 9040 as an operating system keeps it.
//!
//! Reference: RFC 9040, section 6. Records live in an ordered map behind a lock. Nothing survives the process. The only
//! failure is a lock that a panicking thread left behind. A server also uses this store when the file of its
//! [`embedded`](super::embedded) store cannot be used.
//!
//! Differences from the reference: those of [`path_store`](super). At most `prefixes` are kept, because strangers fill
//! this map. The prefix with the oldest latest observation goes first.
//!
//! Status: the contract of all stores.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::{Observation, PathRecord, PathStore, Prefix, Retention, StoreError, UnixTime};

/// A store that is lost with its process.
#[derive(Debug)]
pub struct MemoryStore {
    retention: Retention,
    prefixes: usize,
    records: Mutex<BTreeMap<Prefix, PathRecord>>,
}

impl MemoryStore {
    /// An empty store of at most `prefixes` prefixes, at least one.
    pub fn new(retention: Retention, prefixes: usize) -> Self {
        Self { retention, prefixes: prefixes.max(1), records: Mutex::default() }
    }

    fn records(&self) -> Result<MutexGuard<'_, BTreeMap<Prefix, PathRecord>>, StoreError> {
        self.records.lock().map_err(|_| StoreError::Poisoned)
    }
}

impl PathStore for MemoryStore {
    fn get(&self, prefix: Prefix, now: UnixTime) -> Result<Option<PathRecord>, StoreError> {
        Ok(self.records()?.get(&prefix).cloned().and_then(|record| record.at(now, &self.retention)))
    }

    fn put(&self, prefix: Prefix, observation: Observation) -> Result<(), StoreError> {
        let mut records = self.records()?;
        if records.len() >= self.prefixes && !records.contains_key(&prefix) {
            let latest = |record: &PathRecord| record.observations.last().map(|seen| seen.at);
            let oldest = records.iter().min_by_key(|(_, record)| latest(record)).map(|(prefix, _)| *prefix);
            if let Some(oldest) = oldest {
                records.remove(&oldest);
            }
        }
        records.entry(prefix).or_default().add(observation, &self.retention);
        Ok(())
    }

    fn expire(&self, now: UnixTime) -> Result<u64, StoreError> {
        let mut records = self.records()?;
        let before = records.len();
        records.retain(|_, record| {
            record.forget(now, &self.retention);
            !record.observations.is_empty()
        });
        Ok((before - records.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{keeps_the_contract, prefix, seen};
    use super::*;

    #[test]
    fn memory_keeps_the_contract() {
        keeps_the_contract(&MemoryStore::new(Retention::default(), 1000));
    }

    #[test]
    fn a_full_store_forgets_the_prefix_that_was_silent_longest() {
        let store = MemoryStore::new(Retention::default(), 2);
        let [first, second, third] = ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"].map(prefix);
        store.put(first, seen(10, 50, 70_000, 25)).unwrap();
        store.put(second, seen(11, 50, 70_000, 25)).unwrap();
        store.put(first, seen(12, 50, 70_000, 25)).unwrap();
        store.put(third, seen(13, 50, 70_000, 25)).unwrap();
        let known = |prefix| store.get(prefix, UnixTime::from_secs(14)).unwrap().is_some();
        assert_eq!((known(first), known(second), known(third)), (true, false, true));
    }
}
