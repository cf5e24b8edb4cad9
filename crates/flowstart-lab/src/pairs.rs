//! Pairs of AQM and startup scheme: which keep both the completion time and the peak of the queue low.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::summary::CellSummary;

/// A pair in one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// AQM as written.
    pub aqm: String,
    /// Scheme as written.
    pub scheme: String,
    /// Mean FCT, in milliseconds.
    pub fct_ms: f64,
    /// The physical limit.
    pub ideal_fct_ms: f64,
    /// Mean over the repetitions of the longest time that a packet waited at the bottleneck, in milliseconds.
    pub max_queue_delay_ms: f64,
    /// Whether no other pair of the setting is at least as good in both means and better in one.
    pub is_unbeaten: bool,
}

impl Pair {
    fn beats(&self, other: &Self) -> bool {
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

/// The pairs of every setting; nothing where there is no choice of both AQM and scheme. `cells` are those of the plan, in its
/// order. A pair of which a run failed has no mean that could be compared, and is left out.
pub fn paired(plan: &Plan, cells: &[CellSummary]) -> Vec<PairedSetting> {
    let mut settings: Vec<PairedSetting> = Vec::new();
    if plan.aqms.len() < 2 || plan.schemes.len() < 2 {
        return settings;
    }
    for (cell, summary) in plan.cells().iter().zip(cells).filter(|(_, summary)| summary.failed == 0) {
        let mean = |name: &str| summary.metrics.get(name).and_then(|metric| metric.mean);
        let Some((fct_ms, max_queue_delay_ms)) = mean("fct_ms").zip(mean("max_queue_delay_ms")) else { continue };
        let mut setting = format!("{}, {}", summary.link, plan.carried(cell));
        if plan.competitors.len() > 1 {
            setting.push_str(&format!(", competitor {}", summary.competitor));
        }
        if plan.arrivals.len() > 1 {
            setting.push_str(&format!(", arrival {}", plan.arrivals[cell.arrival].text));
        }
        let pair = Pair {
            aqm: summary.aqm.clone(),
            scheme: summary.scheme.clone(),
            fct_ms,
            ideal_fct_ms: summary.ideal_fct_ms,
            max_queue_delay_ms,
            is_unbeaten: false,
        };
        match settings.iter_mut().find(|known| known.setting == setting) {
            Some(known) => known.pairs.push(pair),
            None => settings.push(PairedSetting { setting, pairs: vec![pair] }),
        }
    }
    for setting in &mut settings {
        let unbeaten = |pair: &Pair| !setting.pairs.iter().any(|other| other.beats(pair));
        let verdicts: Vec<bool> = setting.pairs.iter().map(unbeaten).collect();
        setting.pairs.iter_mut().zip(verdicts).for_each(|(pair, verdict)| pair.is_unbeaten = verdict);
    }
    settings
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
            is_unbeaten: false,
        };
        let (fast, calm, beaten) = (pair(100.0, 40.0), pair(120.0, 10.0), pair(120.0, 11.0));
        assert!(calm.beats(&beaten) && !fast.beats(&calm) && !calm.beats(&fast) && !beaten.beats(&calm));
        assert!(!fast.beats(&fast));
    }

    #[test]
    fn one_aqm_alone_has_no_pairs() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 1";
        let plan = crate::scenario::Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let summary = crate::summary::summarize(&plan, &rows);
        assert_eq!(paired(&plan, &summary.cells), []);
    }
}
