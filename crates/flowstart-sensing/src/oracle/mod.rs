//! A capacity oracle: a small service that tells what others measured towards a destination, and a client that asks it.
//!
//! Reference: RFC 7285 (ALTO), section 11.4 (Endpoint Property Service) with its error codes of section 8.5.2. The
//! service answers from a [path store](crate::path_store), by the prefix of the requested address.
//! `GET /capacity?address=192.0.2.7` gives a small JSON object; `POST /endpointprop` takes and gives ALTO's media
//! types, with the private property `priv:flowstart-capacity`. The client asks the first, waits no longer than
//! [`ClientConfig::bound`], and remembers answers and failures. So an absent oracle costs one connection the bound and
//! the next ones nothing.
//!
//! Differences from the reference: no information resource directory, no maps, no cost services, and no other
//! properties: an ALTO client has to be told where `/endpointprop` is. There is no authentication and no TLS: anyone
//! who reaches the service learns how fast the paths to others are, so it belongs on the loopback interface or behind a
//! proxy.
//!
//! The service is built on hyper, because connections need limits for the time of a header and for their number, which
//! smaller servers lack; it runs in one thread. The client is built on ureq, because it blocks as its callers do and
//! bounds a whole exchange, name resolution included.
//!
//! | What | Where |
//! |---|---|
//! | questions and answers as bytes | [`message`] |
//! | the service | [`Service`], [`serve`] |
//! | the client | [`OracleClient`] |
//!
//! Status: worked examples between both; oracles that are closed, unreachable, silent, slow or hostile; arbitrary
//! bytes.

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::path_store::{Merge, PathRecord, Prefix, UnixTime};

mod client;
pub mod message;
mod service;

pub use client::{ClientConfig, OracleClient, OracleError, ServerError};
pub use service::{Limits, Service, serve, serve_within};

/// The name of the property in ALTO's answers. `priv:` is for properties that are not registered (RFC 7285, section
/// 10.8.2).
pub const PROPERTY: &str = "priv:flowstart-capacity";
/// Largest accepted request and answer.
const BODY_MAX: usize = 64 * 1024;

/// The oracle's statement about a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// The addresses for which the answer holds.
    pub prefix: IpNet,
    /// The rate that connections reached.
    pub rate: Rate,
    /// The smallest RTT they saw.
    pub min_rtt: Duration,
    /// What they delivered in an RTT.
    pub cwnd: Bytes,
    /// Seconds since the last of them.
    pub age_seconds: u64,
    /// Observations behind the answer.
    pub samples: u64,
}

impl Capacity {
    /// The statement of `record` about the addresses in `prefix`; `None` when it is empty.
    pub fn of(prefix: Prefix, record: &PathRecord, merge: Merge, now: UnixTime) -> Option<Self> {
        let saved = record.saved_path(merge, now)?;
        Some(Self {
            prefix: prefix.network(),
            rate: record.rate(merge)?,
            min_rtt: saved.rtt,
            cwnd: saved.cwnd,
            age_seconds: saved.age.as_nanos() / 1_000_000_000,
            samples: record.observations().len() as u64,
        })
    }
}

fn std_duration(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests;
