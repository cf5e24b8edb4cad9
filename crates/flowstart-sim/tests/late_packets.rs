//! Spurious retransmissions of TCP: a delay spike triggers the retransmission timer, reordering the fast
//! retransmission. With timestamps the sender detects this and undoes its reduction.

use std::sync::Arc;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::capacity_trace::CapacityTrace;
use flowstart_sim::link::transmitter::Capacity;
use flowstart_sim::link::wire::{LossModel, Reordering};
use flowstart_sim::network::Route;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::SpuriousDetection;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

/// 12 Mbit/s, half of 50 ms.
fn link() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(12), Duration::from_millis(25))
}

/// A transfer over this link by a sender with this detection, and by one without.
fn transfers(link: &LinkConfig, size: u64) -> [FlowRecord; 2] {
    [SpuriousDetection::Timestamps, SpuriousDetection::None].map(|spurious_detection| {
        let profile = Profile { spurious_detection, ..Profile::tcp_linux() };
        let mut world = World::new(1);
        let forward = world.add_link(link);
        let back = world.add_link(&LinkConfig::new(Rate::from_mbit(1_000_000), Duration::from_millis(25)));
        let route = Route { forward: vec![forward], back: vec![back] };
        let flow = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(size)), route);
        let flow = world.add_flow(flow);
        world.run_flow(flow, Timestamp::ZERO + Duration::from_millis(600_000)).expect("it completes");
        world.record(flow).clone()
    })
}

fn completion_ms(record: &FlowRecord) -> f64 {
    record.completed.expect("it completes").since(record.started.expect("it starts")).as_secs() * 1e3
}

/// Nothing leaves the link between 1 s and 1.8 s.
fn with_a_pause() -> LinkConfig {
    let times: String = (1..1000).chain(1800..6000).map(|millis| format!("{millis}\n")).collect();
    LinkConfig { capacity: Capacity::Trace(Arc::new(CapacityTrace::parse(&times).expect("a trace"))), ..link() }
}

#[test]
fn a_timeout_in_a_delay_spike_costs_no_window() {
    let [finds_out, goes_on] = transfers(&with_a_pause(), 3_000_000);
    assert!(finds_out.timeouts > 0 && goes_on.timeouts > 0);
    assert!(finds_out.spurious > 0 && finds_out.dropped == 0, "{finds_out:?}");
    // The timer sends the first segment again, and a loss probe came before it. A sender without detection sends
    // everything again.
    assert!(finds_out.retransmissions <= 4, "{}", finds_out.retransmissions);
    assert!(goes_on.retransmissions > 50, "{}", goes_on.retransmissions);
    assert!(completion_ms(&finds_out) + 50.0 < completion_ms(&goes_on), "{finds_out:?} {goes_on:?}");
}

#[test]
fn packets_that_are_overtaken_cost_no_window() {
    let reordering = Some(Reordering { probability: 0.003, delay: Duration::from_millis(20) });
    let [finds_out, goes_on] = transfers(&LinkConfig { reordering, ..link() }, 10_000_000);
    assert!(finds_out.window_cuts > 5 && finds_out.dropped == 0, "{finds_out:?}");
    assert!(finds_out.spurious > 5, "{}", finds_out.spurious);
    assert!(completion_ms(&finds_out) * 1.2 < completion_ms(&goes_on), "{finds_out:?} {goes_on:?}");
}

#[test]
fn what_is_lost_is_not_called_late() {
    let [finds_out, goes_on] =
        transfers(&LinkConfig { loss: Some(LossModel::Independent { probability: 0.2 }), ..link() }, 1_000_000);
    assert!(finds_out.timeouts > 0, "{finds_out:?}");
    assert_eq!(finds_out.spurious, 0);
    assert_eq!(finds_out, goes_on);
}
