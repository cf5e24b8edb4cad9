//! Prints data packets per second of user CPU for the cases of the benchmark.
//!
//! A packet is sent, queued, delivered and acknowledged. Each case runs five times from the same warm world; the table
//! shows the best and the median. `cargo run --release -p flowstart-sim --example speed [words of a case's name]`

#[path = "../benches/cases/mod.rs"]
mod cases;

use cases::{CASES, Case, FORKS, user_cpu_nanos};

/// Runs of each case.
const RUNS: usize = 5;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    println!("{:<28} {:>9} {:>11} {:>11} {:>8}  target", "case", "packets", "best/s", "median/s", "clone us");
    for case in CASES.iter().chain(FORKS).filter(|case| case.name.contains(&wanted)) {
        report(case);
    }
}

fn report(case: &Case) {
    let mut warm = case.warm_world();
    let before = case.packets(&mut warm);
    let mut packets = 0;
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut world = warm.clone();
            let started = user_cpu_nanos();
            world.run_until(case.end());
            let spent = user_cpu_nanos() - started;
            packets = case.packets(&mut world) - before;
            packets as f64 / (spent as f64 / 1e9)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let target = match case.target {
        Some(target) if rates[RUNS - 1] < target => format!("{target:.1e} MISSED"),
        Some(target) => format!("{target:.1e} met"),
        None => String::new(),
    };
    let (best, median, clone) = (rates[RUNS - 1], rates[RUNS / 2], clone_micros(&warm));
    println!("{:<28} {packets:>9} {best:>11.0} {median:>11.0} {clone:>8.1}  {target}", case.name);
}

/// Microseconds of user CPU that a fork of this world takes.
fn clone_micros(world: &flowstart_sim::world::World) -> f64 {
    let started = user_cpu_nanos();
    let mut forks = 0u64;
    while user_cpu_nanos() - started < 50_000_000 {
        std::hint::black_box(world.clone());
        forks += 1;
    }
    (user_cpu_nanos() - started) as f64 / forks as f64 / 1e3
}
