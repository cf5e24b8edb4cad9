//! What a client that moves in the middle of a transfer keeps of its limits.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use server::{Server, events, flowstart};

/// An address of the loopback interface in another prefix than 127.0.0.1.
const ELSEWHERE: &str = "127.0.1.1:0";

/// Passes datagrams between a client and the server. Once this many of the server's have come, the client's leave from
/// this other address. Where clients connect.
fn moving_path(server: &Server, after: usize, to: &str) -> String {
    let server: SocketAddr = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    let socket = |address: &str| Arc::new(UdpSocket::bind(address).unwrap());
    let near = socket("127.0.0.1:0");
    let (ports, client) = ([socket("127.0.0.1:0"), socket(to)], Arc::<OnceLock<SocketAddr>>::default());
    let (address, passed) = (near.local_addr().unwrap().to_string(), Arc::<AtomicUsize>::default());
    for port in ports.clone() {
        let (near, client, passed) = (near.clone(), client.clone(), passed.clone());
        std::thread::spawn(move || {
            let mut packet = [0; 2000];
            while let Ok(length) = port.recv(&mut packet) {
                passed.fetch_add(1, Ordering::Relaxed);
                drop(near.send_to(&packet[..length], client.get().unwrap()));
            }
        });
    }
    std::thread::spawn(move || {
        let mut packet = [0; 2000];
        while let Ok((length, from)) = near.recv_from(&mut packet) {
            client.get_or_init(|| from);
            let moved = passed.load(Ordering::Relaxed) >= after;
            drop(ports[usize::from(moved)].send_to(&packet[..length], server));
        }
    });
    address
}

/// As behind a NAT that forgets, and as from one network to another, where the server starts anew and slowly.
#[test]
fn a_client_that_moves_gets_no_second_launch() {
    assert_eq!(later_launches("127.0.0.1:0"), Vec::<Value>::new());
    let elsewhere = later_launches(ELSEWHERE);
    let [launch] = &elsewhere[..] else { panic!("{elsewhere:?}") };
    assert!(launch["cwnd_bytes"].as_u64() <= Some(10 * 1500), "{launch}");
    assert!(launch["sources"].as_array().is_none_or(Vec::is_empty), "{launch}");
}

/// The launches of a connection that has launched from a hint, and then moves.
fn later_launches(to: &str) -> Vec<Value> {
    let logs = tempfile::tempdir().unwrap();
    let launching = ["--startup", "blitzstart", "--hint-policy", "cap:rate=100mbit"];
    let server = Server::self_signed(&[&launching[..], &["--qlog", logs.path().to_str().unwrap()]].concat());
    let url = format!("https://{}/generate/5MB", moving_path(&server, 300, to));
    let got = flowstart().args(["get", "--insecure", "--json", "--hint", "rate=100mbit", &url]).assert().success();
    let told: Value = serde_json::from_slice(&got.get_output().stdout).unwrap();
    assert_eq!(told["bytes"], 5_000_000);
    server.wait_for("flowstart_launches_total{scheme=\"blitzstart\"} 1");
    let log = std::fs::read_dir(logs.path()).unwrap().next().unwrap().unwrap().path();
    let log = std::fs::read_to_string(log).unwrap();
    // The server validates the new address (RFC 9000, section 9.3), and the hint was good for one launch.
    for frame in ["path_challenge", "path_response"] {
        assert!(log.contains(&format!("\"frame_type\":\"{frame}\"")), "{frame} is not in the log");
    }
    let mut launches = events(logs.path(), "flowstart:launch");
    let first = launches.remove(0);
    assert_eq!(first["sources"][0]["verdict"], "used", "{first}");
    launches
}

/// A prefix may have one connection. Who moves away from it still holds that place, and takes none of the other prefix.
#[test]
fn a_client_that_moves_keeps_its_place_in_the_prefix_it_came_from() {
    let server = Server::self_signed(&["--max-per-prefix", "1", "--stall", "2s"]);
    let path = moving_path(&server, 300, ELSEWHERE);
    let mut moving = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
        .args(["get", "--insecure", &format!("https://{path}/generate/1000GB")])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.wait_for("flowstart_connections_active 1");
    // Long enough for 300 packets, and for the validation of the new address.
    std::thread::sleep(Duration::from_secs(2));
    let here = || server.get("/generate/1KB").output().unwrap().status.success();
    let elsewhere = || {
        let path = moving_path(&server, 0, ELSEWHERE);
        let url = format!("https://{path}/generate/1KB");
        flowstart().args(["get", "--insecure", &url]).output().unwrap().status.success()
    };
    assert!(!here(), "a second connection has the place of the first");
    assert!(elsewhere(), "who has moved holds a place of the prefix where it is now");
    assert!(moving.try_wait().unwrap().is_none(), "the transfer has ended");
    moving.kill().unwrap();
    moving.wait().unwrap();
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        here()
    }));
}
