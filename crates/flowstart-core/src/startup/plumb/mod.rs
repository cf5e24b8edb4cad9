//! Plumb: a launch as large as its sources bear each other out, then a window for the capacity that the first packets
//! have measured.
//!
//! Reference: flowstart's own design, docs/plumb.md. Before the first acknowledgement a flow sends a blind budget: the
//! initial window without knowledge, 64 packets for one unverified source or the handshake's train, and as much as it
//! wants for what an earlier connection measured and a source of today or the train confirms. The first ten packets
//! leave at once; the time that their acknowledgements take gives the capacity, and a path without a queue then gets a
//! window of at most this capacity, paced. When a queue grows, what arrives says whether the flow is alone, gets its
//! share, or finds the path busy: then slow start goes on from where it would be by now.
//!
//! Differences from the design: none in its first three steps, of which the third, WATCH, is off by default. B1, G and
//! ALONE have other values. A count of connections that start at the same time is not there.
//!
//! This file has the states but WATCH (`watch.rs`); `budget.rs` senses, `train.rs` measures the capacity, `recent.rs`
//! what arrives.
//!
//! Status: experimental; worked examples, and the measurements in docs/plumb.md.

use super::{Startup, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Loss, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::Window;

mod budget;
mod recent;
#[cfg(test)]
mod tests;
mod train;
mod watch;

use budget::{Budget, bears_out};
use recent::Recent;
use train::{Told, Train};
use watch::Watch;

/// One line for listings.
pub const SUMMARY: &str =
    "a blind budget by how far sources agree, then a window for the capacity that the first train shows";
/// The document that defines it.
pub const REFERENCE: &str = "flowstart's own design, docs/plumb.md";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "saved path, hint, oracle, request, approval, the handshake's train; a train of ten, the rest paced; \
    dispersion, delay and delivery rate; the capacity's window, or slow start where it would be by now";

/// TRAIN: packets that leave at once. RFC 6928; slow start sends as many.
const TRAIN: u64 = 10;
/// OVER: acknowledgements in a row that show a queue. HyStart takes 8 samples; an acknowledgement is for two packets.
const OVER: u32 = 4;
/// Least queue that counts: HyStart++'s smallest threshold (RFC 9406, section 4.3: 4 ms).
const LEAST_QUEUE: Duration = Duration::from_millis(4);
/// Part of the smallest RTT that counts as a queue: half of HyStart++'s 1/8.
const QUEUE_PART: u64 = 16;
/// SLOPE, 1/10: acknowledgements that are this much slower than their packets show that the queue grows.
const SLOPE_PART: u64 = 10;
/// Part of slow start's growth above what the path is known to hold: 1.25 in a round, as BBR probes.
const PROBE_PART: u64 = 4;
/// An acknowledgement of more packets than this may end an interval in which the link gathered them.
const GATHERED: u64 = 4;
/// Parts of the smallest RTT: in which points are kept, and over which E is taken.
const POINT_PART: u64 = 8;
const RATE_PART: u64 = 4;

/// Parameters of Plumb.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 100000. Default: the transport profile's.
    pub iw: Option<u32>,
    /// B1: segments that may leave unseen for one unverified source, up to 100000. Design: 32. Default 64: false
    /// sources cost no more on the cells to tune Plumb on, and beside others fewer transfers fall behind slow start.
    pub unverified: u32,
    /// BT: segments that may leave unseen for the train of the handshake alone, up to 100000. Design: 64.
    pub measured: u32,
    /// B2: segments that may leave unseen for two sources that agree, and did not measure, up to 100000. Design: 430
    /// (512 KB).
    pub agreed: u32,
    /// G: on a path without a queue the window is at most this many times what was just delivered, 2 to 1000. Design:
    /// 16. Default 32, with which those that know nothing are faster and others lose less.
    pub growth: u32,
    /// ALONE: percent of the capacity from which on a flow is alone, up to 100. Design: 85. Default 100, with which a
    /// flow beside others leaves startup later.
    pub alone: u32,
    /// SHARE: percent of the capacity that is a fair share, up to `alone`. Design: 50.
    pub share: u32,
    /// WATCH: a flow that is alone stays in startup, at the window that the path holds; after so many rounds with room
    /// it looks for more, up to 1000. Design: 4. Default 0, for it gains nothing: congestion avoidance goes on.
    pub watch: u32,
    /// Age from which on what an earlier connection saved is no source, up to 1000 h. Design: 1 h.
    pub max_age: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            iw: None,
            unverified: 64,
            measured: 64,
            agreed: 430,
            growth: 32,
            alone: 100,
            share: 50,
            watch: 0,
            max_age: Duration::from_millis(3_600_000),
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        validate_initial_window(self.iw)?;
        ConfigError::unless_in("unverified", self.unverified, 0..=100_000)?;
        ConfigError::unless_in("measured", self.measured, 0..=100_000)?;
        ConfigError::unless_in("agreed", self.agreed, 0..=100_000)?;
        ConfigError::unless_in("growth", self.growth, 2..=1000)?;
        ConfigError::unless_in("alone", self.alone, 1..=100)?;
        ConfigError::unless_in("share", self.share, 0..=self.alone)?;
        ConfigError::unless_in("watch", self.watch, 0..=1000)?;
        ConfigError::unless_in("max_age", self.max_age, Duration::ZERO..=Duration::from_millis(3_600_000_000))
    }
}

/// States of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// LAUNCH: the train is not acknowledged yet.
    Launch,
    /// UP: the window follows the capacity.
    Up,
    /// HOLD: a queue grows; for an RTT the window stays, and what arrives decides.
    Hold {
        /// When it began, and what was delivered by then.
        since: Timestamp,
        delivered: Bytes,
        /// The last packet that was sent before.
        end: Position,
    },
    /// WATCH: the flow is alone.
    Watch(Watch),
    /// PLAIN: slow start, because the train told nothing or the path is busy.
    Plain,
}

/// State of Plumb. Names as in the design.
#[derive(Clone, Debug)]
pub struct Plumb {
    config: Config,
    context: StartupContext,
    state: State,
    launched_at: Timestamp,
    budget: Budget,
    train: Train,
    /// C^.
    capacity: Option<Rate>,
    /// Smallest RTT, of the handshake or of data.
    min_rtt: Duration,
    /// q: what the latest RTT has above the smallest.
    queue: Duration,
    /// q of the first sample.
    first_queue: Option<Duration>,
    /// The longest time between acknowledgements of many packets each: the interval in which a link gathers them.
    quantum: Duration,
    latest_ack: Timestamp,
    recent: Recent,
    delivered: Bytes,
    /// Acknowledgements in a row that show a queue.
    over: u32,
    last_sent: Position,
    /// The window grows with acknowledgements of later packets only: those before left with a smaller window.
    grows_after: Position,
    /// The last packet of the current round, and what was delivered before it began.
    round_end: Position,
    round_start: (Timestamp, Bytes),
    /// Rate at which packets leave; `None`: the host's rule.
    pace: Option<Rate>,
    /// A phase that was not read yet, and its trigger.
    entered: Option<(&'static str, &'static str)>,
}

/// `percent` percent of `whole`.
fn part(whole: Bytes, percent: u32) -> Bytes {
    whole * u64::from(percent) / 100
}

impl Plumb {
    /// Plumb that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        let context = context.with_initial_window(config.iw);
        Self {
            config,
            context,
            state: State::Launch,
            launched_at: Timestamp::ZERO,
            budget: Budget::initial(context.initial_window),
            train: Train::new(Bytes::ZERO),
            capacity: None,
            min_rtt: Duration::MAX,
            queue: Duration::ZERO,
            first_queue: None,
            quantum: Duration::ZERO,
            latest_ack: Timestamp::ZERO,
            recent: Recent::default(),
            delivered: Bytes::ZERO,
            over: 0,
            last_sent: 0,
            grows_after: 0,
            round_end: 0,
            round_start: (Timestamp::ZERO, Bytes::ZERO),
            pace: None,
            entered: None,
        }
    }

    fn enter(&mut self, state: State, name: &'static str, why: &'static str) {
        self.state = state;
        self.over = 0;
        self.entered = Some((name, why));
    }

    /// thr: the queue that counts. A packet of the handshake is small; two of data take their time at the bottleneck.
    fn threshold(&self) -> Duration {
        let packets = self.capacity.map_or(Duration::ZERO, |rate| rate.time_for(self.context.segment * 2));
        LEAST_QUEUE.max(self.min_rtt / QUEUE_PART).max(self.quantum * 3 / 2) + packets
    }

    /// What the path holds at `rate` without a queue.
    fn holds(&self, rate: Rate) -> Bytes {
        rate.amount_in(self.min_rtt)
    }

    /// E: the rate at which data arrives.
    fn arriving(&self) -> Option<Rate> {
        self.recent.rate(self.min_rtt / RATE_PART)
    }

    /// Whether `rate` is at least `percent` percent of the capacity.
    fn reaches(&self, rate: Rate, percent: u32) -> bool {
        self.capacity.is_some_and(|capacity| {
            u128::from(rate.bits_per_sec()) * 100 >= u128::from(capacity.bits_per_sec()) * u128::from(percent)
        })
    }

    /// The window that slow start would have by now: IW 2^(time since the launch / RTT), linear within a round.
    fn shadow(&self, now: Timestamp, rtt: Duration) -> Bytes {
        let (since, round) = (now.since(self.launched_at).as_nanos(), rtt.as_nanos().max(1));
        let whole = self.context.initial_window * (1 << (since / round).min(32));
        let grown = u128::from(whole.get()) * u128::from(since % round) / u128::from(round);
        whole + Bytes::new(u64::try_from(grown).unwrap_or(u64::MAX))
    }

    fn take_sample(&mut self, ack: &Ack) {
        self.delivered += ack.bytes;
        let before = core::mem::replace(&mut self.latest_ack, ack.now);
        if ack.packets > GATHERED && self.first_queue.is_some() {
            self.quantum = self.quantum.max(ack.now.since(before)).min(self.min_rtt / 2);
        }
        let Some(rtt) = ack.rtt else { return };
        self.min_rtt = self.min_rtt.min(rtt);
        self.queue = rtt.saturating_sub(self.min_rtt);
        self.first_queue.get_or_insert(self.queue);
        self.recent.add(ack.now, self.delivered, rtt, self.min_rtt / POINT_PART);
    }

    /// Validation of the launch: what the train told of the path.
    fn judge_train(&mut self, now: Timestamp, told: Told, cwnd: Bytes) -> Bytes {
        let Told::Capacity(capacity) = told else {
            self.enter(State::Plain, "plain", "no_capacity");
            return cwnd;
        };
        self.capacity = Some(capacity);
        if self.first_queue.is_none_or(|queue| queue >= self.threshold()) {
            self.enter(State::Plain, "plain", "queue_at_launch");
            return cwnd;
        }
        self.enter(State::Up, "up", "train_acknowledged");
        let claim = self.budget.borne_out(capacity);
        let claimed = claim.map_or(Bytes::ZERO, |claim| self.holds(claim));
        // A claim that agrees is better than the dispersion of ten packets, of which every host's jitter is a part.
        if let Some(claim) = claim.filter(|claim| bears_out(*claim, capacity)) {
            self.capacity = Some(claim);
        }
        let licence = claimed.max(self.context.segment * (TRAIN * u64::from(self.config.growth)));
        self.begin_round(now);
        self.raise(cwnd, licence)
    }

    /// The window that the capacity wants, as far as `licence` goes.
    fn raise(&mut self, cwnd: Bytes, licence: Bytes) -> Bytes {
        let wanted = self.capacity.map_or(Bytes::ZERO, |capacity| self.holds(capacity)).min(licence);
        if wanted > cwnd {
            self.grows_after = self.last_sent;
        }
        cwnd.max(wanted)
    }

    fn begin_round(&mut self, now: Timestamp) {
        self.round_end = self.last_sent;
        self.round_start = (now, self.delivered);
    }

    fn set_pace(&mut self, cwnd: Bytes, rtt: Duration) {
        if self.state == State::Launch {
            self.pace = self.pace.max(self.budget.rate.and(Rate::from_transfer(cwnd * 2, rtt)));
            return;
        }
        let Some(capacity) = self.capacity.filter(|_| self.state != State::Plain) else {
            self.pace = None;
            return;
        };
        let below = cwnd * 2 < self.holds(capacity);
        let paced = if below { cwnd * 2 } else { part(cwnd, 115) };
        let rate = Rate::from_transfer(paced, rtt);
        // Never faster than the path, unless the window is larger than it holds.
        let most = Rate::from_transfer(cwnd, self.min_rtt).map_or(capacity, |rate| rate.max(capacity));
        self.pace = rate.map(|rate| rate.min(most));
    }

    // Continuation.
    fn leave(&self, cwnd: Bytes, ssthresh: Bytes, reason: ExitReason) -> Step {
        let least = self.context.segment * 2;
        Step::Exit(Continuation { cwnd: cwnd.max(least), ssthresh: ssthresh.max(least), reason })
    }

    /// The flow is alone: the window that the path holds.
    fn leave_alone(&self, arriving: Rate) -> Step {
        let window = arriving.amount_in(self.min_rtt + self.threshold());
        self.leave(window, window, ExitReason::Delay)
    }

    /// Others have the path: slow start, from where it would be by now.
    fn leave_busy(&self, now: Timestamp, cwnd: Bytes, rtt: Duration) -> Step {
        self.leave(cwnd.min(self.shadow(now, rtt)), Bytes::MAX, ExitReason::Other("busy"))
    }

    /// HOLD has lasted an RTT: what arrived since decides.
    fn decide(&mut self, ack: &Ack, cwnd: Bytes, since: Timestamp, delivered: Bytes) -> Step {
        let arriving = Rate::from_transfer(self.delivered.saturating_sub(delivered), ack.now.since(since));
        let arriving = arriving.unwrap_or(Rate::ZERO);
        if self.reaches(arriving, self.config.alone) {
            self.alone(ack, arriving)
        } else if self.reaches(arriving, self.config.share) {
            self.leave(cwnd, cwnd, ExitReason::Delay)
        } else {
            self.leave_busy(ack.now, cwnd, self.min_rtt + self.queue)
        }
    }

    /// Growth of slow start, which waits where it began with more than the initial window.
    fn grown_as_slow_start(&self, ack: &Ack, cwnd: Bytes, in_use: bool) -> Bytes {
        let ahead = self.budget.window > self.context.initial_window && cwnd >= self.shadow(ack.now, self.min_rtt);
        if in_use && !ahead { self.context.slow_start_growth(cwnd, ack) } else { cwnd }
    }

    /// Growth with an acknowledgement: slow start's up to what the path holds, and where slow start would be by now; a
    /// quarter of it above both, where a queue is to be expected.
    fn grown(&self, ack: &Ack, cwnd: Bytes) -> Bytes {
        let grown = self.context.slow_start_growth(cwnd, ack);
        let known = self.capacity.map_or(Bytes::MAX, |capacity| self.holds(capacity));
        if cwnd < known || cwnd < self.shadow(ack.now, self.min_rtt) {
            return grown;
        }
        cwnd + grown.saturating_sub(cwnd) / PROBE_PART
    }

    /// UP: looks for a queue, and grows.
    fn climb(&mut self, ack: &Ack, cwnd: Bytes, in_use: bool) -> Step {
        let threshold = self.threshold();
        let slower = || self.recent.slower_than_sent(self.min_rtt / POINT_PART, SLOPE_PART);
        let shows_queue = self.queue > threshold && (self.queue > threshold * 2 || slower());
        self.over = if shows_queue { self.over + 1 } else { 0 };
        if self.over >= OVER {
            if let Some(arriving) = self.arriving().filter(|rate| self.reaches(*rate, self.config.alone)) {
                return self.alone(ack, arriving);
            }
            let hold = State::Hold { since: ack.now, delivered: self.delivered, end: self.last_sent };
            self.enter(hold, "hold", "queue");
            return Step::Continue { cwnd: cwnd.min(ack.in_flight_before) };
        }
        let mut cwnd = cwnd;
        if in_use && ack.position > self.grows_after {
            cwnd = self.grown(ack, cwnd);
        }
        if ack.position >= self.round_end {
            let (began, before) = self.round_start;
            let arrived = self.delivered.saturating_sub(before);
            self.begin_round(ack.now);
            if self.queue < threshold {
                self.capacity = self.capacity.max(Rate::from_transfer(arrived, ack.now.since(began)));
                cwnd = self.raise(cwnd, arrived * u64::from(self.config.growth));
            }
        }
        Step::Continue { cwnd }
    }

    /// The window after a loss or a mark.
    fn after_congestion(&self, loss: &Loss, reduced: Bytes) -> Bytes {
        let Some(arriving) = self.arriving().filter(|_| self.state != State::Plain) else { return reduced };
        if self.reaches(arriving, self.config.alone) {
            return self.holds(arriving);
        }
        match self.state {
            State::Hold { since, .. } if loss.now.since(since) * 5 > self.min_rtt * 2 => {
                part(arriving.amount_in(self.min_rtt + self.queue), 70)
            }
            _ => reduced,
        }
    }
}

impl Startup for Plumb {
    fn needs(&self) -> Needs {
        Needs::OWN_RATE
    }

    // Sensing: the blind budget.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        self.launched_at = now;
        let (initial_window, segment) = (self.context.initial_window, self.context.segment);
        if let Some(rtt) = path.handshake_rtt.or(path.min_rtt()).filter(|rtt| *rtt > Duration::ZERO) {
            self.min_rtt = rtt;
            self.budget = Budget::of(path, rtt, &self.config, initial_window, segment);
        }
        let burst = (segment * TRAIN).min(self.budget.window);
        self.train = Train::new(burst);
        self.pace = self.budget.rate;
        Launch { pacing_rate: self.pace, burst: Some(burst), ..Launch::window(self.budget.window) }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.last_sent = sent.position;
        self.train.on_sent(sent);
    }

    // Probing and Validation.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.take_sample(ack);
        let step = match self.state {
            State::Launch => {
                let cwnd = self.grown_as_slow_start(ack, window.cwnd, in_use);
                match self.train.on_ack(ack, self.delivered) {
                    Told::NotYet => Step::Continue { cwnd },
                    told => Step::Continue { cwnd: self.judge_train(ack.now, told, cwnd) },
                }
            }
            State::Plain => Step::Continue { cwnd: self.grown_as_slow_start(ack, window.cwnd, in_use) },
            _ if ack.app_limited => Step::Continue { cwnd: window.cwnd },
            State::Hold { since, delivered, end } if ack.position >= end => {
                self.decide(ack, window.cwnd, since, delivered)
            }
            State::Hold { .. } => Step::Continue { cwnd: window.cwnd },
            State::Up => self.climb(ack, window.cwnd, in_use),
            State::Watch(watch) => self.watch(ack, window.cwnd, in_use, watch),
        };
        if let Step::Continue { cwnd } = step {
            self.set_pace(cwnd, rtt.smoothed());
        }
        step
    }

    // Validation: a loss or a mark before a queue was found. Losses above the window that slow start would have by now
    // do not lead below it.
    fn on_congestion(&mut self, loss: &Loss, window: Window, reduced: Bytes) -> Step {
        let after = self.after_congestion(loss, reduced);
        let shadow = self.shadow(loss.now, self.min_rtt + self.queue);
        let ssthresh = if window.cwnd > shadow && after < shadow { Bytes::MAX } else { after };
        self.leave(after, ssthresh, ExitReason::Loss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pace
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.take()
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        seen.bytes("budget", self.budget.window);
        if let Some(capacity) = self.capacity {
            seen.rate("C^", capacity);
        }
        if let Some(arriving) = self.arriving() {
            seen.rate("E", arriving);
        }
        if self.first_queue.is_some() {
            seen.time("q", self.queue);
            seen.time("thr", self.threshold());
        }
    }
}
