//! Quick-Start under web traffic: the statements of Sarolahti, Allman and Floyd, "Determining an Appropriate Sending Rate Over
//! an Underutilized Network Path", Computer Networks 2007, about its figures 4, 5, 6, 8, 9, 10 and 11 and about the size of
//! requests.
//!
//! `validation/quick-start/README.md` has each statement, how it is read, and what misses.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Checker, Verdict};
use flowstart_lab::experiment;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::rows_by_cell;
use flowstart_lab::spec::web::Sessions;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_lab::study::scenario::Scenario;
use flowstart_statistics::{bca_mean, bca_mean_difference_paired, mean, quantile};

/// Level of intervals, and resamples of a bootstrap.
const LEVEL: f64 = 0.95;
const RESAMPLES: u32 = 2000;
/// Failures of approved requests that are few.
const FEW_FAILURES: f64 = 0.01;
/// Utilizations that are nearly the same differ by less.
const NEARLY: f64 = 0.02;
/// Sessions from which on the link is congested: it is used to 60 % and more.
const CONGESTED: u32 = 40;
/// Bytes of a medium or large transfer: ten times the initial window.
const MEDIUM: u64 = 30 * 1460;
/// The factor that many transfers gain, and how many are many.
const FACTOR: f64 = 2.0;
const MANY: f64 = 0.25;

/// Figure 10's setting, with which figure 11's is compared.
const TUNED: &str = include_str!("../../../scenarios/quick-start-extreme.toml");

/// An entry: its name, its scenario and its statements.
pub(super) struct Entry {
    pub(super) name: &'static str,
    scenario: &'static str,
    /// How many numbers it compares.
    numbers: usize,
    check: fn(&Results, &mut Checker) -> String,
}

/// All entries.
pub(super) const ENTRIES: [Entry; 8] = [
    Entry {
        name: "quick-start-load",
        scenario: include_str!("../../../scenarios/quick-start-load.toml"),
        numbers: 9 * 2 + 8,
        check: load,
    },
    Entry {
        name: "quick-start-drop-rates",
        scenario: include_str!("../../../scenarios/quick-start-drop-rates.toml"),
        numbers: 7 * 3 + 2 + 6,
        check: drop_rates,
    },
    Entry {
        name: "quick-start-durations",
        scenario: include_str!("../../../scenarios/quick-start-durations.toml"),
        numbers: 2 + 1,
        check: durations,
    },
    Entry {
        name: "quick-start-threshold",
        scenario: include_str!("../../../scenarios/quick-start-threshold.toml"),
        numbers: 6 * 7 + 5 * 7,
        check: threshold,
    },
    Entry {
        name: "quick-start-utilization",
        scenario: include_str!("../../../scenarios/quick-start-utilization.toml"),
        numbers: 5 + 1 + 4 + 1,
        check: utilization,
    },
    Entry { name: "quick-start-extreme", scenario: TUNED, numbers: 7 + 1, check: extreme },
    Entry {
        name: "quick-start-extreme-conservative",
        scenario: include_str!("../../../scenarios/quick-start-extreme-conservative.toml"),
        numbers: 7 * 2 + 1,
        check: conservative,
    },
    Entry {
        name: "quick-start-request-size",
        scenario: include_str!("../../../scenarios/quick-start-request-size.toml"),
        numbers: 7 * 2,
        check: request_size,
    },
];

impl Entry {
    /// Runs the scenario and checks the statements.
    pub(super) fn validate(&self, reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
        if reference.is_some() {
            return Err(format!("{} has no table of numbers that another file could replace", self.name));
        }
        let results = Results::of(self.scenario, jobs)?;
        let mut checker = Checker::declaring(self.numbers);
        let note = (self.check)(&results, &mut checker);
        Ok(checker.verdict(self.name, note))
    }
}

/// The value of a metric.
type Metric = fn(&Row) -> Option<f64>;

const APPROVED: Metric = |row| row.quick_start_approved;
const FAILURES: Metric = |row| row.quick_start_failures;
const BYTES: Metric = |row| row.quick_start_bytes;
const DROPS: Metric = |row| row.drop_rate;
const UTILIZATION: Metric = |row| row.utilization;

/// A scenario's rows.
struct Results {
    plan: Plan,
    rows: Vec<Row>,
    jobs: usize,
}

impl Results {
    fn of(scenario: &str, jobs: usize) -> Result<Self, String> {
        let scenario = Scenario::from_text(scenario).map_err(|_| "built-in scenario cannot be read")?;
        let plan = scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))?;
        let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
        Ok(Self { plan, rows, jobs })
    }

    fn web(&self, cell: &Cell) -> Option<&Sessions> {
        self.plan.sizes[cell.size].value.sessions()
    }

    /// Cells by what their links, their application and their scheme contain, by sessions.
    fn cells(&self, link: &str, scheme: &str, share: f64) -> Vec<(u32, Cell)> {
        let has = |text: &str, part: &str| text == part || text.split(',').any(|other| other == part);
        let mut cells: Vec<(u32, Cell)> = self
            .plan
            .cells()
            .into_iter()
            .filter(|cell| link.is_empty() || has(&self.plan.links[cell.link].text, link))
            .filter(|cell| self.plan.schemes[cell.scheme].text == scheme)
            .filter_map(|cell| Some((self.web(&cell).filter(|web| web.share == share)?.sessions, cell)))
            .collect();
        cells.sort_by_key(|(sessions, _)| *sessions);
        cells
    }

    /// A metric of each repetition.
    fn by_repetition(&self, cell: &Cell, metric: Metric) -> BTreeMap<u64, f64> {
        let rows = &rows_by_cell(&self.plan, &self.rows)[cell.index];
        rows.iter().filter_map(|row| Some((row.rep, metric(row)?))).collect()
    }

    /// Its mean, undefined without values.
    fn mean(&self, cell: &Cell, metric: Metric) -> f64 {
        let values: Vec<f64> = self.by_repetition(cell, metric).into_values().collect();
        mean(&values).unwrap_or(f64::NAN)
    }

    /// The mean over cells.
    fn mean_of(&self, cells: &[(u32, Cell)], metric: Metric) -> f64 {
        cells.iter().map(|(_, cell)| self.mean(cell, metric)).sum::<f64>() / cells.len() as f64
    }

    /// The interval of the mean.
    fn interval(&self, cell: &Cell, metric: Metric) -> [f64; 2] {
        let values: Vec<f64> = self.by_repetition(cell, metric).into_values().collect();
        let estimate = bca_mean(&values, LEVEL, RESAMPLES, cell.index as u64);
        estimate.map_or([f64::NAN; 2], |estimate| [estimate.interval.low, estimate.interval.high])
    }

    /// How much larger the second is, with its interval, over the repetitions that both have.
    fn gain(&self, before: &Cell, after: &Cell, metric: Metric) -> [f64; 3] {
        let (before, after) = (self.by_repetition(before, metric), self.by_repetition(after, metric));
        let pairs: (Vec<f64>, Vec<f64>) =
            before.iter().filter_map(|(rep, value)| Some((*value, *after.get(rep)?))).unzip();
        let gain = mean(&pairs.1).zip(mean(&pairs.0)).map_or(f64::NAN, |(after, before)| after - before);
        let interval = bca_mean_difference_paired(&pairs.0, &pairs.1, LEVEL, RESAMPLES, 1);
        interval.map_or([gain, f64::NAN, f64::NAN], |estimate| [gain, estimate.interval.low, estimate.interval.high])
    }
}

const SLOW_START: &str = "slow-start:iw=3";
const QUICK_START: &str = "quick-start:iw=3";

fn at(sessions: u32) -> String {
    format!("{sessions} sessions")
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Notes whether a metric of `with` lies in the interval of `without`.
fn inside(results: &Results, checker: &mut Checker, what: &str, without: (&Cell, Metric), with: (&str, &Cell, Metric)) {
    let [low, high] = results.interval(without.0, without.1);
    let (name, cell, metric) = with;
    let ours = results.mean(cell, metric);
    let band = format!("{} to {}, the interval without Quick-Start", percent(low), percent(high));
    let reference = results.mean(without.0, without.1);
    checker.check(name, what, ours, reference, (low..=high).contains(&ours), band);
}

/// Notes whether a metric falls from each load to the next.
fn falls(results: &Results, checker: &mut Checker, what: &str, cells: &[(u32, Cell)], metric: Metric) {
    for pair in cells.windows(2) {
        let (before, after) = (results.mean(&pair[0].1, metric), results.mean(&pair[1].1, metric));
        checker.check(&at(pair[1].0), what, after, before, after < before, format!("below {}", percent(before)));
    }
}

/// Figure 4: "the link utilization and drop rates are largely independent of whether or not Quick-Start is employed";
/// Quick-Start is "used in the scenarios with less overall traffic".
fn load(results: &Results, checker: &mut Checker) -> String {
    let without = results.cells("", SLOW_START, 1.0);
    let with = results.cells("", QUICK_START, 1.0);
    for ((sessions, without), (_, with)) in without.iter().zip(&with) {
        let name = at(*sessions);
        inside(results, checker, "drop rate", (without, DROPS), (&name, with, DROPS));
        inside(results, checker, "utilization", (without, UTILIZATION), (&name, with, UTILIZATION));
    }
    falls(results, checker, "data sent in Quick-Start", &with, BYTES);
    let ends = [with.first(), with.last()].map(|end| end.map_or(f64::NAN, |(_, cell)| results.mean(cell, BYTES)));
    format!("data sent in Quick-Start {} to {}", percent(ends[0]), percent(ends[1]))
}

/// Figure 5: "the use of Quick-Start does not have a significant effect on the packet loss rates regardless of the amount of
/// traffic attempting to use Quick-Start"; they "have a clearly increasing trend"; "the likelihood of Quick-Start requests
/// being approved decreases".
fn drop_rates(results: &Results, checker: &mut Checker) -> String {
    let none = results.cells("", SLOW_START, 1.0);
    let all = results.cells("", QUICK_START, 1.0);
    let half = results.cells("", QUICK_START, 0.5);
    for (((sessions, none), (_, all)), (_, half)) in none.iter().zip(&all).zip(&half) {
        let parts: [(&str, &Cell, Metric); 3] = [
            ("all", all, DROPS),
            ("half, with it", half, |row| row.drop_rate_with_scheme),
            ("half, without", half, |row| row.drop_rate_without),
        ];
        for (part, cell, metric) in parts {
            inside(results, checker, "drop rate", (none, DROPS), (&format!("{}, {part}", at(*sessions)), cell, metric));
        }
    }
    for (name, cells) in [("none", &none), ("all", &all)] {
        if let [(_, first), .., (_, last)] = &cells[..] {
            let ([_, before], [after, _]) = (results.interval(first, DROPS), results.interval(last, DROPS));
            checker.check(
                name,
                "drop rate, most against fewest sessions",
                after,
                before,
                after > before,
                "intervals apart",
            );
        }
    }
    falls(results, checker, "requests approved", &all, APPROVED);
    let ends = [all.first(), all.last()].map(|end| end.map_or(f64::NAN, |(_, cell)| results.mean(cell, APPROVED)));
    format!("requests approved {} to {}", percent(ends[0]), percent(ends[1]))
}

/// Figure 6: "For medium to large transfers the plots show that Quick-Start improves performance -- by a factor of 2-3 in many
/// cases, with larger savings over the higher bandwidth path".
fn durations(results: &Results, checker: &mut Checker) -> String {
    let rows = rows_by_cell(&results.plan, &results.rows);
    let ratios = |link: &str| -> Vec<f64> {
        let cell = |scheme| results.cells(link, scheme, 1.0).first().map(|(_, cell)| &rows[cell.index]);
        let (Some(without), Some(with)) = (cell(SLOW_START), cell(QUICK_START)) else { return Vec::new() };
        let without: BTreeMap<(u64, u64), f64> =
            without.iter().filter_map(|row| Some(((row.rep, row.flow), row.fct_ms?))).collect();
        let medium = with.iter().filter(|row| row.size_bytes >= MEDIUM);
        medium.filter_map(|row| Some(without.get(&(row.rep, row.flow))? / row.fct_ms?)).collect()
    };
    let many = |ratios: &[f64]| ratios.iter().filter(|ratio| **ratio >= FACTOR).count() as f64 / ratios.len() as f64;
    let (slow, fast) = (ratios("rate=10mbit"), ratios("rate=100mbit"));
    for (name, ratios) in [("10 Mbit/s", &slow), ("100 Mbit/s", &fast)] {
        let ours = many(ratios);
        let band = format!("at least {MANY}");
        checker.check(name, "share of transfers at least 2 times sooner", ours, MANY, ours >= MANY, band);
    }
    let middle = |ratios: &[f64]| quantile(ratios, 0.5).unwrap_or(f64::NAN);
    let (at_10, at_100) = (middle(&slow), middle(&fast));
    checker.check("100 Mbit/s", "median speed-up", at_100, at_10, at_100 > at_10, "above that at 10 Mbit/s");
    format!(
        "{} and {} transfers of 43.8 KB or more; median speed-up {at_10:.2} and {at_100:.2}, 2 and more in {} and {}",
        slow.len(),
        fast.len(),
        percent(many(&slow)),
        percent(many(&fast))
    )
}

/// Figure 8: "the fraction of failures for the Target algorithm is relatively small (less than 1% in all cases tested)", and
/// more is approved with a higher `qs_thresh`.
fn threshold(results: &Results, checker: &mut Checker) -> String {
    let thresholds =
        ["qs_thresh=0.5", "qs_thresh=0.6", "qs_thresh=0.7", "qs_thresh=0.8", "qs_thresh=0.9", "qs_thresh=0.95"];
    let lines = thresholds.map(|link| results.cells(link, QUICK_START, 1.0));
    let mut most: f64 = 0.0;
    for (link, line) in thresholds.iter().zip(&lines) {
        for (sessions, cell) in line {
            let failures = results.mean(cell, FAILURES);
            most = most.max(failures);
            let inside = failures < FEW_FAILURES;
            checker.check(
                &format!("{link}, {}", at(*sessions)),
                "failures",
                failures,
                FEW_FAILURES,
                inside,
                "below 1 %",
            );
        }
    }
    for (pair, link) in lines.windows(2).zip(&thresholds[1..]) {
        for ((sessions, lower), (_, higher)) in pair[0].iter().zip(&pair[1]) {
            let [gain, ..] = results.gain(lower, higher, APPROVED);
            let name = format!("{link}, {}", at(*sessions));
            checker.check(&name, "requests approved beyond the next lower threshold", gain, 0.0, gain > 0.0, "above 0");
        }
    }
    format!("most failures of a cell {}", percent(most))
}

/// Figure 9: "the approval rate of Quick-Start requests can be slightly higher with the moving average method, but the failure
/// rate is higher also, regardless of the value for the weight"; "larger values of N lead to lower acceptance rates, but also to
/// lower failure rates in congested environments".
fn utilization(results: &Results, checker: &mut Checker) -> String {
    let averages = ["0.1", "0.03", "0.01", "0.003", "0.001"];
    let averages = averages.map(|weight| (format!("average/{weight}"), format!("qs_utilization=average/{weight}")));
    let peaks = [1, 2, 5, 10, 20].map(|n| (format!("peak/{n}"), format!("qs_utilization=peak/{n}/150ms")));
    let cells = |link: &String| results.cells(link, QUICK_START, 1.0);
    let papers = cells(&peaks[2].1);
    let (approved, failures) = (results.mean_of(&papers, APPROVED), results.mean_of(&papers, FAILURES));
    let mut best = f64::NEG_INFINITY;
    for (name, link) in &averages {
        let own = cells(link);
        best = best.max(results.mean_of(&own, APPROVED));
        let ours = results.mean_of(&own, FAILURES);
        let band = format!("above {}, that of peak/5", percent(failures));
        checker.check(name, "failures, mean over the loads", ours, failures, ours > failures, band);
    }
    let band = format!("above {}, that of peak/5", percent(approved));
    checker.check("best average", "requests approved, mean over the loads", best, approved, best > approved, band);
    for pair in peaks.windows(2) {
        let (fewer, more) = (cells(&pair[0].1), cells(&pair[1].1));
        let (before, after) = (results.mean_of(&fewer, APPROVED), results.mean_of(&more, APPROVED));
        let band = format!("below that of {}", pair[0].0);
        checker.check(&pair[1].0, "requests approved, mean over the loads", after, before, after < before, band);
    }
    let congested = |link: &String| {
        let cells: Vec<_> = cells(link).into_iter().filter(|(sessions, _)| *sessions >= CONGESTED).collect();
        results.mean_of(&cells, FAILURES)
    };
    let (one, twenty) = (congested(&peaks[0].1), congested(&peaks[4].1));
    checker.check("peak/20", "failures, mean over congested loads", twenty, one, twenty < one, "below that of peak/1");
    format!("peak/5 approves {} and fails in {}", percent(approved), percent(failures))
}

/// What Extreme gains over Basic in bytes at each load, and whether the utilization stays.
fn gains(results: &Results, checker: &mut Checker, basic: &str) -> Vec<(u32, [f64; 3])> {
    let (basic, extreme) =
        (results.cells(basic, QUICK_START, 1.0), results.cells("quick_start=extreme", QUICK_START, 1.0));
    let mut gains = Vec::new();
    for ((sessions, basic), (_, extreme)) in basic.iter().zip(&extreme) {
        gains.push((*sessions, results.gain(basic, extreme, BYTES)));
        let [difference, ..] = results.gain(basic, extreme, UTILIZATION);
        let inside = difference.abs() < NEARLY;
        checker.check(
            &at(*sessions),
            "utilization beyond Basic's",
            difference,
            0.0,
            inside,
            format!("within {NEARLY}"),
        );
    }
    gains
}

fn mean_gain(gains: &[(u32, [f64; 3])]) -> f64 {
    gains.iter().map(|(_, [gain, ..])| gain).sum::<f64>() / gains.len() as f64
}

/// Figure 10: "the link utilization is nearly the same", and "the fraction of bytes transmitted using Quick-Start is slightly
/// greater when Extreme Quick-Start is used".
fn extreme(results: &Results, checker: &mut Checker) -> String {
    let gains = gains(results, checker, "quick_start=target");
    let gain = mean_gain(&gains);
    checker.check("all loads", "data sent in Quick-Start beyond Basic's", gain, 0.0, gain > 0.0, "above 0");
    format!("Extreme sends {} of the data more in Quick-Start", percent(gain))
}

/// Figure 11: "the fraction of bytes sent during the Quick-Start phase of the connections is greater when using Extreme
/// Quick-Start", the difference "is larger than the difference shown in Figure 10", and utilizations are "nearly identical".
fn conservative(results: &Results, checker: &mut Checker) -> String {
    let own = gains(results, checker, "quick_start=target");
    for (sessions, [gain, low, _]) in &own {
        let band = "its interval above 0";
        checker.check(&at(*sessions), "data sent in Quick-Start beyond Basic's", *gain, 0.0, *low > 0.0, band);
    }
    let tuned = Results::of(TUNED, results.jobs).ok();
    let tuned =
        tuned.map_or(f64::NAN, |tuned| mean_gain(&gains(&tuned, &mut Checker::default(), "quick_start=target")));
    let gain = mean_gain(&own);
    let band = "above that of quick-start-extreme";
    checker.check("all loads", "data sent in Quick-Start beyond Basic's", gain, tuned, gain > tuned, band);
    format!(
        "Extreme sends {} of the data more in Quick-Start, {} in figure 10's setting",
        percent(gain),
        percent(tuned)
    )
}

/// Section 5.2, Greedy: "9% of Quick-Start requests are approved", and 220 KB/s are sent in Quick-Start; Ideal: "40% of
/// Quick-Start requests are approved", and 769 KB/s. The load is not published, so only the order is checked.
fn request_size(results: &Results, checker: &mut Checker) -> String {
    let greedy = results.cells("", "quick-start:iw=3,request=greedy,rate=2mbit", 1.0);
    let ideal = results.cells("", QUICK_START, 1.0);
    let rate: Metric = |row| row.quick_start_kbytes_per_s;
    let mut shown = Vec::new();
    for ((sessions, greedy), (_, ideal)) in greedy.iter().zip(&ideal) {
        for (what, metric) in [("requests approved", APPROVED), ("data sent in Quick-Start, KB/s", rate)] {
            let [gain, low, _] = results.gain(greedy, ideal, metric);
            checker.check(
                &at(*sessions),
                &format!("{what}, Ideal beyond Greedy"),
                gain,
                0.0,
                low > 0.0,
                "its interval above 0",
            );
        }
        let shares = [greedy, ideal].map(|cell| percent(results.mean(cell, APPROVED)));
        let rates = [greedy, ideal].map(|cell| results.mean(cell, rate));
        shown.push(format!("{sessions}: {} and {}, {:.0} and {:.0} KB/s", shares[0], shares[1], rates[0], rates[1]));
    }
    format!("Greedy and Ideal at sessions {}", shown.join("; "))
}
