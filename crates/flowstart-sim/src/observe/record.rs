//! The record of a flow, in numbers.

use flowstart_core::event::ExitReason;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::traffic::call::FrameTimes;
use crate::traffic::media::PacketTimes;

/// How and when startup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartupExit {
    /// When.
    pub time: Timestamp,
    /// Why.
    pub reason: ExitReason,
    /// cwnd handed to congestion avoidance.
    pub cwnd: Bytes,
    /// Largest cwnd before that, which startup had reached.
    pub reached: Bytes,
}

/// An object of a stream: a chunk of a video, an object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectTimes {
    /// When the application wrote the chunk, or when the receiver requested the object of a page.
    pub requested: Timestamp,
    /// The time when the receiving application had all of it. In TCP this includes everything before it; in QUIC, whose
    /// streams do not wait for each other, only its own bytes.
    pub arrived: Option<Timestamp>,
}

impl ObjectTimes {
    /// Completion time of the object.
    pub fn fct(&self) -> Option<Duration> {
        Some(self.arrived?.since(self.requested))
    }
}

/// Counts and times of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// When the first packet of the handshake left.
    pub started: Option<Timestamp>,
    /// When the request left; with a sender that opens, when the first packet left.
    pub request_sent: Option<Timestamp>,
    /// When the first data packet left.
    pub first_data_sent: Option<Timestamp>,
    /// When the last payload byte arrived.
    pub completed: Option<Timestamp>,
    /// RTT that the handshake measured.
    pub handshake_rtt: Option<Duration>,
    /// Rate that Quick-Start requested.
    pub requested_rate: Option<Rate>,
    /// Rate that all routers approved.
    pub approved_rate: Option<Rate>,
    /// The first throughput advice of the path that reached the sender, and its time.
    pub advised: Option<(Timestamp, Rate)>,
    /// Payload bytes that left at the approved rate, before the first acknowledgement.
    pub quick_start_bytes: u64,
    /// Number of packets with these bytes that were dropped.
    pub quick_start_dropped: u64,
    /// Requests in mid-connection that all routers approved.
    pub later_approvals: u32,
    /// Payload bytes that arrived, each once.
    pub delivered: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// Payload bytes sent again.
    pub retransmitted: u64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Packets declared lost.
    pub declared_lost: u64,
    /// Packets that were declared lost but arrived.
    pub spurious: u64,
    /// Packets dropped by queues and policers or lost on wires, in both directions.
    pub dropped: u64,
    /// Data packets among these.
    pub dropped_data: u64,
    /// When the first of them was dropped.
    pub first_drop: Option<Timestamp>,
    /// Reductions of the window, timeouts not counted.
    pub window_cuts: u64,
    /// Retransmission timeouts, probe timeouts that were followed by persistent congestion included.
    pub timeouts: u64,
    /// Time in which only flow control stopped waiting data.
    pub flow_control_blocked: Duration,
    /// How startup ended.
    pub exit: Option<StartupExit>,
    /// Most bytes in flight until startup ended.
    pub startup_in_flight: Bytes,
    /// Largest cwnd.
    pub max_cwnd: Bytes,
    /// The objects requested so far, of applications that have any.
    pub objects: Vec<ObjectTimes>,
    /// The packets sent so far, of interactive media.
    pub media: Vec<PacketTimes>,
    /// The frames encoded so far, of a video call.
    pub frames: Vec<FrameTimes>,
}
