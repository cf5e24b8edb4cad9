//! `flowstart compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use flowstart_lab::scenario::{Scenario, default_reps, default_transport};

use crate::command::run::{Job, perform};
use crate::failure::Failure;

/// What to compare; shared with `trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Experiment {
    /// Links: presets (`flowstart list links`) or `rate=25mbit,rtt=50ms,buffer=50ms`.
    #[arg(long, num_args = 1.., value_name = "LINK")]
    pub(crate) link: Vec<String>,
    /// Transfer sizes, such as 70KB or 2MB (KB = 1000 bytes).
    #[arg(long, num_args = 1.., value_name = "SIZE")]
    pub(crate) size: Vec<String>,
    /// Startup schemes, `name:key=value,...`; the first is the baseline.
    #[arg(long, num_args = 1.., value_name = "SCHEME")]
    pub(crate) scheme: Vec<String>,
    /// Congestion avoidance of the measured flows (default: the transport profile's).
    #[arg(long, value_name = "NAME")]
    pub(crate) avoidance: Option<String>,
    /// Queue disciplines of the bottleneck.
    #[arg(long, num_args = 1.., value_name = "AQM", default_values_t = [String::from("taildrop")])]
    pub(crate) aqm: Vec<String>,
    /// What else uses the link: none, bulk, bulk:cubic,count=2, cbr:rate=5mbit, web:load=5mbit, or an avoidance's name.
    #[arg(long, num_args = 1.., value_name = "COMPETITOR", default_values_t = [String::from("none")])]
    pub(crate) competitor: Vec<String>,
    /// Measured flows that start together.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) flows: u32,
    /// Transport of all flows: model-quic or model-tcp, `:profile=NAME` and policies (`flowstart list transports`).
    #[arg(long, value_name = "TRANSPORT", default_value_t = default_transport())]
    pub(crate) transport: String,
    /// Do not tell the schemes the client's bandwidth.
    #[arg(long)]
    pub(crate) no_hint: bool,
    /// Repetitions of each cell.
    #[arg(long, value_name = "N", default_value_t = default_reps())]
    pub(crate) reps: u32,
    /// Master seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Experiment {
    /// The scenario that the options amount to.
    pub(crate) fn scenario(&self) -> Scenario {
        Scenario {
            link: self.link.clone(),
            size: self.size.clone(),
            scheme: self.scheme.clone(),
            avoidance: self.avoidance.clone(),
            aqm: self.aqm.clone(),
            competitor: self.competitor.clone(),
            flows: self.flows,
            transport: self.transport.clone(),
            reps: self.reps,
            seed: self.seed,
            hint: !self.no_hint,
            ..Scenario::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart compare --link dsl-fast --size 2MB --scheme slow-start blitzstart:estimate=1.5 --competitor cubic
  flowstart compare --link rate=25mbit,rtt=50ms,buffer=50ms --size 70KB 2MB --scheme slow-start:iw=10 hystart
  flowstart compare --link lte --size 2MB --scheme slow-start hystart --transport model-tcp:profile=tcp-linux --json

A spec is name:key=value,key=value. Options that take several values repeat or take space-separated values.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    experiment: Experiment,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Folder for flows.csv, flows.parquet, summary.json, manifest.json and report.html; must be new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    for (name, values) in [
        ("--link", &arguments.experiment.link),
        ("--size", &arguments.experiment.size),
        ("--scheme", &arguments.experiment.scheme),
    ] {
        if values.is_empty() {
            return Err(Failure::Input(format!("{name}: at least one is needed; see flowstart compare --help")));
        }
    }
    let scenario = arguments.experiment.scenario();
    let directory = PathBuf::from(".");
    let plan = scenario.plan(&directory)?;
    perform(&Job {
        plan,
        scenario,
        directory,
        jobs: arguments.jobs,
        out: arguments.out.clone(),
        json: arguments.json,
        resume: false,
    })
}
