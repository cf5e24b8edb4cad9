//! A run with all its events, in memory.

use crate::run::newcomers::Finished;
use crate::run::newcomers::outcomes;
use crate::run::outcome::FlowOutcome;
use crate::run::repetition;
use crate::study::plan::{Cell, Plan};

/// A run with all its events.
#[derive(Debug)]
pub struct TracedRun {
    /// The world after it.
    pub finished: Finished,
    /// Its measured flows.
    pub outcomes: Vec<FlowOutcome>,
}

/// Runs one repetition of a cell with a trace.
pub fn trace(plan: &Plan, cell: &Cell, rep: u32) -> TracedRun {
    let mut finished = repetition::replay(plan, cell, rep);
    let outcomes = outcomes(plan, cell, &mut finished);
    TracedRun { finished, outcomes }
}

/// Like [`trace`], but also keeps the datagrams that senders of real QUIC flows see, for [`TracedRun::write_pcapng`].
pub fn capture(plan: &Plan, cell: &Cell, rep: u32) -> TracedRun {
    let mut finished = repetition::capture(plan, cell, rep);
    let outcomes = outcomes(plan, cell, &mut finished);
    TracedRun { finished, outcomes }
}
