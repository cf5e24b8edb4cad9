//! What Järvinen's thesis says of queue disciplines under load transients, measured by [`crate::transient`].
//!
//! `validation/load-transients/README.md` says where each statement stands, how it is read as cells and bands, and why
//! they miss where they do.

use std::collections::BTreeSet;

use flowstart_core::aqm::{QueueConfig, codel, hred, pie, predict, red, taildrop};
use flowstart_core::event::Decision;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::spec::aqm::Aqm;
use flowstart_sim::observe::trace::{Event, Trace};
use rayon::prelude::*;

use crate::check::{Checker, above, at_least, at_most, below, judged};
use crate::transient::{Config, Metrics, Moment, Transient, run_observed};
use crate::{Input, statements};

/// Seeds of a cell; numbers are means over them.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
/// The RTT for which HRED is tuned, in milliseconds.
const TUNED_MS: u64 = 100;
/// A discipline does well up to this completion time over the oracle's, and this peak delay above the oracle's in RTTs.
const WELL: (f64, f64) = (1.10, 0.35);
/// Slow start that reaches more available bandwidth-delay products than this was ended too late: a doubling.
const TOO_LATE: f64 = 2.0;
/// Slow start that ends below this left a part of the link to the slow growth of congestion avoidance: ended too early.
const TOO_EARLY: f64 = 0.9;

/// Thesis, section 2.2: what starting flows do to interactive media beside them.
pub(crate) fn flow_initiation(input: &Input, checker: &mut Checker) -> Result<String, String> {
    statements::check(statements::FLOW_INITIATION, input.jobs, checker)
}

/// Numbers of a cell with one AQM, means over the seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    fct: f64,
    peak_secs: f64,
    peak_rtts: f64,
    p99_secs: f64,
    exit_load: f64,
    utilization: f64,
    /// Marks and drops by the law, in all transients.
    by_law: f64,
}

impl Numbers {
    fn of(cell: &Config, aqm: &Aqm) -> Self {
        let mut by_law = 0;
        let run = |seed| {
            run_observed(cell, &aqm.into(), seed, |moment, world| {
                if let Moment::Ended { link, transient: Transient { finite: false, .. }, .. } = moment {
                    let stats = world.network.link(*link).queue().clone().as_dyn().stats();
                    by_law += stats.marked + stats.dropped_early;
                }
            })
        };
        let runs: Vec<Metrics> = SEEDS.map(run).collect();
        let mean = |value: &dyn Fn(&Metrics) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
        Self {
            fct: mean(&Metrics::fct_secs),
            peak_secs: mean(&Metrics::peak_secs),
            peak_rtts: mean(&Metrics::peak_rtts),
            p99_secs: mean(&Metrics::p99_secs),
            exit_load: mean(&Metrics::exit_load),
            utilization: mean(&|run| run.utilization().unwrap_or(f64::NAN)),
            by_law: by_law as f64 / runs.len() as f64,
        }
    }

    /// Completion time over the oracle's, and peak delay above the oracle's in RTTs.
    fn against(&self, oracle: &Self) -> (f64, f64) {
        (self.fct / oracle.fct, self.peak_rtts - oracle.peak_rtts)
    }
}

/// Measures every cell with every AQM, in this order.
fn measure(cells: &[Config], aqms: &[Aqm]) -> Vec<Vec<Numbers>> {
    let pairs: Vec<(&Config, &Aqm)> = cells.iter().flat_map(|cell| aqms.iter().map(move |aqm| (cell, aqm))).collect();
    let all: Vec<Numbers> = pairs.par_iter().map(|(cell, aqm)| Numbers::of(cell, aqm)).collect();
    all.chunks(aqms.len()).map(<[Numbers]>::to_vec).collect()
}

fn cell(mbit: f64, rtt_ms: u64, flows: u32) -> Config {
    Config { flows, ..Config::new(Rate::from_bits_per_sec((mbit * 1e6) as u64), Duration::from_millis(rtt_ms)) }
}

fn name(cell: &Config) -> String {
    let signals = if cell.ecn { "marks" } else { "drops" };
    let (rate, rtt) = (cell.rate.as_mbit(), cell.rtt.as_millis_f64());
    format!("{rate} Mbit/s, {rtt} ms, {} flows, IW {}, {signals}", cell.flows, cell.initial_window)
}

fn codel() -> Aqm {
    Aqm::Registered(QueueConfig::CoDel(codel::Config::default()))
}

fn pie(estimator: pie::Estimator) -> Aqm {
    Aqm::Registered(QueueConfig::Pie(pie::Config { estimator, ..pie::Config::default() }))
}

fn hred() -> Aqm {
    let config = hred::Config { rtt: Duration::from_millis(TUNED_MS), ..hred::Config::default() };
    Aqm::Registered(QueueConfig::Hred(config))
}

/// Thesis, section 1.4 (Pub. II): "RED [...] responds too slowly", with recommended parameters; AINA 2012, as summed
/// up: it falls back to tail drop, then drops retransmissions.
pub(crate) fn red_is_slow(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut cells = Vec::new();
    for rtt in [50, 100, 200] {
        for flows in [1, 6, 18] {
            let cell = Config { ecn: false, initial_window: 3, ..cell(10.0, rtt, flows) };
            // A buffer of one bandwidth-delay product.
            cells.push(Config { buffer: Some(cell.available_bdp() as u64), ..cell });
        }
    }
    let red = Aqm::Registered(QueueConfig::Red(red::Config::default()));
    let tail = Aqm::Registered(QueueConfig::TailDrop(taildrop::Config::default()));
    let drops: Vec<[Drops; 2]> = cells.par_iter().map(|cell| [Drops::of(cell, &red), Drops::of(cell, &tail)]).collect();
    let (mut early, mut full, mut again, mut timeouts) = (0, 0, [0, 0], [0, 0]);
    for (cell, [red, tail]) in cells.iter().zip(&drops) {
        let name = name(cell);
        checker.check(&name, "load at exit", red.exit_load, above(TOO_LATE).saying(format!("over {TOO_LATE}")));
        let law = above(red.early as f64).saying("more than drops by the law");
        checker.check(&name, "tail drops", red.full as f64, law);
        let without = above(tail.retransmissions as f64).saying("more than with taildrop");
        checker.check(&name, "dropped retransmissions", red.retransmissions as f64, without);
        early += red.early;
        full += red.full;
        for (sum, drops) in [red, tail].into_iter().enumerate() {
            again[sum] += drops.retransmissions;
            timeouts[sum] += drops.timeouts;
        }
    }
    Ok(format!(
        "RED: {full} tail drops and {early} by its law; {} of the drops were retransmissions, {} with taildrop; {} timeouts, {} with \
         taildrop",
        again[0], again[1], timeouts[0], timeouts[1]
    ))
}

/// What was dropped in a cell, over all seeds and transients.
#[derive(Clone, Copy, Debug, Default)]
struct Drops {
    /// By the law.
    early: u64,
    /// For want of room.
    full: u64,
    /// Data that had been sent before.
    retransmissions: u64,
    timeouts: u64,
    /// Mean.
    exit_load: f64,
}

impl Drops {
    fn of(cell: &Config, aqm: &Aqm) -> Self {
        let mut drops = Self::default();
        for seed in SEEDS {
            let metrics = run_observed(cell, &aqm.into(), seed, |moment, world| match moment {
                Moment::Built { .. } => world.network.trace = Some(Box::new(Trace::default())),
                Moment::Begins { .. } => {}
                Moment::Ended { link, transient, .. } => {
                    let trace = world.network.trace.replace(Box::new(Trace::default()));
                    drops.retransmissions += trace.map_or(0, |trace| dropped_again(&trace));
                    if !transient.finite {
                        let stats = world.network.link(*link).queue().clone().as_dyn().stats();
                        drops.early += stats.dropped_early;
                        drops.full += stats.dropped_full;
                    }
                }
            });
            drops.timeouts += metrics.timeouts();
            drops.exit_load += metrics.exit_load() / SEEDS.count() as f64;
        }
        drops
    }
}

/// Drops of data that had been sent before.
fn dropped_again(trace: &Trace) -> u64 {
    let mut again: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut dropped = 0;
    for entry in &trace.entries {
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

/// Whether an AQM does well; what is undefined is neither well nor not well.
fn is_well(fct: f64, peak: f64) -> Option<bool> {
    (fct.is_finite() && peak.is_finite()).then_some(fct <= WELL.0 && peak <= WELL.1)
}

/// Thesis, section 1.4 (Pub. IV): HRED "is still seriously limited by the requirement for a known, constant end-to-end
/// RTT".
pub(crate) fn hred_needs_its_rtt(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut note = Vec::new();
    for (rtt, at_its_rtt) in [(TUNED_MS / 5, false), (TUNED_MS, true), (TUNED_MS * 5, false)] {
        for flows in [1, 6] {
            for ecn in [true, false] {
                let cell = Config { ecn, ..cell(50.0, rtt, flows) };
                let numbers = measure(std::slice::from_ref(&cell), &[Aqm::Oracle, hred()]);
                let (fct, peak) = numbers[0][1].against(&numbers[0][0]);
                let which = if at_its_rtt { "well" } else { "not well" };
                let text = format!("{which}: FCT {} of the oracle's and peak {} RTT above", WELL.0, WELL.1);
                let (metric, ours, bound) = if fct > WELL.0 || !fct.is_finite() {
                    ("FCT over the oracle's", fct, WELL.0)
                } else {
                    ("peak above the oracle's, RTTs", peak, WELL.1)
                };
                let band = judged(is_well(fct, peak) == Some(at_its_rtt), bound, text);
                checker.check(&name(&cell), metric, ours, band);
                note.push(format!("{rtt} ms x {flows} {}: {fct:.2}, {peak:+.2}", if ecn { "marks" } else { "drops" }));
            }
        }
    }
    Ok(format!("FCT over the oracle's and peak above it in RTTs: {}", note.join("; ")))
}

/// LCN 2014, as summed up: HRED beats `CoDel` and PIE on high-end delay with more than a few flows.
pub(crate) fn hred_has_the_least_delay(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut cells = Vec::new();
    for mbit in [2.0, 10.0] {
        for flows in [6, 18] {
            for initial_window in [3, 10] {
                cells.push(Config { ecn: false, initial_window, ..cell(mbit, TUNED_MS, flows) });
            }
        }
    }
    let mut note = Vec::new();
    for cell in &cells {
        let aqms = [hred(), codel(), pie(pie::Estimator::Timestamps)];
        let numbers = &measure(std::slice::from_ref(cell), &aqms)[0];
        let [own, codel, pie] = [0, 1, 2].map(|place| numbers[place].p99_secs * 1e3);
        for (other, theirs) in [("codel", codel), ("pie", pie)] {
            checker.check(&name(cell), &format!("p99 delay, ms, against {other}"), own, below(theirs).saying("below"));
        }
        note.push(format!("{}: {own:.0}, {codel:.0}, {pie:.0}", name(cell)));
    }
    Ok(format!("p99 delay in ms of HRED-style, codel, pie: {}", note.join("; ")))
}

/// Thesis, abstract and section 1.4 (Pub. IV): "the state-of-the-art AQM algorithms often respond too slowly or too
/// fast depending on the actual RTT"; AINA 2017, as summed up: too much queue at small RTT, reaction too early at large
/// RTT.
pub(crate) fn codel_and_pie_depend_on_the_rtt(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut note = Vec::new();
    for mbit in [10.0, 50.0] {
        for (rtt, flows) in [(20, 1), (20, 6), (500, 1), (500, 6)] {
            let cell = cell(mbit, rtt, flows);
            let aqms = [Aqm::Oracle, codel(), pie(pie::Estimator::Timestamps)];
            let numbers = &measure(std::slice::from_ref(&cell), &aqms)[0];
            for (which, numbers) in ["codel", "pie"].iter().zip(&numbers[1..]) {
                let band =
                    if rtt < TUNED_MS { above(TOO_LATE).saying(format!("over {TOO_LATE}")) } else { below(TOO_EARLY) };
                checker.check(&name(&cell), &format!("load at exit with {which}"), numbers.exit_load, band);
            }
            let firsts: Vec<f64> = aqms.par_iter().map(|aqm| first_exit_load(&cell, aqm)).collect();
            let loads: Vec<String> = numbers
                .iter()
                .zip(firsts)
                .map(|(numbers, first)| format!("{:.2} ({first:.2})", numbers.exit_load))
                .collect();
            note.push(format!("{}: {}", name(&cell), loads.join(", ")));
        }
    }
    Ok(format!("load at exit with oracle, codel, pie, and when the first flow leaves: {}", note.join("; ")))
}

/// Load when the first flow leaves slow start, mean over transients and seeds: the windows that all flows have then.
fn first_exit_load(cell: &Config, aqm: &Aqm) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for seed in SEEDS {
        run_observed(cell, &aqm.into(), seed, |moment, world| match moment {
            Moment::Built { .. } => {}
            Moment::Begins { .. } => world.network.trace = Some(Box::new(Trace::default())),
            Moment::Ended { flows, rtts, .. } => {
                let Some(trace) = world.network.trace.take() else { return };
                let mut windows = vec![Bytes::ZERO; rtts.len()];
                for entry in trace.entries.iter().filter(|entry| flows.contains(&entry.flow)) {
                    match entry.event {
                        Event::Window { cwnd, .. } => windows[(entry.flow - flows.start) as usize] = cwnd,
                        Event::Decided(Decision::StartupExited { .. }) => {
                            sum += windows.iter().zip(*rtts).map(|(window, rtt)| cell.load(*window, *rtt)).sum::<f64>();
                            count += 1;
                            return;
                        }
                        _ => {}
                    }
                }
            }
        });
    }
    sum / f64::from(count)
}

/// Thesis, section 1.4 (Pub. III): an issue in PIE's departure rate estimator "effectively disabled the whole PIE
/// algorithm when the link bandwidth is low".
pub(crate) fn departure_rate_fails_at_low_rates(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let cell = |mbit, buffer| Config { ecn: false, initial_window: 3, buffer, ..cell(mbit, TUNED_MS, 6) };
    let mut cells = Vec::new();
    for mbit in [0.25, 0.5, 1.0] {
        // 16 KiB, which a measurement takes, are 11 packets.
        cells.extend([(cell(mbit, None), true), (cell(mbit, Some(8)), true)]);
    }
    cells.extend([10.0, 50.0].map(|mbit| (cell(mbit, None), false)));
    let mut note = Vec::new();
    for (cell, low) in &cells {
        let aqms = [pie(pie::Estimator::DepartureRate), pie(pie::Estimator::Timestamps)];
        let numbers = &measure(std::slice::from_ref(cell), &aqms)[0];
        let [rate, stamps] = [numbers[0], numbers[1]];
        let buffer = cell.buffer.map_or(String::new(), |packets| format!(", buffer of {packets} packets"));
        // Half as many signals are half of PIE.
        let band = if *low { below(0.5) } else { at_least(0.5) };
        let metric = "drops by the law over those with timestamps";
        checker.check(&format!("{}{buffer}", name(cell)), metric, rate.by_law / stamps.by_law, band);
        let (ours, theirs) = (rate.peak_secs * 1e3, stamps.peak_secs * 1e3);
        let mbit = cell.rate.as_mbit();
        let (a, b) = (rate.by_law, stamps.by_law);
        note.push(format!("{mbit} Mbit/s{buffer}: {a:.1} and {b:.1} drops, peak {ours:.0} and {theirs:.0} ms"));
    }
    Ok(format!("departure rate and timestamps: {}", note.join("; ")))
}

/// Thesis, abstract: Predict is timely "without compromising throughput or latency unnecessarily, yielding low latency
/// over a large range of RTTs".
pub(crate) fn predict_controls_the_peak(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut cells = Vec::new();
    for mbit in [10.0, 50.0] {
        for rtt in [20, 50, 100, 200, 350, 500] {
            for flows in [1, 6] {
                for pacing_gain in [None, Some(2.0)] {
                    cells.push(Config { pacing_gain, ..cell(mbit, rtt, flows) });
                }
            }
        }
    }
    // Fewer packets than that are answered by initial windows, which no discipline controls.
    cells.retain(|cell| cell.available_bdp() >= 30.0 * f64::from(cell.flows));
    let predict = Aqm::Registered(QueueConfig::Predict(predict::Config::default()));
    let (mut most, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
    for (cell, numbers) in cells.iter().zip(measure(&cells, &[Aqm::Oracle, predict])) {
        let name = format!("{}{}", name(cell), if cell.pacing_gain.is_some() { ", paced" } else { "" });
        let (_, peak) = numbers[1].against(&numbers[0]);
        checker.check(&name, "peak above the oracle's, RTTs", peak, at_most(WELL.1));
        let (ours, theirs) = (numbers[1].utilization, numbers[0].utilization);
        let band = at_least(theirs - 0.05).beside(theirs).saying("not 0.05 below");
        checker.check(&name, "utilization after slow start", ours, band);
        most = most.max(peak);
        least = least.min(ours - theirs);
    }
    Ok(format!(
        "largest peak above the oracle's {most:.2} RTT, utilization after slow start at least {least:+.2} from the oracle's"
    ))
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
