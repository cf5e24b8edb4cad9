//! The summary of one cell's repetitions, as in `summary.json`.

use std::collections::BTreeMap;

use flowstart_report::{Kind, Verdict};
use flowstart_statistics::Metric;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A cell against its baseline. Its FCT is the time that users feel ([`felt`](super::felt::felt)).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline's cell.
    pub baseline: String,
    /// Repetitions that completed in both cells, which all of this is of.
    pub repetitions: usize,
    /// Mean baseline FCT over mean FCT. Here and in all of this repetitions count alike, whatever the number of their
    /// flows, and flows count that completed in both cells; the cells' own means are over all flows that completed.
    pub speedup: Option<f64>,
    /// Its 95 % interval.
    pub speedup_ci95: Option<[f64; 2]>,
    /// Its simultaneous interval: those of all comparisons of the experiment contain the true speed-ups at once, as
    /// often as [`simultaneous_ratios`](flowstart_statistics::simultaneous_ratios) says. Absent where all repetitions
    /// are one run.
    pub speedup_ci: Option<[f64; 2]>,
    /// Confidence of the simultaneous interval.
    pub level: f64,
    /// Mean FCT minus mean baseline FCT.
    pub fct_delta_ms: Option<f64>,
    /// Its 95 % interval.
    pub fct_delta_ci95: Option<[f64; 2]>,
    /// Mean of the extra dropped packets.
    pub dropped_delta: Option<f64>,
    /// Its 95 % interval.
    pub dropped_delta_ci95: Option<[f64; 2]>,
    /// Mean of the extra inflation.
    pub inflation_delta: Option<f64>,
    /// Whether the simultaneous interval excludes 1, and the effect exceeds 1 %.
    pub significant: bool,
    /// What the comparison shows; null if no repetition completed in both cells. `verdict` is `deterministic` where all
    /// repetitions are one run; `kind` then still says what this run shows.
    #[serde(flatten, serialize_with = "in_words")]
    pub verdict: Option<Verdict>,
}

fn in_words<S: Serializer>(verdict: &Option<Verdict>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Words {
        verdict: Option<&'static str>,
        kind: Option<Kind>,
    }
    let words = Words { verdict: verdict.map(Verdict::word), kind: verdict.map(|one| one.kind) };
    words.serialize(serializer)
}

/// Harm to others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Others {
    /// Payload that they did not receive.
    pub goodput_lost_mbit: Metric,
    /// Additional packets that they lost.
    pub dropped_packets: Metric,
    /// Extra waiting time of their packets.
    pub extra_delay_ms: Metric,
    /// Extra completion time of their transfers, absent for flows without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_fct_ms: Option<Metric>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSummary {
    /// Name.
    pub id: String,
    /// Link as written.
    pub link: String,
    /// AQM as written.
    pub aqm: String,
    /// Transfer size; the mean of a distribution.
    pub size_bytes: u64,
    /// Scheme as written.
    pub scheme: String,
    /// Congestion avoidance as written.
    pub avoidance: String,
    /// Competitor as written.
    pub competitor: String,
    /// Transport as written.
    pub transport: String,
    /// Application as written, unless it is a transfer; `size_bytes` is its total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Arrival, idle policy and any other axis as written, by name, unless it is the default.
    #[serde(flatten)]
    pub otherwise: BTreeMap<&'static str, String>,
    /// The cell with every default filled in.
    pub resolved: Value,
    /// Flows that completed.
    pub n: usize,
    /// Flows that did not.
    pub failed: usize,
    /// Number of different repetitions: 1 where nothing varies between them.
    pub distinct: usize,
    /// Part of the flows that completed whose time that users feel is within 20 % of the mean; absent if
    /// none did.
    pub near_mean: Option<f64>,
    /// Part of the data packets that was lost.
    pub lost_share: Metric,
    /// The physical limit.
    pub ideal_fct_ms: f64,
    /// Metrics by name.
    pub metrics: BTreeMap<&'static str, Metric>,
    /// Number of startups that ended for each reason; those of which it is not known are left out.
    pub exit_reasons: BTreeMap<String, usize>,
    /// Harm to others, absent without others.
    pub others: Option<Others>,
    /// The comparison with the baseline, absent for the baseline.
    pub vs_baseline: Option<Comparison>,
}
