//! The account of time at the bottleneck, kept while packets pass.
//!
//! The account assigns a stretch of time to its cause as soon as no later event can change the cause. Until then the
//! stretch waits for one of three events: the carried packet arrives, the flow's packets before the bottleneck show
//! since when they waited, or lost bytes pass. So memory grows with the packets in flight and with the longest
//! recovery, not with the transfer.

use std::collections::{BTreeMap, VecDeque};

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::Loss;
use flowstart_sim::observe::trace::{Entry, Event};
use flowstart_sim::ranges::RangeSet;

use super::in_order::InOrder;
use crate::spec::link::Link;

/// A stretch of simulated time in nanoseconds, half-open.
type Stretch = (u64, u64);

/// The bottleneck, and the path to it.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    link: u32,
    rate: Rate,
    /// Whether the rate determines a packet's transmission time. Otherwise opportunities or tokens determine it.
    fixed: bool,
    access_delay: Duration,
    access_rate: Rate,
}

/// The kind of a carried packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    /// The flow's, with bytes that had not arrived before.
    New,
    /// The flow's, with nothing new.
    Needless,
    /// The flow's, of which kind is not known yet.
    UnderWay,
    /// Somebody else's.
    Others,
}

/// The time between the first data packet's arrival at the bottleneck and the end, by causes. Each in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The link was free for the flow.
    pub unused: u64,
    /// The link was free for the flow while only the receiver's window stopped the sender.
    pub flow_control: u64,
    /// The link carried packets of the flow that brought nothing new.
    pub own: u64,
    /// The link carried others' packets while the flow's waited.
    pub others: u64,
    /// Nothing to carry while lost bytes were missing.
    pub recovery: u64,
    /// Nothing to carry while lost bytes were missing, after all data had been sent once.
    pub tail: u64,
    /// The application had nothing to send.
    pub idle: u64,
}

/// The account of one flow at the bottleneck. It needs every event of the world, beginning before the flow's first.
#[derive(Clone, Debug)]
pub struct Account {
    flow: u32,
    at: Bottleneck,
    /// Send times of the flow's packets between their sender and the end of the bottleneck.
    before: InOrder<Timestamp>,
    /// The same for other flows, if transmission times depend on them.
    others_before: BTreeMap<u32, InOrder<Timestamp>>,
    /// The flow's packets behind the bottleneck: their numbers among all carried packets.
    behind: InOrder<u64>,
    /// The bytes that the sender has sent and the receiver has received.
    sent: RangeSet,
    received: RangeSet,
    first_sent: Option<Timestamp>,
    last_first_sent: Timestamp,
    /// The bytes that the application has written, and the time since when all of them are sent, at the sender.
    written: u64,
    idle_since: Option<Timestamp>,
    /// The time since when only the receiver's window stops the sender.
    blocked_since: Option<Timestamp>,
    /// Idle and blocked time at the sender before the delay to the bottleneck was known.
    early: Vec<(Rest, Timestamp, Timestamp)>,
    /// Delay from the sender to the bottleneck.
    way: Option<Duration>,
    /// The time when the latest packet left the bottleneck.
    busy_until: Timestamp,
    /// Lost bytes that have not passed, by offset, with the time since when they are missing. The second list has the
    /// same in order of time; some of its bytes may have passed.
    lost: BTreeMap<u64, u64>,
    losses: VecDeque<(u64, u64)>,
    /// The carried packets with their times, beginning with the first stretch whose cause is open, and the number of
    /// the first.
    carried: VecDeque<(Stretch, Carried)>,
    number: u64,
    /// The number of others' packets among these.
    others_open: usize,
    /// Times in which a packet of the flow waited, bytes were missing, only the receiver's window stopped the sender,
    /// or the application had nothing to send. Without times that are already assigned.
    waiting: RangeSet,
    missing: RangeSet,
    blocked: RangeSet,
    idle: RangeSet,
    /// The departure of the latest packet with new bytes.
    end: u64,
    /// The time until which everything is assigned.
    cursor: u64,
    split: Split,
}

/// The reason why a sender is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Idle,
    Blocked,
}

impl Account {
    /// An account at the link number `bottleneck`, which `link` describes.
    pub fn new(bottleneck: u32, link: &Link) -> Self {
        Self {
            flow: u32::MAX,
            at: Bottleneck {
                link: bottleneck,
                rate: link.rate,
                fixed: link.has_fixed_rate(),
                access_delay: link.access_delay,
                access_rate: link.access_rate,
            },
            before: InOrder::default(),
            others_before: BTreeMap::new(),
            behind: InOrder::default(),
            sent: RangeSet::default(),
            received: RangeSet::default(),
            first_sent: None,
            last_first_sent: Timestamp::ZERO,
            written: u64::MAX,
            idle_since: None,
            blocked_since: None,
            early: Vec::new(),
            way: None,
            busy_until: Timestamp::ZERO,
            lost: BTreeMap::new(),
            losses: VecDeque::new(),
            carried: VecDeque::new(),
            number: 0,
            others_open: 0,
            waiting: RangeSet::default(),
            missing: RangeSet::default(),
            blocked: RangeSet::default(),
            idle: RangeSet::default(),
            end: 0,
            cursor: 0,
            split: Split::default(),
        }
    }

    /// Sets the flow of the account, whose hosts are at the ends of `link`.
    pub fn follow(&mut self, flow: u32, link: &Link) {
        let Bottleneck { link: number, fixed, .. } = self.at;
        self.flow = flow;
        let (access_delay, access_rate) = (link.access_delay, link.access_rate);
        self.at = Bottleneck { link: number, rate: link.rate, fixed, access_delay, access_rate };
    }

    /// Whether transmission times depend on the send times of other flows.
    pub fn needs_others(&self) -> bool {
        !self.at.fixed
    }

    /// Whether an event matters only to the account of its own flow, if [`Account::needs_others`] is false.
    #[inline]
    pub fn is_own(entry: &Entry) -> bool {
        !matches!(entry.event, Event::Departed { .. })
    }

    /// Handles an event. The copies of a packet keep their order everywhere, so each event concerns the oldest copy at
    /// its place.
    #[inline]
    pub fn on_event(&mut self, entry: &Entry) {
        let (own, now) = (entry.flow == self.flow, entry.time);
        match entry.event {
            Event::Sent { offset, len, .. } => {
                if own {
                    self.on_sent(now, offset, len);
                } else if !self.at.fixed {
                    self.others_before.entry(entry.flow).or_default().push(offset, now);
                }
            }
            Event::Departed { link, offset, size, delay_nanos } if link == self.at.link => {
                self.on_departed(entry, offset, size, Duration::from_nanos(delay_nanos));
            }
            Event::Dropped { link, offset: Some(offset), cause } => self.on_dropped(entry, link, offset, cause),
            Event::Received { offset, len } if own => self.on_received(offset, len),
            Event::FlowControl { blocked: true, .. } if own => self.blocked_since = Some(now),
            Event::FlowControl { blocked: false, .. } if own => {
                let since = self.blocked_since.take();
                since.into_iter().for_each(|since| self.rested(Rest::Blocked, since, now));
            }
            // Acknowledgements repeat a request, which writes nothing more.
            Event::Written { end } if own && end != self.written => {
                self.written = end;
                let since = self.idle_since.take();
                since.into_iter().for_each(|since| self.rested(Rest::Idle, since, now));
            }
            _ => {}
        }
    }

    #[inline]
    fn on_sent(&mut self, now: Timestamp, offset: u64, len: u32) {
        self.before.push(offset, now);
        if self.sent.insert(offset, offset + u64::from(len)) > 0 {
            self.first_sent.get_or_insert(now);
            self.last_first_sent = now;
            // More data follows, so the bytes that were missing until now were not a tail.
            self.split.recovery += std::mem::take(&mut self.split.tail);
        }
        if self.sent.contiguous_end(0) >= self.written {
            self.idle_since.get_or_insert(now);
        }
    }

    #[inline]
    fn on_departed(&mut self, entry: &Entry, offset: Option<u64>, size: u32, waited: Duration) {
        let now = entry.time;
        let own = entry.flow == self.flow;
        let sent_at = offset.and_then(|offset| {
            let before = if own { &mut self.before } else { self.others_before.get_mut(&entry.flow)? };
            before.pop(offset, |_| {})
        });
        let size = Bytes::new(u64::from(size));
        let begin = if waited > Duration::ZERO {
            // A waiting packet starts when the packet before it has left.
            self.busy_until
        } else {
            let carrying = if self.at.fixed {
                self.at.rate.time_for(size)
            } else {
                // The duration depends on opportunities or tokens, so only the arrival shows it.
                sent_at.map_or(Duration::ZERO, |sent_at| {
                    now.since(now.min(sent_at + self.at.access_delay + self.at.access_rate.time_for(size)))
                })
            };
            self.busy_until.max(now - carrying)
        };
        self.busy_until = now;
        let stretch = (begin.as_nanos(), now.as_nanos());
        if !own {
            return self.carry_others(stretch);
        }
        let Some(offset) = offset else { return self.carried.push_back((stretch, Carried::Needless)) };
        let enqueued = begin - waited;
        // The wait of the packet matters only while others' packets were carried.
        if self.others_open > 0 {
            self.waiting.insert(enqueued.as_nanos(), begin.as_nanos());
        }
        if self.way.is_none() {
            self.find_way(sent_at.map(|sent_at| enqueued.since(sent_at)));
        }
        self.behind.push(offset, self.number + self.carried.len() as u64);
        self.carried.push_back((stretch, Carried::UnderWay));
    }

    /// The link carried a packet of another flow.
    #[inline]
    fn carry_others(&mut self, stretch: Stretch) {
        // Before the flow's first data nothing counts.
        if self.first_sent.is_none() {
            return;
        }
        match self.carried.back_mut() {
            Some((last, Carried::Others)) if last.1 == stretch.0 => last.1 = stretch.1,
            _ => {
                self.others_open += 1;
                self.carried.push_back((stretch, Carried::Others));
            }
        }
    }

    /// The delay from the sender to the bottleneck is known once a packet has crossed it.
    #[cold]
    fn find_way(&mut self, way: Option<Duration>) {
        self.way = way;
        if way.is_some() {
            let early = std::mem::take(&mut self.early);
            early.into_iter().for_each(|(why, since, until)| self.rested(why, since, until));
        }
    }

    /// The sender was idle, in the sender's time.
    fn rested(&mut self, why: Rest, since: Timestamp, until: Timestamp) {
        let Some(way) = self.way else { return self.early.push((why, since, until)) };
        let ranges = if why == Rest::Idle { &mut self.idle } else { &mut self.blocked };
        ranges.insert((since + way).as_nanos(), (until + way).as_nanos());
    }

    fn on_dropped(&mut self, entry: &Entry, link: u32, offset: u64, cause: Loss) {
        let own = entry.flow == self.flow;
        let before = link == self.at.link && cause != Loss::Wire;
        if !own {
            if let Some(packets) = self.others_before.get_mut(&entry.flow).filter(|_| before)
                && packets.contains(offset)
            {
                packets.lose(offset);
            }
            return;
        }
        let behind = if before { None } else { self.behind.take_newest(offset) };
        if let Some(number) = behind {
            self.settle(number, Carried::Needless);
        } else if self.before.contains(offset) {
            self.before.lose(offset);
        }
        // Bytes that have arrived already are not missing.
        if self.received.containing(offset).is_none() && !self.lost.contains_key(&offset) {
            let now = entry.time.as_nanos();
            self.lost.insert(offset, now);
            self.losses.push_back((now, offset));
        }
    }

    #[inline]
    fn on_received(&mut self, offset: u64, len: u32) {
        let mut gone = None;
        let place = self.behind.pop(offset, |number| gone = Some(number));
        if let Some(number) = gone {
            self.settle(number, Carried::Needless);
        }
        let end = offset + u64::from(len);
        let newly = self.received.insert(offset, end);
        if let Some(number) = place {
            let what = if newly > 0 { Carried::New } else { Carried::Needless };
            let passed = self.settle(number, what);
            if newly > 0 {
                self.end = self.end.max(passed);
                if let Some(since) = self.lost.remove(&offset) {
                    self.missing.insert(since, passed);
                }
            }
        }
        if newly > 0 && !self.lost.is_empty() {
            // They came with packets other than the lost ones.
            while let Some((&there, _)) = self.lost.range(offset..end).next() {
                self.lost.remove(&there);
            }
        }
        self.advance();
    }

    /// The kind of a carried packet is known now. Returns when it was carried.
    #[inline]
    fn settle(&mut self, number: u64, what: Carried) -> u64 {
        let place = number.checked_sub(self.number).and_then(|place| self.carried.get_mut(place as usize));
        let Some((stretch, carried)) = place else { return 0 };
        *carried = what;
        stretch.1
    }

    /// The time before which nothing can change.
    #[inline]
    fn settled(&mut self) -> u64 {
        let mut until = self.end;
        // A packet before the bottleneck may have waited since it was sent.
        if self.others_open > 0
            && let Some(sent_at) = self.before.first()
        {
            until = until.min(sent_at.as_nanos());
        }
        while let Some((since, offset)) = self.losses.front() {
            if self.lost.get(offset) == Some(since) {
                until = until.min(*since);
                break;
            }
            self.losses.pop_front();
        }
        let way = self.way.unwrap_or_default();
        for since in [self.idle_since, self.blocked_since].into_iter().flatten() {
            until = until.min((since + way).as_nanos());
        }
        until
    }

    /// Assigns the stretches whose causes are known.
    #[inline]
    fn advance(&mut self) {
        let Some(begin) = self.begin() else { return };
        self.cursor = self.cursor.max(begin);
        let until = self.settled();
        let before = self.number;
        while let Some(&(stretch, what)) = self.carried.front()
            && what != Carried::UnderWay
            && stretch.1 <= until
        {
            self.carried.pop_front();
            self.number += 1;
            self.others_open -= usize::from(what == Carried::Others);
            self.put_down(stretch, what);
        }
        if self.number > before {
            for ranges in [&mut self.waiting, &mut self.missing, &mut self.blocked, &mut self.idle] {
                if ranges.ranges().first().is_some_and(|range| range.1 <= self.cursor) {
                    ranges.forget_below(self.cursor);
                }
            }
        }
    }

    /// The time when the first data packet reached the bottleneck.
    #[inline]
    fn begin(&self) -> Option<u64> {
        Some((self.first_sent? + self.way?).as_nanos())
    }

    /// Assigns a stretch and the time before it.
    #[inline]
    fn put_down(&mut self, stretch: Stretch, what: Carried) {
        let (begin, end) = (stretch.0.max(self.cursor), stretch.1);
        if begin >= end {
            return;
        }
        self.free((self.cursor, begin));
        self.cursor = end;
        match what {
            Carried::New => {}
            Carried::Needless | Carried::UnderWay => self.split.own += end - begin,
            Carried::Others => {
                // The parts of the stretch with a waiting packet of the flow, and those without.
                let mut at = begin;
                for place in places_within(&self.waiting, (begin, end)) {
                    let (from, to) = self.waiting.ranges()[place];
                    let (from, to) = (from.max(begin), to.min(end));
                    self.free((at, from));
                    self.split.others += to - from;
                    at = to;
                }
                self.free((at, end));
            }
        }
    }

    /// The link could have carried a packet of the flow.
    #[inline]
    fn free(&mut self, stretch: Stretch) {
        if stretch.0 >= stretch.1 {
            return;
        }
        let all_sent = (self.last_first_sent + self.way.unwrap_or_default()).as_nanos();
        let missing = overlap(&self.missing, stretch);
        let after = overlap(&self.missing, (stretch.0.max(all_sent).min(stretch.1), stretch.1));
        // Flow control does not stop a sender without data, so idle and blocked time do not overlap.
        let without_loss = |ranges: &RangeSet| {
            let part = |&(from, to): &Stretch| {
                let (from, to) = (from.max(stretch.0), to.min(stretch.1));
                to - from - overlap(&self.missing, (from, to))
            };
            ranges.ranges()[places_within(ranges, stretch)].iter().map(part).sum::<u64>()
        };
        let (resting, blocked) = (without_loss(&self.idle), without_loss(&self.blocked));
        self.split.idle += resting;
        self.split.flow_control += blocked;
        self.split.unused += stretch.1 - stretch.0 - missing - resting - blocked;
        self.split.tail += after;
        self.split.recovery += missing - after;
    }

    /// The split when the transfer is complete; `None` when no data of the flow passed the bottleneck.
    pub fn finish(mut self) -> Option<Split> {
        let begin = self.begin()?;
        self.cursor = self.cursor.max(begin);
        while let Some(((from, to), what)) = self.carried.pop_front() {
            self.put_down((from, to.min(self.end)), what);
        }
        Some(self.split)
    }
}

/// Places of the ranges that a stretch touches.
#[inline]
fn places_within(ranges: &RangeSet, stretch: Stretch) -> std::ops::Range<usize> {
    let ranges = ranges.ranges();
    if ranges.is_empty() {
        return 0..0;
    }
    let first = ranges.partition_point(|range| range.1 <= stretch.0);
    let last = ranges.partition_point(|range| range.0 < stretch.1);
    first..last.max(first)
}

/// The time of a stretch that the ranges cover.
#[inline]
fn overlap(ranges: &RangeSet, stretch: Stretch) -> u64 {
    let within = &ranges.ranges()[places_within(ranges, stretch)];
    within.iter().map(|range| range.1.min(stretch.1) - range.0.max(stretch.0)).sum()
}
