//! Invariants of every simulation: all packets are accounted for, senders obey their windows, and runs repeat.
//!
//! Each case is a world that its seed determines completely: random links, profiles, schemes and sizes. A failure names
//! the seed; `world(seed)` builds the world again.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::{AvoidanceConfig, Kind};
use flowstart_core::event::Decision;
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};
use flowstart_core::quick_start::rate::RateEncoding;
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config as Router, UtilizationConfig, target};
use flowstart_core::rng::Substream;
use flowstart_core::sources::Sources;
use flowstart_core::startup::StartupConfig;
use flowstart_core::startup::quick_start::{self, Reports};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::capacity_trace::CapacityTrace;
use flowstart_sim::link::transmitter::Capacity;
use flowstart_sim::link::varying_rate::{Variation, VaryingRate};
use flowstart_sim::link::wire::{DelaySteps, Jitter, LossModel, Reordering};
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::packet::{Body, Direction};
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::{Pipe, TailRepair};
use flowstart_sim::transport::profile::{PROFILES, Profile};
use flowstart_sim::world::World;

/// Worlds per test.
const CASES: u64 = 1_000;
/// Simulated time that transfers may take. Paths with heavy loss may need longer, which is not an error.
const LIMIT: Duration = Duration::from_millis(900_000);
/// Simulated time after the transfers until all activity ends: sixty of the longest retransmission timers, because
/// retransmissions may be lost again.
const REST: Duration = Duration::from_millis(3_600_000);

/// Random choices of a scenario.
struct Random(Substream);

impl Random {
    fn chance(&mut self, probability: f64) -> bool {
        self.0.uniform() < probability
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// Between `low` and `high`, every order of magnitude equally likely.
    fn scaled(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.uniform())
    }

    fn millis(&mut self, low: f64, high: f64) -> Duration {
        Duration::from_secs(self.scaled(low, high) / 1e3)
    }

    fn rate(&mut self, low_mbit: f64, high_mbit: f64) -> Rate {
        Rate::from_bits_per_sec((self.scaled(low_mbit, high_mbit) * 1e6) as u64)
    }

    fn capacity(&mut self) -> Capacity {
        let rate = self.rate(0.5, 200.0);
        match self.below(7) {
            0 => Capacity::TokenBucket {
                rate,
                burst: Bytes::new(self.scaled(1.0, 100_000.0) as u64),
                peak: rate.scale(self.scaled(1.0, 20.0)),
            },
            1 => {
                let (mut text, mut time) = (String::new(), 0);
                for _ in 0..1 + self.below(200) {
                    time += self.below(8);
                    writeln!(text, "{time}").expect("a string takes everything");
                }
                writeln!(text, "{}", time + 1).expect("a string takes everything");
                Capacity::Trace(Arc::new(CapacityTrace::parse(&text).expect("its times ascend")))
            }
            2 => {
                let variation = Variation::Steps { spread: self.scaled(0.01, 0.95), every: self.millis(1.0, 5000.0) };
                Capacity::Varying(VaryingRate { mean: rate, variation })
            }
            3 => {
                let variation = Variation::Fading { deviation: self.0.uniform(), memory: self.millis(4.0, 5000.0) };
                Capacity::Varying(VaryingRate { mean: rate, variation })
            }
            _ => Capacity::Rate(rate),
        }
    }

    fn loss(&mut self) -> Option<LossModel> {
        match self.below(4) {
            0 => Some(LossModel::Independent { probability: self.scaled(0.0001, 0.1) }),
            1 => Some(LossModel::GilbertElliott {
                mean_good: self.millis(20.0, 2000.0),
                mean_bad: self.millis(1.0, 100.0),
                probability_bad: self.0.uniform(),
            }),
            _ => None,
        }
    }

    fn link(&mut self) -> LinkConfig {
        let capacity = self.capacity();
        let limit = QueueLimit {
            packets: self.chance(0.5).then(|| 1 + self.scaled(1.0, 500.0) as u64),
            bytes: self.chance(0.3).then(|| Bytes::new(self.scaled(1600.0, 1e6) as u64)),
            counts_in_service: self.chance(0.3),
        };
        let policer =
            self.chance(0.1).then(|| (self.rate(0.5, 50.0), Bytes::new(self.scaled(3000.0, 300_000.0) as u64)));
        let amplitude = self.millis(0.01, 30.0);
        let jitter = self.chance(0.3).then(|| Jitter { amplitude, step: self.millis(0.01, 100.0) });
        let delay_steps = self.chance(0.3).then(|| DelaySteps { amplitude, every: self.millis(1.0, 5000.0) });
        let probability = self.scaled(0.001, 0.3);
        let reordering = self.chance(0.3).then(|| Reordering { probability, delay: self.millis(0.01, 50.0) });
        let aggregation = self.chance(0.2).then(|| self.millis(0.01, 30.0));
        let delay = self.millis(0.001, 200.0);
        LinkConfig {
            aggregation,
            capacity,
            limit,
            policer,
            loss: self.loss(),
            jitter,
            delay_steps,
            reordering,
            ..LinkConfig::new(Rate::ZERO, delay)
        }
    }

    /// A Quick-Start router, most of which take part.
    fn router(&mut self) -> Router {
        use Behaviour::{ApproveAll, Delete, Drop, Hidden, Ignore, Participate, Zero};
        let behaviour = match self.below(4) {
            0 => self.one_of(&[Ignore, Zero, Delete, Drop, ApproveAll, Hidden]),
            _ => Participate,
        };
        let two_pass =
            target::Config { flows: 64, provisional: Some(Duration::from_millis(500)), ..target::Config::default() };
        let algorithm = self.one_of(&[
            Algorithm::Target(Default::default()),
            Algorithm::Target(two_pass),
            Algorithm::Extreme(Default::default()),
        ]);
        let utilization = self.one_of(&[
            UtilizationConfig::PeakUtilization(Default::default()),
            UtilizationConfig::MovingAverage(Default::default()),
        ]);
        let encoding = self.one_of(&[RateEncoding::Exponential, RateEncoding::Linear]);
        Router { algorithm, utilization, behaviour, encoding, ..Router::default() }
    }

    fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize].clone()
    }
}

/// Every scheme, and Quick-Start with all its options that are off by default.
fn startups() -> Vec<StartupConfig> {
    let two_passes = quick_start::Config { passes: 2, reports: Reports::Always, ..quick_start::Config::default() };
    let mut startups = StartupConfig::defaults();
    startups.push(StartupConfig::QuickStart(two_passes));
    startups
}

/// A flow of a scenario.
struct Measured {
    flow: u32,
    size: u64,
    profile: Arc<Profile>,
    integrated: bool,
}

/// A world with its flows.
struct Scenario {
    world: World,
    flows: Vec<Measured>,
    links: u32,
    text: String,
}

fn scenario(seed: u64) -> Scenario {
    let mut random = Random(Substream::new(seed, "conservation", 0));
    let mut world = World::new(seed);
    let hops: Vec<_> = (0..1 + random.below(2)).map(|_| (random.link(), random.link())).collect();
    let chain = Chain::new(&mut world, &hops);
    let mut text = format!("seed {seed}: {hops:?}");
    // Separate random numbers, so that the other events do not depend on them.
    let mut routers = Random(Substream::new(seed, "routers", 0));
    for hop in 0..hops.len() {
        world.network.add_router(chain.forward_link(hop), routers.router(), Rate::from_mbit(10));
    }
    let mut flows = Vec::new();
    let mut links = 2 * hops.len() as u32;
    for _ in 0..1 + random.below(3) {
        let (name, _) = random.one_of(PROFILES);
        let mut profile = Profile::named(name).expect("the profile is in the list");
        profile.ecn = random.chance(0.2);
        if random.chance(0.2) {
            profile.receive_window = Bytes::new(u64::from(profile.payload) * (1 + random.below(40)));
        }
        let profile = Arc::new(profile);
        let mut size = random.scaled(1.0, 600_000.0) as u64;
        let access = Access { rate: Rate::from_mbit(1000), delay: random.millis(0.001, 20.0), jitter: None };
        let route = chain.connect(&mut world, access, access);
        links += 4;
        if let Some(last) = route.forward.last() {
            world.network.add_router(*last, routers.router(), access.rate);
        }
        let mut config = FlowConfig {
            startup: random.one_of(&startups()),
            avoidance: random.one_of(&AvoidanceConfig::defaults()),
            sources: Sources::new(PathKnowledge {
                saved: random.chance(0.5).then(|| SavedPath {
                    rtt: random.millis(1.0, 400.0),
                    cwnd: Bytes::new(random.scaled(1_000.0, 10_000_000.0) as u64),
                    age: random.millis(1.0, 1e6),
                }),
                interface_rate: random.chance(0.5).then(|| random.rate(0.5, 200.0)),
                oracle_rate: random.chance(0.5).then(|| random.rate(0.5, 200.0)),
                requested_rate: random.chance(0.5).then(|| random.rate(0.5, 200.0)),
                hint: random
                    .chance(0.5)
                    .then(|| Hint { bandwidth: random.rate(0.5, 200.0), technology: AccessTechnology::Unknown }),
                ..PathKnowledge::default()
            }),
            start: Timestamp::ZERO + random.millis(0.1, 3000.0),
            ..FlowConfig::new(profile.clone(), Pattern::Transfer(Bytes::new(size)), route)
        };
        if let StartupConfig::QuickStart(startup) = &mut config.startup
            && routers.chance(0.7)
        {
            // Most packets with options are those of data in mid-connection.
            startup.after_idle = Some(Duration::from_millis(1));
            startup.granularity = routers.one_of(&[Duration::ZERO, Duration::from_millis(10)]);
            let (chunk, interval) = (Bytes::new(size.div_ceil(4)), routers.millis(1.0, 3000.0));
            config.pattern = Pattern::Chunks { size: chunk, interval, count: 4 };
            size = chunk.get() * 4;
        }
        // Some pairs make no sense.
        while config.validate().is_err() {
            config.avoidance = random.one_of(&AvoidanceConfig::defaults());
        }
        write!(
            text,
            "\n{name}, {size} bytes, {:?}, {:?}, start {:?}, ecn {}, receive window {:?}",
            config.startup, config.avoidance, config.start, profile.ecn, profile.receive_window
        )
        .expect("a string takes everything");
        let integrated = config.avoidance.kind() == Kind::Integrated;
        flows.push(Measured { flow: world.add_flow(config), size, profile, integrated });
    }
    world.network.watch(0);
    world.network.trace = Some(Box::new(Trace::default()));
    Scenario { world, flows, links, text }
}

impl Scenario {
    fn is_complete(&self) -> bool {
        self.flows.iter().all(|measured| self.world.record(measured.flow).completed.is_some())
    }

    fn trace(&self) -> &Trace {
        self.world.network.trace.as_ref().expect("the world is traced")
    }

    /// Every packet is somewhere, and every link knows where.
    fn check_books(&mut self) {
        let text = self.text.clone();
        let (mut waiting_or_sending, mut dropped_by_links) = (0, 0);
        for id in 0..self.links {
            let link = self.world.network.link(id);
            let held = link.waiting() as u64 + u64::from(link.in_service().is_some());
            let counters = link.counters().clone();
            assert_eq!(counters.arrived, counters.departed + counters.dropped + held, "link {id} of {text}");
            waiting_or_sending += held;
            dropped_by_links += counters.dropped + counters.lost;
        }
        let in_flight = self.world.network.packets_in_flight() as u64;
        assert!(waiting_or_sending <= in_flight, "{text}");
        let (mut sent, mut reached, mut dropped) = (0, 0, 0);
        for measured in &self.flows {
            let (flow, record) = (measured.flow, self.world.record(measured.flow));
            let of_flow = || self.trace().packets.iter().filter(|packet| packet.flow == flow);
            sent += of_flow().filter(|packet| !packet.reached).count() as u64;
            reached += of_flow().filter(|packet| packet.reached).count() as u64;
            dropped += record.dropped;
            let data = |arrived: bool| {
                of_flow().filter(move |p| p.reached == arrived && matches!(p.body, Body::Data { .. })).count() as u64
            };
            let noted = |wanted: fn(&Event) -> bool| {
                self.trace().entries.iter().filter(|entry| entry.flow == flow && wanted(&entry.event)).count() as u64
            };
            assert_eq!(record.data_packets, data(false), "{text}");
            assert_eq!(record.data_packets, noted(|event| matches!(event, Event::Sent { .. })), "{text}");
            assert_eq!(data(true), noted(|event| matches!(event, Event::Received { .. })), "{text}");
            assert_eq!(record.dropped, noted(|event| matches!(event, Event::Dropped { .. })), "{text}");
            assert_eq!(record.declared_lost, noted(|event| matches!(event, Event::DeclaredLost { .. })), "{text}");
            assert!(record.delivered <= measured.size, "{text}");
            assert_eq!(record.completed.is_some(), record.delivered == measured.size, "{text}");
        }
        assert_eq!(sent, reached + dropped + in_flight, "{text}");
        assert_eq!(dropped, dropped_by_links, "{text}");
    }

    /// A host receives only what was sent to it, and what it receives is what left.
    fn check_packets(&self) {
        let packets = &self.trace().packets;
        assert!(packets.is_sorted_by_key(|packet| packet.time), "{}", self.text);
        assert!(packets.is_sorted_by_key(|packet| packet.entries_before), "{}", self.text);
        assert!(self.trace().entries.is_sorted_by_key(|entry| entry.time), "{}", self.text);
        let mut bytes = [0u64; 2];
        for packet in packets {
            bytes[usize::from(packet.reached)] += u64::from(packet.size);
            assert_eq!(packet.is_at_sender(), packet.reached == (packet.direction == Direction::Return));
        }
        assert!(bytes[1] <= bytes[0], "{}", self.text);
    }
}

/// The state for checking a run's windows, event by event.
#[derive(Default)]
struct Watch {
    entries: usize,
    lossy: Vec<bool>,
}

impl Watch {
    /// Checks the effect of the last event.
    fn look(&mut self, world: &World, flows: &[Measured], text: &str) {
        let entries = &world.network.trace.as_ref().expect("the world is traced").entries;
        let fresh = &entries[self.entries..];
        self.entries = entries.len();
        self.lossy.resize(flows.len(), false);
        for (measured, lossy) in flows.iter().zip(&mut self.lossy) {
            let Some((in_flight, cwnd, _)) = world.window(measured.flow) else { continue };
            let profile = &measured.profile;
            assert!(cwnd.get() >= u64::from(profile.segment), "{cwnd} at {:?} in {text}", world.now());
            let (mut sent, mut again, mut probing, mut entering) = (0, false, false, false);
            for entry in fresh.iter().filter(|entry| entry.flow == measured.flow) {
                match entry.event {
                    Event::Sent { retransmission, .. } => {
                        sent += 1;
                        again |= retransmission;
                    }
                    Event::DeclaredLost { .. } | Event::TimerFired => {
                        *lossy = true;
                        probing |= entry.event == Event::TimerFired;
                        // An integrated algorithm enters recovery without a reduction that could be seen.
                        entering |= measured.integrated && entry.event != Event::TimerFired;
                    }
                    Event::Decided(Decision::WindowReduced { .. }) => entering = true,
                    _ => {}
                }
            }
            // A probe, the first retransmission of a recovery, and repairs that a policy sends regardless of the window
            // ignore it; ns-2's sender counts packets in recovery instead of bytes.
            let repair = again && sent == 1 && (entering || profile.tail_repair == TailRepair::PartialAck);
            let counting = *lossy && profile.pipe == Pipe::Classic;
            if sent > 0 && !probing && !repair && !counting {
                let most = cwnd + profile.in_flight_size(profile.payload);
                assert!(in_flight <= most, "{in_flight} in flight, cwnd {cwnd} at {:?} in {text}", world.now());
            }
        }
    }
}

/// Whether a flow has something in flight although an acknowledgement has come since `done`, when everything had
/// arrived. Timers of QUIC double without end (RFC 9002, section 6.2.1), so where acknowledgements are lost again and
/// again the next one may be years away.
fn keeps_in_flight(world: &World, flow: u32, done: Timestamp) -> bool {
    let entries = &world.network.trace.as_ref().expect("the world is traced").entries;
    let acknowledged = |event| matches!(event, Event::Acknowledged { .. });
    world.window(flow).is_some_and(|(in_flight, ..)| in_flight > Bytes::ZERO)
        && entries.iter().any(|entry| entry.flow == flow && entry.time > done && acknowledged(entry.event))
}

#[test]
fn every_packet_and_byte_is_accounted_for() {
    let mut complete = 0;
    for seed in 0..CASES {
        let mut scenario = scenario(seed);
        let limit = Timestamp::ZERO + LIMIT;
        // The accounts also balance in the middle of a transfer.
        let middle = Timestamp::ZERO + Duration::from_millis(3000).scale(Substream::new(seed, "middle", 0).uniform());
        scenario.world.run_until(middle);
        scenario.check_books();
        for index in 0..scenario.flows.len() {
            let _ = scenario.world.run_flow(scenario.flows[index].flow, limit);
        }
        scenario.check_books();
        scenario.check_packets();
        if scenario.is_complete() {
            complete += 1;
            let done = scenario.world.now();
            scenario.world.run_until(done + REST);
            scenario.check_books();
            assert_eq!(scenario.world.network.packets_in_flight(), 0, "{}", scenario.text);
            assert_eq!(scenario.world.network.ranges.in_use(), 0, "{}", scenario.text);
            for measured in &scenario.flows {
                assert!(scenario.world.window(measured.flow).is_some(), "{}", scenario.text);
                assert!(!keeps_in_flight(&scenario.world, measured.flow, done), "{}", scenario.text);
            }
        }
    }
    assert!(complete * 10 >= CASES * 9, "only {complete} of {CASES} worlds completed their transfers");
}

#[test]
fn a_rescue_is_sent_once_and_leaves_nothing_in_flight() {
    let mut wrong = Vec::new();
    for seed in 0..CASES {
        let Scenario { mut world, flows, .. } = scenario(seed);
        for measured in &flows {
            let _ = world.run_flow(measured.flow, Timestamp::ZERO + LIMIT);
        }
        if flows.iter().all(|measured| world.record(measured.flow).completed.is_some()) {
            let done = world.now();
            world.run_until(done + REST);
            let stuck = |measured: &&Measured| keeps_in_flight(&world, measured.flow, done);
            wrong.extend(flows.iter().filter(stuck).map(|measured| (seed, measured.flow)));
        }
    }
    assert!(wrong.is_empty(), "{} flows, by seed and number: {wrong:?}", wrong.len());
}

#[test]
fn windows_are_kept() {
    for seed in 0..CASES {
        let Scenario { mut world, flows, text, .. } = scenario(seed);
        let watch = RefCell::new(Watch::default());
        let _ = world.run_while(Timestamp::ZERO + LIMIT, |world| {
            watch.borrow_mut().look(world, &flows, &text);
            flows.iter().any(|measured| world.record(measured.flow).completed.is_none())
        });
    }
}

/// All observable results of two runs are the same.
fn assert_same(a: &Scenario, b: &Scenario) {
    assert!(a.trace().entries == b.trace().entries, "the events of two runs differ: {}", a.text);
    let packets = |scenario: &Scenario| format!("{:?}", scenario.trace());
    assert!(packets(a) == packets(b), "the packets of two runs differ: {}", a.text);
    for (a_flow, b_flow) in a.flows.iter().zip(&b.flows) {
        assert_eq!(a.world.record(a_flow.flow), b.world.record(b_flow.flow), "{}", a.text);
    }
    assert_eq!(a.world.now(), b.world.now());
}

#[test]
fn runs_repeat_and_forks_continue_as_their_original() {
    let limit = Timestamp::ZERO + Duration::from_millis(20_000);
    for seed in (0..CASES).step_by(5) {
        let mut first = scenario(seed);
        let fork_at = limit.as_nanos() as f64 * Substream::new(seed, "fork", 0).uniform().powi(3);
        first.world.run_until(Timestamp::from_nanos(fork_at as u64));
        let mut fork = Scenario { world: first.world.clone(), ..scenario(seed) };
        first.world.run_until(limit);
        fork.world.run_until(limit);
        assert_same(&first, &fork);
        let mut second = scenario(seed);
        second.world.run_until(limit);
        assert_same(&first, &second);
    }
}
