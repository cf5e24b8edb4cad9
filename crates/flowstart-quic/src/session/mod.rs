//! Custom transport parameters in noq: hints and path state of clients, and receive windows of either side.
//!
//! A server gives each connection a configuration of its own ([`accept_config`]), a client each connection that it opens
//! ([`ClientConfig::for_connection`]). Both tie three things together that must not be mixed up between connections: the
//! controller, the [`Flow`] that it shares with the application, and what the peer's transport parameters say.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use flowstart_core::path::PathKnowledge;
//! # use flowstart_quic::{ControllerFactory, Flow, session};
//! # fn accept(incoming_config: &noq_proto::ServerConfig, factory: &ControllerFactory) -> Arc<noq_proto::ServerConfig> {
//! let flow = Flow::new(PathKnowledge::default());
//! session::accept_config(incoming_config, factory, &flow, |flow, client| {
//!     if let Ok(Some(hint)) = client.hint {
//!         flow.learn(|path| path.hint = Some(hint.hint()));
//!     }
//!     client.errors().for_each(|error| eprintln!("{error}"));
//! })
//! // ... goes to `Incoming::accept_with`.
//! # }
//! ```
//!
//! What the host does not give, and what follows from it:
//!
//! - **A server's session is the host's own**, and what the client sent is read beside it from the `ClientHello`. ALPN, server
//!   name, certificates, 0-RTT, tickets and Retry are the host's.
//! - **A client's session is this module's**, because the host's cannot send parameters that it does not know. Its
//!   `handshake_data` is [`HandshakeData`]: nobody but the host can make the host's.
//! - **A client learns the server's receive windows at the end of the handshake**, and its RTT may be known a moment before.
//!   Use [`Flow::waiting`] and tell what will be sent when the connection stands.
//! - QUIC version 1 only, where this module's session is used.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use noq_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportConfig, TransportError, TransportErrorCode};
use ring::aead;
use rustls::CipherSuite;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, Suite, Version};

use crate::flow::Flow;
use crate::hint::{BandwidthHint, HintError};
use crate::noq::ControllerFactory;
use crate::transport_parameters::{self, ClientHello, HINT, PATH_STATE, ParameterError, PeerParameters};

/// QUIC version 1 (RFC 9000).
const VERSION_1: u32 = 1;

/// Takes what the peer sent, once.
type Receiver = Box<dyn FnOnce(PeerParameters) + Send + Sync>;

/// The configuration of one connection that a server is about to accept, for `Incoming::accept_with` or
/// `Endpoint::accept`: as `config`, with controllers of this kind that work for `flow`.
///
/// As soon as the client's first message is read, and so before anything is launched, the flow learns the client's receive
/// window, and `receiver` gets the rest: a hint and path state are for the server's policy to use, and errors for its log.
/// It does not hear of clients whose first message never arrives.
///
/// Accept one connection with it. Another one would neither launch nor be told anything of its client.
pub fn accept_config(
    config: &noq_proto::ServerConfig,
    factory: &ControllerFactory,
    flow: &Arc<Flow>,
    receiver: impl FnOnce(&Flow, PeerParameters) + Send + Sync + 'static,
) -> Arc<noq_proto::ServerConfig> {
    let mut own = config.clone();
    own.transport = with_factory(&config.transport, factory, flow);
    own.crypto = Arc::new(Listening {
        host: Arc::clone(&config.crypto),
        receiver: Mutex::new(Some(tell_flow(Arc::clone(flow), receiver))),
    });
    Arc::new(own)
}

/// The transport with controllers of this kind that work for `flow`.
fn with_factory(transport: &TransportConfig, factory: &ControllerFactory, flow: &Arc<Flow>) -> Arc<TransportConfig> {
    let mut own = transport.clone();
    own.congestion_controller_factory(Arc::new(factory.for_flow(Arc::clone(flow))));
    Arc::new(own)
}

/// Tells the flow what needs no policy, and the application the rest.
fn tell_flow(flow: Arc<Flow>, receiver: impl FnOnce(&Flow, PeerParameters) + Send + Sync + 'static) -> Receiver {
    Box::new(move |parameters| {
        flow.learn(|path| parameters.tell_window(path));
        receiver(&flow, parameters);
    })
}

/// What is kept for one session only: the first one takes it.
fn take(receiver: &Mutex<Option<Receiver>>) -> Option<Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The host's TLS, with an ear for the client's first message.
struct Listening {
    host: Arc<dyn crypto::ServerConfig>,
    receiver: Mutex<Option<Receiver>>,
}

impl crypto::ServerConfig for Listening {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.host.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.host.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let host = self.host.start_session(version, params);
        let waiting = take(&self.receiver).map(|receiver| (ClientHello::default(), receiver));
        Box::new(ServerSession { host, waiting })
    }
}

/// The host's session, whose first message is read a second time.
struct ServerSession {
    host: Box<dyn Session>,
    /// Until the `ClientHello` is complete.
    waiting: Option<(ClientHello, Receiver)>,
}

impl Session for ServerSession {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.host.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.host.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.host.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.host.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.host.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.host.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let ready = self.host.read_handshake(buf)?;
        if let Some((mut hello, receiver)) = self.waiting.take() {
            match hello.take(buf) {
                Some(parameters) => receiver(parameters),
                None => self.waiting = Some((hello, receiver)),
            }
        }
        Ok(ready)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.host.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.host.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.host.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.host.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.host.export_keying_material(output, label, context)
    }
}

/// TLS that QUIC cannot use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientConfigError {
    /// Every QUIC connection begins with this cipher suite (RFC 9001, section 5.2).
    #[error("the TLS configuration's provider does not have TLS13_AES_128_GCM_SHA256, which QUIC needs")]
    InitialCipherSuite,
    /// TLS 1.3 is missing, for example.
    #[error("the TLS configuration cannot be used for QUIC: {0}")]
    Tls(#[from] rustls::Error),
}

/// TLS of a client that sends a hint or path state. Randomness is that of the configuration's provider.
///
/// It goes to `noq_proto::ClientConfig::new`, or with a controller for one connection to
/// [`ClientConfig::for_connection`].
#[derive(Clone)]
pub struct ClientConfig {
    tls: Arc<rustls::ClientConfig>,
    initial: Suite,
    hint: Option<Vec<u8>>,
    path_state: Option<Vec<u8>>,
    encoded: Vec<u8>,
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hint, path_state, .. } = self;
        f.debug_struct("ClientConfig").field("hint", hint).field("path_state", path_state).finish_non_exhaustive()
    }
}

impl ClientConfig {
    /// TLS that sends neither. For 0-RTT, `enable_early_data` of the TLS configuration must be set.
    ///
    /// # Errors
    ///
    /// [`ClientConfigError`] when QUIC cannot use this configuration.
    pub fn new(tls: impl Into<Arc<rustls::ClientConfig>>) -> Result<Self, ClientConfigError> {
        let tls = tls.into();
        let suites = tls.crypto_provider().cipher_suites.iter();
        let initial = suites
            .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
            .find_map(|suite| suite.tls13()?.quic_suite())
            .ok_or(ClientConfigError::InitialCipherSuite)?;
        // What else makes a configuration unfit only shows when it is used; no server has this name (RFC 6761).
        let name = ServerName::try_from("flowstart.invalid").map_err(|_| rustls::Error::UnsupportedNameType)?;
        ClientConnection::new(Arc::clone(&tls), Version::V1, name, Vec::new())?;
        Ok(Self { tls, initial, hint: None, path_state: None, encoded: Vec::new() })
    }

    /// Sends this hint, or none. [`BandwidthHint::quantized`] makes one that does not give its sender away.
    ///
    /// # Errors
    ///
    /// [`HintError`] when it is out of range.
    pub fn with_hint(self, hint: Option<&BandwidthHint>) -> Result<Self, HintError> {
        Ok(Self { hint: hint.map(BandwidthHint::encode).transpose()?, ..self })
    }

    /// Echoes the path state that a server sealed for an earlier connection, or none.
    ///
    /// # Errors
    ///
    /// [`ParameterError::PathStateLength`] when no server sealed it.
    pub fn with_path_state(self, state: Option<&[u8]>) -> Result<Self, ParameterError> {
        let state = state.map(transport_parameters::check_path_state).transpose()?;
        Ok(Self { path_state: state.map(<[u8]>::to_vec), ..self })
    }

    /// Sends these bytes behind the transport parameters, as they are: parameters of other extensions, encoded as RFC 9000,
    /// section 18 says, or what a server is to be tested with. Nothing checks them.
    #[must_use]
    pub fn with_encoded_parameters(self, encoded: Vec<u8>) -> Self {
        Self { encoded, ..self }
    }

    /// The configuration of one connection that is about to be opened, for `Endpoint::connect_with`: `transport` with
    /// controllers of this kind that work for `flow`. The flow learns the server's receive window when the handshake is
    /// complete.
    ///
    /// Tokens for address validation are kept per configuration; give it a `token_store` of your own to keep them longer.
    pub fn for_connection(
        &self,
        transport: &TransportConfig,
        factory: &ControllerFactory,
        flow: &Arc<Flow>,
    ) -> noq_proto::ClientConfig {
        let receiver = Mutex::new(Some(tell_flow(Arc::clone(flow), |_, _| ())));
        let mut config = noq_proto::ClientConfig::new(Arc::new(Connecting { config: self.clone(), receiver }));
        config.transport_config(with_factory(transport, factory, flow));
        config
    }

    fn session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
        receiver: Option<Receiver>,
    ) -> Result<Box<dyn Session>, ConnectError> {
        if version != VERSION_1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let name = ServerName::try_from(server_name)
            .map_err(|_| ConnectError::InvalidServerName(server_name.into()))?
            .to_owned();
        let mut bytes = Vec::new();
        params.write(&mut bytes);
        for (id, value) in [(HINT, &self.hint), (PATH_STATE, &self.path_state)] {
            value.iter().for_each(|value| transport_parameters::write(id, value, &mut bytes));
        }
        bytes.extend_from_slice(&self.encoded);
        // The configuration was tried before, so only the provider's randomness can be missing.
        let tls = ClientConnection::new(Arc::clone(&self.tls), Version::V1, name, bytes)
            .map_err(|_| ConnectError::EndpointStopping)?;
        let (tls, initial) = (Connection::Client(tls), self.initial);
        Ok(Box::new(ClientSession { tls, initial, next: None, has_handshake_data: false, receiver }))
    }
}

impl crypto::ClientConfig for ClientConfig {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        self.session(version, server_name, params, None)
    }
}

/// The configuration of one connection.
struct Connecting {
    config: ClientConfig,
    receiver: Mutex<Option<Receiver>>,
}

impl crypto::ClientConfig for Connecting {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        self.config.session(version, server_name, params, take(&self.receiver))
    }
}

/// What a client's handshake agreed on. A server's is `noq_proto::crypto::rustls::HandshakeData`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeData {
    /// The application protocol; `None` when none was offered.
    pub protocol: Option<Vec<u8>>,
    /// The key exchange; `None` until the handshake is complete.
    pub negotiated_key_exchange_group: Option<rustls::NamedGroup>,
}

/// A client's side of the handshake.
struct ClientSession {
    tls: Connection,
    initial: Suite,
    /// Secrets of the next key update.
    next: Option<Secrets>,
    has_handshake_data: bool,
    /// Until the handshake is complete.
    receiver: Option<Receiver>,
}

/// Keys as the host wants them.
fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: KeyPair { local: Box::new(keys.local.packet), remote: Box::new(keys.remote.packet) },
    }
}

impl Session for ClientSession {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        keys(self.initial.keys(&dst_cid, side.into(), Version::V1))
    }

    /// A [`HandshakeData`].
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        if !self.has_handshake_data {
            return None;
        }
        Some(Box::new(HandshakeData {
            protocol: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            negotiated_key_exchange_group: self
                .tls
                .negotiated_key_exchange_group()
                .map(rustls::crypto::SupportedKxGroup::name),
        }))
    }

    /// A `Vec<CertificateDer<'static>>`, as the host's.
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let certificates = self.tls.peer_certificates()?;
        let owned: Vec<CertificateDer<'static>> = certificates.iter().map(|one| one.clone().into_owned()).collect();
        Some(Box::new(owned))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.tls {
            Connection::Client(tls) => Some(tls.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.tls.read_hs(buf).map_err(|error| match self.tls.alert() {
            Some(alert) => TransportError::new(TransportErrorCode::crypto(alert.into()), error.to_string()),
            None => TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, format!("TLS error: {error}")),
        })?;
        // With 0-RTT, TLS has the server's parameters of an earlier connection until those of this one are authenticated.
        if !self.tls.is_handshaking()
            && let Some(receiver) = self.receiver.take()
            && let Some(parameters) = self.tls.quic_transport_parameters()
        {
            receiver(PeerParameters::read(parameters));
        }
        let ready = self.tls.alpn_protocol().is_some() || !self.tls.is_handshaking();
        let first = ready && !self.has_handshake_data;
        self.has_handshake_data = ready;
        Ok(first)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut bytes) = self.tls.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Client, &mut bytes)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        Some(keys(match self.tls.write_hs(buf)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                keys
            }
        }))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        is_valid_retry(&orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.tls.export_keying_material(output, label, Some(context)).map_err(|_| ExportKeyingMaterialError)?;
        Ok(())
    }
}

/// Whether a Retry packet answers the packet that was sent to this connection ID (RFC 9001, section 5.8).
fn is_valid_retry(original: &[u8], header: &[u8], payload: &[u8]) -> bool {
    const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
    const NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
    let Some((token, tag)) = payload.split_last_chunk::<16>() else { return false };
    let Ok(length) = u8::try_from(original.len()) else { return false };
    let Ok(key) = aead::UnboundKey::new(&aead::AES_128_GCM, &KEY) else { return false };
    let pseudo_packet = [&[length], original, header, token].concat();
    let nonce = aead::Nonce::assume_unique_for_key(NONCE);
    aead::LessSafeKey::new(key).open_in_place(nonce, aead::Aad::from(pseudo_packet), &mut tag.clone()).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use flowstart_core::avoidance::AvoidanceConfig;
    use flowstart_core::path::{AccessTechnology, PathKnowledge};
    use flowstart_core::startup::StartupConfig;
    use flowstart_core::time::Duration;
    use flowstart_core::units::{Bytes, Rate};
    use noq_proto::crypto::rustls::{HandshakeData as HostHandshakeData, QuicServerConfig};
    use rustls::crypto::CryptoProvider;
    use rustls::pki_types::PrivateKeyDer;

    use super::*;

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
            (&[1, 2], HintError::Truncated { found: 2 }),
            (&[1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0], HintError::Rate((1 << 62) - 1)),
        ];
        for (bytes, error) in bad {
            let (config, _, heard) = server.accept();
            let mut client = connect(&ClientConfig { hint: Some(bytes.to_vec()), ..good.clone() });
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
}
