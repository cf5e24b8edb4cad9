//! Irregular loads that nobody's window is behind: what Predict takes for a transient in them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::traffic::unresponsive::{Gaps, Lengths, Shape, Unresponsive};
use rayon::prelude::*;

use super::unanswered::{PACKET, RATE, Unanswered};
use crate::check::{Checker, at_most};

/// Ten minutes, and the time that many sources have to settle before.
const MINUTES: Duration = Duration::from_millis(600_000);
const SETTLED: Duration = Duration::from_millis(30_000);
/// Sources that are many: what begins is a small part of the load.
const MANY: u32 = 16;
/// Runs of each load.
const SEEDS: u64 = 3;
/// Sources begin within this time.
const SPREAD: f64 = 1.0;

/// A load of some sources with the same mean rate.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Sources.
    pub count: u32,
    /// Mean of all together, over the link's rate.
    pub load: f64,
    /// What each does.
    pub shape: Shape,
}

/// What a run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Triggers in ten minutes after the load has settled.
    pub triggers: u64,
    /// Triggers before.
    pub early: u64,
    /// Silences that ended in those ten minutes: a source was off, and is on again.
    pub starts: u64,
}

/// Runs a load.
pub fn run(load: &Load, seed: u64) -> Counts {
    let mut link = Unanswered::new(seed);
    let mut begins = Substream::new(seed, "sources begin", 0);
    let source =
        Unresponsive { rate: RATE.scale(load.load / f64::from(load.count)), packet: PACKET, shape: load.shape };
    let mut sources: Vec<Gaps> = (0..load.count).map(|number| Gaps::new(source, seed, u64::from(number))).collect();
    // Reverse: the earliest first. Packets of a host leave its own link one after the other.
    let mut next: BinaryHeap<Reverse<(Timestamp, u32)>> = (0..load.count)
        .map(|number| Reverse((Timestamp::ZERO + Duration::from_secs(1.0 + SPREAD * begins.uniform()), number)))
        .collect();
    let access = RATE.scale(10.0).time_for(Bytes::new(u64::from(PACKET)));
    let settled = Timestamp::ZERO + SETTLED;
    let mut counts = Counts::default();
    while let Some(Reverse((arrival, flow))) = next.pop() {
        if arrival >= settled + MINUTES {
            break;
        }
        link.arrive(flow, arrival);
        let gap = sources[flow as usize].next_gap();
        let silent = matches!(load.shape, Shape::OnOff { .. }) && gap > source_interval(&source).scale(1.01);
        counts.starts += u64::from(silent && arrival >= settled);
        next.push(Reverse((arrival + gap.max(access), flow)));
        if arrival < settled {
            counts.early = link.triggers();
        }
    }
    counts.triggers = link.triggers() - counts.early;
    counts
}

/// Time between packets while on.
fn source_interval(source: &Unresponsive) -> Duration {
    let share = match source.shape {
        Shape::OnOff { mean_on, mean_off, .. } => mean_on.as_secs() / (mean_on.as_secs() + mean_off.as_secs()),
        Shape::Frames { .. } => 1.0,
    };
    source.rate.time_for(Bytes::new(u64::from(source.packet))).scale(share)
}

/// The loads by name.
pub fn loads() -> Vec<(String, Load)> {
    let half = Duration::from_millis(500);
    let on_off = |lengths| Shape::OnOff { mean_on: half, mean_off: half, lengths };
    let shapes = [
        ("on/off, exponential", on_off(Lengths::Exponential)),
        ("on/off, Pareto", on_off(Lengths::Pareto { shape: 1.5 })),
        ("frames, 33 ms", Shape::Frames { interval: Duration::from_millis(33) }),
        ("frames, 40 ms", Shape::Frames { interval: Duration::from_millis(40) }),
    ];
    let mut loads = Vec::new();
    for (name, shape) in shapes {
        for count in [1, 4, MANY] {
            for load in [0.1, 0.3, 0.5, 0.8] {
                let sources = if count == 1 { "one source".to_owned() } else { format!("{count} sources") };
                loads.push((format!("{name}, {sources}, {:.0} %", 100.0 * load), Load { count, load, shape }));
            }
        }
    }
    loads
}

/// Runs all of them: the counts of each seed.
pub fn run_all() -> Vec<(String, Load, Vec<Counts>)> {
    let run = |(name, load): (String, Load)| {
        let counts = (1..=SEEDS).map(|seed| run(&load, seed)).collect();
        (name, load, counts)
    };
    loads().into_par_iter().map(run).collect()
}

/// At most one trigger per start of an on/off source, and none where many are in steady state or where nothing starts.
pub(super) fn check(checker: &mut Checker) {
    for (name, load, counts) in run_all() {
        for (seed, counts) in (1..).zip(counts) {
            let most = match (load.count, load.shape) {
                (MANY, _) | (_, Shape::Frames { .. }) => 0,
                (_, Shape::OnOff { .. }) => counts.starts,
            };
            checker.check(&format!("{name}, seed {seed}"), "triggers", counts.triggers as f64, at_most(most as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_the_starts_of_its_sources() {
        let half = Duration::from_millis(500);
        let shape = Shape::OnOff { mean_on: half, mean_off: half, lengths: Lengths::Exponential };
        let counts = run(&Load { count: 1, load: 0.3, shape }, 1);
        // An on and an off time last a second: 600 in ten minutes.
        assert!((540..660).contains(&counts.starts), "{counts:?}");
        let frames = Shape::Frames { interval: Duration::from_millis(40) };
        assert_eq!(run(&Load { count: 1, load: 0.3, shape: frames }, 1).starts, 0);
    }
}
