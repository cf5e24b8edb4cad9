//! `flowstart router`: a link of the lab between the interfaces of two network namespaces.
//!
//! What needs root, `ip` and TUN devices is skipped without them, and says why; with CI=true and root it fails.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_datagram::Header;
use namespaces::{Namespace, Sides, are_missing, devices, ip};
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr, RcvBufForce};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use predicates::prelude::*;

/// Bytes of a datagram that is a packet of 1500 with the headers of UDP and IPv4.
const FULL: usize = 1472;
/// ECT(0).
const CAPABLE: u8 = 0b10;

/// Addresses of the two sides, over IPv4 and IPv6.
const ADDRESSES: [[&str; 2]; 2] = [["10.9.0.1:0", "10.9.0.2:0"], ["[fd09::1]:0", "[fd09::2]:0"]];

/// Sockets of servers and clients that know each other.
fn udp(sides: &Sides, servers: &str, clients: &str) -> (UdpSocket, UdpSocket) {
    let bound = |address: &str| {
        let address = address.to_owned();
        move || UdpSocket::bind(address).unwrap()
    };
    let (server, client) = (sides.of_servers(bound(servers)), sides.of_clients(bound(clients)));
    for (one, other) in [(&server, &client), (&client, &server)] {
        one.connect(other.local_addr().unwrap()).unwrap();
        one.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        // All of a test's datagrams fit, also if this host has no time to read.
        setsockopt(one, RcvBufForce, &(8 << 20)).unwrap();
    }
    (server, client)
}

/// Takes a datagram, also if this process was stopped meanwhile.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// When datagrams have come, until none comes for a second.
fn arrivals(socket: &UdpSocket) -> Vec<(u32, Instant)> {
    let mut buffer = [0; 2000];
    let mut came = Vec::new();
    while let Ok(length) = receive(socket, &mut buffer) {
        assert_eq!(length, FULL);
        came.push((u32::from_be_bytes(buffer[..4].try_into().unwrap()), Instant::now()));
    }
    came
}

fn datagram(number: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[7; FULL - 4]].concat()
}

#[test]
fn packets_leave_at_the_rate_of_the_link_and_in_order() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=20ms,buffer=2000pkt", "--stats", "0.2s"]);
    let (server, client) = udp(&sides, "10.9.0.1:0", "10.9.0.2:0");
    let began = Instant::now();
    for number in 0..1000 {
        server.send(&datagram(number)).unwrap();
    }
    let came = arrivals(&client);
    assert!(came.iter().map(|(number, _)| *number).eq(0..1000), "{} came", came.len());
    // 1000 packets of 1500 bytes take 600 ms at 20 Mbit/s, and 10 ms are half of the RTT.
    let took = came[999].1.duration_since(began).as_secs_f64();
    assert!((0.61..0.64).contains(&took), "{took} s");
    let (lines, told) = sides.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    assert_eq!((of("departed"), of("departed_bytes"), of("dropped")), (1000, 1_500_000, 0), "{told}");
    let rates: Vec<f64> = lines.iter().map(|line| line["down"]["mbit_per_s"].as_f64().unwrap()).collect();
    assert!(rates.iter().any(|rate| (18.0..22.0).contains(rate)), "{rates:?}");
}

#[test]
fn a_small_buffer_drops_and_all_is_counted() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::over_ipv4(&["--link", "rate=2mbit,rtt=10ms,buffer=20pkt"]);
    let (server, client) = udp(&sides, "10.9.0.1:0", "10.9.0.2:0");
    for number in 0..200 {
        server.send(&datagram(number)).unwrap();
    }
    let came = arrivals(&client);
    let (_, told) = sides.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    // One was sent and 20 waited; each 6 ms another one found room.
    assert!((21..100).contains(&came.len()) && of("max_waiting") == 20, "{told}");
    assert_eq!((of("departed"), of("departed") + of("dropped")), (came.len() as u64, 200), "{told}");
}

#[test]
fn a_way_there_and_back_takes_the_rtt_also_over_ipv6() {
    if are_missing() {
        return;
    }
    let sides = Sides::new(&["--link", "rate=100mbit,rtt=60ms,buffer=100ms"]);
    for [servers, clients] in ADDRESSES {
        let (server, client) = udp(&sides, servers, clients);
        let mut buffer = [0; 100];
        let took = (0..5).map(|_| {
            let began = Instant::now();
            client.send(b"ping").unwrap();
            receive(&server, &mut buffer).unwrap();
            server.send(b"pong").unwrap();
            receive(&client, &mut buffer).unwrap();
            began.elapsed()
        });
        let shortest = took.min().unwrap();
        assert!((60..66).contains(&shortest.as_millis()), "{shortest:?}");
    }
}

/// A transfer of 2 MB over TCP, by a link of 20 Mbit/s.
fn tcp_takes_as_long_as_the_link_says(sides: &Sides, servers: &'static str) {
    let listener = sides.of_servers(move || TcpListener::bind(servers).unwrap());
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || listener.accept().unwrap().0.write_all(&vec![7; 2_000_000]).unwrap());
    let mut stream = sides.of_clients(move || TcpStream::connect(address).unwrap());
    let began = Instant::now();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    let took = began.elapsed().as_secs_f64();
    serving.join().unwrap();
    // 2 MB and the headers of 1381 packets (52 bytes each) at 20 Mbit/s take 0.83 s, and slow start a few round trips.
    assert!(got == [7; 2_000_000] && (0.8..2.0).contains(&took), "{took} s");
}

const TCP_LINK: [&str; 4] = ["--link", "rate=20mbit,rtt=20ms,buffer=100ms", "--aqm", "fq-codel"];

#[test]
fn a_transfer_of_tcp_takes_as_long_as_its_link_says() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::new(&TCP_LINK);
    tcp_takes_as_long_as_the_link_says(&sides, "10.9.0.1:0");
    let (_, told) = sides.end();
    assert!(told["down"]["malformed"] == 0 && told["up"]["malformed"] == 0, "{told}");
}

#[test]
fn between_interfaces_packets_count_as_on_a_wire_although_offloads_are_on() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::between_interfaces(&TCP_LINK);
    // Hosts have found each other, and checksums that are left to hardware pass.
    for servers in ["10.9.0.1:0", "[fd09::1]:0"] {
        tcp_takes_as_long_as_the_link_says(&sides, servers);
    }
    let (_, told) = sides.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    // 1448 bytes are in a packet of IPv4, 1428 in one of IPv6: 2783 packets at least.
    assert!((2783..3600).contains(&of("departed")) && of("malformed") == 0, "{told}");
    assert!(of("departed_bytes") / of("departed") <= 1500 && of("segmented") > 0 && told["unsent"] == 0, "{told}");
}

#[test]
fn what_comes_faster_than_the_host_takes_it_is_counted() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::between_interfaces(&["--link", "rate=10gbit,rtt=1ms,buffer=100000pkt"]);
    let (server, client) = udp(&sides, "10.9.0.1:0", "10.9.0.2:0");
    // The two find each other.
    server.send(&datagram(0)).unwrap();
    receive(&client, &mut [0; 2000]).unwrap();
    // More than the socket's buffer takes.
    let sent = 40_000;
    sides.while_it_stands_still(|| (1..=sent).for_each(|number| drop(server.send(&datagram(number)))));
    std::thread::sleep(Duration::from_secs(2));
    let (_, told) = sides.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    assert!(of("missed") > 1000, "{told}");
    // What comes between the two besides are some packets of IPv6.
    let all = of("missed") + of("departed") + of("dropped");
    assert!((u64::from(sent)..u64::from(sent) + 100).contains(&all), "{told}");
}

#[test]
fn an_interface_that_is_down_or_takes_shorter_packets_is_refused() {
    if are_missing() {
        return;
    }
    let devices = devices();
    let namespace = Namespace::new(&devices[0]);
    let within = |arguments: &[&str]| ip(&[&["-n", &namespace.0][..], arguments].concat());
    within(&["link", "add", &devices[0], "type", "veth", "peer", "name", &devices[1]]);
    let refused = || {
        let mut program = Command::new("ip");
        program.args(["netns", "exec", &namespace.0]).arg(assert_cmd::cargo::cargo_bin("flowstart"));
        program.args(["router", "--link", "lte", "--port", &devices[0], "--port", &devices[1]]);
        let told = program.timeout(Duration::from_secs(20)).assert().code(2).get_output().stderr.clone();
        String::from_utf8(told).unwrap()
    };
    let told = refused();
    assert!(told.contains(&format!("--port `{0}` is down; `ip link set {0} up` brings it up", devices[0])), "{told}");
    for device in &devices {
        within(&["link", "set", device, "up"]);
    }
    within(&["link", "set", &devices[1], "mtu", "1280"]);
    let told = refused();
    assert!(told.contains("takes packets of 1500 bytes") && told.contains("of 1280"), "{told}");
}

#[test]
fn frames_that_carry_no_whole_packet_are_counted_and_dropped() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::between_interfaces(&["--link", "rate=20mbit,rtt=10ms"]);
    let packet = [
        &[0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7],
        &[0; 95][..],
    ];
    let packet = packet.concat();
    let frame = |kind: &[u8], carried: &[u8]| [&[0xff; 6][..], &[2; 6], kind, carried].concat();
    let (tagged, lldp, ipv4) = (&[0x81, 0, 0, 5, 8, 0], &[0x88, 0xcc], &[8, 0]);
    let mut wrong = packet.clone();
    wrong[8] = 63;
    sides.send_frames(vec![
        frame(tagged, &packet),
        frame(lldp, &packet),
        frame(ipv4, &packet[..40]),
        frame(ipv4, &packet[..1]),
        frame(ipv4, &[]),
        frame(ipv4, &wrong),
        frame(ipv4, &packet),
    ]);
    std::thread::sleep(Duration::from_millis(100));
    let (_, told) = sides.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    // A host with IPv6 may send some by itself.
    assert!((of("foreign"), of("malformed")) == (2, 4) && of("departed") >= 1, "{told}");
}

#[test]
fn marks_stand_in_headers_that_stay_whole() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=10ms,buffer=1000pkt", "--aqm", "codel"]);
    let (server, client) = udp(&sides, "10.9.0.1:0", "10.9.0.2:0");
    for number in 0..1000 {
        let header = Header { tos: CAPABLE, ..Header::default() };
        flowstart_datagram::send(&server, &datagram(number), None, &header).unwrap();
    }
    // The kernel drops headers whose checksum is wrong.
    let came = arrivals(&client).len() as u64;
    let (_, told) = sides.end();
    let of = |name: &str| told["down"][name].as_u64().unwrap();
    assert!(of("marked") > 3 && of("marked") < 1000, "{told}");
    assert_eq!((came, of("departed") + of("dropped")), (of("departed"), 1000), "{told}");
}

#[test]
fn a_quick_start_router_writes_the_option_of_real_packets() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::new(&["--link", "rate=20mbit,rtt=10ms,quick_start=target"]);
    for [servers, clients] in ADDRESSES {
        let (server, client) = udp(&sides, servers, clients);
        flowstart_datagram::show_headers(&client, true).unwrap();
        let version = IpVersion::of(client.local_addr().unwrap().ip());
        // 15 is 1.31072 Gbit/s, and 90 % of 20 Mbit/s leave room for 10.24 Mbit/s, whose code is 8.
        let code = RateCode::from_bits;
        let request = |rate, ttl| IpOption::RateRequest { rate, ttl, nonce: Nonce::from_bits(9) };
        let option = request(code(15), 77).emit(version);
        flowstart_datagram::send(&server, b"request", None, &Header { options: &option, ..Header::default() }).unwrap();
        let came = flowstart_datagram::receive(&client, &mut [0; 100]).unwrap();
        let Ok(Some(IpOption::RateRequest { rate, ttl, .. })) = IpOption::among(version, came.options()) else {
            panic!("no request: {came:?}")
        };
        // Both TTLs are one lower.
        assert_eq!((came.length, came.ttl, rate, ttl), (7, Some(63), code(8), 76));
        // What has no option crosses a wire, and one whose time is over does not.
        flowstart_datagram::send(&server, b"plain", None, &Header::default()).unwrap();
        assert_eq!(flowstart_datagram::receive(&client, &mut [0; 100]).unwrap().ttl, Some(64));
        // It comes not for a second, in which the router forgets what it has approved.
        let last = Header { options: &option, ttl: 1, ..Header::default() };
        flowstart_datagram::send(&server, b"last", None, &last).unwrap();
        assert!(receive(&client, &mut [0; 100]).is_err());
    }
    let (_, told) = sides.end();
    let of = |name: &str| told["quick_start"][name].as_u64().unwrap();
    assert_eq!((of("requests"), of("reduced"), of("expired")), (2, 2, 2), "{told}");
}

#[test]
fn a_hop_takes_one_from_every_ttl_and_drops_what_has_no_more() {
    if are_missing() {
        return;
    }
    for start in [Sides::new, Sides::between_interfaces] {
        let mut sides = start(&["--link", "rate=20mbit,rtt=10ms,quick_start=target", "--decrement-ttl"]);
        for [servers, clients] in ADDRESSES {
            // Between interfaces hosts find each other although what crosses a hop is refused for that.
            let (server, client) = udp(&sides, servers, clients);
            let version = IpVersion::of(client.local_addr().unwrap().ip());
            for (one, other) in [(&server, &client), (&client, &server)] {
                flowstart_datagram::show_headers(other, true).unwrap();
                // The kernel would drop a header whose checksum is wrong.
                for ttl in [255, 64, 2] {
                    flowstart_datagram::send(one, b"hop", None, &Header { ttl, ..Header::default() }).unwrap();
                    assert_eq!(flowstart_datagram::receive(other, &mut [0; 100]).unwrap().ttl, Some(ttl - 1));
                }
                flowstart_datagram::send(one, b"last", None, &Header { ttl: 1, ..Header::default() }).unwrap();
                assert!(receive(other, &mut [0; 100]).is_err());
            }
            // One hop with an option is one hop.
            let report = IpOption::ApprovedRate { rate: RateCode::MAX, nonce: Nonce::from_bits(9) }.emit(version);
            flowstart_datagram::send(&server, b"report", None, &Header { options: &report, ..Header::default() })
                .unwrap();
            assert_eq!(flowstart_datagram::receive(&client, &mut [0; 100]).unwrap().ttl, Some(63));
        }
        let (_, told) = sides.end();
        assert_eq!((&told["down"]["expired"], &told["up"]["expired"]), (&2.into(), &2.into()), "{told}");
    }
}

/// What the kernel made of a message of ICMP about a datagram of this socket: who sent it, and its type.
fn told_of(socket: &UdpSocket) -> Option<(String, u8)> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let (mut buffer, mut control) = ([0; 100], [0; 512]);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        if let Ok(came) = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            return came.cmsgs().unwrap().find_map(|message| match message {
                ControlMessageOwned::Ipv4RecvErr(told, Some(from)) => {
                    Some((Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr)).to_string(), told.ee_type))
                }
                ControlMessageOwned::Ipv6RecvErr(told, Some(from)) => {
                    Some((Ipv6Addr::from(from.sin6_addr.s6_addr).to_string(), told.ee_type))
                }
                _ => None,
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn a_hop_with_an_address_tells_senders_that_the_time_of_a_packet_is_over() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::between_interfaces(&["--link", "rate=20mbit,rtt=10ms", "--decrement-ttl"]);
    sides.give_address_to_port_of_servers(&["10.9.0.254/24", "fd09::254/64"]);
    for ([servers, clients], expected) in ADDRESSES.into_iter().zip([("10.9.0.254", 11), ("fd09::254", 3)]) {
        let (server, client) = udp(&sides, servers, clients);
        for socket in [&server, &client] {
            // Either is refused for a socket of the other version.
            let _ = setsockopt(socket, Ipv4RecvErr, &true);
            let _ = setsockopt(socket, Ipv6RecvErr, &true);
            // Hosts find each other before.
            socket.send(b"here").unwrap();
            flowstart_datagram::send(socket, b"last", None, &Header { ttl: 1, ..Header::default() }).unwrap();
        }
        // The kernel believes a message that quotes a datagram of its own, and whose checksum is right.
        let (from, kind) = told_of(&server).expect("a message");
        assert_eq!((from.as_str(), kind), expected);
        assert_eq!(told_of(&client), None, "the port of clients has no address");
    }
    let (_, told) = sides.end();
    let of = |direction: &str, name: &str| told[direction][name].as_u64().unwrap();
    assert_eq!(
        [of("down", "expired"), of("down", "time_exceeded"), of("down", "without_address")],
        [2, 2, 0],
        "{told}"
    );
    assert_eq!([of("up", "expired"), of("up", "time_exceeded"), of("up", "without_address")], [2, 0, 2], "{told}");
}

#[test]
fn metrics_are_answered_while_packets_pass() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::over_ipv4(&["--link", "rate=20mbit,rtt=10ms,buffer=20pkt", "--metrics", "127.0.0.1:0"]);
    let url = sides.said["metrics"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
    let (server, client) = udp(&sides, "10.9.0.1:0", "10.9.0.2:0");
    for number in 0..100 {
        server.send(&datagram(number)).unwrap();
    }
    let came = arrivals(&client).len();
    let answer = |request: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    // Counts are up to a second old.
    let departed = format!("flowstart_router_departed_packets_total{{direction=\"down\"}} {came}\n");
    let began = Instant::now();
    let mut metrics = answer("GET /metrics");
    while !metrics.contains(&departed) && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
        metrics = answer("GET /metrics");
    }
    let dropped = format!("flowstart_router_dropped_packets_total{{direction=\"down\"}} {}\n", 100 - came);
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(metrics.contains(&departed) && metrics.contains(&dropped) && came < 100, "{came}: {metrics}");
    let named = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    assert!(named("flowstart_router_sojourn_seconds{direction=\"down\"}").is_some_and(|time| time > 0.0), "{metrics}");
    assert_eq!(named("flowstart_router_quick_start_actions_total{action=\"approved\"}"), Some(0.0), "{metrics}");
    assert!(answer("PUT /metrics").starts_with("HTTP/1.1 405") && answer("GET /").starts_with("HTTP/1.1 404"));
    sides.end();
}

#[test]
fn recordings_of_mahimahi_are_the_capacity_of_either_way() {
    if are_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A packet of 1500 bytes each millisecond to clients, and every four back.
    let file = |name: &str, period: usize| {
        let file = folder.path().join(name);
        let times: Vec<String> = (period..=1000).step_by(period).map(|time| format!("{time}\n")).collect();
        std::fs::write(&file, times.concat()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let mut sides = Sides::over_ipv4(&["--mahimahi", &file("up", 4), &file("down", 1)]);
    let (server, client) = udp(&sides, "10.9.0.1:0", "10.9.0.2:0");
    for (one, other, packets, wanted) in [(&server, &client, 500, 0.5), (&client, &server, 125, 0.5)] {
        let began = Instant::now();
        for number in 0..packets {
            one.send(&datagram(number)).unwrap();
        }
        let came = arrivals(other);
        let took = came.last().unwrap().1.duration_since(began).as_secs_f64();
        assert!(came.len() == packets as usize && (wanted - 0.01..wanted + 0.1).contains(&took), "{took} s");
    }
    let (_, told) = sides.end();
    assert!(told["down"]["dropped"] == 0 && told["up"]["dropped"] == 0, "{told}");
}

#[test]
fn a_device_that_is_taken_away_ends_the_router() {
    if are_missing() {
        return;
    }
    for start in [Sides::new, Sides::between_interfaces] {
        let mut sides = start(&["--link", "rate=20mbit,rtt=10ms"]);
        sides.remove_device_of_servers();
        let (status, told) = sides.wait();
        assert!(status.code() == Some(1) && told.contains("is gone"), "{told}");
    }
}

#[test]
fn what_a_router_cannot_do_is_refused() {
    let refused = |options: &[&str]| {
        let mut router = Command::cargo_bin("flowstart").unwrap();
        let refused = router.arg("router").args(options).assert().code(2);
        String::from_utf8(refused.get_output().stderr.clone()).unwrap()
    };
    let ports = ["--port", "tun:fs-one", "--port", "tun:fs-two"];
    for (link, told) in [
        ("lte,hint=5mbit", "a router has no hint"),
        ("lte,hops=2", "a router has no hops"),
        ("geo", "access_rate=10gbit leaves it out"),
        ("rate=0,rtt=1ms", "rate"),
    ] {
        let refused = refused(&[&["--link", link][..], &ports].concat());
        assert!(refused.contains(told), "{refused}");
    }
    assert!(refused(&[&["--link", "lte", "--aqm", "oracle"][..], &ports].concat()).contains("only a simulator"));
    let with = |ports: &[&str]| {
        let ports: Vec<&str> = ports.iter().flat_map(|port| ["--port", *port]).collect();
        refused(&[&["--link", "lte"], &ports[..]].concat())
    };
    assert!(with(&["tun:one"]).contains("two are needed"));
    assert!(with(&["tun:one", "tun:two", "tun:three"]).contains("two are needed"));
    assert!(with(&["tun:one", "tun:one"]).contains("named twice"));
    assert!(with(&["tun:one", "tun:sixteen-letters-"]).contains("1 to 15 letters"));
    assert!(with(&["tun:one", "tun:%d"]).contains("1 to 15 letters"));
    assert!(with(&["fs-none", "lo"]).contains("there is no interface of this name"));
    assert!(with(&["tun:lo", "tun:one"]).contains("there is an interface of this name already"));
    if !are_missing() {
        assert!(with(&["tun:fs-one", "lo"]).contains("two TUN devices or two interfaces"));
    }
    let recorded = |options: &[&str]| refused(&[&["--mahimahi"], options, &ports[..]].concat());
    assert!(recorded(&["nowhere.up", "nowhere.down"]).contains("trace: cannot read ./nowhere.down"));
    assert!(recorded(&["a,b", "c"]).contains("--mahimahi `a,b`: a name without commas is needed"));
    assert!(recorded(&["one"]).contains("2 values required"));
    assert!(refused(&ports).contains("--link"));
    let nowhere = refused(&[&["--link", "lte", "--packet-log", "/nowhere/log.csv"][..], &ports].concat());
    assert!(nowhere.contains("--packet-log `/nowhere/log.csv`: No such file"), "{nowhere}");
    for stats in ["0", "10ms", "2h", "x"] {
        refused(&[&["--link", "lte", "--stats", stats][..], &ports].concat());
    }
    let mut help = Command::cargo_bin("flowstart").unwrap();
    help.args(["router", "--help"]).assert().success().stdout(predicate::str::contains("tun:NAME"));
}

#[test]
fn nothing_is_left_behind() {
    if are_missing() {
        return;
    }
    let mut sides = Sides::new(&["--link", "rate=20mbit,rtt=10ms"]);
    let devices = sides.devices();
    assert!(devices.iter().all(|device| sides.has_device(device)), "{devices:?}");
    sides.end();
    assert!(!devices.iter().any(|device| sides.has_device(device)), "{devices:?}");
    drop(sides);
    assert!(!devices.iter().any(|name| Path::new("/run/netns").join(name).exists()), "{devices:?}");
}
