//! The real QUIC stack beside the model, with the same policies: is the model a fair stand-in?
//!
//! Both run the same cells with the same seeds, so that only the stack differs. Two one-sided tests (Schuirmann 1987):
//! a cell passes when the 90 % interval of the mean log ratio of the completion times, paired by repetition, lies
//! within 10 %. An interval that reaches over the edge decides nothing and counts as a miss.
//! `validation/quic/README.md` says what the cells are and what is known of the misses.

use flowstart_lab::results::summary::values;
use flowstart_statistics::{difference_interval, mean};

use crate::Input;
use crate::check::{Checker, judged};
use crate::results::{Results, changed};

/// The model with the policies of the stack.
const MODEL: &str = "model-quic:profile=noq";
/// Completion times may differ by this part.
const MARGIN: f64 = 0.1;
/// Level of the interval: each of two one-sided tests at 5 %.
const LEVEL: f64 = 0.9;

/// The cells of Table 1 with the correct estimate.
pub(crate) fn table1(input: &Input, checker: &mut Checker) -> Result<String, String> {
    equivalence("quic-table1", input, checker)
}

/// SEARCH on the satellite link.
pub(crate) fn search_geo(input: &Input, checker: &mut Checker) -> Result<String, String> {
    equivalence("quic-search-geo", input, checker)
}

/// Runs a scenario with the stack and with the model.
fn equivalence(scenario: &str, input: &Input, checker: &mut Checker) -> Result<String, String> {
    let stack = Results::of(scenario, input.jobs)?;
    let model = Results::run(changed(scenario, |scenario| scenario.transport = vec![MODEL.to_owned()])?, input.jobs)?;
    let plan = &stack.plan;
    let (least, most) = (1.0 / (1.0 + MARGIN), 1.0 + MARGIN);
    let mut ratios = Vec::new();
    for (cell, (stack, model)) in plan.cells().iter().zip(stack.by_cell().iter().zip(&model.by_cell())) {
        let [stack, model] = [stack, model].map(|rows| values(rows, |row| row.fct_ms));
        let logs: Vec<f64> = stack.iter().zip(&model).map(|(stack, model)| (stack / model).ln()).collect();
        let same = vec![0.0; logs.len()];
        let all = logs.len() == plan.reps as usize;
        let interval = difference_interval(&same, &logs, LEVEL).filter(|_| all);
        let (low, high) = interval.map_or((f64::NAN, f64::NAN), |interval| (interval.low.exp(), interval.high.exp()));
        let ratio = mean(&logs).unwrap_or(f64::NAN).exp();
        ratios.push(ratio);
        let text = format!("90 % interval {low:.3} to {high:.3}; allowed is {least:.3} to {most:.3}");
        let band = judged(low >= least && high <= most, 1.0, text);
        checker.check(&plan.id(cell), "FCT of the stack over the model's", ratio, band);
    }
    let extreme = |pick: fn(f64, f64) -> f64| ratios.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    let (lowest, highest) = (extreme(f64::min), extreme(f64::max));
    Ok(format!("mean ratios from {lowest:.3} to {highest:.3}. Misses are explained in validation/quic/README.md"))
}
