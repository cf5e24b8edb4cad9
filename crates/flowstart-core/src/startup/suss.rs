//! SUSS: slow start that quadruples in a round when HyStart would still let the next round double.
//!
//! Reference: Arghavani, Zhang, Eyers, Arghavani, "SUSS: Improving TCP Performance by Speeding Up Slow-Start", SIGCOMM
//! 2024, as in the authors' Linux module (github.com/SUSSdeveloper/SUSS, commit dc2a493, Linux 6.8, `tcp_cubic.c`).
//! Each round sends a blue part, clocked by the acknowledgements of the last round's blue part, which doubles every
//! round. When that train of acknowledgements has ended, its length and the round's smallest RTT predict whether the
//! exponential growth will last one more round. If so, a red part is paced over the rest of the RTT, and the round
//! carries four times as much as the last one. HyStart ends startup, with its train test scaled to the blue part.
//!
//! Differences from the reference (equations have no numbers, because the comparison is with the module):
//! - Everything counts sent bytes, not powers of two of ten packets. So other initial windows and flows that pause
//!   work.
//! - Instead of two packets for each packet that the pacer releases, the window of the round is set when the red part
//!   begins; its rate and its acknowledgements give the same packets.
//! - The module extrapolates the length of the train from the number of packets that it acknowledged; here the train
//!   ends with the last blue packet.
//! - The limit of the train test is half of the smallest RTT, without the up to 1 ms that Linux adds for aggregation.
//! - A loss while a red part leaves reduces the window of the whole round, by the host's rule. The module first lowers
//!   its window to what is in flight. So after an overshoot that shows early in a red part SUSS here goes on with up to
//!   2.7 times as much, where the host reduces the window and not what is in flight.
//! - `k` of condition 2 counts from the round that an acknowledgement begins. The module counts that acknowledgement as
//!   one of the round before, so that it accelerates with a little more delay: 8.3 % of minRTT in place of 6.25 % in
//!   the third round, 9.4 % in place of 8.3 % in the fourth.
//! - The cap of the train test counts the acknowledgement that reaches it; the module counts it afterwards.
//! - The window that the receiver announces is obeyed. The module exceeds it by as much as its own window grows.
//! - Acknowledgements must clock the host: the initial window leaves at once, and while SUSS is in charge only red
//!   parts are paced. The module switches itself on only if the host does not pace.
//!
//! Status: experimental; not validated against published numbers (FCT 20 % lower below 5 MB from 50 ms RTT on).

use super::hystart;
use super::slow_start::{self, SlowStart};
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Position, Sent};
use crate::launch::{Continuation, Launch, UNPACED};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "slow start that grows 4x in a round when HyStart is predicted to allow the next one; the extra part is paced";
/// The document that defines it.
pub const REFERENCE: &str = "Arghavani et al., SUSS, SIGCOMM 2024; github.com/SUSSdeveloper/SUSS dc2a493";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "nothing; up to 4x per RTT while the next round is predicted to be safe; as HyStart; congestion avoidance \
    with the window it has";

/// Growth of an accelerated round.
const GROWTH: u64 = 4;
/// Smallest window in segments while red acknowledgements release nothing.
const MIN_WINDOW: u64 = 2;

/// Parameters of SUSS.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// Rounds that may grow 4x, one after the other from the second on, up to 16. Module (`suss_max`): 3.
    pub rounds: u32,
    /// Smallest RTT from which on SUSS is used, up to 10 s. Module: 10 ms.
    pub smallest_rtt: Duration,
    /// Whether red parts are paced; otherwise they leave at the end of the blue train. Reference: yes.
    pub pacing: bool,
    /// When HyStart's tests end startup, as in [`hystart`].
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub hystart: hystart::Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            rounds: 3,
            smallest_rtt: Duration::from_millis(10),
            pacing: true,
            hystart: hystart::Limits::default(),
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("rounds", self.rounds, 0..=16)?;
        ConfigError::unless_in("smallest_rtt", self.smallest_rtt, Duration::ZERO..=Duration::from_millis(10_000))?;
        self.hystart.validate()
    }
}

/// What a round sends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Acknowledgements clock packets out.
    Clocked,
    /// The blue train has ended; the red part waits until `until`.
    Guard { until: Timestamp, cwnd: Bytes, rate: Rate },
    /// The red part is paced.
    Red { rate: Rate },
}

/// What one round sent.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Its first packet.
    first: Option<Position>,
    /// Its last blue packet.
    blue_end: Position,
    blue: Bytes,
    /// Blue and red.
    total: Bytes,
}

/// State of SUSS.
#[derive(Clone, Debug)]
pub struct Suss {
    config: Config,
    context: StartupContext,
    slow_start: SlowStart,
    /// The current round; the initial window is round 1.
    round: u32,
    round_start: Timestamp,
    /// What this round has sent so far.
    sent: Round,
    /// Blue bytes that this round may still send.
    blue_left: Bytes,
    /// What the previous round sent, which this round acknowledges.
    acked: Round,
    /// Blue bytes acknowledged in this round.
    blue_acked: Bytes,
    /// The last blue packet of the round before has been acknowledged.
    train_ended: bool,
    part: Part,
    /// The last round grew 4x, or there was none: this round may grow 4x, too.
    accelerating: bool,
    /// Rounds with a red part so far.
    jumps: u32,
    /// The whole train's length in the round before.
    last_train: Duration,
    /// `minRTT`: the smallest RTT of a data packet.
    min_rtt: Duration,
    /// The round in which it was last updated.
    min_round: u32,
    /// `moRTT`: the smallest RTT of this round.
    mo_rtt: Duration,
    samples: u32,
    /// The last acknowledgement of the train.
    last_ack: Timestamp,
    /// The train test has ended the acceleration; startup ends above this window.
    cap: Option<Bytes>,
    /// A phase that was not read yet, and its trigger.
    entered: Option<(&'static str, &'static str)>,
}

impl Suss {
    /// SUSS that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let context = context.with_initial_window(config.iw);
        Self {
            config,
            context,
            slow_start: SlowStart::new(slow_start::Config::default(), context),
            round: 1,
            round_start: Timestamp::ZERO,
            sent: Round::default(),
            blue_left: context.initial_window,
            acked: Round::default(),
            blue_acked: Bytes::ZERO,
            train_ended: true,
            part: Part::Clocked,
            accelerating: true,
            jumps: 0,
            last_train: Duration::ZERO,
            min_rtt: Duration::MAX,
            min_round: 1,
            mo_rtt: Duration::MAX,
            samples: 0,
            last_ack: Timestamp::ZERO,
            cap: None,
            entered: None,
        }
    }

    fn begin_round(&mut self, now: Timestamp) {
        self.round += 1;
        self.round_start = now;
        self.acked = self.sent;
        self.sent = Round::default();
        // The blue part doubles.
        self.blue_left = self.acked.blue * 2;
        self.blue_acked = Bytes::ZERO;
        self.train_ended = false;
        self.mo_rtt = Duration::MAX;
        self.samples = 0;
        self.last_ack = now;
    }

    fn sample(&mut self, rtt: Duration) {
        if rtt < self.min_rtt {
            self.min_rtt = rtt;
            self.min_round = self.round;
        }
        self.mo_rtt = self.mo_rtt.min(rtt);
        self.samples += 1;
    }

    /// Whether exponential growth is predicted to last one more round, so this round may grow 4x. `train` is how long
    /// the acknowledgements of the whole last round take.
    fn growth_will_last(&self, train: Duration) -> bool {
        if self.min_rtt == Duration::MAX || self.round >= self.config.rounds + 2 {
            return false;
        }
        if self.round == 2 {
            // Two doublings from here the train is four times as long; HyStart allows half of minRTT, and the next
            // round is one doubling away.
            return self.min_rtt > self.config.smallest_rtt && train * 4 < self.min_rtt;
        }
        // Condition 1, the train: the last round grew 4x and the train train/last_train. After a doubling it grows half
        // as much, mu = train / (2 last_train), and must not exceed minRTT / 2 in the next round: mu * train * 2 <=
        // minRTT.
        let mu = train.as_secs() / (self.last_train.as_secs() * 2.0);
        let train_fits = mu * train.as_secs() * 2.0 <= self.min_rtt.as_secs();
        // Condition 2, the delay: moRTT rose from minRTT to its value in k rounds; after k + 1 rounds it must not
        // exceed 1.125 minRTT: (k + 1) moRTT <= (k + 1) minRTT + k minRTT / 8.
        let k = u64::from(self.round - self.min_round);
        let delay_fits = self.mo_rtt * (k + 1) <= self.min_rtt * (k + 1) + self.min_rtt * k / 8;
        train_fits && delay_fits
    }

    /// The blue train has ended: plans the red part, if there is one.
    fn plan_red_part(&mut self, now: Timestamp) {
        let blue_train = now.since(self.round_start);
        // The blue train stands for the whole round.
        let scale = self.acked.total.get() as f64 / (self.acked.blue.get() as f64).max(1.0);
        let train = blue_train.scale(scale);
        self.accelerating = self.growth_will_last(train);
        if !self.accelerating {
            return;
        }
        self.last_train = train.max(Duration::from_nanos(1));
        let cwnd = self.acked.total * GROWTH;
        let blue = self.acked.blue * 2;
        // The round is sent at cwnd / minRTT; the blue part takes its share of minRTT, and what its train leaves of
        // this share is put half before the red part and half behind it.
        let blue_time = self.min_rtt.scale(blue.get() as f64 / (cwnd.get() as f64).max(1.0));
        if blue_time <= blue_train {
            return;
        }
        self.jumps += 1;
        self.entered = Some(("guard", "blue_train_ended"));
        let guard = if self.config.pacing { blue_time.saturating_sub(blue_train) / 2 } else { Duration::ZERO };
        let paced = if self.config.pacing { Rate::from_transfer(cwnd, self.min_rtt) } else { None };
        let rate = paced.unwrap_or(UNPACED);
        self.part = Part::Guard { until: now + guard, cwnd, rate };
    }

    /// HyStart: whether startup ends with this acknowledgement, and with which window.
    fn found(&mut self, ack: &Ack, cwnd: Bytes) -> Option<Continuation> {
        if cwnd < self.context.segment * u64::from(self.config.hystart.low_window) {
            return None;
        }
        let slow = || self.mo_rtt > self.config.hystart.longest_rtt(self.min_rtt);
        let reason = if self.cap.is_some_and(|cap| cwnd > cap) {
            ExitReason::AckTrain
        } else if self.samples > self.config.hystart.samples && slow() {
            ExitReason::Delay
        } else {
            self.test_train(ack, cwnd);
            return None;
        };
        // A window that jumped may not be in flight.
        let exit = if self.jumps > 1 { ack.in_flight.max(self.context.segment * MIN_WINDOW) } else { cwnd };
        Some(Continuation { cwnd: exit, ssthresh: exit, reason })
    }

    /// The train test on the blue part: a round with `2^jumps` times as much would take as many times longer. Startup
    /// then goes on until the window holds what such a round has at this point.
    fn test_train(&mut self, ack: &Ack, cwnd: Bytes) {
        if self.cap.is_some() || self.train_ended || ack.now.since(self.last_ack) > self.config.hystart.ack_gap {
            return;
        }
        self.last_ack = ack.now;
        let scale = 1u64 << self.jumps;
        if ack.now.since(self.round_start) * scale > self.min_rtt / 2 {
            self.cap = Some(cwnd + self.blue_acked * (scale - 1));
            self.accelerating = false;
            self.entered = Some(("capped", "ack_train"));
        }
    }
}

impl Startup for Suss {
    fn needs(&self) -> Needs {
        Needs::OWN_RATE
    }

    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: nothing is known; the initial window is the first blue part.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let cwnd = self.context.initial_window;
        Launch { burst: Some(cwnd), ..Launch::window(cwnd) }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.sent.first.get_or_insert(sent.position);
        self.sent.total += sent.bytes;
        if self.blue_left > Bytes::ZERO {
            self.blue_left = self.blue_left.saturating_sub(sent.bytes);
            self.sent.blue += sent.bytes;
            self.sent.blue_end = sent.position;
        }
    }

    // Probing: blue parts are clocked, red parts paced. Validation by train and delay of each round.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        let mut cwnd = window.cwnd;
        if self.cap.is_none() && self.sent.first.is_some_and(|first| ack.position >= first) {
            self.begin_round(ack.now);
            if self.part != Part::Clocked {
                // What the pacer did not get out must not leave at once.
                cwnd = cwnd.min(ack.in_flight_before.max(self.context.segment * MIN_WINDOW));
                self.part = Part::Clocked;
                self.entered = Some(("clocked", "new_round"));
            }
        }
        if let Some(sample) = ack.rtt {
            self.sample(sample);
        }
        if !self.train_ended {
            self.blue_acked += ack.bytes;
        }
        // Continuation: the window that HyStart has found.
        if let Some(exit) = self.found(ack, cwnd) {
            return Step::Exit(exit);
        }
        let step = match self.part {
            Part::Clocked => self.slow_start.on_ack(ack, Window { cwnd, ..window }, in_use, rtt),
            // Acknowledgements of red packets clock nothing out.
            Part::Guard { .. } => {
                Step::Continue { cwnd: cwnd.saturating_sub(ack.bytes).max(self.context.segment * MIN_WINDOW) }
            }
            Part::Red { .. } => Step::Continue { cwnd },
        };
        if !self.train_ended && ack.position >= self.acked.blue_end {
            self.train_ended = true;
            if self.accelerating && in_use {
                self.plan_red_part(ack.now);
            }
        }
        step
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(match self.part {
            Part::Red { rate } => rate,
            Part::Clocked | Part::Guard { .. } => UNPACED,
        })
    }

    fn next_wakeup(&self) -> Timestamp {
        match self.part {
            Part::Guard { until, .. } => until,
            Part::Clocked | Part::Red { .. } => Timestamp::NEVER,
        }
    }

    fn on_timer(&mut self, now: Timestamp, window: Window) -> Step {
        match self.part {
            Part::Guard { until, cwnd, rate } if now >= until => {
                self.part = Part::Red { rate };
                self.entered = Some(("red", "guard_elapsed"));
                Step::Continue { cwnd: cwnd.max(window.cwnd) }
            }
            _ => Step::Continue { cwnd: window.cwnd },
        }
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take()
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        let growth = if self.accelerating { GROWTH } else { 2 };
        seen.number("growth factor", growth as f64);
        seen.time("minRTT", self.min_rtt);
        seen.time("moRTT", self.mo_rtt);
        seen.bytes("blue", self.sent.blue);
        if let Some(cap) = self.cap {
            seen.bytes("cap", cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    const SEGMENT: u64 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    fn scheme(config: Config) -> Suss {
        Suss::new(config, context(Increase::Bytes))
    }

    /// What a flow did on a path of 100 ms that delivers a packet every `gap`.
    struct Story {
        /// Packets sent in each round.
        rounds: Vec<u64>,
        phases: Vec<(Timestamp, &'static str)>,
        exit: Option<(Timestamp, Continuation)>,
        scheme: Suss,
    }

    /// Runs a flow until it leaves startup or begins round `last`.
    fn run(config: Config, gap: Duration, last: u32) -> Story {
        let mut scheme = scheme(config);
        let launch = scheme.launch(Timestamp::ZERO, &PathKnowledge::default(), &mut DecisionLog::default());
        let mut window = Window { cwnd: launch.cwnd, ssthresh: Bytes::MAX };
        let estimator = RttEstimator::new(RTT);
        let mut story = Story { rounds: alloc::vec![0], phases: Vec::new(), exit: None, scheme: scheme.clone() };
        let (mut now, mut release) = (Timestamp::ZERO, Timestamp::ZERO);
        // Sending time, arrival of the acknowledgement and position of each packet in flight.
        let mut flight: VecDeque<(Timestamp, Timestamp, Position)> = VecDeque::new();
        let (mut position, mut delivered) = (0, Timestamp::ZERO);
        loop {
            let in_flight = |flight: &VecDeque<_>| Bytes::new(flight.len() as u64 * SEGMENT);
            while in_flight(&flight) + Bytes::new(SEGMENT) <= window.cwnd && release <= now {
                position += 1;
                delivered = (delivered + gap).max(now + RTT);
                flight.push_back((now, delivered, position));
                let sent = Sent {
                    now,
                    bytes: Bytes::new(SEGMENT),
                    in_flight: in_flight(&flight),
                    position,
                    app_limited: false,
                };
                scheme.on_sent(&sent);
                *story.rounds.last_mut().unwrap() += 1;
                release = release.max(now) + scheme.pacing_rate().unwrap().time_for(Bytes::new(SEGMENT));
                if scheme.pacing_rate() == Some(UNPACED) {
                    release = now;
                }
            }
            let may_send = in_flight(&flight) + Bytes::new(SEGMENT) <= window.cwnd;
            let next_release = if may_send { release } else { Timestamp::NEVER };
            let next_ack = flight.front().unwrap().1;
            now = next_ack.min(next_release).min(scheme.next_wakeup());
            let step = if scheme.next_wakeup() <= now {
                scheme.on_timer(now, window)
            } else if next_ack <= now {
                let before = in_flight(&flight);
                let (sent_at, _, position) = flight.pop_front().unwrap();
                let mut ack = acked(now, SEGMENT);
                (ack.position, ack.rtt) = (position, Some(now.since(sent_at)));
                (ack.in_flight_before, ack.in_flight) = (before, in_flight(&flight));
                let round = scheme.round;
                let step = scheme.on_ack(&ack, window, true, &estimator);
                if scheme.round > round {
                    story.rounds.push(0);
                }
                step
            } else {
                continue;
            };
            story.phases.extend(scheme.take_phase().map(|(phase, _)| (now, phase)));
            match step {
                Step::Continue { cwnd } => window.cwnd = cwnd,
                Step::Exit(continuation) => story.exit = Some((now, continuation)),
            }
            if story.exit.is_some() || scheme.round >= last {
                story.scheme = scheme;
                return story;
            }
        }
    }

    #[test]
    fn three_rounds_quadruple_on_a_fast_path_and_then_they_double() {
        let story = run(Config::default(), Duration::from_micros(10), 7);
        // 10, then 10 * 4, 40 * 4, 160 * 4 in the three rounds that may; after them 640 * 2.
        assert_eq!(story.rounds[..5], [10, 40, 160, 640, 1280]);
        assert_eq!(story.scheme.jumps, 3);
    }

    #[test]
    fn the_red_part_fills_the_rest_of_the_rtt() {
        let story = run(Config::default(), Duration::from_millis(1), 3);
        // Ten acknowledgements from 100 ms on, 1 ms apart: the blue train takes 9 ms. The blue part of 20 packets out
        // of 40 has 50 ms of the RTT; half of the 41 ms left is the guard: 109 + 20.5 = 129.5 ms.
        let at = Timestamp::ZERO + Duration::from_micros(129_500);
        let guard = Timestamp::ZERO + Duration::from_millis(109);
        assert_eq!(story.phases[..2], [(guard, "guard"), (at, "red")]);
        // The red part: 20 packets at 40 packets per 100 ms, so 2.5 ms apart and 50 ms long.
        assert_eq!(story.rounds[..2], [10, 40]);
        let plan = {
            let mut scheme = scheme(Config::default());
            scheme.begin_round(Timestamp::ZERO);
            scheme.sample(RTT);
            scheme.acked = Round { blue: Bytes::new(10_000), total: Bytes::new(10_000), ..Round::default() };
            scheme.plan_red_part(Timestamp::ZERO + Duration::from_millis(9));
            scheme.part
        };
        let (cwnd, rate) = (Bytes::new(40_000), Rate::from_bits_per_sec(3_200_000));
        let until = Timestamp::ZERO + Duration::from_micros(29_500);
        assert_eq!(plan, Part::Guard { until, cwnd, rate });
    }

    #[test]
    fn a_first_train_of_a_quarter_of_the_rtt_is_too_long() {
        let lasts = |train_ms| {
            let mut scheme = scheme(Config::default());
            scheme.begin_round(Timestamp::ZERO);
            scheme.sample(RTT);
            scheme.growth_will_last(Duration::from_millis(train_ms))
        };
        assert!(lasts(24) && !lasts(25));
    }

    #[test]
    fn later_rounds_need_a_train_and_a_delay_that_will_still_fit() {
        let lasts = |last_train_ms, train_ms, mo_rtt_us| {
            let mut scheme = scheme(Config::default());
            scheme.begin_round(Timestamp::ZERO);
            scheme.sample(RTT);
            scheme.begin_round(Timestamp::ZERO);
            scheme.sample(Duration::from_micros(mo_rtt_us));
            scheme.last_train = Duration::from_millis(last_train_ms);
            scheme.growth_will_last(Duration::from_millis(train_ms))
        };
        // A train that grew with the data, 6 to 24 ms: mu = 24 / 12 = 2, 2 * 24 * 2 = 96 <= 100. 26 ms: 2.17 * 26 * 2 >
        // 100.
        assert!(lasts(6, 24, 100_000) && !lasts(6, 26, 100_000));
        // A train that did not grow: mu = 1/2, 40 * 1/2 * 2 = 40 <= 100.
        assert!(lasts(40, 40, 100_000));
        // k = 1: 2 * moRTT <= 2 * 100 + 100 / 8 = 212.5.
        assert!(lasts(6, 24, 106_250) && !lasts(6, 24, 106_251));
    }

    #[test]
    fn a_slow_path_doubles_until_the_train_is_half_an_rtt_long() {
        let config = Config { iw: Some(20), ..Config::default() };
        let story = run(config, Duration::from_micros(1500), 10);
        // The first train takes 19 * 1.5 = 28.5 ms > 25 ms: no red part. In round 3 the train passes 50 ms with its
        // 35th acknowledgement (34 * 1.5 = 51 ms); the next one finds a window above the cap.
        assert_eq!(story.rounds[..2], [20, 40]);
        let (time, exit) = story.exit.unwrap();
        assert_eq!(exit.reason, ExitReason::AckTrain);
        assert_eq!((story.scheme.round, story.scheme.jumps), (3, 0));
        assert_eq!(time.since(story.scheme.round_start), Duration::from_micros(35 * 1500));
        // 40 + 35.
        assert_eq!(exit.cwnd, Bytes::new(75_000));
    }

    #[test]
    fn without_pacing_the_red_part_leaves_when_the_train_has_ended() {
        let story = run(Config { pacing: false, ..Config::default() }, Duration::from_millis(1), 3);
        let at = Timestamp::ZERO + Duration::from_millis(109);
        assert_eq!(story.phases[..2], [(at, "guard"), (at, "red")]);
    }

    #[test]
    fn short_rtts_and_no_rounds_make_it_hystart() {
        let jumps = |config| run(config, Duration::from_micros(10), 5).scheme.jumps;
        assert_eq!(jumps(Config { smallest_rtt: RTT, ..Config::default() }), 0);
        assert_eq!(jumps(Config { rounds: 1, ..Config::default() }), 1);
        assert_eq!(jumps(Config { rounds: 0, ..Config::default() }), 0);
    }

    #[test]
    fn crossed_thresholds_and_endless_rounds_are_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        assert_eq!(refused(Config { rounds: 17, ..Config::default() }), Err("rounds"));
        let hystart = hystart::Limits { min_threshold: Duration::from_millis(17), ..hystart::Limits::default() };
        let crossed = Config { hystart, ..Config::default() };
        assert_eq!(refused(crossed), Err("min_threshold"));
    }
}
