//! Proportional integral controller enhanced.
//!
//! Reference: RFC 8033, sections 4 and 5 and appendices A and B, and for `rules=ns2` the PIE of ns-2.36 (`pie.cc`). A
//! probability is corrected periodically by the delay's deviation from its reference and by the delay's change.
//! Arriving packets are signalled at random with this probability. Bursts pass for a while after quiet times.
//!
//! Checked line by line against the RFC's pseudo-code, Linux's `sch_pie.c` and ns-3's `pie-queue-disc.cc`. The basic
//! law is that of appendix A. Of the options of section 5, marks (5.1) are on by default; the departure rate (5.2),
//! derandomization (5.4) and the cap of corrections (5.5) are keys. All are optional in the RFC; Linux has the last two
//! always, ns-3 has the cap by default, and Linux's `pie` marks only if it is told `ecn`.
//!
//! Differences from the reference: an empty queue has no delay, regardless of its last packet's wait (as in Linux and
//! ns-3). Probabilities are exact down to zero. The updates keep a grid of `t_update`; they pause while the queue is
//! empty and an update would change nothing, which makes no difference to packets. Packets that an allowance lets pass
//! do not count for derandomization (as in Linux; in appendix B they do). A mark also restarts derandomization, which
//! appendix B leaves open. The probability decays while there is no delay (appendix A), not below half of the reference
//! (B). Turning PIE on and off (5.3) is left out. Three features of Linux are left out: 2 % more beyond 250 ms, an
//! allowance counted by departures, the current delay in `near_empty`.
//!
//! Status: the rules of ns-2 are validated by `ns2-aqm-transient`; those of RFC 8033 by worked examples.

use super::decision::Decision;
use super::departure_rate::{Cycle, DepartureRate};
use super::fifo::Fifo;
use super::grid::next_on_grid;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::rng::Substream;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "signals at random, with a probability that steers the queuing delay";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 8033";

/// Which version of the algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Rules {
    /// RFC 8033, appendix A.
    #[default]
    Rfc8033,
    /// ns-2: other steps of auto-tuning, corrections that are limited upwards (0.02 beyond a probability of 0.1) and
    /// increased (0.02 beyond a delay of 200 ms), a probability that is not limited to 1, and a burst allowance that
    /// starts with the first packet after 1.5 s of quiet.
    Ns2,
}

/// How the delay is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Estimator {
    /// From the time that the last packet waited.
    #[default]
    Timestamps,
    /// From the queue's length and the measured departure rate (RFC 8033, section 5.2).
    DepartureRate,
}

/// Parameters of PIE, under the names of RFC 8033.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Delay to steer to, 1 us to 100 s. RFC 8033, section 4.2: 15 ms.
    pub qdelay_ref: Duration,
    /// Time between updates of the probability, 100 us to 100 s. RFC 8033, section 4.2: 15 ms.
    pub t_update: Duration,
    /// Weight of the deviation from the reference in Hz, 0 to 1000. RFC 8033, section 4.2: 0.125.
    pub alpha: f64,
    /// Weight of the delay's change in Hz, 0 to 1000. RFC 8033, section 4.2: 1.25.
    pub beta: f64,
    /// How long a burst passes, 0 to 100 s. RFC 8033, section 4.4: 150 ms.
    pub max_burst: Duration,
    /// Packets are marked up to this probability and dropped beyond it, 0 to 1; 0 never marks. RFC 8033, section 5.1:
    /// 0.1.
    pub mark_ecnth: f64,
    /// `MEAN_PKTSIZE`: nothing is signalled while at most two of them wait, and `byte_mode` scales by it, 1 to
    /// 1,000,000 bytes. Default: 1500, a full packet.
    pub mean_packet: Bytes,
    /// Scale the probability by size / `mean_packet` (ns-2's and Linux's byte mode). Default: off.
    pub byte_mode: bool,
    /// Spread signals: none before the probabilities of the packets since the last signal add up to 0.85, and always
    /// one at 8.5 (RFC 8033, section 5.4). Signals are then about 1.85 / p packets apart, not 1 / p. Default: off, as
    /// in appendix A.
    pub derandomization: bool,
    /// A correction adds at most 0.02 once the probability is 0.1 (RFC 8033, section 5.5). Default: off, as in appendix
    /// A.
    pub cap_drop_adjustment: bool,
    /// The source of the delay. Default: timestamps, as in RFC 8033, appendix A.
    pub estimator: Estimator,
    /// Bytes of a measurement of the departure rate, 1 to 1 GB. RFC 8033, section 5.2: 16 KiB.
    pub dq_threshold: Bytes,
    /// Which version. Default: RFC 8033.
    pub rules: Rules,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            qdelay_ref: Duration::from_millis(15),
            t_update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            mark_ecnth: 0.1,
            mean_packet: Bytes::new(1500),
            byte_mode: false,
            derandomization: false,
            cap_drop_adjustment: false,
            estimator: Estimator::Timestamps,
            dq_threshold: Bytes::new(1 << 14),
            rules: Rules::Rfc8033,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let longest = Duration::from_millis(100_000);
        ConfigError::unless_in("qdelay_ref", self.qdelay_ref, Duration::from_micros(1)..=longest)?;
        ConfigError::unless_in("t_update", self.t_update, Duration::from_micros(100)..=longest)?;
        ConfigError::unless_in("alpha", self.alpha, 0.0..=1000.0)?;
        ConfigError::unless_in("beta", self.beta, 0.0..=1000.0)?;
        ConfigError::unless_in("max_burst", self.max_burst, Duration::ZERO..=longest)?;
        ConfigError::unless_in("mark_ecnth", self.mark_ecnth, 0.0..=1.0)?;
        ConfigError::unless_in("mean_packet", self.mean_packet, Bytes::new(1)..=Bytes::new(1_000_000))?;
        ConfigError::unless_in("dq_threshold", self.dq_threshold, Bytes::new(1)..=Bytes::new(1_000_000_000))
    }
}

/// Where ns-2's burst allowance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstState {
    /// The next packet starts an allowance.
    NoBurst,
    /// The allowance is used up.
    InBurst,
    /// An allowance was started, and no quiet time has followed.
    InBurstProtecting,
}

/// State of PIE for one queue, under the names of RFC 8033.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    /// Probability of a signal.
    pub drop_prob: f64,
    /// The probabilities of the packets since the last signal, added up; for derandomization.
    pub accu_prob: f64,
    /// Delay now.
    pub current_qdelay: Duration,
    /// Delay at the last update.
    pub qdelay_old: Duration,
    /// For how long bursts still pass.
    pub burst_allowance: Duration,
}

/// The law of RFC 8033 with delays from timestamps. Its functions take the configuration, so many queues can share one.
impl Vars {
    fn is_calm(&self, config: &Config) -> bool {
        let half = config.qdelay_ref / 2;
        self.current_qdelay < half && self.qdelay_old < half
    }

    /// A packet of `size` arrives while `waiting` bytes wait, the one in service not counted.
    #[inline]
    pub fn on_arrival(&mut self, config: &Config, waiting: Bytes, size: u32, rng: &mut Substream) -> Decision {
        if self.drop_prob == 0.0 && self.is_calm(config) {
            self.burst_allowance = config.max_burst;
        }
        if self.burst_allowance > Duration::ZERO {
            return Decision::Pass;
        }
        self.drop_early(config, waiting, size, rng)
    }

    /// `drop_early` of RFC 8033, section 4.1, with the threshold for marks of section 5.1.
    fn drop_early(&mut self, config: &Config, waiting: Bytes, size: u32, rng: &mut Substream) -> Decision {
        let near_empty = self.qdelay_old < config.qdelay_ref / 2 && self.drop_prob < 0.2;
        if near_empty || waiting <= config.mean_packet * 2 {
            return Decision::Pass;
        }
        let scale = if config.byte_mode { f64::from(size) / config.mean_packet.get() as f64 } else { 1.0 };
        let probability = self.drop_prob * scale;
        let signals = match config.derandomization {
            true => self.derandomized(probability, rng),
            false => rng.uniform() < probability,
        };
        match signals {
            false => Decision::Pass,
            true if self.drop_prob < config.mark_ecnth => Decision::Signal,
            true => Decision::Drop,
        }
    }

    /// Section 5.4: whether to signal, with a probability for the time between two bounds of the sum of probabilities.
    fn derandomized(&mut self, probability: f64, rng: &mut Substream) -> bool {
        self.accu_prob = if probability > 0.0 { self.accu_prob + probability } else { 0.0 };
        let signals = self.accu_prob >= 8.5 || self.accu_prob >= 0.85 && rng.uniform() < probability;
        if signals {
            self.accu_prob = 0.0;
        }
        signals
    }

    /// A packet was dropped because it did not fit.
    pub fn on_full(&mut self) {
        self.accu_prob = 0.0;
    }

    /// A packet that has waited for `sojourn` leaves; `waiting` bytes stay behind.
    #[inline]
    pub fn on_departure(&mut self, sojourn: Duration, waiting: Bytes) {
        self.current_qdelay = if waiting == Bytes::ZERO { Duration::ZERO } else { sojourn };
    }

    /// `calculate_drop_prob`: call it every `t_update`.
    #[inline]
    pub fn update(&mut self, config: &Config) {
        self.drop_prob = self.corrected(config, self.correction(config));
        self.burst_allowance = self.burst_allowance.saturating_sub(config.t_update);
        self.qdelay_old = self.current_qdelay;
    }

    /// The probability after an update with this correction, before auto-tuning.
    #[inline]
    fn corrected(&self, config: &Config, correction: f64) -> f64 {
        let mut p = correction * tuning_rfc_8033(self.drop_prob);
        if config.cap_drop_adjustment && self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        p += self.drop_prob;
        if self.current_qdelay == Duration::ZERO && self.qdelay_old == Duration::ZERO {
            p = decayed(p);
        }
        p.clamp(0.0, 1.0)
    }

    /// alpha (`current_qdelay` - `QDELAY_REF`) + beta (`current_qdelay` - `qdelay_old`), before auto-tuning.
    fn correction(&self, config: &Config) -> f64 {
        let delay = self.current_qdelay.as_secs();
        config.alpha * (delay - config.qdelay_ref.as_secs()) + config.beta * (delay - self.qdelay_old.as_secs())
    }

    /// Makes up for updates skipped while the law was at rest ([`Vars::rests`]).
    pub fn skipped_at_rest(&mut self, config: &Config, updates: u64) {
        let counted_down = Duration::from_nanos(config.t_update.as_nanos().saturating_mul(updates));
        self.burst_allowance = self.burst_allowance.saturating_sub(counted_down);
    }

    /// Whether updates make no difference to packets as long as the empty queue stays empty. The next packet renews the
    /// allowance, so it need not be counted down.
    #[inline]
    pub fn rests(&self) -> bool {
        self.drop_prob == 0.0 && self.current_qdelay == Duration::ZERO && self.qdelay_old == Duration::ZERO
    }
}

/// The law of PIE for one queue, with any rules and estimator. It sees lengths, sizes and waiting times, not the queue.
#[derive(Clone, Debug)]
pub struct Law {
    config: Config,
    vars: Vars,
    departures: DepartureRate,
    /// Where ns-2's burst allowance stands.
    burst_state: BurstState,
    /// Quiet updates since ns-2's allowance was used up.
    burst_reset: u64,
}

impl Law {
    /// A law for an empty queue.
    pub fn new(config: Config) -> Self {
        let cycle = if config.rules == Rules::Ns2 { Cycle::Ns2 } else { Cycle::Rfc8033 };
        Self {
            vars: Vars::default(),
            departures: DepartureRate::new(cycle, config.dq_threshold),
            burst_state: BurstState::NoBurst,
            burst_reset: 0,
            config,
        }
    }

    /// The state.
    pub fn vars(&self) -> &Vars {
        &self.vars
    }

    /// Time between two calls of [`Law::update`].
    pub fn t_update(&self) -> Duration {
        self.config.t_update
    }

    /// A packet of `size` arrives while `waiting` bytes wait, the one in service not counted.
    pub fn on_arrival(&mut self, waiting: Bytes, size: u32, rng: &mut Substream) -> Decision {
        let Self { config, vars, .. } = self;
        if config.rules == Rules::Rfc8033 {
            return vars.on_arrival(config, waiting, size, rng);
        }
        if vars.burst_allowance > Duration::ZERO {
            return Decision::Pass;
        }
        if self.burst_state == BurstState::NoBurst {
            // The packet that starts the allowance is not covered by it.
            self.burst_state = BurstState::InBurstProtecting;
            vars.burst_allowance = config.max_burst;
        }
        vars.drop_early(config, waiting, size, rng)
    }

    /// A packet was dropped because it did not fit.
    pub fn on_full(&mut self) {
        self.vars.on_full();
    }

    /// A packet of `size` that has waited for `sojourn` leaves; `waiting` bytes stay behind.
    pub fn on_departure(&mut self, now: Timestamp, size: u32, sojourn: Duration, waiting: Bytes) {
        match self.config.estimator {
            Estimator::Timestamps => self.vars.on_departure(sojourn, waiting),
            Estimator::DepartureRate => self.departures.on_departure(now, size, waiting),
        }
    }

    /// `calculate_drop_prob`: call it every [`Law::t_update`], with the bytes that wait.
    pub fn update(&mut self, waiting: Bytes) {
        let measured = match self.config.estimator {
            Estimator::Timestamps => Some(self.vars.current_qdelay),
            Estimator::DepartureRate => self.departures.delay(waiting),
        };
        self.vars.current_qdelay = measured.unwrap_or_default();
        match self.config.rules {
            Rules::Rfc8033 => self.vars.update(&self.config),
            Rules::Ns2 => self.update_ns2(measured.is_some()),
        }
    }

    fn update_ns2(&mut self, measured: bool) {
        let Self { config, vars, .. } = self;
        let delay = vars.current_qdelay;
        if vars.burst_allowance > Duration::ZERO {
            vars.drop_prob = 0.0;
        } else {
            let mut p = vars.correction(config) * tuning_ns2(vars.drop_prob);
            if vars.drop_prob >= 0.1 {
                p = p.min(0.02);
            }
            p += vars.drop_prob;
            if delay == Duration::ZERO && vars.qdelay_old == Duration::ZERO {
                p = decayed(p);
            } else if delay > Duration::from_millis(200) {
                p += 0.02;
            }
            vars.drop_prob = p.max(0.0);
        }
        vars.burst_allowance = vars.burst_allowance.saturating_sub(config.t_update);
        let quiet = vars.is_calm(config) && vars.drop_prob == 0.0;
        if quiet && measured {
            self.departures.forget();
        }
        if quiet && vars.burst_allowance == Duration::ZERO {
            match self.burst_state {
                BurstState::InBurstProtecting => (self.burst_state, self.burst_reset) = (BurstState::InBurst, 0),
                BurstState::InBurst => {
                    self.burst_reset += 1;
                    if self.burst_reset > 1_500_000_000 / config.t_update.as_nanos().max(1) {
                        (self.burst_state, self.burst_reset) = (BurstState::NoBurst, 0);
                    }
                }
                BurstState::NoBurst => {}
            }
        } else if self.burst_state == BurstState::InBurst {
            self.burst_reset = 0;
        }
        vars.qdelay_old = delay;
    }

    /// Whether updates change nothing that a packet could tell as long as the queue, which is empty, stays so.
    pub fn rests(&self) -> bool {
        self.vars.rests() && (self.config.rules == Rules::Rfc8033 || self.burst_state == BurstState::NoBurst)
    }
}

/// Exponential decay after congestion (section 4.2). The smallest numbers of a double round back to themselves. So
/// without `alpha`, which also reduces the probability, the updates of an empty queue would never end.
#[inline]
fn decayed(p: f64) -> f64 {
    let p = p * 0.98;
    if p < f64::MIN_POSITIVE { 0.0 } else { p }
}

/// The factor by which auto-tuning scales a correction (RFC 8033, section 4.2). It has no branches, because a CPU
/// cannot predict them while the probability rises.
#[inline]
fn tuning_rfc_8033(drop_prob: f64) -> f64 {
    const BOUNDS: [f64; 6] = [0.000_001, 0.000_01, 0.000_1, 0.001, 0.01, 0.1];
    const FACTORS: [f64; 7] = [1.0 / 2048.0, 1.0 / 512.0, 1.0 / 128.0, 1.0 / 32.0, 1.0 / 8.0, 1.0 / 2.0, 1.0];
    FACTORS[BOUNDS.iter().map(|bound| usize::from(drop_prob >= *bound)).sum::<usize>()]
}

/// The factor in ns-2, outside its mode for DOCSIS.
fn tuning_ns2(drop_prob: f64) -> f64 {
    match drop_prob {
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        p if p < 1.0 => 2.0,
        p if p < 10.0 => 8.0,
        _ => 32.0,
    }
}

/// One queue under the law of PIE.
#[derive(Clone, Debug)]
pub struct Pie {
    law: Law,
    queue: Fifo,
    stats: QueueStats,
    next_update: Timestamp,
}

impl Pie {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            law: Law::new(config),
            queue: Fifo::new(link.limit),
            stats: QueueStats::default(),
            next_update: Timestamp::NEVER,
        }
    }

    /// The law.
    pub fn law(&self) -> &Law {
        &self.law
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.next_update == Timestamp::NEVER {
            self.next_update = next_on_grid(context.now, self.law.t_update());
        }
        if !self.queue.admits(packet.size, context.in_service) {
            self.stats.dropped_full += 1;
            self.law.on_full();
            context.dropped.push(packet);
            return;
        }
        let decision = self.law.on_arrival(self.queue.bytes(), packet.size, context.rng);
        if decision.keeps(&mut packet, &mut self.stats) {
            self.queue.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let packet = self.queue.pop()?;
        self.law.on_departure(context.now, packet.size, packet.sojourn(context.now), self.queue.bytes());
        Some(packet)
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn next_timer(&self) -> Timestamp {
        self.next_update
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        self.law.update(self.queue.bytes());
        let pauses = self.queue.is_empty() && self.law.rests();
        self.next_update = if pauses { Timestamp::NEVER } else { next_on_grid(context.now, self.law.t_update()) };
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
#[path = "pie_tests.rs"]
mod tests;
