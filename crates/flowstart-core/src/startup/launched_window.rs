//! A window that a scheme launches at once, and Jump-Start's rule for what becomes of it.
//!
//! Reference: Liu, Allman, Jin, Wang, "Congestion Control Without a Startup Phase", `PFLDnet` 2007. D is what was launched,
//! R what of it had to be retransmitted. Without loss the flow goes on in slow start from the window it has. With loss it
//! recovers as always, and the window afterwards is (D - R) / 2, at least one segment: half of what the path took.
//!
//! Shared by the schemes that launch a window: `jump-start`, `more-start`, `halfback`.

use super::{Continuation, Launch, StartupContext, Step};
use crate::avoidance::Window;
use crate::event::{Ack, ExitReason, Loss, Position, Sent};
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// What becomes of a launched window.
#[derive(Clone, Debug)]
pub(crate) struct LaunchedWindow {
    context: StartupContext,
    /// Bytes that were launched.
    window: Bytes,
    /// Rate at which they leave; `None`: not paced.
    rate: Option<Rate>,
    /// Bytes of them that have left: D.
    sent: Bytes,
    /// Bytes declared lost since: R.
    lost: Bytes,
    /// Position of the last of them, once it has left.
    end: Option<Position>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The window was not yet acknowledged.
    Unvalidated,
    /// Some of it was lost, and recovery goes on.
    Recovering,
    /// All of it arrived, or nothing was launched: slow start.
    SlowStart,
}

impl LaunchedWindow {
    /// Nothing is launched yet.
    pub(crate) fn new(context: StartupContext) -> Self {
        let none = Bytes::ZERO;
        Self { context, window: none, rate: None, sent: none, lost: none, end: None, state: State::SlowStart }
    }

    /// Launches `window`, paced over `span` or as a burst.
    pub(crate) fn launch(&mut self, window: Bytes, span: Duration, pacing: bool) -> Launch {
        self.window = window.max(self.context.segment);
        self.rate = pacing.then(|| Rate::from_transfer(self.window, span));
        self.state = State::Unvalidated;
        let burst = (!pacing).then_some(self.window);
        Launch { pacing_rate: self.rate, burst, ..Launch::window(self.window) }
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        if self.state == State::Unvalidated && self.end.is_none() {
            self.sent += sent.bytes;
            if self.sent + self.context.segment > self.window {
                self.end = Some(sent.position);
            }
        }
    }

    pub(crate) fn on_lost(&mut self, loss: &Loss) {
        if self.state != State::SlowStart {
            self.lost += loss.bytes;
        }
    }

    /// Slow start goes on from the launched window.
    pub(crate) fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool) -> Step {
        if self.end.is_some_and(|end| ack.position >= end) {
            self.state = State::SlowStart;
        }
        let cwnd = if in_use { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd };
        Step::Continue { cwnd }
    }

    pub(crate) fn on_congestion(&mut self, reduced: Bytes) -> Step {
        if self.state == State::SlowStart {
            return Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss });
        }
        self.state = State::Recovering;
        Step::Continue { cwnd: reduced }
    }

    /// cwnd = max(1, (D - R) / 2).
    pub(crate) fn on_recovered(&self) -> Step {
        let cwnd = (self.sent.saturating_sub(self.lost) / 2).max(self.context.segment);
        Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Loss })
    }

    /// The launch's rate, until the window has left.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.state == State::Unvalidated && self.end.is_none())
    }
}
