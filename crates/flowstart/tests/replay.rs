//! `flowstart replay`, as people and programs meet it.

#[cfg(target_os = "linux")]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
mod server;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use flowstart_core::startup::StartupConfig;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use serde_json::Value;

fn flowstart() -> Command {
    Command::cargo_bin("flowstart").expect("the binary")
}

fn replay(file: &Path, scheme: &str) -> Command {
    let mut command = flowstart();
    command.args(["replay", "qlog"]).arg(file).args(["--scheme", scheme]);
    command
}

/// What another program wrote.
fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../flowstart-serve/src/replay/recorded").join(name)
}

/// The log of a simulated transfer.
fn traced(folder: &Path, scheme: &str, more: &[&str]) -> PathBuf {
    let out = folder.join(scheme);
    let mut trace = flowstart();
    trace.args(["trace", "--link", "rate=20mbit,rtt=40ms,buffer=40ms", "--size", "500KB", "--scheme", scheme]);
    trace.args(more).arg("--out").arg(&out).assert().success();
    out.join("trace.sqlog")
}

#[test]
fn a_scheme_replayed_on_its_own_transfer_has_its_own_windows() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = traced(folder.path(), "slow-start", &[]);
    let assert = replay(&file, "slow-start").args(["--avoidance", "reno", "--json"]).assert().success().stderr("");
    let value: Value = serde_json::from_slice(&assert.get_output().stdout).expect("JSON");
    assert!(value["differs"].is_null(), "{}", value["differs"]);
    let rounds = value["rounds"].as_array().expect("rounds");
    // Until the first loss both count alike.
    let before: Vec<_> = rounds.iter().take_while(|round| round["ssthresh_bytes"].is_null()).collect();
    assert!(before.len() >= 3, "{rounds:?}");
    for round in before {
        assert_eq!(round["cwnd_bytes"], round["recorded_cwnd_bytes"], "{round}");
    }
    let answer = value["answer"][1].as_str().expect("a sentence");
    assert!(answer.starts_with("It would have sent the same bytes up to the end of the file"), "{answer}");
}

/// What of its own transfer, of a link of 20 Mbit/s and 40 ms, a scheme decides otherwise in a replay, in words.
fn decided_otherwise(file: &Path, scheme: &str, avoidance: &str) -> Option<String> {
    let known = ["--hint", "20mbit", "--saved", "20mbit/40.4968ms/60s"];
    let assert = replay(file, scheme).args(["--avoidance", avoidance, "--json"]).args(known).assert().success();
    let value: Value = serde_json::from_slice(&assert.get_output().stdout).expect("JSON");
    let left = |exit: &Value| (exit["reason"].clone(), exit["cwnd_bytes"].clone());
    let (exit, recorded) = (&value["exit"], &value["recorded_exit"]);
    let is_same = value["differs"].is_null() && (recorded.is_null() || left(exit) == left(recorded));
    (!is_same).then(|| format!("{scheme}: differs {}, exit {exit}, recorded {recorded}", value["differs"]))
}

#[test]
fn every_scheme_replayed_on_its_own_real_stack_decides_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    // What the real stack does not run, and what a recording does not give.
    let without = ["halfback", "stack", "quick-start", "ensemble-sharing"];
    let configs = StartupConfig::defaults();
    let schemes = configs.iter().map(StartupConfig::name).filter(|name| !without.contains(name));
    let otherwise: Vec<String> = schemes
        .filter_map(|scheme| {
            let file = traced(folder.path(), scheme, &["--transport", "quic"]);
            decided_otherwise(&file, scheme, "reno")
        })
        .collect();
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn every_scheme_replayed_on_what_a_server_logged_decides_the_same() {
    for scheme in ["slow-start", "suss", "search", "jump-start"] {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = folder.path().to_str().expect("a name");
        let server = server::Server::self_signed(&["--startup", scheme, "--avoidance", "reno", "--qlog", logs]);
        let relay = server::Relay::start(&server.url, &["relay", "--link", "rate=20mbit,rtt=40ms,buffer=100ms"]);
        let url = format!("https://{}/generate/500KB", relay.address);
        flowstart().args(["get", "--insecure", "--json", &url]).assert().success();
        server.wait_for("flowstart_connections_active 0");
        drop(server.end());
        let file = std::fs::read_dir(logs).expect("a folder").next().expect("a file").expect("a file").path();
        // Packets grow from 1200 bytes on, so the window in packets would be another with any later size.
        // What avoids congestion is written in the file.
        let answer = replay(&file, scheme).assert().success();
        answer.stdout(contains(if scheme == "jump-start" { "517.2KB (431.0 packets)" } else { "12KB (10.0 packets)" }));
        assert_eq!(decided_otherwise(&file, scheme, "reno"), None);
        let told = replay(&file, scheme).arg("--json").assert().success();
        let told: Value = serde_json::from_slice(&told.get_output().stdout).expect("JSON");
        assert_eq!(told["avoidance"], "reno");
    }
}

#[test]
fn an_avoidance_that_nobody_knows_is_refused_unless_another_is_stated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("other.sqlog");
    let text = std::fs::read_to_string(recorded("quic-go-0.65.0.sqlog")).expect("a recording");
    let (head, events) = text.split_at(text[1..].find('\u{1e}').expect("a record") + 1);
    let event =
        "\u{1e}{\"time\":0,\"name\":\"flowstart:connection\",\"data\":{\"scheme\":\"x\",\"avoidance\":\"later\"}}\n";
    std::fs::write(&file, [head, event, events].concat()).expect("a file");
    let refused = replay(&file, "search").assert().code(2).stdout("");
    refused.stderr(contains("avoidance `later` is none that this version knows; --avoidance states one"));
    replay(&file, "search").args(["--avoidance", "reno"]).assert().success();
}

#[test]
fn a_rate_without_limit_is_not_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = traced(folder.path(), "suss", &["--transport", "quic"]);
    let assert = replay(&file, "suss").assert().success().stdout(contains("suss would have launched"));
    assert.stdout(contains("paced at").not());
}

#[test]
fn the_answer_says_up_to_where_it_is_certain() {
    // All that quic-go had to send fits into its first window; aioquic's window is smaller.
    for (name, up_to) in
        [("quic-go-0.65.0.sqlog", "It would have sent the same"), ("aioquic-1.7.2.qlog", "certain up to")]
    {
        let assert = replay(&recorded(name), "blitzstart").args(["--hint", "20mbit"]).assert().success().stderr("");
        let assert =
            assert.stdout(contains("blitzstart would have launched").and(contains("because of the client's hint")));
        let assert =
            assert.stdout(contains(up_to).and(contains("--from-qlog").count(usize::from(up_to.starts_with('c')))));
        assert.stdout(contains("Startup would have ended").and(contains("(launch)")));
    }
    let saved = replay(&recorded("aioquic-1.7.2.qlog"), "careful-resume").args(["--saved", "20mbit/40ms/60s"]).assert();
    saved.success().stdout(contains("careful-resume would have launched"));
    let oracle = replay(&recorded("aioquic-1.7.2.qlog"), "jump-start").args(["--oracle", "20mbit"]).assert();
    oracle.success().stdout(contains("jump-start would have launched"));
}

#[test]
fn rows_of_every_acknowledgement_are_csv() {
    let assert = replay(&recorded("aioquic-1.7.2.qlog"), "slow-start").arg("--csv").assert().success();
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..2], ["time_ms", "event"]);
    assert!(rows.len() > 10 && rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    assert_eq!(rows[1][1], "launch");
}

#[test]
fn a_file_that_is_cut_is_replayed_as_far_as_it_goes_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["quic-go-0.65.0.sqlog", "aioquic-1.7.2.qlog"] {
        let whole = std::fs::read(recorded(name)).expect("to read");
        let file = folder.path().join(name);
        std::fs::write(&file, &whole[..whole.len() * 2 / 3]).expect("to write");
        let assert = replay(&file, "slow-start").assert().success().stdout(contains("slow-start would have launched"));
        let told =
            contains(format!("warning: {}:", file.display())).and(contains("has no end, as in a file that is cut"));
        assert.stderr(told.and(contains("whole events are used")));
    }
}

#[test]
fn bad_input_is_refused_with_its_place_and_what_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.sqlog");
    let refused = |text: &str, expected: &str| {
        std::fs::write(&file, text).expect("to write");
        let assert = replay(&file, "slow-start").assert().code(2).stdout("");
        assert.stderr(contains("c.sqlog").and(contains(expected.to_owned())));
    };
    refused("", "no packet_sent event has a packet number and a type");
    refused("{}\nnonsense\n", "c.sqlog:2:1: found `n`; allowed is `{`");
    let sent = "{\"time\":0,\"name\":\"quic:packet_sent\",\"data\":{\"raw\":{\"length\":70000}}}\n";
    refused(
        &format!("{{}}\n{sent}"),
        "c.sqlog:2:1: data.raw.length is 70000; allowed is a whole number from 1 to 65535",
    );
    replay(&folder.path().join("none"), "slow-start").assert().code(2).stderr(contains("none"));
    let file = recorded("aioquic-1.7.2.qlog");
    replay(&file, "slowstart2").assert().code(2).stderr(contains("--scheme").and(contains("slow-start")));
    replay(&file, "halfback").assert().code(2).stderr(contains("halfback needs data to be sent again"));
    replay(&file, "blitzstart").args(["--hint", "0mbit"]).assert().code(2).stderr(contains("allowed is 1kbit"));
    replay(&file, "careful-resume").args(["--saved", "20mbit"]).assert().code(2).stderr(contains("RATE/RTT/AGE"));
    replay(&file, "search").args(["--avoidance", "bbr"]).assert().code(2).stderr(contains("--scheme `search`"));
}
