//! One direction of a link, which a host's clock drives.
//!
//! The link is the simulator's own. Its events happen at the times that it asked for, in their order, even if the host
//! looks later: so departures follow from arrivals alone, as in the simulator, and a late host sends late without
//! changing what waits, what is dropped and in which order.

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_sim::link::{Departure, Link, LinkConfig, LinkCounters, Wanted};
use slab::Slab;

/// A link with packets of the host.
#[derive(Debug)]
pub struct Lane<T> {
    link: Link,
    packets: Slab<(T, u32)>,
    /// What was dropped or lost, if anybody takes it.
    dropped: Option<Vec<T>>,
    /// Bytes of all packets in the lane.
    held: u64,
    service: Option<Timestamp>,
    arrival: Option<Timestamp>,
}

impl<T> Lane<T> {
    /// An empty lane. `index` separates its random processes from those of other lanes with this seed.
    pub fn new(config: &LinkConfig, seed: u64, index: u64) -> Self {
        let link = Link::new(config, seed, index);
        Self { link, packets: Slab::new(), dropped: None, held: 0, service: None, arrival: None }
    }

    /// As it is, and every packet waits in its queue, so that [`Lane::advance_telling`] tells of all departures.
    #[must_use]
    pub fn with_queue(mut self) -> Self {
        self.link.keep_queue();
        self
    }

    /// As it is, and packets that are dropped or lost stay until [`Lane::take_dropped`] takes them.
    #[must_use]
    pub fn with_dropped(mut self) -> Self {
        self.dropped = Some(Vec::new());
        self
    }

    /// A packet that was dropped or lost, of a lane that keeps them ([`Lane::with_dropped`]).
    pub fn take_dropped(&mut self) -> Option<T> {
        self.dropped.as_mut()?.pop()
    }

    /// A packet of `size` bytes arrives now. Call [`Lane::advance`] with this time before. Packets that are dropped for
    /// it, it may be one of them, are freed. Only a packet whose `ecn` says that its transport understands marks may
    /// get one, of which [`Lane::advance_telling`] tells.
    pub fn enqueue(&mut self, now: Timestamp, packet: T, size: u32, flow: u32, ecn: EcnCodepoint) {
        let place = self.packets.insert((packet, size));
        self.held += u64::from(size);
        let Ok(handle) = u32::try_from(place) else {
            self.drop_packet(place);
            return;
        };
        let wanted = self.link.enqueue(now, handle, size, flow, ecn);
        self.want(wanted);
        self.free_dropped();
    }

    /// When something happens next; `None` in an empty lane.
    pub fn next_event(&mut self) -> Option<Timestamp> {
        [self.service, self.arrival, self.timer()].into_iter().flatten().min()
    }

    fn timer(&mut self) -> Option<Timestamp> {
        Some(self.link.next_queue_timer()).filter(|timer| *timer != Timestamp::NEVER)
    }

    /// Everything up to `now` happens. `deliver` gets the packets that have crossed the link.
    pub fn advance(&mut self, now: Timestamp, mut deliver: impl FnMut(T)) {
        self.advance_telling(now, |_, _, _| {}, |_, packet| deliver(packet));
    }

    /// As [`Lane::advance`]; `leave` hears when which packets have left for the wire, and may change them, as their ECN
    /// field has changed, and `deliver` hears when they have crossed it.
    pub fn advance_telling(
        &mut self,
        now: Timestamp,
        mut leave: impl FnMut(Timestamp, &Departure, &mut T),
        mut deliver: impl FnMut(Timestamp, T),
    ) {
        while let Some(next) = self.next_event().filter(|next| *next <= now) {
            if self.arrival == Some(next) {
                let (handle, following) = self.link.arrive();
                self.arrival = following;
                if let Some(packet) = handle.and_then(|handle| self.free(handle as usize)) {
                    deliver(next, packet);
                }
            } else if self.service == Some(next) {
                self.service = None;
                let (departure, wanted) = self.link.finish_service(next);
                if let Some(departure) = departure {
                    if let Some((packet, _)) = self.packets.get_mut(departure.handle as usize) {
                        leave(next, &departure, packet);
                    }
                    if departure.lost {
                        self.drop_packet(departure.handle as usize);
                    }
                }
                self.want(wanted);
            } else {
                let wanted = self.link.on_queue_timer(next);
                self.want(wanted);
            }
            self.free_dropped();
        }
    }

    fn want(&mut self, wanted: Wanted) {
        self.service = wanted.service.or(self.service);
        self.arrival = wanted.arrival.or(self.arrival);
    }

    fn free(&mut self, place: usize) -> Option<T> {
        let (packet, size) = self.packets.try_remove(place)?;
        self.held -= u64::from(size);
        Some(packet)
    }

    fn free_dropped(&mut self) {
        while let Some((packet, _)) = self.link.take_dropped() {
            self.drop_packet(packet.handle as usize);
        }
    }

    fn drop_packet(&mut self, place: usize) {
        if let Some((packet, dropped)) = self.free(place).zip(self.dropped.as_mut()) {
            dropped.push(packet);
        }
    }

    /// Bytes of all packets that wait, are sent or are on the wire.
    pub fn held(&self) -> Bytes {
        Bytes::new(self.held)
    }

    /// How many they are.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// How many packets wait in the queue of a lane that has one ([`Lane::with_queue`]), and their bytes; the one that
    /// is being sent does not wait.
    pub fn waiting(&mut self) -> (usize, Bytes) {
        (self.link.waiting(), self.link.waiting_bytes())
    }

    /// What the link has counted.
    pub fn counters(&self) -> &LinkCounters {
        self.link.counters()
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::{QueueConfig, QueueLimit, codel, pie};
    use flowstart_core::time::Duration;
    use flowstart_core::units::Rate;
    use flowstart_sim::link::wire::{Jitter, LossModel};
    use proptest::prelude::*;

    use super::*;

    fn config(queue: QueueConfig, packets: u64) -> LinkConfig {
        let limit = QueueLimit { packets: Some(packets), ..QueueLimit::default() };
        LinkConfig { limit, queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::from_millis(20)) }
    }

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_nanos(micros * 1000)
    }

    /// Which packets arrive, for arrivals at these times, when the host looks after each of `looks`.
    fn crossed(config: &LinkConfig, arrivals: &[u64], looks: &[u64]) -> Vec<usize> {
        let mut lane = Lane::new(config, 7, 0);
        let mut out = Vec::new();
        let mut events: Vec<(u64, Option<usize>)> = arrivals.iter().copied().zip((0..).map(Some)).collect();
        events.extend(looks.iter().map(|look| (*look, None)));
        events.sort();
        for (micros, packet) in events {
            lane.advance(at(micros), |packet| out.push(packet));
            if let Some(packet) = packet {
                lane.enqueue(at(micros), packet, 1500, 0, EcnCodepoint::NotEct);
            }
        }
        lane.advance(at(1_000_000_000), |packet| out.push(packet));
        assert_eq!((lane.held(), lane.packets()), (Bytes::ZERO, 0), "nothing is left behind");
        out
    }

    #[test]
    fn packets_wait_for_each_other_and_the_buffer_is_finite() {
        let config = config(QueueConfig::defaults().remove(0), 2);
        let mut lane = Lane::new(&config, 1, 0).with_dropped();
        // One is sent, two wait, the fourth is dropped.
        for packet in 0..4 {
            lane.enqueue(at(0), packet, 1500, 0, EcnCodepoint::NotEct);
        }
        assert_eq!((lane.held(), lane.packets()), (Bytes::new(4500), 3));
        assert_eq!(lane.waiting(), (2, Bytes::new(3000)));
        assert_eq!((lane.take_dropped(), lane.take_dropped()), (Some(3), None));
        let mut arrived = Vec::new();
        // However late the host looks, it hears when they have crossed the link.
        for millis in [20, 22, 30] {
            lane.advance_telling(at(millis * 1000), |_, _, _| {}, |time, packet| arrived.push((time, packet)));
        }
        assert_eq!(arrived, [(at(21_000), 0), (at(22_000), 1), (at(23_000), 2)]);
        assert_eq!(lane.counters().dropped, 1);
        assert_eq!(lane.next_event(), None);
    }

    #[test]
    fn only_packets_that_understand_marks_are_marked() {
        let marking = QueueConfig::CoDel(codel::Config { ecn: true, ..codel::Config::default() });
        let mut lane = Lane::new(&config(marking, 1000), 1, 0);
        // A queue of 500 ms, of which every second packet understands marks.
        for packet in 0..500_u64 {
            let ecn = if packet % 2 == 0 { EcnCodepoint::Ect0 } else { EcnCodepoint::NotEct };
            lane.enqueue(at(0), (packet, false), 1500, 0, ecn);
        }
        let (mut marked, mut plain) = (0, 0);
        let mark = |_, departure: &Departure, packet: &mut (u64, bool)| packet.1 = departure.ecn == EcnCodepoint::Ce;
        lane.advance_telling(at(1_000_000), mark, |_, (packet, is_marked)| {
            assert!(!is_marked || packet % 2 == 0);
            *if is_marked { &mut marked } else { &mut plain } += 1;
        });
        assert!(marked > 0 && lane.counters().dropped > 0, "{marked} marked, {:?}", lane.counters());
        assert_eq!(marked + plain + lane.counters().dropped, 500);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_when_the_host_looks(
            gaps in prop::collection::vec(0_u64..2000, 1..200), looks in prop::collection::vec(0_u64..400_000, 0..100),
            which in 0..3,
        ) {
            let queue = match which {
                0 => QueueConfig::defaults().remove(0),
                1 => QueueConfig::CoDel(codel::Config::default()),
                _ => QueueConfig::Pie(pie::Config::default()),
            };
            let jitter = Jitter { amplitude: Duration::from_millis(2), step: Duration::from_millis(1) };
            let loss = LossModel::Independent { probability: 0.05 };
            let config = LinkConfig { jitter: Some(jitter), loss: Some(loss), ..config(queue, 20) };
            let arrivals: Vec<u64> = gaps.iter().scan(0, |time, gap| { *time += gap; Some(*time) }).collect();
            prop_assert_eq!(crossed(&config, &arrivals, &looks), crossed(&config, &arrivals, &[]));
        }
    }
}
