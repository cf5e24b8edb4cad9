//! The parsers of what users, files and peers say, and the controller, over arbitrary bytes, over valid inputs that
//! were damaged, and over what fuzzers kept. The properties and the inputs are those of `fuzz/`.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test that cannot be set up fails")]

#[path = "../../../fuzz/properties/mod.rs"]
mod properties;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

/// Inputs of one kind: valid ones (`seeds`) and those that a fuzzer broke something with (`found`) in a folder for each
/// property, those that it kept (`corpus`) in an archive for each.
fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind)
}

/// The inputs of one property; none where there is no folder.
fn inputs(kind: &str, name: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder(kind).join(name)) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The inputs of one property that a fuzzer kept, out of their archive; none where there is no archive.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let Ok(file) = fs::File::open(folder("corpus").join(format!("{name}.tar.gz"))) else { return Vec::new() };
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let inputs: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut input = Vec::new();
            entry.unwrap().read_to_end(&mut input).unwrap();
            input
        })
        .collect();
    assert!(!inputs.is_empty(), "an archive without inputs for {name}");
    inputs
}

/// Pieces that parsers have stumbled over elsewhere.
const PIECES: &[&str] = &[
    ",",
    ":",
    "=",
    "/",
    ".",
    " ",
    "\n",
    "\r\n",
    "\0",
    "é",
    "\u{feff}",
    "[",
    "\"",
    "-",
    "%",
    "e",
    "0",
    "1",
    "-1",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551616",
    "none",
    "unlimited",
    "kind=",
    "iw=",
    "pkt",
    "bdp",
    "ms",
    "ns",
    "B",
    "GB",
    "gbit",
    "<a>",
    "</",
    "/>",
    "&#0;",
    "<!DOCTYPE a [<!ENTITY b \"b\">]>",
    "\u{1}\0\0\0",
    "\u{4}\0",
    "address=",
    "ipv6:::",
];

/// A change to an input.
#[derive(Clone, Debug)]
enum Damage {
    Insert(Index, &'static str),
    Replace(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize),
    Swap(Index, Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        3 => (place(), select(PIECES)).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        2 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        2 => (place(), 1..8usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        1 => (place(), 1..20usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        1 => (place(), place(), 1..8usize).prop_map(|(from, to, length)| Damage::Swap(from, to, length)),
    ]
}

fn damaged(mut input: Vec<u8>, changes: Vec<Damage>) -> Vec<u8> {
    for change in changes {
        let length = input.len();
        let at = |place: Index| place.index(length + 1);
        match change {
            Damage::Insert(place, piece) => drop(input.splice(at(place)..at(place), piece.bytes())),
            Damage::Replace(place, byte) => input.iter_mut().skip(at(place)).take(1).for_each(|old| *old = byte),
            Damage::Remove(place, count) => drop(input.drain(at(place)..(at(place) + count).min(length))),
            Damage::Repeat(place, count) => input.extend_from_within(at(place)..(at(place) + count).min(length)),
            Damage::Swap(from, to, count) => {
                let piece: Vec<u8> = input.drain(at(from)..(at(from) + count).min(length)).collect();
                let place = to.index(input.len() + 1);
                input.splice(place..place, piece);
            }
        }
    }
    input
}

/// Checks the property `name` for its seeds, which it must accept, for damaged ones, and for arbitrary bytes.
fn holds(name: &str) {
    let property = properties::ALL.iter().find(|(one, _)| *one == name).unwrap().1;
    let seeds = inputs("seeds", name);
    assert!(!seeds.is_empty(), "no seeds for {name}");
    for seed in &seeds {
        assert!(property(seed), "refused: {}", String::from_utf8_lossy(seed));
    }
    // What a fuzzer kept, and what it found.
    for input in corpus(name).iter().chain(&inputs("found", name)) {
        property(input);
    }
    let inputs = prop_oneof![
        4 => (select(seeds), vec(damage(), 1..5)).prop_map(|(seed, changes)| damaged(seed, changes)),
        1 => vec(any::<u8>(), 0..100),
    ];
    // More when PROPTEST_CASES says so.
    let cases = ProptestConfig::default().cases.max(3000);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&inputs, |input| {
        property(&input);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

macro_rules! tests {
    ($($(#[$condition:meta])* $test:ident: $property:ident),* $(,)?) => {
        $(#[test] $(#[$condition])* fn $test() { holds(stringify!($property)); })*

        #[test]
        fn every_property_has_a_test_and_every_input_a_property() {
            let tested = BTreeSet::from([$(stringify!($property)),*]);
            let names: BTreeSet<&str> = properties::ALL.iter().map(|(name, _)| *name).collect();
            assert_eq!(tested, names);
            for kind in ["seeds", "corpus", "found"] {
                for inputs in fs::read_dir(folder(kind)).into_iter().flatten() {
                    let file = inputs.unwrap().file_name().into_string().unwrap();
                    let name = file.strip_suffix(".tar.gz").filter(|_| kind == "corpus").unwrap_or(&file);
                    assert!(names.contains(name), "fuzz/{kind}/{file} belongs to no property");
                }
            }
        }
    };
}

tests! {
    capacity_traces_are_read_or_refused: capacity_trace,
    quantities_survive_being_written: quantity,
    schemes_are_in_range_and_survive_being_written: scheme,
    avoidances_are_in_range_and_survive_being_written: avoidance,
    aqms_are_in_range_and_survive_being_written: aqm,
    applications_are_in_range: application,
    web_sessions_can_be_drawn_from: web,
    arrivals_are_in_range_and_in_order: arrival,
    moves_are_in_range: mobility,
    sizes_are_in_range: size,
    competitors_are_in_range: competitor,
    transports_are_in_range_and_survive_being_written: transport,
    links_are_in_range_and_survive_being_written: link,
    scenarios_survive_being_written: scenario,
    saved_paths_survive_being_written: path_record,
    metrics_of_a_server_are_read_or_refused: server_metrics,
    metrics_of_paths_are_distributions_or_refused: path_metrics,
    populations_have_shares_or_are_refused: population,
    queries_of_an_oracle_are_read_or_refused: oracle_query,
    questions_to_an_oracle_name_what_they_ask_for: oracle_question,
    answers_of_an_oracle_are_for_who_asked: oracle_answer,
    searches_for_gateways_end_with_an_address: gateway_search,
    descriptions_of_gateways_are_read_or_refused: gateway_description,
    answers_of_gateways_have_rates_above_zero: gateway_answer,
    // The seeds have this byte order, netlink that of the host.
    #[cfg(target_endian = "little")]
    messages_of_the_kernel_have_rates_that_exist: netlink,
    speeds_of_interfaces_are_whole_megabits: interface_speed,
    hints_are_in_range_and_canonical: bandwidth_hint,
    client_hints_are_a_floor: client_hints,
    hint_policies_are_in_range_and_survive_being_written: hint_policy,
    transport_parameters_are_read_or_refused: transport_parameters,
    client_hellos_may_come_in_pieces: client_hello,
    path_states_are_opened_or_refused: path_state,
    options_of_quick_start_are_read_or_refused: quick_start_option,
    routers_approve_no_more_than_there_is: quick_start_router,
    scone_packets_are_read_or_refused: scone_packet,
    advice_is_lowered_and_never_raised: scone_path,
    datagrams_with_signals_leave_something_for_the_stack: scone_datagram,
    batches_keep_every_datagram_and_their_order: scone_batch,
    congestion_headers_are_read_or_refused: congestion_header,
    routers_with_xcp_never_raise: xcp_router,
    requests_stay_below_the_root: request_path,
    requests_are_refused_however_they_are_cut: request_stream,
    logs_of_connections_are_read_as_far_as_they_go: connection_log,
    recordings_are_replayed_as_far_as_they_go: recording,
    what_logs_show_of_paths_becomes_a_table_that_is_read: connection_path,
    rows_survive_being_written: flow_rows,
    tables_have_numbers_in_range: reference_table,
    frames_are_read_until_they_end: frames,
    queue_disciplines_account_for_every_packet: queue_discipline,
    drawn_queue_disciplines_account_for_every_packet: queue,
    no_sequence_of_events_breaks_the_controller: controller,
    no_sequence_of_events_breaks_the_adapter: adapter,
}
