//! Recorded capacities of links, as files of Mahimahi: a line for each opportunity to send a packet, in milliseconds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowstart_core::spec::names;
use flowstart_core::units::Rate;
use flowstart_sim::link::capacity_trace::CapacityTrace;

use super::super::{InputError, RATES, Spec};

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
    let file = place(name, directory);
    let trace = load(&file).map_err(|problem| spec.refused(format_args!("{key}: {problem}")))?;
    let rate = trace.mean_rate();
    // A recording can be too sparse to have a rate.
    if !RATES.contains(&rate) {
        let [least, most] = [RATES.start(), RATES.end()];
        let problem =
            format_args!("{key}: {name}: its mean rate of {rate} is out of range; allowed is {least} to {most}");
        return Err(spec.refused(problem));
    }
    Ok(Some(Recording { file, trace: Arc::new(trace), rate }))
}

/// Where a recording is: at its path, or with its name alone in the folder itself.
fn place(name: &str, directory: &Path) -> PathBuf {
    let file = directory.join(name);
    let beside = Path::new(name).file_name().map(|name| directory.join(name)).filter(|beside| beside.exists());
    if file.exists() { file } else { beside.unwrap_or(file) }
}

/// The end of the keys that name recordings, as [`names::key`] spells it.
const KEY: &str = "trace";

/// The recordings that a link names.
pub(crate) fn named(link: &str) -> impl Iterator<Item = &str> {
    // `trace=FILE`, `up_trace=FILE`, and with the user's name of the link `lte=trace=FILE`.
    let is_key = |text: &str| names::key(text.trim()).ends_with(KEY);
    let of_part = move |part| {
        let mut places = str::match_indices(part, '=').map(|(place, _)| place);
        places.find(|place| is_key(&part[..*place])).map(|place| part[place + 1..].trim())
    };
    link.split(',').filter_map(of_part)
}

/// The names of the recordings of a link that are not where `directory` would have them.
pub(crate) fn missing<'a>(link: &'a str, directory: &Path) -> Vec<&'a Path> {
    let absent = named(link).filter(|name| !place(name, directory).exists());
    absent.filter_map(|name| Path::new(name).file_name().map(Path::new)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recordings_of_a_link_are_found_however_their_keys_are_written() {
        let found = |link| named(link).collect::<Vec<_>>();
        assert_eq!(found("trace=a/down,rtt=40ms,up_trace=a=up"), ["a/down", "a=up"]);
        assert_eq!(found("cell=trace=down,rtt=40ms"), ["down"]);
        assert_eq!(found("cell=Trace = down ,UP-TRACE=up"), ["down", "up"]);
        assert_eq!(found("at=2s, tRaCe=/etc/passwd"), ["/etc/passwd"]);
        assert!(found("lte,buffer=1bdp").is_empty() && found("trace").is_empty());
    }
}
