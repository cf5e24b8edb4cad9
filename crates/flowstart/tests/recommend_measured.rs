//! `flowstart recommend` with a population of what servers logged: links whose rates and RTTs are known come out again.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::path::Path;

use predicates::str::contains;
use serde_json::Value;
use server::{Relay, Server, flowstart};

/// What a server logs of transfers of 2 MB, of which one is small, over a link of 20 Mbit/s and 40 ms: qlog files in
/// the folder, and its metrics.
fn served(logs: &Path) -> String {
    let server = Server::self_signed(&["--startup", "slow-start", "--qlog", logs.to_str().unwrap()]);
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=20mbit,rtt=40ms,buffer=100ms"]);
    for size in ["2MB", "2MB", "70KB"] {
        let url = format!("https://{}/generate/{size}", relay.address);
        flowstart().args(["get", "--insecure", "--json", &url]).assert().success();
    }
    server.wait_for("flowstart_connections_active 0");
    server.wait_for("flowstart_connection_min_rtt_seconds_count 3");
    let (_, metrics) = server
        .http("GET", "/metrics")
        .split_once("\r\n\r\n")
        .map(|(head, text)| (head.to_owned(), text.to_owned()))
        .unwrap();
    drop(server.end());
    metrics
}

/// The lines of a table below its names, by column.
fn table(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(text: &str, unit: &str) -> f64 {
    text.strip_suffix(unit).unwrap_or_else(|| panic!("{text} in {unit}")).parse().unwrap()
}

#[test]
fn a_link_comes_out_of_what_a_server_logged_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let metrics = served(&logs);
    let made = |options: &[&str]| {
        let made = flowstart().arg("recommend").args(options).args(["--write-population", "-"]).assert().success();
        String::from_utf8(made.get_output().stdout.clone()).unwrap()
    };
    let text = made(&["--from-qlog", logs.to_str().unwrap()]);
    assert!(text.contains("# Of 3 connections 2 filled their link"), "{text}");
    let lines = table(&text);
    assert_eq!(lines.len(), 2, "{text}");
    for line in &lines {
        // Packets' headers and the rate that a client sees: within a fifth. A loaded host adds to the RTT.
        assert!((16.0..=24.0).contains(&number(&line[2], "mbit")), "{text}");
        assert!((39.0..=60.0).contains(&number(&line[3], "ms")), "{text}");
    }
    // 100 ms of buffer, as far as packets waited in it.
    let buffer = lines.iter().map(|line| &*line[4]).find(|buffer| *buffer != "1bdp").map(|buffer| number(buffer, "ms"));
    assert!(buffer.is_none_or(|buffer| (30.0..=150.0).contains(&buffer)), "{text}");
    let sizes: Vec<&str> = lines.iter().map(|line| &*line[5]).collect();
    assert_eq!(sizes, ["70KB", "2MB"]);

    let file = folder.path().join("metrics.prom");
    std::fs::write(&file, metrics).unwrap();
    let text = made(&["--from-prometheus", file.to_str().unwrap()]);
    for line in table(&text) {
        // Buckets are a factor of two wide.
        assert!((12.0..=40.0).contains(&number(&line[2], "mbit")), "{text}");
        assert!((28.0..=85.0).contains(&number(&line[3], "ms")), "{text}");
        assert_eq!(line[4], "1bdp");
    }

    // The table is used at once, or again.
    let kept = folder.path().join("fleet.csv");
    let options = ["--scheme", "slow-start", "suss", "--reps", "2", "--json"];
    let told = |origin: &[&str]| -> Value {
        let told = flowstart().arg("recommend").args(origin).args(options).assert().success();
        serde_json::from_slice(&told.get_output().stdout).unwrap()
    };
    let once = told(&["--from-qlog", logs.to_str().unwrap(), "--write-population", kept.to_str().unwrap()]);
    let again = told(&[kept.to_str().unwrap()]);
    assert_eq!(once["recommendation"], again["recommendation"]);
    let notes = once["answer_notes"].to_string();
    assert!(notes.contains("filled their link") && !again["answer_notes"].to_string().contains("filled"), "{notes}");
}

#[test]
fn a_server_is_asked_for_its_metrics() {
    let server = Server::self_signed(&[]);
    let url = server.metrics_url();
    // Nobody has connected.
    let refused = flowstart().args(["recommend", "--from-prometheus", &url]).assert().code(2);
    refused.stderr(contains("flowstart_connection_min_rtt_seconds: counts no connection"));
    let other = url.replace("/metrics", "/other");
    flowstart().args(["recommend", "--from-prometheus", &other]).assert().code(2).stderr(contains("404"));
    flowstart()
        .args(["recommend", "--from-prometheus", "https://localhost/metrics"])
        .assert()
        .code(2)
        .stderr(contains("allowed are a file and http://HOST/metrics"));
}
