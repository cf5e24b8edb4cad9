//! Runs that are watched.

use flowstart_core::time::Timestamp;
use flowstart_sim::observe::trace::Trace;
use flowstart_sim::world::World;

use super::{Seen, SeenSeries, Shown, Wanted, Watched, Watcher};
use crate::run::media;
use crate::run::newcomers::Finished;
use crate::run::outcome::FlowOutcome;
use crate::run::repetition::{self, CellRun, Ended, Look};
use crate::study::plan::{Cell, Plan, Setting};
use crate::trace::explain::explanation;

/// Observes each run as far as wanted.
struct Watching<'a, F: Fn(&Cell, u32) -> Shown> {
    plan: &'a Plan,
    shown: F,
}

impl<F: Fn(&Cell, u32) -> Shown> Watching<'_, F> {
    /// Everything that any cell of a setting watches.
    fn of_setting(&self, setting: Setting, rep: u32) -> Watched {
        let cells = self.plan.cells_of(setting);
        cells.iter().fold(Watched::default(), |all, cell| all.or((self.shown)(cell, rep).watched))
    }
}

impl<F: Fn(&Cell, u32) -> Shown> Look for Watching<'_, F> {
    type Seen = Seen;

    fn begins(&self, setting: Setting, rep: u32) -> bool {
        self.of_setting(setting, rep).is_anything()
    }

    fn begin(&self, setting: Setting, rep: u32, world: &World, start: Timestamp) -> Trace {
        let bottleneck = world.network.monitor.as_ref().map_or(u32::MAX, |monitor| monitor.link);
        let watched = self.of_setting(setting, rep);
        Trace::told_to(Watcher::new(watched, bottleneck, &self.plan.links[setting.link], start))
    }

    fn goes_on(&self, cell: &Cell, rep: u32, trace: &mut Trace) -> bool {
        let watched = (self.shown)(cell, rep).watched;
        match trace.observer_mut::<Watcher>() {
            Some(watcher) if watched.is_anything() => {
                watcher.keep(watched);
                true
            }
            _ => false,
        }
    }

    fn ended(&self, cell: &Cell, _: u32, finished: &mut Finished, outcomes: &[FlowOutcome]) -> Seen {
        let trace = finished.world.network.trace.take();
        match trace.and_then(|trace| trace.into_observer::<Watcher>()) {
            Some(watcher) => seen(self.plan, cell, finished, outcomes, watcher),
            None => Seen::default(),
        }
    }

    fn settled(&self, cell: &Cell, rep: u32, finished: &Finished, ended: Ended, seen: &mut Seen) {
        if self.waits(cell, rep) {
            seen.media_delays = Some(media::delays(&finished.world, ended.others, finished.start, ended.time));
        }
    }

    fn waits(&self, cell: &Cell, rep: u32) -> bool {
        (self.shown)(cell, rep).media_delays
    }
}

/// Runs every cell of a setting for one repetition, and makes the wanted observations of each run.
pub fn repetition(plan: &Plan, setting: Setting, rep: u32, wanted: &Wanted) -> Vec<CellRun<Seen>> {
    repetition::repetition(plan, setting, rep, &Watching { plan, shown: |cell: &Cell, rep| wanted.of(cell, rep) })
}

/// Runs one repetition of a cell again and watches it.
pub fn again(plan: &Plan, cell: &Cell, rep: u32, shown: Shown) -> (Vec<FlowOutcome>, Seen) {
    let of_cell = |of: &Cell, _| if of == cell { shown } else { Shown::default() };
    let CellRun { outcomes, seen, .. } = repetition::again(plan, cell, rep, &Watching { plan, shown: of_cell });
    (outcomes, seen)
}

/// A watcher's observations of a run.
pub fn seen(plan: &Plan, cell: &Cell, finished: &Finished, outcomes: &[FlowOutcome], watcher: Watcher) -> Seen {
    let observed = watcher.finish();
    let explained = outcomes.iter().zip(&observed.splits);
    Seen {
        explanations: explained.map(|(outcome, split)| explanation(plan, cell, outcome, split.as_ref()?)).collect(),
        sources: observed.sources,
        series: observed.series.map(|series| SeenSeries {
            series,
            start: finished.start,
            end: finished.world.now(),
            flows: finished.flows.clone(),
        }),
        media_delays: None,
    }
}
