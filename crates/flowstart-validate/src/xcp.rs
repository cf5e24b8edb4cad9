//! XCP's paper: what it states of utilization, drops, queues and shares.
//!
//! `validation/xcp/README.md` says what was published and how it is read.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;

use crate::Input;
use crate::bench::Bench;
use crate::check::{Band, Checker, at_least, at_most, near};

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
struct Experiment {
    bench: Bench,
    case: Case,
}

impl Experiment {
    fn new(case: Case) -> Self {
        let bdp = case.rate.amount_in(case.rtt).max(Bytes::new(10_000));
        let limit = QueueLimit { bytes: Some(bdp), ..QueueLimit::default() };
        let link = LinkConfig { limit, ..LinkConfig::new(case.rate, case.rtt / 2) };
        let mut bench = Bench::new(1, 1, &link, Rate::from_mbit(10_000));
        let bottleneck = bench.link();
        bench.world.network.watch(bottleneck);
        bench.world.network.add_xcp_router(bottleneck, Default::default(), case.rate);
        let profile = Arc::new(Profile { initial_window: 2, ..Profile::tcp_rfc() });
        for place in 0..case.flows {
            let mut config = bench.flow(&profile, Pattern::Bulk);
            config.startup = StartupConfig::SlowStart(Default::default());
            config.avoidance = AvoidanceConfig::Xcp(Default::default());
            config.start = Timestamp::ZERO + case.apart * place;
            bench.world.add_flow(config);
        }
        Self { bench, case }
    }

    /// Payload that each flow delivers until this time, bytes.
    fn delivered_at(&mut self, time: Duration) -> Vec<f64> {
        self.bench.world.run_until(Timestamp::ZERO + time);
        (0..self.case.flows as u32).map(|flow| self.bench.world.record(flow).delivered as f64).collect()
    }

    /// Payload of each flow between two times, bytes.
    fn delivered(&mut self, from: Duration, to: Duration) -> Vec<f64> {
        let before = self.delivered_at(from);
        self.delivered_at(to).into_iter().zip(before).map(|(after, before)| after - before).collect()
    }

    /// Wire bytes that left the bottleneck between two times over what it could carry.
    fn utilization(&mut self, from: Duration, to: Duration) -> f64 {
        let departed = |experiment: &mut Self, time: Duration| {
            experiment.bench.world.run_until(Timestamp::ZERO + time);
            experiment.bench.world.network.monitor.as_ref().map_or(0, |monitor| monitor.total)
        };
        let before = departed(self, from);
        let after = departed(self, to);
        (after - before) as f64 / self.case.rate.amount_in(to.saturating_sub(from)).get() as f64
    }

    /// Dropped packets over those that the bottleneck received.
    fn drops(&mut self) -> f64 {
        let counters = self.bench.world.network.link(self.bench.link()).counters();
        counters.dropped as f64 / counters.arrived.max(1) as f64
    }

    /// The median queue over the bandwidth-delay product.
    fn median_queue(&mut self) -> f64 {
        let monitor = self.bench.world.network.monitor.as_mut();
        let median = monitor.and_then(|monitor| monitor.delays.quantile(0.5));
        median.map_or(f64::NAN, |delay| delay.as_secs() / self.case.rtt.as_secs())
    }
}

/// Jain's index: 1 when all are equal, 1/n when one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}

fn high() -> Band {
    at_least(HIGH).beside(1.0)
}

fn fair() -> Band {
    at_least(FAIR).beside(1.0)
}

fn near_zero() -> Band {
    at_most(NEAR_ZERO).beside(0.0)
}

/// Runs the cases and checks the paper's statements.
pub(crate) fn fairness(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let least = steady(checker);
    dynamics(checker);
    Ok(format!("lowest utilization of a steady case {least:.3}"))
}

/// High utilization, a small standing queue, near-zero drops and a fair allocation over capacities, RTTs and numbers of
/// flows.
fn steady(checker: &mut Checker) -> f64 {
    let ms = Duration::from_millis;
    let base = Case { rate: Rate::from_mbit(45), rtt: ms(80), flows: 10, apart: ms(50) };
    let rates = [5, 15, 150].map(|mbit| Case { rate: Rate::from_mbit(mbit), ..base });
    let rtts = [20, 200, 500].map(|rtt| Case { rtt: ms(rtt), ..base });
    let flows = [1, 2, 50].map(|flows| Case { flows, ..base });
    let mut least = f64::INFINITY;
    for case in [[base].as_slice(), &rates, &rtts, &flows].concat() {
        let cell = format!("{}, {}, {} flows", case.rate, case.rtt, case.flows);
        let (from, to) = (ms(20_000), ms(40_000));
        let mut experiment = Experiment::new(case);
        let utilization = experiment.utilization(from, to);
        least = least.min(utilization);
        checker.check(&cell, "utilization", utilization, high());
        checker.check(&cell, "dropped packets / packets", experiment.drops(), near_zero());
        checker.check(&cell, "median queue / BDP", experiment.median_queue(), at_most(SMALL).beside(0.0));
        checker.check(&cell, "Jain's index", jain(&experiment.delivered(to, to + ms(10_000))), fair());
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
        let settled = apart * (present - 1) + case.rtt * RTTS;
        let shares = &experiment.delivered(settled, apart * present)[..present as usize];
        let equal = shares.iter().sum::<f64>() / present as f64;
        let own = shares.last().map_or(f64::NAN, |share| share / equal);
        let converged = near(1.0, CONVERGED).saying(format!("within {} %", CONVERGED * 100.0));
        checker.check(&cell, "newcomer's share / equal share", own, converged);
        checker.check(&cell, "Jain's index", jain(shares), fair());
    }
    let mut again = Experiment::new(case);
    let used = again.utilization(apart, apart * case.flows);
    checker.check("45mbit, 40ms, 5 flows come", "utilization", used, high());
    checker.check("45mbit, 40ms, 5 flows come", "dropped packets / packets", again.drops(), near_zero());
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
