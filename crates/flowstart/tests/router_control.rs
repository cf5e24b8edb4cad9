//! What a running router tells: on the socket of `--control`, and on a terminal.
//!
//! What needs root, `ip` and TUN devices is skipped without them, and says why; with CI=true and root it fails.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command as Program, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use namespaces::{Sides, are_missing};
use nix::pty::openpty;
use serde_json::Value;

/// What the socket answers, asked until it says what is wanted.
fn asked_until(stream: &UnixStream, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let (began, mut lines) = (Instant::now(), BufReader::new(stream).lines());
    loop {
        let mut writer = stream;
        writer.write_all(b"{\"get\":\"statistics\"}\n").unwrap();
        let told: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if is_wanted(&told["statistics"]) {
            return told["statistics"].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{told}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_opens_the_control_socket_hears_what_the_router_does_now() {
    if are_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let mut sides =
        Sides::over_ipv4(&["--link", "rate=1mbit,rtt=10ms,buffer=100pkt", "--control", path.to_str().unwrap()]);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let stream = UnixStream::connect(&path).unwrap();
    let server = sides.of_servers(|| UdpSocket::bind("10.9.0.1:0").unwrap());
    for _ in 0..150 {
        server.send_to(&[7; 1472], "10.9.0.2:9").unwrap();
    }
    // A packet takes 12 ms, so the queue is there for more than a second.
    let told = asked_until(&stream, |told| told["down"]["waiting"].as_u64() > Some(0) && told["down"]["dropped"] == 49);
    assert!(told["down"]["waiting_bytes"].as_u64() >= Some(1500), "{told}");
    let told = asked_until(&stream, |told| told["down"]["departed"].as_u64() >= Some(20));
    let sojourn = told["down"]["sojourn_ms"].as_f64().unwrap();
    assert!((200.0..1300.0).contains(&sojourn), "{told}");
    assert!(told["quick_start"]["requests"] == 0 && told["seconds"].as_f64() > Some(0.0), "{told}");
    sides.end();
    assert!(!path.exists());
}

#[test]
fn a_path_that_is_taken_or_missing_is_refused_and_stays() {
    if are_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let refused = |path: &std::path::Path| {
        let mut router = Command::cargo_bin("flowstart").unwrap();
        let ports = ["--port", "tun:fs-control1", "--port", "tun:fs-control2"];
        router.args(["router", "--link", "lte"]).args(ports).arg("--control").arg(path);
        String::from_utf8(router.assert().code(2).get_output().stderr.clone()).unwrap()
    };
    assert!(refused(&file).contains("no socket"), "{}", refused(&file));
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
    assert!(refused(&folder.path().join("missing/control")).contains("No such file"));
    assert!(refused(&folder.path().join("long".repeat(40))).contains("--control"));
}

/// A router whose stderr is a terminal, and what it writes there until it has ended.
fn on_terminal(options: &[&str]) -> String {
    let terminal = openpty(None, None).unwrap();
    let number = std::process::id();
    let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    program.args(["router", "--link", "lte", "--port", &format!("tun:fsv{number}s")]);
    program.args(["--port", &format!("tun:fsv{number}c")]).args(options);
    program.stdout(Stdio::piped()).stderr(Stdio::from(terminal.slave));
    let mut child = program.spawn().unwrap();
    // The terminal is at its end when nobody holds its other side.
    drop(program);
    let reading = reading(terminal.master);
    BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    sleep(Duration::from_millis(2500));
    end(&mut child);
    reading.join().unwrap()
}

fn reading(master: OwnedFd) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut file, mut told, mut buffer) = (File::from(master), Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = file.read(&mut buffer) {
            told.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8_lossy(&told).into_owned()
    })
}

fn end(child: &mut Child) {
    let id = child.id().to_string();
    assert!(Program::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_terminal_has_a_table_of_what_happens_unless_quiet_is_wanted() {
    if are_missing() {
        return;
    }
    let told = on_terminal(&[]);
    assert!(told.contains("sojourn") && told.contains("to clients") && told.contains("2 s"), "{told}");
    for options in [&["--quiet"][..], &["--stats", "1s"]] {
        assert!(!on_terminal(options).contains("sojourn"), "{options:?}");
    }
}
