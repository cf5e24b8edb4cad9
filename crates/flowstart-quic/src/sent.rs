//! The packets that a host has in flight, in the order in which they left.

use std::collections::VecDeque;

use flowstart_core::delivery_rate::Snapshot;
use flowstart_core::event::Position;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

/// A packet, or several that the host reports together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The host's number, which is unique only within a packet number space.
    pub(crate) number: u64,
    /// Bytes that were neither delivered nor lost yet.
    pub(crate) bytes: Bytes,
    /// State for the delivery rate, which includes the time of sending.
    pub(crate) snapshot: Snapshot,
}

/// What a host says about the place of a lost packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LostPlace {
    /// Its number.
    Number(u64),
    /// When the latest of them left.
    SentAt(Timestamp),
}

/// A packet as it is kept. It takes 32 bytes, because a server keeps one for each packet of a window, for many
/// connections.
#[derive(Clone, Copy, Debug)]
struct Kept {
    number: u64,
    send_time: Timestamp,
    tx_in_flight: Bytes,
    bytes: u32,
    /// Which [`Common`] it has: the index among all so far, modulo 2^32.
    common: u32,
}

const _: () = assert!(size_of::<Kept>() == 32, "a window of packets shall stay small");

/// State that packets have in common if they left between the same two acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Common {
    first_send_time: Timestamp,
    delivered_time: Timestamp,
    delivered: Bytes,
    lost: Bytes,
    app_limited: bool,
}

/// Packets by the order in which they left. A packet's position is its place in that order, beginning with 1, through
/// all packet number spaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    packets: VecDeque<Kept>,
    /// What the packets remember, in their order.
    commons: VecDeque<Common>,
    /// Commons that were removed from the front, modulo 2^32.
    commons_removed: u32,
    /// Packets that were removed from the front.
    removed: u64,
    /// From this position on, numbers grow: all packets belong to one packet number space. Those of the handshake lie
    /// before it.
    ordered_from: Position,
    /// Position of the packet that was found last.
    found: Position,
    /// The first packet stands for older ones as well, the oldest of which left then.
    joined_since: Option<Timestamp>,
}

impl SentLog {
    /// Position of the packet that left last; 0 before the first.
    pub(crate) fn last_position(&self) -> Position {
        self.removed + self.packets.len() as u64
    }

    /// Packets that are told apart.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// A packet left.
    pub(crate) fn push(&mut self, packet: Packet) {
        if self.packets.back().is_none_or(|last| packet.number <= last.number) {
            self.ordered_from = self.last_position() + 1;
        }
        let Packet { number, bytes, snapshot } = packet;
        let Snapshot { send_time, first_send_time, delivered_time, delivered, lost, tx_in_flight, app_limited } =
            snapshot;
        let common = Common { first_send_time, delivered_time, delivered, lost, app_limited };
        if self.commons.back() != Some(&common) {
            self.commons.push_back(common);
        }
        let common = self.commons_removed.wrapping_add(self.commons.len() as u32 - 1);
        let bytes = u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        self.packets.push_back(Kept { number, send_time, tx_in_flight, bytes, common });
    }

    /// A packet left that the host keeps itself; returns its position. Such a host pushes none.
    #[cfg(feature = "s2n-quic")]
    pub(crate) fn pass(&mut self) -> Position {
        self.removed += 1;
        self.last_position()
    }

    /// The packet as the host reported it.
    fn told(&self, packet: Kept) -> Option<Packet> {
        let Kept { number, send_time, tx_in_flight, bytes, common } = packet;
        let common = *self.commons.get(common.wrapping_sub(self.commons_removed) as usize)?;
        let Common { first_send_time, delivered_time, delivered, lost, app_limited } = common;
        let snapshot =
            Snapshot { send_time, first_send_time, delivered_time, delivered, lost, tx_in_flight, app_limited };
        Some(Packet { number, bytes: Bytes::new(bytes.into()), snapshot })
    }

    /// The packet that left at `time` with this number, if it is still in flight.
    pub(crate) fn find(&mut self, time: Timestamp, number: u64) -> Option<Position> {
        let matches = |p: &Kept| p.number == number && p.send_time == time && p.bytes > 0;
        // Most packets are acknowledged in the order in which they left.
        let next = self.found.saturating_sub(self.removed) as usize;
        if self.packets.get(next).is_some_and(matches) {
            self.found = self.position(next);
            return Some(self.found);
        }
        self.found = self.search(time, number)?;
        Some(self.found)
    }

    fn search(&self, time: Timestamp, number: u64) -> Option<Position> {
        let first = self.packets.partition_point(|packet| packet.send_time < time);
        let at_that_time = |packet: &&Kept| packet.send_time == time;
        let start = self.packets.get(first).filter(at_that_time)?.number;
        // Missing numbers were not reported, so the packet is at most this far behind the first one of its time.
        let furthest = first + usize::try_from(number.saturating_sub(start)).unwrap_or(usize::MAX - first);
        let mut index = furthest.min(self.packets.len() - 1);
        loop {
            let packet = &self.packets[index];
            if packet.number == number && packet.send_time == time && packet.bytes > 0 {
                return Some(self.position(index));
            }
            if index == first {
                break;
            }
            index -= 1;
        }
        // Packets of a handshake leave together in several number spaces.
        let mut rest = self.packets.iter().enumerate().skip(first).take_while(|(_, p)| p.send_time == time);
        let found = rest.find(|(_, packet)| packet.number == number && packet.bytes > 0)?;
        Some(self.position(found.0))
    }

    /// A packet in flight with this number; packets after the handshake take precedence.
    pub(crate) fn find_number(&self, number: u64) -> Option<Position> {
        let split = self.ordered_from.saturating_sub(self.removed + 1) as usize;
        let ordered = self.packets.range(split.min(self.packets.len())..);
        let offset = self.packets.len() - ordered.len();
        let index = offset + {
            // A binary search in the ordered part.
            let (mut low, mut high) = (0, ordered.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                if self.packets[offset + middle].number < number { low = middle + 1 } else { high = middle }
            }
            low
        };
        let in_flight = |packet: &Kept| packet.number == number && packet.bytes > 0;
        if self.packets.get(index).is_some_and(in_flight) {
            return Some(self.position(index));
        }
        let index = self.packets.iter().take(offset).position(in_flight)?;
        Some(self.position(index))
    }

    /// The packet that a host declares lost.
    pub(crate) fn find_lost(&self, place: LostPlace) -> Option<Position> {
        match place {
            LostPlace::Number(number) => self.find_number(number),
            LostPlace::SentAt(time) => self.at(time),
        }
    }

    /// Takes `bytes` of the packet out of flight; returns the packet as it was.
    pub(crate) fn settle(&mut self, position: Position, bytes: Bytes) -> Option<Packet> {
        let index = usize::try_from(position.checked_sub(self.removed + 1)?).ok()?;
        let packet = self.packets.get_mut(index)?;
        let before = *packet;
        packet.bytes = packet.bytes.saturating_sub(u32::try_from(bytes.get()).unwrap_or(u32::MAX));
        self.told(before)
    }

    /// The latest packet that left at `time` or before it and is still in flight.
    pub(crate) fn at(&self, time: Timestamp) -> Option<Position> {
        let end = self.packets.partition_point(|packet| packet.send_time <= time);
        // Packets from before the first one may have been joined to it.
        let end = if end == 0 && self.joined_since.is_some_and(|oldest| oldest <= time) { 1 } else { end };
        let index = (0..end).rev().find(|index| self.packets[*index].bytes > 0)?;
        Some(self.position(index))
    }

    /// Joins the oldest packets until at most `most` are left, but at least one. The first packet stands for those that
    /// were joined to it: their bytes are found by time ([`SentLog::at`]), not by number.
    pub(crate) fn join_oldest(&mut self, most: usize) {
        if self.packets.len() <= most.max(1) {
            return;
        }
        while self.packets.len() > most.max(1) {
            let Some(oldest) = self.packets.pop_front() else { break };
            self.removed += 1;
            if let (Some(first), true) = (self.packets.front_mut(), oldest.bytes > 0) {
                first.bytes = first.bytes.saturating_add(oldest.bytes);
                self.joined_since.get_or_insert(oldest.send_time);
            }
        }
        self.forget_commons();
    }

    /// Forgets settled packets and those sent before `horizon`. The host will not report the fate of the latter: they
    /// are probes of the path MTU, and packets whose number space was discarded.
    pub(crate) fn forget(&mut self, horizon: Timestamp) {
        while self.packets.front().is_some_and(|p| p.bytes == 0 || p.send_time < horizon) {
            self.packets.pop_front();
            self.removed += 1;
            self.joined_since = None;
        }
        self.forget_commons();
    }

    /// Forgets state that only removed packets needed.
    fn forget_commons(&mut self) {
        let first = self.packets.front().map_or(0, |packet| packet.common.wrapping_sub(self.commons_removed));
        // An empty log keeps what it has until a packet has left.
        self.commons.drain(..(first as usize).min(self.commons.len()));
        self.commons_removed = self.commons_removed.wrapping_add(first);
    }

    fn position(&self, index: usize) -> Position {
        self.removed + index as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_core::delivery_rate::DeliveryRate;
    use flowstart_core::time::Duration;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    fn log(packets: &[(u64, u64)]) -> SentLog {
        let mut log = SentLog::default();
        for &(millis, number) in packets {
            let snapshot = DeliveryRate::default().on_sent(at(millis), Bytes::new(100), Bytes::new(100));
            log.push(Packet { number, bytes: Bytes::new(100), snapshot });
        }
        log
    }

    #[test]
    fn packets_are_found_by_time_and_number_in_every_space() {
        // Initial 0, Handshake 0 and 1 leave together; then 1-RTT packets, of which 1 and 4 were not reported.
        let mut log = log(&[(0, 0), (0, 0), (0, 1), (40, 0), (40, 2), (40, 3), (41, 5)]);
        assert_eq!(log.find(at(0), 1), Some(3));
        assert_eq!(log.find(at(40), 0), Some(4));
        assert_eq!(log.find(at(40), 3), Some(6));
        assert_eq!(log.find(at(41), 5), Some(7));
        assert_eq!(log.find(at(40), 5), None);
        assert_eq!(log.find(at(39), 0), None);
        // A loss is reported by number alone: 0 and 2 are most likely packets of the space in use.
        assert_eq!((log.find_number(0), log.find_number(2), log.find_number(1)), (Some(4), Some(5), Some(3)));
        assert_eq!(log.find_number(4), None);
    }

    #[test]
    fn two_packets_with_one_number_and_time_are_settled_one_after_the_other() {
        let mut log = log(&[(0, 0), (0, 0), (5, 1)]);
        let first = log.find(at(0), 0).unwrap();
        assert!(log.settle(first, Bytes::new(100)).is_some());
        let second = log.find(at(0), 0).unwrap();
        assert_ne!(first, second);
        log.settle(second, Bytes::new(100));
        assert_eq!(log.find(at(0), 0), None);
        log.forget(Timestamp::ZERO);
        assert_eq!((log.find(at(5), 1), log.last_position()), (Some(3), 3));
    }

    #[test]
    fn what_the_host_never_tells_about_is_forgotten_in_time() {
        let mut log = log(&[(0, 0), (10, 1), (20, 2)]);
        log.settle(2, Bytes::new(100));
        log.forget(at(0));
        assert_eq!(log.find(at(0), 0), Some(1));
        log.forget(at(1));
        assert_eq!((log.find(at(0), 0), log.find_number(2)), (None, Some(3)));
        assert_eq!(log.settle(1, Bytes::new(100)).map(|p| p.number), None);
    }

    #[test]
    fn what_a_packet_remembers_comes_back_as_it_was() {
        let (mut log, mut rate) = (SentLog::default(), DeliveryRate::default());
        let mut snapshots = Vec::new();
        for number in 0..100u64 {
            let now = at(10 * number);
            let snapshot = rate.on_sent(now, Bytes::new(100), Bytes::new(100 * (number % 7 + 1)));
            log.push(Packet { number, bytes: Bytes::new(100), snapshot });
            snapshots.push(snapshot);
            // Every third packet is acknowledged five packets later, every eleventh is lost, and old ones are
            // forgotten.
            if let Some(old) = number.checked_sub(5) {
                let position = log.find(at(10 * old), old).unwrap();
                let packet = log.settle(position, Bytes::new(100)).unwrap();
                assert_eq!(
                    (packet.number, packet.bytes, packet.snapshot),
                    (old, Bytes::new(100), snapshots[old as usize])
                );
                if old.is_multiple_of(3) {
                    rate.on_delivered(now, &packet.snapshot, position, packet.bytes);
                } else if old.is_multiple_of(11) {
                    rate.on_lost(now, &packet.snapshot, (position, position + 1), packet.bytes);
                    rate.mark_app_limited(Bytes::new(100));
                }
                log.forget(Timestamp::ZERO);
                assert!(log.commons.len() <= log.packets.len() + 1, "{} for {}", log.commons.len(), log.packets.len());
            }
        }
    }

    #[test]
    fn the_oldest_packets_are_joined_and_found_by_time() {
        let mut log = log(&[(0, 0), (10, 1), (20, 2), (30, 3)]);
        log.settle(1, Bytes::new(100));
        log.join_oldest(2);
        // Packet 1 was delivered; packet 2 belongs to packet 3 now.
        assert_eq!((log.at(at(5)), log.at(at(10)), log.at(at(30))), (None, Some(3), Some(4)));
        assert_eq!(log.settle(3, Bytes::new(150)).map(|packet| packet.bytes), Some(Bytes::new(200)));
        assert_eq!((log.at(at(19)), log.last_position()), (Some(3), 4));
        // It is as young as the youngest of them, and gone with it.
        log.forget(at(20));
        assert_eq!(log.at(at(19)), Some(3));
        log.forget(at(21));
        assert_eq!((log.at(at(19)), log.at(at(30))), (None, Some(4)));
    }

    #[test]
    fn batches_are_found_by_time() {
        let mut log = log(&[(0, 0), (10, 0), (20, 0)]);
        assert_eq!((log.at(at(10)), log.at(at(19))), (Some(2), Some(2)));
        log.settle(2, Bytes::new(100));
        assert_eq!(log.at(at(19)), Some(1));
    }
}
