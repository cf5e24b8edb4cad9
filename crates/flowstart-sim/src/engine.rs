//! The only clock of a simulation, and the queue of its events.
//!
//! Every timer of the simulation is a slot that is armed at most once. Re-arming moves an entry instead of leaving a
//! dead one behind, so the queue never holds more entries than there are timers. Events at the same instant happen in
//! the order in which they were scheduled.

use flowstart_core::time::Timestamp;

/// A timer of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// An entry of the heap: time, order of scheduling and slot, from the highest bits to the lowest, so that one
/// comparison of integers orders entries and four of them fill a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

/// Bits of an entry that name its slot. The 40 bits above them count scheduled entries, more than any run can have.
const SLOT_BITS: u32 = 24;

impl Entry {
    #[inline]
    fn new(time: Timestamp, order: u64, slot: Slot) -> Self {
        Self(u128::from(time.as_nanos()) << 64 | u128::from(order << SLOT_BITS | u64::from(slot.0)))
    }

    #[inline]
    fn time(self) -> Timestamp {
        Timestamp::from_nanos((self.0 >> 64) as u64)
    }

    #[inline]
    fn slot(self) -> usize {
        self.0 as usize & ((1 << SLOT_BITS) - 1)
    }
}

/// Marks a slot that is not armed.
const IDLE: u32 = u32::MAX;
/// Children per node of the heap: a wide heap is shallower, and its children share a cache line.
const WIDTH: usize = 4;

/// The clock and the pending events. `T` is the owner of a slot.
#[derive(Clone, Debug)]
pub struct Engine<T> {
    now: Timestamp,
    next_order: u64,
    heap: Vec<Entry>,
    /// The root has happened and its entry is stale. The first entry that an event schedules, mostly its own timer
    /// again, takes this place: one walk through the heap instead of two.
    vacant: bool,
    /// Place of each slot in the heap, or [`IDLE`].
    places: Vec<u32>,
    owners: Vec<T>,
}

impl<T: Copy> Engine<T> {
    /// A clock at the origin with nothing pending.
    pub fn new() -> Self {
        Self {
            now: Timestamp::ZERO,
            next_order: 0,
            heap: Vec::new(),
            vacant: false,
            places: Vec::new(),
            owners: Vec::new(),
        }
    }

    /// The current time.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// A new timer of `owner`, not armed.
    pub fn slot(&mut self, owner: T) -> Slot {
        assert!(self.places.len() < 1 << SLOT_BITS, "too many timers");
        self.places.push(IDLE);
        self.owners.push(owner);
        Slot((self.places.len() - 1) as u32)
    }

    /// Arms the timer for `time`, or for now if that is past. An armed timer moves. [`Timestamp::NEVER`] disarms it.
    #[inline]
    pub fn schedule(&mut self, slot: Slot, time: Timestamp) {
        if time == Timestamp::NEVER {
            return self.cancel(slot);
        }
        let entry = Entry::new(time.max(self.now), self.next_order, slot);
        self.next_order += 1;
        match self.places[slot.0 as usize] {
            IDLE if self.vacant => {
                self.vacant = false;
                self.sift_down(0, entry);
            }
            IDLE => {
                self.heap.push(entry);
                self.sift_up(self.heap.len() - 1, entry);
            }
            place => self.replace(place as usize, entry),
        }
    }

    /// The time when the timer fires; [`Timestamp::NEVER`] if it is not armed.
    #[inline]
    pub fn scheduled(&self, slot: Slot) -> Timestamp {
        match self.places[slot.0 as usize] {
            IDLE => Timestamp::NEVER,
            place => self.heap[place as usize].time(),
        }
    }

    /// Disarms the timer.
    pub fn cancel(&mut self, slot: Slot) {
        let place = self.places[slot.0 as usize];
        if place != IDLE {
            self.remove(place as usize);
        }
    }

    /// Moves the clock to the next event not later than `limit` and returns its owner.
    #[inline]
    pub fn next(&mut self, limit: Timestamp) -> Option<T> {
        self.fill_root();
        let first = *self.heap.first()?;
        if first.time() > limit {
            return None;
        }
        self.now = first.time();
        self.places[first.slot()] = IDLE;
        self.vacant = true;
        Some(self.owners[first.slot()])
    }

    /// Moves the clock to `time` when no event is pending before it.
    pub fn advance(&mut self, time: Timestamp) {
        self.fill_root();
        debug_assert!(self.heap.first().is_none_or(|first| first.time() >= time));
        self.now = self.now.max(time);
    }

    /// Number of armed timers.
    pub fn pending(&self) -> usize {
        self.heap.len() - usize::from(self.vacant)
    }

    /// Moves the last entry into an unused root.
    #[inline]
    fn fill_root(&mut self) {
        if self.vacant {
            self.vacant = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sift_down(0, last);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.places[self.heap[place].slot()] = IDLE;
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.replace(place, last);
        }
    }

    /// Puts `entry` at `place` and restores the order.
    fn replace(&mut self, place: usize, entry: Entry) {
        if place > 0 && entry < self.heap[(place - 1) / WIDTH] {
            self.sift_up(place, entry);
        } else {
            self.sift_down(place, entry);
        }
    }

    fn sift_up(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / WIDTH;
            if entry > self.heap[parent] {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sift_down(&mut self, mut place: usize, entry: Entry) {
        while let Some(child) = self.smallest_child(place)
            && self.heap[child] < entry
        {
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    #[inline]
    fn smallest_child(&self, place: usize) -> Option<usize> {
        let first = place * WIDTH + 1;
        let children = self.heap.get(first..)?;
        let index = match children.first_chunk::<WIDTH>() {
            // The smallest child is unpredictable, so the usual case has no branches.
            Some(children) => {
                let left = usize::from(children[1] < children[0]);
                let right = 2 + usize::from(children[3] < children[2]);
                std::hint::select_unpredictable(children[right] < children[left], right, left)
            }
            None => children.iter().enumerate().min_by_key(|(_, child)| **child)?.0,
        };
        Some(first + index)
    }

    #[inline]
    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.slot()] = place as u32;
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
