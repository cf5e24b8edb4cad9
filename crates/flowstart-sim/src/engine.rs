//! The only clock of a simulation, and the queue of what happens next.
//!
//! Every timer of the simulation is a slot that is armed at most once, so re-arming moves an entry instead of leaving a
//! dead one behind, and the queue never holds more entries than there are timers. Events at the same instant happen in
//! the order in which they were scheduled.

use flowstart_core::time::Timestamp;

/// A timer of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// An entry of the heap: time, order of scheduling, slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    order: u64,
    slot: u32,
}

impl Entry {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        (self.time, self.order) < (other.time, other.order)
    }
}

/// Marks a slot that is not armed.
const IDLE: u32 = u32::MAX;
/// Children per node of the heap: a wide heap is shallower, and its children share a cache line.
const WIDTH: usize = 4;

/// The clock and the pending events. `T` says whom a slot belongs to.
#[derive(Clone, Debug)]
pub struct Engine<T> {
    now: Timestamp,
    next_order: u64,
    heap: Vec<Entry>,
    /// Place of each slot in the heap, or [`IDLE`].
    places: Vec<u32>,
    owners: Vec<T>,
}

impl<T: Copy> Engine<T> {
    /// A clock at the origin with nothing pending.
    pub fn new() -> Self {
        Self { now: Timestamp::ZERO, next_order: 0, heap: Vec::new(), places: Vec::new(), owners: Vec::new() }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// A new timer that belongs to `owner`, not armed.
    pub fn slot(&mut self, owner: T) -> Slot {
        self.places.push(IDLE);
        self.owners.push(owner);
        Slot((self.places.len() - 1) as u32)
    }

    /// Arms the timer for `time`, or at once if that is past; an armed timer moves. [`Timestamp::NEVER`] disarms.
    #[inline]
    pub fn schedule(&mut self, slot: Slot, time: Timestamp) {
        if time == Timestamp::NEVER {
            return self.cancel(slot);
        }
        let entry = Entry { time: time.max(self.now).as_nanos(), order: self.next_order, slot: slot.0 };
        self.next_order += 1;
        match self.places[slot.0 as usize] {
            IDLE => {
                self.heap.push(entry);
                self.sift_up(self.heap.len() - 1, entry);
            }
            place => self.replace(place as usize, entry),
        }
    }

    /// When the timer fires; [`Timestamp::NEVER`] if it is not armed.
    #[inline]
    pub fn scheduled(&self, slot: Slot) -> Timestamp {
        match self.places[slot.0 as usize] {
            IDLE => Timestamp::NEVER,
            place => Timestamp::from_nanos(self.heap[place as usize].time),
        }
    }

    /// Disarms the timer.
    pub fn cancel(&mut self, slot: Slot) {
        let place = self.places[slot.0 as usize];
        if place != IDLE {
            self.remove(place as usize);
        }
    }

    /// Moves the clock to the next event not later than `limit` and returns whose it is.
    #[inline]
    pub fn next(&mut self, limit: Timestamp) -> Option<T> {
        let first = *self.heap.first()?;
        if first.time > limit.as_nanos() {
            return None;
        }
        self.now = Timestamp::from_nanos(first.time);
        self.remove(0);
        Some(self.owners[first.slot as usize])
    }

    /// Moves the clock to `time` when no event is pending before it.
    pub fn advance(&mut self, time: Timestamp) {
        debug_assert!(self.heap.first().is_none_or(|first| first.time >= time.as_nanos()));
        self.now = self.now.max(time);
    }

    /// Number of armed timers.
    pub fn pending(&self) -> usize {
        self.heap.len()
    }

    fn remove(&mut self, place: usize) {
        self.places[self.heap[place].slot as usize] = IDLE;
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.replace(place, last);
        }
    }

    /// Puts `entry` where `place` is and restores the order.
    fn replace(&mut self, place: usize, entry: Entry) {
        if place > 0 && entry.before(&self.heap[(place - 1) / WIDTH]) {
            self.sift_up(place, entry);
        } else {
            self.sift_down(place, entry);
        }
    }

    fn sift_up(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / WIDTH;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sift_down(&mut self, mut place: usize, entry: Entry) {
        loop {
            let first = place * WIDTH + 1;
            let Some(children) = self.heap.get(first..(first + WIDTH).min(self.heap.len())) else { break };
            let mut smallest = None;
            let mut bound = &entry;
            for (index, child) in children.iter().enumerate() {
                if child.before(bound) {
                    smallest = Some(index);
                    bound = child;
                }
            }
            let Some(index) = smallest else { break };
            self.put(place, self.heap[first + index]);
            place = first + index;
        }
        self.put(place, entry);
    }

    #[inline]
    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.slot as usize] = place as u32;
    }
}

impl<T: Copy> Default for Engine<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::rng::Substream;

    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn events_happen_by_time_and_then_in_the_order_of_scheduling() {
        let mut engine = Engine::new();
        let slots: Vec<Slot> = (0..4).map(|owner| engine.slot(owner)).collect();
        engine.schedule(slots[0], at(20));
        engine.schedule(slots[1], at(10));
        engine.schedule(slots[2], at(20));
        engine.schedule(slots[3], at(5));
        engine.schedule(slots[3], at(20));
        let order: Vec<i32> = std::iter::from_fn(|| engine.next(at(100))).collect();
        assert_eq!(order, [1, 0, 2, 3]);
    }

    #[test]
    fn the_clock_stops_at_the_limit() {
        let mut engine = Engine::new();
        let slot = engine.slot(());
        engine.schedule(slot, at(50));
        assert_eq!(engine.next(at(49)), None);
        assert_eq!(engine.now(), at(0));
        assert_eq!(engine.next(at(50)), Some(()));
        assert_eq!(engine.now(), at(50));
    }

    #[test]
    fn random_operations_agree_with_a_sorted_list() {
        let mut rng = Substream::new(3, "engine", 0);
        let mut engine = Engine::new();
        let slots: Vec<Slot> = (0..50usize).map(|owner| engine.slot(owner)).collect();
        let mut expected: Vec<Option<(u64, u64)>> = vec![None; 50];
        let mut order = 0;
        for _ in 0..20_000 {
            let which = (rng.next_u64() % 50) as usize;
            match rng.next_u64() % 4 {
                0 => {
                    engine.cancel(slots[which]);
                    expected[which] = None;
                }
                1 => {
                    let first = (0..50).filter_map(|i| expected[i].map(|key| (key, i))).min();
                    assert_eq!(engine.next(Timestamp::NEVER), first.map(|(_, i)| i));
                    if let Some(((time, _), i)) = first {
                        assert_eq!(engine.now(), at(time));
                        expected[i] = None;
                    }
                }
                _ => {
                    let time = engine.now().as_nanos() + rng.next_u64() % 100;
                    engine.schedule(slots[which], at(time));
                    expected[which] = Some((time, order));
                    order += 1;
                }
            }
            assert_eq!(engine.pending(), expected.iter().flatten().count());
        }
    }
}
