//! The controller of one flow: translates what a host in C reports into events of [`Controller`].
//!
//! - A host reports an acknowledgement as a whole, as [`AckFrame`] wants it: first the lost packets one by one, then
//!   one [`Ack`] that sums up. So nothing is kept back, and there is no memory of packets: only sums.
//! - Packet numbers become positions. They begin with 1, because position 0 is before the first packet.
//! - A host says whether the application limits it now. Packets that left while the window was full count as those of a
//!   busy sender.
//! - Timers of the scheme that are due run before the next event, whether or not the host has asked at that time.
//! - Idle time is seen by the packet that ends it: nothing else is in flight.

use std::os::raw::c_char;

use flowstart_core::controller::{AckFrame, Controller, Resume};
use flowstart_core::doubt::Doubt;
use flowstart_core::event::{self, Decision, Ecn, Loss, Position, Sent};
use flowstart_core::launch::UNPACED;
use flowstart_core::pacer::Pacer;
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::{GRANULARITY, INITIAL_RTT, MAX_ACK_DELAY, RttEstimator};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::knowledge::Knowledge;
use crate::layout::{Ack, Output, Phase, Status};
use crate::quantity::{FASTEST, LARGEST, amount, flag, some_span, span, time};
use crate::refusal::Refusal;

/// A coarse clock may measure less, and no rate can be derived from an RTT of zero.
const SHORTEST_RTT: Duration = Duration::from_micros(1);
/// Segments of the smallest window (RFC 9002, section 7.2). With a window of one, a host may wait for ever to send a
/// full packet behind a smaller one that is still in flight.
const MINIMUM_WINDOW: u64 = 2;

/// Why startup ended.
#[derive(Clone, Copy, Debug)]
struct Exit {
    time: Timestamp,
    cwnd: Bytes,
    reason: &'static str,
}

/// The sending side of one flow on one path.
#[derive(Debug)]
pub(crate) struct Flow {
    controller: Controller,
    rtt: RttEstimator,
    pacer: Pacer,
    segment: Bytes,
    /// Position of the last packet before the launch; `None`: not launched.
    launched_after: Option<Position>,
    /// Packets up to here were sent over an earlier path.
    earlier_path: Position,
    /// Position of the last packet.
    sent: Position,
    /// Bytes of all packets, and those of them that were acknowledged and lost.
    sent_bytes: u64,
    delivered_bytes: u64,
    lost_bytes: u64,
    /// Losses since the last acknowledgement.
    lost: Option<(Bytes, Position)>,
    /// Window and rate of the latest launch.
    launch: Option<(Bytes, Option<Rate>)>,
    /// The latest launch, if its RTT is only the client's word.
    doubt: Option<Doubt>,
    /// Bytes delivered since the latest launch.
    delivered: Bytes,
    /// Position of the last packet that had left when the window was found full.
    full_until: Position,
    last_sent: Timestamp,
    /// Time of the latest event.
    now: Timestamp,
    exit: Option<Exit>,
}

impl Flow {
    /// The flow of a controller that has not launched yet.
    pub(crate) fn new(controller: Controller, segment: Bytes) -> Self {
        Self {
            controller,
            rtt: RttEstimator::new(INITIAL_RTT),
            pacer: Pacer::new(Duration::ZERO),
            segment,
            launched_after: None,
            earlier_path: 0,
            sent: 0,
            sent_bytes: 0,
            delivered_bytes: 0,
            lost_bytes: 0,
            lost: None,
            launch: None,
            doubt: None,
            delivered: Bytes::ZERO,
            full_until: 0,
            last_sent: Timestamp::ZERO,
            now: Timestamp::ZERO,
            exit: None,
        }
    }

    /// The handshake is over and data may leave.
    pub(crate) fn launch(&mut self, now: u64, known: Knowledge) -> Result<(), Refusal> {
        let now = time("now", now)?;
        if self.launched_after.is_some() {
            let message = "the flow has launched already; after a change of path call flowstart_on_path_change()";
            return Err(Refusal::new(Status::State, message));
        }
        self.advance(now);
        self.launch_with(known);
        Ok(())
    }

    /// The first launch, or that of another path.
    fn launch_with(&mut self, Knowledge { mut path, doubts_handshake }: Knowledge) {
        if let Some(sample) = path.handshake_rtt.filter(|_| !self.rtt.is_sampled()) {
            self.rtt.update(self.now, sample.max(SHORTEST_RTT), Duration::ZERO);
        }
        path.handshake_rtt = path.handshake_rtt.or(self.rtt.min());
        let again = self.launched_after.replace(self.sent).is_some();
        // What has launched before does not say on what another launch would depend.
        let stretchable = match (doubts_handshake, again) {
            (false, _) => None,
            (true, true) => path.handshake_rtt,
            (true, false) => self.controller.stretchable_rtt(self.now, &path),
        };
        if again {
            self.controller.on_path_change(self.now, &path, &self.rtt);
        } else {
            self.controller.on_sent_before_launch(self.sent);
            self.controller.launch(self.now, &path, &self.rtt);
        }
        (self.exit, self.delivered) = (None, Bytes::ZERO);
        self.settle();
        self.allow_burst();
        self.doubt = self.launch.zip(stretchable).map(|((window, rate), rtt)| Doubt::new(window, rate, Some(rtt)));
    }

    /// Congestion needs a response, and only a launched controller can give it.
    fn launch_into_congestion(&mut self) {
        if self.launched_after.is_none() {
            self.launch_with(Knowledge::default());
        }
    }

    /// Packets take another path from now on.
    pub(crate) fn change_path(&mut self, now: u64, known: Knowledge) -> Result<(), Refusal> {
        let now = time("now", now)?;
        self.advance(now);
        self.rtt = RttEstimator::new(INITIAL_RTT);
        self.pacer = Pacer::new(Duration::ZERO);
        (self.earlier_path, self.lost) = (self.sent, None);
        self.launch_with(known);
        Ok(())
    }

    /// A packet left.
    pub(crate) fn on_sent(
        &mut self,
        now: u64,
        number: u64,
        bytes: u64,
        in_flight: u64,
        app_limited: bool,
    ) -> Result<(), Refusal> {
        let now = time("now", now)?;
        Refusal::unless_in("packet_number", number, self.sent..=LARGEST - 1)?;
        Refusal::unless_in("bytes", bytes, 1..=LARGEST - self.sent_bytes)?;
        Refusal::unless_in("in_flight", in_flight, bytes..=LARGEST)?;
        self.advance(now);
        let (position, size, in_flight) = (number + 1, Bytes::new(bytes), Bytes::new(in_flight));
        self.sent = position;
        self.sent_bytes += bytes;
        if self.launched_after.is_some() {
            if in_flight == size {
                self.resume();
            }
            if let Some(rate) = self.pacing_rate() {
                self.pacer.set_group(self.controller.send_group());
                self.pacer.on_sent(self.now, size, rate);
            }
            let mut sent = Sent::new(self.now, size, in_flight, position);
            sent.app_limited = app_limited;
            self.controller.on_sent(&sent);
            self.settle();
        }
        if in_flight + self.segment > self.controller.cwnd() {
            self.full_until = position;
        }
        self.last_sent = self.now;
        Ok(())
    }

    /// Nothing was in flight before the packet that leaves now.
    fn resume(&mut self) {
        let timeout = self.rtt.probe_timeout(GRANULARITY, MAX_ACK_DELAY);
        let resume = Resume { now: self.now, idle: self.now.since(self.last_sent), timeout };
        self.controller.on_resume(&resume, &PathKnowledge::default(), &self.rtt);
        if !self.controller.in_recovery() {
            self.allow_burst();
        }
    }

    fn allow_burst(&mut self) {
        let burst = self.controller.output().burst;
        self.pacer.allow_burst(burst);
    }

    /// A packet was declared lost; the acknowledgement or the timer that revealed it follows.
    pub(crate) fn on_packet_lost(&mut self, number: u64, bytes: u64) -> Result<(), Refusal> {
        self.require_sent("packet_number", number)?;
        Refusal::unless_in("bytes", bytes, 0..=self.sent_bytes - self.lost_bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.lost_bytes += bytes;
        let (position, bytes) = (number + 1, Bytes::new(bytes));
        // The congestion of an earlier path is not that of this one (RFC 9000, section 9.4).
        if position <= self.earlier_path {
            return Ok(());
        }
        let (before, highest) = self.lost.unwrap_or_default();
        self.lost = Some((before + bytes, highest.max(position)));
        if self.launched_after.is_some_and(|launch| position > launch) {
            self.controller.on_retransmission(position, bytes);
        }
        Ok(())
    }

    fn require_sent(&self, field: &str, number: u64) -> Result<(), Refusal> {
        match self.sent.checked_sub(1) {
            Some(last) => Refusal::unless_in(field, number, 0..=last),
            None => Err(Refusal::value(format_args!("{field} is {number}; allowed is none, as no packet was sent"))),
        }
    }

    /// An acknowledgement arrived, or a loss timer fired.
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> Result<(), Refusal> {
        let now = time("now", ack.now)?;
        let (in_flight, delay) = (amount("in_flight", ack.in_flight)?, span("ack_delay", ack.ack_delay)?);
        let sample = some_span("rtt", ack.rtt)?;
        let app_limited = flag("app_limited", ack.app_limited)?;
        let persistent = flag("persistent_congestion", ack.persistent_congestion)?;
        Refusal::unless_in("delivered_bytes", ack.delivered_bytes, 0..=self.sent_bytes - self.delivered_bytes)?;
        Refusal::unless_in("delivered_packets", ack.delivered_packets, 0..=ack.delivered_bytes)?;
        if ack.delivered_bytes > 0 || ack.ce_packets > 0 {
            self.require_sent("largest_acked", ack.largest_acked)?;
        }
        Refusal::unless_in("ce_packets", ack.ce_packets, 0..=self.sent)?;
        self.advance(now);
        let now = self.now;

        let position = if ack.delivered_bytes > 0 || ack.ce_packets > 0 { ack.largest_acked + 1 } else { 0 };
        // A packet of an earlier path says nothing of this one (RFC 9002, section 5.1 with RFC 9000, section 9.4).
        let of_this_path = position > self.earlier_path;
        let sample = sample.filter(|_| of_this_path).map(|sample| sample.max(SHORTEST_RTT));
        if let Some(sample) = sample {
            self.rtt.update(now, sample, delay);
        }
        self.delivered_bytes += ack.delivered_bytes;
        let (lost, ce_packets) = (self.lost.take(), if of_this_path { ack.ce_packets } else { 0 });
        if lost.is_some() || ce_packets > 0 {
            self.launch_into_congestion();
        }
        let Some(launch) = self.launched_after else { return Ok(()) };

        let (delivered, lost_bytes) = (Bytes::new(ack.delivered_bytes), lost.unwrap_or_default().0);
        let in_flight_before = in_flight + delivered + lost_bytes;
        let lost = lost.map(|(bytes, position)| Loss { now, bytes, position, in_flight_before, in_flight });
        let packets = ce_packets;
        let marked = (packets > 0).then_some(Ecn { now, position, in_flight: in_flight_before, packets });
        // What left before the launch says nothing of it.
        let delivered = (delivered > Bytes::ZERO && position > launch).then(|| {
            let mut event = event::Ack::new(now, delivered, ack.delivered_packets, position);
            event.rtt = sample.map(|sample| self.without_delay(sample, delay));
            (event.in_flight_before, event.in_flight) = (in_flight_before, in_flight);
            event.safe = lost.is_none();
            event.app_limited = app_limited && position > self.full_until;
            event
        });
        let persistent_congestion = persistent && lost.is_some();
        let frame = AckFrame { persistent_congestion, lost, marked, delivered, duplicate: false };
        self.controller.on_ack_frame(&frame, &self.rtt);
        self.delivered += delivered.map_or(Bytes::ZERO, |ack| ack.bytes);
        if let Some((borne_out, most)) = self.doubt.and_then(|doubt| doubt.windows(self.rtt.min()?, self.delivered)) {
            self.controller.limit_window(now, borne_out, most, &self.rtt);
        }
        self.settle();
        Ok(())
    }

    /// The sample without the receiver's delay, unless that would be less than the path has ever taken (RFC 9002,
    /// section 5.3).
    fn without_delay(&self, sample: Duration, delay: Duration) -> Duration {
        Some(sample.saturating_sub(delay)).filter(|rest| *rest >= self.rtt.min().unwrap_or_default()).unwrap_or(sample)
    }

    /// All packets behind the last reduction were delivered after all.
    pub(crate) fn on_spurious_loss(&mut self, now: u64) -> Result<(), Refusal> {
        let now = time("now", now)?;
        self.advance(now);
        self.controller.on_spurious_loss(self.now, &self.rtt);
        self.settle();
        Ok(())
    }

    /// Packets have another size from now on.
    pub(crate) fn set_segment(&mut self, segment: u64) -> Result<(), Refusal> {
        Refusal::unless_in("segment", segment, 1..=65_535)?;
        self.segment = Bytes::new(segment);
        self.controller.set_segment(self.segment);
        Ok(())
    }

    /// An event happens at `now`: due timers come first. A time that goes back counts as the latest one.
    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        if self.launched_after.is_some() && self.controller.in_startup() && self.controller.next_wakeup() <= self.now {
            self.controller.on_timer(self.now, &self.rtt);
            self.settle();
        }
    }

    /// Takes what the controller has decided.
    fn settle(&mut self) {
        while let Some((time, decision)) = self.controller.take_decision() {
            match decision {
                Decision::Launched { cwnd, pacing_rate } => self.launch = Some((cwnd, pacing_rate)),
                Decision::StartupExited { reason, cwnd, .. } => {
                    self.exit.get_or_insert(Exit { time, cwnd, reason: reason.name() });
                }
                _ => {}
            }
        }
    }

    /// The rate at which packets may leave; `None`: as the window allows, as before the launch.
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.launched_after.and_then(|_| self.controller.pacing_rate());
        let held = self.doubt.and_then(|doubt| doubt.pacing_rate(self.rtt.min()?, self.delivered));
        rate.into_iter().chain(held).min()
    }

    /// What may be sent at `now`.
    pub(crate) fn query(&mut self, now: u64) -> Result<Output, Refusal> {
        let now = time("now", now)?;
        self.advance(now);
        let output = self.controller.output();
        let rate = self.pacing_rate();
        let waits = self.launched_after.is_none();
        let phase = match (waits, self.controller.in_startup()) {
            (true, _) => Phase::Waiting,
            (false, true) => Phase::Startup,
            (false, false) => Phase::Avoidance,
        };
        let (sampled, min_rtt) = (self.rtt.is_sampled(), self.rtt.min().unwrap_or_default());
        Ok(Output {
            ssthresh: self.controller.ssthresh().get(),
            pacing_rate: rate.unwrap_or(UNPACED).bits_per_sec(),
            next_send: rate.map_or(self.now, |_| self.pacer.release_time(self.now)).as_nanos(),
            burst: if waits { output.cwnd } else { output.burst }.get(),
            send_quantum: output.send_quantum.get(),
            next_wakeup: if waits { u64::MAX } else { output.next_wakeup.as_nanos() },
            min_rtt: min_rtt.as_nanos(),
            smoothed_rtt: if sampled { self.rtt.smoothed().as_nanos() } else { 0 },
            exit_time: self.exit.map_or(0, |exit| exit.time.as_nanos()),
            exit_cwnd: self.exit.map_or(0, |exit| exit.cwnd.get()),
            exit_reason: text(self.exit.map_or("", |exit| exit.reason)),
            in_recovery: self.controller.in_recovery().into(),
            ..Output::fixed(output.cwnd.max(self.segment * MINIMUM_WINDOW), self.segment, phase)
        })
    }

    /// Size of a full packet.
    pub(crate) fn segment(&self) -> Bytes {
        self.segment
    }
}

/// A name as C reads it, cut to its place; a zero stays behind it.
fn text<const SIZE: usize>(name: &str) -> [c_char; SIZE] {
    let mut text = [0; SIZE];
    for (place, byte) in text.iter_mut().take(SIZE - 1).zip(name.bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    text
}

impl Output {
    /// A window that nothing moves: that of a controller that has failed, or of none.
    pub(crate) fn fallback(segment: Bytes) -> Self {
        Self::fixed(segment * MINIMUM_WINDOW, segment, Phase::Fallback)
    }

    fn fixed(cwnd: Bytes, segment: Bytes, phase: Phase) -> Self {
        Self {
            size: size_of::<Self>(),
            cwnd: cwnd.get(),
            ssthresh: u64::MAX,
            pacing_rate: FASTEST,
            next_send: 0,
            burst: cwnd.get(),
            send_quantum: (segment * MINIMUM_WINDOW).get(),
            next_wakeup: u64::MAX,
            min_rtt: 0,
            smoothed_rtt: 0,
            exit_time: 0,
            exit_cwnd: 0,
            exit_reason: text(""),
            phase,
            in_recovery: 0,
        }
    }
}
