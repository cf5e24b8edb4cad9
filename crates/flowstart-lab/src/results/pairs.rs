//! Pairs of AQM and startup scheme that keep both the completion time and the peak of the queue low; beside people in
//! place of the peak what they meet, since a short queue may have been bought with their packets.

use flowstart_report::{Pair, PairedSetting, SecondCriterion};

use crate::results::cell_summary::CellSummary;
use crate::results::felt::felt;
use crate::study::plan::{AXES, Axis, Cell, Plan};

/// The pairs of every setting; empty unless there are several AQMs. `cells` are those of the plan, in
/// its order. A pair with a failed run has no comparable mean, and is omitted.
pub fn paired(plan: &Plan, cells: &[CellSummary]) -> Vec<PairedSetting> {
    let mut settings: Vec<PairedSetting> = Vec::new();
    if plan.aqms.len() < 2 {
        return settings;
    }
    let told_apart = [Axis::link(), Axis::aqm(), Axis::scheme()];
    let others: Vec<_> = AXES.iter().filter(|axis| !axis.is_carried && !told_apart.contains(axis)).collect();
    // The limit that times are drawn against is that of a completion.
    let is_completion = |cell: &Cell| felt(plan, cell).0 == "fct_ms";
    let comparable = plan.cells().into_iter().zip(cells);
    for (cell, summary) in comparable.filter(|(cell, summary)| summary.failed == 0 && is_completion(cell)) {
        let cell = &cell;
        let metric = |name: &str| summary.metrics.get(name).and_then(|metric| Some((metric.mean?, metric.ci95)));
        let Some((fct, queue)) = metric("fct_ms").zip(metric("max_queue_delay_ms")) else { continue };
        let mut setting = format!("{}, {}", summary.link, plan.carried(cell));
        for axis in others.iter().filter(|axis| axis.length(plan) > 1) {
            setting.push_str(&format!(", {} {}", axis.name(), axis.value(plan, cell).unwrap_or_default()));
        }
        let met = |name: &str| metric(name).filter(|_| summary.others.is_some());
        let people = [
            (SecondCriterion::CallNotShown, met("call_not_shown")),
            (SecondCriterion::WorstSecondMos, met("media_worst_1s_mos")),
        ];
        let (second, met) = people.into_iter().find_map(|(second, met)| Some((second, Some(met?)))).unwrap_or_default();
        let pair = Pair {
            aqm: summary.aqm.clone(),
            scheme: summary.scheme.clone(),
            fct_ms: fct.0,
            fct_ms_ci95: fct.1,
            ideal_fct_ms: summary.ideal_fct_ms,
            max_queue_delay_ms: queue.0,
            max_queue_delay_ms_ci95: queue.1,
            second,
            met: met.map(|(mean, _)| mean),
            met_ci95: met.and_then(|(_, interval)| interval),
            n: summary.n,
            is_unbeaten: false,
            indistinguishable: Vec::new(),
        };
        match settings.iter_mut().find(|known| known.setting == setting) {
            Some(known) => known.pairs.push(pair),
            None => settings.push(PairedSetting { setting, pairs: vec![pair] }),
        }
    }
    for setting in &mut settings {
        let unbeaten = |pair: &Pair| !setting.pairs.iter().any(|other| other.beats(pair));
        let like = |pair: &Pair| {
            let others = setting.pairs.iter().filter(|other| !std::ptr::eq(*other, pair) && pair.is_like(other));
            others.map(Pair::name).collect()
        };
        let verdicts: Vec<(bool, Vec<String>)> = setting
            .pairs
            .iter()
            .map(|pair| if unbeaten(pair) { (true, like(pair)) } else { (false, vec![]) })
            .collect();
        for (pair, (is_unbeaten, indistinguishable)) in setting.pairs.iter_mut().zip(verdicts) {
            (pair.is_unbeaten, pair.indistinguishable) = (is_unbeaten, indistinguishable);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_nobody_beats_name_those_that_are_like_them() {
        // A transfer that fits into the initial window is the same with every AQM and without.
        let text = "link = [\"lte\"]\nsize = [\"5KB\"]\nscheme = [\"slow-start\", \"hystart\"]\naqm = [\"taildrop\", \"codel\"]\nreps = 2";
        let plan = crate::study::scenario::Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let [setting] = &crate::results::summary::summarize(&plan, &rows).unbeaten_pairs[..] else {
            panic!("one setting")
        };
        assert_eq!(setting.pairs.len(), 4);
        let first = &setting.pairs[0];
        assert_eq!(first.n, 2);
        assert!(first.indistinguishable.len() == 3 && !first.indistinguishable.contains(&first.name()), "{first:?}");
    }

    #[test]
    fn beside_a_call_the_frames_decide() {
        let text = "link = [\"dsl-slow\"]\nsize = [\"2MB\"]\nscheme = [\"slow-start\"]\nreps = 2\n\
                    aqm = [\"taildrop\", \"cake\"]\ncompetitor = [\"call:rate=2.5mbit\", \"none\"]";
        let plan = crate::study::scenario::Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let summary = crate::results::summary::summarize(&plan, &rows);
        let settings = paired(&plan, &summary.cells);
        for setting in &settings {
            let is_beside_call = setting.setting.contains("call");
            let expected =
                if is_beside_call { SecondCriterion::CallNotShown } else { SecondCriterion::MaxQueueDelayMs };
            assert!(setting.pairs.iter().all(|pair| pair.second == expected && pair.met.is_some() == is_beside_call));
        }
        assert_eq!(settings.len(), 2);
    }

    #[test]
    fn one_aqm_alone_has_no_pairs() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 1";
        let plan = crate::study::scenario::Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let summary = crate::results::summary::summarize(&plan, &rows);
        assert_eq!(paired(&plan, &summary.cells), []);
    }
}
