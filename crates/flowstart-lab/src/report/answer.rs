//! The answer in sentences, which the program writes from the numbers.
//!
//! Everything follows from the verdicts of the comparisons: which value is offered, the verb, and the words beside it.

use flowstart_core::units::Bytes;
use flowstart_report::{Certainty, Kind, Pair, SecondCriterion, Verdict};
use flowstart_statistics::median;

use super::cell::has_web;
use super::{rtt, web};
use crate::results::cell_summary::CellSummary;
use crate::results::felt::felt;
use crate::results::harm::HarmIn;
use crate::results::summary::Summary;
use crate::spec::Written;
use crate::spec::application::Felt;
use crate::spec::aqm::Aqm;
use crate::spec::link::Link;
use crate::study::plan::{AXES, Axis, Cell, Plan};

mod agreement;
mod by_setting;
mod certainty;
mod harm;
mod known;
mod standing;
mod words;

pub use agreement::agreements;
use by_setting::{BestBySetting, MOST_EQUAL};
use certainty::{few_repetitions, intervals, untypical_means};
use harm::{best_for_people, felt_by_people};
use known::known;
use standing::Standing;
use words::{MOST_NAMED, NOBODY, at, listed, listed_by_value, middle_of, percent_range, plural};

/// Speed-ups that differ by less than this factor are as good as each other.
const EQUAL: f64 = 1.01;
/// The parameter of AQMs that are a buffer themselves, as Linux calls it.
const MEMORY: &str = "memlimit";

/// Most cells that answers tell one by one where nothing is compared.
const MOST_ALONE: usize = 4;

/// The answer: a sentence about the best value of the compared axis; whether it depends on the world and on the
/// transport; then notes about the others, costs and counts.
pub fn answer(plan: &Plan, summary: &Summary) -> Vec<String> {
    let mut sentences = without_agreement(plan, summary);
    let place = sentences.len().min(1);
    sentences.splice(place..place, agreements(plan, summary));
    sentences
}

/// The answer without the sentences about worlds and transports. A mean over worlds would be of neither: unless they
/// are what is compared, it is that of the first one.
pub(super) fn without_agreement(plan: &Plan, summary: &Summary) -> Vec<String> {
    let is_of_worlds = plan.compared() == Some(Axis::world());
    let mut sentences = match &plan.worlds[..] {
        [first, _, ..] if !is_of_worlds => {
            let (plan, summary) = in_first_world(plan, summary);
            let mut sentences = of_world(&plan, &summary);
            if let Some(headline) = sentences.first_mut() {
                headline.insert_str(0, &format!("{}: ", first.place()));
            }
            sentences
        }
        _ => of_world(plan, summary),
    };
    let failed: usize = summary.cells.iter().map(|cell| cell.failed).sum();
    match failed {
        0 => {}
        1 => sentences.push("1 transfer did not finish and is counted as failed.".to_owned()),
        _ => sentences.push(format!("{failed} transfers did not finish and are counted as failed.")),
    }
    sentences.extend(plan.compared().filter(|_| failed > 1).and_then(|axis| failures(plan, summary, axis)));
    sentences
}

/// How many transfers failed with every value of an axis.
fn failures(plan: &Plan, summary: &Summary, axis: &Axis) -> Option<String> {
    let of = |place: usize| {
        let own = plan.cells().into_iter().filter(|cell| axis.place(*cell) == place);
        let [failed, all] = own
            .map(|cell| &summary.cells[cell.index])
            .fold([0, 0], |[failed, all], cell| [failed + cell.failed, all + cell.failed + cell.n]);
        Some(format!("{failed} of {all}"))
    };
    Some(format!("Failed: {}.", listed_by_value(plan, axis, of)?))
}

/// The part of an experiment that ran in its first world.
fn in_first_world(plan: &Plan, summary: &Summary) -> (Plan, Summary) {
    let cells = plan.cells().into_iter().filter(|cell| cell.world == 0);
    let cells = cells.map(|cell| summary.cells[cell.index].clone()).collect();
    let first = Plan { worlds: plan.worlds[..1].to_vec(), ..plan.clone() };
    (first, Summary { cells, ..summary.clone() })
}

/// The answer of one world, or about several.
fn of_world(plan: &Plan, summary: &Summary) -> Vec<String> {
    let mut sentences: Vec<String> = web::answer(summary).into_iter().chain(rtt::answer(plan, summary)).collect();
    if let Some(axis) = plan.compared() {
        sentences.extend(compared(plan, summary, axis));
    } else if sentences.is_empty() {
        let cells = plan.cells();
        sentences
            .extend(cells.iter().take(MOST_ALONE).filter_map(|cell| alone(plan, *cell, &summary.cells[cell.index])));
        if cells.len() > MOST_ALONE {
            sentences.push(format!("The table has the other {} cells.", cells.len() - MOST_ALONE));
        }
    }
    sentences
}

/// The time that users notice in a cell where nothing is compared.
fn alone(plan: &Plan, of_plan: Cell, cell: &CellSummary) -> Option<String> {
    let mean = |name: &str| cell.metrics.get(name).and_then(|metric| metric.mean);
    // The sentence says which link and size it is about; what else differs between cells stands behind them.
    let told = [Axis::scheme(), Axis::link(), Axis::size()];
    let others = AXES.iter().filter(|axis| axis.length(plan) > 1 && !told.contains(axis));
    let others: String = others.map(|axis| format!(" {}", at(axis, axis.texts(plan)[axis.place(of_plan)]))).collect();
    let (scheme, link, what) = (&cell.scheme, format!("{}{others}", cell.link), carried(cell));
    let time = mean(felt(plan, &of_plan).0)?;
    let felt = plan.sizes[of_plan.size].value.objects().map(|application| application.felt());
    Some(match felt {
        _ if has_web(plan) => {
            format!("{scheme} completes a connection of {what} on {link} in {time:.0} ms in the mean.")
        }
        None | Some(Felt::Completion) => {
            let factor = time / cell.ideal_fct_ms;
            format!("{scheme} finishes {what} on {link} in {time:.0} ms, {factor:.2} times the physical limit.")
        }
        Some(Felt::Objects) => {
            let worst = mean("worst_object_fct_ms").map_or(String::new(), |worst| format!(", the worst {worst:.0} ms"));
            format!("{scheme} delivers {what} on {link}: an object takes {time:.0} ms in the mean{worst}.")
        }
        Some(Felt::Start) => {
            let stalls = mean("stalled_ms").map_or(String::new(), |stalled| match stalled {
                none if none < 0.5 => " and never stalls".to_owned(),
                some => format!(" and stalls for {some:.0} ms"),
            });
            let rate = mean("video_mbps").map_or(String::new(), |rate| format!(", at {rate:.2} Mbit/s"));
            format!("{scheme} shows the first picture of {what} on {link} after {time:.0} ms{stalls}{rate}.")
        }
    })
}

/// The sentences about the values of an axis.
fn compared(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Vec<String> {
    let standings = Standing::of_axis(plan, summary, axis);
    let Some(first) = standings.first() else { return nothing_to_compare(plan, summary, axis).into_iter().collect() };
    let baseline = first.baseline;
    let best = best(&standings);
    let mut by_setting = BestBySetting::of(plan, summary, axis);
    let mut sentences = Vec::new();
    // What is good over all settings need not be the best in any.
    let is_answer = |by: &mut BestBySetting| match best {
        Some(best) => !by.always.iter().any(|name| name == standings[best].name),
        None => by.is_anywhere,
    };
    if let Some(BestBySetting { what, text, .. }) = by_setting.take_if(is_answer) {
        sentences.push(format!("The best {} by {what}: {text}.", plural(plan, axis)));
    }
    match best {
        Some(best) => sentences.extend(standings[best].sentences(plan)),
        None if standings.len() == 1 => sentences.extend(first.sentences(plan)),
        None if sentences.is_empty() => {
            let wasteful = standings.iter().any(|standing| standing.verdict.kind == Kind::FasterByWaste);
            let what = carried_by_all(plan, summary).map_or(String::new(), |what| format!(" {what}"));
            let throughout = if standings.iter().any(Standing::is_partly) { " throughout" } else { "" };
            let is_fast_and_fails = |one: &Standing<'_>| one.verdict.kind == Kind::Faster && one.fails_more();
            let end = match (wasteful, standings.iter().any(is_fast_and_fails)) {
                (true, false) => ", except by waste",
                (false, true) => ", except where more transfers fail",
                (true, true) => ", except by waste or where more transfers fail",
                (false, false) => "",
            };
            let verb = verbs(plan)[0];
            sentences.push(format!(
                "None of the {} other {} {verb}{what} measurably sooner than {baseline}{throughout}{end}.",
                standings.len(),
                plural(plan, axis)
            ));
        }
        None => {}
    }
    // Who is offered an AQM or a scheme beside people must read what they meet, whatever the best time is.
    let is_choice = axis == Axis::aqm() || plan.aqms.len() < 2;
    let says_all = standings.len() == 1 && is_choice && HarmIn::of(plan).is_felt();
    if let Some(clause) = best_for_people(plan, summary, axis).filter(|_| !says_all)
        && let Some(headline) = sentences.first_mut()
    {
        headline.truncate(headline.trim_end_matches('.').len());
        headline.push_str(&format!("; {clause}."));
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
    let wasteful = rest.iter().filter(|standing| standing.verdict.kind == Kind::FasterByWaste);
    sentences.extend(named.iter().chain(wasteful.take(MOST_NAMED)).map(|standing| standing.short(plan, fastest)));
    sentences
        .extend(by_setting.map(|best| format!("The best {} by {}: {}.", plural(plan, axis), best.what, best.text)));
    sentences.extend(unbeaten(plan, summary));
    sentences.extend(costs(plan, summary, axis));
    sentences.extend(viewing(plan, summary, axis));
    // The sentence about one value says it of that one and of the baseline.
    if standings.len() > 1 {
        sentences.extend(felt_by_people(plan, summary, axis));
    }
    // Comparisons that have a sentence of their own each are not counted again.
    let are_told = standings.iter().map(|one| one.verdicts().count()).sum::<usize>() <= standings.len().min(MOST_NAMED);
    sentences.extend(counts(&standings, baseline).filter(|_| !are_told));
    sentences.extend(beside(plan, summary, axis));
    sentences.extend(intervals(summary));
    sentences.extend(few_repetitions(summary));
    sentences.extend(untypical_means(plan, summary, axis));
    sentences.extend(own_memories(plan));
    sentences.extend(narrow_windows(plan));
    sentences.extend(nobody_else(plan));
    sentences.extend(known(plan));
    sentences
}

/// What there is to say where no comparison has repetitions that completed on both sides: which values completed.
fn nothing_to_compare(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<String> {
    let completed = |place: usize| {
        let cells = plan.cells().into_iter().filter(|cell| axis.place(*cell) == place);
        cells.map(|cell| summary.cells[cell.index].n).sum::<usize>()
    };
    let counts = (0..axis.length(plan)).map(completed).collect::<Vec<_>>();
    let parts = axis.texts(plan).into_iter().zip(&counts).map(|(text, count)| format!("{text} {count}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    (counts.iter().sum::<usize>() > 0).then(|| format!("Nothing can be compared; repetitions that completed: {parts}."))
}

/// The place of the value that is offered: of those that are as good as the fastest the one that sends the least, and
/// none with which more transfers fail. Without noise nothing is sure, but the numbers are what was asked for.
fn best(standings: &[Standing<'_>]) -> Option<usize> {
    let of = |certainty| {
        let wanted = Verdict { kind: Kind::Faster, certainty };
        let offered = |standing: &Standing<'_>| standing.verdict == wanted && !standing.fails_more();
        let fastest = standings.iter().find(|standing| offered(standing))?.middle;
        let as_good = standings.iter().enumerate();
        let as_good = as_good.filter(|(_, standing)| offered(standing) && standing.middle * EQUAL >= fastest);
        as_good.min_by(|(_, a), (_, b)| a.sent().total_cmp(&b.sent())).map(|(place, _)| place)
    };
    of(Certainty::Interval).or_else(|| of(Certainty::OneRun))
}

/// What the other axes do whose values are compared, too, each beside the first value of `axis`.
fn beside(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Vec<String> {
    let held = axis.texts(plan)[0];
    let mut sentences = Vec::new();
    for other in AXES.iter().filter(|other| *other != axis && other.length(plan) > 1) {
        let standings = Standing::of_axis(plan, summary, other);
        let Some(Standing { baseline, .. }) = standings.first() else { continue };
        let said = match best(&standings) {
            Some(best) => standings[best].short(plan, None),
            None if standings.len() == 1 => standings[0].short(plan, None),
            None => {
                let (count, plural, verb) = (standings.len(), plural(plan, other), verbs(plan)[0]);
                format!("none of the {count} other {plural} {verb} measurably sooner than {baseline} throughout.")
            }
        };
        sentences.push(format!("With {held}, {said}"));
        sentences.extend(felt_by_people(plan, summary, other));
        sentences.extend(counts(&standings, baseline));
    }
    sentences
}

/// The pairs of AQM and scheme that nobody beats, where they are few: the best of each alone need not be among them.
fn unbeaten(plan: &Plan, summary: &Summary) -> Option<String> {
    let [setting] = &summary.unbeaten_pairs[..] else { return None };
    let second = match setting.pairs.first()?.second {
        SecondCriterion::MaxQueueDelayMs => "peak queue delay",
        SecondCriterion::CallNotShown => "frames of the call not shown",
        SecondCriterion::WorstSecondMos => "the worst second of the conversation",
    };
    let names: Vec<String> = setting.pairs.iter().map(Pair::name).collect();
    (plan.schemes.len() > 1 && names.len() <= MOST_EQUAL)
        .then(|| format!("No pair of AQM and scheme is better in time and {second} than {}.", listed(&names)))
}

/// The AQMs that the link's buffer does not bound, beside others that it does.
fn own_memories(plan: &Plan) -> Option<String> {
    let has_own = |aqm: &&Written<Aqm>| {
        let name = aqm.text.split(':').next().unwrap_or_default();
        Aqm::parse("aqm", &format!("{name}:{MEMORY}=1MB")).is_ok()
    };
    let own: Vec<String> = plan.aqms.iter().filter(has_own).map(|aqm| aqm.text.clone()).collect();
    (!own.is_empty() && own.len() < plan.aqms.len()).then(|| {
        let (has, which) = if own.len() > 1 { ("have", "their") } else { ("has", "its") };
        format!("{} {has} a memory in place of the link's buffer, which is {which} `{MEMORY}`.", listed(&own))
    })
}

/// Where the receiver's window is less than what the path holds: a start may then never meet the queue's end.
fn narrow_windows(plan: &Plan) -> Option<String> {
    let largest = plan.sizes.iter().map(|size| size.value.mean_bytes()).max()?;
    let narrow = plan.transports.iter().find_map(|transport| {
        let window = transport.profile.receive_window;
        let is_narrow = |link: &&Link| link.holds().is_some_and(|held| window < held) && window < largest;
        let sized = transport.profile.receive_buffer.is_none();
        Some((transport, window, plan.links.iter().filter(|_| sized).find(is_narrow)?))
    });
    let (transport, window, link) = narrow?;
    Some(format!(
        "The receiver's window of {window} is less than {} holds without loss ({}), so flow control may stop a start \
         before its scheme does: `receive_window` of {} sets it.",
        link.text,
        link.holds()?,
        transport.text
    ))
}

/// Whether results are those of flows that nobody else meets.
fn nobody_else(plan: &Plan) -> Option<String> {
    let is_one = plan.arrivals.iter().all(|arrival| arrival.value.flows.unwrap_or(plan.flows) == 1);
    // Web sessions are each other's.
    (is_one && Axis::competitor().texts(plan) == [NOBODY] && !has_web(plan))
        .then(|| "Nobody else used the link: beside a competitor a start can do better or worse.".to_owned())
}

/// How many comparisons ended in which verdict, if there are several.
fn counts(standings: &[Standing<'_>], baseline: &str) -> Option<String> {
    let verdicts: Vec<Verdict> = standings.iter().flat_map(Standing::verdicts).collect();
    counted(&verdicts, baseline)
}

fn counted(verdicts: &[Verdict], baseline: &str) -> Option<String> {
    // The places are those of what is said. Waste is said of one run, too.
    let place = |verdict: Verdict| match verdict.kind {
        Kind::FasterByWaste => 1,
        _ if verdict.is_deterministic() => 6,
        Kind::Faster => 0,
        Kind::Slower => 2,
        Kind::Negligible => 3,
        Kind::Unclear => 4,
        Kind::Same => 5,
    };
    let said = [
        ("is faster", "are faster"),
        ("is faster by waste", "are faster by waste"),
        ("is slower", "are slower"),
        ("differs by 1 % at most", "differ by 1 % at most"),
        ("cannot be told apart", "cannot be told apart"),
        ("makes no difference", "make no difference"),
        ("has one distinct run, so no interval", "have one distinct run, so no interval"),
    ];
    let parts: Vec<String> = said
        .into_iter()
        .enumerate()
        .filter_map(|(k, (one, many))| match verdicts.iter().filter(|verdict| place(**verdict) == k).count() {
            0 => None,
            1 => Some(format!("1 {one}")),
            2 if verdicts.len() == 2 => Some(format!("both {many}")),
            all if verdicts.len() == all => Some(format!("all {many}")),
            count => Some(format!("{count} {many}")),
        })
        .collect();
    (verdicts.len() > 1).then(|| format!("Of {} comparisons with {baseline}, {}.", verdicts.len(), listed(&parts)))
}

/// The packets lost and the bytes sent twice of every value of the axis, the baseline too: from the setting with the
/// least to the one with the most, because settings of different sizes have no cost in common.
fn costs(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<String> {
    let cells = plan.cells();
    let of = |place: usize, value: fn(&CellSummary) -> Option<f64>| {
        let own = cells.iter().filter(|cell| axis.place(**cell) == place);
        percent_range(&own.filter_map(|cell| value(&summary.cells[cell.index])).collect::<Vec<_>>())
    };
    let cost = |place: usize| {
        let lost = of(place, |cell| cell.lost_share.mean)?;
        let twice = of(place, |cell| cell.metrics.get("inflation")?.mean)?;
        Some(format!("{lost} and {twice}"))
    };
    Some(format!("Packets lost and bytes sent twice: {}.", listed_by_value(plan, axis, cost)?))
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
    let each = cells.len() / axis.length(plan).max(1);
    let in_middle = if each > 1 { format!(", in the {}", middle_of(each)) } else { String::new() };
    Some(format!("Stalled time and rate of the video{in_middle}: {}.", listed_by_value(plan, axis, seen)?))
}

/// What flows do with their traffic: the third person and the infinitive.
fn verbs(plan: &Plan) -> [&'static str; 2] {
    let mut felt = plan.sizes.iter().map(|size| size.value.objects().map(|application| application.felt()));
    let first = felt.next().flatten().filter(|first| felt.all(|other| other == Some(*first)));
    match first {
        Some(Felt::Start) => ["starts", "start"],
        Some(Felt::Objects) => ["delivers", "deliver"],
        _ => ["finishes", "finish"],
    }
}

/// The traffic of a cell's flows, in words.
fn carried(cell: &CellSummary) -> String {
    match (&cell.application, cell.resolved["size_bytes"].as_str()) {
        (Some(application), _) => application.clone(),
        (None, Some(distribution)) => format!("a transfer of random size ({distribution})"),
        (None, None) => format!("a {} transfer", Bytes::new(cell.size_bytes)),
    }
}

/// The traffic of all cells' flows, if it is the same.
fn carried_by_all(plan: &Plan, summary: &Summary) -> Option<String> {
    (plan.sizes.len() == 1).then(|| summary.cells.first().map(carried)).flatten()
}

#[cfg(test)]
mod tests;
