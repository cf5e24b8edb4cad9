//! BBR alone, with loss, beside another, with small buffers and after a launch.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic};
use flowstart_core::event::{Decision, ExitReason};
use flowstart_core::path::{AccessTechnology, Hint, SavedPath};
use flowstart_core::startup::{StartupConfig, blitzstart, careful_resume, more_start, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::observe::monitor::{Departed, Monitor};
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RATE: Rate = Rate::from_mbit(20);
const RTT: Duration = Duration::from_millis(50);
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);
const TRANSPORTS: [&str; 2] = ["rfc9002", "tcp-rfc"];

fn bbr() -> AvoidanceConfig {
    AvoidanceConfig::Bbr(bbr::Config::default())
}

fn version_1() -> AvoidanceConfig {
    AvoidanceConfig::Bbr(bbr::Config { version: bbr::Version::One, ..bbr::Config::default() })
}

fn plain() -> StartupConfig {
    StartupConfig::SlowStart(slow_start::Config::default())
}

fn seconds(secs: f64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs(secs)
}

/// A bottleneck of 20 Mbit/s and 50 ms.
struct Path {
    world: World,
    chain: Chain,
}

impl Path {
    fn new(buffer_bdp: f64, loss: Option<f64>) -> Self {
        let loss = loss.map(|probability| LossModel::Independent { probability });
        Self::over(buffer_bdp, |forward| forward.loss = loss)
    }

    fn over(buffer_bdp: f64, change: impl FnOnce(&mut LinkConfig)) -> Self {
        let mut world = World::new(5);
        let mut forward = LinkConfig::new(RATE, RTT / 2);
        forward.limit = QueueLimit { bytes: Some(RATE.amount_in(RTT).scale(buffer_bdp)), ..QueueLimit::default() };
        change(&mut forward);
        let chain = Chain::dumbbell(&mut world, &forward, &LinkConfig::new(RATE, RTT / 2));
        let mut monitor = Monitor::new(chain.forward_link(0));
        monitor.log = Some(Vec::new());
        world.network.monitor = Some(Box::new(monitor));
        world.network.trace = Some(Box::new(Trace::default()));
        Self { world, chain }
    }

    fn add(&mut self, transport: &str, scheme: StartupConfig, avoidance: AvoidanceConfig, pattern: Pattern) -> u32 {
        let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
        let route = self.chain.connect(&mut self.world, host, host);
        let profile = Profile { receive_window: Bytes::new(50_000_000), ..Profile::named(transport).expect("listed") };
        let mut config = FlowConfig::new(Arc::new(profile), pattern, route);
        config.startup = scheme;
        config.avoidance = avoidance;
        let path = config.sources.knowledge_mut();
        path.hint = Some(Hint { bandwidth: RATE, technology: AccessTechnology::Unknown });
        path.saved = Some(SavedPath { rtt: RTT, cwnd: RATE.amount_in(RTT), age: Duration::from_millis(60_000) });
        config.start = self.world.now();
        self.world.add_flow(config)
    }

    fn log(&self) -> &[Departed] {
        self.world.network.monitor.as_ref().and_then(|monitor| monitor.log.as_deref()).unwrap_or_default()
    }

    /// Part of the link's capacity that `flow` used between two times.
    fn used(&self, flow: u32, from: f64, until: f64) -> f64 {
        let inside = |d: &&Departed| d.flow == flow && d.time > seconds(from) && d.time <= seconds(until);
        let bytes: u64 = self.log().iter().filter(inside).map(|d| u64::from(d.size)).sum();
        bytes as f64 * 8.0 / (RATE.bits_per_sec() as f64 * (until - from))
    }

    /// The longest wait in the queue between two times, in BDP.
    fn longest_queue(&self, from: f64, until: f64) -> f64 {
        let inside = |d: &&Departed| d.time > seconds(from) && d.time <= seconds(until);
        let longest = self.log().iter().filter(inside).map(|d| d.delay).max().unwrap_or_default();
        longest.as_secs() / RTT.as_secs()
    }

    /// The phases of `flow` and when they were entered.
    fn phases(&self, flow: u32) -> Vec<(f64, &'static str, &'static str)> {
        let trace = self.world.network.trace.as_ref().expect("it was set");
        let phase = |entry: &flowstart_sim::observe::trace::Entry| match entry.event {
            Event::Decided(Decision::PhaseEntered { phase, trigger }) if entry.flow == flow => {
                Some((entry.time.as_secs(), phase, trigger))
            }
            _ => None,
        };
        trace.entries.iter().filter_map(phase).collect()
    }
}

fn entered(phases: &[(f64, &str, &str)], name: &str) -> f64 {
    phases.iter().find(|(_, phase, _)| *phase == name).unwrap_or_else(|| panic!("{name}: {phases:?}")).0
}

#[test]
fn alone_it_fills_the_link_and_keeps_the_queue_short() {
    for transport in TRANSPORTS {
        let mut path = Path::new(2.0, None);
        let flow = path.add(transport, plain(), bbr(), Pattern::Bulk);
        path.world.run_until(seconds(30.0));
        let phases = path.phases(flow);
        let used = path.used(flow, 1.0, 30.0);
        assert!(used > 0.9, "{transport}: {used}");
        // The pipe is full when the queue first holds a packet time after time: a tenth of a BDP.
        let full = path.log().iter().find(|d| d.delay > RTT / 10).map_or(0.0, |d| d.time.as_secs());
        let drain = entered(&phases, "Drain");
        assert!(drain - full < 5.0 * 2.0 * RTT.as_secs(), "{transport}: full at {full}, Drain at {drain}");
        let probing = entered(&phases, "ProbeBW_DOWN");
        let queue = path.longest_queue(probing + RTT.as_secs(), 30.0);
        assert!(queue < 1.0, "{transport}: {queue} BDP");
        let exit = path.world.record(flow).exit.expect("STARTUP ends");
        assert_eq!(exit.reason, ExitReason::Chokepoint, "{transport}");
    }
}

#[test]
fn one_percent_of_random_loss_costs_little() {
    for transport in TRANSPORTS {
        let used = |avoidance| {
            let mut path = Path::new(2.0, Some(0.01));
            let flow = path.add(transport, plain(), avoidance, Pattern::Bulk);
            path.world.run_until(seconds(40.0));
            path.used(flow, 5.0, 40.0)
        };
        let (bbr, cubic) = (used(bbr()), used(AvoidanceConfig::Cubic(cubic::Config::default())));
        assert!(bbr > 0.7, "{transport}: {bbr}");
        assert!(cubic < 0.7, "{transport}: {cubic}");
    }
}

/// The share of the joint throughput of a flow that starts three seconds after another, between two times after its
/// start.
fn newcomers_share(transport: &str, buffer_bdp: f64, from: f64, until: f64) -> f64 {
    let mut path = Path::new(buffer_bdp, None);
    let first = path.add(transport, plain(), bbr(), Pattern::Bulk);
    path.world.run_until(seconds(3.0));
    let second = path.add(transport, plain(), bbr(), Pattern::Bulk);
    path.world.run_until(seconds(3.0 + until));
    let (first, second) = (path.used(first, 3.0 + from, 3.0 + until), path.used(second, 3.0 + from, 3.0 + until));
    assert!(first + second > 0.9, "{transport}: {first} and {second}");
    second / (first + second)
}

#[test]
fn two_flows_converge_within_half_a_minute_when_the_buffer_is_small_and_slower_when_it_is_deep() {
    for transport in TRANSPORTS {
        let share = newcomers_share(transport, 0.5, 10.0, 30.0);
        assert!((0.4..0.6).contains(&share), "{transport}: {share}");
        // Without loss only the probes move the shares, by a few percent a cycle.
        let (early, late) = (newcomers_share(transport, 2.0, 0.0, 10.0), newcomers_share(transport, 2.0, 40.0, 60.0));
        assert!(early < late && (0.4..0.6).contains(&late), "{transport}: {early}, then {late}");
    }
}

#[test]
fn a_quarter_of_a_bdp_of_buffer_is_enough() {
    for transport in TRANSPORTS {
        let mut path = Path::new(0.25, None);
        let flow = path.add(transport, plain(), bbr(), Pattern::Bulk);
        path.world.run_until(seconds(30.0));
        let used = path.used(flow, 2.0, 30.0);
        assert!(used > 0.85, "{transport}: {used}");
    }
}

#[test]
fn a_launch_at_the_right_rate_finishes_sooner() {
    let time = |scheme: StartupConfig| {
        let mut path = Path::new(1.0, None);
        let flow = path.add("rfc9002", scheme, bbr(), Pattern::Transfer(Bytes::new(2_000_000)));
        path.world.run_flow(flow, LIMIT).expect("the transfer completes");
        path.world.record(flow).completed.expect("complete").as_secs()
    };
    let plain = time(plain());
    for launched in [
        StartupConfig::Blitzstart(blitzstart::Config::default()),
        StartupConfig::MoreStart(more_start::Config::default()),
        StartupConfig::CarefulResume(careful_resume::Config::default()),
    ] {
        let name = launched.name();
        let launched = time(launched);
        assert!(launched < plain, "{name}: {launched} s, plain {plain} s");
    }
}

#[test]
fn version_1_fills_the_link_and_looks_for_a_lower_rtt_at_most_every_ten_seconds() {
    for transport in TRANSPORTS {
        let mut path = Path::new(2.0, None);
        let flow = path.add(transport, plain(), version_1(), Pattern::Bulk);
        path.world.run_until(seconds(30.0));
        let phases = path.phases(flow);
        let names: Vec<_> = phases.iter().map(|(_, phase, _)| *phase).collect();
        assert_eq!(names[..3], ["Startup", "Drain", "ProbeBW"], "{transport}");
        // The cycle drains the queue, so the sender measures the smallest RTT repeatedly if acknowledgements are not
        // delayed.
        let probes = names.iter().filter(|name| **name == "ProbeRTT").count();
        assert!(probes <= 2, "{transport}: {names:?}");
        // The pacing stays 1 % below the bandwidth, and ProbeRTT takes 2 % of the time.
        let used = path.used(flow, 2.0, 30.0);
        assert!(used > 0.95, "{transport}: {used}");
        // A probe of one RTT at 1.25 times the bandwidth adds a quarter of a BDP.
        let queue = path.longest_queue(entered(&phases, "ProbeBW") + RTT.as_secs(), 30.0);
        assert!(queue < 0.5, "{transport}: {queue} BDP");
        assert_eq!(path.world.record(flow).exit.expect("STARTUP ends").reason, ExitReason::Chokepoint, "{transport}");
    }
}

#[test]
fn two_flows_of_version_1_look_for_a_lower_rtt_and_share() {
    for transport in TRANSPORTS {
        let mut path = Path::new(2.0, None);
        let first = path.add(transport, plain(), version_1(), Pattern::Bulk);
        path.world.run_until(seconds(3.0));
        let second = path.add(transport, plain(), version_1(), Pattern::Bulk);
        path.world.run_until(seconds(60.0));
        for flow in [first, second] {
            let probes = path.phases(flow).iter().filter(|(_, phase, _)| *phase == "ProbeRTT").count();
            assert!((2..=6).contains(&probes), "{transport}: {probes}");
        }
        let (first, second) = (path.used(first, 30.0, 60.0), path.used(second, 30.0, 60.0));
        assert!(first + second > 0.9, "{transport}: {first} and {second}");
        let share = second / (first + second);
        assert!((0.3..0.7).contains(&share), "{transport}: {share}");
    }
}

#[test]
fn version_1_does_not_mind_ten_percent_of_random_loss() {
    for transport in TRANSPORTS {
        let mut path = Path::new(2.0, Some(0.1));
        let flow = path.add(transport, plain(), version_1(), Pattern::Bulk);
        path.world.run_until(seconds(30.0));
        let used = path.used(flow, 5.0, 30.0);
        assert!(used > 0.8, "{transport}: {used}");
    }
}

#[test]
fn version_1_finds_a_policer_and_sends_at_its_rate() {
    for transport in TRANSPORTS {
        let mut path = Path::over(2.0, |forward| forward.policer = Some((Rate::from_mbit(5), Bytes::new(50_000))));
        let flow = path.add(transport, plain(), version_1(), Pattern::Bulk);
        path.world.run_until(seconds(20.0));
        let phases = path.phases(flow);
        assert!(phases.iter().any(|(_, _, trigger)| *trigger == "policed"), "{transport}: {phases:?}");
        // At a quarter of the link's rate.
        let used = path.used(flow, 5.0, 20.0);
        assert!((0.2..0.26).contains(&used), "{transport}: {used}");
        let record = path.world.record(flow);
        let lost = record.dropped_data as f64 / record.data_packets as f64;
        assert!(lost < 0.15, "{transport}: {lost}");
    }
}
