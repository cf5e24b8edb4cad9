//! What a Quick-Start request and a departing packet cost a router.
//!
//! The targets are 50 ns for a request to `target` and 200 ns for one to `extreme`, with memory that does not grow.
//! Requests come from a million flows in turn, 10 us apart, and a packet of 1500 bytes leaves between two of them.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::router::{Algorithm, Config, Router, UtilizationConfig, target};
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

criterion_group!(benches, requests, departures, options);
criterion_main!(benches);

/// Requests come from this many flows.
const FLOWS: u64 = 1_000_000;

fn routers() -> [(&'static str, Config); 5] {
    let remembering = target::Config { flows: 1024, ..target::Config::default() };
    let two_pass = target::Config { provisional: Some(Duration::from_millis(100)), ..remembering };
    let target = Config::default();
    let average = UtilizationConfig::MovingAverage(Default::default());
    [
        ("target", target),
        ("target, moving average", Config { utilization: average, ..target }),
        ("target, 1024 flows", Config { algorithm: Algorithm::Target(remembering), ..target }),
        ("target, two passes", Config { algorithm: Algorithm::Target(two_pass), ..target }),
        ("extreme", Config { algorithm: Algorithm::Extreme(Default::default()), ..target }),
    ]
}

fn option(nonce: u32) -> IpOption {
    IpOption::RateRequest { rate: RateCode::from_bits(7), ttl: 9, nonce: Nonce::from_bits(nonce) }
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("quick-start request");
    for (name, config) in routers() {
        let mut router = Router::new(config, Rate::from_mbit(1000));
        let mut rng = Substream::new(1, "bench", 0);
        let mut count = 0u64;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                count += 1;
                let now = Timestamp::ZERO + Duration::from_micros(10 * count);
                black_box(router.on_option(now, count % FLOWS, option(count as u32), &mut rng))
            });
        });
    }
}

fn departures(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("departure past a quick-start router");
    for (name, config) in routers() {
        let mut router = Router::new(config, Rate::from_mbit(1000));
        let mut rng = Substream::new(1, "bench", 0);
        let mut count = 0u64;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                count += 1;
                let now = Timestamp::ZERO + Duration::from_micros(10 * count);
                // One packet in a hundred is the first of a flow.
                if count.is_multiple_of(100) {
                    router.on_option(now, count % FLOWS, option(count as u32), &mut rng);
                }
                router.on_departure(now, black_box(Bytes::new(1500)), count % FLOWS / 100 * 100);
            });
        });
    }
}

fn options(criterion: &mut Criterion) {
    let bytes = option(5).emit(IpVersion::V4);
    criterion.bench_function("quick-start option, parse and emit", |bencher| {
        bencher.iter(|| IpOption::parse(IpVersion::V4, black_box(&bytes)).map(|option| option.emit(IpVersion::V4)));
    });
}
