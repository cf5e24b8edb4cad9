//! The timers of TCP that repair otherwise undetected losses: the retransmission timer, and the loss probe that leaves
//! before it.

mod drop_places;

use std::sync::Arc;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::network::Route;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::TimerRestart;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const SEGMENT: u64 = 1448;

/// A flow over 100 Mbit/s and this RTT that loses these data packets, and this share of the returning packets.
fn flow(profile: &Profile, pattern: Pattern, rtt_ms: u64, lost: &[u64], lost_back: f64) -> FlowRecord {
    let mut world = World::new(1);
    let half = Duration::from_millis(rtt_ms) / 2;
    let forward = world.add_link(&LinkConfig::new(Rate::from_mbit(100), half));
    world.network.set_queue(forward, drop_places::queue(lost));
    let loss = (lost_back > 0.0).then_some(LossModel::Independent { probability: lost_back });
    let back = world.add_link(&LinkConfig { loss, ..LinkConfig::new(Rate::from_mbit(100), half) });
    let route = Route { forward: vec![forward], back: vec![back] };
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile.clone()), pattern, route));
    world.run_flow(flow, Timestamp::ZERO + Duration::from_millis(3_600_000)).expect("it completes");
    world.record(flow).clone()
}

/// This many segments in a burst every 4 s, and the window for them.
fn chunks(segments: u64, count: u32) -> (Profile, Pattern) {
    let (size, interval) = (Bytes::new(segments * SEGMENT), Duration::from_millis(4000));
    (Profile { initial_window: segments, ..Profile::tcp_linux() }, Pattern::Chunks { size, interval, count })
}

#[test]
fn a_repair_has_a_whole_timeout_to_be_acknowledged() {
    // The last but one of 40 is missing. It counts as lost a quarter of an RTT, 250 ms, after the last acknowledgement
    // that advances, and is acknowledged 1 s later; the timeout is 1.2 s.
    let (profile, pattern) = chunks(40, 2);
    let linux = flow(&profile, pattern.clone(), 1000, &[39], 0.0);
    assert_eq!((linux.timeouts, linux.retransmissions, linux.window_cuts), (0, 1, 1), "{linux:?}");
    let rfc = Profile { timer_restart: TimerRestart::EveryAck, ..profile };
    assert_eq!(flow(&rfc, pattern, 1000, &[39], 0.0).timeouts, 1);
}

#[test]
fn a_probe_comes_before_a_timeout_that_would_be_earlier() {
    // One segment is left: the probe would wait for 2 * 150 ms + 200 ms, the timeout is 350 ms.
    let (profile, pattern) = chunks(20, 1);
    let probes = flow(&profile, pattern.clone(), 150, &[20], 0.0);
    assert_eq!((probes.timeouts, probes.retransmissions, probes.window_cuts), (0, 1, 0), "{probes:?}");
    let without = Profile { loss_probe: false, ..profile };
    assert_eq!(flow(&without, pattern, 150, &[20], 0.0).timeouts, 1);
}

#[test]
fn a_tail_that_a_probe_repaired_cuts_the_window_when_more_is_acknowledged() {
    let cuts = |count| {
        let (profile, pattern) = chunks(10, count);
        let record = flow(&profile, pattern, 50, &[10], 0.0);
        assert_eq!((record.timeouts, record.retransmissions), (0, 1), "{record:?}");
        record.window_cuts
    };
    // The last acknowledgement of a flow comes after its end.
    assert_eq!([cuts(1), cuts(2), cuts(3)], [0, 0, 1]);
}

#[test]
fn lost_acknowledgements_cut_no_window() {
    let cuts = |dsack| {
        let (profile, pattern) = chunks(10, 50);
        let record = flow(&Profile { dsack, ..profile }, pattern, 50, &[], 0.2);
        assert!(record.retransmissions > 0 && record.dropped_data == 0, "{record:?}");
        record.window_cuts
    };
    // The last acknowledgement of a chunk is lost, the probe is a duplicate, and the receiver reports it.
    assert_eq!(cuts(true), 0);
    assert!(cuts(false) > 0);
}
