//! The launch of a new connection, with a rate that routers approve later, and on another path.

use super::window_validation::Validation;
use super::{Controller, Phase};
use crate::event::{Decision, DecisionLog, Position};
use crate::launch::Launch;
use crate::path::PathKnowledge;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::window::{SegmentSize, Window};

/// The largest window: 1 TiB, what 100 Gbit/s carry in 88 s. A peer or a file may give any rate and RTT, so their
/// product may be huge, and a scheme of the caller may ask for anything; growth must stay far from the end of the
/// number range.
pub(super) const LARGEST_WINDOW: Bytes = Bytes::new(1 << 40);

/// The lowest pacing rate that a scheme gets, also a scheme of the caller: a packet of 1500 bytes in 12 s.
const LOWEST_RATE: Rate = Rate::from_bits_per_sec(1_000);

/// A scheme that asks to be woken at a time when it has been woken already, or before, is woken this much later: a host
/// would call it for ever at the same instant.
pub(super) const NEXT_WAKEUP: Duration = Duration::from_millis(1);

/// The rate that a scheme asks for, as one at which something leaves. A scheme that asks for zero asks for none: zero
/// would stop the sender for ever.
pub(super) fn sendable(rate: Option<Rate>) -> Option<Rate> {
    rate.filter(|rate| *rate > Rate::ZERO).map(|rate| rate.max(LOWEST_RATE))
}

impl Controller {
    /// The RTT by which a peer could have enlarged the launch that [`Controller::launch`] would make of `path` now, for
    /// [`Doubt`](crate::doubt::Doubt); `None`: there is none.
    pub fn stretchable_rtt(&self, now: Timestamp, path: &PathKnowledge) -> Option<Duration> {
        self.startup.stretchable_rtt(now, path)
    }

    /// Whether [`Controller::launch`] would make more than the initial window of `path` now. Tried before the RTT of
    /// the handshake is known, it says whether the scheme launches by what an earlier connection saved alone (0-RTT):
    /// one that validates that first does not.
    pub fn launches_more_than_initial(&self, now: Timestamp, path: &PathKnowledge) -> bool {
        let launch = self.startup.clone().as_dyn().launch(now, path, &mut DecisionLog::default());
        launch.cwnd > self.initial_window()
    }

    /// The handshake is over and data may leave: Sensing turns what is known about the path into the launch.
    pub fn launch(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) {
        let launch = self.startup.as_dyn().launch(now, path, &mut self.log);
        let launch = self.advised_launch(now, path, launch);
        self.take_launch(now, &launch, rtt);
    }

    /// All routers of the path have approved a rate that was requested in mid-connection (RFC 4782, section 4.8):
    /// `path` holds it and the current RTT. The controller uses it if its window is larger than the window that the
    /// connection would reach in a round trip anyway: the present one, or what slow start makes of it. Returns whether
    /// it is used. Nothing happens in recovery, beside an integrated algorithm, or if the scheme does not use
    /// approvals.
    pub fn on_approval(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) -> bool {
        if self.is_integrated() || self.recovery.is_some() {
            return false;
        }
        let mut startup = self.startup.clone();
        if !startup.as_dyn().on_approval(self.config.startup_context(), self.window) {
            return false;
        }
        let launch = startup.as_dyn().launch(now, path, &mut self.log);
        let launch = self.advised_launch(now, path, launch);
        let Window { cwnd, ssthresh } = self.window;
        if launch.cwnd <= cwnd.max(ssthresh.min(cwnd * 2)) {
            return false;
        }
        self.startup = startup;
        self.phase = Phase::Startup;
        self.undo.clear();
        self.take_launch(now, &launch, rtt);
        true
    }

    pub(super) fn initial_window(&self) -> Bytes {
        self.config.segment * self.config.initial_window
    }

    /// The path bears out less than a launch assumed: the window falls to `most`, but not below the initial window. The
    /// window before is not restored when a reduction turns out to be spurious. Neither slow start nor congestion
    /// avoidance leads back to what the launch assumed: a slow start threshold that the launch has set falls to
    /// `borne_out`, and congestion avoidance begins again with the smaller window.
    pub fn limit_window(&mut self, now: Timestamp, borne_out: Bytes, most: Bytes, rtt: &RttEstimator) {
        let initial = self.initial_window();
        let (borne_out, most) = (borne_out.max(initial), most.max(initial));
        if self.window.ssthresh < Bytes::MAX {
            self.window.ssthresh = self.window.ssthresh.min(borne_out);
        }
        if self.window.cwnd > most {
            self.set_cwnd(most);
            self.undo.clear();
            if self.phase == Phase::Avoidance {
                self.enter_avoidance(now);
            }
            self.update_pacing(rtt);
        }
    }

    fn take_launch(&mut self, now: Timestamp, launch: &Launch, rtt: &RttEstimator) {
        let launch = &Launch { pacing_rate: sendable(launch.pacing_rate), ..*launch };
        self.set_cwnd(launch.cwnd);
        self.launch_rate = launch.pacing_rate;
        // A scheme that paces by itself starts with one segment unless it says more.
        self.launch_burst = launch.burst.or(launch.pacing_rate.map(|_| self.config.segment));
        self.log.note(now, Decision::Launched { cwnd: self.window.cwnd, pacing_rate: self.launch_rate });
        if self.is_integrated() {
            self.hand_over(now, launch, rtt);
            return;
        }
        self.note_phase(now);
        if let Some(continuation) = launch.continuation {
            self.exit_startup(now, continuation);
        }
        self.update_pacing(rtt);
    }

    /// Packets take another path from now on (a mobility event; RFC 9000, section 9.4). The controller forgets
    /// everything that it has learned. The scheme and the congestion avoidance start again with `path`, which must hold
    /// only knowledge about the new path ([`PathKnowledge::for_new_path`]); `rtt` must have been reset. Packets sent
    /// before do not count.
    pub fn on_path_change(&mut self, now: Timestamp, path: &PathKnowledge, rtt: &RttEstimator) {
        self.avoidance = match &self.unused {
            Some(unused) => unused.1.clone(),
            None => self.config.avoidance.build(SegmentSize(self.config.segment)),
        };
        self.start_again();
        self.sensing = None;
        self.timed_out_at = None;
        self.host_rate = None;
        self.scheme_rate = None;
        self.earlier_path = Some(self.highest_sent);
        if let Some(validation) = &mut self.validation {
            **validation = Validation::new(validation.policy());
        }
        self.launch(now, path, rtt);
    }

    /// The scheme in its state before the first launch. Packets sent before are not evidence of congestion.
    pub(super) fn start_again(&mut self) {
        self.startup = match &self.unused {
            Some(unused) => unused.0.clone(),
            None => self.config.startup.build(self.config.startup_context()),
        };
        self.phase = Phase::Startup;
        self.window.ssthresh = Bytes::MAX;
        self.recovery = None;
        self.undo.clear();
        self.last_reduction = Some(self.highest_sent);
        self.proactive = Bytes::ZERO;
    }

    /// Packets up to `position` left before the launch: their losses and marks are one congestion event.
    pub fn on_sent_before_launch(&mut self, position: Position) {
        self.highest_sent = self.highest_sent.max(position);
    }
}
