//! Adaptive virtual queue.
//!
//! Reference: Kunniyur, Srikant, "Analysis and Design of an Adaptive Virtual Queue (AVQ) Algorithm for Active Queue
//! Management", SIGCOMM 2001, and ns-2.35's `queue/vq.cc`. A virtual queue sees the same arrivals
//! and is served at a virtual capacity; a packet that does not fit into it is signalled. The virtual capacity grows
//! while the arrival rate is below a part of the link's rate, and shrinks above it.
//!
//! Checked line by line against ns-2's module.
//!
//! Differences from the reference: sizes are in bytes only, ns-2's default. A virtual packet is refused when it does
//! not fit, as in the paper; ns-2 compares after adding it, which is the same. The virtual capacity grows with every
//! arrival, as in the paper. ns-2 adapts it with accepted packets; once it is almost zero, no packet is accepted. The
//! virtual capacity is limited to the link's before the arriving bytes are subtracted; ns-2 limits it afterwards, so
//! there it reaches the link's own. A packet that cannot be marked is dropped; ns-2 drops all packets (its default) or,
//! if it marks, lets such packets pass. The limit of the queue counts 1500 bytes a packet, in ns-2 1000. If the link's
//! rate is unknown, nothing is signalled until it is measured.
//!
//! Status: worked examples; not compared with the paper's text, nor with a run of ns-2.

use super::decision::Decision;
use super::departure_rate::LinkRate;
use super::fifo::Fifo;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::Timestamp;
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "signals what a virtual queue with an adapted capacity would not take";
/// The document that defines it.
pub const REFERENCE: &str = "Kunniyur, Srikant, SIGCOMM 2001";

/// A full packet, to turn limits in packets into bytes.
const PACKET: u64 = 1500;

/// With a smaller share of the link's capacity, or a slower adaptation, the virtual queue serves nothing within
/// minutes.
const SLOWEST: f64 = 0.001;

/// Parameters of AVQ.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// How fast the virtual capacity adapts, per second, 0, or 0.001 to 100. ns-2 and the paper: 0.15.
    pub alpha: f64,
    /// Utilization to steer to, 0.01 to 1. ns-2 and the paper: 0.98.
    pub gamma: f64,
    /// The initial virtual capacity over the link's rate, 0 to 1; at least 0.001 if `alpha` is 0. ns-2: 0.8.
    pub initial: f64,
    /// The virtual buffer, up to 1 TB. Default: 0, that of the real queue (packets count 1500 bytes), or 150 KB if that
    /// has no limit.
    pub buffer: Bytes,
    /// Mark packets of transports that react to marks. Default: on.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 0.15, gamma: 0.98, initial: 0.8, buffer: Bytes::ZERO, ecn: true }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("alpha", self.alpha, 0.0..=100.0)?;
        if 0.0 < self.alpha && self.alpha < SLOWEST {
            return Err(ConfigError::new("alpha", self.alpha, "0, or 0.001 to 100"));
        }
        ConfigError::unless_in("gamma", self.gamma, 0.01..=1.0)?;
        ConfigError::unless_in("initial", self.initial, 0.0..=1.0)?;
        if self.initial < SLOWEST && self.alpha == 0.0 {
            return Err(ConfigError::new("initial", self.initial, "0.001 to 1 with alpha=0"));
        }
        ConfigError::unless_in("buffer", self.buffer, Bytes::ZERO..=Bytes::new(1_000_000_000_000))
    }

    fn virtual_buffer(&self, limit: QueueLimit) -> f64 {
        if self.buffer > Bytes::ZERO {
            return self.buffer.get() as f64;
        }
        let packets = limit.packets.map(|packets| Bytes::new(packets.saturating_mul(PACKET)));
        let smallest = packets.into_iter().chain(limit.bytes).min();
        smallest.unwrap_or(Bytes::new(100 * PACKET)).get() as f64
    }
}

/// State of AVQ, in the paper's terms.
#[derive(Clone, Debug)]
pub struct Vars {
    /// VQ: bytes in the virtual queue.
    pub vq: f64,
    /// The virtual capacity in bytes/s; `None` before the link's rate is known.
    pub virtual_capacity: Option<f64>,
    /// When the virtual queue was last served.
    pub served: Timestamp,
    /// s: when the virtual capacity was last adapted.
    pub adapted: Timestamp,
}

/// The law of AVQ.
#[derive(Clone, Debug)]
pub struct Law {
    config: Config,
    /// B: the virtual buffer in bytes.
    buffer: f64,
    vars: Vars,
}

impl Law {
    /// A law for a queue with this limit.
    pub fn new(config: Config, limit: QueueLimit) -> Self {
        let vars = Vars { vq: 0.0, virtual_capacity: None, served: Timestamp::ZERO, adapted: Timestamp::ZERO };
        Self { buffer: config.virtual_buffer(limit), vars, config }
    }

    /// The state.
    pub fn vars(&self) -> &Vars {
        &self.vars
    }

    /// A packet of `size` arrives; `capable` says that it can be marked.
    pub fn on_arrival(&mut self, now: Timestamp, size: u32, capable: bool, rate: Option<Rate>) -> Decision {
        let Some(rate) = rate else { return Decision::Pass };
        let (c, b) = (rate.bits_per_sec() as f64 / 8.0, f64::from(size));
        let Vars { vq, virtual_capacity, served, adapted } = &mut self.vars;
        let capacity = virtual_capacity.get_or_insert_with(|| {
            // The first packet that is seen begins both clocks.
            (*served, *adapted) = (now, now);
            c * self.config.initial
        });
        // VQ <- max(VQ - C~ (t - s), 0), then the packet if it fits.
        *vq = (*vq - *capacity * now.since(*served).as_nanos() as f64 / 1e9).max(0.0);
        *served = now;
        let fits = *vq + b <= self.buffer;
        if fits {
            *vq += b;
        }
        let decision = match (fits, capable && self.config.ecn) {
            (true, _) => Decision::Pass,
            (false, true) => Decision::Signal,
            (false, false) => Decision::Drop,
        };
        // The capacity follows accepted packets, so a dropped packet does not count.
        let accepted = if decision == Decision::Drop { 0.0 } else { b };
        // C~ <- max(min(C~ + alpha gamma C (t - s), C) - alpha b, 0).
        let elapsed = now.since(*adapted).as_nanos() as f64 / 1e9;
        let Config { alpha, gamma, .. } = self.config;
        *capacity = ((*capacity + alpha * gamma * c * elapsed).min(c) - alpha * accepted).max(0.0);
        *adapted = now;
        decision
    }
}

/// One queue under the law of AVQ.
#[derive(Clone, Debug)]
pub struct Avq {
    law: Law,
    rate: LinkRate,
    queue: Fifo,
    stats: QueueStats,
}

impl Avq {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            law: Law::new(config, link.limit),
            rate: LinkRate::new(link.rate),
            queue: Fifo::new(link.limit),
            stats: QueueStats::default(),
        }
    }
}

impl QueueDiscipline for Avq {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let decision = self.law.on_arrival(context.now, packet.size, packet.ecn.is_capable(), self.rate.get());
        if !self.queue.admits(packet.size, context.in_service) {
            self.stats.dropped_full += 1;
            context.dropped.push(packet);
        } else if decision.keeps(&mut packet, &mut self.stats) {
            self.queue.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let packet = self.queue.pop()?;
        self.rate.on_departure(context.now, packet.size, self.queue.bytes());
        Some(packet)
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
    use crate::time::Duration;

    /// 8 Mbit/s: a packet of 1000 bytes per ms.
    const RATE: Option<Rate> = Some(Rate::from_mbit(8));

    fn law(config: Config) -> Law {
        Law::new(config, QueueLimit { bytes: Some(Bytes::new(3000)), ..QueueLimit::default() })
    }

    fn ms(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_virtual_queue_is_served_at_the_virtual_capacity() {
        let mut law = law(Config { alpha: 0.0, initial: 0.5, ..Config::default() });
        // Three packets fill 3000 bytes. 0.5 of 1,000,000 bytes/s serve 500 bytes in a ms: no room for another one yet,
        // 1000 bytes after 2 ms.
        for _ in 0..3 {
            assert_eq!(law.on_arrival(ms(0), 1000, true, RATE), Decision::Pass);
        }
        assert_eq!(law.on_arrival(ms(1), 1000, true, RATE), Decision::Signal);
        assert_eq!(law.vars.vq, 2500.0);
        assert_eq!(law.on_arrival(ms(2), 1000, true, RATE), Decision::Pass);
        assert_eq!(law.vars.vq, 3000.0);
    }

    #[test]
    fn the_virtual_capacity_follows_the_arrivals() {
        let mut law = law(Config { alpha: 0.15, gamma: 0.98, initial: 0.8, ..Config::default() });
        // At once: 800,000 - 0.15 x 1000 = 799,850. A ms later 0.15 x 0.98 x 1,000,000 x 0.001 = 147 more and 150 less.
        law.on_arrival(ms(0), 1000, true, RATE);
        assert!((law.vars.virtual_capacity.unwrap_or_default() - 799_850.0).abs() < 1e-6);
        law.on_arrival(ms(1), 1000, true, RATE);
        assert!((law.vars.virtual_capacity.unwrap_or_default() - 799_847.0).abs() < 1e-6);
        // 10 s later it is the link's rate, less the packet.
        law.on_arrival(ms(10_001), 1000, true, RATE);
        assert!((law.vars.virtual_capacity.unwrap_or_default() - 999_850.0).abs() < 1e-6);
    }

    #[test]
    fn a_dropped_packet_does_not_lower_the_capacity() {
        let mut law = law(Config { initial: 0.5, ..Config::default() });
        for _ in 0..3 {
            law.on_arrival(ms(0), 1000, false, RATE);
        }
        let before = law.vars.virtual_capacity;
        assert_eq!(law.on_arrival(ms(0), 1000, false, RATE), Decision::Drop);
        assert_eq!(law.vars.virtual_capacity, before);
        assert_eq!(law.on_arrival(ms(0), 1000, true, RATE), Decision::Signal);
        assert_ne!(law.vars.virtual_capacity, before);
    }

    #[test]
    fn a_virtual_capacity_of_nothing_grows_again() {
        // 10 x 1000 bytes/s less with each packet at once: nothing of 20,000 is left after two, and the third fills the
        // buffer.
        let mut law = law(Config { alpha: 10.0, gamma: 0.5, initial: 0.02, ..Config::default() });
        (0..3).for_each(|_| assert_eq!(law.on_arrival(ms(0), 1000, false, RATE), Decision::Pass));
        assert_eq!((law.vars.vq, law.vars.virtual_capacity), (3000.0, Some(0.0)));
        // 10 x 0.5 x 1,000,000 x 0.001 = 5000 bytes/s after a ms; they serve a packet in 200 ms.
        assert_eq!(law.on_arrival(ms(1), 1000, false, RATE), Decision::Drop);
        assert!((law.vars.virtual_capacity.unwrap_or_default() - 5000.0).abs() < 1e-6);
        assert_eq!(law.on_arrival(ms(200), 1000, false, RATE), Decision::Drop);
        assert_eq!(law.on_arrival(ms(202), 1000, false, RATE), Decision::Pass);
    }

    #[test]
    fn a_virtual_capacity_of_next_to_nothing_grows_while_packets_are_dropped() {
        let mut law = law(Config { initial: 1e-9, ..Config::default() });
        while law.on_arrival(ms(0), 1000, false, RATE) == Decision::Pass {}
        assert_eq!(law.on_arrival(ms(1), 1000, false, RATE), Decision::Drop);
        assert!(law.vars.virtual_capacity > Some(0.0));
        let passed = (2..2000).filter(|&at| law.on_arrival(ms(at), 1000, false, RATE) == Decision::Pass).count();
        assert!(passed > 100, "{passed}");
    }

    #[test]
    fn a_virtual_capacity_that_is_nothing_for_ever_is_refused() {
        let config = |alpha, initial| Config { alpha, initial, ..Config::default() };
        assert_eq!([config(0.0, 1.0).validate(), config(0.1, 0.0).validate()], [Ok(()), Ok(())]);
        assert_eq!(config(0.0, 0.0).validate().unwrap_err().field, "initial");
        assert_eq!(config(0.0, 1e-9).validate().unwrap_err().field, "initial");
        assert_eq!(config(1e-9, 0.0).validate().unwrap_err().field, "alpha");
    }

    #[test]
    fn the_virtual_buffer_is_that_of_the_queue() {
        let of = |limit| Config::default().virtual_buffer(limit);
        assert_eq!(of(QueueLimit::default()), 150_000.0);
        assert_eq!(of(QueueLimit { packets: Some(10), ..QueueLimit::default() }), 15_000.0);
        let both = QueueLimit { packets: Some(10), bytes: Some(Bytes::new(9000)), ..QueueLimit::default() };
        assert_eq!(of(both), 9000.0);
        assert_eq!(Config { buffer: Bytes::new(1), ..Config::default() }.virtual_buffer(both), 1.0);
    }
}
