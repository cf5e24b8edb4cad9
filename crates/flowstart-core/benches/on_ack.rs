//! What an acknowledgement costs: a packet sent and acknowledged through the controller, for every startup scheme
//! beside CUBIC, for BBR, and for slow start with every congestion window validation.
//!
//! The target is 100 ns. A scheme stays in startup: every RTT of simulated time sends and acknowledges a window of 64
//! packets, as a flow does that never finds the end of its path. BBR finds the end, and goes on in its steady state.
//! What the host spends on delivery rate samples for BBR is counted.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic};
use flowstart_core::controller::{AckFrame, Controller, ControllerConfig, WindowValidation};
use flowstart_core::delivery_rate::{DeliveryRate, Snapshot};
use flowstart_core::event::{Ack, Sent};
use flowstart_core::needs::Needs;
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

criterion_group!(benches, on_ack);
criterion_main!(benches);

const SEGMENT: Bytes = Bytes::new(1200);
const WINDOW: u64 = 64;

fn on_ack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("on_ack");
    group.throughput(Throughput::Elements(1));
    let cubic = AvoidanceConfig::Cubic(cubic::Config::default());
    let mut measure = |name: &str, startup, avoidance, validation| {
        let mut host = Host::new(startup, avoidance, validation);
        group.bench_function(name, |bencher| bencher.iter(|| black_box(host.packet())));
    };
    for startup in StartupConfig::defaults() {
        measure(startup.name(), startup, cubic.clone(), WindowValidation::Keep);
    }
    let slow_start = StartupConfig::SlowStart(slow_start::Config::default());
    measure("bbr", slow_start.clone(), AvoidanceConfig::Bbr(bbr::Config::default()), WindowValidation::Keep);
    for (name, validation) in [
        ("slow-start, rfc5681", WindowValidation::Rfc5681),
        ("slow-start, rfc2861", WindowValidation::Rfc2861),
        ("slow-start, rfc7661", WindowValidation::Rfc7661),
    ] {
        measure(name, slow_start.clone(), cubic.clone(), validation);
    }
}

/// A host whose path has room for everything.
struct Host {
    controller: Controller,
    rtt: RttEstimator,
    sent: u64,
    /// Where the controller wants rate samples.
    samples: Option<(DeliveryRate, VecDeque<Snapshot>)>,
}

impl Host {
    fn new(startup: StartupConfig, avoidance: AvoidanceConfig, window_validation: WindowValidation) -> Self {
        let config = ControllerConfig { window_validation, ..ControllerConfig::new(startup, avoidance) };
        let mut controller = Controller::new(config).expect("a default");
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
            advised_rate: None,
            approved_rate: Some(Rate::from_mbit(20)),
            train_rate: None,
            oracle_rate: Some(Rate::from_mbit(20)),
            concurrent: None,
        };
        controller.launch(Timestamp::ZERO, &path, &rtt);
        let samples = controller.needs().contains(Needs::RATE_SAMPLES).then(Default::default);
        Self { controller, rtt, sent: 0, samples }
    }

    /// Sends a packet and acknowledges the one that is a window older; returns cwnd.
    fn packet(&mut self) -> Bytes {
        self.sent += 1;
        let now = Timestamp::ZERO + Duration::from_millis(50) + Duration::from_nanos(self.sent * 50_000_000 / WINDOW);
        let in_flight = SEGMENT * WINDOW;
        self.controller.on_sent(&Sent::new(now, SEGMENT, in_flight, self.sent));
        if let Some((estimator, snapshots)) = &mut self.samples {
            snapshots.push_back(estimator.on_sent(now, SEGMENT, in_flight));
        }
        if let Some(position) = self.sent.checked_sub(WINDOW) {
            let sample = Duration::from_millis(50);
            self.rtt.update(now, sample, Duration::ZERO);
            let rate_sample = self.samples.as_mut().and_then(|(estimator, snapshots)| {
                estimator.on_delivered(now, &snapshots.pop_front()?, position, SEGMENT);
                estimator.take_sample(self.rtt.min())
            });
            let mut ack = Ack::new(now, SEGMENT, 1, position);
            ack.rtt = Some(sample);
            ack.in_flight_before = in_flight;
            ack.in_flight = in_flight.saturating_sub(SEGMENT);
            ack.sample = rate_sample;
            self.controller.on_ack_frame(&AckFrame { delivered: Some(ack), ..AckFrame::default() }, &self.rtt);
        }
        while self.controller.take_decision().is_some() {}
        self.controller.cwnd()
    }
}
