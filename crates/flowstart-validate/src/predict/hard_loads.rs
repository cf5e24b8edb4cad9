//! Predict where a transient is harder to see than in the plain experiment: a part of the grid under each
//! [`Condition`].
//!
//! The oracle has the same condition and knows of it. It is told the mean rate of an irregular background, and measures
//! how long acknowledgements wait behind a reverse flow by handshakes. It has no law besides its signals, so a load
//! above the link's rate waits in its queue without a loss: [`beside_codel`] asks how much of a miss that is.

use std::fmt::Write;

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::traffic::unresponsive::Lengths;

use super::grid::{Class, FALLBACK, Outcome, Summary, run_cells};
use super::{PACING_GAIN, SEED, check_small, steady_loads};
use crate::Input;
use crate::check::{Checker, at_least};
use crate::transient::grid::Grid;
use crate::transient::run::PAYLOAD;
use crate::transient::{Condition, Config, Discipline, run};

/// Shape of Pareto times: between 1 and 2, a finite mean without a finite variance; ns-2's default.
const PARETO: Lengths = Lengths::Pareto { shape: 1.5 };
/// What a short transfer has, over the bandwidth-delay product of all flows: it ends about when slow start has to.
const SHORT: f64 = 1.5;
/// Packets of a short transfer at least: the initial window.
const LEAST_SHORT: u64 = 10;

/// Cells with something in common.
#[derive(Clone, Debug)]
pub struct Row {
    /// What they have in common.
    pub name: String,
    /// The cells.
    pub cells: Vec<Config>,
}

/// All rows.
pub fn rows() -> Vec<Row> {
    let plain = |backgrounds: &[f64]| Grid {
        rates: [10, 50].map(Rate::from_mbit).to_vec(),
        rtts: [20, 100, 350].map(Duration::from_millis).to_vec(),
        flows: vec![1, 6, 18],
        initial_windows: vec![10],
        pacing_gains: vec![None, Some(PACING_GAIN)],
        delayed_acks: vec![false],
        ecn: vec![true, false],
        backgrounds: backgrounds.to_vec(),
        mixed_rtts: vec![false],
        reductions: vec![0.7],
    };
    let row = |condition: Condition, grid: Grid| Row {
        name: condition.name(),
        cells: grid.cells().map(|cell| Config { condition, ..cell }).collect(),
    };
    let ms = Duration::from_millis;
    let loads = [0.1, 0.3, 0.5, 0.8];
    let linux = row(Condition::Linux, plain(&[0.0]));
    let short = Row {
        name: "linux-short".to_owned(),
        cells: linux.cells.iter().map(|cell| Config { size: Some(short_size(cell)), ..cell.clone() }).collect(),
    };
    vec![
        row(Condition::Plain, plain(&[0.0])),
        row(Condition::Thinking { time: ms(50), acknowledged: false }, plain(&[0.0])),
        row(Condition::Thinking { time: ms(200), acknowledged: false }, plain(&[0.0])),
        row(Condition::Thinking { time: ms(200), acknowledged: true }, plain(&[0.0])),
        row(Condition::NoHandshake, plain(&[0.0])),
        row(Condition::Tunnel, plain(&[0.0])),
        row(Condition::Places(4), plain(&[0.0])),
        row(Condition::BackgroundStarts, plain(&[0.3])),
        row(Condition::Reverse, Grid { delayed_acks: vec![true], ..plain(&[0.0]) }),
        linux,
        short,
        row(Condition::OnOff(Lengths::Exponential), plain(&loads)),
        row(Condition::OnOff(PARETO), plain(&loads)),
        row(Condition::Frames(ms(33)), plain(&loads)),
        row(Condition::Frames(ms(40)), plain(&loads)),
        row(Condition::Restart(ms(200)), plain(&[0.0])),
        row(Condition::Restart(ms(500)), plain(&[0.0])),
    ]
}

fn short_size(cell: &Config) -> Bytes {
    let packets = (SHORT * cell.available_bdp() / f64::from(cell.flows)) as u64;
    Bytes::new(packets.max(LEAST_SHORT) * u64::from(PAYLOAD))
}

/// What Predict and its fallback did in a row: above 20 packets of available bandwidth-delay product, and below.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Predict above, and the fallback.
    pub above: [Summary; 2],
    /// Predict in the other cells, and the fallback.
    pub small: [Summary; 2],
}

impl Found {
    /// What they did in these cells.
    pub fn of(outcomes: &[Outcome]) -> Self {
        let of = |small: bool, discipline| {
            let belongs = |outcome: &&Outcome| (outcome.class() == Class::Small) == small;
            Summary::of(outcomes.iter().filter(belongs), discipline)
        };
        Self { above: [of(false, 0), of(false, FALLBACK)], small: [of(true, 0), of(true, FALLBACK)] }
    }
}

/// The outcomes with an oracle that goes on as `CoDel`.
pub fn beside_codel(outcomes: &[Outcome], seed: u64) -> Vec<Outcome> {
    let again = |outcome: &Outcome| Outcome {
        oracle: run(&outcome.cell, &Discipline::OracleThenCoDel, seed),
        ..outcome.clone()
    };
    outcomes.iter().map(again).collect()
}

/// Head of the table whose rows are [`line()`]s.
pub const HEAD: &str = "| condition | cells above 20 packets | won (CoDel) | FCT kept (CoDel) | peak at most CoDel's | \
     FCT / oracle's p50, p90 (CoDel) | peak above the oracle's, RTT p50, p90 (CoDel) | cells of 20 and less | FCT kept (CoDel) | \
     peak at most CoDel's |\n|---|---|---|---|---|---|---|---|---|---|\n";

/// A row in Markdown.
pub fn line(name: &str, found: &Found) -> String {
    let percent = |part: f64| if part.is_nan() { "-".to_owned() } else { format!("{:.0} %", 100.0 * part) };
    let two = |values: [f64; 3]| format!("{:.2}, {:.2}", values[0], values[1]);
    let pair = |of: [String; 2]| format!("{} ({})", of[0], of[1]);
    let Found { above, small } = found;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        above[0].cells,
        pair(above.map(|of| percent(of.won))),
        pair(above.map(|of| percent(of.fct_kept))),
        percent(above[0].peak_kept),
        pair(above.map(|of| two(of.fct))),
        pair(above.map(|of| two(of.peak))),
        small[0].cells,
        pair(small.map(|of| percent(of.fct_kept))),
        percent(small[0].peak_kept),
    );
    text
}

/// Every row against what is wanted of the same classes of the whole grid, and loads that are no transient.
pub(crate) fn predict_hard_loads(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut lines = Vec::new();
    for row in rows() {
        let Found { above, small } = Found::of(&run_cells(&row.cells, SEED));
        if above[0].cells > 0 {
            let won = above[0].won;
            checker.check(&format!("{}, above 20 packets", row.name), "part won", won, at_least(0.85));
            lines.push(format!("{} {:.0} ({:.0})", row.name, 100.0 * won, 100.0 * above[1].won));
        }
        if small[0].cells > 0 {
            check_small(&format!("{}, 20 packets and less", row.name), &small[0], checker);
        }
    }
    steady_loads::check(checker);
    Ok(format!("won above 20 packets in percent, predict (codel): {}", lines.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_and_cells_of_its_own_in_both_classes() {
        let rows = rows();
        let names: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows.len());
        let small = |cell: &&Config| cell.available_bdp() <= super::super::grid::SMALL;
        for Row { name, cells } in &rows {
            // 2 rates x 3 RTTs x 3 numbers of flows x paced or not x marks or drops, times 4 irregular loads.
            assert!([72, 288].contains(&cells.len()), "{name}");
            // 10 Mbit/s x 20 ms are 17 packets.
            assert!(cells.iter().filter(small).count() >= 12, "{name}");
            let texts: std::collections::BTreeSet<String> = cells.iter().map(|cell| format!("{cell:?}")).collect();
            assert_eq!(texts.len(), cells.len(), "{name}");
        }
    }

    #[test]
    fn short_transfers_end_about_when_slow_start_has_to() {
        // 10 Mbit/s x 100 ms = 83.3 packets; 1.5 times that for one flow, and the least for 18.
        let cell = Config::new(Rate::from_mbit(10), Duration::from_millis(100));
        assert_eq!(short_size(&cell), Bytes::new(125 * 1460));
        assert_eq!(short_size(&Config { flows: 18, ..cell }), Bytes::new(10 * 1460));
    }
}
