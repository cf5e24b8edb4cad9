//! A startup scheme from outside the repository against shipped ones, on two links, with a report.
//!
//! `cargo run --release -p flowstart-lab --example compare_own_scheme [FOLDER]`; then open `FOLDER/report.html`.

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
use flowstart_lab::study::{Study, own::Own, scenario::Scenario};

/// Starts with half of what the client hints, and leaves startup with the first acknowledgement.
#[derive(Clone, Debug)]
struct HalfOfTheHint;

impl Startup for HalfOfTheHint {
    fn launch(&mut self, _: Timestamp, path: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        let bdp = path.hint.zip(path.handshake_rtt).map(|(hint, rtt)| hint.bandwidth.amount_in(rtt));
        Launch::window(bdp.map_or(Bytes::ZERO, |bdp| bdp.scale(0.5)).max(Bytes::new(12_000)))
    }

    fn on_ack(&mut self, _: &Ack, Window { cwnd, .. }: Window, _: bool, _: &RttEstimator) -> Step {
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Other("half-of-the-hint") })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = "link = ['dsl-fast', 'lte']\nsize = ['2MB']\ncompetitor = ['cubic']\nreps = 10\n\
                    scheme = ['slow-start', 'blitzstart', 'half-of-the-hint']";
    let own = CustomStartup::new("half-of-the-hint", Box::new(HalfOfTheHint))?;
    let study =
        Study::with_own(Scenario::from_text(question)?, Path::new("."), &Own { schemes: vec![own], ..Own::default() })?;
    let folder = std::env::args().nth(1).unwrap_or_else(|| "results/own-scheme".to_owned());
    let provenance = Provenance::of_this_process("compare_own_scheme", env!("CARGO_PKG_VERSION"));
    let mut results = Folder::new(folder.clone().into(), false, provenance, &|_, _, _| None);
    println!("{}\n\nReport: {folder}/report.html", perform(&study, &mut results, None, 0, &())?.summary.answer);
    Ok(())
}
