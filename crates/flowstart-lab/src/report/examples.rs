//! Example runs with their time series.

use std::collections::BTreeMap;

use flowstart_core::time::Duration;

use super::is_watched;
use crate::results::felt::Field;
use crate::results::flows::Row;
use crate::results::summary::values;
use crate::study::axis::Part;
use crate::study::plan::{AXES, Cell, Plan};
use crate::trace::observe::{Kept, Resolution, Shown, Watched};
use flowstart_report as report;
use flowstart_statistics::median;

/// Most example runs in a report: each adds its time series.
const MAX_EXAMPLES: usize = 6;
/// Longest shown stretch of an example run.
const LONGEST_EXAMPLE: Duration = Duration::from_millis(12_000);
/// Most flows of runs whose time series are kept until the choice of examples.
const MOST_KEPT: u64 = 64;
/// Bins of a line: a chart draws 300 with four points each.
const LINE_BINS: usize = 1024;
/// Marks: a chart draws 1500 segments and 400 drops.
const MARKS: usize = 3000;
/// Bins of throughput in an RTT, at least half as many.
const BINS_OF_RTT: f64 = 32.0;
/// Fewest and most bins of throughput.
const VOLUME_BINS: (usize, usize) = (2048, 32_768);

/// The flows that stand for a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// The flow whose ratios to the baselines are nearest to their medians; without a baseline the one with the median
    /// of the time that users feel.
    pub(super) middle: Option<MeasuredFlow>,
    /// The flow at the 95th percentile of that time, by the geometric mean over the cells; `None` if it is no slower
    /// than the middle one.
    pub(super) slow: Option<MeasuredFlow>,
}

/// A measured flow of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredFlow {
    /// Repetition, from 0.
    pub rep: u32,
    /// Place among the measured flows, from 0.
    pub flow: usize,
}

/// The flow with the median of a time, or the nearest to it.
pub fn median_flow(rows: &[&Row], time: Field) -> Option<MeasuredFlow> {
    let middle = median(&values(rows, time))?;
    let completed = rows.iter().filter(|row| !row.failed());
    completed
        .filter_map(|row| Some(((time(row)? - middle).abs(), row.rep, row.flow)))
        .min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))))
        .map(|(_, rep, flow)| MeasuredFlow { rep: rep as u32, flow: flow as usize })
}

/// The cells whose median runs are shown: the baseline and the next schemes (the first choices of congestion avoidance
/// or AQMs if there is one scheme), in the middle size, on two links, with the first transports if there is room.
fn example_cells(plan: &Plan) -> Vec<Cell> {
    // Of those that one connection carries.
    let is_shown = |size: &usize| plan.sizes[*size].value.is_one_connection();
    let sizes: Vec<usize> = (0..plan.sizes.len()).filter(is_shown).collect();
    let Some(&size) = sizes.get(sizes.len() / 2) else { return Vec::new() };
    let links = plan.links.len();
    // The middle of the list and its end stand for the rest.
    let mut shown: Vec<usize> = [links / 3, links - 1].to_vec();
    shown.dedup();
    let room = MAX_EXAMPLES / shown.len();
    let schemes = plan.schemes.len().min(room);
    // If all start alike, only the AQM differs.
    let avoidances = if schemes == 1 { plan.avoidances.len().clamp(1, room) } else { 1 };
    let aqms = if schemes * avoidances == 1 { plan.aqms.len().min(room) } else { 1 };
    let transports = (room / (schemes * avoidances * aqms)).clamp(1, plan.transports.len());
    let otherwise = || AXES.iter().filter(|axis| axis.is_shown_otherwise() && axis.part == Part::Newcomers);
    plan.cells()
        .into_iter()
        .filter(|cell| plan.is_simulated(cell))
        .filter(|cell| cell.size == size && cell.aqm < aqms && cell.competitor == plan.competitors.len() - 1)
        .filter(|cell| otherwise().all(|axis| axis.place(*cell) == axis.length(plan) / 2))
        .filter(|cell| shown.contains(&cell.link) && cell.scheme < schemes)
        .filter(|cell| cell.avoidance < avoidances && cell.transport < transports)
        .collect()
}

/// The resolution of examples' time series: as many points as their charts draw, and throughput in parts of an RTT.
fn resolution(plan: &Plan, cell: &Cell) -> Resolution {
    let rtt = plan.links[cell.link].rtt.as_millis_f64().max(1.0);
    let volume = (LONGEST_EXAMPLE.as_millis_f64() / rtt * BINS_OF_RTT) as usize;
    let volume = volume.clamp(VOLUME_BINS.0, VOLUME_BINS.1);
    Resolution { bins: LINE_BINS, marks: MARKS, volume, longest: LONGEST_EXAMPLE, whole: false }
}

/// The cells whose runs all keep time series, because the examples are chosen at the end. If there are very many runs,
/// the few examples are simulated again instead.
pub(super) fn watched_cells(plan: &Plan) -> BTreeMap<usize, Resolution> {
    let cells = example_cells(plan);
    let flows: u32 = cells.iter().map(|cell| plan.flow_count(cell) * plan.connections_of(cell)).sum();
    let few = u64::from(flows) * u64::from(plan.reps) <= MOST_KEPT;
    cells.iter().filter(|cell| few && is_watched(plan, cell)).map(|cell| (cell.index, resolution(plan, cell))).collect()
}

/// An example: its cell, its run and its name.
pub(super) type Example = (Cell, MeasuredFlow, &'static str);

/// The run of each of these cells that stands for its setting, and a slow one if there is room for all.
pub(super) fn examples(plan: &Plan, standing: &[Standing]) -> Vec<Example> {
    let cells = example_cells(plan);
    let slow = cells.len() * 2 <= MAX_EXAMPLES;
    // Cells that share a repetition would each call it their median, which it is of their comparison only.
    let names = match plan.compared() {
        Some(_) => ["the median pair", "a slow repetition (95th percentile)"],
        None => ["the median run", "a slow run (95th percentile)"],
    };
    let mut wanted = Vec::new();
    for cell in cells {
        let Standing { middle, slow: late } = standing[cell.index];
        wanted.extend(middle.map(|middle| (cell, middle, names[0])));
        wanted.extend(late.filter(|_| slow).map(|late| (cell, late, names[1])));
    }
    wanted
}

/// The observations that an example needs of its run.
pub(super) fn shown(plan: &Plan, (cell, ..): &Example) -> Shown {
    let watched = Watched { causes: false, series: Some(resolution(plan, cell)) };
    Shown { watched, media_delays: false }
}

/// What a cell is on those axes with a choice that an example has no field for.
fn chosen(plan: &Plan, cell: &Cell) -> impl Iterator<Item = String> {
    let (aqm, avoidance) = (&plan.aqms[cell.aqm].text, plan.avoidance_of(cell).text);
    let transport = &plan.transport_of(cell).text;
    let choices = [
        (plan.aqms.len(), aqm.clone()),
        (plan.avoidances.len(), avoidance),
        (plan.transports.len(), transport.clone()),
    ];
    choices.into_iter().filter(|(choices, _)| *choices > 1).map(|(_, text)| text)
}

/// An example in the report's form.
pub(super) fn example(
    plan: &Plan,
    (cell, of, label): &Example,
    rows: &[&Row],
    kept: &Kept,
) -> Option<report::ExampleRun> {
    let seen = kept.get(cell, of.rep)?.series.as_ref()?;
    let row = rows.iter().find(|row| (row.rep, row.flow) == (u64::from(of.rep), of.flow as u64))?;
    // A transfer shows its first connection.
    let connections = plan.connections_of(cell);
    let place = of.flow * connections as usize;
    let (series, flow) = (&seen.series, seen.series.flows.get(place)?);
    let link = &plan.links[cell.link];
    let end = seen.end.since(seen.start).min(LONGEST_EXAMPLE).as_millis_f64();
    let until_end = |points: Vec<[f64; 2]>| points.into_iter().filter(|point| point[0] <= end).collect();
    let measured = seen.flows.get(place).copied()?;
    let departures = series.departures.iter().zip(0..).filter(|(departures, _)| departures.points().next().is_some());
    let flows = departures.map(|(departures, number)| report::RunFlow {
        name: if seen.flows.contains(&number) {
            plan.schemes[cell.scheme].text.clone()
        } else {
            plan.competitors[cell.competitor].text.clone()
        },
        measured: number == measured,
        departures: until_end(seen.points(departures.points())),
        bin_ms: departures.resolution() as f64 / 1e6,
    });
    Some(report::ExampleRun {
        cell: plan.id(cell),
        rep: of.rep,
        link: link.text.clone(),
        size: plan.carried(cell),
        scheme: plan.schemes[cell.scheme].text.clone(),
        competitor: plan.competitors[cell.competitor].text.clone(),
        label: chosen(plan, cell)
            .chain([(*label).to_owned()])
            .chain((connections > 1).then(|| format!("the first of {connections} connections")))
            .collect::<Vec<_>>()
            .join(", "),
        fct_ms: row.fct_ms,
        rtt_ms: link.rtt.as_millis_f64(),
        rate_mbit: Some(link.rate.as_mbit()),
        from_ms: series.from.map_or(0.0, |from| seen.ms(from)).min(0.0),
        to_ms: end,
        flows: flows.collect(),
        sent: until_end(seen.points(flow.sent.points())),
        cwnd: seen.points(flow.cwnd.points()),
        in_flight: seen.points(flow.in_flight.points()),
        queue_packets: seen.points(series.queue.points()),
        drops: seen.times(&flow.drops),
        other_drops: seen.other_drops(of.flow),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment;
    use crate::results::summary::{rows_by_cell, summarize};
    use crate::study::scenario::Scenario;

    #[test]
    fn the_run_that_is_shown_and_explained_is_that_of_the_median_flow() {
        let text = "link = [\"lte\"]\nsize = [\"300KB\"]\nscheme = [\"slow-start\"]\nreps = 3\n\
                    arrival = [\"every=30ms,flows=4\"]";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let rows = experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let by_cell = rows_by_cell(&plan, &rows);
        let mut fcts: Vec<(f64, u64, u64)> = rows.iter().map(|row| (row.fct_ms.unwrap(), row.rep, row.flow)).collect();
        fcts.sort_by(|a, b| a.partial_cmp(b).unwrap());
        // Of twelve flows the median lies between the sixth and the seventh; neither is a first flow.
        assert!(fcts[5].2 > 0 && fcts[6].2 > 0, "{fcts:?}");
        let chosen = median_flow(&by_cell[0], |row| row.fct_ms).unwrap();
        let of = |row: &(f64, u64, u64)| (row.1, row.2) == (u64::from(chosen.rep), chosen.flow as u64);
        let place = fcts.iter().position(of).unwrap();
        // Repetitions without competitors are alike, so others have the same FCT.
        assert!([fcts[5].0, fcts[6].0].contains(&fcts[place].0), "{place}");

        let (texts, method) = Default::default();
        let summary = summarize(&plan, &rows);
        let built = super::super::build(&plan, &rows, &summary, &texts, 1, method, Kept::default(), &|_| {}).unwrap();
        let (shown, causes) = (&built.runs[0], built.cells[0].causes.unwrap());
        assert_eq!((shown.rep, shown.fct_ms), (chosen.rep, Some(fcts[place].0)));
        assert_eq!(shown.flows.iter().position(|flow| flow.measured), Some(chosen.flow));
        let row = rows.iter().find(|row| of(&(0.0, row.rep, row.flow))).unwrap();
        assert!((causes.fct_ms - row.fct_ms.unwrap()).abs() < 1e-6, "{causes:?}");
        let excess: f64 = causes.causes_ms.iter().sum();
        assert!((excess - (row.fct_ms.unwrap() - row.ideal_fct_ms)).abs() < 1e-6, "{causes:?}");
    }

    /// A plan, its rows, and the observations for a report, made during the runs.
    fn watched(text: &str) -> (Plan, Vec<Row>, Kept) {
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let (rows, kept) =
            experiment::execute_watched(&plan, None, 1, &[], &super::super::wanted(&plan), || true, |_| {}).unwrap();
        assert_eq!(rows, experiment::execute(&plan, 1, &[], |_| {}).unwrap(), "watching changes what happens");
        (plan, rows, kept)
    }

    /// The report, and the number of runs that were simulated again for it.
    fn built(plan: &Plan, rows: &[Row], kept: Kept) -> (report::Report, usize) {
        let (texts, method) = Default::default();
        let again = std::sync::atomic::AtomicUsize::new(0);
        let count = |_| {
            again.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let report = super::super::build(plan, rows, &summarize(plan, rows), &texts, 1, method, kept, &count).unwrap();
        (report, again.into_inner())
    }

    #[test]
    fn runs_that_were_watched_are_not_simulated_again_and_look_the_same() {
        let text = "link = [\"dsl-fast\"]\nsize = [\"300KB\"]\nscheme = [\"slow-start\", \"jump-start\"]\nreps = 3\n\
                    competitor = [\"media\", \"cubic\"]";
        let (plan, rows, kept) = watched(text);
        let (at_once, none) = built(&plan, &rows, kept);
        let (later, again) = built(&plan, &rows, Kept::default());
        // For two schemes beside two competitors the medians are explained; all media packets are shown.
        assert!(none == 0 && again >= 8, "{none} {again}");
        assert_eq!(at_once, later);
        assert!(at_once.cells.iter().all(|cell| cell.causes.is_some()));
        assert!(!at_once.cells[0].samples.media_delay_ms.is_empty() && at_once.runs.len() >= 2);
    }

    #[test]
    fn of_many_runs_only_those_that_are_shown_are_simulated_again() {
        let text = "link = [\"dsl-fast\"]\nsize = [\"20KB\"]\nscheme = [\"slow-start\", \"jump-start\"]\nreps = 70";
        let (plan, rows, kept) = watched(text);
        let (report, again) = built(&plan, &rows, kept);
        assert!((1..=MAX_EXAMPLES).contains(&again) && report.runs.len() == again, "{again}");
    }
}
