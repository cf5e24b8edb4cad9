//! Series of any length in bounded memory, reduced as they grow.
//!
//! Each begins with a resolution of a microsecond, or of every point, and halves it whenever it is full. A series that
//! is never full loses nothing.

use flowstart_core::time::Timestamp;

/// Binary logarithm of the nanoseconds of a first bin.
const FIRST_SHIFT: u32 = 10;

/// A point: nanoseconds of simulated time, and the value.
type Point = (u64, f64);

fn bin_of(time: Timestamp, shift: u32) -> u64 {
    time.as_nanos() >> shift
}

/// A line of steps. Each bin of time has its first, lowest, highest and last point, so no peak disappears.
#[derive(Clone, Debug)]
pub struct Line {
    bins: Vec<Bin>,
    most: usize,
    shift: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    first: Point,
    lowest: Point,
    highest: Point,
    last: Point,
}

impl Bin {
    fn number(&self, shift: u32) -> u64 {
        self.first.0 >> shift
    }

    /// Merges this bin with a later one.
    fn with(&self, later: &Self) -> Self {
        Self {
            first: self.first,
            lowest: if later.lowest.1 < self.lowest.1 { later.lowest } else { self.lowest },
            highest: if later.highest.1 > self.highest.1 { later.highest } else { self.highest },
            last: later.last,
        }
    }
}

impl Line {
    /// A line of at most `most` bins.
    pub fn new(most: usize) -> Self {
        Self { bins: Vec::new(), most: most.max(2), shift: FIRST_SHIFT }
    }

    /// The value from now on. Times must not decrease.
    #[inline]
    pub fn push(&mut self, time: Timestamp, value: f64) {
        let point = (time.as_nanos(), value);
        if let Some(bin) = self.bins.last_mut() {
            if bin.last.1 == value {
                return;
            }
            if bin.number(self.shift) == bin_of(time, self.shift) {
                bin.last = point;
                if value < bin.lowest.1 {
                    bin.lowest = point;
                } else if value > bin.highest.1 {
                    bin.highest = point;
                }
                return;
            }
        }
        self.open(point);
    }

    fn open(&mut self, point: Point) {
        self.bins.push(Bin { first: point, lowest: point, highest: point, last: point });
        while self.bins.len() > self.most {
            self.shift += 1;
            let shift = self.shift;
            merge(&mut self.bins, |bin| bin.number(shift), Bin::with);
        }
    }

    /// The remaining points, in order, without repetitions.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, f64)> {
        let points = |bin: &Bin| {
            let mut middle = [bin.lowest, bin.highest];
            middle.sort_by_key(|point| point.0);
            [bin.first, middle[0], middle[1], bin.last]
        };
        let mut before = None;
        self.bins.iter().flat_map(points).filter_map(move |point| {
            let again = before.replace(point) == Some(point);
            (!again).then(|| (Timestamp::from_nanos(point.0), point.1))
        })
    }
}

/// Passing bytes, in bins of time: the time of a bin's latest bytes, and their sum.
#[derive(Clone, Debug)]
pub struct Volume {
    bins: Vec<(u64, u64)>,
    most: usize,
    shift: u32,
    /// Number of passages.
    count: u64,
}

impl Volume {
    /// A volume of at most `most` bins.
    pub fn new(most: usize) -> Self {
        Self { bins: Vec::new(), most: most.max(2), shift: FIRST_SHIFT, count: 0 }
    }

    /// This many bytes pass. Times must not decrease.
    #[inline]
    pub fn push(&mut self, time: Timestamp, bytes: u64) {
        let nanos = time.as_nanos();
        self.count += 1;
        match self.bins.last_mut() {
            Some((latest, sum)) if *latest >> self.shift == nanos >> self.shift => {
                *latest = nanos;
                *sum += bytes;
            }
            _ => {
                self.bins.push((nanos, bytes));
                while self.bins.len() > self.most {
                    self.shift += 1;
                    let shift = self.shift;
                    merge(&mut self.bins, |bin| bin.0 >> shift, |a, b| (b.0, a.1 + b.1));
                }
            }
        }
    }

    /// Each bin with the time of its latest bytes.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, f64)> {
        self.bins.iter().map(|(nanos, bytes)| (Timestamp::from_nanos(*nanos), *bytes as f64))
    }

    /// Nanoseconds of a bin; 0 if each has one packet, so that nothing is lost.
    pub fn resolution(&self) -> u64 {
        if self.count == self.bins.len() as u64 { 0 } else { 1 << self.shift }
    }
}

/// Merges neighbours with the same number.
fn merge<T: Copy>(bins: &mut Vec<T>, number: impl Fn(&T) -> u64, join: impl Fn(&T, &T) -> T) {
    let mut kept = 0;
    for place in 1..bins.len() {
        let bin = bins[place];
        if number(&bins[kept]) == number(&bin) {
            bins[kept] = join(&bins[kept], &bin);
        } else {
            kept += 1;
            bins[kept] = bin;
        }
    }
    bins.truncate(kept + 1);
}

/// Marks: first every mark, then every second, every fourth; always including the latest.
#[derive(Clone, Debug)]
pub struct Marks {
    kept: Vec<Point>,
    latest: Option<Point>,
    most: usize,
    /// How many there were.
    count: u64,
    /// Marks whose number is a multiple of this power of two are kept.
    shift: u32,
}

impl Marks {
    /// At most `most` marks.
    pub fn new(most: usize) -> Self {
        Self { kept: Vec::new(), latest: None, most: most.max(2), count: 0, shift: 0 }
    }

    /// Adds a mark. Times must not decrease.
    #[inline]
    pub fn push(&mut self, time: Timestamp, value: f64) {
        let point = (time.as_nanos(), value);
        self.latest = Some(point);
        if self.count & ((1 << self.shift) - 1) == 0 {
            self.keep(point);
        }
        self.count += 1;
    }

    fn keep(&mut self, point: Point) {
        self.kept.push(point);
        if self.kept.len() > self.most {
            self.shift += 1;
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// The remaining marks, in order.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, f64)> {
        let latest = self.latest.filter(|latest| self.kept.last() != Some(latest));
        self.kept.iter().copied().chain(latest).map(|(nanos, value)| (Timestamp::from_nanos(nanos), value))
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_short_line_is_whole_and_only_changes_are_points() {
        let mut line = Line::new(100);
        for (step, value) in [5.0, 5.0, 7.0, 1.0, 1.0, 9.0].into_iter().enumerate() {
            line.push(at(10_000 * step as u64), value);
        }
        let points: Vec<_> = line.points().map(|(time, value)| (time.as_nanos(), value)).collect();
        assert_eq!(points, [(0, 5.0), (20_000, 7.0), (30_000, 1.0), (50_000, 9.0)]);
    }

    #[test]
    fn a_long_line_keeps_its_peaks_in_the_same_memory() {
        for steps in [10_000_u64, 1_000_000] {
            let mut line = Line::new(256);
            for step in 0..steps {
                let value = if step == steps / 3 { 1e9 } else { (step % 7) as f64 };
                line.push(at(step * 3_000), value);
            }
            assert!(line.bins.len() <= 256 && line.bins.capacity() <= 512, "{steps}: {}", line.bins.capacity());
            let points: Vec<_> = line.points().collect();
            assert!(points.contains(&(at(steps / 3 * 3_000), 1e9)), "{steps}");
            assert!(points.is_sorted_by_key(|point| point.0) && points.len() <= 1024);
            assert_eq!((points[0].0, points[points.len() - 1].0), (at(0), at((steps - 1) * 3_000)));
        }
    }

    #[test]
    fn a_volume_loses_no_byte() {
        let mut volume = Volume::new(64);
        (0..100_000).for_each(|packet| volume.push(at(packet * 12_000), 1500));
        assert!(volume.bins.len() <= 64);
        assert_eq!(volume.points().map(|point| point.1).sum::<f64>(), 150_000_000.0);
        // 1.2 s in at most 64 bins: 2^25 ns are 33.6 ms, 36 bins; 2^24 ns would be 72.
        assert_eq!(volume.resolution(), 1 << 25);
        let mut few = Volume::new(64);
        (0..64).for_each(|packet| few.push(at(packet * 12_000), 1500));
        assert_eq!(few.resolution(), 0);
    }

    #[test]
    fn marks_are_evenly_spaced_and_have_both_ends() {
        let mut marks = Marks::new(100);
        (0..1001).for_each(|mark| marks.push(at(mark), mark as f64));
        let values: Vec<f64> = marks.points().map(|point| point.1).collect();
        // 1001 marks: every 16th is kept, 63 of them, and the last one.
        assert_eq!((values.len(), values[1], values[63], marks.count()), (64, 16.0, 1000.0, 1001));
    }
}
