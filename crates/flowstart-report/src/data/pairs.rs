//! An AQM and a startup scheme are a pair.

use serde::{Deserialize, Serialize};

/// What a pair is judged by besides its completion time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondCriterion {
    /// The longest time that a packet waited at the bottleneck.
    #[default]
    MaxQueueDelayMs,
    /// The part of the frames of the video call beside it that were not shown.
    CallNotShown,
    /// The score of the worst second of the conversation beside it.
    #[serde(rename = "media-worst-1s-mos")]
    WorstSecondMos,
}

impl SecondCriterion {
    fn is_peak(&self) -> bool {
        *self == Self::MaxQueueDelayMs
    }
}

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
    /// What it is judged by besides its completion time: what people beside it met, where there are any.
    #[serde(default, skip_serializing_if = "SecondCriterion::is_peak")]
    pub second: SecondCriterion,
    /// Mean of what people met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<f64>,
    /// Its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_ci95: Option<[f64; 2]>,
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

    /// The second mean, where less is better, and its interval.
    pub fn cost(&self) -> (f64, Option<[f64; 2]>) {
        match (self.second, self.met) {
            (SecondCriterion::CallNotShown, Some(met)) => (met, self.met_ci95),
            (SecondCriterion::WorstSecondMos, Some(met)) => (-met, self.met_ci95.map(|[low, high]| [-high, -low])),
            _ => (self.max_queue_delay_ms, self.max_queue_delay_ms_ci95),
        }
    }

    /// Whether the intervals of both means overlap. Repetitions have the same seeds for all pairs, so this says rather
    /// too often that two are alike, except from fewer than five repetitions, whose intervals are too narrow.
    pub fn is_like(&self, other: &Self) -> bool {
        let overlap =
            |a: Option<[f64; 2]>, b: Option<[f64; 2]>| a.zip(b).is_some_and(|(a, b)| a[0] <= b[1] && b[0] <= a[1]);
        overlap(self.fct_ms_ci95, other.fct_ms_ci95) && overlap(self.cost().1, other.cost().1)
    }

    /// Whether it is at least as good in both means and better in one.
    pub fn beats(&self, other: &Self) -> bool {
        let (a, b) = ([self.fct_ms, self.cost().0], [other.fct_ms, other.cost().0]);
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
    fn beside_people_a_pair_is_judged_by_what_they_met() {
        let pair = |second, met, max_queue_delay_ms| Pair {
            fct_ms: 100.0,
            max_queue_delay_ms,
            second,
            met: Some(met),
            ..Pair::default()
        };
        // A short queue whose AQM drops the call's packets is worse than a longer one that nobody notices.
        let frames = |met, queue| pair(SecondCriterion::CallNotShown, met, queue);
        assert!(frames(0.0, 40.0).beats(&frames(0.1, 10.0)) && !frames(0.1, 10.0).beats(&frames(0.0, 40.0)));
        let score = |met, queue| pair(SecondCriterion::WorstSecondMos, met, queue);
        assert!(score(4.2, 40.0).beats(&score(2.0, 10.0)) && !score(2.0, 10.0).beats(&score(4.2, 40.0)));
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
