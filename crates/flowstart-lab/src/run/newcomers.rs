//! The measured flows of a cell: they join a warm world, which runs until they are complete.

use std::iter;
use std::sync::Arc;

use flowstart_core::rng::mix;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::Chain;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::world::{Stopped, World};

use super::knowledge::sources;
use super::oracle;
use super::outcome::{Failure, FlowOutcome, Known};
use super::place::{connect, equip, place_cheats};
use super::proxy::{add_server, gateway};
use super::warm_up::Warm;
use crate::ends::capture::Capture;
use crate::ends::{self, Hosts};
use crate::spec::application::Objects;
use crate::spec::aqm::Aqm;
use crate::spec::link::Link;
use crate::study::ideal::limit_of;
use crate::study::plan::{Cell, Plan};

/// Longest time of a transfer over its physical limit; the time is at least [`LEAST_LIMIT`].
const LIMIT_FACTOR: u64 = 50;
/// Time that every transfer gets.
const LEAST_LIMIT: Duration = Duration::from_millis(300_000);

/// How long newcomers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until their transfers are complete.
    Complete,
    /// For this long, complete or not.
    After(Duration),
}

/// The traffic of a measured flow.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) start: Timestamp,
    pub(super) size: Bytes,
    /// The cell's link as the flow's hosts see it.
    pub(super) link: Link,
}

impl Transfer {
    /// The parts that this many connections carry. They differ by a byte at most.
    fn parts(&self, connections: u32) -> impl Iterator<Item = Bytes> {
        let (size, count) = (self.size.get(), u64::from(connections.max(1)));
        (0..count).map(move |place| Bytes::new(size / count + u64::from(place < size % count)))
    }

    /// The physical limit, with as many connections as may be.
    pub(super) fn limit(&self, plan: &Plan, cell: &Cell) -> Duration {
        limit_of(plan, cell, &self.link, self.size, self.start)
    }
}

/// A newcomer's world after its transfer.
#[derive(Debug)]
pub struct Finished {
    /// The world.
    pub world: World,
    /// The hosts of the measured flows.
    pub hosts: Box<dyn Hosts>,
    /// The measured flows: the connections of the first transfer, then those of the next.
    pub flows: Vec<u32>,
    /// Connections of each transfer.
    pub connections: u32,
    /// The servers' connections with proxies, if there are any; the measured flows are then the proxies'.
    pub(super) servers: Vec<u32>,
    /// When the first of them started.
    pub start: Timestamp,
    /// The transfers that they carry.
    pub(super) transfers: Vec<Transfer>,
    /// The failure of each of them that did not finish.
    pub(super) failures: Vec<Option<Failure>>,
    /// Wire bytes that had left the bottleneck at the start.
    pub(super) departed_before: u64,
}

impl Finished {
    /// The flows of all connections of the transfers and pages.
    pub fn all_flows(&self) -> Vec<u32> {
        self.flows.iter().flat_map(|flow| self.world.connections_of(*flow)).collect()
    }
}

/// Forks the warm world and runs a cell's newcomers in it.
pub fn newcomers(plan: &Plan, warm: &Warm, cell: &Cell, until: Until) -> Finished {
    newcomers_in(warm.world.clone(), plan, warm, cell, until, None)
}

/// Runs a cell's newcomers in `world`, a fork of the warm one. `capture` records the datagrams of real newcomers.
pub(super) fn newcomers_in(
    mut world: World,
    plan: &Plan,
    warm: &Warm,
    cell: &Cell,
    until: Until,
    capture: Option<Capture>,
) -> Finished {
    let start = world.now();
    let mut departed_before = 0;
    if let Some(monitor) = &mut world.network.monitor {
        monitor.restart();
        departed_before = monitor.total;
    }
    let transfers = transfers(plan, warm, cell, start);
    let application = plan.sizes[cell.size].value.objects();
    let profile = plan.profile(cell);
    let connections = plan.connections_of(cell);
    let rtts: Vec<Duration> =
        transfers.iter().flat_map(|transfer| iter::repeat_n(transfer.link.host_rtt(), connections as usize)).collect();
    if plan.aqms[cell.aqm].value == Aqm::Oracle {
        oracle::tell(plan, cell, &mut world, &profile, rtts.clone());
    }
    let mut hosts =
        ends::hosts(plan.transport_of(cell).stack.as_ref(), &world, plan.links[cell.link].hint_age(), capture);
    let (mut flows, mut behind) = (Vec::new(), Vec::new());
    let least = Bytes::new(u64::from(profile.segment)) * profile.min_window;
    let mut ensemble = None;
    for transfer in &transfers {
        // All measured flows have the same client, unless each draws an RTT of its own.
        if !plan.arrivals[cell.arrival].value.rtts.is_empty() {
            ensemble = None;
        }
        let ensemble = *ensemble.get_or_insert_with(|| world.network.add_ensemble(least));
        // A transfer's connections have the same two hosts.
        let route = connect(&mut world, &warm.chain, &transfer.link);
        place_cheats(&mut world, &transfer.link, &route);
        for size in transfer.parts(connections) {
            let pattern = application.map_or(Pattern::Transfer(size), |application| application.pattern());
            let mut config = FlowConfig::new(Arc::clone(&profile), pattern, route.clone());
            config.startup = plan.schemes[cell.scheme].on(cell.transport).clone();
            config.avoidance = plan.avoidance_of(cell).value;
            config.sources = sources(plan, plan.transport_of(cell), &transfer.link, transfer.start);
            config.train = transfer.link.train_report();
            config.start = transfer.start;
            config.ensemble = Some(ensemble);
            if let Some(proxy) = transfer.link.proxy {
                let ours = gateway(&transfer.link, proxy, &config);
                behind.push(std::mem::replace(&mut config, ours));
            }
            let place = flows.len() as u64;
            flows.push(match application.and_then(|application| application.page()) {
                Some(page) => world.add_page(page, &config),
                None => hosts.add(&mut world, config, size, mix(warm.seed ^ place)),
            });
        }
    }
    // Measured flows have numbers in a row.
    let split = flows.iter().zip(&transfers).zip(behind);
    let servers =
        split.map(|((flow, transfer), config)| add_server(plan, cell, &mut world, &transfer.link, *flow, config));
    let servers = servers.collect();
    if let Some(trace) = &mut world.network.trace {
        let measured: Vec<(u32, Duration)> = flows.iter().copied().zip(rtts).collect();
        trace.measure(&measured);
    }
    let failures = vec![None; flows.len()];
    let mut finished =
        Finished { world, hosts, flows, connections, servers, start, transfers, failures, departed_before };
    if let Until::After(time) = until {
        finished.world.run_until(start + time);
        return finished;
    }
    complete(plan, cell, &mut finished);
    finished
}

/// The longest time for transfers with this physical limit.
pub(super) fn patience(limit: Duration) -> Duration {
    (limit * LIMIT_FACTOR).max(LEAST_LIMIT)
}

/// Runs until every newcomer's transfer is complete or has failed.
pub(super) fn complete(plan: &Plan, cell: &Cell, finished: &mut Finished) {
    let start = finished.start;
    let ideals = finished.transfers.iter().map(|transfer| transfer.limit(plan, cell));
    let ideals = ideals.fold(Duration::ZERO, |sum, ideal| sum + ideal);
    let last_start = finished.transfers.last().map_or(start, |transfer| transfer.start);
    let limit = last_start + patience(ideals);
    relocate(plan, cell, finished, limit);
    // A flow that fails, for example because its real stack gave up, does not stop the others.
    for (&flow, failure) in finished.flows.iter().zip(&mut finished.failures) {
        if let Err(stopped) = finished.world.run_flow(flow, limit) {
            *failure = Some(match stopped {
                Stopped::TimeLimit => Failure::TimeLimit,
                Stopped::Idle => Failure::Stalled,
            });
        }
    }
}

/// Moves the measured flows to the path of the cell's mobility, each at its time.
fn relocate(plan: &Plan, cell: &Cell, finished: &mut Finished, limit: Timestamp) {
    let Some(mobility) = plan.mobility(cell) else { return };
    let link = &mobility.link;
    let hops = vec![link.hop(&plan.aqms[cell.aqm].value.config()); link.hops as usize];
    let chain = Chain::new(&mut finished.world, &hops);
    equip(&mut finished.world, &chain, link, None);
    let times: Vec<_> = finished.transfers.iter().map(|transfer| transfer.start + mobility.at).collect();
    let connections = finished.connections as usize;
    let mut route = None;
    for (place, flow) in finished.flows.clone().into_iter().enumerate() {
        let time = times[place / connections];
        if place % connections == 0 {
            route = None;
        }
        let is_on_its_way = |world: &World| world.record(flow).completed.is_none();
        if time > finished.world.now() && finished.world.run_while(time, is_on_its_way).is_err() {
            finished.world.run_until(time);
        }
        // A flow cannot relaunch before its launch.
        let waits = |world: &World| world.record(flow).first_data_sent.is_none();
        if finished.world.run_while(limit, waits).is_ok() && is_on_its_way(&finished.world) {
            let world = &mut finished.world;
            let route = route.get_or_insert_with(|| connect(world, &chain, link));
            world.change_path(flow, route);
        }
    }
}

/// Starts, payloads and RTTs of a cell's measured flows, the same for every scheme.
fn transfers(plan: &Plan, warm: &Warm, cell: &Cell, start: Timestamp) -> Vec<Transfer> {
    let (count, size, link) = (plan.flow_count(cell), plan.sizes[cell.size].value, &plan.links[cell.link]);
    let arrival = &plan.arrivals[cell.arrival].value;
    let starts = arrival.starts(count, size.mean(), warm.seed);
    let (sizes, rtts) = (size.draw(count, warm.seed), arrival.draw_rtts(count, warm.seed));
    let transfer = |((offset, size), rtt): ((Duration, Bytes), Option<Duration>)| Transfer {
        start: start + offset,
        size,
        link: rtt.map_or_else(|| link.clone(), |rtt| link.for_hosts(rtt)).in_run(warm.seed),
    };
    starts.into_iter().zip(sizes).zip(rtts).map(transfer).collect()
}

/// Reads the outcomes of a cell's newcomers.
pub fn outcomes(plan: &Plan, cell: &Cell, finished: &mut Finished) -> Vec<FlowOutcome> {
    let link = &plan.links[cell.link];
    let (start, departed_before) = (finished.start, finished.departed_before);
    let end = finished.world.now();
    let application = plan.sizes[cell.size].value.objects();
    let video = application.as_ref().and_then(Objects::video);
    let mut outcomes = Vec::new();
    let flows = finished.flows.chunks(finished.connections as usize);
    let failures = finished.failures.chunks(finished.connections as usize);
    for (place, ((flows, failures), transfer)) in flows.zip(failures).zip(&finished.transfers).enumerate() {
        let record = match flows {
            [flow] => finished.world.joint_record(*flow),
            flows => FlowRecord::of_transfer(flows.iter().map(|flow| finished.world.record(*flow))),
        };
        let failure = failures.iter().copied().find(Option::is_some).flatten();
        let connections: Vec<u32> = flows.iter().flat_map(|flow| finished.world.connections_of(*flow)).collect();
        let monitor = finished.world.network.monitor.as_mut();
        let (mut share, mut max, mut p99, mut utilization) = (None, None, None, None);
        if let Some(monitor) = monitor {
            share = monitor.joint(&connections).share();
            max = monitor.delays.max();
            p99 = monitor.delays.quantile(0.99);
            let capacity = link.rate.amount_in(end.since(start)).get();
            // The monitor sees only the first path.
            let stays = plan.mobility(cell).is_none();
            utilization = (capacity > 0 && stays).then(|| (monitor.total - departed_before) as f64 / capacity as f64);
        }
        outcomes.push(FlowOutcome {
            flow: place as u64,
            start: transfer.start,
            // How much a video has is known afterwards.
            size: video.map_or(transfer.size, |_| Bytes::new(record.delivered)),
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
            call: None,
            host: None,
            connections: connections.len() as u32,
            known: Known::ALL,
            record,
        });
    }
    outcomes
}
