//! One traced run as files for other tools.
//!
//! [`export`] writes files during the run, in memory that does not depend on the transfer. A
//! [`TracedRun`](super::traced::TracedRun) has the events of a small run in memory, to inspect and write them
//! afterwards.
//!
//! | Looking for | Where |
//! |---|---|
//! | files that are written during a run | [`export`] |
//! | a table of events | [`TracedRun::write_csv`](crate::trace::traced::TracedRun::write_csv) |
//! | a log for QUIC tools | [`write_qlog`](super::traced::TracedRun::write_qlog) |
//! | a capture for packet tools | [`write_pcapng`](super::traced::TracedRun::write_pcapng) |

use flowstart_core::time::Duration;
use flowstart_sim::transport::policy::Protocol;
use flowstart_sim::transport::profile::Profile;

use crate::study::plan::{Cell, Plan};
use crate::trace::observe::{Resolution, Watched};

mod csv;
mod exporter;
mod pcapng;
mod qlog;
#[cfg(all(test, feature = "quic"))]
mod quic_tests;
#[cfg(test)]
mod quick_start_tests;
#[cfg(test)]
mod tests;

pub use csv::{COLUMNS, Columns, Kind};
pub use exporter::{ExportError, Exported, Format, Outputs, Sink, export};

/// A description of the run, in a sentence.
fn title(plan: &Plan, cell: &Cell) -> String {
    let transport = &plan.transport_of(cell).text;
    let (scheme, size) = (&plan.schemes[cell.scheme].text, plan.carried(cell));
    let (link, aqm) = (&plan.links[cell.link].text, &plan.aqms[cell.aqm].text);
    let competitor = &plan.competitors[cell.competitor].text;
    let avoidance = &plan.avoidance_of(cell).text;
    format!("{scheme} with {avoidance} on {transport}: {size} over {link}, queue {aqm}, competitor {competitor}")
}

/// The contents of a page.
pub const PAGE: Watched = Watched {
    causes: true,
    series: Some(Resolution { bins: 8192, marks: 40_000, volume: 2, longest: Duration::MAX, whole: true }),
};

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of an IPv4 header without options.
const IPV4: u32 = 20;
/// Bytes of a UDP header.
const UDP: u32 = 8;
/// Bytes of a TCP header without options.
const TCP: u32 = 20;

/// Bytes below TCP or QUIC in a profile's wire sizes: IPv4, UDP for QUIC, and Ethernet if the profile counts it.
fn lower_headers(profile: &Profile) -> u32 {
    let (least, below) = match profile.protocol {
        Protocol::Tcp => (IPV4, profile.overhead.saturating_sub(TCP)),
        Protocol::Quic => (IPV4 + UDP, profile.overhead.saturating_sub(profile.overhead_in_flight)),
    };
    if below >= least + ETHERNET { least + ETHERNET } else { least }
}
