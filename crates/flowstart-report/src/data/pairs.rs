//! An AQM and a startup scheme are a pair.

use serde::{Deserialize, Serialize};

/// A pair in one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// AQM as written.
    pub aqm: String,
    /// Scheme as written.
    pub scheme: String,
    /// Mean FCT, in milliseconds.
    pub fct_ms: f64,
    /// Its 95 % interval; none with a single repetition.
    pub fct_ms_ci95: Option<[f64; 2]>,
    /// The physical limit.
    pub ideal_fct_ms: f64,
    /// Mean over the repetitions of the longest time that a packet waited at the bottleneck, in milliseconds.
    pub max_queue_delay_ms: f64,
    /// Its 95 % interval.
    pub max_queue_delay_ms_ci95: Option<[f64; 2]>,
    /// Repetitions.
    pub n: usize,
    /// Whether no other pair of the setting is at least as good in both means and better in one.
    pub is_unbeaten: bool,
    /// For a pair that nobody beats: those of the setting that cannot be told apart from it, as `AQM + scheme`.
    pub indistinguishable: Vec<String>,
}

impl Pair {
    /// AQM and scheme.
    pub fn name(&self) -> String {
        format!("{} + {}", self.aqm, self.scheme)
    }

    /// Whether the intervals of both means overlap. Repetitions have the same seeds for all pairs, so this says rather
    /// too often that two are alike.
    pub fn is_like(&self, other: &Self) -> bool {
        let overlap =
            |a: Option<[f64; 2]>, b: Option<[f64; 2]>| a.zip(b).is_some_and(|(a, b)| a[0] <= b[1] && b[0] <= a[1]);
        overlap(self.fct_ms_ci95, other.fct_ms_ci95)
            && overlap(self.max_queue_delay_ms_ci95, other.max_queue_delay_ms_ci95)
    }

    /// Whether it is at least as good in both means and better in one.
    pub fn beats(&self, other: &Self) -> bool {
        let (a, b) = ([self.fct_ms, self.max_queue_delay_ms], [other.fct_ms, other.max_queue_delay_ms]);
        a.iter().zip(b).all(|(a, b)| *a <= b) && a.iter().zip(b).any(|(a, b)| *a < b)
    }
}

/// All pairs of a link, a size, a competitor and an arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairedSetting {
    /// What the pairs have in common, as written.
    pub setting: String,
    /// The pairs; `summary.json` has those that nobody beats.
    pub pairs: Vec<Pair>,
}

impl PairedSetting {
    /// With those pairs only that nobody beats, the soonest first.
    pub fn unbeaten(&self) -> Self {
        let mut pairs: Vec<Pair> = self.pairs.iter().filter(|pair| pair.is_unbeaten).cloned().collect();
        pairs.sort_by(|a, b| a.fct_ms.total_cmp(&b.fct_ms));
        Self { setting: self.setting.clone(), pairs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_beaten_by_one_that_is_better_in_one_respect_and_worse_in_none() {
        let pair = |fct_ms, max_queue_delay_ms| Pair {
            aqm: "taildrop".into(),
            scheme: "slow-start".into(),
            fct_ms,
            ideal_fct_ms: 50.0,
            max_queue_delay_ms,
            ..Pair::default()
        };
        let (fast, calm, beaten) = (pair(100.0, 40.0), pair(120.0, 10.0), pair(120.0, 11.0));
        assert!(calm.beats(&beaten) && !fast.beats(&calm) && !calm.beats(&fast) && !beaten.beats(&calm));
        assert!(!fast.beats(&fast));
    }

    #[test]
    fn pairs_are_alike_when_both_intervals_overlap() {
        let pair =
            |fct, queue| Pair { fct_ms_ci95: Some(fct), max_queue_delay_ms_ci95: Some(queue), ..Pair::default() };
        let one = pair([100.0, 110.0], [10.0, 12.0]);
        assert!(one.is_like(&pair([109.0, 120.0], [12.0, 14.0])) && one.is_like(&one));
        // Alike in time, apart in queue; and nothing is known of one repetition.
        assert!(!one.is_like(&pair([109.0, 120.0], [12.5, 14.0])) && !one.is_like(&Pair::default()));
    }
}
