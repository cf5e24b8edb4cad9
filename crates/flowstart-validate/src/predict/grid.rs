//! Predict on cells of the load-transient grid, beside the oracle, its fallback and PIE.

use std::fmt::Write;

use flowstart_core::aqm::{QueueConfig, codel, pie, predict};
use rayon::prelude::*;

use crate::transient::grid::Grid;
use crate::transient::{Condition, Config, Discipline, Metrics, run};

/// Packets of available bandwidth-delay product per flow from which on every cell has to be close to the oracle.
pub const LARGE_PER_FLOW: f64 = 30.0;
/// Packets of available bandwidth-delay product of all flows up to which growth cannot be told in time.
pub const SMALL: f64 = 20.0;

/// Disciplines that are measured against the oracle, Predict first and its fallback second.
pub const DISCIPLINES: [&str; 3] = ["predict", "codel", "pie"];

/// What the disciplines did in a cell.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The cell.
    pub cell: Config,
    /// The discipline that knows the truth.
    pub oracle: Metrics,
    /// [`DISCIPLINES`] in their order.
    pub measured: [Metrics; 3],
}

/// How much of the pipe flows may use, which decides what is asked of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// At least 30 packets of available bandwidth-delay product per flow.
    Large,
    /// More than 20 packets in all.
    Middle,
    /// 20 packets and less.
    Small,
}

impl Class {
    /// That of a cell.
    pub fn of(cell: &Config) -> Self {
        let packets = cell.available_bdp();
        if packets >= LARGE_PER_FLOW * f64::from(cell.flows) {
            Self::Large
        } else if packets > SMALL {
            Self::Middle
        } else {
            Self::Small
        }
    }
}

impl Outcome {
    /// Runs a cell with all disciplines and this seed.
    pub fn of(cell: &Config, seed: u64) -> Self {
        let places = if let Condition::Places(places) = cell.condition { Some(places) } else { None };
        let mut predict = predict::Config::default();
        predict.flows = places.unwrap_or(predict.flows);
        let registered = |queue: QueueConfig| run(cell, &Discipline::Registered(queue), seed);
        Self {
            cell: cell.clone(),
            oracle: run(cell, &Discipline::Oracle, seed),
            measured: [
                registered(QueueConfig::Predict(predict)),
                registered(QueueConfig::CoDel(codel::Config::default())),
                registered(QueueConfig::Pie(pie::Config::default())),
            ],
        }
    }

    /// The cell's class.
    pub fn class(&self) -> Class {
        Class::of(&self.cell)
    }

    /// Completion time over the oracle's.
    pub fn fct_ratio(&self, discipline: usize) -> f64 {
        self.measured[discipline].fct_secs() / self.oracle.fct_secs()
    }

    /// Peak delay above the oracle's, in RTTs.
    pub fn peak_excess(&self, discipline: usize) -> f64 {
        self.measured[discipline].peak_rtts() - self.oracle.peak_rtts()
    }
}

/// Runs cells; the outcomes are in their order.
pub fn run_cells(cells: &[Config], seed: u64) -> Vec<Outcome> {
    cells.par_iter().map(|cell| Outcome::of(cell, seed)).collect()
}

/// Every so many cells of the grid, chosen by a hash of their number, so that no dimension is favoured; `rest` chooses
/// which.
pub fn sample(grid: &Grid, every: u64, rest: u64) -> Vec<Config> {
    let chosen = |number: usize| flowstart_core::rng::mix(number as u64) % every.max(1) == rest;
    grid.cells().enumerate().filter(|(number, _)| chosen(*number)).map(|(_, cell)| cell).collect()
}

/// The cells with all numbers as CSV, a row per cell and discipline.
pub fn csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "aqm,mbit,rtt_ms,flows,iw,pacing_gain,delayed_acks,background,mixed_rtts,ecn,reduction,available_bdp,\
         fct_s,peak_rtts,p99_s,exit_load,utilization,dropped,marked,timeouts,missed,false,condition\n",
    );
    for outcome in outcomes {
        let measured = DISCIPLINES.iter().copied().zip(&outcome.measured);
        for (name, metrics) in std::iter::once(("oracle", &outcome.oracle)).chain(measured) {
            let cell = &outcome.cell;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name},{},{},{},{},{},{},{},{},{},{},{:.3},{:.6},{:.6},{:.6},{:.4},{:.4},{:.2},{:.2},{},{},{},{}",
                cell.rate.as_mbit(),
                cell.rtt.as_millis_f64(),
                cell.flows,
                cell.initial_window,
                cell.pacing_gain.unwrap_or(0.0),
                u8::from(cell.delayed_acks),
                cell.background,
                u8::from(cell.mixed_rtts),
                u8::from(cell.ecn),
                cell.reduction,
                cell.available_bdp(),
                metrics.fct_secs(),
                metrics.peak_rtts(),
                metrics.p99_secs(),
                metrics.exit_load(),
                metrics.utilization().unwrap_or(f64::NAN),
                metrics.dropped(),
                metrics.marked(),
                metrics.timeouts(),
                metrics.missed(),
                metrics.false_signals(),
                cell.condition.name(),
            );
        }
    }
    text
}

/// A discipline over cells of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Cells.
    pub cells: usize,
    /// Part of them that is won: completion time at most 1.05 of the oracle's and peak delay at most 0.25 RTT above.
    pub won: f64,
    /// Part with a completion time at most 1.05 of the oracle's.
    pub fct_kept: f64,
    /// Part with a peak delay at most that of the fallback.
    pub peak_kept: f64,
    /// Median, 90th percentile and largest completion time over the oracle's.
    pub fct: [f64; 3],
    /// The same of the peak delay above the oracle's, in RTTs.
    pub peak: [f64; 3],
    /// 10th percentile, median and 90th percentile of the window at the end of slow start over the available
    /// bandwidth-delay product.
    pub exit_load: [f64; 3],
    /// Mean utilization in the ten RTTs after.
    pub utilization: f64,
}

impl Summary {
    /// What `discipline` did in these cells.
    pub fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>, discipline: usize) -> Self {
        let outcomes: Vec<&Outcome> = outcomes.collect();
        let part = |holds: &dyn Fn(&Outcome) -> bool| {
            outcomes.iter().filter(|outcome| holds(outcome)).count() as f64 / outcomes.len() as f64
        };
        let quantiles = |of: &dyn Fn(&Outcome) -> f64, places: [f64; 3]| {
            let mut values: Vec<f64> = outcomes.iter().map(|outcome| of(outcome)).collect();
            values.sort_by(f64::total_cmp);
            let last = values.len().saturating_sub(1);
            places.map(|place| values.get((place * last as f64).round() as usize).copied().unwrap_or(f64::NAN))
        };
        let peak = |outcome: &Outcome, discipline: usize| outcome.measured[discipline].peak_secs();
        let utilizations: Vec<f64> =
            outcomes.iter().filter_map(|outcome| outcome.measured[discipline].utilization()).collect();
        Self {
            cells: outcomes.len(),
            won: part(&|outcome| outcome.measured[discipline].wins_against(&outcome.oracle)),
            fct_kept: part(&|outcome| outcome.fct_ratio(discipline) <= 1.05),
            peak_kept: part(&|outcome| peak(outcome, discipline) <= peak(outcome, FALLBACK)),
            fct: quantiles(&|outcome| outcome.fct_ratio(discipline), [0.5, 0.9, 1.0]),
            peak: quantiles(&|outcome| outcome.peak_excess(discipline), [0.5, 0.9, 1.0]),
            exit_load: quantiles(&|outcome| outcome.measured[discipline].exit_load(), [0.1, 0.5, 0.9]),
            utilization: utilizations.iter().sum::<f64>() / utilizations.len() as f64,
        }
    }
}

/// Which of [`DISCIPLINES`] Predict falls back to.
pub const FALLBACK: usize = 1;

/// Whether a cell belongs to a class.
type Belongs = fn(&Outcome) -> bool;

/// Classes of cells by name.
pub const CLASSES: [(&str, Belongs); 4] = [
    ("30 packets per flow and more", |outcome| outcome.class() == Class::Large),
    ("others above 20 packets", |outcome| outcome.class() == Class::Middle),
    ("all above 20 packets", |outcome| outcome.class() != Class::Small),
    ("20 packets and less", |outcome| outcome.class() == Class::Small),
];

/// A table in Markdown: a row per class and discipline.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| available BDP | AQM | cells | won | FCT kept | peak at most CoDel's | FCT / oracle's p50, p90, max | \
         peak above the oracle's, RTT | exit load p10, p50, p90 | utilization |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (class, belongs) in CLASSES {
        for (discipline, name) in DISCIPLINES.iter().enumerate() {
            let of = Summary::of(outcomes.iter().filter(|outcome| belongs(outcome)), discipline);
            let percent = |part: f64| format!("{:.1} %", 100.0 * part);
            let three = |values: [f64; 3]| values.map(|value| format!("{value:.2}")).join(", ");
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {class} | {name} | {} | {} | {} | {} | {} | {} | {} | {:.2} |",
                of.cells,
                percent(of.won),
                percent(of.fct_kept),
                percent(of.peak_kept),
                three(of.fct),
                three(of.peak),
                three(of.exit_load),
                of.utilization,
            );
        }
    }
    text
}
