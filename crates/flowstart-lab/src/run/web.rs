//! A repetition of a cell whose measured flows are web sessions. Every connection from a server towards the receivers
//! is a measured flow; totals over all of them describe routers and queues.

use std::sync::Arc;

use flowstart_core::sources::Sources;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::network::Route;
use flowstart_sim::topology::{Access, Chain, Host};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::world::World;
use flowstart_sim::world::web::{Connection, Side, WebTraffic};

use super::outcome::{FlowOutcome, Known, WebOutcome};
use crate::spec::link::Link;
use crate::spec::web::Sessions;
use crate::study::ideal::ideal_fct;
use crate::study::plan::{Cell, Plan};

/// Runs the sessions of a cell in `world`, which must be unused, and returns the outcomes of their connections.
/// Sessions of the other direction are background.
pub(crate) fn outcomes(
    plan: &Plan,
    cell: &Cell,
    web: &Sessions,
    mut world: World,
    chain: &Chain,
    seed: u64,
    known: impl Fn(&Link) -> Sources,
) -> Vec<FlowOutcome> {
    let link = &plan.links[cell.link];
    let profile = plan.profile(cell);
    if let Some(routers) = &link.routers {
        for hop in 0..link.hops {
            // Counted from the senders, which are at the other end.
            world.network.add_router(chain.back_link((link.hops - 1 - hop) as usize), routers.at(hop), link.up_rate);
        }
    }
    let mut hosts = 0;
    let mut host = |world: &mut World| -> Host {
        let delay = link.access_delay + web.delay(seed, hosts);
        hosts += 1;
        let host = Chain::attach(world, Access { rate: link.access_rate, delay, jitter: link.access_jitter });
        if let Some(routers) = &link.routers {
            world.network.add_router(host.into, routers.at(link.hops), link.access_rate);
        }
        host
    };
    let mut side = |world: &mut World, sessions: u32| -> Side {
        let mut hosts = |world: &mut World| (0..sessions).map(|_| host(world)).collect();
        Side { servers: hosts(world), clients: hosts(world) }
    };
    let (forward, reverse) = (side(&mut world, web.sessions), side(&mut world, web.reverse));
    let mut with_scheme = FlowConfig::new(profile, Pattern::Transfer(Bytes::ZERO), Route::default());
    with_scheme.avoidance = plan.avoidance_of(cell).value;
    // The simulation adds the hosts' own delays to the link's.
    with_scheme.sources = known(&Link { access_delay: Duration::ZERO, ..link.clone() });
    with_scheme.train = link.train_report();
    let mut without = with_scheme.clone();
    with_scheme.startup = plan.schemes[cell.scheme].on(cell.transport).clone();
    without.startup = plan.schemes[0].on(cell.transport).clone();
    without.avoidance = plan.avoidance_of(&Cell { scheme: 0, ..*cell }).value;
    let start = world.now();
    world.add_web_traffic(WebTraffic {
        config: web.config(),
        chain: chain.clone(),
        forward,
        reverse,
        with_scheme,
        without,
    });
    world.run_until(start + web.run);
    let connections: Vec<Connection> = world.take_connections().into_iter().filter(|one| one.forward).collect();
    measured(plan, cell, web, &world, start, &connections)
}

fn measured(
    plan: &Plan,
    cell: &Cell,
    web: &Sessions,
    world: &World,
    start: Timestamp,
    connections: &[Connection],
) -> Vec<FlowOutcome> {
    let link = &plan.links[cell.link];
    let profile = plan.profile(cell);
    let monitor = world.network.monitor.as_deref();
    let capacity = link.rate.amount_in(web.run).get();
    let utilization = monitor.filter(|_| capacity > 0).map(|monitor| monitor.total as f64 / capacity as f64);
    let wire = |size: Bytes| size.get() + size.get().div_ceil(web.payload.get()) * u64::from(profile.overhead);
    let together = sum_up(web, connections, wire);
    let completed = connections.iter().filter(|connection| connection.record.completed.is_some());
    completed
        .map(|connection| {
            let Connection { session, object, access_rtt, record, .. } = connection;
            let link = Arc::new(link.for_hosts(link.rtt + *access_rtt));
            FlowOutcome {
                flow: web.flow_number(*session, object.number),
                start: record.started.unwrap_or(start),
                size: object.size,
                rtt: link.host_rtt(),
                share: None,
                max_queue_delay: monitor.and_then(|monitor| monitor.delays.max()),
                p99_queue_delay: monitor.and_then(|monitor| monitor.delays.quantile(0.99)),
                utilization,
                ideal_fct: ideal_fct(&link, &profile, object.size, start),
                others: None,
                failure: None,
                media: None,
                call: None,
                host: None,
                connections: 1,
                web: Some(together),
                known: Known::ALL,
                record: record.clone(),
            }
        })
        .collect()
}

fn sum_up(web: &Sessions, connections: &[Connection], wire: impl Fn(Bytes) -> u64) -> WebOutcome {
    let sum = |of: &dyn Fn(&Connection) -> u64| connections.iter().map(of).sum::<u64>() as f64;
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    let dropped = |which: &dyn Fn(&Connection) -> bool| {
        let of = |count: fn(&Connection) -> u64| sum(&|one| if which(one) { count(one) } else { 0 });
        share(of(|one| one.record.dropped_data), of(|one| one.record.data_packets))
    };
    let requests = sum(&|one| u64::from(one.record.requested_rate.is_some()));
    let approved = sum(&|one| u64::from(one.record.approved_rate.is_some()));
    let failed = sum(&|one| u64::from(one.record.quick_start_dropped > 0));
    let quick_start = sum(&|one| one.record.quick_start_bytes);
    let completed = sum(&|one| u64::from(one.record.completed.is_some()));
    let run = web.run.as_secs();
    WebOutcome {
        connections: completed,
        unfinished: connections.len() as f64 - completed,
        offered_mbps: sum(&|one| wire(one.object.size)) * 8.0 / 1e6 / run,
        drop_rate: dropped(&|_| true),
        drop_rate_with_scheme: dropped(&|one| one.object.uses_scheme),
        drop_rate_without: dropped(&|one| !one.object.uses_scheme),
        quick_start_requests: requests,
        quick_start_approved: share(approved, requests),
        quick_start_failures: share(failed, approved),
        // Sizes are whole packets.
        quick_start_bytes: share(quick_start, sum(&|one| one.record.data_packets) * web.payload.get() as f64),
        quick_start_kbytes_per_s: quick_start / 1000.0 / run,
    }
}
