//! One run of a cell: its transients one after the other in one world.

use std::sync::Arc;

use flowstart_core::aqm::{OutgoingLink, QueueConfig, QueueLimit, QueueState, taildrop};
use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::controller::{Pacing, ReductionBase};
use flowstart_core::rng::Substream;
use flowstart_core::startup::{Increase, StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::policy::{AckPolicy, Opening};
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use super::disguise::Disguised;
use super::{Condition, Config, Discipline, Metrics, PACKET, Transient, others};
use flowstart_lab::run::oracle::{Oracle, Truth};

/// Payload of a full packet.
pub const PAYLOAD: u32 = 1460;
/// Pacing gain after slow start (Linux).
const AVOIDANCE_GAIN: f64 = 1.2;
/// First data without background, and with it: an estimate of its rate needs time.
const FIRST: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(4_000)];
/// Idle time between two transients, least and most.
const IDLE: [Duration; 2] = [Duration::from_millis(1_500), Duration::from_millis(2_500)];
/// Utilization is measured over this many RTTs after the last flow has left slow start.
const AFTER_EXIT: u64 = 10;
/// Time that a transient may take beyond a thousand RTTs: flows that time out again and again end sometime.
const LIMIT: Duration = Duration::from_millis(120_000);
/// Time that endless flows have to leave slow start, in RTTs beyond [`EXIT_LIMIT`].
const EXIT_RTTS: u64 = 30;
/// See [`EXIT_RTTS`].
const EXIT_LIMIT: Duration = Duration::from_millis(2_000);

/// When an observer of a run is called.
#[derive(Clone, Debug, PartialEq)]
pub enum Moment<'a> {
    /// The world is built and empty; `link` is the bottleneck. A trace can be switched on.
    Built {
        /// The bottleneck.
        link: u32,
    },
    /// A transient is about to begin, with these flows, numbered as in records, and their round-trip times.
    Begins {
        /// The bottleneck.
        link: u32,
        /// Flow numbers.
        flows: std::ops::Range<u32>,
        /// Round-trip propagation delays.
        rtts: &'a [Duration],
    },
    /// A transient is over.
    Ended {
        /// The bottleneck, whose discipline may tell what it has estimated.
        link: u32,
        /// Flow numbers.
        flows: std::ops::Range<u32>,
        /// Round-trip propagation delays.
        rtts: &'a [Duration],
        /// What it did.
        transient: &'a Transient,
    },
}

/// Runs a cell with this discipline. The same arguments give the same metrics.
pub fn run(config: &Config, discipline: &Discipline, seed: u64) -> Metrics {
    run_observed(config, discipline, seed, |_, _| {})
}

/// As [`run`], and shows the world to `observe` at each [`Moment`]: to compare what a discipline has estimated with the
/// truth.
pub fn run_observed(
    config: &Config,
    discipline: &Discipline,
    seed: u64,
    mut observe: impl FnMut(&Moment<'_>, &mut World),
) -> Metrics {
    let mut bench = Bench::new(config, discipline, seed);
    observe(&Moment::Built { link: bench.link }, &mut bench.world);
    let mut transients = Vec::new();
    for repeat in 0..=config.repeats {
        let finite = repeat < config.repeats;
        let flows = bench.begin(finite);
        let (link, rtts) = (bench.link, bench.rtts.clone());
        observe(&Moment::Begins { link, flows: flows.clone(), rtts: &rtts }, &mut bench.world);
        let transient = bench.finish(flows.clone(), finite);
        observe(&Moment::Ended { link, flows, rtts: &rtts, transient: &transient }, &mut bench.world);
        transients.push(transient);
    }
    Metrics { transients, rtt: config.rtt }
}

/// A link with hosts.
struct Bench<'a> {
    config: &'a Config,
    world: World,
    link: u32,
    profile: Arc<Profile>,
    avoidance: AvoidanceConfig,
    routes: Vec<Route>,
    rtts: Vec<Duration>,
    longest: Duration,
    size: Bytes,
    starts: Substream,
    /// First data of the next transient.
    next: Timestamp,
    /// When the present transient begins.
    start: Timestamp,
    /// Flows with lower numbers are none of a transient's.
    first_flow: u32,
    /// First flow of the next transient, where all were added at the beginning.
    present: u32,
}

impl<'a> Bench<'a> {
    fn new(config: &'a Config, discipline: &Discipline, seed: u64) -> Self {
        let mut world = World::new(seed);
        let limit = QueueLimit { packets: config.buffer, ..QueueLimit::default() };
        let queue = match discipline {
            Discipline::Registered(queue) => queue.clone(),
            Discipline::Oracle | Discipline::OracleThenCoDel | Discipline::Custom(_) => {
                QueueConfig::TailDrop(taildrop::Config::default())
            }
        };
        let forward = LinkConfig { limit, queue: queue.clone(), ..LinkConfig::new(config.rate, Duration::ZERO) };
        let chain = Chain::dumbbell(&mut world, &forward, &others::back(config));
        let link = chain.forward_link(0);
        world.network.watch(link);
        let rtts = config.rtts(seed);
        let first_flow = others::add(&mut world, &chain, config, &profile(config));
        let disguise = others::disguise(config, first_flow);
        let hide = |queue: QueueState| match disguise {
            Some(disguise) => QueueState::Custom(Box::new(Disguised::new(queue, disguise))),
            None => queue,
        };
        match discipline {
            Discipline::Registered(_) if disguise.is_none() => {}
            Discipline::Registered(_) => {
                let outgoing = OutgoingLink { limit, rate: Some(config.rate) };
                world.network.set_queue(link, hide(queue.build(outgoing)));
            }
            Discipline::Oracle | Discipline::OracleThenCoDel => {
                let oracle = Oracle::new(truth(config, first_flow, &rtts));
                let codel = matches!(discipline, Discipline::OracleThenCoDel);
                let oracle = if codel { oracle.then_codel() } else { oracle };
                world.network.set_queue(link, QueueState::Custom(Box::new(oracle)));
            }
            Discipline::Custom(queue) => world.network.set_queue(link, hide(queue.clone())),
        }
        let connect = |world: &mut World, rtt: Duration| {
            let access = Access { rate: config.access_rate, delay: rtt.scale(0.25), jitter: None };
            chain.connect(world, access, access)
        };
        let routes = rtts.iter().map(|rtt| connect(&mut world, *rtt)).collect();
        let longest = rtts.iter().copied().max().unwrap_or(config.rtt);
        let packets = libm::ceil(config.transfer() / f64::from(config.flows.max(1)) / f64::from(PAYLOAD));
        let size = config.size.unwrap_or(Bytes::new(packets as u64 * u64::from(PAYLOAD)));
        let cubic = cubic::Config { beta: config.reduction, ..cubic::Config::default() };
        let mut bench = Self {
            config,
            world,
            link,
            profile: Arc::new(profile(config)),
            avoidance: AvoidanceConfig::Cubic(cubic),
            routes,
            rtts,
            longest,
            size,
            starts: Substream::new(seed, "transient starts", 0),
            next: Timestamp::ZERO + FIRST[usize::from(first_flow > 0)],
            start: Timestamp::ZERO,
            first_flow,
            present: first_flow,
        };
        if let Condition::Restart(_) = config.condition {
            for repeat in 0..=config.repeats {
                for place in 0..bench.routes.len() {
                    bench.add_flow(place, repeat < config.repeats, Timestamp::ZERO, Duration::MAX);
                }
            }
        }
        bench
    }

    /// Lets the flows of the next transient shake hands; returns when their first data may leave.
    fn begin(&mut self, finite: bool) -> std::ops::Range<u32> {
        self.start = self.next + self.longest;
        let think_time = match self.config.condition {
            Condition::Thinking { time, .. } => time,
            Condition::Restart(_) => return self.begin_again(),
            _ => Duration::ZERO,
        };
        self.start += think_time;
        let first = self.world.flow_count() as u32;
        for place in 0..self.routes.len() {
            let late = self.config.stagger.scale(self.starts.uniform());
            let start = self.start + late - self.rtts[place] - think_time;
            self.add_flow(place, finite, start, think_time);
        }
        if self.config.condition == Condition::BackgroundStarts {
            let late = self.config.stagger.scale(self.starts.uniform());
            self.world.answer_at(others::BACKGROUND, self.start + late);
        }
        self.wait_for_data();
        first..self.world.flow_count() as u32
    }

    /// All connections of a run were opened before its first transient, and their senders wait for theirs.
    fn begin_again(&mut self) -> std::ops::Range<u32> {
        let flows = self.present..self.present + self.config.flows;
        self.present = flows.end;
        if flows.start > self.first_flow {
            self.start = self.next;
        } else {
            // The handshakes are over when the first data may leave; only then do servers think.
            self.world.run_until(self.start - Duration::from_millis(50));
        }
        for flow in flows.clone() {
            let late = self.config.stagger.scale(self.starts.uniform());
            self.world.answer_at(flow, self.start + late);
        }
        self.wait_for_data();
        flows
    }

    fn add_flow(&mut self, place: usize, finite: bool, start: Timestamp, think_time: Duration) {
        let pattern = if finite { Pattern::Transfer(self.size) } else { Pattern::Bulk };
        let mut flow = FlowConfig::new(Arc::clone(&self.profile), pattern, self.routes[place].clone());
        flow.avoidance = self.avoidance.clone();
        (flow.start, flow.think_time) = (start, think_time);
        self.world.add_flow(flow);
    }

    /// The transient begins.
    fn wait_for_data(&mut self) {
        self.world.run_until(self.start);
        if let Some(monitor) = &mut self.world.network.monitor {
            monitor.restart();
        }
    }

    /// Runs the transient, and lets the link be idle before the next.
    fn finish(&mut self, flows: std::ops::Range<u32>, finite: bool) -> Transient {
        let (start, rtt) = (self.start, self.config.rtt);
        let mut utilization = None;
        if finite {
            let limit = start + LIMIT + rtt * 1000;
            for flow in flows.clone() {
                // A transfer that does not end leaves no completion time.
                let _ = self.world.run_flow(flow, limit);
            }
        } else {
            let limit = start + EXIT_LIMIT + rtt * EXIT_RTTS;
            let left = |flow| move |world: &World| world.record(flow).exit.is_none();
            if flows.clone().all(|flow| self.world.run_while(limit, left(flow)).is_ok()) {
                let (before, span) = (self.departed(), rtt * AFTER_EXIT);
                self.world.run_until(self.world.now() + span);
                let capacity = self.config.rate.amount_in(span).get().max(1);
                utilization = Some((self.departed() - before) as f64 / capacity as f64);
            }
        }
        let transient = self.measure(flows, finite, utilization);
        if self.config.condition == Condition::BackgroundStarts {
            self.world.answer_at(others::BACKGROUND, Timestamp::NEVER);
        }
        let [least, most] = if let Condition::Restart(idle) = self.config.condition { [idle; 2] } else { IDLE };
        self.next = transient.end + least + most.saturating_sub(least).scale(self.starts.uniform());
        transient
    }

    /// Wire bytes that have left the bottleneck.
    fn departed(&self) -> u64 {
        self.world.network.monitor.as_ref().map_or(0, |monitor| monitor.total)
    }

    fn measure(&mut self, flows: std::ops::Range<u32>, finite: bool, utilization: Option<f64>) -> Transient {
        let mut transient = Transient {
            start: self.start,
            end: self.world.now(),
            finite,
            peak: None,
            p99: None,
            exit_load: 0.0,
            exits: 0,
            fct: None,
            dropped: 0,
            marked: 0,
            timeouts: 0,
            utilization,
        };
        let (mut sum, mut complete) = (Duration::ZERO, 0);
        for (flow, rtt) in flows.clone().zip(&self.rtts) {
            let record = self.world.record(flow);
            let reached = record.exit.map_or(record.max_cwnd, |exit| exit.reached);
            transient.exit_load += self.config.load(reached, *rtt);
            transient.exits += u32::from(record.exit.is_some());
            transient.dropped += record.dropped_data;
            transient.timeouts += record.timeouts;
            if let (Some(first), Some(end)) = (record.first_data_sent, record.completed) {
                sum += end.since(first);
                complete += 1;
            }
        }
        if complete > 0 && complete == flows.len() as u64 {
            transient.fct = Some(Duration::from_nanos(sum.as_nanos() / complete));
        }
        if let Some(monitor) = &mut self.world.network.monitor {
            transient.peak = monitor.delays.max();
            transient.p99 = monitor.delays.quantile(0.99);
            transient.marked = flows.map(|flow| monitor.flow(flow).marked).sum();
        }
        transient
    }
}

fn truth(config: &Config, first_flow: u32, rtts: &[Duration]) -> Truth {
    Truth {
        first_flow,
        rtts: rtts.to_vec(),
        // Acknowledgements wait as long as handshakes did, as far as anybody can know.
        measured: config.condition == Condition::Reverse,
        initial_window: config.initial_window,
        growth: if config.delayed_acks && config.condition != Condition::Linux { 1.5 } else { 2.0 },
        available: config.available_rate(),
        full_packet: PACKET,
    }
}

fn profile(config: &Config) -> Profile {
    let every = if config.delayed_acks { 2 } else { 1 };
    let pacing = |startup_gain| Pacing { startup_gain, avoidance_gain: AVOIDANCE_GAIN, burst: 1, ..Pacing::default() };
    let rfc = Profile::tcp_rfc();
    let acknowledged = matches!(config.condition, Condition::Thinking { acknowledged: true, .. });
    let base = match config.condition {
        // Packets and handshakes stay those of the other cells.
        Condition::Linux => Profile {
            overhead: rfc.overhead,
            ack_size: rfc.ack_size,
            opening_size: rfc.opening_size,
            answer_size: rfc.answer_size,
            segment: PAYLOAD,
            // Linux bounds the variation and not their sum: a timeout is at least the RTT and 200 ms.
            granularity: Profile::tcp_linux().min_rto,
            ..Profile::tcp_linux()
        },
        _ => Profile {
            increase: Increase::Acknowledgements,
            reduction_base: ReductionBase::Cwnd,
            ack: AckPolicy { every, ..rfc.ack },
            ..rfc.clone()
        },
    };
    Profile {
        opening: Opening::Sender,
        completion_size: if acknowledged { rfc.ack_size } else { 0 },
        payload: PAYLOAD,
        receive_window: Bytes::new(1 << 30),
        receive_buffer: None,
        initial_window: config.initial_window,
        ecn: config.ecn,
        pacing: config.pacing_gain.map(pacing),
        startup: StartupConfig::SlowStart(slow_start::Config::default()),
        ..base
    }
}
