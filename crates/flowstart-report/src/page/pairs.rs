//! The section on pairs of AQM and scheme has a table of those that nobody beats.

use crate::number::{Format, UNDEFINED};
use crate::{Estimate, Pair, PairedSetting};
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
    /// The peak in milliseconds, and its interval.
    peak: (String, String),
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
            let peak = Estimate { mean: Some(pair.max_queue_delay_ms), ci95: pair.max_queue_delay_ms_ci95 };
            rows.push(PairRow {
                setting: setting.setting.clone(),
                place: i + 1,
                name: pair.name(),
                n: pair.n,
                factor: Format::Fraction.estimate(factor),
                peak: Format::Plain.estimate(peak),
                like: like(pair, &pairs),
            });
        }
    }
    rows
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
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
