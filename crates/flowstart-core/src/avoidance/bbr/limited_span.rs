//! The packets whose samples `ProbeRTT` keeps low (`MarkConnectionAppLimited`).

use crate::units::Bytes;

/// Packets that were sent while an amount of this span was delivered say little about the bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitedSpan(Option<(Bytes, Bytes)>);

impl LimitedSpan {
    /// Little is in flight on purpose: packets sent until all of it is acknowledged are limited. The span begins with
    /// the first call, and each call moves its end.
    pub(super) fn extend(&mut self, delivered: Bytes, in_flight: Bytes) {
        let from = self.0.map_or(delivered, |(from, _)| from);
        self.0 = Some((from, delivered + in_flight));
    }

    /// Whether a packet that was sent when `prior_delivered` was delivered is limited.
    pub(super) fn limits(&self, prior_delivered: Bytes) -> bool {
        self.0.is_some_and(|(from, until)| (from..=until).contains(&prior_delivered))
    }
}
