//! Worlds of references that are compared packet by packet: flows between hosts of their own at the ends of a chain.

use std::sync::Arc;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

/// A chain of equal hops, and what hosts' links are like.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) chain: Chain,
    pub(crate) host: Access,
}

impl Bench {
    /// So many hops, with room for everything on the way back; hosts have links of this rate without delay.
    pub(crate) fn new(seed: u64, hops: usize, forward: &LinkConfig, access: Rate) -> Self {
        let plain = LinkConfig::new(access, forward.delay);
        Self::between(seed, hops, forward, &LinkConfig { capacity: forward.capacity.clone(), ..plain }, access)
    }

    /// The same with other links back.
    pub(crate) fn between(seed: u64, hops: usize, forward: &LinkConfig, back: &LinkConfig, access: Rate) -> Self {
        let mut world = World::new(seed);
        let chain = Chain::new(&mut world, &vec![(forward.clone(), back.clone()); hops]);
        Self { world, chain, host: Access { rate: access, delay: Duration::ZERO, jitter: None } }
    }

    /// The first hop's link towards the receivers.
    pub(crate) fn link(&self) -> u32 {
        self.chain.forward_link(0)
    }

    /// A flow between two new hosts.
    pub(crate) fn flow(&mut self, profile: &Arc<Profile>, pattern: Pattern) -> FlowConfig {
        let route = self.chain.connect(&mut self.world, self.host, self.host);
        FlowConfig::new(profile.clone(), pattern, route)
    }

    /// Adds a flow that always has data and begins with slow start.
    pub(crate) fn add_bulk(&mut self, profile: &Arc<Profile>, avoidance: AvoidanceConfig, start: Duration) {
        let startup = StartupConfig::SlowStart(Default::default());
        let config = FlowConfig { startup, avoidance, ..self.flow(profile, Pattern::Bulk) };
        self.world.add_flow(FlowConfig { start: Timestamp::ZERO + start, ..config });
    }
}

/// Seconds from the start to the last byte. A transfer that did not end has NaN, which no band contains.
pub(crate) fn completion_s(record: &FlowRecord) -> f64 {
    match (record.started, record.completed) {
        (Some(started), Some(completed)) => completed.since(started).as_secs(),
        _ => f64::NAN,
    }
}

/// A world of two links, and the route over them, without hosts' own.
pub(crate) fn direct(forward: &LinkConfig, back: &LinkConfig) -> (World, Route) {
    let mut world = World::new(1);
    let [forward, back] = [forward, back].map(|link| vec![world.add_link(link)]);
    (world, Route { forward, back })
}
