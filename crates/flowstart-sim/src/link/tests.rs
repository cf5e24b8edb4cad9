use super::*;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Runs a link with packets of `size` that all arrive at `now = 0`; returns their arrival times at the far end.
fn drain(config: &LinkConfig, count: u32, size: u32) -> Vec<u64> {
    let mut link = Link::new(config, 1, 0);
    let mut service = None;
    for handle in 0..count {
        let wanted = link.enqueue(Timestamp::ZERO, handle, size, 0, EcnCodepoint::NotEct);
        service = service.or(wanted.service);
    }
    while let Some(time) = service {
        service = link.finish_service(time).1.service;
    }
    link.wire.iter().map(|(time, _)| time.as_nanos()).collect()
}

#[test]
fn the_plain_and_the_general_link_agree() {
    let plain = LinkConfig::new(Rate::from_mbit(7), Duration::from_millis(3));
    let general = LinkConfig { limit: QueueLimit { packets: Some(1000), ..QueueLimit::default() }, ..plain.clone() };
    assert_eq!(drain(&plain, 100, 1400), drain(&general, 100, 1400));
}

#[test]
fn a_token_bucket_sends_its_burst_at_the_peak_rate_and_then_the_average() {
    let capacity =
        Capacity::TokenBucket { rate: Rate::from_mbit(8), burst: Bytes::new(3000), peak: Rate::from_mbit(80) };
    let config = LinkConfig { capacity, ..LinkConfig::new(Rate::ZERO, Duration::ZERO) };
    // 1000 bytes: 0.1 ms at the peak rate, 1 ms at the average. Three packets have their tokens at once, the fourth
    // waits until 1 ms after the start, and so on.
    assert_eq!(drain(&config, 6, 1000), [100_000, 200_000, 300_000, 1_100_000, 2_100_000, 3_100_000]);
}

#[test]
fn a_policer_drops_what_exceeds_its_bucket() {
    let config = LinkConfig {
        policer: Some((Rate::from_mbit(8), Bytes::new(3000))),
        ..LinkConfig::new(Rate::from_mbit(80), Duration::ZERO)
    };
    assert_eq!(drain(&config, 6, 1000).len(), 3);
}

#[test]
fn drops_name_what_dropped_them() {
    let limit = QueueLimit { packets: Some(1), ..QueueLimit::default() };
    let policer = Some((Rate::from_mbit(8), Bytes::new(3000)));
    let config = LinkConfig { policer, limit, ..LinkConfig::new(Rate::from_mbit(80), Duration::ZERO) };
    let mut link = Link::new(&config, 1, 0);
    let mut causes = Vec::new();
    for handle in 0..5 {
        link.enqueue(Timestamp::ZERO, handle, 1000, 0, EcnCodepoint::NotEct);
        causes.extend(link.take_dropped().map(|(packet, cause)| (packet.handle, cause)));
    }
    // One is sent, one waits, the third has tokens but no room, the others have no tokens.
    assert_eq!(causes, [(2, Loss::Queue), (3, Loss::Policer), (4, Loss::Policer)]);
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let jitter = Some(Jitter { amplitude: Duration::from_millis(5), step: Duration::from_micros(500) });
    let config = LinkConfig { jitter, ..LinkConfig::new(Rate::from_mbit(100), Duration::from_millis(10)) };
    let mut link = Link::new(&config, 1, 0);
    let mut handles = Vec::new();
    for handle in 0..1000 {
        let now = at(u64::from(handle) * 120_000);
        if let Some(time) = link.enqueue(now, handle, 1500, 0, EcnCodepoint::NotEct).service {
            link.finish_service(time);
        }
    }
    while let (Some(handle), _) = link.arrive() {
        handles.push(handle);
    }
    assert!(handles.is_sorted(), "jitter must not reorder");

    let reordering = Some(Reordering { probability: 0.1, delay: Duration::from_millis(1) });
    let config = LinkConfig { jitter: None, reordering, ..config };
    let mut link = Link::new(&config, 1, 0);
    let mut late = 0;
    for handle in 0..1000 {
        let now = at(u64::from(handle) * 120_000);
        if let Some(time) = link.enqueue(now, handle, 1500, 0, EcnCodepoint::NotEct).service {
            link.finish_service(time);
        }
    }
    let mut last = 0;
    while let (Some(handle), _) = link.arrive() {
        late += u32::from(handle < last);
        last = last.max(handle);
    }
    assert!((60..140).contains(&late), "about one in ten is late, not {late}");
}

#[test]
fn delay_steps_with_the_rate_and_packets_keep_their_order() {
    let every = Duration::from_millis(1000);
    let delay_steps = Some(DelaySteps { amplitude: Duration::from_millis(40), every });
    let variation = varying_rate::Variation::Steps { spread: 0.5, every };
    let rate = varying_rate::VaryingRate { mean: Rate::from_mbit(10), variation };
    let config =
        LinkConfig { delay_steps, capacity: Capacity::Varying(rate), ..LinkConfig::new(rate.mean, every / 100) };
    let mut link = Link::new(&config, 11, 0);
    // 10 kB every 20 ms for 20 s: the link is idle in between.
    let (mut rates, mut delays, mut last) = (Vec::new(), Vec::new(), Timestamp::ZERO);
    for place in 0..1000u32 {
        let now = at(20_000_000 * u64::from(place));
        let finished = link.enqueue(now, place, 10_000, 0, EcnCodepoint::NotEct).service.unwrap();
        link.finish_service(finished);
        let (arrival, _) = *link.wire.back().unwrap();
        rates.push(finished.since(now));
        delays.push(arrival.since(finished));
        assert!(arrival >= last, "{place}");
        last = arrival;
    }
    let changes =
        |values: &[Duration]| (1..1000).filter(|place| values[*place] != values[place - 1]).collect::<Vec<_>>();
    // A packet during which the step ends takes a time of its own, and one that would overtake another waits for it, so
    // a step may make two changes.
    let (rates, delays) = (changes(&rates), changes(&delays));
    assert!((19..=42).contains(&delays.len()), "{delays:?}");
    assert!(delays.iter().all(|place| rates.contains(place) || rates.contains(&(place - 1))), "{rates:?} {delays:?}");
}
