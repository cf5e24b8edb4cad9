//! One repetition: the competitor's warm-up, a fork for every newcomer, and one world into which nobody comes.

pub mod media;
pub mod oracle;
pub mod quality;
pub mod web;

use std::sync::Arc;

use flowstart_core::aqm::QueueState;
use flowstart_core::path::{Hint, PathKnowledge, SavedPath};
use flowstart_core::rng::{Substream, mix};
use flowstart_core::startup::{Increase, StartupConfig};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::observe::trace::Trace;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::arrivals::Arrivals;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::{FlowConfig, Stopped, World};

use self::media::MediaOutcome;
use self::web::WebOutcome;
use crate::ends::quic::QuicFlows;
use crate::run::oracle::{Oracle, Truth};
use crate::spec::aqm::Aqm;
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::study::ideal::{ideal_application_fct, ideal_fct, ideal_moved_fct};
use crate::study::plan::{Cell, Plan, Setting};
use crate::trace::explain::explanation;
use crate::trace::export::Exporter;
use crate::trace::observe::{Seen, SeenSeries, Shown, Wanted, Watched, Watcher};

/// Epochs of the competitor (from one reduction of its window to the next) that pass before a newcomer may start.
const WARM_UP_EPOCHS: u64 = 3;
/// Fewest RTTs between two reductions that are an epoch and not one long episode of loss.
const LEAST_EPOCH_RTTS: u64 = 10;
/// Longest warm-up: a competitor that never loses is established by then.
const WARM_UP_LIMIT: Duration = Duration::from_millis(180_000);
/// Warm-up of a competitor that has no epochs.
const WARM_UP_PLAIN: Duration = Duration::from_millis(5_000);
/// Age of what an earlier connection saved about the path.
const SAVED_AGE: Duration = Duration::from_millis(60_000);
/// How long after the newcomers' end the harm to others is still counted.
const AFTERMATH: Duration = Duration::from_millis(5_000);
/// How long before the newcomers a trace begins.
const TRACE_LEAD: Duration = Duration::from_millis(1_200);
/// Simulated time that a transfer may take: this many times its physical limit, and never less than [`LEAST_LIMIT`].
const LIMIT_FACTOR: u64 = 50;
/// Simulated time that every transfer may take.
const LEAST_LIMIT: Duration = Duration::from_millis(300_000);

/// What one measured flow did in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// Place in the order of measured flows; of web sessions the number of the object.
    pub flow: u64,
    /// When it started, from the start of the run.
    pub start: Timestamp,
    /// Its payload.
    pub size: Bytes,
    /// Round-trip propagation delay between its hosts.
    pub rtt: Duration,
    /// Its counts.
    pub record: FlowRecord,
    /// Its part of the wire bytes at the bottleneck while it was active.
    pub share: Option<f64>,
    /// Longest time a packet of anybody waited at the bottleneck.
    pub max_queue_delay: Option<Duration>,
    /// Time that 99 % of the packets did not exceed.
    pub p99_queue_delay: Option<Duration>,
    /// Wire bytes at the bottleneck over its capacity while the flow was active.
    pub utilization: Option<f64>,
    /// The physical limit.
    pub ideal_fct: Duration,
    /// Harm to others, absent without others.
    pub others: Option<Harm>,
    /// Why the run did not finish.
    pub failure: Option<Failure>,
    /// What all connections of the run did, of web sessions.
    pub web: Option<WebOutcome>,
    /// What happened to interactive media beside the newcomers.
    pub media: Option<MediaOutcome>,
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The limit of simulated time passed.
    TimeLimit,
    /// Nothing was left to happen, or a real stack closed the connection, and the transfer was not complete.
    Stalled,
}

/// The difference to the same world without the newcomer, from its start until 5 s after its end: others need time to
/// take back what the newcomer used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// Payload that the others did not get, in Mbit.
    pub goodput_lost_mbit: f64,
    /// Packets that they lost in addition.
    pub dropped_packets: f64,
    /// Time that their packets waited longer on average, in milliseconds.
    pub extra_delay_ms: Option<f64>,
    /// Time that their transfers took longer on average, in milliseconds; absent where they have no end. A transfer that
    /// does not complete counts until the end.
    pub extra_fct_ms: Option<f64>,
}

/// A world after the warm-up, ready for newcomers.
#[derive(Clone, Debug)]
pub struct Warm {
    world: World,
    chain: Chain,
    others: u32,
    /// Whether there are others, of whom none may have come yet.
    has_others: bool,
    /// Whether the others are transfers whose completion times can be compared.
    others_end: bool,
    /// Seed of the repetition.
    seed: u64,
    /// Datagrams of real newcomers are kept.
    captured: bool,
}

/// What the others have got until now.
#[derive(Clone, Copy, Debug, Default)]
struct OthersState {
    delivered: u64,
    dropped: u64,
    waited: u64,
    packets: u64,
    /// Sum of the completion times, and how many there are. Flows without end count until now.
    completion: (Duration, u32),
}

fn access(link: &Link) -> Access {
    Access { rate: link.access_rate, delay: link.access_delay, jitter: link.access_jitter }
}

/// A new pair of hosts at the two ends of the chain. The receiver's link belongs to the last router.
fn connect(world: &mut World, chain: &Chain, link: &Link) -> Route {
    connect_at(world, chain, link, link.access_rate)
}

/// As [`connect`], with a receiver's link of this rate.
fn connect_at(world: &mut World, chain: &Chain, link: &Link, receiver_rate: Rate) -> Route {
    let route = chain.connect(world, access(link), Access { rate: receiver_rate, ..access(link) });
    if let (Some(routers), Some(last)) = (&link.routers, route.forward.last()) {
        world.network.add_router(*last, routers.at(link.hops + routers.upstream.iter().len() as u32), receiver_rate);
    }
    route
}

/// Lets those who cheat for a measured flow stand at its hosts' links.
fn place_cheats(world: &mut World, link: &Link, route: &Route) {
    let Some(routers) = &link.routers else { return };
    if let (Some(steps), Some(first)) = (routers.receiver_steps, route.back.first()) {
        world.network.add_lying_receiver(*first, steps);
    }
    if let (Some(booster), Some(out), Some(back)) = (routers.booster, route.forward.first(), route.back.last()) {
        world.network.add_booster([*out, *back], booster);
    }
}

/// Puts the link's routers and elements at the hops of the chain, of which the first may be an `upstream` one. The element
/// that advises is at the bottleneck.
fn equip(world: &mut World, chain: &Chain, link: &Link, upstream: Option<Rate>) {
    let before = upstream.iter().len();
    for place in 0..before + link.hops as usize {
        let forward = chain.forward_link(place);
        let rate = upstream.filter(|_| place == 0).unwrap_or(link.rate);
        if let Some(routers) = &link.routers {
            world.network.add_router(forward, routers.at(place as u32), routers.bandwidth.unwrap_or(rate));
        }
        if link.xcp {
            world.network.add_xcp_router(forward, Default::default(), rate);
        }
    }
    if let Some(element) = link.advising {
        world.network.add_advising_element(chain.forward_link(before), element);
    }
}

/// Builds the world of a setting and lets its competitor establish itself.
pub fn warm_up(plan: &Plan, setting: Setting, rep: u32) -> Warm {
    prepare(plan, setting, rep, None)
}

/// How long newcomers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until their transfers are complete.
    Complete,
    /// For this long, complete or not.
    After(Duration),
}

/// Makes the trace of a world in which newcomers start at this time.
pub type Tracer<'a> = &'a dyn Fn(&World, Timestamp) -> Trace;

/// Makes traces that keep everything.
const WHOLE: Tracer<'static> = &|_, _| Trace::default();

/// Runs one repetition of a cell again, with a trace that begins a second before the newcomers and a log of everything
/// that leaves the bottleneck.
pub fn replay(plan: &Plan, cell: &Cell, rep: u32) -> Finished {
    let setting = Setting { link: cell.link, aqm: cell.aqm, competitor: cell.competitor };
    let mut warm = prepare(plan, setting, rep, Some(WHOLE));
    log_departures(&mut warm);
    newcomers(plan, &warm, cell, Until::Complete)
}

/// As [`replay`], and keeps the datagrams that senders of real flows see.
pub fn capture(plan: &Plan, cell: &Cell, rep: u32) -> Finished {
    let setting = Setting { link: cell.link, aqm: cell.aqm, competitor: cell.competitor };
    let mut warm = Warm { captured: true, ..prepare(plan, setting, rep, Some(WHOLE)) };
    log_departures(&mut warm);
    newcomers(plan, &warm, cell, Until::Complete)
}

/// Runs one repetition of a cell with a trace that `tracer` makes a second before the newcomers. Who observes them
/// moves to their world, for not everybody can be cloned. With `captured`, it is also told the datagrams that senders
/// of real flows see, if it writes packet captures.
pub fn told(plan: &Plan, cell: &Cell, rep: u32, captured: bool, tracer: Tracer<'_>) -> Finished {
    let setting = Setting { link: cell.link, aqm: cell.aqm, competitor: cell.competitor };
    let mut warm = Warm { captured, ..prepare(plan, setting, rep, Some(tracer)) };
    let trace = warm.world.network.trace.take();
    let mut world = warm.world.clone();
    world.network.trace = trace;
    newcomers_in(world, plan, &warm, cell, Until::Complete)
}

/// Runs one repetition of a cell with a log of everything that leaves the bottleneck, but no trace.
pub fn replay_until(plan: &Plan, cell: &Cell, rep: u32, until: Until) -> Finished {
    let setting = Setting { link: cell.link, aqm: cell.aqm, competitor: cell.competitor };
    let mut warm = prepare(plan, setting, rep, None);
    log_departures(&mut warm);
    newcomers(plan, &warm, cell, until)
}

/// Runs one repetition of a cell again and watches it.
pub fn watch(plan: &Plan, cell: &Cell, rep: u32, wanted: Shown) -> (Vec<FlowOutcome>, Seen) {
    let setting = Setting { link: cell.link, aqm: cell.aqm, competitor: cell.competitor };
    let tracer: Tracer<'_> = &|world, start| watcher(plan, setting, wanted.watched, world, start);
    let warm = prepare(plan, setting, rep, Some(tracer).filter(|_| wanted.watched.is_anything()));
    let mut finished = newcomers(plan, &warm, cell, Until::Complete);
    let outcomes = outcomes(plan, cell, &mut finished);
    let mut seen = take_seen(plan, cell, &mut finished, &outcomes);
    if wanted.media_delays {
        let end = finished.world.now();
        // What is under way then arrives later.
        finished.run_until(end + AFTERMATH);
        seen.media_delays = Some(media::delays(&finished.world, warm.others, finished.start, end));
    }
    (outcomes, seen)
}

/// A trace that tells a watcher, which looks at the bottleneck.
fn watcher(plan: &Plan, setting: Setting, watched: Watched, world: &World, start: Timestamp) -> Trace {
    let bottleneck = world.network.monitor.as_ref().map_or(u32::MAX, |monitor| monitor.link);
    Trace::told_to(Watcher::new(watched, bottleneck, &plan.links[setting.link], start))
}

/// Ends the watching of a run whose newcomers have just ended.
fn take_seen(plan: &Plan, cell: &Cell, finished: &mut Finished, outcomes: &[FlowOutcome]) -> Seen {
    let trace = finished.world.network.trace.take();
    match trace.and_then(|trace| trace.into_observer::<Watcher>()) {
        Some(watcher) => seen(plan, cell, finished, outcomes, watcher),
        None => Seen::default(),
    }
}

/// What a watcher has seen of a run.
pub fn seen(plan: &Plan, cell: &Cell, finished: &Finished, outcomes: &[FlowOutcome], watcher: Watcher) -> Seen {
    let observed = watcher.finish();
    let explained = outcomes.iter().zip(&observed.splits);
    Seen {
        explanations: explained.map(|(outcome, split)| explanation(plan, cell, outcome, split.as_ref()?)).collect(),
        series: observed.series.map(|series| SeenSeries {
            series,
            start: finished.start,
            end: finished.world.now(),
            flows: finished.flows.clone(),
        }),
        media_delays: None,
    }
}

fn log_departures(warm: &mut Warm) {
    if let Some(monitor) = &mut warm.world.network.monitor {
        monitor.log = Some(Vec::new());
    }
}

/// Runs on to `time`; a trace begins [`TRACE_LEAD`] before it.
fn approach(world: &mut World, time: Timestamp, tracer: Option<Tracer<'_>>) {
    if let Some(tracer) = tracer {
        world.run_until((time - TRACE_LEAD).max(world.now()));
        world.network.trace = Some(Box::new(tracer(world, time)));
    }
    world.run_until(time);
}

fn prepare(plan: &Plan, setting: Setting, rep: u32, tracer: Option<Tracer<'_>>) -> Warm {
    let link = &plan.links[setting.link];
    let seed = plan.run_seed(rep);
    let mut world = World::new(seed);
    let hop = link.hop(&plan.aqms[setting.aqm].value.config());
    let upstream = link.routers.and_then(|routers| routers.upstream);
    let plain = |rate| (LinkConfig::new(rate, Duration::ZERO), LinkConfig::new(rate, Duration::ZERO));
    let hops: Vec<_> = upstream.map(plain).into_iter().chain(std::iter::repeat_n(hop, link.hops as usize)).collect();
    let chain = Chain::new(&mut world, &hops);
    world.network.watch(chain.forward_link(upstream.iter().len()));
    equip(&mut world, &chain, link, upstream);
    let mut rng = Substream::new(seed, "competitor start", 0);
    let origin = Timestamp::ZERO + place_in_recording(link, plan.phase(rep));
    world.run_until(origin);
    let profile = plan.transport.profile.clone();
    match &plan.competitors[setting.competitor].value {
        Competitor::None => approach(&mut world, origin, tracer),
        Competitor::Bulk { count, startup, avoidance } => {
            for _ in 0..*count {
                let route = connect(&mut world, &chain, link);
                let mut config = FlowConfig::new(profile.clone(), Pattern::Bulk, route);
                config.startup = startup.clone();
                config.avoidance = avoidance.clone();
                config.knowledge = knowledge(plan, link);
                config.start = origin + link.rtt.scale(rng.uniform() * f64::from(*count));
                world.add_flow(config);
            }
            wait_for_epochs(&mut world, plan.phase(rep), tracer);
        }
        Competitor::Pattern { count, pattern } => {
            for _ in 0..*count {
                let route = connect(&mut world, &chain, link);
                let mut config = FlowConfig::new(profile.clone(), pattern.clone(), route);
                config.start = origin + Duration::from_millis(100).scale(rng.uniform());
                world.add_flow(config);
            }
            let start = WARM_UP_PLAIN + Duration::from_millis(1000).scale(rng.uniform());
            approach(&mut world, origin + start, tracer);
        }
        Competitor::Short { count, size, every, startup, avoidance } => {
            approach(&mut world, origin, tracer);
            for place in 0..u64::from(*count) {
                let route = connect(&mut world, &chain, link);
                let mut config = FlowConfig::new(profile.clone(), Pattern::Transfer(*size), route);
                config.startup = startup.clone();
                config.avoidance = avoidance.clone();
                config.knowledge = knowledge(plan, link);
                // Not at the same instant: whoever comes first at a tie would do so in every repetition.
                config.start = origin
                    + match every {
                        Some(gap) => *gap * place + gap.scale(rng.uniform()),
                        None => link.rtt.scale(rng.uniform()),
                    };
                world.add_flow(config);
            }
        }
        Competitor::Web { load, sizes, startup, receiver_rate } => {
            let route = connect_at(&mut world, &chain, link, receiver_rate.unwrap_or(link.access_rate));
            let mut template = FlowConfig::new(profile.clone(), Pattern::Bulk, route);
            template.startup = startup.clone().unwrap_or(template.startup);
            world.add_arrivals(Arrivals::new(*sizes, *load, Timestamp::NEVER, seed, 0), template);
            let start = WARM_UP_PLAIN + Duration::from_millis(1000).scale(rng.uniform());
            approach(&mut world, origin + start, tracer);
        }
        Competitor::Requests(requests) => {
            let route = connect(&mut world, &chain, link);
            let start = origin + Duration::from_millis(100).scale(rng.uniform());
            world.add_requests(*requests, profile.clone(), &route, start);
            let start = WARM_UP_PLAIN + Duration::from_millis(1000).scale(rng.uniform());
            approach(&mut world, origin + start, tracer);
        }
    }
    let others = world.flow_count() as u32;
    let competitor = &plan.competitors[setting.competitor].value;
    let (has_others, others_end) = (*competitor != Competitor::None, competitor.has_transfers());
    Warm { world, chain, others, has_others, others_end, seed, captured: false }
}

/// Where in a recorded trace a repetition begins: at its beginning unless the link says otherwise.
fn place_in_recording(link: &Link, phase: f64) -> Duration {
    let recording = link.trace.as_ref().filter(|_| link.trace_start_varies);
    recording.map_or(Duration::ZERO, |trace| trace.period().scale(phase))
}

/// Runs until the first flow has had its epochs, and on to the place in the next epoch that `phase` names.
fn wait_for_epochs(world: &mut World, phase: f64, tracer: Option<Tracer<'_>>) {
    let limit = world.now() + WARM_UP_LIMIT;
    let mut last_cut = world.now();
    let mut cycle = Duration::ZERO;
    let mut epochs = 0;
    // The first cut ends startup, and a few more may follow it at once: an epoch is a time in which the window grew.
    while epochs <= WARM_UP_EPOCHS {
        let cuts = world.record(0).window_cuts;
        if world.run_while(limit, |world| world.record(0).window_cuts == cuts).is_err() {
            approach(world, limit.max(world.now()), tracer);
            return;
        }
        let rtt = world.window(0).map_or(Duration::ZERO, |(_, _, rtt)| rtt);
        let since = world.now().since(last_cut);
        last_cut = world.now();
        if since > rtt * LEAST_EPOCH_RTTS {
            cycle = since;
            epochs += 1;
        }
    }
    let start = world.now() + cycle.scale(phase);
    approach(world, start, tracer);
}

/// What Sensing knows about a link before the handshake.
fn knowledge(plan: &Plan, link: &Link) -> PathKnowledge {
    let profile = &plan.transport.profile;
    let packet = Bytes::new(u64::from(profile.data_wire_size(profile.payload)));
    // An earlier connection had the idle path for itself: its RTT is propagation and a packet's serialization, and it
    // delivered what the link carries.
    let cached = link.host_rtt() + link.rate.time_for(packet) * u64::from(link.hops);
    PathKnowledge {
        saved: Some(SavedPath { rtt: cached, cwnd: link.rate.amount_in(cached), age: SAVED_AGE }),
        hint: link.hinted().filter(|_| plan.hint).map(|bandwidth| Hint { bandwidth, technology: link.technology }),
        interface_rate: Some(link.access_rate),
        oracle_rate: Some(link.rate),
        ..PathKnowledge::default()
    }
}

/// What a measured flow does.
#[derive(Clone, Debug)]
struct Transfer {
    start: Timestamp,
    size: Bytes,
    /// The cell's link as the flow's hosts see it.
    link: Link,
}

impl Transfer {
    /// The physical limit.
    fn limit(&self, plan: &Plan, cell: &Cell) -> Duration {
        limit_of(plan, cell, &self.link, self.size, self.start)
    }
}

/// A newcomer's world after its transfer.
#[derive(Debug)]
pub struct Finished {
    /// The world.
    pub world: World,
    /// The ends of measured flows that are real QUIC.
    pub quic: Option<QuicFlows>,
    /// The measured flows.
    pub flows: Vec<u32>,
    /// When the first of them started.
    pub start: Timestamp,
    /// What each of them transfers.
    transfers: Vec<Transfer>,
    /// Why each of them did not finish.
    failures: Vec<Option<Failure>>,
    /// Wire bytes that had left the bottleneck at the start.
    departed_before: u64,
}

impl Finished {
    /// Runs everything that happens until `time`.
    fn run_until(&mut self, time: Timestamp) {
        match &mut self.quic {
            Some(quic) => quic.run_until(&mut self.world, time),
            None => self.world.run_until(time),
        }
    }

    /// Runs while `condition` holds, looking after every event; an error when `limit` passes first.
    fn run_while(&mut self, limit: Timestamp, condition: impl Fn(&World) -> bool) -> Result<(), Stopped> {
        match &mut self.quic {
            Some(quic) => quic.run_while(&mut self.world, limit, condition),
            None => self.world.run_while(limit, condition),
        }
    }
}

/// Forks the warm world and runs a cell's newcomers in it.
pub fn newcomers(plan: &Plan, warm: &Warm, cell: &Cell, until: Until) -> Finished {
    newcomers_in(warm.world.clone(), plan, warm, cell, until)
}

/// Runs a cell's newcomers in `world`, a fork of the warm one.
fn newcomers_in(mut world: World, plan: &Plan, warm: &Warm, cell: &Cell, until: Until) -> Finished {
    let start = world.now();
    let mut departed_before = 0;
    if let Some(monitor) = &mut world.network.monitor {
        monitor.restart();
        departed_before = monitor.total;
    }
    let transfers = transfers(plan, warm, cell, start);
    let application = plan.sizes[cell.size].value.application();
    let profile = plan.profile(cell);
    if plan.aqms[cell.aqm].value == Aqm::Oracle {
        tell_oracle(plan, cell, &mut world, &profile, &transfers);
    }
    let mut quic = plan.transport.stack.as_ref().map(|options| QuicFlows::new(&world, options));
    if let Some(quic) = quic.as_mut().filter(|_| warm.captured) {
        quic.start_capture();
    }
    let flows: Vec<u32> = transfers
        .iter()
        .zip(0..)
        .map(|(transfer, place)| {
            let route = connect(&mut world, &warm.chain, &transfer.link);
            place_cheats(&mut world, &transfer.link, &route);
            let pattern = application.map_or(Pattern::Transfer(transfer.size), |application| application.pattern());
            let mut config = FlowConfig::new(Arc::clone(&profile), pattern, route);
            config.startup = plan.schemes[cell.scheme].value.clone();
            config.avoidance = plan.avoidance_of(cell).value.clone();
            config.knowledge = knowledge(plan, &transfer.link);
            config.start = transfer.start;
            match &mut quic {
                Some(quic) => quic.add(&mut world, config, transfer.size, mix(warm.seed ^ place)),
                None => world.add_flow(config),
            }
        })
        .collect();
    if let Some(trace) = &mut world.network.trace {
        let links = transfers.iter().map(|transfer| plan.links[cell.link].for_hosts(transfer.link.host_rtt()));
        if let Some(watcher) = trace.observer_mut::<Watcher>() {
            watcher.follow(&flows, links);
        } else if let Some(exporter) = trace.observer_mut::<Exporter>() {
            exporter.follow(&flows, links);
        }
    }
    let failures = vec![None; flows.len()];
    let mut finished = Finished { world, quic, flows, start, transfers, failures, departed_before };
    if let Until::After(time) = until {
        finished.run_until(start + time);
        return finished;
    }
    complete(plan, cell, &mut finished);
    finished
}

/// Runs until every newcomer's transfer is complete or has failed.
fn complete(plan: &Plan, cell: &Cell, finished: &mut Finished) {
    let start = finished.start;
    let ideals = finished.transfers.iter().map(|transfer| transfer.limit(plan, cell));
    let ideals = ideals.fold(Duration::ZERO, |sum, ideal| sum + ideal);
    let last_start = finished.transfers.last().map_or(start, |transfer| transfer.start);
    let limit = last_start + (ideals * LIMIT_FACTOR).max(LEAST_LIMIT);
    relocate(plan, cell, finished, limit);
    // A flow that fails, whose real stack gave up for example, stops none of the others.
    for (&flow, failure) in finished.flows.iter().zip(&mut finished.failures) {
        let complete = match &mut finished.quic {
            Some(quic) => quic.run_flow(&mut finished.world, flow, limit),
            None => finished.world.run_flow(flow, limit),
        };
        if let Err(stopped) = complete {
            *failure = Some(match stopped {
                Stopped::TimeLimit => Failure::TimeLimit,
                Stopped::Idle => Failure::Stalled,
            });
        }
    }
}

/// Lets the oracle manage the bottleneck's queue, in which nothing waits: nobody else is there.
fn tell_oracle(plan: &Plan, cell: &Cell, world: &mut World, profile: &Profile, transfers: &[Transfer]) {
    let (Some(monitor), StartupConfig::SlowStart(scheme)) = (&world.network.monitor, &plan.schemes[cell.scheme].value)
    else {
        return;
    };
    let every = profile.ack.every.max(1);
    let truth = Truth {
        first_flow: world.flow_count() as u32,
        rtts: transfers.iter().map(|transfer| transfer.link.host_rtt()).collect(),
        measured: false,
        initial_window: scheme.iw.map_or(profile.initial_window, u64::from),
        growth: if profile.increase == Increase::Acknowledgements { 1.0 + 1.0 / f64::from(every) } else { 2.0 },
        available: plan.links[cell.link].rate,
        full_packet: Bytes::new(u64::from(profile.data_wire_size(profile.payload))),
    };
    let link = monitor.link;
    world.network.set_queue(link, QueueState::Custom(Box::new(Oracle::new(truth).then_codel())));
}

/// Lets the measured flows take the path of the cell's mobility, each at its time.
fn relocate(plan: &Plan, cell: &Cell, finished: &mut Finished, limit: Timestamp) {
    let Some(mobility) = plan.mobility(cell) else { return };
    let link = &mobility.link;
    let hops = vec![link.hop(&plan.aqms[cell.aqm].value.config()); link.hops as usize];
    let chain = Chain::new(&mut finished.world, &hops);
    equip(&mut finished.world, &chain, link, None);
    let times: Vec<_> = finished.transfers.iter().map(|transfer| transfer.start + mobility.at).collect();
    for (flow, time) in finished.flows.clone().into_iter().zip(times) {
        let is_on_its_way = |world: &World| world.record(flow).completed.is_none();
        if time > finished.world.now() && finished.run_while(time, is_on_its_way).is_err() {
            finished.run_until(time);
        }
        // Nobody can launch again before the launch.
        let waits = |world: &World| world.record(flow).first_data_sent.is_none();
        if finished.run_while(limit, waits).is_ok() && is_on_its_way(&finished.world) {
            let world = &mut finished.world;
            let route = connect(world, &chain, link);
            match &mut finished.quic {
                Some(quic) => quic.move_client(world, flow, &route),
                None => world.change_path(flow, &route),
            }
        }
    }
}

/// The physical limit of a cell's flow of `size` bytes over `link`.
pub fn limit_of(plan: &Plan, cell: &Cell, link: &Link, size: Bytes, start: Timestamp) -> Duration {
    let profile = &plan.transport.profile;
    match (plan.sizes[cell.size].value.application(), plan.mobility(cell)) {
        (None, None) => ideal_fct(link, profile, size, start),
        (None, Some(mobility)) => ideal_moved_fct(link, profile, size, start, mobility),
        (Some(application), _) => ideal_application_fct(link, profile, application, start),
    }
}

/// Starts, payloads and distances of a cell's measured flows, the same for every scheme.
fn transfers(plan: &Plan, warm: &Warm, cell: &Cell, start: Timestamp) -> Vec<Transfer> {
    let (count, size, link) = (plan.flow_count(cell), plan.sizes[cell.size].value, &plan.links[cell.link]);
    let arrival = &plan.arrivals[cell.arrival].value;
    let starts = arrival.starts(count, size.mean(), warm.seed);
    let (sizes, rtts) = (size.draw(count, warm.seed), arrival.draw_rtts(count, warm.seed));
    let transfer = |((offset, size), rtt): ((Duration, Bytes), Option<Duration>)| Transfer {
        start: start + offset,
        size,
        link: rtt.map_or_else(|| link.clone(), |rtt| link.for_hosts(rtt)),
    };
    starts.into_iter().zip(sizes).zip(rtts).map(transfer).collect()
}

/// Runs every cell of a setting for one repetition.
pub fn repetition(plan: &Plan, setting: Setting, rep: u32) -> Vec<(Cell, Vec<FlowOutcome>)> {
    let results = watched_repetition(plan, setting, rep, &Wanted::default());
    results.into_iter().map(|(cell, outcomes, _)| (cell, outcomes)).collect()
}

/// As [`repetition`], and what is wanted to be seen of each run.
pub fn watched_repetition(
    plan: &Plan,
    setting: Setting,
    rep: u32,
    wanted: &Wanted,
) -> Vec<(Cell, Vec<FlowOutcome>, Seen)> {
    let all = plan.cells_of(setting).iter().fold(Watched::default(), |all, cell| all.or(wanted.of(cell, rep).watched));
    let tracer: Tracer<'_> = &|world, start| watcher(plan, setting, all, world, start);
    let mut warm = prepare(plan, setting, rep, Some(tracer).filter(|_| all.is_anything()));
    let mut results = Vec::new();
    let mut all_seen = Vec::new();
    for cell in plan.cells_of(setting) {
        if let Some(sessions) = plan.sizes[cell.size].value.web() {
            let (mut world, known) = (warm.world.clone(), |link: &Link| knowledge(plan, link));
            world.network.trace = None;
            let outcomes = web::outcomes(plan, &cell, sessions, world, &warm.chain, warm.seed, known);
            results.push((cell, outcomes, Timestamp::ZERO, None));
            all_seen.push(Seen::default());
            continue;
        }
        let (mut world, shown) = (warm.world.clone(), wanted.of(&cell, rep));
        match world.network.trace.as_mut().and_then(|trace| trace.observer_mut::<Watcher>()) {
            Some(watcher) if shown.watched.is_anything() => watcher.keep(shown.watched),
            _ => world.network.trace = None,
        }
        let mut finished = newcomers_in(world, plan, &warm, &cell, Until::Complete);
        let mut outcomes = outcomes(plan, &cell, &mut finished);
        let mut seen = take_seen(plan, &cell, &mut finished, &outcomes);
        let newcomers_end = finished.world.now();
        let end = newcomers_end + AFTERMATH;
        let others = warm.has_others.then(|| {
            finished.run_until(end);
            others_state(&mut finished.world, &finished.flows)
        });
        if let Some(config) = plan.competitors[setting.competitor].value.media() {
            let media = media::outcome(&finished.world, config, warm.others, finished.start, end);
            outcomes.iter_mut().for_each(|outcome| outcome.media = Some(media));
        }
        if shown.media_delays {
            seen.media_delays = Some(media::delays(&finished.world, warm.others, finished.start, newcomers_end));
        }
        results.push((cell, outcomes, end, others));
        all_seen.push(seen);
    }
    warm.world.network.trace = None;
    if warm.has_others {
        compare_with_nobody(&warm, &mut results);
    }
    results.into_iter().zip(all_seen).map(|((cell, outcomes, ..), seen)| (cell, outcomes, seen)).collect()
}

type CellResult = (Cell, Vec<FlowOutcome>, Timestamp, Option<OthersState>);

/// Runs the warm world on without a newcomer, and fills in what each newcomer cost the others.
fn compare_with_nobody(warm: &Warm, results: &mut [CellResult]) {
    let mut world = warm.world.clone();
    let before = others_state(&mut world, &[]);
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|&index| results[index].2);
    for index in order {
        let (_, outcomes, end, with) = &mut results[index];
        world.run_until(*end);
        let without = others_state(&mut world, &[]);
        let Some(with) = with else { continue };
        let harm = Harm {
            goodput_lost_mbit: (without.delivered as f64 - with.delivered as f64) * 8.0 / 1e6,
            dropped_packets: with.dropped as f64 - without.dropped as f64,
            extra_delay_ms: with.mean_wait(&before).zip(without.mean_wait(&before)).map(|(a, b)| a - b),
            extra_fct_ms: with.mean_fct().zip(without.mean_fct()).filter(|_| warm.others_end).map(|(a, b)| a - b),
        };
        outcomes.iter_mut().for_each(|outcome| outcome.others = Some(harm));
    }
}

impl OthersState {
    /// Adds what a flow did until `now`.
    fn add(&mut self, record: &FlowRecord, now: Timestamp) {
        self.delivered += record.delivered;
        self.dropped += record.dropped;
        if let Some(started) = record.started {
            self.completion.0 += record.completed.unwrap_or(now).since(started);
            self.completion.1 += 1;
        }
    }

    /// Mean time that a packet waited since `before`, in milliseconds.
    fn mean_wait(&self, before: &Self) -> Option<f64> {
        let packets = self.packets - before.packets;
        (packets > 0).then(|| (self.waited - before.waited) as f64 / packets as f64 / 1e6)
    }

    /// Mean completion time of the transfers, in milliseconds.
    fn mean_fct(&self) -> Option<f64> {
        let (sum, count) = self.completion;
        (count > 0).then(|| sum.as_millis() / f64::from(count))
    }
}

/// Sums up everybody but the newcomers: flows that are there, and those whose places arrivals have used again. Arrivals do not
/// depend on what happens in the world, so that it has the same others with newcomers and without.
fn others_state(world: &mut World, newcomers: &[u32]) -> OthersState {
    let mut state = OthersState::default();
    let now = world.now();
    for record in world.finished_flows() {
        state.add(record, now);
    }
    let others = (0..world.flow_count() as u32).filter(|flow| !newcomers.contains(flow));
    for flow in others {
        state.add(world.record(flow), now);
        if let Some(monitor) = &mut world.network.monitor {
            // Counts at the link are those of a place, whoever has used it.
            let at_link = monitor.flow(flow);
            state.waited += at_link.waited_nanos;
            state.packets += at_link.packets;
        }
    }
    state
}

/// Reads what a cell's newcomers did.
pub fn outcomes(plan: &Plan, cell: &Cell, finished: &mut Finished) -> Vec<FlowOutcome> {
    let link = &plan.links[cell.link];
    let (start, departed_before) = (finished.start, finished.departed_before);
    let end = finished.world.now();
    let mut outcomes = Vec::new();
    let flows = finished.flows.iter().zip(&finished.transfers).zip(&finished.failures);
    for (place, ((&flow, transfer), failure)) in flows.enumerate() {
        let record = finished.world.record(flow).clone();
        let monitor = finished.world.network.monitor.as_mut();
        let (mut share, mut max, mut p99, mut utilization) = (None, None, None, None);
        if let Some(monitor) = monitor {
            share = monitor.flow(flow).share();
            max = monitor.delays.max();
            p99 = monitor.delays.quantile(0.99);
            let capacity = link.rate.amount_in(end.since(start)).get();
            // The monitor sees the first path only.
            let stays = plan.mobility(cell).is_none();
            utilization = (capacity > 0 && stays).then(|| (monitor.total - departed_before) as f64 / capacity as f64);
        }
        outcomes.push(FlowOutcome {
            flow: place as u64,
            start: transfer.start,
            size: transfer.size,
            rtt: transfer.link.host_rtt(),
            share,
            max_queue_delay: max,
            p99_queue_delay: p99,
            utilization,
            ideal_fct: transfer.limit(plan, cell),
            others: None,
            failure: failure.filter(|_| record.completed.is_none()),
            web: None,
            media: None,
            record,
        });
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use flowstart_core::event::Decision;
    use flowstart_sim::observe::trace::Event;

    use super::*;
    use crate::study::scenario::Scenario;

    /// The launches of a Blitzstart transfer of 5 MB over dsl-fast with this mobility, and its completion time over its limit.
    fn launches(transport: &str, mobility: &str) -> (Vec<(f64, u64)>, f64) {
        let text = format!(
            "link = [\"dsl-fast\"]\nsize = [\"5MB\"]\nscheme = [\"blitzstart\"]\nmove = [\"{mobility}\"]\nreps = 1\n\
             transport = \"{transport}\""
        );
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let cell = plan.cells()[0];
        let mut finished = replay(&plan, &cell, 0);
        let outcome = outcomes(&plan, &cell, &mut finished).remove(0);
        let launched = |entry: &flowstart_sim::observe::trace::Entry| match entry.event {
            Event::Decided(Decision::Launched { cwnd, .. }) => Some((entry.time.as_secs(), cwnd.get())),
            _ => None,
        };
        let trace = finished.world.network.trace.as_ref().unwrap();
        let fct = outcome.record.completed.unwrap().since(outcome.record.started.unwrap());
        (trace.entries.iter().filter_map(launched).collect(), fct.as_secs() / outcome.ideal_fct.as_secs())
    }

    #[test]
    fn a_move_launches_the_scheme_again_without_the_hint() {
        let (stays, _) = launches("model-quic", "none");
        let (moves, over_limit) = launches("model-quic", "lte,at=500ms");
        // With the hint the first window is that of the path: 50 Mbit/s * 50 ms = 312.5 kB. Without one, ten packets.
        assert!(stays.len() == 1 && stays[0].1 > 250_000, "{stays:?}");
        assert_eq!((moves.len(), moves[0], moves[1]), (2, stays[0], (0.5, 12_000)));
        assert!((1.0..2.0).contains(&over_limit), "{over_limit}");
        // Who moves before its first data moves with it, and who is complete does not move.
        assert_eq!(launches("model-quic", "lte,at=0s").0.len(), 2);
        assert_eq!(launches("model-quic", "lte,at=100s").0, stays);
    }

    #[test]
    fn connections_that_come_and_go_lose_only_what_a_newcomer_takes() {
        // Room for everything, and a newcomer of 20 KB, or 0.16 Mbit. Five seconds after it the connections of then are where they
        // would have been, but for the few under way that it had slowed down.
        let text = "link = [\"rate=10mbit,rtt=80ms,buffer=unlimited\"]\nsize = [\"20KB\"]\nscheme = [\"slow-start\"]\n\
                    competitor = [\"web:load=2mbit\"]\nreps = 6";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        for rep in 0..plan.reps {
            let warm = warm_up(&plan, plan.settings()[0], rep);
            let flows = newcomers(&plan, &warm, &plan.cells()[0], Until::Complete).world;
            assert!(!flows.finished_flows().is_empty(), "places are used again, whose counts begin anew");
            let harm = repetition(&plan, plan.settings()[0], rep)[0].1[0].others.unwrap();
            assert!((-0.02..=0.16).contains(&harm.goodput_lost_mbit), "{rep}: {harm:?}");
            assert_eq!(harm.dropped_packets, 0.0, "{rep}");
            assert!(harm.extra_delay_ms.is_some_and(|delay| (-0.1..=1.0).contains(&delay)), "{rep}: {harm:?}");
        }
    }

    #[cfg(feature = "quic")]
    #[test]
    fn a_real_connection_that_gives_up_fails_alone() {
        let text =
            "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nflows = 3\ntransport = \"quic\"\nreps = 1";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let (cell, warm) = (plan.cells()[0], warm_up(&plan, plan.settings()[0], 0));
        let mut finished = newcomers(&plan, &warm, &cell, Until::After(Duration::ZERO));
        finished.quic.as_mut().unwrap().give_up(finished.flows[0]);
        complete(&plan, &cell, &mut finished);
        let outcomes = outcomes(&plan, &cell, &mut finished);
        let failures: Vec<Option<Failure>> = outcomes.iter().map(|outcome| outcome.failure).collect();
        // The first one's stack goes on, and nobody listens.
        assert!(
            failures[1..] == [None, None] && outcomes[1..].iter().all(|one| one.record.completed.is_some()),
            "{failures:?}"
        );
    }

    #[test]
    fn a_real_connection_that_moves_validates_its_path_and_launches_without_the_hint() {
        let (stays, _) = launches("quic", "none");
        let (moves, over_limit) = launches("quic", "lte,at=500ms");
        assert!(stays.len() == 1 && stays[0].1 > 250_000, "{stays:?}");
        assert_eq!((moves.len(), moves[0], moves[1].1), (2, stays[0], 12_000));
        // On the new path of 70 ms the server hears of the new address after half an RTT, validates it for one, and may then
        // send more than three times what it received (RFC 9000, section 9.3); the first data takes another RTT.
        assert!((0.675..0.7).contains(&moves[1].0), "{moves:?}");
        assert!((1.0..2.0).contains(&over_limit), "{over_limit}");
        assert_eq!(launches("quic", "lte,at=0s").0.len(), 2);
        assert_eq!(launches("quic", "lte,at=100s").0, stays);
    }
}
