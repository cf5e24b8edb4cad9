//! The section on what speed costs has a table of the schemes that nobody beats.

use crate::group::Group;
use crate::number::{Format, UNDEFINED, finite};
use crate::pareto::{axes, beats, beats_surely, harm};
use crate::{Cell, Estimate};
use serde::Serialize;

/// The schemes of one link and size that nobody beats.
#[derive(Serialize)]
pub(super) struct Unbeaten {
    /// Link and size.
    place: String,
    /// What the second axis is.
    cost: &'static str,
    /// Schemes that no other one beats, with FCT over the limit and cost.
    schemes: Vec<String>,
    /// Schemes that are beaten, but by nobody beyond the intervals.
    within_noise: Vec<String>,
}

/// The rows of the table. With fewer than three schemes there is nothing to say.
pub(super) fn rows(groups: &[Group<'_>]) -> Vec<Unbeaten> {
    let mut rows = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            let known: Vec<(&Cell, [Estimate; 2])> =
                cells.into_iter().filter_map(|cell| Some((cell, axes(cell)?))).collect();
            if known.len() < 3 {
                continue;
            }
            let has_aqms = known.iter().any(|(cell, _)| cell.aqm != known[0].0.aqm);
            let unit = known.iter().find_map(|(cell, _)| harm(cell)).map(|(_, unit)| unit);
            let (mut schemes, mut within_noise) = (Vec::new(), Vec::new());
            for (cell, own) in &known {
                let times = finite(cell.ideal_fct_ms).filter(|limit| *limit > 0.0).zip(own[0].mean);
                let factor = times.map_or(UNDEFINED.to_owned(), |(limit, fct)| format!("{:.2}", fct / limit));
                let cost = match unit {
                    Some(unit) => format!("{}\u{a0}{unit}", Format::Plain.show(own[1].mean)),
                    None => Format::Percent.show(own[1].mean),
                };
                let scheme = if has_aqms { &format!("{} + {}", cell.aqm, cell.scheme) } else { &cell.scheme };
                let entry = format!("{scheme} ({factor}; {cost})");
                if !known.iter().any(|(_, other)| beats(*other, *own)) {
                    schemes.push(entry);
                } else if !known.iter().any(|(_, other)| beats_surely(*other, *own)) {
                    within_noise.push(entry);
                }
            }
            let place = format!("{}, {size}", group.label);
            rows.push(Unbeaten {
                place,
                cost: if unit.is_some() { "harm" } else { "inflation" },
                schemes,
                within_noise,
            });
        }
    }
    rows
}
