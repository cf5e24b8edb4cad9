//! Worked examples of the design: segments of 1000 bytes, an initial window of ten, an RTT of 100 ms.

use super::*;
use crate::path::{AccessTechnology, Hint, SavedPath};
use crate::startup::Increase;
use crate::startup::slow_start::tests::context;

const RTT: Duration = Duration::from_millis(100);
const SEGMENT: Bytes = Bytes::new(1000);

fn mbit(rate: u64) -> Rate {
    Rate::from_mbit(rate)
}

fn path() -> PathKnowledge {
    PathKnowledge { handshake_rtt: Some(RTT), ..PathKnowledge::default() }
}

fn hinted(rate: u64) -> PathKnowledge {
    let hint = Some(Hint { bandwidth: mbit(rate), technology: AccessTechnology::Unknown });
    PathKnowledge { hint, ..path() }
}

/// What an earlier connection saved a minute ago: `rate` Mbit/s at the same RTT.
fn saved(rate: u64) -> Option<SavedPath> {
    Some(SavedPath { rtt: RTT, cwnd: mbit(rate).amount_in(RTT), age: Duration::from_millis(60_000) })
}

fn scheme() -> Plumb {
    Plumb::new(Config::default(), context(Increase::Bytes))
}

/// The window and the rate of a launch.
fn launch(path: &PathKnowledge) -> (u64, Option<Rate>) {
    let launch = scheme().launch(Timestamp::ZERO, path, &mut DecisionLog::default());
    assert_eq!(launch.burst, Some(SEGMENT * TRAIN).min(Some(launch.cwnd)));
    (launch.cwnd.get() / SEGMENT.get(), launch.pacing_rate)
}

/// A flow on a path, seen through its acknowledgements.
struct Flow {
    scheme: Plumb,
    rtt: RttEstimator,
    window: Window,
    sent: Position,
    acked: Position,
}

impl Flow {
    /// A flow that launches with what `path` knows, and sends its launch at time 0.
    fn new(path: &PathKnowledge) -> Self {
        Self::of(scheme(), path)
    }

    fn of(mut scheme: Plumb, path: &PathKnowledge) -> Self {
        let launch = scheme.launch(Timestamp::ZERO, path, &mut DecisionLog::default());
        let mut rtt = RttEstimator::new(RTT);
        rtt.update(Timestamp::ZERO, RTT, Duration::ZERO);
        let window = Window { cwnd: launch.cwnd, ssthresh: Bytes::MAX };
        let mut flow = Self { scheme, rtt, window, sent: 0, acked: 0 };
        flow.send(Timestamp::ZERO, launch.cwnd.get() / SEGMENT.get());
        flow
    }

    fn send(&mut self, now: Timestamp, packets: u64) {
        for _ in 0..packets {
            self.sent += 1;
            let in_flight = SEGMENT * (self.sent - self.acked);
            self.scheme.on_sent(&Sent::new(now, SEGMENT, in_flight, self.sent));
        }
    }

    /// An acknowledgement of `packets` packets at `micros`, whose RTT is `rtt_micros`.
    fn ack(&mut self, micros: u64, packets: u64, rtt_micros: u64) -> Step {
        let now = Timestamp::ZERO + Duration::from_micros(micros);
        let in_flight = SEGMENT * (self.sent - self.acked);
        self.acked += packets;
        let sample = Duration::from_micros(rtt_micros);
        self.rtt.update(now, sample, Duration::ZERO);
        let mut ack = Ack::new(now, SEGMENT * packets, packets, self.acked);
        ack.rtt = Some(sample);
        ack.in_flight_before = in_flight;
        ack.in_flight = in_flight.saturating_sub(SEGMENT * packets);
        let step = self.scheme.on_ack(&ack, self.window, true, &self.rtt);
        if let Step::Continue { cwnd } = step {
            self.window.cwnd = cwnd;
        }
        step
    }

    /// The acknowledgements of the train: one for two packets, `gap` apart.
    fn train(&mut self, gap: u64, first_rtt: u64) {
        for place in 0..5 {
            self.ack(first_rtt + gap * place, 2, first_rtt + gap * place);
        }
    }

    fn segments(&self) -> u64 {
        self.window.cwnd.get() / SEGMENT.get()
    }

    fn lose(&mut self, micros: u64) -> Continuation {
        let in_flight = SEGMENT * (self.sent - self.acked);
        let now = Timestamp::ZERO + Duration::from_micros(micros);
        let loss = Loss { now, bytes: SEGMENT, position: self.acked + 1, in_flight_before: in_flight, in_flight };
        match self.scheme.on_congestion(&loss, self.window, in_flight * 7 / 10) {
            Step::Exit(exit) => exit,
            Step::Continue { .. } => panic!("a loss ends startup"),
        }
    }
}

#[test]
fn one_source_may_send_sixty_four_packets_unseen() {
    assert_eq!(launch(&path()), (10, None));
    // 20 Mbit/s x 100 ms are 250 packets: 64 of them leave, spread over the RTT at 5.12 Mbit/s.
    assert_eq!(launch(&hinted(20)), (64, Some(Rate::from_bits_per_sec(5_120_000))));
    // 2 Mbit/s x 100 ms are 25 packets.
    assert_eq!(launch(&hinted(2)), (25, Some(mbit(2))));
    // Never less than the initial window, which leaves as without knowledge.
    let slow = PathKnowledge { oracle_rate: Some(Rate::from_bits_per_sec(100_000)), ..path() };
    assert_eq!(launch(&slow), (10, None));
    // Nor more than waits, or the receiver takes.
    assert_eq!(launch(&PathKnowledge { bytes_waiting: Some(Bytes::new(20_000)), ..hinted(20) }).0, 20);
    assert_eq!(launch(&PathKnowledge { receive_window: Some(Bytes::new(30_000)), ..hinted(20) }).0, 30);
}

#[test]
fn sources_that_agree_may_send_more() {
    // 60 is 1.5 times 40: both bear out 40 Mbit/s, 500 packets, of which B2 allows 430.
    assert_eq!(launch(&PathKnowledge { oracle_rate: Some(mbit(60)), ..hinted(40) }), (430, Some(mbit(40))));
    // What was measured before and is confirmed today has no limit.
    assert_eq!(launch(&PathKnowledge { saved: saved(40), ..hinted(60) }), (500, Some(mbit(40))));
    assert_eq!(launch(&PathKnowledge { approved_rate: Some(mbit(80)), ..path() }), (1000, Some(mbit(80))));
}

#[test]
fn the_handshake_shows_what_a_source_is_worth() {
    let seen = |train: u64, path: PathKnowledge| launch(&PathKnowledge { train_rate: Some(mbit(train)), ..path });
    // 20 Mbit/s x 100 ms are 250 packets, of which BT allows 64, over the RTT; 2 Mbit/s are 25.
    assert_eq!(seen(20, path()), (64, Some(Rate::from_bits_per_sec(5_120_000))));
    assert_eq!(seen(2, path()), (25, Some(mbit(2))));
    // A hint that it bears out: 40 Mbit/s are 500 packets, of which B2 allows 430. No more than 1.1 times the train.
    assert_eq!(seen(40, hinted(40)), (430, Some(mbit(40))));
    assert_eq!(seen(20, hinted(30)), (275, Some(mbit(22))));
    // A hint above it counts as much as the train, and no more than without: B1. One below it is no reason to stop.
    assert_eq!(seen(2, hinted(40)), (25, Some(mbit(2))));
    assert_eq!(seen(20, hinted(31)).0, 64);
    assert_eq!(seen(20, hinted(2)), (64, Some(Rate::from_bits_per_sec(5_120_000))));
    // Nor is a low one that makes a high one true.
    assert_eq!(seen(20, PathKnowledge { oracle_rate: Some(mbit(2)), ..hinted(200) }).0, 25);
    // What was measured before and is seen now has no limit.
    assert_eq!(seen(60, PathKnowledge { saved: saved(60), ..path() }).0, 750);
}

#[test]
fn sources_that_contradict_each_other_count_as_one_with_the_smallest_rate() {
    let least = |path: &PathKnowledge| launch(path).0;
    assert_eq!(least(&PathKnowledge { oracle_rate: Some(mbit(2)), ..hinted(100) }), 25);
    assert_eq!(least(&PathKnowledge { saved: saved(2), ..hinted(4) }), 25);
    assert_eq!(least(&PathKnowledge { saved: saved(40), ..hinted(61) }), 64);
}

#[test]
fn what_is_old_or_of_another_path_is_no_source() {
    let with = |rtt, age| {
        let saved = saved(40).map(|saved| SavedPath { rtt, age, ..saved });
        launch(&PathKnowledge { saved, ..path() }).0
    };
    let (minute, hour) = (Duration::from_millis(60_000), Duration::from_millis(3_600_000));
    assert_eq!(with(RTT, minute), 64);
    assert_eq!(with(RTT, hour + minute), 10);
    assert_eq!([with(RTT / 2, minute), with(RTT / 3, minute)], [64, 10]);
    assert_eq!([with(RTT * 2, minute), with(RTT * 3, minute)], [64, 10]);
}

#[test]
fn the_train_gives_the_window_of_the_capacity() {
    // Four gaps of 2 ms for 8000 bytes are 8 Mbit/s, and 100 packets in 100 ms.
    let mut flow = Flow::new(&path());
    flow.train(2000, 100_000);
    assert_eq!(flow.scheme.capacity, Some(mbit(8)));
    assert_eq!((flow.segments(), flow.scheme.take_phase()), (100, Some(("up", "train_acknowledged"))));
}

#[test]
fn the_licence_is_thirty_two_times_the_train_or_a_claim_that_the_capacity_bears_out() {
    // Gaps of 0.1 ms: 160 Mbit/s, and 2000 packets in 100 ms.
    let window = |path: &PathKnowledge| {
        let mut flow = Flow::new(path);
        flow.train(100, 100_000);
        flow.segments()
    };
    assert_eq!(window(&path()), 320);
    assert_eq!(window(&hinted(160)), 2000);
    // A claim within 1.5 of what was measured counts in its place: 10 packets do not measure well.
    assert_eq!([window(&hinted(107)), window(&hinted(240))], [1337, 3000]);
    // A smaller one is a licence up to itself, a larger one is none.
    assert_eq!([window(&hinted(80)), window(&hinted(241))], [1000, 320]);
}

#[test]
fn a_train_that_told_nothing_is_slow_start() {
    let phase = |change: fn(&mut Flow)| {
        let mut flow = Flow::new(&path());
        flow.scheme.take_phase();
        change(&mut flow);
        (flow.scheme.take_phase(), flow.segments(), flow.scheme.pacing_rate())
    };
    // Two instants are one gap.
    let thin = phase(|flow| {
        flow.ack(100_000, 2, 100_000);
        flow.ack(104_000, 8, 104_000);
    });
    assert_eq!(thin, (Some(("plain", "no_capacity")), 20, None));
    // The sender's own pace: packets 2 ms apart, acknowledged 4 ms apart for two.
    let paced = phase(|flow| {
        flow.scheme.train = Train::new(SEGMENT * TRAIN);
        for place in 0..TRAIN {
            let now = Timestamp::ZERO + Duration::from_millis(2 * place);
            flow.scheme.on_sent(&Sent::new(now, SEGMENT, SEGMENT, place + 1));
        }
        for place in 0..5 {
            flow.ack(102_000 + 4000 * place, 2, 100_000);
        }
    });
    assert_eq!(paced, (Some(("plain", "no_capacity")), 20, None));
    // A queue of 10 ms stands before the first packet: others are there.
    let queued = phase(|flow| flow.train(100, 110_000));
    assert_eq!(queued, (Some(("plain", "queue_at_launch")), 20, None));
}

/// A flow on a path of 8 Mbit/s that has filled it, and gets acknowledgements of two packets every 2 ms until 138 ms.
fn filled() -> Flow {
    filled_by(scheme())
}

fn filled_by(scheme: Plumb) -> Flow {
    let mut flow = Flow::of(scheme, &path());
    flow.train(2000, 100_000);
    flow.send(Timestamp::ZERO + Duration::from_millis(108), 90);
    for place in 0..15 {
        flow.ack(110_000 + 2000 * place, 2, 100_000);
    }
    flow
}

#[test]
fn a_queue_while_everything_arrives_leaves_with_what_the_path_holds() {
    let mut flow = filled();
    let steps = [140_000, 142_000, 144_000, 146_000].map(|micros| flow.ack(micros, 2, 130_000));
    // 8 Mbit/s for 100 ms and the queue that counts: 100 / 16 = 6.25 ms and 2 packets of 1 ms.
    let window = Bytes::new(108_250);
    assert!(matches!(steps[2], Step::Continue { .. }));
    assert_eq!(steps[3], Step::Exit(Continuation { cwnd: window, ssthresh: window, reason: ExitReason::Delay }));
}

/// Acknowledgements of two packets each, this far apart, behind `micros`, until a round is over; the last step. For
/// each two packets leave.
fn round(flow: &mut Flow, micros: &mut u64, apart: u64, rtt_micros: u64) -> Step {
    let began = flow.scheme.round_start;
    loop {
        *micros += apart;
        let step = flow.ack(*micros, 2, rtt_micros);
        if flow.scheme.round_start != began {
            return step;
        }
        flow.send(Timestamp::ZERO + Duration::from_micros(*micros), 2);
    }
}

#[test]
fn who_watches_grows_where_there_is_room_and_leaves_where_others_are() {
    let config = Config { watch: 2, ..Config::default() };
    let mut flow = filled_by(Plumb::new(config, context(Increase::Bytes)));
    flow.scheme.take_phase();
    for micros in [140_000, 142_000, 144_000, 146_000] {
        flow.ack(micros, 2, 130_000);
    }
    // As above, but startup goes on.
    assert_eq!((flow.window.cwnd.get(), flow.scheme.take_phase()), (108_250, Some(("watch", "alone"))));
    let mut now = 146_000;
    // 8 Mbit/s, and no queue: one round says little, two say that there is room.
    round(&mut flow, &mut now, 2000, 100_000);
    assert_eq!(flow.window.cwnd.get(), 108_250);
    round(&mut flow, &mut now, 2000, 100_000);
    assert_eq!(flow.window.cwnd.get(), 108_250 * 5 / 4);
    // Nearly 16 Mbit/s: the path has more than before.
    let probed = flow.window.cwnd;
    round(&mut flow, &mut now, 1000, 100_000);
    assert!(flow.window.cwnd == probed * 2 && flow.scheme.capacity > Some(mbit(15)), "{:?}", flow.scheme.capacity);
    // A queue of 50 ms at a fourth of the rate. The window falls, and after three rounds it is that of before.
    let before = flow.window.cwnd;
    round(&mut flow, &mut now, 4000, 150_000);
    assert!(flow.window.cwnd < before / 4 + SEGMENT * 20, "{}", flow.window.cwnd);
    round(&mut flow, &mut now, 4000, 150_000);
    let left = Continuation { cwnd: before, ssthresh: before, reason: ExitReason::Delay };
    assert_eq!(round(&mut flow, &mut now, 4000, 150_000), Step::Exit(left));
}

#[test]
fn a_loss_while_everything_arrives_leaves_with_the_bandwidth_delay_product() {
    let exit = filled().lose(139_000);
    assert_eq!((exit.cwnd, exit.ssthresh), (Bytes::new(100_000), Bytes::new(100_000)));
}

#[test]
fn a_loss_ahead_of_slow_start_does_not_lead_below_it() {
    // 10 packets are in flight when slow start would have 40: 7 remain, and slow start goes on from there.
    let mut flow = Flow::new(&path());
    flow.window.cwnd = SEGMENT * 160;
    let exit = flow.lose(200_000);
    assert_eq!((exit.cwnd, exit.ssthresh), (Bytes::new(7000), Bytes::MAX));
}

#[test]
fn a_path_that_delivers_less_than_a_share_is_busy() {
    // 160 Mbit/s by the train, and then a queue of 30 ms and a packet in a millisecond.
    let mut flow = Flow::new(&path());
    flow.train(100, 100_000);
    flow.send(Timestamp::ZERO + Duration::from_millis(101), 150);
    for micros in [130_000, 132_000, 134_000, 136_000] {
        flow.ack(micros, 2, 130_000);
    }
    // 160 packets without the 16 that had arrived.
    assert_eq!((flow.segments(), flow.scheme.take_phase()), (144, Some(("hold", "queue"))));
    let Step::Exit(exit) = flow.ack(240_000, 142, 130_000) else { panic!("HOLD lasts an RTT") };
    // 142 packets in 104 ms are 11 Mbit/s. Slow start would have 20 (1 + 110 / 130) = 36.9 packets.
    assert_eq!((exit.cwnd.get() / 1000, exit.ssthresh, exit.reason), (36, Bytes::MAX, ExitReason::Other("busy")));
}

#[test]
fn the_shadow_doubles_in_a_round_trip() {
    let mut scheme = scheme();
    scheme.launch(Timestamp::ZERO, &path(), &mut DecisionLog::default());
    let at = |millis| scheme.shadow(Timestamp::ZERO + Duration::from_millis(millis), RTT).get() / SEGMENT.get();
    assert_eq!([at(0), at(50), at(100), at(150), at(200), at(1000)], [10, 15, 20, 30, 40, 10_240]);
    assert!(at(u64::MAX / 1_000_000) > 1 << 32);
}

#[test]
fn shares_that_are_crossed_are_refused() {
    let refused = |config: Config| config.validate().map_err(|error| error.field);
    assert_eq!(refused(Config { alone: 85, share: 86, ..Config::default() }), Err("share"));
    assert_eq!(refused(Config { alone: 101, ..Config::default() }), Err("alone"));
    assert_eq!(refused(Config { growth: 1, ..Config::default() }), Err("growth"));
    assert_eq!(refused(Config::default()), Ok(()));
}
