//! The repetitions that stand for a setting: the same one for all its cells, so that schemes are shown in the same
//! place of a recording and at the same phase of other flows, and a picture does not contradict the paired comparison.

use std::collections::BTreeMap;

use super::examples::{MeasuredFlow, Standing, median_flow};
use crate::results::felt::{Field, felt};
use crate::results::flows::Row;
use crate::study::plan::{AXES, Axis, Cell, Plan};
use flowstart_statistics::median;

/// What a sender or a queue is chosen on: the cells of a setting differ in nothing else.
const CHOICES: [&Axis; 4] = [Axis::transport(), Axis::aqm(), Axis::scheme(), Axis::avoidance()];

/// The time of each flow of a cell that users feel, as a logarithm, so that ratios are differences.
type Times = BTreeMap<(u64, u64), f64>;

/// For each cell the flows that stand for its setting.
pub(super) fn standing(plan: &Plan, by_cell: &[Vec<&Row>]) -> Vec<Standing> {
    let cells = plan.cells();
    let compared = plan.compared();
    let key = |cell: &Cell| {
        let is_choice = |axis: &'static Axis| CHOICES.contains(&axis) || compared == Some(axis);
        AXES.iter().filter(|axis| !is_choice(axis)).map(|axis| axis.place(*cell)).collect::<Vec<_>>()
    };
    let mut settings: BTreeMap<Vec<usize>, Vec<Cell>> = BTreeMap::new();
    for cell in &cells {
        settings.entry(key(cell)).or_default().push(*cell);
    }
    let mut standing = vec![Standing::default(); cells.len()];
    for setting in settings.values() {
        let chosen = match setting[..] {
            // Nothing to compare with.
            [cell] if plan.baseline_of(&cell).is_none() => alone(&by_cell[cell.index], felt(plan, &cell).1),
            _ => together(plan, setting, by_cell),
        };
        setting.iter().for_each(|cell| standing[cell.index] = chosen);
    }
    standing
}

fn times(rows: &[&Row], time: Field) -> Times {
    let completed = rows.iter().filter(|row| !row.failed());
    completed.filter_map(|row| Some(((row.rep, row.flow), time(row).filter(|time| *time > 0.0)?.ln()))).collect()
}

fn measured(&(rep, flow): &(u64, u64)) -> MeasuredFlow {
    MeasuredFlow { rep: rep as u32, flow: flow as usize }
}

fn alone(rows: &[&Row], felt: Field) -> Standing {
    let times = times(rows, felt);
    let middle = median_flow(rows, felt);
    let time = |of: MeasuredFlow| times.get(&(u64::from(of.rep), of.flow as u64)).copied();
    let slow = at_95_percent(times.iter().map(|(flow, time)| (*time, *flow)).collect());
    Standing { middle, slow: slow.filter(|slow| time(*slow) > middle.and_then(time)) }
}

/// The flow of the smallest time that 95 % of the flows do not exceed.
fn at_95_percent(mut times: Vec<(f64, (u64, u64))>) -> Option<MeasuredFlow> {
    times.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let rank = (times.len() as f64 * 0.95).ceil() as usize;
    let slow = times.get(rank.checked_sub(1)?)?.0;
    times.iter().find(|(time, _)| *time == slow).map(|(_, flow)| measured(flow))
}

fn together(plan: &Plan, setting: &[Cell], by_cell: &[Vec<&Row>]) -> Standing {
    let all: Vec<Times> = setting.iter().map(|cell| times(&by_cell[cell.index], felt(plan, cell).1)).collect();
    // What counts first is how far ratios are from their medians, then how far times are.
    let ratios: Vec<Times> = setting
        .iter()
        .zip(&all)
        .filter_map(|(cell, own)| {
            let baseline = times(&by_cell[plan.baseline_of(cell)?.index], felt(plan, cell).1);
            Some(own.iter().filter_map(|(flow, time)| Some((*flow, baseline.get(flow)? - time))).collect())
        })
        .collect();
    let (off_ratios, off_times) = (Off::of(&ratios), Off::of(&all));
    let missing = |flow: &(u64, u64)| all.iter().filter(|times| !times.contains_key(flow)).count();
    let flows: Vec<(u64, u64)> = all.iter().flat_map(|times| times.keys().copied()).collect();
    // A flow that failed in some of the cells would leave them without a picture.
    let Some(fewest) = flows.iter().map(missing).min() else { return Standing::default() };
    let mut flows: Vec<(u64, u64)> = flows.into_iter().filter(|flow| missing(flow) == fewest).collect();
    flows.sort_unstable();
    flows.dedup();
    let middle = flows.iter().min_by(|a, b| {
        let by = |off: &Off| off.distance(a).total_cmp(&off.distance(b));
        by(&off_ratios).then(by(&off_times)).then(a.cmp(b))
    });
    let mean = |flow: &(u64, u64)| {
        let known: Vec<f64> = all.iter().filter_map(|times| times.get(flow).copied()).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    };
    let slow = at_95_percent(flows.iter().map(|flow| (mean(flow), *flow)).collect());
    let is_slower = |slow: &MeasuredFlow| {
        middle.is_some_and(|middle| mean(&(u64::from(slow.rep), slow.flow as u64)) > mean(middle))
    };
    Standing { middle: middle.map(measured), slow: slow.filter(is_slower) }
}

/// Distances from the medians of several series.
struct Off<'a>(Vec<(&'a Times, f64)>);

impl<'a> Off<'a> {
    fn of(series: &'a [Times]) -> Self {
        let middle = |one: &'a Times| Some((one, median(&one.values().copied().collect::<Vec<_>>())?));
        Self(series.iter().filter_map(middle).collect())
    }

    fn distance(&self, flow: &(u64, u64)) -> f64 {
        self.0.iter().filter_map(|(series, middle)| Some((series.get(flow)? - middle).abs())).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment;
    use crate::results::summary::rows_by_cell;
    use crate::study::scenario::Scenario;

    /// What stands for the only setting of this scenario, with completion times of the baseline and of another scheme
    /// in place of the measured ones.
    fn chosen(times: &[[f64; 2]]) -> Standing {
        let text = format!(
            "link = [\"lte\"]\nsize = [\"20KB\"]\nscheme = [\"slow-start\", \"jump-start\"]\nreps = {}",
            times.len()
        );
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let mut rows = experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let places: Vec<(usize, usize)> = {
            let by_cell = rows_by_cell(&plan, &rows);
            let find = |row: &Row| (0..2).find(|cell| by_cell[*cell].iter().any(|one| std::ptr::eq(*one, row)));
            rows.iter().map(|row| (row.rep as usize, find(row).unwrap())).collect()
        };
        for (row, (rep, cell)) in rows.iter_mut().zip(places) {
            row.fct_ms = Some(times[rep][cell]).filter(|time| *time > 0.0);
        }
        let standing = standing(&plan, &rows_by_cell(&plan, &rows));
        assert_eq!(standing[0], standing[1]);
        standing[0]
    }

    fn reps(standing: Standing) -> [Option<u32>; 2] {
        [standing.middle, standing.slow].map(|flow| flow.map(|flow| flow.rep))
    }

    #[test]
    fn all_schemes_show_the_repetition_of_the_median_ratio() {
        // The ratios are 2, 4 and 1; the medians of the times are those of repetitions 1 and 2.
        assert_eq!(reps(chosen(&[[300.0, 150.0], [200.0, 50.0], [100.0, 100.0]])), [Some(0), None]);
        // The slowest by the geometric mean is repetition 0: 300 * 290 > 200 * 100 > 100 * 20.
        assert_eq!(reps(chosen(&[[300.0, 290.0], [200.0, 100.0], [100.0, 20.0]])), [Some(1), Some(0)]);
    }

    #[test]
    fn of_equal_ratios_the_median_time_decides() {
        assert_eq!(reps(chosen(&[[300.0, 300.0], [100.0, 100.0], [200.0, 200.0]])), [Some(2), Some(0)]);
    }

    #[test]
    fn a_repetition_that_failed_is_not_shown_where_another_did_not() {
        // The ratio of repetition 0 is nearest to the median of 1, 2 and 4.
        assert_eq!(reps(chosen(&[[200.0, 100.0], [100.0, 100.0], [400.0, 100.0]]))[0], Some(0));
        assert_eq!(reps(chosen(&[[200.0, 0.0], [100.0, 100.0], [400.0, 100.0]]))[0], Some(1));
    }
}
