//! Throughput advice (SCONE): a cap on what a scheme launches.
//!
//! Reference: draft-ietf-scone-protocol-08, "Independent of Congestion Signals". Advice bounds the long-term throughput
//! and says nothing about free capacity, so it never lets a scheme send more. It caps a jump: a window that a scheme
//! assumes before the path has delivered it. Advice does not affect growth by acknowledgements, as in slow start and
//! congestion avoidance.
//!
//! The cap is `rate * RTT`, at least the initial window, and it caps the pacing rate of the jump. It is here and not in
//! the schemes, so it applies to every scheme, also to schemes outside this crate.

use super::launch::sendable;
use super::{Controller, Phase};
use crate::event::Decision;
use crate::launch::{Launch, UNPACED};
use crate::path::PathKnowledge;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// The advice for the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advice {
    rate: Rate,
    /// Largest window of a jump.
    window: Bytes,
}

impl Advice {
    /// A rate at which a jump leaves; a scheme that does not pace on purpose stays unpaced.
    pub(super) fn cap_rate(self, rate: Rate) -> Rate {
        if rate == UNPACED { rate } else { rate.min(self.rate) }
    }
}

impl Controller {
    /// Elements of the path advise `rate` from now on; `None`: the advice has expired. Caps a jump that is still
    /// leaving; later jumps are capped at their time.
    pub fn on_advice(&mut self, now: Timestamp, rate: Option<Rate>, rtt: &RttEstimator) {
        self.advice = self.advice_of(rate, rtt.min());
        let Some(advice) = self.advice else { return };
        let jumps = self.phase == Phase::Startup && self.launch_rate.or(self.scheme_rate).is_some();
        if jumps && self.window.cwnd > advice.window {
            self.note_cap(now, advice, self.window.cwnd);
            self.set_cwnd(advice.window);
        }
        self.launch_rate = self.launch_rate.map(|rate| advice.cap_rate(rate));
        self.update_pacing(rtt);
    }

    /// Takes the advice of `path` and caps the launch.
    pub(super) fn advised_launch(&mut self, now: Timestamp, path: &PathKnowledge, mut launch: Launch) -> Launch {
        self.advice = self.advice_of(path.advised_rate, path.handshake_rtt.or(path.min_rtt()));
        let Some(advice) = self.advice else { return launch };
        launch.pacing_rate = launch.pacing_rate.map(|rate| advice.cap_rate(rate));
        if launch.cwnd > advice.window {
            self.note_cap(now, advice, launch.cwnd);
            launch.cwnd = advice.window;
            launch.burst = launch.burst.map(|burst| burst.min(advice.window));
            if let Some(continuation) = &mut launch.continuation {
                continuation.cwnd = continuation.cwnd.min(advice.window);
                // A threshold that the scheme took from the path is a window too, which slow start would go up to.
                if continuation.ssthresh < Bytes::MAX {
                    continuation.ssthresh = continuation.ssthresh.min(advice.window);
                }
            }
        }
        launch
    }

    /// A window that the scheme wants next. If the scheme paces it at its own rate, its growth is a jump.
    pub(super) fn advised_window(&mut self, now: Timestamp, cwnd: Bytes) -> Bytes {
        let Some(advice) = self.advice else { return cwnd };
        let most = advice.window.max(self.window.cwnd);
        if cwnd <= most || self.startup.as_dyn().pacing_rate().is_none() {
            return cwnd;
        }
        if self.window.cwnd < advice.window {
            self.note_cap(now, advice, cwnd);
        }
        most
    }

    /// The rate that the scheme asks for, under the advice.
    pub(super) fn advised_scheme_rate(&mut self) -> Option<Rate> {
        let rate = sendable(self.startup.as_dyn().pacing_rate());
        match self.advice {
            Some(advice) => rate.map(|rate| advice.cap_rate(rate)),
            None => rate,
        }
    }

    fn advice_of(&self, rate: Option<Rate>, rtt: Option<Duration>) -> Option<Advice> {
        let initial = self.config.segment * self.config.initial_window;
        // A rate of zero advises nothing that a sender could follow.
        rate.filter(|rate| *rate > Rate::ZERO).map(|rate| {
            let window = rtt.map_or(Bytes::MAX, |rtt| rate.amount_in(rtt).max(initial));
            Advice { rate, window }
        })
    }

    fn note_cap(&mut self, now: Timestamp, advice: Advice, before: Bytes) {
        self.log.note(now, Decision::AdviceCapped { advised: advice.rate, before, after: advice.window });
    }
}
