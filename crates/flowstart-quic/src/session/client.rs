//! The client's TLS session. The host's own session cannot serve, because it sends only parameters that it knows.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use noq_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportConfig, TransportError, TransportErrorCode};
use ring::aead;
use rustls::CipherSuite;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, Suite, Version};

use super::{Receiver, take, tell_flow, with_factory};
use crate::flow::Flow;
use crate::hint::{BandwidthHint, HintError};
use crate::noq::ControllerFactory;
use crate::transport_parameters::{
    self, HINT, PATH_STATE, ParameterError, PeerParameters, QUICK_START, SCONE_SUPPORTED,
};

/// QUIC version 1 (RFC 9000).
const VERSION_1: u32 = 1;

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

/// TLS of a client that sends a hint or path state. Randomness comes from the configuration's provider.
///
/// Pass it to `noq_proto::ClientConfig::new`, or, with a controller for one connection, to
/// [`ClientConfig::for_connection`].
#[derive(Clone)]
pub struct ClientConfig {
    tls: Arc<rustls::ClientConfig>,
    initial: Suite,
    hint: Option<Vec<u8>>,
    path_state: Option<Vec<u8>>,
    scone: bool,
    quick_start: bool,
    encoded: Vec<u8>,
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hint, path_state, scone, quick_start, .. } = self;
        f.debug_struct("ClientConfig")
            .field("hint", hint)
            .field("path_state", path_state)
            .field("scone", scone)
            .field("quick_start", quick_start)
            .finish_non_exhaustive()
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
        // Other faults of a configuration show only when it is used; no server has this name (RFC 6761).
        let name = ServerName::try_from("flowstart.invalid").map_err(|_| rustls::Error::UnsupportedNameType)?;
        ClientConnection::new(Arc::clone(&tls), Version::V1, name, Vec::new())?;
        Ok(Self { tls, initial, hint: None, path_state: None, scone: false, quick_start: false, encoded: Vec::new() })
    }

    /// Sends this hint, or none. [`BandwidthHint::quantized`] makes one that does not identify its sender.
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

    /// Says whether this end reads SCONE packets, which noq does not: a socket below it has to.
    #[must_use]
    pub fn with_scone(self, scone: bool) -> Self {
        Self { scone, ..self }
    }

    /// Says whether this end answers requests of Quick-Start, which a socket below noq has to read.
    #[must_use]
    pub fn with_quick_start(self, quick_start: bool) -> Self {
        Self { quick_start, ..self }
    }

    /// Appends these bytes to the transport parameters without a check: parameters of other extensions in the encoding
    /// of RFC 9000, section 18, or test data for a server.
    #[must_use]
    pub fn with_encoded_parameters(self, encoded: Vec<u8>) -> Self {
        Self { encoded, ..self }
    }

    /// The configuration of one connection that is about to be opened, for `Endpoint::connect_with`: `transport` with
    /// controllers of this kind that work for `flow`. The flow learns the server's receive window when the handshake is
    /// complete.
    ///
    /// Tokens for address validation are kept per configuration; give it a `token_store` of your own to keep them
    /// longer.
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

    pub(super) fn session(
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
        for (id, is_said) in [(SCONE_SUPPORTED, self.scone), (QUICK_START, self.quick_start)] {
            if is_said {
                transport_parameters::write(id, &[], &mut bytes);
            }
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
        // With 0-RTT, TLS has the server's parameters of an earlier connection until those of this one are
        // authenticated.
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
pub(super) fn is_valid_retry(original: &[u8], header: &[u8], payload: &[u8]) -> bool {
    const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
    const NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
    let Some((token, tag)) = payload.split_last_chunk::<16>() else { return false };
    let Ok(length) = u8::try_from(original.len()) else { return false };
    let Ok(key) = aead::UnboundKey::new(&aead::AES_128_GCM, &KEY) else { return false };
    let pseudo_packet = [&[length], original, header, token].concat();
    let nonce = aead::Nonce::assume_unique_for_key(NONCE);
    aead::LessSafeKey::new(key).open_in_place(nonce, aead::Aad::from(pseudo_packet), &mut tag.clone()).is_ok()
}
