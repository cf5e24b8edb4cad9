//! A law's decision about an arriving packet, and the queue's response.

use super::{QueueStats, QueuedPacket};

/// A law's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave it alone.
    Pass,
    /// Signal: mark the packet if its transport reacts to marks, else drop it.
    Signal,
    /// Drop it, even if it could be marked.
    Drop,
}

impl Decision {
    /// Marks the packet if the decision says so, and counts. Returns whether the packet stays; if not, the discipline
    /// drops it.
    #[must_use]
    pub fn keeps(self, packet: &mut QueuedPacket, stats: &mut QueueStats) -> bool {
        match self {
            Self::Pass => true,
            Self::Signal if packet.mark() => {
                stats.marked += 1;
                true
            }
            Self::Signal | Self::Drop => {
                stats.dropped_early += 1;
                false
            }
        }
    }

    /// The decision of a router that does not use ECN.
    #[must_use]
    pub fn without_marks(self) -> Self {
        if self == Self::Signal { Self::Drop } else { self }
    }
}
