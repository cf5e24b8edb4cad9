//! Scharf's slides on fast startups: the benefit by transfer size, slow start's closed form, and the three cases of flow
//! control.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use std::path::Path;

use flowstart_core::units::Bytes;

use super::{Checker, Verdict, mean_of_all};
use flowstart_lab::experiment;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::rows_by_cell;
use flowstart_lab::spec::Written;
use flowstart_lab::spec::workload::Workload;
use flowstart_lab::study::ideal;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;

const SCENARIO: &str = include_str!("../../../scenarios/fast-startups-by-size.toml");
/// Case 1: only the sender is changed, and the receiver lets its window grow.
const AUTOTUNED: &str = include_str!("../../../scenarios/flow-control-autotuned.toml");
/// Case 2: the receiver announces a large window.
const ANNOUNCED: &str = include_str!("../../../scenarios/flow-control-announced.toml");
/// Case 3: the sender ignores the window while it probes.
const IGNORED: &str = include_str!("../../../scenarios/flow-control-ignored.toml");

/// Sizes in bytes between which the slides find a benefit.
const BENEFIT: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;
/// A speed-up that counts as a benefit.
const CLEAR_SPEEDUP: f64 = 1.25;
/// Slow start loses nothing up to this size.
const LARGEST_WITHOUT_LOSS: u64 = 300_000;
/// Initial window of the baseline in segments.
const INITIAL_WINDOW: u64 = 3;

/// Runs the scenario and checks the slides' statements.
pub fn speedup(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("slides-speedup has no table of numbers that another file could replace".into());
    }
    let (plan, rows) = results(SCENARIO, jobs)?;
    let (checker, largest) = check_speedups(&plan, &rows);
    Ok(checker.verdict("slides-speedup", format!("largest speed-up {largest:.2}")))
}

/// Checks the sizes, and says what the largest speed-up is.
fn check_speedups(plan: &Plan, rows: &[Row]) -> (Checker, f64) {
    // Speed-ups of 9 sizes, and slow start's time of the 6 smallest.
    let mut checker = Checker::declaring(9 + 6);
    let mut largest = 0.0_f64;
    for (size, (text, fcts)) in plan.sizes.iter().zip(completion_times(plan, rows)) {
        let (baseline, speedup) = speedup_of_the_fastest(fcts[0], &fcts);
        largest = largest.max(speedup);
        let bytes = size.value.mean_bytes();
        let (inside, band) = if BENEFIT.contains(&bytes.get()) {
            (speedup >= CLEAR_SPEEDUP, format!("at least {CLEAR_SPEEDUP}"))
        } else {
            (speedup < CLEAR_SPEEDUP, format!("below {CLEAR_SPEEDUP}"))
        };
        checker.check(&text, "speed-up of the fastest", speedup, CLEAR_SPEEDUP, inside, band);
        if bytes.get() <= LARGEST_WITHOUT_LOSS {
            let (expected, rtt) = slow_start_fct(plan, bytes);
            let inside = (baseline - expected).abs() <= rtt;
            checker.check(&text, "FCT of slow start, ms", baseline, expected, inside, format!("within {rtt} ms"));
        }
    }
    (checker, largest)
}

/// The baseline's time, and that over the least of all schemes but the first; undefined unless all are known.
fn speedup_of_the_fastest(baseline: f64, fcts: &[f64]) -> (f64, f64) {
    let known = fcts.iter().all(|fct| fct.is_finite());
    let fastest = fcts[1..].iter().copied().fold(f64::INFINITY, f64::min);
    (baseline, if known { baseline / fastest } else { f64::NAN })
}

/// Runs the three cases of flow control and checks what the slides say of each: no fast startup gains over slow start, one
/// does, one does. The baseline of all is slow start with a large window.
pub fn flow_control(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("slides-flow-control has no table of numbers that another file could replace".into());
    }
    let times = |text| results(text, jobs).map(|(plan, rows)| completion_times(&plan, &rows));
    // Five sizes in each of three cases.
    let mut checker = Checker::declaring(3 * 5);
    let announced = times(ANNOUNCED)?;
    let mut notes = Vec::new();
    for (case, text) in [("autotuned", AUTOTUNED), ("announced", ANNOUNCED), ("ignored", IGNORED)] {
        let gains = text != AUTOTUNED;
        let mut speedups = Vec::new();
        for ((size, fcts), (_, baseline)) in times(text)?.iter().zip(&announced) {
            let (_, speedup) = speedup_of_the_fastest(baseline[0], fcts);
            let (inside, band) = if gains {
                (speedup >= CLEAR_SPEEDUP, format!("at least {CLEAR_SPEEDUP}"))
            } else {
                (speedup < CLEAR_SPEEDUP, format!("below {CLEAR_SPEEDUP}"))
            };
            checker.check(&format!("{case}, {size}"), "speed-up of the fastest", speedup, CLEAR_SPEEDUP, inside, band);
            speedups.push(format!("{speedup:.2}"));
        }
        notes.push(format!("{case} {}", speedups.join(" ")));
    }
    Ok(checker.verdict("slides-flow-control", format!("speed-ups: {}", notes.join("; "))))
}

/// Runs a scenario.
fn results(text: &str, jobs: usize) -> Result<(Plan, Vec<Row>), String> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| format!("built-in scenario: {error}"))?;
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    Ok((plan, rows))
}

/// Mean completion times of all schemes in a scenario of one link, by size; NaN where a run failed.
fn completion_times(plan: &Plan, rows: &[Row]) -> Vec<(String, Vec<f64>)> {
    let by_cell = rows_by_cell(plan, rows);
    let of_size = |(index, size): (usize, &Written<Workload>)| {
        let mut cells: Vec<_> = plan.cells().into_iter().filter(|cell| cell.size == index).collect();
        cells.sort_by_key(|cell| cell.scheme);
        let times = cells.iter().map(|cell| mean_of_all(&by_cell[cell.index], |row| row.fct_ms));
        (size.text.clone(), times.collect())
    };
    plan.sizes.iter().enumerate().map(of_size).collect()
}

/// Completion time of slow start in the analytical model, and the RTT, in milliseconds.
fn slow_start_fct(plan: &Plan, size: Bytes) -> (f64, f64) {
    let link = &plan.links[0];
    let fct = ideal::slow_start_fct(link, &plan.transport.profile, size, INITIAL_WINDOW);
    (fct.as_millis_f64(), link.rtt.as_millis_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn a_scheme_or_a_baseline_that_failed_is_a_miss_and_no_other_takes_its_place() {
        let (plan, rows) = results(SCENARIO, 1).unwrap();
        let whole = check_speedups(&plan, &rows).0.verdict("x", String::new());
        // The first scheme is the baseline of all; the third is hardly ever the fastest.
        for (scheme, misses) in
            [(0, vec!["speed-up of the fastest", "FCT of slow start, ms"]), (2, vec!["speed-up of the fastest"])]
        {
            let failed =
                |row: &&mut Row| row.size_bytes == 10_000 && row.scheme == plan.schemes[scheme].text && row.rep == 0;
            let mut broken = rows.clone();
            broken.iter_mut().filter(failed).for_each(|row| {
                row.status = "time-limit".into();
                row.fct_ms = None;
            });
            let verdict = check_speedups(&plan, &broken).0.verdict("x", String::new());
            assert_eq!((verdict.status, verdict.cells), (Status::Miss, whole.cells));
            let found = verdict.misses.iter().filter(|miss| miss.cell == "10KB");
            assert_eq!(found.clone().map(|miss| miss.metric.as_str()).collect::<Vec<_>>(), misses);
            assert!(found.into_iter().all(|miss| miss.ours.0.is_none()));
        }
        // Nothing of the first size is there at all.
        let missing: Vec<Row> = rows.iter().filter(|row| row.size_bytes != 1000).cloned().collect();
        let verdict = check_speedups(&plan, &missing).0.verdict("x", String::new());
        assert_eq!((verdict.cells, verdict.misses.iter().filter(|miss| miss.cell == "1KB").count()), (whole.cells, 2));
    }

    #[test]
    fn the_model_counts_rounds_until_the_link_is_full() {
        let plan = toml::from_str::<Scenario>(SCENARIO).unwrap().plan(Path::new(".")).unwrap();
        // 1.2 ms a packet. 100 KB are 69 packets: rounds of 3, 6, 12 and 24, and 24 more in the fifth:
        // 400 + 4 * 200 + 24 * 1.2 = 1228.8 ms.
        let (fct, rtt) = slow_start_fct(&plan, Bytes::new(100_000));
        assert!((fct - 1228.8).abs() < 1e-6 && rtt == 200.0, "{fct}");
        // 3 packets: no round before them.
        assert!((slow_start_fct(&plan, Bytes::new(3_000)).0 - 403.6).abs() < 1e-6);
    }
}
