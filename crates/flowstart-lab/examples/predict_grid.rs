//! Runs load transients with Predict, its fallback CoDel, PIE and the oracle, and prints a row per cell and discipline as CSV.
//!
//! `cargo run --release -p flowstart-lab --no-default-features --example predict_grid -- CELLS PACING_GAIN SEED`, where CELLS
//! is `whole` or `tuning`.

use flowstart_lab::transient::grid::Grid;
use flowstart_lab::validate::predict::grid::{csv, run_cells};

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let (cells, gain, seed) = (arguments.next(), arguments.next(), arguments.next());
    let gain = gain.and_then(|gain| gain.parse().ok()).unwrap_or(2.0);
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let every: usize = arguments.next().and_then(|every| every.parse().ok()).unwrap_or(1);
    let grid = if cells.as_deref() == Some("tuning") { Grid::reduced(gain) } else { Grid::whole(gain) };
    let cells: Vec<_> = grid.cells().collect();
    let cells: Vec<_> = cells
        .into_iter()
        .enumerate()
        .filter(|(i, _)| flowstart_core::rng::mix(*i as u64) % every as u64 == 0)
        .map(|(_, c)| c)
        .collect();
    print!("{}", csv(&run_cells(&cells, seed, 0)?));
    Ok(())
}
