//! Sarolahti, Allman and Floyd, "Determining an Appropriate Sending Rate Over an Underutilized Network Path" (2007): what the
//! paper says of single transfers, figures 1 to 3.
//!
//! `validation/quick-start/README.md` says how each sentence is read.

use std::path::Path;

use flowstart_core::quick_start::rate::{RateEncoding, Rounding};
use flowstart_core::startup::StartupConfig;
use flowstart_core::startup::quick_start::{Config, RequestKind};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;

use super::quick_start::Scene;
use super::reference::{Row, Table};
use super::{Checker, Verdict, mean_of_all, mean_of_cell};
use flowstart_lab::experiment;
use flowstart_lab::results::summary::{CellSummary, rows_by_cell, summarize};
use flowstart_lab::study::ideal::quick_start_rounds;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;

const GPRS: &str = include_str!("../../../scenarios/quick-start-gprs.toml");
const BURST: &str = include_str!("../../../scenarios/quick-start-10g.toml");
const IMPROVEMENT: &str = include_str!("../../../scenarios/quick-start-improvement.toml");
const UPPER_BOUND: &str = include_str!("../../../scenarios/quick-start-upper-bound.toml");
const SEQUENCE: [(&str, &str); 1] =
    [("A_fig1_timeseq.csv", include_str!("../../../validation/ns2/A_fig1_timeseq.csv"))];

/// Initial window without Quick-Start, in packets.
const INITIAL_WINDOW: u64 = 3;
/// "Just over half the time".
const JUST_OVER_HALF: std::ops::RangeInclusive<f64> = 0.5..=0.6;
/// "12 round-trip times", to the nearest whole one.
const TWELVE: std::ops::Range<f64> = 11.5..12.5;
/// "Similar": the completion times of ordinary transfers differ by at most this part.
const SIMILAR: f64 = 0.01;
/// What routers approve of a request for 100 Mbit/s: 90 % of the link, rounded down to a rate of the encoding.
const APPROVED: Rate = Rate::from_bits_per_sec(81_920_000);
/// Round trips by which "approximated" may differ: the one that a transfer has begun.
const APPROXIMATELY: f64 = 1.0;

fn plan(text: &str) -> Result<Plan, String> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| format!("built-in scenario: {error}"))?;
    scenario.plan(Path::new(".")).map_err(|error| format!("built-in scenario: {error}"))
}

fn cells(plan: &Plan, jobs: usize) -> Result<Vec<CellSummary>, String> {
    let rows = experiment::execute(plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    Ok(summarize(plan, &rows).cells)
}

fn fct(cell: &CellSummary) -> f64 {
    mean_of_cell(cell, "fct_ms")
}

/// The setting of a case of figure 1 in ns-2.
fn scene(row: &Row<'_>) -> Result<(Scene, u64), String> {
    let bytes = |rate: u64| Rate::from_bits_per_sec(rate * 8);
    let (rate, rtt, asked, packets) = match row.text("case")? {
        "1A" => (Rate::from_bits_per_sec(384_000), 1000, bytes(40_000), 30),
        "1A_rtt960ms" => (Rate::from_bits_per_sec(384_000), 960, bytes(40_000), 30),
        "1B" => (Rate::from_mbit(10_000), 160, bytes(163_840_000), 10_000),
        other => return Err(format!("A_fig1_timeseq.csv: case is `{other}`; allowed are 1A, 1A_rtt960ms and 1B")),
    };
    let startup = Config {
        request: RequestKind::Fixed,
        rate: asked,
        rounding: Rounding::Down,
        encoding: RateEncoding::Exponential,
        ..Config::default()
    };
    let mut scene = Scene::alone(rate, Duration::from_millis(rtt), startup);
    scene.disabled = (row.text("mode")? == "none").then_some(0);
    Ok((scene, packets))
}

/// `quick-start-figure-1`: the time-sequence plots beside ns-2's, and what the text says of them and of 20 ordinary transfers
/// beside the burst.
pub(super) fn figure_1(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    // A ratio in 1A, and in 1B round trips of both and what others lose to both.
    let mut checker = Checker::declaring(1 + 4);
    let mut segments = 0;
    for table in Table::load(reference, &SEQUENCE)? {
        let mut shown: Option<([String; 2], Vec<Timestamp>)> = None;
        for row in table.rows() {
            let name = [row.text("case")?.to_owned(), row.text("mode")?.to_owned()];
            let sent = match &mut shown {
                Some((of, sent)) if *of == name => sent,
                _ => {
                    let (scene, packets) = scene(&row)?;
                    &mut shown.insert((name.clone(), scene.sequence(packets))).1
                }
            };
            let (number, expected) = (row.number_in("seq_pkt", 0.0..=1e6)? as usize, row.number("t_s_since_syn")?);
            // Number 0 is the SYN.
            if let Some(place) = number.checked_sub(1) {
                segments += 1;
                checker.declare(1);
                let ours = sent.get(place).map_or(f64::NAN, |time| time.since(Timestamp::ZERO).as_secs());
                checker.within(&name.join(" "), &format!("segment {number} leaves, s"), ours, expected, 0.01);
            }
        }
    }
    if segments == 0 {
        return Err("quick-start-figure-1: no row names a segment (1 and more in column `seq_pkt`)".into());
    }
    let gprs = cells(&plan(GPRS)?, jobs)?;
    if let [slow_start, quick_start] = &gprs[..] {
        let ratio = fct(quick_start) / fct(slow_start);
        let inside = JUST_OVER_HALF.contains(&ratio);
        checker.check("1A, 30 packets", "FCT over slow start's", ratio, 0.5, inside, "0.5 to 0.6");
    }
    let burst = plan(BURST)?;
    let rtt = burst.links[0].rtt.as_millis_f64();
    let of = cells(&burst, jobs)?;
    if let [slow_start, quick_start, beside_slow_start, beside_quick_start] = &of[..] {
        // The paper's times end with the last acknowledgement and begin after the handshake.
        let round_trips = |cell: &CellSummary| (fct(cell) + rtt / 2.0 - rtt) / rtt;
        let ours = round_trips(slow_start);
        checker.check("1B, slow start", "round trips of the data", ours, 12.0, TWELVE.contains(&ours), "12, rounded");
        let ours = round_trips(quick_start);
        checker.check("1B, Quick-Start", "round trips of the data", ours, 1.0, ours < 2.0, "all in the first: below 2");
        for (cell, with) in [(beside_slow_start, "slow start"), (beside_quick_start, "Quick-Start")] {
            let later = cell.others.as_ref().and_then(|others| others.extra_fct_ms.as_ref()?.mean).unwrap_or(f64::NAN);
            // Slow start needs more than ten round trips for 5,000 packets.
            let part = later / (10.0 * rtt);
            let name = format!("20 transfers beside the burst with {with}");
            checker.check(&name, "longer by this part", part, 0.0, part.abs() <= SIMILAR, "at most 1 %");
        }
    }
    Ok(checker.verdict("quick-start-figure-1", "time-sequence plots, and ordinary transfers beside a burst".into()))
}

/// `quick-start-figure-2`: the benefit is largest between short and long transfers, for one that the approved window carries.
pub(super) fn figure_2(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("quick-start-figure-2 has no table of numbers that another file could replace".into());
    }
    let plan = plan(IMPROVEMENT)?;
    let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
    let by_cell = rows_by_cell(&plan, &rows);
    let cells = plan.cells();
    // 3 links: the size of the largest of 9 improvements, 8 steps, and both ends.
    let mut checker = Checker::declaring(3 * (1 + 8 + 2));
    for (index, link) in plan.links.iter().enumerate() {
        let improvement = |size: usize| {
            let of = |scheme: usize| {
                let here = |cell: &&flowstart_lab::study::plan::Cell| {
                    (cell.link, cell.size, cell.scheme) == (index, size, scheme)
                };
                cells.iter().find(here).map_or(f64::NAN, |cell| mean_of_all(&by_cell[cell.index], |row| row.fct_ms))
            };
            100.0 * (1.0 - of(1) / of(0))
        };
        let all: Vec<f64> = (0..plan.sizes.len()).map(improvement).collect();
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Nothing is the largest where nothing is defined, and the comparisons that are left out are missed.
        let Some(peak) = all.iter().position(|one| *one == most) else { continue };
        let (size, window) = (plan.sizes[peak].value.mean_bytes(), APPROVED.amount_in(link.rtt));
        let (ours, most_bytes) = (size.get() as f64, window.get() as f64);
        let cell = format!("{}, size of the largest", link.rtt);
        checker.check(
            &cell,
            "bytes",
            ours,
            most_bytes,
            ours <= most_bytes,
            "not larger than what was approved for an RTT",
        );
        for (place, two) in all.windows(2).enumerate() {
            let rises = place < peak;
            let cell = format!("{}, {} to {}", link.rtt, plan.sizes[place].text, plan.sizes[place + 1].text);
            let inside = if rises { two[0] <= two[1] } else { two[0] >= two[1] };
            let band = if rises { "rises up to the largest" } else { "falls from the largest on" };
            checker.check(&cell, "improvement, %", two[1], two[0], inside, band);
        }
        for (name, end) in [("shortest", all.first()), ("longest", all.last())] {
            let end = end.copied().unwrap_or(f64::NAN);
            let cell = format!("{}, {name}", link.rtt);
            checker.check(&cell, "improvement, %", end, most, end < most, "below the largest");
        }
    }
    Ok(checker.verdict("quick-start-figure-2", "improvement by size and RTT at 100 Mbit/s".into()))
}

/// `quick-start-figure-3`: equation (2) counts the round trips of both.
pub(super) fn figure_3(reference: Option<&Path>, jobs: usize) -> Result<Verdict, String> {
    if reference.is_some() {
        return Err("quick-start-figure-3 has no table of numbers that another file could replace".into());
    }
    let plan = plan(UPPER_BOUND)?;
    let summaries = cells(&plan, jobs)?;
    let StartupConfig::QuickStart(config) = &plan.schemes[1].value else {
        return Err("built-in scenario: the second scheme is not quick-start".into());
    };
    // Of 3 RTTs and 11 sizes, equation (2) counts all but the smallest: three packets ask for nothing.
    let mut checker = Checker::declaring(3 * 10 * 2);
    let mut furthest = 0.0_f64;
    for cell in plan.cells() {
        let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size]);
        let bytes = size.value.mean_bytes();
        let Some(counted) = quick_start_rounds(link, &plan.transport.profile, bytes, INITIAL_WINDOW, config) else {
            continue;
        };
        // The equation counts whole round trips: until the last acknowledgement.
        let ours = fct(&summaries[cell.index]) / link.rtt.as_millis_f64() + 0.5;
        let expected = counted[cell.scheme];
        furthest = furthest.max((ours - expected).abs());
        let name = format!("{}, {}, {}", link.rtt, size.text, plan.schemes[cell.scheme].value.name());
        let inside = (ours - expected).abs() <= APPROXIMATELY;
        checker.check(&name, "round trips", ours, expected, inside, "within one round trip");
    }
    Ok(checker.verdict("quick-start-figure-3", format!("furthest from equation (2): {furthest:.2} round trips")))
}
