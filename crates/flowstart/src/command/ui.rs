//! `flowstart ui`.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

use clap::Args;
use flowstart_lab::perform::Provenance;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_report::PublishedTable;
use flowstart_ui::{Folder, Guard, Lab};
use serde_json::json;

use crate::command::run::jobs;
use crate::failure::Failure;
use crate::interruption::Interruptions;
use crate::output::print;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart ui
  flowstart ui --results results
  flowstart ui --listen 0.0.0.0:8080

Prints the address of the page when it is ready. The page shows a finished comparison; a change of link, scheme, size, \
queue, other traffic or transport asks again, and the runs appear as they are simulated. The address of a page holds \
the whole question, with the options of `flowstart compare` as names; a study file holds it too. Everything is inside \
the program: pages load nothing from elsewhere.

On a loopback address everybody on this machine may ask. On any other one a token is needed, which the printed address \
has; whoever has it may let this machine compute. A question has at most 1000 repetitions, 100 MB for a flow and 40 GB \
in all, and names no file. SIGINT and SIGTERM end it.")]
pub(crate) struct Arguments {
    /// Where to answer, ADDRESS:PORT; port 0 is any free one. Other addresses than loopback need the printed token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = socket_address)]
    listen: SocketAddr,
    /// Show the results and records below this folder, and nothing outside of it.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Threads for the runs of a question; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
    /// Print the address as JSON.
    #[arg(long)]
    json: bool,
}

fn socket_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "use an address and a port such as 127.0.0.1:8080 or [::1]:8080")
}

/// Published numbers beside results.
fn published(scenario: &Scenario, plan: &Plan, rows: &[Row], summary: &Summary) -> Option<PublishedTable> {
    flowstart_validate::published_table(scenario, plan, rows, summary)
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let results = arguments.results.as_deref().map(Folder::open).transpose();
    let results = results.map_err(|error| Failure::Input(format!("--results {error}")))?;
    let unusable = |error: std::io::Error| Failure::Input(format!("--listen `{}`: {error}", arguments.listen));
    let listener = TcpListener::bind(arguments.listen).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let guard = match address.ip().to_canonical().is_loopback() {
        true => Guard::Loopback,
        false => Guard::Token(flowstart_ui::token().map_err(Failure::Other)?),
    };
    let url = match &guard {
        Guard::Loopback => format!("http://{address}/"),
        Guard::Token(token) => {
            note!("whoever has the token may let this machine compute, and see the results");
            format!("http://{address}/?token={token}")
        }
    };
    let Provenance { version, host, .. } = Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION"));
    let lab = Lab::new(&version, &host, arguments.jobs, published, results);
    let lab = lab.map_err(|error| Failure::Other(error.to_string()))?;
    let json = arguments.json;
    let ready =
        move || if json { print(&format!("{}\n", json!({ "listening": url }))) } else { print(&format!("{url}\n")) };
    // A failure before the first question ends the server.
    let (failed, failure) = mpsc::channel();
    let shutdown = async move {
        let ended = match Interruptions::caught() {
            Ok(interruptions) => ready().map(|()| interruptions),
            Err(error) => Err(Failure::Other(format!("signals cannot be received: {error}"))),
        };
        match ended {
            Ok(mut interruptions) => interruptions.next().await,
            Err(failure) => drop(failed.send(failure)),
        }
    };
    flowstart_ui::serve(listener, lab, guard, shutdown).map_err(|error| Failure::Other(error.to_string()))?;
    failure.try_recv().map_or(Ok(ExitCode::SUCCESS), Err)
}
