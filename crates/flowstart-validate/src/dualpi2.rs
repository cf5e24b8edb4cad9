//! What RFC 9332 states of scalable and classic flows behind coupled queues. The statements are in
//! `validation/dualpi2/statements.toml`, of which this gives the numbers.
//!
//! `validation/dualpi2/README.md` says what was published and how it is read.

use std::sync::Arc;

use flowstart_core::aqm::{QueueConfig, QueueLimit, QueueState};
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::monitor::FlowAtLink;
use flowstart_sim::transport::profile::Profile;

use crate::Input;
use crate::bench::Bench;
use crate::check::Checker;
use crate::statements::{self, named};

const RATE: Rate = Rate::from_mbit(50);
/// Longest wait that the buffer has room for.
const BUFFER: Duration = Duration::from_millis(800);
/// Runs of which the factors of the ratio are means.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;
/// Time between updates of p'.
const UPDATE: Duration = Duration::from_millis(16);
/// When measuring begins and ends.
const MEASURED: (Duration, Duration) = (Duration::from_millis(20_000), Duration::from_millis(80_000));

struct Experiment {
    bench: Bench,
    rtt: Duration,
    prague: usize,
}

impl Experiment {
    fn new(rtt: Duration, prague: usize, cubic: usize, ecn: bool, seed: u64) -> Self {
        let limit = QueueLimit { bytes: Some(RATE.amount_in(BUFFER)), ..QueueLimit::default() };
        let queue = QueueConfig::DualPi2(Default::default());
        let link = LinkConfig { limit, queue, ..LinkConfig::new(RATE, rtt / 2) };
        let mut bench = Bench::new(seed, 1, &link, Rate::from_mbit(10_000));
        let link = bench.link();
        bench.world.network.watch(link);
        let profile = Arc::new(Profile { ecn, ..Profile::tcp_linux() });
        for place in 0..prague + cubic {
            let avoidance = match place < prague {
                true => AvoidanceConfig::Prague(Default::default()),
                false => AvoidanceConfig::Cubic(Default::default()),
            };
            bench.add_bulk(&profile, avoidance, Duration::ZERO);
        }
        Self { bench, rtt, prague }
    }

    fn run(&mut self) -> Measured {
        let (from, to) = MEASURED;
        let before = self.flows_at(from);
        let (mut time, mut sums) = (from, [0.0, 0.0, 0.0]);
        while time < to {
            self.bench.world.run_until(Timestamp::ZERO + time);
            if let QueueState::DualPi2(queue) = self.bench.world.network.link(self.bench.link()).queue() {
                let p = queue.vars().p;
                sums = [sums[0] + 1.0, sums[1] + p, sums[2] + p * p];
            }
            time += UPDATE;
        }
        let [updates, base, squared] = sums;
        let after = self.flows_at(to);
        let grown: Vec<[f64; 4]> =
            after.iter().zip(before).map(|(after, before)| [0, 1, 2, 3].map(|of| after[of] - before[of])).collect();
        let (prague, cubic) = grown.split_at(self.prague.min(grown.len()));
        let sum = |flows: &[[f64; 4]], of: usize| flows.iter().map(|flow| flow[of]).sum::<f64>();
        let mean = |flows: &[[f64; 4]]| sum(flows, 0) / flows.len() as f64;
        let time = to.saturating_sub(from);
        let kind = |flows: &[[f64; 4]]| {
            let round_trip = self.rtt.as_secs() + sum(flows, 2) / sum(flows, 1) / 1e9;
            let window = sum(flows, 1) / flows.len() as f64 / time.as_secs() * round_trip;
            Kind { round_trip, window, marked: sum(flows, 3) / sum(flows, 1) }
        };
        Measured {
            ratio: mean(prague) / mean(cubic),
            used: sum(&grown, 0) / RATE.amount_in(time).get() as f64,
            delay_ms: sum(prague, 2) / sum(prague, 1) / 1e6,
            prague: kind(prague),
            cubic: kind(cubic),
            spread: (squared * updates).sqrt() / base,
        }
    }

    /// What each flow has sent through the link at this time: bytes, packets, the nanoseconds that they waited, and
    /// marks.
    fn flows_at(&mut self, time: Duration) -> Vec<[f64; 4]> {
        let counts =
            |flow: &FlowAtLink| [flow.bytes, flow.packets, flow.waited_nanos, flow.marked].map(|count| count as f64);
        self.bench.world.run_until(Timestamp::ZERO + time);
        self.bench
            .world
            .network
            .monitor
            .as_ref()
            .map_or_else(Vec::new, |monitor| monitor.flows.iter().map(counts).collect())
    }
}

/// What flows of a kind do on average.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// RTT with the wait in the queue, in seconds.
    round_trip: f64,
    /// Packets that are under way.
    window: f64,
    /// Share of the packets that are marked.
    marked: f64,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Mean rate of the Prague flows over that of the others; NaN without others.
    ratio: f64,
    /// Share of the capacity that was used.
    used: f64,
    /// Mean delay of the Prague flows' packets.
    delay_ms: f64,
    prague: Kind,
    cubic: Kind,
    /// Root mean square of p' in time over its mean.
    spread: f64,
}

/// What the ratio of the rates is made of: means over [`SEEDS`].
#[derive(Clone, Copy, Debug)]
struct Factors {
    /// Least, mean and largest ratio.
    ratio: [f64; 3],
    /// Prague's window times the share of its packets that are marked; 2 where marks come in every round trip.
    scalable: f64,
    /// CUBIC's window times the root of that share; 1.22 where marks are evenly spaced.
    classic: f64,
    /// The root of the share of marked classic packets over that of the scalable ones; 0.5 if both met the same p'.
    coupling: f64,
    /// What of that comes from p' that is not constant: half the root mean square of p' in time over its mean.
    in_time: f64,
    /// Round trips, classic over scalable.
    round_trips: f64,
}

impl Factors {
    /// Runs a case in which CUBIC has ECN.
    fn of(rtt: Duration, flows: usize) -> Self {
        let runs: Vec<Measured> = SEEDS.map(|seed| Experiment::new(rtt, flows, flows, true, seed).run()).collect();
        let mean = |of: fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let ratios = runs.iter().map(|run| run.ratio);
        let (least, most) = (ratios.clone().fold(f64::INFINITY, f64::min), ratios.fold(f64::NEG_INFINITY, f64::max));
        Self {
            ratio: [least, mean(|run| run.ratio), most],
            scalable: mean(|run| run.prague.window * run.prague.marked),
            classic: mean(|run| run.cubic.window * run.cubic.marked.sqrt()),
            coupling: mean(|run| run.cubic.marked.sqrt() / run.prague.marked),
            in_time: mean(|run| run.spread) / 2.0,
            round_trips: mean(|run| run.cubic.round_trip / run.prague.round_trip),
        }
    }
}

impl std::fmt::Display for Factors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ratio: [least, mean, most], scalable, classic, coupling, in_time, round_trips } = self;
        write!(
            f,
            "{mean:.2} ({least:.2} to {most:.2}), {scalable:.2} / {classic:.2} x {coupling:.2} ({in_time:.2}) x {round_trips:.2}"
        )
    }
}

/// Checks the statements, and says what the ratio of the rates is made of.
pub(crate) fn coexistence(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let ratios = statements::measured(input, checker, |cell| {
        let measured = read(cell).ok_or_else(|| format!("`{cell}` is no RTT and flows"))?.run();
        let Measured { ratio, used, delay_ms, .. } = measured;
        Ok([("ratio", ratio), ("utilization", used), ("delay_ms", delay_ms)].map(named).into())
    })?;
    let factors =
        [1, 2, 5].map(|flows| format!("{flows} and {flows}: {}", Factors::of(Duration::from_millis(30), flows)));
    Ok(format!(
        "{ratios}; at 30ms with ECN over seeds {} to {}, mean (least to most), and what it is made of, prague's \
         window x share of marks / cubic's window x root of its share x root of cubic's share / prague's share (0.5 rms / mean of \
         p' in time) x cubic's RTT / prague's: {}",
        SEEDS.start(),
        SEEDS.end(),
        factors.join("; "),
    ))
}

/// `20ms, 2 and 2 flows, cubic with ecn` or `30ms, 4 prague alone`.
fn read(cell: &str) -> Option<Experiment> {
    let (rtt, flows) = cell.split_once("ms, ")?;
    let (rtt, (count, others)) = (Duration::from_millis(rtt.parse().ok()?), flows.split_once(' ')?);
    let prague = count.parse().ok()?;
    let cubic = if others == "prague alone" { 0 } else { prague };
    Some(Experiment::new(rtt, prague, cubic, others.ends_with("with ecn"), 1))
}
