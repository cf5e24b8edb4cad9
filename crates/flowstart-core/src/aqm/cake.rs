//! CAKE ("common applications kept enhanced"): a queue for each flow, served in turn, and COBALT in each of them.
//!
//! Reference: T. Høiland-Jørgensen, D. Täht and J. Morton, "Piece of CAKE: A Comprehensive Queue Management Solution
//! for Home Gateways", LANMAN 2018, and Linux (`sch_cake`). Flows are hashed to sets of eight queues, and a flow takes
//! another queue of its set if its own is in use. Queues send in turn (DRR++); a queue that was empty goes before the
//! others, and keeps its law's state until that has decayed. When there is no room, the longest queue loses its first
//! packet. The rate of the link sets quantum, target and memory.
//!
//! Checked line by line against Linux's `sch_cake.c`, in its default mode with a bandwidth: no ACK filter, and one
//! class of traffic, as no packet of the simulator has a DSCP.
//!
//! Differences from the reference: there is no shaper, because the simulated link itself is the bottleneck; its rate is
//! what a user would give as `bandwidth`, and without one the law is as in the mode `unlimited`. There is no isolation
//! of hosts: connections of one pair of hosts count as as many flows, as in Linux's mode `flows`. Its default, triple
//! isolation, shares the link between the hosts first, which is the same only if each flow has hosts of its own, or all
//! flows have the same two. Quanta are exact, without dithering. Memory counts bytes on the wire, Linux the memory of
//! packets.
//!
//! The limit is its own memory alone, as in Linux, where `sch_cake` is the router's buffer in front of the link. The
//! link's `buffer`, which bounds every other discipline, does not bound this one: `memlimit` does. Linux gives
//! `fq_codel` such a memory, too (32 MiB), so who compares both gives the link of `fq-codel` a buffer as large as this
//! memory.
//!
//! Linux's mode `ingress`, for a queue behind the bottleneck, charges drops to the shaper and raises the target with
//! the number of flows. It is not here, because the simulated queue is the bottleneck's own.
//!
//! Status: worked examples; the law is compared with Linux (`cobalt.rs`), the whole is not.

use alloc::vec;
use alloc::vec::Vec;

use super::cobalt::{MTU, Params, Vars};
use super::flow_queueing::{FlowHash, PacketQueues, RoundRobin};
use super::{OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// One line for listings.
pub const SUMMARY: &str = "the home router's: queues for flows, not for hosts, served in turn, and COBALT in each";
/// The document that defines it.
pub const REFERENCE: &str = "Høiland-Jørgensen, Täht, Morton, LANMAN 2018; Linux sch_cake";

/// Queues (`CAKE_QUEUES`).
const QUEUES: u32 = 1024;
/// Queues of a set (`CAKE_SET_WAYS`).
const WAYS: u32 = 8;
/// Most packets of the largest size that fit in the default memory (`sch->limit`).
const MOST_PACKETS: u64 = 10_240;
/// Packets of the largest size that fit in the smallest memory. Linux has no such limit; where no packet fits, none is
/// ever sent.
const LEAST_PACKETS: u64 = 2;
/// The default memory on links so slow that four intervals would be less.
const LEAST_MEMORY: Bytes = Bytes::new(4 << 20);
/// No queue.
const NONE: u32 = u32::MAX;

/// Parameters of CAKE, named as in `tc-cake`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// The largest usual RTT, 100us to 100s: COBALT's interval; its target is a twentieth. `tc-cake`: 100 ms, and so 5
    /// ms.
    pub rtt: Duration,
    /// Bytes in all queues, 3028B to 1GB, in place of the link's buffer. Linux: what the link sends in four times the
    /// `rtt`, at least 4 MiB and at most 10240 packets.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub memlimit: Option<Bytes>,
}

impl Default for Config {
    fn default() -> Self {
        Self { rtt: Duration::from_millis(100), memlimit: None }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("rtt", self.rtt, Duration::from_micros(100)..=Duration::from_millis(100_000))?;
        if let Some(memory) = self.memlimit {
            ConfigError::unless_in("memlimit", memory, MTU * LEAST_PACKETS..=Bytes::new(1_000_000_000))?;
        }
        Ok(())
    }

    fn params(&self, rate: Option<Rate>) -> Params {
        Params::new(self.rtt / 20, self.rtt, rate)
    }

    /// Bytes that may wait on a link of this rate.
    fn memory(&self, rate: Option<Rate>) -> Bytes {
        let most = MTU * MOST_PACKETS;
        self.memlimit
            .unwrap_or_else(|| rate.map_or(most, |rate| rate.amount_in(self.rtt * 4).max(LEAST_MEMORY).min(most)))
    }
}

/// Bytes that a queue may send in its turn on a link of this rate: what it sends in 1/4096 s, 300 to 1514.
fn quantum(rate: Option<Rate>) -> Bytes {
    rate.map_or(MTU, |rate| Bytes::new(rate.bits_per_sec() / 8 / 4096).clamp(Bytes::new(300), MTU))
}

/// Empty queues whose law has not come to rest, in the order in which they are looked at.
#[derive(Clone, Debug)]
struct Decaying {
    /// For each queue its neighbours; its own number twice if it is not in the list.
    neighbours: Vec<(u32, u32)>,
    first: u32,
    last: u32,
}

impl Decaying {
    fn new() -> Self {
        Self { neighbours: (0..QUEUES).map(|queue| (queue, queue)).collect(), first: NONE, last: NONE }
    }

    fn contains(&self, queue: u32) -> bool {
        self.neighbours[queue as usize] != (queue, queue)
    }

    fn push(&mut self, queue: u32) {
        self.neighbours[queue as usize] = (self.last, NONE);
        match self.last {
            NONE => self.first = queue,
            last => self.neighbours[last as usize].1 = queue,
        }
        self.last = queue;
    }

    fn remove(&mut self, queue: u32) {
        let (previous, next) = core::mem::replace(&mut self.neighbours[queue as usize], (queue, queue));
        match previous {
            NONE => self.first = next,
            previous => self.neighbours[previous as usize].1 = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.neighbours[next as usize].0 = previous,
        }
    }
}

/// The queues.
#[derive(Clone, Debug)]
pub struct Cake {
    params: Params,
    limit: QueueLimit,
    hash: FlowHash,
    /// Whose each queue is, as a hash.
    tags: Vec<u32>,
    queues: PacketQueues,
    turns: RoundRobin,
    decaying: Decaying,
    vars: Vec<Vars>,
    stats: QueueStats,
}

impl Cake {
    /// Empty queues. The link's own limit is not theirs: each packet without room would raise BLUE's probability.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            params: config.params(link.rate),
            limit: QueueLimit { bytes: Some(config.memory(link.rate)), ..QueueLimit::default() },
            hash: FlowHash::default(),
            tags: vec![0; QUEUES as usize],
            queues: PacketQueues::new(QUEUES),
            turns: RoundRobin::new(QUEUES, quantum(link.rate)),
            decaying: Decaying::new(),
            vars: vec![Vars::default(); QUEUES as usize],
            stats: QueueStats::default(),
        }
    }

    /// The queue of a flow with this hash: the one that is its own already, else a free one of its set, else the one
    /// that it shares with others.
    fn queue_of(&mut self, hash: u32) -> u32 {
        let direct = hash % QUEUES;
        let set = direct - direct % WAYS;
        let ways = || (0..WAYS).map(|way| set + (direct + way) % WAYS);
        let own = ways().find(|queue| self.tags[*queue as usize] == hash);
        let free = || ways().find(|queue| !self.turns.has_turn(*queue) && !self.decaying.contains(*queue));
        let queue = own.or_else(free).unwrap_or(direct);
        self.tags[queue as usize] = hash;
        queue
    }

    /// Drops the first packet of the longest queue.
    fn drop_of_longest(&mut self, context: &mut QueueContext<'_>) {
        let Some(longest) = self.queues.fattest(self.turns.active()) else { return };
        let Some(packet) = self.queues.pop(longest) else { return };
        self.vars[longest as usize].queue_full(&self.params, context.now);
        self.stats.dropped_full += 1;
        context.dropped.push(packet);
    }

    /// Looks at one of the queues that come to rest, as each packet that leaves gives occasion to.
    fn decay(&mut self, now: Timestamp) {
        let queue = self.decaying.first;
        if queue != NONE {
            self.decaying.remove(queue);
            self.rest(queue, now);
        }
    }

    /// An empty queue is free, or decays.
    fn rest(&mut self, queue: u32, now: Timestamp) {
        let vars = &mut self.vars[queue as usize];
        vars.queue_empty(&self.params, now);
        if !vars.is_at_rest(now) {
            self.decaying.push(queue);
        }
    }
}

impl QueueDiscipline for Cake {
    #[inline]
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let hash = self.hash.hash_of(packet.flow, context);
        let queue = self.queue_of(hash);
        self.queues.push(queue, packet);
        if self.decaying.contains(queue) {
            self.decaying.remove(queue);
        }
        self.turns.activate(queue, true);
        // The arriving packet is among those that may be dropped, and counted already.
        while !self.queues.is_empty()
            && !self.limit.admits(0, self.queues.len() as u64 - 1, self.queues.bytes(), context.in_service)
        {
            self.drop_of_longest(context);
        }
    }

    #[inline]
    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let now = context.now;
        if self.queues.is_empty() {
            return None;
        }
        self.decay(now);
        while !self.queues.is_empty() {
            let queue = self.turns.whose()?;
            while let Some(mut packet) = self.queues.pop(queue) {
                let vars = &mut self.vars[queue as usize];
                let verdict = vars.on_packet(&self.params, now, &mut packet, || context.rng.uniform());
                // The last packet of a queue is never dropped.
                if !verdict.drop || self.queues.len_of(queue) == 0 {
                    self.stats.marked += u64::from(verdict.marked);
                    self.turns.sent(queue, packet.size);
                    return Some(packet);
                }
                self.stats.dropped_early += 1;
                context.dropped.push(packet);
            }
            self.turns.emptied(queue, false);
            self.rest(queue, now);
        }
        None
    }

    fn len(&self) -> usize {
        self.queues.len()
    }

    fn bytes(&self) -> Bytes {
        self.queues.bytes()
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
    use crate::aqm::EcnCodepoint;
    use crate::rng::Substream;

    struct Link {
        queue: Cake,
        rng: Substream,
        dropped: Vec<QueuedPacket>,
        now: Timestamp,
    }

    impl Link {
        fn new(config: Config, limit: QueueLimit) -> Self {
            Self {
                queue: Cake::new(config, OutgoingLink { limit, rate: Some(Rate::from_mbit(100)) }),
                rng: Substream::new(3, "queue", 0),
                dropped: Vec::new(),
                now: Timestamp::ZERO + Duration::from_millis(1000),
            }
        }

        fn enqueue(&mut self, flow: u32, handle: u32, size: u32) {
            let Self { queue, rng, dropped, now } = self;
            let packet = QueuedPacket { handle, size, flow, ecn: EcnCodepoint::NotEct, enqueued_at: *now };
            queue.enqueue(packet, &mut QueueContext { now: *now, in_service: None, rng, dropped });
        }

        fn dequeue(&mut self) -> Option<u32> {
            let Self { queue, rng, dropped, now } = self;
            let packet = queue.dequeue(&mut QueueContext { now: *now, in_service: None, rng, dropped });
            packet.map(|packet| packet.handle)
        }

        /// The queue that has the flow's hash.
        fn queue_of(&mut self, flow: u32) -> u32 {
            let Self { queue, rng, dropped, now } = self;
            let hash = queue.hash.hash_of(flow, &mut QueueContext { now: *now, in_service: None, rng, dropped });
            queue.tags.iter().position(|tag| *tag == hash).expect("a flow that has sent") as u32
        }
    }

    #[test]
    fn the_rate_of_the_link_sets_quantum_and_memory() {
        let mbit = |rate| Some(Rate::from_mbit(rate));
        // 20 Mbit/s: 2,500,000 B/s / 4096 = 610 B. 1 Mbit/s: 30 B, raised. 100 Mbit/s: 3051 B, lowered.
        assert_eq!([mbit(20), mbit(1), mbit(100), None].map(|rate| quantum(rate).get()), [610, 300, 1514, 1514]);
        // 400 ms at 20 Mbit/s are 1 MB, raised to 4 MiB; at 200 Mbit/s 10 MB; at 1 Gbit/s 50 MB, lowered to 10240 *
        // 1514.
        let memory = |rate| Config::default().memory(rate).get();
        assert_eq!(
            [mbit(20), mbit(200), mbit(1000), None].map(memory),
            [4_194_304, 10_000_000, 15_503_360, 15_503_360]
        );
        let given = Config { memlimit: Some(Bytes::new(5000)), ..Config::default() };
        assert_eq!(given.memory(mbit(1000)), Bytes::new(5000));
        let satellite = Config { rtt: Duration::from_millis(1000), ..Config::default() };
        assert_eq!(satellite.params(None).target, Duration::from_millis(50));
    }

    #[test]
    fn eight_flows_of_a_set_have_queues_of_their_own_and_the_ninth_shares() {
        let mut queue = Link::new(Config::default(), QueueLimit::default()).queue;
        let mut place = |flow: u32| {
            // Hashes that all ask for queue 1003, the fourth of its set.
            let place = queue.queue_of(1003 + flow * QUEUES);
            queue.turns.activate(place, true);
            place
        };
        let places: Vec<u32> = (0..9).map(&mut place).collect();
        assert_eq!(places, [1003, 1004, 1005, 1006, 1007, 1000, 1001, 1002, 1003]);
        // The second keeps its queue; the first has lost its own to the ninth, and there is no other.
        assert_eq!([place(1), place(0)], [1004, 1003]);
    }

    #[test]
    fn hundreds_of_flows_do_not_share_queues() {
        // A plain hash of 300 flows to 1024 queues makes about 300 * 299 / 2 / 1024 = 44 pairs.
        let mut link = Link::new(Config::default(), QueueLimit::default());
        (0..300).for_each(|flow| link.enqueue(flow, flow, 100));
        let used = (0..QUEUES).filter(|queue| link.queue.queues.len_of(*queue) > 0).count();
        assert!(used >= 299, "{used}");
    }

    #[test]
    fn a_flow_that_was_idle_goes_first_and_backlogs_share() {
        let mut link = Link::new(Config::default(), QueueLimit::default());
        (0..6).for_each(|packet| link.enqueue(1, 100 + packet, 1514));
        (0..6).for_each(|packet| link.enqueue(2, 200 + packet, 757));
        let mut handles: Vec<u32> = (0..4).filter_map(|_| link.dequeue()).collect();
        link.enqueue(3, 300, 100);
        handles.extend(core::iter::from_fn(|| link.dequeue()));
        // A quantum is one packet of flow 1 or two of flow 2; flow 3 goes before both.
        assert_eq!(handles, [100, 200, 201, 101, 300, 202, 203, 102, 204, 205, 103, 104, 105]);
    }

    #[test]
    fn the_longest_queue_pays_for_the_room_one_packet_at_a_time() {
        let memory = |bytes| Config { memlimit: Some(Bytes::new(bytes)), ..Config::default() };
        let mut link = Link::new(memory(8000), QueueLimit::default());
        (0..7).for_each(|packet| link.enqueue(1, packet, 1000));
        (50..52).for_each(|packet| link.enqueue(2, packet, 1000));
        assert_eq!(link.dropped.iter().map(|packet| packet.handle).collect::<Vec<_>>(), [0]);
        let of_flow_1 = link.queue_of(1);
        assert!((link.queue.vars[of_flow_1 as usize].p_drop - 1.0 / 256.0).abs() < 1e-15);
        assert_eq!(link.queue.stats.dropped_full, 1);
        let mut small = Link::new(memory(3000), QueueLimit::default());
        (0..5).for_each(|packet| small.enqueue(1, packet, 1000));
        assert_eq!((small.queue.len(), small.dropped.len()), (3, 2));
    }

    #[test]
    fn the_buffer_of_the_link_is_no_limit() {
        let limit = QueueLimit { packets: Some(8), bytes: Some(Bytes::new(5000)), counts_in_service: true };
        let mut link = Link::new(Config::default(), limit);
        (0..100).for_each(|packet| link.enqueue(1, packet, 1500));
        assert_eq!((link.queue.len(), link.dropped.len()), (100, 0));
        let queue = link.queue_of(1);
        assert_eq!((link.queue.vars[queue as usize].p_drop, link.queue.stats), (0.0, QueueStats::default()));
        // Its own memory is, even if the buffer is larger.
        let config = Config { memlimit: Some(Bytes::new(3000)), ..Config::default() };
        let mut small = Link::new(config, QueueLimit { bytes: Some(Bytes::new(1_000_000)), ..limit });
        (0..5).for_each(|packet| small.enqueue(1, packet, 1500));
        assert_eq!((small.queue.len(), small.queue.stats.dropped_full), (2, 3));
    }

    #[test]
    fn a_queue_keeps_its_law_until_it_has_decayed_and_its_last_packet() {
        let mut link = Link::new(Config::default(), QueueLimit::default());
        (0..400).for_each(|packet| link.enqueue(1, packet, 1514));
        let queue = link.queue_of(1) as usize;
        // A packet each ms: signals 100, 171 and 229 ms after the first at 6 ms, and so on; the last packet stays.
        let mut sent = Vec::new();
        for _ in 0..400 {
            link.now += Duration::from_millis(1);
            sent.extend(link.dequeue());
        }
        assert_eq!(sent.last(), Some(&399));
        assert!(link.dropped.len() > 4, "{}", link.dropped.len());
        let count = link.queue.vars[queue].count;
        assert!(count > 4, "{count}");
        // Flow 2 gives occasion to look at the empty queue, after its first two quanta. The law takes back a step at a
        // time, and the queue is free in the end.
        let mut decays = Vec::new();
        for packet in 1000..3000 {
            link.now += Duration::from_millis(1);
            link.enqueue(2, packet, 100);
            assert_eq!(link.dequeue(), Some(packet));
            decays.push(link.queue.decaying.contains(queue as u32));
        }
        assert!(!decays[14] && decays[33] && !decays[1999], "{:?}", link.queue.vars[queue]);
        assert_eq!(link.queue.vars[queue].count, 0);
        // It ends: interval * sum of 1 / sqrt(k) for k below count, and an interval of rest.
        let decayed = decays.iter().rposition(|decays| *decays).expect("it decayed for a while");
        let steps: f64 = (1..=count).map(|k| 100.0 / libm::sqrt(f64::from(k))).sum();
        assert!((decayed as f64) < steps + 110.0, "{decayed} {steps}");
    }

    #[test]
    fn a_flow_takes_its_decaying_queue_again() {
        let mut link = Link::new(Config::default(), QueueLimit::default());
        (0..200).for_each(|packet| link.enqueue(1, packet, 1514));
        let queue = link.queue_of(1);
        for _ in 0..200 {
            link.now += Duration::from_millis(1);
            link.dequeue();
        }
        for packet in 900..934 {
            link.enqueue(2, packet, 100);
            link.dequeue();
        }
        assert!(link.queue.decaying.contains(queue));
        link.enqueue(1, 999, 1514);
        assert!(!link.queue.decaying.contains(queue) && link.queue.turns.has_turn(queue));
        assert_eq!((link.queue_of(1), link.dequeue()), (queue, Some(999)));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { rtt: Duration::from_micros(99), ..Config::default() }, "rtt"),
            (Config { memlimit: Some(Bytes::new(999)), ..Config::default() }, "memlimit"),
            (Config { memlimit: Some(Bytes::new(2 * 1514 - 1)), ..Config::default() }, "memlimit"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
        // With the least a flow gets through, packet by packet.
        let least = Config { memlimit: Some(Bytes::new(2 * 1514)), ..Config::default() };
        least.validate().unwrap();
        let mut link = Link::new(least, QueueLimit::default());
        for packet in 0..3 {
            link.enqueue(1, packet, 1514);
            assert_eq!(link.dequeue(), Some(packet));
        }
    }
}
