//! The TCP sender's choice and timing of the next packet.

use flowstart_core::time::{Duration, Timestamp};

use super::{Probe, Recovery, TcpSender};
use crate::network::Network;
use crate::traffic::Source;
use crate::transport::policy::{LossDetection, RttSamples, TailRepair, TimerRestart};
use crate::transport::sender::transmission::Transmission;
use crate::transport::sender::{Chunk, PacketNumber, SenderBase};

impl TcpSender {
    /// A loss probe regardless of the window: new data, or the last segment once more (RFC 8985, section 7.3).
    pub(super) fn probe(&mut self, network: &mut Network, source: &Source) {
        let last = self.board.len().checked_sub(1).map(Next::Again);
        let Some(next) = self.new_data(source).map(Next::New).or(last) else { return };
        self.send(network, next);
        self.probed = Some(Probe { high: self.board.high(), again: matches!(next, Next::Again(_)) });
        (self.probe_at, self.rto_at) = (Timestamp::NEVER, network.now() + self.rto());
    }

    /// ns-2's send loop in recovery: the first retransmission immediately, then as much as the counter allows.
    pub(super) fn pump_classic(&mut self, network: &mut Network, source: &Source) {
        if self.board.is_head_due() {
            // The fast retransmission is not counted, and nothing else leaves with it.
            self.send(network, Next::Again(0));
            return;
        }
        let cwnd = self.base.controller.cwnd().get() / u64::from(self.base.profile.segment);
        while self.classic_pipe < cwnd as i64 {
            let next = match self.board.next_hole() {
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

    /// ns-2's send loop after a timeout, from `next` on: SACKs do not count, and the third duplicate stops it until
    /// something is acknowledged.
    pub(super) fn pump_back(&mut self, network: &mut Network, source: &Source, next: u64) {
        if self.duplicates >= self.base.profile.packet_threshold {
            return;
        }
        let una = self.board.una();
        let segment = u64::from(self.base.profile.segment);
        let segments = self.base.controller.cwnd().get() / segment + u64::from(self.duplicates);
        let mut next = next.max(una);
        while next < una + segments * segment {
            let what = match self.board.index_of(next) {
                Some(index) => Next::Again(index),
                None => match self.new_data(source) {
                    Some(chunk) => Next::New(chunk),
                    None => break,
                },
            };
            next += u64::from(self.payload(what));
            self.send(network, what);
        }
        if let Recovery::Timeout { next: place, .. } = &mut self.recovery {
            *place = next;
        }
    }

    /// Rule 4: the last segment, once per recovery.
    fn rescue(&self) -> Option<usize> {
        if self.rescued || self.base.profile.tail_repair != TailRepair::Rescue {
            return None;
        }
        self.board.last()
    }

    fn new_data(&self, source: &Source) -> Option<Chunk> {
        let high = self.board.high();
        let end = source.written().min(self.base.limit);
        let len = end.saturating_sub(high).min(u64::from(self.base.payload_of_next())) as u32;
        (len > 0).then_some(Chunk { offset: high, len })
    }
}

impl Transmission for TcpSender {
    type Next = Next;

    #[inline]
    fn common(&mut self) -> &mut SenderBase {
        &mut self.base
    }

    /// RFC 6675, `NextSeg`.
    fn next(&mut self, source: &Source) -> Option<Next> {
        if self.recovery != Recovery::None
            && let Some(index) = self.board.next_lost(self.base.profile.after_timeout)
        {
            return Some(Next::Again(index));
        }
        if let Some(chunk) = self.new_data(source) {
            return Some(Next::New(chunk));
        }
        let known_only = self.base.profile.loss_detection == LossDetection::Rack;
        if !matches!(self.recovery, Recovery::Fast { .. }) || known_only {
            return None;
        }
        self.board.next_unsure().or_else(|| self.rescue()).map(Next::Again)
    }

    fn next_proactive(&mut self, source: &Source) -> Option<Next> {
        if source.written() > self.board.high() {
            return None;
        }
        self.board.next_copy().map(Next::Copy)
    }

    fn is_settled(&self) -> bool {
        self.board.is_empty()
    }

    fn timeout(&self) -> Duration {
        self.rto()
    }

    #[inline]
    fn payload(&self, next: Next) -> u32 {
        match next {
            Next::Again(index) | Next::Copy(index) => self.board.segment(index).len,
            Next::New(chunk) => chunk.len,
        }
    }

    fn send(&mut self, network: &mut Network, next: Next) {
        let now = network.now();
        let (chunk, retransmission) = match next {
            Next::New(chunk) => {
                self.board.push(chunk, now, self.base.app_limited);
                if self.base.profile.rtt_samples == RttSamples::OneSegment && self.timed.is_none() {
                    self.timed = Some((self.board.high(), now));
                }
                (chunk, false)
            }
            Next::Again(index) => {
                let (chunk, rescues) = self.board.retransmit(&mut self.base, index, now);
                self.rescued |= rescues;
                (chunk, true)
            }
            Next::Copy(index) => (self.board.copy(index, now), true),
        };
        if retransmission {
            self.spurious.note_retransmission(now);
        }
        let position = self.board.high() - 1;
        self.base.send(network, chunk, PacketNumber::default(), position, retransmission);
        let (size, in_flight) = (self.base.profile.in_flight_size(chunk.len), self.base.in_flight);
        if let Some(sampling) = &mut self.base.sampling {
            match next {
                Next::New(_) => sampling.push(now, size, in_flight),
                Next::Again(index) | Next::Copy(index) => sampling.replace(index, now, size, in_flight),
            }
        }
        let repairs = matches!(next, Next::Again(0));
        if self.rto_at == Timestamp::NEVER
            || (repairs && self.base.profile.timer_restart == TimerRestart::EveryAckAndRepair)
        {
            self.rto_at = now + self.rto();
        }
        if let Next::New(_) = next {
            self.schedule_probe(now);
        }
    }
}

/// The next data to send.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// The segment at this index, again.
    Again(usize),
    /// The segment at this index, again and without evidence of loss.
    Copy(usize),
    /// New data.
    New(Chunk),
}
