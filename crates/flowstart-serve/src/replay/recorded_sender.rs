//! What of a recording belongs together, and what it says of its sender.

use flowstart_core::event::Position;
use flowstart_core::time::Timestamp;

use crate::recording::Timed;
use crate::recording::event::{Metrics, Space};

/// What an acknowledgement, or a timer, has brought so far.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) time: Timestamp,
    pub(super) in_flight_before: u64,
    pub(super) acknowledges: bool,
    pub(super) delivered: u64,
    pub(super) packets: u64,
    pub(super) position: Position,
    pub(super) marks: u64,
    pub(super) lost: Vec<Lost>,
    pub(super) lost_bytes: u64,
}

/// A lost packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) position: Position,
    pub(super) sent: Timestamp,
    pub(super) solicits: bool,
    pub(super) space: Space,
    pub(super) number: u64,
}

/// The recorded sender, as far as the file says.
///
/// Some programs write the window only with the next acknowledgement. Then more is in flight than the window that is
/// known, and what is known is that of the acknowledgement before.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) metrics: Metrics,
    /// It says that its application limits it.
    pub(super) limited: bool,
    /// It sent more than the known window, without a timeout and without a loss: the file has windows one
    /// acknowledgement late.
    pub(super) is_late: bool,
    /// Its last packet, behind which it sent no more so far.
    pub(super) stopped: Option<Stopped>,
    /// It stopped before the latest acknowledgement, where the scheme's window, the second, had room. The window that
    /// the file writes next tells why.
    pub(super) doubted: Option<(Stopped, u64)>,
    /// Position of the last packet that had left when its window was full.
    pub(super) full_until: Position,
}

/// The last packet before an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped {
    pub(super) at: At,
    pub(super) number: u64,
    pub(super) in_flight: u64,
    /// It filled the window that was known then.
    pub(super) is_full: bool,
}

/// Where and when an event is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) event: u64,
    pub(super) line: u64,
    pub(super) time: Timestamp,
}

impl From<&Timed> for At {
    fn from(event: &Timed) -> Self {
        Self { event: event.number, line: event.place.line, time: event.time }
    }
}
