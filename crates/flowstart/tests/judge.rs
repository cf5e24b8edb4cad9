//! `flowstart judge`: a scheme in, what it does beside others on cells that are fixed out.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn flowstart(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.arg("judge").args(arguments).current_dir(folder);
    command
}

fn json(command: &mut Command, code: i32) -> Value {
    serde_json::from_slice(&command.arg("--json").assert().code(code).get_output().stdout).unwrap()
}

fn text(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

/// A cell that is soon simulated: a preset.
const SMALL: [&str; 8] = ["more-start", "--part", "3/223", "--reps", "2", "--out", "out", "--resume"];

#[test]
fn a_cell_runs_once_is_judged_from_its_file_and_is_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let ran = json(&mut flowstart(folder.path(), &[&SMALL[..], &["--rivals", "slow-start"]].concat()), 0);
    assert_eq!((&ran["cells"], &ran["of"], &ran["scheme"]), (&1.into(), &223.into(), &"more-start".into()));
    let file = "out/design-3-of-223.jsonl";
    let lines = || std::fs::read_to_string(folder.path().join(file)).unwrap();
    let before = lines();
    assert_eq!(before.lines().count(), 2);
    json(&mut flowstart(folder.path(), &[&SMALL[..], &["--rivals", "slow-start"]].concat()), 0);
    assert_eq!(lines(), before);
    // One cell cannot show that few are lost.
    let judged = json(&mut flowstart(folder.path(), &["more-start", "--from", file]), 1);
    assert_eq!(judged["bars"], ran["bars"]);
    let cell = text(&mut flowstart(folder.path(), &["more-start", "--cell", "design-003", "--reps", "2"]));
    std::fs::write(folder.path().join("cell.toml"), &cell).unwrap();
    let mut run = Command::cargo_bin("flowstart").unwrap();
    run.args(["run", "cell.toml", "-q"]).current_dir(folder.path()).assert().success();
}

#[test]
fn the_list_of_cells_has_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    for (set, count) in [("design", 223), ("held-out", 800)] {
        let lines = text(&mut flowstart(folder.path(), &["more-start", "--set", set, "--list"]));
        assert_eq!(lines.lines().count(), count);
        assert!(lines.starts_with(&format!("{set}-001 ")), "{lines}");
    }
}

#[test]
fn bad_input_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other.jsonl"), "{}\n").unwrap();
    for (arguments, expected) in [
        (&["blitzstrat", "--out", "out"][..], "blitzstart"),
        (&["blitzstart"], "--out"),
        (&["blitzstart", "--out", "out", "--part", "9/8"], "1/8"),
        (&["blitzstart", "--out", "out", "--set", "other"], "held-out"),
        (&["blitzstart", "--out", "out", "--rivals", "blitzstart"], "name others"),
        (&["blitzstart", "--out", "out", "--rivals", "suss", "suss"], "twice"),
        (&["blitzstart", "--out", "out", "--recordings", "nowhere"], "nowhere"),
        (&["blitzstart", "--cell", "design-999"], "no cell is named design-999"),
        (&["blitzstart", "--from", "other.jsonl"], "other.jsonl: line 1: missing field"),
        (&["blitzstart", "--from", "none.jsonl"], "none.jsonl: cannot be read"),
        (&["blitzstart", "--resume", "--list"], "cannot be used with"),
    ] {
        let refused = flowstart(folder.path(), arguments).assert().code(2);
        let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(refused.get_output().stdout.is_empty());
    }
    assert!(!folder.path().join("out").exists());
}
