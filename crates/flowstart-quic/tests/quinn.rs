//! The controller in quinn, over real sockets.

#![cfg(feature = "quinn")]

mod relay;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic};
use flowstart_core::controller::ControllerConfig;
use flowstart_core::needs::Needs;
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::startup::{
    StartupConfig, blitzstart, halfback, jump_start, more_start, slow_start, suss, swift_start,
};
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::quinn::ControllerFactory;
use flowstart_quic::{Flow, Unsupported};
use relay::{Arrivals, Flight, relay};

const SIZE: usize = 2_000_000;

/// Sends `size` bytes from a server with this controller, with its first packets never larger than 1200 bytes; what was
/// seen on the way, if there is a relay.
async fn download(factory: ControllerFactory, flow: &Arc<Flow>, size: usize, seen: Option<&Arrivals>) -> usize {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).expect("TLS");
    let mut transport = quinn::TransportConfig::default();
    if seen.is_some() {
        // Segmentation offload would hand several packets to the kernel at once.
        transport.enable_segmentation_offload(false).mtu_discovery_config(None);
    }
    transport.congestion_controller_factory(Arc::new(factory.for_flow(flow.clone())));
    config.transport_config(Arc::new(transport));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = quinn::Endpoint::server(config, any).expect("a socket");
    let mut address = server.local_addr().expect("an address");
    if let Some(seen) = seen {
        address = relay(address, seen.clone()).await;
    }
    tokio::spawn(async move {
        let connection = server.accept().await.expect("a client").await.expect("a connection");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream.write_all(&vec![7; size]).await.expect("to write");
        stream.finish().expect("an open stream");
        let _ = stream.stopped().await;
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let mut client = quinn::Endpoint::client(any).expect("a socket");
    client.set_default_client_config(quinn::ClientConfig::with_root_certificates(Arc::new(roots)).expect("TLS"));
    let connection = client.connect(address, "localhost").expect("to connect").await.expect("a connection");
    let mut stream = connection.accept_uni().await.expect("a stream");
    stream.read_to_end(size).await.expect("all of it").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_started_and_accounted_for() {
    let hint = Hint { bandwidth: Rate::from_mbit(100), technology: AccessTechnology::Ethernet };
    let flow = Flow::new(PathKnowledge { hint: Some(hint), ..PathKnowledge::default() });
    let startup = StartupConfig::Blitzstart(blitzstart::Config::default());
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    let factory = ControllerFactory::new(startup, avoidance).expect("a pair that works");
    assert_eq!(download(factory, &flow, SIZE, None).await, SIZE);
    let status = flow.status();
    assert!(status.launch.is_some(), "{status:?}");
    // All but the last packets have been acknowledged, with their overhead.
    assert!(status.delivered > Bytes::new(SIZE as u64 * 9 / 10), "{status:?}");
    assert!(status.delivered < Bytes::new(SIZE as u64 * 11 / 10), "{status:?}");
    assert!(status.min_rtt.is_some_and(|rtt| rtt.as_millis_f64() < 50.0), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_flight_is_spread_as_the_host_wants() {
    let flow = Flow::new(PathKnowledge { bytes_waiting: Some(Bytes::new(400_000)), ..PathKnowledge::default() });
    let startup = StartupConfig::JumpStart(jump_start::Config::default());
    let factory = ControllerFactory::new(startup, AvoidanceConfig::Cubic(cubic::Config::default())).expect("a pair");
    let seen = Arrivals::default();
    assert_eq!(download(factory, &flow, 400_000, Some(&seen)).await, 400_000);
    let rtt = Duration::from_nanos(flow.status().min_rtt.expect("an RTT").as_nanos());
    let flight = Flight::of(&seen.lock().expect("no panic"), 300);
    println!("quinn: {flight}; RTT {rtt:.1?}");
    assert!(flow.status().launch.is_some_and(|(_, cwnd, _)| cwnd >= Bytes::new(400_000)), "{:?}", flow.status());
    // 300 of the 344 packets that are spread over 0.8 RTT, after a first burst of up to 20. A busy machine sends later,
    // never earlier.
    assert!(flight.packets == 300 && flight.span > rtt.mul_f64(0.8 * (300.0 - 20.0) / 344.0 * 0.9), "{flight}");
}

#[test]
fn schemes_that_need_their_own_pacing_are_refused_unless_forced() {
    let cubic = || AvoidanceConfig::Cubic(cubic::Config::default());
    let refused = [
        (StartupConfig::SwiftStart(swift_start::Config::default()), cubic()),
        (StartupConfig::Suss(suss::Config::default()), cubic()),
        (StartupConfig::MoreStart(more_start::Config::default()), cubic()),
        (StartupConfig::Halfback(halfback::Config::default()), cubic()),
        (StartupConfig::SlowStart(slow_start::Config::default()), AvoidanceConfig::Bbr(bbr::Config::default())),
    ];
    for (startup, avoidance) in refused {
        let name = startup.name();
        let config = ControllerConfig::new(startup, avoidance);
        let error = ControllerFactory::with_config(config.clone()).expect_err(name);
        let Unsupported::Needs { missing, .. } = error else { panic!("{error}") };
        let lacks = |need| missing.contains(need);
        assert!(lacks(Needs::OWN_RATE) || lacks(Needs::PROACTIVE_RETRANSMISSION), "{error}");
        assert!(error.to_string().contains("quinn"), "{error}");
        assert!(ControllerFactory::forced(config).is_ok(), "{name} can be forced");
    }
}
