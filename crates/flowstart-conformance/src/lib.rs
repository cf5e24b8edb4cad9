//! The conformance kit: what every startup scheme decides, event by event, for ports in other languages and stacks.
//!
//! [`files`] makes a JSON Lines file for each scheme of the registry, a header of C with a runner, and a README. The
//! expectations are those of the controller of `flowstart-core`.
//!
//! | Looking for | Where |
//! |---|---|
//! | events, and their lines | `event` |
//! | the controller as the first port | [`Reference`] |
//! | a host that makes valid events | `host` |
//! | a path with a bottleneck | `network` |
//! | the cases: worked boundaries, paths, and random ones | `vectors` |
//! | the schemes with a file, and their variants | [`schemes`] |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod event;
mod host;
mod network;
mod reference;
mod vectors;

use flowstart_core::startup::StartupConfig;

pub use event::{Acked, Decided, Event, Known, Line};
pub use reference::Reference;
pub use vectors::{Vector, Vectors, text};

/// Version of the format of the vectors.
pub const FORMAT: u64 = 2;
/// Size of a full packet.
pub const SEGMENT: u64 = 1200;
/// Initial window in packets.
pub const INITIAL_WINDOW: u64 = 10;
/// The congestion avoidance after startup: the simplest that is whole numbers.
pub const AVOIDANCE: &str = "reno";
/// By how much the pacing rate of a port in fixed point may differ, in thousandths.
pub const RATE_TOLERANCE: u64 = 20;

/// RTT of the worked cases, in nanoseconds.
const RTT: u64 = 50_000_000;

/// Schemes of which another published form than the default leaves startup for reasons of its own: the name of its
/// file, and its configuration.
const VARIANTS: [(&str, &str); 6] = [
    ("hystart.linux", r#"{"kind": "hystart", "variant": "linux"}"#),
    ("hystart.ns3", r#"{"kind": "hystart", "variant": "ns3"}"#),
    ("search.slides", r#"{"kind": "search", "variant": "slides"}"#),
    ("search.freebsd", r#"{"kind": "search", "variant": "freebsd"}"#),
    ("search.linux", r#"{"kind": "search", "variant": "linux"}"#),
    ("quick-start.congestion-avoidance", r#"{"kind": "quick-start", "verified": "congestion-avoidance"}"#),
];

/// The header of C.
const HEADER: &str = include_str!("../c/flowstart_conformance.h");
/// What stands beside the vectors.
const README: &str = include_str!("../c/README.md");

/// A file of the kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the kit's folder.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The schemes with a file of vectors, and the name of the file: those of the registry with their defaults, and
/// variants that leave startup for other reasons.
pub fn schemes() -> Vec<(String, StartupConfig)> {
    let defaults = StartupConfig::defaults().into_iter().map(|scheme| (scheme.name().to_owned(), scheme));
    let variants = VARIANTS.map(|(name, text)| {
        (name.to_owned(), serde_json::from_str(text).expect("a configuration that the registry knows"))
    });
    defaults.chain(variants).collect()
}

/// All files of the kit, in order. The same build always makes the same.
pub fn files() -> Vec<File> {
    let vectors =
        schemes().into_iter().map(|(name, scheme)| File { path: format!("vectors/{name}.jsonl"), text: text(&scheme) });
    let others = [("README.md", README), ("flowstart_conformance.h", HEADER)];
    let others = others.map(|(path, text)| File { path: path.to_owned(), text: text.to_owned() });
    others.into_iter().chain(vectors).collect()
}
