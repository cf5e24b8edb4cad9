//! Runs load transients with Predict, its fallback `CoDel`, PIE and the oracle: a row per cell and discipline as CSV to
//! stdout, and a summary to stderr.
//!
//! `cargo run --release -p flowstart-validate --no-default-features --example predict_grid -- PACING_GAIN SEED
//! [EVERY]`: the whole grid, or every so many cells of it, chosen by a hash.

use flowstart_validate::predict::grid::{csv, run_cells, sample, table};
use flowstart_validate::transient::grid::Grid;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: f64| arguments.get(index).map_or(Ok(default), |text| text.parse::<f64>());
    let wrong = |error: std::num::ParseFloatError| format!("PACING_GAIN, SEED and EVERY are numbers: {error}");
    let (gain, seed, every) =
        (number(0, 2.0).map_err(wrong)?, number(1, 1.0).map_err(wrong)?, number(2, 1.0).map_err(wrong)?);
    let outcomes = run_cells(&sample(&Grid::whole(gain), every as u64, 0), seed as u64);
    print!("{}", csv(&outcomes));
    eprint!("{}", table(&outcomes));
    Ok(())
}
