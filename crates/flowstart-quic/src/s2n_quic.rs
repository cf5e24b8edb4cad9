//! The adapter for [s2n-quic](https://docs.rs/s2n-quic) 1.91, whose core is 0.91.
//!
//! ```no_run
//! # use flowstart_core::{avoidance::AvoidanceConfig, startup::StartupConfig};
//! # fn configure() -> Result<(), Box<dyn std::error::Error>> {
//! let startup = StartupConfig::Blitzstart(Default::default());
//! let avoidance = AvoidanceConfig::Cubic(Default::default());
//! let factory = flowstart_quic::s2n_quic::ControllerFactory::new(startup, avoidance)?;
//! let server = s2n_quic::Server::builder().with_congestion_controller(factory)?;
//! # Ok(())
//! # }
//! ```
//!
//! s2n-quic must have its feature `unstable-congestion-controller`. A release of it takes exactly one release of its
//! core, and the trait is not stable, so this adapter fits the release that it names and no other.
//!
//! What the host gives more than [noq](crate::noq): it asks when the next packet may leave, so the adapter paces, and a
//! launch's burst is the scheme's; it says for each packet whether the application limited the sender; RTT samples are
//! not late; losses come before the acknowledgement that reveals them, and marks with their number.
//!
//! What the host does not give, and the consequences:
//!
//! - **Packets of one to two milliseconds leave together**: what is due within the next millisecond is due for the
//!   host, and its timers are late. Up to 2 ms of lateness the adapter keeps the planned times; what is later makes a
//!   launch longer. A sender that waited for its window may send as much at once. Measured on loopback sockets over 82
//!   ms, six runs one after the other: 300 packets take 44 to 46 ms at 62.5 Mbit/s, where 46 are planned, and 72 to 80
//!   ms of a `jump-start`, where 71 are planned, in bursts of up to 20 with 1.2 to 2.3 ms between. While other programs
//!   use the processor, the same take up to 60 and 88 ms
//!   (`cargo test -p flowstart-quic --features s2n-quic --test s2n_quic -- --nocapture --test-threads 1`).
//! - **One factory serves all connections**, and is told only the peer's address and the packet size. What is known of
//!   a path comes by address ([`Factory::for_peers`]). A connection that moves gets a controller for the new address,
//!   which does not know of the old one.
//! - **ECT(1) is not sent**, although marks are counted: `prague` is refused. The host sends ECT(0) and has no setting
//!   for it. If something below it changed the codepoint, the peer's count of ECT(1) would exceed what the host has
//!   sent, and the host would turn ECN off (RFC 9000, section 13.4.2.1).
//! - **Spurious losses are not reported**, so reductions are not undone.
//! - **Probe timeouts are not reported**; they reduce nothing (RFC 9002, section 7.5).
//! - **No proactive retransmission** (`halfback`), **no congestion header** (`xcp`), **no options of IP**
//!   (`quick-start` needs an approval from elsewhere) and **no timer**, as in noq.
//! - **An acknowledgement is a sum of bytes** with its newest packet. The number of packets is that of full ones.
//! - **No hints and no path state in transport parameters**: the host's TLS is not open to them.
//! - A startup scheme keeps the packet size it was built with; window minima and congestion avoidance follow path MTU
//!   discovery.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use flowstart_core::needs::Needs;
use flowstart_core::pacer::{self, Pacer};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use s2n_quic_core::event::api::SocketAddress;
use s2n_quic_core::random;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{self, CongestionController, PathInfo, Publisher};
use s2n_quic_core::time::Timestamp as HostTime;

use crate::clock::span;
use crate::factory::{Factory, Host, Hosted};
use crate::flow::Flow;
use crate::sender::{Answer, Carried};

/// How late the host's timers are: those of tokio fire in the millisecond behind their time, and then the host has to
/// wake up.
const LATENESS: Duration = Duration::from_millis(2);

/// The host s2n-quic.
#[derive(Clone, Copy, Debug)]
pub struct S2nQuic;

impl Host for S2nQuic {
    const NAME: &'static str = "s2n-quic";
    const GIVES: Needs = Needs::OWN_RATE.and(Needs::RATE_SAMPLES).and(Needs::MARK_COUNTS).and(Needs::APPROVAL);
}

/// Builds controllers for s2n-quic, for all connections of an endpoint. Nothing is known of their paths, unless
/// [`Factory::for_peers`] says it; [`Factory::for_flow`] is for an endpoint with one connection.
pub type ControllerFactory = Factory<S2nQuic>;

impl ControllerFactory {
    /// A factory that asks `flow_of` for what is known of the path to a peer, once for each path of each connection.
    /// The host waits for the answer.
    pub fn for_peers<F: FnMut(SocketAddr) -> Arc<Flow> + Send + 'static>(&self, flow_of: F) -> ForPeers<F> {
        ForPeers { factory: self.clone(), flow_of }
    }
}

impl congestion_controller::Endpoint for ControllerFactory {
    type CongestionController = Controller;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Controller {
        Controller::new(self, path.max_datagram_size)
    }
}

/// [`Factory::for_peers`].
pub struct ForPeers<F> {
    factory: ControllerFactory,
    flow_of: F,
}

impl<F> fmt::Debug for ForPeers<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForPeers").field("factory", &self.factory).finish_non_exhaustive()
    }
}

impl<F: FnMut(SocketAddr) -> Arc<Flow> + Send + 'static> congestion_controller::Endpoint for ForPeers<F> {
    type CongestionController = Controller;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Controller {
        let flow = match path.remote_address {
            SocketAddress::IpV4 { ip, port, .. } => (self.flow_of)(SocketAddr::from((*ip, port))),
            SocketAddress::IpV6 { ip, port, .. } => (self.flow_of)(SocketAddr::from((*ip, port))),
            // The host may get to know other addresses.
            _ => Flow::new(Default::default()),
        };
        Controller::new(&self.factory.for_flow(flow), path.max_datagram_size)
    }
}

/// The host's clock. The factory is not told the time, so the first packet is at zero.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    origin: Option<HostTime>,
}

/// What the host keeps with a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo(Option<Carried>);

/// A controller of one path of an s2n-quic connection.
#[derive(Clone, Debug)]
pub struct Controller {
    hosted: Hosted<Clock>,
    pacer: Pacer,
    /// The scheme has launched.
    launched: bool,
    /// The last packet that counts. It stands for packets behind it that hold only acknowledgements.
    last: PacketInfo,
}

impl Controller {
    fn new(factory: &ControllerFactory, packet: u16) -> Self {
        let hosted = factory.host(Clock::default(), packet);
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.set_lateness(LATENESS);
        Self { hosted, pacer, launched: false, last: PacketInfo(None) }
    }

    fn at(&mut self, time: HostTime) -> Timestamp {
        let origin = *self.hosted.clock.origin.get_or_insert(time);
        // The difference of equal times is zero only without saturation, which begins at a microsecond.
        if time < origin { Timestamp::ZERO } else { Timestamp::ZERO + span(time - origin) }
    }
}

/// The host counts in 32 bits.
fn narrow(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

impl CongestionController for Controller {
    type PacketInfo = PacketInfo;

    fn congestion_window(&self) -> u32 {
        narrow(self.hosted.answer().window)
    }

    fn bytes_in_flight(&self) -> u32 {
        narrow(self.hosted.answer().in_flight)
    }

    fn is_congestion_limited(&self) -> bool {
        let Answer { window, in_flight, packet, .. } = self.hosted.answer();
        window.saturating_sub(in_flight) < packet
    }

    /// The controller's proportional rate reduction leaves room for it.
    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: HostTime,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) -> PacketInfo {
        let now = self.at(time_sent);
        // Packets that hold only acknowledgements do not count.
        if sent_bytes == 0 {
            return self.last;
        }
        let (bytes, launched) = (Bytes::new(sent_bytes as u64), self.launched);
        let mut burst = None;
        self.hosted.tell(|sender| {
            let carried = sender.on_carried_sent(now, bytes, app_limited.unwrap_or(true));
            burst = sender.burst_with(&carried, bytes, launched);
            self.launched = sender.is_launched();
            self.last = PacketInfo(Some(carried));
        });
        if let Some(burst) = burst {
            self.pacer.allow_burst(burst);
        }
        self.pacer.on_sent(now, bytes, self.hosted.answer().pacing_rate);
        self.last
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        _time_sent: HostTime,
        now: HostTime,
        rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        let now = self.at(now);
        let (latest, smoothed) = (span(rtt_estimator.latest_rtt()), span(rtt_estimator.smoothed_rtt()));
        self.hosted.tell(|sender| sender.on_rtt_sample(now, latest, smoothed));
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        _newest_acked_time_sent: HostTime,
        bytes_acknowledged: usize,
        newest_acked_packet_info: PacketInfo,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn random::Generator,
        ack_receive_time: HostTime,
        _publisher: &mut Pub,
    ) {
        let (now, bytes) = (self.at(ack_receive_time), Bytes::new(bytes_acknowledged as u64));
        let Some(newest) = newest_acked_packet_info.0 else { return };
        self.hosted.tell(|sender| sender.on_carried_delivered(now, bytes, &newest));
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: PacketInfo,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn random::Generator,
        timestamp: HostTime,
        _publisher: &mut Pub,
    ) {
        let (now, bytes) = (self.at(timestamp), Bytes::new(lost_bytes.into()));
        let Some(lost) = packet_info.0 else { return };
        self.hosted.tell(|sender| sender.on_carried_lost(now, bytes, &lost, persistent_congestion));
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, ce_count: u64, event_time: HostTime, _publisher: &mut Pub) {
        let now = self.at(event_time);
        self.hosted.tell(|sender| sender.on_marked(now, ce_count));
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        self.hosted.tell(|sender| sender.on_packet_size(Bytes::new(max_data_size.into())));
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.hosted.tell(|sender| sender.on_discarded(Bytes::new(bytes_sent as u64)));
    }

    fn earliest_departure_time(&self) -> Option<HostTime> {
        let wait = self.pacer.release_time(Timestamp::ZERO).since(Timestamp::ZERO);
        let origin = self.hosted.clock.origin?;
        (wait > Duration::ZERO).then(|| origin + std::time::Duration::from_nanos(wait.as_nanos()))
    }

    fn send_quantum(&self) -> Option<usize> {
        let Answer { pacing_rate, packet, .. } = self.hosted.answer();
        usize::try_from(pacer::send_quantum(Some(pacing_rate), packet).get()).ok()
    }
}

#[cfg(test)]
mod tests;
