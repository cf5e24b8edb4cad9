//! A question about a fleet: what each choice does to all of its transfers.

use super::{Estimate, Method, Verdict};
use serde::{Deserialize, Serialize};

/// Everything the page of a fleet shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetReport {
    /// Heading of the page and name of the browser tab.
    pub title: String,
    /// The answer in sentences: the first is shown large, the others below it.
    pub answer: Vec<String>,
    /// What a choice is called, such as `scheme`.
    pub word: String,
    /// The choices, the baseline first.
    pub choices: Vec<FleetChoice>,
    /// The recommended choice; the baseline, if there is no better one.
    pub recommended: String,
    /// The recommended choice in each kind of transfer, where it gains least first.
    pub kinds: Vec<FleetKind>,
    /// How the numbers were obtained.
    pub method: Method,
}

/// What a choice does to the fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetChoice {
    /// As the user wrote it.
    pub name: String,
    /// How many times as fast as with the baseline a transfer is. `None` for the baseline itself.
    pub gain: Estimate,
    /// What that shows. `None` for the baseline itself.
    pub verdict: Option<Verdict>,
    /// Median of the completion times.
    pub p50_ms: Estimate,
    /// Their 95th percentile.
    pub p95_ms: Estimate,
    /// What transfers take longer than with the best choice for their kind, over that.
    pub regret: Option<f64>,
    /// Retransmitted bytes / payload bytes.
    pub inflation: Option<f64>,
    /// 99th percentile of the time in the queue.
    pub queue_delay_ms: Option<f64>,
    /// Packets of a transfer that were dropped.
    pub dropped_packets: Option<f64>,
    /// What others lost, in Mbit. `None` without others.
    pub harm_mbit: Option<f64>,
    /// That over the baseline's.
    pub harm_ratio: Option<f64>,
    /// Why it is not offered. Empty if it is.
    pub refused: String,
}

/// What the recommended choice does to one kind of transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetKind {
    /// The kind, with its start if that is none of the choices.
    pub name: String,
    /// Whether the path is known before.
    pub known: bool,
    /// Share of all transfers, 0 to 1.
    pub share: f64,
    /// How many times as fast as with the baseline they are.
    pub gain: Estimate,
    /// What that shows.
    pub verdict: Option<Verdict>,
}
