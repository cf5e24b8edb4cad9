//! `flowstart relay`: a link of the lab between a real server and a real client.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::io::Write;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use predicates::prelude::*;
use serde_json::Value;
use server::{Relay, Server, flowstart};

fn timings(relay: &Relay, path: &str) -> Value {
    let url = format!("https://{}{path}", relay.address);
    let got = flowstart().args(["get", "--insecure", "--json", &url]).assert().success();
    serde_json::from_slice(&got.get_output().stdout).unwrap()
}

#[test]
fn a_transfer_takes_as_long_as_its_link_says() {
    let server = Server::self_signed(&["--startup", "slow-start"]);
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=10mbit,rtt=100ms,buffer=200ms"]);
    let got = timings(&relay, "/generate/500KB");
    // Two round trips at least, and 500 KB and its headers at 10 Mbit/s are 400 ms and more.
    assert!(got["fct_ms"].as_f64().unwrap() >= 600.0, "{got}");
    assert!(got["handshake_ms"].as_f64().unwrap() >= 100.0);
    let told = relay.end();
    let bytes = told["down"]["departed_bytes"].as_u64().unwrap();
    assert!((500_000..700_000).contains(&bytes) && told["refused"] == 0, "{told}");
}

/// A program that waits for a reader of its output would otherwise keep its ports until it is killed.
#[test]
fn who_does_not_read_its_output_does_not_keep_a_relay_from_ending() {
    let (_unread, mut full) = std::io::pipe().unwrap();
    // What a pipe holds.
    full.write_all(&[b' '; 65_536]).unwrap();
    let mut relay = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["relay", "--json", "--link", "dsl-fast", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"])
        .stdout(full)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let pid = relay.id().to_string();
    let has_ended = (0..100).any(|_| {
        assert!(Program::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(100));
        relay.try_wait().unwrap().is_some()
    });
    relay.kill().unwrap();
    assert!(has_ended);
}

#[test]
fn what_the_queue_drops_and_the_wire_loses_is_counted() {
    let server = Server::self_signed(&["--startup", "slow-start"]);
    // Long enough that the window exceeds the link between two random losses.
    let relay =
        Relay::start(&server.url, &["relay", "--link", "rate=10mbit,rtt=40ms,buffer=4pkt,loss=0.2%", "--aqm", "codel"]);
    assert_eq!(timings(&relay, "/generate/8MB")["bytes"], 8_000_000);
    let told = relay.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    assert!(of("dropped") > 0 && of("lost") > 0 && of("max_waiting") <= 4, "{told}");
}

#[test]
fn keys_that_a_relay_does_not_have_are_refused() {
    let relay = |options: &[&str]| {
        let mut relay = flowstart();
        relay.args(["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"]).args(options).assert().code(2)
    };
    for key in
        ["quick_start=target,qs_delay=5ms", "hint=5mbit", "hops=2", "access_delay=1ms", "pep=integrated", "xcp=on"]
    {
        let refused = relay(&["--link", &format!("rate=10mbit,rtt=500ms,{key}")]);
        let name = key.rsplit(',').next().unwrap().split('=').next().unwrap().to_owned();
        refused.stderr(predicate::str::contains(format!("a relay has no {name}")));
    }
    relay(&["--link", "geo"]).stderr(predicate::str::contains("access_rate=10gbit leaves it out"));
    relay(&["--link", "lte", "--aqm", "oracle"]).stderr(predicate::str::contains("only a simulator"));
    relay(&["--link", "rate=0,rtt=1ms"]);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let mut relay = flowstart();
    relay.args(["relay", "--link", "lte", "--to", "127.0.0.1:9", "--listen", &listen]);
    relay.assert().code(1).stderr(predicate::str::contains("in use"));
}

#[test]
fn a_second_connection_of_a_client_starts_with_a_share_of_the_first() {
    let qlog = tempfile::tempdir().unwrap();
    let server = Server::self_signed(&["--startup", "ensemble-sharing", "--qlog", qlog.path().to_str().unwrap()]);
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=20mbit,rtt=60ms,buffer=60ms"]);
    let url = format!("https://{}/generate/8MB", relay.address);
    let mut first = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", "--json", &url])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let used = "flowstart_sources_total{source=\"concurrent-connections\",verdict=\"used\"} 1";
    let missing = "flowstart_sources_total{source=\"concurrent-connections\",verdict=\"missing\"} 1";
    // 8 MB take more than three seconds, and slow start is over after one.
    std::thread::sleep(Duration::from_millis(1500));
    timings(&relay, "/generate/300KB");
    assert!(first.wait().unwrap().success());
    // Launches are counted when their connections end.
    server.wait_for(missing);
    server.wait_for(used);
    let logs: Vec<String> = std::fs::read_dir(qlog.path())
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    // The newcomer's launch has its share; the first learned of it, and got it back.
    assert!(logs.iter().any(|log| log.contains("concurrent-connections") && log.contains("\"used\"")), "{logs:?}");
    let given = logs.iter().map(|log| log.matches("flowstart:window_shared").count()).max();
    assert!(given >= Some(2), "{given:?}");
}

#[test]
fn a_prefix_that_launches_lose_too_much_to_falls_back_and_is_no_part_of_the_experiment() {
    falls_back("jump-start", &["--startup", "jump-start"], &[]);
    // Its startup ends with its launch.
    falls_back("blitzstart", &["--startup", "blitzstart", "--hint-policy", "accept"], &["--hint", "rate=1gbit"]);
}

#[test]
fn what_slow_start_loses_for_want_of_a_hint_turns_no_launches_off() {
    let server = Server::self_signed(&["--startup", "blitzstart", "--hint-policy", "accept", "--launch-window", "1"]);
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=10mbit,rtt=20ms,buffer=5pkt"]);
    let url = format!("https://{}/generate/300KB", relay.address);
    flowstart().args(["get", "--insecure", &url]).assert().success();
    server.wait_for("flowstart_connections_active 0");
    assert!(server.metric("flowstart_startup_lost_bytes_total{scheme=\"blitzstart\"}") > 0);
    assert_eq!(server.metric("flowstart_fallen_back_prefixes"), 0);
}

fn falls_back(scheme: &str, of_server: &[&str], of_client: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let qlog = ["--launch-window", "1", "--qlog", logs.to_str().unwrap()];
    let server = Server::self_signed(&[of_server, &qlog].concat());
    let timings = |relay: &Relay, path: &str| -> Value {
        let url = format!("https://{}{path}", relay.address);
        let got = flowstart().args(["get", "--insecure", "--json", &url]).args(of_client).assert().success();
        serde_json::from_slice(&got.get_output().stdout).unwrap()
    };
    // A launch of 300 KB meets a buffer of five packets.
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=10mbit,rtt=20ms,buffer=5pkt"]);
    assert_eq!(timings(&relay, "/generate/300KB")["bytes"], 300_000);
    server.wait_for("flowstart_fallen_back_prefixes 1");
    assert_eq!(server.metric("flowstart_fallen_back"), 0, "one prefix does not decide for all");
    assert_eq!(timings(&relay, "/generate/300KB")["bytes"], 300_000);
    let (status, _) = server.end();
    assert!(status.success());
    let analyzed = flowstart().args(["analyze", "--json"]).arg(&logs).output().unwrap();
    let analysis: Value = serde_json::from_slice(&analyzed.stdout).unwrap();
    let schemes: Vec<&str> =
        analysis["groups"].as_array().unwrap().iter().map(|group| group["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes, [scheme, "slow-start (not drawn)"]);
    assert_eq!((&analysis["not_drawn"], &analysis["groups"][1]["vs_baseline"]), (&1.into(), &Value::Null));
}
