//! The model QUIC sender: packet numbers, acknowledgement ranges, RFC 9002 loss detection, PTO, persistent congestion.
//!
//! Differences from RFC 9002:
//! - There is one packet number space after the handshake.
//! - A probe carries new data if there is any, and the oldest unacknowledged data otherwise.
//! - Data that was sent again proactively is repaired when all packets with it are lost.

use std::collections::VecDeque;

use flowstart_core::controller::AckFrame;
use flowstart_core::event::{Ack, Ecn, Loss, Timeout};
use flowstart_core::sources::Sources;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::network::Network;
use crate::observe::trace::Event;
use crate::packet::Acknowledgement;
use crate::ranges::{RangeSet, make_room, subtract};
use crate::traffic::Source;
use crate::transport::sender::transmission::Transmission;
use crate::transport::sender::{Chunk, Sender, SenderBase};

mod transmit;

/// Periods of PTO without any acknowledgement that establish persistent congestion (RFC 9002, section 7.6.1).
const PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;
/// Packets declared lost that are remembered so that a late acknowledgement is recognized as a spurious loss.
const LOST_REMEMBERED: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Acknowledged,
    Lost,
}

/// The data of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cargo {
    /// Data that was sent only once.
    First,
    /// Data that was sent again after a loss or by a probe.
    Again,
    /// Data that is in two packets because it was sent again proactively; see [`QuicSender::doubles`].
    Doubled,
}

/// Data that was sent again proactively.
#[derive(Clone, Copy, Debug)]
struct Double {
    offset: u64,
    /// Packets with it that are in flight.
    in_flight: u8,
    /// One of them was acknowledged.
    delivered: bool,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    time: Timestamp,
    chunk: Chunk,
    state: State,
    cargo: Cargo,
    app_limited: bool,
    /// Number of the first packet with this data.
    first: u64,
}

/// The sender.
#[derive(Clone, Debug)]
pub struct QuicSender {
    /// Congestion control and everything else that does not depend on the protocol.
    pub base: SenderBase,
    /// Packets from `first_number` on; the front is in flight.
    sent: VecDeque<SentPacket>,
    first_number: u64,
    next_number: u64,
    largest_acknowledged: Option<u64>,
    /// Ranges of the last acknowledgement, newest first: only new ranges in the next one need processing.
    known: Vec<(u64, u64)>,
    scratch: Vec<(u64, u64)>,
    /// Lost data to send again, and the number of the first packet with it.
    again: VecDeque<(Chunk, u64)>,
    /// Acknowledged bytes, kept once a trace asks for them.
    acknowledged: Option<Box<RangeSet>>,
    next_offset: u64,
    /// The time when the time threshold declares the next packet lost.
    loss_time: Timestamp,
    pto_count: u32,
    last_sent: Timestamp,
    probes_due: u32,
    pacing_at: Timestamp,
    remembered_lost: VecDeque<u64>,
    /// The walk of proactive retransmissions has passed every packet from this number on.
    walked_from: u64,
    /// Proactively retransmitted data that is still in flight, by offset.
    doubles: VecDeque<Double>,
}

impl QuicSender {
    /// A sender that has not launched.
    pub fn new(base: SenderBase) -> Self {
        Self {
            base,
            sent: VecDeque::new(),
            first_number: 0,
            next_number: 0,
            largest_acknowledged: None,
            known: Vec::new(),
            scratch: Vec::new(),
            again: VecDeque::new(),
            acknowledged: None,
            next_offset: 0,
            loss_time: Timestamp::NEVER,
            pto_count: 0,
            last_sent: Timestamp::ZERO,
            probes_due: 0,
            pacing_at: Timestamp::NEVER,
            remembered_lost: VecDeque::new(),
            walked_from: 0,
            doubles: VecDeque::new(),
        }
    }

    /// The probe timeout (RFC 9002, section 6.2.1).
    fn pto(&self) -> Duration {
        let profile = &self.base.profile;
        self.base.rtt.probe_timeout(profile.granularity, profile.ack.max_delay)
    }

    fn pto_time(&self) -> Timestamp {
        if self.base.in_flight == Bytes::ZERO || self.loss_time != Timestamp::NEVER {
            return Timestamp::NEVER;
        }
        self.last_sent + self.pto() * (1 << self.pto_count.min(16))
    }

    /// End of what is acknowledged without gap: before anything in flight and anything lost. Only a trace asks.
    fn contiguous(&mut self) -> u64 {
        if self.acknowledged.is_none() {
            self.acknowledged = Some(Box::new(self.acknowledged_so_far()));
        }
        self.acknowledged.as_ref().map_or(0, |bytes| bytes.contiguous_end(0))
    }

    /// All sent data except data in flight or waiting for retransmission.
    fn acknowledged_so_far(&self) -> RangeSet {
        let missing = |packet: &&SentPacket| packet.state == State::InFlight && !self.is_delivered(packet);
        let in_flight = self.sent.iter().filter(missing).map(|packet| packet.chunk);
        let mut chunks: Vec<Chunk> = self.again.iter().map(|(chunk, _)| *chunk).chain(in_flight).collect();
        chunks.sort_unstable_by_key(|chunk| chunk.offset);
        let (mut bytes, mut known) = (RangeSet::default(), 0);
        for chunk in chunks {
            bytes.insert(known, chunk.offset);
            known = known.max(chunk.offset + u64::from(chunk.len));
        }
        bytes.insert(known, self.next_offset);
        bytes
    }

    /// Marks the packets that `ack` newly acknowledges.
    fn take_ranges(&mut self, network: &mut Network, ack: &Acknowledgement) -> Outcome {
        let mut outcome = Outcome::default();
        let mut fresh = std::mem::take(&mut self.scratch);
        fresh.clear();
        match ack.ranges {
            None => {
                // Everything up to `position` was received.
                let all = (self.first_number.min(ack.position), ack.position + 1);
                subtract(&[all], &self.known, &mut fresh);
                self.known.clear();
                self.known.push(all);
            }
            Some(id) => {
                let ranges = network.ranges.get(id);
                subtract(ranges, &self.known, &mut fresh);
                // An overtaken older acknowledgement must not hide the contents of newer ones.
                if ranges.first().map(|r| r.1) >= self.known.first().map(|r| r.1) {
                    self.known.clear();
                    for range in ranges {
                        make_room(&mut self.known);
                        self.known.push(*range);
                    }
                }
                network.ranges.release(id);
            }
        }
        let sampled = self.base.sampling.is_some();
        for &(start, end) in &fresh {
            for number in start.max(self.first_number)..end.min(self.next_number) {
                let packet = &mut self.sent[(number - self.first_number) as usize];
                match packet.state {
                    State::Acknowledged => continue,
                    State::Lost => {
                        network.record(self.base.flow.index).spurious += 1;
                        self.forget_lost(number);
                        continue;
                    }
                    State::InFlight => {}
                }
                packet.state = State::Acknowledged;
                let packet = *packet;
                if let Some(bytes) = &mut self.acknowledged {
                    bytes.insert(packet.chunk.offset, packet.chunk.offset + u64::from(packet.chunk.len));
                }
                if packet.cargo == Cargo::Doubled {
                    self.settle(packet.chunk.offset, true);
                }
                let size = self.base.profile.in_flight_size(packet.chunk.len);
                self.base.in_flight -= size;
                if sampled {
                    self.base.sample_delivered((number - self.first_number) as usize, network.now(), number, size);
                }
                outcome.bytes += size;
                outcome.packets += 1;
                if number == ack.position {
                    outcome.largest_sent_at = Some(packet.time);
                    outcome.app_limited = packet.app_limited;
                }
            }
            for number in start..end.min(self.first_number) {
                if self.forget_lost(number) {
                    network.record(self.base.flow.index).spurious += 1;
                }
            }
        }
        self.scratch = fresh;
        self.drop_settled();
        outcome
    }

    /// A packet with doubled data was acknowledged or declared lost; returns whether all of them are lost.
    fn settle(&mut self, offset: u64, delivered: bool) -> bool {
        let Ok(index) = self.doubles.binary_search_by_key(&offset, |double| double.offset) else { return !delivered };
        let double = &mut self.doubles[index];
        double.in_flight -= 1;
        double.delivered |= delivered;
        let Double { in_flight, delivered, .. } = *double;
        if in_flight == 0 {
            self.doubles.remove(index);
        }
        in_flight == 0 && !delivered
    }

    /// Whether another packet with the same data was acknowledged.
    fn is_delivered(&self, packet: &SentPacket) -> bool {
        let place = self.doubles.binary_search_by_key(&packet.chunk.offset, |double| double.offset);
        packet.cargo == Cargo::Doubled && place.is_ok_and(|index| self.doubles[index].delivered)
    }

    /// Whether the packet was declared lost, forgetting it.
    fn forget_lost(&mut self, number: u64) -> bool {
        if self.remembered_lost.is_empty() {
            return false;
        }
        match self.remembered_lost.binary_search(&number) {
            Ok(index) => self.remembered_lost.remove(index).is_some(),
            Err(_) => false,
        }
    }

    /// Removes packets from the front that are not in flight.
    fn drop_settled(&mut self) {
        let first = self.first_number;
        while self.sent.front().is_some_and(|packet| packet.state != State::InFlight) {
            self.sent.pop_front();
            self.first_number += 1;
        }
        if let Some(sampling) = &mut self.base.sampling {
            sampling.pop((self.first_number - first) as usize);
        }
    }

    /// RFC 9002, section 6.1: packet and time threshold; section 7.6: persistent congestion. Returns the lost data, and
    /// whether it establishes persistent congestion.
    fn detect_losses(&mut self, network: &mut Network, in_flight_before: Bytes) -> Option<(Loss, bool)> {
        let largest = self.largest_acknowledged?;
        let now = network.now();
        let threshold = u64::from(self.base.profile.packet_threshold);
        let rtt = &self.base.rtt;
        let delay = self.base.profile.time_threshold.map_or(Duration::MAX, |factor| {
            rtt.smoothed().max(rtt.latest().unwrap_or_default()).scale(factor).max(self.base.profile.granularity)
        });
        self.loss_time = Timestamp::NEVER;
        let mut largest_lost = 0;
        // First and last packet of the longest run of losses without an acknowledged packet between them.
        let mut run: Option<(Timestamp, Timestamp)> = None;
        let mut persistent = Duration::ZERO;
        for index in 0..self.sent.len() {
            let number = self.first_number + index as u64;
            if number >= largest {
                break;
            }
            let packet = self.sent[index];
            match packet.state {
                State::Acknowledged => run = None,
                State::Lost => {}
                State::InFlight => {
                    let expires = packet.time + delay;
                    if largest < number + threshold && expires > now {
                        self.loss_time = expires;
                        break;
                    }
                    self.sent[index].state = State::Lost;
                    let size = self.base.profile.in_flight_size(packet.chunk.len);
                    self.base.in_flight -= size;
                    self.base.declare_lost(index, now, (number, number + 1), size);
                    largest_lost = number;
                    if packet.cargo != Cargo::Doubled || self.settle(packet.chunk.offset, false) {
                        self.again.push_back((packet.chunk, packet.first));
                        self.base.controller.on_retransmission(packet.first, size);
                    }
                    self.remember_lost(number);
                    network.record(self.base.flow.index).declared_lost += 1;
                    let Chunk { offset, len } = packet.chunk;
                    network.note(self.base.flow.index, || Event::DeclaredLost { offset, len });
                    if self.base.rtt.first_sample_at().is_some_and(|first| packet.time > first) {
                        let start = run.map_or(packet.time, |(start, _)| start);
                        run = Some((start, packet.time));
                        persistent = persistent.max(packet.time.since(start));
                    }
                }
            }
        }
        let lost = self.base.take_lost();
        if lost == Bytes::ZERO {
            return None;
        }
        self.drop_settled();
        let event = Loss { now, bytes: lost, position: largest_lost, in_flight_before, in_flight: self.base.in_flight };
        Some((event, persistent > self.pto() * PERSISTENT_CONGESTION_THRESHOLD))
    }

    fn remember_lost(&mut self, number: u64) {
        if self.remembered_lost.len() == LOST_REMEMBERED {
            self.remembered_lost.pop_front();
        } else if self.remembered_lost.len() == self.remembered_lost.capacity() {
            // All capacity at once: with occasional losses the list would otherwise grow for minutes.
            self.remembered_lost.reserve_exact(LOST_REMEMBERED - self.remembered_lost.len());
        }
        self.remembered_lost.push_back(number);
    }
}

/// The newly acknowledged data of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    bytes: Bytes,
    packets: u64,
    largest_sent_at: Option<Timestamp>,
    app_limited: bool,
}

impl Sender for QuicSender {
    fn base(&self) -> Option<&SenderBase> {
        Some(&self.base)
    }

    fn base_mut(&mut self) -> Option<&mut SenderBase> {
        Some(&mut self.base)
    }

    fn launch(&mut self, network: &mut Network, sources: &mut Sources, unvalidated: Option<u64>) {
        self.base.unvalidated = unvalidated;
        self.base.launch(network, sources);
    }

    fn on_acknowledgement(&mut self, network: &mut Network, ack: &Acknowledgement) {
        let now = network.now();
        let in_flight_before = self.base.in_flight;
        self.base.limit = self.base.limit.max(ack.limit);
        self.base.unvalidated = None;
        let answer = self.base.answer_in(network, ack);
        let outcome = self.take_ranges(network, ack);
        let largest = self.largest_acknowledged.map_or(ack.position, |known| known.max(ack.position));
        self.largest_acknowledged = Some(largest);
        // RFC 9002, section 5.1: a sample only if the largest acknowledged packet is newly acknowledged.
        let mut rtt = None;
        if let Some(newest) = outcome.largest_sent_at.filter(|sent_at| self.base.is_on_path(*sent_at)) {
            let sample = now.since(newest);
            self.base.rtt.update(now, sample, ack.delay);
            rtt = Some(sample.saturating_sub(ack.delay).max(self.base.rtt.min().unwrap_or_default()));
        }
        let mut frame = AckFrame::default();
        if let Some((lost, persistent)) = self.detect_losses(network, in_flight_before) {
            (frame.lost, frame.persistent_congestion) = (Some(lost), persistent);
        }
        if ack.ce_count > self.base.ce_count {
            let packets = u64::from(ack.ce_count - self.base.ce_count);
            self.base.ce_count = ack.ce_count;
            frame.marked = Some(Ecn { now, position: largest, in_flight: in_flight_before, packets });
        }
        if outcome.packets > 0 {
            self.pto_count = 0;
            let mut event = Ack::new(now, outcome.bytes, outcome.packets, largest);
            event.rtt = rtt;
            event.in_flight_before = in_flight_before;
            event.in_flight = self.base.in_flight;
            event.safe = frame.lost.is_none();
            event.app_limited = outcome.app_limited;
            self.base.add_sample(&mut event);
            frame.delivered = Some(event);
            let contiguous = if network.is_traced() { self.contiguous() } else { 0 };
            network.note(self.base.flow.index, || Event::Acknowledged { contiguous, newly: outcome.bytes });
        }
        self.base.controller.on_ack_frame(&frame, &self.base.rtt);
        if let Some(answer) = answer {
            self.base.on_answer(network, &answer);
        }
        self.base.after_event(network);
    }

    fn on_timer(&mut self, network: &mut Network) {
        let now = network.now();
        if self.loss_time <= now {
            let in_flight_before = self.base.in_flight;
            if let Some((lost, persistent)) = self.detect_losses(network, in_flight_before) {
                self.base.controller.on_loss(&lost, &self.base.rtt);
                if persistent {
                    self.base.controller.on_persistent_congestion(&Timeout { now, in_flight_before }, &self.base.rtt);
                }
            }
        } else if self.pto_time() <= now {
            network.note(self.base.flow.index, || Event::TimerFired);
            self.pto_count += 1;
            self.probes_due = 2;
            // The timer restarts here, even if the probes find nothing to carry.
            self.last_sent = now;
        }
        if self.base.controller.next_wakeup() <= now {
            self.base.controller.on_timer(now, &self.base.rtt);
        }
        self.base.after_event(network);
    }

    fn pump(&mut self, network: &mut Network, source: &Source) {
        while self.probes_due > 0 {
            self.probes_due -= 1;
            let Some(next) = self.probe(source) else { break };
            self.send(network, next);
        }
        self.pacing_at = self.pump_permitted(network, source);
    }

    fn next_timer(&mut self) -> Timestamp {
        let wakeup = self.base.controller.next_wakeup();
        self.loss_time.min(self.pto_time()).min(self.pacing_at).min(wakeup)
    }

    fn next_offset(&self) -> u64 {
        self.next_offset
    }
}

#[cfg(test)]
mod tests;
