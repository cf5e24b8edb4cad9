//! What tests of several modules build their cases from.

use crate::event::Ack;
use crate::time::Timestamp;
use crate::units::Bytes;

/// An acknowledgement of `bytes` bytes at `now`.
pub(crate) fn acked(now: Timestamp, bytes: u64) -> Ack {
    Ack::new(now, Bytes::new(bytes), 1, 0)
}
