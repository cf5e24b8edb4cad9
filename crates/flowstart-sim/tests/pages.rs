//! Pages over several connections: which object waits for which, and what a loss holds back.

mod drop_places;

use std::sync::Arc;

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;
use flowstart_sim::world::page::Page;

const RTT: Duration = Duration::from_millis(100);
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);
/// Ten packets: 1.2 ms at 100 Mbit/s.
const OBJECT: Bytes = Bytes::new(14_000);

/// A world with a path of 100 Mbit/s and 100 ms, and a flow of packets of 1400 bytes whose window holds everything.
fn world(name: &str, lost: &[u64], lost_back: f64) -> (World, FlowConfig) {
    let header = if name == "tcp-rfc" { 0 } else { 35 };
    let profile = Profile {
        payload: 1400,
        segment: 1400 + header,
        overhead_in_flight: header,
        initial_window: 1000,
        pacing: None,
        ..Profile::named(name).expect("a listed profile")
    };
    let mut world = World::new(3);
    let link = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
    let loss = (lost_back > 0.0).then_some(LossModel::Independent { probability: lost_back });
    let chain = Chain::dumbbell(&mut world, &link, &LinkConfig { loss, ..link.clone() });
    world.network.set_queue(chain.forward_link(0), drop_places::queue(lost));
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    (world, FlowConfig::new(Arc::new(profile), Pattern::Bulk, route))
}

/// The page's record and the number of its connections.
fn load(page: Page, lost: &[u64], lost_back: f64) -> (FlowRecord, usize) {
    let (mut world, template) = world("tcp-rfc", lost, lost_back);
    let flow = world.add_page(page, &template);
    world.run_flow(flow, LIMIT).expect("the page arrives");
    let connections = world.connections_of(flow).len();
    // What was under way arrives.
    world.run_until(world.now() + Duration::from_millis(10_000));
    (world.joint_record(flow), connections)
}

fn page(objects: u32, waves: u32, connections: u32, hosts: u32) -> Page {
    Page { objects, size: OBJECT, waves, connections, hosts, pipelining: 1 }
}

/// Completion times of the objects and their times without a connection, in round trips.
fn times(record: &FlowRecord) -> Vec<(f64, f64)> {
    let rounds = |time: Duration| time.as_secs() / RTT.as_secs();
    record.objects.iter().map(|object| (rounds(object.fct().expect("it arrived")), rounds(object.queued))).collect()
}

#[test]
fn requests_are_pipelined_once_a_connection_is_known_to_persist() {
    let (record, connections) = load(Page { pipelining: 3, ..page(6, 1, 1, 1) }, &[], 0.0);
    // The first response, the three requests that it allows, and the others as each of these arrives.
    let wanted = [(1.02, 0.0), (2.02, 1.02), (2.03, 1.02), (2.04, 1.02), (3.02, 2.02), (3.03, 2.03)];
    for (place, ((fct, queued), (at, waited))) in times(&record).into_iter().zip(wanted).enumerate() {
        assert!((fct - at).abs() < 0.05 && (queued - waited).abs() < 0.05, "{place}: {fct} {queued}");
    }
    assert_eq!(connections, 1);
    // Unopened connections are used first: two responses, then all that is left at once.
    let (two, connections) = load(Page { pipelining: 8, ..page(6, 1, 2, 1) }, &[], 0.0);
    let arrivals: Vec<f64> = times(&two).into_iter().map(|(fct, _)| fct).collect();
    assert!(arrivals[..2].iter().all(|at| (at - 1.02).abs() < 0.05), "{arrivals:?}");
    assert!(arrivals[2..].iter().all(|at| (at - 2.03).abs() < 0.05), "{arrivals:?}");
    assert_eq!(connections, 2);
}

#[test]
fn a_pipelined_response_waits_for_what_was_lost_before_it() {
    // The first packet of the second object: the third, which is whole, arrives with the repetition.
    let pipelined = |lost: &[u64]| load(Page { pipelining: 8, ..page(3, 1, 1, 1) }, lost, 0.0).0;
    let (whole, lost) = (pipelined(&[]), pipelined(&[11]));
    let blocked = |record: &FlowRecord| record.objects[2].blocked().unwrap().as_secs() / RTT.as_secs();
    assert!(times(&whole)[2].0 < 2.1 && blocked(&whole) == 0.0, "{:?}", times(&whole));
    let late = times(&lost);
    assert!(late[1].0 > 2.9 && late[2].0 > 2.9 && late[2].0 - late[1].0 < 0.05, "{late:?}");
    assert!(blocked(&lost) > 0.8, "{}", blocked(&lost));
}

#[test]
fn an_object_waits_until_a_connection_to_its_host_is_free() {
    let (record, connections) = load(page(6, 1, 2, 1), &[], 0.0);
    for (place, (fct, queued)) in times(&record).into_iter().enumerate() {
        // Two at a time: a round trip and their packets each.
        let turn = (place / 2) as f64;
        assert!((queued - turn * 1.02).abs() < 0.05, "{place}: {queued}");
        assert!((fct - queued - 1.02).abs() < 0.03, "{place}: {fct}");
    }
    assert_eq!((connections, record.delivered), (2, 6 * OBJECT.get()));
    // Connections before the request: two round trips with the handshake.
    let fct = record.completed.unwrap().since(record.started.unwrap()).as_secs() / RTT.as_secs();
    assert!((fct - 4.06).abs() < 0.06, "{fct}");
}

#[test]
fn more_host_names_mean_more_connections_and_no_more_than_objects() {
    let queued = |page: Page| {
        let (record, connections) = load(page, &[], 0.0);
        (connections, times(&record).iter().filter(|(_, queued)| *queued > 0.0).count())
    };
    assert_eq!(queued(page(12, 1, 6, 1)), (6, 6));
    assert_eq!(queued(page(12, 1, 6, 2)), (12, 0));
    assert_eq!(queued(page(3, 1, 6, 100)), (3, 0));
    // The objects of the second wave find the connections of the first idle.
    assert_eq!(queued(page(4, 2, 6, 1)).0, 4 + 2);
}

#[test]
fn the_first_object_of_a_wave_names_the_next_wave() {
    let (record, _) = load(page(3, 3, 6, 1), &[], 0.0);
    assert_eq!(record.objects.len(), 9);
    for wave in 1..3 {
        assert_eq!(Some(record.objects[3 * wave].requested), record.objects[3 * (wave - 1)].arrived);
    }
    assert_eq!(record.objects[0].requested, record.request_sent.unwrap());
}

#[test]
fn startup_of_a_page_ends_with_that_of_its_last_connection_and_windows_are_sums() {
    let exits = |lost: &[u64]| {
        let (mut world, template) = world("tcp-rfc", lost, 0.0);
        let flow = world.add_page(Page { size: Bytes::new(140_000), ..page(2, 1, 2, 1) }, &template);
        world.run_flow(flow, LIMIT).expect("the page arrives");
        let own: Vec<_> = world.connections_of(flow).into_iter().map(|flow| world.record(flow).exit).collect();
        (own, world.joint_record(flow))
    };
    // Each connection sends its 100 packets at once, and each loses one.
    let (own, whole) = exits(&[10, 150]);
    let [Some(first), Some(second)] = own[..] else { panic!("{own:?}") };
    let exit = whole.exit.expect("both have left it");
    assert_eq!((exit.time, exit.cwnd), (first.time.max(second.time), first.cwnd + second.cwnd));
    assert_eq!(whole.startup_in_flight, Bytes::new(2 * 140_000));
    // As long as one is in its startup, the page is.
    let (own, whole) = exits(&[10]);
    assert!(own[0].is_some() && own[1].is_none() && whole.exit.is_none(), "{own:?} {:?}", whole.exit);
    assert!(whole.completed.is_some());
}

#[test]
fn a_loss_holds_back_what_shares_its_stream() {
    // The tenth packet belongs to the first of four objects: with one connection of TCP the others wait for it though
    // they are there; with QUIC and with a connection each they do not.
    let whole = Pattern::Page { objects: 4, size: Bytes::new(140_000), waves: 1 };
    for (name, held) in [("tcp-rfc", 3), ("rfc9002", 0)] {
        let (mut world, template) = world(name, &[10], 0.0);
        let flow = world.add_flow(FlowConfig { pattern: whole.clone(), ..template });
        world.run_flow(flow, LIMIT).expect("the page arrives");
        let blocked: Vec<f64> =
            world.record(flow).objects.iter().map(|object| object.blocked().unwrap().as_secs()).collect();
        let late = blocked.iter().filter(|blocked| **blocked > 0.03).count();
        assert_eq!((late, blocked[0]), (held, 0.0), "{name}: {blocked:?}");
    }
    let (record, _) = load(Page { size: Bytes::new(140_000), ..page(4, 1, 6, 1) }, &[10], 0.0);
    let slow = times(&record).iter().filter(|(fct, _)| *fct > 1.8).count();
    assert_eq!(slow, 1, "{:?}", times(&record));
    assert!(record.objects.iter().all(|object| object.blocked() == Some(Duration::ZERO)));
}

#[test]
fn a_page_arrives_whole_though_requests_and_data_are_lost() {
    for hosts in [1, 3] {
        let lost: Vec<u64> = (5..400).step_by(43).collect();
        let (record, _) = load(Page { pipelining: 2 * hosts, ..page(7, 5, 2, hosts) }, &lost, 0.2);
        assert_eq!((record.objects.len(), record.delivered), (35, 35 * OBJECT.get()));
        assert!(record.dropped > 30 && record.retransmitted > 0, "{}", record.dropped);
    }
}

#[test]
fn pages_of_any_shape_arrive_once_and_wait_no_longer_than_they_take() {
    let mut rng = Substream::new(5, "pages", 0);
    for _ in 0..60 {
        let mut draw = |most: f64| 1 + (rng.uniform() * most) as u32;
        let shape =
            Page { size: Bytes::new(u64::from(draw(40_000.0))), ..page(draw(9.0), draw(4.0), draw(8.0), draw(5.0)) };
        let shape = Page { pipelining: draw(6.0), ..shape };
        let lost: Vec<u64> = (0..draw(6.0)).map(|_| u64::from(draw(60.0))).collect();
        let (record, connections) = load(shape, &lost, 0.05);
        let count = shape.objects * shape.waves;
        assert_eq!(record.delivered, u64::from(count) * shape.size.get(), "{shape:?}");
        assert_eq!(record.objects.len(), count as usize, "{shape:?}");
        assert!(connections as u32 <= (shape.connections * shape.hosts).min(count), "{shape:?}: {connections}");
        for object in &record.objects {
            assert!(object.queued <= object.fct().unwrap(), "{shape:?}: {object:?}");
            assert!(object.arrived <= record.completed, "{shape:?}: {object:?}");
        }
    }
}
