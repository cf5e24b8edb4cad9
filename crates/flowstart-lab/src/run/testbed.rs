//! Transfers outside the simulator.

use flowstart_core::path::SavedPath;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::observe::record::FlowRecord;

use super::knowledge;
use super::outcome::{Failure, FlowOutcome};
use crate::study::ideal::limit_of;
use crate::study::plan::{Cell, Plan};

/// Runs transfers between real sockets, one at a time.
pub trait Testbed: Sync {
    /// The transfer of a cell in a repetition, over a link of its own that begins empty.
    ///
    /// # Errors
    ///
    /// Why there is no such path or no such server. A transfer that fails is an outcome.
    fn transfer(&self, plan: &Plan, cell: &Cell, rep: u32) -> Result<Transferred, String>;
}

/// What was seen of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transferred {
    /// Times and counts. Times begin with the first packet.
    pub record: FlowRecord,
    /// The longest time in the queue.
    pub max_queue_delay: Option<Duration>,
    /// Why it is not complete.
    pub failure: Option<Failure>,
}

/// The longest time that a transfer of a cell may take.
pub fn patience(plan: &Plan, cell: &Cell) -> Duration {
    super::newcomers::patience(limit(plan, cell))
}

/// What an earlier connection saved of a cell's path.
pub fn saved(plan: &Plan, cell: &Cell) -> Option<SavedPath> {
    knowledge::knowledge(plan, plan.transport_of(cell), &plan.links[cell.link]).saved
}

fn size(plan: &Plan, cell: &Cell) -> Bytes {
    plan.sizes[cell.size].value.fixed_size().unwrap_or_default()
}

fn limit(plan: &Plan, cell: &Cell) -> Duration {
    limit_of(plan, cell, &plan.links[cell.link], size(plan, cell), Timestamp::ZERO)
}

/// The outcome of a transfer of a cell.
pub(crate) fn outcome(plan: &Plan, cell: &Cell, transferred: Transferred) -> FlowOutcome {
    let Transferred { record, max_queue_delay, failure } = transferred;
    FlowOutcome {
        flow: 0,
        start: Timestamp::ZERO,
        size: size(plan, cell),
        rtt: plan.links[cell.link].host_rtt(),
        share: None,
        max_queue_delay,
        p99_queue_delay: None,
        utilization: None,
        ideal_fct: limit(plan, cell),
        others: None,
        failure,
        web: None,
        media: None,
        connections: 1,
        call: None,
        record,
    }
}
