//! The adapter for [noq](https://docs.rs/noq).
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use flowstart_core::{avoidance::AvoidanceConfig, startup::StartupConfig};
//! # fn configure(transport: &mut noq_proto::TransportConfig) -> Result<(), flowstart_quic::Unsupported> {
//! let startup = StartupConfig::Blitzstart(Default::default());
//! let avoidance = AvoidanceConfig::Cubic(Default::default());
//! transport.congestion_controller_factory(Arc::new(flowstart_quic::ControllerFactory::new(startup, avoidance)?));
//! # Ok(())
//! # }
//! ```
//!
//! What the host does not give, and what follows from it:
//!
//! - **Pacing bursts are the host's.** Its token bucket holds 2 ms at the pacing rate, at least 10 packets and at most 256,
//!   but never more than 10 ms; [`Output::burst`](flowstart_core::controller::Output::burst) and
//!   [`Output::send_quantum`](flowstart_core::controller::Output::send_quantum) cannot change that. A paced launch begins
//!   with what the bucket holds in one go, and continues evenly.
//! - **No proactive retransmission**: `halfback` would be `jump-start`, and is refused.
//! - **No timer**: what a scheme wants to do at a time is done with the next packet or acknowledgement after it.
//! - **No delay of the receiver**: RTT samples contain the time for which the peer held its acknowledgement back.
//! - **Whether the application limits the sender** is known for the time of an acknowledgement, not for the time when the
//!   acknowledged packet left. In slow start a packet that left with at least half of the present window in flight counts as
//!   one of a busy sender.
//! - **Probe timeouts are not told**; they reduce nothing (RFC 9002, section 7.5).
//! - **Packets of the handshake** before the launch count for the RTT only. What of them is lost after it counts as a loss.
//! - A startup scheme keeps the packet size it was built with; window minima and congestion avoidance follow path MTU
//!   discovery.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flowstart_core::avoidance::{AvoidanceConfig, AvoidanceState};
use flowstart_core::controller::{self, ControllerConfig};
use flowstart_core::path::PathKnowledge;
use flowstart_core::startup::{StartupConfig, StartupState};
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use noq_proto::congestion;
use noq_proto::congestion::ControllerMetrics;

use crate::Unsupported;
use crate::flow::Flow;
use crate::sender::{LostPlace, Sender};

/// The host's pacer counts whole nanoseconds of delay, so a rate beyond this makes it wait for nothing for ever: 100 Gbit/s,
/// at which a packet takes 0.1 us.
const FASTEST: Rate = Rate::from_mbit(100_000);

/// Builds controllers of one kind for noq: for a `TransportConfig` that many connections share, or for one connection with
/// what is known of it ([`ControllerFactory::for_flow`]).
///
/// noq builds a controller for each path. The first one of a [`Flow`] launches with what the flow knows; a later one, after
/// the connection has moved, starts without ([`PathKnowledge::for_new_path`]). Without a flow every path is a new one.
#[derive(Clone, Debug)]
pub struct ControllerFactory {
    config: ControllerConfig,
    algorithms: Option<Arc<Mutex<(StartupState, AvoidanceState)>>>,
    flow: Option<Arc<Flow>>,
}

impl ControllerFactory {
    /// Controllers of this pair with the defaults of RFC 9002, pacing, and reductions that are taken back when their losses
    /// were spurious.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the pair is meaningless, a parameter is out of its range, or the scheme cannot work on this
    /// host.
    pub fn new(startup: StartupConfig, avoidance: AvoidanceConfig) -> Result<Self, Unsupported> {
        let config = ControllerConfig { undo: true, ..ControllerConfig::new(startup, avoidance) };
        Self::with_config(config)
    }

    /// Controllers with these policies. The segment size is the host's packet size, whatever `config` says.
    ///
    /// # Errors
    ///
    /// As [`ControllerFactory::new`].
    pub fn with_config(config: ControllerConfig) -> Result<Self, Unsupported> {
        config.startup.validate()?;
        config.avoidance.validate()?;
        ControllerConfig::validate_pair(&config.startup, &config.avoidance)?;
        if let StartupConfig::Halfback(_) = config.startup {
            return Err(Unsupported::ProactiveRetransmission { host: "noq" });
        }
        Ok(Self { config, algorithms: None, flow: None })
    }

    /// Controllers with algorithms of the caller: schemes that live outside `flowstart-core`
    /// ([`StartupState::Custom`], [`AvoidanceState::Custom`]). Each controller gets a clone of them as they are now.
    #[must_use]
    pub fn with_algorithms(self, startup: StartupState, avoidance: AvoidanceState) -> Self {
        Self { algorithms: Some(Arc::new(Mutex::new((startup, avoidance)))), ..self }
    }

    /// The factory of one connection.
    #[must_use]
    pub fn for_flow(&self, flow: Arc<Flow>) -> Self {
        Self { flow: Some(flow), ..self.clone() }
    }

    /// What its controllers are made of.
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }
}

impl congestion::ControllerFactory for ControllerFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let config = ControllerConfig { segment: Bytes::new(current_mtu.into()), ..self.config.clone() };
        let initial_window = config.segment * config.initial_window;
        let controller = match &self.algorithms {
            None => controller::Controller::new(config),
            Some(algorithms) => {
                let (startup, avoidance) = algorithms.lock().unwrap_or_else(PoisonError::into_inner).clone();
                controller::Controller::with_algorithms(config, startup, avoidance)
            }
        };
        let flow = self.flow.clone().unwrap_or_else(|| Flow::new(PathKnowledge::default()));
        Box::new(Controller { sender: Mutex::new(Sender::new(controller, flow)), origin: now, initial_window })
    }
}

/// A controller of one path of a noq connection.
#[derive(Debug)]
pub struct Controller {
    /// The host asks for the window through a shared reference, and what it tells last may change the answer.
    sender: Mutex<Sender>,
    /// Time zero of the controller.
    origin: Instant,
    initial_window: Bytes,
}

impl Controller {
    fn at(&self, now: Instant) -> Timestamp {
        let since = now.saturating_duration_since(self.origin).as_nanos();
        Timestamp::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    fn shared(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&mut self) -> &mut Sender {
        self.sender.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl congestion::Controller for Controller {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let now = self.at(now);
        self.sender().on_sent(now, Bytes::new(bytes.into()), pn);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &noq_proto::RttEstimator,
    ) {
        let (now, sent) = (self.at(now), self.at(sent));
        self.sender().on_acknowledged(now, sent, Bytes::new(bytes), Some(pn));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let now = self.at(now);
        self.sender().on_acknowledgement_end(now, Bytes::new(in_flight), app_limited);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let now = self.at(now);
        self.sender().on_packet_lost(now, Bytes::new(lost_bytes.into()), LostPlace::Number(pn));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let now = self.at(now);
        if is_ecn { self.sender().on_ecn(now) } else { self.sender().on_loss(now, is_persistent_congestion) }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.sender().on_spurious_loss();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.sender().on_packet_size(Bytes::new(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.shared().window().get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut sender = self.shared();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = sender.window().get();
        metrics.ssthresh = sender.ssthresh().map(Bytes::get);
        metrics.pacing_rate = Some((sender.pacing_rate().min(FASTEST).bits_per_sec() / 8).max(1));
        metrics.bandwidth_estimate = sender.highest_rate().map(Rate::bits_per_sec);
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        let sender = Mutex::new(self.shared().clone());
        Box::new(Self { sender, origin: self.origin, initial_window: self.initial_window })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
