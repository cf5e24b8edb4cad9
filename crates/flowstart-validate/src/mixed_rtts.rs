//! Scharf's slides on fast startups: what they say about more complex scenarios, in which RTTs and sizes are mixed.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use std::path::Path;

use super::{Checker, Verdict, mean_of_all};
use flowstart_lab::experiment;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::rows_by_cell;
use flowstart_lab::study::scenario::Scenario;

const SCENARIO: &str = include_str!("../../../scenarios/mixed-rtts.toml");
/// Sizes in bytes of mid-sized transfers, by the slides' own statement on where fast startups help.
const MID_SIZED: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;
/// Gains in milliseconds that count as small are below this.
const SMALL_GAIN_MS: f64 = 1000.0;
/// Total speed-ups that count as small are below this, which is a benefit in `slides-speedup`.
const SMALL_SPEEDUP: f64 = 1.25;
/// Four fast startups at three loads.
const PAIRS: usize = 4 * 3;

/// What one scheme does at one load.
#[derive(Clone, Debug)]
struct Point {
    cell: String,
    /// Mean completion times in milliseconds: of all transfers, and of those that are mid-sized.
    all: f64,
    mid_sized: f64,
}

impl Point {
    fn new(cell: String, rows: &[&Row]) -> Self {
        let mid: Vec<&Row> = rows.iter().copied().filter(|row| MID_SIZED.contains(&row.size_bytes)).collect();
        let fct = |rows: &[&Row]| mean_of_all(rows, |row| row.fct_ms);
        Self { cell, all: fct(rows), mid_sized: fct(&mid) }
    }
}

/// Runs the scenario and checks the slides' statements.
pub fn mixed_rtts(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("slides-mixed-rtts has no table of numbers that another file could replace".into());
    }
    let scenario = Scenario::from_text(SCENARIO).map_err(|_| "built-in scenario cannot be read")?;
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let by_cell = rows_by_cell(&plan, &rows);
    let point = |index: usize| {
        let cell = plan.cells()[index];
        let load = plan.arrivals[cell.arrival].value.load().map_or(String::new(), |load| load.to_string());
        Point::new(format!("{} at {load}", plan.schemes[cell.scheme].text), &by_cell[index])
    };
    let cells = plan.cells();
    let compared = cells.iter().filter(|cell| plan.schemes[cell.scheme].text.contains("-start") && cell.scheme > 0);
    Ok(check(compared.map(|cell| (point(plan.baseline_of(cell).index), point(cell.index))).collect(), PAIRS))
}

/// Compares so many pairs of slow start and a fast startup.
fn check(pairs: Vec<(Point, Point)>, declared: usize) -> Verdict {
    let mut checker = Checker::declaring(2 * declared);
    let (mut most_gain, mut most_speedup) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (slow, fast) in pairs {
        let (gain, speedup) = (slow.mid_sized - fast.mid_sized, slow.all / fast.all);
        let band = format!("below {SMALL_GAIN_MS}");
        checker.check(&fast.cell, "gain, 10 KB to 1 MB, ms", gain, SMALL_GAIN_MS, gain < SMALL_GAIN_MS, band);
        let band = format!("below {SMALL_SPEEDUP}");
        checker.check(&fast.cell, "speed-up, all", speedup, SMALL_SPEEDUP, speedup < SMALL_SPEEDUP, band);
        most_gain = most_gain.max(gain);
        most_speedup = most_speedup.max(speedup);
    }
    let note =
        format!("largest gain of mid-sized transfers {most_gain:.0} ms, largest total speed-up {most_speedup:.2}");
    checker.verdict("slides-mixed-rtts", note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    fn point(all: f64, mid_sized: f64) -> Point {
        Point { cell: "x".into(), all, mid_sized }
    }

    #[test]
    fn a_small_gain_passes_and_a_second_does_not() {
        let verdict = check(vec![(point(500.0, 900.0), point(450.0, 600.0))], 1);
        assert_eq!((verdict.cells, verdict.status), (2, Status::Pass));
        // 2.5 s - 1.2 s = 1.3 s, and 2.0 / 1.0 = 2.
        let verdict = check(vec![(point(2000.0, 2500.0), point(1000.0, 1200.0))], 1);
        assert_eq!(verdict.misses.len(), 2);
    }

    #[test]
    fn transfers_without_a_completion_time_are_no_small_gain() {
        let verdict = check(vec![(point(f64::NAN, f64::NAN), point(450.0, 600.0))], 1);
        assert_eq!(verdict.misses.len(), 2);
    }
}
