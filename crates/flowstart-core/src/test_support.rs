//! What tests of several modules build their cases from.

use crate::event::Ack;
use crate::time::Timestamp;
use crate::units::Bytes;

/// An acknowledgement of `bytes` bytes at `now`.
pub(crate) fn acked(now: Timestamp, bytes: u64) -> Ack {
    Ack {
        now,
        bytes: Bytes::new(bytes),
        packets: 1,
        position: 0,
        rtt: None,
        in_flight_before: Bytes::new(bytes),
        in_flight: Bytes::ZERO,
        safe: true,
        app_limited: false,
        sample: None,
    }
}
