//! The controller in noq, in virtual time: what the host reports has to become what the controller expects.

mod world;

use std::time::Duration;

use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic, reno};
use flowstart_core::controller::ControllerConfig;
use flowstart_core::event::{Decision, ExitReason};
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::startup::{StartupConfig, blitzstart, halfback, jump_start, search, slow_start};
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::{ControllerFactory, Flow};
use world::{Fate, Path, transfer};

const LIMIT: Duration = Duration::from_secs(60);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn factory(startup: StartupConfig) -> ControllerFactory {
    ControllerFactory::new(startup, AvoidanceConfig::Cubic(cubic::Config::default())).expect("a pair that works")
}

fn slow_start() -> ControllerFactory {
    factory(StartupConfig::SlowStart(slow_start::Config::default()))
}

fn blitzstart() -> ControllerFactory {
    factory(StartupConfig::Blitzstart(blitzstart::Config::default()))
}

fn hinted(mbit: u64) -> PathKnowledge {
    let hint = Hint { bandwidth: Rate::from_mbit(mbit), technology: AccessTechnology::Ethernet };
    PathKnowledge { hint: Some(hint), ..PathKnowledge::default() }
}

fn decisions(flow: &Flow) -> Vec<Decision> {
    std::iter::from_fn(|| flow.take_decision()).map(|(_, decision)| decision).collect()
}

#[test]
fn slow_start_doubles_every_round() {
    let flow = Flow::new(PathKnowledge::default());
    let outcome = transfer(&slow_start(), &flow, 500_000, Path::default(), LIMIT);
    // RTT 100 ms; the data starts at 150 ms and needs 50 ms to arrive. Windows of 12, 24, 48, 96 and 192 KB are 372 KB:
    // the rest is sent in the sixth round, which begins at 650 ms and lasts less than one RTT.
    let done = outcome.done.unwrap();
    assert!((MS(700)..MS(800)).contains(&done), "{done:?}");
    let status = flow.status();
    assert_eq!((status.lost, status.exit, status.moves), (Bytes::ZERO, None, 0));
    // Five full windows have doubled it: 12 KB * 2^5 = 384 KB. The sixth adds at most the 142 KB that were left.
    assert!(status.cwnd >= Bytes::new(384_000) && status.cwnd <= Bytes::new(526_200), "{status:?}");
    assert_eq!(status.in_flight, Bytes::ZERO);
    assert_eq!(status.min_rtt.map(|rtt| rtt.as_millis_f64().round()), Some(100.0));
}

#[test]
fn a_hint_is_launched_with_its_window_and_paced() {
    let flow = Flow::new(hinted(50));
    let outcome = transfer(&blitzstart(), &flow, 500_000, Path::default(), LIMIT);
    let (at, cwnd, _) = flow.status().launch.unwrap();
    // The launch comes with the first acknowledgement, one RTT after the server began. 50 Mbit/s * 100.096 ms = 625,600
    // bytes.
    assert!((0.1..0.101).contains(&at.as_secs()), "{at:?}");
    assert_eq!(cwnd, Bytes::new(625_600));
    // One round instead of six.
    assert!(outcome.done.unwrap() < MS(350), "{:?}", outcome.done);
    // Startup ends with the launch, so pacing is 1.25 * cwnd / RTT = 62.5 Mbit/s. After the burst of noq's pacer, 2 ms
    // or 13 packets, they follow each other evenly.
    let data: Vec<_> = outcome.departures.iter().filter(|(at, size)| *at >= MS(150) && *size == 1200).collect();
    let first = data[0].0;
    let at_once = data.iter().filter(|(at, _)| *at == first).count();
    assert!(at_once <= 13, "{at_once} packets left at once");
    let span = data[data.len() - 1].0 - data[20].0;
    let bytes: usize = data[20..].iter().map(|(_, size)| size).sum();
    let measured = bytes as f64 * 8.0 / span.as_secs_f64();
    assert!((measured / 62.5e6 - 1.0).abs() < 0.02, "{measured} bit/s");
}

#[test]
fn jump_start_waits_to_be_told_how_much_there_is() {
    let factory = factory(StartupConfig::JumpStart(jump_start::Config::default()));
    let flow = Flow::waiting(PathKnowledge::default());
    flow.expect(Bytes::new(500_000), Bytes::new(1200));
    let outcome = transfer(&factory, &flow, 500_000, Path::default(), LIMIT);
    // Everything within the first RTT: 150 + 100 + 50 ms.
    let done = outcome.done.unwrap();
    assert!((MS(270)..MS(310)).contains(&done), "{done:?}");
    let untold = Flow::waiting(PathKnowledge::default());
    transfer(&factory, &untold, 100_000, Path::default(), MS(2_000));
    assert_eq!(untold.status().launch, None);
}

#[test]
fn congestion_is_answered_although_nobody_said_how_much_there_is() {
    let factory = factory(StartupConfig::JumpStart(jump_start::Config::default()));
    for (bad, reason) in [(Fate::Drop, ExitReason::Loss), (Fate::Mark, ExitReason::Ecn)] {
        let untold = Flow::waiting(PathKnowledge::default());
        let fate = move |number, _| if number == 20 { bad } else { Fate::Deliver };
        let path = Path { fate: Box::new(fate), ..Path::default() };
        let outcome = transfer(&factory, &untold, 500_000, path, LIMIT);
        let status = untold.status();
        assert_eq!(status.exit.map(|(_, reason, _)| reason), Some(reason));
        // Slow start from 10 packets, of which CUBIC leaves 7.
        assert_eq!(status.launch.map(|(_, cwnd, _)| cwnd), Some(Bytes::new(12_000)));
        assert_eq!(status.exit.map(|(_, _, cwnd)| cwnd), Some(Bytes::new(8_400)));
        // The window grows again. An initial window per round trip would take 500,000 / 12,000 * 100 ms = 4.2 s.
        assert!(outcome.done.is_some_and(|done| done < MS(3_500)), "{:?}", outcome.done);
    }
}

#[test]
fn a_loss_ends_startup_and_reduces_once_per_window() {
    let flow = Flow::new(PathKnowledge::default());
    let fate = |number, _| if (60..64).contains(&number) { Fate::Drop } else { Fate::Deliver };
    let path = Path { fate: Box::new(fate), ..Path::default() };
    let outcome = transfer(&slow_start(), &flow, 500_000, path, LIMIT);
    assert!(outcome.done.is_some());
    let status = flow.status();
    assert_eq!(status.lost_packets, 4);
    assert_eq!(status.exit.map(|(_, reason, _)| reason), Some(ExitReason::Loss));
    let seen = decisions(&flow);
    let reductions = seen.iter().filter(|decision| matches!(decision, Decision::WindowReduced { .. })).count();
    assert_eq!(reductions, 1, "{seen:?}");
    assert!(seen.iter().any(|decision| matches!(decision, Decision::Recovered { .. })), "{seen:?}");
}

#[test]
fn a_late_packet_gives_the_window_back() {
    let flow = Flow::new(PathKnowledge::default());
    let fate = |number, _| if number == 60 { Fate::Delay(MS(30)) } else { Fate::Deliver };
    let path = Path { fate: Box::new(fate), ..Path::default() };
    let outcome = transfer(&slow_start(), &flow, 500_000, path, LIMIT);
    let seen = decisions(&flow);
    let undone = seen.iter().find_map(|decision| match decision {
        Decision::ReductionUndone { before, after } => Some((*before, *after)),
        _ => None,
    });
    let (before, after) = undone.unwrap_or_else(|| panic!("{seen:?}"));
    assert!(after > before);
    // As fast as without the delay.
    assert!(outcome.done.unwrap() < MS(850), "{:?}", outcome.done);
}

#[test]
fn a_mark_ends_startup_without_loss() {
    let flow = Flow::new(PathKnowledge::default());
    let fate = |number, _| if number == 60 { Fate::Mark } else { Fate::Deliver };
    let path = Path { fate: Box::new(fate), ..Path::default() };
    transfer(&slow_start(), &flow, 500_000, path, LIMIT).done.unwrap();
    let status = flow.status();
    assert_eq!(status.exit.map(|(_, reason, _)| reason), Some(ExitReason::Ecn));
    assert_eq!(status.lost_packets, 0);
}

#[test]
fn nothing_delivered_for_long_is_persistent_congestion() {
    let flow = Flow::new(PathKnowledge::default());
    let fate = |_, now| if (MS(450)..MS(3_000)).contains(&now) { Fate::Drop } else { Fate::Deliver };
    let path = Path { fate: Box::new(fate), ..Path::default() };
    let outcome = transfer(&slow_start(), &flow, 500_000, path, LIMIT);
    assert!(outcome.done.is_some());
    let seen = decisions(&flow);
    assert!(seen.iter().any(|decision| matches!(decision, Decision::Collapsed { .. })), "{seen:?}");
}

#[test]
fn a_connection_that_moves_starts_again_without_its_hint() {
    let flow = Flow::new(hinted(50));
    let path = Path { moves_at: Some(MS(400)), ..Path::default() };
    let outcome = transfer(&blitzstart(), &flow, 5_000_000, path, LIMIT);
    assert!(outcome.done.is_some(), "{:?}", flow.status());
    assert_eq!(flow.status().moves, 1);
    let launches: Vec<_> = decisions(&flow)
        .into_iter()
        .filter_map(|decision| match decision {
            Decision::Launched { cwnd, .. } => Some(cwnd),
            _ => None,
        })
        .collect();
    let (first, second) = (launches[0], launches[1]);
    assert!(first > Bytes::new(600_000));
    assert_eq!(second, Bytes::new(12_000), "the second path is unknown");
}

#[test]
fn a_larger_mtu_is_taken_over() {
    let flow = Flow::new(PathKnowledge::default());
    let path = Path { mtu_discovery: true, ..Path::default() };
    let outcome = transfer(&slow_start(), &flow, 5_000_000, path, LIMIT);
    let largest = outcome.departures.iter().map(|(_, size)| *size).max();
    assert_eq!(largest, Some(1452), "noq's default bound");
    assert_eq!(flow.status().lost_packets, 0);
}

#[test]
fn every_scheme_ends_its_startup_or_the_transfer() {
    for startup in StartupConfig::defaults() {
        if matches!(startup, StartupConfig::Halfback(_)) {
            continue;
        }
        for avoidance in AvoidanceConfig::defaults() {
            let refused = ControllerConfig::validate_pair(&startup, &avoidance).is_err();
            if refused || matches!(avoidance, AvoidanceConfig::Xcp(_) | AvoidanceConfig::Prague(_)) {
                continue;
            }
            let name = format!("{} and {}", startup.name(), avoidance.name());
            let factory = ControllerFactory::new(startup.clone(), avoidance).unwrap();
            let flow = Flow::new(PathKnowledge {
                requested_rate: Some(Rate::from_mbit(200)),
                bytes_waiting: Some(Bytes::new(3_000_000)),
                ..hinted(200)
            });
            // A link of 20 Mbit/s with room for 100 ms: launches at 200 Mbit/s lose packets.
            let mut queued = 0.0_f64;
            let mut last = Duration::ZERO;
            let fate = move |_, now: Duration| {
                queued = (queued - (now - last).as_secs_f64() * 2_500_000.0).max(0.0);
                last = now;
                if queued > 250_000.0 {
                    return Fate::Drop;
                }
                queued += 1200.0;
                Fate::Deliver
            };
            let path = Path { rate: 2_500_000.0, fate: Box::new(fate), ..Path::default() };
            let outcome = transfer(&factory, &flow, 3_000_000, path, LIMIT);
            let done = outcome.done.unwrap_or_else(|| panic!("{name}: {:?}", flow.status()));
            // 3 MB at 20 Mbit/s take 1.2 s.
            assert!(done > MS(1_300) && done < MS(8_000), "{name}: {done:?}");
        }
    }
}

#[test]
fn a_path_delivers_what_its_link_carries() {
    let flow = Flow::new(hinted(20));
    let path = Path { rate: 2_500_000.0, ..Path::default() };
    transfer(&blitzstart(), &flow, 5_000_000, path, LIMIT).done.unwrap();
    let rate = flow.status().highest_rate.unwrap().as_mbit();
    assert!((18.0..21.0).contains(&rate), "{rate} Mbit/s over a link of 20");
}

#[test]
fn what_the_host_cannot_do_is_refused() {
    let reno = || AvoidanceConfig::Reno(reno::Config::default());
    let halfback = ControllerFactory::new(StartupConfig::Halfback(halfback::Config::default()), reno()).unwrap_err();
    assert!(halfback.to_string().contains("data to be sent again before it is lost"), "{halfback}");
    let slow_start = StartupConfig::SlowStart(slow_start::Config::default());
    let prague = ControllerFactory::new(slow_start, AvoidanceConfig::Prague(Default::default())).unwrap_err();
    assert!(prague.to_string().contains("the number of packets that were marked"), "{prague}");
    let search = StartupConfig::Search(search::Config::default());
    let bbr = ControllerFactory::new(search, AvoidanceConfig::Bbr(bbr::Config::default())).unwrap_err();
    assert!(bbr.to_string().contains("takes only a scheme's launch"), "{bbr}");
}
