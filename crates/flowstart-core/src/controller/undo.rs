//! Undone reductions: the transport has found that packets that it took for lost were only late.

use alloc::boxed::Box;

use super::{Controller, Phase, SlowStartAfterTimeout};
use crate::avoidance::AvoidanceState;
use crate::event::{Decision, Position};
use crate::rtt::RttEstimator;
use crate::time::Timestamp;
use crate::window::{SegmentSize, Window};

/// The state before the last reduction, so the reduction can be undone.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    window: Window,
    avoidance: AvoidanceState,
    /// As `Controller::last_reduction` was.
    last_reduction: Option<Position>,
    /// The scheme decided when to leave slow start.
    by_scheme: bool,
    /// A timeout came at that time or since.
    timeout: bool,
}

/// Room for an [`Undo`], which stays allocated once there was one.
#[derive(Clone, Debug, Default)]
pub(super) struct UndoSlot(Option<Box<Option<Undo>>>);

impl UndoSlot {
    fn take(&mut self) -> Option<Undo> {
        self.0.as_deref_mut()?.take()
    }

    /// Only this can be restored from now on.
    pub(super) fn set(&mut self, undo: Option<Undo>) {
        match &mut self.0 {
            Some(slot) => **slot = undo,
            None if undo.is_some() => self.0 = Some(Box::new(undo)),
            None => {}
        }
    }

    /// Nothing can be restored from now on.
    pub(super) fn clear(&mut self) {
        self.set(None);
    }
}

impl Controller {
    /// Everything that the last reduction took for lost was delivered after all. The window and ssthresh return to
    /// their values before it (RFC 9438, section 4.9; RFC 4015, section 3.2 for the window). Nothing happens when
    /// [`ControllerConfig::undo`](super::ControllerConfig::undo) is off, after a timeout, while the startup scheme is
    /// in charge, or beside an integrated algorithm.
    pub fn on_spurious_loss(&mut self, now: Timestamp, rtt: &RttEstimator) {
        let Some(undo) = self.undo.take() else { return };
        if self.phase == Phase::Avoidance && !undo.timeout {
            self.take_back(now, undo, rtt);
        }
    }

    /// What a timeout took for lost was only late. The window and ssthresh return to their values before it, and before
    /// the recovery that it ended, if there was one (RFC 5682 and RFC 4015, section 3.2, which restore a smaller
    /// window; Linux, `tcp_try_undo_loss`). Nothing happens when
    /// [`ControllerConfig::undo`](super::ControllerConfig::undo) is off, when there was no timeout since the last
    /// reduction, or beside an integrated algorithm.
    pub fn on_spurious_timeout(&mut self, now: Timestamp, rtt: &RttEstimator) {
        let Some(undo) = self.undo.take() else { return };
        if undo.timeout {
            self.take_back(now, undo, rtt);
        } else {
            self.undo.set(Some(undo));
        }
    }

    fn take_back(&mut self, now: Timestamp, undo: Undo, rtt: &RttEstimator) {
        let before = self.window.cwnd;
        self.recovery = None;
        self.last_reduction = undo.last_reduction;
        self.avoidance = undo.avoidance;
        // Segments may have another size by now.
        self.avoidance.on_segment_size(SegmentSize(self.config.segment));
        self.window.ssthresh = undo.window.ssthresh;
        self.set_cwnd(undo.window.cwnd.max(before));
        self.phase = match self.phase {
            _ if self.window.cwnd >= self.window.ssthresh => Phase::Avoidance,
            // The slow start after a timeout goes on, as the scheme wants it.
            Phase::Restart { by_scheme } => Phase::Restart { by_scheme },
            // So does the one that a loss seemed to end.
            _ => Phase::Restart { by_scheme: undo.by_scheme && self.startup.as_dyn().goes_on_after_undo() },
        };
        self.log.note(now, Decision::ReductionUndone { before, after: self.window.cwnd });
        self.update_pacing(rtt);
    }

    /// Saves the state before a timeout. If the timeout ends recovery, or comes again before anything arrives, the
    /// state before that stays saved.
    pub(super) fn undo_of_timeout(&mut self, repeated: bool) -> Option<Undo> {
        let goes_on = self.recovery.is_some() || repeated;
        match self.undo.take().filter(|_| goes_on) {
            Some(mut undo) => {
                undo.timeout = true;
                Some(undo)
            }
            None if self.config.undo && !goes_on => Some(self.state_to_restore(true)),
            None => None,
        }
    }

    pub(super) fn state_to_restore(&self, timeout: bool) -> Undo {
        let Self { window, last_reduction, .. } = *self;
        let by_scheme = self.config.slow_start_after_timeout == SlowStartAfterTimeout::Scheme
            && matches!(self.phase, Phase::Startup | Phase::Restart { by_scheme: true });
        Undo { window, avoidance: self.avoidance.clone(), last_reduction, by_scheme, timeout }
    }
}
