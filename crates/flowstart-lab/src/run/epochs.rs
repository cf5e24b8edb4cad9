//! When a competitor counts as established: after some epochs of its window, each from one reduction to the next.

use flowstart_core::avoidance::{AvoidanceConfig, Kind};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};

use crate::spec::link::Link;

/// The substream from which competitors draw when they start.
pub(super) const STARTS: &str = "competitor start";
/// Epochs that pass before a newcomer may start.
const WARM_UP_EPOCHS: u64 = 3;
/// Fewest RTTs between two reductions that make an epoch; closer reductions are one long episode of loss.
const LEAST_EPOCH_RTTS: u64 = 10;
/// Longest warm-up: a competitor that never loses is established by then.
pub const WARM_UP_LIMIT: Duration = Duration::from_millis(180_000);
/// Longest warm-up of an algorithm that has no epochs, where time is real: three times the 10 s after which BBR looks
/// for the RTT again.
const WARM_UP_WITHOUT_EPOCHS: Duration = Duration::from_millis(30_000);

/// The epochs of a competitor so far.
#[derive(Clone, Copy, Debug)]
pub struct Epochs {
    last_cut: Timestamp,
    cycle: Duration,
    count: u64,
}

impl Epochs {
    /// There is none yet.
    pub fn new(now: Timestamp) -> Self {
        Self { last_cut: now, cycle: Duration::ZERO, count: 0 }
    }

    /// The window was reduced.
    pub fn cut(&mut self, now: Timestamp, rtt: Duration) {
        let since = now.since(self.last_cut);
        self.last_cut = now;
        // The first reduction ends startup, and a few more may follow immediately: in an epoch the window grows.
        if since > rtt * LEAST_EPOCH_RTTS {
            self.cycle = since;
            self.count += 1;
        }
    }

    /// Whether the competitor is established.
    pub fn are_enough(&self) -> bool {
        self.count > WARM_UP_EPOCHS
    }

    /// The time from the last reduction to this position, 0 to 1, in the next epoch.
    pub fn until(&self, phase: f64) -> Duration {
        self.cycle.scale(phase)
    }
}

/// The longest warm-up in real time of a competitor with this congestion avoidance.
pub fn longest_in_real_time(avoidance: &AvoidanceConfig) -> Duration {
    if avoidance.kind() == Kind::Integrated { WARM_UP_WITHOUT_EPOCHS } else { WARM_UP_LIMIT }
}

/// When each of several established flows starts, from the first possible time.
pub fn starts(link: &Link, seed: u64, count: u32) -> impl Iterator<Item = Duration> {
    let mut rng = Substream::new(seed, STARTS, 0);
    let rtt = link.rtt;
    (0..count).map(move |_| rtt.scale(rng.uniform() * f64::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_that_follow_each_other_closely_are_no_epochs() {
        let (at, rtt) = (|ms: u64| Timestamp::from_nanos(ms * 1_000_000), Duration::from_millis(50));
        let mut epochs = Epochs::new(at(0));
        // Startup ends after 600 ms, with three reductions; then an epoch takes 800 ms.
        for time in [600, 700, 900, 1700, 2500] {
            epochs.cut(at(time), rtt);
            assert!(!epochs.are_enough(), "{time}");
        }
        epochs.cut(at(3300), rtt);
        assert!(epochs.are_enough());
        assert_eq!(epochs.until(0.5), Duration::from_millis(400));
    }
}
