//! The packets of a recorded connection that are in flight, with what a sender keeps of each.

use std::collections::{BTreeMap, BTreeSet};

use flowstart_core::delivery_rate::Snapshot;
use flowstart_core::event::Position;
use flowstart_core::time::{Duration, Timestamp};

use crate::recording::event::Space;

/// Most packets that are told apart: a gigabit per second over 3 seconds. A file without acknowledgements has more.
const MOST: usize = 1 << 18;
/// Most lost packets that may still arrive.
const MOST_LOST: usize = 1 << 16;
/// Most gaps between acknowledged packets that are remembered.
const MOST_RANGES: usize = 1 << 10;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Its place among all packets that count.
    pub(super) position: Position,
    pub(super) bytes: u64,
    pub(super) snapshot: Snapshot,
    /// The peer has to acknowledge it.
    pub(super) solicits: bool,
    pub(super) probes_size: bool,
}

/// What is in flight.
#[derive(Debug, Default)]
pub(super) struct Flight {
    packets: BTreeMap<(Space, u64), Packet>,
    bytes: u64,
    /// Packets whose fate nobody recorded, dropped to bound the memory.
    forgotten: u64,
}

impl Flight {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that the file says nothing more of.
    pub(super) fn unresolved(&self) -> u64 {
        self.forgotten + self.packets.len() as u64
    }

    pub(super) fn add(&mut self, space: Space, number: u64, packet: Packet) -> Result<(), String> {
        if self.packets.contains_key(&(space, number)) {
            return Err(format!("packet_number {number} is in flight already; allowed is every number once"));
        }
        if self.packets.len() == MOST
            && let Some((_, oldest)) = self.packets.pop_first()
        {
            self.bytes -= oldest.bytes;
            self.forgotten += 1;
        }
        self.bytes += packet.bytes;
        self.packets.insert((space, number), packet);
        Ok(())
    }

    pub(super) fn take(&mut self, space: Space, number: u64) -> Option<Packet> {
        let packet = self.packets.remove(&(space, number))?;
        self.bytes -= packet.bytes;
        Some(packet)
    }

    /// The first packet of a range that is in flight.
    pub(super) fn take_first(&mut self, space: Space, (first, last): (u64, u64)) -> Option<(u64, Packet)> {
        let (&(_, number), _) = self.packets.range((space, first)..=(space, last)).next()?;
        Some((number, self.take(space, number)?))
    }

    /// The keys of the handshake are gone, so its packets are acknowledged no more.
    pub(super) fn discard_handshake(&mut self) {
        for space in [Space::Initial, Space::Handshake] {
            while self.take_first(space, (0, u64::MAX)).is_some() {}
        }
    }
}

/// Losses behind the last reduction of the window, of which some may turn out to be none.
#[derive(Debug, Default)]
pub(super) struct Doubtful {
    lost: BTreeSet<(Space, u64)>,
    /// More packets were lost than are remembered, so nobody can say that all have arrived.
    too_many: bool,
}

impl Doubtful {
    /// The window was reduced: earlier losses do not matter any more.
    pub(super) fn begin(&mut self) {
        self.lost.clear();
        self.too_many = false;
    }

    pub(super) fn add(&mut self, space: Space, number: u64) {
        self.too_many |= self.lost.len() == MOST_LOST;
        if !self.too_many {
            self.lost.insert((space, number));
        }
    }

    /// Packets of this range have arrived after all: how many, and whether none is left.
    pub(super) fn arrived(&mut self, space: Space, (first, last): (u64, u64)) -> (u64, bool) {
        let mut arrived = 0;
        while let Some(&lost) = self.lost.range((space, first)..=(space, last)).next() {
            self.lost.remove(&lost);
            arrived += 1;
        }
        (arrived, arrived > 0 && self.lost.is_empty() && !self.too_many)
    }
}

/// The packets that were acknowledged lately, by position: losses with none of them in between may establish persistent
/// congestion (RFC 9002, section 7.6.2).
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// First and last position of each range.
    ranges: BTreeMap<Position, Position>,
}

impl Delivered {
    pub(super) fn add(&mut self, position: Position) {
        let before = self.ranges.range(..=position).next_back().map(|(first, last)| (*first, *last));
        let first = match before {
            Some((_, last)) if position <= last => return,
            Some((first, last)) if last + 1 == position => first,
            _ => position,
        };
        let last = self.ranges.remove(&(position + 1)).unwrap_or(position);
        self.ranges.insert(first, last);
        if self.ranges.len() > MOST_RANGES {
            self.ranges.pop_first();
        }
    }

    fn any_in(&self, first: Position, last: Position) -> bool {
        self.ranges.range(..=last).next_back().is_some_and(|(_, end)| *end >= first)
    }

    /// Whether packets with these positions and times of sending, lost together, cover a period of at least `least`
    /// with nothing acknowledged in between.
    pub(super) fn persist(&self, mut lost: impl Iterator<Item = (Position, Timestamp)>, least: Duration) -> bool {
        let mut begin: Option<(Position, Timestamp)> = None;
        lost.any(|(position, sent)| {
            let (first, since) = *begin.get_or_insert((position, sent));
            if self.any_in(first, position) {
                begin = Some((position, sent));
                return false;
            }
            sent.since(since) >= least
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_period_counts_only_without_acknowledgements_in_it() {
        let mut delivered = Delivered::default();
        [1, 2, 5, 3].into_iter().for_each(|position| delivered.add(position));
        assert_eq!(delivered.ranges.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(), [(1, 3), (5, 5)]);
        let least = Duration::from_millis(100);
        assert!(delivered.persist([(6, at(0)), (7, at(50)), (9, at(100))].into_iter(), least));
        assert!(!delivered.persist([(4, at(0)), (6, at(100))].into_iter(), least));
        assert!(delivered.persist([(4, at(0)), (6, at(10)), (9, at(110))].into_iter(), least));
        assert!(!delivered.persist([(6, at(0)), (9, at(99))].into_iter(), least));
    }

    #[test]
    fn losses_are_spurious_when_all_have_arrived() {
        let mut doubtful = Doubtful::default();
        [3, 4, 9].into_iter().for_each(|number| doubtful.add(Space::Application, number));
        assert_eq!(doubtful.arrived(Space::Application, (0, 4)), (2, false));
        assert_eq!(doubtful.arrived(Space::Application, (0, 4)), (0, false));
        assert_eq!(doubtful.arrived(Space::Initial, (9, 9)), (0, false));
        assert_eq!(doubtful.arrived(Space::Application, (9, 9)), (1, true));
    }

    #[test]
    fn packets_without_a_fate_take_bounded_memory() {
        let mut flight = Flight::default();
        let snapshot = flowstart_core::delivery_rate::DeliveryRate::default().on_sent(
            Timestamp::ZERO,
            flowstart_core::units::Bytes::new(1),
            flowstart_core::units::Bytes::new(1),
        );
        let packet = Packet { position: 1, bytes: 10, snapshot, solicits: true, probes_size: false };
        for number in 0..MOST as u64 + 5 {
            flight.add(Space::Application, number, packet).unwrap();
        }
        assert_eq!((flight.bytes(), flight.unresolved()), (10 * MOST as u64, MOST as u64 + 5));
        assert!(flight.add(Space::Application, 10, packet).unwrap_err().contains("every number once"));
        assert_eq!(flight.take_first(Space::Application, (0, 5)).unwrap().0, 5);
        flight.add(Space::Initial, 0, packet).unwrap();
        flight.discard_handshake();
        assert!(flight.take(Space::Initial, 0).is_none());
    }
}
