//! HyStart++: slow start that turns conservative when the RTT of a round grows, and returns to normal after a false
//! alarm.
//!
//! Reference: RFC 9406, section 4. Slow start runs until the smallest RTT of a round exceeds that of the round before
//! by an eighth, bounded to 4..16 ms. Conservative slow start (CSS) then grows a quarter as fast for five rounds. If
//! the RTT falls below a baseline in that time, slow start resumes; otherwise congestion avoidance begins with ssthresh
//! = cwnd. A loss or a CE mark ends both like plain slow start.
//!
//! Differences from the reference: `css_baseline=entry-threshold` offers the alternative baseline of Firefox's stack.
//! The RFC compares later samples with the RTT that started CSS, which is the smallest of its round so far, and any
//! smaller sample of the same round resumes slow start; the threshold that started CSS is a lower and steadier
//! baseline. The first round lasts until the whole initial window is acknowledged. By the RFC's text, and in Firefox's
//! and Cloudflare's stacks, it ends with the first acknowledgement, so that CSS may begin within the initial window
//! where its packets take long: below about 3 Mbit/s, or 6 Mbit/s with 32 segments. The host's rule counts what an
//! acknowledgement adds before the limit L; it may count packets or acknowledgements instead of bytes.
//!
//! Status: experimental; constants and rules compared with the RFC's text, sections 4.2 and 4.3.

use alloc::format;

use super::slow_start::up_to_ssthresh;
use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::variable::Variables;
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "slow start, then five rounds a quarter as fast once the RTT has grown, unless it falls again";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 9406";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "nothing; doubles every RTT; a grown RTT slows growth for five rounds, a shorter one undoes it; \
    congestion avoidance with the window it has";

/// Below which RTT CSS was a false alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum CssBaseline {
    /// The smallest RTT of the round in which CSS began, at that time (RFC 9406, section 4.2).
    #[default]
    CurrentRound,
    /// The threshold for that RTT: `lastRoundMinRTT + RttThresh` (Firefox's option).
    EntryThreshold,
}

/// Parameters of HyStart++, named as in RFC 9406, section 4.3.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// Smallest growth of the RTT that counts, at most `max_rtt_thresh`. RFC 9406: 4 ms.
    pub min_rtt_thresh: Duration,
    /// Growth of the RTT that always counts, up to 100 s. RFC 9406: 16 ms.
    pub max_rtt_thresh: Duration,
    /// Part of the last round's RTT by which it has to grow, as a divisor, 1 to 1000. RFC 9406: 8.
    pub min_rtt_divisor: u32,
    /// RTT samples that a round needs before it is judged, 1 to 1000. RFC 9406: 8.
    pub n_rtt_sample: u32,
    /// How many times slower CSS grows than slow start, 2 to 1000. RFC 9406: 4, and at least 2 (section 4.3).
    pub css_growth_divisor: u32,
    /// Rounds of CSS until congestion avoidance, including the round in which CSS begins, 1 to 1000. RFC 9406: 5.
    pub css_rounds: u32,
    /// L: most segments that one acknowledgement may add, 1 to 100000. Default (RFC 9406): 8 on a host that does not
    /// pace, no limit on one that does.
    pub l: Option<u32>,
    /// Below which RTT CSS was a false alarm. Default: RFC 9406's.
    pub css_baseline: CssBaseline,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            min_rtt_thresh: Duration::from_millis(4),
            max_rtt_thresh: Duration::from_millis(16),
            min_rtt_divisor: 8,
            n_rtt_sample: 8,
            css_growth_divisor: 4,
            css_rounds: 5,
            l: None,
            css_baseline: CssBaseline::CurrentRound,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("max_rtt_thresh", self.max_rtt_thresh, Duration::ZERO..=Duration::from_millis(100_000))?;
        if self.min_rtt_thresh > self.max_rtt_thresh {
            let allowed = format!("up to max_rtt_thresh, {}", self.max_rtt_thresh);
            return Err(ConfigError::new("min_rtt_thresh", self.min_rtt_thresh, allowed));
        }
        ConfigError::unless_in("min_rtt_divisor", self.min_rtt_divisor, 1..=1000)?;
        ConfigError::unless_in("n_rtt_sample", self.n_rtt_sample, 1..=1000)?;
        ConfigError::unless_in("css_growth_divisor", self.css_growth_divisor, 2..=1000)?;
        ConfigError::unless_in("css_rounds", self.css_rounds, 1..=1000)?;
        self.l.map_or(Ok(()), |l| ConfigError::unless_in("l", l, 1..=100_000))
    }
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// cssBaselineMinRtt.
    baseline_min_rtt: Duration,
    /// Rounds that ended since it began.
    rounds: u32,
}

/// State of HyStart++. Names as in RFC 9406, section 4.2; an infinite RTT is [`Duration::MAX`].
#[derive(Clone, Debug)]
pub struct HystartPlusPlus {
    config: Config,
    context: StartupContext,
    highest_sent: Position,
    /// The round ends when this position is acknowledged; `None` before the first acknowledgement.
    window_end: Option<Position>,
    last_round_min_rtt: Duration,
    current_round_min_rtt: Duration,
    rtt_sample_count: u32,
    /// `None`: standard slow start.
    css: Option<Css>,
    /// A transition that was not read yet.
    entered: Option<(&'static str, &'static str)>,
}

impl HystartPlusPlus {
    /// HyStart++ that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self {
            config,
            context,
            highest_sent: 0,
            window_end: None,
            last_round_min_rtt: Duration::MAX,
            current_round_min_rtt: Duration::MAX,
            rtt_sample_count: 0,
            css: None,
            entered: None,
        }
    }

    /// What `ack` adds to the window: min(N, L * SMSS), in CSS divided by `CSS_GROWTH_DIVISOR`.
    fn growth(&self, cwnd: Bytes, ack: &Ack) -> Bytes {
        let n = self.context.slow_start_growth(cwnd, ack).saturating_sub(cwnd);
        let l = self.config.l.or((!self.context.paced).then_some(8));
        let limited = l.map_or(n, |l| n.min(self.context.segment * u64::from(l)));
        match self.css {
            None => limited,
            Some(_) => limited / u64::from(self.config.css_growth_divisor),
        }
    }

    /// The RTT of a round from which on slow start becomes CSS.
    fn threshold(&self) -> Duration {
        // RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH))
        let eighth = self.last_round_min_rtt / u64::from(self.config.min_rtt_divisor);
        let rtt_thresh = eighth.min(self.config.max_rtt_thresh).max(self.config.min_rtt_thresh);
        self.last_round_min_rtt + rtt_thresh
    }

    /// Takes an RTT sample and switches from slow start to CSS or back.
    fn sample(&mut self, curr_rtt: Duration) {
        self.current_round_min_rtt = self.current_round_min_rtt.min(curr_rtt);
        self.rtt_sample_count += 1;
        if self.rtt_sample_count < self.config.n_rtt_sample {
            return;
        }
        match self.css {
            None if self.last_round_min_rtt != Duration::MAX => {
                let threshold = self.threshold();
                if self.current_round_min_rtt >= threshold {
                    let baseline_min_rtt = match self.config.css_baseline {
                        CssBaseline::CurrentRound => self.current_round_min_rtt,
                        CssBaseline::EntryThreshold => threshold,
                    };
                    self.css = Some(Css { baseline_min_rtt, rounds: 0 });
                    self.entered = Some(("css", "rtt_increase"));
                }
            }
            Some(css) if self.current_round_min_rtt < css.baseline_min_rtt => {
                self.css = None;
                self.entered = Some(("slow_start", "rtt_decrease"));
            }
            None | Some(_) => {}
        }
    }

    /// Ends the round when `position` completes it; returns whether CSS is over. The acknowledgement that completes a
    /// round belongs to it.
    fn end_round(&mut self, position: Position) -> bool {
        if self.window_end.is_some_and(|end| position < end) {
            return false;
        }
        self.window_end = Some(self.highest_sent);
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = Duration::MAX;
        self.rtt_sample_count = 0;
        let Some(css) = &mut self.css else {
            return false;
        };
        css.rounds += 1;
        css.rounds >= self.config.css_rounds
    }
}

impl Startup for HystartPlusPlus {
    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: nothing is known.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(self.context.with_initial_window(self.config.iw).initial_window)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.highest_sent = self.highest_sent.max(sent.position);
    }

    // Probing: slow start, then CSS. Validation: the RTT of each round against that of the round before.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        if self.window_end.is_none() {
            self.window_end = Some(self.highest_sent);
        }
        let cwnd = if in_use { window.cwnd + self.growth(window.cwnd, ack) } else { window.cwnd };
        if let Some(sample) = ack.rtt {
            self.sample(sample);
        }
        // Continuation: the window that CSS led to.
        if self.end_round(ack.position) {
            return Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Delay });
        }
        up_to_ssthresh(cwnd, window)
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take()
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        seen.time("lastRoundMinRTT", self.last_round_min_rtt);
        seen.time("currentRoundMinRTT", self.current_round_min_rtt);
        match self.css {
            Some(css) => seen.time("cssBaselineMinRtt", css.baseline_min_rtt),
            None if self.last_round_min_rtt != Duration::MAX => {
                seen.time("lastRoundMinRTT + RttThresh", self.threshold());
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::{AvoidanceConfig, reno};
    use crate::controller::{Controller, ControllerConfig};
    use crate::event::{Decision, Loss};
    use crate::startup::slow_start::tests::context;
    use crate::startup::{Increase, StartupConfig};
    use crate::test_support::acked;

    const CSS: Option<(&str, &str)> = Some(("css", "rtt_increase"));
    const RESUMED: Option<(&str, &str)> = Some(("slow_start", "rtt_decrease"));

    /// A flow of segments of 1000 bytes with a window of 20,000 bytes at the beginning.
    struct Flow {
        scheme: HystartPlusPlus,
        cwnd: Bytes,
        sent: Position,
        exit: Option<Continuation>,
    }

    impl Flow {
        fn new(config: Config, paced: bool) -> Self {
            let scheme = HystartPlusPlus::new(config, StartupContext { paced, ..context(Increase::Bytes) });
            Self { scheme, cwnd: Bytes::new(20_000), sent: 0, exit: None }
        }

        /// Begins a round that lasts until the current packet is acknowledged.
        fn begin_round(&mut self) {
            self.sent += 100;
            let bytes = Bytes::new(1000);
            self.scheme.on_sent(&Sent {
                now: Timestamp::ZERO,
                bytes,
                in_flight: bytes,
                position: self.sent,
                app_limited: false,
            });
            self.scheme.window_end = Some(self.sent);
        }

        /// An acknowledgement of `bytes` at `position` with an RTT in tenths of a millisecond.
        fn acknowledge(&mut self, bytes: u64, position: Position, tenths: u64) {
            let mut ack = acked(Timestamp::ZERO, bytes);
            ack.position = position;
            ack.rtt = Some(Duration::from_micros(tenths * 100));
            let window = Window { cwnd: self.cwnd, ssthresh: Bytes::MAX };
            let rtt = RttEstimator::new(Duration::from_millis(100));
            match self.scheme.on_ack(&ack, window, true, &rtt) {
                Step::Continue { cwnd } => self.cwnd = cwnd,
                Step::Exit(exit) => self.exit = Some(exit),
            }
        }

        /// `count` acknowledgements of a segment with the same RTT (ms) that do not end the round.
        fn samples(&mut self, count: u32, rtt: u64) {
            (0..count).for_each(|_| self.acknowledge(1000, self.sent - 1, rtt * 10));
        }

        /// A whole round of nine samples (ms), the last of which ends it.
        fn round(&mut self, rtt: u64) {
            self.begin_round();
            self.samples(8, rtt);
            self.acknowledge(1000, self.sent, rtt * 10);
        }

        /// A flow that enters CSS by 90 ms after a round of 80 ms, in the middle of the second round.
        fn in_css(config: Config) -> Self {
            let mut flow = Self::new(config, false);
            flow.round(80);
            flow.begin_round();
            flow.samples(8, 90);
            assert_eq!(flow.scheme.take_phase(), CSS);
            flow
        }
    }

    /// Whether a round of `current` after one of `last`, in ms, begins CSS.
    fn begins_css(last: u64, current: u64) -> bool {
        let mut flow = Flow::new(Config::default(), false);
        flow.round(last);
        flow.round(current);
        flow.scheme.css.is_some()
    }

    #[test]
    fn css_begins_when_the_rtt_grew_by_an_eighth_within_bounds() {
        // 80 / 8 = 10: 90 ms. 16 / 8 = 2, at least 4: 20 ms. 400 / 8 = 50, at most 16: 416 ms.
        for (last, first) in [(80, 90), (16, 20), (400, 416)] {
            assert!(begins_css(last, first), "{first} ms after {last} ms");
            assert!(!begins_css(last, first - 1), "{} ms after {last} ms", first - 1);
        }
    }

    #[test]
    fn css_needs_eight_samples_and_a_round_before() {
        let mut flow = Flow::new(Config::default(), false);
        flow.round(80);
        flow.begin_round();
        flow.samples(7, 200);
        assert_eq!(flow.scheme.take_phase(), None);
        flow.samples(1, 200);
        assert_eq!(flow.scheme.take_phase(), CSS);
        let mut first = Flow::new(Config::default(), false);
        first.round(200);
        assert_eq!(first.scheme.take_phase(), None);
    }

    #[test]
    fn css_grows_a_quarter_as_fast() {
        let mut flow = Flow::in_css(Config::default());
        // 20 + 9 segments in the first round + 8 in the second, the eighth of which began CSS.
        assert_eq!(flow.cwnd, Bytes::new(37_000));
        flow.samples(4, 95);
        // 4 * 1000 / 4
        assert_eq!(flow.cwnd, Bytes::new(38_000));
    }

    #[test]
    fn the_fifth_round_ends_css_and_the_one_it_began_in_counts() {
        let mut flow = Flow::in_css(Config::default());
        flow.acknowledge(1000, flow.sent, 900);
        for _ in 0..3 {
            flow.round(95);
            assert_eq!(flow.exit, None);
        }
        flow.round(95);
        // 37,000 + 250 + 4 * 9 * 250 = 46,250.
        let cwnd = Bytes::new(46_250);
        assert_eq!(flow.exit, Some(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Delay }));
    }

    #[test]
    fn a_round_lasts_until_what_was_sent_when_it_began_is_acknowledged() {
        let mut flow = Flow::new(Config::default(), false);
        let sent = |position| {
            let bytes = Bytes::new(1000);
            Sent { now: Timestamp::ZERO, bytes, in_flight: bytes, position, app_limited: false }
        };
        flow.scheme.on_sent(&sent(10));
        flow.acknowledge(1000, 1, 1000);
        assert_eq!(flow.scheme.window_end, Some(10));
        flow.scheme.on_sent(&sent(20));
        flow.acknowledge(1000, 9, 1000);
        assert_eq!(flow.scheme.window_end, Some(10));
        flow.acknowledge(1000, 10, 900);
        assert_eq!(flow.scheme.window_end, Some(20));
        assert_eq!(flow.scheme.last_round_min_rtt, Duration::from_millis(90), "the last sample belongs to the round");
    }

    #[test]
    fn an_rtt_below_the_baseline_resumes_slow_start() {
        let mut flow = Flow::in_css(Config::default());
        flow.acknowledge(1000, flow.sent, 900);
        flow.begin_round();
        flow.samples(7, 89);
        assert_eq!(flow.scheme.take_phase(), None, "seven samples are too few");
        flow.samples(1, 89);
        assert_eq!(flow.scheme.take_phase(), RESUMED);
        let before = flow.cwnd;
        flow.samples(1, 89);
        assert_eq!(flow.cwnd, before + Bytes::new(1000), "at full speed again");
    }

    #[test]
    fn the_baseline_decides_whether_a_smaller_sample_of_the_same_round_resumes() {
        // CSS began with 95 ms, which had to reach 80 + 10 = 90 ms. A sample of 92 ms is below the one, above the
        // other.
        let phase = |css_baseline, tenths| {
            let mut flow = Flow::new(Config { css_baseline, ..Config::default() }, false);
            flow.round(80);
            flow.begin_round();
            flow.samples(8, 95);
            assert_eq!(flow.scheme.take_phase(), CSS);
            flow.acknowledge(1000, flow.sent - 1, tenths);
            flow.scheme.take_phase()
        };
        assert_eq!(phase(CssBaseline::CurrentRound, 920), RESUMED);
        assert_eq!(phase(CssBaseline::EntryThreshold, 920), None);
        assert_eq!(phase(CssBaseline::EntryThreshold, 900), None);
        assert_eq!(phase(CssBaseline::EntryThreshold, 899), RESUMED);
    }

    #[test]
    fn an_acknowledgement_adds_at_most_eight_segments_without_pacing() {
        let grown = |config, paced| {
            let mut flow = Flow::new(config, paced);
            flow.begin_round();
            flow.acknowledge(20_000, 1, 1000);
            flow.cwnd
        };
        assert_eq!(grown(Config::default(), false), Bytes::new(28_000));
        assert_eq!(grown(Config::default(), true), Bytes::new(40_000));
        assert_eq!(grown(Config { l: Some(2), ..Config::default() }, true), Bytes::new(22_000));
        // In CSS: 8000 / 4.
        let mut flow = Flow::in_css(Config::default());
        flow.acknowledge(20_000, flow.sent - 1, 900);
        assert_eq!(flow.cwnd, Bytes::new(39_000));
    }

    #[test]
    fn the_controller_shows_the_transition() {
        let startup = StartupConfig::HystartPlusPlus(Config::default());
        let mut controller =
            Controller::new(ControllerConfig::new(startup, AvoidanceConfig::Reno(reno::Config::default()))).unwrap();
        let rtt = RttEstimator::new(Duration::from_millis(80));
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        for position in 1..=20 {
            let (now, bytes) = (Timestamp::ZERO, Bytes::new(1200));
            controller.on_sent(&Sent { now, bytes, in_flight: bytes, position, app_limited: false });
            let mut ack = acked(now, 1200);
            ack.position = if position < 10 { 0 } else { 1 };
            ack.rtt = Some(Duration::from_millis(if position <= 10 { 80 } else { 90 }));
            controller.on_ack(&ack, &rtt);
        }
        let entered = Decision::PhaseEntered { phase: "css", trigger: "rtt_increase" };
        assert!(core::iter::from_fn(|| controller.take_decision()).any(|(_, decision)| decision == entered));
    }

    #[test]
    fn loss_in_css_ends_startup_as_in_slow_start() {
        let mut flow = Flow::in_css(Config::default());
        let in_flight = Bytes::new(37_000);
        let loss =
            Loss { now: Timestamp::ZERO, bytes: Bytes::new(1000), position: 1, in_flight_before: in_flight, in_flight };
        let reduced = Bytes::new(25_900);
        let window = Window { cwnd: flow.cwnd, ssthresh: Bytes::MAX };
        let expected = Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss };
        assert_eq!(flow.scheme.on_congestion(&loss, window, reduced), Step::Exit(expected));
    }

    #[test]
    fn absurd_parameters_are_refused() {
        let refused = |config: Config| config.validate().map_err(|error| error.field);
        // Section 4.3: CSS_GROWTH_DIVISOR must be at least 2; with 1, CSS would be slow start for five rounds.
        let divisor = |css_growth_divisor| refused(Config { css_growth_divisor, ..Config::default() });
        assert_eq!((divisor(0), divisor(1)), (Err("css_growth_divisor"), Err("css_growth_divisor")));
        assert_eq!(divisor(2), Ok(()));
        assert_eq!(refused(Config { l: Some(0), ..Config::default() }), Err("l"));
        let crossed = Config { min_rtt_thresh: Duration::from_millis(17), ..Config::default() };
        assert_eq!(refused(crossed), Err("min_rtt_thresh"));
    }
}
