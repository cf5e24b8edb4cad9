//! Linux: options and TTL travel as control messages beside a datagram.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, getpeername, getsockname, recvmsg,
    setsockopt, sockopt,
};
use nix::{setsockopt_impl, sockopt_impl};
use socket2::{MsgHdr, SockAddr, SockRef};

use crate::{HOP_BY_HOP, Header, MOST_OPTIONS, Received, Unable, options_length};

/// Bytes of the longest hop-by-hop header, whose length has eight bits and counts words of eight bytes (RFC 8200,
/// section 4.3).
const LONGEST_HOP_BY_HOP: usize = 2048;
/// Bytes for the control messages of one datagram that arrives: a TTL and options, in IPv4 80 for both. What other
/// owners of the socket have asked for (ECN, destination, time, segments) takes another 128.
const CONTROL: usize = 256 + LONGEST_HOP_BY_HOP;
/// The same of one that leaves: options, TTL, type of service and source take 144.
const CONTROL_TO_SEND: usize = 144;

/// Options of a hop-by-hop header that fill it up (RFC 8200, section 4.2): of one byte, and of several.
const PAD1: u8 = 0;
const PAD_N: u8 = 1;

sockopt_impl!(
    /// Shows the options of a datagram's header.
    RecvOpts,
    SetOnly,
    libc::IPPROTO_IP,
    libc::IP_RECVOPTS,
    bool
);
sockopt_impl!(
    /// Shows the hop-by-hop header of a datagram.
    RecvHopByHop,
    SetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_RECVHOPOPTS,
    bool
);

/// Whether [`receive`] and [`peek`] show headers of what comes to this socket.
///
/// # Errors
///
/// What the system says.
pub fn show_headers(socket: &impl AsFd, shown: bool) -> io::Result<()> {
    let own: SockaddrStorage = getsockname(socket.as_fd().as_raw_fd())?;
    if own.as_sockaddr_in6().is_some() {
        setsockopt(socket, RecvHopByHop, &shown)?;
        setsockopt(socket, sockopt::Ipv6RecvHopLimit, &shown)?;
    }
    // Packets of IPv4 may come to a socket of IPv6.
    setsockopt(socket, RecvOpts, &shown)?;
    setsockopt(socket, sockopt::Ipv4RecvTtl, &shown)?;
    Ok(())
}

/// Takes the next datagram.
///
/// # Errors
///
/// What the system says; [`io::ErrorKind::WouldBlock`] when a socket that does not block has none.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    take(socket, buffer, MsgFlags::empty())
}

/// Looks at the next datagram, which stays the next.
///
/// # Errors
///
/// As [`receive`]. It never waits.
pub fn peek(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    take(socket, buffer, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT)
}

fn take(socket: &impl AsFd, buffer: &mut [u8], flags: MsgFlags) -> io::Result<Received> {
    let (mut control, mut parts) = ([0; CONTROL], [IoSliceMut::new(buffer)]);
    let came = recvmsg::<SockaddrStorage>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let mut received = Received {
        length: came.bytes,
        from: came.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?,
        ttl: None,
        options: [0; MOST_OPTIONS],
        options_length: 0,
    };
    for message in came.cmsgs()? {
        match message {
            ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                received.ttl = u8::try_from(ttl).ok();
            }
            ControlMessageOwned::Unknown(other) => {
                let options = match (other.cmsg_header.cmsg_level, other.cmsg_header.cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_RECVOPTS) => &*other.data_bytes,
                    (libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS) => other.data_bytes.get(HOP_BY_HOP..).unwrap_or_default(),
                    _ => continue,
                };
                let length = options.len().min(MOST_OPTIONS);
                received.options[..length].copy_from_slice(&options[..length]);
                received.options_length = length;
            }
            _ => {}
        }
    }
    Ok(received)
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let of_ipv4 = |address: &SockaddrIn| SocketAddr::from((address.ip(), address.port()));
    // Without its scope an address of one link is that of no host.
    let of_ipv6 = |address: &SockaddrIn6| SocketAddrV6::new(address.ip(), address.port(), 0, address.scope_id()).into();
    storage.as_sockaddr_in().map(of_ipv4).or_else(|| storage.as_sockaddr_in6().map(of_ipv6))
}

/// Sends one datagram with this header; `to` may only be missing if the socket is connected.
///
/// # Errors
///
/// What the system says. Without `CAP_NET_RAW` it is [`io::ErrorKind::PermissionDenied`] for options of IPv6, and
/// [`io::ErrorKind::InvalidInput`] for those of IPv4 that the kernel does not know; malformed or too many options and a
/// TTL of zero are invalid, too.
pub fn send(socket: &impl AsFd, contents: &[u8], to: Option<SocketAddr>, header: &Header<'_>) -> io::Result<()> {
    let Header { options, ttl, tos, source } = *header;
    if options.len() > MOST_OPTIONS || ttl == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let [ttl, tos] = [ttl, tos].map(|number| libc::c_int::from(number).to_ne_bytes());
    let mut control = Vec::with_capacity(CONTROL_TO_SEND);
    match to.map_or_else(|| peer(socket), Ok)?.ip().to_canonical() {
        IpAddr::V4(_) => {
            let mut append = |kind, content: &[u8]| append(&mut control, libc::IPPROTO_IP, kind, content);
            if !options.is_empty() {
                append(libc::IP_RETOPTS, options);
            }
            append(libc::IP_TTL, &ttl);
            append(libc::IP_TOS, &tos);
            match source.map(|source| source.to_canonical()) {
                None => {}
                Some(IpAddr::V4(source)) => append(libc::IP_PKTINFO, &packet_info(source)),
                Some(IpAddr::V6(_)) => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        to @ IpAddr::V6(_) => {
            let mut append = |kind, content: &[u8]| append(&mut control, libc::IPPROTO_IPV6, kind, content);
            if !options.is_empty() {
                let mut header = [0; (HOP_BY_HOP + MOST_OPTIONS).next_multiple_of(8)];
                append(libc::IPV6_HOPOPTS, hop_by_hop(&mut header[..options_length(to, options.len())], options));
            }
            append(libc::IPV6_HOPLIMIT, &ttl);
            append(libc::IPV6_TCLASS, &tos);
            match source {
                None => {}
                Some(IpAddr::V6(source)) => append(libc::IPV6_PKTINFO, &packet_info_of_ipv6(source)),
                Some(IpAddr::V4(_)) => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
    }
    let (parts, to) = ([IoSlice::new(contents)], to.map(SockAddr::from));
    let message = MsgHdr::new().with_buffers(&parts).with_control(&control);
    let message = match &to {
        Some(to) => message.with_addr(to),
        None => message,
    };
    SockRef::from(socket).sendmsg(&message, 0)?;
    Ok(())
}

fn peer(socket: &impl AsFd) -> io::Result<SocketAddr> {
    let peer: SockaddrStorage = getpeername(socket.as_fd().as_raw_fd())?;
    Ok(address(&peer).ok_or(io::ErrorKind::InvalidData)?)
}

/// Writes the header with these options into `header`, which has its length. The kernel writes what follows it.
fn hop_by_hop<'a>(header: &'a mut [u8], options: &[u8]) -> &'a [u8] {
    header[1] = (header.len() / 8 - 1) as u8;
    let (before, rest) = header[HOP_BY_HOP..].split_at_mut(options.len());
    before.copy_from_slice(options);
    let length = rest.len();
    match rest {
        [] => {}
        [pad1] => *pad1 = PAD1,
        [kind, length_of_rest, zeros @ ..] => {
            (*kind, *length_of_rest) = (PAD_N, length as u8 - 2);
            zeros.fill(0);
        }
    }
    header
}

/// A control message of IP (cmsg(3)): its length, level and kind, then its content, filled up to whole words.
fn append(control: &mut Vec<u8>, level: libc::c_int, kind: libc::c_int, content: &[u8]) {
    const WORD: usize = size_of::<usize>();
    let begin = (WORD + 2 * size_of::<libc::c_int>()).next_multiple_of(WORD);
    control.extend_from_slice(&(begin + content.len()).to_ne_bytes());
    control.extend_from_slice(&level.to_ne_bytes());
    control.extend_from_slice(&kind.to_ne_bytes());
    control.extend_from_slice(content);
    control.resize(control.len().next_multiple_of(WORD), 0);
}

/// `struct in_pktinfo`: the interface, of which none is named, the source, and a destination that does not count.
fn packet_info(source: Ipv4Addr) -> [u8; 12] {
    let mut info = [0; 12];
    info[4..8].copy_from_slice(&source.octets());
    info
}

/// `struct in6_pktinfo`: the source and the interface, of which none is named.
fn packet_info_of_ipv6(source: Ipv6Addr) -> [u8; 20] {
    let mut info = [0; 20];
    info[..16].copy_from_slice(&source.octets());
    info
}

/// Whether this process may send these options, which are well-formed, to addresses such as this one now. It tries to
/// send itself a datagram with them, over a socket of its own.
///
/// # Errors
///
/// [`Unable`] says why not.
pub fn try_sending(to: IpAddr, options: &[u8]) -> Result<(), Unable> {
    let (any, own): (IpAddr, IpAddr) = match to.to_canonical() {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()),
    };
    let socket = UdpSocket::bind((any, 0))?;
    let own = SocketAddr::new(own, socket.local_addr()?.port());
    match send(&socket, &[], Some(own), &Header { options, ..Header::default() }) {
        // The kernel looks for a way when it has accepted the options, and this host may have none to itself.
        Err(error) if matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable) => {
            Ok(())
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use std::time::Duration;

    use super::*;

    /// Addresses of this host.
    const OWN: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

    fn socket(address: IpAddr) -> UdpSocket {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    /// Whether this process may send options of IPv6, and so whether there is anything to test.
    fn may_send_over_ipv6() -> bool {
        let may = try_sending(OWN[1], &QUICK_START).is_ok() && UdpSocket::bind((OWN[1], 0)).is_ok();
        if !may {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires CAP_NET_RAW and IPv6");
            println!("skipped: this process has no CAP_NET_RAW, or this host has no IPv6");
        }
        may
    }

    /// Options of IPv4 that every process may send: nothing, three times, and their end.
    const NOTHING: [u8; 4] = [1, 1, 1, 0];

    /// An option of IPv6 that hosts skip.
    const QUICK_START: [u8; 8] = [0x26, 6, 0x0f, 9, 0, 0, 0, 4];

    /// Sends a datagram from this address with each of the headers. The kernel, or the length of the header, fills up
    /// the options to so many bytes.
    fn exchange(own: IpAddr, headers: &[(&[u8], u8, usize)]) {
        let (sender, receiver) = (socket(own), socket(own));
        show_headers(&receiver, true).unwrap();
        let to = receiver.local_addr().unwrap();
        let mut buffer = [0; 100];
        for &(options, ttl, filled) in headers {
            send(&sender, b"hello", Some(to), &Header { options, ttl, tos: 2, source: Some(own) }).unwrap();
            let seen = peek(&receiver, &mut buffer).unwrap();
            let came = receive(&receiver, &mut buffer).unwrap();
            assert_eq!(seen, came, "a look takes nothing away");
            assert_eq!((&buffer[..came.length], came.ttl), (&b"hello"[..], Some(ttl)));
            assert_eq!(came.from, sender.local_addr().unwrap());
            assert_eq!((came.options().len(), came.options().starts_with(options)), (filled, true), "{options:?}");
        }
        sender.connect(to).unwrap();
        send(&sender, b"connected", None, &Header::default()).unwrap();
        assert_eq!(receive(&receiver, &mut buffer).unwrap().length, 9);
        assert_eq!(peek(&receiver, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_a_header_says_arrives() {
        exchange(OWN[0], &[(&NOTHING, 1, 4), (&[], 255, 0), (&[1; MOST_OPTIONS], 64, 40), (&NOTHING[..3], 7, 4)]);
    }

    #[test]
    fn what_a_hop_by_hop_header_says_arrives() {
        if !may_send_over_ipv6() {
            return;
        }
        // Of 6, 14, 22 and so on, which fill words of eight bytes, and of 46 the first 40.
        let (alert, full) = ([5, 2, 0, 0, 0], [QUICK_START; MOST_OPTIONS / 8].concat());
        exchange(OWN[1], &[(&QUICK_START, 1, 14), (&[], 255, 0), (&full, 64, 40), (&alert, 7, 6)]);
    }

    #[test]
    fn a_hop_by_hop_header_is_filled_up() {
        let [of_ipv4, of_ipv6] = OWN.map(|to| move |options| options_length(to, options));
        assert_eq!([0, 1, 8, 40].map(of_ipv4), [0, 4, 8, 40]);
        assert_eq!([0, 1, 6, 7, 8, 40].map(of_ipv6), [0, 8, 8, 16, 16, 48]);
        let mut header = [9; 16];
        assert_eq!(hop_by_hop(&mut header[..8], &[7; 6]), [9, 0, 7, 7, 7, 7, 7, 7]);
        assert_eq!(hop_by_hop(&mut header[..8], &[7; 5]), [9, 0, 7, 7, 7, 7, 7, 0]);
        assert_eq!(hop_by_hop(&mut header, &[7; 8]), [9, 1, 7, 7, 7, 7, 7, 7, 7, 7, 1, 4, 0, 0, 0, 0]);
    }

    #[test]
    fn a_socket_of_ipv6_has_the_headers_of_ipv4_too() {
        let receiver = UdpSocket::bind("[::]:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        show_headers(&receiver, true).unwrap();
        let (sender, port) = (socket(OWN[0]), receiver.local_addr().unwrap().port());
        let header = Header { options: &NOTHING, ttl: 9, ..Header::default() };
        send(&sender, b"hello", Some((OWN[0], port).into()), &header).unwrap();
        let came = receive(&receiver, &mut [0; 100]).unwrap();
        assert_eq!((came.ttl, came.options()), (Some(9), &NOTHING[..]));
        // And back, from the address that was asked.
        show_headers(&sender, true).unwrap();
        assert_eq!(came.from.ip(), IpAddr::from(Ipv4Addr::LOCALHOST.to_ipv6_mapped()));
        for source in [None, Some(OWN[0]), Some(came.from.ip())] {
            send(&receiver, b"hello", Some(came.from), &Header { source, ..header }).unwrap();
            let back = receive(&sender, &mut [0; 100]).unwrap();
            assert_eq!((back.ttl, back.options(), back.from.port()), (Some(9), &NOTHING[..], port));
        }
        let wrong = Header { source: Some(OWN[1]), ..header };
        assert_eq!(send(&receiver, b"x", Some(came.from), &wrong).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_socket_shows_headers_only_if_it_is_asked_to() {
        let (sender, receiver) = (socket(OWN[0]), socket(OWN[0]));
        let to = receiver.local_addr().unwrap();
        let told = |shown| {
            show_headers(&receiver, shown).unwrap();
            send(&sender, b"hello", Some(to), &Header { options: &NOTHING, ..Header::default() }).unwrap();
            let came = receive(&receiver, &mut [0; 3]).unwrap();
            (came.length, came.ttl, came.options().len())
        };
        assert_eq!(told(true), (3, Some(64), 4));
        assert_eq!(told(false), (3, None, 0));
    }

    #[test]
    fn what_is_malformed_or_too_long_is_refused_and_does_not_leave() {
        let socket = socket(OWN[0]);
        let to = Some(socket.local_addr().unwrap());
        let refused = |header: &Header<'_>| send(&socket, b"x", to, header).unwrap_err().kind();
        for options in [&[25, 9, 0, 0][..], &[25, 1], &[7], &[130, 200, 0, 0]] {
            assert_eq!(refused(&Header { options, ..Header::default() }), io::ErrorKind::InvalidInput, "{options:?}");
        }
        assert_eq!(
            refused(&Header { options: &[1; MOST_OPTIONS + 1], ..Header::default() }),
            io::ErrorKind::InvalidInput
        );
        assert_eq!(refused(&Header { ttl: 0, ..Header::default() }), io::ErrorKind::InvalidInput);
        assert_eq!(refused(&Header { source: Some(OWN[1]), ..Header::default() }), io::ErrorKind::InvalidInput);
        socket.set_nonblocking(true).unwrap();
        assert_eq!(receive(&socket, &mut [0; 10]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn who_may_send_an_option_finds_out() {
        try_sending(OWN[0], &NOTHING).unwrap();
    }
}
