//! Loads that are no transient: Predict must not see one, and not only because it remembers flows as settled.
//!
//! Most runs hide the identity of flows: they get a new number every 20 s, so that Predict takes each for a new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_core::aqm::predict::{self, Predict};
use flowstart_core::aqm::{
    EcnCodepoint, OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueState, QueueStats, QueuedPacket,
};
use flowstart_core::rng::Substream;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::{FlowConfig, World};
use rayon::prelude::*;

use super::super::{Checker, Verdict};

/// Rate of the link.
const RATE: Rate = Rate::from_mbit(10);
/// Ten minutes, and the time that flows have to settle before.
const MINUTES: u64 = 600;
const SETTLED: u64 = 30;
/// Flows get a new number so often.
const RENAMED: Duration = Duration::from_millis(20_000);
/// Numbers of flows between two renamings.
const STRIDE: u32 = 1 << 16;
/// A packet of a constant-rate or Poisson-like load.
const PACKET: u32 = 1500;
/// Runs of each random load.
const SEEDS: u64 = 10;

/// Predict, which may not know flows by their names for long.
#[derive(Clone, Debug)]
struct Observed {
    inner: Predict,
    renames: bool,
    triggers: Arc<AtomicU64>,
}

impl QueueDiscipline for Observed {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.renames {
            packet.flow += STRIDE * ((context.now.as_nanos() / RENAMED.as_nanos()) % 1000) as u32;
        }
        self.inner.enqueue(packet, context);
        context.dropped.iter_mut().for_each(|packet| packet.flow %= STRIDE);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let packet = self.inner.dequeue(context);
        context.dropped.iter_mut().for_each(|packet| packet.flow %= STRIDE);
        self.triggers.store(self.inner.triggers(), Ordering::Relaxed);
        packet.map(|packet| QueuedPacket { flow: packet.flow % STRIDE, ..packet })
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn bytes(&self) -> Bytes {
        self.inner.bytes()
    }

    fn stats(&self) -> QueueStats {
        self.inner.stats()
    }

    fn may_have_timer(&self) -> bool {
        false
    }
}

/// What CUBIC flows do.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    /// They always have data.
    Bulk,
    /// They write 3 MB each and are idle for about this time in between.
    Restarts(Duration),
    /// One more flow begins a minute after the others.
    Joined,
}

/// Triggers in ten minutes after the flows have settled.
fn cubic(flows: u32, rtt: Duration, behaviour: Behaviour, renames: bool) -> u64 {
    let mut world = World::new(1);
    let link = LinkConfig::new(RATE, Duration::ZERO);
    let chain = Chain::dumbbell(&mut world, &link, &LinkConfig::new(RATE.scale(10.0), Duration::ZERO));
    let triggers = Arc::new(AtomicU64::new(0));
    let outgoing = OutgoingLink { limit: QueueLimit::default(), rate: Some(RATE) };
    let inner = Predict::new(predict::Config::default(), outgoing);
    let queue = Observed { inner, renames, triggers: Arc::clone(&triggers) };
    world.network.set_queue(chain.forward_link(0), QueueState::Custom(Box::new(queue)));
    let profile = Arc::new(Profile {
        ecn: true,
        receive_window: Bytes::new(1 << 30),
        startup: StartupConfig::SlowStart(slow_start::Config::default()),
        ..Profile::tcp_linux()
    });
    let access = Access { rate: RATE.scale(10.0), delay: rtt.scale(0.25), jitter: None };
    let settled = Timestamp::ZERO + Duration::from_secs(SETTLED as f64);
    let more = u32::from(matches!(behaviour, Behaviour::Joined));
    for flow in 0..flows + more {
        let route = chain.connect(&mut world, access, access);
        let pattern = match behaviour {
            Behaviour::Bulk | Behaviour::Joined => Pattern::Bulk,
            Behaviour::Restarts(idle) => {
                let size = Bytes::new(3_000_000);
                let interval = RATE.time_for(size) * u64::from(flows) + idle;
                Pattern::Chunks { size, interval, count: u32::MAX }
            }
        };
        let mut config = FlowConfig::new(Arc::clone(&profile), pattern, route);
        config.start = Timestamp::ZERO + Duration::from_millis(100) * u64::from(flow);
        if flow >= flows {
            config.start = settled + Duration::from_secs(60.0);
        }
        world.add_flow(config);
    }
    world.run_until(settled);
    let start = triggers.load(Ordering::Relaxed);
    world.run_until(settled + Duration::from_secs(MINUTES as f64));
    triggers.load(Ordering::Relaxed) - start
}

/// Triggers in a minute by packets that nobody answers, at `load` of the rate.
fn unanswered(load: f64, random: bool, seed: u64) -> u64 {
    let outgoing = OutgoingLink { limit: QueueLimit::default(), rate: Some(RATE) };
    let mut queue = Predict::new(predict::Config::default(), outgoing);
    let mut rng = Substream::new(seed, "load", 0);
    let mut gaps = Substream::new(seed, "unanswered packets", 0);
    let mut dropped = Vec::new();
    let service = RATE.time_for(Bytes::new(u64::from(PACKET)));
    let (mut arrival, mut free) = (Timestamp::ZERO + Duration::from_secs(1.0), Timestamp::ZERO);
    let end = Timestamp::ZERO + Duration::from_secs(61.0);
    while arrival < end {
        // The link sends what it can before the next packet arrives.
        while !queue.is_empty() && free <= arrival {
            let mut context = QueueContext { now: free, in_service: None, rng: &mut rng, dropped: &mut dropped };
            if queue.dequeue(&mut context).is_some() {
                free += service;
            }
        }
        let packet = QueuedPacket { handle: 0, size: PACKET, flow: 0, ecn: EcnCodepoint::NotEct, enqueued_at: arrival };
        let mut context = QueueContext { now: arrival, in_service: None, rng: &mut rng, dropped: &mut dropped };
        queue.enqueue(packet, &mut context);
        if free <= arrival {
            let mut context = QueueContext { now: arrival, in_service: None, rng: &mut rng, dropped: &mut dropped };
            if queue.dequeue(&mut context).is_some() {
                free = arrival + service;
            }
        }
        let mean = service.as_secs() / load;
        // A constant rate has 2 % of jitter, as clocks of hosts do.
        let gap = if random { gaps.exponential(mean) } else { mean * (0.98 + 0.04 * gaps.uniform()) };
        arrival += Duration::from_secs(gap);
    }
    queue.triggers()
}

/// A run: its name, how many triggers are allowed, and how to count them.
type Case = (String, u64, Box<dyn Fn() -> u64 + Send + Sync>);

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for flows in [1, 4, 16] {
        for rtt in [20, 100, 300] {
            let path = Duration::from_millis(rtt);
            let name = |what: &str| format!("{flows} CUBIC, {rtt} ms, {what}");
            let mut add = |what: &str, allowed, behaviour, renames| {
                let run: Box<dyn Fn() -> u64 + Send + Sync> = Box::new(move || cubic(flows, path, behaviour, renames));
                cases.push((name(what), allowed, run));
            };
            add("steady", 0, Behaviour::Bulk, false);
            add("steady, renamed", 0, Behaviour::Bulk, true);
            for idle in [200, 500, 1000, 2000, 5000] {
                add(&format!("idle {idle} ms"), 0, Behaviour::Restarts(Duration::from_millis(idle)), false);
            }
            // The one that joins is in slow start.
            add("one joins", 1, Behaviour::Joined, false);
        }
    }
    for load in [0.1, 0.3, 0.5, 0.7, 0.9, 0.95] {
        for seed in 1..=SEEDS {
            let name = |what: &str| format!("{what} {:.0} %, seed {seed}", 100.0 * load);
            cases.push((name("constant rate"), 0, Box::new(move || unanswered(load, false, seed))));
            cases.push((name("Poisson"), 1, Box::new(move || unanswered(load, true, seed))));
        }
    }
    cases
}

/// Counts triggers in all of them.
pub(super) fn check(jobs: usize) -> Result<Verdict, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(|error| error.to_string())?;
    let cases = cases();
    let counts: Vec<u64> = pool.install(|| cases.par_iter().map(|(_, _, run)| run()).collect());
    let mut checker = Checker::default();
    for ((name, allowed, _), count) in cases.iter().zip(counts) {
        checker.check(name, "triggers", count as f64, *allowed as f64, count <= *allowed, format!("at most {allowed}"));
    }
    Ok(checker
        .verdict("predict-false-triggers", "ten minutes at 10 Mbit/s; signals of the fallback are not counted".into()))
}
