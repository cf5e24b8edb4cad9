//! Scharf's slides on fast startups: what they say about a shared bottleneck under rising load.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use std::path::Path;

use super::{Checker, Verdict, mean_of_cell};
use flowstart_lab::experiment;
use flowstart_lab::results::summary::{CellSummary, summarize};
use flowstart_lab::study::scenario::Scenario;

const SCENARIO: &str = include_str!("../../../scenarios/rising-load.toml");

/// Schemes of the scenario, as it writes them.
const SLOW_START: &str = "slow-start:iw=3";
const JUMP_START: &str = "jump-start:threshold=64KiB";
const MORE_START: &str = "more-start:source=oracle";
const MORE_START_BURST: &str = "more-start:source=oracle,pacing=false";
const INITIAL_START: &str = "initial-start:iw=167";
const INITIAL_START_PACED: &str = "initial-start:iw=167,pacing=true";
const QUICK_START: &str = "quick-start:iw=3";
const QUICK_START_NAIVE: &str = "quick-start:iw=3,request=fixed,rate=10mbit";

/// Jump-Start is reasonable: it is never slower than slow start by more than this factor ...
const REASONABLE: f64 = 1.0 / 1.1;
/// ... and a benefit of this size is left up to half the load.
const BENEFIT: f64 = 1.05;
/// Overshooting shows when the speed-up at the highest load is at most this part of the one at the lowest ...
const FADED: f64 = 0.9;
/// ... and so many times more bytes are sent twice than in slow start.
const WASTE: f64 = 1.5;
/// Quick-Start is close to slow start, or does not improve on it, when one is at most this many times slower than the other.
const CLOSE: f64 = 1.1;
/// Loads from which on a load is high, in Mbit/s.
const HIGH: f64 = 8.0;
/// Half the link, in Mbit/s.
const HALF: f64 = 5.0;

/// A scheme at a load.
#[derive(Clone, Copy)]
struct Point {
    load: f64,
    fct: f64,
    inflation: f64,
}

/// The points of a scheme, by load.
fn points(cells: &[(f64, &CellSummary)], scheme: &str) -> Vec<Point> {
    let mean = |cell: &CellSummary, name| mean_of_cell(cell, name);
    let of_scheme = cells.iter().filter(|(_, cell)| cell.scheme == scheme);
    of_scheme
        .map(|(load, cell)| Point { load: *load, fct: mean(cell, "fct_ms"), inflation: mean(cell, "inflation") })
        .collect()
}

/// Runs the scenario and checks the slides' statements.
pub fn shared_bottleneck(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("slides-shared-bottleneck has no table of numbers that another file could replace".into());
    }
    let scenario = Scenario::from_text(SCENARIO).map_err(|_| "built-in scenario cannot be read")?;
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let summary = summarize(&plan, &rows);
    let load = |arrival: usize| plan.arrivals[arrival].value.load().map(flowstart_core::units::Rate::as_mbit);
    let cells: Vec<(f64, &CellSummary)> =
        plan.cells().iter().filter_map(|cell| Some((load(cell.arrival)?, &summary.cells[cell.index]))).collect();
    Ok(check(|scheme| points(&cells, scheme)))
}

fn check(points: impl Fn(&str) -> Vec<Point>) -> Verdict {
    // 9 loads, 2 of overshooting, 2 high loads with 3 others, 2 high loads and a decline for two requests, 3 loads between for
    // one of them, and 5 busy loads and a mean for each pair.
    let mut checker = Checker::declaring(9 + 2 + 6 + 6 + 3 + 12);
    let slow = points(SLOW_START);
    let jump = points(JUMP_START);
    let speedups = |of: &[Point]| -> Vec<f64> { slow.iter().zip(of).map(|(slow, own)| slow.fct / own.fct).collect() };

    for (point, speedup) in jump.iter().zip(speedups(&jump)) {
        let least = if point.load <= HALF { BENEFIT } else { REASONABLE };
        let cell = format!("Jump-Start at {} Mbit/s", point.load);
        checker.check(&cell, "speed-up", speedup, least, speedup >= least, format!("at least {least:.2}"));
    }

    let more = points(MORE_START);
    if let [first, .., last] = speedups(&more)[..] {
        let most = FADED * first;
        let cell = "More-Start at the highest load";
        checker.check(cell, "speed-up", last, first, last <= most, format!("at most {FADED} of the lowest load's"));
    }
    if let Some((slow, more)) = slow.last().zip(more.last()) {
        let least = WASTE * slow.inflation;
        let inside = more.inflation >= least;
        let band = format!("at least {WASTE} times slow start's");
        checker.check("More-Start at the highest load", "inflation", more.inflation, slow.inflation, inside, band);
    }

    let initial = points(INITIAL_START);
    for (at, point) in initial.iter().enumerate().filter(|(_, point)| point.load >= HIGH) {
        let cell = format!("Initial-Start at {} Mbit/s", point.load);
        for (other, name) in [(&slow, "slow start"), (&jump, "Jump-Start"), (&more, "More-Start")] {
            let Some(theirs) = other.get(at) else { continue };
            let inside = point.fct > theirs.fct;
            checker.check(&cell, "mean FCT, ms", point.fct, theirs.fct, inside, format!("above that of {name}"));
        }
    }

    for (name, scheme) in [("sized by the object", QUICK_START), ("for the whole link", QUICK_START_NAIVE)] {
        let own = points(scheme);
        let speedups = speedups(&own);
        for (point, speedup) in own.iter().zip(&speedups).filter(|(point, _)| point.load >= HIGH) {
            let cell = format!("Quick-Start {name} at {} Mbit/s", point.load);
            let inside = (CLOSE.recip()..=CLOSE).contains(speedup);
            checker.check(&cell, "speed-up", *speedup, 1.0, inside, format!("1/{CLOSE} to {CLOSE}"));
        }
        if let [first, .., last] = speedups[..] {
            let cell = format!("Quick-Start {name} at the highest load");
            checker.check(&cell, "speed-up", last, first, last < first, "below the lowest load's");
        }
    }
    let naive = points(QUICK_START_NAIVE);
    for (point, speedup) in naive.iter().zip(speedups(&naive)).filter(|(point, _)| (HALF..HIGH).contains(&point.load)) {
        let cell = format!("Quick-Start for the whole link at {} Mbit/s", point.load);
        checker.check(&cell, "speed-up", speedup, 1.0, speedup <= CLOSE, format!("at most {CLOSE}"));
    }

    for (name, paced, burst) in [
        ("More-Start", &more, points(MORE_START_BURST)),
        ("Initial-Start", &points(INITIAL_START_PACED), initial.clone()),
    ] {
        let busy = |of: &[Point]| of.iter().copied().filter(|point| point.load >= HALF).collect::<Vec<_>>();
        let (paced, burst) = (busy(paced), busy(&burst));
        for (paced, burst) in paced.iter().zip(&burst) {
            let cell = format!("{name} at {} Mbit/s, paced", paced.load);
            let inside = paced.inflation < burst.inflation;
            checker.check(&cell, "inflation", paced.inflation, burst.inflation, inside, "below the burst's");
        }
        let mean = |of: &[Point]| of.iter().map(|point| point.fct).sum::<f64>() / of.len() as f64;
        let (own, theirs) = (mean(&paced), mean(&burst));
        let cell = format!("{name} from half the load on, paced");
        checker.check(&cell, "mean FCT, ms", own, theirs, own < theirs, "below the burst's");
    }
    checker.verdict("slides-shared-bottleneck", "see validation/slides/README.md for what misses and why".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    /// Every scheme as slow start, but for those that are named.
    fn with(named: &[(&str, f64, f64)]) -> Verdict {
        check(|scheme| {
            let found = named.iter().find(|(name, ..)| *name == scheme);
            let (factor, waste) = found.map_or((1.0, 1.0), |(_, factor, waste)| (*factor, *waste));
            (1..=9)
                .map(|load| {
                    let load = f64::from(load);
                    // A factor below 1 is a benefit that is lost as the load rises, one above 1 is harm at high load.
                    let fct = 1000.0 * if load >= HIGH && factor < 1.0 { 1.0 } else { factor };
                    Point { load, fct, inflation: 0.01 * load * waste }
                })
                .collect()
        })
    }

    #[test]
    fn the_slides_statements_pass_when_they_hold() {
        let verdict = with(&[
            (JUMP_START, 0.6, 1.0),
            (MORE_START, 0.5, 2.0),
            (MORE_START_BURST, 1.1, 3.0),
            (INITIAL_START, 1.5, 4.0),
            (INITIAL_START_PACED, 1.2, 2.0),
            (QUICK_START, 0.6, 1.0),
            (QUICK_START_NAIVE, 0.95, 1.0),
        ]);
        // 9 loads, 2 of overshooting, 2 high loads with 3 others, 2 high loads and a decline for two requests, 3 loads between
        // for one of them, and 5 busy loads and a mean for each pair.
        assert_eq!((verdict.cells, verdict.status), (9 + 2 + 6 + 6 + 3 + 12, Status::Pass), "{:?}", verdict.misses);
    }

    #[test]
    fn schemes_without_any_difference_miss() {
        let verdict = with(&[]);
        // Jump-Start below half the load, both of More-Start, all of Initial-Start and of pacing, and no decline of Quick-Start.
        assert_eq!(verdict.misses.len(), 5 + 2 + 6 + 12 + 2, "{:?}", verdict.misses);
    }
}
