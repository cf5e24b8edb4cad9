//! `flowstart break`: a scheme in, the settings out in which it is worst.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// Settings that are soon simulated.
const SMALL: [&str; 6] = ["--reps", "5", "--within", "rate=1mbit..20mbit", "rtt=10ms..80ms", "size=70KB..300KB"];

fn flowstart(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.args(arguments).current_dir(folder);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&command.arg("--json").assert().success().get_output().stdout).unwrap()
}

#[test]
fn the_worst_setting_is_a_scenario_that_shows_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["break", "blitzstart", "--by", "regret", "waste", "--points", "40"];
    let told = json(&mut flowstart(folder.path(), &[&arguments[..], &SMALL].concat()));
    let [regret, waste] = &told["worst"].as_array().unwrap()[..] else { panic!("{told:#}") };
    assert_eq!([&regret["measure"], &waste["measure"]], ["regret", "waste"]);
    // A false hint is the way to waste.
    let badness = &waste["found"]["badness"];
    assert!(badness["value"].as_f64().unwrap() > 0.5, "{told:#}");
    assert!(waste["setting"].as_str().unwrap().contains("hint="), "{waste:#}");
    for (worst, metric) in [(regret, "fct_ms"), (waste, "inflation")] {
        let badness = &worst["found"]["badness"];
        let file = worst["scenario"].as_str().unwrap();
        let run = json(&mut flowstart(folder.path(), &["run", file]));
        let mean = |place: usize| run["cells"][place]["metrics"][metric]["mean"].as_f64().unwrap();
        for (place, of) in [(0, "other"), (1, "own")] {
            let (shown, found) = (mean(place), badness[of].as_f64().unwrap());
            assert!((shown - found).abs() <= 1e-9 * found.max(1.0), "{file}: {of} {found}, {shown} in the run");
        }
        let interval: Vec<f64> = badness["ci95"].as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect();
        let value = badness["value"].as_f64().unwrap();
        assert!(interval[0] <= value && value <= interval[1], "{badness}");
    }
    assert!(regret["answer"].as_str().unwrap().starts_with("At its worst a transfer with blitzstart takes "));
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let told = |jobs: &str| {
        let out = format!("of-{jobs}");
        let options = ["break", "jump-start", "--by", "harm", "--points", "15", "--jobs", jobs, "--out", &out];
        let mut told = json(&mut flowstart(folder.path(), &[&options[..], &SMALL].concat()));
        told["worst"][0]["scenario"].take();
        told
    };
    assert_eq!(told("1"), told("2"));
}

#[test]
fn a_scheme_without_knowledge_is_searched_without_it_and_may_be_bad_in_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let same = ["break", "slow-start:iw=10", "--points", "10"];
    let told = json(&mut flowstart(folder.path(), &[&same[..], &SMALL].concat()));
    let names: Vec<&str> = told["space"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"aqm") && !names.contains(&"hint") && !names.contains(&"knowledge"), "{names:?}");
    assert!(told["worst"].as_array().unwrap().iter().all(|one| one["found"].is_null()), "{told:#}");
    assert!(told["worst"][0]["answer"].as_str().unwrap().starts_with("No setting was found"), "{told:#}");
    assert!(!folder.path().join("break-slow-start-iw-10").exists());
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("full")).unwrap();
    std::fs::write(folder.path().join("full/file"), "").unwrap();
    for (arguments, expected) in [
        (&["blitsstart"][..], "did you mean `blitzstart`"),
        (&["blitzstart", "--against", "blitzstart"], "is the scheme in question"),
        (&["blitzstart", "--against", "slow"], "`slow`"),
        (&["blitzstart", "--within", "speed=1mbit"], "`speed`"),
        (&["blitzstart", "--within", "rate=2mbit..1mbit"], "is empty"),
        (&["blitzstart", "--within", "aqm=kodel"], "kodel"),
        (&["blitzstart", "--by", "fun"], "waste"),
        (&["blitzstart", "--points", "3"], "10"),
        (&["blitzstart", "--reps", "4"], "5"),
        (&["blitzstart", "--out", "/proc/none"], "--out /proc/none"),
        (&["blitzstart", "--transport", "quick"], "`quick`"),
        (&["quick-start"], "add quick_start=target"),
        (&["blitzstart", "--by", "harm", "--within", "competitor=none"], "nobody else uses"),
        (&["blitzstart", "--link-options", "rtt=1s"], "rtt is searched"),
        (&["blitzstart", "--link-options", "fun=1"], "fun"),
        (&["blitzstart", "--out", "full"], "not empty"),
        (&["blitzstart", "--seed", "9223372036854775807"], "9223372036854775805"),
    ] {
        let refused = flowstart(folder.path(), &[&["break"], arguments].concat()).assert().code(2);
        let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(refused.get_output().stdout.is_empty());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
