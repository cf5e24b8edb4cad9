//! Scharf's slides on fast startups: the benefit by transfer size, slow start's closed form, and the three cases of flow
//! control.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use std::path::Path;

use flowstart_core::units::Bytes;

use super::{Checker, Verdict};
use crate::experiment;
use crate::ideal;
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::spec::Written;
use crate::spec::size::TransferSize;
use crate::statistics::mean;
use crate::summary::{rows_by_cell, values};

const SCENARIO: &str = include_str!("../../../../scenarios/fast-startups-by-size.toml");
/// Case 1: only the sender is changed, and the receiver lets its window grow.
const AUTOTUNED: &str = include_str!("../../../../scenarios/flow-control-autotuned.toml");
/// Case 2: the receiver announces a large window.
const ANNOUNCED: &str = include_str!("../../../../scenarios/flow-control-announced.toml");
/// Case 3: the sender ignores the window while it probes.
const IGNORED: &str = include_str!("../../../../scenarios/flow-control-ignored.toml");

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
    let scenario: Scenario = toml::from_str(SCENARIO).map_err(|error| format!("built-in scenario: {error}"))?;
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let by_cell = rows_by_cell(&plan, &rows);
    let cells = plan.cells();
    let mut checker = Checker::default();
    let mut largest = 0.0_f64;
    for (index, size) in plan.sizes.iter().enumerate() {
        let fct = |scheme: usize| {
            let cell = cells.iter().find(|cell| cell.size == index && cell.scheme == scheme)?;
            mean(&values(&by_cell[cell.index], |row| row.fct_ms))
        };
        let Some(baseline) = fct(0) else { continue };
        let best = (1..plan.schemes.len()).filter_map(fct).fold(f64::INFINITY, f64::min);
        let speedup = baseline / best;
        largest = largest.max(speedup);
        let bytes = size.value.mean_bytes();
        let (inside, band) = if BENEFIT.contains(&bytes.get()) {
            (speedup >= CLEAR_SPEEDUP, format!("at least {CLEAR_SPEEDUP}"))
        } else {
            (speedup < CLEAR_SPEEDUP, format!("below {CLEAR_SPEEDUP}"))
        };
        checker.check(&size.text, "speed-up of the fastest", speedup, CLEAR_SPEEDUP, inside, band);
        if bytes.get() <= LARGEST_WITHOUT_LOSS {
            let (expected, rtt) = slow_start_fct(&plan, bytes);
            let inside = (baseline - expected).abs() <= rtt;
            checker.check(&size.text, "FCT of slow start, ms", baseline, expected, inside, format!("within {rtt} ms"));
        }
    }
    Ok(checker.verdict("slides-speedup", format!("largest speed-up {largest:.2}")))
}

/// Runs the three cases of flow control and checks what the slides say of each: no fast startup gains over slow start, one
/// does, one does. The baseline of all is slow start with a large window.
pub fn flow_control(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("slides-flow-control has no table of numbers that another file could replace".into());
    }
    let mut checker = Checker::default();
    let announced = completion_times(ANNOUNCED, jobs)?;
    let mut notes = Vec::new();
    for (case, text) in [("autotuned", AUTOTUNED), ("announced", ANNOUNCED), ("ignored", IGNORED)] {
        let gains = text != AUTOTUNED;
        let times = completion_times(text, jobs)?;
        let mut speedups = Vec::new();
        for ((size, fct), (_, baseline)) in times.iter().zip(&announced) {
            let Some(baseline) = baseline.first() else { continue };
            let speedup = baseline / fct.iter().skip(1).fold(f64::INFINITY, |least, fct| least.min(*fct));
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

/// Mean completion times of the schemes in a scenario of one link, by size.
fn completion_times(text: &str, jobs: usize) -> Result<Vec<(String, Vec<f64>)>, String> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| format!("built-in scenario: {error}"))?;
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let by_cell = rows_by_cell(&plan, &rows);
    let of_size = |(index, size): (usize, &Written<TransferSize>)| {
        let mut cells: Vec<_> = plan.cells().into_iter().filter(|cell| cell.size == index).collect();
        cells.sort_by_key(|cell| cell.scheme);
        let times = cells.iter().filter_map(|cell| mean(&values(&by_cell[cell.index], |row| row.fct_ms)));
        (size.text.clone(), times.collect())
    };
    Ok(plan.sizes.iter().enumerate().map(of_size).collect())
}

/// Completion time of slow start in the analytical model, and the RTT, in milliseconds.
fn slow_start_fct(plan: &Plan, size: Bytes) -> (f64, f64) {
    let link = &plan.links[0];
    let fct = ideal::slow_start_fct(link, &plan.transport.profile, size, INITIAL_WINDOW);
    (fct.as_millis(), link.rtt.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

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
