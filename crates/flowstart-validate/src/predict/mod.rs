//! What is asked of Predict, and what it does. `validation/predict/README.md` has the whole grid, and causes of misses.

pub mod estimate;
mod false_triggers;
pub mod grid;
pub mod hard_loads;
pub mod steady_loads;

use std::path::Path;

use self::grid::{CLASSES, Class, FALLBACK, Outcome, Summary, run_cells, sample};
use super::{Checker, Verdict};
use crate::transient::grid::Grid;

/// Pacing gain of paced flows in slow start (Linux).
const PACING_GAIN: f64 = 2.0;
/// One cell of so many is run here; it was tuned with another part of the grid and another seed.
const EVERY: u64 = 16;
const PART: u64 = 1;
const SEED: u64 = 2;

/// No other file can replace what is asked.
fn refuse_reference(name: &str, reference: Option<&Path>) -> Result<(), String> {
    match reference {
        Some(_) => Err(format!("{name} has no table of numbers that another file could replace")),
        None => Ok(()),
    }
}

/// A sixteenth of the grid of load transients against the oracle.
pub fn predict_grid(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    refuse_reference("predict-grid", reference)?;
    part_of_grid(EVERY, PART, jobs)
}

/// What `predict-grid` checks, on one cell of so many: a smaller part for tests.
pub fn part_of_grid(every: u64, part: u64, jobs: usize) -> Result<Verdict, String> {
    let cells = sample(&Grid::whole(PACING_GAIN), every, part);
    // Five parts of classes, and each large cell.
    let mut checker = Checker::declaring(5 + cells.iter().filter(|cell| Class::of(cell) == Class::Large).count());
    let outcomes = run_cells(&cells, SEED, jobs)?;
    let summaries =
        CLASSES.map(|(name, belongs)| (name, Summary::of(outcomes.iter().filter(|outcome| belongs(outcome)), 0)));
    let [large, middle, above, small] = summaries;
    for (name, of, least) in [(large.0, large.1, 0.95), (middle.0, middle.1, 0.6), (above.0, above.1, 0.85)] {
        checker.check(name, "part won", of.won, least, of.won >= least, format!("at least {least}"));
    }
    let peak = small.1.peak_kept;
    checker.check(small.0, "part with a peak at most the fallback's", peak, 1.0, peak >= 1.0, "every cell");
    let kept = small.1.fct_kept;
    checker.check(small.0, "part with FCT at most 1.05 of the oracle's", kept, 0.9, kept >= 0.9, "at least 0.9");
    for outcome in outcomes.iter().filter(|outcome| outcome.class() == Class::Large) {
        let inside = outcome.measured[0].is_within(&outcome.oracle, 1.10, 0.35);
        let (fct, peak) = (outcome.fct_ratio(0), outcome.peak_excess(0));
        let (metric, ours, most) = if peak > 0.35 {
            ("peak above the oracle's in RTT", peak, 0.35)
        } else {
            ("FCT over the oracle's", fct, 1.1)
        };
        checker.check(&label(outcome), metric, ours, most, inside, "FCT at most 1.10, peak at most 0.35 RTT above");
    }
    let next = (1..grid::DISCIPLINES.len())
        .map(|discipline| {
            let of = Summary::of(outcomes.iter().filter(|outcome| outcome.class() != Class::Small), discipline);
            format!("{} {:.1} %", grid::DISCIPLINES[discipline], 100.0 * of.won)
        })
        .collect::<Vec<_>>()
        .join(", ");
    let fallback = Summary::of(outcomes.iter().filter(|outcome| outcome.class() == Class::Small), FALLBACK);
    let note = format!(
        "one cell of {every} of the grid, pacing gain {PACING_GAIN}, sender reductions 0.5, 0.7 and 0.85; won above 20 packets: predict \
         {:.1} %, {next}; FCT kept at 20 packets and less: predict {:.1} %, codel {:.1} %; exit load p10, p50, p90 above 20 \
         packets: {:.2}, {:.2}, {:.2}",
        100.0 * above.1.won,
        100.0 * small.1.fct_kept,
        100.0 * fallback.fct_kept,
        above.1.exit_load[0],
        above.1.exit_load[1],
        above.1.exit_load[2],
    );
    Ok(checker.verdict("predict-grid", note))
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
pub fn predict_false_triggers(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    refuse_reference("predict-false-triggers", reference)?;
    false_triggers::check(jobs, |_| true)
}

/// What `predict-false-triggers` checks, in the runs whose names begin like this: a part for tests.
pub fn part_of_false_triggers(names: &[&str], jobs: usize) -> Result<Verdict, String> {
    false_triggers::check(jobs, |name| names.iter().any(|begin| name.starts_with(begin)))
}

/// The estimate of the load, and what it says of an RTT ahead, beside the truth.
pub fn predict_estimate(reference: Option<&Path>) -> Result<Verdict, String> {
    refuse_reference("predict-estimate", reference)?;
    Ok(estimate::check())
}

/// Load transients where they are hard to see, and irregular loads that are none.
pub fn predict_hard_loads(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    refuse_reference("predict-hard-loads", reference)?;
    hard_loads::check(jobs)
}
