//! What an acknowledgement costs: a packet sent and acknowledged through the controller, for every startup scheme.
//!
//! The target is 100 ns. The controller stays in startup: every RTT of simulated time sends and acknowledges a window of
//! 64 packets, as a flow does that never finds the end of its path.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::controller::{Controller, ControllerConfig};
use flowstart_core::event::{Ack, Sent};
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

criterion_group!(benches, on_ack);
criterion_main!(benches);

const SEGMENT: Bytes = Bytes::new(1200);
const WINDOW: u64 = 64;

fn on_ack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("on_ack");
    group.throughput(Throughput::Elements(1));
    for startup in StartupConfig::defaults() {
        let name = startup.name();
        let mut host = Host::new(startup);
        group.bench_function(name, |bencher| bencher.iter(|| black_box(host.packet())));
    }
}

/// A host whose path has room for everything.
struct Host {
    controller: Controller,
    rtt: RttEstimator,
    sent: u64,
}

impl Host {
    fn new(startup: StartupConfig) -> Self {
        let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
        let mut controller = Controller::new(ControllerConfig::new(startup, avoidance));
        let mut rtt = RttEstimator::new(Duration::from_millis(50));
        rtt.update(Timestamp::ZERO, Duration::from_millis(50), Duration::ZERO);
        let path = PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(50)),
            saved: Some(SavedPath {
                rtt: Duration::from_millis(50),
                cwnd: Bytes::new(200_000),
                age: Duration::from_millis(60_000),
            }),
            receive_window: Some(Bytes::new(1_000_000)),
            bytes_waiting: Some(Bytes::new(500_000)),
            hint: Some(Hint { bandwidth: Rate::from_mbit(20), technology: AccessTechnology::Dsl }),
            requested_rate: Some(Rate::from_mbit(20)),
            interface_rate: Some(Rate::from_mbit(1000)),
            oracle_rate: Some(Rate::from_mbit(20)),
        };
        controller.launch(Timestamp::ZERO, &path, &rtt);
        Self { controller, rtt, sent: 0 }
    }

    /// Sends a packet and acknowledges the one that is a window older; returns cwnd.
    fn packet(&mut self) -> Bytes {
        self.sent += 1;
        let now = Timestamp::ZERO + Duration::from_millis(50) + Duration::from_nanos(self.sent * 50_000_000 / WINDOW);
        let in_flight = SEGMENT * WINDOW;
        self.controller.on_sent(&Sent { now, bytes: SEGMENT, in_flight, position: self.sent, app_limited: false });
        if let Some(position) = self.sent.checked_sub(WINDOW) {
            let sample = Duration::from_millis(50);
            self.rtt.update(now, sample, Duration::ZERO);
            let ack = Ack {
                now,
                bytes: SEGMENT,
                packets: 1,
                position,
                rtt: Some(sample),
                in_flight_before: in_flight,
                in_flight: in_flight.saturating_sub(SEGMENT),
                safe: true,
                app_limited: false,
                sample: None,
            };
            self.controller.on_ack(&ack, &self.rtt);
        }
        while self.controller.take_decision().is_some() {}
        self.controller.cwnd()
    }
}
