//! Quick-Start in ns-2.35 (`Agent/QSAgent`, algorithm 3: the Target algorithm with peak utilization): single flows, and
//! what routers granted.
//!
//! `validation/ns2/README.md` says how the reference was made.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::quick_start::rate::{RateEncoding, Rounding};
use flowstart_core::quick_start::router::peak_utilization::Intervals;
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config as Router, UtilizationConfig};
use flowstart_core::quick_start::router::{peak_utilization, target};
use flowstart_core::startup::StartupConfig;
use flowstart_core::startup::quick_start::{Config, RequestKind};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;

use crate::Input;
use crate::bench::{Bench, completion_s};
use crate::check::{Checker, equal, within};
use crate::reference::{Reference, Row};

/// Payload of a packet.
const PAYLOAD: u64 = 1460;
/// Simulated time after which a run has failed.
const LIMIT: Duration = Duration::from_millis(100_000_000);
/// When the first flow of the router checks starts.
const FIRST_START: Duration = Duration::from_millis(5000);

pub(crate) const CHECKS: Reference =
    Reference::of(&[("A_qs_router_checks.csv", include_str!("../../../../validation/ns2/A_qs_router_checks.csv"))]);

/// Flows that use Quick-Start over a chain whose routers all have the same parameters.
pub(crate) struct Scene {
    rate: Rate,
    rtt: Duration,
    hops: usize,
    limit: QueueLimit,
    access: Rate,
    router: Router,
    /// The router that does not know Quick-Start.
    pub(crate) disabled: Option<usize>,
    startup: Config,
    initial_window: u64,
    /// Constant-rate traffic over the whole chain.
    background: Option<Rate>,
}

/// `qs_rate_function`.
fn encoding(row: &Row<'_>, column: &str) -> Result<RateEncoding, String> {
    Ok(match row.number_in(column, 1.0..=2.0)? as u64 {
        1 => RateEncoding::Linear,
        _ => RateEncoding::Exponential,
    })
}

fn router(encoding: RateEncoding, share: f64, approvals: Duration, interval: Duration) -> Router {
    let peak = peak_utilization::Config { interval, intervals: 5, ends: Intervals::BetweenChanges };
    Router {
        algorithm: Algorithm::Target(target::Config { qs_thresh: share, interval: approvals, ..Default::default() }),
        utilization: UtilizationConfig::PeakUtilization(peak),
        encoding,
        rounding: Rounding::Down,
        behaviour: Behaviour::Participate,
    }
}

/// ns-2 rounds what it asks for down, and has no options in its packets.
pub(crate) fn startup(encoding: RateEncoding, rate: Rate) -> Config {
    Config { request: RequestKind::Fixed, rate, rounding: Rounding::Down, encoding, ..Config::default() }
}

impl Scene {
    /// A flow alone that starts with three segments and `startup`, behind one router with much room.
    pub(crate) fn alone(rate: Rate, rtt: Duration, startup: Config) -> Self {
        let interval = Duration::from_millis(200);
        Self {
            rate,
            rtt,
            hops: 1,
            limit: QueueLimit::default(),
            access: Rate::from_mbit(if rate > Rate::from_mbit(1000) { 100_000 } else { 10_000 }),
            router: router(startup.encoding, 0.9, interval, interval),
            disabled: None,
            startup,
            initial_window: 3,
            background: None,
        }
    }

    /// Runs flows of this many packets that start at these times; returns what they did.
    fn run(&self, packets: u64, starts: &[Duration]) -> Vec<FlowRecord> {
        let (bench, flows) = self.end(packets, starts, None);
        flows.iter().map(|flow| bench.world.record(*flow).clone()).collect()
    }

    /// When each segment of one flow is first sent, in order.
    pub(crate) fn sequence(&self, packets: u64) -> Vec<Timestamp> {
        let (bench, _) = self.end(packets, &[Duration::ZERO], Some(Box::default()));
        let trace = bench.world.network.trace.as_deref();
        let sent = trace.into_iter().flat_map(|trace| &trace.entries);
        let new = sent.filter(|entry| matches!(entry.event, Event::Sent { retransmission: false, .. }));
        new.map(|entry| entry.time).collect()
    }

    /// The world when all flows are complete, and the flows.
    fn end(&self, packets: u64, starts: &[Duration], trace: Option<Box<Trace>>) -> (Bench, Vec<u32>) {
        let back = LinkConfig::new(self.rate, self.rtt / (2 * self.hops as u64));
        let mut bench = Bench::new(1, self.hops, &LinkConfig { limit: self.limit, ..back.clone() }, &back, self.access);
        bench.world.network.trace = trace;
        let router = |place: usize| match self.disabled {
            Some(disabled) if disabled == place => Router { behaviour: Behaviour::Ignore, ..self.router },
            _ => self.router,
        };
        for hop in 0..self.hops {
            bench.world.network.add_router(bench.chain.forward_link(hop), router(hop), self.rate);
        }
        let profile = Arc::new(Profile { initial_window: self.initial_window, ..Profile::ns2_sack1() });
        if let Some(rate) = self.background {
            let config = bench.flow(&profile, Pattern::ConstantRate { rate, packet: 1500 });
            bench.world.add_flow(config);
        }
        let flows: Vec<u32> = starts
            .iter()
            .map(|start| {
                let mut config = bench.flow(&profile, Pattern::Transfer(Bytes::new(packets * PAYLOAD)));
                // The receiver's link belongs to the last router.
                if let Some(last) = config.route.forward.last() {
                    bench.world.network.add_router(*last, router(self.hops), self.access);
                }
                config.startup = StartupConfig::QuickStart(self.startup);
                config.start = Timestamp::ZERO + *start;
                bench.world.add_flow(config)
            })
            .collect();
        // A flow that does not end has no completion time, which no band contains.
        let limit = Timestamp::ZERO + LIMIT;
        let _ = bench.world.run_while(limit, |world| flows.iter().any(|flow| world.record(*flow).completed.is_none()));
        (bench, flows)
    }
}

/// The approved rate in bytes per second; 0 where nothing was approved.
fn approved(record: &FlowRecord) -> f64 {
    record.approved_rate.map_or(0.0, |rate| rate.bits_per_sec() as f64 / 8.0)
}

/// FCT of every cell within 1 %, approved rates equal.
pub(crate) fn single_flow(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut worst: f64 = 0.0;
    for row in input.rows().filter(|row| row.optional("mode") == Some("qs")) {
        checker.declare(2);
        let rate = row.number_in("rate_bps", 1e3..=1e13)?;
        let encoding = encoding(&row, "qs_rate_function")?;
        let asked = match row.optional("qs_request_Bps") {
            Some(_) => row.number_in("qs_request_Bps", 1.0..=1e12)? * 8.0,
            // ns-2 counts requests in 1024 bytes/s, and asks for the whole link.
            None => (rate / 8.0 / 1024.0).ceil() * 1024.0 * 8.0,
        };
        let startup = startup(encoding, Rate::from_bits_per_sec(asked as u64));
        let initial_window = row.number_in("init_window_pkts", 1.0..=1e6)? as u64;
        let alone = Scene::alone(Rate::from_bits_per_sec(rate as u64), row.rtt(1e-3..=1e6)?, startup);
        let scene = Scene { initial_window, ..alone };
        let packets = row.number_in("size_pkts", 1.0..=1e9)? as u64;
        let cell = format!("{} {} {packets} packets {encoding:?}", scene.rate, scene.rtt);
        for record in &scene.run(packets, &[Duration::ZERO]) {
            let (fct, expected) = (completion_s(record), row.number("fct_rx_s")?);
            worst = worst.max((fct / expected - 1.0).abs());
            checker.check(&cell, "fct_rx_s", fct, within(expected, 0.01));
            let granted = within(row.number("qs_approved_rate_Bps")?, 1e-5);
            checker.check(&cell, "qs_approved_rate_Bps", approved(record), granted);
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
        let scene = Scene {
            rate: Rate::from_bits_per_sec(rate as u64),
            rtt: row.rtt(1e-3..=1e6)?,
            hops: 2,
            limit: QueueLimit { packets: Some(150), bytes: None, counts_in_service: true },
            access: Rate::from_mbit(1000),
            router: router(encoding, share, seconds("state_delay_s")?, seconds("util_interval_s")?),
            disabled: (disabled >= 0.0).then_some(disabled as usize),
            startup: startup(encoding, Rate::from_bits_per_sec(asked as u64)),
            initial_window: 3,
            background: (load > 0.0).then(|| Rate::from_bits_per_sec((rate * load) as u64)),
        };
        let spacing = seconds("spacing_s")?;
        let flows = row.number_in("n_flows", 1.0..=1000.0)? as u64;
        let starts: Vec<Duration> = (0..flows).map(|flow| FIRST_START + spacing * flow).collect();
        let records = scene.run(row.number_in("size_pkts", 1.0..=1e6)? as u64, &starts);
        let case = row.text("case")?;
        let column = "approved_rates_Bps_in_order";
        let number = |text: &str| text.parse().map_err(|_| row.refused(column, text, "numbers with spaces in between"));
        let expected: Vec<f64> = row.text(column)?.split_whitespace().map(number).collect::<Result<_, String>>()?;
        checker.declare(1 + expected.len());
        let ours: Vec<f64> = records.iter().map(approved).filter(|rate| *rate > 0.0).collect();
        checker.check(case, "n_approved", ours.len() as f64, equal(expected.len() as f64));
        for (place, expected) in expected.iter().enumerate() {
            let metric = format!("approved_rate {}", place + 1);
            // The reference has six digits.
            checker.check(case, &metric, ours.get(place).copied().unwrap_or(f64::NAN), within(*expected, 5e-6));
        }
    }
    Ok("grants of the Target algorithm with peak utilization".to_owned())
}
