//! Scharf's slides on fast startups: the benefit by transfer size, slow start's closed form, and the three cases of
//! flow control. What they say of a shared bottleneck, and of mixed RTTs and sizes, is in
//! `validation/slides/statements.toml`.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use std::ops::RangeInclusive;

use flowstart_core::units::Bytes;
use flowstart_lab::study::ideal;
use flowstart_lab::study::plan::Plan;

use crate::Input;
use crate::check::{Band, Checker, at_least, below, near};
use crate::results::Results;

/// Sizes in bytes between which the slides find a benefit: mid-sized transfers.
const BENEFIT: RangeInclusive<u64> = 10_000..=1_000_000;
/// A speed-up that counts as a benefit.
const CLEAR_SPEEDUP: f64 = 1.25;
/// Slow start loses nothing up to this size.
const LARGEST_WITHOUT_LOSS: u64 = 300_000;
/// Initial window of the baseline in segments.
const INITIAL_WINDOW: u64 = 3;

fn benefit(gains: bool) -> Band {
    if gains { at_least(CLEAR_SPEEDUP) } else { below(CLEAR_SPEEDUP) }
}

/// A benefit where the slides find one, and slow start's time where it loses nothing.
pub(crate) fn speedup(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let largest = check_speedups(&Results::of("fast-startups-by-size", input.jobs)?, checker);
    Ok(format!("largest speed-up {largest:.2}"))
}

fn check_speedups(results: &Results, checker: &mut Checker) -> f64 {
    let mut largest = 0.0_f64;
    for (size, (text, fcts)) in results.plan.sizes.iter().zip(completion_times(results)) {
        let speedup = speedup_of_the_fastest(fcts[0], &fcts);
        largest = largest.max(speedup);
        let bytes = size.value.mean_bytes();
        checker.check(&text, "speed-up of the fastest", speedup, benefit(BENEFIT.contains(&bytes.get())));
        if bytes.get() <= LARGEST_WITHOUT_LOSS {
            let (expected, rtt) = slow_start_fct(&results.plan, bytes);
            let band = near(expected, rtt).saying(format!("within {rtt} ms"));
            checker.check(&text, "FCT of slow start, ms", fcts[0], band);
        }
    }
    largest
}

/// The baseline's time over the least of all schemes but the first; undefined unless all are known.
fn speedup_of_the_fastest(baseline: f64, fcts: &[f64]) -> f64 {
    let known = fcts.iter().all(|fct| fct.is_finite());
    let fastest = fcts[1..].iter().copied().fold(f64::INFINITY, f64::min);
    if known { baseline / fastest } else { f64::NAN }
}

/// What the slides say of each case of flow control: no fast startup gains over slow start where the receiver lets its
/// window grow, one does where it announces a large window, and one where the sender ignores the window while it
/// probes. The baseline of all is slow start with a large window.
pub(crate) fn flow_control(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let times = |case: &str| Results::of(&format!("flow-control-{case}"), input.jobs).map(|of| completion_times(&of));
    let announced = times("announced")?;
    let mut notes = Vec::new();
    for case in ["autotuned", "announced", "ignored"] {
        let mut speedups = Vec::new();
        for ((size, fcts), (_, baseline)) in times(case)?.iter().zip(&announced) {
            let speedup = speedup_of_the_fastest(baseline[0], fcts);
            let cell = format!("{case}, {size}");
            checker.check(&cell, "speed-up of the fastest", speedup, benefit(case != "autotuned"));
            speedups.push(format!("{speedup:.2}"));
        }
        notes.push(format!("{case} {}", speedups.join(" ")));
    }
    Ok(format!("speed-ups: {}", notes.join("; ")))
}

/// Mean completion times of all schemes in a scenario of one link, by size; NaN where a run failed.
fn completion_times(results: &Results) -> Vec<(String, Vec<f64>)> {
    let (plan, fcts) = (&results.plan, results.means(|row| row.fct_ms));
    let of_size = |index: usize| {
        let mut cells: Vec<_> = plan.cells().into_iter().filter(|cell| cell.size == index).collect();
        cells.sort_by_key(|cell| cell.scheme);
        (plan.sizes[index].text.clone(), cells.iter().map(|cell| fcts[cell.index]).collect())
    };
    (0..plan.sizes.len()).map(of_size).collect()
}

/// Completion time of slow start in the analytical model, and the RTT, in milliseconds.
fn slow_start_fct(plan: &Plan, size: Bytes) -> (f64, f64) {
    let link = &plan.links[0];
    let fct = ideal::slow_start_fct(link, &plan.transport.profile, size, INITIAL_WINDOW);
    (fct.as_millis_f64(), link.rtt.as_millis_f64())
}

#[cfg(test)]
mod tests {
    use flowstart_lab::results::flows::Row;

    use super::*;
    use crate::check::{Status, Verdict};
    use crate::results::plan;

    fn speedups(results: &Results) -> Verdict {
        // Speed-ups of 9 sizes, and slow start's time of the 6 smallest.
        let mut checker = Checker::declaring(9 + 6);
        check_speedups(results, &mut checker);
        checker.verdict("x", String::new())
    }

    #[test]
    fn a_scheme_or_a_baseline_that_failed_is_a_miss_and_no_other_takes_its_place() {
        let results = Results::of("fast-startups-by-size", 1).unwrap();
        let whole = speedups(&results);
        let with = |rows| Results { plan: results.plan.clone(), rows };
        // The first scheme is the baseline of all; the third is hardly ever the fastest.
        for (scheme, misses) in
            [(0, vec!["speed-up of the fastest", "FCT of slow start, ms"]), (2, vec!["speed-up of the fastest"])]
        {
            let scheme = &results.plan.schemes[scheme].text;
            let failed = |row: &&mut Row| row.size_bytes == 10_000 && row.scheme == *scheme && row.rep == 0;
            let mut broken = results.rows.clone();
            broken.iter_mut().filter(failed).for_each(|row| {
                row.status = "time-limit".into();
                row.fct_ms = None;
            });
            let verdict = speedups(&with(broken));
            assert_eq!((verdict.status, verdict.cells), (Status::Miss, whole.cells));
            let found = verdict.misses.iter().filter(|miss| miss.cell == "10KB");
            assert_eq!(found.clone().map(|miss| miss.metric.as_str()).collect::<Vec<_>>(), misses);
            assert!(found.into_iter().all(|miss| miss.ours.0.is_none()));
        }
        // Nothing of the first size is there at all.
        let missing: Vec<Row> = results.rows.iter().filter(|row| row.size_bytes != 1000).cloned().collect();
        let verdict = speedups(&with(missing));
        assert_eq!((verdict.cells, verdict.misses.iter().filter(|miss| miss.cell == "1KB").count()), (whole.cells, 2));
    }

    #[test]
    fn the_model_counts_rounds_until_the_link_is_full() {
        let plan = plan("fast-startups-by-size").unwrap();
        // 1.2 ms a packet. 100 KB are 69 packets: rounds of 3, 6, 12 and 24, and 24 more in the fifth:
        // 400 + 4 * 200 + 24 * 1.2 = 1228.8 ms.
        let (fct, rtt) = slow_start_fct(&plan, Bytes::new(100_000));
        assert!((fct - 1228.8).abs() < 1e-6 && rtt == 200.0, "{fct}");
        // 3 packets: no round before them.
        assert!((slow_start_fct(&plan, Bytes::new(3_000)).0 - 403.6).abs() < 1e-6);
    }
}
