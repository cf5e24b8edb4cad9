//! However `flowstart testbed` and `flowstart router` end, namespaces, interfaces, programs in the kernel, settings of
//! the network, mounts and processes are afterwards what they were before.
//!
//! What needs root, `ip` and TUN devices is skipped without them, and says why; with CI=true and root it fails. One
//! test at a time, because each looks at the whole system; programs of others that come or go meanwhile disturb them.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use namespaces::are_missing;

/// Programs on the two sides, by whose arguments their processes are found: no other program sleeps so long.
const SERVER: &str = "sleep 61.28318";
const CLIENT: &str = "sleep 62.71828";

/// What a program could leave behind.
#[derive(Debug, PartialEq, Eq)]
struct System {
    namespaces: BTreeSet<String>,
    /// Network namespaces of all threads, also those without a name.
    lived_in: BTreeSet<String>,
    links: BTreeSet<String>,
    /// Programs and maps of BPF by their names, as far as `bpftool` is there.
    in_the_kernel: Vec<String>,
    sysctls: BTreeSet<String>,
    mounts: BTreeSet<String>,
    processes: BTreeSet<u32>,
}

impl System {
    fn now() -> Self {
        let names = |folder: &str| {
            let entries = fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
        };
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        Self {
            namespaces: names("/run/netns"),
            lived_in: lived_in(),
            links: names("/sys/class/net"),
            in_the_kernel: ["prog", "map"].into_iter().flat_map(in_the_kernel).collect(),
            sysctls: sysctls("/proc/sys/net"),
            mounts: mounts.lines().map(str::to_owned).collect(),
            processes: processes(),
        }
    }

    /// The system takes a moment to let go.
    fn becomes(&self, case: &str) {
        let began = Instant::now();
        let mut now = Self::now();
        while now != *self && began.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(100));
            now = Self::now();
        }
        assert_eq!(now, *self, "{case}");
    }
}

/// The network namespaces that a thread of this host is in.
fn lived_in() -> BTreeSet<String> {
    let folders = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    let threads = folders("/proc").flat_map(|entry| folders(&format!("{}/task", entry.path().display())));
    let of = threads.filter_map(|thread| fs::read_link(thread.path().join("ns/net")).ok());
    of.map(|namespace| namespace.display().to_string()).collect()
}

/// Names of what BPF has loaded, of those that this project could load.
fn in_the_kernel(kind: &str) -> Vec<String> {
    let Ok(told) = Command::new("bpftool").args(["-j", kind, "show"]).output() else { return Vec::new() };
    let found: Vec<serde_json::Value> = serde_json::from_slice(&told.stdout).unwrap_or_default();
    let mut names: Vec<_> =
        found.iter().filter_map(|one| one["name"].as_str()).map(|name| format!("{kind} {name}")).collect();
    names.sort();
    names
}

/// The settings of the network that stand for a text of their own. Those of interfaces are with them; counters change.
fn sysctls(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            found.extend(sysctls(&name));
        } else if let Ok(value) = fs::read_to_string(&path)
            && !["/netfilter/", "/neigh/", "state", "random"].iter().any(|other| name.contains(other))
        {
            found.insert(format!("{name}={}", value.trim()));
        }
    }
    found
}

/// Processes of the two programs, their shells included.
fn processes() -> BTreeSet<u32> {
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    let is_one = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        *number != own && [SERVER, CLIENT].iter().any(|program| line.contains(program))
    };
    numbers.filter(is_one).collect()
}

fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if are_missing() { None } else { Some(ONE.lock().unwrap_or_else(PoisonError::into_inner)) }
}

fn testbed(server: &str, client: &str) -> Child {
    let mut command = Command::new(cargo_bin("flowstart"));
    command.args(["testbed", "--link", "rate=10mbit,rtt=40ms,buffer=1bdp", "--server", server, "--client", client]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn router(ports: [&str; 2], more: &[&str]) -> Child {
    let mut command = Command::new(cargo_bin("flowstart"));
    command.args(["router", "--link", "lte", "--port", ports[0], "--port", ports[1]]).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// Waits until a program of the testbed runs; its process, without shells and what is around them.
fn running(program: &str) -> u32 {
    let began = Instant::now();
    loop {
        let is_it = |number: &u32| {
            fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|line| {
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                line.trim() == program
            })
        };
        if let Some(found) = processes().into_iter().find(is_it) {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{program} does not run");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_testbed_that_is_interrupted_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    for name in ["-INT", "-TERM"] {
        let before = System::now();
        let testbed = testbed(SERVER, CLIENT);
        running(SERVER);
        running(CLIENT);
        signal(name, testbed.id());
        let output = testbed.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        before.becomes(name);
    }
}

#[test]
fn a_testbed_that_is_killed_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let before = System::now();
    let testbed = testbed(SERVER, CLIENT);
    running(SERVER);
    running(CLIENT);
    signal("-KILL", testbed.id());
    assert!(!testbed.wait_with_output().unwrap().status.success());
    before.becomes("a killed testbed");
}

#[test]
fn a_program_that_is_killed_or_exits_ends_the_testbed_and_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let before = System::now();
    let killed = testbed(SERVER, CLIENT);
    running(SERVER);
    signal("-KILL", running(CLIENT));
    let output = killed.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    before.becomes("a killed client");
    let killed = testbed(SERVER, "sleep 1");
    signal("-KILL", running(SERVER));
    let output = killed.wait_with_output().unwrap();
    assert!(output.status.code() == Some(1) && told(&output).contains("the server had ended"), "{}", told(&output));
    before.becomes("a killed server");
    for (server, client) in [("exit 3", "sleep 0.5"), (SERVER, "exit 4"), ("fs-there-is-none", "sleep 0.5")] {
        let output = testbed(server, client).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{server} {client}: {}", told(&output));
        before.becomes(server);
    }
}

#[test]
fn what_stands_in_the_way_is_refused_and_stays() {
    let Some(_alone) = alone() else { return };
    let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    // The first one of a host makes a mount for all of them.
    ip(&["netns", "add", "fs-first"]);
    ip(&["netns", "del", "fs-first"]);
    let untouched = System::now();
    // As a run that has crashed could leave them: a namespace with the name of a side, and a device of a port.
    ip(&["netns", "add", "servers"]);
    ip(&["link", "add", "fs-remains", "type", "veth", "peer", "name", "fs-remains-peer"]);
    let before = System::now();
    let output = testbed("sleep 1", "true").wait_with_output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    before.becomes("a testbed beside a namespace of this name");
    let output = router(["tun:fs-remains", "tun:fs-other"], &[]).wait_with_output().unwrap();
    assert!(output.status.code() == Some(2) && told(&output).contains("already"), "{}", told(&output));
    before.becomes("a router whose device is there");
    ip(&["link", "del", "fs-remains"]);
    ip(&["netns", "del", "servers"]);
    untouched.becomes("without what stood in the way");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = router(["tun:fs-one", "tun:fs-two"], &["--metrics", &address]).wait_with_output().unwrap();
    assert!(output.status.code() == Some(2) && told(&output).contains("--metrics"), "{}", told(&output));
    untouched.becomes("a router whose port for metrics is in use");
}

#[test]
fn what_is_refused_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (empty, good) = (path("empty"), path("good"));
    fs::write(&empty, "").unwrap();
    fs::write(&good, "5\n").unwrap();
    // One that is down, one that takes shorter packets.
    for (name, other, mtu) in [("fs-down", "fs-down-peer", "1500"), ("fs-short", "fs-short-peer", "1280")] {
        ip(&["link", "add", name, "mtu", mtu, "type", "veth", "peer", "name", other]);
        ip(&["link", "set", other, "up"]);
    }
    for up in ["fs-short", "lo"] {
        ip(&["link", "set", up, "up"]);
    }
    let before = System::now();
    let router = |ports: [&'static str; 2], more: &[&str]| {
        let ports = ports.iter().flat_map(|port| ["--port", port]);
        [&["router"], &ports.collect::<Vec<_>>()[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (tun, lte) = (["tun:fs-one", "tun:fs-two"], &["--link", "lte"][..]);
    let testbed = |link: &str| {
        let words = ["testbed", "--link", link, "--server", "sleep 1", "--client", "true"];
        words.map(str::to_owned).to_vec()
    };
    let tcp = |words: [&str; 2]| ["tcp", words[0], words[1]].map(str::to_owned).to_vec();
    let zero = "rate=0mbit,rtt=10ms,buffer=1bdp";
    let mut cases = vec![
        (router(["fs-none", "lo"], lte), 2, "no interface of this name"),
        (router(["fs-down", "fs-short"], lte), 2, "is down"),
        (router(["fs-short", "fs-down-peer"], lte), 2, "takes packets of"),
        (router(tun, &["--link", zero]), 2, "rate"),
        (router(tun, &["--mahimahi", &empty, &good]), 2, "no opportunity"),
        (router(tun, &["--link", "lte", "--control", "/nowhere/control"]), 2, "--control"),
        (testbed(zero), 2, "rate"),
        (testbed("fs-none"), 2, "fs-none"),
    ];
    if cfg!(feature = "tcp") {
        cases.push((tcp(["load", "fs-none"]), 2, "is not known"));
        cases.push((tcp(["unload", "suss"]), 2, "is not loaded"));
    }
    let check = |arguments: &[String], program: &mut Command, code: i32, says: &str| {
        let output = program.args(arguments).output().unwrap();
        assert!(output.status.code() == Some(code) && told(&output).contains(says), "{arguments:?}: {}", told(&output));
        before.becomes(&format!("{arguments:?}"));
    };
    for (arguments, code, says) in cases {
        check(&arguments, &mut Command::new(cargo_bin("flowstart")), code, says);
    }
    // Without what root may do.
    let mut cases = vec![
        (router(tun, lte), 2, "CAP_NET_ADMIN"),
        (router(["fs-short", "lo"], lte), 2, "CAP_NET_RAW"),
        (testbed("lte"), 1, "CAP_SYS_ADMIN"),
    ];
    if cfg!(feature = "tcp") {
        cases.push((tcp(["load", "suss"]), 1, "CAP_BPF"));
    }
    for (arguments, code, says) in cases {
        let mut unprivileged = Command::new("setpriv");
        let none = "-sys_admin,-net_admin,-net_raw,-bpf,-perfmon";
        unprivileged.args([&format!("--bounding-set={none}"), &format!("--inh-caps={none}"), "--"]);
        check(&arguments, unprivileged.arg(cargo_bin("flowstart")), code, says);
    }
    for name in ["fs-down", "fs-short"] {
        ip(&["link", "del", name]);
    }
}

#[test]
fn a_router_leaves_nothing_however_it_ends() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control");
    let before = System::now();
    for end in ["-INT", "-TERM", "-KILL", "gone"] {
        // After -KILL the next one finds the socket of the one before.
        let running = router(["tun:fs-one", "tun:fs-two"], &["--control", control.to_str().unwrap()]);
        let began = Instant::now();
        while !fs::exists("/sys/class/net/fs-two").unwrap() || !control.exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "the router does not run");
            sleep(Duration::from_millis(20));
        }
        // Whatever it does between its devices and its first packet.
        sleep(Duration::from_millis(300));
        match end {
            "gone" => assert!(Command::new("ip").args(["link", "del", "fs-one"]).status().unwrap().success()),
            signal_name => signal(signal_name, running.id()),
        }
        let output = running.wait_with_output().unwrap();
        let expected = match end {
            "-KILL" => None,
            "gone" => Some(1),
            _ => Some(0),
        };
        assert_eq!(output.status.code(), expected, "{end}: {}", told(&output));
        before.becomes(end);
        assert_eq!(control.exists(), end == "-KILL", "{end}");
    }
}
