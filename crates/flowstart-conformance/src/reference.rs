//! The controller of `flowstart-core` as a port: what the vectors expect is what it decides.
//!
//! It translates the events as the library for C does, which a test of that library checks: a packet that leaves with
//! nothing else in flight ends idle time, and a step that the scheme has timed happens before the first event at or
//! after its time, or behind an event that makes it due at once.

use flowstart_core::avoidance::{AvoidanceConfig, reno};
use flowstart_core::controller::{AckFrame, Controller, ControllerConfig, Resume};
use flowstart_core::event::{Ack, Decision, Ecn, Loss, Position, Sent, Timeout};
use flowstart_core::launch::UNPACED;
use flowstart_core::path::PathKnowledge;
use flowstart_core::registry::ConfigError;
use flowstart_core::rtt::{GRANULARITY, INITIAL_RTT, MAX_ACK_DELAY, RttEstimator};
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::event::{Acked, Decided, Event, Known};
use crate::{INITIAL_WINDOW, SEGMENT};

/// Packets of the smallest window (RFC 9002, section 7.2).
const MINIMUM_WINDOW: u64 = 2;

/// The controller, with the bookkeeping of a host.
#[derive(Clone, Debug)]
pub struct Reference {
    controller: Controller,
    rtt: RttEstimator,
    /// Size of a full packet.
    segment: Bytes,
    now: Timestamp,
    last_sent: Timestamp,
    /// Losses since the last acknowledgement.
    lost: Option<(Bytes, Position)>,
    /// Position of the last packet that had left when the window was found full.
    full_until: Position,
    /// Position of the last packet that was sent, and of the last that took an earlier path.
    last: Position,
    earlier_path: Position,
    exit_reason: String,
}

impl Reference {
    /// A controller of this scheme.
    ///
    /// # Errors
    ///
    /// A scheme with parameters out of range.
    pub fn new(startup: StartupConfig) -> Result<Self, ConfigError> {
        let avoidance = AvoidanceConfig::Reno(reno::Config::default());
        let config = ControllerConfig {
            segment: Bytes::new(SEGMENT),
            initial_window: INITIAL_WINDOW,
            undo: true,
            ..ControllerConfig::new(startup, avoidance)
        };
        Ok(Self {
            controller: Controller::new(config)?,
            rtt: RttEstimator::new(INITIAL_RTT),
            segment: Bytes::new(SEGMENT),
            now: Timestamp::ZERO,
            last_sent: Timestamp::ZERO,
            lost: None,
            full_until: 0,
            last: 0,
            earlier_path: 0,
            exit_reason: String::new(),
        })
    }

    /// An event happens; the first is a launch.
    pub fn apply(&mut self, event: &Event) {
        match *event {
            Event::Launch { now, known } => {
                self.now = Timestamp::from_nanos(now);
                let path = self.known(&known);
                self.controller.launch(self.now, &path, &self.rtt);
            }
            Event::Path { now, known } => {
                self.advance(now);
                self.take_decisions();
                self.rtt = RttEstimator::new(INITIAL_RTT);
                (self.earlier_path, self.lost) = (self.last, None);
                let path = self.known(&known);
                self.controller.on_path_change(self.now, &path, &self.rtt);
                self.exit_reason.clear();
            }
            Event::Segment { bytes } => {
                self.segment = Bytes::new(bytes);
                self.controller.set_segment(self.segment);
            }
            Event::Sent { now, number, packets, bytes, in_flight } => {
                let before = in_flight - packets * bytes;
                for place in 0..packets {
                    self.advance(now);
                    self.sent(number + place + 1, bytes, before + (place + 1) * bytes);
                }
            }
            Event::Lost { number, packets, bytes } => {
                for place in 0..packets {
                    let position = number + place + 1;
                    // The congestion of an earlier path is not that of this one (RFC 9000, section 9.4).
                    if position <= self.earlier_path {
                        continue;
                    }
                    let (before, highest) = self.lost.unwrap_or_default();
                    self.lost = Some((before + Bytes::new(bytes), highest.max(position)));
                    self.controller.on_retransmission(position, Bytes::new(bytes));
                }
            }
            Event::Acked(acked) => {
                self.advance(acked.now);
                self.acked(&acked);
            }
            Event::Timer { now } => self.advance(now),
            Event::Timeout { now, in_flight } => {
                self.advance(now);
                let timeout = Timeout { now: self.now, in_flight_before: Bytes::new(in_flight) };
                self.controller.on_timeout(&timeout, &self.rtt);
            }
            Event::Spurious { now } => {
                self.advance(now);
                self.controller.on_spurious_loss(self.now, &self.rtt);
            }
        }
        self.advance(self.now.as_nanos());
        self.take_decisions();
    }

    /// What it has decided.
    pub fn decided(&self) -> Decided {
        let ssthresh = Some(self.controller.ssthresh()).filter(|ssthresh| *ssthresh != Bytes::MAX);
        let rate = self.controller.pacing_rate().filter(|rate| *rate < UNPACED);
        Decided {
            cwnd: self.controller.cwnd().max(self.segment * MINIMUM_WINDOW).get(),
            ssthresh: ssthresh.map_or(0, Bytes::get),
            pacing_rate: rate.map_or(0, Rate::bits_per_sec),
            in_startup: self.controller.in_startup(),
            exit_reason: self.exit_reason.clone(),
        }
    }

    /// Whether an acknowledgement of this packet may say that the application limits the sender: the packet did not
    /// fill the window.
    pub(crate) fn left_room(&self, number: u64) -> bool {
        number + 1 > self.full_until
    }

    /// When the next step of the scheme is due; `None`: never.
    pub(crate) fn next_wakeup(&mut self) -> Option<u64> {
        Some(self.controller.next_wakeup()).filter(|due| *due != Timestamp::NEVER).map(Timestamp::as_nanos)
    }

    /// An event happens at `now`: a due step comes first.
    fn advance(&mut self, now: u64) {
        self.now = self.now.max(Timestamp::from_nanos(now));
        if self.controller.in_startup() && self.controller.next_wakeup() <= self.now {
            self.controller.on_timer(self.now, &self.rtt);
        }
    }

    /// What is known of a path before its first data; the handshake gave the first sample.
    fn known(&mut self, known: &Known) -> PathKnowledge {
        let path = known.path();
        if let Some(sample) = path.handshake_rtt {
            self.rtt.update(self.now, sample, Duration::ZERO);
        }
        path
    }

    fn sent(&mut self, position: Position, bytes: u64, in_flight: u64) {
        if in_flight == bytes {
            let timeout = self.rtt.probe_timeout(GRANULARITY, MAX_ACK_DELAY);
            let resume = Resume { now: self.now, idle: self.now.since(self.last_sent), timeout };
            self.controller.on_resume(&resume, &PathKnowledge::default(), &self.rtt);
        }
        self.controller.on_sent(&Sent::new(self.now, Bytes::new(bytes), Bytes::new(in_flight), position));
        if Bytes::new(in_flight) + self.segment > self.controller.cwnd() {
            self.full_until = position;
        }
        self.last = position;
        self.last_sent = self.now;
    }

    fn acked(&mut self, acked: &Acked) {
        let now = self.now;
        let position = if acked.bytes > 0 || acked.marks > 0 { acked.largest + 1 } else { 0 };
        // Packets of an earlier path say nothing of this one.
        let of_this_path = position > self.earlier_path;
        let sample = Some(Duration::from_nanos(acked.rtt)).filter(|sample| of_this_path && *sample > Duration::ZERO);
        if let Some(sample) = sample {
            self.rtt.update(now, sample, Duration::ZERO);
        }
        let lost = self.lost.take();
        let (delivered, in_flight) = (Bytes::new(acked.bytes), Bytes::new(acked.in_flight));
        let in_flight_before = in_flight + delivered + lost.unwrap_or_default().0;
        let frame = AckFrame {
            lost: lost.map(|(bytes, position)| Loss { now, bytes, position, in_flight_before, in_flight }),
            persistent_congestion: acked.persistent == 1 && lost.is_some(),
            marked: (of_this_path && acked.marks > 0).then_some(Ecn {
                now,
                position,
                in_flight: in_flight_before,
                packets: acked.marks,
            }),
            delivered: (of_this_path && acked.bytes > 0).then(|| {
                let mut event = Ack::new(now, delivered, acked.packets, position);
                event.rtt = sample;
                (event.in_flight_before, event.in_flight) = (in_flight_before, in_flight);
                event.safe = lost.is_none();
                event.app_limited = acked.app_limited == 1;
                event
            }),
            duplicate: false,
        };
        self.controller.on_ack_frame(&frame, &self.rtt);
    }

    fn take_decisions(&mut self) {
        while let Some((_, decision)) = self.controller.take_decision() {
            if let Decision::StartupExited { reason, .. } = decision
                && self.exit_reason.is_empty()
            {
                reason.name().clone_into(&mut self.exit_reason);
            }
        }
    }
}
