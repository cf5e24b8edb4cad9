//! What hosts that report losses and marks after an acknowledgement say of congestion.

use flowstart_core::controller::AckFrame;
use flowstart_core::delivery_rate::Snapshot;
use flowstart_core::event::{Ecn, Loss, Position, Timeout};
use flowstart_core::needs::Needs;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

use super::{Lost, Sender};
use crate::sent::LostPlace;

impl Sender {
    /// A packet was declared lost. If the host reports only sums, `number` is `None` and the packets are those sent up
    /// to `sent_at`.
    pub(crate) fn on_packet_lost(&mut self, now: Timestamp, bytes: Bytes, place: LostPlace) {
        if self.kept.is_none_or(|(kept, _)| kept != now) {
            self.advance(now);
        }
        let packets = match place {
            LostPlace::Number(_) => 1,
            LostPlace::SentAt(_) => bytes.get().div_ceil(self.packet.get().max(1)),
        };
        let Some(position) = self.sent.find_lost(place) else { return };
        let Some(packet) = self.sent.settle(position, bytes) else { return };
        self.lost.bytes += bytes;
        self.lost.position = self.lost.position.max(position);
        self.count_lost(now, &packet.snapshot, position, bytes, packets);
    }

    /// The packet at `position`, or several that a host reports together, was lost.
    pub(super) fn count_lost(
        &mut self,
        now: Timestamp,
        snapshot: &Snapshot,
        position: Position,
        bytes: Bytes,
        packets: u64,
    ) {
        let lost = self.rate.on_lost(now, snapshot, (position, position + 1), bytes);
        let after_launch = self.launched_after.is_some_and(|launch| position > launch);
        if after_launch {
            if self.controller.needs().contains(Needs::RATE_SAMPLES) {
                self.controller.on_packet_lost(&lost);
            }
            self.controller.on_retransmission(position, bytes);
        }
        self.status.lost += bytes;
        self.status.lost_packets += packets;
        // Most losses of a launch are found after the first loss has ended it.
        if after_launch && position <= self.startup_until {
            self.status.startup_lost += bytes;
        }
    }

    /// The packets reported before are all that one detection found; `persistent`: they establish persistent
    /// congestion.
    pub(crate) fn on_loss(&mut self, now: Timestamp, persistent: bool) {
        self.now = self.now.max(now);
        let Lost { bytes, position } = core::mem::take(&mut self.lost);
        if bytes == Bytes::ZERO {
            return;
        }
        self.launch_into_congestion();
        let in_flight_before = self.in_flight;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let in_flight = self.in_flight;
        let mut loss = Loss { now, bytes, position, in_flight_before, in_flight };
        if let Some((_, frame)) = self.kept.as_mut().filter(|(kept, _)| *kept == now) {
            if let Some(ack) = &mut frame.delivered {
                (ack.in_flight, ack.safe) = (in_flight, false);
                loss.in_flight_before = ack.in_flight_before;
            }
            if let Some(before) = frame.lost {
                loss = Loss { bytes: before.bytes + bytes, position: before.position.max(position), ..loss };
            }
            frame.lost = Some(loss);
            frame.persistent_congestion |= persistent;
            return;
        }
        self.settle();
        self.controller.on_loss(&loss, &self.rtt);
        if persistent {
            self.controller.on_persistent_congestion(&Timeout { now, in_flight_before }, &self.rtt);
        }
        self.publish();
    }

    /// New CE marks were echoed.
    pub(crate) fn on_ecn(&mut self, now: Timestamp) {
        let position = self.largest_acknowledged;
        // The hosts report marks, but not their number.
        let mut ecn = Ecn { now, position, in_flight: self.in_flight, packets: 1 };
        if let Some((_, frame)) = self.kept.as_mut().filter(|(kept, _)| *kept == now) {
            ecn.in_flight = frame.delivered.map_or(ecn.in_flight, |ack| ack.in_flight_before);
            frame.marked = Some(ecn);
            return;
        }
        self.advance(now);
        self.launch_into_congestion();
        self.controller.on_ack_frame(&AckFrame { marked: Some(ecn), ..AckFrame::default() }, &self.rtt);
        self.publish();
    }

    /// All packets that were declared lost were delivered after all.
    pub(crate) fn on_spurious_loss(&mut self) {
        self.settle();
        self.controller.on_spurious_loss(self.now, &self.rtt);
        self.publish();
    }
}
