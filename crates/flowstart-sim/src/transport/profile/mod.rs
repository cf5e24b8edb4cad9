//! Transport profiles: named sets of policies.
//!
//! A profile is data. Each difference between two stacks is a named policy, chosen here. Code never tests for a
//! profile's name.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::{
    ControllerConfig, GrowthRule, Pacing, Reduction, ReductionBase, SlowStartAfterTimeout, TimeoutReduction,
    WindowValidation,
};
use flowstart_core::startup::{Increase, StartupConfig, hystart, slow_start};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::transport::policy::{
    AckPolicy, AfterTimeout, IgnoreReceiveWindow, LossDetection, MixedAck, Opening, Pipe, Protocol, ReceiveBuffer,
    RttSamples, SpuriousDetection, TailRepair, TimeoutArithmetic, TimerRestart, TransitionGrowth, WindowTest,
};
use crate::transport::scone::SconePolicy;

mod named;

/// A transport profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Protocol.
    pub protocol: Protocol,
    /// The opener.
    pub opening: Opening,
    /// Payload bytes of a full packet.
    pub payload: u32,
    /// Bytes of a packet besides payload that count as in flight (QUIC counts its datagram, TCP its payload).
    pub overhead_in_flight: u32,
    /// Bytes on the wire besides payload.
    pub overhead: u32,
    /// Bytes on the wire of an acknowledgement without ranges.
    pub ack_size: u32,
    /// Bytes that each range adds to an acknowledgement.
    pub ack_range_size: u32,
    /// Most ranges in an acknowledgement.
    pub ack_ranges: u32,
    /// Bytes on the wire of the opening packet (SYN; Initial).
    pub opening_size: u32,
    /// Packets that answer it (SYN-ACK: 1; QUIC: the server's flight with its certificate).
    pub answer_packets: u8,
    /// Bytes on the wire of each of them.
    pub answer_size: u32,
    /// Bytes on the wire of the packet that completes the handshake and carries the request, or of the opener's
    /// acknowledgement if the sender opens; 0: no such packet.
    pub completion_size: u32,
    /// Whether a 0-RTT client holds a token that validates its address (RFC 9000, section 8.1.3).
    pub token: bool,
    /// Receive window that the receiver keeps open beyond the consumed data; the largest one if it grows.
    pub receive_window: Bytes,
    /// Initial receive window, which then grows by the receiver's rule; absent: it has its largest size from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_receive_window: Option<Bytes>,
    /// The buffer from which the receive window follows, instead of the two values above; absent: they apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<ReceiveBuffer>,
    /// The phases in which the sender ignores the receive window.
    #[serde(default)]
    pub ignore_receive_window: IgnoreReceiveWindow,
    /// The receiver's acknowledgements.
    pub ack: AckPolicy,
    /// Segment as the unit of cwnd.
    pub segment: u32,
    /// Initial window in segments.
    pub initial_window: u64,
    /// Smallest window after a reduction, in segments.
    pub min_window: u64,
    /// Largest window in segments; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_window: Option<u64>,
    /// Window after a timeout, in segments.
    pub timeout_window: u64,
    /// The effect of a timeout on ssthresh.
    #[serde(default)]
    pub timeout_reduction: TimeoutReduction,
    /// Slow start after a timeout.
    #[serde(default)]
    pub slow_start_after_timeout: SlowStartAfterTimeout,
    /// The counting of slow start.
    pub increase: Increase,
    /// The window during recovery.
    pub reduction: Reduction,
    /// The base of a reduction.
    pub reduction_base: ReductionBase,
    /// The condition for growth of the window.
    pub growth: GrowthRule,
    /// The contribution to congestion avoidance of the acknowledgement that ends slow start or recovery.
    pub transition_growth: TransitionGrowth,
    /// The room in the window that another packet needs.
    pub window_test: WindowTest,
    /// Packets that must be acknowledged beyond a packet before it counts as lost (RFC 9002, RFC 6675: 3).
    pub packet_threshold: u32,
    /// A packet is lost when it is this many RTTs older than an acknowledged one (RFC 9002, section 6.1.2: 1.125).
    /// TCP: absent; lost retransmissions are found by their order instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_threshold: Option<f64>,
    /// TCP's evidence of losses.
    #[serde(default, skip_serializing_if = "LossDetection::is_default")]
    pub loss_detection: LossDetection,
    /// Whether TCP sends a segment after two RTTs without an acknowledgement (RFC 8985, section 7).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loss_probe: bool,
    /// Whether TCP's receiver reports duplicates (D-SACK, RFC 2883).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dsack: bool,
    /// TCP's evidence that a retransmitted segment was only late.
    #[serde(default, skip_serializing_if = "SpuriousDetection::is_default")]
    pub spurious_detection: SpuriousDetection,
    /// TCP's count of the bytes in flight.
    pub pipe: Pipe,
    /// Whether TCP notices the loss of a retransmission when later packets arrive (RFC 8985).
    pub lost_retransmissions: bool,
    /// Smallest retransmission timeout (TCP).
    pub min_rto: Duration,
    /// Retransmission timeout, or RTT of QUIC, before the first sample.
    pub initial_timeout: Duration,
    /// Time before the opener repeats its part of the handshake; doubled each time.
    pub handshake_timeout: Duration,
    /// Granularity of the sender's clock (RFC 6298, section 4; RFC 9002, section 6.1.2).
    pub granularity: Duration,
    /// RTT samples are rounded down to a multiple of this (TCP timestamps); 0: exact.
    pub sample_resolution: Duration,
    /// The source of TCP's RTT samples.
    #[serde(default, skip_serializing_if = "RttSamples::is_default")]
    pub rtt_samples: RttSamples,
    /// The computation of TCP's timeout.
    #[serde(default, skip_serializing_if = "TimeoutArithmetic::is_default")]
    pub timeout_arithmetic: TimeoutArithmetic,
    /// The events that restart TCP's timer during recovery.
    pub timer_restart: TimerRestart,
    /// The meaning of a cumulative acknowledgement that also newly SACKs.
    pub mixed_ack: MixedAck,
    /// TCP's repair of a tail in fast recovery.
    pub tail_repair: TailRepair,
    /// The data that TCP sends again after a timeout.
    pub after_timeout: AfterTimeout,
    /// The window after idle and application-limited periods (congestion window validation).
    #[serde(default)]
    pub idle: WindowValidation,
    /// Whether the sender is ECN-capable: data carries ECT(0), and marks reduce the window instead of drops (RFC 3168;
    /// RFC 9000, section 13.4). No profile sets it. A scalable congestion avoidance is ECN-capable without it, by
    /// ECT(1).
    pub ecn: bool,
    /// The time from which the data sender offers SCONE packets to the path (QUIC).
    #[serde(default, skip_serializing_if = "SconePolicy::is_none")]
    pub scone: SconePolicy,
    /// Pacing; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// The variant of the scheme `hystart` if its `variant` is not set, even if the host's own startup differs.
    pub hystart: hystart::Variant,
    /// Default startup scheme.
    pub startup: StartupConfig,
    /// Default congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// The host's configurations of other congestion avoidances that differ from their own defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_avoidances: Vec<AvoidanceConfig>,
}

/// The profiles by name, with a line about each.
pub const PROFILES: &[(&str, &str)] = &[
    ("gquic", "Google's QUIC of 2018, the baseline of the Blitzstart paper"),
    ("rfc9002", "QUIC as RFC 9000 and RFC 9002 describe it"),
    ("noq", "QUIC as the stack noq sends it: its packets and handshake, the policies of rfc9002"),
    ("tcp-rfc", "TCP as RFC 5681, 6675, 6298 and 6928 describe it"),
    (
        "tcp-linux",
        "TCP as Linux runs it: CUBIC, HyStart, PRR, no pacing; a receiver with 16 MB, receive_window=auto is Linux's default",
    ),
    ("ns2-sack1", "ns-2.35's Agent/TCP/Sack1 with its sink"),
    ("ns3", "ns-3's TcpSocketBase as the reference runs configure it"),
];

impl Profile {
    /// The profile with this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gquic" => Self::gquic(),
            "rfc9002" => Self::rfc9002(),
            "noq" => Self::noq(),
            "tcp-rfc" => Self::tcp_rfc(),
            "tcp-linux" => Self::tcp_linux(),
            "ns2-sack1" => Self::ns2_sack1(),
            "ns3" => Self::ns3(),
            _ => return None,
        })
    }
    /// The host's configuration of the congestion avoidance with this name; `None`: its own defaults.
    pub fn avoidance_named(&self, name: &str) -> Option<&AvoidanceConfig> {
        std::iter::once(&self.avoidance).chain(&self.other_avoidances).find(|avoidance| avoidance.name() == name)
    }

    /// The startup of this host beside a congestion avoidance. Its own startup belongs to its own avoidance; other
    /// avoidances have slow start.
    pub fn startup_beside(&self, avoidance: &AvoidanceConfig) -> StartupConfig {
        match avoidance.name() == self.avoidance.name() {
            true => self.resolved(self.startup.clone()),
            false => StartupConfig::SlowStart(slow_start::Config::default()),
        }
    }

    /// The profile that stands for the other protocol beside this one: that of Linux for TCP, and the RFCs' for QUIC.
    pub fn of_protocol(protocol: Protocol) -> (&'static str, Self) {
        match protocol {
            Protocol::Tcp => ("tcp-linux", Self::tcp_linux()),
            Protocol::Quic => ("rfc9002", Self::rfc9002()),
        }
    }

    /// A startup scheme with the host's values for everything that its configuration omits.
    pub fn resolved(&self, startup: StartupConfig) -> StartupConfig {
        match startup {
            StartupConfig::Hystart(config) => {
                let variant = config.variant.or(Some(self.hystart));
                StartupConfig::Hystart(hystart::Config { variant, ..config })
            }
            other => other,
        }
    }

    /// The controller of a flow with this profile.
    pub fn controller(&self, startup: StartupConfig, avoidance: AvoidanceConfig) -> ControllerConfig {
        ControllerConfig {
            startup: self.resolved(startup),
            avoidance,
            segment: Bytes::new(u64::from(self.segment)),
            initial_window: self.initial_window,
            min_window: self.min_window,
            max_window: self.max_window,
            increase: self.increase,
            reduction: self.reduction,
            reduction_base: self.reduction_base,
            growth: self.growth,
            transition_growth: self.transition_growth != TransitionGrowth::Nothing,
            pacing: self.pacing,
            timeout_window: self.timeout_window,
            timeout_reduction: self.timeout_reduction,
            slow_start_after_timeout: self.slow_start_after_timeout,
            window_validation: self.idle,
            undo: self.spurious_detection != SpuriousDetection::None,
        }
    }

    /// The receive window that the handshake announces.
    pub fn first_receive_window(&self) -> Bytes {
        if let Some(buffer) = &self.receive_buffer {
            return Bytes::new(buffer.first_window(u64::from(self.payload)));
        }
        self.initial_receive_window.map_or(self.receive_window, |initial| initial.min(self.receive_window))
    }

    /// The receive window that Sensing knows.
    pub fn announced_receive_window(&self) -> Option<Bytes> {
        (self.ignore_receive_window == IgnoreReceiveWindow::Never).then(|| self.first_receive_window())
    }

    /// Bytes on the wire of a packet with this payload.
    pub fn data_wire_size(&self, payload: u32) -> u32 {
        payload + self.overhead
    }

    /// The contribution of this payload to the bytes in flight, in full packets except the last.
    pub fn bytes_in_flight(&self, payload: u64) -> Bytes {
        Bytes::new(payload + payload.div_ceil(u64::from(self.payload)) * u64::from(self.overhead_in_flight))
    }

    /// The contribution of a packet with this payload to the bytes in flight.
    pub fn in_flight_size(&self, payload: u32) -> Bytes {
        Bytes::new(u64::from(payload + self.overhead_in_flight))
    }
}

#[cfg(test)]
mod tests;
