//! Prints how well estimates of a link's rate predict what it gives next, on recorded capacities.
//!
//! `cargo run --release -p flowstart-sim --example estimate_accuracy -- FILE.down ...` reads recordings of Mahimahi's
//! format. Transfers start every second. The truth is what the link gives in the two seconds after the start. Before,
//! an estimator says a rate from a part of the recording that ended `age` seconds before the start. `available %` is
//! the part of the starts at which it could say one: the link gave at least a packet in that part. The ratio is
//! estimate over truth, over the starts at which the link gave anything; `within 2 %` is the part of them with a ratio
//! from 1/2 to 2.

use std::process::ExitCode;

use flowstart_sim::link::capacity_trace::CapacityTrace;

/// Seconds of a transfer, over which the truth is taken.
const TRANSFER: usize = 2;
/// Ages of the estimates in seconds.
const AGES: [usize; 4] = [0, 10, 60, 300];
/// Bytes of an opportunity, in Mbit.
const MBIT: f64 = 0.012;

/// What a client knows of the past: its seconds' rates in Mbit/s, the latest last.
type Estimator = fn(&[f64]) -> f64;

/// The estimators: a name, the seconds that it looks at, and the rate that it says.
const ESTIMATORS: [(&str, usize, Estimator); 3] = [
    ("last transfer", 2, mean),
    ("mean of 1 min", 60, mean),
    ("best of 1 min", 60, |seconds| seconds.iter().copied().fold(0.0, f64::max)),
];

fn mean(seconds: &[f64]) -> f64 {
    seconds.iter().sum::<f64>() / seconds.len() as f64
}

/// The rate in each whole second of a recording, in Mbit/s.
fn seconds(text: &str) -> Result<Vec<f64>, String> {
    let trace = CapacityTrace::parse(text).map_err(|error| error.to_string())?;
    let mut rates = vec![0.0; trace.period().as_secs() as usize];
    for time in text.lines().filter_map(|line| line.trim().parse::<usize>().ok()) {
        if let Some(rate) = rates.get_mut(time / 1000) {
            *rate += MBIT;
        }
    }
    Ok(rates)
}

fn report(name: &str, rates: &[f64]) {
    for (estimator, looks_at, estimate) in ESTIMATORS {
        for age in AGES {
            let starts = looks_at + age..rates.len().saturating_sub(TRANSFER);
            // The recording may be too short for this age.
            if starts.is_empty() {
                continue;
            }
            let (mut count, mut available, mut ratios) = (0_u32, 0_u32, Vec::new());
            for start in starts {
                let (past, truth) =
                    (&rates[start - age - looks_at..start - age], mean(&rates[start..start + TRANSFER]));
                let said = estimate(past);
                count += 1;
                available += u32::from(said > 0.0);
                if said > 0.0 && truth > 0.0 {
                    ratios.push(said / truth);
                }
            }
            ratios.sort_by(f64::total_cmp);
            let quantile = |part: f64| ratios.get((part * ratios.len() as f64) as usize).copied().unwrap_or(f64::NAN);
            let within = ratios.iter().filter(|ratio| (0.5..=2.0).contains(*ratio)).count();
            println!(
                "{name:<28} {estimator:<14} {age:>4} {count:>7} {:>11.1} {:>7.2} {:>7.2} {:>7.2} {:>10.1}",
                100.0 * f64::from(available) / f64::from(count),
                quantile(0.1),
                quantile(0.5),
                quantile(0.9),
                100.0 * within as f64 / ratios.len().max(1) as f64,
            );
        }
    }
}

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: estimate_accuracy FILE ..., recordings of Mahimahi's format");
        return ExitCode::from(2);
    }
    println!(
        "{:<28} {:<14} {:>4} {:>7} {:>11} {:>7} {:>7} {:>7} {:>10}",
        "recording", "estimator", "age", "starts", "available %", "p10", "p50", "p90", "within 2 %"
    );
    for file in files {
        let read = std::fs::read_to_string(&file).map_err(|error| error.to_string()).and_then(|text| seconds(&text));
        match read {
            Ok(rates) => report(file.rsplit('/').next().unwrap_or(&file), &rates),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}
