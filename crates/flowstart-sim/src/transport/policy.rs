//! Policies of transports. Each is a decision in which hosts differ, with its options.

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use serde::{Deserialize, Serialize};

/// The modelled transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// QUIC.
    Quic,
}

/// The opener of the connection, and the exchange before data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opening {
    /// The data sender opens; data follows the answer to its opening packet.
    Sender,
    /// The data receiver opens and sends its request when the answer arrives.
    Request,
    /// The data receiver opens and immediately sends its request (0-RTT).
    ZeroRtt,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AckPolicy {
    /// Packets per acknowledgement. RFC 9000, section 13.2.2, and RFC 5681: 2.
    pub every: u32,
    /// Longest delay of an acknowledgement. RFC 9000: 25 ms.
    pub max_delay: Duration,
    /// Packets at the start that are acknowledged one by one.
    pub quick: u32,
    /// Whether a packet that lets the receive window grow is acknowledged immediately, without counting among these
    /// (Linux; `Profile::receive_buffer`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_growing: bool,
    /// Whether every packet is acknowledged immediately until the sender's slow start is over (DAASS: delayed
    /// acknowledgements after slow start; Allman, "On the Generation and Use of TCP Acknowledgments", CCR 28 (5),
    /// 1998). The receiver learns of the end when it happens; a real one would a one-way delay later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_slow_start: bool,
    /// Delay of acknowledgements that only report data beyond a gap, after three of them; absent: no delay. Linux: 1 ms
    /// on paths of 20 ms and longer (`tcp_comp_sack_delay_ns`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Duration>,
}

impl AckPolicy {
    /// An acknowledgement per this many packets, after this time, and for each of the first packets.
    pub const fn new(every: u32, max_delay: Duration, quick: u32) -> Self {
        Self { every, max_delay, quick, while_growing: false, after_slow_start: false, compression: None }
    }
}

/// The receive buffer of a Linux connection (`tcp_rmem`), from which its receive window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveBuffer {
    /// Its initial size.
    pub initial: Bytes,
    /// Its largest size.
    pub largest: Bytes,
    /// Space that a full packet takes (`truesize`). 2304: 2048 of data and 256 of metadata, if an interface delivers
    /// each packet separately.
    pub packet: u32,
}

impl ReceiveBuffer {
    /// `tcp_rmem` of 4096 131072 6291456, as Linux ships: the window begins at 64 kB and grows.
    pub const AUTO: Self = Self { initial: Bytes::new(131_072), largest: Bytes::new(6_291_456), packet: 2304 };
    /// `tcp_rmem` of 4096 16777216 67108864: the window does not limit below 8 MB.
    pub const OPEN: Self = Self { initial: Bytes::new(16_777_216), largest: Bytes::new(67_108_864), packet: 2304 };

    /// Shares of the buffer are counted in 256ths (`TCP_RMEM_TO_WIN_SCALE`).
    pub(super) const WHOLE: u64 = 256;
    /// The share of payload before the first full packet (`TCP_DEFAULT_SCALING_RATIO`).
    pub(super) const FIRST_RATIO: u64 = 128;
    /// Bits of the largest window whose double needs no scaling (RFC 7323, section 2.3).
    const UNSCALED_BITS: u32 = 15;
    /// Most bits of scaling.
    const MOST_SCALING: u32 = 14;
    /// `rmem_max`, which the window scale covers.
    const RMEM_MAX: u64 = 212_992;

    /// The buffers with names.
    pub const NAMED: [(&str, Self); 2] = [("auto", Self::AUTO), ("open", Self::OPEN)];

    /// The room for payload before the first full packet.
    pub(super) fn first_room(&self) -> u64 {
        self.initial.get() * Self::FIRST_RATIO / Self::WHOLE
    }

    /// The window that the handshake offers if a full packet has this payload: whole packets.
    pub(super) fn first_offer(&self, payload: u64) -> u64 {
        let room = self.first_room();
        if room > payload { room - room % payload } else { room }
    }

    /// Windows are announced in multiples of this.
    pub(super) fn window_unit(&self, payload: u64) -> u64 {
        let largest = self.largest.get().max(Self::RMEM_MAX).max(self.first_offer(payload));
        1 << largest.ilog2().saturating_sub(Self::UNSCALED_BITS).min(Self::MOST_SCALING)
    }

    /// The window that the handshake announces.
    pub(super) fn first_window(&self, payload: u64) -> u64 {
        self.first_offer(payload).next_multiple_of(self.window_unit(payload))
    }
}

/// The phases in which a sender ignores the receive window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoreReceiveWindow {
    /// None.
    #[default]
    Never,
    /// While it probes: the sender sends the window of a launch regardless of the announced receive window, and Sensing
    /// does not know the receive window (Scharf, Floyd, Sarolahti, draft-scharf-tcpm-flow-control-quick-start-00,
    /// 2008). Later data obeys. This breaks the rules of TCP and QUIC; the model receiver has unlimited memory and
    /// accepts it.
    Probing,
}

/// How TCP estimates the bytes in flight during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pipe {
    /// From the scoreboard: sent, minus SACKed, minus lost, plus retransmitted (RFC 6675).
    Scoreboard,
    /// A counter that every arriving acknowledgement decrements, a partial one twice. Lost packets are not deducted. A
    /// hole counts as lost as soon as anything above it is SACKed (Fall, Floyd 1996; ns-2's Sack1).
    Classic,
}

/// TCP's evidence that a segment is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// `Profile::packet_threshold` `SACKed` segments above it, or duplicate acknowledgements (RFC 6675).
    #[default]
    SackedAbove,
    /// The delivery of later segments, and time (RFC 8985). TCP sends nothing again that is not known to be lost.
    Rack,
}

/// TCP's evidence that a retransmitted segment was only late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpuriousDetection {
    /// None: a reduction stays.
    #[default]
    None,
    /// Timestamps, and after a timeout the delivery of segments that were sent only once (RFC 3522, RFC 5682).
    Timestamps,
}

impl SpuriousDetection {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl LossDetection {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The room in the window that another packet needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowTest {
    /// Room for the whole packet (RFC 9002, section 7).
    Fits,
    /// Any room (Google's QUIC).
    Open,
}

/// The events that restart TCP's retransmission timer during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerRestart {
    /// Every acknowledgement of new data (RFC 6298, section 5.3).
    EveryAck,
    /// Only the first partial acknowledgement ("impatient", RFC 6582, section 4).
    FirstPartialAck,
    /// Every acknowledgement of new data, and the retransmission of the first segment (Linux), which then has a whole
    /// timeout.
    EveryAckAndRepair,
}

/// The source of TCP's RTT samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttSamples {
    /// Every advancing acknowledgement, by its timestamp (RFC 7323, section 4).
    #[default]
    EveryAck,
    /// One segment of new data at a time, without timestamps; a loss ends its measurement (RFC 6298, section 3; ns-2).
    OneSegment,
}

impl RttSamples {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The computation of TCP's retransmission timeout from RTT samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutArithmetic {
    /// By the equations (RFC 6298, section 2).
    #[default]
    Exact,
    /// In integers, with `Profile::sample_resolution` as the tick (Jacobson 1988, appendix A; BSD, ns-2).
    Ticks,
}

impl TimeoutArithmetic {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The meaning of a TCP acknowledgement outside recovery that newly acknowledges both cumulatively and selectively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixedAck {
    /// Progress, and the first duplicate (RFC 6675, section 5).
    ProgressAndDuplicate,
    /// Only another duplicate: the window does not grow, the timer does not restart, and earlier duplicates still count
    /// (ns-3).
    DuplicateOnly,
}

/// The contribution to congestion avoidance of the acknowledgement that ends slow start or fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransitionGrowth {
    /// Nothing: growth begins with the next one (RFC 5681 and RFC 9002 name only ssthresh).
    Nothing,
    /// The data that it newly delivers (Linux).
    Delivered,
    /// As `delivered`, but at the end of recovery everything by which it advances, whether SACKed before or not (ns-3).
    Advance,
}

/// TCP's repair of a tail in fast recovery: data above all SACKed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TailRepair {
    /// Once per recovery TCP sends the last segment again if the window has room and nothing else is left to send (RFC
    /// 6675, `NextSeg` rule 4).
    Rescue,
    /// A partial acknowledgement sends the first segment again regardless of the window, if that was not sent again
    /// before (RFC 6582, section 3.2; ns-3).
    PartialAck,
    /// None: only the retransmission timer repairs a tail.
    Timer,
}

/// The data that TCP sends again after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTimeout {
    /// All outstanding data that was not SACKed (RFC 5681, section 3.1; RFC 6675, section 5.1).
    Outstanding,
    /// While anything is SACKed, only data below it, then new data. Otherwise all outstanding data (ns-3).
    BelowHighestSack,
    /// Everything in order, SACKed or not, in a window that begins at the first segment. Duplicate acknowledgements
    /// beyond the second release nothing (ns-2).
    GoBackN,
}
