//! An endpoint's part: when it offers a SCONE packet to the elements of the path, and what it knows of their advice.
//!
//! Reference: draft-ietf-scone-protocol-08, "Providing Opportunities to Apply Throughput Advice Signals" and "Following
//! Throughput Advice". SCONE packets go with the first few datagrams and then at least twice per monitoring period. The
//! lowest signal within a monitoring period counts, and after a monitoring period without any signal the advice has
//! expired.
//!
//! Differences: the times between SCONE packets are not varied at random, because here nothing else repeats at their
//! pace. A reader reports the lowest signal of its period, and its peer keeps a report for a period of its own, so
//! advice may count for two.

use alloc::collections::VecDeque;

use crate::scone::MONITORING_PERIOD;
use crate::scone::wire::RateSignal;
use crate::time::{Duration, Timestamp};
use crate::units::Rate;

/// Datagrams at the beginning of a flow that carry a SCONE packet. The draft: the first few.
const FIRST: u32 = 3;
/// Time between SCONE packets after them; the draft: 20 to 30 s.
const INTERVAL: Duration = Duration::from_millis(20_000);

/// When a sender offers a SCONE packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    sent: u32,
    last: Timestamp,
}

impl Offers {
    /// Whether a datagram that leaves now is to begin with a SCONE packet.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.sent < FIRST || now.since(self.last) >= INTERVAL
    }

    /// Whether the datagram that leaves now is to begin with a SCONE packet; it then counts as sent.
    pub fn take(&mut self, now: Timestamp) -> bool {
        let due = self.is_due(now);
        if due {
            self.sent = self.sent.saturating_add(1);
            self.last = now;
        }
        due
    }
}

/// The advice for one direction of one path, at the endpoint that reads SCONE packets or at its peer.
#[derive(Clone, Debug, Default)]
pub struct Advice {
    /// What was received within a monitoring period, as far as nothing lower came later: signals rise from the first to
    /// the last, so there are 127 at most.
    received: VecDeque<(Timestamp, RateSignal)>,
}

impl Advice {
    /// A signal was received in a datagram with a packet that was processed; whether it is one to tell the peer.
    pub fn on_signal(&mut self, now: Timestamp, signal: RateSignal) -> bool {
        if signal == RateSignal::UNKNOWN {
            return false;
        }
        self.expire(now);
        while self.received.back().is_some_and(|(_, later)| *later >= signal) {
            self.received.pop_back();
        }
        self.received.push_back((now, signal));
        true
    }

    /// The lowest signal of the monitoring period; unknown when there was none.
    pub fn signal(&mut self, now: Timestamp) -> RateSignal {
        self.expire(now);
        self.received.front().map_or(RateSignal::UNKNOWN, |(_, signal)| *signal)
    }

    /// The lowest rate advised within the monitoring period; `None`: no advice.
    pub fn rate(&mut self, now: Timestamp) -> Option<Rate> {
        self.signal(now).rate()
    }

    fn expire(&mut self, now: Timestamp) {
        while self.received.front().is_some_and(|(time, _)| now.since(*time) >= MONITORING_PERIOD) {
            self.received.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(seconds * 1000)
    }

    fn signal(n: u8) -> RateSignal {
        RateSignal::from_bits(n)
    }

    #[test]
    fn a_packet_is_offered_at_the_beginning_and_more_than_twice_per_period() {
        let mut offers = Offers::default();
        let times: Vec<u64> = (0..=67).filter(|second| offers.take(at(*second))).collect();
        assert_eq!(times, [0, 1, 2, 22, 42, 62]);
    }

    #[test]
    fn the_lowest_advice_of_a_period_counts_and_expires_with_it() {
        let mut advice = Advice::default();
        assert_eq!(advice.rate(at(0)), None);
        assert!(advice.on_signal(at(0), signal(60)));
        assert!(advice.on_signal(at(10), signal(40)));
        assert!(advice.on_signal(at(20), signal(50)));
        assert_eq!(advice.signal(at(66)), signal(40));
        // 67 s after the lowest the next one counts, and 67 s after that nothing.
        assert_eq!(advice.signal(at(76)), signal(40));
        assert_eq!(advice.signal(at(77)), signal(50));
        assert_eq!(advice.rate(at(86)), Some(Rate::from_bits_per_sec(31_622_777)));
        assert_eq!(advice.rate(at(87)), None);
    }

    #[test]
    fn a_signal_without_advice_changes_nothing() {
        let mut advice = Advice::default();
        advice.on_signal(at(0), signal(40));
        assert!(!advice.on_signal(at(1), RateSignal::UNKNOWN));
        assert_eq!(advice.signal(at(66)), signal(40));
        assert_eq!(advice.signal(at(67)), RateSignal::UNKNOWN);
    }

    #[test]
    fn memory_is_bounded_by_the_number_of_signals() {
        let mut advice = Advice::default();
        for n in 0..100_000u32 {
            advice.on_signal(at(0), signal((n % 127) as u8));
        }
        assert!(advice.received.len() <= 127);
    }
}
