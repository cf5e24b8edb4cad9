//! `flowstart analyze`, as people and programs meet it.

use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;

fn analyze() -> Command {
    let mut command = Command::cargo_bin("flowstart").expect("the binary");
    command.arg("analyze");
    command
}

/// A connection that answered 70 KB.
fn log(folder: &Path, name: &str, scheme: &str, millis: f64) {
    let text = format!(
        "\u{1e}{{\"trace\":{{}}}}\n\
         \u{1e}{{\"time\":0,\"name\":\"flowstart:connection\",\"data\":{{\"scheme\":\"{scheme}\"}}}}\n\
         \u{1e}{{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{{}}}}\n\
         \u{1e}{{\"time\":2,\"name\":\"flowstart:answered\",\"data\":{{\"payload\":70000,\"fct_ms\":{millis}}}}}\n"
    );
    std::fs::write(folder.join(format!("{name}.sqlog")), text).expect("to write");
}

#[test]
fn schemes_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    for place in 0..30 {
        log(folder.path(), &format!("s{place}"), "slow-start", 200.0 + f64::from(place));
        log(folder.path(), &format!("b{place}"), "blitzstart", 100.0 + f64::from(place));
    }
    std::fs::write(folder.path().join("notes.txt"), "no log").expect("to write");
    analyze().arg(folder.path()).args(["--baseline", "slow-start"]).assert().success().stdout(contains("▲ faster"));
    let output = analyze().arg(folder.path()).args(["--baseline", "slow-start", "--json"]).output().expect("to run");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["connections"], &value["unusable_files"]), (&60.into(), &0.into()));
    let speedup = value["groups"][1]["vs_baseline"]["speedup"].as_f64().expect("a number");
    // 214.5 / 114.5
    assert!((speedup - 1.8734).abs() < 0.001, "{speedup}");
}

#[test]
fn what_cannot_be_used_is_said_and_the_rest_is_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    log(folder.path(), "a", "slow-start", 10.0);
    std::fs::write(folder.path().join("b.sqlog"), "nonsense\n").expect("to write");
    std::fs::write(folder.path().join("c.sqlog"), "").expect("to write");
    let assert = analyze().arg(folder.path()).assert().code(1).stdout(contains("1 connections"));
    assert.stderr(contains("b.sqlog:1: ")).stderr(contains("c.sqlog: no flowstart:connection event"));
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    analyze().arg(folder.path()).assert().code(2).stderr(contains("holds no .sqlog file"));
    analyze().arg(folder.path().join("missing")).assert().code(2).stderr(contains("cannot be read"));
    log(folder.path(), "a", "slow-start", 10.0);
    let unknown = analyze().arg(folder.path()).args(["--baseline", "bltz"]).assert();
    unknown.code(2).stderr(contains("no connection has it; there are slow-start"));
    analyze().assert().code(2);
}
