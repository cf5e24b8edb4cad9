//! `DualPI2`: a queue for scalable and one for classic traffic. Their coupling gives flows of both kinds the same rate.
//!
//! Reference: RFC 9332, section 2.5 and appendix A, and Linux (`sch_dualpi2`). Packets with ECT(1) or CE go to the L
//! queue and the others to the C queue. A PI controller steers the longer delay of the two with a base probability p':
//! packets of the C queue are dropped or marked with the square of p', those of the L queue are marked with k p'. The
//! reason is that the rate of a classic flow is proportional to the inverse root of its probability, and that of a
//! scalable flow to the inverse. The L queue also marks by its own delay: beyond a step, or on a ramp.
//!
//! Checked line by line against the RFC's figures 2 to 8 and Linux's `sch_dualpi2.c`. Where they differ, Linux is the
//! default: the update and its gains (the RFC: 15 ms, 0.15 and 3.0 Hz for a largest RTT of 100 ms), the step (the RFC
//! has the ramp, here `laqm=ramp`), no minimum length of the L queue for the step (the RFC: more than one packet, here
//! only for the ramp), a C weight of 10 % (an example of the RFC: 1/16), and no drops or marks by the controller while
//! less than two of the largest packets wait.
//!
//! Differences from the reference: probabilities are drawn (so in Linux), where the RFC's pseudo-code spreads marks
//! evenly. The scheduler is weighted round robin, which the RFC recommends; its time-shifted scheduler is left out. The
//! updates keep a grid of `t_update` and pause while both queues are empty and the probability is zero. The link's own
//! buffer is the limit. Only ECN classifies packets, and drops happen only at the head.
//!
//! Status: worked examples; properties of the queues; rates of Prague and CUBIC by `dualpi2-coexistence`.

use super::fifo::Fifo;
use super::grid::next_on_grid;
use super::{EcnCodepoint, OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueStats, QueuedPacket};
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "a queue for scalable and one for classic traffic, coupled to give both the same rate";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 9332";

/// How the L queue marks by the delay of its own packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Laqm {
    /// Packets that have waited longer than `step` are marked.
    #[default]
    Step,
    /// The probability rises from 0 at a delay of `min_th` to 1 at `range` beyond, while more than one packet is in the
    /// queue.
    Ramp,
}

/// Parameters of `DualPI2`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Delay to steer to, 1us to 10s. RFC 9332, appendix A.1, and Linux: 15 ms.
    pub target: Duration,
    /// Time between updates of the probability, 100us to 10s. Linux: 16 ms. RFC 9332, appendix A.1: the smaller of the
    /// target and a third of the largest RTT, 15 ms.
    pub t_update: Duration,
    /// Weight of the deviation from the target in Hz, 0 to 1000. Linux: 0.16 (41/256). RFC 9332, appendix A.1: 0.15, a
    /// tenth of `t_update` over the square of the largest RTT.
    pub alpha: f64,
    /// Weight of the delay's change in Hz, 0 to 1000. Linux: 3.2 (819/256). RFC 9332, appendix A.1: 3.0, 0.3 over the
    /// largest RTT.
    pub beta: f64,
    /// k, by which the probability of the L queue exceeds p', 0 to 100. RFC 9332, section 2.1: 2.
    pub coupling: f64,
    /// How the L queue marks by itself. Linux: `step`. RFC 9332, appendix A.1: `ramp`.
    pub laqm: Laqm,
    /// For `laqm=step`: L packets that have waited longer are marked, 0 to 10s. Linux: 1 ms.
    pub step: Duration,
    /// For `laqm=ramp`: the delay where it begins, 0 to 10s. RFC 9332, appendix A.1: 800 us.
    pub min_th: Duration,
    /// For `laqm=ramp`: its width, 0 to 10s. RFC 9332, appendix A.1: 400 us.
    pub range: Duration,
    /// Share of the link in percent that the C queue gets at least, 1 to 99. Linux: 10.
    pub classic_weight: u32,
    /// Whether L packets are dropped when k p' exceeds 1. RFC 9332, section 4.2: yes. If not, p' ends at 1/k (Linux).
    pub drop_overload: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            t_update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            laqm: Laqm::Step,
            step: Duration::from_millis(1),
            min_th: Duration::from_micros(800),
            range: Duration::from_micros(400),
            classic_weight: 10,
            drop_overload: true,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let longest = Duration::from_millis(10_000);
        ConfigError::unless_in("target", self.target, Duration::from_micros(1)..=longest)?;
        ConfigError::unless_in("t_update", self.t_update, Duration::from_micros(100)..=longest)?;
        ConfigError::unless_in("alpha", self.alpha, 0.0..=1000.0)?;
        ConfigError::unless_in("beta", self.beta, 0.0..=1000.0)?;
        ConfigError::unless_in("coupling", self.coupling, 0.0..=100.0)?;
        ConfigError::unless_in("step", self.step, Duration::ZERO..=longest)?;
        ConfigError::unless_in("min_th", self.min_th, Duration::ZERO..=longest)?;
        ConfigError::unless_in("range", self.range, Duration::ZERO..=longest)?;
        ConfigError::unless_in("classic_weight", self.classic_weight, 1..=99)
    }
}

/// State of the coupled controller.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    /// p': the base probability.
    pub p: f64,
    /// Delay at the last update.
    pub prevq: Duration,
    /// The C queue's turn comes when this is above zero, in hundredths of bytes.
    pub credit: i64,
}

impl Vars {
    /// The update of appendix A.2: `curq` is the longer of the delays of the two queues.
    fn update(&mut self, config: &Config, curq: Duration) {
        self.p = self.corrected(config, curq);
        self.prevq = curq;
    }

    /// Whether another update of empty queues changes nothing: at probability 0, or if `alpha` moves it too little.
    fn rests(&self, config: &Config) -> bool {
        self.prevq == Duration::ZERO && self.corrected(config, Duration::ZERO) == self.p
    }

    fn corrected(&self, config: &Config, curq: Duration) -> f64 {
        let (delay, target, before) = (curq.as_secs(), config.target.as_secs(), self.prevq.as_secs());
        let p = self.p + config.alpha * (delay - target) + config.beta * (delay - before);
        let most = if config.drop_overload { 1.0 } else { f64::min(1.0 / config.coupling, 1.0) };
        p.clamp(0.0, most)
    }
}

/// The decision on a packet that would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Send,
    Signal,
    Drop,
}

/// The two queues.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    config: Config,
    vars: Vars,
    limit: QueueLimit,
    l_queue: Fifo,
    c_queue: Fifo,
    largest: u32,
    next_update: Timestamp,
    stats: QueueStats,
}

impl DualPi2 {
    /// Empty queues.
    pub fn new(config: Config, link: OutgoingLink) -> Self {
        Self {
            config,
            vars: Vars::default(),
            limit: link.limit,
            l_queue: Fifo::default(),
            c_queue: Fifo::default(),
            largest: 0,
            next_update: Timestamp::NEVER,
            stats: QueueStats::default(),
        }
    }

    /// The state.
    pub fn vars(&self) -> &Vars {
        &self.vars
    }

    /// The first packet of the queue whose turn it is, whether that is the L queue, and how its departure moves the
    /// credit; the credit does not move if the other queue is empty.
    fn next(&mut self) -> Option<(QueuedPacket, bool, i64)> {
        let weight = i64::from(self.config.classic_weight);
        let l_turn = self.c_queue.is_empty() || self.vars.credit <= 0;
        if l_turn && let Some(packet) = self.l_queue.pop() {
            let earned = if self.c_queue.is_empty() { 0 } else { weight };
            return Some((packet, true, earned * i64::from(packet.size)));
        }
        let packet = self.c_queue.pop()?;
        let spent = if self.l_queue.is_empty() { 0 } else { weight - 100 };
        Some((packet, false, spent * i64::from(packet.size)))
    }

    /// p'_L: the probability that the L queue marks a packet with that leaves it, by its delay.
    fn laqm(&self, delay: Duration) -> f64 {
        let Config { laqm, step, min_th, range, .. } = self.config;
        let past = delay.saturating_sub(min_th);
        match laqm {
            Laqm::Step => f64::from(u8::from(delay > step)),
            // The leaving packet is not in the queue.
            Laqm::Ramp if self.l_queue.is_empty() || past == Duration::ZERO => 0.0,
            Laqm::Ramp if past >= range => 1.0,
            Laqm::Ramp => past.as_nanos() as f64 / range.as_nanos() as f64,
        }
    }

    fn fate(&self, packet: &QueuedPacket, is_l: bool, context: &mut QueueContext<'_>) -> Fate {
        let short = self.bytes().get() < 2 * u64::from(self.largest);
        let p = if short { 0.0 } else { self.vars.p };
        let coupled = p * self.config.coupling;
        let overload = coupled > 1.0;
        let mut squared = || !short && context.rng.uniform() < p && context.rng.uniform() < p;
        match (is_l, overload) {
            (false, _) if !squared() => Fate::Send,
            (false, false) => Fate::Signal,
            (false, true) => Fate::Drop,
            // Classic drop for all packets; the others are marked.
            (true, true) if self.config.drop_overload && squared() => Fate::Drop,
            (true, true) => Fate::Signal,
            (true, false) if context.rng.uniform() < coupled.max(self.laqm(packet.sojourn(context.now))) => {
                Fate::Signal
            }
            (true, false) => Fate::Send,
        }
    }

    /// How long the first packets wait, the longer of the two.
    fn delay(&self, now: Timestamp) -> Duration {
        let of = |queue: &Fifo| queue.first().map_or(Duration::ZERO, |packet| packet.sojourn(now));
        of(&self.l_queue).max(of(&self.c_queue))
    }
}

impl QueueDiscipline for DualPi2 {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.next_update == Timestamp::NEVER {
            self.next_update = next_on_grid(context.now, self.config.t_update);
        }
        if !self.limit.admits(packet.size, self.len() as u64, self.bytes(), context.in_service) {
            self.stats.dropped_full += 1;
            context.dropped.push(packet);
            return;
        }
        self.largest = self.largest.max(packet.size);
        if self.is_empty() {
            // The queue with the larger weight is first.
            self.vars.credit = i64::from(self.largest) * (2 * i64::from(self.config.classic_weight) - 100);
        }
        match packet.ecn {
            EcnCodepoint::Ect1 | EcnCodepoint::Ce => self.l_queue.push(packet),
            EcnCodepoint::NotEct | EcnCodepoint::Ect0 => self.c_queue.push(packet),
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        while let Some((mut packet, is_l, credit)) = self.next() {
            let drop = match self.fate(&packet, is_l, context) {
                Fate::Send => false,
                Fate::Signal if packet.mark() => {
                    self.stats.marked += 1;
                    false
                }
                Fate::Signal | Fate::Drop => true,
            };
            if drop {
                self.stats.dropped_early += 1;
                context.dropped.push(packet);
                continue;
            }
            self.vars.credit += credit;
            return Some(packet);
        }
        None
    }

    fn len(&self) -> usize {
        self.l_queue.len() + self.c_queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.l_queue.bytes() + self.c_queue.bytes()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn next_timer(&self) -> Timestamp {
        self.next_update
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        let delay = self.delay(context.now);
        self.vars.update(&self.config, delay);
        let rests = self.is_empty() && self.vars.rests(&self.config);
        self.next_update = if rests { Timestamp::NEVER } else { next_on_grid(context.now, self.config.t_update) };
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Substream;

    struct Link {
        queue: DualPi2,
        rng: Substream,
        dropped: Vec<QueuedPacket>,
        now: Timestamp,
    }

    impl Link {
        fn new(config: Config) -> Self {
            let queue = DualPi2::new(config, QueueLimit::default().into());
            Self { queue, rng: Substream::new(5, "queue", 0), dropped: Vec::new(), now: Timestamp::ZERO }
        }

        fn enqueue(&mut self, ecn: EcnCodepoint, size: u32) {
            let Self { queue, rng, dropped, now } = self;
            let packet = QueuedPacket { handle: 0, size, flow: 0, ecn, enqueued_at: *now };
            queue.enqueue(packet, &mut QueueContext { now: *now, in_service: None, rng, dropped });
        }

        fn dequeue(&mut self) -> Option<EcnCodepoint> {
            let Self { queue, rng, dropped, now } = self;
            queue.dequeue(&mut QueueContext { now: *now, in_service: None, rng, dropped }).map(|packet| packet.ecn)
        }

        /// The shares of marked and dropped packets among 10,000 of this kind with this probability, while enough wait.
        fn shares(&mut self, p: f64, ecn: EcnCodepoint) -> (f64, f64) {
            self.queue.vars.p = p;
            for _ in 0..10_002 {
                self.enqueue(ecn, 1000);
            }
            while self.queue.len() > 2 {
                self.dequeue();
            }
            let share = |count: u64| count as f64 / 10_000.0;
            (share(self.queue.stats.marked), share(self.queue.stats.dropped_early))
        }
    }

    #[test]
    fn the_base_probability_follows_the_delay_and_its_change() {
        let (config, mut vars) = (Config::default(), Vars::default());
        // 0.16 * (25 - 15) ms + 3.2 * 25 ms = 0.0016 + 0.08.
        vars.update(&config, Duration::from_millis(25));
        assert!((vars.p - 0.0816).abs() < 1e-12, "{}", vars.p);
        // + 0.16 * 5 ms + 3.2 * -5 ms = 0.0008 - 0.016.
        vars.update(&config, Duration::from_millis(20));
        assert!((vars.p - 0.0664).abs() < 1e-12, "{}", vars.p);
        vars.update(&config, Duration::ZERO);
        assert!((vars.p - 0.0).abs() < 1e-12, "{}", vars.p);
    }

    #[test]
    fn classic_packets_meet_the_square_and_scalable_ones_twice_the_probability() {
        // p' = 0.2: 0.04 for C and 0.4 for L, each within 5 standard deviations of 10,000 draws (0.0098 and 0.0245).
        let near = |share: f64, expected: f64, margin: f64| (share - expected).abs() < margin;
        let (marked, dropped) = Link::new(Config::default()).shares(0.2, EcnCodepoint::NotEct);
        assert!(marked == 0.0 && near(dropped, 0.04, 0.0098), "{marked} {dropped}");
        let (marked_classic, dropped_classic) = Link::new(Config::default()).shares(0.2, EcnCodepoint::Ect0);
        assert!(near(marked_classic, 0.04, 0.0098) && dropped_classic == 0.0, "{marked_classic} {dropped_classic}");
        let (marked_l, dropped_l) = Link::new(Config::default()).shares(0.2, EcnCodepoint::Ect1);
        assert!(near(marked_l, 0.4, 0.0245) && dropped_l == 0.0, "{marked_l} {dropped_l}");
    }

    #[test]
    fn under_overload_both_queues_drop_by_the_square() {
        // k p' = 1.2: 0.36 dropped in both, within 5 standard deviations (0.024), and the L packets that are left are
        // marked.
        for ecn in [EcnCodepoint::Ect0, EcnCodepoint::Ect1] {
            let (_, dropped) = Link::new(Config::default()).shares(0.6, ecn);
            assert!((dropped - 0.36).abs() < 0.024, "{ecn:?} {dropped}");
        }
        let (marked, dropped) =
            Link::new(Config { drop_overload: false, ..Config::default() }).shares(0.6, EcnCodepoint::Ect1);
        assert!(marked > 0.99 && dropped == 0.0, "{marked} {dropped}");
    }

    #[test]
    fn scalable_packets_are_marked_beyond_the_step() {
        let mut link = Link::new(Config::default());
        link.enqueue(EcnCodepoint::Ect1, 1000);
        link.enqueue(EcnCodepoint::Ect1, 1000);
        link.enqueue(EcnCodepoint::Ect0, 1000);
        link.now = Timestamp::from_nanos(1_000_000);
        assert_eq!(link.dequeue(), Some(EcnCodepoint::Ect1));
        link.now = Timestamp::from_nanos(1_000_001);
        assert_eq!(link.dequeue(), Some(EcnCodepoint::Ce));
        assert_eq!(link.dequeue(), Some(EcnCodepoint::Ect0));
    }

    #[test]
    fn the_classic_queue_keeps_a_tenth_of_a_busy_link() {
        let mut link = Link::new(Config::default());
        for _ in 0..200 {
            link.enqueue(EcnCodepoint::Ect1, 1000);
            link.enqueue(EcnCodepoint::NotEct, 1000);
        }
        let mut classic = 0;
        for _ in 0..100 {
            classic += u32::from(link.dequeue() == Some(EcnCodepoint::NotEct));
        }
        assert_eq!(classic, 10);
    }

    #[test]
    fn who_sends_alone_neither_earns_nor_spends_credit() {
        // The credit begins at 1000 (2 x 10 - 100), -80 packets' worth in percent; an L packet earns 10 if C packets
        // wait. Five L packets that leave alone earn nothing, so nine more go before the first C packet, which costs
        // 90.
        let mut link = Link::new(Config::default());
        let classic_among = |busy: &mut Link, packets: u32| -> Vec<u32> {
            (0..packets).filter(|_| busy.dequeue() == Some(EcnCodepoint::NotEct)).collect()
        };
        (0..30).for_each(|_| link.enqueue(EcnCodepoint::Ect1, 1000));
        assert!(classic_among(&mut link, 5).is_empty());
        assert_eq!(link.queue.vars.credit, -80_000);
        (0..3).for_each(|_| link.enqueue(EcnCodepoint::NotEct, 1000));
        assert_eq!(classic_among(&mut link, 20), [9, 19]);
        // The seven L packets that are left go before the last C packet, which is alone then.
        assert_eq!(classic_among(&mut link, 8), [7]);
        assert_eq!(link.queue.vars.credit, -10_000);
    }

    #[test]
    fn without_drops_under_overload_the_base_probability_ends_where_the_coupled_one_is_1() {
        let config = Config { drop_overload: false, ..Config::default() };
        let mut vars = Vars { p: 0.49, ..Vars::default() };
        vars.update(&config, Duration::from_millis(200));
        assert_eq!(vars.p, 0.5);
        vars.update(&Config { drop_overload: true, ..config }, Duration::from_millis(200));
        assert!((vars.p - 0.529_6).abs() < 1e-12, "{}", vars.p);
    }

    #[test]
    fn the_ramp_is_linear_between_its_ends_and_spares_a_single_packet() {
        let link = |packets: u32| {
            let mut link = Link::new(Config { laqm: Laqm::Ramp, ..Config::default() });
            (0..packets).for_each(|_| link.enqueue(EcnCodepoint::Ect1, 1000));
            link
        };
        // RFC 9332, figure 5: 0 up to 800 us, (1000 - 800) / 400 at 1 ms, 1 from 1.2 ms on.
        let busy = link(2).queue;
        let probabilities = [0, 800, 900, 1000, 1100, 1200, 5000].map(|us| busy.laqm(Duration::from_micros(us)));
        assert_eq!(probabilities, [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]);
        let step = DualPi2 { config: Config { range: Duration::ZERO, ..busy.config.clone() }, ..busy };
        assert_eq!([799, 800, 801].map(|us| step.laqm(Duration::from_micros(us))), [0.0, 0.0, 1.0]);
        // Of 10,000 packets that have waited for 1.1 ms 75 % are marked, within 5 standard deviations (0.0043 each).
        let mut long = link(10_001);
        long.now = Timestamp::from_nanos(1_100_000);
        (0..10_000).for_each(|_| assert!(long.dequeue().is_some()));
        let share = long.queue.stats.marked as f64 / 10_000.0;
        assert!((share - 0.75).abs() < 0.022, "{share}");
        // The last one leaves a queue of one packet (line 5d of figure 7), however long it has waited.
        long.now = Timestamp::from_nanos(1_000_000_000);
        assert_eq!(long.dequeue(), Some(EcnCodepoint::Ect1));
    }

    #[test]
    fn an_l_packet_meets_the_larger_of_both_probabilities() {
        // p_L = max(p'_L, p_CL) (figure 4, line 6): 0.25 by the ramp at 0.9 ms and 2 x 0.2 by the controller are 0.4.
        let mut link = Link::new(Config { laqm: Laqm::Ramp, ..Config::default() });
        link.queue.vars.p = 0.2;
        (0..10_002).for_each(|_| link.enqueue(EcnCodepoint::Ect1, 1000));
        link.now = Timestamp::from_nanos(900_000);
        (0..10_000).for_each(|_| assert!(link.dequeue().is_some()));
        let share = link.queue.stats.marked as f64 / 10_000.0;
        assert!((share - 0.4).abs() < 0.0245, "{share}");
    }

    #[test]
    fn updates_pause_when_there_is_nothing_to_do() {
        let mut link = Link::new(Config::default());
        assert_eq!(link.queue.next_timer(), Timestamp::NEVER);
        link.enqueue(EcnCodepoint::NotEct, 1000);
        assert_eq!(link.queue.next_timer(), Timestamp::from_nanos(16_000_000));
        let tick = |busy: &mut Link| {
            let Link { queue, rng, dropped, now } = busy;
            *now = queue.next_timer();
            queue.on_timer(&mut QueueContext { now: *now, in_service: None, rng, dropped });
        };
        tick(&mut link);
        // 16 ms: 0.16 * 1 ms + 3.2 * 16 ms.
        assert!((link.queue.vars.p - 0.051_36).abs() < 1e-12, "{}", link.queue.vars.p);
        link.dequeue();
        tick(&mut link);
        tick(&mut link);
        assert_eq!(link.queue.next_timer(), Timestamp::NEVER);
    }

    #[test]
    fn updates_pause_where_alpha_does_not_move_the_probability() {
        let vars = |p, prevq| Vars { p, prevq, ..Vars::default() };
        let without = Config { alpha: 0.0, ..Config::default() };
        assert!(vars(0.5, Duration::ZERO).rests(&without));
        assert!(!vars(0.5, Duration::from_millis(1)).rests(&without));
        assert!(!vars(0.5, Duration::ZERO).rests(&Config::default()));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { target: Duration::ZERO, ..Config::default() }, "target"),
            (Config { t_update: Duration::ZERO, ..Config::default() }, "t_update"),
            (Config { alpha: f64::NAN, ..Config::default() }, "alpha"),
            (Config { coupling: -1.0, ..Config::default() }, "coupling"),
            (Config { min_th: Duration::from_millis(10_001), ..Config::default() }, "min_th"),
            (Config { range: Duration::from_millis(10_001), ..Config::default() }, "range"),
            (Config { classic_weight: 100, ..Config::default() }, "classic_weight"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
