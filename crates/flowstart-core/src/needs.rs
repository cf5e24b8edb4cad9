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
    /// As much leaves at once as the algorithm says ([`Output::burst`](crate::controller::Output::burst)), where the
    /// host would pace.
    pub const BURST: Self = Self(1 << 9);

    /// Each need, and what an algorithm that has it wants of its host.
    pub const EACH: [(Self, &'static str); 10] = [
        (Self::OWN_RATE, "pacing at a rate of its own"),
        (Self::RATE_SAMPLES, "a rate sample with each acknowledgement"),
        (Self::CONGESTION_HEADER, "a congestion header that routers write into"),
        (Self::MARK_COUNTS, "the number of packets that were marked"),
        (Self::ECT_1, "ECT(1) on its packets"),
        (Self::PROACTIVE_RETRANSMISSION, "data to be sent again before it is lost"),
        (Self::APPROVAL, "approvals of routers"),
        (Self::APPROVAL_IN_CONNECTION, "approvals of routers in mid-connection"),
        (Self::SHARED_WINDOW, "a window that connections to the same peer share"),
        (Self::BURST, "a launch that leaves at once, or a part of it"),
    ];

    /// The first of these needs, in words that follow "needs"; `None`: there is none.
    pub fn first(self) -> Option<&'static str> {
        Self::EACH.into_iter().find(|(need, _)| self.contains(*need)).map(|(_, wants)| wants)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avoidance::AvoidanceConfig;
    use crate::startup::StartupConfig;

    #[test]
    fn each_need_of_an_algorithm_has_its_words() {
        let all = Needs::EACH.into_iter().fold(Needs::NONE, |all, (need, _)| all.and(need));
        let startups = StartupConfig::defaults().into_iter().map(|one| one.needs());
        let needs = startups.chain(AvoidanceConfig::defaults().into_iter().map(|one| one.needs()));
        for need in needs {
            assert_eq!(need.without(all), Needs::NONE);
            assert_eq!(need.first().is_some(), need != Needs::NONE);
        }
        assert_eq!(Needs::SCALABLE_MARKS.first(), Some("the number of packets that were marked"));
    }
}
