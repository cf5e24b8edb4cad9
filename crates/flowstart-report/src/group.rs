//! Cells that are compared with each other stand in one group.

use crate::Cell;

/// Cells that differ only in size and scheme.
pub(crate) struct Group<'a> {
    /// The link, and AQM and competitor where the report has several.
    pub(crate) label: String,
    pub(crate) cells: Vec<&'a Cell>,
}

impl<'a> Group<'a> {
    /// The cells of each size, sizes in the order of their first appearance.
    pub(crate) fn sizes(&self) -> Vec<(String, Vec<&'a Cell>)> {
        let names = distinct(self.cells.iter().map(|c| &c.size));
        let of = |name: &String| self.cells.iter().copied().filter(|c| c.size == *name).collect();
        names.iter().map(|name| (name.clone(), of(name))).collect()
    }
}

/// When the measured flows start, in the user's words.
pub(crate) fn arrival(cell: &Cell) -> &str {
    if cell.arrival.is_empty() { "together" } else { &cell.arrival }
}

/// The groups in the order of their first cell.
pub(crate) fn groups(cells: &[Cell]) -> Vec<Group<'_>> {
    let several = |values: Vec<String>| values.len() > 1;
    let aqms = several(distinct(cells.iter().map(|c| &c.aqm)));
    let competitors = several(distinct(cells.iter().map(|c| &c.competitor)));
    let arrivals = several(distinct(cells.iter().map(|c| &c.arrival)));
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cell in cells {
        let mut label = cell.link.clone();
        if aqms {
            label.push_str(&format!(", AQM {}", cell.aqm));
        }
        if competitors {
            label.push_str(&format!(", competitor {}", cell.competitor));
        }
        if arrivals {
            label.push_str(&format!(", arrival {}", arrival(cell)));
        }
        match groups.iter_mut().find(|g| g.label == label) {
            Some(group) => group.cells.push(cell),
            None => groups.push(Group { label, cells: vec![cell] }),
        }
    }
    groups
}

/// Distinct strings in the order of their first appearance.
pub(crate) fn distinct<'a>(values: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for value in values {
        if !seen.contains(value) {
            seen.push(value.clone());
        }
    }
    seen
}
