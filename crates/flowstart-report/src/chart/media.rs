//! CDFs show the one-way delay of interactive media beside the measured flows.

use super::distribution::{Frame, Metric, cdf_panel};
use super::document::{Chart, Panel, Row, grid_document};
use super::key::Key;
use crate::Cell;
use crate::group::Group;

/// A panel for each group and size, a line for each scheme or AQM.
pub(crate) fn media(groups: &[Group<'_>], key: &Key) -> Option<Chart> {
    let with = |cell: &&Cell| !cell.samples.media_delay_ms.is_empty();
    let all: Vec<&Cell> = groups.iter().flat_map(|group| group.cells.clone()).filter(with).collect();
    let frame = Frame::of(Metric::MediaDelay, &all)?;
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            let cells: Vec<&Cell> = cells.into_iter().filter(with).collect();
            for (scheme, cells) in key.panels(&cells) {
                let separator = if scheme.is_empty() { "" } else { ", " };
                let title = format!("{}, {size}{separator}{scheme}", group.label);
                let aria = format!("{title}: distribution of the media packets' one-way delay");
                let Some(panel) = cdf_panel(&cells, &frame, &title, key, &aria) else { continue };
                panels.push(panel);
                row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
            }
        }
    }
    let columns = row.len().clamp(1, 3);
    (!panels.is_empty()).then(|| Chart {
        id: "media-delay".to_owned(),
        title: "Delay of the media flow".to_owned(),
        sentence: "The height of a line is the portion of media packets that arrived within the time under it, of \
            those sent while the measured flows were there: a line further to the left harms the conversation less."
            .to_owned(),
        aria: "Cumulative distributions of the one-way delay of media packets".to_owned(),
        columns,
        legend: key.legend(true, |_| true),
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("One-way delay of media packets", columns, &panels),
        ..Chart::default()
    })
}
