//! Data that is sent again without any sign of loss: as much as the startup scheme grants, from the end of the flow.

mod drop_places;

use std::sync::Arc;

use flowstart_core::controller::Controller;
use flowstart_core::event::{Ack, DecisionLog, Loss, Sent};
use flowstart_core::launch::Launch;
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{Startup, StartupState, Step};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::{SegmentSize, Window};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::AckPolicy;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const PACKETS: u64 = 40;
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);

/// A window for all data; with `granting`, a packet with each acknowledgement after the last new data.
#[derive(Clone, Debug)]
struct Whole {
    segment: Bytes,
    sent: u64,
    granting: bool,
}

impl Startup for Whole {
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(self.segment * (2 * PACKETS))
    }

    fn on_sent(&mut self, _sent: &Sent) {
        self.sent += 1;
    }

    fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
        Step::Continue { cwnd: window.cwnd }
    }

    // A short flow keeps its window: there is nothing left that a smaller one could slow down.
    fn on_congestion(&mut self, _loss: &Loss, window: Window, _reduced: Bytes) -> Step {
        Step::Continue { cwnd: window.cwnd }
    }

    fn proactive_retransmit(&mut self, _ack: &Ack) -> Bytes {
        if self.granting && self.sent >= PACKETS { self.segment } else { Bytes::ZERO }
    }
}

/// A transfer of 40 packets over 20 Mbit/s and 100 ms that loses the packets at `lost`, counted from 1; returns its
/// record and the first bytes of what was sent again, in packets.
fn transfer(name: &str, granting: bool, lost: &[u64]) -> (FlowRecord, Vec<u64>) {
    let profile = Profile {
        payload: 1400,
        segment: 1400 + if name == "tcp-rfc" || name == "tcp-linux" { 0 } else { 35 },
        overhead_in_flight: if name == "tcp-rfc" || name == "tcp-linux" { 0 } else { 35 },
        ack: AckPolicy::new(1, Duration::ZERO, 0),
        pacing: None,
        ..Profile::named(name).expect("a listed profile")
    };
    let mut world = World::new(11);
    let link = LinkConfig::new(Rate::from_mbit(20), Duration::from_millis(50));
    let chain = Chain::dumbbell(&mut world, &link, &link);
    world.network.set_queue(chain.forward_link(0), drop_places::queue(lost));
    let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let payload = u64::from(profile.payload);
    let segment = Bytes::new(u64::from(profile.segment));
    let config = profile.controller(profile.startup.clone(), profile.avoidance.clone());
    let avoidance = profile.avoidance.build(SegmentSize(segment));
    let scheme = Whole { segment, sent: 0, granting };
    let controller = Controller::with_algorithms(config, StartupState::Custom(Box::new(scheme)), avoidance)
        .expect("a valid configuration");
    let pattern = Pattern::Transfer(Bytes::new(PACKETS * payload));
    world.network.trace = Some(Box::new(Trace::default()));
    let flow = world.add_flow_with(FlowConfig::new(Arc::new(profile), pattern, route), controller);
    world.run_flow(flow, LIMIT).expect("the transfer completes");
    // Until all activity ends.
    world.run_until(world.now() + Duration::from_millis(100_000));
    assert_eq!(world.network.packets_in_flight(), 0, "{name}");
    assert_eq!(world.window(flow).map(|window| window.0), Some(Bytes::ZERO), "{name}: in flight at the end");
    let trace = world.network.trace.as_ref().expect("it was set");
    let again = trace.entries.iter().filter_map(|entry| match entry.event {
        Event::Sent { offset, retransmission: true, .. } => Some(offset / payload),
        _ => None,
    });
    (world.record(flow).clone(), again.collect())
}

fn round_trips_between(first: &FlowRecord, second: &FlowRecord) -> f64 {
    let (first, second) = (first.completed.expect("complete"), second.completed.expect("complete"));
    first.since(second).as_secs() / 0.1
}

const TRANSPORTS: [&str; 3] = ["rfc9002", "tcp-rfc", "tcp-linux"];

#[test]
fn a_packet_per_acknowledgement_leaves_from_the_end_until_both_directions_meet() {
    for name in TRANSPORTS {
        let (record, again) = transfer(name, true, &[]);
        // The n-th acknowledgement, of packet n - 1, sends 40 - n again: number 20 with the 20th. Then 20 is
        // acknowledged and nothing is left between the two.
        let expected: Vec<u64> = (20..PACKETS).rev().collect();
        assert_eq!(again, expected, "{name}");
        assert_eq!((record.retransmissions, record.retransmitted), (20, 20 * 1400), "{name}");
        assert_eq!((record.declared_lost, record.window_cuts, record.timeouts), (0, 0, 0), "{name}");
        assert_eq!(record.delivered, PACKETS * 1400, "{name}");
    }
}

#[test]
fn without_a_grant_nothing_is_sent_again() {
    for name in TRANSPORTS {
        let (record, again) = transfer(name, false, &[]);
        assert_eq!((record.retransmissions, again), (0, Vec::new()), "{name}");
    }
}

#[test]
fn a_lost_tail_is_there_before_its_loss_is_known() {
    for name in TRANSPORTS {
        // The last three packets: without a grant only a timer notices.
        let lost = [PACKETS - 2, PACKETS - 1, PACKETS];
        let (granted, again) = transfer(name, true, &lost);
        let (plain, _) = transfer(name, false, &lost);
        assert!(round_trips_between(&plain, &granted) > 0.2, "{name}: {plain:?} {granted:?}");
        assert_eq!((granted.timeouts, granted.delivered), (0, PACKETS * 1400), "{name}");
        // Nothing is retransmitted more than once: the copies have repaired the losses.
        let mut unique = again.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), again.len(), "{name}: {again:?}");
    }
}

#[test]
fn lost_data_goes_first_and_is_not_sent_again_proactively() {
    for name in TRANSPORTS {
        // Packets 4 and 5 (numbers 3 and 4) are lost, and later copies of the tail.
        let (record, again) = transfer(name, true, &[4, 5]);
        assert_eq!(record.delivered, PACKETS * 1400, "{name}");
        let place = |number| again.iter().position(|&other| other == number).expect("it was sent again");
        assert!(place(3) < place(30) && place(4) < place(30), "{name}: {again:?}");
        let mut unique = again.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), again.len(), "{name}: {again:?}");
    }
}

#[test]
fn a_copy_that_is_lost_with_its_original_is_repaired() {
    for name in TRANSPORTS {
        // The last packet and its copy, which the first acknowledgement sends: the 41st on the link.
        let (record, again) = transfer(name, true, &[PACKETS, PACKETS + 1]);
        assert_eq!(record.delivered, PACKETS * 1400, "{name}");
        assert!(again.iter().filter(|&&number| number == PACKETS - 1).count() >= 2, "{name}: {again:?}");
    }
}
