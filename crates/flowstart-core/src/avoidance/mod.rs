//! Congestion avoidance: how the window grows after startup and by how much congestion reduces it.
//!
//! | Name | File |
//! |---|---|
//! | `reno` | [`reno`] |
//! | `cubic` | [`cubic`] |

use alloc::boxed::Box;
use core::fmt;

use crate::event::Ack;
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::units::Bytes;

pub mod cubic;
pub mod reno;

/// Congestion window and slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes that may be in flight.
    pub cwnd: Bytes,
    /// Slow-start threshold; [`Bytes::MAX`] before the first reduction.
    pub ssthresh: Bytes,
}

/// What a family member is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize(pub Bytes);

/// A congestion-avoidance algorithm.
pub trait Avoidance: fmt::Debug + Send + CloneAvoidance {
    /// Congestion avoidance begins with `window`: startup ended, or the window reached ssthresh after a timeout.
    fn on_enter(&mut self, now: Timestamp, window: Window);

    /// Data was delivered while the sender used its window; returns the new cwnd.
    fn on_ack(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Bytes;

    /// The window was not in use, so it does not grow.
    fn on_underused(&mut self, _now: Timestamp) {}

    /// A congestion event; `base` is the amount that the reduction starts from (cwnd or bytes in flight, as the
    /// transport's profile says). Returns ssthresh.
    fn on_congestion(&mut self, now: Timestamp, base: Bytes, window: Window) -> Bytes;
}

/// Lets a boxed algorithm be cloned; implemented for every algorithm that is `Clone`.
pub trait CloneAvoidance {
    /// The algorithm in a new box.
    fn clone_box(&self) -> Box<dyn Avoidance>;
}

impl<T: Avoidance + Clone + 'static> CloneAvoidance for T {
    fn clone_box(&self) -> Box<dyn Avoidance> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Avoidance> {
    fn clone(&self) -> Self {
        self.as_ref().clone_box()
    }
}

algorithms! {
    /// Which congestion avoidance, and its parameters.
    config AvoidanceConfig;
    /// A congestion-avoidance algorithm and its state.
    state AvoidanceState: Avoidance;
    context SegmentSize;
    Reno = "reno" in reno,
    Cubic = "cubic" in cubic,
}
