//! The `flowstart` command: a file per subcommand in [`command`].

// `eprintln!` panics when stderr cannot be written, as on a full disk; `tell!` does not.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

#[macro_use]
mod attention;

mod command;
mod failure;
mod help;
mod interruption;
#[cfg(target_os = "linux")]
mod metrics_listener;
mod new_folder;
mod output;
mod quic;
#[cfg(target_os = "linux")]
mod testbed;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use attention::Attention;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;

/// Compare how network transfers start: the effect of each startup scheme on a transfer and on everyone on its link.
#[derive(Debug, Parser)]
#[command(
    name = "flowstart",
    version,
    about,
    max_term_width = 80,
    after_long_help = "\
Examples:
  flowstart compare --link dsl-fast --size 2MB \\
    --scheme slow-start blitzstart --competitor cubic
  flowstart run blitzstart-table1 --out results/table1
  flowstart report results/before results/after --out change.html
  flowstart trace --link lte --size 2MB --scheme hystart \\
    --competitor cubic --out results/trace
  flowstart explain --link lte --size 2MB --scheme slow-start hystart \\
    --competitor cubic
  flowstart list schemes
  flowstart list schemes blitzstart
  flowstart oracle serve --store paths.redb
  flowstart serve --root site --self-signed --startup blitzstart
  flowstart get --insecure https://localhost:4433/generate/2MB

Exit code: 0 done, 1 a run failed or a validation missed, 2 bad input."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    attention: Attention,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare startup schemes over links, sizes, AQMs and competitors.
    Compare(command::compare::Arguments),
    /// Run a scenario file.
    Run(command::run::Arguments),
    /// Write the page of a results folder again, or compare two folders: before and after.
    Report(command::report::Arguments),
    /// Look for the settings in which a startup scheme is worst.
    Break(command::break_scheme::Arguments),
    /// Judge a startup scheme beside all others on cells that were drawn before.
    Judge(command::judge::Arguments),
    /// Recommend a startup scheme for a fleet of transfers.
    Recommend(command::recommend::Arguments),
    /// Write down the packets of one run.
    Trace(command::trace::Arguments),
    /// Break the completion time of one run into causes.
    Explain(command::explain::Arguments),
    /// List schemes, AQMs, links and everything else that can be chosen.
    List(command::list::Arguments),
    /// Share and query past measurements of paths.
    Oracle(command::oracle::Arguments),
    /// Serve files and generated objects over HTTP/3.
    Serve(Box<command::serve::Arguments>),
    /// Get a URL over HTTP/3 and say how long it took.
    Get(command::get::Arguments),
    /// Pass UDP datagrams through a link of the lab, in real time.
    #[cfg(target_os = "linux")]
    Relay(command::relay::Arguments),
    /// Pass packets of IP through a link of the lab, in real time (Linux, root).
    Router(command::router::Arguments),
    /// Run a server and a client of your own over a link of the lab, in namespaces of their own (Linux, root).
    #[cfg(target_os = "linux")]
    Testbed(command::testbed::Arguments),
    /// Give TCP of this host a startup scheme (Linux, root).
    Tcp(command::tcp::Arguments),
    /// Pass UDP datagrams, and lower the rate that SCONE packets advise.
    #[cfg(target_os = "linux")]
    SconeElement(command::scone_element::Arguments),
    /// Measure throughput over QUIC.
    Perf(command::perf::Arguments),
    /// Compare the schemes of real connections by a server's qlog files or metrics.
    Analyze(command::analyze::Arguments),
    /// Say what a scheme would have decided on a recorded connection.
    Replay(command::replay::Arguments),
    /// Plan a trial of schemes on real connections.
    Trial(command::trial::Arguments),
    /// Write vectors by which ports of the schemes are checked.
    Conformance(command::conformance::Arguments),
    /// Ask the lab in the browser, and look at results.
    Ui(command::ui::Arguments),
    /// Check this build against published figures and reference runs.
    Validate(command::validate::Arguments),
    /// Write the completions of a shell to stdout.
    Completions(command::completions::Arguments),
    /// Write the manual: the main page to stdout, or all pages into a folder.
    Man(command::man::Arguments),
}

fn main() -> ExitCode {
    let command = help::with_short_help(Arguments::command());
    let matches = command.clone().try_get_matches();
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(other) => return tell_instead(&other),
    };
    arguments.attention.apply();
    let result = match &arguments.command {
        Command::Compare(arguments) => command::compare::main(arguments),
        Command::Run(arguments) => command::run::main(arguments),
        Command::Report(arguments) => command::report::main(arguments),
        Command::Break(arguments) => command::break_scheme::main(arguments),
        Command::Judge(arguments) => command::judge::main(arguments),
        Command::Recommend(arguments) => command::recommend::main(arguments),
        Command::Trace(arguments) => command::trace::main(arguments),
        Command::Explain(arguments) => command::explain::main(arguments),
        Command::List(arguments) => command::list::main(arguments),
        Command::Oracle(arguments) => command::oracle::main(arguments),
        Command::Serve(arguments) => command::serve::main(arguments),
        Command::Get(arguments) => command::get::main(arguments),
        #[cfg(target_os = "linux")]
        Command::Relay(arguments) => command::relay::main(arguments),
        Command::Router(arguments) => command::router::main(arguments),
        Command::Tcp(arguments) => command::tcp::main(arguments),
        #[cfg(target_os = "linux")]
        Command::Testbed(arguments) => command::testbed::main(arguments),
        #[cfg(target_os = "linux")]
        Command::SconeElement(arguments) => command::scone_element::main(arguments),
        Command::Perf(arguments) => command::perf::main(arguments),
        Command::Analyze(arguments) => command::analyze::main(arguments),
        Command::Replay(arguments) => command::replay::main(arguments),
        Command::Trial(arguments) => command::trial::main(arguments),
        Command::Conformance(arguments) => command::conformance::main(arguments),
        Command::Ui(arguments) => command::ui::main(arguments),
        Command::Validate(arguments) => command::validate::main(arguments),
        Command::Completions(arguments) => command::completions::main(arguments, command),
        Command::Man(arguments) => command::man::main(arguments, command),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Tells what is no command to do: help, the version, or why the arguments cannot be read.
fn tell_instead(told: &clap::Error) -> ExitCode {
    let written = told.print().and_then(|()| std::io::stdout().flush());
    match written {
        Err(error) if !told.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            Failure::Other(format!("stdout: {error}")).report()
        }
        _ => ExitCode::from(told.exit_code() as u8),
    }
}
