//! What a packet with XCP's congestion header, and one with a SCONE packet, costs a router: the counterpart of
//! `quick_start`.
//!
//! Packets come from a million flows in turn, 10 us apart, arrive and leave.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use flowstart_core::scone::element::{Config, Element};
use flowstart_core::scone::wire::{RateSignal, SconePacket, lower};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::xcp::host::request;
use flowstart_core::xcp::router::Router;
use flowstart_core::xcp::wire::CongestionHeader;

criterion_group!(benches, xcp, scone);
criterion_main!(benches);

/// Packets come from this many flows.
const FLOWS: u64 = 1_000_000;

fn xcp(criterion: &mut Criterion) {
    let mut router = Router::new(Default::default(), Rate::from_mbit(1200));
    let (packet, queue) = (Bytes::new(1500), Bytes::new(3000));
    let mut count = 0u64;
    criterion.bench_function("xcp, arrival and departure of a packet", |bencher| {
        bencher.iter(|| {
            count += 1;
            let now = Timestamp::ZERO + Duration::from_micros(10 * count);
            let rtt = Duration::from_millis(20 + count % 100);
            let mut header = request(Some(rtt), Bytes::new(15_000), packet);
            router.on_arrival(now, packet, Some(&header), queue);
            router.on_departure(now, packet, Some(&mut header), queue);
            black_box(header.delta_throughput)
        });
    });
    let bytes = request(Some(Duration::from_millis(80)), Bytes::new(15_000), packet).emit(6);
    criterion.bench_function("xcp header, parse and emit", |bencher| {
        bencher.iter(|| CongestionHeader::parse(black_box(&bytes)).map(|(header, protocol)| header.emit(protocol)));
    });
}

fn scone(criterion: &mut Criterion) {
    let mut element = Element::new(Config::new(Rate::from_mbit(50)));
    let mut count = 0u64;
    criterion.bench_function("scone, a packet past an element", |bencher| {
        bencher.iter(|| {
            count += 1;
            let now = Timestamp::ZERO + Duration::from_micros(10 * count);
            black_box(element.on_signal(now, count % FLOWS, RateSignal::UNKNOWN))
        });
    });
    let mut datagram = Vec::new();
    if let Ok(packet) = SconePacket::new(&[7; 8], &[]) {
        packet.emit(&mut datagram);
    }
    datagram.resize(1215, 0x42);
    let advised = RateSignal::at_most(Rate::from_mbit(50));
    criterion.bench_function("scone, a datagram's signal found and lowered", |bencher| {
        bencher.iter(|| {
            datagram[..5].copy_from_slice(&[0xff, 0xef, 0x7d, 0xc0, 0xfd]);
            lower(black_box(&mut datagram), advised)
        });
    });
}
