//! The Blitzstart paper: its Table 1, and the numbers of what its text and figures state in
//! `validation/blitzstart/statements.toml`.
//!
//! `validation/blitzstart/README.md` says where the numbers come from. The scenario is
//! `scenarios/blitzstart-table1.toml`.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_lab::report;
use flowstart_lab::results::flows;
use flowstart_lab::results::summary::{Summary, rows_by_cell, summarize};
use flowstart_lab::run::newcomers::{self, Until};
use flowstart_lab::run::repetition;
use flowstart_lab::spec::Written;
use flowstart_lab::spec::competitor::Competitor;
use flowstart_lab::spec::size::TransferSize;
use flowstart_lab::spec::workload::Workload;
use flowstart_lab::study::per_transport::PerTransport;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_report::{Check, PublishedCell, PublishedTable};
use flowstart_statistics::{median, spearman};

use crate::check::{Band, Checker, at_least, at_most, below, between, equal, near};
use crate::reference::{Reference, Row, Table, grouped};
use crate::results::{Results, mean_of, plan};
use crate::{Input, statements};

pub(crate) const TABLE: Reference = Reference {
    rows: "is a cell of the scenario `blitzstart-table1`",
    ..Reference::of(&[("table1.csv", validation_file!("blitzstart/table1.csv"))])
};
const BASELINE: Reference =
    Reference::of(&[("baseline_implied.csv", validation_file!("blitzstart/baseline_implied.csv"))]);

/// Accepted median of |log2(our speed-up / the paper's)|.
const MEDIAN_BAND: f64 = 0.2;
/// Accepted rank correlation of a column over the estimates.
const RANK_BAND: f64 = 0.8;
/// "Beat clearly": our score is at most this part of the best constant predictor's.
const CLEARLY: f64 = 0.75;

/// A cell as published: link, size, estimate, and the speed-up, which is below 1 where the paper says slower, with the
/// differences of completion time and losses.
type Published = (String, String, f64, (f64, f64, f64));
/// The baseline that the published differences and factors imply: link, size, the range of the completion time, losses.
type Baseline = (String, String, [f64; 3]);

fn published(tables: &[Table]) -> Result<Vec<Published>, String> {
    let read = |row: Row<'_>| {
        let factor = row.number_in("fct_factor", 0.01..=1000.0)?;
        let speedup = if row.text("fct_change")? == "slower" { 1.0 / factor } else { factor };
        let differences = (speedup, row.number("fct_delta_ms")?, row.number("loss_delta_packets")?);
        let estimate = row.number_in("bandwidth_estimate_factor", 0.001..=1000.0)?;
        Ok((row.text("link")?.to_owned(), row.text("size")?.to_owned(), estimate, differences))
    };
    tables.iter().flat_map(Table::rows).map(read).collect()
}

fn baselines() -> Result<Vec<Baseline>, String> {
    let read = |row: Row<'_>| {
        let numbers =
            ["baseline_fct_ms_low", "baseline_fct_ms_high", "baseline_lost_packets"].map(|name| row.number(name));
        let [low, high, lost] = numbers;
        Ok((row.text("link")?.to_owned(), row.text("size")?.to_owned(), [low?, high?, lost?]))
    };
    Table::load(None, &BASELINE)?.iter().flat_map(Table::rows).map(read).collect()
}

/// Whether a cell counts for the score: everything but 70 KB on the links where it takes one or two round trips.
fn counts(cell: &PublishedCell) -> bool {
    cell.size != "70KB" || !["dsl-slow", "dsl-fast", "3g"].contains(&cell.link.as_str())
}

/// The paper's table beside ours, with the checks that follow from the rows.
pub(crate) fn published_table(plan: &Plan, rows: &[flows::Row], summary: &Summary) -> PublishedTable {
    let published = Table::load(None, &TABLE).and_then(|tables| published(&tables)).unwrap_or_default();
    let cells = cells(plan, rows, summary, &published);
    let checks = check_rows(plan, rows, &cells, &baselines().unwrap_or_default(), &mut Checker::default());
    PublishedTable {
        source: "Rüth, Wolsing, Serror, Wehrle, Hohlfeld: Blitz-starting QUIC Connections (2019), Table 1".into(),
        note: Some(
            "FCT from the request to the last byte, as the paper's small transfers imply; losses are packets that the \
             sender declared lost. The paper's factors are printed with one digit."
                .into(),
        ),
        cells,
        checks,
    }
}

fn cells(plan: &Plan, rows: &[flows::Row], summary: &Summary, published: &[Published]) -> Vec<PublishedCell> {
    let mut cells = report::published_table(plan, rows, summary, |link, size, estimate| {
        let same = |p: &&Published| p.0 == link && p.1 == size && (p.2 - estimate).abs() < 1e-9;
        published.iter().find(same).map(|p| p.3)
    });
    // What is left of a cell or a baseline with a failed run is no mean of all.
    let by_cell = rows_by_cell(plan, rows);
    let has_failed = |cell: &Cell| by_cell[cell.index].is_empty() || by_cell[cell.index].iter().any(|row| row.failed());
    for failed in plan
        .cells()
        .iter()
        .filter(|cell| has_failed(cell) || plan.baseline_of(cell).is_some_and(|base| has_failed(&base)))
    {
        let (link, size) = (&plan.links[failed.link].text, &plan.sizes[failed.size].text);
        let estimate = report::estimate_of(plan, failed);
        let is_it = |cell: &&mut PublishedCell| (&cell.link, &cell.size, Some(cell.estimate)) == (link, size, estimate);
        for cell in cells.iter_mut().filter(is_it) {
            (cell.ours_speedup, cell.ours_loss_delta) = Default::default();
        }
    }
    cells
}

/// log2 of our speed-up over the paper's, over the cells that count.
fn errors(cells: &[PublishedCell]) -> Vec<f64> {
    let error = |cell: &PublishedCell| Some((speedup_of(cell) / cell.published_speedup?).log2());
    cells.iter().filter(|cell| counts(cell)).filter_map(error).collect()
}

fn median_of_absolute(values: &[f64]) -> f64 {
    median(&values.iter().map(|value| value.abs()).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Comparisons that stand in the verdict and in the report.
struct Checks<'a> {
    checker: &'a mut Checker,
    shown: Vec<Check>,
}

impl Checks<'_> {
    /// A statement that is a cell of its own.
    fn add(&mut self, statement: &str, band: Band, ours: f64, measured: String) {
        self.of_cell(statement, "statement", statement.to_owned(), band, ours, measured);
    }

    fn of_cell(&mut self, cell: &str, metric: &str, statement: String, band: Band, ours: f64, measured: String) {
        let expected = band.text().to_owned();
        let pass = Some(self.checker.check(cell, metric, ours, band));
        self.shown.push(Check { statement, expected, measured, pass });
    }
}

fn check_rows(
    plan: &Plan,
    rows: &[flows::Row],
    cells: &[PublishedCell],
    baselines: &[Baseline],
    checker: &mut Checker,
) -> Vec<Check> {
    let mut checks = Checks { checker, shown: Vec::new() };
    check_baselines(plan, rows, baselines, &mut checks);
    let score = median_of_absolute(&errors(cells));
    let logs: Vec<f64> =
        cells.iter().filter(|cell| counts(cell)).filter_map(|cell| Some(cell.published_speedup?.log2())).collect();
    let constant = median(&logs).unwrap_or(0.0);
    let constant_score = median_of_absolute(&logs.iter().map(|log| log - constant).collect::<Vec<_>>());
    let statement = "Median of |log2(our speed-up / the paper's)| over the cells that count";
    checks.add(statement, at_most(MEDIAN_BAND), score, format!("{score:.3} over {} cells", logs.len()));
    let statement = "The same score of the best constant predictor, which must be beaten clearly";
    let band = at_most(constant_score * CLEARLY).saying(format!("ours at most {CLEARLY} of it"));
    let measured = format!("{constant_score:.3} (always x{:.2}); ours {score:.3}", constant.exp2());
    checks.add(statement, band, score, measured);
    for size in ["2MB", "10MB"] {
        let found = cells.iter().find(|cell| cell.link == "3g" && cell.size == size && cell.estimate == 0.5);
        let speedup = found.map_or(f64::NAN, speedup_of);
        let statement = format!("3g, {size}: half the bandwidth is slower than the baseline");
        checks.add(&statement, below(1.0).saying("a speed-up below 1"), speedup, format!("x{speedup:.2}"));
    }
    for ((link, size), column) in columns(cells) {
        if is_ranked(&column) {
            let (ours, theirs): (Vec<f64>, Vec<f64>) =
                column.iter().filter_map(|cell| Some((speedup_of(cell), cell.published_speedup?))).unzip();
            let rank = spearman(&ours, &theirs).unwrap_or(f64::NAN);
            let statement = format!("{link}, {size}: rank correlation with the paper over the estimates");
            checks.add(&statement, at_least(RANK_BAND), rank, format!("{rank:.2}"));
        }
        let ends: Option<Vec<[f64; 2]>> = column.iter().map(|cell| cell.ours_loss_delta.ci95).collect();
        let fallen = ends.map(|ends| {
            let falls = |at: &usize| ends[*at][1] < ends[at - 1][0];
            (1..ends.len()).filter(falls).map(|at| column[at].estimate).collect::<Vec<f64>>()
        });
        let count = fallen.as_ref().map_or(f64::NAN, |fallen| fallen.len() as f64);
        let measured = match fallen.as_deref() {
            None => "undefined".into(),
            Some([]) => "none".into(),
            Some([at, ..]) => format!("a fall at x{at}"),
        };
        let statement = format!("{link}, {size}: extra losses do not fall when the estimate grows");
        checks.add(&statement, equal(0.0).saying("no fall beyond the intervals"), count, measured);
    }
    checks.shown
}

/// Our speed-up; NaN, which no band contains, where a run failed.
fn speedup_of(cell: &PublishedCell) -> f64 {
    cell.ours_speedup.mean.unwrap_or(f64::NAN)
}

/// Whether what was published of a column has ranks: at least two different speed-ups.
fn is_ranked(column: &[&PublishedCell]) -> bool {
    let mut published = column.iter().filter_map(|cell| cell.published_speedup);
    published.next().is_some_and(|first| published.any(|other| other != first))
}

/// How many comparisons [`check_rows`] makes: FCT and losses of 8 baselines, two scores, two links that get slower, and
/// of each column a rank, where there is any, and the losses.
fn count_of_rows(cells: &[PublishedCell]) -> usize {
    8 * 2 + 2 + 2 + columns(cells).iter().map(|(_, column)| usize::from(is_ranked(column)) + 1).sum::<usize>()
}

/// How many comparisons the text and the figures make: three of figure 1, one of figure 3, 8 with a small buffer, one
/// of LTE.
const STATEMENTS: usize = 3 + 1 + 8 + 1;

/// The cells that count of each link and size, in the order of the table.
fn columns(cells: &[PublishedCell]) -> Vec<((&str, &str), Vec<&PublishedCell>)> {
    let counting = cells.iter().filter(|cell| counts(cell));
    grouped(counting.map(|cell| ((cell.link.as_str(), cell.size.as_str()), cell)))
}

/// The baseline itself: FCT within 20 %, losses within 30 % or 3 packets, for 2 MB and 10 MB.
fn check_baselines(plan: &Plan, rows: &[flows::Row], baselines: &[Baseline], checks: &mut Checks<'_>) {
    let by_cell = rows_by_cell(plan, rows);
    for cell in plan.cells().iter().filter(|cell| cell.scheme == 0) {
        let (link, size) = (&plan.links[cell.link].text, &plan.sizes[cell.size].text);
        let baseline = baselines.iter().find(|b| b.0 == *link && b.1 == *size && size != "70KB");
        let Some((.., [fastest, slowest, losses])) = baseline else { continue };
        let own = &by_cell[cell.index];
        let name = format!("baseline {link} {size}");
        let fct = mean_of(own, |row| row.fct_request_ms);
        let (low, high) = (fastest * 0.8, slowest * 1.2);
        let band = between(low, high, f64::midpoint(*fastest, *slowest)).saying(format!("{low:.0} to {high:.0} ms"));
        let statement = format!("{name}: FCT from the request");
        checks.of_cell(&name, "fct_request_ms", statement, band, fct, format!("{fct:.0} ms"));
        let lost = mean_of(own, |row| Some(row.declared_lost_packets as f64));
        let allowed = (losses * 0.3).max(3.0);
        let band = near(*losses, allowed).saying(format!("{losses:.1} within {allowed:.1} packets"));
        let statement = format!("{name}: lost packets");
        checks.of_cell(&name, "declared_lost_packets", statement, band, lost, format!("{lost:.1}"));
    }
}

/// Runs the scenario and the paper's statements.
pub(crate) fn validate(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let plan = plan("blitzstart-table1")?;
    let published = published(&input.tables)?;
    let is_there = |(link, size, estimate, _): &Published| {
        plan.cells().iter().any(|cell| {
            let same = |own: f64| (own - estimate).abs() < 1e-9;
            plan.links[cell.link].text == *link
                && plan.sizes[cell.size].text == *size
                && report::estimate_of(&plan, cell).is_some_and(same)
        })
    };
    if !published.iter().any(is_there) {
        // Nothing is declared, and the entry is refused.
        return Ok(String::new());
    }
    let Results { plan, rows } = Results::run(plan, input.jobs)?;
    let cells = cells(&plan, &rows, &summarize(&plan, &rows), &published);
    checker.declare(count_of_rows(&cells) + STATEMENTS);
    check_rows(&plan, &rows, &cells, &baselines()?, checker);
    let small = small_buffer(&plan, input.jobs)?;
    let by_cell = small.by_cell();
    let [exit, full] = first_figure(&plan).unwrap_or([f64::NAN; 2]);
    let source = |metric: &str, words: &[&str]| {
        Ok(match metric {
            "exit_ms" => exit,
            "full_ms" => full,
            "fair_s" => median(&fair_times(&plan, "dsl-fast", 0, 180)).unwrap_or(f64::NAN),
            "share" => third_figure(&plan).unwrap_or(f64::NAN),
            "fair_runs" => match &fair_times(&plan, "lte", 2, 60)[..] {
                [] => f64::NAN,
                times => times.iter().filter(|time| time.is_finite()).count() as f64,
            },
            _ => return statements::of_cells(&small, &by_cell, metric, words),
        })
    };
    statements::check(input.entry, &source, checker)?;
    let score = median_of_absolute(&errors(&cells));
    Ok(format!("median |log2| of the speed-ups {score:.3}. Misses are explained in validation/blitzstart/README.md"))
}

/// A plan with one link, one size and one scheme of the table.
fn single(plan: &Plan, link: &str, size: Bytes, scheme: usize) -> Option<(Plan, Cell)> {
    let mut single = plan.clone();
    single.links.retain(|candidate| candidate.text == link);
    single.sizes = vec![Written { text: size.to_string(), value: Workload::Transfer(TransferSize::Fixed(size)) }];
    single.schemes = vec![plan.schemes.get(scheme)?.clone()];
    let cell = single.cells().first().copied()?;
    Some((single, cell))
}

/// A transfer that no run of this file completes.
const ENDLESS: Bytes = Bytes::new(100_000_000_000);

/// When a flow alone leaves slow start and when it has filled the link, in ms. The paper's time axis begins with the
/// first packet of the transfer.
fn first_figure(plan: &Plan) -> Option<[f64; 2]> {
    let (mut alone, cell) = single(plan, "dsl-fast", ENDLESS, 0)?;
    alone.competitors = vec![PerTransport::same("none", Competitor::None, alone.transports.len())];
    let run = repetition::replay_until(&alone, &cell, 0, Until::After(Duration::from_millis(2000)));
    let record = run.world.record(run.flows[0]);
    let from = record.first_data_sent.unwrap_or(run.start);
    let exit = record.exit.map_or(f64::NAN, |exit| exit.time.since(from).as_millis_f64());
    let (rate, window) = (alone.links[0].rate.as_mbit(), alone.links[0].rtt);
    let throughput = Throughput::read(&run);
    let full = (0..200)
        .map(|step| Duration::from_millis(step * 10))
        .find(|&time| throughput.mbit(run.flows[0], from + time, window) >= 0.9 * rate)
        .map_or(f64::NAN, Duration::as_millis_f64);
    Some([exit, full])
}

/// A newcomer's part of the link from 100 ms on, with the correct estimate.
fn third_figure(plan: &Plan) -> Option<f64> {
    let (plan, cell) = single(plan, "dsl-fast", Bytes::new(2_000_000), 2)?;
    let shares: Option<Vec<f64>> = (0..10)
        .map(|rep| {
            let run = repetition::replay(&plan, &cell, rep);
            let record = run.world.record(run.flows[0]);
            let (from, end) = (record.first_data_sent?, record.completed?);
            let (own, other) = Throughput::read(&run).between(run.flows[0], from + Duration::from_millis(100), end);
            (own + other > 0.0).then(|| own / (own + other))
        })
        .collect();
    median(&shares?)
}

/// What the baseline and two estimates do with 5 ms of buffer.
fn small_buffer(plan: &Plan, jobs: usize) -> Result<Results, String> {
    let mut small = plan.clone();
    small.reps = 10;
    let buffer = flowstart_lab::spec::link::Buffer::Time(Duration::from_millis(5));
    small.links.iter_mut().for_each(|link| link.buffer = buffer);
    small.sizes.retain(|size| size.text != "70KB");
    small.schemes.truncate(3);
    Results::run(small, jobs)
}

/// When a newcomer has a fair share for the first time over a whole second, in seconds; infinite if not within so many.
fn fair_times(plan: &Plan, link: &str, scheme: usize, seconds: u64) -> Vec<f64> {
    let Some((plan, cell)) = single(plan, link, ENDLESS, scheme) else { return Vec::new() };
    let time = |rep| {
        let run = repetition::replay_until(&plan, &cell, rep, Until::After(Duration::from_millis(seconds * 1000)));
        let throughput = Throughput::read(&run);
        let is_fair = |second: &u64| {
            let from = run.start + Duration::from_millis(second * 1000);
            let (own, other) = throughput.between(run.flows[0], from, from + Duration::from_millis(1000));
            own >= 0.45 * (own + other)
        };
        (1..seconds).find(is_fair).map_or(f64::INFINITY, |second| second as f64)
    };
    (0..5).map(time).collect()
}

/// What left the bottleneck in a traced run, by time.
struct Throughput {
    departures: Vec<(Timestamp, u32, u32)>,
}

impl Throughput {
    fn read(run: &newcomers::Finished) -> Self {
        let log = run.world.network.monitor.as_ref().and_then(|monitor| monitor.log.as_ref());
        let departures = log.into_iter().flatten().map(|d| (d.time, d.flow, d.size)).collect();
        Self { departures }
    }

    /// Wire bytes of `flow` and of all others in `[from, to)`.
    fn between(&self, flow: u32, from: Timestamp, to: Timestamp) -> (f64, f64) {
        let first = self.departures.partition_point(|(time, ..)| *time < from);
        let mut sums = (0.0, 0.0);
        for (_, owner, size) in self.departures[first..].iter().take_while(|(time, ..)| *time < to) {
            if *owner == flow {
                sums.0 += f64::from(*size);
            } else {
                sums.1 += f64::from(*size);
            }
        }
        sums
    }

    /// Throughput of `flow` in the `window` that ends at `time`.
    fn mbit(&self, flow: u32, time: Timestamp, window: Duration) -> f64 {
        self.between(flow, time - window, time).0 * 8.0 / 1e6 / window.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use flowstart_lab::study::scenario::Scenario;

    use super::*;

    #[test]
    fn what_is_missing_of_the_table_passes_nothing() {
        let text = "published = \"blitzstart-table1\"\nlink = [\"dsl-slow\", \"lte\"]\nsize = [\"70KB\"]\nscheme = [\"hystart\", \
                    \"blitzstart:estimate=0.5\", \"blitzstart:estimate=1.0\"]\ncompetitor = [\"bulk:cubic\"]\nreps = 1\n";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let table = published_table(&plan, &[], &summarize(&plan, &[]));
        assert!(!table.checks.is_empty());
        assert!(table.checks.iter().all(|check| check.pass != Some(true)), "{:#?}", table.checks);
    }
}
