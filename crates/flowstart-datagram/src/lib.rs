//! UDP datagrams with the options and the TTL of their IPv4 headers.
//!
//! | Looking for | Where |
//! |---|---|
//! | what a datagram's header is to say, and what it said | [`Header`], [`Received`] |
//! | the calls of Linux | `linux` |
//! | the same functions where there are no such calls | `elsewhere` |
//!
//! Reference: ip(7), `IP_RECVOPTS`, `IP_RETOPTS`, `IP_TTL` and `IP_RECVTTL`. Not all of a header is in the hands of a
//! program: the kernel refuses malformed options, and fills their length up to a multiple of four bytes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

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

/// Bytes of all options of a header: its length has four bits, and counts words of four bytes of which five are fixed
/// (RFC 791, section 3.1).
pub const MOST_OPTIONS: usize = 40;

/// The TTL that hosts begin with (RFC 1700, "IP Time to Live").
pub const DEFAULT_TTL: u8 = 64;

/// What the header of a datagram is to say that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its options, one behind the other; at most [`MOST_OPTIONS`] bytes.
    pub options: &'a [u8],
    /// Its TTL; zero is refused.
    pub ttl: u8,
    /// Its type of service, whose last two bits are ECN's.
    pub tos: u8,
    /// The address that it leaves from; `None`: the socket's, or as the route says.
    pub source: Option<Ipv4Addr>,
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
    /// The TTL with which it arrived; `None`: the socket does not show headers.
    pub ttl: Option<u8>,
    options: [u8; MOST_OPTIONS],
    options_length: usize,
}

impl Received {
    /// The options of its header, one behind the other; none if the socket does not show headers.
    pub fn options(&self) -> &[u8] {
        self.options.get(..self.options_length).unwrap_or_default()
    }
}

/// Why options cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unable {
    /// The kernel does not know these options, and takes such ones from privileged processes only.
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
            // Linux calls an option malformed that it does not know and that this process may not send.
            io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied => Self::Privilege,
            io::ErrorKind::Unsupported => Self::System,
            _ => Self::Other(error),
        }
    }
}

/// An address of IPv4, also if it is written as one of IPv6 (RFC 4291, section 2.5.5.2).
pub fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address.to_canonical() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}
