//! `flowstart perf quick-start-router`: what an approval costs a router, in the kernel's fast path and in this program.

use clap::Args;

#[cfg(all(target_os = "linux", feature = "tcp"))]
mod measured;

#[derive(Debug, Args)]
#[cfg_attr(
    not(all(target_os = "linux", feature = "tcp")),
    allow(dead_code, reason = "the command is refused without the feature")
)]
pub(super) struct Arguments {
    /// Packets of a measurement.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    packets: u32,
    /// Measurements of each kind of packet, in turn.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=1000))]
    repetitions: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[cfg(not(all(target_os = "linux", feature = "tcp")))]
pub(super) fn main(_: &Arguments) -> Result<std::process::ExitCode, crate::failure::Failure> {
    Err(crate::failure::Failure::Input(
        "perf quick-start-router: it takes Linux and a build with `--features tcp`".into(),
    ))
}

#[cfg(all(target_os = "linux", feature = "tcp"))]
pub(super) use measured::main;
