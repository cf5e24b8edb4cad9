//! Packets in flight, and the pools that hold them.

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::time::{Duration, Timestamp};

use flowstart_core::quick_start::wire;

use crate::ranges::make_room;

/// Which way a packet of a flow travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the data sender to the data receiver.
    Forward,
    /// From the data receiver to the data sender.
    Return,
}

/// A packet. It fills a cache line: with many flows most packets are far from the processor when their turn comes.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The flow it belongs to.
    pub flow: u32,
    /// Which use of the flow's place: packets of an earlier flow in the same place are ignored.
    pub generation: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Links already crossed.
    pub hop: u16,
    /// Which way.
    pub direction: Direction,
    /// ECN field.
    pub ecn: EcnCodepoint,
    /// What it carries.
    pub body: Body,
}

/// An option of Quick-Start as it stands in the packet: an IP option, or a receiver's answer as a TCP option.
pub type QuickStartOption = [u8; wire::LENGTH];
/// A packet without one.
pub const NO_OPTION: QuickStartOption = [0; wire::LENGTH];

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Part of a handshake flight.
    Handshake {
        /// Which flight.
        flight: u8,
        /// Which packet of the flight.
        part: u8,
        /// Which repetition of the opening it belongs to, so that the handshake's RTT is never ambiguous: QUIC has packet
        /// numbers for it, TCP timestamps.
        attempt: u8,
        /// Quick-Start: a request, its answer, or the report of the approved rate.
        quick_start: QuickStartOption,
    },
    /// Payload.
    Data {
        /// QUIC: packet number. TCP: unused.
        number: u64,
        /// First byte of the stream.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// QUIC: the sender's oldest packet in flight. It stands for the acknowledged acknowledgements by which a receiver
        /// learns what it need not repeat (RFC 9000, section 13.2.4).
        least_unacknowledged: u64,
        /// Sender's clock, echoed by TCP timestamps (RFC 7323).
        sent_at: Timestamp,
    },
    /// An acknowledgement.
    Acknowledgement(Acknowledgement),
}

impl Body {
    /// Its option of Quick-Start.
    #[inline]
    pub fn quick_start(&mut self) -> Option<&mut QuickStartOption> {
        match self {
            Self::Handshake { quick_start, .. } if *quick_start != NO_OPTION => Some(quick_start),
            _ => None,
        }
    }

    /// First byte of the stream that a data packet carries.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Data { offset, .. } => Some(*offset),
            Self::Handshake { .. } | Self::Acknowledgement(_) => None,
        }
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement {
    /// QUIC: largest packet number received. TCP: next byte expected.
    pub position: u64,
    /// QUIC: received packet numbers from the sender's oldest in flight on, newest first. TCP: SACK blocks, most recent
    /// first. `None`: no gaps.
    pub ranges: Option<RangesId>,
    /// How long the receiver held it back (QUIC).
    pub delay: Duration,
    /// The sender's clock in the packet that is acknowledged (TCP timestamps).
    pub echo: Timestamp,
    /// First byte that flow control forbids.
    pub limit: u64,
    /// Packets received with a CE mark so far.
    pub ce_count: u32,
    /// Waves of a page that the receiver has requested beyond the first: requests travel with acknowledgements.
    pub requests: u32,
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet shall not take two cache lines");

/// A list of ranges in a [`RangePool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangesId(u32);

/// A packet in a [`PacketPool`].
pub type PacketId = u32;

/// All packets that exist, reusing the places of those that are gone.
#[derive(Clone, Debug, Default)]
pub struct PacketPool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl PacketPool {
    /// Stores a packet.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.packets[id as usize] = packet;
            return id;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as PacketId
    }

    /// The packet.
    #[inline]
    pub fn get(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Starts to bring the packet into the processor's cache. With many flows a packet's turn comes long after it was
    /// last used, and waiting for memory then costs more than all the work on the packet.
    #[inline]
    pub(crate) fn prefetch(&self, id: PacketId) {
        let packet: *const Packet = &raw const self.packets[id as usize];
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "there is no safe prefetch; it changes nothing and may be given any address")]
        // SAFETY: SSE is part of every x86_64, and a prefetch reads nothing that the program can see.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(packet.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = packet;
    }

    /// Takes the packet out.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Packet {
        self.free.push(id);
        self.packets[id as usize]
    }

    /// Packets that exist now.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Whether no packet exists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Lists of ranges that acknowledgements carry, reusing their memory.
#[derive(Clone, Debug, Default)]
pub struct RangePool {
    lists: Vec<Vec<(u64, u64)>>,
    free: Vec<RangesId>,
}

impl RangePool {
    /// Stores a list.
    pub fn insert(&mut self, ranges: impl Iterator<Item = (u64, u64)>) -> RangesId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.lists.push(Vec::new());
            RangesId((self.lists.len() - 1) as u32)
        });
        let list = &mut self.lists[id.0 as usize];
        list.clear();
        for range in ranges {
            make_room(list);
            list.push(range);
        }
        id
    }

    /// The list.
    pub fn get(&self, id: RangesId) -> &[(u64, u64)] {
        &self.lists[id.0 as usize]
    }

    /// Gives the list's memory back.
    pub fn release(&mut self, id: RangesId) {
        self.free.push(id);
    }
}
