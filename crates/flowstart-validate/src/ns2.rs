//! ns-2.35: `Agent/TCP/Sack1` without loss and over a chain of drop-tail queues, and Quick-Start (`Agent/QSAgent`,
//! algorithm 3: the Target algorithm with peak utilization).
//!
//! `validation/ns2/README.md` says how the reference was made.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::quick_start::rate::{RateEncoding, Rounding};
use flowstart_core::quick_start::router::peak_utilization::{self, Intervals};
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config as Router, UtilizationConfig, target};
use flowstart_core::startup::StartupConfig;
use flowstart_core::startup::quick_start::{Config, RequestKind};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::observe::trace::Event;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;

use crate::Input;
use crate::bench::{Bench, completion_s};
use crate::check::{Checker, Column, equal, near, within};
use crate::reference::{Reference, Row};

const PAYLOAD: u64 = 1460;
const WIRE_BITS: f64 = 12_000.0;
/// Simulated time after which a transfer has failed.
const LIMIT: Duration = Duration::from_millis(100_000_000);
/// When the first flow of the router checks starts.
const FIRST_START: Duration = Duration::from_millis(5000);

const SINGLE: &[(&str, &str)] = &[
    ("A_fct_100mbps.csv", validation_file!("ns2/A_fct_100mbps.csv")),
    ("A_fig1.csv", validation_file!("ns2/A_fig1.csv")),
];
pub(crate) const PLAIN: Reference =
    Reference { rows: "is without Quick-Start (`none` in column `mode`)", ..Reference::of(SINGLE) };
pub(crate) const QUICK_START: Reference = Reference { rows: "has `qs` in column `mode`", ..Reference::of(SINGLE) };
pub(crate) const CHAIN: Reference =
    Reference::of(&[("B_fct_10mbps_chain.csv", validation_file!("ns2/B_fct_10mbps_chain.csv"))]);
pub(crate) const CHECKS: Reference =
    Reference::of(&[("A_qs_router_checks.csv", validation_file!("ns2/A_qs_router_checks.csv"))]);

/// Flows between hosts at the ends of a chain.
pub(crate) struct Scene {
    rate: Rate,
    rtt: Duration,
    hops: usize,
    limit: QueueLimit,
    access: Rate,
    packets: u64,
    profile: Profile,
    /// What flows ask for, and the routers, which all have the same parameters.
    quick_start: Option<(Config, Router)>,
    /// The router that does not know Quick-Start.
    pub(crate) disabled: Option<usize>,
    /// Constant-rate traffic over the whole chain.
    background: Option<Rate>,
}

/// ns-2 rounds what it asks for down, and has no options in its packets.
pub(crate) fn startup(encoding: RateEncoding, rate: Rate) -> Config {
    Config { request: RequestKind::Fixed, rate, rounding: Rounding::Down, encoding, ..Config::default() }
}

fn router(encoding: RateEncoding, share: f64, approvals: Duration, interval: Duration) -> Router {
    let peak = peak_utilization::Config { interval, intervals: 5, ends: Intervals::BetweenChanges };
    Router {
        algorithm: Algorithm::Target(target::Config { qs_thresh: share, interval: approvals, ..Default::default() }),
        utilization: UtilizationConfig::PeakUtilization(peak),
        encoding,
        rounding: Rounding::Down,
        processing: Duration::ZERO,
        behaviour: Behaviour::Participate,
    }
}

/// `qs_rate_function`.
fn encoding(row: &Row<'_>, column: &str) -> Result<RateEncoding, String> {
    let is_linear = row.number_in(column, 1.0..=2.0)? < 2.0;
    Ok(if is_linear { RateEncoding::Linear } else { RateEncoding::Exponential })
}

impl Scene {
    /// A flow of so many packets alone on a link with much room.
    fn alone(rate: Rate, rtt: Duration, packets: u64) -> Self {
        Self {
            rate,
            rtt,
            hops: 1,
            limit: QueueLimit::default(),
            // The hosts' links are an order of magnitude faster than the bottleneck.
            access: Rate::from_mbit(if rate > Rate::from_mbit(1000) { 100_000 } else { 10_000 }),
            packets,
            profile: Profile::ns2_sack1(),
            quick_start: None,
            disabled: None,
            background: None,
        }
    }

    /// The same with Quick-Start behind one router, and an initial window of three segments.
    pub(crate) fn asking(rate: Rate, rtt: Duration, packets: u64, startup: Config) -> Self {
        let interval = Duration::from_millis(200);
        let mut scene = Self::alone(rate, rtt, packets);
        scene.profile.initial_window = 3;
        Self { quick_start: Some((startup, router(startup.encoding, 0.9, interval, interval))), ..scene }
    }

    fn read(row: &Row<'_>) -> Result<Self, String> {
        let (rate, rtt) = (row.rate("rate_bps", 1e3..=1e13)?, row.rtt(1e-3..=1e6)?);
        Ok(Self::alone(rate, rtt, row.number_in("size_pkts", 1.0..=1e9)? as u64))
    }

    /// When each segment of a flow is first sent, in order.
    pub(crate) fn sequence(&self) -> Vec<Timestamp> {
        let (bench, _) = self.run(&[Duration::ZERO], true);
        let sent = bench.world.network.trace.iter().flat_map(|trace| &trace.entries);
        let new = sent.filter(|entry| matches!(entry.event, Event::Sent { retransmission: false, .. }));
        new.map(|entry| entry.time).collect()
    }

    /// The world when flows that start at these times are complete, and what they did.
    fn run(&self, starts: &[Duration], traced: bool) -> (Bench, Vec<FlowRecord>) {
        let delay = self.rtt / (2 * self.hops as u64);
        let link = LinkConfig { limit: self.limit, ..LinkConfig::new(self.rate, delay) };
        let mut bench = Bench::new(1, self.hops, &link, self.access);
        bench.world.network.trace = traced.then(Box::default);
        let add_router = |bench: &mut Bench, place: usize, link: u32, rate: Rate| {
            let Some((_, router)) = self.quick_start else { return };
            let ignores = self.disabled == Some(place);
            let behaviour = if ignores { Behaviour::Ignore } else { router.behaviour };
            bench.world.network.add_router(link, Router { behaviour, ..router }, rate);
        };
        for hop in 0..self.hops {
            let link = bench.chain.forward_link(hop);
            add_router(&mut bench, hop, link, self.rate);
        }
        let profile = Arc::new(self.profile.clone());
        if let Some(rate) = self.background {
            let config = bench.flow(&profile, Pattern::ConstantRate { rate, packet: 1500 });
            bench.world.add_flow(config);
        }
        let mut flows = Vec::new();
        for start in starts {
            let mut config = bench.flow(&profile, Pattern::Transfer(Bytes::new(self.packets * PAYLOAD)));
            // The receiver's link belongs to the last router.
            if let Some(last) = config.route.forward.last() {
                add_router(&mut bench, self.hops, *last, self.access);
            }
            if let Some((startup, _)) = self.quick_start {
                config.startup = StartupConfig::QuickStart(startup);
            }
            config.start = Timestamp::ZERO + *start;
            flows.push(bench.world.add_flow(config));
        }
        // A flow that does not end has no completion time, which no band contains.
        let limit = Timestamp::ZERO + LIMIT;
        let _ = bench.world.run_while(limit, |world| flows.iter().any(|flow| world.record(*flow).completed.is_none()));
        let records = flows.iter().map(|flow| bench.world.record(*flow).clone()).collect();
        (bench, records)
    }
}

/// The approved rate in bytes per second; 0 where nothing was approved.
fn approved(record: &FlowRecord) -> f64 {
    record.approved_rate.map_or(0.0, |rate| rate.bits_per_sec() as f64 / 8.0)
}

/// Every cell within 0.1 % or one packet time. Rows with Quick-Start belong to another entry.
pub(crate) fn single_flow(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut worst: f64 = 0.0;
    for row in input.rows().filter(|row| row.optional("mode").is_none_or(|mode| mode == "none")) {
        let mut scene = Scene::read(&row)?;
        let window = row.number_in("init_window_pkts", 1.0..=1e6)? as u64;
        scene.profile.initial_window = window;
        let packet_time = WIRE_BITS / scene.rate.bits_per_sec() as f64;
        let band = |expected: f64| {
            let allowed = (expected * 0.001).max(packet_time);
            near(expected, allowed).saying(format!("within {allowed:.6} s"))
        };
        let cell = format!("{} {} {} packets IW {window}", scene.rate, scene.rtt, scene.packets);
        for record in scene.run(&[Duration::ZERO], false).1 {
            checker.row(&row, &cell, &[("fct_rx_s", completion_s(&record), &band)])?;
            worst = worst.max((completion_s(&record) - row.number("fct_rx_s")?).abs());
        }
    }
    Ok(format!("largest difference {:.2} us", worst * 1e6))
}

/// First drop within two packet times, drops within 5 %, cuts and deepest queue equal, FCT within 1 %.
pub(crate) fn chain(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut worst: f64 = 0.0;
    for row in input.rows() {
        let mut scene = Scene::read(&row)?;
        scene.hops = row.number_in("hops", 1.0..=64.0)? as usize;
        scene.access = Rate::from_mbit(1000);
        let limit = row.number_in("queue_limit_pkts", 2.0..=1e9)? as u64;
        scene.limit = QueueLimit { packets: Some(limit), bytes: None, counts_in_service: true };
        let window = row.number_in("adv_window_pkts", 1.0..=1e9)? as u64;
        scene.profile.receive_window = Bytes::new(window * PAYLOAD);
        let cell = format!("{} packets, window {window}", scene.packets);
        let allowed = 2.0 * WIRE_BITS / scene.rate.bits_per_sec() as f64;
        let two_packets = |expected| near(expected, allowed).saying(format!("within {allowed:.6} s"));
        let (mut bench, records) = scene.run(&[Duration::ZERO], false);
        let link = bench.world.network.link(bench.link()).counters();
        // ns-2 counts the arrival that is then dropped; the packet in service is not in its queue.
        let deepest = link.max_waiting as f64 + if link.dropped > 0 { 1.0 } else { 0.0 };
        for record in &records {
            let columns: [Column<'_>; 5] = [
                ("fct_rx_s", completion_s(record), &|fct| within(fct, 0.01)),
                ("pkts_dropped", record.dropped as f64, &|drops| within(drops, 0.05)),
                ("cwnd_cuts", (record.window_cuts + record.timeouts) as f64, &equal),
                ("max_queue_pkts", deepest, &equal),
                ("first_drop_s", record.first_drop.map_or(f64::NAN, Timestamp::as_secs), &two_packets),
            ];
            let has_first_drop = row.optional("first_drop_s").is_some_and(|text| !text.is_empty());
            worst = worst.max(checker.row(&row, &cell, &columns[..4 + usize::from(has_first_drop)])?);
        }
    }
    Ok(format!("largest difference of FCT {:.5} %", worst * 100.0))
}

/// FCT of every cell within 1 %, approved rates equal.
pub(crate) fn quick_start(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut worst: f64 = 0.0;
    for row in input.rows().filter(|row| row.optional("mode") == Some("qs")) {
        let Scene { rate, rtt, packets, .. } = Scene::read(&row)?;
        let encoding = encoding(&row, "qs_rate_function")?;
        let asked = match row.optional("qs_request_Bps") {
            Some(_) => row.number_in("qs_request_Bps", 1.0..=1e12)? * 8.0,
            // ns-2 counts requests in 1024 bytes/s, and asks for the whole link.
            None => (row.number("rate_bps")? / 8.0 / 1024.0).ceil() * 1024.0 * 8.0,
        };
        let startup = startup(encoding, Rate::from_bits_per_sec(asked as u64));
        let mut scene = Scene::asking(rate, rtt, packets, startup);
        scene.profile.initial_window = row.number_in("init_window_pkts", 1.0..=1e6)? as u64;
        let cell = format!("{rate} {rtt} {packets} packets {encoding:?}");
        for record in &scene.run(&[Duration::ZERO], false).1 {
            let columns: [Column<'_>; 2] = [
                ("fct_rx_s", completion_s(record), &|fct| within(fct, 0.01)),
                ("qs_approved_rate_Bps", approved(record), &|rate| within(rate, 1e-5)),
            ];
            worst = worst.max(checker.row(&row, &cell, &columns)?);
        }
    }
    Ok(format!("largest difference of FCT {:.4} %", worst * 100.0))
}

/// What routers granted, equal.
pub(crate) fn router_checks(input: &Input, checker: &mut Checker) -> Result<String, String> {
    for row in input.rows() {
        let encoding = encoding(&row, "rate_function")?;
        let asked = row.number_in("request_KBps_1024", 1.0..=1e9)? * 1024.0 * 8.0;
        let seconds = |column| Ok::<_, String>(Duration::from_secs(row.number_in(column, 1e-3..=60.0)?));
        let share = row.number_in("alloc_and_threshold", 0.0..=1.0)?;
        let rate = row.number_in("rate_bps", 1e3..=1e13)?;
        let load = row.number_in("background_cbr_load", 0.0..=1.0)?;
        let disabled = row.number_in("qs_disabled_router", -1.0..=2.0)?;
        let startup = startup(encoding, Rate::from_bits_per_sec(asked as u64));
        let router = router(encoding, share, seconds("state_delay_s")?, seconds("util_interval_s")?);
        let packets = row.number_in("size_pkts", 1.0..=1e6)? as u64;
        let scene = Scene {
            hops: 2,
            limit: QueueLimit { packets: Some(150), bytes: None, counts_in_service: true },
            access: Rate::from_mbit(1000),
            quick_start: Some((startup, router)),
            disabled: (disabled >= 0.0).then_some(disabled as usize),
            background: (load > 0.0).then(|| Rate::from_bits_per_sec((rate * load) as u64)),
            ..Scene::asking(Rate::from_bits_per_sec(rate as u64), row.rtt(1e-3..=1e6)?, packets, startup)
        };
        let spacing = seconds("spacing_s")?;
        let flows = row.number_in("n_flows", 1.0..=1000.0)? as u64;
        let starts: Vec<Duration> = (0..flows).map(|flow| FIRST_START + spacing * flow).collect();
        let case = row.text("case")?;
        let column = "approved_rates_Bps_in_order";
        let number = |text: &str| text.parse().map_err(|_| row.refused(column, text, "numbers with spaces in between"));
        let expected: Vec<f64> = row.text(column)?.split_whitespace().map(number).collect::<Result<_, String>>()?;
        checker.declare(1 + expected.len());
        let ours: Vec<f64> = scene.run(&starts, false).1.iter().map(approved).filter(|rate| *rate > 0.0).collect();
        checker.check(case, "n_approved", ours.len() as f64, equal(expected.len() as f64));
        for (place, expected) in expected.iter().enumerate() {
            let metric = format!("approved_rate {}", place + 1);
            // The reference has six digits.
            checker.check(case, &metric, ours.get(place).copied().unwrap_or(f64::NAN), within(*expected, 5e-6));
        }
    }
    Ok("grants of the Target algorithm with peak utilization".to_owned())
}
