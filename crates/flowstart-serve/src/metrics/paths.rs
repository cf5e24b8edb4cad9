//! What connections show of their paths, for `flowstart recommend`: a histogram of each, by itself.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::path_shown::PathShown;

/// Their names, as they stand in the text.
pub(crate) mod names {
    /// Histogram of smallest RTTs in seconds.
    pub(crate) const MIN_RTT: &str = "flowstart_connection_min_rtt_seconds";
    /// Histogram of highest rates in bytes per second.
    pub(crate) const RATE: &str = "flowstart_connection_delivery_rate_bytes_per_second";
    /// Histogram of payloads in bytes.
    pub(crate) const SIZE: &str = "flowstart_connection_payload_bytes";
    /// Connections whose path was known.
    pub(crate) const KNOWN: &str = "flowstart_connections_known_path_total";
}

/// What limited a connection's highest rate.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Limited {
    /// [`BY_LINK`] or [`BY_SENDER`].
    by: &'static str,
}

/// The link did, so the rate is the link's.
pub(crate) const BY_LINK: &str = "link";
/// The sender did, so the link is faster.
pub(crate) const BY_SENDER: &str = "sender";

/// What connections show of their paths, for `flowstart recommend`.
#[derive(Debug)]
pub(crate) struct Paths {
    min_rtt: Histogram,
    rate: Family<Limited, Histogram, fn() -> Histogram>,
    size: Histogram,
    known: Counter<u64, AtomicU64>,
}

impl Paths {
    pub(super) fn new(registry: &mut Registry) -> Self {
        // From 0.1 Mbit/s to 13 Gbit/s, twice as much each time.
        let rate: fn() -> Histogram = || Histogram::new(exponential_buckets(12_500.0, 2.0, 18));
        let own = Self {
            // From 1 ms to 2.9 s by the square root of 2.
            min_rtt: Histogram::new(exponential_buckets(0.001, std::f64::consts::SQRT_2, 24)),
            rate: Family::new_with_constructor(rate),
            // From 1 KB to 8 GB, twice as much each time.
            size: Histogram::new(exponential_buckets(1_000.0, 2.0, 24)),
            known: Counter::default(),
        };
        registry.register_with_unit(
            "connection_min_rtt",
            "Smallest RTT of a connection",
            Unit::Seconds,
            own.min_rtt.clone(),
        );
        registry.register_with_unit(
            "connection_delivery_rate",
            "Highest rate over at least one smallest RTT, by what limited it",
            Unit::Other("bytes_per_second".into()),
            own.rate.clone(),
        );
        registry.register_with_unit("connection_payload", "Payload of a connection", Unit::Bytes, own.size.clone());
        registry.register("connections_known_path", "Connections whose path a source knew", own.known.clone());
        own
    }

    /// A connection with this payload has ended.
    pub(crate) fn count(&self, shown: &PathShown, payload: u64, is_known: bool) {
        self.min_rtt.observe(shown.min_rtt.as_secs());
        let by = if shown.is_rate_of_link() { BY_LINK } else { BY_SENDER };
        if let Some(rate) = shown.highest_rate {
            self.rate.get_or_create(&Limited { by }).observe(rate.bits_per_sec() as f64 / 8.0);
        }
        self.size.observe(payload as f64);
        self.known.inc_by(u64::from(is_known));
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::time::Duration;
    use flowstart_core::units::{Bytes, Rate};

    use super::super::Metrics;
    use super::*;

    #[test]
    fn connections_are_counted_by_what_they_show() {
        let metrics = Metrics::new();
        let shown = PathShown {
            min_rtt: Duration::from_millis(30),
            highest_rate: Some(Rate::from_mbit(8)),
            queue: Duration::from_millis(5),
            delivered: Bytes::new(1_000_000),
            has_lost: true,
        };
        metrics.paths.count(&shown, 900_000, true);
        metrics.paths.count(&PathShown { has_lost: false, ..shown }, 900_000, false);
        let text = metrics.text();
        for line in [
            format!("{}_bucket{{le=\"+Inf\"}} 2", names::MIN_RTT),
            format!("{}_bucket{{le=\"1600000.0\",by=\"{BY_LINK}\"}} 1", names::RATE),
            format!("{}_count{{by=\"{BY_SENDER}\"}} 1", names::RATE),
            format!("{}_bucket{{le=\"1024000.0\"}} 2", names::SIZE),
            format!("{} 1", names::KNOWN),
        ] {
            assert!(text.lines().any(|one| one.starts_with(&line)), "{line} in\n{text}");
        }
    }
}
