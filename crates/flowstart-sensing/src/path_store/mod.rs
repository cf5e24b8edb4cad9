//! Knowledge of earlier connections, saved per destination prefix, so the next connection need not learn it again.
//!
//! Reference: RFC 9040, section 6 (temporal sharing of TCP control blocks); draft-ietf-tsvwg-careful-resume, section 3
//! (Observe). When a connection ends or has grown, its host puts an [`Observation`] into a [`PathStore`] under
//! the [`Prefix`] of its peer. Before the next connection to that prefix sends, the host gets the [`PathRecord`] and
//! turns it into a [`SavedPath`] ([`PathRecord::saved_path`]).
//!
//! Differences from the references: RFC 9040 keeps one value per parameter and merges into it; a record keeps the
//! latest observations and merges them when they are read, so one store serves schemes that merge differently. RFC 9040
//! shares by host, this module by prefix. Careful Resume keeps one set per remote endpoint: [`Merge::MostRecent`] with
//! prefixes of full length.
//!
//! Status: worked examples, and the same contract for every store; no published numbers are reproduced.
//!
//! | Store | Where |
//! |---|---|
//! | in this process, lost with it | [`memory`] |
//! | in a file of this host | [`embedded`] |
//! | on a Redis server, for several hosts (feature `redis`) | `redis` |

use std::net::IpAddr;

use flowstart_core::path::SavedPath;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

#[cfg(feature = "redis")]
mod bounded_connection;
pub mod embedded;
pub mod memory;
mod record;
#[cfg(feature = "redis")]
pub mod redis;
mod unix_time;

pub use record::DecodeError;
pub use unix_time::UnixTime;

/// The addresses that share the knowledge of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpNet);

impl Prefix {
    /// The network as it is written, `192.0.2.0/24`.
    pub const fn network(self) -> IpNet {
        self.0
    }
}

impl From<IpNet> for Prefix {
    /// The network without its host bits.
    fn from(network: IpNet) -> Self {
        Self(network.trunc())
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A prefix longer than the addresses of its family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {length}, but addresses of this family have {limit} bits")]
pub struct PrefixTooLong {
    field: &'static str,
    length: u8,
    limit: u8,
}

/// Which prefix an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prefixes {
    /// Bits of IPv4 addresses without a configured network. Default 24: the longest prefix that is routed between
    /// providers, and a granularity of Riptide (Flores et al., ICDCS 2016).
    pub ipv4_bits: u8,
    /// Bits of IPv6 addresses without a configured network. Default 48: the largest end site.
    /// Providers that delegate a /56 to each (RFC 6177, section 2) have 256 of them in one prefix.
    pub ipv6_bits: u8,
    /// Networks that the operator knows to share one path. The longest that contains the address is its prefix.
    pub networks: Vec<IpNet>,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self { ipv4_bits: 24, ipv6_bits: 48, networks: Vec::new() }
    }
}

impl Prefixes {
    /// Refuses prefixes that are longer than addresses.
    pub fn validate(&self) -> Result<(), PrefixTooLong> {
        for (field, length, limit) in [("ipv4_bits", self.ipv4_bits, 32), ("ipv6_bits", self.ipv6_bits, 128)] {
            if length > limit {
                return Err(PrefixTooLong { field, length, limit });
            }
        }
        Ok(())
    }

    /// The prefix of `address`. An IPv4 address that is mapped into IPv6 counts as IPv4.
    pub fn prefix_of(&self, address: IpAddr) -> Prefix {
        let address = address.to_canonical();
        let configured = self
            .networks
            .iter()
            .filter(|network| network.contains(&address))
            .max_by_key(|network| network.prefix_len());
        if let Some(network) = configured {
            return Prefix::from(*network);
        }
        let (bits, limit) = if address.is_ipv4() { (self.ipv4_bits, 32) } else { (self.ipv6_bits, 128) };
        Prefix::from(IpNet::new(address, bits.min(limit)).unwrap_or_else(|_| IpNet::from(address)))
    }
}

/// The measurements of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// When it was saved.
    pub at: UnixTime,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Bytes that were delivered in one RTT. Careful Resume, section 4.1: half of cwnd if slow start still ran.
    pub cwnd: Bytes,
    /// Highest delivery rate.
    pub rate: Rate,
}

/// How several observations become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// The latest window. The RTT beside it is the smallest that is kept, where Careful Resume saves both of one
    /// connection: in a prefix with hosts at different distances a far one may fail that scheme's check of the RTT.
    #[default]
    MostRecent,
    /// The median of those that are kept, the lower of two: one connection among three moves it no further than to the
    /// next, however slow or fast its client said that it was.
    Median,
    /// An exponentially weighted average from the oldest to the latest: `merge(old, curr)` of RFC 9040, section 6.2.
    Ewma {
        /// Weight of the later of two values, above 0 and at most 1. Values outside count as the nearest of these; an
        /// undefined one counts as 1.
        weight: f64,
    },
}

impl Merge {
    /// Values in order of time as one; `None` if there are none.
    fn merged(self, mut values: impl Iterator<Item = u64>) -> Option<u64> {
        let first = values.next()?;
        let weight = match self {
            Self::Median => {
                let mut all: Vec<u64> = std::iter::once(first).chain(values).collect();
                all.sort_unstable();
                return all.get((all.len() - 1) / 2).copied();
            }
            Self::MostRecent => 1.0,
            Self::Ewma { weight } if weight.is_nan() => 1.0,
            Self::Ewma { weight } => weight.clamp(f64::MIN_POSITIVE, 1.0),
        };
        let merged = values.fold(first as f64, |old, curr| (1.0 - weight) * old + weight * curr as f64);
        Some(libm::round(merged) as u64)
    }
}

/// How long and how much a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// An observation of this age is forgotten, in whole seconds. Careful Resume leaves its Lifetime to the operator,
    /// minutes to hours; Google QUIC uses saved bandwidth up to one hour. Default 1 h.
    pub lifetime: Duration,
    /// Observations kept per prefix, the latest ones. Default 32: enough for a percentile, and a record of about 1 KB.
    pub observations: u16,
    /// Prefixes kept, at least one, because strangers fill a store: the prefix with the oldest latest observation goes
    /// first. Default 65,536: records of 64 MB, and as many as a provider's /32 of IPv6 has. A Redis server has bounds
    /// of its own (`maxmemory`) instead.
    pub prefixes: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { lifetime: Duration::from_millis(3_600_000), observations: 32, prefixes: 1 << 16 }
    }
}

impl Retention {
    /// How many of so many prefixes are too many.
    fn excess(&self, prefixes: u64) -> u64 {
        prefixes.saturating_sub(self.prefixes.max(1).into())
    }

    /// Whether an observation made at `at` may be used at `now`. An observation a lifetime ahead may not: a clock was
    /// wrong, and it would outlive all others.
    fn keeps(&self, at: UnixTime, now: UnixTime) -> bool {
        now.since(at) < self.lifetime && at.since(now) < self.lifetime
    }
}

/// A store's knowledge about a prefix: the latest observations in order of their time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRecord {
    observations: Vec<Observation>,
    samples: u64,
}

impl PathRecord {
    /// When the latest observation was made.
    fn latest(&self) -> Option<UnixTime> {
        self.observations.last().map(|seen| seen.at)
    }

    /// The observations, the latest last.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// How many observations were put since the record was new, including forgotten ones.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes in an observation and forgets what `retention` does not keep.
    fn add(&mut self, observation: Observation, retention: &Retention) {
        self.samples = self.samples.saturating_add(1);
        let place = self.observations.partition_point(|known| known.at <= observation.at);
        self.observations.insert(place, observation);
        self.forget(observation.at, retention);
    }

    /// Forgets what `retention` does not keep at `now`, and says how many observations that were.
    fn forget(&mut self, now: UnixTime, retention: &Retention) -> u64 {
        let before = self.observations.len();
        self.observations.retain(|observation| retention.keeps(observation.at, now));
        let excess = self.observations.len().saturating_sub(usize::from(retention.observations.max(1)));
        self.observations.drain(..excess);
        (before - self.observations.len()) as u64
    }

    /// The record as it is at `now`, `None` when nothing of it is left.
    fn at(mut self, now: UnixTime, retention: &Retention) -> Option<Self> {
        self.forget(now, retention);
        (!self.observations.is_empty()).then_some(self)
    }

    /// A scheme's knowledge: the smallest RTT, cwnd merged by `merge`, and the age of the latest observation.
    pub fn saved_path(&self, merge: Merge, now: UnixTime) -> Option<SavedPath> {
        Some(SavedPath {
            rtt: self.min_rtt()?,
            cwnd: Bytes::new(merge.merged(self.observations.iter().map(|seen| seen.cwnd.get()))?),
            age: now.since(self.latest()?),
        })
    }

    /// The rates merged by `merge`.
    pub fn rate(&self, merge: Merge) -> Option<Rate> {
        merge.merged(self.observations.iter().map(|seen| seen.rate.bits_per_sec())).map(Rate::from_bits_per_sec)
    }

    /// The smallest RTT. It is not averaged: a larger one contains queues.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.observations.iter().map(|seen| seen.min_rtt).min()
    }
}

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database in the file refused.
    #[error("the path store's database failed: {0}")]
    Database(#[from] Box<redb::Error>),
    /// The database met something in its file that it could not explain.
    #[error("the path store's file is damaged: {0}")]
    Damaged(String),
    /// A record cannot be read.
    #[error("the record of {prefix} cannot be read: {cause}")]
    Record {
        /// Whose record it is.
        prefix: String,
        /// What is wrong with it.
        #[source]
        cause: DecodeError,
    },
    /// A thread panicked while it changed the store.
    #[error("the path store was left in an unknown state by a thread that panicked")]
    Poisoned,
    /// The server did not answer in time.
    #[error("the path store's server did not answer within {0}")]
    Late(Duration),
    /// Too many calls wait for the server already.
    #[error("the path store's server has too many calls waiting")]
    Busy,
    /// The server refused, or could not be reached.
    #[cfg(feature = "redis")]
    #[error("the path store's server failed: {0}")]
    Server(#[from] ::redis::RedisError),
}

/// How many prefixes a store has forgotten altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// They were too old, or too many.
    pub expired: u64,
    /// Their records were damaged.
    pub unreadable: u64,
}

/// A place for the knowledge of connections. Calls may block for as long as the implementation says.
pub trait PathStore: Send + Sync {
    /// What is known of `prefix` and not expired at `now`.
    fn get(&self, prefix: Prefix, now: UnixTime) -> Result<Option<PathRecord>, StoreError>;

    /// Saves the measurements of a connection to `prefix`.
    fn put(&self, prefix: Prefix, observation: Observation) -> Result<(), StoreError>;

    /// Forgets everything that is expired at `now`, and what cannot be read.
    fn expire(&self, now: UnixTime) -> Result<Forgotten, StoreError>;
}

#[cfg(test)]
pub(crate) mod tests;
