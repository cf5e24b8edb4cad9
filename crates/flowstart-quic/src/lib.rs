//! Flow-startup schemes as congestion controllers of real QUIC stacks.
//!
//! [`ControllerFactory`] puts any startup scheme and congestion avoidance of `flowstart-core` into noq. With the
//! features `quinn` and `s2n-quic`, `quinn::ControllerFactory` and `s2n_quic::ControllerFactory` do it for these. The
//! simulator's model sender drives the same controller. Without a host, the crate has only the codec and the policies
//! of hints.
//!
//! | Looking for | Where |
//! |---|---|
//! | the adapter for noq, and the limits of that host | [`noq`] |
//! | factories of controllers | [`factory`] |
//! | timers for noq that are fine enough for launches | `runtime` |
//! | a socket for noq that sends and reads SCONE packets | `scone` |
//! | a socket for noq that times the server's part of the handshake | `handshake_train` |
//! | sockets for noq that ask routers for a rate and read the request (Quick-Start) | `quick_start` |
//! | the adapter for quinn, and the limits of that host | `quinn` |
//! | the adapter for s2n-quic, and the limits of that host | `s2n_quic` |
//! | the exchange between an application and its controller | [`flow`] |
//! | clients' hints about their path, and a server's trust in them | [`hint`] |
//! | path state of an earlier connection, sealed and kept by the client | [`careful_resume`] |
//! | a controller's decisions as events of a qlog file | `qlog` |
//! | transport parameters that carry hints and path state, and noq's TLS with them | [`transport_parameters`], [`session`] |

#[cfg(all(doctest, feature = "noq"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
#[cfg_attr(
    not(all(feature = "noq", feature = "quinn", feature = "s2n-quic")),
    allow(dead_code, reason = "each host uses its part")
)]
mod clock;
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
#[cfg_attr(
    not(all(feature = "noq", feature = "quinn", feature = "s2n-quic")),
    allow(dead_code, reason = "each host uses its part")
)]
mod sender;
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
#[cfg_attr(
    not(all(feature = "noq", feature = "quinn", feature = "s2n-quic")),
    allow(dead_code, reason = "each host uses its part")
)]
mod sent;
mod varint;

#[cfg(feature = "noq")]
pub mod careful_resume;
#[cfg(feature = "runtime")]
mod connection_ids;
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
#[cfg_attr(
    not(all(feature = "noq", feature = "quinn", feature = "s2n-quic")),
    allow(dead_code, reason = "each host uses its part")
)]
pub mod factory;
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
pub mod flow;
#[cfg(feature = "runtime")]
pub mod handshake_train;
pub mod hint;
#[cfg(feature = "runtime")]
mod invariants;
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(feature = "qlog")]
pub mod qlog;
#[cfg(feature = "runtime")]
pub mod quick_start;
#[cfg(feature = "quinn")]
pub mod quinn;
#[cfg(feature = "runtime")]
pub mod runtime;
#[cfg(feature = "s2n-quic")]
pub mod s2n_quic;
#[cfg(feature = "runtime")]
pub mod scone;
#[cfg(feature = "noq")]
pub mod session;
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
pub mod sharing;
#[cfg(feature = "noq")]
pub mod transport_parameters;

#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
pub use factory::Factory;
#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n-quic"))]
pub use flow::{Flow, Status};
#[cfg(feature = "noq")]
pub use noq::ControllerFactory;

use flowstart_core::needs::Needs;
use flowstart_core::registry::ConfigError;

/// A scheme that a host cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The scheme's parameters are wrong, or it does not fit the congestion avoidance.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It needs what the host cannot give.
    #[error("{scheme} needs {}, which {host} does not give", missing.first().unwrap_or("more"))]
    Needs {
        /// The QUIC stack, or the program around it.
        host: &'static str,
        /// The scheme or the congestion avoidance.
        scheme: &'static str,
        /// What is missing.
        missing: Needs,
    },
    /// It asks routers in a way that the host cannot follow.
    #[error("{key} is not for {host}: {why}")]
    Request {
        /// The QUIC stack.
        host: &'static str,
        /// The scheme's parameter.
        key: &'static str,
        /// What the host does instead.
        why: &'static str,
    },
}
