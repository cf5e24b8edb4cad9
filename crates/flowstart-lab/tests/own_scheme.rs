//! Schemes from outside the repository in studies.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

use flowstart_core::event::{Ack, DecisionLog, ExitReason};
use flowstart_core::launch::{Continuation, Launch};
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{CustomStartup, Startup, StartupContext, Step};
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::Window;
use flowstart_lab::perform::{Folder, Performed, Provenance, page, perform};
use flowstart_lab::results::stored::Stored;
use flowstart_lab::study::Study;
use flowstart_lab::study::own::Own;
use flowstart_lab::study::scenario::Scenario;

/// Slow start up to a number of segments.
#[derive(Clone, Debug)]
struct UpTo {
    segments: u64,
    segment: Bytes,
}

impl UpTo {
    fn boxed(segments: u64) -> Box<dyn Startup> {
        Box::new(Self { segments, segment: Bytes::ZERO })
    }
}

impl Startup for UpTo {
    fn set_context(&mut self, context: StartupContext) {
        self.segment = context.segment;
    }

    fn launch(&mut self, _: Timestamp, _: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        Launch::window(self.segment * 10)
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, _: bool, _: &RttEstimator) -> Step {
        let (cwnd, most) = (window.cwnd + ack.bytes, self.segment * self.segments);
        match cwnd < most {
            true => Step::Continue { cwnd },
            false => Step::Exit(Continuation { cwnd: most, ssthresh: most, reason: ExitReason::Other("up-to") }),
        }
    }
}

/// What a scheme should never say: a window of nothing or without end, a rate of nothing or without end, or that it is
/// always due. It never ends startup, not even after a loss. Its first windows are of a byte at least: nothing is
/// refused.
#[derive(Clone, Debug)]
struct Absurd {
    acks: u32,
    cwnd: Bytes,
    rate: Option<Rate>,
    due: Timestamp,
}

impl Startup for Absurd {
    fn launch(&mut self, _: Timestamp, _: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        Launch { pacing_rate: self.rate, ..Launch::window(self.cwnd.max(Bytes::new(1))) }
    }

    fn on_ack(&mut self, _: &Ack, _: Window, _: bool, _: &RttEstimator) -> Step {
        self.acks = self.acks.saturating_add(1);
        Step::Continue { cwnd: if self.acks > 1 { self.cwnd } else { self.cwnd.max(Bytes::new(1)) } }
    }

    fn on_congestion(&mut self, _: &flowstart_core::event::Loss, _: Window, _: Bytes) -> Step {
        Step::Continue { cwnd: self.cwnd }
    }

    fn on_recovered(&mut self, _: Timestamp, _: Window) -> Step {
        Step::Continue { cwnd: self.cwnd }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn next_wakeup(&self) -> Timestamp {
        self.due
    }
}

fn scenario(size: &str, schemes: &str, transport: &str) -> Scenario {
    let text = format!(
        "link = ['rate=10mbit,rtt=40ms,buffer=1bdp,access_jitter=1ms/1ms']\nsize = ['{size}']\nscheme = [{schemes}]\n\
         transport = '{transport}'\nreps = 3"
    );
    Scenario::from_text(&text).unwrap()
}

fn own_scheme(segments: u64) -> Own {
    let scheme = CustomStartup::new("up-to-30", UpTo::boxed(segments)).unwrap();
    Own { schemes: vec![scheme], ..Own::default() }
}

fn performed(study: &Study) -> Performed {
    perform(study, &mut (), None, 1, &()).unwrap()
}

#[test]
fn an_own_scheme_stands_beside_the_shipped_ones_in_all_results() {
    let own = own_scheme(30);
    let schemes = "'slow-start', 'up-to-30', 'up-to-30:avoidance=cubic'";
    let study = Study::with_own(scenario("300KB", schemes, "model-quic"), Path::new("."), &own).unwrap();
    let folder = std::env::temp_dir().join(format!("flowstart-own-scheme-{}", std::process::id()));
    let provenance = Provenance { command: vec!["trial".into()], ..Provenance::default() };
    let mut results = Folder::new(folder.clone(), false, provenance, &|_, _, _| None);
    let first = perform(&study, &mut results, None, 2, &()).unwrap();
    let cell = &first.summary.cells[1];
    assert!(cell.id.ends_with("/300KB/up-to-30/none"), "{}", cell.id);
    assert_eq!((cell.scheme.as_str(), cell.failed, cell.exit_reasons.get("up-to")), ("up-to-30", 0, Some(&3)));
    assert_eq!(cell.resolved["scheme"]["name"], "up-to-30");
    let said = format!("{} {}", first.summary.answer, first.summary.answer_notes.join(" "));
    assert!(cell.vs_baseline.is_some() && said.contains("up-to-30"), "{said}");
    assert_eq!(first.summary.cells[2].avoidance, "cubic");
    for file in ["report.html", "summary.json", "flows.csv", "manifest.json"] {
        assert!(std::fs::read_to_string(folder.join(file)).unwrap().contains("up-to-30"), "{file}");
    }
    let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(html.contains("up-to-30 is from outside flowstart") && !html.contains("flowstart trace --cell"));
    drop(results);
    // Only a program that has the scheme reads the folder again.
    let refused = Stored::read(&folder).unwrap_err();
    assert!(refused.contains("up-to-30 is of the program that wrote it, `trial`"), "{refused}");
    let stored = Stored::read_with(&folder, &own).unwrap();
    assert!(page(&stored, &|_, _, _| None, 1, &()).unwrap().contains("up-to-30"));
    std::fs::remove_dir_all(&folder).unwrap();
    // Every run begins with a clone of the prototype, so runs repeat.
    assert_eq!(performed(&study).rows, first.rows);
    // The state of the prototype is a part of the experiment.
    let other = own_scheme(31);
    let other = Study::with_own(study.scenario.clone(), Path::new("."), &other).unwrap();
    assert_ne!(other.plan, study.plan);
}

#[test]
fn names_with_another_meaning_and_keys_are_refused() {
    let refused = |schemes: &str, names: &[&'static str]| {
        let own = names.iter().map(|name| CustomStartup::new(name, UpTo::boxed(30)).unwrap());
        let own = Own { schemes: own.collect(), ..Own::default() };
        let study = Study::with_own(scenario("300KB", schemes, "model-quic"), Path::new("."), &own);
        study.map(|_| ()).unwrap_err().to_string()
    };
    assert!(CustomStartup::new("slow-start", UpTo::boxed(30)).is_err());
    assert!(refused("'stack'", &["stack"]).contains("stack"));
    assert!(refused("'mine'", &["mine", "mine"]).contains("names two of them"));
    assert!(refused("'mine:iw=3'", &["mine"]).contains("iw"));
    let unknown = refused("'others'", &["mine"]);
    assert!(unknown.contains("list schemes") && unknown.contains("mine"), "{unknown}");
}

#[test]
fn no_scheme_makes_a_run_hang_or_panic() {
    let endless = [Timestamp::NEVER, Timestamp::ZERO];
    let rates = [None, Some(Rate::ZERO), Some(Rate::from_bits_per_sec(u64::MAX))];
    let mut own = Own::default();
    let mut names = Vec::new();
    for (place, cwnd) in [Bytes::ZERO, Bytes::MAX].into_iter().enumerate() {
        for (other, rate) in rates.into_iter().enumerate() {
            for (third, due) in endless.into_iter().enumerate() {
                let name: &'static str = format!("absurd-{place}-{other}-{third}").leak();
                own.schemes.push(CustomStartup::new(name, Box::new(Absurd { acks: 0, cwnd, rate, due })).unwrap());
                names.push(format!("'{name}'"));
            }
        }
    }
    let transports: &[&str] =
        if cfg!(feature = "quic") { &["model-quic", "model-tcp", "quic"] } else { &["model-quic", "model-tcp"] };
    for transport in transports {
        let scenario = Scenario { reps: 1, ..scenario("60KB", &names.join(", "), transport) };
        let study = match Study::with_own(scenario, Path::new("."), &own) {
            Ok(study) => study,
            Err(error) => panic!("{transport}: {error}"),
        };
        for cell in performed(&study).summary.cells {
            assert_eq!((cell.n, cell.failed), (1, 0), "{transport}: {}", cell.id);
            // The smallest window is a segment: 60 KB take 45 round trips of 40 ms and the handshake.
            let fct = cell.metrics["fct_ms"].mean.unwrap();
            assert!(fct < 60_000.0, "{transport}: {} takes {fct} ms", cell.id);
        }
    }
}
