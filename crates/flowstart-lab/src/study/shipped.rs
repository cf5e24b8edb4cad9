//! The scenarios that come with the program.

use std::path::{Path, PathBuf};

use flowstart_core::spec::names;

use crate::spec::link::recording;
use crate::study::scenario::Scenario;

/// Where the recordings come from that scenarios of the program name.
pub const RECORDINGS_SOURCE: &str = "they are Mahimahi's, https://github.com/ravinet/mahimahi, folder traces";

/// The files of recordings that a scenario names, as written. It names no other files.
pub fn named_recordings(scenario: &Scenario) -> Vec<&str> {
    let links = scenario.link.iter().chain(&scenario.mobility).chain(&scenario.link_options);
    links.flat_map(|link| recording::named(link)).collect()
}

/// The recordings that a scenario names and that are neither where it says nor in `directory` itself.
pub fn missing_recordings(scenario: &Scenario, directory: &Path) -> Vec<PathBuf> {
    let named = scenario.link.iter().flat_map(|link| recording::missing(link, directory));
    let mut files: Vec<PathBuf> = named.map(Path::to_owned).collect();
    files.sort();
    files.dedup();
    files
}

/// Each scenario of these names with its text, from the folder that the build script has found.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!(env!("FLOWSTART_SCENARIOS"), "/", $name, ".toml")))),*]
    };
}

/// The scenarios that come with the program: name and text. They work wherever the program is installed;
/// [`missing_recordings`] says what a scenario needs besides.
pub const SHIPPED: &[(&str, &str)] = shipped![
    "adaptive-video",
    "aqm-matrix",
    "blitzstart-one-connection",
    "blitzstart-table1",
    "buffer-factors",
    "buffer-factors-recordings",
    "call-beside-starts",
    "cellular",
    "daass",
    "estimated-hints",
    "explicit-feedback",
    "false-hints",
    "fast-startups-by-size",
    "flow-control-announced",
    "flow-control-autotuned",
    "flow-control-ignored",
    "flow-initiation",
    "flow-initiation-schemes",
    "four-startups",
    "heavy-tail",
    "heavy-tail-large-only",
    "heavy-tail-small-transfers",
    "hints-beside-bbr",
    "hints-in-bbr",
    "initial-rto",
    "initial-spreading",
    "load-transient",
    "low-orbit",
    "lying-clients",
    "many-flows",
    "matrix-alone",
    "matrix-beside-bbr",
    "matrix-beside-cubic",
    "mid-band-5g",
    "mixed-rtts",
    "mobility",
    "paced-launches",
    "pacing-rates",
    "page-versions",
    "pages",
    "parallel-connections",
    "pareto",
    "pep",
    "pep-quic",
    "policed-links",
    "quantized-hints",
    "queue-disciplines",
    "quic-search-geo",
    "quic-table1",
    "quick-start-10g",
    "quick-start-after-idle",
    "quick-start-bogus-requests",
    "quick-start-deployment",
    "quick-start-drop-rates",
    "quick-start-durations",
    "quick-start-extreme",
    "quick-start-extreme-conservative",
    "quick-start-fixed-time",
    "quick-start-gprs",
    "quick-start-hidden-hop",
    "quick-start-improvement",
    "quick-start-load",
    "quick-start-lying-receiver",
    "quick-start-middlebox",
    "quick-start-mobility",
    "quick-start-option-delay",
    "quick-start-parallel",
    "quick-start-quic",
    "quick-start-request-flood",
    "quick-start-request-size",
    "quick-start-threshold",
    "quick-start-upper-bound",
    "quick-start-utilization",
    "quick-start-verified",
    "quick-start-wasted-upstream",
    "relaxed-reduction",
    "rising-load",
    "scone",
    "search-buffers",
    "search-classes",
    "search-flow-control",
    "search-geo",
    "search-held-back",
    "sharing",
    "slow-start-variants",
    "sources",
    "thinned-acknowledgements",
    "two-bottlenecks",
    "video-chunks",
];

/// A scenario that comes with the program.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// What it asks.
    pub scenario: Scenario,
    /// Its text.
    pub text: &'static str,
}

/// Reads the scenario of this name, whose recordings are looked for in `directory`.
///
/// # Errors
///
/// There is no such scenario, or recordings are missing.
pub fn read(written: &str, directory: &Path) -> Result<Shipped, String> {
    let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
    let Some((name, text)) = SHIPPED.iter().find(|(name, _)| names::is_same(name, written)) else {
        let allowed = "no such file, and no scenario of the program; `flowstart list scenarios` shows those";
        return Err(names::unknown(written, &names, allowed));
    };
    let scenario = Scenario::from_text(text).map_err(|error| format!("{name}: {error}"))?;
    let missing = missing_recordings(&scenario, directory);
    if !missing.is_empty() {
        let files: Vec<String> = missing.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        return Err(format!(
            "{name}: needs recorded capacities that do not come with the program: {}; {RECORDINGS_SOURCE}; put them \
             into the current folder",
            files.join(", ")
        ));
    }
    Ok(Shipped { name, scenario, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_may_be_in_the_folder_itself() {
        let folder = tempfile::tempdir().unwrap();
        let cellular = SHIPPED.iter().find(|(name, _)| *name == "cellular").unwrap();
        let scenario = Scenario::from_text(cellular.1).unwrap();
        let missing = missing_recordings(&scenario, folder.path());
        // Three recordings, both directions of each.
        assert_eq!(missing.len(), 6, "{missing:?}");
        for file in &missing {
            assert!(scenario.plan(folder.path()).is_err());
            std::fs::write(folder.path().join(file), "1\n2\n3\n").unwrap();
        }
        assert!(missing_recordings(&scenario, folder.path()).is_empty());
        assert!(scenario.plan(folder.path()).is_ok());
    }

    #[test]
    fn every_scenario_in_the_repository_is_shipped_and_valid() {
        let folder = Path::new(env!("FLOWSTART_SCENARIOS"));
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            // Populations have a folder of their own.
            .filter(|path| path.is_file())
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, files);
        for (name, text) in SHIPPED {
            let scenario = Scenario::from_text(text).unwrap();
            assert!(!scenario.question.is_empty(), "{name}");
            let missing = missing_recordings(&scenario, Path::new("."));
            assert!(!missing.is_empty() || scenario.plan(Path::new(".")).is_ok(), "{name}");
        }
    }
}
