//! The window of a flow, and the unit in which it is counted.

use crate::units::Bytes;

/// Congestion window and slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes that may be in flight.
    pub cwnd: Bytes,
    /// Slow-start threshold; [`Bytes::MAX`] before the first reduction.
    pub ssthresh: Bytes,
}

/// The size of a segment, which every congestion avoidance gets at construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize(pub Bytes);
