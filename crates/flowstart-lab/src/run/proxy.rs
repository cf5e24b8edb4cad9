//! Measured flows whose link has a proxy that splits their connections.
//!
//! Reference: RFC 3135, sections 2.2 (distribution), 2.4 (split connections) and 5.1 (VSAT environments).
//! The server's TCP connection, with the cell's scheme, ends at the satellite gateway. The gateway knows the rate and
//! the RTT of its hop: it launches a window of one RTT at this rate ([`more_start`]), and its window never becomes
//! larger than what the hop takes in an RTT and the delay of an acknowledgement.
//!
//! Left out: limits of the gateway's memory and of its CPU, several connections that share the hop's rate (each
//! launches at all of it), the division of the hop's capacity by demand, caches, compression and other flows, which
//! cross the link without a proxy.

use std::sync::Arc;

use flowstart_core::path::SavedPath;
use flowstart_core::sources::{Sources, Statement, name};
use flowstart_core::startup::{StartupConfig, more_start};
use flowstart_core::time::Duration;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use super::knowledge::sources;
use super::place::connect_server;
use crate::spec::link::{Distribution, Link, Proxy, Varies};
use crate::study::plan::{Cell, Plan};

/// How the gateway carries on what `config` describes as one connection from the server.
pub(super) fn gateway(link: &Link, proxy: Proxy, config: &FlowConfig) -> FlowConfig {
    let rtt = link.hop_rtt() + link.access_delay * 2;
    let profile = &config.profile;
    let segment = u64::from(profile.segment);
    let window = link.rate.amount_in(rtt + profile.ack.max_delay).get().div_ceil(segment);
    let opening = match proxy.distribution {
        Distribution::Integrated => profile.opening,
        // The client's own box answers its handshake, and the boxes know each other.
        Distribution::Distributed => Opening::ZeroRtt,
    };
    let token = opening == Opening::ZeroRtt;
    let profile = Profile { opening, token, max_window: Some(window.max(2)), ..Profile::clone(profile) };
    let saved = SavedPath { rtt, cwnd: link.rate.amount_in(rtt), age: Duration::ZERO };
    let mut known = Sources::default();
    known.believe(name::PATH_STORE, Statement::Saved(saved));
    known.believe(name::ORACLE, Statement::Oracle(link.rate));
    FlowConfig {
        startup: StartupConfig::MoreStart(more_start::Config {
            source: more_start::RateSource::Oracle,
            ..more_start::Config::default()
        }),
        avoidance: profile.avoidance.clone(),
        profile: Arc::new(profile),
        sources: known,
        ensemble: None,
        ..config.clone()
    }
}

/// Puts the server's connection behind the gateway's, which is `flow`. Returns its number.
pub(super) fn add_server(
    plan: &Plan,
    cell: &Cell,
    world: &mut World,
    link: &Link,
    flow: u32,
    config: FlowConfig,
) -> u32 {
    let route = connect_server(world, link);
    let way = way_to_gateway(link);
    world.split(
        flow,
        FlowConfig { route, sources: sources(plan, plan.transport_of(cell), &way, config.start), ..config },
    )
}

/// What Sensing knows of the way to the gateway, which is the server's peer: only the hop behind it has a delay that
/// varies.
fn way_to_gateway(link: &Link) -> Link {
    Link {
        rtt: link.server_rtt(),
        access_delay: link.access_delay / 2,
        proxy: None,
        varies: Varies { delay: None, ..link.varies },
        ..link.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    #[test]
    fn the_delay_varies_only_behind_the_gateway() {
        let text = "link = [\"rate=20mbit,rtt=600ms,buffer=1bdp,pep=integrated,pep_rtt=30ms,rtt_steps=20ms/15s\"]\n\
                    size = [\"70KB\"]\nscheme = [\"slow-start\"]\ntransport = \"model-tcp\"\nreps = 1";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let (link, way) = (&plan.links[0], way_to_gateway(&plan.links[0]));
        assert_eq!(link.varies.mean_delay(), Duration::from_millis(10));
        assert_eq!((way.host_rtt(), way.varies.mean_delay()), (Duration::from_millis(30), Duration::ZERO));
    }
}
