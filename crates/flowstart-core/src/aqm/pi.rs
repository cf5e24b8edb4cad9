//! The PI controller.
//!
//! Reference: Hollot, Misra, Towsley, Gong, "On Designing Improved Controllers for AQM Routers Supporting TCP Flows",
//! INFOCOM 2001, and ns-2.35's `queue/pi.cc` with its defaults. At a fixed frequency the probability of a signal is
//! corrected by the queue's deviation from its reference, now and at the last sample: p <- p + a (q - `q_ref`) - b
//! (`q_old` - `q_ref`).
//!
//! Checked line by line against ns-2's module: the equation, its bounds, the order of limit and law.
//!
//! Differences from the reference: the samples pause while the queue is empty and another sample would change nothing;
//! they keep their grid. ns-2's `bytes_`, off by default, scales the probability with the packet's size and is left
//! out. ns-2 marks only on request (`setbit_`).
//!
//! Status: worked examples; not compared with the paper's text, nor with a run of ns-2.

use super::decision::Decision;
use super::fifo::Fifo;
use super::grid::next_on_grid;
use super::red::Unit;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::rng::Substream;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "signals at random, with a probability that steers the queue's length";
/// The document that defines it.
pub const REFERENCE: &str = "Hollot, Misra, Towsley, Gong, INFOCOM 2001";

/// Seconds that the probability may need from 1 to 0 while the queue is empty: a day.
const LONGEST_FALL_S: f64 = 86_400.0;

/// Parameters of the PI controller. The defaults are the paper's design for 15 Mbit/s (3750 packets of 500 bytes per
/// second), 60 flows and an RTT of 246 ms, also in ns-2; other links need other values.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Weight of the deviation now, per packet, 0 to 1. ns-2: 0.00001822.
    pub a: f64,
    /// Weight of the deviation at the last sample, per packet, 0 to `a`: a larger one makes the probability rise while
    /// the queue is empty. ns-2: 0.00001816.
    pub b: f64,
    /// Queue to steer to in packets, 0 to 1,000,000; `a` must exceed `b` by so much that the probability falls from 1
    /// to 0 within a day of an empty queue. ns-2: 50 (the paper's simulations: 200).
    pub q_ref: f64,
    /// Samples per second, 0.01 to 10,000. ns-2: 170 (the paper: 160).
    pub w: f64,
    /// The unit of the queue. Default: packets, as in ns-2.
    pub unit: Unit,
    /// Packet size that converts bytes, 1 to 1,000,000 bytes. Default: 1500, a full packet.
    pub mean_packet: Bytes,
    /// Mark packets of transports that react to marks. Default: on.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            a: 0.000_018_22,
            b: 0.000_018_16,
            q_ref: 50.0,
            w: 170.0,
            unit: Unit::Packets,
            mean_packet: Bytes::new(1500),
            ecn: true,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("a", self.a, 0.0..=1.0)?;
        ConfigError::unless_in("b", self.b, 0.0..=self.a)?;
        ConfigError::unless_in("q_ref", self.q_ref, 0.0..=1e6)?;
        ConfigError::unless_in("w", self.w, 0.01..=10_000.0)?;
        let fall = (self.a - self.b) * self.q_ref * self.w;
        if self.b < self.a && fall * LONGEST_FALL_S < 1.0 {
            let allowed = "more, or b equal to a: behind an empty queue the probability falls by (a - b) q_ref w a second, which must \
                           be from 1 to 0 within a day";
            return Err(ConfigError::new("q_ref", self.q_ref, allowed));
        }
        ConfigError::unless_in("mean_packet", self.mean_packet, Bytes::new(1)..=Bytes::new(1_000_000))
    }
}

/// The law: a probability, and the queue at the last sample in packets.
#[derive(Clone, Debug)]
pub struct Law {
    config: Config,
    /// Probability of a signal.
    p: f64,
    q_old: f64,
}

impl Law {
    /// A law for an empty queue.
    pub fn new(config: Config) -> Self {
        Self { config, p: 0.0, q_old: 0.0 }
    }

    /// Time between two calls of [`Law::sample`].
    pub fn period(&self) -> Duration {
        Duration::from_secs(1.0 / self.config.w)
    }

    /// The probability of a signal.
    pub fn probability(&self) -> f64 {
        self.p
    }

    /// What to do with an arriving packet.
    pub fn on_arrival(&self, rng: &mut Substream) -> Decision {
        match rng.uniform() < self.p {
            true if self.config.ecn => Decision::Signal,
            true => Decision::Drop,
            false => Decision::Pass,
        }
    }

    /// p + a (q - `q_ref`) - b (`q_old` - `q_ref`), within 0 and 1.
    fn corrected(&self, q: f64) -> f64 {
        let Config { a, b, q_ref, .. } = self.config;
        (self.p + a * (q - q_ref) - b * (self.q_old - q_ref)).clamp(0.0, 1.0)
    }

    /// Corrects the probability by the queue as it is now.
    pub fn sample(&mut self, packets: usize, bytes: Bytes) {
        let q = match self.config.unit {
            Unit::Packets => packets as f64,
            Unit::Bytes => bytes.get() as f64 / self.config.mean_packet.get() as f64,
        };
        self.p = self.corrected(q);
        self.q_old = q;
    }

    /// Whether another sample of an empty queue changes nothing: at probability 0, or if a and b differ too little.
    fn rests(&self) -> bool {
        self.q_old == 0.0 && self.corrected(0.0) == self.p
    }
}

/// One queue under the PI controller.
#[derive(Clone, Debug)]
pub struct Pi {
    law: Law,
    queue: Fifo,
    stats: QueueStats,
    next_sample: Timestamp,
}

impl Pi {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            law: Law::new(config),
            queue: Fifo::new(link.limit),
            stats: QueueStats::default(),
            next_sample: Timestamp::NEVER,
        }
    }
}

impl QueueDiscipline for Pi {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.next_sample == Timestamp::NEVER {
            self.next_sample = next_on_grid(context.now, self.law.period());
        }
        if !self.queue.admits(packet.size, context.in_service) {
            self.stats.dropped_full += 1;
            context.dropped.push(packet);
        } else if self.law.on_arrival(context.rng).keeps(&mut packet, &mut self.stats) {
            self.queue.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, _context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.queue.pop()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn next_timer(&self) -> Timestamp {
        self.next_sample
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        self.law.sample(self.queue.len(), self.queue.bytes());
        let pauses = self.queue.is_empty() && self.law.rests();
        self.next_sample = if pauses { Timestamp::NEVER } else { next_on_grid(context.now, self.law.period()) };
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_integrates_the_deviation() {
        let mut law = Law::new(Config { a: 0.002, b: 0.001, q_ref: 50.0, ..Config::default() });
        // Empty before: 0.002 (100 - 50) - 0.001 (0 - 50) = 0.15.
        law.sample(100, Bytes::new(150_000));
        assert!((law.probability() - 0.15).abs() < 1e-12);
        // Still 100: 0.15 + 0.1 - 0.05 = 0.2. Then 30: 0.2 - 0.04 - 0.05 = 0.11. Then 0, twice, down to the floor.
        law.sample(100, Bytes::new(150_000));
        assert!((law.probability() - 0.2).abs() < 1e-12);
        law.sample(30, Bytes::new(45_000));
        assert!((law.probability() - 0.11).abs() < 1e-12);
        law.sample(0, Bytes::ZERO);
        assert!((law.probability() - 0.03).abs() < 1e-12);
        law.sample(0, Bytes::ZERO);
        assert!(law.probability() == 0.0 && law.rests());
    }

    #[test]
    fn bytes_are_counted_in_mean_packets() {
        let config = || Config { a: 0.002, b: 0.001, ..Config::default() };
        let mut bytes = Law::new(Config { unit: Unit::Bytes, ..config() });
        let mut packets = Law::new(config());
        bytes.sample(1, Bytes::new(150_000));
        packets.sample(100, Bytes::ZERO);
        assert_eq!(bytes.probability(), packets.probability());
    }

    #[test]
    fn an_empty_queue_that_another_sample_would_change_does_not_rest() {
        assert!(Law::new(Config::default()).rests());
        let law = |b| Law { config: Config { a: 0.001, b, ..Config::default() }, p: 0.5, q_old: 0.0 };
        // 0.5 + 0.001 (0 - 50) - 0.0005 (0 - 50) = 0.475.
        let mut falling = law(0.0005);
        assert!(!falling.rests());
        falling.sample(0, Bytes::ZERO);
        assert!((falling.probability() - 0.475).abs() < 1e-12);
        // The two deviations weigh the same: the probability stays, and so may the samples.
        assert!(law(0.001).rests());
    }

    #[test]
    fn a_probability_that_would_rise_with_an_empty_queue_is_refused() {
        assert_eq!(Config { a: 0.001, b: 0.001, ..Config::default() }.validate(), Ok(()));
        assert_eq!(Config { a: 0.001, b: 0.001, q_ref: 0.0, ..Config::default() }.validate(), Ok(()));
        let never_falls = Config { a: 0.002, b: 0.001, q_ref: 0.0, ..Config::default() };
        assert_eq!(never_falls.validate().unwrap_err().field, "q_ref");
        // 0.001 * 0.01 * 1 = 1 / 100,000 a second is more than a day, with 0.0116 it is just less.
        let slow = |q_ref| Config { a: 0.002, b: 0.001, q_ref, w: 1.0, ..Config::default() }.validate().is_ok();
        assert_eq!([slow(0.01), slow(0.0116)], [false, true]);
        let error = Config { a: 0.001, b: 0.002, ..Config::default() }.validate().unwrap_err();
        assert_eq!((error.field, &*error.allowed), ("b", "0 to 0.001"));
    }
}
