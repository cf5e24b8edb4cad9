//! The section on what speed costs has a table of the schemes that nobody beats.

use crate::group::Group;
use crate::number::{Format, UNDEFINED, finite};
use crate::pareto::{Cost, beats, beats_surely, costs, criteria};
use crate::{Cell, Estimate};
use serde::Serialize;

/// The schemes of one link and size that nobody beats.
#[derive(Serialize)]
pub(super) struct Unbeaten {
    /// Link and size.
    place: String,
    /// What they are judged by besides their completion times.
    cost: String,
    /// Schemes that no other one beats, with FCT over the limit and costs.
    schemes: Vec<String>,
    /// Schemes that are beaten, but by nobody beyond the intervals.
    within_noise: Vec<String>,
}

/// The rows of the table. With fewer than three schemes there is nothing to say.
pub(super) fn rows(groups: &[Group<'_>]) -> Vec<Unbeaten> {
    let mut rows = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            let costs = costs(&cells);
            let known: Vec<(&Cell, Vec<Estimate>)> =
                cells.into_iter().filter_map(|cell| Some((cell, criteria(cell, &costs)?))).collect();
            if known.len() < 3 {
                continue;
            }
            let has_aqms = known.iter().any(|(cell, _)| cell.aqm != known[0].0.aqm);
            let (mut schemes, mut within_noise) = (Vec::new(), Vec::new());
            for (cell, own) in &known {
                let times = finite(cell.ideal_fct_ms).filter(|limit| *limit > 0.0).zip(own[0].mean);
                let factor = times.map_or(UNDEFINED.to_owned(), |(limit, fct)| format!("{:.2}", fct / limit));
                let scheme = if has_aqms { &format!("{} + {}", cell.aqm, cell.scheme) } else { &cell.scheme };
                let paid: Vec<String> =
                    std::iter::once(factor).chain(costs.iter().map(|one| shown(*one, cell))).collect();
                let entry = format!("{scheme} ({})", paid.join("; "));
                if !known.iter().any(|(_, other)| beats(other, own)) {
                    schemes.push(entry);
                } else if !known.iter().any(|(_, other)| beats_surely(other, own)) {
                    within_noise.push(entry);
                }
            }
            let place = format!("{}, {size}", group.label);
            rows.push(Unbeaten {
                place,
                cost: costs.iter().map(|cost| cost.name()).collect::<Vec<_>>().join(", "),
                schemes,
                within_noise,
            });
        }
    }
    rows
}

/// A cost with its unit.
fn shown(cost: Cost, cell: &Cell) -> String {
    let mean = cost.of(cell).mean;
    match cost {
        Cost::Inflation | Cost::Frames => Format::Percent.show(mean),
        Cost::Score => format!("MOS\u{a0}{}", Format::Fraction.show(mean)),
        Cost::Harm(unit) => format!("{}\u{a0}{unit}", Format::Plain.show(mean)),
    }
}
