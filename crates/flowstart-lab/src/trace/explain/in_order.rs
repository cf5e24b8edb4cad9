//! Packets between two places, which they leave in the order of their arrival.

use std::collections::{BTreeMap, VecDeque};

/// Packets that may overtake a packet before it counts as lost.
const OVERTAKEN_MOST: usize = 64;

/// The packets of a flow between two places of its path, each with its data. Copies of the same bytes keep their order,
/// so events concern the oldest copy.
#[derive(Clone, Debug)]
pub(super) struct InOrder<T> {
    packets: VecDeque<(u64, T)>,
    /// Number of lost copies of each offset that are still in the list; they are its oldest.
    lost: BTreeMap<u64, usize>,
    /// Packets that have left since the first one should have.
    overtaken: usize,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), lost: BTreeMap::new(), overtaken: 0 }
    }
}

impl<T: Copy> InOrder<T> {
    /// A packet arrives.
    #[inline]
    pub(super) fn push(&mut self, offset: u64, known: T) {
        self.packets.push_back((offset, known));
    }

    /// The data of the packet that must leave next.
    #[inline]
    pub(super) fn first(&self) -> Option<T> {
        self.packets.front().map(|(_, known)| *known)
    }

    /// Packets between the two places, including lost ones that no later packet has passed.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// A packet leaves at the other end. Returns its data.
    #[inline]
    pub(super) fn pop(&mut self, offset: u64, mut gone: impl FnMut(T)) -> Option<T> {
        if let Some(&(first, known)) = self.packets.front()
            && first == offset
        {
            self.packets.pop_front();
            self.overtaken = 0;
            if !self.lost.is_empty() {
                self.skip_lost();
            }
            return Some(known);
        }
        self.overtake(offset, &mut gone)
    }

    /// A packet leaves before the first one.
    #[cold]
    fn overtake(&mut self, offset: u64, gone: &mut impl FnMut(T)) -> Option<T> {
        let lost = self.lost.get(&offset).copied().unwrap_or(0);
        let mut copies = self.packets.iter().enumerate().filter(|(_, packet)| packet.0 == offset);
        let place = copies.nth(lost)?.0;
        let (_, known) = self.packets.remove(place)?;
        self.overtaken += 1;
        // A packet that this many have overtaken never leaves. A packet of a real stack enters once for each piece that
        // it carries, and leaves once.
        if self.overtaken >= OVERTAKEN_MOST || place >= OVERTAKEN_MOST {
            self.overtaken = 0;
            self.packets.pop_front().into_iter().for_each(|(_, known)| gone(known));
            self.skip_lost();
        }
        Some(known)
    }

    /// Whether a copy of these bytes is in flight.
    pub(super) fn contains(&self, offset: u64) -> bool {
        let lost = self.lost.get(&offset).copied().unwrap_or(0);
        self.packets.iter().rev().filter(|packet| packet.0 == offset).nth(lost).is_some()
    }

    /// The newest copy of these bytes is lost, as on a wire. Returns its data.
    pub(super) fn take_newest(&mut self, offset: u64) -> Option<T> {
        let newest = self.packets.iter().rposition(|packet| packet.0 == offset)?;
        self.packets.remove(newest).map(|(_, known)| known)
    }

    /// A packet in flight is lost. It leaves the list after those before it.
    pub(super) fn lose(&mut self, offset: u64) {
        *self.lost.entry(offset).or_insert(0) += 1;
        self.skip_lost();
    }

    /// Removes lost packets from the beginning.
    fn skip_lost(&mut self) {
        while let Some((offset, _)) = self.packets.front()
            && let Some(count) = self.lost.get_mut(offset)
        {
            *count -= 1;
            if *count == 0 {
                self.lost.remove(offset);
            }
            self.packets.pop_front();
            self.overtaken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(packets: &mut InOrder<u32>, offset: u64) -> Option<u32> {
        packets.pop(offset, |_| {})
    }

    #[test]
    fn the_oldest_copy_leaves_first_and_is_lost_first() {
        let mut packets = InOrder::default();
        [(0, 1), (7, 2), (0, 3), (7, 4)].into_iter().for_each(|(offset, known)| packets.push(offset, known));
        packets.lose(7);
        // The copy 2 of offset 7 is lost, so copy 4 leaves with this offset.
        assert_eq!((pop(&mut packets, 0), packets.first()), (Some(1), Some(3)));
        assert_eq!((pop(&mut packets, 7), pop(&mut packets, 0)), (Some(4), Some(3)));
        assert_eq!((packets.len(), packets.lost.len(), pop(&mut packets, 0)), (0, 0, None));
    }

    #[test]
    fn what_is_overtaken_for_ever_is_gone() {
        let mut packets = InOrder::default();
        packets.push(u64::MAX, 9);
        let mut gone = Vec::new();
        for offset in 0..100 {
            packets.push(offset, 1);
            assert_eq!(packets.pop(offset, |known| gone.push(known)), Some(1));
        }
        assert_eq!((gone, packets.len()), (vec![9], 0));
    }
}
