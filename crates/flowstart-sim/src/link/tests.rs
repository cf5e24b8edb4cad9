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
