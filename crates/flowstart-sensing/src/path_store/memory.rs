//! A path store in this process: the cache of RFC 9040 as an operating system keeps it.
//!
//! Reference: RFC 9040, section 6. Records live in an ordered map behind a lock. Nothing survives the process. The only
//! failure is a lock that a panicking thread left behind. A server also uses this store when the file of its
//! [`embedded`](super::embedded) store cannot be used.
//!
//! Differences from the reference: those of [`path_store`](super).
//!
//! Status: the contract of all stores.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::{Forgotten, Observation, PathRecord, PathStore, Prefix, Retention, StoreError, UnixTime};

/// A store that is lost with its process.
#[derive(Debug)]
pub struct MemoryStore {
    retention: Retention,
    records: Mutex<BTreeMap<Prefix, PathRecord>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(retention: Retention) -> Self {
        Self { retention, records: Mutex::default() }
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
        if self.retention.excess(records.len() as u64 + 1) > 0 && !records.contains_key(&prefix) {
            let oldest = records.iter().min_by_key(|(_, record)| record.latest()).map(|(prefix, _)| *prefix);
            if let Some(oldest) = oldest {
                records.remove(&oldest);
            }
        }
        records.entry(prefix).or_default().add(observation, &self.retention);
        Ok(())
    }

    fn expire(&self, now: UnixTime) -> Result<Forgotten, StoreError> {
        let mut records = self.records()?;
        let before = records.len();
        records.retain(|_, record| {
            record.forget(now, &self.retention);
            !record.observations.is_empty()
        });
        Ok(Forgotten { expired: (before - records.len()) as u64, unreadable: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{forgets_the_prefix_that_was_silent_longest, keeps_the_contract};
    use super::*;

    #[test]
    fn memory_keeps_the_contract() {
        keeps_the_contract(&MemoryStore::new(Retention::default()));
        let few = Retention { prefixes: 2, ..Retention::default() };
        forgets_the_prefix_that_was_silent_longest(&MemoryStore::new(few));
    }
}
