//! A recommendation in words.

use flowstart_report::Kind;

use super::choices::Subject;
use super::measured::Fleet;
use super::population::Column;
use super::recommendation::{OfChoice, OfKind, Recommendation, small};
use crate::results::coverage::coverage;

/// Most kinds that are named.
const MOST_NAMED: usize = 5;

/// The recommendation in sentences, the most important one first.
pub fn sentences(fleet: &Fleet, told: &Recommendation) -> Vec<String> {
    let base = &told.choices[0];
    let chosen = told.choices.iter().find(|one| Some(&one.choice) == told.choice.as_ref());
    let mut sentences = vec![match (chosen, fleet.subject) {
        (None, _) => of_nothing(base, told),
        (Some(chosen), Subject::Scheme) => of_scheme(base, chosen),
        (Some(chosen), Subject::Queue) => of_queue(base, chosen),
    }];
    // What is compared is the baseline with itself where nothing is chosen.
    let chosen = chosen.unwrap_or(base);
    if !told.as_good.is_empty() {
        sentences.push(format!("As fast, as far as these runs can tell: {}.", told.as_good.join(", ")));
    }
    if chosen.choice != base.choice {
        sentences.push(losers(told));
    }
    if let Some((before, after)) = base.p95_ms.zip(chosen.p95_ms).filter(|(before, after)| after > before) {
        sentences.push(format!(
            "But the slowest transfers take longer: the 95th percentile rises from {} to {} ms.",
            time(before),
            time(after)
        ));
    }
    for one in told.choices.iter().filter(|one| one.choice != base.choice) {
        if let Some(why) = &one.refused {
            sentences.push(format!("{} is not offered: {why}.", one.choice));
        }
    }
    if fleet.subject == Subject::Queue && fleet.population.kinds.iter().any(|kind| kind.aqm != base.choice) {
        sentences.push(format!(
            "The table's column aqm does not count here: {} with the link's own buffer is the baseline of all links.",
            base.choice
        ));
    }
    let unknown: f64 = fleet.parts.iter().filter(|part| !part.is_known).map(|part| part.share).sum();
    if fleet.parts.iter().all(|part| !part.is_known) {
        sentences.push("Of no path anything is known before the handshake.".into());
    } else if unknown > 0.0 {
        sentences.push(format!(
            "Of {:.0} % of the transfers nothing is known before the handshake; of the others the link's mean rate and \
             RTT, exactly.",
            unknown * 100.0
        ));
    } else {
        sentences.push("Of every path the link's mean rate and RTT are known before the handshake, exactly.".into());
    }
    let Fleet { transport, avoidance, .. } = fleet;
    sentences.push(format!("All transfers are those of {transport} with {avoidance}."));
    if !fleet.population.assumed.is_empty() {
        let one = |column: &&Column| format!("{} is {}", column.name, column.default.unwrap_or_default());
        let all: Vec<String> = fleet.population.assumed.iter().map(one).collect();
        sentences.push(format!("Assumed, because the table does not say it: {}.", all.join(", ")));
    }
    sentences.push(format!(
        "Times as fast are ratios of geometric means over the fleet, with {:.0} % intervals that hold for all {}s at \
         once, or for all kinds of transfers; {} repetitions of each kind.",
        told.level * 100.0,
        fleet.subject.word(),
        told.reps
    ));
    let largest = (told.choices.len() - 1).max(if chosen.choice == base.choice { 0 } else { told.kinds.len() });
    sentences.extend(coverage(largest, told.reps as usize));
    sentences
}

/// How many times as fast, with the interval.
fn gain(chosen: &OfChoice) -> String {
    let interval = chosen.gain_ci.map_or(String::new(), |[low, high]| format!(" ({low:.2} to {high:.2})"));
    chosen.gain.map_or(String::new(), |gain| format!("{gain:.2} times as fast{interval}"))
}

/// A time before and after.
fn change(base: &OfChoice, chosen: &OfChoice, of: fn(&OfChoice) -> Option<f64>) -> String {
    let both = of(base).zip(of(chosen));
    both.map_or(String::new(), |(before, after)| format!("{} to {} ms", time(before), time(after)))
}

/// The 95th percentile before and after, which few transfers decide, with the interval of the latter.
fn tail(base: &OfChoice, chosen: &OfChoice) -> String {
    let interval = chosen.p95_ci95.map_or(String::new(), |[low, high]| format!(" ({} to {})", time(low), time(high)));
    format!("{}{interval}", change(base, chosen, |one| one.p95_ms))
}

/// What others lose.
fn harm(base: &OfChoice, chosen: &OfChoice) -> String {
    match (chosen.harm_ratio, chosen.harm_mbit) {
        (Some(ratio), _) => format!("; others lose {ratio:.2} times what they lose beside {}", base.choice),
        (None, Some(own)) if own > 0.0 => {
            format!("; others lose {} Mbit a transfer, and nothing beside {}", small(own), base.choice)
        }
        _ => String::new(),
    }
}

/// Why nothing can be compared.
fn of_nothing(base: &OfChoice, told: &Recommendation) -> String {
    let failing: Vec<&OfKind> = told.kinds.iter().filter(|kind| kind.baseline_failed > 0.0).collect();
    let one = |kind: &&OfKind| format!("{} ({:.0} % of them)", kind.name, kind.baseline_failed * 100.0);
    let mut named: Vec<String> = failing.iter().take(MOST_NAMED).map(one).collect();
    if failing.len() > MOST_NAMED {
        named.push(format!("{} more", failing.len() - MOST_NAMED));
    }
    format!(
        "Nothing can be recommended: with {} transfers do not complete, so their means cannot be compared: {}. Leave \
         out what cannot work, or mend its line.",
        base.choice,
        named.join(", ")
    )
}

fn of_scheme(base: &OfChoice, chosen: &OfChoice) -> String {
    if chosen.choice == base.choice {
        return format!(
            "Keep {}: within this budget no other of these schemes is measurably faster for this fleet.",
            base.choice
        );
    }
    format!(
        "{}: a transfer of this fleet is {} as with {}, its median {} and its 95th percentile {}, for {:.1} % sent \
         twice in place of {:.1} %{}.",
        chosen.choice,
        gain(chosen),
        base.choice,
        change(base, chosen, |one| one.p50_ms),
        tail(base, chosen),
        chosen.inflation * 100.0,
        base.inflation * 100.0,
        harm(base, chosen)
    )
}

fn of_queue(base: &OfChoice, chosen: &OfChoice) -> String {
    if chosen.choice == base.choice {
        return format!(
            "Keep {} with the link's own buffer: within this budget no other of these queues is measurably faster for \
             the transfers that arrive, or shorter and surely at most 5 % slower.",
            base.choice
        );
    }
    format!(
        "{}: a transfer that arrives is {} as with {} and the link's own buffer, its median {} and its 95th percentile \
         {}; the queue's 99th percentile goes from {}, and a transfer loses {:.1} packets in place of {:.1}{}.",
        chosen.choice,
        gain(chosen),
        base.choice,
        change(base, chosen, |one| one.p50_ms),
        tail(base, chosen),
        change(base, chosen, |one| one.queue_delay_ms),
        chosen.dropped_packets,
        base.dropped_packets,
        harm(base, chosen)
    )
}

/// For whom it gets worse.
fn losers(told: &Recommendation) -> String {
    let share = |is: &dyn Fn(&&OfKind) -> bool| -> f64 { told.kinds.iter().filter(is).map(|kind| kind.share).sum() };
    let is = |verdict: Kind| move |kind: &&OfKind| kind.verdict == verdict;
    let is_slower = is(Kind::Slower);
    // A sum over nothing may be -0.
    let percent = |share: f64| format!("{:.0} %", share.abs() * 100.0);
    let mut shares = format!(
        "It is measurably faster for {} of the transfers and slower for {}",
        percent(share(&is(Kind::Faster))),
        percent(share(&is_slower))
    );
    for (verdict, words) in [
        (Kind::Same, "for {} it changes nothing"),
        (Kind::Negligible, "for {} it changes 1 % at most"),
        (Kind::Unclear, "of {} these runs cannot tell"),
    ] {
        let part = share(&is(verdict));
        if part > 0.0 {
            shares = format!("{shares}; {}", words.replace("{}", &percent(part)));
        }
    }
    let mut named: Vec<String> = told.kinds.iter().filter(is_slower).map(named).collect();
    if named.is_empty() {
        return format!("{shares}.");
    }
    let more = named.len().saturating_sub(MOST_NAMED);
    named.truncate(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{shares}. Slower are {}{more}.", named.join(", "))
}

fn named(kind: &OfKind) -> String {
    let whose = if kind.known { "" } else { ", unknown" };
    let start = kind.start.as_ref().map_or(String::new(), |start| format!(", {start}"));
    let gain = kind.gain.map_or(String::new(), |gain| format!("{gain:.2} times as fast, "));
    format!("{}{whose}{start} ({gain}{:.1} % of the transfers)", kind.name, kind.share * 100.0)
}

/// Milliseconds with three digits.
fn time(ms: f64) -> String {
    let digits = if ms < 100.0 { 1 } else { 0 };
    format!("{ms:.digits$}")
}
