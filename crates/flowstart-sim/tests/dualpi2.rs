//! Prague and CUBIC at a link with coupled queues.

use std::sync::Arc;

use flowstart_core::aqm::{QueueConfig, QueueLimit};
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

const RATE: Rate = Rate::from_mbit(50);

fn prague() -> AvoidanceConfig {
    AvoidanceConfig::Prague(Default::default())
}

fn cubic() -> AvoidanceConfig {
    AvoidanceConfig::Cubic(Default::default())
}

/// Bulk flows with these avoidances over 50 Mbit/s and this RTT behind `dualpi2`; CUBIC is ECN-capable or not.
fn world(rtt_ms: u64, avoidances: &[AvoidanceConfig], transport: &str, ecn: bool) -> (World, u32) {
    let mut world = World::new(11);
    let limit = QueueLimit { bytes: Some(Bytes::new(5_000_000)), ..QueueLimit::default() };
    let queue = QueueConfig::DualPi2(Default::default());
    let delay = Duration::from_micros(rtt_ms * 500);
    let back = LinkConfig { limit, ..LinkConfig::new(RATE, delay) };
    let link = LinkConfig { queue, ..back.clone() };
    let chain = Chain::dumbbell(&mut world, &link, &back);
    let bottleneck = chain.forward_link(0);
    world.network.watch(bottleneck);
    let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
    let profile = Arc::new(Profile { ecn, ..Profile::named(transport).expect("a listed profile") });
    for avoidance in avoidances {
        let route = chain.connect(&mut world, host, host);
        world.add_flow(FlowConfig {
            avoidance: avoidance.clone(),
            startup: StartupConfig::SlowStart(Default::default()),
            ..FlowConfig::new(profile.clone(), Pattern::Bulk, route)
        });
    }
    (world, bottleneck)
}

/// Payload in Mbit/s that each flow delivers from one second to another.
fn rates(world: &mut World, from: u64, to: u64) -> Vec<f64> {
    let delivered = |world: &World| -> Vec<u64> {
        (0..world.flow_count()).map(|flow| world.record(flow as u32).delivered).collect()
    };
    world.run_until(Timestamp::from_nanos(from * 1_000_000_000));
    let before = delivered(world);
    world.run_until(Timestamp::from_nanos(to * 1_000_000_000));
    let seconds = (to - from) as f64;
    before.iter().zip(delivered(world)).map(|(before, after)| (after - before) as f64 * 8e-6 / seconds).collect()
}

#[test]
fn a_prague_flow_fills_the_link_with_a_short_queue_and_without_a_drop() {
    for transport in ["tcp-linux", "rfc9002"] {
        let (mut world, link) = world(20, &[prague()], transport, false);
        let rate = rates(&mut world, 5, 20)[0];
        let median = world.network.monitor.as_mut().and_then(|monitor| monitor.delays.quantile(0.5)).unwrap();
        println!("{transport}: {rate:.1} Mbit/s, median delay {median}");
        // Headers take 4 to 7 %.
        assert!(rate > 42.0, "{transport}: {rate}");
        assert!(median < Duration::from_millis(2), "{transport}: {median}");
        assert_eq!(world.network.link(link).counters().dropped, 0, "{transport}");
    }
}

#[test]
fn prague_and_cubic_get_rates_of_the_same_order() {
    for rtt in [20, 50] {
        for ecn in [true, false] {
            let (mut world, _) = world(rtt, &[prague(), cubic()], "tcp-linux", ecn);
            let rates = rates(&mut world, 20, 80);
            let ratio = rates[0] / rates[1];
            println!("{rtt} ms, ecn {ecn}: {rates:.1?}, ratio {ratio:.2}");
            // RFC 9332, section 1.1: about the same rate; half and double of it, chosen before it was measured.
            assert!((0.5..=2.0).contains(&ratio), "{rtt} ms, ecn {ecn}: {rates:?}");
            assert!(rates.iter().sum::<f64>() > 40.0, "{rates:?}");
        }
    }
}
