//! Policies of transports: each is a question that hosts answer differently, and its answers.

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use serde::{Deserialize, Serialize};

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
    /// `Profile::receive_buffer`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_growing: bool,
    /// How long acknowledgements are held back that only tell of data beyond a gap, after three of them; absent: not at
    /// all. Linux: 1 ms on paths of 20 ms and longer (`tcp_comp_sack_delay_ns`).
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
    /// What a full packet takes of it (`truesize`). 2304: 2048 of data and 256 that describe it, where an interface
    /// hands over each packet by itself.
    pub packet: u32,
}

impl ReceiveBuffer {
    /// `tcp_rmem` of 4096 131072 6291456, as Linux ships: the window begins at 64 kB and grows.
    pub const AUTO: Self = Self { initial: Bytes::new(131_072), largest: Bytes::new(6_291_456), packet: 2304 };
    /// `tcp_rmem` of 4096 16777216 67108864: the window is no limit below 8 MB.
    pub const OPEN: Self = Self { initial: Bytes::new(16_777_216), largest: Bytes::new(67_108_864), packet: 2304 };

    /// Shares of the buffer are counted in 256ths (`TCP_RMEM_TO_WIN_SCALE`).
    pub(super) const WHOLE: u64 = 256;
    /// The share of payload before the first full packet (`TCP_DEFAULT_SCALING_RATIO`).
    pub(super) const FIRST_RATIO: u64 = 128;
    /// Bits of the largest window whose double needs no scaling (RFC 7323, section 2.3).
    const UNSCALED_BITS: u32 = 15;
    /// Most bits of scaling.
    const MOST_SCALING: u32 = 14;
    /// `rmem_max`, which the scale of windows makes room for.
    const RMEM_MAX: u64 = 212_992;

    /// The buffers that have a name.
    pub const NAMED: [(&str, Self); 2] = [("auto", Self::AUTO), ("open", Self::OPEN)];

    /// The room for payload before the first full packet.
    pub(super) fn first_room(&self) -> u64 {
        self.initial.get() * Self::FIRST_RATIO / Self::WHOLE
    }

    /// What the handshake offers where a full packet has this payload: whole packets.
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

/// When a sender does not obey the receive window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoreReceiveWindow {
    /// It always obeys.
    #[default]
    Never,
    /// While it probes: the window of a launch is sent whatever the receiver has announced, and Sensing does not hear
    /// of the receive window (Scharf, Floyd, Sarolahti, draft-scharf-tcpm-flow-control-quick-start-00, 2008). What
    /// follows obeys. It breaks the rules of TCP and QUIC, and the model receiver, which has memory for everything,
    /// lets it pass.
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
    /// `Profile::packet_threshold` `SACKed` segments above it, or duplicate acknowledgements (RFC 6675).
    #[default]
    SackedAbove,
    /// The delivery of something that was sent after it, and time (RFC 8985). Nothing is sent again that is not known
    /// to be lost.
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
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl LossDetection {
    pub(super) fn is_default(&self) -> bool {
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
    pub(super) fn is_default(&self) -> bool {
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
    /// In integers, with `Profile::sample_resolution` as the tick (Jacobson 1988, appendix A; BSD, ns-2).
    Ticks,
}

impl TimeoutArithmetic {
    pub(super) fn is_default(&self) -> bool {
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
    /// While anything is SACKed only what lies below it, then new data; everything that is outstanding otherwise
    /// (ns-3).
    BelowHighestSack,
    /// Everything in order, SACKed or not, by a window that begins at the first segment; duplicate acknowledgements
    /// beyond the second release nothing (ns-2).
    GoBackN,
}
