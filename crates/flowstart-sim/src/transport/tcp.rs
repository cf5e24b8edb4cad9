//! The model TCP sender: SACK scoreboard, limited transmit, fast retransmit, RTO.
//!
//! The scoreboard follows RFC 6675: a segment is lost when three segments above it were SACKed. Two ways of counting the
//! bytes in flight are offered ([`Pipe`]). With `lost_retransmissions` a retransmission is lost when a segment that was
//! sent after it is SACKed (RFC 8985 in spirit); otherwise only the retransmission timer notices.
//!
//! Differences: segments are never split or merged; the receive window never shrinks.

use std::collections::VecDeque;

use flowstart_core::event::{Ack, Ecn, Loss, Timeout};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::network::Network;
use crate::packet::Acknowledgement;
use crate::trace::Event;
use crate::traffic::Source;
use crate::transport::profile::{AfterTimeout, MixedAck, Pipe, TailRepair, TimerRestart, TransitionGrowth};
use crate::transport::sender::{Chunk, PacketNumber, Permission, SenderBase};

/// Longest retransmission timeout (RFC 6298, section 2.5).
const MAX_RTO: Duration = Duration::from_millis(60_000);

/// A segment that was sent and is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
struct Segment {
    seq: u64,
    len: u32,
    /// When it was sent last.
    sent_at: Timestamp,
    sacked: bool,
    lost: bool,
    /// Sent again since it was last declared lost.
    retransmitted: bool,
    app_limited: bool,
}

impl Segment {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// What it contributes to pipe (RFC 6675, section 4).
    fn pipe(&self) -> u64 {
        let copies = if self.sacked { 0 } else { u64::from(!self.lost) + u64::from(self.retransmitted) };
        copies * u64::from(self.len)
    }
}

/// Recovery from a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// No loss is known.
    None,
    /// Fast recovery until `point` is acknowledged.
    Fast { point: u64, partial_acks: u32 },
    /// After a timeout, until `point` is acknowledged.
    Timeout { point: u64 },
}

/// The sender.
#[derive(Clone, Debug)]
pub struct TcpSender {
    /// Congestion control and everything else that does not depend on the protocol.
    pub base: SenderBase,
    segments: VecDeque<Segment>,
    una: u64,
    /// End of what was ever sent.
    high: u64,
    high_sacked: u64,
    /// Below this, every segment that is not SACKed was declared lost.
    lost_below: u64,
    /// No segment below this waits for retransmission.
    retransmit_from: u64,
    /// Bytes above `una` that are SACKed.
    sacked_bytes: u64,
    /// SACK blocks of the last acknowledgement.
    known: [(u64, u64); 4],
    duplicates: u32,
    recovery: Recovery,
    /// The first segment is due again, whatever the window: recovery begins (RFC 6675, section 5, step 4.3), or a partial
    /// acknowledgement asks for it.
    repair_head: bool,
    /// The rescue retransmission of this recovery was sent.
    rescued: bool,
    /// Classic pipe, in segments.
    classic_pipe: i64,
    backoff: u32,
    rto_at: Timestamp,
    pacing_at: Timestamp,
}

impl TcpSender {
    /// A sender that has not launched.
    pub fn new(base: SenderBase) -> Self {
        Self {
            base,
            segments: VecDeque::new(),
            una: 0,
            high: 0,
            high_sacked: 0,
            lost_below: 0,
            retransmit_from: 0,
            sacked_bytes: 0,
            known: [(0, 0); 4],
            duplicates: 0,
            recovery: Recovery::None,
            repair_head: false,
            rescued: false,
            classic_pipe: 0,
            backoff: 0,
            rto_at: Timestamp::NEVER,
            pacing_at: Timestamp::NEVER,
        }
    }

    /// When [`TcpSender::on_timer`] wants to be called.
    pub fn next_timer(&mut self) -> Timestamp {
        let wakeup = self.base.controller.output().next_wakeup;
        self.rto_at.min(self.pacing_at).min(wakeup)
    }

    /// The retransmission timeout (RFC 6298, sections 2.3, 2.4 and 5.5).
    fn rto(&self) -> Duration {
        let profile = &self.base.profile;
        let rtt = &self.base.rtt;
        let base = if rtt.is_sampled() {
            (rtt.smoothed() + (rtt.variation() * 4).max(profile.granularity)).max(profile.min_rto)
        } else {
            profile.initial_timeout
        };
        (base * (1 << self.backoff.min(16))).min(MAX_RTO)
    }

    fn restart_timer(&mut self, now: Timestamp) {
        self.rto_at = if self.segments.is_empty() { Timestamp::NEVER } else { now + self.rto() };
    }

    /// An acknowledgement arrived.
    pub fn on_acknowledgement(&mut self, network: &mut Network, ack: &Acknowledgement) {
        let now = network.now();
        let in_flight_before = self.base.in_flight;
        let una_before = self.una;
        self.base.limit = self.base.limit.max(ack.limit);
        self.base.unvalidated = None;
        if ack.position < self.una {
            if let Some(id) = ack.ranges {
                network.ranges.release(id);
            }
            return;
        }
        let advanced = ack.position > self.una;
        let mut outcome = self.take_cumulative(ack.position);
        let newly_sacked = self.take_blocks(network, ack, &mut outcome);
        if advanced {
            self.take_sample(now, ack);
        }
        let was_fast = matches!(self.recovery, Recovery::Fast { .. });
        let only_duplicate = newly_sacked > 0
            && self.recovery == Recovery::None
            && self.base.profile.mixed_ack == MixedAck::DuplicateOnly;
        let progress = advanced && !only_duplicate;
        if progress {
            self.on_progress(network, &mut outcome);
        }
        let declared_lost = network.record(self.base.flow.index).declared_lost;
        self.detect_losses(network, advanced, newly_sacked, in_flight_before);
        self.count_classic(was_fast, advanced);
        if outcome.bytes > Bytes::ZERO {
            let contiguous = self.una;
            network.note(self.base.flow.index, || Event::Acknowledged { contiguous, newly: outcome.bytes });
        }
        // Duplicate acknowledgements do not open the window; PRR counts what they deliver.
        let in_recovery = self.base.controller.in_recovery();
        if outcome.bytes > Bytes::ZERO && (progress || in_recovery) {
            let recovered = was_fast && self.recovery == Recovery::None;
            let bytes = match self.base.profile.transition_growth {
                TransitionGrowth::Advance if recovered => Bytes::new(self.una - una_before),
                _ => outcome.bytes,
            };
            let event = Ack {
                now,
                bytes,
                packets: outcome.packets,
                position: self.una,
                rtt: outcome.sample,
                in_flight_before,
                in_flight: self.base.in_flight,
                safe: advanced && network.record(self.base.flow.index).declared_lost == declared_lost,
                app_limited: outcome.app_limited,
            };
            self.base.controller.on_ack(&event, &self.base.rtt);
        }
        if ack.ce_count > self.base.ce_count {
            self.base.ce_count = ack.ce_count;
            let event = Ecn { now, position: self.una, in_flight: self.base.in_flight };
            self.base.controller.on_ecn(&event, &self.base.rtt);
        }
        self.base.after_event(network);
    }

    fn is_classic(&self) -> bool {
        self.base.profile.pipe == Pipe::Classic
    }

    /// Removes what `position` acknowledges cumulatively.
    fn take_cumulative(&mut self, position: u64) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(segment) = self.segments.front()
            && segment.end() <= position
        {
            self.base.in_flight = self.base.in_flight.saturating_sub(Bytes::new(segment.pipe()));
            if segment.sacked {
                self.sacked_bytes -= u64::from(segment.len);
            } else {
                outcome.deliver(segment);
            }
            outcome.app_limited = segment.app_limited;
            self.segments.pop_front();
        }
        self.una = position;
        outcome
    }

    /// Marks what the SACK blocks newly report; returns how many segments.
    fn take_blocks(&mut self, network: &mut Network, ack: &Acknowledgement, outcome: &mut Outcome) -> u64 {
        let Some(id) = ack.ranges else {
            self.known = [(0, 0); 4];
            return 0;
        };
        let mut blocks = [(0, 0); 4];
        for (place, range) in blocks.iter_mut().zip(network.ranges.get(id)) {
            *place = *range;
        }
        network.ranges.release(id);
        let mut count = 0;
        let mut newest = None;
        for (start, end) in blocks {
            let mut seq = start.max(self.una);
            while seq < end {
                // What the last acknowledgement already reported is skipped in one step.
                if let Some(known) = self.known.iter().find(|known| known.0 <= seq && seq < known.1) {
                    seq = known.1;
                    continue;
                }
                let Some(index) = self.index_of(seq) else { break };
                let segment = &mut self.segments[index];
                if segment.end() > end {
                    break;
                }
                seq = segment.end();
                if segment.sacked {
                    continue;
                }
                self.base.in_flight = self.base.in_flight.saturating_sub(Bytes::new(segment.pipe()));
                outcome.deliver(segment);
                newest = newest.max(Some(segment.sent_at));
                segment.sacked = true;
                segment.lost = false;
                segment.retransmitted = false;
                self.sacked_bytes += u64::from(segment.len);
                self.high_sacked = self.high_sacked.max(segment.end());
                count += 1;
            }
        }
        self.known = blocks;
        if let (true, Some(newest)) = (self.base.profile.lost_retransmissions, newest) {
            self.detect_lost_retransmissions(newest);
        }
        count
    }

    /// A retransmission older than something that has since arrived is lost.
    fn detect_lost_retransmissions(&mut self, newest: Timestamp) {
        if self.recovery == Recovery::None {
            return;
        }
        for segment in self.segments.iter_mut().take_while(|segment| segment.seq < self.high_sacked) {
            if segment.retransmitted && !segment.sacked && segment.sent_at < newest {
                self.base.in_flight = self.base.in_flight.saturating_sub(Bytes::new(segment.pipe()));
                segment.retransmitted = false;
                segment.lost = true;
                self.retransmit_from = self.retransmit_from.min(segment.seq);
            }
        }
    }

    /// The index of the segment that starts at `seq`.
    fn index_of(&self, seq: u64) -> Option<usize> {
        let first = self.segments.front()?;
        // Nearly all segments have the same size, so the guess is nearly always right.
        let guess = (seq.checked_sub(first.seq)? / u64::from(first.len.max(1))) as usize;
        if self.segments.get(guess).is_some_and(|segment| segment.seq == seq) {
            return Some(guess);
        }
        self.segments.binary_search_by_key(&seq, |segment| segment.seq).ok()
    }

    fn take_sample(&mut self, now: Timestamp, ack: &Acknowledgement) {
        let resolution = self.base.profile.sample_resolution.as_nanos();
        let floor =
            |time: Timestamp| time.as_nanos().checked_div(resolution).map_or(time.as_nanos(), |n| n * resolution);
        let nanos = floor(now) - floor(ack.echo).min(floor(now));
        self.base.rtt.update(now, Duration::from_nanos(nanos.max(1000)), Duration::ZERO);
        self.backoff = 0;
    }

    /// The cumulative acknowledgement advanced.
    fn on_progress(&mut self, network: &mut Network, outcome: &mut Outcome) {
        let now = network.now();
        outcome.sample = self.base.rtt.latest();
        let mut restart = true;
        match &mut self.recovery {
            Recovery::None => self.duplicates = 0,
            Recovery::Fast { point, .. } | Recovery::Timeout { point } if self.una >= *point => {
                self.recovery = Recovery::None;
                self.duplicates = 0;
            }
            Recovery::Fast { partial_acks, .. } => {
                *partial_acks += 1;
                self.repair_head = self.base.profile.tail_repair == TailRepair::PartialAck;
                restart = self.base.profile.timer_restart == TimerRestart::EveryAck || *partial_acks == 1;
            }
            Recovery::Timeout { .. } => {}
        }
        if restart {
            self.restart_timer(now);
        }
        if self.segments.is_empty() {
            self.rto_at = Timestamp::NEVER;
        }
    }

    /// Declares losses and enters recovery.
    fn detect_losses(&mut self, network: &mut Network, advanced: bool, newly_sacked: u64, before: Bytes) {
        let classic = self.is_classic();
        if !classic {
            self.mark_lost(network);
        }
        // RFC 6675, section 2: what newly SACKs is a duplicate, whether or not it also acknowledges cumulatively. Classic
        // stacks follow RFC 5681.
        if newly_sacked > 0 && !(classic && advanced) {
            self.duplicates += 1;
        }
        if self.recovery != Recovery::None {
            return;
        }
        let head_lost = self.segments.front().is_some_and(|head| head.lost);
        if self.duplicates < self.base.profile.packet_threshold && !head_lost {
            return;
        }
        let Some(head) = self.segments.front_mut() else { return };
        if !head.lost {
            self.base.in_flight = self.base.in_flight.saturating_sub(Bytes::new(head.pipe()));
            head.lost = true;
            head.retransmitted = false;
            let (offset, len) = (head.seq, head.len);
            network.record(self.base.flow.index).declared_lost += 1;
            network.note(self.base.flow.index, || Event::DeclaredLost { offset, len });
        }
        self.recovery = Recovery::Fast { point: self.high, partial_acks: 0 };
        self.rescued = false;
        self.repair_head = !classic;
        self.retransmit_from = self.una;
        if classic {
            let outstanding = self.segments.len() as i64;
            self.classic_pipe = outstanding - i64::from(self.base.profile.packet_threshold);
        }
        // Everything that is outstanding belongs to this event, whatever of it turns out to be lost.
        let position = self.high - 1;
        let in_flight = self.base.in_flight;
        let event = Loss {
            now: network.now(),
            bytes: before - in_flight.min(before),
            position,
            in_flight_before: before,
            in_flight,
        };
        self.base.controller.on_loss(&event, &self.base.rtt);
    }

    /// RFC 6675, `IsLost`: three SACKed segments above.
    fn mark_lost(&mut self, network: &mut Network) {
        if self.sacked_bytes == 0 {
            return;
        }
        let top = self.segments.partition_point(|segment| segment.seq < self.high_sacked);
        let mut above = 0;
        let mut edge = None;
        for index in (0..top).rev() {
            if self.segments[index].seq < self.lost_below {
                break;
            }
            above += u32::from(self.segments[index].sacked);
            if above == self.base.profile.packet_threshold {
                edge = Some(index);
                break;
            }
        }
        let Some(edge) = edge else { return };
        let first = self.segments.partition_point(|segment| segment.seq < self.lost_below);
        for index in first..edge {
            let segment = &mut self.segments[index];
            if segment.sacked || segment.lost {
                continue;
            }
            self.base.in_flight = self.base.in_flight.saturating_sub(Bytes::new(u64::from(segment.len)));
            segment.lost = true;
            let (offset, len) = (segment.seq, segment.len);
            self.retransmit_from = self.retransmit_from.min(offset);
            network.record(self.base.flow.index).declared_lost += 1;
            network.note(self.base.flow.index, || Event::DeclaredLost { offset, len });
        }
        self.lost_below = self.segments[edge].seq;
    }

    /// The classic pipe: every acknowledgement in recovery takes one off, a partial one another.
    fn count_classic(&mut self, was_fast: bool, advanced: bool) {
        if was_fast {
            self.classic_pipe -= 1 + i64::from(advanced && self.recovery != Recovery::None);
        }
    }

    /// The retransmission timer fired, or a paced packet is due.
    pub fn on_timer(&mut self, network: &mut Network) {
        let now = network.now();
        if self.rto_at <= now {
            self.on_timeout(network);
        }
        if self.base.controller.output().next_wakeup <= now {
            self.base.controller.on_timer(now, &self.base.rtt);
        }
        self.base.after_event(network);
    }

    fn on_timeout(&mut self, network: &mut Network) {
        let now = network.now();
        network.note(self.base.flow.index, || Event::TimerFired);
        let in_flight_before = self.base.in_flight;
        self.backoff += 1;
        self.duplicates = 0;
        self.recovery = Recovery::Timeout { point: self.high };
        self.retransmit_from = self.una;
        self.lost_below = self.una;
        // Classic stacks forget what was SACKed (RFC 2018, section 8).
        let forget = self.is_classic();
        for segment in &mut self.segments {
            segment.sacked &= !forget;
            segment.lost = !segment.sacked;
            segment.retransmitted = false;
        }
        if forget {
            self.sacked_bytes = 0;
            self.high_sacked = self.una;
            self.known = [(0, 0); 4];
        }
        self.base.in_flight = Bytes::ZERO;
        self.base.controller.on_timeout(&Timeout { now, in_flight_before }, &self.base.rtt);
        self.rto_at = now + self.rto();
    }

    /// Sends what may be sent.
    pub fn pump(&mut self, network: &mut Network, source: &Source) {
        self.pacing_at = Timestamp::NEVER;
        if self.is_classic() && matches!(self.recovery, Recovery::Fast { .. }) {
            return self.pump_classic(network, source);
        }
        if std::mem::take(&mut self.repair_head) && self.segments.front().is_some_and(|head| !head.retransmitted) {
            let next = self.next_segment(source).unwrap_or(Next::Again(0));
            self.send(network, next);
        }
        let now = network.now();
        loop {
            let Some(next) = self.next_segment(source) else {
                self.base.app_limited = true;
                return;
            };
            let len = match next {
                Next::Again(index) => self.segments[index].len,
                Next::New(chunk) => chunk.len,
            };
            match self.base.permission(now, self.base.profile.in_flight_size(len)) {
                Permission::Now => {}
                Permission::Window => {
                    self.base.app_limited = false;
                    return;
                }
                Permission::Paced(time) => {
                    self.pacing_at = time;
                    return;
                }
            }
            self.send(network, next);
        }
    }

    /// ns-2's send loop in recovery: the first retransmission at once, then whatever the counter lets out.
    fn pump_classic(&mut self, network: &mut Network, source: &Source) {
        if self.retransmit_from == self.una
            && let Some(head) = self.segments.front()
            && head.lost
            && !head.retransmitted
        {
            // The fast retransmission is not counted, and nothing else leaves with it.
            self.send(network, Next::Again(0));
            return;
        }
        let cwnd = self.base.controller.cwnd().get() / u64::from(self.base.profile.segment);
        while self.classic_pipe < cwnd as i64 {
            let next = match self.next_hole() {
                Some(index) => Next::Again(index),
                None => match self.new_data(source) {
                    Some(chunk) => Next::New(chunk),
                    None => return,
                },
            };
            self.send(network, next);
            self.classic_pipe += 1;
        }
    }

    /// The next hole below something that was SACKed, each only once.
    fn next_hole(&mut self) -> Option<usize> {
        let from = self.segments.partition_point(|segment| segment.seq < self.retransmit_from);
        (from..self.segments.len())
            .take_while(|&index| self.segments[index].seq < self.high_sacked)
            .find(|&index| !self.segments[index].sacked && !self.segments[index].retransmitted)
    }

    /// RFC 6675, `NextSeg`.
    fn next_segment(&mut self, source: &Source) -> Option<Next> {
        if self.recovery != Recovery::None {
            let from = self.segments.partition_point(|segment| segment.seq < self.retransmit_from);
            let end = match self.base.profile.after_timeout {
                AfterTimeout::BelowHighestSack if self.sacked_bytes > 0 => {
                    self.segments.partition_point(|segment| segment.seq < self.high_sacked)
                }
                _ => self.segments.len(),
            };
            let lost = (from..end).find(|&index| {
                let segment = &self.segments[index];
                segment.lost && !segment.sacked && !segment.retransmitted
            });
            match lost {
                Some(index) => {
                    self.retransmit_from = self.segments[index].seq;
                    return Some(Next::Again(index));
                }
                None => self.retransmit_from = self.segments.get(end).map_or(self.high, |segment| segment.seq),
            }
        }
        if let Some(chunk) = self.new_data(source) {
            return Some(Next::New(chunk));
        }
        if !matches!(self.recovery, Recovery::Fast { .. }) {
            return None;
        }
        let unsure = self.segments.iter().position(|s| !s.sacked && !s.retransmitted && s.seq < self.high_sacked);
        unsure.or_else(|| self.rescue()).map(Next::Again)
    }

    /// Rule 4: the last segment, once per recovery.
    fn rescue(&self) -> Option<usize> {
        if self.rescued || self.base.profile.tail_repair != TailRepair::Rescue {
            return None;
        }
        self.segments.iter().rposition(|segment| !segment.sacked)
    }

    fn new_data(&self, source: &Source) -> Option<Chunk> {
        let end = source.written().min(self.base.limit);
        let len = end.saturating_sub(self.high).min(u64::from(self.base.profile.payload)) as u32;
        (len > 0).then_some(Chunk { offset: self.high, len })
    }

    fn send(&mut self, network: &mut Network, next: Next) {
        let now = network.now();
        let (chunk, retransmission) = match next {
            Next::New(chunk) => {
                self.segments.push_back(Segment {
                    seq: chunk.offset,
                    len: chunk.len,
                    sent_at: now,
                    sacked: false,
                    lost: false,
                    retransmitted: false,
                    app_limited: self.base.app_limited,
                });
                self.high = chunk.offset + u64::from(chunk.len);
                (chunk, false)
            }
            Next::Again(index) => {
                // What is retransmitted without evidence of loss counts twice, as in RFC 6675's pipe.
                let segment = &mut self.segments[index];
                self.rescued |= !segment.lost && segment.seq >= self.high_sacked;
                if segment.retransmitted {
                    // A segment that is rescued after its retransmission: the earlier copy counts no longer.
                    self.rescued = true;
                    self.base.in_flight = self.base.in_flight.saturating_sub(Bytes::new(u64::from(segment.len)));
                }
                segment.retransmitted = true;
                segment.sent_at = now;
                self.retransmit_from = self.retransmit_from.max(segment.end());
                (Chunk { offset: segment.seq, len: segment.len }, true)
            }
        };
        let position = self.high - 1;
        self.base.send(network, chunk, PacketNumber::default(), position, retransmission);
        if self.rto_at == Timestamp::NEVER {
            self.rto_at = now + self.rto();
        }
    }
}

/// What is sent next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The segment at this index, again.
    Again(usize),
    /// New data.
    New(Chunk),
}

/// What an acknowledgement newly delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    bytes: Bytes,
    packets: u64,
    app_limited: bool,
    sample: Option<Duration>,
}

impl Outcome {
    fn deliver(&mut self, segment: &Segment) {
        self.bytes += Bytes::new(u64::from(segment.len));
        self.packets += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flowstart_core::controller::Controller;
    use flowstart_core::path::PathKnowledge;
    use flowstart_core::units::Rate;

    use super::*;
    use crate::link::LinkConfig;
    use crate::network::Route;
    use crate::traffic::Pattern;
    use crate::transport::profile::Profile;
    use crate::transport::sender::FlowId;

    const SEGMENTS: u64 = 20;

    /// A sender that has just sent all its segments, numbered from 0.
    struct Bench {
        network: Network,
        sender: TcpSender,
        source: Source,
        segment: u64,
    }

    impl Bench {
        fn new(change: impl FnOnce(&mut Profile)) -> Self {
            let mut profile = Profile::named("tcp-rfc").unwrap();
            profile.initial_window = SEGMENTS;
            change(&mut profile);
            let segment = u64::from(profile.payload);
            let mut network = Network::new(1);
            let link = network.add_link(&LinkConfig::new(Rate::from_mbit(1000), Duration::from_millis(10)));
            network.set_route(0, &Route { forward: vec![link], back: Vec::new() });
            let mut source = Source::new(Pattern::Transfer(Bytes::new(SEGMENTS * segment)), 1, 0);
            source.start(Timestamp::ZERO);
            let controller = Controller::new(profile.controller(profile.startup.clone(), profile.avoidance.clone()));
            let base = SenderBase::new(FlowId { index: 0, generation: 0 }, Arc::new(profile), controller);
            let mut sender = TcpSender::new(base);
            sender.base.launch(&mut network, &PathKnowledge::default());
            sender.pump(&mut network, &source);
            Self { network, sender, source, segment }
        }

        /// An acknowledgement of everything below segment `next`, with these segments SACKed; returns how many packets leave.
        fn ack(&mut self, next: u64, sacked: &[u64]) -> u64 {
            let before = self.network.record(0).data_packets;
            let blocks = sacked.iter().map(|index| (index * self.segment, (index + 1) * self.segment));
            let ranges = (!sacked.is_empty()).then(|| self.network.ranges.insert(blocks));
            let ack = Acknowledgement {
                position: next * self.segment,
                ranges,
                delay: Duration::ZERO,
                echo: Timestamp::ZERO,
                limit: u64::MAX,
                ce_count: 0,
            };
            self.sender.on_acknowledgement(&mut self.network, &ack);
            self.sender.pump(&mut self.network, &self.source);
            self.network.record(0).data_packets - before
        }

        fn in_flight(&self) -> u64 {
            self.sender.base.in_flight.get() / self.segment
        }
    }

    #[test]
    fn recovery_begins_with_a_retransmission_whatever_the_window() {
        let mut bench = Bench::new(|_| {});
        assert_eq!((bench.ack(0, &[1]), bench.ack(0, &[2, 1])), (0, 0));
        // 18 in flight, cut to 9; 20 - 3 SACKed - 1 lost = 16 are left, and yet segment 0 leaves: 17.
        assert_eq!(bench.ack(0, &[18, 2, 1]), 1);
        assert_eq!((bench.sender.base.controller.cwnd().get() / bench.segment, bench.in_flight()), (9, 17));
    }

    #[test]
    fn what_is_retransmitted_without_evidence_counts_twice_until_it_is_known_lost() {
        let mut bench = Bench::new(|profile| profile.tail_repair = TailRepair::Timer);
        bench.ack(0, &[1]);
        bench.ack(0, &[2, 1]);
        bench.ack(0, &[17, 2, 1]);
        // Segments 0 and 3 to 14 are known lost once 15 to 17 are SACKed; 18 is not: only 19 is SACKed above it.
        bench.ack(0, &[17, 16, 15]);
        bench.ack(0, &[19]);
        // The copy of 0, segment 18 and seven of the holes fill the window of 9.
        assert_eq!(bench.in_flight(), 9);
        // 11 segments more arrive; holes 11 to 14 and then, for want of anything else, 18.
        bench.ack(11, &[19]);
        assert!(bench.sender.segments.iter().any(|s| s.seq == 18 * bench.segment && s.retransmitted && !s.lost));
        // Retransmitted 11 to 14, and 18 twice.
        assert_eq!(bench.in_flight(), 6);
    }

    #[test]
    fn an_acknowledgement_that_advances_and_sacks_is_the_first_duplicate() {
        let mut bench = Bench::new(|_| {});
        bench.ack(0, &[2]);
        bench.ack(0, &[3, 2]);
        // Cumulative: the two before it no longer count (RFC 6675, section 5).
        bench.ack(1, &[5, 3, 2]);
        assert_eq!(bench.sender.duplicates, 1);
        assert!(bench.sender.segments[0].lost, "but three SACKed segments above the first one tell of its loss");
    }

    #[test]
    fn as_a_duplicate_only_it_leaves_window_and_count_alone() {
        let grown = |mixed_ack| {
            let mut bench = Bench::new(|profile| profile.mixed_ack = mixed_ack);
            bench.ack(1, &[3]);
            let before = bench.sender.duplicates;
            bench.ack(2, &[4, 3]);
            (before, bench.sender.duplicates, bench.sender.base.controller.cwnd().get() / bench.segment)
        };
        assert_eq!(grown(MixedAck::DuplicateOnly), (1, 2, 20));
        assert_eq!(grown(MixedAck::ProgressAndDuplicate), (1, 1, 24));
    }

    /// The last segment is lost together with the first.
    fn tail(tail_repair: TailRepair) -> (u64, u64) {
        let mut bench = Bench::new(|profile| profile.tail_repair = tail_repair);
        for last in 3..19 {
            bench.ack(0, &[last - 2, last - 1, last]);
        }
        (bench.network.record(0).retransmissions, bench.ack(19, &[]))
    }

    #[test]
    fn a_lost_tail_is_repaired_as_the_policy_says() {
        // Rule 4: the last segment leaves when the window has room.
        assert_eq!(tail(TailRepair::Rescue), (2, 0));
        assert_eq!(tail(TailRepair::PartialAck), (1, 1));
        assert_eq!(tail(TailRepair::Timer), (1, 0));
    }

    #[test]
    fn after_a_timeout_everything_or_what_lies_below_a_sack_is_sent_again() {
        let sent = |after_timeout| {
            let mut bench = Bench::new(|profile| profile.after_timeout = after_timeout);
            bench.ack(0, &[2]);
            bench.sender.on_timeout(&mut bench.network);
            bench.sender.pump(&mut bench.network, &bench.source);
            // Segment 0 is there: the window of 2 takes segment 1, and segment 3 when nothing lies below.
            bench.ack(1, &[2])
        };
        assert_eq!(sent(AfterTimeout::Outstanding), 2);
        assert_eq!(sent(AfterTimeout::BelowHighestSack), 1);
    }
}
