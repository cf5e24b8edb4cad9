//! What results say of one quantity, and by which rules.

use serde::Serialize;

/// Confidence of intervals in results.
pub const LEVEL: f64 = 0.95;
/// Resamples of the bootstrap behind them.
pub const RESAMPLES: u32 = 10_000;
/// Effects up to this are never called significant.
pub const LEAST_EFFECT: f64 = 0.01;
/// Flows from which on a 99th percentile is given.
pub const RUNS_FOR_P99: usize = 100;

/// A quantity over the flows of many runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metric {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile, only with 100 flows or more.
    pub p99: Option<f64>,
    /// 95 % interval of the mean. From fewer than five repetitions it is too narrow: see [`bca`](crate::bca).
    pub ci95: Option<[f64; 2]>,
}
