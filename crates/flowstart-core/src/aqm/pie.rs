//! Proportional integral controller enhanced.
//!
//! Reference: RFC 8033, sections 4 and 5 and appendix A (from memory; its text could not be read again), and for
//! `rules=ns2` the PIE of ns-2.36 (`pie.cc`, read). A probability is corrected periodically by how far the delay is from its
//! reference and how fast it moves; arriving packets are signalled at random with it. Bursts pass for a while after quiet
//! times.
//!
//! Differences from the reference: a queue that is empty has no delay, whatever its last packet waited (Linux does so).
//! Probabilities are exact down to zero. The updates keep a grid of `t_update`; they pause while the queue is empty and an
//! update would change nothing, which no packet can tell. Left out of the RFC's options: derandomization (5.4), turning on
//! and off (5.3).
//!
//! Status: the rules of ns-2 are validated by `ns2-aqm-transient`; those of RFC 8033 by worked examples.

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// RFC 8033, appendix A.
    #[default]
    Rfc8033,
    /// ns-2: other steps of auto-tuning, corrections that are limited upwards (0.02 beyond a probability of 0.1) and
    /// increased (0.02 beyond a delay of 200 ms), a probability that is not limited to 1, and a burst allowance that the
    /// first packet after 1.5 s of quiet starts.
    Ns2,
}

/// How the delay is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// From the time that the last packet waited.
    #[default]
    Timestamps,
    /// From the queue's length and the measured departure rate (RFC 8033, section 5.2).
    DepartureRate,
}

/// Parameters of PIE, under the names of RFC 8033.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
    /// Packets are marked up to this probability and dropped beyond it, 0 to 1; 0 never marks. RFC 8033, section 5.1: 0.1.
    pub mark_ecnth: f64,
    /// `MEAN_PKTSIZE`: nothing is signalled while at most two of them wait, and `byte_mode` scales by it, 1 to 1,000,000
    /// bytes. Default: 1500, a full packet.
    pub mean_packet: Bytes,
    /// Scale the probability by size / `mean_packet` (ns-2's and Linux's byte mode). Default: off.
    pub byte_mode: bool,
    /// How the delay is known. Default: from timestamps, as in RFC 8033, appendix A.
    pub estimator: Estimator,
    /// Bytes that a measurement of the departure rate takes, 1 to 1 GB. RFC 8033, section 5.2: 16 KiB.
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

/// State of PIE, under the names of RFC 8033.
#[derive(Clone, Debug)]
pub struct Vars {
    /// Probability of a signal.
    pub drop_prob: f64,
    /// Delay now.
    pub current_qdelay: Duration,
    /// Delay at the last update.
    pub qdelay_old: Duration,
    /// For how long bursts still pass.
    pub burst_allowance: Duration,
    /// Where ns-2's burst allowance stands.
    pub burst_state: BurstState,
    /// Quiet updates since ns-2's allowance was used up.
    pub burst_reset: u64,
}

/// The law of PIE for one queue. It sees lengths, sizes and waiting times, not the queue.
#[derive(Clone, Debug)]
pub struct Law {
    config: Config,
    vars: Vars,
    departures: DepartureRate,
}

impl Law {
    /// A law for an empty queue.
    pub fn new(config: Config) -> Self {
        let cycle = if config.rules == Rules::Ns2 { Cycle::Ns2 } else { Cycle::Rfc8033 };
        Self {
            vars: Vars {
                drop_prob: 0.0,
                current_qdelay: Duration::ZERO,
                qdelay_old: Duration::ZERO,
                burst_allowance: Duration::ZERO,
                burst_state: BurstState::NoBurst,
                burst_reset: 0,
            },
            departures: DepartureRate::new(cycle, config.dq_threshold),
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

    fn is_calm(&self) -> bool {
        let half = self.config.qdelay_ref / 2;
        self.vars.current_qdelay < half && self.vars.qdelay_old < half
    }

    /// A packet of `size` arrives while `waiting` bytes wait, the one in service not counted.
    pub fn on_arrival(&mut self, waiting: Bytes, size: u32, rng: &mut Substream) -> Decision {
        match self.config.rules {
            Rules::Rfc8033 if self.vars.drop_prob == 0.0 && self.is_calm() => {
                self.vars.burst_allowance = self.config.max_burst;
            }
            Rules::Ns2
                if self.vars.burst_allowance == Duration::ZERO && self.vars.burst_state == BurstState::NoBurst =>
            {
                // The packet that starts the allowance is not covered by it.
                self.vars.burst_state = BurstState::InBurstProtecting;
                self.vars.burst_allowance = self.config.max_burst;
                return self.drop_early(waiting, size, rng);
            }
            Rules::Rfc8033 | Rules::Ns2 => {}
        }
        if self.vars.burst_allowance > Duration::ZERO {
            return Decision::Pass;
        }
        self.drop_early(waiting, size, rng)
    }

    /// `drop_early` of RFC 8033, section 4.1, with the threshold for marks of section 5.1.
    fn drop_early(&self, waiting: Bytes, size: u32, rng: &mut Substream) -> Decision {
        let Vars { drop_prob, qdelay_old, .. } = self.vars;
        let near_empty = qdelay_old < self.config.qdelay_ref / 2 && drop_prob < 0.2;
        if near_empty || waiting <= self.config.mean_packet * 2 {
            return Decision::Pass;
        }
        let scale = if self.config.byte_mode { f64::from(size) / self.config.mean_packet.get() as f64 } else { 1.0 };
        let probability = drop_prob * scale;
        if rng.uniform() >= probability {
            Decision::Pass
        } else if probability < self.config.mark_ecnth {
            Decision::Signal
        } else {
            Decision::Drop
        }
    }

    /// A packet of `size` that has waited for `sojourn` leaves; `waiting` bytes stay behind.
    pub fn on_departure(&mut self, now: Timestamp, size: u32, sojourn: Duration, waiting: Bytes) {
        match self.config.estimator {
            Estimator::Timestamps => {
                self.vars.current_qdelay = if waiting == Bytes::ZERO { Duration::ZERO } else { sojourn };
            }
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
            Rules::Rfc8033 => self.update_rfc_8033(),
            Rules::Ns2 => self.update_ns2(measured.is_some()),
        }
        self.vars.qdelay_old = self.vars.current_qdelay;
    }

    /// alpha (`current_qdelay` - `QDELAY_REF`) + beta (`current_qdelay` - `qdelay_old`), before auto-tuning.
    fn correction(&self) -> f64 {
        let delay = self.vars.current_qdelay.as_secs();
        self.config.alpha * (delay - self.config.qdelay_ref.as_secs())
            + self.config.beta * (delay - self.vars.qdelay_old.as_secs())
    }

    fn update_rfc_8033(&mut self) {
        let p = self.correction() * tuning_rfc_8033(self.vars.drop_prob);
        self.vars.drop_prob += p;
        // Exponential decay when congestion has gone (section 4.2).
        if self.vars.current_qdelay == Duration::ZERO && self.vars.qdelay_old == Duration::ZERO {
            self.vars.drop_prob *= 0.98;
        }
        self.vars.drop_prob = self.vars.drop_prob.clamp(0.0, 1.0);
        self.vars.burst_allowance = self.vars.burst_allowance.saturating_sub(self.config.t_update);
    }

    fn update_ns2(&mut self, measured: bool) {
        let delay = self.vars.current_qdelay;
        if self.vars.burst_allowance > Duration::ZERO {
            self.vars.drop_prob = 0.0;
        } else {
            let mut p = self.correction() * tuning_ns2(self.vars.drop_prob);
            if self.vars.drop_prob >= 0.1 {
                p = p.min(0.02);
            }
            p += self.vars.drop_prob;
            if delay == Duration::ZERO && self.vars.qdelay_old == Duration::ZERO {
                p *= 0.98;
            } else if delay > Duration::from_millis(200) {
                p += 0.02;
            }
            self.vars.drop_prob = p.max(0.0);
        }
        self.vars.burst_allowance = self.vars.burst_allowance.saturating_sub(self.config.t_update);
        let quiet = self.is_calm() && self.vars.drop_prob == 0.0;
        if quiet && measured {
            self.departures.forget();
        }
        if quiet && self.vars.burst_allowance == Duration::ZERO {
            match self.vars.burst_state {
                BurstState::InBurstProtecting => {
                    (self.vars.burst_state, self.vars.burst_reset) = (BurstState::InBurst, 0);
                }
                BurstState::InBurst => {
                    self.vars.burst_reset += 1;
                    if self.vars.burst_reset > 1_500_000_000 / self.config.t_update.as_nanos().max(1) {
                        (self.vars.burst_state, self.vars.burst_reset) = (BurstState::NoBurst, 0);
                    }
                }
                BurstState::NoBurst => {}
            }
        } else if self.vars.burst_state == BurstState::InBurst {
            self.vars.burst_reset = 0;
        }
    }

    /// Makes up for updates that were left out because the law was at rest ([`Law::rests`]) under the rules of RFC 8033.
    pub fn skipped_at_rest(&mut self, updates: u64) {
        let counted_down = Duration::from_nanos(self.config.t_update.as_nanos().saturating_mul(updates));
        self.vars.burst_allowance = self.vars.burst_allowance.saturating_sub(counted_down);
    }

    /// Whether updates change nothing that a packet could tell as long as the queue, which is empty, stays so.
    pub fn rests(&self) -> bool {
        let Vars { drop_prob, current_qdelay, qdelay_old, burst_state, .. } = self.vars;
        // RFC 8033 renews the allowance with the next packet, so that it need not be counted down.
        let renewed = self.config.rules == Rules::Rfc8033 || burst_state == BurstState::NoBurst;
        drop_prob == 0.0 && current_qdelay == Duration::ZERO && qdelay_old == Duration::ZERO && renewed
    }
}

/// The factor that auto-tuning scales a correction with (RFC 8033, section 4.2).
fn tuning_rfc_8033(drop_prob: f64) -> f64 {
    match drop_prob {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
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
