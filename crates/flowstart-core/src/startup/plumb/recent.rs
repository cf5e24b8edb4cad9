//! What arrived lately: the delivery rate and the slope of the delay over a part of an RTT.

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Points that are kept. Those used lie at most two intervals back.
const POINTS: usize = 3;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    now: Timestamp,
    /// Bytes delivered until then.
    delivered: Bytes,
    /// The RTT sample.
    rtt: Duration,
}

/// Points of the last acknowledgements, an interval apart, and the latest one.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    /// From the newest to the oldest.
    kept: [Option<Point>; POINTS],
    latest: Option<Point>,
}

impl Recent {
    /// Takes an acknowledgement; points are at least `interval` apart.
    pub(super) fn add(&mut self, now: Timestamp, delivered: Bytes, rtt: Duration, interval: Duration) {
        let point = Point { now, delivered, rtt };
        self.latest = Some(point);
        if self.kept[0].is_none_or(|newest| now.since(newest.now) >= interval) {
            self.kept.rotate_right(1);
            self.kept[0] = Some(point);
        }
    }

    /// The newest kept point that is at least `span` old, and the latest.
    fn ends(&self, span: Duration) -> Option<(Point, Point)> {
        let latest = self.latest?;
        let old = self.kept.into_iter().flatten().find(|point| latest.now.since(point.now) >= span)?;
        Some((old, latest))
    }

    /// E: the rate at which data arrived in the last `span` or a little more.
    pub(super) fn rate(&self, span: Duration) -> Option<Rate> {
        let (old, latest) = self.ends(span)?;
        Rate::from_transfer(latest.delivered.saturating_sub(old.delivered), latest.now.since(old.now))
    }

    /// Whether acknowledgements of the last `span` came later than their packets left, by more than a part of 1/`part`.
    pub(super) fn slower_than_sent(&self, span: Duration, part: u64) -> bool {
        let Some((old, latest)) = self.ends(span) else { return false };
        let later = latest.rtt.saturating_sub(old.rtt);
        // They left this far apart: the acknowledgements' distance without what the RTT has grown.
        let left_in = latest.now.since(old.now).saturating_sub(later);
        later * part > left_in
    }
}
