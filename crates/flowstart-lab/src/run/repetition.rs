//! Every cell of a setting for one repetition, or one cell again, and who looks at it.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::observe::trace::Trace;
use flowstart_sim::world::World;

use super::harm::{AFTERMATH, Compared, WithNewcomers, compare, others_state};
use super::knowledge::sources;
use super::newcomers::{Finished, Until, complete, newcomers, newcomers_in, outcomes};
use super::outcome::FlowOutcome;
use super::warm_up::{Tracer, prepare};
use super::{call, media, web};
use crate::ends::capture::Capture;
use crate::spec::link::Link;
use crate::study::plan::{Cell, Plan, Setting};

/// Makes traces that keep everything.
const WHOLE: Tracer<'static> = &|_, _| Trace::default();

/// Who looks at runs while they go on.
pub trait Look {
    /// What was seen of a run.
    type Seen: Default;

    /// Whether the warm world of a setting is looked at before the newcomers come.
    fn begins(&self, setting: Setting, rep: u32) -> bool;

    /// The trace of the warm world, in which newcomers start at this time.
    fn begin(&self, setting: Setting, rep: u32, world: &World, start: Timestamp) -> Trace;

    /// The trace of a cell's fork of the warm world goes on with what is looked at in this cell; whether that is
    /// anything.
    fn goes_on(&self, cell: &Cell, rep: u32, trace: &mut Trace) -> bool;

    /// The newcomers have just ended.
    fn ended(&self, cell: &Cell, rep: u32, finished: &mut Finished, outcomes: &[FlowOutcome]) -> Self::Seen;

    /// What was under way when the newcomers ended has arrived. The first `others` flows are the others.
    fn settled(&self, cell: &Cell, rep: u32, finished: &Finished, ended: Ended, seen: &mut Self::Seen);

    /// Whether [`Look::settled`] is waited for where there are no others.
    fn waits(&self, cell: &Cell, rep: u32) -> bool;

    /// The time from the newcomers' start after which the others are compared too, whenever the newcomers end.
    fn compares_after(&self) -> Option<Duration> {
        None
    }
}

/// When newcomers ended, and beside whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// So many flows were there before them.
    pub others: u32,
    /// The time.
    pub time: Timestamp,
}

/// Nobody looks.
impl Look for () {
    type Seen = ();

    fn begins(&self, _: Setting, _: u32) -> bool {
        false
    }

    fn begin(&self, _: Setting, _: u32, _: &World, _: Timestamp) -> Trace {
        Trace::default()
    }

    fn goes_on(&self, _: &Cell, _: u32, _: &mut Trace) -> bool {
        false
    }

    fn ended(&self, _: &Cell, _: u32, _: &mut Finished, _: &[FlowOutcome]) {}

    fn settled(&self, _: &Cell, _: u32, _: &Finished, _: Ended, (): &mut ()) {}

    fn waits(&self, _: &Cell, _: u32) -> bool {
        false
    }
}

/// What a cell's newcomers did in a repetition.
#[derive(Clone, Debug)]
pub struct CellRun<Seen> {
    /// The cell.
    pub cell: Cell,
    /// What each of them did.
    pub outcomes: Vec<FlowOutcome>,
    /// What the others got in the time that [`Look::compares_after`] says, if there are others.
    pub others: Option<Compared>,
    /// The observations.
    pub seen: Seen,
}

/// Runs every cell of a setting for one repetition.
pub fn repetition<L: Look>(plan: &Plan, setting: Setting, rep: u32, look: &L) -> Vec<CellRun<L::Seen>> {
    let tracer: Tracer<'_> = &|world, start| look.begin(setting, rep, world, start);
    let mut warm = prepare(plan, setting, rep, Some(tracer).filter(|_| look.begins(setting, rep)));
    let mut runs = Vec::new();
    let mut with_newcomers = Vec::new();
    let mut early = Vec::new();
    for cell in plan.cells_of(setting) {
        let mut world = warm.world.clone();
        if let Some(sessions) = plan.sizes[cell.size].value.sessions() {
            let start = world.now();
            let known = |link: &Link| sources(plan, plan.transport_of(&cell), link, start);
            world.network.trace = None;
            let outcomes = web::outcomes(plan, &cell, sessions, world, &warm.chain, warm.seed, known);
            runs.push(CellRun { cell, outcomes, others: None, seen: L::Seen::default() });
            with_newcomers.push(None);
            early.push(None);
            continue;
        }
        if !world.network.trace.as_mut().is_some_and(|trace| look.goes_on(&cell, rep, trace)) {
            world.network.trace = None;
        }
        // A path that changes is not looked at before its end.
        let compared = look.compares_after().filter(|_| warm.has_others && plan.mobility(&cell).is_none());
        let mut finished =
            newcomers_in(world, plan, &warm, &cell, compared.map_or(Until::Complete, Until::After), None);
        let with = |finished: &mut Finished| {
            let newcomers = [finished.all_flows(), finished.servers.clone()].concat();
            WithNewcomers { end: finished.world.now(), others: others_state(&mut finished.world, &newcomers) }
        };
        early.push(compared.map(|_| {
            let others = with(&mut finished);
            complete(plan, &cell, &mut finished);
            others
        }));
        let mut outcomes = outcomes(plan, &cell, &mut finished);
        let mut seen = look.ended(&cell, rep, &mut finished, &outcomes);
        let ended = Ended { others: warm.others, time: finished.world.now() };
        let end = ended.time + AFTERMATH;
        with_newcomers.push(warm.has_others.then(|| {
            finished.world.run_until(end);
            with(&mut finished)
        }));
        if let Some(config) = plan.competitors[setting.competitor].on(setting.transport).media() {
            let media = media::outcome(&finished.world, config, warm.others, finished.start, end);
            outcomes.iter_mut().for_each(|outcome| outcome.media = Some(media));
        }
        if let Some(config) = plan.competitors[setting.competitor].on(setting.transport).call() {
            let call = call::outcome(&finished.world, config, warm.others, finished.start, end);
            outcomes.iter_mut().for_each(|outcome| outcome.call = Some(call));
        }
        look.settled(&cell, rep, &finished, ended, &mut seen);
        runs.push(CellRun { cell, outcomes, others: None, seen });
    }
    warm.world.network.trace = None;
    if warm.has_others {
        let count = runs.len();
        with_newcomers.append(&mut early);
        let compared = compare(&warm, &with_newcomers);
        let (late, early) = compared.split_at(count);
        for ((run, late), early) in runs.iter_mut().zip(late).zip(early) {
            let harm = late.map(|(harm, _)| harm);
            run.outcomes.iter_mut().for_each(|outcome| outcome.others = harm);
            run.others = early.map(|(_, compared)| compared);
        }
    }
    runs
}

/// Runs one repetition of a cell again and observes it.
pub fn again<L: Look>(plan: &Plan, cell: &Cell, rep: u32, look: &L) -> CellRun<L::Seen> {
    let setting = cell.setting();
    let tracer: Tracer<'_> = &|world, start| look.begin(setting, rep, world, start);
    let warm = prepare(plan, setting, rep, Some(tracer).filter(|_| look.begins(setting, rep)));
    let mut finished = newcomers(plan, &warm, cell, Until::Complete);
    let outcomes = outcomes(plan, cell, &mut finished);
    let mut seen = look.ended(cell, rep, &mut finished, &outcomes);
    let ended = Ended { others: warm.others, time: finished.world.now() };
    if look.waits(cell, rep) {
        finished.world.run_until(ended.time + AFTERMATH);
        look.settled(cell, rep, &finished, ended, &mut seen);
    }
    CellRun { cell: *cell, outcomes, others: None, seen }
}

/// Runs one repetition of a cell again, with a trace that begins a second before the newcomers and a log of all
/// departures from the bottleneck.
pub fn replay(plan: &Plan, cell: &Cell, rep: u32) -> Finished {
    logged(plan, cell, rep, Some(WHOLE), Until::Complete, None)
}

/// Like [`replay`], but also keeps the datagrams that senders of real flows see.
pub fn capture(plan: &Plan, cell: &Cell, rep: u32) -> Finished {
    logged(plan, cell, rep, Some(WHOLE), Until::Complete, Some(Capture::default()))
}

/// Runs one repetition of a cell with a log of all departures from the bottleneck, but no trace.
pub fn replay_until(plan: &Plan, cell: &Cell, rep: u32, until: Until) -> Finished {
    logged(plan, cell, rep, None, until, None)
}

fn logged(
    plan: &Plan,
    cell: &Cell,
    rep: u32,
    tracer: Option<Tracer<'_>>,
    until: Until,
    capture: Option<Capture>,
) -> Finished {
    let mut warm = prepare(plan, cell.setting(), rep, tracer);
    if let Some(monitor) = &mut warm.world.network.monitor {
        monitor.log = Some(Vec::new());
    }
    newcomers_in(warm.world.clone(), plan, &warm, cell, until, capture)
}

/// Runs one repetition of a cell with a trace that `tracer` makes a second before the newcomers. The observer moves to
/// the newcomers' world, because not all observers can be cloned. The capture gets the datagrams that senders of real
/// flows see.
pub fn told(plan: &Plan, cell: &Cell, rep: u32, capture: Option<Capture>, tracer: Tracer<'_>) -> Finished {
    let mut warm = prepare(plan, cell.setting(), rep, Some(tracer));
    let trace = warm.world.network.trace.take();
    let mut world = warm.world.clone();
    world.network.trace = trace;
    newcomers_in(world, plan, &warm, cell, Until::Complete, capture)
}
