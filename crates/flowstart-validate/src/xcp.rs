//! XCP's paper: what it states of utilization, drops, queues and shares.
//!
//! `validation/xcp/README.md` says what was published and how it is read.

use std::path::Path;
use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use super::{Checker, Verdict};

/// Utilization that counts as high.
const HIGH: f64 = 0.95;
/// Dropped packets over sent ones that count as near zero.
const NEAR_ZERO: f64 = 0.001;
/// Median queue over the bandwidth-delay product that counts as a small standing queue.
const SMALL: f64 = 0.2;
/// Jain's index that counts as a fair allocation.
const FAIR: f64 = 0.95;
/// What a newcomer has of an equal share after 25 RTTs, within this.
const CONVERGED: f64 = 0.2;
/// RTTs that a newcomer has to reach its share.
const RTTS: u64 = 25;

/// A path and who uses it.
#[derive(Clone, Copy, Debug)]
struct Case {
    rate: Rate,
    rtt: Duration,
    flows: u64,
    /// Time from one flow's start to the next one's.
    apart: Duration,
}

/// A link between hosts and the bulk flows over it.
#[derive(Debug)]
struct Experiment {
    world: World,
    link: u32,
    case: Case,
}

impl Experiment {
    fn new(case: Case) -> Self {
        let mut world = World::new(1);
        let bdp = case.rate.amount_in(case.rtt).max(Bytes::new(10_000));
        let limit = QueueLimit { bytes: Some(bdp), ..QueueLimit::default() };
        let link = LinkConfig { limit, ..LinkConfig::new(case.rate, case.rtt / 2) };
        let chain = Chain::dumbbell(&mut world, &link, &link);
        let bottleneck = chain.forward_link(0);
        world.network.watch(bottleneck);
        world.network.add_xcp_router(bottleneck, Default::default(), case.rate);
        let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
        let profile = Arc::new(Profile { initial_window: 2, ..Profile::tcp_rfc() });
        for place in 0..case.flows {
            let route = chain.connect(&mut world, host, host);
            world.add_flow(FlowConfig {
                startup: StartupConfig::SlowStart(Default::default()),
                avoidance: AvoidanceConfig::Xcp(Default::default()),
                start: Timestamp::ZERO + case.apart * place,
                ..FlowConfig::new(profile.clone(), Pattern::Bulk, route)
            });
        }
        Self { world, link: bottleneck, case }
    }

    /// Payload that each flow delivers until this time, bytes.
    fn delivered_at(&mut self, time: Duration) -> Vec<f64> {
        self.world.run_until(Timestamp::ZERO + time);
        (0..self.case.flows as u32).map(|flow| self.world.record(flow).delivered as f64).collect()
    }

    /// Payload of each flow between two times, bytes.
    fn delivered(&mut self, from: Duration, to: Duration) -> Vec<f64> {
        let before = self.delivered_at(from);
        self.delivered_at(to).into_iter().zip(before).map(|(after, before)| after - before).collect()
    }

    /// Wire bytes that left the bottleneck between two times over what it could carry.
    fn utilization(&mut self, from: Duration, to: Duration) -> f64 {
        let departed = |experiment: &mut Self, time: Duration| {
            experiment.world.run_until(Timestamp::ZERO + time);
            experiment.world.network.monitor.as_ref().map_or(0, |monitor| monitor.total)
        };
        let before = departed(self, from);
        let after = departed(self, to);
        (after - before) as f64 / self.case.rate.amount_in(to.saturating_sub(from)).get() as f64
    }

    /// Dropped packets over those that the bottleneck received.
    fn drops(&mut self) -> f64 {
        let counters = self.world.network.link(self.link).counters();
        counters.dropped as f64 / counters.arrived.max(1) as f64
    }

    /// The median queue over the bandwidth-delay product.
    fn median_queue(&mut self) -> f64 {
        let monitor = self.world.network.monitor.as_mut();
        let median = monitor.and_then(|monitor| monitor.delays.quantile(0.5));
        median.map_or(f64::NAN, |delay| delay.as_secs() / self.case.rtt.as_secs())
    }
}

/// Jain's index: 1 when all are equal, 1/n when one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

/// Runs the cases and checks the paper's statements.
pub fn fairness(reference: Option<&Path>) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("xcp-fairness has no table of numbers that another file could replace".into());
    }
    // 10 steady cases with 4 numbers each; 5 newcomers with 2, and 2 of the link.
    let mut checker = Checker::declaring(10 * 4 + 5 * 2 + 2);
    let least = steady(&mut checker);
    dynamics(&mut checker);
    Ok(checker.verdict("xcp-fairness", format!("lowest utilization of a steady case {least:.3}")))
}

/// High utilization, a small standing queue, near-zero drops and a fair allocation over capacities, RTTs and numbers of flows.
fn steady(checker: &mut Checker) -> f64 {
    let base =
        Case { rate: Rate::from_mbit(45), rtt: Duration::from_millis(80), flows: 10, apart: Duration::from_millis(50) };
    let rates = [5, 15, 150].map(|mbit| Case { rate: Rate::from_mbit(mbit), ..base });
    let rtts = [20, 200, 500].map(|ms| Case { rtt: Duration::from_millis(ms), ..base });
    let flows = [1, 2, 50].map(|flows| Case { flows, ..base });
    let mut least = f64::INFINITY;
    for case in [[base].as_slice(), &rates, &rtts, &flows].concat() {
        let Case { rate, rtt, flows, .. } = case;
        let cell = format!("{rate}, {rtt}, {flows} flows");
        let (from, to) = (Duration::from_millis(20_000), Duration::from_millis(40_000));
        let mut experiment = Experiment::new(case);
        let utilization = experiment.utilization(from, to);
        checker.check(&cell, "utilization", utilization, 1.0, utilization >= HIGH, format!("at least {HIGH}"));
        least = least.min(utilization);
        let drops = experiment.drops();
        checker.check(&cell, "dropped packets / packets", drops, 0.0, drops <= NEAR_ZERO, format!("up to {NEAR_ZERO}"));
        let queue = experiment.median_queue();
        checker.check(&cell, "median queue / BDP", queue, 0.0, queue <= SMALL, format!("up to {SMALL}"));
        let index = jain(&experiment.delivered(to, to + Duration::from_millis(10_000)));
        checker.check(&cell, "Jain's index", index, 1.0, index >= FAIR, format!("at least {FAIR}"));
    }
    least
}

/// Five flows that start two seconds apart: each gets its share and the link stays full.
fn dynamics(checker: &mut Checker) {
    let apart = Duration::from_millis(2000);
    let case = Case { rate: Rate::from_mbit(45), rtt: Duration::from_millis(40), flows: 5, apart };
    let mut experiment = Experiment::new(case);
    for present in 1..=case.flows {
        let cell = format!("45mbit, 40ms, flow {present} of 5 has come");
        let (start, end) = (apart * (present - 1), apart * present);
        let settled = start + case.rtt * RTTS;
        let shares = &experiment.delivered(settled, end)[..present as usize];
        let equal = shares.iter().sum::<f64>() / present as f64;
        let own = shares.last().map_or(f64::NAN, |share| share / equal);
        let band = format!("within {} %", CONVERGED * 100.0);
        checker.check(&cell, "newcomer's share / equal share", own, 1.0, (own - 1.0).abs() <= CONVERGED, band);
        let index = jain(shares);
        checker.check(&cell, "Jain's index", index, 1.0, index >= FAIR, format!("at least {FAIR}"));
    }
    let mut again = Experiment::new(case);
    let used = again.utilization(Duration::from_millis(2000), apart * case.flows);
    checker.check("45mbit, 40ms, 5 flows come", "utilization", used, 1.0, used >= HIGH, format!("at least {HIGH}"));
    let drops = again.drops();
    let band = format!("up to {NEAR_ZERO}");
    checker.check("45mbit, 40ms, 5 flows come", "dropped packets / packets", drops, 0.0, drops <= NEAR_ZERO, band);
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
