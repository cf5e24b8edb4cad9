//! What every parser and the controller keep, whatever bytes they get: no panic, what is accepted is in range, and the
//! canonical text of what is accepted means the same.
//!
//! Each property reads bytes the way its parser meets them and says whether the parser accepted them. `fuzz/fuzz.rs`
//! hands them to libFuzzer; the tests in `crates/flowstart/tests/parsers.rs` call them without it.

#[path = "../../crates/flowstart-core/tests/configurations/mod.rs"]
mod configurations;
mod controller;
mod files;
mod queues;
mod quic;
mod quick_start;
mod scone;
mod sensing;
mod server;
mod specs;
mod xcp;

/// A property: whether the input was accepted.
pub type Property = fn(&[u8]) -> bool;

macro_rules! all {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every property under the name of its target, of its seeds and of its corpus.
        pub const ALL: &[(&str, Property)] = &[$($((stringify!($name), $module::$name)),*),*];
    };
}

all! {
    specs: capacity_trace quantity scheme avoidance aqm competitor arrival mobility application web size transport link scenario;
    sensing: path_record oracle_query oracle_question oracle_answer gateway_search gateway_description gateway_answer
        netlink interface_speed;
    quic: bandwidth_hint client_hints hint_policy transport_parameters client_hello path_state;
    quick_start: quick_start_option quick_start_router;
    scone: scone_packet scone_path scone_datagram scone_batch;
    xcp: congestion_header xcp_router;
    server: request_path request_stream;
    files: connection_log connection_path recording server_metrics path_metrics population flow_rows reference_table
        frames;
    queues: queue_discipline queue;
    controller: controller adapter;
}

/// Up to here a double holds every whole number and its thousandths, so that a quantity survives being written.
const EXACT: u64 = 1 << 51;

fn text(data: &[u8]) -> Option<&str> {
    // Files that are not text are refused before a parser sees them.
    std::str::from_utf8(data).ok()
}
