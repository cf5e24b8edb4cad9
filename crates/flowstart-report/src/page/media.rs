//! The section on interactive media has a table of what the measured flows did to it.

use crate::Estimate;
use crate::group::Group;
use crate::number::{Format, UNDEFINED};
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
