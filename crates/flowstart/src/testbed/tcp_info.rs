//! What the kernel knows of a connection of TCP (`TCP_INFO`).
//!
//! Places of fields are those of `struct tcp_info` in `include/uapi/linux/tcp.h`, to which each kernel may add some at
//! the end.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use nix::errno::Errno;
use nix::libc;

/// Most bytes that are read; Linux 6.8 has 248.
const LARGEST: usize = 512;

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u64 = 0x7fff_ffff;

/// `tcpi_ca_state` (`enum tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Open or Disorder: nothing is lost that it knows of.
    Open,
    /// CWR: the window is reduced, but not for a loss.
    Reduced,
    /// It is reduced for a loss.
    Recovery,
    /// After a timeout.
    Loss,
}

impl State {
    /// Whether it is an episode of reduction that timeouts have no part in.
    pub(super) fn is_reducing(self) -> bool {
        matches!(self, Self::Reduced | Self::Recovery)
    }
}

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

    /// Whether it reduces its window, or has, for what.
    pub(super) fn state(&self) -> Option<State> {
        Some(match self.field(1)? {
            [0 | 1] => State::Open,
            [2] => State::Reduced,
            [3] => State::Recovery,
            [4] => State::Loss,
            _ => return None,
        })
    }

    /// So many of its segments (`tcpi_snd_mss`).
    fn segments(&self, count: u64) -> Option<Bytes> {
        Some(Bytes::new(self.count(16)?.saturating_mul(count)))
    }

    /// What is in flight (`tcp_packets_in_flight`): `tcpi_unacked`, without those that arrived (`tcpi_sacked`) or are
    /// lost (`tcpi_lost`), and what was sent again (`tcpi_retrans`).
    pub(super) fn in_flight(&self) -> Option<Bytes> {
        let (unacked, left) = (self.count(24)?, self.count(28)?.saturating_add(self.count(32)?));
        self.segments(unacked.saturating_add(self.count(36)?).saturating_sub(left))
    }

    /// Its window (`tcpi_snd_cwnd`).
    pub(super) fn cwnd(&self) -> Option<Bytes> {
        self.segments(self.count(80)?)
    }

    /// Its ssthresh (`tcpi_snd_ssthresh`); within, `None`: infinite.
    pub(super) fn ssthresh(&self) -> Option<Option<Bytes>> {
        let ssthresh = self.count(76)?;
        if ssthresh == INFINITE { Some(None) } else { self.segments(ssthresh).map(Some) }
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
