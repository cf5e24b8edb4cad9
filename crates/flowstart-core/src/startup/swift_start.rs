//! Swift Start: a packet pair in the first window estimates the bandwidth, and the next window is a paced fraction of
//! what the path then holds.
//!
//! Reference: Partridge, Rockwell, Allman, Krishnan, Sterbenz, "A Swifter Start for TCP", BBN Technical Report 8339
//! (March 2002), section 3.1. The first window leaves as a burst, and the time between its first two acknowledgements
//! gives the bandwidth `BW`. This bandwidth times the RTT is the capacity. The part 1/gamma of it becomes the window,
//! paced over the RTT. Slow start then continues, still paced, until loss, a mark or ssthresh ends it.
//!
//! Differences from the reference:
//! - The first window is the host's; the report has four segments (`iw=4`).
//! - The report leaves gamma open between 1 and 8 and computes its table 2 with 2 and 8: 2 is the default.
//! - `pair` can count the bytes that the second acknowledgement covers. The report always counts one segment, because
//!   an acknowledgement may have waited for a timer. If a receiver acknowledges every two segments, the estimate is
//!   then half of the bandwidth.
//! - The window never becomes smaller than that of slow start. Acknowledgements that arrive together (compressed to one
//!   instant) count as one. Nothing else is done against compression, which makes the estimate too large.
//! - The report's implementation can pace no more than seven segments in the first RTT; here this limit is left out.
//!
//! Status: agrees with the theory of table 2 within 1 % from 45 Mbit/s on (a test); not validated against the report's
//! measurements, which it calls slightly worse than slow start on a path of low delay.

use super::slow_start::{self, SlowStart};
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, Sent};
use crate::launch::{Launch, UNPACED};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "packet pair on the first window, then a paced fraction of the estimated capacity and slow start from there";
/// The document that defines it.
pub const REFERENCE: &str = "Partridge et al., A Swifter Start for TCP, BBN TR 8339 (2002), section 3.1";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str =
    "packet pair on the first window; a fraction of the estimate over an RTT; as slow start; slow start";

/// The bytes that count for the second acknowledgement of the pair (`SegSize`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Pair {
    /// Always one segment (the report's footnote 4).
    #[default]
    Segment,
    /// The bytes it covers.
    Acknowledged,
}

/// Parameters of Swift Start.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's; the report: 4.
    pub iw: Option<u32>,
    /// `gamma`: estimated capacity over the window, 0.01 to 1000. Report, section 3.1: 1 to 8; default 2.
    pub gamma: f64,
    /// The bytes that count for the second acknowledgement of the pair. Default: a segment, as in the report.
    pub pair: Pair,
    /// Whether the window is paced over the RTT from the estimate until startup ends; otherwise nothing is. Report:
    /// yes.
    pub pacing: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { iw: None, gamma: 2.0, pair: Pair::Segment, pacing: true }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("gamma", self.gamma, 0.01..=1000.0)
    }
}

/// How far the packet pair is.
#[derive(Clone, Copy, Debug)]
enum Estimate {
    /// No acknowledgement yet; the first packet left at `t_seg1`.
    Sent { t_seg1: Option<Timestamp> },
    /// The first acknowledgement came at `t_ack1`, `rtt` after the first packet had left.
    First { t_ack1: Timestamp, rtt: Duration, acknowledged: Bytes },
    /// The estimate is made, or the first window did not give one.
    Done,
}

/// State of Swift Start.
#[derive(Clone, Debug)]
pub struct SwiftStart {
    config: Config,
    context: StartupContext,
    slow_start: SlowStart,
    estimate: Estimate,
    /// Bytes of the first window that are not acknowledged yet.
    first_window: Bytes,
    /// The rate from the estimate on.
    rate: Option<Rate>,
    /// A phase that was not read yet, and its trigger.
    entered: Option<(&'static str, &'static str)>,
}

impl SwiftStart {
    /// Swift Start that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let context = context.with_initial_window(config.iw);
        Self {
            config,
            context,
            slow_start: SlowStart::new(slow_start::Config::default(), context),
            estimate: Estimate::Sent { t_seg1: None },
            first_window: Bytes::ZERO,
            rate: None,
            entered: None,
        }
    }

    /// Takes an acknowledgement into the pair. If it completes the pair, returns the window, Capacity / gamma, and the
    /// RTT over which it is paced.
    fn take_pair(&mut self, ack: &Ack) -> Option<(Bytes, Duration)> {
        match self.estimate {
            Estimate::Done => return None,
            Estimate::Sent { t_seg1 } => {
                let rtt = ack.now.since(t_seg1?);
                self.estimate = Estimate::First { t_ack1: ack.now, rtt, acknowledged: Bytes::ZERO };
                self.first_window = self.first_window.saturating_sub(ack.bytes);
            }
            Estimate::First { .. } if ack.bytes > self.first_window => {
                // This acknowledges packets that the first acknowledgement released, so its distance is not that of a
                // pair.
                self.estimate = Estimate::Done;
            }
            Estimate::First { t_ack1, rtt, acknowledged } => {
                self.first_window -= ack.bytes;
                let acknowledged = acknowledged + ack.bytes;
                let spacing = ack.now.since(t_ack1);
                if spacing == Duration::ZERO {
                    self.estimate = Estimate::First { t_ack1, rtt, acknowledged };
                    return None;
                }
                self.estimate = Estimate::Done;
                let size = match self.config.pair {
                    Pair::Segment => self.context.segment,
                    Pair::Acknowledged => acknowledged,
                };
                // BW = SegSize / (t_ack2 - t_ack1); Capacity = BW * (t_ack1 - t_seg1)
                let capacity = Rate::from_transfer(size, spacing)?.amount_in(rtt);
                return Some((capacity.scale(1.0 / self.config.gamma), rtt));
            }
        }
        None
    }

    fn rate_for(&self, cwnd: Bytes, rtt: Duration) -> Option<Rate> {
        let paced = if self.config.pacing { Rate::from_transfer(cwnd, rtt) } else { None };
        paced.or(Some(UNPACED))
    }
}

impl Startup for SwiftStart {
    fn needs(&self) -> Needs {
        Needs::OWN_RATE
    }

    // Sensing: nothing is known, and packets must leave back to back to become a pair.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let cwnd = self.context.initial_window;
        Launch { burst: Some(cwnd), ..Launch::window(cwnd) }
    }

    fn on_sent(&mut self, sent: &Sent) {
        if let Estimate::Sent { t_seg1 } = &mut self.estimate {
            t_seg1.get_or_insert(sent.now);
            self.first_window += sent.bytes;
        }
    }

    // Probing: the pair, then slow start from a fraction of its estimate. Validation and Continuation as in slow start.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        let mut step = self.slow_start.on_ack(ack, window, in_use, rtt);
        let pair = self.take_pair(ack);
        if let Step::Continue { cwnd } = &mut step {
            if let (Some((target, over)), true) = (pair, in_use) {
                self.entered = Some(("paced", if target > *cwnd { "packet_pair" } else { "packet_pair_below_cwnd" }));
                *cwnd = target.max(*cwnd);
                self.rate = self.rate_for(*cwnd, over);
            } else if self.rate.is_some() {
                self.rate = self.rate_for(*cwnd, rtt.smoothed());
            }
        }
        step
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
    const RTT: Duration = Duration::from_millis(100);

    /// The window after the first window of ten segments was acknowledged on a path of 100 ms, by acknowledgements of
    /// so many bytes at so many nanoseconds after the first one, and the rate that the scheme asks for.
    fn after(config: Config, acknowledgements: &[(u64, u64)]) -> (Bytes, Option<Rate>) {
        let mut scheme = SwiftStart::new(config, context(Increase::Bytes));
        let launch = scheme.launch(Timestamp::ZERO, &PathKnowledge::default(), &mut DecisionLog::default());
        assert_eq!(launch.burst, Some(launch.cwnd));
        let mut window = Window { cwnd: launch.cwnd, ssthresh: Bytes::MAX };
        for position in 0..launch.cwnd.get() / SEGMENT {
            let bytes = Bytes::new(SEGMENT);
            scheme.on_sent(&Sent { now: Timestamp::ZERO, bytes, in_flight: bytes, position, app_limited: false });
        }
        let mut rtt = RttEstimator::new(RTT);
        for &(nanos, bytes) in acknowledgements {
            let now = Timestamp::ZERO + RTT + Duration::from_nanos(nanos);
            rtt.update(now, RTT, Duration::ZERO);
            let Step::Continue { cwnd } = scheme.on_ack(&acked(now, bytes), window, true, &rtt) else {
                panic!("no reason to leave startup");
            };
            window.cwnd = cwnd;
        }
        (window.cwnd, scheme.pacing_rate())
    }

    #[test]
    fn the_window_is_a_fraction_of_bandwidth_times_rtt_paced_over_the_rtt() {
        // 1000 bytes in 0.1 ms = 80 Mbit/s; times 100 ms = 1,000,000 bytes; half of it over 100 ms is 40 Mbit/s.
        let acknowledgements = [(0, SEGMENT), (100_000, SEGMENT)];
        let expected = (Bytes::new(500_000), Some(Rate::from_mbit(40)));
        assert_eq!(after(Config::default(), &acknowledgements), expected);
        let (cwnd, _) = after(Config { gamma: 8.0, ..Config::default() }, &acknowledgements);
        assert_eq!(cwnd, Bytes::new(125_000));
        let (_, rate) = after(Config { pacing: false, ..Config::default() }, &acknowledgements);
        assert_eq!(rate, Some(UNPACED));
    }

    #[test]
    fn growth_from_there_is_that_of_slow_start_and_stays_paced() {
        let (cwnd, rate) = after(Config::default(), &[(0, SEGMENT), (100_000, SEGMENT), (200_000, SEGMENT)]);
        // 501,000 bytes over 100 ms.
        assert_eq!((cwnd, rate), (Bytes::new(501_000), Some(Rate::from_bits_per_sec(40_080_000))));
    }

    #[test]
    fn an_acknowledgement_of_two_segments_halves_the_estimate_unless_it_is_counted() {
        // 0.1 ms a segment: acknowledgements of two are 0.2 ms apart. One segment in 0.2 ms = 40 Mbit/s = 500,000
        // bytes.
        let acknowledgements = [(0, 2 * SEGMENT), (200_000, 2 * SEGMENT)];
        assert_eq!(after(Config::default(), &acknowledgements).0, Bytes::new(250_000));
        let counted = Config { pair: Pair::Acknowledged, ..Config::default() };
        assert_eq!(after(counted, &acknowledgements).0, Bytes::new(500_000));
    }

    #[test]
    fn an_estimate_below_the_window_changes_only_the_pacing() {
        // 1000 bytes in 10 ms: capacity 10,000 bytes, half of it below the 12 segments of slow start.
        let (cwnd, rate) = after(Config::default(), &[(0, SEGMENT), (10_000_000, SEGMENT)]);
        assert_eq!((cwnd, rate), (Bytes::new(12_000), Some(Rate::from_bits_per_sec(960_000))));
    }

    #[test]
    fn acknowledgements_at_one_instant_are_one_and_other_windows_give_no_pair() {
        // The third acknowledgement is the first at another time: 1000 bytes in 0.1 ms, or 2000 if all are counted.
        let compressed = [(0, SEGMENT), (0, SEGMENT), (100_000, SEGMENT)];
        assert_eq!(after(Config::default(), &compressed).0, Bytes::new(500_000));
        let counted = Config { pair: Pair::Acknowledged, ..Config::default() };
        assert_eq!(after(counted, &compressed).0, Bytes::new(1_000_000));
        // All ten segments in one acknowledgement: the next one comes an RTT later.
        let (cwnd, rate) = after(Config::default(), &[(0, 10 * SEGMENT), (100_000_000, SEGMENT)]);
        assert_eq!((cwnd, rate), (Bytes::new(21_000), None));
    }

    #[test]
    fn the_theory_of_table_2_is_met() {
        // Bytes sent on a path of 100 ms in 4 round trips with gamma = 2, and in 7 with gamma = 8. After the first
        // window, the window is Capacity / gamma and grows by half per RTT, because every second segment is
        // acknowledged.
        let table = [
            (45, 2.0, 3, 1_337_256),
            (155, 2.0, 3, 4_603_152),
            (1000, 2.0, 3, 29_690_232),
            (10_000, 2.0, 3, 296_877_720),
            (45, 8.0, 6, 1_469_112),
            (155, 8.0, 6, 5_040_048),
            (1000, 8.0, 6, 32_467_080),
            (10_000, 8.0, 6, 324_722_952),
        ];
        for (mbit, gamma, rounds, published) in table {
            let spacing = Rate::from_mbit(mbit).time_for(Bytes::new(SEGMENT)).as_nanos();
            let (cwnd, _) = after(Config { gamma, ..Config::default() }, &[(0, SEGMENT), (spacing, SEGMENT)]);
            let (mut sent, mut round) = (0.0, cwnd.get() as f64);
            for _ in 0..rounds {
                sent += round;
                round *= 1.5;
            }
            let error = sent / f64::from(published) - 1.0;
            assert!(error.abs() < 0.01, "{mbit} Mbit/s, gamma {gamma}: {sent} instead of {published}");
        }
    }

    #[test]
    fn a_gamma_of_nothing_is_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        assert_eq!(refused(Config { gamma: 0.0, ..Config::default() }), Err("gamma"));
        assert_eq!(refused(Config { iw: Some(0), ..Config::default() }), Err("iw"));
    }
}
