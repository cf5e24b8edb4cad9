//! What every store promises, and what a record makes of its observations.

use super::*;

pub(crate) fn prefix(text: &str) -> Prefix {
    Prefix::from(text.parse::<IpNet>().unwrap())
}

pub(crate) fn seen(at: u64, rtt_ms: u64, cwnd: u64, mbit: u64) -> Observation {
    Observation {
        at: UnixTime::from_secs(at),
        min_rtt: Duration::from_millis(rtt_ms),
        cwnd: Bytes::new(cwnd),
        rate: Rate::from_mbit(mbit),
    }
}

/// What every store promises, at the default retention.
pub(crate) fn keeps_the_contract(store: &dyn PathStore) {
    let (here, there) = (prefix("192.0.2.0/24"), prefix("2001:db8::/48"));
    let at = UnixTime::from_secs;
    assert_eq!(store.get(here, at(1000)).unwrap(), None, "a new store knows nothing");

    store.put(here, seen(1000, 50, 70_000, 25)).unwrap();
    store.put(here, seen(1010, 40, 90_000, 30)).unwrap();
    store.put(there, seen(1000, 10, 20_000, 5)).unwrap();
    let record = store.get(here, at(1020)).unwrap().unwrap();
    assert_eq!(record.observations(), [seen(1000, 50, 70_000, 25), seen(1010, 40, 90_000, 30)]);
    assert_eq!(record.samples(), 2);

    // A report that arrives late takes its place in time.
    store.put(here, seen(1005, 60, 80_000, 20)).unwrap();
    let record = store.get(here, at(1020)).unwrap().unwrap();
    assert_eq!(record.observations().iter().map(|one| one.at.as_secs()).collect::<Vec<_>>(), [1000, 1005, 1010]);

    // Life is 3600 s: at 4600 the first is gone, at 4610 all are.
    assert_eq!(store.get(here, at(4604)).unwrap().unwrap().observations().len(), 2);
    assert_eq!(store.get(here, at(4610)).unwrap(), None);
    assert_eq!(store.expire(at(4605)).unwrap().expired, 1, "the other prefix has nothing left, this one has");
    assert_eq!(store.get(here, at(4605)).unwrap().unwrap().observations().len(), 1);
    assert_eq!(store.get(there, at(1000)).unwrap(), None, "what was forgotten does not come back");
    assert_eq!(store.expire(at(4610)).unwrap().expired, 1);
    assert_eq!(store.expire(at(4610)).unwrap().expired, 0);

    // A clock that is far ahead does no lasting harm.
    store.put(here, seen(9_000_000, 50, 1, 25)).unwrap();
    store.put(here, seen(9_000, 50, 1000, 25)).unwrap();
    assert_eq!(store.get(here, at(9_000)).unwrap().unwrap().observations(), [seen(9_000, 50, 1000, 25)]);
    assert_eq!(store.expire(at(12_600)).unwrap().expired, 1);

    // The latest 32 stay, and every one was counted.
    for second in 0..40 {
        store.put(here, seen(20_000 + second, 50, 1000 + second, 25)).unwrap();
    }
    let record = store.get(here, at(20_040)).unwrap().unwrap();
    assert_eq!(record.observations().len(), 32);
    assert_eq!(record.observations()[0].at, at(20_008));
    assert_eq!(record.samples(), 40);
}

/// What stores promise that keep two prefixes.
pub(crate) fn forgets_the_prefix_that_was_silent_longest(store: &dyn PathStore) {
    let [first, second, third] = ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"].map(prefix);
    for (at, one) in [(10, first), (11, second), (12, first), (13, third)] {
        store.put(one, seen(at, 50, 70_000, 25)).unwrap();
    }
    let known = |prefix| store.get(prefix, UnixTime::from_secs(14)).unwrap().is_some();
    assert_eq!((known(first), known(second), known(third)), (true, false, true));
}

pub(crate) fn record(observations: &[Observation]) -> PathRecord {
    let mut record = PathRecord::default();
    for one in observations {
        record.add(*one, &Retention::default());
    }
    record
}

#[test]
fn addresses_fall_into_their_default_or_longest_configured_prefix() {
    let mut prefixes = Prefixes::default();
    let of = |prefixes: &Prefixes, address: &str| prefixes.prefix_of(address.parse().unwrap()).to_string();
    assert_eq!(of(&prefixes, "192.0.2.77"), "192.0.2.0/24");
    assert_eq!(of(&prefixes, "2001:db8:1:2::3"), "2001:db8:1::/48");
    assert_eq!(of(&prefixes, "::ffff:192.0.2.77"), "192.0.2.0/24", "a mapped address is the IPv4 address");
    prefixes.networks = ["192.0.0.0/16", "192.0.2.64/26"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(of(&prefixes, "192.0.2.77"), "192.0.2.64/26");
    assert_eq!(of(&prefixes, "192.0.2.7"), "192.0.0.0/16", "a configured network wins over the default");
    assert!(Prefixes { ipv4_bits: 33, ..Prefixes::default() }.validate().is_err());
    let whole = Prefixes { ipv4_bits: 255, ..Prefixes::default() };
    assert_eq!(of(&whole, "192.0.2.7"), "192.0.2.7/32", "what was not validated is still harmless");
}

#[test]
fn observations_merge_as_asked_but_the_rtt_is_the_smallest() {
    let record = record(&[seen(0, 50, 40_000, 10), seen(1, 40, 80_000, 20), seen(2, 60, 120_000, 40)]);
    let now = UnixTime::from_secs(12);
    let latest = record.saved_path(Merge::MostRecent, now).unwrap();
    assert_eq!((latest.rtt, latest.cwnd), (Duration::from_millis(40), Bytes::new(120_000)));
    assert_eq!(latest.age, Duration::from_secs(10.0));
    // 40,000; 0.75 * 40,000 + 0.25 * 80,000 = 50,000; 0.75 * 50,000 + 0.25 * 120,000 = 67,500.
    let average = record.saved_path(Merge::Ewma { weight: 0.25 }, now).unwrap();
    assert_eq!(average.cwnd, Bytes::new(67_500));
    // 10; 12.5; 19.375 Mbit/s.
    assert_eq!(record.rate(Merge::Ewma { weight: 0.25 }), Some(Rate::from_bits_per_sec(19_375_000)));
    assert_eq!(PathRecord::default().saved_path(Merge::MostRecent, now), None);
    // 40,000, 80,000 and 120,000; of two the lower one.
    assert_eq!(record.saved_path(Merge::Median, now).unwrap().cwnd, Bytes::new(80_000));
    let two = |latest| self::record(&[seen(0, 50, 40_000, 10), seen(1, 50, latest, 10)]);
    assert_eq!(two(90_000).saved_path(Merge::Median, now).unwrap().cwnd, Bytes::new(40_000));
    assert_eq!(two(3_000).saved_path(Merge::Median, now).unwrap().cwnd, Bytes::new(3_000));
}

#[test]
fn a_clock_that_was_set_back_does_not_lose_observations() {
    let record = record(&[seen(1000, 50, 40_000, 10)]);
    let kept = record.at(UnixTime::from_secs(10), &Retention::default()).unwrap();
    assert_eq!(kept.saved_path(Merge::MostRecent, UnixTime::from_secs(10)).unwrap().age, Duration::ZERO);
}
