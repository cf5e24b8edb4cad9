//! What the path tells real QUIC through `flowstart router`: Quick-Start and SCONE, over IPv4 and IPv6.
//!
//! What needs root, `ip`, TUN devices or tshark is skipped without them, and says why; with CI=true and root it fails.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;

use namespaces::{Sides, are_missing, read_by_tshark, tshark_is_missing};
use serde_json::Value;

/// A server that is gone when this is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Starts one on the side of servers, at this address.
    fn start(sides: &Sides, address: &str, options: &[&str]) -> Self {
        let mut program = sides.program_of_servers();
        program.args(["serve", "--self-signed", "--listen", &format!("{address}:0"), "--json"]).args(options);
        let mut process = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no server: {line}"));
        Self { process, url: ready["listening"].as_str().unwrap().to_owned() }
    }

    /// A client's account of a transfer from it.
    fn got(&self, sides: &Sides, path: &str, options: &[&str]) -> Value {
        let mut program = sides.program_of_clients();
        let url = format!("{}{path}", self.url);
        let got = program.args(["get", "--insecure", "--json", &url]).args(options).output().unwrap();
        assert!(got.status.success(), "{}", String::from_utf8_lossy(&got.stderr));
        serde_json::from_slice(&got.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn a_server_launches_at_what_the_router_approves() {
    if are_missing() {
        return;
    }
    let link = ["--link", "rate=100mbit,rtt=40ms,buffer=1bdp,quick_start=target"];
    for address in ["10.9.0.1", "[fd09::1]"] {
        for is_hop in [false, true] {
            // A hop between interfaces, and a wire between devices.
            let mut sides = if is_hop {
                Sides::between_interfaces(&[&link[..], &["--decrement-ttl"]].concat())
            } else {
                Sides::new(&link)
            };
            let server = Server::start(&sides, address, &["--startup", "quick-start", "--quick-start"]);
            let told = server.got(&sides, "/generate/1MB", &["--quick-start"]);
            // 90 % of 100 Mbit/s are 90; 40 kbit/s * 2^11 = 81.92 Mbit/s is the next rate below.
            assert_eq!(told["quick_start"]["arrived_bps"], 81_920_000, "{address}: {told}");
            let (_, told) = sides.end();
            let of = |name: &str| told["quick_start"][name].as_u64().unwrap();
            assert_eq!(["requests", "reduced", "reports", "malformed"].map(of), [1, 1, 1, 0], "{address}: {told}");
        }
    }
}

#[test]
fn an_element_of_the_router_advises_a_rate() {
    if are_missing() {
        return;
    }
    for start in [Sides::new, Sides::between_interfaces] {
        let mut sides = start(&["--link", "rate=100mbit,rtt=20ms,buffer=1bdp,scone=10mbit"]);
        for address in ["10.9.0.1", "[fd09::1]"] {
            let server = Server::start(&sides, address, &["--startup", "slow-start", "--scone"]);
            // A datagram whose checksum is wrong does not arrive.
            let told = server.got(&sides, "/generate/1MB", &["--scone"]);
            assert_eq!(told["scone"]["advised_bps"], 10_000_000, "{address}: {told}");
        }
        let (_, told) = sides.end();
        assert!(told["scone"]["lowered"].as_u64() > Some(1) && told["scone"]["malformed"] == 0, "{told}");
    }
}

#[test]
fn tshark_reads_the_options_of_a_transfer_over_ipv6() {
    if are_missing() || tshark_is_missing() {
        return;
    }
    let sides = Sides::new(&["--link", "rate=100mbit,rtt=40ms,buffer=1bdp,quick_start=target"]);
    let server = Server::start(&sides, "[fd09::1]", &["--startup", "quick-start", "--quick-start"]);
    let (go_on, until) = channel();
    let capturing = sides.capture_of_clients(until);
    server.got(&sides, "/generate/100KB", &["--quick-start"]);
    drop(go_on);
    let fields = ["ipv6.hlim", "ipv6.opt.qs_func", "ipv6.opt.qs_rate", "ipv6.opt.length", "udp.checksum.status"];
    let lines = read_by_tshark(&capturing.join().unwrap(), "ipv6.opt.qs_func", &fields);
    // A request that was reduced to the code 11, and its report, each with one option and four bytes that fill it up.
    assert_eq!(lines, [["63", "0", "11", "6,4", "1"], ["63", "8", "11", "6,4", "1"]]);
}
