//! Seeded randomness: one independent substream per random process, named by its role.
//!
//! A process that draws from its own substream cannot disturb another process. So two runs with the same seed and
//! different schemes see the same channel and the same competitor.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A seeded stream of random numbers for one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substream {
    generator: Pcg64Mcg,
}

impl Substream {
    /// The stream of process `role` with number `index` in the run with this seed.
    pub fn new(seed: u64, role: &str, index: u64) -> Self {
        let low = mix(seed ^ mix(name_hash(role).wrapping_add(index)));
        let high = mix(low ^ 0x5851_f42d_4c95_7f2d);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        Self { generator: Pcg64Mcg::from_seed(bytes) }
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        unit_interval(self.next_u64())
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Pareto with the given smallest value and shape: P(X > x) = (smallest / x)^shape.
    pub fn pareto(&mut self, smallest: f64, shape: f64) -> f64 {
        smallest * libm::pow(1.0 - self.uniform(), -1.0 / shape)
    }
}

/// A random function of an integer position: uniform in [0, 1), the same for the same seed, role and position.
///
/// Channel models use it with a time as the position, so the channel does not depend on what is sent.
pub fn noise(seed: u64, role: u64, position: u64) -> f64 {
    unit_interval(mix(seed ^ mix(role ^ mix(position))))
}

/// A number that stands for a role's name in [`noise`] (FNV-1a, 64 bits).
pub const fn name_hash(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014): every input bit affects every output bit.
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The 53 upper bits as a number in [0, 1).
fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substreams_repeat_by_name_and_differ_between_names() {
        let draw = |role, index| Substream::new(7, role, index).next_u64();
        assert_eq!(draw("loss", 0), draw("loss", 0));
        assert_ne!(draw("loss", 0), draw("loss", 1));
        assert_ne!(draw("loss", 0), draw("jitter", 0));
    }

    #[test]
    fn distributions_have_their_means() {
        let mut stream = Substream::new(1, "test", 0);
        let n = 200_000;
        let mean = |total: f64| total / f64::from(n);
        let exponential = mean((0..n).map(|_| stream.exponential(3.0)).sum());
        assert!((exponential - 3.0).abs() < 0.05, "{exponential}");
        // Pareto with shape 2.5 and smallest value 3 has the mean 2.5 * 3 / 1.5 = 5.
        let pareto = mean((0..n).map(|_| stream.pareto(3.0, 2.5)).sum());
        assert!((pareto - 5.0).abs() < 0.1, "{pareto}");
        let uniform = mean((0..n).map(|i| noise(9, 4, i as u64)).sum());
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
    }
}
