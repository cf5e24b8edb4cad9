//! Speed of the simulator: user CPU per data packet that was sent, queued, delivered and acknowledged, and per fork.
//!
//! The cases are in `cases/mod.rs`; `examples/speed.rs` prints them as a table with the targets. Criterion gets user
//! CPU time instead of wall time, so other work on the machine does not count.

mod cases;

use std::cell::OnceCell;
use std::hint::black_box;
use std::time::Duration;

use cases::{CASES, Case, FORKS, user_cpu_nanos};
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstart_sim::world::World;

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(UserCpu)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(3));
    targets = packets, forks
}
criterion_main!(benches);

/// An iteration is a packet.
fn packets(criterion: &mut Criterion<UserCpu>) {
    let mut group = criterion.benchmark_group("packets");
    group.throughput(Throughput::Elements(1));
    for case in CASES {
        let warm = OnceCell::new();
        group.bench_function(case.name, |bencher| {
            // Only selected cases are warmed up.
            let warm: &World = warm.get_or_init(|| case.warm_world());
            bencher.iter_custom(|packets| nanos_for(case, warm.clone(), packets));
        });
    }
}

/// An iteration is a copy of a warm world.
fn forks(criterion: &mut Criterion<UserCpu>) {
    let mut group = criterion.benchmark_group("fork");
    for case in FORKS {
        let warm = case.warm_world();
        group.bench_function(case.name, |bencher| bencher.iter(|| black_box(warm.clone())));
    }
}

/// Nanoseconds of user CPU for this many packets.
fn nanos_for(case: &Case, mut world: World, packets: u64) -> f64 {
    let before = case.packets(&mut world);
    let mut passed = 0;
    let started = user_cpu_nanos();
    while passed < packets {
        world.run_until(world.now() + STEP);
        passed = case.packets(&mut world) - before;
    }
    let spent = user_cpu_nanos() - started;
    // The last step ran past the mark.
    spent as f64 * packets as f64 / passed as f64
}

/// Simulated time between two readings of the number of packets.
const STEP: flowstart_core::time::Duration = flowstart_core::time::Duration::from_millis(10);

/// User CPU time of the process in nanoseconds.
struct UserCpu;

impl Measurement for UserCpu {
    type Intermediate = u64;
    type Value = f64;

    fn start(&self) -> u64 {
        user_cpu_nanos()
    }

    fn end(&self, started: u64) -> f64 {
        (user_cpu_nanos() - started) as f64
    }

    fn add(&self, first: &f64, second: &f64) -> f64 {
        first + second
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, nanos: &f64) -> f64 {
        *nanos
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &Nanos
    }
}

/// Shows nanoseconds, and packets per second.
struct Nanos;

impl Nanos {
    /// The unit that suits `typical`, and its nanoseconds.
    fn unit(typical: f64) -> (&'static str, f64) {
        match typical {
            nanos if nanos < 1e3 => ("ns", 1.0),
            nanos if nanos < 1e6 => ("us", 1e3),
            _ => ("ms", 1e6),
        }
    }
}

impl ValueFormatter for Nanos {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (name, nanos) = Self::unit(typical);
        values.iter_mut().for_each(|value| *value /= nanos);
        name
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let Throughput::Elements(count) = *throughput else { return "?" };
        // 1000 / nanoseconds is millions per second.
        values.iter_mut().for_each(|value| *value = count as f64 * 1e3 / *value);
        "Mpackets/s"
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "ns"
    }
}
