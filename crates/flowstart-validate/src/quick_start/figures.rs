//! Sarolahti, Allman and Floyd, "Determining an Appropriate Sending Rate Over an Underutilized Network Path" (2007):
//! what the paper says of single transfers, figures 1 to 3.
//!
//! `validation/quick-start/README.md` says how each sentence is read.

use flowstart_core::quick_start::rate::RateEncoding;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_lab::study::ideal::quick_start_rounds;
use flowstart_lab::study::plan::Cell;

use crate::Input;
use crate::check::{Checker, at_most, below, between, judged, near, within};
use crate::ns2::{Scene, startup};
use crate::reference::{Reference, Row};
use crate::results::Results;

pub(crate) const SEQUENCE: Reference = Reference {
    rows: "names a segment (1 and more in column `seq_pkt`)",
    ..Reference::of(&[("A_fig1_timeseq.csv", include_str!("../../../../validation/ns2/A_fig1_timeseq.csv"))])
};

/// Initial window without Quick-Start, in packets.
const INITIAL_WINDOW: u64 = 3;
/// "Just over half the time", and up to what that is.
const HALF: f64 = 0.5;
const JUST_OVER_HALF: f64 = 0.6;
/// "12 round-trip times", to the nearest whole one.
const TWELVE: std::ops::Range<f64> = 11.5..12.5;
/// "Similar": the completion times of ordinary transfers differ by at most this part.
const SIMILAR: f64 = 0.01;
/// What routers approve of a request for 100 Mbit/s: 90 % of the link, rounded down to a rate of the encoding.
const APPROVED: Rate = Rate::from_bits_per_sec(81_920_000);
/// Round trips by which "approximated" may differ: the one that a transfer has begun.
const APPROXIMATELY: f64 = 1.0;

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
    if checker.declared() > 0 {
        statements_of_figure_1(input.jobs, checker)?;
    }
    Ok("time-sequence plots, and ordinary transfers beside a burst".to_owned())
}

fn statements_of_figure_1(jobs: usize, checker: &mut Checker) -> Result<(), String> {
    // A ratio in 1A, and in 1B round trips of both and what others lose to both.
    checker.declare(1 + 4);
    if let [slow_start, quick_start] = Results::of("quick-start-gprs", jobs)?.means(|row| row.fct_ms)[..] {
        let band = between(HALF, JUST_OVER_HALF, HALF);
        checker.check("1A, 30 packets", "FCT over slow start's", quick_start / slow_start, band);
    }
    let burst = Results::of("quick-start-10g", jobs)?;
    let rtt = burst.plan.links[0].rtt.as_millis_f64();
    if let [slow_start, quick_start, ..] = burst.means(|row| row.fct_ms)[..] {
        // The paper's times end with the last acknowledgement and begin after the handshake.
        let round_trips = |fct: f64| (fct + rtt / 2.0 - rtt) / rtt;
        let ours = round_trips(slow_start);
        let twelve = judged(TWELVE.contains(&ours), 12.0, "12, rounded");
        checker.check("1B, slow start", "round trips of the data", ours, twelve);
        let one = below(2.0).beside(1.0).saying("all in the first: below 2");
        checker.check("1B, Quick-Start", "round trips of the data", round_trips(quick_start), one);
    }
    if let [_, _, beside_slow_start, beside_quick_start] = burst.means(|row| row.others_extra_fct_ms)[..] {
        for (later, with) in [(beside_slow_start, "slow start"), (beside_quick_start, "Quick-Start")] {
            let cell = format!("20 transfers beside the burst with {with}");
            // Slow start needs more than ten round trips for 5,000 packets.
            checker.check(&cell, "longer by this part", later / (10.0 * rtt), near(0.0, SIMILAR).saying("at most 1 %"));
        }
    }
    Ok(())
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
    let StartupConfig::QuickStart(config) = &plan.schemes[1].value else {
        return Err("built-in scenario: the second scheme is not quick-start".into());
    };
    let mut furthest = 0.0_f64;
    for cell in plan.cells() {
        let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size]);
        let bytes = size.value.mean_bytes();
        let Some(counted) = quick_start_rounds(link, &plan.transport.profile, bytes, INITIAL_WINDOW, config) else {
            continue;
        };
        // The equation counts whole round trips: until the last acknowledgement.
        let ours = fcts[cell.index] / link.rtt.as_millis_f64() + 0.5;
        let expected = counted[cell.scheme];
        furthest = furthest.max((ours - expected).abs());
        let name = format!("{}, {}, {}", link.rtt, size.text, plan.schemes[cell.scheme].value.name());
        checker.check(&name, "round trips", ours, near(expected, APPROXIMATELY).saying("within one round trip"));
    }
    Ok(format!("furthest from equation (2): {furthest:.2} round trips"))
}
