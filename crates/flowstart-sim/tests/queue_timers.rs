//! Queue disciplines with periodic work: their timers run on time, with or without packets, and survive a fork.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_core::aqm::taildrop::{Config, TailDrop};
use flowstart_core::aqm::{EcnCodepoint, OutgoingLink, QueueContext, QueueDiscipline, QueueState, QueuedPacket};
use flowstart_core::event::ExitReason;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::{PROFILES, Profile};
use flowstart_sim::world::World;

const PERIOD: Duration = Duration::from_millis(15);
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);

/// The action of the discipline during its phase.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The timer drops the packet that waits longest.
    Drop,
    /// Packets that arrive are marked, or dropped when their flow is not ECN-capable.
    Mark,
    /// Packets that arrive are held until the phase ends.
    Hold,
}

/// A queue with a timer every 15 ms; between the timers `from` and `to` the phase is on.
#[derive(Clone, Debug)]
struct Periodic {
    queue: TailDrop,
    phase: Phase,
    from: u64,
    to: u64,
    next: Timestamp,
    fired: u64,
    /// Timers of all clones.
    total: Arc<AtomicU64>,
}

impl Periodic {
    fn new(phase: Phase, from: u64, to: u64) -> Self {
        let queue = TailDrop::new(Config::default(), OutgoingLink::default());
        Self { queue, phase, from, to, next: Timestamp::ZERO + PERIOD, fired: 0, total: Arc::default() }
    }

    fn is_on(&self, phase: Phase) -> bool {
        self.phase == phase && (self.from..self.to).contains(&self.fired)
    }
}

impl QueueDiscipline for Periodic {
    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.is_on(Phase::Mark) {
            if packet.ecn == EcnCodepoint::NotEct {
                context.dropped.push(packet);
                return;
            }
            packet.ecn = EcnCodepoint::Ce;
        }
        self.queue.enqueue(packet, context);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        if self.is_on(Phase::Hold) { None } else { self.queue.dequeue(context) }
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }

    fn next_timer(&self) -> Timestamp {
        self.next
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        assert_eq!(context.now, self.next, "the timer fires when it was wanted");
        self.next += PERIOD;
        self.fired += 1;
        self.total.fetch_add(1, Ordering::Relaxed);
        if self.is_on(Phase::Drop)
            && let Some(packet) = self.queue.dequeue(context)
        {
            context.dropped.push(packet);
        }
    }
}

/// A transfer over 10 Mbit/s and 50 ms whose bottleneck has this discipline.
fn world(profile: Profile, discipline: &Periodic) -> (World, u32, u32) {
    let mut world = World::new(7);
    let link = LinkConfig::new(Rate::from_mbit(10), Duration::from_millis(25));
    let chain = Chain::dumbbell(&mut world, &link, &link);
    let bottleneck = chain.forward_link(0);
    world.network.set_queue(bottleneck, QueueState::Custom(Box::new(discipline.clone())));
    let host = Access { rate: Rate::from_mbit(1000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(1_000_000)), route));
    (world, flow, bottleneck)
}

fn named(name: &str) -> Profile {
    Profile::named(name).expect("a listed profile")
}

fn at_timer(number: u64) -> Timestamp {
    Timestamp::ZERO + PERIOD * number
}

#[test]
fn a_timer_runs_with_its_period_whether_or_not_packets_come() {
    let idle = Periodic::new(Phase::Drop, 0, 0);
    let mut alone = World::new(1);
    let link = alone.add_link(&LinkConfig::new(Rate::from_mbit(10), Duration::ZERO));
    alone.network.set_queue(link, QueueState::Custom(Box::new(idle.clone())));
    alone.run_until(Timestamp::from_nanos(1_000_000_000));
    // 1 s / 15 ms = 66.67.
    assert_eq!(idle.total.load(Ordering::Relaxed), 66);

    let busy = Periodic::new(Phase::Drop, 0, 0);
    let (mut world, _, _) = world(named("rfc9002"), &busy);
    world.run_until(Timestamp::from_nanos(1_000_000_000));
    assert_eq!(busy.total.load(Ordering::Relaxed), 66);
}

/// Never needs its timer.
#[derive(Clone, Debug)]
struct Timeless(TailDrop);

impl QueueDiscipline for Timeless {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        self.0.enqueue(packet, context);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.0.dequeue(context)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }

    fn on_timer(&mut self, _context: &mut QueueContext<'_>) {
        panic!("nobody wanted a timer");
    }
}

#[test]
fn a_discipline_without_a_timer_schedules_nothing() {
    let mut world = World::new(1);
    let link = world.add_link(&LinkConfig::new(Rate::from_mbit(10), Duration::ZERO));
    let timeless = Timeless(TailDrop::new(Config::default(), OutgoingLink::default()));
    world.network.set_queue(link, QueueState::Custom(Box::new(timeless)));
    assert_eq!(world.network.engine.pending(), 0);
    world.network.set_queue(link, QueueState::Custom(Box::new(Periodic::new(Phase::Drop, 0, 0))));
    assert_eq!(world.network.engine.pending(), 1);
    // A discipline takes its timer with it.
    let timeless = Timeless(TailDrop::new(Config::default(), OutgoingLink::default()));
    world.network.set_queue(link, QueueState::Custom(Box::new(timeless)));
    assert_eq!(world.network.engine.pending(), 0);
}

#[test]
fn packets_that_a_timer_drops_are_accounted_for() {
    for (name, _) in PROFILES {
        let (mut world, flow, bottleneck) = world(named(name), &Periodic::new(Phase::Drop, 20, 25));
        world.run_flow(flow, LIMIT).expect("the transfer completes");
        let record = world.record(flow);
        assert!((1..=5).contains(&record.dropped), "{name}: {record:?}");
        let first = record.first_drop.expect("something was dropped");
        assert!((20..25).any(|number| at_timer(number) == first), "{name}: dropped at {first:?}");
        assert!(record.retransmissions >= record.dropped, "{name}: {record:?}");
        let dropped = record.dropped;
        assert_eq!(world.network.link(bottleneck).counters().dropped, dropped, "{name}");
    }
}

#[test]
fn a_phase_that_timers_begin_and_end_marks_or_drops_in_its_time() {
    for name in ["rfc9002", "tcp-rfc"] {
        for ecn in [true, false] {
            let (mut world, flow, _) = world(Profile { ecn, ..named(name) }, &Periodic::new(Phase::Mark, 20, 24));
            world.run_flow(flow, LIMIT).expect("the transfer completes");
            let record = world.record(flow);
            let exit = record.exit.expect("startup ended");
            assert!((at_timer(20)..at_timer(24) + Duration::from_millis(400)).contains(&exit.time), "{name}: {exit:?}");
            if ecn {
                assert_eq!((exit.reason, record.dropped), (ExitReason::Ecn, 0), "{name}");
            } else {
                let first = record.first_drop.expect("something was dropped");
                assert!((at_timer(20)..at_timer(24)).contains(&first), "{name}: {first:?}");
                assert_eq!(exit.reason, ExitReason::Loss, "{name}");
            }
        }
    }
}

#[test]
fn a_timer_starts_an_idle_link_again() {
    // Packets are held from 300 ms to 375 ms; then the timer releases them, although nothing arrives.
    let (mut world, flow, bottleneck) = world(named("rfc9002"), &Periodic::new(Phase::Hold, 20, 25));
    world.run_until(at_timer(25) - Duration::from_nanos(1));
    assert!(world.network.link(bottleneck).waiting() > 0);
    assert_eq!(world.network.link(bottleneck).in_service(), None);
    world.run_until(at_timer(25));
    assert!(world.network.link(bottleneck).in_service().is_some());
    world.run_flow(flow, LIMIT).expect("the transfer completes");
}

#[test]
fn a_timer_survives_a_fork() {
    for (name, _) in PROFILES {
        for phase in [Phase::Drop, Phase::Mark, Phase::Hold] {
            let (mut first, flow, _) = world(named(name), &Periodic::new(phase, 20, 25));
            // Within the phase and exactly at a timer.
            for fork_at in [at_timer(22) + Duration::from_millis(7), at_timer(23)] {
                first.run_until(fork_at);
                let mut fork = first.clone();
                let mut original = first.clone();
                fork.run_flow(flow, LIMIT).expect("the transfer completes");
                original.run_flow(flow, LIMIT).expect("the transfer completes");
                assert_eq!(fork.record(flow), original.record(flow), "{name} {phase:?}");
                let (mut again, flow, _) = world(named(name), &Periodic::new(phase, 20, 25));
                again.run_flow(flow, LIMIT).expect("the transfer completes");
                assert_eq!(fork.record(flow), again.record(flow), "{name} {phase:?}: the fork changed something");
            }
        }
    }
}
