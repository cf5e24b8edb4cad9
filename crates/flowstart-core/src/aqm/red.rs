//! Random early detection.
//!
//! Reference: Floyd, Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993, with Floyd's gentle mode (2000); if the paper leaves a choice, ns-2.35's `queue/red.cc`.
//! Every arrival updates an average of the queue's length. Between two thresholds an arriving packet is signalled with
//! a probability that grows with the average, spread to make the distances of signals even. An idle link counts as the
//! small packets that it could have sent.
//!
//! Checked line by line against ns-2.35's `queue/red.cc` and ns-3's `red-queue-disc.cc`, and against the quotations of
//! the paper in Linux's `red.h`. The paper's thresholds and weight are those of ns-2's defaults before 2001.
//!
//! Differences from the reference: with ECN, packets are marked up to the upper threshold and dropped beyond (RFC 3168,
//! section 7); ns-2 marks only while the probability is at most `mark_p`. An unknown rate is measured. In byte mode the
//! packets since the last signal are a fraction; ns-2 and ns-3 round them down to whole mean packets. ns-2.35's own
//! defaults differ (`mean_packet` 500 bytes, thresholds and weight from the rate, `wait`): here they are the paper's
//! and Floyd's.
//!
//! Status: validated by `ns2-aqm-transient`; not compared with the paper's text.

use super::decision::Decision;
use super::departure_rate::LinkRate;
use super::fifo::Fifo;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::rng::Substream;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "signals at random between two thresholds of the average queue";
/// The document that defines it.
pub const REFERENCE: &str = "Floyd, Jacobson, IEEE/ACM ToN 1(4), 1993; gentle mode: Floyd, 2000";

/// Weight of a new sample where it would follow from a rate that is not known (the paper's value).
const W_Q: f64 = 0.002;

/// In what a queue is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Unit {
    /// Packets, whatever their size.
    #[default]
    Packets,
    /// Bytes; thresholds are given in packets of `mean_packet`.
    Bytes,
}

/// Parameters of RED.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Lower threshold of the average in packets, 0 to 1,000,000. The paper: 5.
    pub min_th: f64,
    /// Upper threshold in packets, from `min_th` to 1,000,000. Floyd's recommendation: 3 `min_th`.
    pub max_th: f64,
    /// Probability at the upper threshold, 0 to 1. Floyd's recommendation: 0.1 (the paper: 0.02).
    pub max_p: f64,
    /// Weight of a new sample in the average, up to 1. The paper: 0.002. 0 chooses 1 - exp(-1 / (10 `rtt` C)), C
    /// packets/s being the link's rate: ns-2's `q_weight_` -1.
    pub w_q: f64,
    /// The RTT of a `w_q` that is chosen, 1 ms to 100 s. ns-2: three times the link's delay and a packet's time, at
    /// least 100 ms.
    pub rtt: Duration,
    /// The probability rises from `max_p` to 1 between `max_th` and twice that, instead of at once. Default: on.
    pub gentle: bool,
    /// Signals are at least 1/p packets apart (ns-2's `wait_`), instead of at least one. Default: off, as in the paper.
    pub wait: bool,
    /// In what the queue is counted. Default: packets, as in the paper.
    pub unit: Unit,
    /// Larger packets are signalled more often, by size / `mean_packet` (the paper's byte mode). Default: off.
    pub byte_mode: bool,
    /// The packet that thresholds, byte mode and idle time are counted in, 1 to 1,000,000 bytes. Default: 1500, a full
    /// packet (ns-2: 500).
    pub mean_packet: Bytes,
    /// Mark packets of transports that react to marks. Default: on.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_th: 5.0,
            max_th: 15.0,
            max_p: 0.1,
            w_q: W_Q,
            rtt: Duration::from_millis(100),
            gentle: true,
            wait: false,
            unit: Unit::Packets,
            byte_mode: false,
            mean_packet: Bytes::new(1500),
            ecn: true,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("min_th", self.min_th, 0.0..=1e6)?;
        ConfigError::unless_in("max_th", self.max_th, self.min_th..=1e6)?;
        ConfigError::unless_in("max_p", self.max_p, 0.0..=1.0)?;
        ConfigError::unless_in("w_q", self.w_q, 0.0..=1.0)?;
        ConfigError::unless_in("rtt", self.rtt, Duration::from_millis(1)..=Duration::from_millis(100_000))?;
        ConfigError::unless_in("mean_packet", self.mean_packet, Bytes::new(1)..=Bytes::new(1_000_000))
    }
}

/// The weight for which the average's time constant is ten `rtt` of a link that sends `packets_per_second`.
pub(super) fn automatic_w_q(packets_per_second: f64, rtt: Duration) -> f64 {
    1.0 - libm::exp(-1.0 / (10.0 * rtt.as_secs() * packets_per_second))
}

/// Full packets that a link sends in a second.
pub(super) fn packets_per_second(rate: Rate, mean_packet: Bytes) -> f64 {
    rate.bits_per_sec() as f64 / (8.0 * mean_packet.get() as f64)
}

/// State of RED, under the names of the paper.
#[derive(Clone, Debug)]
pub struct Vars {
    /// Average queue, in the unit of the thresholds.
    pub avg: f64,
    /// Packets since the last signal, counted while the average is above the lower threshold.
    pub count: u64,
    /// Their bytes.
    pub count_bytes: u64,
    /// The average was above the lower threshold at the last arrival.
    pub above: bool,
    /// Since when the link is idle.
    pub q_time: Option<Timestamp>,
    /// Probability at the upper threshold now; adaptive RED moves it.
    pub max_p: f64,
}

/// The law of RED. It sees lengths and sizes, not the queue.
#[derive(Clone, Debug)]
pub struct Law {
    config: Config,
    /// The thresholds in the unit of the queue.
    min_th: f64,
    max_th: f64,
    w_q: f64,
    vars: Vars,
}

impl Law {
    /// A law for a queue that is empty and a link that is idle since the beginning.
    pub fn new(config: Config, rate: Option<Rate>) -> Self {
        let unit = if config.unit == Unit::Bytes { config.mean_packet.get() as f64 } else { 1.0 };
        let automatic = |known| automatic_w_q(packets_per_second(known, config.mean_packet), config.rtt);
        Self {
            min_th: config.min_th * unit,
            max_th: config.max_th * unit,
            w_q: if config.w_q > 0.0 { config.w_q } else { rate.map_or(W_Q, automatic) },
            vars: Vars {
                avg: 0.0,
                count: 0,
                count_bytes: 0,
                above: false,
                q_time: Some(Timestamp::ZERO),
                max_p: config.max_p,
            },
            config,
        }
    }

    /// The state.
    pub fn vars(&self) -> &Vars {
        &self.vars
    }

    /// The thresholds in the unit of the queue.
    pub fn thresholds(&self) -> (f64, f64) {
        (self.min_th, self.max_th)
    }

    /// Sets the thresholds, in packets of `mean_packet`; the upper one is at least the lower one.
    pub fn set_thresholds(&mut self, min_th: f64, max_th: f64) {
        let unit = if self.config.unit == Unit::Bytes { self.config.mean_packet.get() as f64 } else { 1.0 };
        (self.min_th, self.max_th) = (min_th * unit, max_th.max(min_th) * unit);
    }

    /// Sets the probability at the upper threshold.
    pub fn set_max_p(&mut self, max_p: f64) {
        self.vars.max_p = max_p;
    }

    /// The link has sent everything.
    pub fn on_idle(&mut self, now: Timestamp) {
        self.vars.q_time.get_or_insert(now);
    }

    /// A packet of `size` arrives behind `packets` packets of `bytes` bytes, the one in service not counted; `rate` is
    /// that of the link. In ns-2 a queue of one packet (of one byte, in bytes) is too short for signals.
    pub fn on_arrival(
        &mut self,
        now: Timestamp,
        length: (usize, Bytes),
        size: u32,
        rate: Option<Rate>,
        rng: &mut Substream,
    ) -> Decision {
        self.average(now, length, rate);
        self.decide(length, size, rng)
    }

    fn length(&self, (packets, bytes): (usize, Bytes)) -> f64 {
        if self.config.unit == Unit::Bytes { bytes.get() as f64 } else { packets as f64 }
    }

    /// What to do with an arriving packet of `size`, whose arrival the average knows of.
    fn decide(&mut self, length: (usize, Bytes), size: u32, rng: &mut Substream) -> Decision {
        let queue = self.length(length);
        let drop_threshold = self.drop_threshold();
        let vars = &mut self.vars;
        vars.count += 1;
        vars.count_bytes += u64::from(size);
        if vars.avg < self.min_th || queue <= 1.0 {
            vars.above = false;
            return Decision::Pass;
        }
        if vars.avg >= drop_threshold {
            (vars.count, vars.count_bytes) = (0, 0);
            return Decision::Drop;
        }
        if !vars.above {
            (vars.above, vars.count, vars.count_bytes) = (true, 1, u64::from(size));
            return Decision::Pass;
        }
        let probability = self.signal_probability(size);
        if rng.uniform() >= probability {
            return Decision::Pass;
        }
        (self.vars.count, self.vars.count_bytes) = (0, 0);
        if self.config.ecn { Decision::Signal } else { Decision::Drop }
    }

    /// From here on everything is dropped.
    fn drop_threshold(&self) -> f64 {
        if self.config.gentle { 2.0 * self.max_th } else { self.max_th }
    }

    /// `avg <- (1 - w_q) avg + w_q q`; after idle time as if m packets had found an empty queue:
    /// `avg <- (1 - w_q)^m avg`.
    fn average(&mut self, now: Timestamp, length: (usize, Bytes), rate: Option<Rate>) {
        if let Some(idle_since) = self.vars.q_time.take()
            && let Some(rate) = rate
        {
            let m = libm::floor(
                packets_per_second(rate, self.config.mean_packet) * now.since(idle_since).as_nanos() as f64 / 1e9,
            );
            if self.vars.avg > 0.0 {
                self.vars.avg *= libm::pow(1.0 - self.w_q, m);
            }
        }
        self.vars.avg += self.w_q * (self.length(length) - self.vars.avg);
    }

    /// `p_b`: linear between the thresholds, then (gentle) linear up to 1 at twice the upper one.
    pub fn initial_probability(&self) -> f64 {
        let Vars { avg, max_p, .. } = self.vars;
        let p_b = if avg < self.max_th {
            max_p * (avg - self.min_th) / (self.max_th - self.min_th)
        } else if self.config.gentle {
            (1.0 - max_p) * avg / self.max_th + 2.0 * max_p - 1.0
        } else {
            1.0
        };
        p_b.clamp(0.0, 1.0)
    }

    /// `p_a = p_b / (1 - count p_b)`, which spreads signals evenly; with `wait` nothing up to `1 / p_b`, then
    /// `p_b / (2 - count p_b)`. In byte mode `count` is in mean packets, and `p_a` is scaled with the size.
    fn signal_probability(&self, size: u32) -> f64 {
        let mean = self.config.mean_packet.get() as f64;
        let count = if self.config.byte_mode { self.vars.count_bytes as f64 / mean } else { self.vars.count as f64 };
        let p_b = self.initial_probability();
        let expected = count * p_b;
        let p_a = match self.config.wait {
            true if expected < 1.0 => return 0.0,
            true if expected < 2.0 => p_b / (2.0 - expected),
            false if expected < 1.0 => p_b / (1.0 - expected),
            _ => return 1.0,
        };
        if self.config.byte_mode && p_a < 1.0 { (p_a * f64::from(size) / mean).min(1.0) } else { p_a.min(1.0) }
    }
}

/// One queue under the law of RED.
#[derive(Clone, Debug)]
pub struct Red {
    law: Law,
    rate: LinkRate,
    queue: Fifo,
    stats: QueueStats,
}

impl Red {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            law: Law::new(config, link.rate),
            rate: LinkRate::new(link.rate),
            queue: Fifo::new(link.limit),
            stats: QueueStats::default(),
        }
    }

    /// The law.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// Thresholds, in packets of `mean_packet`, that follow from the link's rate: set anew where that is measured.
    pub(super) fn follow_rate(&mut self, thresholds: impl FnOnce(Option<Rate>) -> (f64, f64)) {
        if self.rate.is_measured() {
            let (min_th, max_th) = thresholds(self.rate.get());
            self.law.set_thresholds(min_th, max_th);
        }
    }

    /// A packet arrives. Between the average and the decision, `adapt` may change the law.
    pub(super) fn enqueue_adapting(
        &mut self,
        mut packet: QueuedPacket,
        context: &mut QueueContext<'_>,
        adapt: impl FnOnce(&mut Law),
    ) {
        let length = (self.queue.len(), self.queue.bytes());
        // The average knows of every arrival, also of those that do not fit.
        self.law.average(context.now, length, self.rate.get());
        adapt(&mut self.law);
        let decision = self.law.decide(length, packet.size, context.rng);
        if !self.queue.admits(packet.size, context.in_service) {
            self.stats.dropped_full += 1;
            (self.law.vars.count, self.law.vars.count_bytes) = (0, 0);
            context.dropped.push(packet);
        } else if decision.keeps(&mut packet, &mut self.stats) {
            self.queue.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        self.enqueue_adapting(packet, context, |_| {});
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let packet = self.queue.pop();
        match packet {
            Some(packet) => self.rate.on_departure(context.now, packet.size, self.queue.bytes()),
            None => self.law.on_idle(context.now),
        }
        packet
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

#[cfg(test)]
#[allow(clippy::shadow_unrelated, reason = "each step of a worked example begins anew")]
mod tests {
    use super::*;

    fn law(config: Config) -> Law {
        Law::new(config, Some(Rate::from_mbit(10)))
    }

    /// The law with this average, in the middle of a busy time.
    fn with_average(config: Config, avg: f64) -> Law {
        let mut law = law(config);
        law.vars = Vars { avg, above: true, q_time: None, ..law.vars };
        law
    }

    #[test]
    fn the_probability_is_linear_in_two_pieces() {
        let p_b = |avg, gentle| with_average(Config { gentle, ..Config::default() }, avg).initial_probability();
        // min_th 5, max_th 15, max_p 0.1: half-way between the thresholds 0.05.
        assert_eq!(p_b(5.0, true), 0.0);
        assert!((p_b(10.0, true) - 0.05).abs() < 1e-12);
        // Gentle: 0.1 at 15, 0.55 at 22.5, 1 at 30. Otherwise 1 from 15 on.
        assert!((p_b(15.0, true) - 0.1).abs() < 1e-12);
        assert!((p_b(22.5, true) - 0.55).abs() < 1e-12);
        assert!((p_b(30.0, true) - 1.0).abs() < 1e-12);
        assert_eq!(p_b(15.0, false), 1.0);
    }

    #[test]
    fn signals_come_at_even_distances() {
        // p_b = 0.05. After 10 packets p_a = 0.05 / (1 - 0.5) = 0.1, after 19 it is 0.05 / 0.05 = 1.
        let p_a = |count, wait| {
            let mut law = with_average(Config { wait, ..Config::default() }, 10.0);
            law.vars.count = count;
            law.signal_probability(1500)
        };
        assert!((p_a(10, false) - 0.1).abs() < 1e-12);
        assert!((p_a(19, false) - 1.0).abs() < 1e-9);
        assert_eq!(p_a(20, false), 1.0);
        // With wait: nothing for 20 packets, then 0.05 / (2 - 1.5) = 0.1 after 30, and 1 after 39.
        assert_eq!(p_a(19, true), 0.0);
        assert!((p_a(30, true) - 0.1).abs() < 1e-12);
        assert!((p_a(39, true) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn byte_mode_counts_and_scales_with_the_size() {
        // 15,000 bytes are 10 mean packets: p_a is 0.1 for a full packet, and 0.1 x 150 / 1500 = 0.01 for a small one.
        let config = Config { byte_mode: true, ..Config::default() };
        let mut law = with_average(config, 10.0);
        law.vars.count_bytes = 15_000;
        assert!((law.signal_probability(1500) - 0.1).abs() < 1e-12);
        assert!((law.signal_probability(150) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn idle_time_counts_as_packets_that_could_have_been_sent() {
        let mut law = law(Config { w_q: 0.1, ..Config::default() });
        let mut rng = Substream::new(1, "queue", 0);
        law.vars = Vars { avg: 4.0, q_time: Some(Timestamp::ZERO), ..law.vars };
        // 10 Mbit/s send a packet in 1.2 ms. 6.1 ms of idle time are 5 packets: 4 x 0.9^5, then 0.9 of it for the
        // arrival that finds an empty queue: 4 x 0.9^6 = 2.125764.
        let now = Timestamp::from_nanos(6_100_000);
        law.on_arrival(now, (0, Bytes::ZERO), 1500, Some(Rate::from_mbit(10)), &mut rng);
        assert!((law.vars.avg - 2.125_764).abs() < 1e-9);
    }

    #[test]
    fn the_weight_of_ns2_follows_from_rate_and_rtt() {
        // 10 Mbit/s are 833.33 packets/s; ten times 100 ms of them are 833.33: w_q = 1 - exp(-1/833.33) = 0.0011993.
        assert!((law(Config { w_q: 0.0, ..Config::default() }).w_q - 0.001_199_3).abs() < 1e-7);
        let slow = Config { w_q: 0.0, rtt: Duration::from_millis(600), ..Config::default() };
        assert!((law(slow).w_q - 0.000_199_98).abs() < 1e-7);
        assert!((Law::new(Config { w_q: 0.0, ..Config::default() }, None).w_q - 0.002).abs() < 1e-12);
    }

    #[test]
    fn everything_is_dropped_above_the_ramp_and_nothing_below_the_threshold() {
        let mut rng = Substream::new(1, "queue", 0);
        let mut decide = |avg: f64, gentle| {
            let mut law = with_average(Config { gentle, w_q: 1e-9, ..Config::default() }, avg);
            law.on_arrival(Timestamp::ZERO, (20, Bytes::new(30_000)), 1500, None, &mut rng)
        };
        assert_eq!(decide(30.1, true), Decision::Drop);
        assert_eq!(decide(15.1, false), Decision::Drop);
        assert_eq!(decide(4.9, true), Decision::Pass);
    }

    #[test]
    fn one_waiting_packet_is_never_too_many() {
        let mut rng = Substream::new(1, "queue", 0);
        let mut law = with_average(Config::default(), 100.0);
        assert_eq!(law.on_arrival(Timestamp::ZERO, (1, Bytes::new(1500)), 1500, None, &mut rng), Decision::Pass);
        let mut law = with_average(Config::default(), 100.0);
        assert_eq!(law.on_arrival(Timestamp::ZERO, (2, Bytes::new(3000)), 1500, None, &mut rng), Decision::Drop);
    }
}
