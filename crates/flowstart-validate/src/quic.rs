//! The real QUIC stack beside the model, with the same policies: is the model a fair stand-in?
//!
//! Both run the same cells with the same seeds, so that only the stack differs. Two one-sided tests (Schuirmann 1987): a cell
//! passes when the 90 % interval of the mean log ratio of the completion times, paired by repetition, lies within 10 %. An
//! interval that reaches over the edge decides nothing and counts as a miss. `validation/quic/README.md` says what the
//! cells are and what is known of the misses.

use std::path::Path;

use super::{Checker, Verdict};
use flowstart_lab::experiment;
use flowstart_lab::results::summary::{rows_by_cell, values};
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_statistics::{difference_interval, mean};

const TABLE1: &str = include_str!("../../../scenarios/quic-table1.toml");
const SEARCH: &str = include_str!("../../../scenarios/quic-search-geo.toml");

/// The model with the policies of the stack.
const MODEL: &str = "model-quic:profile=noq";
/// Completion times may differ by this part.
const MARGIN: f64 = 0.1;
/// Level of the interval: each of two one-sided tests at 5 %.
const LEVEL: f64 = 0.9;

/// The cells of Table 1 with the correct estimate.
pub(super) fn table1(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    equivalence("quic-table1", TABLE1, reference, jobs)
}

/// SEARCH on the satellite link.
pub(super) fn search_geo(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    equivalence("quic-search-geo", SEARCH, reference, jobs)
}

fn equivalence(name: &str, text: &str, reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err(format!("{name} has no table of numbers that another file could replace"));
    }
    let (plan, stack) = times(text, None, jobs)?;
    let (_, model) = times(text, Some(MODEL), jobs)?;
    let mut checker = Checker::declaring(plan.cells().len());
    let mut ratios = Vec::new();
    for (cell, (stack, model)) in plan.cells().iter().zip(stack.iter().zip(&model)) {
        let logs: Vec<f64> = stack.iter().zip(model).map(|(stack, model)| (stack / model).ln()).collect();
        let same = vec![0.0; logs.len()];
        let all = logs.len() == plan.reps as usize;
        let interval = difference_interval(&same, &logs, LEVEL).filter(|_| all);
        let (low, high) = interval.map_or((f64::NAN, f64::NAN), |interval| (interval.low.exp(), interval.high.exp()));
        let inside = low >= 1.0 / (1.0 + MARGIN) && high <= 1.0 + MARGIN;
        let ratio = mean(&logs).unwrap_or(f64::NAN).exp();
        ratios.push(ratio);
        let band = format!(
            "90 % interval {low:.3} to {high:.3}; allowed is {:.3} to {:.3}",
            1.0 / (1.0 + MARGIN),
            1.0 + MARGIN
        );
        checker.check(&plan.id(cell), "FCT of the stack over the model's", ratio, 1.0, inside, band);
    }
    let extreme = |pick: fn(f64, f64) -> f64| ratios.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    let note = format!(
        "mean ratios from {:.3} to {:.3}. Misses are explained in validation/quic/README.md",
        extreme(f64::min),
        extreme(f64::max)
    );
    Ok(checker.verdict(name, note))
}

/// The completion times of every cell by repetition, with the scenario's transport or another.
fn times(text: &str, transport: Option<&str>, jobs: usize) -> Result<(Plan, Vec<Vec<f64>>), String> {
    let mut scenario: Scenario = toml::from_str(text).map_err(|error| format!("built-in scenario: {error}"))?;
    if let Some(transport) = transport {
        scenario.transport = transport.to_owned();
    }
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let by_cell = rows_by_cell(&plan, &rows);
    let times = by_cell.iter().map(|rows| values(rows, |row| row.fct_ms)).collect();
    Ok((plan, times))
}
