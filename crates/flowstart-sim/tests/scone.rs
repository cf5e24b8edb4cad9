//! Throughput advice of the path (SCONE): its way to the sender, and its effect on a launch.

use std::sync::Arc;

use flowstart_core::event::Decision;
use flowstart_core::scone::element::Config;
use flowstart_core::startup::{StartupConfig, jump_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::observe::trace::Event;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::transport::scone::SconePolicy;
use flowstart_sim::world::World;

const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);
const JUMP: StartupConfig = StartupConfig::JumpStart(jump_start::Config {
    threshold: None,
    pacing: true,
    retreat: jump_start::Retreat::HalfDelivered,
    beta: 0.7,
});

/// Jump-Start of 2 MB over 50 Mbit/s and 50 ms, with an element that advises this many Mbit/s.
fn transfer(
    advised: Option<u64>,
    scone: SconePolicy,
    opening: Opening,
    startup: &StartupConfig,
) -> (FlowRecord, World) {
    let mut world = World::new(3);
    let link = LinkConfig::new(Rate::from_mbit(50), Duration::from_millis(25));
    let chain = Chain::dumbbell(&mut world, &link, &link);
    if let Some(mbit) = advised {
        world.network.add_advising_element(chain.forward_link(0), Config::new(Rate::from_mbit(mbit)));
    }
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let profile = Profile { scone, opening, ..Profile::rfc9002() };
    let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(2_000_000)), route);
    config.startup = startup.clone();
    world.network.trace = Some(Box::default());
    let flow = world.add_flow(config);
    world.run_flow(flow, LIMIT).expect("the transfer completes");
    (world.record(flow).clone(), world)
}

/// Window and rate of the launch.
fn launched(world: &World) -> (Bytes, Option<Rate>) {
    let entries = &world.network.trace.as_ref().expect("it was set").entries;
    let launch = entries.iter().find_map(|entry| match entry.event {
        Event::Decided(Decision::Launched { cwnd, pacing_rate }) => Some((cwnd, pacing_rate)),
        _ => None,
    });
    launch.expect("it launched")
}

fn seconds(time: Option<Timestamp>) -> f64 {
    time.expect("it happened").as_secs()
}

#[test]
fn advice_in_the_handshake_caps_the_launch_and_takes_no_time() {
    let (plain, free) = transfer(Some(10), SconePolicy::None, Opening::Request, &JUMP);
    assert_eq!(plain.advised, None, "an element has nothing to write in without SCONE packets");
    assert!(launched(&free).0 > Bytes::new(2_000_000));
    let (record, world) = transfer(Some(10), SconePolicy::Handshake, Opening::Request, &JUMP);
    let (time, rate) = record.advised.expect("the path advised");
    assert_eq!(rate, Rate::from_mbit(10));
    let rtt = record.handshake_rtt.expect("measured");
    // 10 Mbit/s * 51 ms = 64 kB, at 10 Mbit/s.
    assert_eq!(launched(&world), (rate.amount_in(rtt), Some(rate)));
    assert!((60_000..70_000).contains(&launched(&world).0.get()));
    let (first, without) = (seconds(record.first_data_sent), seconds(plain.first_data_sent));
    // Three SCONE packets of 23 bytes and the report of 4 take 12 us at 50 Mbit/s.
    assert!(time.as_secs() <= first && (0.0..20e-6).contains(&(first - without)), "{first} {without}");
}

#[test]
fn advice_with_the_first_data_comes_one_rtt_after_it() {
    let (record, world) = transfer(Some(10), SconePolicy::Data, Opening::Request, &JUMP);
    assert!(launched(&world).0 > Bytes::new(2_000_000), "nothing is known at the launch");
    let (time, rtt) = (record.advised.expect("the path advised").0, record.handshake_rtt.expect("measured"));
    let late = time.as_secs() - seconds(record.first_data_sent);
    // With the first acknowledgement: of two packets, or after its longest delay of 25 ms.
    assert!((rtt.as_secs() - 0.002..rtt.as_secs() + 0.025).contains(&late), "{late} of {rtt}");
    // A sender in the first flight cannot know the advice either.
    for opening in [Opening::ZeroRtt, Opening::Sender] {
        let (record, _) = transfer(Some(10), SconePolicy::Handshake, opening, &JUMP);
        let (time, _) = record.advised.expect("the path advised");
        assert!(time.as_secs() > seconds(record.first_data_sent) + 0.04, "{opening:?}");
    }
}

#[test]
fn advice_leaves_slow_start_and_congestion_avoidance_alone() {
    let slow_start = StartupConfig::SlowStart(Default::default());
    for policy in [SconePolicy::Handshake, SconePolicy::Data] {
        let (advised, _) = transfer(Some(1), policy, Opening::Request, &slow_start);
        let (free, _) = transfer(None, policy, Opening::Request, &slow_start);
        assert_eq!(advised.advised.map(|(_, rate)| rate), Some(Rate::from_mbit(1)));
        // The same packets at the same times, except for the reports' few bytes in the reverse direction.
        assert_eq!(FlowRecord { advised: None, ..advised.clone() }.data_packets, free.data_packets);
        let (late, early) = (seconds(advised.completed), seconds(free.completed));
        assert!((late - early).abs() < 1e-4, "{late} {early}");
    }
}

#[test]
fn the_lowest_of_two_elements_is_heard() {
    let mut world = World::new(3);
    let link = LinkConfig::new(Rate::from_mbit(50), Duration::from_millis(10));
    let chain = Chain::new(&mut world, &[(link.clone(), link.clone()), (link.clone(), link)]);
    for (hop, mbit) in [(0, 10), (1, 20)] {
        world.network.add_advising_element(chain.forward_link(hop), Config::new(Rate::from_mbit(mbit)));
    }
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let profile = Profile { scone: SconePolicy::Handshake, ..Profile::rfc9002() };
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(20_000)), route));
    world.run_flow(flow, LIMIT).expect("the transfer completes");
    assert_eq!(world.record(flow).advised.map(|(_, rate)| rate), Some(Rate::from_mbit(10)));
}
