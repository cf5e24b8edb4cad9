//! ns-3's TCP: LinuxReno and CUBIC alone on a link, and CUBIC beside a long CUBIC flow.
//!
//! `validation/ns3/README.md` says how the reference was made.

use std::path::Path;
use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::startup::{StartupConfig, hystart};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

use super::reference::{Row, Table};
use super::{Checker, Verdict};
use flowstart_statistics::median;

/// Simulated time after which a run has failed.
const LIMIT: Duration = Duration::from_millis(1_000_000);
/// When the long flow starts, and how much later the measured flow does before its offset.
const LONG_START_S: f64 = 0.1;
const WARM_UP_S: f64 = 20.0;

const REFERENCE: [(&str, &str); 2] = [
    ("alone.csv", include_str!("../../../validation/ns3/alone.csv")),
    ("competing.csv", include_str!("../../../validation/ns3/competing.csv")),
];

/// `ns3-startup`: alone FCT within 3 % and drops within 15 %, for LinuxReno and for CUBIC; beside a long flow the medians
/// over the phases of the FCT within 25 %.
pub(super) fn startup(reference: Option<&Path>) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let mut competing: Vec<(Experiment, Vec<f64>, Vec<f64>)> = Vec::new();
    let mut worst: f64 = 0.0;
    for table in Table::load(reference, &REFERENCE)? {
        for row in table.rows() {
            // ns-3's NewReno grows by a segment for every acknowledgement and is not modelled; release 3.44 differs.
            let supported = ["LinuxReno", "Cubic"].contains(&row.text("cc")?);
            if !supported || row.optional("ns3_version").is_some_and(|version| version != "dev") {
                continue;
            }
            let experiment = Experiment::read(&row)?;
            let expected = row.number("fct_s")?;
            if row.number("competing")? > 0.0 {
                // Seeds 3 and 4 drew nearly the same phase; the fourth is left out as the reference advises.
                if row.optional("seed") == Some("4") {
                    continue;
                }
                let fct = completion_time(&experiment.competing(row.number_in("start_offset_s", 0.0..=1000.0)?));
                match competing.iter_mut().find(|(known, ..)| *known == experiment) {
                    Some((_, ours, theirs)) => {
                        ours.push(fct);
                        theirs.push(expected);
                    }
                    None => {
                        checker.declare(1);
                        competing.push((experiment, vec![fct], vec![expected]));
                    }
                }
                continue;
            }
            checker.declare(2);
            let record = experiment.alone();
            let fct = completion_time(&record);
            worst = worst.max((fct / expected - 1.0).abs());
            let cell = format!("alone {}", experiment.name());
            checker.within(&cell, "fct_s", fct, expected, 0.03);
            checker.within(&cell, "drops_short", record.dropped as f64, row.number("drops_short")?, 0.15);
        }
    }
    if checker.declared == 0 {
        return Err("ns3-startup: no row has `LinuxReno` or `Cubic` in column `cc` and release `dev`".into());
    }
    for (experiment, ours, theirs) in &competing {
        // A run that does not end must not be left out of the median.
        let ended = ours.iter().all(|fct| fct.is_finite());
        let fct = median(ours).filter(|_| ended).unwrap_or(f64::NAN);
        let expected = median(theirs).unwrap_or(f64::NAN);
        checker.within(&format!("competing {}", experiment.name()), "median fct_s", fct, expected, 0.25);
    }
    let note = format!(
        "alone: largest difference of FCT {:.3} %; beside a long flow: {} cells",
        worst * 100.0,
        competing.len()
    );
    Ok(checker.verdict("ns3-startup", note))
}

/// What the cells of the reference share: the path and the flow that is measured on it.
#[derive(Clone, Debug, PartialEq)]
struct Experiment {
    congestion_control: String,
    hystart: bool,
    rate_mbit: u64,
    rtt_ms: u64,
    buffer: Bytes,
    initial_window: u64,
    size: Bytes,
    min_rto_ms: u64,
}

impl Experiment {
    fn read(row: &Row<'_>) -> Result<Self, String> {
        Ok(Self {
            congestion_control: row.text("cc")?.to_owned(),
            hystart: row.number("hystart")? > 0.0,
            rate_mbit: row.number_in("rate_mbps", 1.0..=1e6)? as u64,
            rtt_ms: row.number_in("rtt_ms", 1.0..=1e5)? as u64,
            buffer: Bytes::new(row.number_in("buf_bytes", 1600.0..=1e12)? as u64),
            initial_window: row.number_in("iw_segments", 1.0..=1e5)? as u64,
            size: Bytes::new(row.number_in("size_bytes", 1.0..=1e12)? as u64),
            min_rto_ms: row.number_in("min_rto_ms", 1.0..=1e5)? as u64,
        })
    }

    fn name(&self) -> String {
        let hystart = if self.hystart { " HyStart" } else { "" };
        format!(
            "{}{hystart} {} Mbit/s {} ms buffer {} IW {} {} min RTO {} ms",
            self.congestion_control,
            self.rate_mbit,
            self.rtt_ms,
            self.buffer,
            self.initial_window,
            self.size,
            self.min_rto_ms
        )
    }

    fn profile(&self) -> Arc<Profile> {
        let mut profile = Profile::ns3();
        profile.initial_window = self.initial_window;
        profile.min_rto = Duration::from_millis(self.min_rto_ms);
        // The profile's own avoidance is CUBIC.
        if self.congestion_control == "LinuxReno"
            && let Some(reno) = profile.avoidance_named("reno").cloned()
        {
            profile.avoidance = reno;
        }
        if self.hystart {
            let config = hystart::Config { variant: Some(hystart::Variant::Ns3), ..hystart::Config::default() };
            profile.startup = StartupConfig::Hystart(config);
        }
        Arc::new(profile)
    }

    /// The dumbbell of the reference, still without hosts.
    fn network(&self, world: &mut World) -> Chain {
        let rate = Rate::from_mbit(self.rate_mbit);
        let back = LinkConfig::new(rate, Duration::from_millis(self.rtt_ms) / 2);
        let limit = QueueLimit { packets: None, bytes: Some(self.buffer), counts_in_service: false };
        Chain::dumbbell(world, &LinkConfig { limit, ..back.clone() }, &back)
    }

    /// Adds a flow between two new hosts.
    fn add_flow(&self, world: &mut World, chain: &Chain, pattern: Pattern, start: Timestamp) -> u32 {
        let access = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
        let route = chain.connect(world, access, access);
        world.add_flow(FlowConfig { start, ..FlowConfig::new(self.profile(), pattern, route) })
    }

    /// The measured flow by itself.
    fn alone(&self) -> FlowRecord {
        let mut world = World::new(1);
        let chain = self.network(&mut world);
        let flow = self.add_flow(&mut world, &chain, Pattern::Transfer(self.size), Timestamp::ZERO);
        finish(world, flow)
    }

    /// The measured flow beside a long one that began earlier.
    fn competing(&self, offset_s: f64) -> FlowRecord {
        let mut world = World::new(1);
        let chain = self.network(&mut world);
        let begin = |seconds: f64| Timestamp::ZERO + Duration::from_secs(seconds);
        self.add_flow(&mut world, &chain, Pattern::Bulk, begin(LONG_START_S));
        let start = begin(LONG_START_S + WARM_UP_S + offset_s);
        let flow = self.add_flow(&mut world, &chain, Pattern::Transfer(self.size), start);
        finish(world, flow)
    }
}

fn finish(mut world: World, flow: u32) -> FlowRecord {
    // A transfer that does not end has no completion time, which no band contains.
    let _ = world.run_flow(flow, Timestamp::ZERO + LIMIT);
    world.record(flow).clone()
}

fn completion_time(record: &FlowRecord) -> f64 {
    match (record.started, record.completed) {
        (Some(started), Some(completed)) => completed.since(started).as_secs(),
        _ => f64::NAN,
    }
}
