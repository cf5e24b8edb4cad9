//! The time when the link becomes permanently full, compared with the closed form of each startup: alone, without loss,
//! with room for every overshoot.

use std::sync::Arc;

use flowstart_core::sources::{Statement, name};
use flowstart_core::startup::{StartupConfig, hystart, jump_start, more_start, search, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::AckPolicy;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(100);
const RATE: Rate = Rate::from_mbit(20);
/// 20 Mbit/s x 100 ms in packets of 1242 bytes on the wire.
const BDP: f64 = 20e6 * 0.1 / 8.0 / 1242.0;

/// A flow alone on the link.
struct Alone {
    /// RTTs from the first data packet at the link until the link is permanently busy.
    full_after: f64,
    /// RTTs from then until startup ended; `None` if the transfer ended first.
    exit_after_full: Option<f64>,
    dropped: u64,
}

fn alone(startup: StartupConfig) -> Alone {
    let mut world = World::new(1);
    let link = LinkConfig::new(RATE, RTT / 2);
    let chain = Chain::dumbbell(&mut world, &link, &LinkConfig::new(Rate::from_mbit(1000), RTT / 2));
    world.network.watch(chain.forward_link(0));
    if let Some(monitor) = &mut world.network.monitor {
        monitor.log = Some(Vec::new());
    }
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let profile = Profile {
        pacing: None,
        ack: AckPolicy::new(1, Duration::ZERO, 0),
        receive_window: Bytes::new(1 << 40),
        ..Profile::rfc9002()
    };
    let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(10_000_000)), route);
    config.startup = startup;
    config.sources.believe(name::ORACLE, Statement::Oracle(RATE));
    let flow = world.add_flow(config);
    world.run_flow(flow, Timestamp::from_nanos(60_000_000_000)).expect("the transfer completes");
    let record = world.record(flow).clone();
    let first = record.first_data_sent.expect("data was sent");
    let log = world.network.monitor.as_mut().and_then(|monitor| monitor.log.take()).expect("the log is on");
    // The link is permanently busy after the last packet that followed a pause. A packet takes 0.5 ms.
    let data: Vec<_> = log.iter().filter(|departed| departed.time >= first && departed.size > 1000).collect();
    let pause = Duration::from_millis(2);
    let full = data
        .windows(2)
        .filter(|pair| pair[1].time.since(pair[0].time) > pause)
        .map(|pair| pair[1].time)
        .next_back()
        .unwrap_or(first);
    let in_rtts = |span: Duration| span.as_secs() / RTT.as_secs();
    Alone {
        full_after: in_rtts(full.since(first)),
        // The sender sees the first acknowledgements at the link's rate an RTT after the link is full.
        exit_after_full: record.exit.map(|exit| in_rtts(exit.time.since(full)) - 1.0),
        dropped: record.dropped,
    }
}

#[test]
fn slow_start_takes_the_logarithm_of_the_bdp() {
    for iw in [1, 3, 10, 32] {
        let config = slow_start::Config { iw: Some(iw), ..slow_start::Config::default() };
        let alone = alone(StartupConfig::SlowStart(config));
        // Rounds of iw, 2 iw, 4 iw ... packets until a round is a BDP.
        let rounds = libm::ceil(libm::log2(BDP / f64::from(iw)));
        assert!((alone.full_after - rounds).abs() <= 1.0, "IW {iw}: {} RTT for {rounds}", alone.full_after);
        assert_eq!(alone.dropped, 0);
    }
}

#[test]
fn hystart_fills_the_link_as_soon_as_slow_start() {
    let slow = alone(StartupConfig::SlowStart(slow_start::Config::default()));
    let hystart = alone(StartupConfig::Hystart(hystart::Config::default()));
    assert!((slow.full_after - hystart.full_after).abs() <= 1.0);
    // The queue grows in the first full round and is seen in the next.
    assert!(hystart.exit_after_full.is_some_and(|exit| exit <= 2.0), "{:?}", hystart.exit_after_full);
}

#[test]
fn a_launch_fills_the_link_within_one_round_trip() {
    let jump = alone(StartupConfig::JumpStart(jump_start::Config::default()));
    let more = alone(StartupConfig::MoreStart(more_start::Config::default()));
    assert!(jump.full_after <= 1.0 && more.full_after <= 1.0, "{} {}", jump.full_after, more.full_after);
}

#[test]
fn search_finds_the_chokepoint_with_a_fixed_look_back() {
    // An unlimited queue and growth of two bytes for each that is delivered: THRESH 0.35 is reached 2.2 RTT after
    // deliveries stopped growing, and bins of 0.35 RTT add up to two of them; 0.26 is reached after 1.46 RTT.
    for (thresh, closed_form) in [(0.35, 2.2), (0.26, 1.46)] {
        let config = search::Config {
            variant: search::Variant::Slides,
            thresh: Some(thresh),
            look_back_rtt: search::LookBackRtt::Initial,
            ..search::Config::default()
        };
        let alone = alone(StartupConfig::Search(config));
        let exit = alone.exit_after_full.expect("the chokepoint is found");
        assert!((0.0..=1.0).contains(&(exit - closed_form)), "THRESH {thresh}: {exit} RTT for {closed_form}");
        assert_eq!(alone.dropped, 0);
    }
}
