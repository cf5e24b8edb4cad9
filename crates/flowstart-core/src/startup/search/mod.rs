//! SEARCH: slow start that ends when deliveries stop growing with what is sent.
//!
//! Reference: Cronin, Ataei Kachooei, Chung, Li, Peters, Claypool, "Improving QUIC Slow Start Performance with SEARCH",
//! Algorithm 1, and the code that followed it: Firefox's (neqo 80ca01ee, `cc/search.rs`) and the authors' 4.0
//! (github.com/maryam-ataei/TCP_SS_SEARCH_ALG, 12e48363 for FreeBSD and 087a48d6 for Linux). Bins last 0.35 initial
//! RTTs each. SEARCH compares the deliveries in a window of ten bins with twice the deliveries an RTT earlier
//! (`slides`), or with the bytes sent an RTT earlier (all others). If a share of THRESH is missing, the path is full. A
//! loss before that ends startup as in plain slow start.
//!
//! `variant` is a published revision; the other keys change its answers one by one:
//!
//! | | `slides` | `firefox` | `freebsd` | `linux` |
//! |---|---|---|---|---|
//! | bins count | delivered | sent, acknowledged | sent, acknowledged | sent, acknowledged |
//! | `thresh` | 0.35 | 0.26 | 0.26 | 0.35 |
//! | `extra_bins` | 15 | 15 | 40 | 40 |
//! | the look-back is at most | 15 bins | less than 15 | less than 39 | less than 39 |
//! | first decision with | W bins before the look-back | W + 1 | W | W |
//! | `look_back`: an RTT in bins | unsaid: `round` | `interpolate-older` | `interpolate-older` | `interpolate-older` |
//! | `skipped_bins`: bins without an acknowledgement | `none` | more than W: `reset` | more than 4: `restart` | `fill` |
//! | `app_limited`: the sender had nothing to send | `count` | `wait` | `count` | `restart` |
//! | after a timeout, where the host has the scheme run again | no | anew | anew | anew |
//! | `exit`: when the path is full | `reduce` | `exit-only` | `drain` | `drain` |
//!
//! The default is `firefox`, because users have only this variant: the authors' code is in no release of a kernel.
//! Firefox itself uses it only on request; its default is plain slow start. All three follow
//! draft-chung-ccwg-search-09. The draft's text interpolates towards the newer bin (`interpolate-newer`); Firefox's
//! authors call that a mistake, and with it SEARCH leaves slow start on an unlimited path. The draft's source of June
//! 2024 (SEARCH 3.0) is `slides` with `look_back=interpolate-older`.
//!
//! Differences from the reference: Algorithm 1 can be read in several ways, and the readings differ in what they
//! detect. With the defaults of `slides`, an ideal path without a limit never looks full.
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
//! `slides` decides nothing while the look-back is less than one bin. In all variants the reduced window is not smaller
//! than the initial window, draining never raises the window, and the initial RTT is the first sample after the launch.
//! Fractions are not rounded to percents, and totals not to 16 bits. Linux also begins anew after idle time; here only
//! `skipped_bins` and `app_limited` notice idle time. Firefox takes an acknowledgement for app-limited if all of its
//! packets left after the last packet with which half of the window was in flight. Here only the newest packet counts,
//! and the window is that of the latest acknowledgement. Linux uses its stored rate sample (an app-limited one replaces
//! it unless it is slower). Here the newest acknowledged packet counts, and a sender that flow control stops is
//! app-limited.
//!
//! This file has the common part of the variants; `deltas.rs` and `totals.rs` have their ways of counting.
//!
//! Status: experimental; `slides` is measured by `search-geo`.

use super::slow_start::up_to_ssthresh;
use super::{Startup, StartupContext, Step};
use crate::event::{Ack, DecisionLog, ExitReason, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::path::PathKnowledge;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::variable::Variables;
use crate::window::Window;

mod config;
mod deltas;
#[cfg(test)]
mod tests;
mod totals;

use config::Answers;
pub use config::{AppLimited, Config, Exit, LookBack, LookBackRtt, SkippedBins, Sum, Variant, Wrap};

/// One line for listings.
pub const SUMMARY: &str = "slow start that ends when deliveries of a window no longer double within an RTT";
/// The document that defines it.
pub const REFERENCE: &str =
    "Cronin et al., Improving QUIC Slow Start Performance with SEARCH, Algorithm 1; neqo; the authors' code 4.0";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "nothing; doubles every RTT; until deliveries fall behind what was sent an RTT earlier; congestion \
    avoidance below the overshoot";

/// FreeBSD's `SEARCH_ALPHA`: initial RTTs without an acknowledgement after which SEARCH begins anew.
const RESTART_AFTER: u64 = 2;

/// What bins count.
#[derive(Clone, Debug)]
enum Bins {
    Deltas(deltas::Bins),
    Totals(totals::Bins),
}

/// Which bytes are requested.
#[derive(Clone, Copy, Debug)]
enum Count {
    Delivered,
    Sent,
}

/// The comparison of a bin.
#[derive(Clone, Copy, Debug)]
struct Compared {
    /// Bytes delivered in the latest window.
    curr_delv: f64,
    /// Bytes of the window an RTT earlier: delivered (`prev_delv`) or sent (`prev_sent`).
    earlier: f64,
    /// The bytes that are expected because of them.
    expected: f64,
}

impl Compared {
    /// `norm_diff`: the share of the expected deliveries that is missing.
    fn norm_diff(&self) -> f64 {
        (self.expected - self.curr_delv) / self.expected
    }
}

/// State of SEARCH. Names as in Algorithm 1.
#[derive(Clone, Debug)]
pub struct Search {
    config: Config,
    answers: Answers,
    context: StartupContext,
    initial_rtt: Duration,
    bin_duration: Duration,
    bins: Bins,
    /// Number of the current bin; `None` before the first RTT sample.
    curr: Option<u64>,
    bin_end: Timestamp,
    drain: Option<totals::Drain>,
    /// The window, and the position of the last packet with which half of it was in flight.
    cwnd: Bytes,
    used_until: Position,
    /// A transition that was not read yet.
    entered: Option<(&'static str, &'static str)>,
    /// The latest comparison.
    compared: Option<Compared>,
}

impl Search {
    /// SEARCH that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let bins = match config.variant {
            Variant::Slides => Bins::Deltas(deltas::Bins::new(config.num_bins())),
            Variant::Firefox | Variant::Freebsd | Variant::Linux => Bins::Totals(totals::Bins::new(config.num_bins())),
        };
        Self {
            answers: config.answers(),
            config,
            context,
            initial_rtt: Duration::ZERO,
            bin_duration: Duration::ZERO,
            bins,
            curr: None,
            bin_end: Timestamp::ZERO,
            drain: None,
            cwnd: Bytes::ZERO,
            used_until: 0,
            entered: None,
            compared: None,
        }
    }

    /// Lines 7 to 11, with the first RTT sample.
    fn initialize(&mut self, now: Timestamp, initial_rtt: Duration) {
        self.initial_rtt = initial_rtt;
        // BIN_DURATION = WINDOW_SIZE / W, WINDOW_SIZE = Initial_RTT * 3.5
        let bin_duration = initial_rtt.scale(self.config.window_factor / f64::from(self.config.w));
        self.bin_duration = bin_duration.max(Duration::from_nanos(1));
        self.begin(now);
    }

    /// The first bin begins.
    fn begin(&mut self, now: Timestamp) {
        self.bin_end = now + self.bin_duration;
        self.curr = Some(0);
        match &mut self.bins {
            Bins::Deltas(bins) => bins.begin(),
            Bins::Totals(bins) => bins.begin(),
        }
    }

    /// Forgets everything; the next RTT sample is the initial RTT.
    fn forget(&mut self) {
        self.curr = None;
        self.drain = None;
        // Firefox's totals begin anew; those of the authors' code are the connection's.
        if let (Bins::Totals(bins), Variant::Firefox) = (&mut self.bins, self.config.variant) {
            bins.forget();
        }
    }

    /// Lines 13 to 16: ends the bins whose time is over. Returns the bin that begins; `None` if none does or SEARCH
    /// begins anew. `rtt` is the current RTT.
    fn advance(&mut self, ack: &Ack, curr: u64, rtt: Duration) -> Option<u64> {
        let now = ack.now;
        if now <= self.bin_end {
            return None;
        }
        if ack.app_limited && self.answers.app_limited == AppLimited::Restart {
            self.begin(now);
            return None;
        }
        let passed = now.since(self.bin_end).as_nanos() / self.bin_duration.as_nanos() + 1;
        let w = u64::from(self.config.w);
        let in_initial_rtt = self.initial_rtt.as_nanos() / self.bin_duration.as_nanos();
        let passed = match self.answers.skipped_bins {
            SkippedBins::None => 1,
            SkippedBins::Reset if passed > w => {
                self.forget();
                return None;
            }
            SkippedBins::Restart if passed > RESTART_AFTER * in_initial_rtt => {
                if passed > w {
                    self.initialize(now, rtt);
                } else {
                    self.begin(now);
                }
                return None;
            }
            SkippedBins::Fill | SkippedBins::Reset | SkippedBins::Restart => passed,
        };
        self.bin_end += self.bin_duration * passed;
        let next = curr + passed;
        self.curr = Some(next);
        match &mut self.bins {
            Bins::Deltas(bins) => bins.advance(curr, next),
            Bins::Totals(bins) => bins.advance(curr, next),
        }
        Some(next)
    }

    /// Bytes of the `number` bins before bin `end`, seen in bin `curr`; `None` when some of them were never there or
    /// are not kept.
    fn bytes_before(&self, count: Count, curr: u64, end: u64, number: u64) -> Option<u64> {
        match &self.bins {
            Bins::Deltas(bins) => bins.bytes(curr, end.checked_sub(number)?..end, self.config.wrap),
            Bins::Totals(bins) => bins.bytes(count, curr, end, number),
        }
    }

    /// `curr_delv` and `prev_delv` of lines 20 and 21, and their counterparts in other variants: the bytes of the
    /// window that ends with bin `last`.
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
        match self.answers.look_back {
            LookBack::RoundDown => (whole, 0.0),
            LookBack::Round => (whole + u64::from(rest >= bin - rest), 0.0),
            LookBack::InterpolateOlder | LookBack::InterpolateNewer => (whole, rest as f64 / bin as f64),
        }
    }

    /// Lines 17 to 22: deliveries against the expected ones; `None` when either cannot be known.
    fn compare(&self, curr: u64, rtt: Duration) -> Option<Compared> {
        let rtt = match self.config.look_back_rtt {
            LookBackRtt::Current => rtt,
            LookBackRtt::Initial => self.initial_rtt,
        };
        let (bins, fraction) = self.in_bins(rtt);
        let prev = curr.checked_sub(bins)?;
        if !self.config.in_reach(u64::from(self.answers.extra_bins), bins, prev) {
            return None;
        }
        // The expectation: bytes that were delivered or sent, and how often.
        let (count, factor) = match self.bins {
            Bins::Deltas(_) => (Count::Delivered, deltas::GROWTH),
            Bins::Totals(_) => (Count::Sent, 1.0),
        };
        let curr_delv = self.window(Count::Delivered, curr, curr)? as f64;
        let mut earlier = self.window(count, curr, prev)? as f64;
        if fraction > 0.0 {
            let newer = self.answers.look_back == LookBack::InterpolateNewer;
            let other = if newer { prev.checked_add(1).filter(|bin| *bin <= curr)? } else { prev - 1 };
            let other = self.window(count, curr, other)? as f64;
            earlier = earlier * (1.0 - fraction) + other * fraction;
        }
        // slides: norm_diff = (2 * prev_delv - curr_delv) / (2 * prev_delv); others: (prev_sent - curr_delv) /
        // prev_sent
        let expected = factor * earlier;
        (expected > 0.0).then_some(Compared { curr_delv, earlier, expected })
    }

    /// Bytes delivered in the last `span`; unknown parts count as zero.
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
        match self.answers.exit {
            Exit::ExitOnly => chokepoint(cwnd),
            Exit::Reduce => {
                // Lines 25 to 27: over is the sum of the bins of the last two initial RTTs.
                let over = self.delivered_in(curr, self.initial_rtt * 2);
                chokepoint(cwnd.saturating_sub(over).max(least))
            }
            Exit::Drain => {
                let back = self.initial_rtt.as_nanos().div_ceil(self.bin_duration.as_nanos());
                let delivered = self.bytes_before(Count::Delivered, curr, curr, back).unwrap_or(0);
                self.drain = Some(totals::Drain::to(Bytes::new(delivered).max(least).min(cwnd)));
                self.entered = Some(("drain", "chokepoint"));
                Step::Continue { cwnd }
            }
        }
    }
}

impl Startup for Search {
    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: nothing is known.
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(self.context.with_initial_window(self.config.iw).initial_window)
    }

    // The revisions with code clear their bins when a timeout, or persistent congestion, begins slow start again.
    fn on_restart(&mut self, _now: Timestamp, _highest_sent: Position) -> bool {
        let again = matches!(self.bins, Bins::Totals(_));
        if again {
            self.forget();
            self.entered = None;
        }
        again
    }

    fn goes_on_after_undo(&self) -> bool {
        matches!(self.bins, Bins::Totals(_))
    }

    fn on_sent(&mut self, sent: &Sent) {
        if let Bins::Totals(bins) = &mut self.bins {
            bins.sent_bytes += sent.bytes.get();
        }
        // Firefox, in slow start: a sender that uses half of the window is not limited by the application.
        if sent.in_flight * 2 >= self.cwnd {
            self.used_until = sent.position;
        }
    }

    // Probing as slow start. Validation: deliveries against deliveries or sent bytes an RTT ago.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        if let Some(drain) = &mut self.drain {
            return drain.on_ack(ack, window.cwnd, self.context.segment);
        }
        if let Bins::Totals(bins) = &mut self.bins {
            bins.acked_bytes += ack.bytes.get();
        }
        self.cwnd = window.cwnd;
        let limited = ack.position > self.used_until;
        if limited && self.answers.app_limited == AppLimited::Wait {
            return up_to_ssthresh(window.cwnd, window);
        }
        match (self.curr, ack.rtt) {
            (Some(curr), _) => {
                let rtt = rtt.latest().unwrap_or(self.initial_rtt);
                if let Some(curr) = self.advance(ack, curr, rtt) {
                    self.compared = self.compare(curr, rtt);
                    if self.compared.is_some_and(|compared| compared.norm_diff() >= self.answers.thresh) {
                        return self.leave(curr, window.cwnd);
                    }
                }
            }
            (None, Some(initial_rtt)) => self.initialize(ack.now, initial_rtt),
            (None, None) => {}
        }
        // Line 31.
        if let (Bins::Deltas(bins), Some(curr)) = (&mut self.bins, self.curr) {
            bins.count(curr, ack.bytes);
        }
        let cwnd = if in_use { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd };
        up_to_ssthresh(cwnd, window)
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take()
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        if let Some(compared) = self.compared {
            let earlier = Bytes::new(compared.earlier as u64);
            seen.bytes("curr_delv", Bytes::new(compared.curr_delv as u64));
            match self.bins {
                Bins::Deltas(_) => {
                    seen.bytes("prev_delv", earlier);
                    seen.bytes("2 * prev_delv", Bytes::new(compared.expected as u64));
                }
                Bins::Totals(_) => seen.bytes("prev_sent", earlier),
            }
            seen.number("norm_diff", compared.norm_diff());
        }
        seen.number("thresh", self.answers.thresh);
        if self.curr.is_some() {
            seen.time("initial_rtt", self.initial_rtt);
            seen.time("bin_duration", self.bin_duration);
        }
    }
}
