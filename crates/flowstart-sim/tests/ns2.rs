//! The TCP reference runs of ns-2: `validation/ns2/README.md` says how they were made.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::{LinkConfig, LinkCounters};
use flowstart_sim::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::{FlowConfig, World};

const LIMIT: Timestamp = Timestamp::from_nanos(1_000_000_000_000);
const PAYLOAD: u64 = 1460;
const WIRE_BITS: f64 = 12_000.0;

/// Runs a transfer of `packets` through the chain; returns its record and the counts of the first link.
fn transfer(hops: &[(LinkConfig, LinkConfig)], access: Rate, packets: u64, window: u64) -> (FlowRecord, LinkCounters) {
    let mut world = World::new(1);
    let chain = Chain::new(&mut world, hops);
    let host = Access { rate: access, delay: Duration::ZERO };
    let route = chain.connect(&mut world, host, host);
    let mut profile = Profile::named("ns2-sack1").expect("a profile of the registry");
    profile.initial_window = window;
    let size = Bytes::new(packets * PAYLOAD);
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), Pattern::Transfer(size), route));
    world.run_flow(flow, LIMIT).expect("the transfer completes");
    let link = world.network.link(chain.forward_link(0)).counters().clone();
    (world.record(flow).clone(), link)
}

fn completion_time(record: &FlowRecord) -> f64 {
    record.completed.expect("the transfer is complete").as_secs()
}

/// The rows of a table as a function from the column's name.
fn rows(table: &'static str) -> impl Iterator<Item = impl Fn(&str) -> f64> {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    lines.map(move |line| {
        let header = header.clone();
        move |name: &str| {
            let index = header.iter().position(|column| *column == name).expect("a column of this name");
            line[index].parse().expect("a number")
        }
    })
}

#[test]
fn slow_start_without_loss_takes_as_long() {
    let tables = [
        include_str!("../../../validation/ns2/single_link_100mbps.csv"),
        include_str!("../../../validation/ns2/single_link_cases.csv"),
    ];
    for row in tables.into_iter().flat_map(rows) {
        let rate = row("rate_bps");
        let link = LinkConfig::new(Rate::from_bits_per_sec(rate as u64), Duration::from_secs(row("rtt_ms") / 2000.0));
        let access = Rate::from_mbit(if rate > 1e9 { 100_000 } else { 10_000 });
        let (packets, window) = (row("size_pkts") as u64, row("init_window_pkts") as u64);
        let (record, _) = transfer(&[(link.clone(), link)], access, packets, window);
        let (fct, reference) = (completion_time(&record), row("fct_rx_s"));
        let allowed = (0.001 * reference).max(WIRE_BITS / rate);
        println!("{rate} bit/s, {} ms, {packets} packets, IW {window}: {fct:.6} s, ns-2 {reference:.6}", row("rtt_ms"));
        assert!((fct - reference).abs() <= allowed, "{fct} is not {reference}");
    }
}

#[test]
fn a_chain_with_short_queues_loses_as_much_and_takes_as_long() {
    for row in rows(include_str!("../../../validation/ns2/chain.csv")) {
        let rate = Rate::from_bits_per_sec(row("rate_bps") as u64);
        let back = LinkConfig::new(rate, Duration::from_millis(20));
        // ns-2 counts the packet in service, so one packet less waits than its limit says.
        let limit = row("queue_limit_pkts") as u64;
        let there = LinkConfig {
            limit: QueueLimit { packets: Some(limit), bytes: None, counts_in_service: true },
            ..back.clone()
        };
        let packets = row("size_pkts") as u64;
        let hops = [(there.clone(), back.clone()), (there, back)];
        let (record, link) = transfer(&hops, Rate::from_mbit(1000), packets, 3);
        let (fct, reference) = (completion_time(&record), row("fct_rx_s"));
        let (drops, dropped) = (record.dropped as f64, row("pkts_dropped"));
        println!("{packets} packets: {fct:.6} s, ns-2 {reference:.6}; {drops} drops, {dropped}");
        assert!((fct / reference - 1.0).abs() <= 0.01, "{fct} is not {reference}");
        assert!((drops - dropped).abs() <= 0.05 * dropped, "{drops} drops are not {dropped}");
        assert_eq!(record.window_cuts, row("cwnd_cuts") as u64);
        // The reference's deepest queue counts an arrival that is then dropped.
        let deepest = link.max_waiting as u64 + u64::from(drops > 0.0);
        assert_eq!(deepest, row("max_queue_pkts") as u64);
        if let Some(first) = record.first_drop {
            let packet_time = WIRE_BITS / row("rate_bps");
            assert!((first.as_secs() - row("first_drop_s")).abs() <= 2.0 * packet_time, "first drop at {first:?}");
        }
    }
}
