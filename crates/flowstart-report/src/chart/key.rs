//! The key tells the lines and marks of all charts apart: by scheme, and where AQMs vary by AQM and scheme.

use super::legend::{LegendItem, item};
use super::style::{COLOURS, DASHES, SHAPES};
use super::table::named;
use crate::Cell;
use crate::group::{Axis, Names};
use serde_json::{Value, json};

/// Most lines of a panel.
const MOST_LINES: usize = 16;

/// The lines of all charts. Where the AQM varies it is the colour, and the scheme is the dash and the shape.
pub(crate) struct Key {
    axes: Vec<Axis>,
    lines: Vec<Line>,
    /// Whether there are so many that each scheme has a panel of its own.
    pub(crate) is_split: bool,
}

struct Line {
    /// The cell's values on the axes.
    values: Vec<String>,
    name: String,
    /// Places in the lists of colours, and of dashes and shapes.
    colour: usize,
    form: usize,
}

impl Key {
    /// A key for these cells.
    pub(crate) fn of(cells: &[Cell], names: &Names) -> Self {
        let varied = |axis: &Axis| names.varied().contains(axis);
        let mut axes: Vec<Axis> = Axis::CHOICES.into_iter().filter(varied).collect();
        if axes.is_empty() {
            axes.push(Axis::Scheme);
        }
        let has_aqms = axes.contains(&Axis::Aqm);
        let is_split = has_aqms && axes.len() > 1 && names.count(Axis::Aqm) * names.count(Axis::Scheme) > MOST_LINES;
        if is_split {
            axes = vec![Axis::Aqm];
        }
        let mut lines: Vec<Line> = Vec::new();
        for cell in cells {
            let values: Vec<String> = axes.iter().map(|axis| axis.value(cell).to_owned()).collect();
            if lines.iter().any(|line| line.values == values) {
                continue;
            }
            let own = lines.len();
            let place = |axis| names.place(axis, cell).unwrap_or(own);
            let (colour, form) = match (has_aqms, axes.len()) {
                (true, 1) => (place(Axis::Aqm), place(Axis::Aqm)),
                (true, _) => (place(Axis::Aqm), place(Axis::Scheme)),
                _ => (own, own),
            };
            lines.push(Line { name: values.join(" + "), values, colour, form });
        }
        Self { axes, lines, is_split }
    }

    /// Its title in tooltips.
    pub(crate) fn title(&self) -> String {
        self.axes.iter().map(|axis| axis.title()).collect::<Vec<_>>().join(" and ")
    }

    /// The line of a cell.
    pub(crate) fn place(&self, cell: &Cell) -> Option<usize> {
        let is_its = |line: &Line| self.axes.iter().zip(&line.values).all(|(axis, value)| axis.value(cell) == value);
        self.lines.iter().position(is_its)
    }

    /// The line's name.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.lines.get(place).map_or("", |line| &line.name)
    }

    /// A transform that turns the place in field `i` into the line's name in the field `line`.
    pub(crate) fn named(&self) -> Value {
        named(&self.lines.iter().map(|line| line.name.clone()).collect::<Vec<_>>(), "i", "line")
    }

    fn scale<T: serde::Serialize>(&self, range: impl Fn(&Line) -> T) -> Value {
        let domain: Vec<usize> = (0..self.lines.len()).collect();
        json!({"field": "i", "type": "nominal", "legend": null,
            "scale": {"domain": domain, "range": self.lines.iter().map(range).collect::<Vec<_>>()}})
    }

    /// The encoding of colour.
    pub(crate) fn colour(&self) -> Value {
        self.scale(|line| COLOURS[line.colour % COLOURS.len()])
    }

    /// The encoding of dashes.
    pub(crate) fn dash(&self) -> Value {
        self.scale(|line| DASHES[line.form % DASHES.len()])
    }

    /// The encoding of shapes.
    pub(crate) fn shape(&self) -> Value {
        self.scale(|line| SHAPES[line.form % SHAPES.len()])
    }

    /// The legend, with lines or only with shapes, of those lines that `shown` names.
    pub(crate) fn legend(&self, with_lines: bool, shown: impl Fn(usize) -> bool) -> Vec<LegendItem> {
        let lines = self.lines.iter().enumerate().filter(|(place, _)| shown(*place));
        let entry = |(_, line): (usize, &Line)| LegendItem {
            line: with_lines,
            shape: SHAPES[line.form % SHAPES.len()],
            ..item(&line.name, COLOURS[line.colour % COLOURS.len()], DASHES[line.form % DASHES.len()], 2.0)
        };
        lines.map(entry).collect()
    }

    /// The cells of a panel, with a title for each if each scheme has a panel of its own.
    pub(crate) fn panels<'a>(&self, cells: &[&'a Cell]) -> Vec<(String, Vec<&'a Cell>)> {
        if !self.is_split {
            return vec![(String::new(), cells.to_vec())];
        }
        let schemes = crate::group::distinct(cells.iter().map(|cell| &cell.scheme));
        let of = |scheme: &String| cells.iter().copied().filter(|cell| cell.scheme == *scheme).collect();
        schemes.iter().map(|scheme| (scheme.clone(), of(scheme))).collect()
    }
}
