//! Departures of `flowstart router` against those of the simulator's `Link`.
//!
//! Arrivals are replayed that a simulation has recorded: times and sizes of a slow start's packets. They cross the
//! router as real packets between two TUN devices. For the arrivals as they were, by the router's log and by the hosts'
//! clock, a `Link` by itself says when each packet is to leave. The router runs before other programs (chrt(1)),
//! because a program like all others waits for some milliseconds whenever both processors are busy.
//!
//! What needs root, `ip` and TUN devices is skipped without them, and says why; with CI=true and root it fails.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assert_cmd::Command;
use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::time::Timestamp;
use flowstart_lab::spec::aqm::Aqm;
use flowstart_lab::spec::link::Link as Spec;
use flowstart_sim::link::{Link, LinkConfig, Wanted};
use namespaces::{Sides, are_missing};
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns, SndBufForce};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// A packet in a router's log: bytes, and nanoseconds of its arrival, of the planned departure and of the real one.
#[derive(Clone, Copy, Debug)]
struct Logged {
    bytes: u32,
    arrived: u64,
    departed: Option<[u64; 2]>,
}

/// When a simulation's sender sent packets, and how many bytes of payload.
fn recorded(link: &str, size: &str) -> Vec<(Duration, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = Command::cargo_bin("flowstart").unwrap();
    trace.args(["trace", "--link", link, "--size", size, "--scheme", "slow-start", "--out"]).arg(folder.path());
    trace.assert().success();
    let mut table = csv::Reader::from_path(folder.path().join("trace.csv")).unwrap();
    let names = table.headers().unwrap().clone();
    let column = |name: &str| names.iter().position(|one| one == name).unwrap();
    let [time, event, bytes] = ["time_ms", "event", "bytes"].map(column);
    let rows = table.records().map(Result::unwrap).filter(|row| &row[event] == "sent");
    let sent: Vec<(f64, usize)> = rows.map(|row| (row[time].parse().unwrap(), row[bytes].parse().unwrap())).collect();
    let first = sent[0].0;
    sent.into_iter().map(|(time, bytes)| (Duration::from_secs_f64((time - first) / 1000.0), bytes)).collect()
}

/// Nanoseconds of the clock of this host, by which the kernel says when a packet has come.
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Sends datagrams of these sizes at these times; when it did.
fn replay(socket: &UdpSocket, arrivals: &[(Duration, usize)]) -> Vec<u64> {
    let began = Instant::now();
    let mut contents = [7; 2000];
    let sent = (0_u32..).zip(arrivals).map(|(number, (at, bytes))| {
        contents[..4].copy_from_slice(&number.to_be_bytes());
        while began.elapsed() < *at {
            std::hint::spin_loop();
        }
        let now = clock();
        socket.send(&contents[..*bytes]).unwrap();
        now
    });
    sent.collect()
}

/// The numbers of datagrams that come until none does for a second, and when they have come.
fn received(socket: &UdpSocket) -> Vec<(u32, u64)> {
    let mut buffer = [0; 2000];
    let mut received = Vec::new();
    loop {
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let came = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
        let Ok(came) = came else { return received };
        let time = came.cmsgs().unwrap().find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time).as_nanos() as u64),
            _ => None,
        });
        received.push((u32::from_be_bytes(buffer[..4].try_into().unwrap()), time.unwrap()));
    }
}

/// The lines of a log about packets to clients, in the order of their arrival.
fn logged(file: &Path) -> Vec<Logged> {
    let mut table = csv::Reader::from_path(file).unwrap();
    let rows = table.records().map(Result::unwrap).filter(|row| &row[0] == "down");
    let number = |text: &str| text.parse::<u64>().ok();
    let mut packets: Vec<Logged> = rows
        .map(|row| Logged {
            bytes: row[1].parse().unwrap(),
            arrived: row[2].parse().unwrap(),
            departed: number(&row[3]).zip(number(&row[4])).map(<[u64; 2]>::from),
        })
        .collect();
    packets.sort_by_key(|packet| packet.arrived);
    packets
}

/// When packets leave a link that arrive at these nanoseconds with so many bytes; `None`: it drops them.
fn departures(config: &LinkConfig, packets: impl ExactSizeIterator<Item = (u64, u32)>) -> Vec<Option<u64>> {
    let mut link = Link::new(config, 1, 0);
    link.keep_queue();
    let mut left = vec![None; packets.len()];
    let mut wanted = Wanted::default();
    let mut until = |link: &mut Link, wanted: &mut Wanted, now: Timestamp| {
        while let Some(next) = [wanted.service, wanted.arrival].into_iter().flatten().min().filter(|next| *next <= now)
        {
            if wanted.arrival == Some(next) {
                let (handle, following) = link.arrive();
                left[handle.unwrap() as usize] = Some(next.since(Timestamp::ZERO).as_nanos());
                wanted.arrival = following;
            } else {
                let (_, then) = link.finish_service(next);
                *wanted = Wanted { service: then.service, arrival: then.arrival.or(wanted.arrival) };
            }
        }
    };
    for (handle, (arrived, bytes)) in (0_u32..).zip(packets) {
        let now = Timestamp::from_nanos(arrived);
        until(&mut link, &mut wanted, now);
        let then = link.enqueue(now, handle, bytes, 0, EcnCodepoint::NotEct);
        wanted = Wanted { service: then.service.or(wanted.service), arrival: then.arrival.or(wanted.arrival) };
        while link.take_dropped().is_some() {}
    }
    until(&mut link, &mut wanted, Timestamp::NEVER);
    left
}

/// What half of these, 99 of 100 and all do not exceed, in milliseconds.
fn quantiles(mut nanos: Vec<u64>) -> [f64; 3] {
    nanos.sort_unstable();
    [0.5, 0.99, 1.0].map(|share| nanos[((nanos.len() - 1) as f64 * share) as usize] as f64 / 1e6)
}

/// Both tests measure, so one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Differences between a router's departures and those of its link in the simulator.
#[derive(Debug)]
struct Differences {
    /// By the router's clock: it has taken a packet, and the system has taken it again.
    router: [f64; 3],
    /// By that of the hosts: one has sent a packet, and it has come to the other. Without drops, because a packet more
    /// or less in the queue is another arrival.
    hosts: Option<[f64; 3]>,
    dropped: usize,
    goes_first: bool,
}

/// A socket of servers that is connected to one of clients, whose packets have the time at which they came.
fn sockets(sides: &Sides) -> (UdpSocket, UdpSocket) {
    let bound = |address: &'static str| move || UdpSocket::bind(address).unwrap();
    let (server, client) = (sides.of_servers(bound("10.9.0.1:0")), sides.of_clients(bound("10.9.0.2:0")));
    server.connect(client.local_addr().unwrap()).unwrap();
    setsockopt(&server, SndBufForce, &(64 << 20)).unwrap();
    setsockopt(&client, RcvBufForce, &(64 << 20)).unwrap();
    setsockopt(&client, ReceiveTimestampns, &true).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    (server, client)
}

/// Replays these arrivals by a link with this buffer.
fn differences(arrivals: &[(Duration, usize)], link: &str) -> Differences {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("packets.csv");
    let mut sides = Sides::over_ipv4(&["--link", link, "--packet-log", log.to_str().unwrap()]);
    let goes_first = sides.goes_first();
    let (server, client) = sockets(&sides);
    let sent = replay(&server, arrivals);
    let received = received(&client);
    let (_, told) = sides.end();
    assert!(received.is_sorted_by_key(|(number, _)| *number), "packets overtook each other");
    let packets = logged(&log);
    assert!(told["unlogged"] == 0 && packets.len() == arrivals.len(), "{} in the log: {told}", packets.len());
    assert!(packets.iter().zip(arrivals).all(|(packet, (_, bytes))| packet.bytes as usize == bytes + HEADERS));
    let aqm = Aqm::parse("--aqm", "taildrop").unwrap().value.config();
    let (config, _) = Spec::parse("--link", link, Path::new(".")).unwrap().hop(&aqm);
    let expected = departures(&config, packets.iter().map(|packet| (packet.arrived, packet.bytes)));
    let planned: Vec<Option<u64>> = packets.iter().map(|packet| packet.departed.map(|[planned, _]| planned)).collect();
    assert!(planned == expected, "what is planned is what the simulator's link says");
    let dropped = planned.iter().filter(|planned| planned.is_none()).count();
    assert_eq!(received.len() + dropped, arrivals.len(), "all others have come");
    let late = packets.iter().filter_map(|packet| packet.departed.map(|[planned, left]| left - planned)).collect();
    let begin = sent[0];
    let of_hosts = sent.iter().zip(&packets).map(|(sent, packet)| (sent - begin, packet.bytes));
    let expected: Option<Vec<u64>> = departures(&config, of_hosts).into_iter().collect();
    let hosts = expected.filter(|_| dropped == 0).map(|expected| {
        let came = received.iter().map(|(_, came)| came - begin);
        quantiles(came.zip(expected).map(|(came, left)| came.abs_diff(left)).collect())
    });
    Differences { router: quantiles(late), hosts, dropped, goes_first }
}

/// What 99 of 100 differences may be, in milliseconds.
const GOALS: [(&str, &str, &str, f64); 2] = [("100mbit", "40ms", "5MB", 0.2), ("1gbit", "20ms", "20MB", 0.5)];
/// How often it is tried: this host and the one that it runs on do other things, too.
const TRIES: usize = 20;

/// Whether the router runs before others, for which the goals are; it says so, and fails with CI=true and root.
fn is_first(goes_first: bool) -> bool {
    if !goes_first {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true and root require this test");
        println!("skipped: the goals are for a router before others, with a core; chrt or taskset does not allow it");
    }
    goes_first
}

/// As above, in words, too; what 99 of 100 differences do not exceed.
fn p99(link: &str, arrivals: &[(Duration, usize)]) -> Option<f64> {
    let Differences { router, hosts, dropped, goes_first } = differences(arrivals, link);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{link}: {} packets, {dropped} dropped; p50, p99 and maximum of the differences in ms:", arrivals.len());
    println!("  of the router {router:?}, of the hosts {hosts:?}; load {}", load.trim());
    is_first(goes_first).then(|| hosts.map_or(0.0, |hosts| hosts[1]).max(router[1]))
}

/// Links with each rate, that of the goal: one that drops, and one that keeps all.
fn links(rate: &str, rtt: &str) -> [String; 2] {
    ["1bdp", "100000pkt"].map(|buffer| format!("rate={rate},rtt={rtt},buffer={buffer}"))
}

#[test]
fn packets_leave_when_the_link_of_the_simulator_says() {
    if are_missing() {
        return;
    }
    let _alone = alone();
    for (rate, rtt, size, goal) in GOALS {
        let links = links(rate, rtt);
        let arrivals = recorded(&links[0], size);
        for link in links {
            let is_met = (0..TRIES).any(|_| p99(&link, &arrivals).is_none_or(|p99| p99 <= goal));
            assert!(is_met, "{link}: 99 of 100 packets within {goal} ms, in none of {TRIES} tries");
        }
    }
}

/// By how much a rate may be off.
const RATE_GOAL: f64 = 0.01;
/// Rates in Mbit/s, and packets of 1500 bytes for some 0.6, 0.5 and 0.2 s, which come a fifth faster.
const RATES: [(u32, usize); 3] = [(20, 1000), (100, 4000), (1000, 20_000)];
/// Starts a router with these options.
type Start = fn(&[&str]) -> Sides;
/// Ports of each kind.
const PORTS: [(&str, Start); 2] = [("tun", Sides::new), ("interfaces", Sides::between_interfaces)];

/// By what part the rate at which packets come is off that of the link; `None`: nobody can say.
fn off((name, start): (&str, Start), (rate, packets): (u32, usize)) -> Option<f64> {
    let bytes = 1500 - HEADERS;
    let apart = Duration::from_secs_f64(1500.0 * 8e-6 / f64::from(rate) / 1.2);
    let arrivals: Vec<_> = (0..packets as u32).map(|number| (apart * number, bytes)).collect();
    let per_second = |nanos: u64| ((packets - 1) * 1500) as f64 * 8e3 / nanos as f64;
    // A sender that is slower than the link says nothing about it.
    for _ in 0..TRIES {
        let mut sides = start(&["--link", &format!("rate={rate}mbit,rtt=20ms,buffer=100000pkt")]);
        let goes_first = sides.goes_first() && sides.has_a_core_of_its_own();
        let (server, client) = sockets(&sides);
        // The two find each other.
        replay(&server, &[(Duration::ZERO, bytes)]);
        client.recv(&mut [0; 2000]).unwrap();
        let sent = replay(&server, &arrivals);
        let received = received(&client);
        let (_, told) = sides.end();
        if received.len() < packets {
            println!("{name}: {} of {packets} packets came: {told}", received.len());
            continue;
        }
        let offered = per_second(sent[packets - 1] - sent[0]);
        let found = per_second(received[packets - 1].1 - received[0].1);
        println!("{name}: {found:.3} Mbit/s of {offered:.0} where {rate} are to be");
        if !is_first(goes_first) {
            return None;
        }
        if offered >= f64::from(rate) * 1.1 {
            return Some((found / f64::from(rate) - 1.0).abs());
        }
    }
    println!("skipped: this host cannot send {rate} Mbit/s, or take it");
    None
}

#[test]
fn the_rate_is_that_of_the_link() {
    if are_missing() {
        return;
    }
    let _alone = alone();
    for ports in PORTS {
        for rate in RATES {
            let is_met = (0..TRIES).any(|_| off(ports, rate).is_none_or(|off| off <= RATE_GOAL));
            assert!(is_met, "{} and {} Mbit/s: within 1 % of the rate, in none of {TRIES} tries", ports.0, rate.0);
        }
    }
}

/// What record/router-accuracy holds.
#[test]
#[ignore = "prints a table that takes an otherwise idle host some minutes"]
fn all_tries() {
    let row = |name: &str, unit: &str, goal: f64, mut tries: Vec<f64>| {
        tries.sort_by(f64::total_cmp);
        let within = tries.iter().filter(|one| **one <= goal).count();
        let (median, most) = ((tries[TRIES / 2 - 1] + tries[TRIES / 2]) / 2.0, tries[TRIES - 1]);
        println!("TABLE {name} {unit} median {median:.4} most {most:.4} within {within} of {TRIES}");
    };
    for (rate, rtt, size, goal) in GOALS {
        let links = links(rate, rtt);
        let arrivals = recorded(&links[0], size);
        for (name, link) in ["drops", "keeps"].into_iter().zip(links) {
            let tries = (0..TRIES).map(|_| p99(&link, &arrivals).unwrap()).collect();
            row(&format!("departures/{rate}/{name}"), "p99_ms", goal, tries);
        }
    }
    for ports in PORTS {
        for rate in RATES {
            let tries = (0..TRIES).map(|_| off(ports, rate).unwrap() * 100.0).collect();
            row(&format!("rate/{}mbit/{}", rate.0, ports.0), "percent", RATE_GOAL * 100.0, tries);
        }
    }
}
