//! The versions of HTTP that a page can be loaded over.
//!
//! HTTP/2 (RFC 9113) has one connection of TCP. Its responses share one stream of bytes, so a lost segment holds back
//! all that follows it. HTTP/3 (RFC 9114) has one connection of QUIC, in which a loss holds back only its own response.
//! In both, responses leave in the order of their requests (RFC 9218, section 10). Several connections of HTTP/1.1 are
//! described where they run ([`flowstart_sim::world::page`]).
//!
//! Assumptions: connections of TCP have no TLS, so that all versions have their first request after one round trip.

use flowstart_sim::transport::policy::Protocol;
use serde::Serialize;

use super::form::Key;
use super::{InputError, Spec};

/// Numbers that the parser compares with and the keys' texts have.
macro_rules! number {
    // Connections to a host name unless told otherwise: those of browsers.
    (of browsers) => {
        6
    };
    // Most connections to a host name, and most host names.
    (of each) => {
        100
    };
    // Most connections of a page.
    (of all) => {
        256
    };
}

/// The key of the version.
pub(super) const HTTP: Key = Key::new(
    "http",
    "1.1, 2 or 3",
    "version of HTTP. 1.1 and 2 use TCP, 3 uses QUIC; if the transport is the other protocol, tcp-linux or rfc9002",
    "2 over TCP, 3 over QUIC",
)
.such_as("page:objects=6,size=50KB,waves=3,http=3");
/// The key of the connections to a host name.
pub(super) const CONNECTIONS: Key = Key::new(
    "connections",
    concat!("1 to ", number!(of each)),
    concat!("with http=1.1: most connections to a host name; times shards up to ", number!(of all)),
    concat!(number!(of browsers)),
)
.such_as("page:objects=6,size=50KB,waves=3,http=1.1,connections=2");
/// The key of the host names.
pub(super) const SHARDS: Key = Key::new(
    "shards",
    concat!("1 to ", number!(of each)),
    concat!(
        "with http=1.1: host names that share the objects (domain sharding); times connections up to ",
        number!(of all)
    ),
    "1",
)
.such_as("page:objects=6,size=50KB,waves=3,http=1.1,shards=2");
/// The key of the outstanding requests.
pub(super) const PIPELINING: Key = Key::new(
    "pipelining",
    concat!("1 to ", number!(of each)),
    "with http=1.1: most outstanding requests of a connection after its first response; 1 is without pipelining, as \
     in browsers",
    "1",
)
.such_as("page:objects=6,size=50KB,waves=3,http=1.1,pipelining=8");

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Http {
    /// HTTP/1.1.
    One {
        /// Most connections to a host name.
        connections: u32,
        /// Host names that share the objects.
        shards: u32,
        /// Most outstanding requests of a connection.
        pipelining: u32,
    },
    /// HTTP/2.
    Two,
    /// HTTP/3.
    Three,
}

impl Http {
    /// Reads the keys; `None` without them.
    pub(super) fn read(spec: &mut Spec<'_>) -> Result<Option<Self>, InputError> {
        let plain = Self::One { connections: number!(of browsers), shards: 1, pipelining: 1 };
        let version = spec.one_of("http", &[("1.1", plain), ("2", Self::Two), ("3", Self::Three)])?;
        let connections = spec.within("connections", 1..=number!(of each))?;
        let shards = spec.within("shards", 1..=number!(of each))?;
        let pipelining = spec.within("pipelining", 1..=number!(of each))?;
        let Some(Self::One { .. }) = version else {
            return match connections.or(shards).or(pipelining) {
                None => Ok(version),
                Some(_) => Err(spec.refused("connections, shards and pipelining are for http=1.1")),
            };
        };
        let (connections, shards) = (connections.unwrap_or(number!(of browsers)), shards.unwrap_or(1));
        let pipelining = pipelining.unwrap_or(1);
        match (connections * shards, number!(of all)) {
            (all, most) if all > most => {
                let problem = format_args!("connections times shards is {all}; allowed is up to {most}");
                Err(spec.refused(problem))
            }
            _ => Ok(Some(Self::One { connections, shards, pipelining })),
        }
    }

    /// The protocol below.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::One { .. } | Self::Two => Protocol::Tcp,
            Self::Three => Protocol::Quic,
        }
    }
}
