//! Comparisons of cells with their baselines: estimates, intervals that hold for all of them at once, and verdicts.

use std::collections::BTreeMap;

use flowstart_core::rng::{mix, name_hash};
use flowstart_report::{Kind, Verdict, WASTE};
use flowstart_statistics::{
    BootstrapEstimate, LEAST_EFFECT, LEVEL, RESAMPLES, bca_mean_difference_paired, bca_mean_ratio_paired, mean,
    simultaneous_ratios,
};

use super::cell_summary::Comparison;
use super::felt::{cell_seed, felt};
use super::metric::Group;
use super::row::{METRICS, Metric, Row};
use crate::study::plan::{Cell, Plan};

/// The prefixes of metrics that describe startup itself. They may differ where no packet does.
const OF_STARTUP: [&str; 2] = ["exit_", "overshoot_"];

/// What a repetition measured in the baseline and in the cell, where both have it.
pub type Pair = Option<(f64, f64)>;

/// The values of both cells by repetition.
pub fn by_repetition(baseline: &[&Row], rows: &[&Row], field: impl Fn(&Row) -> Option<f64>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (rep, before, after) in paired(baseline, rows, field) {
        pairs.resize(rep as usize, None);
        pairs.push(Some((before, after)));
    }
    pairs
}

/// The intervals of the ratios of a family, which hold for all of them at once.
pub fn intervals(plan: &Plan, family: &[Vec<Pair>]) -> Vec<Option<[f64; 2]>> {
    let seed = mix(plan.seed ^ name_hash("simultaneous"));
    let intervals = simultaneous_ratios(family, LEVEL, RESAMPLES, seed).into_iter();
    intervals.map(|one| one.map(|interval| [interval.low, interval.high])).collect()
}

/// The comparisons of a plan, by the place of their cell. `by_cell` has the rows of each cell.
pub(super) fn comparisons(plan: &Plan, by_cell: &[Vec<&Row>]) -> Vec<(usize, Comparison)> {
    let compared: Vec<(Cell, Cell)> =
        plan.cells().into_iter().filter_map(|cell| Some((cell, plan.baseline_of(&cell)?))).collect();
    let of_cell = |(cell, baseline): &(Cell, Cell)| {
        by_repetition(&by_cell[baseline.index], &by_cell[cell.index], felt(plan, cell).1)
    };
    let family: Vec<Vec<Pair>> = compared.iter().map(of_cell).collect();
    let intervals = intervals(plan, &family);
    compared
        .iter()
        .zip(&family)
        .zip(intervals)
        .map(|(((cell, baseline), pairs), interval)| {
            let rows = [&by_cell[baseline.index][..], &by_cell[cell.index]];
            (cell.index, comparison(plan, [baseline, cell], rows, pairs, interval))
        })
        .collect()
}

/// A comparison. The pairs are those of the time that users feel, and the interval is that of their ratio.
fn comparison(
    plan: &Plan,
    [baseline, cell]: [&Cell; 2],
    [base, rows]: [&[&Row]; 2],
    pairs: &[Pair],
    interval: Option<[f64; 2]>,
) -> Comparison {
    let seed = cell_seed(plan, cell);
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().flatten().copied().unzip();
    let speedup = mean(&before).zip(mean(&after)).map(|(before, after)| before / after);
    let delta = bca_mean_difference_paired(&before, &after, LEVEL, RESAMPLES, seed);
    let of = |field: fn(&Row) -> Option<f64>| -> (Vec<f64>, Vec<f64>) {
        paired(base, rows, field).into_iter().map(|(_, before, after)| (before, after)).unzip()
    };
    let (dropped_before, dropped_after) = of(|row| Some(row.dropped_packets as f64));
    let dropped = bca_mean_difference_paired(&dropped_before, &dropped_after, LEVEL, RESAMPLES, seed);
    let (inflation_before, inflation_after) = of(|row| Some(row.inflation));
    let inflation = mean(&inflation_after).zip(mean(&inflation_before)).map(|(after, before)| after - before);
    let verdict = verdict(pairs, plan.reps, is_same(base, rows), interval, inflation.unwrap_or(0.0));
    let ends = |estimate: BootstrapEstimate| [estimate.interval.low, estimate.interval.high];
    Comparison {
        baseline: plan.id(baseline),
        repetitions: before.len(),
        speedup,
        speedup_ci95: bca_mean_ratio_paired(&before, &after, LEVEL, RESAMPLES, seed).map(ends),
        speedup_ci: interval.filter(|_| verdict.is_none_or(|one| !one.is_deterministic())),
        level: LEVEL,
        fct_delta_ms: mean(&after).zip(mean(&before)).map(|(after, before)| after - before),
        fct_delta_ci95: delta.map(ends),
        dropped_delta: mean(&dropped_after).zip(mean(&dropped_before)).map(|(after, before)| after - before),
        dropped_delta_ci95: dropped.map(ends),
        inflation_delta: inflation,
        significant: verdict.is_some_and(Verdict::is_significant),
        verdict,
    }
}

/// The verdict on a comparison; `None` if none of its `repetitions` completed in both cells. This is the law for
/// everything that a reader sees. `is_same` says that both cells sent the same packets. The interval is that of the
/// speed-up; one run has none. `more_inflation` is what the cell sends twice beyond its baseline, over the payload.
pub fn verdict(
    pairs: &[Pair],
    repetitions: u32,
    is_same: bool,
    interval: Option<[f64; 2]>,
    more_inflation: f64,
) -> Option<Verdict> {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().flatten().copied().unzip();
    let speedup = mean(&before).zip(mean(&after)).map(|(before, after)| before / after);
    let is_one_run = is_one_run(pairs, repetitions);
    let kind = if is_same {
        Kind::Same
    } else if is_one_run {
        kind(speedup?, speedup.map(|one| [one; 2]), more_inflation)
    } else {
        kind(speedup?, interval, more_inflation)
    };
    Some(if is_one_run { Verdict::of_one_run(kind) } else { Verdict::of_interval(kind) })
}

/// What a speed-up shows that is known to lie in a range.
pub fn kind(speedup: f64, range: Option<[f64; 2]>, more_inflation: f64) -> Kind {
    let Some([low, high]) = range else { return Kind::Unclear };
    let is_small = |speedup: f64| (speedup - 1.0).abs() <= LEAST_EFFECT;
    if is_small(low) && is_small(high) {
        Kind::Negligible
    // It is not known to be small, and what is measured is not large.
    } else if (low <= 1.0 && high >= 1.0) || is_small(speedup) {
        Kind::Unclear
    } else if high < 1.0 {
        Kind::Slower
    } else if more_inflation > WASTE {
        Kind::FasterByWaste
    } else {
        Kind::Faster
    }
}

/// Whether all pairs are the same. One that is left of several repetitions has nothing that it is the same as.
fn is_one_run(pairs: &[Pair], repetitions: u32) -> bool {
    let completed: Vec<_> = pairs.iter().flatten().collect();
    let is_repeated = completed.len() > 1 || (completed.len() == 1 && repetitions == 1);
    is_repeated && completed.iter().all(|pair| *pair == completed[0])
}

/// Whether every repetition of both cells had the same packets, and some completed.
pub fn is_same(base: &[&Row], rows: &[&Row]) -> bool {
    let is_of_packets = |metric: &&Metric| {
        metric.group == Group::Every && !OF_STARTUP.iter().any(|prefix| metric.name.starts_with(prefix))
    };
    let metrics: Vec<&Metric> = METRICS.iter().filter(is_of_packets).collect();
    let print = |row: &Row| (row.rep, row.flow, row.failed(), fingerprint(row, metrics.iter().copied()));
    rows.iter().any(|row| !row.failed())
        && base.len() == rows.len()
        && base.iter().zip(rows).all(|(a, b)| print(a) == print(b))
}

/// The number of different repetitions among rows in their order.
pub(super) fn distinct(rows: &[&Row]) -> usize {
    let measured = || METRICS.iter().filter(|metric| metric.group != Group::Identity);
    let prints: std::collections::BTreeSet<Vec<u64>> = rows
        .chunk_by(|a, b| a.rep == b.rep)
        .map(|rows| rows.iter().flat_map(|row| fingerprint(row, measured())).collect())
        .collect();
    prints.len()
}

/// The values of a row's metrics; equal for equal values.
fn fingerprint<'a>(row: &Row, metrics: impl Iterator<Item = &'a Metric>) -> Vec<u64> {
    use super::metric::Value;
    let print = |metric: &Metric| match metric.value(row) {
        Value::Text(text) => text.map_or(0, name_hash),
        Value::Count(count) => count.unwrap_or(u64::MAX),
        // No number has this pattern of bits.
        Value::Number(number) => number.map_or(u64::MAX, f64::to_bits),
    };
    metrics.map(print).collect()
}

/// Values of both cells, a pair for each repetition: means over the flows that completed in both.
pub(super) fn paired(baseline: &[&Row], rows: &[&Row], field: impl Fn(&Row) -> Option<f64>) -> Vec<(u64, f64, f64)> {
    let places: BTreeMap<(u64, u64), &Row> =
        baseline.iter().filter(|row| !row.failed()).map(|row| ((row.rep, row.flow), *row)).collect();
    let mut pairs = Vec::new();
    for rows in rows.chunk_by(|a, b| a.rep == b.rep) {
        let both: (Vec<f64>, Vec<f64>) = rows
            .iter()
            .filter(|row| !row.failed())
            .filter_map(|row| field(places.get(&(row.rep, row.flow))?).zip(field(row)))
            .unzip();
        if let Some((before, after)) = mean(&both.0).zip(mean(&both.1)) {
            pairs.push((rows[0].rep, before, after));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::summary::{Summary, rows_by_cell, summarize};
    use crate::study::scenario::Scenario;

    fn plan(text: &str) -> Plan {
        Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap()
    }

    fn run(text: &str) -> (Plan, Vec<Row>, Summary) {
        let plan = plan(text);
        let rows = crate::experiment::execute(&plan, 2, &[], |_| {}).unwrap();
        let summary = summarize(&plan, &rows);
        (plan, rows, summary)
    }

    fn verdicts(summary: &Summary) -> Vec<Option<Verdict>> {
        summary.cells.iter().map(|cell| cell.vs_baseline.as_ref().and_then(|versus| versus.verdict)).collect()
    }

    /// The first scheme without noise wastes: an estimate of four times the rate.
    #[test]
    fn a_gain_by_waste_is_one_in_one_distinct_run_too() {
        let text = "link = [\"rate=20mbit,rtt=100ms,buffer=10pkt,noise=off\"]\nsize = [\"2MB\"]\nreps = 2\n\
                    scheme = [\"search\", \"blitzstart:estimate=4.0\", \"blitzstart\"]";
        let (_, _, summary) = run(text);
        let [_, wasteful, better] = verdicts(&summary)[..] else { panic!("three schemes") };
        assert_eq!(wasteful, Some(Verdict::of_one_run(Kind::FasterByWaste)));
        assert_eq!(better, Some(Verdict::of_one_run(Kind::Faster)));
        let versus = serde_json::to_value(summary.cells[1].vs_baseline.as_ref().unwrap()).unwrap();
        assert_eq!([&versus["verdict"], &versus["kind"]], ["deterministic", "faster-by-waste"]);
    }

    #[test]
    fn a_verdict_follows_from_interval_effect_and_waste() {
        let verdict = |speedup: f64, interval, more| {
            // Two repetitions that differ.
            let pairs = [Some((90.0 * speedup, 90.0)), Some((110.0 * speedup, 110.0))];
            let verdict = verdict(&pairs, 2, false, interval, more).unwrap();
            assert_eq!(verdict, Verdict::of_interval(verdict.kind));
            verdict.kind
        };
        assert_eq!(verdict(1.2, Some([1.1, 1.3]), 0.0), Kind::Faster);
        assert_eq!(verdict(1.2, Some([1.1, 1.3]), 0.16), Kind::FasterByWaste);
        assert_eq!(verdict(0.9, Some([0.8, 0.95]), 0.5), Kind::Slower);
        assert_eq!(verdict(1.2, Some([0.99, 1.4]), 0.0), Kind::Unclear);
        // Sure, but 1 % at most.
        assert_eq!(verdict(1.005, Some([1.001, 1.009]), 0.0), Kind::Negligible);
        assert_eq!(verdict(0.995, Some([0.993, 0.997]), 0.0), Kind::Negligible);
        // It may be more than 1 %.
        assert_eq!(verdict(1.009, Some([1.005, 1.013]), 0.0), Kind::Unclear);
        assert_eq!(verdict(1.009, Some([1.002, 1.09]), 0.0), Kind::Unclear);
        assert_eq!(Verdict::of_interval(Kind::Negligible).word(), "unclear");
        assert_eq!(verdict(1.009, Some([0.995, 1.013]), 0.0), Kind::Unclear);
        assert_eq!(verdict(1.0001, Some([0.9998, 1.0003]), 0.0), Kind::Negligible);
        assert_eq!(verdict(1.5, None, 0.0), Kind::Unclear);
    }

    #[test]
    fn one_distinct_run_shows_gains_waste_and_losses_without_an_interval() {
        let verdict = |before: f64, after: f64, more| {
            let pairs = vec![Some((before, after)); 3];
            let verdict = verdict(&pairs, 3, false, Some([before / after; 2]), more).unwrap();
            assert!(verdict.is_deterministic() && !verdict.is_significant());
            verdict.kind
        };
        assert_eq!(verdict(120.0, 100.0, 0.0), Kind::Faster);
        assert_eq!(verdict(120.0, 100.0, 0.54), Kind::FasterByWaste);
        assert_eq!(verdict(80.0, 100.0, 0.54), Kind::Slower);
        assert_eq!(verdict(100.9, 100.0, 0.0), Kind::Negligible);
        assert_eq!(verdict(100.0, 100.0, 0.0), Kind::Negligible);
        let same = super::verdict(&[Some((100.0, 100.0)); 3], 3, true, None, 0.0).unwrap();
        assert!(same.kind == Kind::Same && !same.is_deterministic());
        assert_eq!(super::verdict(&[None], 1, false, None, 0.0), None);
        // What is left of several repetitions is no run that all of them are.
        let left = [None, Some((120.0, 100.0))];
        assert_eq!(super::verdict(&left, 9, false, None, 0.0), Some(Verdict::of_interval(Kind::Unclear)));
        assert_eq!(super::verdict(&left[1..], 1, false, None, 0.0), Some(Verdict::of_one_run(Kind::Faster)));
    }

    #[test]
    fn where_nothing_completes_nothing_is_the_same() {
        let text = "link = [\"rate=20mbit,rtt=50ms,loss=99%\"]\nsize = [\"20KB\"]\nreps = 2\n\
                    scheme = [\"slow-start\", \"slow-start:iw=10\"]";
        let (_, _, summary) = run(text);
        assert!(summary.cells.iter().all(|cell| cell.n == 0 && cell.failed == 2));
        assert_eq!(verdicts(&summary), [None, None]);
    }

    /// A link without noise runs the same repetition again and again.
    #[test]
    fn one_distinct_run_has_no_interval_and_no_mark() {
        let text = "link = [\"rate=20mbit,rtt=30ms,buffer=1bdp\"]\nsize = [\"500KB\"]\nreps = 4\n\
                    scheme = [\"slow-start\", \"slow-start:iw=40\", \"slow-start:iw=10\"]";
        let (_, _, summary) = run(text);
        assert!(summary.cells.iter().all(|cell| cell.n == 4 && cell.distinct == 1));
        // The last one is the baseline under another name.
        let same = Verdict::of_one_run(Kind::Same);
        assert_eq!(verdicts(&summary), [None, Some(Verdict::of_one_run(Kind::Faster)), Some(same)]);
        let versus = summary.cells[1].vs_baseline.as_ref().unwrap();
        assert_eq!((versus.speedup_ci, versus.significant), (None, false));
        assert!(versus.speedup.unwrap() > 1.1 && versus.speedup_ci95.is_some());
    }

    #[test]
    fn marks_intervals_and_significance_never_contradict_each_other() {
        let text = "link = [\"lte\", \"dsl-fast\"]\nsize = [\"70KB\", \"500KB\"]\nreps = 6\ncompetitor = [\"cubic\"]\n\
                    link_options = \"access_jitter=1ms/1ms\"\n\
                    scheme = [\"slow-start\", \"blitzstart\", \"jump-start\", \"slow-start:iw=4\"]";
        let (plan, rows, summary) = run(text);
        let by_cell = rows_by_cell(&plan, &rows);
        let mut seen = Vec::new();
        for (cell, row) in plan.cells().iter().zip(&summary.cells) {
            let Some(versus) = &row.vs_baseline else { continue };
            let ([low, high], speedup) = (versus.speedup_ci.unwrap(), versus.speedup.unwrap());
            assert!(low <= speedup && speedup <= high && versus.level == 0.95, "{versus:?}");
            let is_sure = (low > 1.0 || high < 1.0) && (speedup - 1.0).abs() > LEAST_EFFECT;
            assert_eq!(versus.significant, is_sure, "{versus:?}");
            let expected = match (is_sure, speedup > 1.0, versus.inflation_delta.unwrap() > WASTE) {
                (false, ..) if low >= 1.0 - LEAST_EFFECT && high <= 1.0 + LEAST_EFFECT => Kind::Negligible,
                (false, ..) => Kind::Unclear,
                (true, true, true) => Kind::FasterByWaste,
                (true, true, false) => Kind::Faster,
                (true, false, _) => Kind::Slower,
            };
            assert_eq!(versus.verdict, Some(Verdict::of_interval(expected)), "{versus:?}");
            seen.push(expected);
            // The family is as wide as the command, so no interval is narrower than that of the comparison alone.
            let base = plan.baseline_of(cell).unwrap();
            let alone = paired(&by_cell[base.index], &by_cell[cell.index], |row| row.fct_ms);
            let alone: Vec<_> = alone.into_iter().map(|(_, before, after)| Some((before, after))).collect();
            let alone = simultaneous_ratios(&[alone], LEVEL, RESAMPLES, 1)[0].unwrap();
            assert!(low <= alone.low * 1.001 && high * 1.001 >= alone.high, "{versus:?} {alone:?}");
        }
        for kind in [Kind::Faster, Kind::FasterByWaste, Kind::Slower] {
            assert!(seen.contains(&kind), "{seen:?}");
        }
    }

    #[test]
    fn the_first_of_several_aqms_or_links_is_the_baseline() {
        let several = |link: &str, aqm: &str, scheme: &str| {
            let text = format!("link = [{link}]\naqm = [{aqm}]\nscheme = [{scheme}]\nsize = [\"5KB\"]\nreps = 1");
            let plan = plan(&text);
            let named = |cell: Cell| plan.baseline_of(&cell).map(|base| (plan.id(&cell), plan.id(&base)));
            for cell in plan.cells() {
                // A baseline is one of the plan's cells, before those that are compared with it.
                assert!(plan.baseline_of(&cell).is_none_or(|base| plan.cells()[base.index] == base));
            }
            plan.cells().into_iter().filter_map(named).collect::<Vec<_>>()
        };
        let pair = |cell: &str, base: &str| (cell.to_owned(), base.to_owned());
        let (links, aqms) = ("\"lte\", \"dsl-fast\"", "\"taildrop\", \"codel\"");
        let (one, two) = ("\"slow-start\"", "\"slow-start\", \"hystart\"");
        assert_eq!(
            several(links, "\"codel\"", one),
            [pair("dsl-fast/codel/5KB/slow-start/none", "lte/codel/5KB/slow-start/none")]
        );
        assert_eq!(
            several(links, aqms, one),
            [
                pair("lte/codel/5KB/slow-start/none", "lte/taildrop/5KB/slow-start/none"),
                pair("dsl-fast/codel/5KB/slow-start/none", "dsl-fast/taildrop/5KB/slow-start/none")
            ]
        );
        assert_eq!(
            several("\"lte\"", aqms, two),
            [
                pair("lte/taildrop/5KB/hystart/none", "lte/taildrop/5KB/slow-start/none"),
                pair("lte/codel/5KB/slow-start/none", "lte/taildrop/5KB/slow-start/none"),
                pair("lte/codel/5KB/hystart/none", "lte/codel/5KB/slow-start/none")
            ]
        );
        assert!(several("\"lte\"", "\"taildrop\"", one).is_empty());
    }
}
