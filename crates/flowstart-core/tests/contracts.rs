//! What every entry of the registries must keep, whatever happens to it.

use std::collections::VecDeque;

use flowstart_core::aqm::{EcnCodepoint, QueueConfig, QueueContext, QueueLimit, QueuedPacket};
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::{
    Controller, ControllerConfig, GrowthRule, Reduction, ReductionBase, Resume, WindowValidation,
};
use flowstart_core::delivery_rate::{DeliveryRate, Snapshot};
use flowstart_core::event::{Ack, Ecn, Loss, Sent, Timeout};
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};
use flowstart_core::rng::Substream;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use proptest::prelude::*;

const SEGMENT: u64 = 1200;

/// Something that happens to a controller.
#[derive(Clone, Debug)]
enum Operation {
    Wait(u32),
    Send,
    Acknowledge {
        packets: u8,
        rtt_ms: u16,
        app_limited: bool,
    },
    Lose {
        packets: u8,
    },
    Mark,
    TimeOut,
    Timer,
    /// Everything is acknowledged, nothing is sent for a while, and then data waits again.
    Idle {
        ms: u32,
    },
    /// Nothing waits to be sent.
    Limited,
    ChangePath,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        any::<u32>().prop_map(Operation::Wait),
        Just(Operation::Send),
        Just(Operation::Send),
        (1..20u8, 1..2000u16, any::<bool>()).prop_map(|(packets, rtt_ms, app_limited)| Operation::Acknowledge {
            packets,
            rtt_ms,
            app_limited
        }),
        (1..10u8).prop_map(|packets| Operation::Lose { packets }),
        Just(Operation::Mark),
        Just(Operation::TimeOut),
        Just(Operation::Timer),
        (0..400_000u32).prop_map(|ms| Operation::Idle { ms }),
        Just(Operation::Limited),
        Just(Operation::ChangePath),
    ]
}

/// A controller with the bookkeeping of a host.
#[derive(Clone)]
struct Host {
    controller: Controller,
    rtt: RttEstimator,
    now: Timestamp,
    in_flight: u64,
    next: u64,
    acknowledged: u64,
    /// Samples of the delivery rate; packets are acknowledged and lost in the order in which they were sent.
    estimator: DeliveryRate,
    snapshots: VecDeque<Snapshot>,
    samples: bool,
    path: PathKnowledge,
}

impl Host {
    fn new(
        startup: StartupConfig,
        avoidance: AvoidanceConfig,
        reduction: Reduction,
        window_validation: WindowValidation,
    ) -> Self {
        let config = ControllerConfig {
            segment: Bytes::new(SEGMENT),
            reduction,
            reduction_base: ReductionBase::FlightSize,
            growth: GrowthRule::HalfWindow,
            window_validation,
            ..ControllerConfig::new(startup, avoidance)
        };
        let mut host = Self {
            controller: Controller::new(config),
            rtt: RttEstimator::new(Duration::from_millis(333)),
            now: Timestamp::ZERO,
            in_flight: 0,
            next: 1,
            acknowledged: 0,
            estimator: DeliveryRate::default(),
            snapshots: VecDeque::new(),
            samples: reduction != Reduction::PrrSafe,
            path: PathKnowledge::default(),
        };
        host.path = PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(50)),
            saved: Some(SavedPath {
                rtt: Duration::from_millis(40),
                cwnd: Bytes::new(200_000),
                age: Duration::from_millis(60_000),
            }),
            receive_window: Some(Bytes::new(1_000_000)),
            bytes_waiting: Some(Bytes::new(500_000)),
            hint: Some(Hint { bandwidth: Rate::from_mbit(20), technology: AccessTechnology::Lte }),
            requested_rate: Some(Rate::from_mbit(10)),
            interface_rate: Some(Rate::from_mbit(1000)),
            approved_rate: Some(Rate::from_mbit(12)),
            oracle_rate: Some(Rate::from_mbit(15)),
        };
        host.controller.launch(host.now, &host.path, &host.rtt);
        host
    }

    fn be_idle(&mut self, idle: Duration) {
        while self.in_flight > 0 {
            self.apply(&Operation::Acknowledge { packets: 19, rtt_ms: 50, app_limited: true });
        }
        self.now += idle;
        let resume = Resume { now: self.now, idle, timeout: Duration::from_millis(200) };
        self.controller.on_resume(&resume, &self.path, &self.rtt);
    }

    fn apply(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Wait(nanos) => self.now = now + Duration::from_nanos(u64::from(nanos)),
            Operation::Send => {
                // A host obeys the window.
                if self.in_flight + SEGMENT > self.controller.cwnd().get() {
                    return;
                }
                self.in_flight += SEGMENT;
                let in_flight = Bytes::new(self.in_flight);
                self.controller.on_sent(&Sent {
                    now,
                    bytes: Bytes::new(SEGMENT),
                    in_flight,
                    position: self.next,
                    app_limited: self.next.is_multiple_of(7),
                });
                self.snapshots.push_back(self.estimator.on_sent(now, Bytes::new(SEGMENT), in_flight));
                self.next += 1;
            }
            Operation::Acknowledge { packets, rtt_ms, app_limited } => {
                let bytes = (u64::from(packets) * SEGMENT).min(self.in_flight);
                if bytes == 0 {
                    return;
                }
                let before = self.in_flight;
                self.in_flight -= bytes;
                self.acknowledged = (self.acknowledged + bytes / SEGMENT).min(self.next - 1);
                let sample = Duration::from_millis(u64::from(rtt_ms));
                self.rtt.update(now, sample, Duration::ZERO);
                if app_limited {
                    self.estimator.mark_app_limited(Bytes::new(self.in_flight));
                }
                for place in 0..bytes / SEGMENT {
                    if let Some(snapshot) = self.snapshots.pop_front() {
                        self.estimator.on_delivered(now, &snapshot, self.acknowledged + place, Bytes::new(SEGMENT));
                    }
                }
                let ack = Ack {
                    now,
                    bytes: Bytes::new(bytes),
                    packets: bytes / SEGMENT,
                    position: self.acknowledged,
                    rtt: Some(sample),
                    in_flight_before: Bytes::new(before),
                    in_flight: Bytes::new(self.in_flight),
                    safe: true,
                    app_limited,
                    // A host without samples must not hurt either.
                    sample: self.samples.then(|| self.estimator.take_sample(self.rtt.min())).flatten(),
                };
                self.controller.on_ack(&ack, &self.rtt);
            }
            Operation::Lose { packets } => {
                let bytes = (u64::from(packets) * SEGMENT).min(self.in_flight);
                if bytes == 0 {
                    return;
                }
                let before = Bytes::new(self.in_flight);
                self.in_flight -= bytes;
                let in_flight = Bytes::new(self.in_flight);
                let position = self.next - 1;
                for place in 0..bytes / SEGMENT {
                    self.controller.on_retransmission(position.saturating_sub(place), Bytes::new(SEGMENT));
                    if let Some(snapshot) = self.snapshots.pop_front() {
                        let places = (2 * place, 2 * place + 1);
                        let lost = self.estimator.on_lost(now, &snapshot, places, Bytes::new(SEGMENT));
                        self.controller.on_packet_lost(&lost);
                    }
                }
                let loss = Loss { now, bytes: Bytes::new(bytes), position, in_flight_before: before, in_flight };
                self.controller.on_loss(&loss, &self.rtt);
            }
            Operation::Mark => {
                let ecn = Ecn { now, position: self.acknowledged, in_flight: Bytes::new(self.in_flight) };
                self.controller.on_ecn(&ecn, &self.rtt);
            }
            Operation::TimeOut => {
                let in_flight_before = Bytes::new(self.in_flight);
                self.in_flight = 0;
                self.snapshots.clear();
                self.controller.on_timeout(&Timeout { now, in_flight_before }, &self.rtt);
            }
            Operation::Timer => self.controller.on_timer(now, &self.rtt),
            Operation::Idle { ms } => self.be_idle(Duration::from_millis(u64::from(ms))),
            Operation::Limited => {
                let (in_flight, timeout) = (Bytes::new(self.in_flight), Duration::from_millis(200));
                self.controller.on_limited(now, in_flight, timeout, Bytes::new(1_000_000), &self.rtt);
            }
            Operation::ChangePath => {
                self.rtt = RttEstimator::new(Duration::from_millis(333));
                self.controller.on_path_change(now, &self.path.for_new_path(), &self.rtt);
            }
        }
    }
}

fn every_controller() -> Vec<Host> {
    let mut hosts = Vec::new();
    for startup in StartupConfig::defaults() {
        for avoidance in AvoidanceConfig::defaults() {
            for (reduction, validation) in [
                (Reduction::Immediate, WindowValidation::Startup),
                (Reduction::Prr, WindowValidation::Rfc2861),
                (Reduction::PrrPerPacket, WindowValidation::Rfc5681),
                (Reduction::PrrSafe, WindowValidation::Rfc7661),
                (Reduction::PrrSafe, WindowValidation::Keep),
            ] {
                hosts.push(Host::new(startup.clone(), avoidance.clone(), reduction, validation));
            }
        }
    }
    hosts
}

#[test]
fn every_scheme_launches_again_after_idle_time_as_it_launched_at_first() {
    for startup in StartupConfig::defaults() {
        let avoidance = AvoidanceConfig::Reno(Default::default());
        let mut host = Host::new(startup.clone(), avoidance, Reduction::Immediate, WindowValidation::Startup);
        host.apply(&Operation::Send);
        host.apply(&Operation::Lose { packets: 1 });
        host.apply(&Operation::Send);
        host.be_idle(Duration::from_millis(60_000));
        let again = host.controller.output();
        // A new connection that knows the same.
        let mut path = host.path.clone();
        path.handshake_rtt = Some(host.rtt.smoothed());
        path.saved = Some(SavedPath {
            rtt: Duration::from_millis(50),
            cwnd: Bytes::new(SEGMENT),
            age: Duration::from_millis(60_000),
        });
        let config = ControllerConfig {
            segment: Bytes::new(SEGMENT),
            ..ControllerConfig::new(startup.clone(), AvoidanceConfig::Reno(Default::default()))
        };
        let mut first = Controller::new(config);
        first.launch(host.now, &path, &host.rtt);
        let output = first.output();
        assert_eq!((again.cwnd, again.burst), (output.cwnd, output.burst), "{}", startup.name());
        assert_eq!(again.pacing_rate, output.pacing_rate, "{}", startup.name());
        assert!(host.controller.in_startup() == first.in_startup(), "{}", startup.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_controller_panics_stops_sending_or_forgets_its_rate(operations in prop::collection::vec(operation(), 0..300)) {
        for mut host in every_controller() {
            for operation in &operations {
                host.apply(operation);
                let output = host.controller.output();
                prop_assert!(output.cwnd >= Bytes::new(SEGMENT), "{output:?} after {operation:?}");
                prop_assert!(output.burst <= output.cwnd);
                prop_assert!(output.pacing_rate.is_some());
            }
        }
    }

    #[test]
    fn the_same_events_lead_to_the_same_window(operations in prop::collection::vec(operation(), 0..200)) {
        for host in every_controller() {
            let (mut first, mut second) = (host.clone(), host);
            for operation in &operations {
                first.apply(operation);
            }
            for operation in &operations {
                second.apply(operation);
            }
            prop_assert_eq!(first.controller.output(), second.controller.output());
        }
    }

    #[test]
    fn queues_lose_nothing_unaccounted(
        sizes in prop::collection::vec((40..1500u32, any::<bool>()), 1..300),
        packets in 1..50u64,
    ) {
        let limit = QueueLimit { packets: Some(packets), ..QueueLimit::default() };
        for config in QueueConfig::defaults() {
            let mut queue = config.build(limit);
            let mut rng = Substream::new(1, "queue", 0);
            let mut dropped = Vec::new();
            let (mut offered, mut left) = (0, 0);
            for (index, &(size, leaves)) in sizes.iter().enumerate() {
                let now = Timestamp::from_nanos(index as u64 * 1_000_000);
                let mut context = QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped };
                let packet = QueuedPacket { handle: index as u32, size, flow: 0, ecn: EcnCodepoint::Ect0, enqueued_at: now };
                queue.as_dyn().enqueue(packet, &mut context);
                offered += 1;
                if leaves {
                    left += u64::from(queue.as_dyn().dequeue(&mut context).is_some());
                }
                prop_assert!(queue.as_dyn().len() as u64 <= packets);
            }
            prop_assert_eq!(offered, left + dropped.len() as u64 + queue.as_dyn().len() as u64);
        }
    }
}

#[test]
fn every_scheme_describes_itself_and_survives_its_own_configuration() {
    for config in StartupConfig::defaults() {
        assert!(!config.summary().is_empty() && !config.reference().is_empty());
        let text = toml::to_string(&config).expect("a configuration is TOML");
        assert_eq!(toml::from_str::<StartupConfig>(&text).expect("what was written can be read"), config);
    }
    for config in AvoidanceConfig::defaults() {
        let text = toml::to_string(&config).expect("a configuration is TOML");
        assert_eq!(toml::from_str::<AvoidanceConfig>(&text).expect("what was written can be read"), config);
    }
}

#[test]
fn an_unknown_field_is_refused_with_the_known_ones() {
    let error = toml::from_str::<StartupConfig>("kind = \"slow-start\"\niws = 3").expect_err("no such field");
    assert!(error.message().contains("iw"), "{error}");
}
