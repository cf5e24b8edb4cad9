//! The three kinds of congestion avoidance.
//!
//! | Kind | In charge | Congestion | Examples |
//! |---|---|---|---|
//! | [`LossBased`] | once startup is over | a reduction for each event | Reno, CUBIC |
//! | [`Scalable`] | once startup is over | a response to the share of marks; loss as above | Prague |
//! | [`Integrated`] | from the launch | its own rules | BBR, XCP |

use alloc::boxed::Box;
use core::fmt;

use crate::event::{Ack, Ecn, ExitReason, LostPacket, Sent};
use crate::launch::Launch;
use crate::needs::Needs;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// The kind of a congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`LossBased`].
    LossBased,
    /// [`Scalable`].
    Scalable,
    /// [`Integrated`].
    Integrated,
}

/// A congestion avoidance behind the trait of its kind.
#[derive(Debug)]
pub enum Algorithm<'a> {
    /// Answers each congestion event with a reduction.
    LossBased(&'a mut dyn LossBased),
    /// Answers the share of marks.
    Scalable(&'a mut dyn Scalable),
    /// Probes and continues by itself.
    Integrated(&'a mut dyn Integrated),
}

/// A congestion avoidance that lives outside this crate.
#[derive(Clone, Debug)]
pub enum Custom {
    /// Answers each congestion event with a reduction.
    LossBased(Box<dyn LossBased>),
    /// Answers the share of marks.
    Scalable(Box<dyn Scalable>),
    /// Probes and continues by itself.
    Integrated(Box<dyn Integrated>),
}

impl Custom {
    pub(super) fn algorithm(&mut self) -> Algorithm<'_> {
        match self {
            Self::LossBased(state) => Algorithm::LossBased(state.as_mut()),
            Self::Scalable(state) => Algorithm::Scalable(state.as_mut()),
            Self::Integrated(state) => Algorithm::Integrated(state.as_mut()),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::LossBased(_) => Kind::LossBased,
            Self::Scalable(_) => Kind::Scalable,
            Self::Integrated(_) => Kind::Integrated,
        }
    }

    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::LossBased(state) => state.needs(),
            Self::Scalable(state) => state.needs(),
            Self::Integrated(state) => state.needs(),
        }
    }
}

/// Grows the window once startup is over, and reduces it for each congestion event.
pub trait LossBased: fmt::Debug + Send + CloneLossBased {
    /// What the algorithm needs of its host.
    fn needs(&self) -> Needs {
        Needs::NONE
    }

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

    /// Other connections to the same peer gave window or took it, which was `before` (RFC 9040, section 7): no
    /// congestion.
    fn on_share(&mut self, now: Timestamp, _before: Bytes, window: Window) {
        self.on_enter(now, window);
    }

    /// A congestion event. The reduction starts from `base`: cwnd or bytes in flight, by the transport's profile.
    /// Returns ssthresh.
    fn on_congestion(&mut self, now: Timestamp, base: Bytes, window: Window) -> Bytes;

    /// As [`LossBased::on_congestion`], for a congestion event from CE marks. The default response is that to a loss
    /// (RFC 3168, section 5).
    fn on_ecn(&mut self, now: Timestamp, base: Bytes, window: Window) -> Bytes {
        self.on_congestion(now, base, window)
    }

    /// A retransmission timeout or persistent congestion. Comes after the [`LossBased::on_congestion`] for it, if there
    /// is one.
    fn on_timeout(&mut self) {}

    /// Shows the algorithm's inner variables, under the names of its reference. Read after every event of a traced run.
    fn observe(&self, _seen: &mut Variables<'_>) {}
}

/// Responds to the share of marked packets (RFC 9331, section 4), and to loss like a loss-based algorithm.
///
/// The marks that end startup are a congestion event. Later marks come with their number, and [`LossBased::on_ecn`]
/// reduces the window for them when [`Scalable::response_due`] says so.
pub trait Scalable: LossBased + CloneScalable {
    /// New CE marks were echoed.
    fn on_mark(&mut self, ecn: &Ecn);

    /// Data was delivered, in any phase. Comes after the marks of the same acknowledgement.
    fn on_delivered(&mut self, ack: &Ack, rtt: &RttEstimator);

    /// Whether [`LossBased::on_ecn`] may reduce the window for the marks just reported.
    fn response_due(&self, now: Timestamp) -> bool;
}

/// Probes and continues by itself. It is in charge from the launch on, and takes only the launch from the startup
/// scheme.
pub trait Integrated: fmt::Debug + Send + CloneIntegrated {
    /// What the algorithm needs of its host. Without [`RATE_SAMPLES`](Needs::RATE_SAMPLES) it is told neither of lost
    /// packets nor of acknowledgements that bring nothing new, and [`Ack::sample`] is empty.
    fn needs(&self) -> Needs {
        Needs::NONE
    }

    /// Segments have another size from now on (path MTU discovery).
    fn on_segment_size(&mut self, segment: SegmentSize);

    /// Sensing is over: the algorithm is in charge from now on, and the window is the launch's.
    fn on_launch(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator);

    /// The startup scheme has sensed a window and a rate with the first acknowledgements; returns the new cwnd.
    fn on_late_launch(&mut self, window: Window, _cwnd: Bytes, _rate: Rate) -> Bytes {
        window.cwnd
    }

    /// A packet was sent.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// Data was delivered; returns the new cwnd. Comes whether or not the window is in use, also in recovery.
    fn on_ack(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Bytes;

    /// A packet was declared lost. Comes before [`Integrated::on_congestion`].
    fn on_packet_lost(&mut self, _lost: &LostPacket) {}

    /// Packets were lost for the first time in a window; returns the new cwnd.
    fn on_congestion(&mut self, window: Window) -> Bytes;

    /// All packets sent before the last congestion event are acknowledged or lost. Comes before the
    /// [`Integrated::on_ack`] of the same acknowledgement.
    fn on_recovered(&mut self) {}

    /// New CE marks were echoed, for the first time in a window.
    fn on_mark(&mut self, _ecn: &Ecn) {}

    /// A retransmission timeout or persistent congestion. Comes after the [`Integrated::on_congestion`] for it. `least`
    /// is the host's window after it. Returns the new cwnd.
    fn on_timeout(&mut self, _now: Timestamp, _window: Window, least: Bytes) -> Bytes {
        least
    }

    /// An acknowledgement brought the routers' feedback ([`Needs::CONGESTION_HEADER`]): the change of throughput in
    /// bytes per second. Returns the new cwnd.
    fn on_feedback(&mut self, _feedback: i32, window: Window, _rtt: &RttEstimator) -> Bytes {
        window.cwnd
    }

    /// Rate at which packets may leave, also on a host that does not pace by itself; `None`: the host's own rule. Read
    /// after every event.
    fn pacing_rate(&self) -> Option<Rate>;

    /// Bytes that may leave at once when sending resumes with nothing in flight; `None`: the host's own burst.
    fn burst(&self) -> Option<Bytes> {
        None
    }

    /// Bytes that a host without its own pacing hands to its interface at once, whenever the pacing rate lets packets
    /// leave; `None`: packets leave one by one.
    fn send_group(&self) -> Option<Bytes> {
        None
    }

    /// Whether the algorithm is still in its own startup.
    fn is_starting(&self) -> bool;

    /// Why the algorithm's own startup ended; returned once.
    fn take_exit(&mut self) -> Option<ExitReason>;

    /// The next phase to which the last event led, named as in the algorithm's reference, and its cause. Each is
    /// returned once. Read after every event until there is none, for traces.
    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Shows the algorithm's inner variables, under the names of its reference. Read after every event of a traced run.
    fn observe(&self, _seen: &mut Variables<'_>) {}
}

cloned_in_boxes! {
    /// Lets a boxed algorithm be cloned; implemented for every algorithm that is `Clone`.
    CloneLossBased: LossBased;
    /// Lets a boxed algorithm be cloned; implemented for every algorithm that is `Clone`.
    CloneScalable: Scalable;
    /// Lets a boxed algorithm be cloned; implemented for every algorithm that is `Clone`.
    CloneIntegrated: Integrated;
}
