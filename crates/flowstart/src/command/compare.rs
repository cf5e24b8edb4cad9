//! `flowstart compare`.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use flowstart_core::spec::names;
use flowstart_lab::study::Study;
use flowstart_lab::study::scenario::{Scenario, default_reps, default_seed};
use flowstart_lab::study::world::SIMULATOR;

use crate::command::axes::Axes;
use crate::command::run::{Results, Sampling, mixed, note_machine, perform};
use crate::failure::Failure;

/// How flows behave and how often they run; shared with `trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Setup {
    /// Number of measured flows. --arrival may say another one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    flows: u32,
    /// Hide the client's bandwidth from schemes.
    #[arg(long)]
    no_hint: bool,
    /// Hide all that is known of paths before.
    ///
    /// Hints, saved paths, oracle and interface.
    #[arg(long)]
    no_knowledge: bool,
    #[command(flatten)]
    sampling: Sampling,
}

impl Setup {
    /// A scenario with these options, without cells.
    pub(crate) fn scenario(&self) -> Scenario {
        Scenario {
            flows: self.flows,
            reps: self.sampling.reps.unwrap_or(default_reps()),
            seed: self.sampling.seed.unwrap_or(default_seed()),
            hint: !self.no_hint,
            unknown: self.no_knowledge,
            noise: true,
            ..Scenario::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(
    override_usage = "\
flowstart compare [OPTIONS] --link <LINK>... --size <SIZE>...
                         --scheme <SCHEME>...
       flowstart compare [OPTIONS] --link <LINK>... --application <KIND>...
                         --scheme <SCHEME>...",
    after_long_help = "\
Examples:
  flowstart compare --link dsl-fast --size 2MB \\
    --scheme slow-start blitzstart:estimate=1.5 --competitor cubic
  flowstart compare --link rate=25mbit,rtt=50ms,buffer=50ms \\
    --size 70KB 2MB --scheme slow-start:iw=10 hystart
  flowstart compare --link lte --size 2MB --scheme slow-start hystart \\
    --transport model-tcp:profile=tcp-linux --json
  flowstart compare --link lte \\
    --application chunks:size=1MB,interval=2s,count=10 --idle keep startup \\
    --scheme suss
  flowstart compare --link lte --size 2MB --transport both \\
    --scheme slow-start jump-start

A spec is name:key=value,key=value. Case does not count in names and keys, and _ is -. Options that take several \
values repeat or take space-separated values. Rates are 20mbit, 20Mbit/s, 20Mbps or 20M; times 50ms, 1.5s or 200us. \
`flowstart list schemes blitzstart` shows everything about one scheme, and so do the other lists."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    axes: Axes<true>,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    results: Results,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut scenario = arguments.setup.scenario();
    arguments.axes.write(&mut scenario);
    // A machine's own noise takes the place of what stands for it, also in the simulator beside it.
    scenario.noise &= scenario.world.iter().all(|world| names::is_same(world.trim(), SIMULATOR));
    let mut study = Study::new(scenario, Path::new("."))?;
    note_machine(&mut study)?;
    arguments.results.check_folder(&study.plan)?;
    study.notes = mixed(&study.scenario, &study.plan, "give --avoidance to choose");
    perform(&study, &arguments.results)
}
