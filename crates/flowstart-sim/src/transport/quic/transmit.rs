//! The QUIC sender's choice of the next data.

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;

use super::{Cargo, Double, QuicSender, SentPacket, State};
use crate::network::Network;
use crate::traffic::Source;
use crate::transport::sender::transmission::Transmission;
use crate::transport::sender::{Chunk, PacketNumber, SenderBase};

impl QuicSender {
    /// The data of a probe: new data, or the oldest data in flight.
    pub(super) fn probe(&mut self, source: &Source) -> Option<Next> {
        self.next(source).or_else(|| {
            let oldest = self.sent.iter_mut().find(|packet| packet.state == State::InFlight)?;
            if oldest.cargo == Cargo::First {
                oldest.cargo = Cargo::Again;
            }
            Some(Next { chunk: oldest.chunk, kind: Kind::Again { first: oldest.first } })
        })
    }

    fn send_chunk(&mut self, network: &mut Network, chunk: Chunk, kind: Kind) {
        let number = self.next_number;
        let (cargo, first) = match kind {
            Kind::New => {
                self.next_offset += u64::from(chunk.len);
                self.walked_from = self.next_number + 1;
                (Cargo::First, number)
            }
            Kind::Again { first } => {
                if self.again.front().is_some_and(|(next, _)| *next == chunk) {
                    self.again.pop_front();
                }
                (Cargo::Again, first)
            }
            Kind::Copy { first } => {
                self.double(chunk);
                (Cargo::Doubled, first)
            }
        };
        self.next_number += 1;
        self.last_sent = network.now();
        let identity = PacketNumber { number, least_unacknowledged: self.first_number };
        self.base.send(network, chunk, identity, number, kind != Kind::New);
        let app_limited = self.base.app_limited;
        if let Some(sampling) = &mut self.base.sampling {
            let size = self.base.profile.in_flight_size(chunk.len);
            sampling.push(network.now(), size, self.base.in_flight);
        }
        self.sent.push_back(SentPacket {
            time: network.now(),
            chunk,
            state: State::InFlight,
            cargo,
            app_limited,
            first,
        });
    }

    /// Proactively sends the packet again that the walk has found last.
    fn double(&mut self, chunk: Chunk) {
        self.walked_from -= 1;
        self.sent[(self.walked_from - self.first_number) as usize].cargo = Cargo::Doubled;
        let double = Double { offset: chunk.offset, in_flight: 2, delivered: false };
        let place = self.doubles.partition_point(|other| other.offset < chunk.offset);
        self.doubles.insert(place, double);
    }
}

impl Transmission for QuicSender {
    type Next = Next;

    #[inline]
    fn common(&mut self) -> &mut SenderBase {
        &mut self.base
    }

    /// Lost data first, then new data.
    #[inline]
    fn next(&mut self, source: &Source) -> Option<Next> {
        if let Some(&(chunk, first)) = self.again.front() {
            return Some(Next { chunk, kind: Kind::Again { first } });
        }
        let end = source.written().min(self.base.limit);
        let len = end.saturating_sub(self.next_offset).min(u64::from(self.base.payload_of_next())) as u32;
        let chunk = Chunk { offset: self.next_offset, len };
        (len > 0).then_some(Next { chunk, kind: Kind::New })
    }

    fn next_proactive(&mut self, source: &Source) -> Option<Next> {
        if source.written() > self.next_offset {
            return None;
        }
        let end = self.walked_from.saturating_sub(self.first_number) as usize;
        let mut candidates = self.sent.range(..end.min(self.sent.len()));
        let index = candidates.rposition(|packet| packet.state == State::InFlight && packet.cargo == Cargo::First);
        self.walked_from = index.map_or(self.first_number, |index| self.first_number + index as u64 + 1);
        index.map(|index| {
            let SentPacket { chunk, first, .. } = self.sent[index];
            Next { chunk, kind: Kind::Copy { first } }
        })
    }

    fn is_settled(&self) -> bool {
        self.base.in_flight == Bytes::ZERO && self.again.is_empty()
    }

    fn timeout(&self) -> Duration {
        self.pto()
    }

    #[inline]
    fn payload(&self, next: Next) -> u32 {
        next.chunk.len
    }

    #[inline]
    fn send(&mut self, network: &mut Network, next: Next) {
        self.send_chunk(network, next.chunk, next.kind);
    }
}

/// The next data to send.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    chunk: Chunk,
    kind: Kind,
}

/// The reason for sending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// New data.
    New,
    /// Lost data, or a probe. `first` is the number of the first packet with it.
    Again { first: u64 },
    /// Without evidence of loss.
    Copy { first: u64 },
}
