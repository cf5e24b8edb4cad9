//! What was acknowledged and lost.

use flowstart_core::needs::Needs;
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;

use super::super::flight::Packet;
use super::super::recorded_sender::Lost;
use super::{Host, SHORTEST_RTT};
use crate::recording::event::{Acknowledged, Space};

impl Host<'_> {
    pub(super) fn on_acknowledged(&mut self, space: Space, frame: &Acknowledged) {
        if self.group.as_ref().is_some_and(|group| group.acknowledges) {
            self.settle();
        }
        self.judge(None);
        self.run_timers();
        self.doubt_stop();
        if space == Space::Application {
            self.flight.discard_handshake();
        }
        self.open_group();
        let now = self.now;
        let mut group = self.group.take().unwrap_or_default();
        group.acknowledges = true;
        let mut newest: Option<(u64, Packet)> = None;
        let (mut solicited, mut segment) = (false, self.segment);
        for &range in &frame.ranges {
            while let Some((number, packet)) = self.flight.take_first(space, range) {
                if newest.is_none() {
                    self.take_sample();
                }
                self.rate.on_delivered(now, &packet.snapshot, packet.position, Bytes::new(packet.bytes));
                self.delivered.add(packet.position);
                if newest.is_none_or(|(largest, _)| number > largest) {
                    newest = Some((number, packet));
                }
                solicited |= packet.solicits;
                if packet.probes_size {
                    segment = segment.max(packet.bytes);
                }
                group.position = group.position.max(packet.position);
                (self.totals.acknowledged, self.totals.acknowledged_bytes) =
                    (self.totals.acknowledged + 1, self.totals.acknowledged_bytes + packet.bytes);
                if self.launched_after.is_some_and(|launch| packet.position > launch) {
                    (group.delivered, group.packets) = (group.delivered + packet.bytes, group.packets + 1);
                }
            }
            let (arrived, all) = self.doubtful.arrived(space, range);
            self.totals.spurious += arrived;
            if all {
                self.controller.on_spurious_loss(now, &self.rtt);
            }
        }
        if segment > self.segment {
            self.set_segment(segment);
        }
        // RFC 9002, section 5.1: of the largest acknowledged packet, if one of them had to be acknowledged at once.
        let largest = frame.ranges.iter().map(|(_, last)| *last).max();
        if let Some((_, packet)) = newest.filter(|(number, _)| Some(*number) == largest && solicited) {
            // RFC 9002, section 5.3: no more than the peer has announced, and nothing in the handshake.
            let delay = if space == Space::Application { frame.delay.min(self.max_ack_delay) } else { Duration::ZERO };
            self.sample = Some((now, now.since(packet.snapshot.send_time).max(SHORTEST_RTT), delay));
            if !self.rtt.is_sampled() {
                self.take_sample();
            }
        }
        if newest.is_some() {
            (self.last_acknowledged, self.timed_out) = (now, false);
        }
        if let Some(marks) = frame.marks {
            let known = &mut self.marks[space as usize];
            let new = marks.saturating_sub(*known);
            *known = marks.max(*known);
            group.marks += new;
            self.totals.marked += new;
        }
        self.largest_acknowledged = self.largest_acknowledged.max(group.position);
        self.group = Some(group);
    }

    /// The latest RTT sample counts from now on.
    pub(super) fn take_sample(&mut self) {
        let Some((taken, sample, delay)) = self.sample.take() else { return };
        self.rtt.update(taken, sample, delay);
        let without = sample.saturating_sub(delay);
        self.adjusted = Some(if without >= self.rtt.min().unwrap_or_default() { without } else { sample });
    }

    pub(super) fn on_lost(&mut self, space: Space, number: u64, probes_size: bool) {
        self.run_timers();
        self.open_group();
        let (Some(packet), Some(group)) = (self.flight.take(space, number), &mut self.group) else { return };
        // The loss of a probe for the size of packets is no congestion (RFC 9000, section 14.4).
        if probes_size || packet.probes_size {
            return;
        }
        self.has_lost = true;
        self.totals.lost += 1;
        self.totals.lost_bytes += packet.bytes;
        self.owed += packet.bytes;
        let (position, sent, solicits) = (packet.position, packet.snapshot.send_time, packet.solicits);
        group.lost.push(Lost { position, sent, solicits, space, number });
        group.lost_bytes += packet.bytes;
        let places = (packet.position, packet.position + 1);
        let lost = self.rate.on_lost(self.now, &packet.snapshot, places, Bytes::new(packet.bytes));
        if self.launched_after.is_some_and(|launch| packet.position > launch) {
            if self.controller.needs().contains(Needs::RATE_SAMPLES) {
                self.controller.on_packet_lost(&lost);
            }
            self.controller.on_retransmission(packet.position, Bytes::new(packet.bytes));
        }
    }
}
