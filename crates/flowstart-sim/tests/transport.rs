//! Stories of single flows: handshakes, marks, limits, timers.

use std::sync::Arc;

use flowstart_core::aqm::taildrop::{Config, TailDrop};
use flowstart_core::aqm::{
    EcnCodepoint, OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueState, QueuedPacket,
};
use flowstart_core::event::ExitReason;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::{AckPolicy, Opening};
use flowstart_sim::transport::profile::{PROFILES, Profile};
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(100);
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);

fn link() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(100), RTT / 2)
}

/// Runs a transfer between two hosts; `change` may change the link before anything happens.
fn transfer(profile: Profile, size: u64, forward: &LinkConfig, change: impl FnOnce(&mut World, u32)) -> FlowRecord {
    let mut world = World::new(3);
    let chain = Chain::dumbbell(&mut world, forward, &link());
    change(&mut world, chain.forward_link(0));
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(size)), route));
    world.run_flow(flow, LIMIT).expect("the transfer completes");
    world.record(flow).clone()
}

fn round_trips(from: Option<Timestamp>, to: Option<Timestamp>) -> f64 {
    let (from, to) = (from.expect("it happened"), to.expect("it happened"));
    to.since(from).as_secs() / RTT.as_secs()
}

#[test]
fn the_opening_decides_when_data_arrives() {
    for (opening, expected) in [(Opening::Sender, 1.5), (Opening::Request, 2.0), (Opening::ZeroRtt, 1.0)] {
        let profile = Profile { opening, ..Profile::rfc9002() };
        let record = transfer(profile, 1000, &link(), |_, _| {});
        let taken = round_trips(record.started, record.completed);
        // A few packets of serialization come on top.
        assert!((expected..expected + 0.02).contains(&taken), "{opening:?}: {taken} RTT");
    }
}

#[test]
fn a_server_may_not_amplify_before_the_address_is_validated() {
    let zero = Profile { opening: Opening::ZeroRtt, answer_packets: 1, ..Profile::rfc9002() };
    let size = 8 * 1165;
    let with_token = transfer(Profile { token: true, ..zero.clone() }, size, &link(), |_, _| {});
    let without = transfer(Profile { token: false, ..zero.clone() }, size, &link(), |_, _| {});
    // Three times the client's 1242 + 342 bytes is less than the eight packets: the rest waits for an acknowledgement.
    assert!(round_trips(with_token.started, with_token.completed) < 1.1);
    assert!((1.9..2.1).contains(&round_trips(without.started, without.completed)), "{without:?}");
    // A certificate of five packets does not fit into three times the first packet either: one more round trip.
    let large = Profile { answer_packets: 5, ..Profile::rfc9002() };
    let record = transfer(large, 1000, &link(), |_, _| {});
    assert!((2.9..3.1).contains(&round_trips(record.started, record.completed)), "{record:?}");
}

#[test]
fn a_lost_handshake_is_repeated() {
    // The transfer completes regardless of the first loss; with half of all packets lost the handshake needs
    // repetitions.
    let loss = Some(LossModel::Independent { probability: 0.5 });
    for (name, _) in PROFILES {
        let profile = Profile::named(name).expect("a listed profile");
        let record = transfer(profile, 1000, &LinkConfig { loss, ..link() }, |_, _| {});
        assert_eq!(record.delivered, 1000, "{name}");
    }
}

/// Marks every packet of an ECN-capable flow from the `first` on.
#[derive(Clone, Debug)]
struct MarkFrom {
    queue: TailDrop,
    first: u32,
    seen: u32,
}

impl QueueDiscipline for MarkFrom {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        self.seen += 1;
        if self.seen == self.first && packet.ecn != EcnCodepoint::NotEct {
            packet.ecn = EcnCodepoint::Ce;
        }
        self.queue.enqueue(packet, context);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.queue.dequeue(context)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

#[test]
fn a_mark_travels_to_the_receiver_and_back_and_ends_startup() {
    for name in ["rfc9002", "tcp-rfc"] {
        for ecn in [true, false] {
            let profile = Profile { ecn, ..Profile::named(name).expect("a listed profile") };
            let record = transfer(profile, 300_000, &link(), |world, bottleneck| {
                let queue = TailDrop::new(Config::default(), OutgoingLink::default());
                let discipline = MarkFrom { queue, first: 60, seen: 0 };
                world.network.set_queue(bottleneck, QueueState::Custom(Box::new(discipline)));
            });
            let expected = ecn.then_some(ExitReason::Ecn);
            assert_eq!(record.exit.map(|exit| exit.reason), expected, "{name} {ecn}");
            assert_eq!((record.window_cuts, record.retransmissions), (u64::from(ecn), 0), "{name} {ecn}");
        }
    }
}

#[test]
fn flow_control_limits_what_is_in_flight() {
    for name in ["rfc9002", "tcp-rfc"] {
        let window = Bytes::new(40_000);
        let profile = Profile { receive_window: window, ..Profile::named(name).expect("a listed profile") };
        let record = transfer(profile, 1_000_000, &link(), |_, _| {});
        // 1 MB in windows of 40 kB needs 25 round trips and the handshake.
        let taken = round_trips(record.started, record.completed);
        assert!((25.0..29.0).contains(&taken), "{name}: {taken}");
    }
}

#[test]
fn a_lost_tail_is_repaired_by_a_timer() {
    // Ten packets, and the queue of the bottleneck holds nine beside the one in service: the last one is dropped.
    for name in ["rfc9002", "tcp-rfc"] {
        let profile = Profile { pacing: None, ..Profile::named(name).expect("a listed profile") };
        let size = u64::from(profile.payload) * 10;
        let limit = QueueLimit { packets: Some(8), ..QueueLimit::default() };
        let slow = LinkConfig { limit, ..LinkConfig::new(Rate::from_mbit(10), RTT / 2) };
        let record = transfer(profile, size, &slow, |_, _| {});
        assert_eq!((record.delivered, record.dropped), (size, 1), "{name}");
        assert!(record.retransmissions >= 1, "{name}");
    }
}

#[test]
fn a_fork_does_not_notice_the_original() {
    let run = |world: &mut World, flow: u32| {
        world.run_flow(flow, LIMIT).expect("the transfer completes");
        world.record(flow).clone()
    };
    for (name, _) in PROFILES {
        let mut world = World::new(5);
        let limit = QueueLimit { packets: Some(50), ..QueueLimit::default() };
        let chain = Chain::dumbbell(&mut world, &LinkConfig { limit, ..link() }, &link());
        let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
        let route = chain.connect(&mut world, host, host);
        let profile = Arc::new(Profile::named(name).expect("a listed profile"));
        let flow = world.add_flow(FlowConfig::new(profile, Pattern::Transfer(Bytes::new(3_000_000)), route));
        world.run_until(Timestamp::from_nanos(400_000_000));
        let mut fork = world.clone();
        assert_eq!(run(&mut fork, flow), run(&mut world, flow), "{name}");
    }
}

#[test]
fn one_acknowledgement_in_ten_is_a_tenth_of_the_acknowledgements() {
    for name in ["rfc9002", "tcp-rfc", "tcp-linux"] {
        let acknowledgements = |every: u32| {
            let plain = Profile::named(name).expect("a listed profile");
            let ack = AckPolicy { every, quick: 0, while_growing: false, max_delay: RTT * 10, ..plain.ack };
            let mut world = World::new(3);
            let chain = Chain::dumbbell(&mut world, &link(), &link());
            let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
            let route = chain.connect(&mut world, host, host);
            let profile = Arc::new(Profile { ack, ..plain });
            let flow = world.add_flow(FlowConfig::new(profile, Pattern::Transfer(Bytes::new(3_000_000)), route));
            world.run_flow(flow, LIMIT).expect("the transfer completes");
            assert_eq!(world.record(flow).dropped, 0);
            let packets = world.record(flow).data_packets as f64;
            packets / world.network.link(chain.back_link(0)).counters().arrived as f64
        };
        // Packets of data for each of the return direction, which has those of the handshake too.
        let (two, ten) = (acknowledgements(2), acknowledgements(10));
        assert!((1.9..=2.0).contains(&two) && (9.0..=10.0).contains(&ten), "{name}: {two} {ten}");
    }
}

#[test]
fn acknowledgements_are_delayed_only_after_slow_start() {
    for name in ["rfc9002", "tcp-rfc"] {
        // Packets of data for each acknowledgement, and whether startup ended.
        let per_acknowledgement = |after_slow_start: bool, buffer: u64| {
            let plain = Profile::named(name).expect("a listed profile");
            let ack = AckPolicy { after_slow_start, max_delay: RTT, ..plain.ack };
            let mut world = World::new(3);
            let limit = QueueLimit { packets: Some(buffer), ..QueueLimit::default() };
            let slow = LinkConfig { limit, ..LinkConfig::new(Rate::from_mbit(10), RTT / 2) };
            let chain = Chain::dumbbell(&mut world, &slow, &link());
            let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
            let route = chain.connect(&mut world, host, host);
            let profile = Arc::new(Profile { ack, ..plain });
            let flow = world.add_flow(FlowConfig::new(profile, Pattern::Transfer(Bytes::new(5_000_000)), route));
            world.run_flow(flow, LIMIT).expect("the transfer completes");
            let packets = world.record(flow).data_packets as f64;
            let ended = world.record(flow).exit.is_some();
            (packets / world.network.link(chain.back_link(0)).counters().arrived as f64, ended)
        };
        // In a buffer without end slow start never ends.
        let ((one, false), (two, false)) = (per_acknowledgement(true, 100_000), per_acknowledgement(false, 100_000))
        else {
            panic!("{name}: nothing ends slow start")
        };
        assert!(one <= 1.0 && two > 1.8, "{name}: {one} {two}");
        // With losses most of the transfer comes after it.
        let (later, ended) = per_acknowledgement(true, 50);
        assert!(ended && later > 1.2, "{name}: {later}");
    }
}
