//! An element of the network that advises a rate.
//!
//! Reference: draft-ietf-scone-protocol-08, "Applying Throughput Advice Signals". It lowers the rate signal of SCONE
//! packets that pass, never raises one, and never adds a packet. By default it handles every SCONE packet and keeps no
//! state. An element that cannot rewrite all of them marks the first few of a flow and then one in every `refresh`, for
//! which it remembers flows.
//!
//! Differences: the draft wants the datagrams of one pair of addresses changed only a few times per period ("Damage to
//! Other Protocols"). That holds with `refresh` only.
//!
//! Left out: the element does not check whether flows follow the advice ("Monitoring Flows"), and enforces nothing; a
//! policer on the same link can do that.
//!
//! Status: worked examples; scenario `scone`.

use alloc::vec::Vec;

use crate::registry::ConfigError;
use crate::scone::MONITORING_PERIOD;
use crate::scone::wire::RateSignal;
use crate::time::{Duration, Timestamp};
use crate::units::Rate;

/// The flow of a packet, as far as an element tells flows apart.
pub type FlowId = u64;

/// Flows that an element with a refresh time remembers at most; a new one takes the place of the one that was marked
/// first.
const FLOWS: usize = 4096;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The throughput that is advised to each flow; what is said is the next lower signal. No default: a policy.
    pub rate: Rate,
    /// How long a marked flow is left alone; `None`: every SCONE packet is marked. Default `None`. The draft: 20 to 30
    /// s are likely enough.
    pub refresh: Option<Duration>,
    /// SCONE packets of a flow that are marked at its beginning in any case. Default 3; the draft: the first few.
    pub first: u32,
}

impl Config {
    /// An element that advises `rate` in every SCONE packet.
    pub fn new(rate: Rate) -> Self {
        Self { rate, refresh: None, first: 3 }
    }

    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("rate", self.rate, Rate::from_bits_per_sec(100_000)..=Rate::from_mbit(199_526))?;
        ConfigError::unless_in("first", self.first, 1..=1000)?;
        let range = Duration::from_millis(1)..=MONITORING_PERIOD;
        self.refresh.map_or(Ok(()), |refresh| ConfigError::unless_in("refresh", refresh, range))
    }
}

/// What is remembered of a flow.
#[derive(Clone, Copy, Debug)]
struct Marked {
    flow: FlowId,
    count: u32,
    last: Timestamp,
}

/// An element at one link.
#[derive(Clone, Debug)]
pub struct Element {
    config: Config,
    advised: RateSignal,
    /// In the order in which they were first seen; empty without a refresh time.
    flows: Vec<Marked>,
}

impl Element {
    /// An element that has not seen a packet.
    pub fn new(config: Config) -> Self {
        Self { advised: RateSignal::at_most(config.rate), config, flows: Vec::new() }
    }

    /// A SCONE packet of `flow` passes with `signal`: what it leaves with.
    pub fn on_signal(&mut self, now: Timestamp, flow: FlowId, signal: RateSignal) -> RateSignal {
        if self.marks(now, flow) { signal.min(self.advised) } else { signal }
    }

    fn marks(&mut self, now: Timestamp, flow: FlowId) -> bool {
        let Some(refresh) = self.config.refresh else { return true };
        if let Some(known) = self.flows.iter_mut().find(|known| known.flow == flow) {
            let due = known.count < self.config.first || now.since(known.last) >= refresh;
            if due {
                known.count = known.count.saturating_add(1);
                known.last = now;
            }
            return due;
        }
        // A flow that was not marked for a monitoring period has no advice.
        self.flows.retain(|known| now.since(known.last) < MONITORING_PERIOD);
        if self.flows.len() == FLOWS {
            self.flows.remove(0);
        }
        self.flows.push(Marked { flow, count: 1, last: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(seconds * 1000)
    }

    #[test]
    fn the_lowest_element_of_a_path_counts() {
        let element = |mbit| Element::new(Config::new(Rate::from_mbit(mbit)));
        let path = [100, 10, 1000].map(element);
        let seen =
            path.into_iter().fold(RateSignal::UNKNOWN, |signal, mut element| element.on_signal(at(0), 1, signal));
        // 10 Mbit/s is n = 40 exactly.
        assert_eq!(seen.bits(), 40);
    }

    #[test]
    fn a_flow_is_marked_at_its_beginning_and_then_now_and_again() {
        let refresh = Some(Duration::from_millis(30_000));
        let mut element = Element::new(Config { refresh, first: 2, ..Config::new(Rate::from_mbit(10)) });
        let mut marked = |second, flow| element.on_signal(at(second), flow, RateSignal::UNKNOWN) != RateSignal::UNKNOWN;
        let seen: Vec<bool> = [0, 1, 2, 30, 31, 60].into_iter().map(|second| marked(second, 1)).collect();
        assert_eq!(seen, [true, true, false, false, true, false]);
        assert!(marked(62, 2), "another flow is marked from its beginning");
    }

    #[test]
    fn flows_that_ended_are_forgotten() {
        let config = Config { refresh: Some(Duration::from_millis(1000)), ..Config::new(Rate::from_mbit(10)) };
        let mut element = Element::new(config);
        (0..10_000).for_each(|flow| {
            element.on_signal(at(0), flow, RateSignal::UNKNOWN);
        });
        assert_eq!(element.flows.len(), FLOWS);
        element.on_signal(at(67), 1, RateSignal::UNKNOWN);
        assert_eq!(element.flows.len(), 1);
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let config = Config::new(Rate::from_mbit(10));
        assert!(Config { rate: Rate::from_bits_per_sec(50_000), ..config }.validate().is_err());
        assert!(Config { first: 0, ..config }.validate().is_err());
        assert!(Config { refresh: Some(Duration::from_millis(68_000)), ..config }.validate().is_err());
        assert_eq!(config.validate(), Ok(()));
    }
}
