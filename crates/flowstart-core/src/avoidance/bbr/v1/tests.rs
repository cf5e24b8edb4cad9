//! Worked examples.

use super::*;
use crate::avoidance::bbr::Version;
use crate::test_support::acked;

const SEGMENT: u64 = 1000;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO + MS(millis)
}

fn segments(count: u64) -> Bytes {
    Bytes::new(count * SEGMENT)
}

fn sampled_rtt(millis: u64) -> RttEstimator {
    let mut rtt = RttEstimator::new(MS(333));
    rtt.update(Timestamp::ZERO, MS(millis), Duration::ZERO);
    rtt
}

fn new() -> Model {
    let config = Config { version: Version::One, ..Config::default() };
    Model::new(config, SegmentSize(Bytes::new(SEGMENT)))
}

/// BBR after a launch over 100 ms.
fn launched(launch: &Launch) -> Model {
    let mut bbr = new();
    bbr.on_launch(Timestamp::ZERO, launch, &sampled_rtt(100));
    bbr
}

fn plain() -> Model {
    launched(&Launch::window(segments(10)))
}

/// A sample of `mbit` over 100 ms, of one packet that begins a round when `new_round`.
fn sample(bbr: &Model, mbit: u64, new_round: bool) -> RateSample {
    RateSample {
        total_delivered: bbr.delivered + segments(1),
        prior_delivered: if new_round { bbr.delivered } else { Bytes::ZERO },
        delivered: Rate::from_mbit(mbit).amount_in(MS(100)),
        interval: MS(100),
        rate: Some(Rate::from_mbit(mbit)),
        app_limited: false,
        newly_acked: segments(1),
        newly_lost: Bytes::ZERO,
        lost: Bytes::ZERO,
        tx_in_flight: segments(100),
    }
}

/// A sample as [`sample`], of `acked` segments and with `newly_lost` declared lost.
fn larger_sample(bbr: &mut Model, acked: u64, newly_lost: u64, new_round: bool) -> RateSample {
    for place in 0..newly_lost {
        bbr.on_packet_lost(&LostPacket {
            now: Timestamp::ZERO,
            bytes: segments(1),
            start: place,
            end: place + 1,
            tx_in_flight: segments(100),
            lost: segments(place + 1),
            delivered: bbr.delivered,
            app_limited: false,
        });
    }
    RateSample {
        total_delivered: bbr.delivered + segments(acked),
        newly_acked: segments(acked),
        newly_lost: segments(newly_lost),
        ..sample(bbr, 8, new_round)
    }
}

/// An acknowledgement with this sample and RTT, and `in_flight` segments before and after it.
fn acknowledge_with_rtt(bbr: &mut Model, millis: u64, rs: RateSample, in_flight: u64, rtt: u64) {
    let mut ack = acked(at(millis), SEGMENT);
    ack.sample = Some(rs);
    ack.rtt = Some(MS(rtt));
    (ack.in_flight_before, ack.in_flight) = (segments(in_flight), segments(in_flight));
    let window = Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX };
    bbr.on_ack(&ack, window, &sampled_rtt(100));
}

fn acknowledge(bbr: &mut Model, millis: u64, rs: RateSample, in_flight: u64) {
    acknowledge_with_rtt(bbr, millis, rs, in_flight, 100);
}

fn new_round(bbr: &mut Model, millis: u64, mbit: u64, in_flight: u64) {
    let rs = sample(bbr, mbit, true);
    acknowledge(bbr, millis, rs, in_flight);
}

fn phases(bbr: &mut Model) -> alloc::vec::Vec<&'static str> {
    core::iter::from_fn(|| bbr.take_phase()).map(|(phase, _)| phase).collect()
}

/// In `ProbeBW` at 8 Mbit/s and 100 ms, a bandwidth-delay product of 100 segments, with a window of 200 at the
/// beginning of the phase `index`.
fn probing(index: usize) -> Model {
    let mut bbr = plain();
    for round in 1..=4 {
        new_round(&mut bbr, 100 * round, 8, 200);
    }
    new_round(&mut bbr, 500, 8, 90);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    phases(&mut bbr);
    bbr.cycle.index = index;
    bbr.cwnd = segments(200);
    bbr.update_gains();
    bbr.set_pacing_rate(bbr.pacing_gain);
    bbr
}

#[test]
fn the_plain_launch_is_paced_at_2_89_times_its_window_per_rtt() {
    // 10,000 bytes / 100 ms = 800 kbit/s; * 739 / 256 * 0.99 = 2,286,281.25 bit/s.
    assert_eq!(plain().pacing_rate(), Some(Rate::from_bits_per_sec(2_286_281)));
}

#[test]
fn without_an_rtt_a_millisecond_is_assumed_until_the_first_sample() {
    let mut bbr = new();
    bbr.on_launch(Timestamp::ZERO, &Launch::window(segments(10)), &RttEstimator::new(MS(333)));
    // 10,000 bytes / 1 ms = 80 Mbit/s; * 739 / 256 * 0.99.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(228_628_125)));
    new_round(&mut bbr, 100, 1, 9);
    // 10,000 bytes / 100 ms = 800 kbit/s, and the sample's 1 Mbit/s is more: * 739 / 256 = 2,886,718; * 0.99 =
    // 2,857,850.8.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(2_857_850)));
}

#[test]
fn a_launch_that_knows_the_path_is_paced_at_its_own_rate() {
    let rate = Some(Rate::from_mbit(12));
    let mut bbr = launched(&Launch { pacing_rate: rate, ..Launch::window(segments(100)) });
    assert_eq!(bbr.pacing_rate(), rate);
    // 2.8867 * 0.99 * 1 Mbit/s < 12 Mbit/s.
    new_round(&mut bbr, 100, 1, 99);
    assert_eq!(bbr.pacing_rate(), rate);
    // The path has 8 Mbit/s: 8 * 739 / 256 * 0.99 = 22.8628125 Mbit/s.
    new_round(&mut bbr, 200, 8, 99);
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(22_862_812)));
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_of_growth_and_not_because_of_loss() {
    let mut bbr = plain();
    new_round(&mut bbr, 100, 8, 200);
    for round in 2..=3 {
        // 9 < 1.25 * 8 = 10.
        let rs = RateSample { rate: Some(Rate::from_mbit(9)), ..larger_sample(&mut bbr, 1, 50, true) };
        acknowledge(&mut bbr, 100 * round, rs, 200);
        assert!(bbr.is_starting());
    }
    new_round(&mut bbr, 400, 9, 200);
    assert!(!bbr.is_starting());
    assert_eq!(phases(&mut bbr), ["Startup", "Drain"]);
    assert_eq!(bbr.take_exit(), Some(ExitReason::Chokepoint));
    // DRAIN: 9 Mbit/s * 88 / 256 * 0.99 = 3.0628125 Mbit/s.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(3_062_812)));
}

#[test]
fn growth_starts_the_count_again_and_limited_samples_do_not_count() {
    let mut bbr = plain();
    for (round, mbit) in [8, 9, 9, 10, 10, 10].into_iter().enumerate() {
        new_round(&mut bbr, 100 * (round as u64 + 1), mbit, 200);
    }
    // 10 = 1.25 * 8 in round 4 is the new baseline; two rounds since.
    assert!(bbr.is_starting());
    let limited = RateSample { app_limited: true, ..sample(&bbr, 9, true) };
    acknowledge(&mut bbr, 700, limited, 200);
    assert!(bbr.is_starting());
    new_round(&mut bbr, 800, 10, 200);
    assert!(!bbr.is_starting());
}

#[test]
fn the_window_of_startup_is_2_89_bandwidth_delay_products_and_three_bursts() {
    let mut bbr = plain();
    bbr.delivered = segments(10);
    // 24 Mbit/s * 100 ms = 300 segments; * 739 / 256 = 866.02, rounded up to 867. Paced at 24 * 739 / 256 * 0.99 =
    // 68.588 Mbit/s = 8,573,554 bytes/s a burst has 8,573,554 / 1024 = 8,372 bytes, 8 segments. 867 + 3 * 8 = 891,
    // even: 892.
    bbr.cwnd = segments(891);
    new_round(&mut bbr, 100, 24, 800);
    assert_eq!(bbr.cwnd, segments(892));
    // That is enough.
    new_round(&mut bbr, 200, 24, 800);
    assert_eq!(bbr.cwnd, segments(892));
}

#[test]
fn slow_paths_send_one_segment_at_a_time() {
    let mut bbr = plain();
    let goal = |bbr: &mut Model, rate| {
        bbr.pacing_rate = Rate::from_bits_per_sec(rate);
        bbr.tso_segs_goal()
    };
    assert_eq!((goal(&mut bbr, 1_199_999), goal(&mut bbr, 1_200_000)), (1, 2));
    // 65,215 bytes hold 65 segments of 1000.
    assert_eq!(goal(&mut bbr, 10_000_000_000), 65);
}

#[test]
fn drain_ends_when_what_is_in_the_network_at_the_next_departure_fits_the_path() {
    let mut bbr = plain();
    for round in 1..=4 {
        new_round(&mut bbr, 100 * round, 8, 200);
    }
    assert_eq!(bbr.mode, Mode::Drain);
    // Paced at 8 * 88 / 256 * 0.99 = 2.7225 Mbit/s a burst has two segments (332 bytes in 1/1024 s, but at least 2):
    // 100 + 3 * 2 = 106 segments.
    let mut waiting = bbr.clone();
    new_round(&mut bbr, 500, 8, 107);
    assert_eq!(bbr.mode, Mode::Drain);
    new_round(&mut bbr, 600, 8, 106);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    // A packet that leaves at 500 ms holds the next one back by 8000 bit / 2.7225 Mbit/s = 2.938 ms, in which 8 Mbit/s
    // deliver 2,938 bytes: of 108 segments in flight 105.06 are left then.
    let sent = Sent { now: at(500), bytes: segments(1), in_flight: segments(109), position: 0, app_limited: false };
    waiting.on_sent(&sent);
    new_round(&mut waiting, 500, 8, 108);
    assert_eq!(waiting.mode, Mode::ProbeBw);
}

#[test]
fn the_gain_cycle_probes_drains_and_cruises() {
    let mut bbr = probing(0);
    // Phase 0: 1.25 * 8 * 0.99 = 9.9 Mbit/s, until 1.25 times the path is in flight: 125 + 3 * 2 = 131, even 132, and 2
    // more. The next burst of two counts as in flight.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(9_900_000)));
    new_round(&mut bbr, 600, 8, 132);
    assert_eq!(bbr.cycle.index, 0, "an RTT is not over");
    new_round(&mut bbr, 601, 8, 131);
    assert_eq!(bbr.cycle.index, 0, "not enough is in flight");
    new_round(&mut bbr, 602, 8, 132);
    assert_eq!((bbr.cycle.index, bbr.pacing_rate()), (1, Some(Rate::from_bits_per_sec(5_940_000))));
    // Phase 1 ends before an RTT is over when the queue is empty: 100 + 3 * 2.
    new_round(&mut bbr, 603, 8, 107);
    assert_eq!(bbr.cycle.index, 1);
    new_round(&mut bbr, 604, 8, 106);
    assert_eq!((bbr.cycle.index, bbr.pacing_rate()), (2, Some(Rate::from_bits_per_sec(7_920_000))));
    // Six phases of an RTT each.
    for phase in 3..=8 {
        let now = 604 + 101 * (phase - 2);
        new_round(&mut bbr, now - 1, 8, 50);
        assert_eq!(bbr.cycle.index as u64, phase - 1);
        new_round(&mut bbr, now, 8, 50);
        assert_eq!(bbr.cycle.index as u64, phase % 8);
    }
}

#[test]
fn a_probe_does_not_persist_when_packets_are_lost() {
    let mut bbr = probing(0);
    let rs = larger_sample(&mut bbr, 1, 1, true);
    acknowledge(&mut bbr, 601, rs, 50);
    assert_eq!(bbr.cycle.index, 1);
}

#[test]
fn the_cycle_begins_with_any_phase_but_the_one_that_drains_and_repeats_with_the_seed() {
    let first = |seed, millis| {
        let mut bbr = probing(0);
        bbr.config.seed = seed;
        bbr.reset_probe_bw_mode(at(millis), "test");
        bbr.cycle.index
    };
    let mut seen = [0; 8];
    (0..700).for_each(|millis| seen[first(0, millis)] += 1);
    // 700 draws of 7 phases: 100 each with a standard deviation of 9.
    assert!(seen.iter().enumerate().all(|(index, &count)| (60..140).contains(&count) || index == 1), "{seen:?}");
    assert_eq!(seen[1], 0);
    assert_eq!(first(7, 1), first(7, 1));
    assert!((0..20).any(|millis| first(7, millis) != first(8, millis)));
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_rounds_and_limited_samples_only_raise_it() {
    let mut bbr = probing(2);
    // Round 5 was the last with 8 Mbit/s.
    for round in 6..=15 {
        new_round(&mut bbr, 500 + round, 5, 90);
        assert_eq!(bbr.max_bw, Rate::from_mbit(8), "round {round}");
    }
    let limited = RateSample { app_limited: true, ..sample(&bbr, 4, true) };
    acknowledge(&mut bbr, 600, limited, 90);
    assert_eq!(bbr.max_bw, Rate::from_mbit(8));
    new_round(&mut bbr, 601, 5, 90);
    assert_eq!(bbr.max_bw, Rate::from_mbit(5));
    let limited = RateSample { app_limited: true, ..sample(&bbr, 6, true) };
    acknowledge(&mut bbr, 602, limited, 90);
    assert_eq!(bbr.max_bw, Rate::from_mbit(6));
}

#[test]
fn a_sample_that_is_not_reliable_begins_no_round() {
    let mut bbr = plain();
    let rs = RateSample { rate: None, ..sample(&bbr, 8, true) };
    acknowledge(&mut bbr, 100, rs, 9);
    assert_eq!((bbr.rounds.count, bbr.max_bw), (0, Rate::ZERO));
    // But its data counts.
    assert_eq!(bbr.cwnd, segments(11));
}

#[test]
fn recovery_conserves_packets_for_a_round_then_grows_and_restores_the_window() {
    let mut bbr = probing(2);
    let window = Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX };
    let begins = larger_sample(&mut bbr, 1, 20, false);
    assert_eq!(bbr.on_congestion(window), segments(200));
    // 150 in flight after an acknowledgement of one: the window is 150 + 1.
    acknowledge(&mut bbr, 550, begins, 150);
    assert_eq!(bbr.cwnd, segments(151));
    // Two more are lost: 151 - 2 is more than the 140 + 1 that fly and are acknowledged.
    let rs = larger_sample(&mut bbr, 1, 2, false);
    acknowledge(&mut bbr, 551, rs, 140);
    assert_eq!(bbr.cwnd, segments(149));
    // A packet that was sent in recovery arrives: from now on the window grows by the delivered amount.
    new_round(&mut bbr, 650, 8, 149);
    assert_eq!(bbr.cwnd, segments(150));
    // After recovery it is what it was, and grows: 200 + 1; the target is 2 * 100 + 3 * 2 and what comes in bunches.
    bbr.on_recovered();
    new_round(&mut bbr, 660, 8, 149);
    assert_eq!(bbr.cwnd, segments(201));
}

#[test]
fn while_every_round_loses_something_recovery_goes_on_and_conserves_nothing_more() {
    let mut bbr = probing(2);
    let begins = larger_sample(&mut bbr, 1, 20, false);
    bbr.on_congestion(Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX });
    acknowledge(&mut bbr, 550, begins, 150);
    assert_eq!(bbr.cwnd, segments(151));
    // The host's recovery ends with a packet that was sent before the second loss was found, and begins again.
    bbr.on_recovered();
    let rs = larger_sample(&mut bbr, 1, 1, true);
    let rs = RateSample { prior_delivered: rs.prior_delivered - Bytes::new(1), ..rs };
    acknowledge(&mut bbr, 650, rs, 100);
    assert_eq!(bbr.cwnd, segments(150), "neither restored nor conserved: 151 - 1");
    bbr.on_congestion(Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX });
    new_round(&mut bbr, 660, 8, 100);
    assert_eq!(bbr.cwnd, segments(151), "it grows by what is delivered");
}

#[test]
fn a_timeout_leaves_the_hosts_window_which_grows_and_is_restored() {
    let mut bbr = probing(2);
    let window = Window { cwnd: bbr.cwnd, ssthresh: Bytes::MAX };
    bbr.on_congestion(window);
    assert_eq!(bbr.on_timeout(at(600), window, segments(1)), segments(1));
    // At least four with the next acknowledgement, whatever is in flight: packets are not conserved.
    let rs = sample(&bbr, 8, false);
    acknowledge(&mut bbr, 700, rs, 50);
    assert_eq!(bbr.cwnd, segments(4));
    bbr.on_recovered();
    new_round(&mut bbr, 800, 8, 1);
    assert_eq!(bbr.cwnd, segments(201));
}

#[test]
fn after_ten_seconds_without_a_smaller_rtt_four_packets_stay_in_flight_for_200_ms() {
    let mut bbr = probing(2);
    let acknowledge_round = |bbr: &mut Model, millis, mbit, in_flight| {
        let rs = sample(bbr, mbit, true);
        acknowledge_with_rtt(bbr, millis, rs, in_flight, 120);
    };
    // The last sample of 100 ms came at 500 ms.
    acknowledge_round(&mut bbr, 10_500, 8, 90);
    assert_eq!((bbr.mode, bbr.min_rtt.get()), (Mode::ProbeBw, Some(MS(100))));
    let cwnd = bbr.cwnd;
    acknowledge_round(&mut bbr, 10_501, 8, 90);
    assert_eq!((bbr.mode, bbr.cwnd, bbr.min_rtt.get()), (Mode::ProbeRtt, segments(4), Some(MS(120))));
    // Five in flight are too many to begin with, four are not.
    acknowledge_round(&mut bbr, 10_550, 8, 5);
    acknowledge_round(&mut bbr, 10_600, 4, 4);
    acknowledge_round(&mut bbr, 10_800, 4, 4);
    assert_eq!(bbr.mode, Mode::ProbeRtt, "200 ms are not over");
    acknowledge_round(&mut bbr, 10_801, 4, 4);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    assert!(bbr.cwnd >= cwnd, "{:?} {cwnd:?}", bbr.cwnd);
    // The samples of four packets do not lower the bandwidth.
    assert_eq!(bbr.max_bw, Rate::from_mbit(8));
}

#[test]
fn a_probe_rtt_keeps_the_larger_window_that_was_saved_before() {
    for (saved, kept) in [(500, 500), (3, 201)] {
        let mut bbr = probing(2);
        (bbr.cwnd, bbr.prior_cwnd) = (segments(201), segments(saved));
        let rs = sample(&bbr, 8, true);
        acknowledge_with_rtt(&mut bbr, 10_501, rs, 90, 120);
        assert_eq!((bbr.mode, bbr.prior_cwnd), (Mode::ProbeRtt, segments(kept)));
    }
}

#[test]
fn a_probe_rtt_that_idle_time_ends_gives_the_window_back_with_the_next_acknowledgement() {
    let mut bbr = probing(2);
    let rs = sample(&bbr, 8, true);
    acknowledge_with_rtt(&mut bbr, 10_501, rs, 4, 120);
    assert_eq!((bbr.mode, bbr.cwnd), (Mode::ProbeRtt, segments(4)));
    let (now, bytes) = (at(10_702), segments(1));
    bbr.on_sent(&Sent { now, bytes, in_flight: bytes, position: 9, app_limited: true });
    assert_eq!(bbr.mode, Mode::ProbeBw);
    // The host still has four.
    bbr.cwnd = segments(4);
    new_round(&mut bbr, 10_802, 8, 0);
    assert!(bbr.cwnd >= segments(200), "{:?}", bbr.cwnd);
}

/// Sampling begins with a lost packet and goes on for two intervals of four rounds of 100 ms, in each of which `acked`
/// packets are delivered per round and `lost` are lost in the last.
fn two_intervals(lost: [u64; 2], acked: [u64; 2]) -> Model {
    let mut bbr = probing(2);
    let round = |bbr: &mut Model, millis, acked, lost| {
        let rs = larger_sample(bbr, acked, lost, true);
        acknowledge(bbr, millis, rs, 90);
    };
    // The round of the first loss counts as the first of the first interval, which three more complete.
    round(&mut bbr, 1000, 1, 1);
    for (millis, index) in [(1100, 0), (1200, 0), (1300, 0), (1400, 1), (1500, 1), (1600, 1), (1700, 1)] {
        assert_eq!(bbr.long_term.bw_in_use(), None);
        let lost = if millis == 1300 || millis == 1700 { lost[index] } else { 0 };
        round(&mut bbr, millis, acked[index], lost);
    }
    bbr
}

#[test]
fn a_policer_is_found_by_two_lossy_intervals_with_the_same_rate() {
    // 3 * 10 = 30 packets of 1000 bytes in 300 ms are 800 kbit/s, and 8 of 30 lost are 27 % > 19.5 %. 4 * 10 packets in
    // 400 ms are 800 kbit/s too, and 8 of 40 are 20 %.
    let mut bbr = two_intervals([8, 8], [10, 10]);
    assert_eq!(bbr.bw(), Rate::from_bits_per_sec(800_000));
    // 0.8 * 0.99.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(792_000)));
    // It is used for 48 rounds.
    for round in 1..48 {
        new_round(&mut bbr, 2000 + 100 * round, 8, 90);
    }
    assert_eq!(bbr.bw(), Rate::from_bits_per_sec(800_000));
    new_round(&mut bbr, 7000, 8, 90);
    assert_eq!(bbr.bw(), Rate::from_mbit(8));
}

#[test]
fn intervals_with_little_loss_or_different_rates_are_no_policer() {
    let policed = |lost, acked| two_intervals(lost, acked).long_term.bw_in_use().is_some();
    // 7 of 40 = 17.5 % < 19.5 %: the interval goes on.
    assert!(!policed([8, 7], [10, 10]));
    // 800 and 960 kbit/s differ by a fifth, 800 and 880 kbit/s by a tenth.
    assert!(!policed([8, 12], [10, 12]));
    assert!(policed([8, 11], [10, 11]));
}

#[test]
fn acknowledgements_in_bunches_add_their_excess_to_the_window_for_five_to_ten_rounds() {
    let mut bbr = probing(2);
    bbr.aggregation = Aggregation::default();
    bbr.aggregation.restart(at(1000));
    let bunch = |bbr: &mut Model, millis, acked, round| {
        let rs = larger_sample(bbr, acked, 0, round);
        acknowledge(bbr, millis, rs, 90);
    };
    // 8 Mbit/s for 9 ms are 9 segments; 10 and then 30 arrive: 40 - 9 = 31 too many.
    bunch(&mut bbr, 1000, 10, false);
    bunch(&mut bbr, 1009, 30, false);
    assert_eq!(bbr.ack_aggregation_cwnd(), segments(31));
    // The window of five rounds ends, and that after it: then it is forgotten.
    for round in 1..=9 {
        bunch(&mut bbr, 1100 + 100 * round, 1, true);
        assert_eq!(bbr.ack_aggregation_cwnd(), segments(31), "round {round}");
    }
    bunch(&mut bbr, 2100, 1, true);
    assert_eq!(bbr.ack_aggregation_cwnd(), segments(1));
    // At most the delivery of 100 ms.
    bunch(&mut bbr, 2101, 180, false);
    assert_eq!(bbr.ack_aggregation_cwnd(), segments(100));
}

#[test]
fn marks_are_ignored() {
    let mut bbr = plain();
    new_round(&mut bbr, 100, 8, 200);
    bbr.on_mark(&crate::event::Ecn { now: at(100), position: 1, in_flight: segments(1), packets: 1 });
    assert!(bbr.is_starting());
}

#[test]
fn sending_after_idling_is_paced_at_the_bandwidth() {
    let mut bbr = probing(0);
    let bytes = segments(1);
    bbr.on_sent(&Sent { now: at(3000), bytes, in_flight: bytes, position: 9, app_limited: true });
    // 0.99 * 8 Mbit/s.
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_bits_per_sec(7_920_000)));
    // An RTT that is too old is replaced without a ProbeRTT: the idle time has drained the queue.
    new_round(&mut bbr, 20_000, 8, 0);
    assert_eq!(bbr.mode, Mode::ProbeBw);
}
