//! `CoDel`: drops, ever more often, while packets have waited longer than a target for a whole interval.
//!
//! Reference: RFC 8289, section 5. The delay that counts is the smallest one within an interval, since a burst that
//! drains does no harm. Once every packet of an interval has waited longer than the target, packets are dropped at the
//! head of the queue, the next one interval / sqrt(count) later, until one has waited less. A queue of one packet is
//! exempt.
//!
//! Checked line by line against the RFC's pseudo-code, Linux's `codel_impl.h` and ns-3's `codel-queue-disc.cc` with its
//! tests. In Linux the interval has to be over, not just to end, and inverse roots are approximated; ns-3 drops at a
//! backlog of one packet, too.
//!
//! Differences from the reference: `ecn` marks instead, one packet per decision, as Linux and ns-3 do; the RFC allows
//! marks and leaves open how. Marks are on here, and off in Linux's `codel` unless it is told `ecn`. The size of an
//! exempt packet is the largest seen so far; the RFC takes the MTU. `reentry` chooses how fast dropping starts again:
//! the RFC's rule, or those of ns-2's modules. The module of 2012 takes one from count. The module of 2013 takes two,
//! within 8 intervals, reduces count by 1/64 when it is above 126, and shortens the first interval.
//!
//! Status: worked examples of each line of the pseudo-code.

use alloc::vec::Vec;

use super::fifo::Fifo;
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "drops while the smallest delay of an interval exceeds the target, ever more often";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 8289";

/// How often packets are dropped when dropping begins again soon after it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reentry {
    /// As many drops as the last time added, within 16 intervals (RFC 8289, section 5.5; Linux).
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "rfc8289"))]
    Rfc8289,
    /// One less than the last time, within 16 intervals (the first module for ns-2, 2012).
    #[cfg_attr(feature = "serde", serde(rename = "ns2-2012"))]
    Ns2First,
    /// Two less than the last time, within 8 intervals, or 1/64 less above 126. The delay has to stay above the target
    /// only as long as the last time between two drops (the module for ns-2 of 2013).
    #[cfg_attr(feature = "serde", serde(rename = "ns2-2013"))]
    Ns2Second,
    /// Two less than the last time, within 8 intervals (ns-2's sfqCoDel).
    #[cfg_attr(feature = "serde", serde(rename = "ns2-sfq"))]
    Ns2Sfq,
}

/// Parameters of `CoDel`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// TARGET: delay that may persist, 1us to 10s. RFC 8289, section 4.3: 5 ms.
    pub target: Duration,
    /// INTERVAL: how long it must persist before something is dropped, the largest usual RTT, 1us to 100s. RFC 8289,
    /// section 4.2: 100 ms.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead. Default: yes; packets of other senders are dropped.
    pub ecn: bool,
    /// How dropping begins again. Default: as in RFC 8289.
    pub reentry: Reentry,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: true,
            reentry: Reentry::Rfc8289,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let least = Duration::from_micros(1);
        ConfigError::unless_in("target", self.target, least..=Duration::from_millis(10_000))?;
        ConfigError::unless_in("interval", self.interval, least..=Duration::from_millis(100_000))
    }
}

/// The law's state for one queue, named as in RFC 8289, section 5.4.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above_time: Option<Timestamp>,
    /// When the next packet is dropped.
    drop_next: Timestamp,
    /// Packets dropped since dropping began, and what it began with.
    count: u32,
    /// `count` when dropping began last.
    lastcount: u32,
    /// Packets are being dropped.
    dropping: bool,
    /// The largest packet so far.
    maxpacket: u32,
}

impl Vars {
    /// The law: returns the packet to send. `next` takes the first packet of the queue and returns how many bytes it
    /// leaves behind; it is called again for every dropped packet. `config` may change from call to call.
    pub fn dequeue(
        &mut self,
        config: &Config,
        now: Timestamp,
        stats: &mut QueueStats,
        dropped: &mut Vec<QueuedPacket>,
        mut next: impl FnMut() -> Option<(QueuedPacket, Bytes)>,
    ) -> Option<QueuedPacket> {
        let Some((mut packet, mut ok_to_drop)) = self.dodequeue(config, now, &mut next) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                if config.ecn && packet.mark() {
                    stats.marked += 1;
                    self.count = self.count.saturating_add(1);
                    self.drop_next = self.control_law(config, self.drop_next);
                    break;
                }
                stats.dropped_early += 1;
                dropped.push(packet);
                let counts_at_once = matches!(config.reentry, Reentry::Rfc8289 | Reentry::Ns2First);
                self.count = self.count.saturating_add(u32::from(counts_at_once));
                let Some(following) = self.dodequeue(config, now, &mut next) else {
                    self.dropping = false;
                    return None;
                };
                (packet, ok_to_drop) = following;
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.count = self.count.saturating_add(u32::from(!counts_at_once));
                    self.drop_next = self.control_law(config, self.drop_next);
                }
            }
        } else if ok_to_drop {
            self.dropping = true;
            self.count = self.first_count(config, now);
            self.lastcount = self.count;
            self.drop_next = self.control_law(config, now);
            if config.ecn && packet.mark() {
                stats.marked += 1;
            } else {
                stats.dropped_early += 1;
                dropped.push(packet);
                packet = self.dodequeue(config, now, &mut next)?.0;
            }
        }
        Some(packet)
    }

    /// This many packets of the queue were dropped because it was full, which calls for more drops (`sch_fq_codel` of
    /// Linux).
    pub fn count_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Takes a packet, and whether it may be dropped.
    fn dodequeue(
        &mut self,
        config: &Config,
        now: Timestamp,
        next: &mut impl FnMut() -> Option<(QueuedPacket, Bytes)>,
    ) -> Option<(QueuedPacket, bool)> {
        let Some((packet, bytes)) = next() else {
            self.first_above_time = None;
            return None;
        };
        self.maxpacket = self.maxpacket.max(packet.size);
        if packet.sojourn(now) < config.target || bytes <= Bytes::new(u64::from(self.maxpacket)) {
            self.first_above_time = None;
            return Some((packet, false));
        }
        let ok_to_drop = self.first_above_time.is_some_and(|time| now >= time);
        if self.first_above_time.is_none() {
            let shortened = config.reentry == Reentry::Ns2Second && self.count > 1 && self.is_recent(config, now, 8);
            let end = if shortened { self.control_law(config, now) } else { now + config.interval };
            self.first_above_time = Some(end);
        }
        Some((packet, ok_to_drop))
    }

    /// `count` when dropping begins.
    fn first_count(&self, config: &Config, now: Timestamp) -> u32 {
        let count = match config.reentry {
            Reentry::Rfc8289 if self.is_recent(config, now, 16) => self.count.saturating_sub(self.lastcount),
            Reentry::Ns2First if self.is_recent(config, now, 16) => self.count.saturating_sub(1),
            Reentry::Ns2Second if self.count > 128 && self.is_recent(config, now, 8) => {
                (f64::from(self.count) * 0.9844) as u32
            }
            Reentry::Ns2Second | Reentry::Ns2Sfq if self.is_recent(config, now, 8) => self.count.saturating_sub(2),
            _ => 1,
        };
        count.max(1)
    }

    /// Whether the last drop was due less than this many intervals ago.
    fn is_recent(&self, config: &Config, now: Timestamp, intervals: u64) -> bool {
        now.since(self.drop_next) < config.interval * intervals
    }

    /// The time of the drop that follows one at `time`.
    fn control_law(&self, config: &Config, time: Timestamp) -> Timestamp {
        time + config.interval.scale(1.0 / libm::sqrt(f64::from(self.count.max(1))))
    }
}

/// A queue under the law.
#[derive(Clone, Debug)]
pub struct CoDel {
    config: Config,
    vars: Vars,
    stats: QueueStats,
    queue: Fifo,
}

impl CoDel {
    /// An empty queue.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self { config, vars: Vars::default(), stats: QueueStats::default(), queue: Fifo::new(link.limit) }
    }
}

impl QueueDiscipline for CoDel {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.queue.admits(packet.size, context.in_service) {
            self.queue.push(packet);
        } else {
            self.stats.dropped_full += 1;
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let Self { config, vars, stats, queue } = self;
        vars.dequeue(config, context.now, stats, context.dropped, || queue.pop().map(|packet| (packet, queue.bytes())))
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::{EcnCodepoint, QueueLimit};
    use crate::rng::Substream;

    /// A second is before the first of these times, for packets that have waited.
    fn at(micros: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(1000) + Duration::from_micros(micros)
    }

    /// A queue that always has packets of 1000 bytes, which have waited for the given time.
    struct Backlog {
        config: Config,
        vars: Vars,
        stats: QueueStats,
        dropped: Vec<QueuedPacket>,
        ecn: EcnCodepoint,
    }

    impl Backlog {
        fn new(config: Config) -> Self {
            let (vars, stats) = (Vars::default(), QueueStats::default());
            Self { config, vars, stats, dropped: Vec::new(), ecn: EcnCodepoint::NotEct }
        }

        /// Takes a packet at `micros`; the packets have waited for these times in ms, the last of them for all that
        /// follow. Returns how many were dropped, and the packet.
        fn dequeue(&mut self, micros: u64, waited_ms: &[u64]) -> (usize, QueuedPacket) {
            let mut taken = 0;
            let ecn = self.ecn;
            let next = || {
                let waited = waited_ms[taken.min(waited_ms.len() - 1)];
                taken += 1;
                let enqueued_at = at(micros) - Duration::from_millis(waited);
                let packet = QueuedPacket { handle: 0, size: 1000, flow: 0, ecn, enqueued_at };
                Some((packet, Bytes::new(20_000)))
            };
            let before = self.dropped.len();
            let packet = self
                .vars
                .dequeue(&self.config, at(micros), &mut self.stats, &mut self.dropped, next)
                .expect("a backlog that never ends");
            (self.dropped.len() - before, packet)
        }

        fn drops(&mut self, micros: u64, waited_ms: &[u64]) -> usize {
            self.dequeue(micros, waited_ms).0
        }
    }

    #[test]
    fn nothing_is_dropped_before_the_delay_was_above_the_target_for_an_interval() {
        let mut queue = Backlog::new(Config::default());
        // Above from 1000 ms on: first_above_time = 1100 ms.
        assert_eq!(queue.drops(1_000_000, &[6]), 0);
        assert_eq!(queue.drops(1_099_999, &[6]), 0);
        assert_eq!(queue.drops(1_100_000, &[6]), 1);
    }

    #[test]
    fn one_packet_below_the_target_starts_the_interval_again() {
        let mut queue = Backlog::new(Config::default());
        assert_eq!(queue.drops(1_000_000, &[6]), 0);
        assert_eq!(queue.drops(1_050_000, &[4]), 0);
        assert_eq!(queue.drops(1_060_000, &[5]), 0);
        assert_eq!(queue.drops(1_159_999, &[5]), 0);
        assert_eq!(queue.drops(1_160_000, &[5]), 1);
    }

    #[test]
    fn drops_follow_each_other_by_the_interval_over_the_root_of_their_count() {
        let mut queue = Backlog::new(Config::default());
        assert_eq!(queue.drops(0, &[6]), 0);
        assert_eq!(queue.drops(100_000, &[6]), 1);
        assert_eq!((queue.vars.count, queue.vars.drop_next), (1, at(200_000)));
        // 200 + 100 / sqrt 2 = 270.711 ms, + 100 / sqrt 3 = 328.446 ms, + 100 / sqrt 4 = 378.446 ms.
        for (micros, next, count) in [(200_000, 270_711, 2), (270_711, 328_446, 3), (328_447, 378_446, 4)] {
            assert_eq!(queue.drops(micros - 1_000, &[6]), 0);
            assert_eq!(queue.drops(micros, &[6]), 1);
            assert_eq!(queue.vars.count, count);
            assert!(
                queue.vars.drop_next.as_nanos().abs_diff(at(next).as_nanos()) < 1_000,
                "{:?}",
                queue.vars.drop_next
            );
        }
    }

    #[test]
    fn drops_that_are_overdue_come_at_once_until_the_delay_is_below_the_target() {
        let mut queue = Backlog::new(Config::default());
        queue.drops(0, &[6]);
        queue.drops(100_000, &[6]);
        // Due at 200, 270.7 and 328.4 ms: three packets at 350 ms.
        assert_eq!(queue.drops(350_000, &[6]), 3);
        assert_eq!(queue.vars.count, 4);
        // Due since 378.4 ms, but the second packet has waited too short: one drop, counted, and its successor is not
        // planned.
        let due = queue.vars.drop_next;
        assert_eq!(queue.drops(500_000, &[6, 4]), 1);
        assert_eq!((queue.vars.count, queue.vars.dropping, queue.vars.drop_next), (5, false, due));
    }

    #[test]
    fn a_packet_below_the_target_ends_dropping_without_a_drop() {
        let mut queue = Backlog::new(Config::default());
        queue.drops(0, &[6]);
        queue.drops(100_000, &[6]);
        assert_eq!(queue.drops(250_000, &[4]), 0);
        assert!(!queue.vars.dropping);
    }

    /// Drops six times from 100 ms on (count 6, lastcount 1), ends dropping at 600 ms, and drops again `pause` after
    /// the last drop was due, above the target since an interval before.
    fn count_after(reentry: Reentry, pause_ms: u64) -> u32 {
        let mut queue = Backlog::new(Config { reentry, ..Config::default() });
        queue.drops(0, &[6]);
        for micros in [100_000, 200_000, 270_711, 328_447, 378_447, 423_168] {
            assert_eq!(queue.drops(micros, &[6]), 1);
        }
        // The seventh is due at 423.167 + 100 / sqrt 6 = 463.992 ms.
        assert_eq!((queue.vars.count, queue.vars.lastcount), (6, 1));
        assert!(queue.vars.drop_next.as_nanos().abs_diff(at(463_992).as_nanos()) < 1_000, "{:?}", queue.vars.drop_next);
        queue.drops(440_000, &[4]);
        assert_eq!(queue.drops((464 + pause_ms - 100) * 1000, &[6]), 0);
        assert_eq!(queue.drops((464 + pause_ms) * 1000, &[6]), 1);
        queue.vars.count
    }

    #[test]
    fn dropping_that_begins_again_soon_goes_on_where_it_was() {
        // RFC 8289: 6 - 1 = 5 within 16 intervals of 100 ms; 464 ms is 8 us after the drop was due.
        assert_eq!([1000, 1599, 1600].map(|pause| count_after(Reentry::Rfc8289, pause)), [5, 5, 1]);
        // The first module for ns-2: 6 - 1; they differ when dropping began above 1.
        assert_eq!([1000, 1599, 1600].map(|pause| count_after(Reentry::Ns2First, pause)), [5, 5, 1]);
        assert_eq!([700, 799, 800].map(|pause| count_after(Reentry::Ns2Sfq, pause)), [4, 4, 1]);
        assert_eq!([700, 799, 900].map(|pause| count_after(Reentry::Ns2Second, pause)), [4, 4, 1]);
    }

    #[test]
    fn the_second_time_the_rfc_counts_what_was_added_and_the_first_module_all() {
        for (reentry, expected) in [(Reentry::Rfc8289, 3), (Reentry::Ns2First, 7), (Reentry::Ns2Sfq, 6)] {
            let mut queue = Backlog::new(Config { reentry, ..Config::default() });
            queue.vars = Vars { count: 8, lastcount: 5, drop_next: at(100_000), ..Vars::default() };
            queue.drops(110_000, &[6]);
            assert_eq!(queue.drops(210_000, &[6]), 1);
            // 8 - 5 = 3, 8 - 1 = 7, 8 - 2 = 6.
            assert_eq!((queue.vars.count, queue.vars.lastcount), (expected, expected), "{reentry:?}");
        }
    }

    #[test]
    fn the_module_of_2013_forgets_a_large_count_by_a_64th_and_shortens_the_first_interval() {
        let mut queue = Backlog::new(Config { reentry: Reentry::Ns2Second, ..Config::default() });
        queue.vars = Vars { count: 400, drop_next: at(100_000), ..Vars::default() };
        queue.drops(110_000, &[6]);
        // 100 / sqrt 400 = 5 ms; 0.9844 * 400 = 393.76.
        assert_eq!(queue.drops(114_999, &[6]), 0);
        assert_eq!(queue.drops(115_000, &[6]), 1);
        assert_eq!(queue.vars.count, 393);
    }

    #[test]
    fn twenty_packets_as_in_the_tests_of_ns3() {
        // `codel-queue-disc-test-suite.cc`, test 5: 20 packets of 1000 bytes at 0, dequeued at 10, twice at 210 and at
        // 420 ms. The first is above the target for no interval yet; the second is one interval after 110 ms, and one
        // packet is dropped; the third is not due. Then drops are due at 210 + 100 = 310 and 310 + 100 / sqrt 2 = 380.7
        // ms, and not at 438.4 ms.
        let mut queue = CoDel::new(Config::default(), QueueLimit::default().into());
        let (mut rng, mut dropped) = (Substream::new(0, "queue", 0), Vec::new());
        let mut context = QueueContext { now: Timestamp::ZERO, in_service: None, rng: &mut rng, dropped: &mut dropped };
        for handle in 0..20 {
            let (ecn, enqueued_at) = (EcnCodepoint::NotEct, Timestamp::ZERO);
            queue.enqueue(QueuedPacket { handle, size: 1000, flow: 0, ecn, enqueued_at }, &mut context);
        }
        for (ms, waiting, lost) in [(10, 19, 0), (210, 17, 1), (210, 16, 1), (420, 13, 3)] {
            context.now = Timestamp::ZERO + Duration::from_millis(ms);
            assert!(queue.dequeue(&mut context).is_some());
            assert_eq!((queue.len(), context.dropped.len()), (waiting, lost), "{ms} ms");
        }
    }

    #[test]
    fn capable_packets_are_marked_one_at_a_time() {
        let mut queue = Backlog::new(Config::default());
        queue.ecn = EcnCodepoint::Ect0;
        queue.dequeue(0, &[6]);
        let (first, packet) = queue.dequeue(100_000, &[6]);
        assert_eq!((first, packet.ecn), (0, EcnCodepoint::Ce));
        // Three are due, one is marked.
        let (second, following) = queue.dequeue(350_000, &[6]);
        assert_eq!((second, following.ecn, queue.vars.count), (0, EcnCodepoint::Ce, 2));
        assert_eq!(queue.stats, QueueStats { marked: 2, ..QueueStats::default() });
        queue.config.ecn = false;
        assert_eq!(queue.drops(350_000, &[6]), 2);
    }

    #[test]
    fn the_last_packets_of_a_queue_are_never_dropped() {
        let mut queue = CoDel::new(Config::default(), QueueLimit::default().into());
        let (mut rng, mut dropped) = (Substream::new(0, "queue", 0), Vec::new());
        for handle in 0..4 {
            let packet =
                QueuedPacket { handle, size: 1500, flow: 0, ecn: EcnCodepoint::NotEct, enqueued_at: Timestamp::ZERO };
            let mut context =
                QueueContext { now: Timestamp::ZERO, in_service: None, rng: &mut rng, dropped: &mut dropped };
            queue.enqueue(packet, &mut context);
        }
        let mut dequeue = |seconds: u64| {
            let now = Timestamp::ZERO + Duration::from_millis(1000 * seconds);
            queue.dequeue(&mut QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped })
        };
        // 4500 bytes are left behind the first, 3000 behind the second, which is dropped, and 1500, one packet, behind
        // the third.
        assert_eq!([1, 2, 3].map(|second| dequeue(second).map(|packet| packet.handle)), [Some(0), Some(2), Some(3)]);
        assert_eq!(dropped.iter().map(|packet| packet.handle).collect::<Vec<_>>(), [1]);
        assert_eq!(queue.stats().dropped_early, 1);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { target: Duration::ZERO, ..Config::default() }, "target"),
            (Config { interval: Duration::from_millis(100_001), ..Config::default() }, "interval"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
