//! A link: a queue, a transmitter and a wire.
//!
//! The transmitter sends one packet at a time. At a fixed rate the remainder of each division is carried over while
//! packets follow each other, so a busy link never drifts from its rate. The wire delays, and may lose or reorder; its
//! random processes are functions of time, so the channel does not depend on who uses it.

use std::collections::VecDeque;
use std::sync::Arc;

use flowstart_core::aqm::{
    EcnCodepoint, OutgoingLink, QueueConfig, QueueContext, QueueLimit, QueueState, QueuedPacket,
};
use flowstart_core::rng::{Substream, name_hash, noise};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::link::capacity_trace::{CapacityTrace, Cursor};
use crate::packet::PacketId;

pub mod capacity_trace;

/// How many arrivals ahead a packet is fetched from memory.
const PREFETCH_DISTANCE: usize = 3;

/// What limits the transmitter.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A fixed rate.
    Rate(Rate),
    /// A token bucket: `burst` bytes may leave at the rate `peak`, the average is `rate`.
    TokenBucket {
        /// Average rate: tokens per time.
        rate: Rate,
        /// Size of the bucket.
        burst: Bytes,
        /// Rate of a packet that has its tokens.
        peak: Rate,
    },
    /// Opportunities of a recorded trace, 1500 bytes each.
    Trace(Arc<CapacityTrace>),
}

/// Random loss on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost with this probability.
    Independent {
        /// Probability of loss, 0..1.
        probability: f64,
    },
    /// Two states that last exponentially distributed times (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Mean time in the good state, where nothing is lost.
        mean_good: Duration,
        /// Mean time in the bad state.
        mean_bad: Duration,
        /// Probability of loss in the bad state, 0..1.
        probability_bad: f64,
    },
}

/// Variable delay on the wire that keeps the order of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Largest extra delay; it moves between 0 and this, uniform at every step.
    pub amplitude: Duration,
    /// Time between two steps; between them the delay is interpolated.
    pub step: Duration,
}

/// Packets that arrive later than packets sent after them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is held back, 0..1.
    pub probability: f64,
    /// For how long.
    pub delay: Duration,
}

/// What a link is made of.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// What limits the transmitter.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Duration,
    /// How much may wait.
    pub limit: QueueLimit,
    /// What waits and how.
    pub queue: QueueConfig,
    /// A bucket that drops what exceeds it instead of delaying it, before the queue.
    pub policer: Option<(Rate, Bytes)>,
    /// Random loss.
    pub loss: Option<LossModel>,
    /// Variable delay.
    pub jitter: Option<Jitter>,
    /// Reordering.
    pub reordering: Option<Reordering>,
}

impl LinkConfig {
    /// A link that only has a rate and a delay; everything may wait.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            capacity: Capacity::Rate(rate),
            delay,
            limit: QueueLimit::default(),
            queue: QueueConfig::defaults().remove(0),
            policer: None,
            loss: None,
            jitter: None,
            reordering: None,
        }
    }

    /// What the queue discipline knows of the link.
    fn outgoing(&self) -> OutgoingLink {
        let rate = match &self.capacity {
            Capacity::Rate(rate) | Capacity::TokenBucket { rate, .. } => *rate,
            Capacity::Trace(trace) => trace.mean_rate(),
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
            && self.reordering.is_none()
    }
}

/// A transmitter: when will a packet that starts now have left?
#[derive(Clone, Debug)]
enum Transmitter {
    Rate(Serializer),
    TokenBucket { bucket: Bucket, serializer: Serializer },
    Trace(Cursor),
}

/// Divides bytes by a rate without losing the remainder.
#[derive(Clone, Debug)]
struct Serializer {
    rate: u64,
    /// Remainder of the divisions so far, in units of 1/rate nanoseconds.
    remainder: u64,
    /// When the last packet had left; a gap forgets the remainder.
    finished: Timestamp,
    /// The last size with its quotient and remainder: sizes repeat.
    last: (u32, u64, u64),
}

impl Serializer {
    fn new(rate: Rate) -> Self {
        Self { rate: rate.bits_per_sec().max(1), remainder: 0, finished: Timestamp::ZERO, last: (0, 0, 0) }
    }

    #[inline]
    fn finish(&mut self, start: Timestamp, size: u32) -> Timestamp {
        if start != self.finished {
            self.remainder = 0;
        }
        if self.last.0 != size {
            let bits = u64::from(size) * 8_000_000_000;
            self.last = (size, bits / self.rate, bits % self.rate);
        }
        let (_, mut nanos, rest) = self.last;
        self.remainder += rest;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            nanos += 1;
        }
        self.finished = start + Duration::from_nanos(nanos);
        self.finished
    }
}

/// A token bucket as a virtual clock (the generic cell rate algorithm of ITU-T I.371).
#[derive(Clone, Debug)]
struct Bucket {
    /// When the bucket will be full again.
    full_at: Timestamp,
    /// How long an empty bucket takes to fill.
    depth: Duration,
    serializer: Serializer,
}

impl Bucket {
    fn new(rate: Rate, burst: Bytes) -> Self {
        Self { full_at: Timestamp::ZERO, depth: rate.time_for(burst), serializer: Serializer::new(rate) }
    }

    /// When the bucket will hold the tokens for `size`, without taking them.
    fn ready(&self, now: Timestamp, size: u32) -> Timestamp {
        let mut trial = self.serializer.clone();
        (trial.finish(self.full_at.max(now), size) - self.depth).max(now)
    }

    fn take(&mut self, now: Timestamp, size: u32) {
        self.full_at = self.serializer.finish(self.full_at.max(now), size);
    }
}

impl Transmitter {
    fn new(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::Rate(rate) => Self::Rate(Serializer::new(*rate)),
            Capacity::TokenBucket { rate, burst, peak } => {
                Self::TokenBucket { bucket: Bucket::new(*rate, *burst), serializer: Serializer::new(*peak) }
            }
            Capacity::Trace(trace) => Self::Trace(Cursor::new(trace.clone())),
        }
    }

    #[inline]
    fn finish(&mut self, now: Timestamp, size: u32) -> Timestamp {
        match self {
            Self::Rate(serializer) => serializer.finish(now, size),
            Self::TokenBucket { bucket, serializer } => {
                let start = bucket.ready(now, size);
                bucket.take(start, size);
                serializer.finish(start, size)
            }
            Self::Trace(cursor) => cursor.finish(now, size),
        }
    }
}

/// What happened to a packet that arrived at a link or left its transmitter.
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
    /// Most packets that ever waited, the one in service not counted.
    pub max_waiting: usize,
    /// Longest time a packet waited.
    pub max_delay: Duration,
}

/// A link and everything in it.
// In this order in memory: what a plain link needs, which most links are, shares a few cache lines.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Link {
    plain: bool,
    /// What is in `dropped` was dropped by the policer.
    policed: bool,
    /// The discipline may have a timer.
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
    last_arrival: Timestamp,
    loss: Option<LossProcess>,
    jitter: Option<Jitter>,
    reordering: Option<Reordering>,
    /// Seed of the wire's processes.
    seed: u64,
    policer: Option<Bucket>,
    queue_rng: Substream,
}

/// What a link wants after it handled something.
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
            transmitter: Transmitter::new(&config.capacity),
            delay: config.delay,
            queue,
            queue_rng: Substream::new(seed, "queue discipline", index),
            policer: config.policer.map(|(rate, burst)| Bucket::new(rate, burst)),
            loss: config.loss.map(|model| LossProcess::new(model, seed, index)),
            jitter: config.jitter,
            reordering: config.reordering,
            seed: flowstart_core::rng::mix(seed.wrapping_add(index)),
            in_service: None,
            waited: Duration::ZERO,
            wire: VecDeque::new(),
            last_arrival: Timestamp::ZERO,
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

    /// Makes the link pass every packet through its queue, so that departures can be seen.
    pub(crate) fn keep_queue(&mut self) {
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

    /// Whose packet the discipline's timer dropped or put into service, if any.
    pub(crate) fn first_moved(&self, wanted: Wanted) -> Option<u32> {
        let started = self.in_service.filter(|_| wanted.service.is_some());
        self.dropped.first().copied().or(started).map(|packet| packet.flow)
    }

    /// When the discipline wants [`Link::on_queue_timer`] called.
    pub(crate) fn next_queue_timer(&mut self) -> Timestamp {
        self.queue.as_dyn().next_timer()
    }

    /// The discipline's timer has fired. Dropped packets are collected in [`Link::take_dropped`].
    pub(crate) fn on_queue_timer(&mut self, now: Timestamp) -> Wanted {
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

    /// The queue discipline, for whoever wants to know what it has found out.
    pub fn queue(&self) -> &QueueState {
        &self.queue
    }

    /// Packets waiting, the one in service not counted.
    pub fn waiting(&mut self) -> usize {
        self.queue.as_dyn().len()
    }

    /// Bytes waiting, the one in service not counted.
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

    /// The plain link: arrival follows from departure, no queue is needed.
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

    /// The transmitter has finished a packet: returns it with how long it had waited, puts it on the wire and starts the
    /// next. A packet that the wire loses is returned with `lost`.
    pub fn finish_service(&mut self, now: Timestamp) -> (Option<Departure>, Wanted) {
        let Some(packet) = self.in_service.take() else { return (None, Wanted::default()) };
        self.counters.departed += 1;
        self.counters.departed_bytes += u64::from(packet.size);
        let lost = self.loss.as_mut().is_some_and(|process| process.loses(now));
        let mut arrival = None;
        if lost {
            self.counters.lost += 1;
        } else {
            arrival = self.put_on_wire(now, packet.handle);
        }
        let QueuedPacket { handle, size, flow, ecn, .. } = packet;
        let departure = Departure { handle, size, flow, ecn, lost };
        let service = self.start_next(now);
        (Some(departure), Wanted { service, arrival })
    }

    /// A packet that arrives soon, but not so soon that there is no time to fetch it from memory.
    #[inline]
    pub(crate) fn approaching(&self) -> Option<PacketId> {
        self.wire.get(PREFETCH_DISTANCE).map(|(_, handle)| *handle)
    }

    /// The first packet on the wire has arrived: returns it and when the next one will.
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

    /// How long the packet in service had waited before its transmission began.
    #[inline]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Starts the next waiting packet; returns when it will have left.
    fn start_next(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut context = QueueContext { now, in_service: None, rng: &mut self.queue_rng, dropped: &mut self.dropped };
        let packet = self.queue.as_dyn().dequeue(&mut context)?;
        self.waited = now.since(packet.enqueued_at);
        self.counters.max_delay = self.counters.max_delay.max(self.waited);
        self.in_service = Some(packet);
        Some(self.transmitter.finish(now, packet.size))
    }

    /// Puts a packet on the wire; returns the arrival of the first packet on it when that changed.
    fn put_on_wire(&mut self, now: Timestamp, handle: PacketId) -> Option<Timestamp> {
        let mut arrival = now + self.delay;
        if let Some(jitter) = self.jitter {
            arrival = (arrival + jitter.at(self.seed, now)).max(self.last_arrival);
        }
        self.last_arrival = arrival;
        if let Some(reordering) = self.reordering
            && noise(self.seed, const { name_hash("reordering") }, now.as_nanos()) < reordering.probability
        {
            arrival += reordering.delay;
        }
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
    /// Whose it is.
    pub flow: u32,
    /// Its ECN field, which the queue may have changed to CE.
    pub ecn: EcnCodepoint,
    /// The wire loses it.
    pub lost: bool,
}

impl Jitter {
    /// The extra delay at `now`: uniform values at the steps, interpolated between them.
    fn at(&self, seed: u64, now: Timestamp) -> Duration {
        let step = self.step.as_nanos().max(1);
        let (index, within) = (now.as_nanos() / step, now.as_nanos() % step);
        let value = |index| noise(seed, const { name_hash("jitter") }, index);
        let fraction = within as f64 / step as f64;
        self.amplitude.scale(value(index) * (1.0 - fraction) + value(index + 1) * fraction)
    }
}

/// A loss model with its state.
#[derive(Clone, Debug)]
struct LossProcess {
    model: LossModel,
    seed: u64,
    rng: Substream,
    bad: bool,
    /// When the Gilbert-Elliott state changes next.
    changes_at: Timestamp,
}

impl LossProcess {
    fn new(model: LossModel, seed: u64, index: u64) -> Self {
        let mut process = Self {
            model,
            seed: flowstart_core::rng::mix(seed ^ index),
            rng: Substream::new(seed, "loss state", index),
            bad: true,
            changes_at: Timestamp::ZERO,
        };
        process.advance(Timestamp::ZERO);
        process
    }

    fn advance(&mut self, now: Timestamp) {
        let LossModel::GilbertElliott { mean_good, mean_bad, .. } = self.model else { return };
        while self.changes_at <= now {
            self.bad = !self.bad;
            let mean = if self.bad { mean_bad } else { mean_good };
            let stay = self.rng.exponential(mean.as_secs());
            self.changes_at += Duration::from_secs(stay).max(Duration::from_nanos(1));
        }
    }

    fn loses(&mut self, now: Timestamp) -> bool {
        self.advance(now);
        let probability = match self.model {
            LossModel::Independent { probability } => probability,
            LossModel::GilbertElliott { probability_bad, .. } if self.bad => probability_bad,
            LossModel::GilbertElliott { .. } => 0.0,
        };
        noise(self.seed, const { name_hash("loss") }, now.as_nanos()) < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    /// Runs a link with packets of `size` that all arrive at `now = 0`; returns their arrival times at the far end.
    fn drain(config: &LinkConfig, count: u32, size: u32) -> Vec<u64> {
        let mut link = Link::new(config, 1, 0);
        let mut service = None;
        for handle in 0..count {
            let wanted = link.enqueue(Timestamp::ZERO, handle, size, 0, EcnCodepoint::NotEct);
            service = service.or(wanted.service);
        }
        while let Some(time) = service {
            service = link.finish_service(time).1.service;
        }
        link.wire.iter().map(|(time, _)| time.as_nanos()).collect()
    }

    #[test]
    fn a_busy_link_never_drifts_from_its_rate() {
        // 1500 bytes at 7 Mbit/s are 1,714,285.714... ns: a million of them take exactly 1,714,285,714,285 ns.
        let mut serializer = Serializer::new(Rate::from_mbit(7));
        let mut time = Timestamp::ZERO;
        for _ in 0..1_000_000 {
            time = serializer.finish(time, 1500);
        }
        assert_eq!(time, at(1_714_285_714_285));
    }

    #[test]
    fn the_plain_and_the_general_link_agree() {
        let plain = LinkConfig::new(Rate::from_mbit(7), Duration::from_millis(3));
        let general =
            LinkConfig { limit: QueueLimit { packets: Some(1000), ..QueueLimit::default() }, ..plain.clone() };
        assert_eq!(drain(&plain, 100, 1400), drain(&general, 100, 1400));
    }

    #[test]
    fn a_token_bucket_sends_its_burst_at_the_peak_rate_and_then_the_average() {
        let capacity =
            Capacity::TokenBucket { rate: Rate::from_mbit(8), burst: Bytes::new(3000), peak: Rate::from_mbit(80) };
        let config = LinkConfig { capacity, ..LinkConfig::new(Rate::ZERO, Duration::ZERO) };
        // 1000 bytes: 0.1 ms at the peak rate, 1 ms at the average. Three packets have their tokens at once, the fourth
        // waits until 1 ms after the start, and so on.
        assert_eq!(drain(&config, 6, 1000), [100_000, 200_000, 300_000, 1_100_000, 2_100_000, 3_100_000]);
    }

    #[test]
    fn a_policer_drops_what_exceeds_its_bucket() {
        let config = LinkConfig {
            policer: Some((Rate::from_mbit(8), Bytes::new(3000))),
            ..LinkConfig::new(Rate::from_mbit(80), Duration::ZERO)
        };
        assert_eq!(drain(&config, 6, 1000).len(), 3);
    }

    #[test]
    fn drops_name_what_dropped_them() {
        let limit = QueueLimit { packets: Some(1), ..QueueLimit::default() };
        let policer = Some((Rate::from_mbit(8), Bytes::new(3000)));
        let config = LinkConfig { policer, limit, ..LinkConfig::new(Rate::from_mbit(80), Duration::ZERO) };
        let mut link = Link::new(&config, 1, 0);
        let mut causes = Vec::new();
        for handle in 0..5 {
            link.enqueue(Timestamp::ZERO, handle, 1000, 0, EcnCodepoint::NotEct);
            causes.extend(link.take_dropped().map(|(packet, cause)| (packet.handle, cause)));
        }
        // One is sent, one waits, the third has tokens but no place, the others have no tokens.
        assert_eq!(causes, [(2, Loss::Queue), (3, Loss::Policer), (4, Loss::Policer)]);
    }

    #[test]
    fn jitter_keeps_the_order_and_reordering_does_not() {
        let jitter = Some(Jitter { amplitude: Duration::from_millis(5), step: Duration::from_micros(500) });
        let config = LinkConfig { jitter, ..LinkConfig::new(Rate::from_mbit(100), Duration::from_millis(10)) };
        let mut link = Link::new(&config, 1, 0);
        let mut handles = Vec::new();
        for handle in 0..1000 {
            let now = at(u64::from(handle) * 120_000);
            if let Some(time) = link.enqueue(now, handle, 1500, 0, EcnCodepoint::NotEct).service {
                link.finish_service(time);
            }
        }
        while let (Some(handle), _) = link.arrive() {
            handles.push(handle);
        }
        assert!(handles.is_sorted(), "jitter must not reorder");

        let reordering = Some(Reordering { probability: 0.1, delay: Duration::from_millis(1) });
        let config = LinkConfig { jitter: None, reordering, ..config };
        let mut link = Link::new(&config, 1, 0);
        let mut late = 0;
        for handle in 0..1000 {
            let now = at(u64::from(handle) * 120_000);
            if let Some(time) = link.enqueue(now, handle, 1500, 0, EcnCodepoint::NotEct).service {
                link.finish_service(time);
            }
        }
        let mut last = 0;
        while let (Some(handle), _) = link.arrive() {
            late += u32::from(handle < last);
            last = last.max(handle);
        }
        assert!((60..140).contains(&late), "about one in ten is late, not {late}");
    }

    #[test]
    fn loss_models_have_their_rates_and_bursts() {
        let losses = |model| {
            let mut process = LossProcess::new(model, 5, 0);
            let outcome: Vec<bool> = (0..200_000).map(|i| process.loses(at(i * 100_000))).collect();
            let rate = outcome.iter().filter(|lost| **lost).count() as f64 / outcome.len() as f64;
            let pairs = outcome.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
            (rate, pairs / outcome.len() as f64 / rate)
        };
        let (rate, next_too) = losses(LossModel::Independent { probability: 0.02 });
        assert!((rate - 0.02).abs() < 0.002 && next_too < 0.04, "{rate} {next_too}");
        // Bad for 10 ms of 500 ms, half of the packets lost there: 1 %; after a loss the state is mostly still bad.
        let (rate, next_too) = losses(LossModel::GilbertElliott {
            mean_good: Duration::from_millis(490),
            mean_bad: Duration::from_millis(10),
            probability_bad: 0.5,
        });
        assert!((rate - 0.01).abs() < 0.004 && next_too > 0.4, "{rate} {next_too}");
    }
}
