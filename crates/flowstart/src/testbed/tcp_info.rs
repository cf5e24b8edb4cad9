//! What the kernel knows of a connection of TCP (`TCP_INFO`).
//!
//! Places of fields are those of `struct tcp_info` in `include/uapi/linux/tcp.h`, to which each kernel may add some at
//! the end.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use flowstart_core::time::Duration;
use nix::errno::Errno;
use nix::libc;

/// Most bytes that are read; Linux 6.8 has 248.
const LARGEST: usize = 512;

/// `tcpi_ca_state` in which the window is reduced without a timeout: CWR and Recovery (`enum tcp_ca_state`).
const REDUCING: [u8; 2] = [2, 3];

/// A connection's state and counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpInfo {
    bytes: [u8; LARGEST],
    length: usize,
}

impl TcpInfo {
    /// That of a socket.
    pub(super) fn of(socket: &impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; LARGEST];
        let mut length = LARGEST as libc::socklen_t;
        #[expect(unsafe_code, reason = "nix has no TCP_INFO; the kernel writes at most as many bytes as there are")]
        let result = unsafe {
            let fd = socket.as_fd().as_raw_fd();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut length)
        };
        Errno::result(result)?;
        Ok(Self { bytes, length: (length as usize).min(LARGEST) })
    }

    fn field<const N: usize>(&self, place: usize) -> Option<[u8; N]> {
        self.bytes[..self.length].get(place..)?.first_chunk().copied()
    }

    fn count(&self, place: usize) -> Option<u64> {
        self.field(place).map(u32::from_ne_bytes).map(u64::from)
    }

    /// Whether it is in an episode of reduction that timeouts have no part in.
    pub(super) fn is_reducing(&self) -> bool {
        self.field(1).is_some_and(|[state]| REDUCING.contains(&state))
    }

    /// Its smoothed RTT (`tcpi_rtt`).
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.count(68).map(Duration::from_micros).filter(|rtt| *rtt > Duration::ZERO)
    }

    /// Segments sent again (`tcpi_total_retrans`).
    pub(super) fn retransmitted(&self) -> Option<u64> {
        self.count(100)
    }

    /// Segments with payload, those sent again included (`tcpi_data_segs_out`, Linux 4.6).
    pub(super) fn data_segments(&self) -> Option<u64> {
        self.count(156)
    }

    /// Payload bytes sent again (`tcpi_bytes_retrans`, Linux 4.19).
    pub(super) fn retransmitted_bytes(&self) -> Option<u64> {
        self.field(208).map(u64::from_ne_bytes)
    }

    /// Segments that the receiver says came twice (`tcpi_dsack_dups`, Linux 4.19; RFC 2883).
    pub(super) fn spurious(&self) -> Option<u64> {
        self.count(216)
    }

    /// Timeouts (`tcpi_total_rto`, Linux 6.7).
    pub(super) fn timeouts(&self) -> Option<u64> {
        self.field(240).map(u16::from_ne_bytes).map(u64::from)
    }
}
