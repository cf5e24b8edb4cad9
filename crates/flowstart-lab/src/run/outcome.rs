//! What measured flows did.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::observe::record::FlowRecord;

use super::harm::Harm;
use super::media::MediaOutcome;
use super::newcomers::Finished;
use super::web::WebOutcome;
use crate::study::plan::{Cell, Plan};

/// What one measured flow did in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// Place in the order of measured flows; of web sessions the number of the object.
    pub flow: u64,
    /// When it started, from the start of the run.
    pub start: Timestamp,
    /// Its payload.
    pub size: Bytes,
    /// Round-trip propagation delay between its hosts.
    pub rtt: Duration,
    /// Its counts.
    pub record: FlowRecord,
    /// Its part of the wire bytes at the bottleneck while it was active.
    pub share: Option<f64>,
    /// Longest time a packet of anybody waited at the bottleneck.
    pub max_queue_delay: Option<Duration>,
    /// Time that 99 % of the packets did not exceed.
    pub p99_queue_delay: Option<Duration>,
    /// Wire bytes at the bottleneck over its capacity while the flow was active.
    pub utilization: Option<f64>,
    /// The physical limit.
    pub ideal_fct: Duration,
    /// Harm to others, absent without others.
    pub others: Option<Harm>,
    /// Why the run did not finish.
    pub failure: Option<Failure>,
    /// What all connections of the run did, of web sessions.
    pub web: Option<WebOutcome>,
    /// What happened to interactive media beside the newcomers.
    pub media: Option<MediaOutcome>,
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The limit of simulated time passed.
    TimeLimit,
    /// Nothing was left to happen, or a real stack closed the connection, and the transfer was not complete.
    Stalled,
}

/// Reads what a cell's newcomers did.
pub fn outcomes(plan: &Plan, cell: &Cell, finished: &mut Finished) -> Vec<FlowOutcome> {
    let link = &plan.links[cell.link];
    let (start, departed_before) = (finished.start, finished.departed_before);
    let end = finished.world.now();
    let mut outcomes = Vec::new();
    let flows = finished.flows.iter().zip(&finished.transfers).zip(&finished.failures);
    for (place, ((&flow, transfer), failure)) in flows.enumerate() {
        let record = finished.world.record(flow).clone();
        let monitor = finished.world.network.monitor.as_mut();
        let (mut share, mut max, mut p99, mut utilization) = (None, None, None, None);
        if let Some(monitor) = monitor {
            share = monitor.flow(flow).share();
            max = monitor.delays.max();
            p99 = monitor.delays.quantile(0.99);
            let capacity = link.rate.amount_in(end.since(start)).get();
            // The monitor sees the first path only.
            let stays = plan.mobility(cell).is_none();
            utilization = (capacity > 0 && stays).then(|| (monitor.total - departed_before) as f64 / capacity as f64);
        }
        outcomes.push(FlowOutcome {
            flow: place as u64,
            start: transfer.start,
            size: transfer.size,
            rtt: transfer.link.host_rtt(),
            share,
            max_queue_delay: max,
            p99_queue_delay: p99,
            utilization,
            ideal_fct: transfer.limit(plan, cell),
            others: None,
            failure: failure.filter(|_| record.completed.is_none()),
            web: None,
            media: None,
            record,
        });
    }
    outcomes
}
