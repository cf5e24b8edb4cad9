//! The packets that a host has in flight, in the order in which they left.

use std::collections::VecDeque;

use flowstart_core::delivery_rate::Snapshot;
use flowstart_core::event::Position;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

/// A packet, or several that the host tells of together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The host's number, which is unique only within a packet number space.
    pub(crate) number: u64,
    /// Bytes that were neither delivered nor lost yet.
    pub(crate) bytes: Bytes,
    /// What the delivery rate remembers, the time of sending among it.
    pub(crate) snapshot: Snapshot,
}

/// Packets by the order in which they left. A packet's position is its place in that order, beginning with 1, through all
/// packet number spaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    packets: VecDeque<Packet>,
    /// Packets that were removed from the front.
    removed: u64,
    /// From this position on, numbers grow: all of them belong to one packet number space. Before it lies a handshake.
    ordered_from: Position,
    /// Position of the packet that was found last.
    found: Position,
}

impl SentLog {
    /// Position of the packet that left last; 0 before the first.
    pub(crate) fn last_position(&self) -> Position {
        self.removed + self.packets.len() as u64
    }

    /// A packet left.
    pub(crate) fn push(&mut self, packet: Packet) {
        if self.packets.back().is_none_or(|last| packet.number <= last.number) {
            self.ordered_from = self.last_position() + 1;
        }
        self.packets.push_back(packet);
    }

    /// The packet that left at `time` with this number, if it is still in flight.
    pub(crate) fn find(&mut self, time: Timestamp, number: u64) -> Option<Position> {
        let matches = |p: &Packet| p.number == number && p.snapshot.send_time == time && p.bytes > Bytes::ZERO;
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
        let first = self.packets.partition_point(|packet| packet.snapshot.send_time < time);
        let at_that_time = |packet: &&Packet| packet.snapshot.send_time == time;
        let start = self.packets.get(first).filter(at_that_time)?.number;
        // Numbers that are missing were not told of, so the packet is at most this far behind the first one of its time.
        let furthest = first + usize::try_from(number.saturating_sub(start)).unwrap_or(usize::MAX - first);
        let mut index = furthest.min(self.packets.len() - 1);
        loop {
            let packet = &self.packets[index];
            if packet.number == number && packet.snapshot.send_time == time && packet.bytes > Bytes::ZERO {
                return Some(self.position(index));
            }
            if index == first {
                break;
            }
            index -= 1;
        }
        // Packets of a handshake leave together in several number spaces.
        let mut rest = self.packets.iter().enumerate().skip(first).take_while(|(_, p)| p.snapshot.send_time == time);
        let found = rest.find(|(_, packet)| packet.number == number && packet.bytes > Bytes::ZERO)?;
        Some(self.position(found.0))
    }

    /// A packet in flight with this number, one after the handshake first.
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
        let in_flight = |packet: &Packet| packet.number == number && packet.bytes > Bytes::ZERO;
        if self.packets.get(index).is_some_and(in_flight) {
            return Some(self.position(index));
        }
        let index = self.packets.iter().take(offset).position(in_flight)?;
        Some(self.position(index))
    }

    /// Takes `bytes` of the packet out of flight; returns the packet as it was.
    pub(crate) fn settle(&mut self, position: Position, bytes: Bytes) -> Option<Packet> {
        let index = usize::try_from(position.checked_sub(self.removed + 1)?).ok()?;
        let packet = self.packets.get_mut(index)?;
        let before = *packet;
        packet.bytes = packet.bytes.saturating_sub(bytes);
        Some(before)
    }

    /// The latest packet that left at `time` or before it and is still in flight.
    pub(crate) fn at(&self, time: Timestamp) -> Option<Position> {
        let end = self.packets.partition_point(|packet| packet.snapshot.send_time <= time);
        let index = (0..end).rev().find(|index| self.packets[*index].bytes > Bytes::ZERO)?;
        Some(self.position(index))
    }

    /// Forgets packets that are settled, and those sent before `horizon`, of whose fate the host will not tell: probes of
    /// the path MTU, and packets whose number space was discarded.
    pub(crate) fn forget(&mut self, horizon: Timestamp) {
        while self.packets.front().is_some_and(|p| p.bytes == Bytes::ZERO || p.snapshot.send_time < horizon) {
            self.packets.pop_front();
            self.removed += 1;
        }
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
        // Initial 0, Handshake 0 and 1 leave together; then 1-RTT packets, of which 1 and 4 were not told of.
        let mut log = log(&[(0, 0), (0, 0), (0, 1), (40, 0), (40, 2), (40, 3), (41, 5)]);
        assert_eq!(log.find(at(0), 1), Some(3));
        assert_eq!(log.find(at(40), 0), Some(4));
        assert_eq!(log.find(at(40), 3), Some(6));
        assert_eq!(log.find(at(41), 5), Some(7));
        assert_eq!(log.find(at(40), 5), None);
        assert_eq!(log.find(at(39), 0), None);
        // A loss is told by number alone: 0 and 2 are most likely packets of the space in use.
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
    fn batches_are_found_by_time() {
        let mut log = log(&[(0, 0), (10, 0), (20, 0)]);
        assert_eq!((log.at(at(10)), log.at(at(19))), (Some(2), Some(2)));
        log.settle(2, Bytes::new(100));
        assert_eq!(log.at(at(19)), Some(1));
    }
}
