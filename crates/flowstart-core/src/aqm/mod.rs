//! Queue disciplines: how a router treats packets that wait for a link.
//!
//! | Name | File |
//! |---|---|
//! | `taildrop` | [`taildrop`] |
//! | `red` | [`red`] |
//! | `adaptive-red` | [`adaptive_red`] |
//! | `hred` | [`hred`] |
//! | `pi` | [`pi`] |
//! | `avq` | [`avq`] |
//! | `pie` | [`pie`] |
//! | `codel` | [`codel`] |
//! | `predict` | [`predict`] |
//! | `fq-codel` | [`fq_codel`] |
//! | `fq-pie` | [`fq_pie`] |
//! | `sfq` | [`sfq`] |
//! | `sfq-codel` | [`sfq_codel`] |
//! | `dualpi2` | [`dualpi2`] |
//! | `cake` | [`cake`] |
//! | one from outside this crate | [`CustomQueue`] |
//!
//! A discipline is a queue and a law. The law decides what happens to a packet. It gets the time and the delay or
//! length of the queue, and knows nothing else of the queue. So one law can serve a single queue or each of many, and
//! its tests need no queue. Three things are separate: the parameters (`Config`), the law's state under the names of
//! its reference (`Vars`), and the decisions so far ([`QueueStats`]).
//!
//! The link's own buffer is the limit of every discipline but `cake`, which is a buffer itself and has its `memlimit`.
//! `fq-codel` and `fq-pie` have limits of their own besides; the smallest counts.

// A packet that shadows another one has been dropped instead of it in published queue disciplines.
#![warn(clippy::shadow_unrelated)]

use alloc::vec::Vec;
use core::fmt;

pub use self::custom::CustomQueue;
use crate::rng::Substream;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

pub mod adaptive_red;
pub mod avq;
pub mod cake;
pub mod cobalt;
pub mod codel;
mod custom;
pub mod decision;
pub mod departure_rate;
pub mod dualpi2;
pub mod fifo;
pub mod flow_queueing;
pub mod fq_codel;
pub mod fq_pie;
pub mod grid;
pub mod hred;
pub mod pi;
pub mod pie;
#[cfg(feature = "experimental")]
pub mod predict;
pub mod red;
pub mod sfq;
pub mod sfq_codel;
pub mod taildrop;

/// The ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// The transport does not react to marks.
    #[default]
    NotEct,
    /// ECN-capable.
    Ect0,
    /// ECN-capable, L4S.
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl EcnCodepoint {
    /// Whether the transport reacts to marks, or has been marked already.
    pub fn is_capable(self) -> bool {
        self != Self::NotEct
    }
}

/// A packet as a queue sees it. `handle` belongs to the host, which keeps the packet itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket {
    /// The host's name for the packet.
    pub handle: u32,
    /// Size on the wire.
    pub size: u32,
    /// Flow, for disciplines that separate flows.
    pub flow: u32,
    /// ECN field; a discipline may change ECT to CE.
    pub ecn: EcnCodepoint,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
}

impl QueuedPacket {
    /// How long the packet has waited (RFC 8289, section 3: the sojourn time).
    pub fn sojourn(&self, now: Timestamp) -> Duration {
        now.since(self.enqueued_at)
    }

    /// Marks the packet if its transport reacts to marks (RFC 3168, section 5). Returns whether it did; if not, a
    /// discipline drops the packet.
    #[must_use]
    pub fn mark(&mut self) -> bool {
        let capable = self.ecn.is_capable();
        if capable {
            self.ecn = EcnCodepoint::Ce;
        }
        capable
    }
}

/// What a discipline may use besides the packet.
#[derive(Debug)]
pub struct QueueContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// The packet that the link is sending now, in bytes, if any: some limits include it.
    pub in_service: Option<Bytes>,
    /// The discipline's own random numbers.
    pub rng: &'a mut Substream,
    /// Packets that the discipline drops, for the host to account for and free.
    pub dropped: &'a mut Vec<QueuedPacket>,
}

/// How much may wait. An absent limit is infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Packets.
    pub packets: Option<u64>,
    /// Bytes.
    pub bytes: Option<Bytes>,
    /// Whether the packet being sent counts towards the limit (ns-2 counts it; ns-3's device queue does not).
    pub counts_in_service: bool,
}

impl QueueLimit {
    /// Whether a packet of `size` fits behind `packets` packets of `bytes` bytes.
    pub fn admits(&self, size: u32, mut packets: u64, mut bytes: Bytes, in_service: Option<Bytes>) -> bool {
        if let (true, Some(sending)) = (self.counts_in_service, in_service) {
            packets += 1;
            bytes += sending;
        }
        self.packets.is_none_or(|limit| packets < limit)
            && self.bytes.is_none_or(|limit| bytes + Bytes::new(u64::from(size)) <= limit)
    }
}

/// The link that a queue feeds, as a discipline knows it when it is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingLink {
    /// How much may wait in the link's own buffer.
    pub limit: QueueLimit,
    /// Its rate, or the mean of a rate that varies; `None` if the host does not know it. A discipline whose law
    /// contains the rate measures it then.
    pub rate: Option<Rate>,
}

impl From<QueueLimit> for OutgoingLink {
    fn from(limit: QueueLimit) -> Self {
        Self { limit, rate: None }
    }
}

/// What a discipline has decided since it was built, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Marked CE by the law.
    pub marked: u64,
    /// Dropped by the law, before anything was full.
    pub dropped_early: u64,
    /// Dropped because they did not fit.
    pub dropped_full: u64,
}

/// A queue discipline. The host calls `enqueue` on arrival and `dequeue` when the link can send the next packet.
///
/// `Debug` shows all of its state.
pub trait QueueDiscipline: fmt::Debug + Send + Sync + CloneDiscipline {
    /// A discipline from outside the registry learns its link, before anything else. Those of the registry know it from
    /// their construction.
    fn set_link(&mut self, _link: OutgoingLink) {}

    /// A packet arrives. Dropped packets, this one or others, go to `context.dropped`.
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>);

    /// The next packet to send. Dropped packets go to `context.dropped`.
    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket>;

    /// Packets waiting.
    fn len(&self) -> usize;

    /// Bytes waiting.
    fn bytes(&self) -> Bytes;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What has been decided since the discipline was built.
    fn stats(&self) -> QueueStats {
        QueueStats::default()
    }

    /// Whether the discipline may ever have a timer. The host need not ask others after every packet.
    fn may_have_timer(&self) -> bool {
        true
    }

    /// When the discipline wants [`QueueDiscipline::on_timer`] called, [`Timestamp::NEVER`] if it does not. The host
    /// asks when it gets the discipline and after every `enqueue`, `dequeue` and `on_timer`.
    fn next_timer(&self) -> Timestamp {
        Timestamp::NEVER
    }

    /// The time of [`QueueDiscipline::next_timer`] has come. The timer must move on, or this is called again at once.
    /// Dropped packets go to `context.dropped`. An idle link asks for a packet afterwards, so a discipline may also
    /// release packets that it held back.
    fn on_timer(&mut self, _context: &mut QueueContext<'_>) {}
}

cloned_in_boxes! {
    /// Lets a boxed discipline be cloned; implemented for every discipline that is `Clone`.
    CloneDiscipline: QueueDiscipline;
}

algorithms! {
    /// Which queue discipline, and its parameters.
    config QueueConfig;
    /// A queue discipline and its state.
    state QueueState: QueueDiscipline;
    context OutgoingLink;
    with CustomQueue;
    TailDrop = "taildrop" in taildrop,
    Red = "red" in red,
    AdaptiveRed = "adaptive-red" in adaptive_red,
    Hred = "hred" in hred,
    Pi = "pi" in pi,
    Avq = "avq" in avq,
    Pie = "pie" in pie,
    CoDel = "codel" in codel,
    #[cfg(feature = "experimental")]
    Predict = "predict" in predict,
    FqCoDel = "fq-codel" in fq_codel,
    FqPie = "fq-pie" in fq_pie,
    Sfq = "sfq" in sfq,
    SfqCoDel = "sfq-codel" in sfq_codel,
    DualPi2 = "dualpi2" in dualpi2,
    Cake = "cake" in cake,
}
