//! Hints over sockets of this host: what a client says is known when the server's controller launches.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::path::{AccessTechnology, PathKnowledge};
use flowstart_core::startup::{StartupConfig, blitzstart};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::careful_resume::{Measured, Sealer};
use flowstart_quic::hint::BandwidthHint;
use flowstart_quic::{ControllerFactory, Flow, session};
use noq::crypto::rustls::{HandshakeData, QuicServerConfig};
use noq::rustls;
use noq::{Endpoint, TransportConfig};

/// More than the initial window, less than the launch.
const SIZE: usize = 100_000;

fn blitzstart() -> ControllerFactory {
    let startup = StartupConfig::Blitzstart(blitzstart::Config::default());
    ControllerFactory::new(startup, AvoidanceConfig::Cubic(Default::default())).unwrap()
}

fn tls() -> (rustls::ClientConfig, rustls::ServerConfig) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let mut client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    client.alpn_protocols = vec![b"test".to_vec()];
    server.alpn_protocols = vec![b"test".to_vec()];
    client.enable_early_data = true;
    server.max_early_data_size = u32::MAX;
    (client, server)
}

/// Answers each connection's first stream and sends it its sealed state; Retry for clients whose address is not known.
/// What each flow came to.
async fn serve(endpoint: Endpoint, config: noq::ServerConfig, connections: usize) -> Vec<Arc<Flow>> {
    let sealer = Arc::new(Sealer::new(&[1; 32]).unwrap());
    let prefix: ipnet::IpNet = "127.0.0.0/24".parse().unwrap();
    let random = rustls::crypto::ring::default_provider().secure_random;
    let mut flows = Vec::new();
    while flows.len() < connections {
        let incoming = endpoint.accept().await.unwrap();
        if !incoming.remote_address_validated() {
            incoming.retry().unwrap();
            continue;
        }
        let flow = Flow::new(PathKnowledge::default());
        let opener = Arc::clone(&sealer);
        let own = session::accept_config(&config, &blitzstart(), &flow, move |flow, client| {
            assert_eq!(client.errors().count(), 0);
            let state = client.path_state.unwrap();
            flow.learn(|path| {
                path.hint = client.hint.unwrap().map(|hint| hint.hint());
                path.saved = state.map(|state| opener.open(&state, prefix, SystemTime::now()).unwrap());
            });
        });
        let connection = incoming.accept_with(own).unwrap().await.unwrap();
        let agreed = connection.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
        assert_eq!(agreed.protocol.as_deref(), Some(&b"test"[..]));
        let (mut answer, mut request) = connection.accept_bi().await.unwrap();
        request.read_to_end(100).await.unwrap();
        answer.write_all(&vec![0; SIZE]).await.unwrap();
        answer.finish().unwrap();
        answer.stopped().await.unwrap();
        let measured = Measured::of(&flow.status()).unwrap();
        let state = sealer.seal(&measured, prefix, SystemTime::now(), random).unwrap();
        let mut message = connection.open_uni().await.unwrap();
        message.write_all(&state).await.unwrap();
        message.finish().unwrap();
        connection.closed().await;
        flows.push(flow);
    }
    flows
}

/// Asks for the answer, and gives back the server's receive window and the state that it sealed.
async fn fetch(endpoint: &Endpoint, tls: &session::ClientConfig, server: SocketAddr, early: bool) -> (Bytes, Vec<u8>) {
    let flow = Flow::waiting(PathKnowledge::default());
    let config = tls.for_connection(&TransportConfig::default(), &blitzstart(), &flow);
    let connecting = endpoint.connect_with(config, server, "localhost").unwrap();
    let connection = if early {
        let (connection, accepted) = connecting.into_0rtt().unwrap_or_else(|_| panic!("there is a ticket"));
        let (mut request, mut answer) = connection.open_bi().await.unwrap();
        request.write_all(b"early").await.unwrap();
        request.finish().unwrap();
        assert_eq!(answer.read_to_end(SIZE).await.unwrap().len(), SIZE);
        assert!(accepted.await);
        connection
    } else {
        let connection = connecting.await.unwrap();
        let (mut request, mut answer) = connection.open_bi().await.unwrap();
        request.write_all(b"late").await.unwrap();
        request.finish().unwrap();
        assert_eq!(answer.read_to_end(SIZE).await.unwrap().len(), SIZE);
        connection
    };
    let state = connection.accept_uni().await.unwrap().read_to_end(1000).await.unwrap();
    connection.close(0u32.into(), b"");
    let mut window = None;
    flow.learn(|path| window = path.receive_window);
    (window.unwrap(), state)
}

#[tokio::test]
async fn hints_and_state_reach_the_launch_after_a_retry_and_with_early_data() {
    let (client_tls, server_tls) = tls();
    let config = noq::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server_tls).unwrap()));
    let server = Endpoint::server(config.clone(), "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.local_addr().unwrap();
    let serving = tokio::spawn(serve(server, config, 3));

    let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let hint = BandwidthHint {
        rate: Rate::from_mbit(1_000),
        technology: AccessTechnology::Ethernet,
        age: Duration::from_millis(1000),
    };
    let plain = session::ClientConfig::new(client_tls).unwrap();
    let hinted = plain.clone().with_hint(Some(&hint)).unwrap();
    let (window, state) = fetch(&client, &hinted, address, false).await;
    // noq's default for streams, 12.5 MB/s for 100 ms; its connections have no limit.
    assert_eq!(window, Bytes::new(1_250_000));
    fetch(&client, &hinted.with_path_state(Some(&state)).unwrap(), address, true).await;
    fetch(&client, &plain, address, false).await;

    let flows = serving.await.unwrap();
    let exits: Vec<_> = flows.iter().map(|flow| flow.status().exit.is_some()).collect();
    // With a hint Blitzstart is over with its launch; without one it is slow start, which nothing ends here.
    assert_eq!(exits, [true, true, false]);
    for (flow, echoed) in flows.iter().zip([false, true, false]) {
        flow.learn(|path| {
            assert_eq!(path.receive_window, Some(Bytes::new(1_250_000)));
            assert_eq!(
                path.saved.map(|saved| saved.cwnd > Bytes::ZERO && saved.rtt > Duration::ZERO),
                echoed.then_some(true)
            );
        });
    }
}
