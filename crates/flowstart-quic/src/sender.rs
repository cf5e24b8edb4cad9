//! Translates events of a QUIC stack into events of the controller. The adapters of all hosts share this code.
//!
//! Hosts differ from what [`Controller`] expects in these ways, and this module adapts them:
//!
//! - They report an ACK frame piece by piece, and in another order: first what it acknowledges, then the losses that it
//!   reveals, then its marks. [`Controller::on_ack_frame`] expects the whole frame, because losses and marks reduce the
//!   window before delivered data let it grow (RFC 9002, appendix A.7). No call says that nothing more follows. So
//!   [`Sender::on_acknowledgement_end`] keeps the frame. Losses and marks of the same time are added to it, until
//!   another event or a question about the window comes.
//! - They build a controller before anything is known of the path. So the launch waits until the handshake has measured
//!   the RTT and the application has said how much it will send. Congestion ends this waiting, and so does
//!   [`Flow::launch_early`](crate::Flow::launch_early) where an earlier connection has measured the RTT.
//! - They do not say how long the receiver held an acknowledgement back, but their smoothed RTT takes it into account:
//!   smoothed' = 7/8 smoothed + 1/8 sample (RFC 9002, section 5.3), so the sample without the delay is 8 smoothed' - 7
//!   smoothed. They report the smoothed RTT with the following acknowledgement. So every sample except the first
//!   reaches the controller one acknowledgement late.
//! - They say whether the application limits the sender now, not whether it did when the acknowledged packet left. So
//!   the sender notes up to which packet the window was full.

mod answer;
#[cfg(feature = "s2n-quic")]
mod carried;
mod congestion;
mod launch;

use std::sync::Arc;

use flowstart_core::controller::{AckFrame, Controller, Resume};
use flowstart_core::delivery_rate::{DeliveryRate, Snapshot};
use flowstart_core::doubt::Doubt;
use flowstart_core::event::{Ack, Decision, Position, Sent};
use flowstart_core::launch::UNPACED;
use flowstart_core::needs::Needs;
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::{GRANULARITY, INITIAL_RTT, MAX_ACK_DELAY, RttEstimator};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

pub(crate) use self::answer::Answer;
#[cfg(feature = "s2n-quic")]
pub(crate) use self::carried::Carried;
use crate::flow::{Flow, Status};
use crate::sent::{Packet, SentLog};
use crate::sharing::Membership;

/// A coarse clock may measure less, and no rate can be derived from an RTT of zero.
const SHORTEST_RTT: Duration = Duration::from_micros(1);
/// A packet's fate is known when an acknowledgement covers a packet that left this much plus four RTTs later.
const FATE_KNOWN: Duration = Duration::from_millis(1000);
/// Packets of the smallest window (RFC 9002, section 7.2). With a window of one, a host may wait for ever to send a
/// full packet behind a smaller one that is still in flight.
const MINIMUM_WINDOW_PACKETS: u64 = 2;
/// Packets that are always told apart. quinn remembers a thousand packets that hold only acknowledgements.
const FEWEST_REMEMBERED: usize = 1024;

/// What an ACK frame acknowledged so far.
#[derive(Clone, Copy, Debug)]
struct Batch {
    bytes: Bytes,
    packets: u64,
    position: Position,
    newest_sent: Timestamp,
    in_flight_before: Bytes,
}

/// What was declared lost so far.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    bytes: Bytes,
    position: Position,
}

/// The sending side of one connection on one path.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    controller: Controller,
    rtt: RttEstimator,
    rate: DeliveryRate,
    sent: SentLog,
    /// Most packets that are told apart, where that is bounded.
    remembered: usize,
    flow: Arc<Flow>,
    /// What the flow gets with the next news.
    status: Status,
    /// The path is the one on which the connection began.
    first_path: bool,
    /// Position of the last packet before the launch.
    launched_after: Option<Position>,
    /// The launch, if its RTT is only the client's word, or a cap holds it.
    doubt: Option<Doubt>,
    /// Whether a launch before the first sample of the RTT was tried.
    tried_early: bool,
    /// Of a launch before the first sample: how much may leave until as much is acknowledged.
    early_flight: Option<Bytes>,
    /// Its part in a window that connections share.
    membership: Option<Membership>,
    /// Whether nothing of what left since the launch has been acknowledged. Until then all of it is the launch's, also
    /// that of a scheme whose startup ends with it.
    first_flight: bool,
    /// Position of the last packet that left while the startup scheme was in charge, or in the first flight.
    startup_until: Position,
    /// Size of a full packet.
    packet: Bytes,
    in_flight: Bytes,
    /// The host's smoothed RTT, as it was before the latest sample.
    host_smoothed: Option<Duration>,
    /// The latest sample with the receiver's delay, and when it was taken.
    sample: Option<(Timestamp, Duration)>,
    /// The latest sample without it, which the controller has not received yet.
    adjusted: Option<Duration>,
    largest_acknowledged: Position,
    newest_acknowledged: Timestamp,
    batch: Option<Batch>,
    /// The reported part of an ACK frame, and its time. The controller has not received it yet.
    kept: Option<(Timestamp, AckFrame)>,
    lost: Lost,
    app_limited: bool,
    /// Position of the last packet that had left when the window was found full.
    full_until: Position,
    last_sent: Timestamp,
    /// Time of the latest event.
    now: Timestamp,
}

impl Sender {
    /// The sender of a path on which nothing was sent yet.
    pub(crate) fn new(controller: Controller, packet: Bytes, flow: Arc<Flow>) -> Self {
        let status = flow.begin();
        Self {
            controller,
            rtt: RttEstimator::new(INITIAL_RTT),
            rate: DeliveryRate::default(),
            sent: SentLog::default(),
            remembered: 0,
            flow,
            status,
            first_path: status.moves == 0,
            launched_after: None,
            doubt: None,
            tried_early: false,
            early_flight: None,
            membership: None,
            first_flight: false,
            startup_until: 0,
            packet,
            in_flight: Bytes::ZERO,
            host_smoothed: None,
            sample: None,
            adjusted: None,
            largest_acknowledged: 0,
            newest_acknowledged: Timestamp::ZERO,
            batch: None,
            kept: None,
            lost: Lost::default(),
            app_limited: false,
            full_until: 0,
            last_sent: Timestamp::ZERO,
            now: Timestamp::ZERO,
        }
    }

    /// Everything that a host may ask for.
    pub(crate) fn answer(&mut self) -> Answer {
        self.settle();
        self.present()
    }

    /// [`Sender::answer`] where it needs no change of the sender.
    pub(crate) fn settled(&self) -> Option<Answer> {
        (self.launched_after.is_some() && self.kept.is_none()).then(|| self.present())
    }

    fn present(&self) -> Answer {
        // Before the launch only the initial window binds.
        let rate = self.launched_after.and_then(|_| self.controller.pacing_rate());
        // Before the first sample nothing contradicts the RTT that was saved.
        let smallest = self.rtt.min().unwrap_or(Duration::MAX);
        let delivered = self.status.delivered;
        let held = self.doubt.and_then(|doubt| doubt.pacing_rate(smallest, delivered));
        let early = self.early_flight.filter(|flight| delivered < *flight).map(|flight| flight + delivered);
        let window = self.controller.cwnd().min(early.unwrap_or(Bytes::MAX));
        Answer {
            window: window.max(self.packet * MINIMUM_WINDOW_PACKETS),
            ssthresh: known(self.controller.ssthresh()),
            pacing_rate: rate.into_iter().chain(held).min().unwrap_or(UNPACED),
            highest_rate: self.status.highest_rate,
            packet: self.packet,
            in_flight: self.in_flight,
        }
    }

    /// A packet left; `number` is the host's.
    pub(crate) fn on_sent(&mut self, now: Timestamp, bytes: Bytes, number: u64) {
        let snapshot = self.leaves(now, bytes);
        self.sent.push(Packet { number, bytes, snapshot });
        self.has_left(&snapshot, bytes);
    }

    /// A packet leaves, and is about to get its position.
    fn leaves(&mut self, now: Timestamp, bytes: Bytes) -> Snapshot {
        self.advance(now);
        self.in_flight += bytes;
        self.rate.on_sent(now, bytes, self.in_flight)
    }

    /// The packet with the last position left.
    fn has_left(&mut self, snapshot: &Snapshot, bytes: Bytes) {
        let now = snapshot.send_time;
        if self.launched_after.is_some() {
            if self.in_flight == bytes {
                self.resume(now);
                self.enter_again();
            }
            let (position, in_flight) = (self.sent.last_position(), self.in_flight);
            let mut sent = Sent::new(now, bytes, in_flight, position);
            sent.app_limited = snapshot.app_limited;
            self.controller.on_sent(&sent);
            if self.first_flight || self.controller.in_startup() {
                self.startup_until = position;
                self.status.startup_sent += bytes;
            }
        }
        if self.in_flight + self.packet > self.controller.cwnd() {
            self.on_window_full();
        }
        self.last_sent = now;
    }

    /// The window stops the host, or the last packet has filled it, so the window is in use (RFC 9002, section 7.8).
    pub(crate) fn on_window_full(&mut self) {
        self.full_until = self.sent.last_position();
    }

    /// Sending begins again after idle time. The host does not ask before the first packet leaves, so this packet
    /// reports it.
    fn resume(&mut self, now: Timestamp) {
        let resume = Resume { now, idle: now.since(self.last_sent), timeout: self.probe_timeout() };
        if let Some(path) = self.flow.ready(self.first_path) {
            self.controller.on_resume(&resume, &path, &self.rtt);
        }
    }

    /// Bounds the memory of packets that are never acknowledged. A host may report packets that hold only
    /// acknowledgements, and an end that only receives sends nothing else. Twice as many packets as fit into the
    /// largest window so far stay distinct, so packets in flight beside them can still be found.
    pub(crate) fn bound_memory(&mut self) {
        let window = self.controller.cwnd().get() / self.packet.get().max(1);
        let most = usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX);
        self.remembered = self.remembered.max(most.saturating_add(FEWEST_REMEMBERED));
        self.sent.join_oldest(self.remembered);
    }

    /// Packets that are told apart.
    #[cfg(test)]
    pub(crate) fn packets_remembered(&self) -> usize {
        self.sent.len()
    }

    /// That of a peer with the default `max_ack_delay`.
    fn probe_timeout(&self) -> Duration {
        self.rtt.probe_timeout(GRANULARITY, MAX_ACK_DELAY)
    }

    /// The host's smoothed RTT before the frame's own sample.
    fn take_smoothed(&mut self, smoothed: Duration) {
        if let Some((taken, sample)) = self.sample.take() {
            let before = self.host_smoothed.unwrap_or(sample);
            let adjusted = (smoothed * 8).saturating_sub(before * 7);
            let adjusted = adjusted.min(sample).max(self.rtt.min().unwrap_or_default().min(sample));
            self.rtt.update(taken, sample, sample.saturating_sub(adjusted));
            self.adjusted = Some(adjusted);
        }
        self.host_smoothed = Some(smoothed);
    }

    /// A packet of an ACK frame was delivered; `smoothed` is the host's smoothed RTT.
    pub(crate) fn on_acknowledged(
        &mut self,
        now: Timestamp,
        sent_at: Timestamp,
        bytes: Bytes,
        number: Option<u64>,
        smoothed: Duration,
    ) {
        if self.batch.is_none() {
            self.advance(now);
            self.take_smoothed(smoothed);
            // Not earlier, because the host reports the losses of a frame after the frame's end.
            self.sent.forget(self.newest_acknowledged - (self.rtt.smoothed() * 4 + FATE_KNOWN));
        }
        let in_flight_before = self.in_flight;
        let batch = self.batch.get_or_insert(Batch {
            bytes: Bytes::ZERO,
            packets: 0,
            position: 0,
            newest_sent: sent_at,
            in_flight_before,
        });
        batch.newest_sent = batch.newest_sent.max(sent_at);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let found = match number {
            Some(number) => self.sent.find(sent_at, number),
            None => self.sent.at(sent_at),
        };
        let Some(position) = found else { return };
        let Some(packet) = self.sent.settle(position, bytes) else { return };
        self.rate.on_delivered(now, &packet.snapshot, position, bytes);
        if self.launched_after.is_some_and(|launch| position > launch) {
            self.first_flight = false;
            batch.bytes += bytes;
            batch.packets += 1;
        }
        batch.position = batch.position.max(position);
    }

    /// The ACK frame is at its end; `in_flight` is what the host counts after it.
    pub(crate) fn on_acknowledgement_end(&mut self, now: Timestamp, in_flight: Bytes, app_limited: bool) {
        self.in_flight = in_flight;
        self.app_limited = app_limited;
        if app_limited {
            self.rate.mark_app_limited(in_flight);
        }
        let Some(batch) = self.batch.take() else { return };
        // RFC 9002, section 5.1: a sample only when the largest acknowledged is newly acknowledged.
        if batch.position > self.largest_acknowledged {
            self.largest_acknowledged = batch.position;
            self.newest_acknowledged = batch.newest_sent;
            let rtt = now.since(batch.newest_sent).max(SHORTEST_RTT);
            if self.rtt.is_sampled() {
                self.sample = Some((now, rtt));
            } else {
                // The first one is that of the handshake, whose packets are acknowledged at once.
                self.rtt.update(now, rtt, Duration::ZERO);
                self.adjusted = Some(rtt);
            }
        }
        if batch.packets > 0 {
            let mut delivered = Ack::new(now, batch.bytes, batch.packets, self.largest_acknowledged);
            delivered.rtt = self.adjusted.take();
            delivered.in_flight_before = batch.in_flight_before;
            delivered.in_flight = in_flight;
            // The sender may have run out of data since, but these packets were part of a full window.
            delivered.app_limited = app_limited && batch.position > self.full_until;
            self.kept = Some((now, AckFrame { delivered: Some(delivered), ..AckFrame::default() }));
        }
    }

    /// Packets have another size from now on.
    pub(crate) fn on_packet_size(&mut self, size: Bytes) {
        self.packet = size;
        self.controller.set_segment(size);
    }

    /// An event happens at `now`: the controller first gets the kept frame and due timers.
    fn advance(&mut self, now: Timestamp) {
        self.settle();
        self.now = self.now.max(now);
        if self.launched_after.is_some() && self.controller.in_startup() && self.controller.next_wakeup() <= self.now {
            self.controller.on_timer(self.now, &self.rtt);
            self.publish();
        }
    }

    /// What to launch with before the RTT is measured. It is tried once, because what is known then is all that will be
    /// known before the sample.
    fn early(&mut self) -> Option<PathKnowledge> {
        if self.tried_early {
            return None;
        }
        let path = self.flow.ready_early(self.first_path)?;
        self.tried_early = true;
        self.controller.launches_more_than_initial(self.now, &path).then_some(path)
    }

    /// Nothing more belongs to the latest event.
    fn settle(&mut self) {
        if self.launched_after.is_none() {
            let path = if self.rtt.is_sampled() { self.flow.ready(self.first_path) } else { self.early() };
            path.into_iter().for_each(|path| self.launch(path));
        }
        let Some((now, mut frame)) = self.kept.take() else { return };
        let sample = self.rate.take_sample(self.rtt.min());
        if let Some(ack) = &mut frame.delivered {
            ack.sample = sample.filter(|_| self.controller.needs().contains(Needs::RATE_SAMPLES));
            self.status.delivered += ack.bytes;
        }
        self.controller.on_ack_frame(&frame, &self.rtt);
        if let Some((borne_out, most)) =
            self.doubt.and_then(|doubt| doubt.windows(self.rtt.min()?, self.status.delivered))
        {
            self.controller.limit_window(now, borne_out, most, &self.rtt);
        }
        if self.app_limited {
            let (timeout, window) = (self.probe_timeout(), Bytes::MAX);
            self.controller.on_limited(now, self.in_flight, timeout, window, &self.rtt);
        }
        self.status.highest_rate = self.status.highest_rate.max(sample.and_then(|sample| sample.rate));
        self.publish();
    }

    /// Tells the application.
    fn publish(&mut self) {
        self.share_window();
        let Self { controller, status, rtt, .. } = self;
        status.cwnd = controller.cwnd();
        status.ssthresh = known(controller.ssthresh());
        status.pacing_rate = controller.pacing_rate();
        status.in_flight = self.in_flight;
        status.in_startup = controller.in_startup();
        status.min_rtt = rtt.min();
        status.smoothed_rtt = rtt.is_sampled().then(|| rtt.smoothed());
        status.longest_rtt = status.longest_rtt.max(status.smoothed_rtt);
        // At most as many as the log keeps, and nothing if there are none.
        let mut decided = Vec::new();
        while let Some((time, decision)) = controller.take_decision() {
            match decision {
                Decision::Launched { cwnd, pacing_rate } => status.launch = Some((time, cwnd, pacing_rate)),
                Decision::StartupExited { reason, cwnd, .. } => {
                    status.exit.get_or_insert((time, reason, cwnd));
                }
                _ => {}
            }
            decided.push((time, decision));
        }
        // The result is reported with the next news.
        let now = self.now;
        let observe = |seen: &mut Vec<_>| controller.observe(now, &mut |owner, variable| seen.push((owner, variable)));
        if let Some(rate) = self.flow.publish(status, decided.into_iter(), observe) {
            self.controller.on_advice(self.now, rate, &self.rtt);
        }
    }
}

/// ssthresh, unless there was no reduction yet.
fn known(ssthresh: Bytes) -> Option<Bytes> {
    Some(ssthresh).filter(|ssthresh| *ssthresh != Bytes::MAX)
}

#[cfg(test)]
mod tests;
