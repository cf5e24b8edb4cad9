//! A mean has an interval.

use serde::{Deserialize, Serialize};

/// A mean with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Estimate {
    /// The mean, or the ratio of two means.
    pub mean: Option<f64>,
    /// Lower and upper end of the interval.
    pub ci95: Option<[f64; 2]>,
}
