//! An existing network interface: what comes in there is taken, and what is sent leaves there.
//!
//! Reference: packet(7), with `PACKET_VNET_HDR`. A frame stands behind ten bytes (`struct virtio_net_hdr`) in which the
//! kernel says what it has left to hardware. A checksum that is still to be computed is left to the other interface
//! alike. A packet that is still to be cut into segments is cut here, so each counts on the link by itself, and leaves
//! as it would have left for a wire: offloads may stay on.

use std::cell::Cell;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, getsockopt,
    recvmsg, send, setsockopt, socket, sockopt::RcvBufForce, sockopt::SndBufForce,
};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use tun_rs::{VirtioNetHdr, gso_split};

/// Bytes before the frame.
const OFFLOADS: usize = 10;
/// Bytes of Ethernet's header: two addresses and the kind of what follows.
pub(crate) const ETHERNET: usize = 14;
/// Bytes of a message of ARP (RFC 826), with what fills up the shortest frame.
pub(crate) const LONGEST_NEIGHBOUR: usize = 46;
/// All that stands before the packet of IP.
pub(crate) const HEAD: usize = OFFLOADS + ETHERNET;

/// Kinds of frames (RFC 826, RFC 894, RFC 2464).
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];
const VLAN: [u8; 2] = [0x81, 0x00];

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is still to be computed.
const UNSUMMED: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_ECN`: one of the segments has CWR, which a host sends once.
const WITH_CWR: u8 = 0x80;
/// Most segments of a packet, and the longest.
const SEGMENTS: usize = 256;
const LONGEST: usize = 10_240;
/// Bytes for what the kernel says beside a frame (`struct tpacket_auxdata`): 40.
const CONTROL: usize = 64;
/// Buffers of the socket: what arrives while this host does something else.
const SOCKET_BUFFER: usize = 16 << 20;

sockopt_impl!(
    /// Puts [`OFFLOADS`] bytes before each frame.
    ShowOffloads,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_VNET_HDR,
    bool
);
sockopt_impl!(
    /// Says what it has taken away from a frame.
    ShowAuxiliary,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_AUXDATA,
    bool
);
sockopt_impl!(
    /// Does not take what this host sends.
    IgnoreOutgoing,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_IGNORE_OUTGOING,
    bool
);
sockopt_impl!(
    /// Takes frames that are for others, until the socket is closed.
    Join,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_ADD_MEMBERSHIP,
    libc::packet_mreq
);

sockopt_impl!(
    /// What came since the last question, and how many frames found no room.
    Statistics,
    GetOnly,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats
);

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// A packet of IP.
    Packet,
    /// A packet of IP that is still to be cut into segments.
    Segments,
    /// A question for an address or its answer, without which hosts do not find each other.
    Neighbour,
    /// Something else.
    Other,
    /// It is none of this interface.
    Nothing,
}

impl Carried {
    /// By what stands before its packet.
    pub(crate) fn of(frame: &[u8]) -> Self {
        let Some(kind) = frame.get(HEAD - 2..HEAD) else {
            return if frame.is_empty() { Self::Nothing } else { Self::Other };
        };
        let is_cut = frame[1] == 0;
        match kind {
            kind if kind == IPV4 || kind == IPV6 => {
                if is_cut {
                    Self::Packet
                } else {
                    Self::Segments
                }
            }
            kind if kind == ARP => Self::Neighbour,
            _ => Self::Other,
        }
    }
}

/// Whether the checksum of the transport is there, by what stands before the packet: it may be left to hardware. Where
/// nothing stands before packets it is.
pub(crate) fn has_checksums(head: &[u8]) -> bool {
    head.first().is_none_or(|flags| flags & UNSUMMED == 0)
}

/// An open interface, which never blocks.
#[derive(Debug)]
pub(crate) struct Interface {
    socket: OwnedFd,
    name: String,
    index: usize,
    /// Whether it went down since the last frame. The kernel tells that once, and not that it is gone afterwards.
    went_down: Cell<bool>,
    /// Frames that found no room in the socket's buffer. The kernel begins anew with each question.
    missed: Cell<u64>,
    /// No other router has it until this is dropped.
    _only: UnixDatagram,
}

/// What the router of an interface holds: with two of them each packet would pass twice. The kernel keeps such names
/// for each network namespace, as it does interfaces.
fn only_router(index: usize) -> io::Result<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("flowstart-router-{index}"))?;
    UnixDatagram::bind_addr(&name).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => io::Error::new(error.kind(), "another router has this interface"),
        _ => error,
    })
}

/// An interface that is there.
#[derive(Debug)]
pub(crate) enum Found {
    /// It is up.
    Up(Interface),
    /// It is down.
    Down,
}

impl Interface {
    /// Takes what comes in at the interface of this name, also if it is for others; `None`: there is none.
    pub(crate) fn open(name: &str) -> io::Result<Option<Found>> {
        let found = getifaddrs()?.filter(|interface| interface.interface_name == name);
        let mut links = found.filter_map(|interface| Some((*interface.address?.as_link_addr()?, interface.flags)));
        let Some((address, flags)) = links.find(|(address, _)| address.ifindex() > 0) else { return Ok(None) };
        if !flags.contains(InterfaceFlags::IFF_UP) {
            return Ok(Some(Found::Down));
        }
        let only = only_router(address.ifindex())?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        setsockopt(&socket, ShowOffloads, &true)?;
        setsockopt(&socket, ShowAuxiliary, &true)?;
        setsockopt(&socket, IgnoreOutgoing, &true)?;
        // The address has no protocol, so it stays that of the socket.
        bind(socket.as_raw_fd(), &address)?;
        let index = address.ifindex();
        let everything = libc::packet_mreq {
            mr_ifindex: i32::try_from(index).map_err(|_| io::ErrorKind::InvalidData)?,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        setsockopt(&socket, Join, &everything)?;
        // The system may allow less.
        let _ = setsockopt(&socket, RcvBufForce, &SOCKET_BUFFER);
        let _ = setsockopt(&socket, SndBufForce, &SOCKET_BUFFER);
        let (went_down, missed) = (Cell::new(false), Cell::new(0));
        Ok(Some(Found::Up(Self { socket, name: name.to_owned(), index, went_down, missed, _only: only })))
    }

    /// Frames that came and found no room, because this host was too slow.
    pub(crate) fn missed(&self) -> u64 {
        if let Ok(since) = getsockopt(&self.socket, Statistics) {
            self.missed.set(self.missed.get() + u64::from(since.tp_drops));
        }
        self.missed.get()
    }

    /// Its longest packet in bytes; `None`: the system does not tell it here.
    pub(crate) fn mtu(&self) -> Option<u32> {
        // In another network namespace than that of `/sys` the name is another interface's, or nobody's.
        let told = |of: &str| std::fs::read_to_string(format!("/sys/class/net/{}/{of}", self.name)).ok();
        let is_it = told("ifindex")?.trim().parse() == Ok(self.index);
        told("mtu")?.trim().parse().ok().filter(|_| is_it)
    }

    /// Takes the next frame, behind its [`OFFLOADS`] bytes; `None`: there is none for now.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let (mut control, mut parts) = ([0; CONTROL], [IoSliceMut::new(buffer)]);
        let received = recvmsg::<LinkAddr>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
        let (length, is_tagged) = match received {
            // Frames of other interfaces came before the socket was bound to this one.
            Ok(came) if came.address.is_some_and(|from| from.ifindex() != self.index) => return Ok(Some(0)),
            Ok(came) => (came.bytes, came.cmsgs()?.any(|message| tells_of_a_tag(&message))),
            Err(Errno::EAGAIN | Errno::EINTR) if !self.went_down.get() => return Ok(None),
            // It may come up again, or it is gone.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) if self.is_there() => {
                self.went_down.set(true);
                return Ok(None);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => return Err(Errno::ENETDOWN.into()),
            // The kernel cannot say how this frame is to be cut, and has dropped it.
            Err(Errno::EINVAL) => {
                self.missed.set(self.missed.get() + 1);
                return Ok(Some(0));
            }
            Err(errno) => return Err(errno.into()),
        };
        self.went_down.set(false);
        if length >= HEAD {
            // The length of headers is a hint, and one that is refused where a frame's filling was cut away.
            buffer[2..4].fill(0);
            if is_tagged {
                // As on the wire: the kernel has taken the tag away.
                buffer[HEAD - 2..HEAD].copy_from_slice(&VLAN);
            }
        }
        Ok(Some(length))
    }

    /// Whether it has to be read to find out that it is gone.
    pub(crate) fn may_be_gone(&self) -> bool {
        self.went_down.get()
    }

    fn is_there(&self) -> bool {
        if_nametoindex(self.name.as_str()).is_ok_and(|index| usize::try_from(index) == Ok(self.index))
    }

    /// Sends a frame that stands behind its [`OFFLOADS`] bytes.
    pub(crate) fn write(&self, frame: &[u8]) -> io::Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }
}

/// Whether this says that the frame had the tag of a VLAN.
fn tells_of_a_tag(message: &ControlMessageOwned) -> bool {
    let ControlMessageOwned::Unknown(other) = message else { return false };
    let kind = (other.cmsg_header.cmsg_level, other.cmsg_header.cmsg_type);
    let Some(status) = other.data_bytes.first_chunk().filter(|_| kind == (libc::SOL_PACKET, libc::PACKET_AUXDATA))
    else {
        return false;
    };
    u32::from_ne_bytes(*status) & libc::TP_STATUS_VLAN_VALID != 0
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Cuts packets into segments.
#[derive(Default)]
pub(crate) struct Knife {
    segments: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl fmt::Debug for Knife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Knife").finish_non_exhaustive()
    }
}

impl Knife {
    pub(crate) fn new() -> Self {
        Self { segments: vec![vec![0; LONGEST]; SEGMENTS], sizes: vec![0; SEGMENTS] }
    }

    /// Cuts the packet of this frame; each segment is a frame behind its [`OFFLOADS`] bytes, with its checksums. None
    /// if it cannot be cut.
    pub(crate) fn cut(&mut self, frame: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
        let count = self.try_to_cut(frame).unwrap_or(0);
        let sizes = &self.sizes;
        self.segments.iter_mut().zip(sizes).take(count).map(|(segment, size)| &mut segment[..HEAD + size])
    }

    fn try_to_cut(&mut self, frame: &mut [u8]) -> Option<usize> {
        let offloads = VirtioNetHdr::decode(frame).ok()?;
        let (head, packet) = frame.split_at_mut_checked(HEAD)?;
        // The kernel counts from the begin of the frame, and what it says of the header's length may be more than that.
        let transport = offloads.csum_start.checked_sub(ETHERNET as u16)?;
        let length = match offloads.csum_offset {
            16 => u16::from(packet.get(usize::from(transport) + 12)? >> 4) * 4,
            6 => 8,
            _ => return None,
        };
        let header = VirtioNetHdr {
            gso_type: offloads.gso_type & !WITH_CWR,
            hdr_len: transport.checked_add(length)?,
            csum_start: transport,
            ..offloads
        };
        let fits = usize::from(header.hdr_len) + usize::from(header.gso_size) + HEAD <= LONGEST;
        if offloads.flags & UNSUMMED == 0 || !fits {
            return None;
        }
        let is_ipv6 = packet.first()? >> 4 == 6;
        let count = gso_split(packet, header, &mut self.segments, &mut self.sizes, HEAD, is_ipv6).ok()?;
        for segment in &mut self.segments[..count] {
            segment[..OFFLOADS].fill(0);
            segment[OFFLOADS..HEAD].copy_from_slice(&head[OFFLOADS..]);
        }
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::Packet;

    /// A packet of TCP with this payload, 1000 bytes of which are a segment's.
    fn unsegmented(payload: usize) -> Vec<u8> {
        let length = (40 + payload) as u16;
        let mut frame = vec![UNSUMMED, 1, 54, 0];
        frame.extend_from_slice(&1000_u16.to_ne_bytes());
        frame.extend_from_slice(&34_u16.to_ne_bytes());
        frame.extend_from_slice(&16_u16.to_ne_bytes());
        frame.extend_from_slice(&[2; 12]);
        frame.extend_from_slice(&IPV4);
        frame.extend_from_slice(&[0x45, 2, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
        frame[HEAD + 2..HEAD + 4].copy_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&[0, 80, 0, 90, 0, 0, 0, 100, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend((0..payload).map(|place| place as u8));
        frame
    }

    #[test]
    fn a_packet_is_cut_into_those_that_a_wire_would_see() {
        let mut frame = unsegmented(2500);
        assert_eq!(Carried::of(&frame), Carried::Segments);
        let before = frame.clone();
        let mut knife = Knife::new();
        let (mut payload, mut numbers) = (Vec::new(), Vec::new());
        for segment in knife.cut(&mut frame) {
            assert_eq!((Carried::of(segment), &segment[OFFLOADS..HEAD]), (Carried::Packet, &before[OFFLOADS..HEAD]));
            // Reading looks at the checksum.
            let packet = &segment[HEAD..];
            assert_eq!(Packet::read(packet).map(|packet| packet.length), Ok(packet.len()));
            numbers.push(u32::from_be_bytes(packet[24..28].try_into().unwrap()));
            payload.extend_from_slice(&packet[40..]);
        }
        assert_eq!((numbers, payload), (vec![100, 1100, 2100], before[HEAD + 40..].to_vec()));
    }

    #[test]
    fn frames_are_told_by_their_kind() {
        let frame = |kind: [u8; 2]| [&[0; HEAD - 2][..], &kind].concat();
        for (kind, carried) in
            [(IPV4, Carried::Packet), (IPV6, Carried::Packet), (ARP, Carried::Neighbour), (VLAN, Carried::Other)]
        {
            assert_eq!(Carried::of(&frame(kind)), carried);
        }
        assert_eq!((Carried::of(&[0; HEAD - 1]), Carried::of(&[])), (Carried::Other, Carried::Nothing));
    }

    proptest! {
        #[test]
        fn nothing_that_is_to_be_cut_is_a_panic(
            place in 0_usize..64, byte in any::<u8>(), other in 0_usize..10, second in any::<u8>(),
            length in 0_usize..200,
        ) {
            let mut knife = Knife::new();
            let mut frame = unsegmented(150);
            frame[place] = byte;
            frame[other] = second;
            frame.truncate(length);
            for segment in knife.cut(&mut frame) {
                prop_assert!(segment.len() <= LONGEST);
            }
        }
    }
}
