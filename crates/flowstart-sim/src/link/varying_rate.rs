//! Rates that vary by themselves: a random function of time, which no traffic can change.
//!
//! A rate is constant during a step and changes at its end. Steps are either drawn independently, as in a system that
//! assigns capacity anew at fixed times, or they follow each other: the logarithm of the rate is then an autoregressive
//! process of first order, as fading and shadowing are often modelled (Gudmundson, "Correlation model for shadow fading
//! in mobile radio systems", Electronics Letters 27 (23), 1991). Both are computed from the number of the step, so a
//! rate can be asked for at any time, and a run and its physical limit see the same.

use flowstart_core::rng::{mix, name_hash, noise};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

/// Earlier steps that matter less than this do not count.
const NEGLIGIBLE: f64 = 0.01;
/// The rate is at least and at most this multiple of the mean.
const RANGE: (f64, f64) = (0.05, 5.0);
/// Steps of a correlated rate in the time after which the correlation is 1/e.
const STEPS: u64 = 4;

/// How a rate varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variation {
    /// Steps of length `every`, each drawn uniformly from the mean plus or minus a part `spread` of it.
    Steps {
        /// Part of the mean, 0 to 0.95.
        spread: f64,
        /// Length of a step.
        every: Duration,
    },
    /// Log-normal steps whose logarithms are correlated in time.
    Fading {
        /// Standard deviation over the mean.
        deviation: f64,
        /// Time after which the correlation of the logarithms is 1/e.
        memory: Duration,
    },
}

/// A rate that varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VaryingRate {
    /// Mean rate.
    pub mean: Rate,
    /// How it varies.
    pub variation: Variation,
}

impl VaryingRate {
    /// The rate in the run with this seed.
    pub fn in_run(self, seed: u64) -> RateCurve {
        let every = match self.variation {
            Variation::Steps { every, .. } => every,
            Variation::Fading { memory, .. } => memory / STEPS,
        };
        RateCurve { rate: self, seed: mix(seed ^ const { name_hash("varying rate") }), steps: Steps::new(seed, every) }
    }
}

/// Times at which something changes: all processes of a run with the same step change together, and where in a step the
/// run begins differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steps {
    every: Duration,
    /// How much of the first step is over when the run begins.
    offset: Duration,
}

impl Steps {
    pub(super) fn new(seed: u64, every: Duration) -> Self {
        let every = every.max(Duration::from_nanos(1));
        Self { every, offset: every.scale(noise(seed, const { name_hash("steps") }, 0)) }
    }

    /// The number of the step at `now`.
    pub(super) fn at(&self, now: Timestamp) -> u64 {
        (now.as_nanos() + self.offset.as_nanos()) / self.every.as_nanos()
    }

    /// When a step ends.
    fn end(&self, step: u64) -> Timestamp {
        Timestamp::from_nanos((step + 1).saturating_mul(self.every.as_nanos()) - self.offset.as_nanos())
    }
}

/// A varying rate in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateCurve {
    rate: VaryingRate,
    seed: u64,
    steps: Steps,
}

impl RateCurve {
    /// The rate at `now`.
    pub fn at(&self, now: Timestamp) -> Rate {
        self.in_step(self.steps.at(now), &mut Draws::default())
    }

    /// The time when `amount` has left if it is sent without pause from `start` on.
    pub fn finish_after(&self, start: Timestamp, amount: Bytes) -> Timestamp {
        let (mut now, mut left, mut draws) = (start, work(amount), Draws::default());
        loop {
            let step = self.steps.at(now);
            match carry(now, &mut left, self.in_step(step, &mut draws), self.steps.end(step)) {
                Some(finished) => return finished,
                None => now = self.steps.end(step),
            }
        }
    }

    fn in_step(&self, step: u64, draws: &mut Draws) -> Rate {
        let factor = match self.rate.variation {
            Variation::Steps { spread, .. } => 1.0 + spread * (2.0 * noise(self.seed, 0, step) - 1.0),
            Variation::Fading { deviation, .. } => {
                let memory = libm::exp(-1.0 / STEPS as f64);
                draws.advance(step, self.seed);
                let (mut sum, mut weight, mut age) = (0.0, 1.0, 0);
                while weight > NEGLIGIBLE {
                    let (radius, cosine) = draws.of(step.wrapping_sub(age));
                    sum += weight * radius * cosine;
                    (weight, age) = (weight * memory, age + 1);
                }
                let normal = sum * libm::sqrt(1.0 - memory * memory);
                let variance = libm::log(1.0 + deviation * deviation);
                libm::exp(normal * libm::sqrt(variance) - variance / 2.0)
            }
        };
        self.rate.mean.scale(factor.clamp(RANGE.0, RANGE.1)).max(Rate::from_bits_per_sec(1))
    }
}

/// The steps before a step that count for it, and that itself: NEGLIGIBLE is reached after 18.4 steps. A divisor of the
/// number of all steps, as the first steps of a run follow those with the largest numbers.
const REMEMBERED: usize = 32;

/// What was drawn for the latest steps. A step follows the one before it, so each is drawn once and not for every step
/// after it.
#[derive(Clone, Debug, Default)]
struct Draws {
    /// The step that was drawn last; all before it are known that count for it.
    newest: Option<u64>,
    /// Radius and cosine of each, as in [`drawn`].
    drawn: [(f64, f64); REMEMBERED],
}

impl Draws {
    /// Draws what counts for a step.
    fn advance(&mut self, step: u64, seed: u64) {
        let missing = match self.newest {
            Some(newest) if newest == step => 0,
            Some(newest) if newest.wrapping_add(1) == step => 1,
            _ => REMEMBERED as u64,
        };
        for age in 0..missing {
            let step = step.wrapping_sub(age);
            self.drawn[step as usize % REMEMBERED] = drawn(seed, step);
        }
        self.newest = Some(step);
    }

    fn of(&self, step: u64) -> (f64, f64) {
        self.drawn[step as usize % REMEMBERED]
    }
}

/// The factors of a step's normal number, by Box and Muller. Steps before the run's first have numbers too.
fn drawn(seed: u64, step: u64) -> (f64, f64) {
    let (radius, angle) = (1.0 - noise(seed, 1, step), noise(seed, 2, step));
    (libm::sqrt(-2.0 * libm::log(radius)), libm::cos(2.0 * core::f64::consts::PI * angle))
}

/// What is left to send, in units of 1e-9 bits: a rate of a bit per second does one of them in a nanosecond.
fn work(amount: Bytes) -> u128 {
    u128::from(amount.get()) * 8_000_000_000
}

/// Sends from `now` until `end`. Returns when nothing is left, if that is before `end`.
fn carry(now: Timestamp, left: &mut u128, rate: Rate, end: Timestamp) -> Option<Timestamp> {
    let rate = u128::from(rate.bits_per_sec());
    let possible = rate * u128::from(end.since(now).as_nanos());
    if *left <= possible {
        return Some(now + Duration::from_nanos(left.div_ceil(rate) as u64));
    }
    *left -= possible;
    None
}

/// A transmitter at a varying rate.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    curve: RateCurve,
    /// The rate of the present step, and when that ends.
    present: (Rate, Timestamp),
    /// Beside it, because other transmitters have nothing of that size.
    draws: Box<Draws>,
}

impl Varying {
    pub(super) fn new(curve: RateCurve) -> Self {
        Self { curve, present: (Rate::ZERO, Timestamp::ZERO), draws: Box::default() }
    }

    /// The time when a packet of `size` that starts now has left.
    #[inline]
    pub(super) fn finish(&mut self, mut now: Timestamp, size: u32) -> Timestamp {
        let mut left = work(Bytes::new(u64::from(size)));
        loop {
            if now >= self.present.1 {
                let step = self.curve.steps.at(now);
                self.present = (self.curve.in_step(step, &mut self.draws), self.curve.steps.end(step));
            }
            let (rate, end) = self.present;
            match carry(now, &mut left, rate, end) {
                Some(finished) => return finished,
                None => now = end,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn curve(variation: Variation, seed: u64) -> RateCurve {
        VaryingRate { mean: Rate::from_mbit(100), variation }.in_run(seed)
    }

    /// Rates in Mbit/s every `gap` seconds.
    fn rates(curve: &RateCurve, gap: f64, count: u32) -> Vec<f64> {
        (0..count).map(|place| curve.at(Timestamp::ZERO + secs(gap * f64::from(place))).as_mbit()).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    const STARLINK: Variation = Variation::Steps { spread: 0.5, every: Duration::from_millis(15_000) };
    const RADIO: Variation = Variation::Fading { deviation: 0.4, memory: Duration::from_millis(1000) };

    #[test]
    fn steps_last_their_time_and_stay_within_their_spread() {
        let curve = curve(STARLINK, 7);
        let rates = rates(&curve, 0.1, 200_000);
        let changes: Vec<usize> = (1..rates.len()).filter(|place| rates[*place] != rates[place - 1]).collect();
        // 15 s are 150 samples; the first step is shorter, by a part that depends on the seed.
        assert!(changes[0] < 150 && changes.windows(2).all(|pair| pair[1] - pair[0] == 150), "{:?}", &changes[..3]);
        assert!(rates.iter().all(|rate| (50.0..=150.0).contains(rate)));
        assert!((mean(&rates) - 100.0).abs() < 3.0, "{}", mean(&rates));
        let other = VaryingRate { mean: Rate::from_mbit(100), variation: STARLINK }.in_run(8);
        assert_ne!(curve.steps.offset, other.steps.offset);
    }

    #[test]
    fn fading_has_its_mean_deviation_and_memory() {
        // 20,000 s, a sample every 0.25 s.
        let rates = rates(&curve(RADIO, 3), 0.25, 80_000);
        let average = mean(&rates);
        assert!((average - 100.0).abs() < 2.0, "{average}");
        let deviation = mean(&rates.iter().map(|rate| (rate - average).powi(2)).collect::<Vec<_>>()).sqrt();
        assert!((deviation - 40.0).abs() < 3.0, "{deviation}");
        let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
        let centre = mean(&logs);
        let product = |lag: usize| {
            let pairs = logs.iter().zip(&logs[lag..]).map(|(a, b)| (a - centre) * (b - centre));
            mean(&pairs.collect::<Vec<_>>())
        };
        // After a second the correlation is 1/e = 0.37, after four 0.02.
        let correlation = |lag: usize| product(lag) / product(0);
        assert!((correlation(4) - 0.368).abs() < 0.05, "{}", correlation(4));
        assert!(correlation(16).abs() < 0.08, "{}", correlation(16));
    }

    #[test]
    fn a_transmitter_carries_what_the_curve_allows_and_no_more() {
        for (variation, seed) in [(STARLINK, 1), (RADIO, 2), (RADIO, 3)] {
            let curve = curve(variation, seed);
            let mut transmitter = Varying::new(curve);
            let start = Timestamp::ZERO + secs(3.3);
            let mut now = start;
            let packets = 500_000u32;
            for _ in 0..packets {
                now = transmitter.finish(now, 1500);
            }
            let at_once = curve.finish_after(start, Bytes::new(1500) * u64::from(packets));
            // Each packet's end is rounded up to a nanosecond, so the limit stays a limit.
            let late = now.as_nanos().checked_sub(at_once.as_nanos()).expect("not before the limit");
            assert!(late <= u64::from(packets) * 4, "{late}");
        }
    }

    #[test]
    fn a_rate_is_the_same_in_whatever_order_steps_are_asked_for() {
        let curve = curve(RADIO, 9);
        let mut draws = Draws::default();
        // One after the other, some left out, back, and the first of all.
        let steps = (0..100).chain([103, 104, 200, 150, 151, 151, 0]).chain(1..20);
        for step in steps {
            assert_eq!(curve.in_step(step, &mut draws), curve.in_step(step, &mut Draws::default()), "{step}");
        }
    }

    #[test]
    fn a_packet_across_a_step_leaves_at_both_rates() {
        let curve = curve(STARLINK, 5);
        let end = curve.steps.end(0);
        let (before, after) = (curve.at(end - secs(0.001)), curve.at(end));
        // 0.5 ms at the first rate, the rest at the second.
        let size = before.amount_in(secs(0.0005)) + after.amount_in(secs(0.0003));
        let left = curve.finish_after(end - secs(0.0005), size).since(end).as_secs();
        assert!((left - 0.0003).abs() < 1e-6, "{left}");
    }
}
