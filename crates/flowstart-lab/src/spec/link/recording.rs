//! Recorded capacities of links, as files of Mahimahi: a line for each opportunity to send a packet, in milliseconds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowstart_core::units::Rate;
use flowstart_sim::link::capacity_trace::CapacityTrace;

use super::super::{InputError, Spec};

/// A recorded capacity.
pub(super) struct Recording {
    /// Its file.
    pub(super) file: PathBuf,
    /// Its contents.
    pub(super) trace: Arc<CapacityTrace>,
    /// Its mean rate.
    pub(super) rate: Rate,
}

/// Reads the recording that `key` names. Paths are relative to `directory`.
pub(super) fn read(spec: &mut Spec<'_>, key: &'static str, directory: &Path) -> Result<Option<Recording>, InputError> {
    let Some(name) = spec.value(key)? else { return Ok(None) };
    let file = directory.join(name);
    let trace = load(&file).map_err(|problem| spec.refused(format_args!("{key}: {problem}")))?;
    let rate = trace.mean_rate();
    // A recording can be too sparse to have a rate.
    if rate.bits_per_sec() < 1_000 {
        let problem = format_args!("{key}: its mean rate of {rate} is out of range; allowed is 1kbit or more");
        return Err(spec.refused(problem));
    }
    Ok(Some(Recording { file, trace: Arc::new(trace), rate }))
}

fn load(file: &Path) -> Result<CapacityTrace, String> {
    let shown = file.display();
    let bytes = crate::spec::file::bytes(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        format!("{shown}, line {line}: this is not text; expected one whole number of milliseconds per line")
    })?;
    CapacityTrace::parse(&text).map_err(|error| format!("{shown}: {error}"))
}
