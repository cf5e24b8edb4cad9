//! Release times of packets for a pacing rate (RFC 9002, section 7.7).

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Time whose packets may leave together (`BBR.SetSendQuantum`).
const QUANTUM_TIME: Duration = Duration::from_millis(1);
/// Largest quantum (`BBR.SetSendQuantum`).
const QUANTUM_MAX: Bytes = Bytes::new(64_000);

/// `C.send_quantum` of draft-ietf-ccwg-bbr, section 5.6.3: bytes that may be scheduled together, as one batch of
/// segmentation offload. It is what is sent at `rate` in a millisecond, at least two segments and at most 64 KB;
/// without a rate it is the maximum.
#[inline]
pub fn send_quantum(rate: Option<Rate>, segment: Bytes) -> Bytes {
    rate.map_or(QUANTUM_MAX, |rate| rate.amount_in(QUANTUM_TIME)).min(QUANTUM_MAX).max(segment * 2)
}

/// What leaves together.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// When it began, and when it was due, if that is later.
    began: Timestamp,
    due: Timestamp,
    /// How much it still holds.
    rest: Bytes,
    /// How long it was held up.
    held_up: Duration,
    /// What its packets take at the rate.
    gap: Duration,
}

/// Decides when the next packet may leave.
///
/// A burst allowance lets the first packets after quiescence leave at once; after it each packet is followed by a gap
/// of its size over the rate. A host with coarse timers may release packets up to `quantum` early, so that they leave
/// in small groups; the gaps are counted from the planned times, so the rate is kept. With a timer that ticks at fixed
/// times, packets that fall due between two ticks leave with the second.
///
/// A host whose interface segments packets (TSO) hands over groups. A group leaves at once when its first packet is
/// due, and is followed by a gap of its whole size over the rate. A group ends early when nothing more may be sent at
/// the time. If a group was delayed, the gap after it is shorter by the delay, but by no more than half of the group's
/// gap (Linux, `tcp_update_skb_after_send`).
#[derive(Clone, Debug)]
pub struct Pacer {
    quantum: Duration,
    tick: Duration,
    lateness: Duration,
    burst: Bytes,
    group: Bytes,
    current: Group,
    next_release: Timestamp,
}

impl Pacer {
    /// A pacer that may release up to `quantum` early.
    pub fn new(quantum: Duration) -> Self {
        Self {
            quantum,
            tick: Duration::ZERO,
            lateness: Duration::ZERO,
            burst: Bytes::ZERO,
            group: Bytes::ZERO,
            current: Group::default(),
            next_release: Timestamp::ZERO,
        }
    }

    /// From now on packets leave with the ticks of a timer of this granularity; zero: at their exact times.
    pub fn set_tick(&mut self, tick: Duration) {
        self.tick = tick;
    }

    /// From now on a packet may leave up to this much late without moving those behind it, because the host's timers
    /// are late. A sender that waited for something else saves as much time.
    pub fn set_lateness(&mut self, lateness: Duration) {
        self.lateness = lateness;
    }

    /// Allows `burst` bytes to leave without gaps: at the launch, and when sending resumes with nothing in flight.
    pub fn allow_burst(&mut self, burst: Bytes) {
        self.burst = burst;
    }

    /// From now on packets leave in groups of `group` bytes; zero: one by one.
    #[inline]
    pub fn set_group(&mut self, group: Bytes) {
        self.group = group;
    }

    /// Whether the group that began at `now` has room for more.
    #[inline]
    fn continues_group(&self, now: Timestamp) -> bool {
        self.current.began == now && self.current.rest > Bytes::ZERO
    }

    /// When the next packet may leave; a time not after `now` means at once.
    #[inline]
    pub fn release_time(&self, now: Timestamp) -> Timestamp {
        if self.burst > Bytes::ZERO || self.next_release <= now + self.quantum || self.continues_group(now) {
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
            // Nothing of a burst was late.
            if self.lateness > Duration::ZERO {
                self.next_release = self.next_release.max(now);
            }
            if self.burst > Bytes::ZERO {
                return;
            }
        }
        if self.group > Bytes::ZERO {
            return self.send_in_group(now, bytes, rate);
        }
        // A sender that waited for the window or the application does not save its unused release times, except those
        // that its timer has skipped.
        let skipped = self.tick.max(self.lateness);
        let earliest = Timestamp::from_nanos(now.as_nanos().saturating_sub(skipped.as_nanos()));
        self.next_release = self.next_release.max(earliest) + rate.time_for(bytes);
    }

    /// As [`Pacer::on_sent`], for a packet that begins or continues a group.
    fn send_in_group(&mut self, now: Timestamp, bytes: Bytes, rate: Rate) {
        if !self.continues_group(now) {
            let (due, held_up) = (self.next_release.max(now), now.since(self.next_release));
            self.current = Group { began: now, due, rest: self.group, held_up, gap: Duration::ZERO };
        }
        let group = &mut self.current;
        group.rest = group.rest.saturating_sub(bytes);
        group.gap += rate.time_for(bytes);
        self.next_release = group.due + group.gap.saturating_sub(group.held_up.min(group.gap / 2));
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
    fn a_late_timer_moves_nothing_that_comes_behind() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.set_lateness(Duration::from_millis(2));
        let micros = |time: Timestamp| time.as_nanos() / 1000;
        let at = |micros: u64| Timestamp::from_nanos(micros * 1000);
        pacer.allow_burst(Bytes::new(1250));
        let mut send = |now| {
            pacer.on_sent(at(now), Bytes::new(1250), Rate::from_mbit(10));
            micros(pacer.release_time(Timestamp::ZERO))
        };
        // After a burst nothing is saved. Then 1.5 ms late; then 5 ms late, of which 2 are made up for.
        assert_eq!((send(10_000), send(12_500), send(17_000)), (11_000, 12_000, 16_000));
    }

    #[test]
    fn a_millisecond_leaves_together_but_two_segments_at_least_and_64_kb_at_most() {
        let quantum = |mbit| send_quantum(Some(Rate::from_mbit(mbit)), Bytes::new(1200)).get();
        // 1 Mbit/s are 125 bytes in a millisecond, 100 Mbit/s are 12,500, 1 Gbit/s are 125,000.
        assert_eq!((quantum(1), quantum(100), quantum(1000)), (2400, 12_500, 64_000));
        assert_eq!(send_quantum(None, Bytes::new(1200)), Bytes::new(64_000));
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
    fn a_group_leaves_at_once_and_is_followed_by_its_gap() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.set_group(Bytes::new(2500));
        assert_eq!(releases(&mut pacer, 7), [0, 0, 2000, 2000, 4000, 4000, 6000]);
        // A group that the window cut short is over: the next packet is due 1 ms after the one at 6 ms.
        let at = |millis| Timestamp::ZERO + Duration::from_millis(millis);
        assert_eq!(pacer.release_time(at(6)), at(6));
        assert_eq!(pacer.release_time(Timestamp::from_nanos(6_000_001)), at(7));
    }

    #[test]
    fn the_gap_after_a_group_that_was_held_up_is_at_most_halved() {
        let at = |micros| Timestamp::ZERO + Duration::from_micros(micros);
        let next = |held_up: u64| {
            let mut pacer = Pacer::new(Duration::ZERO);
            pacer.set_group(Bytes::new(1250));
            pacer.on_sent(at(0), Bytes::new(1250), Rate::from_mbit(10));
            // Due at 1 ms.
            pacer.on_sent(at(1000 + held_up), Bytes::new(1250), Rate::from_mbit(10));
            pacer.release_time(at(1000 + held_up)).since(at(1000 + held_up))
        };
        assert_eq!(next(0), Duration::from_micros(1000));
        assert_eq!(next(300), Duration::from_micros(700));
        assert_eq!(next(900), Duration::from_micros(500));
    }

    #[test]
    fn the_gap_of_a_group_is_shortened_as_a_whole() {
        let at = |micros| Timestamp::ZERO + Duration::from_micros(micros);
        let next = |held_up: u64| {
            let mut pacer = Pacer::new(Duration::ZERO);
            pacer.set_group(Bytes::new(2500));
            // Four packets of 1 ms in two groups: the second is due at 2 ms.
            for sent in [0, 0, 2000 + held_up, 2000 + held_up] {
                assert!(pacer.release_time(at(sent)) <= at(sent));
                pacer.on_sent(at(sent), Bytes::new(1250), Rate::from_mbit(10));
            }
            pacer.release_time(at(2000 + held_up)).since(at(2000 + held_up))
        };
        assert_eq!(next(0), Duration::from_micros(2000));
        assert_eq!(next(700), Duration::from_micros(1300));
        // Half of the 2 ms, not of the first packet's.
        assert_eq!(next(5000), Duration::from_micros(1000));
    }

    #[test]
    fn a_quantum_groups_packets_but_keeps_the_rate() {
        let times = releases(&mut Pacer::new(Duration::from_millis(2)), 9);
        assert_eq!(times, [0, 0, 0, 3000, 3000, 3000, 6000, 6000, 6000]);
    }
}
