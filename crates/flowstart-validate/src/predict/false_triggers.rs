//! Loads that are no transient: Predict must not see one, and not only because it remembers flows as settled.
//!
//! Some runs hide the identity of flows, so that Predict takes each for a new one: they get a new number every 20 s, or
//! with each restart after idle time, without which Predict remembers that a flow was signalled.
//!
//! A trigger is right if a flow with data in flight was in slow start (its window below ssthresh) within the RTT before
//! it, and if the bytes in flight reach the bandwidth-delay product within the RTT after it, in which no sender can
//! have heard of it for long. Others are false: nobody was in slow start, or slow start ended below the capacity by
//! itself, at ssthresh.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use flowstart_core::aqm::predict::{self, Predict, Trigger};
use flowstart_core::aqm::{QueueContext, QueueDiscipline, QueuedPacket};
use flowstart_core::controller::WindowValidation;
use flowstart_core::rng::Substream;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::topology::Access;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;
use rayon::prelude::*;

use super::unanswered::{RATE, Unanswered};
use super::watched::{Watch, watched};
use crate::bench::Bench;
use crate::check::{Checker, at_most};

/// Ten minutes, and the time that flows have to settle before.
const MINUTES: u64 = 600;
const SETTLED: u64 = 30;
/// Flows get a new number so often.
const RENAMED: Duration = Duration::from_millis(20_000);
/// Numbers of flows between two renamings.
const STRIDE: u32 = 1 << 16;
/// Runs of each random load.
const SEEDS: u64 = 10;

/// When flows get a new number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Renamed {
    Never,
    /// Every [`RENAMED`].
    Regularly,
    /// With the first packet after so long a silence.
    After(Duration),
}

/// Gives flows the names by which Predict knows them, and keeps its latest trigger.
#[derive(Clone, Debug)]
struct Observer {
    renamed: Renamed,
    /// When the latest packet of each flow arrived, and how often it was renamed.
    latest: Vec<(Timestamp, u32)>,
    last: Arc<Mutex<(u64, Option<Trigger>)>>,
}

impl Observer {
    /// How many names the flow has had when a packet arrives.
    fn names(&mut self, flow: usize, now: Timestamp) -> u32 {
        match self.renamed {
            Renamed::Never => 0,
            Renamed::Regularly => (now.as_nanos() / RENAMED.as_nanos()) as u32,
            Renamed::After(silence) => {
                self.latest.resize(self.latest.len().max(flow + 1), (now, 0));
                let (latest, names) = &mut self.latest[flow];
                *names += u32::from(now.since(*latest) > silence);
                *latest = now;
                *names
            }
        }
    }
}

impl Watch for Observer {
    fn enqueue(&mut self, predict: &mut Predict, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        packet.flow += STRIDE * (self.names(packet.flow as usize, context.now) % 1000);
        predict.enqueue(packet, context);
        context.dropped.iter_mut().for_each(|packet| packet.flow %= STRIDE);
    }

    fn dequeue(&mut self, predict: &mut Predict, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let packet = predict.dequeue(context);
        context.dropped.iter_mut().for_each(|packet| packet.flow %= STRIDE);
        if let Ok(mut last) = self.last.lock() {
            *last = (predict.triggers(), predict.last_trigger());
        }
        packet.map(|packet| QueuedPacket { flow: packet.flow % STRIDE, ..packet })
    }
}

/// What CUBIC flows do.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    /// They always have data.
    Bulk,
    /// They write 3 MB each and are idle for about this time in between; what becomes of the window then.
    Restarts(Duration, WindowValidation),
    /// One more flow begins a minute after the others.
    Joined,
}

/// A trigger, beside what the senders did.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Whether a flow with data in flight was in slow start within the RTT before.
    slow_start: bool,
    /// Most bytes in flight until a signal of this moment is heard, over the bandwidth-delay product.
    load: f64,
}

/// Triggers in ten minutes after the flows have settled.
fn cubic(flows: u32, rtt: Duration, behaviour: Behaviour, renamed: Renamed) -> Vec<Found> {
    let link = LinkConfig::new(RATE, Duration::ZERO);
    let access = RATE.scale(10.0);
    let mut bench = Bench::between(1, 1, &link, &LinkConfig::new(access, Duration::ZERO), access);
    bench.host = Access { delay: rtt.scale(0.25), ..bench.host };
    let last = Arc::new(Mutex::new((0, None)));
    let observer = Observer { renamed, latest: Vec::new(), last: Arc::clone(&last) };
    let link = bench.link();
    bench.world.network.set_queue(link, watched(observer, predict::Config::default(), RATE));
    let idle = if let Behaviour::Restarts(_, validation) = behaviour { validation } else { WindowValidation::Keep };
    let profile = Arc::new(Profile {
        ecn: true,
        idle,
        receive_window: Bytes::new(1 << 30),
        receive_buffer: None,
        startup: StartupConfig::SlowStart(slow_start::Config::default()),
        ..Profile::tcp_linux()
    });
    let settled = Timestamp::ZERO + Duration::from_secs(SETTLED as f64);
    let more = u32::from(matches!(behaviour, Behaviour::Joined));
    for flow in 0..flows + more {
        let pattern = match behaviour {
            Behaviour::Bulk | Behaviour::Joined => Pattern::Bulk,
            Behaviour::Restarts(idle, _) => {
                let size = Bytes::new(3_000_000);
                let interval = RATE.time_for(size) * u64::from(flows) + idle;
                Pattern::Chunks { size, interval, count: u32::MAX }
            }
        };
        let mut config = bench.flow(&profile, pattern);
        config.start = Timestamp::ZERO + Duration::from_millis(100) * u64::from(flow);
        if flow >= flows {
            config.start = settled + Duration::from_secs(60.0);
        }
        bench.world.add_flow(config);
    }
    let mut world = bench.world;
    world.run_until(settled);
    let latest = || last.lock().map_or((0, None), |last| *last);
    let seen = Cell::new(latest().0);
    let end = settled + Duration::from_secs(MINUTES as f64);
    let mut found = Vec::new();
    // When each flow was last seen in slow start with data in flight.
    let slow_starts: Vec<Cell<Timestamp>> = (0..flows + more).map(|_| Cell::new(Timestamp::ZERO)).collect();
    let in_flight = |world: &World, flow| world.window(flow).map_or(0, |(bytes, _, _)| bytes.get());
    let watch = |world: &World| {
        for (flow, seen) in (0..).zip(&slow_starts) {
            if world.is_in_slow_start(flow) && in_flight(world, flow) > 0 {
                seen.set(world.now());
            }
        }
    };
    let unchanged = |world: &World| {
        watch(world);
        latest().0 == seen.get()
    };
    while world.run_while(end, unchanged).is_ok() {
        let (count, trigger) = latest();
        seen.set(count);
        let Some(trigger) = trigger else { continue };
        let recent = |time: &Cell<Timestamp>| time.get() + rtt >= trigger.at && time.get() > Timestamp::ZERO;
        let slow_start = slow_starts.iter().any(recent);
        let mut most = 0;
        for step in 1..=20 {
            most = most.max((0..flows + more).map(|flow| in_flight(&world, flow)).sum::<u64>());
            world.run_until((trigger.at + rtt.scale(0.05 * f64::from(step))).min(end));
        }
        let load = most as f64 / RATE.amount_in(rtt).get() as f64;
        found.push(Found { slow_start, load });
    }
    found
}

/// Triggers in a minute by packets that nobody answers, at `load` of the rate.
fn unanswered(load: f64, random: bool, seed: u64) -> u64 {
    let mut link = Unanswered::new(seed);
    let mut gaps = Substream::new(seed, "unanswered packets", 0);
    let mean = Unanswered::service().as_secs() / load;
    let mut arrival = Timestamp::ZERO + Duration::from_secs(1.0);
    while arrival < Timestamp::ZERO + Duration::from_secs(61.0) {
        link.arrive(0, arrival);
        // A constant rate has 2 % of jitter, as clocks of hosts do.
        let gap = if random { gaps.exponential(mean) } else { mean * (0.98 + 0.04 * gaps.uniform()) };
        arrival += Duration::from_secs(gap);
    }
    link.triggers()
}

/// What a run counts: triggers, those of them without a slow start, and those with one that ended below the capacity by
/// itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    triggers: u64,
    no_slow_start: u64,
    below_capacity: u64,
}

impl Counts {
    fn of(found: &[Found]) -> Self {
        let count = |holds: &dyn Fn(&Found) -> bool| found.iter().filter(|found| holds(found)).count() as u64;
        Self {
            triggers: found.len() as u64,
            no_slow_start: count(&|found| !found.slow_start),
            below_capacity: count(&|found| found.slow_start && found.load < 1.0),
        }
    }

    /// Triggers that are false.
    fn wrong(self) -> u64 {
        self.no_slow_start + self.below_capacity
    }
}

/// A run: its name, how many triggers and how many false ones are allowed, and how to count them.
type Case = (String, u64, u64, Box<dyn Fn() -> Counts + Send + Sync>);

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for flows in [1, 4, 16] {
        for rtt in [20, 100, 300] {
            let path = Duration::from_millis(rtt);
            let mut add = |what: &str, triggers, behaviour, renamed| {
                let name = format!("{flows} CUBIC, {rtt} ms, {what}");
                let run = move || Counts::of(&cubic(flows, path, behaviour, renamed));
                cases.push((name, triggers, 0, Box::new(run)));
            };
            add("steady", 0, Behaviour::Bulk, Renamed::Never);
            add("steady, renamed", 0, Behaviour::Bulk, Renamed::Regularly);
            for idle in [200, 500, 1000, 2000, 5000] {
                for (validation, window) in
                    [(WindowValidation::Keep, "window kept"), (WindowValidation::Rfc5681, "slow start again")]
                {
                    let behaviour = Behaviour::Restarts(Duration::from_millis(idle), validation);
                    // Slow start that goes beyond the capacity is what it is for.
                    add(&format!("idle {idle} ms, {window}"), u64::MAX, behaviour, Renamed::Never);
                    // An RTT without packets is no restart.
                    let silence = Renamed::After(path.max(Duration::from_millis(idle / 2)));
                    add(&format!("idle {idle} ms, {window}, new name"), u64::MAX, behaviour, silence);
                }
            }
            // The one that joins is in slow start.
            add("one joins", 1, Behaviour::Joined, Renamed::Never);
        }
    }
    for load in [0.1, 0.3, 0.5, 0.7, 0.9, 0.95] {
        for seed in 1..=SEEDS {
            for (what, allowed, random) in [("constant rate", 0, false), ("Poisson", 1, true)] {
                let run = move || {
                    let triggers = unanswered(load, random, seed);
                    Counts { triggers, no_slow_start: triggers, below_capacity: 0 }
                };
                let name = format!("{what} {:.0} %, seed {seed}", 100.0 * load);
                cases.push((name, allowed, allowed, Box::new(run)));
            }
        }
    }
    cases
}

/// Counts triggers in those of them whose names are chosen.
pub(super) fn check(checker: &mut Checker, chosen: impl Fn(&str) -> bool) -> String {
    let cases: Vec<Case> = cases().into_iter().filter(|(name, ..)| chosen(name)).collect();
    // Where nothing bounds all triggers, the false ones are.
    checker.declare(cases.iter().map(|(_, most, ..)| 1 + usize::from(*most < u64::MAX)).sum());
    let counts: Vec<Counts> = cases.par_iter().map(|(_, _, _, run)| run()).collect();
    let mut sum = Counts::default();
    for ((name, most, allowed, _), of) in cases.iter().zip(counts) {
        if *most < u64::MAX {
            checker.check(name, "triggers", of.triggers as f64, at_most(*most as f64));
        }
        checker.check(name, "false triggers", of.wrong() as f64, at_most(*allowed as f64));
        sum.triggers += of.triggers;
        sum.no_slow_start += of.no_slow_start;
        sum.below_capacity += of.below_capacity;
    }
    format!(
        "ten minutes at 10 Mbit/s; of {} triggers {} without a slow start, {} in one that ended below the capacity by itself; \
         signals of the fallback are not counted",
        sum.triggers, sum.no_slow_start, sum.below_capacity,
    )
}
