//! Tells a controller what a recorded connection met, and compares what both would send.
//!
//! A controller wants an acknowledgement as a whole, with the losses that it reveals
//! ([`AckFrame`]). Files have them one after the other, some with the losses first. So what was recorded within
//! [`TOGETHER`] is put together until a packet leaves or another acknowledgement arrives.
//!
//! What hosts of `flowstart-quic` tell a controller late, it is told late here as well: every RTT but the first comes
//! with the acknowledgement behind its own, and the size of packets grows when a probe for it has arrived.

mod acknowledged;
mod differences;

use flowstart_core::controller::{AckFrame, Controller, Resume};
use flowstart_core::delivery_rate::DeliveryRate;
use flowstart_core::event::{Ack, Decision, Ecn, Loss, Position, Sent};
use flowstart_core::launch::UNPACED;
use flowstart_core::needs::Needs;
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::{GRANULARITY, INITIAL_RTT, RttEstimator};
use flowstart_core::sources::Known;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use super::flight::{Delivered, Doubtful, Flight, Packet};
use super::recorded_sender::{Group, Lost, Recorded, Stopped};
use super::survey::Survey;
use super::{Difference, Exit, Launch, LossEvent, Row, Totals, millis};
use crate::recording::Timed;
use crate::recording::event::{Launched, Metrics, Sent as Left, Space, What};

/// A coarse clock may measure less, and no rate can be derived from an RTT of zero.
const SHORTEST_RTT: Duration = Duration::from_micros(1);
/// What is recorded within this time may belong to one acknowledgement.
const TOGETHER: Duration = Duration::from_millis(1);
/// Periods of a probe timeout that losses must cover (RFC 9002, section 7.6.1: `kPersistentCongestionThreshold`).
const PERSISTENT: u64 = 3;
/// Timed steps of a scheme between two events.
const MOST_STEPS: usize = 100;

/// What a replay hands out as it goes.
pub(super) trait Watch {
    fn row(&mut self, row: &Row);
    fn launched(&mut self, launch: Launch);
    fn left_startup(&mut self, exit: Exit);
    fn differs(&mut self, difference: Difference);
    fn lost(&mut self, loss: LossEvent);
}

/// The sender that replays.
pub(super) struct Host<'a> {
    controller: Controller,
    known: PathKnowledge,
    segment: u64,
    /// Size of the packet before.
    previous_size: u64,
    max_ack_delay: Duration,
    watch: &'a mut dyn Watch,
    rtt: RttEstimator,
    /// The latest sample, when it was taken, and the receiver's delay in it: it counts with the next acknowledgement.
    sample: Option<(Timestamp, Duration, Duration)>,
    /// The latest sample that counts, without that delay, which the controller has not got yet.
    adjusted: Option<Duration>,
    rate: DeliveryRate,
    flight: Flight,
    doubtful: Doubtful,
    delivered: Delivered,
    group: Option<Group>,
    recorded: Recorded,
    /// When the first packet of the handshake left that has no number, and how long its answer took.
    handshake: (Option<Timestamp>, Option<Duration>),
    position: Position,
    /// The recorded launch, if the file has one.
    launched: Option<Launched>,
    /// Events with which data begins, and with which the last data leaves for the first time.
    data: (u64, u64),
    /// Bytes that were lost and have not left again.
    owed: u64,
    /// Everything has left, so the application limits the sender.
    has_nothing: bool,
    launched_after: Option<Position>,
    largest_acknowledged: Position,
    marks: [u64; 3],
    last_sent: Timestamp,
    last_acknowledged: Timestamp,
    /// Nothing was acknowledged since a probe timeout.
    timed_out: bool,
    /// Nothing left since the latest loss.
    has_lost: bool,
    now: Timestamp,
    differs: bool,
    exited: bool,
    pub(super) totals: Totals,
}

impl<'a> Host<'a> {
    pub(super) fn new(controller: Controller, known: PathKnowledge, survey: &Survey, watch: &'a mut dyn Watch) -> Self {
        Self {
            controller,
            known,
            segment: survey.segment.get(),
            previous_size: 0,
            max_ack_delay: survey.max_ack_delay,
            watch,
            rtt: RttEstimator::new(INITIAL_RTT),
            sample: None,
            adjusted: None,
            rate: DeliveryRate::default(),
            flight: Flight::default(),
            doubtful: Doubtful::default(),
            delivered: Delivered::default(),
            group: None,
            recorded: Recorded::default(),
            handshake: (None, None),
            position: 0,
            launched: survey.launched.clone(),
            data: (survey.data_begins, survey.data_ends),
            owed: 0,
            has_nothing: false,
            launched_after: None,
            largest_acknowledged: 0,
            marks: [0; 3],
            last_sent: Timestamp::ZERO,
            last_acknowledged: Timestamp::ZERO,
            timed_out: false,
            has_lost: false,
            now: Timestamp::ZERO,
            differs: false,
            exited: false,
            totals: Totals::default(),
        }
    }

    /// An event of the file. The error is about it.
    pub(super) fn take(&mut self, event: &Timed) -> Result<(), String> {
        let now = event.time;
        if self.group.as_ref().is_some_and(|group| now.since(group.time) > TOGETHER) {
            self.settle();
        }
        self.now = self.now.max(now);
        match &event.what {
            What::Sent(sent @ Left { space: Some(space), number: Some(number), .. }) if sent.frames.count => {
                let bytes = sent.bytes.ok_or("data.raw.length: missing; allowed is a packet's size from 1 to 65535")?;
                self.settle();
                self.on_sent(event, (*space, *number), bytes, sent)?;
            }
            What::Sent(Left { space: Some(Space::Initial | Space::Handshake), number: None, .. }) => {
                self.handshake.0.get_or_insert(now);
            }
            What::Sent(sent) if sent.frames.count => self.totals.unfollowed += 1,
            What::Received { space, frames } => {
                if let (Some(sent), None) = self.handshake {
                    self.handshake.1 = Some(now.since(sent).max(SHORTEST_RTT));
                }
                if let Some(space) = space {
                    frames.iter().for_each(|frame| self.on_acknowledged(*space, frame));
                }
            }
            What::Lost { space: Some(space), number: Some(number), probes_size } => {
                self.on_lost(*space, *number, *probes_size);
            }
            What::Metrics(metrics) => self.on_metrics(metrics),
            What::Launched(launched) => {
                self.settle();
                self.try_launch(event.number, None);
                self.on_metrics(&Metrics { cwnd: launched.cwnd, ..Metrics::default() });
            }
            What::State(state) => self.recorded.limited = state == "application_limited",
            What::Sent(_)
            | What::Lost { .. }
            | What::Peer { .. }
            | What::Scheme(_)
            | What::Exit { .. }
            | What::Answered { .. }
            | What::Other => {}
        }
        Ok(())
    }

    /// The file is at its end.
    pub(super) fn end(&mut self) {
        self.settle();
        self.judge(None);
        self.totals.unresolved = self.flight.unresolved();
    }

    /// The controller's state now.
    fn row(&self, event: &'static str) -> Row {
        let launched = self.launched_after.is_some();
        let paced = self.controller.pacing_rate().filter(|rate| launched && *rate < UNPACED);
        Row {
            time_ms: millis(self.now),
            event,
            delivered_bytes: 0,
            lost_bytes: 0,
            in_flight_bytes: self.flight.bytes(),
            cwnd_bytes: self.controller.cwnd().get(),
            ssthresh_bytes: threshold(self.controller.ssthresh()),
            pacing_rate_bps: paced.map(Rate::bits_per_sec),
            in_startup: self.controller.in_startup(),
            certain: !self.differs,
            recorded_cwnd_bytes: self.recorded.metrics.cwnd,
            recorded_ssthresh_bytes: self.recorded.metrics.ssthresh,
            recorded_pacing_rate_bps: self.recorded.metrics.pacing_rate,
            places: (self.largest_acknowledged, self.position),
        }
    }

    /// The recorded sender says what it has. Only what changed is there.
    fn on_metrics(&mut self, metrics: &Metrics) {
        if metrics.cwnd.is_some() {
            self.judge(metrics.cwnd);
        }
        let known = &mut self.recorded.metrics;
        known.cwnd = metrics.cwnd.or(known.cwnd);
        known.ssthresh = metrics.ssthresh.or(known.ssthresh);
        known.pacing_rate = metrics.pacing_rate.or(known.pacing_rate);
    }

    /// A packet of `bytes` left, which counts.
    fn on_sent(&mut self, event: &Timed, packet: (Space, u64), bytes: u64, sent: &Left) -> Result<(), String> {
        let (space, number) = packet;
        self.judge(None);
        self.run_timers();
        let probes_size = sent.probes_size || (sent.frames.only_ping && bytes > self.segment);
        let of_data = space == Space::Application && !sent.frames.only_ping;
        if of_data {
            self.try_launch(event.number, Some(number));
        }
        let before = self.flight.bytes();
        if self.launched_after.is_some() {
            if before == 0 {
                self.resume();
            }
            self.compare(event, number, (before, of_data, probes_size));
        }
        self.position += 1;
        let in_flight = before + bytes;
        let snapshot = self.rate.on_sent(self.now, Bytes::new(bytes), Bytes::new(in_flight));
        let solicits = sent.frames.solicit;
        self.flight.add(space, number, Packet { position: self.position, bytes, snapshot, solicits, probes_size })?;
        (self.totals.sent, self.totals.sent_bytes) = (self.totals.sent + 1, self.totals.sent_bytes + bytes);
        if of_data {
            self.owed = self.owed.saturating_sub(bytes);
            self.has_nothing = event.number >= self.data.1 && self.owed == 0;
            // Where the file does not show the probe for a size: a single larger packet may be one.
            if bytes > self.segment && self.previous_size == bytes && !probes_size {
                self.set_segment(bytes);
            }
            self.previous_size = bytes;
        }
        if self.launched_after.is_some() {
            let mut sent = Sent::new(self.now, Bytes::new(bytes), Bytes::new(in_flight), self.position);
            sent.app_limited = snapshot.app_limited;
            self.controller.on_sent(&sent);
            self.take_decisions();
        }
        // noq and quinn send a packet only if something of the window is left behind it.
        let is_full = self.recorded.metrics.cwnd.is_some_and(|cwnd| in_flight + self.segment >= cwnd);
        self.recorded.stopped = Some(Stopped { at: event.into(), number, in_flight, is_full });
        // What files leave out, as packets without a number, may be as much as a packet.
        let has_filled = in_flight + 2 * self.segment > self.controller.cwnd().get();
        if has_filled || (is_full && !self.recorded.is_late) {
            self.recorded.full_until = self.position;
        }
        self.last_sent = self.now;
        Ok(())
    }

    /// Packets are larger from now on.
    fn set_segment(&mut self, bytes: u64) {
        self.segment = bytes;
        self.controller.set_segment(Bytes::new(bytes));
    }

    fn open_group(&mut self) {
        let (time, in_flight_before) = (self.now, self.flight.bytes());
        self.group.get_or_insert_with(|| Group { time, in_flight_before, ..Group::default() });
    }

    /// What waits is complete.
    fn settle(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        let now = group.time;
        let has_lost = !group.lost.is_empty();
        if (has_lost || group.marks > 0) && self.launched_after.is_none() {
            self.launch(None);
        }
        let Some(launch) = self.launched_after else { return };
        let in_flight = self.flight.bytes();
        let before = Bytes::new(group.in_flight_before);
        group.lost.sort_unstable_by_key(|lost| lost.position);
        let least = self.rtt.probe_timeout(GRANULARITY, self.max_ack_delay) * PERSISTENT;
        let lost = group.lost.last().map(|&Lost { position, .. }| Loss {
            now,
            bytes: Bytes::new(group.lost_bytes),
            position,
            in_flight_before: before,
            in_flight: Bytes::new(in_flight),
        });
        let position = group.position;
        let marked = (group.marks > 0).then_some(Ecn { now, position, in_flight: before, packets: group.marks });
        let limited = self.recorded.limited
            || self.has_nothing
            || self.recorded.metrics.cwnd.is_some_and(|cwnd| group.in_flight_before.saturating_mul(2) < cwnd);
        self.has_nothing &= self.owed == 0;
        if limited {
            self.rate.mark_app_limited(Bytes::new(in_flight));
        }
        let sample = self.rate.take_sample(self.rtt.min());
        let delivered = (group.delivered > 0 && position > launch).then(|| {
            let mut ack = Ack::new(now, Bytes::new(group.delivered), group.packets, self.largest_acknowledged);
            ack.rtt = self.adjusted.take();
            (ack.in_flight_before, ack.in_flight) = (before, Bytes::new(in_flight));
            ack.safe = !has_lost;
            ack.app_limited = limited && position > self.recorded.full_until;
            ack.sample = sample.filter(|_| self.controller.needs().contains(Needs::RATE_SAMPLES));
            ack
        });
        if lost.is_none() && marked.is_none() && delivered.is_none() {
            return;
        }
        // RFC 9002, section 7.6.2: a period begins behind the first sample, and ends with packets that solicit.
        let sampled = self.rtt.first_sample_at();
        let counts = |lost: &&Lost| lost.solicits && sampled.is_some_and(|sampled| lost.sent >= sampled);
        let times = group.lost.iter().filter(counts).map(|lost| (lost.position, lost.sent));
        let persistent_congestion = self.delivered.persist(times, least);
        let cwnd = self.controller.cwnd().get();
        let frame = AckFrame { lost, persistent_congestion, marked, delivered, duplicate: false };
        self.controller.on_ack_frame(&frame, &self.rtt);
        if limited {
            let timeout = self.rtt.probe_timeout(GRANULARITY, self.max_ack_delay);
            self.controller.on_limited(now, Bytes::new(in_flight), timeout, Bytes::MAX, &self.rtt);
        }
        if self.take_decisions() {
            self.doubtful.begin();
        }
        group.lost.iter().for_each(|lost| self.doubtful.add(lost.space, lost.number));
        if has_lost || group.marks > 0 {
            self.watch.lost(LossEvent {
                time_ms: millis(now),
                packets: group.lost.len() as u64,
                marks: group.marks,
                persistent_congestion,
                cwnd_before_bytes: cwnd,
                cwnd_after_bytes: self.controller.cwnd().get(),
            });
        }
        let event = if has_lost { "loss" } else { "ack" };
        let row = Row {
            time_ms: millis(now),
            delivered_bytes: group.delivered,
            lost_bytes: group.lost_bytes,
            ..self.row(event)
        };
        self.watch.row(&row);
    }

    /// Steps of the scheme that are due.
    fn run_timers(&mut self) {
        if self.launched_after.is_none() {
            return;
        }
        for _ in 0..MOST_STEPS {
            let due = self.controller.next_wakeup();
            if !self.controller.in_startup() || due > self.now {
                return;
            }
            self.controller.on_timer(due, &self.rtt);
            self.take_decisions();
        }
    }

    /// Nothing was in flight before the packet that leaves now.
    fn resume(&mut self) {
        let timeout = self.rtt.probe_timeout(GRANULARITY, self.max_ack_delay);
        let resume = Resume { now: self.now, idle: self.now.since(self.last_sent), timeout };
        let left = |all: Bytes| all.saturating_sub(Bytes::new(self.totals.sent_bytes));
        let path = PathKnowledge { bytes_waiting: self.known.bytes_waiting.map(left), ..self.known.clone() };
        self.controller.on_resume(&resume, &path, &self.rtt);
        self.take_decisions();
    }

    /// Launches if data begins and there is an RTT; the packet `number` is the first behind it.
    fn try_launch(&mut self, event: u64, number: Option<u64>) {
        if self.launched_after.is_some() || event < self.data.0 {
            return;
        }
        if let (false, Some(sample)) = (self.rtt.is_sampled(), self.handshake.1) {
            self.sample = Some((self.now, sample, Duration::ZERO));
            self.take_sample();
        }
        if self.rtt.is_sampled() {
            self.launch(number);
        }
    }

    fn launch(&mut self, number: Option<u64>) {
        self.known.handshake_rtt = self.rtt.min();
        self.controller.on_sent_before_launch(self.position);
        let used: Vec<Known> = self.controller.depends_on(self.now, &self.known);
        self.controller.launch(self.now, &self.known, &self.rtt);
        self.launched_after = Some(self.position);
        self.take_decisions();
        let row = self.row("launch");
        // The window of the recorded launch, not the one before it.
        let before = (row.recorded_cwnd_bytes, row.recorded_pacing_rate_bps);
        let recorded = self.launched.as_ref().map_or(before, |launched| (launched.cwnd, launched.pacing_rate));
        self.watch.launched(Launch {
            time_ms: row.time_ms,
            packet_number: number,
            cwnd_bytes: row.cwnd_bytes,
            pacing_rate_bps: row.pacing_rate_bps,
            burst_bytes: self.controller.output().burst.get(),
            handshake_rtt_ms: self.known.handshake_rtt.map(Duration::as_millis_f64),
            depends_on: used.into_iter().map(Known::name).collect(),
            recorded_cwnd_bytes: recorded.0,
            recorded_pacing_rate_bps: recorded.1,
        });
        self.watch.row(&row);
    }

    /// Takes what the controller has decided. Returns whether the window was reduced.
    fn take_decisions(&mut self) -> bool {
        let mut reduced = false;
        while let Some((time, decision)) = self.controller.take_decision() {
            match decision {
                Decision::StartupExited { reason, cwnd, ssthresh } if !self.exited => {
                    (self.exited, reduced) = (true, true);
                    self.watch.left_startup(Exit {
                        time_ms: millis(time),
                        reason: reason.name().to_owned(),
                        cwnd_bytes: Some(cwnd.get()),
                        ssthresh_bytes: threshold(ssthresh),
                    });
                }
                Decision::WindowReduced { .. } | Decision::Collapsed { .. } => reduced = true,
                _ => {}
            }
        }
        reduced
    }
}

/// A slow-start threshold, if there is one.
fn threshold(ssthresh: Bytes) -> Option<u64> {
    Some(ssthresh).filter(|ssthresh| *ssthresh != Bytes::MAX).map(Bytes::get)
}
