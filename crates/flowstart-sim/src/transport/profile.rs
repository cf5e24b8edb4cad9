//! Transport profiles: named sets of policies.
//!
//! A profile is data. What differs between two stacks is a policy with a name, chosen here, and never a question for a
//! profile's name in the code.

use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic, reno};
use flowstart_core::controller::{
    ControllerConfig, GrowthRule, Pacing, Reduction, ReductionBase, SlowStartAfterTimeout, TimeoutReduction,
    WindowValidation,
};
use flowstart_core::startup::{Increase, StartupConfig, hystart, slow_start};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use serde::{Deserialize, Serialize};

use super::receive_buffer::Buffer;
use super::scone::SconePolicy;

/// Which transport protocol is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// QUIC.
    Quic,
}

/// Who opens the connection and what has to be exchanged before data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opening {
    /// The data sender opens; data follows the answer to its opening packet.
    Sender,
    /// The data receiver opens and sends its request when the answer is there.
    Request,
    /// The data receiver opens and sends its request at once (0-RTT).
    ZeroRtt,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AckPolicy {
    /// Packets per acknowledgement. RFC 9000, section 13.2.2, and RFC 5681: 2.
    pub every: u32,
    /// Longest time that an acknowledgement is held back. RFC 9000: 25 ms.
    pub max_delay: Duration,
    /// Packets at the start that are acknowledged one by one.
    pub quick: u32,
    /// Whether a packet that lets the receive window grow is acknowledged at once, not counted among these (Linux;
    /// [`Profile::receive_buffer`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_growing: bool,
    /// How long acknowledgements are held back that only tell of data beyond a gap, after three of them; absent: not at all.
    /// Linux: 1 ms on paths of 20 ms and longer (`tcp_comp_sack_delay_ns`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Duration>,
}

impl AckPolicy {
    /// An acknowledgement for every so many packets, after this time, and for each of the first ones.
    pub const fn new(every: u32, max_delay: Duration, quick: u32) -> Self {
        Self { every, max_delay, quick, while_growing: false, compression: None }
    }
}

/// The buffer that Linux has for what arrives on a connection (`tcp_rmem`), from which its receive window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveBuffer {
    /// Its size at first.
    pub initial: Bytes,
    /// Its largest size.
    pub largest: Bytes,
    /// What a full packet takes of it (`truesize`). 2304: 2048 of data and 256 that describe it, where an interface hands over
    /// each packet by itself.
    pub packet: u32,
}

impl ReceiveBuffer {
    /// `tcp_rmem` of 4096 131072 6291456, as Linux ships: the window begins at 64 kB and grows.
    pub const AUTO: Self = Self { initial: Bytes::new(131_072), largest: Bytes::new(6_291_456), packet: 2304 };
    /// `tcp_rmem` of 4096 16777216 67108864: the window is no limit below 8 MB.
    pub const OPEN: Self = Self { initial: Bytes::new(16_777_216), largest: Bytes::new(67_108_864), packet: 2304 };

    /// The buffers that have a name.
    pub const NAMED: [(&str, Self); 2] = [("auto", Self::AUTO), ("open", Self::OPEN)];
}

/// When a sender does not obey the receive window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoreReceiveWindow {
    /// It always obeys.
    #[default]
    Never,
    /// While it probes: the window of a launch is sent whatever the receiver has announced, and Sensing does not hear of the
    /// receive window (Scharf, Floyd, Sarolahti, draft-scharf-tcpm-flow-control-quick-start-00, 2008). What follows obeys. It
    /// breaks the rules of TCP and QUIC, and the model receiver, which has memory for everything, lets it pass.
    Probing,
}

/// How TCP estimates the bytes in flight during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pipe {
    /// From the scoreboard: sent, minus SACKed, minus lost, plus retransmitted (RFC 6675).
    Scoreboard,
    /// A counter that every arriving acknowledgement decrements, a partial one twice; lost packets are not deducted and
    /// a hole counts as lost as soon as anything above it was SACKed (Fall, Floyd 1996; ns-2's Sack1).
    Classic,
}

/// What tells TCP that a segment is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// [`Profile::packet_threshold`] `SACKed` segments above it, or duplicate acknowledgements (RFC 6675).
    #[default]
    SackedAbove,
    /// The delivery of something that was sent after it, and time (RFC 8985). Nothing is sent again that is not known to be
    /// lost.
    Rack,
}

/// What tells TCP that a segment which it sent again had only been late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpuriousDetection {
    /// Nothing: a reduction stays.
    #[default]
    None,
    /// Timestamps, and after a timeout the delivery of what was sent only once (RFC 3522, RFC 5682).
    Timestamps,
}

impl SpuriousDetection {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl LossDetection {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// When the sender may put another packet into the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowTest {
    /// When the whole packet fits (RFC 9002, section 7).
    Fits,
    /// When anything is free (Google's QUIC).
    Open,
}

/// When the retransmission timer of TCP restarts during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerRestart {
    /// With every acknowledgement of new data (RFC 6298, section 5.3).
    EveryAck,
    /// Only with the first partial acknowledgement ("impatient", RFC 6582, section 4).
    FirstPartialAck,
    /// With every acknowledgement of new data, and when the first segment is sent again (Linux): it has a whole timeout
    /// to be acknowledged.
    EveryAckAndRepair,
}

/// What TCP measures the RTT with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttSamples {
    /// Every acknowledgement that advances, by its timestamp (RFC 7323, section 4).
    #[default]
    EveryAck,
    /// One segment of new data at a time, without timestamps; a loss ends its measurement (RFC 6298, section 3; ns-2).
    OneSegment,
}

impl RttSamples {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How TCP's retransmission timeout is computed from samples of the RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutArithmetic {
    /// As the equations say (RFC 6298, section 2).
    #[default]
    Exact,
    /// In integers, with [`Profile::sample_resolution`] as the tick (Jacobson 1988, appendix A; BSD, ns-2).
    Ticks,
}

impl TimeoutArithmetic {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What an acknowledgement of TCP means that newly acknowledges both cumulatively and selectively, outside recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixedAck {
    /// Progress, and the first duplicate (RFC 6675, section 5).
    ProgressAndDuplicate,
    /// Another duplicate only: the window does not grow, the timer is not restarted, and earlier duplicates still count
    /// (ns-3).
    DuplicateOnly,
}

/// What the acknowledgement that ends slow start or fast recovery adds to congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransitionGrowth {
    /// Nothing: growth begins with the next one (RFC 5681 and RFC 9002 name only ssthresh).
    Nothing,
    /// What it newly delivers (Linux).
    Delivered,
    /// As `delivered`, and at the end of recovery everything by which it advances, SACKed before or not (ns-3).
    Advance,
}

/// How TCP repairs a tail in fast recovery: data that nothing SACKed lies above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TailRepair {
    /// Once per recovery the last segment is sent again when the window has room and nothing else is left to send
    /// (RFC 6675, `NextSeg` rule 4).
    Rescue,
    /// A partial acknowledgement sends the first segment again, whatever the window, if it was not yet (RFC 6582,
    /// section 3.2; ns-3).
    PartialAck,
    /// Not: only the retransmission timer does.
    Timer,
}

/// What TCP sends again after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTimeout {
    /// Everything that is outstanding and was not SACKed (RFC 5681, section 3.1; RFC 6675, section 5.1).
    Outstanding,
    /// While anything is SACKed only what lies below it, then new data; everything that is outstanding otherwise (ns-3).
    BelowHighestSack,
    /// Everything in order, SACKed or not, by a window that begins at the first segment; duplicate acknowledgements beyond the
    /// second release nothing (ns-2).
    GoBackN,
}

/// A transport profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Protocol.
    pub protocol: Protocol,
    /// Who opens.
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
    /// acknowledgement when the sender opens; 0: none is sent.
    pub completion_size: u32,
    /// Whether a 0-RTT client holds a token that validates its address (RFC 9000, section 8.1.3).
    pub token: bool,
    /// Receive window that the receiver keeps open beyond what it has consumed; the largest one where it grows.
    pub receive_window: Bytes,
    /// The receive window at the start, which then grows as the receiver sees fit; absent: it is as large as it may become
    /// from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_receive_window: Option<Bytes>,
    /// The buffer from which the receive window follows instead of the two above; absent: they hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<ReceiveBuffer>,
    /// When the sender does not obey the receive window.
    #[serde(default)]
    pub ignore_receive_window: IgnoreReceiveWindow,
    /// When the receiver acknowledges.
    pub ack: AckPolicy,
    /// Segment in which cwnd is counted.
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
    /// What a timeout does to ssthresh.
    #[serde(default)]
    pub timeout_reduction: TimeoutReduction,
    /// How slow start runs after a timeout.
    #[serde(default)]
    pub slow_start_after_timeout: SlowStartAfterTimeout,
    /// How slow start counts.
    pub increase: Increase,
    /// How the window moves during recovery.
    pub reduction: Reduction,
    /// What a reduction starts from.
    pub reduction_base: ReductionBase,
    /// When the window may grow.
    pub growth: GrowthRule,
    /// What the acknowledgement that ends slow start or recovery adds to congestion avoidance.
    pub transition_growth: TransitionGrowth,
    /// When another packet may be sent.
    pub window_test: WindowTest,
    /// Packets that must be acknowledged beyond a packet before it counts as lost (RFC 9002, RFC 6675: 3).
    pub packet_threshold: u32,
    /// A packet is lost when it is this many RTTs older than an acknowledged one (RFC 9002, section 6.1.2: 1.125).
    /// TCP: absent; lost retransmissions are found by their order instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_threshold: Option<f64>,
    /// What tells TCP of losses.
    #[serde(default, skip_serializing_if = "LossDetection::is_default")]
    pub loss_detection: LossDetection,
    /// Whether TCP sends a segment when nothing was acknowledged for two RTTs (RFC 8985, section 7).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loss_probe: bool,
    /// Whether TCP's receiver reports what arrived twice (D-SACK, RFC 2883).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dsack: bool,
    /// How TCP finds that what it sent again had only been late.
    #[serde(default, skip_serializing_if = "SpuriousDetection::is_default")]
    pub spurious_detection: SpuriousDetection,
    /// How TCP counts the bytes in flight.
    pub pipe: Pipe,
    /// Whether TCP notices the loss of a retransmission when later packets arrive (RFC 8985).
    pub lost_retransmissions: bool,
    /// Smallest retransmission timeout (TCP).
    pub min_rto: Duration,
    /// Retransmission timeout, or RTT of QUIC, before the first sample.
    pub initial_timeout: Duration,
    /// How long the opener waits before it repeats its part of the handshake; doubled each time.
    pub handshake_timeout: Duration,
    /// Granularity of the sender's clock (RFC 6298, section 4; RFC 9002, section 6.1.2).
    pub granularity: Duration,
    /// RTT samples are rounded down to a multiple of this (TCP timestamps); 0: exact.
    pub sample_resolution: Duration,
    /// What TCP measures the RTT with.
    #[serde(default, skip_serializing_if = "RttSamples::is_default")]
    pub rtt_samples: RttSamples,
    /// How TCP's timeout is computed.
    #[serde(default, skip_serializing_if = "TimeoutArithmetic::is_default")]
    pub timeout_arithmetic: TimeoutArithmetic,
    /// When TCP's timer restarts during recovery.
    pub timer_restart: TimerRestart,
    /// What an acknowledgement means that is cumulative and newly SACKs.
    pub mixed_ack: MixedAck,
    /// How TCP repairs a tail in fast recovery.
    pub tail_repair: TailRepair,
    /// What TCP sends again after a timeout.
    pub after_timeout: AfterTimeout,
    /// What becomes of the window after idle and application-limited periods (congestion window validation).
    #[serde(default)]
    pub idle: WindowValidation,
    /// Whether the sender is ECN-capable: data carries ECT(0), and marks reduce the window instead of drops (RFC 3168;
    /// RFC 9000, section 13.4). No profile is by itself. A scalable congestion
    /// avoidance is ECN-capable without it, by ECT(1).
    pub ecn: bool,
    /// From when on the data sender offers SCONE packets to the path (QUIC).
    #[serde(default, skip_serializing_if = "SconePolicy::is_none")]
    pub scone: SconePolicy,
    /// Pacing; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// Which HyStart the scheme `hystart` is without a `variant`, also where the host's own startup is another.
    pub hystart: hystart::Variant,
    /// Startup scheme of flows for which none is given.
    pub startup: StartupConfig,
    /// Congestion avoidance of flows for which none is given.
    pub avoidance: AvoidanceConfig,
    /// How the host runs other congestion avoidances, where that is not with their own defaults.
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

    /// QUIC as RFC 9000 and 9002 describe it: 1200-byte datagrams over IPv4 and Ethernet.
    pub fn rfc9002() -> Self {
        Self {
            protocol: Protocol::Quic,
            opening: Opening::Request,
            // Datagram 1200 = 1 type + 8 connection ID + 2 packet number + 16 tag + 8 stream frame header + payload.
            payload: 1165,
            overhead_in_flight: 35,
            // IPv4 20, UDP 8, Ethernet 14.
            overhead: 35 + 42,
            ack_size: 42 + 11 + 16 + 6,
            ack_range_size: 4,
            ack_ranges: 64,
            opening_size: 1200 + 42,
            answer_packets: 3,
            answer_size: 1200 + 42,
            completion_size: 300 + 42,
            token: true,
            receive_window: Bytes::new(16_000_000),
            initial_receive_window: None,
            receive_buffer: None,
            ignore_receive_window: IgnoreReceiveWindow::Never,
            ack: AckPolicy::new(2, Duration::from_millis(25), 0),
            segment: 1200,
            initial_window: 10,
            min_window: 2,
            max_window: None,
            timeout_window: 2,
            timeout_reduction: TimeoutReduction::EachTimeout,
            slow_start_after_timeout: SlowStartAfterTimeout::Classic,
            increase: Increase::Bytes,
            reduction: Reduction::Immediate,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::NotAppLimited,
            transition_growth: TransitionGrowth::Nothing,
            window_test: WindowTest::Fits,
            packet_threshold: 3,
            time_threshold: Some(1.125),
            loss_detection: LossDetection::SackedAbove,
            loss_probe: false,
            dsack: false,
            spurious_detection: SpuriousDetection::None,
            pipe: Pipe::Scoreboard,
            lost_retransmissions: true,
            min_rto: Duration::ZERO,
            initial_timeout: Duration::from_millis(333),
            // PTO = RTT + 4 * RTT / 2 = 3 * 333 ms (RFC 9002, sections 5.3 and 6.2.1).
            handshake_timeout: Duration::from_millis(999),
            granularity: Duration::from_millis(1),
            sample_resolution: Duration::ZERO,
            rtt_samples: RttSamples::EveryAck,
            timeout_arithmetic: TimeoutArithmetic::Exact,
            timer_restart: TimerRestart::EveryAck,
            mixed_ack: MixedAck::ProgressAndDuplicate,
            tail_repair: TailRepair::Rescue,
            after_timeout: AfterTimeout::Outstanding,
            idle: WindowValidation::Keep,
            ecn: false,
            scone: SconePolicy::None,
            pacing: Some(Pacing { startup_gain: 1.25, ..Pacing::default() }),
            // quiche, from which most QUIC stacks have taken theirs.
            hystart: hystart::Variant::Quic,
            startup: StartupConfig::SlowStart(slow_start::Config::default()),
            avoidance: AvoidanceConfig::Reno(reno::Config::default()),
            other_avoidances: Vec::new(),
        }
    }

    /// QUIC as noq 1.4.0 sends it: what `--transport quic` does, as far as a profile can say it. Its token bucket holds 2 ms
    /// at the pacing rate, at least 10 packets but never more than 10 ms; so at the low rates of a beginning not even an
    /// initial window leaves at once. The quantum is that of high rates.
    pub fn noq() -> Self {
        Self {
            // Datagram 1200 = 1 flags + 8 connection ID + 1 packet number + 16 tag + 6 stream frame header + payload.
            payload: 1168,
            overhead_in_flight: 32,
            overhead: 32 + 42,
            answer_packets: 1,
            receive_window: Bytes::new(1_000_000_000),
            pacing: Some(Pacing {
                startup_gain: 1.25,
                burst: 1,
                quantum: Duration::from_millis(2),
                ..Pacing::default()
            }),
            ..Self::rfc9002()
        }
    }

    /// Google's QUIC of 2018: cwnd in units of 1460 bytes while datagrams have 1350, IW 32 of which 10 leave at once,
    /// paced over half an RTT in slow start and three quarters in congestion avoidance, two emulated CUBIC connections,
    /// hybrid slow start, PRR.
    pub fn gquic() -> Self {
        let cubic = cubic::Config {
            connections: 2,
            convergence_margin: 1.0,
            approach: cubic::Approach::HalfAcked,
            ..cubic::Config::default()
        };
        Self {
            // Datagram 1350 = 1 flags + 8 connection ID + 2 packet number + 12 tag + 5 stream frame header + payload.
            payload: 1322,
            overhead_in_flight: 28,
            overhead: 28 + 42,
            ack_size: 42 + 11 + 12 + 8,
            ack_ranges: 255,
            opening_size: 1350 + 42,
            answer_packets: 1,
            answer_size: 1350 + 42,
            completion_size: 1350 + 42,
            receive_window: Bytes::new(6_000_000),
            segment: 1460,
            initial_window: 32,
            max_window: Some(2000),
            timeout_reduction: TimeoutReduction::HalfWindow,
            slow_start_after_timeout: SlowStartAfterTimeout::Scheme,
            increase: Increase::Packets,
            reduction: Reduction::PrrPerPacket,
            growth: GrowthRule::ThreeSegmentsFree,
            window_test: WindowTest::Open,
            time_threshold: Some(1.25),
            initial_timeout: Duration::from_millis(100),
            handshake_timeout: Duration::from_millis(150),
            // The paper states three quarters of the RTT; the code of the time has a gain of 1.25.
            pacing: Some(Pacing {
                startup_gain: 2.0,
                avoidance_gain: 4.0 / 3.0,
                burst: 10,
                quantum: Duration::from_millis(1),
            }),
            startup: StartupConfig::Hystart(hystart::Config::default()),
            avoidance: AvoidanceConfig::Cubic(cubic),
            ..Self::rfc9002()
        }
    }

    /// TCP as the RFCs describe it: MSS 1460, no timestamps.
    pub fn tcp_rfc() -> Self {
        Self {
            protocol: Protocol::Tcp,
            payload: 1460,
            overhead_in_flight: 0,
            overhead: 40,
            ack_size: 40,
            ack_range_size: 8,
            ack_ranges: 3,
            opening_size: 40,
            answer_packets: 1,
            answer_size: 40,
            completion_size: 140,
            ack: AckPolicy::new(2, Duration::from_millis(100), 0),
            segment: 1460,
            timeout_window: 1,
            reduction_base: ReductionBase::FlightSize,
            time_threshold: None,
            lost_retransmissions: false,
            min_rto: Duration::from_millis(1000),
            initial_timeout: Duration::from_millis(1000),
            handshake_timeout: Duration::from_millis(1000),
            pacing: None,
            hystart: hystart::Variant::Linux,
            ..Self::rfc9002()
        }
    }

    /// TCP as Linux runs it: timestamps, CUBIC with HyStart, PRR, acknowledgements one by one at the start.
    pub fn tcp_linux() -> Self {
        let whole_segments = cubic::Config {
            approach: cubic::Approach::WholeSegments,
            surplus: cubic::Surplus::OneSegment,
            recount_after: Duration::from_micros(31_250),
            beta: 717.0 / 1024.0,
            ..cubic::Config::default()
        };
        Self {
            payload: 1448,
            overhead: 52 + 14,
            ack_size: 52 + 14,
            opening_size: 60 + 14,
            answer_size: 60 + 14,
            completion_size: 152 + 14,
            receive_buffer: Some(ReceiveBuffer::OPEN),
            ack: AckPolicy {
                while_growing: true,
                compression: Some(Duration::from_millis(1)),
                ..AckPolicy::new(2, Duration::from_millis(40), 16)
            },
            segment: 1448,
            timeout_reduction: TimeoutReduction::OncePerWindow,
            slow_start_after_timeout: SlowStartAfterTimeout::Scheme,
            reduction: Reduction::PrrSafe,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::HalfWindow,
            transition_growth: TransitionGrowth::Delivered,
            loss_detection: LossDetection::Rack,
            loss_probe: true,
            dsack: true,
            spurious_detection: SpuriousDetection::Timestamps,
            lost_retransmissions: true,
            timer_restart: TimerRestart::EveryAckAndRepair,
            tail_repair: TailRepair::Timer,
            idle: WindowValidation::Linux,
            min_rto: Duration::from_millis(200),
            // The floor of 200 ms is that of the variation: a timeout is at least the RTT and 200 ms.
            granularity: Duration::from_millis(200),
            sample_resolution: Duration::ZERO,
            startup: StartupConfig::Hystart(hystart::Config::default()),
            avoidance: AvoidanceConfig::Cubic(whole_segments),
            other_avoidances: vec![
                AvoidanceConfig::Reno(reno::Config {
                    whole_segments: true,
                    whole_cuts: true,
                    ..reno::Config::default()
                }),
                AvoidanceConfig::Bbr(bbr::Config { version: bbr::Version::One, ..bbr::Config::default() }),
            ],
            ..Self::tcp_rfc()
        }
    }

    /// ns-2.35's Agent/TCP/Sack1: IW 3, an acknowledgement per packet, classic pipe, the data sender opens.
    pub fn ns2_sack1() -> Self {
        Self {
            opening: Opening::Sender,
            completion_size: 0,
            receive_window: Bytes::new(14_600_000_000),
            ack: AckPolicy::new(1, Duration::ZERO, 0),
            initial_window: 3,
            increase: Increase::Acknowledgements,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::Always,
            pipe: Pipe::Classic,
            tail_repair: TailRepair::Timer,
            min_rto: Duration::from_millis(200),
            initial_timeout: Duration::from_millis(3000),
            handshake_timeout: Duration::from_millis(3000),
            granularity: Duration::from_millis(10),
            ..Self::tcp_rfc()
        }
    }

    /// ns-3 as the reference runs configure it: MSS 1448, 54 bytes of headers, PRR, delayed acknowledgements of 200 ms,
    /// no pacing, the data sender opens. After a timeout ns-3 keeps the plateau of CUBIC; that it runs HyStart again and forgets
    /// the smallest RTT, by which CUBIC looks ahead, is not modelled.
    pub fn ns3() -> Self {
        let whole_segments = cubic::Config {
            approach: cubic::Approach::WholeSegments,
            after_timeout: cubic::AfterTimeout::KeepPlateau,
            ..cubic::Config::default()
        };
        Self {
            opening: Opening::Sender,
            payload: 1448,
            overhead: 54,
            ack_size: 54,
            opening_size: 58,
            answer_size: 58,
            completion_size: 54,
            receive_window: Bytes::new(64 << 20),
            // The first segment is acknowledged at once, then every second one.
            ack: AckPolicy::new(2, Duration::from_millis(200), 1),
            segment: 1448,
            reduction: Reduction::PrrSafe,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::HalfWindow,
            transition_growth: TransitionGrowth::Advance,
            lost_retransmissions: true,
            min_rto: Duration::from_millis(1000),
            initial_timeout: Duration::from_millis(3000),
            handshake_timeout: Duration::from_millis(3000),
            sample_resolution: Duration::from_millis(1),
            timer_restart: TimerRestart::FirstPartialAck,
            mixed_ack: MixedAck::DuplicateOnly,
            tail_repair: TailRepair::PartialAck,
            after_timeout: AfterTimeout::BelowHighestSack,
            hystart: hystart::Variant::Ns3,
            startup: StartupConfig::SlowStart(slow_start::Config::default()),
            avoidance: AvoidanceConfig::Cubic(whole_segments),
            other_avoidances: vec![AvoidanceConfig::Reno(reno::Config {
                whole_segments: true,
                ..reno::Config::default()
            })],
            ..Self::tcp_rfc()
        }
    }

    /// How the host runs the congestion avoidance with this name; `None`: with its own defaults.
    pub fn avoidance_named(&self, name: &str) -> Option<&AvoidanceConfig> {
        std::iter::once(&self.avoidance).chain(&self.other_avoidances).find(|avoidance| avoidance.name() == name)
    }

    /// The startup of this host beside a congestion avoidance: its own is a part of its own avoidance, and others have
    /// slow start.
    pub fn startup_beside(&self, avoidance: &AvoidanceConfig) -> StartupConfig {
        match avoidance.name() == self.avoidance.name() {
            true => self.resolved(self.startup.clone()),
            false => StartupConfig::SlowStart(slow_start::Config::default()),
        }
    }

    /// A startup scheme with everything that its configuration leaves to the host.
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
        if let Some(buffer) = Buffer::new(self) {
            return Bytes::new(buffer.limit());
        }
        self.initial_receive_window.map_or(self.receive_window, |initial| initial.min(self.receive_window))
    }

    /// The receive window that Sensing hears of.
    pub fn announced_receive_window(&self) -> Option<Bytes> {
        (self.ignore_receive_window == IgnoreReceiveWindow::Never).then(|| self.first_receive_window())
    }

    /// Bytes on the wire of a packet with this payload.
    pub fn data_wire_size(&self, payload: u32) -> u32 {
        payload + self.overhead
    }

    /// What this much payload adds to the bytes in flight, in full packets but the last.
    pub fn bytes_in_flight(&self, payload: u64) -> Bytes {
        Bytes::new(payload + payload.div_ceil(u64::from(self.payload)) * u64::from(self.overhead_in_flight))
    }

    /// What a packet with this payload adds to the bytes in flight.
    pub fn in_flight_size(&self, payload: u32) -> Bytes {
        Bytes::new(u64::from(payload + self.overhead_in_flight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists_and_survives_serialization() {
        for (name, _) in PROFILES {
            let profile = Profile::named(name).unwrap();
            let text = toml::to_string(&profile).unwrap();
            assert_eq!(toml::from_str::<Profile>(&text).unwrap(), profile, "{name}");
        }
        assert_eq!(Profile::named("tcp"), None);
    }

    #[test]
    fn hystart_without_a_variant_is_the_hosts() {
        let of = |name: &str, variant| {
            let config = hystart::Config { variant, ..hystart::Config::default() };
            match Profile::named(name).unwrap().resolved(StartupConfig::Hystart(config)) {
                StartupConfig::Hystart(config) => config.variant,
                other => panic!("{other:?}"),
            }
        };
        use hystart::Variant::{Linux, Ns3, Quic};
        let own = ["tcp-linux", "tcp-rfc", "ns3", "gquic", "rfc9002", "noq"].map(|name| of(name, None));
        assert_eq!(own, [Linux, Linux, Ns3, Quic, Quic, Quic].map(Some));
        assert_eq!(of("tcp-linux", Some(Quic)), Some(Quic), "what is chosen stays");
    }

    #[test]
    fn a_host_runs_other_algorithms_as_it_has_them() {
        let named = |profile: &Profile, name: &str| profile.avoidance_named(name).cloned();
        let linux = Profile::tcp_linux();
        assert!(matches!(named(&linux, "reno"), Some(AvoidanceConfig::Reno(config)) if config.whole_cuts));
        let Some(AvoidanceConfig::Bbr(config)) = named(&linux, "bbr") else { panic!("BBR is in Linux") };
        assert_eq!(config.version, bbr::Version::One);
        assert_eq!(named(&linux, "cubic"), Some(linux.avoidance.clone()));
        assert!(matches!(named(&Profile::ns3(), "reno"), Some(AvoidanceConfig::Reno(config)) if config.whole_segments));
        assert_eq!(named(&Profile::tcp_rfc(), "bbr"), None, "with its own defaults");
    }

    #[test]
    fn timeouts_and_counts_are_those_of_the_hosts() {
        let timeouts = |profile: Profile| (profile.timeout_reduction, profile.slow_start_after_timeout);
        assert_eq!(timeouts(Profile::tcp_linux()), (TimeoutReduction::OncePerWindow, SlowStartAfterTimeout::Scheme));
        assert_eq!(timeouts(Profile::gquic()), (TimeoutReduction::HalfWindow, SlowStartAfterTimeout::Scheme));
        let AvoidanceConfig::Cubic(cubic) = Profile::tcp_linux().avoidance else { panic!("Linux runs CUBIC") };
        assert_eq!(cubic.surplus, cubic::Surplus::OneSegment);
        assert_eq!(cubic.recount_after, Duration::from_secs(1.0 / 32.0));
    }

    #[test]
    fn packets_have_the_sizes_of_the_references() {
        let wire = |name: &str| Profile::named(name).unwrap().data_wire_size(Profile::named(name).unwrap().payload);
        assert_eq!((wire("ns2-sack1"), wire("ns3"), wire("gquic")), (1500, 1502, 1392));
    }
}
