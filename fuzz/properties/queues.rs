//! Queue disciplines in any configuration that is accepted, under random arrivals and departures.

#[path = "../../crates/flowstart-core/tests/router/mod.rs"]
#[allow(dead_code, reason = "the contracts use all of it")]
mod router;

use flowstart_core::aqm::QueueConfig;
use flowstart_core::time::Duration;
use flowstart_lab::spec;

use super::configurations::{Random, spaces};
use router::{Operation, Router, links};

/// Operations of one sequence: those after them are not looked at.
const MOST: usize = 1000;

/// A discipline's spec and a line feed, the kind of link, then operations of two bytes.
pub fn queue_discipline(data: &[u8]) -> bool {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return false };
    let Some(text) = super::text(&data[..end]) else { return false };
    let Ok(config) = spec::aqm("--aqm", text) else { return false };
    let Some((kind, operations)) = data[end + 1..].split_first() else { return false };
    drive(&config.value, *kind, operations);
    true
}

/// A valid configuration at random: two bytes that draw it, zero for the defaults, which discipline, the kind of link,
/// then operations of two bytes.
pub fn queue(data: &[u8]) -> bool {
    let [high, low, entry, kind, operations @ ..] = data else { return false };
    let entries = &spaces().queue;
    let entry = &entries[usize::from(*entry) % entries.len()];
    let config = match u16::from_be_bytes([*high, *low]) {
        0 => entry.default().clone(),
        seed => entry.draw(&mut Random(u64::from(seed) << 32)),
    };
    assert_eq!(config.validate(), Ok(()));
    drive(&config, *kind, operations);
    true
}

/// A router with this discipline at a link of this kind.
fn drive(config: &QueueConfig, kind: u8, operations: &[u8]) {
    let links = links();
    let mut router = Router::new(config, links[usize::from(kind) % links.len()]);
    for operation in operations.chunks_exact(2).take(MOST) {
        router.apply(read(operation[0], u64::from(operation[1])));
    }
    router.drain();
}

/// The upper bits choose the operation: half of all are arrivals.
fn read(kind: u8, value: u64) -> Operation {
    match kind >> 5 {
        0..4 => Operation::Arrive { flow: kind & 0x0f, size: (value as u16 + 1) * 6, marked: kind & 0x10 != 0 },
        4 => Operation::Dequeue,
        5 => Operation::Serve(Duration::from_micros(value * 200)),
        6 => Operation::Wait(Duration::from_micros(value * value)),
        // Not longer, since a timer of 100 us is called 10,000 times a second.
        _ => Operation::Wait(Duration::from_millis(value)),
    }
}
