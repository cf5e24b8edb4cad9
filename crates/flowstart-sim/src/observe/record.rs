//! The record of a flow, in numbers.

use flowstart_core::event::ExitReason;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::traffic::call::FrameTimes;
use crate::traffic::media::PacketTimes;
use crate::traffic::video::Playback;

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
    /// Time for which the receiver held the request back because all connections were busy.
    pub queued: Duration,
    /// When all of its own bytes had arrived.
    pub complete: Option<Timestamp>,
    /// The time when the receiving application had all of it. In TCP this includes everything before it; in QUIC, whose
    /// streams do not wait for each other, only its own bytes.
    pub arrived: Option<Timestamp>,
}

impl ObjectTimes {
    /// An object that was requested at this time.
    pub fn new(requested: Timestamp) -> Self {
        Self { requested, queued: Duration::ZERO, complete: None, arrived: None }
    }

    /// Completion time of the object.
    pub fn fct(&self) -> Option<Duration> {
        Some(self.arrived?.since(self.requested))
    }

    /// Time for which all of its bytes were there but could not be read, because others before them were missing.
    pub fn blocked(&self) -> Option<Duration> {
        Some(self.arrived?.since(self.complete?))
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
    /// What the viewer of an adaptive video saw, once all of it has arrived.
    pub playback: Option<Box<Playback>>,
}

impl FlowRecord {
    /// The record of a transfer that these connections carry together; of one connection its own. Counts and windows
    /// are sums, also where the connections had them at different times. The transfer begins with the first connection
    /// and is complete with the last. Its startup ends when that of the last one ends. The RTT and the advice are those
    /// of the first connection.
    pub fn of_transfer<'a>(mut connections: impl Iterator<Item = &'a Self>) -> Self {
        let mut whole = connections.next().cloned().unwrap_or_default();
        connections.for_each(|connection| whole.join(connection));
        whole
    }

    /// Adds another connection of the transfer.
    fn join(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.started, other.started),
            (&mut self.request_sent, other.request_sent),
            (&mut self.first_data_sent, other.first_data_sent),
            (&mut self.first_drop, other.first_drop),
        ] {
            *mine = mine.iter().copied().chain(theirs).min();
        }
        self.completed = self.completed.zip(other.completed).map(|(mine, theirs)| mine.max(theirs));
        for (mine, theirs) in
            [(&mut self.requested_rate, other.requested_rate), (&mut self.approved_rate, other.approved_rate)]
        {
            *mine = match (*mine, theirs) {
                (Some(mine), Some(theirs)) => {
                    Some(Rate::from_bits_per_sec(mine.bits_per_sec() + theirs.bits_per_sec()))
                }
                (mine, theirs) => mine.or(theirs),
            };
        }
        self.exit = self.exit.zip(other.exit).map(|(mine, theirs)| StartupExit {
            cwnd: mine.cwnd + theirs.cwnd,
            reached: mine.reached + theirs.reached,
            ..if theirs.time > mine.time { theirs } else { mine }
        });
        self.add_counts(other);
    }

    /// Adds the counts and windows of another connection of the transfer.
    fn add_counts(&mut self, other: &Self) {
        for (sum, count) in [
            (&mut self.quick_start_bytes, other.quick_start_bytes),
            (&mut self.quick_start_dropped, other.quick_start_dropped),
            (&mut self.delivered, other.delivered),
            (&mut self.data_packets, other.data_packets),
            (&mut self.retransmitted, other.retransmitted),
            (&mut self.retransmissions, other.retransmissions),
            (&mut self.declared_lost, other.declared_lost),
            (&mut self.spurious, other.spurious),
            (&mut self.dropped, other.dropped),
            (&mut self.dropped_data, other.dropped_data),
            (&mut self.window_cuts, other.window_cuts),
            (&mut self.timeouts, other.timeouts),
        ] {
            *sum += count;
        }
        self.later_approvals += other.later_approvals;
        self.flow_control_blocked += other.flow_control_blocked;
        self.startup_in_flight += other.startup_in_flight;
        self.max_cwnd += other.max_cwnd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Option<Timestamp> {
        Some(Timestamp::from_nanos(1_000_000 * ms))
    }

    #[test]
    fn a_transfer_is_complete_with_its_last_connection_and_its_counts_are_sums() {
        let exit = |ms: u64, reason| {
            let time = Timestamp::from_nanos(1_000_000 * ms);
            Some(StartupExit { time, reason, cwnd: Bytes::new(3000), reached: Bytes::new(5000) })
        };
        let first = FlowRecord {
            started: at(2),
            completed: at(50),
            first_drop: at(20),
            handshake_rtt: Some(Duration::from_millis(10)),
            dropped: 3,
            exit: exit(20, ExitReason::Loss),
            approved_rate: Some(Rate::from_mbit(5)),
            ..FlowRecord::default()
        };
        let second = FlowRecord {
            started: at(1),
            completed: at(70),
            dropped: 4,
            exit: exit(30, ExitReason::Delay),
            ..FlowRecord::default()
        };
        let both = FlowRecord::of_transfer([&first, &second].into_iter());
        assert_eq!((both.started, both.completed, both.first_drop), (at(1), at(70), at(20)));
        assert_eq!((both.dropped, both.handshake_rtt), (7, first.handshake_rtt));
        assert_eq!(both.approved_rate, Some(Rate::from_mbit(5)));
        let Some(exit) = both.exit else { panic!("both have left it") };
        assert_eq!((exit.reason, exit.cwnd.get(), exit.reached.get()), (ExitReason::Delay, 6000, 10_000));
        assert_eq!(FlowRecord::of_transfer([&first].into_iter()), first);
        // A transfer is as incomplete as its last connection.
        let stuck = FlowRecord { completed: None, exit: None, ..second };
        let both = FlowRecord::of_transfer([&first, &stuck].into_iter());
        assert_eq!((both.completed, both.exit), (None, None));
    }
}
