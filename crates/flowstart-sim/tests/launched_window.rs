//! The fate of a launched window that loses packets, in both model transports: every packet that had to be sent again
//! counts.

mod drop_places;

use std::sync::Arc;

use flowstart_core::startup::{StartupConfig, more_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::trace::Event;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const TRANSPORTS: [&str; 4] = ["rfc9002", "tcp-rfc", "tcp-linux", "ns2-sack1"];
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);

/// Data packets are larger than those of the handshake, and no timer interferes.
fn profile(name: &str) -> Profile {
    let profile = Profile::named(name).expect("a listed profile");
    let header = profile.segment - profile.payload;
    Profile { payload: 1400, segment: 1400 + header, min_rto: Duration::from_millis(1000), ..profile }
}

/// More-Start launches 4 Mbit/s for 200 ms of a longer transfer over 20 Mbit/s; the packets at these places, counted
/// from 1, are lost.
fn transfer(name: &str, lost: &[u64]) -> (World, u32) {
    let profile = profile(name);
    let mut world = World::new(11);
    let link = LinkConfig::new(Rate::from_mbit(20), Duration::from_millis(100));
    let chain = Chain::dumbbell(&mut world, &link, &link);
    world.network.set_queue(chain.forward_link(0), drop_places::queue(lost));
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(1_000_000)), route);
    let rate = Some(Rate::from_mbit(4));
    config.startup = StartupConfig::MoreStart(more_start::Config { rate, ..Default::default() });
    world.network.trace = Some(Box::default());
    let flow = world.add_flow(config);
    world.run_flow(flow, LIMIT).expect("the transfer completes");
    (world, flow)
}

/// The bytes that were launched, in whole packets: those that fit the window of one RTT, as the handshake measured it.
fn launched(name: &str) -> u64 {
    let (world, flow) = transfer(name, &[]);
    let window = Rate::from_mbit(4).amount_in(world.record(flow).handshake_rtt.expect("measured"));
    window.get() / packet(name) * packet(name)
}

/// The window that startup hands over.
fn handed_over(name: &str, lost: &[u64]) -> u64 {
    let (world, flow) = transfer(name, lost);
    world.record(flow).exit.expect("startup ended").cwnd.get()
}

fn packet(name: &str) -> u64 {
    let profile = profile(name);
    profile.in_flight_size(profile.payload).get()
}

/// The place of the first retransmission in the order of sent packets, counted from 1.
fn first_retransmission(name: &str, lost: &[u64]) -> u64 {
    let (world, _) = transfer(name, lost);
    let trace = world.network.trace.as_ref().expect("it was set");
    let sent = trace.entries.iter().filter_map(|entry| match entry.event {
        Event::Sent { retransmission, .. } => Some(retransmission),
        _ => None,
    });
    sent.take_while(|retransmission| !retransmission).count() as u64 + 1
}

#[test]
fn every_launched_packet_that_was_sent_again_counts() {
    for name in TRANSPORTS {
        let (launched, packet) = (launched(name), packet(name));
        assert!(launched > 60 * packet, "{name}: {launched}");
        for lost in [&[5][..], &[5, 6, 7], &[10, 12, 14, 16, 30], &[3, 9, 20, 21, 22, 23, 24, 25, 26, 27, 40]] {
            // cwnd = (D - R) / 2
            assert_eq!(handed_over(name, lost), (launched - lost.len() as u64 * packet) / 2, "{name}: {lost:?}");
        }
    }
}

#[test]
fn packets_that_followed_the_launch_do_not_count() {
    for name in TRANSPORTS {
        let (launched, packet) = (launched(name), packet(name));
        let later = launched / packet + 3;
        assert_eq!(handed_over(name, &[3, later, later + 2]), (launched - packet) / 2, "{name}");
    }
}

#[test]
fn a_retransmission_that_is_lost_counts_again_while_recovery_lasts() {
    // QUIC's recovery ends with the acknowledgement of the first packet that was sent in it (RFC 9002, section 7.3.2),
    // TCP's with that of everything that was outstanding (RFC 6675).
    for (name, counts) in [("rfc9002", 2), ("tcp-linux", 3)] {
        let again = first_retransmission(name, &[20, 21]);
        assert_eq!(handed_over(name, &[20, 21, again]), (launched(name) - counts * packet(name)) / 2, "{name}");
    }
}
