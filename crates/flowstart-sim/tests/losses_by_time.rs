//! Loss detection by time, and delayed acknowledgements, over a drop-tail queue that slow start overflows.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::{AvoidanceConfig, reno};
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::LossDetection;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

/// A transfer in slow start over 50 ms and a buffer of this many packets.
fn transfer(rate_mbit: u64, packets: u64, size: u64, profile: Profile) -> FlowRecord {
    let mut world = World::new(1);
    let delay = Duration::from_millis(25);
    let limit = QueueLimit { packets: Some(packets), bytes: None, counts_in_service: false };
    let forward = world.add_link(&LinkConfig { limit, ..LinkConfig::new(Rate::from_mbit(rate_mbit), delay) });
    let back = world.add_link(&LinkConfig::new(Rate::from_mbit(1_000_000), delay));
    let route = Route { forward: vec![forward], back: vec![back] };
    let whole_segments = reno::Config { whole_segments: true, whole_cuts: true, ..reno::Config::default() };
    let flow = world.add_flow(FlowConfig {
        startup: StartupConfig::SlowStart(slow_start::Config::default()),
        avoidance: AvoidanceConfig::Reno(whole_segments),
        ..FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(size)), route)
    });
    world.run_flow(flow, Timestamp::ZERO + Duration::from_millis(60_000)).expect("it completes");
    world.record(flow).clone()
}

#[test]
fn a_lost_tail_is_found_by_what_was_sent_after_it() {
    // Where slow start overflows the queue just before the transfer ends, nothing above the last packets will be
    // SACKed.
    let timeouts = |profile: &Profile| -> u64 {
        (200..=600).step_by(10).map(|kb| transfer(25, 50, kb * 1000, profile.clone()).timeouts).sum()
    };
    let by_order = Profile { loss_detection: LossDetection::SackedAbove, loss_probe: false, ..Profile::tcp_linux() };
    assert_eq!((timeouts(&Profile::tcp_linux()), timeouts(&by_order)), (0, 7));
}

#[test]
fn what_is_held_back_loses_no_block() {
    // Every second packet is dropped, so every packet that arrives is a block of its own, and an acknowledgement
    // reports three.
    let held_back = transfer(50, 208, 2_000_000, Profile::tcp_linux());
    assert_eq!(held_back.spurious, 0);
    let mut at_once = Profile::tcp_linux();
    at_once.ack.compression = None;
    assert_eq!(transfer(50, 208, 2_000_000, at_once).spurious, 0);
}
