//! Sarolahti, Allman and Floyd, "Determining an Appropriate Sending Rate Over an Underutilized Network Path" (2007):
//! what the paper says of single transfers, figures 1 to 3 and 6. Orderings and bands are in
//! `validation/quick-start/statements.toml`.
//!
//! `validation/quick-start/README.md` says how each sentence is read.

use std::collections::BTreeMap;

use flowstart_core::quick_start::rate::RateEncoding;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_lab::results::flows::Row as Flow;
use flowstart_lab::study::ideal::quick_start_rounds;
use flowstart_lab::study::plan::Cell;
use flowstart_statistics::quantile;

use crate::check::{Checker, above, at_least, at_most, below, judged, near, within};
use crate::ns2::{Scene, startup};
use crate::reference::{Reference, Row};
use crate::results::Results;
use crate::{Input, statements};

pub(crate) const SEQUENCE: Reference = Reference {
    rows: "names a segment (1 and more in column `seq_pkt`)",
    ..Reference::of(&[("A_fig1_timeseq.csv", validation_file!("ns2/A_fig1_timeseq.csv"))])
};

/// Initial window without Quick-Start, in packets.
const INITIAL_WINDOW: u64 = 3;
/// What routers approve of a request for 100 Mbit/s: 90 % of the link, rounded down to a rate of the encoding.
const APPROVED: Rate = Rate::from_bits_per_sec(81_920_000);
/// Round trips by which "approximated" may differ: the one that a transfer has begun.
const APPROXIMATELY: f64 = 1.0;
/// Bytes of a medium or large transfer: ten times the initial window.
const MEDIUM: u64 = 10 * INITIAL_WINDOW * 1460;
/// The factor that many transfers gain, and how many are many.
const FACTOR: f64 = 2.0;
const MANY: f64 = 0.25;

/// The setting of a case of figure 1 in ns-2.
fn scene(row: &Row<'_>) -> Result<Scene, String> {
    let (rate, rtt, asked, packets) = match row.text("case")? {
        "1A" => (384_000, 1000, 40_000, 30),
        "1A_rtt960ms" => (384_000, 960, 40_000, 30),
        "1B" => (10_000_000_000, 160, 163_840_000, 10_000),
        other => return Err(row.refused("case", other, "1A, 1A_rtt960ms, 1B")),
    };
    let startup = startup(RateEncoding::Exponential, Rate::from_bits_per_sec(asked * 8));
    let rate = Rate::from_bits_per_sec(rate);
    let mut scene = Scene::asking(rate, Duration::from_millis(rtt), packets, startup);
    scene.disabled = (row.text("mode")? == "none").then_some(0);
    Ok(scene)
}

/// The time-sequence plots beside ns-2's, and what the text says of them and of 20 ordinary transfers beside the burst.
pub(crate) fn figure_1(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut shown: Option<([String; 2], Vec<Timestamp>)> = None;
    for row in input.rows() {
        let name = [row.text("case")?.to_owned(), row.text("mode")?.to_owned()];
        let sent = match &mut shown {
            Some((of, sent)) if *of == name => sent,
            _ => &mut shown.insert((name.clone(), scene(&row)?.sequence())).1,
        };
        let (number, expected) = (row.number_in("seq_pkt", 0.0..=1e6)? as usize, row.number("t_s_since_syn")?);
        // Number 0 is the SYN.
        if let Some(place) = number.checked_sub(1) {
            checker.declare(1);
            let ours = sent.get(place).map_or(f64::NAN, |time| time.as_secs());
            checker.check(&name.join(" "), &format!("segment {number} leaves, s"), ours, within(expected, 0.01));
        }
    }
    if checker.declared() == 0 {
        return Ok(String::new());
    }
    checker.declare(5);
    statements::of_scenarios(input, checker)
}

/// The benefit is largest between short and long transfers, for one that the approved window carries.
pub(crate) fn figure_2(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let results = Results::of("quick-start-improvement", input.jobs)?;
    let (plan, fcts) = (&results.plan, results.means(|row| row.fct_ms));
    for (index, link) in plan.links.iter().enumerate() {
        let fct = |size: usize, scheme: usize| {
            let here = |cell: &&Cell| (cell.link, cell.size, cell.scheme) == (index, size, scheme);
            plan.cells().iter().find(here).map_or(f64::NAN, |cell| fcts[cell.index])
        };
        let improvement = |size| 100.0 * (1.0 - fct(size, 1) / fct(size, 0));
        let all: Vec<f64> = (0..plan.sizes.len()).map(improvement).collect();
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Nothing is the largest where nothing is defined, and the comparisons that are left out are missed.
        let Some(peak) = all.iter().position(|one| *one == most) else { continue };
        let (size, window) = (plan.sizes[peak].value.mean_bytes(), APPROVED.amount_in(link.rtt));
        let approved = at_most(window.get() as f64).saying("not larger than what was approved for an RTT");
        checker.check(&format!("{}, size of the largest", link.rtt), "bytes", size.get() as f64, approved);
        for (place, two) in all.windows(2).enumerate() {
            let cell = format!("{}, {} to {}", link.rtt, plan.sizes[place].text, plan.sizes[place + 1].text);
            let band = match place < peak {
                true => judged(two[0] <= two[1], two[0], "rises up to the largest"),
                false => judged(two[0] >= two[1], two[0], "falls from the largest on"),
            };
            checker.check(&cell, "improvement, %", two[1], band);
        }
        for (name, end) in [("shortest", all.first()), ("longest", all.last())] {
            let end = end.copied().unwrap_or(f64::NAN);
            checker.check(
                &format!("{}, {name}", link.rtt),
                "improvement, %",
                end,
                below(most).saying("below the largest"),
            );
        }
    }
    Ok("improvement by size and RTT at 100 Mbit/s".to_owned())
}

/// Equation (2) counts the round trips of both. Of 3 RTTs and 11 sizes it counts all but the smallest: three packets
/// ask for nothing.
pub(crate) fn figure_3(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let results = Results::of("quick-start-upper-bound", input.jobs)?;
    let (plan, fcts) = (&results.plan, results.means(|row| row.fct_ms));
    let StartupConfig::QuickStart(config) = plan.schemes[1].first() else {
        return Err("built-in scenario: the second scheme is not quick-start".into());
    };
    let mut furthest = 0.0_f64;
    for cell in plan.cells() {
        let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size]);
        let bytes = size.value.mean_bytes();
        let profile = &plan.transport_of(&cell).profile;
        let Some(counted) = quick_start_rounds(link, profile, bytes, INITIAL_WINDOW, config) else { continue };
        // The equation counts whole round trips: until the last acknowledgement.
        let ours = fcts[cell.index] / link.rtt.as_millis_f64() + 0.5;
        let expected = counted[cell.scheme];
        furthest = furthest.max((ours - expected).abs());
        let name = format!("{}, {}, {}", link.rtt, size.text, plan.schemes[cell.scheme].on(cell.transport).name());
        checker.check(&name, "round trips", ours, near(expected, APPROXIMATELY).saying("within one round trip"));
    }
    Ok(format!("furthest from equation (2): {furthest:.2} round trips"))
}

/// Figure 6: "For medium to large transfers the plots show that Quick-Start improves performance -- by a factor of 2-3
/// in many cases, with larger savings over the higher bandwidth path".
pub(crate) fn figure_6(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let results = Results::of("quick-start-durations", input.jobs)?;
    let rows = results.by_cell();
    let of_link = |rate: &str| -> Vec<f64> {
        let link = format!("rate={rate},rtt=80ms,quick_start=target");
        let of = |row: &&Flow| Some(((row.rep, row.flow), row.fct_ms?));
        let cell = |scheme| results.cells(&[&link, scheme]).first().map(|cell| &rows[cell.index]);
        let (Some(without), Some(with)) = (cell("slow-start:iw=3"), cell("quick-start:iw=3")) else {
            return Vec::new();
        };
        let without: BTreeMap<(u64, u64), f64> = without.iter().filter_map(of).collect();
        let medium = with.iter().filter(|row| row.size_bytes >= MEDIUM);
        medium.filter_map(|row| Some(without.get(&(row.rep, row.flow))? / row.fct_ms?)).collect()
    };
    let numbers = |name: &str, ratios: &[f64], checker: &mut Checker| {
        let many = ratios.iter().filter(|ratio| **ratio >= FACTOR).count() as f64 / ratios.len() as f64;
        checker.check(name, "share of transfers at least 2 times sooner", many, at_least(MANY));
        (quantile(ratios, 0.5).unwrap_or(f64::NAN), many * 100.0)
    };
    let (slow, fast) = (of_link("10mbit"), of_link("100mbit"));
    let (at_10, many_10) = numbers("10 Mbit/s", &slow, checker);
    let (at_100, many_100) = numbers("100 Mbit/s", &fast, checker);
    checker.check("100 Mbit/s", "median speed-up", at_100, above(at_10).saying("above that at 10 Mbit/s"));
    Ok(format!(
        "{} and {} transfers of 43.8 KB or more; median speed-up {at_10:.2} and {at_100:.2}, 2 and more in {many_10:.2} % and \
         {many_100:.2} %",
        slow.len(),
        fast.len(),
    ))
}
