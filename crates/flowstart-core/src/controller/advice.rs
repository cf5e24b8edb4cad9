//! Throughput advice (SCONE): a cap on what a scheme launches.
//!
//! Reference: draft-ietf-scone-protocol-08, "Independent of Congestion Signals". Advice bounds the long-term
//! throughput over 67 s and says nothing about free capacity, so it never lets a scheme send more. The draft would
//! allow a burst whose average keeps the advice; here it caps a jump at once: a window that a scheme assumes before
//! the path has delivered it. Advice does not affect growth by acknowledgements, as in slow start and congestion
//! avoidance.
//!
//! The cap is `rate * RTT`, at least the initial window, and it caps the pacing rate of the jump. A scheme whose jump
//! is capped has no say any more: congestion avoidance goes on from the capped window. Where no more than the initial
//! window is left of a jump, slow start does, as if nothing was known: advice that is far too low costs a jump and
//! nothing else. It is here and not in the schemes, so it applies to every scheme, also to schemes outside this crate.

use alloc::vec::Vec;

use super::launch::sendable;
use super::{Controller, Phase};
use crate::event::{Decision, DecisionLog, ExitReason};
use crate::launch::{Continuation, Launch, UNPACED};
use crate::path::PathKnowledge;
use crate::rtt::RttEstimator;
use crate::sources::Known;
use crate::startup::{StartupConfig, StartupContext, StartupState};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// The advice for the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advice {
    rate: Rate,
    /// Largest window of a jump.
    window: Bytes,
    /// Largest rate of a jump: that of the window, where it is the initial one.
    pace: Rate,
}

/// Why startup ends where advice caps a jump.
const CAPPED: ExitReason = ExitReason::Other("advice");

impl Advice {
    /// Advice of this rate for a path of this RTT, to a host with this initial window; `None`: it advises nothing.
    fn new(rate: Option<Rate>, rtt: Option<Duration>, initial: Bytes) -> Option<Self> {
        // A rate of zero advises nothing that a sender could follow.
        rate.filter(|rate| *rate > Rate::ZERO).map(|rate| {
            let window = rtt.map_or(Bytes::MAX, |rtt| rate.amount_in(rtt).max(initial));
            let pace = rtt.and_then(|rtt| Rate::from_transfer(initial, rtt)).map_or(rate, |initial| rate.max(initial));
            Self { rate, window, pace }
        })
    }

    fn for_launch(path: &PathKnowledge, initial: Bytes) -> Option<Self> {
        Self::new(path.advised_rate, path.handshake_rtt.or(path.min_rtt()), initial)
    }

    fn caps(self, launch: &Launch) -> bool {
        launch.cwnd > self.window || launch.pacing_rate.is_some_and(|rate| self.cap_rate(rate) < rate)
    }

    /// A rate at which a jump leaves; a scheme that does not pace on purpose stays unpaced.
    pub(super) fn cap_rate(self, rate: Rate) -> Rate {
        if rate == UNPACED { rate } else { rate.min(self.pace) }
    }
}

/// The parts of `path` on which the launch of a scheme depends, as its host makes it: with advice that caps it.
fn depends_on(scheme: &StartupState, now: Timestamp, path: &PathKnowledge, initial: Bytes) -> Vec<Known> {
    let mut used = scheme.depends_on(now, path);
    if let Some(advice) = Advice::for_launch(path, initial) {
        let launch = scheme.clone().as_dyn().launch(now, path, &mut DecisionLog::default());
        used.extend(advice.caps(&launch).then_some(Known::Advised));
    }
    used
}

impl StartupConfig {
    /// The parts of `path` on which the launch of a usual host depends with this scheme.
    pub fn depends_on(&self, path: &PathKnowledge) -> Vec<Known> {
        depends_on(&self.for_usual_host(), Timestamp::ZERO, path, StartupContext::USUAL.initial_window)
    }
}

impl Controller {
    /// The parts of `path` on which the launch depends that [`Controller::launch`] would make of it now.
    pub fn depends_on(&self, now: Timestamp, path: &PathKnowledge) -> Vec<Known> {
        depends_on(&self.startup, now, path, self.initial_window())
    }

    /// Elements of the path advise `rate` from now on; `None`: the advice has expired. Caps a jump that is still
    /// leaving; later jumps are capped at their time.
    pub fn on_advice(&mut self, now: Timestamp, rate: Option<Rate>, rtt: &RttEstimator) {
        self.advice = Advice::new(rate, rtt.min(), self.initial_window());
        let Some(advice) = self.advice else { return };
        let jumps = self.phase == Phase::Startup && self.launch_rate.or(self.scheme_rate).is_some();
        if jumps && self.window.cwnd > advice.window {
            self.note_cap(now, advice, self.window.cwnd);
            self.go_on_without_scheme(now, advice.window);
        }
        self.launch_rate = self.launch_rate.map(|rate| advice.cap_rate(rate));
        self.update_pacing(rtt);
    }

    /// Takes the advice of `path` and caps the launch.
    pub(super) fn advised_launch(&mut self, now: Timestamp, path: &PathKnowledge, mut launch: Launch) -> Launch {
        self.advice = Advice::for_launch(path, self.initial_window());
        let Some(advice) = self.advice.filter(|advice| advice.caps(&launch)) else { return launch };
        self.note_cap(now, advice, launch.cwnd);
        let cwnd = launch.cwnd.min(advice.window);
        let is_jump = launch.knows_the_path();
        launch.cwnd = cwnd;
        launch.pacing_rate = launch.pacing_rate.map(|rate| advice.cap_rate(rate));
        launch.burst = launch.burst.map(|burst| burst.min(advice.window));
        launch.continuation = match launch.continuation {
            // An integrated algorithm goes on from the launch by itself.
            Some(continuation) if self.is_integrated() => {
                // A threshold that the scheme took from the path is a window too, which slow start would go up to.
                let ssthresh = continuation.ssthresh;
                let ssthresh = if ssthresh < Bytes::MAX { ssthresh.min(advice.window) } else { ssthresh };
                Some(Continuation { cwnd: continuation.cwnd.min(advice.window), ssthresh, ..continuation })
            }
            None if self.is_integrated() || !is_jump => None,
            _ => Some(self.without_scheme(cwnd)),
        };
        launch
    }

    /// The advice that forbids what the scheme wants next, a window and its own rate: growth at a rate of its own is a
    /// jump.
    pub(super) fn forbidding(&mut self, cwnd: Bytes) -> Option<Advice> {
        let advice = self.advice?;
        let rate = self.startup.as_dyn().pacing_rate().filter(|rate| *rate != UNPACED)?;
        let is_beyond = cwnd > advice.window.max(self.window.cwnd);
        (is_beyond || advice.cap_rate(rate) < rate).then_some(advice)
    }

    /// The scheme wanted the window `wanted`, which advice forbids.
    pub(super) fn cap_growth(&mut self, now: Timestamp, advice: Advice, wanted: Bytes) {
        self.note_cap(now, advice, wanted);
        self.go_on_without_scheme(now, advice.window.max(self.window.cwnd).min(wanted));
    }

    /// The flow goes on from this window without the scheme.
    fn without_scheme(&self, cwnd: Bytes) -> Continuation {
        let ssthresh = if cwnd > self.initial_window() { cwnd } else { Bytes::MAX };
        Continuation { cwnd, ssthresh, reason: CAPPED }
    }

    fn go_on_without_scheme(&mut self, now: Timestamp, cwnd: Bytes) {
        self.set_cwnd(cwnd);
        let continuation = self.without_scheme(cwnd);
        self.exit_startup(now, continuation);
    }

    /// A window that a scheme wants of an integrated algorithm, under the advice.
    pub(super) fn advised_window(&mut self, now: Timestamp, cwnd: Bytes) -> Bytes {
        let Some(advice) = self.advice else { return cwnd };
        let most = advice.window.max(self.window.cwnd);
        if cwnd > most {
            self.note_cap(now, advice, cwnd);
        }
        cwnd.min(most)
    }

    /// The rate that the scheme asks for, under the advice.
    pub(super) fn advised_scheme_rate(&mut self) -> Option<Rate> {
        let rate = sendable(self.startup.as_dyn().pacing_rate());
        match self.advice {
            Some(advice) => rate.map(|rate| advice.cap_rate(rate)),
            None => rate,
        }
    }

    fn note_cap(&mut self, now: Timestamp, advice: Advice, before: Bytes) {
        self.log.note(now, Decision::AdviceCapped { advised: advice.rate, before, after: before.min(advice.window) });
    }
}
