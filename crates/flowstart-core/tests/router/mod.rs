//! A queue discipline with the bookkeeping of a router, whatever happens to it. The contracts and the fuzz target of
//! queue disciplines have it in common.

use std::collections::BTreeMap;

use flowstart_core::aqm::{
    EcnCodepoint, OutgoingLink, QueueConfig, QueueContext, QueueLimit, QueueState, QueuedPacket,
};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

/// More timer calls than this in a single wait are not simulated.
const MOST_TIMERS: u32 = 20_000;

/// Links of different kinds.
pub(crate) fn links() -> Vec<OutgoingLink> {
    let packets = |packets, counts_in_service| QueueLimit { packets: Some(packets), bytes: None, counts_in_service };
    let bytes = QueueLimit { packets: None, bytes: Some(Bytes::new(20_000)), counts_in_service: true };
    vec![
        OutgoingLink { limit: packets(50, false), rate: Some(Rate::from_mbit(10)) },
        OutgoingLink { limit: QueueLimit::default(), rate: Some(Rate::from_mbit(1000)) },
        OutgoingLink { limit: packets(1, false), rate: None },
        OutgoingLink { limit: bytes, rate: Some(Rate::from_bits_per_sec(64_000)) },
        OutgoingLink { limit: packets(1000, true), rate: None },
    ]
}

/// Something that happens to a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// A packet arrives. The flow says which transport it is of, so a flow's codepoints differ only by marks.
    Arrive {
        /// Whose packet.
        flow: u8,
        /// Size on the wire.
        size: u16,
        /// A router before this one has marked it, if it can be marked.
        marked: bool,
    },
    /// The link has sent its packet and takes the next one.
    Dequeue,
    /// The link sends as fast as it can for so long.
    Serve(Duration),
    /// Nothing arrives or leaves for so long.
    Wait(Duration),
}

/// A queue discipline at work, and what is known of it from outside.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    name: String,
    queue: QueueState,
    rng: Substream,
    rate: Rate,
    now: Timestamp,
    in_service: Option<Bytes>,
    /// When the packet in service will have left.
    free_at: Timestamp,
    /// What came in and waits, as it was.
    waiting: BTreeMap<u32, QueuedPacket>,
    dropped: Vec<QueuedPacket>,
    /// The last packet of each flow that left, codepoints of L4S apart: a discipline may separate those.
    last: BTreeMap<(u32, bool), u32>,
    offered: u64,
    offered_bytes: u64,
    /// Packets that left.
    pub(crate) left: u64,
    left_bytes: u64,
    /// Packets that were dropped.
    pub(crate) lost: u64,
    lost_bytes: u64,
    newly_marked: u64,
}

impl Router {
    /// A router whose queue is empty.
    pub(crate) fn new(config: &QueueConfig, link: OutgoingLink) -> Self {
        Self {
            name: format!("{config:?} at {link:?}"),
            queue: config.build(link),
            rng: Substream::new(1, "queue discipline", 0),
            rate: link.rate.unwrap_or(Rate::from_mbit(5)),
            now: Timestamp::ZERO,
            in_service: None,
            free_at: Timestamp::ZERO,
            waiting: BTreeMap::new(),
            dropped: Vec::new(),
            last: BTreeMap::new(),
            offered: 0,
            offered_bytes: 0,
            left: 0,
            left_bytes: 0,
            lost: 0,
            lost_bytes: 0,
            newly_marked: 0,
        }
    }

    /// Applies an operation and checks everything.
    pub(crate) fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Arrive { flow, size, marked } => self.arrive(flow, size, marked),
            Operation::Dequeue => {
                self.dequeue();
            }
            Operation::Serve(span) => self.serve(span),
            Operation::Wait(span) => self.pass(self.now + span),
        }
        self.check();
    }

    fn arrive(&mut self, flow: u8, size: u16, marked: bool) {
        let handle = self.offered as u32;
        let transport = [EcnCodepoint::NotEct, EcnCodepoint::Ect0, EcnCodepoint::Ect1][usize::from(flow) % 3];
        let ecn = if marked && transport.is_capable() { EcnCodepoint::Ce } else { transport };
        let size = u32::from(size).max(1);
        let packet = QueuedPacket { handle, size, flow: u32::from(flow), ecn, enqueued_at: self.now };
        self.offered += 1;
        self.offered_bytes += u64::from(size);
        self.waiting.insert(handle, packet);
        let Self { queue, rng, dropped, .. } = self;
        queue.as_dyn().enqueue(packet, &mut QueueContext { now: self.now, in_service: self.in_service, rng, dropped });
        self.account();
    }

    /// The link's packet has left, and it takes the next one, if any.
    fn dequeue(&mut self) -> Option<QueuedPacket> {
        self.in_service = None;
        let waited = !self.queue.as_dyn().is_empty();
        let Self { queue, rng, dropped, now, .. } = self;
        let packet = queue.as_dyn().dequeue(&mut QueueContext { now: *now, in_service: None, rng, dropped });
        self.account();
        let Some(packet) = packet else {
            assert!(
                !waited || self.queue.as_dyn().is_empty(),
                "{}: idle with {} packets waiting",
                self.name,
                self.queue.as_dyn().len()
            );
            return None;
        };
        let arrived = self.take(packet.handle);
        self.check_packet(&packet, &arrived);
        self.left += 1;
        self.left_bytes += u64::from(packet.size);
        self.newly_marked += u64::from(packet.ecn != arrived.ecn);
        let place = (packet.flow, matches!(arrived.ecn, EcnCodepoint::Ect1 | EcnCodepoint::Ce));
        if let Some(before) = self.last.insert(place, packet.handle) {
            assert!(before < packet.handle, "{}: {packet:?} leaves after {before} of its flow", self.name);
        }
        let size = Bytes::new(u64::from(packet.size));
        self.in_service = Some(size);
        self.free_at = self.now + self.rate.time_for(size);
        Some(packet)
    }

    fn serve(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end && (self.now < self.free_at || self.dequeue().is_some()) {
            self.pass(self.free_at.min(end));
            self.check();
        }
        self.pass(end);
    }

    /// Time passes, and timers are called when they are due.
    fn pass(&mut self, end: Timestamp) {
        for _ in 0..MOST_TIMERS {
            let due = self.queue.as_dyn().next_timer();
            assert!(due == Timestamp::NEVER || self.queue.as_dyn().may_have_timer(), "{}: hides a timer", self.name);
            if due > end {
                break;
            }
            self.now = self.now.max(due);
            let Self { queue, rng, dropped, now, in_service, .. } = self;
            queue.as_dyn().on_timer(&mut QueueContext { now: *now, in_service: *in_service, rng, dropped });
            self.account();
            assert!(self.queue.as_dyn().next_timer() > self.now, "{}: its timer does not move on", self.name);
        }
        self.now = self.now.max(end);
    }

    fn take(&mut self, handle: u32) -> QueuedPacket {
        let Some(packet) = self.waiting.remove(&handle) else {
            panic!("{}: packet {handle} was not waiting", self.name)
        };
        packet
    }

    fn account(&mut self) {
        while let Some(packet) = self.dropped.pop() {
            let arrived = self.take(packet.handle);
            self.check_packet(&packet, &arrived);
            self.lost += 1;
            self.lost_bytes += u64::from(packet.size);
        }
    }

    /// A packet that leaves or is dropped is the one that came, and was marked only if it could be.
    fn check_packet(&self, packet: &QueuedPacket, arrived: &QueuedPacket) {
        let same = QueuedPacket { ecn: arrived.ecn, ..*packet };
        assert_eq!(same, *arrived, "{}: another packet", self.name);
        assert!(packet.enqueued_at <= self.now, "{}: waited less than no time", self.name);
        let marked = packet.ecn == EcnCodepoint::Ce && arrived.ecn.is_capable();
        assert!(packet.ecn == arrived.ecn || marked, "{}: {:?} became {:?}", self.name, arrived.ecn, packet.ecn);
    }

    fn check(&mut self) {
        let name = &self.name;
        let queue = self.queue.as_dyn();
        assert_eq!(queue.len(), self.waiting.len(), "{name}: len");
        assert_eq!(queue.is_empty(), self.waiting.is_empty(), "{name}: is_empty");
        let bytes = self.offered_bytes - self.left_bytes - self.lost_bytes;
        assert_eq!(queue.bytes(), Bytes::new(bytes), "{name}: bytes");
        assert_eq!(self.offered, self.left + self.lost + queue.len() as u64, "{name}: conservation");
        let stats = queue.stats();
        assert_eq!(stats.dropped_early + stats.dropped_full, self.lost, "{name}: {stats:?}");
        assert!(stats.marked >= self.newly_marked, "{name}: {stats:?}, but {} marks left", self.newly_marked);
    }

    /// Sends everything that waits.
    pub(crate) fn drain(&mut self) {
        while self.dequeue().is_some() {
            self.pass(self.now + Duration::from_millis(1));
            self.check();
        }
        assert!(self.waiting.is_empty(), "{}: {} packets never leave", self.name, self.waiting.len());
        self.check();
    }

    /// Whether the next timer call changes anything but the time of the one after it.
    pub(crate) fn timer_has_an_effect(&mut self) -> bool {
        let state = |router: &mut Self| {
            let due = format!("{:?}", router.queue.as_dyn().next_timer());
            format!("{:?}", router.queue).replace(&due, "next")
        };
        let before = state(self);
        let due = self.queue.as_dyn().next_timer();
        self.pass(due);
        before != state(self)
    }

    /// Timer calls of an empty queue until there are no more, at most `most`.
    pub(crate) fn idle_timers(&mut self, most: u32) -> u32 {
        for count in 0..most {
            let due = self.queue.as_dyn().next_timer();
            if due == Timestamp::NEVER {
                return count;
            }
            self.pass(due);
        }
        most
    }
}
