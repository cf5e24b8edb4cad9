//! What a simulation sees of a connection that hides its packets: their frames before encryption, and what the congestion
//! controller is told.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use flowstart_core::units::Rate;
use noq_proto::congestion::{self, ControllerMetrics};
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, RttEstimator, Side, TransportError};

use super::frames::Carried;

/// What was seen at one end since it was taken last.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What the packets carry that were encrypted, in their order. A datagram has one of them at most: a packet of
    /// application data is the last one of its datagram.
    pub(super) carried: Vec<Carried>,
    /// When the controller was built: the zero of its times.
    pub(super) origin: Option<Instant>,
    /// Most bytes in flight.
    pub(super) max_in_flight: u64,
    /// Packets that were declared lost.
    pub(super) lost: Vec<u64>,
    /// Packets that were acknowledged, where somebody traces.
    pub(super) acknowledged: Vec<u64>,
    /// What the client's hint said, and what of it is used; `None` of the first: it could not be read.
    pub(super) hint: Option<(Option<Rate>, Option<Rate>)>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    /// Beside the rest, because it is asked with every packet and every acknowledgement.
    traced: AtomicBool,
}

/// What is seen at one end of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Shared>);

impl Watch {
    /// What was seen.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody traces, and so wants each acknowledged packet and the ranges of acknowledgements.
    pub(super) fn set_traced(&self, traced: bool) {
        self.0.traced.store(traced, Ordering::Relaxed);
    }

    fn is_traced(&self) -> bool {
        self.0.traced.load(Ordering::Relaxed)
    }

    fn keys(&self, keys: KeyPair<Box<dyn PacketKey>>, handshake: bool) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: self.key(keys.local, handshake), remote: keys.remote }
    }

    fn key(&self, key: Box<dyn PacketKey>, handshake: bool) -> Box<dyn PacketKey> {
        Box::new(WatchedKey { key, handshake, watch: self.clone() })
    }
}

/// A key whose packets are looked at before they are encrypted.
struct WatchedKey {
    key: Box<dyn PacketKey>,
    /// It encrypts packets of the handshake, which carry no application data.
    handshake: bool,
    watch: Watch,
}

impl PacketKey for WatchedKey {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        if !self.handshake {
            let frames = buf.len().saturating_sub(self.key.tag_len()).max(header_len);
            let mut carried = Carried { number: Some(packet), ..Carried::default() };
            carried.read(&buf[header_len..frames], self.watch.is_traced());
            self.watch.seen().carried.push(carried);
        }
        self.key.encrypt(path_id, packet, buf, header_len);
    }

    fn decrypt(&self, path_id: PathId, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.key.decrypt(path_id, packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

/// A TLS configuration whose sessions are watched.
pub(super) struct Watched<T> {
    pub(super) config: T,
    pub(super) watch: Watch,
}

impl<T> Watched<T> {
    fn session(&self, session: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(WatchedSession { session, watch: self.watch.clone(), key_changes: 0 })
    }
}

impl<T: ClientConfig> ClientConfig for Watched<T> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(self.config.start_session(version, server_name, params)?))
    }
}

impl ServerConfig for Watched<Arc<dyn ServerConfig>> {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.config.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.config.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(self.config.start_session(version, params))
    }
}

struct WatchedSession {
    session: Box<dyn Session>,
    watch: Watch,
    /// Keys that the handshake has given: first those of its own packets, then those of application data.
    key_changes: u32,
}

impl Session for WatchedSession {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.session.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.session.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.session.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, key) = self.session.early_crypto()?;
        Some((header, self.watch.key(key, false)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.session.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.session.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.session.write_handshake(buf)?;
        self.key_changes += 1;
        Some(Keys { header, packet: self.watch.keys(packet, self.key_changes == 1) })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.session.next_1rtt_keys()?;
        Some(self.watch.keys(keys, false))
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.session.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.session.export_keying_material(output, label, context)
    }
}

/// Builds controllers that are watched.
pub(super) struct WatchedFactory {
    pub(super) factory: Arc<flowstart_quic::ControllerFactory>,
    pub(super) watch: Watch,
}

impl congestion::ControllerFactory for WatchedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let controller = Arc::clone(&self.factory).build(now, current_mtu);
        self.watch.seen().origin = Some(now);
        Box::new(WatchedController { controller, watch: self.watch.clone(), in_flight: 0, max_in_flight: 0 })
    }
}

#[derive(Debug)]
struct WatchedController {
    controller: Box<dyn congestion::Controller>,
    watch: Watch,
    /// Bytes in flight.
    in_flight: u64,
    /// Most bytes in flight.
    max_in_flight: u64,
}

impl congestion::Controller for WatchedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.controller.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.in_flight += u64::from(bytes);
        if self.in_flight > self.max_in_flight {
            self.max_in_flight = self.in_flight;
            let seen = &mut *self.watch.seen();
            seen.max_in_flight = seen.max_in_flight.max(self.in_flight);
        }
        self.controller.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, pn: u64, app_limited: bool, rtt: &RttEstimator) {
        if self.watch.is_traced() {
            self.watch.seen().acknowledged.push(pn);
        }
        self.controller.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.in_flight = in_flight;
        self.controller.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.controller.on_congestion_event(now, sent, is_persistent_congestion, is_ecn, lost_bytes, largest_lost_pn);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(u64::from(lost_bytes));
        self.watch.seen().lost.push(pn);
        self.controller.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.controller.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, requested_max_ack_delay: std::time::Duration) {
        self.controller.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(Self { controller: self.controller.clone_box(), watch: self.watch.clone(), ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.controller.into_any()
    }
}
