//! The simulation's view of an encrypted connection: the frames before encryption, and the inputs of the congestion
//! controller.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use flowstart_core::units::Rate;
use flowstart_quic::session::observer::{Level, Observer};
use noq_proto::congestion::{self, ControllerMetrics};
use noq_proto::crypto::{CryptoError, PacketKey};
use noq_proto::{PathId, RttEstimator};

use super::frames::Carried;

/// Observations at one end since the last reading.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Contents of the encrypted packets, in their order. A datagram has one of them at most: a packet of application
    /// data is the last one of its datagram.
    pub(super) carried: Vec<Carried>,
    /// The time when the controller was built: the zero of its times.
    pub(super) origin: Option<Instant>,
    /// Most bytes in flight.
    pub(super) max_in_flight: u64,
    /// Packets that were declared lost.
    pub(super) lost: Vec<u64>,
    /// Packets that were acknowledged, only with a trace.
    pub(super) acknowledged: Vec<u64>,
    /// The client reads SCONE packets.
    pub(super) scone: bool,
    /// The client's hint, and the part of it that is used. The first is `None` if the hint could not be read.
    pub(super) hint: Option<(Option<Rate>, Option<Rate>)>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    /// Separate from the rest, because every packet and every acknowledgement reads it.
    traced: AtomicBool,
}

/// The observations at one end of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Shared>);

impl Watch {
    /// The observations.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether a trace needs each acknowledged packet and the ranges of acknowledgements.
    pub(super) fn set_traced(&self, traced: bool) {
        self.0.traced.store(traced, Ordering::Relaxed);
    }

    fn is_traced(&self) -> bool {
        self.0.traced.load(Ordering::Relaxed)
    }
}

impl Observer for Watch {
    fn on_key(&self, key: Box<dyn PacketKey>, level: Level) -> Box<dyn PacketKey> {
        match level {
            Level::Handshake => key,
            Level::Application => Box::new(WatchedKey { key, watch: self.clone() }),
        }
    }
}

/// A key of application data that shows its packets before it encrypts them.
struct WatchedKey {
    key: Box<dyn PacketKey>,
    watch: Watch,
}

impl PacketKey for WatchedKey {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let frames = buf.len().saturating_sub(self.key.tag_len()).max(header_len);
        let mut carried = Carried { number: Some(packet), ..Carried::default() };
        carried.read(&buf[header_len..frames], self.watch.is_traced());
        self.watch.seen().carried.push(carried);
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

/// Builds watched controllers.
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
