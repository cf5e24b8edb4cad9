use super::*;
use crate::sent::LostPlace;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::event::ExitReason;
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};
use flowstart_core::startup::StartupConfig;
use flowstart_core::units::Rate;
use proptest::prelude::*;

const PACKET: Bytes = Bytes::new(1200);

fn sender(startup: StartupConfig, avoidance: AvoidanceConfig, path: PathKnowledge) -> Sender {
    let config = ControllerConfig { undo: true, ..ControllerConfig::new(startup, avoidance) };
    Sender::new(Controller::new(config).unwrap(), PACKET, Flow::new(path))
}

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + Duration::from_millis(millis)
}

fn slow_start() -> Sender {
    let mut sender = launched(StartupConfig::defaults().swap_remove(0));
    assert_eq!(sender.answer().window, PACKET * 10);
    sender
}

/// A sender with CUBIC after its handshake.
fn launched(startup: StartupConfig) -> Sender {
    let mut sender = sender(startup, AvoidanceConfig::defaults().swap_remove(1), PathKnowledge::default());
    // The handshake: one packet, acknowledged after 100 ms.
    sender.on_sent(at(0), PACKET, 0);
    sender.on_acknowledged(at(100), at(0), PACKET, Some(0), INITIAL_RTT);
    sender.on_acknowledgement_end(at(100), Bytes::ZERO, true);
    sender
}

#[test]
fn a_loss_comes_before_the_acknowledgement_of_its_frame() {
    let mut sender = slow_start();
    for number in 1..=10 {
        sender.on_sent(at(100), PACKET, number);
    }
    // A frame acknowledges 4 to 10 and so reveals that 1 to 3 are lost. The host reports the acknowledgement first.
    for number in 4..=10 {
        sender.on_acknowledged(at(200), at(100), PACKET, Some(number), Duration::from_millis(100));
    }
    sender.on_acknowledgement_end(at(200), PACKET * 3, false);
    for number in 1..=3 {
        sender.on_packet_lost(at(200), PACKET, LostPlace::Number(number));
    }
    sender.on_loss(at(200), false);
    // CUBIC makes 0.7 of a window of 10 packets, not of the 17 that the acknowledgement would have made of it first.
    assert_eq!(sender.answer().window, PACKET * 7);
    assert_eq!(sender.flow.status().lost, PACKET * 3);
    assert_eq!(sender.flow.status().in_flight, Bytes::ZERO);
}

/// What fell back servers see of launches: those of schemes, too, whose startup ends with the launch.
#[test]
fn the_losses_of_a_first_flight_are_those_of_the_launch() {
    for startup in StartupConfig::defaults() {
        if startup.needs().contains(Needs::APPROVAL) {
            continue;
        }
        let hint = Some(Hint { bandwidth: Rate::from_mbit(10), technology: AccessTechnology::Unknown });
        let name = startup.name();
        let mut sender =
            sender(startup, AvoidanceConfig::defaults().swap_remove(1), PathKnowledge { hint, ..Default::default() });
        sender.on_sent(at(0), PACKET, 0);
        sender.on_acknowledged(at(100), at(0), PACKET, Some(0), INITIAL_RTT);
        sender.on_acknowledgement_end(at(100), Bytes::ZERO, true);
        (1..=10).for_each(|number| sender.on_sent(at(100), PACKET, number));
        // The last packet arrives, and nine before it do not.
        sender.on_acknowledged(at(200), at(100), PACKET, Some(10), Duration::from_millis(100));
        sender.on_acknowledgement_end(at(200), PACKET * 9, false);
        (1..10).for_each(|number| sender.on_packet_lost(at(200), PACKET, LostPlace::Number(number)));
        sender.on_loss(at(200), false);
        sender.answer();
        let status = sender.flow.status();
        assert_eq!((status.startup_sent, status.startup_lost), (PACKET * 10, PACKET * 9), "{name}");
        // What follows is congestion avoidance's.
        sender.on_sent(at(210), PACKET, 11);
        assert_eq!(sender.flow.status().startup_sent, PACKET * 10, "{name}");
    }
}

#[test]
fn a_window_never_holds_less_than_two_packets() {
    let config = flowstart_core::startup::slow_start::Config { iw: Some(1), ..Default::default() };
    assert_eq!(launched(StartupConfig::SlowStart(config)).answer().window, PACKET * 2);
}

#[test]
fn without_a_loss_the_acknowledgement_counts_when_the_window_is_asked_for() {
    let mut sender = slow_start();
    for number in 1..=10 {
        sender.on_sent(at(100), PACKET, number);
    }
    for number in 1..=10 {
        sender.on_acknowledged(at(200), at(100), PACKET, Some(number), Duration::from_millis(100));
    }
    sender.on_acknowledgement_end(at(200), Bytes::ZERO, false);
    assert_eq!(sender.answer().window, PACKET * 20);
}

#[test]
fn the_receivers_delay_is_found_in_the_hosts_smoothed_rtt() {
    let mut sender = slow_start();
    let ms = Duration::from_millis;
    sender.on_sent(at(100), PACKET, 1);
    sender.on_sent(at(100), PACKET, 2);
    sender.on_sent(at(100), PACKET, 3);
    // After 120 ms, of which the receiver waited 20: the host's smoothed RTT stays at 100 ms.
    sender.on_acknowledged(at(220), at(100), PACKET, Some(1), ms(100));
    sender.on_acknowledgement_end(at(220), PACKET * 2, false);
    sender.on_acknowledged(at(230), at(100), PACKET, Some(2), ms(100));
    sender.on_acknowledgement_end(at(230), PACKET, false);
    // 8 * 100 - 7 * 100 = 100 ms: no queue.
    assert_eq!((kept(&sender).rtt, sender.rtt.smoothed()), (Some(ms(100)), ms(100)));
    // After 130 ms without delay: 7/8 * 100 + 1/8 * 130 = 103.75 ms.
    sender.on_acknowledged(at(240), at(100), PACKET, Some(3), Duration::from_micros(103_750));
    sender.on_acknowledgement_end(at(240), Bytes::ZERO, false);
    assert_eq!((kept(&sender).rtt, sender.rtt.smoothed()), (Some(ms(130)), Duration::from_micros(103_750)));
}

/// What the controller will get with the last acknowledgement.
fn kept(sender: &Sender) -> Ack {
    sender.kept.unwrap().1.delivered.unwrap()
}

/// 10 packets leave and all but the first `missing` are acknowledged a round trip later, by one frame.
fn flight(sender: &mut Sender, missing: u64) {
    for number in 1..=10 {
        sender.on_sent(at(100), PACKET, number);
    }
    for number in missing + 1..=10 {
        sender.on_acknowledged(at(200), at(100), PACKET, Some(number), Duration::from_millis(100));
    }
    sender.on_acknowledgement_end(at(200), PACKET * missing, false);
}

#[test]
fn a_mark_comes_before_the_acknowledgement_of_its_frame() {
    let mut sender = slow_start();
    flight(&mut sender, 0);
    // The host reports the mark last.
    sender.on_ecn(at(200));
    // CUBIC makes 0.7 of a window of 10 packets, not of the 20 that the acknowledgement would have made of it first.
    assert_eq!(sender.answer().window, PACKET * 7);
    // A mark that comes alone belongs to the same window.
    sender.on_ecn(at(200));
    assert_eq!(sender.answer().window, PACKET * 7);
}

#[test]
fn a_loss_and_a_mark_of_one_frame_reduce_once() {
    let mut sender = slow_start();
    flight(&mut sender, 1);
    sender.on_packet_lost(at(200), PACKET, LostPlace::Number(1));
    sender.on_loss(at(200), false);
    sender.on_ecn(at(200));
    assert_eq!(sender.answer().window, PACKET * 7);
    assert_eq!(sender.flow.status().exit.map(|(_, reason, _)| reason), Some(ExitReason::Loss));
    // The loss was spurious. The mark would also have reduced the window, so the reduction stays.
    sender.on_spurious_loss();
    assert_eq!(sender.answer().window, PACKET * 7);
}

/// A sender whose application has not said yet what it will send, with an initial window in flight.
fn untold() -> Sender {
    let jump_start = StartupConfig::defaults().into_iter().find(|startup| startup.name() == "jump-start");
    let mut config = ControllerConfig::new(jump_start.unwrap(), AvoidanceConfig::defaults().swap_remove(1));
    config.undo = true;
    let mut sender = Sender::new(Controller::new(config).unwrap(), PACKET, Flow::waiting(PathKnowledge::default()));
    sender.on_sent(at(0), PACKET, 0);
    sender.on_acknowledged(at(100), at(0), PACKET, Some(0), INITIAL_RTT);
    sender.on_acknowledgement_end(at(100), Bytes::ZERO, true);
    flight(&mut sender, 1);
    assert_eq!((sender.answer().window, sender.flow.status().launch), (PACKET * 10, None));
    sender
}

#[test]
fn congestion_launches_what_waits_and_is_answered() {
    let mut sender = untold();
    sender.on_packet_lost(at(200), PACKET, LostPlace::Number(1));
    sender.on_loss(at(200), false);
    // The target of a jump is unknown, so it is slow start from 10 packets; CUBIC leaves 7.
    let answer = sender.answer();
    assert_eq!((answer.window, sender.flow.status().launch.map(|launch| launch.1)), (PACKET * 7, Some(PACKET * 10)));
    // 1.25 * 7 packets in a round trip of 100 ms: 840 kbit/s.
    assert_eq!(answer.pacing_rate, Rate::from_bits_per_sec(840_000));
    // Packets from before the launch belong to the same window, although the controller did not know them at that time.
    sender.on_sent(at(210), PACKET, 11);
    sender.on_packet_lost(at(220), PACKET, LostPlace::Number(10));
    sender.on_loss(at(220), false);
    assert_eq!(sender.answer().window, PACKET * 7);
    // The application comes too late.
    sender.flow.expect(Bytes::new(1_000_000), PACKET);
    assert_eq!(sender.answer().window, PACKET * 7);
}

#[test]
fn a_mark_or_persistent_congestion_launches_as_well() {
    let mut sender = untold();
    sender.on_ecn(at(200));
    assert_eq!(sender.answer().window, PACKET * 7);
    assert_eq!(sender.flow.status().exit.map(|(_, reason, _)| reason), Some(ExitReason::Ecn));
    let mut sender = untold();
    sender.on_packet_lost(at(900), PACKET, LostPlace::Number(1));
    sender.on_loss(at(900), true);
    assert_eq!(sender.answer().window, PACKET * 2);
}

#[test]
fn packets_that_filled_the_window_are_not_those_of_an_idle_sender() {
    let acknowledge_all = |sender: &mut Sender| {
        for number in 1..=8 {
            sender.on_acknowledged(at(200), at(100), PACKET, Some(number), Duration::from_millis(100));
        }
        sender.on_acknowledgement_end(at(200), Bytes::ZERO, true);
        sender.answer().window
    };
    let sent = |bytes: Bytes| {
        let mut sender = slow_start();
        (1..=8).for_each(|number| sender.on_sent(at(100), bytes, number));
        sender
    };
    // 8 packets in a window of 10, and nothing more to send: the window was never in use.
    assert_eq!(acknowledge_all(&mut sent(PACKET)), PACKET * 10);
    // The host says that the window stopped it, because it counts packets that it does not report.
    let mut stopped = sent(PACKET);
    stopped.on_window_full();
    assert_eq!(acknowledge_all(&mut stopped), PACKET * 18);
    // 8 times 1400 bytes leave no room for another 1200 in 12,000.
    assert_eq!(acknowledge_all(&mut sent(Bytes::new(1400))), PACKET * 18);
}

#[test]
fn packets_that_are_never_acknowledged_are_not_remembered_for_ever() {
    let mut sender = slow_start();
    // The only one that elicits an acknowledgement, and then 100,000 that hold acknowledgements, 40 bytes each.
    sender.on_sent(at(100), PACKET, 1);
    for number in 2..100_000 {
        sender.on_sent(at(100 + number / 100), Bytes::new(40), number);
        sender.bound_memory();
    }
    // 1024 + 2 * 10
    assert_eq!(sender.packets_remembered(), 1044);
    // It is still known, and the controller responds to its loss.
    sender.on_packet_lost(at(1_200), PACKET, LostPlace::SentAt(at(100)));
    sender.on_loss(at(1_200), false);
    assert_eq!(sender.answer().window, PACKET * 7);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Sent { bytes: u64, skipped: u64 },
    Acknowledged { back: u64, count: u64, app_limited: bool },
    Unknown { number: u64 },
    Lost { back: u64, count: u64, persistent: bool },
    Marked,
    Spurious,
    PacketSize(u64),
    Time { millis: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1..1500u64, 0..3u64).prop_map(|(bytes, skipped)| Event::Sent { bytes, skipped }),
        6 => (0..40u64, 1..20u64, any::<bool>())
            .prop_map(|(back, count, app_limited)| Event::Acknowledged { back, count, app_limited }),
        1 => any::<u64>().prop_map(|number| Event::Unknown { number }),
        2 => (0..40u64, 1..20u64, prop::bool::weighted(0.1))
            .prop_map(|(back, count, persistent)| Event::Lost { back, count, persistent }),
        1 => Just(Event::Marked),
        1 => Just(Event::Spurious),
        1 => (1200..9000u64).prop_map(Event::PacketSize),
        6 => (0..400u64).prop_map(|millis| Event::Time { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_sequence_of_events_breaks_any_pair(
        events in prop::collection::vec(event(), 1..300),
        hint in 1..100_000u64,
        waiting in any::<u64>(),
    ) {
        for startup in StartupConfig::defaults() {
            for avoidance in AvoidanceConfig::defaults() {
                if ControllerConfig::validate_pair(&startup, &avoidance).is_err() {
                    continue;
                }
                let path = PathKnowledge {
                    hint: Some(Hint { bandwidth: Rate::from_mbit(hint), technology: AccessTechnology::Lte }),
                    bytes_waiting: Some(Bytes::new(waiting)),
                    requested_rate: Some(Rate::from_mbit(hint)),
                    ..PathKnowledge::default()
                };
                let mut sender = sender(startup.clone(), avoidance, path);
                let (mut now, mut number) = (Timestamp::ZERO, 0);
                let smoothed = Duration::from_millis(hint);
                let mut left: Vec<(Timestamp, u64, Bytes)> = Vec::new();
                for event in &events {
                    match *event {
                        Event::Sent { bytes, skipped } => {
                            number += skipped;
                            sender.on_sent(now, Bytes::new(bytes), number);
                            left.push((now, number, Bytes::new(bytes)));
                            number += 1;
                        }
                        Event::Acknowledged { back, count, app_limited } => {
                            let end = left.len().saturating_sub(back as usize);
                            let start = end.saturating_sub(count as usize);
                            for (time, number, bytes) in left.drain(start..end) {
                                sender.on_acknowledged(now, time, bytes, Some(number), smoothed);
                            }
                            let in_flight = left.iter().fold(Bytes::ZERO, |sum, packet| sum + packet.2);
                            sender.on_acknowledgement_end(now, in_flight, app_limited);
                        }
                        Event::Unknown { number } => {
                            sender.on_acknowledged(now, now, PACKET, Some(number), smoothed);
                            sender.on_packet_lost(now, PACKET, LostPlace::Number(number));
                        }
                        Event::Lost { back, count, persistent } => {
                            let end = left.len().saturating_sub(back as usize);
                            let start = end.saturating_sub(count as usize);
                            for (_, number, bytes) in left.drain(start..end) {
                                sender.on_packet_lost(now, bytes, LostPlace::Number(number));
                            }
                            sender.on_loss(now, persistent);
                        }
                        Event::Marked => sender.on_ecn(now),
                        Event::Spurious => sender.on_spurious_loss(),
                        Event::PacketSize(size) => sender.on_packet_size(Bytes::new(size)),
                        Event::Time { millis } => now += Duration::from_millis(millis),
                    }
                    prop_assert!(sender.answer().window >= PACKET, "{startup:?}: {:?}", sender.answer().window);
                    prop_assert!(sender.answer().pacing_rate > Rate::from_bits_per_sec(0), "{startup:?}");
                }
                let status = sender.flow.status();
                prop_assert!(status.startup_lost <= status.lost.min(status.startup_sent));
            }
        }
    }
}

/// A sender whose client delayed its handshake to `handshake` milliseconds, with a hint of 10 Mbit/s, after a flight of
/// which the first 10 packets are acknowledged 100 ms after they left, by two frames.
fn lied_to(handshake: u64, doubts: bool) -> (Sender, Bytes) {
    let hint = Hint { bandwidth: Rate::from_mbit(10), technology: AccessTechnology::Unknown };
    after_a_flight("blitzstart", Some(hint), handshake, doubts)
}

/// The same for any scheme, with a hint, or else an earlier connection that had 500 KB in 100 ms.
fn after_a_flight(scheme: &str, hint: Option<Hint>, handshake: u64, doubts: bool) -> (Sender, Bytes) {
    let saved = SavedPath { rtt: Duration::from_millis(100), cwnd: Bytes::new(500_000), age: Duration::ZERO };
    let startup = StartupConfig::defaults().into_iter().find(|config| config.name() == scheme).unwrap();
    let waiting = Some(Bytes::new(50_000_000));
    let saved = hint.is_none().then_some(saved);
    let path = PathKnowledge { hint, saved, bytes_waiting: waiting, ..Default::default() };
    let mut sender = sender(startup, AvoidanceConfig::defaults().swap_remove(1), path);
    if doubts {
        sender.flow.doubt_handshake();
    }
    sender.on_sent(at(0), PACKET, 0);
    sender.on_acknowledged(at(handshake), at(0), PACKET, Some(0), INITIAL_RTT);
    sender.on_acknowledgement_end(at(handshake), Bytes::ZERO, true);
    let launched = sender.answer().window;
    for number in 1..=20 {
        sender.on_sent(at(handshake), PACKET, number);
    }
    // The host tells the smoothed RTT of a sample with the next frame.
    let smoothed = [Duration::from_millis(handshake), Duration::from_micros(handshake * 875 + 12_500)];
    for (numbers, smoothed, left) in [(1..=9, smoothed[0], 11), (10..=10, smoothed[1], 10)] {
        for number in numbers {
            sender.on_acknowledged(at(handshake + 100), at(handshake), PACKET, Some(number), smoothed);
        }
        sender.on_acknowledgement_end(at(handshake + 100), PACKET * left, false);
    }
    (sender, launched)
}

#[test]
fn a_client_that_delays_its_handshake_gains_no_window() {
    // 10 Mbit/s for 3 s are 3.75 MB, for 100 ms 125 KB; 12 KB were delivered since the launch.
    let (mut doubting, launched) = lied_to(3000, true);
    assert_eq!(launched, Bytes::new(3_750_000));
    let answer = doubting.answer();
    assert!(answer.window <= Bytes::new(125_000 + 12_000), "{}", answer.window);
    assert!(answer.window > Bytes::new(100_000), "{}", answer.window);
    assert!(answer.pacing_rate <= Rate::from_mbit(10), "{}", answer.pacing_rate);
    let (mut believing, _) = lied_to(3000, false);
    assert!(believing.answer().window >= Bytes::new(3_750_000));
    // Who does not lie loses nothing.
    let (mut honest, launched) = lied_to(100, true);
    assert_eq!(launched, Bytes::new(125_000));
    assert!(honest.answer().window >= launched, "{}", honest.answer().window);
}

#[test]
fn what_is_launched_on_a_clients_word_leaves_no_faster_than_its_cap_until_it_is_acknowledged() {
    let rate = Rate::from_mbit(10);
    let hint = Some(Hint { bandwidth: rate, technology: AccessTechnology::Unknown });
    let after_handshake = |path: PathKnowledge, scheme: &str| {
        let startup = StartupConfig::defaults().into_iter().find(|config| config.name() == scheme).unwrap();
        let path = PathKnowledge { bytes_waiting: Some(Bytes::new(50_000_000)), ..path };
        let mut sender = sender(startup, AvoidanceConfig::defaults().swap_remove(1), path);
        sender.flow.doubt_handshake();
        sender.flow.cap_launch(rate);
        sender.flow.cap_launch(Rate::from_mbit(20));
        sender.on_sent(at(0), PACKET, 0);
        sender.on_acknowledged(at(100), at(0), PACKET, Some(0), INITIAL_RTT);
        sender.on_acknowledgement_end(at(100), Bytes::ZERO, true);
        sender
    };
    let mut sender = after_handshake(PathKnowledge { hint, ..Default::default() }, "blitzstart");
    assert_eq!((sender.answer().pacing_rate, sender.flow.status().launch_rate), (rate, Some(rate)));
    // 125 KB were launched. When they have arrived, the host's own rule counts.
    for number in 1..=125_000 / PACKET.get() + 1 {
        sender.on_sent(at(100), PACKET, number);
    }
    for number in 1..=125_000 / PACKET.get() + 1 {
        sender.on_acknowledged(at(200), at(100), PACKET, Some(number), Duration::from_millis(100));
    }
    sender.on_acknowledgement_end(at(200), Bytes::ZERO, false);
    assert!(sender.answer().pacing_rate > rate, "{}", sender.answer().pacing_rate);
    // What the server measured itself is no client's word.
    let saved = SavedPath { rtt: Duration::from_millis(100), cwnd: Bytes::new(500_000), age: Duration::ZERO };
    let knows = PathKnowledge { saved: Some(saved), ..Default::default() };
    assert!(after_handshake(knows, "more-start").answer().pacing_rate > rate);
}

#[test]
fn a_launch_no_larger_than_the_initial_window_is_held_to_its_cap_too() {
    let cap = Rate::from_mbit(1);
    let hint = Some(Hint { bandwidth: cap, technology: AccessTechnology::Unknown });
    let launched = |scheme: &str, rtt, is_capped: bool| {
        let startup = StartupConfig::defaults().into_iter().find(|config| config.name() == scheme).unwrap();
        let path = PathKnowledge { hint, bytes_waiting: Some(Bytes::new(50_000_000)), ..Default::default() };
        let mut sender = sender(startup, AvoidanceConfig::defaults().swap_remove(1), path);
        sender.flow.doubt_handshake();
        if is_capped {
            sender.flow.cap_launch(cap);
        }
        sender.on_sent(at(0), PACKET, 0);
        sender.on_acknowledged(at(rtt), at(0), PACKET, Some(0), INITIAL_RTT);
        sender.on_acknowledgement_end(at(rtt), Bytes::ZERO, true);
        let answer = sender.answer();
        (answer.window, answer.pacing_rate)
    };
    for scheme in ["blitzstart", "more-start", "plumb"] {
        for rtt in [1, 10] {
            let [(free, _), (window, paced)] = [false, true].map(|is_capped| launched(scheme, rtt, is_capped));
            assert!(paced <= cap, "{scheme} over {rtt} ms: {paced}");
            assert_eq!(window, free, "{scheme} over {rtt} ms");
        }
    }
}

/// A request that came with a client's first packets is answered before there is a sample of the RTT.
#[test]
fn an_early_answer_is_launched_by_what_an_earlier_connection_saved() {
    // 10 Mbit/s for 100 ms.
    let saved = SavedPath { rtt: Duration::from_millis(100), cwnd: Bytes::new(125_000), age: Duration::ZERO };
    let answered = |scheme: &str, saved, is_early: bool| {
        let startup = StartupConfig::defaults().into_iter().find(|config| config.name() == scheme).unwrap();
        let mut sender = sender(startup, AvoidanceConfig::defaults().swap_remove(1), PathKnowledge::default());
        sender.flow.learn(|path| path.saved = saved);
        sender.flow.doubt_handshake();
        if is_early {
            sender.flow.launch_early();
        }
        sender.flow.expect(Bytes::new(50_000_000), PACKET);
        let answer = sender.answer();
        (answer.window, answer.pacing_rate, sender.flow.status().launch.is_some())
    };
    let initial = PACKET * 10;
    assert_eq!(answered("more-start", Some(saved), true), (initial * 5, Rate::from_mbit(10), true));
    assert!(!answered("more-start", Some(saved), false).2, "nobody said that it is early");
    assert!(!answered("more-start", None, true).2, "there is no RTT");
    // A hint that makes the launch together with what was saved is held to its cap from the first packet on.
    let hint = Some(Hint { bandwidth: Rate::from_mbit(10), technology: AccessTechnology::Unknown });
    let startup = StartupConfig::defaults().into_iter().find(|config| config.name() == "blitzstart").unwrap();
    let path = PathKnowledge { hint, saved: Some(saved), ..PathKnowledge::default() };
    let mut hinted = sender(startup, AvoidanceConfig::defaults().swap_remove(1), path);
    hinted.flow.doubt_handshake();
    hinted.flow.cap_launch(Rate::from_mbit(10));
    hinted.flow.launch_early();
    hinted.flow.expect(Bytes::new(50_000_000), PACKET);
    assert_eq!((hinted.answer().window, hinted.answer().pacing_rate), (initial * 5, Rate::from_mbit(10)));
    // When as much has arrived, the client is there, and the launch counts.
    for number in 0..50 {
        hinted.on_sent(at(0), PACKET, number);
    }
    hinted.on_acknowledged(at(100), at(0), PACKET, Some(0), INITIAL_RTT);
    hinted.on_acknowledgement_end(at(100), PACKET * 49, false);
    assert_eq!(hinted.answer().window, initial * 5 + PACKET);
    for number in 1..50 {
        hinted.on_acknowledged(at(100), at(0), PACKET, Some(number), Duration::from_millis(100));
    }
    hinted.on_acknowledgement_end(at(100), Bytes::ZERO, false);
    assert!(hinted.answer().window >= Bytes::new(125_000), "{}", hinted.answer().window);
    // What validates first, or needs more than that, waits for the sample.
    for scheme in ["careful-resume", "slow-start", "quick-start"] {
        let (window, _, has_launched) = answered(scheme, Some(saved), true);
        assert_eq!((window, has_launched), (initial, false), "{scheme}");
    }
}

#[test]
fn a_launch_that_believes_nobody_is_not_doubted() {
    for scheme in ["rapid-start", "suss", "jump-start"] {
        for handshake in [100, 3000] {
            let answer = |doubts| {
                let (mut sender, launched) = after_a_flight(scheme, None, handshake, doubts);
                let answer = sender.answer();
                (launched, answer.window, answer.pacing_rate)
            };
            assert_eq!(answer(true), answer(false), "{scheme}, {handshake} ms");
        }
    }
}

#[test]
fn a_window_of_an_earlier_connection_is_jumped_to_although_the_handshake_is_doubted() {
    // The jump comes after the first RTT, to half of the 500 KB. A sample is shorter than the handshake.
    for doubts in [false, true] {
        let (mut sender, launched) = after_a_flight("careful-resume", None, 120, doubts);
        assert_eq!(launched, PACKET * 10);
        let window = sender.answer().window;
        assert!(window >= Bytes::new(250_000), "{window} after a jump, doubts: {doubts}");
    }
}
