use alloc::vec::Vec;

use super::launch::LARGEST_WINDOW;
use super::*;
use crate::avoidance::{AvoidanceConfig, bbr, cubic, reno};
use crate::event::{Ack, Ecn, ExitReason, Loss, Sent, Timeout};
use crate::launch::{Continuation, Launch};
use crate::path::PathKnowledge;
use crate::startup::{Startup, StartupConfig, Step, blitzstart, hystart, quick_start, slow_start};
use crate::test_support::acked;

const SEGMENT: u64 = 1000;

fn controller(reduction: Reduction) -> (Controller, RttEstimator) {
    let startup = StartupConfig::SlowStart(slow_start::Config::default());
    let mut config = ControllerConfig::new(startup, AvoidanceConfig::Reno(reno::Config::default()));
    config.segment = Bytes::new(SEGMENT);
    config.reduction = reduction;
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let mut controller = Controller::new(config).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    (controller, rtt)
}

fn send(controller: &mut Controller, position: Position, in_flight: u64) {
    controller.on_sent(&Sent {
        now: Timestamp::ZERO,
        bytes: Bytes::new(SEGMENT),
        in_flight: Bytes::new(in_flight),
        position,
        app_limited: false,
    });
}

fn loss(position: Position, in_flight_before: u64) -> Loss {
    Loss {
        now: Timestamp::ZERO,
        bytes: Bytes::new(SEGMENT),
        position,
        in_flight_before: Bytes::new(in_flight_before),
        in_flight: Bytes::new(in_flight_before - SEGMENT),
    }
}

#[test]
fn one_window_is_reduced_once() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    for position in 1..=10 {
        send(&mut controller, position, position * SEGMENT);
    }
    controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
    controller.on_loss(&loss(10, 9 * SEGMENT), &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT), "position 10 was sent before the reduction");
    send(&mut controller, 11, 5 * SEGMENT);
    controller.on_loss(&loss(11, 5 * SEGMENT), &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT / 2));
}

#[test]
fn a_repaired_loss_reduces_the_window_and_leaves_nothing_to_recover_from() {
    let (mut controller, rtt) = controller(Reduction::PrrSafe);
    controller.config.undo = true;
    send(&mut controller, 10, 10 * SEGMENT);
    controller.on_repaired_loss(&loss(10, 10 * SEGMENT), &rtt);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(5 * SEGMENT), Bytes::new(5 * SEGMENT)));
    assert!(!controller.in_recovery());
    // The earlier window is not restored, and the same packets are one congestion event.
    controller.on_spurious_loss(Timestamp::ZERO, &rtt);
    controller.on_repaired_loss(&loss(10, 10 * SEGMENT), &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
    // In recovery another loss is part of it.
    send(&mut controller, 20, 5 * SEGMENT);
    controller.on_loss(&loss(11, 5 * SEGMENT), &rtt);
    controller.on_repaired_loss(&loss(12, 5 * SEGMENT), &rtt);
    assert!(controller.in_recovery());
}

#[test]
fn marks_reduce_by_the_factor_for_marks_also_where_they_end_startup() {
    let after = |avoidance: AvoidanceConfig, marked: bool| {
        let startup = StartupConfig::SlowStart(Default::default());
        let config = ControllerConfig { segment: Bytes::new(1000), ..ControllerConfig::new(startup, avoidance) };
        let mut controller = Controller::new(config).unwrap();
        let rtt = RttEstimator::new(Duration::from_millis(100));
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        send(&mut controller, 10, 10_000);
        let windows = [1, 20].map(|position| {
            if marked {
                let in_flight = Bytes::new(10_000);
                controller.on_ecn(&Ecn { now: Timestamp::ZERO, position, in_flight, packets: 1 }, &rtt);
            } else {
                controller.on_loss(&loss(position, 10_000), &rtt);
            }
            controller.output().cwnd.get()
        });
        assert!(!controller.in_startup());
        windows
    };
    let abe = reno::Config { beta_ecn: Some(0.8), ..reno::Config::default() };
    // 10 segments * 0.8 * 0.8; a loss halves as before.
    assert_eq!(after(AvoidanceConfig::Reno(abe.clone()), true), [8000, 6400]);
    assert_eq!(after(AvoidanceConfig::Reno(abe), false), [5000, 2500]);
    assert_eq!(after(AvoidanceConfig::Reno(reno::Config::default()), true), [5000, 2500]);
}

#[test]
fn a_spurious_loss_gives_back_what_the_reduction_took() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    controller.config.undo = true;
    for position in 1..=10 {
        send(&mut controller, position, position * SEGMENT);
    }
    controller.on_loss(&loss(3, 10 * SEGMENT), &rtt);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(5 * SEGMENT), Bytes::new(5 * SEGMENT)));
    controller.on_spurious_loss(Timestamp::ZERO, &rtt);
    // cwnd 10 and no ssthresh, as before the reduction: slow start goes on.
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(10 * SEGMENT), Bytes::MAX));
    assert!(!controller.in_recovery());
    let mut ack = acked(Timestamp::ZERO, SEGMENT);
    ack.position = 4;
    controller.on_ack(&ack, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(11 * SEGMENT));
    controller.on_spurious_loss(Timestamp::ZERO, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(11 * SEGMENT), "a reduction is taken back once");
}

#[test]
fn without_the_option_and_after_a_timeout_a_reduction_stays() {
    for undo in [false, true] {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        controller.config.undo = undo;
        send(&mut controller, 10, 10 * SEGMENT);
        controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
        if undo {
            controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(SEGMENT) }, &rtt);
        }
        let before = controller.cwnd();
        controller.on_spurious_loss(Timestamp::ZERO, &rtt);
        assert_eq!(controller.cwnd(), before);
    }
}

#[test]
fn a_spurious_timeout_gives_back_what_was_there_before_it() {
    let time_out = |controller: &mut Controller, rtt: &RttEstimator| {
        controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(10 * SEGMENT) }, rtt);
    };
    let windows = |controller: &Controller| (controller.cwnd().get() / SEGMENT, controller.ssthresh());
    for undo in [false, true] {
        let (mut controller, rtt) = controller(Reduction::Immediate);
        controller.config.undo = undo;
        send(&mut controller, 10, 10 * SEGMENT);
        // The timer fires twice; the second time the window is that of the first.
        time_out(&mut controller, &rtt);
        time_out(&mut controller, &rtt);
        let collapsed = windows(&controller);
        assert_eq!(collapsed.1, Bytes::new(5 * SEGMENT));
        controller.on_spurious_timeout(Timestamp::ZERO, &rtt);
        assert_eq!(windows(&controller), if undo { (10, Bytes::MAX) } else { collapsed });
        controller.on_spurious_timeout(Timestamp::ZERO, &rtt);
        assert_eq!(windows(&controller), if undo { (10, Bytes::MAX) } else { collapsed }, "it is taken back once");
        if undo {
            // Another loss of the same packets is a congestion event again.
            controller.on_loss(&loss(5, 10 * SEGMENT), &rtt);
            assert_eq!(windows(&controller), (5, Bytes::new(5 * SEGMENT)));
        }
    }
}

#[test]
fn a_spurious_timeout_in_recovery_gives_back_what_was_there_before_recovery() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    controller.config.undo = true;
    send(&mut controller, 10, 10 * SEGMENT);
    controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
    assert!(controller.in_recovery());
    controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(SEGMENT) }, &rtt);
    controller.on_spurious_timeout(Timestamp::ZERO, &rtt);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(10 * SEGMENT), Bytes::MAX));
}

#[test]
fn reno_grows_by_segments_of_the_new_size() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    send(&mut controller, 10, 10 * SEGMENT);
    controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
    controller.set_segment(Bytes::new(2 * SEGMENT));
    let mut ack = acked(Timestamp::ZERO, 5 * SEGMENT);
    ack.position = 11;
    controller.on_ack(&ack, &rtt);
    controller.on_ack(&ack, &rtt);
    // A window of 5000 bytes was acknowledged: one segment of 2000 more.
    assert_eq!(controller.cwnd(), Bytes::new(7 * SEGMENT));
}

#[test]
fn the_window_does_not_grow_during_recovery() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    send(&mut controller, 10, 10 * SEGMENT);
    controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
    let mut ack = acked(Timestamp::ZERO, SEGMENT);
    ack.position = 10;
    controller.on_ack(&ack, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
    assert!(controller.in_recovery());
    ack.position = 11;
    controller.on_ack(&ack, &rtt);
    assert!(!controller.in_recovery());
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT));
    controller.on_ack(&ack, &rtt);
    assert!(controller.cwnd() > Bytes::new(5 * SEGMENT));
}

#[test]
fn prr_sends_in_proportion_to_what_is_delivered() {
    // RFC 6937: 20 segments in flight, one lost, ssthresh 10: every second acknowledgement releases a segment.
    let (mut controller, rtt) = controller(Reduction::Prr);
    controller.window.cwnd = Bytes::new(20 * SEGMENT);
    send(&mut controller, 20, 20 * SEGMENT);
    controller.on_loss(&loss(1, 20 * SEGMENT), &rtt);
    assert_eq!(controller.ssthresh(), Bytes::new(10 * SEGMENT));
    let mut pipe = 19;
    let mut sent = 0;
    for _ in 0..18 {
        pipe -= 1;
        let mut ack = acked(Timestamp::ZERO, SEGMENT);
        ack.in_flight = Bytes::new(pipe * SEGMENT);
        ack.position = 1;
        controller.on_ack(&ack, &rtt);
        while controller.cwnd() >= Bytes::new((pipe + 1) * SEGMENT) {
            pipe += 1;
            sent += 1;
            send(&mut controller, 20 + sent, pipe * SEGMENT);
        }
    }
    // 18 delivered * 10 / 20 = 9 sent, and 19 - 18 + 9 = 10 in flight: ssthresh.
    assert_eq!((sent, pipe), (9, 10));
}

#[test]
fn a_timeout_restarts_with_slow_start() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    send(&mut controller, 10, 10 * SEGMENT);
    let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(10 * SEGMENT) };
    controller.on_timeout(&timeout, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(2 * SEGMENT));
    assert_eq!(controller.ssthresh(), Bytes::new(5 * SEGMENT));
    for position in 11..=14 {
        let mut ack = acked(Timestamp::ZERO, SEGMENT);
        ack.position = position;
        controller.on_ack(&ack, &rtt);
    }
    // Slow start to ssthresh = 5, then congestion avoidance: 2, 3, 4, 5, 5 + 1/5.
    assert_eq!(controller.cwnd(), Bytes::new(5 * SEGMENT + SEGMENT / 5));
}

#[test]
fn a_repeated_timeout_of_the_same_data_holds_ssthresh() {
    // RFC 5681, section 3.1: "when a TCP sender detects segment loss using the retransmission timer and the given
    // segment has already been retransmitted by way of the retransmission timer at least once, the value of ssthresh
    // is held constant."
    let (mut controller, rtt) = controller(Reduction::Immediate);
    controller.config.reduction_base = ReductionBase::FlightSize;
    let acknowledge = |controller: &mut Controller, position| {
        let mut ack = acked(Timestamp::ZERO, SEGMENT);
        ack.position = position;
        controller.on_ack(&ack, &rtt);
    };
    let time_out = |controller: &mut Controller, in_flight| {
        let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(in_flight * SEGMENT) };
        controller.on_timeout(&timeout, &rtt);
        (controller.ssthresh().get() / SEGMENT, controller.cwnd().get() / SEGMENT)
    };
    acknowledge(&mut controller, 7);
    send(&mut controller, 27, 20 * SEGMENT);
    // Equation 4: ssthresh = max(FlightSize / 2, 2 * SMSS) = max(20 / 2, 2) = 10.
    assert_eq!(time_out(&mut controller, 20), (10, 2));
    // The retransmission is lost as well, and again: one segment in flight, but ssthresh stays at 10 instead of 2.
    assert_eq!(time_out(&mut controller, 1), (10, 2));
    assert_eq!(time_out(&mut controller, 1), (10, 2));
    // Arrivals above the gap are not progress.
    acknowledge(&mut controller, 7);
    assert_eq!(time_out(&mut controller, 1), (10, 2));
    // It arrives; the timeout of another segment is a new one: max(6 / 2, 2) = 3.
    acknowledge(&mut controller, 9);
    assert_eq!(time_out(&mut controller, 6), (3, 2));
}

#[test]
fn the_first_timeout_reduces_ssthresh_even_if_nothing_was_ever_acknowledged() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    send(&mut controller, 10, 10 * SEGMENT);
    let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(10 * SEGMENT) };
    for _ in 0..2 {
        controller.on_timeout(&timeout, &rtt);
        // Half of the window of 10, once: the second time it would be half of 2.
        assert_eq!(controller.ssthresh(), Bytes::new(5 * SEGMENT));
    }
}

#[test]
fn persistent_congestion_leaves_ssthresh_as_the_loss_has_set_it() {
    // RFC 9002, section 7.6.2 and appendix B.8: the loss halves, ssthresh = 20 / 2 = 10 segments; persistent congestion
    // sets cwnd to kMinimumWindow, 2 segments, and nothing else.
    let (mut controller, rtt) = controller(Reduction::Immediate);
    controller.window.cwnd = Bytes::new(20 * SEGMENT);
    send(&mut controller, 20, 20 * SEGMENT);
    controller.on_loss(&loss(18, 20 * SEGMENT), &rtt);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(10 * SEGMENT), Bytes::new(10 * SEGMENT)));
    let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(20 * SEGMENT) };
    controller.on_persistent_congestion(&timeout, &rtt);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(2 * SEGMENT), Bytes::new(10 * SEGMENT)));
    assert!(!controller.in_recovery());
    for position in 21..=29 {
        let mut ack = acked(Timestamp::ZERO, SEGMENT);
        ack.position = position;
        controller.on_ack(&ack, &rtt);
    }
    // Slow start from 2 to 10 segments takes 8 of the acknowledgements, the ninth adds 1/10.
    assert_eq!(controller.cwnd(), Bytes::new(10 * SEGMENT + SEGMENT / 10));
}

/// cwnd after the acknowledgement that ends recovery from 10 to 5 segments, in bytes.
fn recovered(transition_growth: bool) -> u64 {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    controller.config.transition_growth = transition_growth;
    send(&mut controller, 10, 10 * SEGMENT);
    controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
    let mut ack = acked(Timestamp::ZERO, SEGMENT);
    ack.position = 11;
    controller.on_ack(&ack, &rtt);
    assert!(!controller.in_recovery());
    controller.cwnd().get()
}

#[test]
fn the_acknowledgement_that_ends_recovery_counts_only_when_asked_to() {
    // Reno: 1000 * 1000 / 5000 = 200 bytes.
    assert_eq!((recovered(false), recovered(true)), (5 * SEGMENT, 5 * SEGMENT + 200));
}

/// Slow start that grants a segment with every acknowledgement.
#[derive(Clone, Debug)]
struct Generous(slow_start::SlowStart);

impl Startup for Generous {
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, log: &mut DecisionLog) -> Launch {
        self.0.launch(now, path, log)
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.0.on_ack(ack, window, in_use, rtt)
    }

    fn proactive_retransmit(&mut self, _ack: &Ack) -> Bytes {
        Bytes::new(SEGMENT)
    }
}

#[test]
fn grants_add_up_are_used_and_end_with_startup() {
    let (plain, rtt) = controller(Reduction::Immediate);
    let context = plain.config.startup_context();
    let scheme = Generous(slow_start::SlowStart::new(slow_start::Config::default(), context));
    let avoidance = AvoidanceConfig::Reno(reno::Config::default()).build(SegmentSize(Bytes::new(SEGMENT)));
    let mut controller =
        Controller::with_algorithms(plain.config.clone(), StartupState::Custom(Box::new(scheme)), avoidance).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    send(&mut controller, 10, 10 * SEGMENT);
    assert_eq!(controller.output().proactive_retransmit, Bytes::ZERO);
    for _ in 0..3 {
        controller.on_ack(&acked(Timestamp::ZERO, SEGMENT), &rtt);
    }
    // 3 granted - 1 used = 2.
    controller.on_proactive_retransmission(Bytes::new(SEGMENT));
    assert_eq!(controller.output().proactive_retransmit, Bytes::new(2 * SEGMENT));
    assert_eq!(controller.clone().proactive_retransmit(), Bytes::new(2 * SEGMENT));
    controller.on_loss(&loss(10, 10 * SEGMENT), &rtt);
    assert!(!controller.in_startup());
    controller.on_ack(&acked(Timestamp::ZERO, SEGMENT), &rtt);
    assert_eq!(controller.output().proactive_retransmit, Bytes::ZERO);
}

#[test]
fn pacing_follows_the_window() {
    let (controller, _) = controller(Reduction::Immediate);
    // 10 segments * 2 / 100 ms = 20,000 bytes / 0.1 s = 1.6 Mbit/s.
    assert_eq!(controller.pacing_rate(), Some(Rate::from_bits_per_sec(1_600_000)));
}

#[test]
fn decisions_tell_the_story_of_startup() {
    let startup = StartupConfig::Hystart(hystart::Config::default());
    let config = ControllerConfig::new(startup, AvoidanceConfig::Cubic(cubic::Config::default()));
    let rtt = RttEstimator::new(Duration::from_millis(100));
    let mut controller = Controller::new(config).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    controller.on_loss(&loss(1, 12_000), &rtt);
    let decisions: Vec<_> = core::iter::from_fn(|| controller.take_decision()).map(|d| d.1).collect();
    assert!(matches!(decisions[0], Decision::Launched { .. }));
    assert!(matches!(decisions[1], Decision::StartupExited { reason: ExitReason::Loss, .. }));
    assert!(matches!(decisions[2], Decision::WindowReduced { .. }));
}

/// A scheme that ends with its launch, below ssthresh.
#[derive(Clone, Debug)]
struct EndsEarly {
    told: bool,
}

impl Startup for EndsEarly {
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let (cwnd, ssthresh) = (Bytes::new(2 * SEGMENT), Bytes::new(4 * SEGMENT));
        let continuation = Continuation { cwnd, ssthresh, reason: ExitReason::Launch };
        Launch { continuation: Some(continuation), ..Launch::window(cwnd) }
    }

    fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
        Step::Continue { cwnd: window.cwnd }
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        (!core::mem::replace(&mut self.told, true)).then_some(("end", "launch"))
    }
}

#[test]
fn a_startup_that_ends_below_ssthresh_continues_with_slow_start_and_phases_are_told_once() {
    let (template, rtt) = controller(Reduction::Immediate);
    let startup = StartupState::Custom(Box::new(EndsEarly { told: false }));
    let mut controller = Controller::with_algorithms(template.config, startup, template.avoidance).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    for _ in 0..3 {
        controller.on_ack(&acked(Timestamp::ZERO, SEGMENT), &rtt);
    }
    // Slow start 2, 3, 4 = ssthresh, then congestion avoidance: 4 + 1/4.
    assert_eq!(controller.cwnd(), Bytes::new(4 * SEGMENT + SEGMENT / 4));
    let decisions: Vec<_> = core::iter::from_fn(|| controller.take_decision()).map(|d| d.1).collect();
    assert!(matches!(decisions[1], Decision::PhaseEntered { phase: "end", trigger: "launch" }), "{decisions:?}");
    assert!(matches!(decisions[2], Decision::StartupExited { reason: ExitReason::Launch, .. }), "{decisions:?}");
    assert_eq!(decisions.len(), 3);
}

#[test]
fn an_integrated_algorithm_takes_the_launch_and_nothing_reduces_its_window() {
    let startup = StartupConfig::SlowStart(slow_start::Config::default());
    let config = ControllerConfig::new(startup, AvoidanceConfig::Bbr(bbr::Config::default()));
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let mut controller = Controller::new(config).unwrap();
    assert!(controller.needs().contains(Needs::RATE_SAMPLES));
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    // Ten segments of 1200 bytes in 100 ms, times 2.77.
    assert_eq!(controller.pacing_rate(), Some(Rate::from_bits_per_sec(2_659_200)));
    assert_eq!(controller.output().burst, Bytes::new(12_000));
    send(&mut controller, 10, 12_000);
    controller.on_loss(&loss(1, 12_000), &rtt);
    assert!(controller.in_recovery() && controller.in_startup());
    assert_eq!(controller.cwnd(), Bytes::new(12_000));
    let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(12_000) };
    controller.on_timeout(&timeout, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(2400));
    assert!(controller.output().burst < Bytes::new(12_000), "the launch is over");
    let mut ack = acked(Timestamp::ZERO, 1200);
    ack.position = 11;
    controller.on_ack(&ack, &rtt);
    // Recovery is over: the previous window plus the acknowledged amount.
    assert_eq!(controller.cwnd(), Bytes::new(13_200));
    let decisions: Vec<_> = core::iter::from_fn(|| controller.take_decision()).map(|d| d.1).collect();
    assert!(matches!(decisions[0], Decision::Launched { .. }), "{decisions:?}");
    assert!(matches!(decisions[1], Decision::PhaseEntered { phase: "Startup", trigger: "launch" }));
    assert!(decisions.iter().all(|decision| !matches!(decision, Decision::WindowReduced { .. })));
}

#[test]
fn only_schemes_with_a_launch_go_with_an_integrated_algorithm() {
    let bbr = AvoidanceConfig::Bbr(bbr::Config::default());
    let blitzstart = StartupConfig::Blitzstart(blitzstart::Config::default());
    let hystart = StartupConfig::Hystart(hystart::Config::default());
    assert_eq!(ControllerConfig::validate_pair(&blitzstart, &bbr), Ok(()));
    let error = ControllerConfig::validate_pair(&hystart, &bbr).unwrap_err();
    assert_eq!((error.field, error.value.as_str()), ("scheme", "hystart"));
    assert!(error.allowed.starts_with("slow-start, initial-start, "), "{error}");
    let cubic = AvoidanceConfig::Cubic(cubic::Config::default());
    assert_eq!(ControllerConfig::validate_pair(&hystart, &cubic), Ok(()));
}

/// Everything that a scheme could launch from, over a path of 100 ms that is believed to carry 1 Gbit/s.
fn generous(advised: Option<Rate>) -> PathKnowledge {
    let rate = Rate::from_mbit(1000);
    PathKnowledge {
        handshake_rtt: Some(Duration::from_millis(100)),
        saved: Some(crate::path::SavedPath {
            rtt: Duration::from_millis(100),
            cwnd: rate.amount_in(Duration::from_millis(100)),
            age: Duration::from_millis(1000),
        }),
        receive_window: Some(Bytes::new(100_000_000)),
        bytes_waiting: Some(Bytes::new(50_000_000)),
        hint: Some(crate::path::Hint { bandwidth: rate, technology: Default::default() }),
        requested_rate: Some(rate),
        interface_rate: Some(rate),
        approved_rate: Some(rate),
        oracle_rate: Some(rate),
        train_rate: Some(rate),
        advised_rate: advised,
        concurrent: Some(crate::path::Concurrent {
            rtt: Duration::from_millis(100),
            window: Window { cwnd: rate.amount_in(Duration::from_millis(100)), ssthresh: Bytes::MAX },
        }),
    }
}

/// The largest window and pacing rate of a flow that uses its window and delivers `acks` windows.
fn most(startup: StartupConfig, avoidance: AvoidanceConfig, advised: Option<Rate>, acks: u64) -> (Bytes, Option<Rate>) {
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let mut controller = Controller::new(ControllerConfig::new(startup, avoidance)).unwrap();
    controller.launch(Timestamp::ZERO, &generous(advised), &rtt);
    let mut most = (controller.cwnd(), controller.launch_rate.or(controller.scheme_rate));
    let mut position = 0;
    for round in 0..acks {
        let (now, segment) = (Timestamp::ZERO + Duration::from_millis(100 * (round + 1)), Bytes::new(1200));
        for place in 1..=10 {
            position += 1;
            let sent = Sent { now, bytes: segment, in_flight: segment * place, position, app_limited: false };
            controller.on_sent(&sent);
        }
        let mut ack = acked(now, 1200);
        (ack.position, ack.in_flight_before) = (position, controller.cwnd());
        controller.on_ack(&ack, &rtt);
        most = (most.0.max(controller.cwnd()), most.1.max(controller.scheme_rate));
    }
    most
}

#[test]
fn advice_caps_the_jump_of_every_scheme_and_never_enlarges_one() {
    // 8 Mbit/s * 100 ms = 100 kB, more than an initial window of 12 kB.
    let advised = Rate::from_mbit(8);
    let cap = Bytes::new(100_000);
    let mut capped = 0;
    for startup in StartupConfig::defaults() {
        for avoidance in [AvoidanceConfig::Reno(Default::default()), AvoidanceConfig::Bbr(Default::default())] {
            if ControllerConfig::validate_pair(&startup, &avoidance).is_err() {
                continue;
            }
            let (free, _) = most(startup.clone(), avoidance.clone(), None, 0);
            let (window, rate) = most(startup.clone(), avoidance.clone(), Some(advised), 0);
            assert!(window <= cap && window <= free, "{}: {window} of {free}", startup.name());
            // BBR's own pacing begins with its gain of 2.77 and is no launch, nor is leaving as acknowledgements come.
            let own = avoidance.kind() == Kind::Integrated || rate == Some(crate::launch::UNPACED);
            assert!(own || rate.is_none_or(|rate| rate <= advised), "{}: {rate:?}", startup.name());
            capped += u32::from(free > cap);
            let higher = most(startup.clone(), avoidance.clone(), Some(Rate::from_mbit(100_000)), 3);
            assert_eq!(higher, most(startup.clone(), avoidance, None, 3), "{}", startup.name());
        }
    }
    assert!(capped > 8, "{capped} launches were beyond the advice");
}

/// The window after eight round trips in which all of it is acknowledged.
fn after_eight_rounds(startup: StartupConfig, advised: Option<Rate>) -> Bytes {
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let mut controller =
        Controller::new(ControllerConfig::new(startup, AvoidanceConfig::Reno(Default::default()))).unwrap();
    controller.launch(Timestamp::ZERO, &generous(advised), &rtt);
    let mut position = 0;
    for round in 0..8 {
        let window = controller.cwnd();
        let sent = Timestamp::ZERO + Duration::from_millis(100 * round);
        for place in 1..=window.get() / 1200 {
            position += 1;
            let in_flight = Bytes::new(1200 * place);
            controller.on_sent(&Sent { now: sent, bytes: Bytes::new(1200), in_flight, position, app_limited: false });
        }
        let mut ack = acked(sent + Duration::from_millis(100), window.get());
        (ack.position, ack.in_flight_before) = (position, window);
        controller.on_ack(&ack, &rtt);
    }
    controller.cwnd()
}

#[test]
fn a_jump_of_which_advice_leaves_nothing_goes_on_as_slow_start() {
    let slow = after_eight_rounds(StartupConfig::SlowStart(Default::default()), None);
    assert_eq!(slow, Bytes::new(12_000 * 256));
    let lowest = Some(Rate::from_bits_per_sec(100_000));
    let mut capped = 0;
    for startup in StartupConfig::defaults() {
        let avoidance = AvoidanceConfig::Reno(Default::default());
        if ControllerConfig::validate_pair(&startup, &avoidance).is_err() {
            continue;
        }
        let free = most(startup.clone(), avoidance.clone(), None, 0);
        if free != most(startup.clone(), avoidance, lowest, 0) {
            capped += 1;
            assert_eq!(after_eight_rounds(startup.clone(), lowest), slow, "{}", startup.name());
        }
    }
    assert!(capped > 7, "{capped} launches were beyond the advice");
}

#[test]
fn what_advice_takes_of_a_launch_is_noted_also_where_it_is_its_rate_alone() {
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let own_rate = blitzstart::Config { pacing_rtt: blitzstart::PacingRtt::Launch, ..Default::default() };
    let mut rates = 0;
    for startup in StartupConfig::defaults().into_iter().chain([StartupConfig::Blitzstart(own_rate)]) {
        let launched = |advised| {
            let config = ControllerConfig::new(startup.clone(), AvoidanceConfig::Reno(Default::default()));
            let mut controller = Controller::new(config).unwrap();
            // A hint of 36 Mbit/s is a window of 450 kB, which leaves in three quarters of the RTT: at 48 Mbit/s.
            // Advice of 40 Mbit/s allows the window (500 kB) and not the rate.
            let hint = crate::path::Hint { bandwidth: Rate::from_mbit(36), technology: Default::default() };
            let path = PathKnowledge { hint: Some(hint), ..generous(advised) };
            controller.launch(Timestamp::ZERO, &path, &rtt);
            let noted = core::iter::from_fn(|| controller.take_decision()).any(
                |(_, decision)| matches!(decision, Decision::AdviceCapped { after, before, .. } if after <= before),
            );
            (controller.cwnd(), controller.launch_rate.or(controller.scheme_rate), noted)
        };
        let (free, capped) = (launched(None), launched(Some(Rate::from_mbit(40))));
        let differs = (free.0, free.1) != (capped.0, capped.1);
        assert_eq!((free.2, capped.2), (false, differs), "{}", startup.name());
        rates += u32::from(differs && free.0 == capped.0);
    }
    assert!(rates > 0, "no launch was capped in its rate alone");
}

#[test]
fn a_jump_after_the_first_acknowledgements_is_capped_too() {
    // Careful Resume jumps to half of the saved 12.5 MB when the first acknowledgements confirm the path.
    let startup = StartupConfig::CarefulResume(Default::default());
    let avoidance = AvoidanceConfig::Reno(Default::default());
    let (free, _) = most(startup.clone(), avoidance.clone(), None, 2);
    let (window, rate) = most(startup, avoidance, Some(Rate::from_mbit(8)), 2);
    assert!(free > Bytes::new(1_000_000), "{free}");
    // An acknowledgement in congestion avoidance adds a little.
    assert!(window < Bytes::new(101_200) && rate <= Some(Rate::from_mbit(8)), "{window} at {rate:?}");
}

#[test]
fn late_advice_caps_what_has_not_left_of_a_jump_but_not_slow_start() {
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let launched = |startup| {
        let mut controller =
            Controller::new(ControllerConfig::new(startup, AvoidanceConfig::Reno(Default::default()))).unwrap();
        controller.launch(Timestamp::ZERO, &generous(None), &rtt);
        controller
    };
    let mut jump = launched(StartupConfig::JumpStart(Default::default()));
    assert_eq!(jump.cwnd(), Bytes::new(50_000_000));
    jump.on_advice(Timestamp::ZERO, Some(Rate::from_mbit(8)), &rtt);
    assert_eq!((jump.cwnd(), jump.pacing_rate()), (Bytes::new(100_000), Some(Rate::from_mbit(8))));
    let mut slow = launched(StartupConfig::SlowStart(Default::default()));
    let before = slow.output();
    slow.on_advice(Timestamp::ZERO, Some(Rate::from_bits_per_sec(100_000)), &rtt);
    assert_eq!(slow.output(), before);
}

#[test]
fn an_approval_is_used_where_slow_start_would_not_be_as_far_a_round_trip_later() {
    let startup = StartupConfig::QuickStart(quick_start::Config { header: Bytes::ZERO, ..Default::default() });
    let begin = || {
        let (_, rtt) = controller(Reduction::Immediate);
        let mut config = ControllerConfig::new(startup.clone(), AvoidanceConfig::Reno(reno::Config::default()));
        config.segment = Bytes::new(SEGMENT);
        let mut controller = Controller::new(config).unwrap();
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        (1..=10).for_each(|position| send(&mut controller, position, position * SEGMENT));
        (controller, rtt)
    };
    let path = |kbit: u64| PathKnowledge {
        approved_rate: Some(Rate::from_bits_per_sec(kbit * 1000)),
        handshake_rtt: Some(Duration::from_millis(100)),
        ..PathKnowledge::default()
    };
    // 1.6 Mbit/s * 100 ms = 20 segments, as many as slow start makes of ten; 2.4 Mbit/s are 30.
    let (mut controller, rtt) = begin();
    let before = (controller.cwnd(), controller.pacing_rate());
    assert!(!controller.on_approval(Timestamp::ZERO, &path(1600), &rtt));
    assert_eq!((controller.cwnd(), controller.pacing_rate()), before);
    assert!(controller.on_approval(Timestamp::ZERO, &path(2400), &rtt));
    assert_eq!(
        (controller.cwnd(), controller.pacing_rate()),
        (Bytes::new(30 * SEGMENT), Some(Rate::from_bits_per_sec(2_400_000)))
    );
    // In congestion avoidance the current window counts: five segments, and 0.48 Mbit/s are six.
    let (mut controller, rtt) = begin();
    controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
    assert!(!controller.on_approval(Timestamp::ZERO, &path(2400), &rtt), "not in recovery");
    let mut ack = acked(Timestamp::ZERO, SEGMENT);
    ack.position = 11;
    controller.on_ack(&ack, &rtt);
    assert!(controller.on_approval(Timestamp::ZERO, &path(480), &rtt));
    // A scheme that does not ask does not use it.
    let (mut other, rtt) = self::controller(Reduction::Immediate);
    assert!(!other.on_approval(Timestamp::ZERO, &path(2400), &rtt));
}

#[test]
fn an_undo_gives_cubic_its_plateau_and_its_epoch_back() {
    let startup = StartupConfig::SlowStart(Default::default());
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    let config = ControllerConfig {
        segment: Bytes::new(SEGMENT),
        initial_window: 100,
        undo: true,
        ..ControllerConfig::new(startup, avoidance)
    };
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let mut spurious = Controller::new(config).unwrap();
    spurious.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    // One reduction, recovery, and an epoch that has begun: W_max = 100, cwnd = 70.
    send(&mut spurious, 100, 100 * SEGMENT);
    spurious.on_loss(&loss(1, 100 * SEGMENT), &rtt);
    let acknowledge = |controller: &mut Controller, ms: u64, position: u64| {
        let now = Timestamp::ZERO + Duration::from_millis(ms);
        controller.on_ack(&Ack { position, ..acked(now, 10 * SEGMENT) }, &rtt);
    };
    acknowledge(&mut spurious, 100, 101);
    acknowledge(&mut spurious, 200, 102);
    let mut undisturbed = spurious.clone();
    send(&mut spurious, 200, 70 * SEGMENT);
    spurious.on_loss(&loss(150, 70 * SEGMENT), &rtt);
    assert!(spurious.cwnd() < undisturbed.cwnd());
    spurious.on_spurious_loss(Timestamp::ZERO + Duration::from_millis(250), &rtt);
    // From here on both follow the same cubic, up to the plateau and beyond it (K = cbrt(30 / 0.4) = 4.2 s).
    for round in 3..80 {
        acknowledge(&mut spurious, 100 * round, 200 + round);
        acknowledge(&mut undisturbed, 100 * round, 200 + round);
        assert_eq!(spurious.cwnd(), undisturbed.cwnd(), "round {round}");
    }
    assert!(spurious.cwnd() > Bytes::new(100 * SEGMENT), "{}", spurious.cwnd());
}

/// CUBIC with a hundred segments that loses the first of them, and the same controller when recovery then ends in a
/// timeout.
fn recovery_that_times_out(timeout_reduction: TimeoutReduction) -> (Controller, Controller) {
    let config = ControllerConfig {
        segment: Bytes::new(SEGMENT),
        initial_window: 100,
        timeout_reduction,
        ..ControllerConfig::new(
            StartupConfig::SlowStart(Default::default()),
            AvoidanceConfig::Cubic(cubic::Config::default()),
        )
    };
    let rtt = RttEstimator::new(Duration::from_millis(100));
    let mut controller = Controller::new(config).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    send(&mut controller, 100, 100 * SEGMENT);
    controller.on_loss(&loss(1, 100 * SEGMENT), &rtt);
    let recovering = controller.clone();
    controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(30 * SEGMENT) }, &rtt);
    (recovering, controller)
}

#[test]
fn the_policy_says_what_a_timeout_in_recovery_leaves_of_ssthresh() {
    let ssthresh = |policy| recovery_that_times_out(policy).1.ssthresh().get() / SEGMENT;
    // The loss has left 100 * 0.7 = 70 segments. Another reduction: 70 * 0.7 = 49. Half of the window of 70: 35.
    assert_eq!(ssthresh(TimeoutReduction::EachTimeout), 49);
    assert_eq!(ssthresh(TimeoutReduction::OncePerWindow), 70);
    assert_eq!(ssthresh(TimeoutReduction::HalfWindow), 35);
}

#[test]
fn once_per_window_still_reduces_for_a_timeout_outside_of_recovery_and_for_the_next_window() {
    let (_, mut controller) = recovery_that_times_out(TimeoutReduction::OncePerWindow);
    let rtt = RttEstimator::new(Duration::from_millis(100));
    let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(SEGMENT) };
    // The same data again: held.
    controller.on_timeout(&timeout, &rtt);
    assert_eq!(controller.ssthresh(), Bytes::new(70 * SEGMENT));
    // The timeout has made progress to 12 segments when other data times out: 12 * 0.7 = 8.4.
    for position in 101..=110 {
        controller.on_ack(&Ack { position, ..acked(Timestamp::ZERO, SEGMENT) }, &rtt);
    }
    assert_eq!(controller.cwnd(), Bytes::new(12 * SEGMENT));
    controller.on_timeout(&timeout, &rtt);
    assert_eq!(controller.ssthresh(), Bytes::new(8400));
}

#[test]
fn with_half_window_persistent_congestion_halves_too() {
    // The loss has left 70 segments.
    let (mut controller, _) = recovery_that_times_out(TimeoutReduction::HalfWindow);
    let rtt = RttEstimator::new(Duration::from_millis(100));
    controller.on_persistent_congestion(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::ZERO }, &rtt);
    assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(2 * SEGMENT), Bytes::new(35 * SEGMENT)));
}

#[test]
fn cubic_begins_anew_after_a_timeout() {
    let (_, mut controller) = recovery_that_times_out(TimeoutReduction::OncePerWindow);
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let acknowledge = |controller: &mut Controller, ms: u64, bytes: u64| {
        let now = Timestamp::ZERO + Duration::from_millis(ms);
        controller.on_ack(&Ack { position: 101 + ms, ..acked(now, bytes) }, &rtt);
    };
    // Slow start from 2 to ssthresh, 70 segments, with one acknowledgement.
    acknowledge(&mut controller, 0, 70 * SEGMENT);
    assert_eq!(controller.cwnd(), Bytes::new(70 * SEGMENT));
    // A second of congestion avoidance in which each acknowledgement is for a tenth of a window. K = 0 and W_max = 70
    // (RFC 9438, section 4.8): W(1.1) = 70 + 0.4 * 1.1^3 = 70.5, and Reno's estimate, 0.529 segments in each of ten
    // round trips, 75.3. Towards W_max = 100 with K = 4.2 s it would be W(1.1) = 100 - 0.4 * 3.1^3 = 88.
    for tenth in 1..=100 {
        acknowledge(&mut controller, tenth * 10, 7 * SEGMENT);
    }
    let segments = controller.cwnd().get() as f64 / SEGMENT as f64;
    assert!((74.0..77.0).contains(&segments), "{segments}");
}

/// HyStart that has left slow start because of the delay, has timed out, and is then told of a round trip with a longer
/// RTT.
fn delayed_after_a_timeout(slow_start_after_timeout: SlowStartAfterTimeout, variant: hystart::Variant) -> Controller {
    let startup =
        StartupConfig::Hystart(hystart::Config { variant: Some(variant), train: Some(false), ..Default::default() });
    let config = ControllerConfig {
        segment: Bytes::new(SEGMENT),
        initial_window: 100,
        slow_start_after_timeout,
        pacing: None,
        ..ControllerConfig::new(startup, AvoidanceConfig::Reno(Default::default()))
    };
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let mut controller = Controller::new(config).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    let mut position = 0;
    let mut round = |controller: &mut Controller, sample: u64, estimator: &RttEstimator| {
        for _ in 0..40 {
            position += 1;
            send(controller, position, 40 * SEGMENT);
        }
        for place in (0..40).rev() {
            let ack = acked(Timestamp::ZERO, SEGMENT);
            controller.on_ack(
                &Ack { position: position - place, rtt: Some(Duration::from_millis(sample)), ..ack },
                estimator,
            );
        }
    };
    let mut longer = RttEstimator::new(Duration::from_millis(300));
    longer.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    (0..50).for_each(|_| longer.update(Timestamp::ZERO, Duration::from_millis(300), Duration::ZERO));
    round(&mut controller, 100, &rtt);
    round(&mut controller, 300, &longer);
    assert!(!controller.in_startup(), "the RTT has tripled");
    controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(100 * SEGMENT) }, &rtt);
    assert!(controller.ssthresh() > Bytes::new(60 * SEGMENT));
    // 2 + 40 segments in the first round trip; the second is too slow.
    round(&mut controller, 100, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(42 * SEGMENT));
    round(&mut controller, 300, &longer);
    controller
}

#[test]
fn hystart_runs_again_after_a_timeout_where_the_host_wants_it() {
    for variant in [hystart::Variant::Quic, hystart::Variant::Linux, hystart::Variant::Ns3] {
        let classic = delayed_after_a_timeout(SlowStartAfterTimeout::Classic, variant);
        assert!(classic.cwnd() >= classic.ssthresh(), "up to ssthresh, {}", classic.ssthresh());
        assert!(classic.ssthresh() > Bytes::new(60 * SEGMENT));
        let again = delayed_after_a_timeout(SlowStartAfterTimeout::Scheme, variant);
        assert!(again.ssthresh() < Bytes::new(53 * SEGMENT), "left with {} ({variant:?})", again.ssthresh());
        assert!(again.cwnd() < again.ssthresh() + Bytes::new(2 * SEGMENT), "congestion avoidance since then");
        assert!(!again.in_startup(), "startup itself was over before");
    }
}

#[test]
fn a_scheme_that_is_no_rule_for_leaving_slow_start_does_not_run_again() {
    let startup = StartupConfig::HystartPlusPlus(Default::default());
    let config = ControllerConfig {
        slow_start_after_timeout: SlowStartAfterTimeout::Scheme,
        ..ControllerConfig::new(startup, AvoidanceConfig::Reno(Default::default()))
    };
    let rtt = RttEstimator::new(Duration::from_millis(100));
    let mut controller = Controller::new(config).unwrap();
    controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
    controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(12_000) }, &rtt);
    assert_eq!(controller.phase, Phase::Restart { by_scheme: false });
}

#[test]
fn a_timeout_ends_the_launch() {
    // Jump Start launches half a megabyte over 100 ms: 40 Mbit/s.
    let startup = StartupConfig::JumpStart(Default::default());
    let mut rtt = RttEstimator::new(Duration::from_millis(100));
    rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
    let path = PathKnowledge {
        handshake_rtt: Some(Duration::from_millis(100)),
        bytes_waiting: Some(Bytes::new(500_000)),
        receive_window: Some(Bytes::new(1_000_000)),
        ..PathKnowledge::default()
    };
    let mut controller =
        Controller::new(ControllerConfig::new(startup, AvoidanceConfig::Reno(Default::default()))).unwrap();
    controller.launch(Timestamp::ZERO, &path, &rtt);
    assert!(controller.pacing_rate() > Some(Rate::from_mbit(39)));
    send(&mut controller, 1, SEGMENT);
    controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(SEGMENT) }, &rtt);
    // Two segments of 1200 bytes in 100 ms, twice as fast: 384 kbit/s.
    assert_eq!(controller.pacing_rate(), Some(Rate::from_bits_per_sec(384_000)));
    // The burst is the host's again, not more than the window.
    assert_eq!(controller.output().burst, Bytes::new(2400));
}

#[test]
fn an_approval_of_which_nothing_has_left_is_void_when_an_earlier_packet_is_lost() {
    let startup = StartupConfig::QuickStart(quick_start::Config { header: Bytes::ZERO, ..Default::default() });
    for reduction in [Reduction::Immediate, Reduction::Prr, Reduction::PrrPerPacket, Reduction::PrrSafe] {
        let mut rtt = RttEstimator::new(Duration::from_millis(100));
        rtt.update(Timestamp::ZERO, Duration::from_millis(100), Duration::ZERO);
        let mut config = ControllerConfig::new(startup.clone(), AvoidanceConfig::Reno(reno::Config::default()));
        (config.segment, config.reduction, config.undo) = (Bytes::new(SEGMENT), reduction, true);
        let mut controller = Controller::new(config).unwrap();
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        (1..=10).for_each(|position| send(&mut controller, position, position * SEGMENT));
        // 2.4 Mbit/s * 100 ms = 30 segments are approved, none of which leaves.
        let path = PathKnowledge {
            approved_rate: Some(Rate::from_bits_per_sec(2_400_000)),
            handshake_rtt: Some(Duration::from_millis(100)),
            ..PathKnowledge::default()
        };
        assert!(controller.on_approval(Timestamp::ZERO, &path, &rtt));
        controller.on_retransmission(1, Bytes::new(SEGMENT));
        controller.on_loss(&loss(1, 10 * SEGMENT), &rtt);
        // Half of the window of ten.
        assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(5 * SEGMENT), Bytes::new(5 * SEGMENT)));
        // The packet was only late: ten again.
        let mut late = controller.clone();
        late.on_spurious_loss(Timestamp::ZERO, &rtt);
        assert_eq!((late.cwnd(), late.ssthresh()), (Bytes::new(10 * SEGMENT), Bytes::MAX));
        assert_eq!(controller.next_wakeup(), Timestamp::NEVER, "there is nothing left to expire");
        controller.on_timer(Timestamp::ZERO + Duration::from_millis(100), &rtt);
        send(&mut controller, 11, 5 * SEGMENT);
        controller.on_ack(&Ack { position: 11, ..acked(Timestamp::ZERO, SEGMENT) }, &rtt);
        assert!(!controller.in_recovery());
        assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(5 * SEGMENT), Bytes::new(5 * SEGMENT)));
    }
}

/// A scheme that stays in charge of a loss, and ends in the recovery from it with a window that knows of no threshold.
#[derive(Clone, Debug)]
struct StaysInCharge;

impl Startup for StaysInCharge {
    fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        Launch::window(Bytes::new(20 * SEGMENT))
    }

    fn on_ack(&mut self, _ack: &Ack, window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
        Step::Continue { cwnd: window.cwnd }
    }

    fn on_congestion(&mut self, _loss: &Loss, _window: Window, _reduced: Bytes) -> Step {
        Step::Continue { cwnd: Bytes::new(7 * SEGMENT) }
    }

    fn on_timer(&mut self, _now: Timestamp, window: Window) -> Step {
        Step::Exit(Continuation { cwnd: window.cwnd, ssthresh: Bytes::MAX, reason: ExitReason::Validated })
    }
}

#[test]
fn recovery_leads_to_its_target_whatever_becomes_of_ssthresh() {
    for reduction in [Reduction::Immediate, Reduction::Prr, Reduction::PrrPerPacket, Reduction::PrrSafe] {
        let (template, rtt) = controller(reduction);
        let startup = StartupState::Custom(Box::new(StaysInCharge));
        let mut controller = Controller::with_algorithms(template.config, startup, template.avoidance).unwrap();
        controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
        send(&mut controller, 20, 20 * SEGMENT);
        controller.on_loss(&loss(1, 20 * SEGMENT), &rtt);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (Bytes::new(7 * SEGMENT), Bytes::MAX));
        let mut persistent = controller.clone();
        controller.on_timer(Timestamp::ZERO, &rtt);
        assert!(!controller.in_startup() && controller.in_recovery());
        controller.on_ack(&Ack { position: 21, ..acked(Timestamp::ZERO, SEGMENT) }, &rtt);
        assert_eq!(controller.cwnd(), Bytes::new(7 * SEGMENT), "{reduction:?}");
        // Persistent congestion leaves the target as ssthresh.
        let timeout = Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::ZERO };
        persistent.on_persistent_congestion(&timeout, &rtt);
        assert_eq!(persistent.ssthresh(), Bytes::new(7 * SEGMENT));
    }
}

#[test]
fn a_window_below_a_segment_of_the_new_size_becomes_one_segment() {
    let (mut controller, rtt) = controller(Reduction::Immediate);
    controller.on_timeout(&Timeout { now: Timestamp::ZERO, in_flight_before: Bytes::new(SEGMENT) }, &rtt);
    assert_eq!(controller.cwnd(), Bytes::new(2 * SEGMENT));
    controller.set_segment(Bytes::new(9000));
    assert_eq!(controller.cwnd(), Bytes::new(9000));
}

#[test]
fn a_launch_from_any_rate_and_rtt_stays_far_from_the_end_of_the_number_range() {
    // 2^64 bit/s for 3 h would be a window above 2^64 bytes.
    let mut rtt = RttEstimator::new(Duration::from_millis(10_000_000));
    rtt.update(Timestamp::ZERO, Duration::from_millis(10_000_000), Duration::ZERO);
    let huge = Some(Rate::from_bits_per_sec(u64::MAX));
    let path = PathKnowledge { requested_rate: huge, approved_rate: huge, oracle_rate: huge, ..generous(None) };
    for startup in StartupConfig::defaults() {
        let avoidance = AvoidanceConfig::Reno(Default::default());
        let mut controller = Controller::new(ControllerConfig::new(startup.clone(), avoidance)).unwrap();
        controller.launch(Timestamp::ZERO, &path, &rtt);
        assert!(controller.cwnd() <= LARGEST_WINDOW, "{}: {}", startup.name(), controller.cwnd());
    }
}

/// A scheme of the caller that returns the same nonsense for everything.
#[derive(Clone, Debug)]
struct Nonsense {
    cwnd: Bytes,
    rate: Option<Rate>,
    /// It ends with this threshold, at its launch or with the first acknowledgement.
    ends: Option<(bool, Bytes)>,
    wakeup: Timestamp,
}

impl Nonsense {
    fn step(&self) -> Step {
        match self.ends {
            Some((false, ssthresh)) => {
                Step::Exit(Continuation { cwnd: self.cwnd, ssthresh, reason: ExitReason::Other("nonsense") })
            }
            _ => Step::Continue { cwnd: self.cwnd },
        }
    }
}

impl Startup for Nonsense {
    fn launch(&mut self, _: Timestamp, _: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        let continuation = match self.ends {
            Some((true, ssthresh)) => {
                Some(Continuation { cwnd: self.cwnd, ssthresh, reason: ExitReason::Other("nonsense") })
            }
            _ => None,
        };
        Launch { cwnd: self.cwnd, pacing_rate: self.rate, burst: Some(Bytes::ZERO), continuation }
    }

    fn on_ack(&mut self, _: &Ack, _: Window, _: bool, _: &RttEstimator) -> Step {
        self.step()
    }

    fn on_congestion(&mut self, _: &Loss, _: Window, _: Bytes) -> Step {
        self.step()
    }

    fn on_recovered(&mut self, _: Timestamp, _: Window) -> Step {
        self.step()
    }

    fn on_timer(&mut self, _: Timestamp, _: Window) -> Step {
        self.step()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn next_wakeup(&self) -> Timestamp {
        self.wakeup
    }
}

#[test]
fn nothing_that_a_scheme_of_the_caller_returns_stops_the_sender() {
    let (plain, rtt) = controller(Reduction::Immediate);
    let least = Bytes::new(SEGMENT);
    let ends = [None, Some((true, Bytes::ZERO)), Some((false, Bytes::ZERO)), Some((false, Bytes::MAX))];
    let avoidances = [
        AvoidanceConfig::Reno(reno::Config::default()),
        AvoidanceConfig::Cubic(cubic::Config::default()),
        AvoidanceConfig::Bbr(Default::default()),
    ];
    let reductions = [Reduction::Immediate, Reduction::Prr, Reduction::PrrSafe];
    for (cwnd, rate) in [Bytes::ZERO, Bytes::new(1), Bytes::MAX].into_iter().flat_map(|cwnd| {
        [None, Some(Rate::ZERO), Some(Rate::from_bits_per_sec(u64::MAX))].into_iter().map(move |rate| (cwnd, rate))
    }) {
        for (ends, avoidance, reduction) in ends.into_iter().flat_map(|ends| {
            let pairs = avoidances.iter().flat_map(move |avoidance| reductions.map(|reduction| (avoidance, reduction)));
            pairs.map(move |(avoidance, reduction)| (ends, avoidance, reduction))
        }) {
            let scheme = Nonsense { cwnd, rate, ends, wakeup: Timestamp::ZERO };
            let config = ControllerConfig { reduction, ..plain.config.clone() };
            let avoidance = avoidance.build(SegmentSize(least));
            let startup = StartupState::Custom(Box::new(scheme));
            let mut controller = Controller::with_algorithms(config, startup, avoidance).unwrap();
            controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &rtt);
            let check = |controller: &mut Controller, now: Timestamp| {
                let output = controller.output();
                assert!(output.cwnd >= least && output.cwnd <= LARGEST_WINDOW, "{cwnd}: {output:?}");
                assert!(output.pacing_rate.is_none_or(|rate| rate >= Rate::from_bits_per_sec(1000)), "{output:?}");
                // Called as often as it asks, the timer moves on.
                controller.on_timer(now, &rtt);
                assert!(controller.next_wakeup() > now, "{ends:?} {now:?}");
            };
            for round in 1..60 {
                let now = Timestamp::ZERO + Duration::from_millis(100 * round);
                check(&mut controller, now);
                send(&mut controller, 10 * round, 10 * SEGMENT);
                match round % 7 {
                    3 => controller.on_loss(&loss(10 * round, 10 * SEGMENT), &rtt),
                    5 => controller.on_timeout(&Timeout { now, in_flight_before: least * 10 }, &rtt),
                    _ => controller.on_ack(&acked(now, SEGMENT), &rtt),
                }
                check(&mut controller, now);
            }
        }
    }
}
