use flowstart_core::aqm::taildrop;

use super::*;

fn cell(mbit: u64, rtt: u64) -> Config {
    Config::new(Rate::from_mbit(mbit), Duration::from_millis(rtt))
}

#[test]
fn the_grid_has_every_combination_once() {
    // Flows and RTTs: 1 + 3 x 2 = 7. 3 rates x 6 RTTs x 7 x 2 IW x 2 pacing x 2 ACK x 2 ECN x 2 background x 3 reductions.
    let cells: Vec<Config> = grid::Grid::whole(2.0).cells().collect();
    assert_eq!(cells.len(), 3 * 6 * 7 * 2 * 2 * 2 * 2 * 2 * 3);
    let texts: std::collections::BTreeSet<String> = cells.iter().map(|cell| format!("{cell:?}")).collect();
    assert_eq!(texts.len(), cells.len());
}

#[test]
fn the_oracle_ends_slow_start_where_the_link_is_just_full() {
    for (ecn, delayed_acks, flows, pacing_gain, background, mixed_rtts) in [
        (true, false, 1, None, 0.0, false),
        (true, true, 1, None, 0.0, false),
        (true, false, 6, Some(1.0), 0.3, true),
        (true, true, 2, Some(2.0), 0.0, true),
        (false, false, 6, None, 0.3, false),
        (false, true, 2, Some(2.0), 0.3, false),
    ] {
        let config = Config { ecn, delayed_acks, flows, pacing_gain, background, mixed_rtts, ..cell(10, 200) };
        let metrics = run(&config, &Discipline::Oracle, 1);
        for transient in &metrics.transients {
            assert!((0.93..1.07).contains(&transient.exit_load), "{config:?}: {transient:?}");
            assert_eq!((transient.exits, transient.timeouts), (flows, 0), "{config:?}: {transient:?}");
            let signals = (transient.marked, transient.dropped);
            let each = u64::from(flows);
            assert_eq!(signals, if ecn { (each, 0) } else { (0, each) }, "{config:?}");
        }
        assert!(metrics.utilization().unwrap() > 0.6, "{metrics:?}");
        assert_eq!((metrics.missed(), metrics.false_signals()), (0, 0));
    }
}

#[test]
fn without_signals_slow_start_goes_on_until_the_buffer_is_full() {
    let config = cell(10, 50);
    let config = Config { buffer: Some(config.large_buffer()), ..config };
    let taildrop = QueueConfig::TailDrop(taildrop::Config::default());
    let metrics = run(&config, &taildrop.into(), 1);
    // 4 BDP and 50 packets: 216 packets of 1.2 ms. The pipe holds 42 packets more, so the window is 6.2 BDP when it is full, and
    // grows until the loss is heard of. Finite transfers of 6 BDP end before.
    let endless = &metrics.transients[2];
    let peak = endless.peak.unwrap().as_secs();
    assert!((0.25..0.262).contains(&peak), "{peak}");
    assert!((6.0..13.0).contains(&endless.exit_load), "{endless:?}");
    assert_eq!(metrics.missed(), 3);
}

#[test]
fn runs_repeat_and_seeds_differ() {
    let config = Config { flows: 6, background: 0.3, mixed_rtts: true, ..cell(10, 50) };
    let once = run(&config, &Discipline::Oracle, 1);
    assert_eq!(once, run(&config, &Discipline::Oracle, 1));
    assert_ne!(once, run(&config, &Discipline::Oracle, 2));
}
