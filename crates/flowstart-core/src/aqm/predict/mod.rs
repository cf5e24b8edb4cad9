//! Predict: ends slow start when the link becomes fully used, from arrivals and departures alone.
//!
//! This reconstructs the idea from what Järvinen's thesis requires of it ("Congestion Control and Active Queue
//! Management During Flow Startup", sections 1.2 to 1.4). It must not depend on the visible queue, because most packets
//! are elsewhere on the path (the horizon problem). It must not need a configured RTT. It responds only to load that
//! grows exponentially, and to the load an RTT later, when the response takes effect. The formulas and constants are
//! our own. Nothing is compared with the paper (Järvinen, Kojo, AINA 2017, 10.1109/AINA.2017.110), nor with chapter 3
//! of the thesis.
//!
//! | Step | File |
//! |---|---|
//! | flows that may be in slow start: those that began lately and were not signalled since | `flow_table` |
//! | RTT, initial window and growth of a flow, from its handshake and its first flights | `opening` |
//! | bytes of these flows that arrived and left, over time | `volume` |
//! | RTT and growth of all these flows together, if single flows do not show them | `estimate` |
//! | the queue, other flows' share, the link's rate | `busy_period`, `background`, `service_rate` |
//! | pauses between packets | `silences` |
//! | the time of signals, one for each handshake | `law` |
//!
//! Predict signals these flows when the departures so far will fill the link an RTT later. It also signals them when
//! the link has been saturated for an RTT.
//!
//! `estimate` relies on this: departures cause arrivals an RTT later, in a fixed proportion, which is 1 if windows do
//! not grow. Departures cannot have caused a flight that was sent at once, so such a flight shows no growth.
//!
//! A launch arrives at a constant rate, and all of it has arrived before a signal could end it. So packets of a launch
//! beyond half an RTT of queue are dropped, and for ten RTTs the flow gets no more of the queue. Until an RTT is known,
//! `interval` takes its place. A launch is what no departure has caused, beyond 15 packets: the initial window of RFC
//! 6928 and half as much again. So an initial window of 32 packets is a launch. A mark would come too late, so these
//! packets are dropped even where ECN is on.
//!
//! `CoDel` ([`super::codel`]) does the rest. Its interval is the measured RTT. It drops nothing while less than four
//! packets of each active flow wait, because only a timeout would notice such a loss.
//!
//! Limits: the flows of a tunnel share one place. There is a signal for each handshake, an even distance apart, but not
//! each flow gets one. A slow start may end below the capacity by itself, at an ssthresh that this queue does not know;
//! Predict signals it anyway.
//!
//! Status: experimental; measured by `predict-grid`, `predict-false-triggers`, `predict-estimate` and
//! `predict-hard-loads`.

use alloc::boxed::Box;

use self::law::Law;
use super::fifo::Fifo;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket, codel};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

mod background;
mod busy_period;
mod estimate;
mod flow_table;
mod law;
mod opening;
mod service_rate;
mod silences;
mod volume;

/// One line for listings.
pub const SUMMARY: &str = "ends slow start when the load an RTT ahead will fill the link; a reconstruction of the idea of Predict, with CoDel";
/// The document that defines it.
pub const REFERENCE: &str = "the idea of Järvinen, Kojo, AINA 2017 (a reconstruction, not the published algorithm)";

/// Parameters of Predict.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Load an RTT ahead at which flows are signalled, as windows over the link's capacity in an RTT, 0.5 to 4.
    /// Default: 1.15; an early signal costs more completion time than a late one costs delay (our own sweep).
    pub load: f64,
    /// Time without packets after which a flow may be in slow start again, 10 ms to 100 s. Default: 1 s, longer than
    /// the RTT of any flow that sends in bursts; a flow whose RTT was measured needs three RTTs, at least 200 ms.
    pub idle: Duration,
    /// Delay that the fallback lets stand, 100 us to 10 s. RFC 8289, section 4.4: 5 ms.
    pub target: Duration,
    /// The fallback's interval until an RTT was measured, 1 ms to 100 s. RFC 8289, section 4.3: 100 ms.
    pub interval: Duration,
    /// Flows that are told apart, 1 to 65536; others share their place. Default: 1024, as in FQ-CoDel (RFC 8290).
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            load: 1.15,
            idle: Duration::from_millis(1000),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            flows: 1024,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let secs = |seconds: f64| Duration::from_secs(seconds);
        ConfigError::unless_in("load", self.load, 0.5..=4.0)?;
        ConfigError::unless_in("idle", self.idle, secs(0.01)..=secs(100.0))?;
        ConfigError::unless_in("target", self.target, secs(0.0001)..=secs(10.0))?;
        ConfigError::unless_in("interval", self.interval, secs(0.001)..=secs(100.0))?;
        ConfigError::unless_in("flows", self.flows, 1..=65_536)
    }
}

/// Predict's knowledge about the flows in slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadEstimate {
    /// Their RTT without the delay of this queue.
    pub rtt: Duration,
    /// By what their windows grow in an RTT: 2 or 1.5.
    pub growth: f64,
    /// Their windows now over what the link takes in an RTT, beside the background.
    pub load: f64,
    /// The same an RTT later, when the senders have received acknowledgements of current departures.
    pub load_ahead: f64,
}

/// A decision that slow start should end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trigger {
    /// When.
    pub at: Timestamp,
    /// Why: the load an RTT ahead, or `None` if the link was found saturated first.
    pub estimate: Option<LoadEstimate>,
}

/// The queue.
#[derive(Clone, Debug)]
pub struct Predict {
    queue: Fifo,
    law: Box<Law>,
    fallback: codel::Config,
    codel: codel::Vars,
    stats: QueueStats,
}

impl Predict {
    /// An empty queue. A rate that the host does not know is measured from departures.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        let rate = link.rate.map(|rate| rate.bits_per_sec() as f64 / 8.0);
        let fallback = codel::Config { target: config.target, interval: config.interval, ..codel::Config::default() };
        Self {
            queue: Fifo::new(link.limit),
            law: Box::new(Law::new(&config, rate)),
            fallback,
            codel: codel::Vars::default(),
            stats: QueueStats::default(),
        }
    }

    /// Knowledge at `now` about the flows in slow start; `None` while it is too early or no flow is in slow start.
    pub fn load_estimate(&self, now: Timestamp) -> Option<LoadEstimate> {
        self.law.load(now.as_secs())
    }

    /// How often it has decided that slow start should end; signals of the fallback are not counted.
    pub fn triggers(&self) -> u64 {
        self.law.triggers()
    }

    /// The latest of these decisions.
    pub fn last_trigger(&self) -> Option<Trigger> {
        self.law.last_trigger()
    }
}

impl QueueDiscipline for Predict {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.queue.admits(packet.size, context.in_service) {
            if self.law.arrive(context.now, packet.flow, packet.size, self.queue.bytes()) {
                self.stats.dropped_early += 1;
                context.dropped.push(packet);
            } else {
                self.queue.push(packet);
            }
        } else {
            self.stats.dropped_full += 1;
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        loop {
            let Self { queue, law, fallback, codel, stats } = self;
            let (drops, marks) = (context.dropped.len(), stats.marked);
            fallback.interval = law.interval();
            let least = law.least_backlog();
            let next = || {
                let packet = queue.pop()?;
                let spared = !packet.ecn.is_capable() && queue.bytes() <= least;
                Some((packet, if spared { Bytes::ZERO } else { queue.bytes() }))
            };
            let packet = codel.dequeue(fallback, context.now, stats, context.dropped, next);
            for dropped in context.dropped.get(drops..).unwrap_or_default() {
                law.dropped(context.now, dropped.flow);
            }
            let mut packet = packet?;
            let left = (queue.len(), queue.bytes());
            if !law.depart(context.now, (packet.flow, packet.size), left, stats.marked > marks) {
                return Some(packet);
            }
            if packet.mark() {
                stats.marked += 1;
                return Some(packet);
            }
            stats.dropped_early += 1;
            context.dropped.push(packet);
        }
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}
