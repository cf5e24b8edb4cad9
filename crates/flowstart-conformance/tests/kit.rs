//! The kit is the same for the same build, bounded, and its lines are what the runner reads. Every scheme meets what
//! ends its startup, and no scheme passes for another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use flowstart_conformance::{Event, File, INITIAL_WINDOW, SEGMENT, Vector, Vectors, files, schemes};
use flowstart_core::startup::StartupConfig;

/// Largest file of a scheme, in bytes.
const LARGEST: usize = 1_100_000;
/// Longest line that the runner reads.
const LONGEST_LINE: usize = 4094;
/// [`hash`] of slow start's vectors without their first line, which has the version. It changes with the format, the
/// cases, and what slow start and Reno decide: say in the changelog that ports have to follow.
const SLOW_START: u64 = 0x19e7_4677_b843_97a1;

/// What ends startup with every scheme: congestion.
const CONGESTION: [&str; 3] = ["loss", "ecn", "timeout"];
/// What else ends it, with the files whose vectors must show it. A file that is not here has no other reason.
const OTHER_REASONS: [(&str, &[&str]); 20] = [
    ("blitzstart", &["advice", "launch"]),
    ("careful-resume", &["advice", "path-changed"]),
    ("ensemble-sharing", &["advice", "launch"]),
    ("halfback", &["advice"]),
    ("hystart", &["delay"]),
    ("hystart-plus-plus", &["delay"]),
    ("hystart.linux", &["ack-train", "delay"]),
    ("hystart.ns3", &["ack-train", "delay"]),
    ("jump-start", &["advice"]),
    ("more-start", &["advice"]),
    ("plumb", &["advice", "delay"]),
    ("quick-start", &["advice"]),
    ("quick-start.congestion-avoidance", &["advice", "validated"]),
    ("rapid-start", &["advice"]),
    ("search", &["chokepoint"]),
    ("search.freebsd", &["chokepoint"]),
    ("search.linux", &["chokepoint"]),
    ("search.slides", &["chokepoint"]),
    ("suss", &["ack-train", "advice", "delay"]),
    ("swift-start", &["advice"]),
];

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The cases of all files.
static CASES: LazyLock<BTreeMap<String, Vec<Vector>>> =
    LazyLock::new(|| schemes().into_iter().map(|(name, scheme)| (name, Vectors::of(&scheme).0)).collect());
static FILES: LazyLock<Vec<File>> = LazyLock::new(files);

#[test]
fn the_same_build_writes_the_same_bytes_within_bounds() {
    assert_eq!(*FILES, files());
    let vectors: Vec<_> = FILES.iter().filter(|file| file.path.starts_with("vectors/")).collect();
    let names = StartupConfig::NAMES.iter().map(|name| format!("vectors/{name}.jsonl"));
    assert!(vectors.iter().take(StartupConfig::NAMES.len()).map(|file| file.path.clone()).eq(names));
    for file in vectors {
        assert!(file.text.len() < LARGEST, "{}: {} bytes", file.path, file.text.len());
        for line in file.text.lines() {
            assert!(line.len() < LONGEST_LINE && line.is_ascii() && !line.contains('\\'), "{}: {line}", file.path);
        }
    }
}

#[test]
fn the_vectors_of_slow_start_are_the_known_ones() {
    let file = FILES.iter().find(|file| file.path == "vectors/slow-start.jsonl").expect("slow start");
    let (_, events) = file.text.split_once('\n').expect("lines");
    assert_eq!(hash(events), SLOW_START, "{:#x}", hash(events));
}

#[test]
fn no_two_schemes_have_the_same_vectors() {
    let mut seen = BTreeMap::new();
    for file in FILES.iter().filter(|file| file.path.starts_with("vectors/")) {
        let (_, events) = file.text.split_once('\n').expect("lines");
        if let Some(other) = seen.insert(events, &file.path) {
            panic!("{} and {other} have the same vectors", file.path);
        }
    }
}

#[test]
fn every_reason_for_which_a_scheme_leaves_startup_occurs_in_its_vectors() {
    let mut found = BTreeMap::new();
    for (file, vectors) in CASES.iter() {
        let lines = vectors.iter().flat_map(|vector| &vector.lines);
        let reasons: BTreeSet<&str> = lines.map(|line| line.decided.exit_reason.as_str()).collect();
        assert!(CONGESTION.iter().all(|reason| reasons.contains(reason)), "{file}: {reasons:?}");
        let others = reasons.into_iter().filter(|reason| !reason.is_empty() && !CONGESTION.contains(reason));
        found.insert(file.as_str(), others.collect::<Vec<_>>());
    }
    found.retain(|_, reasons| !reasons.is_empty());
    let expected = OTHER_REASONS.map(|(file, reasons)| (file, reasons.to_vec()));
    assert_eq!(found, BTreeMap::from(expected));
}

/// Slow start as RFC 9002, section 7.3.1 has it, written again: a port in a few lines, until startup ends.
#[derive(Debug)]
struct PlainSlowStart {
    cwnd: u64,
}

impl PlainSlowStart {
    /// Whether it decides what a case expects, within what a port may differ by, until congestion, another path or
    /// other packets.
    fn passes(vector: &Vector, tolerance: u64) -> bool {
        let mut port = Self { cwnd: INITIAL_WINDOW * SEGMENT };
        for line in &vector.lines {
            match line.event {
                Event::Lost { .. } | Event::Timeout { .. } | Event::Segment { .. } | Event::Path { .. } => return true,
                Event::Acked(acked) if acked.marks > 0 => return true,
                Event::Acked(acked) if acked.app_limited == 0 => port.cwnd += acked.bytes,
                _ => {}
            }
            if line.decided.cwnd.abs_diff(port.cwnd) > tolerance || !line.decided.in_startup {
                return false;
            }
        }
        true
    }
}

#[test]
fn a_slow_start_from_its_text_passes_for_slow_start_alone() {
    for (file, vectors) in CASES.iter() {
        let tolerance = if file == "slow-start" { 0 } else { SEGMENT };
        let failed = vectors.iter().filter(|vector| !PlainSlowStart::passes(vector, tolerance)).count();
        assert_eq!(failed == 0, file == "slow-start", "{file}: {failed} vectors differ");
    }
}

#[test]
fn the_cases_meet_what_they_are_about() {
    for (file, vectors) in CASES.iter() {
        let case = |begin: &str| vectors.iter().find(|vector| vector.name.starts_with(begin)).expect("a case");
        let first = &case("launch and six").lines;
        assert!(first.last().expect("lines").decided.cwnd > first[0].decided.cwnd.min(12_000), "{file}");
        for begin in ["loss in the launch", "mark in", "a queue that overflows", "a queue that marks"] {
            let reason = &case(begin).lines.last().expect("lines").decided.exit_reason;
            assert!(!reason.is_empty(), "{file}: {begin}");
        }
        let collapsed = case("persistent congestion").lines.iter().any(|line| line.decided.cwnd == 2400);
        let timed_out = case("retransmission timeout").lines.iter().any(|line| line.decided.cwnd == 2400);
        assert!(collapsed && timed_out, "{file}");
        for event in ["launch", "sent", "lost", "acked", "timer", "timeout", "spurious", "segment", "path"] {
            let mut random = vectors.iter().filter(|vector| vector.name.starts_with("random"));
            let happens = random.any(|vector| vector.lines.iter().any(|line| line.event.name() == event));
            assert!(happens, "{file}: no {event} at random");
        }
    }
}
