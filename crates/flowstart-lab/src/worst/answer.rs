//! What a search found, in words.

use super::dimension::ALONE;
use super::measure::{Badness, Measure};
use super::search::{Found, WORSE, Worst};
use super::space::Question;
use crate::study::scenario::Scenario;

/// The setting of a scenario, in words.
pub fn setting(scenario: &Scenario) -> String {
    let first = |list: &[String]| list.first().cloned().unwrap_or_default();
    let mut parts = vec![format!("{} over {}", first(&scenario.size), first(&scenario.link))];
    let (aqm, competitor) = (first(&scenario.aqm), first(&scenario.competitor));
    parts.push(format!("queue discipline {aqm}"));
    parts.push(if competitor == ALONE { "alone".to_owned() } else { format!("beside {competitor}") });
    parts.push(first(&scenario.transport));
    parts.extend(scenario.link_options.iter().map(|options| format!("with {options}")));
    if scenario.unknown {
        parts.push("nothing known of the path".to_owned());
    }
    parts.join(", ")
}

/// The worst of a measure in a sentence.
pub fn sentence(question: &Question, measure: Measure, worst: Option<&Worst>) -> String {
    let (scheme, baseline) = (&question.scheme, &question.against[0]);
    let Some(worst) = worst else {
        let found = match measure {
            Measure::Regret => format!("{scheme} measurably takes longer than the others"),
            Measure::Harm => format!("others measurably get less beside {scheme} than beside {baseline}"),
            Measure::Waste => format!("{scheme} measurably sends more twice than {baseline}"),
        };
        return format!("No setting was found in which {found}.");
    };
    let Some(badness) = worst.badness else {
        return format!(
            "{:.0} % of the transfers of {scheme} do not complete: {}.",
            worst.failed * 100.0,
            setting(&worst.study.scenario)
        );
    };
    let Badness { value, ci95, own, other, .. } = badness;
    let interval = |scale: f64, digits: usize, unit: &str| {
        ci95.map_or(String::new(), |[low, high]| {
            format!(" ({:.digits$} to {:.digits$}{unit})", low * scale, high * scale)
        })
    };
    let told = match measure {
        Measure::Regret => format!(
            "At its worst a transfer with {scheme} takes {value:.2} times as long as with {}{}, {own:.0} in place of \
             {other:.0} ms",
            worst.beside,
            interval(1.0, 2, "")
        ),
        Measure::Harm => format!(
            "At its worst the others get {value:.2} bytes less{} beside {scheme} for each byte that it carries, \
             {own:.2} in place of {other:.2} beside {baseline}",
            interval(1.0, 2, "")
        ),
        Measure::Waste => format!(
            "At its worst {scheme} sends {:.0} % of its payload twice, {baseline} {:.0} %, which are {:.0} points \
             more{}",
            own * 100.0,
            other * 100.0,
            value * 100.0,
            interval(100.0, 0, "")
        ),
    };
    format!("{told}: {}.", setting(&worst.study.scenario))
}

/// How sure the results are.
pub fn certainty(question: &Question, found: &Found, reps: u32) -> Vec<String> {
    let mut notes = vec![format!(
        "The worst of {} settings for each measure. Another --seed or more --points may find worse ones. Numbers and \
         95 % intervals are of the setting that is shown, from {reps} repetitions whose seeds chose nothing.",
        found.points
    )];
    let shares: Vec<String> = found
        .worst
        .iter()
        .filter_map(|(measure, worst)| Some((measure, worst.as_ref()?)))
        .map(|(measure, worst)| format!("{:.0} % by {}", worst.worse * 100.0, measure.name()))
        .collect();
    if !shares.is_empty() {
        notes.push(format!(
            "Of {} settings that are spread evenly over all, {} is worse than the others by more than {:.0} % in {}.",
            found.even,
            question.scheme,
            WORSE * 100.0,
            shares.join(", ")
        ));
    }
    if found.unjudged > 0 {
        notes.push(format!(
            "In {} settings nothing can be said, for transfers of {} fail there, too.",
            found.unjudged,
            question.against.join(", ")
        ));
    }
    if found.refused > 0 {
        notes.push(format!("{} settings could not be run.", found.refused));
    }
    notes
}
