//! The controller in s2n-quic on real sockets, through a relay that adds delay: what leaves the server is what was
//! launched.

#![cfg(feature = "s2n-quic")]

mod relay;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::startup::{StartupConfig, blitzstart, halfback, jump_start, slow_start};
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::Flow;
use flowstart_quic::s2n_quic::ControllerFactory;
use relay::{Arrivals, Flight, relay};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::Endpoint;
use s2n_quic::{Client, Server, provider};
use tokio::time::timeout;

const SIZE: usize = 400_000;
/// Packets of the first flight that are looked at, of the 344 that [`SIZE`] bytes take.
const FLIGHT: usize = 300;
const LIMIT: Duration = Duration::from_secs(20);
/// A UDP payload of 1200 bytes, with the headers of UDP and IPv4.
const MTU: u16 = 1228;

fn factory(startup: StartupConfig) -> ControllerFactory {
    ControllerFactory::new(startup, AvoidanceConfig::Cubic(cubic::Config::default())).expect("a pair that works")
}

fn hinted(mbit: u64) -> Arc<Flow> {
    let hint = Hint { bandwidth: Rate::from_mbit(mbit), technology: AccessTechnology::Ethernet };
    Flow::new(PathKnowledge { hint: Some(hint), ..PathKnowledge::default() })
}

/// Downloads `size` bytes; returns the time that took and what left the server.
async fn download(factory: impl Endpoint, size: usize) -> (Duration, Vec<(Instant, usize)>) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let (certificate, key) = (certified.cert.der().to_vec(), certified.signing_key.serialize_der());
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let io = provider::io::tokio::Builder::default().with_receive_address(any).expect("a socket");
    // Segmentation offload would hand several packets to the kernel at once.
    let io = io.with_max_mtu(MTU).and_then(|io| io.with_gso(false)?.build()).expect("a socket");
    let server = Server::builder().with_tls((&certificate[..], &key[..])).expect("TLS").with_io(io).expect("a socket");
    let server = server.with_congestion_controller(factory).expect("a controller");
    let mut server = server.start().expect("a server");
    let arrivals = Arrivals::default();
    let address = relay(server.local_addr().expect("an address"), arrivals.clone()).await;
    tokio::spawn(async move {
        let mut connection = server.accept().await.expect("a client");
        let mut stream = connection.open_send_stream().await.expect("a stream");
        stream.send(vec![7; size].into()).await.expect("to write");
        let _ = stream.close().await;
    });
    let client = Client::builder().with_tls(&certificate[..]).expect("TLS").with_io(any).expect("a socket");
    let client = client.start().expect("a client");
    let begin = Instant::now();
    let connect = Connect::new(address).with_server_name("localhost");
    let mut connection = client.connect(connect).await.expect("a connection");
    let mut stream = connection.accept_receive_stream().await.expect("a connection").expect("a stream");
    let mut received = 0;
    while let Some(chunk) = stream.receive().await.expect("all of it") {
        received += chunk.len();
    }
    assert_eq!(received, size);
    let taken = begin.elapsed();
    let seen = arrivals.lock().expect("no panic").clone();
    (taken, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_flight_is_paced_as_launched() {
    let flow = hinted(50);
    let blitzstart = factory(StartupConfig::Blitzstart(blitzstart::Config::default()));
    let (_, seen) = timeout(LIMIT, download(blitzstart.for_flow(flow.clone()), SIZE)).await.expect("in time");
    let status = flow.status();
    let (_, cwnd, _) = status.launch.expect("a launch");
    assert!(cwnd > Bytes::new(400_000), "50 Mbit/s for {:?} are more than {cwnd:?}", status.min_rtt);
    // The launch is the window; pacing is 1.25 windows per RTT, 62.5 Mbit/s for any RTT.
    let flight = Flight::of(&seen, FLIGHT);
    let paced = Duration::from_secs_f64(FLIGHT as f64 * 1200.0 * 8.0 / 62.5e6);
    println!("s2n-quic: {flight}; at 62.5 Mbit/s {paced:.1?}");
    // The host is up to a millisecond early at the beginning and late at the end, and ten packets may leave at once.
    assert!(flight.packets == FLIGHT && flight.span + Duration::from_millis(4) > paced.mul_f64(0.9), "{flight}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_start_is_spread_over_the_round_trip() {
    let flow = Flow::new(PathKnowledge { bytes_waiting: Some(Bytes::new(SIZE as u64)), ..PathKnowledge::default() });
    let jump_start = factory(StartupConfig::JumpStart(jump_start::Config::default()));
    let (_, seen) = timeout(LIMIT, download(jump_start.for_flow(flow.clone()), SIZE)).await.expect("in time");
    let rtt = Duration::from_nanos(flow.status().min_rtt.expect("an RTT").as_nanos());
    let flight = Flight::of(&seen, FLIGHT);
    println!("s2n-quic: {flight}; RTT {rtt:.1?}");
    let spread = rtt.mul_f64(300.0 / 344.0 * 0.9);
    assert!(flight.packets == FLIGHT && flight.span + Duration::from_millis(2) > spread, "{flight}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_saves_the_rounds_of_slow_start() {
    let blitzstart = factory(StartupConfig::Blitzstart(blitzstart::Config::default()));
    let slow_start = factory(StartupConfig::SlowStart(slow_start::Config::default()));
    let (size, mut taken) = (300_000, Vec::new());
    // A machine that is busy with something else delays either.
    for _ in 0..3 {
        let (with, _) = timeout(LIMIT, download(blitzstart.for_flow(hinted(43)), size)).await.expect("in time");
        let (without, _) = timeout(LIMIT, download(slow_start.clone(), size)).await.expect("in time");
        println!("300 KB over s2n-quic: {with:.1?} launched at 43 Mbit/s, {without:.1?} with slow start");
        // 12 + 24 + 48 + 96 + 120 KB, five rounds of 80 ms for one.
        if without > with + Duration::from_millis(240) {
            return;
        }
        taken.push((with, without));
    }
    panic!("{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_path_comes_by_the_peers_address() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let blitzstart = factory(StartupConfig::Blitzstart(blitzstart::Config::default()));
    let peers = blitzstart.for_peers({
        let asked = asked.clone();
        move |peer: SocketAddr| {
            let flow = hinted(50);
            asked.lock().expect("no panic").push((peer, flow.clone()));
            flow
        }
    });
    timeout(LIMIT, download(peers, SIZE)).await.expect("in time");
    let asked = asked.lock().expect("no panic");
    let [(peer, flow)] = &asked[..] else { panic!("one path, not {}", asked.len()) };
    assert_eq!(peer.ip(), Ipv4Addr::LOCALHOST);
    let status = flow.status();
    assert!(status.launch.is_some_and(|(_, cwnd, _)| cwnd > Bytes::new(400_000)), "{status:?}");
    // With the overhead of packets; acknowledgements are still on their way, and what counts as lost may have come.
    assert!(status.delivered + status.in_flight + status.lost > Bytes::new(SIZE as u64), "{status:?}");
}

#[test]
fn what_the_host_cannot_do_is_refused() {
    let cubic = || AvoidanceConfig::Cubic(cubic::Config::default());
    let halfback = ControllerFactory::new(StartupConfig::Halfback(halfback::Config::default()), cubic()).unwrap_err();
    assert!(halfback.to_string().contains("sent again before it is lost, which s2n-quic does not give"), "{halfback}");
    let slow_start = || StartupConfig::SlowStart(slow_start::Config::default());
    let prague = ControllerFactory::new(slow_start(), AvoidanceConfig::Prague(Default::default())).unwrap_err();
    assert!(prague.to_string().contains("ECT(1) on its packets"), "{prague}");
    let xcp = ControllerFactory::new(slow_start(), AvoidanceConfig::Xcp(Default::default())).unwrap_err();
    assert!(xcp.to_string().contains("needs a congestion header"), "{xcp}");
}
