//! The largest value of the current round trip and of the previous ones in the window (`UpdateWindowedMaxFilter`).
//!
//! Differences from Linux, whose filter (`lib/win_minmax.c`) keeps three values: this one keeps one of every round, so
//! the remaining maximum is never too small when the largest value expires.

/// The largest value of each recent round.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMax<T, const PLACES: usize> {
    /// Round and its largest value.
    largest: [(u64, T); PLACES],
}

impl<T: Copy + Default, const PLACES: usize> Default for WindowedMax<T, PLACES> {
    fn default() -> Self {
        Self { largest: [(0, T::default()); PLACES] }
    }
}

impl<T: Copy + Default + Ord, const PLACES: usize> WindowedMax<T, PLACES> {
    /// Adds `value` to `round`, which is the newest. Returns the maximum of this round and of the `window` rounds
    /// before; there must be fewer of them than places.
    pub(super) fn update(&mut self, value: T, round: u64, window: u64) -> T {
        debug_assert!(window < PLACES as u64, "{window} rounds before the current one in {PLACES} places");
        let place = &mut self.largest[(round % PLACES as u64) as usize];
        *place = if place.0 == round { (round, place.1.max(value)) } else { (round, value) };
        let recent = self.largest.iter().filter(|(at, _)| at + window >= round);
        recent.map(|(_, value)| *value).max().unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_is_forgotten_after_as_many_rounds_as_the_window_holds() {
        let mut filter = WindowedMax::<u32, 11>::default();
        assert_eq!(filter.update(7, 1, 10), 7);
        assert_eq!(filter.update(9, 2, 10), 9);
        // A second value of a round counts if it is larger.
        assert_eq!(filter.update(3, 2, 10), 9);
        assert_eq!(filter.update(5, 12, 10), 9);
        // 2 + 10 < 13: the value of round 12 remains.
        assert_eq!(filter.update(4, 13, 10), 5);
        // Half of the window.
        assert_eq!(filter.update(1, 14, 1), 4);
    }
}
