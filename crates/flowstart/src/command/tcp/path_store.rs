//! Hints from the paths that a server has saved.

use std::path::Path;

use flowstart_bpf::hint::Hint;
use flowstart_sensing::path_store::{Merge, PathRecord, Prefix, Retention};

use crate::command::oracle::{now, open_existing, store_failed};
use crate::failure::Failure;

/// What a path store knows.
pub(super) fn hints(file: &Path) -> Result<Vec<Hint>, Failure> {
    let (retention, now) = (Retention::default(), now());
    let store = open_existing(file, retention)?;
    let mut hints = Vec::new();
    let hint = |(prefix, record): (Prefix, PathRecord)| {
        let saved = record.saved_path(Merge::MostRecent, now)?;
        let rate = saved.rate().filter(|rate| Hint::RATES.contains(rate))?;
        let rtt = Some(saved.rtt).filter(|rtt| Hint::RTTS.contains(rtt));
        Some(Hint { destinations: prefix.network(), rate, rtt, age: saved.age, lifetime: Some(retention.lifetime) })
    };
    for record in store.records(now).map_err(|error| store_failed(file, &error))? {
        match record {
            Ok(record) => hints.extend(hint(record)),
            Err(error) => tell!("warning: {}: {error}", file.display()),
        }
    }
    Ok(hints)
}
