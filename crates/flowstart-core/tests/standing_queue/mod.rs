//! A queue that stays long: what its disciplines cost and whether they allocate is measured with it.

use flowstart_core::aqm::{
    EcnCodepoint, OutgoingLink, QueueConfig, QueueContext, QueueLimit, QueueState, QueuedPacket,
};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

/// Packets that wait, unless the discipline drops too many.
const LENGTH: usize = 100;
/// A full packet, and its time on the link.
const SIZE: u32 = 1500;
const SENT_IN: Duration = Duration::from_micros(1200);

/// A link of 10 Mbit/s whose queue of about 100 packets makes every law act: they have waited for 120 ms.
#[derive(Debug)]
pub(crate) struct StandingQueue {
    queue: QueueState,
    flows: u32,
    ecn: EcnCodepoint,
    rng: Substream,
    now: Timestamp,
    arrived: u32,
    dropped: Vec<QueuedPacket>,
    /// Packets that the discipline dropped.
    pub(crate) lost: u64,
}

impl StandingQueue {
    /// A queue of packets of so many flows in turn, which can be marked or not.
    pub(crate) fn new(config: &QueueConfig, flows: u32, ecn: EcnCodepoint) -> Self {
        let limit = QueueLimit { packets: Some(2 * LENGTH as u64), ..QueueLimit::default() };
        let mut standing = Self {
            queue: config.build(OutgoingLink { limit, rate: Some(Rate::from_mbit(10)) }),
            flows,
            ecn,
            rng: Substream::new(1, "queue discipline", 0),
            now: Timestamp::ZERO,
            arrived: 0,
            // A law may drop all of them at once; that the host's list grows is not what is measured.
            dropped: Vec::with_capacity(4 * LENGTH),
            lost: 0,
        };
        for _ in 0..20_000 {
            standing.pair();
        }
        standing
    }

    /// What the discipline has done.
    pub(crate) fn marked(&mut self) -> u64 {
        self.queue.as_dyn().stats().marked
    }

    /// A packet arrives, another one where packets are missing, and one leaves; timers are called when they are due.
    #[inline]
    pub(crate) fn pair(&mut self) -> Option<QueuedPacket> {
        self.now += SENT_IN;
        while self.queue.as_dyn().next_timer() <= self.now {
            let Self { queue, rng, dropped, now, .. } = self;
            queue.as_dyn().on_timer(&mut QueueContext { now: *now, in_service: None, rng, dropped });
        }
        self.arrive();
        if self.queue.as_dyn().len() < LENGTH {
            self.arrive();
        }
        let Self { queue, rng, dropped, now, .. } = self;
        let packet = queue.as_dyn().dequeue(&mut QueueContext { now: *now, in_service: None, rng, dropped });
        self.lost += self.dropped.len() as u64;
        self.dropped.clear();
        packet
    }

    #[inline]
    fn arrive(&mut self) {
        self.arrived = self.arrived.wrapping_add(1);
        let packet = QueuedPacket {
            handle: self.arrived,
            size: SIZE,
            flow: self.arrived % self.flows,
            ecn: self.ecn,
            enqueued_at: self.now,
        };
        let Self { queue, rng, dropped, now, .. } = self;
        let in_service = Some(Bytes::new(u64::from(SIZE)));
        queue.as_dyn().enqueue(packet, &mut QueueContext { now: *now, in_service, rng, dropped });
    }
}
