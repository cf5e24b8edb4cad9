//! What a law says about an arriving packet, and what a queue does with the answer.

use super::{QueueStats, QueuedPacket};

/// What a law says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Leave it alone.
    Pass,
    /// Tell its sender: mark it if its transport reacts to marks, else drop it.
    Signal,
    /// Drop it, even if it could be marked.
    Drop,
}

impl Decision {
    /// Marks the packet if it is to be marked, and counts. Whether the packet stays; if not, the discipline drops it.
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
