//! Several transports and congestion avoidances in one command.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot be set up fails")]

use std::fs;

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

fn flowstart(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.args(arguments);
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

const BASE: [&str; 8] = ["compare", "--link", "dsl-fast", "--size", "500KB", "--reps", "3", "--scheme"];

fn compare(more: &[&str]) -> Command {
    flowstart(&[&BASE[..], more].concat())
}

#[test]
fn both_stacks_answer_one_question() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out").display().to_string();
    let schemes = ["slow-start", "blitzstart"];
    let table = stdout(compare(&schemes).args(["--transport", "both", "--out", &out]));
    let summary: Value = serde_json::from_slice(&fs::read(folder.path().join("out/summary.json")).unwrap()).unwrap();
    let names: Vec<&str> =
        summary["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    let name = |scheme: &str, transport: &str| format!("dsl-fast/taildrop/500KB/{scheme}/none/{transport}");
    let expected = ["model-quic", "quic"].map(|transport| schemes.map(|scheme| name(scheme, transport)));
    assert_eq!(names, expected.concat());
    assert_eq!(summary["cells"][3]["vs_baseline"]["baseline"], names[2]);
    assert_eq!(
        (&summary["cells"][3]["transport"], &summary["cells"][0]["transport"]),
        (&"quic".into(), &"model-quic".into())
    );
    // What the transports say is on the terminal, in the summary, and above everything else of the page.
    let said = summary["answer_notes"][0].as_str().unwrap();
    assert!(said.contains("transport"), "{said}");
    assert!(table.contains(said) && table.contains("transport"), "{table}");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    let header = page.split_once("</header>").unwrap().0;
    assert!(header.contains(&said.replace(" %", "\u{a0}%")), "{said}");
    assert_eq!(page.matches(&said.replace(" %", "\u{a0}%")).count(), 1, "once is enough");

    // The same in other words, and what was stored can be replayed.
    let named = stdout(compare(&schemes).args(["--transport", "model-quic", "quic", "--json"]));
    assert_eq!(named, fs::read_to_string(folder.path().join("out/summary.json")).unwrap());
    flowstart(&["explain", "--cell", names[3], "--from", &out]).assert().success();
    let one = stdout(compare(&schemes).args(["--transport", "quic", "--json"]));
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["cells"][1]["id"], "dsl-fast/taildrop/500KB/blitzstart/none");
    assert_eq!(one["cells"][1]["metrics"]["fct_ms"]["mean"], summary["cells"][3]["metrics"]["fct_ms"]["mean"]);
}

/// A thousand packets are acknowledged at once, and the scheme does not pace what follows: noq's pacer then waits for
/// less than a nanosecond.
#[test]
fn a_stack_that_waits_for_no_time_goes_on() {
    let link = "rate=789mbit,rtt=54.9ms,buffer=5.98bdp,up_aggregation=15.6ms";
    let question = ["compare", "--link", link, "--size", "10MB", "--scheme", "suss", "--reps", "1", "--json"];
    let mut command = flowstart(&[&question[..], &["--transport", "quic", "--avoidance", "cubic"]].concat());
    command.timeout(std::time::Duration::from_secs(60));
    let told: Value = serde_json::from_str(&stdout(&mut command)).unwrap();
    assert_eq!(told["cells"][0]["failed"], 0, "{told:#}");
}

#[test]
fn what_one_of_them_cannot_do_is_refused() {
    let refused = |more: &[&str], problem: &str| {
        compare(more).assert().code(2).stderr(contains(problem));
    };
    let both = ["--transport", "both"];
    refused(
        &[&["stack"], &both[..]].concat(),
        "scheme `stack`: with transport quic: the real stack runs the controller",
    );
    refused(&["slow-start", "--transport", "both", "quic"], "transport `quic`: given twice");
    refused(&["slow-start", "--transport", "booth"], "use model-quic, model-tcp, quic or both");
    let trace = ["trace", "--link", "lte", "--size", "70KB", "--scheme", "slow-start"];
    let problem = "--transport `both`: trace and explain show one transport; give model-quic or quic";
    flowstart(&[&trace[..], &both].concat()).assert().code(2).stderr(contains(problem));
    flowstart(&[&trace[..], &["--avoidance", "cubic", "reno"]].concat()).assert().code(2);
}

#[test]
fn congestion_avoidances_are_compared() {
    let table = stdout(compare(&["slow-start"]).args(["--size", "3MB", "--avoidance", "reno", "cubic"]));
    let first = table.lines().next().unwrap();
    assert!(first.starts_with("cubic ") && first.contains(" reno"), "{first}");
    let json = stdout(compare(&["slow-start"]).args(["--avoidance", "reno", "cubic:beta_ecn=0.85", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["cells"][1]["id"], "dsl-fast/taildrop/500KB/slow-start/none/avoidance=cubic:beta_ecn=0.85");
    assert_eq!(json["cells"][1]["resolved"]["avoidance"]["beta_ecn"], 0.85);
    assert_eq!(json["cells"][1]["vs_baseline"]["baseline"], json["cells"][0]["id"]);
}
