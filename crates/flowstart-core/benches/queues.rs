//! What a packet costs in each queue discipline: enqueue and dequeue, the target is 100 ns for both.
//!
//! The queue holds about 100 packets, so that every law acts: packets have waited for 120 ms and are marked or dropped.
//! They are of one flow or of a thousand in turn. Where a discipline drops so much that fewer than 100 wait, two
//! packets arrive for each that leaves.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_core::aqm::{EcnCodepoint, QueueConfig};

#[path = "../tests/standing_queue/mod.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod standing_queue;

use standing_queue::StandingQueue;

criterion_group!(benches, queues);
criterion_main!(benches);

fn queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    group.throughput(Throughput::Elements(1));
    for config in QueueConfig::defaults() {
        for (flows, called) in [(1, "one flow"), (1000, "1000 flows")] {
            let mut queue = StandingQueue::new(&config, flows, EcnCodepoint::Ect0);
            let name = format!("{}, {called}", config.name());
            group.bench_function(name, |bencher| bencher.iter(|| black_box(queue.pair())));
        }
    }
}
