//! Release times of packets for a pacing rate (RFC 9002, section 7.7).

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Decides when the next packet may leave.
///
/// A burst allowance lets the first packets after quiescence leave at once; after it each packet is followed by a gap
/// of its size over the rate. A host with coarse timers may release packets up to `quantum` early, so that they leave
/// in small groups; the gaps are counted from the planned times, so the rate is kept. With a timer that ticks at fixed
/// times, what falls due between two ticks leaves with the second.
#[derive(Clone, Debug)]
pub struct Pacer {
    quantum: Duration,
    tick: Duration,
    burst: Bytes,
    next_release: Timestamp,
}

impl Pacer {
    /// A pacer that may release up to `quantum` early.
    pub fn new(quantum: Duration) -> Self {
        Self { quantum, tick: Duration::ZERO, burst: Bytes::ZERO, next_release: Timestamp::ZERO }
    }

    /// From now on packets leave with the ticks of a timer of this granularity; zero: exactly.
    pub fn set_tick(&mut self, tick: Duration) {
        self.tick = tick;
    }

    /// Allows `burst` bytes to leave without gaps: at the launch, and when sending resumes with nothing in flight.
    pub fn allow_burst(&mut self, burst: Bytes) {
        self.burst = burst;
    }

    /// When the next packet may leave; a time not after `now` means at once.
    #[inline]
    pub fn release_time(&self, now: Timestamp) -> Timestamp {
        if self.burst > Bytes::ZERO || self.next_release <= now + self.quantum {
            return now;
        }
        match self.tick.as_nanos() {
            0 => self.next_release,
            tick => Timestamp::from_nanos(self.next_release.as_nanos().next_multiple_of(tick)),
        }
    }

    /// A packet of `bytes` left at `now` while the pacing rate was `rate`.
    #[inline]
    pub fn on_sent(&mut self, now: Timestamp, bytes: Bytes, rate: Rate) {
        if self.burst > Bytes::ZERO {
            self.burst = self.burst.saturating_sub(bytes);
            if self.burst > Bytes::ZERO {
                return;
            }
        }
        // A sender that was held up by the window or the application does not save its unused release times, but for those
        // that its timer has passed over.
        let earliest = Timestamp::from_nanos(now.as_nanos().saturating_sub(self.tick.as_nanos()));
        self.next_release = self.next_release.max(earliest) + rate.time_for(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` packets of 1250 bytes as early as the pacer allows; returns the release times in microseconds.
    fn releases(pacer: &mut Pacer, count: usize) -> alloc::vec::Vec<u64> {
        let mut now = Timestamp::ZERO;
        let mut times = alloc::vec::Vec::new();
        for _ in 0..count {
            now = now.max(pacer.release_time(now));
            times.push(now.as_nanos() / 1000);
            pacer.on_sent(now, Bytes::new(1250), Rate::from_mbit(10));
        }
        times
    }

    #[test]
    fn packets_are_spaced_by_their_size_over_the_rate() {
        // 1250 bytes at 10 Mbit/s: 1 ms each.
        assert_eq!(releases(&mut Pacer::new(Duration::ZERO), 4), [0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_burst_leaves_at_once_and_is_followed_by_gaps() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.allow_burst(Bytes::new(3750));
        assert_eq!(releases(&mut pacer, 5), [0, 0, 0, 1000, 2000]);
    }

    #[test]
    fn what_falls_due_between_two_ticks_leaves_with_the_second() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.set_tick(Duration::from_millis(3));
        // Planned for 0, 1, 2, 3, ... ms: those of 1 to 3 leave at 3 ms, those of 4 to 6 at 6 ms.
        assert_eq!(releases(&mut pacer, 8), [0, 3000, 3000, 3000, 6000, 6000, 6000, 9000]);
    }

    #[test]
    fn a_quantum_groups_packets_but_keeps_the_rate() {
        let times = releases(&mut Pacer::new(Duration::from_millis(2)), 9);
        assert_eq!(times, [0, 0, 0, 3000, 3000, 3000, 6000, 6000, 6000]);
    }
}
