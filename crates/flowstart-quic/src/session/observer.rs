//! TLS sessions of the host with an observer, for measurements and tests. The observer sees what the host hides: the
//! messages of the handshake, and packets before their encryption.

use std::any::Any;
use std::sync::Arc;

use noq_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportError};

/// What packets a key is for (RFC 9001, section 4.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Those of the handshake, after its first messages.
    Handshake,
    /// Those of application data, 0-RTT or 1-RTT.
    Application,
}

/// Listens to one session. Each method does nothing by default.
pub trait Observer: Send + Sync + 'static {
    /// The session has accepted a message of the peer's handshake, or a part of one; they come in order.
    fn on_message(&mut self, message: &[u8]) {
        let _ = message;
    }

    /// This end will encrypt its packets with the returned key: the given one, or a wrapper around it.
    fn on_key(&self, key: Box<dyn PacketKey>, level: Level) -> Box<dyn PacketKey> {
        let _ = level;
        key
    }
}

/// A TLS configuration whose sessions have observers; `F` makes one for each.
#[derive(Debug)]
pub struct ObservedConfig<C, F> {
    host: C,
    observer: F,
}

impl<C, F> ObservedConfig<C, F> {
    /// Observers of the sessions of `host`.
    pub fn new(host: C, observer: F) -> Self {
        Self { host, observer }
    }

    fn observe<O: Observer>(&self, session: Box<dyn Session>) -> Box<dyn Session>
    where
        F: Fn() -> O,
    {
        Box::new(Observed { host: session, observer: (self.observer)(), has_handshake_keys: false })
    }
}

impl<C, F, O> ClientConfig for ObservedConfig<C, F>
where
    C: ClientConfig,
    F: Fn() -> O + Send + Sync + 'static,
    O: Observer,
{
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.observe(self.host.start_session(version, server_name, params)?))
    }
}

impl<F, O> ServerConfig for ObservedConfig<Arc<dyn ServerConfig>, F>
where
    F: Fn() -> O + Send + Sync + 'static,
    O: Observer,
{
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.host.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.host.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.observe(self.host.start_session(version, params))
    }
}

/// A session with its observer.
struct Observed<O> {
    host: Box<dyn Session>,
    observer: O,
    /// The keys that the handshake gives next are those of application data.
    has_handshake_keys: bool,
}

impl<O: Observer> Session for Observed<O> {
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
        let (header, key) = self.host.early_crypto()?;
        Some((header, self.observer.on_key(key, Level::Application)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.host.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.host.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let ready = self.host.read_handshake(buf)?;
        self.observer.on_message(buf);
        Ok(ready)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.host.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.host.write_handshake(buf)?;
        let level = if self.has_handshake_keys { Level::Application } else { Level::Handshake };
        self.has_handshake_keys = true;
        Some(Keys { header, packet: KeyPair { local: self.observer.on_key(packet.local, level), ..packet } })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.host.next_1rtt_keys()?;
        Some(KeyPair { local: self.observer.on_key(keys.local, Level::Application), ..keys })
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
