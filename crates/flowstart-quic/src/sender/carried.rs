//! The sender's part for a host that keeps what a packet needs itself, and hands it back with the packet's fate.
//!
//! Such a host (s2n-quic) reports an ACK frame in the controller's own order: the RTT sample, each lost packet, the
//! number of marks, and last the sum of what was delivered with the newest packet of it. So a frame is collected until
//! its sum comes, another event happens, or the host asks for the window. The host's smoothed RTT already contains the
//! sample, so no sample is late. Every packet says whether the application limited the sender when it left.

use flowstart_core::controller::AckFrame;
use flowstart_core::delivery_rate::Snapshot;
use flowstart_core::event::{Ack, Ecn, Loss, Position};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use super::{SHORTEST_RTT, Sender};

/// What the host keeps with a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    position: Position,
    snapshot: Snapshot,
    app_limited: bool,
}

impl Sender {
    /// A packet left. `app_limited`: the window had room behind it, and the application nothing to send.
    pub(crate) fn on_carried_sent(&mut self, now: Timestamp, bytes: Bytes, app_limited: bool) -> Carried {
        let snapshot = self.leaves(now, bytes);
        let position = self.sent.pass();
        self.has_left(&snapshot, bytes);
        self.app_limited = app_limited;
        if app_limited {
            self.rate.mark_app_limited(self.in_flight);
        }
        Carried { position, snapshot, app_limited }
    }

    /// Bytes that may leave at once with the packet that has just left: it is the first after the launch, or nothing
    /// else is in flight. `launched`: the launch was before it.
    pub(crate) fn burst_with(&mut self, carried: &Carried, bytes: Bytes, launched: bool) -> Option<Bytes> {
        let alone = carried.snapshot.tx_in_flight == bytes && !self.controller.in_recovery();
        (self.is_launched() && (alone || !launched)).then(|| self.burst())
    }

    /// Bytes that may leave at once when sending starts or resumes.
    pub(crate) fn burst(&mut self) -> Bytes {
        self.controller.burst()
    }

    /// Whether the scheme has launched.
    pub(crate) fn is_launched(&self) -> bool {
        self.launched_after.is_some()
    }

    /// An ACK frame begins with an RTT sample: `latest` with the receiver's delay, `smoothed` with the sample in it.
    pub(crate) fn on_rtt_sample(&mut self, now: Timestamp, latest: Duration, smoothed: Duration) {
        self.advance(now);
        let latest = latest.max(SHORTEST_RTT);
        if self.rtt.is_sampled() {
            self.sample = Some((now, latest));
        } else {
            // The first one is that of the handshake, whose packets are acknowledged at once.
            self.rtt.update(now, latest, Duration::ZERO);
            self.adjusted = Some(latest);
        }
        self.take_smoothed(smoothed);
    }

    /// A packet was declared lost; `persistent`: it is part of persistent congestion.
    pub(crate) fn on_carried_lost(&mut self, now: Timestamp, bytes: Bytes, carried: &Carried, persistent: bool) {
        let (mut frame, in_flight_before) = self.begin_congestion(now);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let Carried { position, snapshot, .. } = *carried;
        self.count_lost(now, &snapshot, position, bytes, 1);
        let before = frame.lost.map_or((Bytes::ZERO, 0), |lost| (lost.bytes, lost.position));
        let (bytes, position) = (before.0 + bytes, before.1.max(position));
        frame.lost = Some(Loss { now, bytes, position, in_flight_before, in_flight: self.in_flight });
        frame.persistent_congestion |= persistent;
        self.kept = Some((now, frame));
    }

    /// So many packets were newly reported as marked.
    pub(crate) fn on_marked(&mut self, now: Timestamp, packets: u64) {
        let (mut frame, in_flight) = self.begin_congestion(now);
        // The peer may claim any number, and numbers are summed up.
        let packets = packets.min(u32::MAX.into());
        let packets = frame.marked.map_or(0, |marked| marked.packets).saturating_add(packets);
        frame.marked = Some(Ecn { now, position: self.largest_acknowledged, in_flight, packets });
        self.kept = Some((now, frame));
    }

    /// An ACK frame ends with the sum of what it delivered, of which `newest` left last.
    pub(crate) fn on_carried_delivered(&mut self, now: Timestamp, bytes: Bytes, newest: &Carried) {
        let (mut frame, in_flight_before) = self.begin(now);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let Carried { position, snapshot, app_limited } = *newest;
        self.rate.on_delivered(now, &snapshot, position, bytes);
        self.largest_acknowledged = self.largest_acknowledged.max(position);
        if let Some(marked) = &mut frame.marked {
            marked.position = self.largest_acknowledged;
        }
        if self.launched_after.is_some_and(|launch| position > launch) {
            self.first_flight = false;
            // The host sums up bytes, and does not count the packets.
            let packets = bytes.get().div_ceil(self.packet.get().max(1));
            let mut delivered = Ack::new(now, bytes, packets, self.largest_acknowledged);
            delivered.rtt = self.adjusted.take();
            (delivered.in_flight_before, delivered.in_flight) = (in_flight_before, self.in_flight);
            (delivered.app_limited, delivered.safe) = (app_limited, frame.lost.is_none());
            frame.delivered = Some(delivered);
        }
        if frame.delivered.is_some() || frame.marked.is_some() || frame.lost.is_some() {
            self.kept = Some((now, frame));
        }
    }

    /// Packets count no longer, and were neither delivered nor lost: their keys are gone, or they looked for a larger
    /// MTU.
    pub(crate) fn on_discarded(&mut self, bytes: Bytes) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// What has been reported of the ACK frame at `now`, and the bytes in flight before it.
    fn begin(&mut self, now: Timestamp) -> (AckFrame, Bytes) {
        let open = self.kept.filter(|(kept, frame)| *kept == now && frame.delivered.is_none());
        let Some((_, frame)) = open else {
            self.advance(now);
            return (AckFrame::default(), self.in_flight);
        };
        let lost = frame.lost.map(|lost| lost.in_flight_before);
        let before = lost.or_else(|| frame.marked.map(|marked| marked.in_flight));
        (frame, before.unwrap_or(self.in_flight))
    }

    /// [`Sender::begin`] for a sign of congestion, which launches what waits.
    fn begin_congestion(&mut self, now: Timestamp) -> (AckFrame, Bytes) {
        let begun = self.begin(now);
        self.launch_into_congestion();
        begun
    }
}
