//! Connections to one client that share a window, in both model transports.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::event::Decision;
use flowstart_core::startup::{StartupConfig, ensemble_sharing};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(60);
const LATER: Timestamp = Timestamp::from_nanos(1_400_000_000);

/// A transfer of 5 MB, and from a second later on one of 300 KB of the same server to the same client, over 20 Mbit/s.
fn transfers(name: &str, share: bool) -> World {
    let mut world = World::new(1);
    let bandwidth_delay_product = QueueLimit { bytes: Some(Bytes::new(150_000)), ..QueueLimit::default() };
    let link = LinkConfig { limit: bandwidth_delay_product, ..LinkConfig::new(Rate::from_mbit(20), RTT / 2) };
    let chain = Chain::dumbbell(&mut world, &link, &link);
    let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let profile = Arc::new(Profile::named(name).expect("a listed profile"));
    let ensemble = share.then(|| world.network.add_ensemble(Bytes::new(2400)));
    world.network.trace = Some(Box::<Trace>::default());
    for (size, start) in [(5_000_000, Timestamp::ZERO), (300_000, LATER)] {
        let transfer = Pattern::Transfer(Bytes::new(size));
        world.add_flow(FlowConfig {
            startup: StartupConfig::EnsembleSharing(ensemble_sharing::Config::default()),
            avoidance: AvoidanceConfig::Cubic(cubic::Config::default()),
            start,
            ensemble,
            ..FlowConfig::new(Arc::clone(&profile), transfer, route.clone())
        });
    }
    for flow in [0, 1] {
        world.run_flow(flow, Timestamp::from_nanos(60_000_000_000)).expect("it is complete");
    }
    world
}

/// The decisions of a flow with their times.
fn decisions(world: &World, flow: u32) -> Vec<(Timestamp, Decision)> {
    let trace = world.network.trace.as_ref().expect("it was set");
    let of_flow = trace.entries.iter().filter(|entry| entry.flow == flow);
    of_flow
        .filter_map(|entry| if let Event::Decided(one) = entry.event { Some((entry.time, one)) } else { None })
        .collect()
}

/// The windows that others have changed, before and after.
fn shares(world: &World, flow: u32) -> Vec<(Timestamp, Bytes, Bytes)> {
    let shared = decisions(world, flow).into_iter();
    shared
        .filter_map(|(time, one)| match one {
            Decision::WindowShared { before, after } => Some((time, before, after)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_newcomer_takes_half_and_what_it_leaves_goes_back() {
    for name in ["rfc9002", "tcp-linux"] {
        let world = transfers(name, true);
        let launched = decisions(&world, 1).into_iter().find_map(|(time, one)| match one {
            Decision::Launched { cwnd, .. } => Some((time, cwnd)),
            _ => None,
        });
        let (at, share) = launched.expect("it has launched");
        let [(told, before, after), .., (back, fewer, more)] = shares(&world, 0)[..] else {
            panic!("{name}: {:?}", shares(&world, 0))
        };
        // The running transfer learns of the newcomer with its next acknowledgement. It has half, or what its own
        // algorithm did since on top.
        assert!(told >= at && told.since(at) < RTT, "{name}: {told:?} {at:?}");
        assert!((before - after).get().abs_diff(share.get()) <= share.get() / 20, "{name}: {before} {after} {share}");
        // It gets more back when the newcomer has nothing in flight.
        let done = world.record(1).completed.expect("it is complete");
        assert!(more > fewer && back >= done && back.since(done) < RTT * 3, "{name}: {back:?} {done:?}");
    }
}

#[test]
fn a_newcomer_that_shares_needs_fewer_round_trips_and_takes_nothing_from_the_path() {
    for name in ["rfc9002", "tcp-linux"] {
        let (shared, alone) = (transfers(name, true), transfers(name, false));
        let time = |world: &World, flow| {
            let record = world.record(flow);
            record.completed.zip(record.started).map(|(end, start)| end.since(start)).expect("it is complete")
        };
        assert!(time(&shared, 1).scale(1.2) < time(&alone, 1), "{name}");
        assert!(shares(&alone, 0).is_empty() && shares(&alone, 1).is_empty(), "{name}");
    }
}
