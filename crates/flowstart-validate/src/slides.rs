//! Scharf's slides on fast startups: slow start's closed form, which is compared by `validation/slides/statements.toml`
//! with everything else that the slides say.
//!
//! `validation/slides/README.md` says what was published and how it is read.

use flowstart_core::units::Bytes;
use flowstart_lab::study::ideal;
use flowstart_lab::study::plan::Plan;

use crate::check::Checker;
use crate::results::Results;
use crate::{Input, statements};

/// Initial window of the baseline in segments.
const INITIAL_WINDOW: u64 = 3;

/// A benefit where the slides find one, and slow start's time where it loses nothing.
pub(crate) fn speedup(input: &Input, checker: &mut Checker) -> Result<String, String> {
    check_speedups(&Results::of("fast-startups-by-size", input.jobs)?, checker)
}

fn check_speedups(results: &Results, checker: &mut Checker) -> Result<String, String> {
    let by_cell = results.by_cell();
    let source = |metric: &str, words: &[&str]| {
        let model = |rtts: f64| {
            let size = words.concat().parse().map_err(|_| format!("{words:?} is no size"))?;
            let (fct, rtt) = slow_start_fct(&results.plan, size);
            Ok(fct + rtts * rtt)
        };
        match metric {
            "model_ms" => model(0.0),
            "model_less_rtt_ms" => model(-1.0),
            "model_and_rtt_ms" => model(1.0),
            _ => statements::of_cells(results, &by_cell, metric, words),
        }
    };
    statements::check("slides-speedup", &source, checker)
}

/// Completion time of slow start in the analytical model, and the RTT, in milliseconds.
fn slow_start_fct(plan: &Plan, size: Bytes) -> (f64, f64) {
    let link = &plan.links[0];
    let fct = ideal::slow_start_fct(link, &plan.transports[0].profile, size, INITIAL_WINDOW);
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
        check_speedups(results, &mut checker).unwrap();
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
