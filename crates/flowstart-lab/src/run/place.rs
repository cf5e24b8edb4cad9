//! The places of hosts, routers, advising elements and cheaters on a link.

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::world::World;

use crate::spec::link::Link;

fn access(link: &Link) -> Access {
    Access { rate: link.access_rate, delay: link.access_delay, jitter: link.access_jitter }
}

/// The access of servers, which are farther from the chain than the proxy.
fn server_access(link: &Link) -> Access {
    Access { delay: link.access_delay + link.server_rtt() / 2, ..access(link) }
}

/// A new pair of hosts at the two ends of the chain. The receiver's link belongs to the last router. If there is a
/// proxy, it is the sender.
pub(super) fn connect(world: &mut World, chain: &Chain, link: &Link) -> Route {
    match link.proxy {
        Some(_) => chain.connect(world, Access { delay: Duration::ZERO, ..access(link) }, access(link)),
        None => connect_at(world, chain, link, link.access_rate),
    }
}

/// A new server, the proxy, and the way between them, which is as fast as the hosts' links.
pub(super) fn connect_server(world: &mut World, link: &Link) -> Route {
    let way = LinkConfig::new(link.access_rate, link.server_rtt() / 2);
    let chain = Chain::dumbbell(world, &way, &way.clone());
    chain.connect(world, access(link), Access { delay: Duration::ZERO, ..access(link) })
}

/// The hosts of the competitor's flow number `place`, at the ends of the hops that it crosses. The receiver's link has
/// this rate.
pub(super) fn connect_other(world: &mut World, chain: &Chain, link: &Link, place: u32, receiver_rate: Rate) -> Route {
    let Some(hop) = link.cross.hop_of(place, link.hops) else {
        return connect_at(world, chain, link, receiver_rate);
    };
    let receiver = Access { rate: receiver_rate, ..access(link) };
    chain.connect_between(world, access(link), receiver, hop as usize, hop as usize + 1)
}

/// The hop that is watched, of those that the link describes: where all others are, or the first.
pub(super) fn watched_hop(link: &Link) -> usize {
    link.cross.hop_of(0, link.hops).unwrap_or(0) as usize
}

/// Like [`connect`], with a receiver's link of this rate.
fn connect_at(world: &mut World, chain: &Chain, link: &Link, receiver_rate: Rate) -> Route {
    let route = chain.connect(world, server_access(link), Access { rate: receiver_rate, ..access(link) });
    if let (Some(routers), Some(last)) = (&link.routers, route.forward.last()) {
        world.network.add_router(*last, routers.at(link.hops + routers.upstream.iter().len() as u32), receiver_rate);
    }
    route
}

/// Puts those who cheat for a measured flow at its hosts' links.
pub(super) fn place_cheats(world: &mut World, link: &Link, route: &Route) {
    let Some(routers) = &link.routers else { return };
    if let (Some(steps), Some(first)) = (routers.receiver_steps, route.back.first()) {
        world.network.add_lying_receiver(*first, steps);
    }
    if let (Some(booster), Some(out), Some(back)) = (routers.booster, route.forward.first(), route.back.last()) {
        world.network.add_booster([*out, *back], booster);
    }
}

/// Puts the link's routers and elements at the hops of the chain. The first hop may be an `upstream` one. The advising
/// element is at the bottleneck.
pub(super) fn equip(world: &mut World, chain: &Chain, link: &Link, upstream: Option<Rate>) {
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

/// The start of a repetition in a recorded trace: its beginning, unless the link specifies otherwise.
pub(super) fn place_in_recording(link: &Link, phase: f64) -> Duration {
    let recording = link.trace.as_ref().filter(|_| link.trace_start_varies);
    recording.map_or(Duration::ZERO, |trace| trace.period().scale(phase))
}
