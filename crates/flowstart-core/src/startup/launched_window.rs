//! A window that a scheme launches at once, and the rules for its further course.
//!
//! Reference: Liu, Allman, Jin, Wang, "Congestion Control Without a Startup Phase", `PFLDnet` 2007. D is what was
//! launched, R its retransmitted part, counted each time. Without loss the flow continues in slow start from its
//! current window. With loss it recovers as usual, and the window afterwards is (D - R) / 2, at least one segment: half
//! of what the path carried. quicly (h2o), `include/quicly/cc.h` and `lib/cc-pico.c` at commit b11d3634, has another
//! rule: [`Retreat::Acknowledged`].
//!
//! The schemes that launch a window share this module: `jump-start`, `more-start`, `halfback`. Each file defines its
//! launch ([`Flight`]); the rest is [`Launched`].

use core::fmt;

use super::{Startup, StartupContext, Step};
use crate::event::{Ack, DecisionLog, ExitReason, Loss, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::variable::Variables;
use crate::window::Window;

/// What a scheme launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Bytes that leave.
    pub window: Bytes,
    /// The time over which they are paced.
    pub span: Duration,
    /// Whether they are paced; otherwise they leave as a burst.
    pub pacing: bool,
}

/// The further course of a launched window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Retreat {
    /// The window stays until a part of it is lost; after recovery it is (D - R) / 2 (Liu et al. 2007).
    #[default]
    HalfDelivered,
    /// The first acknowledgement sets the window to the bytes in flight. A loss sets it to half of its acknowledged
    /// part, or half of the initial window if that is more. During recovery it rises to beta times the acknowledged
    /// part (quicly).
    Acknowledged,
}

/// How much of the acknowledged bytes remains when the first loss is found (quicly).
const FIRST_LOSS: f64 = 0.5;
/// `QUICLY_MIN_CWND`: smallest window in segments.
const MIN_WINDOW: u64 = 2;

/// The configuration of a scheme that launches a window: its Sensing and Probing, and its part of Validation.
pub trait LaunchesWindow: Clone + fmt::Debug + Send + Sync + 'static {
    /// Sensing and Probing: what is launched; `None` is slow start from `initial_window`.
    fn flight(&self, path: &PathKnowledge, initial_window: Bytes) -> Option<Flight>;

    /// What the scheme needs of its host.
    fn needs(&self) -> Needs {
        Needs::NONE
    }

    /// Validation: the further course of the window.
    fn retreat(&self) -> Retreat {
        Retreat::HalfDelivered
    }

    /// For [`Retreat::Acknowledged`]: the share of the acknowledged bytes to which the window rises.
    fn beta(&self) -> f64 {
        1.0
    }

    /// Validation: whether an acknowledgement sends a segment again without any sign of loss. `waiting` is the number
    /// of the flow's bytes that have not left yet; `None`: unknown.
    fn sends_again(&self, waiting: Option<Bytes>) -> bool {
        let _ = waiting;
        false
    }
}

/// The flight of all waiting data, within the receive window and `threshold`, over the RTT of the handshake; `None`
/// when the data fit the initial window or no RTT is known.
pub(super) fn all_that_waits(
    path: &PathKnowledge,
    initial_window: Bytes,
    threshold: Option<Bytes>,
    pacing: bool,
) -> Option<Flight> {
    let window = [path.bytes_waiting, path.receive_window, threshold].into_iter().flatten().min()?;
    let span = path.handshake_rtt.or(path.min_rtt())?;
    (window > initial_window).then_some(Flight { window, span, pacing })
}

/// State of a scheme that launches a window.
#[derive(Clone, Debug)]
pub struct Launched<S> {
    scheme: S,
    context: StartupContext,
    /// Bytes that were launched.
    window: Bytes,
    /// Rate at which they leave; `None`: not paced.
    rate: Option<Rate>,
    /// Bytes of them that have left: D.
    sent: Bytes,
    /// Bytes of them that had to be sent again, each time: R.
    retransmitted: Bytes,
    /// Bytes of them that were acknowledged; not more than D.
    acked: Bytes,
    /// Position of the last packet that was sent.
    last: Position,
    /// Position of the last launched byte that leaves, once this is known.
    end: Option<Position>,
    /// Bytes of the flow that have not left yet; `None`: unknown.
    waiting: Option<Bytes>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The window was not yet acknowledged.
    Unvalidated,
    /// Its last byte was acknowledged, and slow start goes on. Its missing bytes may still be found lost.
    Passed,
    /// Some of it was lost, and recovery goes on.
    Recovering,
    /// All of it arrived, or nothing was launched: slow start.
    SlowStart,
}

impl<S> Launched<S> {
    /// The scheme before it has launched.
    pub fn new(scheme: S, context: StartupContext) -> Self {
        let none = Bytes::ZERO;
        Self {
            scheme,
            context,
            window: none,
            rate: None,
            sent: none,
            retransmitted: none,
            acked: none,
            last: 0,
            end: None,
            waiting: None,
            state: State::SlowStart,
        }
    }
}

impl<S> Launched<S> {
    fn count(&mut self, ack: &Ack) {
        self.acked = (self.acked + ack.bytes).min(self.sent);
    }
}

impl<S: LaunchesWindow> Startup for Launched<S> {
    fn needs(&self) -> Needs {
        self.scheme.needs()
    }

    // Sensing and Probing: the scheme's.
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        self.waiting = path.bytes_waiting;
        let Some(Flight { window, span, pacing }) = self.scheme.flight(path, self.context.initial_window) else {
            return Launch::window(self.context.initial_window);
        };
        self.window = window.max(self.context.segment);
        self.rate = if pacing { Rate::from_transfer(self.window, span) } else { None };
        self.state = State::Unvalidated;
        let burst = (!pacing).then_some(self.window);
        Launch { pacing_rate: self.rate, burst, ..Launch::window(self.window) }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.waiting = self.waiting.map(|waiting| waiting.saturating_sub(sent.bytes));
        self.last = sent.position;
        if self.state == State::Unvalidated && self.end.is_none() {
            self.sent += sent.bytes;
            if self.sent + self.context.segment > self.window {
                self.end = Some(sent.position);
            }
        }
    }

    /// The launch's rate, until the window has left.
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.state == State::Unvalidated && self.end.is_none())
    }

    fn proactive_retransmit(&mut self, _ack: &Ack) -> Bytes {
        if self.scheme.sends_again(self.waiting) { self.context.segment } else { Bytes::ZERO }
    }

    // Validation: losses of the window. Slow start goes on from it meanwhile.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        let mut before = window.cwnd;
        if self.scheme.retreat() == Retreat::Acknowledged && self.state == State::Unvalidated {
            if self.acked == Bytes::ZERO {
                before = ack.in_flight_before.min(window.cwnd);
                self.end = Some(self.last);
            }
            self.count(ack);
        }
        if self.end.is_some_and(|end| ack.position >= end) {
            self.state = match self.scheme.retreat() {
                Retreat::HalfDelivered => State::SlowStart,
                // quicly uses the number of the lost packet, whenever it finds the loss.
                Retreat::Acknowledged => State::Passed,
            };
        }
        let cwnd = if in_use { self.context.slow_start_growth(before, ack) } else { before };
        Step::Continue { cwnd }
    }

    // Packets sent after the launch are no evidence about it.
    fn on_retransmission(&mut self, position: Position, bytes: Bytes) {
        if self.state != State::SlowStart && self.end.is_none_or(|end| position <= end) {
            self.retransmitted += bytes;
        }
    }

    fn on_congestion(&mut self, loss: &Loss, _window: Window, reduced: Bytes) -> Step {
        let spared = loss.bytes > Bytes::ZERO && self.retransmitted == Bytes::ZERO;
        // Marks long after the launch are no evidence about it.
        let later = self.state == State::Passed && self.end.is_some_and(|end| loss.position > end);
        if self.state == State::SlowStart || spared || later && loss.bytes == Bytes::ZERO {
            return Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss });
        }
        self.state = State::Recovering;
        // Data that has not left yet is not part of D.
        self.end = self.end.or(Some(self.last));
        match self.scheme.retreat() {
            Retreat::HalfDelivered => Step::Continue { cwnd: reduced },
            Retreat::Acknowledged => {
                let cwnd = self.acked.max(self.context.initial_window).scale(FIRST_LOSS);
                Step::Continue { cwnd: cwnd.max(self.context.segment * MIN_WINDOW) }
            }
        }
    }

    fn on_ack_in_recovery(&mut self, ack: &Ack, window: Window, _rtt: &RttEstimator) -> Option<Step> {
        if self.scheme.retreat() != Retreat::Acknowledged || self.state != State::Recovering {
            return None;
        }
        if self.end.is_some_and(|end| ack.position <= end) {
            self.count(ack);
        }
        Some(Step::Continue { cwnd: window.cwnd.max(self.acked.scale(self.scheme.beta())) })
    }

    // Continuation: cwnd = max(1, (D - R) / 2), or the result of recovery.
    fn on_recovered(&mut self, _now: Timestamp, window: Window) -> Step {
        let cwnd = match self.scheme.retreat() {
            Retreat::HalfDelivered => (self.sent.saturating_sub(self.retransmitted) / 2).max(self.context.segment),
            Retreat::Acknowledged => window.cwnd,
        };
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Loss })
    }

    // Names as in Liu et al. 2007: what has left of the launched window, and what had to be sent again.
    fn observe(&self, seen: &mut Variables<'_>) {
        if self.window > Bytes::ZERO {
            seen.bytes("launched", self.window);
            seen.bytes("D", self.sent);
            seen.bytes("R", self.retransmitted);
            seen.bytes("acknowledged of D", self.acked);
        }
    }
}
