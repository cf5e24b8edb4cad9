//! What an algorithm needs of its host beyond a window.

/// A set of what an algorithm needs of its host. A host refuses algorithms whose needs it cannot meet, because they
/// would behave like another algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs(u16);

impl Needs {
    /// Nothing that a host might lack.
    pub const NONE: Self = Self(0);
    /// Packets leave at the algorithm's own rate, independent of window and RTT.
    pub const OWN_RATE: Self = Self(1);
    /// Acknowledgements bring rate samples ([`Ack::sample`](crate::event::Ack::sample)), and each lost packet is
    /// reported ([`Controller::on_packet_lost`](crate::controller::Controller::on_packet_lost)).
    pub const RATE_SAMPLES: Self = Self(1 << 1);
    /// Packets carry a congestion header, which routers fill with feedback
    /// ([`Controller::on_feedback`](crate::controller::Controller::on_feedback)).
    pub const CONGESTION_HEADER: Self = Self(1 << 2);
    /// Each echo of marks is reported with their number.
    pub const MARK_COUNTS: Self = Self(1 << 3);
    /// Data is sent again without any sign of loss
    /// ([`Output::proactive_retransmit`](crate::controller::Output::proactive_retransmit)).
    pub const PROACTIVE_RETRANSMISSION: Self = Self(1 << 4);
    /// Routers approve a rate before the launch
    /// ([`PathKnowledge::approved_rate`](crate::path::PathKnowledge::approved_rate)).
    pub const APPROVAL: Self = Self(1 << 5);
    /// Routers approve rates in mid-connection as well
    /// ([`Controller::on_approval`](crate::controller::Controller::on_approval)).
    pub const APPROVAL_IN_CONNECTION: Self = Self(1 << 6);
    /// Data carries ECT(1), which tells routers that marks are answered by their share.
    pub const ECT_1: Self = Self(1 << 7);
    /// Data carries ECT(1), and each echo of marks is reported with their number (RFC 9331, section 4).
    pub const SCALABLE_MARKS: Self = Self::MARK_COUNTS.and(Self::ECT_1);
    /// Connections to the same peer share a window ([`Ensemble`](crate::ensemble::Ensemble)): each reports its own, and
    /// takes over what the others gave or took
    /// ([`Controller::take_share`](crate::controller::Controller::take_share)).
    pub const SHARED_WINDOW: Self = Self(1 << 8);

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is missing if a host gives `given`.
    #[must_use]
    pub const fn without(self, given: Self) -> Self {
        Self(self.0 & !given.0)
    }

    /// Whether all of `other` is in it.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
