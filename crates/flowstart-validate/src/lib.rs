//! Published figures and reference runs against this build.
//!
//! | Entry | Reference | File |
//! |---|---|---|
//! | `ns2-single-flow` | transfers without loss in ns-2 | [`ns2`] |
//! | `ns2-chain` | a drop-tail chain in ns-2 | [`ns2`] |
//! | `ns2-quick-start` | Quick-Start alone in ns-2 | [`quick_start`] |
//! | `ns2-router-checks` | what Quick-Start routers granted in ns-2 | [`quick_start`] |
//! | `ns2-aqm-transient` | queue disciplines under slow start in ns-2 | [`ns2_aqm`] |
//! | `quick-start-figure-1` | the paper's time-sequence plots, and transfers beside a burst | [`quick_start_figures`] |
//! | `quick-start-figure-2` | the paper's improvement by size and RTT | [`quick_start_figures`] |
//! | `quick-start-figure-3` | the paper's count of round trips | [`quick_start_figures`] |
//! | `quick-start-attacks` | statements about attacks on Quick-Start | [`quick_start_attacks`] |
//! | `quick-start-load` | Quick-Start paper, figure 4: load with and without Quick-Start | [`quick_start_web`] |
//! | `quick-start-drop-rates` | Quick-Start paper, figure 5: drop rates where some use Quick-Start | [`quick_start_web`] |
//! | `quick-start-durations` | Quick-Start paper, figure 6: each connection | [`quick_start_web`] |
//! | `quick-start-threshold` | Quick-Start paper, figure 8: the Target algorithm | [`quick_start_web`] |
//! | `quick-start-utilization` | Quick-Start paper, figure 9: two estimates of utilization, more than a minute | [`quick_start_web`] |
//! | `quick-start-extreme` | Quick-Start paper, figure 10: Extreme Quick-Start | [`quick_start_web`] |
//! | `quick-start-extreme-conservative` | Quick-Start paper, figure 11: Extreme against a conservative router | [`quick_start_web`] |
//! | `quick-start-request-size` | Quick-Start paper, section 5.2: Greedy and Ideal requests | [`quick_start_web`] |
//! | `ns3-startup` | TCP alone and beside a long flow in ns-3 | [`ns3`] |
//! | `linux-startup` | TCP alone and beside a long flow in Linux | [`linux`] |
//! | `slides-speedup` | benefit of fast startups by transfer size | [`slides`] |
//! | `slides-shared-bottleneck` | fast startups under rising load | [`shared_bottleneck`] |
//! | `slides-mixed-rtts` | fast startups where RTTs and sizes are mixed | [`mixed_rtts`] |
//! | `slides-flow-control` | what receive windows do to a fast startup | [`slides`] |
//! | `flow-initiation` | what a thesis says of starting flows beside interactive media | [`flow_initiation`] |
//! | `claim-red-slow`, `claim-hred-rtt`, `claim-hred-delay`, `claim-codel-pie-rtt`, `claim-pie-departure-rate`, `claim-predict` | what a thesis says of AQMs under load transients | [`claims`] |
//! | `predict-grid` | Predict beside an oracle under load transients | [`predict`] |
//! | `predict-false-triggers` | loads that are no transient | [`predict`] |
//! | `predict-estimate` | Predict's estimate of the load beside the truth | [`predict`] |
//! | `predict-hard-loads` | Predict where transients are hard to see | [`predict`] |
//! | `search-geo` | SEARCH on a satellite link | [`search`] |
//! | `xcp-fairness` | what XCP's paper states of utilization, drops, queues and shares | [`xcp`] |
//! | `dualpi2-coexistence` | what RFC 9332 states of scalable and classic flows | [`dualpi2`] |
//! | `quic-table1` | the model beside the real QUIC stack, on the links of the Blitzstart paper | [`quic`] |
//! | `quic-search-geo` | the same on the satellite link | [`quic`] |
//! | `blitzstart-table1` | the 60 cells of the Blitzstart paper, and its statements | [`table1`] |
//!
//! An entry that misses its band stays visible as a miss. The bands are those of the plan and are not widened.

use std::path::Path;

use serde::Serialize;

use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::CellSummary;
use flowstart_statistics::mean;

pub mod claims;
pub mod dualpi2;
pub mod flow_initiation;
pub mod linux;
pub mod mixed_rtts;
pub mod ns2;
pub mod ns2_aqm;
pub mod ns3;
pub mod predict;
pub mod quic;
pub mod quick_start;
pub mod quick_start_attacks;
pub mod quick_start_figures;
pub mod quick_start_web;
mod reference;
pub mod search;
pub mod shared_bottleneck;
pub mod slides;
pub mod table1;
pub mod transient;
pub mod xcp;

/// The entries in the order in which they are checked.
pub const NAMES: [&str; 40] = [
    "ns2-single-flow",
    "ns2-chain",
    "ns2-quick-start",
    "ns2-router-checks",
    "ns2-aqm-transient",
    "quick-start-figure-1",
    "quick-start-figure-2",
    "quick-start-figure-3",
    "quick-start-attacks",
    "ns3-startup",
    "linux-startup",
    "quick-start-load",
    "quick-start-drop-rates",
    "quick-start-durations",
    "quick-start-threshold",
    "quick-start-utilization",
    "quick-start-extreme",
    "quick-start-extreme-conservative",
    "quick-start-request-size",
    "slides-speedup",
    "slides-flow-control",
    "slides-shared-bottleneck",
    "slides-mixed-rtts",
    "xcp-fairness",
    "flow-initiation",
    "claim-red-slow",
    "claim-hred-rtt",
    "claim-hred-delay",
    "claim-codel-pie-rtt",
    "claim-pie-departure-rate",
    "claim-predict",
    "dualpi2-coexistence",
    "predict-grid",
    "predict-false-triggers",
    "predict-estimate",
    "predict-hard-loads",
    "search-geo",
    "quic-search-geo",
    "quic-table1",
    "blitzstart-table1",
];

/// Whether an entry keeps its band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every cell is inside.
    Pass,
    /// At least one is not.
    Miss,
}

/// A number outside its band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// Cell of the reference.
    pub cell: String,
    /// What was compared.
    pub metric: String,
    /// Our number.
    pub ours: Number,
    /// The reference's.
    pub reference: Number,
    /// What would have been accepted.
    pub band: String,
}

/// A number, or nothing where it is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Number(pub Option<f64>);

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(value.is_finite().then_some(value))
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{}", libm::round(value * 1e6) / 1e6),
            None => f.write_str("undefined"),
        }
    }
}

/// What validating an entry gave. It passes only when all numbers that the entry declared were compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Entry.
    pub name: String,
    /// Pass or miss.
    pub status: Status,
    /// Numbers compared.
    pub cells: usize,
    /// Those outside their bands.
    pub misses: Vec<Miss>,
    /// How close it was, and known causes of misses.
    pub note: String,
}

/// Whether the relative error is accepted.
fn is_within(ours: f64, reference: f64, tolerance: f64) -> bool {
    (ours - reference).abs() <= tolerance * reference.abs()
}

/// The mean of a number over all runs of a cell; NaN, which no band contains, when a run failed or has no such number.
fn mean_of_all(rows: &[&Row], value: impl Fn(&Row) -> Option<f64>) -> f64 {
    let values: Option<Vec<f64>> = rows.iter().map(|row| value(row).filter(|_| !row.failed())).collect();
    values.and_then(|values| mean(&values)).unwrap_or(f64::NAN)
}

/// The mean of a metric of a cell; NaN when a run failed or the metric is undefined.
fn mean_of_cell(cell: &CellSummary, metric: &str) -> f64 {
    let mean = cell.metrics.get(metric).and_then(|metric| metric.mean);
    mean.filter(|_| cell.failed == 0).unwrap_or(f64::NAN)
}

/// Collects comparisons. How many there will be is declared before anything runs, so that a cell that gave nothing cannot go
/// unnoticed.
#[derive(Clone, Debug, Default)]
struct Checker {
    declared: usize,
    cells: usize,
    misses: Vec<Miss>,
}

impl Checker {
    /// A checker for so many comparisons.
    fn declaring(count: usize) -> Self {
        Self { declared: count, ..Self::default() }
    }

    /// Declares so many comparisons more.
    fn declare(&mut self, count: usize) {
        self.declared += count;
    }

    /// Notes a comparison; `band` says what is accepted. A number that is undefined is never inside.
    fn check(&mut self, cell: &str, metric: &str, ours: f64, reference: f64, inside: bool, band: impl Into<String>) {
        self.cells += 1;
        if !inside || !ours.is_finite() || !reference.is_finite() {
            self.misses.push(Miss {
                cell: cell.to_owned(),
                metric: metric.to_owned(),
                ours: ours.into(),
                reference: reference.into(),
                band: band.into(),
            });
        }
    }

    /// Notes a comparison that accepts a relative error.
    fn within(&mut self, cell: &str, metric: &str, ours: f64, reference: f64, tolerance: f64) {
        let inside = is_within(ours, reference, tolerance);
        self.check(cell, metric, ours, reference, inside, format!("within {} %", tolerance * 100.0));
    }

    /// The verdict: a pass when everything that was declared was compared, and was inside.
    fn verdict(mut self, name: &str, note: String) -> Verdict {
        if self.cells != self.declared || self.declared == 0 {
            self.misses.push(Miss {
                cell: "all".to_owned(),
                metric: "numbers compared".to_owned(),
                ours: (self.cells as f64).into(),
                reference: (self.declared as f64).into(),
                band: "all that were declared, at least one".to_owned(),
            });
        }
        let status = if self.misses.is_empty() { Status::Pass } else { Status::Miss };
        Verdict { name: name.to_owned(), status, cells: self.cells, misses: self.misses, note }
    }
}

/// Validates an entry, against another reference file with the same columns if one is given. The error says what is
/// wrong with the input.
pub fn validate(name: &str, reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    match name {
        "ns2-single-flow" => ns2::single_flow(reference),
        "ns2-chain" => ns2::chain(reference),
        "ns2-quick-start" => quick_start::single_flow(reference),
        "ns2-router-checks" => quick_start::router_checks(reference),
        "ns2-aqm-transient" => ns2_aqm::transient(reference, jobs),
        "quick-start-figure-1" => quick_start_figures::figure_1(reference, jobs),
        "quick-start-figure-2" => quick_start_figures::figure_2(reference, jobs),
        "quick-start-figure-3" => quick_start_figures::figure_3(reference, jobs),
        "quick-start-attacks" => quick_start_attacks::attacks(reference, jobs),
        "ns3-startup" => ns3::startup(reference),
        "linux-startup" => linux::startup(reference),
        "slides-speedup" => slides::speedup(reference, jobs),
        "slides-shared-bottleneck" => shared_bottleneck::shared_bottleneck(reference, jobs),
        "slides-mixed-rtts" => mixed_rtts::mixed_rtts(reference, jobs),
        "slides-flow-control" => slides::flow_control(reference, jobs),
        "xcp-fairness" => xcp::fairness(reference),
        "flow-initiation" => flow_initiation::flow_initiation(reference, jobs),
        "dualpi2-coexistence" => dualpi2::coexistence(reference),
        "predict-grid" => predict::predict_grid(reference, jobs),
        "predict-false-triggers" => predict::predict_false_triggers(reference, jobs),
        "predict-estimate" => predict::predict_estimate(reference),
        "predict-hard-loads" => predict::predict_hard_loads(reference, jobs),
        "search-geo" => search::geo(reference, jobs),
        "quic-search-geo" => quic::search_geo(reference, jobs),
        "quic-table1" => quic::table1(reference, jobs),
        "blitzstart-table1" => table1::validate(reference, jobs),
        _ if let Some(claim) = claims::CLAIMS.iter().find(|claim| claim.name == name) => {
            claim.validate(reference, jobs)
        }
        _ if let Some(entry) = quick_start_web::ENTRIES.iter().find(|entry| entry.name == name) => {
            entry.validate(reference, jobs)
        }
        _ => Err(format!("no entry `{name}`; use one of {}", NAMES.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_passes_only_when_all_that_was_declared_was_compared() {
        let compared = |declared: usize, count: usize| {
            let mut checker = Checker::declaring(declared);
            (0..count).for_each(|_| checker.within("a", "b", 1.0, 1.0, 0.0));
            checker.verdict("c", String::new())
        };
        assert_eq!(compared(2, 2).status, Status::Pass);
        for (declared, count) in [(0, 0), (2, 1), (1, 2), (0, 1)] {
            let verdict = compared(declared, count);
            assert_eq!((verdict.status, verdict.cells), (Status::Miss, count), "{declared} {count}");
            let Miss { metric, ours, reference, .. } = &verdict.misses[0];
            assert_eq!(metric, "numbers compared");
            assert_eq!((ours.0, reference.0), (Some(count as f64), Some(declared as f64)));
        }
    }

    #[test]
    fn an_undefined_number_is_a_miss_whatever_its_comparison_says() {
        for (ours, reference) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0)] {
            let mut checker = Checker::declaring(1);
            checker.check("a", "b", ours, reference, true, "anything");
            assert_eq!(checker.verdict("c", String::new()).misses.len(), 1, "{ours} {reference}");
        }
    }

    #[test]
    fn a_cell_with_a_failed_run_has_no_mean() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 2";
        let plan = flowstart_lab::study::scenario::Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let mut rows = flowstart_lab::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let of = |rows: &[Row]| mean_of_all(&rows.iter().collect::<Vec<_>>(), |row| row.fct_ms);
        assert!(of(&rows).is_finite() && of(&[]).is_nan());
        rows[1].status = "time-limit".into();
        assert!(of(&rows).is_nan());
    }
}
