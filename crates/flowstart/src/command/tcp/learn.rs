//! `flowstart tcp learn`: what connections have measured becomes the hints of later ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flowstart_bpf::hint::Hint;
use flowstart_bpf::kernel::{self, KernelError, Learner, Measured};
use flowstart_bpf::port::Port;
use flowstart_sensing::path_store::embedded::EmbeddedStore;
use flowstart_sensing::path_store::{Observation, PathStore, Prefix, Prefixes, Retention, StoreError, UnixTime};
use serde_json::json;

use super::kernel::{failure, loaded};
use super::path_store::{hint, hints};
use crate::command::oracle::{now, open};
use crate::command::relay::until_signal;
use crate::failure::Failure;
use crate::output::print;

/// How often it is asked what was measured.
const EVERY: Duration = Duration::from_secs(1);
/// How often somebody looks whether a signal has come.
const LOOKS: Duration = Duration::from_millis(50);
/// How often the store forgets what is too old.
const EXPIRY: Duration = Duration::from_secs(300);

pub(super) fn learn(file: &Path, json: bool) -> Result<(), Failure> {
    if loaded()?.is_empty() {
        return Err(Failure::Input("tcp: nothing is loaded from which could be learned".into()));
    }
    let stop = until_signal()?;
    let mut work = Work::new(file)?;
    work.go_on(&stop, json)?;
    print(&if json {
        format!("{}\n", json!({ "learning": file.display().to_string() }))
    } else {
        format!("learning into {}\n", file.display())
    })?;
    let mut next = Instant::now() + EVERY;
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            next = Instant::now() + EVERY;
            work.go_on(&stop, json)?;
        }
        std::thread::sleep(LOOKS);
    }
    // What has ended since.
    work.go_on(&AtomicBool::new(false), json)?;
    if json { Ok(()) } else { print(&format!("saved {} measurements\n", work.saved)) }
}

struct Work<'a> {
    file: &'a Path,
    store: EmbeddedStore,
    learner: Learner,
    prefixes: Prefixes,
    expired: Instant,
    saved: u64,
    /// Loaded schemes, which have all hints of the store.
    given: Vec<&'static Port>,
    /// Of what a warning was given already.
    warned: BTreeSet<&'static str>,
}

impl<'a> Work<'a> {
    fn new(file: &'a Path) -> Result<Self, Failure> {
        Ok(Self {
            file,
            learner: Learner::new().map_err(|error| failure(&error))?,
            store: open(file, Retention::default())?,
            prefixes: Prefixes::default(),
            expired: Instant::now(),
            saved: 0,
            given: Vec::new(),
            warned: BTreeSet::new(),
        })
    }

    /// Warns once of a scheme, or of the store.
    fn warn(&mut self, of: &'static str, told: &str) {
        if self.warned.insert(of) {
            tell!("warning: {told}; `flowstart tcp learn` goes on without it");
        }
    }

    fn warn_of_store(&mut self, error: &StoreError) {
        self.warn("the path store", &format!("{}: {error}", self.file.display()));
    }

    /// Saves what connections have measured meanwhile, and renews the hints of their prefixes. Ends early at `stop`.
    fn go_on(&mut self, stop: &AtomicBool, json: bool) -> Result<(), Failure> {
        let taken = self.learner.take();
        for (port, error) in taken.failed {
            self.warn(port.scheme, &error.to_string());
        }
        // One observation for each prefix: a store keeps a few, and writes each to the disk.
        let prefix_of = |measured: &Measured| self.prefixes.prefix_of(measured.destination);
        let latest: BTreeMap<_, _> = taken.measured.into_iter().map(|one| (prefix_of(&one), one)).collect();
        let now = now();
        let mut changed = Vec::new();
        for (prefix, measured) in latest {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match self.save(prefix, &measured, now) {
                Ok(hint) => changed.extend(hint),
                Err(error) => self.warn_of_store(&error),
            }
            if json {
                print(&format!("{}\n", line(prefix, &measured)))?;
            }
        }
        self.give(&taken.ports, &changed)?;
        if self.expired.elapsed() >= EXPIRY {
            self.expired = Instant::now();
            if let Err(error) = self.store.expire(now) {
                self.warn_of_store(&error);
            }
        }
        Ok(())
    }

    /// Saves a measurement; what the store knows of its prefix then.
    fn save(&mut self, prefix: Prefix, measured: &Measured, now: UnixTime) -> Result<Option<Hint>, StoreError> {
        let Measured { age, rate, cwnd, min_rtt, .. } = *measured;
        let at = UnixTime::from_secs(now.as_secs().saturating_sub(age.as_nanos() / 1_000_000_000));
        // A queue is no part of the path.
        let observation = Observation { at, min_rtt, cwnd: cwnd.min(rate.amount_in(min_rtt)), rate };
        self.store.put(prefix, observation)?;
        self.saved += 1;
        Ok(self.store.get(prefix, now)?.and_then(|record| hint(prefix, &record, now)))
    }

    /// Gives hints that have changed to loaded schemes that use such, and all to those that were loaded just now.
    fn give(&mut self, ports: &[&'static Port], changed: &[Hint]) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.given, ports.to_vec());
        for port in ports.iter().filter(|port| port.takes_hints) {
            let all = if before.contains(port) { None } else { Some(hints(&self.store, self.file)?) };
            let given = all.as_deref().unwrap_or(changed);
            if given.is_empty() {
                continue;
            }
            match kernel::change_hints(port, &[], given) {
                // It was unloaded just now, or its parameters leave it without a use for hints.
                Ok(_) | Err(KernelError::Useless { .. } | KernelError::NotLoaded { .. }) => {}
                Err(error) => self.warn(port.scheme, &error.to_string()),
            }
        }
        Ok(())
    }
}

fn line(prefix: Prefix, measured: &Measured) -> serde_json::Value {
    let Measured { scheme, destination, age: _, rate, delivered, cwnd, min_rtt } = measured;
    json!({
        "scheme": scheme,
        "destination": destination.to_string(),
        "prefix": prefix.network(),
        "rate_mbit": rate.as_mbit(),
        "min_rtt_ms": min_rtt.as_millis_f64(),
        "cwnd_bytes": cwnd.get(),
        "delivered_bytes": delivered.get(),
    })
}
