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
//! What the host does not give, and the consequences:
//!
//! - **Pacing bursts are the host's.** Its token bucket holds 2 ms at the pacing rate, at least 10 packets and at most
//!   256, but never more than 10 ms; [`Output::burst`](flowstart_core::controller::Output::burst) cannot change that.
//!   [`Output::send_quantum`](flowstart_core::controller::Output::send_quantum) bounds how much of it goes down in one
//!   batch. A paced launch begins with the content of the bucket at once, and continues evenly. On sockets timers are
//!   late, and credit that does not fit into the bucket meanwhile is lost. So a launch may take almost twice as long as
//!   its rate says, but never less.
//! - **No proactive retransmission**: `halfback` would be `jump-start`, and is refused.
//! - **No options of IP**: the host asks no routers for a rate (Quick-Start). Sockets below it can, with the feature
//!   `runtime` (`quick_start`). `quick-start` launches with
//!   [`PathKnowledge::approved_rate`](flowstart_core::path::PathKnowledge::approved_rate) if the owner of the IP layer
//!   has obtained one and passes it to [`Flow::learn`](crate::Flow::learn) or [`Flow::hear`](crate::Flow::hear) before
//!   the launch. Otherwise it is slow start.
//! - **No congestion header** for routers to write into: `xcp` is refused.
//! - **No timer**: a scheme's timed actions happen with the next packet or acknowledgement after their time.
//! - **No delay of the receiver**: the adapter derives how long the peer held an acknowledgement back from the host's
//!   smoothed RTT, which comes with the next acknowledgement. So RTT samples are one acknowledgement late. The host
//!   does not subtract a delay that would lead below its minimum (RFC 9002, section 5.3). While this minimum is a
//!   little too high, as after a slow handshake, samples contain up to 25 ms of delay, which HyStart takes for a queue.
//! - **Whether the application limits the sender** is known for the time of an acknowledgement, not for the time when
//!   the acknowledged packet left. Packets that left before the window was last full count as those of a busy sender.
//!   Packets that only the pacer held back do not, once the data has run out.
//! - **Probe timeouts are not reported**; they reduce nothing (RFC 9002, section 7.5).
//! - **Packets of the handshake** before the launch count for the RTT only. If they are lost after the launch, this
//!   counts as a loss.
//! - **A receiver ends the connection when too many pieces wait behind a gap** ("too many gaps in stream buffer"):
//!   beyond 2048 pieces it joins small ones, and gives up if more than 1024 are left. Nearly full packets are never
//!   joined, so this can happen with fewer gaps. A startup that overshoots a long path loses every second packet of a
//!   window; the host's default `stream_receive_window` of 1.25 MB is safe, 2 MB is not. Unordered reading does not
//!   help: in 1.4.0 joining takes pieces that fill gaps for duplicates and drops them for good, so the stream never
//!   ends.
//! - A startup scheme keeps the packet size it was built with; window minima and congestion avoidance follow path MTU
//!   discovery.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use flowstart_core::needs::Needs;
use flowstart_core::pacer;
use flowstart_core::units::{Bytes, Rate};
use noq_proto::congestion;
use noq_proto::congestion::ControllerMetrics;

use crate::clock::{Clock, span};
use crate::factory::{Factory, Host, Hosted};
use crate::sender::Sender;
use crate::sent::LostPlace;

/// The host's pacer counts whole nanoseconds of delay, so a rate beyond this would make it wait for ever: 100 Gbit/s,
/// at which a packet takes 0.1 us.
const FASTEST: Rate = Rate::from_mbit(100_000);

/// The host noq.
#[derive(Clone, Copy, Debug)]
pub struct Noq;

impl Host for Noq {
    const NAME: &'static str = "noq";
    const GIVES: Needs = Needs::OWN_RATE.and(Needs::RATE_SAMPLES).and(Needs::APPROVAL).and(Needs::SHARED_WINDOW);
}

/// Builds controllers for noq: for a `TransportConfig` that many connections share, or for one connection with its
/// knowledge ([`Factory::for_flow`]).
pub type ControllerFactory = Factory<Noq>;

impl congestion::ControllerFactory for ControllerFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(Controller(self.host(Clock::starting(now), current_mtu).sharing()))
    }
}

/// A controller of one path of a noq connection.
#[derive(Clone, Debug)]
pub struct Controller(Hosted);

impl congestion::Controller for Controller {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let now = self.0.at(now);
        self.0.tell(|sender| sender.on_sent(now, Bytes::new(bytes.into()), pn));
    }

    fn on_cwnd_limited(&mut self) {
        self.0.tell(Sender::on_window_full);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        rtt: &noq_proto::RttEstimator,
    ) {
        let (now, sent, smoothed) = (self.0.at(now), self.0.left_at(sent), span(rtt.get()));
        self.0.tell(|sender| sender.on_acknowledged(now, sent, Bytes::new(bytes), Some(pn), smoothed));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let now = self.0.at(now);
        self.0.tell(|sender| sender.on_acknowledgement_end(now, Bytes::new(in_flight), app_limited));
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let now = self.0.at(now);
        self.0.tell(|sender| sender.on_packet_lost(now, Bytes::new(lost_bytes.into()), LostPlace::Number(pn)));
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
        let now = self.0.at(now);
        self.0.tell(|sender| if is_ecn { sender.on_ecn(now) } else { sender.on_loss(now, is_persistent_congestion) });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.0.tell(Sender::on_spurious_loss);
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
        // Rounded up, so only a rate of zero is zero bytes a second. The host turns zero into one byte a second.
        metrics.pacing_rate = Some(answer.pacing_rate.min(FASTEST).bits_per_sec().div_ceil(8));
        metrics.send_quantum = Some(pacer::send_quantum(Some(answer.pacing_rate), answer.packet).get());
        metrics.bandwidth_estimate = answer.highest_rate.map(Rate::bits_per_sec);
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
    use flowstart_core::avoidance::{AvoidanceConfig, AvoidanceState};
    use flowstart_core::event::{Ack, DecisionLog, Loss};
    use flowstart_core::launch::Launch;
    use flowstart_core::path::PathKnowledge;
    use flowstart_core::rtt::RttEstimator;
    use flowstart_core::startup::{Startup, StartupConfig, StartupState, Step};
    use flowstart_core::time::{Duration, Timestamp};
    use flowstart_core::window::{SegmentSize, Window};
    use noq_proto::congestion::Controller as _;

    const PACKET: u16 = 1200;

    /// Launches at a rate, and stays at its window.
    #[derive(Clone, Debug)]
    struct AtRate(Rate);

    impl Startup for AtRate {
        fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
            Launch { pacing_rate: Some(self.0), ..Launch::window(Bytes::new(12_000)) }
        }

        fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
            Step::Continue { cwnd: window.cwnd }
        }

        fn on_congestion(&mut self, _loss: &Loss, window: Window, _reduced: Bytes) -> Step {
            Step::Continue { cwnd: window.cwnd }
        }
    }

    /// What the host is told after a launch at this rate.
    fn launched(bits_per_sec: u64) -> ControllerMetrics {
        let (startup, cubic) = (StartupConfig::defaults().swap_remove(0), AvoidanceConfig::defaults().swap_remove(1));
        let scheme = StartupState::Custom(Box::new(AtRate(Rate::from_bits_per_sec(bits_per_sec))));
        let avoidance: AvoidanceState = cubic.build(SegmentSize(Bytes::new(PACKET.into())));
        let factory = ControllerFactory::new(startup, cubic).unwrap().with_algorithms(scheme, avoidance).unwrap();
        let mut controller = Controller(factory.host(Clock::starting(Instant::now()), PACKET));
        assert_eq!(controller.metrics().send_quantum, Some(64_000), "nothing bounds a batch before the launch");
        let at = |ms| Timestamp::ZERO + Duration::from_millis(ms);
        controller.0.tell(|sender| {
            let bytes = Bytes::new(PACKET.into());
            sender.on_sent(at(0), bytes, 0);
            sender.on_acknowledged(at(100), at(0), bytes, Some(0), Duration::from_millis(333));
            sender.on_acknowledgement_end(at(100), Bytes::ZERO, false);
        });
        controller.metrics()
    }

    #[test]
    fn a_batch_is_what_leaves_in_a_millisecond() {
        // 80 Mbit/s: 10 MB/s, 10,000 bytes in a millisecond. 1 Mbit/s: 125 bytes, so two packets. 8 Gbit/s: 64 KB.
        let told = |rate| (launched(rate).pacing_rate, launched(rate).send_quantum);
        assert_eq!(told(80_000_000), (Some(10_000_000), Some(10_000)));
        assert_eq!(told(1_000_000), (Some(125_000), Some(2400)));
        assert_eq!(told(8_000_000_000), (Some(1_000_000_000), Some(64_000)));
    }

    #[test]
    fn that_the_window_stopped_the_host_is_passed_on() {
        let window = |stopped: bool| {
            let startup = StartupConfig::defaults().swap_remove(0);
            let factory = ControllerFactory::new(startup, AvoidanceConfig::defaults().swap_remove(1)).unwrap();
            let mut controller = Controller(factory.host(Clock::starting(Instant::now()), PACKET));
            let (at, bytes) = (|ms| Timestamp::ZERO + Duration::from_millis(ms), Bytes::new(PACKET.into()));
            controller.0.tell(|sender| {
                // The handshake launches; then 8 packets leave in a window of 10.
                sender.on_sent(at(0), bytes, 0);
                sender.on_acknowledged(at(100), at(0), bytes, Some(0), Duration::from_millis(100));
                sender.on_acknowledgement_end(at(100), Bytes::ZERO, false);
                (1..=8).for_each(|number| sender.on_sent(at(100), bytes, number));
            });
            if stopped {
                controller.on_cwnd_limited();
            }
            controller.0.tell(|sender| {
                for number in 1..=8 {
                    sender.on_acknowledged(at(200), at(100), bytes, Some(number), Duration::from_millis(100));
                }
                sender.on_acknowledgement_end(at(200), Bytes::ZERO, true);
            });
            controller.window()
        };
        assert!(window(true) > window(false), "{} and {}", window(true), window(false));
    }

    #[test]
    fn the_lowest_rate_is_a_kilobit_per_second_and_a_rate_of_zero_is_the_hosts_own() {
        // 125 bytes per second; twice the window of 10 packets in the RTT of 100 ms.
        assert_eq!((launched(1).pacing_rate, launched(0).pacing_rate), (Some(125), Some(240_000)));
    }
}
