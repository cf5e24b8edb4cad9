//! A world in which the competitor has established itself, ready for newcomers.

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::trace::Trace;
use flowstart_sim::topology::Chain;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::arrivals::Arrivals;
use flowstart_sim::world::World;

use super::epochs::{self, Epochs, STARTS, WARM_UP_LIMIT};
use super::knowledge::sources;
use super::place::{connect_other, equip, place_in_recording, watched_hop};
use crate::spec::competitor::Competitor;
use crate::study::plan::{Plan, Setting};

/// Warm-up of a competitor that has no epochs.
const WARM_UP_PLAIN: Duration = Duration::from_millis(5_000);
/// How long before the newcomers a trace begins.
const TRACE_LEAD: Duration = Duration::from_millis(1_200);

/// A world after the warm-up, ready for newcomers.
#[derive(Clone, Debug)]
pub struct Warm {
    pub(super) world: World,
    pub(super) chain: Chain,
    pub(super) others: u32,
    /// Whether there are others, even if none has arrived yet.
    pub(super) has_others: bool,
    /// Whether the others are transfers with comparable completion times.
    pub(super) others_end: bool,
    /// Seed of the repetition.
    pub(super) seed: u64,
}

/// Makes the trace of a world in which newcomers start at this time.
pub type Tracer<'a> = &'a dyn Fn(&World, Timestamp) -> Trace;

/// Builds the world of a setting and lets its competitor establish itself.
pub fn warm_up(plan: &Plan, setting: Setting, rep: u32) -> Warm {
    prepare(plan, setting, rep, None)
}

/// Runs on to `time`; a trace begins [`TRACE_LEAD`] before it.
fn approach(world: &mut World, time: Timestamp, tracer: Option<Tracer<'_>>) {
    if let Some(tracer) = tracer {
        world.run_until((time - TRACE_LEAD).max(world.now()));
        world.network.trace = Some(Box::new(tracer(world, time)));
    }
    world.run_until(time);
}

/// Like [`warm_up`]; a trace begins a second before the newcomers.
pub(super) fn prepare(plan: &Plan, setting: Setting, rep: u32, tracer: Option<Tracer<'_>>) -> Warm {
    let link = &plan.links[setting.link];
    let seed = plan.run_seed(rep);
    let mut world = World::new(seed);
    let hop = link.hop(&plan.aqms[setting.aqm].value.config());
    let upstream = link.routers.and_then(|routers| routers.upstream);
    let plain = |rate| (LinkConfig::new(rate, Duration::ZERO), LinkConfig::new(rate, Duration::ZERO));
    let hops: Vec<_> = upstream.map(plain).into_iter().chain(std::iter::repeat_n(hop, link.hops as usize)).collect();
    let chain = Chain::new(&mut world, &hops);
    world.network.watch(chain.forward_link(upstream.iter().len() + watched_hop(link)));
    equip(&mut world, &chain, link, upstream);
    let mut rng = Substream::new(seed, STARTS, 0);
    let origin = Timestamp::ZERO + place_in_recording(link, plan.phase(rep));
    world.run_until(origin);
    let transport = &plan.transports[setting.transport];
    let profile = transport.profile.clone();
    let competitor = plan.competitors[setting.competitor].on(setting.transport);
    match competitor {
        Competitor::None => approach(&mut world, origin, tracer),
        Competitor::Bulk { count, startup, avoidance } => {
            for (place, start) in (0..*count).zip(epochs::starts(link, seed, *count)) {
                let route = connect_other(&mut world, &chain, link, place, link.access_rate);
                let mut config = FlowConfig::new(profile.clone(), Pattern::Bulk, route);
                config.startup = startup.clone();
                config.avoidance = avoidance.clone();
                config.start = origin + start;
                config.sources = sources(plan, transport, link, config.start);
                config.train = link.train_report();
                world.add_flow(config);
            }
            wait_for_epochs(&mut world, plan.phase(rep), tracer);
        }
        Competitor::Pattern { count, pattern } => {
            for place in 0..*count {
                let route = connect_other(&mut world, &chain, link, place, link.access_rate);
                let mut config = FlowConfig::new(profile.clone(), pattern.clone(), route);
                config.start = origin + Duration::from_millis(100).scale(rng.uniform());
                world.add_flow(config);
            }
            let start = WARM_UP_PLAIN + Duration::from_millis(1000).scale(rng.uniform());
            approach(&mut world, origin + start, tracer);
        }
        Competitor::Short { count, size, every, startup, avoidance } => {
            approach(&mut world, origin, tracer);
            for place in 0..*count {
                let route = connect_other(&mut world, &chain, link, place, link.access_rate);
                let mut config = FlowConfig::new(profile.clone(), Pattern::Transfer(*size), route);
                config.startup = startup.clone();
                config.avoidance = avoidance.clone();
                // Not at the same instant: the winner of a tie would be the same in every repetition.
                config.start = origin
                    + match every {
                        Some(gap) => *gap * u64::from(place) + gap.scale(rng.uniform()),
                        None => link.rtt.scale(rng.uniform()),
                    };
                config.sources = sources(plan, transport, link, config.start);
                config.train = link.train_report();
                world.add_flow(config);
            }
        }
        Competitor::Web { load, sizes, startup, receiver_rate } => {
            let route = connect_other(&mut world, &chain, link, 0, receiver_rate.unwrap_or(link.access_rate));
            let mut template = FlowConfig::new(profile.clone(), Pattern::Bulk, route);
            template.startup = startup.clone().unwrap_or(template.startup);
            template.sources = sources(plan, transport, link, origin);
            template.train = link.train_report();
            world.add_arrivals(Arrivals::new(*sizes, *load, Timestamp::NEVER, seed, 0), template);
            let start = WARM_UP_PLAIN + Duration::from_millis(1000).scale(rng.uniform());
            approach(&mut world, origin + start, tracer);
        }
        Competitor::Requests(requests) => {
            let route = connect_other(&mut world, &chain, link, 0, link.access_rate);
            let start = origin + Duration::from_millis(100).scale(rng.uniform());
            world.add_requests(*requests, &route, start);
            let start = WARM_UP_PLAIN + Duration::from_millis(1000).scale(rng.uniform());
            approach(&mut world, origin + start, tracer);
        }
    }
    let others = world.flow_count() as u32;
    let (has_others, others_end) = (*competitor != Competitor::None, competitor.has_transfers());
    Warm { world, chain, others, has_others, others_end, seed }
}

/// Runs until the first flow has completed its epochs, and then to the position `phase` in the next epoch.
fn wait_for_epochs(world: &mut World, phase: f64, tracer: Option<Tracer<'_>>) {
    let limit = world.now() + WARM_UP_LIMIT;
    let mut epochs = Epochs::new(world.now());
    while !epochs.are_enough() {
        let cuts = world.record(0).window_cuts;
        if world.run_while(limit, |world| world.record(0).window_cuts == cuts).is_err() {
            approach(world, limit.max(world.now()), tracer);
            return;
        }
        let rtt = world.window(0).map_or(Duration::ZERO, |(_, _, rtt)| rtt);
        epochs.cut(world.now(), rtt);
    }
    let start = world.now() + epochs.until(phase);
    approach(world, start, tracer);
}
