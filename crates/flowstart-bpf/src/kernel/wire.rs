//! The layouts that `bpf/tell.bpf.h` shares with this program.

use std::net::{IpAddr, Ipv6Addr};

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
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

/// What [`hint`] has written, at a later time of the clock.
pub(super) fn read_hint(key: &[u8], value: &[u8], now: u64) -> Option<Hint> {
    let mut fields = Fields::new(key);
    let (length, address) = (fields.number()?, fields.address()?);
    // Those of IPv4 are mapped into IPv6.
    let length = if address.is_ipv4() { length.checked_sub(96)? } else { length };
    let destinations = IpNet::new(address, u8::try_from(length).ok()?).ok()?;
    let mut fields = Fields::new(value);
    let [rate, rtt, given, expires] = [fields.wide()?, fields.wide()?, fields.wide()?, fields.wide()?];
    Some(Hint {
        destinations,
        rate: Rate::from_bits_per_sec(rate.saturating_mul(8)),
        rtt: (rtt > 0).then(|| Duration::from_micros(rtt)),
        // The clock may have begun after the hint was learned.
        age: Duration::from_nanos(now.wrapping_sub(given)),
        lifetime: (expires > 0).then(|| Duration::from_nanos(expires.wrapping_sub(given))),
    })
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
