//! One window for parallel connections to the same peer: a newcomer takes a share of what the others have, and they
//! give it up.
//!
//! Reference: RFC 9040, section 7 (ensemble sharing of TCP control blocks); RFC 3124, section 2 (the macroflow of the
//! Congestion Manager); RFC 7661, section 4.4.3 (how long a window that nobody uses is kept). The windows of all
//! connections that send make the aggregate. A connection that begins to send takes an equal share of it, from the
//! others in proportion to their windows, so the path carries no more than before. One that has nothing to send gives
//! its window to the others in the same proportion. The window of the last one is kept for the next, for
//! [`NONVALIDATED_PERIOD`]; half of it if it has not left slow start, because no more than that was delivered in a
//! round trip (`pipeACK` of RFC 7661, section 4.2).
//!
//! Differences from the references: connections keep their own congestion control after they started, as in RFC 9040;
//! the Congestion Manager has one control for all. RFC 9040 leaves the windows of the older connections to the
//! implementation; here they shrink, because otherwise the aggregate would grow with every connection. Nobody has less
//! than the least window, so many connections over a path with a small window do exceed it. A member learns of its
//! new window with its next report, an acknowledgement later. RFC 7661 lets an unused window shrink after five minutes;
//! here it is forgotten. A host that has no ensemble without connections keeps nothing after the last one has gone.
//!
//! Status: worked examples, random sequences that keep the aggregate, and `scenarios/sharing.toml`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::controller::NONVALIDATED_PERIOD;
use crate::path::Concurrent;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::window::Window;

/// Most members. Who comes when there are so many starts as it would alone, and shares nothing until it comes again: a
/// peer can open many connections, and each that comes or goes costs a step for every member.
pub const MOST_MEMBERS: usize = 1024;

/// What a member that sends has.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Its window as the ensemble sees it.
    window: Bytes,
    /// Its window as its congestion control reported it last. The difference is what others gave or took since.
    reported: Bytes,
    ssthresh: Bytes,
    rtt: Duration,
}

impl Member {
    /// What others gave it since its last report, and what they took.
    fn moved(&self) -> (Bytes, Bytes) {
        (self.window.saturating_sub(self.reported), self.reported.saturating_sub(self.window))
    }
}

/// The windows of all connections to one peer that send.
#[derive(Clone, Debug)]
pub struct Ensemble {
    least: Bytes,
    members: BTreeMap<u64, Member>,
    /// The last member that had nothing more to send, its key, and when that was.
    kept: Option<(Timestamp, u64, Member)>,
}

impl Ensemble {
    /// An ensemble without members. Nobody gets less than `least`; two segments are the smallest window of RFC 9002,
    /// section 7.2.
    pub const fn new(least: Bytes) -> Self {
        Self { least, members: BTreeMap::new(), kept: None }
    }

    /// The sum of all windows.
    fn aggregate(&self) -> Bytes {
        self.members.values().map(|member| member.window).fold(Bytes::ZERO, |sum, window| sum + window)
    }

    /// A connection begins to send, for the first time or again: its share, which the others give up; `None` if nobody
    /// else sends and no other's window is kept, so it starts or goes on as it would alone. `key` is the host's name
    /// for it.
    pub fn enter(&mut self, now: Timestamp, key: u64) -> Option<Concurrent> {
        self.leave(now, key);
        let is_fresh = |since: Timestamp| now.since(since) <= NONVALIDATED_PERIOD;
        let kept = self.kept.take().filter(|(since, ..)| is_fresh(*since));
        let (share, is_known, rtt) = match (self.members.values().map(|member| member.rtt).min(), kept) {
            (Some(_), _) if self.members.len() >= MOST_MEMBERS => return None,
            (Some(smallest), _) => {
                let share = (self.aggregate() / (self.members.len() as u64 + 1)).max(self.least);
                (share, self.members.values().any(|member| member.ssthresh < Bytes::MAX), smallest)
            }
            // Nobody else has used its window meanwhile.
            (None, Some((_, last, _))) if last == key => return None,
            (None, Some((.., last))) if last.ssthresh == Bytes::MAX => {
                ((last.window / 2).max(self.least), false, last.rtt)
            }
            (None, Some((.., last))) => (last.window, true, last.rtt),
            (None, None) => return None,
        };
        let ssthresh = if is_known { share } else { Bytes::MAX };
        self.take(share);
        self.members.insert(key, Member { window: share, reported: share, ssthresh, rtt });
        Some(Concurrent { rtt, window: Window { cwnd: share, ssthresh } })
    }

    /// What the congestion control of a connection has now; it sends from now on, if it did not. Returns its window if
    /// others have changed it since its last report.
    pub fn report(&mut self, key: u64, window: Window, rtt: Duration) -> Option<Bytes> {
        let Window { cwnd, ssthresh } = window;
        let Some(member) = self.members.get_mut(&key) else {
            if self.members.len() < MOST_MEMBERS {
                self.members.insert(key, Member { window: cwnd, reported: cwnd, ssthresh, rtt });
            }
            return None;
        };
        let (given, taken) = member.moved();
        let due = (cwnd + given).saturating_sub(taken).max(self.least.min(cwnd));
        *member = Member { window: due, reported: due, ssthresh, rtt };
        (due != cwnd).then_some(due)
    }

    /// A connection has nothing more to send, for now or for ever: its window goes to the others. The last one's is
    /// kept.
    pub fn leave(&mut self, now: Timestamp, key: u64) {
        let Some(left) = self.members.remove(&key) else { return };
        if self.members.is_empty() {
            self.kept = Some((now, key, left));
            return;
        }
        let weights: Vec<u64> = self.members.values().map(|member| member.window.get().max(1)).collect();
        for (member, part) in self.members.values_mut().zip(divided(left.window.get(), &weights)) {
            member.window += Bytes::new(part);
        }
    }

    /// Takes `share` from the members in proportion to their windows above the minimum, as far as they go.
    fn take(&mut self, share: Bytes) {
        let spare: Vec<u64> =
            self.members.values().map(|member| member.window.saturating_sub(self.least).get()).collect();
        let all = spare.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        for (member, part) in self.members.values_mut().zip(divided(share.get().min(all), &spare)) {
            member.window = member.window.saturating_sub(Bytes::new(part));
        }
    }
}

/// `amount` in parts that are proportional to `weights`; what rounding leaves goes to the first, a byte each, and no
/// part exceeds its weight as long as `amount` does not exceed their sum.
fn divided(amount: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if all == 0 {
        return alloc::vec![0; weights.len()];
    }
    let part = |weight: &u64| (u128::from(amount) * u128::from(*weight) / all) as u64;
    let mut parts: Vec<u64> = weights.iter().map(part).collect();
    let mut left = amount.saturating_sub(parts.iter().sum());
    for (part, weight) in parts.iter_mut().zip(weights) {
        if left > 0 && *weight > 0 {
            *part += 1;
            left -= 1;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAST: Bytes = Bytes::new(2920);
    const RTT: Duration = Duration::from_millis(60);
    const NOW: Timestamp = Timestamp::ZERO;

    fn in_slow_start(cwnd: u64) -> Window {
        Window { cwnd: Bytes::new(cwnd), ssthresh: Bytes::MAX }
    }

    fn with(windows: &[u64]) -> Ensemble {
        let mut ensemble = Ensemble::new(LEAST);
        for (key, window) in (0..).zip(windows) {
            assert_eq!(ensemble.report(key, in_slow_start(*window), RTT), None);
        }
        ensemble
    }

    fn windows(ensemble: &Ensemble) -> Vec<u64> {
        ensemble.members.values().map(|member| member.window.get()).collect()
    }

    #[test]
    fn the_first_one_starts_as_it_would_alone() {
        assert_eq!(Ensemble::new(LEAST).enter(NOW, 7), None);
    }

    #[test]
    fn a_newcomer_gets_an_equal_share_and_the_aggregate_stays() {
        // 62,920 + 32,920 = 95,840; a third is 31,946. Above the least the others have 60,000 and 30,000, so they give
        // 31,946 * 2/3 = 21,297 and 31,946 / 3 = 10,648, and the byte that is left comes from the first.
        let mut ensemble = with(&[62_920, 32_920]);
        let shared = ensemble.enter(NOW, 2).unwrap();
        assert_eq!(shared, Concurrent { rtt: RTT, window: in_slow_start(31_946) });
        assert_eq!(windows(&ensemble), [62_920 - 21_298, 32_920 - 10_648, 31_946]);
        assert_eq!(ensemble.aggregate(), Bytes::new(95_840));
        // The others learn of it with their next report, once, on top of what they did themselves.
        assert_eq!(ensemble.report(0, in_slow_start(64_420), RTT), Some(Bytes::new(64_420 - 21_298)));
        assert_eq!(ensemble.report(0, in_slow_start(43_122), RTT), None);
    }

    #[test]
    fn a_newcomer_is_beyond_slow_start_once_one_of_the_others_is() {
        let mut ensemble = with(&[60_000, 60_000]);
        let left = Window { cwnd: Bytes::new(60_000), ssthresh: Bytes::new(50_000) };
        ensemble.report(0, left, Duration::from_millis(50));
        let Concurrent { rtt, window } = ensemble.enter(NOW, 2).unwrap();
        assert_eq!((rtt, window.cwnd, window.ssthresh), (Duration::from_millis(50), window.cwnd, window.cwnd));
    }

    #[test]
    fn what_one_leaves_goes_to_the_others_in_proportion() {
        // 30,000 to 60,000 and 30,000: 20,000 and 10,000.
        let mut ensemble = with(&[60_000, 30_000, 30_000]);
        ensemble.leave(NOW, 2);
        assert_eq!(windows(&ensemble), [80_000, 40_000]);
        assert_eq!(ensemble.report(1, in_slow_start(30_000), RTT), Some(Bytes::new(40_000)));
        ensemble.leave(NOW, 0);
        assert_eq!(windows(&ensemble), [120_000]);
        ensemble.leave(NOW, 5);
        assert_eq!(windows(&ensemble), [120_000], "nobody has this key");
    }

    #[test]
    fn the_last_window_is_kept_for_five_minutes() {
        let left_at = |ssthresh| {
            let mut ensemble = Ensemble::new(LEAST);
            ensemble.report(0, Window { cwnd: Bytes::new(60_000), ssthresh }, RTT);
            ensemble.leave(NOW, 0);
            ensemble
        };
        // In slow start half of it was delivered.
        let unconfirmed = left_at(Bytes::MAX).enter(NOW, 1).unwrap();
        assert_eq!(unconfirmed.window, in_slow_start(30_000));
        let ensemble = left_at(Bytes::new(60_000));
        assert_eq!(ensemble.clone().enter(NOW, 0), None, "it goes on with its own");
        let after = |time| ensemble.clone().enter(NOW + time, 1).map(|shared| shared.window.cwnd);
        assert_eq!(after(NONVALIDATED_PERIOD), Some(Bytes::new(60_000)));
        assert_eq!(after(NONVALIDATED_PERIOD + Duration::from_nanos(1)), None);
        // It is not given away twice.
        let mut ensemble = ensemble;
        ensemble.enter(NOW, 1);
        assert_eq!(ensemble.enter(NOW, 2).unwrap().window.cwnd, Bytes::new(30_000));
        assert_eq!(ensemble.aggregate(), Bytes::new(60_000));
    }

    #[test]
    fn nobody_gets_less_than_the_least() {
        let mut ensemble = with(&[3920, 2920]);
        // A third of 6840 is 2280, less than 2920. The first can give 1000; the aggregate grows by the rest.
        assert_eq!(ensemble.enter(NOW, 2).unwrap().window.cwnd, LEAST);
        assert_eq!(windows(&ensemble), [2920, 2920, 2920]);
    }

    #[test]
    fn who_comes_when_it_is_full_starts_alone() {
        let mut ensemble = with(&[100_000; MOST_MEMBERS]);
        assert_eq!(ensemble.enter(NOW, 5000), None);
        assert_eq!(ensemble.report(5000, in_slow_start(12_000), RTT), None);
        assert_eq!(ensemble.members.len(), MOST_MEMBERS);
        ensemble.leave(NOW, 0);
        assert!(ensemble.enter(NOW, 5000).is_some());
    }

    #[test]
    fn a_loss_beside_a_gift_counts_both() {
        let mut ensemble = with(&[60_000, 60_000]);
        ensemble.leave(NOW, 1);
        // Its own loss took 30,000; the other's 60,000 come on top.
        assert_eq!(ensemble.report(0, in_slow_start(30_000), RTT), Some(Bytes::new(90_000)));
    }

    proptest! {
        #[test]
        fn coming_and_leaving_keeps_the_aggregate(
            start in prop::collection::vec(3000u64..10_000_000, 1..6),
            steps in prop::collection::vec((0u8..3, any::<prop::sample::Index>()), 0..40),
        ) {
            let mut ensemble = with(&start);
            let mut keys: Vec<u64> = (0..start.len() as u64).collect();
            let mut next = keys.len() as u64;
            for (what, which) in steps {
                let before = ensemble.aggregate();
                let key = keys[which.index(keys.len())];
                match what {
                    0 => {
                        let share = ensemble.enter(NOW, next).unwrap().window.cwnd;
                        keys.push(next);
                        next += 1;
                        let needed = LEAST * keys.len() as u64;
                        prop_assert!(ensemble.aggregate() == before || before < needed + LEAST);
                        prop_assert!(share >= LEAST);
                    }
                    1 if keys.len() > 1 => {
                        keys.retain(|other| *other != key);
                        ensemble.leave(NOW, key);
                        prop_assert_eq!(ensemble.aggregate(), before);
                    }
                    _ => {
                        // A member that did nothing itself since it entered takes over what the ensemble gave it.
                        let member = ensemble.members[&key];
                        let told = ensemble.report(key, in_slow_start(member.reported.get()), RTT);
                        prop_assert_eq!(told.unwrap_or(member.reported), member.window);
                        prop_assert_eq!(ensemble.aggregate(), before);
                    }
                }
                prop_assert_eq!(ensemble.members.len(), keys.len());
                prop_assert!(windows(&ensemble).into_iter().all(|window| window >= LEAST.get()));
            }
        }

        #[test]
        fn parts_sum_up_and_stay_within_their_weights(
            weights in prop::collection::vec(0u64..u64::MAX / 100, 1..20), percent in 0u64..=100,
        ) {
            let all: u64 = weights.iter().sum();
            let amount = (u128::from(all) * u128::from(percent) / 100) as u64;
            let parts = divided(amount, &weights);
            prop_assert_eq!(parts.iter().sum::<u64>(), amount);
            prop_assert!(parts.iter().zip(&weights).all(|(part, weight)| part <= weight));
        }
    }
}
