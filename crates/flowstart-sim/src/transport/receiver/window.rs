//! Receive windows that grow with arriving data.
//!
//! References: Fisk, Feng, "Dynamic Right-Sizing in TCP", 2001, for TCP. The window is twice the data delivered in the
//! last RTT, so a sender may double its window in each, and it never shrinks. RFC 9000, section 4.2, leaves the window
//! of QUIC to the receiver. The rule here is the common one: `MAX_DATA` leaves when half of the window is consumed, and
//! the window doubles when that took at most two RTTs.
//!
//! Differences:
//! - The application reads at once.
//! - A receiver that opened the connection knows the RTT from the handshake.
//! - A TCP receiver that did not open takes the least time until the first byte beyond a whole window arrives, as in
//!   Dynamic Right-Sizing. That time is too long while the sender does not fill the window, and far too short if the
//!   sender ignores the window.
//! - A QUIC window does not grow without a measured RTT.
//!
//! Status: worked examples below; `flowstart validate slides-flow-control`.

use flowstart_core::time::{Duration, Timestamp};

use crate::transport::policy::Protocol;
use crate::transport::profile::Profile;

/// A receive window that grows.
#[derive(Clone, Debug)]
pub(super) struct Autotuning {
    protocol: Protocol,
    window: u64,
    largest: u64,
    rtt: Option<Duration>,
    /// The RTT is the handshake's.
    knows_rtt: bool,
    /// TCP: the beginning of the present RTT interval, and the bytes delivered before it. QUIC: the time of the last
    /// `MAX_DATA`.
    since: Option<(Timestamp, u64)>,
    /// TCP: the time when a window began to arrive, and its end.
    measured: Option<(Timestamp, u64)>,
    /// TCP: the bytes that the application has read.
    consumed: u64,
    /// QUIC: first byte that `MAX_DATA` forbids.
    max_data: u64,
}

impl Autotuning {
    /// The window of a profile that lets it grow.
    pub(super) fn new(profile: &Profile) -> Option<Self> {
        profile.initial_receive_window?;
        let window = profile.first_receive_window().get();
        Some(Self {
            protocol: profile.protocol,
            window,
            largest: profile.receive_window.get(),
            rtt: None,
            knows_rtt: false,
            since: None,
            measured: None,
            consumed: 0,
            max_data: window,
        })
    }

    /// The handshake measured the RTT.
    pub(super) fn take_rtt(&mut self, sample: Duration) {
        self.rtt = Some(sample);
        self.knows_rtt = true;
    }

    /// Data arrived; the application has everything below `consumed`. Returns whether the sender must get a new limit
    /// immediately.
    pub(super) fn on_data(&mut self, now: Timestamp, consumed: u64) -> bool {
        match self.protocol {
            Protocol::Tcp => {
                self.right_size(now, consumed);
                false
            }
            Protocol::Quic => self.raise_max_data(now, consumed),
        }
    }

    /// First byte that flow control forbids.
    pub(super) fn limit(&self, consumed: u64) -> u64 {
        match self.protocol {
            Protocol::Tcp => consumed + self.window,
            Protocol::Quic => self.max_data,
        }
    }

    fn right_size(&mut self, now: Timestamp, consumed: u64) {
        if !self.knows_rtt {
            let (began, end) = *self.measured.get_or_insert((now, self.window));
            // The first byte beyond the window answers the announcement that left after the window began.
            if consumed > end {
                let sample = now.since(began);
                self.rtt = Some(self.rtt.map_or(sample, |known| known.min(sample)));
                self.measured = Some((now, consumed + self.window));
            }
        }
        let (since, _) = *self.since.get_or_insert((now, 0));
        if self.rtt.is_some_and(|rtt| now.since(since) >= rtt) {
            self.since = Some((now, self.consumed));
        }
        // Counted on arrival: the sender may fill the window in the next RTT, which begins with this acknowledgement.
        let delivered = consumed - self.since.map_or(0, |(_, before)| before);
        self.window = self.window.max((delivered * 2).min(self.largest));
        self.consumed = consumed;
    }

    fn raise_max_data(&mut self, now: Timestamp, consumed: u64) -> bool {
        let (since, _) = *self.since.get_or_insert((now, 0));
        if self.max_data - consumed > self.window / 2 {
            return false;
        }
        if self.rtt.is_some_and(|rtt| now.since(since) <= rtt * 2) {
            self.window = (self.window * 2).min(self.largest);
        }
        self.since = Some((now, consumed));
        self.max_data = consumed + self.window;
        true
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::units::Bytes;

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn autotuning(name: &str, initial: u64, largest: u64) -> Autotuning {
        let profile = Profile {
            initial_receive_window: Some(Bytes::new(initial)),
            receive_window: Bytes::new(largest),
            ..Profile::named(name).unwrap()
        };
        let mut window = Autotuning::new(&profile).unwrap();
        window.take_rtt(Duration::from_millis(100));
        window
    }

    #[test]
    fn tcp_announces_twice_what_an_rtt_delivered_and_never_less_than_before() {
        let mut window = autotuning("tcp-rfc", 6_000, 60_000);
        let mut limit = |ms, consumed| {
            window.on_data(at(ms), consumed);
            window.limit(consumed) - consumed
        };
        // The interval of 100 ms begins with the first data: twice 1,000 is less than 6,000, twice 6,000 is not.
        assert_eq!((limit(0, 1_000), limit(50, 6_000)), (6_000, 12_000));
        // The next RTTs bring 1,000 each.
        assert_eq!((limit(100, 7_000), limit(200, 8_000)), (12_000, 12_000));
        // 10,000, then 40,000 in all: 80,000, but the largest is 60,000.
        assert_eq!((limit(300, 18_000), limit(350, 48_000)), (20_000, 60_000));
    }

    #[test]
    fn quic_doubles_a_window_of_which_half_is_consumed_within_two_rtts() {
        let mut window = autotuning("rfc9002", 16_000, 100_000);
        let mut step = |ms, consumed| (window.on_data(at(ms), consumed), window.limit(consumed));
        // Half of 16,000 is not consumed, then it is, 150 ms after the first data: 8,000 + 32,000.
        assert_eq!(step(0, 1_000), (false, 16_000));
        assert_eq!(step(150, 8_000), (true, 40_000));
        // 40,000 - 24,000 = half of 32,000, 201 ms later: too slow to double.
        assert_eq!(step(351, 24_000), (true, 56_000));
        // 56,000 - 40,000 = 16,000: 40,000 + 64,000, then 72,000 + 100,000, the largest.
        assert_eq!(step(400, 40_000), (true, 104_000));
        assert_eq!(step(500, 71_999), (false, 104_000));
        assert_eq!(step(500, 72_000), (true, 172_000));
    }

    #[test]
    fn tcp_finds_the_rtt_by_the_time_a_window_takes() {
        let mut window = autotuning("tcp-rfc", 6_000, 60_000);
        (window.rtt, window.knows_rtt) = (None, false);
        for (ms, consumed) in [(0, 3_000), (5, 6_000), (90, 7_000)] {
            window.on_data(at(ms), consumed);
        }
        // The first byte beyond 6,000 comes after 90 ms. Until then 6,000 were delivered.
        assert_eq!(window.rtt, Some(Duration::from_millis(90)));
        assert_eq!(window.window, 12_000);
    }

    #[test]
    fn a_window_grows_only_where_the_profile_says_so() {
        assert!(Autotuning::new(&Profile::tcp_linux()).is_none());
    }
}
