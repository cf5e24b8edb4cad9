//! What the time of cells is called: it need not be a completion time.

use crate::{Cell, Time};
use serde::Serialize;

/// The names of a time.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct TimeWords {
    /// Above a column.
    pub(crate) short: &'static str,
    /// On an axis and in definitions.
    pub(crate) name: &'static str,
    /// In titles.
    pub(crate) long: &'static str,
}

/// The names of the time of these cells.
pub(crate) fn time_words<'a>(cells: impl Iterator<Item = &'a Cell>) -> TimeWords {
    let words = |short, name, long| TimeWords { short, name, long };
    let mut kinds: Vec<Time> = Vec::new();
    for cell in cells {
        if !kinds.contains(&cell.time) {
            kinds.push(cell.time);
        }
    }
    match kinds[..] {
        [] | [Time::Completion] => words("FCT", "FCT", "completion time"),
        [Time::Chunk] => words("chunk time", "time of a chunk", "time of a chunk"),
        [Time::FirstPicture] => words("first picture", "time to the first picture", "time to the first picture"),
        _ => words("time", "time that users wait", "time that users wait"),
    }
}
