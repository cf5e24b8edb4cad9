//! SCONE at the ends of a real connection. noq does not support it. The ends prepend SCONE packets to the server's
//! datagrams and remove them before the client's stack sees them, as a socket below the stack could do.
//!
//! The client announces by its transport parameter that it reads them. It reports the advice to the server with its
//! request, and later by a separate stream of one byte: the application message that the draft requires. The server
//! offers packets at the same times as in the model (`flowstart_sim::transport::scone`).
//!
//! A signal counts if the rest of its datagram belongs to the connection. The draft also requires that the rest can be
//! decrypted; this is not checked, because nobody else sends in a simulation.

use flowstart_core::scone::endpoint::{Advice, Offers};
use flowstart_core::scone::wire::{RateSignal, SconePacket};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Rate;
use flowstart_sim::network::Network;
use flowstart_sim::observe::trace::Event;
use flowstart_sim::transport::scone::SconePolicy;
use noq_proto::Dir;

use super::Transfer;
use crate::ends::quic::end::{CLIENT, ID_LENGTH, SERVER};

/// First byte of a message about the advice; a zero byte is a request without advice.
const TOLD: u8 = 0x80;

/// Both ends' state.
#[derive(Debug, Default)]
pub(super) struct Scone {
    pub(super) policy: SconePolicy,
    offers: Offers,
    /// The advice that the client has read, and the advice that it has reported.
    read: Advice,
    told: RateSignal,
    /// The advice that the server has received.
    heard: Advice,
}

impl Scone {
    pub(super) fn new(policy: SconePolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// The SCONE packet that the server's datagram is to begin with, if any.
    pub(super) fn offer(&mut self, now: Timestamp, datagram: &[u8]) -> Option<Vec<u8>> {
        let (destination, source) = connection_ids(datagram)?;
        let due = match self.policy {
            SconePolicy::None => false,
            SconePolicy::Handshake if is_long(datagram) => true,
            SconePolicy::Handshake | SconePolicy::Data => !is_long(datagram) && self.offers.take(now),
        };
        let packet = SconePacket::new(destination, source).ok().filter(|_| due)?;
        let mut whole = Vec::with_capacity(packet.len() + datagram.len());
        packet.emit(&mut whole);
        whole.extend_from_slice(datagram);
        Some(whole)
    }

    /// The byte in the client's request that reports its advice.
    pub(super) fn message(&mut self, now: Timestamp) -> u8 {
        self.told = self.read.signal(now);
        if self.told == RateSignal::UNKNOWN { 0 } else { TOLD | self.told.bits() }
    }
}

/// Whether a datagram begins with a long header.
fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 != 0)
}

/// Destination and source connection ID of a datagram's first packet (RFC 8999, section 5).
fn connection_ids(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    if !is_long(datagram) {
        return Some((datagram.get(1..=ID_LENGTH)?, &[]));
    }
    let id = |bytes| -> Option<(_, _)> {
        let (length, rest): (&u8, &[u8]) = <[u8]>::split_first(bytes)?;
        rest.split_at_checked(usize::from(*length))
    };
    let (destination, rest) = id(datagram.get(5..)?)?;
    Some((destination, id(rest)?.0))
}

/// The signal and the length of the SCONE packet at the beginning of a datagram, if it belongs to the packet after it.
pub(super) fn read(datagram: &[u8]) -> Option<(RateSignal, usize)> {
    let (packet, rest) = SconePacket::parse(datagram).ok()?;
    let (destination, _) = connection_ids(rest)?;
    (destination == packet.destination()).then_some((packet.signal(), packet.len()))
}

impl Transfer {
    /// Advice is for one path, and the connection moves to another.
    pub(in crate::ends::quic) fn forget_advice(&mut self) {
        self.scone = Scone::new(self.scone.policy);
    }

    /// The client's stack has accepted the datagram that carried this signal.
    pub(super) fn read_signal(&mut self, now: Timestamp, signal: RateSignal) {
        let requested = self.streams[CLIENT].is_some();
        if !self.scone.read.on_signal(now, signal) || !requested || self.scone.read.signal(now) == self.scone.told {
            return;
        }
        let message = self.scone.message(now);
        let Some((_, connection)) = &mut self.ends[CLIENT].connection else { return };
        // If no stream can be opened, the report waits for the next signal.
        let Some(id) = connection.streams().open(Dir::Uni) else { return };
        let mut stream = connection.send_stream(id);
        if stream.write(&[message]).is_err() || stream.finish().is_err() {
            self.failed = true;
        }
    }

    /// The client has opened streams about its advice.
    pub(super) fn read_advice(&mut self, network: &mut Network) {
        loop {
            let Some((_, connection)) = &mut self.ends[SERVER].connection else { return };
            let Some(id) = connection.streams().accept(Dir::Uni) else { return };
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { continue };
            let message = chunks.next(1).ok().flatten().and_then(|chunk| chunk.bytes.first().copied());
            let _ = chunks.finalize();
            if let Some(rate) = message.and_then(|message| self.hear(network, message)) {
                self.flow.advise(Some(rate));
            }
        }
    }

    /// The server reads this byte of the client's. Returns the rate that now applies.
    pub(super) fn hear(&mut self, network: &mut Network, message: u8) -> Option<Rate> {
        let now = network.now();
        if message & TOLD == 0 {
            return None;
        }
        self.scone.heard.on_signal(now, RateSignal::from_bits(message));
        let rate = self.scone.heard.rate(now)?;
        network.record(self.number).advised.get_or_insert((now, rate));
        network.note(self.number, || Event::Advised { rate });
        Some(rate)
    }
}
