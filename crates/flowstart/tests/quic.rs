//! `flowstart serve` and `flowstart get`: over real sockets on this host, as people and other programs meet them.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};
use std::sync::Arc;
use std::time::Duration;

use flowstart_quic::session;
use predicates::prelude::*;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use server::{Server, flowstart, lossy_path};

/// A peer makes too much work (RFC 9114, section 8.1).
const H3_EXCESSIVE_LOAD: u64 = 0x107;

/// A certificate for localhost that ends in this year, and its key, in `folder`.
fn certificate(folder: &Path, year: i32) -> [String; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let files = ["cert.pem", "key.pem"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    std::fs::write(&files[0], params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&files[1], key.serialize_pem()).unwrap();
    files
}

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
        (&["--cert", "/dev/zero", "--key", &key], "/dev/zero: cannot be read"),
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
    server.wait_for("flowstart_launches_total{scheme=\"slow-start\"} 1");
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
    server.wait_for("flowstart_launches_total{scheme=\"search\"} 1");
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
        (verdict, launched["data"]["pacing_rate_bps"].as_u64())
    };
    let blitzstart = |policy: &str, hint: &str| launch(&["--startup", "blitzstart", "--hint-policy", policy], hint);
    let (verdict, capped) = blitzstart("cap:rate=20mbit", "rate=1gbit");
    assert_eq!(verdict.as_deref(), Some("capped by rate"));
    let (verdict, low) = blitzstart("cap:rate=20mbit", "rate=2mbit,technology=dsl");
    assert_eq!(verdict.as_deref(), Some("accepted"));
    let (verdict, _) = blitzstart("validate", "rate=1gbit");
    assert_eq!(verdict.as_deref(), Some("not used: the prefix has not delivered as much"));
    let (verdict, ignored) = launch(&["--startup", "slow-start"], "rate=1gbit");
    assert_eq!(verdict.as_deref(), Some("ignored"));
    let (verdict, without) = blitzstart("accept", "none");
    assert_eq!((verdict, without), (None, ignored));
    // A liar gets the cap, who is below it gets what was said, and nobody more. The initial window of 10 packets within
    // the loopback's RTT is much faster than either.
    assert!(low <= capped, "{low:?} {capped:?}");
}

/// Connects to the server with these bytes behind the transport parameters and this window for each stream, and does
/// something with the connection.
fn connected<T>(
    server: &Server,
    cert: &str,
    encoded: &[u8],
    window: u32,
    act: impl AsyncFnOnce(&noq::Connection) -> T,
) -> Result<T, noq::ConnectionError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let session = session::ClientConfig::new(tls).unwrap().with_encoded_parameters(encoded.to_vec());
    let mut config = noq::ClientConfig::new(Arc::new(session));
    let mut transport = noq::TransportConfig::default();
    // Nothing ends for silence.
    transport.keep_alive_interval(Some(Duration::from_millis(50))).stream_receive_window(window.into());
    config.transport_config(Arc::new(transport));
    let address = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let endpoint = noq::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connection = endpoint.connect_with(config, address, "localhost").unwrap().await?;
        let result = act(&connection).await;
        connection.close(0_u32.into(), b"");
        endpoint.wait_idle().await;
        Ok(result)
    })
}

/// Connects to the server with these bytes behind the transport parameters, and stays for a moment.
fn connect_with(server: &Server, cert: &str, encoded: &[u8]) -> Result<(), noq::ConnectionError> {
    let stays = async |connection: &noq::Connection| {
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.close_reason()
    };
    connected(server, cert, encoded, 1 << 20, stays)?.map_or(Ok(()), Err)
}

/// How the server ends a connection on which a client sends this on a stream of one or two directions, and no more.
fn end_after(options: &[&str], two_way: bool, sent: &[u8]) -> noq::ConnectionError {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&[&["--cert", &cert, "--key", &key], options].concat());
    let ended = connected(&server, &cert, &[], 1 << 20, async |connection| {
        let (mut stream, answer) = if two_way {
            let (stream, answer) = connection.open_bi().await.unwrap();
            (stream, Some(answer))
        } else {
            (connection.open_uni().await.unwrap(), None)
        };
        stream.write_all(sent).await.unwrap();
        let end = tokio::time::timeout(Duration::from_secs(20), connection.closed()).await;
        drop((stream, answer));
        end.expect("the server keeps the connection")
    });
    // Others are served.
    let get = ["get", "--ca", &cert, "--json", &format!("{}/generate/1MB", server.url)];
    flowstart().args(get).assert().success();
    ended.unwrap()
}

#[test]
fn a_frame_that_claims_to_be_large_ends_its_connection() {
    // HEADERS on a request's stream and SETTINGS on the control stream, of 2^40 bytes (RFC 9114, section 7.2).
    let size = [0xc0, 0, 1, 0, 0, 0, 0, 0];
    for (two_way, before) in [(true, &[1][..]), (false, &[0, 4])] {
        let end = end_after(&[], two_way, &[before, &size].concat());
        let noq::ConnectionError::ApplicationClosed(close) = &end else { panic!("{end}") };
        assert_eq!(close.error_code.into_inner(), H3_EXCESSIVE_LOAD, "{end}");
    }
}

#[test]
fn a_place_is_not_held_without_a_request() {
    // With neither a request nor a whole one, while the connection is kept alive.
    for (two_way, sent) in [(false, &[0, 4, 0][..]), (true, &[1, 40, 0, 0])] {
        let end = end_after(&["--idle", "300ms", "--stall", "300ms"], two_way, sent);
        assert!(matches!(end, noq::ConnectionError::ApplicationClosed(_)), "{end}");
    }
}

#[test]
fn an_answer_without_credit_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key, "--stall", "300ms"]);
    let ask = |path: &'static str, credit| {
        // HEADERS with GET, https and an authority of the static table, and a literal path (RFC 9204, section 4.5).
        let fields = [&[0, 0, 0xd1, 0xd7, 0x50, 9][..], b"localhost", &[0x51, path.len() as u8], path.as_bytes()];
        let fields = fields.concat();
        let request = [&[1, fields.len() as u8], &fields[..]].concat();
        connected(&server, &cert, &[], credit, async |connection| {
            let (mut stream, mut answer) = connection.open_bi().await.unwrap();
            stream.write_all(&request).await.unwrap();
            stream.finish().unwrap();
            // Read only when the server has decided.
            let reset = tokio::time::timeout(Duration::from_secs(20), answer.received_reset()).await;
            reset.expect("the server keeps the answer").unwrap()
        })
        .unwrap()
    };
    // 40 bytes are enough for what precedes answers, and not for the head of one; 400 are enough for heads.
    for (path, credit) in [("/generate/1MB", 40), ("/nothing", 40), ("/generate/1MB", 400)] {
        assert!(ask(path, credit).is_some(), "{path}, {credit} bytes");
    }
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
fn a_web_page_does_not_turn_the_kill_switch() {
    let server = Server::self_signed(&[]);
    let put = |fields: &str| server.request(&format!("PUT /kill-switch HTTP/1.1\r\n{fields}\r\n"));
    for fields in ["Host: evil.example:80\r\n", "", "Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n"] {
        assert!(put(fields).starts_with("HTTP/1.1 403"), "{fields}");
    }
    server.wait_for("flowstart_kill_switch 0");
    for host in ["localhost:9100", "127.0.0.1", "[::1]:9100"] {
        assert!(put(&format!("Host: {host}\r\n")).ends_with("on\n"), "{host}");
    }
}

#[test]
fn nobody_holds_the_places_for_metrics() {
    let server = Server::self_signed(&[]);
    // 64 places, and requests whose answers nobody reads.
    let pipelines: Vec<_> =
        (0..64).map(|_| server.pipeline("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")).collect();
    assert!(server.http("PUT", "/kill-switch").ends_with("on\n"));
    drop(pipelines);
}

#[test]
fn hostile_transport_parameters_are_told_of_and_hurt_nobody() {
    // 0x4b17 as four bytes, then the length of the value.
    let parameter = |value: &[u8]| [&[0x80, 0, 0x4b, 0x17, value.len() as u8], value].concat();
    let good = parameter(&[1, 2, 0x80, 0x98, 0x96, 0x80, 0]);
    let fastest = [&[1, 0][..], &[0xff; 8], &[0]].concat();
    let cut_off = [0x80, 0, 0x4b, 0x17, 40, 1, 2, 3];
    let cases: [(Vec<u8>, bool, &str); 6] = [
        (parameter(&fastest), true, "hint has a rate of 4611686018427387903 bit/s; allowed is"),
        (parameter(&[1, 2]), true, "hint is cut off: 2 bytes"),
        (parameter(&[]), true, "hint is cut off: 0 bytes"),
        ([good.clone(), good].concat(), true, "transport parameter 0x4b17 comes more than once"),
        (parameter(&[9, 9, 9]), true, "hint has version 9"),
        // The host ends this connection (RFC 9000, section 7.4), and no other.
        (cut_off.to_vec(), false, "transport parameters are cut off in the one that begins at byte"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    for (encoded, accepted, message) in cases {
        let server = Server::start(&["--cert", &cert, "--key", &key, "--hint-policy", "accept"]);
        let other = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--ca", &cert, "--json", &format!("{}/generate/20MB", server.url)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        server.wait_for("flowstart_requests_total{status=\"200\"} 1");
        let connected = connect_with(&server, &cert, &encoded);
        assert_eq!(connected.is_ok(), accepted, "{message}: {connected:?}");
        let got: Value = serde_json::from_slice(&other.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(got["bytes"], 20_000_000, "{message}");
        let result = if accepted { ("accepted", 2) } else { ("failed", 1) };
        server.wait_for(&format!("flowstart_connection_attempts_total{{result=\"{}\"}} {}", result.0, result.1));
        let (status, told) = server.end();
        assert!(status.success() && told.starts_with(&format!("warning: 127.0.0.1: {message}")), "{message}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
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
}

/// The launch of the only connection to a server with these options, as its qlog file has it.
fn launch_of(options: &[&str], get: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::self_signed(&[&["--qlog", folder.path().to_str().unwrap()], options].concat());
    server.get("/generate/300KB").args(get).assert().success();
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
    assert!(launch["pacing_rate_bps"].is_null(), "slow start");
}

#[test]
fn a_scheme_without_its_sources_is_refused() {
    let refused = |options: &[&str], says: &str| {
        let asserted = flowstart().args(["serve", "--self-signed", "--listen", "127.0.0.1:0"]).args(options).assert();
        asserted.code(2).stderr(predicate::str::contains(says));
    };
    refused(&["--startup", "blitzstart"], "blitzstart starts from the client's hint");
    refused(&["--startup", "blitzstart", "--path-store", "x.redb"], "use --hint-policy");
    refused(&["--ab", "0.5=careful-resume"], "use --path-store or --path-state-key");
    refused(&["--startup", "more-start:source=oracle", "--deadline", "1s"], "use --oracle");
    refused(&["--startup", "more-start:source=interface"], "use --interface");
    refused(&["--startup", "more-start:source=interface", "--interface", "none0"], "no interface `none0`");
    refused(&["--startup", "more-start", "--oracle", "ftp://x"], "use http://HOST or http://HOST:PORT");
    refused(&["--startup", "more-start", "--deadline", "0ms"], "use 1ms to 86400s");
}

#[test]
fn limits_refuse_or_ask_for_proof() {
    for (option, result) in [("--max-connections", "full"), ("--max-per-prefix", "prefix")] {
        let full = Server::self_signed(&[option, "1"]);
        let mut holder = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", "--hold", "100s", "--connections", "1", &format!("{}/generate/1KB", full.url)])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        full.wait_for("flowstart_connections_active 1");
        full.get("/generate/1KB").assert().code(1);
        full.wait_for(&format!("flowstart_connection_attempts_total{{result=\"{result}\"}} 1"));
        holder.kill().unwrap();
        holder.wait().unwrap();
    }

    let rate = Server::self_signed(&["--max-rate", "1"]);
    rate.timings("/generate/1KB");
    rate.get("/generate/1KB").assert().code(1);
    rate.wait_for("flowstart_connection_attempts_total{result=\"rate\"} 1");

    // With a limit of none every client has to prove its address, and can.
    let proof = Server::self_signed(&["--max-handshakes", "0"]);
    assert_eq!(proof.timings("/generate/1KB")["bytes"], 1000);
    proof.wait_for("flowstart_connection_attempts_total{result=\"retry\"} 1");
}

#[test]
fn a_flood_of_half_open_handshakes_ends_in_retry_and_others_are_served() {
    let server = Server::self_signed(&["--max-handshakes", "5"]);
    let address = server.url.strip_prefix("https://").unwrap().to_owned();
    // Clients that send their first packets and die.
    let mut clients: Vec<Child> = Vec::new();
    for _ in 0..5 {
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", relay.local_addr().unwrap());
        let client = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", &url])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        clients.push(client);
        let mut packet = [0; 2000];
        let length = relay.recv(&mut packet).unwrap();
        relay.send_to(&packet[..length], &address).unwrap();
    }
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
    server.wait_for("flowstart_connection_attempts_total{result=\"retry\"} 1");
    for mut client in clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
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

#[test]
fn garbage_from_the_network_harms_nobody() {
    let server = Server::self_signed(&[]);
    let address = server.url.strip_prefix("https://").unwrap().to_owned();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in 0..1400_usize {
        let mut packet: Vec<u8> = (0..length).map(|place| (place * 31 + length) as u8).collect();
        if let Some(first) = packet.first_mut() {
            *first |= if length % 2 == 0 { 0xc0 } else { 0x40 };
        }
        if length % 3 == 0 && length > 5 {
            packet[1..5].copy_from_slice(&1_u32.to_be_bytes());
        }
        socket.send_to(&packet, &address).unwrap();
    }
    assert_eq!(server.timings("/generate/100KB")["bytes"], 100_000);
    let (status, told) = server.end();
    assert!(status.success() && !told.contains("panicked"), "{told}");
}

#[test]
fn a_client_that_is_killed_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let serve = || Server::self_signed(&["--path-store", store.to_str().unwrap()]);
    let mut server = serve();
    let url = format!("{}/generate/1GB", server.url);
    let mut victim = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", &url])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for("flowstart_requests_total{status=\"200\"} 1");
    victim.kill().unwrap();
    victim.wait().unwrap();
    // The server dies as well, at any time; what it had saved stays readable. Nobody waits for what it saves, so that a
    // server which dies too soon has saved nothing, and the next one lives longer.
    let mut active = 1;
    for life in [200, 800, 3200, 12_800, 51_200] {
        assert_eq!(server.timings("/generate/1MB")["bytes"], 1_000_000);
        server.wait_for(&format!("flowstart_connections_active {active}"));
        std::thread::sleep(Duration::from_millis(life));
        server.signal("-KILL");
        server.child.wait().unwrap();
        let shown = flowstart().args(["oracle", "show", "--json", "--store"]).arg(&store).assert().success();
        let known: Value = serde_json::from_slice(&shown.get_output().stdout).unwrap();
        if known[0]["prefix"] == "127.0.0.0/24" {
            return;
        }
        (server, active) = (serve(), 0);
    }
    panic!("nothing was saved");
}

#[test]
fn a_reader_that_reads_nothing_is_given_up() {
    // On a busy machine a second of the server may take longer, so that a reader who gets everything was asked too
    // soon.
    let gets_everything_after = |rest: u64| {
        let server = Server::self_signed(&["--stall", "1s", "--connection-memory", "1MB"]);
        // The pipe takes 64 KB, flow control of the client 1.25 MB; then nobody reads.
        let url = format!("{}/generate/50MB", server.url);
        let mut reader = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", "--out", "-", &url])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        server.wait_for("flowstart_requests_total{status=\"200\"} 1");
        assert_eq!(server.timings("/generate/1MB")["bytes"], 1_000_000);
        std::thread::sleep(Duration::from_secs(rest));
        // When it reads again, it learns that the answer ended.
        let bytes = std::io::copy(reader.stdout.as_mut().unwrap(), &mut std::io::sink()).unwrap();
        let code = reader.wait().unwrap().code();
        assert!(code == Some(1) && bytes < 50_000_000 || code == Some(0) && bytes == 50_000_000, "{code:?}, {bytes}");
        code == Some(0)
    };
    assert!(![4, 16, 64].into_iter().all(gets_everything_after), "the server waits for ever");
}
