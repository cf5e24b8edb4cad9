//! How a flow starts, and what startup hands to congestion avoidance.

use crate::event::ExitReason;
use crate::units::{Bytes, Rate};

/// The pacing rate of a scheme that wants its packets to leave as the window allows, also on a host that paces.
pub const UNPACED: Rate = Rate::from_mbit(1_000_000_000);

/// What a scheme starts with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Launch {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate until the first acknowledgement, also on a host that does not pace by itself; `None`: the host's own
    /// rule.
    pub pacing_rate: Option<Rate>,
    /// Bytes that leave at once before pacing begins; the whole window means a launch without pacing. `None`: the
    /// host's own burst, or, when the launch sets a rate, one segment.
    pub burst: Option<Bytes>,
    /// Set when startup ends with the launch: congestion avoidance begins at once.
    pub continuation: Option<Continuation>,
}

impl Launch {
    /// A launch with this window, paced by the host's own rule.
    pub fn window(cwnd: Bytes) -> Self {
        Self { cwnd, pacing_rate: None, burst: None, continuation: None }
    }

    /// Whether the launch is made for the path: it sets a rate, or congestion avoidance may begin with it. Any other is
    /// an initial window that says nothing about the path.
    pub fn knows_the_path(&self) -> bool {
        self.pacing_rate.is_some() || self.continuation.is_some()
    }
}

/// What startup hands to congestion avoidance. With cwnd below ssthresh, classic slow start leads from one to the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold.
    pub ssthresh: Bytes,
    /// Why startup ended.
    pub reason: ExitReason,
}
