//! The share of the link that flows outside slow start take.

/// Time over which the rate of background is averaged, in seconds.
const BACKGROUND_TIME: f64 = 0.25;

/// The rate of flows that are not young.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    /// Number of the present interval.
    pub(super) interval: u32,
    /// Flows of which packets arrived in it, and in the one before.
    pub(super) flows: (u32, u32),
    pub(super) rate: f64,
    pub(super) bytes: f64,
    since: f64,
}

impl Background {
    /// Averages by real time, or the end of a transient would count as the background of the next.
    pub(super) fn update(&mut self, now: f64) {
        let span = now - self.since;
        if span >= BACKGROUND_TIME {
            self.rate += (1.0 - libm::exp2(-span / BACKGROUND_TIME)) * (self.bytes / span - self.rate);
            self.bytes = 0.0;
            self.since = now;
            self.interval = self.interval.wrapping_add(1);
            self.flows = (0, self.flows.0);
        }
    }
}
