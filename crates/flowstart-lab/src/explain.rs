//! Where the time of a transfer went: its completion time beyond the physical limit, split into causes.
//!
//! The account is kept at the bottleneck, from the moment when the first data packet reaches it until the packet leaves
//! that completes the transfer. The limit needs the time in which the link carries the transfer's bytes once. All other
//! time there has exactly one cause, decided instant by instant:
//!
//! 1. the link carries the flow's own packet that brings nothing new: **own queue**;
//! 2. it carries others' packets while a packet of the flow waits: **others' queue**;
//! 3. it could have carried a packet of the flow, but none was there. Then, if bytes that were lost have not yet arrived:
//!    **tail** when all data had been sent once before, **recovery** otherwise. If nothing was lost: **unused capacity**,
//!    the window was too small or the sender paced.
//!
//! What the handshake took beyond the limit's is **handshake**. The rest, **other**, is what the limit does not count:
//! noise of hosts, further queues of a chain, and on recorded traces the difference between the opportunities of the limit
//! and those that the packets met. Together the causes are the completion time minus the limit, exactly.

use std::collections::HashMap;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::ranges::RangeSet;
use flowstart_sim::trace::{Event, Trace};
use flowstart_sim::transport::profile::Opening;
use serde::Serialize;

use crate::plan::{Cell, Plan};
use crate::trace_export::TracedRun;

/// Where the time of a transfer went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// Completion time.
    pub fct_ms: f64,
    /// The physical limit.
    pub ideal_fct_ms: f64,
    /// The handshake beyond the limit's: queues and repetitions.
    pub handshake_ms: f64,
    /// The link was free for the flow, and it sent nothing.
    pub unused_capacity_ms: f64,
    /// The link carried packets of the flow that brought nothing new.
    pub own_queue_ms: f64,
    /// The link carried others' packets while the flow's waited.
    pub others_queue_ms: f64,
    /// Nothing to carry while lost bytes were missing.
    pub recovery_ms: f64,
    /// The same after all data had been sent once.
    pub tail_ms: f64,
    /// What the limit does not count.
    pub other_ms: f64,
}

/// The causes in the order of reports, with what each means.
pub const CAUSES: [(&str, &str); 7] = [
    ("handshake", "the handshake beyond the limit's"),
    ("unused capacity", "the link was free for the flow, and it sent nothing"),
    ("own queue", "the link carried the flow's packets that brought nothing new"),
    ("others' queue", "the link carried others' packets while the flow's waited"),
    ("recovery", "nothing to carry while lost bytes were missing"),
    ("tail", "the same after all data had been sent once"),
    ("other", "noise of hosts, further queues, opportunities of a trace"),
];

impl Explanation {
    /// The causes' times in milliseconds, in the order of [`CAUSES`].
    pub fn causes(&self) -> [f64; 7] {
        [
            self.handshake_ms,
            self.unused_capacity_ms,
            self.own_queue_ms,
            self.others_queue_ms,
            self.recovery_ms,
            self.tail_ms,
            self.other_ms,
        ]
    }
}

/// Explains the first measured flow of a traced run; `None` when it did not finish or nothing was traced.
pub fn explain(plan: &Plan, cell: &Cell, run: &TracedRun) -> Option<Explanation> {
    let outcome = run.outcomes.first()?;
    let record = &outcome.record;
    let (started, completed, first_sent) = (record.started?, record.completed?, record.first_data_sent?);
    let flow = *run.finished.flows.first()?;
    let trace = run.finished.world.network.trace.as_deref()?;
    let link = &plan.links[cell.link];
    let rate = link.trace.is_none().then_some(link.rate);
    let account = Account::read(trace, flow, run.finished.world.network.monitor.as_ref()?.link, |size| {
        rate.map_or(Duration::ZERO, |rate| rate.time_for(flowstart_core::units::Bytes::new(u64::from(size))))
    })?;

    let rtt = link.rtt + link.access_delay * 4;
    let ideal_handshake = match plan.transport.profile.opening {
        Opening::Sender => rtt,
        Opening::Request => rtt + rtt / 2,
        Opening::ZeroRtt => rtt / 2,
    };
    let fct_ms = completed.since(started).as_millis();
    let ideal_fct_ms = outcome.ideal_fct.as_millis();
    let handshake_ms = first_sent.since(started).as_millis() - ideal_handshake.as_millis();
    let [unused_capacity_ms, own_queue_ms, others_queue_ms, recovery_ms, tail_ms] = account.split();
    let known = handshake_ms + unused_capacity_ms + own_queue_ms + others_queue_ms + recovery_ms + tail_ms;
    Some(Explanation {
        fct_ms,
        ideal_fct_ms,
        handshake_ms,
        unused_capacity_ms,
        own_queue_ms,
        others_queue_ms,
        recovery_ms,
        tail_ms,
        other_ms: fct_ms - ideal_fct_ms - known,
    })
}

/// A stretch of simulated time in nanoseconds, half-open.
type Stretch = (u64, u64);

/// What passed the bottleneck, in nanoseconds of simulated time.
#[derive(Debug, Default)]
struct Account {
    /// Every packet that the link carried: when it was carried and what it was.
    carried: Vec<(Stretch, Carried)>,
    /// When a packet of the flow waited.
    waiting: RangeSet,
    /// When bytes were missing that had been lost.
    missing: RangeSet,
    /// When the last byte would have been there for the first time.
    all_sent: u64,
    /// When the first data packet reached the bottleneck.
    begin: u64,
    /// When the packet left that completed the transfer.
    end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    /// The flow's, with bytes that had not arrived before.
    New,
    /// The flow's, with nothing new.
    Needless,
    /// Somebody else's.
    Others,
}

/// A data packet of the flow that left the bottleneck.
#[derive(Clone, Copy, Debug)]
struct Passage {
    end: Timestamp,
    place: usize,
    taken: bool,
}

impl Account {
    /// Reads a trace. `service` is how long the link takes for a packet of this wire size, zero where that is not known.
    fn read(trace: &Trace, flow: u32, bottleneck: u32, service: impl Fn(u32) -> Duration) -> Option<Self> {
        let mut account = Self::default();
        let mut passages: HashMap<u64, Vec<Passage>> = HashMap::new();
        let mut first_sent: HashMap<u64, Timestamp> = HashMap::new();
        let mut lost: HashMap<u64, u64> = HashMap::new();
        let mut received = RangeSet::default();
        let mut last_first_sent = Timestamp::ZERO;
        // From the sender to the bottleneck.
        let mut way = None;
        let mut busy_until = Timestamp::ZERO;
        for entry in &trace.entries {
            match entry.event {
                Event::Departed { link, offset, size, delay_nanos } if link == bottleneck => {
                    let waited = Duration::from_nanos(delay_nanos);
                    let carrying = service(size);
                    let enqueued = entry.time - carrying - waited;
                    let begin =
                        if carrying > Duration::ZERO { entry.time - carrying } else { busy_until.max(enqueued) };
                    busy_until = entry.time;
                    let stretch = (begin.as_nanos(), entry.time.as_nanos());
                    if entry.flow != flow {
                        account.carried.push((stretch, Carried::Others));
                        continue;
                    }
                    account.carried.push((stretch, Carried::Needless));
                    let Some(offset) = offset else { continue };
                    account.waiting.insert(enqueued.as_nanos(), begin.as_nanos());
                    if way.is_none() {
                        way = first_sent.get(&offset).map(|sent| enqueued.since(*sent));
                    }
                    let place = account.carried.len() - 1;
                    passages.entry(offset).or_default().push(Passage { end: entry.time, place, taken: false });
                }
                Event::Sent { offset, .. } if entry.flow == flow => {
                    if let std::collections::hash_map::Entry::Vacant(vacant) = first_sent.entry(offset) {
                        vacant.insert(entry.time);
                        last_first_sent = entry.time;
                        account.begin = if account.begin == 0 { entry.time.as_nanos() } else { account.begin };
                    }
                }
                Event::Dropped { offset: Some(offset), .. } if entry.flow == flow => {
                    lost.entry(offset).or_insert(entry.time.as_nanos());
                }
                Event::Received { offset, len } if entry.flow == flow => {
                    if received.insert(offset, offset + u64::from(len)) == 0 {
                        continue;
                    }
                    // The copy that arrived is the latest that had left and was not another arrival's.
                    let passage = passages
                        .get_mut(&offset)
                        .and_then(|copies| copies.iter_mut().rev().find(|copy| !copy.taken && copy.end <= entry.time));
                    if let Some(passage) = passage {
                        passage.taken = true;
                        account.carried[passage.place].1 = Carried::New;
                        account.end = account.end.max(passage.end.as_nanos());
                        if let Some(since) = lost.remove(&offset) {
                            account.missing.insert(since, passage.end.as_nanos());
                        }
                    }
                }
                _ => {}
            }
        }
        let way = way?.as_nanos();
        account.begin += way;
        account.all_sent = last_first_sent.as_nanos() + way;
        Some(account)
    }

    /// Milliseconds of unused capacity, own queue, others' queue, recovery and tail.
    fn split(&self) -> [f64; 5] {
        let [mut unused, mut own, mut others, mut recovery, mut tail] = [0; 5];
        let mut free = |stretch: Stretch| {
            let missing = overlap(&self.missing, stretch);
            let after = overlap(&self.missing, (stretch.0.max(self.all_sent).min(stretch.1), stretch.1));
            unused += stretch.1 - stretch.0 - missing;
            tail += after;
            recovery += missing - after;
        };
        let mut cursor = self.begin;
        for &((begin, end), what) in &self.carried {
            let (begin, end) = (begin.max(cursor), end.min(self.end));
            if begin >= end {
                continue;
            }
            free((cursor, begin));
            cursor = end;
            match what {
                Carried::New => {}
                Carried::Needless => own += end - begin,
                Carried::Others => {
                    // The parts of the stretch in which a packet of the flow waited, and those in which none did.
                    let mut at = begin;
                    for &(from, to) in within(&self.waiting, (begin, end)) {
                        let (from, to) = (from.max(begin), to.min(end));
                        free((at, from));
                        others += to - from;
                        at = to;
                    }
                    free((at, end));
                }
            }
        }
        [unused, own, others, recovery, tail].map(|nanos| nanos as f64 / 1e6)
    }
}

/// The ranges that a stretch touches.
fn within(ranges: &RangeSet, stretch: Stretch) -> &[(u64, u64)] {
    let ranges = ranges.ranges();
    let first = ranges.partition_point(|range| range.1 <= stretch.0);
    let last = ranges.partition_point(|range| range.0 < stretch.1);
    &ranges[first..last.max(first)]
}

/// How much of a stretch the ranges cover.
fn overlap(ranges: &RangeSet, stretch: Stretch) -> u64 {
    within(ranges, stretch).iter().map(|range| range.1.min(stretch.1) - range.0.max(stretch.0)).sum()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::Scenario;
    use crate::trace_export::trace;

    fn explained(link: &str, size: &str, scheme: &str, competitor: &str, transport: &str) -> Explanation {
        let scenario = Scenario {
            link: vec![link.into()],
            size: vec![size.into()],
            scheme: vec![scheme.into()],
            aqm: vec!["taildrop".into()],
            competitor: vec![competitor.into()],
            transport: transport.into(),
            flows: 1,
            reps: 1,
            hint: true,
            ..Scenario::default()
        };
        let plan = scenario.plan(Path::new(".")).unwrap();
        let cell = plan.cells()[0];
        explain(&plan, &cell, &trace(&plan, &cell, 0)).unwrap()
    }

    fn close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected} +- {tolerance}");
    }

    const WIDE: &str = "rate=10mbit,rtt=100ms,buffer=1000pkt";

    #[test]
    fn the_causes_are_the_time_beyond_the_limit() {
        for (link, competitor) in [(WIDE, "none"), ("rate=10mbit,rtt=50ms,buffer=20pkt,loss=1%", "bulk")] {
            for transport in ["model-quic", "model-tcp", "model-tcp:profile=ns2-sack1"] {
                let explained = explained(link, "400KB", "slow-start", competitor, transport);
                let sum: f64 = explained.causes().iter().sum();
                close(sum, explained.fct_ms - explained.ideal_fct_ms, 1e-6);
                // Everything but the remainder is a time, and the remainder is small.
                assert!(explained.causes()[1..6].iter().all(|cause| *cause >= 0.0), "{explained:?}");
                close(explained.other_ms, 0.0, 2.0);
            }
        }
    }

    #[test]
    fn slow_start_alone_leaves_capacity_unused_for_its_rounds() {
        // ns-2's profile without losses: IW 3, an acknowledgement per packet, 1.2 ms a packet, 100 ms RTT. The rounds
        // send 3, 6, 12, 24, 48 packets; from the sixth on (96 packets, 115 ms) the link is busy. Each of the five rounds
        // takes the RTT and its first packet's time, and carries its packets: 5 * 101.2 - 93 * 1.2 = 394.4 ms.
        let explained = explained(WIDE, "400KB", "slow-start", "none", "model-tcp:profile=ns2-sack1");
        close(explained.unused_capacity_ms, 394.4, 1.0);
        close(explained.causes().iter().sum::<f64>(), explained.unused_capacity_ms, 2.0);
    }

    #[test]
    fn a_launch_at_the_links_rate_wastes_next_to_nothing() {
        let explained = explained(WIDE, "400KB", "jump-start", "none", "model-quic");
        assert!(explained.unused_capacity_ms < 150.0, "{explained:?}");
        close(explained.recovery_ms + explained.tail_ms + explained.own_queue_ms, 0.0, 1e-9);
    }

    #[test]
    fn constant_traffic_shows_as_others_queue() {
        // The transfer's packets come three times as fast as the link carries them and stand before most of the others',
        // which come at half of its rate: they take some of the time, and never more than half.
        let explained = explained(WIDE, "400KB", "jump-start", "cbr:rate=5mbit", "model-quic");
        let transfer = 400.0 * 8.0 / 10.0;
        assert!(explained.others_queue_ms > 0.05 * transfer && explained.others_queue_ms < transfer, "{explained:?}");
    }

    #[test]
    fn lost_packets_cost_recovery_or_tail() {
        let explained = explained("rate=10mbit,rtt=100ms,buffer=20pkt", "400KB", "jump-start", "none", "model-quic");
        assert!(explained.recovery_ms + explained.tail_ms > 50.0, "{explained:?}");
    }
}
