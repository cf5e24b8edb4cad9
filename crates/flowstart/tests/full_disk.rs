//! `flowstart` on a disk that is full, or of which it may use a part: a server whose files cannot be written does no
//! harm to connections, and what was written can be read; a command whose output cannot be written fails.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};

use serde_json::Value;
use server::{Server, flowstart};

/// Bytes of what `ulimit -f` counts.
const BLOCK: u64 = 512;

/// A program that runs another one, whose files cannot grow beyond so many blocks: writing more fails, as on a full
/// disk.
fn limited(blocks: u64) -> Program {
    let mut shell = Program::new("sh");
    shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
    shell.arg(assert_cmd::cargo::cargo_bin("flowstart")).stderr(Stdio::piped());
    shell
}

fn self_signed<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["--self-signed"], options].concat()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A transfer that the server's disk is too small to describe, while another one goes on: both arrive whole.
fn transfers(server: &Server, folder: &Path) {
    let content: Vec<u8> = (0..3_000_000_u32).map(|place| (place % 253) as u8).collect();
    fs::write(folder.join("content"), &content).unwrap();
    let other = server.get("/generate/2MB");
    let other = std::thread::spawn(move || { other }.assert().success());
    let out = folder.join("out");
    server.get("/content").arg("--out").arg(&out).assert().success();
    assert!(fs::read(&out).unwrap() == content, "the content differs");
    other.join().unwrap();
    server.wait_for("flowstart_connections_active 0");
}

/// What `flowstart analyze` reads of the folder, without a complaint.
fn analyzed(logs: &Path) -> Value {
    let analyzed = flowstart().args(["analyze", "--json"]).arg(logs).assert().success();
    serde_json::from_slice(&analyzed.get_output().stdout).unwrap()
}

#[test]
fn qlog_that_cannot_be_written_ends_and_no_connection_does() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let options = ["--root", folder.path().to_str().unwrap(), "--qlog", logs.to_str().unwrap()];
    let blocks = 200;
    let server = Server::run(&mut limited(blocks), &self_signed(&options));
    transfers(&server, folder.path());
    // A connection whose file is small enough, after those whose files were not.
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
    server.wait_for("flowstart_connections_active 0");
    let (status, told) = server.end();
    assert!(status.success(), "{status}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("qlog cannot be written") && told.contains("further failures are not told"), "{told}");

    let mut sizes: Vec<u64> = files(&logs).iter().map(|file| file.metadata().unwrap().len()).collect();
    sizes.sort_unstable();
    assert!(sizes.len() == 3 && sizes[2] <= blocks * BLOCK && sizes[1] > blocks * BLOCK / 2, "{sizes:?}");
    assert!(files(&logs).iter().all(|file| fs::read(file).unwrap().ends_with(b"}\n")), "an event is cut off");
    // Those that were cut off are known to have been there; the one that is whole has its answer.
    let analysis = analyzed(&logs);
    assert_eq!((&analysis["connections"], &analysis["without_answer"]), (&1.into(), &2.into()), "{analysis}");
}

#[test]
fn on_a_disk_without_room_no_qlog_file_is_left_that_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let options = ["--root", folder.path().to_str().unwrap(), "--qlog", logs.to_str().unwrap()];
    let log = File::create(folder.path().join("log")).unwrap();
    // The server's own log is on that disk, too.
    let server = Server::run(limited(0).stderr(log), &self_signed(&options));
    transfers(&server, folder.path());
    assert!(files(&logs).is_empty(), "{:?}", files(&logs));
    assert!(server.end().0.success());
    assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), "");
}

#[test]
fn qlog_stays_within_its_limit_and_events_stay_whole() {
    let logs = tempfile::tempdir().unwrap();
    let options = ["--qlog", logs.path().to_str().unwrap(), "--qlog-limit", "1MB"];
    let server = Server::self_signed(&options);
    // A file has 100 KB, a third of what a transfer of 1 MB has to say; ten of them are all.
    for _ in 0..12 {
        assert_eq!(server.timings("/generate/1MB")["bytes"], 1_000_000);
    }
    server.wait_for("flowstart_connections_active 0");
    let metrics = server.http("GET", "/metrics");
    for result in ["cut-off", "left-out"] {
        assert!(metrics.contains(&format!("flowstart_qlog_incomplete_total{{result=\"{result}\"}}")), "{metrics}");
    }
    let (status, told) = server.end();
    assert!(status.success() && told.lines().count() == 1 && told.contains("which is the limit"), "{status} {told}");
    let written: Vec<_> = files(logs.path()).iter().map(|file| fs::read(file).unwrap()).collect();
    assert!((9..=11).contains(&written.len()), "{}", written.len());
    for text in &written {
        assert!(text.ends_with(b"}\n") && text.len() <= 100_000, "{}", text.len());
    }
    assert!(written.iter().map(Vec::len).sum::<usize>() <= 1_000_000);
    // What is there counts from the start: the next server writes no more.
    let server = Server::self_signed(&options);
    for _ in 0..3 {
        server.timings("/generate/1MB");
    }
    server.wait_for("flowstart_connections_active 0");
    assert!(server.end().0.success());
    let sizes = files(logs.path()).iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    assert!(sizes <= 1_000_000, "{sizes}");
}

#[test]
fn handshakes_that_do_not_end_leave_no_qlog_file() {
    let logs = tempfile::tempdir().unwrap();
    let server = Server::self_signed(&["--qlog", logs.path().to_str().unwrap(), "--handshake-time", "500ms"]);
    let address = server.url.strip_prefix("https://").unwrap();
    for _ in 0..3 {
        // A client whose first packet arrives and nothing else.
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut client = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(["get", "--insecure", &format!("https://{}/", relay.local_addr().unwrap())])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut packet = [0; 2000];
        let length = relay.recv(&mut packet).unwrap();
        relay.send_to(&packet[..length], address).unwrap();
        client.kill().unwrap();
        client.wait().unwrap();
    }
    server.wait_for("flowstart_connection_attempts_total{result=\"failed\"} 3");
    assert_eq!(server.timings("/generate/1KB")["bytes"], 1000);
    server.wait_for("flowstart_connections_active 0");
    assert!(server.end().0.success());
    assert_eq!(files(logs.path()).len(), 1);
}

#[test]
fn a_folder_for_qlog_that_goes_away_is_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let server = Server::self_signed(&["--qlog", logs.to_str().unwrap()]);
    server.timings("/generate/100KB");
    assert_eq!(files(&logs).len(), 1);
    fs::remove_dir_all(&logs).unwrap();
    for _ in 0..3 {
        assert_eq!(server.timings("/generate/100KB")["bytes"], 100_000);
    }
    let (status, told) = server.end();
    assert!(status.success() && told.lines().count() == 1, "{status} {told}");
    assert!(told.contains("qlog cannot be written"), "{told}");
}

#[test]
fn a_path_store_that_cannot_be_written_is_gone_without_and_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("paths.redb");
    let options = ["--startup", "careful-resume", "--path-store", store.to_str().unwrap()];
    let known = || {
        let shown = flowstart().args(["oracle", "show", "--json", "--store"]).arg(&store).assert().success();
        serde_json::from_slice::<Value>(&shown.get_output().stdout).unwrap()
    };
    let server = Server::self_signed(&options);
    server.timings("/generate/2MB");
    server.wait_for("flowstart_connections_active 0");
    assert!(server.end().0.success());
    let before = known();
    assert_eq!((&before[0]["prefix"], &before[0]["samples"]), (&"127.0.0.0/24".into(), &1.into()));

    // Once it ends in order, once it is killed.
    for killed in [false, true] {
        let server = Server::run(&mut limited(1), &self_signed(&options));
        for _ in 0..3 {
            assert_eq!(server.timings("/generate/2MB")["bytes"], 2_000_000);
        }
        server.wait_for("flowstart_connections_active 0");
        if killed {
            server.signal("-KILL");
            drop(server);
        } else {
            let (status, told) = server.end();
            assert!(status.success() && told.lines().count() == 1, "{status} {told}");
            assert!(told.contains("paths.redb") && told.contains("further failures are not told"), "{told}");
        }
        assert_eq!(known()[0]["samples"], 1);
    }

    // When there is room again, paths are saved again.
    let server = Server::self_signed(&options);
    server.timings("/generate/2MB");
    server.wait_for("flowstart_connections_active 0");
    let (status, told) = server.end();
    assert!(status.success() && told.is_empty(), "{status} {told}");
    assert_eq!(known()[0]["samples"], 2);
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_is_a_failure() {
    for (what, code) in [("--help", 1), ("--version", 1), ("--no-such-option", 2)] {
        let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = program.arg(what).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{what}: {told}");
        assert_eq!(told.contains("stdout: No space left on device"), code == 1, "{what}: {told}");
    }
}
