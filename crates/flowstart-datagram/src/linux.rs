//! Linux: options and TTL travel as control messages beside a datagram.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::{setsockopt_impl, sockopt_impl};
use socket2::{MsgHdr, SockAddr, SockRef};

use crate::{Header, MOST_OPTIONS, Received, Unable};

/// Bytes for the control messages of one datagram: options and TTL take 80. What other owners of the socket have asked
/// for (ECN, destination, time, segments) takes another 112.
const CONTROL: usize = 256;

sockopt_impl!(
    /// Shows the options of a datagram's header.
    RecvOpts,
    SetOnly,
    libc::IPPROTO_IP,
    libc::IP_RECVOPTS,
    bool
);

/// Whether [`receive`] and [`peek`] show headers of what comes to this socket, an IPv4 one.
///
/// # Errors
///
/// What the system says.
pub fn show_headers(socket: &impl AsFd, shown: bool) -> io::Result<()> {
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
            ControlMessageOwned::Ipv4Ttl(ttl) => received.ttl = u8::try_from(ttl).ok(),
            ControlMessageOwned::Unknown(other)
                if (other.cmsg_header.cmsg_level, other.cmsg_header.cmsg_type)
                    == (libc::IPPROTO_IP, libc::IP_RECVOPTS) =>
            {
                let bytes = other.data_bytes;
                let length = bytes.len().min(MOST_OPTIONS);
                received.options[..length].copy_from_slice(&bytes[..length]);
                received.options_length = length;
            }
            _ => {}
        }
    }
    Ok(received)
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let of_ipv4 = |address: &SockaddrIn| SocketAddr::from((address.ip(), address.port()));
    storage.as_sockaddr_in().map(of_ipv4).or_else(|| {
        let address = storage.as_sockaddr_in6()?;
        Some((address.ip(), address.port()).into())
    })
}

/// Sends one datagram with this header; `to` may only be missing if the socket is connected.
///
/// # Errors
///
/// What the system says: [`io::ErrorKind::InvalidInput`] for malformed options, and for options that the kernel does
/// not know without `CAP_NET_RAW`.
pub fn send(socket: &impl AsFd, contents: &[u8], to: Option<SocketAddr>, header: &Header<'_>) -> io::Result<()> {
    let mut control = Vec::with_capacity(CONTROL);
    if !header.options.is_empty() {
        append(&mut control, libc::IP_RETOPTS, header.options);
    }
    append(&mut control, libc::IP_TTL, &libc::c_int::from(header.ttl).to_ne_bytes());
    append(&mut control, libc::IP_TOS, &libc::c_int::from(header.tos).to_ne_bytes());
    if let Some(source) = header.source {
        append(&mut control, libc::IP_PKTINFO, &packet_info(source));
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

/// A control message of IP (cmsg(3)): its length, level and kind, then its content, filled up to whole words.
fn append(control: &mut Vec<u8>, kind: libc::c_int, content: &[u8]) {
    const WORD: usize = size_of::<usize>();
    let begin = (WORD + 2 * size_of::<libc::c_int>()).next_multiple_of(WORD);
    control.extend_from_slice(&(begin + content.len()).to_ne_bytes());
    control.extend_from_slice(&libc::IPPROTO_IP.to_ne_bytes());
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

/// Whether this process may send these options, which are well-formed, now: sends itself a datagram with them, over a
/// socket of its own.
///
/// # Errors
///
/// [`Unable`] says why not.
pub fn try_sending(options: &[u8]) -> Result<(), Unable> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(send(&socket, &[], Some(socket.local_addr()?), &Header { options, ..Header::default() })?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use std::time::Duration;

    use super::*;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    /// Options that every process may send: nothing, three times, and their end.
    const NOTHING: [u8; 4] = [1, 1, 1, 0];

    #[test]
    fn what_a_header_says_arrives() {
        let (sender, receiver) = (socket(), socket());
        show_headers(&receiver, true).unwrap();
        let (to, source) = (receiver.local_addr().unwrap(), Some(Ipv4Addr::LOCALHOST));
        let full = [1; MOST_OPTIONS];
        let mut buffer = [0; 100];
        for (options, ttl) in [(&NOTHING[..], 1), (&[], 255), (&full, 64), (&NOTHING[..3], 7)] {
            send(&sender, b"hello", Some(to), &Header { options, ttl, tos: 2, source }).unwrap();
            let seen = peek(&receiver, &mut buffer).unwrap();
            let came = receive(&receiver, &mut buffer).unwrap();
            assert_eq!(seen, came, "a look takes nothing away");
            assert_eq!((&buffer[..came.length], came.ttl), (&b"hello"[..], Some(ttl)));
            assert_eq!(came.from, sender.local_addr().unwrap());
            // The kernel fills them up.
            assert_eq!(
                (came.options().len(), came.options().starts_with(options)),
                (options.len().next_multiple_of(4), true)
            );
        }
        sender.connect(to).unwrap();
        send(&sender, b"connected", None, &Header::default()).unwrap();
        assert_eq!(receive(&receiver, &mut buffer).unwrap().length, 9);
        assert_eq!(peek(&receiver, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_socket_shows_headers_only_if_it_is_asked_to() {
        let (sender, receiver) = (socket(), socket());
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
        let socket = socket();
        let to = Some(socket.local_addr().unwrap());
        let refused = |header: &Header<'_>| send(&socket, b"x", to, header).unwrap_err().kind();
        for options in [&[25, 9, 0, 0][..], &[25, 1], &[7], &[130, 200, 0, 0]] {
            assert_eq!(refused(&Header { options, ..Header::default() }), io::ErrorKind::InvalidInput, "{options:?}");
        }
        assert_eq!(refused(&Header { ttl: 0, ..Header::default() }), io::ErrorKind::InvalidInput);
        socket.set_nonblocking(true).unwrap();
        assert_eq!(receive(&socket, &mut [0; 10]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn who_may_send_an_option_finds_out() {
        try_sending(&NOTHING).unwrap();
    }
}
