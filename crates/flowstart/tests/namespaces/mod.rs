//! `flowstart router` between two network namespaces, which are gone when it is dropped.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command as Program, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use nix::unistd::Pid;
use serde_json::Value;

/// How many of them this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Whether something is missing for a test with namespaces, which then says what.
pub(crate) fn are_missing() -> bool {
    if Path::new("/proc/self").metadata().unwrap().uid() != 0 {
        println!("skipped: this process is not root");
        return true;
    }
    let missing = if !Path::new("/dev/net/tun").exists() {
        "/dev/net/tun"
    } else if !Program::new("ip").arg("-V").output().is_ok_and(|ip| ip.status.success()) {
        "ip (iproute2)"
    } else {
        return false;
    };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true and root require this test, which needs {missing}");
    println!("skipped: there is no {missing}");
    true
}

/// Whether tshark is missing for a test, which then says so.
pub(crate) fn tshark_is_missing() -> bool {
    let is_there = Program::new("tshark").arg("--version").output().is_ok_and(|tshark| tshark.status.success());
    if !is_there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test, which needs tshark");
        println!("skipped: tshark is not installed");
    }
    !is_there
}

/// What tshark reads of these packets of IP: a line of fields for each that the filter lets pass. It finds no packet
/// malformed, and looks at checksums.
pub(crate) fn read_by_tshark(packets: &[Vec<u8>], filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcap");
    // A capture of version 2.4 with packets of up to 64 kB that begin with a header of IP.
    let head: [u32; 6] = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_536, 101];
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for packet in packets {
        let length = packet.len() as u32;
        bytes.extend([0, 0, length, length].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend_from_slice(packet);
    }
    std::fs::write(&file, bytes).unwrap();
    let read = |filter: &str, fields: &[&str]| {
        let mut tshark = Program::new("tshark");
        tshark.arg("-r").arg(&file).args(["-Y", filter, "-T", "fields"]);
        for check in ["udp.check_checksum", "tcp.check_checksum", "ip.check_checksum"] {
            tshark.args(["-o", &format!("{check}:TRUE")]);
        }
        String::from_utf8(tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap().stdout).unwrap()
    };
    assert_eq!(read("_ws.malformed", &["frame.number"]), "");
    read(filter, fields).lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The program that is tested, which runs before others (chrt(1)) where the system lets it: on a busy host a program
/// like all others waits for milliseconds.
pub(crate) fn program_before_others() -> Program {
    before_others(&assert_cmd::cargo::cargo_bin("flowstart"))
}

/// A program with real-time priority, where it may have that.
pub(crate) fn before_others(program: &Path) -> Program {
    let first = ["--fifo", "10"];
    if Program::new("chrt").args(first).arg("true").output().is_ok_and(|told| told.status.success()) {
        let mut before_others = Program::new("chrt");
        before_others.args(first).arg(program);
        before_others
    } else {
        Program::new(program)
    }
}

pub(crate) fn ip(arguments: &[&str]) {
    let told = Program::new("ip").args(arguments).output().unwrap();
    assert!(told.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&told.stderr));
}

/// Does this in a namespace. A socket stays in the one where it was made.
fn within<T: Send + 'static>(namespace: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let namespace = File::open(Path::new("/run/netns").join(namespace)).unwrap();
    let working = thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        work()
    });
    working.join().unwrap()
}

/// A namespace that is removed when it is dropped.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    pub(crate) fn new(name: &str) -> Self {
        let made = Self(name.to_owned());
        ip(&["netns", "add", name]);
        made
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(Program::new("ip").args(["netns", "del", &self.0]).output());
    }
}

/// A router's process, which ends when it is dropped.
struct Router(Child);

impl Router {
    fn stderr(&mut self) -> String {
        let mut told = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        told
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Names that no other test has, of devices and of the namespaces where they are.
pub(crate) fn devices() -> [String; 2] {
    let number = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    ["s", "c"].map(|side| format!("fs{number}{side}"))
}

/// Starts a router and waits until it says that it is there.
fn started(mut program: Program, ports: &[String; 2], options: &[&str]) -> (Router, BufReader<ChildStdout>, Value) {
    program.args(["router", "--json", "--port", &ports[0], "--port", &ports[1]]).args(options);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut router = Router(child);
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no router: {line}{}", router.stderr()));
    assert_eq!((&said["servers"], &said["clients"]), (&ports[0].as_str().into(), &ports[1].as_str().into()));
    (router, stdout, said)
}

/// The two sides of a router.
pub(crate) struct Sides {
    router: Router,
    stdout: BufReader<ChildStdout>,
    /// What it said at the begin.
    pub(crate) said: Value,
    between: Option<Namespace>,
    namespaces: [Namespace; 2],
    devices: [String; 2],
}

impl Sides {
    /// Starts a router with these options between TUN devices, which get addresses: `10.9.0.1` and `fd09::1` are those
    /// of servers.
    pub(crate) fn new(options: &[&str]) -> Self {
        Self::between_devices(options).with_addresses()
    }

    /// As [`Sides::new`], without IPv6 and so without its search for neighbours: all packets are those of the test.
    pub(crate) fn over_ipv4(options: &[&str]) -> Self {
        let sides = Self::between_devices(options);
        for namespace in &sides.namespaces {
            within(&namespace.0, || std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").unwrap());
        }
        sides.with_addresses()
    }

    fn between_devices(options: &[&str]) -> Self {
        let devices = devices();
        let program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        let ports = devices.each_ref().map(|device| format!("tun:{device}"));
        let (router, stdout, said) = started(program, &ports, options);
        let namespaces = devices.each_ref().map(|device| Namespace::new(device));
        for device in &devices {
            ip(&["link", "set", device, "netns", device]);
        }
        Self { router, stdout, said, between: None, namespaces, devices }
    }

    /// As [`Sides::new`], in a third namespace that has interfaces to both.
    pub(crate) fn between_interfaces(options: &[&str]) -> Self {
        let devices = devices();
        let namespaces = devices.each_ref().map(|device| Namespace::new(device));
        let ports = devices.each_ref().map(|device| format!("{device}r"));
        let between = Namespace::new(&ports[0]);
        for (device, port) in devices.iter().zip(&ports) {
            let peer = ["peer", "name", port, "netns", &ports[0]];
            ip(&[&["link", "add", device, "netns", device, "type", "veth"][..], &peer].concat());
            ip(&["-n", &ports[0], "link", "set", port, "up"]);
        }
        let mut program = Program::new("ip");
        program.args(["netns", "exec", &ports[0]]).arg(assert_cmd::cargo::cargo_bin("flowstart"));
        let (router, stdout, said) = started(program, &ports, options);
        Self { router, stdout, said, between: Some(between), namespaces, devices }.with_addresses()
    }

    fn with_addresses(self) -> Self {
        for (number, device) in (1..).zip(&self.devices) {
            ip(&["-n", device, "address", "add", &format!("10.9.0.{number}/24"), "dev", device]);
            // It cannot be given where there is no IPv6.
            let ipv6 = ["address", "add", &format!("fd09::{number}/64"), "dev", device, "nodad"];
            drop(Program::new("ip").args(["-n", device]).args(ipv6).output());
            ip(&["-n", device, "link", "set", device, "up"]);
        }
        self
    }

    /// Does this on the side of servers.
    pub(crate) fn of_servers<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        within(&self.namespaces[0].0, work)
    }

    /// Does this on the side of clients.
    pub(crate) fn of_clients<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        within(&self.namespaces[1].0, work)
    }

    /// Our program, to be run with further arguments on the side of servers.
    pub(crate) fn program_of_servers(&self) -> Program {
        self.program_within(0)
    }

    /// The same on the side of clients.
    pub(crate) fn program_of_clients(&self) -> Program {
        self.program_within(1)
    }

    fn program_within(&self, side: usize) -> Program {
        let mut program = Program::new("ip");
        program.args(["netns", "exec", &self.namespaces[side].0]).arg(assert_cmd::cargo::cargo_bin("flowstart"));
        program
    }

    /// Lets the router run before all other programs of this host (chrt(1)); whether the system does.
    pub(crate) fn goes_first(&self) -> bool {
        let id = self.router.0.id().to_string();
        Program::new("chrt").args(["--fifo", "--pid", "10", &id]).output().is_ok_and(|told| told.status.success())
    }

    /// Gives the router the first core for itself, as far as this thread goes; whether there is another for this one.
    pub(crate) fn has_a_core_of_its_own(&self) -> bool {
        let id = self.router.0.id().to_string();
        let told = Program::new("taskset").args(["--all-tasks", "--cpu-list", "--pid", "0", &id]).output();
        let mut others = CpuSet::new();
        (1..CpuSet::count()).for_each(|core| others.set(core).unwrap());
        told.is_ok_and(|told| told.status.success()) && sched_setaffinity(Pid::from_raw(0), &others).is_ok()
    }

    /// Packets that come to the side of clients or leave it, until nothing is said by the other end any more.
    pub(crate) fn capture_of_clients(&self, until: Receiver<()>) -> JoinHandle<Vec<Vec<u8>>> {
        let capturing = self.of_clients(|| {
            let flags = SockFlag::SOCK_NONBLOCK;
            socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).unwrap()
        });
        thread::spawn(move || {
            let (mut packets, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                let is_over = until.try_recv() == Err(TryRecvError::Disconnected);
                while let Ok(length) = recv(capturing.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                    packets.push(buffer[..length].to_vec());
                }
                if is_over {
                    return packets;
                }
                thread::sleep(Duration::from_millis(1));
            }
        })
    }

    /// Sends these frames from the side of servers, as they are.
    pub(crate) fn send_frames(&self, frames: Vec<Vec<u8>>) {
        let device = self.devices[0].clone();
        self.of_servers(move || {
            let mut found = getifaddrs().unwrap().filter(|interface| interface.interface_name == device);
            let address = found.find_map(|interface| interface.address?.as_link_addr().copied()).unwrap();
            let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).unwrap();
            for frame in frames {
                sendto(socket.as_raw_fd(), &frame, &address, MsgFlags::empty()).unwrap();
            }
        });
    }

    /// The names of the namespaces, which are those of the devices.
    pub(crate) fn devices(&self) -> [String; 2] {
        self.devices.clone()
    }

    /// Whether a device is in its namespace.
    pub(crate) fn has_device(&self, device: &str) -> bool {
        Program::new("ip").args(["-n", device, "link", "show", device]).output().unwrap().status.success()
    }

    /// Gives these addresses to the router's interface on the side of servers ([`Sides::between_interfaces`]).
    pub(crate) fn give_address_to_port_of_servers(&self, addresses: &[&str]) {
        let (port, namespace) = (format!("{}r", self.devices[0]), &self.between.as_ref().unwrap().0);
        for address in addresses {
            let version_6 = address.contains(':').then_some("nodad");
            let arguments = ["-n", namespace, "address", "add", address, "dev", &port];
            ip(&arguments.into_iter().chain(version_6).collect::<Vec<_>>());
        }
    }

    pub(crate) fn remove_device_of_servers(&self) {
        ip(&["-n", &self.devices[0], "link", "del", &self.devices[0]]);
    }

    /// Does this while the router does not run.
    pub(crate) fn while_it_stands_still<T>(&self, work: impl FnOnce() -> T) -> T {
        let signal = |name: &str| {
            let id = self.router.0.id().to_string();
            assert!(Program::new("kill").args([name, &id]).status().unwrap().success());
        };
        signal("-STOP");
        let done = work();
        signal("-CONT");
        done
    }

    /// Waits for its end; what it said on stderr.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        let status = loop {
            match self.router.0.try_wait().unwrap() {
                Some(status) => break status,
                None => thread::sleep(Duration::from_millis(10)),
            }
            assert!(began.elapsed() < Duration::from_secs(20), "the router does not end");
        };
        (status, self.router.stderr())
    }

    /// Ends the router in order: what it said every now and then, and at the end.
    pub(crate) fn end(&mut self) -> (Vec<Value>, Value) {
        let id = self.router.0.id().to_string();
        assert!(Program::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let mut lines: Vec<Value> = Vec::new();
        for line in self.stdout.by_ref().lines() {
            lines.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        let (status, told) = self.wait();
        assert!(status.success(), "{told}");
        let last = lines.pop().unwrap();
        (lines, last)
    }
}
