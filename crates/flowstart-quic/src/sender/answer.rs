//! What hosts ask a sender.

use flowstart_core::units::{Bytes, Rate};

/// Everything that a host may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Bytes that may be in flight.
    pub(crate) window: Bytes,
    /// Slow-start threshold, `None` before the first reduction.
    pub(crate) ssthresh: Option<Bytes>,
    /// Rate at which packets may leave.
    pub(crate) pacing_rate: Rate,
    /// Highest rate at which the path delivered.
    pub(crate) highest_rate: Option<Rate>,
    /// Size of a full packet.
    pub(crate) packet: Bytes,
    /// Bytes in flight.
    pub(crate) in_flight: Bytes,
}
