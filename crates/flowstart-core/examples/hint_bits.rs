//! Prints how much a hint on a grid reveals about a client: the entropy of what it says, over three populations of
//! access rates.
//!
//! The entropy of a hint is the mean number of bits by which it narrows down who sent it. A client is well hidden if
//! many others say the same, so the share of clients whose value less than one in a hundred others share is printed,
//! too. The populations are assumptions, stated below; none is a measurement.
//!
//! `cargo run --release -p flowstart-core --example hint_bits`

use std::collections::BTreeMap;

use flowstart_core::quantize::Grid;
use flowstart_core::units::Rate;

/// Clients of each population.
const CLIENTS: u32 = 200_000;
/// Steps per factor of ten that are compared; 0: the rate in kbit/s, not rounded further.
const STEPS: [u8; 6] = [0, 50, 20, 5, 2, 1];
/// Nominal rates of fixed-line products in Mbit/s, each with the same share of clients.
const PRODUCTS: [f64; 8] = [16.0, 25.0, 50.0, 100.0, 250.0, 500.0, 600.0, 1000.0];
/// Lines of a product reach this part of its nominal rate at least.
const LEAST_OF_PRODUCT: f64 = 0.9;

/// The access rate in Mbit/s of client number `client`, evenly spaced in the population's distribution.
type Population = fn(f64) -> f64;

/// Every order of magnitude from 1 Mbit/s to 1 Gbit/s has as many clients: nothing is known of them.
fn log_uniform(share: f64) -> f64 {
    libm::pow(10.0, 3.0 * share)
}

/// The median is 50 Mbit/s, the logarithms have the logistic distribution, whose quantiles have a closed form, and a
/// standard deviation of log 3: 72 % of the clients lie within a factor of three of the median.
fn log_logistic(share: f64) -> f64 {
    let sigma = libm::log(3.0);
    let scale = sigma / 1.8138;
    50.0 * libm::exp(scale * libm::log(share / (1.0 - share)))
}

/// Products of fixed lines: each line has 90 to 100 % of its nominal rate.
fn products(share: f64) -> f64 {
    let place = share * PRODUCTS.len() as f64;
    let part = place - libm::floor(place);
    PRODUCTS[(place as usize).min(PRODUCTS.len() - 1)] * (LEAST_OF_PRODUCT + (1.0 - LEAST_OF_PRODUCT) * part)
}

/// What the client says: a step of the grid, or its rate in kbit/s.
fn said(mbit: f64, steps: u8) -> u64 {
    let rate = Rate::from_bits_per_sec((mbit * 1e6) as u64);
    if steps == 0 {
        return rate.bits_per_sec() / 1000;
    }
    let grid = Grid { steps_per_decade: steps, ..Grid::default() };
    grid.quantize(rate).map_or(0, Rate::bits_per_sec)
}

fn main() {
    println!("{:<13} {:>6} {:>8} {:>8} {:>8}", "population", "steps", "values", "bits", "rare %");
    let populations: [(&str, Population); 3] =
        [("log-uniform", log_uniform), ("log-logistic", log_logistic), ("products", products)];
    for (name, rate) in populations {
        for steps in STEPS {
            let mut clients: BTreeMap<u64, u32> = BTreeMap::new();
            for client in 0..CLIENTS {
                let share = (f64::from(client) + 0.5) / f64::from(CLIENTS);
                *clients.entry(said(rate(share), steps)).or_insert(0) += 1;
            }
            let shares = clients.values().map(|&count| f64::from(count) / f64::from(CLIENTS));
            let bits: f64 = shares.clone().map(|share| -share * libm::log2(share)).sum();
            let rare = shares.filter(|&share| share < 0.01).fold(0.0, |sum, share| sum + share);
            let steps = if steps == 0 { "exact".to_owned() } else { steps.to_string() };
            println!("{name:<13} {steps:>6} {:>8} {bits:>8.2} {:>8.1}", clients.len(), 100.0 * rare);
        }
    }
}
