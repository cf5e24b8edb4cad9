//! Load transients: flows that start together on a link which was idle, the experiment of Järvinen's thesis
//! ("Congestion Control and Active Queue Management During Flow Startup", sections 1.3, 1.4 and 2.1).
//!
//! A run is a few transients one after the other over an access link, each after the link was idle for more than a
//! second: finite transfers first, and one without end last, from which utilization after slow start is read. What is
//! measured counts from the first data packet of a transient. Everything follows from the seed, and not from the queue
//! discipline: flows start at the same times for all of them, so results are paired.
//!
//! - Flows are model TCP: 1500-byte packets on the wire, CUBIC after slow start, SACK, RFC 6298's timer. Each transient
//!   has connections of its own. Handshakes are no part of a transient (the thesis leaves them out, section 2.1): flows
//!   shake hands before, so that the first data of all of them leaves within [`Config::stagger`]; each handshake is one
//!   small packet in the queue, an RTT earlier.
//! - With delayed acknowledgements every second packet is acknowledged, and an acknowledgement adds one segment to the
//!   window (RFC 5681, section 3.1): slow start grows by 1.5 in an RTT. Without them it doubles.
//! - The timer's least value is 1 s, and a retransmission does not restart it (RFC 6298). With drops and RTTs near a
//!   second it can therefore fire while a retransmission is under way, with the oracle as well.
//! - The whole propagation delay lies before and behind the queue in equal parts; acknowledgements never wait.
//!
//! The lab's runner warms a world up, forks it for each newcomer and lets nobody follow. Here transients follow each
//! other in one world, and when the next one begins depends on when the last one ended; so [`run()`] is a runner of its
//! own.
//!
//! | Looking for | Where |
//! |---|---|
//! | one run | [`run()`] |
//! | what it measures | [`metrics`] |
//! | the queue discipline that knows the truth | [`flowstart_lab::run::oracle`] |
//! | harder circumstances | [`condition`], [`disguise`] |
//! | all cells of the comparison, and when one is won | [`grid`] |

use flowstart_core::aqm::{QueueConfig, QueueState};
use flowstart_core::rng::Substream;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};

use flowstart_lab::spec::aqm::Aqm;

pub mod condition;
pub mod disguise;
pub mod grid;
pub mod metrics;
mod others;
pub mod run;

pub use condition::Condition;
pub use metrics::{Metrics, Transient};
pub use run::{Moment, run, run_observed};

/// Bytes of a full packet on the wire.
pub const PACKET: Bytes = Bytes::new(1500);

/// One cell: everything about a run but the queue discipline and the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate of the link.
    pub rate: Rate,
    /// Round-trip propagation delay, 1 ms and more. The least and the mean of mixed ones are half of it and about it.
    pub rtt: Duration,
    /// Whether each flow draws its own RTT, uniformly from half of [`Config::rtt`] to one and a half of it.
    pub mixed_rtts: bool,
    /// Flows of a transient.
    pub flows: u32,
    /// Initial window in segments.
    pub initial_window: u64,
    /// Pacing rate over cwnd / SRTT in slow start; absent: packets leave when acknowledgements come. After slow start a
    /// paced flow has 1.2, as in Linux.
    pub pacing_gain: Option<f64>,
    /// Whether every second packet is acknowledged, instead of each.
    pub delayed_acks: bool,
    /// Whether flows are ECN-capable, so that disciplines mark them.
    pub ecn: bool,
    /// What is left of the window after a reduction, `beta_cubic`; RFC 9438: 0.7.
    pub reduction: f64,
    /// Part of the rate that a constant-rate flow without ECN takes, from 4 s before the first transient on; 0: nobody.
    pub background: f64,
    /// Rate of each host's own link.
    pub access_rate: Rate,
    /// Packets that may wait; absent: any number.
    pub buffer: Option<u64>,
    /// Flows of a transient start within this time.
    pub stagger: Duration,
    /// Finite transients before the endless one.
    pub repeats: u32,
    /// Bytes that a flow of a finite transient transfers; absent: its part of [`Config::transfer`].
    pub size: Option<Bytes>,
    /// What is different from the plain experiment.
    pub condition: Condition,
}

impl Config {
    /// One unpaced flow with an initial window of ten, an acknowledgement per packet, ECN and `beta_cubic` 0.7, alone
    /// on the link. Hosts' links have ten times the rate.
    pub fn new(rate: Rate, rtt: Duration) -> Self {
        Self {
            rate,
            rtt,
            mixed_rtts: false,
            flows: 1,
            initial_window: 10,
            pacing_gain: None,
            delayed_acks: false,
            ecn: true,
            reduction: 0.7,
            background: 0.0,
            access_rate: rate.scale(10.0),
            buffer: None,
            stagger: Duration::from_millis(10),
            repeats: 2,
            size: None,
            condition: Condition::Plain,
        }
    }

    /// Rate that the background leaves.
    pub fn available_rate(&self) -> Rate {
        self.rate.scale(1.0 - self.background)
    }

    /// Bandwidth-delay product that the background leaves, in packets.
    pub fn available_bdp(&self) -> f64 {
        self.available_rate().bits_per_sec() as f64 * self.rtt.as_secs() / (8.0 * PACKET.get() as f64)
    }

    /// Part of the available rate that a flow with this window of payload and this RTT takes: 1 fills the link.
    pub fn load(&self, window: Bytes, rtt: Duration) -> f64 {
        let wire = window.get() as f64 * PACKET.get() as f64 / f64::from(run::PAYLOAD);
        8.0 * wire / rtt.as_secs() / self.available_rate().bits_per_sec() as f64
    }

    /// Payload that a finite transient transfers in all: six bandwidth-delay products of the link, and at least 200
    /// packets, so that flows leave slow start before they end.
    pub fn transfer(&self) -> f64 {
        let bdp = self.rate.bits_per_sec() as f64 * self.rtt.as_secs() / (8.0 * PACKET.get() as f64);
        (6.0 * bdp).max(200.0) * f64::from(run::PAYLOAD)
    }

    /// A drop-tail buffer of four bandwidth-delay products and 50 packets, for disciplines that need one.
    pub fn large_buffer(&self) -> u64 {
        let bdp = self.rate.bits_per_sec() as f64 * self.rtt.as_secs() / (8.0 * PACKET.get() as f64);
        (4.0 * bdp) as u64 + 50
    }

    /// Round-trip propagation delays of the flows, the same in every transient of a run with this seed.
    pub fn rtts(&self, seed: u64) -> Vec<Duration> {
        let mut rng = Substream::new(seed, "transient RTTs", 0);
        let factor = |rng: &mut Substream| if self.mixed_rtts { 0.5 + rng.uniform() } else { 1.0 };
        (0..self.flows).map(|_| self.rtt.scale(factor(&mut rng))).collect()
    }
}

/// What manages the queue of the link.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub enum Discipline {
    /// One from the registry.
    Registered(QueueConfig),
    /// The [oracle](flowstart_lab::run::oracle).
    Oracle,
    /// The same, which goes on as `CoDel` when all flows of a transient have been signalled.
    OracleThenCoDel,
    /// One from elsewhere, in its initial state.
    Custom(QueueState),
}

impl From<&Aqm> for Discipline {
    fn from(aqm: &Aqm) -> Self {
        match aqm {
            Aqm::Registered(config) => Self::Registered(config.clone()),
            Aqm::Oracle => Self::Oracle,
        }
    }
}

impl From<QueueConfig> for Discipline {
    fn from(config: QueueConfig) -> Self {
        Self::Registered(config)
    }
}

#[cfg(test)]
mod tests;
