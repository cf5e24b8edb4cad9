//! What a client sees of the server's part of the handshake reaches the launch: `get --handshake-train`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::path::Path;

use serde_json::Value;
use server::{Relay, Server, connected, field, flowstart, request};

/// A server whose part of the handshake is four datagrams or so: its certificate has many names.
fn certificate(folder: &Path) -> [String; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = (0..60).map(|number| format!("a-name-of-some-length-{number}.example"));
    let names: Vec<String> = ["localhost".into(), "127.0.0.1".into()].into_iter().chain(names).collect();
    let files = ["cert.pem", "key.pem"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    std::fs::write(&files[0], rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&files[1], key.serialize_pem()).unwrap();
    files
}

/// The events of the only connection.
fn events(folder: &Path) -> Vec<Value> {
    let log = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(log).unwrap();
    text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect()
}

/// What the launch says of the train, and its window.
fn launched(folder: &Path) -> (Value, u64) {
    let launch = events(folder).into_iter().find(|event| event["name"] == "flowstart:launch").unwrap();
    let sources = launch["data"]["sources"].as_array().unwrap();
    let train = sources.iter().find(|one| one["name"] == "handshake-train").cloned().unwrap_or(Value::Null);
    (train, launch["data"]["cwnd_bytes"].as_u64().unwrap())
}

#[test]
fn the_rate_at_which_the_handshake_arrives_makes_a_launch() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path());
    let get = |policy: &str, report: bool| {
        let logs = tempfile::tempdir().unwrap();
        let log = logs.path().to_str().unwrap();
        let options = ["--cert", &cert, "--key", &key, "--startup", "plumb", "--hint-policy", policy, "--qlog", log];
        let server = Server::start(&options);
        // 1.2 ms for a datagram: a machine that is busy reads the clock later by less.
        let relay = Relay::start(&server.url, &["relay", "--link", "rate=8mbit,rtt=60ms,buffer=200pkt"]);
        let url = format!("https://{}/generate/300KB", relay.address);
        let mut client = flowstart();
        client.args(["get", "--insecure", "--json", &url]).args(report.then_some("--handshake-train"));
        let told: Value = serde_json::from_slice(&client.assert().success().get_output().stdout).unwrap();
        server.wait_for("flowstart_connections_active 0");
        assert!(server.end().0.success());
        let (train, window) = launched(logs.path());
        (told["handshake_train_bps"].as_u64(), train, window)
    };
    let (seen, train, window) = get("accept", true);
    let seen = seen.expect("a train");
    assert!((4_000_000..16_000_000).contains(&seen), "{seen}");
    // Rounded down to a step of the grid, a twentieth of a factor of ten.
    let reported = train["value"].as_u64().unwrap();
    assert!(reported <= seen && seen < reported * 113 / 100, "{reported} of {seen}");
    assert_eq!(train["verdict"], "used");
    assert!(window > 20_000, "{window}");

    // It is believed as far as the policy for hints goes: 1 Mbit/s is less than an initial window in a round trip.
    let (_, train, window) = get("cap:rate=1mbit", true);
    assert_eq!((&train["verdict"], window), (&Value::from("unused"), 12_000));
    // Nobody reports it unasked.
    assert_eq!(get("accept", false), (None, Value::Null, 12_000));
}

#[test]
fn what_is_no_report_is_told_of_and_the_answer_comes() {
    let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [cert, key] = certificate(folder.path());
    let log = logs.path().to_str().unwrap();
    let server = Server::start(&[
        "--cert",
        &cert,
        "--key",
        &key,
        "--startup",
        "plumb",
        "--hint-policy",
        "accept",
        "--qlog",
        log,
    ]);
    let asked = request("/generate/100KB", &field("flowstart-handshake-train", "1e9"));
    let answered = connected(&server, &cert, &[], 1 << 20, async |connection| {
        let (mut stream, mut answer) = connection.open_bi().await.unwrap();
        stream.write_all(&asked).await.unwrap();
        stream.finish().unwrap();
        answer.read_to_end(200_000).await.unwrap().len()
    });
    assert!(answered.unwrap() > 100_000);
    server.wait_for("flowstart_connections_active 0");
    assert!(server.end().0.success());
    assert_eq!(launched(logs.path()).0["verdict"], "failed");
}

#[test]
fn a_report_that_no_launch_uses_takes_nothing_of_its_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path());
    let options = ["--cert", &cert, "--key", &key, "--startup", "blitzstart", "--hint-policy", "cap:prefix=100mbit"];
    let server = Server::start(&options);
    let asked = request("/generate/100KB", &field("flowstart-handshake-train", "10000000"));
    connected(&server, &cert, &[], 1 << 20, async |connection| {
        let (mut stream, mut answer) = connection.open_bi().await.unwrap();
        stream.write_all(&asked).await.unwrap();
        stream.finish().unwrap();
        answer.read_to_end(200_000).await.unwrap();
        // It stays open, and keeps what it was given.
        server.get("/generate/100KB").args(["--hint", "rate=50mbit"]).assert().success();
    })
    .unwrap();
    server.wait_for("flowstart_hints_total{verdict=\"accepted\"} 1");
    server.wait_for("flowstart_sources_total{source=\"handshake-train\",verdict=\"refused\"} 1");
    // Who reports it knew nothing before; the hint did.
    server.wait_for("flowstart_connections_known_path_total 1");
}
