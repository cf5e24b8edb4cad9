//! Cells that are compared with each other stand in one group, and names say in what they differ, and no more.

use crate::Cell;
use crate::names::short_names;

/// What cells may differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Link,
    Competitor,
    Arrival,
    Transport,
    Size,
    Aqm,
    Scheme,
    Avoidance,
}

impl Axis {
    /// All of them, in the order of names.
    pub(crate) const ALL: [Self; 8] = [
        Self::Link,
        Self::Competitor,
        Self::Arrival,
        Self::Transport,
        Self::Size,
        Self::Aqm,
        Self::Scheme,
        Self::Avoidance,
    ];
    /// Those in which the cells of a group are alike.
    const PLACE: [Self; 4] = [Self::Link, Self::Competitor, Self::Arrival, Self::Transport];
    /// Those that a sender or a queue is chosen on. The rest is given.
    pub(crate) const CHOICES: [Self; 3] = [Self::Aqm, Self::Scheme, Self::Avoidance];

    /// Whether two cells differ in nothing but scheme and avoidance.
    pub(crate) fn is_same_setting(a: &Cell, b: &Cell) -> bool {
        let chosen = [Self::Scheme, Self::Avoidance];
        Self::ALL.iter().filter(|axis| !chosen.contains(axis)).all(|axis| axis.value(a) == axis.value(b))
    }

    /// Its name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Competitor => "competitor",
            Self::Arrival => "arrival",
            Self::Transport => "transport",
            Self::Size => "size",
            Self::Aqm => "AQM",
            Self::Scheme => "scheme",
            Self::Avoidance => "avoidance",
        }
    }

    /// A cell's value, as the user wrote it.
    pub(crate) fn value(self, cell: &Cell) -> &str {
        match self {
            Self::Link => &cell.link,
            Self::Competitor => &cell.competitor,
            Self::Arrival => arrival(cell),
            Self::Transport => &cell.transport,
            Self::Size => &cell.size,
            Self::Aqm => &cell.aqm,
            Self::Scheme => &cell.scheme,
            Self::Avoidance => &cell.avoidance,
        }
    }
}

/// The values of an axis, in the order of their first appearance, with short names for charts.
struct Values {
    axis: Axis,
    /// As written, and short.
    names: Vec<(String, String)>,
    /// Whether names must say it.
    is_varied: bool,
}

/// Short names for what cells differ in. Tables have the full ones.
pub(crate) struct Names(Vec<Values>);

impl Names {
    /// Names for these cells.
    pub(crate) fn of(cells: &[&Cell]) -> Self {
        let values = |axis: Axis| {
            let full = distinct(cells.iter().map(|cell| axis.value(cell)));
            let is_varied = match axis {
                // A scheme with an avoidance of its own says it.
                Axis::Avoidance => {
                    let pairs = cells.iter().map(|cell| format!("{}\n{}", cell.scheme, cell.avoidance));
                    distinct(pairs).len() > distinct(cells.iter().map(|cell| &cell.scheme)).len()
                }
                _ => full.len() > 1,
            };
            let names = short_names(&full);
            Values { axis, names: full.into_iter().zip(names).collect(), is_varied }
        };
        Self(Axis::ALL.map(values).into_iter().collect())
    }

    fn values(&self, axis: Axis) -> Option<&Values> {
        self.0.iter().find(|values| values.axis == axis)
    }

    /// Axes in which the cells differ, in the order of names.
    pub(crate) fn varied(&self) -> Vec<Axis> {
        self.0.iter().filter(|values| values.is_varied).map(|values| values.axis).collect()
    }

    /// Number of different values of an axis.
    pub(crate) fn count(&self, axis: Axis) -> usize {
        self.values(axis).map_or(0, |values| values.names.len())
    }

    /// The short name of a cell's value.
    pub(crate) fn short<'a>(&'a self, axis: Axis, cell: &'a Cell) -> &'a str {
        self.short_of(axis, axis.value(cell))
    }

    /// The short name of a value.
    pub(crate) fn short_of<'a>(&'a self, axis: Axis, full: &'a str) -> &'a str {
        let known = self.values(axis).and_then(|values| values.names.iter().find(|(name, _)| name == full));
        known.map_or(full, |(_, short)| short)
    }

    /// All short names of an axis.
    pub(crate) fn all_short(&self, axis: Axis) -> Vec<String> {
        self.values(axis).map_or(Vec::new(), |values| values.names.iter().map(|(_, short)| short.clone()).collect())
    }

    /// The place of a cell's value among those of an axis.
    pub(crate) fn place(&self, axis: Axis, cell: &Cell) -> Option<usize> {
        self.values(axis)?.names.iter().position(|(name, _)| name == axis.value(cell))
    }

    /// What a cell is on those of these axes that vary; empty if none does.
    pub(crate) fn label(&self, cell: &Cell, axes: &[Axis]) -> String {
        let shown = self.varied().into_iter().filter(|axis| axes.contains(axis));
        let words = shown.map(|axis| match axis {
            Axis::Competitor if cell.competitor == "none" => "alone".to_owned(),
            Axis::Competitor => format!("beside {}", self.short(axis, cell)),
            Axis::Arrival => format!("arrival {}", self.short(axis, cell)),
            _ => self.short(axis, cell).to_owned(),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Cells that differ only in size, and in what is chosen: AQM, scheme and congestion avoidance.
pub(crate) struct Group<'a> {
    /// What it differs in from other groups; the link's short name where there is one group.
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
pub(crate) fn groups<'a>(cells: &'a [Cell], names: &Names) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cell in cells {
        let alike = |other: &Cell| Axis::PLACE.iter().all(|axis| axis.value(other) == axis.value(cell));
        match groups.iter_mut().find(|group| group.cells.first().is_some_and(|other| alike(other))) {
            Some(group) => group.cells.push(cell),
            None => {
                let label = names.label(cell, &Axis::PLACE);
                let label = if label.is_empty() { names.short(Axis::Link, cell).to_owned() } else { label };
                groups.push(Group { label, cells: vec![cell] });
            }
        }
    }
    groups
}

/// Distinct strings in the order of their first appearance.
pub(crate) fn distinct(values: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for value in values {
        if !seen.iter().any(|known| known == value.as_ref()) {
            seen.push(value.as_ref().to_owned());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_what_varies_and_no_more() {
        let cell = |link: &str, scheme: &str, avoidance: &str| Cell {
            link: link.to_owned(),
            size: "2MB".to_owned(),
            scheme: scheme.to_owned(),
            avoidance: avoidance.to_owned(),
            competitor: "cubic".to_owned(),
            ..Cell::default()
        };
        let cells = [cell("lte", "a", "reno"), cell("lte", "b", "cubic"), cell("3g", "a", "reno")];
        let names = Names::of(&cells.iter().collect::<Vec<_>>());
        assert_eq!(names.varied(), [Axis::Link, Axis::Scheme]);
        assert_eq!(names.label(&cells[1], &Axis::ALL), "lte, b");
        assert_eq!(names.label(&cells[1], &Axis::PLACE), "lte");
        let names = Names::of(&[&cells[0]]);
        assert_eq!(names.label(&cells[0], &Axis::ALL), "");
    }
}
