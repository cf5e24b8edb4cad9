//! Repetitions of whole cells.

use std::path::Path;

use flowstart_core::event::Decision;
use flowstart_sim::observe::trace::Event;

use super::newcomers::{Until, newcomers, outcomes};
use super::repetition::{repetition, replay};
use super::warm_up::warm_up;
use crate::study::scenario::Scenario;

/// The launches of a Blitzstart transfer of 5 MB over dsl-fast with this mobility, and its completion time over its
/// limit.
fn launches(transport: &str, mobility: &str) -> (Vec<(f64, u64)>, f64) {
    let text = format!(
        "link = [\"dsl-fast\"]\nsize = [\"5MB\"]\nscheme = [\"blitzstart\"]\nmove = [\"{mobility}\"]\nreps = 1\n\
         transport = \"{transport}\""
    );
    let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
    let cell = plan.cells()[0];
    let mut finished = replay(&plan, &cell, 0);
    let outcome = outcomes(&plan, &cell, &mut finished).remove(0);
    let launched = |entry: &flowstart_sim::observe::trace::Entry| match entry.event {
        Event::Decided(Decision::Launched { cwnd, .. }) => Some((entry.time.as_secs(), cwnd.get())),
        _ => None,
    };
    let trace = finished.world.network.trace.as_ref().unwrap();
    let fct = outcome.record.completed.unwrap().since(outcome.record.started.unwrap());
    (trace.entries.iter().filter_map(launched).collect(), fct.as_secs() / outcome.ideal_fct.as_secs())
}

#[test]
fn a_move_launches_the_scheme_again_without_the_hint() {
    let (stays, _) = launches("model-quic", "none");
    let (moves, over_limit) = launches("model-quic", "lte,at=500ms");
    // With the hint the first window is that of the path: 50 Mbit/s * 50 ms = 312.5 kB. Without one, ten packets.
    assert!(stays.len() == 1 && stays[0].1 > 250_000, "{stays:?}");
    assert_eq!((moves.len(), moves[0], moves[1]), (2, stays[0], (0.5, 12_000)));
    assert!((1.0..2.0).contains(&over_limit), "{over_limit}");
    // A flow whose move precedes its first data moves with that data. A complete flow does not move.
    assert_eq!(launches("model-quic", "lte,at=0s").0.len(), 2);
    assert_eq!(launches("model-quic", "lte,at=100s").0, stays);
}

/// The window of Plumb's launch without knowledge over this link.
fn launched_by_the_train(transport: &str, link: &str) -> u64 {
    let text = format!(
        "link = ['rate=10mbit,rtt=80ms,access_jitter=0ms,{link}']\nsize = ['2MB']\nscheme = ['plumb']\nreps = 1\n\
         transport = '{transport}'\nunknown = true"
    );
    let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
    let finished = replay(&plan, &plan.cells()[0], 0);
    let entries = &finished.world.network.trace.as_ref().unwrap().entries;
    let launched = entries.iter().find_map(|entry| match entry.event {
        Event::Decided(Decision::Launched { cwnd, .. }) => Some(cwnd.get()),
        _ => None,
    });
    launched.unwrap()
}

#[test]
fn what_a_client_sees_of_the_handshake_makes_a_launch() {
    let model = |link| launched_by_the_train("model-quic", link);
    // 10 Mbit/s for 80 ms and the packets' own time are 100 to 110 kB, of which 64 packets may leave.
    assert_eq!(model("handshake_train=on"), 64 * 1200);
    assert_eq!(model("handshake_train=off"), 12_000);
    // A client may say what it likes: 5 Mbit/s are half of that.
    let half = model("handshake_train=5mbit");
    assert!((50_000..57_000).contains(&half), "{half}");
    assert_eq!(model("handshake_train=1gbit"), 64 * 1200);
    // TCP has none, nor has the real stack, whose part of the handshake is a packet here. It passes on what a client
    // says.
    assert_eq!(launched_by_the_train("model-tcp", "handshake_train=on"), 14_480);
    assert_eq!(launched_by_the_train("quic", "handshake_train=on"), 12_000);
    let told = launched_by_the_train("quic", "handshake_train=5mbit");
    assert!((50_000..57_000).contains(&told), "{told}");
}

#[test]
fn connections_that_come_and_go_lose_only_what_a_newcomer_takes() {
    // Unlimited buffer, and a newcomer of 20 KB, or 0.16 Mbit. Five seconds later the connections are where they would
    // have been without it, except for a few active ones that it had slowed down.
    let text = "link = [\"rate=10mbit,rtt=80ms,buffer=unlimited\"]\nsize = [\"20KB\"]\nscheme = [\"slow-start\"]\n\
                competitor = [\"web:load=2mbit\"]\nreps = 6";
    let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
    for rep in 0..plan.reps {
        let warm = warm_up(&plan, plan.settings()[0], rep);
        let flows = newcomers(&plan, &warm, &plan.cells()[0], Until::Complete).world;
        assert!(!flows.finished_flows().is_empty(), "places are used again, whose counts begin anew");
        let harm = repetition(&plan, plan.settings()[0], rep, &())[0].outcomes[0].others.unwrap();
        assert!((-0.02..=0.16).contains(&harm.goodput_lost_mbit), "{rep}: {harm:?}");
        assert_eq!(harm.dropped_packets, 0.0, "{rep}");
        assert!(harm.extra_delay_ms.is_some_and(|delay| (-0.1..=1.0).contains(&delay)), "{rep}: {harm:?}");
    }
}

#[test]
fn looking_at_the_others_early_changes_nothing() {
    use flowstart_core::time::{Duration, Timestamp};
    use flowstart_sim::observe::trace::Trace;
    use flowstart_sim::world::World;

    use super::newcomers::Finished;
    use super::outcome::FlowOutcome;
    use super::repetition::{Ended, Look};
    use crate::study::plan::{Cell, Setting};

    struct Early(Duration);
    impl Look for Early {
        type Seen = ();
        fn begins(&self, _: Setting, _: u32) -> bool {
            false
        }
        fn begin(&self, _: Setting, _: u32, _: &World, _: Timestamp) -> Trace {
            Trace::default()
        }
        fn goes_on(&self, _: &Cell, _: u32, _: &mut Trace) -> bool {
            false
        }
        fn ended(&self, _: &Cell, _: u32, _: &mut Finished, _: &[FlowOutcome]) {}
        fn settled(&self, _: &Cell, _: u32, _: &Finished, _: Ended, (): &mut ()) {}
        fn waits(&self, _: &Cell, _: u32) -> bool {
            false
        }
        fn compares_after(&self) -> Option<Duration> {
            Some(self.0)
        }
    }
    let text = "link = [\"rate=10mbit,rtt=40ms\"]\nsize = [\"2MB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\n\
                competitor = [\"cubic\"]\nreps = 1";
    let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
    let setting = plan.settings()[0];
    let plain = repetition(&plan, setting, 0, &());
    // The transfers take about three seconds: one look is before their end, one behind it.
    let (during, after) = (Duration::from_millis(1_000), Duration::from_millis(10_000));
    for (time, least, most) in [(during, 0.2, 1.0), (after, 8.5, 10.0)] {
        for (early, plain) in repetition(&plan, setting, 0, &Early(time)).iter().zip(&plain) {
            assert_eq!(early.outcomes[0].record, plain.outcomes[0].record);
            let others = early.others.unwrap();
            let seconds = others.without.delivered as f64 * 8.0 / 10e6;
            assert!((least..=most).contains(&seconds), "{seconds}");
            assert!(others.with.delivered < others.without.delivered, "{others:?}");
            assert!(plain.others.is_none());
        }
    }
}

#[cfg(feature = "quic")]
#[test]
fn a_real_connection_that_gives_up_fails_alone() {
    use flowstart_core::time::Duration;

    use super::newcomers::complete;
    use super::outcome::Failure;

    let text =
        "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nflows = 3\ntransport = \"quic\"\nreps = 1";
    let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
    let (cell, warm) = (plan.cells()[0], warm_up(&plan, plan.settings()[0], 0));
    let mut finished = newcomers(&plan, &warm, &cell, Until::After(Duration::ZERO));
    crate::ends::quic::QuicFlows::give_up(&mut finished.world, finished.flows[0]);
    complete(&plan, &cell, &mut finished);
    let outcomes = outcomes(&plan, &cell, &mut finished);
    let failures: Vec<Option<Failure>> = outcomes.iter().map(|outcome| outcome.failure).collect();
    // The first flow's stack continues, and nobody receives its packets.
    assert!(
        failures[1..] == [None, None] && outcomes[1..].iter().all(|one| one.record.completed.is_some()),
        "{failures:?}"
    );
}

#[test]
fn a_real_connection_that_moves_validates_its_path_and_launches_without_the_hint() {
    let (stays, _) = launches("quic", "none");
    let (moves, over_limit) = launches("quic", "lte,at=500ms");
    assert!(stays.len() == 1 && stays[0].1 > 250_000, "{stays:?}");
    assert_eq!((moves.len(), moves[0], moves[1].1), (2, stays[0], 12_000));
    // On the new path of 70 ms the server learns the new address after half an RTT and validates it for one RTT. Only
    // then may it send more than three times the bytes that it received (RFC 9000, section 9.3); the first data takes
    // another RTT.
    assert!((0.675..0.7).contains(&moves[1].0), "{moves:?}");
    assert!((1.0..2.0).contains(&over_limit), "{over_limit}");
    assert_eq!(launches("quic", "lte,at=0s").0.len(), 2);
    assert_eq!(launches("quic", "lte,at=100s").0, stays);
}

#[test]
fn a_rate_that_varies_is_the_same_for_all_schemes_and_differs_between_repetitions() {
    for link in [
        "rate=20mbit,rtt=30ms,buffer=200ms,rate_steps=80%/700ms,rtt_steps=20ms/700ms",
        "rate=20mbit,rtt=30ms,buffer=200ms,rate_varies=60%/300ms",
        "rate=20mbit,rtt=30ms,buffer=200ms,hops=2,rate_steps=50%/1s",
        "leo,rate=20mbit",
    ] {
        let text = format!(
            "link = [\"{link}\"]\nsize = [\"5MB\"]\nscheme = [\"slow-start\", \"jump-start\"]\nreps = 5\n\
             transport = \"model-tcp:profile=tcp-linux\""
        );
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let rows = crate::experiment::execute(&plan, 2, &[], |_| {}).unwrap();
        assert_eq!(rows, crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap(), "{link}");
        for row in &rows {
            let other = rows.iter().find(|other| other.rep == row.rep && other.scheme != row.scheme).unwrap();
            assert_eq!(row.ideal_fct_ms, other.ideal_fct_ms, "{link}");
            let over = row.fct_ms.unwrap() / row.ideal_fct_ms;
            assert!((1.0..2.5).contains(&over), "{link}: {over} times the limit");
        }
        let (least, most) = rows
            .iter()
            .fold((f64::MAX, 0.0f64), |(least, most), row| (least.min(row.ideal_fct_ms), most.max(row.ideal_fct_ms)));
        assert!(most > least * 1.03, "{link}: {least} to {most} ms");
    }
}

#[test]
fn cross_traffic_is_at_the_hops_that_the_link_names() {
    // Per hop: bytes that the competitor has sent through it before the newcomers, in parts of all.
    let parts = |cross: &str, competitor: &str| {
        let text = format!(
            "link = [\"rate=10mbit,rtt=60ms,buffer=100pkt,hops=2,{cross}\"]\nsize = [\"1MB\"]\n\
             scheme = [\"slow-start\"]\ncompetitor = [\"{competitor}\"]\narrival = [\"together:rtts=60ms/160ms\"]\n\
             flows = 4\nreps = 1"
        );
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let mut warm = warm_up(&plan, plan.settings()[0], 0);
        let bytes = [0, 1].map(|hop| {
            let link = warm.chain.forward_link(hop);
            warm.world.network.link(link).counters().departed_bytes as f64
        });
        let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let rtts: Vec<f64> = rows.iter().filter_map(|row| row.rtt_ms).collect();
        assert!(rtts.contains(&60.0) && rtts.contains(&160.0), "{rtts:?}");
        assert!(rows.iter().all(|row| row.max_queue_delay_ms > Some(1.0) && row.fct_ms.is_some()), "{rows:?}");
        assert!(rows.iter().any(|row| row.others_goodput_lost_mbit > Some(0.1)), "{rows:?}");
        bytes.map(|one| (100.0 * one / (bytes[0] + bytes[1])).round())
    };
    assert_eq!(parts("cross=all", "cbr:rate=8mbit"), [50.0, 50.0]);
    assert_eq!(parts("cross=2", "cbr:rate=8mbit"), [0.0, 100.0]);
    assert_eq!(parts("cross=1", "bulk:cubic"), [100.0, 0.0]);
    assert_eq!(parts("cross=each", "cbr:rate=8mbit,count=2"), [50.0, 50.0]);
    assert_eq!(parts("cross=each", "cbr:rate=2.5mbit,count=3"), [67.0, 33.0]);
}
