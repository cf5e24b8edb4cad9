//! The table of what measured flows did to interactive media, and that of the pairs that nobody beats.

use super::number::{Format, UNDEFINED};
use super::page::Group;
use super::{Estimate, Pair, PairedSetting};
use serde::Serialize;

/// A cell's media flow in numbers.
#[derive(Serialize)]
pub(super) struct MediaRow {
    /// Link and size, and what else the report varies.
    place: String,
    scheme: String,
    /// In the order of [`HEADINGS`].
    values: Vec<String>,
}

/// Names of the columns.
pub(super) const HEADINGS: [&str; 11] =
    ["delay p50", "p95", "p99", "max", "lost", "late", "MOS: run", "harmed", "worst 1 s", "worst 5 s", "harm until"];

/// The rows of the table, in the order of the cells.
pub(super) fn rows(groups: &[Group<'_>]) -> Vec<MediaRow> {
    let mut rows = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            for (cell, media) in cells.iter().filter_map(|cell| Some((cell, cell.media.as_ref()?))) {
                let plain = |estimate: Estimate| Format::Plain.show(estimate.mean);
                let percent = |estimate: Estimate| Format::Percent.show(estimate.mean);
                let score =
                    |estimate: Estimate| estimate.mean.map_or(UNDEFINED.to_owned(), |score| format!("{score:.2}"));
                rows.push(MediaRow {
                    place: format!("{}, {size}", group.label),
                    scheme: cell.scheme.clone(),
                    values: vec![
                        plain(media.delay_p50_ms),
                        plain(media.delay_p95_ms),
                        plain(media.delay_p99_ms),
                        plain(media.delay_max_ms),
                        percent(media.loss),
                        percent(media.late),
                        score(media.mos),
                        score(media.harm_mos),
                        score(media.worst_1s_mos),
                        score(media.worst_5s_mos),
                        plain(media.harm_ms),
                    ],
                });
            }
        }
    }
    rows
}

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

/// The rows of the table of pairs.
pub(super) fn pair_rows(settings: &[PairedSetting]) -> Vec<PairRow> {
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
