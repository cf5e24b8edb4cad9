//! A link: a queue, a transmitter and a wire.
//!
//! A policer may drop a packet before the queue. The transmitter ([`transmitter`]) sends one packet at a time. The wire
//! ([`wire`]) delays, and may lose or reorder.

use std::collections::VecDeque;

use flowstart_core::aqm::{
    EcnCodepoint, OutgoingLink, QueueConfig, QueueContext, QueueLimit, QueueState, QueuedPacket,
};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::packet::PacketId;

pub mod capacity_trace;
pub mod transmitter;
pub mod varying_rate;
pub mod wire;

use transmitter::{Bucket, Capacity, Transmitter};
use wire::{Channel, DelaySteps, Jitter, LossModel, Reordering};

/// How many arrivals ahead a packet is fetched from memory.
const PREFETCH_DISTANCE: usize = 3;

/// The configuration of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The limit of the transmitter.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Duration,
    /// Limit of the queue.
    pub limit: QueueLimit,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// A bucket before the queue that drops excess packets instead of delaying them.
    pub policer: Option<(Rate, Bytes)>,
    /// Random loss.
    pub loss: Option<LossModel>,
    /// Variable delay.
    pub jitter: Option<Jitter>,
    /// Delay that changes in steps.
    pub delay_steps: Option<DelaySteps>,
    /// Reordering.
    pub reordering: Option<Reordering>,
    /// Packets arrive together, once in this time.
    pub aggregation: Option<Duration>,
}

impl LinkConfig {
    /// A link with only a rate and a delay, and an unlimited queue.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            capacity: Capacity::Rate(rate),
            delay,
            limit: QueueLimit::default(),
            queue: QueueConfig::defaults().remove(0),
            policer: None,
            loss: None,
            jitter: None,
            delay_steps: None,
            reordering: None,
            aggregation: None,
        }
    }

    /// The queue discipline's knowledge of the link.
    fn outgoing(&self) -> OutgoingLink {
        let rate = match &self.capacity {
            Capacity::Rate(rate) | Capacity::TokenBucket { rate, .. } => *rate,
            Capacity::Trace(trace) => trace.mean_rate(),
            Capacity::Varying(rate) => rate.mean,
        };
        OutgoingLink { limit: self.limit, rate: Some(rate) }
    }

    /// Whether the link is so simple that a packet's arrival follows from its departure: nothing is ever dropped,
    /// delayed at random or reordered.
    fn is_plain(&self) -> bool {
        matches!(self.capacity, Capacity::Rate(_))
            && matches!(self.queue, QueueConfig::TailDrop(_))
            && self.limit == QueueLimit::default()
            && self.policer.is_none()
            && self.loss.is_none()
            && self.jitter.is_none()
            && self.delay_steps.is_none()
            && self.reordering.is_none()
            && self.aggregation.is_none()
    }
}

/// The outcome for a packet that arrived at a link or left its transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The queue dropped it.
    Queue,
    /// The policer dropped it.
    Policer,
    /// The wire lost it.
    Wire,
    /// A router dropped it for its option.
    Router,
}

/// Counts of a link since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that left the transmitter.
    pub departed: u64,
    /// Bytes that left the transmitter.
    pub departed_bytes: u64,
    /// Packets dropped by the queue, the policer or the router.
    pub dropped: u64,
    /// Packets lost on the wire.
    pub lost: u64,
    /// Most packets that waited at a time, without the one in service.
    pub max_waiting: usize,
    /// Longest time a packet waited.
    pub max_delay: Duration,
}

/// A link and everything in it.
// The fields have this order in memory because most links are plain, and the fields of a plain link share a few cache
// lines.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Link {
    plain: bool,
    /// Whether the policer dropped the packets in `dropped`.
    policed: bool,
    /// Whether the discipline may have a timer.
    timed: bool,
    delay: Duration,
    /// Packets on the wire with their arrival times, the next one first.
    wire: VecDeque<(Timestamp, PacketId)>,
    dropped: Vec<QueuedPacket>,
    counters: LinkCounters,
    transmitter: Transmitter,
    in_service: Option<QueuedPacket>,
    /// How long the packet in service had waited.
    waited: Duration,
    queue: QueueState,
    channel: Channel,
    policer: Option<Bucket>,
    queue_rng: Substream,
}

/// A link's request after it handled an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The transmitter will be free at this time.
    pub service: Option<Timestamp>,
    /// The first packet on the wire arrives at this time.
    pub arrival: Option<Timestamp>,
}

impl Link {
    /// An idle link. `index` separates its random processes from those of other links in the run with this seed.
    pub fn new(config: &LinkConfig, seed: u64, index: u64) -> Self {
        let mut queue = config.queue.build(config.outgoing());
        Self {
            timed: queue.as_dyn().may_have_timer(),
            transmitter: Transmitter::new(&config.capacity, seed),
            delay: config.delay,
            queue,
            queue_rng: Substream::new(seed, "queue discipline", index),
            policer: config.policer.map(|(rate, burst)| Bucket::new(rate, burst)),
            channel: Channel::new(config, seed, index),
            in_service: None,
            waited: Duration::ZERO,
            wire: VecDeque::new(),
            dropped: Vec::new(),
            policed: false,
            plain: config.is_plain(),
            counters: LinkCounters::default(),
        }
    }

    /// The router drops a packet before it is queued.
    pub(crate) fn refuse(&mut self) {
        self.counters.arrived += 1;
        self.counters.dropped += 1;
    }

    /// Makes the link pass every packet through its queue, so that departures are visible.
    pub fn keep_queue(&mut self) {
        self.plain = false;
    }

    /// Replaces the queue discipline by one from outside the registry.
    pub(crate) fn set_queue(&mut self, mut queue: QueueState) {
        self.timed = queue.as_dyn().may_have_timer();
        self.queue = queue;
        self.plain = false;
    }

    /// Whether the discipline may have a timer.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.timed
    }

    /// The owner of the packet that the discipline's timer dropped or put into service, if any.
    pub(crate) fn first_moved(&self, wanted: Wanted) -> Option<u32> {
        let started = self.in_service.filter(|_| wanted.service.is_some());
        self.dropped.first().copied().or(started).map(|packet| packet.flow)
    }

    /// The time at which the discipline needs a call of [`Link::on_queue_timer`].
    pub fn next_queue_timer(&mut self) -> Timestamp {
        self.queue.as_dyn().next_timer()
    }

    /// The discipline's timer has fired. Dropped packets are collected in [`Link::take_dropped`].
    pub fn on_queue_timer(&mut self, now: Timestamp) -> Wanted {
        let in_service = self.in_service.map(|sending| Bytes::new(u64::from(sending.size)));
        let mut context = QueueContext { now, in_service, rng: &mut self.queue_rng, dropped: &mut self.dropped };
        self.queue.as_dyn().on_timer(&mut context);
        let service = if self.in_service.is_none() { self.start_next(now) } else { None };
        Wanted { service, arrival: None }
    }

    /// Counts since the start.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// The queue discipline, to inspect its state.
    pub fn queue(&self) -> &QueueState {
        &self.queue
    }

    /// Number of waiting packets, without the one in service.
    pub fn waiting(&mut self) -> usize {
        self.queue.as_dyn().len()
    }

    /// Number of waiting bytes, without the packet in service.
    pub fn waiting_bytes(&mut self) -> Bytes {
        self.queue.as_dyn().bytes()
    }

    /// The packet that is being sent.
    pub fn in_service(&self) -> Option<PacketId> {
        self.in_service.map(|packet| packet.handle)
    }

    /// A packet arrives at the queue. Dropped packets are collected in [`Link::take_dropped`].
    #[inline]
    pub fn enqueue(&mut self, now: Timestamp, handle: PacketId, size: u32, flow: u32, ecn: EcnCodepoint) -> Wanted {
        self.counters.arrived += 1;
        if self.plain {
            return self.pass(now, handle, size);
        }
        let packet = QueuedPacket { handle, size, flow, ecn, enqueued_at: now };
        if let Some(policer) = &mut self.policer {
            if policer.ready(now, size) > now {
                self.dropped.push(packet);
                self.policed = true;
                return Wanted::default();
            }
            policer.take(now, size);
        }
        let in_service = self.in_service.map(|sending| Bytes::new(u64::from(sending.size)));
        let mut context = QueueContext { now, in_service, rng: &mut self.queue_rng, dropped: &mut self.dropped };
        self.queue.as_dyn().enqueue(packet, &mut context);
        let service = if self.in_service.is_none() { self.start_next(now) } else { None };
        self.counters.max_waiting = self.counters.max_waiting.max(self.queue.as_dyn().len());
        Wanted { service, arrival: None }
    }

    /// The plain link: the arrival follows from the departure, without a queue.
    #[inline]
    fn pass(&mut self, now: Timestamp, handle: PacketId, size: u32) -> Wanted {
        let Transmitter::Rate(serializer) = &mut self.transmitter else { return Wanted::default() };
        let start = serializer.finished.max(now);
        let finished = serializer.finish(start, size);
        self.counters.departed += 1;
        self.counters.departed_bytes += u64::from(size);
        self.wire.push_back((finished + self.delay, handle));
        Wanted { service: None, arrival: (self.wire.len() == 1).then_some(finished + self.delay) }
    }

    /// The transmitter has finished a packet: returns it with how long it had waited, puts it on the wire and starts
    /// the next. A packet that the wire loses is returned with `lost`.
    pub fn finish_service(&mut self, now: Timestamp) -> (Option<Departure>, Wanted) {
        let Some(packet) = self.in_service.take() else { return (None, Wanted::default()) };
        self.counters.departed += 1;
        self.counters.departed_bytes += u64::from(packet.size);
        let lost = self.channel.loses(now);
        let mut arrival = None;
        if lost {
            self.counters.lost += 1;
        } else {
            arrival = self.put_on_wire(now, packet.handle);
        }
        let QueuedPacket { handle, size, flow, ecn, .. } = packet;
        let departure = Departure { handle, size, flow, ecn, lost, waited: self.waited };
        let service = self.start_next(now);
        (Some(departure), Wanted { service, arrival })
    }

    /// A packet that arrives soon, but late enough to fetch it from memory first.
    #[inline]
    pub(crate) fn approaching(&self) -> Option<PacketId> {
        self.wire.get(PREFETCH_DISTANCE).map(|(_, handle)| *handle)
    }

    /// The first packet on the wire has arrived: returns it and the arrival time of the next one.
    #[inline]
    pub fn arrive(&mut self) -> (Option<PacketId>, Option<Timestamp>) {
        let first = self.wire.pop_front().map(|(_, handle)| handle);
        (first, self.wire.front().map(|(time, _)| *time))
    }

    /// Takes a packet that the queue or the policer dropped, and which of them did.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<(QueuedPacket, Loss)> {
        let packet = self.dropped.pop()?;
        self.counters.dropped += 1;
        // A policed packet never comes with others: it did not reach the queue.
        let cause = if std::mem::take(&mut self.policed) { Loss::Policer } else { Loss::Queue };
        Some((packet, cause))
    }

    /// Starts the next waiting packet; returns the time when it will have left.
    fn start_next(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut context = QueueContext { now, in_service: None, rng: &mut self.queue_rng, dropped: &mut self.dropped };
        let packet = self.queue.as_dyn().dequeue(&mut context)?;
        self.waited = now.since(packet.enqueued_at);
        self.counters.max_delay = self.counters.max_delay.max(self.waited);
        self.in_service = Some(packet);
        Some(self.transmitter.finish(now, packet.size))
    }

    /// Puts a packet on the wire; returns the arrival of the first packet on it if that changed.
    fn put_on_wire(&mut self, now: Timestamp, handle: PacketId) -> Option<Timestamp> {
        let arrival = self.channel.arrival(now, self.delay);
        let place = self.wire.iter().rposition(|(time, _)| *time <= arrival).map_or(0, |last| last + 1);
        self.wire.insert(place, (arrival, handle));
        (place == 0).then_some(arrival)
    }
}

/// A packet that left the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The packet.
    pub handle: PacketId,
    /// Bytes on the wire.
    pub size: u32,
    /// Its owner.
    pub flow: u32,
    /// Its ECN field, which the queue may have changed to CE.
    pub ecn: EcnCodepoint,
    /// Whether the wire loses it.
    pub lost: bool,
    /// Its waiting time before its transmission.
    pub waited: Duration,
}

#[cfg(test)]
mod tests;
