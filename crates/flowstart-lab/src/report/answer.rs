//! The answer in sentences, which the program writes from the numbers.
//!
//! Everything follows from the verdicts of the comparisons: which value is offered, the verb, and the words beside it.

use flowstart_core::units::Bytes;
use flowstart_report::Verdict;
use flowstart_statistics::median;

use super::{has_web, rtt, web};
use crate::results::cell_summary::{CellSummary, Comparison};
use crate::results::comparison::WASTE;
use crate::results::summary::Summary;
use crate::spec::application::Felt;
use crate::study::plan::{Axis, Cell, Plan};

mod harm;
mod transports;
mod words;

use harm::{Harm, HarmIn, felt_by_people};
pub(super) use transports::transports;
use words::{MOST_NAMED, against, listed, listed_by_value, percent, ratio, settings};

/// The answer: a sentence about the best value of the compared axis; whether it depends on the transport; then notes
/// about the others, costs and counts.
pub fn answer(plan: &Plan, summary: &Summary) -> Vec<String> {
    let mut sentences = without_transports(plan, summary);
    let place = sentences.len().min(1);
    if let Some(sentence) = transports(plan, summary) {
        sentences.insert(place, sentence);
    }
    sentences
}

/// The answer without the sentence about transports.
pub(super) fn without_transports(plan: &Plan, summary: &Summary) -> Vec<String> {
    let mut sentences: Vec<String> = web::answer(summary).into_iter().chain(rtt::answer(plan, summary)).collect();
    if let Some(axis) = plan.compared() {
        sentences.extend(compared(plan, summary, axis));
    } else if let Some(cell) = summary.cells.first()
        && sentences.is_empty()
    {
        sentences.extend(alone(plan, cell));
    }
    let failed: usize = summary.cells.iter().map(|cell| cell.failed).sum();
    match failed {
        0 => {}
        1 => sentences.push("1 transfer did not finish and is counted as failed.".to_owned()),
        _ => sentences.push(format!("{failed} transfers did not finish and are counted as failed.")),
    }
    sentences
}

/// The completion time where nothing is compared.
fn alone(plan: &Plan, cell: &CellSummary) -> Option<String> {
    let fct = cell.metrics.get("fct_ms").and_then(|metric| metric.mean)?;
    let of_transfers = !feels(plan, Felt::Objects) && !feels(plan, Felt::Start) && !has_web(plan);
    of_transfers.then(|| {
        format!(
            "{} finishes {} on {} in {fct:.0} ms, {:.2} times the physical limit.",
            cell.scheme,
            carried(cell),
            cell.link,
            fct / cell.ideal_fct_ms
        )
    })
}

/// The sentences about the values of an axis.
fn compared(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Vec<String> {
    let mut standings: Vec<Standing<'_>> =
        (1..axis.length(plan)).filter_map(|place| Standing::of(plan, summary, axis, place)).collect();
    standings.sort_by(|a, b| b.middle.total_cmp(&a.middle));
    let Some(first) = standings.first() else { return Vec::new() };
    let baseline = first.baseline;
    let best = standings.iter().position(|standing| standing.verdict == Verdict::Faster);
    // Without noise nothing is sure, but the numbers are what was asked for.
    let best = best.or_else(|| {
        let is_sooner = |standing: &Standing<'_>| standing.verdict == Verdict::Deterministic && standing.middle > 1.0;
        standings.iter().position(is_sooner)
    });
    let mut sentences = Vec::new();
    match best {
        Some(best) => sentences.push(standings[best].sentence(plan)),
        None if standings.len() == 1 => sentences.push(first.sentence(plan)),
        None => {
            let wasteful = standings.iter().any(|standing| standing.verdict == Verdict::FasterByWaste);
            let what = carried_by_all(plan, summary).map_or(String::new(), |what| format!(" {what}"));
            let end = if wasteful { ", except by waste" } else { "" };
            let verb = verbs(plan)[0];
            sentences.push(format!(
                "None of the {} other {} {verb}{what} measurably sooner than {baseline}{end}.",
                standings.len(),
                axis.plural
            ));
        }
    }
    let others: Vec<&Standing<'_>> = standings
        .iter()
        .enumerate()
        .filter(|(place, _)| best.map_or(standings.len() > 1, |best| best != *place))
        .map(|(_, standing)| standing)
        .collect();
    let fastest = best.map(|best| standings[best].middle);
    let (named, rest) = others.split_at(others.len().min(MOST_NAMED));
    // Where many are left out, the wasteful ones are not: they look like the answer in tables.
    let wasteful = rest.iter().filter(|standing| standing.verdict == Verdict::FasterByWaste);
    sentences.extend(named.iter().chain(wasteful.take(MOST_NAMED)).map(|standing| standing.short(plan, fastest)));
    sentences.extend(costs(plan, summary, axis));
    sentences.extend(viewing(plan, summary, axis));
    // The sentence about one value says it of that one and of the baseline.
    if standings.len() > 1 {
        sentences.extend(felt_by_people(plan, summary, axis));
    }
    sentences.extend(counts(&standings, baseline));
    let simultaneous: Vec<&Comparison> = summary.cells.iter().filter_map(|cell| cell.vs_baseline.as_ref()).collect();
    match simultaneous.iter().filter(|versus| versus.speedup_ci.is_some()).count() {
        0 => {}
        1 => sentences.push(format!("Intervals are {}.", percent(simultaneous[0].level))),
        2 => {
            let level = percent(simultaneous[0].level);
            sentences.push(format!("Intervals are {level} and hold for both comparisons at once."));
        }
        several => {
            let level = percent(simultaneous[0].level);
            sentences.push(format!("Intervals are {level} and hold for all {several} comparisons at once."));
        }
    }
    sentences
}

/// How many comparisons ended in which verdict, if there are several.
fn counts(standings: &[Standing<'_>], baseline: &str) -> Option<String> {
    let verdicts: Vec<Verdict> = standings.iter().flat_map(Standing::verdicts).collect();
    let said = [
        (Verdict::Faster, "is faster", "are faster"),
        (Verdict::FasterByWaste, "is faster by waste", "are faster by waste"),
        (Verdict::Slower, "is slower", "are slower"),
        (Verdict::Unclear, "cannot be told apart", "cannot be told apart"),
        (Verdict::Same, "makes no difference", "make no difference"),
        (Verdict::Deterministic, "has one distinct run, so no interval", "have one distinct run, so no interval"),
    ];
    let parts: Vec<String> = said
        .into_iter()
        .filter_map(|(verdict, one, many)| match verdicts.iter().filter(|other| **other == verdict).count() {
            0 => None,
            1 => Some(format!("1 {one}")),
            2 if verdicts.len() == 2 => Some(format!("both {many}")),
            all if verdicts.len() == all => Some(format!("all {many}")),
            count => Some(format!("{count} {many}")),
        })
        .collect();
    (verdicts.len() > 1).then(|| format!("Of {} comparisons with {baseline}, {}.", verdicts.len(), listed(&parts)))
}

/// The packets lost and the bytes sent twice of every value of the axis, the baseline too.
fn costs(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<String> {
    let cells = plan.cells();
    let of = |place: usize, value: fn(&CellSummary) -> Option<f64>| {
        let own = cells.iter().filter(|cell| axis.place(**cell) == place);
        median(&own.filter_map(|cell| value(&summary.cells[cell.index])).collect::<Vec<_>>())
    };
    let cost = |place: usize| {
        let lost = of(place, |cell| cell.lost_share.mean)?;
        let twice = of(place, |cell| cell.metrics.get("inflation")?.mean)?;
        Some(format!("{} and {}", percent(lost), percent(twice)))
    };
    let in_median = if cells.len() > axis.length(plan) { ", in the median" } else { "" };
    Some(format!("Packets lost and bytes sent twice{in_median}: {}.", listed_by_value(plan, axis, cost)?))
}

/// What viewers of adaptive videos saw beside every value of the axis, the baseline too.
fn viewing(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<String> {
    let is_video = |cell: &Cell| plan.sizes[cell.size].value.objects().is_some_and(|one| one.video().is_some());
    let cells: Vec<Cell> = plan.cells().into_iter().filter(is_video).collect();
    let of = |place: usize, name: &str| {
        let own = cells.iter().filter(|cell| axis.place(**cell) == place);
        median(&own.filter_map(|cell| summary.cells[cell.index].metrics.get(name)?.mean).collect::<Vec<_>>())
    };
    let seen = |place: usize| {
        let (stalled, rate) = (of(place, "stalled_ms")? / 1000.0, of(place, "video_mbps")?);
        Some(format!("{stalled:.1} s and {rate:.2} Mbit/s"))
    };
    let in_median = if cells.len() > axis.length(plan) { ", in the median" } else { "" };
    Some(format!("Stalled time and rate of the video{in_median}: {}.", listed_by_value(plan, axis, seen)?))
}

/// The comparison of a value of an axis with the first one, over all settings.
struct Standing<'a> {
    name: &'a str,
    baseline: &'a str,
    axis: &'static Axis,
    cells: Vec<(&'a CellSummary, &'a Comparison)>,
    verdict: Verdict,
    /// The median, the smallest and the largest speed-up.
    middle: f64,
    range: [f64; 2],
    /// The median of the extra bytes, as a part of the payload.
    bytes: Option<f64>,
    /// The median of the bytes sent twice, as a part of the payload.
    twice: Option<f64>,
    harm: Option<Harm>,
}

impl<'a> Standing<'a> {
    fn of(plan: &'a Plan, summary: &'a Summary, axis: &'static Axis, place: usize) -> Option<Self> {
        let (mut cells, mut speedups, mut bytes, mut twice) = (vec![], vec![], vec![], vec![]);
        let mut compared = vec![];
        let own: Vec<Cell> = plan.cells().into_iter().filter(|cell| axis.place(*cell) == place).collect();
        for cell in &own {
            let (own, baseline) = (&summary.cells[cell.index], plan.baseline_of(cell)?);
            let Some((versus, speedup)) = own.vs_baseline.as_ref().and_then(|v| Some((v, v.speedup?))) else {
                continue;
            };
            cells.push((own, versus));
            speedups.push(speedup);
            bytes.extend(versus.inflation_delta);
            twice.extend(own.metrics.get("inflation").and_then(|metric| metric.mean));
            compared.push([own, &summary.cells[baseline.index]]);
        }
        let (middle, bytes) = (median(&speedups)?, median(&bytes));
        let mut standing = Self {
            name: axis.texts(plan)[place],
            baseline: axis.texts(plan)[0],
            axis,
            verdict: Verdict::Unclear,
            middle,
            range: [speedups.iter().copied().reduce(f64::min)?, speedups.iter().copied().reduce(f64::max)?],
            bytes,
            twice: median(&twice),
            harm: Harm::of(HarmIn::of(plan), compared.into_iter()),
            cells,
        };
        standing.verdict = standing.over_all();
        Some(standing)
    }

    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.cells.iter().filter_map(|(_, versus)| versus.verdict)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|other| *other == verdict).count()
    }

    /// The verdict over all settings: that of the median, if any setting has it.
    fn over_all(&self) -> Verdict {
        if let [only] = self.verdicts().collect::<Vec<_>>()[..] {
            return only;
        }
        let of_all = |verdict| self.count(verdict) == self.cells.len();
        if of_all(Verdict::Same) {
            return Verdict::Same;
        }
        if self.verdicts().all(|verdict| matches!(verdict, Verdict::Same | Verdict::Deterministic)) {
            return Verdict::Deterministic;
        }
        let (faster, wasteful) = (self.count(Verdict::Faster), self.count(Verdict::FasterByWaste));
        if self.middle > 1.0 && faster + wasteful > 0 {
            let is_waste = self.bytes.is_some_and(|bytes| bytes > WASTE) || wasteful > faster;
            if is_waste { Verdict::FasterByWaste } else { Verdict::Faster }
        } else if self.middle < 1.0 && self.count(Verdict::Slower) > 0 {
            Verdict::Slower
        } else {
            Verdict::Unclear
        }
    }

    /// The bytes sent twice, if they are the price of the speed.
    fn waste(&self) -> String {
        self.twice.map_or(String::new(), |twice| format!(", at {} sent twice", percent(twice)))
    }

    /// The interval of the only comparison, or the reason why there is none.
    fn interval(&self) -> Option<[f64; 2]> {
        match self.cells[..] {
            [(_, versus)] => versus.speedup_ci,
            _ => None,
        }
    }

    /// What is to be known of the numbers: over what they are taken, and why there is no interval.
    fn basis(&self, plan: &Plan) -> String {
        let deterministic = match (self.verdict, plan.reps) {
            (Verdict::Deterministic, 1) => " (one repetition: no interval)",
            (Verdict::Deterministic, _) => " (deterministic, one distinct run)",
            _ => "",
        };
        match self.cells.len() {
            1 => deterministic.to_owned(),
            _ => {
                let range = ratio(self.range);
                format!(" in the median over {} (speed-up {range}){deterministic}", settings(plan, self.axis))
            }
        }
    }

    /// The answer about this value.
    fn sentence(&self, plan: &Plan) -> String {
        let Self { name, baseline, .. } = self;
        let [verb, infinitive] = verbs(plan);
        let place = match self.cells[..] {
            [(cell, _)] if self.axis.name() == "link" => format!(" {}", carried(cell)),
            [(cell, _)] => format!(" {} on {}", carried(cell), cell.link),
            _ => String::new(),
        };
        let basis = self.basis(plan);
        let bytes = self.bytes.map_or(String::new(), |bytes| match bytes * 100.0 {
            percent if percent.abs() < 0.05 => ", for as many bytes".to_owned(),
            percent if percent > 0.0 => format!(", for {percent:.1} % more bytes"),
            percent => format!(", for {:.1} % fewer bytes", -percent),
        });
        let harm = self.harm.as_ref().map_or(String::new(), |harm| format!("; {}", harm.words(baseline)));
        match self.verdict {
            Verdict::Same => format!("{name} makes no difference{}: {}.", on(&place), self.same()),
            Verdict::Unclear => {
                let speedup = ratio([self.middle; 2]);
                let interval = self.interval().map_or(String::new(), |ends| format!(" ({})", ratio(ends)));
                format!(
                    "{name} does not {infinitive}{place} measurably sooner or later than {baseline}: {speedup} times as \
                     fast{interval}{basis}{bytes}{harm}."
                )
            }
            Verdict::FasterByWaste => {
                let against = against(self.middle, self.interval(), baseline);
                format!("{name} {verb}{place} {against}{basis}, but by waste{}{harm}.", self.waste())
            }
            Verdict::Faster | Verdict::Slower | Verdict::Deterministic if self.middle >= 1.0 => {
                format!("{name} {verb}{place} {}{basis}{bytes}{harm}.", against(self.middle, self.interval(), baseline))
            }
            Verdict::Faster | Verdict::Slower | Verdict::Deterministic => {
                let against = against(self.middle, self.interval(), baseline);
                format!("{name} takes {against} to {infinitive}{place}{basis}{bytes}{harm}.")
            }
        }
    }

    fn same(&self) -> String {
        format!("every repetition is the same as with {}", self.baseline)
    }

    /// A short sentence about this value. `fastest` is the speed-up of the one that is offered.
    fn short(&self, plan: &Plan, fastest: Option<f64>) -> String {
        let Self { name, .. } = self;
        let in_median = if self.cells.len() > 1 { " in the median" } else { "" };
        let interval = self.interval().map_or(String::new(), |ends| format!(" ({})", ratio(ends)));
        match self.verdict {
            Verdict::Same => format!("{name} makes no difference: {}.", self.same()),
            Verdict::Unclear => {
                let speedup = ratio([self.middle; 2]);
                format!(
                    "{name} cannot be told apart from {}: {speedup} times as fast{interval}{in_median}.",
                    self.baseline
                )
            }
            Verdict::FasterByWaste => {
                let still = if fastest.is_some_and(|fastest| self.middle > fastest) { " still" } else { "" };
                let speedup = ratio([self.middle; 2]);
                format!("{name} is faster{still}, {speedup} times{interval}{in_median}{}.", self.waste())
            }
            Verdict::Faster | Verdict::Slower | Verdict::Deterministic => {
                let verb = if self.middle >= 1.0 { verbs(plan)[0] } else { "takes" };
                format!("{name} {verb} {}{in_median}.", against(self.middle, self.interval(), self.baseline))
            }
        }
    }
}

/// The place of an effect, as in `to a 2MB transfer`.
fn on(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" to{place}") }
}

/// What flows do with their traffic: the third person and the infinitive.
fn verbs(plan: &Plan) -> [&'static str; 2] {
    if feels(plan, Felt::Start) {
        ["starts", "start"]
    } else if feels(plan, Felt::Objects) {
        ["delivers", "deliver"]
    } else {
        ["finishes", "finish"]
    }
}

/// Whether any flows are felt by this time.
fn feels(plan: &Plan, felt: Felt) -> bool {
    plan.sizes.iter().filter_map(|size| size.value.objects()).any(|application| application.felt() == felt)
}

/// The traffic of a cell's flows, in words.
fn carried(cell: &CellSummary) -> String {
    match &cell.application {
        None => format!("a {} transfer", Bytes::new(cell.size_bytes)),
        Some(application) => application.clone(),
    }
}

/// The traffic of all cells' flows, if it is the same.
fn carried_by_all(plan: &Plan, summary: &Summary) -> Option<String> {
    (plan.sizes.len() == 1).then(|| summary.cells.first().map(carried)).flatten()
}

#[cfg(test)]
mod tests;
