//! What each scheme does in a cell: all schemes in forks of the same world, so that comparisons are paired.
//!
//! A scheme that names no congestion avoidance gets the same as the others; what a transport does by itself keeps its
//! own.

use std::path::Path;
use std::time::Instant;

use flowstart_core::needs::Needs;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_lab::results::flows::Row;
use flowstart_lab::run::newcomers::Finished;
use flowstart_lab::run::outcome::FlowOutcome;
use flowstart_lab::run::repetition::{CellRun, Ended, Look, repetition};
use flowstart_lab::spec::{InputError, STACK, scheme};
use flowstart_lab::study::Study;
use flowstart_lab::study::plan::{Cell, Plan, Setting};
use flowstart_lab::study::scenario::Scenario;
use flowstart_sim::observe::trace::{Entry, Event, Observer, Trace};
use flowstart_sim::world::World;
use rayon::prelude::*;

use super::runs::{CellResult, LeftOut, Runs};
use super::sets::Drawn;

/// The time from the start in which the others' goodput counts.
pub const HARM_TIME: Duration = Duration::from_millis(10_000);

/// The congestion avoidance of schemes that name none.
const AVOIDANCE: &str = "cubic";

/// The schemes and repetitions of a tournament.
#[derive(Clone, Debug)]
pub struct Question {
    /// The scheme in question, as `--scheme` takes it.
    pub scheme: String,
    /// The schemes beside which it is judged.
    pub rivals: Vec<String>,
    /// Repetitions of each cell.
    pub reps: u32,
    /// The master seed.
    pub seed: u64,
}

/// Every scheme of this program with its defaults, and what the transport does by itself.
pub fn all_schemes() -> Vec<String> {
    StartupConfig::NAMES.iter().copied().chain([STACK]).map(str::to_owned).collect()
}

impl Question {
    /// All schemes, the one in question last.
    pub fn schemes(&self) -> Vec<String> {
        let others = self.rivals.iter().filter(|rival| **rival != self.scheme);
        others.chain([&self.scheme]).cloned().collect()
    }
}

/// A scheme with its congestion avoidance, as `--scheme` takes it.
fn written(scheme: &str) -> String {
    if scheme == STACK || scheme.contains("avoidance=") {
        return scheme.to_owned();
    }
    format!("{scheme}{}avoidance={AVOIDANCE}", if scheme.contains(':') { ',' } else { ':' })
}

/// Why a cell gives a scheme nothing of what makes it another one than slow start; `None`: it does.
fn lacks(cell: &Drawn, text: &str) -> Option<String> {
    let read = scheme("scheme", text, &StartupConfig::SlowStart(Default::default())).ok()?;
    let needs = read.value.needs();
    if needs.contains(Needs::APPROVAL) && !cell.link.contains("quick_start=") {
        return Some("no router of the link approves rates".into());
    }
    if needs.contains(Needs::SHARED_WINDOW) && cell.flows < 2 {
        return Some("there is no other transfer of the same server".into());
    }
    None
}

/// Why a scheme is refused, without what would not be.
fn plainly(error: &InputError) -> String {
    error.problem.split("; allowed").next().unwrap_or_default().to_owned()
}

/// What a cell can run.
struct Runnable {
    study: Study,
    /// The schemes of the study, as they were asked for.
    schemes: Vec<String>,
}

/// The study of a cell with the schemes that it can have, and those that it cannot.
fn study(cell: &Drawn, question: &Question, folder: &Path) -> Result<(Option<Runnable>, Vec<LeftOut>), InputError> {
    let with = |schemes: &[String]| {
        let schemes = schemes.iter().map(|scheme| written(scheme)).collect();
        Study::new(cell.scenario(schemes, question.reps, question.seed), folder)
    };
    // What is wrong with the cell itself is no scheme's lack; every transport runs the plainest one.
    with(&StartupConfig::NAMES[..1].iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for scheme in question.schemes() {
        let one = std::slice::from_ref(&scheme);
        match lacks(cell, &scheme).or_else(|| with(one).err().map(|error| plainly(&error))) {
            None => kept.push(scheme),
            Some(why) => left_out.push(LeftOut { scheme, why }),
        }
    }
    let study = if kept.is_empty() { None } else { Some(Runnable { study: with(&kept)?, schemes: kept }) };
    Ok((study, left_out))
}

/// A cell with the schemes that it can have, as `flowstart run` reads it. Recordings are in `folder`.
///
/// # Errors
///
/// What cannot be used, or that the cell has none of the schemes.
pub fn scenario(cell: &Drawn, question: &Question, folder: &Path) -> Result<String, String> {
    let (study, left_out) = study(cell, question, folder).map_err(|error| error.to_string())?;
    let why = || left_out.first().map_or(String::new(), |one| format!("{}: {}", one.scheme, one.why));
    study.ok_or_else(why)?.study.to_toml()
}

/// Refuses schemes that cannot be read at all, before any cell runs.
///
/// # Errors
///
/// The first that cannot.
pub fn check(question: &Question) -> Result<(), InputError> {
    for text in question.schemes() {
        let scenario = Scenario {
            link: vec!["rate=10mbit,rtt=50ms".into()],
            size: vec!["70KB".into()],
            scheme: vec![written(&text)],
            flows: 1,
            reps: question.reps,
            seed: question.seed,
            ..Scenario::default()
        };
        Study::new(scenario, Path::new("."))?;
    }
    Ok(())
}

/// Runs a cell. Recordings are in `folder`.
///
/// # Errors
///
/// What of the cell cannot be used, such as a recording that is not there.
pub fn perform(cell: &Drawn, question: &Question, folder: &Path) -> Result<CellResult, InputError> {
    let (study, left_out) = study(cell, question, folder)?;
    let mut result = CellResult { cell: cell.name.clone(), text: cell.line(), left_out, ..CellResult::default() };
    let Some(Runnable { study: Study { plan, .. }, schemes }) = study else { return Ok(result) };
    result.schemes = schemes.into_iter().map(|scheme| Runs { scheme, ..Runs::default() }).collect();
    let is_watched = cell.traits.is_alone() && cell.traits.is_plain();
    let looking = Looking { plan: &plan, holds: plan.links[0].holds().filter(|_| is_watched) };
    // A cell without another axis is one setting.
    let Some(setting) = plan.settings().first().copied() else { return Ok(result) };
    let timed = |rep: u32| {
        let began = Instant::now();
        (repetition(&plan, setting, rep, &looking), began.elapsed().as_secs_f64())
    };
    let all: Vec<(Vec<CellRun<Option<f64>>>, f64)> = (0..plan.reps).into_par_iter().map(timed).collect();
    for ((runs, seconds), rep) in all.into_iter().zip(0..) {
        result.seconds += seconds;
        for run in runs {
            add(&plan, &run, rep, &mut result);
        }
    }
    Ok(result)
}

/// Adds a repetition of a scheme.
fn add(plan: &Plan, run: &CellRun<Option<f64>>, rep: u32, result: &mut CellResult) {
    let rows: Vec<Row> = run.outcomes.iter().map(|outcome| Row::new(plan, &run.cell, rep, outcome)).collect();
    let Some((joint, runs)) = Row::of_repetition(&rows).zip(result.schemes.get_mut(run.cell.scheme)) else { return };
    result.limit_ms = joint.ideal_fct_ms;
    runs.fct_ms.push(joint.fct_ms.filter(|_| !rows.iter().any(Row::failed)));
    runs.sent_twice.push(joint.inflation);
    if let Some(others) = run.others {
        let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6;
        runs.others_mbit.push(mbit(others.with.delivered));
        runs.without_mbit.push(mbit(others.without.delivered));
    }
    runs.worst_mos.extend(joint.media_worst_1s_mos);
    runs.beyond_packets.extend(run.seen);
}

/// Counts what leaves in the first RTT of a transfer.
#[derive(Clone, Debug, Default)]
struct Launch {
    flow: Option<(u32, Duration)>,
    began: Option<Timestamp>,
    packets: u64,
}

impl Observer for Launch {
    fn on_event(&mut self, entry: &Entry) {
        let (Event::Sent { .. }, Some((flow, rtt))) = (&entry.event, self.flow) else { return };
        if entry.flow != flow {
            return;
        }
        let began = *self.began.get_or_insert(entry.time);
        self.packets += u64::from(entry.time < began + rtt);
    }

    fn on_measured(&mut self, flows: &[(u32, Duration)]) {
        self.flow = flows.first().copied();
    }

    fn fork(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(self.clone()))
    }
}

/// Looks at the others 10 s after the start, and at the launch where it is known what path and buffer hold.
struct Looking<'a> {
    plan: &'a Plan,
    holds: Option<Bytes>,
}

impl Look for Looking<'_> {
    /// Packets beyond that.
    type Seen = Option<f64>;

    fn begins(&self, _: Setting, _: u32) -> bool {
        self.holds.is_some()
    }

    fn begin(&self, _: Setting, _: u32, _: &World, _: Timestamp) -> Trace {
        Trace::told_to(Launch::default())
    }

    fn goes_on(&self, _: &Cell, _: u32, _: &mut Trace) -> bool {
        self.holds.is_some()
    }

    fn ended(&self, cell: &Cell, _: u32, finished: &mut Finished, _: &[FlowOutcome]) -> Option<f64> {
        let trace = finished.world.network.trace.take()?;
        let launch: Launch = trace.into_observer()?;
        let profile = self.plan.profile(cell);
        let packet = f64::from(profile.data_wire_size(profile.payload));
        let holds = self.holds?.get() as f64 / packet;
        Some((launch.packets as f64 - holds).max(0.0))
    }

    fn settled(&self, _: &Cell, _: u32, _: &Finished, _: Ended, _: &mut Option<f64>) {}

    fn waits(&self, _: &Cell, _: u32) -> bool {
        false
    }

    fn compares_after(&self) -> Option<Duration> {
        Some(HARM_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tournament::knowledge::Kind;
    use crate::tournament::sets::{Others, Traits, Transport};

    fn cell(link: &str, competitor: &str, flows: u32, knowledge: Kind) -> Drawn {
        Drawn {
            name: "some-001".into(),
            traits: Traits {
                knowledge,
                others: if competitor == "none" { Others::Nobody } else { Others::Established("cubic") },
                transport: Transport::ModelQuic,
                is_policed: false,
                is_varying: false,
                is_aggregated: false,
                rtt_ms: 20.0,
            },
            link: link.into(),
            aqm: "taildrop".into(),
            size: "70KB".into(),
            competitor: competitor.into(),
            transport: "model-quic".into(),
            flows,
        }
    }

    fn question(scheme: &str, rivals: &[&str]) -> Question {
        let rivals = rivals.iter().map(|rival| (*rival).to_owned()).collect();
        Question { scheme: scheme.into(), rivals, reps: 2, seed: 1 }
    }

    fn run(cell: &Drawn, question: &Question) -> CellResult {
        perform(cell, question, Path::new(".")).unwrap()
    }

    #[test]
    fn a_false_launch_is_counted_beyond_path_and_buffer() {
        // 10 Mbit/s for 20 ms are 25 kB, and the buffer holds 15 kB more: 40 kB. 70 kB are paced over 2 ms.
        let alone = cell("rate=10mbit,rtt=20ms,buffer=10pkt,hint=280mbit", "none", 1, Kind::FalseHint);
        let result = run(&alone, &question("blitzstart", &["slow-start", "quick-start", "ensemble-sharing"]));
        let told: Vec<&str> = result.left_out.iter().map(|one| &*one.scheme).collect();
        assert_eq!(told, ["quick-start", "ensemble-sharing"], "{:?}", result.left_out);
        let [slow, fast] = &result.schemes[..] else { panic!("{result:?}") };
        assert_eq!((slow.problem(2), fast.problem(2)), (None, None));
        assert_eq!(slow.most_beyond(), Some(0.0));
        assert!((10.0..40.0).contains(&fast.most_beyond().unwrap()), "{fast:?}");
        assert!(slow.harm_mbit().is_none() && slow.worst_mos.is_empty());
        assert!(result.limit_ms > 0.0 && result.seconds > 0.0);
    }

    #[test]
    fn schemes_have_one_congestion_avoidance_unless_they_name_another() {
        assert_eq!(written("more-start"), "more-start:avoidance=cubic");
        assert_eq!(written("more-start:factor=2"), "more-start:factor=2,avoidance=cubic");
        for own in ["slow-start:avoidance=reno", "stack"] {
            assert_eq!(written(own), own);
        }
        let plain = cell("rate=10mbit,rtt=20ms", "none", 1, Kind::Nothing);
        let text = scenario(&plain, &question("slow-start", &["stack"]), Path::new(".")).unwrap();
        assert!(text.contains("\"slow-start:avoidance=cubic\"") && text.contains("\"stack\""), "{text}");
        assert!(Scenario::from_text(&text).is_ok());
    }

    #[test]
    fn harm_counts_for_ten_seconds_also_of_short_transfers() {
        let beside = cell("rate=5mbit,rtt=20ms,buffer=1bdp,saved=none,oracle=none", "cubic", 1, Kind::Hint);
        let result = run(&beside, &question("blitzstart", &["slow-start"]));
        let runs = result.of("slow-start").unwrap();
        // Ten seconds of a busy link, without headers.
        assert!(runs.without_mbit.iter().all(|mbit| (40.0..50.0).contains(mbit)), "{runs:?}");
        assert!((0.0..10.0).contains(&runs.harm_mbit().unwrap()), "{runs:?}");
        assert!(runs.beyond_packets.is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_cell_or_a_scheme_is_said() {
        let missing = cell("trace=nowhere.down,rtt=20ms", "none", 1, Kind::Nothing);
        let error = perform(&missing, &question("blitzstart", &[]), Path::new(".")).unwrap_err().to_string();
        assert!(error.contains("nowhere.down"), "{error}");
        let error = check(&question("blitzstrat", &[])).unwrap_err().to_string();
        assert!(error.contains("blitzstart"), "{error}");
        assert!(check(&question("more-start", &["stack"])).is_ok());
        let several = run(&cell("rate=5mbit,rtt=20ms", "none", 2, Kind::Nothing), &question("ensemble-sharing", &[]));
        assert_eq!((several.schemes.len(), several.left_out.len()), (1, 0));
        let nothing = run(&cell("rate=5mbit,rtt=20ms", "none", 1, Kind::Nothing), &question("quick-start", &[]));
        assert_eq!((nothing.schemes.len(), nothing.left_out.len()), (0, 1));
    }
}
