//! A publication has these numbers, and we have these.

use super::{Estimate, Verdict};
use serde::{Deserialize, Serialize};

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
    /// What our comparison shows.
    pub verdict: Option<Verdict>,
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
    /// Whether it passed. `None` when it could not be checked.
    pub pass: Option<bool>,
}
