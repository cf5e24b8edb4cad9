//! What is asked of Predict, and what it does. `validation/predict/README.md` has the whole grid, and causes of misses.

pub mod estimate;
mod false_triggers;
pub mod grid;
pub mod hard_loads;
pub mod steady_loads;
mod unanswered;
pub mod watched;

use flowstart_lab::experiment::threads;

use self::grid::{CLASSES, Class, FALLBACK, Outcome, Summary, run_cells, sample};
use crate::Input;
use crate::check::{Checker, Verdict, at_least, judged};
use crate::transient::grid::Grid;

/// Pacing gain of paced flows in slow start (Linux).
const PACING_GAIN: f64 = 2.0;
/// One cell of so many is run here; it was tuned with another part of the grid and another seed.
const EVERY: u64 = 16;
const PART: u64 = 1;
const SEED: u64 = 2;

/// A sixteenth of the grid of load transients against the oracle.
pub(crate) fn predict_grid(_: &Input, checker: &mut Checker) -> Result<String, String> {
    Ok(check_grid(EVERY, PART, checker))
}

/// What `predict-grid` checks, on one cell of so many: a smaller part for tests.
pub fn part_of_grid(every: u64, part: u64, jobs: usize) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let note = in_threads(jobs, || check_grid(every, part, &mut checker))?;
    Ok(checker.verdict("predict-grid", note))
}

fn in_threads<T: Send>(jobs: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    Ok(threads(jobs).map_err(|error| error.to_string())?.install(work))
}

fn check_grid(every: u64, part: u64, checker: &mut Checker) -> String {
    let cells = sample(&Grid::whole(PACING_GAIN), every, part);
    // Five parts of classes, and each large cell.
    checker.declare(5 + cells.iter().filter(|cell| Class::of(cell) == Class::Large).count());
    let outcomes = run_cells(&cells, SEED);
    let summaries =
        CLASSES.map(|(name, belongs)| (name, Summary::of(outcomes.iter().filter(|outcome| belongs(outcome)), 0)));
    let [large, middle, above, small] = summaries;
    for ((name, of), least) in [(large, 0.95), (middle, 0.6), (above, 0.85)] {
        checker.check(name, "part won", of.won, at_least(least));
    }
    check_small(small.0, &small.1, checker);
    for outcome in outcomes.iter().filter(|outcome| outcome.class() == Class::Large) {
        let inside = outcome.measured[0].is_within(&outcome.oracle, 1.10, 0.35);
        let peak = outcome.peak_excess(0);
        let (metric, ours, most) = if peak > 0.35 {
            ("peak above the oracle's in RTT", peak, 0.35)
        } else {
            ("FCT over the oracle's", outcome.fct_ratio(0), 1.1)
        };
        let band = judged(inside, most, "FCT at most 1.10, peak at most 0.35 RTT above");
        checker.check(&label(outcome), metric, ours, band);
    }
    let next = (1..grid::DISCIPLINES.len())
        .map(|discipline| {
            let of = Summary::of(outcomes.iter().filter(|outcome| outcome.class() != Class::Small), discipline);
            format!("{} {:.1} %", grid::DISCIPLINES[discipline], 100.0 * of.won)
        })
        .collect::<Vec<_>>()
        .join(", ");
    let fallback = Summary::of(outcomes.iter().filter(|outcome| outcome.class() == Class::Small), FALLBACK);
    let [p10, p50, p90] = above.1.exit_load;
    format!(
        "one cell of {every} of the grid, pacing gain {PACING_GAIN}, sender reductions 0.5, 0.7 and 0.85; won above 20 packets: predict \
         {:.1} %, {next}; FCT kept at 20 packets and less: predict {:.1} %, codel {:.1} %; exit load p10, p50, p90 above 20 \
         packets: {p10:.2}, {p50:.2}, {p90:.2}",
        100.0 * above.1.won,
        100.0 * small.1.fct_kept,
        100.0 * fallback.fct_kept,
    )
}

/// What is asked of cells in which growth cannot be told in time.
fn check_small(cell: &str, of: &Summary, checker: &mut Checker) {
    let every = at_least(1.0).saying("every cell");
    checker.check(cell, "part with a peak at most the fallback's", of.peak_kept, every);
    checker.check(cell, "part with FCT at most 1.05 of the oracle's", of.fct_kept, at_least(0.9));
}

fn label(outcome: &Outcome) -> String {
    let cell = &outcome.cell;
    format!(
        "{} Mbit/s {} ms, {} flows, IW {}, {}{}{}{}{}, beta {}",
        cell.rate.as_mbit(),
        cell.rtt.as_millis_f64(),
        cell.flows,
        cell.initial_window,
        cell.pacing_gain.map_or_else(|| "bursts".to_owned(), |gain| format!("paced by {gain}")),
        if cell.delayed_acks { ", delayed ACKs" } else { "" },
        if cell.background > 0.0 { ", background" } else { "" },
        if cell.mixed_rtts { ", mixed RTTs" } else { "" },
        if cell.ecn { "" } else { ", drops" },
        cell.reduction,
    )
}

/// No transient is seen where there is none.
pub(crate) fn predict_false_triggers(_: &Input, checker: &mut Checker) -> Result<String, String> {
    Ok(false_triggers::check(checker, |_| true))
}

/// What `predict-false-triggers` checks, in the runs whose names begin like this: a part for tests.
pub fn part_of_false_triggers(names: &[&str], jobs: usize) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let chosen = |name: &str| names.iter().any(|begin| name.starts_with(begin));
    let note = in_threads(jobs, || false_triggers::check(&mut checker, chosen))?;
    Ok(checker.verdict("predict-false-triggers", note))
}
