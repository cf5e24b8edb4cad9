//! A cell has what all repetitions of one combination measured.

use super::{Causes, Estimate, Verdict};
use serde::{Deserialize, Serialize};

/// One combination of link x AQM x size x scheme x competitor, over all its repetitions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// Identifier that `flowstart trace --cell` accepts.
    pub id: String,
    /// Its link's [name](super::Link::name).
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
    /// Competitor as the user wrote it. `none` without one.
    pub competitor: String,
    /// Transport as the user wrote it.
    pub transport: String,
    /// When the measured flows start, as the user wrote it. Empty when they start together.
    pub arrival: String,
    /// Payload that they offer over the link's rate, where their arrival is a load.
    pub load: Option<f64>,
    /// Slow start's closed form over the physical limit, where the baseline is slow start alone on a link of fixed
    /// rate.
    pub model_speedup: Option<f64>,
    /// Speed-up of Quick-Start by counting round trips, where it is alone on such a link.
    pub rounds_speedup: Option<f64>,
    /// Identifier of the cell that it is compared with. Empty stands for the cell of the first scheme in the same
    /// setting.
    pub baseline: String,
    /// True for a cell of the scheme that the others are compared with.
    pub is_baseline: bool,
    /// Completed repetitions.
    pub n: u32,
    /// Repetitions that did not complete.
    pub failed: u32,
    /// The physical limit of the FCT on this link.
    pub ideal_fct_ms: Option<f64>,
    /// What [`Cell::fct_ms`] is.
    pub time: Time,
    /// FCT, or another time that users notice more.
    pub fct_ms: Estimate,
    /// Mean FCT of the baseline divided by the mean FCT: over 1 is faster. `None` for the baseline itself.
    pub speedup: Estimate,
    /// What the comparison with the baseline shows. `None` for the baseline itself.
    pub verdict: Option<Verdict>,
    /// The longest time that a packet of a run waited at the bottleneck.
    pub max_queue_delay_ms: Estimate,
    /// Packets dropped by queues and loss models, minus the baseline's. `None` for the baseline itself.
    pub dropped_delta: Estimate,
    /// Packets dropped by queues and loss models.
    pub dropped_packets: Estimate,
    /// Share of the flow's packets that queues and loss models dropped, 0 to 1.
    pub lost: Estimate,
    /// Retransmitted bytes / payload bytes.
    pub inflation: Estimate,
    /// Share of the bottleneck, 0 to 1, while the measured flow was active. `None` without other flows.
    pub share: Estimate,
    /// The share an equal split would give: 0.5 against one other flow.
    pub equal_share: Option<f64>,
    /// Goodput that the other flows lost because the measured flow came, in Mbit. `None` without other flows.
    pub goodput_lost_mbit: Estimate,
    /// Packets that the other flows lost because the measured flow came. `None` without other flows.
    pub others_dropped: Estimate,
    /// Time that the others' transfers took longer because the measured flows came. `None` where they have no end.
    /// [`Cell::goodput_lost_mbit`] then says what they lost.
    pub extra_fct_ms: Estimate,
    /// What happened to interactive media beside the measured flows.
    pub media: Option<Media>,
    /// What happened to video calls beside the measured flows.
    pub call: Option<Call>,
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

impl Cell {
    /// Whether its scheme names a congestion avoidance of its own, as in `slow-start:avoidance=reno`.
    pub(crate) fn names_its_avoidance(&self) -> bool {
        self.scheme.contains("avoidance=")
    }
}

/// What the time of a cell is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// The flow's completion time.
    #[default]
    Completion,
    /// The mean time from when a chunk is written until its last byte has arrived.
    Chunk,
    /// The time until the first picture of a video.
    FirstPicture,
}

/// What measured flows did to interactive media.
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

/// What measured flows did to video calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    /// Median time from a frame's encoding until all of it had arrived.
    pub delay_p50_ms: Estimate,
    /// Time that 95 % of the frames do not exceed.
    pub delay_p95_ms: Estimate,
    /// Time that 99 % do not exceed.
    pub delay_p99_ms: Estimate,
    /// Longest time.
    pub delay_max_ms: Estimate,
    /// Part of the frames that lacked a packet.
    pub lost: Estimate,
    /// Part of the frames that could be shown only after their deadline.
    pub late: Estimate,
    /// Part of the frames that were not shown.
    pub not_shown: Estimate,
    /// Part of the time in which the picture was frozen.
    pub frozen: Estimate,
    /// Longest time for which it was frozen.
    pub longest_freeze_ms: Estimate,
    /// From the measured flows' start until the last frame that was not shown.
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
    /// The longest time that a packet waited at the bottleneck.
    pub max_queue_delay_ms: Vec<f64>,
    /// One-way delay of the media packets that were sent while the measured flows were there, all repetitions together.
    pub media_delay_ms: Vec<f64>,
    /// Size in bytes and FCT of each connection of one repetition, where each has a size of its own.
    pub size_fct: Vec<[f64; 2]>,
}
