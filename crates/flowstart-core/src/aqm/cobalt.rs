//! COBALT ("`CoDel` BLUE alternate"): the law of `cake`, for one queue.
//!
//! Reference: T. Høiland-Jørgensen, D. Täht and J. Morton, "Piece of CAKE: A Comprehensive Queue Management
//! Solution for Home Gateways", LANMAN 2018, and Linux (`sch_cake`). `CoDel` signals to flows that respond: the
//! first signal comes an interval after packets begin to wait longer than the target, the next ones interval /
//! sqrt(count) later. While packets wait less, count falls at the same pace. BLUE (Feng et al., "The BLUE Active
//! Queue Management Algorithms", IEEE/ACM `ToN` 10 (4), 2002) drops at random what does not respond: its
//! probability rises when the queue overflows, and falls when it is empty.
//!
//! `CoDel` here differs from RFC 8289 (`codel.rs`): one time serves for the first signal and all others, count falls
//! step by step instead of all at once, a signal is one per packet that leaves, and several packets in excess of the
//! target may wait while the link is slow (`mtu_time`).
//!
//! Differences from the reference: roots are exact, not approximated in 32 bits. In Linux a queue in which no packet
//! has waited too long since the router started signals with the second one that does; here it waits for an interval,
//! as in Linux from the second time on. So the first signal of a new queue is up to an interval later here.
//!
//! Status: agrees with Linux's functions on a recorded trace of 1000 events (`tests/cobalt.rs`); worked examples.

use super::QueuedPacket;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Largest packet: 1500 bytes and the header of Ethernet.
pub const MTU: Bytes = Bytes::new(1514);
/// BLUE's probability rises by this much at a time (`p_inc`, 2^24 of 2^32).
const P_INC: f64 = 1.0 / 256.0;
/// BLUE's probability falls by this much at a time (`p_dec`, 2^20 of 2^32).
const P_DEC: f64 = 1.0 / 4096.0;

/// Parameters of the law, named as in Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Time between the first packet that waits too long and the first signal.
    pub interval: Duration,
    /// Delay that may persist, and the shortest time between two changes of BLUE's probability.
    pub target: Duration,
    /// Time that the link needs for the largest packet.
    pub mtu_time: Duration,
}

impl Params {
    /// Parameters on a link of this rate, for these times on a fast one. On a slow link the target is one and a half of
    /// the largest packets, and the interval grows with it.
    pub fn new(target: Duration, interval: Duration, rate: Option<Rate>) -> Self {
        let mtu_time = rate.map_or(Duration::ZERO, |rate| rate.time_for(MTU));
        let raised = (mtu_time * 3 / 2).max(target);
        Self { target: raised, interval: (interval + raised.saturating_sub(target)).max(raised * 2), mtu_time }
    }
}

/// The law's state for one queue, named as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vars {
    /// How often to signal: interval / sqrt(count) is the time between two signals.
    pub count: u32,
    /// When the next signal is due; without signals, when the queue counts as idle.
    pub drop_next: Timestamp,
    /// When BLUE's probability changed last.
    blue_timer: Timestamp,
    /// BLUE's probability.
    pub p_drop: f64,
    /// Packets wait longer than the target.
    pub dropping: bool,
}

/// What the law says of a packet that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The packet has been marked.
    pub marked: bool,
    /// The packet is to be dropped, unless it is the last of its queue.
    pub drop: bool,
}

impl Vars {
    /// A packet of the queue is dropped for want of room.
    pub fn queue_full(&mut self, params: &Params, now: Timestamp) {
        if now.since(self.blue_timer) > params.target {
            self.p_drop = (self.p_drop + P_INC).min(1.0);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue had its turn and was empty.
    pub fn queue_empty(&mut self, params: &Params, now: Timestamp) {
        if self.p_drop > 0.0 && now.since(self.blue_timer) > params.target {
            self.p_drop = (self.p_drop - P_DEC).max(0.0);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.count -= 1;
            self.drop_next = self.control_law(params, self.drop_next);
        }
    }

    /// A packet is taken from the queue; `random` draws from [0, 1). Marks the packet if it is the one to signal with.
    pub fn on_packet(
        &mut self,
        params: &Params,
        now: Timestamp,
        packet: &mut QueuedPacket,
        random: impl FnOnce() -> f64,
    ) -> Verdict {
        let sojourn = packet.sojourn(now);
        let is_due = self.is_due(now);
        // Of the time that was due before this packet, or of the last one that it has passed.
        let mut is_past = now > self.drop_next;
        let was_dropping = self.dropping;
        self.dropping = sojourn > params.target && sojourn > params.mtu_time * 4;
        if self.dropping {
            if !was_dropping {
                self.drop_next = self.control_law(params, now);
            }
            self.count = self.count.max(1);
        }
        let mut verdict = Verdict::default();
        if is_due && self.dropping {
            verdict.marked = packet.mark();
            verdict.drop = !verdict.marked;
            self.count = self.count.saturating_add(1);
            self.drop_next = self.control_law(params, self.drop_next);
            is_past = now > self.drop_next;
        } else if is_due {
            while self.is_due(now) {
                self.count -= 1;
                self.drop_next = self.control_law(params, self.drop_next);
            }
            is_past = now > self.drop_next;
        }
        // Senders that do not respond to marks are to notice.
        verdict.drop |= self.p_drop > 0.0 && random() < self.p_drop;
        if self.count == 0 {
            self.drop_next = now + params.interval;
        } else if is_past && !verdict.drop {
            self.drop_next = now;
        }
        verdict
    }

    /// Whether the law has forgotten all that happened.
    pub fn is_at_rest(&self, now: Timestamp) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    /// Whether a signal is due, or a step back to fewer signals.
    fn is_due(&self, now: Timestamp) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// The time of the signal that follows one at `time`.
    fn control_law(&self, params: &Params, time: Timestamp) -> Timestamp {
        time + params.interval.scale(1.0 / libm::sqrt(f64::from(self.count.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::EcnCodepoint;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + ms(10_000 + millis)
    }

    const PARAMS: Params =
        Params { interval: Duration::from_millis(100), target: Duration::from_millis(5), mtu_time: Duration::ZERO };

    /// A packet taken at `now` that has waited for `waited` milliseconds; BLUE draws 0.5.
    fn packet(vars: &mut Vars, now: Timestamp, waited: u64, ecn: EcnCodepoint) -> Verdict {
        let mut packet = QueuedPacket { handle: 0, size: 1514, flow: 0, ecn, enqueued_at: now - ms(waited) };
        vars.on_packet(&PARAMS, now, &mut packet, || 0.5)
    }

    fn drops(vars: &mut Vars, millis: u64, waited: u64) -> bool {
        packet(vars, at(millis), waited, EcnCodepoint::NotEct).drop
    }

    #[test]
    fn a_slow_link_raises_target_and_interval() {
        // 1514 B at 1 Mbit/s take 12.112 ms: target 18.168 ms, and the interval grows by 13.168 ms.
        let slow = Params::new(ms(5), ms(100), Some(Rate::from_mbit(1)));
        assert_eq!(slow.mtu_time, Duration::from_micros(12_112));
        assert_eq!((slow.target, slow.interval), (Duration::from_micros(18_168), Duration::from_micros(113_168)));
        // At 20 Mbit/s 0.6056 ms are below the target.
        let fast = Params::new(ms(5), ms(100), Some(Rate::from_mbit(20)));
        assert_eq!((fast.target, fast.interval, fast.mtu_time), (ms(5), ms(100), Duration::from_nanos(605_600)));
        // The interval is at least two targets.
        assert_eq!(Params::new(ms(5), ms(6), None).interval, ms(10));
    }

    #[test]
    fn the_first_signal_comes_an_interval_after_the_first_delay_and_then_ever_sooner() {
        let mut vars = Vars::default();
        assert!(!drops(&mut vars, 0, 1));
        let times: Vec<u64> = (10..=310).filter(|time| drops(&mut vars, *time, 20)).collect();
        // 10 + 100, + 100 / sqrt(2) = 180.7, + 100 / sqrt(3) = 238.4, + 100 / sqrt(4) = 288.4; a packet each ms.
        assert_eq!(times, [110, 181, 239, 289]);
        assert_eq!(vars.count, 5);
    }

    #[test]
    fn a_burst_after_a_long_silence_is_signalled_at_once() {
        // The second packet after more than an interval without any, as in Linux.
        let mut vars = Vars::default();
        assert!(!drops(&mut vars, 0, 1));
        assert!(!drops(&mut vars, 101, 20) && drops(&mut vars, 102, 20));
    }

    #[test]
    fn count_falls_at_the_pace_at_which_it_rose() {
        let mut vars = Vars { count: 3, drop_next: at(0), dropping: true, ..Vars::default() };
        // Steps back at 0 (count 2), 70.7 (1) and 170.7 ms (0).
        for (time, count) in [(0, 2), (70, 2), (71, 1), (170, 1), (171, 0)] {
            assert!(!drops(&mut vars, time, 1));
            assert_eq!(vars.count, count, "{time}");
        }
        assert!(!vars.is_at_rest(at(270)) && vars.is_at_rest(at(271)));
    }

    #[test]
    fn four_packets_may_wait_on_a_slow_link() {
        let params = Params::new(ms(5), ms(100), Some(Rate::from_mbit(1)));
        let mut vars = Vars::default();
        let mut dropping_after = |waited: u64| {
            let mut packet = QueuedPacket {
                handle: 0,
                size: 1514,
                flow: 0,
                ecn: EcnCodepoint::NotEct,
                enqueued_at: at(0) - Duration::from_micros(waited),
            };
            vars.on_packet(&params, at(0), &mut packet, || 0.5);
            vars.dropping
        };
        // 4 * 12.112 ms = 48.448 ms, above the target of 18.168 ms.
        assert!(!dropping_after(48_448));
        assert!(dropping_after(48_449));
    }

    #[test]
    fn a_packet_that_can_be_marked_is_not_dropped_by_codel_but_by_blue() {
        let mut vars = Vars { count: 1, drop_next: at(0), dropping: true, ..Vars::default() };
        assert_eq!(packet(&mut vars, at(0), 20, EcnCodepoint::Ect0), Verdict { marked: true, drop: false });
        let mut blue = Vars { p_drop: 0.6, ..vars };
        assert_eq!(packet(&mut blue, at(1), 20, EcnCodepoint::Ect0), Verdict { marked: false, drop: true });
    }

    #[test]
    fn blue_rises_with_overflow_and_falls_sixteen_times_slower_when_idle() {
        let mut vars = Vars::default();
        // Two overflows in a target count once: 1/256, and 2/256 after a third 6 ms later.
        [0, 2, 8].into_iter().for_each(|time| vars.queue_full(&PARAMS, at(time)));
        assert!((vars.p_drop - 2.0 / 256.0).abs() < 1e-15);
        let steps = (1..).find(|step| {
            vars.queue_empty(&PARAMS, at(8 + 6 * step));
            vars.p_drop == 0.0
        });
        // 2/256 in steps of 1/4096.
        assert_eq!(steps, Some(32));
    }
}
