//! What has happened since the queue was last empty.

use super::flow_table::ANSWERS;

/// What had arrived and left of the epoch when the queue was last empty or the epoch began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyPeriod {
    pub(super) arrived: f64,
    pub(super) departed: f64,
    pub(super) unasked: Unasked,
    /// Bytes that waited when the epoch began in it: they leave before those of the epoch.
    pub(super) standing: f64,
}

/// Data sent without an answer: while arrivals exceed all that departures can cause, they are windows sent at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unasked {
    /// Most that had arrived beyond [`ANSWERS`] times what had left.
    excess: f64,
    /// All that had arrived by then.
    pub(super) bytes: f64,
}

impl Unasked {
    pub(super) fn packet(&mut self, arrived: f64, departed: f64) {
        let excess = arrived - ANSWERS * departed;
        if excess >= self.excess {
            *self = Self { excess, bytes: arrived };
        }
    }
}

impl BusyPeriod {
    /// Bytes that have arrived and left in it.
    pub(super) fn volumes(&self, arrived: f64, departed: f64) -> (f64, f64) {
        (arrived - self.arrived, departed - self.departed)
    }
}
