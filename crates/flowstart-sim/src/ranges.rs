//! Sets of integers as sorted, disjoint ranges: received packet numbers, received bytes.

/// Initial capacity of a list.
const SHORT_LIST: usize = 4;
/// Its next capacity: as many ranges as an acknowledgement of QUIC carries.
const LONG_LIST: usize = 64;

/// Makes room for another range. Reused lists grow in few steps, so a long run rarely allocates. Most lists never have
/// more than a few ranges, and take little memory.
#[inline]
pub(crate) fn make_room(list: &mut Vec<(u64, u64)>) {
    if list.len() == list.capacity() {
        list.reserve(if list.is_empty() { SHORT_LIST } else { LONG_LIST.saturating_sub(list.len()).max(1) });
    }
}

/// A set of `u64` as half-open ranges `[start, end)`, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<(u64, u64)>,
}

impl RangeSet {
    /// Adds `[start, end)`; returns how many numbers were new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // The common case: the numbers follow the largest known.
        if let Some(last) = self.ranges.last_mut() {
            if last.1 == start {
                last.1 = end;
                return end - start;
            }
            if last.1 < start {
                make_room(&mut self.ranges);
                self.ranges.push((start, end));
                return end - start;
            }
        } else {
            make_room(&mut self.ranges);
            self.ranges.push((start, end));
            return end - start;
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = self.ranges.partition_point(|range| range.0 <= end);
        if first == last {
            make_room(&mut self.ranges);
            self.ranges.insert(first, (start, end));
            return end - start;
        }
        let known: u64 =
            self.ranges[first..last].iter().map(|range| range.1.min(end).saturating_sub(range.0.max(start))).sum();
        let merged = (start.min(self.ranges[first].0), end.max(self.ranges[last - 1].1));
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        end - start - known
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// The end of the range that contains `start`, or `start` if none does.
    pub fn contiguous_end(&self, start: u64) -> u64 {
        match self.ranges.first() {
            Some(first) if first.0 <= start && start < first.1 => first.1,
            _ => self.containing(start).map_or(start, |range| range.1),
        }
    }

    /// The range that contains `value`.
    pub fn containing(&self, value: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|range| range.1 <= value);
        self.ranges.get(index).copied().filter(|range| range.0 <= value)
    }

    /// Forgets everything below `value`.
    pub fn forget_below(&mut self, value: u64) {
        let keep = self.ranges.partition_point(|range| range.1 <= value);
        self.ranges.drain(..keep);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(value);
        }
    }

    /// Keeps only the `count` largest ranges.
    pub fn keep_newest(&mut self, count: usize) {
        let surplus = self.ranges.len().saturating_sub(count);
        self.ranges.drain(..surplus);
    }
}

/// Adds the part of `ranges` that is not in `known` to `fresh`. All are half-open, and the highest comes first.
pub(crate) fn subtract(ranges: &[(u64, u64)], known: &[(u64, u64)], fresh: &mut Vec<(u64, u64)>) {
    let mut place = 0;
    for &(start, end) in ranges {
        let mut end = end;
        while place < known.len() && known[place].0 >= end {
            place += 1;
        }
        let mut at = place;
        while at < known.len() && known[at].1 > start {
            let (known_start, known_end) = known[at];
            if known_end < end {
                make_room(fresh);
                fresh.push((known_end, end));
            }
            end = end.min(known_start);
            if end <= start {
                break;
            }
            at += 1;
        }
        if start < end {
            make_room(fresh);
            fresh.push((start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::rng::Substream;

    use super::*;

    #[test]
    fn neighbours_merge() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(0, 2), 2);
        assert_eq!(set.insert(4, 6), 2);
        assert_eq!(set.insert(2, 4), 2);
        assert_eq!(set.ranges(), [(0, 6)]);
        assert_eq!(set.insert(3, 8), 2);
        assert_eq!(set.contiguous_end(0), 8);
        assert_eq!(set.contiguous_end(9), 9);
    }

    #[test]
    fn it_agrees_with_a_bitmap() {
        let mut rng = Substream::new(1, "ranges", 0);
        for _ in 0..200 {
            let mut set = RangeSet::default();
            let mut bitmap = [false; 64];
            for _ in 0..40 {
                let start = rng.next_u64() % 60;
                let end = (start + rng.next_u64() % 5).min(64);
                let fresh = (start..end).filter(|&i| !bitmap[i as usize]).count() as u64;
                (start..end).for_each(|i| bitmap[i as usize] = true);
                assert_eq!(set.insert(start, end), fresh);
                assert!(set.ranges().windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            for (i, known) in bitmap.iter().enumerate() {
                assert_eq!(set.containing(i as u64).is_some(), *known);
            }
        }
    }

    #[test]
    fn only_new_ranges_remain() {
        let mut fresh = Vec::new();
        subtract(&[(20, 30), (5, 15)], &[(22, 25), (0, 10)], &mut fresh);
        assert_eq!(fresh, [(25, 30), (20, 22), (10, 15)]);
    }

    #[test]
    fn subtraction_agrees_with_a_bitmap() {
        let mut rng = Substream::new(2, "ranges", 0);
        let mut random = || {
            let mut bitmap = [false; 40];
            bitmap.iter_mut().for_each(|bit| *bit = !rng.next_u64().is_multiple_of(3));
            let mut ranges = Vec::new();
            for i in (0..40).rev() {
                match ranges.last_mut() {
                    Some((start, _)) if bitmap[i as usize] && *start == i + 1 => *start = i,
                    _ if bitmap[i as usize] => ranges.push((i, i + 1)),
                    _ => {}
                }
            }
            (bitmap, ranges)
        };
        for _ in 0..500 {
            let ((first, a), (second, b)) = (random(), random());
            let mut fresh = Vec::new();
            subtract(&a, &b, &mut fresh);
            for i in 0..40u64 {
                let found = fresh.iter().filter(|(start, end)| (*start..*end).contains(&i)).count();
                assert_eq!(found, usize::from(first[i as usize] && !second[i as usize]), "{a:?} {b:?} {fresh:?}");
            }
        }
    }
}
