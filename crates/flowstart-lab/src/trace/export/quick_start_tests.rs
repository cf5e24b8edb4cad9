//! Quick-Start's options in a capture, read by `tshark`.

use std::path::Path;

use flowstart_core::units::Rate;

use super::tests::{has_tshark, tshark};
use super::*;
use crate::study::scenario::Scenario;
#[cfg(feature = "quic")]
use crate::trace::traced::capture;
use crate::trace::traced::{TracedRun, trace};

/// A flow that requests 10 Mbit/s on a path of three routers that approve at most 9.
fn scenario_of(transport: &str, keys: &str) -> Scenario {
    Scenario {
        link: vec!["rate=10mbit,rtt=80ms,buffer=150pkt,hops=2,quick_start=target".into()],
        size: vec!["300KB".into()],
        scheme: vec![format!("quick-start:request=fixed,rate=10mbit{keys}")],
        aqm: vec!["taildrop".into()],
        competitor: vec!["none".into()],
        transport: vec![transport.into()],
        flows: 1,
        reps: 1,
        seed: 3,
        ..Scenario::default()
    }
}

fn plan(scenario: &Scenario) -> (Plan, Cell) {
    let plan = scenario.plan(Path::new(".")).unwrap();
    let cell = plan.cells()[0];
    (plan, cell)
}

/// A separate folder for this test, and the capture in it.
fn file_of(test: &str, plan: &Plan, cell: &Cell, run: &TracedRun) -> String {
    let folder = std::env::temp_dir().join(format!("flowstart-quick-start-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut bytes = Vec::new();
    run.write_pcapng(plan, cell, &mut bytes).unwrap();
    let file = folder.join("run.pcapng");
    std::fs::write(&file, bytes).unwrap();
    file.to_str().unwrap().to_owned()
}

fn remove(file: &str) {
    std::fs::remove_dir_all(Path::new(file).parent().unwrap()).unwrap();
}

/// Asserts that `tshark` complains of no packet.
fn assert_well_formed(file: &str, more: &str) {
    let wrong = format!("_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\"{more}");
    assert_eq!(fields(file, &wrong, &["frame.number"]), Vec::<Vec<String>>::new());
}

/// Fields of the packets that have one of them, as `tshark` reads them.
fn fields(file: &str, filter: &str, names: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-r", file, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
    arguments.extend(["-Y", filter, "-T", "fields"]);
    arguments.extend(names.iter().flat_map(|name| ["-e", *name]));
    tshark(&arguments).lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn tshark_reads_every_field_of_quick_starts_options() {
    if !has_tshark() {
        return;
    }
    for transport in
        ["model-tcp", "model-tcp:profile=ns2-sack1", "model-tcp:profile=tcp-rfc,opening=sender", "model-quic"]
    {
        let (plan, cell) = plan(&scenario_of(transport, ""));
        let traced = trace(&plan, &cell, 0);
        let record = &traced.outcomes[0].record;
        // 10 Mbit/s are requested as 10.24; 90 % of 10 are 9, which the code rounds down to 5.12.
        assert_eq!(record.requested_rate, Some(Rate::from_bits_per_sec(10_240_000)), "{transport}");
        assert_eq!(record.approved_rate, Some(Rate::from_bits_per_sec(5_120_000)), "{transport}");
        let mut qlog = Vec::new();
        traced.write_qlog(&plan, &cell, &mut qlog).unwrap();
        let qlog = String::from_utf8(qlog).unwrap();
        let launch = qlog.lines().find(|line| line.contains("flowstart:launch")).unwrap();
        assert!(launch.contains(r#"{"name":"quick-start","verdict":"used","value":5120000"#), "{transport}: {launch}");
        let file = file_of("handshake", &plan, &cell, &traced);
        assert_well_formed(&file, "");
        // Function, rate and TTL as they leave the sender and as they arrive, the three routers between.
        let names = ["frame.interface_name", "ip.opt.qs_func", "ip.opt.qs_rate", "ip.opt.qs_ttl", "ip.opt.qs_ttl_diff"];
        let ip = fields(&file, "ip.opt.qs_func", &names);
        let row = |at: usize| (ip[at][0].as_str(), ip[at][1].parse::<u8>().unwrap(), ip[at][2].parse::<u8>().unwrap());
        assert_eq!(ip.len(), 4, "{transport}: {ip:?}");
        assert_eq!((row(0), row(1)), (("sender", 0, 8), ("receiver", 0, 7)), "{transport}");
        assert_eq!((row(2), row(3)), (("sender", 8, 7), ("receiver", 8, 7)), "{transport}");
        let ttl = |at: usize| ip[at][3].parse::<u8>().unwrap();
        assert_eq!(ttl(0).wrapping_sub(ttl(1)), 3, "{transport}");
        if plan.transports[0].profile.protocol == Protocol::Tcp {
            let tcp = fields(&file, "tcp.options.qs", &["tcp.options.qs.rate", "tcp.options.qs.ttl_diff"]);
            assert_eq!(tcp.len(), 2, "{transport}: as it leaves and as it arrives");
            assert_eq!(tcp[0], ["7".to_owned(), 64u8.wrapping_sub(ttl(0)).to_string()], "{transport}");
        }
        remove(&file);
    }
}

#[test]
fn tshark_reads_requests_answers_and_reports_in_mid_connection() {
    if !has_tshark() {
        return;
    }
    for transport in ["model-tcp", "model-tcp:profile=ns2-sack1", "model-quic"] {
        let scenario = Scenario {
            size: Vec::new(),
            application: vec!["chunks:size=300KB,interval=3s,count=2".into()],
            idle: vec!["rfc5681".into()],
            ..scenario_of(transport, ",after_idle=1s")
        };
        let (plan, cell) = plan(&scenario);
        let traced = trace(&plan, &cell, 0);
        assert_eq!(traced.outcomes[0].record.later_approvals, 1, "{transport}");
        let file = file_of("idle", &plan, &cell, &traced);
        assert_well_formed(&file, "");
        let names = [
            "frame.interface_name",
            "ip.opt.qs_func",
            "ip.opt.qs_rate",
            "ip.opt.qs_ttl",
            "ip.ttl",
            "frame.len",
            "frame.time_relative",
        ];
        let ip = fields(&file, "ip.opt.qs_func && frame.time_relative > 2", &names);
        assert_eq!(ip.len(), 4, "{transport}: {ip:?}");
        let number = |at: usize, field: usize| ip[at][field].parse::<u32>().unwrap();
        let row = |at: usize| (ip[at][0].as_str(), number(at, 1), number(at, 2));
        // The request is reduced on its way from 10.24 to 5.12 Mbit/s; the report contains the result.
        assert_eq!((row(0), row(1)), (("sender", 0, 8), ("receiver", 0, 7)), "{transport}");
        assert_eq!((row(2), row(3)), (("sender", 8, 7), ("receiver", 8, 7)), "{transport}");
        let ttls = |at: usize| (number(at, 3) as u8, number(at, 4) as u8);
        let (left, arrived) = (ttls(0), ttls(1));
        assert_eq!((left.1, left.1 - arrived.1, left.0.wrapping_sub(arrived.0)), (64, 3, 3), "{transport}");
        // Data, as long as a full packet without an option; the report follows a round trip of 80 ms later. The
        // handshake is over by then.
        let full = fields(&file, "frame.time_relative > 0.2 && frame.time_relative < 2", &["frame.len"]);
        let longest = full.iter().map(|row| row[0].parse::<u32>().unwrap()).max().unwrap();
        assert!((0..4).all(|at| number(at, 5) == longest), "{transport}: {ip:?}, {longest}");
        let time = |at: usize| ip[at][6].parse::<f64>().unwrap();
        assert!((0.080..0.090).contains(&(time(2) - time(0))), "{transport}: {ip:?}");
        if plan.transports[0].profile.protocol == Protocol::Tcp {
            let names = ["tcp.options.qs.rate", "tcp.options.qs.ttl_diff", "tcp.len", "tcp.flags"];
            let tcp = fields(&file, "tcp.options.qs && frame.time_relative > 2", &names);
            assert_eq!(tcp.len(), 2, "{transport}: as it leaves and as it arrives");
            // Only an acknowledgement.
            let diff = left.1.wrapping_sub(left.0).to_string();
            assert_eq!(tcp[0], ["7".to_owned(), diff, "0".into(), "0x0010".into()], "{transport}");
        }
        remove(&file);
    }
}

#[cfg(feature = "quic")]
#[test]
fn tshark_reads_the_options_and_the_answer_of_the_real_stack() {
    if !has_tshark() {
        return;
    }
    for transport in ["quic", "quic:retry=true"] {
        let (plan, cell) = plan(&scenario_of(transport, ""));
        let captured = capture(&plan, &cell, 0);
        let record = &captured.outcomes[0].record;
        assert_eq!(record.requested_rate, Some(Rate::from_bits_per_sec(10_240_000)), "{transport}");
        assert_eq!(record.approved_rate, Some(Rate::from_bits_per_sec(5_120_000)), "{transport}");
        let file = file_of("stack", &plan, &cell, &captured);
        assert_well_formed(&file, " || quic.decryption_failed || udp.checksum.status == \"Bad\"");
        let names = ["ip.src", "ip.opt.qs_func", "ip.opt.qs_rate", "ip.opt.qs_ttl", "quic.long.packet_type"];
        let ip = fields(&file, "ip.opt.qs_func", &names);
        assert_eq!(ip.len(), 2, "{transport}: {ip:?}");
        // The request leaves with the server's first Initial packet, the report with 1-RTT data.
        assert_eq!(ip[0][..3], ["10.0.0.1", "0", "8"], "{transport}");
        assert!(ip[0][4].starts_with('0'), "{transport}: {ip:?}");
        assert_eq!(
            (&ip[1][..3], ip[1][4].as_str()),
            (&["10.0.0.1", "8", "7"].map(str::to_owned)[..], ""),
            "{transport}"
        );
        // The answer: TCP's option 27 with the rate that arrived, and 64 less the TTL that left.
        let answer = fields(&file, "quic.frame_type == 0x31", &["ip.src", "quic.dg"]);
        assert_eq!(answer.len(), 1, "{transport}");
        let diff = 64u8.wrapping_sub(ip[0][3].parse().unwrap());
        let begin = format!("1b0807{diff:02x}");
        assert!(answer[0][1].starts_with(&begin) && answer[0][0] == "10.0.0.2", "{transport}: {answer:?}, {begin}");
        remove(&file);
    }
}

#[test]
fn tshark_does_not_know_the_second_pass_and_finds_nothing_malformed() {
    if !has_tshark() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("flowstart-second-pass-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.pcapng").to_str().unwrap().to_owned();
    for transport in ["model-tcp", "model-tcp:profile=tcp-rfc,opening=sender", "model-quic"] {
        let mut scenario = scenario_of(transport, ",passes=2");
        scenario.link[0].push_str(",qs_flows=64,qs_provisional=500ms");
        let (plan, cell) = plan(&scenario);
        let traced = trace(&plan, &cell, 0);
        assert_eq!(traced.outcomes[0].record.approved_rate, Some(Rate::from_bits_per_sec(5_120_000)), "{transport}");
        let mut bytes = Vec::new();
        traced.write_pcapng(&plan, &cell, &mut bytes).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let malformed = fields(&file, "_ws.malformed || ip.checksum.status == \"Bad\"", &["frame.number"]);
        assert_eq!(malformed, Vec::<Vec<String>>::new(), "{transport}");
        // First pass, second pass and report, each as it leaves and as it arrives.
        let functions = fields(&file, "ip.opt.qs_func", &["ip.opt.qs_func", "ip.opt.qs_rate"]);
        let expected = [["0", "8"], ["0", "7"], ["1", ""], ["1", ""], ["8", "7"], ["8", "7"]];
        assert_eq!(functions, expected.map(|row| row.map(str::to_owned).to_vec()), "{transport}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
