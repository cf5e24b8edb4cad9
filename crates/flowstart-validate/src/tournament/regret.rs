//! How far schemes are from the best.

use serde::Serialize;

use super::bars::Joined;
use super::journal::Collected;

/// How far a scheme is from the fastest of each cell: its mean completion time over that one's, less 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regret {
    /// The scheme.
    pub scheme: String,
    /// Cells that it has.
    pub cells: usize,
    /// Cells of these in which it did not complete; the numbers are of the others.
    pub failed: usize,
    /// The mean.
    pub mean: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The worst.
    pub worst: Option<f64>,
}

/// The regret of each scheme.
pub fn regrets(collected: &Collected, schemes: &[String]) -> Vec<Regret> {
    let of = |scheme: &String| {
        let all: Vec<f64> = collected
            .cells
            .iter()
            .filter_map(|(_, result)| Some(result.of(scheme)?.mean_fct_ms() / result.best_fct_ms()? - 1.0))
            .collect();
        let finite: Vec<f64> = all.iter().copied().filter(|regret| regret.is_finite()).collect();
        let of = |joined: Joined| (!finite.is_empty()).then(|| joined.of(&finite));
        Regret {
            scheme: scheme.clone(),
            cells: all.len(),
            failed: all.len() - finite.len(),
            mean: of(Joined::Mean),
            p95: of(Joined::P95),
            worst: of(Joined::Worst),
        }
    };
    schemes.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tournament::runs::{CellResult, Runs};
    use crate::tournament::sets::Set;

    #[test]
    fn regret_is_the_distance_to_the_best() {
        let runs = |scheme: &str, fct: Option<f64>| Runs {
            scheme: scheme.into(),
            fct_ms: vec![fct; 5],
            sent_twice: vec![0.0; 5],
            ..Runs::default()
        };
        let schemes = vec![runs("slow", Some(1000.0)), runs("rival", Some(500.0)), runs("new", None)];
        let cell = Set::Design.cells().remove(0);
        let result = CellResult { cell: cell.name.clone(), schemes, ..CellResult::default() };
        let collected = Collected { set: Set::Design, of: 1, cells: vec![(cell, result)], reps: 5 };
        let regrets = regrets(&collected, &["slow", "rival", "new", "nobody"].map(str::to_owned));
        assert_eq!((regrets[0].mean, regrets[1].worst), (Some(1.0), Some(0.0)));
        assert_eq!((regrets[2].failed, regrets[2].mean, regrets[3].cells), (1, None, 0));
    }
}
