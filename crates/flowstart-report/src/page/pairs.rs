//! The section on pairs of AQM and scheme has a table of those that nobody beats.

use crate::number::{Format, UNDEFINED};
use crate::{Estimate, Pair, PairedSetting, SecondCriterion};
use serde::Serialize;

/// A pair that nobody beats.
#[derive(Serialize)]
pub(super) struct PairRow {
    setting: String,
    /// Its number in the picture.
    place: usize,
    name: String,
    n: usize,
    /// FCT over the physical limit, and its interval.
    factor: (String, String),
    /// The second criterion with its unit, and its interval.
    second: (String, String),
    /// Those that cannot be told apart from it: the numbers of those that nobody beats, and how many others.
    like: String,
}

/// The rows of the table, in the order of the settings.
pub(super) fn rows(settings: &[PairedSetting]) -> Vec<PairRow> {
    let mut rows = Vec::new();
    for setting in settings {
        let pairs = setting.unbeaten().pairs;
        for (i, pair) in pairs.iter().enumerate() {
            let over_limit = |ms: f64| ms / pair.ideal_fct_ms;
            let factor =
                Estimate { mean: Some(over_limit(pair.fct_ms)), ci95: pair.fct_ms_ci95.map(|ci| ci.map(over_limit)) };
            rows.push(PairRow {
                setting: setting.setting.clone(),
                place: i + 1,
                name: pair.name(),
                n: pair.n,
                factor: Format::Fraction.estimate(factor),
                second: second(pair),
                like: like(pair, &pairs),
            });
        }
    }
    rows
}

/// What the pairs are judged by besides their completion times, for the column's heading.
pub(super) fn heading(settings: &[PairedSetting]) -> &'static str {
    let mut all = settings.iter().flat_map(|setting| &setting.pairs).map(|pair| pair.second);
    let first = all.next().unwrap_or_default();
    match first {
        _ if all.any(|other| other != first) => "peak queue delay, or what people beside it met",
        SecondCriterion::MaxQueueDelayMs => "peak queue delay",
        SecondCriterion::CallNotShown => "frames of the call not shown",
        SecondCriterion::WorstSecondMos => "MOS of the conversation's worst second",
    }
}

fn second(pair: &Pair) -> (String, String) {
    let met = Estimate { mean: pair.met, ci95: pair.met_ci95 };
    match pair.second {
        SecondCriterion::MaxQueueDelayMs => {
            let peak = Estimate { mean: Some(pair.max_queue_delay_ms), ci95: pair.max_queue_delay_ms_ci95 };
            let (mean, interval) = Format::Plain.estimate(peak);
            (format!("{mean}\u{a0}ms"), interval)
        }
        SecondCriterion::CallNotShown => Format::Percent.estimate(met),
        SecondCriterion::WorstSecondMos => Format::Fraction.estimate(met),
    }
}

/// Which pairs are like this one, in words.
fn like(pair: &Pair, unbeaten: &[Pair]) -> String {
    if pair.fct_ms_ci95.is_none() {
        return UNDEFINED.to_owned();
    }
    let numbered = unbeaten.iter().zip(1..).filter(|(other, _)| pair.indistinguishable.contains(&other.name()));
    let mut words: Vec<String> = numbered.map(|(_, place): (_, u32)| place.to_string()).collect();
    let beaten = pair.indistinguishable.iter().filter(|name| !unbeaten.iter().any(|other| other.name() == **name));
    words.extend(beaten.cloned());
    if words.is_empty() { "no other".to_owned() } else { words.join(", ") }
}
