//! `DualPI2`: a queue for scalable and one for classic traffic, coupled so that flows of both kinds get the same rate.
//!
//! Reference: RFC 9332, section 2.5 and appendix A (from memory), and Linux (`sch_dualpi2`, parts of which were read). Packets
//! with ECT(1) or CE go to the L queue and the others to the C queue. A PI controller steers the delay with a base probability
//! p': packets of the C queue are dropped or marked with its square, those of the L queue marked with k p', because the rate of
//! a classic flow goes with the inverse root of its probability and that of a scalable one with the inverse. L packets that have
//! waited beyond a threshold are marked as well.
//!
//! Differences from the reference: weighted round robin, as Linux, where the RFC also has a time-shifted scheduler; a step in
//! the place of a ramp. Probabilities are drawn, where the RFC's pseudo-code spreads marks evenly. The updates keep a grid of
//! `t_update` and pause while both queues are empty and the probability is zero. The link's own buffer is the limit. Nothing is
//! dropped or marked by the controller while less than two of the largest packets wait (Linux: two MTU).
//!
//! Status: worked examples; properties of the queues; rates of Prague and CUBIC by `dualpi2-coexistence`.

use serde::{Deserialize, Serialize};

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

/// Parameters of `DualPI2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Delay to steer to, 1us to 10s. RFC 9332, appendix A.1: 15 ms.
    pub target: Duration,
    /// Time between updates of the probability, 100us to 10s. RFC 9332, appendix A.1: 16 ms.
    pub t_update: Duration,
    /// Weight of the deviation from the target in Hz, 0 to 1000. RFC 9332, appendix A.1: 0.16.
    pub alpha: f64,
    /// Weight of the delay's change in Hz, 0 to 1000. RFC 9332, appendix A.1: 3.2.
    pub beta: f64,
    /// k, by which the probability of the L queue exceeds p', 0 to 100. RFC 9332, section 2.1: 2.
    pub coupling: f64,
    /// L packets that have waited longer are marked, 0 to 10s. Linux: 1 ms.
    pub step: Duration,
    /// Share of the link in percent that the C queue gets at least, 1 to 99. Linux: 10.
    pub classic_weight: u32,
    /// Whether L packets are dropped when k p' exceeds 1, instead of marked without end. RFC 9332, section 4.2: yes.
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
            step: Duration::from_millis(1),
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
        let (delay, target, before) = (curq.as_secs(), config.target.as_secs(), self.prevq.as_secs());
        let p = self.p + config.alpha * (delay - target) + config.beta * (delay - before);
        self.p = p.clamp(0.0, 1.0);
        self.prevq = curq;
    }

    /// `p_CL` = k p'.
    fn coupled(&self, config: &Config) -> f64 {
        self.p * config.coupling
    }
}

/// What becomes of a packet that would leave.
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

    /// The first packet of the queue whose turn it is, and whether that is the L queue. The credit moves when it is sent.
    fn next(&mut self) -> Option<(QueuedPacket, bool)> {
        let l_turn = self.c_queue.is_empty() || self.vars.credit <= 0;
        if l_turn && let Some(packet) = self.l_queue.pop() {
            return Some((packet, true));
        }
        self.c_queue.pop().map(|packet| (packet, false))
    }

    fn fate(&self, packet: &QueuedPacket, is_l: bool, context: &mut QueueContext<'_>) -> Fate {
        let over_step = is_l && packet.sojourn(context.now) > self.config.step;
        let short = self.bytes().get() < 2 * u64::from(self.largest);
        let coupled = self.vars.coupled(&self.config);
        let overload = coupled > 1.0;
        let p = self.vars.p;
        let mut squared = || context.rng.uniform() < p && context.rng.uniform() < p;
        let signal = if short {
            false
        } else if !is_l {
            let signal = squared();
            if signal && overload {
                return Fate::Drop;
            }
            signal
        } else if overload {
            // Classic drop for everybody; what is not dropped is marked.
            if self.config.drop_overload && squared() {
                return Fate::Drop;
            }
            true
        } else {
            context.rng.uniform() < coupled
        };
        if signal || over_step { Fate::Signal } else { Fate::Send }
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
        while let Some((mut packet, is_l)) = self.next() {
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
            let classic = i64::from(self.config.classic_weight);
            let size = i64::from(packet.size);
            self.vars.credit += if is_l { classic * size } else { (classic - 100) * size };
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
        let rests = self.is_empty() && self.vars.p == 0.0 && self.vars.prevq == Duration::ZERO;
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

        /// What becomes of 10,000 packets of this kind with this probability while enough wait: shares of marked and of
        /// dropped ones.
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
        // k p' = 1.2: 0.36 dropped in both, within 5 standard deviations (0.024), and the L packets that are left are marked.
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
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { target: Duration::ZERO, ..Config::default() }, "target"),
            (Config { t_update: Duration::ZERO, ..Config::default() }, "t_update"),
            (Config { alpha: f64::NAN, ..Config::default() }, "alpha"),
            (Config { coupling: -1.0, ..Config::default() }, "coupling"),
            (Config { classic_weight: 100, ..Config::default() }, "classic_weight"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
