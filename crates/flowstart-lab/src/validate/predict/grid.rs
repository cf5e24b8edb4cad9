//! Predict on cells of the load-transient grid, beside the oracle, its fallback and PIE.

use std::fmt::Write;

use flowstart_core::aqm::{QueueConfig, codel, pie, predict};
use rayon::prelude::*;

use crate::transient::{Config, Discipline, Metrics, run};

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

impl Outcome {
    /// Runs a cell with all disciplines and this seed.
    pub fn of(cell: &Config, seed: u64) -> Self {
        let registered = |queue: QueueConfig| run(cell, &Discipline::Registered(queue), seed);
        Self {
            cell: cell.clone(),
            oracle: run(cell, &Discipline::Oracle, seed),
            measured: [
                registered(QueueConfig::Predict(predict::Config::default())),
                registered(QueueConfig::CoDel(codel::Config::default())),
                registered(QueueConfig::Pie(pie::Config::default())),
            ],
        }
    }

    /// The cell's class.
    pub fn class(&self) -> Class {
        let packets = self.cell.available_bdp();
        if packets >= LARGE_PER_FLOW * f64::from(self.cell.flows) {
            Class::Large
        } else if packets > SMALL {
            Class::Middle
        } else {
            Class::Small
        }
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

/// Runs cells on so many threads (0: all cores); the outcomes are in the order of the cells.
pub fn run_cells(cells: &[Config], seed: u64, jobs: usize) -> Result<Vec<Outcome>, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(|error| error.to_string())?;
    Ok(pool.install(|| cells.par_iter().map(|cell| Outcome::of(cell, seed)).collect()))
}

/// The cells with all numbers as CSV, a row per cell and discipline.
pub fn csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "aqm,mbit,rtt_ms,flows,iw,pacing_gain,delayed_acks,background,mixed_rtts,ecn,reduction,available_bdp,\
         fct_s,peak_rtts,p99_s,exit_load,utilization,dropped,marked,timeouts,missed,false\n",
    );
    for outcome in outcomes {
        let measured = DISCIPLINES.iter().copied().zip(&outcome.measured);
        for (name, metrics) in std::iter::once(("oracle", &outcome.oracle)).chain(measured) {
            let cell = &outcome.cell;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name},{},{},{},{},{},{},{},{},{},{},{:.3},{:.6},{:.6},{:.6},{:.4},{:.4},{:.2},{:.2},{},{},{}",
                cell.rate.as_mbit(),
                cell.rtt.as_millis(),
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
            );
        }
    }
    text
}
