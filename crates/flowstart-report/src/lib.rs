//! Turns results into one self-contained HTML page.
//!
//! [`render`] shows a comparison (`flowstart compare`, `flowstart run`), [`render_trace`] shows a single run
//! (`flowstart trace`). Both take plain owned data, defined in this file, and return the whole page as a string:
//! style, script, charts and the libraries that draw them are inside it, and it requests nothing from anywhere.
//!
//! - `page.rs` turns a [`Report`] into what the template shows; `trace.rs` does so for a [`TraceReport`];
//! - `command.rs` writes commands as the reader can paste them;
//! - `chart/` writes the Vega-Lite specifications, `drawing.rs` the set-up drawing;
//! - `media.rs` has the tables of interactive media and of pairs of AQM and scheme;
//! - `reduce.rs` makes the data small enough to embed, `number.rs` writes numbers for people.
//!
//! Every number may be missing: `None`, NaN and infinity all mean "undefined" and are shown as an en dash.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod causes;
mod chart;
mod command;
mod drawing;
mod media;
mod number;
mod page;
mod pairs;
mod reduce;
#[cfg(test)]
mod tests;
mod trace;
mod unbeaten;

pub use causes::{CAUSES, Cause, Causes};
pub use pairs::{Pair, PairedSetting};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Everything the report of a comparison shows, in the order of the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// Heading of the page and name of the browser tab.
    pub title: String,
    /// The answer in sentences: the first is shown large, the others below it.
    pub answer: Vec<String>,
    /// What the experiment asks, from the scenario file. Blank lines separate paragraphs.
    pub question: Option<String>,
    /// How its author reads the results, from the scenario file. Blank lines separate paragraphs.
    pub analysis: Option<String>,
    /// Each distinct link of the experiment. Cells refer to it by [`Link::name`].
    pub links: Vec<Link>,
    /// What each kind of scheme does: name and a line.
    pub schemes: Vec<(String, String)>,
    /// What each kind of AQM does, where there is more than one.
    pub aqms: Vec<(String, String)>,
    /// Each cell of the experiment, in the order in which the table should show them at first. Schemes get their
    /// colour, dash and shape in the order of their first appearance here.
    pub cells: Vec<Cell>,
    /// Why the cells have no [`Causes`], when they could have.
    pub unexplained: Option<String>,
    /// AQMs and schemes together, where there is a choice of both.
    pub pairs: Vec<PairedSetting>,
    /// Comparison with numbers that somebody else published.
    pub published: Option<PublishedTable>,
    /// Runs to show as time series. Runs of the same link, size and competitor share a section and their axes.
    pub runs: Vec<ExampleRun>,
    /// How the numbers were obtained.
    pub method: Method,
}

/// A link (the bottleneck and the path around it), for the set-up drawing and its table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// As the user wrote it: a preset such as `dsl-fast`, or `rate=25mbit,rtt=50ms,buffer=50ms`.
    pub name: String,
    /// Rate of the bottleneck. `None` when it follows a trace file.
    pub rate_mbit: Option<f64>,
    /// RTT without any queue.
    pub rtt_ms: Option<f64>,
    /// Size of the bottleneck's buffer, in words: `208 packets (50 ms)`, `unlimited`.
    pub buffer: String,
    /// Each AQM that the experiment used on this link.
    pub aqms: Vec<String>,
    /// Each competitor that the experiment used on this link; `none` or nothing for an empty link.
    pub competitors: Vec<String>,
    /// Most measured flows of a cell (0 is shown as 1).
    pub measured_flows: u32,
    /// Whatever else shapes the path, as label and value: `("access rate", "10 Gbit/s")`, `("loss", "0.1 %")`.
    pub extra: Vec<(String, String)>,
}

/// A mean with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Estimate {
    /// The mean, or the ratio of two means.
    pub mean: Option<f64>,
    /// Lower and upper end of the interval.
    pub ci95: Option<[f64; 2]>,
}

/// One combination of link x AQM x size x scheme x competitor, over all its repetitions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// Identifier that `flowstart trace --cell` accepts.
    pub id: String,
    /// [`Link::name`] of its link.
    pub link: String,
    /// AQM of the bottleneck, as the user wrote it.
    pub aqm: String,
    /// Transfer size as the user wrote it (`2MB`).
    pub size: String,
    /// Transfer size in bytes, for sorting.
    pub size_bytes: u64,
    /// Startup scheme as the user wrote it.
    pub scheme: String,
    /// Congestion avoidance the scheme hands over to.
    pub avoidance: String,
    /// Competitor as the user wrote it; `none` without one.
    pub competitor: String,
    /// Transport as the user wrote it.
    pub transport: String,
    /// When the measured flows start, as the user wrote it; empty when they start together.
    pub arrival: String,
    /// Payload that they offer over the link's rate, where their arrival is a load.
    pub load: Option<f64>,
    /// Slow start's closed form over the physical limit, where the baseline is slow start alone on a link of fixed
    /// rate.
    pub model_speedup: Option<f64>,
    /// Speed-up of Quick-Start by counting round trips, where it is alone on such a link.
    pub rounds_speedup: Option<f64>,
    /// True for a cell of the scheme that the others are compared with.
    pub is_baseline: bool,
    /// Completed repetitions.
    pub n: u32,
    /// Repetitions that did not complete.
    pub failed: u32,
    /// The physical limit of the FCT on this link.
    pub ideal_fct_ms: Option<f64>,
    /// FCT.
    pub fct_ms: Estimate,
    /// Mean FCT of the baseline divided by the mean FCT: over 1 is faster. `None` for the baseline itself.
    pub speedup: Estimate,
    /// Whether the speed-up is significant (its interval excludes 1 after Holm's correction, and it is over 1 %).
    pub significant: Option<bool>,
    /// Whether the mean FCT differs from the baseline's by less than one RTT.
    pub within_one_rtt: Option<bool>,
    /// The longest time that a packet of a run waited at the bottleneck.
    pub max_queue_delay_ms: Estimate,
    /// Packets dropped by queues and loss models, minus the baseline's. `None` for the baseline itself.
    pub dropped_delta: Estimate,
    /// Retransmitted bytes / payload bytes.
    pub inflation: Estimate,
    /// Share of the bottleneck, 0 to 1, while the measured flow was active. `None` without other flows.
    pub share: Estimate,
    /// The share an equal split would give: 0.5 against one other flow.
    pub equal_share: Option<f64>,
    /// Goodput that the other flows lost because the measured flow came, in Mbit. `None` without other flows.
    pub goodput_lost_mbit: Estimate,
    /// Time that the others' transfers took longer because the measured flows came. `None` where they have no end; then
    /// [`Cell::goodput_lost_mbit`] says what they lost.
    pub extra_fct_ms: Estimate,
    /// What happened to interactive media beside the measured flows.
    pub media: Option<Media>,
    /// Where the time of one run went, best of the median one. `None` when no repetition completed.
    pub causes: Option<Causes>,
    /// The repetition that the replay command of the table shows, best the median one.
    pub replay_rep: Option<u32>,
    /// Values of the individual repetitions, for the distributions.
    pub samples: Samples,
    /// Points of curves against something that the experiment varies. Cells that have any are not shown as
    /// distributions.
    pub curves: Vec<CurvePoint>,
}

/// What measured flows did to interactive media (`MediaOutcome` of `flowstart-lab`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Media {
    /// Median one-way delay.
    pub delay_p50_ms: Estimate,
    /// Delay that 95 % of the packets do not exceed.
    pub delay_p95_ms: Estimate,
    /// Delay that 99 % do not exceed.
    pub delay_p99_ms: Estimate,
    /// Longest delay.
    pub delay_max_ms: Estimate,
    /// Part of the packets that did not arrive.
    pub loss: Estimate,
    /// Part of the packets that arrived after their playout time.
    pub late: Estimate,
    /// MOS over the run.
    pub mos: Estimate,
    /// MOS while packets were harmed.
    pub harm_mos: Estimate,
    /// MOS of the worst second.
    pub worst_1s_mos: Estimate,
    /// MOS of the worst 5 s.
    pub worst_5s_mos: Estimate,
    /// From the measured flows' start until no packet is harmed any more.
    pub harm_ms: Estimate,
}

/// A point of a curve.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CurvePoint {
    /// What the panel shows, with its unit.
    pub metric: String,
    /// What the line is called.
    pub variant: String,
    /// What varies along the axis.
    pub x_title: String,
    /// Its value.
    pub x: f64,
    /// The metric's.
    pub y: Estimate,
}

/// Values of the individual repetitions of a cell. The lists need neither order nor equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Samples {
    /// FCT of each completed repetition.
    pub fct_ms: Vec<f64>,
    /// Share of the bottleneck, 0 to 1.
    pub share: Vec<f64>,
    /// Dropped packets.
    pub dropped_packets: Vec<f64>,
    /// One-way delay of the media packets that were sent while the measured flows were there, all repetitions together.
    pub media_delay_ms: Vec<f64>,
    /// Size in bytes and FCT of each connection of one repetition, where each has a size of its own.
    pub size_fct: Vec<[f64; 2]>,
}

/// Our results beside those of a publication that varied a bandwidth estimate over links and sizes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublishedTable {
    /// What was published where, as a noun phrase: `Table 1 of the Blitzstart paper (2019)`.
    pub source: String,
    /// Anything needed to read the comparison, such as known faults of the publication.
    pub note: Option<String>,
    /// The cells. Links and sizes become columns in the order of their first appearance, estimates become rows.
    pub cells: Vec<PublishedCell>,
    /// What the publication claims, checked against our numbers.
    pub checks: Vec<Check>,
}

/// One published cell and ours.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublishedCell {
    /// Bandwidth estimate as a multiple of the true bandwidth of the bottleneck.
    pub estimate: f64,
    /// Name of the link.
    pub link: String,
    /// Transfer size, as text.
    pub size: String,
    /// Our speed-up over the baseline: over 1 is faster.
    pub ours_speedup: Estimate,
    /// Our mean FCT minus the baseline's.
    pub ours_fct_delta_ms: Option<f64>,
    /// The published speed-up, in the same direction as ours: below 1 when the publication says slower.
    pub published_speedup: Option<f64>,
    /// The published difference of the mean FCT.
    pub published_fct_delta_ms: Option<f64>,
    /// Our extra losses in packets over the baseline.
    pub ours_loss_delta: Estimate,
    /// The published extra losses in packets.
    pub published_loss_delta: Option<f64>,
    /// Whether our difference in FCT is significant.
    pub significant: Option<bool>,
    /// Whether our difference in losses is significant. `None` decides by whether its interval excludes 0.
    pub loss_significant: Option<bool>,
    /// Whether our mean FCT differs from the baseline's by less than one RTT.
    pub within_one_rtt: Option<bool>,
}

/// A claim of a publication and what we found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Check {
    /// The claim, as a sentence.
    pub statement: String,
    /// What must be measured for the claim to hold.
    pub expected: String,
    /// What was measured.
    pub measured: String,
    /// Pass or miss; `None` when it could not be checked.
    pub pass: Option<bool>,
}

/// One repetition as a time series. Times are in milliseconds; 0 is when the measured flow opens.
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
    /// Which run it is: `the median run`, `the run at the 95th percentile`.
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
    /// Each packet leaving the bottleneck: `[time, wire bytes]`, in order of time; or what left in each bin, with the
    /// time of the latest packet.
    pub departures: Vec<[f64; 2]>,
    /// Milliseconds of a bin of departures; 0 when each is a packet.
    pub bin_ms: f64,
}

/// How the numbers of a report were obtained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Method {
    /// The exact command.
    pub command: String,
    /// Directory of the results as it has to be written after `--from`.
    pub directory: String,
    /// Version of flowstart.
    pub version: String,
    /// Master seed.
    pub seed: Option<u64>,
    /// Repetitions asked for per cell.
    pub repetitions: Option<u32>,
    /// The machine, in words.
    pub host: String,
    /// When it ran, as text.
    pub date: String,
    /// How long it took.
    pub wall_time_s: Option<f64>,
    /// Data files beside the report. Empty means the usual four: `flows.csv`, `flows.parquet`, `summary.json`,
    /// `manifest.json`.
    pub files: Vec<DataFile>,
    /// Anything else the reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// A data file beside the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataFile {
    /// Its name, relative to the report.
    pub name: String,
    /// What it holds.
    pub what: String,
}

/// One run in all detail. Times are in milliseconds; 0 is when the measured flow opens.
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
    /// Competitor; `none` without one.
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
    /// Why startup ended.
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
    /// How the run was made.
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

/// The page of a comparison.
pub fn render(report: &Report) -> Result<String, RenderError> {
    page::render(report)
}

/// The page of a single run.
pub fn render_trace(trace: &TraceReport) -> Result<String, RenderError> {
    trace::render(trace)
}

/// A page could not be written. This is a fault of the renderer, not of the data.
#[derive(Debug)]
pub struct RenderError(Problem);

#[derive(Debug)]
enum Problem {
    Template(minijinja::Error),
    Json(serde_json::Error),
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            // The alternate form names the template and the line.
            Problem::Template(error) => write!(f, "cannot write the report: {error:#}"),
            Problem::Json(error) => write!(f, "cannot write the report's charts: {error}"),
        }
    }
}

impl std::error::Error for RenderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Problem::Template(error) => Some(error),
            Problem::Json(error) => Some(error),
        }
    }
}

impl From<minijinja::Error> for RenderError {
    fn from(error: minijinja::Error) -> Self {
        Self(Problem::Template(error))
    }
}

impl From<serde_json::Error> for RenderError {
    fn from(error: serde_json::Error) -> Self {
        Self(Problem::Json(error))
    }
}
