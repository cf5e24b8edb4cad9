//! Flows that come and go: Poisson arrivals with heavy-tailed sizes at a given offered load.

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

/// A Pareto distribution of sizes, cut off at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Smallest size.
    pub smallest: Bytes,
    /// Largest size.
    pub largest: Bytes,
    /// Shape of the tail; web traffic is about 1.2 (Crovella, Bestavros 1997).
    pub shape: f64,
}

impl Sizes {
    /// Mean of the bounded distribution.
    pub fn mean(&self) -> f64 {
        let (l, h, a) = (self.smallest.get() as f64, self.largest.get() as f64, self.shape);
        let ratio = libm::pow(l / h, a);
        if (a - 1.0).abs() < 1e-9 {
            return l / (1.0 - ratio) * libm::log(h / l);
        }
        libm::pow(l, a) / (1.0 - ratio) * a / (a - 1.0) * (libm::pow(l, 1.0 - a) - libm::pow(h, 1.0 - a))
    }

    /// Draws a size by inverting the bounded distribution.
    pub fn draw(&self, rng: &mut Substream) -> Bytes {
        let (l, h, a) = (self.smallest.get() as f64, self.largest.get() as f64, self.shape);
        let ratio = libm::pow(l / h, a);
        let size = l * libm::pow(1.0 - rng.uniform() * (1.0 - ratio), -1.0 / a);
        Bytes::new(libm::round(size.clamp(l, h)) as u64)
    }
}

/// A Poisson process of arrivals.
#[derive(Clone, Debug)]
pub struct Arrivals {
    sizes: Sizes,
    mean_gap: Duration,
    rng: Substream,
    until: Timestamp,
    /// Payload bytes of all arrivals so far: the actual offered load.
    pub offered: u64,
}

impl Arrivals {
    /// Arrivals until `until` whose payload averages `load`.
    pub fn new(sizes: Sizes, load: Rate, until: Timestamp, seed: u64, index: u64) -> Self {
        let mean_gap = Duration::from_secs(sizes.mean() * 8.0 / load.bits_per_sec() as f64);
        Self { sizes, mean_gap, rng: Substream::new(seed, "arrivals", index), until, offered: 0 }
    }

    /// The next arrival after `now` and its size, `None` when the process has ended.
    pub fn next(&mut self, now: Timestamp) -> Option<(Timestamp, Bytes)> {
        let time = now + Duration::from_secs(self.rng.exponential(self.mean_gap.as_secs()));
        let size = self.sizes.draw(&mut self.rng);
        (time <= self.until).then(|| {
            self.offered += size.get();
            (time, size)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offered_load_is_the_one_asked_for() {
        let sizes = Sizes { smallest: Bytes::new(4_000), largest: Bytes::new(10_000_000), shape: 1.2 };
        let end = Timestamp::ZERO + Duration::from_secs(50_000.0);
        let mut arrivals = Arrivals::new(sizes, Rate::from_mbit(5), end, 1, 0);
        let mut now = Timestamp::ZERO;
        while let Some((time, size)) = arrivals.next(now) {
            assert!((sizes.smallest..=sizes.largest).contains(&size));
            now = time;
        }
        let load = Rate::from_transfer(Bytes::new(arrivals.offered), end.since(Timestamp::ZERO)).unwrap();
        assert!((load.as_mbit() / 5.0 - 1.0).abs() < 0.03, "{load}");
    }
}
