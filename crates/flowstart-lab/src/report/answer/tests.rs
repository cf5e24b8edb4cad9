use std::path::Path;

use super::*;
use crate::experiment;
use crate::results::summary::summarize;
use crate::study::scenario::Scenario;

fn scenario(link: &[&str], size: &[&str], scheme: &[&str], competitor: &str) -> Scenario {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Scenario {
        link: words(link),
        size: words(size),
        scheme: words(scheme),
        aqm: words(&["taildrop"]),
        competitor: words(&[competitor]),
        link_options: Some("access_jitter=1ms/1ms".into()),
        transport: "model-quic".into(),
        flows: 1,
        reps: 5,
        seed: 1,
        hint: true,
        ..Scenario::default()
    }
}

fn answer_of(scenario: &Scenario) -> Vec<String> {
    let plan = scenario.plan(Path::new(".")).unwrap();
    let rows = experiment::execute(&plan, 2, &[], |_| {}).unwrap();
    answer(&plan, &summarize(&plan, &rows))
}

fn answer_to(link: &[&str], size: &[&str], scheme: &[&str], competitor: &str) -> Vec<String> {
    answer_of(&scenario(link, size, scheme, competitor))
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(['(', ')', ' ']).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn many_cells_are_answered_by_their_median() {
    let answer = answer_to(&["dsl-fast", "lte"], &["70KB", "2MB"], &["slow-start", "blitzstart"], "none");
    let first = &answer[0];
    assert!(first.starts_with("blitzstart finishes ") && first.contains(" sooner than slow-start "), "{first}");
    assert!(first.contains(" in the median over 2 links and 2 sizes (speed-up "), "{first}");
    assert!(!first.contains("competing flows") && first.ends_with('.'), "{first}");
    assert!(answer.iter().any(|note| note.starts_with("Of 4 comparisons with slow-start, ")), "{answer:?}");
    assert!(answer.iter().any(|note| note.ends_with("hold for all 4 comparisons at once.")), "{answer:?}");
}

#[test]
fn what_is_later_is_told_in_percent_with_its_interval() {
    let answer = answer_to(&["dsl-fast"], &["70KB"], &["slow-start:iw=32", "slow-start"], "none");
    assert!(answer[0].starts_with("slow-start takes ") && answer[0].contains(" % longer than slow-start:iw=32 ("));
    let [longer, low, high, ..] = numbers(&answer[0])[..] else { panic!("{answer:?}") };
    assert!(0.0 < low && low <= longer && longer <= high, "{answer:?}");
    assert!(answer[0].contains(" to finish a 70KB transfer on dsl-fast"), "{answer:?}");
    let costs = answer.iter().find(|note| note.starts_with("Packets lost and bytes sent twice: ")).unwrap();
    assert!(costs.contains("slow-start:iw=32 ") && costs.contains("; slow-start "), "{costs}");
}

#[test]
fn harm_to_a_conversation_is_a_score() {
    let answer = answer_to(&["hspa"], &["90KB"], &["slow-start", "jump-start"], "media");
    assert!(answer[0].contains("; the conversation's worst second scores "), "{answer:?}");
    assert!(!answer[0].contains("Mbit"), "{answer:?}");
}

#[test]
fn harm_to_others_is_what_they_deliver_less() {
    let answer = answer_to(&["dsl-fast"], &["2MB"], &["slow-start", "hystart"], "cubic");
    assert!(answer[0].contains("2MB transfer") && answer[0].contains("dsl-fast"), "{answer:?}");
    assert!(
        answer[0].contains("; competing flows deliver ") && answer[0].contains(" Mbit less beside it"),
        "{answer:?}"
    );
}

#[test]
fn a_scheme_that_makes_no_difference_is_said_to_make_none() {
    let answer = answer_to(&["lte"], &["70KB"], &["slow-start", "slow-start:iw=10"], "none");
    let same = "slow-start:iw=10 makes no difference to a 70KB transfer on lte: every repetition is the same as with \
                slow-start.";
    assert_eq!(answer[0], same);
}

#[test]
fn a_run_without_noise_is_called_deterministic() {
    let quiet = |reps| Scenario {
        link_options: None,
        reps,
        ..scenario(&["rate=20mbit,rtt=30ms"], &["500KB"], &["slow-start", "slow-start:iw=40"], "none")
    };
    let answer = answer_of(&quiet(3));
    assert!(answer[0].contains(" sooner than slow-start (deterministic, one distinct run)"), "{answer:?}");
    assert!(!answer.iter().any(|sentence| sentence.contains("Intervals")), "{answer:?}");
    assert!(answer_of(&quiet(1))[0].contains(" sooner than slow-start (one repetition: no interval)"));
}

#[test]
fn the_baseline_of_several_aqms_is_the_first_and_is_named() {
    let one = scenario(&["lte"], &["2MB"], &["slow-start"], "cubic");
    let answer = answer_of(&Scenario { aqm: vec!["taildrop".into(), "codel".into()], ..one });
    assert!(answer[0].starts_with("codel finishes a 2MB transfer on lte "), "{answer:?}");
    assert!(answer[0].contains(" times sooner than taildrop ("), "{answer:?}");
    let links = answer_to(&["lte", "dsl-fast"], &["70KB"], &["slow-start"], "none");
    assert!(links[0].starts_with("dsl-fast ") && links[0].contains(" than lte ("), "{links:?}");
}

/// A plan with results that are made up: of each scheme its verdict, speed-up, interval and extra bytes.
fn made_up(of: &[(Verdict, f64, [f64; 2], f64)]) -> Vec<String> {
    let schemes = ["slow-start", "hystart", "blitzstart", "jump-start", "suss"];
    let plan = scenario(&["lte"], &["70KB"], &schemes[..=of.len()], "none").plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    for (cell, (verdict, speedup, interval, twice)) in summary.cells[1..].iter_mut().zip(of) {
        let versus = cell.vs_baseline.as_mut().unwrap();
        versus.verdict = Some(*verdict);
        (versus.speedup, versus.speedup_ci) = (Some(*speedup), Some(*interval));
        versus.inflation_delta = Some(*twice);
        cell.metrics.get_mut("inflation").unwrap().mean = Some(*twice);
    }
    answer(&plan, &summary)
}

#[test]
fn waste_is_named_and_never_offered() {
    let (better, wasteful) = ((Verdict::Faster, 1.2, [1.1, 1.3], 0.0), (Verdict::FasterByWaste, 1.4, [1.3, 1.5], 1.12));
    let answer = made_up(&[better, wasteful]);
    assert!(answer[0].starts_with("hystart finishes a 70KB transfer on lte 1.20 times sooner than slow-start"));
    assert_eq!(answer[1], "blitzstart is faster still, 1.40 times (1.30 to 1.50), at 112 % sent twice.");
    let slower = (Verdict::Slower, 0.9, [0.85, 0.95], 0.0);
    let answer = made_up(&[slower, wasteful]);
    let none =
        "None of the 2 other schemes finishes a 70KB transfer measurably sooner than slow-start, except by waste.";
    assert_eq!(answer[0], none);
    assert_eq!(answer[1], "blitzstart is faster, 1.40 times (1.30 to 1.50), at 112 % sent twice.");
    assert_eq!(answer[2], "hystart takes 11 % longer than slow-start (5 to 18).");
    let answer = made_up(&[wasteful]);
    let only = "hystart finishes a 70KB transfer on lte 1.40 times sooner than slow-start (1.30 to 1.50), but by waste, at \
                112 % sent twice.";
    assert_eq!(answer[0], only);
}

/// Whatever the verdicts are, the answer offers only a faster one, and says neither sooner nor longer of what is
/// unclear.
#[test]
fn sentences_follow_verdicts() {
    let of = |verdict| match verdict {
        Verdict::Faster => (verdict, 1.3, [1.2, 1.4], 0.0),
        Verdict::FasterByWaste => (verdict, 1.6, [1.2, 1.9], 0.9),
        Verdict::Slower => (verdict, 0.7, [0.6, 0.8], 0.0),
        Verdict::Unclear => (verdict, 1.5, [0.9, 1.9], 0.0),
        Verdict::Same => (verdict, 1.0, [1.0, 1.0], 0.0),
        Verdict::Deterministic => (verdict, 1.1, [1.1, 1.1], 0.0),
    };
    let all = [
        Verdict::Faster,
        Verdict::FasterByWaste,
        Verdict::Slower,
        Verdict::Unclear,
        Verdict::Same,
        Verdict::Deterministic,
    ];
    for number in 0..6_usize.pow(3) {
        let verdicts = [0, 1, 2].map(|digit| all[number / 6_usize.pow(digit) % 6]);
        let answer = made_up(&verdicts.map(of));
        let offered = ["hystart", "blitzstart", "jump-start"].iter().position(|name| answer[0].starts_with(name));
        match offered.map(|place| verdicts[place]) {
            Some(Verdict::Faster) => {}
            Some(Verdict::Deterministic) => assert!(!verdicts.contains(&Verdict::Faster), "{verdicts:?}"),
            Some(other) => panic!("{verdicts:?} offers {other:?}: {answer:?}"),
            None => assert!(answer[0].starts_with("None of the 3 other schemes "), "{answer:?}"),
        }
        for (name, verdict) in ["hystart", "blitzstart", "jump-start"].iter().zip(verdicts) {
            let about: Vec<&String> =
                answer.iter().filter(|sentence| sentence.starts_with(&format!("{name} "))).collect();
            let [about] = about[..] else { panic!("{name} in {answer:?}") };
            let expected = match verdict {
                Verdict::Faster | Verdict::Deterministic => "sooner than slow-start",
                Verdict::FasterByWaste => "90 % sent twice",
                Verdict::Slower => "% longer than slow-start",
                Verdict::Unclear => "cannot be told apart from slow-start",
                Verdict::Same => "makes no difference",
            };
            assert!(about.contains(expected), "{verdict:?}: {about}");
        }
    }
}
