//! `flowstart serve` and `flowstart get`: over real sockets on this host, as people and other programs meet them.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};
use std::time::Duration;

use predicates::prelude::*;
use serde_json::Value;
use server::{Server, certificate, flowstart, lossy_path};

#[test]
fn files_and_generated_objects_arrive_whole() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..300_000_u32).map(|place| (place % 253) as u8).collect();
    std::fs::write(folder.path().join("a file.bin"), &content).unwrap();
    let server = Server::self_signed(&["--root", folder.path().to_str().unwrap()]);
    let out = folder.path().join("out");
    server.get("/a%20file.bin").arg("--out").arg(&out).assert().success();
    assert_eq!(std::fs::read(&out).unwrap(), content);

    let told = server.timings("/generate/3MB");
    assert_eq!((&told["status"], &told["bytes"]), (&200.into(), &3_000_000.into()));
    let millis = |key: &str| told[key].as_f64().unwrap();
    assert!(0.0 < millis("handshake_ms") && millis("handshake_ms") < millis("first_byte_ms"));
    assert!(millis("first_byte_ms") <= millis("fct_ms") && millis("fct_request_ms") < millis("fct_ms"));
    // 8 bits per byte over milliseconds, in megabits per second.
    let goodput = 3_000_000.0 * 8.0 / millis("fct_ms") / 1e3;
    assert!((millis("goodput_mbps") / goodput - 1.0).abs() < 1e-6);

    server.wait_for("flowstart_fct_seconds_count{scheme=\"slow-start\"} 2");
    server.wait_for("flowstart_launches_total{scheme=\"slow-start\"} 2");
    server.wait_for("flowstart_connections_active 0");
    let (status, told) = server.end();
    assert!(status.success() && told.is_empty(), "{status} {told}");
}

#[test]
fn both_ends_write_the_secrets_of_their_connections_where_they_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let [of_server, of_client] = ["server", "client"].map(|name| folder.path().join(name));
    let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    let server = Server::run(program.env("SSLKEYLOGFILE", &of_server).stderr(Stdio::piped()), &["--self-signed"]);
    server.get("/generate/1KB").env("SSLKEYLOGFILE", &of_client).assert().success();
    // Both have the same secrets, in the order in which each knows them.
    let [server_knows, client_knows] = [&of_server, &of_client].map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert_eq!(server_knows, client_knows);
    assert!(client_knows.iter().any(|line| line.starts_with("SERVER_TRAFFIC_SECRET_0 ")), "{client_knows:?}");

    let refused = server.get("/generate/1KB").env("SSLKEYLOGFILE", folder.path()).assert().failure();
    refused.stderr(predicate::str::contains("SSLKEYLOGFILE has to name a regular file"));
}

#[test]
fn the_metrics_of_a_server_can_be_analyzed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::self_signed(&["--startup", "slow-start", "--ab", "0.5=jump-start"]);
    let scrape = |name: &str| {
        let answer = server.http("GET", "/metrics");
        let file = folder.path().join(name);
        std::fs::write(&file, answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        file
    };
    server.timings("/generate/20KB");
    server.wait_for("flowstart_connections_answered_total 1");
    let before = scrape("before.prom");
    for _ in 0..12 {
        server.timings("/generate/20KB");
    }
    server.wait_for("flowstart_connections_answered_total 13");
    let after = scrape("after.prom");
    let analyze = |files: &[&Path]| -> Value {
        let told = flowstart().args(["analyze", "--json"]).args(files).assert().success();
        serde_json::from_slice(&told.get_output().stdout).unwrap()
    };
    let sum =
        |value: &Value| value["groups"].as_array().unwrap().iter().map(|one| one["n"].as_u64().unwrap()).sum::<u64>();
    let (all, between) = (analyze(&[&after]), analyze(&[&before, &after]));
    assert_eq!((&all["connections"], sum(&all)), (&13.into(), 13));
    assert_eq!((&between["connections"], sum(&between)), (&12.into(), 12));
    assert_eq!(between["groups"][0]["size"], "10 to 100 KB");
    assert!(between["groups"][0]["metrics"]["fct_request_ms"]["mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::self_signed(&["--root", folder.path().to_str().unwrap()]);
    for (path, status) in [("/nothing", 404), ("/../Cargo.toml", 404), ("/%2e%2e/x", 404), ("/generate/2XB", 400)] {
        let told = server.get(path).assert().code(1).stderr(predicate::str::contains(format!("answered {status}")));
        let told: Value = serde_json::from_slice(&told.get_output().stdout).unwrap();
        assert_eq!(told["status"], status);
    }
    server.wait_for("flowstart_requests_total{status=\"404\"} 3");
}

#[test]
fn a_certificate_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let url = format!("{}/generate/1KB", server.url);
    flowstart().args(["get", "--ca", &cert, &url]).assert().success();
    flowstart().args(["get", &url]).assert().code(1).stderr(predicate::str::contains("UnknownIssuer"));
}

#[test]
fn an_expired_certificate_is_told_of_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2020);
    let server = Server::start(&["--cert", &cert, "--key", &key]);
    let url = format!("{}/generate/1KB", server.url);
    flowstart()
        .args(["get", "--ca", &cert, &url])
        .assert()
        .code(1)
        .stderr(predicate::str::contains("certificate expired"));
    let (status, told) = server.end();
    assert!(status.success() && told.contains("expired on") && told.contains("cert.pem"), "{told}");
}

#[test]
fn bad_input_is_refused_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let garbage = folder.path().join("garbage").to_str().unwrap().to_owned();
    std::fs::write(&garbage, "garbage").unwrap();
    let (_, other) = (std::fs::create_dir(folder.path().join("o")), certificate(&folder.path().join("o"), 2090));
    let used = UdpSocket::bind("127.0.0.1:0").unwrap();
    let used = used.local_addr().unwrap().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&[], "--cert <FILE>"),
        (&["--cert", &cert], "--key <FILE>"),
        (&["--cert", &garbage, "--key", &key], "garbage: has no certificate"),
        (&["--cert", &cert, "--key", &garbage], "garbage: has no private key"),
        (&["--cert", "/none", "--key", &key], "/none: cannot be read"),
        (&["--cert", &cert, "--key", &other[1]], "--cert"),
        (&["--self-signed", "--root", "/none"], "--root `/none`: cannot be served"),
        (&["--self-signed", "--root", &garbage], "it is no folder"),
        (&["--self-signed", "--listen", &used], "in use"),
        (&["--self-signed", "--listen", "localhost"], "127.0.0.1:4433"),
        (&["--self-signed", "--metrics", "192.0.2.1:1"], "--metrics `192.0.2.1:1`"),
        (&["--self-signed", "--startup", "blitz"], "blitzstart"),
        (&["--self-signed", "--startup", "halfback"], "allowed are slow-start, limited-slow-start, hystart,"),
        (&["--self-signed", "--startup-for", "192.0.2.0=blitzstart"], "192.0.2.0/24=blitzstart"),
        (&["--self-signed", "--ab", "2=jump-start"], "above 0 to 1"),
        (&["--self-signed", "--ab", "0.6=jump-start", "0.5=hystart"], "at most 1"),
        (&["--self-signed", "--launch-loss-limit", "0"], "above 0 to 1"),
        (&["--self-signed", "--connection-memory", "1KB"], "100KB to 4GB"),
        (&["--self-signed", "--handshake-time", "0ms"], "use 1ms or more"),
        (&["--self-signed", "--stall", "0s"], "use 1ms or more"),
        (&["--self-signed", "--idle", "0s"], "use 1ms or more"),
        (&["--self-signed", "--max-connections", "0"], "use 1 or more"),
        (&["--self-signed", "--max-per-prefix", "0"], "use 1 or more"),
        (&["--cert", "/dev/zero", "--key", &key], "/dev/zero: is not a regular file"),
        (&["--self-signed", "--qlog", &format!("{garbage}/q")], "--qlog"),
    ];
    for (options, message) in cases {
        let serve = flowstart().arg("serve").args(*options).timeout(Duration::from_secs(10)).assert();
        serve.code(2).stderr(predicate::str::contains(*message));
    }
    for (options, message) in [
        (["http://localhost/", "--json"], "use https://"),
        (["/x", "--json"], "use https://"),
        (["https://localhost:99999/", "--json"], "its port is none of 0 to 65535"),
        (["https://localhost/", "--ca=/none"], "/none: cannot be read"),
        (["https://localhost/", "--connect=x"], "127.0.0.1:4433"),
        (["https://localhost/", "--receive-window=1KB"], "10KB to 4GB"),
    ] {
        flowstart().arg("get").args(options).assert().code(2).stderr(predicate::str::contains(message));
    }
}

#[test]
fn nobody_there_is_a_failure_and_not_for_ever() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let get = flowstart().args(["get", "--insecure", "--timeout", "300ms", &url]).assert().code(1);
    get.stderr(predicate::str::contains("not received within 300ms"));
}

#[test]
fn the_kill_switch_has_a_file_a_signal_and_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kill");
    let server = Server::self_signed(&["--startup", "hystart", "--kill-file", file.to_str().unwrap()]);
    server.timings("/generate/100KB");
    server.wait_for("flowstart_launches_total{scheme=\"hystart\"} 1");
    assert!(server.http("PUT", "/kill-switch").ends_with("\r\n\r\non\n"));
    server.wait_for("flowstart_kill_switch 1");
    server.timings("/generate/100KB");
    server.wait_for("flowstart_launches_total{scheme=\"slow-start (not drawn)\"} 1");
    assert!(server.http("DELETE", "/kill-switch").ends_with("\r\n\r\noff\n"));
    server.signal("-USR1");
    server.wait_for("flowstart_kill_switch 1");
    server.signal("-USR1");
    server.wait_for("flowstart_kill_switch 0");
    std::fs::write(&file, "").unwrap();
    server.wait_for("flowstart_kill_switch 1");
    assert!(server.http("POST", "/kill-switch").starts_with("HTTP/1.1 405"));
    assert!(server.http("GET", "/").starts_with("HTTP/1.1 404"));
}

#[test]
fn networks_and_shares_choose_the_scheme() {
    let server = Server::self_signed(&["--startup-for", "127.0.0.0/8=search", "--ab", "1=jump-start"]);
    server.timings("/generate/100KB");
    server.wait_for("flowstart_launches_total{scheme=\"search (not drawn)\"} 1");
    let server = Server::self_signed(&["--startup-for", "192.0.2.0/24=search", "--ab", "1=jump-start"]);
    server.timings("/generate/100KB");
    server.wait_for("flowstart_launches_total{scheme=\"jump-start\"} 1");
}

#[test]
fn qlog_has_the_schemes_decisions_among_the_packets() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let server = Server::self_signed(&["--startup", "jump-start", "--qlog", logs.to_str().unwrap()]);
    server.timings("/generate/200KB");
    server.wait_for("flowstart_connections_active 0");
    drop(server.end());
    let files: Vec<_> = std::fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let records: Vec<Value> = text.split('\u{1e}').skip(1).map(|one| serde_json::from_str(one).unwrap()).collect();
    assert_eq!(records[0]["trace"]["event_schemas"].as_array().unwrap().len(), 2);
    let place = |name: &str| records.iter().position(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let launched = place("flowstart:launch");
    assert!(place("quic:packet_sent") < launched);
    // All of it waits: 200 KB and what packets add.
    assert!(records[launched]["data"]["cwnd_bytes"].as_u64().unwrap() >= 200_000);
    // The launch stands before the packets that it let leave, with the time of the event that it followed.
    let time = |index: usize| records[index]["time"].as_f64().unwrap();
    assert!(time(1) <= time(launched) && time(launched) <= time(launched + 2));
    assert_eq!(records[launched + 1]["name"], "quic:congestion_state_updated");
}

/// Timers and frames of extensions of QUIC that noq speaks; the schema has no names for them.
const EXTENSION_FRAMES: [&str; 3] = ["immediate_ack", "ack_frequency", "observed_address"];
const STANDARD_TIMERS: [&str; 6] =
    ["ack", "pto", "loss_timeout", "path_validation", "handshake_timeout", "idle_timeout"];

/// Checks one event of noq by the types of the qlog library; it comes out as it went in.
fn check_standard(mut event: Value) {
    let data = event["data"].as_object_mut().unwrap();
    if let Some(frames) = data.get_mut("frames").and_then(Value::as_array_mut) {
        frames.retain(|frame| !EXTENSION_FRAMES.contains(&frame["frame_type"].as_str().unwrap()));
    }
    if data.get("timer_type").is_some_and(|timer| !STANDARD_TIMERS.contains(&timer.as_str().unwrap())) {
        data.remove("timer_type");
    }
    // The library knows some triggers; the schema allows any text.
    if event["name"] == "quic:congestion_state_updated" && !event["data"]["trigger"].is_null() {
        assert!(event["data"].as_object_mut().unwrap().remove("trigger").unwrap().is_string());
    }
    let read: qlog::events::Event =
        serde_json::from_value(event.clone()).unwrap_or_else(|error| panic!("{error}: {event}"));
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!((&written["name"], &written["time"]), (&event["name"], &event["time"]));
    let again: qlog::events::Event = serde_json::from_value(written).unwrap();
    assert_eq!(again, read, "{event}");
}

#[test]
fn qlog_follows_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let options = ["--startup", "blitzstart", "--hint-policy", "accept", "--qlog", logs.to_str().unwrap()];
    let server = Server::self_signed(&options);
    server.get("/generate/2MB").args(["--hint", "rate=50mbit"]).assert().success();
    server.wait_for("flowstart_connections_active 0");
    drop(server.end());
    let file = std::fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    let mut records = text.split('\u{1e}').skip(1).map(|one| serde_json::from_str::<Value>(one).unwrap());

    let header = records.next().unwrap();
    let read: qlog::QlogSeq = serde_json::from_value(header.clone()).unwrap();
    assert_eq!(read.file_schema, qlog::QLOGFILESEQ_URI);
    assert_eq!(read.serialization_format, "application/qlog+json-seq");
    assert_eq!(read.trace.event_schemas, [qlog::events::QUIC_URI, "urn:x-flowstart:qlog:events:flowstart"]);
    assert_eq!(read.trace.vantage_point.unwrap().ty, qlog::VantagePointType::Server);
    let clock = read.trace.common_fields.unwrap().reference_time;
    assert_eq!((clock.clock_type.as_str(), clock.epoch.as_str()), ("monotonic", "unknown"));

    let (mut own, mut standard) = (Vec::new(), 0);
    let (mut sent, mut acknowledged) = (Vec::new(), 0);
    for event in records {
        let (name, data) = (event["name"].as_str().unwrap().to_owned(), &event["data"]);
        let number = |field: &str| assert!(data[field].is_number(), "{field}: {event}");
        assert!(event["time"].as_f64().unwrap() >= 0.0, "{event}");
        match name.as_str() {
            "flowstart:connection" => assert!(data["scheme"].is_string()),
            "flowstart:launch" => number("cwnd_bytes"),
            "flowstart:hint_capped" => ["hinted", "used"].into_iter().for_each(number),
            "flowstart:phase_entered" => assert!(data["phase"].is_string() && data["trigger"].is_string()),
            "flowstart:startup_exited" => {
                assert!(data["reason"].is_string() && data["congestion_window"].as_u64().unwrap() > 0, "{data}");
            }
            "flowstart:reduction_undone" => number("congestion_window"),
            "flowstart:window_validated" => ["congestion_window", "ssthresh"].into_iter().for_each(number),
            "flowstart:answered" => ["payload", "fct_ms"].into_iter().for_each(number),
            _ => {
                assert!(name.starts_with("quic:"), "{event}");
                let header = &data["header"];
                if name == "quic:packet_sent" && header["packet_type"] == "1RTT" {
                    sent.push(header["packet_number"].as_u64().unwrap());
                }
                if name == "quic:packet_received" && header["packet_type"] == "1RTT" {
                    for frame in data["frames"].as_array().unwrap().iter().filter(|one| one["frame_type"] == "ack") {
                        let last = frame["acked_ranges"].as_array().unwrap().last().unwrap();
                        acknowledged = acknowledged.max(last[1].as_u64().unwrap());
                        // `max_ack_delay` is 25 ms; ten times as much on a busy host.
                        assert!(frame["ack_delay"].as_f64().unwrap() < 250.0, "{frame}");
                    }
                }
                standard += 1;
                check_standard(event);
                continue;
            }
        }
        own.push(name);
    }
    assert!(sent.contains(&acknowledged), "a packet was acknowledged that was not sent: {acknowledged}");
    assert!(standard > 100, "{standard} events");
    assert_eq!(own[0], "flowstart:connection");
    assert!(["flowstart:launch", "flowstart:answered"].iter().all(|one| own.iter().any(|name| name == one)), "{own:?}");
}

#[test]
fn answers_under_way_arrive_when_the_server_ends() {
    let server = Server::self_signed(&[]);
    let url = format!("{}/generate/60MB", server.url);
    let get = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", "--json", &url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    server.wait_for("flowstart_requests_total{status=\"200\"} 1");
    let (status, told) = server.end();
    assert!(status.success() && told.is_empty(), "{status} {told}");
    let got = get.wait_with_output().unwrap();
    let timings: Value = serde_json::from_slice(&got.stdout).unwrap();
    assert_eq!(timings["bytes"], 60_000_000);
}

#[test]
fn a_hint_counts_as_far_as_the_policy_goes() {
    let launch = |options: &[&str], hint: &str| {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().to_str().unwrap();
        let server = Server::self_signed(&[&["--qlog", logs], options].concat());
        server.get("/generate/300KB").args(["--hint", hint]).assert().success();
        server.wait_for("flowstart_connections_active 0");
        let metrics = server.http("GET", "/metrics");
        let verdict = metrics.lines().find_map(|line| line.strip_prefix("flowstart_hints_total{verdict=\""));
        let verdict = verdict.map(|line| line.split('"').next().unwrap().to_owned());
        drop(server.end());
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(file).unwrap();
        let records = text.split('\u{1e}').skip(1).map(|one| serde_json::from_str::<Value>(one).unwrap());
        let launched = records.into_iter().find(|one| one["name"] == "flowstart:launch").unwrap();
        let [window, rate] = ["cwnd_bytes", "pacing_rate_bps"].map(|name| launched["data"][name].as_u64().unwrap());
        (verdict, window, rate)
    };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let store = ["--path-store", store.to_str().unwrap()];
    let blitzstart = |policy: &str, hint: &str| {
        launch(&[&["--startup", "blitzstart", "--hint-policy", policy], &store[..]].concat(), hint)
    };
    let (verdict, _, capped) = blitzstart("cap:rate=20mbit", "rate=1gbit");
    assert_eq!(verdict.as_deref(), Some("capped by rate"));
    let (verdict, _, low) = blitzstart("cap:rate=20mbit", "rate=2mbit,technology=dsl");
    assert_eq!(verdict.as_deref(), Some("accepted"));
    let (verdict, plain, _) = blitzstart("validate", "rate=1gbit");
    assert_eq!(verdict.as_deref(), Some("not used: the prefix has not delivered as much"));
    let (verdict, ignored, _) = launch(&["--startup", "slow-start"], "rate=1gbit");
    assert_eq!(verdict.as_deref(), Some("ignored"));
    let (verdict, without, _) = blitzstart("accept", "none");
    assert_eq!((verdict, [plain, ignored, without]), (None, [12_000; 3]));
    // A liar gets the cap and who is below it no more, though the initial window within the loopback's RTT is faster.
    assert!(capped <= 20_000_000 && low <= 20_000_000, "{capped} {low}");
}

#[test]
fn a_repeated_request_brings_the_path_state_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (key, state) = (folder.path().join("key"), folder.path().join("state"));
    std::fs::write(&key, [7; 32]).unwrap();
    let sealed = ["--startup", "careful-resume", "--path-state-key", key.to_str().unwrap(), "--early-data"];
    let server = Server::self_signed(&sealed);
    let repeated = ["--repeat", "3", "--path-state", state.to_str().unwrap()];
    let told = server.get("/generate/2MB").args(repeated).assert().success();
    let lines = String::from_utf8(told.get_output().stdout.clone()).unwrap();
    let early: Vec<_> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["early_data"].clone()).collect();
    assert_eq!(early, [Value::Null, "accepted".into(), "accepted".into()]);
    server.wait_for("flowstart_connections_active 0");
    // The first has none, and each of the others that of the one before: a state that no key opens would be told.
    let metrics = server.http("GET", "/metrics");
    let stated = metrics.lines().filter_map(|line| line.strip_prefix("flowstart_sources_total{source=\"path-state\","));
    let stated: Vec<_> = stated.map(|line| line.split_once("} ").unwrap()).collect();
    assert_eq!(stated.iter().map(|(_, number)| number.parse::<u64>().unwrap()).sum::<u64>(), 2, "{stated:?}");
    assert!(stated.iter().all(|(verdict, _)| !verdict.contains("failed")), "{stated:?}");
    let (_, told) = server.end();
    assert!(told.is_empty(), "{told}");
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let server = Server::self_signed(&["--grace", "1000s"]);
    let url = format!("{}/generate/100GB", server.url);
    let mut get = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", "--out", "-", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for("flowstart_requests_total{status=\"200\"} 1");
    server.signal("-TERM");
    // Who comes now is told so, and does not wait for nothing.
    server.wait_for("flowstart_connections_active 1");
    server.get("/generate/1KB").arg("--timeout=60s").assert().code(1).stderr(predicate::str::contains("refused"));
    let (status, told) = server.end();
    assert!(status.success() && told.contains("cut off"), "{status} {told}");
    get.kill().unwrap();
    get.wait().unwrap();
}

#[test]
fn losing_every_second_packet_of_a_window_does_not_end_the_download() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..9_000_000_u32).map(|place| (place % 251) as u8).collect();
    std::fs::write(folder.path().join("content"), &content).unwrap();
    let server = Server::self_signed(&["--startup", "jump-start", "--root", folder.path().to_str().unwrap()]);
    let get = |lost, options: &[&str]| {
        let path = lossy_path(&server.url, Duration::from_millis(300), lost);
        let out = folder.path().join("out");
        let mut get = flowstart();
        get.args(["get", "--insecure", "--timeout", "60s", "--out", out.to_str().unwrap()]).args(options);
        (get.arg(format!("https://{path}/content")).assert(), out)
    };
    // The window lets 860 packets leave within the first RTT. Losing 350 of them makes as many gaps.
    let (got, out) = get(100..800, &[]);
    got.success();
    assert!(std::fs::read(&out).unwrap() == content, "the content differs");
    // 9 MB are some 6200 packets. With a window for all of them this makes 2500 gaps, and noq allows 1024.
    let (got, _) = get(500..5500, &["--receive-window", "64MB"]);
    got.code(1).stderr(predicate::str::contains("use a smaller --receive-window"));
}

#[test]
fn a_client_may_keep_its_path_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (key, state) = (folder.path().join("key"), folder.path().join("state"));
    std::fs::write(&key, [7; 32]).unwrap();
    let options = ["--startup", "careful-resume", "--path-state-key", key.to_str().unwrap()];
    let server = Server::self_signed(&options);
    let get = |server: &Server| server.get("/generate/2MB").arg("--path-state").arg(&state).assert();
    get(&server).success();
    assert_eq!(std::fs::read(&state).unwrap().len(), 70);
    // Another server with the same key takes it, and gives a new one.
    let first = std::fs::read(&state).unwrap();
    drop(server);
    let server = Server::self_signed(&options);
    get(&server).success();
    assert_ne!(std::fs::read(&state).unwrap(), first);
    let (_, told) = server.end();
    assert!(told.is_empty(), "{told}");
    // One that is forged is told of, and the connection is no worse.
    let mut forged = first;
    forged[40] ^= 1;
    std::fs::write(&state, forged).unwrap();
    let server = Server::self_signed(&options);
    get(&server).success();
    let (_, told) = server.end();
    assert!(told.contains("no key opens the path state"), "{told}");
    std::fs::write(&state, [1; 5000]).unwrap();
    let nonsense = flowstart().args(["get", "https://localhost/", "--path-state"]).arg(&state).assert();
    nonsense.code(2).stderr(predicate::str::contains("state: "));
    std::fs::write(&key, "short").unwrap();
    let short = flowstart().args(["serve", "--self-signed"]).args(&options[2..]).assert();
    short.code(2).stderr(predicate::str::contains("5 bytes; allowed is 32"));
}

#[test]
fn perf_measures_both_directions() {
    let mut child = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["perf", "server", "--self-signed", "--listen", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = serde_json::from_str::<Value>(&line).unwrap()["listening"].as_str().unwrap().to_owned();
    let perf = |options: &[&str]| -> Value {
        let told = flowstart().args(["perf", "client", &address, "--insecure", "--json"]).args(options).assert();
        serde_json::from_slice(&told.success().get_output().stdout).unwrap()
    };
    let both = perf(&["--download", "3MB", "--upload", "2MB", "--streams", "7", "--interval", "10ms"]);
    assert_eq!((&both["download"]["bytes"], &both["upload"]["bytes"]), (&3_000_000.into(), &2_000_000.into()));
    let seconds = both["download"]["seconds"].as_f64().unwrap();
    let goodput = both["download"]["goodput_mbps"].as_f64().unwrap();
    assert!((goodput / (3.0 * 8.0 / seconds) - 1.0).abs() < 1e-9);
    let theirs = perf(&["--controller", "noq-cubic", "--download", "1MB"]);
    assert_eq!(theirs["download"]["bytes"], 1_000_000);
    let limited = perf(&["--download", "100GB", "--duration", "300ms", "--interval", "100ms"]);
    assert!(limited["download"]["intervals_mbps"].as_array().unwrap().len() >= 2);
    assert!(limited["download"]["bytes"].as_u64().unwrap() < 100_000_000_000);
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = flowstart().args(["perf", "client", "192.0.2.1:1", "--insecure", "--interval", "0ms"]).assert();
    gone.code(2).stderr(predicate::str::contains("1ms to 3600s"));
}

#[test]
fn a_path_store_is_filled_used_and_gone_without() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let server = Server::self_signed(&["--startup", "careful-resume", "--path-store", store.to_str().unwrap()]);
    server.timings("/generate/2MB");
    server.wait_for("flowstart_connections_active 0");
    server.timings("/generate/2MB");
    assert!(server.end().0.success());
    let shown = flowstart().args(["oracle", "show", "--json", "--store"]).arg(&store).assert().success();
    let known: Value = serde_json::from_slice(&shown.get_output().stdout).unwrap();
    assert_eq!((&known[0]["prefix"], &known[0]["samples"]), (&"127.0.0.0/24".into(), &2.into()));

    std::fs::write(&store, [7; 8192]).unwrap();
    let server = Server::self_signed(&["--path-store", store.to_str().unwrap()]);
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
    let (_, told) = server.end();
    assert!(told.contains("paths.redb") && told.contains("start without saved paths"), "{told}");
    // A scheme that starts from nothing else could only be slow start.
    let only = ["serve", "--self-signed", "--listen", "127.0.0.1:0", "--startup", "careful-resume", "--path-store"];
    let refused = flowstart().args(only).arg(&store).timeout(Duration::from_secs(60)).assert().code(2);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    for part in ["careful-resume starts from an earlier connection", "--path-store", "paths.redb", "is damaged"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
}

#[test]
fn a_path_store_that_cannot_be_read_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |store: &Path| Server::self_signed(&["--path-store", store.to_str().unwrap()]);
    let get = |server: &Server| {
        assert_eq!(server.timings("/generate/300KB")["bytes"], 300_000);
        server.wait_for("flowstart_connections_active 0");
    };
    let failed = |server: &Server| server.metric("flowstart_sources_total{source=\"path-store\",verdict=\"failed\"}");
    // Two entries: one is of version 1 and cut off, one is of a later version.
    let store = folder.path().join("entries.redb");
    let known = ["oracle", "record", "198.51.100.1", "--rate", "40mbit", "--rtt", "10ms", "--cwnd", "50KB", "--store"];
    flowstart().args(known).arg(&store).assert().success();
    {
        let table = redb::TableDefinition::<&str, &[u8]>::new("flowstart-paths");
        let writing = redb::Database::open(&store).unwrap().begin_write().unwrap();
        for (prefix, record) in [("192.0.2.0/24", [1_u8, 1, 2]), ("127.0.0.0/24", [9, 1, 2])] {
            writing.open_table(table).unwrap().insert(prefix, record.as_slice()).unwrap();
        }
        writing.commit().unwrap();
    }
    let server = serve(&store);
    // The server forgets what is damaged. What is of a later version it cannot read, and leaves as it is.
    server.wait_for("flowstart_path_store_failures_total{failure=\"record\"} 1");
    get(&server);
    assert_eq!(failed(&server), 1);
    server.wait_for("flowstart_path_store_failures_total{failure=\"look-up\"} 1");
    server.wait_for("flowstart_path_store_failures_total{failure=\"save\"} 1");
    let (_, told) = server.end();
    assert!(told.contains("entries.redb") && told.contains("127.0.0.0/24"), "{told}");
    // A file that cannot be opened at the start fails for every connection.
    let store = folder.path().join("file.redb");
    std::fs::write(&store, [7; 8192]).unwrap();
    let server = serve(&store);
    server.wait_for("flowstart_path_store_failures_total{failure=\"open\"} 1");
    for number in 1..=2 {
        get(&server);
        assert_eq!(failed(&server), number);
    }
}

/// The launch of the only connection to a server with these options, as its qlog file has it.
fn launch_of(options: &[&str], get: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::self_signed(&[&["--qlog", folder.path().to_str().unwrap()], options].concat());
    let path = if options.contains(&"--root") { "/object" } else { "/generate/300KB" };
    server.get(path).args(get).assert().success();
    server.wait_for("flowstart_connections_active 0");
    let metrics = server.http("GET", "/metrics");
    drop(server.end());
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    let records = text.split('\u{1e}').skip(1).map(|one| serde_json::from_str::<Value>(one).unwrap());
    let launch = records.into_iter().find(|one| one["name"] == "flowstart:launch").unwrap();
    for source in launch["data"]["sources"].as_array().unwrap() {
        let (name, verdict) = (source["name"].as_str().unwrap(), source["verdict"].as_str().unwrap());
        let counted = format!("flowstart_sources_total{{source=\"{name}\",verdict=\"{verdict}\"}} 1");
        assert!(metrics.contains(&counted), "{counted} in\n{metrics}");
    }
    launch["data"].clone()
}

/// What a source of this launch stated, and what became of it.
fn source<'a>(launch: &'a Value, name: &str) -> &'a Value {
    let all = launch["sources"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} in {launch}"))
}

/// A program that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_launch_says_what_its_sources_stated_and_which_it_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let known = ["record", "--store", store.to_str().unwrap(), "127.0.0.1"];
    let record = ["--rate", "40mbit", "--rtt", "10ms", "--cwnd", "50KB"];
    flowstart().arg("oracle").args(known).args(record).assert().success();
    let oracle = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["oracle", "serve", "--listen", "127.0.0.1:0", "--store", store.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn();
    let mut oracle = Ended(oracle.unwrap());
    let mut line = String::new();
    BufReader::new(oracle.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();

    let any = ["--startup", "more-start", "--oracle", &url, "--deadline", "100ms", "--hint-policy", "cap:rate=30mbit"];
    // Of what is made on the spot the client chooses the size, so that is no statement of the application.
    let launch = launch_of(&any, &["--hint", "rate=50mbit"]);
    assert!(launch["sources"].as_array().unwrap().iter().all(|one| one["name"] != "application"), "{launch}");
    assert_eq!(source(&launch, "hint")["verdict"], "used");
    std::fs::write(folder.path().join("object"), [7; 300_000]).unwrap();
    let any = [&any[..], &["--root", folder.path().to_str().unwrap()]].concat();
    let launch = launch_of(&any, &["--hint", "rate=50mbit"]);
    // 300 KB within 100 ms are 24 Mbit/s, and the application comes before hint and oracle.
    // The window of an RTT has whole bytes, and the loopback's RTT has few of them.
    let paced = |launch: &Value, mbit: f64| {
        let rate = launch["pacing_rate_bps"].as_f64().unwrap();
        assert!((rate / (mbit * 1e6) - 1.0).abs() < 0.05, "{rate}");
    };
    paced(&launch, 24.0);
    let application = source(&launch, "application");
    assert_eq!((&application["value"], &application["verdict"]), (&24_000_000.into(), &"used".into()));
    let asked = source(&launch, "oracle");
    assert_eq!((&asked["value"], &asked["verdict"]), (&40_000_000.into(), &"unused".into()));
    assert!(asked["age_ms"].as_f64().is_some());
    let hint = source(&launch, "hint");
    assert_eq!((&hint["believed"], &hint["verdict"]), (&30_000_000.into(), &"unused".into()));
    assert_eq!(hint["reason"], "capped by rate");

    // What can wait asks for no rate: the next that is known is the hint.
    let launch = launch_of(&any, &["--hint", "rate=50mbit", "--urgency", "5"]);
    paced(&launch, 30.0);
    let application = source(&launch, "application");
    assert_eq!(application["verdict"], "missing");
    assert_eq!(application["reason"], "its urgency is lower than usual");

    let launch = launch_of(&["--startup", "more-start:source=oracle", "--oracle", &url], &[]);
    paced(&launch, 40.0);
    assert_eq!(source(&launch, "oracle")["verdict"], "used");
    drop(oracle);

    // An oracle that is gone is gone without; a store that knows nothing, too.
    let empty = folder.path().join("empty.redb");
    let gone = ["--startup", "more-start", "--oracle", &url, "--path-store", empty.to_str().unwrap()];
    let launch = launch_of(&gone, &[]);
    assert_eq!(source(&launch, "oracle")["verdict"], "failed");
    assert!(!source(&launch, "oracle")["reason"].as_str().unwrap().is_empty());
    assert_eq!(source(&launch, "path-store")["verdict"], "missing");
    assert_eq!(launch["cwnd_bytes"], 12_000, "slow start");

    // One that is silent is late, and the launch does not wait for it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let launch = launch_of(&["--startup", "more-start", "--oracle", &silent], &[]);
    assert_eq!(source(&launch, "oracle")["verdict"], "late");
}

#[test]
fn a_scheme_without_its_sources_is_refused() {
    let refused = |options: &[&str], says: &str| {
        let mut serve = flowstart();
        serve.args(["serve", "--self-signed", "--listen", "127.0.0.1:0"]).args(options);
        // One that is not refused serves.
        serve.timeout(Duration::from_secs(60)).assert().code(2).stderr(predicate::str::contains(says));
    };
    refused(&["--startup", "blitzstart"], "blitzstart starts from the client's hint");
    refused(&["--startup", "blitzstart", "--path-store", "x.redb"], "use --hint-policy");
    refused(&["--ab", "0.5=careful-resume"], "use --path-store or --path-state-key");
    refused(&["--startup", "more-start:source=oracle", "--deadline", "1s"], "use --oracle");
    refused(&["--startup", "more-start:source=interface"], "use --interface");
    refused(&["--startup", "more-start:source=interface", "--interface", "none0"], "no interface `none0`");
    refused(&["--startup", "more-start:source=interface", "--interface", "lo"], "--interface `lo` does not tell");
    refused(&["--startup", "more-start:source=interface", "--interface", "route"], "--interface `route`: no interface");
    refused(&["--startup", "blitzstart", "--hint-policy", "validate"], "add that, or use cap:rate=50mbit");
    refused(&["--startup", "blitzstart", "--hint-policy", "cap:history=4"], "which --path-store keeps");
    refused(&["--startup", "blitzstart", "--hint-policy", "cap:link=0.5"], "use cap:rate=50mbit");
    refused(&["--startup", "more-start", "--oracle", "ftp://x"], "use http://HOST or http://HOST:PORT");
    refused(&["--startup", "more-start", "--deadline", "0ms"], "use 1ms to 86400s");
}

#[test]
fn many_connections_are_served_at_a_time() {
    let server = Server::self_signed(&["--max-handshakes", "20"]);
    let told = server.get("/generate/30KB").args(["--connections", "200"]).assert().success();
    let told: Value = serde_json::from_slice(&told.get_output().stdout).unwrap();
    assert_eq!((&told["connections"], &told["failed"]), (&200.into(), &0.into()));
    assert_eq!(told["bytes"], 6_000_000);
    assert!(told["fct_ms"]["median"].as_f64() <= told["fct_ms"]["p95"].as_f64());
    server.wait_for("flowstart_connection_attempts_total{result=\"accepted\"} 200");
    let out = server.get("/x").args(["--connections", "2", "--out", "x"]).assert().code(2);
    out.stderr(predicate::str::contains("cannot go to --out"));
}
