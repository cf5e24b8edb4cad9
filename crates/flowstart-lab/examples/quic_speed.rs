//! Prints data packets per second of CPU of a real QUIC flow in simulated time: 100 MB over 100 Mbit/s and 600 ms.
//!
//! Both ends, encryption and the simulator count. Slow start overshoots the path and its queue and loses thousands of
//! packets; Blitzstart loses none. `cargo run --release -p flowstart-lab --example quic_speed [SCHEME [TRANSPORT]]`

use std::path::Path;

use flowstart_lab::run::newcomers::Until;
use flowstart_lab::run::repetition;
use flowstart_lab::study::scenario::Scenario;

/// Target in data packets per second of user and system time.
const TARGET: f64 = 0.25e6;
/// Runs of each case.
const RUNS: usize = 5;

fn main() {
    let schemes = std::env::args()
        .nth(1)
        .map_or_else(|| ["blitzstart", "slow-start"].map(str::to_owned).to_vec(), |scheme| vec![scheme]);
    let transport = std::env::args().nth(2).unwrap_or_else(|| "quic".to_owned());
    let scenario = Scenario {
        link: vec!["rate=100mbit,rtt=600ms,buffer=1bdp".into()],
        size: vec!["100MB".into()],
        scheme: schemes,
        aqm: vec!["taildrop".into()],
        competitor: vec!["none".into()],
        flows: 1,
        transport: vec![transport],
        reps: 1,
        seed: 1,
        hint: true,
        ..Scenario::default()
    };
    let plan = match scenario.plan(Path::new(".")) {
        Ok(plan) => plan,
        Err(error) => return eprintln!("{error}"),
    };
    for cell in plan.cells() {
        for _ in 0..RUNS {
            let started = cpu_seconds();
            let finished = repetition::replay_until(&plan, &cell, 0, Until::Complete);
            let spent = cpu_seconds() - started;
            let record = finished.world.record(finished.flows[0]);
            let rate = record.data_packets as f64 / spent;
            let verdict = if rate >= TARGET { "met" } else { "MISSED" };
            println!(
                "{} {}: {} data packets, {} lost, FCT {:.1} s, {spent:.3} s of CPU, {rate:.0} packets/s; target {TARGET:.1e} {verdict}",
                plan.transport_of(&cell).text,
                plan.schemes[cell.scheme].text,
                record.data_packets,
                record.dropped,
                record.completed.zip(record.started).map_or(f64::NAN, |(end, start)| end.since(start).as_secs()),
            );
        }
    }
}

/// User and system time of this thread, from the scheduler's statistics: ticks of 10 ms would be 3 % of a run.
fn cpu_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = statistics.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    nanos.map_or(f64::NAN, |nanos| nanos / 1e9)
}
