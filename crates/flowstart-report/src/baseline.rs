//! What each cell is compared with, and what that is called.

use crate::Cell;
use crate::group::{Axis, Names, distinct};
use crate::number::finite;

/// A cell and the one that it is compared with, where the report has it.
pub(crate) type Comparison<'a> = (&'a Cell, Option<&'a Cell>);

/// The cells that are compared with a baseline, each with the cell that it is compared with.
pub(crate) fn compared(cells: &[Cell]) -> Vec<Comparison<'_>> {
    let is_of = |cell: &Cell, other: &Cell| match cell.baseline.is_empty() {
        false => other.id == cell.baseline,
        true => other.is_baseline && Axis::is_same_setting(cell, other),
    };
    let known = cells.iter().filter(|cell| finite(cell.speedup.mean).is_some_and(|mean| mean > 0.0));
    known.map(|cell| (cell, cells.iter().find(|other| is_of(cell, other)))).collect()
}

/// What a cell is other on than its baseline.
pub(crate) fn differing(cell: &Cell, baseline: &Cell) -> Vec<Axis> {
    // A scheme with an avoidance of its own says it.
    let axes = Axis::ALL.into_iter().filter(|axis| *axis != Axis::Avoidance);
    axes.filter(|axis| axis.value(baseline) != axis.value(cell)).collect()
}

/// Whether more than one scheme takes part, as one that is compared or as a baseline.
pub(crate) fn schemes_vary(compared: &[Comparison<'_>]) -> bool {
    distinct(cells(compared).map(|cell| &cell.scheme)).len() > 1
}

/// The comparisons that may stand in one picture of one colour scale: where schemes are compared, only those between
/// schemes in one setting. What another queue or transport changes is another question.
pub(crate) fn alike(compared: Vec<Comparison<'_>>) -> Vec<Comparison<'_>> {
    if !schemes_vary(&compared) {
        return compared;
    }
    let is_of_schemes = |(cell, baseline): &Comparison<'_>| baseline.is_none_or(|one| Axis::is_same_setting(cell, one));
    compared.into_iter().filter(is_of_schemes).collect()
}

/// The names of baselines: what they are on the axes on which cells differ from them.
pub(crate) struct Baselines {
    short: Names,
    names: Vec<String>,
    /// Whether each comparison has a baseline.
    is_complete: bool,
}

impl Baselines {
    pub(crate) fn of(compared: &[Comparison<'_>]) -> Self {
        let short = Names::of(&cells(compared).collect::<Vec<_>>());
        let mut all = Self { short, names: Vec::new(), is_complete: true };
        let names: Vec<Option<String>> = compared.iter().map(|one| all.name(*one)).collect();
        all.is_complete = compared.iter().all(|(_, baseline)| baseline.is_some());
        all.names = distinct(names.into_iter().flatten());
        all
    }

    /// What the baseline of a comparison is called.
    pub(crate) fn name(&self, (cell, baseline): Comparison<'_>) -> Option<String> {
        let baseline = baseline?;
        let values: Vec<&str> =
            differing(cell, baseline).into_iter().map(|axis| self.short.short(axis, baseline)).collect();
        (!values.is_empty()).then(|| values.join(" + "))
    }

    /// Whether cells are compared with baselines of several names, so that each comparison must say its own.
    pub(crate) fn are_several(&self) -> bool {
        self.names.len() > 1
    }

    /// The one name of all baselines.
    pub(crate) fn one(&self) -> Option<&str> {
        match &self.names[..] {
            [one] if self.is_complete => Some(one),
            _ => None,
        }
    }
}

fn cells<'a>(compared: &'a [Comparison<'a>]) -> impl Iterator<Item = &'a Cell> {
    compared.iter().flat_map(|(cell, baseline)| std::iter::once(*cell).chain(*baseline))
}
