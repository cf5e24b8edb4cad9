//! A controller with the bookkeeping of a host, whatever happens to it. The contracts and the fuzz target of the
//! controller have it in common.

use std::collections::VecDeque;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::{
    AckFrame, Controller, ControllerConfig, GrowthRule, Reduction, ReductionBase, Resume, WindowValidation,
};
use flowstart_core::delivery_rate::{DeliveryRate, Snapshot};
use flowstart_core::event::{Ack, Ecn, Loss, Sent, Timeout};
use flowstart_core::path::{AccessTechnology, Concurrent, Hint, PathKnowledge, SavedPath};
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::Window;

/// The smallest segment.
pub(crate) const SEGMENT: u64 = 1200;

/// Policies of hosts that differ in what a controller does.
pub(crate) const POLICIES: [(Reduction, WindowValidation); 6] = [
    (Reduction::Immediate, WindowValidation::Startup),
    (Reduction::Prr, WindowValidation::Rfc2861),
    (Reduction::PrrPerPacket, WindowValidation::Rfc5681),
    (Reduction::PrrSafe, WindowValidation::Rfc7661),
    (Reduction::PrrSafe, WindowValidation::Keep),
    (Reduction::PrrSafe, WindowValidation::Linux),
];

/// Something that happens to a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Wait(u32),
    Send,
    Acknowledge {
        packets: u8,
        rtt_ms: u16,
        app_limited: bool,
    },
    Lose {
        packets: u8,
    },
    Mark,
    TimeOut,
    /// Everything in flight is declared lost, over a long time.
    CongestPersistently,
    /// What the last reduction took for lost was delivered.
    FindSpurious,
    /// Path MTU discovery found another size.
    ChangeSegment(u16),
    Timer,
    /// Everything is acknowledged, nothing is sent for a while, and then data waits again.
    Idle {
        ms: u32,
    },
    /// Nothing waits to be sent.
    Limited,
    ChangePath,
    /// Elements of the path advise this many kbit/s, or nothing more.
    Advice(Option<u32>),
    /// Other connections to the peer leave this window to the flow.
    Share(u32),
}

/// A path of which everything is known.
pub(crate) fn known() -> PathKnowledge {
    PathKnowledge {
        handshake_rtt: Some(Duration::from_millis(50)),
        saved: Some(SavedPath {
            rtt: Duration::from_millis(40),
            cwnd: Bytes::new(200_000),
            age: Duration::from_millis(60_000),
        }),
        receive_window: Some(Bytes::new(1_000_000)),
        bytes_waiting: Some(Bytes::new(500_000)),
        hint: Some(Hint { bandwidth: Rate::from_mbit(20), technology: AccessTechnology::Lte }),
        requested_rate: Some(Rate::from_mbit(10)),
        interface_rate: Some(Rate::from_mbit(1000)),
        approved_rate: Some(Rate::from_mbit(12)),
        advised_rate: None,
        oracle_rate: Some(Rate::from_mbit(15)),
        train_rate: Some(Rate::from_mbit(18)),
        concurrent: Some(Concurrent {
            rtt: Duration::from_millis(40),
            window: Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::new(150_000) },
        }),
    }
}

/// A controller with the bookkeeping of a host.
#[derive(Clone)]
pub(crate) struct Host {
    /// The controller.
    pub(crate) controller: Controller,
    /// What it measured.
    pub(crate) rtt: RttEstimator,
    /// The time.
    pub(crate) now: Timestamp,
    /// Bytes of a packet.
    segment: u64,
    /// It paces by itself.
    paced: bool,
    in_flight: u64,
    next: u64,
    /// The last position that was acknowledged or given up.
    acknowledged: u64,
    /// The last position that was sent on an earlier path.
    earlier_path: u64,
    /// Samples of the delivery rate; packets are acknowledged and lost in the order in which they were sent.
    estimator: DeliveryRate,
    snapshots: VecDeque<Snapshot>,
    samples: bool,
    /// What Sensing may use.
    pub(crate) path: PathKnowledge,
}

/// What a host with these policies makes a controller of.
pub(crate) fn config(
    startup: StartupConfig,
    avoidance: AvoidanceConfig,
    (reduction, window_validation): (Reduction, WindowValidation),
) -> ControllerConfig {
    ControllerConfig {
        segment: Bytes::new(SEGMENT),
        reduction,
        reduction_base: ReductionBase::FlightSize,
        growth: GrowthRule::HalfWindow,
        window_validation,
        undo: true,
        ..ControllerConfig::new(startup, avoidance)
    }
}

impl Host {
    /// A host whose controller has launched with what `path` knows; `None` where nobody can make such a controller.
    pub(crate) fn new(config: ControllerConfig, path: PathKnowledge) -> Option<Self> {
        let (segment, reduction, paced) = (config.segment.get(), config.reduction, config.pacing.is_some());
        let mut host = Self {
            segment,
            paced,
            controller: Controller::new(config).ok()?,
            rtt: RttEstimator::new(Duration::from_millis(333)),
            now: Timestamp::ZERO,
            in_flight: 0,
            next: 1,
            acknowledged: 0,
            earlier_path: 0,
            estimator: DeliveryRate::default(),
            snapshots: VecDeque::new(),
            samples: reduction != Reduction::PrrSafe,
            path,
        };
        // The handshake has given the first sample.
        if let Some(sample) = host.path.handshake_rtt {
            host.rtt.update(host.now, sample, Duration::ZERO);
        }
        host.controller.launch(host.now, &host.path, &host.rtt);
        host.check(&Operation::Timer);
        Some(host)
    }

    /// Everything is acknowledged, nothing is sent for this long, and then data waits again.
    pub(crate) fn be_idle(&mut self, idle: Duration) {
        while self.in_flight > 0 {
            self.apply(&Operation::Acknowledge { packets: 19, rtt_ms: 50, app_limited: true });
        }
        self.now += idle;
        let resume = Resume { now: self.now, idle, timeout: Duration::from_millis(200) };
        self.controller.on_resume(&resume, &self.path, &self.rtt);
    }

    /// Packets that were sent.
    #[allow(dead_code, reason = "not every test counts them")]
    pub(crate) fn sent(&self) -> u64 {
        self.next - 1
    }

    /// Packets that are neither acknowledged nor lost.
    #[allow(dead_code, reason = "not every test counts them")]
    pub(crate) fn packets_in_flight(&self) -> u64 {
        self.in_flight / self.segment
    }

    /// It happens, and what a controller promises to its host holds.
    pub(crate) fn apply(&mut self, operation: &Operation) {
        self.happen(operation);
        self.check(operation);
    }

    fn check(&mut self, operation: &Operation) {
        let output = self.controller.output();
        assert!(output.cwnd >= Bytes::new(self.segment), "{output:?} after {operation:?}");
        // What comes near the end of the number range was meant to be no number, or has none.
        assert!(output.cwnd < Bytes::new(1 << 60), "{output:?} after {operation:?}");
        assert!(output.burst <= output.cwnd, "{output:?} after {operation:?}");
        let rate = output.pacing_rate;
        assert!(rate.is_none_or(|rate| rate > Rate::ZERO), "{output:?} after {operation:?}");
        let in_no_time = self.rtt.smoothed() == Duration::ZERO;
        assert!(rate.is_some() || !self.paced || in_no_time, "{output:?} after {operation:?}");
    }

    /// How many of the packets that were sent last were sent on this path, if so many bytes of them are lost. The
    /// congestion of an earlier path is not that of this one (RFC 9000, section 9.4).
    fn of_this_path(&self, bytes: u64) -> u64 {
        (bytes / self.segment).min(self.next - 1 - self.earlier_path)
    }

    fn happen(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Wait(nanos) => self.now = now + Duration::from_nanos(u64::from(nanos)),
            Operation::Send => {
                // A host obeys the window.
                if self.in_flight + self.segment > self.controller.cwnd().get() {
                    return;
                }
                self.in_flight += self.segment;
                let in_flight = Bytes::new(self.in_flight);
                let mut sent = Sent::new(now, Bytes::new(self.segment), in_flight, self.next);
                sent.app_limited = self.next.is_multiple_of(7);
                self.controller.on_sent(&sent);
                self.snapshots.push_back(self.estimator.on_sent(now, Bytes::new(self.segment), in_flight));
                self.next += 1;
            }
            Operation::Acknowledge { packets, rtt_ms, app_limited } => {
                let bytes = (u64::from(packets) * self.segment).min(self.in_flight);
                if bytes == 0 {
                    return;
                }
                let before = self.in_flight;
                self.in_flight -= bytes;
                self.acknowledged = (self.acknowledged + bytes / self.segment).min(self.next - 1);
                let sample = Duration::from_millis(u64::from(rtt_ms));
                // A packet of an earlier path says nothing of this one (RFC 9002, section 5.1 with RFC 9000, section
                // 9.4).
                if self.acknowledged > self.earlier_path {
                    self.rtt.update(now, sample, Duration::ZERO);
                }
                if app_limited {
                    self.estimator.mark_app_limited(Bytes::new(self.in_flight));
                }
                for place in 0..bytes / self.segment {
                    if let Some(snapshot) = self.snapshots.pop_front() {
                        self.estimator.on_delivered(
                            now,
                            &snapshot,
                            self.acknowledged + place,
                            Bytes::new(self.segment),
                        );
                    }
                }
                let mut ack = Ack::new(now, Bytes::new(bytes), bytes / self.segment, self.acknowledged);
                ack.rtt = Some(sample);
                ack.in_flight_before = Bytes::new(before);
                ack.in_flight = Bytes::new(self.in_flight);
                ack.app_limited = app_limited;
                // A host without samples must not hurt either.
                ack.sample = self.samples.then(|| self.estimator.take_sample(self.rtt.min())).flatten();
                self.controller.on_ack_frame(&AckFrame { delivered: Some(ack), ..AckFrame::default() }, &self.rtt);
            }
            Operation::Lose { packets } => {
                let bytes = (u64::from(packets) * self.segment).min(self.in_flight);
                if bytes == 0 {
                    return;
                }
                self.in_flight -= bytes;
                let in_flight = Bytes::new(self.in_flight);
                let position = self.next - 1;
                let of_this_path = self.of_this_path(bytes);
                self.acknowledged = (self.acknowledged + bytes / self.segment).min(position);
                for place in 0..bytes / self.segment {
                    let snapshot = self.snapshots.pop_front();
                    if place >= of_this_path {
                        continue;
                    }
                    self.controller.on_retransmission(position.saturating_sub(place), Bytes::new(self.segment));
                    if let Some(snapshot) = snapshot {
                        let places = (2 * place, 2 * place + 1);
                        let lost = self.estimator.on_lost(now, &snapshot, places, Bytes::new(self.segment));
                        self.controller.on_packet_lost(&lost);
                    }
                }
                if of_this_path > 0 {
                    let bytes = Bytes::new(of_this_path * self.segment);
                    let loss = Loss { now, bytes, position, in_flight_before: in_flight + bytes, in_flight };
                    self.controller.on_loss(&loss, &self.rtt);
                }
            }
            Operation::Mark if self.acknowledged <= self.earlier_path => {}
            Operation::Mark => {
                let ecn = Ecn { now, position: self.acknowledged, in_flight: Bytes::new(self.in_flight), packets: 1 };
                self.controller.on_ack_frame(&AckFrame { marked: Some(ecn), ..AckFrame::default() }, &self.rtt);
            }
            Operation::TimeOut => {
                let in_flight_before = Bytes::new(self.in_flight);
                self.in_flight = 0;
                self.acknowledged = self.next - 1;
                self.snapshots.clear();
                self.controller.on_timeout(&Timeout { now, in_flight_before }, &self.rtt);
            }
            Operation::CongestPersistently => {
                let in_flight_before = Bytes::new(self.in_flight);
                let is_of_this_path = self.of_this_path(self.in_flight) > 0;
                self.happen(&Operation::Lose { packets: u8::MAX });
                if is_of_this_path {
                    self.controller.on_persistent_congestion(&Timeout { now, in_flight_before }, &self.rtt);
                }
            }
            Operation::FindSpurious => {
                self.controller.on_spurious_loss(now, &self.rtt);
                self.controller.on_spurious_timeout(now, &self.rtt);
            }
            Operation::ChangeSegment(bytes) => {
                self.segment = u64::from(bytes).max(self.segment);
                self.controller.set_segment(Bytes::new(self.segment));
            }
            Operation::Timer => {
                self.controller.on_timer(now, &self.rtt);
                // What stays due would be called for ever.
                for _ in 0..100 {
                    if self.controller.next_wakeup() > now {
                        return;
                    }
                    self.controller.on_timer(now, &self.rtt);
                }
                panic!("a wakeup at {:?} stays due at {now:?}", self.controller.next_wakeup());
            }
            Operation::Idle { ms } => self.be_idle(Duration::from_millis(u64::from(ms))),
            Operation::Limited => {
                let (in_flight, timeout) = (Bytes::new(self.in_flight), Duration::from_millis(200));
                self.controller.on_limited(now, in_flight, timeout, Bytes::new(1_000_000), &self.rtt);
            }
            Operation::Advice(kbit) => {
                let rate = kbit.map(|kbit| Rate::from_bits_per_sec(u64::from(kbit) * 1000));
                self.controller.on_advice(now, rate, &self.rtt);
            }
            Operation::Share(bytes) => self.controller.take_share(now, Bytes::new(u64::from(bytes)), &self.rtt),
            Operation::ChangePath => {
                self.rtt = RttEstimator::new(Duration::from_millis(333));
                self.earlier_path = self.next - 1;
                self.controller.on_path_change(now, &self.path.for_new_path(), &self.rtt);
            }
        }
    }
}
