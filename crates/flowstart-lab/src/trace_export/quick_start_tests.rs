//! Quick-Start's options in a capture, read by `tshark`.

use std::path::Path;

use flowstart_core::units::Rate;

use super::tests::{has_tshark, tshark};
use super::*;
use crate::scenario::Scenario;

/// A flow that asks for 10 Mbit/s on a path of three routers that approve at most 9.
fn run(transport: &str) -> (Plan, Cell, TracedRun) {
    run_with(transport, "", "")
}

/// As [`run`], with these keys of the routers and of the scheme in addition.
fn run_with(transport: &str, routers: &str, scheme: &str) -> (Plan, Cell, TracedRun) {
    let scenario = Scenario {
        link: vec![format!("rate=10mbit,rtt=80ms,buffer=150pkt,hops=2,quick_start=target{routers}")],
        size: vec!["300KB".into()],
        scheme: vec![format!("quick-start:request=fixed,rate=10mbit{scheme}")],
        aqm: vec!["taildrop".into()],
        competitor: vec!["none".into()],
        transport: transport.into(),
        flows: 1,
        reps: 1,
        seed: 3,
        ..Scenario::default()
    };
    let plan = scenario.plan(Path::new(".")).unwrap();
    let cell = plan.cells()[0];
    let traced = trace(&plan, &cell, 0);
    (plan, cell, traced)
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
        eprintln!("skipped: there is no tshark");
        return;
    }
    let folder = std::env::temp_dir().join(format!("flowstart-quick-start-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.pcapng").to_str().unwrap().to_owned();
    for transport in
        ["model-tcp", "model-tcp:profile=ns2-sack1", "model-tcp:profile=tcp-rfc,opening=sender", "model-quic"]
    {
        let (plan, cell, traced) = run(transport);
        let record = &traced.outcomes[0].record;
        // 10 Mbit/s are asked for as 10.24; 90 % of 10 are 9, of which the code names 5.12.
        assert_eq!(record.requested_rate, Some(Rate::from_bits_per_sec(10_240_000)), "{transport}");
        assert_eq!(record.approved_rate, Some(Rate::from_bits_per_sec(5_120_000)), "{transport}");
        let mut bytes = Vec::new();
        traced.write_pcapng(&plan, &cell, &mut bytes).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let malformed = fields(&file, "_ws.malformed || ip.checksum.status == \"Bad\"", &["frame.number"]);
        assert_eq!(malformed, Vec::<Vec<String>>::new(), "{transport}");
        // Function, rate and TTL as they leave the sender and as they arrive, the three routers between.
        let names = ["frame.interface_name", "ip.opt.qs_func", "ip.opt.qs_rate", "ip.opt.qs_ttl", "ip.opt.qs_ttl_diff"];
        let ip = fields(&file, "ip.opt.qs_func", &names);
        let row = |at: usize| (ip[at][0].as_str(), ip[at][1].parse::<u8>().unwrap(), ip[at][2].parse::<u8>().unwrap());
        assert_eq!(ip.len(), 4, "{transport}: {ip:?}");
        assert_eq!((row(0), row(1)), (("sender", 0, 8), ("receiver", 0, 7)), "{transport}");
        assert_eq!((row(2), row(3)), (("sender", 8, 7), ("receiver", 8, 7)), "{transport}");
        let ttl = |at: usize| ip[at][3].parse::<u8>().unwrap();
        assert_eq!(ttl(0).wrapping_sub(ttl(1)), 3, "{transport}");
        if plan.transport.profile.protocol == Protocol::Tcp {
            let tcp = fields(&file, "tcp.options.qs", &["tcp.options.qs.rate", "tcp.options.qs.ttl_diff"]);
            assert_eq!(tcp.len(), 2, "{transport}: as it leaves and as it arrives");
            assert_eq!(tcp[0], ["7".to_owned(), 64u8.wrapping_sub(ttl(0)).to_string()], "{transport}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn tshark_does_not_know_the_second_pass_and_finds_nothing_malformed() {
    if !has_tshark() {
        eprintln!("skipped: there is no tshark");
        return;
    }
    let folder = std::env::temp_dir().join(format!("flowstart-second-pass-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.pcapng").to_str().unwrap().to_owned();
    for transport in ["model-tcp", "model-tcp:profile=tcp-rfc,opening=sender", "model-quic"] {
        let (plan, cell, traced) = run_with(transport, ",qs_flows=64,qs_provisional=500ms", ",passes=2");
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
