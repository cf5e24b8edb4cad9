//! Packets in flight, and the pools that hold them.

use std::num::NonZeroU32;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire;
use flowstart_core::time::{Duration, Timestamp};

use crate::ranges::make_room;

/// IP TTL of a packet when it leaves its host.
pub const INITIAL_TTL: u8 = 64;

/// The IP TTL of a packet that has crossed this many links. The first is the host's own; every router decrements the
/// TTL.
pub fn ip_ttl(links: u16) -> u8 {
    INITIAL_TTL.wrapping_sub(links.saturating_sub(1) as u8)
}

/// Marks the generation of a packet whose flow has external ends; the other bits are its tag.
pub(crate) const OUTSIDE: u32 = 1 << 31;

/// Which flow a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId {
    /// Place of the flow.
    pub index: u32,
    /// The use of the place.
    pub generation: u32,
}

impl FlowId {
    /// One number for both, by which routers distinguish flows, including successive flows in the same place.
    pub(crate) fn number(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.index)
    }
}

/// The direction of a flow's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the data sender to the data receiver.
    Forward,
    /// From the data receiver to the data sender.
    Return,
}

/// A packet. It fills a cache line: with many flows most packets are not in the cache when their turn comes.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The flow it belongs to.
    pub flow: u32,
    /// The use of the flow's place: packets of an earlier flow in the same place are ignored.
    pub generation: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Links already crossed.
    pub hop: u16,
    /// Its direction.
    pub direction: Direction,
    /// ECN field.
    pub ecn: EcnCodepoint,
    /// Its contents.
    pub body: Body,
}

impl Packet {
    /// Whether its flow has external ends.
    #[inline]
    pub(crate) fn is_outside(&self) -> bool {
        self.generation & OUTSIDE != 0
    }

    /// The tag that external ends gave it.
    #[inline]
    pub fn tag(&self) -> u32 {
        self.generation & !OUTSIDE
    }

    /// The flow, and the use of its place.
    pub(crate) fn flow_id(&self) -> FlowId {
        FlowId { index: self.flow, generation: self.generation }
    }
}

/// An option of Quick-Start as encoded in the packet: an IP option, or a receiver's answer as a TCP option.
pub type QuickStartOption = [u8; wire::LENGTH];
/// A packet without one.
pub const NO_OPTION: QuickStartOption = [0; wire::LENGTH];

/// The contents of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Part of a handshake flight.
    Handshake {
        /// The flight.
        flight: u8,
        /// The number of the packet in the flight.
        part: u8,
        /// The repetition of the opening that it belongs to, so that the handshake's RTT is never ambiguous. QUIC has
        /// packet numbers for this, TCP has timestamps.
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
        /// QUIC: the sender's oldest packet in flight. It models the acknowledged acknowledgements by which a receiver
        /// learns which ranges it need not repeat (RFC 9000, section 13.2.4).
        least_unacknowledged: u64,
        /// Sender's clock, echoed by TCP timestamps (RFC 7323).
        sent_at: Timestamp,
        /// Quick-Start: a request in mid-connection, or the report of the approved rate.
        quick_start: Option<OptionId>,
    },
    /// An acknowledgement.
    Acknowledgement(Acknowledgement),
}

impl Body {
    /// Its option of Quick-Start.
    #[inline]
    pub fn quick_start<'a>(&'a mut self, pool: &'a mut RangePool) -> Option<&'a mut QuickStartOption> {
        match self {
            Self::Handshake { quick_start, .. } if *quick_start != NO_OPTION => Some(quick_start),
            Self::Data { quick_start: Some(id), .. } => Some(pool.option(*id)),
            _ => None,
        }
    }

    /// Takes the option out.
    pub fn delete_quick_start(&mut self, pool: &mut RangePool) {
        match self {
            Self::Handshake { quick_start, .. } => *quick_start = NO_OPTION,
            Self::Data { quick_start, .. } => {
                if let Some(id) = quick_start.take() {
                    pool.release_option(id);
                }
            }
            Self::Acknowledgement(_) => {}
        }
    }

    /// Takes the option out; [`NO_OPTION`] if there is none.
    pub fn take_quick_start(&mut self, pool: &mut RangePool) -> QuickStartOption {
        let option = self.quick_start(pool).copied().unwrap_or(NO_OPTION);
        self.delete_quick_start(pool);
        option
    }

    /// The packet is gone: frees its memory in the pool.
    #[inline]
    pub fn release(&self, pool: &mut RangePool) {
        match self {
            Self::Acknowledgement(Acknowledgement { ranges: Some(id), .. }) => pool.release(*id),
            Self::Data { quick_start: Some(id), .. } => pool.release_option(*id),
            _ => {}
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
    /// first. `None`: no gaps. An answer of Quick-Start is stored with them ([`RangePool::answer`]).
    pub ranges: Option<RangesId>,
    /// The acknowledgement delay (QUIC).
    pub delay: Duration,
    /// The sender's clock in the acknowledged packet (TCP timestamps).
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

/// All existing packets. Places of removed packets are reused.
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

    /// Starts to bring the packet into the processor's cache. With many flows a packet's turn comes long after its last
    /// use, and waiting for memory then costs more than all work on the packet.
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

/// An option of Quick-Start in a [`RangePool`], for packets without room for one: its place plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionId(NonZeroU32);

/// Contents that few packets carry.
#[derive(Clone, Debug)]
struct Ranges {
    list: Vec<(u64, u64)>,
    /// Quick-Start in mid-connection: an option of IP, or a receiver's answer.
    option: QuickStartOption,
}

/// Lists of ranges that acknowledgements carry, and options of Quick-Start in mid-connection, reusing their memory.
#[derive(Clone, Debug, Default)]
pub struct RangePool {
    lists: Vec<Ranges>,
    free: Vec<RangesId>,
}

impl RangePool {
    /// Stores a list.
    pub fn insert(&mut self, ranges: impl Iterator<Item = (u64, u64)>) -> RangesId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.lists.push(Ranges { list: Vec::new(), option: NO_OPTION });
            RangesId((self.lists.len() - 1) as u32)
        });
        let Ranges { list, option } = &mut self.lists[id.0 as usize];
        *option = NO_OPTION;
        list.clear();
        for range in ranges {
            make_room(list);
            list.push(range);
        }
        id
    }

    /// Lists and options in use.
    pub fn in_use(&self) -> usize {
        self.lists.len() - self.free.len()
    }

    /// The list.
    pub fn get(&self, id: RangesId) -> &[(u64, u64)] {
        &self.lists[id.0 as usize].list
    }

    /// Stores a receiver's answer of Quick-Start with the list.
    pub fn set_answer(&mut self, id: RangesId, answer: QuickStartOption) {
        self.lists[id.0 as usize].option = answer;
    }

    /// The receiver's answer of Quick-Start that is stored with the list.
    pub fn answer(&self, id: RangesId) -> Option<QuickStartOption> {
        Some(self.lists[id.0 as usize].option).filter(|answer| *answer != NO_OPTION)
    }

    /// Stores an option for a packet with data; `None`: [`NO_OPTION`].
    pub fn insert_option(&mut self, option: QuickStartOption) -> Option<OptionId> {
        if option == NO_OPTION {
            return None;
        }
        let id = self.insert(std::iter::empty());
        self.set_answer(id, option);
        NonZeroU32::new(id.0 + 1).map(OptionId)
    }

    /// The option.
    pub fn option(&mut self, OptionId(place): OptionId) -> &mut QuickStartOption {
        &mut self.lists[place.get() as usize - 1].option
    }

    /// Frees the option's memory.
    pub fn release_option(&mut self, OptionId(place): OptionId) {
        self.release(RangesId(place.get() - 1));
    }

    /// Frees the list's memory.
    pub fn release(&mut self, id: RangesId) {
        self.free.push(id);
    }
}
