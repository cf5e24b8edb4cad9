//! What the controller costs in noq: user CPU time of whole transfers in virtual time, beside noq's own CUBIC.
//!
//! `cargo bench -p flowstart-quic`
//!
//! Both ends, the encryption and the small world between them are in it, so the ratio is what a transfer on one machine
//! would see. Pairs are interleaved; the median ratio counts.

#[path = "../tests/world/mod.rs"]
mod world;

use std::sync::Arc;
use std::time::Duration;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::path::PathKnowledge;
use flowstart_core::startup::StartupConfig;
use flowstart_quic::{ControllerFactory, Flow};
use nix::sys::resource::{UsageWho, getrusage};
use noq_proto::congestion;
use world::{Path, transfer_with};

const SIZE: usize = 50_000_000;
const PAIRS: usize = 11;

fn user_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process");
    usage.user_time().tv_sec() as f64 + usage.user_time().tv_usec() as f64 / 1e6
}

/// User CPU time and datagrams of a transfer over 1 Gbit/s and 10 ms without loss.
fn cost(factory: Arc<dyn congestion::ControllerFactory + Send + Sync>) -> (f64, usize) {
    let path = Path { delay: Duration::from_millis(5), rate: 125e6, ..Path::default() };
    let before = user_seconds();
    let outcome = transfer_with(factory, SIZE, path, Duration::from_secs(60));
    assert!(outcome.done.is_some(), "the transfer does not finish");
    (user_seconds() - before, outcome.departures.len())
}

fn main() {
    let startup = StartupConfig::SlowStart(Default::default());
    let factory =
        ControllerFactory::new(startup, AvoidanceConfig::Cubic(Default::default())).expect("a pair that works");
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let (ours, packets) = cost(Arc::new(factory.for_flow(Flow::new(PathKnowledge::default()))));
        let (theirs, their_packets) = cost(Arc::new(congestion::CubicConfig::default()));
        let per_packet = |seconds: f64, packets: usize| seconds * 1e9 / packets as f64;
        let (a, b) = (per_packet(ours, packets), per_packet(theirs, their_packets));
        println!("{a:.0} ns per datagram, noq's CUBIC {b:.0} ns: {:.3}", a / b);
        ratios.push(a / b);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("median ratio {:.3}", ratios[PAIRS / 2]);
}
