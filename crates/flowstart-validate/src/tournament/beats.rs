//! Who beats whom. One scheme beats another in a cell if nothing about it is worse and something is better, each beyond
//! a margin. The better has to be sure, whatever number of rivals there are; the worse need not be.

use flowstart_statistics::{LEVEL, RESAMPLES, bca, holm, mean};
use rayon::prelude::*;
use serde::Serialize;

use super::runs::{CellResult, Runs};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    /// The completion time.
    Time,
    /// What is sent twice.
    Waste,
    /// What others get in the 10 s from the start.
    Goodput,
}

/// The margin of completion times and of the others' goodput, as a part of them.
const RATIO: f64 = 0.02;
/// The margin of what is sent twice over the payload.
const WASTE: f64 = 0.01;

/// A repetition of two schemes.
type Pair = (f64, f64);

impl Metric {
    const ALL: [Self; 3] = [Self::Time, Self::Waste, Self::Goodput];

    /// The repetitions of both schemes; `None` if the cell has no such metric, or a transfer did not complete.
    fn pairs(self, a: &Runs, b: &Runs) -> Option<Vec<Pair>> {
        let lists = match self {
            Self::Time => (a.completed()?, b.completed()?),
            Self::Waste => (a.sent_twice.clone(), b.sent_twice.clone()),
            Self::Goodput => (a.others_mbit.clone(), b.others_mbit.clone()),
        };
        let is_known = !lists.0.is_empty() && lists.0.len() == lists.1.len();
        is_known.then(|| lists.0.into_iter().zip(lists.1).collect())
    }

    /// How much better the first scheme is; negative if it is worse.
    fn gain(self, pairs: &[Pair]) -> Option<f64> {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (a, b) = (mean(&a)?, mean(&b)?);
        let gain = match self {
            Self::Time => 1.0 - a / b,
            Self::Waste => b - a,
            Self::Goodput => a / b - 1.0,
        };
        gain.is_finite().then_some(gain)
    }

    fn margin(self) -> f64 {
        match self {
            Self::Time | Self::Goodput => RATIO,
            Self::Waste => WASTE,
        }
    }
}

/// The p-value of "the first scheme beats the second"; `None`: it does not.
fn beats(a: &Runs, b: &Runs, seed: u64) -> Option<f64> {
    // Who does not complete is worse than who does.
    match (a.completed().is_some(), b.completed().is_some()) {
        (false, _) => return None,
        (true, false) => return Some(0.0),
        (true, true) => {}
    }
    let mut least: Option<f64> = None;
    let mut tests = 0.0;
    for metric in Metric::ALL {
        let Some(pairs) = metric.pairs(a, b) else { continue };
        tests += 1.0;
        let gain = metric.gain(&pairs).unwrap_or(0.0);
        if gain < -metric.margin() {
            return None;
        }
        if gain > metric.margin() {
            let estimate = bca(&pairs, |pairs| metric.gain(pairs), LEVEL, RESAMPLES, seed);
            let p = estimate.and_then(|estimate| estimate.p_value(metric.margin())).unwrap_or(1.0);
            least = Some(least.map_or(p, |least| least.min(p)));
        }
    }
    // One of several metrics is enough, so each counts as many times (Bonferroni).
    least.map(|p| (p * tests).min(1.0))
}

/// The schemes by which a scheme is beaten in a cell, surely (Holm over all others); `None` if it did not run there.
pub fn beaten_by(cell: &CellResult, scheme: &str, seed: u64) -> Option<Vec<String>> {
    let runs = cell.of(scheme)?;
    let rivals: Vec<&Runs> = cell.schemes.iter().filter(|rival| rival.scheme != scheme).collect();
    // A rival that is not better is a test with the largest p-value.
    let tests: Vec<Option<f64>> = rivals.iter().map(|rival| Some(beats(rival, runs, seed).unwrap_or(1.0))).collect();
    let sure = holm(&tests, 1.0 - LEVEL);
    Some(rivals.iter().zip(sure).filter(|(_, sure)| *sure).map(|(rival, _)| rival.scheme.clone()).collect())
}

/// In how many cells each scheme beats each other one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// The schemes.
    pub schemes: Vec<String>,
    /// Cells in which the scheme of a row beats that of a column.
    pub beats: Vec<Vec<usize>>,
    /// Cells that have both.
    pub both: Vec<Vec<usize>>,
    /// Cells in which a scheme is beaten by any other, and by whom.
    pub beaten: Vec<Vec<Beaten>>,
}

/// A cell in which a scheme is beaten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Beaten {
    /// The cell.
    pub cell: String,
    /// By whom.
    pub by: Vec<String>,
}

/// Who beats whom in all these cells.
pub fn matrix(cells: &[&CellResult], schemes: &[String], seed: u64) -> Matrix {
    let count = schemes.len();
    let mut matrix = Matrix {
        schemes: schemes.to_vec(),
        beats: vec![vec![0; count]; count],
        both: vec![vec![0; count]; count],
        beaten: vec![Vec::new(); count],
    };
    let all = |cell: &&CellResult| schemes.iter().map(|scheme| beaten_by(cell, scheme, seed)).collect();
    let beaten: Vec<Vec<Option<Vec<String>>>> = cells.par_iter().map(all).collect();
    for (cell, beaten) in cells.iter().zip(beaten) {
        for (column, by) in beaten.into_iter().enumerate() {
            let Some(by) = by else { continue };
            for (row, rival) in schemes.iter().enumerate() {
                matrix.both[row][column] += usize::from(row != column && cell.of(rival).is_some());
                matrix.beats[row][column] += usize::from(by.contains(rival));
            }
            if !by.is_empty() {
                matrix.beaten[column].push(Beaten { cell: cell.cell.clone(), by });
            }
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(scheme: &str, fct: [f64; 5], waste: f64, others: Option<f64>) -> Runs {
        Runs {
            scheme: scheme.into(),
            fct_ms: fct.map(|fct| Some(fct).filter(|fct| *fct > 0.0)).to_vec(),
            sent_twice: vec![waste; 5],
            others_mbit: others.map_or(Vec::new(), |mbit| vec![mbit; 5]),
            without_mbit: others.map_or(Vec::new(), |_| vec![100.0; 5]),
            ..Runs::default()
        }
    }

    fn cell(schemes: Vec<Runs>) -> CellResult {
        CellResult { cell: "some-001".into(), schemes, ..CellResult::default() }
    }

    const STEADY: [f64; 5] = [100.0, 101.0, 99.0, 100.0, 100.0];

    fn beaten(rival: Runs, scheme: Runs) -> bool {
        !beaten_by(&cell(vec![rival, scheme]), "b", 1).unwrap().is_empty()
    }

    #[test]
    fn better_in_one_thing_and_worse_in_none_beats() {
        let faster = STEADY.map(|fct| fct * 0.9);
        assert!(beaten(runs("a", faster, 0.0, None), runs("b", STEADY, 0.0, None)));
        // Faster by waste does not beat, and less waste that is slower neither.
        assert!(!beaten(runs("a", faster, 0.03, None), runs("b", STEADY, 0.0, None)));
        assert!(!beaten(runs("a", STEADY, 0.0, None), runs("b", faster, 0.03, None)));
        // Within the margins nothing is better or worse: 1 % of time, half a point of waste.
        assert!(!beaten(runs("a", STEADY.map(|fct| fct * 0.99), 0.0, None), runs("b", STEADY, 0.0, None)));
        assert!(beaten(runs("a", faster, 0.005, None), runs("b", STEADY, 0.0, None)));
        // Others count in the same way.
        assert!(beaten(runs("a", STEADY, 0.0, Some(90.0)), runs("b", STEADY, 0.0, Some(80.0))));
        assert!(!beaten(runs("a", faster, 0.0, Some(80.0)), runs("b", STEADY, 0.0, Some(90.0))));
        assert!(!beaten(runs("a", STEADY, 0.0, Some(90.0)), runs("b", STEADY, 0.0, Some(89.0))));
    }

    #[test]
    fn what_scatters_is_not_sure() {
        let scattered = [20.0, 180.0, 90.0, 60.0, 110.0];
        assert!(!beaten(runs("a", scattered, 0.0, None), runs("b", STEADY, 0.0, None)));
    }

    #[test]
    fn who_fails_is_beaten_by_who_completes() {
        let failed = [100.0, -1.0, 100.0, 100.0, 100.0];
        assert!(beaten(runs("a", STEADY.map(|fct| fct * 9.0), 0.0, None), runs("b", failed, 0.0, None)));
        assert!(!beaten(runs("a", failed, 0.0, None), runs("b", STEADY.map(|fct| fct * 9.0), 0.0, None)));
        assert!(!beaten(runs("a", failed, 0.0, None), runs("b", failed, 0.0, None)));
        assert_eq!(beaten_by(&cell(vec![runs("a", STEADY, 0.0, None)]), "b", 1), None);
    }

    #[test]
    fn many_rivals_make_one_less_sure() {
        // A p-value of some percent is enough for one rival and not for twenty that do nothing.
        let rival = runs("a", [96.4, 90.0, 99.0, 93.0, 96.4], 0.0, None);
        let scheme = runs("b", [100.0; 5], 0.0, None);
        let p = beats(&rival, &scheme, 1).unwrap();
        assert!((0.002..0.05).contains(&p), "{p}");
        assert!(beaten(rival.clone(), scheme.clone()));
        let idle = |number: usize| runs(&format!("idle-{number}"), [100.0; 5], 0.0, None);
        let many: Vec<Runs> = (0..30).map(idle).chain([rival, scheme]).collect();
        assert_eq!(beaten_by(&cell(many), "b", 1), Some(Vec::new()));
    }

    #[test]
    fn the_matrix_counts_cells() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let faster = STEADY.map(|fct| fct * 0.9);
        let both = cell(vec![runs("a", faster, 0.0, None), runs("b", STEADY, 0.0, None)]);
        let wasteful = cell(vec![runs("a", faster, 0.5, None), runs("c", STEADY, 0.0, None)]);
        let matrix = matrix(&[&both, &wasteful, &both], &names, 1);
        assert_eq!(matrix.beats, [[0, 2, 0], [0, 0, 0], [0, 0, 0]]);
        assert_eq!(matrix.both, [[0, 2, 1], [2, 0, 0], [1, 0, 0]]);
        assert_eq!(matrix.beaten[1].len(), 2);
        assert_eq!(matrix.beaten[1][0].by, ["a"]);
    }
}
