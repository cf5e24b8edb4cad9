//! Load transients under one condition, or one cell of it: what Predict, `CoDel` and the oracle do.
//!
//! `cargo run --release -p flowstart-lab --no-default-features --example predict_hard_loads -- [CONDITION [CELL [SEED]]]`: without
//! arguments a table of all conditions and the triggers in loads that are no transient; with a condition its cells as CSV to
//! stdout, and the table to stderr; with the number of a cell each of its transients.

use flowstart_core::aqm::{QueueConfig, codel, predict};
use flowstart_lab::transient::{Condition, Discipline, run};
use flowstart_lab::validate::predict::grid::{csv, run_cells};
use flowstart_lab::validate::predict::hard_loads::{Found, HEAD, line, rows};
use flowstart_lab::validate::predict::steady_loads;

/// Seed of the validation.
const SEED: u64 = 2;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| {
        let parse = |text: &String| {
            text.parse::<u64>().map_err(|error| format!("`{text}`: CELL and SEED are whole numbers: {error}"))
        };
        arguments.get(index).map(parse).transpose()
    };
    let (cell, seed) = (number(1)?, number(2)?.unwrap_or(SEED));
    let Some(name) = arguments.first() else { return all(seed) };
    let rows = rows();
    let names = || rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>().join(", ");
    let row =
        rows.iter().find(|row| row.name == *name).ok_or_else(|| format!("no `{name}`; use one of {}", names()))?;
    match cell {
        Some(cell) => one(row.cells.get(cell as usize).ok_or(format!("cells are 0 to {}", row.cells.len() - 1))?, seed),
        None => {
            let outcomes = run_cells(&row.cells, seed, 0)?;
            print!("{}", csv(&outcomes));
            eprint!("{HEAD}{}", line(&row.name, &Found::of(&outcomes)));
        }
    }
    Ok(())
}

fn all(seed: u64) -> Result<(), String> {
    print!("{HEAD}");
    for row in rows() {
        print!("{}", line(&row.name, &Found::of(&run_cells(&row.cells, seed, 0)?)));
    }
    println!("\n| load | triggers, each seed | of starts |\n|---|---|---|");
    for (name, _, counts) in steady_loads::run_all(0)? {
        let join = |of: &dyn Fn(&steady_loads::Counts) -> u64| {
            counts.iter().map(|counts| of(counts).to_string()).collect::<Vec<_>>().join(", ")
        };
        println!("| {name} | {} | {} |", join(&|counts| counts.triggers), join(&|counts| counts.starts));
    }
    Ok(())
}

fn one(cell: &flowstart_lab::transient::Config, seed: u64) {
    println!("{cell:?}");
    let places = if let Condition::Places(places) = cell.condition { places } else { predict::Config::default().flows };
    let predict = predict::Config { flows: places, ..predict::Config::default() };
    for (name, discipline) in [
        ("oracle", Discipline::Oracle),
        ("predict", Discipline::Registered(QueueConfig::Predict(predict))),
        ("codel", Discipline::Registered(QueueConfig::CoDel(codel::Config::default()))),
    ] {
        let metrics = run(cell, &discipline, seed);
        println!("{name}: FCT {:.3} s, peak {:.2} RTT", metrics.fct_secs(), metrics.peak_rtts());
        for transient in &metrics.transients {
            println!("  {transient:?}");
        }
    }
}
