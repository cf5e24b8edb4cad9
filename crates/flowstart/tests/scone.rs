//! SCONE on sockets: a server, elements of the path and a client.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::collections::{BTreeSet, HashMap};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flowstart_core::scone::wire::{RateSignal, SconePacket, lower};
use flowstart_core::units::Rate;
use predicates::str::contains;
use serde_json::Value;
use server::{Relay, Server, certificate, connected, events, field, flowstart, request};

/// A server that caps launches of blitzstart, with qlog files in this folder.
fn server(folder: &Path, options: &[&str]) -> Server {
    let qlog = folder.to_str().unwrap();
    let common = ["--startup", "blitzstart", "--hint-policy", "accept", "--qlog", qlog];
    Server::self_signed(&[&common, options].concat())
}

/// Gets it with a hint of 100 Mbit/s from this address.
fn got(address: &str, path: &str, options: &[&str]) -> Value {
    let url = format!("https://{address}{path}");
    let hint = ["get", "--insecure", "--json", "--timeout", "60s", "--hint", "rate=100mbit", &url];
    let got = flowstart().args(hint).args(options).assert().success();
    serde_json::from_slice(&got.get_output().stdout).unwrap()
}

/// A path to `server` that changes every SCONE packet on its way to a client: `change` gets the datagram, how long its
/// SCONE packet is and the number of the client. Where clients connect.
fn changing(server: &Server, change: impl Fn(&mut Vec<u8>, usize, usize) + Send + Sync + 'static) -> String {
    let server: SocketAddr = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    let near = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let (address, change) = (near.local_addr().unwrap().to_string(), Arc::new(change));
    std::thread::spawn(move || {
        let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut packet = [0; 2000];
        while let Ok((length, from)) = near.recv_from(&mut packet) {
            let number = clients.len();
            let far = clients.entry(from).or_insert_with(|| {
                let far = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
                far.connect(server).unwrap();
                let (far_end, near, change) = (far.clone(), near.clone(), change.clone());
                std::thread::spawn(move || {
                    let mut packet = [0; 2000];
                    while let Ok(length) = far_end.recv(&mut packet) {
                        let mut datagram = packet[..length].to_vec();
                        let scone = SconePacket::parse(&datagram).map(|(packet, _)| packet.len());
                        if let Ok(length) = scone {
                            change(&mut datagram, length, number);
                        }
                        drop(near.send_to(&datagram, from));
                    }
                });
                far
            });
            drop(far.send(&packet[..length]));
        }
    });
    address
}

#[test]
fn an_elements_advice_caps_a_launch_if_both_ends_speak_scone() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), &["--scone"]);
    let element = Relay::start(&server.url, &["scone-element", "--rate", "10mbit"]);
    // A round trip of 40 ms before the element: a hint of 100 Mbit/s is a window of 500 KB, advice of 10 Mbit/s of 50.
    let relay = Relay::start(&element.address, &["relay", "--link", "rate=1gbit,rtt=40ms"]);
    let told = got(&relay.address, "/generate/1MB", &["--scone"]);
    assert_eq!((&told["bytes"], &told["scone"]["advised_bps"]), (&1_000_000.into(), &10_000_000.into()), "{told}");
    assert!(told["scone"]["packets"].as_u64() >= Some(1) && told["scone"]["malformed"] == 0, "{told}");
    server.wait_for("flowstart_advice_capped_total{scheme=\"blitzstart\"} 1");
    assert_eq!(server.metric("flowstart_scone_reports_total{result=\"taken\"}"), 1);
    assert!(server.metric("flowstart_scone_packets_sent_total") >= 1);
    let capped = events(folder.path(), "flowstart:advice_capped");
    assert_eq!((capped.len(), &capped[0]["advised"]), (1, &10_000_000.into()), "{capped:?}");
    let launch = &events(folder.path(), "flowstart:launch")[0];
    let cwnd = launch["cwnd_bytes"].as_u64().unwrap();
    // 50 KB at 40 ms, more when this host adds to the round trip; without advice it is ten times as much.
    assert!((40_000..150_000).contains(&cwnd), "{launch}");
    // Without the client's announcement there are no SCONE packets, and the hint counts.
    let sent = server.metric("flowstart_scone_packets_sent_total");
    let told = got(&relay.address, "/generate/1MB", &[]);
    assert_eq!(told["scone"], Value::Null);
    server.wait_for("flowstart_launches_total{scheme=\"blitzstart\"} 2");
    assert_eq!(server.metric("flowstart_scone_packets_sent_total"), sent);
    assert_eq!(server.metric("flowstart_advice_capped_total{scheme=\"blitzstart\"}"), 1);
    let largest =
        events(folder.path(), "flowstart:launch").iter().filter_map(|event| event["cwnd_bytes"].as_u64()).max();
    assert!(largest > Some(400_000), "{largest:?}");
    relay.end();
    let told = element.end();
    assert!(
        told["scone"]["seen"] == sent && told["scone"]["lowered"] == sent && told["scone"]["malformed"] == 0,
        "{told}"
    );
}

#[test]
fn a_server_without_scone_sends_none_and_believes_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), &[]);
    let element = Relay::start(&server.url, &["scone-element", "--rate", "10mbit"]);
    let told = got(&element.address, "/generate/1MB", &["--scone"]);
    assert_eq!((&told["scone"]["packets"], &told["scone"]["advised_bps"]), (&0.into(), &Value::Null), "{told}");
    server.wait_for("flowstart_launches_total{scheme=\"blitzstart\"} 1");
    assert_eq!(server.metric("flowstart_advice_capped_total{scheme=\"blitzstart\"}"), 0);
    assert_eq!(element.end()["scone"]["seen"], 0);
}

#[test]
fn a_relay_may_be_the_element_of_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), &["--scone"]);
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=20mbit,rtt=40ms,scone=0.5"]);
    let told = got(&relay.address, "/generate/300KB", &["--scone"]);
    assert_eq!(told["scone"]["advised_bps"], 10_000_000);
    server.wait_for("flowstart_advice_capped_total{scheme=\"blitzstart\"} 1");
    assert!(relay.end()["scone"]["lowered"].as_u64() >= Some(1));
}

#[test]
fn with_any_bit_of_a_scone_packet_flipped_the_transfer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), &["--scone", "--max-connections", "1000"]);
    // Each client has its own bit: 23 bytes before a long header, 15 before a short one.
    const BITS: usize = 23 * 8;
    let flipped: Arc<Mutex<BTreeSet<usize>>> = Arc::default();
    let seen = flipped.clone();
    let address = changing(&server, move |datagram, length, number| {
        lower(datagram, RateSignal::at_most(Rate::from_mbit(10)));
        let bit = number % (length * 8);
        datagram[bit / 8] ^= 0x80 >> (bit % 8);
        seen.lock().unwrap().insert(bit);
    });
    let told: Vec<Value> = std::thread::scope(|scope| {
        let get = || {
            let mut told = Vec::new();
            while flipped.lock().unwrap().len() < BITS {
                told.push(got(&address, "/generate/60KB", &["--scone"]));
            }
            told
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(told.len() >= BITS);
    let number = |one: &Value, name: &str| one["scone"][name].as_u64();
    assert!(told.iter().all(|one| one["bytes"] == 60_000), "{told:?}");
    // Seven bits are the signal's, which nobody can tell from another signal, and one means nothing; three packets of a
    // client may have different lengths, so a bit of one header is another's of the other.
    let advised = told.iter().filter(|one| number(one, "advised_bps").is_some()).count();
    let malformed = told.iter().filter(|one| number(one, "malformed") > Some(0)).count();
    assert!(malformed >= told.len() - 10, "{malformed} malformed, {advised} advised");
    let most = told.iter().filter_map(|one| number(one, "advised_bps")).max();
    assert!(most <= RateSignal::MAX.rate().map(Rate::bits_per_sec), "{most:?}");
    // Nothing was lost: a packet behind a damaged one that had to be repeated would take a timeout of 1 s.
    let slow = told.iter().filter(|one| one["handshake_ms"].as_f64() > Some(900.0)).count();
    assert!(slow <= 4, "{slow} handshakes waited for a timeout");
    assert_eq!(server.metric("flowstart_scone_packets_unexpected_total"), 0);
}

#[test]
fn an_element_that_lies_never_raises_a_launch_and_leaves_the_initial_window() {
    for (signal, least, most) in [(0, 12_000, 12_000), (126, 400_000, 700_000)] {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path(), &["--scone"]);
        let lying = changing(&server, move |datagram, _, _| {
            lower(datagram, RateSignal::from_bits(signal));
        });
        let relay = Relay::start(&lying, &["relay", "--link", "rate=1gbit,rtt=40ms"]);
        let told = got(&relay.address, "/generate/1MB", &["--scone"]);
        assert_eq!(told["bytes"], 1_000_000);
        assert_eq!(told["scone"]["advised_bps"].as_u64(), RateSignal::from_bits(signal).rate().map(Rate::bits_per_sec));
        server.wait_for("flowstart_launches_total{scheme=\"blitzstart\"} 1");
        let launch = &events(folder.path(), "flowstart:launch")[0];
        let cwnd = launch["cwnd_bytes"].as_u64().unwrap();
        assert!((least..=most).contains(&cwnd), "{signal}: {launch}");
        let capped = server.metric("flowstart_advice_capped_total{scheme=\"blitzstart\"}");
        assert_eq!(capped, u64::from(signal == 0));
    }
}

#[test]
fn a_client_without_advice_reports_none() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), &["--scone"]);
    let address = server.url.strip_prefix("https://").unwrap();
    let told = got(address, "/generate/1MB", &["--scone"]);
    assert!(told["scone"]["packets"].as_u64() >= Some(1), "{told}");
    assert_eq!(told["scone"]["advised_bps"], Value::Null);
    server.wait_for("flowstart_scone_reports_total{result=\"no-advice\"} 1");
    server.wait_for("flowstart_launches_total{scheme=\"blitzstart\"} 1");
    assert_eq!(server.metric("flowstart_advice_capped_total{scheme=\"blitzstart\"}"), 0);
}

/// The transport parameter of a client that reads SCONE packets.
const READS_SCONE: [u8; 3] = [0x61, 0x9e, 0];

#[test]
fn reports_that_are_none_or_that_nobody_asked_for_are_counted_and_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = certificate(folder.path(), 2090);
    let server = Server::start(&["--cert", &cert, "--key", &key, "--scone"]);
    let report = |encoded: &[u8], value: &str| {
        let asked = request("/generate/1KB", &field("flowstart-scone-advice", value));
        let answered = connected(&server, &cert, encoded, 1 << 20, async |connection| {
            let (mut stream, mut answer) = connection.open_bi().await.unwrap();
            stream.write_all(&asked).await.unwrap();
            stream.finish().unwrap();
            answer.read_to_end(10_000).await.unwrap().len()
        });
        assert!(answered.unwrap() > 1000);
    };
    // This client says that it reads SCONE packets, and its stack drops every datagram that has one. It is late, not
    // lost.
    for wrong in ["128", "-1", "0x28", "10mbit", ""] {
        report(&READS_SCONE, wrong);
    }
    report(&READS_SCONE, "127");
    report(&READS_SCONE, "0");
    report(&[], "0");
    // A transport parameter that is not empty is none (it is told of), and so the report is unasked.
    report(&[0x61, 0x9e, 1, 7], "0");
    for (result, count) in [("malformed", 5), ("no-advice", 1), ("taken", 1), ("unasked", 2)] {
        let name = format!("flowstart_scone_reports_total{{result=\"{result}\"}}");
        assert_eq!(server.metric(&name), count, "{result}");
    }
}

#[test]
fn a_rate_that_no_signal_has_is_refused() {
    let element = |options: &[&str]| {
        let mut element = flowstart();
        element.args(["scone-element", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"]).args(options);
        element.assert().code(2)
    };
    element(&["--rate", "50kbit"]).stderr(contains("--rate `50kbit`: allowed is"));
    element(&["--rate", "300gbit"]).stderr(contains("--rate"));
    element(&["--rate", "10mbit", "--refresh", "68s"]).stderr(contains("--refresh `68s`"));
    element(&[]).stderr(contains("--rate"));
}
