//! The change of results between two runs of the same question, before and after something else changed.

use std::collections::{BTreeMap, BTreeSet};

use flowstart_core::rng::name_hash;
use flowstart_report as report;
use flowstart_report::Verdict;
use flowstart_statistics::{
    BootstrapEstimate, LEAST_EFFECT, LEVEL, RESAMPLES, bca_mean_difference_paired, bca_mean_ratio_paired, mean,
    sample_standard_deviation, upper_t_quantile,
};

use super::cell_input;
use crate::results::felt::felt;
use crate::results::flows::Row;
use crate::results::folder::MANIFEST;
use crate::results::identity::{Part, short};
use crate::results::stored::Stored;
use crate::results::summary::{rows_by_cell, summarize};

/// Pairs from which on an interval is one from resamples.
const MANY: usize = 20;
/// Most differences that a message names.
const NAMED: usize = 5;

/// Compares two folders of results, cell by cell.
///
/// # Errors
///
/// What differs between the two questions; or their versions, unless `across_versions`.
pub fn changes(before: &Stored, after: &Stored, across_versions: bool) -> Result<report::ChangeReport, String> {
    let notes = check(before, after, across_versions)?;
    let plan = &after.study.plan;
    let (old, new) = (rows_by_cell(plan, &before.rows), rows_by_cell(plan, &after.rows));
    // An interval for each cell that holds for all of them at once.
    let tail = ((1.0 - LEVEL) / plan.cells().len().max(1) as f64).max(2.0 / f64::from(RESAMPLES));
    let summaries = [summarize(&before.study.plan, &before.rows), summarize(plan, &after.rows)];
    let cells = plan.cells().into_iter().map(|cell| {
        let (old, new) = (&old[cell.index], &new[cell.index]);
        let seed = name_hash(&plan.id(&cell));
        let time = pairs(old, new, felt(plan, &cell).1);
        let ratio = bca_mean_ratio_paired(&time.0, &time.1, LEVEL, RESAMPLES, seed);
        let (verdict, fct) = judged(&time, ratio.as_ref(), 1.0 - tail);
        let difference = |field: fn(&Row) -> Option<f64>| {
            let (old, new) = pairs(old, new, field);
            let interval = bca_mean_difference_paired(&old, &new, LEVEL, RESAMPLES, seed);
            report::Estimate {
                mean: mean(&new).zip(mean(&old)).map(|(new, old)| new - old),
                ci95: interval.map(|one| [one.interval.low, one.interval.high]),
            }
        };
        report::Change {
            before: cell_input(&before.study.plan, &cell, &summaries[0].cells[cell.index], old),
            after: cell_input(plan, &cell, &summaries[1].cells[cell.index], new),
            pairs: time.0.len() as u32,
            fct_ratio: fct,
            verdict,
            inflation_delta: difference(|row| Some(row.inflation)),
            dropped_delta: difference(|row| Some(row.dropped_packets as f64)),
        }
    });
    let cells: Vec<report::Change> = cells.collect();
    let side = |stored: &Stored| report::Side {
        folder: stored.folder.display().to_string(),
        version: stored.manifest.version.clone(),
        build: stored.manifest.experiment.as_ref().map_or_else(String::new, |known| known.build.clone()),
        command: stored.manifest.command.join(" "),
        repetitions: stored.study.plan.reps,
        host: stored.manifest.host.clone(),
    };
    let title = match after.study.scenario.title.as_str() {
        "" => "Before and after".to_owned(),
        title => format!("{title}: before and after"),
    };
    Ok(report::ChangeReport { title, answer: answer(&cells), before: side(before), after: side(after), cells, notes })
}

/// Whether both hold the same question; what a reader must know besides.
fn check(before: &Stored, after: &Stored, across_versions: bool) -> Result<Vec<String>, String> {
    let [a, b] = [before, after].map(|stored| stored.folder.display().to_string());
    let identity = |stored: &Stored| {
        let unknown = || format!("{}: {} does not say of which experiment it is", stored.folder.display(), MANIFEST);
        stored.manifest.experiment.clone().ok_or_else(unknown)
    };
    let (old, new) = (identity(before)?, identity(after)?);
    let is_other_version = old.program != new.program;
    if is_other_version && !across_versions {
        let (old, new) = (old.program, new.program);
        return Err(format!("{a} is of flowstart {old}, {b} of {new}: --across-versions compares them all the same"));
    }
    let (mut differences, mut notes) = (Vec::new(), Vec::new());
    let names: BTreeSet<&String> = old.parts.keys().chain(new.parts.keys()).collect();
    for name in names {
        let (then, now) = (old.parts.get(name), new.parts.get(name));
        let written = |part: Option<&Part>| part.map_or_else(|| "nothing".to_owned(), |part| short(&part.written));
        if then.map(|part| &part.written) != now.map(|part| &part.written) {
            differences.push(format!("{name} is `{}` in {a} and `{}` in {b}", written(then), written(now)));
        } else if then != now {
            let what = format!("{name} is `{}` in both, but its options, defaults or files differ", written(now));
            // Another version may have other defaults, and that may be what the reader compares.
            if is_other_version { &mut notes } else { &mut differences }.push(what);
        }
    }
    if differences.is_empty() {
        let repetitions = [before, after].map(|stored| stored.study.plan.reps);
        if repetitions[0] != repetitions[1] {
            let common = repetitions[0].min(repetitions[1]);
            notes.push(format!(
                "{a} has {} repetitions, {b} has {}; the first {common} of both are compared",
                repetitions[0], repetitions[1]
            ));
        }
        if old.build == new.build {
            notes.push("both are of the same build of the program, so no difference is due to it".to_owned());
        }
        return Ok(notes);
    }
    let more = match differences.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    differences.truncate(NAMED);
    Err(format!("{a} and {b} answer different questions: {}{more}", differences.join("; ")))
}

/// Values before and after, a pair for each repetition that both have: means over the flows that completed in both.
fn pairs(before: &[&Row], after: &[&Row], field: impl Fn(&Row) -> Option<f64>) -> (Vec<f64>, Vec<f64>) {
    let done = |rows: &[&Row]| {
        let done = rows.iter().filter(|row| !row.failed()).map(|row| ((row.rep, row.flow), field(row)));
        done.collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (done(before), done(after));
    let both = |(key, value): (&(u64, u64), &Option<f64>)| Some((key.0, (*value)?, (*new.get(key)?)?));
    let both: Vec<(u64, f64, f64)> = old.iter().filter_map(both).collect();
    let means = |rows: &[(u64, f64, f64)]| {
        let (old, new): (Vec<f64>, Vec<f64>) = rows.iter().map(|(_, old, new)| (*old, *new)).unzip();
        mean(&old).zip(mean(&new))
    };
    both.chunk_by(|a, b| a.0 == b.0).filter_map(means).unzip()
}

/// What the completion times show: how many times sooner they are after than before, with an interval at this level.
fn judged(
    (before, after): &(Vec<f64>, Vec<f64>),
    ratio: Option<&BootstrapEstimate>,
    level: f64,
) -> (Option<Verdict>, report::Estimate) {
    let Some(mean) = mean(before).zip(mean(after)).map(|(before, after)| before / after) else {
        return (None, report::Estimate::default());
    };
    let point = report::Estimate { mean: Some(mean), ci95: None };
    if before == after {
        return (Some(Verdict::Same), point);
    }
    let is_one = |values: &[f64]| values.iter().all(|value| *value == values[0]);
    if is_one(before) && is_one(after) {
        return (Some(Verdict::Deterministic), point);
    }
    let interval = match before.len() {
        0..MANY => of_few(before, after, mean, level),
        _ => ratio.and_then(|ratio| ratio.interval_at(level)).map(|interval| [interval.low, interval.high]),
    };
    let Some([low, high]) = interval else { return (Some(Verdict::Unclear), point) };
    let verdict = match (low > 1.0, high < 1.0) {
        _ if (mean - 1.0).abs() <= LEAST_EFFECT => Verdict::Unclear,
        (true, _) => Verdict::Faster,
        (_, true) => Verdict::Slower,
        _ => Verdict::Unclear,
    };
    (Some(verdict), report::Estimate { mean: Some(mean), ci95: Some([low, high]) })
}

/// An interval of a ratio of means from few pairs, of which resamples would show too little: Student's t with the
/// deviation of the pairs' logarithms.
fn of_few(before: &[f64], after: &[f64], ratio: f64, level: f64) -> Option<[f64; 2]> {
    let logarithms: Vec<f64> = before.iter().zip(after).map(|(before, after)| (before / after).ln()).collect();
    let count = logarithms.len() as f64;
    let error = sample_standard_deviation(&logarithms)? / count.sqrt();
    let reach = upper_t_quantile(count - 1.0, (1.0 - level) / 2.0)? * error;
    Some([ratio * (-reach).exp(), ratio * reach.exp()])
}

/// The answer in sentences.
fn answer(cells: &[report::Change]) -> Vec<String> {
    let all = cells.len();
    let count = |is: &dyn Fn(&report::Change) -> bool| cells.iter().filter(|cell| is(cell)).count();
    let same = count(&|cell| cell.verdict == Some(Verdict::Same));
    let changed: Vec<&report::Change> = cells.iter().filter(|cell| cell.has_changed()).collect();
    let of = |many: usize| if all == 1 { "The cell".to_owned() } else { format!("{many} of {all} cells") };
    if same == all {
        return vec![match all {
            1 => "Nothing changed: every repetition takes exactly as long as before.".to_owned(),
            _ => format!("Nothing changed: every repetition of all {all} cells takes exactly as long as before."),
        }];
    }
    let mut sentences = Vec::new();
    let largest = changed.iter().max_by(|a, b| a.effect().total_cmp(&b.effect()));
    match largest {
        None => sentences.push(match all {
            1 => "The completion time did not change measurably by more than 1 %.".to_owned(),
            _ => format!("No completion time of {all} cells changed measurably by more than 1 %."),
        }),
        Some(largest) => {
            let faster = changed.iter().filter(|cell| cell.fct_ratio.mean.is_some_and(|ratio| ratio > 1.0)).count();
            let directions = match (faster, changed.len() - faster) {
                (_, 0) => "faster".to_owned(),
                (0, _) => "slower".to_owned(),
                (faster, slower) => format!("{faster} faster, {slower} slower"),
            };
            let words = largest.in_words();
            let cell = &largest.after.id;
            sentences
                .push(format!("{} changed by more than 1 % ({directions}); most: {cell} {words}.", of(changed.len())));
        }
    }
    if same > 0 {
        sentences.push(format!("In {same} cells every repetition takes exactly as long as before."));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_statistics::bca_mean_ratio_paired;

    fn verdict(before: &[f64], after: &[f64]) -> Option<Verdict> {
        let ratio = bca_mean_ratio_paired(before, after, LEVEL, RESAMPLES, 1);
        judged(&(before.to_vec(), after.to_vec()), ratio.as_ref(), LEVEL).0
    }

    #[test]
    fn a_change_is_one_beyond_its_interval_and_one_percent() {
        let before: Vec<f64> = (0..20).map(|k| 100.0 + f64::from(k % 7)).collect();
        let times =
            |factor: f64| before.iter().zip(0..).map(|(ms, k)| ms * factor + f64::from(k % 3)).collect::<Vec<_>>();
        assert_eq!(verdict(&before, &before), Some(Verdict::Same));
        assert_eq!(verdict(&before, &times(0.8)), Some(Verdict::Faster));
        assert_eq!(verdict(&before, &times(1.3)), Some(Verdict::Slower));
        // Half a percent is sure, and does not matter.
        assert_eq!(verdict(&before, &before.iter().map(|ms| ms * 1.005).collect::<Vec<_>>()), Some(Verdict::Unclear));
        assert_eq!(verdict(&[100.0; 5], &[90.0; 5]), Some(Verdict::Deterministic));
        assert_eq!(verdict(&[], &[]), None);
    }

    #[test]
    fn of_two_pairs_little_is_known() {
        // Logarithms 0.2 and 0.3 have the mean 0.25 and the error 0.05; t with one degree of freedom is 12.706 at 95 %.
        let (before, after) = ([100.0, 100.0], [100.0 * (-0.2_f64).exp(), 100.0 * (-0.3_f64).exp()]);
        let [low, high] = of_few(&before, &after, 0.25_f64.exp(), 0.95).unwrap();
        assert!((low.ln() - (0.25 - 0.05 * 12.706)).abs() < 1e-3 && (high.ln() - (0.25 + 0.05 * 12.706)).abs() < 1e-3);
        assert_eq!(verdict(&before, &after), Some(Verdict::Unclear));
        assert_eq!(of_few(&before[..1], &after[..1], 1.2, 0.95), None);
    }

    #[test]
    fn repetitions_are_paired_by_number_and_failed_ones_are_left_out() {
        let row = |rep, flow, fct: f64, status: &str| Row {
            rep,
            flow,
            fct_ms: Some(fct),
            status: status.to_owned(),
            ..Row::default()
        };
        let before = [row(0, 0, 10.0, "ok"), row(0, 1, 20.0, "ok"), row(1, 0, 30.0, "ok"), row(2, 0, 1.0, "ok")];
        let after = [row(0, 0, 12.0, "ok"), row(0, 1, 22.0, "ok"), row(1, 0, 33.0, "stalled"), row(2, 0, 2.0, "ok")];
        let (old, new): (Vec<&Row>, Vec<&Row>) = (before.iter().collect(), after.iter().collect());
        assert_eq!(pairs(&old, &new, |row| row.fct_ms), (vec![15.0, 1.0], vec![17.0, 2.0]));
    }
}
