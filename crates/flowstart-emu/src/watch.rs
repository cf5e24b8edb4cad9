//! What a testbed's router counts of the measured flow and of the others beside it, for another thread that reads it
//! while packets pass.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::observe::monitor::{Departed, Monitor};

use crate::lateness::{Late, Lateness};
use crate::packet::Packet;

/// The measured flow, as a monitor calls it.
pub const MEASURED: u32 = 0;
/// All others together.
pub const OTHERS: u32 = 1;

/// Counts since the router began.
#[derive(Clone, Debug)]
pub struct Counts {
    /// What left for the link to clients.
    pub monitor: Monitor,
    /// Packets that were dropped or lost in either direction: of the measured flow, and of others.
    pub dropped: [u64; 2],
    /// How much later than the links say packets of the measured flow left, in either direction.
    lateness: Lateness,
}

impl Counts {
    /// How much later than the links say packets of the measured flow left, in either direction.
    pub fn late(&self) -> Late {
        self.lateness.late()
    }
}

/// Both sides' hold on the counts.
#[derive(Clone, Debug)]
pub struct Watch {
    port: u16,
    counts: Arc<Mutex<Counts>>,
}

impl Watch {
    /// Nothing is counted yet. Flows to and from this port of servers are others.
    pub(crate) fn new(port: u16) -> Self {
        let counts = Counts { monitor: Monitor::new(0), dropped: [0; 2], lateness: Lateness::new() };
        Self { port, counts: Arc::new(Mutex::new(counts)) }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// Forgets how long packets have waited, and how late they were.
    pub fn restart(&self) {
        let mut counts = self.lock();
        counts.monitor.restart();
        counts.lateness = Lateness::new();
    }

    /// Whose packet this is.
    pub(crate) fn flow_of(&self, is_down: bool, packet: &Packet) -> u32 {
        let is_other = packet.ports.is_some_and(|[from, to]| self.port == if is_down { from } else { to });
        if is_other { OTHERS } else { MEASURED }
    }

    /// A packet has left for the link to clients.
    pub(crate) fn departed(&self, time: Timestamp, flow: u32, size: u32, delay: Duration) {
        self.lock().monitor.departed(Departed { time, flow, size, delay });
    }

    /// A packet has crossed its link, and left this host so late.
    pub(crate) fn left(&self, flow: u32, late: Duration) {
        if flow == MEASURED {
            self.lock().lateness.record(late);
        }
    }

    /// A packet was dropped or lost.
    pub(crate) fn dropped(&self, flow: u32) {
        if let Some(dropped) = self.lock().dropped.get_mut(flow as usize) {
            *dropped += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
