//! A run that is shown as time series has these.

use serde::{Deserialize, Serialize};

/// One repetition as a time series. Times are in milliseconds, and 0 is when the measured flow opens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExampleRun {
    /// Cell it belongs to, for the replay command.
    pub cell: String,
    /// Repetition, for the replay command.
    pub rep: u32,
    /// Name of the link.
    pub link: String,
    /// Transfer size, as text.
    pub size: String,
    /// Startup scheme.
    pub scheme: String,
    /// Competitor.
    pub competitor: String,
    /// Which run it is: `the median pair`, `a slow repetition (95th percentile)`.
    pub label: String,
    /// FCT of this run.
    pub fct_ms: Option<f64>,
    /// RTT without any queue: the width of the short rolling mean.
    pub rtt_ms: f64,
    /// Rate of the bottleneck, drawn as a line.
    pub rate_mbit: Option<f64>,
    /// When the record begins, usually negative. Other flows sent before it, too.
    pub from_ms: f64,
    /// When the record ends.
    pub to_ms: f64,
    /// The flows that shared the bottleneck.
    pub flows: Vec<RunFlow>,
    /// Data that the measured flow sent for the first time: `[time, offset of the first byte]`.
    pub sent: Vec<[f64; 2]>,
    /// cwnd of the measured flow: `[time, bytes]` at each change.
    pub cwnd: Vec<[f64; 2]>,
    /// Bytes in flight of the measured flow: `[time, bytes]` at each change.
    pub in_flight: Vec<[f64; 2]>,
    /// Queue at the bottleneck: `[time, packets]` at each change.
    pub queue_packets: Vec<[f64; 2]>,
    /// When packets of the measured flow were dropped.
    pub drops: Vec<f64>,
    /// When packets of other flows were dropped.
    pub other_drops: Vec<f64>,
}

/// A flow at the bottleneck of an [`ExampleRun`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunFlow {
    /// Name shown in tooltips, such as `bulk:cubic`.
    pub name: String,
    /// True for the measured flow, false for a competitor.
    pub measured: bool,
    /// Each packet leaving the bottleneck: `[time, wire bytes]`, in order of time. With bins, what left in each of them
    /// and the time of its latest packet.
    pub departures: Vec<[f64; 2]>,
    /// Milliseconds of a bin of departures. 0 when each is a packet.
    pub bin_ms: f64,
}
