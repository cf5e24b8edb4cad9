//! The layouts that `bpf/tell.bpf.h` shares with this program.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use libbpf_rs::{MapCore, MapFlags};

use crate::hint::{ADDRESS, Hint, as_ipv6};

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
    let (length, _) = as_ipv6(hint.destinations);
    let rtt = hint.rtt.map_or(0, |rtt| rtt.as_nanos() / 1000);
    let rate = hint.rate.bits_per_sec() / 8;
    let times = [rate, rtt, given, expires].map(u64::to_ne_bytes).concat();
    let value = [&times[..], &length.to_ne_bytes(), &0_u32.to_ne_bytes()].concat();
    (destination(hint.destinations), value)
}

/// `struct destination`.
pub(super) fn destination(network: IpNet) -> Vec<u8> {
    let (length, address) = as_ipv6(network);
    [&length.to_ne_bytes()[..], &address].concat()
}

/// Until when a `struct hint` holds; 0: always.
pub(super) fn expires(value: &[u8]) -> Option<u64> {
    let mut fields = Fields::new(value);
    (0..4).map(|_| fields.wide()).last().flatten()
}

/// Rate and RTT of a `struct hint`.
pub(super) fn known(value: &[u8]) -> Option<&[u8]> {
    value.get(..16)
}

/// `enum control`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control {
    Following = 0,
    Lost,
    HintUse,
    Learning,
}

/// What the map of `enum control` says.
pub(super) fn control(map: &impl MapCore, of: Control) -> libbpf_rs::Result<Option<u32>> {
    let found = map.lookup(&(of as u32).to_ne_bytes(), MapFlags::ANY)?;
    Ok(found.and_then(|found| Fields::new(&found).number()))
}

pub(super) fn set_control(map: &impl MapCore, of: Control, value: u32) -> libbpf_rs::Result<()> {
    map.update(&(of as u32).to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY)
}
