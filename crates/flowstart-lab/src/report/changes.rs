//! The change of results between two runs of the same question, before and after something else changed.

use std::collections::BTreeSet;

use flowstart_core::rng::name_hash;
use flowstart_report as report;
use flowstart_report::{Kind, Verdict, WASTE};
use flowstart_statistics::{LEVEL, RESAMPLES, bca_mean_difference_paired, mean};

use super::cell::cell_input;
use crate::results::comparison::{self, Pair, by_repetition, intervals};
use crate::results::felt::felt;
use crate::results::flows::Row;
use crate::results::folder::MANIFEST;
use crate::results::identity::{Identity, Part, other_question, short};
use crate::results::stored::Stored;
use crate::results::summary::{rows_by_cell, summarize};

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
    // Means over other repetitions would differ even where each repetition is the same.
    let common = u64::from(before.study.plan.reps.min(plan.reps));
    let [before_rows, after_rows] = [before, after].map(|stored| {
        let of_both = stored.rows.iter().filter(|row| row.rep < common).cloned();
        of_both.collect::<Vec<Row>>()
    });
    let (old, new) = (rows_by_cell(plan, &before_rows), rows_by_cell(plan, &after_rows));
    let times =
        plan.cells().into_iter().map(|cell| by_repetition(&old[cell.index], &new[cell.index], felt(plan, &cell).1));
    let times: Vec<Vec<Pair>> = times.collect();
    let intervals = intervals(plan, &times);
    let summaries = [summarize(&before.study.plan, &before_rows), summarize(plan, &after_rows)];
    let earlier = before.study.plan.cells();
    let cells = plan.cells().into_iter().map(|cell| {
        let id = plan.id(&cell);
        let Some(then) = earlier.iter().find(|then| before.study.plan.id(then) == id) else {
            return Err(format!("{}: has no cell {id}", before.folder.display()));
        };
        let (old, new) = (&old[cell.index], &new[cell.index]);
        let counts = [&summaries[0].cells[then.index], &summaries[1].cells[cell.index]];
        let is_same = counts[0].n == counts[1].n && comparison::is_same(old, new);
        let seed = name_hash(&id);
        let time = &times[cell.index];
        let difference = |field: fn(&Row) -> Option<f64>| {
            let (old, new): (Vec<f64>, Vec<f64>) = by_repetition(old, new, field).into_iter().flatten().unzip();
            let interval = bca_mean_difference_paired(&old, &new, LEVEL, RESAMPLES, seed);
            report::Estimate {
                mean: mean(&new).zip(mean(&old)).map(|(new, old)| new - old),
                ci95: interval.map(|one| [one.interval.low, one.interval.high]),
            }
        };
        let inflation_delta = difference(|row| Some(row.inflation));
        let more_inflation = inflation_delta.mean.unwrap_or(0.0);
        let (verdict, fct) = judged(time, plan.reps, is_same, intervals[cell.index], more_inflation);
        Ok(report::Change {
            before: cell_input(&before.study.plan, then, &summaries[0].cells[then.index], old),
            after: cell_input(plan, &cell, &summaries[1].cells[cell.index], new),
            pairs: time.iter().flatten().count() as u32,
            fct_ratio: fct,
            verdict,
            inflation_delta,
            dropped_delta: difference(|row| Some(row.dropped_packets as f64)),
        })
    });
    let cells = cells.collect::<Result<Vec<report::Change>, String>>()?;
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
    // The cells are those that the text gives now: an edited text pairs rows that answer other questions.
    for (stored, then) in [(before, &old), (after, &new)] {
        let differences = then.edits(&Identity::of(&stored.study.plan));
        if !differences.is_empty() {
            return Err(format!("{}: {}", stored.folder.display(), other_question(&differences)));
        }
    }
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
    // What differs on purpose belongs into one question, where repetitions are paired and intervals hold.
    Err(format!(
        "{a} and {b} answer different questions: {}{more}. This compares builds; to compare configurations, name both in \
         one `compare` or `run`",
        differences.join("; ")
    ))
}

/// What the completion times and the bytes sent twice show: the times before over those after, with the interval.
fn judged(
    pairs: &[Pair],
    repetitions: u32,
    is_same: bool,
    interval: Option<[f64; 2]>,
    more_inflation: f64,
) -> (Option<Verdict>, report::Estimate) {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().flatten().copied().unzip();
    let verdict = comparison::verdict(pairs, repetitions, is_same, interval, more_inflation);
    let has_interval = verdict.is_some_and(|one| one.kind != Kind::Same && !one.is_deterministic());
    let mean = mean(&before).zip(mean(&after)).map(|(before, after)| before / after);
    (verdict, report::Estimate { mean, ci95: interval.filter(|_| has_interval) })
}

/// What changed in the bytes alone: cells that take about as long as before, and send more bytes or fewer.
fn wasteful(cells: &[report::Change]) -> Option<String> {
    let is_other = |cell: &&report::Change| {
        let is_sure = cell.inflation_delta.ci95.is_none_or(|[low, high]| low > 0.0 || high < 0.0);
        !cell.has_changed() && is_sure && cell.inflation_delta.mean.is_some_and(|more| more.abs() > WASTE)
    };
    let which: Vec<&report::Change> = cells.iter().filter(is_other).collect();
    let size = |cell: &report::Change| cell.inflation_delta.mean.unwrap_or(0.0);
    let most = which.iter().max_by(|a, b| size(a).abs().total_cmp(&size(b).abs()))?;
    let (percent, direction) = (size(most).abs() * 100.0, if size(most) > 0.0 { "more" } else { "less" });
    let (id, others) = (&most.after.id, which.len() - 1);
    let others = if others > 0 { format!(", and {others} other cells send another amount") } else { String::new() };
    Some(format!("In about the same time {id} sends {percent:.1} % of the transfer {direction} than before{others}."))
}

/// The answer in sentences.
fn answer(cells: &[report::Change]) -> Vec<String> {
    let all = cells.len();
    let count = |is: &dyn Fn(&report::Change) -> bool| cells.iter().filter(|cell| is(cell)).count();
    let same = count(&|cell| cell.verdict.is_some_and(|verdict| verdict.kind == Kind::Same));
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
    let incomparable: Vec<&report::Change> = cells.iter().filter(|cell| cell.verdict.is_none()).collect();
    match largest {
        None if incomparable.len() == all => {}
        None => sentences.push(match all - incomparable.len() {
            1 if all == 1 => "The completion time did not change measurably by more than 1 %.".to_owned(),
            1 => "In the one cell that can be compared the completion time did not change measurably.".to_owned(),
            known => format!("No completion time of {known} cells changed measurably by more than 1 %."),
        }),
        Some(largest) => {
            let faster = changed.iter().filter(|cell| cell.fct_ratio.mean.is_some_and(|ratio| ratio > 1.0)).count();
            let by_waste =
                changed.iter().filter(|cell| cell.verdict.is_some_and(|one| one.kind == Kind::FasterByWaste)).count();
            let by_waste = match by_waste {
                0 => String::new(),
                all if all == faster => " by waste".to_owned(),
                some => format!(" ({some} by waste)"),
            };
            let directions = match (faster, changed.len() - faster) {
                (_, 0) => format!("faster{by_waste}"),
                (0, _) => "slower".to_owned(),
                (faster, slower) => format!("{faster} faster{by_waste}, {slower} slower"),
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
    sentences.extend(wasteful(cells));
    if let Some(first) = incomparable.first() {
        let (only, id) = (incomparable.len() == 1, &first.after.id);
        let which = if only { format!("Of {id}") } else { format!("Of {} cells", incomparable.len()) };
        let such_as = if only { String::new() } else { format!(", such as {id}") };
        sentences.push(format!("{which} no repetition completed in both{such_as}, so nothing is compared there."));
    }
    for (word, sign) in [("Fewer", -1_i64), ("More", 1)] {
        let differs = |cell: &&report::Change| (i64::from(cell.after.n) - i64::from(cell.before.n)) * sign > 0;
        let which: Vec<&report::Change> = cells.iter().filter(differs).collect();
        let Some(first) = which.first() else { continue };
        let (id, before, after) = (&first.after.id, first.before.n, first.after.n);
        let others = if which.len() > 1 { format!(", and in {} other cells", which.len() - 1) } else { String::new() };
        sentences.push(format!("{word} transfers complete than before: {after} in place of {before} in {id}{others}."));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::scenario::Scenario;

    fn verdict(before: &[f64], after: &[f64], more_inflation: f64) -> Option<Verdict> {
        let pairs: Vec<Pair> = before.iter().zip(after).map(|(before, after)| Some((*before, *after))).collect();
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 1";
        let plan = Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        judged(
            &pairs,
            pairs.len() as u32,
            !pairs.is_empty() && before == after,
            intervals(&plan, std::slice::from_ref(&pairs))[0],
            more_inflation,
        )
        .0
    }

    #[test]
    fn a_change_is_one_beyond_its_interval_and_one_percent() {
        let before: Vec<f64> = (0..20).map(|k| 100.0 + f64::from(k % 7)).collect();
        let times =
            |factor: f64| before.iter().zip(0..).map(|(ms, k)| ms * factor + f64::from(k % 3)).collect::<Vec<_>>();
        let of_interval = |kind| Some(Verdict::of_interval(kind));
        assert_eq!(verdict(&before, &before, 0.0), of_interval(Kind::Same));
        assert_eq!(verdict(&before, &times(0.8), 0.0), of_interval(Kind::Faster));
        assert_eq!(verdict(&before, &times(0.8), 0.16), of_interval(Kind::FasterByWaste));
        assert_eq!(verdict(&before, &times(1.3), 0.16), of_interval(Kind::Slower));
        // Half a percent is sure, and does not matter.
        let later = before.iter().map(|ms| ms * 1.005).collect::<Vec<_>>();
        assert_eq!(verdict(&before, &later, 0.0), of_interval(Kind::Negligible));
        assert_eq!(verdict(&[100.0; 5], &[90.0; 5], 0.0), Some(Verdict::of_one_run(Kind::Faster)));
        assert_eq!(verdict(&[], &[], 0.0), None);
    }

    #[test]
    fn what_has_no_rows_any_more_is_not_called_unchanged() {
        let cell = |before: u32, after: u32, verdict| report::Change {
            before: report::Cell { id: "a".into(), n: before, ..report::Cell::default() },
            after: report::Cell { id: "a".into(), n: after, ..report::Cell::default() },
            verdict,
            ..report::Change::default()
        };
        let gone = answer(&[cell(5, 0, None)]);
        let expected = [
            "Of a no repetition completed in both, so nothing is compared there.",
            "Fewer transfers complete than before: 0 in place of 5 in a.",
        ];
        assert_eq!(gone, expected);
        let same = cell(5, 5, Some(Verdict::of_interval(Kind::Same)));
        let of_two = answer(&[same, cell(5, 0, None)]);
        assert_eq!(of_two[0], "In the one cell that can be compared the completion time did not change measurably.");
        assert_eq!(of_two[2..], expected);
    }

    #[test]
    fn bytes_that_are_sent_twice_at_the_same_times_are_not_called_unchanged() {
        let cell = |verdict, more| report::Change {
            before: report::Cell { id: "a".into(), n: 5, ..report::Cell::default() },
            after: report::Cell { id: "a".into(), n: 5, ..report::Cell::default() },
            verdict: Some(Verdict::of_interval(verdict)),
            inflation_delta: report::Estimate { mean: Some(more), ci95: Some([more, more]) },
            ..report::Change::default()
        };
        let twice = verdict(&[100.0, 110.0], &[100.0, 110.0], 1.0).unwrap();
        assert_eq!(twice.kind, Kind::Same, "what has the same packets");
        let answer = answer(&[cell(Kind::Negligible, 1.0), cell(Kind::Same, 0.0), cell(Kind::Faster, 0.5)]);
        assert_eq!(answer[2], "In about the same time a sends 100.0 % of the transfer more than before.");
    }

    #[test]
    fn of_two_pairs_little_is_known() {
        // Logarithms 0.2 and 0.3; t with one degree of freedom is 12.7 at 95 %.
        let (before, after) = ([100.0, 100.0], [100.0 * (-0.2_f64).exp(), 100.0 * (-0.3_f64).exp()]);
        assert_eq!(verdict(&before, &after, 0.0), Some(Verdict::of_interval(Kind::Unclear)));
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
        assert_eq!(by_repetition(&old, &new, |row| row.fct_ms), [Some((15.0, 17.0)), None, Some((1.0, 2.0))]);
    }

    #[test]
    fn means_are_those_of_the_repetitions_of_both() {
        use crate::perform::{Folder, Provenance, perform};
        use crate::study::Study;

        let stored = [3, 6].map(|reps| {
            let text =
                format!("link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = {reps}\nnoise = true");
            let study = Study::new(Scenario::from_text(&text).unwrap(), std::path::Path::new(".")).unwrap();
            let folder = std::env::temp_dir().join(format!("flowstart-changes-{reps}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            let mut sink = Folder::new(folder.clone(), false, Provenance::default(), &|_, _, _| None);
            perform(&study, &mut sink, None, 1, &()).unwrap();
            drop(sink);
            let stored = Stored::read(&folder).unwrap();
            std::fs::remove_dir_all(&folder).unwrap();
            stored
        });
        let all = stored.each_ref().map(|one| summarize(&one.study.plan, &one.rows).cells[0].metrics["fct_ms"].mean);
        assert_ne!(all[0], all[1]);
        for [before, after] in [[0, 1], [1, 0]] {
            let change = changes(&stored[before], &stored[after], false).unwrap().cells.remove(0);
            assert_eq!((change.verdict, change.pairs), (Some(Verdict::of_interval(Kind::Same)), 3));
            assert_eq!([change.before.fct_ms.mean, change.after.fct_ms.mean], [all[0]; 2]);
        }
    }
}
