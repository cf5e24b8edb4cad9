//! Outcomes of measured flows.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::observe::record::FlowRecord;

use super::call::CallOutcome;
use super::harm::Harm;
use super::media::MediaOutcome;

/// The outcome of one measured flow in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// Place in the order of measured flows; for web sessions the number of the object.
    pub flow: u64,
    /// When it started, from the start of the run.
    pub start: Timestamp,
    /// Its payload.
    pub size: Bytes,
    /// Round-trip propagation delay between its hosts.
    pub rtt: Duration,
    /// Its counts.
    pub record: FlowRecord,
    /// Which of them are known; the others are not what stands there.
    pub known: Known,
    /// Its share of the wire bytes at the bottleneck while it was active.
    pub share: Option<f64>,
    /// Longest waiting time at the bottleneck of any flow's packet.
    pub max_queue_delay: Option<Duration>,
    /// Waiting time that 99 % of the packets did not exceed.
    pub p99_queue_delay: Option<Duration>,
    /// Wire bytes at the bottleneck over its capacity while the flow was active.
    pub utilization: Option<f64>,
    /// The physical limit.
    pub ideal_fct: Duration,
    /// Harm to others, absent without others.
    pub others: Option<Harm>,
    /// Why the run did not finish.
    pub failure: Option<Failure>,
    /// The outcome of all connections of the run, for web sessions.
    pub web: Option<WebOutcome>,
    /// The quality of interactive media beside the newcomers.
    pub media: Option<MediaOutcome>,
    /// Connections that carried it.
    pub connections: u32,
    /// The quality of video calls beside the newcomers.
    pub call: Option<CallOutcome>,
    /// What the host of a real link added to it, absent in simulations.
    pub host: Option<Host>,
}

/// What a host did that its link does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// By how much later than the link says it sent 99 % of the flow's packets, at most.
    pub p99_late: Duration,
    /// Of all of its packets.
    pub max_late: Duration,
    /// Packets of all flows that it lost while the link was there.
    pub lost: u64,
}

/// Which counts of a flow's record anybody told. Hosts outside the simulator keep some to themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Packets that were declared lost but arrived.
    pub spurious: bool,
    /// Reductions of the window.
    pub window_cuts: bool,
    /// Retransmission timeouts.
    pub timeouts: bool,
    /// What startup did and how it ended.
    pub startup: bool,
}

impl Known {
    /// All of them.
    pub const ALL: Self = Self { spurious: true, window_cuts: true, timeouts: true, startup: true };
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The run reached the limit of simulated time.
    TimeLimit,
    /// The transfer was not complete, and no events were left or a real stack closed the connection.
    Stalled,
}

/// Totals over the connections of a repetition. Shares are 0 to 1, absent if the divisor is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WebOutcome {
    /// Connections that were completed.
    pub connections: f64,
    /// Connections that the end of the run cut off.
    pub unfinished: f64,
    /// Wire bytes of the objects whose connections were opened, as a rate over the run, in Mbit/s: the offered load.
    pub offered_mbps: f64,
    /// Share of the data packets that were dropped.
    pub drop_rate: Option<f64>,
    /// The same share for connections that use the scheme.
    pub drop_rate_with_scheme: Option<f64>,
    /// The same share for the others.
    pub drop_rate_without: Option<f64>,
    /// Rate requests that were answered, or whose answer never arrived.
    pub quick_start_requests: f64,
    /// Share of these that all routers approved, if reduced.
    pub quick_start_approved: Option<f64>,
    /// Share of the approved requests whose window lost a packet.
    pub quick_start_failures: Option<f64>,
    /// Share of the data sent that left at an approved rate.
    pub quick_start_bytes: Option<f64>,
    /// The same as a rate over the run, in KB/s.
    pub quick_start_kbytes_per_s: f64,
}
