//! CDFs show the one-way delay of interactive media beside the measured flows.

use super::distribution::{Metric, cdf_panel};
use super::document::{Chart, Panel, Row, grid_document};
use super::legend::scheme_legend;
use crate::Cell;
use crate::group::Group;

/// A panel for each group and size, a line for each scheme.
pub(crate) fn media(groups: &[Group<'_>], schemes: &[String]) -> Option<Chart> {
    let with = |cell: &&Cell| !cell.samples.media_delay_ms.is_empty();
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            let cells: Vec<&Cell> = cells.into_iter().filter(with).collect();
            let title = format!("{}, {size}", group.label);
            let aria = format!("{title}: distribution of the media packets' one-way delay");
            let panel = cdf_panel(&cells, Metric::MediaDelay, "one-way delay (ms)", &title, schemes, &aria);
            let Some(panel) = panel else { continue };
            panels.push(panel);
            row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
        }
    }
    if panels.is_empty() {
        return None;
    }
    Some(Chart {
        id: "media-delay".to_owned(),
        title: "Delay of the media flow".to_owned(),
        sentence: "The height of a line is the portion of media packets that arrived within the time under it, of \
            those sent while the \
            measured flows were there: a line further to the left harms the conversation less."
            .to_owned(),
        aria: "Cumulative distributions of the one-way delay of media packets".to_owned(),
        columns: 3,
        legend: scheme_legend(schemes, true),
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("One-way delay of media packets", 3, &panels),
        ..Chart::default()
    })
}
