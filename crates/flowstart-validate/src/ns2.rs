//! ns-2.35, Agent/TCP/Sack1: transfers without loss, and a chain with drop-tail queues.
//!
//! `validation/ns2/README.md` says how the reference was made.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::{LinkConfig, LinkCounters};
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;

use crate::Input;
use crate::bench::Bench;
use crate::check::{Checker, equal, near, within};
use crate::reference::{Reference, Row};

/// Payload of a packet.
const PAYLOAD: u64 = 1460;
/// Bits of a packet on the wire.
const WIRE_BITS: f64 = 12_000.0;
/// Simulated time after which a transfer has failed.
const LIMIT: Duration = Duration::from_millis(100_000_000);

const SINGLE: &[(&str, &str)] = &[
    ("A_fct_100mbps.csv", include_str!("../../../validation/ns2/A_fct_100mbps.csv")),
    ("A_fig1.csv", include_str!("../../../validation/ns2/A_fig1.csv")),
];
pub(crate) const PLAIN: Reference =
    Reference { rows: "is without Quick-Start (`none` in column `mode`)", ..Reference::of(SINGLE) };
pub(crate) const QUICK_START: Reference = Reference { rows: "has `qs` in column `mode`", ..Reference::of(SINGLE) };
pub(crate) const CHAIN: Reference =
    Reference::of(&[("B_fct_10mbps_chain.csv", include_str!("../../../validation/ns2/B_fct_10mbps_chain.csv"))]);

/// A transfer between two hosts at the ends of a chain.
struct Transfer {
    rate: Rate,
    rtt: Duration,
    hops: usize,
    limit: QueueLimit,
    access: Rate,
    packets: u64,
    profile: Profile,
}

impl Transfer {
    fn read(row: &Row<'_>) -> Result<Self, String> {
        let rate = row.rate("rate_bps", 1e3..=1e13)?;
        Ok(Self {
            rate,
            rtt: row.rtt(1e-3..=1e6)?,
            hops: 1,
            limit: QueueLimit::default(),
            // The hosts' links are an order of magnitude faster than the bottleneck.
            access: Rate::from_mbit(if rate > Rate::from_mbit(1000) { 100_000 } else { 10_000 }),
            packets: row.number_in("size_pkts", 1.0..=1e9)? as u64,
            profile: Profile::ns2_sack1(),
        })
    }

    /// Runs it; returns what the flow and the first link did.
    fn run(&self) -> (FlowRecord, LinkCounters) {
        let back = LinkConfig::new(self.rate, self.rtt / (2 * self.hops as u64));
        let mut bench = Bench::new(1, self.hops, &LinkConfig { limit: self.limit, ..back.clone() }, &back, self.access);
        let config = bench.flow(&Arc::new(self.profile.clone()), Pattern::Transfer(Bytes::new(self.packets * PAYLOAD)));
        let flow = bench.world.add_flow(config);
        // A transfer that does not end has no completion time, which no band contains.
        let _ = bench.world.run_flow(flow, Timestamp::ZERO + LIMIT);
        (bench.world.record(flow).clone(), bench.world.network.link(bench.link()).counters().clone())
    }
}

fn seconds(time: Option<Timestamp>) -> f64 {
    time.map_or(f64::NAN, Timestamp::as_secs)
}

/// Every cell within 0.1 % or one packet time. Rows with Quick-Start belong to another entry.
pub(crate) fn single_flow(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut worst: f64 = 0.0;
    for row in input.rows().filter(|row| row.optional("mode").is_none_or(|mode| mode == "none")) {
        checker.declare(1);
        let mut transfer = Transfer::read(&row)?;
        let window = row.number_in("init_window_pkts", 1.0..=1e6)? as u64;
        transfer.profile.initial_window = window;
        let expected = row.number("fct_rx_s")?;
        let fct = seconds(transfer.run().0.completed);
        let allowed = (expected * 0.001).max(WIRE_BITS / transfer.rate.bits_per_sec() as f64);
        worst = worst.max((fct - expected).abs());
        let cell = format!("{} {} {} packets IW {window}", transfer.rate, transfer.rtt, transfer.packets);
        checker.check(&cell, "fct_rx_s", fct, near(expected, allowed).saying(format!("within {allowed:.6} s")));
    }
    Ok(format!("largest difference {:.2} us", worst * 1e6))
}

/// First drop within two packet times, drops within 5 %, cuts and deepest queue equal, FCT within 1 %.
pub(crate) fn chain(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut worst: f64 = 0.0;
    for row in input.rows() {
        let has_first_drop = row.optional("first_drop_s").is_some_and(|text| !text.is_empty());
        checker.declare(4 + usize::from(has_first_drop));
        let mut transfer = Transfer::read(&row)?;
        transfer.hops = row.number_in("hops", 1.0..=64.0)? as usize;
        transfer.access = Rate::from_mbit(1000);
        let limit = row.number_in("queue_limit_pkts", 2.0..=1e9)? as u64;
        transfer.limit = QueueLimit { packets: Some(limit), bytes: None, counts_in_service: true };
        let window = row.number_in("adv_window_pkts", 1.0..=1e9)? as u64;
        transfer.profile.receive_window = Bytes::new(window * PAYLOAD);
        let cell = format!("{} packets, window {window}", transfer.packets);
        let (record, link) = transfer.run();
        let (fct, expected) = (seconds(record.completed), row.number("fct_rx_s")?);
        worst = worst.max((fct / expected - 1.0).abs());
        checker.check(&cell, "fct_rx_s", fct, within(expected, 0.01));
        checker.check(&cell, "pkts_dropped", record.dropped as f64, within(row.number("pkts_dropped")?, 0.05));
        let cuts = (record.window_cuts + record.timeouts) as f64;
        checker.check(&cell, "cwnd_cuts", cuts, equal(row.number("cwnd_cuts")?));
        // ns-2 counts the arrival that is then dropped; the packet in service is not in its queue.
        let deepest = link.max_waiting as f64 + if link.dropped > 0 { 1.0 } else { 0.0 };
        checker.check(&cell, "max_queue_pkts", deepest, equal(row.number("max_queue_pkts")?));
        if has_first_drop {
            let allowed = 2.0 * WIRE_BITS / transfer.rate.bits_per_sec() as f64;
            let band = near(row.number("first_drop_s")?, allowed).saying(format!("within {allowed:.6} s"));
            checker.check(&cell, "first_drop_s", seconds(record.first_drop), band);
        }
    }
    Ok(format!("largest difference of FCT {:.5} %", worst * 100.0))
}
