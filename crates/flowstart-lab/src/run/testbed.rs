//! Transfers outside the simulator.

use flowstart_core::path::PathKnowledge;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::observe::record::FlowRecord;

use super::harm::{Harm, Service};
use super::knowledge;
use super::outcome::{Failure, FlowOutcome, Host, Known};
use crate::study::ideal::limit_of;
use crate::study::plan::{Cell, Plan, Setting};

/// Runs transfers between real sockets, one at a time.
pub trait Testbed: Sync {
    /// The transfer of a cell in a repetition, over a link of its own that begins empty. The cell's others are
    /// established when it starts.
    ///
    /// # Errors
    ///
    /// Why there is no such path or no such server. A transfer that fails is an outcome.
    fn transfer(&self, plan: &Plan, cell: &Cell, rep: u32) -> Result<Transferred, String>;

    /// What the others of a setting get if no newcomer comes, over a link of their own: in each of these times, which
    /// begin when it would have come.
    ///
    /// # Errors
    ///
    /// Why there is no such path, or why they are not there.
    fn without(&self, plan: &Plan, setting: Setting, rep: u32, times: &[Duration]) -> Result<Vec<Service>, String>;
}

/// What was seen of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transferred {
    /// Times and counts. Times begin with the first packet.
    pub record: FlowRecord,
    /// Which of these are known.
    pub known: Known,
    /// Its share of the wire bytes at the bottleneck, between its first and its last packet there.
    pub share: Option<f64>,
    /// The longest time in the queue.
    pub max_queue_delay: Option<Duration>,
    /// Time in the queue that 99 % of the packets did not exceed.
    pub p99_queue_delay: Option<Duration>,
    /// Wire bytes of all flows that left the bottleneck until it was complete.
    pub departed: u64,
    /// What the others got from its start until their aftermath ended, and how long that was.
    pub others: Option<(Service, Duration)>,
    /// What the host added.
    pub host: Option<Host>,
    /// Why it is not complete.
    pub failure: Option<Failure>,
}

/// The longest time that a transfer of a cell may take.
pub fn patience(plan: &Plan, cell: &Cell) -> Duration {
    super::newcomers::patience(limit(plan, cell))
}

/// What is known of a cell's path before its transfer.
pub fn known(plan: &Plan, cell: &Cell) -> PathKnowledge {
    knowledge::sources(plan, plan.transport_of(cell), &plan.links[cell.link], Timestamp::ZERO).knowledge().clone()
}

fn size(plan: &Plan, cell: &Cell) -> Bytes {
    plan.sizes[cell.size].value.fixed_size().unwrap_or_default()
}

fn limit(plan: &Plan, cell: &Cell) -> Duration {
    limit_of(plan, cell, &plan.links[cell.link], size(plan, cell), Timestamp::ZERO)
}

/// Every cell of a setting for one repetition.
///
/// # Errors
///
/// Those of the testbed.
pub(crate) fn repetition(
    plan: &Plan,
    testbed: &dyn Testbed,
    setting: Setting,
    rep: u32,
) -> Result<Vec<(Cell, FlowOutcome)>, String> {
    let cells = plan.cells_of(setting);
    let each = cells.iter().map(|cell| testbed.transfer(plan, cell, rep));
    let transferred: Vec<Transferred> = each.collect::<Result<_, _>>()?;
    let beside: Vec<(Service, Duration)> = transferred.iter().filter_map(|one| one.others).collect();
    let times: Vec<Duration> = beside.iter().map(|(_, time)| *time).collect();
    let without = if times.is_empty() { Vec::new() } else { testbed.without(plan, setting, rep, &times)? };
    let mut harm = beside.iter().zip(&without).map(|((with, _), without)| Harm::between(with, without));
    let outcomes = cells.into_iter().zip(transferred).map(|(cell, one)| {
        let others = one.others.and_then(|_| harm.next());
        (cell, FlowOutcome { others, ..outcome(plan, &cell, one) })
    });
    Ok(outcomes.collect())
}

/// The outcome of a transfer of a cell.
fn outcome(plan: &Plan, cell: &Cell, transferred: Transferred) -> FlowOutcome {
    let Transferred { record, known, share, max_queue_delay, p99_queue_delay, departed, host, failure, .. } =
        transferred;
    let time = record.completed.zip(record.started).map(|(completed, started)| completed.since(started));
    let capacity = time.map(|time| plan.links[cell.link].rate.amount_in(time).get()).filter(|bytes| *bytes > 0);
    FlowOutcome {
        flow: 0,
        start: Timestamp::ZERO,
        size: size(plan, cell),
        rtt: plan.links[cell.link].host_rtt(),
        share,
        max_queue_delay,
        p99_queue_delay,
        utilization: capacity.map(|capacity| departed as f64 / capacity as f64),
        ideal_fct: limit(plan, cell),
        others: None,
        failure,
        web: None,
        media: None,
        connections: 1,
        call: None,
        host,
        known,
        record,
    }
}
