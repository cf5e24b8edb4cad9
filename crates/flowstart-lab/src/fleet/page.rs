//! A recommendation as the contents of a page.

use flowstart_report::{Estimate, FleetChoice, FleetKind, FleetReport, Method, Verdict};

use super::measured::Fleet;
use super::recommendation::{OfChoice, OfKind, Recommendation};

/// The contents; `sentences` are the answer, the most important one first.
pub fn page(fleet: &Fleet, told: &Recommendation, sentences: &[String], method: Method) -> FleetReport {
    FleetReport {
        title: format!("which {} for this fleet", fleet.subject.word()),
        answer: sentences.to_vec(),
        word: fleet.subject.word().to_owned(),
        choices: told.choices.iter().enumerate().map(choice).collect(),
        recommended: told.choice.clone().unwrap_or_default(),
        kinds: told.kinds.iter().map(kind).collect(),
        method,
    }
}

fn choice((place, one): (usize, &OfChoice)) -> FleetChoice {
    let is_compared = place > 0;
    FleetChoice {
        name: one.choice.clone(),
        gain: Estimate { mean: one.gain.filter(|_| is_compared), ci95: one.gain_ci },
        verdict: one.verdict.map(Verdict::of_interval),
        p50_ms: Estimate { mean: one.p50_ms, ci95: one.p50_ci95 },
        p95_ms: Estimate { mean: one.p95_ms, ci95: one.p95_ci95 },
        regret: one.regret,
        inflation: Some(one.inflation),
        queue_delay_ms: one.queue_delay_ms,
        dropped_packets: Some(one.dropped_packets),
        harm_mbit: one.harm_mbit,
        harm_ratio: one.harm_ratio,
        refused: one.refused.clone().unwrap_or_default(),
    }
}

fn kind(one: &OfKind) -> FleetKind {
    let start = one.start.as_ref().map_or(String::new(), |start| format!(", {start}"));
    FleetKind {
        name: format!("{}{start}", one.name),
        known: one.known,
        share: one.share,
        gain: Estimate { mean: one.gain, ci95: one.gain_ci },
        verdict: Some(Verdict::of_interval(one.verdict)),
    }
}
