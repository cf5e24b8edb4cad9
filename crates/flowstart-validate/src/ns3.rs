//! ns-3's TCP: LinuxReno and CUBIC alone on a link, and CUBIC beside a long CUBIC flow.
//!
//! `validation/ns3/README.md` says how the reference was made.

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::startup::{StartupConfig, hystart};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_statistics::median;

use crate::Input;
use crate::bench::{Bench, completion_s};
use crate::check::{Checker, Column, within};
use crate::reference::{Reference, Row, grouped};

/// Simulated time after which a run has failed.
const LIMIT: Duration = Duration::from_millis(1_000_000);
/// When the long flow starts, and how much later the measured flow does before its offset.
const LONG_START_S: f64 = 0.1;
const WARM_UP_S: f64 = 20.0;

pub(crate) const TABLES: Reference = Reference {
    rows: "has `LinuxReno` or `Cubic` in column `cc` and release `dev`",
    ..Reference::of(&[
        ("alone.csv", validation_file!("ns3/alone.csv")),
        ("competing.csv", validation_file!("ns3/competing.csv")),
    ])
};

/// Alone FCT within 3 % and drops within 15 %; beside a long flow the medians over the phases of the FCT within 25 %.
pub(crate) fn startup(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut competing = Vec::new();
    let mut worst: f64 = 0.0;
    for row in input.rows() {
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
            let fct = completion_s(&experiment.run(Some(row.number_in("start_offset_s", 0.0..=1000.0)?)));
            competing.push((experiment.name(), (fct, expected)));
            continue;
        }
        let record = experiment.run(None);
        let columns: [Column<'_>; 2] = [
            ("fct_s", completion_s(&record), &|fct| within(fct, 0.03)),
            ("drops_short", record.dropped as f64, &|drops| within(drops, 0.15)),
        ];
        worst = worst.max(checker.row(&row, &format!("alone {}", experiment.name()), &columns)?);
    }
    let competing = grouped(competing);
    checker.declare(competing.len());
    for (name, runs) in &competing {
        let (ours, theirs): (Vec<f64>, Vec<f64>) = runs.iter().copied().unzip();
        // A run that does not end must not be left out of the median.
        let ended = ours.iter().all(|fct| fct.is_finite());
        let fct = median(&ours).filter(|_| ended).unwrap_or(f64::NAN);
        let band = within(median(&theirs).unwrap_or(f64::NAN), 0.25);
        checker.check(&format!("competing {name}"), "median fct_s", fct, band);
    }
    let count = competing.len();
    Ok(format!("alone: largest difference of FCT {:.3} %; beside a long flow: {count} cells", worst * 100.0))
}

/// The path and the flow that is measured on it.
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
        let number = |column, least, most| row.number_in(column, least..=most).map(|number| number as u64);
        Ok(Self {
            congestion_control: row.text("cc")?.to_owned(),
            hystart: row.number("hystart")? > 0.0,
            rate_mbit: number("rate_mbps", 1.0, 1e6)?,
            rtt_ms: number("rtt_ms", 1.0, 1e5)?,
            buffer: Bytes::new(number("buf_bytes", 1600.0, 1e12)?),
            initial_window: number("iw_segments", 1.0, 1e5)?,
            size: Bytes::new(number("size_bytes", 1.0, 1e12)?),
            min_rto_ms: number("min_rto_ms", 1.0, 1e5)?,
        })
    }

    fn name(&self) -> String {
        let Self { congestion_control, rate_mbit, rtt_ms, buffer, initial_window, size, min_rto_ms, .. } = self;
        let hystart = if self.hystart { " HyStart" } else { "" };
        format!(
            "{congestion_control}{hystart} {rate_mbit} Mbit/s {rtt_ms} ms buffer {buffer} IW {initial_window} {size} \
             min RTO {min_rto_ms} ms"
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

    /// The measured flow on the dumbbell of the reference, by itself or so many seconds after a long one is
    /// established.
    fn run(&self, offset_s: Option<f64>) -> FlowRecord {
        let limit = QueueLimit { packets: None, bytes: Some(self.buffer), counts_in_service: false };
        let (rate, delay) = (Rate::from_mbit(self.rate_mbit), Duration::from_millis(self.rtt_ms) / 2);
        let link = LinkConfig { limit, ..LinkConfig::new(rate, delay) };
        let mut bench = Bench::new(1, 1, &link, Rate::from_mbit(10_000));
        let profile = self.profile();
        let at = |seconds: f64| Timestamp::ZERO + Duration::from_secs(seconds);
        let mut start = Timestamp::ZERO;
        if let Some(offset_s) = offset_s {
            let mut long = bench.flow(&profile, Pattern::Bulk);
            long.start = at(LONG_START_S);
            bench.world.add_flow(long);
            start = at(LONG_START_S + WARM_UP_S + offset_s);
        }
        let mut measured = bench.flow(&profile, Pattern::Transfer(self.size));
        measured.start = start;
        let flow = bench.world.add_flow(measured);
        // A transfer that does not end has no completion time, which no band contains.
        let _ = bench.world.run_flow(flow, Timestamp::ZERO + LIMIT);
        bench.world.record(flow).clone()
    }
}
