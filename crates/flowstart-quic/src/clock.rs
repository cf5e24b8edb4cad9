//! A host's clock as that of its controller.

use std::time::Instant;

use flowstart_core::time::{Duration, Timestamp};

/// A host's span of time.
pub(crate) fn span(span: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// The clock of a host that tells the system's time. It reads it once for many packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Time zero of the controller.
    origin: Instant,
    /// The last conversions: the time of an event, and the time when a packet left.
    seen: [(Instant, Timestamp); 2],
}

impl Clock {
    /// The time at which a host builds a controller is zero.
    pub(crate) fn starting(now: Instant) -> Self {
        Self { origin: now, seen: [(now, Timestamp::ZERO); 2] }
    }

    /// Time zero of the controller.
    pub(crate) fn origin(&self) -> Instant {
        self.origin
    }

    /// A time as the controller counts it. `which`: 0 for that of an event, 1 for that when its packet left.
    pub(crate) fn at(&mut self, which: usize, time: Instant) -> Timestamp {
        let seen = &mut self.seen[which];
        if seen.0 != time {
            *seen = (time, Timestamp::ZERO + span(time.saturating_duration_since(self.origin)));
        }
        seen.1
    }
}
