//! A recommendation in words.

use super::measured::Fleet;
use super::recommendation::{OfKind, OfScheme, Recommendation};

/// Most kinds that are named.
const MOST_NAMED: usize = 5;

/// The recommendation in sentences, the most important one first.
pub fn sentences(fleet: &Fleet, told: &Recommendation) -> Vec<String> {
    let base = &told.schemes[0];
    let Some(chosen) = told.schemes.iter().find(|one| one.scheme == told.scheme) else { return Vec::new() };
    let mut sentences = vec![headline(base, chosen)];
    if !told.as_good.is_empty() {
        sentences.push(format!("As fast, as far as these runs can tell: {}.", told.as_good.join(", ")));
    }
    if chosen.scheme != base.scheme {
        sentences.push(losers(told));
    }
    for one in told.schemes.iter().filter(|one| one.scheme != base.scheme) {
        if let Some(why) = &one.refused {
            sentences.push(format!("{} is not offered: {why}.", one.scheme));
        }
    }
    let unknown: f64 = fleet.parts.iter().filter(|part| !part.is_known).map(|part| part.share).sum();
    if unknown > 0.0 {
        sentences.push(format!(
            "Of {:.0} % of the transfers nothing is known before the handshake; of the others the link's mean rate and \
             RTT.",
            unknown * 100.0
        ));
    }
    sentences.push(format!(
        "Times as fast are ratios of geometric means over the fleet, with {:.0} % intervals that hold for all schemes \
         at once, or for all kinds of transfers; {} repetitions of each kind.",
        told.level * 100.0,
        told.reps
    ));
    sentences
}

fn headline(base: &OfScheme, chosen: &OfScheme) -> String {
    if chosen.scheme == base.scheme {
        return format!(
            "Keep {}: within this budget no other of these schemes is measurably faster for this fleet.",
            base.scheme
        );
    }
    let interval = chosen.gain_ci.map_or(String::new(), |[low, high]| format!(" ({low:.2} to {high:.2})"));
    let gain = chosen.gain.map_or(String::new(), |gain| format!("{gain:.2} times as fast as with {}", base.scheme));
    let change = |of: fn(&OfScheme) -> Option<f64>| {
        of(base)
            .zip(of(chosen))
            .map_or(String::new(), |(before, after)| format!("{} to {} ms", time(before), time(after)))
    };
    let harm = chosen
        .harm_ratio
        .map_or(String::new(), |ratio| format!("; others lose {ratio:.2} times what they lose beside {}", base.scheme));
    format!(
        "{}: a transfer of this fleet is {gain}{interval}, its median {} and its 95th percentile {}, for {:.1} % sent \
         twice in place of {:.1} %{harm}.",
        chosen.scheme,
        change(|one| one.p50_ms),
        change(|one| one.p95_ms),
        chosen.inflation * 100.0,
        base.inflation * 100.0
    )
}

/// For whom it gets worse.
fn losers(told: &Recommendation) -> String {
    let share = |is: &dyn Fn(&&OfKind) -> bool| -> f64 { told.kinds.iter().filter(is).map(|kind| kind.share).sum() };
    let is_slower = |kind: &&OfKind| kind.gain_ci.is_some_and(|[_, high]| high < 1.0);
    let is_faster = |kind: &&OfKind| kind.gain_ci.is_some_and(|[low, _]| low > 1.0);
    // A sum over nothing may be -0.
    let percent = |share: f64| format!("{:.0} %", share.abs() * 100.0);
    let (slower, faster) = (share(&is_slower), share(&is_faster));
    let shares = format!(
        "It is measurably faster for {} of the transfers and slower for {}; of {} these runs cannot tell",
        percent(faster),
        percent(slower),
        percent((1.0 - slower - faster).max(0.0))
    );
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
    let gain = kind.gain.map_or(String::new(), |gain| format!("{gain:.2} times as fast, "));
    format!("{}{whose} ({gain}{:.1} % of the transfers)", kind.name, kind.share * 100.0)
}

/// Milliseconds with three digits.
fn time(ms: f64) -> String {
    let digits = if ms < 100.0 { 1 } else { 0 };
    format!("{ms:.digits$}")
}
