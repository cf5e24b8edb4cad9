//! What RFC 9332 states of scalable and classic flows behind coupled queues.
//!
//! `validation/dualpi2/README.md` says what was published and how it is read.

use std::path::Path;
use std::sync::Arc;

use flowstart_core::aqm::{QueueConfig, QueueLimit};
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::monitor::FlowAtLink;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::{FlowConfig, World};

use super::{Checker, Verdict};

const RATE: Rate = Rate::from_mbit(50);
/// Longest wait that the buffer has room for.
const BUFFER: Duration = Duration::from_millis(800);
/// Rates of a Prague flow over those of a CUBIC flow that count as about the same.
const SAME: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// Share of the capacity that counts as full use.
const FULL: f64 = 0.9;
/// Mean delay of scalable traffic, ms.
const SHORT_MS: f64 = 1.0;
/// When measuring begins and ends.
const MEASURED: (Duration, Duration) = (Duration::from_millis(20_000), Duration::from_millis(80_000));

/// Bulk flows behind `dualpi2`.
#[derive(Debug)]
struct Experiment {
    world: World,
    prague: usize,
}

impl Experiment {
    fn new(rtt: Duration, prague: usize, cubic: usize, ecn: bool) -> Self {
        let mut world = World::new(1);
        let limit = QueueLimit { bytes: Some(RATE.amount_in(BUFFER)), ..QueueLimit::default() };
        let back = LinkConfig { limit, ..LinkConfig::new(RATE, rtt / 2) };
        let link = LinkConfig { queue: QueueConfig::DualPi2(Default::default()), ..back.clone() };
        let chain = Chain::dumbbell(&mut world, &link, &back);
        world.network.watch(chain.forward_link(0));
        let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
        let profile = Arc::new(Profile { ecn, ..Profile::tcp_linux() });
        for place in 0..prague + cubic {
            let route = chain.connect(&mut world, host, host);
            let avoidance = if place < prague {
                AvoidanceConfig::Prague(Default::default())
            } else {
                AvoidanceConfig::Cubic(Default::default())
            };
            let startup = StartupConfig::SlowStart(Default::default());
            world.add_flow(FlowConfig { startup, avoidance, ..FlowConfig::new(profile.clone(), Pattern::Bulk, route) });
        }
        Self { world, prague }
    }

    fn run(&mut self) -> Measured {
        let (from, to) = MEASURED;
        let before = self.flows_at(from);
        let after = self.flows_at(to);
        let grown: Vec<[f64; 3]> =
            after.iter().zip(before).map(|(after, before)| [0, 1, 2].map(|of| after[of] - before[of])).collect();
        let (prague, cubic) = grown.split_at(self.prague.min(grown.len()));
        let sum = |flows: &[[f64; 3]], of: usize| flows.iter().map(|flow| flow[of]).sum::<f64>();
        let mean = |flows: &[[f64; 3]]| sum(flows, 0) / flows.len() as f64;
        Measured {
            ratio: mean(prague) / mean(cubic),
            used: sum(&grown, 0) / RATE.amount_in(to.saturating_sub(from)).get() as f64,
            delay_ms: sum(prague, 2) / sum(prague, 1) / 1e6,
        }
    }

    /// What each flow has sent through the link at this time: bytes, packets, and the nanoseconds that they waited.
    fn flows_at(&mut self, time: Duration) -> Vec<[f64; 3]> {
        let counts = |flow: &FlowAtLink| [flow.bytes, flow.packets, flow.waited_nanos].map(|count| count as f64);
        self.world.run_until(Timestamp::ZERO + time);
        self.world.network.monitor.as_ref().map_or_else(Vec::new, |monitor| monitor.flows.iter().map(counts).collect())
    }
}

/// What is read of a run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Mean rate of the Prague flows over that of the others; NaN without others.
    ratio: f64,
    /// Share of the capacity that was used.
    used: f64,
    /// Mean delay of the Prague flows' packets.
    delay_ms: f64,
}

impl Measured {
    fn check(&self, checker: &mut Checker, cell: &str) {
        let Self { ratio, used, delay_ms } = *self;
        if !ratio.is_nan() {
            let band = format!("{} to {}", SAME.start(), SAME.end());
            checker.check(cell, "rate of prague / cubic", ratio, 1.0, SAME.contains(&ratio), band);
        }
        checker.check(cell, "utilization", used, 1.0, used >= FULL, format!("at least {FULL}"));
        checker.check(
            cell,
            "mean delay of prague, ms",
            delay_ms,
            SHORT_MS,
            delay_ms <= SHORT_MS,
            format!("up to {SHORT_MS}"),
        );
    }
}

/// Runs the cases and checks the statements.
pub fn coexistence(reference: Option<&Path>) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("dualpi2-coexistence has no table of numbers that another file could replace".into());
    }
    let mut checker = Checker::default();
    let mut ratios = (f64::INFINITY, f64::NEG_INFINITY);
    for (rtt, flows) in [(20, 1), (30, 1), (50, 1), (30, 2), (30, 5)] {
        for ecn in [true, false] {
            let cell =
                format!("{rtt}ms, {flows} and {flows} flows, cubic {} ecn", if ecn { "with" } else { "without" });
            let measured = Experiment::new(Duration::from_millis(rtt), flows, flows, ecn).run();
            ratios = (ratios.0.min(measured.ratio), ratios.1.max(measured.ratio));
            measured.check(&mut checker, &cell);
        }
    }
    for flows in [1, 4] {
        let cell = format!("30ms, {flows} prague alone");
        Experiment::new(Duration::from_millis(30), flows, 0, false).run().check(&mut checker, &cell);
    }
    Ok(checker.verdict("dualpi2-coexistence", format!("rate of prague / cubic {:.2} to {:.2}", ratios.0, ratios.1)))
}
