//! Wires: packets are lost, delayed at random and reordered.
//!
//! Everything is a function of time, so the channel does not depend on its users.

use flowstart_core::rng::{Substream, mix, name_hash, noise};
use flowstart_core::time::{Duration, Timestamp};

use super::LinkConfig;
use super::varying_rate::Steps;

/// Random loss on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost with this probability.
    Independent {
        /// Probability of loss, 0..1.
        probability: f64,
    },
    /// Two states that last exponentially distributed times (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Mean time in the good state, where nothing is lost.
        mean_good: Duration,
        /// Mean time in the bad state.
        mean_bad: Duration,
        /// Probability of loss in the bad state, 0..1.
        probability_bad: f64,
    },
}

/// Variable delay on the wire that keeps the order of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Largest extra delay; it moves between 0 and this, uniform at every step.
    pub amplitude: Duration,
    /// Time between two steps; between them the delay is interpolated.
    pub step: Duration,
}

/// Extra delay on the wire that is constant during a step. Packets keep their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelaySteps {
    /// Largest extra delay; each step draws between 0 and this.
    pub amplitude: Duration,
    /// Length of a step. A rate with steps of the same length changes at the same times.
    pub every: Duration,
}

/// Packets that arrive later than packets sent after them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is held back, 0..1.
    pub probability: f64,
    /// The delay.
    pub delay: Duration,
}

/// The effects of a wire on packets besides its propagation delay.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    last_arrival: Timestamp,
    loss: Option<LossProcess>,
    jitter: Option<Jitter>,
    /// The largest extra delay, and when it changes.
    delay_steps: Option<(Duration, Steps)>,
    reordering: Option<Reordering>,
    /// The time from one arrival of packets together to the next, and the place of the first.
    aggregation: Option<(u64, u64)>,
    /// Seed of jitter and reordering.
    seed: u64,
}

impl Channel {
    /// The channel of link number `index` in the run with this seed.
    pub(super) fn new(config: &LinkConfig, seed: u64, index: u64) -> Self {
        let steps = |steps: DelaySteps| (steps.amplitude, Steps::new(seed, steps.every));
        let mixed = mix(seed.wrapping_add(index));
        let period = config.aggregation.map(Duration::as_nanos).filter(|period| *period > 0);
        let first = |period: u64| (noise(mixed, const { name_hash("aggregation") }, 0) * period as f64) as u64;
        Self {
            last_arrival: Timestamp::ZERO,
            loss: config.loss.map(|model| LossProcess::new(model, seed, index)),
            jitter: config.jitter,
            delay_steps: config.delay_steps.map(steps),
            reordering: config.reordering,
            aggregation: period.map(|period| (period, first(period))),
            seed: mixed,
        }
    }

    /// Whether a packet that leaves now is lost.
    pub(super) fn loses(&mut self, now: Timestamp) -> bool {
        self.loss.as_mut().is_some_and(|process| process.loses(now))
    }

    /// The arrival time of a packet that leaves now, with this propagation delay.
    pub(super) fn arrival(&mut self, now: Timestamp, delay: Duration) -> Timestamp {
        let mut arrival = now + delay;
        if let Some((amplitude, steps)) = self.delay_steps {
            let extra = amplitude.scale(noise(self.seed, const { name_hash("delay steps") }, steps.at(now)));
            arrival = (arrival + extra).max(self.last_arrival);
        }
        if let Some(jitter) = self.jitter {
            arrival = (arrival + jitter.at(self.seed, now)).max(self.last_arrival);
        }
        self.last_arrival = arrival;
        if let Some(reordering) = self.reordering
            && noise(self.seed, const { name_hash("reordering") }, now.as_nanos()) < reordering.probability
        {
            arrival += reordering.delay;
        }
        if let Some((period, first)) = self.aggregation {
            let within = (arrival.as_nanos() + (period - first)) % period;
            arrival += Duration::from_nanos((period - within) % period);
        }
        arrival
    }
}

impl Jitter {
    /// The extra delay at `now`: uniform values at the steps, interpolated between them.
    fn at(&self, seed: u64, now: Timestamp) -> Duration {
        let step = self.step.as_nanos().max(1);
        let (index, within) = (now.as_nanos() / step, now.as_nanos() % step);
        let value = |index| noise(seed, const { name_hash("jitter") }, index);
        let fraction = within as f64 / step as f64;
        self.amplitude.scale(value(index) * (1.0 - fraction) + value(index + 1) * fraction)
    }
}

/// A loss model with its state.
#[derive(Clone, Debug)]
struct LossProcess {
    model: LossModel,
    seed: u64,
    rng: Substream,
    bad: bool,
    /// When the Gilbert-Elliott state changes next.
    changes_at: Timestamp,
}

impl LossProcess {
    fn new(model: LossModel, seed: u64, index: u64) -> Self {
        let mut process = Self {
            model,
            seed: mix(seed ^ index),
            rng: Substream::new(seed, "loss state", index),
            bad: true,
            changes_at: Timestamp::ZERO,
        };
        process.advance(Timestamp::ZERO);
        process
    }

    fn advance(&mut self, now: Timestamp) {
        let LossModel::GilbertElliott { mean_good, mean_bad, .. } = self.model else { return };
        while self.changes_at <= now {
            self.bad = !self.bad;
            let mean = if self.bad { mean_bad } else { mean_good };
            let stay = self.rng.exponential(mean.as_secs());
            self.changes_at += Duration::from_secs(stay).max(Duration::from_nanos(1));
        }
    }

    fn loses(&mut self, now: Timestamp) -> bool {
        self.advance(now);
        let probability = match self.model {
            LossModel::Independent { probability } => probability,
            LossModel::GilbertElliott { probability_bad, .. } if self.bad => probability_bad,
            LossModel::GilbertElliott { .. } => 0.0,
        };
        noise(self.seed, const { name_hash("loss") }, now.as_nanos()) < probability
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::units::Rate;

    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn what_is_aggregated_arrives_together_and_no_later_than_the_period() {
        let (period, delay) = (Duration::from_millis(5), Duration::from_millis(20));
        let config = LinkConfig { aggregation: Some(period), ..LinkConfig::new(Rate::from_mbit(10), delay) };
        for seed in 0..5 {
            let mut channel = Channel::new(&config, seed, 0);
            // A packet each millisecond: five of them arrive at a time.
            let arrivals: Vec<Timestamp> =
                (0..100).map(|sent| channel.arrival(at(sent * 1_000_000 + 1), delay)).collect();
            for (sent, arrival) in arrivals.iter().enumerate() {
                let waited = arrival.since(at(sent as u64 * 1_000_000 + 1) + delay);
                assert!(waited < period, "{waited}");
            }
            let groups: Vec<usize> = arrivals.chunk_by(|a, b| a == b).map(<[Timestamp]>::len).collect();
            assert!(groups[1..groups.len() - 1].iter().all(|count| *count == 5), "{groups:?}");
        }
    }

    #[test]
    fn loss_models_have_their_rates_and_bursts() {
        let losses = |model| {
            let mut process = LossProcess::new(model, 5, 0);
            let outcome: Vec<bool> = (0..200_000).map(|i| process.loses(at(i * 100_000))).collect();
            let rate = outcome.iter().filter(|lost| **lost).count() as f64 / outcome.len() as f64;
            let pairs = outcome.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
            (rate, pairs / outcome.len() as f64 / rate)
        };
        let (rate, next_too) = losses(LossModel::Independent { probability: 0.02 });
        assert!((rate - 0.02).abs() < 0.002 && next_too < 0.04, "{rate} {next_too}");
        // Bad for 10 ms of 500 ms, half of the packets lost there: 1 %; after a loss the state is mostly still bad.
        let (rate, next_too) = losses(LossModel::GilbertElliott {
            mean_good: Duration::from_millis(490),
            mean_bad: Duration::from_millis(10),
            probability_bad: 0.5,
        });
        assert!((rate - 0.01).abs() < 0.004 && next_too > 0.4, "{rate} {next_too}");
    }
}
