//! Runs that are simulated again for the report.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::study::plan::{Cell, Plan};
use crate::trace::observe::{self, Kept, Shown};

/// Progress of the runs that are simulated again for the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Number of runs that were simulated again.
    pub done: usize,
    /// Number of runs to simulate again.
    pub of: usize,
}

/// Simulates the shown runs without observations: runs of an earlier, interrupted experiment, and the few examples of
/// very many runs.
pub(super) fn see_the_rest(
    plan: &Plan,
    shown: &[(Cell, u32, Shown)],
    kept: &mut Kept,
    progress: &(dyn Fn(Again) + Sync),
) {
    let mut rest: BTreeMap<(usize, u32), (Cell, Shown)> = BTreeMap::new();
    for (cell, rep, shown) in shown {
        if let Some(missing) = kept.missing(cell, *rep, *shown) {
            let (_, all) = rest.entry((cell.index, *rep)).or_insert((*cell, Shown::default()));
            *all = all.or(missing);
        }
    }
    let (of, done) = (rest.len(), AtomicUsize::new(0));
    let rest: Vec<_> = rest.into_iter().collect();
    let seen: Vec<_> = rest
        .par_iter()
        .map(|((_, rep), (cell, shown))| {
            let (_, seen) = observe::again(plan, cell, *rep, *shown);
            progress(Again { done: done.fetch_add(1, Ordering::Relaxed) + 1, of });
            (cell.index, *rep, seen)
        })
        .collect();
    seen.into_iter().for_each(|(cell, rep, seen)| kept.add(cell, rep, seen));
}
