//! The retransmission timer of TCP.

mod drop_places;

use std::sync::Arc;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::{LinkConfig, LossModel};
use flowstart_sim::network::Route;
use flowstart_sim::record::FlowRecord;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::{Profile, TimerRestart};
use flowstart_sim::world::{FlowConfig, World};

const SEGMENT: u64 = 1448;

/// A flow over 100 Mbit/s and this RTT that loses these data packets, and this part of what returns.
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

/// So many segments at once every 4 s, and the window that takes them.
fn chunks(segments: u64, count: u32) -> (Profile, Pattern) {
    let (size, interval) = (Bytes::new(segments * SEGMENT), Duration::from_millis(4000));
    (Profile { initial_window: segments, ..Profile::tcp_linux() }, Pattern::Chunks { size, interval, count })
}

#[test]
fn a_repair_has_a_whole_timeout_to_be_acknowledged() {
    // The last but one of 40 is missing. It counts as lost a quarter of an RTT, 250 ms, after the last acknowledgement that
    // advances, and is acknowledged 1 s later; the timeout is 1.2 s.
    let (profile, pattern) = chunks(40, 2);
    let linux = flow(&profile, pattern.clone(), 1000, &[39], 0.0);
    assert_eq!((linux.timeouts, linux.retransmissions, linux.window_cuts), (0, 1, 1), "{linux:?}");
    let rfc = Profile { timer_restart: TimerRestart::EveryAck, ..profile };
    assert_eq!(flow(&rfc, pattern, 1000, &[39], 0.0).timeouts, 1);
}
