//! A single run is told in all this detail.

use super::{Causes, Link, Method};
use serde::{Deserialize, Serialize};

/// One run in all detail. Times are in milliseconds, and 0 is when the measured flow opens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceReport {
    /// Heading of the page and name of the browser tab. Empty makes one from scheme, size and link.
    pub title: String,
    /// The run in a sentence or a few: the first is shown large.
    pub answer: Vec<String>,
    /// The link.
    pub link: Link,
    /// Transfer size, as text.
    pub size: String,
    /// Startup scheme.
    pub scheme: String,
    /// Congestion avoidance.
    pub avoidance: String,
    /// Transport.
    pub transport: String,
    /// Competitor. `none` without one.
    pub competitor: String,
    /// Repetition.
    pub rep: Option<u32>,
    /// FCT of the run.
    pub fct_ms: Option<f64>,
    /// The physical limit of the FCT.
    pub ideal_fct_ms: Option<f64>,
    /// Packets of the flow that queues and loss models dropped.
    pub dropped_packets: Option<u64>,
    /// Bytes that were sent again.
    pub retransmitted_bytes: Option<u64>,
    /// Retransmitted bytes / payload bytes.
    pub inflation: Option<f64>,
    /// Share of the bottleneck, 0 to 1.
    pub share: Option<f64>,
    /// When startup ended.
    pub exit_ms: Option<f64>,
    /// Why startup ended. `None` if it lasted until the end of the run.
    pub exit_reason: Option<String>,
    /// Longest queueing delay the flow met.
    pub max_queue_delay_ms: Option<f64>,
    /// Where the time went. `None` when the transfer did not finish.
    pub causes: Option<Causes>,
    /// What happened, in order of time.
    pub events: Vec<TraceEvent>,
    /// First transmissions: `[time, offset of the segment's first byte]`.
    pub sent: Vec<[f64; 2]>,
    /// Repeated transmissions: `[time, offset]`.
    pub retransmitted: Vec<[f64; 2]>,
    /// Segments dropped on the way: `[time, offset]`.
    pub dropped: Vec<[f64; 2]>,
    /// First byte that is not yet acknowledged: `[time, offset]` at each change.
    pub acked: Vec<[f64; 2]>,
    /// cwnd: `[time, bytes]` at each change.
    pub cwnd: Vec<[f64; 2]>,
    /// Bytes in flight: `[time, bytes]` at each change.
    pub in_flight: Vec<[f64; 2]>,
    /// ssthresh: `[time, bytes]` at each change, nothing while it is unlimited.
    pub ssthresh: Vec<[f64; 2]>,
    /// Pacing rate: `[time, Mbit/s]` at each change, nothing while unpaced.
    pub pacing_rate_mbit: Vec<[f64; 2]>,
    /// Queue at the bottleneck: `[time, packets]` at each change.
    pub queue_packets: Vec<[f64; 2]>,
    /// When packets of other flows were dropped.
    pub other_drops: Vec<f64>,
    /// Inner variables of the startup scheme and of the congestion avoidance.
    pub variables: Vec<TraceVariable>,
    /// How the run was made.
    pub method: Method,
}

/// An inner variable of an algorithm, named as in the algorithm's reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceVariable {
    /// The algorithm, such as `search` or `cubic`.
    pub algorithm: String,
    /// Its name.
    pub name: String,
    /// Its unit: `bytes`, `Mbit/s`, `ms`, or empty for a number without one.
    pub unit: String,
    /// `[time, value]` at each change.
    pub points: Vec<[f64; 2]>,
    /// When the algorithm ceased to be in charge; `None`: it was until the end of the run.
    pub until_ms: Option<f64>,
}

/// Runs of the same setting and the same repetition, a scheme each, in one picture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OverlayReport {
    /// Heading of the page and name of the browser tab. Empty makes one from schemes, size and link.
    pub title: String,
    /// The comparison in a few sentences: the first is shown large.
    pub answer: Vec<String>,
    /// A run for each scheme. What they share is taken from the first.
    pub runs: Vec<TraceReport>,
    /// How the runs were made.
    pub method: Method,
}

/// Something that happened in a traced run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceEvent {
    /// When.
    pub time_ms: f64,
    /// What kind of event.
    pub kind: TraceEventKind,
    /// The particulars: the launch's cwnd and pacing rate, the exit reason, how many packets.
    pub detail: String,
}

/// Kinds of [`TraceEvent`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEventKind {
    /// The startup scheme launched.
    Launch,
    /// The launch was limited: by the receive window, the bytes waiting, a safety cap.
    Capped,
    /// Startup ended.
    Exit,
    /// Packets were declared lost.
    Loss,
    /// A retransmission timeout fired.
    Rto,
    /// Anything else.
    #[default]
    Other,
}
