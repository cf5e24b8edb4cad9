//! A host refuses what it cannot give, also to schemes that it does not know.

#![cfg(feature = "quinn")]

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::event::{Ack, DecisionLog};
use flowstart_core::launch::Launch;
use flowstart_core::needs::Needs;
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{Startup, StartupConfig, StartupState, Step, slow_start};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_core::window::{SegmentSize, Window};
use flowstart_quic::Unsupported;
use flowstart_quic::quinn::ControllerFactory;

/// Slow start that asks for what quinn cannot give.
#[derive(Clone, Debug)]
struct PacedByItself;

impl Startup for PacedByItself {
    fn needs(&self) -> Needs {
        Needs::OWN_RATE
    }

    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(Bytes::new(12_000))
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
        Step::Continue { cwnd: window.cwnd + ack.bytes }
    }
}

#[test]
fn a_scheme_of_the_caller_is_refused_for_what_it_says_that_it_needs() {
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    let state = avoidance.build(SegmentSize(Bytes::new(1200)));
    let startup = StartupConfig::SlowStart(slow_start::Config::default());
    let factory = ControllerFactory::new(startup, avoidance).expect("a pair");
    let error = factory.with_algorithms(StartupState::Custom(Box::new(PacedByItself)), state).expect_err("no pacing");
    assert!(matches!(error, Unsupported::Needs { host: "quinn", missing: Needs::OWN_RATE, .. }), "{error}");
}
