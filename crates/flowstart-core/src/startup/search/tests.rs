//! Worked examples of the variants, and their behaviour on ideal paths.

use alloc::vec;

use super::*;
use crate::event::Loss;
use crate::startup::Increase;
use crate::startup::slow_start::tests::context;
use crate::test_support::acked;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Bins last 100 ms * 3.5 / 10 = 35 ms.
const RTT: Duration = Duration::from_millis(100);

const VARIANTS: [Variant; 4] = [Variant::Slides, Variant::Firefox, Variant::Freebsd, Variant::Linux];

/// Algorithm 1.
fn slides() -> Config {
    variant(Variant::Slides)
}

fn variant(variant: Variant) -> Config {
    Config { variant, ..Config::default() }
}

/// Algorithm 1 to the letter.
fn literal() -> Config {
    Config {
        sum: Sum::WPlusOne,
        count_current: true,
        look_back: Some(LookBack::RoundDown),
        wrap: Wrap::Literal,
        skipped_bins: Some(SkippedBins::None),
        ..slides()
    }
}

fn search(config: Config) -> Search {
    let mut scheme = Search::new(config, context(Increase::Bytes));
    scheme.initialize(Timestamp::ZERO, RTT);
    scheme
}

/// `slides` after bins 0 to `curr` - 1 counted what `bytes` says, when bin `curr` has just begun.
fn filled(config: Config, curr: u64, bytes: impl Fn(u64) -> u64) -> Search {
    let mut scheme = search(config);
    let Bins::Deltas(deltas::Bins(bin)) = &mut scheme.bins else { panic!("totals are not bins") };
    let places = bin.len() as u64;
    (0..curr).for_each(|i| bin[(i % places) as usize] = bytes(i));
    bin[(curr % places) as usize] = 0;
    scheme.curr = Some(curr);
    scheme
}

/// A variant with totals after 2000 bytes were sent and 1000 acknowledged in each bin.
fn totals(config: Config, curr: u64) -> Search {
    let mut scheme = search(config);
    let Bins::Totals(totals::Bins { sent, acked, .. }) = &mut scheme.bins else { panic!("bins are not totals") };
    let places = sent.len() as u64;
    for i in 0..=curr {
        (sent[(i % places) as usize], acked[(i % places) as usize]) = (i * 2000, i * 1000);
    }
    scheme.curr = Some(curr);
    scheme
}

impl Search {
    fn norm_diff(&self, curr: u64, rtt: Duration) -> Option<f64> {
        self.compare(curr, rtt).map(|compared| compared.norm_diff())
    }
}

fn rounded(norm_diff: Option<f64>) -> Option<f64> {
    norm_diff.map(|value| libm::round(value * 1000.0) / 1000.0)
}

#[test]
fn constant_deliveries_miss_half_of_twice_as_much() {
    // W bins that ended: (2 * 10,000 - 10,000) / (2 * 10,000) = 0.5. The other readings meet unequal numbers of
    // filled bins unless both sums leave out the bin that just began.
    let norm_diff = |sum, count_current| {
        let config = Config { sum, count_current, ..slides() };
        rounded(filled(config, 20, |_| 1000).norm_diff(20, RTT))
    };
    assert_eq!(norm_diff(Sum::W, false), Some(0.5));
    // W + 1 bins: (22,000 - 11,000) / 22,000.
    assert_eq!(norm_diff(Sum::WPlusOne, false), Some(0.5));
    // To the letter 10 filled bins meet 11: (22,000 - 10,000) / 22,000.
    assert_eq!(norm_diff(Sum::WPlusOne, true), Some(0.545));
    // 9 meet 10: (20,000 - 9000) / 20,000.
    assert_eq!(norm_diff(Sum::W, true), Some(0.55));
}

#[test]
fn the_letter_of_the_algorithm_leaves_an_unlimited_path() {
    // Deliveries double in each RTT, 2^0.35 = 1.2746 in each bin. 100 / 35 = 2.857 bins are rounded down to 2. With
    // r = 1.2746, the sum of 10 bins before curr is r^curr * (1 - r^-10) / (r - 1) = 3.320 r^curr, that of 11 bins
    // up to curr - 2 is r^(curr - 2) * (1 - r^-11) / (1 - 1 / r) = 2.660 r^curr: norm_diff = 1 - 3.320 / (2 *
    // 2.660) = 0.376 >= 0.35.
    let bytes = |i: u64| libm::round(1e6 * libm::exp2(0.35 * i as f64)) as u64;
    let norm_diff = |config: Config| rounded(filled(config, 20, bytes).norm_diff(20, RTT));
    assert_eq!(norm_diff(literal()), Some(0.376));
    // Equal numbers of filled bins: 1 - r^2 / 2 = 0.188. An older window as well: 1 - r^3 / 2 = -0.035.
    let down = Config { look_back: Some(LookBack::RoundDown), ..slides() };
    assert_eq!(norm_diff(down), Some(0.188));
    assert_eq!(norm_diff(slides()), Some(-0.035));
}

#[test]
fn an_rtt_ago_lies_between_two_bins() {
    // 100 / 35 = 2.857 bins. Bin i has 1000 * i bytes; the sum of the ten before bin e is 1000 * (10 e - 55).
    // Ten bins before curr = 20: 145,000. Two bins earlier 125,000, three 115,000, one 135,000.
    let norm_diff = |look_back| {
        let config = Config { look_back: Some(look_back), ..slides() };
        rounded(filled(config, 20, |i| 1000 * i).norm_diff(20, RTT))
    };
    // 1 - 145 / 250
    assert_eq!(norm_diff(LookBack::RoundDown), Some(0.42));
    // 1 - 145 / 230
    assert_eq!(norm_diff(LookBack::Round), Some(0.37));
    // 125 * 0.143 + 115 * 0.857 = 116.43: 1 - 145 / 232.86
    assert_eq!(norm_diff(LookBack::InterpolateOlder), Some(0.377));
    // 125 * 0.143 + 135 * 0.857 = 133.57: 1 - 145 / 267.14
    assert_eq!(norm_diff(LookBack::InterpolateNewer), Some(0.457));
}

#[test]
fn the_look_back_may_follow_the_queue_or_not() {
    // Now 205 ms: 5.86, 6 bins. Ten bins before bin 14: 85,000. 1 - 145 / 170 = 0.147.
    let norm_diff = |look_back_rtt| {
        let config = Config { look_back_rtt, ..slides() };
        rounded(filled(config, 20, |i| 1000 * i).norm_diff(20, MS(205)))
    };
    assert_eq!(norm_diff(LookBackRtt::Current), Some(0.147));
    assert_eq!(norm_diff(LookBackRtt::Initial), Some(0.37));
}

#[test]
fn the_last_extra_bin_needs_one_place_more_than_there_are() {
    // 525 ms are 15 bins: prev = 15, and the sum to the letter begins with bin 5, whose place bin 30 took.
    let norm_diff = |wrap, rtt| rounded(filled(Config { wrap, ..literal() }, 30, |_| 1000).norm_diff(30, MS(rtt)));
    // (22,000 - 10,000) / 22,000 with it, (20,000 - 10,000) / 20,000 without.
    assert_eq!(norm_diff(Wrap::Extend, 525), Some(0.545));
    assert_eq!(norm_diff(Wrap::Literal, 525), Some(0.5));
    assert_eq!(norm_diff(Wrap::Refuse, 525), None);
    // 14 bins fit, 16 are more than EXTRA_BINS.
    assert_eq!(norm_diff(Wrap::Refuse, 490), Some(0.545));
    assert_eq!(norm_diff(Wrap::Extend, 560), None);
}

#[test]
fn a_window_and_an_rtt_must_have_passed() {
    // prev = 12 - 3 = 9 < W.
    assert_eq!(filled(slides(), 12, |_| 1000).norm_diff(12, RTT), None);
    assert_eq!(rounded(filled(slides(), 13, |_| 1000).norm_diff(13, RTT)), Some(0.5));
    // An RTT of less than half a bin leaves nothing to compare with.
    assert_eq!(filled(slides(), 20, |_| 1000).norm_diff(20, MS(17)), None);
}

#[test]
fn others_compare_with_what_was_sent_as_far_back_as_they_keep_it() {
    let norm_diff = |of, rtt| rounded(totals(variant(of), 60).norm_diff(60, MS(rtt)));
    for of in [Variant::Firefox, Variant::Freebsd, Variant::Linux] {
        // Ten bins: 10,000 acknowledged, 20,000 sent.
        assert_eq!(norm_diff(of, 100), Some(0.5));
    }
    // Firefox: 14 bins are less than 15.
    assert_eq!((norm_diff(Variant::Firefox, 490), norm_diff(Variant::Firefox, 525)), (Some(0.5), None));
    // The authors: 38 bins are less than 40 - 1.
    assert_eq!((norm_diff(Variant::Linux, 1330), norm_diff(Variant::Linux, 1365)), (Some(0.5), None));
    assert_eq!((norm_diff(Variant::Freebsd, 1330), norm_diff(Variant::Freebsd, 1365)), (Some(0.5), None));
}

#[test]
fn the_first_decision_counts_all_that_was_sent_before_as_a_bin() {
    // 2.857 bins before bin 12: prev = 10. Firefox waits for a window and a bin.
    assert_eq!(totals(variant(Variant::Firefox), 12).norm_diff(12, RTT), None);
    assert_eq!(rounded(totals(variant(Variant::Firefox), 13).norm_diff(13, RTT)), Some(0.5));
    // The authors count bytes sent before bin 0 as sent in one bin before it: nothing at first.
    let first = |before: u64| {
        let mut scheme = totals(variant(Variant::Linux), 12);
        let Bins::Totals(totals::Bins { sent, .. }) = &mut scheme.bins else { panic!("bins are not totals") };
        sent.iter_mut().take(13).for_each(|total| *total += before);
        rounded(scheme.norm_diff(12, RTT))
    };
    // Sent in the ten bins before bin 10: 20,000, before bin 9 with the one before bin 0: 18,000. 20,000 * 0.143 +
    // 18,000 * 0.857 = 18,286: 1 - 10,000 / 18,286.
    assert_eq!(first(0), Some(0.453));
    // With 10,000 before: 20,000 * 0.143 + 28,000 * 0.857 = 26,857: 1 - 10,000 / 26,857.
    assert_eq!(first(10_000), Some(0.628));
}

#[test]
fn an_rtt_of_less_than_a_bin_compares_a_window_with_itself() {
    // 17.5 ms are half a bin: as much was sent in the window before, and 10,000 were acknowledged.
    assert_eq!(rounded(totals(variant(Variant::Firefox), 20).norm_diff(20, Duration::from_micros(17_500))), Some(0.5));
    let newer = Config { look_back: Some(LookBack::InterpolateNewer), ..Config::default() };
    assert_eq!(totals(newer, 20).norm_diff(20, MS(17)), None, "a newer window is not there yet");
}

#[test]
fn interpolation_looks_at_the_older_bin() {
    // Sent in bin i: 1000 * (2 i + 1), so that the total before bin i is 1000 * i^2. 2.857 bins before 20:
    // between bins 18 and 17. Sent in the ten bins before 18: 324 - 64 = 260, before 17: 289 - 49 = 240, before 19:
    // 361 - 81 = 280, in thousands. Acknowledged: 10,000 * 18 = 180,000.
    let norm_diff = |look_back| {
        let mut scheme = totals(Config { look_back, ..Config::default() }, 20);
        let Bins::Totals(totals::Bins { sent, acked, .. }) = &mut scheme.bins else { panic!("bins are not totals") };
        (0..=20).for_each(|i| (sent[i], acked[i]) = (1000 * (i * i) as u64, 18_000 * i as u64));
        rounded(scheme.norm_diff(20, RTT))
    };
    // 260 * 0.143 + 240 * 0.857 = 242.86: 1 - 180 / 242.86
    assert_eq!(norm_diff(None), Some(0.259));
    // 260 * 0.143 + 280 * 0.857 = 277.14: 1 - 180 / 277.14, which is over 0.26.
    assert_eq!(norm_diff(Some(LookBack::InterpolateNewer)), Some(0.351));
}

/// An acknowledgement at this time.
fn at(ms: u64) -> Ack {
    acked(Timestamp::ZERO + MS(ms), 1000)
}

#[test]
fn skipped_bins_are_filled_forgotten_or_ignored() {
    // Bin 20 ends at 35 ms. At 36 ms one bin has ended, at 150 ms 1 + floor(115 / 35) = 4, at 390 ms 11.
    let after = |skipped_bins, ms| {
        let mut scheme = filled(Config { skipped_bins: Some(skipped_bins), ..slides() }, 20, |_| 1000);
        (scheme.advance(&at(ms), 20, RTT), scheme)
    };
    assert_eq!(after(SkippedBins::Fill, 35).0, None);
    assert_eq!(after(SkippedBins::Fill, 36).0, Some(21));
    assert_eq!(after(SkippedBins::None, 150).0, Some(21));
    let (next, scheme) = after(SkippedBins::Fill, 150);
    assert_eq!((next, scheme.bin_end), (Some(24), Timestamp::ZERO + MS(175)));
    // Bins 14 to 19 had 1000 bytes, 20 to 23 none.
    assert_eq!(scheme.window(Count::Delivered, 24, 24), Some(6000));
    assert_eq!(after(SkippedBins::Reset, 150).0, Some(24));
    let (next, scheme) = after(SkippedBins::Reset, 390);
    assert_eq!((next, scheme.curr), (None, None));
    assert_eq!(after(SkippedBins::Fill, 390).0, Some(31));
    // A pause longer than all places leaves nothing.
    let (_, scheme) = after(SkippedBins::Fill, 100_000);
    assert!(matches!(scheme.bins, Bins::Deltas(deltas::Bins(bin)) if bin.iter().all(|&bytes| bytes == 0)));
}

#[test]
fn freebsd_begins_anew_after_two_initial_rtts_and_linux_when_the_sender_had_nothing_to_send() {
    // 100 / 35 are 2 whole bins, twice that are 4. Bin 20 ends at 35 ms: at 150 ms 1 + floor(115 / 35) = 4 have ended,
    // at 175 ms 5, at 350 ms 10, at 385 ms 11.
    let after = |ms| {
        let mut scheme = totals(variant(Variant::Freebsd), 20);
        let next = scheme.advance(&at(ms), 20, MS(200));
        (next, scheme.curr, scheme.bin_duration, scheme.bin_end)
    };
    let end = |ms: u64| Timestamp::ZERO + MS(ms);
    assert_eq!(after(150), (Some(24), Some(24), MS(35), end(175)));
    assert_eq!(after(175), (None, Some(0), MS(35), end(210)));
    assert_eq!(after(350), (None, Some(0), MS(35), end(385)));
    // More than a window: the current RTT becomes the initial one, 200 ms * 0.35 = 70 ms.
    assert_eq!(after(385), (None, Some(0), MS(70), end(455)));

    let limited = |of, ms| {
        let mut scheme = totals(variant(of), 20);
        let ack = Ack { app_limited: true, ..at(ms) };
        (scheme.advance(&ack, 20, RTT), scheme.curr)
    };
    assert_eq!(limited(Variant::Linux, 35), (None, Some(20)), "no bin has ended");
    assert_eq!(limited(Variant::Linux, 36), (None, Some(0)));
    assert_eq!(totals(variant(Variant::Linux), 20).advance(&at(420), 20, RTT), Some(32), "pauses alone do not count");
}

#[test]
fn firefox_waits_while_the_application_limits_the_sender() {
    let window = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::MAX };
    let after = |in_flight, position| {
        let mut scheme = totals(variant(Variant::Firefox), 20);
        scheme.cwnd = window.cwnd;
        let now = Timestamp::ZERO;
        let (bytes, in_flight) = (Bytes::new(1000), Bytes::new(in_flight));
        scheme.on_sent(&Sent { now, bytes, in_flight, position: 7, app_limited: false });
        let step = scheme.on_ack(&Ack { position, ..at(36) }, window, true, &RttEstimator::new(RTT));
        let Bins::Totals(bins) = &scheme.bins else { panic!("bins are not totals") };
        (scheme.curr, bins.acked_bytes, step == Step::Continue { cwnd: window.cwnd })
    };
    // Bin 20 has ended. Half of the window counts as all of it, for the packets up to that one; the bytes always count.
    assert_eq!(after(4999, 7), (Some(20), 1000, true));
    assert_eq!(after(5000, 7), (Some(21), 1000, false));
    assert_eq!(after(5000, 8), (Some(20), 1000, true));
}

#[test]
fn revisions_with_code_clear_their_bins_when_slow_start_begins_again() {
    for of in VARIANTS {
        let mut scheme = search(variant(of));
        let again = scheme.on_restart(Timestamp::ZERO + MS(500), 7);
        assert_eq!(again, of != Variant::Slides, "{of:?}");
        assert_eq!(scheme.curr.is_none(), again, "{of:?}");
    }
    // The next sample is the initial RTT. What was acknowledged before counts in the authors' code, and no more in
    // Firefox.
    for (of, acked) in [(Variant::Linux, 6000), (Variant::Freebsd, 6000), (Variant::Firefox, 1000)] {
        let mut scheme = totals(variant(of), 20);
        if let Bins::Totals(bins) = &mut scheme.bins {
            bins.acked_bytes = 5000;
        }
        scheme.on_restart(Timestamp::ZERO + MS(800), 7);
        let window = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::MAX };
        scheme.used_until = u64::MAX;
        scheme.on_ack(&Ack { rtt: Some(MS(200)), ..at(1000) }, window, true, &RttEstimator::new(RTT));
        let Bins::Totals(bins) = &scheme.bins else { panic!("bins are not totals") };
        assert_eq!((scheme.curr, scheme.bin_duration, bins.acked[0]), (Some(0), MS(70), acked), "{of:?}");
    }
}

#[test]
fn the_answers_of_the_revisions_are_theirs() {
    let of = |of: Variant| {
        let Answers { thresh, extra_bins, exit, .. } = variant(of).answers();
        (thresh, extra_bins, exit)
    };
    assert_eq!(of(Variant::Slides), (0.35, 15, Exit::Reduce));
    assert_eq!(of(Variant::Firefox), (0.26, 15, Exit::ExitOnly));
    assert_eq!(of(Variant::Freebsd), (0.26, 40, Exit::Drain));
    assert_eq!(of(Variant::Linux), (0.35, 40, Exit::Drain));
}

#[test]
fn totals_stay_what_they_were_over_skipped_bins() {
    let mut scheme = totals(Config::default(), 20);
    let Bins::Totals(bins) = &mut scheme.bins else { panic!("bins are not totals") };
    (bins.sent_bytes, bins.acked_bytes) = (41_000, 20_500);
    assert_eq!(scheme.advance(&at(150), 20, RTT), Some(24));
    // 20,500 - 14,000
    assert_eq!(scheme.window(Count::Delivered, 24, 24), Some(6500));
    // Bin 23 began with the total of bin 20.
    assert_eq!(scheme.window(Count::Delivered, 24, 23), Some(20_000 - 13_000));
}

fn exit_of(step: Step) -> Option<(Bytes, Bytes, ExitReason)> {
    match step {
        Step::Continue { .. } => None,
        Step::Exit(exit) => Some((exit.cwnd, exit.ssthresh, exit.reason)),
    }
}

#[test]
fn reduce_takes_off_what_two_initial_rtts_delivered() {
    // 200 / 35 = 5.714 bins of 10,000 bytes: 6, 5 or 5.714 of them.
    let cwnd = |look_back, cwnd| {
        let config = Config { look_back: Some(look_back), ..slides() };
        exit_of(filled(config, 20, |_| 10_000).leave(20, Bytes::new(cwnd)))
    };
    let chokepoint = |cwnd| Some((Bytes::new(cwnd), Bytes::new(cwnd), ExitReason::Chokepoint));
    assert_eq!(cwnd(LookBack::Round, 100_000), chokepoint(40_000));
    assert_eq!(cwnd(LookBack::RoundDown, 100_000), chokepoint(50_000));
    // 100,000 - 50,000 - 0.714 * 10,000
    assert_eq!(cwnd(LookBack::InterpolateOlder, 100_000), chokepoint(42_857));
    // Not below the initial window of 10,000 bytes.
    assert_eq!(cwnd(LookBack::Round, 61_000), chokepoint(10_000));
    let exit_only = Config { exit: Some(Exit::ExitOnly), ..slides() };
    let step = filled(exit_only, 20, |_| 10_000).leave(20, Bytes::new(100_000));
    assert_eq!(exit_of(step), chokepoint(100_000));
}

#[test]
fn drain_follows_the_bytes_in_flight_to_what_an_rtt_delivers() {
    // 100 / 35 are 3 bins when rounded up: target = 3 * 10,000.
    let config = Config { exit: Some(Exit::Drain), ..slides() };
    let mut scheme = filled(config, 20, |_| 10_000);
    let mut cwnd = Bytes::new(60_000);
    assert_eq!(scheme.leave(20, cwnd), Step::Continue { cwnd });
    assert_eq!(scheme.take_phase(), Some(("drain", "chokepoint")));
    let rtt = RttEstimator::new(RTT);
    let mut acknowledge = |packets: u64, in_flight: u64| {
        let mut ack = acked(Timestamp::ZERO, 1000 * packets);
        (ack.packets, ack.in_flight) = (packets, Bytes::new(in_flight));
        let step = scheme.on_ack(&ack, Window { cwnd, ssthresh: Bytes::MAX }, true, &rtt);
        if let Step::Continue { cwnd: next } = step {
            cwnd = next;
        }
        step
    };
    // Two segments allow none to be sent, the third allows one, and of seven two more with one left over.
    assert_eq!(acknowledge(2, 58_000), Step::Continue { cwnd: Bytes::new(58_000) });
    assert_eq!(acknowledge(1, 57_000), Step::Continue { cwnd: Bytes::new(58_000) });
    assert_eq!(acknowledge(7, 51_000), Step::Continue { cwnd: Bytes::new(53_000) });
    assert_eq!(acknowledge(1, 30_500), Step::Continue { cwnd: Bytes::new(30_500) });
    let target = Bytes::new(30_000);
    assert_eq!(exit_of(acknowledge(1, 29_000)), Some((target, target, ExitReason::Chokepoint)));
}

#[test]
fn loss_before_detection_ends_startup_as_in_slow_start() {
    let in_flight = Bytes::new(40_000);
    let loss =
        Loss { now: Timestamp::ZERO, bytes: Bytes::new(1000), position: 1, in_flight_before: in_flight, in_flight };
    let (reduced, window) = (Bytes::new(28_000), Window { cwnd: in_flight, ssthresh: Bytes::MAX });
    let expected = Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss };
    assert_eq!(search(slides()).on_congestion(&loss, window, reduced), Step::Exit(expected));
}

/// Steps of the fluid per base RTT.
const STEPS: usize = 500;

/// Runs SEARCH on a loss-free FIFO without a limit, as a fluid: two bytes are sent for each that is acknowledged,
/// the queue lets through at most what the capacity allows, and all else takes an RTT. The rate of acknowledgements
/// doubles smoothly in each RTT and reaches capacity after `doublings` RTTs, or never. Returns by how many RTTs
/// later SEARCH leaves slow start, with the queue in units of the bandwidth-delay product.
fn fluid(config: Config, doublings: Option<f64>, rtts: usize) -> Option<(f64, f64)> {
    let mut scheme = Search::new(config, context(Increase::Bytes));
    let mut window = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::MAX };
    let mut rtt = RttEstimator::new(RTT);
    let step = 1.0 / STEPS as f64;
    let initial_rate = 10_000.0 * core::f64::consts::LN_2;
    let capacity = doublings.map_or(f64::INFINITY, |doublings| initial_rate * libm::exp2(doublings));
    // Totals at each step since an RTT before the first acknowledgement: sent, and departed from the queue.
    let (mut sent, mut departed) = (vec![0.0], vec![0.0]);
    let mut oldest = 0;
    let mut acknowledged = 0;
    for index in 0..rtts * STEPS {
        let now = Timestamp::ZERO + RTT.scale(index as f64 * step);
        // Departures of an RTT ago are acknowledged; before that, the initial window leaves.
        let (sent_before, departed_before): (f64, f64) = (sent[index], departed[index]);
        let arrived = match index.checked_sub(STEPS) {
            None => 10_000.0 * (libm::exp2((index + 1) as f64 * step) - 1.0),
            Some(past) => sent_before + 2.0 * (departed[past + 1] - departed[past]),
        };
        sent.push(arrived);
        departed.push(arrived.min(departed_before + capacity * step));
        let bytes = Bytes::new(arrived as u64).saturating_sub(Bytes::new(sent_before as u64));
        scheme.on_sent(&Sent { now, bytes, in_flight: window.cwnd, position: index as u64, app_limited: false });
        let Some(past) = index.checked_sub(STEPS) else {
            continue;
        };
        let total = departed[past + 1] as u64;
        while sent[oldest + 1] < departed[past + 1] {
            oldest += 1;
        }
        let sample = RTT.scale((index - oldest) as f64 * step);
        rtt.update(now, sample, Duration::ZERO);
        let mut ack = acked(now, total - acknowledged);
        ack.rtt = Some(sample);
        acknowledged = total;
        match scheme.on_ack(&ack, window, true, &rtt) {
            Step::Continue { cwnd } => window.cwnd = cwnd,
            Step::Exit(_) => {
                let delay = index as f64 * step - 1.0 - doublings.unwrap_or(0.0);
                return Some((delay, (arrived - departed[index + 1]) / capacity));
            }
        }
    }
    None
}

/// Shortest and longest delay of detection over where in a bin the capacity is reached.
fn detection(config: &Config) -> (f64, f64) {
    (0..20).fold((f64::MAX, f64::MIN), |(shortest, longest), phase| {
        let (delay, queue) = fluid(config.clone(), Some(6.0 + 0.05 * f64::from(phase)), 20).expect("the path is full");
        assert!(queue > 1.0, "two are sent for each that is acknowledged");
        (shortest.min(delay), longest.max(delay))
    })
}

#[test]
fn with_a_fixed_look_back_detection_takes_two_or_three_rtts() {
    // At time x after capacity was reached, in RTTs, with growth as 2^x before it, THRESH is met at x = 2.2; a bin
    // may last 0.35 RTT longer, and 3 bins are 1.05 RTTs.
    let config = Config { look_back_rtt: LookBackRtt::Initial, exit: Some(Exit::ExitOnly), ..slides() };
    let (shortest, longest) = detection(&config);
    assert!(shortest >= 2.2 && longest <= 2.9, "{shortest} to {longest}");
    // Firefox's threshold is met at x = 1.46.
    let firefox = Config { variant: Variant::Firefox, ..config };
    let (shortest, longest) = detection(&firefox);
    assert!(shortest >= 1.4 && longest <= 1.9, "{shortest} to {longest}");
}

#[test]
fn a_look_back_that_grows_with_the_queue_detects_later() {
    let config = Config { exit: Some(Exit::ExitOnly), ..slides() };
    let (shortest, longest) = detection(&config);
    assert!(shortest >= 4.3 && longest <= 5.3, "{shortest} to {longest}");
}

#[test]
fn an_unlimited_path_is_never_full() {
    for of in VARIANTS {
        assert_eq!(fluid(variant(of), None, 30), None, "{of:?}");
    }
    assert!(fluid(literal(), None, 30).is_some(), "Algorithm 1 to the letter");
    let newer = Config { look_back: Some(LookBack::InterpolateNewer), ..Config::default() };
    assert!(fluid(newer, None, 30).is_some(), "the draft's text");
}

#[test]
fn a_whole_window_in_one_acknowledgement_does_not_look_full() {
    for of in VARIANTS {
        let mut scheme = Search::new(variant(of), context(Increase::Bytes));
        let mut window = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::MAX };
        let mut rtt = RttEstimator::new(RTT);
        for round in 1..30 {
            let now = Timestamp::ZERO + RTT * round;
            let sent = Sent {
                now: now - RTT,
                bytes: window.cwnd,
                in_flight: window.cwnd,
                position: round,
                app_limited: false,
            };
            scheme.on_sent(&sent);
            rtt.update(now, RTT, Duration::ZERO);
            let mut ack = acked(now, window.cwnd.get());
            ack.rtt = Some(RTT);
            match scheme.on_ack(&ack, window, true, &rtt) {
                Step::Continue { cwnd } => window.cwnd = cwnd,
                Step::Exit(_) => panic!("{of:?} left in round {round}"),
            }
        }
    }
}

#[test]
fn every_reading_survives_pauses_and_changing_rtts() {
    let readings = [Wrap::Extend, Wrap::Literal, Wrap::Refuse].into_iter().flat_map(|wrap| {
        [SkippedBins::None, SkippedBins::Fill, SkippedBins::Reset, SkippedBins::Restart].into_iter().flat_map(
            move |skipped_bins| {
                [LookBack::RoundDown, LookBack::Round, LookBack::InterpolateOlder, LookBack::InterpolateNewer]
                    .into_iter()
                    .map(move |look_back| (wrap, skipped_bins, look_back))
            },
        )
    });
    for (wrap, skipped_bins, look_back) in readings {
        for (w, extra_bins, sum) in [(2, 1, Sum::W), (2, 1, Sum::WPlusOne), (10, 15, Sum::WPlusOne)] {
            for variant in VARIANTS {
                let look_back = Some(look_back);
                let count_current = w == 10;
                let config = Config {
                    variant,
                    window_factor: 2.0,
                    w,
                    extra_bins: Some(extra_bins),
                    sum,
                    count_current,
                    look_back,
                    wrap,
                    skipped_bins: Some(skipped_bins),
                    app_limited: Some(AppLimited::Restart),
                    ..slides()
                };
                let mut scheme = Search::new(config, context(Increase::Bytes));
                let window = Window { cwnd: Bytes::new(50_000), ssthresh: Bytes::MAX };
                let mut rtt = RttEstimator::new(RTT);
                let mut now = Timestamp::ZERO;
                for index in 0..500_u64 {
                    now += Duration::from_micros(index * index * 7919 % 90_000 * (index % 11));
                    rtt.update(now, MS(20 + index * 31 % 400), Duration::ZERO);
                    let mut ack = acked(now, index % 7 * 1000);
                    (ack.rtt, ack.app_limited) = (rtt.latest(), index % 50 == 49);
                    let (bytes, position) = (Bytes::new(index % 5 * 1000), index);
                    scheme.on_sent(&Sent { now, bytes, in_flight: bytes, position, app_limited: false });
                    match scheme.on_ack(&ack, window, true, &rtt) {
                        Step::Continue { cwnd } => assert!(cwnd >= Bytes::new(10_000)),
                        Step::Exit(exit) => assert!(exit.cwnd >= Bytes::new(10_000) && exit.cwnd <= window.cwnd),
                    }
                }
            }
        }
    }
}

#[test]
fn absurd_parameters_are_refused() {
    let refused = |config: Config| config.validate().map_err(|error| error.field);
    assert_eq!(refused(Config { w: 1, ..slides() }), Err("w"));
    assert_eq!(refused(Config { window_factor: f64::NAN, ..slides() }), Err("window_factor"));
    assert_eq!(refused(Config { thresh: Some(0.0), ..slides() }), Err("thresh"));
    assert_eq!(refused(literal()), Ok(()));
    assert_eq!(refused(Config { w: 3, ..variant(Variant::Freebsd) }), Err("window_factor"));
    assert_eq!(refused(Config { w: 4, ..variant(Variant::Freebsd) }), Ok(()));
    let one_bin = Config { window_factor: 20.0, look_back_rtt: LookBackRtt::Initial, ..slides() };
    assert_eq!(refused(Config { w: 9, ..one_bin.clone() }), Err("window_factor"));
    assert_eq!(refused(Config { w: 10, ..one_bin }), Ok(()));
    assert_eq!(refused(Config { variant: Variant::Firefox, ..literal() }), Err("sum"));
}

#[test]
fn a_look_back_reaches_the_rtt_that_tells_of_a_full_path() {
    // An RTT is 10 / 3.5 = 2.857 bins. 0.26 of a window are 2.6 bins: 5.457, and Firefox looks back less than
    // `extra_bins` bins, the authors a bin less. 0.35 are 3.5: 6.357.
    let with = |config: &Config, extra_bins| Config { extra_bins: Some(extra_bins), ..config.clone() };
    let initial = |of| Config { look_back_rtt: LookBackRtt::Initial, ..variant(of) };
    for (config, least) in [
        (variant(Variant::Firefox), 6),
        (variant(Variant::Freebsd), 7),
        (variant(Variant::Linux), 8),
        (slides(), 3),
        (Config { look_back: Some(LookBack::RoundDown), ..slides() }, 2),
        (initial(Variant::Firefox), 3),
        (initial(Variant::Linux), 4),
        (initial(Variant::Slides), 3),
    ] {
        assert_eq!(with(&config, least).validate(), Ok(()), "{config:?}");
        let refused = with(&config, least - 1);
        let error = refused.validate().unwrap_err();
        assert_eq!(
            (error.field, error.allowed.starts_with(&alloc::format!("at least {least}: "))),
            ("extra_bins", true)
        );
        assert_eq!(fluid(Config { exit: Some(Exit::ExitOnly), ..refused }, Some(6.0), 20), None, "{config:?}");
    }
}
