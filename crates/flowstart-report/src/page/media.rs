//! The section on interactive media has a table of what the measured flows did to a conversation, and one of what they
//! did to a video call.

use crate::group::Group;
use crate::number::{Format, UNDEFINED};
use crate::{Call, Cell, Estimate, Media};
use serde::Serialize;

/// A cell's media in numbers.
#[derive(Serialize)]
pub(super) struct MediaRow {
    /// Link and size, and what else the report varies.
    place: String,
    scheme: String,
    /// In the order of the headings.
    values: Vec<String>,
}

/// Names of the columns of conversations.
pub(super) const HEADINGS: [&str; 11] =
    ["delay p50", "p95", "p99", "max", "lost", "late", "MOS: run", "harmed", "worst 1 s", "worst 5 s", "harm until"];
/// Names of the columns of video calls.
pub(super) const CALL_HEADINGS: [&str; 10] =
    ["frame delay p50", "p95", "p99", "max", "lost", "late", "not shown", "frozen", "longest freeze", "harm until"];

fn plain(estimate: Estimate) -> String {
    Format::Plain.show(estimate.mean)
}

fn percent(estimate: Estimate) -> String {
    Format::Percent.show(estimate.mean)
}

fn score(estimate: Estimate) -> String {
    estimate.mean.map_or(UNDEFINED.to_owned(), |score| format!("{score:.2}"))
}

/// The rows of the table of conversations, in the order of the cells.
pub(super) fn rows(groups: &[Group<'_>]) -> Vec<MediaRow> {
    rows_of(groups, |cell| cell.media.as_ref().map(of_conversation))
}

/// The rows of the table of video calls, in the order of the cells.
pub(super) fn call_rows(groups: &[Group<'_>]) -> Vec<MediaRow> {
    rows_of(groups, |cell| cell.call.as_ref().map(of_call))
}

fn rows_of(groups: &[Group<'_>], values: impl Fn(&Cell) -> Option<Vec<String>>) -> Vec<MediaRow> {
    let mut rows = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            let aqms_vary = cells.iter().any(|cell| cell.aqm != cells[0].aqm);
            rows.extend(cells.iter().filter_map(|cell| {
                let place = format!("{}, {size}", group.label);
                let scheme = if aqms_vary { format!("{}, {}", cell.scheme, cell.aqm) } else { cell.scheme.clone() };
                Some(MediaRow { place, scheme, values: values(cell)? })
            }));
        }
    }
    rows
}

fn of_conversation(media: &Media) -> Vec<String> {
    vec![
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
    ]
}

fn of_call(call: &Call) -> Vec<String> {
    vec![
        plain(call.delay_p50_ms),
        plain(call.delay_p95_ms),
        plain(call.delay_p99_ms),
        plain(call.delay_max_ms),
        percent(call.lost),
        percent(call.late),
        percent(call.not_shown),
        percent(call.frozen),
        plain(call.longest_freeze_ms),
        plain(call.harm_ms),
    ]
}
