//! Congestion avoidance: how the window grows after startup and by how much congestion reduces it.
//!
//! | Name | File |
//! |---|---|
//! | `reno` | [`reno`] |
//! | `cubic` | [`cubic`] |
//! | `bbr` | [`bbr`] |
//! | `xcp` | [`xcp`] |
//! | `prague` | [`prague`] |
//!
//! An integrated algorithm ([`Avoidance::integrated`]) probes and continues by itself. It is in charge from the first
//! packet, and of the startup scheme only the launch counts.

use alloc::boxed::Box;
use core::fmt;

use crate::event::{Ack, Ecn, ExitReason, LostPacket, Sent};
use crate::rtt::RttEstimator;
use crate::startup::Launch;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

pub mod bbr;
pub mod cubic;
pub mod prague;
pub mod reno;
pub mod xcp;

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

    /// Segments have another size from now on (path MTU discovery).
    fn on_segment_size(&mut self, segment: SegmentSize);

    /// The window was not in use, so it does not grow.
    fn on_underused(&mut self, _now: Timestamp) {}

    /// There is data again after nothing was in flight; the last packet was sent `idle` ago.
    fn on_resume(&mut self, _now: Timestamp, _idle: Duration) {}

    /// A congestion event; `base` is the amount that the reduction starts from (cwnd or bytes in flight, as the
    /// transport's profile says). Returns ssthresh; an integrated algorithm returns cwnd.
    fn on_congestion(&mut self, now: Timestamp, base: Bytes, window: Window) -> Bytes;

    /// As [`Avoidance::on_congestion`], for a congestion event that CE marks told of. Without a response of its own it is
    /// that to a loss (RFC 3168, section 5).
    fn on_ecn(&mut self, now: Timestamp, base: Bytes, window: Window) -> Bytes {
        self.on_congestion(now, base, window)
    }

    /// A retransmission timeout or persistent congestion. Comes after the [`Avoidance::on_congestion`] for it, where there is
    /// one. `least` is the host's window after it. Returns the new cwnd; only an integrated algorithm has another.
    fn on_timeout(&mut self, _now: Timestamp, _window: Window, least: Bytes) -> Bytes {
        least
    }

    /// Whether the algorithm probes and continues by itself. Then it is never entered; [`Avoidance::on_ack`] comes with
    /// every acknowledgement and with a rate sample where the host makes one, whether or not the window is in use and in
    /// recovery too; and the methods below are called. For all other algorithms they are not, and need no implementation; a
    /// scalable one is told of marks.
    fn integrated(&self) -> bool {
        false
    }

    /// Sensing is over: the algorithm is in charge from now on, and the window is the launch's.
    fn on_launch(&mut self, _now: Timestamp, _launch: &Launch, _rtt: &RttEstimator) {}

    /// The startup scheme has sensed a window and a rate with the first acknowledgements; returns the new cwnd.
    fn on_late_launch(&mut self, window: Window, _cwnd: Bytes, _rate: Rate) -> Bytes {
        window.cwnd
    }

    /// A packet was sent.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A packet was declared lost; comes before [`Avoidance::on_congestion`].
    fn on_packet_lost(&mut self, _lost: &LostPacket) {}

    /// Everything that was sent before the last congestion event is acknowledged or lost; comes before the
    /// [`Avoidance::on_ack`] of the same acknowledgement.
    fn on_recovered(&mut self) {}

    /// New CE marks were echoed: at most once per window for an integrated algorithm, each echo for a scalable one.
    fn on_mark(&mut self, _ecn: &Ecn) {}

    /// Whether the response goes with the share of marked packets (RFC 9331, section 4). Then data carries ECT(1), marks are
    /// told one by one, and the next two methods are called.
    fn scalable(&self) -> bool {
        false
    }

    /// Data was delivered, whatever the phase; comes after the marks of the same acknowledgement.
    fn on_delivered(&mut self, _ack: &Ack, _rtt: &RttEstimator) {}

    /// Whether [`Avoidance::on_ecn`] may reduce the window for marks that were just told.
    fn response_due(&self, _now: Timestamp) -> bool {
        true
    }

    /// Whether packets carry a congestion header, which routers fill with feedback (XCP).
    fn wants_feedback(&self) -> bool {
        false
    }

    /// An acknowledgement brought the routers' feedback: the change of throughput in bytes per second. Returns the new cwnd.
    fn on_feedback(&mut self, _now: Timestamp, _feedback: i32, window: Window, _rtt: &RttEstimator) -> Bytes {
        window.cwnd
    }

    /// Rate at which packets may leave, also on a host that does not pace by itself. Asked for after every event.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Bytes that may leave at once when sending resumes with nothing in flight; `None`: the host's own burst.
    fn burst(&self) -> Option<Bytes> {
        None
    }

    /// Bytes that a host without pacing of its own hands to its interface at once, each time that the pacing rate lets packets
    /// leave; `None`: packets leave one by one.
    fn send_group(&self) -> Option<Bytes> {
        None
    }

    /// Whether the algorithm is still in its own startup.
    fn is_starting(&self) -> bool {
        false
    }

    /// Why the algorithm's own startup ended, told once.
    fn take_exit(&mut self) -> Option<ExitReason> {
        None
    }

    /// The next phase that the last event led to, named as in the algorithm's reference, and what caused it; each is told
    /// once. Asked for after every event until there is none, for traces.
    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        None
    }
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
    Bbr = "bbr" in bbr,
    Xcp = "xcp" in xcp,
    Prague = "prague" in prague,
}

impl AvoidanceConfig {
    /// Whether the algorithm is integrated ([`Avoidance::integrated`]).
    pub fn integrated(&self) -> bool {
        match self {
            Self::Bbr(_) | Self::Xcp(_) => true,
            Self::Reno(_) | Self::Cubic(_) | Self::Prague(_) => false,
        }
    }
}
