//! XCP between hosts and routers: windows that follow feedback, shares that become equal, and queues that stay short.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RATE: Rate = Rate::from_mbit(20);

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + Duration::from_millis(millis)
}

/// Bulk flows that begin at these times, over 20 Mbit/s and 80 ms with a queue of one bandwidth-delay product.
fn world(transport: &str, starts: &[u64], xcp: bool) -> World {
    let mut world = World::new(5);
    let limit = QueueLimit { bytes: Some(Bytes::new(200_000)), ..QueueLimit::default() };
    let link = LinkConfig { limit, ..LinkConfig::new(RATE, Duration::from_millis(40)) };
    let chain = Chain::dumbbell(&mut world, &link, &link);
    world.network.watch(chain.forward_link(0));
    if xcp {
        world.network.add_xcp_router(chain.forward_link(0), Default::default(), RATE);
    }
    let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
    let profile = Arc::new(Profile::named(transport).expect("a listed profile"));
    for start in starts {
        let route = chain.connect(&mut world, host, host);
        let mut config = FlowConfig::new(profile.clone(), Pattern::Bulk, route);
        config.avoidance = AvoidanceConfig::Xcp(Default::default());
        config.startup = flowstart_core::startup::StartupConfig::SlowStart(Default::default());
        config.start = at(*start);
        world.add_flow(config);
    }
    world
}

/// Payload that each flow delivers from one time to another, as a share of the link's capacity.
fn shares(world: &mut World, from: u64, to: u64) -> Vec<f64> {
    let delivered = |world: &World| (0..world.flow_count()).map(|flow| world.record(flow as u32).delivered).collect();
    world.run_until(at(from));
    let before: Vec<u64> = delivered(world);
    world.run_until(at(to));
    let after: Vec<u64> = delivered(world);
    let capacity = RATE.amount_in(Duration::from_millis(to - from)).get() as f64;
    before.iter().zip(after).map(|(before, after)| (after - before) as f64 / capacity).collect()
}

fn dropped(world: &World) -> u64 {
    (0..world.flow_count()).map(|flow| world.record(flow as u32).dropped).sum()
}

#[test]
fn one_flow_fills_the_link_within_some_rtts_without_a_drop() {
    for transport in ["tcp-rfc", "rfc9002"] {
        let mut world = world(transport, &[0], true);
        let share = shares(&mut world, 2000, 6000)[0];
        // Headers take 4 to 8 % of the capacity.
        assert!(share > 0.88, "{transport}: {share}");
        assert_eq!(dropped(&world), 0, "{transport}");
        let longest = world.network.monitor.as_ref().and_then(|monitor| monitor.delays.max()).expect("packets left");
        assert!(longest < Duration::from_millis(40), "{transport}: {longest}");
    }
}

#[test]
fn a_flow_that_comes_later_gets_its_share() {
    let mut world = world("tcp-rfc", &[0, 4000, 8000], true);
    let two = shares(&mut world, 6000, 8000);
    assert!((0.8..1.25).contains(&(two[1] / two[0])), "{two:?}");
    let three = shares(&mut world, 11_000, 14_000);
    assert!(three.iter().all(|share| (0.25..0.4).contains(share)), "{three:?}");
    assert_eq!(dropped(&world), 0);
}

#[test]
fn without_a_router_the_window_does_not_grow() {
    let mut world = world("tcp-rfc", &[0], false);
    world.run_until(at(3000));
    let (_, cwnd, _) = world.window(0).expect("a model flow");
    assert_eq!(cwnd, Bytes::new(14_600), "ten segments");
}

#[test]
fn worlds_with_xcp_repeat_and_can_be_forked() {
    let mut first = world("rfc9002", &[0, 500], true);
    first.run_until(at(1500));
    let mut second = first.clone();
    for world in [&mut first, &mut second] {
        world.run_until(at(4000));
    }
    assert_eq!(first.record(1), second.record(1));
}
