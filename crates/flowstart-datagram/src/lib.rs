//! UDP datagrams with the options and the TTL of their headers of IP.
//!
//! | Looking for | Where |
//! |---|---|
//! | what a datagram's header is to say, and what it said | [`Header`], [`Received`] |
//! | the calls of Linux | `linux` |
//! | the same functions where there are no such calls | `elsewhere` |
//!
//! References: ip(7), `IP_RECVOPTS`, `IP_RETOPTS`, `IP_TTL` and `IP_RECVTTL`; RFC 3542, sections 4 and 8,
//! `IPV6_HOPOPTS` and `IPV6_HOPLIMIT` (ipv6(7)). In IPv6 the options are those of a hop-by-hop header (RFC 8200,
//! section 4.3), which this crate puts around them and takes away, and the TTL is the hop limit. Whether packets are of
//! IPv4 or of IPv6 is said by the address of the other end: a socket of IPv6 may have both.
//!
//! Not all of a header is in the hands of a program. In IPv4 the kernel refuses malformed options, and fills their
//! length up to a multiple of four bytes. In IPv6 it sends what it is told to. Where they arrive, Linux drops packets
//! with more than eight options (`net.ipv6.max_hbh_opts_number`; a negative number drops all with options that it does
//! not know) or with a longer header than `net.ipv6.max_hbh_length`, which is not limited by default.

use std::io;
use std::net::{IpAddr, SocketAddr};

#[cfg(doctest)]
#[cfg_attr(target_os = "linux", doc = include_str!("../README.md"))]
struct Readme;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use self::elsewhere::{peek, receive, send, show_headers, try_sending};
#[cfg(target_os = "linux")]
pub use self::linux::{peek, receive, send, show_headers, try_sending};

/// Bytes of all options of a header: in IPv4 its length has four bits, and counts words of four bytes of which five are
/// fixed (RFC 791, section 3.1). In IPv6 there may be more, of which these are kept.
pub const MOST_OPTIONS: usize = 40;

/// The TTL that hosts begin with (RFC 1700, "IP Time to Live"), and the hop limit.
pub const DEFAULT_TTL: u8 = 64;

/// What the header of a datagram is to say that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its options, one behind the other; at most [`MOST_OPTIONS`] bytes.
    pub options: &'a [u8],
    /// Its TTL or hop limit; zero is refused.
    pub ttl: u8,
    /// Its type of service or traffic class, whose last two bits are ECN's.
    pub tos: u8,
    /// The address that it leaves from; `None`: the socket's, or as the route says.
    pub source: Option<IpAddr>,
}

impl Default for Header<'_> {
    fn default() -> Self {
        Self { options: &[], ttl: DEFAULT_TTL, tos: 0, source: None }
    }
}

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes in the buffer. What does not fit is cut off.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// The TTL or hop limit with which it arrived; `None`: the socket does not show headers.
    pub ttl: Option<u8>,
    options: [u8; MOST_OPTIONS],
    options_length: usize,
}

impl Received {
    /// The options of its header, one behind the other, or of many the first [`MOST_OPTIONS`] bytes; none if the socket
    /// does not show headers.
    pub fn options(&self) -> &[u8] {
        self.options.get(..self.options_length).unwrap_or_default()
    }
}

/// Why options cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unable {
    /// The kernel takes options of IPv4 that it does not know, and all of IPv6, from privileged processes only.
    #[error("to send options of IP this process needs CAP_NET_RAW")]
    Privilege,
    /// The system has no call for it.
    #[error("options of IP need Linux")]
    System,
    /// Something else.
    #[error("options of IP cannot be sent: {0}")]
    Other(#[source] io::Error),
}

impl From<io::Error> for Unable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Linux calls an option of IPv4 malformed that it does not know and that this process may not send.
            io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied => Self::Privilege,
            io::ErrorKind::Unsupported => Self::System,
            _ => Self::Other(error),
        }
    }
}

/// Bytes of a hop-by-hop header before its options: the kind of what follows, and the length.
const HOP_BY_HOP: usize = 2;

/// Bytes that so many bytes of options take in the header of a packet to this address.
pub const fn options_length(to: IpAddr, options: usize) -> usize {
    match (to.to_canonical(), options) {
        (_, 0) => 0,
        (IpAddr::V4(_), _) => options.next_multiple_of(4),
        (IpAddr::V6(_), _) => (HOP_BY_HOP + options).next_multiple_of(8),
    }
}
