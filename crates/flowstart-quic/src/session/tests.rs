//! Sessions of both sides, carried message by message.

use std::sync::atomic::{AtomicUsize, Ordering};

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::path::{AccessTechnology, PathKnowledge};
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use noq_proto::ConnectError;
use noq_proto::Side;
use noq_proto::crypto::rustls::{HandshakeData as HostHandshakeData, QuicServerConfig};
use noq_proto::crypto::{self, Session};
use noq_proto::transport_parameters::TransportParameters;
use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::client::is_valid_retry;
use super::*;
use crate::hint::{BandwidthHint, HintError};
use crate::transport_parameters::{self, HINT, ParameterError};

/// `initial_max_data` of 1000, and 500 on streams of the peer.
const SERVER_WINDOWS: [u8; 8] = [0x04, 2, 0x43, 0xe8, 0x05, 2, 0x41, 0xf4];
/// `initial_max_data` of 63, and 60 on streams of the peer.
const CLIENT_WINDOWS: [u8; 6] = [0x04, 1, 63, 0x06, 1, 60];

fn hint() -> BandwidthHint {
    BandwidthHint { rate: Rate::from_mbit(50), technology: AccessTechnology::Dsl, age: Duration::ZERO }
}

/// TLS of a client and a server that know each other.
fn tls(provider: CryptoProvider) -> (rustls::ClientConfig, rustls::ServerConfig) {
    let provider = Arc::new(provider);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let versions = &[&rustls::version::TLS13];
    let client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider));
    let mut client =
        client.with_protocol_versions(versions).unwrap().with_root_certificates(roots).with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut server = server.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    client.alpn_protocols = vec![b"h3".to_vec()];
    server.alpn_protocols = vec![b"h3".to_vec()];
    client.enable_early_data = true;
    server.max_early_data_size = u32::MAX;
    (client, server)
}

fn parameters(mut bytes: &[u8]) -> TransportParameters {
    TransportParameters::read(Side::Server, &mut bytes).unwrap()
}

/// What a server's connections have in common, and what they were told.
struct Server {
    config: noq_proto::ServerConfig,
    factory: ControllerFactory,
}

impl Server {
    fn new(tls: rustls::ServerConfig) -> Self {
        let host = QuicServerConfig::try_from(tls).unwrap();
        let startup = StartupConfig::Blitzstart(Default::default());
        let factory = ControllerFactory::new(startup, AvoidanceConfig::Cubic(Default::default())).unwrap();
        Self { config: noq_proto::ServerConfig::with_crypto(Arc::new(host)), factory }
    }

    fn accept(&self) -> (Arc<noq_proto::ServerConfig>, Arc<Flow>, Arc<Mutex<Vec<PeerParameters>>>) {
        let flow = Flow::new(PathKnowledge::default());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&heard);
        let config = accept_config(&self.config, &self.factory, &flow, move |_, parameters| {
            told.lock().unwrap().push(parameters);
        });
        (config, flow, heard)
    }
}

fn connect(config: &ClientConfig) -> Box<dyn Session> {
    crypto::ClientConfig::start_session(config, 1, "localhost", &parameters(&CLIENT_WINDOWS)).unwrap()
}

/// Carries what one end wants to say, a level of encryption at a time; whether there was anything.
fn carry(from: &mut dyn Session, to: &mut dyn Session) -> bool {
    let mut said = false;
    loop {
        let mut message = Vec::new();
        let keys = from.write_handshake(&mut message);
        if keys.is_none() && message.is_empty() {
            return said;
        }
        to.read_handshake(&message).unwrap();
        said = true;
    }
}

fn shake_hands(client: &mut dyn Session, server: &mut dyn Session) {
    while carry(client, server) | carry(server, client) {}
    assert!(!client.is_handshaking() && !server.is_handshaking());
}

#[test]
fn the_hint_arrives_and_the_handshake_is_the_hosts() {
    let (client, server) = tls(rustls::crypto::ring::default_provider());
    let server = Server::new(server);
    let (config, flow, heard) = server.accept();
    let client = ClientConfig::new(client).unwrap().with_hint(Some(&hint())).unwrap();
    let mut client = connect(&client.with_path_state(Some(b"sealed")).unwrap());
    let mut session = config.crypto.start_session(1, &parameters(&SERVER_WINDOWS));

    shake_hands(&mut *client, &mut *session);
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].hint, Ok(Some(hint())));
    assert_eq!(heard[0].path_state, Ok(Some(b"sealed".to_vec())));
    // 60 bytes on a stream that the server opens, and 63 in all.
    flow.learn(|path| assert_eq!(path.receive_window, Some(Bytes::new(60))));

    let agreed = session.handshake_data().unwrap().downcast::<HostHandshakeData>().unwrap();
    assert_eq!((agreed.protocol, agreed.server_name), (Some(b"h3".to_vec()), Some("localhost".into())));
    let agreed = client.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
    assert_eq!(agreed.protocol, Some(b"h3".to_vec()));
    let certificates = client.peer_identity().unwrap().downcast::<Vec<CertificateDer<'static>>>().unwrap();
    assert_eq!(certificates.len(), 1);
    let mut exported = [[0; 8]; 2];
    client.export_keying_material(&mut exported[0], b"label", b"context").unwrap();
    session.export_keying_material(&mut exported[1], b"label", b"context").unwrap();
    assert_eq!(exported[0], exported[1]);
    assert!(client.next_1rtt_keys().is_some() && session.next_1rtt_keys().is_some());
}

#[test]
fn one_configuration_does_not_mix_up_two_clients() {
    let (client, server) = tls(rustls::crypto::ring::default_provider());
    let (config, _, heard) = Server::new(server).accept();
    let hinted = ClientConfig::new(client).unwrap().with_hint(Some(&hint())).unwrap();
    for _ in 0..2 {
        let mut session = config.crypto.start_session(1, &parameters(&SERVER_WINDOWS));
        shake_hands(&mut *connect(&hinted), &mut *session);
    }
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn a_client_learns_the_servers_window() {
    let (client, server) = tls(rustls::crypto::ring::default_provider());
    let server = Server::new(server);
    let flow = Flow::waiting(PathKnowledge::default());
    let told = tell_flow(Arc::clone(&flow), |_, _| ());
    let client = ClientConfig::new(client).unwrap();
    let mut client = client.session(1, "localhost", &parameters(&CLIENT_WINDOWS), Some(told)).unwrap();
    let mut session = server.config.crypto.start_session(1, &parameters(&SERVER_WINDOWS));
    shake_hands(&mut *client, &mut *session);
    flow.learn(|path| assert_eq!(path.receive_window, Some(Bytes::new(500))));
}

#[test]
fn zero_rtt_keeps_working() {
    let (client, server) = tls(rustls::crypto::ring::default_provider());
    let server = Server::new(server);
    let config = ClientConfig::new(client).unwrap().with_hint(Some(&hint())).unwrap();
    for again in [false, true] {
        let (accepting, _, heard) = server.accept();
        let mut client = connect(&config);
        assert_eq!(client.early_crypto().is_some(), again);
        let mut session = accepting.crypto.start_session(1, &parameters(&SERVER_WINDOWS));
        let mut hello = Vec::new();
        assert!(client.write_handshake(&mut hello).is_none());
        session.read_handshake(&hello).unwrap();
        assert_eq!(heard.lock().unwrap()[0].hint, Ok(Some(hint())), "with the first message");
        assert_eq!(session.early_crypto().is_some(), again);
        shake_hands(&mut *client, &mut *session);
        assert_eq!(client.early_data_accepted(), Some(again));
    }
}

#[test]
fn a_bad_hint_is_told_and_hurts_nothing() {
    let (client, server) = tls(rustls::crypto::ring::default_provider());
    let server = Server::new(server);
    let good = ClientConfig::new(client).unwrap();
    let bad: [(&[u8], HintError); 3] = [
        (&[9, 9, 9], HintError::Version(9)),
        (&[2, 2], HintError::Truncated { found: 2 }),
        (&[2, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0], HintError::Rate((1 << 62) - 1)),
    ];
    for (bytes, error) in bad {
        let (config, _, heard) = server.accept();
        let mut encoded = Vec::new();
        transport_parameters::write(HINT, bytes, &mut encoded);
        let mut client = connect(&good.clone().with_encoded_parameters(encoded));
        let mut session = config.crypto.start_session(1, &parameters(&SERVER_WINDOWS));
        shake_hands(&mut *client, &mut *session);
        let errors: Vec<_> = heard.lock().unwrap()[0].errors().collect();
        assert_eq!(errors, [ParameterError::Hint(error)]);
    }
}

#[test]
fn what_quic_cannot_use_is_refused() {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    let (client, _) = tls(provider);
    assert_eq!(ClientConfig::new(client).unwrap_err(), ClientConfigError::InitialCipherSuite);
    let (client, _) = tls(rustls::crypto::ring::default_provider());
    let client = ClientConfig::new(client).unwrap();
    let start = |version, name| crypto::ClientConfig::start_session(&client, version, name, &parameters(&[])).err();
    assert_eq!(start(2, "localhost"), Some(ConnectError::UnsupportedVersion));
    assert_eq!(start(1, "not a name"), Some(ConnectError::InvalidServerName("not a name".into())));
    assert!(client.with_path_state(Some(&[])).is_err());
}

#[test]
fn randomness_is_the_providers() {
    #[derive(Debug)]
    struct Counted(AtomicUsize);
    impl rustls::crypto::SecureRandom for Counted {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), rustls::crypto::GetRandomFailed> {
            self.0.fetch_add(bytes.len(), Ordering::Relaxed);
            bytes.fill(7);
            Ok(())
        }
    }
    static RANDOM: Counted = Counted(AtomicUsize::new(0));
    let (client, _) = tls(CryptoProvider { secure_random: &RANDOM, ..rustls::crypto::ring::default_provider() });
    let mut hello = Vec::new();
    connect(&ClientConfig::new(client).unwrap()).write_handshake(&mut hello);
    // Four bytes of type and length, two of version, then 32 random ones.
    assert_eq!(hello[6..38], [7; 32]);
    assert!(RANDOM.0.load(Ordering::Relaxed) >= 32);
}

#[test]
fn the_retry_packet_of_the_rfc_is_valid() {
    // RFC 9001, appendix A.4.
    let original = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
    let header = [0xff, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];
    let payload = [
        0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f,
        0x24, 0x96, 0xba,
    ];
    assert!(is_valid_retry(&original, &header, &payload));
    assert!(!is_valid_retry(&original, &header, &payload[1..]));
    assert!(!is_valid_retry(&original[1..], &header, &payload));
    assert!(!is_valid_retry(&original, &header, &payload[..15]));
}
