//! Adaptive RED: RED that finds its own thresholds, weight and probability.
//!
//! Reference: Floyd, Gummadi, Shenker, "Adaptive RED: An Algorithm for Increasing the Robustness of RED's Active Queue
//! Management", 2001, as in ns-2.35's `queue/red.cc` and in ns-3. The thresholds follow from a target delay and the
//! link's rate, the weight from the rate. Every half second the probability at the upper threshold grows by a step or
//! shrinks by a factor, which keeps the average in the middle between the thresholds.
//!
//! Differences from the reference: the probability is adapted when a packet arrives, not while nothing arrives (ns-2
//! and ns-3 also wait for a packet). It stays within `bottom` to `top`; ns-2 and ns-3 may go a step beyond, and ns-3
//! lowers `bottom` to a packet per BDP on fast links, as does ns-2 on request. The gentle ramp begins at the current
//! probability, theirs at the first one. ns-3 begins with a probability of 0.02, ns-2 with 0.1. If the link's rate is
//! unknown, the thresholds are the smallest ones until it is measured, and the weight is RED's 0.002.
//!
//! Status: worked examples; not compared with the paper's text; the law of RED is validated by `ns2-aqm-transient`.

use super::red::{self, Red, packets_per_second};
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "RED that adapts its probability, with thresholds from a target delay";
/// The document that defines it.
pub const REFERENCE: &str = "Floyd, Gummadi, Shenker, Adaptive RED, 2001";

/// Parameters of adaptive RED.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Average delay to aim at, 10 us to 10 s; the lower threshold is half of it, at least five packets. The paper: 5
    /// ms.
    pub target_delay: Duration,
    /// Least time between two steps, 1 ms to 100 s. The paper: 0.5 s.
    pub interval: Duration,
    /// Step upwards, 0 to 1, at most a quarter of the probability. The paper: 0.01.
    pub alpha: f64,
    /// Factor downwards, 0.01 to 1. The paper: 0.9.
    pub beta: f64,
    /// Smallest probability at the upper threshold, 0.000001 to 1. The paper: 0.01.
    pub bottom: f64,
    /// Largest one, from `bottom` to 1. The paper: 0.5.
    pub top: f64,
    /// Packet size that converts thresholds and idle time, 1 to 1,000,000 bytes. Default: 1500, a full packet.
    pub mean_packet: Bytes,
    /// Mark packets of transports that react to marks. Default: on.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target_delay: Duration::from_millis(5),
            interval: Duration::from_millis(500),
            alpha: 0.01,
            beta: 0.9,
            bottom: 0.01,
            top: 0.5,
            mean_packet: Bytes::new(1500),
            ecn: true,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let delays = Duration::from_micros(10)..=Duration::from_millis(10_000);
        ConfigError::unless_in("target_delay", self.target_delay, delays)?;
        ConfigError::unless_in("interval", self.interval, Duration::from_millis(1)..=Duration::from_millis(100_000))?;
        ConfigError::unless_in("alpha", self.alpha, 0.0..=1.0)?;
        ConfigError::unless_in("beta", self.beta, 0.01..=1.0)?;
        ConfigError::unless_in("bottom", self.bottom, 1e-6..=1.0)?;
        ConfigError::unless_in("top", self.top, self.bottom..=1.0)?;
        ConfigError::unless_in("mean_packet", self.mean_packet, Bytes::new(1)..=Bytes::new(1_000_000))
    }

    /// The lower threshold in packets: half of `target_delay` at this rate, at least five. The upper threshold is three
    /// times that.
    fn thresholds(&self, rate: Option<Rate>) -> (f64, f64) {
        let target = rate.map_or(0.0, |known| {
            packets_per_second(known, self.mean_packet) * self.target_delay.as_nanos() as f64 / 1e9
        });
        let min_th = (target / 2.0).max(5.0);
        (min_th, 3.0 * min_th)
    }
}

/// A RED queue and its adaptation.
#[derive(Clone, Debug)]
pub struct AdaptiveRed {
    config: Config,
    red: Red,
    /// When the probability was last changed.
    last_set: Timestamp,
}

impl AdaptiveRed {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        let (min_th, max_th) = config.thresholds(link.rate);
        let red = red::Config {
            min_th,
            max_th,
            // 1 - exp(-1/C), as the paper has it: RED's automatic weight at 100 ms.
            w_q: 0.0,
            max_p: 0.1_f64.clamp(config.bottom, config.top),
            mean_packet: config.mean_packet,
            ecn: config.ecn,
            ..red::Config::default()
        };
        Self { red: Red::new(red, link), last_set: Timestamp::ZERO, config }
    }

    /// The law of RED as it is now.
    pub fn law(&self) -> &red::Law {
        self.red.law()
    }
}

/// AIMD: upwards when the average is above 60 % of the way between the thresholds, downwards below 40 %. `last_set` is
/// when the probability was last changed.
fn adapt(config: &Config, last_set: &mut Timestamp, now: Timestamp, law: &mut red::Law) {
    if now <= *last_set + config.interval {
        return;
    }
    let (min_th, max_th) = law.thresholds();
    let margin = 0.4 * (max_th - min_th);
    let red::Vars { avg, max_p, .. } = *law.vars();
    let adapted = if avg < min_th + margin && max_p > config.bottom {
        max_p * config.beta
    } else if avg > max_th - margin && max_p < config.top {
        max_p + config.alpha.min(max_p / 4.0)
    } else {
        return;
    };
    law.set_max_p(adapted.clamp(config.bottom, config.top));
    *last_set = now;
}

impl QueueDiscipline for AdaptiveRed {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let Self { config, red, last_set } = self;
        red.follow_rate(|rate| config.thresholds(rate));
        let now = context.now;
        red.enqueue_adapting(packet, context, |law| adapt(config, last_set, now, law));
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.red.dequeue(context)
    }

    fn stats(&self) -> QueueStats {
        self.red.stats()
    }

    fn may_have_timer(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.red.len()
    }

    fn bytes(&self) -> Bytes {
        self.red.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::EcnCodepoint;

    fn queue(mbit: u64) -> AdaptiveRed {
        AdaptiveRed::new(
            Config::default(),
            OutgoingLink { rate: Some(Rate::from_mbit(mbit)), ..OutgoingLink::default() },
        )
    }

    #[test]
    fn thresholds_follow_from_the_target_delay() {
        // 10 Mbit/s: 5 ms are 4.17 packets of 1500 bytes, half of them are less than 5.
        assert_eq!(queue(10).law().thresholds(), (5.0, 15.0));
        // 120 Mbit/s: 10,000 packets/s, 5 ms are 50, half of them 25.
        assert_eq!(queue(120).law().thresholds(), (25.0, 75.0));
        let unknown = AdaptiveRed::new(Config::default(), OutgoingLink::default());
        assert_eq!(unknown.law().thresholds(), (5.0, 15.0));
    }

    /// The probability after a step with this average, which a law of weight 1 takes over.
    fn adapted(avg: f64, max_p: f64, millis: u64) -> f64 {
        let mut law = red::Law::new(red::Config { w_q: 1.0, ..red::Config::default() }, None);
        let mut rng = crate::rng::Substream::new(1, "queue", 0);
        let length = (avg as usize, Bytes::new(avg as u64 * 1500));
        law.on_arrival(Timestamp::ZERO, length, 1500, None, &mut rng);
        law.set_max_p(max_p);
        let now = Timestamp::ZERO + Duration::from_millis(millis);
        let mut last_set = Timestamp::ZERO;
        adapt(&Config::default(), &mut last_set, now, &mut law);
        law.vars().max_p
    }

    #[test]
    fn the_average_of_an_arrival_adapts_the_probability_that_it_meets() {
        // As in ns-2's estimator. With a weight of 1 the average is the queue: 11 behind the twelfth packet, which is
        // the bound, 12 behind the thirteenth, half a second later.
        let mut queue = queue(10);
        queue.red = Red::new(red::Config { w_q: 1.0, ..red::Config::default() }, OutgoingLink::default());
        let (mut rng, mut dropped) = (crate::rng::Substream::new(1, "queue", 0), alloc::vec::Vec::new());
        for (handle, millis) in [0; 12].into_iter().chain([501]).enumerate() {
            let now = Timestamp::ZERO + Duration::from_millis(millis);
            let packet =
                QueuedPacket { handle: handle as u32, size: 1500, flow: 0, ecn: EcnCodepoint::Ect0, enqueued_at: now };
            assert!((queue.law().vars().max_p - 0.1).abs() < 1e-12);
            queue.enqueue(packet, &mut QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped });
        }
        assert_eq!((queue.law().vars().avg, queue.len()), (12.0, 13));
        assert!((queue.law().vars().max_p - 0.11).abs() < 1e-12);
    }

    #[test]
    fn the_probability_rises_by_steps_and_falls_by_a_factor() {
        // Thresholds 5 and 15: below 9 downwards, above 11 upwards.
        assert!((adapted(8.0, 0.1, 501) - 0.09).abs() < 1e-12);
        assert!((adapted(12.0, 0.1, 501) - 0.11).abs() < 1e-12);
        assert!((adapted(10.0, 0.1, 501) - 0.1).abs() < 1e-12);
        // A step is at most a quarter: 0.02 + 0.005.
        assert!((adapted(12.0, 0.02, 501) - 0.025).abs() < 1e-12);
        // Not more often than every half second, and within 0.01 and 0.5.
        assert!((adapted(12.0, 0.1, 500) - 0.1).abs() < 1e-12);
        assert!((adapted(8.0, 0.010_5, 501) - 0.01).abs() < 1e-12);
        assert!((adapted(12.0, 0.495, 501) - 0.5).abs() < 1e-12);
    }
}
