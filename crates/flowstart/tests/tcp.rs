//! `flowstart tcp`: schemes in the kernel's TCP, between two network namespaces with a router of the lab.
//!
//! What needs root, BTF, `ip`, TUN devices or a build with the feature `tcp` is skipped without them, and says why.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;
#[path = "tcp/transfer.rs"]
mod transfer;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command as Program, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use namespaces::{Sides, are_missing};
use nix::sys::socket::setsockopt;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use transfer::{Capture, Packet, Server, get, listener_at, open_receive_window, upload};

/// Payload of a packet of 1500 bytes with time stamps.
const SEGMENT: usize = 1448;

/// A kernel has one congestion control of a name, so one test at a time.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if are_missing() {
        return None;
    }
    if !cfg!(feature = "tcp") {
        println!("skipped: this build has no feature `tcp`");
        return None;
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("skipped: this kernel has no BTF");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn tcp(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.arg("tcp").args(arguments);
    command
}

/// A loaded scheme, which is unloaded in the end.
struct Loaded(&'static str);

impl Loaded {
    fn new(scheme: &'static str, spec: &str, options: &[&str]) -> Self {
        tcp(&[&["load", spec], options].concat()).assert().success();
        Self(scheme)
    }

    fn status(&self) -> Value {
        let told = tcp(&["status", "--json"]).assert().success();
        let told: Value = serde_json::from_slice(&told.get_output().stdout).unwrap();
        told.as_array().unwrap().iter().find(|status| status["scheme"] == self.0).unwrap().clone()
    }
}

impl Loaded {
    fn wait_until_no_connection_is_open(&self) {
        let began = Instant::now();
        while self.status()["open"] != 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "{}", self.status());
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        drop(Program::new(assert_cmd::cargo::cargo_bin("flowstart")).args(["tcp", "unload", self.0]).output());
    }
}

/// Whoever follows the events.
struct Follower(Child);

impl Follower {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(options: &[&str]) -> Self {
        let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        program.args(["tcp", "status", "--follow"]).args(options);
        let child = program.stdout(Stdio::piped()).spawn().unwrap();
        // Until it is there.
        sleep(Duration::from_millis(500));
        Self(child)
    }

    fn end(mut self) -> Vec<Value> {
        sleep(Duration::from_millis(300));
        let id = self.0.id().to_string();
        assert!(Program::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let lines = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        assert!(self.0.wait().unwrap().success());
        lines
    }
}

/// What Prometheus gets.
fn metrics() -> String {
    let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    let mut child = program.args(["tcp", "status", "--metrics", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics at http://").unwrap().strip_suffix("/metrics").unwrap();
    let mut asking = std::net::TcpStream::connect(address).unwrap();
    asking.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).unwrap();
    assert!(Program::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    answer
}

/// The first flight of a transfer: packets of data that left before the first of them was acknowledged.
fn first_flight(packets: &[Packet]) -> Vec<Packet> {
    let data: Vec<_> = packets.iter().filter(|packet| packet.is_from_server && packet.payload > 0).collect();
    let begin = data[0];
    let acknowledged = packets.iter().find(|packet| {
        !packet.is_from_server && packet.at > begin.at && packet.acknowledged.wrapping_sub(begin.position) as i32 > 0
    });
    let end = acknowledged.unwrap().at;
    data.into_iter().take_while(|packet| packet.at < end).copied().collect()
}

fn payload(packets: &[Packet]) -> usize {
    packets.iter().map(|packet| packet.payload).sum()
}

/// Longest time in seconds without a packet of a paced flight, which has pairs of packets every 1.9 ms.
const LONGEST_GAP: f64 = 0.010;
/// How often a flight is looked at whose host stood still.
const ATTEMPTS: u64 = 3;

#[test]
fn jump_start_sends_all_that_waits_in_the_first_round_trip() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=200mbit,rtt=200ms,buffer=1000pkt"]);
    open_receive_window(&sides);
    let longest = |paced: &[Packet]| paced.windows(2).map(|two| two[1].at - two[0].at).fold(0.0, f64::max);
    let mut attempts = 0;
    let (took, flight) = loop {
        attempts += 1;
        let server = Server::new(&sides, "fs_jump_start", 300_000);
        let capture = Capture::new(&sides);
        let (took, got) = get(&sides, &server);
        let flight = first_flight(&capture.end());
        assert_eq!(got, 300_000);
        // A host that stands still for a while says nothing about pacing.
        if attempts == ATTEMPTS || flight.get(10..).is_some_and(|paced| longest(paced) < LONGEST_GAP) {
            break (took, flight);
        }
    };
    // A busy host may send the last of them late.
    assert!(payload(&flight) > 270_000, "{} packets", flight.len());
    assert!(flight.iter().all(|packet| packet.payload <= SEGMENT));
    // The kernel never paces the first ten packets. The others leave at 300,000 bytes in 200 ms.
    let unpaced: Vec<_> = flight.iter().take_while(|packet| packet.at - flight[0].at < 0.002).collect();
    assert!((10..=14).contains(&unpaced.len()), "{} packets at once", unpaced.len());
    let paced = &flight[10..];
    let span = paced[paced.len() - 1].at - paced[0].at;
    let rate = payload(&paced[1..]) as f64 / span;
    assert!((1_350_000.0..1_650_000.0).contains(&rate), "{rate} bytes/s");
    let longest = longest(paced);
    assert!(longest < LONGEST_GAP, "{longest} s without a packet");
    // Handshake and request take two round trips, the data a half and a whole one.
    assert!(took < 0.75, "{took} s");
    let status = scheme.status();
    assert_eq!(
        (&status["connections"], &status["launched"], &status["fell_back"]),
        (&attempts.into(), &attempts.into(), &0.into())
    );
    scheme.wait_until_no_connection_is_open();
}

#[test]
fn jump_start_is_earlier_than_cubic_on_an_idle_link() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=10mbit,rtt=200ms,buffer=500pkt"]);
    open_receive_window(&sides);
    let [cubic, jump_start] = ["cubic", "fs_jump_start"].map(|name| get(&sides, &Server::new(&sides, name, 300_000)).0);
    // Two round trips and the time of the data on the link, 0.25 s; slow start takes four more round trips.
    assert!((0.6..0.8).contains(&jump_start) && cubic > 1.2, "{jump_start} s and {cubic} s");
    scheme.wait_until_no_connection_is_open();
}

/// The packets of a transfer of 300 KB over 200 Mbit/s and 100 ms with a scheme, and what was counted.
fn packets_of(scheme: &Loaded, kernel_name: &str) -> Vec<Packet> {
    let sides = Sides::over_ipv4(&["--link", "rate=200mbit,rtt=100ms,buffer=1000pkt"]);
    open_receive_window(&sides);
    let server = Server::new(&sides, kernel_name, 300_000);
    let capture = Capture::new(&sides);
    assert_eq!(get(&sides, &server).1, 300_000);
    scheme.wait_until_no_connection_is_open();
    capture.end()
}

/// The rate of the first flight behind the ten packets that the kernel does not pace: in the mean, and in the median
/// over stretches of it. A stall of a busy host lowers the mean, and what the kernel makes up for afterwards raises the
/// median. A rate that is wrong has both wrong.
fn paced_rates(flight: &[Packet]) -> [f64; 2] {
    let rate = |stretch: &[Packet]| payload(&stretch[1..]) as f64 / (stretch[stretch.len() - 1].at - stretch[0].at);
    let paced = &flight[10..];
    let mut rates: Vec<_> = paced.windows(21).map(rate).collect();
    rates.sort_by(f64::total_cmp);
    [rate(paced), rates[rates.len() / 2]]
}

#[test]
fn blitzstart_launches_the_hint_of_the_longest_prefix() {
    let Some(_alone) = alone() else { return };
    let hints = ["--hint", "0.0.0.0/0=1mbit", "10.9.0.0/24=16mbit", "10.9.0.2/31=160mbit,1ms", "10.9.0.2=16mbit"];
    let scheme = Loaded::new("blitzstart", "blitzstart", &hints[..4]);
    // What comes later counts as well, and replaces what there is.
    tcp(&["hint", "blitzstart", "--hint", hints[4], "0.0.0.0/0=2mbit"])
        .assert()
        .success()
        .stdout("gave blitzstart 2 hints\n");
    // 16 Mbit/s x 100 ms = 200,000 bytes, paced at 120 %.
    let flight = first_flight(&packets_of(&scheme, "fs_blitzstart"));
    let rates = paced_rates(&flight);
    // A busy host measures a longer RTT.
    assert!((180_000..=230_000).contains(&payload(&flight)), "{} bytes", payload(&flight));
    assert!(rates.iter().any(|rate| (2_160_000.0..2_640_000.0).contains(rate)), "{rates:?} bytes/s");
    let status = scheme.status();
    assert_eq!((&status["launched"], &status["exits"]["launch"], &status["hints"]), (&1.into(), &1.into(), &4.into()));
    let told = tcp(&["hint", "blitzstart", "--json"]).assert().success();
    let told: Value = serde_json::from_slice(&told.get_output().stdout).unwrap();
    let known = |place: usize, key: &str| told["known"][place][key].clone();
    assert_eq!([known(0, "destinations"), known(2, "destinations")], ["0.0.0.0/0", "10.9.0.2/31"]);
    assert_eq!((known(2, "rate_bps"), known(2, "rtt_ms")), (160_000_000.into(), 1.0.into()));
    assert_eq!((&told["hints"], known(0, "expired")), (&4.into(), false.into()));
    assert_eq!(
        (known(0, "rate_bps"), known(0, "rtt_ms"), known(0, "lifetime_s")),
        (2_000_000.into(), Value::Null, Value::Null)
    );
}

#[test]
fn the_rate_of_a_launch_ends_with_it() {
    let Some(_alone) = alone() else { return };
    let spec = "blitzstart:pacing_rtt=launch";
    let scheme = Loaded::new("blitzstart", spec, &["--continuation", "reno", "--hint", "10.9.0.0/16=16mbit"]);
    let sides = Sides::over_ipv4(&["--link", "rate=200mbit,rtt=10ms,buffer=1000pkt"]);
    open_receive_window(&sides);
    let (took, got) = get(&sides, &Server::new(&sides, "fs_blitzstart", 10_000_000));
    assert_eq!((got, &scheme.status()["launched"]), (10_000_000, &1.into()));
    // At 16 Mbit/s it would take 5 s; the window grows by a packet each round trip meanwhile.
    assert!(took < 3.5, "{took} s");
    scheme.wait_until_no_connection_is_open();
}

#[test]
fn a_hint_that_holds_counts_behind_longer_ones_that_have_expired() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("blitzstart", "blitzstart", &["--hint", "10.9.0.0/16=16mbit"]);
    let brief = ["10.9.0.0/24=1mbit", "10.9.0.2/31=1mbit", "10.9.0.2=1mbit", "--hint-lifetime", "1s"];
    tcp(&[&["hint", "blitzstart", "--hint"], &brief[..]].concat()).assert().success();
    sleep(Duration::from_millis(1100));
    let flight = first_flight(&packets_of(&scheme, "fs_blitzstart"));
    assert!((180_000..=230_000).contains(&payload(&flight)), "{} bytes", payload(&flight));
    // They are shown until they make room.
    let told = tcp(&["hint", "blitzstart"]).assert().success();
    let told = String::from_utf8(told.get_output().stdout.clone()).unwrap();
    let lines: Vec<_> = told.lines().collect();
    let networks: Vec<_> = lines.iter().filter_map(|line| line.split_once('=')).map(|(network, _)| network).collect();
    assert_eq!(networks, ["10.9.0.0/16", "10.9.0.0/24", "10.9.0.2/31", "10.9.0.2/32"], "{told}");
    assert!(lines[0].starts_with("10.9.0.0/16=16mbit, ") && lines[0].ends_with(" s old"), "{told}");
    assert!(lines[1..].iter().all(|line| line.ends_with(" s old, expired")), "{told}");
    // Hints are withdrawn by their prefixes.
    let remove = ["hint", "blitzstart", "--remove", "10.9.0.0/16", "10.9.0.2", "10.1.0.0/16"];
    tcp(&remove).assert().success().stdout("took 2 hints from blitzstart\n");
    assert_eq!(scheme.status()["hints"], 2);
    assert_eq!(first_flight(&packets_of(&scheme, "fs_blitzstart")).len(), 10);
}

#[test]
fn a_path_that_carries_less_than_a_packet_gets_one() {
    let Some(_alone) = alone() else { return };
    let hints = ["--hint", "10.9.0.0/16=1kbit,1ms"];
    let scheme = Loaded::new("initial-start", "initial-start:window=hint", &hints);
    assert_eq!(first_flight(&packets_of(&scheme, "fs_initialstart")).len(), 1);
}

#[test]
fn an_answer_that_is_long_in_coming_is_launched_whole() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("more-start", "more-start:rate=16mbit", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=200mbit,rtt=100ms,buffer=1000pkt"]);
    open_receive_window(&sides);
    let bound = transfer::listener(&sides, "fs_more_start");
    // Longer than a timeout for retransmissions.
    let server = Server::answering_after(Duration::from_secs(1), bound, 300_000);
    let capture = Capture::new(&sides);
    assert_eq!(get(&sides, &server).1, 300_000);
    scheme.wait_until_no_connection_is_open();
    let flight = first_flight(&capture.end());
    assert!((180_000..=230_000).contains(&payload(&flight)), "{} bytes", payload(&flight));
}

#[test]
fn hints_count_for_ipv6_too() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("blitzstart", "blitzstart", &["--hint", "fd09::/64=16mbit"]);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("starts.sqlog");
    let follower = Follower::with(&["--qlog", file.to_str().unwrap()]);
    let sides = Sides::new(&["--link", "rate=200mbit,rtt=100ms,buffer=1000pkt"]);
    assert_eq!(get(&sides, &Server::at(&sides, "[fd09::1]:0", "fs_blitzstart", 300_000)).1, 300_000);
    scheme.wait_until_no_connection_is_open();
    let events = follower.end();
    assert_eq!((&events[0]["event"], events.len()), (&"launch".into(), 2), "{events:?}");
    let destination = events[0]["destination"].as_str().unwrap();
    assert!(destination.starts_with("[fd09::2]:"), "{events:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut records = text.split('\u{1e}').skip(2).map(|record| serde_json::from_str::<Value>(record).unwrap());
    let launch = records.find(|record| record["name"] == "flowstart:launch").unwrap();
    assert!(launch["group_id"].as_str().unwrap().ends_with(destination), "{launch}");
    // 16 Mbit/s for 100 ms.
    let window = launch["data"]["cwnd_bytes"].as_u64().unwrap();
    assert!((180_000..=230_000).contains(&window), "{launch}");
    assert!(records.any(|record| record["name"] == "flowstart:startup_exited"), "{text}");
}

#[test]
fn what_a_server_has_saved_becomes_hints() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("paths.redb");
    let store = store.to_str().unwrap();
    let mut record = Command::cargo_bin("flowstart").unwrap();
    record.args(["oracle", "record", "--store", store, "10.9.0.2", "--rate", "16mbit", "--rtt", "100ms"]);
    record.args(["--cwnd", "200KB"]).assert().success();
    tcp(&["load", "jump-start", "--path-store", store]).assert().code(2).stderr(contains("uses no hints"));
    tcp(&["load", "blitzstart", "--path-store", "none"]).assert().code(2).stderr(contains("there is no such file"));
    let scheme = Loaded::new("blitzstart", "blitzstart", &["--path-store", store, "--hint", "10.8.0.0/16=1mbit"]);
    assert_eq!(scheme.status()["hints"], 2);
    let flight = first_flight(&packets_of(&scheme, "fs_blitzstart"));
    assert!((180_000..=230_000).contains(&payload(&flight)), "{} bytes", payload(&flight));
}

/// Whoever learns, which is ended when it is dropped.
struct Learner(Child);

impl Learner {
    fn program(store: &Path) -> Program {
        let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        program.args(["tcp", "learn", "--json", "--path-store"]).arg(store);
        program
    }

    /// It is there when it says so.
    fn new(store: &Path) -> (Self, BufReader<ChildStdout>) {
        let mut child = Self::program(store).stdout(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        assert!(line.contains("learning"), "{line}");
        (Self(child), told)
    }

    fn end(&mut self) {
        assert!(Program::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A transfer whose client closes at once and whose server a second later.
fn closed_late(sides: &Sides, kernel_name: &str, size: usize) {
    let (listener, address) = listener_at(sides, "10.9.0.1:0", kernel_name);
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&vec![7; size]).unwrap();
        sleep(Duration::from_secs(1));
    });
    sides.of_clients(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.read_exact(&mut vec![0; size]).unwrap();
    });
    serving.join().unwrap();
}

#[test]
fn what_a_connection_has_measured_is_the_hint_of_the_next() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("careful-resume", "careful-resume", &[]);
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("paths.redb");
    let (mut learner, told) = Learner::new(&store);
    let refused = Learner::program(&store).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && why.contains("another command learns"), "{why}");
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=100ms,buffer=3bdp"]);
    open_receive_window(&sides);
    let learned = || {
        scheme.wait_until_no_connection_is_open();
        // Until it is asked what was measured.
        sleep(Duration::from_millis(1500));
        scheme.status()
    };
    let transfer = |size| get(&sides, &Server::new(&sides, "fs_careful", size)).0;
    let first = transfer(1_500_000);
    let status = learned();
    assert_eq!((&status["launched"], &status["hints"]), (&0.into(), &1.into()));
    // The latest rate of this one is that of its end, a packet in a round trip.
    closed_late(&sides, "fs_careful", 1_500_000);
    assert_eq!(learned()["launched"], 1);
    let third = transfer(1_500_000);
    assert_eq!((&learned()["launched"], &learned()["fell_back"]), (&2.into(), &1.into()));
    assert!(third < 0.9 * first, "{third} s, {first} s without what others have measured");
    // Too small to have seen the path.
    transfer(50_000);
    learned();
    learner.end();
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        assert_eq!((&line["scheme"], &line["prefix"]), (&"careful-resume".into(), &"10.9.0.0/24".into()));
        let [rate, rtt] = ["rate_mbit", "min_rtt_ms"].map(|name| line[name].as_f64().unwrap());
        // Of 1500 bytes 1448 are payload. A host that is late may let some of them come faster.
        assert!((17.0..24.0).contains(&rate) && (100.0..130.0).contains(&rtt), "{line}");
    }
    // What is saved survives the scheme.
    drop(scheme);
    let again = Loaded::new("blitzstart", "blitzstart", &["--path-store", store.to_str().unwrap()]);
    assert_eq!(again.status()["hints"], 1);
    tcp(&["unload", "blitzstart"]).assert().success();
    tcp(&["learn", "--path-store", store.to_str().unwrap()]).assert().code(2).stderr(contains("nothing is loaded"));
}

#[test]
fn what_is_loaded_while_somebody_learns_has_the_hints() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("paths.redb");
    let mut oracle = Command::cargo_bin("flowstart").unwrap();
    oracle.args(["oracle", "record", "--store"]).arg(&store).arg("192.0.2.7");
    oracle.args(["--rate", "20mbit", "--rtt", "50ms", "--cwnd", "100KB"]).assert().success();
    let first = Loaded::new("careful-resume", "careful-resume", &[]);
    let (mut learner, _told) = Learner::new(&store);
    assert_eq!(first.status()["hints"], 1);
    let later = Loaded::new("blitzstart", "blitzstart", &[]);
    sleep(Duration::from_millis(2500));
    assert_eq!(later.status()["hints"], 1);
    drop((first, later));
    // It waits for others.
    sleep(Duration::from_millis(1500));
    learner.end();
}

#[test]
fn what_needs_a_hint_and_has_none_is_cubic_and_is_counted() {
    let Some(_alone) = alone() else { return };
    for (scheme, kernel_name) in [("blitzstart", "fs_blitzstart"), ("more-start", "fs_more_start")] {
        // A hint for another network, and one that expires.
        let hints = ["--hint", "10.10.0.0/16=16mbit", "2001:db8::/32=16mbit", "--hint-lifetime", "1s"];
        let loaded = Loaded::new(scheme, scheme, &hints);
        let flight = first_flight(&packets_of(&loaded, kernel_name));
        assert_eq!(flight.len(), 10, "{scheme}");
        let status = loaded.status();
        assert_eq!((&status["launched"], &status["fell_back"]), (&0.into(), &1.into()), "{scheme}");
        let metrics = metrics();
        let told = format!("flowstart_launches_left_out_total{{scheme=\"{scheme}\"}} 1");
        assert!(metrics.contains(&told) && metrics.ends_with("# EOF\n"), "{metrics}");
    }
    let loaded = Loaded::new("blitzstart", "blitzstart", &["--hint", "10.9.0.0/16=16mbit", "--hint-lifetime", "1s"]);
    sleep(Duration::from_millis(1100));
    assert_eq!(first_flight(&packets_of(&loaded, "fs_blitzstart")).len(), 10);
}

#[test]
fn initial_start_sends_its_window_at_once() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("initial-start", "initial-start:iw=80", &[]);
    let flight = first_flight(&packets_of(&scheme, "fs_initialstart"));
    assert_eq!(flight.len(), 80);
    let span = flight[79].at - flight[0].at;
    assert!(span < 0.02, "{span} s");
}

#[test]
fn more_start_sends_at_the_rate_that_it_is_told() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("more-start", "more-start:rate=16mbit", &[]);
    let flight = first_flight(&packets_of(&scheme, "fs_more_start"));
    let rates = paced_rates(&flight);
    assert!((180_000..=230_000).contains(&payload(&flight)), "{} bytes", payload(&flight));
    assert!(rates.iter().any(|rate| (1_800_000.0..2_200_000.0).contains(rate)), "{rates:?} bytes/s");
}

#[test]
fn careful_resume_jumps_when_the_first_round_trip_has_confirmed_the_path() {
    let Some(_alone) = alone() else { return };
    // 40 Mbit/s x 100 ms = 500,000 bytes, of which it takes half.
    let scheme = Loaded::new("careful-resume", "careful-resume", &["--hint", "10.9.0.0/16=40mbit,100ms"]);
    let packets = packets_of(&scheme, "fs_careful");
    assert_eq!(first_flight(&packets).len(), 10);
    let data: Vec<_> = packets.iter().filter(|packet| packet.is_from_server && packet.payload > 0).collect();
    let in_round_trip = |number: f64| {
        let begins = data[0].at + 0.1 * number;
        data.iter().filter(|packet| (begins..begins + 0.1).contains(&packet.at)).map(|packet| packet.payload).sum()
    };
    let jump: usize = in_round_trip(1.0);
    assert!((210_000..=290_000).contains(&jump), "{jump} bytes");
    assert_eq!(scheme.status()["launched"], 1);
}

#[test]
fn suss_quadruples_with_a_paced_part_while_the_path_looks_empty() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("suss", "suss", &[]);
    let packets = packets_of(&scheme, "fs_suss");
    assert_eq!(first_flight(&packets).len(), 10);
    let data: Vec<_> = packets.iter().filter(|packet| packet.is_from_server && packet.payload > 0).collect();
    let second = data.iter().map(|packet| packet.at - data[0].at).filter(|at| (0.09..0.2).contains(at));
    let second: Vec<_> = second.collect();
    // 20 blue packets and 20 red ones, where slow start has 20. A busy host may be late with the last of them.
    assert!((30..=42).contains(&second.len()), "{second:?}");
    // The red part leaves at 40 packets per 100 ms, behind a guard interval of about 25 ms.
    let red = second.iter().filter(|at| **at > second[0] + 0.015).count();
    assert!((10..=22).contains(&red), "{second:?}");
    assert_eq!(scheme.status()["launched"], 1);
}

/// Quick-Start for the servers of one side, which ask for 20.48 Mbit/s. Clients of the same kernel answer.
fn quick_start(sides: &Sides) -> Loaded {
    quick_start_of(sides, &[])
}

/// Quick-Start for hosts of the servers' side.
fn quick_start_of(sides: &Sides, options: &[&str]) -> Loaded {
    let mut load = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    load.args(["tcp", "load", "quick-start:rate=20mbit", "--interface", &sides.devices()[0]]).args(options);
    let told = sides.of_servers(move || load.output().unwrap());
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    Loaded("quick-start")
}

/// The first flight of a transfer of 300 KB with Quick-Start, and whether it was launched. `change` comes before.
fn first_flight_behind(router: &[&str], change: impl FnOnce()) -> (Vec<Packet>, bool) {
    let sides = Sides::over_ipv4(router);
    let scheme = quick_start(&sides);
    change();
    open_receive_window(&sides);
    let server = Server::new(&sides, "fs_quick_start", 300_000);
    let capture = Capture::new(&sides);
    assert_eq!(get(&sides, &server).1, 300_000);
    scheme.wait_until_no_connection_is_open();
    let status = scheme.status();
    let count = |name: &str| status[name].as_u64().unwrap();
    assert_eq!((count("connections"), count("launched") + count("fell_back")), (1, 1), "{status}");
    (first_flight(&capture.end()), count("launched") == 1)
}

#[test]
fn what_a_router_approves_of_a_request_is_launched() {
    let Some(_alone) = alone() else { return };
    // What is asked for carries 249,200 bytes in 100 ms. A router at 20 Mbit/s leaves half of it, 10.24 Mbit/s.
    for (link_mbit, bytes) in [(200, 249_200.0), (20, 124_600.0)] {
        let link = format!("rate={link_mbit}mbit,rtt=100ms,buffer=1000pkt,quick_start=target");
        let (flight, is_launched) = first_flight_behind(&["--link", &link], || {});
        let (sent, rates) = (payload(&flight) as f64 / bytes, paced_rates(&flight).map(|rate| rate / (bytes * 10.0)));
        assert!(is_launched);
        // A busy host measures a longer RTT.
        assert!(
            (0.9..1.25).contains(&sent) && rates.iter().any(|rate| (0.85..1.15).contains(rate)),
            "{link}: {sent} and {rates:?} of what is approved"
        );
    }
}

#[test]
fn tshark_reads_the_request_of_a_handshake_and_the_answer() {
    if namespaces::tshark_is_missing() {
        return;
    }
    let Some(_alone) = alone() else { return };
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=100ms,buffer=1000pkt,quick_start=target"]);
    let scheme = quick_start(&sides);
    let server = Server::new(&sides, "fs_quick_start", 300_000);
    let (go_on, until) = std::sync::mpsc::channel();
    let capturing = sides.capture_of_clients(until);
    assert_eq!(get(&sides, &server).1, 300_000);
    scheme.wait_until_no_connection_is_open();
    drop(go_on);
    let fields = ["ip.opt.qs_func", "ip.opt.qs_rate", "ip.ttl", "ip.opt.qs_ttl", "tcp.options.qs.rate"];
    let more = ["tcp.options.qs.ttl_diff", "tcp.flags.syn", "ip.checksum.status", "tcp.checksum.status"];
    let filter = "ip.opt.qs_func or tcp.options.qs";
    let lines = namespaces::read_by_tshark(&capturing.join().unwrap(), filter, &[&fields[..], &more].concat());
    let [request, answer] = &lines[..] else { panic!("{lines:?}") };
    // The SYN/ACK asks, and a router of 20 Mbit/s lets pass 40 kbit/s * 2^8. Its own TTL and that of the option start
    // anywhere, and each router takes one of both.
    let difference = request[2].parse::<u8>().unwrap().wrapping_sub(request[3].parse().unwrap()).to_string();
    let [ttl, option_ttl] = [&request[2], &request[3]].map(String::as_str);
    assert_eq!(*request, ["0", "8", ttl, option_ttl, "", "", "1", "1", "1"], "{lines:?}");
    assert_eq!(*answer, ["", "", "64", "", "8", &difference, "0", "1", "1"], "{lines:?}");
}

#[test]
fn a_client_asks_with_its_syn_and_a_server_answers_if_it_listened_after_the_load() {
    let Some(_alone) = alone() else { return };
    for (asking, is_late, is_launched) in
        [("clients", true, true), ("both", true, true), ("servers", true, false), ("clients", false, false)]
    {
        let sides = Sides::over_ipv4(&["--link", "rate=200mbit,rtt=100ms,buffer=1000pkt,quick_start=target"]);
        open_receive_window(&sides);
        // The host behind the link listens, on a socket for both versions of IP.
        let listen = || sides.of_clients(|| std::net::TcpListener::bind("[::]:0").unwrap());
        let before = (!is_late).then(listen);
        let scheme = quick_start_of(&sides, &["--asking", asking]);
        let sink = before.unwrap_or_else(listen);
        let capture = Capture::new(&sides);
        let got = upload(&sides, sink, "fs_quick_start", 300_000);
        assert_eq!(got, 300_000);
        scheme.wait_until_no_connection_is_open();
        let flight = first_flight(&capture.end());
        assert_eq!(scheme.status()["launched"], u64::from(is_launched), "{asking}, {is_late}");
        let sent = payload(&flight) as f64;
        // What is approved carries 249,200 bytes in 100 ms, but the window of a SYN/ACK is not scaled (RFC 7323,
        // section 2.2), so at most 65,535 of them leave before the server's next acknowledgement.
        let expected = if is_launched { 60_000.0..65_536.0 } else { 10_000.0..15_000.0 };
        assert!(expected.contains(&sent), "{asking}, {is_late}: {sent} bytes");
    }
}

#[test]
fn without_an_approval_by_all_routers_it_is_slow_start() {
    let Some(_alone) = alone() else { return };
    // The last router has no part in it, but is a hop.
    for (router, hop) in [
        (",quick_start=ignore", None),
        (",quick_start=zero", None),
        (",quick_start=delete", None),
        ("", Some("--decrement-ttl")),
    ] {
        let link = format!("rate=200mbit,rtt=100ms,buffer=1000pkt{router}");
        let options: Vec<_> = ["--link", &link].into_iter().chain(hop).collect();
        let (flight, is_launched) = first_flight_behind(&options, || {});
        assert_eq!((flight.len(), is_launched), (10, false), "{options:?}");
    }
}

#[test]
fn a_host_without_the_program_ignores_a_request() {
    let Some(_alone) = alone() else { return };
    let link = ["--link", "rate=200mbit,rtt=100ms,buffer=1000pkt,quick_start=target"];
    let without = || {
        std::fs::remove_file(Folder::of("quick-start/quick_start_hear")).unwrap();
        // The kernel detaches the program a moment later.
        sleep(Duration::from_millis(200));
    };
    let (flight, is_launched) = first_flight_behind(&link, without);
    assert_eq!((flight.len(), is_launched), (10, false));
}

#[test]
fn the_programs_that_ask_and_answer_are_unloaded_with_their_scheme() {
    let Some(_alone) = alone() else { return };
    let before = traces();
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=100pkt,quick_start=target"]);
    let scheme = quick_start(&sides);
    let files = ["quick_start_ask_0", "quick_start_hear", "quick_start_answer"];
    assert!(files.iter().all(|file| Path::new(&Folder::of(&format!("quick-start/{file}"))).exists()));
    let server = Server::new(&sides, "fs_quick_start", 100_000);
    assert_eq!(get(&sides, &server).1, 100_000);
    drop(server);
    scheme.wait_until_no_connection_is_open();
    tcp(&["unload", scheme.0]).assert().success().stdout("unloaded quick-start\n");
    drop(sides);
    nothing_new_since(&before);
}

/// A transfer of 3 MB over a link with a deep buffer: the events of its startup.
fn events_in_a_deep_buffer(scheme: &'static str, kernel_name: &str) -> Vec<Value> {
    let loaded = Loaded::new(scheme, scheme, &[]);
    let follower = Follower::new();
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=60ms,buffer=2000pkt"]);
    open_receive_window(&sides);
    assert_eq!(get(&sides, &Server::new(&sides, kernel_name, 3_000_000)).1, 3_000_000);
    loaded.wait_until_no_connection_is_open();
    follower.end()
}

#[test]
fn schemes_that_watch_the_path_leave_slow_start_before_losses() {
    let Some(_alone) = alone() else { return };
    for (scheme, kernel_name, reasons) in [
        ("hystart-plus-plus", "fs_hystartpp", &["delay"][..]),
        ("search", "fs_search", &["chokepoint"]),
        ("suss", "fs_suss", &["ack-train", "delay"]),
    ] {
        // A host that holds packets up looks like a queue.
        let mut tries = (0..5).map(|_| {
            let events = events_in_a_deep_buffer(scheme, kernel_name);
            let [launch, exit] = &events[..] else { panic!("{scheme}: {events:?}") };
            assert_eq!(launch["cwnd_packets"], 10, "{scheme}");
            println!("{scheme}: {exit}");
            // The BDP is 104 packets.
            let is_in_time = exit["cwnd_packets"].as_u64().is_some_and(|cwnd| (80..1500).contains(&cwnd));
            is_in_time && reasons.iter().any(|reason| exit["reason"] == *reason)
        });
        assert!(tries.any(|is_met| is_met), "{scheme}");
    }
}

/// How often packets were sent again, of those before `end`.
fn sent_again(packets: &[Packet], begin: u32, end: u32) -> usize {
    let mut highest = begin;
    let mut again = 0;
    for packet in packets.iter().filter(|packet| packet.is_from_server && packet.payload > 0) {
        let ends = packet.position.wrapping_add(packet.payload as u32);
        if (ends.wrapping_sub(highest) as i32) > 0 {
            highest = ends;
        } else if (packet.position.wrapping_sub(end) as i32) < 0 {
            again += 1;
        }
    }
    again
}

#[test]
fn a_launch_that_loses_is_left_with_half_of_what_it_delivered() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("jump-start", "jump-start:threshold=600KB", &[]);
    let follower = Follower::new();
    let sides = Sides::over_ipv4(&["--link", "rate=10mbit,rtt=100ms,buffer=20pkt"]);
    open_receive_window(&sides);
    let server = Server::new(&sides, "fs_jump_start", 1_500_000);
    let capture = Capture::new(&sides);
    assert_eq!(get(&sides, &server).1, 1_500_000);
    drop(server);
    scheme.wait_until_no_connection_is_open();
    let packets = capture.end();
    let events = follower.end();
    let [launch, exit] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&launch["event"], &exit["reason"]), (&"launch".into(), &"loss".into()), "{events:?}");
    let begin = packets.iter().find(|packet| packet.is_from_server && packet.payload > 0).unwrap().position;
    let launched = 600_000 / SEGMENT;
    let again = sent_again(&packets, begin, begin.wrapping_add(600_000));
    let expected = (launched.saturating_sub(again) / 2).max(1) as f64;
    let cwnd = exit["cwnd_packets"].as_f64().unwrap();
    // The kernel does not say which data was sent again, so what lies behind the launch counts before its end.
    assert!(again > 100, "{again} packets were sent again");
    assert!((expected - 30.0..=expected + 5.0).contains(&cwnd), "{cwnd} packets instead of {expected}");
}

#[test]
fn a_launch_that_overflows_the_queue_retreats_and_both_are_told() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let follower = Follower::new();
    let sides = Sides::over_ipv4(&["--link", "rate=4mbit,rtt=100ms,buffer=20pkt"]);
    open_receive_window(&sides);
    let server = Server::new(&sides, "fs_jump_start", 300_000);
    assert_eq!(get(&sides, &server).1, 300_000);
    drop(server);
    let events = follower.end();
    let [launch, exit] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&launch["event"], &launch["scheme"]), (&"launch".into(), &"jump-start".into()));
    assert!(launch["destination"].as_str().unwrap().starts_with("10.9.0.2:"), "{launch}");
    let of = |event: &Value, name: &str| event[name].as_f64().unwrap();
    assert!((95.0..130.0).contains(&of(launch, "rtt_ms")), "{launch}");
    assert_eq!((&exit["event"], &exit["reason"]), (&"exit".into(), &"loss".into()));
    // (D - R) / 2, and D were at most 208 packets.
    assert!((1.0..104.0).contains(&of(exit, "cwnd_packets")), "{exit}");
    assert_eq!(exit["cwnd_packets"], exit["ssthresh_packets"], "{exit}");
    assert_eq!(scheme.status()["exits"]["loss"], 1);
    scheme.wait_until_no_connection_is_open();
}

/// The folder that holds what is loaded, made as a test wants it; what the test leaves of it is removed.
struct Folder;

impl Folder {
    const PATH: &'static str = "/sys/fs/bpf/flowstart";

    /// Mounts the filesystem by a load, if it is not there, and keeps it.
    fn new() -> Self {
        drop(Loaded::new("search", "search", &[]));
        if !std::fs::read_to_string("/proc/mounts").unwrap().contains(" /sys/fs/bpf bpf ") {
            let mount = ["-t", "bpf", "-o", "mode=1777", "bpf", "/sys/fs/bpf"];
            assert!(Program::new("mount").args(mount).status().unwrap().success());
            std::fs::create_dir(Self::PATH).unwrap();
            std::fs::create_dir(format!("{}/mounted_for_it", Self::PATH)).unwrap();
        } else if !Path::new(Self::PATH).exists() {
            std::fs::create_dir(Self::PATH).unwrap();
        }
        std::fs::set_permissions(Self::PATH, PermissionsExt::from_mode(0o700)).unwrap();
        Self
    }

    fn of(name: &str) -> String {
        format!("{}/{name}", Self::PATH)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for name in ["jump-start/link", "jump-start"].map(Self::of) {
            drop(std::fs::remove_file(&name));
            drop(std::fs::remove_dir(&name));
        }
        drop(chown(Self::PATH, Some(0), Some(0)));
        // An unload takes the rest away.
        drop(Loaded::new("search", "search", &[]));
    }
}

#[test]
fn what_others_can_change_is_neither_used_nor_removed() {
    let Some(_alone) = alone() else { return };
    let before = traces();
    let folder = Folder::new();
    let victim = tempfile::TempDir::new().unwrap();
    let names = ["hints", "counts", "link", "precious"].map(|name| victim.path().join(name));
    for name in &names {
        std::fs::write(name, "").unwrap();
    }
    let scheme = Folder::of("jump-start");
    let refused = || {
        for arguments in [&["load", "jump-start"][..], &["unload", "jump-start"]] {
            tcp(arguments).assert().code(1).stderr(contains("no folder that only root can change"));
        }
        // Other schemes are no worse off.
        tcp(&["status"]).assert().success().stderr(contains("no folder that only root can change"));
        assert!(names.iter().all(|name| name.exists()));
    };
    std::os::unix::fs::symlink(victim.path(), &scheme).unwrap();
    refused();
    std::fs::remove_file(&scheme).unwrap();
    std::fs::create_dir(&scheme).unwrap();
    chown(&scheme, Some(65_534), Some(65_534)).unwrap();
    refused();
    chown(&scheme, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&scheme, PermissionsExt::from_mode(0o777)).unwrap();
    refused();
    std::fs::remove_dir(&scheme).unwrap();
    chown(Folder::PATH, Some(65_534), Some(65_534)).unwrap();
    refused();
    drop(folder);
    nothing_new_since(&before);
}

#[test]
fn what_is_no_pin_is_told_and_hides_no_other_scheme() {
    let Some(_alone) = alone() else { return };
    let _folder = Folder::new();
    std::fs::create_dir(Folder::of("jump-start")).unwrap();
    std::fs::set_permissions(Folder::of("jump-start"), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::create_dir(Folder::of("jump-start/link")).unwrap();
    let scheme = Loaded::new("search", "search", &[]);
    assert_eq!(scheme.status()["connections"], 0);
    tcp(&["status"]).assert().success().stdout(contains("search (fs_search)")).stderr(contains("jump-start/link"));
    tcp(&["load", "jump-start"]).assert().code(1).stderr(contains("jump-start/link"));
    assert!(Path::new(&Folder::of("jump-start/link")).exists());
}

#[test]
fn a_comparison_gives_a_scheme_what_is_known_of_the_link() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("blitzstart", "blitzstart", &[]);
    // (launches, starts that were left to the kernel) with a hint and without.
    for (more, expected, told) in
        [(&[][..], (2, 0), ""), (&["--no-knowledge"], (2, 2), "left the start to the kernel's CUBIC")]
    {
        let mut compare = Command::cargo_bin("flowstart").unwrap();
        compare.args(["compare", "--world", "sockets", "--transport", "model-tcp:receive_window=open"]);
        compare.args(["--link", "rate=10mbit,rtt=40ms,buffer=1bdp", "--size", "70KB", "--scheme", "blitzstart"]);
        let assert = compare.args(["--reps", "2", "--json"]).args(more).assert().success();
        assert.stderr(contains(told));
        let status = scheme.status();
        assert_eq!(
            (&status["launched"], &status["fell_back"], &status["hints"]),
            (&expected.0.into(), &expected.1.into(), &0.into())
        );
    }
}

#[test]
fn a_comparison_between_sockets_takes_loaded_schemes_and_says_what_they_are() {
    let Some(_alone) = alone() else { return };
    let compared = || {
        let folder = tempfile::TempDir::new().unwrap();
        let out = folder.path().join("results");
        let mut compare = Command::cargo_bin("flowstart").unwrap();
        compare.args([
            "compare",
            "--world",
            "sockets",
            "--link",
            "rate=10mbit,rtt=40ms,buffer=1bdp",
            "--size",
            "300KB",
        ]);
        compare.args(["--scheme", "stack", "jump-start", "--transport", "model-tcp:receive_window=open"]);
        compare.args(["--reps", "1", "--json", "--out", out.to_str().unwrap()]);
        let told = compare.assert().success().get_output().stdout.clone();
        let summary: Value = serde_json::from_slice(&told).unwrap();
        // Six times what path and queue hold, or twice with the threshold.
        assert_eq!(summary["cells"][1]["exit_reasons"], serde_json::json!({ "loss": 1 }));
        let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
        let begins = manifest.find("TCP scheme jump-start").unwrap();
        manifest[begins..].lines().next().unwrap().to_owned()
    };
    let loaded = Loaded::new("jump-start", "jump-start", &[]);
    let first = compared();
    assert!(first.contains("programs ") && first.contains("parameters "), "{first}");
    drop(loaded);
    let _loaded = Loaded::new("jump-start", "jump-start:threshold=200KB", &[]);
    assert_ne!(compared(), first);
}

#[test]
fn of_loads_at_once_one_succeeds() {
    let Some(_alone) = alone() else { return };
    let before = traces();
    for _ in 0..3 {
        let mut load = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        load.args(["tcp", "load", "jump-start"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let loads: Vec<_> = (0..4).map(|_| load.spawn().unwrap()).collect();
        let told: Vec<_> = loads.into_iter().map(|load| load.wait_with_output().unwrap()).collect();
        assert_eq!(told.iter().filter(|told| told.status.success()).count(), 1, "{told:?}");
        let refused = told.iter().filter(|told| !told.status.success());
        let refused: Vec<_> = refused.map(|told| String::from_utf8_lossy(&told.stderr)).collect();
        assert!(refused.iter().all(|told| told.contains("jump-start is loaded already")), "{refused:?}");
        tcp(&["status"]).assert().success().stdout(contains("jump-start (fs_jump_start)"));
        tcp(&["unload", "jump-start"]).assert().success();
    }
    nothing_new_since(&before);
}

#[test]
fn what_a_killed_load_leaves_is_told_and_removed() {
    let Some(_alone) = alone() else { return };
    let before = traces();
    let leave = || {
        std::mem::forget(Loaded::new("jump-start", "jump-start", &[]));
        // A load is killed before it makes this one.
        std::fs::remove_file(Folder::of("jump-start/link")).unwrap();
        let began = Instant::now();
        let names = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        while std::fs::read_to_string(names).unwrap().contains("fs_jump_start") {
            assert!(began.elapsed() < Duration::from_secs(5));
            sleep(Duration::from_millis(20));
        }
        tcp(&["status"]).assert().success().stdout("nothing is loaded\n").stderr(contains("has left files"));
    };
    leave();
    tcp(&["unload", "jump-start"]).assert().success().stdout(contains("was not loaded; removed"));
    leave();
    let _scheme = Loaded::new("jump-start", "jump-start", &[]);
    tcp(&["unload", "jump-start"]).assert().success();
    nothing_new_since(&before);
}

#[test]
fn events_have_one_follower() {
    let Some(_alone) = alone() else { return };
    let _scheme = Loaded::new("jump-start", "jump-start", &[]);
    let follower = Follower::new();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("starts.sqlog");
    let refused = tcp(&["status", "--follow", "--qlog", file.to_str().unwrap()]).assert().code(2);
    refused.stderr(contains("are followed already"));
    assert!(!file.exists());
    tcp(&["status", "--qlog", file.to_str().unwrap()]).assert().code(2);
    assert!(follower.end().is_empty());
    assert!(Follower::new().end().is_empty());
}

/// A connection whose client is silent from now on, although it gets what is sent.
fn silent_client(sides: &Sides, kernel_name: &str) -> (std::net::TcpStream, std::net::TcpStream) {
    let (listener, address) = transfer::listener(sides, kernel_name);
    let client = sides.of_clients(move || std::net::TcpStream::connect(address).unwrap());
    let server = listener.accept().unwrap().0;
    silence(sides, "add");
    (server, client)
}

/// Lets clients send nothing (`add`), or send again (`del`).
fn silence(sides: &Sides, action: &str) {
    let route = ["-n", &sides.devices()[1], "route", action, "blackhole", "10.9.0.1/32"];
    assert!(Program::new("ip").args(route).status().unwrap().success());
}

#[test]
fn a_timeout_is_told_as_one() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("hystart-plus-plus", "hystart-plus-plus", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=100pkt"]);
    let (mut server, client) = silent_client(&sides, "fs_hystartpp");
    server.write_all(&[7; 20_000]).unwrap();
    sleep(Duration::from_millis(1500));
    let status = scheme.status();
    assert_eq!((&status["launched"], &status["exits"]), (&1.into(), &serde_json::json!({ "timeout": 1 })));
    silence(&sides, "del");
    drop((server, client));
    scheme.wait_until_no_connection_is_open();
}

#[test]
fn nothing_is_launched_after_a_timeout() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=1000pkt"]);
    open_receive_window(&sides);
    let (mut server, mut client) = silent_client(&sides, "fs_jump_start");
    // Calls for sockets that are not paced end early after a timeout.
    setsockopt(&server, transfer::MaxPacingRate, &1_000_000_000).unwrap();
    // Too little for a launch.
    server.write_all(&[7; 1000]).unwrap();
    sleep(Duration::from_millis(1000));
    let status = scheme.status();
    assert_eq!((&status["launched"], &status["fell_back"]), (&0.into(), &1.into()));
    let writing = std::thread::spawn(move || server.write_all(&[7; 300_000]).unwrap());
    sleep(Duration::from_millis(100));
    silence(&sides, "del");
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    writing.join().unwrap();
    assert_eq!((got.len(), &scheme.status()["launched"]), (301_000, &0.into()));
    drop(client);
    scheme.wait_until_no_connection_is_open();
}

#[test]
fn hints_that_have_expired_make_room_and_too_many_are_told() {
    let Some(_alone) = alone() else { return };
    let _scheme = Loaded::new("blitzstart", "blitzstart", &[]);
    let give = |network: u8, lifetime: &[&str]| {
        for part in 0..16 {
            let hints = (0..4096_u32).map(|number| {
                let number = part * 4096 + number;
                format!("10.{network}.{}.{}=1mbit", number >> 8, number & 0xff)
            });
            let hints: Vec<_> = hints.collect();
            let hints: Vec<_> = hints.iter().map(String::as_str).collect();
            tcp(&[&["hint", "blitzstart", "--hint"], &hints[..], lifetime].concat()).assert().success();
        }
    };
    give(1, &["--hint-lifetime", "60s"]);
    let told = tcp(&["hint", "blitzstart", "--hint", "10.1.0.0=1mbit", "10.2.0.0=1mbit"]).assert().code(2);
    told.stderr(contains("no room for so many hints: gave 1 of 2"));
    give(1, &["--hint-lifetime", "1s"]);
    sleep(Duration::from_millis(1100));
    give(2, &[]);
}

/// What could be left behind, line by line.
fn traces() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |of: &str, text: &str| found.extend(text.lines().map(|line| format!("{of}: {line}")));
    for name in ["available_congestion_control", "allowed_congestion_control", "congestion_control"] {
        add(name, &std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{name}")).unwrap());
    }
    add("mounts", &std::fs::read_to_string("/proc/mounts").unwrap());
    for command in ["ip -o link", "ip netns", "bpftool struct_ops", "bpftool map", "bpftool prog", "bpftool link"] {
        let mut words = command.split(' ');
        let told = Program::new(words.next().unwrap()).args(words).output();
        // Without bpftool there is less to compare.
        add(command, &told.map(|told| String::from_utf8(told.stdout).unwrap()).unwrap_or_default());
    }
    found
}

/// Fails if there is more than `before`. The kernel takes programs away some time after their last use.
fn nothing_new_since(before: &BTreeSet<String>) {
    let began = Instant::now();
    let mut left: Vec<_> = traces().difference(before).cloned().collect();
    while !left.is_empty() && began.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(50));
        left = traces().difference(before).cloned().collect();
    }
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn nothing_is_left_behind() {
    let Some(_alone) = alone() else { return };
    let before = traces();
    let scheme = Loaded::new("jump-start", "jump-start:threshold=64KB", &["--continuation", "reno"]);
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=100pkt"]);
    let server = Server::new(&sides, "fs_jump_start", 100_000);
    assert_eq!(get(&sides, &server).1, 100_000);
    drop(server);
    scheme.wait_until_no_connection_is_open();
    drop(sides);
    tcp(&["unload", scheme.0]).assert().success().stdout("unloaded jump-start\n");
    nothing_new_since(&before);
}

#[test]
fn a_connection_goes_on_after_its_scheme_is_unloaded() {
    let Some(_alone) = alone() else { return };
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=100pkt"]);
    let (listener, address) = transfer::listener(&sides, "fs_jump_start");
    let mut client = sides.of_clients(move || std::net::TcpStream::connect(address).unwrap());
    let mut stream = listener.accept().unwrap().0;
    drop(listener);
    assert_eq!((&scheme.status()["connections"], &scheme.status()["open"]), (&1.into(), &1.into()));
    tcp(&["unload", "jump-start"]).assert().success().stdout(contains("1 connection goes on with it until it ends"));
    tcp(&["status"]).assert().success().stdout("nothing is loaded\n");
    let writing = std::thread::spawn(move || stream.write_all(&[7; 200_000]).unwrap());
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    writing.join().unwrap();
    assert_eq!(got.len(), 200_000);
    drop(client);
    // Its last packets need the link.
    sleep(Duration::from_millis(300));
}

#[test]
fn what_new_connections_would_get_is_not_unloaded() {
    let Some(_alone) = alone() else { return };
    let _scheme = Loaded::new("jump-start", "jump-start", &[]);
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=100pkt"]);
    let allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let names = std::fs::read_to_string(allowed).unwrap();
    std::fs::write(allowed, format!("{} fs_jump_start", names.trim())).unwrap();
    let default = "/proc/sys/net/ipv4/tcp_congestion_control";
    sides.of_servers(move || std::fs::write(default, "fs_jump_start").unwrap());
    let mut unload = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    unload.args(["tcp", "unload", "jump-start"]);
    let unload = sides.of_servers(move || unload.output().unwrap());
    let told = String::from_utf8(unload.stderr).unwrap();
    assert!(unload.status.code() == Some(2) && told.contains("is the default"), "{told}");
    sides.of_servers(move || std::fs::write(default, "reno").unwrap());
    tcp(&["unload", "jump-start"]).assert().success();
    // Its name has gone from this list by itself.
    assert_eq!(std::fs::read_to_string(allowed).unwrap(), names);
}

/// A server that ends when it is dropped.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn an_unchanged_web_server_starts_as_its_namespace_says() {
    let Some(_alone) = alone() else { return };
    if ["nginx", "curl"].iter().any(|program| Program::new(program).arg("-V").output().is_err()) {
        println!("skipped: nginx or curl is not installed");
        return;
    }
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let names = std::fs::read_to_string(allowed).unwrap();
    std::fs::write(allowed, format!("{} fs_jump_start", names.trim())).unwrap();
    let sides = Sides::over_ipv4(&["--link", "rate=10mbit,rtt=200ms,buffer=500pkt"]);
    open_receive_window(&sides);
    let folder = tempfile::TempDir::new().unwrap();
    let (root, file) = (folder.path().display().to_string(), folder.path().join("nginx.conf"));
    std::fs::write(folder.path().join("300KB"), vec![7; 300_000]).unwrap();
    let server = format!("server {{ listen 10.9.0.1:80; root {root}; }}");
    let http = format!("http {{ access_log off; sendfile on; {server} }}");
    // As root it would read files as another user, who may not see this folder.
    let text = format!(
        "user root; daemon off; master_process off; pid {root}/pid; error_log {root}/log;\nevents {{}}\n{http}"
    );
    std::fs::write(&file, text).unwrap();
    let mut nginx = Program::new("nginx");
    nginx.arg("-c").arg(file).args(["-e", &format!("{root}/log")]);
    let default = "/proc/sys/net/ipv4/tcp_congestion_control";
    let nginx = sides.of_servers(move || {
        std::fs::write(default, "fs_jump_start").unwrap();
        Nginx(nginx.spawn().unwrap())
    });
    sleep(Duration::from_millis(500));
    let mut curl = Program::new("curl");
    curl.args(["-s", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", "http://10.9.0.1/300KB"]);
    let told = sides.of_clients(move || curl.output().unwrap());
    let told = String::from_utf8(told.stdout).unwrap();
    let (size, took) = told.split_once(' ').unwrap();
    let took: f64 = took.parse().unwrap();
    // The kernel's CUBIC and Reno need 1.3 s.
    assert!(size == "300000" && (0.6..0.8).contains(&took), "{told}");
    assert_eq!(scheme.status()["launched"], 1);
    drop(nginx);
    scheme.wait_until_no_connection_is_open();
    sides.of_servers(move || std::fs::write(default, "reno").unwrap());
}

#[test]
fn programs_that_choose_their_congestion_control_take_a_scheme() {
    let Some(_alone) = alone() else { return };
    if Program::new("iperf3").arg("--version").output().is_err() {
        println!("skipped: iperf3 is not installed");
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let told = folder.path().join("told");
    let scheme = Loaded::new("jump-start", "jump-start", &[]);
    let open = "for one in r w; do echo 4096 4000000 4000000 > /proc/sys/net/ipv4/tcp_${one}mem; done";
    let client = format!(
        "{open}; iperf3 -c {{server}} -p {{port}} -R -n 300000 -C fs_jump_start -J > {}; sleep 0.3",
        told.display()
    );
    let mut testbed = Command::cargo_bin("flowstart").unwrap();
    testbed.args(["testbed", "--link", "rate=10mbit,rtt=200ms,buffer=500pkt", "--quiet", "--client", &client]);
    testbed.args(["--server", &format!("{open}; iperf3 -s -1 -p {{port}}")]).assert().success();
    let told: Value = serde_json::from_slice(&std::fs::read(told).unwrap()).unwrap();
    assert_eq!(told["end"]["sender_tcp_congestion"], "fs_jump_start");
    assert!(told["end"]["sum_received"]["bytes"].as_u64().unwrap() >= 300_000, "{}", told["end"]);
    assert_eq!(scheme.status()["launched"], 1);
    scheme.wait_until_no_connection_is_open();
}

#[test]
fn what_would_end_with_its_mount_namespace_is_not_loaded() {
    let Some(_alone) = alone() else { return };
    let sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=100pkt"]);
    let mut load = Program::new("ip");
    load.args(["netns", "exec", &sides.devices()[0]]).arg(assert_cmd::cargo::cargo_bin("flowstart"));
    let refused = load.args(["tcp", "load", "jump-start"]).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && told.contains("nsenter --net"), "{told}");
}

#[test]
fn slips_are_refused_and_nothing_changes() {
    let Some(_alone) = alone() else { return };
    let before = traces();
    for (arguments, told) in [
        (&["load", "no-such"][..], "`flowstart list schemes` shows all"),
        (&["load", "hybla"], "there is no hybla for TCP of Linux; there are "),
        (&["load", "jump-start:threshold=1B"], "allowed is 1KB to 1000GB"),
        (&["load", "jump-start:retreat=acknowledged"], "has no choice of `retreat`"),
        (&["load", "jump-start:speed=1"], "unknown field `speed`"),
        (&["load", "jump-start", "--hint", "10.0.0.0/8=1mbit"], "jump-start uses no hints"),
        (&["load", "jump-start", "--hint", "10.0.0.0/8"], "use PREFIX=RATE"),
        (&["load", "initial-start", "--hint", "10.0.0.0/8=1mbit"], "initial-start uses no hints"),
        (&["load", "more-start:rate=1mbit", "--hint", "10.0.0.0/8=1mbit"], "more-start uses no hints"),
        (&["load", "careful-resume", "--hint", "10.0.0.0/8=1mbit"], "careful-resume uses hints with an RTT only"),
        (&["load", "jump-start", "--interface", "lo"], "jump-start asks no routers"),
        (&["load", "quick-start", "--interface", "none0"], "this network namespace has no interface none0"),
        (&["load", "quick-start:passes=2"], "has no choice of `passes`"),
        (&["hint", "blitzstart", "--remove", "example.org"], "no address and no network"),
        (&["load", "jump-start", "--hint-lifetime", "1ms"], "allowed is 1s"),
        (&["load", "jump-start", "--hint-lifetime", "1s"], "--hint-lifetime `1s`: jump-start uses no hints"),
        (&["load", "blitzstart", "--hint-lifetime", "1s"], "--hint-lifetime `1s`: there is no hint"),
        (&["hint", "jump-start", "--hint", "10.0.0.0/8=1mbit"], "jump-start uses no hints"),
        (&["hint", "blitzstart", "--hint", "10.0.0.0/8=1mbit"], "blitzstart is not loaded"),
        (&["hint", "blitzstart"], "blitzstart is not loaded"),
        (&["hint", "jump-start"], "jump-start uses no hints"),
        (&["unload", "jump-start"], "jump-start is not loaded"),
        (&["unload", "no-such"], "there is no no-such for TCP of Linux"),
        (&["status", "--follow"], "nothing is loaded"),
    ] {
        tcp(arguments).assert().code(2).stdout("").stderr(contains(told));
    }
    let mut as_nobody = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    let refused = as_nobody.args(["tcp", "load", "jump-start"]).uid(65_534).gid(65_534).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && told.contains("this needs root"), "{told}");
    for (scheme, spec, hint, told) in [
        ("more-start", "more-start:rate=1mbit", "10.0.0.0/8=1mbit,9ms", "uses no hints"),
        ("careful-resume", "careful-resume", "10.0.0.0/8=1mbit", "uses hints with an RTT only"),
    ] {
        let _scheme = Loaded::new(scheme, spec, &[]);
        tcp(&["hint", scheme, "--hint", hint]).assert().code(2).stdout("").stderr(contains(told));
    }
    let _scheme = Loaded::new("jump-start", "jump-start", &[]);
    tcp(&["load", "jump-start"]).assert().code(2).stderr(contains("jump-start is loaded already"));
    tcp(&["unload", "jump-start"]).assert().success();
    nothing_new_since(&before);
}

#[test]
fn schemes_are_listed_everywhere() {
    tcp(&["list"]).assert().success().stdout(contains("jump-start: fs_jump_start\n"));
    let told = tcp(&["list", "--json"]).assert().success();
    let told: Value = serde_json::from_slice(&told.get_output().stdout).unwrap();
    assert!(told.as_array().unwrap().iter().all(|port| port["kernel_name"].as_str().unwrap().starts_with("fs_")));
    if !cfg!(feature = "tcp") {
        let told = contains("this build has no programs for the kernel").and(contains("--features tcp"));
        tcp(&["load", "jump-start"]).assert().code(2).stderr(told);
    }
}
