//! What Järvinen's thesis says of queue disciplines under load transients, measured by [`crate::transient`]. Orderings
//! and bands are in `validation/load-transients/statements.toml`, of which this gives the numbers.
//!
//! `validation/load-transients/README.md` says where each statement stands, how it is read as cells and bands, and why
//! they miss where they do.

use std::collections::BTreeSet;

use flowstart_core::event::Decision;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::spec::aqm::Aqm;
use flowstart_sim::observe::trace::{Entry, Event, Trace};

use crate::Input;
use crate::check::{Checker, judged};
use crate::statements::{self, Numbers, named};
use crate::transient::{Config, Metrics, Moment, run_observed};

/// Seeds of a cell; numbers are means over them.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
/// A discipline does well up to this completion time over the oracle's, and this peak delay above the oracle's in RTTs.
const WELL: (f64, f64) = (1.10, 0.35);

pub(crate) fn transients(input: &Input, checker: &mut Checker) -> Result<String, String> {
    statements::measured(input, checker, |cell| Ok(Measured::of(cell)?.numbers()))
}

/// A discipline and a cell, such as `codel 10 Mbit/s, 20 ms, 1 flows, IW 10, marks, paced, buffer of 8 packets`.
fn read(text: &str) -> Option<(Config, Aqm)> {
    let (aqm, cell) = text.split_once(' ')?;
    let mut parts = cell.split(", ");
    let mut number = |unit: &str| parts.next()?.strip_suffix(unit)?.parse::<f64>().ok();
    let (mbit, rtt_ms, flows) = (number(" Mbit/s")?, number(" ms")?, number(" flows")?);
    let (rate, rtt) = (Rate::from_bits_per_sec((mbit * 1e6) as u64), Duration::from_millis(rtt_ms as u64));
    let mut cell = Config { flows: flows as u32, ..Config::new(rate, rtt) };
    for part in parts {
        match part {
            "marks" => cell.ecn = true,
            "drops" => cell.ecn = false,
            "paced" => cell.pacing_gain = Some(2.0),
            "buffer of 8 packets" => cell.buffer = Some(8),
            "buffer of one BDP" => cell.buffer = Some(cell.available_bdp() as u64),
            window => cell.initial_window = window.strip_prefix("IW ")?.parse().ok()?,
        }
    }
    Some((cell, Aqm::parse("aqm", aqm).ok()?.value))
}

/// What a discipline does in a cell, over all seeds.
#[derive(Clone, Debug, Default)]
struct Measured {
    runs: Vec<Metrics>,
    /// Signals of the law, drops by it, and drops for want of room, all in endless transients.
    by_law: u64,
    early: u64,
    full: u64,
    /// Drops of data that had been sent before.
    again: u64,
    /// Loads when the first flow leaves slow start: the windows that all flows have then.
    first_loads: Vec<f64>,
}

impl Measured {
    fn of(text: &str) -> Result<Self, String> {
        let (cell, aqm) = read(text).ok_or_else(|| format!("`{text}` is no discipline and cell"))?;
        let mut measured = Self::default();
        for seed in SEEDS {
            let mut begun = 0;
            let metrics = run_observed(&cell, &(&aqm).into(), seed, |moment, world| match moment {
                Moment::Built { .. } => world.network.trace = Some(Box::new(Trace::default())),
                Moment::Begins { .. } => begun = world.network.trace.as_ref().map_or(0, |trace| trace.entries.len()),
                Moment::Ended { link, flows, rtts, transient } => {
                    let trace = world.network.trace.replace(Box::new(Trace::default())).unwrap_or_default();
                    measured.again += dropped_again(&trace.entries);
                    let own = trace.entries[begun..].iter().filter(|entry| flows.contains(&entry.flow));
                    measured.first_loads.extend(first_load(&cell, own, flows.start, rtts));
                    if !transient.finite {
                        let stats = world.network.link(*link).queue().clone().as_dyn().stats();
                        measured.by_law += stats.marked + stats.dropped_early;
                        measured.early += stats.dropped_early;
                        measured.full += stats.dropped_full;
                    }
                }
            });
            measured.runs.push(metrics);
        }
        Ok(measured)
    }

    fn mean(&self, value: impl Fn(&Metrics) -> f64) -> f64 {
        self.runs.iter().map(value).sum::<f64>() / self.runs.len() as f64
    }

    fn numbers(&self) -> Numbers {
        let by_parts = self.runs.iter().map(|run| run.exit_load() / self.runs.len() as f64).sum();
        let numbers = [
            ("exit_load", self.mean(Metrics::exit_load)),
            // The same but for its last digit, which results keep.
            ("exit_load_by_parts", by_parts),
            ("first_load", self.first_loads.iter().sum::<f64>() / self.first_loads.len() as f64),
            ("peak_ms", self.mean(Metrics::peak_secs) * 1e3),
            ("peak_rtts", self.mean(Metrics::peak_rtts)),
            ("p99_ms", self.mean(Metrics::p99_secs) * 1e3),
            ("utilization", self.mean(|run| run.utilization().unwrap_or(f64::NAN))),
            ("by_law", self.by_law as f64 / self.runs.len() as f64),
            ("early", self.early as f64),
            ("full", self.full as f64),
            ("again", self.again as f64),
            ("timeouts", self.runs.iter().map(Metrics::timeouts).sum::<u64>() as f64),
        ];
        numbers.map(named).into()
    }
}

fn dropped_again(entries: &[Entry]) -> u64 {
    let mut again: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut dropped = 0;
    for entry in entries {
        match entry.event {
            Event::Sent { offset, retransmission: true, .. } => {
                again.insert((entry.flow, offset));
            }
            Event::Dropped { offset: Some(offset), .. } => dropped += u64::from(again.contains(&(entry.flow, offset))),
            _ => {}
        }
    }
    dropped
}

fn first_load<'a>(
    cell: &Config,
    entries: impl Iterator<Item = &'a Entry>,
    first: u32,
    rtts: &[Duration],
) -> Option<f64> {
    let mut windows = vec![Bytes::ZERO; rtts.len()];
    for entry in entries {
        match entry.event {
            Event::Window { cwnd, .. } => windows[(entry.flow - first) as usize] = cwnd,
            Event::Decided(Decision::StartupExited { .. }) => {
                return Some(windows.iter().zip(rtts).map(|(window, rtt)| cell.load(*window, *rtt)).sum());
            }
            _ => {}
        }
    }
    None
}

/// Whether an AQM does well; what is undefined is neither well nor not well.
fn is_well(fct: f64, peak: f64) -> Option<bool> {
    (fct.is_finite() && peak.is_finite()).then_some(fct <= WELL.0 && peak <= WELL.1)
}

/// Thesis, section 1.4 (Pub. IV): HRED "is still seriously limited by the requirement for a known, constant end-to-end
/// RTT", here 100 ms. What is told of a cell depends on which of two numbers is outside.
pub(crate) fn hred_needs_its_rtt(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut note = Vec::new();
    for rtt in [20, 100, 500] {
        for flows in [1, 6] {
            for signals in ["marks", "drops"] {
                let cell = format!("50 Mbit/s, {rtt} ms, {flows} flows, IW 10, {signals}");
                let of = |aqm: &str| Measured::of(&format!("{aqm} {cell}"));
                let (oracle, hred) = (of("oracle")?, of("hred:rtt=100ms")?);
                let fct = hred.mean(Metrics::fct_secs) / oracle.mean(Metrics::fct_secs);
                let peak = hred.mean(Metrics::peak_rtts) - oracle.mean(Metrics::peak_rtts);
                let which = if rtt == 100 { "well" } else { "not well" };
                let text = format!("{which}: FCT {} of the oracle's and peak {} RTT above", WELL.0, WELL.1);
                let (metric, ours, bound) = if fct > WELL.0 || !fct.is_finite() {
                    ("FCT over the oracle's", fct, WELL.0)
                } else {
                    ("peak above the oracle's, RTTs", peak, WELL.1)
                };
                checker.check(&cell, metric, ours, judged(is_well(fct, peak) == Some(rtt == 100), bound, text));
                note.push(format!("{rtt} ms x {flows} {signals}: {fct:.2}, {peak:+.2}"));
            }
        }
    }
    Ok(format!("FCT over the oracle's and peak above it in RTTs: {}", note.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undefined_is_neither_well_nor_not_well() {
        assert_eq!([is_well(1.0, 0.0), is_well(9.0, 0.0), is_well(1.0, 9.0)], [Some(true), Some(false), Some(false)]);
        assert_eq!([is_well(9.0, f64::NAN), is_well(f64::NAN, 9.0), is_well(f64::INFINITY, 0.0)], [None; 3]);
    }
}
