//! Rapid Start: a first flight twice as large over a whole RTT, then three times per RTT while no queue builds up.
//!
//! Reference: draft-kazuho-ccwg-rapid-start-02 (16 March 2026), section 3; quicly (h2o), `include/quicly/cc.h` and
//! `lib/cc-pico.c` at commit b11d3634, if the draft leaves a choice. The first flight is twice the initial window and
//! paced over a full RTT. While the smallest RTT of the last min RTT is within a threshold, each acknowledged byte adds
//! two to the window, otherwise one. On the first loss or mark the window is cut a little, so sending pauses. Then it
//! shrinks with every acknowledged and lost byte, and ends at beta times what the path and its queue held.
//!
//! Differences from the reference:
//! - Draft and code disagree twice. `threshold`: the draft has the smaller of min RTT + 4 ms and 1.10 min RTT, the code
//!   the larger of min RTT + 4 ms and 35/32 min RTT. `k`: the draft has 2/3, derived in its appendix; earlier drafts
//!   and the code have 11/18. The draft's values are the defaults.
//! - Lost bytes count from the loss that begins recovery, as in the draft's derivation; the code omits the first lost
//!   packet. Further losses are subtracted with the next acknowledgement.
//! - The launch sends the doubled first flight; quicly sends it when the RTT is first known and the window is full.
//!   Without an RTT from the handshake the first flight is the initial window.
//! - While growth is 3x the pacing rate is 3 cwnd / SRTT, as in quicly; the draft only paces the first flight.
//!
//! CUBIC takes the window before the first loss for its `W_max`, although the path may hold only a third of it.
//!
//! Status: the factors of the draft and its derivation are tests; there are no published numbers to validate against.

use super::slow_start::{self, SlowStart};
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Loss};
use crate::launch::{Continuation, Launch};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "2 IW paced over an RTT, then 3x per RTT while no queue builds up; a gradual reduction at the first loss";
/// The document that defines it.
pub const REFERENCE: &str = "draft-kazuho-ccwg-rapid-start-02, section 3; quicly b11d3634";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str =
    "nothing; 2 IW over the first RTT, then 3x per RTT while no queue builds; until loss; a gradual reduction";

/// Parts of the min RTT in which the recent smallest RTT is kept (quicly: 4).
const SLOTS: usize = 4;
/// Growth of the RTT that both thresholds allow.
const ADDITIVE: Duration = Duration::from_millis(4);
/// Growth per RTT without a queue.
const FASTEST_GROWTH: f64 = 3.0;
/// Smallest window in segments under congestion (RFC 9002, section 7.2).
const MIN_WINDOW: u64 = 2;

/// The RTT from which on a queue is assumed (`queue_buildup_thresh`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Threshold {
    /// `min(min_rtt + 4 ms, min_rtt * 1.10)` (draft, section 3.2).
    #[default]
    Draft,
    /// `max(min_rtt + 4 ms, min_rtt * 35/32)` (quicly).
    Quicly,
}

impl Threshold {
    /// `queue_buildup_thresh` for `min_rtt`.
    fn of(self, min_rtt: Duration) -> Duration {
        match self {
            Self::Draft => (min_rtt + ADDITIVE).min(min_rtt.scale(1.1)),
            Self::Quicly => (min_rtt + ADDITIVE).max(min_rtt * 35 / 32),
        }
    }
}

/// Parameters of Rapid Start.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's; quicly's experiments: 30.
    pub iw: Option<u32>,
    /// First flight over the initial window when the RTT is known, 1 to 100. Draft, section 3.1: up to 2, the default.
    pub first_flight: f64,
    /// Whether the scheme paces: the first flight over an RTT, then 3 cwnd / SRTT while growth is 3x. Otherwise the
    /// first flight leaves at once and the host's own rule applies. Draft: the first flight should be paced.
    pub pacing: bool,
    /// The RTT from which on growth is 2x. Default: the draft's.
    pub threshold: Threshold,
    /// Min RTT below which growth is always 2x, up to 10 s. quicly: 4 ms, the default; the draft has none.
    pub smallest_rtt: Duration,
    /// `beta` of congestion avoidance, 0.1 to 0.99. CUBIC and quicly: 0.7, the default; Reno: 0.5.
    pub beta: f64,
    /// `K`: the share of 1 - beta that the pause after the first loss leaves to the acknowledgements, 0 to 1. Draft,
    /// section 3.3.1: 2/3, the default; earlier drafts and quicly: 11/18.
    pub k: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            first_flight: 2.0,
            pacing: true,
            threshold: Threshold::Draft,
            smallest_rtt: Duration::from_millis(4),
            beta: 0.7,
            k: 2.0 / 3.0,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("first_flight", self.first_flight, 1.0..=100.0)?;
        ConfigError::unless_in("smallest_rtt", self.smallest_rtt, Duration::ZERO..=Duration::from_millis(10_000))?;
        ConfigError::unless_in("beta", self.beta, 0.1..=0.99)?;
        ConfigError::unless_in("k", self.k, 0.0..=1.0)
    }

    /// `silence_factor = beta + K * (1 - beta)`, which is also `loss_factor`.
    fn silence_factor(&self) -> f64 {
        self.beta + self.ack_factor()
    }

    /// `ack_factor = K * (1 - beta)`.
    fn ack_factor(&self) -> f64 {
        self.k * (1.0 - self.beta)
    }
}

/// The smallest RTT of the last min RTT, in slots of a quarter of it.
#[derive(Clone, Copy, Debug)]
struct RecentRtt {
    /// Smallest RTT of each slot, the newest first; [`Duration::MAX`] without a sample.
    slots: [Duration; SLOTS],
    /// When the newest slot ends.
    newest_until: Timestamp,
}

impl RecentRtt {
    const EMPTY: Self = Self { slots: [Duration::MAX; SLOTS], newest_until: Timestamp::ZERO };

    fn update(&mut self, now: Timestamp, sample: Duration, min_rtt: Duration) {
        if now < self.newest_until {
            self.slots[0] = self.slots[0].min(sample);
            return;
        }
        let length = (min_rtt / SLOTS as u64).max(Duration::from_nanos(1));
        let distance = now.since(self.newest_until).as_nanos() / length.as_nanos() + 1;
        let moved = distance.min(SLOTS as u64) as usize;
        self.slots.rotate_right(moved);
        self.slots[..moved].fill(Duration::MAX);
        self.slots[0] = sample;
        self.newest_until += length * distance;
    }

    /// `rtt_floor`.
    fn floor(&self) -> Duration {
        self.slots.iter().copied().min().unwrap_or(Duration::MAX)
    }
}

/// The first recovery.
#[derive(Clone, Copy, Debug)]
struct FirstRecovery {
    /// cwnd in bytes, with the fractions that the controller does not see.
    cwnd: f64,
    /// Below this the window is not reduced.
    floor: f64,
    /// Bytes declared lost since the window was last reduced.
    lost: Bytes,
    reason: ExitReason,
}

/// State of Rapid Start.
#[derive(Clone, Debug)]
pub struct RapidStart {
    config: Config,
    context: StartupContext,
    /// Grows the window while a queue builds up.
    slow_start: SlowStart,
    recent: RecentRtt,
    /// Whether growth was 3x at the last acknowledgement.
    fast: bool,
    /// The rate while growth is 3x.
    rate: Option<Rate>,
    recovery: Option<FirstRecovery>,
    /// A phase that was not read yet, and its trigger.
    entered: Option<(&'static str, &'static str)>,
}

impl RapidStart {
    /// Rapid Start that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let context = context.with_initial_window(config.iw);
        Self {
            config,
            context,
            slow_start: SlowStart::new(slow_start::Config::default(), context),
            recent: RecentRtt::EMPTY,
            fast: false,
            rate: None,
            recovery: None,
            entered: None,
        }
    }

    /// Whether no queue builds up, so that growth is 3x (section 3.2).
    fn no_queue(&mut self, ack: &Ack, rtt: &RttEstimator) -> bool {
        let (Some(sample), Some(min_rtt)) = (ack.rtt, rtt.min()) else {
            return self.fast;
        };
        self.recent.update(ack.now, sample, min_rtt);
        min_rtt >= self.config.smallest_rtt && self.recent.floor() <= self.config.threshold.of(min_rtt)
    }
}

impl Startup for RapidStart {
    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: the RTT of the handshake, over which twice the initial window can be spread.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch {
        let Some(rtt) = path.handshake_rtt else {
            return self.slow_start.launch(now, path, log);
        };
        self.entered = Some(("first-flight", "connect"));
        let cwnd = self.context.initial_window.scale(self.config.first_flight);
        if self.config.pacing {
            Launch { pacing_rate: Rate::from_transfer(cwnd, rtt), ..Launch::window(cwnd) }
        } else {
            Launch { burst: Some(cwnd), ..Launch::window(cwnd) }
        }
    }

    // Probing: 3x per RTT. Validation by the recent RTT: 2x when it has grown.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        let fast = self.no_queue(ack, rtt);
        if fast != self.fast {
            self.fast = fast;
            self.entered = Some(if fast { ("3x", "rtt_floor") } else { ("2x", "rtt_floor") });
        }
        let mut step = self.slow_start.on_ack(ack, window, in_use, rtt);
        if let Step::Continue { cwnd } = &mut step {
            // Each acknowledged byte adds two: slow start's byte and one more.
            if fast {
                *cwnd = (*cwnd + cwnd.saturating_sub(window.cwnd)).min(window.ssthresh);
            }
            let paced = fast && self.config.pacing;
            self.rate = if paced { Rate::from_transfer(cwnd.scale(FASTEST_GROWTH), rtt.smoothed()) } else { None };
        }
        step
    }

    fn on_lost(&mut self, loss: &Loss) {
        if let Some(recovery) = &mut self.recovery {
            recovery.lost += loss.bytes;
        }
    }

    // Validation: the first congestion event. A mark loses no bytes.
    fn on_congestion(&mut self, loss: &Loss, window: Window, reduced: Bytes) -> Step {
        let marked = loss.bytes == Bytes::ZERO;
        let (trigger, reason) = if marked { ("ECN_CE", ExitReason::Ecn) } else { ("packet_loss", ExitReason::Loss) };
        if self.recovery.is_some() {
            // Packets sent during the recovery meet congestion again: congestion avoidance responds.
            return Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason });
        }
        self.rate = None;
        self.entered = Some(("first-recovery", trigger));
        let before = window.cwnd.get() as f64;
        // cwnd *= silence_factor; cwnd -= loss_factor * bytes_newly_lost; not below pre_recovery_cwnd * beta / 3, nor
        // below IW * beta, nor the smallest window.
        let silent = before * self.config.silence_factor();
        let floor = (before * self.config.beta / FASTEST_GROWTH)
            .max(self.context.initial_window.get() as f64 * self.config.beta)
            .max((self.context.segment * MIN_WINDOW).get() as f64)
            .min(silent);
        let cwnd = (silent - loss.bytes.get() as f64 * self.config.silence_factor()).max(floor);
        self.recovery = Some(FirstRecovery { cwnd, floor, lost: Bytes::ZERO, reason });
        Step::Continue { cwnd: Bytes::new(cwnd as u64) }
    }

    fn on_ack_in_recovery(&mut self, ack: &Ack, _window: Window, _rtt: &RttEstimator) -> Option<Step> {
        let recovery = self.recovery.as_mut()?;
        // cwnd -= ack_factor * bytes_newly_acked; cwnd -= loss_factor * bytes_newly_lost
        let acked = ack.bytes.get() as f64 * self.config.ack_factor();
        let lost = recovery.lost.get() as f64 * self.config.silence_factor();
        recovery.lost = Bytes::ZERO;
        recovery.cwnd = (recovery.cwnd - acked - lost).max(recovery.floor);
        Some(Step::Continue { cwnd: Bytes::new(recovery.cwnd as u64) })
    }

    // Continuation: the result of recovery.
    fn on_recovered(&mut self, _now: Timestamp, window: Window) -> Step {
        self.entered = Some(("ended", "recovered"));
        let (cwnd, reason) = self.recovery.map_or((window.cwnd, ExitReason::Loss), |recovery| {
            let lost = recovery.lost.get() as f64 * self.config.silence_factor();
            (Bytes::new((recovery.cwnd - lost).max(recovery.floor) as u64), recovery.reason)
        });
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason })
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;

    const SEGMENT: u64 = 1000;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn scheme(config: Config) -> RapidStart {
        RapidStart::new(config, context(Increase::Bytes))
    }

    fn launch(config: Config, handshake_rtt: Option<Duration>) -> Launch {
        let path = PathKnowledge { handshake_rtt, ..PathKnowledge::default() };
        scheme(config).launch(Timestamp::ZERO, &path, &mut DecisionLog::default())
    }

    #[test]
    fn the_first_flight_is_two_initial_windows_over_one_rtt() {
        // 2 * 10 segments in 100 ms = 1.6 Mbit/s, the rate of 10 segments in half an RTT.
        let paced = launch(Config::default(), Some(MS(100)));
        assert_eq!((paced.cwnd, paced.pacing_rate), (Bytes::new(20_000), Some(Rate::from_bits_per_sec(1_600_000))));
        let unpaced = launch(Config { pacing: false, ..Config::default() }, Some(MS(100)));
        assert_eq!((unpaced.pacing_rate, unpaced.burst), (None, Some(Bytes::new(20_000))));
        assert_eq!(launch(Config::default(), None).cwnd, Bytes::new(10_000));
    }

    #[test]
    fn the_factors_are_those_of_the_draft_and_of_the_code() {
        let factors = |beta, k| {
            let config = Config { beta, k, ..Config::default() };
            (config.silence_factor(), config.ack_factor())
        };
        let close = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 1e-12 && (b - d).abs() < 1e-12;
        // beta + K (1 - beta) and K (1 - beta) with K = 2/3: 1/2 + 1/3 and 1/3; 7/10 + 1/5 and 1/5.
        assert!(close(factors(0.5, 2.0 / 3.0), (5.0 / 6.0, 1.0 / 3.0)));
        assert!(close(factors(0.7, 2.0 / 3.0), (9.0 / 10.0, 1.0 / 5.0)));
        // With K = 11/18: 18/36 + 11/36 and 11/36; 42/60 + 11/60 and 11/60.
        assert!(close(factors(0.5, 11.0 / 18.0), (29.0 / 36.0, 11.0 / 36.0)));
        assert!(close(factors(0.7, 11.0 / 18.0), (53.0 / 60.0, 11.0 / 60.0)));
    }

    #[test]
    fn draft_and_code_disagree_on_the_threshold() {
        // 100 ms: min(104, 110) and max(104, 109.375). 20 ms: min(24, 22) and max(24, 21.875).
        assert_eq!((Threshold::Draft.of(MS(100)), Threshold::Draft.of(MS(20))), (MS(104), MS(22)));
        let quicly = (Threshold::Quicly.of(MS(100)), Threshold::Quicly.of(MS(20)));
        assert_eq!(quicly, (Duration::from_micros(109_375), MS(24)));
    }

    /// The window in segments after each of `rtts` (ms) has come with the acknowledgement of a segment, 5 ms apart,
    /// from a window of 20 segments and a min RTT of 100 ms.
    fn windows(config: Config, rtts: &[u64]) -> alloc::vec::Vec<u64> {
        let mut scheme = scheme(config);
        let mut rtt = RttEstimator::new(MS(100));
        rtt.update(Timestamp::ZERO, MS(100), Duration::ZERO);
        let mut window = Window { cwnd: Bytes::new(20 * SEGMENT), ssthresh: Bytes::MAX };
        let mut now = Timestamp::ZERO + MS(100);
        let mut windows = alloc::vec::Vec::new();
        for &sample in rtts {
            let ack = Ack { rtt: Some(MS(sample)), ..acked(now, SEGMENT) };
            let Step::Continue { cwnd } = scheme.on_ack(&ack, window, true, &rtt) else {
                panic!("no reason to leave startup");
            };
            window.cwnd = cwnd;
            windows.push(cwnd.get() / SEGMENT);
            now += MS(5);
        }
        windows
    }

    #[test]
    fn a_round_without_a_queue_triples_the_window() {
        // 20 + 20 * 2 = 60.
        assert_eq!(windows(Config::default(), &[104; 20]).last(), Some(&60));
        // Above the threshold of 104 ms: 20 + 20 * 1 = 40.
        assert_eq!(windows(Config::default(), &[105; 20]).last(), Some(&40));
        assert_eq!(windows(Config { threshold: Threshold::Quicly, ..Config::default() }, &[109; 20]).last(), Some(&60));
    }

    #[test]
    fn a_short_rtt_counts_for_one_min_rtt() {
        // The sample of 100 ms comes in the first slot of 25 ms; it is forgotten when the fifth slot begins, 100 ms
        // later at most: 20 acknowledgements 5 ms apart add two segments each, the others one.
        let mut rtts = [120; 30];
        rtts[0] = 100;
        let windows = windows(Config::default(), &rtts);
        assert_eq!((windows[19], windows[20], windows[29]), (60, 61, 70));
    }

    #[test]
    fn below_the_smallest_rtt_growth_is_always_classic() {
        let config = Config { smallest_rtt: MS(101), ..Config::default() };
        assert_eq!(windows(config, &[100; 20]).last(), Some(&40));
    }

    #[test]
    fn growth_by_three_is_paced_by_three() {
        let mut scheme = scheme(Config::default());
        let mut rtt = RttEstimator::new(MS(100));
        rtt.update(Timestamp::ZERO, MS(100), Duration::ZERO);
        let window = Window { cwnd: Bytes::new(20 * SEGMENT), ssthresh: Bytes::MAX };
        let ack = Ack { rtt: Some(MS(100)), ..acked(Timestamp::ZERO, SEGMENT) };
        scheme.on_ack(&ack, window, true, &rtt);
        // 3 * 22,000 bytes / 100 ms = 5.28 Mbit/s.
        assert_eq!(scheme.pacing_rate(), Some(Rate::from_bits_per_sec(5_280_000)));
        assert_eq!(scheme.take_phase(), Some(("3x", "rtt_floor")));
    }

    /// The window in bytes after a first recovery of a window of 300 segments, of which `lost` are lost, spread evenly
    /// over the acknowledgements of the others.
    fn recovered(beta: f64, lost: u64) -> u64 {
        let mut scheme = scheme(Config { beta, ..Config::default() });
        let rtt = RttEstimator::new(MS(100));
        let mut window = Window { cwnd: Bytes::new(300 * SEGMENT), ssthresh: Bytes::MAX };
        let loss = |bytes| Loss {
            now: Timestamp::ZERO,
            bytes: Bytes::new(bytes),
            position: 0,
            in_flight_before: Bytes::new(300 * SEGMENT),
            in_flight: Bytes::new(300 * SEGMENT),
        };
        let first = lost.min(1);
        let Step::Continue { cwnd } = scheme.on_congestion(&loss(first * SEGMENT), window, Bytes::new(SEGMENT)) else {
            panic!("the scheme stays in charge");
        };
        window.cwnd = cwnd;
        let delivered = 300 - lost;
        for index in 0..delivered {
            let due = (lost - first) * (index + 1) / delivered - (lost - first) * index / delivered;
            scheme.on_lost(&loss(due * SEGMENT));
            let step = scheme.on_ack_in_recovery(&acked(Timestamp::ZERO, SEGMENT), window, &rtt);
            let Some(Step::Continue { cwnd }) = step else {
                panic!("the scheme stays in charge");
            };
            window.cwnd = cwnd;
        }
        let Step::Exit(exit) = scheme.on_recovered(Timestamp::ZERO, window) else {
            panic!("recovery ends startup");
        };
        assert_eq!(exit.cwnd, exit.ssthresh);
        exit.cwnd.get()
    }

    #[test]
    fn the_first_recovery_ends_at_beta_times_what_was_delivered() {
        // 300 * 5/6 - 100 * 1/3 - 200 * 5/6 = 250 - 33.3 - 166.7 = 50 = 100 * 0.5, which is the floor, 300 * 0.5 / 3,
        // too.
        assert_eq!(recovered(0.5, 200), 50_000);
        // 300 * 5/6 - 200 * 1/3 - 100 * 5/6 = 250 - 66.7 - 83.3 = 100 = 200 * 0.5.
        assert!((99_999..=100_000).contains(&recovered(0.5, 100)));
        // A mark: 300 * 9/10 - 300 * 1/5 = 210 = 300 * 0.7.
        assert!((209_999..=210_000).contains(&recovered(0.7, 0)));
        // 250 lost: 300 * 9/10 - 50 * 1/5 - 250 * 9/10 = 35, but the floor is 300 * 0.7 / 3 = 70.
        assert!((69_999..=70_000).contains(&recovered(0.7, 250)));
    }

    #[test]
    fn small_windows_are_not_cut_below_beta_times_the_initial_one() {
        let mut scheme = scheme(Config::default());
        let window = Window { cwnd: Bytes::new(12 * SEGMENT), ssthresh: Bytes::MAX };
        let in_flight = Bytes::new(12 * SEGMENT);
        let bytes = Bytes::new(6 * SEGMENT);
        let loss = Loss { now: Timestamp::ZERO, bytes, position: 0, in_flight_before: in_flight, in_flight };
        // 12 * 9/10 - 6 * 9/10 = 5.4, but 10 * 0.7 = 7.
        let step = scheme.on_congestion(&loss, window, Bytes::new(8400));
        assert_eq!(step, Step::Continue { cwnd: Bytes::new(7 * SEGMENT) });
        // A later packet is lost, too: congestion avoidance decides.
        let Step::Exit(exit) = scheme.on_congestion(&loss, window, Bytes::new(4900)) else {
            panic!("the first recovery is over");
        };
        assert_eq!((exit.cwnd, exit.reason), (Bytes::new(4900), ExitReason::Loss));
    }

    #[test]
    fn factors_out_of_range_are_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        assert_eq!(refused(Config { k: 1.1, ..Config::default() }), Err("k"));
        assert_eq!(refused(Config { first_flight: 0.5, ..Config::default() }), Err("first_flight"));
        assert_eq!(refused(Config { beta: f64::NAN, ..Config::default() }), Err("beta"));
    }
}
