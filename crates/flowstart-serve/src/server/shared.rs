//! State shared by all connections of a server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flowstart_quic::{quick_start, scone};
use flowstart_sensing::path_store::Prefixes;
use h3::error::Code;
use noq::{Endpoint, ServerConfig, TransportConfig, VarInt};
use tokio::sync::Semaphore;

use super::content::Content;
use super::hints::Hints;
use super::limits::{Counter, Limits, PrefixLimit, RateLimit, Seldom};
use super::memory::Memory;
use super::policy::Policy;
use super::qlog;
use super::sharing::SharedWindows;
use super::sources::SourcesOfServer;
use crate::metrics::Metrics;
use crate::path_state::Seal;
use crate::warnings::Warnings;

/// Time for packets that close connections, after everything else is done.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);

/// A server as its connections see it.
pub(super) struct Shared {
    /// Where it listens.
    pub(super) endpoint: Endpoint,
    /// Its TLS, for all connections.
    pub(super) config: ServerConfig,
    /// The common transport configuration; each connection gets its own congestion control.
    pub(super) transport: TransportConfig,
    /// What it serves.
    pub(super) content: Content,
    /// Which scheme a connection gets.
    pub(super) policy: Policy,
    /// What it counts.
    pub(super) metrics: Arc<Metrics>,
    /// What it allows.
    pub(super) limits: Limits,
    /// Connections per prefix.
    pub(super) of_prefix: Option<Arc<PrefixLimit>>,
    /// New connections per prefix and second.
    pub(super) rate: Option<RateLimit>,
    /// The policy for hints.
    pub(super) hints: Hints,
    /// Warns of what clients do wrong.
    pub(super) log: Seldom,
    /// Warns of everything else.
    pub(super) warnings: Warnings,
    /// The connections that carry SCONE packets, if any may.
    pub(super) scone: Option<Arc<scone::Clients>>,
    /// The connections that ask routers, if any may.
    pub(super) quick_start: Option<Arc<quick_start::Clients>>,
    /// Where qlog files go.
    pub(super) qlog: Option<qlog::Folder>,
    /// The networks of clients that they name, if they name any.
    pub(super) qlog_networks: Option<Prefixes>,
    /// Requests are answered before the handshake is complete.
    pub(super) early_data: bool,
    /// What it can learn of paths.
    pub(super) sources: Arc<SourcesOfServer>,
    /// The sealer of path state that clients keep.
    pub(super) seal: Option<Seal>,
    /// Connections now.
    pub(super) connections: Counter,
    /// What connections hold together.
    pub(super) memory: Option<Memory>,
    /// Files that may be opened besides those that are open.
    pub(super) files: Semaphore,
    /// The windows that each client's connections share.
    pub(super) windows: SharedWindows,
    /// Handshakes now.
    pub(super) handshakes: Counter,
}

/// A panic while it was locked leaves nothing half-changed.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A code of HTTP/3 as QUIC carries it.
pub(super) fn h3_code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
