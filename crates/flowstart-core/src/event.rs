//! What a transport reports to the controller, and what the controller reports to an observer.

use alloc::collections::VecDeque;
use core::fmt;

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// A place in the order of transmission. From it the controller knows whether an event belongs to the window of an
/// earlier congestion event: the packet number in QUIC, the last byte's sequence number in TCP.
pub type Position = u64;

/// A packet that counts towards the bytes in flight was sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// When it left the sender.
    pub now: Timestamp,
    /// What it adds to the bytes in flight.
    pub bytes: Bytes,
    /// Bytes in flight with it.
    pub in_flight: Bytes,
    /// Highest position sent so far, this packet included.
    pub position: Position,
    /// The sender had nothing to send, or was stopped by flow control, before this packet.
    pub app_limited: bool,
}

impl Sent {
    /// A packet of `bytes` bytes from a sender with enough data.
    pub fn new(now: Timestamp, bytes: Bytes, in_flight: Bytes, position: Position) -> Self {
        Self { now, bytes, in_flight, position, app_limited: false }
    }
}

/// An acknowledgement reported new data as delivered.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ack {
    /// When the acknowledgement arrived.
    pub now: Timestamp,
    /// Newly delivered bytes, cumulatively or selectively acknowledged.
    pub bytes: Bytes,
    /// Newly delivered packets.
    pub packets: u64,
    /// QUIC: largest packet number acknowledged. TCP: the cumulative acknowledgement.
    pub position: Position,
    /// RTT sample that this acknowledgement gave, without the receiver's own delay where the transport knows it.
    pub rtt: Option<Duration>,
    /// Bytes in flight before the acknowledgement.
    pub in_flight_before: Bytes,
    /// Bytes in flight after it (RFC 6675 calls it pipe).
    pub in_flight: Bytes,
    /// The acknowledgement makes progress and reports no further loss (`SafeACK` of RFC 9937).
    pub safe: bool,
    /// The sender had nothing to send, or was stopped by flow control, when the newest acknowledged packet left.
    pub app_limited: bool,
    /// How fast the path delivers, if the controller asks for it
    /// ([`Needs::RATE_SAMPLES`](crate::needs::Needs::RATE_SAMPLES)).
    pub sample: Option<RateSample>,
}

impl Ack {
    /// An acknowledgement of `bytes` bytes in `packets` packets, after which nothing is in flight. It makes progress,
    /// gives no sample, and arrives at a sender with enough data.
    pub fn new(now: Timestamp, bytes: Bytes, packets: u64, position: Position) -> Self {
        Self {
            now,
            bytes,
            packets,
            position,
            rtt: None,
            in_flight_before: bytes,
            in_flight: Bytes::ZERO,
            safe: true,
            app_limited: false,
            sample: None,
        }
    }
}

/// An acknowledgement's measurement of the delivery rate, from
/// [`DeliveryRate::take_sample`](crate::delivery_rate::DeliveryRate::take_sample). Names are those of its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// `C.delivered`: what is delivered now, since the connection began.
    pub total_delivered: Bytes,
    /// `RS.prior_delivered`: what was delivered when the newest acknowledged packet was sent.
    pub prior_delivered: Bytes,
    /// `RS.delivered`: the difference.
    pub delivered: Bytes,
    /// `RS.interval`: the time it took.
    pub interval: Duration,
    /// `RS.delivery_rate`; `None` when the interval is shorter than the smallest RTT and so not reliable.
    pub rate: Option<Rate>,
    /// `RS.is_app_limited`: the sender had run out of data when the newest acknowledged packet was sent.
    pub app_limited: bool,
    /// `RS.newly_acked`: what this acknowledgement delivered.
    pub newly_acked: Bytes,
    /// `RS.newly_lost`: what was declared lost since the sample before.
    pub newly_lost: Bytes,
    /// `RS.lost`: what was declared lost since the newest acknowledged packet was sent.
    pub lost: Bytes,
    /// `RS.tx_in_flight`: bytes in flight when the newest acknowledged packet was sent.
    pub tx_in_flight: Bytes,
}

/// A packet was declared lost. If the controller asks for rate samples, losses are reported one by one before the
/// [`Loss`] that sums them up; made by [`DeliveryRate::on_lost`](crate::delivery_rate::DeliveryRate::on_lost).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// When the loss was declared.
    pub now: Timestamp,
    /// Its bytes in flight.
    pub bytes: Bytes,
    /// Its first place: the packet number in QUIC, the sequence number in TCP.
    pub start: Position,
    /// The place behind it.
    pub end: Position,
    /// Bytes in flight when it was sent, with it.
    pub tx_in_flight: Bytes,
    /// Bytes declared lost since it was sent, with it.
    pub lost: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// The sender had nothing to send before it.
    pub app_limited: bool,
}

/// Packets were declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When the loss was declared.
    pub now: Timestamp,
    /// Bytes declared lost.
    pub bytes: Bytes,
    /// Highest position declared lost.
    pub position: Position,
    /// Bytes in flight before the loss was declared (`FlightSize` of RFC 5681).
    pub in_flight_before: Bytes,
    /// Bytes in flight after it.
    pub in_flight: Bytes,
}

/// The receiver echoed a new CE mark.
#[derive(Clone, Copy, Debug)]
pub struct Ecn {
    /// When the echo arrived.
    pub now: Timestamp,
    /// QUIC: largest packet number acknowledged by the echo. TCP: the cumulative acknowledgement.
    pub position: Position,
    /// Bytes in flight before the acknowledgement that echoes it.
    pub in_flight: Bytes,
    /// Packets newly reported as marked; 1 if a host knows no number (TCP: `AccECN`, RFC 9768; QUIC: the ECN counts of
    /// RFC 9000, section 19.3.2).
    pub packets: u64,
}

/// A retransmission timeout (RFC 6298) or persistent congestion (RFC 9002, section 7.6).
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// When the timer fired or persistent congestion was established.
    pub now: Timestamp,
    /// Bytes in flight before it.
    pub in_flight_before: Bytes,
}

/// Why a startup scheme ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ExitReason {
    /// cwnd reached ssthresh.
    Ssthresh,
    /// Packets were lost.
    Loss,
    /// A CE mark was echoed.
    Ecn,
    /// The RTT grew.
    Delay,
    /// Acknowledgements followed each other closely for too long.
    AckTrain,
    /// Deliveries stopped growing with what is sent.
    Chokepoint,
    /// The launch itself starts congestion avoidance.
    Launch,
    /// The launch window was delivered.
    Validated,
    /// A retransmission timeout or persistent congestion.
    Timeout,
    /// A reason that only one scheme has, or a scheme outside this crate.
    Other(&'static str),
}

impl ExitReason {
    /// The reasons that several schemes have.
    const COMMON: [Self; 9] = [
        Self::Ssthresh,
        Self::Loss,
        Self::Ecn,
        Self::Delay,
        Self::AckTrain,
        Self::Chokepoint,
        Self::Launch,
        Self::Validated,
        Self::Timeout,
    ];

    /// The reason with this name in results; `None` for one that only one scheme has.
    pub fn named(name: &str) -> Option<Self> {
        Self::COMMON.into_iter().find(|reason| reason.name() == name)
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssthresh => "ssthresh",
            Self::Loss => "loss",
            Self::Ecn => "ecn",
            Self::Delay => "delay",
            Self::AckTrain => "ack-train",
            Self::Chokepoint => "chokepoint",
            Self::Launch => "launch",
            Self::Validated => "validated",
            Self::Timeout => "timeout",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A decision of the controller worth showing (qlog, plots, `flowstart trace`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// The scheme launched.
    Launched {
        /// Initial congestion window.
        cwnd: Bytes,
        /// Pacing rate of the launch, if it sets one.
        pacing_rate: Option<Rate>,
    },
    /// A hint was outside the configured bounds and was capped.
    HintCapped {
        /// What the client said.
        hinted: Rate,
        /// What was used.
        used: Rate,
    },
    /// Throughput advice capped a window that the scheme wanted, or its rate alone.
    AdviceCapped {
        /// The rate that elements of the path advise.
        advised: Rate,
        /// The window that the scheme wanted.
        before: Bytes,
        /// What the advice leaves of it: all of it where only the rate was capped.
        after: Bytes,
    },
    /// The scheme went on to another of its phases.
    PhaseEntered {
        /// The phase, named as in the scheme's reference.
        phase: &'static str,
        /// What caused it.
        trigger: &'static str,
    },
    /// Startup ended.
    StartupExited {
        /// Why.
        reason: ExitReason,
        /// cwnd handed to congestion avoidance.
        cwnd: Bytes,
        /// ssthresh handed to congestion avoidance.
        ssthresh: Bytes,
    },
    /// A congestion event reduced the window.
    WindowReduced {
        /// cwnd before.
        before: Bytes,
        /// cwnd that the reduction leads to.
        after: Bytes,
    },
    /// The losses behind the last reduction were spurious, and it was undone.
    ReductionUndone {
        /// cwnd before.
        before: Bytes,
        /// cwnd from now on.
        after: Bytes,
    },
    /// Congestion window validation changed an unused window.
    WindowValidated {
        /// cwnd before.
        before: Bytes,
        /// cwnd from now on.
        after: Bytes,
        /// ssthresh from now on.
        ssthresh: Bytes,
    },
    /// Other connections to the same peer gave window or took it.
    WindowShared {
        /// cwnd before.
        before: Bytes,
        /// cwnd from now on.
        after: Bytes,
    },
    /// Recovery ended.
    Recovered {
        /// cwnd after it.
        cwnd: Bytes,
    },
    /// A timeout or persistent congestion collapsed the window.
    Collapsed {
        /// cwnd before.
        before: Bytes,
        /// ssthresh set.
        ssthresh: Bytes,
    },
}

/// The latest decisions with their times; the oldest are forgotten when nobody takes them.
#[derive(Clone, Debug, Default)]
pub struct DecisionLog {
    entries: VecDeque<(Timestamp, Decision)>,
}

/// Decisions kept until somebody takes them: a bound on memory for hosts that never look.
const DECISIONS_KEPT: usize = 32;

impl DecisionLog {
    /// Notes a decision.
    pub fn note(&mut self, now: Timestamp, decision: Decision) {
        if self.entries.len() == DECISIONS_KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back((now, decision));
    }

    /// Takes the oldest decision not yet taken.
    pub fn take(&mut self) -> Option<(Timestamp, Decision)> {
        self.entries.pop_front()
    }
}
