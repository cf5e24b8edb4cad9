//! The account from all events of a run at once, as a reference for the account that is kept during the run.

use std::collections::{HashMap, VecDeque};

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::link::Loss;
use flowstart_sim::observe::trace::{Event, Trace};
use flowstart_sim::ranges::RangeSet;

use super::Split;
use crate::spec::link::Link;

/// A stretch of simulated time in nanoseconds, half-open.
type Stretch = (u64, u64);

/// The passages at the bottleneck, in nanoseconds of simulated time.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Every packet that the link carried: its time and its kind.
    carried: Vec<(Stretch, Carried)>,
    /// Times in which a packet of the flow waited.
    waiting: RangeSet,
    /// Times in which lost bytes were missing.
    missing: RangeSet,
    /// Times in which only the receiver's window stopped the sender.
    blocked: RangeSet,
    /// Times in which the application had nothing to send. Always empty for a transfer.
    idle: RangeSet,
    /// The time when the last byte would have reached the bottleneck for the first time.
    all_sent: u64,
    /// The time when the first data packet reached the bottleneck.
    begin: u64,
    /// The time when the packet that completed the transfer left.
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

impl Account {
    /// Reads a trace. The copies of a packet keep their order everywhere, so each event concerns the oldest copy at its
    /// place.
    pub(super) fn read(trace: &Trace, flow: u32, bottleneck: u32, link: &Link) -> Option<Self> {
        let mut account = Self::default();
        // Send times of packets between their sender and the end of the bottleneck.
        let mut before: HashMap<(u32, u64), VecDeque<Timestamp>> = HashMap::new();
        // Packets of the flow behind the bottleneck: their places in `carried`.
        let mut behind: HashMap<u64, VecDeque<usize>> = HashMap::new();
        let mut lost: HashMap<u64, u64> = HashMap::new();
        let mut received = RangeSet::default();
        let mut sent = RangeSet::default();
        let mut first_sent = None;
        let mut last_first_sent = Timestamp::ZERO;
        // The bytes that the application has written, and the time since when all of them are sent, at the sender.
        let (mut written, mut idle_since) = (u64::MAX, None);
        let mut idle: Vec<(Timestamp, Timestamp)> = Vec::new();
        let mut blocked_since = None;
        let mut blocked: Vec<(Timestamp, Timestamp)> = Vec::new();
        // Delay from the sender to the bottleneck.
        let mut way = None;
        let mut busy_until = Timestamp::ZERO;
        for entry in &trace.entries {
            let (own, now) = (entry.flow == flow, entry.time);
            match entry.event {
                Event::Sent { offset, len, .. } => {
                    before.entry((entry.flow, offset)).or_default().push_back(now);
                    if own && sent.insert(offset, offset + u64::from(len)) > 0 {
                        first_sent.get_or_insert(now);
                        last_first_sent = now;
                    }
                    if own && sent.contiguous_end(0) >= written {
                        idle_since.get_or_insert(now);
                    }
                }
                Event::Departed { link: at, offset, size, delay_nanos } if at == bottleneck => {
                    let sent_at =
                        offset.and_then(|offset| before.get_mut(&(entry.flow, offset))).and_then(VecDeque::pop_front);
                    let waited = Duration::from_nanos(delay_nanos);
                    let size = Bytes::new(u64::from(size));
                    let begin = if waited > Duration::ZERO {
                        // A waiting packet starts when the packet before it has left.
                        busy_until
                    } else {
                        let carrying = match link.has_fixed_rate() {
                            true => link.rate.time_for(size),
                            // The duration depends on opportunities or tokens, so only the arrival shows it.
                            false => sent_at.map_or(Duration::ZERO, |sent_at| {
                                now.since(now.min(sent_at + link.access_delay + link.access_rate.time_for(size)))
                            }),
                        };
                        busy_until.max(now - carrying)
                    };
                    busy_until = now;
                    let stretch = (begin.as_nanos(), now.as_nanos());
                    if !own {
                        account.carried.push((stretch, Carried::Others));
                        continue;
                    }
                    account.carried.push((stretch, Carried::Needless));
                    let Some(offset) = offset else { continue };
                    let enqueued = begin - waited;
                    account.waiting.insert(enqueued.as_nanos(), begin.as_nanos());
                    way = way.or_else(|| Some(enqueued.since(sent_at?)));
                    behind.entry(offset).or_default().push_back(account.carried.len() - 1);
                }
                Event::Dropped { link: at, offset: Some(offset), cause } => {
                    if at == bottleneck && cause != Loss::Wire {
                        before.get_mut(&(entry.flow, offset)).and_then(VecDeque::pop_front);
                    } else if own {
                        behind.get_mut(&offset).and_then(VecDeque::pop_front);
                    }
                    if own {
                        lost.entry(offset).or_insert(now.as_nanos());
                    }
                }
                Event::Received { offset, len } if own => {
                    let place = behind.get_mut(&offset).and_then(VecDeque::pop_front);
                    if received.insert(offset, offset + u64::from(len)) == 0 {
                        continue;
                    }
                    let Some(place) = place else { continue };
                    let (_, end) = account.carried[place].0;
                    account.carried[place].1 = Carried::New;
                    account.end = account.end.max(end);
                    if let Some(since) = lost.remove(&offset) {
                        account.missing.insert(since, end);
                    }
                }
                Event::FlowControl { blocked: true, .. } if own => blocked_since = Some(now),
                Event::FlowControl { blocked: false, .. } if own => {
                    blocked.extend(blocked_since.take().map(|since| (since, now)));
                }
                // Acknowledgements repeat a request, which writes nothing more.
                Event::Written { end } if own && end != written => {
                    written = end;
                    idle.extend(idle_since.take().map(|since| (since, now)));
                }
                _ => {}
            }
        }
        let way = way?;
        for (since, until) in idle {
            account.idle.insert((since + way).as_nanos(), (until + way).as_nanos());
        }
        for (since, until) in blocked {
            account.blocked.insert((since + way).as_nanos(), (until + way).as_nanos());
        }
        account.begin = (first_sent? + way).as_nanos();
        account.all_sent = (last_first_sent + way).as_nanos();
        Some(account)
    }

    /// The split of the time.
    pub(super) fn split(&self) -> Split {
        let [mut unused, mut flow_control, mut own, mut others, mut recovery, mut tail, mut idle] = [0; 7];
        let mut free = |stretch: Stretch| {
            let missing = overlap(&self.missing, stretch);
            let after = overlap(&self.missing, (stretch.0.max(self.all_sent).min(stretch.1), stretch.1));
            // Flow control does not stop a sender without data, so idle and blocked time do not overlap.
            let without_loss = |ranges| {
                let part = |&(from, to): &Stretch| {
                    let (from, to) = (from.max(stretch.0), to.min(stretch.1));
                    to - from - overlap(&self.missing, (from, to))
                };
                within(ranges, stretch).iter().map(part).sum::<u64>()
            };
            let (resting, blocked) = (without_loss(&self.idle), without_loss(&self.blocked));
            idle += resting;
            flow_control += blocked;
            unused += stretch.1 - stretch.0 - missing - resting - blocked;
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
                    // The parts of the stretch with a waiting packet of the flow, and those without.
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
        Split { unused, flow_control, own, others, recovery, tail, idle }
    }
}

/// The ranges that a stretch touches.
fn within(ranges: &RangeSet, stretch: Stretch) -> &[(u64, u64)] {
    let ranges = ranges.ranges();
    let first = ranges.partition_point(|range| range.1 <= stretch.0);
    let last = ranges.partition_point(|range| range.0 < stretch.1);
    &ranges[first..last.max(first)]
}

/// The time of a stretch that the ranges cover.
fn overlap(ranges: &RangeSet, stretch: Stretch) -> u64 {
    within(ranges, stretch).iter().map(|range| range.1.min(stretch.1) - range.0.max(stretch.0)).sum()
}
