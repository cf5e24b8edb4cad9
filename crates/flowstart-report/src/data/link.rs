//! A link has these properties.

use serde::{Deserialize, Serialize};

/// A link (the bottleneck and the path around it), for the set-up drawing and its table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// As the user wrote it: a preset such as `dsl-fast`, or `rate=25mbit,rtt=50ms,buffer=50ms`.
    pub name: String,
    /// Rate of the bottleneck. `None` when it follows a trace file.
    pub rate_mbit: Option<f64>,
    /// Whether that is the mean of a rate that varies, as in a recording.
    pub rate_is_mean: bool,
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
