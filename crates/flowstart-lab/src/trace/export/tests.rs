use std::io::{self, Cursor, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use ::qlog::reader::{Event as LogEvent, QlogSeqReader};
use etherparse::{SlicedPacket, TcpHeader, TransportSlice};
use flowstart_sim::packet::Body;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;

use super::*;
use crate::study::scenario::Scenario;
use crate::trace::traced::{TracedRun, trace};

/// A cell that loses packets: a queue of 20 packets and random loss.
pub(super) fn plan_of(transport: &str, scheme: &str, flows: u32) -> (Plan, Cell) {
    plan_of_size("400KB", transport, scheme, flows)
}

fn plan_of_size(size: &str, transport: &str, scheme: &str, flows: u32) -> (Plan, Cell) {
    plan_over("rate=10mbit,rtt=50ms,buffer=20pkt,loss=1%", size, transport, scheme, flows)
}

fn plan_over(link: &str, size: &str, transport: &str, scheme: &str, flows: u32) -> (Plan, Cell) {
    let scenario = Scenario {
        link: vec![link.into()],
        size: vec![size.into()],
        scheme: vec![scheme.into()],
        aqm: vec!["taildrop".into()],
        competitor: vec!["none".into()],
        transport: vec![transport.into()],
        flows,
        reps: 1,
        seed: 3,
        hint: true,
        ..Scenario::default()
    };
    let plan = scenario.plan(Path::new(".")).unwrap();
    let cell = plan.cells()[0];
    (plan, cell)
}

fn run(transport: &str, scheme: &str, flows: u32) -> (Plan, Cell, TracedRun) {
    let (plan, cell) = plan_of(transport, scheme, flows);
    let traced = trace(&plan, &cell, 0);
    assert!(traced.outcomes.iter().all(|outcome| outcome.failure.is_none()));
    assert!(traced.outcomes.iter().all(|outcome| outcome.record.retransmissions > 0), "the run shall lose packets");
    (plan, cell, traced)
}

const RUNS: &[(&str, &str, u32)] = &[
    ("model-quic", "slow-start", 1),
    ("model-quic:profile=gquic", "blitzstart", 2),
    ("model-tcp", "hystart", 1),
    ("model-tcp:profile=tcp-rfc", "slow-start", 2),
    ("model-tcp:profile=ns2-sack1", "slow-start", 1),
    ("model-tcp:profile=ns3", "slow-start", 1),
];

impl TracedRun {
    /// Place of a flow among the measured ones.
    pub(super) fn place(&self, flow: u32) -> Option<usize> {
        self.finished.flows.iter().position(|measured| *measured == flow)
    }

    fn sum(&self, count: impl Fn(&flowstart_sim::observe::record::FlowRecord) -> u64) -> usize {
        self.outcomes.iter().map(|outcome| count(&outcome.record)).sum::<u64>() as usize
    }

    /// Packets of the measured flows at the sender or the receiver.
    fn seen(&self, at_sender: bool) -> usize {
        let trace = self.finished.world.network.trace.as_ref().unwrap();
        let wanted = |packet: &&flowstart_sim::observe::trace::HostPacket| {
            packet.is_at_sender() == at_sender && self.place(packet.flow).is_some()
        };
        trace.packets.iter().filter(wanted).count()
    }
}

/// A file in memory that outlives its writer and accepts a limited number of bytes.
#[derive(Clone, Default)]
struct Memory {
    bytes: Arc<Mutex<Vec<u8>>>,
    most: Option<usize>,
}

impl Memory {
    fn sink(&self) -> Option<Sink> {
        Some(Box::new(self.clone()))
    }

    fn text(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap();
        if self.most.is_some_and(|most| all.len() + bytes.len() > most) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The capture that is written during the run.
#[cfg(feature = "quic")]
pub(super) fn exported_capture(plan: &Plan, cell: &Cell) -> Vec<u8> {
    let file = Memory::default();
    export(plan, cell, 0, Outputs { pcapng: file.sink(), ..Outputs::default() }).unwrap();
    file.text()
}

#[test]
fn what_is_written_while_a_run_goes_on_is_what_its_whole_trace_gives() {
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, traced) = run(transport, scheme, flows);
        let files: [Memory; 3] = Default::default();
        let [csv, qlog, pcapng] = files.each_ref().map(Memory::sink);
        let exported =
            export(&plan, &cell, 0, Outputs { csv, qlog, pcapng, page: true, ..Outputs::default() }).unwrap();
        assert_eq!(exported.outcomes, traced.outcomes);
        let mut table = Vec::new();
        traced.write_csv(&mut table).unwrap();
        // Comparing with `assert_eq` would print megabytes.
        assert!(files[0].text() == table, "{transport}: the table differs");
        assert!(files[1].text() == qlog_of(&plan, &cell, &traced), "{transport}: the log differs");
        assert!(files[2].text() == capture_of(&plan, &cell, &traced).0, "{transport}: the capture differs");
        let explained = exported.seen.explanations[0].unwrap();
        assert_eq!(explained, crate::trace::explain::explain(&plan, &cell, &traced).unwrap());
        let page = crate::report::trace(
            &plan,
            &cell,
            0,
            &exported.outcomes,
            &exported.seen,
            flowstart_report::Method::default(),
        );
        assert!(!page.sent.is_empty() && !page.queue_packets.is_empty() && page.causes.is_some());
    }
}

#[test]
fn a_run_ends_when_a_file_cannot_be_written() {
    let (plan, cell) = plan_of_size("1GB", "model-tcp", "slow-start", 1);
    let full = Memory { most: Some(200_000), ..Memory::default() };
    for format in [Format::Csv, Format::Qlog, Format::Pcapng] {
        let sink = |one: Format| if one == format { full.sink() } else { None };
        let outputs = Outputs {
            csv: sink(Format::Csv),
            qlog: sink(Format::Qlog),
            pcapng: sink(Format::Pcapng),
            ..Outputs::default()
        };
        // The whole transfer would take minutes here.
        let failed = export(&plan, &cell, 0, outputs).unwrap_err();
        assert_eq!((failed.format, failed.error.kind()), (format, io::ErrorKind::StorageFull));
    }
}

/// A run with its table, its log, and its page.
pub(super) fn exported(plan: &Plan, cell: &Cell, columns: Columns) -> (String, String, flowstart_report::TraceReport) {
    let files: [Memory; 2] = Default::default();
    let [csv, qlog] = files.each_ref().map(Memory::sink);
    let run = export(plan, cell, 0, Outputs { csv, columns, qlog, page: true, ..Outputs::default() }).unwrap();
    let page = crate::report::trace(plan, cell, 0, &run.outcomes, &run.seen, flowstart_report::Method::default());
    let [csv, qlog] = files.map(|file| String::from_utf8(file.text()).unwrap());
    (csv, qlog, page)
}

/// A path without loss whose queue SEARCH notices.
const ROOMY: &str = "rate=50mbit,rtt=50ms,buffer=2bdp";

/// The name of a variable and its unit.
type Named = (&'static str, &'static str);

/// A scheme or a congestion avoidance, a run of it, and what it shows under which units.
const VARIABLES: &[(&str, &str, &[Named])] = &[
    ("slow-start", "cubic", &[("W_max", "bytes"), ("K", "ms"), ("W_cubic", "bytes"), ("W_est", "bytes")]),
    ("slow-start", "reno", &[("bytes_acked", "bytes")]),
    (
        "slow-start",
        "bbr",
        &[("max_bw", "Mbit/s"), ("min_rtt", "ms"), ("inflight_longterm", "bytes"), ("pacing_gain", "")],
    ),
    ("slow-start", "bbr:version=1", &[("max_bw", "Mbit/s"), ("min_rtt", "ms"), ("cwnd_gain", "")]),
    ("search", "reno", &[("curr_delv", "bytes"), ("norm_diff", ""), ("thresh", "")]),
    ("search:variant=slides", "reno", &[("prev_delv", "bytes"), ("2 * prev_delv", "bytes")]),
    ("search:variant=linux", "reno", &[("prev_sent", "bytes")]),
    ("hystart", "reno", &[("delay_min", "ms"), ("curr_rtt", "ms"), ("longest_rtt", "ms")]),
    ("hystart-plus-plus", "reno", &[("currentRoundMinRTT", "ms"), ("lastRoundMinRTT + RttThresh", "ms")]),
    ("suss", "reno", &[("growth factor", ""), ("minRTT", "ms")]),
    ("blitzstart", "reno", &[("bandwidth", "Mbit/s"), ("RTT", "ms")]),
    ("jump-start", "reno", &[("D", "bytes"), ("R", "bytes")]),
];

#[test]
fn every_algorithm_shows_its_variables_on_the_page_and_if_asked_in_the_files() {
    for &(scheme, avoidance, expected) in VARIABLES {
        let text = format!("{scheme}{}avoidance={avoidance}", if scheme.contains(':') { "," } else { ":" });
        let (plan, cell) = match scheme.starts_with("search") {
            true => plan_over(ROOMY, "8MB", "model-quic", &text, 1),
            false => plan_of("model-quic", &text, 1),
        };
        let (plain, plain_log, page) = exported(&plan, &cell, Columns::default());
        let (table, log, _) = exported(&plan, &cell, Columns { variables: true, ..Columns::default() });
        for (name, unit) in expected {
            let shown = page.variables.iter().find(|shown| shown.name == *name);
            let shown = shown.unwrap_or_else(|| panic!("{scheme} {avoidance}: no {name} in {:?}", page.variables));
            assert!(shown.unit == *unit && !shown.points.is_empty(), "{scheme} {avoidance}: {name}");
            assert!(log.contains(&format!("\"variable\":\"{name}\"")), "{scheme} {avoidance}: {name}");
        }
        // The rows are those of a table without variables, and each has all columns.
        let mut reader = ::csv::Reader::from_reader(table.as_bytes());
        let place =
            |name: &str, headers: &::csv::StringRecord| headers.iter().position(|header| header == name).unwrap();
        let headers = reader.headers().unwrap().clone();
        let (event, variable) = (place("event", &headers), place("variable", &headers));
        let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert!(rows.iter().all(|row| (&row[event] == "variable") != row[variable].is_empty()));
        // The header has a column of that name.
        let others = table.lines().filter(|line| !line.contains(",variable,"));
        let others: Vec<&str> = others.map(|line| line.strip_suffix(",,,,").unwrap_or(line)).collect();
        assert!(others == plain.lines().collect::<Vec<_>>()[1..], "{scheme}: other rows differ");
        let others = log.lines().filter(|line| !line.contains("flowstart:variable_updated"));
        assert!(others.eq(plain_log.lines()), "{scheme}: other events differ");
    }
}

#[test]
fn the_comparison_that_ends_search_and_the_plateau_of_cubic_are_shown() {
    let (plan, cell) = plan_over(ROOMY, "8MB", "model-quic", "search:avoidance=cubic", 1);
    let (_, _, page) = exported(&plan, &cell, Columns::default());
    let points = |name: &str| page.variables.iter().find(|shown| shown.name == name).unwrap().points.clone();
    assert_eq!(page.exit_reason.as_deref(), Some("chokepoint"));
    let last = points("norm_diff").last().unwrap()[1];
    assert!(last >= points("thresh")[0][1], "{last}");
    let (plan, cell) = plan_of_size("2MB", "model-quic", "slow-start:avoidance=cubic", 1);
    let (_, _, page) = exported(&plan, &cell, Columns::default());
    let points = |name: &str| page.variables.iter().find(|shown| shown.name == name).unwrap().points.clone();
    // The first reduction makes the window of that time the plateau (RFC 9438, section 4.6).
    let [time, w_max] = points("W_max")[0];
    let before = page.cwnd.iter().take_while(|point| point[0] < time).last().unwrap()[1];
    assert_eq!(w_max, before);
}

#[test]
fn a_table_of_several_runs_names_the_scheme_of_each_row() {
    let (plan, cell) = plan_of("model-quic", "slow-start:iw=4,avoidance=reno", 1);
    let (plain, ..) = exported(&plan, &cell, Columns::default());
    let scheme = Some("slow-start:iw=4,avoidance=reno".to_owned());
    let (first, ..) = exported(&plan, &cell, Columns { scheme: scheme.clone(), ..Columns::default() });
    let (second, ..) =
        exported(&plan, &cell, Columns { scheme: scheme.clone(), continues: true, ..Columns::default() });
    assert!(first.ends_with(&second) && first.starts_with("scheme,time_ms,"));
    let mut reader = ::csv::Reader::from_reader(first.as_bytes());
    assert!(reader.records().all(|row| Some(&row.unwrap()[0]) == scheme.as_deref()));
    let quoted = "\"slow-start:iw=4,avoidance=reno\",";
    let rest: Vec<&str> = first.lines().map(|line| line.strip_prefix(quoted).unwrap_or(line)).collect();
    assert!(rest[1..] == plain.lines().collect::<Vec<_>>()[1..]);
}

fn qlog_of(plan: &Plan, cell: &Cell, traced: &TracedRun) -> Vec<u8> {
    let mut file = Vec::new();
    traced.write_qlog(plan, cell, &mut file).unwrap();
    file
}

#[test]
fn the_qlog_library_reads_what_is_written() {
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, traced) = run(transport, scheme, flows);
        let file = qlog_of(&plan, &cell, &traced);
        let reader = QlogSeqReader::new(Box::new(Cursor::new(file.clone()))).unwrap();
        assert_eq!(reader.qlog.file_schema, "urn:ietf:params:qlog:file:sequential");
        let (typed, custom) = reader.fold((0, 0), |(typed, custom), event| match event {
            LogEvent::Qlog(_) => (typed + 1, custom),
            LogEvent::Json(_) => (typed, custom + 1),
        });
        let lines = file.split(|byte| *byte == 0x1e).filter(|line| !line.is_empty()).count();
        assert_eq!(typed + custom, lines - 1, "{transport}");
        assert!(custom > 0, "{transport}: the launch is an event of this program");
    }
}

#[test]
fn the_qlog_has_every_event_of_the_sender_in_order() {
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, traced) = run(transport, scheme, flows);
        let file = String::from_utf8(qlog_of(&plan, &cell, &traced)).unwrap();
        let mut lines = file.split('\u{1e}').skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        let header = lines.next().unwrap();
        let opens = matches!(plan.transports[0].profile.opening, flowstart_sim::transport::policy::Opening::Sender);
        assert_eq!(header["trace"]["vantage_point"]["type"], if opens { "client" } else { "server" });
        let events: Vec<Value> = lines.collect();
        assert!(events.is_sorted_by_key(|event| (event["time"].as_f64().unwrap() * 1e6) as u64));
        let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
        let packets = named("quic:packet_sent").count() + named("quic:packet_received").count();
        assert_eq!(packets, traced.seen(true), "{transport}");
        let is_data = |event: &&Value| event["data"]["frames"][0]["frame_type"] == "stream";
        assert_eq!(named("quic:packet_sent").filter(is_data).count(), traced.sum(|r| r.data_packets), "{transport}");
        assert_eq!(named("quic:packet_lost").count(), traced.sum(|r| r.declared_lost), "{transport}");
        assert_eq!(named("flowstart:launch").count(), flows as usize);
        let exits: Vec<&Value> = named("quic:congestion_state_updated")
            .filter(|event| event["data"]["old"] == "startup" && event["data"]["new"] == "congestion_avoidance")
            .collect();
        assert_eq!(exits.len(), flows as usize, "{transport}");
        for (place, outcome) in traced.outcomes.iter().enumerate() {
            let group = if flows > 1 { Value::from(format!("flow-{place}")) } else { Value::Null };
            let exit = exits.iter().find(|event| event["group_id"] == group).unwrap();
            assert_eq!(exit["data"]["trigger"], outcome.record.exit.unwrap().reason.name());
        }
        let windows: Vec<u64> = named("quic:recovery_metrics_updated")
            .filter_map(|event| event["data"]["congestion_window"].as_u64())
            .collect();
        assert_eq!(windows.iter().max().copied(), traced.outcomes.iter().map(|o| o.record.max_cwnd.get()).max());
        if plan.transports[0].profile.protocol == Protocol::Quic {
            // A lost packet was sent before with the same bytes, and its number is known.
            for lost in named("quic:packet_lost") {
                let same = |sent: &Value| {
                    sent["group_id"] == lost["group_id"]
                        && sent["data"]["header"]["packet_number"] == lost["data"]["header"]["packet_number"]
                        && sent["data"]["frames"] == lost["data"]["frames"]
                };
                assert!(lost["data"]["header"]["packet_number"].is_u64() && named("quic:packet_sent").any(same));
            }
        }
    }
}

/// A packet of a capture.
pub(super) struct Captured {
    pub(super) interface: u32,
    pub(super) nanos: u128,
    pub(super) original: u32,
    pub(super) data: Vec<u8>,
}

pub(super) fn capture_of(plan: &Plan, cell: &Cell, traced: &TracedRun) -> (Vec<u8>, Vec<Captured>) {
    let mut file = Vec::new();
    traced.write_pcapng(plan, cell, &mut file).unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let (Block::EnhancedPacket(packet), _) = block.unwrap() {
            packets.push(Captured {
                interface: packet.interface_id,
                nanos: packet.timestamp.as_nanos(),
                original: packet.original_len,
                data: packet.data.into_owned(),
            });
        }
    }
    (file, packets)
}

#[test]
fn the_capture_has_every_packet_of_both_hosts_with_valid_headers() {
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, traced) = run(transport, scheme, flows);
        let (_, packets) = capture_of(&plan, &cell, &traced);
        for (interface, at_sender) in [(0, true), (1, false)] {
            let count = packets.iter().filter(|packet| packet.interface == interface).count();
            assert_eq!(count, traced.seen(at_sender), "{transport}");
        }
        assert!(packets.is_sorted_by_key(|packet| packet.nanos));
        let trace = traced.finished.world.network.trace.as_ref().unwrap();
        let measured = trace.packets.iter().filter(|packet| traced.place(packet.flow).is_some());
        let profile = &plan.transports[0].profile;
        let counts_ethernet = lower_headers(profile) >= ETHERNET + IPV4;
        for (packet, source) in packets.iter().zip(measured) {
            assert_eq!(packet.nanos, u128::from(source.time.as_nanos()));
            let ethernet = if counts_ethernet { 0 } else { ETHERNET };
            if matches!(source.body, Body::Data { .. } | Body::Acknowledgement(_)) {
                assert_eq!(packet.original, source.size + ethernet, "{transport}: {source:?}");
            }
            // The length of the whole packet is in the IPv4 header; the parser needs all of it.
            let mut whole = packet.data.clone();
            whole.resize(packet.original as usize, 0);
            let sliced = SlicedPacket::from_ethernet(&whole).unwrap();
            let Some(etherparse::NetSlice::Ipv4(ip)) = sliced.net else { panic!("no IPv4") };
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(u32::from(header.total_len) + ETHERNET, packet.original);
            match sliced.transport {
                Some(TransportSlice::Tcp(tcp)) => {
                    let header: TcpHeader = tcp.to_header();
                    let addresses = ip.header();
                    let sum = header.calc_checksum_ipv4_raw(addresses.source(), addresses.destination(), tcp.payload());
                    assert_eq!(header.checksum, sum.unwrap());
                    if let Body::Data { offset, len, .. } = source.body {
                        assert_eq!(u64::from(header.sequence_number), offset + 1);
                        assert_eq!(tcp.payload().len(), len as usize, "{transport}");
                    }
                }
                Some(TransportSlice::Udp(udp)) => {
                    assert_eq!(u32::from(udp.length()), packet.original - ETHERNET - IPV4);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(super) fn tshark(arguments: &[&str]) -> String {
    let output = Command::new("tshark").args(arguments).stderr(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "tshark {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether tshark is installed. With `CI=true` in the environment it must be.
pub(super) fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "CI=true requires tshark, and there is none");
    if !found {
        eprintln!("skipped: there is no tshark");
    }
    found
}

#[test]
fn tshark_agrees() {
    if !has_tshark() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("flowstart-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for &(transport, scheme, flows) in RUNS {
        let (plan, cell, traced) = run(transport, scheme, flows);
        let (file, packets) = capture_of(&plan, &cell, &traced);
        let both = path("both.pcapng");
        std::fs::write(&both, file).unwrap();
        let checked = ["-r", &both, "-o", "ip.check_checksum:TRUE", "-Y"];
        let count = |filter: &str| tshark(&[&checked[..], &[filter]].concat()).lines().count();
        assert_eq!(count("frame"), packets.len(), "{transport}");
        assert_eq!(count("_ws.malformed || ip.checksum.status == \"Bad\""), 0, "{transport}");
        if plan.transports[0].profile.protocol == Protocol::Tcp {
            // A repair between SACKed segments soon after new data looks overtaken to tshark. At the host that sends
            // it, nothing can overtake it.
            let again = "tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)";
            let found = tshark(&["-r", &both, "-Y", &format!("frame.interface_id == 0 && {again}")]);
            assert_eq!(found.lines().count(), traced.sum(|r| r.retransmissions), "{transport}: {found}");
            // What was dropped never reached the receiver.
            let data =
                |name| count(&format!("frame.interface_name == \"{name}\" && tcp.srcport == 5001 && tcp.len > 0"));
            let dropped = traced.sum(|r| r.dropped_data);
            assert_eq!(data("receiver"), data("sender") - dropped, "{transport}");
            assert!(dropped > 0);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
