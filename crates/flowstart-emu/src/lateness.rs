//! How late packets leave, as a distribution in little memory.

use flowstart_core::time::Duration;

/// Classes for each power of two, so a class is at most 1/16 wide.
const CLASSES: u64 = 16;
/// Classes of all times of 64 bits: those below [`CLASSES`] nanoseconds have one for each.
const ALL: usize = ((64 - CLASSES.ilog2() as usize) + 1) * CLASSES as usize;

/// The goal for departures at 1 Gbit/s. What leaves later had another link than the one that was asked for.
pub const TOO_LATE: Duration = Duration::from_micros(500);

/// Counts of times.
#[derive(Clone)]
pub(crate) struct Lateness {
    counts: Box<[u64; ALL]>,
    count: u64,
    too_late: u64,
    largest: Duration,
}

/// What a distribution says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// Half of the packets were not later; at most 1/16 too high, as is the next.
    pub median: Duration,
    /// 99 of 100 were not later.
    pub p99: Duration,
    /// None was later.
    pub largest: Duration,
    /// Packets.
    pub count: u64,
    /// Those that were later than [`TOO_LATE`].
    pub too_late: u64,
}

/// Fewest packets that are a sign: a single one may be late on any host.
const FEWEST: u64 = 10;

impl Late {
    /// Whether results may show this host in place of its link: more than one of 100 packets were too late.
    pub fn shows_host(&self) -> bool {
        self.too_late >= FEWEST && u128::from(self.too_late) * 100 > self.count.into()
    }
}

impl std::fmt::Debug for Lateness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.late().fmt(f)
    }
}

/// The class of a time.
fn class(nanos: u64) -> usize {
    let power = nanos.max(1).ilog2().max(CLASSES.ilog2()) - CLASSES.ilog2();
    // The highest bits, of which the first is there from the second power on.
    (u64::from(power) * CLASSES + (nanos >> power)) as usize
}

/// The longest time of a class.
fn longest(class: usize) -> u64 {
    let class = class as u64;
    let power = (class / CLASSES).max(1) - 1;
    let next = u128::from(class - power * CLASSES + 1) << power;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; ALL]), count: 0, too_late: 0, largest: Duration::ZERO }
    }

    /// A packet was so late.
    pub(crate) fn record(&mut self, late: Duration) {
        if let Some(count) = self.counts.get_mut(class(late.as_nanos())) {
            *count += 1;
        }
        self.count += 1;
        self.too_late += u64::from(late > TOO_LATE);
        self.largest = self.largest.max(late);
    }

    pub(crate) fn late(&self) -> Late {
        Late {
            median: self.quantile(50),
            p99: self.quantile(99),
            largest: self.largest,
            count: self.count,
            too_late: self.too_late,
        }
    }

    /// The time that `percent` of the packets did not exceed.
    fn quantile(&self, percent: u64) -> Duration {
        let wanted = (self.count * percent).div_ceil(100);
        let mut so_far = 0;
        let found = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= wanted
        });
        Duration::from_nanos(found.map_or(0, longest)).min(self.largest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.late(), Late::default());
        for micros in 1..=200 {
            lateness.record(Duration::from_nanos(micros * 1000));
        }
        let Late { median, p99, largest, .. } = lateness.late();
        let within = |time: Duration, exact: u64| (exact..=exact + exact / 16).contains(&time.as_nanos());
        assert!(within(median, 100_000) && within(p99, 198_000), "{median:?} {p99:?}");
        assert_eq!(largest, Duration::from_nanos(200_000));
    }

    #[test]
    fn a_host_shows_if_more_than_one_of_100_packets_are_too_late() {
        let mut lateness = Lateness::new();
        (0..990).for_each(|_| lateness.record(TOO_LATE));
        (0..10).for_each(|_| lateness.record(TOO_LATE + Duration::from_nanos(1)));
        let late = lateness.late();
        assert_eq!((late.count, late.too_late, late.shows_host()), (1000, 10, false));
        lateness.record(Duration::from_millis(1));
        assert!(lateness.late().shows_host());
        assert!(!Late { count: 9, too_late: 9, ..late }.shows_host());
        assert!(!Late::default().shows_host());
    }

    proptest! {
        #[test]
        fn a_class_is_narrow(nanos in prop_oneof![0_u64..5000, any::<u64>()]) {
            let class = class(nanos);
            prop_assert!(class < ALL && longest(class) >= nanos && longest(class) - nanos <= nanos / 16);
            prop_assert!(class == 0 || longest(class - 1) < nanos);
        }
    }
}
