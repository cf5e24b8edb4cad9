//! Hints from the paths that a server has saved.

use std::path::Path;

use flowstart_bpf::hint::Hint;
use flowstart_core::units::Bytes;
use flowstart_sensing::path_store::embedded::EmbeddedStore;
use flowstart_sensing::path_store::{Merge, PathRecord, Prefix, Retention, UnixTime};

use crate::command::oracle::{now, open_existing, store_failed};
use crate::failure::Failure;

/// What a path store in a file knows.
pub(super) fn hints_of(file: &Path) -> Result<Vec<Hint>, Failure> {
    hints(&open_existing(file, Retention::default())?, file)
}

/// What an open one knows.
pub(super) fn hints(store: &EmbeddedStore, file: &Path) -> Result<Vec<Hint>, Failure> {
    let now = now();
    let mut hints = Vec::new();
    for record in store.records(now).map_err(|error| store_failed(file, &error))? {
        match record {
            Ok((prefix, record)) => hints.extend(hint(prefix, &record, now)),
            Err(error) => tell!("warning: {}: {error}", file.display()),
        }
    }
    Ok(hints)
}

/// Bytes that any connection sends at once (RFC 6928). A path that holds less needs no hint, and a launch of it would
/// be slower than none.
const INITIAL_WINDOW: Bytes = Bytes::new(14_600);

/// What a record says of the paths to its prefix; `None`: nothing that a hint may have.
///
/// All connections of a prefix get it, and one slow client is not the prefix: the median counts.
pub(super) fn hint(prefix: Prefix, record: &PathRecord, now: UnixTime) -> Option<Hint> {
    let saved = record.saved_path(Merge::Median, now).filter(|saved| saved.cwnd > INITIAL_WINDOW)?;
    let rate = saved.rate().filter(|rate| Hint::RATES.contains(rate))?;
    let rtt = Some(saved.rtt).filter(|rtt| Hint::RTTS.contains(rtt));
    let lifetime = Some(Retention::default().lifetime);
    Some(Hint { destinations: prefix.network(), rate, rtt, age: saved.age, lifetime })
}
