//! The cases of a scheme: worked boundaries, paths on which a scheme finds what it looks for, and random ones of the
//! kinds and ranges of the contracts in `flowstart-core/tests/operations/`. All schemes meet the same.

use std::fmt::Write as _;

use flowstart_core::needs::Needs;
use flowstart_core::rng::Substream;
use flowstart_core::startup::StartupConfig;
use serde_json::{Map, Value, json};

use crate::event::{Known, Line};
use crate::host::Host;
use crate::network::{Link, Network};
use crate::{AVOIDANCE, FORMAT, INITIAL_WINDOW, RATE_TOLERANCE, RTT, SEGMENT};

/// A millisecond.
const MS: u64 = 1_000_000;
/// Steps of a random case.
const STEPS: u64 = 40;
/// What a host needs for cases with these events.
const TIMEOUT: &str = "timeout";
const SEGMENTS: &str = "segment";
const PATHS: &str = "path";
/// What the random cases need beyond the usual functions.
const RANDOM: [&str; 12] = ["", "", "", "", "", "", TIMEOUT, TIMEOUT, SEGMENTS, SEGMENTS, PATHS, PATHS];
/// Sizes that full packets change to.
const OTHER_SEGMENTS: [u64; 3] = [1200, 1400, 9000];
/// RTTs of a path that grows longer and stays so, in milliseconds, and of one that grows shorter again.
const LONGER: [u64; 10] = [50, 50, 60, 75, 75, 75, 75, 75, 75, 75];
const LONGER_FOR_A_WHILE: [u64; 8] = [50, 50, 75, 55, 50, 50, 50, 50];
/// A bottleneck of 20 Mbit/s with a deep buffer.
const DEEP: Link = Link { rtt: RTT, service: 480_000, buffer: u64::MAX, marks_from: u64::MAX, tick: RTT / 16 };
/// One of 10 Mbit/s, whose acknowledgements come in twos and within 2 ms of each other.
const CLOCKED: Link = Link { service: 960_000, tick: 1_920_000, ..DEEP };
/// One of 10 Mbit/s that holds half a round trip.
const SHALLOW: Link = Link { service: 960_000, buffer: 26, tick: RTT / 8, ..DEEP };
/// One that marks where the other drops.
const MARKING: Link = Link { buffer: u64::MAX, marks_from: 26, ..SHALLOW };
/// One of 50 Mbit/s, and what is left of it.
const FAST: Link = Link { service: 192_000, ..DEEP };
const SLOWED: Link = Link { service: 1_920_000, tick: RTT / 8, ..DEEP };

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// What it is about.
    pub name: String,
    /// What a port needs for it beyond the usual functions: `timeout`, `segment`, `path`, or nothing.
    pub needs: &'static str,
    /// What happens.
    pub lines: Vec<Line>,
}

/// All cases of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectors(pub Vec<Vector>);

/// A path of which everything is known.
fn everything() -> Known {
    Known {
        handshake_rtt: RTT,
        saved_cwnd: 200_000,
        saved_rtt: 40_000_000,
        saved_age: 60_000_000_000,
        receive_window: 1_000_000,
        bytes_waiting: 500_000,
        hint: 20_000_000,
        requested: 10_000_000,
        interface: 1_000_000_000,
        approved: 12_000_000,
        oracle: 15_000_000,
        train: 18_000_000,
        advised: 0,
        shared_cwnd: 100_000,
        shared_ssthresh: 150_000,
        shared_rtt: 40_000_000,
    }
}

/// Only the handshake has been measured.
fn nothing() -> Known {
    Known { handshake_rtt: RTT, ..Known::default() }
}

impl Vectors {
    /// The cases of this scheme.
    pub fn of(scheme: &StartupConfig) -> Self {
        let mut all = Vec::new();
        let mut add = |name: &str, needs: &'static str, known: Known, play: &dyn Fn(&mut Host)| {
            let mut host = Host::launched(scheme, known);
            play(&mut host);
            all.push(Vector { name: name.to_owned(), needs, lines: host.lines });
        };
        for (with, known) in [("nothing known", nothing()), ("everything known", everything())] {
            add(&format!("launch and six round trips, {with}"), "", known, &|host| rounds(host, 6));
            add(&format!("first acknowledgement, {with}"), "", known, &|host| {
                host.send(10);
                host.wait(RTT);
                host.acknowledge(1, RTT, false, 0);
            });
            add(&format!("loss in the launch, {with}"), "", known, &|host| {
                host.send(u64::MAX);
                host.wait(RTT);
                host.lose(2, 3, false);
                host.send(u64::MAX);
                rounds(host, 3);
            });
            add(&format!("mark in the second round trip, {with}"), "", known, &|host| {
                rounds(host, 1);
                host.acknowledge(3, RTT, false, 1);
                rounds(host, 2);
            });
            add(&format!("persistent congestion, {with}"), "", known, &|host| {
                rounds(host, 1);
                host.wait(2_000_000_000);
                host.lose(u64::MAX, 0, true);
                rounds(host, 3);
            });
            add(&format!("retransmission timeout, {with}"), TIMEOUT, known, &|host| {
                rounds(host, 1);
                host.wait(1_000_000_000);
                host.time_out();
                rounds(host, 3);
            });
            add(&format!("application limited, {with}"), "", known, &|host| {
                for _ in 0..3 {
                    host.send(3);
                    host.wait(RTT);
                    host.acknowledge(3, RTT, true, 0);
                }
            });
            add(&format!("idle and restart, {with}"), "", known, &|host| {
                rounds(host, 2);
                host.be_idle(60_000_000_000);
                rounds(host, 1);
            });
            add(&format!("spurious loss, {with}"), "", known, &|host| {
                rounds(host, 2);
                host.lose(1, 2, false);
                host.find_spurious();
                rounds(host, 1);
            });
            for (how, rtts) in [("longer", &LONGER[..6]), ("shorter", &[50, 15, 15, 15])] {
                add(&format!("round trips that grow {how}, {with}"), "", known, &|host| in_twelfths(host, rtts));
            }
            for (what, link) in [("overflows", SHALLOW), ("marks", MARKING)] {
                add(&format!("a queue that {what}, {with}"), "", known, &|host| {
                    Network::default().run(host, link, 16);
                });
            }
        }
        for (what, link, number) in
            [("a deep queue", DEEP, 11), ("acknowledgements at the bottleneck's rate", CLOCKED, 6)]
        {
            add(&format!("{what}, nothing known"), "", nothing(), &|host| Network::default().run(host, link, number));
        }
        add("a path that slows down, nothing known", "", nothing(), &|host| {
            let mut network = Network::default();
            network.run(host, FAST, 5);
            network.run(host, SLOWED, 10);
        });
        for (how, rtts) in [("longer", &LONGER[..]), ("longer for a while", &LONGER_FOR_A_WHILE)] {
            add(&format!("a path that grows {how}, nothing known"), "", nothing(), &|host| {
                let mut network = Network::default();
                for rtt in rtts {
                    network.run(host, Link { rtt: rtt * MS, ..FAST }, 1);
                }
            });
        }
        for (name, rtt) in [("long", 600 * MS), ("short", 2 * MS)] {
            let known = Known { handshake_rtt: rtt, ..everything() };
            add(&format!("{name} round trips, everything known"), "", known, &|host| {
                in_twelfths(host, &[rtt / MS; 3]);
            });
        }
        add("no round trip measured, nothing known", "", Known::default(), &|host| rounds(host, 2));
        let advised = Known { advised: 5_000_000, ..everything() };
        add("a low advice, everything known", "", advised, &|host| rounds(host, 3));
        let young = Known { shared_ssthresh: 0, ..everything() };
        add("connections that have not left slow start", "", young, &|host| rounds(host, 3));
        add("larger packets, everything known", SEGMENTS, everything(), &|host| {
            rounds(host, 1);
            host.change_segment(1400);
            rounds(host, 2);
            host.wait(RTT);
            host.lose(2, 3, false);
            rounds(host, 2);
        });
        for (with, known) in [("nothing known", nothing()), ("everything known", everything())] {
            add(&format!("another path, {with}"), PATHS, known, &|host| {
                rounds(host, 2);
                host.change_path(Known { handshake_rtt: 80 * MS, ..known });
                rounds(host, 3);
            });
        }
        for (case, needs) in (0..).zip(RANDOM) {
            let random = &mut Substream::new(1, "conformance", case);
            let known = if case % 2 == 0 { some(random) } else { everything() };
            let mut host = Host::launched(scheme, known);
            (0..STEPS).for_each(|_| step(&mut host, random, needs));
            all.push(Vector { name: format!("random {}", case + 1), needs, lines: host.lines });
        }
        Self(all)
    }
}

/// Round trips of these RTTs in milliseconds, of a sender that sends up to 48 packets in each; acknowledgements come in
/// twelve parts, which are too far apart to be a train.
fn in_twelfths(host: &mut Host, rtts: &[u64]) {
    for rtt in rtts {
        host.send(48);
        host.run_timer(rtt * MS);
        host.wait(rtt * MS);
        let part = host.in_flight().div_ceil(12);
        while host.in_flight() > 0 {
            host.acknowledge(part, rtt * MS, false, 0);
            host.wait(3 * MS);
        }
    }
}

/// Round trips of a sender with enough data.
fn rounds(host: &mut Host, number: u64) {
    for _ in 0..number {
        host.send(u64::MAX);
        host.run_timer(RTT);
        host.wait(RTT);
        let part = host.in_flight().div_ceil(3);
        for _ in 0..3 {
            host.acknowledge(part, RTT, false, 0);
            host.wait(1_000_000);
            host.send(u64::MAX);
        }
    }
}

/// A number below `end`.
fn below(random: &mut Substream, end: u64) -> u64 {
    random.next_u64() % end
}

/// What is known of a path, at random.
fn some(random: &mut Substream) -> Known {
    let all = everything();
    let mut maybe = |value: u64| if below(random, 2) == 0 { value } else { 0 };
    let known = Known {
        handshake_rtt: RTT,
        saved_cwnd: maybe(all.saved_cwnd),
        receive_window: maybe(all.receive_window),
        bytes_waiting: maybe(all.bytes_waiting),
        hint: maybe(all.hint),
        requested: maybe(all.requested),
        interface: maybe(all.interface),
        approved: maybe(all.approved),
        oracle: maybe(all.oracle),
        advised: maybe(8_000_000),
        shared_cwnd: maybe(all.shared_cwnd),
        shared_ssthresh: maybe(all.shared_ssthresh),
        ..all
    };
    // The handshake's train is seen where the oracle knows something.
    Known { train: if known.oracle > 0 { all.train } else { 0 }, ..known }
}

/// Something happens.
fn step(host: &mut Host, random: &mut Substream, needs: &str) {
    match below(random, 14) {
        0 => host.wait(below(random, 1 << 32)),
        1..=4 => {
            host.send(1 + below(random, 40));
        }
        5..=8 => {
            let (packets, rtt) = (1 + below(random, 19), (1 + below(random, 2000)) * 1_000_000);
            host.acknowledge(packets, rtt, below(random, 2) == 0, 0);
        }
        9 => {
            let (lost, acknowledged) = (1 + below(random, 9), below(random, 4));
            host.lose(lost, acknowledged, false);
        }
        10 => host.mark(),
        11 if needs == TIMEOUT => host.time_out(),
        11 if needs == SEGMENTS => {
            let other = OTHER_SEGMENTS[below(random, OTHER_SEGMENTS.len() as u64) as usize];
            host.change_segment(other.max(host.segment()));
        }
        11 if needs == PATHS => host.change_path(some(random)),
        11 => {
            host.lose(u64::MAX, 0, true);
            host.find_spurious();
        }
        12 => host.timer(),
        _ => host.be_idle(below(random, 400_000) * 1_000_000),
    }
}

/// The parameters of a scheme, as `key=value` with commas between them.
fn parameters(scheme: &StartupConfig) -> String {
    let value = serde_json::to_value(scheme).expect("a scheme of the registry is written as JSON");
    let mut written: Vec<String> = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten().filter(|(key, _)| *key != "kind") {
        match value {
            Value::Null | Value::Object(_) | Value::Array(_) => {}
            Value::String(text) => written.push(format!("{key}={text}")),
            other => written.push(format!("{key}={other}")),
        }
    }
    written.join(",")
}

/// What a scheme needs of its host, in words.
fn needs(scheme: &StartupConfig) -> String {
    let needs = scheme.needs();
    let each = Needs::EACH.into_iter().filter(|(need, _)| needs.contains(*need)).map(|(_, words)| words);
    each.collect::<Vec<_>>().join("; ")
}

/// The file of a scheme.
pub fn text(scheme: &StartupConfig) -> String {
    let Vectors(vectors) = Vectors::of(scheme);
    let header = json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "scheme": scheme.name(),
        "parameters": parameters(scheme),
        "avoidance": AVOIDANCE,
        "segment_bytes": SEGMENT,
        "initial_window_packets": INITIAL_WINDOW,
        "needs_of_host": needs(scheme),
        "tolerance_bytes": SEGMENT,
        "tolerance_rate_per_mille": RATE_TOLERANCE,
        "vectors": vectors.len(),
        "events": vectors.iter().map(|vector| vector.lines.len()).sum::<usize>(),
    });
    let mut text = format!("{header}\n");
    for (number, vector) in (1..).zip(&vectors) {
        let begin = json!({ "vector": number, "event": "begin", "name": vector.name, "needs": vector.needs });
        let _ = writeln!(text, "{begin}");
        for line in &vector.lines {
            let mut members = Map::new();
            members.insert("vector".into(), json!(number));
            members.insert("event".into(), json!(line.event.name()));
            members.extend(line.event.members().into_iter().map(|(name, value)| (name.to_owned(), json!(value))));
            line.decided.write(&mut members);
            let _ = writeln!(text, "{}", Value::Object(members));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::schemes;

    /// More random cases than the kit has.
    const MORE: u64 = 150;

    #[test]
    fn chance_finds_no_end_of_startup_that_the_vectors_lack() {
        for (file, scheme) in schemes() {
            let Vectors(vectors) = Vectors::of(&scheme);
            let lines = vectors.iter().flat_map(|vector| &vector.lines);
            let known: BTreeSet<&str> = lines.map(|line| line.decided.exit_reason.as_str()).collect();
            for case in 0..MORE {
                let random = &mut Substream::new(2, "conformance", case);
                let mut host = Host::launched(&scheme, some(random));
                let needs = RANDOM[case as usize % RANDOM.len()];
                (0..STEPS).for_each(|_| step(&mut host, random, needs));
                for line in &host.lines {
                    let reason = line.decided.exit_reason.as_str();
                    assert!(known.contains(reason), "{file}: {reason} in no vector, but in random case {case}");
                }
            }
        }
    }
}
