//! What every entry of the registries must keep, whatever happens to it.

mod configurations;
mod host;
mod operations;

use std::fmt::Debug;

use configurations::{Configuration, Random, Space, Spaces, spaces};
use flowstart_core::aqm::{EcnCodepoint, QueueConfig, QueueContext, QueueLimit, QueuedPacket};
use flowstart_core::avoidance::{AvoidanceConfig, bbr};
use flowstart_core::controller::{Controller, ControllerConfig};
use flowstart_core::event::{Ack, DecisionLog, ExitReason, Loss};
use flowstart_core::launch::{Continuation, Launch};
use flowstart_core::needs::Needs;
use flowstart_core::path::{Hint, PathKnowledge, SavedPath};
use flowstart_core::rng::{Substream, mix};
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{CustomStartup, Startup, StartupConfig, Step};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::variable::{Owner, Unit, Variable};
use flowstart_core::window::Window;
use host::{Host, Operation, POLICIES, SEGMENT, known};
use operations::operation;
use proptest::prelude::*;

/// Every congestion avoidance with its defaults, and the versions beside them.
fn every_avoidance() -> impl Iterator<Item = AvoidanceConfig> {
    let version_1 = bbr::Config { version: bbr::Version::One, ..bbr::Config::default() };
    AvoidanceConfig::defaults().into_iter().chain([AvoidanceConfig::Bbr(version_1)])
}

/// Every pair of entries that makes sense, with the defaults and each of the policies.
fn every_default() -> Vec<Host> {
    let mut hosts = Vec::new();
    for startup in StartupConfig::defaults() {
        for avoidance in every_avoidance() {
            for policies in POLICIES {
                hosts.extend(Host::new(host::config(startup.clone(), avoidance.clone(), policies), known()));
            }
        }
    }
    hosts
}

/// What is known of a path, at random, with what nobody should say among it.
fn some_path(random: &mut Random) -> PathKnowledge {
    let mut path = known();
    let rates = [0, 1, 1000, 64_000, 20_000_000, 1_000_000_000, 1_000_000_000_000].map(Rate::from_bits_per_sec);
    let times = [0, 1, 1000, 1_000_000, 50_000_000, 3_000_000_000].map(Duration::from_nanos);
    let sizes = [0, 1, 1200, 100_000, 1_000_000_000].map(Bytes::new);
    if random.below(4) > 0 {
        path.handshake_rtt = Some(*random.pick(&times)).filter(|_| random.below(4) > 0);
        path.saved = (random.below(3) > 0).then(|| SavedPath {
            rtt: *random.pick(&times),
            cwnd: *random.pick(&sizes),
            age: *random.pick(&times),
        });
        path.receive_window = Some(*random.pick(&sizes)).filter(|_| random.below(2) > 0);
        path.bytes_waiting = Some(*random.pick(&sizes)).filter(|_| random.below(2) > 0);
        path.hint =
            path.hint.map(|hint| Hint { bandwidth: *random.pick(&rates), ..hint }).filter(|_| random.below(4) > 0);
        for rate in [
            &mut path.requested_rate,
            &mut path.interface_rate,
            &mut path.approved_rate,
            &mut path.advised_rate,
            &mut path.oracle_rate,
            &mut path.train_rate,
        ] {
            *rate = Some(*random.pick(&rates)).filter(|_| random.below(3) > 0);
        }
    }
    path
}

/// A controller for each entry of the registries, all of them drawn at random from what is valid.
fn every_entry_at_random(random: &mut Random) -> Vec<(ControllerConfig, Host)> {
    let Spaces { startup, avoidance, policies, .. } = spaces();
    let mut hosts = Vec::new();
    let mut add = |startup: &Space<StartupConfig>, avoidance: &Space<AvoidanceConfig>, random: &mut Random| {
        let (startup, avoidance) = (startup.draw(random), avoidance.draw(random));
        let mut config = ControllerConfig { startup, avoidance, ..policies.draw(random) };
        if random.below(2) == 0 {
            config = host::config(config.startup, config.avoidance, *random.pick(&POLICIES));
        }
        let host = Host::new(config.clone(), some_path(random));
        assert_eq!(host.is_some(), config.validate().is_ok());
        hosts.extend(host.map(|host| (config, host)));
    };
    for scheme in startup {
        let avoidance = random.pick(avoidance);
        add(scheme, avoidance, random);
    }
    for algorithm in avoidance {
        let scheme = random.pick(startup);
        add(scheme, algorithm, random);
        // Every algorithm takes this one.
        add(&startup[0], algorithm, random);
    }
    hosts
}

/// The keys of `entry` that random configurations never vary.
fn unvaried<T: Configuration>(name: &str, entry: &T) -> Vec<String> {
    let space = Space::of(entry);
    let unvaried = space.keys_that_do_not_vary(100, &mut Random(1));
    unvaried.into_iter().map(|key| format!("{name}:{key}")).collect()
}

#[test]
fn random_configurations_vary_every_key_of_every_entry() {
    let mut missed: Vec<String> = Vec::new();
    missed.extend(StartupConfig::defaults().iter().flat_map(|entry| unvaried(entry.name(), entry)));
    missed.extend(AvoidanceConfig::defaults().iter().flat_map(|entry| unvaried(entry.name(), entry)));
    missed.extend(QueueConfig::defaults().iter().flat_map(|entry| unvaried(entry.name(), entry)));
    let policies = ControllerConfig::new(StartupConfig::defaults().remove(0), AvoidanceConfig::defaults().remove(0));
    missed.extend(unvaried("policies", &policies));
    assert!(missed.is_empty(), "{missed:?}");
    // Keys that the defaults leave out, keys of groups, and those that are flattened into an entry.
    let keys = |name: &str| {
        let startup =
            StartupConfig::defaults().iter().find(|entry| entry.name() == name).map(|entry| Space::of(entry).keys());
        let avoidance = || {
            AvoidanceConfig::defaults().iter().find(|entry| entry.name() == name).map(|entry| Space::of(entry).keys())
        };
        startup.or_else(avoidance).unwrap_or_default()
    };
    assert!(keys("cubic").contains(&"beta_ecn".into()), "{:?}", keys("cubic"));
    assert!(keys("hystart").contains(&"low_window".into()), "{:?}", keys("hystart"));
    assert!(Space::of(&policies).keys().contains(&"pacing.startup_gain".into()));
}

#[test]
fn every_scheme_launches_again_after_idle_time_as_it_launched_at_first() {
    for startup in StartupConfig::defaults() {
        let avoidance = AvoidanceConfig::Reno(Default::default());
        let mut host = Host::new(host::config(startup.clone(), avoidance, POLICIES[0]), known()).expect("a default");
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
        let mut first = Controller::new(config).expect("a default");
        first.launch(host.now, &path, &host.rtt);
        let output = first.output();
        assert_eq!((again.cwnd, again.burst), (output.cwnd, output.burst), "{}", startup.name());
        assert_eq!(again.pacing_rate, output.pacing_rate, "{}", startup.name());
        assert!(host.controller.in_startup() == first.in_startup(), "{}", startup.name());
    }
}

/// Tells of a configuration when a test fails over it.
struct Named<'a, T: Debug>(&'a T);

impl<T: Debug> Drop for Named<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}", self.0);
        }
    }
}

/// A scheme of the caller's that says at random what no scheme should say, but no window of zero where nothing is
/// known, for which it would be refused.
#[derive(Clone, Debug)]
struct Hostile {
    state: u64,
    least: u64,
}

impl Hostile {
    fn pick<T: Copy>(&self, role: u64, of: &[T]) -> T {
        of[(mix(self.state ^ role) % of.len() as u64) as usize]
    }

    fn window(&self, role: u64) -> Bytes {
        Bytes::new(self.pick(role, &[self.least, 1, SEGMENT, 30_000, 1 << 40, u64::MAX]))
    }

    fn rate(&self, role: u64) -> Option<Rate> {
        self.pick(role, &[None, Some(0), Some(1), Some(1_000_000), Some(u64::MAX)]).map(Rate::from_bits_per_sec)
    }

    fn continuation(&self) -> Continuation {
        Continuation { cwnd: self.window(1), ssthresh: self.window(2), reason: ExitReason::Other("at random") }
    }

    fn step(&mut self) -> Step {
        self.state = mix(self.state);
        if self.state.is_multiple_of(50) {
            Step::Exit(self.continuation())
        } else {
            Step::Continue { cwnd: self.window(3) }
        }
    }
}

impl Startup for Hostile {
    fn launch(&mut self, _: Timestamp, path: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        self.least = u64::from(path.hint.is_none());
        self.state = mix(self.state);
        let burst = self.pick(4, &[None, Some(Bytes::ZERO), Some(Bytes::MAX)]);
        let continuation = self.state.is_multiple_of(5).then(|| self.continuation());
        Launch { cwnd: self.window(5), pacing_rate: self.rate(6), burst, continuation }
    }

    fn on_ack(&mut self, _: &Ack, _: Window, _: bool, _: &RttEstimator) -> Step {
        self.step()
    }

    fn on_congestion(&mut self, _: &Loss, _: Window, _: Bytes) -> Step {
        self.step()
    }

    fn on_ack_in_recovery(&mut self, _: &Ack, _: Window, _: &RttEstimator) -> Option<Step> {
        Some(self.step())
    }

    fn on_recovered(&mut self, _: Timestamp, _: Window) -> Step {
        self.step()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate(7)
    }

    fn next_wakeup(&self) -> Timestamp {
        self.pick(8, &[Timestamp::ZERO, Timestamp::NEVER])
    }

    fn on_timer(&mut self, _: Timestamp, _: Window) -> Step {
        self.step()
    }
}

/// A scheme that is due at all times. Its window is zero where something is known.
#[derive(Clone, Debug)]
struct AlwaysDue;

impl Startup for AlwaysDue {
    fn launch(&mut self, _: Timestamp, path: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        Launch::window(Bytes::new(u64::from(path.hint.is_none())))
    }

    fn on_ack(&mut self, _: &Ack, window: Window, _: bool, _: &RttEstimator) -> Step {
        Step::Continue { cwnd: window.cwnd }
    }

    fn next_wakeup(&self) -> Timestamp {
        Timestamp::ZERO
    }
}

fn custom(scheme: impl Startup + 'static) -> StartupConfig {
    StartupConfig::Custom(CustomStartup::new("of-the-caller", Box::new(scheme)).expect("a free name"))
}

#[test]
fn a_window_of_zero_is_a_segment_and_a_scheme_that_is_always_due_waits_a_millisecond() {
    let avoidance = AvoidanceConfig::Reno(Default::default());
    let mut host = Host::new(host::config(custom(AlwaysDue), avoidance, POLICIES[0]), known()).expect("a valid pair");
    assert_eq!(host.controller.cwnd(), Bytes::new(SEGMENT));
    let calls = (0..1000).take_while(|_| {
        let due = host.controller.next_wakeup() <= host.now;
        host.controller.on_timer(host.now, &host.rtt);
        due
    });
    assert_eq!(calls.count(), 1);
    assert_eq!(host.controller.next_wakeup(), host.now + Duration::from_millis(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_a_scheme_of_the_caller_says_its_host_can_send(
        operations in prop::collection::vec(operation(), 0..300),
        seed in any::<u64>(),
    ) {
        for avoidance in every_avoidance() {
            for policies in POLICIES {
                let host = Host::new(host::config(custom(Hostile { state: seed, least: 1 }), avoidance.clone(), policies), known());
                let mut host = host.expect("a scheme with a launch goes with every avoidance");
                operations.iter().for_each(|operation| host.apply(operation));
            }
        }
    }

    #[test]
    fn inner_variables_have_one_unit_each_and_looking_changes_nothing(
        operations in prop::collection::vec(operation(), 0..100),
        seed in any::<u64>(),
    ) {
        for (config, mut host) in every_entry_at_random(&mut Random(seed)) {
            let _named = Named(&config);
            let mut units: Vec<(Owner, &str, Unit)> = Vec::new();
            for operation in &operations {
                host.apply(operation);
                let before = format!("{:?}", host.controller);
                let mut seen: Vec<(Owner, Variable)> = Vec::new();
                host.controller.observe(host.now, &mut |owner, variable| seen.push((owner, variable)));
                prop_assert_eq!(before, format!("{:?}", host.controller));
                for (place, (owner, variable)) in seen.iter().enumerate() {
                    prop_assert!(variable.value.is_finite(), "{:?}", variable);
                    prop_assert!(!seen[..place].iter().any(|(o, v)| (o, v.name) == (owner, variable.name)));
                    match units.iter().find(|(o, name, _)| (o, *name) == (owner, variable.name)) {
                        Some((_, _, unit)) => prop_assert_eq!(*unit, variable.unit),
                        None => units.push((*owner, variable.name, variable.unit)),
                    }
                }
            }
        }
    }

    #[test]
    fn no_controller_panics_stops_sending_or_forgets_its_rate(operations in prop::collection::vec(operation(), 0..300)) {
        for mut host in every_default() {
            for operation in &operations {
                host.apply(operation);
            }
        }
    }

    #[test]
    fn no_valid_configuration_stops_a_controller(
        operations in prop::collection::vec(operation(), 0..300),
        seed in any::<u64>(),
    ) {
        for (config, mut host) in every_entry_at_random(&mut Random(seed)) {
            let _named = Named(&config);
            operations.iter().for_each(|operation| host.apply(operation));
        }
    }

    #[test]
    fn a_copy_of_a_controller_goes_on_as_the_controller_does_on_its_own(
        operations in prop::collection::vec(operation(), 0..200),
        seed in any::<u64>(),
    ) {
        // The copy is taken in the middle and meets other events than the controller first: what they share would show.
        for (config, mut host) in every_entry_at_random(&mut Random(seed)) {
            let _named = Named(&config);
            let half = operations.len() / 2;
            operations[..half].iter().for_each(|operation| host.apply(operation));
            let (mut copy, mut again) = (host.clone(), host.clone());
            operations[..half].iter().for_each(|operation| host.apply(operation));
            operations[half..].iter().for_each(|operation| copy.apply(operation));
            operations[half..].iter().for_each(|operation| again.apply(operation));
            prop_assert_eq!(copy.controller.output(), again.controller.output());
            prop_assert_eq!(format!("{:?}", copy.controller), format!("{:?}", again.controller));
        }
    }

    #[test]
    fn queues_lose_nothing_unaccounted(
        sizes in prop::collection::vec((40..1500u32, any::<bool>()), 1..300),
        packets in 1..50u64,
        seed in any::<u64>(),
    ) {
        let limit = QueueLimit { packets: Some(packets), ..QueueLimit::default() };
        let mut random = Random(seed);
        let drawn = spaces().queue.iter().map(|entry| entry.draw(&mut random));
        for config in QueueConfig::defaults().into_iter().chain(drawn) {
            let _named = Named(&config);
            // CAKE replaces the buffer of the link; the tests beside it check its own memory.
            let is_bounded_by_itself = matches!(config, QueueConfig::Cake(_));
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
                prop_assert!(is_bounded_by_itself || queue.as_dyn().len() as u64 <= packets);
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
fn schemes_that_need_an_approval_say_what_to_ask_for() {
    for scheme in StartupConfig::defaults() {
        assert_eq!(scheme.needs().contains(Needs::APPROVAL), scheme.request().is_some(), "{}", scheme.name());
    }
}

#[test]
fn an_unknown_field_is_refused_with_the_known_ones() {
    let error = toml::from_str::<StartupConfig>("kind = \"slow-start\"\niws = 3").expect_err("no such field");
    assert!(error.message().contains("iw"), "{error}");
}
