//! The observations of an experiment's runs that are kept for its report.

use std::collections::{BTreeMap, BTreeSet};

use flowstart_core::sources::Finding;
use flowstart_core::time::Timestamp;

use super::{Marks, Resolution, Series, Watched};
use crate::study::plan::Cell;
use crate::trace::explain::Explanation;

/// The observations of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The causes of each measured flow's delay; empty without an account.
    pub explanations: Vec<Option<Explanation>>,
    /// What sources had stated to each measured flow at its launch; empty without an account.
    pub sources: Vec<Vec<Finding>>,
    /// Time series.
    pub series: Option<SeenSeries>,
    /// One-way delays, in milliseconds, of media packets that were sent while the newcomers were active.
    pub media_delays: Option<Vec<f64>>,
}

/// The time series of a run.
#[derive(Clone, Debug)]
pub struct SeenSeries {
    /// The series.
    pub series: Box<Series>,
    /// The start of the newcomers.
    pub start: Timestamp,
    /// The end of the last newcomer.
    pub end: Timestamp,
    /// The measured flows.
    pub flows: Vec<u32>,
}

impl SeenSeries {
    /// Milliseconds from the newcomers' start.
    pub fn ms(&self, time: Timestamp) -> f64 {
        time.as_secs() * 1000.0 - self.start.as_secs() * 1000.0
    }

    /// Points with their times in milliseconds from the newcomers' start.
    pub fn points(&self, points: impl Iterator<Item = (Timestamp, f64)>) -> Vec<[f64; 2]> {
        points.map(|(time, value)| [self.ms(time), value]).collect()
    }

    /// The times of marks, in milliseconds from the newcomers' start.
    pub fn times(&self, marks: &Marks) -> Vec<f64> {
        marks.points().map(|(time, _)| self.ms(time)).collect()
    }

    /// Drops of all flows but the measured one in this place, in order.
    pub fn other_drops(&self, but: usize) -> Vec<f64> {
        let mut drops = self.times(&self.series.other_drops);
        let others = self.series.flows.iter().enumerate().filter(|(place, _)| *place != but);
        others.for_each(|(_, flow)| drops.extend(self.times(&flow.drops)));
        drops.sort_by(f64::total_cmp);
        drops
    }
}

/// The wanted observations of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// The observations of a watcher.
    pub watched: Watched,
    /// Delays of media packets.
    pub media_delays: bool,
}

impl Shown {
    /// Whether anything is wanted.
    pub fn is_anything(&self) -> bool {
        self.watched.is_anything() || self.media_delays
    }

    /// The union of both.
    pub fn or(self, other: Self) -> Self {
        Self { watched: self.watched.or(other.watched), media_delays: self.media_delays || other.media_delays }
    }
}

/// The wanted observations of an experiment's runs.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Cells whose causes are shown.
    pub causes: BTreeSet<usize>,
    /// Cells that have runs with time series.
    pub series: BTreeMap<usize, Resolution>,
    /// Cells whose media packets are shown, and the number of repetitions.
    pub media: BTreeMap<usize, u32>,
}

impl Wanted {
    /// The wanted observations of a run.
    pub fn of(&self, cell: &Cell, rep: u32) -> Shown {
        Shown {
            watched: Watched {
                causes: self.causes.contains(&cell.index),
                series: self.series.get(&cell.index).copied(),
            },
            media_delays: self.media.get(&cell.index).is_some_and(|reps| rep < *reps),
        }
    }
}

/// The observations of runs, by the place of the cell and the repetition.
#[derive(Clone, Debug, Default)]
pub struct Kept(BTreeMap<(usize, u32), Seen>);

impl Kept {
    /// The observations of a run.
    pub fn get(&self, cell: &Cell, rep: u32) -> Option<&Seen> {
        self.0.get(&(cell.index, rep))
    }

    /// Adds observations of a run to earlier ones.
    pub fn add(&mut self, cell: usize, rep: u32, seen: Seen) {
        let kept = self.0.entry((cell, rep)).or_default();
        if !seen.explanations.is_empty() {
            kept.explanations = seen.explanations;
            kept.sources = seen.sources;
        }
        kept.series = seen.series.or(kept.series.take());
        kept.media_delays = seen.media_delays.or(kept.media_delays.take());
    }

    /// Adds the observations of other runs.
    pub fn join(&mut self, others: Self) {
        for ((cell, rep), seen) in others.0 {
            self.add(cell, rep, seen);
        }
    }

    /// The part of `shown` that is missing for a run.
    pub fn missing(&self, cell: &Cell, rep: u32, shown: Shown) -> Option<Shown> {
        let nothing = Seen::default();
        let seen = self.get(cell, rep).unwrap_or(&nothing);
        let missing = Shown {
            watched: Watched {
                causes: shown.watched.causes && seen.explanations.is_empty(),
                series: shown.watched.series.filter(|_| seen.series.is_none()),
            },
            media_delays: shown.media_delays && seen.media_delays.is_none(),
        };
        missing.is_anything().then_some(missing)
    }
}
