//! Chunks of a video and objects of a page: when each is requested, and when the receiving application has all of it.

mod drop_places;

use std::sync::Arc;

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

const RTT: Duration = Duration::from_millis(100);
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);

/// The pattern over 100 Mbit/s and 100 ms in packets of 1400 bytes, of which those at these places are lost, with a
/// window that holds everything.
fn flow(name: &str, pattern: Pattern, lost: &[u64]) -> FlowRecord {
    let header = if name == "tcp-rfc" { 0 } else { 35 };
    let profile = Profile {
        payload: 1400,
        segment: 1400 + header,
        overhead_in_flight: header,
        initial_window: 1000,
        pacing: None,
        ..Profile::named(name).expect("a listed profile")
    };
    let mut world = World::new(1);
    let link = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
    let chain = Chain::dumbbell(&mut world, &link, &link);
    world.network.set_queue(chain.forward_link(0), drop_places::queue(lost));
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), pattern, route));
    world.run_flow(flow, LIMIT).expect("everything arrives");
    world.record(flow).clone()
}

/// Completion times of the objects, in round trips.
fn times(record: &FlowRecord) -> Vec<f64> {
    record.objects.iter().map(|object| object.fct().expect("it arrived").as_secs() / RTT.as_secs()).collect()
}

fn close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 0.02, "{actual} is not {expected}");
}

const TRANSPORTS: [&str; 2] = ["rfc9002", "tcp-rfc"];

#[test]
fn a_chunk_takes_half_a_round_trip_and_its_serialization() {
    let interval = Duration::from_millis(1000);
    for name in TRANSPORTS {
        let record = flow(name, Pattern::Chunks { size: Bytes::new(125_000), interval, count: 3 }, &[]);
        // 125,000 bytes at 100 Mbit/s and 5 % for headers: 10.4 ms.
        times(&record).into_iter().for_each(|rounds| close(rounds, 0.5 + 0.104));
        let requested: Vec<_> = record.objects.iter().map(|object| object.requested).collect();
        assert_eq!([requested[1].since(requested[0]), requested[2].since(requested[1])], [interval; 2]);
        assert_eq!(record.objects[2].arrived, record.completed, "{name}");
    }
}

#[test]
fn the_next_wave_of_a_page_is_requested_with_the_first_object_of_the_last() {
    for name in TRANSPORTS {
        let record = flow(name, Pattern::Page { objects: 3, size: Bytes::new(125_000), waves: 3 }, &[]);
        let times = times(&record);
        assert_eq!(times.len(), 9);
        // A round trip from the request to the first byte, and 10.4 ms for each object before it in the wave and
        // itself.
        for wave in times.chunks(3) {
            (1..).zip(wave).for_each(|(place, rounds)| close(*rounds, 1.0 + 0.104 * f64::from(place)));
        }
        for wave in 1..3 {
            assert_eq!(Some(record.objects[3 * wave].requested), record.objects[3 * (wave - 1)].arrived, "{name}");
        }
        assert_eq!((record.delivered, record.objects[0].requested), (9 * 125_000, record.request_sent.expect("sent")));
    }
}

#[test]
fn objects_of_quic_do_not_wait_for_what_was_lost_of_others() {
    let page = Pattern::Page { objects: 4, size: Bytes::new(140_000), waves: 1 };
    for name in TRANSPORTS {
        // The tenth packet belongs to the first object.
        let lost = times(&flow(name, page.clone(), &[10]));
        let whole = times(&flow(name, page.clone(), &[]));
        let late: Vec<bool> = lost.iter().zip(&whole).map(|(lost, whole)| *lost > whole + 0.5).collect();
        assert_eq!(late, [true, name == "tcp-rfc", name == "tcp-rfc", name == "tcp-rfc"], "{lost:?} {whole:?}");
    }
}

#[test]
fn a_request_that_is_lost_with_its_acknowledgement_is_repeated() {
    // Nothing but the timer of the sender follows a wave of one small object, and a third of what returns is lost.
    for name in TRANSPORTS {
        let profile = Profile::named(name).expect("a listed profile");
        let mut world = World::new(3);
        let link = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
        let back = LinkConfig { loss: Some(LossModel::Independent { probability: 0.3 }), ..link.clone() };
        let chain = Chain::dumbbell(&mut world, &link, &back);
        let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
        let route = chain.connect(&mut world, host, host);
        let pattern = Pattern::Page { objects: 1, size: Bytes::new(1000), waves: 20 };
        let flow = world.add_flow(FlowConfig::new(Arc::new(profile), pattern, route));
        world.run_flow(flow, LIMIT).expect("the page arrives");
        assert!(world.record(flow).dropped > 3, "{name}");
        assert_eq!(world.record(flow).objects.len(), 20, "{name}");
    }
}

#[test]
fn after_a_timeout_the_window_grows_though_the_chunk_did_not_fill_it_at_first() {
    let pattern = Pattern::Chunks { size: Bytes::new(100 * 1400), interval: Duration::from_millis(2000), count: 2 };
    let lost: Vec<u64> = (101..=200).collect();
    // A timeout of a second, and then 1, 2, 4, ... 64 of 100 segments: seven round trips. Without growth it would be
    // 100.
    let rounds = times(&flow("tcp-rfc", pattern, &lost))[1];
    assert!((16.5..19.0).contains(&rounds), "{rounds}");
}
