//! SEARCH on a satellite link: what the slides of Cronin et al. (2024) state.
//!
//! `validation/search/README.md` says where the numbers come from, what the bands are and why. The scenarios are
//! `scenarios/search-classes.toml` and `scenarios/search-buffers.toml`.

use flowstart_core::event::ExitReason;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_lab::run::newcomers::Until;
use flowstart_lab::run::repetition;
use flowstart_lab::spec::link::{Buffer, Link};
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_sim::observe::monitor::{Departed, Monitor};
use flowstart_sim::observe::record::FlowRecord;
use flowstart_statistics::median;
use rayon::prelude::*;

use crate::Input;
use crate::check::{Checker, above, between, near};
use crate::results::plan;

/// The baseline's place among the schemes, that of HyStart, and those of SEARCH.
const SLOW_START: usize = 0;
const HYSTART: usize = 1;
/// Algorithm 1, whose look-back is the RTT of now.
const SEARCH: usize = 2;
/// Algorithm 1 with the look-back of the published bound.
const FIXED: usize = 3;

/// Published gain of the median goodput, in percent, and what is accepted around it.
const GOODPUT_GAIN: (f64, f64) = (14.0, 5.0);
/// Published gain of the median completion time, in seconds, and what is accepted around it.
const FCT_GAIN: (f64, f64) = (3.0, 1.0);
/// What both together imply for the baseline: 3 s are 14 % of it.
const BASELINE_S: f64 = 21.0;
/// Published time of detection after the chokepoint, in RTTs.
const DETECTION: f64 = 1.96;
/// An exit up to this many RTTs after the chokepoint is at it: the analytic time of a fixed look-back.
const AT_CHOKEPOINT: f64 = 2.2;
/// A run is better when it is faster by this part.
const BETTER: f64 = 0.01;
/// The link counts as fully used in an RTT in which it sends this part of what it can.
const FULL: f64 = 0.95;
/// A queue whose packets wait for less than this part of what its buffer takes is not full.
const NOT_FULL: f64 = 0.9;

/// The class of a run; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A packet was lost within an RTT of the first data.
    FirstRttLoss,
    /// A packet was lost before startup ended while the queue was not full.
    WirelessLoss,
    Clean,
}

/// What one run says about its startup.
#[derive(Clone, Debug, PartialEq)]
struct Startup {
    class: Class,
    fct_s: f64,
    /// Startup ended by SEARCH before anything was lost.
    before_loss: bool,
    /// From the chokepoint to SEARCH's exit, in base RTTs; `None` when startup ended otherwise.
    exit_rtts: Option<f64>,
}

pub(crate) fn geo(_: &Input, checker: &mut Checker) -> Result<String, String> {
    let (plan, runs) = startups("search-classes")?;
    for (link, written) in plan.links.iter().enumerate() {
        let server = if written.text.contains("access_rate") { "server not limited" } else { "server at 150 Mbit/s" };
        let of = |scheme, size| clean(&runs, (link, scheme, size));
        let time = |scheme, size| median_fct(&of(scheme, size));
        let from_baseline = |size: &usize| (time(SLOW_START, *size) - BASELINE_S).abs();
        let sizes = 0..plan.sizes.len();
        // A size without a median is the farthest, and a link without sizes leaves its numbers uncompared.
        let Some(size) = sizes.min_by(|a, b| from_baseline(a).total_cmp(&from_baseline(b))) else { continue };
        for scheme in [SEARCH, FIXED] {
            let cell = format!("{server}, {}, {}", plan.sizes[size].text, plan.schemes[scheme].text);
            for (baseline, name) in [(SLOW_START, "slow start"), (HYSTART, "HyStart")] {
                let (before, after) = (time(baseline, size), time(scheme, size));
                let gain = (before / after - 1.0) * 100.0;
                let (goodput, fct) = (near(GOODPUT_GAIN.0, GOODPUT_GAIN.1), near(FCT_GAIN.0, FCT_GAIN.1));
                checker.check(&cell, &format!("goodput gain over {name}, %"), gain, goodput);
                checker.check(&cell, &format!("FCT gain over {name}, s"), before - after, fct);
            }
            let own = of(scheme, size);
            let share = |count: usize| count as f64 / own.len() as f64;
            let early = share(own.iter().filter(|(_, run)| run.before_loss).count());
            checker.check(&cell, "share of clean runs that leave before loss", early, above(0.5).beside(1.0));
            let base = of(SLOW_START, size);
            let better = own.iter().filter(|(rep, run)| {
                base.iter().any(|(other, slow)| other == rep && run.fct_s < slow.fct_s * (1.0 - BETTER))
            });
            let better = share(better.count());
            checker.check(&cell, "share of clean runs that are better", better, above(0.5).beside(1.0));
        }
        let cell = format!("{server}, {}, {}", plan.sizes[size].text, plan.schemes[FIXED].text);
        let delays: Vec<f64> = of(FIXED, size).iter().filter_map(|(_, run)| run.exit_rtts).collect();
        let delay = median(&delays).unwrap_or(f64::NAN);
        checker.check(&cell, "exit after the chokepoint, RTTs", delay, between(0.0, AT_CHOKEPOINT, DETECTION));
    }
    let count = |class| runs.iter().flat_map(|(.., run)| run).filter(|run| run.class == class).count();
    let [lost, wireless, clean] = [Class::FirstRttLoss, Class::WirelessLoss, Class::Clean].map(count);
    let buffers = buffers(checker)?;
    Ok(format!(
        "{lost} runs with first-RTT loss, {wireless} with wireless loss, {clean} clean. {buffers}. Misses are explained in \
         validation/search/README.md"
    ))
}

/// Checks the largest gain of clean runs that leave before loss, over the buffers, and says where the exits lie.
fn buffers(checker: &mut Checker) -> Result<String, String> {
    let (plan, runs) = startups("search-buffers")?;
    let mut largest = (f64::NAN, "none".to_owned());
    let [mut early, mut at, mut late] = [0; 3];
    for (link, written) in plan.links.iter().enumerate() {
        let before = median_fct(&clean(&runs, (link, SLOW_START, 0)));
        for scheme in SEARCH..plan.schemes.len() {
            let mut own = clean(&runs, (link, scheme, 0));
            for exit in own.iter().filter_map(|(_, run)| run.exit_rtts) {
                let place = if exit < 0.0 {
                    &mut early
                } else if exit <= AT_CHOKEPOINT {
                    &mut at
                } else {
                    &mut late
                };
                *place += 1;
            }
            own.retain(|(_, run)| run.before_loss);
            let gain = (before / median_fct(&own) - 1.0) * 100.0;
            if !gain.is_nan() && (largest.0.is_nan() || gain > largest.0) {
                largest = (gain, format!("{}, {}", written.text, plan.schemes[scheme].text));
            }
        }
    }
    let (gain, place) = largest;
    let metric = "largest goodput gain over slow start of runs that leave before loss, %";
    checker.check("0.25 to 4 BDP of buffer", metric, gain, near(GOODPUT_GAIN.0, GOODPUT_GAIN.1));
    Ok(format!(
        "Over all buffers {early} exits are early, {at} at the chokepoint, {late} late, and the largest gain of runs that \
         leave before loss is {gain:.1} % ({place})"
    ))
}

fn median_fct(runs: &[(u32, Startup)]) -> f64 {
    median(&runs.iter().map(|(_, run)| run.fct_s).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// A run with its cell and repetition; nothing is known of one that is not complete.
type Run = (Cell, u32, Option<Startup>);

/// The clean runs of a link, scheme and size, with their repetitions; none when a run is not complete, since what is
/// left says nothing of the cell.
fn clean(runs: &[Run], (link, scheme, size): (usize, usize, usize)) -> Vec<(u32, Startup)> {
    let own = runs.iter().filter(|(cell, ..)| (cell.link, cell.scheme, cell.size) == (link, scheme, size));
    let all: Option<Vec<(u32, Startup)>> = own.map(|(_, rep, run)| Some((*rep, run.clone()?))).collect();
    all.unwrap_or_default().into_iter().filter(|(_, run)| run.class == Class::Clean).collect()
}

/// Runs a scenario and looks at every startup in it.
fn startups(scenario: &str) -> Result<(Plan, Vec<Run>), String> {
    let plan = plan(scenario)?;
    let work: Vec<(Cell, u32)> =
        plan.cells().into_iter().flat_map(|cell| (0..plan.reps).map(move |rep| (cell, rep))).collect();
    let startup = |&(cell, rep): &(Cell, u32)| {
        let run = repetition::replay_until(&plan, &cell, rep, Until::Complete);
        let record = run.world.record(run.flows[0]);
        let monitor = run.world.network.monitor.as_ref();
        (cell, rep, monitor.and_then(|monitor| look(&plan.links[cell.link], record, monitor)))
    };
    let runs = work.par_iter().map(startup).collect();
    Ok((plan, runs))
}

/// Reads a complete run's records; `None` when it is not complete.
fn look(link: &Link, record: &FlowRecord, monitor: &Monitor) -> Option<Startup> {
    let departures = monitor.log.as_deref()?;
    let (started, completed, first_data) = (record.started?, record.completed?, record.first_data_sent?);
    let ended = record.exit.map_or(completed, |exit| exit.time);
    let in_first_rtt = |time: Timestamp| time <= first_data + record.handshake_rtt.unwrap_or(link.rtt);
    let class = if record.first_drop.is_some_and(in_first_rtt) {
        Class::FirstRttLoss
    } else if monitor.drops.iter().any(|&(time, _)| time < ended && !was_full(link, departures, time)) {
        Class::WirelessLoss
    } else {
        Class::Clean
    };
    let found = record.exit.filter(|exit| exit.reason == ExitReason::Chokepoint);
    let chokepoint = first_full_rtt(departures, link.rtt, link.rate.amount_in(link.rtt).get());
    // Acknowledgements of what the link sends reach the sender half a base RTT later.
    let exit_rtts = found.zip(chokepoint).map(|(exit, full)| {
        let seen = full + link.rtt / 2;
        (exit.time.as_secs() - seen.as_secs()) / link.rtt.as_secs()
    });
    let before_loss = found.is_some_and(|exit| record.first_drop.is_none_or(|drop| exit.time < drop));
    Some(Startup { class, fct_s: completed.since(started).as_secs(), before_loss, exit_rtts })
}

/// Whether the buffer was full when something was lost at `time`: what entered the queue last had to wait for as long
/// as the buffer takes.
fn was_full(link: &Link, departures: &[Departed], time: Timestamp) -> bool {
    let takes = match link.buffer {
        Buffer::Bytes(bytes) => link.rate.time_for(bytes),
        Buffer::Bdp(factor) => link.rtt.scale(factor),
        Buffer::Time(time) => time,
        // The scenarios have none of these.
        Buffer::Packets(_) | Buffer::Unlimited => return false,
    };
    let entered = |departure: &Departed| {
        departure.time - departure.delay - link.rate.time_for(Bytes::new(u64::from(departure.size)))
    };
    let later = departures.partition_point(|departure| entered(departure) <= time);
    departures[..later].last().is_some_and(|last| last.delay >= takes.scale(NOT_FULL))
}

/// When the first base RTT begins in which the link sends nearly all that it can: the chokepoint.
fn first_full_rtt(departures: &[Departed], rtt: Duration, capacity: u64) -> Option<Timestamp> {
    let enough = (capacity as f64 * FULL) as u64;
    let (mut end, mut bytes) = (0, 0);
    for departure in departures {
        while let Some(next) = departures.get(end).filter(|next| next.time < departure.time + rtt) {
            bytes += u64::from(next.size);
            end += 1;
        }
        if bytes >= enough {
            return Some(departure.time);
        }
        bytes -= u64::from(departure.size);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(buffer: &str) -> Link {
        let text = format!("rate=12mbit,rtt=100ms,buffer={buffer}");
        Link::parse("link", &text, std::path::Path::new(".")).unwrap()
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn departed(ms: u64, delay_ms: u64) -> Departed {
        Departed { time: at(ms), flow: 0, size: 1500, delay: Duration::from_millis(delay_ms) }
    }

    #[test]
    fn the_chokepoint_is_the_first_rtt_in_which_the_link_is_full() {
        // 10 packets an RTT of 100 ms are capacity. From 200 ms on one leaves every 10 ms; the RTT that begins with the
        // packet before has one of its own, at 150 ms, and those at 200 to 240 ms.
        let mut departures: Vec<Departed> = [0, 50, 150].map(|ms| departed(ms, 0)).to_vec();
        departures.extend((20..40).map(|place| departed(place * 10, 0)));
        assert_eq!(first_full_rtt(&departures, Duration::from_millis(100), 15_000), Some(at(200)));
        assert_eq!(first_full_rtt(&departures[..10], Duration::from_millis(100), 15_000), None);
    }

    #[test]
    fn a_queue_is_full_when_the_last_packet_to_enter_waits_for_what_the_buffer_takes() {
        // 1 ms a packet and 10 ms of buffer. A packet that leaves at 20 ms after waiting for 9 ms entered at 10 ms.
        let link = link("10ms");
        let departures = [departed(9, 5), departed(20, 9), departed(21, 4)];
        assert!(was_full(&link, &departures, at(10)) && was_full(&link, &departures, at(15)));
        assert!(!was_full(&link, &departures, at(9)) && !was_full(&link, &departures, at(16)));
        assert!(!was_full(&link, &[], at(16)));
    }

    #[test]
    fn an_unlimited_queue_is_never_full() {
        let link = link("unlimited");
        assert!(!was_full(&link, &[departed(20, 9)], at(15)));
    }
}
