//! Whether the answer depends on how it was measured: on the transport or the world, where an experiment has several.

use std::collections::BTreeMap;

use flowstart_report::Kind;

use super::words::{listed, longer, ratio};
use crate::results::cell_summary::Comparison;
use crate::results::summary::Summary;
use crate::study::plan::{AXES, Axis, Cell, Plan};

/// The axes of ways to measure.
const WAYS: [&Axis; 2] = [Axis::world(), Axis::transport()];

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Slower,
    Neither,
    Faster,
}

impl Sign {
    /// The sign of a comparison, if any repetition completed in both cells.
    fn of(versus: &Comparison) -> Option<Self> {
        Some(match versus.verdict?.kind {
            Kind::Faster | Kind::FasterByWaste => Self::Faster,
            Kind::Slower => Self::Slower,
            Kind::Negligible | Kind::Unclear | Kind::Same => Self::Neither,
        })
    }
}

/// A comparison on one of them.
#[derive(Clone, Copy)]
struct Outcome<'a> {
    cell: Cell,
    way: &'a str,
    sign: Sign,
    speedup: f64,
}

/// The same comparison on several of them.
struct Contrast<'a>(Vec<Outcome<'a>>);

impl Contrast<'_> {
    /// Whether it is faster on one of them and not on another.
    fn differs(&self) -> bool {
        let faster = self.0.iter().filter(|outcome| outcome.sign == Sign::Faster).count();
        faster > 0 && faster < self.0.len()
    }

    fn agrees(&self) -> bool {
        self.0.iter().all(|outcome| outcome.sign == self.0[0].sign)
    }

    /// How much they differ: first in sign, then in speed-up.
    fn distance(&self) -> (bool, f64) {
        let slowest = self.0.iter().map(|outcome| outcome.sign).min();
        let speedups = || self.0.iter().map(|outcome| outcome.speedup.ln());
        let spread = speedups().fold(f64::NEG_INFINITY, f64::max) - speedups().fold(f64::INFINITY, f64::min);
        (slowest == Some(Sign::Slower), spread)
    }

    /// What it shows on each of them, those where it is fastest first.
    fn in_words(&self, plan: &Plan, compared: &Axis) -> String {
        let mut outcomes = self.0.clone();
        outcomes.sort_by(|a, b| b.sign.cmp(&a.sign).then(b.speedup.total_cmp(&a.speedup)));
        let each = outcomes.iter().map(|Outcome { way, sign, speedup, .. }| match sign {
            Sign::Faster => format!("is {} times as fast with {way}", ratio([*speedup; 2])),
            Sign::Slower => format!("takes {} with {way}", longer(*speedup)),
            Sign::Neither => format!("is not measurably faster or slower with {way}"),
        });
        let cell = outcomes[0].cell;
        let [name, baseline] = [cell, compared.at(cell, 0)].map(|cell| compared.value(plan, &cell).unwrap_or_default());
        format!("compared with {baseline}, {name} {}", listed(&each.collect::<Vec<_>>()))
    }

    /// Where it is: its values on all other axes with a choice.
    fn place(&self, plan: &Plan, way: &Axis, compared: &Axis) -> String {
        let cell = self.0[0].cell;
        let others = AXES.iter().filter(|axis| ![way, compared].contains(axis));
        let varied = others.filter(|axis| axis.length(plan) > 1);
        varied.filter_map(|axis| axis.value(plan, &cell)).collect::<Vec<_>>().join(", ")
    }
}

/// The comparisons of an axis on each of these ways where any repetition completed, in the order of results.
fn contrasts<'a>(plan: &'a Plan, summary: &Summary, axis: &Axis, compared: &Axis) -> Vec<Contrast<'a>> {
    let mut known: BTreeMap<Vec<usize>, Contrast<'a>> = BTreeMap::new();
    for cell in plan.cells().into_iter().filter(|cell| compared.place(*cell) > 0) {
        let Some(versus) = &summary.cells[cell.index].vs_baseline else { continue };
        let place = AXES.iter().map(|one| one.place(axis.at(cell, 0))).collect();
        let contrast = known.entry(place).or_insert_with(|| Contrast(Vec::new()));
        let Some((sign, speedup)) = Sign::of(versus).zip(versus.speedup) else { continue };
        contrast.0.push(Outcome { cell, way: axis.value(plan, &cell).unwrap_or_default(), sign, speedup });
    }
    known.into_values().collect()
}

/// Whether comparisons have the same sign in all worlds, and whether they have on all transports. Nothing is said of
/// what there is only one of, and nothing where nothing else is compared.
pub fn agreements(plan: &Plan, summary: &Summary) -> Vec<String> {
    let Some(compared) = plan.compared().filter(|axis| !WAYS.contains(axis)) else { return Vec::new() };
    let ways = WAYS.into_iter().filter(|axis| axis.length(plan) > 1);
    ways.filter_map(|way| agreement(plan, summary, way, compared)).collect()
}

/// Whether comparisons have the same sign on all values of an axis.
fn agreement(plan: &Plan, summary: &Summary, way: &Axis, compared: &Axis) -> Option<String> {
    let mut contrasts = contrasts(plan, summary, way, compared);
    let has = |contrast: &Contrast<'_>, name: &str| contrast.0.iter().any(|outcome| outcome.way == name);
    let names = way.texts(plan).into_iter();
    let (silent, all): (Vec<&str>, Vec<&str>) = names.partition(|name| contrasts.iter().any(|one| !has(one, name)));
    contrasts.retain(|contrast| contrast.0.len() > 1);
    let (all, silent) = match (&silent[..], &all[..]) {
        ([], [_, _]) => (format!("Both {}", way.plural), String::new()),
        ([], all) => (format!("All {} {}", all.len(), way.plural), String::new()),
        (silent, all) => {
            let names = |names: &[&str]| listed(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            let all = if all.len() > 1 { names(all) } else { format!("The other {}", way.plural) };
            (all, format!(" With {} no transfer completes in some comparisons.", names(silent)))
        }
    };
    let differing: Vec<&Contrast<'_>> = contrasts.iter().filter(|contrast| contrast.differs()).collect();
    let furthest = differing.iter().max_by(|a, b| {
        let ((a_sign, a), (b_sign, b)) = (a.distance(), b.distance());
        a_sign.cmp(&b_sign).then(a.total_cmp(&b))
    });
    let sentence = match (furthest, &contrasts[..]) {
        (Some(only), [_]) => format!("The answer depends on the {}: {}.", way.name(), only.in_words(plan, compared)),
        (Some(furthest), several) => {
            let place = furthest.place(plan, way, compared);
            let on = if place.is_empty() { String::new() } else { format!(" ({place})") };
            format!(
                "The answer depends on the {} in {} of {} comparisons: {}{on}.",
                way.name(),
                differing.len(),
                several.len(),
                furthest.in_words(plan, compared)
            )
        }
        (None, [only]) if only.agrees() => match only.0[0].sign {
            Sign::Faster => format!("{all} agree that it is faster."),
            Sign::Slower => format!("{all} agree that it is slower."),
            Sign::Neither => format!("{all} agree that it is neither measurably faster nor slower."),
        },
        (None, [_, ..]) if contrasts.iter().all(Contrast::agrees) => {
            let of_all = match contrasts.len() {
                2 => "both".to_owned(),
                several => format!("all {several}"),
            };
            let is_neither = |contrast: &Contrast<'_>| contrast.0[0].sign == Sign::Neither;
            let what = match contrasts.iter().all(is_neither) {
                true => "that nothing is measurably faster or slower",
                false => "on what is faster",
            };
            format!("{all} agree in {of_all} comparisons {what}.")
        }
        (None, several) => {
            let torn: Vec<&Contrast<'_>> = several.iter().filter(|contrast| !contrast.agrees()).collect();
            let furthest = torn.iter().max_by(|a, b| a.distance().1.total_cmp(&b.distance().1))?;
            let place = furthest.place(plan, way, compared);
            let on = if place.is_empty() { String::new() } else { format!(" ({place})") };
            let of = match several.len() {
                1 => String::new(),
                all => format!(" in {} of {all} comparisons", torn.len()),
            };
            format!("Only some {} show a loss{of}: {}{on}.", way.plural, furthest.in_words(plan, compared))
        }
    };
    Some(sentence + &silent)
}
