//! The times at which a growing volume reached its sizes, in bounded memory, with binary search.

/// Marks kept. At 2 % of growth between marks they cover eight octaves; the law looks back over less than four.
const MARKS: usize = 256;
/// Growth of the volume between two marks: 2^(1/32).
const STEP: f64 = 1.021_897_148_654_116_7;

/// The volume at a time, and how much waited then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// Bytes since the start.
    pub(super) volume: f64,
    /// Seconds.
    pub(super) time: f64,
    /// Bytes that waited in the queue, those of other flows included.
    pub(super) backlog: f64,
}

/// A volume and the marks that it has left behind.
#[derive(Clone, Debug)]
pub(super) struct VolumeLog {
    volume: f64,
    /// A ring; entry `first` is the oldest.
    marks: alloc::boxed::Box<[Mark; MARKS]>,
    first: usize,
    len: usize,
}

impl VolumeLog {
    pub(super) fn new() -> Self {
        Self { volume: 0.0, marks: alloc::boxed::Box::new([Mark::default(); MARKS]), first: 0, len: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.volume = 0.0;
        self.first = 0;
        self.len = 0;
    }

    /// Bytes so far.
    #[inline]
    pub(super) fn volume(&self) -> f64 {
        self.volume
    }

    #[inline]
    fn mark(&self, index: usize) -> &Mark {
        &self.marks[(self.first + index) % MARKS]
    }

    /// Adds a packet. Whether the volume has grown by a step since the last mark, so that there is a new one.
    #[inline]
    pub(super) fn add(&mut self, bytes: f64, time: f64, backlog: f64) -> bool {
        self.volume += bytes;
        if self.len > 0 && self.volume < self.mark(self.len - 1).volume * STEP {
            return false;
        }
        if self.len == MARKS {
            self.first = (self.first + 1) % MARKS;
            self.len -= 1;
        }
        self.marks[(self.first + self.len) % MARKS] = Mark { volume: self.volume, time, backlog };
        self.len += 1;
        true
    }

    /// The first mark at which the volume was at least this many bytes; `None` if it was not yet, or too long ago.
    pub(super) fn reached(&self, volume: f64) -> Option<&Mark> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = (low + high) / 2;
            if self.mark(middle).volume < volume - 0.5 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // Before the oldest remaining mark the volume is unknown.
        let forgotten = low == 0 && self.len == MARKS;
        (low < self.len && !forgotten).then(|| self.mark(low))
    }

    /// Bytes at a time: those of the last mark before it; 0 before the first.
    pub(super) fn at(&self, time: f64) -> f64 {
        self.mark_at(time).map_or(0.0, |mark| mark.volume)
    }

    /// The last mark before a time; `None` before the first.
    pub(super) fn mark_at(&self, time: f64) -> Option<&Mark> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = (low + high) / 2;
            if self.mark(middle).time <= time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low > 0).then(|| self.mark(low - 1))
    }

    /// The first mark; `None` if it is forgotten.
    pub(super) fn first(&self) -> Option<&Mark> {
        (self.len > 0 && self.len < MARKS).then(|| self.mark(0))
    }

    /// Takes out a part that grew at a constant rate, from `start` to `end` by `bytes`.
    pub(super) fn subtract_ramp(&mut self, start: f64, end: f64, bytes: f64) {
        let span = (end - start).max(1e-9);
        let part = |time: f64| bytes * ((time - start) / span).clamp(0.0, 1.0);
        let mut last = 0.0_f64;
        for index in 0..self.len {
            let at = (self.first + index) % MARKS;
            let mark = &mut self.marks[at];
            // Volumes never fall, whatever the ramp really looked like.
            mark.volume = (mark.volume - part(mark.time)).max(last);
            last = mark.volume;
        }
        self.volume = (self.volume - bytes).max(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_found_at_the_packet_that_reached_it() {
        let mut log = VolumeLog::new();
        for packet in 1..=10 {
            log.add(1500.0, f64::from(packet), 0.0);
        }
        // 4500 bytes are there with the third packet, 4501 with the fourth; 15001 are not there.
        assert_eq!(log.reached(4500.0).map(|mark| mark.time), Some(3.0));
        assert_eq!(log.reached(4501.0).map(|mark| mark.time), Some(4.0));
        assert!(log.reached(15_001.0).is_none());
    }

    #[test]
    fn memory_stays_bounded_and_the_last_octaves_are_found_within_a_step() {
        let mut log = VolumeLog::new();
        for packet in 1..=1_000_000 {
            log.add(1500.0, f64::from(packet), 0.0);
        }
        for part in [0.97, 0.5, 0.25, 0.06] {
            let expected = part * 1e6;
            let found = log.reached(1.5e9 * part).map(|mark| mark.time);
            assert!(found.is_some_and(|time| time >= expected && time < expected * STEP + 1.0), "{part}: {found:?}");
        }
        // 8 octaves of marks: a volume of 1/1000 is forgotten.
        assert!(log.reached(1.5e6).is_none());
    }

    #[test]
    fn a_ramp_taken_out_leaves_the_rest() {
        let mut log = VolumeLog::new();
        for packet in 1..=20 {
            // A ramp of 100 bytes a second, and from t = 10 s on 1000 bytes a second more.
            log.add(100.0 + if packet > 10 { 1000.0 } else { 0.0 }, f64::from(packet), 0.0);
        }
        log.subtract_ramp(0.0, 20.0, 2000.0);
        assert_eq!(log.volume(), 10_000.0);
        assert_eq!(log.reached(1000.0).map(|mark| mark.time), Some(11.0));
    }
}
