//! A proxy that splits a connection: the order of events, and that it sends nothing that it does not have.

use std::sync::Arc;

use flowstart_core::startup::{StartupConfig, more_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const SIZE: u64 = 1_000_001;
const SERVER_RTT: Duration = Duration::from_millis(40);
const CLIENT_RTT: Duration = Duration::from_millis(500);
const CLIENT_RATE: Rate = Rate::from_mbit(50);

fn route(world: &mut World, rate: Rate, rtt: Duration) -> Route {
    let link = LinkConfig::new(rate, rtt / 2);
    let chain = Chain::dumbbell(world, &link, &link.clone());
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    chain.connect(world, host, host)
}

/// A flow from a proxy and the one from its server, whose link has this rate.
fn split(server_rate: Rate) -> (World, u32, u32) {
    let mut world = World::new(1);
    let profile = Arc::new(Profile::tcp_linux());
    let pattern = Pattern::Transfer(Bytes::new(SIZE));
    let client_side = route(&mut world, CLIENT_RATE, CLIENT_RTT);
    let server_side = route(&mut world, server_rate, SERVER_RTT);
    let mut flow = FlowConfig::new(profile.clone(), pattern.clone(), client_side);
    // The proxy knows the rate of its link.
    flow.startup = StartupConfig::MoreStart(more_start::Config { rate: Some(CLIENT_RATE), ..Default::default() });
    let client = world.add_flow(flow);
    let server = world.split(client, FlowConfig::new(profile, pattern, server_side));
    (world, client, server)
}

#[test]
fn the_proxy_opens_with_the_request_and_launches_with_the_first_byte() {
    let (mut world, client, server) = split(Rate::from_mbit(100));
    world.run_flow(client, Timestamp::from_nanos(100_000_000_000)).expect("it arrives");
    let (client, server) = (world.record(client).clone(), world.record(server).clone());
    let ms = |time: Option<Timestamp>| time.expect("it happened").as_secs() * 1000.0;
    // The client's SYN, the answer, and half a round trip for its request; serialization takes less than 2 ms.
    assert!((750.0..752.0).contains(&ms(server.started)), "{}", ms(server.started));
    // Two round trips to the server.
    let launch = ms(client.first_data_sent) - ms(server.started);
    assert!((80.0..82.0).contains(&launch), "{launch}");
    assert_eq!((client.delivered, server.delivered), (SIZE, SIZE));
    assert!(client.completed > server.completed);
    assert_eq!((client.retransmissions, server.retransmissions), (0, 0));
}

#[test]
fn a_proxy_sends_only_what_has_arrived_and_its_forks_do_the_same() {
    // The server's link is the slow one.
    let (mut world, client, server) = split(Rate::from_mbit(5));
    for ms in (0..3000).step_by(7) {
        world.run_until(Timestamp::from_nanos(ms * 1_000_000));
        let (sent, arrived) = (world.record(client), world.record(server).delivered);
        assert!(sent.delivered <= arrived, "{ms} ms: {} of {arrived}", sent.delivered);
    }
    let mut fork = world.clone();
    let limit = Timestamp::from_nanos(100_000_000_000);
    for world in [&mut world, &mut fork] {
        world.run_flow(client, limit).expect("it arrives");
    }
    assert_eq!(world.record(client), fork.record(client));
    // What the slow link makes of it, half a round trip later.
    let last = world.record(client).completed.zip(world.record(server).completed).map(|(a, b)| a.since(b));
    assert!(last.is_some_and(|last| last < CLIENT_RTT), "{last:?}");
}
