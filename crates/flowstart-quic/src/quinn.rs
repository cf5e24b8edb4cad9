//! The adapter for [quinn](https://docs.rs/quinn) 0.11.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use flowstart_core::{avoidance::AvoidanceConfig, startup::StartupConfig};
//! # fn configure(transport: &mut quinn_proto::TransportConfig) -> Result<(), flowstart_quic::Unsupported> {
//! let startup = StartupConfig::Blitzstart(Default::default());
//! let avoidance = AvoidanceConfig::Cubic(Default::default());
//! let factory = flowstart_quic::quinn::ControllerFactory::new(startup, avoidance)?;
//! transport.congestion_controller_factory(Arc::new(factory));
//! # Ok(())
//! # }
//! ```
//!
//! What the host does not give, in addition to the limits of [noq](crate::noq):
//!
//! - **Pacing is the host's alone**: a window leaves at 1.25 windows per smoothed RTT, in bursts of 10 to 256 packets.
//!   The host does not ask for the controller's rate. Schemes that send at another rate than one window per RTT cannot
//!   work and are refused: `swift-start` (packets back to back), `suss` and `plumb` (their own pacing of the window),
//!   `more-start` (a requested rate), `bbr`. A launch that is to be spread over one RTT (`jump-start`,
//!   `careful-resume`, `rapid-start`) would be spread over 0.8 RTT by these numbers. Measured on loopback sockets, 344
//!   packets over 82 ms: the first 300 take 88 to 99 ms, in bursts of up to 18 with 3 ms between, and not the 57 ms of
//!   0.8 RTT; noq takes 75 to 80 ms for them, and the launch's own rate gives 71 ms (`cargo test -p flowstart-quic
//!   --features quinn --test quinn --test wire -- --nocapture`). It is open why quinn is slower than its own rate.
//! - **Before the first RTT sample** the host paces for an RTT of 333 ms.
//! - **Packets are reported in batches**, and losses as sums with the time of the latest. So the controller's positions
//!   are batches. Packets that hold only acknowledgements count when they leave, until the next acknowledgement
//!   corrects the sum. An end that only receives gets no acknowledgement; then the adapter merges the oldest batches.
//! - **A full window is not reported**: the controller takes it for full when no further full packet fits.
//! - **Spurious losses are not reported**, so reductions are not undone.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use flowstart_core::needs::Needs;
use flowstart_core::units::Bytes;
use quinn_proto::congestion;
use quinn_proto::congestion::ControllerMetrics;

use crate::clock::{Clock, span};
use crate::factory::{Factory, Host, Hosted};
use crate::sent::LostPlace;

/// The host quinn.
#[derive(Clone, Copy, Debug)]
pub struct Quinn;

impl Host for Quinn {
    const NAME: &'static str = "quinn";
    const GIVES: Needs = Needs::RATE_SAMPLES.and(Needs::APPROVAL).and(Needs::SHARED_WINDOW);
}

/// Builds controllers for quinn.
pub type ControllerFactory = Factory<Quinn>;

impl congestion::ControllerFactory for ControllerFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(Controller(self.host(Clock::starting(now), current_mtu).sharing()))
    }
}

/// A controller of one path of a quinn connection.
#[derive(Clone, Debug)]
pub struct Controller(Hosted);

impl congestion::Controller for Controller {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let now = self.0.at(now);
        self.0.tell(|sender| {
            sender.on_sent(now, Bytes::new(bytes), last_packet_number);
            sender.bound_memory();
        });
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, rtt: &quinn_proto::RttEstimator) {
        let (now, sent, smoothed) = (self.0.at(now), self.0.left_at(sent), span(rtt.get()));
        self.0.tell(|sender| sender.on_acknowledged(now, sent, Bytes::new(bytes), None, smoothed));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let now = self.0.at(now);
        self.0.tell(|sender| sender.on_acknowledgement_end(now, Bytes::new(in_flight), app_limited));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let (now, sent) = (self.0.at(now), self.0.left_at(sent));
        self.0.tell(|sender| {
            // The host reports marks as losses without bytes.
            if lost_bytes == 0 {
                return sender.on_ecn(now);
            }
            sender.on_packet_lost(now, Bytes::new(lost_bytes), LostPlace::SentAt(sent));
            sender.on_loss(now, is_persistent_congestion);
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.tell(|sender| sender.on_packet_size(Bytes::new(new_mtu.into())));
    }

    fn window(&self) -> u64 {
        self.0.answer().window.get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let answer = self.0.answer();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = answer.window.get();
        metrics.ssthresh = answer.ssthresh.map(Bytes::get);
        metrics.pacing_rate = Some(answer.pacing_rate.bits_per_sec());
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window().get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_core::avoidance::AvoidanceConfig;
    use flowstart_core::startup::StartupConfig;
    use quinn_proto::congestion::Controller as _;

    #[test]
    fn an_end_that_only_receives_does_not_grow() {
        let (startup, cubic) = (StartupConfig::defaults().swap_remove(0), AvoidanceConfig::defaults().swap_remove(1));
        let begin = Instant::now();
        let mut controller =
            Controller(ControllerFactory::new(startup, cubic).unwrap().host(Clock::starting(begin), 1200));
        // DATAGRAMs arrive for 100 s, and nothing but acknowledgements leaves.
        for number in 0..100_000 {
            controller.on_sent(begin + std::time::Duration::from_millis(number), 40, number);
        }
        let mut remembered = 0;
        controller.0.tell(|sender| remembered = sender.packets_remembered());
        // 1024 + 2 * 10
        assert_eq!(remembered, 1044);
    }
}
