//! Recovery from a congestion event: how the window moves until the reduction is confirmed.
//!
//! Reference: proportional rate reduction, RFC 6937 section 3.1, and RFC 9937. They differ in how much may be sent
//! beyond what was delivered.

use super::{Controller, Phase};
use crate::event::{Ack, Loss, Position};
use crate::rtt::RttEstimator;
use crate::units::Bytes;

/// How the window moves during recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Reduction {
    /// cwnd is ssthresh at once (RFC 6675; RFC 9002, section 7.3.2).
    #[default]
    Immediate,
    /// Proportional rate reduction (RFC 6937) with the slow-start reduction bound, which rebuilds the window when
    /// losses took it below ssthresh.
    Prr,
    /// Proportional rate reduction (RFC 6937) whose slow-start reduction bound gives a segment for every acknowledged
    /// packet instead of every acknowledgement (Google's QUIC).
    PrrPerPacket,
    /// Proportional rate reduction of RFC 9937. It rebuilds the window only by what is delivered, unless an
    /// acknowledgement makes progress without further loss.
    PrrSafe,
}

/// Recovery from a congestion event. Names as in RFC 6937.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// Recovery ends when a position beyond it is acknowledged.
    pub(super) point: Position,
    /// The window that recovery leads to; RFC 6937 calls it ssthresh. A scheme that stays in charge may have another
    /// ssthresh.
    pub(super) target: Bytes,
    /// `RecoverFS`: bytes in flight when it began.
    pub(super) recover_fs: Bytes,
    /// `prr_delivered`: bytes delivered since.
    pub(super) prr_delivered: Bytes,
    /// `prr_out`: bytes sent since.
    pub(super) prr_out: Bytes,
    /// Bytes delivered since, for every kind of reduction.
    pub(super) delivered: Bytes,
}

impl Recovery {
    /// Recovery that ends beyond `point`, leads to the window `target`, and begins with this many bytes in flight.
    pub(super) fn new(point: Position, target: Bytes, recover_fs: Bytes) -> Self {
        Self { point, target, recover_fs, prr_delivered: Bytes::ZERO, prr_out: Bytes::ZERO, delivered: Bytes::ZERO }
    }

    /// Bytes lost since recovery began, when this much is in flight: those that left the flight without being
    /// delivered.
    pub(super) fn lost(&self, in_flight: Bytes) -> Bytes {
        (self.recover_fs + self.prr_out).saturating_sub(self.delivered + in_flight)
    }

    /// What `reduction` makes of the window after `ack`; `None` if the reduced window stays.
    pub(super) fn on_ack(&mut self, ack: &Ack, reduction: Reduction, segment: Bytes) -> Option<Bytes> {
        let margin = match reduction {
            Reduction::Immediate => return None,
            Reduction::PrrSafe if !ack.safe => Bytes::ZERO,
            Reduction::PrrPerPacket => segment * ack.packets,
            Reduction::Prr | Reduction::PrrSafe => segment,
        };
        Some(self.proportional_window(ack, segment, margin).max(segment))
    }

    /// The window that RFC 6937, section 3.1 allows after `ack`: pipe + sndcnt. `margin` is what may be sent beyond
    /// what was delivered while the window is rebuilt.
    fn proportional_window(&mut self, ack: &Ack, segment: Bytes, margin: Bytes) -> Bytes {
        let ssthresh = self.target;
        self.prr_delivered += ack.bytes;
        let pipe = ack.in_flight;
        let send = if pipe > ssthresh {
            // CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            let due = (u128::from(self.prr_delivered.get()) * u128::from(ssthresh.get()))
                .div_ceil(u128::from(self.recover_fs.get()));
            Bytes::new(due as u64).saturating_sub(self.prr_out)
        } else {
            // limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS (slow-start reduction bound)
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(ack.bytes) + margin;
            (ssthresh.saturating_sub(pipe)).min(limit)
        };
        // The first acknowledgement of recovery releases the fast retransmission.
        let send = if self.prr_out == Bytes::ZERO { send.max(segment) } else { send };
        pipe + send
    }
}

impl Controller {
    /// A transport's probe has repaired a loss before the loss was known (RFC 8985, section 7.4.2). The window is
    /// reduced as after [`Controller::on_loss`], and there is nothing to recover from (`tcp_process_tlp_ack` of Linux).
    /// An integrated algorithm goes on, as in Linux. Comes before the [`Controller::on_ack_frame`] that reveals it.
    pub fn on_repaired_loss(&mut self, loss: &Loss, rtt: &RttEstimator) {
        if matches!(self.phase, Phase::Integrated { .. }) || self.recovery.is_some() {
            return;
        }
        self.on_loss(loss, rtt);
        self.undo.clear();
        // A scheme that stays in charge learns of the end of recovery.
        if self.phase != Phase::Startup {
            self.recovery = None;
        }
    }
}
