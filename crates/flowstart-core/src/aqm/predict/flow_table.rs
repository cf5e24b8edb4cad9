//! Which flows may be in slow start: a table of bounded size, four places for each hash of a flow.
//!
//! A flow is young from its first packet after an idle period until it has been signalled or its arrivals have turned
//! out to be linear in time. Everything else is background. If more flows are active than there are places, flows share
//! a place and its fate, like flows of a tunnel.

use alloc::vec;
use alloc::vec::Vec;

use super::opening::Opening;
use crate::rng::mix;

/// A constant rate doubles its volume in twice the time each time; slow start takes about the same time.
const LINEAR_RATIO: f64 = 1.7;
/// Packets that a departure causes at most in slow start. Arrivals beyond that are sent at once: initial windows, or
/// windows from before an idle time.
pub(super) const ANSWERS: f64 = 2.0;
/// Packets that a flow sends without an answer at most unless it launches: an initial window of 10 (RFC 6928) with half
/// as much again, because packets that wait elsewhere may arrive together.
const LAUNCH_PACKETS: f64 = 15.0;
/// Largest packet that is not data: handshakes and acknowledgements.
pub(super) const HANDSHAKE: f64 = 128.0;
/// Packets of a flow before its doublings are looked at.
const LINEAR_PACKETS: u32 = 16;

/// What is remembered of the flows of a bucket. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    flow: u32,
    /// When its latest packet arrived.
    pub(super) last: f64,
    /// The interval in which it arrived.
    pub(super) interval: u32,
    /// The epoch in which the flow is young; 0: none.
    pub(super) epoch: u64,
    /// When its first packet since an idle period arrived.
    pub(super) first: f64,
    /// Bytes and packets of data since then, and bytes that have left.
    pub(super) bytes: f64,
    pub(super) packets: u32,
    pub(super) departed: f64,
    /// Most bytes that had arrived beyond [`ANSWERS`] times those that had left, and all bytes by then.
    excess: f64,
    unasked: f64,
    /// When the latest packet of a launch was refused.
    pub(super) refused: f64,
    /// Packets at the next doubling.
    next_doubling: u32,
    /// When the packets doubled, the latest last.
    doublings: [f64; 3],
    /// Doublings in a row that were linear.
    linear: u8,
    /// Signals that are still to be sent, and bytes that have left at the next: a tunnel's flows need one each.
    pub(super) signals: u32,
    pub(super) next_signal: f64,
    /// It was signalled before, so its slow start ends at the resulting ssthresh.
    pub(super) told: bool,
    /// The RTT that was estimated when the flow was signalled; 0: none.
    pub(super) rtt: f64,
    /// What its handshake and its first flight tell.
    pub(super) opening: Opening,
}

impl Bucket {
    const EMPTY: Self = Self {
        flow: 0,
        last: f64::NEG_INFINITY,
        interval: u32::MAX,
        epoch: 0,
        first: 0.0,
        bytes: 0.0,
        packets: 0,
        departed: 0.0,
        excess: 0.0,
        unasked: 0.0,
        refused: f64::NEG_INFINITY,
        next_doubling: 1,
        doublings: [0.0; 3],
        linear: 0,
        signals: 0,
        next_signal: 0.0,
        told: false,
        rtt: 0.0,
        opening: Opening::NONE,
    };

    /// The flow begins, or begins again.
    pub(super) fn begin(&mut self, now: f64, epoch: u64) {
        *self = Self {
            flow: self.flow,
            last: now,
            first: now,
            epoch,
            interval: self.interval,
            rtt: self.rtt,
            told: self.told,
            ..Self::EMPTY
        };
    }

    /// Bytes that a packet adds to those that were sent without an answer: while arrivals outrun all that departures
    /// may cause, they are windows sent at once. After [`Bucket::count`].
    pub(super) fn add_unasked(&mut self) -> f64 {
        let excess = self.bytes - ANSWERS * self.departed;
        // The answers to a window that has left as a whole make it as large again, no larger.
        if excess <= self.excess {
            return 0.0;
        }
        self.excess = excess;
        self.bytes - core::mem::replace(&mut self.unasked, self.bytes)
    }

    /// Whether the packet that arrived last belongs to a launch: it was sent without an answer, and more was sent so
    /// than an initial window of RFC 6928 holds. After [`Bucket::add_unasked`].
    fn launches(&self, segment: f64) -> bool {
        self.unasked == self.bytes && self.excess > LAUNCH_PACKETS * segment
    }

    /// Whether [`Bucket::is_refused`] may hold, now or for another queue. Few packets need more than this.
    pub(super) fn may_be_refused(&self, segment: f64) -> bool {
        self.refused > f64::NEG_INFINITY || self.launches(segment)
    }

    /// Whether to drop the packet that arrived last, because the queue is long and it belongs to a launch, or one was
    /// refused within this time. After [`Bucket::add_unasked`].
    pub(super) fn is_refused(&mut self, now: f64, segment: f64, within: f64, is_long: bool) -> bool {
        let refused = is_long && (self.launches(segment) || self.refused > now - within);
        if refused {
            self.refused = now;
        }
        refused
    }

    /// Counts a packet. Whether the flow has now been linear over two doublings in a row, at packet counts 2^k.
    ///
    /// `idle_at` is when the queue was last empty: while it is not, arrivals are clocked by departures and are linear
    /// in slow start as well.
    pub(super) fn count(&mut self, now: f64, size: f64, idle_at: f64) -> bool {
        self.last = now;
        self.bytes += size;
        if size <= HANDSHAKE {
            return false;
        }
        self.packets = self.packets.saturating_add(1);
        if self.packets < self.next_doubling {
            return false;
        }
        self.next_doubling = self.next_doubling.saturating_mul(2);
        self.doublings = [self.doublings[1], self.doublings[2], now];
        if self.packets < LINEAR_PACKETS {
            return false;
        }
        let [oldest, middle, latest] = self.doublings;
        let linear = latest - middle >= LINEAR_RATIO * (middle - oldest).max(1e-6) && idle_at > middle;
        self.linear = if linear { self.linear + 1 } else { 0 };
        self.linear >= 2
    }
}

/// Places that a flow may take: with one place, two of 18 flows among 1024 places meet in 14 % of all cases.
const WAYS: usize = 4;

/// The table.
#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    buckets: Vec<Bucket>,
    ways: usize,
    /// A bucket may be taken over after this many seconds without packets.
    idle: f64,
}

impl FlowTable {
    pub(super) fn new(buckets: u32, idle: f64) -> Self {
        let ways = WAYS.min(buckets.max(1) as usize);
        let sets = (buckets as usize / ways).max(1);
        Self { buckets: vec![Bucket::EMPTY; sets * ways], ways, idle }
    }

    /// The bucket of a flow: its own, else an idle one, else one that it shares.
    #[inline]
    pub(super) fn bucket(&mut self, flow: u32, now: f64) -> &mut Bucket {
        let hash = mix(u64::from(flow));
        let sets = (self.buckets.len() / self.ways) as u64;
        let start = (hash % sets) as usize * self.ways;
        let set = &mut self.buckets[start..start + self.ways];
        let own = set.iter().position(|bucket| bucket.flow == flow && bucket.last > f64::NEG_INFINITY);
        let way = own.unwrap_or_else(|| {
            let oldest = (0..set.len()).reduce(|a, b| if set[b].last < set[a].last { b } else { a }).unwrap_or(0);
            if now - set[oldest].last > self.idle {
                set[oldest] = Bucket { flow, ..Bucket::EMPTY };
                return oldest;
            }
            (hash >> 32) as usize % set.len()
        });
        &mut set[way]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets after which arrivals at these times are called linear.
    fn linear_after(times: impl Iterator<Item = f64>) -> Option<u32> {
        let mut table = FlowTable::new(16, 1.0);
        let bucket = table.bucket(7, 0.0);
        bucket.begin(0.0, 1);
        times
            .map(|time| bucket.count(time, 1500.0, f64::INFINITY))
            .position(|linear| linear)
            .map(|index| index as u32 + 1)
    }

    #[test]
    fn a_constant_rate_is_linear_after_its_second_doubling() {
        // Doublings at packets 4, 8, 16, 32 take 4, 8, 16 intervals: the ratios at 16 and at 32 are 2.
        assert_eq!(linear_after((0..100).map(|packet| 0.01 * f64::from(packet))), Some(32));
    }

    #[test]
    fn a_window_sent_at_once_is_unasked_and_its_answers_are_not() {
        let mut bucket = Bucket::EMPTY;
        bucket.begin(0.0, 1);
        let mut arrive = |packets: u32, left: u32| -> f64 {
            bucket.departed = 1500.0 * f64::from(left);
            let packet = |_| {
                bucket.count(0.0, 1500.0, 0.0);
                bucket.add_unasked() / 1500.0
            };
            (0..packets).map(packet).sum()
        };
        // Ten at once; then two for each of the ten that have left, though these wait; then 50, which is beyond two for
        // each of the 30 that have left and the first ten: all 80 count, 70 more than before.
        assert_eq!([arrive(10, 0), arrive(20, 10), arrive(50, 30)], [10.0, 0.0, 70.0]);
    }

    #[test]
    fn a_packet_that_need_not_be_judged_is_never_refused() {
        let mut rng = crate::rng::Substream::new(1, "arrivals", 0);
        let (mut judged, mut refused) = (0, 0);
        for _ in 0..200 {
            let mut bucket = Bucket::EMPTY;
            bucket.begin(0.0, 1);
            let answered = rng.uniform();
            for packet in 0..60 {
                let now = 0.01 * f64::from(packet);
                bucket.count(now, 1500.0, 0.0);
                bucket.add_unasked();
                let may_be_refused = bucket.may_be_refused(1500.0);
                let is_long = rng.uniform() < 0.5;
                let is_refused = bucket.is_refused(now, 1500.0, 0.05, is_long);
                assert!(may_be_refused || !is_refused && bucket.refused <= now - 0.05, "{bucket:?}");
                judged += u32::from(may_be_refused);
                refused += u32::from(is_refused);
                bucket.departed += if rng.uniform() < answered { 1500.0 } else { 0.0 };
            }
        }
        assert!((1..judged).contains(&refused) && judged < 200 * 60, "{judged} {refused}");
    }

    #[test]
    fn slow_start_is_not_linear() {
        // A round of 2^k packets every second: each doubling takes a second.
        let rounds =
            (0..12).flat_map(|round| (0..(1 << round)).map(move |packet| f64::from(round) + 1e-5 * f64::from(packet)));
        assert_eq!(linear_after(rounds), None);
    }

    #[test]
    fn active_flows_keep_their_places_and_idle_ones_give_them_up() {
        let mut table = FlowTable::new(4, 1.0);
        for flow in 0..4 {
            table.bucket(flow, 0.0).begin(0.0, 1);
        }
        assert_eq!((0..4).filter(|&flow| table.bucket(flow, 0.5).flow == flow).count(), 4);
        // All places are taken by active flows: the fifth shares one.
        assert_ne!(table.bucket(4, 0.5).flow, 4);
        assert_eq!(table.bucket(4, 1.5).flow, 4);
    }
}
