//! Quick-Start under web traffic: the statements of Sarolahti, Allman and Floyd, "Determining an Appropriate Sending
//! Rate Over an Underutilized Network Path", Computer Networks 2007, about its figures 4, 5, 6, 8, 9, 10 and 11 and
//! about the size of requests.
//!
//! `validation/quick-start/README.md` has each statement, how it is read, and what misses.

use std::collections::BTreeMap;

use flowstart_lab::results::flows::Row;
use flowstart_lab::study::plan::Cell;
use flowstart_statistics::{bca_mean, bca_mean_difference_paired, mean, quantile};

use crate::Input;
use crate::check::{Checker, above, at_least, below, between, judged};
use crate::results::{Field, Results};

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

const APPROVED: Field = |row| row.quick_start_approved;
const FAILURES: Field = |row| row.quick_start_failures;
const BYTES: Field = |row| row.quick_start_bytes;
const DROPS: Field = |row| row.drop_rate;
const UTILIZATION: Field = |row| row.utilization;

const SLOW_START: &str = "slow-start:iw=3";
const QUICK_START: &str = "quick-start:iw=3";
/// A router that approves requests by what is left of the link.
const BASIC: &str = "quick_start=target";
/// One that also counts what flows have used of what they were approved.
const EXTREME: &str = "quick_start=extreme";

/// Repetitions of web sessions at rising loads.
struct Web(Results);

/// Cells by their sessions.
type Line = Vec<(u32, Cell)>;

impl Web {
    fn of(scenario: &str, input: &Input) -> Result<Self, String> {
        Results::of(scenario, input.jobs).map(Self)
    }

    /// The cells whose link has this part (empty: any), with this scheme in this share of the connections, by sessions.
    fn line(&self, link: &str, scheme: &str, share: f64) -> Line {
        let plan = &self.0.plan;
        let has = |text: &str| link.is_empty() || text.split(',').any(|part| part == link);
        let sessions = |cell: &Cell| {
            let web = plan.sizes[cell.size].value.sessions().filter(|web| web.share == share);
            web.filter(|_| plan.schemes[cell.scheme].text == scheme).map(|web| web.sessions)
        };
        let cells = plan.cells().into_iter().filter(|cell| has(&plan.links[cell.link].text));
        let mut line: Line = cells.filter_map(|cell| Some((sessions(&cell)?, cell))).collect();
        line.sort_by_key(|(sessions, _)| *sessions);
        line
    }

    /// A metric of each repetition.
    fn by_repetition(&self, cell: &Cell, field: Field) -> BTreeMap<u64, f64> {
        self.0.by_cell()[cell.index].iter().filter_map(|row| Some((row.rep, field(row)?))).collect()
    }

    /// Its mean, undefined without values.
    fn mean(&self, cell: &Cell, field: Field) -> f64 {
        let values: Vec<f64> = self.by_repetition(cell, field).into_values().collect();
        mean(&values).unwrap_or(f64::NAN)
    }

    /// The mean over cells.
    fn mean_of(&self, line: &Line, field: Field) -> f64 {
        line.iter().map(|(_, cell)| self.mean(cell, field)).sum::<f64>() / line.len() as f64
    }

    /// The means at both ends of a line, for a note.
    fn ends(&self, line: &Line, field: Field) -> String {
        let [first, last] =
            [line.first(), line.last()].map(|end| end.map_or(f64::NAN, |(_, cell)| self.mean(cell, field)));
        format!("{} to {}", percent(first), percent(last))
    }

    /// The interval of the mean.
    fn interval(&self, cell: &Cell, field: Field) -> [f64; 2] {
        let values: Vec<f64> = self.by_repetition(cell, field).into_values().collect();
        let estimate = bca_mean(&values, LEVEL, RESAMPLES, cell.index as u64);
        estimate.map_or([f64::NAN; 2], |estimate| [estimate.interval.low, estimate.interval.high])
    }

    /// How much larger the second is, with the low end of its interval, over the repetitions that both have.
    fn gain(&self, before: &Cell, after: &Cell, field: Field) -> [f64; 2] {
        let (before, after) = (self.by_repetition(before, field), self.by_repetition(after, field));
        let pairs: (Vec<f64>, Vec<f64>) =
            before.iter().filter_map(|(rep, value)| Some((*value, *after.get(rep)?))).unzip();
        let gain = mean(&pairs.1).zip(mean(&pairs.0)).map_or(f64::NAN, |(after, before)| after - before);
        let interval = bca_mean_difference_paired(&pairs.0, &pairs.1, LEVEL, RESAMPLES, 1);
        [gain, interval.map_or(f64::NAN, |estimate| estimate.interval.low)]
    }

    /// Whether a metric of `with` lies in the interval of the drop rate or utilization of `without`.
    fn check_inside(&self, checker: &mut Checker, what: &str, without: (&Cell, Field), with: (&str, &Cell, Field)) {
        let [low, high] = self.interval(without.0, without.1);
        let text = format!("{} to {}, the interval without Quick-Start", percent(low), percent(high));
        let band = between(low, high, self.mean(without.0, without.1)).saying(text);
        checker.check(with.0, what, self.mean(with.1, with.2), band);
    }

    /// Whether a metric falls from each load to the next.
    fn check_falls(&self, checker: &mut Checker, what: &str, line: &Line, field: Field) {
        for pair in line.windows(2) {
            let before = self.mean(&pair[0].1, field);
            let band = below(before).saying(format!("below {}", percent(before)));
            checker.check(&at(pair[1].0), what, self.mean(&pair[1].1, field), band);
        }
    }
}

fn at(sessions: u32) -> String {
    format!("{sessions} sessions")
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Figure 4: "the link utilization and drop rates are largely independent of whether or not Quick-Start is employed";
/// Quick-Start is "used in the scenarios with less overall traffic".
pub(crate) fn load(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let web = Web::of("quick-start-load", input)?;
    let (without, with) = (web.line("", SLOW_START, 1.0), web.line("", QUICK_START, 1.0));
    for ((sessions, without), (_, with)) in without.iter().zip(&with) {
        for (what, field) in [("drop rate", DROPS), ("utilization", UTILIZATION)] {
            web.check_inside(checker, what, (without, field), (&at(*sessions), with, field));
        }
    }
    web.check_falls(checker, "data sent in Quick-Start", &with, BYTES);
    Ok(format!("data sent in Quick-Start {}", web.ends(&with, BYTES)))
}

/// Figure 5: "the use of Quick-Start does not have a significant effect on the packet loss rates regardless of the
/// amount of traffic attempting to use Quick-Start"; they "have a clearly increasing trend"; "the likelihood of
/// Quick-Start requests being approved decreases".
pub(crate) fn drop_rates(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let web = Web::of("quick-start-drop-rates", input)?;
    let (none, all, half) =
        (web.line("", SLOW_START, 1.0), web.line("", QUICK_START, 1.0), web.line("", QUICK_START, 0.5));
    for (((sessions, none), (_, all)), (_, half)) in none.iter().zip(&all).zip(&half) {
        let parts: [(&str, &Cell, Field); 3] = [
            ("all", all, DROPS),
            ("half, with it", half, |row| row.drop_rate_with_scheme),
            ("half, without", half, |row| row.drop_rate_without),
        ];
        for (part, cell, field) in parts {
            web.check_inside(checker, "drop rate", (none, DROPS), (&format!("{}, {part}", at(*sessions)), cell, field));
        }
    }
    for (name, line) in [("none", &none), ("all", &all)] {
        if let [(_, first), .., (_, last)] = &line[..] {
            let ([_, before], [after, _]) = (web.interval(first, DROPS), web.interval(last, DROPS));
            let band = above(before).saying("intervals apart");
            checker.check(name, "drop rate, most against fewest sessions", after, band);
        }
    }
    web.check_falls(checker, "requests approved", &all, APPROVED);
    Ok(format!("requests approved {}", web.ends(&all, APPROVED)))
}

/// Figure 6: "For medium to large transfers the plots show that Quick-Start improves performance -- by a factor of 2-3
/// in many cases, with larger savings over the higher bandwidth path".
pub(crate) fn durations(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let web = Web::of("quick-start-durations", input)?;
    let rows = web.0.by_cell();
    let ratios = |link: &str| -> Vec<f64> {
        let cell = |scheme| web.line(link, scheme, 1.0).first().map(|(_, cell)| &rows[cell.index]);
        let (Some(without), Some(with)) = (cell(SLOW_START), cell(QUICK_START)) else { return Vec::new() };
        let of = |row: &&Row| Some(((row.rep, row.flow), row.fct_ms?));
        let without: BTreeMap<(u64, u64), f64> = without.iter().filter_map(of).collect();
        let medium = with.iter().filter(|row| row.size_bytes >= MEDIUM);
        medium.filter_map(|row| Some(without.get(&(row.rep, row.flow))? / row.fct_ms?)).collect()
    };
    let many = |ratios: &[f64]| ratios.iter().filter(|ratio| **ratio >= FACTOR).count() as f64 / ratios.len() as f64;
    let (slow, fast) = (ratios("rate=10mbit"), ratios("rate=100mbit"));
    for (name, ratios) in [("10 Mbit/s", &slow), ("100 Mbit/s", &fast)] {
        checker.check(name, "share of transfers at least 2 times sooner", many(ratios), at_least(MANY));
    }
    let middle = |ratios: &[f64]| quantile(ratios, 0.5).unwrap_or(f64::NAN);
    let (at_10, at_100) = (middle(&slow), middle(&fast));
    checker.check("100 Mbit/s", "median speed-up", at_100, above(at_10).saying("above that at 10 Mbit/s"));
    Ok(format!(
        "{} and {} transfers of 43.8 KB or more; median speed-up {at_10:.2} and {at_100:.2}, 2 and more in {} and {}",
        slow.len(),
        fast.len(),
        percent(many(&slow)),
        percent(many(&fast))
    ))
}

/// Figure 8: "the fraction of failures for the Target algorithm is relatively small (less than 1% in all cases
/// tested)", and more is approved with a higher `qs_thresh`.
pub(crate) fn threshold(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let web = Web::of("quick-start-threshold", input)?;
    let lines: Vec<(String, Line)> = ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95"]
        .map(|share| format!("qs_thresh={share}"))
        .map(|link| (link.clone(), web.line(&link, QUICK_START, 1.0)))
        .to_vec();
    let mut most: f64 = 0.0;
    for (link, line) in &lines {
        for (sessions, cell) in line {
            let failures = web.mean(cell, FAILURES);
            most = most.max(failures);
            let name = format!("{link}, {}", at(*sessions));
            checker.check(&name, "failures", failures, below(FEW_FAILURES).saying("below 1 %"));
        }
    }
    for pair in lines.windows(2) {
        let [(_, lower), (link, higher)] = pair else { continue };
        for ((sessions, lower), (_, higher)) in lower.iter().zip(higher) {
            let [gain, _] = web.gain(lower, higher, APPROVED);
            let name = format!("{link}, {}", at(*sessions));
            checker.check(&name, "requests approved beyond the next lower threshold", gain, above(0.0));
        }
    }
    Ok(format!("most failures of a cell {}", percent(most)))
}

/// Figure 9: "the approval rate of Quick-Start requests can be slightly higher with the moving average method, but the
/// failure rate is higher also, regardless of the value for the weight"; "larger values of N lead to lower acceptance
/// rates, but also to lower failure rates in congested environments".
pub(crate) fn utilization(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let web = Web::of("quick-start-utilization", input)?;
    let average = |weight: &str| web.line(&format!("qs_utilization=average/{weight}"), QUICK_START, 1.0);
    let peak = |n: u32| web.line(&format!("qs_utilization=peak/{n}/150ms"), QUICK_START, 1.0);
    let (approved, failures) = (web.mean_of(&peak(5), APPROVED), web.mean_of(&peak(5), FAILURES));
    let beyond = |bound: f64| above(bound).saying(format!("above {}, that of peak/5", percent(bound)));
    let mut best = f64::NEG_INFINITY;
    for weight in ["0.1", "0.03", "0.01", "0.003", "0.001"] {
        let own = average(weight);
        best = best.max(web.mean_of(&own, APPROVED));
        let ours = web.mean_of(&own, FAILURES);
        checker.check(&format!("average/{weight}"), "failures, mean over the loads", ours, beyond(failures));
    }
    checker.check("best average", "requests approved, mean over the loads", best, beyond(approved));
    for pair in [1, 2, 5, 10, 20].windows(2) {
        let [fewer, more] = [web.mean_of(&peak(pair[0]), APPROVED), web.mean_of(&peak(pair[1]), APPROVED)];
        let band = below(fewer).saying(format!("below that of peak/{}", pair[0]));
        checker.check(&format!("peak/{}", pair[1]), "requests approved, mean over the loads", more, band);
    }
    let congested = |n| {
        let mut line = peak(n);
        line.retain(|(sessions, _)| *sessions >= CONGESTED);
        web.mean_of(&line, FAILURES)
    };
    let band = below(congested(1)).saying("below that of peak/1");
    checker.check("peak/20", "failures, mean over congested loads", congested(20), band);
    Ok(format!("peak/5 approves {} and fails in {}", percent(approved), percent(failures)))
}

/// What Extreme gains over Basic in bytes at each load, with the low end of the interval; whether the utilization
/// stays.
fn gains(web: &Web, checker: &mut Checker) -> Vec<(u32, [f64; 2])> {
    let (basic, extreme) = (web.line(BASIC, QUICK_START, 1.0), web.line(EXTREME, QUICK_START, 1.0));
    let mut gains = Vec::new();
    for ((sessions, basic), (_, extreme)) in basic.iter().zip(&extreme) {
        gains.push((*sessions, web.gain(basic, extreme, BYTES)));
        let [difference, _] = web.gain(basic, extreme, UTILIZATION);
        let band = judged(difference.abs() < NEARLY, 0.0, format!("within {NEARLY}"));
        checker.check(&at(*sessions), "utilization beyond Basic's", difference, band);
    }
    gains
}

fn mean_gain(gains: &[(u32, [f64; 2])]) -> f64 {
    gains.iter().map(|(_, [gain, _])| gain).sum::<f64>() / gains.len() as f64
}

const BEYOND_BASIC: &str = "data sent in Quick-Start beyond Basic's";

/// Figure 10: "the link utilization is nearly the same", and "the fraction of bytes transmitted using Quick-Start is
/// slightly greater when Extreme Quick-Start is used".
pub(crate) fn extreme(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let gain = mean_gain(&gains(&Web::of("quick-start-extreme", input)?, checker));
    checker.check("all loads", BEYOND_BASIC, gain, above(0.0));
    Ok(format!("Extreme sends {} of the data more in Quick-Start", percent(gain)))
}

/// Figure 11: "the fraction of bytes sent during the Quick-Start phase of the connections is greater when using Extreme
/// Quick-Start", the difference "is larger than the difference shown in Figure 10", and utilizations are "nearly
/// identical".
pub(crate) fn conservative(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let own = gains(&Web::of("quick-start-extreme-conservative", input)?, checker);
    for (sessions, [gain, low]) in &own {
        checker.check(&at(*sessions), BEYOND_BASIC, *gain, judged(*low > 0.0, 0.0, "its interval above 0"));
    }
    let tuned = mean_gain(&gains(&Web::of("quick-start-extreme", input)?, &mut Checker::default()));
    let gain = mean_gain(&own);
    checker.check("all loads", BEYOND_BASIC, gain, above(tuned).saying("above that of quick-start-extreme"));
    let (gain, tuned) = (percent(gain), percent(tuned));
    Ok(format!("Extreme sends {gain} of the data more in Quick-Start, {tuned} in figure 10's setting"))
}

/// Section 5.2, Greedy: "9% of Quick-Start requests are approved", and 220 KB/s are sent in Quick-Start; Ideal: "40% of
/// Quick-Start requests are approved", and 769 KB/s. The load is not published, so only the order is checked.
pub(crate) fn request_size(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let web = Web::of("quick-start-request-size", input)?;
    let greedy = web.line("", "quick-start:iw=3,request=greedy,rate=2mbit", 1.0);
    let ideal = web.line("", QUICK_START, 1.0);
    let rate: Field = |row| row.quick_start_kbytes_per_s;
    let mut shown = Vec::new();
    for ((sessions, greedy), (_, ideal)) in greedy.iter().zip(&ideal) {
        for (what, field) in [("requests approved", APPROVED), ("data sent in Quick-Start, KB/s", rate)] {
            let [gain, low] = web.gain(greedy, ideal, field);
            let band = judged(low > 0.0, 0.0, "its interval above 0");
            checker.check(&at(*sessions), &format!("{what}, Ideal beyond Greedy"), gain, band);
        }
        let [greedy_share, ideal_share] = [greedy, ideal].map(|cell| percent(web.mean(cell, APPROVED)));
        let [greedy_rate, ideal_rate] = [greedy, ideal].map(|cell| web.mean(cell, rate));
        shown.push(format!("{sessions}: {greedy_share} and {ideal_share}, {greedy_rate:.0} and {ideal_rate:.0} KB/s"));
    }
    Ok(format!("Greedy and Ideal at sessions {}", shown.join("; ")))
}
