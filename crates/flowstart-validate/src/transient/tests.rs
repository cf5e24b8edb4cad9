use flowstart_core::aqm::taildrop;

use super::*;

fn cell(mbit: u64, rtt: u64) -> Config {
    Config::new(Rate::from_mbit(mbit), Duration::from_millis(rtt))
}

#[test]
fn the_grid_has_every_combination_once() {
    // Flows and RTTs: 1 + 3 x 2 = 7. 3 rates x 6 RTTs x 7 x 2 IW x 2 pacing x 2 ACK x 2 ECN x 2 background x 3
    // reductions.
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
    // 4 BDP and 50 packets: 216 packets of 1.2 ms. The pipe holds 42 packets more, so the window is 6.2 BDP when it is
    // full, and grows until the loss is heard of. Finite transfers of 6 BDP end before.
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

#[test]
fn under_every_condition_the_oracle_ends_slow_start_where_the_link_is_just_full() {
    let ms = Duration::from_millis;
    for condition in [
        Condition::Thinking { time: ms(50), acknowledged: false },
        Condition::Thinking { time: ms(50), acknowledged: true },
        Condition::NoHandshake,
        Condition::Tunnel,
        Condition::BackgroundStarts,
        Condition::Linux,
        Condition::Restart(ms(200)),
    ] {
        let background = if condition == Condition::BackgroundStarts { 0.3 } else { 0.0 };
        let config = Config { condition, background, flows: 2, ..cell(10, 200) };
        for transient in run(&config, &Discipline::Oracle, 1).transients {
            assert!((0.93..1.07).contains(&transient.exit_load), "{condition:?}: {transient:?}");
            assert_eq!((transient.exits, transient.marked), (2, 2), "{condition:?}");
        }
    }
}

/// When packets arrive at the queue, with their flows and sizes.
fn arrivals(config: &Config) -> Vec<(f64, u32, u32)> {
    let mut left = Vec::new();
    run_observed(config, &Discipline::Oracle, 1, |moment, world| match moment {
        Moment::Built { .. } => {
            if let Some(monitor) = &mut world.network.monitor {
                monitor.log = Some(Vec::new());
            }
        }
        Moment::Begins { .. } => {}
        Moment::Ended { .. } => {
            let log = world.network.monitor.as_mut().and_then(|monitor| monitor.log.replace(Vec::new()));
            left.extend(log.into_iter().flatten().map(|of| (of.time.as_secs(), of.flow, of.size)));
        }
    });
    left
}

#[test]
fn a_server_that_thinks_sends_data_so_much_later() {
    let time = Duration::from_millis(50);
    for (acknowledged, small) in [(false, 1), (true, 2)] {
        let condition = Condition::Thinking { time, acknowledged };
        let left = arrivals(&Config { condition, repeats: 1, ..cell(10, 100) });
        let of_first = |full: bool| left.iter().filter(move |of| of.1 == 0 && (of.2 == 1500) == full);
        // 100 ms of RTT and 50 ms of thought, and 1.2 ms until a full packet has left. What acknowledges comes after an
        // RTT.
        let gap = of_first(true).next().unwrap().0 - of_first(false).next().unwrap().0;
        assert!((0.150..0.153).contains(&gap), "{gap}");
        assert_eq!(of_first(false).count(), small);
        let between = of_first(false).next_back().unwrap().0 - of_first(false).next().unwrap().0;
        assert!(between == 0.0 || (0.1..0.101).contains(&between), "{between}");
    }
}

#[test]
fn a_restart_follows_after_the_idle_time() {
    let idle = Duration::from_millis(200);
    let config = Config { condition: Condition::Restart(idle), ..cell(10, 100) };
    let metrics = run(&config, &Discipline::Oracle, 1);
    for pair in metrics.transients.windows(2) {
        assert_eq!(pair[1].start, pair[0].end + idle);
    }
    // All handshakes are over when the first transient begins.
    let left = arrivals(&config);
    let first = left.iter().position(|of| of.2 == 1500).unwrap();
    assert!(first == 3 && left[first..].iter().all(|of| of.2 == 1500), "{:?}", &left[..8]);
}

#[test]
fn a_background_that_starts_with_the_transient_is_silent_in_between() {
    let config = Config { condition: Condition::BackgroundStarts, background: 0.3, ..cell(10, 100) };
    let metrics = run(&config, &Discipline::Oracle, 1);
    let left = arrivals(&config);
    let constant: Vec<f64> = left.iter().filter(|of| of.1 == 0 && of.2 == 1500).map(|of| of.0).collect();
    for transient in &metrics.transients {
        let (start, end) = (transient.start.as_secs(), transient.end.as_secs());
        // 25 ms of path, 10 ms of stagger, and 1.2 ms each for ten packets of an initial window and its own. 30 % of 10
        // Mbit/s are 250 packets in a second.
        let begins = constant.iter().find(|time| **time >= start).unwrap() - start;
        assert!((0.025..0.049).contains(&begins), "{begins}");
        assert!(!constant.iter().any(|time| (end + 0.2..end + 1.4).contains(time)));
        let during = constant.iter().filter(|time| (start..end).contains(time)).count() as f64;
        assert!((during / (250.0 * (end - start)) - 1.0).abs() < 0.15, "{during}");
    }
}

#[test]
fn acknowledgements_wait_behind_a_reverse_flow() {
    let handshakes = |condition| {
        let mut rtts = Vec::new();
        let config = Config { condition, delayed_acks: true, ..cell(10, 100) };
        run_observed(&config, &Discipline::Oracle, 1, |moment, world| {
            if let Moment::Ended { flows, .. } = moment {
                rtts.extend(flows.clone().filter_map(|flow| world.record(flow).handshake_rtt));
            }
        });
        rtts.iter().map(|rtt| rtt.as_secs()).fold(0.0, f64::max)
    };
    assert!(handshakes(Condition::Plain) < 0.101 && handshakes(Condition::Reverse) > 0.11);
}
