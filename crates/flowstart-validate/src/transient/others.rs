//! Who else is on the link, and what a queue discipline is shown of flows.

use std::sync::Arc;

use flowstart_core::aqm::{QueueConfig, QueueLimit, taildrop};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::Jitter;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use super::disguise::{Disguise, Names};
use super::{Condition, Config, PACKET};

/// The number of the background where there is one of constant rate.
pub(super) const BACKGROUND: u32 = 0;
/// Packets of the background come this part of their interval late at most.
const BACKGROUND_JITTER: f64 = 0.04;
/// The reverse queue holds a bandwidth-delay product, and at least so many packets.
const LEAST_REVERSE_BUFFER: u64 = 20;
/// Sources of an irregular background begin this much after each other, and without a handshake.
const APART: Duration = Duration::from_millis(7);

/// The link back.
pub(super) fn back(config: &Config) -> LinkConfig {
    if config.condition == Condition::Reverse {
        let limit = QueueLimit { packets: Some(reverse_buffer(config)), ..QueueLimit::default() };
        let queue = QueueConfig::TailDrop(taildrop::Config::default());
        LinkConfig { limit, queue, ..LinkConfig::new(config.rate, Duration::ZERO) }
    } else {
        // Acknowledgements never wait.
        LinkConfig::new(config.access_rate, Duration::ZERO)
    }
}

fn reverse_buffer(config: &Config) -> u64 {
    let bdp = config.rate.bits_per_sec() as f64 * config.rtt.as_secs() / (8.0 * PACKET.get() as f64);
    (bdp as u64).max(LEAST_REVERSE_BUFFER)
}

/// What is hidden from the queue discipline; the oracle knows it all the same.
pub(super) fn disguise(config: &Config, first: u32) -> Option<Disguise> {
    match config.condition {
        Condition::NoHandshake => Some(Disguise { handshakes: true, names: Names::Own }),
        Condition::Tunnel => Some(Disguise { handshakes: false, names: Names::One }),
        Condition::Restart(_) => {
            Some(Disguise { handshakes: true, names: Names::Again { first, count: config.flows } })
        }
        _ => None,
    }
}

/// Adds everybody who is no part of the transients; returns how many flows they are.
pub(super) fn add(world: &mut World, chain: &Chain, config: &Config, profile: &Profile) -> u32 {
    let delay = config.rtt.scale(0.25);
    let host = Access { rate: config.access_rate, delay, jitter: None };
    let profile = Arc::new(Profile { ecn: false, ..profile.clone() });
    if config.condition == Condition::Reverse {
        let route = chain.connect_between(world, host, host, 1, 0);
        world.add_flow(FlowConfig::new(Arc::clone(&profile), Pattern::Bulk, route));
    }
    if config.background > 0.0 {
        let rate = config.rate.scale(config.background);
        let sources = config.condition.sources(rate);
        for (number, source) in (0..).zip(&sources) {
            let route = chain.connect(world, host, host);
            let mut flow = FlowConfig::new(Arc::clone(&profile), Pattern::Unresponsive(*source), route);
            flow.start = Timestamp::NEVER;
            let flow = world.add_flow(flow);
            world.answer_at(flow, Timestamp::ZERO + APART * number);
        }
        if sources.is_empty() {
            // Each packet a little late, so that it does not keep step with the queue.
            let interval = rate.time_for(PACKET);
            let jitter = Jitter { amplitude: interval.scale(BACKGROUND_JITTER), step: interval };
            let route = chain.connect(world, Access { jitter: Some(jitter), ..host }, host);
            let pattern = Pattern::ConstantRate { rate, packet: PACKET.get() as u32 };
            let mut flow = FlowConfig::new(profile, pattern, route);
            if config.condition == Condition::BackgroundStarts {
                flow.start = Timestamp::NEVER;
            }
            world.add_flow(flow);
        }
    }
    world.flow_count() as u32
}
