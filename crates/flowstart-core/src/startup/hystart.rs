//! HyStart: slow start that ends before the queue overflows. It ends when a train of closely spaced acknowledgements
//! becomes as long as the path, or when the RTT of a round has grown.
//!
//! Reference: Ha, Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55 (2011), section 4, with the
//! constants of Google's QUIC ("hybrid slow start") and of Linux (`tcp_cubic.c`). Delay test: the smallest of the first
//! RTT samples of a round is compared with the connection's smallest RTT. It is too large if it exceeds that RTT by an
//! eighth, bounded to 4..16 ms. ACK train test: acknowledgements that have followed each other within 2 ms since the
//! round began last longer than half of the smallest RTT, or than all of it on a host that paces. Slow start then ends
//! with the current window. Loss ends it as in plain slow start.
//!
//! Differences from the reference: the default is only the delay test, as in Google's QUIC. `variant` chooses between
//! implementations that differ in more than constants:
//!
//! | | `quic` | `linux` | `ns3` |
//! |---|---|---|---|
//! | tests | delay | delay and train | delay and train |
//! | RTT of a round | samples | samples | smoothed RTT at each acknowledgement |
//! | smallest RTT | the connection's | of data, without the handshake | smoothed |
//! | acknowledgement beyond a round's end | belongs to it | begins the next | begins the next |
//! | delay test | once, with sample 8 | from sample 9 on | from sample 9 on |
//! | too much delay | an eighth, 4..16 ms | an eighth, 4..16 ms | the smallest smoothed RTT, 4..1000 ms |
//! | a train is longer than | RTT / 2, paced RTT | (RTT + aggregation) / 2, paced the whole | the smallest smoothed RTT |
//! | below `low_window` | tests, and exits with the next sample | does not test | does not test |
//!
//! Linux allows for the aggregation of packets in the host (`hystart_ack_delay`): the time of four of the largest units
//! that it hands to its interface, 64 KiB, at its pacing rate, twice the window per smoothed RTT, and at most 1 ms.
//! Below 2 Gbit/s this is 1 ms. Positions in Linux are those of TCP, where an acknowledgement names the first missing
//! byte.
//!
//! Status: `quic` is part of `blitzstart-table1`, `ns3` of `ns3-startup`, `linux` of `linux-startup`.

use alloc::format;

use super::slow_start::up_to_ssthresh;
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str = "slow start that ends when the RTT of a round has grown by an eighth, or after an ACK train";
/// The document that defines it.
pub const REFERENCE: &str = "Ha, Rhee, Computer Networks 55 (2011), section 4; Google's QUIC, Linux and ns-3";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str =
    "nothing; doubles every RTT; until the RTT or the ACK train grows; congestion avoidance with the window it has";

/// `HyStartDelayMax` of ns-3's `TcpCubic`.
const NS3_MAX_THRESHOLD: Duration = Duration::from_millis(1000);

/// The implementation to follow; the table above lists the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Variant {
    /// Google's QUIC.
    #[default]
    Quic,
    /// Linux.
    Linux,
    /// ns-3's `TcpCubic`.
    Ns3,
}

/// Parameters of HyStart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// The implementation to follow. Default: the host's, and Google's QUIC for a host without one.
    pub variant: Option<Variant>,
    /// Whether the RTT is tested. All variants: yes.
    pub delay: bool,
    /// Whether the ACK train is tested. Default: the variant's, which is no for `quic`, yes for `linux` and `ns3`.
    pub train: Option<bool>,
    /// Thresholds of the tests.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self { iw: None, variant: None, delay: true, train: None, limits: Limits::default() }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        self.limits.validate()
    }

    /// The implementation, which a host should have set.
    fn variant(&self) -> Variant {
        self.variant.unwrap_or_default()
    }

    fn tests_train(&self) -> bool {
        self.train.unwrap_or(self.variant() != Variant::Quic)
    }
}

/// Thresholds of HyStart's tests, as keys of the configuration that contains them. SUSS has the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Limits {
    /// RTT samples at the start of a round that the test uses, 1 to 1000. All variants: 8.
    pub samples: u32,
    /// Smallest growth of the RTT that counts, at most `max_threshold`. All variants: 4 ms.
    pub min_threshold: Duration,
    /// Growth of the RTT that always counts, up to 100 s. Linux and Google's QUIC: 16 ms; `ns3` always has 1 s instead.
    pub max_threshold: Duration,
    /// Largest spacing of acknowledgements inside a train, up to 100 s. Linux and ns-3: 2 ms.
    pub ack_gap: Duration,
    /// Smallest window in segments with which a test ends slow start at once. All variants: 16.
    pub low_window: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            samples: 8,
            min_threshold: Duration::from_millis(4),
            max_threshold: Duration::from_millis(16),
            ack_gap: Duration::from_millis(2),
            low_window: 16,
        }
    }
}

impl Limits {
    /// Refuses parameters out of range.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("samples", self.samples, 1..=1000)?;
        ConfigError::unless_in("max_threshold", self.max_threshold, Duration::ZERO..=Duration::from_millis(100_000))?;
        if self.min_threshold > self.max_threshold {
            let allowed = format!("up to max_threshold, {}", self.max_threshold);
            return Err(ConfigError::new("min_threshold", self.min_threshold, allowed));
        }
        ConfigError::unless_in("ack_gap", self.ack_gap, Duration::ZERO..=Duration::from_millis(100_000))
    }

    /// The RTT above which the delay is too large: an eighth more than `min_rtt`, within bounds.
    pub(crate) fn longest_rtt(&self, min_rtt: Duration) -> Duration {
        min_rtt + (min_rtt / 8).max(self.min_threshold).min(self.max_threshold)
    }
}

/// `linux`: what a host may hold back in order to hand over more at once, in bytes (four times `GSO_MAX_SIZE`), and the
/// longest time that is allowed for it.
const AGGREGATION: Bytes = Bytes::new(4 * 65_536);
const LONGEST_AGGREGATION: Duration = Duration::from_millis(1);

/// State of HyStart. Names as in the paper where it has one.
#[derive(Clone, Debug)]
pub struct Hystart {
    config: Config,
    context: StartupContext,
    highest_sent: Position,
    /// The round ends when this position is acknowledged; `None` between rounds.
    round_end: Option<Position>,
    /// When the round began.
    round_start: Timestamp,
    /// The last acknowledgement of the train (lastJiffies).
    last_ack: Timestamp,
    /// Samples taken in this round.
    sample_count: u32,
    /// Smallest RTT of this round's first samples (currRTT).
    round_min: Duration,
    /// The smallest RTT (dMin): `linux` since the launch, `ns3` that of smoothed ones, `quic` the host's.
    delay_min: Duration,
    /// The cause that ends slow start, once it was seen.
    found: Option<ExitReason>,
}

impl Hystart {
    /// HyStart that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self {
            config,
            context,
            highest_sent: 0,
            round_end: None,
            round_start: Timestamp::ZERO,
            last_ack: Timestamp::ZERO,
            sample_count: 0,
            round_min: Duration::MAX,
            delay_min: Duration::MAX,
            found: None,
        }
    }

    fn start_round(&mut self, now: Timestamp, end: Position) {
        self.round_end = Some(end);
        self.round_start = now;
        self.last_ack = now;
        self.sample_count = 0;
        self.round_min = Duration::MAX;
    }

    /// `quic`: handles an acknowledgement with a sample. The acknowledgement that ends a round belongs to the round.
    fn on_sample(&mut self, ack: &Ack, sample: Duration, min_rtt: Duration) {
        if self.round_end.is_none() {
            self.start_round(ack.now, self.highest_sent);
        }
        self.delay_min = min_rtt;
        self.test_train(ack.now, if self.context.paced { min_rtt } else { min_rtt / 2 });
        self.sample_count += 1;
        if self.sample_count <= self.config.limits.samples {
            self.round_min = self.round_min.min(sample);
        }
        if self.sample_count == self.config.limits.samples {
            self.test_delay(self.longest_rtt());
        }
        if self.round_end.is_some_and(|end| ack.position >= end) {
            self.round_end = None;
        }
    }

    /// `linux`: handles an acknowledgement with a sample.
    fn on_data_sample(&mut self, ack: &Ack, sample: Duration, smoothed: Duration, cwnd: Bytes, large: bool) {
        self.delay_min = self.delay_min.min(sample);
        // An acknowledgement beyond everything sent so far.
        if self.round_end.is_none_or(|end| ack.position > end) {
            self.start_round(ack.now, self.highest_sent + 1);
        }
        if !large {
            return;
        }
        let longest = self.delay_min + Self::aggregation(smoothed, cwnd);
        self.test_train(ack.now, if self.context.paced { longest } else { longest / 2 });
        self.round_min = self.round_min.min(sample);
        if self.sample_count == self.config.limits.samples {
            self.test_delay(self.longest_rtt());
        } else {
            self.sample_count += 1;
        }
    }

    /// How much longer a train may be because of aggregation: `hystart_ack_delay` of Linux.
    fn aggregation(smoothed: Duration, cwnd: Bytes) -> Duration {
        let rate = Rate::from_transfer(cwnd * 2, smoothed);
        rate.map_or(LONGEST_AGGREGATION, |rate| rate.time_for(AGGREGATION).min(LONGEST_AGGREGATION))
    }

    /// `ns3`: handles every acknowledgement. A round begins after the tests, and only while the window is in use.
    fn on_smoothed(&mut self, ack: &Ack, smoothed: Duration, large: bool, in_use: bool) {
        self.delay_min = self.delay_min.min(smoothed);
        if large {
            self.test_train(ack.now, self.delay_min);
            if self.sample_count == self.config.limits.samples {
                self.test_delay(self.longest_rtt());
            } else {
                self.sample_count += 1;
                self.round_min = self.round_min.min(smoothed);
            }
        }
        // ns-3 compares with the sequence number after the last byte.
        if in_use && self.round_end.is_none_or(|end| ack.position > end) {
            self.start_round(ack.now, self.highest_sent + 1);
        }
    }

    /// An acknowledgement that comes late ends the train for the rest of the round.
    fn test_train(&mut self, now: Timestamp, longest: Duration) {
        if self.config.tests_train() && now.since(self.last_ack) <= self.config.limits.ack_gap {
            self.last_ack = now;
            if now.since(self.round_start) > longest {
                self.found = self.found.or(Some(ExitReason::AckTrain));
            }
        }
    }

    /// The smallest RTT of a round above which slow start ends.
    fn longest_rtt(&self) -> Duration {
        match self.config.variant() {
            Variant::Ns3 => {
                let growth = self.delay_min.max(self.config.limits.min_threshold).min(NS3_MAX_THRESHOLD);
                self.delay_min + growth
            }
            Variant::Linux | Variant::Quic => self.config.limits.longest_rtt(self.delay_min),
        }
    }

    fn test_delay(&mut self, longest: Duration) {
        if self.config.delay && self.round_min > longest {
            self.found = self.found.or(Some(ExitReason::Delay));
        }
    }
}

impl Startup for Hystart {
    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: nothing is known.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let cwnd = self.context.with_initial_window(self.config.iw).initial_window;
        Launch::window(cwnd)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.highest_sent = self.highest_sent.max(sent.position);
    }

    // All variants run again after a timeout: Linux and ns-3 begin a round at once and forget the smallest RTT,
    // Google's QUIC begins one with the next sample.
    fn on_restart(&mut self, now: Timestamp, highest_sent: Position) -> bool {
        self.highest_sent = highest_sent;
        self.delay_min = Duration::MAX;
        self.found = None;
        match self.config.variant() {
            Variant::Quic => self.round_end = None,
            Variant::Linux | Variant::Ns3 => self.start_round(now, highest_sent + 1),
        }
        true
    }

    fn goes_on_after_undo(&self) -> bool {
        true
    }

    // Probing as slow start; Validation by the RTT and the acknowledgements of each round.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        let large = window.cwnd >= self.context.segment * u64::from(self.config.limits.low_window);
        // Google's code checks the window only when a test triggers.
        let known = self.found.is_some() && self.config.variant() == Variant::Quic && ack.rtt.is_some();
        match (self.config.variant(), ack.rtt, rtt.min()) {
            (Variant::Ns3, ..) => self.on_smoothed(ack, rtt.smoothed(), large, in_use),
            (Variant::Linux, Some(sample), _) => {
                self.on_data_sample(ack, sample, rtt.smoothed(), window.cwnd, large);
            }
            (Variant::Quic, Some(sample), Some(min_rtt)) if !known => self.on_sample(ack, sample, min_rtt),
            _ => {}
        }
        // Continuation: the window as it is.
        if let Some(reason) = self.found.filter(|_| large || known) {
            return Step::Exit(Continuation { cwnd: window.cwnd, ssthresh: window.cwnd, reason });
        }
        let cwnd = if in_use { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd };
        up_to_ssthresh(cwnd, window)
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        seen.time("delay_min", self.delay_min);
        seen.time("curr_rtt", self.round_min);
        if self.config.delay && self.delay_min != Duration::MAX {
            seen.time("longest_rtt", self.longest_rtt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;

    /// Feeds one round of acknowledgements, each with its time and its RTT (ms), on a path with a smallest RTT of 40
    /// ms; returns the exit, if any.
    fn timed_round(config: Config, paced: bool, acks: &[(u64, u64)]) -> Option<ExitReason> {
        let mut scheme = Hystart::new(config, StartupContext { paced, ..context(Increase::Bytes) });
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(40), Duration::ZERO);
        scheme.on_sent(&Sent {
            now: Timestamp::ZERO,
            bytes: Bytes::new(1),
            in_flight: Bytes::new(1),
            position: 100,
            app_limited: false,
        });
        let mut window = Window { cwnd: Bytes::new(20_000), ssthresh: Bytes::MAX };
        for (index, &(at, sample)) in acks.iter().enumerate() {
            let mut ack = acked(Timestamp::ZERO + Duration::from_millis(at), 1000);
            ack.position = index as u64;
            ack.rtt = Some(Duration::from_millis(sample));
            rtt.update(ack.now, Duration::from_millis(sample), Duration::ZERO);
            match scheme.on_ack(&ack, window, true, &rtt) {
                Step::Continue { cwnd } => window.cwnd = cwnd,
                Step::Exit(exit) => return Some(exit.reason),
            }
        }
        None
    }

    /// Feeds one round of RTT samples (ms).
    fn round(samples: &[u64]) -> Option<ExitReason> {
        let acks: alloc::vec::Vec<_> = samples.iter().map(|&sample| (0, sample)).collect();
        timed_round(Config::default(), false, &acks)
    }

    /// Acknowledgements with the smallest RTT, one every `gap` from 100 ms until `length` later.
    fn train(gap: u64, length: u64) -> alloc::vec::Vec<(u64, u64)> {
        (0..=length / gap).map(|index| (100 + index * gap, 40)).collect()
    }

    #[test]
    fn a_round_that_is_slower_by_an_eighth_ends_slow_start() {
        // 40 ms / 8 = 5 ms, inside 4..16 ms: the eight samples must all exceed 45 ms.
        assert_eq!(round(&[46; 8]), Some(ExitReason::Delay));
        assert_eq!(round(&[45; 8]), None);
    }

    #[test]
    fn one_fast_sample_or_too_few_samples_keep_it_going() {
        assert_eq!(round(&[60, 60, 60, 41, 60, 60, 60, 60]), None);
        assert_eq!(round(&[60; 7]), None);
    }

    #[test]
    fn rounds_without_samples_and_crossed_thresholds_are_refused() {
        assert!(Config { limits: Limits { samples: 0, ..Limits::default() }, ..Config::default() }.validate().is_err());
        assert!(Config { iw: Some(0), ..Config::default() }.validate().is_err());
        let limits = Limits { min_threshold: Duration::from_millis(17), ..Limits::default() };
        let crossed = Config { limits, ..Config::default() };
        assert_eq!(crossed.validate().map_err(|error| error.field), Err("min_threshold"));
    }

    #[test]
    fn samples_after_the_eighth_do_not_count() {
        assert_eq!(round(&[41, 41, 41, 41, 41, 41, 41, 41, 90, 90, 90]), None);
    }

    #[test]
    fn a_train_longer_than_half_of_the_rtt_ends_slow_start() {
        // 1 ms for aggregation: (40 ms + 1 ms) / 2 = 20.5 ms. Acknowledgements 2 ms apart must go on for more than
        // that.
        let config = Config { variant: Some(Variant::Linux), ..Config::default() };
        assert_eq!(timed_round(config.clone(), false, &train(2, 20)), None);
        assert_eq!(timed_round(config.clone(), false, &train(2, 22)), Some(ExitReason::AckTrain));
        // A host that paces spreads a window over half of the RTT by itself: 41 ms.
        assert_eq!(timed_round(config.clone(), true, &train(2, 40)), None);
        assert_eq!(timed_round(config, true, &train(2, 42)), Some(ExitReason::AckTrain));
    }

    #[test]
    fn a_gap_ends_the_train_for_the_rest_of_the_round() {
        let config = Config { variant: Some(Variant::Linux), ..Config::default() };
        assert_eq!(timed_round(config.clone(), false, &train(3, 300)), None, "3 ms apart is no train");
        let mut acks = train(2, 10);
        // 110 ms and then 113 ms: whatever follows in this round is not compared.
        acks.extend((0..50).map(|index| (113 + index, 40)));
        assert_eq!(timed_round(config, false, &acks), None);
    }

    #[test]
    fn the_train_is_off_unless_the_variant_or_the_user_wants_it() {
        assert_eq!(timed_round(Config::default(), false, &train(2, 100)), None);
        let on = Config { train: Some(true), ..Config::default() };
        assert_eq!(timed_round(on, false, &train(2, 100)), Some(ExitReason::AckTrain));
        let off = Config { variant: Some(Variant::Linux), train: Some(false), ..Config::default() };
        assert_eq!(timed_round(off, false, &train(2, 100)), None);
        let neither = Config { delay: false, ..Config::default() };
        assert_eq!(timed_round(neither, false, &[(0, 90); 20]), None);
    }

    /// `linux` after samples in ms, each in a round of its own if `ends` says so; the handshake took 10 ms.
    fn linux(samples: &[u64], ends: &[usize]) -> Option<ExitReason> {
        sampled(&mut linux_by_delay(), samples, ends)
    }

    fn linux_by_delay() -> Hystart {
        let config = Config { variant: Some(Variant::Linux), train: Some(false), ..Config::default() };
        Hystart::new(config, context(Increase::Bytes))
    }

    fn sampled(scheme: &mut Hystart, samples: &[u64], ends: &[usize]) -> Option<ExitReason> {
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(10), Duration::ZERO);
        let window = Window { cwnd: Bytes::new(20_000), ssthresh: Bytes::MAX };
        for (index, &sample) in samples.iter().enumerate() {
            let mut ack = acked(Timestamp::ZERO, 1000);
            ack.rtt = Some(Duration::from_millis(sample));
            // The first byte that is missing: 101 and 102 after 100 was sent as the last one.
            ack.position = if ends.contains(&index) { scheme.highest_sent + 2 } else { scheme.highest_sent + 1 };
            if ends.contains(&index) {
                scheme.highest_sent += 100;
            }
            if let Step::Exit(exit) = scheme.on_ack(&ack, window, true, &rtt) {
                return Some(exit.reason);
            }
        }
        None
    }

    #[test]
    fn linux_compares_from_the_ninth_sample_of_a_round_on() {
        // The first round has the smallest RTT, 40 ms: 45 ms are not too much, 46 are.
        let samples = [[40].as_slice(), &[46; 9]].concat();
        assert_eq!(linux(&samples[..9], &[0, 1]), None);
        assert_eq!(linux(&samples, &[0, 1]), Some(ExitReason::Delay));
        let less = [[40].as_slice(), &[45; 20]].concat();
        assert_eq!(linux(&less, &[0, 1]), None);
        // The acknowledgement that begins the next round is part of it: a fast one keeps the train going.
        let fast = [[40, 41].as_slice(), &[46; 9]].concat();
        assert_eq!(linux(&fast, &[0, 1]), None);
        assert_eq!(linux(&fast, &[0, 2]), Some(ExitReason::Delay));
    }

    #[test]
    fn linux_does_not_compare_with_the_handshake() {
        // 40 ms are four times the handshake's 10, and no growth.
        assert_eq!(linux(&[40; 30], &[0, 10]), None);
    }

    #[test]
    fn linux_forgets_the_smallest_rtt_with_a_timeout() {
        let left = |timeout: bool| {
            let mut scheme = linux_by_delay();
            assert_eq!(sampled(&mut scheme, &[40], &[0]), None);
            if timeout {
                let highest_sent = scheme.highest_sent;
                assert!(scheme.on_restart(Timestamp::ZERO, highest_sent));
            }
            sampled(&mut scheme, &[80; 30], &[0, 15])
        };
        assert_eq!(left(false), Some(ExitReason::Delay));
        // 80 ms are the smallest RTT now.
        assert_eq!(left(true), None);
    }

    #[test]
    fn aggregation_is_bounded_by_a_millisecond_and_shrinks_with_the_rate() {
        let ms = Duration::from_millis;
        assert_eq!(Hystart::aggregation(ms(50), Bytes::new(200_000)), ms(1));
        // 262,144 bytes at 2 * 25 MB / 50 ms = 1 GB/s.
        assert_eq!(Hystart::aggregation(ms(50), Bytes::new(25_000_000)), Duration::from_nanos(262_144));
    }

    #[test]
    fn ns3_waits_for_a_train_as_long_as_the_rtt_or_for_its_double() {
        let config = Config { variant: Some(Variant::Ns3), ..Config::default() };
        // The first acknowledgement begins the round; the smallest smoothed RTT is 40 ms.
        assert_eq!(timed_round(config.clone(), false, &train(2, 40)), None);
        assert_eq!(timed_round(config.clone(), false, &train(2, 42)), Some(ExitReason::AckTrain));
        // The smoothed RTT goes an eighth of the way from 40 ms with the second acknowledgement, the round's first
        // sample.
        let mut acks = [(0, 320); 11];
        acks[0].1 = 40;
        // 320 ms: 320 - 280 * 7/8 = 75 ms, less than twice 40 ms. 400 ms: 400 - 360 * 7/8 = 85 ms, more.
        assert_eq!(timed_round(config.clone(), false, &acks), None);
        acks.iter_mut().skip(1).for_each(|ack| ack.1 = 400);
        assert_eq!(timed_round(config.clone(), false, &acks[..9]), None, "the eight samples of the round");
        assert_eq!(timed_round(config, false, &acks[..10]), Some(ExitReason::Delay), "and the ninth");
    }

    /// Whether `ns3` leaves with a round of ten acknowledgements of this RTT (ms) on a path with a smallest RTT of
    /// `base`.
    fn ns3_leaves(base: u64, sample: u64) -> bool {
        let config = Config { variant: Some(Variant::Ns3), train: Some(false), ..Config::default() };
        let mut scheme = Hystart::new(config, context(Increase::Bytes));
        let window = Window { cwnd: Bytes::new(20_000), ssthresh: Bytes::MAX };
        let smoothed = |ms: u64| {
            let mut rtt = RttEstimator::new(Duration::from_millis(100));
            rtt.update(Timestamp::ZERO, Duration::from_millis(ms), Duration::ZERO);
            rtt
        };
        let ack = acked(Timestamp::ZERO, 1000);
        scheme.on_ack(&ack, window, true, &smoothed(base));
        (0..10).any(|_| matches!(scheme.on_ack(&ack, window, true, &smoothed(sample)), Step::Exit(_)))
    }

    #[test]
    fn ns3_bounds_the_growth_by_4_ms_and_by_a_second() {
        // 2 ms: 2 + 4. 40 ms: 40 + 40. 2 s: 2 + 1.
        assert!(!ns3_leaves(2, 6) && ns3_leaves(2, 7));
        assert!(!ns3_leaves(40, 80) && ns3_leaves(40, 81));
        assert!(!ns3_leaves(2000, 3000) && ns3_leaves(2000, 3001));
    }

    #[test]
    fn below_the_low_window_google_leaves_with_the_next_sample() {
        let mut scheme = Hystart::new(Config::default(), context(Increase::Bytes));
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(40), Duration::ZERO);
        let window = Window { cwnd: Bytes::new(12_000), ssthresh: Bytes::MAX };
        let bytes = Bytes::new(1);
        scheme.on_sent(&Sent { now: Timestamp::ZERO, bytes, in_flight: bytes, position: 100, app_limited: false });
        let mut ack = acked(Timestamp::ZERO, 1000);
        ack.rtt = Some(Duration::from_millis(60));
        for _ in 0..8 {
            assert!(matches!(scheme.on_ack(&ack, window, true, &rtt), Step::Continue { .. }), "12 are less than 16");
        }
        let without = acked(Timestamp::ZERO, 1000);
        assert!(matches!(scheme.on_ack(&without, window, true, &rtt), Step::Continue { .. }), "no sample, no question");
        ack.rtt = Some(Duration::from_millis(40));
        assert!(matches!(scheme.on_ack(&ack, window, true, &rtt), Step::Exit(exit) if exit.cwnd == window.cwnd));
    }
}
