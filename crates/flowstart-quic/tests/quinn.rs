//! The controller in quinn, over real sockets.

#![cfg(feature = "quinn")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic};
use flowstart_core::controller::ControllerConfig;
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::startup::{StartupConfig, blitzstart, halfback, more_start, slow_start, suss, swift_start};
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::quinn::ControllerFactory;
use flowstart_quic::{Flow, Unsupported};

const SIZE: usize = 2_000_000;

/// Sends [`SIZE`] bytes from a server with this controller.
async fn download(factory: ControllerFactory, flow: &Arc<Flow>) -> usize {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).expect("TLS");
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(factory.for_flow(flow.clone())));
    config.transport_config(Arc::new(transport));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = quinn::Endpoint::server(config, any).expect("a socket");
    let address = server.local_addr().expect("an address");
    tokio::spawn(async move {
        let connection = server.accept().await.expect("a client").await.expect("a connection");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream.write_all(&vec![7; SIZE]).await.expect("to write");
        stream.finish().expect("an open stream");
        let _ = stream.stopped().await;
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let mut client = quinn::Endpoint::client(any).expect("a socket");
    client.set_default_client_config(quinn::ClientConfig::with_root_certificates(Arc::new(roots)).expect("TLS"));
    let connection = client.connect(address, "localhost").expect("to connect").await.expect("a connection");
    let mut stream = connection.accept_uni().await.expect("a stream");
    stream.read_to_end(SIZE).await.expect("all of it").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_started_and_accounted_for() {
    let hint = Hint { bandwidth: Rate::from_mbit(100), technology: AccessTechnology::Ethernet };
    let flow = Flow::new(PathKnowledge { hint: Some(hint), ..PathKnowledge::default() });
    let startup = StartupConfig::Blitzstart(blitzstart::Config::default());
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    let factory = ControllerFactory::new(startup, avoidance).expect("a pair that works");
    assert_eq!(download(factory, &flow).await, SIZE);
    let status = flow.status();
    assert!(status.launch.is_some(), "{status:?}");
    // All but the last packets have been acknowledged, with their overhead.
    assert!(status.delivered > Bytes::new(SIZE as u64 * 9 / 10), "{status:?}");
    assert!(status.delivered < Bytes::new(SIZE as u64 * 11 / 10), "{status:?}");
    assert!(status.min_rtt.is_some_and(|rtt| rtt.as_millis() < 50.0), "{status:?}");
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
        assert!(matches!(error, Unsupported::Pacing { .. } | Unsupported::ProactiveRetransmission { .. }), "{error}");
        assert!(error.to_string().contains("quinn"), "{error}");
        assert!(ControllerFactory::forced(config).is_ok(), "{name} can be forced");
    }
}
