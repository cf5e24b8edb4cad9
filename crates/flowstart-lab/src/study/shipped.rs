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

/// The scenarios that come with the program: name and text. They work wherever the program is installed;
/// [`missing_recordings`] says what a scenario needs besides.
pub const SHIPPED: &[(&str, &str)] = &[
    ("adaptive-video", include_str!("../../scenarios/adaptive-video.toml")),
    ("aqm-matrix", include_str!("../../scenarios/aqm-matrix.toml")),
    ("blitzstart-one-connection", include_str!("../../scenarios/blitzstart-one-connection.toml")),
    ("blitzstart-table1", include_str!("../../scenarios/blitzstart-table1.toml")),
    ("buffer-factors", include_str!("../../scenarios/buffer-factors.toml")),
    ("call-beside-starts", include_str!("../../scenarios/call-beside-starts.toml")),
    ("cellular", include_str!("../../scenarios/cellular.toml")),
    ("daass", include_str!("../../scenarios/daass.toml")),
    ("estimated-hints", include_str!("../../scenarios/estimated-hints.toml")),
    ("explicit-feedback", include_str!("../../scenarios/explicit-feedback.toml")),
    ("false-hints", include_str!("../../scenarios/false-hints.toml")),
    ("fast-startups-by-size", include_str!("../../scenarios/fast-startups-by-size.toml")),
    ("flow-control-announced", include_str!("../../scenarios/flow-control-announced.toml")),
    ("flow-control-autotuned", include_str!("../../scenarios/flow-control-autotuned.toml")),
    ("flow-control-ignored", include_str!("../../scenarios/flow-control-ignored.toml")),
    ("flow-initiation", include_str!("../../scenarios/flow-initiation.toml")),
    ("flow-initiation-schemes", include_str!("../../scenarios/flow-initiation-schemes.toml")),
    ("four-startups", include_str!("../../scenarios/four-startups.toml")),
    ("heavy-tail", include_str!("../../scenarios/heavy-tail.toml")),
    ("heavy-tail-large-only", include_str!("../../scenarios/heavy-tail-large-only.toml")),
    ("heavy-tail-small-transfers", include_str!("../../scenarios/heavy-tail-small-transfers.toml")),
    ("hints-beside-bbr", include_str!("../../scenarios/hints-beside-bbr.toml")),
    ("hints-in-bbr", include_str!("../../scenarios/hints-in-bbr.toml")),
    ("initial-rto", include_str!("../../scenarios/initial-rto.toml")),
    ("initial-spreading", include_str!("../../scenarios/initial-spreading.toml")),
    ("load-transient", include_str!("../../scenarios/load-transient.toml")),
    ("low-orbit", include_str!("../../scenarios/low-orbit.toml")),
    ("lying-clients", include_str!("../../scenarios/lying-clients.toml")),
    ("many-flows", include_str!("../../scenarios/many-flows.toml")),
    ("matrix-alone", include_str!("../../scenarios/matrix-alone.toml")),
    ("matrix-beside-bbr", include_str!("../../scenarios/matrix-beside-bbr.toml")),
    ("matrix-beside-cubic", include_str!("../../scenarios/matrix-beside-cubic.toml")),
    ("mid-band-5g", include_str!("../../scenarios/mid-band-5g.toml")),
    ("mixed-rtts", include_str!("../../scenarios/mixed-rtts.toml")),
    ("mobility", include_str!("../../scenarios/mobility.toml")),
    ("paced-launches", include_str!("../../scenarios/paced-launches.toml")),
    ("pacing-rates", include_str!("../../scenarios/pacing-rates.toml")),
    ("page-versions", include_str!("../../scenarios/page-versions.toml")),
    ("pages", include_str!("../../scenarios/pages.toml")),
    ("parallel-connections", include_str!("../../scenarios/parallel-connections.toml")),
    ("pareto", include_str!("../../scenarios/pareto.toml")),
    ("pep", include_str!("../../scenarios/pep.toml")),
    ("pep-quic", include_str!("../../scenarios/pep-quic.toml")),
    ("policed-links", include_str!("../../scenarios/policed-links.toml")),
    ("quantized-hints", include_str!("../../scenarios/quantized-hints.toml")),
    ("queue-disciplines", include_str!("../../scenarios/queue-disciplines.toml")),
    ("quic-search-geo", include_str!("../../scenarios/quic-search-geo.toml")),
    ("quic-table1", include_str!("../../scenarios/quic-table1.toml")),
    ("quick-start-10g", include_str!("../../scenarios/quick-start-10g.toml")),
    ("quick-start-after-idle", include_str!("../../scenarios/quick-start-after-idle.toml")),
    ("quick-start-bogus-requests", include_str!("../../scenarios/quick-start-bogus-requests.toml")),
    ("quick-start-deployment", include_str!("../../scenarios/quick-start-deployment.toml")),
    ("quick-start-drop-rates", include_str!("../../scenarios/quick-start-drop-rates.toml")),
    ("quick-start-durations", include_str!("../../scenarios/quick-start-durations.toml")),
    ("quick-start-extreme", include_str!("../../scenarios/quick-start-extreme.toml")),
    ("quick-start-extreme-conservative", include_str!("../../scenarios/quick-start-extreme-conservative.toml")),
    ("quick-start-fixed-time", include_str!("../../scenarios/quick-start-fixed-time.toml")),
    ("quick-start-gprs", include_str!("../../scenarios/quick-start-gprs.toml")),
    ("quick-start-hidden-hop", include_str!("../../scenarios/quick-start-hidden-hop.toml")),
    ("quick-start-improvement", include_str!("../../scenarios/quick-start-improvement.toml")),
    ("quick-start-load", include_str!("../../scenarios/quick-start-load.toml")),
    ("quick-start-lying-receiver", include_str!("../../scenarios/quick-start-lying-receiver.toml")),
    ("quick-start-middlebox", include_str!("../../scenarios/quick-start-middlebox.toml")),
    ("quick-start-mobility", include_str!("../../scenarios/quick-start-mobility.toml")),
    ("quick-start-option-delay", include_str!("../../scenarios/quick-start-option-delay.toml")),
    ("quick-start-parallel", include_str!("../../scenarios/quick-start-parallel.toml")),
    ("quick-start-quic", include_str!("../../scenarios/quick-start-quic.toml")),
    ("quick-start-request-flood", include_str!("../../scenarios/quick-start-request-flood.toml")),
    ("quick-start-request-size", include_str!("../../scenarios/quick-start-request-size.toml")),
    ("quick-start-threshold", include_str!("../../scenarios/quick-start-threshold.toml")),
    ("quick-start-upper-bound", include_str!("../../scenarios/quick-start-upper-bound.toml")),
    ("quick-start-utilization", include_str!("../../scenarios/quick-start-utilization.toml")),
    ("quick-start-verified", include_str!("../../scenarios/quick-start-verified.toml")),
    ("quick-start-wasted-upstream", include_str!("../../scenarios/quick-start-wasted-upstream.toml")),
    ("relaxed-reduction", include_str!("../../scenarios/relaxed-reduction.toml")),
    ("rising-load", include_str!("../../scenarios/rising-load.toml")),
    ("scone", include_str!("../../scenarios/scone.toml")),
    ("search-buffers", include_str!("../../scenarios/search-buffers.toml")),
    ("search-classes", include_str!("../../scenarios/search-classes.toml")),
    ("search-flow-control", include_str!("../../scenarios/search-flow-control.toml")),
    ("search-geo", include_str!("../../scenarios/search-geo.toml")),
    ("search-held-back", include_str!("../../scenarios/search-held-back.toml")),
    ("sharing", include_str!("../../scenarios/sharing.toml")),
    ("slow-start-variants", include_str!("../../scenarios/slow-start-variants.toml")),
    ("sources", include_str!("../../scenarios/sources.toml")),
    ("thinned-acknowledgements", include_str!("../../scenarios/thinned-acknowledgements.toml")),
    ("two-bottlenecks", include_str!("../../scenarios/two-bottlenecks.toml")),
    ("video-chunks", include_str!("../../scenarios/video-chunks.toml")),
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
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
