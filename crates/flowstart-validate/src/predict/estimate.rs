//! Predict's estimate of the load, and what it says of an RTT ahead, beside the windows that senders had.
//!
//! The truth is the sum over flows of cwnd over RTT, over the available rate. A quarter of the propagation delay lies
//! between a sender and the queue, so what arrives now was sent with the window of a quarter of an RTT ago, and a mark
//! on what leaves now is heard of three quarters of an RTT later.

use std::sync::{Arc, Mutex};

use flowstart_core::aqm::predict::{self, LoadEstimate, Predict};
use flowstart_core::aqm::{QueueContext, QueueDiscipline, QueuedPacket};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::observe::trace::{Event, Trace};

use super::watched::{Watch, watched};
use crate::Input;
use crate::check::{Checker, between};
use crate::transient::{Config, Discipline, Moment, PACKET, run_observed};

/// The median at a trigger has to be this close to the truth. No paper that could be read states a number: it is what
/// the threshold of 1.15 leaves on either side.
const BAND: std::ops::RangeInclusive<f64> = 0.85..=1.15;

/// What was estimated when, and whether it was what a decision was made with.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<(Timestamp, LoadEstimate, bool)>>>);

impl Watch for Log {
    fn dequeue(&mut self, predict: &mut Predict, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let (triggers, before) = (predict.triggers(), predict.load_estimate(context.now));
        let packet = predict.dequeue(context);
        if let Ok(mut log) = self.0.lock() {
            let triggered = predict.triggers() > triggers;
            let decided = predict.last_trigger().and_then(|trigger| trigger.estimate).filter(|_| triggered);
            if let Some(estimate) = decided.or(before) {
                log.push((context.now, estimate, triggered));
            }
        }
        packet
    }
}

/// Estimates over the truth: of the load now, and of the load an RTT ahead.
#[derive(Clone, Debug, Default)]
pub struct Ratios {
    /// When it was decided that slow start ends.
    pub at_triggers: Vec<[f64; 2]>,
    /// With every packet that left before.
    pub before: Vec<[f64; 2]>,
}

/// The windows of a transient's flows by time.
struct Windows {
    /// Time, flow, bytes on the wire over the RTT.
    changes: Vec<(Timestamp, usize, f64)>,
    flows: usize,
    available: f64,
}

impl Windows {
    fn of(trace: &Trace, flows: &std::ops::Range<u32>, rtts: &[Duration], available: Rate) -> Self {
        // cwnd counts payload.
        let wire = PACKET.get() as f64 / 1460.0;
        let changes = trace
            .entries
            .iter()
            .filter(|entry| flows.contains(&entry.flow))
            .filter_map(|entry| {
                let Event::Window { cwnd, .. } = entry.event else { return None };
                let place = (entry.flow - flows.start) as usize;
                Some((entry.time, place, cwnd.get() as f64 * wire / rtts[place].as_secs()))
            })
            .collect();
        Self { changes, flows: flows.len(), available: available.bits_per_sec() as f64 / 8.0 }
    }

    fn load(&self, time: Timestamp) -> f64 {
        let mut rates = vec![0.0; self.flows];
        for (_, flow, rate) in self.changes.iter().take_while(|change| change.0 <= time) {
            rates[*flow] = *rate;
        }
        rates.iter().sum::<f64>() / self.available
    }
}

/// Runs a cell and compares.
pub fn ratios(cell: &Config, seed: u64) -> Ratios {
    let log = Log::default();
    let queue = watched(log.clone(), predict::Config::default(), cell.rate);
    let mut ratios = Ratios::default();
    run_observed(cell, &Discipline::Custom(queue), seed, |moment, world| match moment {
        Moment::Built { .. } => world.network.trace = Some(Box::default()),
        Moment::Begins { .. } => {
            if let Ok(mut log) = log.0.lock() {
                log.clear();
            }
        }
        Moment::Ended { flows, rtts, transient, .. } => {
            let (Some(trace), Ok(log)) = (&world.network.trace, log.0.lock()) else { return };
            let windows = Windows::of(trace, flows, rtts, cell.available_rate());
            for (time, estimate, triggered) in log.iter().filter(|entry| entry.0 >= transient.start) {
                let now = windows.load(*time - cell.rtt.scale(0.25));
                let ahead = windows.load(*time + cell.rtt.scale(0.75));
                let pair = [estimate.load / now, estimate.load_ahead / ahead];
                if *triggered {
                    ratios.at_triggers.push(pair);
                    break;
                }
                ratios.before.push(pair);
            }
        }
    });
    ratios
}

/// Cells of a kind of sender, over which quantiles are taken.
fn cells(pacing_gain: Option<f64>, delayed_acks: bool) -> Vec<Config> {
    let mut cells = Vec::new();
    for rate in [10, 50] {
        for rtt in [50, 100, 200, 350] {
            for (flows, mixed_rtts) in [(1, false), (6, false), (6, true)] {
                let cell = Config::new(Rate::from_mbit(rate), Duration::from_millis(rtt));
                cells.push(Config { flows, mixed_rtts, pacing_gain, delayed_acks, ..cell });
            }
        }
    }
    cells
}

fn quantiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0.1, 0.5, 0.9].map(|place| values.get((place * values.len() as f64) as usize).copied().unwrap_or(f64::NAN))
}

/// The estimate of the load, and what it says of an RTT ahead, beside the truth: quantiles for bursts and paced
/// senders, with and without delayed acknowledgements.
pub(crate) fn predict_estimate(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut lines = Vec::new();
    for (pacing, name) in [(None, "bursts"), (Some(1.0), "paced by 1"), (Some(2.0), "paced by 2")] {
        for (delayed, acks) in [(false, "an ACK per packet"), (true, "delayed ACKs")] {
            let all: Vec<Ratios> = cells(pacing, delayed).iter().map(|cell| ratios(cell, 1)).collect();
            let mut line = format!("{name}, {acks}:");
            for (index, what) in ["load", "load an RTT ahead"].into_iter().enumerate() {
                let column = |pairs: &dyn Fn(&Ratios) -> &Vec<[f64; 2]>| -> Vec<f64> {
                    all.iter().flat_map(|ratios| pairs(ratios).iter().map(|pair| pair[index])).collect()
                };
                let [low, middle, high] = quantiles(&mut column(&|ratios| &ratios.at_triggers));
                let band = between(*BAND.start(), *BAND.end(), 1.0);
                let text = format!("{} of the truth", band.text());
                checker.check(&format!("{name}, {acks}"), what, middle, band.saying(text));
                let [least, usual, most] = quantiles(&mut column(&|ratios| &ratios.before));
                line += &format!(
                    " {what} at the trigger {low:.2}, {middle:.2}, {high:.2}, before it {least:.2}, {usual:.2}, {most:.2};"
                );
            }
            lines.push(line);
        }
    }
    Ok(format!("estimate over truth, p10, p50, p90; {}", lines.join(" ")))
}
