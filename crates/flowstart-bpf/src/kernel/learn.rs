//! What connections have measured of their paths until they ended.
//!
//! While somebody learns, connections that begin measure, and what they have measured when they end is kept until it is
//! taken: for the latest connection to each address, and for so many addresses as the programs have room for (4096).

use std::fs::File;
use std::net::IpAddr;

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use libbpf_rs::MapCore;

use super::hints::monotonic_now;
use super::pins::{self, Found};
use super::wire::{Control, Fields, set_control};
use super::{KernelError, lock, permission};
use crate::port::{PORTS, Port};

/// The map of `struct measured`, and the bytes of it.
const MAP: &str = "measured";
const VALUE: usize = 40;
/// Most that are taken of a scheme at a time, so that a caller who saves them comes back soon.
const MOST: usize = 256;

/// What a connection has measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The scheme that it had.
    pub scheme: &'static str,
    /// Its peer.
    pub destination: IpAddr,
    /// How long ago it ended.
    pub age: Duration,
    /// The highest delivery rate of which the kernel kept a sample.
    pub rate: Rate,
    /// Payload that the peer acknowledged, 100 KB or more.
    pub delivered: Bytes,
    /// Its window at the end, or half of it if slow start still ran.
    pub cwnd: Bytes,
    /// The smallest RTT of its last minutes.
    pub min_rtt: Duration,
}

impl Measured {
    /// Reads an address and `struct measured`; `None`: it is no measurement.
    fn read(scheme: &'static str, address: &[u8], value: &[u8], now: u64) -> Option<Self> {
        /// What the kernel has without a sample of the RTT.
        const NO_RTT: u64 = u32::MAX as u64;
        let mut fields = Fields::new(value);
        let (time, rate, delivered) = (fields.wide()?, fields.wide()?, fields.wide()?);
        let (cwnd, min_rtt) = (fields.wide()?, fields.wide()?);
        let has_measured = rate > 0 && cwnd > 0 && (1..NO_RTT).contains(&min_rtt);
        has_measured.then_some(Self {
            scheme,
            destination: Fields::new(address).address()?,
            age: Duration::from_nanos(now.saturating_sub(time)),
            rate: Rate::from_bits_per_sec(rate.saturating_mul(8)),
            delivered: Bytes::new(delivered),
            cwnd: Bytes::new(cwnd),
            min_rtt: Duration::from_micros(min_rtt),
        })
    }
}

/// What was taken.
#[derive(Debug, Default)]
pub struct Taken {
    /// Schemes that are loaded now and measure.
    pub ports: Vec<&'static Port>,
    /// What their connections have measured.
    pub measured: Vec<Measured>,
    /// What cannot be read, by scheme.
    pub failed: Vec<(&'static Port, KernelError)>,
}

/// Who takes what is measured, one at a time; when it is dropped connections that begin do not measure any more.
#[derive(Debug)]
pub struct Learner {
    _lock: File,
}

impl Learner {
    /// Somebody who has taken nothing yet.
    ///
    /// # Errors
    ///
    /// This process may not, or somebody else learns.
    pub fn new() -> Result<Self, KernelError> {
        permission::check()?;
        Ok(Self { _lock: lock::learning()? })
    }

    /// What connections of loaded schemes have measured and nobody has taken yet, as far as they began when their
    /// scheme had been seen here. Call it every second or so.
    pub fn take(&mut self) -> Taken {
        let mut taken = Taken::default();
        for port in loaded() {
            match take_from(port) {
                Ok(measured) => {
                    taken.ports.push(port);
                    taken.measured.extend(measured);
                }
                // It was unloaded meanwhile.
                Err(_) if pins::find(port).ok() != Some(Found::Loaded) => {}
                Err(error) => taken.failed.push((port, error)),
            }
        }
        taken
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        loaded().for_each(|port| drop(set_learning(port, 0)));
    }
}

fn loaded() -> impl Iterator<Item = &'static Port> {
    PORTS.iter().filter(|port| matches!(pins::find(port), Ok(Found::Loaded)))
}

fn set_learning(port: &'static Port, wanted: u32) -> Result<(), KernelError> {
    set_control(&pins::map(port, pins::CONTROL)?, Control::Learning, wanted).map_err(|error| {
        let (file, cause) = (pins::file(port, pins::CONTROL), pins::as_io(&error));
        KernelError::File { file, cause }
    })
}

fn take_from(port: &'static Port) -> Result<Vec<Measured>, KernelError> {
    let scheme = port.scheme;
    let other_version = || KernelError::OtherVersion { file: pins::file(port, MAP), scheme };
    // Versions before this one have no such map.
    let map = pins::map(port, MAP).map_err(|error| match error {
        KernelError::File { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => other_version(),
        error => error,
    })?;
    if map.value_size() as usize != VALUE {
        return Err(other_version());
    }
    set_learning(port, 1)?;
    let addresses: Vec<_> = map.keys().take(MOST).collect();
    let now = monotonic_now();
    // One may have made room for another meanwhile.
    let values = addresses.iter().filter_map(|address| Some((address, map.lookup_and_delete(address).ok()??)));
    Ok(values.filter_map(|(address, value)| Measured::read(scheme, address, &value, now)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_no_measurement() {
        let address = std::net::Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped().octets();
        let read = |fields: [u64; 5]| {
            let value = fields.map(u64::to_ne_bytes).concat();
            assert_eq!(value.len(), VALUE);
            Measured::read("search", &address, &value, 5_000_000_000)
        };
        let measured = read([2_000_000_000, 1_250_000, 300_000, 50_000, 40_000]).unwrap();
        assert_eq!(
            (measured.destination.to_string().as_str(), measured.age),
            ("192.0.2.7", Duration::from_millis(3000))
        );
        assert_eq!((measured.rate, measured.min_rtt), (Rate::from_mbit(10), Duration::from_millis(40)));
        for nothing in [[1, 0, 1, 1, 1], [1, 1, 1, 0, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, u64::from(u32::MAX)]] {
            assert_eq!(read(nothing), None);
        }
        assert_eq!(Measured::read("search", &address, &[0; VALUE - 1], 0), None);
    }
}
