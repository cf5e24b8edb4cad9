//! Common parts of disciplines that separate flows: queues whose packets lie in one slab, the hash that maps flows to
//! queues, the order in which queues send, and the longest queue.
//!
//! Reference: RFC 8290, sections 3 and 4 (hashing, deficit round robin with new and old flows); Shreedhar, Varghese,
//! "Efficient Fair Queuing Using Deficit Round-Robin", IEEE/ACM `ToN` 4 (3), 1996; `McKenney`, "Stochastic Fairness
//! Queueing", INFOCOM 1990 (the buckets by length that find the longest queue).
//!
//! Nothing here is allocated per packet: the slab and the lists grow to the largest number of waiting packets and keep
//! that size.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::iter;

use super::{QueueContext, QueuedPacket};
use crate::rng::{Substream, mix};
use crate::units::Bytes;

/// No packet, no queue.
const NONE: u32 = u32::MAX;

/// A packet in the slab, between two others of its queue.
#[derive(Clone, Copy, Debug)]
struct Node {
    packet: QueuedPacket,
    next: u32,
    previous: u32,
}

/// The ends of a queue.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
    packets: u32,
    bytes: u64,
}

/// Many first-in, first-out queues, known by their number.
#[derive(Clone, Debug)]
pub struct PacketQueues {
    slab: Vec<Node>,
    /// Free places of the slab, linked by `next`.
    free: u32,
    queues: Vec<Ends>,
    packets: usize,
    bytes: u64,
}

impl PacketQueues {
    /// This many empty queues.
    pub fn new(queues: u32) -> Self {
        let empty = Ends { first: NONE, last: NONE, packets: 0, bytes: 0 };
        Self { slab: Vec::new(), free: NONE, queues: vec![empty; queues as usize], packets: 0, bytes: 0 }
    }

    /// Puts a packet at the end of a queue.
    #[inline]
    pub fn push(&mut self, queue: u32, packet: QueuedPacket) {
        let ends = &mut self.queues[queue as usize];
        let node = Node { packet, next: NONE, previous: ends.last };
        let place = if self.free == NONE {
            self.slab.push(node);
            self.slab.len() as u32 - 1
        } else {
            let place = self.free;
            let free = &mut self.slab[place as usize];
            self.free = free.next;
            *free = node;
            place
        };
        match ends.last {
            NONE => ends.first = place,
            last => self.slab[last as usize].next = place,
        }
        ends.last = place;
        ends.packets += 1;
        ends.bytes += u64::from(packet.size);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    /// Takes the packet of a queue that has waited longest.
    #[inline]
    pub fn pop(&mut self, queue: u32) -> Option<QueuedPacket> {
        let ends = &mut self.queues[queue as usize];
        let place = ends.first;
        let node = *self.slab.get(place as usize)?;
        ends.first = node.next;
        match node.next {
            NONE => ends.last = NONE,
            next => self.slab[next as usize].previous = NONE,
        }
        self.release(queue, place, node.packet);
        Some(node.packet)
    }

    /// Takes the packet of a queue that arrived last.
    pub fn pop_last(&mut self, queue: u32) -> Option<QueuedPacket> {
        let ends = &mut self.queues[queue as usize];
        let place = ends.last;
        let node = *self.slab.get(place as usize)?;
        ends.last = node.previous;
        match node.previous {
            NONE => ends.first = NONE,
            previous => self.slab[previous as usize].next = NONE,
        }
        self.release(queue, place, node.packet);
        Some(node.packet)
    }

    #[inline]
    fn release(&mut self, queue: u32, place: u32, packet: QueuedPacket) {
        let ends = &mut self.queues[queue as usize];
        ends.packets -= 1;
        ends.bytes -= u64::from(packet.size);
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        self.slab[place as usize].next = self.free;
        self.free = place;
    }

    /// The packet of a queue that has waited longest.
    pub fn first(&self, queue: u32) -> Option<&QueuedPacket> {
        self.slab.get(self.queues[queue as usize].first as usize).map(|node| &node.packet)
    }

    /// How many queues there are.
    pub fn queues(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Packets in a queue.
    #[inline]
    pub fn len_of(&self, queue: u32) -> u32 {
        self.queues[queue as usize].packets
    }

    /// Bytes in a queue.
    #[inline]
    pub fn bytes_of(&self, queue: u32) -> Bytes {
        Bytes::new(self.queues[queue as usize].bytes)
    }

    /// The queue with the most bytes among `candidates`, which name every non-empty queue; in a tie, the queue with the
    /// smallest number.
    pub fn fattest(&self, candidates: impl Iterator<Item = u32>) -> Option<u32> {
        candidates.max_by_key(|queue| {
            let Ends { packets, bytes, .. } = self.queues[*queue as usize];
            (bytes, packets > 0, Reverse(*queue))
        })
    }

    /// Packets in all queues.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether nothing waits in any queue.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Bytes in all queues.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Allocated places for packets: the largest number that has waited.
    pub fn capacity(&self) -> usize {
        self.slab.capacity()
    }
}

/// Which queue a flow goes to.
#[derive(Clone, Debug, Default)]
pub struct FlowHash {
    /// Key of the hash, so nobody can foresee which flows collide; drawn with the first packet.
    perturbation: Option<u64>,
}

impl FlowHash {
    /// The queue of a flow, of this many.
    #[inline]
    pub fn queue_of(&mut self, flow: u32, queues: u32, context: &mut QueueContext<'_>) -> u32 {
        let hash = u64::from(self.hash_of(flow, context));
        ((hash * u64::from(queues)) >> 32) as u32
    }

    /// The hash of a flow.
    #[inline]
    pub fn hash_of(&mut self, flow: u32, context: &mut QueueContext<'_>) -> u32 {
        let perturbation = *self.perturbation.get_or_insert_with(|| context.rng.next_u64());
        (mix(perturbation ^ u64::from(flow)) >> 32) as u32
    }

    /// Uses another hash from now on. Waiting packets have to move.
    pub fn perturb(&mut self, rng: &mut Substream) {
        self.perturbation = Some(rng.next_u64());
    }
}

/// Where a queue is in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    New,
    Old,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    place: Place,
    next: u32,
    deficit: i64,
}

/// A list of queues in the order of their turns.
#[derive(Clone, Copy, Debug)]
struct Turns {
    first: u32,
    last: u32,
}

/// Deficit round robin over queues that were idle a moment ago (new) and the others (old), as RFC 8290, section 4.2
/// says.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum: i64,
    /// Each packet costs a quantum, whatever its size.
    by_packet: bool,
    turns: Vec<Turn>,
    new: Turns,
    old: Turns,
}

impl RoundRobin {
    /// No queue of this many has anything to send. A `quantum` of 0 is a turn of one packet.
    pub fn new(queues: u32, quantum: Bytes) -> Self {
        let nowhere = Turn { place: Place::Nowhere, next: NONE, deficit: 0 };
        let empty = Turns { first: NONE, last: NONE };
        Self {
            quantum: (quantum.get() as i64).max(1),
            by_packet: quantum == Bytes::ZERO,
            turns: vec![nowhere; queues as usize],
            new: empty,
            old: empty,
        }
    }

    /// A queue has something to send. If it had no turn it gets one before the old ones (`favoured`) or behind them.
    #[inline]
    pub fn activate(&mut self, queue: u32, favoured: bool) {
        if self.turns[queue as usize].place == Place::Nowhere {
            self.turns[queue as usize].deficit = self.quantum;
            self.append(queue, if favoured { Place::New } else { Place::Old });
        }
    }

    /// Whether a queue has a turn.
    #[inline]
    pub fn has_turn(&self, queue: u32) -> bool {
        self.turns[queue as usize].place != Place::Nowhere
    }

    /// The queues that have a turn, in no particular order.
    pub fn active(&self) -> impl Iterator<Item = u32> {
        let list = |turns: Turns| {
            let known = |queue: u32| (queue != NONE).then_some(queue);
            iter::successors(known(turns.first), move |queue| known(self.turns[*queue as usize].next))
        };
        list(self.new).chain(list(self.old))
    }

    /// Removes all turns.
    pub fn clear(&mut self) {
        self.turns.fill(Turn { place: Place::Nowhere, next: NONE, deficit: 0 });
        let empty = Turns { first: NONE, last: NONE };
        (self.new, self.old) = (empty, empty);
    }

    /// The queue whose turn it is.
    #[inline]
    pub fn whose(&mut self) -> Option<u32> {
        loop {
            let queue = if self.new.first == NONE { self.old.first } else { self.new.first };
            let turn = self.turns.get_mut(queue as usize)?;
            if turn.deficit > 0 {
                return Some(queue);
            }
            turn.deficit += self.quantum;
            self.remove_first();
            self.append(queue, Place::Old);
        }
    }

    /// The queue that [`RoundRobin::whose`] named has sent a packet of `size` bytes.
    #[inline]
    pub fn sent(&mut self, queue: u32, size: u32) {
        self.turns[queue as usize].deficit -= if self.by_packet { self.quantum } else { i64::from(size) };
    }

    /// The queue that [`RoundRobin::whose`] named had nothing to send. A new queue waits behind the old ones once more
    /// if `waits`, so it cannot be new again at once (RFC 8290, section 4.2). Any other loses its turn.
    pub fn emptied(&mut self, queue: u32, waits: bool) {
        let was_new = self.turns[queue as usize].place == Place::New;
        self.remove_first();
        if waits && was_new && self.old.first != NONE {
            self.append(queue, Place::Old);
        } else {
            self.turns[queue as usize].place = Place::Nowhere;
        }
    }

    fn remove_first(&mut self) {
        let list = if self.new.first == NONE { &mut self.old } else { &mut self.new };
        if let Some(turn) = self.turns.get(list.first as usize) {
            list.first = turn.next;
            if list.first == NONE {
                list.last = NONE;
            }
        }
    }

    fn append(&mut self, queue: u32, place: Place) {
        let list = if place == Place::New { &mut self.new } else { &mut self.old };
        let last = core::mem::replace(&mut list.last, queue);
        match last {
            NONE => list.first = queue,
            last => self.turns[last as usize].next = queue,
        }
        let turn = &mut self.turns[queue as usize];
        turn.place = place;
        turn.next = NONE;
    }
}

/// Queues by their length, so the longest is found at once (`McKenney` 1990).
#[derive(Clone, Debug)]
pub struct Lengths {
    /// For each length a queue of this length; they are linked in a ring.
    of_length: Vec<u32>,
    /// For each queue its length and its neighbours of the same length.
    queues: Vec<(u32, u32, u32)>,
    longest: u32,
}

impl Lengths {
    /// This many empty queues.
    pub fn new(queues: u32) -> Self {
        Self { of_length: vec![NONE], queues: vec![(0, NONE, NONE); queues as usize], longest: 0 }
    }

    /// All queues are empty now.
    pub fn clear(&mut self) {
        self.of_length.fill(NONE);
        self.queues.fill((0, NONE, NONE));
        self.longest = 0;
    }

    /// A queue of `queues` has one packet more or one less than before. No queue is longer than the largest total so
    /// far, so the lengths need more memory only when the packets do.
    #[inline]
    pub fn change(&mut self, queue: u32, queues: &PacketQueues) {
        let length = queues.len_of(queue);
        if self.of_length.len() <= queues.capacity() {
            self.of_length.resize(queues.capacity() + 1, NONE);
        }
        let (before, previous, next) = self.queues[queue as usize];
        if before > 0 {
            if next == queue {
                self.of_length[before as usize] = NONE;
            } else {
                self.queues[previous as usize].2 = next;
                self.queues[next as usize].1 = previous;
                self.of_length[before as usize] = next;
            }
        }
        self.queues[queue as usize] = (length, queue, queue);
        if length > 0 {
            match self.of_length[length as usize] {
                NONE => {}
                other => {
                    let last = self.queues[other as usize].1;
                    self.queues[queue as usize] = (length, last, other);
                    self.queues[last as usize].2 = queue;
                    self.queues[other as usize].1 = queue;
                }
            }
            self.of_length[length as usize] = queue;
        }
        self.longest = self.longest.max(length);
        while self.longest > 0 && self.of_length[self.longest as usize] == NONE {
            self.longest -= 1;
        }
    }

    /// A longest queue; in a tie, the queue that became longest last.
    pub fn longest(&self) -> Option<u32> {
        self.of_length.get(self.longest as usize).copied().filter(|queue| *queue != NONE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::shadow_unrelated, reason = "closures over the queues of the model")]

    use alloc::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::aqm::EcnCodepoint;
    use crate::time::Timestamp;

    fn packet(handle: u32, size: u32) -> QueuedPacket {
        QueuedPacket { handle, size, flow: 0, ecn: EcnCodepoint::NotEct, enqueued_at: Timestamp::ZERO }
    }

    #[test]
    fn old_queues_share_by_bytes_and_an_idle_one_goes_first() {
        let mut turns = RoundRobin::new(3, Bytes::new(1500));
        turns.activate(0, true);
        turns.activate(1, true);
        // Queue 0 sends 3 of 500 bytes, queue 1 one of 1500, and both are old then.
        let mut order = Vec::new();
        for _ in 0..8 {
            let queue = turns.whose().unwrap();
            turns.sent(queue, if queue == 0 { 500 } else { 1500 });
            order.push(queue);
        }
        assert_eq!(order, [0, 0, 0, 1, 0, 0, 0, 1]);
        // Queue 2, which was idle, goes before both, and has to wait behind them when it is empty. It is new no more
        // then: queue 1 has used its quantum and goes behind it.
        turns.activate(2, true);
        assert_eq!(turns.whose(), Some(2));
        turns.emptied(2, true);
        turns.activate(2, true);
        assert_eq!(turns.whose(), Some(0));
        turns.sent(0, 1500);
        assert_eq!(turns.whose(), Some(2));
        turns.emptied(2, true);
        assert_eq!(turns.whose(), Some(1));
    }

    #[test]
    fn deficits_as_in_the_tests_of_ns3() {
        // `fq-codel-queue-disc-test-suite.cc`, deficits: a quantum of 90 and packets of 120 bytes. Queue 0 sends one
        // and has -30. Both have two then: queue 0 gets 90 and becomes old, queue 1, which is new, sends (-30). Queue 1
        // becomes old with 60, queue 0 sends from 60 (-60), gets 90 (30) behind queue 1, which sends from 60 (-60) and
        // gets 90 (30) behind queue 0, which sends from 30 (-90). Nothing is left: queue 0 gets 90 twice, and both go.
        let mut turns = RoundRobin::new(2, Bytes::new(90));
        let mut waiting = [1, 0];
        turns.activate(0, true);
        let send = |turns: &mut RoundRobin, waiting: &mut [u32; 2]| loop {
            let queue = turns.whose()?;
            let of_queue = &mut waiting[queue as usize];
            if *of_queue > 0 {
                *of_queue -= 1;
                turns.sent(queue, 120);
                return Some((queue, [0, 1].map(|of| turns.turns[of].deficit)));
            }
            turns.emptied(queue, true);
        };
        assert_eq!(send(&mut turns, &mut waiting), Some((0, [-30, 0])));
        waiting = [2, 2];
        turns.activate(0, true);
        turns.activate(1, true);
        let sent = [(); 5].map(|()| send(&mut turns, &mut waiting));
        let expected = [(1, [60, -30]), (0, [-60, 60]), (1, [30, -60]), (0, [-90, 30])].map(Some);
        assert_eq!((&sent[..4], sent[4]), (&expected[..], None));
        assert_eq!(
            [0, 1].map(|of| (turns.turns[of].deficit, turns.turns[of].place)),
            [(90, Place::Nowhere), (30, Place::Nowhere)]
        );
    }

    #[test]
    fn queues_with_a_turn_are_known() {
        let mut turns = RoundRobin::new(4, Bytes::new(100));
        let active = |turns: &RoundRobin| {
            let mut queues: Vec<u32> = turns.active().collect();
            queues.sort_unstable();
            queues
        };
        assert!(active(&turns).is_empty());
        [3, 0].iter().for_each(|queue| turns.activate(*queue, true));
        turns.activate(1, false);
        assert_eq!(active(&turns), [0, 1, 3]);
        // Queue 3 has used its quantum, and waits behind queue 1.
        assert_eq!(turns.whose(), Some(3));
        turns.sent(3, 100);
        assert_eq!(turns.whose(), Some(0));
        assert_eq!(active(&turns), [0, 1, 3]);
        turns.clear();
        assert!(active(&turns).is_empty() && turns.whose().is_none());
    }

    #[test]
    fn without_a_quantum_queues_send_packet_by_packet() {
        let mut turns = RoundRobin::new(2, Bytes::ZERO);
        turns.activate(0, false);
        turns.activate(1, false);
        let order = [1500, 40, 9000, 40].map(|size| {
            let queue = turns.whose().unwrap();
            turns.sent(queue, size);
            queue
        });
        assert_eq!(order, [0, 1, 0, 1]);
        for _ in 0..2 {
            let queue = turns.whose().unwrap();
            turns.emptied(queue, false);
        }
        assert_eq!(turns.whose(), None);
    }

    #[test]
    fn flows_spread_over_all_queues() {
        let (mut rng, mut dropped) = (Substream::new(7, "queue", 0), Vec::new());
        let mut context = QueueContext { now: Timestamp::ZERO, in_service: None, rng: &mut rng, dropped: &mut dropped };
        let mut hash = FlowHash::default();
        let mut counts = [0; 16];
        for flow in 0..16_000 {
            counts[hash.queue_of(flow, 16, &mut context) as usize] += 1;
        }
        // 1000 each with a standard deviation of sqrt(1000 * 15 / 16) = 31: within 5 of them.
        assert!(counts.iter().all(|count| (845..=1155).contains(count)), "{counts:?}");
    }

    proptest! {
        /// The queues against as many double-ended queues of the standard library.
        #[test]
        fn queues_keep_their_packets_in_order(steps in prop::collection::vec((0..4u32, 0..4u8, 40..1500u32), 0..300)) {
            let mut queues = PacketQueues::new(4);
            let mut lengths = Lengths::new(4);
            let mut expected: Vec<VecDeque<QueuedPacket>> = vec![Default::default(); 4];
            let mut most = 0;
            for (index, (queue, action, size)) in steps.into_iter().enumerate() {
                let model = &mut expected[queue as usize];
                match action {
                    0 | 1 => {
                        queues.push(queue, packet(index as u32, size));
                        model.push_back(packet(index as u32, size));
                    }
                    2 => prop_assert_eq!(queues.pop(queue), model.pop_front()),
                    _ => prop_assert_eq!(queues.pop_last(queue), model.pop_back()),
                }
                if lengths.queues[queue as usize].0 != queues.len_of(queue) {
                    lengths.change(queue, &queues);
                }
                most = most.max(queues.len());
                let bytes = |model: &VecDeque<QueuedPacket>| -> u64 {
                    model.iter().map(|packet| u64::from(packet.size)).sum()
                };
                prop_assert_eq!(queues.len(), expected.iter().map(VecDeque::len).sum::<usize>());
                prop_assert_eq!(queues.bytes().get(), expected.iter().map(bytes).sum::<u64>());
                prop_assert_eq!(queues.bytes_of(queue).get(), bytes(&expected[queue as usize]));
                prop_assert_eq!(queues.first(queue), expected[queue as usize].front());
                let longest = expected.iter().map(VecDeque::len).max().unwrap();
                prop_assert_eq!(lengths.longest().map_or(0, |queue| expected[queue as usize].len()), longest);
                let fattest = queues.fattest(0..4).unwrap();
                prop_assert_eq!(queues.bytes_of(fattest).get(), expected.iter().map(bytes).max().unwrap());
                prop_assert!((0..fattest).all(|before| queues.bytes_of(before) < queues.bytes_of(fattest)));
                prop_assert_eq!(queues.fattest((0..4).rev()), Some(fattest));
            }
            prop_assert!(queues.slab.len() == most, "the slab has as many places as packets ever waited");
        }
    }
}
