//! A startup scheme from outside the repository against shipped ones, on two links, with a report.
//!
//! `cargo run --release -p flowstart-lab --example own_scheme [FOLDER]`; then open `FOLDER/report.html`.

use std::path::Path;

use flowstart_core::event::{Ack, DecisionLog, ExitReason};
use flowstart_core::launch::{Continuation, Launch};
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{CustomStartup, Startup, Step};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_core::window::Window;
use flowstart_lab::perform::{Folder, Provenance, perform};
use flowstart_lab::study::{Study, scenario::Scenario};

/// Starts with half of what the client hints, and leaves startup with the first acknowledgement.
#[derive(Clone, Debug)]
struct HalfOfTheHint;

impl Startup for HalfOfTheHint {
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let bdp = path.hint.zip(path.handshake_rtt).map(|(hint, rtt)| hint.bandwidth.amount_in(rtt));
        Launch::window(bdp.map_or(Bytes::new(12_000), |bdp| bdp.scale(0.5)).max(Bytes::new(12_000)))
    }

    fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
        let cwnd = window.cwnd;
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Other("half-of-the-hint") })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = "link = ['dsl-fast', 'lte']\nsize = ['2MB']\ncompetitor = ['cubic']\nreps = 10\n\
                    scheme = ['slow-start', 'blitzstart', 'half-of-the-hint']";
    let own = CustomStartup::new("half-of-the-hint", Box::new(HalfOfTheHint))?;
    let study = Study::with_schemes(Scenario::from_text(question)?, Path::new("."), &[own])?;
    let folder = std::env::args().nth(1).unwrap_or_else(|| "results/own-scheme".to_owned());
    let provenance = Provenance::of_this_process("own_scheme", env!("CARGO_PKG_VERSION"));
    let mut results = Folder::new(folder.clone().into(), false, provenance, &|_, _| None);
    let summary = perform(&study, &mut results, None, 0, &())?.summary;
    println!("{}\n{}\n\nReport: {folder}/report.html", summary.answer, summary.answer_notes.join("\n"));
    Ok(())
}
