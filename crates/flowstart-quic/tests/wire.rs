//! The controller in noq on real sockets, through a relay that adds delay: what leaves the server is what was launched.

mod relay;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::startup::{StartupConfig, blitzstart, jump_start, slow_start};
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::{ControllerFactory, Flow};
use relay::{Arrivals, Flight, relay};
use tokio::time::timeout;

const SIZE: usize = 400_000;
/// Packets of the first flight that are looked at, of the 344 that [`SIZE`] bytes take.
const FLIGHT: usize = 300;
const LIMIT: Duration = Duration::from_secs(20);
/// Downloads of which one has to be as fast as it was launched: a busy machine delays some, hardly ever all.
const ATTEMPTS: usize = 10;

/// The server's timers.
fn runtime() -> Arc<dyn noq::Runtime> {
    #[cfg(feature = "runtime")]
    return Arc::new(flowstart_quic::runtime::PreciseRuntime);
    #[cfg(not(feature = "runtime"))]
    Arc::new(noq::TokioRuntime)
}

/// Downloads [`SIZE`] bytes; returns the time that took and what left the server.
async fn download(startup: StartupConfig, flow: &Arc<Flow>) -> (Duration, Vec<(Instant, usize)>) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = noq::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).expect("TLS");
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    let factory = ControllerFactory::new(startup, avoidance).expect("a pair that works");
    let mut transport = noq::TransportConfig::default();
    // Segmentation offload would hand several packets to the kernel at once.
    transport.enable_segmentation_offload(false).mtu_discovery_config(None);
    transport.congestion_controller_factory(Arc::new(factory.for_flow(flow.clone())));
    config.transport_config(Arc::new(transport));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = std::net::UdpSocket::bind(any).expect("a socket");
    let server = noq::Endpoint::new(noq::EndpointConfig::default(), Some(config), socket, runtime()).expect("a server");
    let arrivals = Arrivals::default();
    let address = relay(server.local_addr().expect("an address"), arrivals.clone()).await;
    tokio::spawn(async move {
        let connection = server.accept().await.expect("a client").await.expect("a connection");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream.write_all(&vec![7; SIZE]).await.expect("to write");
        stream.finish().expect("an open stream");
        let _ = stream.stopped().await;
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let client = noq::Endpoint::client(any).expect("a socket");
    client.set_default_client_config(noq::ClientConfig::with_root_certificates(Arc::new(roots)).expect("TLS"));
    let begin = Instant::now();
    let connection = client.connect(address, "localhost").expect("to connect").await.expect("a connection");
    let mut stream = connection.accept_uni().await.expect("a stream");
    assert_eq!(stream.read_to_end(SIZE).await.expect("all of it").len(), SIZE);
    let taken = begin.elapsed();
    let seen = arrivals.lock().expect("no panic").clone();
    (taken, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_flight_is_paced_as_launched() {
    let hint = Hint { bandwidth: Rate::from_mbit(50), technology: AccessTechnology::Ethernet };
    let paced = Duration::from_secs_f64(FLIGHT as f64 * 1200.0 * 8.0 / 62.5e6);
    let mut spans = Vec::new();
    for _ in 0..ATTEMPTS {
        let flow = Flow::new(PathKnowledge { hint: Some(hint), ..PathKnowledge::default() });
        let startup = StartupConfig::Blitzstart(blitzstart::Config::default());
        let (_, seen) = timeout(LIMIT, download(startup, &flow)).await.expect("in time");
        let status = flow.status();
        let (_, cwnd, _) = status.launch.expect("a launch");
        let rtt = status.min_rtt.expect("an RTT");
        assert!(cwnd > Bytes::new(400_000), "50 Mbit/s for {rtt} are more than {cwnd:?}");
        // The launch is the window; pacing is 1.25 windows per RTT, 62.5 Mbit/s for an RTT of 80 ms.
        // The relay delays each packet by itself and may reorder them, so some are repeated a round trip later.
        let flight = Flight::of(&seen, FLIGHT);
        println!("noq: {flight}; at 62.5 Mbit/s {paced:.1?}");
        // A busy machine sends later, never earlier. 13 packets may leave at once, 2.5 ms of the flight.
        assert!(flight.span + Duration::from_millis(3) > paced.mul_f64(0.9), "{flight} for {paced:?}");
        spans.push(flight.span);
        if flight.span < paced * 2 {
            return;
        }
    }
    panic!("{spans:.1?} for {paced:.1?}: slower than launched, each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_start_is_spread_over_the_round_trip() {
    let mut spans = Vec::new();
    for _ in 0..ATTEMPTS {
        let waiting = Some(Bytes::new(SIZE as u64));
        let flow = Flow::new(PathKnowledge { bytes_waiting: waiting, ..PathKnowledge::default() });
        let startup = StartupConfig::JumpStart(jump_start::Config::default());
        let (_, seen) = timeout(LIMIT, download(startup, &flow)).await.expect("in time");
        let rtt = Duration::from_nanos(flow.status().min_rtt.expect("an RTT").as_nanos());
        let flight = Flight::of(&seen, FLIGHT);
        println!("noq: {flight}; RTT {rtt:.1?}");
        // 300 of the 344 packets that are spread over one RTT, and 13 may leave at once. A busy machine sends later,
        // never earlier.
        assert!(flight.packets == FLIGHT && flight.span > rtt.mul_f64((300.0 - 13.0) / 344.0 * 0.9), "{flight}");
        spans.push(flight.span);
        // Half of it again; slow start would need four round trips and more.
        if flight.span < rtt.mul_f64(1.5) {
            return;
        }
    }
    panic!("{spans:.1?}: not within a round trip and a half, each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_saves_the_rounds_of_slow_start() {
    let hint = Hint { bandwidth: Rate::from_mbit(100), technology: AccessTechnology::Ethernet };
    let launched = Flow::new(PathKnowledge { hint: Some(hint), ..PathKnowledge::default() });
    let blitzstart = StartupConfig::Blitzstart(blitzstart::Config::default());
    let slow_start = StartupConfig::SlowStart(slow_start::Config::default());
    let (with, _) = timeout(LIMIT, download(blitzstart, &launched)).await.expect("in time");
    let unhinted = Flow::new(PathKnowledge::default());
    let (without, _) = timeout(LIMIT, download(slow_start, &unhinted)).await.expect("in time");
    println!("{with:?} with the launch, {without:?} without");
    // 400 KB: 12 + 24 + 48 + 96 + 192 + 28 KB, six rounds for one. 80 ms each; two of them are the handshake's.
    assert!(without > with + Duration::from_millis(240), "{with:?} and {without:?}");
}
