//! Comparing numbers: what is accepted, what missed, and what the entry says in the end.

use serde::Serialize;

use crate::reference::Row;

/// Whether an entry keeps its bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every number is inside.
    Pass,
    /// At least one is not.
    Miss,
}

/// A number outside its band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// Cell of the reference.
    pub cell: String,
    /// What was compared.
    pub metric: String,
    /// Our number.
    pub ours: Number,
    /// The reference's.
    pub reference: Number,
    /// What would have been accepted.
    pub band: String,
}

/// A number, or nothing where it is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Number(pub Option<f64>);

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(value.is_finite().then_some(value))
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{}", libm::round(value * 1e6) / 1e6),
            None => f.write_str("undefined"),
        }
    }
}

/// What validating an entry gave. It passes only when all numbers that the entry declared were compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Entry.
    pub name: String,
    /// Pass or miss.
    pub status: Status,
    /// Numbers compared.
    pub cells: usize,
    /// Those outside their bands.
    pub misses: Vec<Miss>,
    /// How close it was, and known causes of misses.
    pub note: String,
}

/// What is accepted of a number, and the number that stands beside it: the bound itself unless another one is named.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    accepts: Accepts,
    reference: f64,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Accepts {
    AtLeast(f64),
    AtMost(f64),
    Above(f64),
    Below(f64),
    Between(f64, f64),
    /// Between two bounds that are not accepted themselves.
    Inside(f64, f64),
    /// At most so far from the number.
    Near(f64, f64),
    /// Everything, or nothing.
    All(bool),
}

impl Band {
    fn new(accepts: Accepts, reference: f64, text: String) -> Self {
        Self { accepts, reference, text }
    }

    pub(crate) fn beside(self, reference: f64) -> Self {
        Self { reference, ..self }
    }

    pub(crate) fn saying(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn reference(&self) -> f64 {
        self.reference
    }

    /// Whether the number is accepted. What is undefined never is.
    pub(crate) fn contains(&self, ours: f64) -> bool {
        let inside = match self.accepts {
            Accepts::AtLeast(least) => ours >= least,
            Accepts::AtMost(most) => ours <= most,
            Accepts::Above(bound) => ours > bound,
            Accepts::Below(bound) => ours < bound,
            Accepts::Between(low, high) => (low..=high).contains(&ours),
            Accepts::Inside(low, high) => low < ours && ours < high,
            Accepts::Near(center, tolerance) => (ours - center).abs() <= tolerance,
            Accepts::All(inside) => inside,
        };
        inside && ours.is_finite() && self.reference.is_finite()
    }
}

pub(crate) fn at_least(bound: f64) -> Band {
    Band::new(Accepts::AtLeast(bound), bound, format!("at least {bound}"))
}

pub(crate) fn at_most(bound: f64) -> Band {
    Band::new(Accepts::AtMost(bound), bound, format!("at most {bound}"))
}

pub(crate) fn above(bound: f64) -> Band {
    Band::new(Accepts::Above(bound), bound, format!("above {bound}"))
}

pub(crate) fn below(bound: f64) -> Band {
    Band::new(Accepts::Below(bound), bound, format!("below {bound}"))
}

pub(crate) fn between(low: f64, high: f64, reference: f64) -> Band {
    Band::new(Accepts::Between(low, high), reference, format!("{low} to {high}"))
}

pub(crate) fn inside(low: f64, high: f64, reference: f64) -> Band {
    Band::new(Accepts::Inside(low, high), reference, format!("between {low} and {high}"))
}

pub(crate) fn near(reference: f64, tolerance: f64) -> Band {
    Band::new(Accepts::Near(reference, tolerance), reference, format!("within {tolerance}"))
}

/// Numbers with at most this relative error.
pub(crate) fn within(reference: f64, share: f64) -> Band {
    near(reference, share * reference.abs()).saying(format!("within {} %", share * 100.0))
}

pub(crate) fn equal(reference: f64) -> Band {
    near(reference, 0.0).saying("equal")
}

/// What takes more than one number to tell: accepted or not, beside a reference.
pub(crate) fn judged(inside: bool, reference: f64, text: impl Into<String>) -> Band {
    Band::new(Accepts::All(inside), reference, text.into())
}

/// A column of a reference: its name, our number, and what is accepted around the one there.
pub(crate) type Column<'a> = (&'a str, f64, &'a dyn Fn(f64) -> Band);

/// Collects comparisons. How many there will be is declared before a cell runs, so that one that gave nothing cannot go
/// unnoticed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checker {
    declared: usize,
    cells: usize,
    misses: Vec<Miss>,
}

impl Checker {
    pub(crate) fn declaring(count: usize) -> Self {
        Self { declared: count, ..Self::default() }
    }

    pub(crate) fn declare(&mut self, count: usize) {
        self.declared += count;
    }

    pub(crate) fn declared(&self) -> usize {
        self.declared
    }

    pub(crate) fn misses(&self) -> &[Miss] {
        &self.misses
    }

    /// Notes a comparison; returns whether it is inside.
    pub(crate) fn check(&mut self, cell: &str, metric: &str, ours: f64, band: Band) -> bool {
        self.cells += 1;
        let inside = band.contains(ours);
        if !inside {
            self.misses.push(Miss {
                cell: cell.to_owned(),
                metric: metric.to_owned(),
                ours: ours.into(),
                reference: band.reference.into(),
                band: band.text,
            });
        }
        inside
    }

    /// Declares and compares columns of a row; returns the relative difference of the first.
    pub(crate) fn row(&mut self, row: &Row<'_>, cell: &str, columns: &[Column<'_>]) -> Result<f64, String> {
        self.declare(columns.len());
        for (column, ours, band) in columns {
            self.check(cell, column, *ours, band(row.number(column)?));
        }
        let Some((column, ours, _)) = columns.first() else { return Ok(0.0) };
        Ok((ours / row.number(column)? - 1.0).abs())
    }

    /// The verdict: a pass when everything that was declared was compared, and was inside.
    pub(crate) fn verdict(mut self, name: &str, note: String) -> Verdict {
        let (cells, declared) = (self.cells, self.declared);
        if cells != declared || declared == 0 {
            let band = judged(false, declared as f64, "all that were declared, at least one");
            self.check("all", "numbers compared", cells as f64, band);
        }
        let status = if self.misses.is_empty() { Status::Pass } else { Status::Miss };
        Verdict { name: name.to_owned(), status, cells, misses: self.misses, note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_passes_only_when_all_that_was_declared_was_compared() {
        let compared = |declared: usize, count: usize| {
            let mut checker = Checker::declaring(declared);
            (0..count).for_each(|_| assert!(checker.check("a", "b", 1.0, within(1.0, 0.0))));
            checker.verdict("c", String::new())
        };
        assert_eq!(compared(2, 2).status, Status::Pass);
        for (declared, count) in [(0, 0), (2, 1), (1, 2), (0, 1)] {
            let verdict = compared(declared, count);
            assert_eq!((verdict.status, verdict.cells), (Status::Miss, count), "{declared} {count}");
            let Miss { metric, ours, reference, .. } = &verdict.misses[0];
            assert_eq!(metric, "numbers compared");
            assert_eq!((ours.0, reference.0), (Some(count as f64), Some(declared as f64)));
        }
    }

    #[test]
    fn an_undefined_number_is_a_miss_whatever_its_comparison_says() {
        for (ours, reference) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0)] {
            assert!(!judged(true, reference, "anything").contains(ours), "{ours} {reference}");
        }
    }

    #[test]
    fn bands_contain_their_bounds_or_not() {
        let inside = |band: Band| [0.9, 1.0, 1.1].map(|ours| band.contains(ours));
        assert_eq!(inside(at_least(1.0)), [false, true, true]);
        assert_eq!(inside(at_most(1.0)), [true, true, false]);
        assert_eq!(inside(above(1.0)), [false, false, true]);
        assert_eq!(inside(below(1.0)), [true, false, false]);
        assert_eq!(inside(between(1.0, 1.1, 5.0)), [false, true, true]);
        assert_eq!(inside(super::inside(0.9, 1.1, 5.0)), [false, true, false]);
        assert_eq!(inside(equal(1.0)), [false, true, false]);
        // 5 % of -2 are 0.1.
        assert!(within(-2.0, 0.05).contains(-1.95) && !within(-2.0, 0.05).contains(-1.85));
        assert_eq!(within(3.0, 0.15).text, "within 15 %");
        assert_eq!(
            (at_least(0.5).saying("half").beside(1.0).text.as_str(), at_least(0.5).beside(1.0).reference),
            ("half", 1.0)
        );
    }
}
