//! What Järvinen's thesis says of flow initiation beside an interactive media flow (section 2.2, after its publication I).
//!
//! `validation/flow-initiation/README.md` says what was published, how it is read, and why what misses does.

use std::path::Path;

use super::{Checker, Verdict, mean_of_cell};
use flowstart_lab::experiment;
use flowstart_lab::results::summary::{CellSummary, summarize};
use flowstart_lab::study::scenario::Scenario;

const SCENARIO: &str = include_str!("../../../scenarios/flow-initiation.toml");
/// The link like the thesis's network, and its round-trip propagation delay.
const LINK: &str = "hspa";
const RTT_MS: f64 = 100.0;
/// A page of 90 KB: as one object, or as six of 15 KB.
const OBJECT: u64 = 15_000;
const PAGE: u64 = 90_000;
/// More than a page: a bulk flow.
const BULK: u64 = 4_000_000;
/// Numbers of flows that start together, and six of which each starts 20 ms after the one before.
const TOGETHER: [(u32, &str); 3] = [(1, ""), (2, "together:flows=2"), (6, "together:flows=6")];
const APART: &str = "every=20ms,flows=6";
/// MOS of a rating of 80, above which users are satisfied (ITU-T G.107, annex B), and of 50, below which the rating should not
/// fall at all.
const SATISFIED: f64 = 4.03;
const NOT_RECOMMENDED: f64 = 2.58;
/// Part of the transfer's time until whose end harm lasts when it lasts over slow start.
const OVER_SLOW_START: f64 = 0.75;

/// What happened to the media flow in a cell.
#[derive(Clone, Copy, Debug)]
struct Impact {
    fct: f64,
    max_delay: f64,
    onset: f64,
    harm: f64,
    worst_5s: f64,
}

impl Impact {
    fn of(cell: &CellSummary) -> Self {
        let mean = |name| mean_of_cell(cell, name);
        Self {
            fct: mean("fct_ms"),
            max_delay: mean("media_delay_max_ms"),
            onset: mean("media_harm_onset_ms"),
            harm: mean("media_harm_ms"),
            worst_5s: mean("media_worst_5s_mos"),
        }
    }
}

/// Runs the scenario and checks the thesis's statements.
pub fn flow_initiation(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("flow-initiation has no table of numbers that another file could replace".into());
    }
    let mut scenario = Scenario::from_text(SCENARIO).map_err(|_| "built-in scenario cannot be read")?;
    scenario.link = vec![LINK.to_owned()];
    let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let summary = summarize(&plan, &rows);
    let find = |size: u64, window: u32, arrival: &str| {
        let scheme = format!("slow-start:iw={window}");
        let is_it = |cell: &&CellSummary| {
            let written = cell.arrival.as_deref().unwrap_or_default();
            let alone = arrival.is_empty() && written == "together:flows=1";
            cell.size_bytes == size && cell.scheme == scheme && (written == arrival || alone)
        };
        summary.cells.iter().find(is_it).map(Impact::of)
    };
    check(find).ok_or_else(|| "built-in scenario: a cell is missing".into())
}

/// Checks the statements on the cells that `find` gives for a size, an initial window and an arrival.
fn check(find: impl Fn(u64, u32, &str) -> Option<Impact>) -> Option<Verdict> {
    // One flow against six, small impact, more flows and larger windows, lasting harm, and bulk.
    let mut checker = Checker::declaring(4 + 4 + 14 + 10 + 2);
    let ten = find(PAGE, 10, "")?;
    for (name, arrival) in [("together", TOGETHER[2].1), ("20 ms apart", APART)] {
        let six = find(OBJECT, 3, arrival)?;
        let cell = format!("one flow with IW 10 against six with IW 3, {name}");
        let inside = ten.max_delay > six.max_delay;
        checker.check(&cell, "longest delay, ms", ten.max_delay, six.max_delay, inside, "above that of the six flows");
        checker.check(&cell, "harm until, ms", ten.harm, six.harm, ten.harm > six.harm, "after that of the six flows");
    }
    for (flows, arrival) in &TOGETHER[..2] {
        for (size, name) in [(OBJECT, "15 KB"), (PAGE, "90 KB")] {
            let score = find(size, 3, arrival)?.worst_5s;
            let cell = format!("{flows} flows of {name}, IW 3");
            let inside = score >= SATISFIED;
            checker.check(&cell, "MOS of the worst 5 s", score, SATISFIED, inside, format!("at least {SATISFIED}"));
        }
    }
    for (size, name) in [(OBJECT, "15 KB"), (PAGE, "90 KB")] {
        for window in [3, 10] {
            for pair in TOGETHER.windows(2) {
                let [(before, fewer), (flows, more)] = *pair else { continue };
                let (fewer, more) = (find(size, window, fewer)?.max_delay, find(size, window, more)?.max_delay);
                let cell = format!("{flows} flows of {name}, IW {window}");
                checker.check(&cell, "longest delay, ms", more, fewer, more > fewer, format!("above that of {before}"));
            }
        }
        for (flows, arrival) in TOGETHER {
            let (three, ten) = (find(size, 3, arrival)?.max_delay, find(size, 10, arrival)?.max_delay);
            let cell = format!("{flows} flows of {name}, IW 10");
            checker.check(&cell, "longest delay, ms", ten, three, ten > three, "above that of IW 3");
        }
    }
    for (cell, size, window, arrival) in [
        ("six flows of 15 KB, IW 3", OBJECT, 3, TOGETHER[2].1),
        ("six flows of 90 KB, IW 3", PAGE, 3, TOGETHER[2].1),
        ("one flow of 90 KB, IW 10", PAGE, 10, ""),
        ("six flows of 15 KB, IW 10", OBJECT, 10, TOGETHER[2].1),
        ("six flows of 90 KB, IW 10", PAGE, 10, TOGETHER[2].1),
    ] {
        let impact = find(size, window, arrival)?;
        let span = impact.harm - impact.onset;
        checker.check(cell, "harm lasts, ms", span, RTT_MS, span > RTT_MS, "longer than the RTT of the initial window");
        let least = OVER_SLOW_START * impact.fct;
        let band = format!("at least {OVER_SLOW_START} of the transfer's time");
        checker.check(cell, "harm until, ms", impact.harm, least, impact.harm >= least, band);
    }
    let bulk = find(BULK, 10, "")?;
    let score = bulk.worst_5s;
    let inside = score < NOT_RECOMMENDED;
    checker.check(
        "a bulk flow",
        "MOS of the worst 5 s",
        score,
        NOT_RECOMMENDED,
        inside,
        format!("below {NOT_RECOMMENDED}"),
    );
    let page = ten.max_delay;
    let inside = bulk.max_delay > page;
    checker.check("a bulk flow", "longest delay, ms", bulk.max_delay, page, inside, "above that of a page with IW 10");
    Some(
        checker
            .verdict("flow-initiation", "see validation/flow-initiation/README.md for what misses and why".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    /// A world in which delay grows with the window and the number of flows, as the thesis describes it.
    fn impact(size: u64, window: u32, arrival: &str) -> Impact {
        let flows = if arrival.ends_with('6') {
            6.0
        } else if arrival.ends_with('2') {
            2.0
        } else {
            1.0
        };
        let max_delay = 50.0 + f64::from(window) * f64::from(window) * flows + size as f64 / 1e4;
        let harm = 400.0 + f64::from(window) * 10.0;
        let worst_5s = if size == BULK { 1.1 } else { 4.3 };
        Impact { fct: 500.0, max_delay, onset: 150.0, harm, worst_5s }
    }

    #[test]
    fn the_thesis_statements_pass_when_they_hold() {
        let verdict = check(|size, window, arrival| Some(impact(size, window, arrival))).unwrap();
        // 4 of one against six flows, 4 of small impact, 2 sizes with 4 of more flows and 3 of windows, 5 with 2 of lasting
        // harm, 2 of bulk.
        assert_eq!((verdict.cells, verdict.status), (4 + 4 + 14 + 10 + 2, Status::Pass), "{:?}", verdict.misses);
    }

    #[test]
    fn a_link_on_which_nobody_is_harmed_misses_everything_but_small_impact() {
        let calm = Impact { fct: 500.0, max_delay: 50.0, onset: f64::NAN, harm: 0.0, worst_5s: 4.3 };
        let verdict = check(|_, _, _| Some(calm)).unwrap();
        assert_eq!(verdict.misses.len(), verdict.cells - 4, "{:?}", verdict.misses);
        assert!(check(|_, _, _| None).is_none());
    }
}
