//! Scharf's slides on fast startups: the benefit by transfer size, slow start's closed form, the three cases of flow
//! control, and mixed RTTs and sizes. What they say of a shared bottleneck is in
//! `validation/slides/statements.toml`.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use std::ops::RangeInclusive;

use flowstart_core::units::Bytes;
use flowstart_lab::study::ideal;
use flowstart_lab::study::plan::Plan;

use crate::Input;
use crate::check::{Band, Checker, at_least, below, near};
use crate::results::{Results, mean_of};

/// Sizes in bytes between which the slides find a benefit: mid-sized transfers.
const BENEFIT: RangeInclusive<u64> = 10_000..=1_000_000;
/// A speed-up that counts as a benefit.
const CLEAR_SPEEDUP: f64 = 1.25;
/// Slow start loses nothing up to this size.
const LARGEST_WITHOUT_LOSS: u64 = 300_000;
/// Initial window of the baseline in segments.
const INITIAL_WINDOW: u64 = 3;
/// Gains in milliseconds that count as small are below this.
const SMALL_GAIN_MS: f64 = 1000.0;

/// A benefit, or none.
fn benefit(gains: bool) -> Band {
    if gains { at_least(CLEAR_SPEEDUP) } else { below(CLEAR_SPEEDUP) }
}

/// A benefit where the slides find one, and slow start's time where it loses nothing.
pub(crate) fn speedup(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let largest = check_speedups(&Results::of("fast-startups-by-size", input.jobs)?, checker);
    Ok(format!("largest speed-up {largest:.2}"))
}

/// Checks the sizes; returns the largest speed-up.
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

/// What one scheme does at one load: mean completion times in milliseconds, of all transfers and of mid-sized ones.
#[derive(Clone, Debug)]
struct Point {
    cell: String,
    all: f64,
    mid_sized: f64,
}

/// The gains of four fast startups at three loads, where RTTs and sizes are mixed.
pub(crate) fn mixed_rtts(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let results = Results::of("mixed-rtts", input.jobs)?;
    let (plan, by_cell) = (&results.plan, results.by_cell());
    let point = |index: usize| {
        let cell = plan.cells()[index];
        let load = plan.arrivals[cell.arrival].value.load().map_or(String::new(), |load| load.to_string());
        let mid_sized = by_cell[index].iter().filter(|row| BENEFIT.contains(&row.size_bytes));
        Point {
            cell: format!("{} at {load}", plan.schemes[cell.scheme].text),
            all: mean_of(&by_cell[index], |row| row.fct_ms),
            mid_sized: mean_of(mid_sized, |row| row.fct_ms),
        }
    };
    let cells = plan.cells();
    let compared = cells.iter().filter(|cell| plan.schemes[cell.scheme].text.contains("-start") && cell.scheme > 0);
    Ok(check_gains(compared.map(|cell| [point(plan.baseline_of(cell).index), point(cell.index)]), checker))
}

/// Compares pairs of slow start and a fast startup.
fn check_gains(pairs: impl IntoIterator<Item = [Point; 2]>, checker: &mut Checker) -> String {
    let (mut most_gain, mut most_speedup) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for [slow, fast] in pairs {
        let (gain, speedup) = (slow.mid_sized - fast.mid_sized, slow.all / fast.all);
        checker.check(&fast.cell, "gain, 10 KB to 1 MB, ms", gain, below(SMALL_GAIN_MS));
        checker.check(&fast.cell, "speed-up, all", speedup, benefit(false));
        most_gain = most_gain.max(gain);
        most_speedup = most_speedup.max(speedup);
    }
    format!("largest gain of mid-sized transfers {most_gain:.0} ms, largest total speed-up {most_speedup:.2}")
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

    #[test]
    fn a_small_gain_passes_and_neither_a_second_nor_an_undefined_one_does() {
        let point = |all, mid_sized| Point { cell: "x".into(), all, mid_sized };
        let misses = |slow, fast| {
            let mut checker = Checker::declaring(2);
            check_gains([[slow, fast]], &mut checker);
            checker.verdict("x", String::new()).misses.len()
        };
        assert_eq!(misses(point(500.0, 900.0), point(450.0, 600.0)), 0);
        // 2.5 s - 1.2 s = 1.3 s, and 2.0 / 1.0 = 2.
        assert_eq!(misses(point(2000.0, 2500.0), point(1000.0, 1200.0)), 2);
        assert_eq!(misses(point(f64::NAN, f64::NAN), point(450.0, 600.0)), 2);
    }
}
