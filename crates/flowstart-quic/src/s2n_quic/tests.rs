use super::*;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::event::ExitReason;
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge};
use flowstart_core::startup::StartupConfig;
use flowstart_core::units::Rate;
use num_rational::Ratio;
use proptest::prelude::*;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::time::{Clock as _, NoopClock};

const PACKET: usize = 1200;
const MS: fn(u64) -> std::time::Duration = std::time::Duration::from_millis;

/// Listens to nothing.
struct Nobody;

impl Publisher for Nobody {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, _congestion_window: u32) {}
    fn on_delivery_rate_sampled(&mut self, _rate_sample: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _pacing_rate: Bandwidth, _burst_size: u32, _pacing_gain: Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}

/// Zeros are as good as any.
struct Zeros;

impl random::Generator for Zeros {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }

    fn private_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
}

/// A packet in flight.
#[derive(Clone, Copy)]
struct InFlight {
    left: HostTime,
    bytes: usize,
    info: PacketInfo,
}

/// A path of the host, which makes its calls in its order.
struct Path {
    controller: Controller,
    flow: Arc<Flow>,
    now: HostTime,
    rtt: RttEstimator,
    in_flight: Vec<InFlight>,
}

impl Path {
    fn new(factory: &ControllerFactory, flow: Arc<Flow>) -> Self {
        let controller = Controller::new(&factory.for_flow(flow.clone()), 1200);
        Self { controller, flow, now: NoopClock.get_time(), rtt: RttEstimator::default(), in_flight: Vec::new() }
    }

    /// After a handshake of one packet that took 100 ms.
    fn launched(startup: StartupConfig, avoidance: AvoidanceConfig, known: PathKnowledge) -> Self {
        let config = ControllerConfig { undo: true, ..ControllerConfig::new(startup, avoidance) };
        let mut path = Self::new(&ControllerFactory::forced(config).unwrap(), Flow::new(known));
        path.send(PACKET, None);
        path.now += MS(100);
        path.acknowledge(0..1, 0, 0);
        path
    }

    fn send(&mut self, bytes: usize, app_limited: Option<bool>) {
        let info = self.controller.on_packet_sent(self.now, bytes, app_limited, &self.rtt, &mut Nobody);
        self.in_flight.push(InFlight { left: self.now, bytes, info });
    }

    /// An ACK frame: takes the packets of `range` for delivered, the `lost` oldest ones before them for lost, and
    /// echoes marks.
    fn acknowledge(&mut self, range: std::ops::Range<usize>, lost: usize, marks: u64) {
        let delivered: Vec<_> = self.in_flight.drain(range).collect();
        let Some(newest) = delivered.last().copied() else { return };
        let latest = self.now - newest.left;
        let space = PacketNumberSpace::ApplicationData;
        self.rtt.update_rtt(MS(0), latest, self.now, true, space);
        self.controller.on_rtt_update(newest.left, self.now, &self.rtt, &mut Nobody);
        self.lose(lost, false);
        if marks > 0 {
            self.controller.on_explicit_congestion(marks, self.now, &mut Nobody);
        }
        let bytes = delivered.iter().map(|packet| packet.bytes).sum();
        if bytes > 0 {
            let (rtt, zeros) = (&self.rtt, &mut Zeros);
            self.controller.on_ack(newest.left, bytes, newest.info, rtt, zeros, self.now, &mut Nobody);
        }
    }

    /// The oldest packets are lost.
    fn lose(&mut self, count: usize, persistent: bool) {
        for packet in self.in_flight.drain(..count.min(self.in_flight.len())) {
            if packet.bytes > 0 {
                let (bytes, zeros) = (packet.bytes as u32, &mut Zeros);
                self.controller.on_packet_lost(bytes, packet.info, persistent, false, zeros, self.now, &mut Nobody);
            }
        }
    }

    /// Sends as the host does, when the window and the time of departure allow; returns the times in nanoseconds.
    fn send_paced(&mut self, count: usize) -> Vec<u64> {
        let begin = self.now;
        let mut left = Vec::new();
        while left.len() < count && !self.controller.is_congestion_limited() {
            self.now = self.controller.earliest_departure_time().map_or(self.now, |due| due.max(self.now));
            left.push((self.now - begin).as_nanos() as u64);
            self.send(PACKET, Some(false));
        }
        left
    }
}

fn startup(name: &str) -> StartupConfig {
    StartupConfig::defaults().into_iter().find(|config| config.name() == name).unwrap()
}

fn cubic() -> AvoidanceConfig {
    AvoidanceConfig::defaults().swap_remove(1)
}

fn prague() -> AvoidanceConfig {
    AvoidanceConfig::Prague(Default::default())
}

fn hinted(mbit: u64) -> PathKnowledge {
    let hint = Hint { bandwidth: Rate::from_mbit(mbit), technology: AccessTechnology::Ethernet };
    PathKnowledge { hint: Some(hint), bytes_waiting: Some(Bytes::new(600_000)), ..PathKnowledge::default() }
}

#[test]
fn packets_are_due_at_the_rate_of_the_launch() {
    for name in ["jump-start", "blitzstart", "more-start"] {
        let known = PathKnowledge { requested_rate: Some(Rate::from_mbit(40)), ..hinted(50) };
        let mut path = Path::launched(startup(name), cubic(), known);
        path.controller.congestion_window();
        let burst = {
            let mut burst = Bytes::ZERO;
            path.controller.hosted.tell(|sender| burst = sender.burst());
            burst.get().div_ceil(PACKET as u64) as usize
        };
        let left = path.send_paced(burst + 100);
        assert_eq!(left.len(), burst + 100, "{name}: the window of the launch is too small for this test");
        let rate = path.flow.status().pacing_rate.expect(name);
        // The first `burst` packets leave together, and the host counts microseconds.
        assert!(left[..burst].iter().all(|time| *time == 0), "{name}: {burst} of {left:?}");
        let gap = rate.time_for(Bytes::new(PACKET as u64)).as_nanos();
        for (number, pair) in left[burst - 1..].windows(2).enumerate() {
            assert!((pair[1] - pair[0]).abs_diff(gap) <= 1000, "{name}, {number}: {pair:?} for {gap}");
        }
        let (first, last) = (left[burst - 1], left[burst + 99]);
        assert!((last - first).abs_diff(gap * 100) <= 1000, "{name}: {} for {}", last - first, gap * 100);
    }
}

#[test]
fn nothing_is_paced_before_the_launch() {
    let factory = ControllerFactory::new(startup("slow-start"), cubic()).unwrap();
    let mut path = Path::new(&factory, Flow::new(PathKnowledge::default()));
    assert_eq!(path.controller.earliest_departure_time(), None);
    // The window of 10 packets leaves within a microsecond.
    assert!(path.send_paced(100).iter().all(|time| *time <= 1000));
    assert_eq!((path.in_flight.len(), path.controller.bytes_in_flight()), (10, 12_000));
}

#[test]
fn losses_of_a_frame_reduce_before_its_sum_counts() {
    let mut path = Path::launched(startup("slow-start"), cubic(), PathKnowledge::default());
    (0..10).for_each(|_| path.send(PACKET, Some(false)));
    path.now += MS(100);
    path.acknowledge(3..10, 3, 0);
    // CUBIC makes 0.7 of a window of 10 packets, not of the 17 that the sum would have made of it first.
    assert_eq!((path.controller.congestion_window(), path.controller.bytes_in_flight()), (8400, 0));
    let status = path.flow.status();
    assert_eq!((status.lost_packets, status.lost, status.startup_lost), (3, Bytes::new(3600), Bytes::new(3600)));
    assert_eq!(status.exit.map(|(_, reason, _)| reason), Some(ExitReason::Loss));
    assert_eq!(status.delivered, Bytes::new(8400));
}

#[test]
fn two_frames_of_one_moment_are_two_frames() {
    let mut path = Path::launched(startup("slow-start"), cubic(), PathKnowledge::default());
    (0..10).for_each(|_| path.send(PACKET, Some(false)));
    path.now += MS(100);
    path.acknowledge(0..4, 0, 0);
    path.acknowledge(0..6, 0, 0);
    assert_eq!((path.controller.congestion_window(), path.flow.status().delivered), (24_000, Bytes::new(12_000)));
}

#[test]
fn the_receivers_delay_is_taken_off_the_sample_of_its_own_frame() {
    let mut path = Path::launched(startup("slow-start"), cubic(), PathKnowledge::default());
    path.send(PACKET, Some(false));
    path.now += MS(120);
    // The receiver waited for 20 of 120 ms, so the host's smoothed RTT stays at 100 ms.
    path.rtt.update_rtt(MS(20), MS(120), path.now, false, PacketNumberSpace::ApplicationData);
    let sent = path.in_flight.remove(0);
    path.controller.on_rtt_update(sent.left, path.now, &path.rtt, &mut Nobody);
    path.controller.on_ack(sent.left, PACKET, sent.info, &path.rtt, &mut Zeros, path.now, &mut Nobody);
    path.controller.congestion_window();
    let smoothed = path.flow.status().smoothed_rtt.map(|rtt| rtt.as_millis_f64().round());
    assert_eq!((smoothed, path.rtt.smoothed_rtt()), (Some(100.0), MS(100)));
}

#[test]
fn an_application_that_sends_little_does_not_grow_the_window() {
    let window = |app_limited| {
        let mut path = Path::launched(startup("slow-start"), cubic(), PathKnowledge::default());
        (0..8).for_each(|_| path.send(PACKET, Some(app_limited)));
        path.now += MS(100);
        path.acknowledge(0..8, 0, 0);
        path.controller.congestion_window()
    };
    assert_eq!((window(true), window(false)), (12_000, 21_600));
}

#[test]
fn packets_of_acknowledgements_count_nothing_and_stand_for_what_left_before_them() {
    let mut path = Path::launched(startup("slow-start"), cubic(), PathKnowledge::default());
    (0..2).for_each(|_| path.send(PACKET, Some(false)));
    path.send(0, Some(true));
    assert_eq!(path.controller.bytes_in_flight(), 2400);
    path.now += MS(100);
    // The newest packet that this frame acknowledges holds only acknowledgements.
    path.acknowledge(0..3, 0, 0);
    assert_eq!(path.controller.bytes_in_flight(), 0);
    assert_eq!(path.flow.status().delivered, Bytes::new(2400));
}

#[test]
fn what_is_discarded_is_in_flight_no_longer() {
    let mut path = Path::launched(startup("slow-start"), cubic(), PathKnowledge::default());
    (0..10).for_each(|_| path.send(PACKET, Some(false)));
    assert!(path.controller.is_congestion_limited());
    path.controller.on_packet_discarded(PACKET, &mut Nobody);
    assert_eq!((path.controller.bytes_in_flight(), path.controller.congestion_window()), (10_800, 12_000));
    assert!(!path.controller.is_congestion_limited());
}

#[test]
fn prague_is_refused_because_the_host_sends_ect_0() {
    let refused = ControllerFactory::new(startup("slow-start"), prague()).unwrap_err();
    assert!(
        matches!(refused, crate::Unsupported::Needs { host: "s2n-quic", scheme: "prague", missing: Needs::ECT_1 }),
        "{refused}"
    );
    assert!(refused.to_string().contains("ECT(1) on its packets"), "{refused}");
}

#[test]
fn the_number_of_marks_reaches_the_controller() {
    // Forced, Prague shows that the counts are there: the more of a window is marked, the smaller the next ones.
    let window = |marks| {
        let mut path = Path::launched(startup("slow-start"), prague(), PathKnowledge::default());
        for round in 0..20 {
            path.send_paced(1000);
            path.now += MS(100);
            let all = path.in_flight.len();
            path.acknowledge(0..all, 0, if round < 2 { 1 } else { marks });
        }
        path.controller.congestion_window()
    };
    let windows = [window(0), window(1), window(5)];
    assert!(windows.windows(2).all(|pair| pair[0] > pair[1]), "{windows:?}");
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Sent { bytes: usize, app_limited: Option<bool> },
    Acknowledged { back: usize, count: usize, lost: usize, marks: u64 },
    Lost { count: usize, persistent: bool },
    Marked(u64),
    Discarded,
    PacketSize(u16),
    Time { millis: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..1500usize, any::<Option<bool>>()).prop_map(|(bytes, app_limited)| Event::Sent { bytes, app_limited }),
        6 => (0..40usize, 1..20usize, 0..4usize, 0..3u64)
            .prop_map(|(back, count, lost, marks)| Event::Acknowledged { back, count, lost, marks }),
        2 => (1..20usize, prop::bool::weighted(0.1)).prop_map(|(count, persistent)| Event::Lost { count, persistent }),
        1 => any::<u64>().prop_map(Event::Marked),
        1 => Just(Event::Discarded),
        1 => (1200..9000u16).prop_map(Event::PacketSize),
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
                let known = PathKnowledge {
                    bytes_waiting: Some(Bytes::new(waiting)),
                    requested_rate: Some(Rate::from_mbit(hint)),
                    ..hinted(hint)
                };
                let config = ControllerConfig { undo: true, ..ControllerConfig::new(startup.clone(), avoidance) };
                let mut path = Path::new(&ControllerFactory::forced(config).unwrap(), Flow::new(known));
                for event in &events {
                    match *event {
                        Event::Sent { bytes, app_limited } => path.send(bytes, app_limited),
                        Event::Acknowledged { back, count, lost, marks } => {
                            let end = path.in_flight.len().saturating_sub(back);
                            path.acknowledge(end.saturating_sub(count)..end, lost, marks);
                        }
                        Event::Lost { count, persistent } => path.lose(count, persistent),
                        Event::Marked(count) => path.controller.on_explicit_congestion(count, path.now, &mut Nobody),
                        Event::Discarded => {
                            let bytes = path.in_flight.pop().map_or(0, |packet| packet.bytes);
                            path.controller.on_packet_discarded(bytes, &mut Nobody);
                        }
                        Event::PacketSize(size) => path.controller.on_mtu_update(size, &mut Nobody),
                        Event::Time { millis } => path.now += MS(millis),
                    }
                    let window = path.controller.congestion_window();
                    prop_assert!(window as usize >= PACKET, "{startup:?}: {window}");
                    let in_flight: usize = path.in_flight.iter().map(|packet| packet.bytes).sum();
                    prop_assert_eq!(path.controller.bytes_in_flight() as usize, in_flight);
                    let answer = path.controller.hosted.answer();
                    prop_assert!(answer.pacing_rate > Rate::from_bits_per_sec(0), "{startup:?}");
                    prop_assert!(path.controller.send_quantum() >= Some(2 * PACKET));
                    path.controller.earliest_departure_time();
                }
                let status = path.flow.status();
                prop_assert!(status.startup_lost <= status.lost.min(status.startup_sent));
            }
        }
    }
}
