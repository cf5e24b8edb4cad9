//! Congestion window validation in both model transports: chunks after idle time, and flows whose packets take another
//! path.

use std::sync::Arc;

use flowstart_core::controller::WindowValidation;
use flowstart_core::event::Decision;
use flowstart_core::startup::{StartupConfig, jump_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(100);
const CHUNK: u64 = 400_000;

/// A chunk, idle time, and a second chunk over 100 Mbit/s: round trips that each takes until its last byte arrives, and
/// the world.
fn chunks(profile: Profile, idle: Duration) -> ([f64; 2], World) {
    let mut world = World::new(1);
    let link = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
    let chain = Chain::dumbbell(&mut world, &link, &link);
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let pattern = Pattern::Chunks { size: Bytes::new(CHUNK), interval: idle, count: 2 };
    world.network.trace = Some(Box::<Trace>::default());
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), pattern, route));
    world.run_flow(flow, Timestamp::from_nanos(2_000_000_000_000)).expect("the chunks arrive");
    let begin = world.record(flow).first_data_sent.expect("data was sent");
    let trace = world.network.trace.as_ref().expect("it was set");
    let arrived = |end| {
        let last = |event| matches!(event, Event::Received { offset, len } if offset + u64::from(len) == end);
        trace.entries.iter().find(|entry| last(entry.event)).expect("the chunk arrived").time
    };
    let rounds = [(begin, CHUNK), (begin + idle, 2 * CHUNK)]
        .map(|(begin, end)| arrived(end).since(begin).as_secs() / RTT.as_secs());
    (rounds, world)
}

fn profile(name: &str, idle: WindowValidation) -> Profile {
    Profile { idle, ..Profile::named(name).expect("a listed profile") }
}

fn decisions(world: &World) -> Vec<Decision> {
    let trace = world.network.trace.as_ref().expect("it was set");
    let decision = |event| if let Event::Decided(decision) = event { Some(decision) } else { None };
    trace.entries.iter().filter_map(|entry| decision(entry.event)).collect()
}

#[test]
fn a_second_chunk_meets_the_window_that_the_policy_has_left() {
    for name in ["rfc9002", "tcp-rfc"] {
        let rounds = |idle| chunks(profile(name, idle), Duration::from_millis(10_000)).0;
        // The first chunk has left a window for all of the second: half a round trip and 32 ms of serialization, and
        // for QUIC the window of about 600 kB is paced with a gain of 1.25 over the RTT.
        let [_, kept] = rounds(WindowValidation::Keep);
        assert!((0.5..1.4).contains(&kept), "{name}: {kept}");
        // From ten segments again, as the first chunk: 10, 20, 40, 80, 160 segments are 361 and 453 kB, so four rounds
        // and a half or more.
        let [first, restarted] = rounds(WindowValidation::Rfc5681);
        assert!(restarted > 4.5 && (restarted - first).abs() < 0.5, "{name}: {first}, {restarted}");
        // Ten seconds are enough timeouts for a window of one segment: more than three rounds more.
        let [_, decayed] = rounds(WindowValidation::Rfc2861);
        assert!((restarted + 2.0..restarted + 5.0).contains(&decayed), "{name}: {decayed}");
        // Five minutes are not over, and then they are: half of the window is still most of the chunk.
        let [_, nonvalidated] = rounds(WindowValidation::Rfc7661);
        assert!((nonvalidated - kept).abs() < 0.05, "{name}: {nonvalidated}");
        let ([_, late], world) = chunks(profile(name, WindowValidation::Rfc7661), Duration::from_millis(400_000));
        assert!(late > nonvalidated, "{name}: {late}");
        let halved = decisions(&world).iter().any(|decision| match decision {
            Decision::WindowValidated { before, after, .. } => *after == *before / 2,
            _ => false,
        });
        assert!(halved, "{name}");
    }
}

#[test]
fn a_chunk_within_the_timeout_is_not_idle_time() {
    // TCP's timeout is at least a second. The first chunk takes six round trips.
    let gap = Duration::from_millis(1200);
    let kept = chunks(profile("tcp-rfc", WindowValidation::Keep), gap).0;
    assert_eq!(chunks(profile("tcp-rfc", WindowValidation::Rfc5681), gap).0, kept);
}

#[test]
fn the_scheme_runs_again_with_what_waits_then() {
    for name in ["rfc9002", "tcp-rfc"] {
        let startup = StartupConfig::JumpStart(jump_start::Config { threshold: None, ..jump_start::Config::default() });
        let profile = Profile { startup, ..profile(name, WindowValidation::Startup) };
        let waiting = profile.bytes_in_flight(CHUNK);
        let ([_, rounds], world) = chunks(profile, Duration::from_millis(10_000));
        // All of the chunk, paced over a round trip, and half a round trip to arrive.
        assert!((1.3..1.7).contains(&rounds), "{name}: {rounds}");
        let launches: Vec<_> = decisions(&world)
            .into_iter()
            .filter_map(|decision| match decision {
                Decision::Launched { cwnd, .. } => Some(cwnd),
                _ => None,
            })
            .collect();
        assert_eq!(launches, [waiting, waiting], "{name}");
    }
}

#[test]
fn rfc_2861_takes_an_unused_window_back_while_a_trickle_flows() {
    let trickle = |idle| {
        let mut world = World::new(1);
        let link = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
        let chain = Chain::dumbbell(&mut world, &link, &link);
        let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
        let route = chain.connect(&mut world, host, host);
        let pattern = Pattern::Chunks { size: Bytes::new(5_000), interval: Duration::from_millis(50), count: 400 };
        let mut profile = profile("tcp-rfc", idle);
        profile.initial_window = 400;
        let flow = world.add_flow(FlowConfig::new(Arc::new(profile), pattern, route));
        world.run_until(Timestamp::from_nanos(18_000_000_000));
        world.window(flow).expect("a model sender").1.get()
    };
    // The first chunk is no sign yet that the application limits the sender.
    let unused = 400 * 1460..=400 * 1460 + 5_000;
    assert!(unused.contains(&trickle(WindowValidation::Keep)));
    // Mean of the window and of the three chunks at most in flight (15 kB), once a timeout of a second.
    let left = trickle(WindowValidation::Rfc2861);
    assert!((10_000..20_000).contains(&left), "{left}");
    assert!(unused.contains(&trickle(WindowValidation::Rfc7661)));
}

#[test]
fn a_change_of_path_starts_again_and_loses_nothing() {
    for name in ["rfc9002", "tcp-rfc"] {
        for scheme in StartupConfig::defaults() {
            let mut world = World::new(1);
            let fast = LinkConfig::new(Rate::from_mbit(100), Duration::from_millis(10));
            let slow = LinkConfig::new(Rate::from_mbit(5), Duration::from_millis(40));
            let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
            let routes = [fast, slow].map(|link| {
                let chain = Chain::dumbbell(&mut world, &link, &link);
                chain.connect(&mut world, host, host)
            });
            let profile = profile(name, WindowValidation::Startup);
            let segment = u64::from(profile.segment);
            let pattern = Pattern::Transfer(Bytes::new(10_000_000));
            let [before, after] = routes;
            let mut config = FlowConfig::new(Arc::new(profile), pattern, before);
            config.startup = scheme.clone();
            let flow = world.add_flow(config);
            world.run_until(Timestamp::from_nanos(400_000_000));
            world.change_path(flow, &after);
            let window = world.window(flow).expect("a model sender").1;
            // Nothing is known of the new path: the initial window of the scheme or of the host.
            assert!(window.get() <= 100 * segment, "{name}, {}: {window}", scheme.name());
            world.run_flow(flow, Timestamp::from_nanos(200_000_000_000)).expect("it completes on the new path");
            assert_eq!(world.record(flow).delivered, 10_000_000);
        }
    }
}
