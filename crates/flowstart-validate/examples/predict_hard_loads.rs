//! Load transients under one condition, or one cell of it: what Predict, `CoDel` and the oracle do.
//!
//! `cargo run --release -p flowstart-validate --no-default-features --example predict_hard_loads -- [CONDITION [CELL
//! [SEED [packets]]]]`: without arguments a table of all conditions and the triggers in loads that are no transient;
//! with a condition its cells as CSV to stdout, and the table to stderr; with the number of a cell, counted from 0,
//! each of its transients. `packets` prints what Predict saw and decided instead, a packet a line.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use flowstart_core::aqm::predict::{self, Predict};
use flowstart_core::aqm::{EcnCodepoint, QueueConfig, QueueContext, QueueDiscipline, QueuedPacket, codel};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_validate::predict::grid::{csv, run_cells};
use flowstart_validate::predict::hard_loads::{Found, HEAD, beside_codel, line, rows};
use flowstart_validate::predict::steady_loads;
use flowstart_validate::predict::watched::{Watch, watched};
use flowstart_validate::transient::{Condition, Config, Discipline, run};

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
    let Some(name) = arguments.first() else {
        all(seed);
        return Ok(());
    };
    let rows = rows();
    let names = || rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>().join(", ");
    let row =
        rows.iter().find(|row| row.name == *name).ok_or_else(|| format!("no `{name}`; use one of {}", names()))?;
    match cell {
        Some(cell) => {
            let cell = row.cells.get(cell as usize).ok_or(format!("CELL {cell}: use 0 to {}", row.cells.len() - 1))?;
            match arguments.get(3).map(String::as_str) {
                None => one(cell, seed),
                Some("packets") => packets(cell, seed),
                Some(other) => return Err(format!("`{other}` after SEED: use packets, or nothing")),
            }
        }
        None => {
            let outcomes = run_cells(&row.cells, seed);
            print!("{}", csv(&outcomes));
            eprint!("{HEAD}{}", line(&row.name, &Found::of(&outcomes)));
        }
    }
    Ok(())
}

fn all(seed: u64) {
    print!("{HEAD}");
    for row in rows() {
        let outcomes = run_cells(&row.cells, seed);
        print!("{}", line(&row.name, &Found::of(&outcomes)));
        if matches!(row.cells.first().map(|cell| cell.condition), Some(Condition::OnOff(_) | Condition::Frames(_))) {
            let name = format!("{}, the oracle then CoDel", row.name);
            print!("{}", line(&name, &Found::of(&beside_codel(&outcomes, seed))));
        }
    }
    println!("\n| load | triggers, each seed | of starts |\n|---|---|---|");
    for (name, _, counts) in steady_loads::run_all() {
        let join = |of: &dyn Fn(&steady_loads::Counts) -> u64| {
            counts.iter().map(|counts| of(counts).to_string()).collect::<Vec<_>>().join(", ")
        };
        println!("| {name} | {} | {} |", join(&|counts| counts.triggers), join(&|counts| counts.starts));
    }
}

/// Predict as it is in a cell.
fn predict_of(cell: &Config) -> predict::Config {
    let flows = if let Condition::Places(places) = cell.condition { places } else { predict::Config::default().flows };
    predict::Config { flows, ..predict::Config::default() }
}

/// Prints what each discipline does in a cell. `CoDel` with an interval of 20 ms is what Predict falls back to when it
/// takes the RTT for short.
fn one(cell: &Config, seed: u64) {
    let short = codel::Config { interval: Duration::from_millis(20), ..codel::Config::default() };
    println!("{cell:?}");
    for (name, discipline) in [
        ("oracle", Discipline::Oracle),
        ("predict", Discipline::Registered(QueueConfig::Predict(predict_of(cell)))),
        ("codel", Discipline::Registered(QueueConfig::CoDel(codel::Config::default()))),
        ("codel, 20 ms", Discipline::Registered(QueueConfig::CoDel(short))),
    ] {
        let metrics = run(cell, &discipline, seed);
        println!("{name}: FCT {:.3} s, peak {:.2} RTT", metrics.fct_secs(), metrics.peak_rtts());
        for transient in &metrics.transients {
            println!("  {transient:?}");
        }
    }
}

/// Tells what Predict sees and decides.
#[derive(Clone, Debug, Default)]
struct Teller(Arc<Mutex<String>>);

impl Teller {
    fn tell(&self, predict: &Predict, what: &str, packet: &QueuedPacket, now: Timestamp, triggered: bool) {
        let estimate = if triggered { predict.last_trigger().and_then(|trigger| trigger.estimate) } else { None };
        let numbers = estimate.or(predict.load_estimate(now)).map_or(String::from(",,"), |of| {
            format!("{:.3},{:.3},{:.1}", of.load, of.load_ahead, 1e3 * of.rtt.as_secs())
        });
        if let Ok(mut lines) = self.0.lock() {
            let (flow, size, waiting) = (packet.flow, packet.size, predict.len());
            // Writing to a string cannot fail.
            let _ = writeln!(
                lines,
                "{:.6},{what},{flow},{size},{waiting},{},{numbers}",
                now.as_secs(),
                u8::from(triggered)
            );
        }
    }
}

impl Watch for Teller {
    fn enqueue(&mut self, predict: &mut Predict, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let drops = context.dropped.len();
        predict.enqueue(packet, context);
        let what = if context.dropped.len() > drops { "full" } else { "arrives" };
        self.tell(predict, what, &packet, context.now, false);
    }

    fn dequeue(&mut self, predict: &mut Predict, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let (drops, triggers) = (context.dropped.len(), predict.triggers());
        let packet = predict.dequeue(context);
        let triggered = predict.triggers() > triggers;
        for dropped in &context.dropped[drops..] {
            self.tell(predict, "dropped", dropped, context.now, triggered);
        }
        if let Some(packet) = &packet {
            let what = if packet.ecn == EcnCodepoint::Ce { "marked" } else { "leaves" };
            self.tell(predict, what, packet, context.now, triggered);
        }
        packet
    }
}

fn packets(cell: &Config, seed: u64) {
    let teller = Teller::default();
    run(cell, &Discipline::Custom(watched(teller.clone(), predict_of(cell), cell.rate)), seed);
    println!("time_s,event,flow,size,waiting,triggered,load,load_ahead,rtt_ms");
    if let Ok(lines) = teller.0.lock() {
        print!("{lines}");
    }
}
