//! Published figures and reference runs against this build: [`ENTRIES`].
//!
//! | Looking for | Where |
//! |---|---|
//! | what is accepted, and what missed | `check` |
//! | tables of numbers, and what is wrong with a file | [`mod@reference`] |
//! | runs of the lab's scenarios | `results` |
//! | statements that only compare numbers | `statements`, and tables in `validation/` |
//! | worlds that are compared packet by packet | `bench` |
//! | load transients | [`transient`] |
//! | a scheme beside all others, on cells drawn before | [`tournament`] |
//!
//! An entry that misses its band stays visible as a miss. The bands are those of the plan and are not widened.

use std::path::Path;

use flowstart_core::spec::names;
use flowstart_lab::experiment::threads;

/// The text of a file in `validation/`, which the build script has found.
macro_rules! validation_file {
    ($file:literal) => {
        include_str!(concat!(env!("FLOWSTART_VALIDATION"), "/", $file))
    };
}

mod bench;
mod check;
mod claims;
mod dualpi2;
mod linux;
mod ns2;
mod ns2_aqm;
mod ns3;
pub mod predict;
mod published;
mod quic;
mod quick_start;
pub mod reference;
mod results;
mod search;
mod slides;
mod statements;
mod table1;
pub mod tournament;
pub mod transient;
mod xcp;

pub use check::{Miss, Number, Status, Verdict};
pub use published::published_table;

use check::Checker;
use predict::{estimate, hard_loads};
use quick_start::{attacks, figures};
use reference::{Reference, Row, Table};

/// Something that is validated.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name.
    pub name: &'static str,
    /// What it is compared with.
    pub source: &'static str,
    /// What it needs.
    pub needs: Needs,
    check: Check,
}

/// What an entry needs.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// Nothing from outside. So many numbers are compared besides those that it declares as it finds them.
    Nothing(usize),
    /// Tables of numbers.
    Tables(&'static Reference),
}

/// What an entry is given.
#[derive(Debug)]
struct Input {
    /// Name.
    entry: &'static str,
    tables: Vec<Table>,
    /// Another file stands for its tables.
    replaced: bool,
    /// Threads of an experiment; 0: one per core.
    jobs: usize,
}

impl Input {
    /// The rows of all tables.
    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.tables.iter().flat_map(Table::rows)
    }
}

/// Compares and returns a note: how close it was, and known causes of misses.
type Check = fn(&Input, &mut Checker) -> Result<String, String>;

const fn tables(name: &'static str, source: &'static str, tables: &'static Reference, check: Check) -> Entry {
    Entry { name, source, needs: Needs::Tables(tables), check }
}

const fn numbers(count: usize, name: &'static str, source: &'static str, check: Check) -> Entry {
    Entry { name, source, needs: Needs::Nothing(count), check }
}

/// The entries in the order in which they are checked.
pub const ENTRIES: &[Entry] = &[
    tables("ns2-single-flow", "transfers without loss in ns-2", &ns2::PLAIN, ns2::single_flow),
    tables("ns2-chain", "a drop-tail chain in ns-2", &ns2::CHAIN, ns2::chain),
    tables("ns2-quick-start", "Quick-Start alone in ns-2", &ns2::QUICK_START, ns2::quick_start),
    tables("ns2-router-checks", "what Quick-Start routers granted in ns-2", &ns2::CHECKS, ns2::router_checks),
    tables("ns2-aqm-transient", "queue disciplines under slow start in ns-2", &ns2_aqm::TABLES, ns2_aqm::transient),
    tables("quick-start-figure-1", "time-sequence plots of Quick-Start's paper", &figures::SEQUENCE, figures::figure_1),
    numbers(33, "quick-start-figure-2", "Quick-Start's paper: improvement by size and RTT", figures::figure_2),
    numbers(60, "quick-start-figure-3", "Quick-Start's paper: count of round trips", figures::figure_3),
    numbers(34, "quick-start-attacks", "Quick-Start's paper: attacks, and what helps", attacks::attacks),
    tables("ns3-startup", "TCP alone and beside a long flow in ns-3", &ns3::TABLES, ns3::startup),
    tables("linux-startup", "TCP alone and beside a long flow in Linux", &linux::ALONE, linux::startup),
    numbers(
        26,
        "quick-start-load",
        "Quick-Start's paper, figure 4: load with and without it",
        statements::of_scenarios,
    ),
    numbers(29, "quick-start-drop-rates", "Quick-Start's paper, figure 5: where some use it", statements::of_scenarios),
    numbers(3, "quick-start-durations", "Quick-Start's paper, figure 6: each connection", figures::figure_6),
    numbers(
        77,
        "quick-start-threshold",
        "Quick-Start's paper, figure 8: the Target algorithm",
        statements::of_scenarios,
    ),
    numbers(11, "quick-start-utilization", "Quick-Start's paper, figure 9: two estimates", statements::of_scenarios),
    numbers(8, "quick-start-extreme", "Quick-Start's paper, figure 10: Extreme Quick-Start", statements::of_scenarios),
    numbers(
        15,
        "quick-start-extreme-conservative",
        "Quick-Start's paper, figure 11: a low Target",
        statements::of_scenarios,
    ),
    numbers(14, "quick-start-request-size", "Quick-Start's paper: Greedy and Ideal requests", statements::of_scenarios),
    numbers(15, "slides-speedup", "Scharf's slides: benefit of fast startups by size", slides::speedup),
    numbers(15, "slides-flow-control", "Scharf's slides: what receive windows do", statements::of_scenarios),
    numbers(38, "slides-shared-bottleneck", "Scharf's slides: rising load", statements::of_scenarios),
    numbers(24, "slides-mixed-rtts", "Scharf's slides: mixed RTTs and sizes", statements::of_scenarios),
    numbers(52, "xcp-fairness", "XCP's paper: utilization, drops, queues and shares", xcp::fairness),
    numbers(34, "flow-initiation", "a thesis on flows that start beside media", statements::of_scenarios),
    numbers(27, "claim-red-slow", "a thesis on AQMs under load transients", claims::transients),
    numbers(12, "claim-hred-rtt", "the same: HRED needs its RTT", claims::hred_needs_its_rtt),
    numbers(16, "claim-hred-delay", "the same: HRED has the least delay", claims::transients),
    numbers(16, "claim-codel-pie-rtt", "the same: CoDel and PIE", claims::transients),
    numbers(8, "claim-pie-departure-rate", "the same: PIE's estimator", claims::transients),
    numbers(72, "claim-predict", "the same: Predict controls the peak", claims::transients),
    numbers(34, "dualpi2-coexistence", "RFC 9332: scalable and classic flows", dualpi2::coexistence),
    numbers(0, "predict-grid", "Predict beside an oracle under load transients", predict::predict_grid),
    numbers(0, "predict-false-triggers", "loads that are no transient", predict::predict_false_triggers),
    numbers(12, "predict-estimate", "Predict's estimate of the load beside the truth", estimate::predict_estimate),
    numbers(195, "predict-hard-loads", "transients that are hard to see", hard_loads::predict_hard_loads),
    numbers(27, "search-geo", "slides of SEARCH's authors: a satellite link", search::geo),
    numbers(12, "quic-search-geo", "the model beside the real QUIC stack, satellite link", quic::search_geo),
    numbers(24, "quic-table1", "the model beside the real QUIC stack, links of the Blitzstart paper", quic::table1),
    tables(
        "blitzstart-table1",
        "60 cells of the Blitzstart paper, and its statements",
        &table1::TABLE,
        table1::validate,
    ),
];

/// Validates an entry, against another reference file with the same columns if one is given. The error says what is
/// wrong with the input.
pub fn validate(name: &str, reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    let names = || ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>();
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| names::unknown(name, &names(), "`flowstart validate --help` shows all entries"))?;
    let (tables, numbers, rows) = match entry.needs {
        Needs::Nothing(_) if reference.is_some() => {
            return Err(format!("{name} has no table of numbers that another file could replace"));
        }
        Needs::Nothing(numbers) => (Vec::new(), numbers, ""),
        Needs::Tables(builtin) => (Table::load(reference, builtin)?, 0, builtin.rows),
    };
    let input = Input { entry: entry.name, tables, replaced: reference.is_some(), jobs };
    let mut checker = Checker::declaring(numbers);
    let pool = threads(jobs).map_err(|error| error.to_string())?;
    let note = pool.install(|| (entry.check)(&input, &mut checker))?;
    if !rows.is_empty() && checker.declared() == 0 {
        return Err(format!("{name}: no row {rows}"));
    }
    Ok(checker.verdict(name, note))
}
