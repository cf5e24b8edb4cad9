//! Worked examples of PIE, step by step as in RFC 8033, appendix A.

use alloc::vec::Vec;

use super::*;
use crate::aqm::{EcnCodepoint, QueueLimit};

const PACKETS: Bytes = Bytes::new(30_000);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + ms(millis)
}

/// The law with this probability and these delays, without a burst allowance.
fn law(config: Config, drop_prob: f64, current: Duration, old: Duration) -> Law {
    let mut law = Law::new(config);
    law.vars = Vars { drop_prob, current_qdelay: current, qdelay_old: old, ..law.vars };
    law.burst_state = BurstState::InBurst;
    law
}

/// The probability after an update with these delays.
fn updated(config: Config, drop_prob: f64, current: Duration, old: Duration) -> f64 {
    let mut law = law(config, drop_prob, current, old);
    law.update(PACKETS);
    assert_eq!(law.vars.qdelay_old, law.vars.current_qdelay);
    law.vars.drop_prob
}

#[test]
fn each_step_of_auto_tuning() {
    // The delay is 35 ms and was 25 ms: 0.125 (0.035 - 0.015) + 1.25 (0.035 - 0.025) = 0.0025 + 0.0125 = 0.015.
    for (before, divisor) in [
        (0.0, 2048.0),
        (0.000_000_9, 2048.0),
        (0.000_001, 512.0),
        (0.000_009, 512.0),
        (0.000_01, 128.0),
        (0.000_09, 128.0),
        (0.000_1, 32.0),
        (0.000_9, 32.0),
        (0.001, 8.0),
        (0.009, 8.0),
        (0.01, 2.0),
        (0.09, 2.0),
        (0.1, 1.0),
        (0.9, 1.0),
    ] {
        let after = updated(Config::default(), before, ms(35), ms(25));
        assert!((after - (before + 0.015 / divisor)).abs() < 1e-12, "from {before}: {after}");
    }
}

#[test]
fn each_step_of_the_auto_tuning_of_ns2() {
    let config = || Config { rules: Rules::Ns2, ..Config::default() };
    for (before, factor) in [(0.0, 1.0 / 32.0), (0.001, 1.0 / 8.0), (0.01, 0.5), (1.0, 8.0), (10.0, 32.0)] {
        let added = if before >= 0.1 { f64::min(0.015 * factor, 0.02) } else { 0.015 * factor };
        let after = updated(config(), before, ms(35), ms(25));
        assert!((after - (before + added)).abs() < 1e-12, "from {before}: {after}");
    }
    // Downwards nothing is limited: 0.125 x 0 + 1.25 (15 - 25 ms) = -0.0125, doubled between 0.1 and 1.
    assert!((updated(config(), 0.5, ms(15), ms(25)) - 0.475).abs() < 1e-12);
    // Beyond 200 ms: 0.125 x 0.195 + 1.25 x 0.01 = 0.036875, / 2 at a probability of 0.05, and 0.02.
    assert!((updated(config(), 0.05, ms(210), ms(200)) - (0.05 + 0.018_437_5 + 0.02)).abs() < 1e-12);
}

#[test]
fn the_probability_stays_between_0_and_1() {
    // 0.125 x 9.985 + 1.25 x 10 = 13.7 is more than 1; -0.001875 - 12.5 is less than 0.
    assert_eq!(updated(Config::default(), 0.9, ms(10_000), ms(0)), 1.0);
    assert_eq!(updated(Config::default(), 0.9, ms(0), ms(10_000)), 0.0);
}

#[test]
fn the_probability_decays_when_there_is_no_delay() {
    // 0.125 x -0.015 = -0.001875 at 0.5; then 2 % less: (0.5 - 0.001875) x 0.98 = 0.4881625.
    assert!((updated(Config::default(), 0.5, ms(0), ms(0)) - 0.488_162_5).abs() < 1e-12);
    // With a delay of 1 ms there is no decay: 0.125 x -0.014 = -0.00175.
    assert!((updated(Config::default(), 0.5, ms(1), ms(1)) - 0.498_25).abs() < 1e-12);
}

/// How many of 1000 packets pass, are marked or dropped, and dropped.
fn decisions(mut law: Law, waiting: Bytes, size: u32) -> (u32, u32, u32) {
    let mut rng = Substream::new(1, "queue", 0);
    let mut counts = (0, 0, 0);
    for _ in 0..1000 {
        match law.on_arrival(waiting, size, &mut rng) {
            Decision::Pass => counts.0 += 1,
            Decision::Signal => counts.1 += 1,
            Decision::Drop => counts.2 += 1,
        }
    }
    counts
}

#[test]
fn safeguards_protect_short_queues() {
    let config = Config::default;
    // Not above two packets of 1500 bytes, even at probability 1.
    assert_eq!(decisions(law(config(), 1.0, ms(50), ms(50)), Bytes::new(3000), 1500), (1000, 0, 0));
    assert_eq!(decisions(law(config(), 1.0, ms(50), ms(50)), Bytes::new(3001), 1500), (0, 0, 1000));
    // Not below a probability of 0.2 while the old delay is below half of 15 ms.
    assert_eq!(decisions(law(config(), 0.19, ms(50), ms(7)), PACKETS, 1500), (1000, 0, 0));
    assert_eq!(decisions(law(config(), 1.0, ms(50), ms(7)), PACKETS, 1500), (0, 0, 1000));
}

#[test]
fn marks_end_at_their_threshold() {
    // At 5 % about 50 of 1000 are signalled by marks (standard deviation 7), at 15 % about 150 (11) by drops.
    let (_, marked, dropped) = decisions(law(Config::default(), 0.05, ms(20), ms(20)), PACKETS, 1500);
    assert!((25..75).contains(&marked) && dropped == 0, "{marked} {dropped}");
    let (_, marked, dropped) = decisions(law(Config::default(), 0.15, ms(20), ms(20)), PACKETS, 1500);
    assert!((110..190).contains(&dropped) && marked == 0, "{marked} {dropped}");
}

#[test]
fn byte_mode_scales_with_the_size() {
    let config = Config { byte_mode: true, mean_packet: Bytes::new(1000), mark_ecnth: 0.0, ..Config::default() };
    // 40 % x 1.5 = 60 % of full packets (standard deviation 15), 40 % x 0.1 = 4 % of those of 100 bytes (6).
    let (_, _, dropped) = decisions(law(config.clone(), 0.4, ms(20), ms(20)), PACKETS, 1500);
    assert!((550..650).contains(&dropped), "{dropped}");
    let (_, _, dropped) = decisions(law(config, 0.4, ms(20), ms(20)), PACKETS, 100);
    assert!((15..65).contains(&dropped), "{dropped}");
}

#[test]
fn marks_end_by_the_probability_before_it_is_scaled_with_the_size() {
    // 15 % x 100 / 1500 = 1 % of the packets of 100 bytes are signalled (standard deviation 3), by drops, as 15 % is
    // beyond 10 %; 8 % x 1500 / 500 = 24 % of full packets (14) by marks.
    let config = |mean| Config { byte_mode: true, mean_packet: Bytes::new(mean), ..Config::default() };
    let (_, marked, dropped) = decisions(law(config(1500), 0.15, ms(20), ms(20)), PACKETS, 100);
    assert!((1..25).contains(&dropped) && marked == 0, "{marked} {dropped}");
    let (_, marked, dropped) = decisions(law(config(500), 0.08, ms(20), ms(20)), PACKETS, 1500);
    assert!((170..310).contains(&marked) && dropped == 0, "{marked} {dropped}");
}

/// The law with derandomization at this probability, in the middle of congestion.
fn derandomized(drop_prob: f64) -> Law {
    law(Config { derandomization: true, mark_ecnth: 0.0, ..Config::default() }, drop_prob, ms(20), ms(20))
}

#[test]
fn derandomization_adds_probabilities_up_between_its_bounds() {
    // 1/16 of each packet: 13/16 = 0.8125 are less than 0.85, 14/16 = 0.875 are more. Up to there no random number is
    // drawn.
    let mut law = derandomized(0.0625);
    let (mut rng, untouched) = (Substream::new(1, "queue", 0), Substream::new(1, "queue", 0));
    for packets in 1..=13 {
        assert_eq!(law.on_arrival(PACKETS, 1500, &mut rng), Decision::Pass);
        assert_eq!(law.vars.accu_prob, f64::from(packets) / 16.0);
    }
    assert_eq!(rng.clone().next_u64(), untouched.clone().next_u64());
    let expected = untouched.clone().uniform() < 0.0625;
    assert_eq!(law.on_arrival(PACKETS, 1500, &mut rng) == Decision::Drop, expected);
    assert_ne!(rng.clone().next_u64(), untouched.clone().next_u64());
    // 8.4375 + 1/16 = 8.5: a signal without a random number, and the sum begins anew. 8.375 + 1/16 is decided at
    // random.
    law.vars.accu_prob = 8.4375;
    let before = rng.clone().next_u64();
    assert_eq!(law.on_arrival(PACKETS, 1500, &mut rng), Decision::Drop);
    assert_eq!((rng.clone().next_u64(), law.vars.accu_prob), (before, 0.0));
    law.vars.accu_prob = 8.375;
    law.on_arrival(PACKETS, 1500, &mut rng);
    assert_ne!(rng.clone().next_u64(), before);
    // A packet that does not fit is a drop as well; a probability of zero leaves nothing; safeguards come before.
    law.vars.accu_prob = 0.5;
    law.on_full();
    assert_eq!(law.vars.accu_prob, 0.0);
    law.vars = Vars { accu_prob: 0.5, drop_prob: 0.0, ..law.vars };
    law.on_arrival(PACKETS, 1500, &mut rng);
    assert_eq!(law.vars.accu_prob, 0.0);
    law.vars = Vars { accu_prob: 8.6, drop_prob: 0.5, ..law.vars };
    assert_eq!(law.on_arrival(Bytes::new(3000), 1500, &mut rng), Decision::Pass);
    assert_eq!(law.vars.accu_prob, 8.6);
}

#[test]
fn derandomization_with_a_fixed_sum_as_in_the_tests_of_ns3() {
    // `pie-queue-disc-test-suite.cc`, tests 13 and 14: with -0.16 before each packet none is dropped at any probability
    // up to 1, as the sum is 0.84 at most; with 8.6 each is at a probability of 0.001 if more than two packets wait.
    let mut rng = Substream::new(1, "queue", 0);
    for drop_prob in [0.001, 0.5, 1.0] {
        let mut law = derandomized(drop_prob);
        for _ in 0..400 {
            law.vars.accu_prob = -0.16;
            assert_eq!(law.on_arrival(PACKETS, 1000, &mut rng), Decision::Pass);
        }
    }
    let mut law = derandomized(0.001);
    law.config.mean_packet = Bytes::new(1000);
    for _ in 0..400 {
        law.vars.accu_prob = 8.6;
        assert_eq!(law.on_arrival(Bytes::new(2000), 1000, &mut rng), Decision::Pass);
        law.vars.accu_prob = 8.6;
        assert_eq!(law.on_arrival(Bytes::new(2001), 1000, &mut rng), Decision::Drop);
    }
}

#[test]
fn derandomized_signals_are_neither_close_nor_far_apart() {
    let mut law = derandomized(0.0625);
    let mut rng = Substream::new(5, "queue", 0);
    let (mut distances, mut distance) = (Vec::new(), 0);
    for _ in 0..100_000 {
        distance += 1;
        if law.on_arrival(PACKETS, 1500, &mut rng) == Decision::Drop {
            distances.push(distance);
            distance = 0;
        }
    }
    // 0.85 x 16 = 13.6 and 8.5 x 16 = 136. On average 13 packets before the lower bound and 1 / p = 16 from there, with
    // a standard deviation of 16 / sqrt(3400) = 0.27: 1.85 / p but for the fraction.
    assert!(distances.iter().all(|packets| (14..=136).contains(packets)));
    let mean = f64::from(distances.iter().sum::<u32>()) / distances.len() as f64;
    assert!((mean - 29.0).abs() < 1.4, "{mean}");
}

#[test]
fn a_capped_correction_adds_at_most_two_percent_beyond_ten() {
    let config = || Config { cap_drop_adjustment: true, ..Config::default() };
    // 0.125 (0.045 - 0.015) + 1.25 (0.045 - 0.025) = 0.00375 + 0.025 = 0.02875, halved below 0.1; downwards there is no
    // cap: 0.125 x -0.005 + 1.25 x -0.04 = -0.050625.
    for (before, current, old, after) in
        [(0.5, 45, 25, 0.52), (0.1, 45, 25, 0.12), (0.09, 45, 25, 0.104_375), (0.5, 10, 50, 0.449_375)]
    {
        assert!((updated(config(), before, ms(current), ms(old)) - after).abs() < 1e-12, "from {before}");
    }
    assert!((updated(Config::default(), 0.5, ms(45), ms(25)) - 0.528_75).abs() < 1e-12);
}

#[test]
fn a_burst_passes_for_150_ms_after_quiet_times() {
    let mut law = Law::new(Config::default());
    let mut rng = Substream::new(1, "queue", 0);
    assert_eq!(law.on_arrival(Bytes::ZERO, 1500, &mut rng), Decision::Pass);
    assert_eq!(law.vars.burst_allowance, ms(150));
    // The delay jumps to 100 ms. Ten updates of 15 ms use the allowance up.
    for update in 1..=10 {
        law.on_departure(at(15 * update), 1500, ms(100), PACKETS);
        law.update(PACKETS);
        law.vars.drop_prob = 1.0;
        let expected = if update < 10 { Decision::Pass } else { Decision::Drop };
        assert_eq!(law.on_arrival(PACKETS, 1500, &mut rng), expected, "after update {update}");
    }
    // It is renewed when the probability is 0 and both delays are below 7.5 ms.
    law.vars = Vars { drop_prob: 0.0, current_qdelay: ms(7), qdelay_old: ms(8), ..law.vars };
    law.on_arrival(PACKETS, 1500, &mut rng);
    assert_eq!(law.vars.burst_allowance, Duration::ZERO);
    law.vars.qdelay_old = ms(7);
    law.on_arrival(PACKETS, 1500, &mut rng);
    assert_eq!(law.vars.burst_allowance, ms(150));
}

#[test]
fn ns2_renews_the_burst_allowance_after_a_second_and_a_half_of_quiet() {
    let config = Config { rules: Rules::Ns2, t_update: ms(30), max_burst: ms(100), ..Config::default() };
    let mut law = Law::new(config);
    let mut rng = Substream::new(1, "queue", 0);
    law.on_arrival(Bytes::ZERO, 1500, &mut rng);
    assert_eq!(law.vars.burst_allowance, ms(100));
    // 100 ms last for four updates of 30 ms; the fourth is the first quiet one. 1.5 s / 30 ms = 50 more do not renew
    // it, the 51st does.
    let mut states = Vec::new();
    for _ in 0..55 {
        law.update(Bytes::ZERO);
        states.push(law.burst_state);
    }
    assert_eq!(states[2], BurstState::InBurstProtecting);
    assert_eq!(states[3], BurstState::InBurst);
    assert_eq!(states[53], BurstState::InBurst);
    assert_eq!(states[54], BurstState::NoBurst);
}

#[test]
fn the_departure_rate_estimator_sleeps_on_short_queues() {
    // 1 Mbit/s, 10 packets of 1500 bytes wait: 120 ms of delay, eight times the reference. They are less than 16 KiB,
    // so the rate is never measured, and PIE believes in no delay. Timestamps show it.
    for (estimator, expected) in [(Estimator::Timestamps, ms(120)), (Estimator::DepartureRate, Duration::ZERO)] {
        let mut law = Law::new(Config { estimator, ..Config::default() });
        for index in 0..100 {
            law.on_departure(at(12 * index), 1500, ms(120), Bytes::new(15_000));
        }
        law.update(Bytes::new(15_000));
        assert_eq!(law.vars.current_qdelay, expected);
        assert_eq!(law.vars.drop_prob > 0.0, estimator == Estimator::Timestamps);
    }
}

#[test]
fn the_departure_rate_estimator_turns_length_into_delay() {
    let config = Config { estimator: Estimator::DepartureRate, dq_threshold: Bytes::new(15_000), ..Config::default() };
    let mut law = Law::new(config);
    // 10 Mbit/s: a packet every 1.2 ms. Ten packets after the first make 15,000 bytes in 12 ms, 1,250,000 bytes/s.
    for index in 0..=10 {
        law.on_departure(Timestamp::from_nanos(index * 1_200_000), 1500, ms(1), PACKETS);
    }
    law.update(PACKETS);
    assert_eq!(law.vars.current_qdelay, ms(24));
}

#[test]
fn updates_pause_on_an_idle_link_and_keep_their_grid() {
    let mut queue = Pie::new(Config::default(), QueueLimit::default().into());
    let mut rng = Substream::new(1, "queue", 0);
    let mut dropped = Vec::new();
    assert_eq!(queue.next_timer(), Timestamp::NEVER);
    let packet = QueuedPacket { handle: 0, size: 1500, flow: 0, ecn: EcnCodepoint::NotEct, enqueued_at: at(31) };
    let mut context = QueueContext { now: at(31), in_service: None, rng: &mut rng, dropped: &mut dropped };
    queue.enqueue(packet, &mut context);
    // The third multiple of 15 ms.
    assert_eq!(queue.next_timer(), at(45));
    assert!(queue.dequeue(&mut context).is_some());
    context.now = at(45);
    queue.on_timer(&mut context);
    assert_eq!(queue.next_timer(), Timestamp::NEVER);
}

#[test]
fn a_probability_keeps_the_timer_until_it_has_decayed() {
    let mut queue = Pie::new(Config::default(), QueueLimit::default().into());
    queue.law = law(Config::default(), 0.5, ms(20), ms(20));
    queue.law.vars.current_qdelay = Duration::ZERO;
    queue.next_update = at(15);
    let mut rng = Substream::new(1, "queue", 0);
    let mut dropped = Vec::new();
    let mut updates = 0;
    while queue.next_timer() != Timestamp::NEVER {
        let now = queue.next_timer();
        queue.on_timer(&mut QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped });
        updates += 1;
        assert!(updates < 1000, "an idle link must not cost events for ever");
    }
    assert_eq!(queue.law.vars.drop_prob, 0.0);
    assert!(updates > 10);
}

#[test]
fn a_probability_ends_without_alpha_too() {
    for rules in [Rules::Rfc8033, Rules::Ns2] {
        let mut law = Law::new(Config { alpha: 0.0, rules, ..Config::default() });
        law.vars.drop_prob = 1.0;
        // 0.98^n is below the smallest normal number, 2.2e-308, after ln(2.2e-308) / ln(0.98) = 35,065 updates.
        (0..35_060).for_each(|_| law.update(Bytes::ZERO));
        assert!(law.vars().drop_prob > 0.0 && !law.rests(), "{rules:?}");
        (0..10).for_each(|_| law.update(Bytes::ZERO));
        assert!(law.vars().drop_prob == 0.0 && law.rests(), "{rules:?}");
    }
}
