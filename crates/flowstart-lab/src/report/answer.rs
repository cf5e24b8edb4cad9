//! The answer in sentences, which the program writes from the numbers.

use flowstart_core::units::Bytes;

use super::{has_web, rtt, web};
use crate::results::cell_summary::{CellSummary, Comparison};
use crate::results::summary::Summary;
use crate::study::plan::{AXES, Plan};
use flowstart_statistics::median;

/// Inflation beyond which a scheme is not offered as the answer.
const MODEST_INFLATION: f64 = 0.15;

/// The answer: the results of the best scheme over all settings, then those of all comparisons.
pub fn answer(plan: &Plan, summary: &Summary) -> Vec<String> {
    let failed: usize = summary.cells.iter().map(|cell| cell.failed).sum();
    let mut sentences: Vec<String> = web::answer(summary).into_iter().chain(rtt::answer(plan, summary)).collect();
    let mut standings: Vec<Standing<'_>> =
        (1..plan.schemes.len()).filter_map(|scheme| Standing::of(plan, summary, scheme)).collect();
    standings.sort_by(|a, b| b.middle.total_cmp(&a.middle));
    // A scheme that sends far more bytes is offered only if nothing else was tried.
    let best = standings.iter().position(|standing| standing.bytes.is_none_or(|bytes| bytes <= MODEST_INFLATION));
    if let Some(standing) = standings.get(best.unwrap_or(0)) {
        sentences.push(standing.sentence(plan));
        if best.is_some_and(|best| best > 0) {
            let (first, bytes) = (&standings[0], standings[0].bytes.unwrap_or(0.0));
            sentences.push(format!(
                "{} is faster still, {:.2} times{}, but sends {:.0} % more bytes.",
                first.scheme,
                first.middle,
                if first.cells.len() > 1 { " in the median" } else { "" },
                bytes * 100.0
            ));
        }
        let compared: Vec<&Comparison> =
            standings.iter().flat_map(|s| s.cells.iter().map(|(_, versus)| *versus)).collect();
        let sure: Vec<_> = compared.iter().filter(|versus| versus.significant).collect();
        let faster = sure.iter().filter(|versus| versus.speedup.is_some_and(|speedup| speedup > 1.0)).count();
        if compared.len() > 1 {
            sentences.push(format!(
                "Of {} comparisons with {}, {faster} are faster, {} slower, and {} cannot be told apart.",
                compared.len(),
                plan.schemes[0].text,
                sure.len() - faster,
                compared.len() - sure.len()
            ));
        }
    } else if let Some(cell) = summary.cells.first()
        && let Some(fct) = cell.metrics.get("fct_ms").and_then(|metric| metric.mean)
        && !feels_objects(plan)
        && !has_web(plan)
        && sentences.is_empty()
    {
        let ratio = fct / cell.ideal_fct_ms;
        sentences.push(format!(
            "{} finishes {} on {} in {fct:.0} ms, {ratio:.2} times the physical limit.",
            cell.scheme,
            carried(cell),
            cell.link
        ));
    }
    if failed > 0 {
        sentences.push(format!("{failed} transfers did not finish and are counted as failed."));
    }
    sentences
}

/// The comparison of a scheme with the first one, over all settings.
struct Standing<'a> {
    scheme: &'a str,
    cells: Vec<(&'a CellSummary, &'a Comparison)>,
    /// The median, the smallest and the largest speed-up.
    middle: f64,
    range: [f64; 2],
    /// The median of the extra bytes, as a part of the payload.
    bytes: Option<f64>,
    /// Median harm to others by this scheme and by the first one.
    harm: Option<[f64; 2]>,
    /// Its measure.
    harm_in: HarmIn,
}

/// The measure of harm to others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HarmIn {
    /// Decrease of their delivered Mbit.
    Goodput,
    /// Additional milliseconds of their transfers.
    Time,
    /// The score of the worst second of interactive media, which loses almost no bytes.
    Score,
}

impl HarmIn {
    fn of(plan: &Plan) -> Self {
        if plan.competitors.iter().any(|competitor| competitor.value.has_transfers()) {
            Self::Time
        } else if plan.competitors.iter().all(|competitor| competitor.value.media().is_some()) {
            Self::Score
        } else {
            Self::Goodput
        }
    }

    fn mean(self, cell: &CellSummary) -> Option<f64> {
        let others = cell.others.as_ref()?;
        match self {
            Self::Goodput => others.goodput_lost_mbit.mean,
            Self::Time => others.extra_fct_ms.as_ref()?.mean,
            Self::Score => cell.metrics.get("media_worst_1s_mos")?.mean,
        }
    }
}

impl<'a> Standing<'a> {
    fn of(plan: &'a Plan, summary: &'a Summary, scheme: usize) -> Option<Self> {
        let harm_in = HarmIn::of(plan);
        let (mut cells, mut speedups, mut bytes, mut harm, mut base_harm) = (vec![], vec![], vec![], vec![], vec![]);
        for cell in plan.cells().iter().filter(|cell| cell.scheme == scheme) {
            let own = &summary.cells[cell.index];
            let Some((versus, speedup)) = own.vs_baseline.as_ref().and_then(|v| Some((v, v.speedup?))) else {
                continue;
            };
            cells.push((own, versus));
            speedups.push(speedup);
            bytes.extend(versus.inflation_delta);
            if let Some((own, base)) = harm_in.mean(own).zip(harm_in.mean(&summary.cells[plan.baseline_of(cell).index]))
            {
                harm.push(own);
                base_harm.push(base);
            }
        }
        Some(Self {
            scheme: &plan.schemes[scheme].text,
            middle: median(&speedups)?,
            range: [speedups.iter().copied().reduce(f64::min)?, speedups.iter().copied().reduce(f64::max)?],
            bytes: median(&bytes),
            harm_in,
            harm: median(&harm).zip(median(&base_harm)).map(|(own, base)| [own, base]),
            cells,
        })
    }

    fn sentence(&self, plan: &Plan) -> String {
        let baseline = &plan.schemes[0].text;
        let [verb, infinitive] = if feels_objects(plan) { ["delivers", "deliver"] } else { ["finishes", "finish"] };
        let bytes = self.bytes.map_or(String::new(), |bytes| match bytes * 100.0 {
            percent if percent.abs() < 0.05 => ", for as many bytes".to_owned(),
            percent if percent > 0.0 => format!(", for {percent:.1} % more bytes"),
            percent => format!(", for {:.1} % fewer bytes", -percent),
        });
        let harm = self.harm.map_or(String::new(), |[own, base]| match self.harm_in {
            HarmIn::Time => {
                format!("; the other transfers take {own:.0} ms longer beside it and {base:.0} ms beside {baseline}")
            }
            HarmIn::Score => {
                format!("; the conversation's worst second scores {own:.2} beside it and {base:.2} beside {baseline}")
            }
            HarmIn::Goodput => {
                format!("; the other traffic loses {own:.1} Mbit to it and {base:.1} Mbit to {baseline}")
            }
        });
        match self.cells[..] {
            [(cell, versus)] => {
                let size = carried(cell);
                if !versus.significant {
                    let (scheme, link) = (self.scheme, &cell.link);
                    let interval = versus
                        .speedup_ci95
                        .map_or(String::new(), |[low, high]| format!(" (95 % {low:.2} to {high:.2})"));
                    return format!(
                        "{scheme} does not {infinitive} {size} on {link} measurably sooner or later than {baseline}: \
                         {:.2} times as fast{interval}{bytes}{harm}.",
                        self.middle
                    );
                }
                let interval = versus.speedup_ci95.map_or(String::new(), |ends| {
                    let [low, high] = as_said(self.middle, ends);
                    format!(" (95 % {low:.2} to {high:.2})")
                });
                format!(
                    "{} {verb} {size} {} on {}{interval}{bytes}{harm}.",
                    self.scheme,
                    against(self.middle, baseline),
                    cell.link
                )
            }
            _ => {
                let [low, high] = as_said(self.middle, self.range);
                format!(
                    "{} {verb} {} in the median over {} (range {low:.2} to {high:.2}){bytes}{harm}.",
                    self.scheme,
                    against(self.middle, baseline),
                    settings(plan)
                )
            }
        }
    }
}

/// Whether the completion times are those of chunks.
fn feels_objects(plan: &Plan) -> bool {
    plan.sizes.iter().filter_map(|size| size.value.objects()).any(|application| application.feels_objects())
}

/// The traffic of a cell's flows, in words.
fn carried(cell: &CellSummary) -> String {
    match &cell.application {
        None => format!("a {} transfer", Bytes::new(cell.size_bytes)),
        Some(application) => application.clone(),
    }
}

/// A speed-up over `baseline` in words.
fn against(speedup: f64, baseline: &str) -> String {
    let later = 1.0 / speedup;
    match speedup.max(later) {
        factor if factor < 1.005 => format!("as soon as {baseline}"),
        factor if speedup > 1.0 => format!("{factor:.2} times sooner than {baseline}"),
        factor => format!("{factor:.2} times later than {baseline}"),
    }
}

/// The ends of a speed-up's interval in the terms of [`against`]: of how many times later, where it says later.
fn as_said(speedup: f64, [low, high]: [f64; 2]) -> [f64; 2] {
    if speedup < 1.0 { [1.0 / high, 1.0 / low] } else { [low, high] }
}

/// The range of the comparisons: `4 links and 3 sizes`.
fn settings(plan: &Plan) -> String {
    let varied = AXES.iter().filter(|axis| axis.name() != "scheme" && axis.length(plan) > 1);
    let named: Vec<String> = varied.map(|axis| format!("{} {}", axis.length(plan), axis.plural)).collect();
    match named.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "all settings".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use crate::results::summary::summarize;
    use crate::study::scenario::Scenario;
    use std::path::Path;

    fn answer_to(link: &[&str], size: &[&str], scheme: &[&str], competitor: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let scenario = Scenario {
            link: words(link),
            size: words(size),
            scheme: words(scheme),
            aqm: words(&["taildrop"]),
            competitor: words(&[competitor]),
            transport: "model-quic".into(),
            flows: 1,
            reps: 2,
            seed: 1,
            hint: true,
            ..Scenario::default()
        };
        let plan = scenario.plan(Path::new(".")).unwrap();
        let rows = experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        answer(&plan, &summarize(&plan, &rows))
    }

    #[test]
    fn many_cells_are_answered_by_their_median() {
        let answer = answer_to(&["dsl-fast", "lte"], &["70KB", "2MB"], &["slow-start", "blitzstart"], "none");
        let first = &answer[0];
        assert!(first.starts_with("blitzstart finishes ") && first.contains(" than slow-start "), "{first}");
        assert!(first.contains(" in the median over 2 links and 2 sizes (range "), "{first}");
        assert!(!first.contains("other traffic") && first.ends_with('.'), "{first}");
        assert!(answer[1].starts_with("Of 4 comparisons with slow-start, "), "{answer:?}");
    }

    #[test]
    fn a_speed_up_of_one_is_neither_sooner_nor_later() {
        assert_eq!(against(1.004, "b"), "as soon as b");
        assert_eq!(against(0.996, "b"), "as soon as b");
        assert_eq!(against(1.006, "b"), "1.01 times sooner than b");
        assert_eq!(against(0.5, "b"), "2.00 times later than b");
        assert_eq!((as_said(0.5, [0.4, 0.625]), as_said(2.0, [1.5, 2.5])), ([1.6, 2.5], [1.5, 2.5]));
    }

    #[test]
    fn what_is_later_is_told_with_the_interval_of_that() {
        let answer = answer_to(&["dsl-fast"], &["70KB"], &["blitzstart", "slow-start"], "none");
        let numbers =
            |text: &str| text.split(['(', ')', ' ']).filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
        let [times, _, low, high, ..] = numbers(&answer[0])[..] else { panic!("{answer:?}") };
        assert!(answer[0].contains(" times later ") && 1.0 < low && low <= times && times <= high, "{answer:?}");
    }

    #[test]
    fn harm_to_a_conversation_is_a_score() {
        let answer = answer_to(&["hspa"], &["90KB"], &["slow-start", "jump-start"], "media");
        assert!(answer[0].contains("; the conversation's worst second scores "), "{answer:?}");
        assert!(!answer[0].contains("Mbit"), "{answer:?}");
    }

    #[test]
    fn one_cell_is_answered_by_itself() {
        let answer = answer_to(&["dsl-fast"], &["2MB"], &["slow-start", "hystart"], "cubic");
        assert_eq!(answer.len(), 1, "{answer:?}");
        assert!(answer[0].contains("2MB transfer") && answer[0].contains("dsl-fast"), "{answer:?}");
        assert!(answer[0].contains("; the other traffic loses "), "{answer:?}");
    }
}
