//! Receive windows: they limit the sent data, they grow by their policy, and a policy may let a sender ignore them.

use std::sync::Arc;

use flowstart_core::startup::{StartupConfig, jump_start, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::IgnoreReceiveWindow;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(100);
const SIZE: u64 = 1_000_000;

/// A jump over 100 Mbit/s to a receiver with this profile; returns the world and the round trips of data.
fn jump(profile: Profile) -> (World, f64) {
    let config = jump_start::Config { threshold: None, ..jump_start::Config::default() };
    transfer(profile, StartupConfig::JumpStart(config))
}

fn transfer(profile: Profile, startup: StartupConfig) -> (World, f64) {
    let mut world = World::new(1);
    let link = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
    let chain = Chain::dumbbell(&mut world, &link, &link);
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    world.network.trace = Some(Box::<Trace>::default());
    let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(SIZE)), route);
    config.startup = startup;
    let flow = world.add_flow(config);
    world.run_flow(flow, Timestamp::from_nanos(100_000_000_000)).expect("the transfer completes");
    let record = world.record(flow);
    let taken = record.completed.expect("it is complete").since(record.first_data_sent.expect("data was sent"));
    let rounds = taken.as_secs() / RTT.as_secs();
    (world, rounds)
}

fn with(name: &str, initial: Option<u64>, largest: u64, ignore: IgnoreReceiveWindow) -> Profile {
    Profile {
        initial_receive_window: initial.map(Bytes::new),
        receive_window: Bytes::new(largest),
        ignore_receive_window: ignore,
        ..Profile::named(name).expect("a listed profile")
    }
}

/// The sender never sends beyond the announced window, and its blocked time equals the trace's.
fn check_limits(world: &World, initial: u64) {
    let trace = world.network.trace.as_ref().expect("it was set");
    let mut limit = initial;
    let mut stopped: Option<Timestamp> = None;
    let mut total = Duration::ZERO;
    for entry in &trace.entries {
        match entry.event {
            Event::FlowControl { blocked: true, limit: at } => {
                assert!(stopped.replace(entry.time).is_none());
                limit = limit.max(at);
            }
            Event::FlowControl { blocked: false, limit: at } => {
                total += entry.time.since(stopped.take().expect("it was stopped"));
                assert!(at > limit, "only a higher limit lets it go on");
                limit = at;
            }
            Event::Sent { .. } => assert_eq!(stopped, None, "nothing leaves while it is stopped"),
            _ => {}
        }
    }
    assert_eq!(world.record(0).flow_control_blocked, total);
}

#[test]
fn a_window_that_grows_with_slow_start_makes_a_jump_into_slow_start() {
    for name in ["tcp-rfc", "rfc9002"] {
        let (world, rounds) = jump(with(name, Some(14_600), 6_000_000, IgnoreReceiveWindow::Never));
        // 14,600 doubled every round reaches 1 MB in log2(1,000,000 / 14,600) = 6.1 rounds, as ten segments in slow
        // start do. A congestion window that flow control keeps from being used does not grow either, so it takes
        // longer.
        let slow_start = StartupConfig::SlowStart(slow_start::Config::default());
        let (_, slow) = transfer(with(name, None, 6_000_000, IgnoreReceiveWindow::Never), slow_start);
        assert!(slow > 5.5 && (0.95 * slow..2.0 * slow).contains(&rounds), "{name}: {rounds} and {slow}");
        assert!(world.record(0).flow_control_blocked > Duration::ZERO, "{name}");
        check_limits(&world, 14_600);
    }
}

#[test]
fn a_large_window_lets_the_jump_through() {
    for name in ["tcp-rfc", "rfc9002"] {
        let (world, rounds) = jump(with(name, None, 6_000_000, IgnoreReceiveWindow::Never));
        // Paced over one round trip, and half of one for the last packet.
        assert!((1.4..1.7).contains(&rounds), "{name}: {rounds}");
        assert_eq!(world.record(0).flow_control_blocked, Duration::ZERO, "{name}");
    }
}

#[test]
fn a_sender_that_ignores_the_window_while_it_probes_jumps_too() {
    for name in ["tcp-rfc", "rfc9002"] {
        let (_, rounds) = jump(with(name, Some(14_600), 6_000_000, IgnoreReceiveWindow::Probing));
        assert!((1.4..1.7).contains(&rounds), "{name}: {rounds}");
    }
}

#[test]
fn a_small_fixed_window_is_carried_once_per_round_trip() {
    for name in ["tcp-rfc", "rfc9002"] {
        let (world, rounds) = jump(with(name, None, 100_000, IgnoreReceiveWindow::Never));
        // Ten windows of 100,000 bytes: the jump takes one round trip, and every further window another.
        assert!((9.0..11.0).contains(&rounds), "{name}: {rounds}");
        check_limits(&world, 100_000);
    }
}
