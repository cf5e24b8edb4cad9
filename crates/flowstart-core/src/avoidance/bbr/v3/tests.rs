//! Worked examples.

use super::*;
use crate::test_support::acked;
use crate::time::Duration;

const SEGMENT: u64 = 1000;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + MS(millis)
}

fn sampled_rtt(millis: u64) -> RttEstimator {
    let mut rtt = RttEstimator::new(MS(333));
    rtt.update(Timestamp::ZERO, MS(millis), Duration::ZERO);
    rtt
}

/// BBR after a launch of ten segments over 100 ms.
fn launched(launch: Launch) -> Model {
    let mut bbr = Model::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
    bbr.on_launch(Timestamp::ZERO, &launch, &sampled_rtt(100));
    bbr
}

fn plain() -> Model {
    launched(Launch::window(Bytes::new(10 * SEGMENT)))
}

/// A sample of `rate` that begins a round when `new_round`.
fn sample(bbr: &Model, mbit: u64, new_round: bool) -> RateSample {
    let total = bbr.delivered + Bytes::new(SEGMENT);
    RateSample {
        total_delivered: total,
        prior_delivered: if new_round { bbr.delivered } else { Bytes::ZERO },
        delivered: Rate::from_mbit(mbit).amount_in(MS(100)),
        interval: MS(100),
        rate: Some(Rate::from_mbit(mbit)),
        app_limited: false,
        newly_acked: Bytes::new(SEGMENT),
        newly_lost: Bytes::ZERO,
        lost: Bytes::ZERO,
        tx_in_flight: Bytes::new(100 * SEGMENT),
    }
}

/// An acknowledgement with this sample and `in_flight` segments left.
fn acknowledge(bbr: &mut Model, millis: u64, rs: RateSample, in_flight: u64) {
    let mut ack = acked(at(millis), SEGMENT);
    ack.sample = Some(rs);
    ack.rtt = Some(MS(100));
    ack.in_flight = Bytes::new(in_flight * SEGMENT);
    let window = Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX };
    bbr.on_ack(&ack, window, &sampled_rtt(100));
}

fn new_round(bbr: &mut Model, millis: u64, mbit: u64, in_flight: u64) {
    let rs = sample(bbr, mbit, true);
    acknowledge(bbr, millis, rs, in_flight);
}

fn phases(bbr: &mut Model) -> alloc::vec::Vec<&'static str> {
    core::iter::from_fn(|| bbr.take_phase()).map(|(phase, _)| phase).collect()
}

/// In `ProbeBW_CRUISE` at 8 Mbit/s and 100 ms, a bandwidth-delay product of 100 segments, with a window of 200.
fn cruising() -> Model {
    let mut bbr = plain();
    for round in 1..=4 {
        new_round(&mut bbr, 100 * round, 8, 200);
    }
    new_round(&mut bbr, 500, 8, 90);
    phases(&mut bbr);
    assert_eq!(bbr.state, State::ProbeBwCruise);
    bbr.cwnd = Bytes::new(200 * SEGMENT);
    bbr
}

fn lost(bbr: &Model, place: u64, lost: u64, tx_in_flight: u64) -> LostPacket {
    LostPacket {
        now: at(1000),
        bytes: Bytes::new(SEGMENT),
        start: place,
        end: place + 1,
        tx_in_flight: Bytes::new(tx_in_flight * SEGMENT),
        lost: Bytes::new(lost * SEGMENT),
        delivered: bbr.delivered,
        app_limited: false,
    }
}

#[test]
fn the_plain_launch_is_paced_at_the_startup_gain() {
    // InitPacingRate: 10,000 bytes / 100 ms = 800 kbit/s; times 2.77 = 2.216 Mbit/s.
    assert_eq!(plain().pacing_rate(), Some(Rate::from_bits_per_sec(2_216_000)));
}

#[test]
fn a_launch_that_knows_the_path_is_paced_at_its_own_rate() {
    let rate = Some(Rate::from_mbit(12));
    let mut bbr = launched(Launch { pacing_rate: rate, ..Launch::window(Bytes::new(100_000)) });
    assert_eq!(bbr.pacing_rate(), rate);
    // The first sample is one packet in a round trip; until the launch window is delivered the window grows by what is
    // acknowledged, and the rate stays: 2.77 * 0.99 * 1 Mbit/s < 12 Mbit/s.
    new_round(&mut bbr, 100, 1, 99);
    assert_eq!((bbr.cwnd, bbr.pacing_rate()), (Bytes::new(101_000), rate));
    // The path has 8 Mbit/s: 2.77 * 0.99 * 8 = 21.9384 Mbit/s.
    new_round(&mut bbr, 200, 8, 99);
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(21_938_400)));
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_of_growth() {
    let mut bbr = plain();
    // 8 is the baseline, 9.9 < 1.25 * 8 = 10 counts as no growth: rounds 2, 3 and 4.
    new_round(&mut bbr, 100, 8, 200);
    new_round(&mut bbr, 200, 9, 200);
    new_round(&mut bbr, 300, 9, 200);
    assert!(bbr.is_starting());
    new_round(&mut bbr, 400, 9, 200);
    assert!(!bbr.is_starting());
    assert_eq!(phases(&mut bbr), ["Startup", "Drain"]);
    assert_eq!(bbr.take_exit(), Some(ExitReason::Chokepoint));
    // DRAIN: 0.5 * 0.99 * 9 Mbit/s = 4.455 Mbit/s.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(4_455_000)));
}

#[test]
fn growth_starts_the_count_again_and_limited_samples_do_not_count() {
    let mut bbr = plain();
    for (round, mbit) in [8, 9, 9, 10, 10, 10].into_iter().enumerate() {
        new_round(&mut bbr, 100 * (round as u64 + 1), mbit, 200);
    }
    // 10 = 1.25 * 8 in round 4 is the new baseline; two rounds since.
    assert!(bbr.is_starting());
    let limited = RateSample { app_limited: true, ..sample(&bbr, 10, true) };
    acknowledge(&mut bbr, 700, limited, 200);
    assert!(bbr.is_starting());
    new_round(&mut bbr, 800, 10, 200);
    assert!(!bbr.is_starting());
}

#[test]
fn drain_ends_at_the_bandwidth_delay_product_or_after_three_rounds() {
    let mut bbr = plain();
    for round in 1..=4 {
        new_round(&mut bbr, 100 * round, 8, 200);
    }
    assert_eq!(bbr.state, State::Drain);
    // 8 Mbit/s * 100 ms = 100 segments. 101 are too many for DRAIN, 100 are not, and CRUISE follows in the same moment.
    let mut patient = bbr.clone();
    new_round(&mut bbr, 500, 8, 101);
    assert_eq!(bbr.state, State::Drain);
    new_round(&mut bbr, 600, 8, 100);
    assert_eq!(phases(&mut bbr), ["Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE"]);
    // Drain began in round 4: round 8 is the first beyond 4 + 3.
    for round in 5..=7 {
        new_round(&mut patient, 100 * round, 8, 150);
        assert_eq!(patient.state, State::Drain);
    }
    new_round(&mut patient, 800, 8, 150);
    assert_eq!(patient.state, State::ProbeBwDown);
}

#[test]
fn loss_in_six_places_ends_startup_when_more_than_two_percent_are_lost() {
    for (ranges, of_hundred, expected) in [(6, 3, true), (5, 3, false), (6, 2, false)] {
        let mut bbr = plain();
        new_round(&mut bbr, 100, 8, 100);
        for place in 0..ranges {
            bbr.on_packet_lost(&lost(&bbr, 10 * place, place + 1, 100));
        }
        bbr.on_congestion(Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX });
        // The round of the losses is over when a packet that was sent after the first of them arrives.
        let mut rs = sample(&bbr, 16, true);
        rs.lost = Bytes::new(of_hundred * SEGMENT);
        acknowledge(&mut bbr, 200, rs, 100);
        assert_eq!(!bbr.is_starting(), expected, "{ranges} ranges, {of_hundred} %");
        if expected {
            assert_eq!(bbr.take_exit(), Some(ExitReason::Loss));
            // max(bdp, inflight_latest): 16 Mbit/s * 100 ms = 200,000 bytes.
            assert_eq!(bbr.inflight_longterm, Bytes::new(200_000));
        }
    }
}

#[test]
fn neighbouring_losses_are_one_range() {
    let mut bbr = plain();
    new_round(&mut bbr, 100, 8, 100);
    for place in 0..20 {
        bbr.on_packet_lost(&lost(&bbr, place, place + 1, 100));
    }
    bbr.on_congestion(Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX });
    let rs = RateSample { lost: Bytes::new(20 * SEGMENT), ..sample(&bbr, 16, true) };
    acknowledge(&mut bbr, 200, rs, 100);
    assert!(bbr.is_starting());
}

#[test]
fn a_round_with_loss_while_cruising_bounds_rate_and_window_for_the_cycle() {
    let mut bbr = cruising();
    let cwnd = bbr.cwnd;
    // What the last round delivered before the loss: 8 Mbit/s.
    bbr.latest.reset();
    bbr.on_packet_lost(&lost(&bbr, 1, 1, 100));
    new_round(&mut bbr, 600, 4, 90);
    // bw_shortterm = max(4, 0.7 * 8) = 5.6 Mbit/s; inflight_shortterm = max(50,000, 0.7 * cwnd).
    assert_eq!(bbr.bw_shortterm, Rate::from_bits_per_sec(5_600_000));
    assert_eq!(bbr.inflight_shortterm, Bytes::new(50_000).max(cwnd.scale(0.7)));
    assert_eq!(bbr.bw, Rate::from_bits_per_sec(5_600_000));
    // REFILL forgets it.
    bbr.probing_is_due();
    new_round(&mut bbr, 700, 4, 90);
    assert_eq!((bbr.state, bbr.bw), (State::ProbeBwRefill, Rate::from_mbit(8)));
}

#[test]
fn after_refill_comes_up_and_too_much_loss_sets_the_long_term_bound() {
    let mut bbr = cruising();
    bbr.probing_is_due();
    new_round(&mut bbr, 600, 8, 90);
    new_round(&mut bbr, 700, 8, 100);
    assert_eq!(phases(&mut bbr), ["ProbeBW_REFILL", "ProbeBW_UP"]);
    // UP: 1.25 * 0.99 * 8 = 9.9 Mbit/s.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(9_900_000)));
    // 2 lost of 120 are tolerated, 3 are not: inflight_prev = 119, lost_prev = 2,
    // lost_prefix = (0.02 * 119 - 2) / 0.98 = 0.3878 segments, so that the bound is 119.388 segments.
    bbr.on_packet_lost(&lost(&bbr, 1, 2, 120));
    assert_eq!(bbr.state, State::ProbeBwUp);
    bbr.on_packet_lost(&lost(&bbr, 3, 3, 120));
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::ProbeBwDown, Bytes::new(119_387)));
    // InflightWithHeadroom: 119,387 - 0.15 * 119,387 = 119,387 - 17,908 = 101,479.
    assert_eq!(bbr.inflight_with_headroom(), Bytes::new(101_479));
}

#[test]
fn a_bound_that_is_reached_rises_by_one_two_four_segments_per_round() {
    let mut bbr = cruising();
    bbr.inflight_longterm = Bytes::new(100 * SEGMENT);
    bbr.probing_is_due();
    new_round(&mut bbr, 600, 8, 90);
    new_round(&mut bbr, 700, 8, 99);
    assert_eq!((bbr.state, bbr.cwnd), (State::ProbeBwUp, Bytes::new(100 * SEGMENT)));
    let full = |bbr: &mut Model| {
        let (now, cwnd) = (at(700), bbr.cwnd);
        let sent = Sent { now, bytes: Bytes::new(SEGMENT), in_flight: cwnd, position: 0, app_limited: false };
        bbr.on_sent(&sent);
    };
    // A window of acknowledgements without the start of a round: one segment.
    for _ in 0..100 {
        full(&mut bbr);
        let rs = sample(&bbr, 8, false);
        acknowledge(&mut bbr, 750, rs, 99);
    }
    assert_eq!(bbr.inflight_longterm, Bytes::new(101 * SEGMENT));
    // In the next round half a window (50 segments and a half) is enough for each.
    full(&mut bbr);
    new_round(&mut bbr, 800, 8, 99);
    for _ in 0..101 {
        full(&mut bbr);
        let rs = sample(&bbr, 8, false);
        acknowledge(&mut bbr, 850, rs, 99);
    }
    assert_eq!(bbr.inflight_longterm, Bytes::new(103 * SEGMENT));
}

#[test]
fn the_wait_between_probes_is_two_to_three_seconds_and_repeats_with_the_seed() {
    let wait = |seed, millis| {
        let mut bbr = cruising();
        bbr.config.seed = seed;
        bbr.start_probe_bw_down(at(millis), "test");
        bbr.probe_wait()
    };
    assert!((0..100).all(|millis| (MS(2000)..MS(3000)).contains(&wait(0, millis))));
    assert_eq!(wait(7, 1), wait(7, 1));
    assert_ne!(wait(7, 1), wait(8, 1));
}

#[test]
fn without_a_new_smallest_rtt_for_five_seconds_little_stays_in_flight_for_200_ms() {
    let mut bbr = cruising();
    let cwnd = bbr.cwnd;
    new_round(&mut bbr, 5_001, 8, 90);
    assert_eq!(bbr.state, State::ProbeRtt);
    // Half of the bandwidth-delay product of 100 segments.
    assert_eq!(bbr.cwnd, Bytes::new(50 * SEGMENT));
    new_round(&mut bbr, 5_050, 8, 50);
    new_round(&mut bbr, 5_150, 4, 50);
    assert_eq!(bbr.state, State::ProbeRtt);
    // 5050 + 200 ms are over, and so is a round.
    new_round(&mut bbr, 5_251, 4, 50);
    assert_eq!(bbr.state, State::ProbeBwCruise);
    assert!(bbr.cwnd >= cwnd, "{:?} {cwnd:?}", bbr.cwnd);
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(8));
}

#[test]
fn the_bandwidth_is_the_largest_of_two_cycles() {
    let mut bbr = cruising();
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(8));
    bbr.max_bw.advance();
    new_round(&mut bbr, 600, 5, 90);
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(8));
    bbr.max_bw.advance();
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(5));
    // A cycle without samples forgets nothing.
    bbr.max_bw.advance();
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(5));
}

#[test]
fn acknowledgements_in_bunches_add_their_excess_for_ten_rounds() {
    let mut aggregation = Aggregation::default();
    let mut rounds = Rounds::default();
    rounds.count = 20;
    let bw = Rate::from_mbit(8);
    // 8 Mbit/s for 10 ms are 10,000 bytes; 30,000 bytes arrive after 10,000 in one bunch: 10,000 + 30,000 - 10,000.
    aggregation.update(at(0), Bytes::new(10_000), bw, Bytes::MAX, &rounds, true);
    aggregation.update(at(9), Bytes::new(30_000), bw, Bytes::MAX, &rounds, true);
    assert_eq!(aggregation.extra_acked(), Bytes::new(31_000));
    rounds.count = 30;
    aggregation.update(at(1000), Bytes::new(1_000), bw, Bytes::MAX, &rounds, true);
    assert_eq!(aggregation.extra_acked(), Bytes::new(31_000));
    rounds.count = 31;
    aggregation.update(at(2000), Bytes::new(1_000), bw, Bytes::MAX, &rounds, true);
    assert_eq!(aggregation.extra_acked(), Bytes::new(1_000));
}

#[test]
fn a_timeout_leaves_the_hosts_window_and_recovery_restores_it() {
    let mut bbr = cruising();
    let window = Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX };
    bbr.on_congestion(window);
    assert_eq!(bbr.on_timeout(at(600), window, Bytes::new(SEGMENT)), Bytes::new(SEGMENT));
    // MinPipeCwnd with the next acknowledgement.
    let rs = sample(&bbr, 8, false);
    acknowledge(&mut bbr, 700, rs, 1);
    assert_eq!(bbr.cwnd, Bytes::new(4 * SEGMENT));
    bbr.on_recovered();
    let rs = sample(&bbr, 8, false);
    acknowledge(&mut bbr, 800, rs, 1);
    // The previous window plus the acknowledged amount.
    assert_eq!(bbr.cwnd, window.cwnd + Bytes::new(SEGMENT));
}

#[test]
fn a_mark_ends_startup() {
    let mut bbr = plain();
    let mark = Ecn { now: at(100), position: 1, in_flight: Bytes::new(SEGMENT), packets: 1 };
    // Nothing is known yet.
    bbr.on_mark(&mark);
    assert!(bbr.is_starting());
    new_round(&mut bbr, 100, 8, 200);
    bbr.on_mark(&mark);
    assert_eq!((bbr.state, bbr.take_exit()), (State::Drain, Some(ExitReason::Ecn)));
}

#[test]
fn sending_after_idling_is_paced_at_the_bandwidth() {
    let mut bbr = cruising();
    bbr.state = State::ProbeBwUp;
    bbr.set_pacing_rate(1.25);
    let (bytes, now) = (Bytes::new(SEGMENT), at(3000));
    bbr.on_sent(&Sent { now, bytes, in_flight: bytes, position: 9, app_limited: true });
    // 0.99 * 8 Mbit/s.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(7_920_000)));
}
