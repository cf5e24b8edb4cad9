//! `flowstart conformance`, as people and programs meet it.

use assert_cmd::Command;
use predicates::str::contains;

fn write() -> Command {
    let mut command = Command::cargo_bin("flowstart").expect("the binary");
    command.args(["conformance", "write"]);
    command
}

#[test]
fn the_kit_has_every_scheme_and_the_header() {
    let folder = tempfile::tempdir().expect("a folder");
    let kit = folder.path().join("kit");
    write().arg(&kit).assert().success().stdout(contains("flowstart_conformance.h"));
    for scheme in flowstart_core::startup::StartupConfig::NAMES {
        let text = std::fs::read_to_string(kit.join(format!("vectors/{scheme}.jsonl"))).expect("a file");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(
            (&lines[0]["scheme"], &lines[0]["format"]),
            (&(*scheme).into(), &flowstart_conformance::FORMAT.into())
        );
        let begins = lines.iter().filter(|line| line["event"] == "begin").count();
        assert_eq!((&lines[0]["vectors"], &lines[0]["events"]), (&begins.into(), &(lines.len() - begins - 1).into()));
        assert!(lines.iter().any(|line| line["event"] == "acked" && line["expect_cwnd_bytes"].is_u64()));
    }
    let header = std::fs::read_to_string(kit.join("flowstart_conformance.h")).expect("a header");
    assert!(header.contains("struct conformance_port") && kit.join("README.md").exists());
    // A second kit does not overwrite the first.
    write().arg(&kit).assert().code(2).stderr(contains("kit"));
}

#[test]
#[cfg(unix)]
fn a_kit_that_was_interrupted_has_no_vectors_and_can_be_written_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let kit = folder.path().join("kit");
    // The system ends the program at the first file that is larger, as it does when a user or a power cut ends it.
    let mut limited = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_flowstart");
    limited.args(["-c", "ulimit -c 0; ulimit -f 64; exec \"$0\" conformance write \"$1\"", program]).arg(&kit);
    limited.assert().failure();
    assert!(kit.exists() && !kit.join("vectors").exists());
    write().arg(&kit).assert().success();
    let mut names: Vec<_> =
        std::fs::read_dir(&kit).expect("a folder").map(|entry| entry.expect("one").file_name()).collect();
    names.sort();
    assert_eq!(names, ["README.md", "flowstart_conformance.h", "vectors"]);
}
