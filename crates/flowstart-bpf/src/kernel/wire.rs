//! The layouts that `bpf/tell.bpf.h` shares with this program.

use std::net::{IpAddr, Ipv6Addr};

use crate::hint::{ADDRESS, Hint, as_ipv6};

/// Names of `enum reason`, from 1: those of results.
pub(super) const REASONS: [&str; 10] =
    ["launch", "loss", "ecn", "delay", "chokepoint", "validated", "timeout", "idle", "ssthresh", "path-changed"];

/// Reads integers one after the other.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn wide(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    /// An address; those of IPv4 are mapped into IPv6.
    pub(super) fn address(&mut self) -> Option<IpAddr> {
        Some(Ipv6Addr::from(self.take::<ADDRESS>()?).to_canonical())
    }
}

/// `struct destination` and `struct hint`. `given` and `expires` are on the kernel's monotonic clock; 0: never.
pub(super) fn hint(hint: &Hint, given: u64, expires: u64) -> (Vec<u8>, Vec<u8>) {
    let (length, address) = as_ipv6(hint.destinations);
    let rtt = hint.rtt.map_or(0, |rtt| rtt.as_nanos() / 1000);
    let rate = hint.rate.bits_per_sec() / 8;
    let value = [rate, rtt, given, expires].map(u64::to_ne_bytes).concat();
    ([&length.to_ne_bytes()[..], &address].concat(), value)
}
