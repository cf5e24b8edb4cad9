//! SEARCH: slow start that ends when what is delivered stops growing with what is sent.
//!
//! Reference: Cronin, Ataei Kachooei, Chung, Li, Peters, Claypool, "Improving QUIC Slow Start Performance with SEARCH",
//! Algorithm 1 (`seed`), and draft-chung-ccwg-search-09 as its implementations describe it (`draft`). Bins count what
//! is delivered in 0.35 initial RTTs each. What was delivered in a window of ten bins is compared with twice what was
//! delivered an RTT earlier, or, in `draft`, with what was sent an RTT earlier; when a share of THRESH is missing, the
//! path is full. `seed` then takes what was delivered in the last two initial RTTs off the window, `draft` drains the
//! queue down to what an initial RTT delivers; loss before that ends startup as in plain slow start.
//!
//! Differences from the reference: Algorithm 1 can be read in several ways, and the readings differ in what they
//! detect. The defaults of `seed` are those under which an ideal path without a limit never looks full.
//!
//! | Question | Option | To the letter | Default | Why |
//! |---|---|---|---|---|
//! | How many bins has a sum? | `sum` | `W+1` | `W` | `WINDOW_SIZE` is W bins |
//! | Does the bin that just began count? | `count_current` | `true` | `false` | empty: 10 filled bins would meet 11 |
//! | What is an RTT in bins? | `look_back` | unsaid | `round` | 2.86 are nearer to 3; 2 see growth before it is over |
//! | Which RTT? | `look_back_rtt` | `current` | `current` | line 17 has RTT where others have `Initial_RTT` |
//! | What of the oldest bin of the last look-back? | `wrap` | `literal` | `extend` | the newest has its place |
//! | What of bins without an acknowledgement? | `skipped_bins` | `none` | `fill` | bins are time, they must not lag |
//!
//! In both variants there is no decision while the look-back is less than one bin, the reduced window is not smaller
//! than the initial window, and draining never raises the window. The initial RTT is the first sample after the launch.
//! The draft interpolates towards the newer bin, which Firefox's stack calls an erratum and which leaves an unlimited
//! path; `interpolate-older` is the default.
//!
//! What was read: the draft's first text in full (June 2024, SEARCH 3.0), and version -09 only as Firefox's stack (neqo)
//! and the authors' code 4.0 have it (github.com/maryam-ataei/TCP_SS_SEARCH_ALG, 1165a885 for Linux, 12e48363 for
//! FreeBSD). The first text answers some of the questions above as the defaults do: sums have W bins, all of which have
//! ended, skipped bins are filled, and there is no decision when the look-back is longer than the extra bins. It
//! interpolates towards the older bin, as `seed` does with `look_back=interpolate-older`. The implementations of -09
//! agree on 3.5 RTTs, 10 bins, and interpolation towards the older bin, and differ in the rest:
//!
//! | | Firefox | authors, FreeBSD | authors, Linux |
//! |---|---|---|---|
//! | THRESH | 0.26 | 0.26 | 0.35 |
//! | extra bins | 15 | 40 | 40 |
//! | begins anew after bins without an acknowledgement | more than W | more than 4 | never |
//! | when the path is full | leaves | drains | drains |
//!
//! Here is what both have in common; how each counts and leaves is in `seed.rs` and `draft.rs`.
//!
//! Status: experimental.

use serde::{Deserialize, Serialize};

use super::slow_start::up_to_ssthresh;
use super::{Continuation, Launch, Startup, StartupContext, Step, validate_initial_window};
use crate::avoidance::Window;
use crate::event::{Ack, DecisionLog, ExitReason, Sent};
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

mod draft;
mod seed;
#[cfg(test)]
mod tests;

/// One line for listings.
pub const SUMMARY: &str = "slow start that ends when deliveries of a window no longer double within an RTT";
/// The document that defines it.
pub const REFERENCE: &str =
    "Cronin et al., Improving QUIC Slow Start Performance with SEARCH, Algorithm 1; draft-chung-ccwg-search-09";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "nothing; doubles every RTT; until deliveries fall behind what was sent an RTT earlier; congestion \
    avoidance below the overshoot";

/// Which generation of the algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Algorithm 1: delivered bytes of each bin, THRESH 0.35, `exit=reduce`, `look_back=round`.
    #[default]
    Seed,
    /// draft-chung-ccwg-search-09: totals of sent and acknowledged bytes, THRESH 0.26, `exit=drain`,
    /// `look_back=interpolate-older`.
    Draft,
}

/// What happens to the window when the path is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It loses what was delivered in the last two initial RTTs (Algorithm 1, lines 25 to 27).
    Reduce,
    /// It follows the bytes in flight down to what was delivered in the last initial RTT, a segment for every three
    /// that are acknowledged (draft; the authors' Linux code, 4.0).
    Drain,
    /// Nothing (Firefox; the authors' QUIC code).
    ExitOnly,
}

/// How many bins a sum has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sum {
    /// W, a window.
    #[default]
    W,
    /// From curr - W to curr (Algorithm 1, lines 20 and 21).
    #[serde(rename = "W+1")]
    WPlusOne,
}

/// What an RTT is in bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LookBack {
    /// Whole bins, the rest is ignored.
    RoundDown,
    /// The nearest whole number of bins.
    Round,
    /// Between the window that is too new and the next older one.
    InterpolateOlder,
    /// Between the window that is too new and the next newer one (the draft's text).
    InterpolateNewer,
}

/// Which RTT the look-back spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LookBackRtt {
    /// The latest sample, which grows with the queue.
    #[default]
    Current,
    /// The one that gave the bins their length.
    Initial,
}

/// What happens when the look-back needs a bin that W + `EXTRA_BINS` places cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wrap {
    /// There are more places.
    #[default]
    Extend,
    /// The bin that took its place is read instead (Algorithm 1).
    Literal,
    /// There is no decision.
    Refuse,
}

/// What happens when an acknowledgement comes after more than one bin has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkippedBins {
    /// One bin ends with each acknowledgement (Algorithm 1).
    None,
    /// All of them end, and those between were empty (the authors' Linux code, 4.0).
    #[default]
    Fill,
    /// As `fill`; after more than W bins SEARCH begins anew with the next RTT sample (Firefox).
    Reset,
}

/// Parameters of SEARCH. Names as in Algorithm 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// Which generation of the algorithm. Default: Algorithm 1.
    pub variant: Variant,
    /// `WINDOW_SIZE` in initial RTTs, 2 to 20. Algorithm 1 and draft: 3.5.
    pub window_factor: f64,
    /// W: bins in a window, 2 to 1000. Algorithm 1 and draft: 10.
    pub w: u32,
    /// `EXTRA_BINS`: most bins that the look-back may span, 1 to 1000. Algorithm 1 and Firefox: 15; others in the table
    /// of this module.
    pub extra_bins: u32,
    /// THRESH: missing share of the deliveries that means that the path is full, 0.01 to 1. Default: 0.35 for `seed`,
    /// 0.26 for `draft`.
    pub thresh: Option<f64>,
    /// What happens to the window when the path is full. Default: `reduce` for `seed`, `drain` for `draft`.
    pub exit: Option<Exit>,
    /// How many bins a sum has; `draft` has W. Default W.
    pub sum: Sum,
    /// Whether the bin that just began, still empty, counts as one of them; not in `draft`. Default: no.
    pub count_current: bool,
    /// What an RTT is in bins. Default: `round` for `seed`, `interpolate-older` for `draft`.
    pub look_back: Option<LookBack>,
    /// Which RTT the look-back spans. Algorithm 1 and draft: the current one.
    pub look_back_rtt: LookBackRtt,
    /// What happens when the oldest bin of the look-back was overwritten; `draft` always extends. Default: `extend`.
    pub wrap: Wrap,
    /// What happens when more than one bin has ended. Default: `fill`.
    pub skipped_bins: SkippedBins,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            variant: Variant::Seed,
            window_factor: 3.5,
            w: 10,
            extra_bins: 15,
            thresh: None,
            exit: None,
            sum: Sum::W,
            count_current: false,
            look_back: None,
            look_back_rtt: LookBackRtt::Current,
            wrap: Wrap::Extend,
            skipped_bins: SkippedBins::Fill,
        }
    }
}

impl Config {
    /// Refuses parameters out of range, and readings of Algorithm 1 that `draft` does not have.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("window_factor", self.window_factor, 2.0..=20.0)?;
        ConfigError::unless_in("w", self.w, 2..=1000)?;
        ConfigError::unless_in("extra_bins", self.extra_bins, 1..=1000)?;
        self.thresh.map_or(Ok(()), |thresh| ConfigError::unless_in("thresh", thresh, 0.01..=1.0))?;
        if self.variant == Variant::Draft {
            draft::validate(self)?;
        }
        Ok(())
    }

    fn thresh(&self) -> f64 {
        self.thresh.unwrap_or(match self.variant {
            Variant::Seed => seed::THRESH,
            Variant::Draft => draft::THRESH,
        })
    }

    fn exit(&self) -> Exit {
        self.exit.unwrap_or(match self.variant {
            Variant::Seed => seed::EXIT,
            Variant::Draft => draft::EXIT,
        })
    }

    fn look_back(&self) -> LookBack {
        self.look_back.unwrap_or(match self.variant {
            Variant::Seed => seed::LOOK_BACK,
            Variant::Draft => draft::LOOK_BACK,
        })
    }

    /// Places for bins.
    fn num_bins(&self) -> usize {
        let literal = self.w as usize + self.extra_bins as usize;
        // One for W + 1 bins, one for the bin that just began and does not count, one for the interpolation.
        if self.wrap == Wrap::Extend { literal + 3 } else { literal }
    }
}

/// What bins count.
#[derive(Clone, Debug)]
enum Bins {
    Seed(seed::Bins),
    Draft(draft::Bins),
}

/// Which bytes are asked for.
#[derive(Clone, Copy, Debug)]
enum Count {
    Delivered,
    Sent,
}

/// State of SEARCH. Names as in Algorithm 1.
#[derive(Clone, Debug)]
pub struct Search {
    config: Config,
    context: StartupContext,
    initial_rtt: Duration,
    bin_duration: Duration,
    bins: Bins,
    /// Number of the bin that lasts; `None` before the first RTT sample.
    curr: Option<u64>,
    bin_end: Timestamp,
    drain: Option<draft::Drain>,
    /// A transition that nobody has asked for yet.
    entered: Option<(&'static str, &'static str)>,
}

impl Search {
    /// SEARCH that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let bins = match config.variant {
            Variant::Seed => Bins::Seed(seed::Bins::new(config.num_bins())),
            Variant::Draft => Bins::Draft(draft::Bins::new(config.num_bins())),
        };
        Self {
            config,
            context,
            initial_rtt: Duration::ZERO,
            bin_duration: Duration::ZERO,
            bins,
            curr: None,
            bin_end: Timestamp::ZERO,
            drain: None,
            entered: None,
        }
    }

    /// Lines 7 to 11, with the first RTT sample.
    fn initialize(&mut self, now: Timestamp, initial_rtt: Duration) {
        self.initial_rtt = initial_rtt;
        // BIN_DURATION = WINDOW_SIZE / W, WINDOW_SIZE = Initial_RTT * 3.5
        let bin_duration = initial_rtt.scale(self.config.window_factor / f64::from(self.config.w));
        self.bin_duration = bin_duration.max(Duration::from_nanos(1));
        self.bin_end = now + self.bin_duration;
        self.curr = Some(0);
        match &mut self.bins {
            Bins::Seed(bins) => bins.begin(),
            Bins::Draft(bins) => bins.begin(),
        }
    }

    /// Lines 13 to 16: ends the bins whose time is over. Returns the bin that begins, `None` when none does or SEARCH
    /// has to begin anew.
    fn advance(&mut self, now: Timestamp, curr: u64) -> Option<u64> {
        if now <= self.bin_end {
            return None;
        }
        let passed = match self.config.skipped_bins {
            SkippedBins::None => 1,
            SkippedBins::Fill | SkippedBins::Reset => {
                now.since(self.bin_end).as_nanos() / self.bin_duration.as_nanos() + 1
            }
        };
        if self.config.skipped_bins == SkippedBins::Reset && passed > u64::from(self.config.w) {
            self.curr = None;
            return None;
        }
        self.bin_end += self.bin_duration * passed;
        let next = curr + passed;
        self.curr = Some(next);
        match &mut self.bins {
            Bins::Seed(bins) => bins.advance(curr, next),
            Bins::Draft(bins) => bins.advance(curr, next),
        }
        Some(next)
    }

    /// Bytes of the `number` bins before bin `end`, seen in bin `curr`; `None` when some of them were never there or
    /// are not kept.
    fn bytes_before(&self, count: Count, curr: u64, end: u64, number: u64) -> Option<u64> {
        let first = end.checked_sub(number)?;
        match &self.bins {
            Bins::Seed(bins) => bins.bytes(curr, first..end, self.config.wrap),
            Bins::Draft(bins) => bins.bytes(count, curr, first..end),
        }
    }

    /// `curr_delv` and `prev_delv` of lines 20 and 21, and what the draft has in their place: the bytes of the window
    /// that ends with bin `last`.
    fn window(&self, count: Count, curr: u64, last: u64) -> Option<u64> {
        let number = match self.config.sum {
            Sum::W => self.config.w,
            Sum::WPlusOne => self.config.w + 1,
        };
        let end = if self.config.count_current { last + 1 } else { last };
        self.bytes_before(count, curr, end, u64::from(number))
    }

    /// `span` in bins: whole ones and the share of another.
    fn in_bins(&self, span: Duration) -> (u64, f64) {
        let (span, bin) = (span.as_nanos(), self.bin_duration.as_nanos());
        let (whole, rest) = (span / bin, span % bin);
        match self.config.look_back() {
            LookBack::RoundDown => (whole, 0.0),
            LookBack::Round => (whole + u64::from(rest >= bin - rest), 0.0),
            LookBack::InterpolateOlder | LookBack::InterpolateNewer => (whole, rest as f64 / bin as f64),
        }
    }

    /// Lines 17 to 22: the share of the expected deliveries that is missing; `None` when it cannot be known.
    fn norm_diff(&self, curr: u64, rtt: Duration) -> Option<f64> {
        let rtt = match self.config.look_back_rtt {
            LookBackRtt::Current => rtt,
            LookBackRtt::Initial => self.initial_rtt,
        };
        let (bins, fraction) = self.in_bins(rtt);
        let limit = u64::from(self.config.extra_bins);
        // Whether the look-back is short enough, and what is expected: bytes that were delivered or sent, and how often.
        let (in_reach, count, factor) = match self.config.variant {
            Variant::Seed => (bins <= limit, Count::Delivered, seed::GROWTH),
            Variant::Draft => (bins < limit, Count::Sent, 1.0),
        };
        let prev = curr.checked_sub(bins)?;
        if bins == 0 || !in_reach || prev < u64::from(self.config.w) {
            return None;
        }
        let curr_delv = self.window(Count::Delivered, curr, curr)? as f64;
        let mut earlier = self.window(count, curr, prev)? as f64;
        if fraction > 0.0 {
            let newer = self.config.look_back() == LookBack::InterpolateNewer;
            let other = self.window(count, curr, if newer { prev + 1 } else { prev - 1 })? as f64;
            earlier = earlier * (1.0 - fraction) + other * fraction;
        }
        // seed: norm_diff = (2 * prev_delv - curr_delv) / (2 * prev_delv); draft: (prev_sent - curr_delv) / prev_sent
        let expected = factor * earlier;
        (expected > 0.0).then(|| (expected - curr_delv) / expected)
    }

    /// What was delivered in the last `span`; what is not known counts as nothing.
    fn delivered_in(&self, curr: u64, span: Duration) -> Bytes {
        let (back, fraction) = self.in_bins(span);
        let bytes = |end, number| self.bytes_before(Count::Delivered, curr, end, number).unwrap_or(0);
        let oldest = curr.checked_sub(back).map_or(0, |end| bytes(end, 1));
        Bytes::new(bytes(curr, back)) + Bytes::new(oldest).scale(fraction)
    }

    // Continuation.
    fn leave(&mut self, curr: u64, cwnd: Bytes) -> Step {
        let chokepoint = |cwnd| Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Chokepoint });
        let least = self.context.with_initial_window(self.config.iw).initial_window.min(cwnd);
        match self.config.exit() {
            Exit::ExitOnly => chokepoint(cwnd),
            Exit::Reduce => {
                // Lines 25 to 27: over is the sum of the bins of the last two initial RTTs.
                let over = self.delivered_in(curr, self.initial_rtt * 2);
                chokepoint(cwnd.saturating_sub(over).max(least))
            }
            Exit::Drain => {
                let back = self.initial_rtt.as_nanos().div_ceil(self.bin_duration.as_nanos());
                let delivered = self.bytes_before(Count::Delivered, curr, curr, back).unwrap_or(0);
                self.drain = Some(draft::Drain::to(Bytes::new(delivered).max(least).min(cwnd)));
                self.entered = Some(("drain", "chokepoint"));
                Step::Continue { cwnd }
            }
        }
    }
}

impl Startup for Search {
    // Sensing: nothing is known.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(self.context.with_initial_window(self.config.iw).initial_window)
    }

    fn on_sent(&mut self, sent: &Sent) {
        if let Bins::Draft(bins) = &mut self.bins {
            bins.sent_bytes += sent.bytes.get();
        }
    }

    // Probing as slow start. Validation: what is delivered against what was delivered or sent an RTT ago.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        if let Some(drain) = &mut self.drain {
            return drain.on_ack(ack, window.cwnd, self.context.segment);
        }
        if let Bins::Draft(bins) = &mut self.bins {
            bins.acked_bytes += ack.bytes.get();
        }
        match (self.curr, ack.rtt) {
            (Some(curr), _) => {
                let norm_diff = self.advance(ack.now, curr).and_then(|curr| {
                    let rtt = rtt.latest().unwrap_or(self.initial_rtt);
                    self.norm_diff(curr, rtt).map(|norm_diff| (curr, norm_diff))
                });
                if let Some((curr, _)) = norm_diff.filter(|(_, norm_diff)| *norm_diff >= self.config.thresh()) {
                    return self.leave(curr, window.cwnd);
                }
            }
            (None, Some(initial_rtt)) => self.initialize(ack.now, initial_rtt),
            (None, None) => {}
        }
        // Line 31.
        if let (Bins::Seed(bins), Some(curr)) = (&mut self.bins, self.curr) {
            bins.count(curr, ack.bytes);
        }
        let cwnd = if in_use { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd };
        up_to_ssthresh(cwnd, window)
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take()
    }
}
