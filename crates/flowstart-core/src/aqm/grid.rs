//! Periodic timers that may pause: they fire on a grid, so a pause changes nothing else.

use crate::time::{Duration, Timestamp};

/// The first multiple of `period` after `now`: where a timer that never paused would fire next.
pub fn next_on_grid(now: Timestamp, period: Duration) -> Timestamp {
    let period = period.as_nanos().max(1);
    Timestamp::from_nanos((now.as_nanos() / period).saturating_add(1).saturating_mul(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_multiple_is_later() {
        let next = |nanos| next_on_grid(Timestamp::from_nanos(nanos), Duration::from_nanos(10)).as_nanos();
        assert_eq!([next(0), next(9), next(10), next(11)], [10, 10, 20, 20]);
        assert_eq!(next_on_grid(Timestamp::NEVER, Duration::from_nanos(10)), Timestamp::NEVER);
    }
}
