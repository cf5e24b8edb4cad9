//! ns-2.35, Agent/TCP/Sack1: transfers without loss, and a chain with drop-tail queues.
//!
//! `validation/ns2/README.md` says how the reference was made.

use std::path::Path;
use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::{LinkConfig, LinkCounters};
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use super::reference::{Row, Table};
use super::{Checker, Verdict};

/// Payload of a packet.
const PAYLOAD: u64 = 1460;
/// Bits of a packet on the wire.
const WIRE_BITS: f64 = 12_000.0;
/// Simulated time after which a transfer has failed.
const LIMIT: Duration = Duration::from_millis(100_000_000);

const SINGLE: [(&str, &str); 2] = [
    ("A_fct_100mbps.csv", include_str!("../../../validation/ns2/A_fct_100mbps.csv")),
    ("A_fig1.csv", include_str!("../../../validation/ns2/A_fig1.csv")),
];
const CHAIN: [(&str, &str); 1] =
    [("B_fct_10mbps_chain.csv", include_str!("../../../validation/ns2/B_fct_10mbps_chain.csv"))];

/// A transfer between two hosts at the ends of a chain.
struct Transfer {
    rate: Rate,
    rtt: Duration,
    hops: u32,
    limit: QueueLimit,
    access: Rate,
    packets: u64,
    initial_window: Option<u64>,
    receive_window: Option<u64>,
}

impl Transfer {
    fn read(row: &Row<'_>) -> Result<Self, String> {
        let rate = row.number_in("rate_bps", 1e3..=1e13)?;
        Ok(Self {
            rate: Rate::from_bits_per_sec(rate as u64),
            rtt: Duration::from_secs(row.number_in("rtt_ms", 1e-3..=1e6)? / 1000.0),
            hops: 1,
            limit: QueueLimit::default(),
            // The hosts' links are an order of magnitude faster than the bottleneck.
            access: Rate::from_mbit(if rate > 1e9 { 100_000 } else { 10_000 }),
            packets: row.number_in("size_pkts", 1.0..=1e9)? as u64,
            initial_window: None,
            receive_window: None,
        })
    }

    /// Runs it; returns what the flow and the first link did.
    fn run(&self) -> (FlowRecord, LinkCounters) {
        let mut world = World::new(1);
        let back = LinkConfig::new(self.rate, self.rtt / (2 * u64::from(self.hops)));
        let forward = LinkConfig { limit: self.limit, ..back.clone() };
        let chain = Chain::new(&mut world, &vec![(forward, back); self.hops as usize]);
        let host = Access { rate: self.access, delay: Duration::ZERO, jitter: None };
        let route = chain.connect(&mut world, host, host);
        let mut profile = Profile::ns2_sack1();
        if let Some(window) = self.initial_window {
            profile.initial_window = window;
        }
        if let Some(window) = self.receive_window {
            profile.receive_window = Bytes::new(window * PAYLOAD);
        }
        let pattern = Pattern::Transfer(Bytes::new(self.packets * PAYLOAD));
        let flow = world.add_flow(FlowConfig::new(Arc::new(profile), pattern, route));
        // A transfer that does not end has no completion time, which no band contains.
        let _ = world.run_flow(flow, Timestamp::ZERO + LIMIT);
        (world.record(flow).clone(), world.network.link(chain.forward_link(0)).counters().clone())
    }
}

fn seconds(time: Option<Timestamp>) -> f64 {
    time.map_or(f64::NAN, Timestamp::as_secs)
}

/// `ns2-single-flow`: every cell within 0.1 % or one packet time.
pub(super) fn single_flow(reference: Option<&Path>) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let mut worst: f64 = 0.0;
    for table in Table::load(reference, &SINGLE)? {
        for row in table.rows() {
            // Rows with Quick-Start belong to another entry.
            if row.optional("mode").is_some_and(|mode| mode != "none") {
                continue;
            }
            checker.declare(1);
            let mut transfer = Transfer::read(&row)?;
            transfer.initial_window = Some(row.number_in("init_window_pkts", 1.0..=1e6)? as u64);
            let expected = row.number("fct_rx_s")?;
            let fct = seconds(transfer.run().0.completed);
            let allowed = (expected * 0.001).max(WIRE_BITS / transfer.rate.bits_per_sec() as f64);
            worst = worst.max((fct - expected).abs());
            let cell = format!(
                "{} {} {} packets IW {}",
                transfer.rate,
                transfer.rtt,
                transfer.packets,
                transfer.initial_window.unwrap_or_default()
            );
            let band = format!("within {allowed:.6} s");
            checker.check(&cell, "fct_rx_s", fct, expected, (fct - expected).abs() <= allowed, band);
        }
    }
    if checker.declared == 0 {
        return Err("ns2-single-flow: no row is without Quick-Start (`none` in column `mode`)".into());
    }
    Ok(checker.verdict("ns2-single-flow", format!("largest difference {:.2} us", worst * 1e6)))
}

/// `ns2-chain`: first drop within two packet times, drops within 5 %, cuts and deepest queue equal, FCT within 1 %.
pub(super) fn chain(reference: Option<&Path>) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let mut worst: f64 = 0.0;
    for table in Table::load(reference, &CHAIN)? {
        for row in table.rows() {
            let has_first_drop = row.optional("first_drop_s").is_some_and(|text| !text.is_empty());
            checker.declare(4 + usize::from(has_first_drop));
            let mut transfer = Transfer::read(&row)?;
            transfer.hops = row.number_in("hops", 1.0..=64.0)? as u32;
            transfer.access = Rate::from_mbit(1000);
            let limit = row.number_in("queue_limit_pkts", 2.0..=1e9)? as u64;
            transfer.limit = QueueLimit { packets: Some(limit), bytes: None, counts_in_service: true };
            transfer.receive_window = Some(row.number_in("adv_window_pkts", 1.0..=1e9)? as u64);
            let cell = format!("{} packets, window {}", transfer.packets, transfer.receive_window.unwrap_or_default());
            let (record, link) = transfer.run();
            let fct = seconds(record.completed);
            worst = worst.max((fct / row.number("fct_rx_s")? - 1.0).abs());
            checker.within(&cell, "fct_rx_s", fct, row.number("fct_rx_s")?, 0.01);
            checker.within(&cell, "pkts_dropped", record.dropped as f64, row.number("pkts_dropped")?, 0.05);
            let cuts = row.number("cwnd_cuts")?;
            let ours = (record.window_cuts + record.timeouts) as f64;
            checker.check(&cell, "cwnd_cuts", ours, cuts, ours == cuts, "equal");
            // ns-2 counts the arrival that is then dropped; the packet in service is not in its queue.
            let deepest = row.number("max_queue_pkts")?;
            let ours = link.max_waiting as f64 + if link.dropped > 0 { 1.0 } else { 0.0 };
            checker.check(&cell, "max_queue_pkts", ours, deepest, ours == deepest, "equal");
            if has_first_drop {
                let expected = row.number("first_drop_s")?;
                let first = seconds(record.first_drop);
                let allowed = 2.0 * WIRE_BITS / transfer.rate.bits_per_sec() as f64;
                let inside = (first - expected).abs() <= allowed;
                checker.check(&cell, "first_drop_s", first, expected, inside, format!("within {allowed:.6} s"));
            }
        }
    }
    Ok(checker.verdict("ns2-chain", format!("largest difference of FCT {:.5} %", worst * 100.0)))
}
