//! An HTTP/3 server.
//!
//! | Looking for | Where |
//! |---|---|
//! | from a client's first packet to its connection | `accept` |
//! | requests, their answers, and the records of a connection | `answers` |
//! | files and generated objects | `content` |
//! | the choice of startup schemes, the kill switch, the fallback | `policy` |
//! | how many connections may come | `limits`, `memory` |
//! | clients' hints about their path, and the used part | `hints` |
//! | what the path advises, as clients report it (SCONE) | `scone` |
//! | what routers approve, as clients respond it (Quick-Start) | `quick_start` |
//! | what is known of a path, and from where | `sources` |
//! | the memory of paths | `paths` |
//! | metrics and the kill switch over HTTP | `admin` |
//! | qlog | `qlog` |

mod accept;
mod admin;
mod answers;
mod content;
mod hints;
mod limits;
mod memory;
mod paths;
mod policy;
mod priority;
mod qlog;
mod quick_start;
mod scone;
mod shared;
mod sharing;
mod sources;
mod unacknowledged;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flowstart_core::sources::Known;
use flowstart_core::units::Bytes;
use flowstart_quic::hint::HintPolicy;
use flowstart_quic::quick_start::Unable;
use flowstart_sensing::interface;
use flowstart_sensing::path_store::Prefixes;
use h3::error::Code;
use noq::crypto::rustls::QuicServerConfig;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::content::Content;
use self::hints::Hints;
pub use self::limits::Limits;
use self::limits::{Counter, PrefixLimit, RateLimit, Seldom};
use self::memory::Memory;
use self::policy::Policy;
pub use self::policy::{FallBack, Schemes};
use self::shared::{FAREWELL, Shared, h3_code};
use self::sharing::SharedWindows;
use self::sources::SourcesOfServer;
pub use self::sources::{FASTEST, InterfaceChoice, Lack};
use crate::endpoint::{Clients, bind_for_clients, transport};
use crate::metrics::Metrics;
use crate::path_state::Seal;
use crate::tokens::Used;
use crate::warnings::Warnings;

/// What clients may send before it is read: requests, and nothing large.
const RECEIVE_WINDOW: Bytes = Bytes::new(256 << 10);
/// Address tokens that a connection gives its client for the next ones.
const TOKENS: u32 = 2;
/// How long a token proves an address, which may have another host by then.
const TOKEN_LIFETIME: Duration = Duration::from_secs(86_400);
/// What qlog files take together unless [`Config`] says otherwise: the beginnings of ten long transfers, or of some
/// ten thousand short ones.
pub const QLOG_LIMIT: Bytes = Bytes::new(1_000_000_000);
/// Sessions that may be resumed: two per connection, of a few hundred bytes each.
const SESSIONS: usize = 20_000;

/// A server's configuration.
#[derive(Debug)]
pub struct Config {
    /// Where to listen; port 0 is any free one.
    pub listen: SocketAddr,
    /// TLS for [`crate::H3`], as [`crate::tls::Certificate::config`] makes it.
    pub tls: rustls::ServerConfig,
    /// Which scheme a connection gets.
    pub schemes: Schemes,
    /// The folder whose files are served; without it only generated objects.
    pub root: Option<PathBuf>,
    /// The policy for clients' hints.
    pub hint_policy: HintPolicy,
    /// Where paths are remembered: a file, or a server `redis://HOST`.
    pub path_store: Option<String>,
    /// The file with the 32 bytes that seal the path state that clients keep.
    pub path_state_key: Option<PathBuf>,
    /// The oracle that is asked how fast the path to a client is, `http://HOST:PORT`.
    pub oracle: Option<String>,
    /// The interface whose speed counts as known.
    pub interface: Option<InterfaceChoice>,
    /// Where interfaces tell their speeds, and those that the operator tells in their place.
    pub interfaces: interface::Config,
    /// The time that an answer may take, from which and from its size follows the rate that the application asks for.
    pub deadline: Option<Duration>,
    /// Whether a returning client's request is answered before the handshake is complete (0-RTT, RFC 8470).
    pub early_data: bool,
    /// Whether clients that read SCONE packets get them, and what they report of the advice caps launches. Packets of
    /// all connections then stay at 1200 bytes, which leaves room for the SCONE packets.
    pub scone: bool,
    /// Whether packets grow as far as the path lets them (RFC 8899). With SCONE they never do.
    pub mtu_discovery: bool,
    /// Whether connections whose scheme wants it ask the routers of the path for a rate (Quick-Start), if their clients
    /// answer. That takes Linux and `CAP_NET_RAW`.
    pub quick_start: bool,
    /// The folder for a qlog file per connection.
    pub qlog: Option<PathBuf>,
    /// What all files in this folder may take, and one of them a tenth of it.
    pub qlog_limit: Bytes,
    /// Whether they name the client's network, /24 or /48.
    pub qlog_networks: bool,
    /// Where `/metrics` and `/kill-switch` are answered over HTTP/1.1.
    pub metrics: Option<SocketAddr>,
    /// What it allows.
    pub limits: Limits,
    /// What takes its warnings.
    pub warnings: Warnings,
}

impl Config {
    /// A server of generated objects on any free port of this host, without hints, memory, logs and metrics.
    pub fn new(tls: rustls::ServerConfig, schemes: Schemes) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            tls,
            schemes,
            root: None,
            hint_policy: HintPolicy::Ignore,
            path_store: None,
            path_state_key: None,
            oracle: None,
            interface: None,
            interfaces: interface::Config::default(),
            deadline: None,
            early_data: false,
            scone: false,
            mtu_discovery: true,
            quick_start: false,
            qlog: None,
            qlog_limit: QLOG_LIMIT,
            qlog_networks: false,
            metrics: None,
            limits: Limits::default(),
            warnings: Warnings::default(),
        }
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The folder cannot be served.
    #[error("{}: {cause}", root.display())]
    Root {
        /// The folder.
        root: PathBuf,
        /// Why.
        cause: String,
    },
    /// The folder for qlog files cannot be made.
    #[error("{}: {cause}", folder.display())]
    Qlog {
        /// The folder.
        folder: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file holds no key.
    #[error("{}: {problem}", file.display())]
    PathStateKey {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A scheme starts from something that this server never knows.
    #[error("{scheme} starts from {}, and this server knows nothing of it", names(lacks))]
    NoSource {
        /// The scheme.
        scheme: String,
        /// What it can start from, and why the server never knows it.
        lacks: Vec<(Known, Lack)>,
    },
    /// Routers cannot be asked.
    #[error("Quick-Start: {0}")]
    QuickStart(#[from] Unable),
    /// A scheme wants to ask routers for what sockets cannot.
    #[error("{scheme}: {problem}")]
    Request {
        /// The scheme.
        scheme: String,
        /// What is wrong with its parameters.
        problem: &'static str,
    },
    /// A source cannot be asked.
    #[error("{0}")]
    Source(String),
    /// The TLS is none for QUIC.
    #[error("{0}")]
    Tls(String),
    /// The address for clients cannot be used.
    #[error("{address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
    /// The address for metrics cannot be used.
    #[error("{address}: {cause}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
}

fn names(lacks: &[(Known, Lack)]) -> String {
    lacks.iter().map(|(known, _)| known.name()).collect::<Vec<_>>().join(" or ")
}

/// A listening server. It accepts connections while [`Server::run`] runs.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Where metrics are, and what answers there.
    metrics: Option<(SocketAddr, AbortOnDropHandle<()>)>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens. If a path store cannot be used and no scheme depends on it alone, the server warns and goes on without
    /// it.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with the file or the address that cannot be used.
    pub async fn start(config: Config) -> Result<Self, ServerError> {
        quick_start::check(&config)?;
        let metrics = Arc::new(Metrics::new());
        let known = SourcesOfServer::new(&config, &metrics)?;
        let Config { listen, mut tls, schemes, root, path_state_key, early_data, limits, warnings, qlog_limit, .. } =
            config;
        let content = Content::new(root.as_deref()).map_err(|cause| {
            let root = root.unwrap_or_default();
            ServerError::Root { root, cause }
        })?;
        let folder = |folder: PathBuf| {
            qlog::Folder::new(&folder, qlog_limit, warnings.clone(), metrics.clone())
                .map_err(|cause| ServerError::Qlog { folder, cause })
        };
        let qlog = config.qlog.map(folder).transpose()?;
        let key = |file: PathBuf| Seal::new(&file).map_err(|problem| ServerError::PathStateKey { file, problem });
        let seal = path_state_key.map(key).transpose()?;
        if early_data {
            // QUIC knows all or nothing (RFC 9001, section 4.6.1). Flow control bounds the amount.
            tls.max_early_data_size = u32::MAX;
            tls.session_storage = rustls::server::ServerSessionMemoryCache::new(SESSIONS);
        }
        let crypto = QuicServerConfig::try_from(tls).map_err(|error| ServerError::Tls(error.to_string()))?;
        let mut quic = noq::ServerConfig::with_crypto(Arc::new(crypto));
        if early_data {
            let mut tokens = noq::ValidationTokenConfig::default();
            tokens.sent(TOKENS).lifetime(TOKEN_LIFETIME).log(Arc::new(Used::default()));
            quic.validation_token_config(tokens);
        }
        let mut transport = transport(&schemes.plain, limits.connection_memory, RECEIVE_WINDOW);
        if config.scone || !config.mtu_discovery {
            transport.mtu_discovery_config(None);
        }
        quic.transport_config(Arc::new(transport.clone()));
        let unusable = |cause| ServerError::Listen { address: listen, cause };
        let clients =
            Clients { scone: config.scone.then(Arc::default), quick_start: config.quick_start.then(Arc::default) };
        let endpoint = bind_for_clients(listen, quic.clone(), &clients).map_err(unusable)?;
        let address = endpoint.local_addr().map_err(unusable)?;
        let shared = Arc::new(Shared {
            endpoint,
            config: quic,
            transport,
            content,
            policy: Policy::new(schemes),
            metrics,
            limits,
            of_prefix: limits.of_prefix.map(|most| Arc::new(PrefixLimit::new(most))),
            rate: limits.rate.map(RateLimit::new),
            hints: Hints::new(config.hint_policy),
            log: Seldom::new(warnings.clone()),
            scone: clients.scone,
            quick_start: clients.quick_start,
            qlog,
            qlog_networks: config.qlog_networks.then(Prefixes::default),
            early_data,
            sources: Arc::new(known),
            seal,
            warnings,
            memory: limits.memory.map(Memory::new),
            files: Semaphore::new(content::most_files()),
            connections: Counter::default(),
            handshakes: Counter::default(),
            windows: SharedWindows::default(),
        });
        let metrics = match config.metrics {
            None => None,
            Some(address) => {
                let unusable = |cause| ServerError::Metrics { address, cause };
                let listener = TcpListener::bind(address).await.map_err(unusable)?;
                let address = listener.local_addr().map_err(unusable)?;
                let answering = tokio::spawn(admin::serve(listener, shared.clone()));
                Some((address, AbortOnDropHandle::new(answering)))
            }
        };
        Ok(Self { shared, address, metrics })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where `/metrics` and `/kill-switch` are answered.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(address, _)| *address)
    }

    /// Toggles the kill switch; returns its new state. While it is on, connections start with plain slow start.
    pub fn toggle_kill_switch(&self) -> bool {
        self.shared.policy.toggle()
    }

    /// Serves until `stop`, and then until the answers under way have arrived or their time is over.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let (server, tasks, ending) = (&self.shared, TaskTracker::new(), CancellationToken::new());
        tokio::pin!(stop);
        let mut counting = tokio::time::interval(Memory::INTERVAL);
        counting.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let incoming = tokio::select! {
                () = &mut stop => break,
                _ = counting.tick(), if server.memory.is_some() => {
                    if let Some(memory) = &server.memory {
                        memory.count();
                    }
                    continue;
                }
                incoming = server.endpoint.accept() => incoming,
            };
            let Some(incoming) = incoming else { break };
            server.admit(incoming, &tasks, &ending);
        }
        ending.cancel();
        tasks.close();
        let refusing = async {
            while let Some(incoming) = server.endpoint.accept().await {
                incoming.refuse();
            }
        };
        let ended = tokio::select! {
            ended = timeout(server.limits.grace, tasks.wait()) => ended.is_ok(),
            () = refusing => true,
        };
        if !ended {
            server.warnings.tell(format_args!("{} connections are cut off", server.connections.now()));
        }
        server.endpoint.close(h3_code(Code::H3_NO_ERROR), b"the server ends");
        // The server does not wait for peers that do not answer the closing packet.
        drop(timeout(FAREWELL, server.endpoint.wait_idle()).await);
    }
}
