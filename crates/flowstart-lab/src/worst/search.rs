//! The search for the worst setting.
//!
//! Half of the settings are spread evenly over the space (a Latin hypercube). From them a tree-structured Parzen
//! estimator (Bergstra et al., Algorithms for Hyper-Parameter Optimization, 2011) learns, for each measure, where to
//! look next. It also learns from the settings in which one dimension alone is far from plain. The largest of many
//! noisy values is too large by chance. So what counts is the lower end of an interval, the few worst settings are run
//! again with other seeds, and what is told of the smallest setting comes from a third set of seeds, which chose
//! nothing.

use flowstart_core::rng::{mix, name_hash};
use flowstart_statistics::{LEAST_EFFECT, RESAMPLES};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::Serialize;
use tpe::TpeOptimizer;

use super::dimension::{Dimension, Values, rounded};
use super::measure::{Badness, Measure};
use super::smallest::{most_steps, smallest};
use super::space::{Point, Question, Space};
use crate::experiment;
use crate::fleet::measured::Measured;
use crate::perform::Progress;
use crate::results::folder::ExperimentError;
use crate::study::Study;

/// Fewest settings of a search.
pub const FEWEST: u32 = 10;
/// Repetitions of a setting that is tried.
const REPS: u32 = 4;
/// Repetitions of a setting that is tried again.
const REPS_AGAIN: u32 = 10;
/// The worst settings that are tried again, and if none of them is bad again, as many after them.
const AGAIN: usize = 8;
/// The worst settings whose figures are measured, one after the other, until a scheme is bad in one.
const MOST_TRIED: u32 = 5;
/// Settings between two lessons. It does not depend on the number of threads, so the result does not, either.
const BATCH: usize = 8;
/// Settings of these that are drawn without a lesson. Where a scheme is as good as the others in most settings, what is
/// learned first leads to those in which it does nothing.
const BLIND: usize = 3;
/// Significant digits of numbers that are tried.
const DIGITS: i32 = 3;
/// How much worse a scheme is where nothing can be said: as little as anywhere.
const NOTHING: f64 = -1.0;
/// From this on, as a part of the completion time or of the payload, a scheme is worse than the others.
pub const WORSE: f64 = 0.05;

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Settings that are tried for each measure, besides those in which one dimension is far from plain.
    pub points: u32,
    /// Repetitions of the smallest setting.
    pub reps: u32,
    /// The seed.
    pub seed: u64,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

/// The worst setting of a measure.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// The measure.
    pub measure: Measure,
    /// How bad the scheme is there; `None`: transfers fail there.
    pub badness: Option<Badness>,
    /// The scheme beside which it is bad.
    pub beside: String,
    /// The part of its transfers that do not complete.
    pub failed: f64,
    /// The part of the evenly spread settings in which it is worse by more than [`WORSE`].
    pub worse: f64,
    /// The study that shows it.
    #[serde(skip)]
    pub study: Study,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// For each measure the worst setting; `None`: it is measurably worse in none.
    pub worst: Vec<(Measure, Option<Worst>)>,
    /// Settings that were spread evenly.
    pub even: u32,
    /// Settings that were tried for each measure.
    pub points: u32,
    /// Settings that could not be run.
    pub refused: u32,
    /// Settings that say nothing by a measure, because transfers of the others fail there.
    pub unjudged: u32,
}

/// What runs settings.
struct Runner<'a> {
    space: &'a Space,
    question: &'a Question,
    pool: rayon::ThreadPool,
    progress: &'a dyn Progress,
}

/// What the schemes did in a setting, and the payload of a transfer in bytes.
type Outcome = (Vec<Measured>, f64);

impl Runner<'_> {
    /// Runs settings, each with its pieces on all threads. `None`: the setting cannot be run.
    fn run(&self, points: &[Point], reps: u32, seed: u64) -> Result<Vec<Option<Outcome>>, ExperimentError> {
        self.pool.install(|| points.par_iter().map(|point| self.outcome(point, reps, seed)).collect())
    }

    fn outcome(&self, point: &Point, reps: u32, seed: u64) -> Result<Option<Outcome>, ExperimentError> {
        let outcome = match self.space.study(point, self.question, reps, seed) {
            Ok(study) => Some(outcome(&study)?),
            Err(_) => None,
        };
        self.progress.done(self.runs(1, reps));
        Ok(outcome)
    }

    fn runs(&self, points: usize, reps: u32) -> u64 {
        points as u64 * u64::from(reps) * self.question.schemes().len() as u64
    }
}

/// What the schemes of a study with one setting did.
fn outcome(study: &Study) -> Result<Outcome, ExperimentError> {
    let pieces = experiment::pieces(&study.plan);
    let rows: Vec<_> = pieces.par_iter().flat_map_iter(|piece| experiment::piece(&study.plan, *piece)).collect();
    let rows = experiment::join(&study.plan, rows)?;
    let payload = study.plan.sizes[0].value.mean();
    Ok((Measured::of_each_cell(&study.plan, &rows), payload))
}

/// How much worse than the others it surely is; `None` if that cannot be said.
fn excess(measure: Measure, outcome: Option<&Outcome>) -> Option<f64> {
    let (schemes, payload) = outcome?;
    measure.surely(schemes, *payload).map(|value| value - measure.neutral()).filter(|excess| !excess.is_nan())
}

/// Points that are spread evenly: each of `count` equal parts of each dimension has one.
fn evenly(space: &Space, count: usize, random: &mut Pcg64) -> Vec<Point> {
    let mut points = vec![Point::new(); count];
    for dimension in space.dimensions() {
        let mut parts: Vec<usize> = (0..count).collect();
        parts.shuffle(random);
        for (point, part) in points.iter_mut().zip(parts) {
            let share = (part as f64 + random.random::<f64>()) / count as f64;
            point.push(match &dimension.values {
                Values::Words(words) => (share * words.len() as f64).floor(),
                Values::Range(least, most) => near(least * (most / least).powf(share), *least, *most),
            });
        }
    }
    points.into_iter().map(|point| space.canonical(point)).collect()
}

fn near(value: f64, least: f64, most: f64) -> f64 {
    rounded(value, DIGITS).clamp(least, most)
}

/// Where to look next: an optimizer for each dimension with several values.
struct Guide<'a> {
    space: &'a Space,
    optimizers: Vec<Option<TpeOptimizer>>,
}

impl<'a> Guide<'a> {
    fn new(space: &'a Space) -> Self {
        let optimizer = |dimension: &Dimension| match &dimension.values {
            Values::Words(words) if words.len() > 1 => {
                let range = tpe::categorical_range(words.len()).ok()?;
                Some(TpeOptimizer::new(tpe::histogram_estimator(), range))
            }
            // The largest number is within.
            Values::Range(least, most) if least < most => {
                let range = tpe::range(least.ln(), most.ln() + 1e-9).ok()?;
                Some(TpeOptimizer::new(tpe::parzen_estimator(), range))
            }
            _ => None,
        };
        Self { space, optimizers: space.dimensions().iter().map(optimizer).collect() }
    }

    fn ask(&mut self, random: &mut Pcg64) -> Point {
        let dimensions = self.space.dimensions().iter().zip(&mut self.optimizers).zip(self.space.plain());
        let asked = dimensions
            .map(|((dimension, optimizer), plain)| {
                let Some(Ok(asked)) = optimizer.as_mut().map(|optimizer| optimizer.ask(random)) else { return plain };
                match &dimension.values {
                    Values::Words(words) => asked.floor().clamp(0.0, (words.len() - 1) as f64),
                    Values::Range(least, most) => near(asked.exp(), *least, *most),
                }
            })
            .collect();
        self.space.canonical(asked)
    }

    /// Optimizers look for the least. What does not matter in a setting teaches nothing about its dimension.
    fn tell(&mut self, point: &Point, excess: f64) {
        for (place, optimizer) in self.optimizers.iter_mut().enumerate() {
            let Some(optimizer) = optimizer else { continue };
            let value = match self.space.dimensions()[place].values {
                _ if !self.space.matters(point, place) => continue,
                Values::Words(_) => point[place],
                Values::Range(..) => point[place].ln(),
            };
            // A value beyond its range, by the last digit, teaches nothing.
            let _ = optimizer.tell(value, -excess);
        }
    }
}

/// Looks for the worst setting by each of the measures.
///
/// # Errors
///
/// The reason why no thread could be started.
pub fn search(
    space: &Space,
    question: &Question,
    measures: &[Measure],
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Found, ExperimentError> {
    let Settings { points, reps, seed, jobs } = *settings;
    let runner = Runner { space, question, pool: experiment::threads(jobs)?, progress };
    let points = points.max(FEWEST) as usize;
    let even = (points / 2).max(1);
    let mut random = Pcg64::seed_from_u64(mix(seed ^ name_hash("worst")));
    let (spread, corners) = (evenly(space, even, &mut random), space.corners());
    let tried = even + corners.len() + measures.len() * (points - even);
    progress.begins(runner.runs(tried, REPS));
    let (outcomes, at_corners) = (runner.run(&spread, REPS, seed)?, runner.run(&corners, REPS, seed)?);
    let corner_count = corners.len();
    let shared = Lesson { points: [corners, spread].concat(), outcomes: [at_corners, outcomes.clone()].concat() };
    let mut counts = Counts { refused: shared.refused(), unjudged: 0 };
    // All measures before the first smallest setting: until then the number of runs is known.
    let mut learned = Vec::new();
    for measure in measures.iter().copied() {
        learned.push((measure, runner.candidates(measure, &shared, points - even, seed, &mut counts)?));
    }
    let mut worst = Vec::new();
    for (measure, mut candidates) in learned {
        let is_worse = |(schemes, payload): &Outcome| {
            measure.value(schemes, *payload).is_some_and(|value| value > measure.neutral() + WORSE)
        };
        let ran = outcomes.iter().flatten().count().max(1);
        let worse = outcomes.iter().flatten().filter(|outcome| is_worse(outcome)).count() as f64 / ran as f64;
        let mut found = None;
        // Where transfers of all schemes fail now and then, the seeds of the search may have shown those of one only.
        for _ in 0..MOST_TRIED {
            let Some((place, point)) = runner.smallest_of(measure, &candidates, seed.wrapping_add(1))? else { break };
            found = runner.told(measure, &point, worse, reps, seed.wrapping_add(2))?;
            if found.is_some() {
                break;
            }
            candidates.remove(place);
        }
        worst.push((measure, found));
    }
    progress.ended();
    let Counts { refused, unjudged } = counts;
    Ok(Found { worst, even: even as u32, points: (points + corner_count) as u32, refused, unjudged })
}

/// Settings and what happened in them.
struct Lesson {
    points: Vec<Point>,
    outcomes: Vec<Option<Outcome>>,
}

impl Lesson {
    /// Settings that could not be run.
    fn refused(&self) -> u32 {
        self.outcomes.iter().filter(|outcome| outcome.is_none()).count() as u32
    }
}

/// Settings that say nothing.
struct Counts {
    refused: u32,
    unjudged: u32,
}

impl Runner<'_> {
    /// The settings in which the scheme is bad, the worst first: those of the `shared` lesson, and `left` further ones.
    fn candidates(
        &self,
        measure: Measure,
        shared: &Lesson,
        left: usize,
        seed: u64,
        counts: &mut Counts,
    ) -> Result<Vec<Point>, ExperimentError> {
        // What is found by one measure does not depend on the others.
        let mut random = Pcg64::seed_from_u64(mix(seed ^ name_hash(measure.name())));
        let mut guide = Guide::new(self.space);
        let mut known: Vec<(Point, f64)> = Vec::new();
        let mut learn = |guide: &mut Guide<'_>, lesson: &Lesson| {
            for (point, outcome) in lesson.points.iter().zip(&lesson.outcomes) {
                let excess = excess(measure, outcome.as_ref());
                counts.unjudged += u32::from(excess.is_none() && outcome.is_some());
                // Where the others fail, or nothing can run, nothing is to be found.
                guide.tell(point, excess.unwrap_or(NOTHING));
                known.extend(excess.map(|excess| (point.clone(), excess)));
            }
        };
        learn(&mut guide, shared);
        let (mut left, mut refused) = (left, 0);
        while left > 0 {
            let mut points: Vec<Point> = (0..left.min(BATCH)).map(|_| guide.ask(&mut random)).collect();
            for (point, blind) in points.iter_mut().zip(evenly(self.space, BLIND, &mut random)) {
                *point = blind;
            }
            left -= points.len();
            let outcomes = self.run(&points, REPS, seed)?;
            let lesson = Lesson { points, outcomes };
            refused += lesson.refused();
            learn(&mut guide, &lesson);
        }
        counts.refused += refused;
        known.sort_by(|a, b| b.1.total_cmp(&a.1));
        known.dedup_by(|a, b| a.0 == b.0);
        known.retain(|(_, excess)| *excess > 0.0);
        Ok(known.into_iter().map(|(point, _)| point).collect())
    }
}

impl Runner<'_> {
    /// The smallest setting that shows what the worst of these does, by the values of other seeds, and its place.
    fn smallest_of(
        &self,
        measure: Measure,
        candidates: &[Point],
        seed: u64,
    ) -> Result<Option<(usize, Point)>, ExperimentError> {
        let mut worst: Option<(usize, f64)> = None;
        for (chunk, some) in candidates.chunks(AGAIN).enumerate() {
            self.progress.begins(self.runs(some.len(), REPS_AGAIN));
            let outcomes = self.run(some, REPS_AGAIN, seed)?;
            let again = outcomes
                .iter()
                .enumerate()
                .filter_map(|(place, outcome)| Some((chunk * AGAIN + place, excess(measure, outcome.as_ref())?)));
            worst = again.filter(|(_, excess)| *excess > LEAST_EFFECT).max_by(|a, b| a.1.total_cmp(&b.1));
            if worst.is_some() {
                break;
            }
        }
        let Some((place, least)) = worst else { return Ok(None) };
        let Some(point) = candidates.get(place).cloned() else { return Ok(None) };
        self.progress.begins(self.runs(most_steps(self.space), REPS_AGAIN));
        let of = |point: &Point| {
            let outcome = self.pool.install(|| self.outcome(point, REPS_AGAIN, seed))?;
            Ok(excess(measure, outcome.as_ref()))
        };
        smallest(self.space, point, least, of).map(|point| Some((place, point)))
    }

    /// What is told of a setting; `None` if the scheme is not measurably bad there.
    fn told(
        &self,
        measure: Measure,
        point: &Point,
        worse: f64,
        reps: u32,
        seed: u64,
    ) -> Result<Option<Worst>, ExperimentError> {
        let Ok(study) = self.space.study(point, self.question, reps, seed) else { return Ok(None) };
        self.progress.begins(self.runs(1, reps + REPS_AGAIN));
        // The fastest of the others is chosen by the seeds that chose the setting.
        let chosen = self.pool.install(|| self.outcome(point, REPS_AGAIN, seed.wrapping_sub(1)))?;
        let beside = chosen.and_then(|(schemes, _)| measure.beside(&schemes)).unwrap_or(0);
        let (schemes, payload) = self.pool.install(|| outcome(&study))?;
        self.progress.done(self.runs(1, reps));
        let badness = measure.badness(&schemes, beside, payload, RESAMPLES, mix(seed ^ name_hash("badness")));
        let failed = schemes.last().map_or(0.0, Measured::failed);
        let fails_more = failed > schemes.get(beside).map_or(0.0, Measured::failed);
        // What chance made bad in the search is nothing.
        let is_bad = |badness: &Badness| {
            let measurably = badness.ci95.is_some_and(|[low, _]| low > measure.neutral());
            measurably && badness.value >= measure.neutral() + LEAST_EFFECT
        };
        if !fails_more && !badness.as_ref().is_some_and(is_bad) {
            return Ok(None);
        }
        let beside = self.question.against.get(beside).cloned().unwrap_or_default();
        let badness = badness.filter(|badness| !fails_more && badness.value.is_finite());
        Ok(Some(Worst { measure, badness, beside, failed, worse, study }))
    }
}
