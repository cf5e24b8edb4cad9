//! Quick-Start in mid-connection in both model transports: after idle time, on another path, after losses, and the form
//! of its packets.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::controller::WindowValidation;
use flowstart_core::event::Decision;
use flowstart_core::quick_start::router;
use flowstart_core::quick_start::wire::{IPV4_OPTION, LENGTH, TCP_OPTION};
use flowstart_core::startup::StartupConfig;
use flowstart_core::startup::quick_start::{Config, FAILED, OptionRoom, RequestKind};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::observe::trace::{Event, HostPacket, Trace};
use flowstart_sim::packet::{Body, Direction, NO_OPTION};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(100);
const CHUNK: u64 = 400_000;
const NAMES: [&str; 2] = ["rfc9002", "tcp-rfc"];
const IDLE: Duration = Duration::from_millis(10_000);

/// Requests 100 Mbit/s, which is 163.84 in the code.
fn greedy() -> Config {
    Config { request: RequestKind::Fixed, rate: Rate::from_mbit(100), ..Config::default() }
}

/// A path of 100 Mbit/s in `world` whose router behaves like this.
fn path(world: &mut World, rate: Rate, limit: Option<Bytes>, router: router::Config) -> Route {
    let limit = QueueLimit { bytes: limit, ..QueueLimit::default() };
    let link = LinkConfig { limit, ..LinkConfig::new(rate, RTT / 2) };
    let chain = Chain::dumbbell(world, &link, &LinkConfig::new(rate, RTT / 2));
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(world, host, host);
    // The router of the bottleneck, and the one that the receiver is attached to.
    world.network.add_router(route.forward[1], router, rate);
    world.network.add_router(route.forward[2], router::Config::default(), Rate::from_mbit(10_000));
    route
}

/// A world with a flow of two chunks that has not begun.
fn two_chunks(name: &str, config: Config, limit: Option<Bytes>, router: router::Config) -> (World, u32) {
    let mut world = World::new(1);
    let route = path(&mut world, Rate::from_mbit(100), limit, router);
    let profile = Profile { idle: WindowValidation::Rfc5681, ..Profile::named(name).expect("a listed profile") };
    let pattern = Pattern::Chunks { size: Bytes::new(CHUNK), interval: IDLE, count: 2 };
    world.network.trace = Some(Box::<Trace>::default());
    let mut flow = FlowConfig::new(Arc::new(profile), pattern, route);
    flow.startup = StartupConfig::QuickStart(config);
    let flow = world.add_flow(flow);
    (world, flow)
}

fn finish(world: &mut World, flow: u32) {
    world.run_flow(flow, Timestamp::from_nanos(400_000_000_000)).expect("the chunks arrive");
    assert!(world.network.packets_in_flight() < 1000);
}

fn trace(world: &World) -> &Trace {
    world.network.trace.as_ref().expect("it was set")
}

/// Windows of the launches, and the packets of data and the acknowledgements that left a host with an option.
fn seen(world: &World) -> (Vec<u64>, Vec<HostPacket>) {
    let launched = |event| match event {
        Event::Decided(Decision::Launched { cwnd, .. }) => Some(cwnd.get()),
        _ => None,
    };
    let with_option = |packet: &&HostPacket| {
        !packet.reached && packet.quick_start != NO_OPTION && !matches!(packet.body, Body::Handshake { .. })
    };
    let trace = trace(world);
    (
        trace.entries.iter().filter_map(|entry| launched(entry.event)).collect(),
        trace.packets.iter().filter(with_option).copied().collect(),
    )
}

/// Round trips from the writing of the second chunk until its last byte arrives.
fn rounds(world: &World, flow: u32) -> f64 {
    let begin = world.record(flow).first_data_sent.expect("data was sent") + IDLE;
    let last = |event| matches!(event, Event::Received { offset, len } if offset + u64::from(len) == 2 * CHUNK);
    let end = trace(world).entries.iter().find(|entry| last(entry.event)).expect("the chunk arrived").time;
    end.since(begin).as_secs() / RTT.as_secs()
}

#[test]
fn data_after_idle_time_carries_a_request_and_its_acknowledgement_the_answer() {
    for name in NAMES {
        let asks = Config { after_idle: Some(Duration::from_millis(5000)), ..greedy() };
        let (mut world, flow) = two_chunks(name, asks, None, router::Config::default());
        finish(&mut world, flow);
        let (launches, packets) = seen(&world);
        // 90 % of 100 Mbit/s rounded down: 81.92, of which equation (1) with 40 bytes of headers leaves less than the
        // RTT's 1.024 MB, in whole segments; the second RTT has a little of the acknowledged packet's serialization in
        // it.
        assert_eq!(launches.len(), 2, "{name}");
        let segment = u64::from(Profile::named(name).expect("listed").segment);
        assert!(launches.iter().all(|window| (950_000..1_024_000).contains(window)), "{name}: {launches:?}");
        assert!(launches.iter().all(|window| window % segment == 0), "{name}: {launches:?}");
        assert_eq!(world.record(flow).later_approvals, 1, "{name}");
        // A request with the chunk's first packet, the answer with an acknowledgement of it, the report a round trip
        // later.
        let [request, answer, report] = packets[..] else { panic!("{name}: {} packets", packets.len()) };
        assert_eq!(
            (request.direction, answer.direction, report.direction),
            (Direction::Forward, Direction::Return, Direction::Forward)
        );
        assert_eq!(
            (request.body.offset(), request.quick_start[0], request.quick_start[2] >> 4),
            (Some(CHUNK), IPV4_OPTION, 0)
        );
        assert_eq!(
            (answer.quick_start[0], report.quick_start[0], report.quick_start[2] >> 4),
            (TCP_OPTION, IPV4_OPTION, 8)
        );
        let waited = report.time.since(request.time).as_secs() / RTT.as_secs();
        assert!((1.0..1.05).contains(&waited), "{name}: {waited}");
        // The chunk arrives half an RTT and its serialization after the answer opens the window: 1.5 RTT and 32 ms.
        let taken = rounds(&world, flow);
        assert!((1.5..2.1).contains(&taken), "{name}: {taken}");
        // Without it, ten segments again: four round trips and a half or more.
        let (mut world, flow) = two_chunks(name, greedy(), None, router::Config::default());
        finish(&mut world, flow);
        assert_eq!((seen(&world).0.len(), seen(&world).1.len()), (1, 0), "{name}");
        assert!(rounds(&world, flow) > 4.0, "{name}");
    }
}

#[test]
fn an_option_takes_its_bytes_from_its_packet_or_from_all() {
    for name in NAMES {
        let profile = Profile::named(name).expect("listed");
        let (payload, option) = (profile.payload, LENGTH as u32);
        for (room, plain) in [(OptionRoom::Packet, payload), (OptionRoom::Connection, payload - option)] {
            let asks = Config { after_idle: Some(Duration::from_millis(5000)), room, ..greedy() };
            let (mut world, flow) = two_chunks(name, asks, None, router::Config::default());
            finish(&mut world, flow);
            let data = |packet: &&HostPacket| !packet.reached && matches!(packet.body, Body::Data { .. });
            for packet in trace(&world).packets.iter().filter(data) {
                let Body::Data { len, .. } = packet.body else { continue };
                let carries = packet.quick_start != NO_OPTION;
                let full = if carries { payload - option } else { plain };
                assert!(len <= full, "{name}");
                // No packet is larger than a full one without an option.
                assert!(packet.size <= profile.data_wire_size(payload), "{name}");
                if carries {
                    assert_eq!((len, packet.size), (full, profile.data_wire_size(payload)), "{name}");
                }
            }
        }
    }
}

#[test]
fn idle_time_that_is_too_short_and_data_that_fits_the_window_ask_for_nothing() {
    for name in NAMES {
        let asks = Config { after_idle: Some(Duration::from_millis(20_000)), ..greedy() };
        let (mut world, flow) = two_chunks(name, asks, None, router::Config::default());
        finish(&mut world, flow);
        assert_eq!(seen(&world).1.len(), 0, "{name}");
        // The window is kept, and is enough for the chunk.
        let mut world = World::new(1);
        let route = path(&mut world, Rate::from_mbit(100), None, router::Config::default());
        let pattern = Pattern::Chunks { size: Bytes::new(CHUNK), interval: IDLE, count: 2 };
        world.network.trace = Some(Box::<Trace>::default());
        let mut flow = FlowConfig::new(Arc::new(Profile::named(name).expect("listed")), pattern, route);
        let asks = Config { after_idle: Some(Duration::from_millis(5000)), ..greedy() };
        flow.startup = StartupConfig::QuickStart(asks);
        let flow = world.add_flow(flow);
        finish(&mut world, flow);
        assert_eq!(seen(&world).1.len(), 0, "{name}");
    }
}

#[test]
fn a_request_that_a_router_drops_is_repeated_without_the_option_and_changes_nothing() {
    for name in NAMES {
        let drops = router::Config { behaviour: router::Behaviour::Drop, ..router::Config::default() };
        let asks = Config { after_idle: Some(Duration::from_millis(5000)), ..greedy() };
        let (mut world, flow) = two_chunks(name, asks, None, drops);
        finish(&mut world, flow);
        let (launches, packets) = seen(&world);
        assert_eq!((launches.len(), packets.len()), (1, 1), "{name}: the request is seen once");
        let offset = packets[0].body.offset();
        let again = |packet: &&HostPacket| !packet.reached && packet.body.offset() == offset;
        let copies: Vec<_> = trace(&world).packets.iter().filter(again).collect();
        assert!(copies.len() > 1 && copies[1..].iter().all(|packet| packet.quick_start == NO_OPTION), "{name}");
        assert_eq!(world.record(flow).later_approvals, 0, "{name}");
    }
}

#[test]
fn an_option_that_a_router_deletes_leaves_its_packet_smaller() {
    for name in NAMES {
        let deletes = router::Config { behaviour: router::Behaviour::Delete, ..router::Config::default() };
        let asks = Config { after_idle: Some(Duration::from_millis(5000)), ..greedy() };
        let (mut world, flow) = two_chunks(name, asks, None, deletes);
        finish(&mut world, flow);
        let (_, packets) = seen(&world);
        let [request] = packets[..] else { panic!("{name}: {} packets", packets.len()) };
        let arrived = trace(&world).packets.iter().find(|p| p.reached && p.body.offset() == request.body.offset());
        let arrived = arrived.expect("the packet arrives");
        assert_eq!((arrived.quick_start, arrived.size), (NO_OPTION, request.size - LENGTH as u32), "{name}");
    }
}

/// Three chunks of 2 MB over 40 Mbit/s with room for 20 packets, whose router approves everything.
fn overloaded(name: &str, opening: Opening) -> (World, u32) {
    let generous = router::Config { behaviour: router::Behaviour::ApproveAll, ..router::Config::default() };
    let mut world = World::new(1);
    let route = path(&mut world, Rate::from_mbit(40), Some(Bytes::new(30_000)), generous);
    let profile =
        Profile { idle: WindowValidation::Rfc5681, opening, ..Profile::named(name).expect("a listed profile") };
    let pattern = Pattern::Chunks { size: Bytes::new(2_000_000), interval: IDLE, count: 3 };
    world.network.trace = Some(Box::<Trace>::default());
    let mut flow = FlowConfig::new(Arc::new(profile), pattern, route);
    flow.startup = StartupConfig::QuickStart(Config { after_idle: Some(Duration::from_millis(5000)), ..greedy() });
    let flow = world.add_flow(flow);
    finish(&mut world, flow);
    (world, flow)
}

#[test]
fn after_a_failure_the_window_is_the_one_without_and_nothing_more_is_asked_for() {
    for name in NAMES {
        let failed = |event| matches!(event, Event::Decided(Decision::PhaseEntered { phase: FAILED, .. }));
        let ten = 10 * u64::from(Profile::named(name).expect("listed").segment);
        // The first window fails; with 0-RTT, which sends no first request, the window of the second chunk, after one
        // request. Without it the window would be the initial one, which the request's own acknowledgement has made a
        // segment larger.
        for (opening, options, more) in [(Opening::Request, 0, 0), (Opening::ZeroRtt, 3, ten / 10)] {
            let (world, _) = overloaded(name, opening);
            assert_eq!(seen(&world).1.len(), options, "{name}");
            let entries = &trace(&world).entries;
            let at = entries.iter().position(|entry| failed(entry.event)).expect("the window fails");
            let after = entries[at..].iter().find_map(|entry| match entry.event {
                Event::Decided(Decision::WindowReduced { after, .. }) => Some(after.get()),
                _ => None,
            });
            let growth = after.map(|after| after - ten);
            assert!(growth.is_some_and(|growth| growth <= more && growth + LENGTH as u64 >= more), "{name}: {after:?}");
            assert_eq!(entries.iter().filter(|entry| failed(entry.event)).count(), 1, "{name}");
        }
    }
}

#[test]
fn the_first_data_on_another_path_asks_there() {
    for name in NAMES {
        for (after_move, requests) in [(true, 1), (false, 0)] {
            let mut world = World::new(1);
            let slow = path(&mut world, Rate::from_mbit(2), None, router::Config::default());
            let profile = Profile::named(name).expect("listed");
            world.network.trace = Some(Box::<Trace>::default());
            let mut flow = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(3_000_000)), slow);
            flow.startup = StartupConfig::QuickStart(Config { after_move, ..greedy() });
            let flow = world.add_flow(flow);
            world.run_until(Timestamp::ZERO + Duration::from_millis(3000));
            let fast = path(&mut world, Rate::from_mbit(100), None, router::Config::default());
            world.change_path(flow, &fast);
            finish(&mut world, flow);
            let (launches, packets) = seen(&world);
            let asked = packets
                .iter()
                .filter(|packet| packet.quick_start[2] >> 4 == 0 && packet.direction == Direction::Forward);
            assert_eq!(asked.count(), requests, "{name}");
            assert_eq!(world.record(flow).later_approvals, requests as u32, "{name}");
            // What the new path approves is for 100 Mbit/s.
            let last = launches.last().copied().unwrap_or(0);
            assert_eq!(last > 900_000, after_move, "{name}: {launches:?}");
        }
    }
}

#[test]
fn parallel_connections_ask_for_their_part() {
    for name in NAMES {
        let asked = |parallel| {
            let (mut world, flow) = two_chunks(name, Config { parallel, ..greedy() }, None, router::Config::default());
            finish(&mut world, flow);
            world.record(flow).requested_rate
        };
        // 100 Mbit/s are rounded up to 163.84, a quarter of them to 40.96 and an eighth to 20.48.
        assert_eq!(
            [1, 4, 8].map(asked),
            [163_840_000, 40_960_000, 20_480_000].map(|rate| Some(Rate::from_bits_per_sec(rate)))
        );
    }
}

#[test]
fn a_coarse_timer_sends_what_fell_due_with_its_ticks() {
    for name in NAMES {
        let granularity = Duration::from_millis(10);
        let (mut world, flow) = two_chunks(name, Config { granularity, ..greedy() }, None, router::Config::default());
        finish(&mut world, flow);
        let first = world.record(flow).first_data_sent.expect("data was sent");
        let sent: Vec<_> = trace(&world)
            .entries
            .iter()
            .filter(|entry| matches!(entry.event, Event::Sent { .. }) && entry.time < first + RTT)
            .map(|entry| entry.time)
            .collect();
        // 400 kB at 81.92 Mbit/s last 39 ms: one packet at once, and the rest with four or five ticks.
        let mut times = sent.clone();
        times.dedup();
        assert!((5..=6).contains(&times.len()), "{name}: {times:?}");
        assert!(times[1..].iter().all(|time| time.as_nanos() % granularity.as_nanos() == 0), "{name}: {times:?}");
        assert!(sent.len() > 250, "{name}: {}", sent.len());
    }
}

/// When the packets with payload or of the handshake reached the receiver: their time, part of the handshake's flight
/// or offset, and whether they had an option.
fn reached(world: &World) -> Vec<(Timestamp, Result<u8, u64>, bool)> {
    let forward = trace(world).packets.iter().filter(|packet| packet.reached && packet.direction == Direction::Forward);
    let place = |packet: &HostPacket| {
        let place = match packet.body {
            Body::Handshake { part, .. } => Ok(part),
            _ => Err(packet.body.offset()?),
        };
        Some((packet.time, place, packet.quick_start != NO_OPTION))
    };
    forward.filter_map(place).collect()
}

#[test]
fn a_router_processes_options_before_it_queues_the_packet_and_handshakes_stay_in_order() {
    const PROCESSING: Duration = Duration::from_millis(20);
    for name in NAMES {
        let run = |processing, behaviour| {
            let router = router::Config { processing, behaviour, ..router::Config::default() };
            let (mut world, flow) = two_chunks(name, greedy(), None, router);
            finish(&mut world, flow);
            (world.record(flow).handshake_rtt.expect("measured"), reached(&world))
        };
        let (fast, _) = run(Duration::ZERO, router::Behaviour::Participate);
        for behaviour in [router::Behaviour::Participate, router::Behaviour::Ignore, router::Behaviour::Zero] {
            let (rtt, reached) = run(PROCESSING, behaviour);
            assert_eq!(rtt, fast + PROCESSING, "{name} {behaviour:?}");
            // The report is alone, and nothing that was sent before data comes after it.
            let parts: Vec<u8> = reached.iter().map_while(|(_, place, _)| place.ok()).collect();
            assert!(parts.is_sorted() && !parts.is_empty(), "{name}: {parts:?}");
        }
        // What does not see the option does not process it.
        assert_eq!(run(PROCESSING, router::Behaviour::Hidden).0, fast, "{name}");
    }
}

#[test]
fn data_overtakes_a_request_in_mid_connection_and_the_approval_comes_later() {
    const PROCESSING: Duration = Duration::from_millis(10);
    for name in NAMES {
        let run = |processing| {
            let asks = Config { after_idle: Some(Duration::from_millis(5000)), ..greedy() };
            let router = router::Config { processing, ..router::Config::default() };
            let (mut world, flow) = two_chunks(name, asks, None, router);
            finish(&mut world, flow);
            assert_eq!(world.record(flow).delivered, 2 * CHUNK, "{name}");
            (world.record(flow).later_approvals, reached(&world))
        };
        for (processing, overtakes) in [(Duration::ZERO, false), (PROCESSING, true)] {
            let (approvals, reached) = run(processing);
            assert_eq!(approvals, 1, "{name}");
            let request = reached.iter().position(|(_, place, option)| *place == Err(CHUNK) && *option);
            let before = &reached[..request.expect("it arrived")];
            let later = before.iter().filter(|(_, place, _)| place.is_err_and(|offset| offset > CHUNK)).count();
            assert_eq!(later > 0, overtakes, "{name}: {later}");
        }
    }
}
