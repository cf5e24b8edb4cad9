//! Captures of real QUIC.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use flowstart_core::aqm::EcnCodepoint;
use flowstart_sim::packet::Direction;

use super::tests::{capture_of, exported, exported_capture, has_tshark, plan_of, tshark};
use super::*;
use crate::trace::traced::{TracedRun, capture};

/// Transports, schemes and numbers of flows whose captures differ.
const RUNS: &[(&str, &str, u32)] = &[
    ("quic", "slow-start", 1),
    ("quic:ecn=true", "blitzstart", 2),
    ("quic:retry=true", "slow-start", 1),
    ("quic:opening=zero-rtt", "slow-start", 1),
];

/// Frames of path validation (RFC 9000, sections 19.17 and 19.18).
const PATH_CHALLENGE: &str = "quic.frame_type == 0x1a";
const PATH_RESPONSE: &str = "quic.frame_type == 0x1b";

fn run(transport: &str, scheme: &str, flows: u32) -> (Plan, Cell, TracedRun) {
    let (plan, cell) = plan_of(transport, scheme, flows);
    let captured = capture(&plan, &cell, 0);
    assert!(captured.outcomes.iter().all(|outcome| outcome.failure.is_none() && outcome.record.retransmitted > 0));
    (plan, cell, captured)
}

#[test]
fn a_capture_has_every_datagram_of_the_sender_whole() {
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, captured) = run(transport, scheme, flows);
        let (_, packets) = capture_of(&plan, &cell, &captured);
        let trace = captured.finished.world.network.trace.as_ref().unwrap();
        let seen: Vec<_> = trace
            .packets
            .iter()
            .filter(|packet| captured.place(packet.flow).is_some() && packet.is_at_sender())
            .collect();
        assert_eq!(packets.len(), seen.len(), "{transport}");
        for (packet, source) in packets.iter().zip(seen) {
            assert_eq!((packet.interface, packet.nanos), (0, u128::from(source.time.as_nanos())));
            assert_eq!((packet.original, packet.data.len()), (source.size, source.size as usize), "{transport}");
            let sliced = SlicedPacket::from_ethernet(&packet.data).unwrap();
            let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (sliced.net, sliced.transport) else {
                panic!("no UDP over IPv4");
            };
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            // RFC 3168, section 5: ECT(0) is 0b10.
            let ecn = if source.ecn == EcnCodepoint::Ect0 { 2 } else { 0 };
            assert_eq!(header.ecn.value(), ecn, "{transport}");
            let sum = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
            assert_eq!(udp.checksum(), sum);
            let client = 40_000 + captured.place(source.flow).unwrap() as u16;
            let ports = if source.direction == Direction::Forward { (443, client) } else { (client, 443) };
            assert_eq!((udp.source_port(), udp.destination_port()), ports);
        }
    }
}

#[test]
fn the_log_tells_what_the_client_hinted_and_what_of_it_is_used() {
    let (plan, cell, captured) = run("quic:hint_policy=cap:rate=4mbit", "blitzstart", 1);
    let mut file = Vec::new();
    captured.write_qlog(&plan, &cell, &mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let line = text.lines().find(|line| line.contains("flowstart:hint_received")).unwrap();
    let event: serde_json::Value = serde_json::from_str(line.trim_start_matches('\u{1e}')).unwrap();
    // The link has 10 Mbit/s.
    assert_eq!(event["data"], serde_json::json!({ "hinted": 10_000_000, "used": 4_000_000 }));
}

#[test]
fn variables_of_a_real_flow_are_shown_from_its_launch_on() {
    let (plan, cell) = plan_of("quic", "blitzstart", 1);
    let (_, _, page) = exported(&plan, &cell, Columns::default());
    let bandwidth = page.variables.iter().find(|variable| variable.name == "bandwidth").unwrap();
    // The link has 10 Mbit/s. The first window of which the trace knows is the launch's.
    assert_eq!((bandwidth.algorithm.as_str(), bandwidth.points[0]), ("blitzstart", [page.cwnd[0][0], 10.0]));
}

#[test]
fn lengths_and_times_of_a_capture_repeat() {
    let of_run = || {
        let (plan, cell, captured) = run("quic", "blitzstart", 1);
        capture_of(&plan, &cell, &captured).1
    };
    let (first, second) = (of_run(), of_run());
    assert!(first.iter().zip(&second).all(|(a, b)| (a.nanos, a.original) == (b.nanos, b.original)));
    assert_eq!(first.len(), second.len());
}

#[test]
fn tshark_decrypts_a_capture() {
    if !has_tshark() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("flowstart-quic-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, captured) = run(transport, scheme, flows);
        let packets = capture_of(&plan, &cell, &captured).1;
        // Here each secret precedes the packets that it decrypts, and others follow them.
        let file = exported_capture(&plan, &cell);
        let path = folder.join("trace.pcapng").to_str().unwrap().to_owned();
        std::fs::write(&path, file).unwrap();
        let checked = ["-r", &path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-Y"];
        let count = |filter: &str| tshark(&[&checked[..], &[filter]].concat()).lines().count();
        assert_eq!(count("quic"), packets.len(), "{transport}");
        let wrong = "_ws.malformed || quic.decryption_failed || ip.checksum.status == \"Bad\" || udp.checksum.status == \"Bad\"";
        assert_eq!(count(wrong), 0, "{transport}");
        for (place, outcome) in captured.outcomes.iter().enumerate() {
            // Two hexadecimal digits a byte; a packet may carry several pieces.
            let bytes = |port: &str| {
                let filter = format!("udp.{port} == {} && quic.stream_data", 40_000 + place);
                let found = tshark(&["-r", &path, "-Y", &filter, "-T", "fields", "-e", "quic.stream_data"]);
                found.lines().flat_map(|line| line.split(',')).map(|piece| piece.len() as u64 / 2).sum::<u64>()
            };
            let sent = outcome.size.get() + outcome.record.retransmitted;
            assert_eq!(bytes("dstport"), sent, "{transport}");
            // A request of 230 bytes; it may have to be repeated.
            assert!(bytes("srcport") >= 230, "{transport}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn tshark_sees_a_moved_client_and_the_validation_of_its_path() {
    if !has_tshark() {
        return;
    }
    let scenario = "link = [\"dsl-fast\"]\nsize = [\"5MB\"]\nscheme = [\"blitzstart\"]\nmove = [\"lte,at=500ms\"]\nreps = 1\n\
                    transport = \"quic\"";
    let plan = crate::study::scenario::Scenario::from_text(scenario).unwrap().plan(std::path::Path::new(".")).unwrap();
    let cell = plan.cells()[0];
    let captured = capture(&plan, &cell, 0);
    let (file, packets) = capture_of(&plan, &cell, &captured);
    let path = std::env::temp_dir().join(format!("flowstart-move-{}.pcapng", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let count = |filter: &str| tshark(&["-r", path.to_str().unwrap(), "-Y", filter]).lines().count();
    assert_eq!(count("quic && !quic.decryption_failed && !_ws.malformed"), packets.len());
    assert!(count("ip.src == 10.0.1.2 && frame.time_relative < 0.5") == 0);
    assert!(count("ip.addr == 10.0.0.2 && frame.time_relative > 0.6") == 0);
    assert!(count(&format!("ip.dst == 10.0.1.2 && {PATH_CHALLENGE}")) > 0);
    assert!(count(&format!("ip.src == 10.0.1.2 && {PATH_RESPONSE}")) > 0);
    std::fs::remove_file(&path).unwrap();
}
