use std::path::Path;

use super::*;
use crate::experiment;
use crate::results::summary::summarize;
use crate::study::scenario::Scenario;
use crate::study::world::World;

fn scenario(link: &[&str], size: &[&str], scheme: &[&str], competitor: &str) -> Scenario {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Scenario {
        link: words(link),
        size: words(size),
        scheme: words(scheme),
        aqm: words(&["taildrop"]),
        competitor: words(&[competitor]),
        link_options: Some("access_jitter=1ms/1ms".into()),
        transport: vec!["model-quic".into()],
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
    assert!(first.starts_with("blitzstart finishes ") && first.contains(" times as fast as slow-start "), "{first}");
    assert!(first.contains(" in the median over 2 links and 2 sizes (speed-up "), "{first}");
    assert!(!first.contains("competing flows") && first.ends_with('.'), "{first}");
    assert!(answer.iter().any(|note| note.starts_with("Of 4 comparisons with slow-start, ")), "{answer:?}");
    assert!(answer.iter().any(|note| note.ends_with("hold for all 4 comparisons at once.")), "{answer:?}");
}

#[test]
fn a_random_size_is_not_called_by_its_mean() {
    let first = answer_to(&["lte"], &["pareto:mean=100KB"], &["slow-start", "blitzstart"], "none").swap_remove(0);
    let size = "a transfer of random size (pareto:smallest=";
    assert!(
        first.contains(size) && first.contains(",largest=10MB,shape=1.2)") && !first.contains("KB transfer"),
        "{first}"
    );
}

#[test]
fn what_schemes_start_from_is_said_of_those_that_sense_something() {
    let last = |link: &str, schemes: &[&str]| answer_to(&[link], &["70KB"], schemes, "none").pop().unwrap();
    assert_eq!(
        last("lte", &["slow-start", "blitzstart", "blitzstart:estimate=1.5"]),
        "What they start from: blitzstart the client's bandwidth hint and the RTT. Rates that are known \
         are the link's, and earlier connections were alone on it and kept a window of its BDP."
    );
    assert!(last("lte,hint=5mbit", &["slow-start", "blitzstart"]).contains("Hints are those of the links' options; "));
    // Where nobody senses anything and every run is the same, there is nothing to say of inputs or of intervals.
    let same = answer_to(&["lte"], &["70KB"], &["slow-start", "hystart"], "none");
    let is_empty = |note: &String| note.starts_with("What they start from") || note.starts_with("Intervals are ");
    assert!(!same.iter().any(is_empty), "{same:?}");
    let without = Scenario { hint: false, ..scenario(&["lte"], &["70KB"], &["slow-start", "more-start"], "none") };
    assert!(answer_of(&without).pop().unwrap().contains("There are no hints; "));
}

#[test]
fn where_the_best_differs_it_is_said_of_each_size() {
    // Five packets gain nothing by a window of 32, and 2 MB on a short queue lose by a launch of all of it.
    let schemes = ["slow-start", "slow-start:iw=32", "blitzstart:estimate=4.0"];
    let answer = answer_to(&["dsl-fast"], &["5KB", "70KB"], &schemes, "none");
    let by_size = answer
        .iter()
        .find(|note| note.starts_with("The best schemes by size: "))
        .unwrap_or_else(|| panic!("{answer:?}"));
    let (small, large) = by_size.split_once("; ").unwrap();
    assert_eq!(small, "The best schemes by size: 5KB none");
    assert!(large.starts_with("70KB ") && large.ends_with(" times as fast as slow-start)."), "{by_size}");
    // One best for all sizes, or one choice only, needs no list.
    for schemes in [&["slow-start", "slow-start:iw=32"][..], &["slow-start", "blitzstart", "slow-start:iw=12"]] {
        let answer = answer_to(&["dsl-fast"], &["70KB", "90KB"], schemes, "none");
        assert!(!answer.iter().any(|note| note.starts_with("The best schemes ")), "{answer:?}");
    }
}

/// The answer over two sizes, alone and beside a flow, where each scheme has this speed-up in each of the settings:
/// those beside the flow are the second half.
fn made_up_by_setting(of: &[[f64; 4]]) -> Vec<String> {
    let schemes = ["slow-start", "hystart", "blitzstart", "jump-start"];
    let competitor = vec!["none".into(), "cubic".into()];
    let scenario = Scenario { competitor, ..scenario(&["lte"], &["70KB", "2MB"], &schemes[..=of.len()], "none") };
    let plan = scenario.plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    for cell in plan.cells().into_iter().filter(|cell| cell.scheme > 0) {
        let speedup = of[cell.scheme - 1][cell.competitor * 2 + cell.size];
        let versus = summary.cells[cell.index].vs_baseline.as_mut().unwrap();
        let kind = if speedup > 1.0 { Kind::Faster } else { Kind::Slower };
        versus.verdict = Some(kind.into());
        (versus.speedup, versus.speedup_ci) = (Some(speedup), Some([speedup - 0.01, speedup + 0.01]));
    }
    answer(&plan, &summary)
}

#[test]
fn what_is_best_in_each_setting_leads_where_no_value_is_the_best_in_all() {
    let settings = made_up_by_setting(&[[1.5, 0.9, 0.8, 0.8], [1.2, 1.4, 0.8, 0.9]]);
    let wanted = "The best schemes by setting: alone 70KB hystart (1.50 times as fast as \
                  slow-start); alone 2MB blitzstart (1.40 times); beside cubic none.";
    assert_eq!(settings[0], wanted);
    // What intervals do not tell apart is as good as the best: 1.50 and 1.49.
    let alike = made_up_by_setting(&[[1.5, 0.9, 0.8, 0.8], [1.49, 0.9, 0.8, 0.8]]);
    assert!(alike[0].contains("alone 70KB hystart or blitzstart (1.50 times as fast as slow-start);"), "{alike:?}");
    // One that is the best everywhere, or everywhere where one is, is the answer itself.
    let one = made_up_by_setting(&[[1.5, 1.5, 1.5, 1.5], [1.2, 1.2, 1.2, 1.2]]);
    assert!(one[0].starts_with("hystart finishes 1.50 times as fast as slow-start"), "{one:?}");
    let none = made_up_by_setting(&[[0.9, 0.9, 0.9, 0.9], [0.8, 0.9, 0.9, 0.9]]);
    assert!(none[0].starts_with("None of the 2 other schemes "), "{none:?}");
}

#[test]
fn an_aqm_with_a_memory_of_its_own_is_told_beside_others() {
    let told = |aqms: &[&str]| {
        let one = scenario(&["dsl-fast"], &["70KB"], &["slow-start", "blitzstart"], "none");
        let answer = answer_of(&Scenario { aqm: aqms.iter().map(|aqm| (*aqm).to_owned()).collect(), reps: 1, ..one });
        (
            answer
                .iter()
                .any(|note| note == "cake has a memory in place of the link's buffer, which is its `memlimit`."),
            answer,
        )
    };
    assert!(told(&["taildrop", "cake"]).0, "{:?}", told(&["taildrop", "cake"]).1);
    assert!(!told(&["taildrop", "codel"]).0 && !told(&["cake"]).0);
}

#[test]
fn a_window_that_is_less_than_the_path_holds_is_told() {
    let told = |size: &str, transport: &str| {
        let one = scenario(&["lte"], &[size], &["slow-start", "blitzstart"], "none");
        let answer = answer_of(&Scenario { transport: vec![transport.to_owned()], reps: 1, ..one });
        answer.into_iter().find(|note| note.starts_with("The receiver's window of "))
    };
    // lte holds 280 KB and 560 packets.
    let wanted = "The receiver's window of 500KB is less than lte holds without loss (1.12MB), so flow control may \
                  stop a start before its scheme does: `receive_window` of model-quic:receive_window=500KB sets it.";
    assert_eq!(told("2MB", "model-quic:receive_window=500KB").as_deref(), Some(wanted));
    assert_eq!(told("300KB", "model-quic:receive_window=500KB"), None);
    assert_eq!(told("2MB", "model-quic:receive_window=2MB"), None);
}

#[test]
fn means_that_few_runs_are_near_are_told() {
    let plan = scenario(&["lte"], &["70KB"], &["slow-start", "hystart"], "none").plan(Path::new(".")).unwrap();
    let told = |times: [[f64; 5]; 2]| {
        let mut rows = experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        for (place, row) in rows.iter_mut().enumerate() {
            row.fct_ms = Some(times[place / 5][place % 5]);
        }
        answer(&plan, &summarize(&plan, &rows)).into_iter().find(|note| note.starts_with("Means that few"))
    };
    let typical = [400.0, 401.0, 402.0, 403.0, 404.0];
    assert_eq!(told([typical, typical]), None);
    let of_two_kinds = [400.0, 401.0, 402.0, 2000.0, 2001.0];
    assert_eq!(
        told([typical, of_two_kinds]).as_deref(),
        Some("Means that few runs are near: hystart 1041 ms, 402 ms in the median, 95 % within 2001 ms.")
    );
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
fn harm_to_a_call_is_the_frames_that_are_not_shown() {
    let answer = answer_to(&["dsl-fast"], &["2MB"], &["slow-start", "jump-start"], "call:rate=2.5mbit");
    assert!(answer[0].contains("; of the call's frames "), "{answer:?}");
    assert!(answer[0].contains(" are not shown beside it, and ") && !answer[0].contains("Mbit"), "{answer:?}");
}

#[test]
fn a_call_that_one_aqm_does_not_protect_is_not_hidden_by_the_others() {
    let of = |scheme: &[&str]| {
        let one = scenario(&["dsl-slow"], &["2MB"], scheme, "call:rate=2.5mbit");
        answer_of(&Scenario { aqm: ["taildrop", "fq-codel", "cake"].map(str::to_owned).to_vec(), ..one })
    };
    let schemes = of(&["slow-start", "blitzstart"]);
    let harm = schemes.iter().find_map(|said| said.split_once(" are not shown beside blitzstart, and 0 % (at worst "));
    let (_, beside_slow_start) = harm.unwrap_or_else(|| panic!("{schemes:?}"));
    assert!(numbers(beside_slow_start)[0] > 5.0, "{schemes:?}");
    // AQMs are compared with each other: each is said.
    let aqms = of(&["slow-start"]);
    let seen = aqms.iter().find(|note| note.starts_with("Frames of the call not shown: taildrop ")).unwrap();
    assert!(seen.ends_with("; fq-codel 0 %; cake 0 %."), "{seen}");
    assert!(numbers(seen)[0] > 5.0, "{seen}");
}

#[test]
fn harm_to_others_is_what_they_deliver_less() {
    let answer = answer_to(&["dsl-fast"], &["2MB"], &["slow-start", "blitzstart:estimate=4.0"], "cubic");
    assert!(answer[0].contains("2MB transfer") && answer[0].contains("dsl-fast"), "{answer:?}");
    assert!(
        answer[0].contains("; competing flows deliver ") && answer[0].contains(" Mbit less beside it"),
        "{answer:?}"
    );
}

#[test]
fn a_scheme_that_makes_no_difference_is_said_to_make_none() {
    let answer = answer_to(&["lte"], &["70KB"], &["slow-start", "slow-start:iw=10"], "none");
    let same = "slow-start:iw=10 makes no difference to a 70KB transfer on lte: in every repetition all times and \
                losses are the same as with slow-start, and every transfer ended in startup (`flowstart trace` shows \
                it).";
    assert_eq!(answer[0], same);
    let left = answer_to(&["lte"], &["2MB"], &["slow-start", "slow-start:iw=10"], "none");
    let lost = ": in every repetition all times and losses are the same as with slow-start, and packet loss ended \
                every startup.";
    assert!(left[0].ends_with(lost), "{left:?}");
}

#[test]
fn a_run_without_noise_is_called_deterministic() {
    let quiet = |reps| Scenario {
        link_options: None,
        reps,
        ..scenario(&["rate=20mbit,rtt=30ms"], &["500KB"], &["slow-start", "slow-start:iw=40"], "none")
    };
    let answer = answer_of(&quiet(3));
    assert!(answer[0].contains(" times as fast as slow-start (deterministic, one distinct run)"), "{answer:?}");
    assert!(!answer.iter().any(|sentence| sentence.contains("Intervals")), "{answer:?}");
    assert!(answer_of(&quiet(1))[0].contains(" times as fast as slow-start (one repetition: no interval)"));
}

#[test]
fn waste_in_one_distinct_run_is_said_and_never_offered() {
    let answer = made_up(&[(ONE_RUN, 1.2, [1.2; 2], 0.0), (WASTE_IN_ONE_RUN, 1.6, [1.6; 2], 0.54)]);
    assert!(answer[0].starts_with("hystart finishes ") && answer[0].contains("(deterministic, one distinct run)"));
    assert_eq!(answer[1], "blitzstart is faster still, 1.60 times, at 54 % sent twice.");
    let answer = made_up(&[(WASTE_IN_ONE_RUN, 1.6, [1.6; 2], 0.54)]);
    assert!(answer[0].contains(" (deterministic, one distinct run), but by waste, at 54 % sent twice"), "{answer:?}");
}

#[test]
fn the_baseline_of_several_aqms_is_the_first_and_is_named() {
    let one = scenario(&["lte"], &["2MB"], &["slow-start"], "cubic");
    let answer = answer_of(&Scenario { aqm: vec!["taildrop".into(), "codel".into()], ..one });
    assert!(answer[0].starts_with("codel finishes a 2MB transfer on lte "), "{answer:?}");
    assert!(answer[0].contains(" times as fast as taildrop ("), "{answer:?}");
    let links = answer_to(&["lte", "dsl-fast"], &["70KB"], &["slow-start"], "none");
    assert!(links[0].starts_with("dsl-fast ") && links[0].contains(" times as fast as lte ("), "{links:?}");
}

/// What one distinct run shows.
const ONE_RUN: Verdict = Verdict { kind: Kind::Faster, certainty: Certainty::OneRun };
const WASTE_IN_ONE_RUN: Verdict = Verdict { kind: Kind::FasterByWaste, certainty: Certainty::OneRun };

/// A plan with results that are made up: of each scheme its verdict, speed-up, interval and extra bytes.
fn made_up<V: Copy + Into<Verdict>>(of: &[(V, f64, [f64; 2], f64)]) -> Vec<String> {
    let schemes = ["slow-start", "hystart", "blitzstart", "jump-start", "suss"];
    let plan = scenario(&["lte"], &["70KB"], &schemes[..=of.len()], "none").plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    for (cell, (verdict, speedup, interval, twice)) in summary.cells[1..].iter_mut().zip(of) {
        let versus = cell.vs_baseline.as_mut().unwrap();
        let verdict: Verdict = (*verdict).into();
        versus.verdict = Some(verdict);
        (versus.speedup, versus.speedup_ci) = (Some(*speedup), (!verdict.is_deterministic()).then_some(*interval));
        versus.inflation_delta = Some(*twice);
        cell.metrics.get_mut("inflation").unwrap().mean = Some(*twice);
    }
    answer(&plan, &summary)
}

#[test]
fn counts_read_well_for_one_two_and_all() {
    let (faster, slower) = ((Kind::Faster, 1.2, [1.1, 1.3], 0.0), (Kind::Slower, 0.9, [0.85, 0.95], 0.0));
    let counted = |of: &[(Kind, f64, [f64; 2], f64)]| {
        let verdicts: Vec<Verdict> = of.iter().map(|(kind, ..)| (*kind).into()).collect();
        counted(&verdicts, "slow-start").unwrap()
    };
    assert_eq!(counted(&[faster; 2]), "Of 2 comparisons with slow-start, both are faster.");
    assert_eq!(counted(&[faster; 3]), "Of 3 comparisons with slow-start, all are faster.");
    assert_eq!(counted(&[faster, slower]), "Of 2 comparisons with slow-start, 1 is faster and 1 is slower.");
    // What has a sentence of its own each is not counted again.
    assert!(!made_up(&[faster, slower]).iter().any(|note| note.starts_with("Of ")));
    assert!(made_up(&[faster; 2]).iter().any(|note| note.ends_with("hold for both comparisons at once.")));
}

#[test]
fn waste_is_named_and_never_offered() {
    let (better, wasteful) = ((Kind::Faster, 1.2, [1.1, 1.3], 0.0), (Kind::FasterByWaste, 1.4, [1.3, 1.5], 1.12));
    let answer = made_up(&[better, wasteful]);
    assert!(answer[0].starts_with("hystart finishes a 70KB transfer on lte 1.20 times as fast as slow-start"));
    assert_eq!(answer[1], "blitzstart is faster still, 1.40 times (1.30 to 1.50), at 112 % sent twice.");
    let slower = (Kind::Slower, 0.9, [0.85, 0.95], 0.0);
    let answer = made_up(&[slower, wasteful]);
    let none =
        "None of the 2 other schemes finishes a 70KB transfer measurably sooner than slow-start, except by waste.";
    assert_eq!(answer[0], none);
    assert_eq!(answer[1], "blitzstart is faster, 1.40 times (1.30 to 1.50), at 112 % sent twice.");
    assert_eq!(answer[2], "hystart takes 11 % longer than slow-start (5 to 18).");
    let answer = made_up(&[wasteful]);
    let only = "hystart finishes a 70KB transfer on lte 1.40 times as fast as slow-start (1.30 to 1.50), but by \
                waste, at 112 % sent twice.";
    assert_eq!(answer[0], only);
}

/// Whatever the verdicts are, the answer offers only a faster one, and says neither sooner nor longer of what is
/// unclear.
#[test]
fn sentences_follow_verdicts() {
    let of = |verdict: Verdict| match verdict.kind {
        Kind::Faster if verdict == ONE_RUN => (verdict, 1.1, [1.1, 1.1], 0.0),
        Kind::Faster => (verdict, 1.3, [1.2, 1.4], 0.0),
        Kind::FasterByWaste => (verdict, 1.6, [1.2, 1.9], 0.9),
        Kind::Slower => (verdict, 0.7, [0.6, 0.8], 0.0),
        Kind::Negligible => (verdict, 0.995, [0.993, 0.996], 0.0),
        Kind::Unclear => (verdict, 1.5, [0.9, 1.9], 0.0),
        Kind::Same => (verdict, 1.0, [1.0, 1.0], 0.0),
    };
    let of_interval = [Kind::Faster, Kind::FasterByWaste, Kind::Slower, Kind::Negligible, Kind::Unclear, Kind::Same];
    let mut all = of_interval.map(Verdict::of_interval).to_vec();
    all.extend([ONE_RUN, WASTE_IN_ONE_RUN]);
    for number in 0..all.len().pow(3) {
        let verdicts = [0, 1, 2].map(|digit| all[number / all.len().pow(digit) % all.len()]);
        let answer = made_up(&verdicts.map(of));
        let offered = ["hystart", "blitzstart", "jump-start"].iter().position(|name| answer[0].starts_with(name));
        match offered.map(|place| verdicts[place]) {
            Some(ONE_RUN) => {
                assert!(!verdicts.contains(&Verdict::of_interval(Kind::Faster)), "{verdicts:?}");
            }
            Some(Verdict { kind: Kind::Faster, .. }) => {}
            Some(other) => panic!("{verdicts:?} offers {other:?}: {answer:?}"),
            None => assert!(answer[0].starts_with("None of the 3 other schemes "), "{answer:?}"),
        }
        for (name, verdict) in ["hystart", "blitzstart", "jump-start"].iter().zip(verdicts) {
            let about: Vec<&String> =
                answer.iter().filter(|sentence| sentence.starts_with(&format!("{name} "))).collect();
            let [about] = about[..] else { panic!("{name} in {answer:?}") };
            let expected = match verdict.kind {
                Kind::Faster => "times as fast as slow-start",
                Kind::FasterByWaste => "90 % sent twice",
                Kind::Slower => "% longer than slow-start",
                Kind::Negligible => "differs from slow-start by 1 % at most: 0.995 times as fast (0.993 to 0.996)",
                Kind::Unclear => "cannot be told apart from slow-start",
                Kind::Same => "makes no difference",
            };
            assert!(about.contains(expected), "{verdict:?}: {about}");
        }
    }
}

/// What the transports say where a scheme has these verdicts and speed-ups, on one setting after the other.
fn on_transports<V: Copy + Into<Verdict>>(
    transports: &[&str],
    sizes: &[&str],
    of: &[(V, f64)],
) -> (Vec<String>, Option<String>) {
    let text = |one: &&str| (*one).to_owned();
    let plan = Scenario {
        transport: transports.iter().map(text).collect(),
        ..scenario(&["lte"], sizes, &["slow-start", "jump-start"], "none")
    };
    let plan = plan.plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    let compared = summary.cells.iter_mut().filter_map(|cell| cell.vs_baseline.as_mut());
    let mut count = 0;
    for (versus, (verdict, speedup)) in compared.zip(of) {
        // A speed-up of 0 stands for none: no transfer completed.
        if *speedup > 0.0 {
            (versus.verdict, versus.speedup) = (Some((*verdict).into()), Some(*speedup));
        }
        count += 1;
    }
    assert_eq!(count, of.len());
    (answer(&plan, &summary), agreements(&plan, &summary).pop())
}

const TWO: [&str; 2] = ["model-quic", "model-tcp"];

#[test]
fn an_answer_that_depends_on_the_transport_says_so() {
    let of = |first, second| on_transports(&TWO, &["70KB"], &[first, second]);
    let (answer, said) = of((Kind::Faster, 1.04), (Kind::Slower, 1.0 / 1.1));
    let expected = "The answer depends on the transport: compared with slow-start, jump-start is 1.04 times as fast \
                    with model-quic and takes 10 % longer with model-tcp.";
    assert_eq!(said.as_deref(), Some(expected));
    // It is the first note.
    assert_eq!(answer[1], expected);
    let (_, said) = of((Kind::Unclear, 1.01), (Kind::FasterByWaste, 1.5));
    let expected = "The answer depends on the transport: compared with slow-start, jump-start is 1.50 times as fast \
                    with model-tcp and is not measurably faster or slower with model-quic.";
    assert_eq!(said.as_deref(), Some(expected));
    let one_run = |kind| Verdict::of_one_run(kind);
    let (_, said) = on_transports(&TWO, &["70KB"], &[(one_run(Kind::Faster), 2.0), (one_run(Kind::Slower), 0.4)]);
    assert!(said.unwrap().ends_with("2.0 times as fast with model-quic and takes 2.5 times as long with model-tcp."));
}

#[test]
fn a_headline_is_of_the_first_world_and_worlds_and_transports_are_each_said_to_agree_or_not() {
    let one = scenario(&["lte"], &["70KB"], &["slow-start", "jump-start"], "none");
    let plan = Scenario { transport: TWO.map(str::to_owned).to_vec(), ..one }.plan(Path::new(".")).unwrap();
    let plan = Plan { worlds: World::ALL.to_vec(), ..plan };
    let mut summary = summarize(&plan, &[]);
    for cell in plan.cells() {
        let Some(versus) = summary.cells[cell.index].vs_baseline.as_mut() else { continue };
        let (kind, speedup) = [(Kind::Faster, 1.5), (Kind::Slower, 0.5)][cell.world];
        (versus.verdict, versus.speedup) = (Some(kind.into()), Some(speedup));
    }
    let told = answer(&plan, &summary);
    let [headline, of_worlds, of_transports, ..] = &told[..] else { panic!("{told:?}") };
    assert!(headline.starts_with("In the simulator: jump-start finishes ") && headline.contains("1.5"), "{told:?}");
    let expected = "The answer depends on the world in 2 of 2 comparisons: compared with slow-start, jump-start is \
                    1.50 times as fast with simulator and takes 2.0 times as long with sockets (";
    assert!(of_worlds.starts_with(expected), "{told:?}");
    assert_eq!(of_transports, "Both transports agree in both comparisons on what is faster.");
    let plan = Plan { worlds: vec![World::Sockets, World::Simulator], ..plan };
    assert!(answer(&plan, &summary)[0].starts_with("Between sockets: jump-start "), "the order decides");
}

#[test]
fn transports_that_agree_are_said_to_agree() {
    let of = |first, second| on_transports(&TWO, &["70KB"], &[first, second]).1;
    let faster = (Kind::Faster, 1.2);
    assert_eq!(of(faster, (Kind::FasterByWaste, 1.6)).as_deref(), Some("Both transports agree that it is faster."));
    let slower = (Kind::Slower, 0.8);
    assert_eq!(of(slower, slower).as_deref(), Some("Both transports agree that it is slower."));
    let neither = of((Kind::Same, 1.0), (Kind::Unclear, 1.0));
    assert_eq!(neither.as_deref(), Some("Both transports agree that it is neither measurably faster nor slower."));
    // Neither is faster: nothing that changes the answer, and no agreement.
    let expected = "Only some transports show a loss: compared with slow-start, jump-start is not measurably faster or \
                    slower with model-quic and takes 25 % longer with model-tcp.";
    assert_eq!(of((Kind::Unclear, 1.0), slower).as_deref(), Some(expected));
    let three = ["model-quic", "model-tcp", "model-quic:pacing=none"];
    let (_, said) = on_transports(&three, &["70KB"], &[faster; 3]);
    assert_eq!(said.as_deref(), Some("All 3 transports agree that it is faster."));
    let (_, said) = on_transports(&three, &["70KB"], &[faster, (Kind::Unclear, 0.0), faster]);
    let expected = "model-quic and model-quic:pacing=none agree that it is faster. With model-tcp no transfer \
                    completes in some comparisons.";
    assert_eq!(said.as_deref(), Some(expected));
}

#[test]
fn of_many_comparisons_the_one_with_the_largest_difference_is_told() {
    let (faster, much, slower) = ((Kind::Faster, 1.2), (Kind::Faster, 3.0), (Kind::Slower, 0.9));
    let unclear = (Kind::Unclear, 1.0);
    // The sizes with the one transport, then with the other. A change of sign counts more than a larger factor.
    let (_, said) = on_transports(&TWO, &["5KB", "70KB", "2MB"], &[faster, much, faster, slower, unclear, faster]);
    let expected = "The answer depends on the transport in 2 of 3 comparisons: compared with slow-start, jump-start is \
                    1.20 times as fast with model-quic and takes 11 % longer with model-tcp (5KB).";
    assert_eq!(said.as_deref(), Some(expected));
    let (_, said) = on_transports(&TWO, &["5KB", "70KB"], &[faster, slower, much, slower]);
    assert_eq!(said.as_deref(), Some("Both transports agree in both comparisons on what is faster."));
    let (_, said) = on_transports(&TWO, &["5KB", "70KB"], &[unclear; 4]);
    let expected = "Both transports agree in both comparisons that nothing is measurably faster or slower.";
    assert_eq!(said.as_deref(), Some(expected));
}

#[test]
fn one_transport_or_transports_as_such_need_no_such_sentence() {
    assert_eq!(on_transports(&["model-tcp"], &["70KB"], &[(Kind::Faster, 1.2)]).1, None);
    let plan = Scenario {
        transport: TWO.map(str::to_owned).to_vec(),
        ..scenario(&["lte"], &["70KB"], &["slow-start"], "none")
    };
    let answer = answer_of(&plan);
    assert!(answer[0].starts_with("model-tcp ") && answer[0].contains(" model-quic"), "{answer:?}");
    assert!(!answer.iter().any(|sentence| sentence.contains("the transport")), "{answer:?}");
}

#[test]
fn what_differs_between_sizes_is_said_of_each() {
    let cells = |of: &[(Kind, f64)]| {
        let plan = scenario(&["lte"], &["70KB", "2MB", "20MB"], &["slow-start", "jump-start"], "none");
        let plan = plan.plan(Path::new(".")).unwrap();
        let mut summary = summarize(&plan, &[]);
        let compared = summary.cells.iter_mut().filter_map(|cell| cell.vs_baseline.as_mut());
        compared.zip(of).for_each(|(versus, (verdict, speedup))| {
            (versus.verdict, versus.speedup) = (Some((*verdict).into()), Some(*speedup));
        });
        answer(&plan, &summary)
    };
    let (faster, slower) = ((Kind::Faster, 1.6), (Kind::Slower, 0.7));
    let mixed = cells(&[faster, (Kind::Unclear, 1.02), slower]);
    let expected = [
        "jump-start is faster than slow-start in 1 and slower in 1 of 3 comparisons; speed-up 0.70 to 1.60, median \
         1.02.",
        "jump-start differs between sizes from slow-start: 1.60 times as fast with 70KB, no clear difference with 2MB \
         and 43 % longer with 20MB.",
    ];
    assert_eq!(mixed[..2], expected);
    // One gain of three is not the whole, and waste never is.
    let one = cells(&[(Kind::FasterByWaste, 1.6), (Kind::Unclear, 1.01), (Kind::Unclear, 1.01)]);
    let expected = "jump-start differs between sizes from slow-start: 1.60 times as fast by waste with 70KB, no clear \
                    difference with 2MB and no clear difference with 20MB.";
    assert_eq!(one[1], expected, "{one:?}");
    let wasteful = cells(&[faster, (Kind::FasterByWaste, 1.5), (Kind::FasterByWaste, 1.4)]);
    assert!(wasteful[0].contains(", but by waste"), "{wasteful:?}");
}

#[test]
fn aqms_are_compared_beside_schemes_too() {
    let one = scenario(&["lte"], &["2MB"], &["slow-start", "blitzstart"], "cubic");
    let answer = answer_of(&Scenario { aqm: vec!["taildrop".into(), "codel".into()], ..one });
    assert!(answer[0].starts_with("blitzstart "), "{answer:?}");
    let aqms = answer.iter().find(|note| note.starts_with("With slow-start, codel finishes ")).expect(&answer[0]);
    assert!(aqms.contains(" times as fast as taildrop ("), "{aqms}");
    assert!(answer.iter().any(|note| note.ends_with("hold for all 3 comparisons at once.")), "{answer:?}");
}

/// A plan with results that are made up: of each cell of `jump-start` its kind and speed-up, and what each cell takes
/// from others, in the order of the plan.
fn beside(
    sizes: &[&str],
    competitors: &[&str],
    of: &[(Kind, f64)],
    harm: &[Option<f64>],
    inflation: &[f64],
) -> Vec<String> {
    let competitor = competitors.iter().map(|text| (*text).to_owned()).collect();
    let one = scenario(&["lte"], sizes, &["slow-start", "jump-start"], "none");
    let plan = Scenario { competitor, ..one }.plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    for (cell, harm) in summary.cells.iter_mut().zip(harm) {
        assert_eq!(cell.others.is_some(), harm.is_some(), "{}", cell.id);
        if let Some(others) = &mut cell.others {
            others.goodput_lost_mbit.mean = *harm;
        }
    }
    for (cell, inflation) in summary.cells.iter_mut().zip(inflation) {
        cell.metrics.get_mut("inflation").unwrap().mean = Some(*inflation);
    }
    let compared = summary.cells.iter_mut().filter_map(|cell| cell.vs_baseline.as_mut());
    for (versus, (kind, speedup)) in compared.zip(of) {
        (versus.verdict, versus.speedup) = (Some((*kind).into()), Some(*speedup));
    }
    answer(&plan, &summary)
}

#[test]
fn a_median_is_not_said_of_settings_that_disagree() {
    let of = |alone, beside_cubic| {
        beside(&["70KB"], &["none", "cubic"], &[alone, beside_cubic], &[None, None, Some(0.0), Some(0.0)], &[])
    };
    let one = of((Kind::Slower, 0.9), (Kind::Unclear, 0.99));
    let expected = "jump-start is slower than slow-start in 1 of 2 comparisons; speed-up 0.90 to 0.99, mean 0.95";
    assert!(one[0].starts_with(expected), "{one:?}");
    let expected = "jump-start differs between competitors from slow-start: 11 % longer alone and no clear difference \
                    beside cubic.";
    assert_eq!(one[1], expected);
    let both = of((Kind::Slower, 0.9), (Kind::Slower, 0.8));
    assert!(both[0].starts_with("jump-start takes 18 % longer than slow-start to finish"), "{both:?}");
    assert!(both[0].contains(" in the mean over runs alone and beside cubic"), "{both:?}");
    assert!(!both.iter().any(|sentence| sentence.contains("none") || sentence.contains("2 competitors")), "{both:?}");
    let gain = of((Kind::Faster, 1.5), (Kind::Negligible, 1.004));
    let expected = "jump-start differs between competitors from slow-start: 1.50 times as fast alone and no \
                    difference of more than 1 % beside cubic.";
    assert_eq!(gain[1], expected);
}

#[test]
fn of_several_axes_the_one_that_tells_best_is_named() {
    let faster = (Kind::Faster, 1.5);
    let none = (Kind::Unclear, 1.0);
    // Alone and beside cubic two of three sizes gain; the small one gains nowhere.
    let of = [none, faster, faster, none, faster, faster];
    let answer = beside(&["5KB", "500KB", "2MB"], &["none", "cubic"], &of, &[], &[]);
    let expected = "jump-start differs between sizes from slow-start: no clear difference with 5KB, 1.50 times as fast \
                    with 500KB and 1.50 times as fast with 2MB";
    assert!(answer[1].starts_with(expected), "{answer:?}");
    // Nothing tells: the comparisons are counted.
    let of = [none, faster, faster, faster, faster, none];
    let answer = beside(&["5KB", "500KB", "2MB"], &["none", "cubic"], &of, &[], &[]);
    assert!(answer[0].starts_with("jump-start is faster than slow-start in 4 of 6 comparisons;"), "{answer:?}");
}

#[test]
fn fewer_bytes_are_called_fewer_at_both_ends() {
    let of = |inflation: [f64; 4]| {
        let all = [(Kind::Faster, 1.2); 2];
        let answer = beside(&["70KB", "2MB"], &["none"], &all, &[], &inflation);
        let (_, bytes) = answer[0].split_once("), ").expect(&answer[0]);
        bytes.trim_end_matches('.').to_owned()
    };
    // The baseline sends 25 % twice, then 0.4 % less than everything twice.
    assert_eq!(of([0.25, 0.0, 0.25, 0.245]), "for 10.2 % fewer bytes (at least 0.4 % fewer)");
    assert_eq!(of([0.25, 0.0, 0.25, 0.25]), "for 10.0 % fewer bytes (at most as many)");
    assert_eq!(of([0.25, 0.0, 0.25, 0.5]), "for as many bytes (at most 20 % more)");
    assert_eq!(of([0.0, 0.0, 0.0, 0.0]), "for as many bytes");
}

#[test]
fn harm_is_said_where_there_is_any_beyond_the_baseline() {
    let faster = [(Kind::Faster, 1.2); 4];
    let paid = |answer: Vec<String>| answer.into_iter().find(|said| said.starts_with("What others pay: ")).unwrap();
    let of = |harm: [f64; 2]| {
        let harm = [None, None, Some(harm[0]), Some(harm[1])];
        paid(beside(&["2MB"], &["none", "cubic"], &faster, &harm, &[]))
    };
    assert_eq!(of([0.01, -0.02]), "What others pay: jump-start takes nothing from others.");
    // A transfer takes its own size, whatever its scheme does.
    assert_eq!(of([16.0, 16.1]), "What others pay: jump-start takes as much from others as slow-start.");
    // Cells without others dilute nothing.
    let harmed = "What others pay: competing flows deliver 5.0 Mbit less beside jump-start and 1.0 Mbit less beside \
                   slow-start.";
    assert_eq!(of([1.0, 5.0]), harmed);
    assert!(of([0.0, 5.0]).ends_with(" 5.0 Mbit less beside jump-start and as much beside slow-start."));
    // Sizes that differ much are told one by one.
    let harm = [Some(0.5), Some(0.5), Some(2.0), Some(9.0)];
    let sizes = paid(beside(&["70KB", "2MB"], &["cubic"], &faster, &harm, &[]));
    let expected = "What others pay: competing flows deliver 9.0 Mbit less beside jump-start and 2.0 Mbit less beside \
                    slow-start with 2MB; jump-start takes as much as slow-start with 70KB.";
    assert_eq!(sizes, expected);
    // So are competitors: a median would be of none of them.
    let harm = [Some(16.0), Some(16.7), Some(0.0), Some(0.0), Some(0.0), Some(0.0)];
    let others = paid(beside(&["2MB"], &["cubic", "web:load=5mbit", "cbr:rate=1mbit"], &faster, &harm, &[]));
    let expected = "What others pay: competing flows deliver 16.7 Mbit less beside jump-start and 16.0 Mbit less \
                    beside slow-start (cubic); jump-start takes as much as slow-start from web:load=5mbit and \
                    cbr:rate=1mbit.";
    assert_eq!(others, expected);
}

#[test]
fn times_that_are_longer_are_those_of_the_settings_in_the_middle() {
    // 88 and 12 % longer are 50 % in the mean; the mean of the speed-ups would be 40 %.
    let slower = |speedup| (Kind::Slower, speedup);
    let answer = beside(&["70KB", "2MB"], &["none"], &[slower(1.0 / 1.88), slower(1.0 / 1.12)], &[], &[]);
    assert!(answer[0].starts_with("jump-start takes 50 % longer "), "{answer:?}");
}

#[test]
fn where_a_baseline_never_finishes_the_others_are_named() {
    let plan = scenario(&["lte"], &["2MB"], &["slow-start", "jump-start"], "none").plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    assert!(answer(&plan, &summary).is_empty());
    summary.cells[1].n = 3;
    let expected = "Nothing can be compared; repetitions that completed: slow-start 0, jump-start 3.";
    assert_eq!(answer(&plan, &summary)[0], expected);
}

#[test]
fn no_application_alone_is_left_without_an_answer() {
    for form in crate::spec::application::FORMS {
        let size = if form.name == crate::spec::application::TRANSFER { &["70KB"][..] } else { &[] };
        let one = scenario(&["lte"], size, &["slow-start"], "none");
        let answer = answer_of(&Scenario { application: vec![form.example.to_owned()], reps: 1, ..one });
        let expected = match form.name {
            "video" => " shows the first picture of ",
            "chunks" => ": an object takes ",
            _ => "",
        };
        assert!(
            answer.first().is_some_and(|first| first.contains(expected) && first.len() > 20),
            "{form:?}: {answer:?}"
        );
    }
}

#[test]
fn the_headline_beside_a_call_says_what_is_best_for_it() {
    let of = |aqms: &[&str], competitors: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let one = scenario(&["dsl-slow"], &["2MB"], &["slow-start", "blitzstart"], "none");
        answer_of(&Scenario { aqm: words(aqms), competitor: words(competitors), reps: 2, ..one }).remove(0)
    };
    let call = "call:rate=2.5mbit";
    let best = of(&["taildrop", "cake"], &[call]);
    assert!(best.contains("; for the call cake is best, with at worst 0 % of its frames not shown ("), "{best}");
    assert!(best.ends_with(" with taildrop)."), "{best}");
    let both = of(&["taildrop", "fq-codel", "cake"], &[call]);
    assert!(
        both.contains("; for the call fq-codel and cake are best, with at worst 0 % of its frames not shown ("),
        "{both}"
    );
    // Other flows beside the call do not hide it.
    assert!(of(&["taildrop"], &["cubic", call]).contains("; for the call "));
}

#[test]
fn intervals_of_few_repetitions_are_called_nominal() {
    let notes = made_up(&[(Kind::Faster, 1.2, [1.1, 1.3], 0.0); 2]);
    assert!(!notes.iter().any(|note| note.contains("nominally")), "nobody ran anything: {notes:?}");
    let few = answer_to(&["lte"], &["70KB"], &["slow-start", "slow-start:iw=20", "slow-start:iw=30"], "none");
    assert!(few.iter().any(|note| note.starts_with("Intervals are nominally 95 % and hold for both ")), "{few:?}");
    let worth = "With 5 repetitions all of so many intervals hold in some 92 % of experiments, not in 95 %.";
    assert_eq!(few.iter().filter(|note| *note == worth).count(), 1, "{few:?}");
    // One comparison has the coverage that it claims, but of very few repetitions.
    let of = |reps| {
        let one = scenario(&["lte"], &["70KB"], &["slow-start", "slow-start:iw=20"], "none");
        answer_of(&Scenario { reps, ..one })
    };
    let said = |notes: &[String], wanted: &str| notes.iter().any(|note| note == wanted);
    assert!(said(&of(5), "Intervals are 95 %."), "{:?}", of(5));
    let narrow = "An interval of 2 repetitions is too narrow where times jump, as losses make them.";
    assert!(said(&of(2), "Intervals are nominally 95 %.") && said(&of(2), narrow), "{:?}", of(2));
}

#[test]
fn every_setting_is_told_where_nothing_is_compared() {
    let told = answer_to(&["dsl-fast"], &["70KB", "2MB"], &["slow-start"], "none");
    assert!(told[0].starts_with("slow-start finishes a 70KB transfer on dsl-fast in "), "{told:?}");
    assert!(told[1].starts_with("slow-start finishes a 2MB transfer on dsl-fast in "), "{told:?}");
    let beside = Scenario {
        competitor: vec!["none".into(), "cubic".into()],
        reps: 1,
        ..scenario(&["dsl-fast"], &["5KB", "70KB", "300KB"], &["slow-start"], "none")
    };
    let told = answer_of(&beside);
    assert!(
        told[0].contains(" on dsl-fast alone in ") && told[3].contains(" on dsl-fast beside cubic in "),
        "{told:?}"
    );
    assert_eq!((&*told[4], told.len()), ("The table has the other 2 cells.", 5));
}

#[test]
fn idle_policies_are_compared_where_nothing_else_is() {
    let chunks = Scenario {
        idle: vec!["keep".into(), "startup".into()],
        application: vec!["chunks:size=1MB,interval=2s,count=3".into()],
        ..scenario(&["lte"], &[], &[], "none")
    };
    let of = |schemes: &[&str]| {
        let scheme = schemes.iter().map(|text| (*text).to_owned()).collect();
        let plan = Scenario { scheme, ..chunks.clone() }.plan(Path::new(".")).unwrap();
        let compared = plan.compared().map(Axis::name);
        let baselines = plan.cells().iter().filter(|cell| plan.baseline_of(cell).is_some()).count();
        (compared, baselines)
    };
    assert_eq!(of(&["slow-start"]), (Some("idle"), 1));
    assert_eq!(of(&["slow-start", "jump-start"]), (Some("scheme"), 2));
}

#[test]
fn what_fails_more_often_is_not_offered() {
    let plan = scenario(&["lte"], &["70KB"], &["slow-start", "jump-start"], "none").plan(Path::new(".")).unwrap();
    let of = |failed: [usize; 2]| {
        let mut summary = summarize(&plan, &[]);
        for (cell, failed) in summary.cells.iter_mut().zip(failed) {
            (cell.n, cell.failed) = (20 - failed, failed);
        }
        let versus = summary.cells[1].vs_baseline.as_mut().unwrap();
        (versus.verdict, versus.speedup) = (Some(Kind::Faster.into()), Some(1.5));
        best(&Standing::of_axis(&plan, &summary, plan.compared().unwrap()))
            .is_some()
            .then_some(())
            .map_or_else(|| answer(&plan, &summary), |()| vec!["offered".to_owned()])
    };
    assert_eq!(of([3, 3]), ["offered"]);
    let refused = of([0, 15]);
    assert!(refused.contains(&"Failed: slow-start 0 of 20; jump-start 15 of 20.".to_owned()), "{refused:?}");
}

#[test]
fn competitors_lose_time_or_bytes_each_in_its_own_measure() {
    let one = scenario(&["lte"], &["2MB"], &["slow-start", "jump-start"], "none");
    let plan = Scenario { competitor: vec!["cubic".into(), "short:size=70KB".into()], ..one };
    let plan = plan.plan(Path::new(".")).unwrap();
    let mut summary = summarize(&plan, &[]);
    for (cell, harm) in summary.cells.iter_mut().zip([1.0, 6.0, 100.0, 250.0]) {
        let others = cell.others.as_mut().unwrap();
        others.goodput_lost_mbit.mean = Some(harm);
        if let Some(late) = &mut others.extra_fct_ms {
            late.mean = Some(harm);
        }
    }
    for versus in summary.cells.iter_mut().filter_map(|cell| cell.vs_baseline.as_mut()) {
        (versus.verdict, versus.speedup) = (Some(Kind::Faster.into()), Some(1.5));
    }
    let answer = answer(&plan, &summary);
    let paid = answer.iter().find(|said| said.starts_with("What others pay: ")).unwrap();
    let expected = "What others pay: other transfers take 250 ms longer beside jump-start and 100 ms longer beside \
                    slow-start (short:size=70KB); competing flows deliver 6.0 Mbit less beside jump-start and 1.0 Mbit \
                    less beside slow-start (cubic).";
    assert_eq!(paid, expected);
}
