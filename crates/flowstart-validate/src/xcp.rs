//! XCP's paper: what it states of utilization, drops, queues and shares. The statements are in
//! `validation/xcp/statements.toml`, of which this gives the numbers.
//!
//! `validation/xcp/README.md` says what was published and how it is read.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::transport::profile::Profile;

use crate::Input;
use crate::bench::Bench;
use crate::check::Checker;
use crate::statements::{self, Numbers, named};

/// RTTs that a newcomer has to reach its share.
const RTTS: u64 = 25;

pub(crate) fn fairness(input: &Input, checker: &mut Checker) -> Result<String, String> {
    statements::measured(input, checker, |cell| {
        measure(cell).ok_or_else(|| format!("`{cell}` is no rate, RTT and number of flows"))
    })
}

/// Bulk flows over a link, such as `45mbit, 80ms, 10 flows`: shortly after each other, or two seconds apart if they
/// `come`.
struct Experiment {
    bench: Bench,
    rate: Rate,
    rtt: Duration,
    flows: u64,
    apart: Duration,
}

impl Experiment {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(", ");
        let (rate, rtt): (Rate, Duration) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let flows = parts.next()?.split_once(" flows")?;
        let apart = Duration::from_millis(if flows.1 == " come" { 2000 } else { 50 });
        let flows = flows.0.parse().ok()?;
        let limit = QueueLimit { bytes: Some(rate.amount_in(rtt).max(Bytes::new(10_000))), ..QueueLimit::default() };
        let link = LinkConfig { limit, ..LinkConfig::new(rate, rtt / 2) };
        let mut bench = Bench::new(1, 1, &link, Rate::from_mbit(10_000));
        let bottleneck = bench.link();
        bench.world.network.watch(bottleneck);
        bench.world.network.add_xcp_router(bottleneck, Default::default(), rate);
        let profile = Arc::new(Profile { initial_window: 2, ..Profile::tcp_rfc() });
        for place in 0..flows {
            bench.add_bulk(&profile, AvoidanceConfig::Xcp(Default::default()), apart * place);
        }
        Some(Self { bench, rate, rtt, flows, apart })
    }

    /// Payload that each flow has delivered at this time, and wire bytes that have left the bottleneck.
    fn at(&mut self, time: Duration) -> (Vec<f64>, u64) {
        let world = &mut self.bench.world;
        world.run_until(Timestamp::ZERO + time);
        let delivered = (0..self.flows as u32).map(|flow| world.record(flow).delivered as f64).collect();
        (delivered, world.network.monitor.as_ref().map_or(0, |monitor| monitor.total))
    }

    /// What each flow delivers between two times, and the part of the capacity that is used.
    fn between(&mut self, from: Duration, to: Duration) -> (Vec<f64>, f64) {
        let (before, after) = (self.at(from), self.at(to));
        let delivered = after.0.into_iter().zip(before.0).map(|(after, before)| after - before).collect();
        (delivered, (after.1 - before.1) as f64 / self.rate.amount_in(to.saturating_sub(from)).get() as f64)
    }
}

fn measure(cell: &str) -> Option<Numbers> {
    let mut numbers = Numbers::new();
    let come = cell.ends_with("come");
    let mut experiment = Experiment::read(cell)?;
    let (flows, apart, settling) = (experiment.flows, experiment.apart, experiment.rtt * RTTS);
    if come {
        for present in 1..=flows {
            let (delivered, _) = experiment.between(apart * (present - 1) + settling, apart * present);
            let shares = &delivered[..present as usize];
            let equal = shares.iter().sum::<f64>() / present as f64;
            numbers.insert(format!("share-{present}"), shares.last().map_or(f64::NAN, |share| share / equal));
            numbers.insert(format!("jain-{present}"), jain(shares));
        }
        experiment = Experiment::read(cell)?;
    }
    let s = |seconds: u64| Duration::from_millis(seconds * 1000);
    let (from, to) = if come { (apart, apart * flows) } else { (s(20), s(40)) };
    let (_, utilization) = experiment.between(from, to);
    let network = &mut experiment.bench.world.network;
    let median = network.monitor.as_mut().and_then(|monitor| monitor.delays.quantile(0.5));
    let queue = median.map_or(f64::NAN, |delay| delay.as_secs() / experiment.rtt.as_secs());
    let counters = network.link(experiment.bench.chain.forward_link(0)).counters();
    let drops = counters.dropped as f64 / counters.arrived.max(1) as f64;
    let jain = jain(&experiment.between(to, to + s(10)).0);
    numbers.extend([("utilization", utilization), ("drops", drops), ("queue", queue), ("jain", jain)].map(named));
    Some(numbers)
}

/// Jain's index: 1 when all are equal, 1/n when one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_of_known_shares() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        // (1 + 3)^2 / (2 * (1 + 9)) = 0.8.
        assert_eq!(jain(&[1.0, 3.0]), 0.8);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
    }
}
