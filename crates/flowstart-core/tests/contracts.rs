//! What every entry of the registries must keep, whatever happens to it.

mod host;

use flowstart_core::aqm::{EcnCodepoint, QueueConfig, QueueContext, QueueLimit, QueuedPacket};
use flowstart_core::avoidance::{AvoidanceConfig, bbr};
use flowstart_core::controller::{Controller, ControllerConfig};
use flowstart_core::path::SavedPath;
use flowstart_core::rng::Substream;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use host::{Host, Operation, POLICIES, SEGMENT, known};
use proptest::prelude::*;

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
        Just(Operation::CongestPersistently),
        Just(Operation::FindSpurious),
        (1200..9000u16).prop_map(Operation::ChangeSegment),
        Just(Operation::Timer),
        (0..400_000u32).prop_map(|ms| Operation::Idle { ms }),
        Just(Operation::Limited),
        Just(Operation::ChangePath),
        prop::option::of(0..1_000_000u32).prop_map(Operation::Advice),
    ]
}

/// Every congestion avoidance with its defaults, and the versions beside them.
fn every_avoidance() -> impl Iterator<Item = AvoidanceConfig> {
    let version_1 = bbr::Config { version: bbr::Version::One, ..bbr::Config::default() };
    AvoidanceConfig::defaults().into_iter().chain([AvoidanceConfig::Bbr(version_1)])
}

fn every_controller() -> Vec<Host> {
    let mut hosts = Vec::new();
    for startup in StartupConfig::defaults() {
        for avoidance in every_avoidance() {
            for policies in POLICIES {
                hosts.push(Host::new(startup.clone(), avoidance.clone(), policies, known()));
            }
        }
    }
    hosts
}

#[test]
fn every_scheme_launches_again_after_idle_time_as_it_launched_at_first() {
    for startup in StartupConfig::defaults() {
        let avoidance = AvoidanceConfig::Reno(Default::default());
        let mut host = Host::new(startup.clone(), avoidance, POLICIES[0], known());
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
            let mut queue = config.build(limit.into());
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
    for config in every_avoidance() {
        let text = toml::to_string(&config).expect("a configuration is TOML");
        assert_eq!(toml::from_str::<AvoidanceConfig>(&text).expect("what was written can be read"), config);
    }
}

#[test]
fn an_unknown_field_is_refused_with_the_known_ones() {
    let error = toml::from_str::<StartupConfig>("kind = \"slow-start\"\niws = 3").expect_err("no such field");
    assert!(error.message().contains("iw"), "{error}");
}
