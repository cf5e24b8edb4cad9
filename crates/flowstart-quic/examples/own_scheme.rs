//! A startup scheme that lives outside the library, in a real QUIC stack: half of the bandwidth that the client hints,
//! and congestion avoidance from the first acknowledgement on.
//!
//! `cargo run -p flowstart-quic --example own_scheme`
use flowstart_core::avoidance::{AvoidanceConfig, AvoidanceState};
use flowstart_core::event::{Ack, DecisionLog, ExitReason};
use flowstart_core::launch::{Continuation, Launch};
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{Startup, StartupConfig, StartupState, Step};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_core::window::{SegmentSize, Window};
use flowstart_quic::ControllerFactory;

#[derive(Clone, Debug)]
struct HalfOfTheHint;

impl Startup for HalfOfTheHint {
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let bdp = path.hint.zip(path.handshake_rtt).map(|(hint, rtt)| hint.bandwidth.amount_in(rtt));
        Launch::window(bdp.map_or(Bytes::new(12_000), |bdp| bdp.scale(0.5)).max(Bytes::new(12_000)))
    }

    fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
        let cwnd = window.cwnd;
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Other("half-of-the-hint") })
    }
}

fn main() -> Result<(), flowstart_quic::Unsupported> {
    let avoidance = AvoidanceConfig::Cubic(Default::default());
    let cubic: AvoidanceState = avoidance.build(SegmentSize(Bytes::new(1200)));
    let factory = ControllerFactory::new(StartupConfig::SlowStart(Default::default()), avoidance)?
        .with_algorithms(StartupState::Custom(Box::new(HalfOfTheHint)), cubic)?;
    noq::TransportConfig::default().congestion_controller_factory(std::sync::Arc::new(factory));
    println!("connections with this configuration start with half of what their client hints");
    Ok(())
}
