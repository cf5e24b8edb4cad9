//! Everything that happened to a run's flows and queues, when somebody wants to see it.

use flowstart_core::event::Decision;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};

use crate::link::Loss;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A data packet left the sender.
    Sent {
        /// First byte of the stream.
        offset: u64,
        /// Payload bytes.
        len: u32,
        /// Whether these bytes had been sent before.
        retransmission: bool,
    },
    /// A data packet reached the receiver.
    Received {
        /// First byte of the stream.
        offset: u64,
        /// Payload bytes.
        len: u32,
    },
    /// An acknowledgement reached the sender.
    Acknowledged {
        /// Bytes of the stream that are acknowledged without gap.
        contiguous: u64,
        /// Newly acknowledged bytes.
        newly: Bytes,
    },
    /// The sender declared a packet lost.
    DeclaredLost {
        /// First byte of the stream.
        offset: u64,
        /// Payload bytes.
        len: u32,
    },
    /// A queue, a policer or a wire lost a packet of the flow.
    Dropped {
        /// The link.
        link: u32,
        /// First byte of the stream, absent for packets without payload.
        offset: Option<u64>,
        /// What lost it.
        cause: Loss,
    },
    /// The sender's window after something changed it.
    Window {
        /// Congestion window.
        cwnd: Bytes,
        /// Slow-start threshold.
        ssthresh: Bytes,
        /// Bytes in flight.
        in_flight: Bytes,
        /// Pacing rate.
        pacing_rate: Option<Rate>,
        /// Smoothed RTT in nanoseconds.
        srtt_nanos: u64,
    },
    /// The controller decided something.
    Decided(Decision),
    /// A retransmission or probe timer fired.
    TimerFired,
    /// Packets waiting at a monitored link.
    Queue {
        /// The link.
        link: u32,
        /// Packets.
        packets: u32,
        /// Bytes.
        bytes: Bytes,
    },
    /// A packet of the flow left a monitored link's transmitter.
    Departed {
        /// The link.
        link: u32,
        /// Bytes on the wire.
        size: u32,
        /// How long it waited, in nanoseconds.
        delay_nanos: u64,
    },
}

/// An event with its time and flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub time: Timestamp,
    /// Whose.
    pub flow: u32,
    /// What.
    pub event: Event,
}

/// The events of a run in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The events.
    pub entries: Vec<Entry>,
}
