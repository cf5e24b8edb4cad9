//! Example runs, simulated again with a trace.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::trace::Event;
use rayon::prelude::*;

use crate::flows::Row;
use crate::plan::{Cell, Plan};
use crate::report;
use crate::run::{self, Finished};
use crate::statistics::median;
use crate::summary::values;

/// Most example runs in a report: each brings its time series.
const MAX_EXAMPLES: usize = 6;
/// Longest stretch of an example run that is shown.
const LONGEST_EXAMPLE: Duration = Duration::from_millis(12_000);

/// The repetition whose FCT is the median one, or next to it.
pub fn median_rep(rows: &[&Row]) -> Option<u32> {
    rep_near(rows, median(&values(rows, |row| row.fct_ms))?)
}

/// The repetition at the 95th percentile of the FCT: the smallest FCT that 95 % of the runs do not exceed.
fn slow_rep(rows: &[&Row]) -> Option<u32> {
    let mut fcts = values(rows, |row| row.fct_ms);
    fcts.sort_by(f64::total_cmp);
    let rank = (fcts.len() as f64 * 0.95).ceil() as usize;
    rep_near(rows, *fcts.get(rank.checked_sub(1)?)?)
}

/// The repetition whose FCT is nearest to this one.
fn rep_near(rows: &[&Row], fct: f64) -> Option<u32> {
    rows.iter()
        .filter_map(|row| Some(((row.fct_ms? - fct).abs(), row.rep)))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        .map(|(_, rep)| rep as u32)
}

/// The cells whose median runs are shown: the baseline and the next schemes, or of a single scheme the first AQMs, in the middle
/// size, on two links.
fn example_cells(plan: &Plan) -> Vec<Cell> {
    let size = plan.sizes.len() / 2;
    let links = plan.links.len();
    // The middle of the list and its end stand for the rest.
    let mut shown: Vec<usize> = [links / 3, links - 1].to_vec();
    shown.dedup();
    let room = MAX_EXAMPLES / shown.len();
    let schemes = plan.schemes.len().min(room);
    // Where all start alike, what differs is the AQM.
    let aqms = if schemes == 1 { plan.aqms.len().min(room) } else { 1 };
    plan.cells()
        .into_iter()
        .filter(|cell| plan.sizes[cell.size].value.web().is_none())
        .filter(|cell| cell.size == size && cell.aqm < aqms && cell.competitor == plan.competitors.len() - 1)
        .filter(|cell| cell.arrival == plan.arrivals.len() / 2 && cell.idle == plan.idle.len() / 2)
        .filter(|cell| cell.mobility == plan.moves.len() / 2)
        .filter(|cell| shown.contains(&cell.link) && cell.scheme < schemes)
        .collect()
}

/// The median run of each of these cells, and a slow one if there is room for all.
pub(super) fn examples(plan: &Plan, by_cell: &[Vec<&Row>]) -> Vec<report::ExampleRun> {
    let cells = example_cells(plan);
    let slow = cells.len() * 2 <= MAX_EXAMPLES;
    let mut wanted = Vec::new();
    for cell in &cells {
        let rows = &by_cell[cell.index];
        let Some(middle) = median_rep(rows) else { continue };
        wanted.push((cell, middle, "the median run"));
        let Some(late) = slow_rep(rows).filter(|late| slow && *late != middle) else { continue };
        let fct = |rep: u32| rows.iter().find(|row| row.rep == u64::from(rep)).and_then(|row| row.fct_ms);
        // A picture of the same run twice would only look like an error.
        if fct(late) > fct(middle) {
            wanted.push((cell, late, "a slow run (95th percentile)"));
        }
    }
    wanted.par_iter().filter_map(|(cell, rep, label)| example(plan, cell, *rep, label)).collect()
}

fn example(plan: &Plan, cell: &Cell, rep: u32, label: &str) -> Option<report::ExampleRun> {
    let mut finished = run::replay(plan, cell, rep);
    let outcome = run::outcomes(plan, cell, &mut finished).into_iter().next()?;
    let link = &plan.links[cell.link];
    let series = Series::read(&finished);
    let end = finished.world.now().since(finished.start).min(LONGEST_EXAMPLE).as_millis();
    let measured = finished.flows.first().copied()?;
    let flows = series
        .departures
        .into_iter()
        .map(|(flow, departures)| report::RunFlow {
            name: if finished.flows.contains(&flow) {
                plan.schemes[cell.scheme].text.clone()
            } else {
                plan.competitors[cell.competitor].text.clone()
            },
            measured: flow == measured,
            departures: departures.into_iter().filter(|point| point[0] <= end).collect(),
        })
        .collect();
    Some(report::ExampleRun {
        cell: plan.id(cell),
        rep,
        link: link.text.clone(),
        size: plan.carried(cell),
        scheme: plan.schemes[cell.scheme].text.clone(),
        competitor: plan.competitors[cell.competitor].text.clone(),
        label: match plan.aqms.len() > 1 {
            true => format!("{}, {label}", plan.aqms[cell.aqm].text),
            false => label.into(),
        },
        fct_ms: outcome.record.completed.zip(outcome.record.started).map(|(end, start)| end.since(start).as_millis()),
        rtt_ms: link.rtt.as_millis(),
        rate_mbit: Some(link.rate.as_mbit()),
        from_ms: series.from_ms,
        to_ms: end,
        flows,
        sent: series.sent.into_iter().filter(|point| point[0] <= end).collect(),
        cwnd: series.cwnd,
        in_flight: series.in_flight,
        queue_packets: series.queue,
        drops: series.drops,
        other_drops: series.other_drops,
    })
}

/// A traced run as time series, in milliseconds from the newcomer's start.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// When the trace begins.
    pub from_ms: f64,
    /// Departures of each flow at the bottleneck: time, wire bytes.
    pub departures: std::collections::BTreeMap<u32, Vec<[f64; 2]>>,
    /// cwnd in bytes.
    pub cwnd: Vec<[f64; 2]>,
    /// Bytes in flight.
    pub in_flight: Vec<[f64; 2]>,
    /// ssthresh in bytes, where it is set.
    pub ssthresh: Vec<[f64; 2]>,
    /// Pacing rate in Mbit/s.
    pub pacing_rate_mbit: Vec<[f64; 2]>,
    /// Packets waiting at the bottleneck.
    pub queue: Vec<[f64; 2]>,
    /// Data sent for the first time: time, offset.
    pub sent: Vec<[f64; 2]>,
    /// Data sent again.
    pub retransmitted: Vec<[f64; 2]>,
    /// Data dropped: time, offset.
    pub dropped: Vec<[f64; 2]>,
    /// Contiguously acknowledged bytes.
    pub acked: Vec<[f64; 2]>,
    /// Drops of the measured flow.
    pub drops: Vec<f64>,
    /// Drops of others.
    pub other_drops: Vec<f64>,
}

impl Series {
    /// Reads the trace of the first measured flow.
    pub fn read(finished: &Finished) -> Self {
        let mut series = Self::default();
        let Some(trace) = &finished.world.network.trace else { return series };
        let start = finished.start.as_secs() * 1000.0;
        let ms = |time: Timestamp| time.as_secs() * 1000.0 - start;
        let measured = finished.flows.first().copied();
        series.from_ms = trace.entries.first().map_or(0.0, |entry| ms(entry.time)).min(0.0);
        for entry in &trace.entries {
            let time = ms(entry.time);
            let own = Some(entry.flow) == measured;
            match entry.event {
                Event::Departed { size, .. } => {
                    series.departures.entry(entry.flow).or_default().push([time, f64::from(size)]);
                }
                Event::Queue { packets, .. } => push_change(&mut series.queue, time, f64::from(packets)),
                Event::Dropped { offset, .. } if own => {
                    series.drops.push(time);
                    series.dropped.extend(offset.map(|offset| [time, offset as f64]));
                }
                Event::Dropped { .. } => series.other_drops.push(time),
                Event::Sent { offset, retransmission, .. } if own => {
                    let list = if retransmission { &mut series.retransmitted } else { &mut series.sent };
                    list.push([time, offset as f64]);
                }
                Event::Acknowledged { contiguous, .. } if own => {
                    push_change(&mut series.acked, time, contiguous as f64);
                }
                Event::Window { cwnd, ssthresh, in_flight, pacing_rate, .. } if own => {
                    push_change(&mut series.cwnd, time, cwnd.get() as f64);
                    push_change(&mut series.in_flight, time, in_flight.get() as f64);
                    if ssthresh != Bytes::MAX {
                        push_change(&mut series.ssthresh, time, ssthresh.get() as f64);
                    }
                    if let Some(rate) = pacing_rate {
                        push_change(&mut series.pacing_rate_mbit, time, rate.as_mbit());
                    }
                }
                _ => {}
            }
        }
        series
    }
}

/// Adds a point unless the value is the one before.
fn push_change(series: &mut Vec<[f64; 2]>, time: f64, value: f64) {
    if series.last().is_none_or(|last| last[1] != value) {
        series.push([time, value]);
    }
}
