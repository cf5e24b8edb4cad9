//! Bars on results that were made up.

use super::*;
use crate::tournament::knowledge::Kind;
use crate::tournament::sets::Set;

/// A cell of 100 ms RTT in which slow start takes a second.
fn cell(place: usize, change: impl FnOnce(&mut Drawn)) -> (Drawn, CellResult) {
    let traits = Traits {
        knowledge: Kind::Nothing,
        others: Others::Nobody,
        transport: Transport::ModelTcp,
        is_policed: false,
        is_varying: false,
        is_aggregated: false,
        rtt_ms: 100.0,
    };
    let mut cell = Drawn {
        name: format!("some-{place:03}"),
        traits,
        link: String::new(),
        aqm: String::new(),
        size: String::new(),
        competitor: String::new(),
        transport: String::new(),
        flows: 1,
    };
    change(&mut cell);
    let result =
        CellResult { cell: cell.name.clone(), schemes: vec![runs(BASE, 1000.0, 0.0)], ..CellResult::default() };
    (cell, result)
}

fn runs(scheme: &str, fct: f64, waste: f64) -> Runs {
    Runs {
        scheme: scheme.into(),
        fct_ms: vec![Some(fct).filter(|fct| fct.is_finite()); 5],
        sent_twice: vec![waste; 5],
        ..Runs::default()
    }
}

fn judge(cells: Vec<(Drawn, CellResult)>) -> Vec<Condition> {
    let of = cells.len();
    let collected = Collected { set: Set::Design, of, cells, reps: 5 };
    bars(&collected, "new", &[BASE, "rival", "new"].map(str::to_owned), 0)
}

fn find<'a>(conditions: &'a [Condition], says: &str) -> &'a Condition {
    let found: Vec<&Condition> = conditions.iter().filter(|one| one.says.starts_with(says)).collect();
    assert_eq!(found.len(), 1, "{says}");
    found[0]
}

#[test]
fn without_cells_no_bar_is_reached_or_missed() {
    let conditions = judge(Vec::new());
    assert!(conditions.iter().all(|one| one.cells == 0 && one.number.is_none() && one.reached.is_none()));
    let bars: Vec<u8> = conditions.iter().map(|one| one.bar).collect();
    assert!((1..=10).all(|bar| bars.contains(&bar)) && bars.is_sorted(), "{bars:?}");
}

#[test]
fn one_true_source_may_cost_two_round_trips() {
    let with_transport = |fct: f64, transport| {
        let change = |cell: &mut Drawn| (cell.traits.knowledge, cell.traits.transport) = (Kind::Hint, transport);
        let (cell, mut result) = cell(1, change);
        result.schemes.extend([runs("rival", 500.0, 0.0), runs("new", fct, 0.02)]);
        judge(vec![(cell, result)])
    };
    let with = |fct| with_transport(fct, Transport::ModelTcp);
    let good = with(700.0);
    let told = find(&good, "one true source without");
    assert_eq!((told.number, told.reached, told.cells), (Some(2.0), Some(true), 1));
    assert_eq!(find(&with(720.0), "one true source without").reached, Some(false));
    // It sends 2 % twice, so no cell is within 1 %.
    assert_eq!(find(&good, "true, alone").number, Some(0.0));
    assert_eq!(find(&good, "corroborated").reached, None);
    assert_eq!(find(&good, "one true source and train, alone: median").cells, 0);
    // Where a train bears it out, it may cost one.
    let seen = with_transport(700.0, Transport::ModelQuic);
    let told = find(&seen, "one true source and train, alone: most");
    assert_eq!((told.number, told.reached, find(&seen, "one true source without").cells), (Some(2.0), Some(false), 0));
}

#[test]
fn a_percentile_of_false_knowledge_forgives_one_cell_of_many() {
    let cells = |bad: usize| {
        let one = |place: usize| {
            let (cell, mut result) = cell(place, |cell| cell.traits.knowledge = Kind::FalseHint);
            let mut new = runs("new", if place < bad { f64::INFINITY } else { 900.0 }, 0.005);
            new.beyond_packets = vec![0.0, place as f64, 0.0, 0.0, 0.0];
            result.schemes.push(new);
            (cell, result)
        };
        judge((0..100).map(one).collect())
    };
    assert_eq!(find(&cells(2), "false, alone: 95th percentile of time").reached, Some(true));
    let bad = cells(6);
    let told = find(&bad, "false, alone: 95th percentile of time");
    assert_eq!((told.number, told.reached, told.cells), (None, Some(false), 100));
    assert_eq!(told.worst[0], "some-000 inf");
    assert_eq!(find(&bad, "false, alone: most packets").number, Some(99.0));
    assert_eq!(find(&bad, "false, alone: 95th percentile of what").number, Some(0.005));
    assert_eq!(find(&bad, "false, alone: most packets").worst[0], "some-099 99.000");
}

#[test]
fn without_knowledge_nobody_may_be_better() {
    let with = |new: f64, rival: f64| {
        let (cell, mut result) = cell(1, |_| {});
        result.schemes.extend([runs("rival", rival, 0.0), runs("new", new, 0.0)]);
        judge(vec![(cell, result)])
    };
    let ahead = with(800.0, 900.0);
    assert_eq!(find(&ahead, "nothing known, alone, TCP").number, Some(1.25));
    assert_eq!(find(&ahead, "nothing known, alone: lead").reached, Some(true));
    let behind = with(800.0, 500.0);
    let told = find(&behind, "nothing known, alone: lead");
    // 1.25 and 2.
    assert_eq!((told.number, told.reached, &*told.worst[0]), (Some(-0.75), Some(false), "rival"));
}

#[test]
fn beside_others_harm_counts_where_slow_start_does_some() {
    let beside = |place: usize, base: f64, new: f64| {
        let (cell, mut result) = cell(place, |cell| {
            cell.traits.knowledge = Kind::FalseSaved;
            cell.traits.others = Others::Established("cubic");
        });
        let harmed = |scheme: &str, mbit: f64| Runs {
            without_mbit: vec![20.0; 5],
            others_mbit: vec![20.0 - mbit; 5],
            ..runs(scheme, 1000.0, 0.0)
        };
        result.schemes = vec![harmed(BASE, base), harmed("new", new)];
        (cell, result)
    };
    // Ratios 1 and 2; 0.5 Mbit is too little to compare.
    let conditions = judge(vec![beside(1, 2.0, 2.0), beside(2, 2.0, 4.0), beside(3, 0.5, 9.0)]);
    let told = find(&conditions, "false, beside established flows: mean harm");
    assert_eq!((told.number, told.cells, told.reached), (Some(1.5), 2, Some(false)));
    assert_eq!(find(&conditions, "false, beside established flows: share").number, Some(1.0));
    assert_eq!(find(&conditions, "false, alone: 95th percentile of time").cells, 0);
}

#[test]
fn what_varies_is_compared_with_the_better_of_two() {
    let (cell, mut result) = cell(1, |cell| cell.traits.is_varying = true);
    result.schemes.extend([runs(SECOND, 500.0, 0.0), runs("new", 600.0, 0.0)]);
    let conditions = judge(vec![(cell, result)]);
    assert_eq!(find(&conditions, "capacity that varies").number, Some(1.2));
    // A link that varies is not plain.
    assert_eq!(find(&conditions, "nothing known, alone, TCP").cells, 0);
}

#[test]
fn many_at_once_and_media_have_bars_of_their_own() {
    let (many, mut of_many) = cell(1, |cell| {
        cell.traits.others = Others::Itself;
        cell.flows = AT_ONCE;
    });
    of_many.schemes = vec![runs(BASE, 1000.0, 0.1), runs("new", 1010.0, 0.3)];
    let (media, mut of_media) = cell(2, |cell| cell.traits.others = Others::Media);
    let heard = |scheme: &str, mos: f64| Runs { worst_mos: vec![mos; 5], ..runs(scheme, 1000.0, 0.0) };
    of_media.schemes = vec![heard(BASE, 3.0), heard("new", 2.5)];
    let conditions = judge(vec![(many, of_many), (media, of_media)]);
    assert_eq!(find(&conditions, "64 at once: mean time").number, Some(1.01));
    assert!((find(&conditions, "64 at once: what").number.unwrap() - 3.0).abs() < 1e-9);
    assert_eq!(find(&conditions, "beside media").number, Some(0.5));
}

#[test]
fn being_beaten_is_bounded_from_above() {
    // Nothing in 20 may be up to 17 %; 27 of 800 up to 5 %, by a tail of 0.017 at 5 %.
    let none = beaten(0, 20);
    assert!((none.number.unwrap() - 0.168_433).abs() < 1e-5 && none.reached == Some(false), "{none:?}");
    assert_eq!(beaten(27, 800).reached, Some(true));
    assert_eq!(beaten(28, 800).reached, Some(false));
    assert_eq!(beaten(0, 0).reached, None);
}
