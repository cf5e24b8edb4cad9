//! `flowstart compare`.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use flowstart_lab::study::Study;
use flowstart_lab::study::scenario::{
    Scenario, default_application, default_arrival, default_move, default_reps, default_seed, default_transport,
};

use crate::command::run::{Results, Sampling, mixed, perform};
use crate::failure::Failure;

/// How flows behave and how often they run; shared with `trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Setup {
    /// Congestion avoidance of the measured flows (default: the transport profile's).
    #[arg(long, value_name = "NAME")]
    avoidance: Option<String>,
    /// Measured flows, where --arrival does not say how many.
    #[arg(long, value_name = "N", default_value_t = 1)]
    flows: u32,
    /// Transport of all flows: model-quic or model-tcp, `:profile=NAME` and policies (`flowstart list transports`); or
    /// quic: the measured flows are the real QUIC stack noq.
    #[arg(long, value_name = "TRANSPORT", default_value_t = default_transport())]
    transport: String,
    /// Do not tell the schemes the client's bandwidth.
    #[arg(long)]
    no_hint: bool,
    #[command(flatten)]
    sampling: Sampling,
}

impl Setup {
    /// A scenario of these options that has no cells yet.
    pub(crate) fn scenario(&self) -> Scenario {
        Scenario {
            avoidance: self.avoidance.clone(),
            flows: self.flows,
            transport: self.transport.clone(),
            reps: self.sampling.reps.unwrap_or(default_reps()),
            seed: self.sampling.seed.unwrap_or(default_seed()),
            hint: !self.no_hint,
            ..Scenario::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(
    override_usage = "\
flowstart compare [OPTIONS] --link <LINK>... --size <SIZE>... --scheme <SCHEME>...
       flowstart compare [OPTIONS] --link <LINK>... --application <APPLICATION>... --scheme <SCHEME>...",
    after_help = "\
Examples:
  flowstart compare --link dsl-fast --size 2MB --scheme slow-start blitzstart:estimate=1.5 --competitor cubic
  flowstart compare --link rate=25mbit,rtt=50ms,buffer=50ms --size 70KB 2MB --scheme slow-start:iw=10 hystart
  flowstart compare --link lte --size 2MB --scheme slow-start hystart --transport model-tcp:profile=tcp-linux --json
  flowstart compare --link lte --application chunks:size=1MB,interval=2s,count=10 --idle keep startup --scheme suss

A spec is name:key=value,key=value. Options that take several values repeat or take space-separated values."
)]
pub(crate) struct Arguments {
    /// Links: presets (`flowstart list links`) or `rate=25mbit,rtt=50ms,buffer=50ms`.
    #[arg(long, required = true, num_args = 1.., value_name = "LINK")]
    link: Vec<String>,
    /// Transfer sizes, such as 70KB or 2MB (KB = 1000 bytes), or a distribution, pareto:mean=100KB,shape=1.2.
    #[arg(long, required_unless_present = "application", num_args = 1.., value_name = "SIZE")]
    size: Vec<String>,
    /// What the measured flows carry: transfer, chunks:size=1MB,interval=2s,count=30 (a video),
    /// page:objects=6,size=50KB,waves=3, or web:sessions=20 (sessions with a connection for each object, for 150 s).
    /// All but the first say their size and take no --size.
    #[arg(long, num_args = 1.., value_name = "APPLICATION", default_values_t = default_application())]
    application: Vec<String>,
    /// Startup schemes, `name:key=value,...`; the first is the baseline.
    #[arg(long, required = true, num_args = 1.., value_name = "SCHEME")]
    scheme: Vec<String>,
    /// Queue disciplines of the bottleneck; oracle, beside slow start alone on a link, signals when it is just full.
    #[arg(long, num_args = 1.., value_name = "AQM", default_values_t = [String::from("taildrop")])]
    aqm: Vec<String>,
    /// What else uses the link: none, bulk, bulk:cubic,count=2, cbr:rate=5mbit, web:load=5mbit,
    /// short:size=70KB,count=8, request-flood:rate=1000, bogus-requests:rate=10, or an avoidance's name.
    #[arg(long, num_args = 1.., value_name = "COMPETITOR", default_values_t = [String::from("none")])]
    competitor: Vec<String>,
    /// When the measured flows start: together, every=100ms, within=10ms or poisson:load=5mbit, each with flows=N, and
    /// with rtts=20ms/80ms/200ms, of which each flow draws one in place of the link's.
    #[arg(long, num_args = 1.., value_name = "ARRIVAL", default_values_t = default_arrival())]
    arrival: Vec<String>,
    /// What idle time does to the windows of the measured flows: keep, rfc5681, rfc2861, linux, rfc7661 or startup (the
    /// scheme runs again); without it what the transport says, for all flows.
    #[arg(long, num_args = 1.., value_name = "POLICY")]
    idle: Vec<String>,
    /// When the measured flows take another path, and which: none, or a link with `at` (from a flow's start), such as
    /// at=2s,rate=5mbit,rtt=80ms or lte,at=2s. They have it for themselves, and nothing is known of it.
    #[arg(long = "move", num_args = 1.., value_name = "MOVE", default_values_t = default_move())]
    moves: Vec<String>,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    results: Results,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let scenario = Scenario {
        link: arguments.link.clone(),
        size: arguments.size.clone(),
        application: arguments.application.clone(),
        scheme: arguments.scheme.clone(),
        aqm: arguments.aqm.clone(),
        competitor: arguments.competitor.clone(),
        arrival: arguments.arrival.clone(),
        idle: arguments.idle.clone(),
        moves: arguments.moves.clone(),
        ..arguments.setup.scenario()
    };
    let mut study = Study::new(scenario, Path::new("."))?;
    study.notes = mixed(&study.scenario, &study.plan, "give --avoidance to choose");
    perform(&study, &arguments.results, false)
}
